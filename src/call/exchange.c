/* One HTTP exchange of the client: the fields it is sent with, and its answer, read as text or as a
 * stream of events (wire document 2.2, 2.6, 4.2).
 *
 * Decides by the status first and by the body second (cases STA-11): a 2xx is read for messages,
 * everything else is a failure with the body as received. */
#include <stdio.h>
#include <stdlib.h>

#include "call/client_priv.h"
#include "mcp/dialect.h"

static const struct lp_fetch_ops FETCH_OPS;

/* --- start --- */

static void add(
    struct lp_target_field *fields, uint32_t *count, const char *name, struct lp_span value)
{
    LP_ASSERT(*count < LP_CLIENT_FIELDS_MAX);
    fields[(*count)++] = (struct lp_target_field){lp_span_str(name), value};
}

static void add_fields(struct lp_client *client, const struct lp_exchange_args *args,
    struct lp_target_field *fields, uint32_t *count)
{
    bool is_post = args->kind == LP_EXCHANGE_CALL || args->kind == LP_EXCHANGE_SAY;
    if (is_post) {
        add(fields, count, "Content-Type", LP_SPAN("application/json"));
        add(fields, count, "Accept", LP_SPAN("application/json, text/event-stream"));
    } else if (args->kind != LP_EXCHANGE_DELETE) {
        add(fields, count, "Accept", LP_SPAN("text/event-stream"));
    }
    struct lp_span session = args->session.ptr ? args->session : lp_buf_span(&client->session);
    if (session.len)
        add(fields, count, "Mcp-Session-Id", session);
    if (client->version[0])
        add(fields, count, "MCP-Protocol-Version", lp_span_str(client->version));
    if (args->event_id.ptr)
        add(fields, count, "Last-Event-ID", args->event_id);
}

static enum lp_method http_method(enum lp_exchange_kind kind)
{
    if (kind == LP_EXCHANGE_DELETE)
        return LP_METHOD_DELETE;
    return kind == LP_EXCHANGE_CALL || kind == LP_EXCHANGE_SAY ? LP_METHOD_POST : LP_METHOD_GET;
}

static int start_fetch(struct lp_exchange *x, const struct lp_exchange_args *args)
{
    struct lp_client *client = x->client;
    struct lp_target_field fields[LP_CLIENT_FIELDS_MAX];
    uint32_t count = 0;
    char what[160];
    struct lp_buf room;
    lp_buf_init(&room, LP_HTTP1_HEAD_MAX);
    add_fields(client, args, fields, &count);
    int err = LP_OK;
    if (client->is_modern && args->method.len)
        err = lp_modern_add_fields(client, args, &room, fields, &count);
    bool is_message = client->is_old_sse && args->kind != LP_EXCHANGE_STREAM;
    struct lp_fetch_args fetch = {.method = http_method(args->kind),
        .url = is_message ? lp_buf_span(&client->endpoint) : LP_SPAN(""),
        .fields = fields,
        .field_count = count,
        .body = args->body,
        .what = lp_incoming_describe(args->body, what, sizeof what),
        .jar = client->jar,
        .lane = client->lane,
        .may_repeat = args->call && lp_rpc_is_repeatable(args->call->rpc),
        .head_ms = args->call || args->kind == LP_EXCHANGE_STREAM ? UINT32_MAX : 0,
        .ops = &FETCH_OPS,
        .ctx = x};
    if (!err)
        err = lp_fetch_start(client->fetcher, &fetch, &x->fetch);
    lp_buf_release(&room);
    struct lp_fetch_facts facts;
    if (!err && lp_fetch_facts(client->fetcher, x->fetch, &facts))
        x->number = facts.number;
    return err;
}

int lp_exchange_start(
    struct lp_client *client, const struct lp_exchange_args *args, struct lp_exchange **ret)
{
    struct lp_exchange *x = calloc(1, sizeof *x);
    if (!x)
        return LP_ENOMEM;
    x->client = client;
    x->kind = args->kind;
    x->epoch = client->epoch;
    x->is_modern = client->is_modern;
    x->is_old_sse = client->is_old_sse;
    x->had_session =
        client->session.len || (client->is_old_sse && args->kind != LP_EXCHANGE_STREAM);
    x->call = args->call ? args->call->id : 0;
    lp_list_init(&x->node);
    lp_buf_init(&x->body, LP_CLIENT_MESSAGE_MAX);
    lp_sse_init(&x->sse, LP_CLIENT_MESSAGE_MAX);
    int err = start_fetch(x, args);
    if (err) {
        free(x);
        return err;
    }
    lp_list_push_back(&client->exchanges, &x->node);
    *ret = x;
    return LP_OK;
}

static void free_exchange(struct lp_exchange *x)
{
    lp_list_remove(&x->node);
    lp_buf_release(&x->body);
    lp_sse_release(&x->sse);
    free(x);
}

void lp_exchange_drop(struct lp_exchange *x)
{
    if (!x || x->is_dead)
        return;
    struct lp_client *client = x->client;
    struct lp_call *call = lp_call_get(client, x->call);
    if (call && call->exchange == x)
        call->exchange = NULL;
    if (client->stream == x)
        client->stream = NULL;
    lp_fetch_cancel(client->fetcher, x->fetch);
    x->is_dead = true;
    lp_list_remove(&x->node);
    if (!x->is_busy)
        free_exchange(x);
}

/* --- the answer's head --- */

static bool is_success(uint16_t status)
{
    return status >= 200 && status < 300;
}

static void copy_text(struct lp_span value, char *room, size_t room_len)
{
    size_t len = value.len < room_len - 1 ? value.len : room_len - 1;
    if (len)
        memcpy(room, value.ptr, len);
    room[len] = '\0';
}

static void on_head(void *ctx, lp_id fetch, const struct lp_head *head)
{
    struct lp_exchange *x = ctx;
    struct lp_span rest;
    (void)fetch;
    struct lp_span media =
        lp_span_trim(lp_span_split(lp_head_value(head, LP_FIELD_CONTENT_TYPE), ';', &rest));
    x->status = head->status;
    copy_text(media, x->media, sizeof x->media);
    copy_text(lp_head_value(head, LP_FIELD_WWW_AUTHENTICATE), x->challenge, sizeof x->challenge);
    bool is_stream = lp_span_ieq(media, LP_SPAN("text/event-stream"));
    x->body_kind = is_success(x->status) && is_stream ? LP_BODY_IS_EVENTS : LP_BODY_IS_TEXT;
    if (!is_success(x->status))
        x->body.max = LP_CLIENT_ERROR_BODY_MAX;
    if (x->kind == LP_EXCHANGE_STREAM && x->body_kind == LP_BODY_IS_EVENTS) {
        x->client->stream_was_open = true;
        lp_client_stream_settled(x->client);
    }
    const struct lp_call *call = lp_call_get(x->client, x->call);
    if (call && call->is_opening)
        lp_open_take_session(x->client, call->rpc, head);
}

/* --- events --- */

static struct lp_netlog_at received(const struct lp_exchange *x)
{
    return (struct lp_netlog_at){lp_fetcher_wall_ms(x->client->fetcher), x->number, false};
}

static void log_content(const struct lp_exchange *x, const char *kind, struct lp_span bytes)
{
    struct lp_netlog *log = lp_fetcher_log(x->client->fetcher);
    char what[160];
    if (log)
        lp_netlog_content(
            log, received(x), kind, lp_incoming_describe(bytes, what, sizeof what), bytes);
}

static void log_endpoint(const struct lp_exchange *x, struct lp_span data)
{
    struct lp_netlog *log = lp_fetcher_log(x->client->fetcher);
    struct lp_buf words;
    if (!log)
        return;
    lp_buf_init(&words, 16384);
    if (!lp_buf_append(&words, LP_SPAN("endpoint event: ")) &&
        !lp_netlog_redact_url(log, data, &words))
        lp_netlog_note(log, received(x), lp_buf_span(&words));
    lp_buf_release(&words);
}

static void on_event(struct lp_exchange *x, const struct lp_sse_event *event)
{
    struct lp_client *client = x->client;
    struct lp_call *call = lp_call_get(client, x->call);
    x->had_event = true;
    if (x->kind == LP_EXCHANGE_STREAM)
        lp_resume_note(&client->stream_resume, event);
    else if (call && !client->is_modern && (event->has_id || event->has_retry)) {
        if (!call->resume)
            call->resume = calloc(1, sizeof *call->resume);
        if (call->resume)
            lp_resume_note(call->resume, event);
    }
    if (!event->has_data || !event->data.len)
        return; /* a priming event, or an id alone */
    if (lp_span_eq(event->type, LP_SPAN("endpoint"))) {
        log_endpoint(x, event->data);
        if (client->is_old_sse && x->kind == LP_EXCHANGE_STREAM)
            lp_open_endpoint(client, event->data);
        return;
    }
    log_content(x, "event", event->data);
    if (!lp_span_eq(event->type, LP_SPAN("message")))
        return;
    if (!lp_incoming(client, x, event->data) && !x->is_dead)
        lp_client_note(client, "an event of the server is no JSON-RPC message and was left out");
}

/* --- endings --- */

static void finish(struct lp_exchange *x, const struct lp_client_failure *why);

/* Only an answer to a request that carried a session may mean that it is lost. */
static bool is_lost(const struct lp_exchange *x)
{
    const struct lp_client *client = x->client;
    const struct lp_call *call = lp_call_get(client, x->call);
    bool is_opening = call && (call->rpc == LP_RPC_INITIALIZE || call->rpc == LP_RPC_DISCOVER);
    if (!x->had_session || is_opening)
        return false;
    struct lp_span body = lp_buf_span(&x->body);
    return lp_dialect_is_lost(x->status, body, body.len <= LP_DIALECT_BODY_MAX, NULL, 0);
}

static struct lp_client_failure garbled(struct lp_exchange *x)
{
    bool is_empty = !x->body.len && x->body_kind == LP_BODY_IS_TEXT;
    const char *words = is_empty
        ? "and sends no answer; a request must be answered"
        : "with something that is no MCP message; is the URL that of an MCP endpoint?";
    struct lp_client_failure why = {.kind = LP_FAILURE_GARBLED,
        .error = LP_ESYNTAX,
        .reason = LP_REASON_upstream_garbled,
        .status = x->status,
        .body = lp_buf_span(&x->body)};
    why.sentence = lp_client_say(x->client, "The server answers %u%s%s %s", x->status,
        x->media[0] ? " " : "", x->media, words);
    return why;
}

struct lp_client_failure lp_exchange_failure(struct lp_exchange *x)
{
    if (is_success(x->status))
        return garbled(x);
    struct lp_span body = lp_buf_span(&x->body);
    struct lp_client_failure why = {.kind = LP_FAILURE_STATUS,
        .error = LP_EUNSUPPORTED,
        .reason = LP_REASON_answered,
        .status = x->status,
        .body = body,
        .cannot_have_run = x->status == 404 || x->status == 405 || x->status == 401};
    const char *doing = http_method(x->kind) == LP_METHOD_POST ? "POSTing to endpoint"
        : x->kind == LP_EXCHANGE_DELETE                        ? "deleting the session"
                                                               : "opening the event stream";
    if (is_lost(x)) {
        why.kind = LP_FAILURE_LOST;
        why.reason = LP_REASON_session_lost;
        why.cannot_have_run = true;
    }
    why.sentence =
        lp_client_say(x->client, "Error %s (HTTP %u)%s", doing, x->status, body.len ? ": " : "");
    why.sentence = lp_client_say_more(x->client, why.sentence, body);
    return why;
}

static void finish_call(struct lp_exchange *x, const struct lp_client_failure *why)
{
    struct lp_call *call = lp_call_get(x->client, x->call);
    if (!call || call->exchange != x)
        return; /* answered before its stream ended */
    call->exchange = NULL;
    bool is_stream = x->body_kind == LP_BODY_IS_EVENTS || x->kind == LP_EXCHANGE_RESUME;
    bool is_refused = why && (why->kind == LP_FAILURE_STATUS || why->kind == LP_FAILURE_LOST);
    bool is_posted = x->is_old_sse && !why; /* the answer comes on the stream */
    if (is_posted)
        return;
    if (is_stream && !is_refused && (!why || why->kind == LP_FAILURE_NETWORK))
        lp_stream_of_call_ended(call, why);
    else if (x->kind == LP_EXCHANGE_RESUME && is_refused && why->status >= 500)
        lp_stream_of_call_ended(call, why);
    else
        lp_call_fail(call, why);
}

static void finish_say(struct lp_exchange *x, const struct lp_client_failure *why)
{
    struct lp_client *client = x->client;
    bool is_handshake = x->is_initialized && client->step == LP_OPEN_INITIALIZED;
    if (why)
        lp_client_note(client, "%s: %.*s",
            is_handshake ? "the server did not take notifications/initialized"
                         : "what was sent did not arrive",
            (int)why->sentence.len, why->sentence.ptr);
    if (is_handshake)
        lp_open_initialized(client);
}

static bool wants_login(const struct lp_exchange *x, const struct lp_client_failure *why)
{
    bool is_challenged =
        why && why->kind == LP_FAILURE_STATUS && (x->status == 401 || x->status == 403);
    bool is_asking = x->kind == LP_EXCHANGE_CALL || x->kind == LP_EXCHANGE_RESUME;
    bool is_opening = x->kind == LP_EXCHANGE_STREAM && x->client->state == LP_CLIENT_OPENING;
    return is_challenged && (is_asking || is_opening) && !x->is_dead;
}

/* A 404 to the first GET says little: servers without such a route say it, and so do replicas that
 * a balancer sends GET to and POST not. The next POST finds out. */
static bool tells_loss(const struct lp_exchange *x, const struct lp_client_failure *why)
{
    const struct lp_client *client = x->client;
    bool is_current = x->epoch == client->epoch && client->state == LP_CLIENT_OPEN;
    bool is_first_get = x->kind == LP_EXCHANGE_STREAM && !x->is_old_sse && !client->stream_was_open;
    return why && why->kind == LP_FAILURE_LOST && is_current && !is_first_get;
}

/* The exchange is over; whoever waits for it hears why. NULL: it ended in order. The loss of the
 * session is told first, so that an owner who asks again at once does not ask the dead one. */
static void finish(struct lp_exchange *x, const struct lp_client_failure *why)
{
    struct lp_client *client = x->client;
    bool was_busy = x->is_busy;
    struct lp_client_failure again;
    x->is_busy = true; /* `why` may point into it */
    if (tells_loss(x, why)) {
        lp_client_lose(client, why, x);
        again = lp_exchange_failure(x); /* the words may be gone: owners were called */
        why = &again;
    }
    if (wants_login(x, why))
        lp_login_ask(x);
    else if (x->kind == LP_EXCHANGE_CALL || x->kind == LP_EXCHANGE_RESUME)
        finish_call(x, why);
    else if (x->is_dead)
        ; /* the session it belonged to is over */
    else if (x->kind == LP_EXCHANGE_STREAM)
        lp_stream_ended(x, why);
    else if (x->kind == LP_EXCHANGE_SAY)
        finish_say(x, why);
    else if (!x->is_orphan)
        lp_client_deleted(client);
    x->is_busy = was_busy;
    if (!x->is_dead)
        lp_exchange_drop(x);
    else if (!was_busy)
        free_exchange(x);
}

/* --- the fetch's calls --- */

static void take_text(struct lp_exchange *x, struct lp_span bytes)
{
    size_t room = lp_buf_room(&x->body);
    bool fits = bytes.len <= room;
    int err = lp_buf_append(&x->body, fits ? bytes : lp_span(bytes.ptr, room));
    if (!err && (fits || !is_success(x->status)))
        return;
    struct lp_client_failure why = lp_client_limit(x->client, err ? err : LP_ETOO_LONG);
    finish(x, &why);
}

static void on_body(void *ctx, lp_id fetch, struct lp_span bytes)
{
    struct lp_exchange *x = ctx;
    (void)fetch;
    if (x->body_kind == LP_BODY_IS_TEXT) {
        take_text(x, bytes);
        return;
    }
    x->is_busy = true;
    while (bytes.len && !x->is_dead) {
        struct lp_sse_event event;
        bool is_ready = false;
        ptrdiff_t n = lp_sse_feed(&x->sse, bytes, &event, &is_ready);
        if (n < 0) {
            struct lp_client_failure why = lp_client_limit(x->client, (int)n);
            finish(x, &why);
            break;
        }
        bytes = lp_span_from(bytes, (size_t)n);
        if (is_ready)
            on_event(x, &event);
    }
    x->is_busy = false;
    if (x->is_dead)
        free_exchange(x);
}

/* A 2xx with a body that is no stream. False: it is not what was to come. */
static bool take_messages(struct lp_exchange *x)
{
    struct lp_span body = lp_buf_span(&x->body);
    bool waits = x->kind == LP_EXCHANGE_CALL || x->kind == LP_EXCHANGE_RESUME;
    if (x->kind == LP_EXCHANGE_STREAM)
        return false;
    if (!waits || (x->is_old_sse && !lp_span_starts(body, LP_SPAN("{"))))
        return true; /* 202, "Accepted" and the like */
    if (body.len)
        log_content(x, "body", body);
    if (!body.len || !lp_incoming(x->client, x, body))
        return x->is_dead;
    const struct lp_call *call = lp_call_get(x->client, x->call);
    return x->is_old_sse || !call || call->exchange != x;
}

/* In the modern era a 4xx may be the answer itself: its body is a JSON-RPC error (wire 7.4). */
static bool is_modern_error(const struct lp_exchange *x)
{
    struct lp_envelope env;
    bool may_be =
        x->is_modern && x->kind == LP_EXCHANGE_CALL && (x->status == 400 || x->status == 404);
    return may_be && !lp_envelope_scan(lp_buf_span(&x->body), &env) && env.has_error &&
        env.method == LP_RPC_NONE;
}

static void on_end(void *ctx, lp_id fetch, bool whole)
{
    struct lp_exchange *x = ctx;
    (void)fetch;
    (void)whole;
    bool is_answer = is_success(x->status) || is_modern_error(x);
    bool is_fine = is_success(x->status) && x->body_kind == LP_BODY_IS_EVENTS;
    if (!is_answer && x->body.len)
        log_content(x, "body", lp_buf_span(&x->body));
    if (is_answer && x->body_kind == LP_BODY_IS_TEXT) {
        x->is_busy = true;
        is_fine = take_messages(x);
        x->is_busy = false;
        if (x->is_dead) {
            free_exchange(x);
            return;
        }
    }
    struct lp_client_failure why = {0};
    if (!is_fine)
        why = lp_exchange_failure(x);
    finish(x, is_fine ? NULL : &why);
}

static void on_failed(void *ctx, lp_id fetch, const struct lp_fetch_failure *why)
{
    struct lp_exchange *x = ctx;
    (void)fetch;
    struct lp_client_failure failure = {.kind = LP_FAILURE_NETWORK,
        .error = why->error,
        .reason = why->reason,
        .status = why->status,
        .cannot_have_run = why->cannot_have_run,
        .sentence = why->sentence};
    finish(x, &failure);
}

static const struct lp_fetch_ops FETCH_OPS = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .failed = on_failed,
};
