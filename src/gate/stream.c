/* Event streams on their way to the client (requirements [G4], [G10]): nothing is held back and
 * nothing is changed, but comments are put between events, and two events are rewritten: the
 * endpoint of old SSE, and the answer that names a task.
 *
 * Invariant: what is put in goes where x->border says that an event has ended, never inside one. */
#include <stdlib.h>

#include "base/error.h"
#include "gate/engine_priv.h"

enum { OLD_SSE_EVENT_MAX = 16 << 20 };

static const struct lp_span COMMENT = {": limpet\n\n", 10};

static bool send(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    if (!bytes.len)
        return true;
    lp_sse_border_feed(&x->border, bytes);
    x->last_event_us = e->mono_us;
    return lp_link_send_body(&e->links, x->down, bytes);
}

static void put_comment(struct lp_engine *e, struct lp_exchange *x)
{
    lp_metrics_add(&e->metrics, LP_METRIC_SSE_COMMENTS, 1);
    x->last_event_us = e->mono_us;
    lp_link_send_body(&e->links, x->down, COMMENT);
}

static uint64_t every_us(const struct lp_exchange *x)
{
    return x->is_encoded ? 0 : x->server->conf->comment_ms * 1000;
}

static void start_events(struct lp_exchange *x)
{
    size_t held_max = x->is_old_sse ? LP_SSE_HOLD_MAX : lp_task_held_max(x);
    x->sse = malloc(sizeof *x->sse);
    if (x->sse)
        lp_sse_init(x->sse, x->is_old_sse ? OLD_SSE_EVENT_MAX : held_max);
    lp_buf_release(&x->held);
    lp_buf_init(&x->held, held_max);
}

/* An event longer than any that would be rewritten: they flow on unseen from here. */
static bool stop_events(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    lp_sse_release(x->sse);
    free(x->sse);
    x->sse = NULL;
    x->reads_events = false;
    send(e, x, lp_buf_span(&x->held));
    lp_buf_release(&x->held);
    return send(e, x, bytes);
}

void lp_stream_begin(struct lp_engine *e, struct lp_exchange *x)
{
    lp_metrics_add(&e->metrics, LP_METRIC_STREAMS_OPEN, 1);
    lp_sse_border_init(&x->border);
    x->last_event_us = e->mono_us;
    x->reads_events = x->is_old_sse || (lp_task_is_awaited(x) && !x->is_encoded);
    if (x->reads_events)
        start_events(x);
    if (!x->is_old_sse) /* which needs the Host that was asked for */
        lp_exchange_drop_request(e, x);
    if (every_us(x)) {
        put_comment(e, x);
        lp_engine_arm(e, &x->comment_timer, e->mono_us + every_us(x));
    }
    if (!x->is_standalone || x->verdict.kind != LP_VERDICT_FORWARD)
        return;
    x->has_session_stream = true;
    struct lp_mail mail = {.kind = LP_MAIL_STREAM,
        .key = x->ticket.key,
        .server = x->server->index,
        .replica = x->leg.replica,
        .exchange = x->id};
    lp_mail_send(e, lp_home_of(e, x->ticket.key), &mail);
}

void lp_stream_comment(struct lp_engine *e, struct lp_exchange *x)
{
    LP_ASSERT(x->down_open && every_us(x));
    uint64_t due_us = x->last_event_us + every_us(x);
    if (due_us <= e->mono_us) {
        if (lp_sse_border_at(&x->border) && !x->down_blocked)
            put_comment(e, x);
        due_us = e->mono_us + every_us(x);
    }
    lp_engine_arm(e, &x->comment_timer, due_us);
}

/* --- the endpoint event of old SSE --- */

/* `detail` NULL: the reason's own sentence. */
static void fail(
    struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason, const char *detail)
{
    lp_engine_say(e, LP_LOG_WARN, "event stream of replica %.*s was ended: %s",
        (int)x->record.replica.len, x->record.replica.ptr,
        detail ? detail : lp_reason_info(reason)->sentence);
    lp_answer(e, x, reason, detail);
}

static void fail_endpoint(struct lp_engine *e, struct lp_exchange *x, int err)
{
    switch (err) {
    case LP_EREFUSED:
        fail(e, x, LP_REASON_endpoint_refused,
            "the endpoint event points to another origin; name the path only");
        return;
    case LP_ESYNTAX:
        fail(e, x, LP_REASON_endpoint_refused, "the endpoint event is not a URI reference");
        return;
    case LP_ENOMEM:
        fail(e, x, LP_REASON_out_of_memory, NULL);
        return;
    default:
        fail(e, x, LP_REASON_endpoint_refused, "the endpoint event is too long");
    }
}

static int write_url(struct lp_buf *out, bool is_tls, struct lp_span authority, struct lp_span path)
{
    int err = lp_buf_append(out, is_tls ? LP_SPAN("https://") : LP_SPAN("http://"));
    if (!err)
        err = lp_buf_append(out, authority);
    return err ? err : lp_buf_append(out, path);
}

/* The announced address taken apart: what the token seals, and what stays visible. */
static int split_endpoint(
    struct lp_exchange *x, struct lp_span data, struct lp_buf *sealed, struct lp_buf *kept)
{
    const struct lp_conf_server *conf = x->server->conf;
    const struct lp_conf_address *address = &lp_leg_replica(x)->conf->address;
    struct lp_uri stream, visible;
    struct lp_buf at, seen;
    lp_buf_init(&at, 8192);
    lp_buf_init(&seen, 8192);
    int err = write_url(&at, address->is_tls,
        address->is_unix ? LP_SPAN("localhost") : address->authority, conf->sse_upstream);
    if (!err)
        err = lp_uri_parse(lp_buf_span(&at), &stream);
    if (!err)
        err = write_url(&seen, false, x->host, conf->sse_path);
    bool has_visible = !err && x->host.len && !lp_uri_parse(lp_buf_span(&seen), &visible);
    if (!err)
        err = lp_endpoint_split(data, &stream, has_visible ? &visible : NULL, sealed, kept);
    lp_buf_release(&at);
    lp_buf_release(&seen);
    return err;
}

static bool rewrite_endpoint(
    struct lp_engine *e, struct lp_exchange *x, const struct lp_sse_event *event)
{
    struct lp_buf sealed, kept, address, out;
    struct lp_span token;
    lp_buf_init(&sealed, 8192);
    lp_buf_init(&kept, 8192);
    lp_buf_init(&address, 16384);
    lp_buf_init(&out, 20000);
    int err = split_endpoint(x, event->data, &sealed, &kept);
    if (!err)
        err = lp_seal(e, x, LP_TICKET_SSE, lp_buf_span(&sealed), &token);
    if (!err)
        err = lp_endpoint_visible(&address, x->server->conf->sse_path, token, lp_buf_span(&kept));
    if (!err)
        err = lp_sse_write(&out, LP_SPAN("endpoint"), event->has_id ? event->id : LP_SPAN(""),
            lp_buf_span(&address));
    bool goes_on = false;
    if (err) {
        fail_endpoint(e, x, err);
    } else {
        x->endpoint_done = true;
        x->record.session = x->ticket.key.lo;
        lp_metrics_add(&e->metrics, LP_METRIC_SESSIONS_OPENED, 1);
        lp_home_opened(e, x, x->ticket.key);
        goes_on = send(e, x, lp_buf_span(&out));
    }
    lp_buf_release(&sealed);
    lp_buf_release(&kept);
    lp_buf_release(&address);
    lp_buf_release(&out);
    return goes_on;
}

/* Bytes of an event that is not complete yet are held: it might be one to rewrite. One that is too
 * long for that flows on, unless the endpoint is still to come. */
static bool hold_event(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    bool is_short = x->sse->raw_bytes <= x->held.max;
    if (is_short && !lp_buf_append(&x->held, bytes))
        return true;
    if (is_short || (x->is_old_sse && !x->endpoint_done)) {
        fail_endpoint(e, x, is_short ? LP_ENOMEM : LP_ETOO_LONG);
        return false;
    }
    send(e, x, lp_buf_span(&x->held));
    lp_buf_release(&x->held);
    return send(e, x, bytes);
}

/* The event, saying `message`. */
static bool send_answer(struct lp_engine *e, struct lp_exchange *x,
    const struct lp_sse_event *event, struct lp_span message)
{
    struct lp_buf out;
    bool goes_on = false;
    lp_buf_init(&out, 2 * message.len + x->held.max);
    int err = lp_sse_write(&out, event->type, event->has_id ? event->id : LP_SPAN(""), message);
    if (err)
        fail(e, x, LP_REASON_out_of_memory, NULL);
    else
        goes_on = send(e, x, lp_buf_span(&out));
    lp_buf_release(&out);
    return goes_on;
}

/* The answer of a call that has become a task, or of tasks/get; part of a longer one may be out. */
static bool pass_answer(struct lp_engine *e, struct lp_exchange *x,
    const struct lp_sse_event *event, struct lp_span bytes)
{
    struct lp_buf message;
    bool is_whole = event->raw_bytes <= x->held.max;
    int err = is_whole ? lp_task_show(e, x, event->data, &message) : LP_ENOT_FOUND;
    bool goes_on = false;
    if (err == LP_ENOT_FOUND) {
        send(e, x, lp_buf_span(&x->held));
        goes_on = send(e, x, bytes);
    } else if (err) {
        fail(e, x, lp_task_reason(err), NULL);
    } else {
        goes_on = send_answer(e, x, event, lp_buf_span(&message));
        lp_buf_release(&message);
    }
    lp_buf_release(&x->held);
    return goes_on;
}

static bool pass_event(struct lp_engine *e, struct lp_exchange *x, const struct lp_sse_event *event,
    struct lp_span bytes)
{
    if (!x->is_old_sse)
        return pass_answer(e, x, event, bytes);
    bool is_endpoint = lp_span_eq(event->type, LP_SPAN("endpoint"));
    bool goes_on = true;
    if (is_endpoint && !x->endpoint_done)
        goes_on = rewrite_endpoint(e, x, event);
    else if (!is_endpoint) {
        send(e, x, lp_buf_span(&x->held));
        goes_on = send(e, x, bytes);
    } /* a second endpoint event would lead clients astray: it is dropped */
    lp_buf_release(&x->held);
    return goes_on;
}

static bool pass_events(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    bool goes_on = true;
    while (bytes.len && x->phase != LP_PHASE_OVER) {
        struct lp_sse_event event;
        bool ready = false;
        ptrdiff_t n = lp_sse_feed(x->sse, bytes, &event, &ready);
        if (n == LP_ETOO_LONG && !x->is_old_sse)
            return stop_events(e, x, bytes);
        if (n < 0) {
            fail(e, x, LP_REASON_upstream_garbled, NULL);
            return false;
        }
        struct lp_span taken = lp_span(bytes.ptr, (size_t)n);
        goes_on = ready ? pass_event(e, x, &event, taken) : hold_event(e, x, taken);
        bytes = lp_span_from(bytes, (size_t)n);
    }
    return goes_on;
}

/* After our comment a byte order mark would not be at the start of the stream any more. */
static struct lp_span drop_bom(struct lp_exchange *x, struct lp_span bytes)
{
    static const char BOM[] = "\xEF\xBB\xBF";
    enum { SETTLED = 4 };
    if (!every_us(x))
        return bytes;
    while (x->bom_seen < 3 && bytes.len && bytes.ptr[0] == BOM[x->bom_seen]) {
        x->bom_seen++;
        bytes = lp_span_from(bytes, 1);
    }
    if (bytes.len)
        x->bom_seen = SETTLED;
    return bytes;
}

bool lp_stream_pass(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    if (x->bom_seen < 3)
        bytes = drop_bom(x, bytes);
    if (x->reads_events && !x->sse) { /* unread, it would go out as it is */
        fail(e, x, LP_REASON_out_of_memory, NULL);
        return false;
    }
    if (x->sse)
        return pass_events(e, x, bytes);
    return send(e, x, bytes);
}

void lp_stream_fini(struct lp_engine *e, struct lp_exchange *x)
{
    lp_heap_cancel(&e->timers, &x->comment_timer);
    if (x->is_sse && x->down_begun)
        lp_metrics_add(&e->metrics, LP_METRIC_STREAMS_OPEN, -1);
    if (x->has_session_stream) {
        struct lp_mail mail = {.kind = LP_MAIL_UNSTREAM, .key = x->ticket.key, .exchange = x->id};
        x->has_session_stream = false;
        lp_mail_send(e, lp_home_of(e, x->ticket.key), &mail);
    }
    if (x->endpoint_done) {
        struct lp_mail mail = {.kind = LP_MAIL_CLOSED, .key = x->ticket.key};
        x->endpoint_done = false;
        lp_mail_all(e, &mail);
        lp_home_ended(e, x->ticket.key, LP_END_CLOSED);
    }
    if (x->sse)
        lp_sse_release(x->sse);
    free(x->sse);
    x->sse = NULL;
}
