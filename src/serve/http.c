/* Requests: which one is it, and what does it get (wire document 4, 2.3).
 *
 * The head decides all it can (path, method, Host, type, token, session); the body is gathered up
 * to its limit and judged whole. How answers leave is respond.c's and channel.c's, what the
 * messages mean is rpc.c's. */
#include "base/error.h"
#include "mcp/cors.h"
#include "mcp/replay.h"
#include "mcp/version.h"
#include "serve/guard.h"
#include "serve/mirror.h"
#include "serve/server_priv.h"
#include "serve/shared.h"

/* --- birth and death of a request --- */

struct lp_request *lp_request_get(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->requests, id);
}

static struct lp_request *new_request(struct lp_server *server, struct lp_stream s)
{
    lp_id id;
    struct lp_request *r = lp_slab_new(&server->requests, &id);
    if (!r)
        return NULL;
    r->id = id;
    r->stream = s;
    r->timer = (struct lp_timer){.kind = LP_TIMER_SERVER_REQUEST, .owner = id};
    lp_buf_init(&r->mirror, LP_MIRROR_MAX);
    lp_buf_init(&r->in, LP_SERVER_BODY_MAX);
    lp_buf_init(&r->origin, LP_CORS_ORIGIN_MAX);
    lp_buf_init(&r->names, LP_CORS_LIST_MAX);
    lp_out_init(&r->out);
    lp_link_set_tag(&server->links, s.link, id);
    return r;
}

void lp_request_free(struct lp_server *server, struct lp_request *r)
{
    lp_id channel = r->channel;
    lp_heap_cancel(&server->timers, &r->timer);
    lp_buf_release(&r->mirror);
    lp_buf_release(&r->in);
    lp_buf_release(&r->origin);
    lp_buf_release(&r->names);
    lp_out_release(&r->out);
    lp_slab_free(&server->requests, r->id);
    lp_channel_detach(server, channel);
}

static void forget(struct lp_server *server, lp_id id)
{
    struct lp_request *r = lp_request_get(server, id);
    if (r)
        lp_request_free(server, r);
}

void lp_request_timer(struct lp_server *server, lp_id id)
{
    struct lp_request *r = lp_request_get(server, id);
    const struct lp_channel *ch = r ? lp_channel_get(server, r->channel) : NULL;
    if (!ch || r->state != LP_REQUEST_STREAM)
        return;
    /* Without memory for the timer there is no further comment. */
    (void)!lp_heap_set(&server->timers, &r->timer, server->now_us + LP_SERVER_COMMENT_US);
    if (ch->offset == 0) /* only between events; a reader who takes nothing is link's business */
        (void)lp_link_send_body(&server->links, r->stream, LP_SPAN(": limpet\n\n"));
}

/* --- which session --- */

/* The id is another owner's, and the platform can bring the request there: once, never twice. */
static bool is_to_be_replayed(const struct lp_server *server, const struct lp_request *r)
{
    return server->args.replay != LP_SERVER_REPLAY_OFF && r->whose == LP_WHOSE_OTHERS &&
        !r->was_replayed;
}

/* Why a request without a session of this process gets none. */
static enum lp_reason reason_without_session(const struct lp_request *r)
{
    if (!r->has_session_header)
        return LP_REASON_missing_session;
    if (r->whose == LP_WHOSE_OTHERS)
        return r->was_replayed ? LP_REASON_session_passed_on : LP_REASON_session_no_replica;
    return r->whose == LP_WHOSE_OURS ? LP_REASON_session_lost : LP_REASON_session_no_owner;
}

/* What an answer to all of it as a whole names; empty: null. */
static struct lp_span id_of(const struct lp_envelope *env)
{
    return env->has_id && !env->is_batch ? env->id : LP_SPAN("");
}

static void refuse_without_session(struct lp_server *server, struct lp_request *r)
{
    if (is_to_be_replayed(server, r))
        lp_respond_replay(server, r);
    else
        lp_respond_refuse(server, r, reason_without_session(r), id_of(&r->env));
}

/* The request must have a session: lp_request_found goes on with it, now or later. */
static void demand_session(struct lp_server *server, struct lp_request *r)
{
    r->state = LP_REQUEST_LOOKING;
    if (r->has_session_header && r->whose == LP_WHOSE_OURS)
        lp_session_look_up(server, r);
    else
        refuse_without_session(server, r);
}

/* --- GET and DELETE --- */

static void on_get(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    if (!r->wants_sse) {
        lp_respond_refuse_with(
            server, r, 406, "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    struct lp_channel *ch = lp_channel_find(session, r);
    if (server->shared && (!ch || ch->is_reader)) {
        lp_shared_get(server, r, session);
        return;
    }
    if (!ch) {
        r->has_event_id = false; /* an unknown one replays nothing (cases RES-02) */
        ch = lp_channel_standalone(server, session);
    }
    if (!ch)
        lp_respond_refuse(server, r, LP_REASON_out_of_memory, LP_SPAN(""));
    else if (ch->request && !r->has_event_id)
        lp_respond_refuse_with(
            server, r, 409, "Conflict: Only one SSE stream is allowed per session");
    else
        lp_channel_attach(server, ch, r);
}

static void on_delete(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    if (server->shared) {
        lp_shared_end(server, r, session);
        return;
    }
    lp_session_end(server, session);
    lp_respond_json(server, r, 200);
}

/* --- POST --- */

static void on_initialize(struct lp_server *server, struct lp_request *r)
{
    struct lp_message m = {.env = &r->env, .text = lp_buf_span(&r->in)};
    if (lp_server_has_sessions(server)) {
        m.session = lp_session_new(server, r->principal);
        if (!m.session) {
            lp_respond_refuse(server, r, lp_session_refusal(server, r->principal), r->env.id);
            return;
        }
        r->session = m.session->id;
    }
    lp_rpc_initialize(server, &m, &r->out);
    if (server->shared)
        lp_shared_create(server, r, m.session);
    else
        lp_respond_json(server, r, 200);
}

/* Messages of a session, or of nobody's in particular. */
static void on_messages(struct lp_server *server, struct lp_request *r, struct lp_message *m)
{
    const struct lp_envelope *env = m->env;
    bool is_one_way = !env->is_batch && (env->method == LP_RPC_NONE || !env->has_id);
    lp_id id = r->id;
    if (is_one_way && lp_shared_forward(server, r, m))
        return;
    if (is_one_way) {
        if (m->session)
            lp_session_hold(server, m->session);
        lp_id session = m->session ? m->session->id : 0;
        lp_rpc_message(server, m);
        lp_session_release(server, session);
        lp_respond_json(server, lp_request_get(server, id), 202);
        return;
    }
    struct lp_channel *ch = lp_channel_new(server, m->session, r);
    if (!ch) {
        lp_respond_refuse(server, r, LP_REASON_over_capacity, env->id);
        return;
    }
    ch->is_batch = env->is_batch;
    ch->is_modern = m->is_modern;
    ch->method = env->method;
    m->channel = ch->id;
    if (r->is_old_sse)
        lp_old_sse_accept(server, ch);
    if (m->is_modern)
        lp_modern_message(server, m);
    else if (env->is_batch)
        lp_rpc_batch(server, m);
    else
        lp_rpc_message(server, m);
    lp_state_run_ready(server);
    lp_channel_release(server, m->channel);
    lp_channel_settle(server, m->channel);
}

/* `session` NULL: this server has none. */
static void on_message(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    struct lp_envelope env = r->env; /* the request may end meanwhile */
    struct lp_message m = {.session = session, .env = &env, .text = lp_buf_span(&r->in)};
    bool takes_batch = session ? strcmp(session->version, "2025-03-26") == 0 : r->takes_batch;
    if (env.is_batch && !takes_batch)
        lp_respond_refuse(server, r, LP_REASON_bad_batch, LP_SPAN(""));
    else
        on_messages(server, r, &m);
}

void lp_request_found(
    struct lp_server *server, lp_id id, enum lp_found found, struct lp_session *session)
{
    struct lp_request *r = lp_request_get(server, id);
    if (!r)
        return; /* its client has left meanwhile */
    LP_ASSERT(r->state == LP_REQUEST_LOOKING);
    if (found == LP_CANNOT_TELL)
        lp_respond_refuse(server, r, LP_REASON_store_away, id_of(&r->env));
    else if (found == LP_NO_ROOM)
        lp_respond_refuse(server, r, LP_REASON_over_capacity, id_of(&r->env));
    else if (found == LP_NOT_FOUND)
        refuse_without_session(server, r);
    else if (r->is_old_sse) {
        on_message(server, r, session);
    } else {
        r->session = session->id;
        if (r->method == LP_METHOD_GET)
            on_get(server, r, session);
        else if (r->method == LP_METHOD_DELETE)
            on_delete(server, r, session);
        else
            on_message(server, r, session);
    }
}

static void refuse_version(struct lp_server *server, struct lp_request *r)
{
    lp_respond_refuse_with(server, r, 400,
        "Bad Request: Unsupported protocol version (supported versions: " LP_SERVER_VERSIONS ")");
}

/* A version header that no revision knows is refused once the body has not claimed it. */
static void on_legacy(struct lp_server *server, struct lp_request *r)
{
    if (r->has_bad_version && !r->is_old_sse)
        refuse_version(server, r);
    else if (r->env.method == LP_RPC_INITIALIZE && r->env.has_id && !r->is_old_sse)
        on_initialize(server, r);
    else if (lp_server_has_sessions(server))
        demand_session(server, r);
    else
        on_message(server, r, NULL);
}

static void on_modern(struct lp_server *server, struct lp_request *r)
{
    struct lp_envelope env = r->env; /* the request may end meanwhile */
    struct lp_message m = {
        .env = &env, .text = lp_buf_span(&r->in), .is_modern = true, .principal = r->principal};
    if (is_to_be_replayed(server, r)) /* its task is another owner's */
        lp_respond_replay(server, r);
    else
        on_messages(server, r, &m);
}

static void on_judged(struct lp_server *server, struct lp_request *r)
{
    switch (lp_modern_judge(server, r, &r->env)) {
    case LP_MODERN_NO:
        on_legacy(server, r);
        break;
    case LP_MODERN_YES:
        on_modern(server, r);
        break;
    case LP_MODERN_REFUSED:
        break;
    }
}

static void on_post(struct lp_server *server, struct lp_request *r)
{
    struct lp_envelope *env = &r->env;
    int err = lp_envelope_scan(lp_buf_span(&r->in), env);
    bool is_message = env->is_object &&
        (env->method != LP_RPC_NONE || env->has_result || env->has_error) &&
        (!env->has_id || env->id_is_valid);
    if (err == LP_ESYNTAX || err == LP_ELIMIT)
        lp_respond_refuse(server, r, LP_REASON_bad_json, LP_SPAN(""));
    else if (err || (!env->is_batch && !is_message))
        lp_respond_refuse(server, r, LP_REASON_bad_message, LP_SPAN(""));
    else if (env->is_batch && (env->batch_is_empty || env->batch_has_initialize))
        lp_respond_refuse(server, r, LP_REASON_bad_batch, LP_SPAN(""));
    else if (r->is_old_sse)
        on_legacy(server, r);
    else
        on_judged(server, r);
}

/* --- heads --- */

/* Whose session or task it is. */
static void take_id(
    struct lp_server *server, struct lp_request *r, const struct lp_head *head, struct lp_span id)
{
    struct lp_span owner;
    r->whose = lp_session_id_judge(server->args.owner, id, &r->key, &owner);
    if (r->whose == LP_WHOSE_OTHERS) {
        memcpy(r->owner_room, owner.ptr, owner.len);
        r->owner = lp_span(r->owner_room, owner.len);
    }
    r->was_replayed = lp_head_find(head, LP_FIELD_FLY_REPLAY_SRC, NULL) ||
        lp_head_find(head, LP_FIELD_FLY_REPLAY_FAILED, NULL);
}

/* `id` has a null pointer when there is none. */
static void take_session(
    struct lp_server *server, struct lp_request *r, const struct lp_head *head, struct lp_span id)
{
    r->has_session_header = id.ptr != NULL;
    if (id.ptr)
        take_id(server, r, head, id);
}

/* A task's name stands in the head so that it can be routed by (wire document 8.2). */
static void take_task(struct lp_server *server, struct lp_request *r, const struct lp_head *head)
{
    struct lp_span method = lp_head_value(head, LP_FIELD_MCP_METHOD);
    struct lp_span name = lp_head_value(head, LP_FIELD_MCP_NAME);
    if (server->offer->has_tasks && lp_span_starts(method, LP_SPAN("tasks/")) && name.ptr)
        take_id(server, r, head, name);
}

/* "<channel>-<event>", as channel.c writes them; anything else is no event of ours. */
static void take_event_id(struct lp_request *r, const struct lp_head *head)
{
    uint64_t channel;
    struct lp_span rest = lp_head_value(head, LP_FIELD_LAST_EVENT_ID);
    struct lp_span first = lp_span_split(rest, '-', &rest);
    r->has_event_id = rest.ptr && lp_span_to_u64(first, &channel) && channel <= UINT32_MAX &&
        lp_span_to_u64(rest, &r->event_number);
    if (r->has_event_id)
        r->event_channel = (uint32_t)channel;
}

static bool is_json(const struct lp_head *head)
{
    struct lp_span rest = lp_head_value(head, LP_FIELD_CONTENT_TYPE);
    struct lp_span type = lp_span_trim(lp_span_split(rest, ';', &rest));
    return lp_span_ieq(type, LP_SPAN("application/json"));
}

static bool path_is_ours(const struct lp_server *server, const struct lp_head *head)
{
    struct lp_span query;
    return lp_span_eq(lp_span_split(head->target, '?', &query), server->args.path);
}

static bool version_is_fine(const struct lp_head *head)
{
    const struct lp_field *field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, NULL);
    return !field || lp_rpc_version(field->value);
}

/* Without a session only the header tells; without it, it is 2025-03-26 (wire document 5). */
static bool takes_batch(const struct lp_head *head)
{
    const struct lp_field *field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, NULL);
    return !field || lp_span_eq(field->value, LP_SPAN("2025-03-26"));
}

/* The token of the Authorization field; empty when there is none. */
static struct lp_span bearer_token(const struct lp_head *head)
{
    struct lp_span rest = lp_head_value(head, LP_FIELD_AUTHORIZATION);
    struct lp_span scheme = lp_span_split(rest, ' ', &rest);
    return lp_span_ieq(scheme, LP_SPAN("Bearer")) ? lp_span_trim(rest) : LP_SPAN("");
}

static bool is_allowed_method(
    const struct lp_server *server, const struct lp_request *r, enum lp_method method)
{
    if (r->is_old_sse && method == LP_METHOD_DELETE)
        return false;
    bool has_sessions = lp_server_has_sessions(server) && !r->is_modern;
    return method == LP_METHOD_POST || method == LP_METHOD_OPTIONS ||
        (has_sessions && (method == LP_METHOD_GET || method == LP_METHOD_DELETE));
}

/* The page's origin, which has been found good. One that is too long gets no answer that it could
 * read. */
static enum lp_reason take_origin(struct lp_request *r, const struct lp_head *head)
{
    struct lp_span origin = lp_head_value(head, LP_FIELD_ORIGIN);
    struct lp_span asked = lp_head_value(head, LP_FIELD_ACCESS_CONTROL_REQUEST_HEADERS);
    int err = lp_buf_append(&r->origin, origin);
    if (!err && origin.len && head->method == LP_METHOD_OPTIONS)
        err = lp_cors_names(asked, &r->names);
    return err == LP_ENOMEM ? LP_REASON_out_of_memory : LP_REASON_none;
}

/* What the head alone refuses, or LP_REASON_none. */
static enum lp_reason judge_head(
    struct lp_server *server, struct lp_request *r, const struct lp_head *head)
{
    const struct lp_server_args *args = &server->args;
    bool is_loopback = lp_link_facts(&server->links, r->stream.link).is_loopback;
    enum lp_reason why = lp_guard_judge(head, is_loopback, args->origins);
    if (!why)
        why = take_origin(r, head);
    if (why)
        return why;
    if (!r->is_old_sse && !path_is_ours(server, head))
        return LP_REASON_unknown_path;
    if (!is_allowed_method(server, r, head->method))
        return LP_REASON_method_not_allowed;
    if (head->method == LP_METHOD_OPTIONS)
        return LP_REASON_none; /* a preflight brings no token (cases HDR-04) */
    if (args->bearer && !args->bearer(args->bearer_ctx, bearer_token(head), &r->principal))
        return LP_REASON_challenged;
    if (head->method == LP_METHOD_POST && !is_json(head))
        return LP_REASON_bad_media_type;
    if (head->body == LP_BODY_LENGTH && head->body_bytes > LP_SERVER_BODY_MAX)
        return LP_REASON_body_too_large;
    return LP_REASON_none;
}

/* The platform keeps no longer body to send again, and of a chunked one nobody knows ([S5]). */
static bool is_over_replay(const struct lp_head *head)
{
    return head->body == LP_BODY_CHUNKED ||
        (head->body == LP_BODY_LENGTH && head->body_bytes > LP_REPLAY_BODY_MAX);
}

/* Whether the client takes an event stream: it says so, or a GET, which can bring nothing else,
 * says that it takes anything (cases HDR-11). */
static bool accepts_sse(const struct lp_head *head)
{
    uint32_t from = 0;
    for (const struct lp_field *field; (field = lp_head_find(head, LP_FIELD_ACCEPT, &from));) {
        struct lp_span rest = field->value;
        while (rest.len) {
            struct lp_span one = lp_span_split(rest, ',', &rest);
            struct lp_span type = lp_span_trim(lp_span_split(one, ';', &one));
            bool is_any = lp_span_eq(type, LP_SPAN("*/*")) || lp_span_ieq(type, LP_SPAN("text/*"));
            if (lp_span_ieq(type, LP_SPAN("text/event-stream")) ||
                (is_any && head->method == LP_METHOD_GET))
                return true;
        }
    }
    return false;
}

static void take_head(struct lp_server *server, struct lp_request *r, const struct lp_head *head)
{
    r->wants_sse = accepts_sse(head);
    r->takes_batch = takes_batch(head);
    r->method = head->method;
    struct lp_span id;
    r->is_old_sse = lp_server_has_sessions(server) && lp_old_sse_is_for(server, head, &id);
    r->is_modern = server->args.eras != LP_ERAS_LEGACY && !r->is_old_sse &&
        lp_version_looks_modern(lp_head_value(head, LP_FIELD_MCP_PROTOCOL_VERSION));
    r->has_bad_version = !version_is_fine(head);
    if (r->is_modern)
        take_task(server, r, head);
    if (r->is_modern || !lp_server_has_sessions(server))
        return;
    if (!r->is_old_sse)
        id = lp_head_value(head, LP_FIELD_MCP_SESSION_ID);
    take_session(server, r, head, id);
    take_event_id(r, head);
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    struct lp_server *server = ctx;
    struct lp_request *r = new_request(server, s);
    if (!r) {
        lp_link_abort(&server->links, s);
        return;
    }
    take_head(server, r, head);
    enum lp_reason why = judge_head(server, r, head);
    if (why)
        lp_respond_refuse(server, r, why, LP_SPAN(""));
    else if (r->has_bad_version && r->method != LP_METHOD_POST && !r->is_old_sse)
        refuse_version(server, r);
    else if (r->method == LP_METHOD_POST && lp_mirror_keep(&r->mirror, head))
        lp_respond_refuse(server, r, LP_REASON_out_of_memory, LP_SPAN(""));
    else if (is_to_be_replayed(server, r) && is_over_replay(head))
        lp_respond_refuse(server, r, LP_REASON_replay_too_large, LP_SPAN(""));
    else if (head->expect_continue)
        lp_link_continue(&server->links, s);
}

/* --- bodies and ends --- */

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)s;
    struct lp_server *server = ctx;
    struct lp_request *r = lp_request_get(server, tag);
    LP_ASSERT(r && r->state == LP_REQUEST_READING); /* an answer that is early ends the stream */
    if (lp_buf_append(&r->in, bytes))
        lp_respond_refuse(server, r, LP_REASON_body_too_large, LP_SPAN(""));
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    (void)whole;
    struct lp_server *server = ctx;
    struct lp_request *r = lp_request_get(server, tag);
    LP_ASSERT(r && r->state == LP_REQUEST_READING);
    if (r->method == LP_METHOD_OPTIONS)
        lp_respond_options(server, r);
    else if (r->is_old_sse && r->method == LP_METHOD_GET)
        lp_old_sse_open(server, r);
    else if (r->method == LP_METHOD_POST)
        on_post(server, r);
    else
        demand_session(server, r);
}

static void on_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    struct lp_server *server = ctx;
    struct lp_request *r = lp_request_get(server, tag);
    LP_ASSERT(r);
    if (r->state == LP_REQUEST_SENDING)
        lp_respond_push(server, tag);
    else
        lp_channel_pump(server, r->channel);
}

/* A client that leaves a call has not cancelled it (2025-03-26); one that leaves its GET stream has
 * closed it. */
static void on_left(void *ctx, uint64_t tag, struct lp_stream s)
{
    struct lp_server *server = ctx;
    struct lp_request *r = lp_request_get(server, tag);
    LP_ASSERT(r);
    const struct lp_channel *ch = lp_channel_get(server, r->channel);
    bool is_ending = r->state == LP_REQUEST_SENDING || (ch && ch->is_over);
    if (is_ending)
        return;
    lp_link_abort(&server->links, s);
    forget(server, tag);
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    forget(ctx, tag);
}

static void on_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    struct lp_server *server = ctx;
    struct lp_request *r = lp_request_get(server, tag);
    if (!r)
        r = new_request(server, s);
    if (r)
        lp_respond_refuse(server, r, why, LP_SPAN(""));
    else
        lp_link_abort(&server->links, s);
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why; /* a connection between two requests holds nothing of ours */
}

/* No `connected`: this server connects to nobody. */
const struct lp_message_ops lp_server_ops = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .writable = on_writable,
    .left = on_left,
    .reset = on_reset,
    .refused = on_refused,
    .closed = on_closed,
};
