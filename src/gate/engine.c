/* The engine's frame: birth, the way of an event, timers, the graceful stop.
 *
 * Every event ends the same way: connections are flushed, exchanges that are over are freed, and
 * the shell is asked for the next timer. What requests mean is decided in the other files of the
 * room. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "gate/engine_priv.h"

enum { SWEEP_US = 1000000, IDLE_US = 75000000, STALLED_US = 60000000, PARTING_US = 1000000 };

static int init_servers(struct lp_engine *e)
{
    e->servers = calloc(e->conf->server_count ? e->conf->server_count : 1, sizeof *e->servers);
    if (!e->servers)
        return LP_ENOMEM;
    for (uint32_t i = 0; i < e->conf->server_count; i++) {
        struct lp_server_state *server = &e->servers[i];
        server->conf = &e->conf->servers[i];
        server->index = i;
        uint32_t more = lp_conf_finds_peers(e->conf) ? LP_FOUND_MAX : 0;
        int err = lp_fleet_init(&server->fleet, server->conf, e->keyring, more);
        if (err)
            return err;
        for (uint32_t r = 0; r < server->fleet.room; r++)
            server->fleet.replicas[r].check =
                (struct lp_timer){.kind = LP_TIMER_CHECK, .owner = (uint64_t)i << 32 | r};
    }
    return LP_OK;
}

/* A name of its own for each engine: gateways may stand behind each other, and a request may pass
 * several of them, but none twice. */
static void sign(struct lp_engine *e)
{
    unsigned char bytes[4];
    lp_entropy_bytes(&e->entropy, bytes, sizeof bytes);
    (void)snprintf(e->via, sizeof e->via, "1.1 limpet-%02x%02x%02x%02x", bytes[0], bytes[1],
        bytes[2], bytes[3]);
}

static int init(struct lp_engine *e, const struct lp_engine_args *args)
{
    lp_heap_init(&e->timers);
    lp_entropy_init(&e->entropy, args->seed);
    sign(e);
    lp_slab_init(&e->exchanges, sizeof(struct lp_exchange), LP_EXCHANGES_MAX);
    lp_list_init(&e->dying);
    const struct lp_link_limits limits = {.idle_us = IDLE_US,
        .request_us = e->conf->request_ms * 1000,
        .stalled_us = STALLED_US,
        .parting_us = PARTING_US};
    int err = lp_links_init(&e->links, e->shell, &e->timers, &limits);
    if (!err)
        err = lp_home_init(e);
    if (!err && e->conf->self.len)
        err = lp_hop_cache_init(&e->hops, NULL);
    if (!err)
        err = init_servers(e);
    e->out_head = calloc(1, sizeof *e->out_head);
    return err ? err : e->out_head ? LP_OK : LP_ENOMEM;
}

static void ask_for_timer(struct lp_engine *e)
{
    uint64_t at_us = lp_heap_next_us(&e->timers);
    if (at_us == e->timer_at_us)
        return;
    /* An earlier wake-up than needed does no harm; asking for each change would. */
    if (e->timer_at_us < at_us && e->timer_at_us > e->mono_us)
        return;
    e->timer_at_us = at_us;
    struct lp_action action = {.kind = LP_ACT_TIMER, .u.timer_at_us = at_us};
    e->shell->perform(e->shell->ctx, &action);
}

int lp_engine_new(const struct lp_engine_args *args, struct lp_engine **ret)
{
    LP_ASSERT(args->count >= 1 && args->count <= LP_ENGINES_MAX && args->number < args->count);
    struct lp_engine *e = aligned_alloc(64, (sizeof *e + 63) / 64 * 64);
    if (!e)
        return LP_ENOMEM;
    *e = (struct lp_engine){.shell = args->shell,
        .number = args->number,
        .count = args->count,
        .conf = args->conf,
        .keyring = args->keyring,
        .admin_ops = args->admin_ops,
        .admin_ctx = args->admin_ctx,
        .mono_us = args->mono_us,
        .wall_ms = args->wall_ms,
        .timer_at_us = UINT64_MAX};
    int err = init(e, args);
    if (err) {
        lp_engine_free(e);
        return err;
    }
    e->sweep_timer = (struct lp_timer){.kind = LP_TIMER_SWEEP};
    e->stop_timer = (struct lp_timer){.kind = LP_TIMER_STOP};
    lp_engine_arm(e, &e->sweep_timer, e->mono_us + SWEEP_US);
    lp_engine_tell_ready(e);
    lp_discovery_init(e);
    if (e->discovery.is_on) /* its first look waits for nobody's event */
        ask_for_timer(e);
    *ret = e;
    return LP_OK;
}

static void free_exchanges(struct lp_engine *e)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_exchange *x; (x = lp_slab_next(&e->exchanges, &cursor, &id));) {
        lp_stream_fini(e, x);
        lp_buf_release(&x->body);
        lp_buf_release(&x->held);
        lp_arena_fini(&x->arena);
    }
    lp_slab_fini(&e->exchanges);
    lp_spares_fini(&e->spares);
}

void lp_engine_free(struct lp_engine *e)
{
    if (!e)
        return;
    if (e->links.head)
        lp_links_fini(&e->links);
    lp_heap_fini(&e->timers); /* while all that holds a timer is still there */
    free_exchanges(e);
    for (uint32_t i = 0; e->servers && i < e->conf->server_count; i++)
        lp_fleet_fini(&e->servers[i].fleet);
    free(e->servers);
    free(e->out_head);
    lp_home_fini(e);
    lp_hop_cache_fini(&e->hops);
    free(e);
}

struct lp_exchange *lp_exchange_get(struct lp_engine *e, lp_id id)
{
    struct lp_exchange *x = lp_slab_get(&e->exchanges, id);
    return x && x->phase != LP_PHASE_OVER ? x : NULL;
}

void lp_engine_arm(struct lp_engine *e, struct lp_timer *timer, uint64_t at_us)
{
    if (lp_heap_set(&e->timers, timer, at_us))
        lp_engine_say(e, LP_LOG_ERROR, "out of memory: a timer could not be set");
}

/* --- log --- */

void lp_engine_say(struct lp_engine *e, enum lp_log_level level, const char *fmt, ...)
{
    if ((int)level > e->conf->log_level)
        return;
    char text[512];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t used = len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    struct lp_action action = {
        .kind = LP_ACT_LOG, .u.log = {.level = level, .line = lp_span(text, used)}};
    e->shell->perform(e->shell->ctx, &action);
}

bool lp_engine_may_complain(struct lp_engine *e)
{
    enum { COMPLAINT_US = 1000000 };
    if (e->mono_us < e->complain_us)
        return false;
    e->complain_us = e->mono_us + COMPLAINT_US;
    return true;
}

/* --- events --- */

static uint32_t count_clients(const struct lp_engine *e)
{
    return e->links.client_count - e->links.admin_count;
}

static void on_accepted(struct lp_engine *e, const struct lp_event *event)
{
    const struct lp_conn_facts *facts = &event->u.accepted;
    uint32_t share = e->conf->conn_max / e->count + 1;
    bool is_full = !facts->is_admin && count_clients(e) >= share;
    bool has_owner = !facts->is_admin || e->admin_ops;
    if (is_full || !has_owner || (e->stopping && !facts->is_admin)) {
        if (is_full)
            lp_engine_say(e, LP_LOG_WARN,
                "a client connection was closed: connections_max (%u) is reached",
                e->conf->conn_max);
        struct lp_action action = {
            .kind = LP_ACT_CLOSE, .conn = event->conn, .u.close = LP_CLOSE_NOW};
        e->shell->perform(e->shell->ctx, &action);
        return;
    }
    int err = facts->is_admin ? lp_link_accept(&e->links, event, e->admin_ops, e->admin_ctx)
                              : lp_link_accept(&e->links, event, &lp_client_ops, e);
    if (err) {
        lp_engine_say(e, LP_LOG_ERROR, "out of memory: a client connection was closed");
        return;
    }
    if (!facts->is_admin)
        lp_metrics_add(&e->metrics, LP_METRIC_CONNECTIONS_ACCEPTED, 1);
}

static bool is_standing(const struct lp_exchange *x)
{
    return x->is_stream_get || x->env.method == LP_RPC_LISTEN;
}

/* A listen ends without its result: that is a drop, after which its client listens again. */
static void end_standing_streams(struct lp_engine *e, bool all)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_exchange *x; (x = lp_slab_next(&e->exchanges, &cursor, &id));) {
        if (x->phase == LP_PHASE_OVER || (!all && !is_standing(x)))
            continue;
        lp_leg_close(e, x);
        if (x->down_open && !x->down_begun) {
            lp_answer(e, x, LP_REASON_stopping, NULL);
            continue;
        }
        if (x->down_open && x->is_sse && !all)
            lp_link_send_end(&e->links, x->down);
        else if (x->down_open)
            lp_link_abort(&e->links, x->down);
        x->down_open = false;
        lp_exchange_over(e, x, LP_REASON_stopping);
    }
}

static void on_stop(struct lp_engine *e)
{
    if (e->stopping)
        return;
    e->stopping = true;
    lp_engine_tell_ready(e);
    lp_engine_arm(e, &e->stop_timer, e->mono_us + e->conf->stop_ms * 1000);
    lp_links_stop(&e->links); /* first: what is answered from here on says so */
    end_standing_streams(e, false);
}

/* What is not over by now is ended; who does not even take the end is cut a moment later. */
static void on_stop_deadline(struct lp_engine *e)
{
    enum { MOMENT_US = 100000 };
    if (!e->exchanges.live_count) {
        lp_links_cut(&e->links);
        return;
    }
    end_standing_streams(e, true);
    lp_engine_arm(e, &e->stop_timer, e->mono_us + MOMENT_US);
}

static void on_timer(struct lp_engine *e, struct lp_timer *timer)
{
    switch (timer->kind) {
    case LP_TIMER_LINK:
        lp_links_timer(&e->links, timer, e->mono_us);
        return;
    case LP_TIMER_CHECK:
        lp_check_timer(e, (uint32_t)(timer->owner >> 32), (uint32_t)timer->owner);
        return;
    case LP_TIMER_SWEEP:
        lp_home_sweep(e);
        for (uint32_t i = 0; i < e->conf->server_count; i++)
            for (uint32_t r = 0; r < e->servers[i].fleet.count; r++)
                lp_pool_sweep(e, &e->servers[i].fleet.replicas[r]);
        lp_engine_arm(e, timer, e->mono_us + SWEEP_US);
        return;
    case LP_TIMER_STOP:
        on_stop_deadline(e);
        return;
    case LP_TIMER_DISCOVERY:
    case LP_TIMER_QUESTION:
        lp_discovery_timer(e, timer);
        return;
    default:
        break;
    }
    struct lp_exchange *x = lp_exchange_get(e, timer->owner);
    if (x && timer->kind == LP_TIMER_EXCHANGE)
        lp_exchange_timer(e, x);
    else if (x && timer->kind == LP_TIMER_COMMENT)
        lp_stream_comment(e, x);
}

static void dispatch(struct lp_engine *e, const struct lp_event *event)
{
    switch (event->kind) {
    case LP_EV_ACCEPTED:
        on_accepted(e, event);
        break;
    case LP_EV_CONNECTED:
    case LP_EV_CONNECT_FAILED:
    case LP_EV_READ:
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_DRAINED:
        lp_links_event(&e->links, event);
        break;
    case LP_EV_TIMER:
        e->timer_at_us = UINT64_MAX;
        break;
    case LP_EV_MAIL:
        lp_mail_receive(e, event->u.mail.bytes);
        break;
    case LP_EV_STOP:
        on_stop(e);
        break;
    case LP_EV_LOOKED:
        lp_discovery_looked(e, event->u.looked.error, event->u.looked.text);
        break;
    case LP_EV_STORE_REPLY: /* no store is asked in this release */
    case LP_EV_CONFIG:      /* nor is the configuration reloaded */
        break;
    }
}

static void tell_stopped(struct lp_engine *e)
{
    if (!e->stopping || e->stopped || e->exchanges.live_count || e->links.client_count)
        return;
    e->stopped = true;
    struct lp_action action = {.kind = LP_ACT_STOPPED};
    e->shell->perform(e->shell->ctx, &action);
}

/* Connections end in many places; what is open is told once per event. */
static void tell_connections(struct lp_engine *e)
{
    int64_t told = (int64_t)e->metrics.cells[LP_METRIC_CONNECTIONS_OPEN];
    int64_t open = count_clients(e);
    if (open != told)
        lp_metrics_add(&e->metrics, LP_METRIC_CONNECTIONS_OPEN, open - told);
}

void lp_engine_event(struct lp_engine *e, const struct lp_event *event)
{
    e->mono_us = event->mono_us;
    e->wall_ms = event->wall_ms;
    e->links.now_us = event->mono_us;
    dispatch(e, event);
    for (struct lp_timer *timer; (timer = lp_heap_due(&e->timers, e->mono_us));)
        on_timer(e, timer);
    lp_links_flush(&e->links);
    lp_exchange_bury(e);
    tell_connections(e);
    tell_stopped(e);
    ask_for_timer(e);
}

/* --- questions from the program --- */

const struct lp_metrics *lp_engine_metrics(const struct lp_engine *e)
{
    return &e->metrics;
}

struct lp_links *lp_engine_links(struct lp_engine *e)
{
    return &e->links;
}

static bool takes_work(const struct lp_engine *e)
{
    if (e->stopping)
        return false;
    for (uint32_t i = 0; i < e->conf->server_count; i++)
        if (!lp_fleet_any_up(&e->servers[i].fleet))
            return false;
    return true;
}

void lp_engine_tell_ready(struct lp_engine *e)
{
    __atomic_store_n(&e->is_ready, takes_work(e), __ATOMIC_RELAXED);
}

bool lp_engine_is_ready(const struct lp_engine *e)
{
    return __atomic_load_n(&e->is_ready, __ATOMIC_RELAXED);
}

/* Among the peers that are looked up it finds itself. */
static bool is_self(const struct lp_engine *e, const struct lp_replica *replica)
{
    return e->conf->is_sidecar && lp_span_eq(replica->conf->name, e->conf->self);
}

uint32_t lp_engine_replicas(
    const struct lp_engine *e, struct lp_metrics_replica *rows, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->conf->server_count; i++) {
        const struct lp_fleet *fleet = &e->servers[i].fleet;
        for (uint32_t r = 0; r < fleet->count; r++) {
            const struct lp_replica *replica = &fleet->replicas[r];
            if (!lp_fleet_is_there(replica) || (r && is_self(e, replica)))
                continue;
            if (count++ < max)
                rows[count - 1] = (struct lp_metrics_replica){.server = fleet->conf->name,
                    .name = replica->conf->name,
                    .state = lp_span_str(lp_replica_state_name(replica->state)),
                    .sessions = replica->sessions,
                    .waiting = replica->waiting,
                    .lost_fresh = replica->lost_fresh,
                    .loses_its_own = replica->loses_its_own,
                    .is_peer = replica->conf->is_peer,
                    .incarnation = replica->incarnation};
        }
    }
    return count;
}
