/* HTTP of the sample server: which request is it, and how its answer leaves (wire document 4, 2.3).
 *
 * The head decides all it can (path, method, Host, type, session); the body is gathered up to its
 * limit and judged whole. Answers go through request->out in slices, so that an answer over link's
 * backlog limit waits for its reader. What the messages mean is sample_rpc.c's. */
#include "base/error.h"
#include "mcp/replay.h"
#include "mcp/reply.h"
#include "serve/guard.h"
#include "serve/sample_priv.h"
#include "wire/http1.h"
#include "wire/sse.h"

enum { SLICE = 32768, OUT_MAX = 16 << 20, STREAM_BACKLOG_MAX = LP_LINK_HIGH_WATER };

struct lp_sample_request *lp_sample_request_get(const struct lp_sample *sample, lp_id id)
{
    return lp_slab_get(&sample->requests, id);
}

/* --- birth and death of a request --- */

static struct lp_sample_request *new_request(struct lp_sample *sample, struct lp_stream s)
{
    lp_id id;
    struct lp_sample_request *r = lp_slab_new(&sample->requests, &id);
    if (!r)
        return NULL;
    r->id = id;
    r->stream = s;
    r->timer = (struct lp_timer){.kind = LP_TIMER_SAMPLE_REQUEST, .owner = id};
    lp_buf_init(&r->in, LP_SAMPLE_BODY_MAX);
    lp_buf_init(&r->out.buf, OUT_MAX);
    lp_buf_init(&r->slow.id, LP_SAMPLE_ID_MAX);
    lp_buf_init(&r->slow.token, LP_SAMPLE_ID_MAX);
    lp_link_set_tag(&sample->links, s.link, id);
    return r;
}

void lp_sample_request_free(struct lp_sample *sample, struct lp_sample_request *r)
{
    struct lp_sample_session *session = lp_sample_session_get(sample, r->session);
    if (session && session->stream == r->id)
        session->stream = 0;
    lp_heap_cancel(&sample->timers, &r->timer);
    lp_buf_release(&r->in);
    lp_buf_release(&r->out.buf);
    lp_buf_release(&r->slow.id);
    lp_buf_release(&r->slow.token);
    lp_id held = r->session;
    lp_slab_free(&sample->requests, r->id);
    lp_sample_session_release(sample, held);
}

static void forget(struct lp_sample *sample, lp_id id)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    if (r)
        lp_sample_request_free(sample, r);
}

void lp_sample_drop(struct lp_sample *sample, lp_id id)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    LP_ASSERT(r);
    if (r->is_sse)
        lp_link_send_end(&sample->links, r->stream);
    else
        lp_link_abort(&sample->links, r->stream);
    forget(sample, id);
}

/* --- sending --- */

static void add(struct lp_head *head, enum lp_field_id id, struct lp_span value)
{
    int err = lp_head_add(head, id, value);
    LP_ASSERT(!err); /* a handful of fields */
}

static struct lp_head *new_head(struct lp_sample *sample, uint16_t status)
{
    struct lp_head *head = &sample->head;
    head->is_request = false;
    head->status = status;
    head->reason = lp_http1_phrase(status);
    head->minor = 1;
    head->body = LP_BODY_NONE;
    head->body_bytes = 0;
    head->field_count = 0;
    return head;
}

/* Gives what the peer takes; the rest goes when it has read (on_writable). */
static void push(struct lp_sample *sample, lp_id id)
{
    bool takes_more = true;
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    LP_ASSERT(r); /* and it stays: a connection that is lost meanwhile is told at the flush */
    while (r->out.buf.len && takes_more) {
        struct lp_span slice = lp_buf_span(&r->out.buf);
        if (slice.len > SLICE)
            slice.len = SLICE;
        takes_more = lp_link_send_body(&sample->links, r->stream, slice);
        lp_buf_consume(&r->out.buf, slice.len);
    }
    if (r->out.buf.len)
        return;
    lp_link_send_end(&sample->links, r->stream);
    forget(sample, id);
}

/* Session id on a session's answers: TypeScript servers do so, and a gateway must cope with it. */
static void add_session(struct lp_sample *sample, struct lp_sample_request *r, struct lp_head *head)
{
    const struct lp_sample_session *session = lp_sample_session_get(sample, r->session);
    if (session)
        add(head, LP_FIELD_MCP_SESSION_ID, lp_span(session->text, session->text_len));
}

static void send_json(struct lp_sample *sample, struct lp_sample_request *r, uint16_t status)
{
    struct lp_head *head = new_head(sample, status);
    if (r->out.buf.len) {
        head->body = LP_BODY_LENGTH;
        head->body_bytes = r->out.buf.len;
        add(head, LP_FIELD_CONTENT_TYPE, LP_SPAN("application/json"));
    }
    if (status == 405)
        add(head, LP_FIELD_ALLOW,
            sample->mode == LP_SAMPLE_LOCAL ? LP_SPAN("GET, POST, DELETE") : LP_SPAN("POST"));
    if (status == 503)
        add(head, LP_FIELD_RETRY_AFTER, LP_SPAN("1"));
    add_session(sample, r, head);
    r->state = LP_SAMPLE_SENDING;
    lp_id id = r->id;
    lp_link_send_head(&sample->links, r->stream, head);
    push(sample, id);
}

/* The bytes of one event around `json`, into r->out. */
static void wrap_event(struct lp_sample_request *r, struct lp_span json)
{
    if (lp_sse_write(&r->out.buf, LP_SPAN("message"), LP_SPAN(""), json))
        r->out.failed = true;
}

static void finish_sse(struct lp_sample *sample, struct lp_sample_request *r)
{
    struct lp_buf json = r->out.buf;
    lp_buf_init(&r->out.buf, OUT_MAX);
    wrap_event(r, lp_buf_span(&json));
    lp_buf_release(&json);
    lp_id id = r->id;
    if (r->out.failed) {
        lp_link_abort(&sample->links, r->stream);
        forget(sample, id);
        return;
    }
    r->state = LP_SAMPLE_SENDING;
    push(sample, id);
}

void lp_sample_finish(struct lp_sample *sample, lp_id id, uint16_t status)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    LP_ASSERT(r);
    lp_buf_release(&r->in);
    if (r->is_sse) {
        finish_sse(sample, r);
        return;
    }
    if (r->out.failed) {
        lp_buf_clear(&r->out.buf);
        status = 503;
    }
    send_json(sample, r, status);
}

void lp_sample_begin_sse(struct lp_sample *sample, lp_id id)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    LP_ASSERT(r && !r->is_sse);
    struct lp_head *head = new_head(sample, 200);
    head->body = LP_BODY_CHUNKED;
    add(head, LP_FIELD_CONTENT_TYPE, LP_SPAN("text/event-stream"));
    add(head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-cache, no-transform"));
    add(head, LP_FIELD_X_ACCEL_BUFFERING, LP_SPAN("no"));
    add_session(sample, r, head);
    r->is_sse = true;
    lp_link_send_head(&sample->links, r->stream, head);
}

void lp_sample_send_event(struct lp_sample *sample, lp_id id, struct lp_span json)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    LP_ASSERT(r);
    if (lp_link_backlog(&sample->links, r->stream) >= STREAM_BACKLOG_MAX)
        return;
    wrap_event(r, json);
    struct lp_buf event = r->out.buf;
    lp_buf_init(&r->out.buf, OUT_MAX);
    bool takes_more = lp_link_send_body(&sample->links, r->stream, lp_buf_span(&event));
    (void)takes_more; /* asked again before the next one */
    lp_buf_release(&event);
}

static void refuse_message(struct lp_sample *sample, struct lp_sample_request *r,
    enum lp_reason why, struct lp_span message_id)
{
    struct lp_reply reply = {.reason = why, .id = message_id};
    if (lp_reply_write(&r->out.buf, &reply))
        r->out.failed = true;
    lp_sample_finish(sample, r->id, (uint16_t)lp_reason_info(why)->http_status);
}

static void refuse(struct lp_sample *sample, struct lp_sample_request *r, enum lp_reason why)
{
    refuse_message(sample, r, why, LP_SPAN(""));
}

/* Asks the platform to send the request once more, to the session's owner. */
static void answer_replay(struct lp_sample *sample, struct lp_sample_request *r)
{
    char room[LP_REPLAY_TEXT_MAX];
    struct lp_head *head = new_head(sample, 204);
    add(head, LP_FIELD_FLY_REPLAY,
        lp_replay_value(r->owner, sample->replay == LP_SAMPLE_REPLAY_STRICT, room));
    r->state = LP_SAMPLE_SENDING;
    lp_id id = r->id;
    lp_link_send_head(&sample->links, r->stream, head);
    push(sample, id);
}

static void refuse_with(
    struct lp_sample *sample, struct lp_sample_request *r, uint16_t status, const char *message)
{
    lp_sample_rpc_error(&r->out, LP_SPAN(""), -32000, message);
    lp_sample_finish(sample, r->id, status);
}

/* --- streams and sessions --- */

static void send_comment(struct lp_sample *sample, struct lp_sample_request *r)
{
    int err = lp_heap_set(&sample->timers, &r->timer, sample->now_us + LP_SAMPLE_COMMENT_US);
    if (err) {
        lp_sample_drop(sample, r->id);
        return;
    }
    bool takes_more = lp_link_send_body(&sample->links, r->stream, LP_SPAN(": limpet replica\n\n"));
    (void)takes_more; /* a reader who takes nothing is link's business */
}

/* The id is another owner's, and the platform can bring the request there: once, never twice. */
static bool is_to_be_replayed(const struct lp_sample *sample, const struct lp_sample_request *r)
{
    return sample->replay != LP_SAMPLE_REPLAY_OFF && r->has_session_header &&
        r->whose == LP_WHOSE_OTHERS && !r->was_replayed;
}

/* Why a request without a session of this process gets none. */
static enum lp_reason reason_without_session(const struct lp_sample_request *r)
{
    if (!r->has_session_header)
        return LP_REASON_missing_session;
    if (r->whose == LP_WHOSE_OTHERS)
        return r->was_replayed ? LP_REASON_session_passed_on : LP_REASON_session_no_replica;
    return r->whose == LP_WHOSE_OURS ? LP_REASON_session_lost : LP_REASON_session_no_owner;
}

/* The session of a request that must have one; NULL when it was answered instead. */
static struct lp_sample_session *demand_session(
    struct lp_sample *sample, struct lp_sample_request *r, struct lp_span message_id)
{
    struct lp_sample_session *session = NULL;
    if (r->has_session_header && r->whose == LP_WHOSE_OURS)
        session = lp_sample_session_find(sample, r->key);
    if (session)
        return session;
    if (is_to_be_replayed(sample, r))
        answer_replay(sample, r);
    else
        refuse_message(sample, r, reason_without_session(r), message_id);
    return NULL;
}

static void hold(
    struct lp_sample *sample, struct lp_sample_request *r, struct lp_sample_session *session)
{
    r->session = session->id;
    lp_sample_session_hold(sample, session);
}

static void on_get(struct lp_sample *sample, struct lp_sample_request *r)
{
    struct lp_sample_session *session = demand_session(sample, r, LP_SPAN(""));
    if (!session)
        return;
    if (!r->wants_sse) {
        refuse_with(sample, r, 406, "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    if (session->stream) {
        refuse_with(sample, r, 409, "Conflict: Only one SSE stream is allowed per session");
        return;
    }
    hold(sample, r, session);
    session->stream = r->id;
    r->state = LP_SAMPLE_STREAM;
    lp_sample_begin_sse(sample, r->id);
    send_comment(sample, r);
}

static void on_delete(struct lp_sample *sample, struct lp_sample_request *r)
{
    struct lp_sample_session *session = demand_session(sample, r, LP_SPAN(""));
    if (!session)
        return;
    lp_sample_session_end(sample, session);
    lp_sample_finish(sample, r->id, 200);
}

/* --- POST --- */

static void answer_initialize(
    struct lp_sample *sample, struct lp_sample_request *r, const struct lp_envelope *env)
{
    struct lp_sample_session *session = NULL;
    if (sample->mode == LP_SAMPLE_LOCAL) {
        session = lp_sample_session_new(sample);
        if (!session) {
            refuse_message(sample, r, LP_REASON_over_capacity, env->id);
            return;
        }
        hold(sample, r, session);
    }
    struct lp_sample_call call = {.session = session, .request = r, .env = env, .out = &r->out};
    call.message = lp_buf_span(&r->in);
    lp_sample_rpc_initialize(sample, &call);
    lp_sample_finish(sample, r->id, 200);
}

static void answer_call(struct lp_sample *sample, const struct lp_sample_call *call)
{
    const struct lp_envelope *env = call->env;
    struct lp_sample_request *r = call->request;
    bool takes_batch =
        call->session ? strcmp(call->session->version, "2025-03-26") == 0 : r->takes_batch;
    if (env->is_batch && !takes_batch) {
        refuse(sample, r, LP_REASON_bad_batch);
        return;
    }
    if (call->session)
        hold(sample, r, call->session);
    lp_id id = r->id;
    enum lp_sample_outcome outcome =
        env->is_batch ? lp_sample_rpc_batch(sample, call) : lp_sample_rpc(sample, call);
    if (outcome != LP_SAMPLE_LATER)
        lp_sample_finish(sample, id, outcome == LP_SAMPLE_SILENT ? 202 : 200);
}

/* A message that is no `initialize`. */
static void on_message(
    struct lp_sample *sample, struct lp_sample_request *r, const struct lp_envelope *env)
{
    struct lp_sample_call call = {.request = r, .env = env, .out = &r->out};
    call.message = lp_buf_span(&r->in);
    if (sample->mode == LP_SAMPLE_LOCAL) {
        call.session =
            demand_session(sample, r, env->has_id && !env->is_batch ? env->id : LP_SPAN(""));
        if (!call.session)
            return;
    }
    answer_call(sample, &call);
}

static void on_post(struct lp_sample *sample, struct lp_sample_request *r)
{
    struct lp_envelope env;
    int err = lp_envelope_scan(lp_buf_span(&r->in), &env);
    bool is_message = env.is_object &&
        (env.method != LP_RPC_NONE || env.has_result || env.has_error) &&
        (!env.has_id || env.id_is_valid);
    if (err == LP_ESYNTAX || err == LP_ELIMIT)
        refuse(sample, r, LP_REASON_bad_json);
    else if (err || (!env.is_batch && !is_message))
        refuse(sample, r, LP_REASON_bad_message);
    else if (env.is_batch && (env.batch_is_empty || env.batch_has_initialize))
        refuse(sample, r, LP_REASON_bad_batch);
    else if (env.method == LP_RPC_INITIALIZE && env.has_id)
        answer_initialize(sample, r, &env);
    else
        on_message(sample, r, &env);
}

/* --- heads --- */

static void take_session_header(
    struct lp_sample *sample, struct lp_sample_request *r, const struct lp_head *head)
{
    struct lp_span owner;
    const struct lp_field *field = lp_head_find(head, LP_FIELD_MCP_SESSION_ID, NULL);
    r->has_session_header = field != NULL;
    if (!field)
        return;
    r->whose = lp_session_id_judge(sample->owner, field->value, &r->key, &owner);
    if (r->whose == LP_WHOSE_OTHERS) {
        memcpy(r->owner_room, owner.ptr, owner.len);
        r->owner = lp_span(r->owner_room, owner.len);
    }
    r->was_replayed = lp_head_find(head, LP_FIELD_FLY_REPLAY_SRC, NULL) ||
        lp_head_find(head, LP_FIELD_FLY_REPLAY_FAILED, NULL);
}

static bool is_json(const struct lp_head *head)
{
    struct lp_span rest = lp_head_value(head, LP_FIELD_CONTENT_TYPE);
    struct lp_span type = lp_span_trim(lp_span_split(rest, ';', &rest));
    return lp_span_ieq(type, LP_SPAN("application/json"));
}

static bool path_is_ours(const struct lp_sample *sample, const struct lp_head *head)
{
    struct lp_span query;
    return lp_span_eq(lp_span_split(head->target, '?', &query), sample->path);
}

static bool version_is_fine(const struct lp_head *head)
{
    const struct lp_field *field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, NULL);
    return !field || lp_sample_version(field->value);
}

/* Without a session only the header tells; without it, it is 2025-03-26 (wire document 5). */
static bool takes_batch(const struct lp_head *head)
{
    const struct lp_field *field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, NULL);
    return !field || lp_span_eq(field->value, LP_SPAN("2025-03-26"));
}

/* What the head alone refuses, or LP_REASON_none. */
static enum lp_reason judge_head(
    struct lp_sample *sample, struct lp_stream s, const struct lp_head *head)
{
    bool is_loopback = lp_link_facts(&sample->links, s.link).is_loopback;
    if (is_loopback && !lp_guard_allows(head))
        return lp_head_find(head, LP_FIELD_ORIGIN, NULL) ? LP_REASON_origin_refused
                                                         : LP_REASON_host_refused;
    if (!path_is_ours(sample, head))
        return LP_REASON_unknown_path;
    bool is_post = head->method == LP_METHOD_POST;
    if (!is_post && sample->mode == LP_SAMPLE_STATELESS)
        return LP_REASON_method_not_allowed;
    if (!is_post && head->method != LP_METHOD_GET && head->method != LP_METHOD_DELETE)
        return LP_REASON_method_not_allowed;
    if (is_post && !is_json(head))
        return LP_REASON_bad_media_type;
    if (head->body == LP_BODY_LENGTH && head->body_bytes > LP_SAMPLE_BODY_MAX)
        return LP_REASON_body_too_large;
    return LP_REASON_none;
}

/* The platform keeps no longer body to send again, and of a chunked one nobody knows ([S5]). */
static bool is_over_replay(const struct lp_head *head)
{
    return head->body == LP_BODY_CHUNKED ||
        (head->body == LP_BODY_LENGTH && head->body_bytes > LP_REPLAY_BODY_MAX);
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = new_request(sample, s);
    if (!r) {
        lp_link_abort(&sample->links, s);
        return;
    }
    struct lp_span accept = lp_head_value(head, LP_FIELD_ACCEPT);
    r->wants_sse = lp_span_search(accept, LP_SPAN("text/event-stream")) < accept.len;
    r->takes_batch = takes_batch(head);
    r->method = head->method;
    if (sample->mode == LP_SAMPLE_LOCAL)
        take_session_header(sample, r, head);
    enum lp_reason why = judge_head(sample, s, head);
    if (why)
        refuse(sample, r, why);
    else if (!version_is_fine(head))
        refuse_with(sample, r, 400,
            "Bad Request: Unsupported protocol version (supported versions: " LP_SAMPLE_VERSIONS
            ")");
    else if (is_to_be_replayed(sample, r) && is_over_replay(head))
        refuse(sample, r, LP_REASON_replay_too_large);
    else if (head->expect_continue)
        lp_link_continue(&sample->links, s);
}

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)s;
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = lp_sample_request_get(sample, tag);
    LP_ASSERT(r && r->state == LP_SAMPLE_READING); /* an answer that is early ends the stream */
    if (lp_buf_append(&r->in, bytes))
        refuse(sample, r, LP_REASON_body_too_large);
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    (void)whole;
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = lp_sample_request_get(sample, tag);
    LP_ASSERT(r && r->state == LP_SAMPLE_READING);
    if (r->method == LP_METHOD_GET)
        on_get(sample, r);
    else if (r->method == LP_METHOD_DELETE)
        on_delete(sample, r);
    else
        on_post(sample, r);
}

static void on_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = lp_sample_request_get(sample, tag);
    LP_ASSERT(r);
    if (r->state == LP_SAMPLE_SENDING)
        push(sample, tag);
}

/* A client that leaves a call has not cancelled it (2025-03-26), but nobody keeps its answer here;
 * one that leaves its GET stream has closed it. */
static void on_left(void *ctx, uint64_t tag, struct lp_stream s)
{
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = lp_sample_request_get(sample, tag);
    LP_ASSERT(r);
    if (r->state == LP_SAMPLE_SENDING)
        return;
    lp_link_abort(&sample->links, s);
    forget(sample, tag);
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    forget(ctx, tag);
}

static void on_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    struct lp_sample *sample = ctx;
    struct lp_sample_request *r = lp_sample_request_get(sample, tag);
    if (!r)
        r = new_request(sample, s);
    if (r)
        refuse(sample, r, why);
    else
        lp_link_abort(&sample->links, s);
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why; /* a connection between two requests holds nothing of ours */
}

/* No `connected`: this server connects to nobody. */
const struct lp_message_ops lp_sample_ops = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .writable = on_writable,
    .left = on_left,
    .reset = on_reset,
    .refused = on_refused,
    .closed = on_closed,
};

void lp_sample_request_timer(struct lp_sample *sample, lp_id id)
{
    struct lp_sample_request *r = lp_sample_request_get(sample, id);
    if (r && r->state == LP_SAMPLE_STREAM)
        send_comment(sample, r);
    else if (r && r->state == LP_SAMPLE_WORKING)
        lp_sample_slow_step(sample, r);
}
