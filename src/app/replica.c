/* `limpet replica`: the sample MCP server of serve/sample.h on one loop. */
#include <stdio.h>
#include <stdlib.h>

#include "app/app.h"
#include "io/file.h"
#include "io/listener.h"
#include "io/log.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/tls_trust.h"
#include "mcp/keyring.h"
#include "serve/sample.h"
#include "wire/field.h"

enum { SESSIONS_MAX = 1000000, CONN_MAX = LP_SERVER_CONNECTIONS_MAX + 160, WHY_MAX = 1024 };
enum { VARIABLE_MAX = 256, STORE_WAIT_MAX = 16 };

struct settings {
    struct lp_span host;
    uint16_t port;
    const char *name;
    const char *path;
    const char *sse_path; /* NULL: nowhere */
    uint32_t sessions;
    enum lp_session_mode mode;
    enum lp_server_eras eras;
    enum lp_server_replay replay;
    struct lp_owner owner;
    struct lp_store_url store; /* of LP_SESSIONS_SHARED */
    uint32_t store_wait;
    struct lp_keyring keys; /* none: see lp_server_args */
};

/* What runs; everything NULL until it is there. */
struct replica {
    struct lp_tls_trust *trust; /* of a store behind TLS: the roots of the system */
    struct lp_loop *loop;
    struct lp_listener *listener;
    struct lp_sample *sample;
    struct lp_log *log;    /* on stderr: the store goes and comes */
    struct lp_shell shell; /* the loop's, but for the log */
};

/* The sample's lines are sentences: they get their time and level here. */
static int64_t on_perform(void *ctx, const struct lp_action *action)
{
    const struct replica *r = ctx;
    const struct lp_shell *shell = lp_loop_shell(r->loop);
    if (action->kind != LP_ACT_LOG)
        return shell->perform(shell->ctx, action);
    struct lp_span line = action->u.log.line;
    lp_log_say(r->log, action->u.log.level, "%.*s", (int)line.len, line.ptr);
    return 0;
}

static void on_event(void *sample, const struct lp_event *event)
{
    lp_sample_event(sample, event);
}

static int start_sample(struct replica *r, const struct settings *settings)
{
    r->shell = (struct lp_shell){.ctx = r, .perform = on_perform};
    struct lp_sample_args args = {.shell = &r->shell,
        .name = lp_span_str(settings->name),
        .path = lp_span_str(settings->path),
        .sse_path = lp_span_str(settings->sse_path),
        .mode = settings->mode,
        .eras = settings->eras,
        .owner = lp_owner_span(&settings->owner),
        .replay = settings->replay,
        .store = &settings->store,
        .store_wait = settings->store_wait,
        .origins = lp_span_str(getenv("LIMPET_ALLOWED_ORIGINS")),
        .session_max = settings->sessions,
        .keys = settings->keys.count ? &settings->keys : NULL};
    lp_io_random(args.seed, sizeof args.seed);
    int err = lp_sample_new(&args, &r->sample);
    if (!err)
        lp_loop_attach(r->loop, r->sample, on_event);
    return err;
}

static int listen_on(struct replica *r, const struct settings *settings)
{
    struct lp_listener_args args = {.host = settings->host, .port = settings->port};
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int err = lp_listener_open(&args, &r->loop, 1, &why, &r->listener);
    struct lp_span text = lp_buf_span(&why);
    int status = LP_EXIT_OK;
    if (err == LP_EEXISTS)
        status = lp_app_fail(LP_EXIT_FAILED,
            "%.*s; stop the other program or choose another --listen", (int)text.len, text.ptr);
    else if (err)
        status = lp_app_fail(LP_EXIT_FAILED, "%.*s", (int)text.len, text.ptr);
    lp_buf_release(&why);
    return status;
}

static int open_log(struct replica *r)
{
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int err = lp_log_open(&(struct lp_log_args){.line = lp_app_text_line}, &why, &r->log);
    lp_buf_release(&why);
    return err;
}

static int open_loop(struct replica *r, const struct settings *settings)
{
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int err = settings->store.is_tls
        ? lp_tls_trust_new(&(struct lp_tls_trust_args){0}, &why, &r->trust)
        : LP_OK;
    lp_buf_release(&why);
    if (err)
        return err;
    r->loop = lp_loop_new(&(struct lp_loop_args){.conn_max = CONN_MAX, .trust = r->trust});
    return r->loop ? LP_OK : LP_ENOMEM;
}

static int start(struct replica *r, const struct settings *settings)
{
    int err = open_loop(r, settings);
    if (!err)
        err = open_log(r);
    if (!err)
        err = start_sample(r, settings);
    if (!err)
        lp_loops_join(&r->loop, 1);
    if (!err)
        err = lp_signals_open(r->loop, &(struct lp_signals_args){0});
    if (!err)
        err = lp_loop_config(r->loop, NULL); /* the start signal: the store is looked for now */
    if (err)
        return lp_app_cannot_start(err);
    return listen_on(r, settings);
}

static int serve(const struct settings *settings)
{
    struct replica r = {0};
    (void)lp_process_setup();
    int status = start(&r, settings);
    if (status == LP_EXIT_OK) {
        printf("replica %s is listening on http://%s%s\n", settings->name,
            lp_listener_text(r.listener), settings->path);
        if (settings->sse_path)
            printf("  and for HTTP+SSE of 2024-11-05 on http://%s%s\n",
                lp_listener_text(r.listener), settings->sse_path);
        fflush(stdout);
        lp_loop_run(r.loop);
    }
    lp_sample_free(r.sample);
    lp_loop_free(r.loop);
    lp_tls_trust_free(r.trust);
    lp_listener_free(r.listener);
    lp_log_close(r.log);
    return status;
}

static bool is_path(struct lp_span path)
{
    bool is_fine = path.len && path.len <= LP_SERVER_PATH_MAX && path.ptr[0] == '/';
    for (size_t i = 0; i < path.len && is_fine; i++)
        is_fine = path.ptr[i] > ' ' && path.ptr[i] < 0x7F && path.ptr[i] != '?';
    return is_fine;
}

static int check_path(const char *flag, const char *path)
{
    if (is_path(lp_span_str(path)))
        return LP_EXIT_OK;
    return lp_app_fail(LP_EXIT_USAGE,
        "%s: \"%s\" is no path; it begins with / and has up to 256 characters", flag, path);
}

static int check(const struct settings *settings)
{
    struct lp_span name = lp_span_str(settings->name);
    if (!lp_field_is_token(name) || name.len > LP_SAMPLE_NAME_MAX)
        return lp_app_fail(LP_EXIT_USAGE,
            "--name: \"%s\" is no name; use up to 64 letters, digits, - . _", settings->name);
    int status = check_path("--path", settings->path);
    if (status == LP_EXIT_OK && settings->sse_path)
        status = check_path("--sse-path", settings->sse_path);
    return status;
}

static int read_mode(const char *session, enum lp_session_mode *ret_mode)
{
    static const char *const MODES[] = {[LP_SESSIONS_LOCAL] = "local",
        [LP_SESSIONS_STATELESS] = "stateless",
        [LP_SESSIONS_SHARED] = "shared"};
    for (unsigned i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(session, MODES[i]) != 0)
            continue;
        *ret_mode = (enum lp_session_mode)i;
        return LP_EXIT_OK;
    }
    return lp_app_fail(LP_EXIT_USAGE,
        "--session: there is no mode \"%s\"; say --session local, shared or stateless", session);
}

static int read_eras(const char *era, enum lp_server_eras *ret)
{
    bool is_legacy = strcmp(era, "legacy") == 0;
    bool is_modern = strcmp(era, "modern") == 0;
    if (!is_legacy && !is_modern && strcmp(era, "both") != 0)
        return lp_app_fail(
            LP_EXIT_USAGE, "--era: there is no \"%s\"; say both, legacy or modern", era);
    *ret = is_legacy ? LP_ERAS_LEGACY : is_modern ? LP_ERAS_MODERN : LP_ERAS_BOTH;
    return LP_EXIT_OK;
}

/* The owner id is the flag's, else the platform's, else, where chosen, made of the hostname; a bad
 * one of the platform is none ([S1]). */
static int read_owner(const char *owner, bool from_hostname, struct lp_owner *ret)
{
    struct lp_owner_sources sources = {.configured = lp_span_str(owner),
        .machine = lp_span_str(getenv("FLY_MACHINE_ID")),
        .hostname = lp_span_str(getenv("HOSTNAME")),
        .takes_hostname = from_hostname};
    if (lp_owner_choose(&sources, ret))
        return lp_app_fail(
            LP_EXIT_USAGE, "--owner: \"%s\" is no owner id; use 1 to 32 letters and digits", owner);
    if (ret->source == LP_OWNER_MACHINE_BAD)
        (void)lp_app_fail(LP_EXIT_OK,
            "FLY_MACHINE_ID is no owner id, so session ids are plain; "
            "say --owner with 1 to 32 letters and digits");
    return LP_EXIT_OK;
}

static int read_replay(const char *replay, struct settings *settings)
{
    bool is_strict = strcmp(replay, "fly-instance") == 0;
    if (!is_strict && strcmp(replay, "fly") != 0)
        return lp_app_fail(LP_EXIT_USAGE,
            "--replay: there is no way \"%s\"; say --replay fly or fly-instance", replay);
    if (!settings->owner.len)
        return lp_app_fail(LP_EXIT_USAGE, "--replay needs an owner id; say --owner as well");
    settings->replay = is_strict ? LP_SERVER_REPLAY_STRICT : LP_SERVER_REPLAY_PREFER;
    return LP_EXIT_OK;
}

/* The flags that are about sessions, as they were given. */
struct session_flags {
    const char *session;
    const char *era;
    const char *owner;
    const char *replay;
    const char *store;
    const char *store_wait;
    bool from_hostname;
};

static bool find_variable(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    (void)ctx;
    char text[VARIABLE_MAX];
    snprintf(text, sizeof text, "%.*s", (int)name.len, name.ptr);
    const char *value = getenv(text);
    if (value)
        *ret_value = lp_span_str(value);
    return value != NULL;
}

static int read_store(const struct session_flags *flags, struct settings *settings)
{
    struct lp_span why;
    bool is_shared = settings->mode == LP_SESSIONS_SHARED;
    if (!is_shared && (flags->store || flags->store_wait))
        return lp_app_fail(
            LP_EXIT_USAGE, "--store and --store-wait are for --session shared; say that as well");
    if (!is_shared)
        return LP_EXIT_OK;
    if (!flags->store)
        return lp_app_fail(
            LP_EXIT_USAGE, "--session shared needs a store; say --store redis://HOST:PORT");
    if (flags->owner || flags->from_hostname || flags->replay)
        return lp_app_fail(LP_EXIT_USAGE,
            "with --session shared a session is nobody's; leave --owner and --replay out");
    if (lp_store_url_parse(lp_span_str(flags->store), find_variable, NULL, &settings->store, &why))
        return lp_app_fail(LP_EXIT_USAGE, "--store: %.*s", (int)why.len, why.ptr);
    return flags->store_wait ? lp_options_number("--store-wait", flags->store_wait, STORE_WAIT_MAX,
                                   &settings->store_wait)
                             : LP_EXIT_OK;
}

static int read_session_flags(struct settings *settings, const struct session_flags *flags)
{
    int status = read_mode(flags->session, &settings->mode);
    if (status == LP_EXIT_OK)
        status = read_eras(flags->era, &settings->eras);
    bool has_sessions = settings->mode == LP_SESSIONS_LOCAL && settings->eras != LP_ERAS_MODERN;
    if (status == LP_EXIT_OK && settings->sse_path && !has_sessions)
        status = lp_app_fail(LP_EXIT_USAGE,
            "--sse-path: the streams of HTTP+SSE are sessions; it needs --session local, and "
            "another --era than modern");
    if (status == LP_EXIT_OK)
        status = read_store(flags, settings);
    if (status == LP_EXIT_OK && settings->mode != LP_SESSIONS_SHARED)
        status = read_owner(flags->owner, flags->from_hostname, &settings->owner);
    if (status == LP_EXIT_OK && flags->replay)
        status = read_replay(flags->replay, settings);
    return status;
}

static int run(int argc, const char *const *argv)
{
    struct settings settings = {.name = "replica", .path = "/mcp", .sessions = LP_SERVER_SESSIONS};
    const char *listen = "127.0.0.1:0";
    const char *sessions = NULL;
    const char *key_file = NULL;
    struct session_flags flags = {.session = "local", .era = "both"};
    bool was_made = false;
    const char *words[LP_WORDS_MAX + 1];
    const struct lp_option options[] = {{"--listen", &listen, NULL, NULL},
        {"--name", &settings.name, NULL, NULL}, {"--path", &settings.path, NULL, NULL},
        {"--sse-path", &settings.sse_path, NULL, NULL}, {"--sessions", &sessions, NULL, NULL},
        {"--session", &flags.session, NULL, NULL}, {"--owner", &flags.owner, NULL, NULL},
        {"--replay", &flags.replay, NULL, NULL}, {"--store", &flags.store, NULL, NULL},
        {"--store-wait", &flags.store_wait, NULL, NULL},
        {"--owner-from-hostname", NULL, &flags.from_hostname, NULL},
        {"--era", &flags.era, NULL, NULL}, {"--key-file", &key_file, NULL, NULL}};
    int status = lp_options_read(options, sizeof options / sizeof *options, argc, argv, words);
    if (status == LP_EXIT_OK && words[0])
        status = lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", words[0]);
    if (status == LP_EXIT_OK)
        status = lp_options_address("--listen", listen, &settings.host, &settings.port);
    if (status == LP_EXIT_OK && sessions)
        status = lp_options_number("--sessions", sessions, SESSIONS_MAX, &settings.sessions);
    if (status == LP_EXIT_OK)
        status = check(&settings);
    if (status == LP_EXIT_OK)
        status = read_session_flags(&settings, &flags);
    if (status == LP_EXIT_OK && key_file)
        status = lp_app_load_keys(key_file, true, &settings.keys, &was_made);
    if (status == LP_EXIT_OK)
        status = serve(&settings);
    lp_keyring_fini(&settings.keys);
    return status;
}

static int help(struct lp_buf *out)
{
    return lp_app_text(out,
        "Usage: limpet replica [FLAG...]\n"
        "\n"
        "A sample MCP server (Streamable HTTP, 2025-03-26 to 2025-11-25, and 2026-07-28)\n"
        "that keeps its sessions in its own memory: just the server that needs limpet\n"
        "gateway as soon as there are two of it; or in a store that all of them share.\n"
        "Its tools: echo, whoami (which replica answered), counter (kept in the session),\n"
        "slow (with progress), notify (on the GET stream), ask (the user).\n"
        "\n"
        "  --listen HOST:PORT  where to listen; port 0: any free one, printed\n"
        "                      (default 127.0.0.1:0)\n"
        "  --name NAME         what whoami answers (default replica)\n"
        "  --path PATH         where MCP is served (default /mcp)\n"
        "  --sse-path PATH     serve the old HTTP+SSE of 2024-11-05 there too; it may\n"
        "                      be the same path (default: not at all)\n"
        "  --sessions N        sessions kept at once; beyond that the one that was idle\n"
        "                      longest ends (default 256)\n"
        "  --session local     sessions live in this process (default)\n"
        "  --session stateless there are none: no id is given or asked for, so any\n"
        "                      replica can answer any request\n"
        "  --session shared    sessions live in the store, so any replica can answer any\n"
        "                      request, and they survive a restart\n"
        "  --store URL         a Redis (6.2 or newer) or Valkey: redis://HOST:PORT,\n"
        "                      rediss:// with TLS, redis+cluster://HOST:PORT,HOST:PORT;\n"
        "                      a password as redis://:${NAME}@HOST, from the environment\n"
        "  --store-wait N      what is written counts when N replicas of the store have\n"
        "                      it too (default 0)\n"
        "  --era WHICH         both (default), legacy (up to 2025-11-25, with sessions)\n"
        "                      or modern (2026-07-28, without)\n"
        "  --key-file FILE     seals what a client carries between question and answer in\n"
        "                      2026-07-28, so that any replica with it can go on; made\n"
        "                      when it is not there (default: a key of this process)\n"
        "  --owner ID          session ids are ID.<uuid> and tell whose they are; 1 to\n"
        "                      32 letters and digits (default FLY_MACHINE_ID, else none)\n"
        "  --owner-from-hostname  where there is no other, make one of HOSTNAME\n"
        "  --replay fly        a request of another owner's session is answered with\n"
        "                      fly-replay: prefer_instance=<owner>;timeout=5s, so that\n"
        "                      the platform brings it there; fly-instance:\n"
        "                      instance=<owner>\n"
        "\n"
        "Example:\n"
        "  limpet replica --listen 127.0.0.1:3001 --name A\n");
}

const struct lp_command lp_command_replica = {
    .name = "replica",
    .summary = "a sample MCP server, to try things out",
    .run = run,
    .help = help,
};
