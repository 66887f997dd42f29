/* `limpet probe`: the experiments of call/probe.h on one loop, their progress on a terminal, and
 * the verdict as a page or as JSON.
 *
 * Its exit statuses are its own: 0 healthy, 1 broken, 2 could not tell, 3 no MCP endpoint, 64
 * wrong usage. */
#include <stdio.h>
#include <unistd.h>

#include "app/app.h"
#include "app/client_loop.h"
#include "call/probe.h"
#include "call/probe_report.h"
#include "io/file.h"
#include "wire/json.h"

enum {
    OPTIONS = 7,
    REPORT_MAX = 1 << 20,
    REST_S = 130, /* beyond the idle limits of most balancers: 60, 100, 120 s */
    REST_MAX_S = 86400,
    LOOPBACKS = 48,
    LOOPBACK_MAX = 16,
    QUIET_US = 1000000, /* no progress is shown before */
};

enum { EXIT_COULD_NOT_TELL = 2, EXIT_NO_ENDPOINT = 3 };

struct settings {
    struct lp_client_flags client;
    struct lp_option_list sources;
    const char *sessions;
    const char *calls;
    const char *rest;
    const char *two_step; /* a tool's name, and its arguments as JSON after a blank */
    bool is_long;
    bool as_json;
    const char *url;
    uint32_t session_count;
    uint32_t call_count;
    uint32_t rest_s;
};

struct run {
    const struct settings *settings;
    struct lp_client_loop loop;
    struct lp_probe *probe;
    char loopbacks[LOOPBACKS][LOOPBACK_MAX];
    uint64_t started_us;
    int error; /* it could not start */
    bool shows_progress;
    bool has_shown;
};

static struct lp_span tool_of(const struct settings *s)
{
    struct lp_span text = lp_span_str(s->two_step);
    return lp_span(text.ptr, lp_span_find(text, ' '));
}

/* --- progress --- */

static void on_progress(void *ctx, const char *what, uint32_t done, uint32_t all)
{
    struct run *r = ctx;
    if (!r->shows_progress || lp_clock_mono_us() - r->started_us < QUIET_US)
        return;
    r->has_shown = true;
    if (all > 1)
        fprintf(stderr, "\r\033[K%s: %u of %u", what, done, all);
    else
        fprintf(stderr, "\r\033[K%s", what);
    fflush(stderr);
}

static void wipe_progress(const struct run *r)
{
    if (r->has_shown)
        fputs("\r\033[K", stderr);
}

/* --- what it runs on --- */

/* Addresses to come from: those that were named, or on this very machine any of 127.0.0.0/8. */
static void choose_sources(struct run *r, struct lp_probe_args *args)
{
    const struct lp_option_list *named = &r->settings->sources;
    for (uint32_t i = 0; i < named->count && i < LP_PROBE_SOURCES_MAX; i++)
        args->sources[args->source_count++] = lp_span_str(named->values[i]);
    if (named->count || !lp_uri_is_loopback(r->loop.target.uri.host))
        return;
    for (uint32_t i = 0; i < LOOPBACKS; i++) {
        snprintf(r->loopbacks[i], LOOPBACK_MAX, "127.0.0.%u", i + 2);
        args->sources[args->source_count++] = lp_span_str(r->loopbacks[i]);
    }
}

static void on_over(void *ctx)
{
    struct run *r = ctx;
    lp_client_loop_stop(&r->loop);
}

static void on_start(void *ctx)
{
    struct run *r = ctx;
    const struct settings *s = r->settings;
    struct lp_probe_args args = {.fetcher = r->loop.fetcher,
        .sessions = s->session_count,
        .calls = s->call_count,
        .rest_s = s->rest_s,
        .step_tool = tool_of(s),
        .step_arguments = lp_span_from(lp_span_str(s->two_step), tool_of(s).len),
        .has_jar = r->loop.target.cookie_jar,
        .progress = on_progress,
        .over = on_over,
        .ctx = r};
    lp_io_random(args.seed, sizeof args.seed);
    choose_sources(r, &args);
    r->error = lp_probe_new(&args, &r->probe);
    if (r->error)
        lp_client_loop_stop(&r->loop);
    else
        lp_probe_start(r->probe);
}

/* The first SIGINT: what there is so far is told. */
static void on_stop(void *ctx)
{
    struct run *r = ctx;
    if (r->probe)
        lp_probe_hurry(r->probe);
}

/* --- what it says --- */

static int say(const struct run *r)
{
    static const int STATUSES[] = {[LP_JUDGE_HEALTHY] = LP_EXIT_OK,
        [LP_JUDGE_BROKEN] = LP_EXIT_FAILED,
        [LP_JUDGE_UNKNOWN] = EXIT_COULD_NOT_TELL,
        [LP_JUDGE_NO_ENDPOINT] = EXIT_NO_ENDPOINT};
    struct lp_verdict verdict;
    struct lp_buf out;
    struct lp_span url = r->loop.target.url;
    url.len = lp_span_find(url, '?'); /* a query may hold a secret */
    struct lp_report report = {url, lp_probe_seen(r->probe), &verdict};
    lp_verdict_judge(report.seen, &verdict);
    lp_buf_init(&out, REPORT_MAX);
    int err = r->settings->as_json ? lp_report_json(&report, &out) : lp_report_text(&report, &out);
    if (!err)
        lp_app_print(&out);
    lp_buf_release(&out);
    if (err)
        return lp_app_fail((enum lp_exit)EXIT_COULD_NOT_TELL, "%s", lp_error_sentence(err));
    return STATUSES[verdict.judgement];
}

static int probe(struct run *r)
{
    r->loop.ctx = r;
    r->loop.on_start = on_start;
    r->loop.on_stop = on_stop;
    r->started_us = lp_clock_mono_us();
    r->shows_progress = isatty(STDERR_FILENO);
    int status = lp_client_loop_open(&r->settings->client, r->settings->url, NULL, &r->loop);
    if (status == LP_EXIT_OK && r->settings->rest_s)
        fprintf(stderr,
            "limpet: this takes %u seconds: quiet streams and idle sessions are watched\n",
            r->settings->rest_s + 10);
    if (status == LP_EXIT_OK)
        status = lp_client_loop_run(&r->loop);
    wipe_progress(r);
    if (status == LP_EXIT_OK && r->error)
        status = lp_app_fail((enum lp_exit)EXIT_COULD_NOT_TELL, "the probe cannot start: %s",
            lp_error_sentence(r->error));
    if (status == LP_EXIT_FAILED)
        return EXIT_COULD_NOT_TELL;
    return status == LP_EXIT_OK ? say(r) : status;
}

/* --- the command line --- */

static int read_number(const char *flag, const char *text, uint32_t max, uint32_t *number)
{
    return text ? lp_options_number(flag, text, max, number) : LP_EXIT_OK;
}

static int check_two_step(const struct settings *s)
{
    struct lp_span tool = tool_of(s);
    struct lp_span json = lp_span_from(lp_span_str(s->two_step), tool.len);
    bool is_name = tool.len > 0;
    for (size_t i = 0; i < tool.len; i++)
        is_name &= tool.ptr[i] > ' ' && tool.ptr[i] <= '~';
    if (s->two_step && (!is_name || (json.len && !lp_json_is_object(json))))
        return lp_app_fail(LP_EXIT_USAGE,
            "--two-step takes a tool's name, and after a blank its arguments as a JSON object, for "
            "example --two-step 'ask {\"about\": \"x\"}'");
    return LP_EXIT_OK;
}

static int read_settings(struct settings *s, int argc, const char *const *argv)
{
    const char *words[LP_WORDS_MAX + 1];
    struct lp_option options[LP_CLIENT_OPTIONS + OPTIONS] = {
        {.name = "--json", .is_set = &s->as_json},
        {.name = "--long", .is_set = &s->is_long},
        {.name = "--rest", .value = &s->rest},
        {.name = "--sessions", .value = &s->sessions},
        {.name = "--calls", .value = &s->calls},
        {.name = "--source", .list = &s->sources},
        {.name = "--two-step", .value = &s->two_step},
    };
    lp_client_flags_options(&s->client, options + OPTIONS);
    int status = lp_options_read(options, LP_CLIENT_OPTIONS + OPTIONS, argc, argv, words);
    if (status == LP_EXIT_OK && !words[0])
        status = lp_app_fail(LP_EXIT_USAGE,
            "name the server's URL, for example: limpet probe http://127.0.0.1:3000/mcp");
    if (status == LP_EXIT_OK && words[1])
        status = lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", words[1]);
    if (status == LP_EXIT_OK)
        status = read_number("--sessions", s->sessions, LP_PROBE_SESSIONS_MAX, &s->session_count);
    if (status == LP_EXIT_OK)
        status = read_number("--calls", s->calls, LP_SEEN_CALLS_MAX, &s->call_count);
    s->rest_s = s->is_long ? REST_S : 0;
    if (status == LP_EXIT_OK)
        status = read_number("--rest", s->rest, REST_MAX_S, &s->rest_s);
    if (status == LP_EXIT_OK)
        status = check_two_step(s);
    s->url = words[0];
    return status;
}

static int run(int argc, const char *const *argv)
{
    struct settings settings = {.session_count = LP_PROBE_SESSIONS, .call_count = LP_PROBE_CALLS};
    int status = read_settings(&settings, argc, argv);
    if (status != LP_EXIT_OK)
        return status;
    static struct run r;
    r = (struct run){.settings = &settings};
    status = probe(&r);
    lp_probe_free(r.probe);
    int closed = lp_client_loop_close(&r.loop);
    return status == LP_EXIT_OK ? closed : status;
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet probe [FLAG...] URL|NAME\n"
        "\n"
        "Finds out from outside whether a deployment holds MCP sessions: opens sessions,\n"
        "sends calls over kept and new connections, with and without cookies, and says\n"
        "which affinity works, how many replicas there are, what is wrong and what mends\n"
        "it. It takes less than 10 seconds. It calls no tool but one that you name, and\n"
        "deletes the sessions that it opened.\n"
        "\n"
        "Flags:\n"
        "  --json                  one JSON object instead of a page\n"
        "  --long                  watch quiet streams and idle sessions for 130 seconds\n"
        "  --rest SECONDS          the same, for so long\n"
        "  --sessions N            sessions to open (default 20)\n"
        "  --calls N               calls on each (default 20)\n"
        "  --source ADDRESS        call from this address of the machine too; may be\n"
        "                          given several times (a server on 127.0.0.1 is called\n"
        "                          from 127.0.0.2 and so on without it)\n"
        "  --two-step TOOL         call this tool, which asks for an input, and decline;\n"
        "                          whether any replica goes on (2026-07-28); arguments as\n"
        "                          JSON after a blank: 'TOOL {\"key\": 1}'\n");
    if (!err)
        err = lp_app_text(out, lp_client_flags_help);
    if (!err)
        err = lp_app_text(out,
            "\n"
            "Exit status: 0 healthy, 1 broken, 2 could not tell, 3 no MCP endpoint, 64\n"
            "wrong usage.\n"
            "\n"
            "Example:\n"
            "  limpet probe https://mcp.example.com/mcp\n");
    return err;
}

const struct lp_command lp_command_probe = {
    .name = "probe",
    .summary = "find out whether a deployment holds its sessions",
    .run = run,
    .help = help,
};
