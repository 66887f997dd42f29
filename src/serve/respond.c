/* How the answer to a request leaves: heads, JSON bodies, refusals (wire document 2.3).
 *
 * JSON goes through request->out in slices, so that an answer over link's backlog limit waits for
 * its reader. Event streams are channel.c's; here is only their head. */
#include "base/error.h"
#include "mcp/cors.h"
#include "mcp/replay.h"
#include "serve/server_priv.h"
#include "wire/http1.h"

enum { SLICE = 32768, CHALLENGE_MAX = 512 };

static void add(struct lp_head *head, enum lp_field_id id, struct lp_span value)
{
    int err = lp_head_add(head, id, value);
    LP_ASSERT(!err); /* a handful of fields */
}

static struct lp_head *new_head(struct lp_server *server, uint16_t status)
{
    struct lp_head *head = &server->head;
    head->is_request = false;
    head->status = status;
    head->reason = lp_http1_phrase(status);
    head->minor = 1;
    head->body = LP_BODY_NONE;
    head->body_bytes = 0;
    head->field_count = 0;
    return head;
}

/* Session id on a session's answers: TypeScript servers do so, and a gateway must cope with it. */
static void add_session(struct lp_server *server, const struct lp_request *r, struct lp_head *head)
{
    const struct lp_session *session = lp_session_get(server, r->session);
    if (session)
        add(head, LP_FIELD_MCP_SESSION_ID, lp_span(session->text, session->text_len));
}

void lp_respond_end(struct lp_server *server, struct lp_request *r, bool is_whole)
{
    if (is_whole)
        lp_link_send_end(&server->links, r->stream);
    else
        lp_link_abort(&server->links, r->stream);
    lp_request_free(server, r);
}

void lp_respond_push(struct lp_server *server, lp_id id)
{
    bool takes_more = true;
    struct lp_request *r = lp_request_get(server, id);
    LP_ASSERT(r); /* and it stays: a connection that is lost meanwhile is told at the flush */
    while (r->out.buf.len && takes_more) {
        struct lp_span slice = lp_out_span(&r->out);
        if (slice.len > SLICE)
            slice.len = SLICE;
        takes_more = lp_link_send_body(&server->links, r->stream, slice);
        lp_buf_consume(&r->out.buf, slice.len);
    }
    if (!r->out.buf.len)
        lp_respond_end(server, r, true);
}

static void send_head(struct lp_server *server, struct lp_request *r, struct lp_head *head)
{
    lp_buf_release(&r->in);
    lp_cors_allow(head, lp_buf_span(&r->origin), LP_SPAN(""));
    r->state = LP_REQUEST_SENDING;
    lp_link_send_head(&server->links, r->stream, head);
}

/* The challenge of a 401 (RFC 6750 3, RFC 9728 5.1), in `room`. */
static struct lp_span challenge(const struct lp_server *server, char room[CHALLENGE_MAX])
{
    static const struct lp_span BARE = {"Bearer realm=\"mcp\"", 18};
    static const struct lp_span WITH = {"Bearer realm=\"mcp\", resource_metadata=\"", 39};
    struct lp_span url = server->args.resource_metadata;
    if (!url.len || WITH.len + url.len + 1 > CHALLENGE_MAX)
        return BARE;
    memcpy(room, WITH.ptr, WITH.len);
    memcpy(room + WITH.len, url.ptr, url.len);
    room[WITH.len + url.len] = '"';
    return lp_span(room, WITH.len + url.len + 1);
}

static struct lp_span methods(const struct lp_server *server, const struct lp_request *r)
{
    if (r->is_old_sse)
        return LP_SPAN("GET, POST");
    bool has_sessions = lp_server_has_sessions(server) && !r->is_modern;
    return has_sessions ? LP_SPAN("GET, POST, DELETE") : LP_SPAN("POST");
}

void lp_respond_json(struct lp_server *server, struct lp_request *r, uint16_t status)
{
    char room[CHALLENGE_MAX];
    if (r->out.failed) {
        lp_out_clear(&r->out);
        status = 503;
    }
    struct lp_head *head = new_head(server, status);
    if (r->out.buf.len) {
        head->body = LP_BODY_LENGTH;
        head->body_bytes = r->out.buf.len;
        add(head, LP_FIELD_CONTENT_TYPE, LP_SPAN("application/json"));
    }
    if (status == 405)
        add(head, LP_FIELD_ALLOW, methods(server, r));
    if (status == 503 || status == 429)
        add(head, LP_FIELD_RETRY_AFTER, LP_SPAN("1"));
    if (status == 401)
        add(head, LP_FIELD_WWW_AUTHENTICATE, challenge(server, room));
    add_session(server, r, head);
    lp_id id = r->id;
    send_head(server, r, head);
    lp_respond_push(server, id);
}

void lp_respond_sse(struct lp_server *server, struct lp_request *r)
{
    struct lp_head *head = new_head(server, 200);
    head->body = LP_BODY_CHUNKED;
    add(head, LP_FIELD_CONTENT_TYPE, LP_SPAN("text/event-stream"));
    add(head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-cache, no-transform"));
    add(head, LP_FIELD_X_ACCEL_BUFFERING, LP_SPAN("no"));
    add_session(server, r, head);
    send_head(server, r, head);
    r->state = LP_REQUEST_STREAM;
}

void lp_respond_reply(struct lp_server *server, struct lp_request *r, const struct lp_reply *reply)
{
    if (lp_reply_write(&r->out.buf, reply))
        r->out.failed = true;
    lp_respond_json(server, r, (uint16_t)lp_reason_info(reply->reason)->http_status);
}

void lp_respond_refuse(
    struct lp_server *server, struct lp_request *r, enum lp_reason why, struct lp_span message_id)
{
    struct lp_reply reply = {.reason = why, .id = message_id};
    lp_respond_reply(server, r, &reply);
}

void lp_respond_refuse_with(
    struct lp_server *server, struct lp_request *r, uint16_t status, const char *message)
{
    lp_rpc_write_error(&r->out, LP_SPAN(""), -32000, message);
    lp_respond_json(server, r, status);
}

void lp_respond_options(struct lp_server *server, struct lp_request *r)
{
    struct lp_head *head = new_head(server, 204);
    add(head, LP_FIELD_ALLOW, methods(server, r));
    if (r->names.len)
        lp_cors_preflight(head, lp_buf_span(&r->names));
    lp_id id = r->id;
    send_head(server, r, head);
    lp_respond_push(server, id);
}

void lp_respond_replay(struct lp_server *server, struct lp_request *r)
{
    char room[LP_REPLAY_TEXT_MAX];
    struct lp_head *head = new_head(server, 204);
    bool is_strict = server->args.replay == LP_SERVER_REPLAY_STRICT;
    add(head, LP_FIELD_FLY_REPLAY, lp_replay_value(r->owner, is_strict, room));
    lp_id id = r->id;
    send_head(server, r, head);
    lp_respond_push(server, id);
}
