/* Streams of a shared session (serve/shared.h).
 *
 * A replica sends the events of its own calls at once, and also keeps them in the store: there a
 * client that comes again to another replica finds them, and what follows. The session's GET stream
 * belongs to nobody: who has something to say puts it into the store, and the replica that carries
 * the stream reads it there. The newest GET is the one that counts: the one before ends. */
#include <stdio.h>

#include "base/error.h"
#include "serve/shared.h"

enum { ID_MAX = 40, LISTENER_MAX = LP_REPLICA_LEN + 18 };
/* Items of POLL's answer; the channels' events follow. */
enum { LISTENER, REPLICAS, CURSOR, BOX, EVENTS };

/* --- what is kept --- */

static void append(
    struct lp_server *server, const struct lp_channel *ch, const char *id, struct lp_span data)
{
    struct lp_step step;
    const struct lp_session *session = lp_session_get(server, ch->session);
    lp_step_begin(&step, server, LP_SCRIPT_APPEND);
    lp_step_key(&step, session->key, "s");
    lp_step_key_number(&step, session->key, ch->number);
    lp_step_key(&step, session->key, "c");
    lp_step_idle(&step);
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_tag(&step, session->key);
    lp_step_number(&step, ch->number);
    lp_step_put(&step, lp_span_str(id));
    lp_step_put(&step, data);
    /* Replicas of the store are not waited for: the event is on its way to its reader. */
    lp_step_post(&step, NULL);
}

void lp_shared_keep(struct lp_server *server, const struct lp_channel *ch, struct lp_span json)
{
    char id[ID_MAX];
    snprintf(id, sizeof id, "%llu-0", (unsigned long long)ch->history.last);
    append(server, ch, id, json);
}

void lp_shared_keep_begin(struct lp_server *server, const struct lp_channel *ch)
{
    append(server, ch, "0-1", LP_SPAN(""));
}

void lp_shared_keep_end(struct lp_server *server, const struct lp_channel *ch)
{
    char id[ID_MAX];
    snprintf(id, sizeof id, "%llu-2", (unsigned long long)ch->history.last);
    append(server, ch, id, LP_SPAN("."));
}

bool lp_shared_tell(struct lp_server *server, const struct lp_session *session, struct lp_span json,
    struct lp_span uri)
{
    struct lp_step step;
    if (!session->has_listener)
        return false;
    lp_step_begin(&step, server, LP_SCRIPT_TELL);
    lp_step_key(&step, session->key, "s");
    lp_step_key(&step, session->key, "h:0");
    lp_step_idle(&step);
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_put(&step, json);
    lp_step_put(&step, uri);
    step.is_write = true;
    return lp_step_send(&step, NULL) == LP_OK;
}

/* --- taking part --- */

static void set_timer(struct lp_server *server)
{
    struct lp_shared *shared = server->shared;
    /* Without memory for the timer the wake-ups are left. */
    if (!shared->poll.index)
        (void)!lp_heap_set(&server->timers, &shared->poll, server->now_us + LP_SHARED_POLL_US);
}

void lp_shared_follow(struct lp_server *server, struct lp_session *session)
{
    if (session->is_following)
        return;
    session->is_following = true;
    lp_list_push_back(&server->shared->following, &session->following);
    set_timer(server);
    lp_shared_poll(server, session);
}

/* Which GET it is, for all replicas; "-" for none. */
static struct lp_span name_listener(
    const struct lp_server *server, lp_id request, char room[LISTENER_MAX])
{
    int n = snprintf(
        room, LISTENER_MAX, "%s.%016llx", server->shared->replica, (unsigned long long)request);
    return request ? lp_span(room, (size_t)n) : LP_SPAN("-");
}

static void leave(struct lp_server *server, const struct lp_session *session, bool is_last,
    struct lp_span listener, uint64_t sent)
{
    struct lp_step step;
    lp_step_begin(&step, server, LP_SCRIPT_LEAVE);
    lp_step_key(&step, session->key, "s");
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_number(&step, is_last);
    lp_step_put(&step, listener);
    lp_step_number(&step, sent);
    lp_step_post(&step, NULL);
}

void lp_shared_unfollow(struct lp_server *server, struct lp_session *session)
{
    if (!session->is_following)
        return;
    session->is_following = false;
    lp_list_remove(&session->following);
    leave(server, session, true, LP_SPAN(""), 0);
}

void lp_shared_left(struct lp_server *server, const struct lp_channel *ch)
{
    char room[LISTENER_MAX];
    if (ch->number == 0)
        leave(server, lp_session_get(server, ch->session), false,
            name_listener(server, ch->request, room), ch->next - 1);
}

/* --- looking into the store --- */

static bool is_reader(const struct lp_channel *ch)
{
    return ch->is_reader && !ch->is_over;
}

/* The channels that are read from the store here; how many. */
static uint32_t find_readers(const struct lp_session *session, lp_id ret[LP_SHARED_READERS])
{
    uint32_t count = 0;
    const struct lp_list *end = &session->channels;
    for (struct lp_list *at = end->next; at != end; at = at->next) {
        const struct lp_channel *ch = LP_CONTAINER(at, struct lp_channel, of_session);
        if (is_reader(ch) && count < LP_SHARED_READERS)
            ret[count++] = ch->id;
    }
    return count;
}

static void take_replicas(struct lp_session *session, const struct lp_store_reply *reply)
{
    lp_buf_clear(&session->others);
    for (const struct lp_store_reply *at = lp_shared_list(reply, REPLICAS); at; at = at->next)
        if (at->text.len == LP_REPLICA_LEN && lp_buf_append(&session->others, at->text))
            return; /* as many as a message can go to; or no memory: less is found then */
}

static bool takes_part(const struct lp_session *session, struct lp_span replica)
{
    struct lp_span rest = lp_buf_span(&session->others);
    for (; rest.len >= LP_REPLICA_LEN; rest = lp_span_from(rest, LP_REPLICA_LEN))
        if (lp_span_eq(lp_span(rest.ptr, LP_REPLICA_LEN), replica))
            return true;
    return false;
}

static void note_writer(struct lp_channel *ch, struct lp_span writer)
{
    if (writer.len != LP_REPLICA_LEN)
        return;
    memcpy(ch->writer, writer.ptr, LP_REPLICA_LEN);
}

/* "<number>-<0, 1 or 2>" and {writer, JSON}; true: it was the end. */
static bool feed_one(
    struct lp_server *server, struct lp_channel *ch, const struct lp_store_reply *entry)
{
    uint64_t number = 0;
    struct lp_span rest;
    struct lp_span id = lp_span_split(lp_shared_text(entry, 0), '-', &rest);
    const struct lp_store_reply *fields = lp_store_reply_item(entry, 1);
    struct lp_span json = lp_shared_text(fields, 1);
    note_writer(ch, lp_shared_text(fields, 0));
    if (lp_span_eq(rest, LP_SPAN("0")) && lp_span_to_u64(id, &number))
        lp_channel_feed(server, ch, number, json);
    return lp_span_eq(json, LP_SPAN("."));
}

/* True: there may be more. */
static bool feed(struct lp_server *server, const struct lp_session *session, lp_id id,
    const struct lp_store_reply *at)
{
    bool is_over = false;
    struct lp_channel *ch = lp_channel_get(server, id);
    uint64_t before = ch ? ch->history.last : 0;
    for (; at && ch; at = at->next) {
        is_over = feed_one(server, ch, at) || is_over;
        ch = lp_channel_get(server, id);
    }
    bool is_all = !ch || ch->history.last == before;
    /* Nobody writes any more: its replica has died, or was this one. */
    bool is_orphan = ch && ch->number && ch->writer[0] && is_all &&
        !takes_part(session, lp_span(ch->writer, LP_REPLICA_LEN));
    if (ch && (is_over || is_orphan))
        lp_channel_end(server, ch);
    return !is_all && !is_over;
}

static void feed_all(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_reply *reply)
{
    for (uint32_t i = 0; i < wait->reader_count; i++) {
        struct lp_session *session = lp_session_get(server, wait->session);
        if (session && feed(server, session, wait->readers[i], lp_shared_list(reply, EVENTS + i)))
            session->is_stale = true;
    }
}

/* Another replica has the session's GET stream now. */
static void give_up_listening(
    struct lp_server *server, const struct lp_session *session, struct lp_span listener)
{
    char room[LISTENER_MAX];
    struct lp_channel *ch = lp_channel_get(server, session->standalone);
    if (ch && !lp_span_eq(listener, name_listener(server, ch->request, room)))
        lp_channel_kill(server, ch);
}

static void take_box(struct lp_server *server, lp_id id, const struct lp_store_reply *reply)
{
    struct lp_session *session = lp_session_get(server, id);
    struct lp_span cursor = lp_shared_text(reply, CURSOR);
    if (cursor.len < sizeof session->box) {
        memcpy(session->box, cursor.ptr, cursor.len);
        session->box[cursor.len] = '\0';
    }
    const struct lp_store_reply *at = lp_shared_list(reply, BOX);
    for (; at && (session = lp_session_get(server, id)); at = at->next)
        lp_shared_take(server, session, at);
}

static void on_looked(struct lp_server *server, struct lp_session *session,
    const struct lp_wait *wait, const struct lp_store_reply *reply)
{
    struct lp_span listener = lp_shared_text(reply, LISTENER);
    session->has_listener = listener.len > 0;
    take_replicas(session, reply);
    give_up_listening(server, session, listener);
    take_box(server, wait->session, reply);
    feed_all(server, wait, reply);
}

static void on_polled(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_session *session = lp_session_get(server, wait->session);
    if (!session)
        return;
    session->is_polling = false;
    if (lp_shared_says_gone(result)) {
        lp_session_end(server, session);
        return;
    }
    if (result->outcome == LP_OUTCOME_ANSWERED)
        on_looked(server, session, wait, result->reply);
    session = lp_session_get(server, wait->session);
    if (session && session->is_stale && result->outcome == LP_OUTCOME_ANSWERED)
        lp_shared_poll(server, session);
}

static void put_cursors(struct lp_step *step, const struct lp_wait *wait)
{
    for (uint32_t i = 0; i < wait->reader_count; i++) {
        const struct lp_channel *ch = lp_channel_get(step->server, wait->readers[i]);
        lp_step_number(step, ch->history.last);
    }
}

void lp_shared_poll(struct lp_server *server, struct lp_session *session)
{
    char room[LISTENER_MAX];
    struct lp_step step;
    struct lp_wait wait = {.session = session->id, .answered = on_polled};
    const struct lp_channel *standalone = lp_channel_get(server, session->standalone);
    if (session->is_polling || !session->is_following) {
        session->is_stale = true;
        return;
    }
    wait.reader_count = find_readers(session, wait.readers);
    lp_step_begin(&step, server, LP_SCRIPT_POLL);
    lp_step_key(&step, session->key, "s");
    lp_step_key(&step, session->key, "b");
    for (uint32_t i = 0; i < wait.reader_count; i++)
        lp_step_key_number(&step, session->key, lp_channel_get(server, wait.readers[i])->number);
    lp_step_idle(&step);
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_put(&step, name_listener(server, standalone ? standalone->request : 0, room));
    lp_step_number(&step, standalone ? standalone->next - 1 : 0);
    lp_step_put(&step, lp_span_str(session->box));
    put_cursors(&step, &wait);
    session->is_stale = false;
    session->is_polling = !lp_step_send(&step, &wait);
}

void lp_shared_stop(struct lp_server *server)
{
    uint32_t cursor = 0;
    lp_id id;
    lp_id readers[LP_SHARED_READERS];
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));) {
        uint32_t count = find_readers(s, readers);
        for (uint32_t i = 0; i < count; i++) {
            struct lp_channel *ch = lp_channel_get(server, readers[i]);
            lp_shared_left(server, ch);
            lp_channel_kill(server, ch);
        }
    }
}

/* --- GET --- */

static void attach_reader(struct lp_server *server, struct lp_request *r,
    struct lp_session *session, uint32_t number, uint64_t from)
{
    lp_id readers[LP_SHARED_READERS];
    bool is_full = find_readers(session, readers) == LP_SHARED_READERS;
    struct lp_channel *ch = is_full ? NULL : lp_channel_reader(server, session, number, from);
    if (!ch) {
        lp_request_found(server, r->id, LP_NO_ROOM, NULL);
        return;
    }
    r->has_event_id = r->has_event_id && from == r->event_number;
    lp_channel_attach(server, ch, r);
    lp_shared_follow(server, session);
    lp_shared_poll(server, session);
}

static void on_listening(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_request *r = lp_request_get(server, wait->request);
    struct lp_session *session = lp_session_get(server, wait->session);
    if (!r)
        return;
    if (lp_shared_says_gone(result))
        lp_request_found(server, r->id, LP_NOT_FOUND, NULL);
    else if (!session)
        lp_request_found(server, r->id, LP_NO_ROOM, NULL); /* others have pushed it out meanwhile */
    else if (result->outcome != LP_OUTCOME_ANSWERED)
        lp_request_found(server, r->id, LP_CANNOT_TELL, NULL);
    else {
        struct lp_channel *before = lp_channel_get(server, session->standalone);
        if (before)
            lp_channel_kill(server, before);
        session->has_listener = true;
        attach_reader(server, r, session, 0, lp_shared_number(result->reply, 0));
    }
}

/* The session's own stream. */
static void listen_to(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    char room[LISTENER_MAX];
    struct lp_step step;
    struct lp_wait wait = {.request = r->id, .session = session->id, .answered = on_listening};
    r->has_event_id = r->has_event_id && r->event_channel == 0;
    lp_step_begin(&step, server, LP_SCRIPT_LISTEN);
    lp_step_key(&step, session->key, "s");
    lp_step_put(&step, lp_shared_replica(server));
    if (r->has_event_id)
        lp_step_number(&step, r->event_number);
    else
        lp_step_put(&step, LP_SPAN(""));
    lp_step_put(&step, name_listener(server, r->id, room));
    if (lp_step_send(&step, &wait))
        lp_request_found(server, r->id, LP_CANNOT_TELL, NULL);
}

static void on_resumed(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_request *r = lp_request_get(server, wait->request);
    struct lp_session *session = lp_session_get(server, wait->session);
    if (!r)
        return;
    if (!session)
        lp_request_found(server, r->id, LP_NO_ROOM, NULL);
    else if (result->outcome != LP_OUTCOME_ANSWERED)
        lp_request_found(server, r->id, LP_CANNOT_TELL, NULL);
    else if (lp_shared_says_gone(result) || r->event_number > lp_shared_number(result->reply, 0)) {
        r->has_event_id = false; /* an unknown one replays nothing (cases RES-02) */
        listen_to(server, r, session);
    } else
        attach_reader(server, r, session, r->event_channel, r->event_number);
}

void lp_shared_get(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    struct lp_step step;
    struct lp_wait wait = {.request = r->id, .session = session->id, .answered = on_resumed};
    if (!r->has_event_id || r->event_channel == 0) {
        listen_to(server, r, session);
        return;
    }
    lp_step_begin(&step, server, LP_SCRIPT_RESUME);
    lp_step_key(&step, session->key, "s");
    lp_step_key_number(&step, session->key, r->event_channel);
    lp_step_put(&step, lp_shared_replica(server));
    if (lp_step_send(&step, &wait))
        lp_request_found(server, r->id, LP_CANNOT_TELL, NULL);
}
