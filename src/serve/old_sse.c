/* HTTP+SSE, the transport of 2024-11-05 (wire document 3), for clients that know no other.
 *
 *   GET <sse_path>                       a session, and the stream that is its life; its first
 * event says where to post POST <sse_path>?sessionId=<id>       202; the answers come on the stream
 *
 * The id is a session id like any other, with the owner's where there is one, so that it is judged,
 * replayed and routed alike. A POST gets a channel as elsewhere, to keep its messages and calls,
 * but nobody carries it: what it has to say goes to the stream. What the reader of that has not
 * taken waits there; when that is too much the session ends, because an answer that is passed over
 * would be waited for without end. There is no coming again: an event has no id. */
#include <stdio.h>

#include "base/error.h"
#include "serve/server_priv.h"
#include "wire/sse.h"

enum {
    HELD_EVENTS = 10000,
    HELD_BYTES = 16 << 20,
    ENDPOINT_MAX = LP_SERVER_PATH_MAX + LP_SESSION_ID_MAX + 64,
};

#define MEMBER "sessionId"

/* --- which requests are its --- */

/* The value of the member sessionId; a null pointer when there is none. */
static struct lp_span find_id(struct lp_span query)
{
    while (query.len) {
        struct lp_span value;
        struct lp_span name = lp_span_split(lp_span_split(query, '&', &query), '=', &value);
        if (lp_span_eq(name, LP_SPAN(MEMBER)))
            return lp_span(value.ptr ? value.ptr : "", value.len);
    }
    return lp_span(NULL, 0);
}

/* Both transports may have one path: then a GET without a session id is for the old one, and a POST
 * with the id where only the old one has it ([G4]). */
static bool is_told_apart(const struct lp_head *head, struct lp_span id)
{
    if (head->method == LP_METHOD_POST)
        return id.ptr != NULL;
    return head->method == LP_METHOD_GET && !lp_head_find(head, LP_FIELD_MCP_SESSION_ID, NULL);
}

bool lp_old_sse_is_for(
    const struct lp_server *server, const struct lp_head *head, struct lp_span *ret_id)
{
    struct lp_span query;
    struct lp_span path = lp_span_split(head->target, '?', &query);
    struct lp_span id = find_id(query);
    if (!server->args.sse_path.len || !lp_span_eq(path, server->args.sse_path))
        return false;
    if (lp_span_eq(path, server->args.path) && !is_told_apart(head, id))
        return false;
    *ret_id = id;
    return true;
}

/* --- the stream --- */

static void send_endpoint(
    struct lp_server *server, const struct lp_request *r, const struct lp_session *session)
{
    char text[ENDPOINT_MAX];
    struct lp_span path = server->args.sse_path;
    int n = snprintf(text, sizeof text, "event: endpoint\ndata: %.*s?" MEMBER "=%.*s\n\n",
        (int)path.len, path.ptr, (int)session->text_len, session->text);
    LP_ASSERT(n > 0 && n < (int)sizeof text);
    (void)lp_link_send_body(&server->links, r->stream, lp_span(text, (size_t)n));
}

void lp_old_sse_open(struct lp_server *server, struct lp_request *r)
{
    if (!r->wants_sse) {
        lp_respond_refuse_with(
            server, r, 406, "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    struct lp_session *session = server->stopping ? NULL : lp_session_new(server, r->principal);
    struct lp_channel *ch = session ? lp_channel_standalone(server, session) : NULL;
    if (!ch) {
        if (session)
            lp_session_end(server, session);
        lp_respond_refuse(server, r, LP_REASON_over_capacity, LP_SPAN(""));
        return;
    }
    session->is_old_sse = ch->is_old_sse = true;
    session->version = LP_OLD_SSE_VERSION;
    ch->keeps = false;
    ch->history.count_max = HELD_EVENTS;
    ch->history.bytes_max = HELD_BYTES;
    lp_channel_attach(server, ch, r);
    send_endpoint(server, r, session);
}

/* --- messages --- */

void lp_old_sse_accept(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_request *r = lp_request_get(server, ch->request);
    ch->is_old_sse = true;
    ch->wants_sse = false;
    ch->request = 0;
    r->channel = 0;
    lp_respond_json(server, r, 202);
}

struct lp_channel *lp_old_sse_stream(const struct lp_server *server, const struct lp_channel *ch)
{
    const struct lp_session *session = lp_session_get(server, ch->session);
    return session ? lp_channel_get(server, session->standalone) : NULL;
}

/* Ends the stream, and with it the session, when its reader has got all. */
static void part(struct lp_server *server, struct lp_session *session)
{
    struct lp_channel *stream = lp_channel_get(server, session->standalone);
    stream->is_over = true;
    lp_channel_pump(server, stream->id);
}

void lp_old_sse_settle(struct lp_server *server, lp_id id)
{
    struct lp_session *session = lp_session_get(server, id);
    bool has_calls = session && session->busy > 1; /* than its stream, which is the first */
    if (session && server->stopping && !has_calls)
        part(server, session);
}

bool lp_old_sse_has_gap(const struct lp_channel *stream)
{
    struct lp_kept kept;
    return lp_history_get(&stream->history, stream->next, &kept) && kept.number != stream->next;
}
