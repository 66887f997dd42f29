/* `limpet gateway`, and the running of `limpet sidecar`: keys, log, then one loop with one engine
 * per thread, the listeners on all loops and the admin listener on the first.
 *
 * It also stands between engine and loop for one thing: what an engine says becomes a line of the
 * event log here, with its time and level. Invariant: everything is torn down in the opposite
 * order, also when starting fails half way. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/admin.h"
#include "app/app.h"
#include "io/file.h"
#include "io/listener.h"
#include "io/log.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/tls_trust.h"

enum { THREADS_MAX = 64, WHY_MAX = 1024, SHOWN_REPLICAS = 8, DESCRIPTORS_SPARE = 64 };

struct gateway;

/* One thread. */
struct worker {
    struct gateway *gateway;
    struct lp_loop *loop;
    struct lp_shell shell; /* what the engine gets: the loop's, but for the log */
    const struct lp_shell *loop_shell;
};

struct gateway {
    struct lp_conf *conf;
    struct lp_keyring keyring;
    struct lp_log *log;
    struct lp_tls_trust *trust; /* NULL: no replica has https */
    lp_log_line_fn log_line;
    struct lp_admin *admin;
    uint32_t count;
    struct worker workers[THREADS_MAX];
    struct lp_loop *loops[THREADS_MAX];
    struct lp_engine *engines[THREADS_MAX];
    struct lp_listener **listeners; /* conf's listens, then the admin's */
    uint64_t start_us;
};

/* --- log --- */

static void say(struct gateway *g, enum lp_log_level level, const char *fmt, ...) LP_PRINTF(3, 4);
static void say(struct gateway *g, enum lp_log_level level, const char *fmt, ...)
{
    char text[WHY_MAX];
    va_list args;
    if ((int)level > g->conf->log_level)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lp_log_say(g->log, level, "%s", text);
}

/* The engine's sentence becomes a line; access lines are lines already. */
static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct worker *w = ctx;
    bool is_sentence = action->kind == LP_ACT_LOG && action->u.log.level != LP_LOG_ACCESS;
    if (!is_sentence)
        return w->loop_shell->perform(w->loop_shell->ctx, action);
    struct lp_buf line;
    lp_buf_init(&line, 4096);
    int64_t result =
        w->gateway->log_line(&line, lp_clock_wall_ms(), action->u.log.level, action->u.log.line);
    if (!result) {
        struct lp_action with_line = *action;
        with_line.u.log.line = lp_buf_span(&line);
        result = w->loop_shell->perform(w->loop_shell->ctx, &with_line);
    }
    lp_buf_release(&line);
    return result;
}

static int open_log(struct gateway *g)
{
    char path[4096];
    struct lp_buf why;
    struct lp_span file = g->conf->log_file;
    g->log_line = g->conf->log_format == LP_LOG_JSON ? lp_app_json_line : lp_app_text_line;
    snprintf(path, sizeof path, "%.*s", (int)file.len, file.ptr ? file.ptr : "");
    struct lp_log_args args = {.path = file.len ? path : NULL, .line = g->log_line};
    lp_buf_init(&why, WHY_MAX);
    int err = lp_log_open(&args, &why, &g->log);
    struct lp_span text = why.len ? lp_buf_span(&why) : lp_span_str(lp_error_sentence(err));
    int status = err ? lp_app_fail(LP_EXIT_REFUSED, "%.*s", (int)text.len, text.ptr) : LP_EXIT_OK;
    lp_buf_release(&why);
    return status;
}

/* --- engines and loops --- */

static void on_event(void *engine, const struct lp_event *event)
{
    lp_engine_event(engine, event);
}

static int start_worker(struct gateway *g, uint32_t number)
{
    struct worker *w = &g->workers[number];
    /* An engine may hold conf->conn_max clients, each with a replica's connection beside it. */
    struct lp_loop_args loop_args = {.number = number,
        .conn_max = 2 * g->conf->conn_max + DESCRIPTORS_SPARE,
        .log = g->log,
        .trust = g->trust};
    w->loop = g->loops[number] = lp_loop_new(&loop_args);
    if (!w->loop)
        return LP_ENOMEM;
    w->gateway = g;
    w->loop_shell = lp_loop_shell(w->loop);
    w->shell = (struct lp_shell){w, perform};
    struct lp_engine_args args = {.shell = &w->shell,
        .number = number,
        .count = g->count,
        .conf = g->conf,
        .keyring = &g->keyring,
        .mono_us = lp_clock_mono_us(),
        .wall_ms = lp_clock_wall_ms(),
        .admin_ops = number == 0 ? &lp_admin_ops : NULL,
        .admin_ctx = g->admin};
    lp_io_random(args.seed, sizeof args.seed);
    int err = lp_engine_new(&args, &g->engines[number]);
    if (!err)
        lp_loop_attach(w->loop, g->engines[number], on_event);
    return err;
}

static int start_workers(struct gateway *g)
{
    struct lp_admin_args args = {.conf = g->conf,
        .keyring = &g->keyring,
        .engines = g->engines,
        .engine_count = g->count,
        .log = g->log,
        .start_us = lp_clock_mono_us()};
    g->admin = lp_admin_new(&args);
    int err = g->admin ? LP_OK : LP_ENOMEM;
    for (uint32_t i = 0; i < g->count && !err; i++)
        err = start_worker(g, i);
    if (err)
        return lp_app_cannot_start(err);
    lp_loops_join(g->loops, g->count);
    return LP_EXIT_OK;
}

/* --- listeners --- */

static int listen_on(struct gateway *g, const struct lp_conf_address *address, uint32_t index)
{
    bool is_admin = index == g->conf->listen_count;
    struct lp_listener_args args = {.host = address->host,
        .port = address->port,
        .is_unix = address->is_unix,
        .is_admin = is_admin,
        .index = index};
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int err =
        lp_listener_open(&args, g->loops, is_admin ? 1 : g->count, &why, &g->listeners[index]);
    struct lp_span text = why.len ? lp_buf_span(&why) : lp_span_str(lp_error_sentence(err));
    int status = LP_EXIT_OK;
    if (err == LP_EEXISTS)
        status = lp_app_fail(LP_EXIT_FAILED, "%.*s; stop the other program or choose another %s",
            (int)text.len, text.ptr, is_admin ? "--admin" : "--listen");
    else if (err)
        status = lp_app_fail(LP_EXIT_FAILED, "%.*s", (int)text.len, text.ptr);
    lp_buf_release(&why);
    return status;
}

static int open_listeners(struct gateway *g)
{
    const struct lp_conf *conf = g->conf;
    int status = LP_EXIT_OK;
    g->listeners = calloc(conf->listen_count + 1, sizeof(struct lp_listener *));
    if (!g->listeners)
        return lp_app_fail(LP_EXIT_FAILED, "cannot start: out of memory");
    for (uint32_t i = 0; i < conf->listen_count && status == LP_EXIT_OK; i++)
        status = listen_on(g, &conf->listens[i], i);
    if (conf->has_admin && status == LP_EXIT_OK)
        status = listen_on(g, &conf->admin, conf->listen_count);
    return status;
}

/* --- what is said at start --- */

static void say_keys(struct gateway *g, const char *path, bool made)
{
    char ids[LP_KEYRING_MAX * 20] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < g->keyring.count; i++) {
        char id[9];
        lp_ring_key_id_hex(&g->keyring.keys[i], id);
        len += (size_t)snprintf(
            ids + len, sizeof ids - len, "%s%s%s", i ? ", " : "", id, i ? "" : " (seals)");
    }
    say(g, LP_LOG_INFO, "key file %s%s: %s %s", path, made ? ", made just now" : "",
        g->keyring.count == 1 ? "key" : "keys", ids);
}

/* The names of the replicas from one on. */
static int put_names(struct lp_buf *text, const struct lp_conf_server *server, uint32_t first)
{
    int err = LP_OK;
    uint32_t end = first + SHOWN_REPLICAS;
    for (uint32_t i = first; i < server->replica_count && i < end && !err; i++)
        err = lp_buf_printf(text, "%s%.*s", i > first ? ", " : ": ",
            (int)server->replicas[i].name.len, server->replicas[i].name.ptr);
    if (server->replica_count > end && !err)
        err = lp_buf_append(text, LP_SPAN(", and more"));
    return err;
}

static void say_server(struct gateway *g, const struct lp_conf_server *server)
{
    struct lp_buf text;
    lp_buf_init(&text, WHY_MAX);
    int err = lp_buf_printf(&text, "server %.*s at %.*s: %u %s", (int)server->name.len,
        server->name.ptr, (int)server->path.len, server->path.ptr, server->replica_count,
        server->replica_count == 1 ? "replica" : "replicas");
    if (!err)
        err = put_names(&text, server, 0);
    /* A line that was cut short still tells the most. */
    say(g, LP_LOG_INFO, "%.*s", (int)text.len, text.len ? lp_buf_span(&text).ptr : "");
    lp_buf_release(&text);
}

static void say_sidecar(struct gateway *g, const struct lp_conf *conf)
{
    const struct lp_conf_server *server = &conf->servers[0];
    uint32_t peers = server->replica_count - 1;
    struct lp_buf text;
    if (!conf->self.len) {
        say(g, LP_LOG_WARN,
            "no owner id: session ids stay as the server made them, and nothing is passed on");
        return;
    }
    lp_buf_init(&text, WHY_MAX);
    int err = lp_buf_printf(&text, "owner id %.*s, %s ids%s, %u %s", (int)conf->self.len,
        conf->self.ptr, conf->ids == LP_IDS_OWNER ? "readable" : "sealed",
        conf->replay == LP_REPLAY_OFF ? "" : ", the platform replays", peers,
        peers == 1 ? "peer" : "peers");
    if (!err)
        err = put_names(&text, server, 1);
    say(g, LP_LOG_INFO, "%.*s", (int)text.len, text.len ? lp_buf_span(&text).ptr : "");
    lp_buf_release(&text);
}

static void say_look(struct gateway *g, const struct lp_conf *conf)
{
    bool is_file = conf->peers_file.len > 0;
    struct lp_span where = is_file ? conf->peers_file : conf->peers_dns.address.host;
    if (lp_conf_finds_peers(conf))
        say(g, LP_LOG_INFO, "peers are looked up in %s %.*s every %llu ms",
            is_file ? "the file" : "the name", (int)where.len, where.ptr,
            (unsigned long long)conf->peers_every_ms);
}

static void say_admin(struct gateway *g, const struct lp_conf *conf)
{
    const char *page = conf->admin.is_loopback ? "/status" : "/ready";
    say(g, LP_LOG_INFO, "admin on %s%s%s", conf->admin.is_unix ? "" : "http://",
        lp_listener_text(g->listeners[conf->listen_count]), conf->admin.is_unix ? "" : page);
    if (!conf->admin.is_loopback)
        say(g, LP_LOG_WARN, "%s", LP_APP_ADMIN_IS_OPEN);
}

static void say_start(struct gateway *g, uint64_t descriptors)
{
    const struct lp_conf *conf = g->conf;
    uint64_t needed = 2ull * conf->conn_max + DESCRIPTORS_SPARE;
    for (uint32_t i = 0; i < conf->server_count && !conf->is_sidecar; i++)
        say_server(g, &conf->servers[i]);
    if (conf->is_sidecar) {
        say_sidecar(g, conf);
        say_look(g, conf);
    }
    if (descriptors && descriptors < needed)
        say(g, LP_LOG_WARN,
            "this process may open %llu files; %llu are needed for %u connections: raise "
            "the limit (ulimit -n) or lower connections_max",
            (unsigned long long)descriptors, (unsigned long long)needed, conf->conn_max);
    if (conf->has_admin)
        say_admin(g, conf);
    for (uint32_t i = 0; i < conf->listen_count; i++)
        say(g, LP_LOG_INFO, "listening on %s%s", conf->listens[i].is_unix ? "" : "http://",
            lp_listener_text(g->listeners[i]));
}

/* --- the life of the process --- */

static void on_stop(void *ctx, int signum)
{
    (void)signum;
    struct gateway *g = ctx;
    say(g, LP_LOG_INFO, "stopping: requests in progress have %llu s; a second signal ends at once",
        (unsigned long long)(g->conf->stop_ms / 1000));
}

static void on_hangup(void *ctx)
{
    struct gateway *g = ctx;
    lp_log_reopen(g->log);
    say(g, LP_LOG_WARN,
        "SIGHUP: the log file is opened again; the configuration is not read again in this "
        "release, "
        "restart for that (no session is lost)");
}

static int load_keys(struct gateway *g)
{
    char path[4096];
    bool made = false;
    if (lp_app_key_path(g->conf->key_file, path, sizeof path))
        return lp_app_fail(
            LP_EXIT_FAILED, "no home directory is known; name a key file with --key-file");
    if (lp_app_shares_key(g->conf) && access(path, F_OK))
        return lp_app_fail(LP_EXIT_REFUSED, LP_APP_NO_SHARED_KEY, path);
    int status = lp_app_load_keys(path, true, &g->keyring, &made);
    if (status == LP_EXIT_OK)
        say_keys(g, path, made);
    return status;
}

static int start(struct gateway *g)
{
    uint64_t descriptors = lp_process_setup();
    int status = open_log(g);
    if (status != LP_EXIT_OK)
        return status;
    g->count = g->conf->threads;
    LP_ASSERT(g->count >= 1 && g->count <= THREADS_MAX);
    say(g, LP_LOG_INFO, "limpet %s, %u %s", LP_VERSION, g->count,
        g->count == 1 ? "thread" : "threads");
    status = load_keys(g);
    if (status == LP_EXIT_OK)
        status = lp_app_load_trust(g->conf, &g->trust);
    if (status == LP_EXIT_OK)
        status = start_workers(g);
    /* Before anybody can connect: who sees the port open may send a signal right then. */
    struct lp_signals_args signals = {g, on_stop, on_hangup};
    if (status == LP_EXIT_OK && lp_signals_open(g->loops[0], &signals))
        status = lp_app_fail(LP_EXIT_FAILED, "cannot start: signals cannot be watched");
    if (status == LP_EXIT_OK)
        status = open_listeners(g);
    if (status == LP_EXIT_OK)
        say_start(g, descriptors);
    return status;
}

static void tear_down(struct gateway *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        lp_engine_free(g->engines[i]);
    for (uint32_t i = 0; i < g->count; i++)
        lp_loop_free(g->loops[i]);
    for (uint32_t i = 0; g->listeners && i <= g->conf->listen_count; i++)
        lp_listener_free(g->listeners[i]);
    free(g->listeners);
    lp_tls_trust_free(g->trust);
    lp_admin_free(g->admin);
    lp_log_close(g->log);
    lp_keyring_fini(&g->keyring);
    lp_conf_free(g->conf);
    free(g);
}

int lp_app_serve(struct lp_conf *conf)
{
    struct gateway *g = calloc(1, sizeof *g);
    if (!g) {
        lp_conf_free(conf);
        return lp_app_fail(LP_EXIT_FAILED, "out of memory");
    }
    g->conf = conf;
    int status = start(g);
    if (status == LP_EXIT_OK && lp_loops_run(g->loops, g->count))
        status = lp_app_fail(LP_EXIT_FAILED, "a thread could not be started");
    else if (status == LP_EXIT_OK)
        say(g, LP_LOG_INFO, "stopped");
    tear_down(g);
    return status;
}

static int run(int argc, const char *const *argv)
{
    struct lp_conf *conf;
    int status = lp_app_load_conf(LP_SEAT_GATEWAY, argc, argv, &conf);
    return status == LP_EXIT_OK ? lp_app_serve(conf) : status;
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet gateway [FLAG...] URL [URL...]\n"
        "       limpet gateway -c limpet.yaml\n"
        "\n"
        "Stands in front of the replicas of an MCP server and sends each request of a\n"
        "session to the replica that opened it. Clients and servers stay as they are;\n"
        "any number of gateways with the same key file and replicas may run.\n"
        "\n");
    if (!err)
        err = lp_conf_help(out);
    return err
        ? err
        : lp_app_text(out,
              "\n"
              "Signals: SIGTERM and SIGINT stop when the requests in progress are answered,\n"
              "a second one at once; SIGHUP opens the log file again.\n"
              "\n"
              "Examples:\n"
              "  limpet gateway http://10.0.0.1:3000/mcp http://10.0.0.2:3000/mcp\n"
              "  limpet gateway --listen 0.0.0.0:8080 --sse-path /sse \\\n"
              "      http://10.0.0.1:3000/mcp http://10.0.0.2:3000/mcp\n");
}

const struct lp_command lp_command_gateway = {
    .name = "gateway",
    .summary = "hold every session to its replica, in front of any number of them",
    .run = run,
    .help = help,
};
