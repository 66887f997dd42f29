/* The server's life and its options (limpet-server.h; serve/server.h). What the rooms assert of
 * their callers is checked here, because it is a stranger's program. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "io/file.h"
#include "io/loop.h"
#include "libserver/libserver.h"

_Static_assert((int)LIMPET_EUNSUPPORTED == LP_EUNSUPPORTED && (int)LIMPET_EIO == LP_EIO, "");
_Static_assert((int)LIMPET_EUNREACHABLE == LP_EUNREACHABLE, "");
_Static_assert((int)LIMPET_STATE_MAX == LP_SERVER_STATE_MAX, "");
_Static_assert((int)LIMPET_SESSIONS_LOCAL == LP_SESSIONS_LOCAL, "");
_Static_assert((int)LIMPET_SESSIONS_STATELESS == LP_SESSIONS_STATELESS, "");
_Static_assert((int)LIMPET_SESSIONS_SHARED == LP_SESSIONS_SHARED, "");
_Static_assert((int)LIMPET_ERAS_BOTH == LP_ERAS_BOTH, "");
_Static_assert((int)LIMPET_ERAS_LEGACY == LP_ERAS_LEGACY, "");
_Static_assert((int)LIMPET_ERAS_MODERN == LP_ERAS_MODERN, "");
_Static_assert((int)LIMPET_REPLAY_OFF == LP_SERVER_REPLAY_OFF, "");
_Static_assert((int)LIMPET_REPLAY_PREFER == LP_SERVER_REPLAY_PREFER, "");
_Static_assert((int)LIMPET_REPLAY_STRICT == LP_SERVER_REPLAY_STRICT, "");
_Static_assert((int)LIMPET_PRINCIPAL_BYTES == sizeof(struct lp_key), "");

enum { VARIABLE_MAX = 128 };

/* --- words --- */

int lp_seat_fail(struct limpet_server *server, int error, struct lp_span why)
{
    (void)snprintf(server->why, sizeof server->why, "%.*s", (int)why.len, why.ptr);
    return error;
}

const char *limpet_server_why(const struct limpet_server *server, int error)
{
    return server && server->why[0] ? server->why : lp_error_sentence(error);
}

/* --- options --- */

static bool is_path(struct lp_span path)
{
    bool is_fine = path.len && path.len <= LP_SERVER_PATH_MAX && path.ptr[0] == '/';
    for (size_t i = 0; i < path.len && is_fine; i++)
        is_fine = path.ptr[i] > ' ' && path.ptr[i] < 0x7F && path.ptr[i] != '?';
    return is_fine;
}

/* The configured id, else the platform's, else, where chosen, one made of the hostname. */
static int choose_owner(struct limpet_server *server, const struct limpet_server_options *options)
{
    struct lp_owner_sources sources = {.configured = lp_span_str(options->owner),
        .machine = lp_span_str(getenv("FLY_MACHINE_ID")),
        .hostname = lp_span_str(getenv("HOSTNAME")),
        .takes_hostname = options->owner_from_hostname};
    return lp_owner_choose(&sources, &server->owner) ? LIMPET_ESYNTAX : LIMPET_OK;
}

static bool are_fine(const struct limpet_server_options *options)
{
    return options->name && options->version &&
        (!options->path || is_path(lp_span_str(options->path))) &&
        (!options->sse_path || is_path(lp_span_str(options->sse_path)));
}

/* A bearer hook that speaks of bytes. */
static bool on_bearer(void *ctx, struct lp_span token, struct lp_key *ret_principal)
{
    struct limpet_server *server = ctx;
    unsigned char principal[LIMPET_PRINCIPAL_BYTES] = {0};
    if (!server->bearer(server->bearer_context, lp_lib_out(token), principal))
        return false;
    memcpy(ret_principal, principal, sizeof *ret_principal);
    return true;
}

static void tell_log(
    const struct limpet_server *server, enum lp_log_level level, struct lp_span sentence)
{
    static const enum limpet_level LEVELS[] = {[LP_LOG_ERROR] = LIMPET_LEVEL_ERROR,
        [LP_LOG_WARN] = LIMPET_LEVEL_WARNING,
        [LP_LOG_INFO] = LIMPET_LEVEL_INFO,
        [LP_LOG_DEBUG] = LIMPET_LEVEL_DEBUG};
    if (server->log)
        server->log(server->log_context, LEVELS[level], lp_lib_out(sentence));
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct limpet_server *server = ctx;
    if (action->kind == LP_ACT_LOG) {
        tell_log(server, action->u.log.level, action->u.log.line);
        return LP_OK;
    }
    if (!server->listens)
        return lp_seat_perform(server, action);
    const struct lp_shell *below = lp_loop_shell(server->loop);
    return below->perform(below->ctx, action);
}

static enum lp_server_replay replay_of(
    const struct limpet_server *server, enum limpet_replay replay)
{
    return server->owner.len ? (enum lp_server_replay)replay : LP_SERVER_REPLAY_OFF;
}

static bool find_variable(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    char text[VARIABLE_MAX];
    (void)ctx;
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    *ret_value = lp_span_str(getenv(text));
    return ret_value->ptr != NULL;
}

/* Where shared sessions live, and the loop to get there. */
static int open_store(struct limpet_server *server, const struct limpet_server_options *options,
    struct lp_store_url *ret)
{
    struct lp_span why;
    if (options->sessions != LIMPET_SESSIONS_SHARED)
        return LIMPET_OK;
    if (lp_store_url_parse(lp_span_str(options->store), find_variable, NULL, ret, &why)) {
        tell_log(server, LP_LOG_ERROR, why);
        return LIMPET_ESYNTAX;
    }
    return lp_seat_make_loop(server, ret->is_tls);
}

static int start(struct limpet_server *server, const struct limpet_server_options *options)
{
    uint32_t line;
    struct lp_store_url store;
    struct lp_keyring ring = {0};
    int err = open_store(server, options, &store);
    if (!err && options->keys)
        err = lp_keyring_parse(lp_span_str(options->keys), &ring, &line) ? LIMPET_ESYNTAX : 0;
    if (err)
        return err;
    const char *origins = options->origins ? options->origins : getenv("LIMPET_ALLOWED_ORIGINS");
    struct lp_server_args args = {.shell = &server->shell,
        .offer = &server->offer,
        .name = lp_span_str(options->name),
        .version = lp_span_str(options->version),
        .instructions = lp_span_str(options->instructions),
        .path = lp_span_str(server->path),
        .sse_path = lp_span_str(options->sse_path),
        .mode = (enum lp_session_mode)options->sessions,
        .eras = (enum lp_server_eras)options->eras,
        .owner = lp_owner_span(&server->owner),
        .replay = replay_of(server, options->replay),
        .store = &store,
        .keys = options->keys ? &ring : NULL,
        .store_wait = options->store_wait,
        .session_max = options->session_max,
        .session_max_each = options->session_max_each,
        .idle_us = options->idle_ms * 1000ull,
        .grace_us = options->grace_ms * 1000ull,
        .retry_ms = options->retry_ms,
        .origins = lp_span_str(origins),
        .bearer = options->bearer ? on_bearer : NULL,
        .bearer_ctx = server,
        .resource_metadata = lp_span_str(options->resource_metadata)};
    lp_io_random(args.seed, sizeof args.seed);
    err = lp_server_new(&args, &server->server);
    lp_keyring_fini(&ring);
    return err;
}

static int set_up(struct limpet_server *server, const struct limpet_server_options *options)
{
    server->log = options->log;
    server->log_context = options->log_context;
    server->bearer = options->bearer;
    server->bearer_context = options->bearer_context;
    server->owns_process = options->owns_process;
    server->offer.fresh_ms = options->fresh_ms;
    server->offer.is_public = options->is_public;
    server->offer.has_tasks = options->has_tasks;
    server->offer.lists_change = options->lists_change;
    server->offer.has_subscriptions = options->has_subscriptions;
    server->shell = (struct lp_shell){.ctx = server, .perform = perform};
    int err = choose_owner(server, options);
    if (!err)
        err = lp_seat_copy(server, options->path ? options->path : "/mcp", &server->path);
    return err ? err : start(server, options);
}

/* --- life --- */

static struct limpet_server *new_server(const struct limpet_alloc *alloc)
{
    struct lp_alloc inner = {0};
    if (alloc)
        inner = (struct lp_alloc){.resize = alloc->resize, .context = alloc->context};
    struct limpet_server *server = lp_resize(&inner, NULL, 0, sizeof *server);
    if (!server)
        return NULL;
    memset(server, 0, sizeof *server);
    server->alloc = inner;
    server->posts_end = &server->posts;
    server->alarm_us = UINT64_MAX;
    lp_list_init(&server->over);
    lp_slab_init(&server->conns, sizeof(struct lp_seat_conn), LP_SERVER_CONNECTIONS_MAX);
    if (pthread_mutex_init(&server->mutex, NULL)) {
        (void)lp_resize(&inner, server, sizeof *server, 0);
        return NULL;
    }
    return server;
}

int limpet_server_new(const struct limpet_alloc *alloc, const struct limpet_server_options *options,
    struct limpet_server **ret_server)
{
    if (!are_fine(options))
        return LIMPET_ESYNTAX;
    struct limpet_server *server = new_server(alloc);
    if (!server)
        return LIMPET_ENOMEM;
    int err = set_up(server, options);
    if (err) {
        limpet_server_free(server);
        return err;
    }
    *ret_server = server;
    return LIMPET_OK;
}

void limpet_server_free(struct limpet_server *server)
{
    if (!server)
        return;
    lp_server_free(server->server);
    lp_slab_fini(&server->conns);
    lp_seat_close(server);
    lp_seat_drop_posts(server);
    lp_seat_give_back(server);
    (void)pthread_mutex_destroy(&server->mutex);
    struct lp_alloc alloc = server->alloc;
    (void)lp_resize(&alloc, server, sizeof *server, 0);
}

void lp_seat_event(struct limpet_server *server, const struct lp_event *event)
{
    lp_server_event(server->server, event);
    if (event->kind != LP_EV_CONFIG)
        return;
    lp_seat_run_posts(server); /* CONFIG is the bell of post.c */
    lp_server_settle(server->server, event->mono_us);
}

/* --- questions --- */

void limpet_server_owner(const struct limpet_server *server, struct limpet_owner *ret_owner)
{
    const struct lp_owner *owner = &server->owner;
    *ret_owner =
        (struct limpet_owner){.source = (enum limpet_owner_source)owner->source, .len = owner->len};
    memcpy(ret_owner->text, owner->text, owner->len);
}

uint32_t limpet_server_session_count(const struct limpet_server *server)
{
    return lp_server_session_count(server->server);
}
