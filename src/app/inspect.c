/* `limpet inspect`: one session with a server, by hand or from a script.
 *
 * One command and out, or with -i lines of commands until the input ends. The session is opened
 * first and ended last; a lost session is opened again for the next line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/inspect_priv.h"
#include "io/file.h"
#include "seam/event.h"

enum { OWN_OPTIONS = 4, WORDS_BYTES_MAX = 17 << 20 };

static void end(struct lp_inspect *in)
{
    if (in->is_ending)
        return;
    in->is_ending = true;
    lp_client_close(in->client);
}

/* --- the session --- */

static void on_opened(void *ctx, const struct lp_client_info *info)
{
    struct lp_inspect *in = ctx;
    if (in->is_interactive && !in->is_reopening) {
        lp_inspect_say("connected: protocol %.*s; type help for the commands",
            (int)info->version.len, info->version.ptr);
        lp_inspect_next_line(in);
        return;
    }
    in->is_reopening = false;
    lp_inspect_do(in, in->is_interactive ? &in->now : &in->first);
}

static void on_open_failed(void *ctx, const struct lp_client_failure *why)
{
    struct lp_inspect *in = ctx;
    bool was_reopening = in->is_reopening;
    in->is_reopening = false;
    if (in->is_ending)
        return;
    lp_inspect_show_failure(in, why);
    if (was_reopening)
        lp_inspect_done(in);
    else
        end(in);
}

static void on_notification(void *ctx, struct lp_span method, struct lp_span message)
{
    (void)method;
    lp_inspect_show_notification(ctx, message);
}

static void on_asked(void *ctx, lp_id asked, struct lp_span method, struct lp_span params)
{
    lp_inspect_asked(ctx, asked, method, params);
}

static void on_asked_cancelled(void *ctx, lp_id asked)
{
    lp_inspect_asked_over(ctx, asked);
}

static void on_lost(void *ctx, const struct lp_client_failure *why)
{
    struct lp_inspect *in = ctx;
    (void)why;
    if (in->is_interactive)
        lp_inspect_say("the session is lost; the next command opens a new one");
    else if (!in->is_busy)
        lp_inspect_show_failure(in, why);
}

static void on_closed(void *ctx)
{
    lp_client_loop_stop(&((struct lp_inspect *)ctx)->loop);
}

static void on_note(void *ctx, struct lp_span sentence)
{
    (void)ctx;
    lp_inspect_say("note: %.*s", (int)sentence.len, sentence.ptr);
}

static const struct lp_client_ops CLIENT_OPS = {
    .opened = on_opened,
    .failed = on_open_failed,
    .notification = on_notification,
    .asked = on_asked,
    .asked_cancelled = on_asked_cancelled,
    .lost = on_lost,
    .closed = on_closed,
    .note = on_note,
};

void lp_inspect_done(struct lp_inspect *in)
{
    in->is_busy = false;
    in->call = 0;
    if (in->is_interactive && !in->is_ending)
        lp_inspect_next_line(in);
    else
        end(in);
}

/* --- lines --- */

static void prompt(const struct lp_inspect *in)
{
    (void)in;
    if (isatty(STDIN_FILENO)) {
        fputs("> ", stderr);
        fflush(stderr);
    }
}

static void help_lines(void)
{
    fputs("info                  the server, protocol and capabilities\n"
          "ping\n"
          "tools, resources, templates, prompts\n"
          "call NAME [JSON]      a tool\n"
          "read URI              a resource\n"
          "prompt NAME [JSON]    a prompt\n"
          "request METHOD [JSON] any request\n"
          "log on|off            the network log on this screen\n"
          "quit\n",
        stderr);
}

static struct lp_span take_word(struct lp_span *rest)
{
    struct lp_span text = lp_span_trim(*rest);
    size_t len = 0;
    while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\t')
        len++;
    *rest = lp_span_trim(lp_span_from(text, len));
    return lp_span(text.ptr, len);
}

static void run_words(struct lp_inspect *in, struct lp_span line)
{
    struct lp_span rest;
    struct lp_inspect_words words;
    lp_buf_clear(&in->words);
    if (lp_buf_append(&in->words, line)) {
        lp_inspect_say("the line is too long");
        return;
    }
    rest = lp_buf_span(&in->words);
    words.word = take_word(&rest);
    words.name = take_word(&rest);
    words.json = rest;
    const char *wrong = lp_inspect_check(&words);
    if (wrong) {
        in->status = LP_EXIT_FAILED;
        lp_inspect_say("%s", wrong);
        return;
    }
    if (lp_client_state(in->client) == LP_CLIENT_OPEN) {
        lp_inspect_do(in, &words);
        return;
    }
    in->now = words;
    in->is_busy = in->is_reopening = true;
    lp_client_open(in->client);
}

void lp_inspect_line(struct lp_inspect *in, struct lp_span line)
{
    line = lp_span_trim(line);
    if (lp_span_eq(line, LP_SPAN("quit")) || lp_span_eq(line, LP_SPAN("exit")))
        end(in);
    else if (lp_span_eq(line, LP_SPAN("help")))
        help_lines();
    else if (lp_span_eq(line, LP_SPAN("log on")) || lp_span_eq(line, LP_SPAN("log off")))
        in->shows_log = line.len == 6;
    else if (line.len)
        run_words(in, line);
}

/* The first line of the input, taken off it. False: there is none yet. */
static bool take_line(struct lp_inspect *in, struct lp_buf *line)
{
    struct lp_span text = lp_buf_span(&in->lines);
    size_t len = lp_span_find(text, '\n');
    bool is_last = len == text.len;
    if (is_last && (!in->input_has_ended || !text.len))
        return false;
    struct lp_span one = lp_span(text.ptr, len);
    if (lp_span_ends(one, LP_SPAN("\r")))
        one.len--;
    lp_buf_clear(line);
    int err = lp_buf_append(line, one);
    lp_buf_consume(&in->lines, len + !is_last);
    return !err;
}

/* Lines are taken as long as somebody wants one: a question first, then the next command. */
void lp_inspect_next_line(struct lp_inspect *in)
{
    struct lp_buf line;
    if (in->is_taking || in->is_ending || lp_client_state(in->client) == LP_CLIENT_OPENING)
        return;
    in->is_taking = true;
    lp_buf_init(&line, LP_INSPECT_LINE_MAX);
    while (!in->is_ending && (lp_inspect_is_asking(in) || (in->is_interactive && !in->is_busy)) &&
        lp_client_state(in->client) != LP_CLIENT_OPENING && take_line(in, &line)) {
        if (lp_inspect_is_asking(in))
            lp_inspect_answer_line(in, lp_buf_span(&line));
        else
            lp_inspect_line(in, lp_buf_span(&line));
    }
    lp_buf_release(&line);
    in->is_taking = false;
    if (lp_inspect_is_asking(in) && in->input_has_ended && !in->is_ending) {
        lp_inspect_no_more_lines(in);
        return;
    }
    if (in->is_ending || !in->is_interactive || in->is_busy || lp_inspect_is_asking(in))
        return;
    if (in->input_has_ended)
        end(in);
    else
        prompt(in);
}

bool lp_inspect_open_input(struct lp_inspect *in)
{
    const struct lp_shell *shell = lp_loop_shell(in->loop.loop);
    struct lp_action connect = {.kind = LP_ACT_CONNECT, .u.connect = {.kind = LP_EP_STDIO}};
    if (in->input)
        return true;
    int64_t conn = shell->perform(shell->ctx, &connect);
    in->input = conn > 0 ? (lp_id)conn : 0;
    return in->input != 0;
}

static void on_input_end(struct lp_inspect *in)
{
    in->input_has_ended = true;
    lp_inspect_next_line(in); /* what is left without a line end */
}

static bool on_own(void *ctx, const struct lp_event *event)
{
    struct lp_inspect *in = ctx;
    if (!in->input || event->conn != in->input)
        return false;
    switch (event->kind) {
    case LP_EV_READ:
        if (lp_buf_append(&in->lines, event->u.bytes)) {
            lp_inspect_say("limpet: the input is too long");
            on_input_end(in);
        } else {
            lp_inspect_next_line(in);
        }
        return true;
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_CONNECT_FAILED:
        on_input_end(in);
        return true;
    case LP_EV_CONNECTED:
        return true;
    default:
        return false;
    }
}

/* --- start and stop --- */

static void on_live(void *ctx, struct lp_span line)
{
    const struct lp_inspect *in = ctx;
    if (in->shows_log)
        lp_inspect_say("%.*s", (int)line.len, line.ptr);
}

static void on_start(void *ctx)
{
    struct lp_inspect *in = ctx;
    if (in->is_interactive && !lp_inspect_open_input(in)) {
        in->status = lp_app_fail(LP_EXIT_FAILED, "standard input cannot be read");
        lp_client_loop_stop(&in->loop);
        return;
    }
    lp_client_open(in->client);
}

static void on_stop(void *ctx)
{
    struct lp_inspect *in = ctx;
    in->status = LP_EXIT_FAILED;
    end(in);
}

/* A command during which the server may say something on the session's stream. */
static bool takes_json(const struct lp_inspect_words *words)
{
    const struct lp_inspect_verb *verb = lp_inspect_find(words->word);
    return verb && verb->takes_json;
}

static int open_client(struct lp_inspect *in)
{
    struct lp_buf capabilities;
    lp_buf_init(&capabilities, 1024);
    int err = lp_inspect_capabilities(in, &capabilities);
    struct lp_client_args args = {.fetcher = in->loop.fetcher,
        .jar = in->loop.jar_in_use,
        .capabilities = lp_buf_span(&capabilities),
        .log_level = LP_SPAN("\"info\""), /* a server of sessions says what it says by itself */
        .stream_first = in->is_interactive || takes_json(&in->first),
        .ops = &CLIENT_OPS,
        .ctx = in};
    if (!err)
        err = lp_client_new(&args, &in->client);
    lp_buf_release(&capabilities);
    return err ? lp_app_fail(LP_EXIT_FAILED, "cannot start: %s", lp_error_sentence(err))
               : LP_EXIT_OK;
}

static int read_answers(struct lp_inspect *in, const char *path)
{
    struct lp_buf text;
    struct lp_buf why;
    int status = LP_EXIT_OK;
    if (!path)
        return status;
    lp_buf_init(&text, LP_ANSWERS_BYTES_MAX);
    lp_buf_init(&why, 4096);
    int err = lp_file_read(path, &text, &why);
    struct lp_span sentence = lp_buf_span(&why);
    if (err)
        status = lp_app_fail(LP_EXIT_USAGE, "--answer: %.*s", (int)sentence.len, sentence.ptr);
    else if (lp_answers_init(&in->answers, lp_buf_span(&text)))
        status = lp_app_fail(LP_EXIT_USAGE,
            "--answer: %s is no JSON object with a result for each method, for example "
            "{\"elicitation/create\": {\"name\": \"Ada\"}}",
            path);
    struct lp_span odd =
        err || status != LP_EXIT_OK ? LP_SPAN("") : lp_answers_unknown(&in->answers);
    if (odd.len)
        status = lp_app_fail(LP_EXIT_USAGE,
            "--answer: %s has an answer for %.*s, which no server asks; the methods are "
            "elicitation/create, sampling/createMessage and roots/list",
            path, (int)odd.len, odd.ptr);
    in->has_answers = true;
    lp_buf_release(&text);
    lp_buf_release(&why);
    return status;
}

static void init(struct lp_inspect *in)
{
    lp_buf_init(&in->words, WORDS_BYTES_MAX);
    lp_buf_init(&in->pages, LP_INSPECT_OUT_MAX);
    lp_buf_init(&in->lines, WORDS_BYTES_MAX);
    lp_buf_init(&in->ask_content, LP_INSPECT_LINE_MAX);
    in->loop.ctx = in;
    in->loop.on_start = on_start;
    in->loop.on_stop = on_stop;
    in->loop.on_own = on_own;
    in->shows_log = true;
}

static int fini(struct lp_inspect *in, int status)
{
    lp_client_free(in->client);
    int closed = lp_client_loop_close(&in->loop);
    while (in->ask_count)
        lp_buf_release(&in->asks[--in->ask_count].params);
    lp_answers_fini(&in->answers);
    lp_buf_release(&in->words);
    lp_buf_release(&in->pages);
    lp_buf_release(&in->lines);
    lp_buf_release(&in->ask_content);
    return status == LP_EXIT_OK ? closed : status;
}

static int go(struct lp_inspect *in, const char *where, const char *answer)
{
    int status = read_answers(in, answer);
    if (status == LP_EXIT_OK)
        status =
            lp_client_loop_open(&in->flags, where, in->is_interactive ? on_live : NULL, &in->loop);
    if (status == LP_EXIT_OK)
        status = open_client(in);
    if (status == LP_EXIT_OK)
        status = lp_client_loop_run(&in->loop);
    return status == LP_EXIT_OK ? in->status : status;
}

static int check_words(struct lp_inspect *in, const char *const *words)
{
    if (!words[0])
        return lp_app_fail(LP_EXIT_USAGE,
            "name a server: limpet inspect URL tools; limpet inspect --help tells the rest");
    if (in->is_interactive && words[1])
        return lp_app_fail(LP_EXIT_USAGE, "with -i the commands are read from standard input");
    if (in->is_interactive)
        return LP_EXIT_OK;
    in->first.word = lp_span_str(words[1] ? words[1] : "info");
    if (words[1] && words[2]) {
        in->first.name = lp_span_str(words[2]);
        in->first.json = lp_span_str(words[3]);
    }
    const char *wrong = lp_inspect_check(&in->first);
    return wrong ? lp_app_fail(LP_EXIT_USAGE, "%s: %s", words[1], wrong) : LP_EXIT_OK;
}

static int run(int argc, const char *const *argv)
{
    static struct lp_inspect in; /* large, and there is one */
    const char *answer = NULL;
    const char *words[LP_WORDS_MAX + 1];
    struct lp_option options[LP_CLIENT_OPTIONS + OWN_OPTIONS] = {
        {.name = "--json", .is_set = &in.is_json},
        {.name = "-i", .is_set = &in.is_interactive},
        {.name = "--interactive", .is_set = &in.is_interactive},
        {.name = "--answer", .value = &answer},
    };
    lp_client_flags_options(&in.flags, options + OWN_OPTIONS);
    int status = lp_options_read(options, LP_CLIENT_OPTIONS + OWN_OPTIONS, argc, argv, words);
    if (status == LP_EXIT_OK)
        status = check_words(&in, words);
    if (status != LP_EXIT_OK)
        return status;
    init(&in);
    return fini(&in, go(&in, words[0], answer));
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet inspect [FLAG...] URL|NAME [COMMAND]\n"
        "       limpet inspect -i [FLAG...] URL|NAME\n"
        "\n"
        "Calls an MCP server by hand: opens a session, asks, prints, and ends it. NAME is\n"
        "an entry of mcp.json. Results go to standard output, all else to standard error.\n"
        "\n"
        "  info                    the server, its protocol and capabilities (default)\n"
        "  tools                   its tools; likewise resources, templates, prompts\n"
        "  call NAME [JSON]        call a tool, with progress\n"
        "  read URI                read a resource\n"
        "  prompt NAME [JSON]      get a prompt\n"
        "  ping                    see that it answers\n"
        "  request METHOD [JSON]   any request\n"
        "\n"
        "  -i, --interactive       commands from standard input, with a live network log\n"
        "  --json                  results as JSON, as they came\n"
        "  --answer FILE           what to answer when the server asks: JSON with a\n"
        "                          result for elicitation/create, roots/list or\n"
        "                          sampling/createMessage; without it you are asked\n");
    if (!err)
        err = lp_app_text(out, lp_client_flags_help);
    return err ? err
               : lp_app_text(out,
                     "\n"
                     "Exit status: 0 it worked, 1 it did not (an error of the server or a tool\n"
                     "too), 64 wrong usage.\n"
                     "\n"
                     "Examples:\n"
                     "  limpet inspect http://127.0.0.1:3000/mcp tools\n"
                     "  limpet inspect --json http://127.0.0.1:3000/mcp call echo "
                     "'{\"message\":\"hi\"}'\n");
}

const struct lp_command lp_command_inspect = {
    .name = "inspect",
    .summary = "call a server by hand: list and call its tools",
    .run = run,
    .help = help,
};
