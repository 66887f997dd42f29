/* `limpet replica`: a sample MCP server on liblimpet-server, with its tools in replica_tools.c.
 * Here are its flags; the server itself is the library's, told by limpet-server.h alone. */
#include <limpet-server.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/replica_tools.h"
#include "io/log.h"

enum { NAME_MAX_BYTES = 64, PATH_MAX_BYTES = 256, SESSIONS_MAX = 1000000, STORE_WAIT_MAX = 16 };

struct replica {
    struct lp_replica_self self;
    const char *listen;
    struct limpet_server_options options;
    struct limpet_server *server;
    struct lp_log *log; /* on stderr: the store goes and comes */
};

/* --- running --- */

/* Before there is a server, this is why there will be none. */
static void on_log(void *context, enum limpet_level level, struct limpet_span sentence)
{
    const struct replica *r = context;
    bool is_bad = level >= LIMPET_LEVEL_WARNING;
    if (r->server)
        lp_log_say(
            r->log, is_bad ? LP_LOG_WARN : LP_LOG_INFO, "%.*s", (int)sentence.len, sentence.ptr);
    else
        (void)lp_app_fail(LP_EXIT_USAGE, "--store: %.*s", (int)sentence.len, sentence.ptr);
}

static int open_log(struct replica *r)
{
    struct lp_buf why;
    lp_buf_init(&why, 1024);
    int err = lp_log_open(&(struct lp_log_args){.line = lp_app_text_line}, &why, &r->log);
    lp_buf_release(&why);
    return err ? lp_app_cannot_start(err) : LP_EXIT_OK;
}

/* What is wrong with other options has been said before, and with the store by on_log. */
static int refuse_options(const struct limpet_server_options *options)
{
    return options->store
        ? LP_EXIT_USAGE
        : lp_app_fail(LP_EXIT_USAGE,
              "--owner: \"%s\" is no owner id; use 1 to 32 letters and digits", options->owner);
}

static int make_server(struct replica *r)
{
    int err = limpet_server_new(NULL, &r->options, &r->server);
    if (err == LIMPET_ESYNTAX)
        return refuse_options(&r->options);
    if (!err)
        err = lp_replica_add_tools(r->server, &r->self);
    return err ? lp_app_cannot_start(err) : LP_EXIT_OK;
}

/* A bad id of the platform is none ([S1]). */
static int check_owner(const struct replica *r)
{
    struct limpet_owner owner;
    limpet_server_owner(r->server, &owner);
    if (r->options.replay && !owner.len)
        return lp_app_fail(LP_EXIT_USAGE, "--replay needs an owner id; say --owner as well");
    if (owner.source == LIMPET_OWNER_MACHINE_BAD && r->options.sessions != LIMPET_SESSIONS_SHARED)
        (void)lp_app_fail(LP_EXIT_OK,
            "FLY_MACHINE_ID is no owner id, so session ids are plain; "
            "say --owner with 1 to 32 letters and digits");
    return LP_EXIT_OK;
}

static int listen_on(const struct replica *r)
{
    int err = limpet_server_listen(r->server, r->listen);
    const char *why = limpet_server_why(r->server, err);
    if (err == LIMPET_EEXISTS)
        return lp_app_fail(
            LP_EXIT_FAILED, "%s; stop the other program or choose another --listen", why);
    return err ? lp_app_fail(LP_EXIT_FAILED, "%s", why) : LP_EXIT_OK;
}

static int serve(const struct replica *r)
{
    const char *url = limpet_server_url(r->server);
    int origin_len = (int)(strlen(url) - strlen(r->options.path));
    printf("replica %s is listening on %s\n", r->self.name, url);
    if (r->options.sse_path)
        printf(
            "  and for HTTP+SSE of 2024-11-05 on %.*s%s\n", origin_len, url, r->options.sse_path);
    fflush(stdout);
    return limpet_server_run(r->server) ? LP_EXIT_FAILED : LP_EXIT_OK;
}

static int start_and_serve(struct replica *r)
{
    char instructions[128];
    (void)snprintf(instructions, sizeof instructions, "A sample server; this one is replica %s.",
        r->self.name);
    r->options.instructions = instructions;
    int status = open_log(r);
    if (status == LP_EXIT_OK)
        status = make_server(r);
    if (status == LP_EXIT_OK)
        status = check_owner(r);
    if (status == LP_EXIT_OK)
        status = listen_on(r);
    if (status == LP_EXIT_OK)
        status = serve(r);
    limpet_server_free(r->server);
    lp_log_close(r->log);
    return status;
}

/* --- flags --- */

static bool is_path(const char *path)
{
    size_t len = strlen(path);
    bool is_fine = path[0] == '/' && len <= PATH_MAX_BYTES;
    for (size_t i = 0; i < len && is_fine; i++)
        is_fine = path[i] > ' ' && path[i] < 0x7F && path[i] != '?';
    return is_fine;
}

static int check_path(const char *flag, const char *path)
{
    if (!path || is_path(path))
        return LP_EXIT_OK;
    return lp_app_fail(LP_EXIT_USAGE,
        "%s: \"%s\" is no path; it begins with / and has up to 256 characters", flag, path);
}

static int check(const struct replica *r)
{
    static const char NAME[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
    size_t len = strlen(r->self.name);
    if (!len || len > NAME_MAX_BYTES || strspn(r->self.name, NAME) != len)
        return lp_app_fail(LP_EXIT_USAGE,
            "--name: \"%s\" is no name; use up to 64 letters, digits, - . _", r->self.name);
    int status = check_path("--path", r->options.path);
    return status == LP_EXIT_OK ? check_path("--sse-path", r->options.sse_path) : status;
}

/* The flags that are words, as they were given. */
struct words {
    const char *session;
    const char *era;
    const char *replay;
    const char *sessions;
    const char *store_wait;
};

/* The place of a word among others; -1: it is none of them. */
static int place_of(const char *word, const char *const words[], int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static int read_words(const struct words *words, struct limpet_server_options *options)
{
    static const char *const SESSIONS[] = {"local", "stateless", "shared"};
    static const char *const ERAS[] = {"both", "legacy", "modern"};
    static const char *const REPLAYS[] = {"off", "fly", "fly-instance"};
    int sessions = place_of(words->session, SESSIONS, 3);
    int eras = place_of(words->era, ERAS, 3);
    int replay = place_of(words->replay, REPLAYS, 3);
    if (sessions < 0)
        return lp_app_fail(LP_EXIT_USAGE,
            "--session: there is no mode \"%s\"; say --session local, shared or stateless",
            words->session);
    if (eras < 0)
        return lp_app_fail(
            LP_EXIT_USAGE, "--era: there is no \"%s\"; say both, legacy or modern", words->era);
    if (replay < 0)
        return lp_app_fail(LP_EXIT_USAGE,
            "--replay: there is no way \"%s\"; say --replay fly or fly-instance", words->replay);
    options->sessions = (enum limpet_sessions)sessions;
    options->eras = (enum limpet_eras)eras;
    options->replay = (enum limpet_replay)replay;
    return LP_EXIT_OK;
}

static int read_numbers(const struct words *words, struct limpet_server_options *options)
{
    int status = LP_EXIT_OK;
    if (words->sessions)
        status =
            lp_options_number("--sessions", words->sessions, SESSIONS_MAX, &options->session_max);
    if (status == LP_EXIT_OK && words->store_wait)
        status = lp_options_number(
            "--store-wait", words->store_wait, STORE_WAIT_MAX, &options->store_wait);
    return status;
}

/* Whether what was said about sessions can be together. */
static int check_sessions(const struct limpet_server_options *options)
{
    bool is_shared = options->sessions == LIMPET_SESSIONS_SHARED;
    bool is_local =
        options->sessions == LIMPET_SESSIONS_LOCAL && options->eras != LIMPET_ERAS_MODERN;
    if (options->sse_path && !is_local)
        return lp_app_fail(LP_EXIT_USAGE,
            "--sse-path: the streams of HTTP+SSE are sessions; it needs --session local, and "
            "another --era than modern");
    if (!is_shared && (options->store || options->store_wait))
        return lp_app_fail(
            LP_EXIT_USAGE, "--store and --store-wait are for --session shared; say that as well");
    if (is_shared && !options->store)
        return lp_app_fail(
            LP_EXIT_USAGE, "--session shared needs a store; say --store redis://HOST:PORT");
    if (is_shared && (options->owner || options->owner_from_hostname || options->replay))
        return lp_app_fail(LP_EXIT_USAGE,
            "with --session shared a session is nobody's; leave --owner and --replay out");
    return LP_EXIT_OK;
}

static int read_flags(struct replica *r, const struct words *words)
{
    struct lp_span host;
    uint16_t port;
    int status = lp_options_address("--listen", r->listen, &host, &port);
    if (status == LP_EXIT_OK)
        status = check(r);
    if (status == LP_EXIT_OK)
        status = read_words(words, &r->options);
    if (status == LP_EXIT_OK)
        status = read_numbers(words, &r->options);
    return status == LP_EXIT_OK ? check_sessions(&r->options) : status;
}

static int run(int argc, const char *const *argv)
{
    struct replica r = {.self.name = "replica",
        .listen = "127.0.0.1:0",
        .options = {.name = "limpet-replica",
            .version = LP_VERSION,
            .path = "/mcp",
            .log = on_log,
            .log_context = &r,
            .lists_change = true,
            .has_subscriptions = true,
            .has_tasks = true,
            .owns_process = true}};
    struct limpet_server_options *o = &r.options;
    struct words words = {.session = "local", .era = "both", .replay = "off"};
    const char *key_file = NULL;
    const char *rest[LP_WORDS_MAX + 1];
    const struct lp_option options[] = {{"--listen", &r.listen, NULL, NULL},
        {"--name", &r.self.name, NULL, NULL}, {"--path", &o->path, NULL, NULL},
        {"--sse-path", &o->sse_path, NULL, NULL}, {"--sessions", &words.sessions, NULL, NULL},
        {"--session", &words.session, NULL, NULL}, {"--owner", &o->owner, NULL, NULL},
        {"--replay", &words.replay, NULL, NULL}, {"--store", &o->store, NULL, NULL},
        {"--store-wait", &words.store_wait, NULL, NULL},
        {"--owner-from-hostname", NULL, &o->owner_from_hostname, NULL},
        {"--era", &words.era, NULL, NULL}, {"--key-file", &key_file, NULL, NULL}};
    struct lp_buf keys = {0};
    int status = lp_options_read(options, sizeof options / sizeof *options, argc, argv, rest);
    if (status == LP_EXIT_OK && rest[0])
        status = lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", rest[0]);
    if (status == LP_EXIT_OK)
        status = read_flags(&r, &words);
    if (status == LP_EXIT_OK && key_file)
        status = lp_app_load_key_text(key_file, &keys);
    o->keys = keys.ptr;
    if (status == LP_EXIT_OK)
        status = start_and_serve(&r);
    lp_app_wipe(&keys);
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
        "slow (with progress), notify (on the GET stream; about=tools or resource: to\n"
        "those who listen), ask (the user). slow and ask are tasks when told task=true\n"
        "by a client that takes tasks. Its resource replica://notified changes by notify.\n"
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
