/* The server as a whole: events and timers in, its life and its end (serve/server.h).
 *
 * All connection business is link's; what the messages mean is in the files named in
 * server_priv.h. At the end of every event the gathered output leaves and the next timer is set. */
#include "serve/server.h"

#include <stdlib.h>

#include "base/error.h"
#include "serve/server_priv.h"
#include "serve/shared.h"

enum { SECOND_US = 1000000, MINUTE_US = 60000000, TEXTS_MAX = 65536, RETRY_MS = 1000 };

static const struct lp_link_limits LIMITS = {
    .idle_us = 75000000, .request_us = 30000000, .stalled_us = MINUTE_US};

static int copy_texts(struct lp_server *server)
{
    struct lp_server_args *args = &server->args;
    struct lp_span *const texts[] = {&args->name, &args->version, &args->instructions, &args->path,
        &args->sse_path, &args->owner, &args->origins, &args->resource_metadata};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int err = texts[i]->len ? lp_arena_dup(&server->texts, *texts[i], texts[i]) : LP_OK;
        if (err)
            return err;
    }
    return LP_OK;
}

static void make_ring(struct lp_server *server)
{
    unsigned char key[LP_KEY_BYTES];
    lp_entropy_bytes(&server->entropy, key, sizeof key);
    lp_keyring_make(key, &server->ring);
}

static int set_up(struct lp_server *server, const struct lp_server_args *args)
{
    server->args = *args;
    server->shell = args->shell;
    server->offer = args->offer;
    if (args->mode == LP_SESSIONS_SHARED)
        server->args.owner = LP_SPAN(""); /* a session is nobody's */
    if (!args->session_max)
        server->args.session_max = LP_SERVER_SESSIONS;
    if (!args->idle_us)
        server->args.idle_us = 15ull * MINUTE_US;
    if (!args->grace_us)
        server->args.grace_us = 10ull * SECOND_US;
    if (!args->retry_ms)
        server->args.retry_ms = RETRY_MS;
    server->timer_at_us = UINT64_MAX;
    server->sweep = (struct lp_timer){.kind = LP_TIMER_SERVER_SWEEP};
    server->grace = (struct lp_timer){.kind = LP_TIMER_SERVER_GRACE};
    lp_arena_init(&server->texts, TEXTS_MAX);
    lp_out_init(&server->scratch);
    lp_heap_init(&server->timers);
    lp_entropy_init(&server->entropy, args->seed);
    if (args->keys)
        server->ring = *args->keys;
    else
        make_ring(server);
    lp_slab_init(&server->requests, sizeof(struct lp_request), LP_SERVER_CONNECTIONS_MAX);
    lp_slab_init(&server->channels, sizeof(struct lp_channel), LP_SERVER_CALLS_MAX);
    lp_slab_init(&server->calls, sizeof(struct lp_job), LP_SERVER_CALLS_MAX);
    lp_slab_init(&server->listens, sizeof(struct lp_listen), LP_SERVER_LISTENS_MAX);
    lp_slab_init(&server->tasks, sizeof(struct lp_task), LP_SERVER_TASKS_MAX);
    lp_map_init(&server->task_keys);
    lp_slab_init(&server->sessions, sizeof(struct lp_session), server->args.session_max);
    lp_map_init(&server->by_key);
    lp_list_init(&server->idle);
    lp_list_init(&server->doomed);
    lp_list_init(&server->ready);
    lp_list_init(&server->finished);
    int err = lp_links_init(&server->links, server->shell, &server->timers, &LIMITS);
    if (!err)
        err = copy_texts(server);
    return !err && args->mode == LP_SESSIONS_SHARED ? lp_shared_new(server) : err;
}

int lp_server_new(const struct lp_server_args *args, struct lp_server **ret)
{
    if (args->path.len > LP_SERVER_PATH_MAX || args->sse_path.len > LP_SERVER_PATH_MAX)
        return LP_ETOO_LONG;
    bool has_streams = args->mode == LP_SESSIONS_LOCAL && args->eras != LP_ERAS_MODERN;
    if (args->sse_path.len && !has_streams)
        return LP_EUNSUPPORTED;
    if (args->owner.len && !lp_owner_is_id(args->owner))
        return LP_ESYNTAX;
    struct lp_server *server = calloc(1, sizeof *server);
    if (!server)
        return LP_ENOMEM;
    int err = set_up(server, args);
    if (err) {
        lp_server_free(server);
        return err;
    }
    *ret = server;
    return LP_OK;
}

void lp_server_free(struct lp_server *server)
{
    uint32_t cursor = 0;
    lp_id id;
    if (!server)
        return;
    lp_links_fini(&server->links);
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));)
        lp_session_end(server, s);
    cursor = 0;
    for (struct lp_request *r; (r = lp_slab_next(&server->requests, &cursor, &id));)
        lp_request_free(server, r);
    lp_shared_free(server);
    lp_task_free_all(server);
    lp_slab_fini(&server->tasks);
    lp_map_fini(&server->task_keys);
    lp_slab_fini(&server->requests);
    lp_slab_fini(&server->channels);
    lp_slab_fini(&server->calls);
    lp_slab_fini(&server->listens);
    lp_slab_fini(&server->sessions);
    lp_map_fini(&server->by_key);
    lp_heap_fini(&server->timers);
    lp_out_release(&server->scratch);
    lp_arena_fini(&server->texts);
    lp_keyring_fini(&server->ring);
    free(server);
}

uint32_t lp_server_session_count(const struct lp_server *server)
{
    return server->sessions.live_count;
}

static void perform(struct lp_server *server, const struct lp_action *action)
{
    server->shell->perform(server->shell->ctx, action);
}

static void on_accepted(struct lp_server *server, const struct lp_event *event)
{
    bool is_full = server->links.client_count >= LP_SERVER_CONNECTIONS_MAX;
    if (is_full || server->stopping) {
        struct lp_action close = {.kind = LP_ACT_CLOSE, .conn = event->conn};
        close.u.close = LP_CLOSE_NOW;
        perform(server, &close);
        return;
    }
    if (lp_link_accept(&server->links, event, &lp_server_ops, server))
        return; /* link has closed it */
}

/* First the calls that are still in progress end, then, a second later, the connections that have
 * not taken their answers. */
static void on_grace(struct lp_server *server)
{
    if (server->graced) {
        lp_links_cut(&server->links);
        return;
    }
    server->graced = true;
    lp_job_end_all(server);
    if (lp_heap_set(&server->timers, &server->grace, server->now_us + SECOND_US))
        lp_links_cut(&server->links);
}

static void on_timer(struct lp_server *server)
{
    server->timer_at_us = UINT64_MAX;
    for (struct lp_timer *timer; (timer = lp_heap_due(&server->timers, server->now_us));) {
        if (timer->kind == LP_TIMER_LINK)
            lp_links_timer(&server->links, timer, server->now_us);
        else if (timer->kind == LP_TIMER_SERVER_REQUEST)
            lp_request_timer(server, timer->owner);
        else if (timer->kind == LP_TIMER_SERVER_CALL)
            lp_job_timer(server, timer->owner);
        else if (timer->kind == LP_TIMER_SERVER_TASK)
            lp_task_free(server, timer->owner);
        else if (timer->kind == LP_TIMER_SERVER_GRACE)
            on_grace(server);
        else if (timer->kind == LP_TIMER_SERVER_SWEEP)
            lp_session_sweep(server);
        else
            lp_shared_timer(server, timer);
    }
}

/* GET streams end at once, calls in progress get their grace, idle connections close (cases
 * LIF-05).
 */
static void on_stop(struct lp_server *server)
{
    server->stopping = true;
    if (server->shared)
        lp_shared_stop(server);
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));) {
        struct lp_channel *ch = lp_channel_get(server, s->standalone);
        if (s->is_old_sse)
            lp_old_sse_settle(server, s->id);
        else if (ch)
            lp_channel_kill(server, ch);
    }
    lp_links_stop(&server->links);
    lp_listen_end_all(server);
    if (lp_heap_set(&server->timers, &server->grace, server->now_us + server->args.grace_us))
        on_grace(server);
}

void lp_server_settle(struct lp_server *server, uint64_t mono_us)
{
    server->now_us = server->links.now_us = mono_us;
    lp_state_run_ready(server);
    lp_session_end_doomed(server);
    if (server->shared)
        lp_store_flush(server->shared->store);
    lp_links_flush(&server->links);
    uint64_t next_us = lp_heap_next_us(&server->timers);
    if (next_us != server->timer_at_us) {
        struct lp_action timer = {.kind = LP_ACT_TIMER, .u.timer_at_us = next_us};
        server->timer_at_us = next_us;
        perform(server, &timer);
    }
    if (server->stopping && !server->stopped && server->links.client_count == 0) {
        server->stopped = true;
        perform(server, &(struct lp_action){.kind = LP_ACT_STOPPED});
    }
}

void lp_server_event(struct lp_server *server, const struct lp_event *event)
{
    server->now_us = server->links.now_us = event->mono_us;
    server->wall_ms = event->wall_ms;
    if (lp_shared_event(server, event)) {
        lp_server_settle(server, event->mono_us);
        return;
    }
    switch (event->kind) {
    case LP_EV_ACCEPTED:
        on_accepted(server, event);
        break;
    case LP_EV_CONNECTED:
    case LP_EV_CONNECT_FAILED:
    case LP_EV_READ:
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_DRAINED:
        lp_links_event(&server->links, event);
        break;
    case LP_EV_TIMER:
        on_timer(server);
        break;
    case LP_EV_STOP:
        on_stop(server);
        break;
    case LP_EV_MAIL:
    case LP_EV_STORE_REPLY:
    case LP_EV_LOOKED:
    case LP_EV_CONFIG:
        break;
    }
    lp_server_settle(server, event->mono_us);
}
