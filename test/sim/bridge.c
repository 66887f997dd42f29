/* What sidecars have of each other: connections, and the place where they look for peers.
 *
 * A connection from one to another: the network's models are at one end of each connection
 * only, so two of them are needed, and what comes out of one goes into the other. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#include "sim.h"

struct bridge {
    lp_id up;   /* of the engine that has connected */
    lp_id down; /* of the one that has accepted */
};

/* Both ends close; neither is heard of again. */
static void part(struct sim *w, struct bridge *b, enum sim_how how)
{
    struct sim_conn *up = sim_conn_get(w, b->up);
    if (up)
        sim_peer_close(w, up, how);
    struct sim_conn *down = sim_conn_get(w, b->down);
    if (down)
        sim_peer_close(w, down, how);
    free(b);
}

static void on_connected(struct sim *w, struct sim_conn *c, bool is_there)
{
    struct bridge *b = c->peer;
    if (is_there)
        return;
    sim_trouble(w, sim_conn_get(w, b->up)->who);
    b->down = 0; /* it is freed by who refused it */
    part(w, b, SIM_RESET);
}

static void on_read(struct sim *w, struct sim_conn *c, struct lp_span bytes)
{
    const struct bridge *b = c->peer;
    struct sim_conn *other = sim_conn_get(w, c->id == b->up ? b->down : b->up);
    if (other)
        sim_peer_write(w, other, bytes);
}

static void on_eof(struct sim *w, struct sim_conn *c)
{
    part(w, c->peer, SIM_CLOSE);
}

static void on_broken(struct sim *w, struct sim_conn *c)
{
    part(w, c->peer, SIM_RESET);
}

static const struct sim_peer_ops OPS = {
    .connected = on_connected,
    .read = on_read,
    .eof = on_eof,
    .broken = on_broken,
};

uint32_t sim_bridge_find(const struct sim *w, struct lp_span host)
{
    uint32_t i = 0;
    while (i < w->plan.gateways && !lp_span_eq(lp_span_str(w->gateways[i].host), host))
        i++;
    return i;
}

bool sim_bridge_open(struct sim *w, struct sim_conn *c)
{
    struct sim_gateway *g = &w->gateways[c->who];
    if (!sim_gateway_is_up(w, c->who) || g->is_stopping)
        return false;
    struct bridge *b = malloc(sizeof *b);
    LP_ASSERT(b);
    c->ops = &OPS;
    c->peer = b;
    b->up = c->id;
    b->down = sim_dial(w, &g->engines[0], &OPS, b);
    return true;
}

void sim_bridge_fini(struct sim_conn *c)
{
    free(c->peer);
}

/* --- looks --- */

static size_t write_peers(const struct sim *w, char *room, size_t cap)
{
    size_t len = 0;
    for (uint32_t i = 0; i < w->plan.gateways; i++) {
        const struct sim_gateway *g = &w->gateways[i];
        if (!sim_gateway_is_up(w, i) || g->is_stopping)
            continue;
        if (w->plan.peers == SIM_IN_FILE)
            len += (size_t)snprintf(room + len, cap - len, "%s=http://", w->replicas[i].name);
        len += (size_t)snprintf(
            room + len, cap - len, w->plan.peers == SIM_IN_FILE ? "%s:8080\n" : "%s\n", g->host);
    }
    return len;
}

static void found(struct sim *w, uint64_t gateway, uint64_t epoch)
{
    struct sim_gateway *g = &w->gateways[gateway];
    char text[400];
    struct lp_event event = {.kind = LP_EV_LOOKED};
    bool is_bad = w->plan.fault_in && !w->is_settling && sim_one_in(w, 10);
    if (!sim_gateway_is_up(w, (uint32_t)gateway) || g->epoch != epoch)
        return;
    event.u.looked.text = lp_span(text, write_peers(w, text, sizeof text));
    if (is_bad) {
        bool has_error = sim_one_in(w, 2);
        sim_count(w, has_error ? SIM_FAULT_look_failed : SIM_FAULT_look_spoilt);
        w->look_us = w->now_us;
        event.u.looked.error = has_error ? LP_ETIMEOUT : LP_OK;
        event.u.looked.text = LP_SPAN("m0=http://g0.sim:8080\nno peer\n");
    }
    sim_emit(&g->engines[0], &event);
}

void sim_look(struct sim *w, struct sim_engine *engine)
{
    const struct sim_gateway *g = &w->gateways[engine->gateway];
    sim_at(w, 1 + sim_below(w, 200000), found, g->index, g->epoch);
}
