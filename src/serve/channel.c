/* Streams of messages to a client (wire document 4.2, 4.3, 6.1).
 *
 * The answers to one POST gather as JSON until an event has to go before them, or a call takes its
 * time; then it becomes an event stream, if the client takes one. Every event goes through the
 * channel's history: what its reader does not take yet waits there, and what was sent stays there
 * for a client that comes again with Last-Event-ID. So sending, waiting and replaying are one
 * thing: a cursor that moves through the history. */
#include <stdio.h>

#include "base/error.h"
#include "serve/server_priv.h"
#include "serve/shared.h"
#include "wire/sse.h"

enum { SLICE = 32768, EVENT_ID_MAX = 48, PRIMING_MAX = 128, CHANNEL_EVENT_MAX = 2 * LP_OUT_MAX };

struct lp_channel *lp_channel_get(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->channels, id);
}

/* --- finished channels, kept for who comes again --- */

static void leave_finished(struct lp_server *server, struct lp_channel *ch)
{
    if (lp_list_empty(&ch->finished))
        return;
    lp_list_remove(&ch->finished);
    server->finished_count--;
    server->finished_bytes -= ch->history.bytes;
}

/* The oldest that nobody reads just now makes room. */
static void evict_finished(struct lp_server *server)
{
    struct lp_list *at = server->finished.next;
    while (at != &server->finished &&
        (server->finished_count > LP_SERVER_FINISHED_MAX ||
            server->finished_bytes > LP_SERVER_FINISHED_BYTES)) {
        struct lp_channel *ch = LP_CONTAINER(at, struct lp_channel, finished);
        at = at->next;
        if (!ch->request)
            lp_channel_kill(server, ch);
    }
}

static void join_finished(struct lp_server *server, struct lp_channel *ch)
{
    lp_list_push_back(&server->finished, &ch->finished);
    server->finished_count++;
    server->finished_bytes += ch->history.bytes;
    evict_finished(server);
}

/* --- birth and death --- */

static struct lp_channel *new_channel(struct lp_server *server, struct lp_session *session)
{
    lp_id id;
    struct lp_channel *ch = lp_slab_new(&server->channels, &id);
    if (!ch)
        return NULL;
    ch->id = id;
    ch->next = 1;
    lp_history_init(&ch->history);
    lp_out_init(&ch->out);
    lp_list_init(&ch->calls);
    lp_list_init(&ch->of_session);
    lp_list_init(&ch->finished);
    if (session) {
        ch->session = session->id;
        ch->keeps = true;
        lp_list_push_back(&session->channels, &ch->of_session);
    }
    return ch;
}

struct lp_channel *lp_channel_new(
    struct lp_server *server, struct lp_session *session, struct lp_request *r)
{
    bool is_full = server->held_bytes + r->in.cap > LP_SERVER_HELD_BYTES ||
        (session && session->busy >= LP_SERVER_SESSION_STREAMS);
    struct lp_channel *ch = is_full ? NULL : new_channel(server, session);
    if (!ch)
        return NULL;
    server->held_bytes += r->in.cap;
    ch->request = r->id;
    ch->open = 1;
    ch->wants_sse = r->wants_sse;
    ch->in = r->in;
    lp_buf_init(&r->in, LP_SERVER_BODY_MAX);
    r->channel = ch->id;
    r->state = LP_REQUEST_WAITING;
    if (session) {
        ch->number = server->shared ? r->channel_number : ++session->channel_count;
        lp_session_hold(server, session);
    }
    return ch;
}

struct lp_channel *lp_channel_standalone(struct lp_server *server, struct lp_session *session)
{
    struct lp_channel *ch = lp_channel_get(server, session->standalone);
    if (ch)
        return ch;
    ch = new_channel(server, session);
    if (!ch)
        return NULL;
    ch->is_sse = true;
    session->standalone = ch->id;
    return ch;
}

struct lp_channel *lp_channel_reader(
    struct lp_server *server, struct lp_session *session, uint32_t number, uint64_t from)
{
    struct lp_channel *ch = new_channel(server, session);
    if (!ch)
        return NULL;
    ch->is_sse = ch->is_reader = true;
    ch->number = number;
    ch->history.last = from;
    ch->next = from + 1;
    if (number == 0)
        session->standalone = ch->id;
    return ch;
}

/* Its life is that of its request: a session's own stream, or one that is read from the store. */
static bool is_standalone(const struct lp_channel *ch)
{
    return ch->session != 0 && (ch->number == 0 || ch->is_reader);
}

/* Whether it keeps its session from being idle: calls do, and a GET stream that somebody reads. */
static bool holds_session(const struct lp_channel *ch)
{
    return is_standalone(ch) ? ch->request != 0 : !ch->is_finished;
}

static void release_body(struct lp_server *server, struct lp_channel *ch)
{
    server->held_bytes -= ch->in.cap;
    lp_buf_release(&ch->in);
}

static void free_channel(struct lp_server *server, struct lp_channel *ch)
{
    lp_id session = holds_session(ch) ? ch->session : 0;
    lp_listen_forget(server, ch->listen);
    leave_finished(server, ch);
    lp_list_remove(&ch->of_session);
    lp_history_fini(&ch->history);
    release_body(server, ch);
    lp_out_release(&ch->out);
    lp_slab_free(&server->channels, ch->id);
    lp_session_release(server, session);
}

static void end_calls(struct lp_server *server, struct lp_channel *ch)
{
    while (!lp_list_empty(&ch->calls))
        lp_job_end(server, LP_CONTAINER(ch->calls.next, struct lp_job, of_channel));
}

/* Parts the channel from its request, which the caller then ends. */
static struct lp_request *part(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_request *r = lp_request_get(server, ch->request);
    if (!r)
        return NULL;
    r->channel = 0;
    lp_id session = is_standalone(ch) ? ch->session : 0;
    ch->request = 0;
    ch->offset = 0;
    ch->history.in_use = 0;
    lp_session_release(server, session);
    return r;
}

void lp_channel_leave(struct lp_server *server, struct lp_channel *ch)
{
    (void)part(server, ch);
}

static void end_session(struct lp_server *server, lp_id id)
{
    struct lp_session *session = lp_session_get(server, id);
    if (session)
        lp_session_end(server, session);
}

void lp_channel_kill(struct lp_server *server, struct lp_channel *ch)
{
    bool is_whole = ch->is_sse && ch->offset == 0 && !ch->failed;
    end_calls(server, ch);
    struct lp_request *r = part(server, ch);
    if (r)
        lp_respond_end(server, r, is_whole);
    free_channel(server, ch);
}

void lp_channel_detach(struct lp_server *server, lp_id id)
{
    struct lp_channel *ch = lp_channel_get(server, id);
    if (!ch)
        return;
    lp_id session = is_standalone(ch) ? ch->session : 0;
    if (ch->is_reader)
        lp_shared_left(server, ch);
    ch->request = 0;
    ch->offset = 0;
    ch->history.in_use = 0;
    lp_session_release(server, session);
    if (ch->is_old_sse) {
        end_session(server, ch->session);
        return;
    }
    if (ch->keeps && !ch->is_reader)
        return; /* its calls go on: to leave is not to cancel (wire document 4.2) */
    end_calls(server, ch);
    free_channel(server, ch);
}

/* --- sending --- */

static bool is_primed(const struct lp_server *server, const struct lp_channel *ch)
{
    const struct lp_session *session = lp_session_get(server, ch->session);
    return session && strcmp(session->version, "2025-11-25") == 0;
}

/* An id, and nothing else, so that the client can come again from the very start. */
static void send_priming(struct lp_server *server, struct lp_channel *ch, struct lp_request *r)
{
    char text[PRIMING_MAX];
    int n = snprintf(text, sizeof text, "id: %u-%llu\nretry: %u\ndata: \n\n", ch->number,
        (unsigned long long)ch->next - 1, server->args.retry_ms);
    (void)lp_link_send_body(&server->links, r->stream, lp_span(text, (size_t)n));
}

static void set_comment(struct lp_server *server, struct lp_request *r)
{
    /* Without memory for the timer a stream has no comments. */
    (void)!lp_heap_set(&server->timers, &r->timer, server->now_us + LP_SERVER_COMMENT_US);
}

void lp_channel_begin_sse(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_request *r = lp_request_get(server, ch->request);
    if (ch->is_sse || !ch->wants_sse || !r)
        return;
    ch->is_sse = true;
    lp_respond_sse(server, r);
    set_comment(server, r);
    if (is_primed(server, ch))
        send_priming(server, ch, r);
    if (server->shared && ch->keeps)
        lp_shared_keep_begin(server, ch);
    if (!ch->answer_count)
        return;
    lp_out_str(&ch->out, "]"); /* of a batch: what has gathered */
    if (ch->out.failed || !lp_channel_event(server, ch, lp_out_span(&ch->out)))
        ch->failed = true;
    lp_out_release(&ch->out);
}

/* One event through the link; false: not all of it yet. */
static bool send_kept(
    struct lp_server *server, struct lp_channel *ch, struct lp_stream s, const struct lp_kept *kept)
{
    bool takes_more = true;
    if (kept->number != ch->next)
        ch->offset = 0;
    ch->next = kept->number;
    ch->history.in_use = kept->number;
    while (ch->offset < kept->bytes.len && takes_more) {
        struct lp_span slice = lp_span_from(kept->bytes, ch->offset);
        if (slice.len > SLICE)
            slice.len = SLICE;
        takes_more = lp_link_send_body(&server->links, s, slice);
        ch->offset += slice.len;
    }
    if (ch->offset < kept->bytes.len)
        return false;
    ch->offset = 0;
    ch->next++;
    ch->history.in_use = 0;
    if (!ch->keeps || ch->is_reader)
        lp_history_drop(&ch->history, kept->number);
    return takes_more;
}

void lp_channel_pump(struct lp_server *server, lp_id id)
{
    struct lp_channel *ch = lp_channel_get(server, id);
    struct lp_request *r = ch ? lp_request_get(server, ch->request) : NULL;
    struct lp_kept kept;
    if (!r || !ch->is_sse)
        return;
    /* Where the backlog is high already, `writable` has been promised. */
    bool takes_more = lp_link_backlog(&server->links, r->stream) < LP_LINK_HIGH_WATER;
    while (takes_more && lp_history_get(&ch->history, ch->next, &kept))
        takes_more = send_kept(server, ch, r->stream, &kept);
    if (!ch->is_over || lp_history_get(&ch->history, ch->next, &kept))
        return;
    (void)part(server, ch);
    lp_id old_sse = ch->is_old_sse ? ch->session : 0;
    if ((!ch->keeps && !old_sse) || ch->is_reader)
        free_channel(server, ch);
    lp_respond_end(server, r, true);
    end_session(server, old_sse);
}

static int encode(const struct lp_channel *ch, struct lp_span json, struct lp_buf *out)
{
    char id[EVENT_ID_MAX] = "";
    int n = 0;
    if (ch->keeps)
        n = snprintf(
            id, sizeof id, "%u-%llu", ch->number, (unsigned long long)ch->history.last + 1);
    return lp_sse_write(out, LP_SPAN("message"), lp_span(id, (size_t)n), json);
}

/* Whatever was pushed out may have been an answer: who waits for it has to see that it is gone. */
static bool is_unbroken(struct lp_server *server, struct lp_channel *ch)
{
    if (!ch->is_old_sse || !lp_old_sse_has_gap(ch))
        return true;
    lp_session_doom(server, lp_session_get(server, ch->session));
    return false;
}

bool lp_channel_event(struct lp_server *server, struct lp_channel *ch, struct lp_span json)
{
    struct lp_buf text;
    if (ch->is_old_sse)
        ch = lp_old_sse_stream(server, ch);
    if (!ch)
        return false;
    lp_channel_begin_sse(server, ch);
    if (!ch->is_sse)
        return false;
    lp_buf_init(&text, CHANNEL_EVENT_MAX);
    int err = encode(ch, json, &text);
    if (!err)
        err = lp_history_add(&ch->history, lp_buf_span(&text));
    lp_buf_release(&text);
    if (err || !is_unbroken(server, ch))
        return false;
    if (server->shared && ch->keeps && !ch->is_reader)
        lp_shared_keep(server, ch, json);
    lp_channel_pump(server, ch->id);
    return true;
}

bool lp_channel_can_tell(const struct lp_server *server, const struct lp_session *session)
{
    return server->shared ? session->has_listener
                          : lp_channel_get(server, session->standalone) != NULL;
}

bool lp_channel_tell(
    struct lp_server *server, const struct lp_session *session, struct lp_span json)
{
    if (server->shared)
        return lp_shared_tell(server, session, json, LP_SPAN(""));
    struct lp_channel *ch = lp_channel_get(server, session->standalone);
    return ch && lp_channel_event(server, ch, json);
}

void lp_channel_feed(
    struct lp_server *server, struct lp_channel *ch, uint64_t number, struct lp_span json)
{
    ch->history.last = number - 1;
    /* What cannot be kept for want of memory is missing; a client that comes again may get it. */
    (void)lp_channel_event(server, ch, json);
}

void lp_channel_end(struct lp_server *server, struct lp_channel *ch)
{
    ch->is_over = true;
    lp_channel_pump(server, ch->id);
}

/* --- answers --- */

void lp_channel_answer(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_out *message = &server->scratch;
    if (ch->is_sse || ch->is_old_sse) {
        if (message->failed || !lp_channel_event(server, ch, lp_out_span(message)))
            ch->failed = true;
        return;
    }
    if (ch->is_batch)
        lp_out_str(&ch->out, ch->answer_count ? "," : "[");
    ch->answer_count++;
    lp_out_put(&ch->out, lp_out_span(message));
    if (message->failed)
        ch->out.failed = true;
}

/* An answer that was lost takes the stream along, as elsewhere. */
static void finish_old_sse(struct lp_server *server, struct lp_channel *ch)
{
    lp_id session = ch->session;
    if (ch->failed)
        lp_session_doom(server, lp_session_get(server, session));
    free_channel(server, ch);
    lp_old_sse_settle(server, session);
}

static void finish_json(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_request *r = part(server, ch);
    if (ch->task)
        lp_task_finish(server, ch);
    if (ch->is_batch && ch->answer_count)
        lp_out_str(&ch->out, "]");
    if (r) {
        r->out = ch->out;
        lp_out_init(&ch->out);
    }
    uint16_t status = ch->status ? ch->status : ch->answer_count ? 200 : 202;
    free_channel(server, ch);
    if (r)
        lp_respond_json(server, r, status);
}

void lp_channel_release(struct lp_server *server, lp_id id)
{
    struct lp_channel *ch = lp_channel_get(server, id);
    if (!ch || --ch->open)
        return;
    if (ch->is_old_sse) {
        finish_old_sse(server, ch);
        return;
    }
    if (!ch->is_sse) {
        finish_json(server, ch);
        return;
    }
    if (ch->failed) {
        lp_channel_kill(server, ch);
        return;
    }
    ch->is_over = ch->is_finished = true;
    release_body(server, ch);
    lp_session_release(server, ch->session);
    if (server->shared && ch->keeps)
        lp_shared_keep_end(server, ch);
    if (ch->keeps)
        join_finished(server, ch);
    lp_channel_pump(server, id);
}

void lp_channel_settle(struct lp_server *server, lp_id id)
{
    struct lp_channel *ch = lp_channel_get(server, id);
    if (!ch || ch->is_over || ch->open <= ch->brief)
        return;
    lp_channel_begin_sse(server, ch);
    struct lp_session *session = lp_session_get(server, ch->session);
    if (server->shared && session)
        lp_shared_follow(server, session);
}

/* --- coming again --- */

struct lp_channel *lp_channel_find(const struct lp_session *session, const struct lp_request *r)
{
    const struct lp_list *end = &session->channels;
    for (struct lp_list *at = end->next; r->has_event_id && at != end; at = at->next) {
        struct lp_channel *ch = LP_CONTAINER(at, struct lp_channel, of_session);
        if (ch->number == r->event_channel && ch->is_sse)
            return r->event_number <= ch->history.last ? ch : NULL;
    }
    return NULL;
}

void lp_channel_attach(struct lp_server *server, struct lp_channel *ch, struct lp_request *r)
{
    struct lp_session *session = lp_session_get(server, ch->session);
    bool is_whole = ch->offset == 0;
    struct lp_request *before = part(server, ch);
    if (before)
        lp_respond_end(server, before, is_whole);
    if (is_standalone(ch))
        lp_session_hold(server, session);
    ch->request = r->id;
    r->channel = ch->id;
    if (r->has_event_id)
        ch->next = r->event_number + 1;
    lp_respond_sse(server, r);
    set_comment(server, r);
    (void)lp_link_send_body(&server->links, r->stream, LP_SPAN(": limpet\n\n"));
    if (!r->has_event_id && is_primed(server, ch))
        send_priming(server, ch, r);
    lp_channel_pump(server, ch->id);
}

void lp_channel_poll(struct lp_server *server, struct lp_channel *ch)
{
    bool can_come_again = ch->is_sse && ch->keeps && ch->offset == 0 && is_primed(server, ch);
    struct lp_request *r = can_come_again ? part(server, ch) : NULL;
    if (r)
        lp_respond_end(server, r, true);
}
