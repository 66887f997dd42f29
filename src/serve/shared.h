/* Sessions in a store that all replicas share (requirements [L3], doc/DECISIONS/012): what this
 * process keeps of a session is an image of it, made new by each look-up.
 *
 *   shared.c          the store's events, commands to it, wake-ups
 *   shared_session.c  a session: made, looked up, changed, ended
 *   shared_stream.c   events that are kept for every replica, and streams that are read from there
 *   shared_all.c      what all sessions are told
 *   shared_box.c      what a client sent here and a call on another replica waits for
 *
 * A replica *takes part* in a session while a call of it is in progress or a stream is open here.
 * Then it looks into the store each second, and at once when somebody wakes it. */
#ifndef LP_SERVE_SHARED_H
#define LP_SERVE_SHARED_H

#include "serve/server_priv.h"
#include "serve/shared_lua.h"
#include "store/store.h"

enum {
    LP_SHARED_POLL_US = 1000000,
    LP_SHARED_TAKE_US = 2000000, /* in which the other replica has to take a message */
    LP_SHARED_READERS = 8,       /* streams of one session that are read from the store here */
    LP_SHARED_TARGETS = 16,      /* replicas that one message goes to */
    LP_SHARED_WAITS_MAX = 4096,
    LP_SHARED_TAG_MAX = 48, /* "{limpet:<key>}" */
};

/* What goes on when the store has answered. Whatever it names may be gone. */
struct lp_wait {
    lp_id request;
    lp_id session;
    lp_id channel;
    lp_id call;
    lp_id post;
    struct lp_span message_id; /* lies in the channel */
    bool is_set;
    lp_id readers[LP_SHARED_READERS];
    uint32_t reader_count;
    void (*answered)(
        struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result);
};

/* A message to other replicas that is not yet known to be taken. */
struct lp_post {
    lp_id id;
    lp_id request; /* that waits for it, or a channel */
    lp_id channel;
    struct lp_key key; /* of the session */
    uint32_t count;
    char ids[LP_SHARED_TARGETS][48]; /* of the message in the box */
    struct lp_timer timer;
};

struct lp_shared {
    struct lp_store *store;
    char replica[LP_REPLICA_LEN + 1]; /* who this process is, to the others: random */
    struct lp_slab waits;
    struct lp_slab posts;
    struct lp_list following; /* sessions it takes part in */
    struct lp_timer poll;
    char heard[LP_CURSOR_MAX]; /* up to where limpet:a has been read; empty: not yet */
    bool is_hearing;
    bool is_stale; /* to be read once more after that */
};

/* --- shared.c --- */

/* Begins with server->args.store. LP_ENOMEM. */
LP_MUST int lp_shared_new(struct lp_server *server);
void lp_shared_free(struct lp_server *server);
/* True: the event was the store's alone. */
bool lp_shared_event(struct lp_server *server, const struct lp_event *event);
/* A timer of the store's, or of kind LP_TIMER_SERVER_POLL or LP_TIMER_SERVER_POST. */
void lp_shared_timer(struct lp_server *server, struct lp_timer *timer);
struct lp_span lp_shared_replica(const struct lp_server *server);

/* A command in the making: keys first, then arguments; spans stay the caller's until it is sent. */
struct lp_step {
    struct lp_server *server;
    enum lp_script script;
    bool is_write; /* replicas of the store are waited for, and it is not repeated... */
    bool is_idempotent;
    uint32_t argc;
    uint32_t key_count;
    size_t used;
    struct lp_span argv[40];
    char room[2048];
};

void lp_step_begin(struct lp_step *step, struct lp_server *server, enum lp_script script);
/* "{limpet:KEY}:s" and so on. */
void lp_step_key(struct lp_step *step, struct lp_key key, const char *suffix);
void lp_step_key_number(struct lp_step *step, struct lp_key key, uint32_t channel);
/* "limpet:a". */
void lp_step_key_all(struct lp_step *step);
/* "{limpet:KEY}" itself, as an argument. */
void lp_step_tag(struct lp_step *step, struct lp_key key);
void lp_step_put(struct lp_step *step, struct lp_span argument);
void lp_step_number(struct lp_step *step, uint64_t number);
void lp_step_idle(struct lp_step *step);
/* wait->answered follows, never from within; NULL: nobody waits. LP_ELIMIT, LP_ENOMEM: not sent. */
LP_MUST int lp_step_send(struct lp_step *step, const struct lp_wait *wait);
/* The same where nothing can be done about a failure, or the next poll makes up for it. */
void lp_step_post(struct lp_step *step, const struct lp_wait *wait);

/* Texts and numbers of an answer; empty and 0 for what is not there. */
struct lp_span lp_shared_text(const struct lp_store_reply *reply, uint32_t index);
uint64_t lp_shared_number(const struct lp_store_reply *reply, uint32_t index);
/* The first item of the list at that place; NULL: it is empty. */
const struct lp_store_reply *lp_shared_list(const struct lp_store_reply *reply, uint32_t index);
/* The store has answered: there is no such session (any more). */
bool lp_shared_says_gone(const struct lp_store_result *result);

/* --- shared_session.c --- */

/* Answers the initialize request, whose answer is in request->out, when the session is stored. */
void lp_shared_create(struct lp_server *server, struct lp_request *r, struct lp_session *session);
/* As lp_session_look_up. */
void lp_shared_look_up(struct lp_server *server, struct lp_request *r);
/* Ends it everywhere, and answers the request. */
void lp_shared_end(struct lp_server *server, struct lp_request *r, struct lp_session *session);
/* Stores the level, or a subscription (NULL-pointer value: its end), and answers the message. */
void lp_shared_save_level(struct lp_server *server, const struct lp_message *m, uint32_t level);
void lp_shared_save_subscription(
    struct lp_server *server, const struct lp_message *m, struct lp_span uri, bool is_wanted);
/* As lp_job_state_get and lp_job_state_set; `value` NULL: get. */
LP_MUST int lp_shared_state(struct lp_job *call, uint64_t revision, const struct lp_span *value);

/* --- shared_stream.c --- */

/* Keeps an event of a channel of this replica, number ch->history.last. */
void lp_shared_keep(struct lp_server *server, const struct lp_channel *ch, struct lp_span json);
/* The channel has begun as a stream, without an event as yet; it has ended. */
void lp_shared_keep_begin(struct lp_server *server, const struct lp_channel *ch);
void lp_shared_keep_end(struct lp_server *server, const struct lp_channel *ch);
/* Gives a message to the session's GET stream, wherever that is; false: there is none. With a `uri`
 * only if the session has subscribed to it. */
bool lp_shared_tell(struct lp_server *server, const struct lp_session *session, struct lp_span json,
    struct lp_span uri);
/* A GET request gets its stream: the session's own, or one of another replica's that it names. */
void lp_shared_get(struct lp_server *server, struct lp_request *r, struct lp_session *session);
/* From now on, or no more, this replica takes part in the session. */
void lp_shared_follow(struct lp_server *server, struct lp_session *session);
void lp_shared_unfollow(struct lp_server *server, struct lp_session *session);
/* The stream is about to lose its request: if it is the GET stream, it has none now. */
void lp_shared_left(struct lp_server *server, const struct lp_channel *ch);
/* Ends the streams that are read from the store: their clients find them elsewhere. */
void lp_shared_stop(struct lp_server *server);
/* Looks what there is in the store for the session; again, if it is just doing so. */
void lp_shared_poll(struct lp_server *server, struct lp_session *session);

/* --- shared_all.c --- */

/* Tells all sessions, wherever their GET streams are; with a `uri` those that have subscribed. */
void lp_shared_announce(struct lp_server *server, struct lp_span json, struct lp_span uri);
/* Looks for what other replicas have announced. */
void lp_shared_hear(struct lp_server *server);

/* --- shared_box.c --- */

/* Gives a message (a response, a cancellation) to the replicas whose business it is; false: it is
 * nobody's but ours. The request `r` is answered when it was taken, or not in time; `r` NULL: the
 * message's channel waits. */
bool lp_shared_forward(
    struct lp_server *server, struct lp_request *r, const struct lp_message *message);
/* A message for us: {id, {from, name, kind, text}}. */
void lp_shared_take(
    struct lp_server *server, struct lp_session *session, const struct lp_store_reply *entry);
/* The one of that name (hexadecimal) was taken. */
void lp_shared_taken(struct lp_server *server, struct lp_span name);
/* Its time is over. */
void lp_shared_post_timer(struct lp_server *server, lp_id id);

#endif
