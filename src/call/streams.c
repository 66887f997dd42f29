/* Streams that break and go on: a call's (GET with Last-Event-ID, wire document 4.3, 6.1), the
 * notification stream, and the one stream of old SSE.
 *
 * A stream that ended without its answer is normal from 2025-11-25 on: the server says when to come
 * back. Without an event id there is nothing to come back to, and what became of the call is not
 * known. In the modern era nothing is resumed. */
#include "call/client_priv.h"

static void on_resume(void *ctx);
static void on_reopen(void *ctx);

void lp_resume_note(struct lp_resume *resume, const struct lp_sse_event *event)
{
    bool fits = event->id.len <= sizeof resume->event_id && lp_field_is_value(event->id);
    if (event->has_id) {
        resume->has_event_id = fits && event->id.len;
        resume->event_id_len = resume->has_event_id ? event->id.len : 0;
        if (resume->has_event_id)
            memcpy(resume->event_id, event->id.ptr, event->id.len);
    }
    if (event->has_retry) {
        resume->has_retry = true;
        resume->retry_ms = event->retry_ms;
    }
    resume->tries = 0;
}

/* What the server said, else 1 s, then 1.5 times as long each time. */
static uint64_t wait_us(const struct lp_resume *resume)
{
    uint64_t ms = resume->has_retry ? resume->retry_ms : LP_CLIENT_RETRY_MS;
    for (uint32_t i = 1; i < resume->tries && ms < LP_CLIENT_RETRY_MAX_MS; i++)
        ms = (ms ? ms : LP_CLIENT_RETRY_MS) * 3 / 2;
    return (ms < LP_CLIENT_RETRY_MAX_MS ? ms : LP_CLIENT_RETRY_MAX_MS) * 1000;
}

/* --- of a call --- */

static void fail_unknown(struct lp_call *call, const struct lp_client_failure *cause)
{
    struct lp_client *client = call->client;
    struct lp_client_failure why = {.kind = LP_FAILURE_NETWORK,
        .error = cause ? cause->error : LP_EBROKEN,
        .reason = cause ? cause->reason : LP_REASON_upstream_broke};
    struct lp_span how = LP_SPAN("the stream ended before the answer came");
    if (cause && cause->error == LP_ESYNTAX)
        how = cause->sentence; /* no end but garbage, which is another trouble */
    why.sentence = lp_client_say(client, "%.*s: %.*s; whether it was carried out is not known",
        (int)call->method.len, call->method.ptr, (int)how.len, how.ptr);
    lp_call_fail(call, &why);
}

void lp_stream_of_call_ended(struct lp_call *call, const struct lp_client_failure *why)
{
    struct lp_client *client = call->client;
    struct lp_resume *resume = call->resume;
    bool can_resume = resume && resume->has_event_id && !client->is_modern &&
        call->epoch == client->epoch && resume->tries < LP_CLIENT_RESUMES_MAX;
    if (!can_resume) {
        fail_unknown(call, why);
        return;
    }
    resume->tries++;
    call->resume_timer.fire = on_resume;
    call->resume_timer.ctx = call;
    if (lp_fetcher_timer_set(client->fetcher, &call->resume_timer, wait_us(resume)))
        fail_unknown(call, why);
}

static void on_resume(void *ctx)
{
    struct lp_call *call = ctx;
    struct lp_client *client = call->client;
    if (call->epoch != client->epoch) {
        fail_unknown(call, NULL);
        return;
    }
    struct lp_exchange_args args = {.kind = LP_EXCHANGE_RESUME,
        .call = call,
        .event_id = lp_span(call->resume->event_id, call->resume->event_id_len)};
    lp_client_note(
        client, "the stream of %.*s is taken up again", (int)call->method.len, call->method.ptr);
    if (lp_exchange_start(client, &args, &call->exchange))
        fail_unknown(call, NULL);
}

/* --- listen: the notification stream of the modern era --- */

static void reopen_later(struct lp_client *client)
{
    client->stream_resume.tries++;
    client->stream_timer.fire = on_reopen;
    client->stream_timer.ctx = client;
    if (lp_fetcher_timer_set(
            client->fetcher, &client->stream_timer, wait_us(&client->stream_resume)))
        lp_client_note(client, "no memory to open the notification stream again");
}

static void on_listen_over(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_client *client = ctx;
    (void)call;
    (void)result;
    if (error.len)
        lp_client_note(client, "there is no notification stream: %.*s", (int)error.len, error.ptr);
    else
        reopen_later(client);
}

static void on_listen_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_client *client = ctx;
    (void)call;
    if (client->state != LP_CLIENT_OPEN || why->kind == LP_FAILURE_CANCELLED)
        return;
    if (why->kind == LP_FAILURE_NETWORK)
        reopen_later(client);
    else
        lp_client_note(client, "there is no notification stream: %.*s", (int)why->sentence.len,
            why->sentence.ptr);
}

static const struct lp_call_ops LISTEN_OPS = {.answer = on_listen_over, .failed = on_listen_failed};

static bool offers_changes(const struct lp_client *client, const char *what)
{
    struct lp_span all = lp_member(lp_buf_span(&client->result), LP_SPAN("capabilities"));
    struct lp_span one = lp_member(all, lp_span_str(what));
    return lp_span_eq(lp_member(one, LP_SPAN("listChanged")), LP_SPAN("true"));
}

static void listen(struct lp_client *client)
{
    static const char *const WHAT[] = {"tools", "prompts", "resources"};
    struct lp_buf params;
    lp_buf_init(&params, 1024);
    int err = lp_buf_append(&params, LP_SPAN("{\"notifications\":{"));
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof WHAT / sizeof *WHAT && !err; i++)
        if (offers_changes(client, WHAT[i]))
            err = lp_buf_printf(&params, "%s\"%sListChanged\":true", count++ ? "," : "", WHAT[i]);
    if (!err)
        err = lp_buf_append(&params, LP_SPAN("}}"));
    struct lp_call_args args = {.method = LP_SPAN("subscriptions/listen"),
        .params = lp_buf_span(&params),
        .timeout_ms = UINT32_MAX,
        .ops = &LISTEN_OPS,
        .ctx = client};
    if (!err && count)
        err = lp_calls_start(client, &args, false, &client->listen);
    lp_buf_release(&params);
    if (err)
        lp_client_note(client, "no memory for the notification stream");
}

/* --- GET --- */

void lp_stream_open(struct lp_client *client)
{
    const struct lp_target *target = lp_fetcher_target(client->fetcher);
    if (!client->is_old_sse && target->suppress_notification_stream)
        return;
    if (client->is_modern) {
        listen(client);
        return;
    }
    struct lp_resume *resume = &client->stream_resume;
    struct lp_exchange_args args = {.kind = LP_EXCHANGE_STREAM};
    if (resume->has_event_id && !client->is_old_sse)
        args.event_id = lp_span(resume->event_id, resume->event_id_len);
    int err = lp_exchange_start(client, &args, &client->stream);
    if (!err)
        return;
    struct lp_client_failure why = lp_client_limit(client, err);
    if (client->is_old_sse)
        lp_open_stream_failed(client, &why);
    else
        lp_client_note(client, "no memory for the notification stream");
}

static void on_reopen(void *ctx)
{
    struct lp_client *client = ctx;
    if (client->state == LP_CLIENT_OPEN)
        lp_stream_open(client);
}

void lp_stream_close(struct lp_client *client)
{
    lp_fetcher_timer_cancel(client->fetcher, &client->stream_timer);
    lp_exchange_drop(client->stream);
    lp_call_cancel(client, client->listen, LP_SPAN(""));
    client->stream = NULL;
    client->listen = 0;
}

static void end_old_sse(struct lp_exchange *x, const struct lp_client_failure *why)
{
    struct lp_client *client = x->client;
    struct lp_client_failure lost = {
        .kind = LP_FAILURE_LOST, .error = LP_EBROKEN, .reason = LP_REASON_session_closed};
    if (client->state == LP_CLIENT_OPENING) {
        lost.kind = LP_FAILURE_GARBLED;
        if (!why) /* its sentence is in the same room */
            lost.sentence =
                lp_client_say(client, "the event stream ended before the session was open");
        lp_open_stream_failed(client, why ? why : &lost);
        return;
    }
    lost.sentence = lp_client_say(
        client, "the event stream ended, and with it the session: with old HTTP+SSE they are one");
    lp_client_lose(client, &lost, x);
}

void lp_stream_ended(struct lp_exchange *x, const struct lp_client_failure *why)
{
    struct lp_client *client = x->client;
    client->stream = NULL;
    lp_client_stream_settled(client);
    if (x->is_old_sse) {
        end_old_sse(x, why);
        return;
    }
    bool is_refusal = why &&
        (why->kind == LP_FAILURE_STATUS || why->kind == LP_FAILURE_GARBLED ||
            why->kind == LP_FAILURE_LOST);
    bool may_come_back =
        is_refusal && (why->status == 409 || why->status == 429 || why->status >= 500);
    if (is_refusal && why->status == 405)
        return; /* this server has none */
    if (is_refusal && !may_come_back) {
        lp_client_note(client, "there is no notification stream: %.*s", (int)why->sentence.len,
            why->sentence.ptr);
        return;
    }
    if (why && !client->stream_resume.tries)
        lp_client_note(client, "the notification stream is opened again: %.*s",
            (int)why->sentence.len, why->sentence.ptr);
    reopen_later(client);
}
