/* The fetcher: events of the shell in, connections kept and closed, timers.
 *
 * A connection belongs to one fetch or rests in `idle`. How long it may rest is decided here: less
 * than servers usually allow, and what the server's Keep-Alive field says, so that a request rarely
 * meets a connection that is being closed (cases RET-02). */
#include <stdlib.h>

#include "call/fetch_priv.h"

enum { FETCHES_MAX = 4096, IDLE_MAX = 64, COOKIE_MAX = 1 << 20, STALLED_US = 60000000 };

int lp_fetcher_new(const struct lp_fetcher_args *args, struct lp_fetcher **ret)
{
    static const struct lp_link_limits LIMITS = {
        .idle_us = STALLED_US, .request_us = STALLED_US, .stalled_us = STALLED_US};
    struct lp_fetcher *fetcher = calloc(1, sizeof *fetcher);
    if (!fetcher)
        return LP_ENOMEM;
    fetcher->shell = args->shell;
    fetcher->target = args->target;
    fetcher->log = args->log;
    fetcher->timer_at_us = UINT64_MAX;
    lp_heap_init(&fetcher->timers);
    lp_list_init(&fetcher->queued);
    lp_list_init(&fetcher->idle);
    lp_slab_init(&fetcher->fetches, sizeof(struct lp_fetch),
        args->fetches_max ? args->fetches_max : FETCHES_MAX);
    lp_buf_init(&fetcher->cookie, COOKIE_MAX);
    if (lp_links_init(&fetcher->links, args->shell, &fetcher->timers, &LIMITS)) {
        lp_slab_fini(&fetcher->fetches);
        lp_heap_fini(&fetcher->timers);
        free(fetcher);
        return LP_ENOMEM;
    }
    *ret = fetcher;
    return LP_OK;
}

void lp_fetcher_free(struct lp_fetcher *fetcher)
{
    if (!fetcher)
        return;
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_fetch *fetch; (fetch = lp_slab_next(&fetcher->fetches, &cursor, &id));)
        lp_fetch_free(fetch);
    lp_fetcher_drop_kept(fetcher, UINT32_MAX);
    lp_links_fini(&fetcher->links);
    lp_slab_fini(&fetcher->fetches);
    lp_heap_fini(&fetcher->timers);
    lp_buf_release(&fetcher->cookie);
    free(fetcher);
}

/* --- connections --- */

void lp_fetch_conn_forget(struct lp_fetcher *fetcher, struct lp_fetch_conn *conn)
{
    if (!lp_list_empty(&conn->node))
        fetcher->idle_count--;
    lp_list_remove(&conn->node);
    lp_fetcher_timer_cancel(fetcher, &conn->timer);
    free(conn);
}

static void close_idle(void *ctx)
{
    struct lp_fetch_conn *conn = ctx;
    lp_link_close(&conn->fetcher->links, conn->link, LP_CLOSE_NOW);
    lp_fetch_conn_forget(conn->fetcher, conn);
}

struct lp_fetch_conn *lp_fetch_conn_take(
    struct lp_fetcher *fetcher, const char *origin, uint32_t lane)
{
    struct lp_list *node = fetcher->idle.prev; /* the one that has rested least */
    while (node != &fetcher->idle) {
        struct lp_fetch_conn *conn = LP_CONTAINER(node, struct lp_fetch_conn, node);
        node = node->prev;
        if (conn->lane != lane || strcmp(conn->origin, origin) != 0)
            continue;
        if (!lp_link_is_idle(&fetcher->links, conn->link)) { /* it said more than its answer */
            close_idle(conn);
            continue;
        }
        lp_list_remove(&conn->node);
        fetcher->idle_count--;
        lp_fetcher_timer_cancel(fetcher, &conn->timer);
        return conn;
    }
    return NULL;
}

int lp_fetch_conn_open(struct lp_fetch *fetch, struct lp_fetch_conn **ret)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    struct lp_endpoint to = {.kind = LP_EP_TCP,
        .is_tls = lp_span_ieq(fetch->uri.scheme, LP_SPAN("https")),
        .is_public = fetch->args.is_public,
        .host = fetch->uri.host,
        .port = lp_uri_port(&fetch->uri),
        .source = fetch->args.source,
        .timeout_ms = fetch->args.connect_ms};
    struct lp_fetch_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return LP_ENOMEM;
    lp_list_init(&conn->node);
    conn->fetcher = fetcher;
    conn->lane = fetch->args.lane;
    conn->kept_ms = LP_FETCH_KEPT_MS;
    memcpy(conn->origin, fetch->origin, sizeof conn->origin);
    int err = lp_link_open(&fetcher->links, &to, &lp_fetch_message_ops, fetcher, &conn->link);
    if (err) {
        free(conn);
        return err;
    }
    conn->number = ++fetcher->conn_count;
    lp_link_set_tag(&fetcher->links, conn->link, fetch->id);
    *ret = conn;
    return LP_OK;
}

static void keep(struct lp_fetcher *fetcher, struct lp_fetch_conn *conn)
{
    lp_link_set_tag(&fetcher->links, conn->link, 0);
    conn->timer.fire = close_idle;
    conn->timer.ctx = conn;
    lp_list_push_back(&fetcher->idle, &conn->node);
    fetcher->idle_count++;
    if (lp_fetcher_timer_set(fetcher, &conn->timer, (uint64_t)conn->kept_ms * 1000))
        close_idle(conn);
    else if (fetcher->idle_count > IDLE_MAX)
        close_idle(LP_CONTAINER(fetcher->idle.next, struct lp_fetch_conn, node));
}

void lp_fetch_conn_release(struct lp_fetch *fetch, bool is_whole)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    struct lp_fetch_conn *conn = fetch->conn;
    fetch->conn = NULL;
    if (!conn)
        return;
    bool is_kept = is_whole && fetch->args.policy == LP_FETCH_KEEP && conn->kept_ms &&
        lp_link_is_idle(&fetcher->links, conn->link);
    if (is_kept) {
        keep(fetcher, conn);
        return;
    }
    lp_link_close(&fetcher->links, conn->link, LP_CLOSE_NOW);
    lp_fetch_conn_forget(fetcher, conn);
}

void lp_fetch_conn_closed(struct lp_fetcher *fetcher, lp_id link)
{
    for (struct lp_list *node = fetcher->idle.next; node != &fetcher->idle; node = node->next) {
        struct lp_fetch_conn *conn = LP_CONTAINER(node, struct lp_fetch_conn, node);
        if (conn->link == link) {
            lp_fetch_conn_forget(fetcher, conn);
            return;
        }
    }
}

void lp_fetcher_drop_kept(struct lp_fetcher *fetcher, uint32_t lane)
{
    struct lp_list *node = fetcher->idle.next;
    while (node != &fetcher->idle) {
        struct lp_fetch_conn *conn = LP_CONTAINER(node, struct lp_fetch_conn, node);
        node = node->next;
        if (lane == UINT32_MAX || conn->lane == lane)
            close_idle(conn);
    }
}

/* --- time --- */

uint64_t lp_fetcher_now_us(const struct lp_fetcher *fetcher)
{
    return fetcher->links.now_us;
}

uint64_t lp_fetcher_wall_ms(const struct lp_fetcher *fetcher)
{
    return fetcher->wall_ms;
}

const struct lp_target *lp_fetcher_target(const struct lp_fetcher *fetcher)
{
    return fetcher->target;
}

struct lp_netlog *lp_fetcher_log(const struct lp_fetcher *fetcher)
{
    return fetcher->log;
}

int lp_fetcher_timer_set(
    struct lp_fetcher *fetcher, struct lp_fetcher_timer *timer, uint64_t after_us)
{
    timer->timer.kind = LP_TIMER_FETCHER;
    return lp_heap_set(&fetcher->timers, &timer->timer, fetcher->links.now_us + after_us);
}

void lp_fetcher_timer_cancel(struct lp_fetcher *fetcher, struct lp_fetcher_timer *timer)
{
    lp_heap_cancel(&fetcher->timers, &timer->timer);
}

static void fire_timers(struct lp_fetcher *fetcher, uint64_t now_us)
{
    fetcher->timer_at_us = UINT64_MAX;
    for (struct lp_timer *timer; (timer = lp_heap_due(&fetcher->timers, now_us));) {
        if (timer->kind == LP_TIMER_LINK) {
            lp_links_timer(&fetcher->links, timer, now_us);
            continue;
        }
        LP_ASSERT(timer->kind == LP_TIMER_FETCHER);
        struct lp_fetcher_timer *own = LP_CONTAINER(timer, struct lp_fetcher_timer, timer);
        own->fire(own->ctx);
    }
}

/* --- events --- */

void lp_fetcher_settle(struct lp_fetcher *fetcher)
{
    do {
        while (!lp_list_empty(&fetcher->queued)) {
            struct lp_fetch *fetch = LP_CONTAINER(fetcher->queued.next, struct lp_fetch, node);
            lp_list_remove(&fetch->node);
            lp_fetch_begin(fetch);
        }
        lp_links_flush(&fetcher->links);
    } while (!lp_list_empty(&fetcher->queued));
    uint64_t next_us = lp_heap_next_us(&fetcher->timers);
    if (next_us == fetcher->timer_at_us)
        return;
    struct lp_action timer = {.kind = LP_ACT_TIMER, .u.timer_at_us = next_us};
    fetcher->timer_at_us = next_us;
    fetcher->shell->perform(fetcher->shell->ctx, &timer);
}

void lp_fetcher_event(struct lp_fetcher *fetcher, const struct lp_event *event)
{
    fetcher->links.now_us = event->mono_us;
    fetcher->wall_ms = event->wall_ms;
    switch (event->kind) {
    case LP_EV_CONNECTED:
    case LP_EV_CONNECT_FAILED:
    case LP_EV_READ:
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_DRAINED:
        lp_links_event(&fetcher->links, event);
        break;
    case LP_EV_TIMER:
        fire_timers(fetcher, event->mono_us);
        break;
    case LP_EV_ACCEPTED:
    case LP_EV_MAIL:
    case LP_EV_STORE_REPLY:
    case LP_EV_LOOKED:
    case LP_EV_CONFIG:
    case LP_EV_STOP:
        break; /* the command's own */
    }
    lp_fetcher_settle(fetcher);
}
