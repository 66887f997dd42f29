/* The commands of `limpet inspect`: each is a request, and what a list answers is gathered page by
 * page. */
#include <stdio.h>

#include "app/inspect_priv.h"
#include "wire/json.h"
#include "wire/member.h"

enum { PARAMS_MAX = 16 << 20 };

static const struct lp_inspect_verb VERBS[] = {
    {"info", NULL, NULL, NULL, NULL, false}, {"ping", "ping", NULL, NULL, NULL, false},
    {"tools", "tools/list", "tools", "name", NULL, false},
    {"resources", "resources/list", "resources", "uri", NULL, false},
    {"templates", "resources/templates/list", "resourceTemplates", "uriTemplate", NULL, false},
    {"prompts", "prompts/list", "prompts", "name", NULL, false},
    {"call", "tools/call", NULL, NULL, "name", true},
    {"read", "resources/read", NULL, NULL, "uri", false},
    {"prompt", "prompts/get", NULL, NULL, "name", true},
    {"request", "", NULL, NULL, "", true}, /* the name is the method */
};

const struct lp_inspect_verb *lp_inspect_find(struct lp_span word)
{
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++)
        if (lp_span_eq(word, lp_span_str(VERBS[i].word)))
            return &VERBS[i];
    return NULL;
}

const char *lp_inspect_check(const struct lp_inspect_words *words)
{
    const struct lp_inspect_verb *verb = lp_inspect_find(words->word);
    if (!verb)
        return "there is no such command; say info, ping, tools, call NAME [JSON], resources, "
               "templates, read URI, prompts, prompt NAME [JSON], or request METHOD [JSON]";
    if (verb->argument && !words->name.len)
        return "this command needs a name after it";
    if ((!verb->argument && words->name.len) || (!verb->takes_json && words->json.len))
        return "there is a word too many after this command";
    if (words->json.len && !lp_json_is_object(words->json))
        return "the arguments are no JSON object; write them as '{\"key\": \"value\"}'";
    return NULL;
}

/* --- the request --- */

static int write_params(const struct lp_inspect *in, struct lp_span cursor, struct lp_buf *out)
{
    const struct lp_inspect_verb *verb = in->verb;
    struct lp_span json = in->now.json;
    if (verb->argument && !verb->argument[0])
        return lp_buf_append(out, json);
    if (cursor.len)
        return lp_buf_printf(out, "{\"cursor\":%.*s}", (int)cursor.len, cursor.ptr);
    if (!verb->argument)
        return LP_OK;
    int err = lp_buf_printf(out, "{\"%s\":", verb->argument);
    if (!err)
        err = lp_json_quote(out, in->now.name);
    if (!err && verb->takes_json)
        err = lp_buf_append(out, LP_SPAN(",\"arguments\":"));
    if (!err && verb->takes_json)
        err = lp_buf_append(out, json.len ? json : LP_SPAN("{}"));
    return err ? err : lp_buf_append(out, LP_SPAN("}"));
}

static void on_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error);
static void on_progress(void *ctx, lp_id call, struct lp_span message);
static void on_failed(void *ctx, lp_id call, const struct lp_client_failure *why);

static const struct lp_call_ops CALL_OPS = {on_answer, on_progress, on_failed};

/* 2026-07-28 has no ping; what it has for "are you there" is the first question itself. */
static struct lp_span method_of(const struct lp_inspect *in)
{
    const struct lp_client_info *info = lp_client_info(in->client);
    struct lp_span method = lp_span_str(in->verb->method);
    bool is_modern = info && info->era == LP_ERA_MODERN;
    return is_modern && lp_span_eq(method, LP_SPAN("ping")) ? LP_SPAN("server/discover") : method;
}

static void ask(struct lp_inspect *in, struct lp_span cursor)
{
    struct lp_buf params;
    bool is_raw = in->verb->argument && !in->verb->argument[0];
    lp_buf_init(&params, PARAMS_MAX);
    int err = write_params(in, cursor, &params);
    struct lp_call_args args = {.method = is_raw ? in->now.name : method_of(in),
        .params = lp_buf_span(&params),
        .wants_progress = in->verb->takes_json,
        .ops = &CALL_OPS,
        .ctx = in};
    if (!err)
        err = lp_client_request(in->client, &args, &in->call);
    lp_buf_release(&params);
    if (!err)
        return;
    in->status = LP_EXIT_FAILED;
    lp_inspect_say("limpet: the request could not be sent: %s", lp_error_sentence(err));
    lp_inspect_done(in);
}

void lp_inspect_do(struct lp_inspect *in, const struct lp_inspect_words *words)
{
    in->verb = lp_inspect_find(words->word);
    in->now = *words;
    in->is_busy = true;
    in->page_count = 0;
    lp_buf_clear(&in->pages);
    if (in->verb->method) {
        ask(in, LP_SPAN(""));
        return;
    }
    lp_inspect_show_info(in);
    lp_inspect_done(in);
}

/* --- pages --- */

static void gather(void *ctx, struct lp_span element)
{
    struct lp_inspect *in = ctx;
    int err = in->pages.len ? lp_buf_append(&in->pages, LP_SPAN(",")) : LP_OK;
    if (!err)
        err = lp_buf_append(&in->pages, element);
    if (err)
        in->status = LP_EXIT_FAILED;
}

static void show_pages(struct lp_inspect *in)
{
    struct lp_buf whole;
    lp_buf_init(&whole, LP_INSPECT_OUT_MAX + 1024);
    struct lp_span list = lp_buf_span(&in->pages);
    int err = lp_buf_printf(&whole, "{\"%s\":[", in->verb->list);
    if (!err)
        err = lp_buf_append(&whole, list);
    if (!err)
        err = lp_buf_append(&whole, LP_SPAN("]}"));
    if (err || in->status != LP_EXIT_OK)
        lp_inspect_say("limpet: the list is too long to be held");
    else
        lp_inspect_show_result(in, lp_buf_span(&whole));
    lp_buf_release(&whole);
}

/* True: another page was asked for. */
static bool take_page(struct lp_inspect *in, struct lp_span result)
{
    struct lp_span list = lp_member(result, lp_span_str(in->verb->list));
    struct lp_span cursor = lp_member(result, LP_SPAN("nextCursor"));
    bool has_more = lp_span_starts(cursor, LP_SPAN("\""));
    if (!in->page_count && !has_more)
        return false;
    if (lp_span_starts(list, LP_SPAN("[")))
        lp_elements(list, gather, in);
    if (!has_more || ++in->page_count == LP_INSPECT_PAGES_MAX)
        return false;
    ask(in, cursor);
    return true;
}

/* --- answers --- */

static void on_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_inspect *in = ctx;
    (void)call;
    if (error.len) {
        lp_inspect_show_error(in, error);
    } else if (!in->verb->list) {
        lp_inspect_show_result(in, result);
    } else {
        if (take_page(in, result))
            return;
        if (in->page_count)
            show_pages(in);
        else
            lp_inspect_show_result(in, result);
    }
    lp_inspect_done(in);
}

static void on_progress(void *ctx, lp_id call, struct lp_span message)
{
    (void)call;
    lp_inspect_show_notification(ctx, message);
}

static void on_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_inspect *in = ctx;
    (void)call;
    if (!in->is_ending)
        lp_inspect_show_failure(in, why);
    lp_inspect_done(in);
}
