/* Inside the MCP server: its objects, and what its files ask of each other.
 *
 *   server.c    events and timers in, the life of the whole
 *   http.c      requests: head and body, which one is it
 *   respond.c   how the answer to a request leaves
 *   channel.c   streams of messages to a client: events, history, resumption
 *   old_sse.c   the transport of 2024-11-05
 *   session.c   sessions: opened, found, pushed out, ended
 *   rpc.c       JSON-RPC messages and batches
 *   mirror.c    what a modern head repeats of its body
 *   modern.c    requests of 2026-07-28
 *   listen.c    subscriptions/listen
 *   tasks.c     calls as tasks
 *   offer.c     lists of what is offered, and which handler a request means
 *   job.c       calls in progress
 *   state.c     the program's state of a session
 *   inputs.c    questions to a client: several, and those of 2026-07-28
 *   tell.c      what the program tells its clients
 *
 * A request object is one HTTP exchange. A channel is where the answers and events for one POST (or
 * for a session as a whole: the standalone one) go; it may outlive the request that carries it. Its
 * calls belong to it. Whatever can die in between is named by id, and looked up again after each
 * call of the program's. */
#ifndef LP_SERVE_SERVER_PRIV_H
#define LP_SERVE_SERVER_PRIV_H

#include "base/arena.h"
#include "base/list.h"
#include "link/link.h"
#include "mcp/entropy.h"
#include "mcp/envelope.h"
#include "mcp/keyring.h"
#include "mcp/reply.h"
#include "serve/history.h"
#include "serve/job.h"
#include "serve/server.h"
#include "serve/session_id.h"

#define LP_SERVER_VERSIONS "2025-11-25, 2025-06-18, 2025-03-26"
#define LP_OLD_SSE_VERSION "2024-11-05"

enum {
    LP_TIMER_SERVER_REQUEST = 200, /* the next comment of a stream */
    LP_TIMER_SERVER_CALL,          /* a call has waited, or asked, long enough */
    LP_TIMER_SERVER_GRACE, /* calls have had their time after a stop, or connections theirs */
    LP_TIMER_SERVER_SWEEP, /* the oldest idle session has reached its age */
    LP_TIMER_SERVER_TASK,  /* a task's time is over */
    LP_TIMER_SERVER_POLL,  /* shared sessions are to be looked at */
    LP_TIMER_SERVER_POST,  /* another replica has not taken a message in time */
    LP_SERVER_COMMENT_US = 15000000,
    LP_SERVER_CALLS_MAX = 16384,
    LP_CURSOR_MAX = 32,  /* of an id in a stream of the store */
    LP_REPLICA_LEN = 16, /* of a replica's name among those that share sessions */
};

enum lp_request_state {
    LP_REQUEST_READING, /* the body is on its way */
    LP_REQUEST_LOOKING, /* its session is being looked up */
    LP_REQUEST_WAITING, /* its channel gathers the answer */
    LP_REQUEST_SENDING, /* `out` is on its way */
    LP_REQUEST_STREAM,  /* its channel sends events */
};

struct lp_request {
    lp_id id;
    struct lp_stream stream;
    enum lp_request_state state;
    enum lp_method method;
    bool wants_sse;
    bool has_session_header; /* or, for old SSE, the id in its query */
    bool is_old_sse;
    bool was_replayed;    /* by the platform, once already */
    bool takes_batch;     /* by its version header; sessions know better */
    bool is_modern;       /* by its version header; the body decides */
    bool has_bad_version; /* in its header, for a request of a session */
    enum lp_whose whose;  /* of its session id, or its task's name */
    struct lp_key key;    /* ours */
    struct lp_key principal;
    struct lp_span owner; /* another one's id, in `owner_room` */
    char owner_room[LP_OWNER_MAX];
    uint32_t event_channel; /* of Last-Event-ID */
    uint64_t event_number;
    bool has_event_id;
    lp_id session; /* whose answer it gets; may be gone */
    lp_id channel;
    uint32_t channel_number; /* in a shared session: the number that its channel is to have */
    struct lp_envelope env;  /* of a POST, once its body is whole: spans of `in` */
    struct lp_buf mirror;    /* of its head what the body is compared with (serve/mirror.h) */
    struct lp_buf in;
    struct lp_buf origin; /* of the page that asks, and is answered; empty: no page of another */
    struct lp_buf names;  /* of a preflight: the fields that may be sent */
    struct lp_out out;
    struct lp_timer timer;
};

struct lp_channel {
    lp_id id;
    lp_id session;
    lp_id request;   /* who carries it now; 0: nobody */
    uint32_t number; /* within the session; the standalone one has 0 */
    uint32_t open;   /* answers that are still to come, and 1 while its messages are read */
    uint32_t brief;  /* of these, the ones that wait for state only: no reason for a stream */
    bool wants_sse;
    bool is_sse; /* it has begun as events; before, answers gather in `out` */
    bool keeps;  /* events have ids, and are kept for who comes again */
    bool is_batch;
    bool is_over;                /* no event follows */
    bool is_finished;            /* in the list of finished ones, or about to be freed */
    bool failed;                 /* an answer was lost for want of memory */
    bool is_reader;              /* of a shared session: its events are read from the store */
    char writer[LP_REPLICA_LEN]; /* who puts them there, as far as is known */
    bool is_old_sse;             /* the stream of such a session, or one whose messages go there */
    bool is_modern;
    enum lp_rpc_method method; /* of a modern request */
    uint16_t status;           /* of an answer as JSON; 0: 200 */
    lp_id task;                /* that its call has become; else 0 */
    lp_id listen;              /* of subscriptions/listen; else 0 */
    uint32_t answer_count;
    uint64_t next; /* the event to be sent next */
    size_t offset; /* of it, bytes that are sent */
    struct lp_history history;
    struct lp_buf in; /* the messages: the spans of its calls lie here */
    struct lp_out out;
    struct lp_list calls;
    struct lp_list of_session;
    struct lp_list finished;
};

struct lp_inputs;

struct lp_job {
    lp_id id;
    struct lp_server *server;
    lp_id channel;
    lp_id session;
    struct lp_list of_channel;
    const struct lp_handler *handler;
    const struct lp_resource *resource;
    struct lp_span message_id; /* raw tokens, in channel->in */
    struct lp_span params;
    struct lp_span token;
    struct lp_buf uri; /* decoded */
    void *state;
    struct lp_timer timer;
    bool has_run; /* its handler knows of it */
    bool is_modern;
    struct lp_key principal;
    struct lp_inputs *inputs; /* NULL: nothing was asked yet */
    bool is_asking;
    uint64_t nonce; /* of the question */
    bool is_storing;
    enum lp_state_outcome outcome; /* of what it has stored, while it is in `ready` */
    uint64_t revision;             /* what it has written; 0: it has read */
    struct lp_list ready;
};

struct lp_session {
    lp_id id;
    struct lp_key key;
    struct lp_key principal;
    char text[LP_SESSION_ID_MAX];
    size_t text_len;
    const char *version;
    struct lp_buf state; /* the program's, by lp_job_state_set */
    uint64_t revision;   /* of the state; 0: nothing was written yet */
    uint64_t used_us;
    uint32_t busy; /* channels that hold it; 0: it is in the idle list */
    uint32_t level;
    uint32_t channel_count; /* ever, for their numbers */
    bool can_elicit, can_sample, can_roots;
    bool is_old_sse;             /* it ends with its stream, the standalone channel */
    lp_id standalone;            /* the channel of its GET stream, or 0 */
    struct lp_buf subscriptions; /* see serve/uris.h */
    struct lp_list channels;
    struct lp_list idle;
    struct lp_list doomed;
    /* of a shared session (serve/shared.h) */
    bool has_listener; /* somewhere it has, or had, a GET stream */
    bool is_following;
    bool is_polling;
    bool is_stale;           /* to be looked at once more after that */
    char box[LP_CURSOR_MAX]; /* up to where its box has been read */
    struct lp_buf others;    /* names of the other replicas that take part, one behind the other */
    struct lp_list following;
};

/* A stream of subscriptions/listen, which lives as long as its channel. */
struct lp_listen {
    lp_id channel;
    struct lp_span message_id; /* raw token, in channel->in */
    uint32_t kinds;            /* of lists, bits: 1 << enum lp_list_kind */
    struct lp_buf uris;        /* see serve/uris.h */
    struct lp_buf tasks;       /* their names, in the same form */
};

/* A call that goes on without its request; and then what it said. */
struct lp_task {
    lp_id id;
    struct lp_key key;
    struct lp_key principal;
    char text[LP_SESSION_ID_MAX];
    size_t text_len;
    lp_id channel; /* 0: it has ended */
    bool is_cancelled;
    uint64_t created_ms;
    uint64_t changed_ms;
    uint64_t ttl_ms;
    struct lp_out answer; /* a JSON-RPC message */
    struct lp_timer timer;
};

struct lp_server {
    const struct lp_shell *shell;
    struct lp_shared *shared; /* NULL in other modes (serve/shared.h) */
    const struct lp_offer *offer;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_entropy entropy;
    struct lp_slab requests;
    struct lp_slab channels;
    struct lp_slab calls;
    struct lp_slab sessions;
    struct lp_slab listens;
    struct lp_slab tasks;
    struct lp_map task_keys;
    size_t task_bytes; /* of their answers */
    struct lp_map by_key;
    struct lp_list idle;     /* sessions nobody uses just now, longest idle first */
    struct lp_list doomed;   /* sessions that end after this event */
    struct lp_list ready;    /* calls to be woken: their state is there, or their answers */
    struct lp_list finished; /* channels, oldest first */
    uint32_t finished_count;
    size_t finished_bytes;
    size_t held_bytes; /* of bodies that channels keep */
    struct lp_timer sweep;
    struct lp_timer grace;
    struct lp_head head;   /* for the heads of answers */
    struct lp_out scratch; /* for one message */
    struct lp_arena texts; /* copies of the texts in `args` */
    struct lp_server_args args;
    struct lp_keyring ring;
    uint64_t now_us;
    uint64_t wall_ms;
    uint64_t timer_at_us;
    bool stopping;
    bool graced; /* what was still in progress has been ended */
    bool stopped;
};

static inline bool lp_server_has_sessions(const struct lp_server *server)
{
    return server->args.mode != LP_SESSIONS_STATELESS && server->args.eras != LP_ERAS_MODERN;
}

/* --- http.c --- */

extern const struct lp_message_ops lp_server_ops;

struct lp_request *lp_request_get(const struct lp_server *server, lp_id id);
/* Frees it; its channel is told that nobody carries it any more. */
void lp_request_free(struct lp_server *server, struct lp_request *request);
/* Time for a comment on its stream. */
void lp_request_timer(struct lp_server *server, lp_id id);

/* What a look-up says of a session. */
enum lp_found {
    LP_FOUND,
    LP_NOT_FOUND,
    LP_CANNOT_TELL, /* where sessions live cannot be asked just now (cases OWN-03) */
    LP_NO_ROOM,     /* it is there, but this process has no room for one more */
};

/* Goes on with the request that lp_session_look_up was called for; one that is over meanwhile is
 * ignored. `session` is NULL unless it was found. */
void lp_request_found(
    struct lp_server *server, lp_id id, enum lp_found found, struct lp_session *session);

/* --- respond.c --- */

/* Sends what is in request->out as the JSON body (none when it is empty), or 503 when it failed,
 * and forgets the request when all has gone. */
void lp_respond_json(struct lp_server *server, struct lp_request *request, uint16_t status);
/* Gives what the peer takes of request->out. */
void lp_respond_push(struct lp_server *server, lp_id id);
/* The head of an event stream. */
void lp_respond_sse(struct lp_server *server, struct lp_request *request);
/* A refusal as it is given: the status is that of its reason. */
void lp_respond_reply(
    struct lp_server *server, struct lp_request *request, const struct lp_reply *reply);
/* A refusal with the reason's status and text; an empty `message_id` is null. */
void lp_respond_refuse(struct lp_server *server, struct lp_request *request, enum lp_reason why,
    struct lp_span message_id);
/* The same with a text of its own and code -32000. */
void lp_respond_refuse_with(
    struct lp_server *server, struct lp_request *request, uint16_t status, const char *message);
/* The answer to OPTIONS: what may be asked here, and by pages of which origin. */
void lp_respond_options(struct lp_server *server, struct lp_request *request);
/* Asks the platform to send the request once more, to the session's owner. */
void lp_respond_replay(struct lp_server *server, struct lp_request *request);
/* Ends an answer: whole when `is_whole`, else broken off; forgets the request. */
void lp_respond_end(struct lp_server *server, struct lp_request *request, bool is_whole);

/* --- channel.c --- */

/* A channel for `request`, with a hold of 1; it takes request->in over. `session` NULL: none.
 * NULL: there are too many, they hold too much, or there is no memory. */
struct lp_channel *lp_channel_new(
    struct lp_server *server, struct lp_session *session, struct lp_request *request);
/* The session's standalone channel, made when it is not there. NULL: no room. */
struct lp_channel *lp_channel_standalone(struct lp_server *server, struct lp_session *session);
struct lp_channel *lp_channel_get(const struct lp_server *server, lp_id id);
/* The session's channel that has sent that event; NULL: it is not known (any more). */
struct lp_channel *lp_channel_find(
    const struct lp_session *session, const struct lp_request *request);
/* From now on that GET request carries it; one that did before ends. */
void lp_channel_attach(
    struct lp_server *server, struct lp_channel *channel, struct lp_request *request);
/* Its request is over. Without a history that ends the channel and its calls. */
void lp_channel_detach(struct lp_server *server, lp_id id);
/* After its messages were read, or a call has gone on: what is still to come may take its time, and
 * the client has to see that it is being worked on. */
void lp_channel_settle(struct lp_server *server, lp_id id);
/* Turns a POST's answer into events, when its client takes them. */
void lp_channel_begin_sse(struct lp_server *server, struct lp_channel *channel);
/* A channel whose events after number `from` are read from the store. NULL: no room. */
struct lp_channel *lp_channel_reader(
    struct lp_server *server, struct lp_session *session, uint32_t number, uint64_t from);
/* An event of such a channel; and its end: no event follows. */
void lp_channel_feed(
    struct lp_server *server, struct lp_channel *channel, uint64_t number, struct lp_span json);
void lp_channel_end(struct lp_server *server, struct lp_channel *channel);
/* Whether the session has a GET stream. Sends a message on it; false: there is none, no memory. */
bool lp_channel_can_tell(const struct lp_server *server, const struct lp_session *session);
bool lp_channel_tell(
    struct lp_server *server, const struct lp_session *session, struct lp_span json);
/* Sends one event, a JSON text; false: this client cannot get any, or there is no memory. */
bool lp_channel_event(struct lp_server *server, struct lp_channel *channel, struct lp_span json);
/* Adds the answer to one of its messages, what is in server->scratch. */
void lp_channel_answer(struct lp_server *server, struct lp_channel *channel);
/* One hold less; with the last one the answer is complete and leaves. */
void lp_channel_release(struct lp_server *server, lp_id id);
/* Parts it from its request, which the caller then answers. */
void lp_channel_leave(struct lp_server *server, struct lp_channel *channel);
/* Sends what waits, as far as the peer takes it. */
void lp_channel_pump(struct lp_server *server, lp_id id);
/* Ends the connection, not the channel. */
void lp_channel_poll(struct lp_server *server, struct lp_channel *channel);
/* Ends it with its calls, and the request that carries it. */
void lp_channel_kill(struct lp_server *server, struct lp_channel *channel);

/* --- session.c: the only file that knows where sessions live --- */

/* Why lp_session_new gave none. */
enum lp_reason lp_session_refusal(const struct lp_server *server, struct lp_key principal);
/* A new session, an idle one pushed out when there are too many; NULL when all are busy. */
struct lp_session *lp_session_new(struct lp_server *server, struct lp_key principal);
/* Looks for the session that the request names by its key and principal: lp_request_found follows,
 * before this returns or later. */
void lp_session_look_up(struct lp_server *server, struct lp_request *request);
/* The session of this process that the request names; NULL: none, or it is another principal's. */
struct lp_session *lp_session_find(
    const struct lp_server *server, const struct lp_request *request);
/* As lp_session_new, for a session that is there already under that key. */
struct lp_session *lp_session_adopt(
    struct lp_server *server, struct lp_key key, struct lp_key principal);
struct lp_session *lp_session_get(const struct lp_server *server, lp_id id);
/* Ends it, with its streams and calls. */
void lp_session_end(struct lp_server *server, struct lp_session *session);
/* Somebody begins or ends to use the session; the last use is now. */
void lp_session_hold(struct lp_server *server, struct lp_session *session);
void lp_session_release(struct lp_server *server, lp_id id);
/* The same, when this event is over: for who does not know what others still do with it. */
void lp_session_doom(struct lp_server *server, struct lp_session *session);
void lp_session_end_doomed(struct lp_server *server);
/* Ends what has been idle for too long, and sets the timer for the rest. */
void lp_session_sweep(struct lp_server *server);

/* --- old_sse.c --- */

/* Whether a request belongs to the old transport; then *ret_id is the session's id in its query,
 * with a null pointer when there is none. */
bool lp_old_sse_is_for(
    const struct lp_server *server, const struct lp_head *head, struct lp_span *ret_id);
/* GET: a new session and its stream. */
void lp_old_sse_open(struct lp_server *server, struct lp_request *request);
/* A POST's channel is there: the POST is answered with 202, the rest goes to the stream. */
void lp_old_sse_accept(struct lp_server *server, struct lp_channel *channel);
/* Where the messages of such a channel go; NULL: the session has ended. */
struct lp_channel *lp_old_sse_stream(
    const struct lp_server *server, const struct lp_channel *channel);
/* Its stream has lost events that its reader has not taken. */
bool lp_old_sse_has_gap(const struct lp_channel *stream);
/* Ends the session, if there is one, when the server stops and it has no call in progress; its
 * reader still gets what waits. */
void lp_old_sse_settle(struct lp_server *server, lp_id session);

/* --- rpc.c --- */

/* One message, already scanned. */
struct lp_message {
    struct lp_session *session; /* NULL in a server without sessions, and for a modern one */
    bool is_modern;
    struct lp_key principal; /* whose it is, of a modern one */
    lp_id channel;           /* where the answer goes; 0: none is due */
    const struct lp_envelope *env;
    struct lp_span text;
};

/* Handles one message; a request is answered on its channel, now or later. */
void lp_rpc_message(struct lp_server *server, const struct lp_message *message);
/* The messages of a batch (2025-03-26). */
void lp_rpc_batch(struct lp_server *server, const struct lp_message *message);
/* Writes the answer to `initialize` into `out`. */
void lp_rpc_initialize(
    struct lp_server *server, const struct lp_message *message, struct lp_out *out);
/* Answers with a result, a JSON text, or with an error; an empty `id` is null. */
void lp_rpc_result(
    struct lp_server *server, lp_id channel, struct lp_span id, struct lp_span result);
void lp_rpc_error(
    struct lp_server *server, lp_id channel, struct lp_span id, int code, const char *text);
/* Writes {"jsonrpc":"2.0","id":...; an empty `id` is null. */
void lp_rpc_begin_answer(struct lp_out *out, struct lp_span id);
/* Writes an error message. */
void lp_rpc_write_error(struct lp_out *out, struct lp_span id, int code, const char *text);
/* Writes {"name":...,"version":...}. */
void lp_rpc_write_server_info(const struct lp_server *server, struct lp_out *out);
/* Whether this server speaks that version; its own text, or NULL. */
const char *lp_rpc_version(struct lp_span version);
/* "debug" and so on. */
const char *lp_rpc_level(enum lp_level level);

/* --- modern.c --- */

enum lp_modern_verdict {
    LP_MODERN_NO,      /* a message of a session, or of the time of sessions */
    LP_MODERN_YES,     /* a request or notification of 2026-07-28, and nothing is wrong with it */
    LP_MODERN_REFUSED, /* it has got its answer */
};

/* Which era a message belongs to, and whether it agrees with its head. */
LP_MUST enum lp_modern_verdict lp_modern_judge(
    struct lp_server *server, struct lp_request *request, const struct lp_envelope *env);
/* Handles a modern request; it is answered on its channel, now or later. */
void lp_modern_message(struct lp_server *server, const struct lp_message *message);
/* A member of params._meta, raw; empty: it is not there. */
struct lp_span lp_modern_meta(struct lp_span params, const char *name);
/* From which level on a call may log; LP_LEVEL_count: not at all. */
enum lp_level lp_modern_level(struct lp_span params);
/* Writes a result with what this era adds to it. */
void lp_modern_write_result(struct lp_server *server, const struct lp_channel *channel,
    struct lp_span result, struct lp_out *out);
/* Answers that the request lacks capabilities: a JSON object of them. */
void lp_modern_lacks(
    struct lp_server *server, lp_id channel, struct lp_span id, const char *capabilities);

/* --- listen.c --- */

/* Begins a stream of events on the message's channel, or answers why not. */
void lp_listen_begin(struct lp_server *server, const struct lp_message *message);
/* Its channel goes. 0 is harmless. */
void lp_listen_forget(struct lp_server *server, lp_id id);
/* The server stops: each gets its result. */
void lp_listen_end_all(struct lp_server *server);
void lp_listen_list_changed(struct lp_server *server, enum lp_list_kind kind);
void lp_listen_resource_updated(struct lp_server *server, struct lp_span uri);
/* A task has another status, or asks for something else. */
void lp_listen_task_changed(struct lp_server *server, const struct lp_task *task);

/* --- tasks.c --- */

/* tasks/get, update and cancel; false: it is none of them, or they are not offered. */
LP_MUST bool lp_task_message(struct lp_server *server, const struct lp_message *message);
/* Whether its client declares in a request's params that it takes tasks. */
bool lp_task_is_taken(struct lp_span params);
/* The task that a JSON string names, for who asks; NULL: he has none of that name. */
struct lp_task *lp_task_find(
    struct lp_server *server, struct lp_span token, struct lp_key principal);
/* The members of a whole task: with its result, error or questions, as its status has it. */
void lp_task_write(const struct lp_server *server, const struct lp_task *task, struct lp_out *out);
/* The channel's task, if there is one, asks or works again: who listens is told. */
void lp_task_changed(struct lp_server *server, const struct lp_channel *channel);
/* The call of the channel's task has ended; takes the channel's answer. */
void lp_task_finish(struct lp_server *server, struct lp_channel *channel);
/* Frees a task, and its call if it still works; all of them. */
void lp_task_free(struct lp_server *server, lp_id id);
void lp_task_free_all(struct lp_server *server);

/* --- offer.c --- */

/* The tool of that name, a raw token; NULL: there is none. */
const struct lp_tool *lp_offer_find_tool(const struct lp_offer *offer, struct lp_span name);

/* The resource, or template, that an address fits; NULL: none. */
const struct lp_resource *lp_offer_find_resource(const struct lp_offer *offer, struct lp_span uri);
/* Writes what this server offers: the members of `capabilities`. */
void lp_offer_capabilities(const struct lp_offer *offer, struct lp_out *out);
/* Answers a list, or begins the call that the message asks for; false: no such method is offered.
 */
bool lp_offer_message(struct lp_server *server, const struct lp_message *message);

/* --- job.c --- */

/* Begins a call on the message's channel. `resource` for resources/read, else NULL. */
void lp_job_begin(struct lp_server *server, const struct lp_message *message,
    const struct lp_handler *handler, const struct lp_resource *resource);
/* Ends it without an answer; its channel is not told. */
void lp_job_end(struct lp_server *server, struct lp_job *call);
/* Whether the call that a notifications/cancelled means is in progress here. */
bool lp_job_is_here(const struct lp_message *message);
/* notifications/cancelled. */
void lp_job_cancel(const struct lp_message *message);
/* A response from the client. */
void lp_job_reply(struct lp_server *server, const struct lp_message *message);
/* Ends all calls with an error: the server stops. */
void lp_job_end_all(struct lp_server *server);
/* What it waited for is there: its handler goes on. */
void lp_job_wake(struct lp_job *call, const struct lp_wake *wake);
/* The timer of a call has fired. */
void lp_job_timer(struct lp_server *server, lp_id id);

/* --- state.c --- */

/* Wakes the calls in server->ready, and those that get there meanwhile. */
void lp_state_run_ready(struct lp_server *server);

/* --- tell.c --- */

/* Writes a log message into server->scratch. */
void lp_tell_write_log(
    struct lp_server *server, enum lp_level level, const char *logger, struct lp_span data);

#endif
