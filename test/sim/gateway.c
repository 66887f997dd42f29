/* Gateway processes: one configuration and key ring each, one or two engines that share only mail.
 * A kill drops the engines in the middle of everything; a start makes new ones that remember
 * nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "gate/engine_priv.h"
#include "sim.h"

static void fill_replicas(struct sim *w, struct sim_gateway *g, uint32_t server, uint32_t removed)
{
    static const char *const PATHS[SIM_SERVERS] = {"/mcp", "/other"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->plan.replicas; i++) {
        const struct sim_replica *r = &w->replicas[i];
        if (i == removed)
            continue;
        g->replicas[server][count++] = (struct lp_conf_replica){
            .name = lp_span_str(r->name),
            .address = {.is_unix = r->is_unix,
                .host = lp_span_str(r->host),
                .port = 3000,
                .authority = lp_span_str(r->authority)},
            .path = lp_span_str(PATHS[server]),
            .weight = 1 + i % 2,
        };
    }
    g->servers[server].replicas = g->replicas[server];
    g->servers[server].replica_count = count;
}

/* Of a sidecar: the replica beside it, then the other sidecars, by their owner ids. */
static void fill_peers(struct sim *w, struct sim_gateway *g, uint32_t server)
{
    struct lp_conf_replica *all = g->replicas[server];
    struct lp_conf_replica own = all[g->index];
    uint32_t count = 0;
    all[count++] = own;
    for (uint32_t i = 0; i < w->plan.gateways && w->plan.peers == SIM_LISTED; i++)
        if (i != g->index)
            all[count++] = (struct lp_conf_replica){.name = lp_span_str(w->replicas[i].name),
                .address = {.host = lp_span_str(w->gateways[i].host),
                    .port = 8080,
                    .authority = lp_span_str(w->gateways[i].host)},
                .path = own.path,
                .weight = 1,
                .is_peer = true};
    g->servers[server].replica_count = count;
}

static const struct lp_span HOSTS[] = {{"gate.sim", 8}, {"gate.sim:8080", 13}};
static const struct lp_span ORIGINS[] = {{"http://page.sim", 15}};
static const struct lp_span AGENTS[] = {{"Go-http-client/", 15}};
static const struct lp_conf_dialect DIALECTS[] = {
    {400, -32055, {"who are you", 11}}, {410, 0, {"session expired", 15}}};

static void fill_server(struct sim *w, struct sim_gateway *g, uint32_t server, uint32_t removed)
{
    struct sim_plan *p = &w->plan;
    struct lp_conf_server *s = &g->servers[server];
    *s = (struct lp_conf_server){
        .name = server ? LP_SPAN("other") : LP_SPAN("tools"),
        .path = server ? LP_SPAN("/other") : LP_SPAN("/mcp"),
        .balance = server ? LP_BALANCE_ROUND_ROBIN : LP_BALANCE_LEAST_SESSIONS,
        .gone_after_ms = 3000,
        .connect_ms = 2000,
        .first_byte_ms = 20000,
        .sse_post_ms = 5000,
        .stalled_ms = 30000,
        .ticket_age_ms = p->age_ms ? p->age_ms : 30ull * 86400 * 1000,
        .body_max = 300000,
        .comment_ms = server ? 0 : 1500,
        .cookie_jar = p->jars,
        .plain_404_agents = AGENTS,
        .plain_404_agent_count = 1,
    };
    if (!server && p->has_sse) {
        s->sse_path = p->sse_shares_path ? s->path : LP_SPAN("/sse");
        s->sse_upstream = LP_SPAN("/up/sse");
    }
    if (p->has_lists) {
        s->hosts = HOSTS;
        s->host_count = 2;
        s->origins = ORIGINS;
        s->origin_count = 1;
        s->lost_dialects = DIALECTS;
        s->lost_dialect_count = 2;
    }
    fill_replicas(w, g, server, removed);
    if (p->is_sidecars)
        fill_peers(w, g, server);
}

static void fill_conf(struct sim *w, struct sim_gateway *g, uint32_t removed)
{
    g->conf = (struct lp_conf){
        .threads = g->engine_count,
        .servers = g->servers,
        .server_count = w->plan.servers,
        .access_log = !w->plan.is_quiet,
        .access_format = LP_LOG_TEXT,
        .log_level = w->plan.is_quiet ? LP_LOG_WARN : LP_LOG_INFO,
        .request_ms = 30000,
        .large_bodies_max = 1 << 28,
        .stop_ms = 5000,
        .conn_max = w->plan.conn_max,
        .is_sidecar = w->plan.is_sidecars,
        .ids = w->plan.owner_ids ? LP_IDS_OWNER : LP_IDS_SEALED,
    };
    if (w->plan.is_sidecars)
        g->conf.self = lp_span_str(w->replicas[g->index].name);
    g->conf.peers_every_ms = 1000;
    if (w->plan.peers == SIM_IN_FILE)
        g->conf.peers_file = LP_SPAN("/etc/peers");
    else if (w->plan.peers == SIM_BY_NAME)
        g->conf.peers_dns.address =
            (struct lp_conf_address){.host = LP_SPAN("all.sim"), .port = 8080};
    for (uint32_t i = 0; i < SIM_SERVERS; i++)
        fill_server(w, g, i, removed);
}

/* In the middle of a rotation: both keys open everywhere, either seals. */
static void fill_ring(struct sim *w, struct sim_gateway *g)
{
    g->ring = w->rings[0];
    if (!w->plan.rotates)
        return;
    uint32_t second = g->epoch > 1; /* seals with the new key from its second start on */
    g->ring.count = 2;
    g->ring.keys[second] = w->rings[0].keys[0];
    g->ring.keys[!second] = w->rings[2].keys[0];
    if (second)
        sim_count(w, SIM_FAULT_key_rotated);
}

static void start_engine(struct sim *w, struct sim_gateway *g, uint32_t number)
{
    struct sim_engine *s = &g->engines[number];
    *s = (struct sim_engine){
        .w = w, .gateway = g->index, .number = number, .timer_order = (uint64_t)g->epoch << 32};
    s->shell = (struct lp_shell){s, sim_perform};
    struct lp_engine_args args = {.shell = &s->shell,
        .number = number,
        .count = g->engine_count,
        .conf = &g->conf,
        .keyring = &g->ring,
        .mono_us = w->now_us,
        .wall_ms = sim_wall_ms(w)};
    for (size_t i = 0; i < sizeof args.seed; i++)
        args.seed[i] = (unsigned char)sim_random(w);
    struct sim *before = sim_memory_of(w);
    int err = lp_engine_new(&args, &s->engine);
    sim_memory_of(NULL);
    if (err) { /* out of memory at the start: nothing is left behind, and a second one follows */
        LP_ASSERT(err == LP_ENOMEM && w->plan.no_memory_in);
        err = lp_engine_new(&args, &s->engine);
    }
    sim_memory_of(before);
    LP_ASSERT(!err);
    struct lp_event first = {.kind = LP_EV_CONFIG, .u.config = &g->conf};
    sim_emit(s, &first);
}

/* A sidecar that comes or goes is to the others as its replica. */
static void mark_away(struct sim *w, uint32_t index)
{
    if (!w->plan.is_sidecars)
        return;
    sim_unseen(w, index);
    sim_trouble(w, index);
}

void sim_gateway_start(struct sim *w, uint32_t index, uint32_t removed)
{
    struct sim_gateway *g = &w->gateways[index];
    g->index = index;
    g->epoch++;
    g->is_stopping = false;
    g->engine_count = w->plan.engines;
    fill_ring(w, g);
    fill_conf(w, g, removed);
    for (uint32_t i = 0; i < g->engine_count; i++)
        start_engine(w, g, i);
    mark_away(w, index);
    g->start_us = w->now_us;
    sim_say(w, "gateway g%u starts (%u)", index, g->epoch);
}

bool sim_gateway_is_up(const struct sim *w, uint32_t index)
{
    return w->gateways[index].engines[0].engine != NULL;
}

bool sim_gateway_is_busy(const struct sim *w, uint32_t index)
{
    const struct sim_gateway *g = &w->gateways[index];
    for (uint32_t i = 0; i < g->engine_count && g->engines[i].engine; i++)
        if (g->engines[i].engine->exchanges.live_count)
            return true;
    return false;
}

void sim_emit(struct sim_engine *s, struct lp_event *event)
{
    struct sim *w = s->w;
    LP_ASSERT(s->engine);
    event->mono_us = w->now_us;
    event->wall_ms = sim_wall_ms(w);
    struct sim *before = sim_memory_of(w);
    lp_engine_event(s->engine, event);
    sim_memory_of(before);
    if (s->stopped && s->engine->exchanges.live_count)
        sim_fail(w, "g%u/%u said that it had stopped, with exchanges in progress", s->gateway,
            s->number);
}

static void drop_engines(struct sim *w, struct sim_gateway *g)
{
    for (uint32_t i = 0; i < g->engine_count; i++) {
        sim_oracle_collect(w, &g->engines[i]);
        lp_engine_free(g->engines[i].engine);
        g->engines[i].engine = NULL;
    }
}

void sim_gateway_kill(struct sim *w, uint32_t index)
{
    struct sim_gateway *g = &w->gateways[index];
    sim_say(w, "gateway g%u is killed", index);
    mark_away(w, index);
    drop_engines(w, g);
}

static void collect(struct sim *w, uint64_t index, uint64_t epoch)
{
    struct sim_gateway *g = &w->gateways[index];
    if (g->epoch != epoch || !sim_gateway_is_up(w, (uint32_t)index))
        return;
    for (uint32_t i = 0; i < g->engine_count; i++) {
        if (!g->engines[i].stopped && !w->plan.no_memory_in)
            sim_fail(w, "g%u/%u did not stop within its time: %u exchanges, %u clients", g->index,
                i, g->engines[i].engine->exchanges.live_count,
                g->engines[i].engine->links.client_count);
    }
    if (!w->is_settling)
        sim_gateway_kill(w, (uint32_t)index);
}

void sim_gateway_stop(struct sim *w, uint32_t index)
{
    enum { GRACE_US = 4000000 };
    struct sim_gateway *g = &w->gateways[index];
    sim_say(w, "gateway g%u is told to stop", index);
    mark_away(w, index);
    g->is_stopping = true;
    g->stop_us = w->now_us;
    for (uint32_t i = 0; i < g->engine_count; i++) {
        struct lp_event event = {.kind = LP_EV_STOP};
        sim_emit(&g->engines[i], &event);
        event.kind = sim_one_in(w, 2) ? LP_EV_STOP : LP_EV_STORE_REPLY; /* neither does harm */
        sim_emit(&g->engines[i], &event);
    }
    sim_at(w, g->conf.stop_ms * 1000 + GRACE_US, collect, index, g->epoch);
}

void sim_gateway_fini(struct sim *w, uint32_t index)
{
    if (sim_gateway_is_up(w, index))
        drop_engines(w, &w->gateways[index]);
}
