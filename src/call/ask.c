/* From a question to an answer (call/ask.h): the fields it carries, and what its answer says.
 *
 * An answer is judged by its media type first (a web page with status 200 is no answer), then by
 * its JSON-RPC form; everything else is kept as a hash of its words, so that two answers can be
 * seen to be the same. */
#include "call/ask.h"

#include <stdlib.h>

#include "mcp/envelope.h"
#include "wire/member.h"

enum { FIELDS_MAX = 8, RPC_ID_MAX = 32, WORDS_MAX = 160 };

struct lp_ask {
    struct lp_list node; /* in asker->asks */
    struct lp_asker *asker;
    struct lp_ask_args args;
    char rpc_id[RPC_ID_MAX];
    lp_id fetch;
    struct lp_reply reply;
    struct lp_buf body;
    struct lp_buf kept; /* text of the head that the reply points to */
    struct lp_sse sse;
    bool is_too_long;
    struct lp_fetcher_timer hold;
};

static uint64_t now_us(const struct lp_ask *ask)
{
    return lp_fetcher_now_us(ask->asker->fetcher);
}

static void ask_free(struct lp_ask *ask)
{
    lp_fetcher_timer_cancel(ask->asker->fetcher, &ask->hold);
    lp_list_remove(&ask->node);
    ask->asker->count--;
    lp_buf_release(&ask->body);
    lp_buf_release(&ask->kept);
    lp_sse_release(&ask->sse);
    free(ask);
}

static void finish(struct lp_ask *ask)
{
    struct lp_reply *reply = &ask->reply;
    uint64_t silence = reply->head_us ? now_us(ask) - reply->last_us : 0;
    reply->end_us = now_us(ask);
    reply->quiet_us = silence > reply->quiet_us ? silence : reply->quiet_us;
    lp_list_remove(&ask->node);
    ask->args.done(ask->args.ctx, reply);
    ask_free(ask);
}

/* --- what it says --- */

static uint32_t print_of(struct lp_span text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * 16777619u;
    return text.len ? hash | 1 : 0;
}

static int32_t number_of(struct lp_span token)
{
    uint64_t value;
    bool is_negative = token.len && token.ptr[0] == '-';
    struct lp_span digits = is_negative ? lp_span_from(token, 1) : token;
    if (!lp_span_to_u64(digits, &value) || value > INT32_MAX)
        return 0;
    return is_negative ? -(int32_t)value : (int32_t)value;
}

/* Whether `text` is the JSON-RPC answer to this question; notes what it says. */
static bool take_message(struct lp_ask *ask, struct lp_span text)
{
    struct lp_envelope env;
    struct lp_reply *reply = &ask->reply;
    if (lp_envelope_scan(text, &env) || !env.is_object || env.method != LP_RPC_NONE)
        return false;
    bool is_ours = lp_span_eq(env.id, lp_span_str(ask->rpc_id));
    if (env.has_result && is_ours) {
        reply->answer.is_result = true;
        reply->result = lp_member(text, LP_SPAN("result"));
        return true;
    }
    if (!env.has_error || (env.has_id && !is_ours && env.id_is_valid && ask->rpc_id[0]))
        return false;
    reply->answer.code = number_of(env.error_code);
    reply->answer.print = print_of(env.error_message);
    reply->message = env.error_message;
    return true;
}

static void take_body(struct lp_ask *ask)
{
    struct lp_reply *reply = &ask->reply;
    struct lp_span body = reply->body = lp_buf_span(&ask->body);
    bool is_message = reply->answer.media == LP_MEDIA_JSON && take_message(ask, body);
    if (is_message)
        return;
    reply->answer.print = print_of(lp_span_trim(body));
    reply->message = lp_span(body.ptr, body.len < WORDS_MAX ? body.len : WORDS_MAX);
}

static bool take_events(struct lp_ask *ask, struct lp_span bytes)
{
    while (bytes.len) {
        struct lp_sse_event event;
        bool is_ready = false;
        ptrdiff_t n = lp_sse_feed(&ask->sse, bytes, &event, &is_ready);
        if (n < 0)
            return false;
        bytes = lp_span_from(bytes, (size_t)n);
        if (!is_ready)
            continue;
        ask->reply.event_count++;
        if (ask->args.event)
            ask->args.event(ask->args.ctx, &event);
        if (!ask->rpc_id[0] || !event.has_data)
            continue;
        lp_buf_clear(&ask->body);
        if (!lp_buf_append(&ask->body, event.data) && take_message(ask, lp_buf_span(&ask->body)))
            return true;
    }
    return false;
}

/* --- the answer's head --- */

static struct lp_span field(const struct lp_head *head, const char *name)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (lp_span_ieq(head->fields[i].name, lp_span_str(name)))
            return head->fields[i].value;
    return LP_SPAN("");
}

static enum lp_media media_of(struct lp_span type)
{
    struct lp_span rest;
    struct lp_span name = lp_span_trim(lp_span_split(type, ';', &rest));
    if (!name.len)
        return LP_MEDIA_NONE;
    if (lp_span_ieq(name, LP_SPAN("application/json")))
        return LP_MEDIA_JSON;
    if (lp_span_ieq(name, LP_SPAN("text/event-stream")))
        return LP_MEDIA_EVENTS;
    bool is_page = lp_span_ieq(name, LP_SPAN("text/html")) ||
        lp_span_ieq(name, LP_SPAN("application/xhtml+xml"));
    return is_page ? LP_MEDIA_HTML : LP_MEDIA_OTHER;
}

static bool lists(struct lp_span list, struct lp_span name)
{
    while (list.ptr) {
        struct lp_span entry = lp_span_trim(lp_span_split(list, ',', &list));
        if (lp_span_ieq(entry, name) || lp_span_eq(entry, LP_SPAN("*")))
            return true;
    }
    return false;
}

/* A copy that lives as long as the question; empty when there is no memory for it. `kept` has its
 * room from the start, so that earlier spans stay where they are. */
static struct lp_span keep(struct lp_ask *ask, struct lp_span text)
{
    size_t at = ask->kept.len;
    if (text.len > lp_buf_room(&ask->kept) || lp_buf_append(&ask->kept, text))
        return LP_SPAN("");
    return lp_span(lp_buf_span(&ask->kept).ptr + at, text.len);
}

static bool is_stream(const struct lp_ask *ask)
{
    return ask->reply.answer.media == LP_MEDIA_EVENTS && ask->reply.answer.status == 200;
}

/* No whole answer: what came of it says nothing. */
static void give_up(struct lp_ask *ask, int error, const char *sentence)
{
    ask->reply.answer.error = error;
    ask->reply.answer.status = 0;
    ask->reply.failure = lp_span_str(sentence);
}

/* A stream was held long enough, or an answer that drips has had its time. */
static void on_held(void *ctx)
{
    struct lp_ask *ask = ctx;
    if (!ask->args.hold_ms && !ask->reply.answer.is_result)
        give_up(
            ask, LP_ETIMEOUT, "the server took the connection, but no whole answer came in time");
    lp_fetch_cancel(ask->asker->fetcher, ask->fetch);
    finish(ask);
}

static void on_head(void *ctx, lp_id fetch, const struct lp_head *head)
{
    struct lp_ask *ask = ctx;
    struct lp_reply *reply = &ask->reply;
    struct lp_fetch_facts facts;
    if (lp_fetch_facts(ask->asker->fetcher, fetch, &facts)) {
        reply->sent_us = facts.sent_us;
        reply->is_reused = facts.is_reused;
    }
    reply->head_us = reply->last_us = now_us(ask);
    reply->answer.is_connected = true;
    reply->answer.status = head->status;
    reply->answer.media = (uint8_t)media_of(lp_head_value(head, LP_FIELD_CONTENT_TYPE));
    reply->answer.has_allow = lp_head_find(head, LP_FIELD_ALLOW, NULL);
    reply->session_id = keep(ask, lp_head_value(head, LP_FIELD_MCP_SESSION_ID));
    reply->login = keep(ask, lp_head_value(head, LP_FIELD_WWW_AUTHENTICATE));
    reply->allows_origin = field(head, "access-control-allow-origin").len;
    reply->exposes_id =
        lists(field(head, "access-control-expose-headers"), LP_SPAN("mcp-session-id"));
    reply->has_length = is_stream(ask) && head->body == LP_BODY_LENGTH;
    if (ask->args.head)
        ask->args.head(ask->args.ctx, head);
    if (!is_stream(ask) || !ask->args.hold_ms)
        return;
    lp_fetch_set_timeout(ask->asker->fetcher, fetch, 0);
    if (ask->args.hold_ms != UINT32_MAX &&
        lp_fetcher_timer_set(ask->asker->fetcher, &ask->hold, (uint64_t)ask->args.hold_ms * 1000))
        ask->args.hold_ms = UINT32_MAX;
}

static void on_body(void *ctx, lp_id fetch, struct lp_span bytes)
{
    struct lp_ask *ask = ctx;
    struct lp_reply *reply = &ask->reply;
    uint64_t silence = now_us(ask) - reply->last_us;
    reply->quiet_us = silence > reply->quiet_us ? silence : reply->quiet_us;
    reply->last_us = now_us(ask);
    if (!is_stream(ask)) {
        ask->is_too_long |= lp_buf_append(&ask->body, bytes) != LP_OK;
        if (ask->is_too_long && reply->answer.media != LP_MEDIA_HTML)
            give_up(ask, LP_ETOO_LONG,
                "the server took the connection, but its answer does not end within 1 MiB");
        if (!ask->is_too_long)
            return;
        lp_fetch_cancel(ask->asker->fetcher, fetch);
        finish(ask);
        return;
    }
    bool is_answered = take_events(ask, bytes);
    if (!is_answered || ask->args.lane)
        return; /* a kept connection is read to the answer's end */
    lp_fetch_cancel(ask->asker->fetcher, fetch);
    finish(ask);
}

static void on_end(void *ctx, lp_id fetch, bool whole)
{
    struct lp_ask *ask = ctx;
    (void)fetch;
    (void)whole;
    ask->reply.was_cut = is_stream(ask) && ask->args.hold_ms;
    if (!is_stream(ask) && !ask->is_too_long)
        take_body(ask);
    finish(ask);
}

static void on_failed(void *ctx, lp_id fetch, const struct lp_fetch_failure *why)
{
    struct lp_ask *ask = ctx;
    (void)fetch;
    ask->reply.was_cut = is_stream(ask) && ask->args.hold_ms;
    ask->reply.answer.error = why->error;
    ask->reply.answer.is_connected |= why->phase != LP_FETCH_CONNECTING;
    ask->reply.failure = why->sentence;
    bool is_whole = is_stream(ask) && (ask->args.hold_ms || ask->reply.answer.is_result);
    if (why->status)
        ask->reply.answer.status = why->status;
    else if (!is_whole)
        ask->reply.answer.status = 0;
    finish(ask);
}

/* --- the question --- */

static void add(
    struct lp_target_field *fields, uint32_t *count, const char *name, struct lp_span value)
{
    if (value.len)
        fields[(*count)++] = (struct lp_target_field){lp_span_str(name), value};
}

static uint32_t put_fields(const struct lp_ask_args *args, struct lp_target_field *fields)
{
    uint32_t n = 0;
    bool is_get = args->method == LP_METHOD_GET;
    bool is_preflight = args->method == LP_METHOD_OPTIONS;
    add(fields, &n, "Accept",
        is_get ? LP_SPAN("text/event-stream") : LP_SPAN("application/json, text/event-stream"));
    add(fields, &n, "Content-Type", args->body.len ? LP_SPAN("application/json") : LP_SPAN(""));
    add(fields, &n, "Mcp-Session-Id", args->session);
    add(fields, &n, "MCP-Protocol-Version", args->version);
    add(fields, &n, "Mcp-Method", args->rpc);
    add(fields, &n, "Mcp-Name", args->name);
    add(fields, &n, "Cookie", args->cookie);
    add(fields, &n, "Origin", args->origin);
    if (is_preflight)
        add(fields, &n, "Access-Control-Request-Method", LP_SPAN("POST"));
    return n;
}

static int start_fetch(struct lp_ask *ask, const struct lp_ask_args *args)
{
    static const struct lp_fetch_ops OPS = {on_head, on_body, on_end, on_failed};
    struct lp_target_field fields[FIELDS_MAX];
    uint32_t field_count = put_fields(args, fields);
    uint32_t limit_ms = args->timeout_ms ? args->timeout_ms : LP_ASK_MS;
    struct lp_fetch_args fetch = {.method = args->method,
        .url = args->url,
        .fields = fields,
        .field_count = field_count,
        .body = args->body,
        .jar = args->jar,
        .policy = args->lane ? LP_FETCH_KEEP : LP_FETCH_FRESH,
        .lane = args->lane,
        .source = args->source,
        .is_foreign = args->is_foreign,
        .may_repeat = !args->runs_once,
        .connect_ms = limit_ms,
        .head_ms = limit_ms,
        .quiet_ms = limit_ms,
        .ops = &OPS,
        .ctx = ask};
    return lp_fetch_start(ask->asker->fetcher, &fetch, &ask->fetch);
}

/* The fetch's limits are on silence; this one is on the whole, so that bytes that drip end too. */
static int set_deadline(struct lp_ask *ask)
{
    uint64_t limit_ms = ask->args.timeout_ms ? ask->args.timeout_ms : LP_ASK_MS;
    uint64_t whole_us = (limit_ms + LP_ASK_SPARE_MS) * 1000;
    return ask->args.hold_ms ? LP_OK
                             : lp_fetcher_timer_set(ask->asker->fetcher, &ask->hold, whole_us);
}

struct lp_ask *lp_ask_start(struct lp_asker *asker, const struct lp_ask_args *args)
{
    enum { KEPT_MAX = 16384 };
    char *room;
    struct lp_ask *ask = calloc(1, sizeof *ask);
    if (!ask)
        return NULL;
    LP_ASSERT(args->done && args->rpc_id.len < RPC_ID_MAX);
    ask->asker = asker;
    ask->args = *args;
    ask->reply.answer.is_asked = true;
    ask->hold.fire = on_held;
    ask->hold.ctx = ask;
    if (args->rpc_id.len)
        memcpy(ask->rpc_id, args->rpc_id.ptr, args->rpc_id.len);
    lp_buf_init(&ask->body, LP_ASK_BODY_MAX);
    lp_buf_init(&ask->kept, KEPT_MAX);
    lp_sse_init(&ask->sse, LP_ASK_BODY_MAX);
    lp_list_init(&ask->node);
    asker->count++;
    if (lp_buf_reserve(&ask->kept, KEPT_MAX, &room) || set_deadline(ask) ||
        start_fetch(ask, args)) {
        ask_free(ask);
        return NULL;
    }
    asker->sent++;
    lp_list_push_back(&asker->asks, &ask->node);
    return ask;
}

void lp_ask_cancel(struct lp_ask *ask)
{
    lp_fetch_cancel(ask->asker->fetcher, ask->fetch);
    ask_free(ask);
}

void lp_asker_init(struct lp_asker *asker, struct lp_fetcher *fetcher)
{
    *asker = (struct lp_asker){.fetcher = fetcher};
    lp_list_init(&asker->asks);
}

void lp_asker_fini(struct lp_asker *asker)
{
    while (!lp_list_empty(&asker->asks))
        lp_ask_cancel(LP_CONTAINER(asker->asks.next, struct lp_ask, node));
}
