/* Kept connections to replicas, and what connections say about a replica's state.
 *
 * Servers close idle connections (Node after 5 s): how long a replica keeps them is learnt from its
 * Keep-Alive header, and a request never goes out on one that is near that age (design 9.1). A
 * replica in doubt or gone is checked by connecting, so that doubt ends by itself (design 9.14). */
#include "base/error.h"
#include "gate/engine_priv.h"

lp_id lp_pool_take(struct lp_engine *e, struct lp_replica *r)
{
    while (r->pooled_count) {
        struct lp_pooled kept = r->pooled[--r->pooled_count];
        if (lp_link_is_idle(&e->links, kept.link) && e->mono_us - kept.since_us < r->keep_us)
            return kept.link;
        lp_link_close(&e->links, kept.link, LP_CLOSE_NOW);
    }
    return 0;
}

void lp_pool_give(struct lp_engine *e, struct lp_replica *r, lp_id link)
{
    bool is_fit = lp_link_is_idle(&e->links, link) && r->pooled_count < LP_POOL_MAX &&
        !e->stopping && r->state != LP_REPLICA_GONE && !r->is_absent;
    if (!is_fit) {
        lp_link_close(&e->links, link, LP_CLOSE_NOW);
        return;
    }
    lp_link_set_tag(&e->links, link, 0);
    r->pooled[r->pooled_count++] = (struct lp_pooled){link, e->mono_us};
}

/* The oldest are at the front: those over their age go. */
void lp_pool_sweep(struct lp_engine *e, struct lp_replica *r)
{
    uint32_t old = 0;
    while (old < r->pooled_count && e->mono_us - r->pooled[old].since_us >= r->keep_us)
        lp_link_close(&e->links, r->pooled[old++].link, LP_CLOSE_NOW);
    if (!old)
        return;
    r->pooled_count -= old;
    memmove(r->pooled, r->pooled + old, r->pooled_count * sizeof *r->pooled);
}

void lp_pool_drop_all(struct lp_engine *e, struct lp_replica *r)
{
    while (r->pooled_count)
        lp_link_close(&e->links, r->pooled[--r->pooled_count].link, LP_CLOSE_NOW);
}

/* --- state --- */

static struct lp_replica *replica_at(const struct lp_engine *e, uint32_t server, uint32_t replica)
{
    return &e->servers[server].fleet.replicas[replica];
}

struct lp_endpoint lp_replica_endpoint(const struct lp_engine *e, uint32_t server, uint32_t replica)
{
    const struct lp_conf_address *address = &replica_at(e, server, replica)->conf->address;
    return (struct lp_endpoint){
        .kind = address->is_unix ? LP_EP_UNIX : LP_EP_TCP,
        .is_tls = address->is_tls,
        .host = address->host,
        .port = address->port,
        .timeout_ms = (uint32_t)e->servers[server].conf->connect_ms,
    };
}

void lp_replica_changed(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    struct lp_replica *r = replica_at(e, server, replica);
    struct lp_span name = r->conf->name;
    lp_metrics_add(&e->metrics, LP_METRIC_REPLICA_STATE_CHANGES, 1);
    lp_engine_tell_ready(e);
    bool is_up = r->state == LP_REPLICA_UP;
    lp_engine_say(e, is_up ? LP_LOG_INFO : LP_LOG_WARN,
        "replica %.*s is %s%s%s (server %.*s, incarnation %u)", (int)name.len, name.ptr,
        r->state == LP_REPLICA_DOUBT ? "in doubt" : lp_replica_state_name(r->state),
        is_up ? "" : ": ", is_up ? "" : lp_fleet_connect_sentence(r->error),
        (int)e->servers[server].conf->name.len, e->servers[server].conf->name.ptr, r->incarnation);
    if (r->state != LP_REPLICA_GONE)
        return;
    lp_pool_drop_all(e, r);
    lp_home_replica_gone(e, server, replica);
}

static void tell_others(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    struct lp_mail mail = {.kind = LP_MAIL_STATE,
        .server = server,
        .replica = replica,
        .delta = (int32_t)replica_at(e, server, replica)->state,
        .error = replica_at(e, server, replica)->error};
    lp_mail_all(e, &mail);
}

static void after(struct lp_engine *e, uint32_t server, uint32_t replica, bool changed)
{
    if (!changed)
        return;
    lp_replica_changed(e, server, replica);
    if (replica_at(e, server, replica)->state != LP_REPLICA_DOUBT)
        tell_others(e, server, replica);
}

void lp_replica_connected(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    after(e, server, replica, lp_fleet_succeeded(replica_at(e, server, replica)));
}

static void schedule_check(struct lp_engine *e, struct lp_replica *r)
{
    if (r->state == LP_REPLICA_UP || r->check.index || r->is_absent)
        return;
    uint64_t wait_us = r->state == LP_REPLICA_GONE ? LP_CHECK_GONE_US : LP_CHECK_DOUBT_US;
    lp_engine_arm(e, &r->check, e->mono_us + wait_us);
}

void lp_replica_not_tried(struct lp_engine *e, uint32_t server, uint32_t replica, int error)
{
    struct lp_span name = replica_at(e, server, replica)->conf->name;
    if (!lp_engine_may_complain(e))
        return;
    lp_engine_say(e, LP_LOG_ERROR, "cannot connect to replica %.*s: %s", (int)name.len, name.ptr,
        lp_fleet_connect_sentence(error));
}

void lp_replica_failed(struct lp_engine *e, uint32_t server, uint32_t replica, int error)
{
    struct lp_replica *r = replica_at(e, server, replica);
    lp_metrics_add(&e->metrics, LP_METRIC_UPSTREAM_CONNECT_FAILURES, 1);
    bool is_silent = lp_fleet_is_silence(error);
    if (!is_silent && !lp_fleet_is_refusal(error)) {
        lp_replica_not_tried(e, server, replica, error);
        schedule_check(e, r);
        return;
    }
    r->error = error;
    bool changed = is_silent ? lp_fleet_timed_out(r, e->mono_us) : lp_fleet_refused(r, e->mono_us);
    after(e, server, replica, changed);
    if (r->state == LP_REPLICA_DOUBT && !is_silent)
        lp_check_now(e, server, replica);
    schedule_check(e, r);
}

void lp_replica_broke(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    lp_fleet_broke(replica_at(e, server, replica));
    lp_check_now(e, server, replica);
}

/* --- checks: a connection is all that is asked for --- */

static uint64_t check_tag(uint32_t server, uint32_t replica)
{
    return (uint64_t)server << 32 | replica;
}

static void check_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    struct lp_engine *e = ctx;
    uint32_t server = (uint32_t)(tag >> 32), replica = (uint32_t)tag;
    struct lp_replica *r = replica_at(e, server, replica);
    r->check_link = 0;
    if (error) {
        lp_replica_failed(e, server, replica, error);
        return;
    }
    lp_link_close(&e->links, link, LP_CLOSE_NOW);
    lp_replica_connected(e, server, replica);
}

static void check_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)link;
    (void)why;
    replica_at(ctx, (uint32_t)(tag >> 32), (uint32_t)tag)->check_link = 0;
}

static const struct lp_message_ops CHECK_OPS = {
    .connected = check_connected,
    .closed = check_closed,
};

void lp_check_now(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    struct lp_replica *r = replica_at(e, server, replica);
    if (r->check_link || e->stopping || r->is_absent)
        return;
    struct lp_endpoint to = lp_replica_endpoint(e, server, replica);
    if (lp_link_open(&e->links, &to, &CHECK_OPS, e, &r->check_link)) {
        r->check_link = 0;
        schedule_check(e, r);
        return;
    }
    lp_link_set_tag(&e->links, r->check_link, check_tag(server, replica));
}

void lp_check_timer(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    struct lp_replica *r = replica_at(e, server, replica);
    uint64_t gone_after_us = e->servers[server].conf->gone_after_ms * 1000;
    after(e, server, replica, lp_fleet_check_age(r, gone_after_us, e->mono_us));
    if (r->state != LP_REPLICA_UP)
        lp_check_now(e, server, replica);
    schedule_check(e, r);
}
