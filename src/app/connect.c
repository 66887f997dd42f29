/* `limpet connect`: the stdio bridge of call/bridge.h on one loop. Its stdout belongs to the
 * messages; everything for people goes to stderr. */
#include "app/client_loop.h"
#include "app/terminal.h"
#include "call/bridge.h"

struct connect {
    struct lp_client_loop loop;
    struct lp_bridge *bridge;
    bool has_failed;
};

static void on_say(void *ctx, struct lp_span sentence)
{
    (void)ctx;
    fputs("limpet: ", stderr);
    lp_terminal_put(stderr, sentence);
    fputc('\n', stderr);
}

static void on_over(void *ctx, bool has_failed)
{
    struct connect *c = ctx;
    c->has_failed = has_failed;
    lp_client_loop_stop(&c->loop);
}

static void on_start(void *ctx)
{
    struct connect *c = ctx;
    int err = lp_bridge_start(c->bridge);
    if (!err)
        return;
    fprintf(stderr, "limpet: the standard input cannot be read: %s\n", lp_error_sentence(err));
    on_over(c, true);
}

static void on_stop(void *ctx)
{
    lp_bridge_stop(((struct connect *)ctx)->bridge);
}

static bool on_own(void *ctx, const struct lp_event *event)
{
    return lp_bridge_event(((struct connect *)ctx)->bridge, event);
}

static void on_settle(void *ctx)
{
    lp_bridge_settle(((struct connect *)ctx)->bridge);
}

static int bridge(struct connect *c, const struct lp_client_flags *flags)
{
    struct lp_bridge_args args = {.shell = lp_loop_shell(c->loop.loop),
        .fetcher = c->loop.fetcher,
        .jar = c->loop.jar_in_use,
        .timeout_ms = flags->timeout ? c->loop.target.timeout_ms : 0,
        .say = on_say,
        .over = on_over,
        .ctx = c};
    int err = lp_bridge_new(&args, &c->bridge);
    if (err)
        return lp_app_fail(LP_EXIT_FAILED, "cannot start: %s", lp_error_sentence(err));
    int status = lp_client_loop_run(&c->loop);
    lp_bridge_free(c->bridge);
    return c->has_failed ? LP_EXIT_FAILED : status;
}

static int run(int argc, const char *const *argv)
{
    struct lp_client_flags flags = {0};
    struct lp_option options[LP_CLIENT_OPTIONS];
    const char *words[LP_WORDS_MAX + 1];
    struct connect c = {
        .loop = {
            .on_start = on_start, .on_stop = on_stop, .on_own = on_own, .on_settle = on_settle}};
    lp_client_flags_options(&flags, options);
    int status = lp_options_read(options, LP_CLIENT_OPTIONS, argc, argv, words);
    if (status != LP_EXIT_OK)
        return status;
    if (!words[0] || words[1])
        return lp_app_fail(LP_EXIT_USAGE,
            "say which server: limpet connect URL, or limpet connect NAME for one of mcp.json");
    c.loop.ctx = &c;
    status = lp_client_loop_open(&flags, words[0], NULL, &c.loop);
    if (status == LP_EXIT_OK)
        status = bridge(&c, &flags);
    int close_status = lp_client_loop_close(&c.loop);
    return status == LP_EXIT_OK ? close_status : status;
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet connect [FLAG...] URL|NAME\n"
        "\n"
        "Lets a program that speaks MCP over stdio use a server that is reached over\n"
        "HTTP: name this command where that program wants the command of a server.\n"
        "It keeps cookies (with --cookie-jar), opens a lost session again, and falls\n"
        "back to the old SSE transport. A request is sent again only when it cannot\n"
        "have run, or when it is ping or a list; what may have run is reported.\n"
        "\n"
        "Only messages go to stdout. When stdin ends, requests in progress are\n"
        "answered and the session is deleted at the server.\n"
        "\n");
    if (!err)
        err = lp_app_text(out, lp_client_flags_help);
    return err ? err
               : lp_app_text(out,
                     "  (connect has no time limit for an answer unless --timeout is there)\n"
                     "\n"
                     "Example:\n"
                     "  limpet connect --cookie-jar https://example.com/mcp\n"
                     "\n"
                     "In the mcp.json of a host:\n"
                     "  {\"mcpServers\": {\"tools\": {\"command\": \"limpet\",\n"
                     "    \"args\": [\"connect\", \"--cookie-jar\", "
                     "\"https://example.com/mcp\"]}}}\n");
}

const struct lp_command lp_command_connect = {
    .name = "connect",
    .summary = "a stdio server for a host, in front of one that is reached by HTTP",
    .run = run,
    .help = help,
};
