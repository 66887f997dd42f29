/* Inside gate: the engine, its exchanges and its homes, shared by the files of this room only.
 *
 * Life of an exchange (exchange.c moves it, nobody else writes `phase`):
 *
 *   READING --route--> WAITING --connected--> SENT --head--> JUDGING --> RELAYING --> OVER
 *      |                  |                     |               |
 *      +---- answered here, or the client left, or the upstream broke: OVER, with a reason ----+
 *
 *   request.c   what the client sent: checks, body, scan, facts, verdict
 *   way.c       which server and door a request is for
 *   leg.c       one attempt at a replica: connection, request head, failures and second attempts
 *   response.c  what the replica answered: judged, rewritten, passed on
 *   stream.c    event streams: comments, borders, the endpoint event of old SSE
 *   answer.c    answers of our own
 *   cors.c      what pages of other origins are told (origins)
 *   cookies.c   cookies of replicas, kept for a session (cookie_jar)
 *   peers.c     what a sidecar does beside: owner ids, hop marks, requests for other owners
 *   discovery.c peers that are looked up: who there is, and when that is settled
 *   seal.c      the id of a new session
 *   id.c        ids on the way in
 *   task.c      names of tasks, in and out
 *   metadata.c  where to log in: well-known places, challenges, public names
 *   home.c      sessions by home, mail between engines
 *   losses.c    replicas that lose what they have just given out
 *   trace.c     trace context
 *   pool.c      kept connections, health checks */
#ifndef LP_GATE_ENGINE_PRIV_H
#define LP_GATE_ENGINE_PRIV_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "gate/engine.h"
#include "gate/fleet.h"
#include "mcp/dialect.h"
#include "mcp/endpoint.h"
#include "mcp/entropy.h"
#include "mcp/envelope.h"
#include "mcp/hop.h"
#include "mcp/jar.h"
#include "mcp/ticket.h"
#include "obs/record.h"
#include "wire/sse.h"

enum {
    LP_BODY_HELD_MAX = 65536, /* a request body up to this is kept until the answer's head */
    LP_ANSWER_HELD_MAX = LP_DIALECT_BODY_MAX, /* of an answer that may mean a lost session */
    LP_EXCHANGES_MAX = 1 << 18,
    LP_ARENA_MAX = 1 << 18,
    LP_ATTEMPTS_MAX = 3,
    LP_LEFT_BYTES_MAX = 4 << 20, /* read on behalf of a client that left: at most this */
    LP_LEFT_US = 60 * 1000000,   /* and at most this long */
    LP_REPLACE_TRIES_MAX = 6,
    LP_SSE_HOLD_MAX = 65536,
    LP_ENGINES_MAX = 64,
    LP_FIELDS_ADDED_MAX = 12, /* to a head that is passed on */
    LP_VIA_MAX = 20,
    LP_SPARES_MAX = 64,
    LP_SPARE_BYTES_MAX = 4096,
    LP_CHALLENGE_MAX = 512,
    LP_METADATA_MAX = 65536,                     /* of a document whose resource is rewritten */
    LP_TASK_ANSWER_MAX = 4 << 20,                /* of what tells of a task */
    LP_ID_ECHO_MAX = 60000,                      /* a longer JSON-RPC id is not said back: null */
    LP_MAIL_TEXT_MAX = LP_JAR_SESSION_BYTES_MAX, /* the longest that a letter may carry */
};

enum lp_timer_kind {
    LP_TIMER_EXCHANGE = 16,
    LP_TIMER_COMMENT,
    LP_TIMER_CHECK,
    LP_TIMER_SWEEP,
    LP_TIMER_STOP,
    LP_TIMER_DISCOVERY, /* the next look */
    LP_TIMER_QUESTION,  /* a peer has not told its owner id in time */
};

enum lp_phase {
    LP_PHASE_READING,
    LP_PHASE_WAITING,
    LP_PHASE_SENT,
    LP_PHASE_JUDGING, /* the answer's head is held until its body says what it means */
    LP_PHASE_RELAYING,
    LP_PHASE_REPLACING, /* a 409 is held until the older stream is closed */
    LP_PHASE_OVER,
};

struct lp_server_state {
    const struct lp_conf_server *conf;
    uint32_t index;
    struct lp_fleet fleet;
    enum lp_knowledge mints_ids;
    bool challenges;
    char challenge[LP_CHALLENGE_MAX]; /* WWW-Authenticate of the last 401 */
    size_t challenge_len;
    bool complained; /* that its challenges name an address which clients do not use */
};

/* A message head that outlives its codec: everything copied into the exchange's arena. */
struct lp_kept_head {
    enum lp_method method;
    struct lp_span method_name;
    struct lp_span path;
    struct lp_span query; /* null pointer: none */
    uint16_t status;
    struct lp_span reason;
    enum lp_body_kind body;
    uint64_t body_bytes;
    uint32_t field_count;
    struct lp_field *fields;
};

struct lp_leg {
    lp_id link;
    struct lp_stream up; /* valid from phase SENT on */
    bool open;           /* the stream at the replica is in progress */
    bool reused;
    bool counted_opening;
    bool counted_waiting;
    uint32_t replica; /* index in the fleet */
    size_t body_sent; /* of the held body */
};

struct lp_exchange {
    lp_id id;
    struct lp_server_state *server;
    enum lp_phase phase;
    struct lp_arena arena;
    struct lp_list dying;

    /* the client's side */
    struct lp_stream down;
    bool down_open;
    bool down_begun;   /* the answer's head is out */
    bool down_blocked; /* the client takes no more for now */
    bool client_left;
    bool body_done;
    bool body_streams;      /* the body is passed on while it comes */
    bool is_made;           /* by the engine: there is no client */
    enum lp_reason refusal; /* decided by the head; the body is only read for its id */
    struct lp_kept_head request;
    struct lp_span host; /* which the client named: its Host, or its target's authority */
    struct lp_buf body;
    uint64_t body_seen;
    size_t large_bytes; /* what e->large_bytes counts of `body` */

    /* what it means */
    struct lp_envelope env;
    enum lp_era era;
    enum lp_door door;
    struct lp_verdict verdict;
    enum lp_id_state id_state;
    bool id_is_sse;
    bool is_task;       /* about a task that is named: `id_state` and `ticket` are of its name */
    bool sees_tasks;    /* its answer can name a task */
    bool is_unwrapped;  /* the body has the name that the replica knows */
    bool is_stream_get; /* GET that opens or resumes a stream */
    bool is_standalone; /* ... without Last-Event-ID */
    bool is_pinned;     /* by a rule: all such requests go to one replica */
    struct lp_span client_id; /* the session id as the client sent it */
    struct lp_ticket ticket;
    struct lp_span target; /* path and query at the replica, where the leg does not tell them */
    struct lp_span asked;  /* path and query as the client asked */

    /* of a sidecar */
    struct lp_span owner; /* who has the session, when it is another one; a checked owner id */
    bool came_by_peer;    /* with a good hop mark */
    bool has_page;        /* of an origin that is named in the configuration: it may read this */
    bool was_passed;      /* a peer or the platform has passed it on already */

    /* cookies, of servers with cookie_jar */
    bool asks_home;         /* waits for its home's word about them */
    bool knows_cookies;     /* `cookie` is what it will be */
    struct lp_span cookie;  /* the Cookie value for the replica; null pointer: the client's own */
    struct lp_span cookies; /* packed, of a new session's answer; empty once they are sealed */

    /* the replica's side */
    struct lp_leg leg;
    uint32_t attempts;
    uint32_t replace_tries;
    struct lp_kept_head *answer; /* while judging */
    struct lp_buf held;          /* its body so far */
    bool answer_done;

    /* an event stream on its way to the client */
    bool is_sse;
    bool is_old_sse;
    bool is_encoded;   /* compressed, though we ask for none: its events cannot be seen */
    bool reads_events; /* each is looked at */
    bool endpoint_done;
    bool has_session_stream; /* its home knows it as the session's standalone stream */
    uint8_t bom_seen;
    struct lp_sse_border border;
    struct lp_sse *sse; /* old SSE only: the events */
    struct lp_timer comment_timer;
    uint64_t last_event_us;

    struct lp_timer timer;
    uint64_t turn_us; /* since when it is the replica's turn to send something */
    uint64_t begun_us;
    uint64_t left_bytes;
    enum lp_reason reason;
    enum lp_reason end_reason; /* why the answer ended, when it ended whole */
    struct lp_record record;
};

/* What exchanges that are over leave to the next ones, so that the system is not asked for memory
 * with every request. */
struct lp_spares {
    struct lp_arena arenas[LP_SPARES_MAX];
    struct lp_buf bodies[LP_SPARES_MAX];
    uint32_t arena_count;
    uint32_t body_count;
};

struct lp_session {
    struct lp_key key;
    struct lp_list lru;
    uint64_t used_us;
    uint32_t server;
    uint32_t replica;
    uint32_t incarnation;   /* of the replica as the home saw it then */
    bool is_replaced;       /* counted as ended: its client has begun another; streams may go on */
    uint64_t opened_us;     /* 0: through another process, or before a restart */
    uint32_t stream_engine; /* of the standalone GET stream */
    lp_id stream_exchange;  /* 0: none */
    struct lp_jar *jar;     /* NULL: its ticket tells its cookies */
};

enum lp_mail_kind {
    LP_MAIL_OPENED,       /* to the home: key, server, replica */
    LP_MAIL_ENDED,        /* to the home: key, delta: why (enum lp_end) */
    LP_MAIL_LOST_FRESH,   /* to engine 0: server, replica, opened_us */
    LP_MAIL_USED,         /* to the home: key */
    LP_MAIL_COUNT,        /* to all: server, replica, delta */
    LP_MAIL_CLOSED,       /* to all: an old-SSE stream was seen to close: key */
    LP_MAIL_STATE,        /* to all: server, replica, state */
    LP_MAIL_LEARNT,       /* to all: server, delta: what (enum lp_learnt); text: the challenge */
    LP_MAIL_STREAM,       /* to the home: key, exchange: the session's standalone stream is mine */
    LP_MAIL_UNSTREAM,     /* to the home: key, exchange: it has ended */
    LP_MAIL_EVICT,        /* to the home: key, exchange: the replica says 409 to mine */
    LP_MAIL_YIELD,        /* from the home to the holder: exchange; other: who asked */
    LP_MAIL_YIELDED,      /* to who asked: exchange: closed, or there was none */
    LP_MAIL_ASK_COOKIES,  /* to the home: key, exchange: what are the session's cookies? */
    LP_MAIL_COOKIES_ARE,  /* to who asked: exchange; delta 1: text; 0: those of the ticket */
    LP_MAIL_BASE_COOKIES, /* to the home: key, text: the ticket's, if it has no jar yet */
    LP_MAIL_COOKIES,      /* to the home: key, text: changes */
};

/* What engines tell each other of a server. */
enum lp_learnt {
    LP_LEARNT_MINTS = 1,
    LP_LEARNT_MINTS_NOT,
    LP_LEARNT_CHALLENGES,     /* with its challenge, as far as there is one that fits */
    LP_LEARNT_CHALLENGES_NOT, /* it opens sessions for those without credentials */
};

struct lp_mail {
    uint32_t kind;
    uint32_t from;
    struct lp_key key;
    uint32_t server;
    uint32_t replica;
    int32_t delta;
    int32_t error; /* STATE: of the connection that showed it */
    uint32_t other_engine;
    uint64_t opened_us; /* LOST_FRESH: of the session */
    lp_id exchange;
    lp_id other_exchange;
    struct lp_span text; /* at most LP_MAIL_TEXT_MAX bytes; on the way it follows the struct */
};

enum { LP_UNSETTLED_MAX = 256 };

/* Of a sidecar that looks its peers up. A round is a look and, where it found addresses, a question
 * to each of them. */
struct lp_discovery {
    bool is_on;
    bool is_looking;
    bool is_failing; /* the last look failed */
    bool is_wanted;  /* somebody waits for another round */
    bool has_moved;  /* at an address another owner than before has answered in this round */
    uint32_t open_questions;
    uint64_t begun_us;    /* the round under way, or the last */
    uint64_t complete_us; /* begin of the last round that left no question open; 0: none has */
    struct lp_timer timer;
    struct {
        uint64_t session;
        uint64_t since_us;
    } unsettled[LP_UNSETTLED_MAX]; /* sessions of unknown owners, and when they were asked for */
};

enum { LP_SESSIONS_MAX = 1 << 18, LP_CLOSED_MAX = 8192, LP_SESSION_IDLE_S = 1800 };

struct lp_engine {
    const struct lp_shell *shell;
    uint32_t number;
    uint32_t count;
    const struct lp_conf *conf;
    const struct lp_keyring *keyring;
    const struct lp_message_ops *admin_ops;
    void *admin_ctx;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_entropy entropy;
    struct lp_metrics metrics;
    struct lp_server_state *servers;
    struct lp_slab exchanges;
    struct lp_spares spares;
    uint64_t large_bytes; /* memory of held bodies over LP_BODY_HELD_MAX */
    struct lp_list dying;
    struct lp_head *out_head; /* the head being sent */
    uint64_t mono_us;
    uint64_t wall_ms;
    char via[LP_VIA_MAX];    /* "1.1 limpet-5f0c11aa": how it signs what it passes on */
    uint64_t cookie_told_us; /* when the last dropped cookie was logged; 0: never */
    uint64_t complain_us;    /* no complaint of our own poverty before this */
    uint64_t timer_at_us;    /* what the shell was last asked for */
    bool stopping;
    bool stopped;
    bool is_ready; /* written by this engine's thread, read by any */
    struct lp_timer stop_timer;
    struct lp_timer sweep_timer;

    /* home.c */
    struct lp_slab sessions;
    struct lp_map session_by_key;
    struct lp_list session_lru; /* oldest first */
    struct lp_map closed_by_key;
    struct lp_key *closed_ring;
    uint32_t closed_next;

    struct lp_hop_cache hops;      /* of a sidecar */
    struct lp_discovery discovery; /* likewise */
    char mark[LP_HOP_TEXT_MAX];    /* scratch for one hop mark */
    char room[LP_TICKET_TEXT_MAX]; /* scratch for one ticket */
};

/* engine.c */
struct lp_exchange *lp_exchange_get(struct lp_engine *e, lp_id id);
void lp_engine_say(struct lp_engine *e, enum lp_log_level level, const char *fmt, ...)
    LP_PRINTF(3, 4);
/* The same for what may happen with every request: at most one sentence a second. */
bool lp_engine_may_complain(struct lp_engine *e);
void lp_engine_arm(struct lp_engine *e, struct lp_timer *timer, uint64_t at_us);
/* After anything that may change the answer of lp_engine_is_ready. */
void lp_engine_tell_ready(struct lp_engine *e);

/* exchange.c */
extern const struct lp_message_ops lp_client_ops;
struct lp_exchange *lp_exchange_new(struct lp_engine *e);
void lp_exchange_set_phase(struct lp_exchange *x, enum lp_phase phase);
/* Over, for this reason: the log line, the counters, and memory at the end of the event. Both sides
 * must have been ended or left by then. */
void lp_exchange_over(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason);
void lp_exchange_bury(struct lp_engine *e);
/* Counts the body's memory anew if it is a large one; false when all of them together are over
 * their limit and this one is not alone. */
bool lp_exchange_count_body(struct lp_engine *e, struct lp_exchange *x);
/* The request's body is not needed any more. */
void lp_exchange_drop_body(struct lp_engine *e, struct lp_exchange *x);
/* Nor is the request: an answer that may take hours has begun, and no other will be given. */
void lp_exchange_drop_request(struct lp_engine *e, struct lp_exchange *x);
void lp_spares_fini(struct lp_spares *spares);
void lp_exchange_timer(struct lp_engine *e, struct lp_exchange *x);
/* An answer's head is passed on: from now on its body is awaited. */
void lp_exchange_await_body(struct lp_engine *e, struct lp_exchange *x);
/* The client's side cannot be answered any more, or needs no answer. */
void lp_exchange_client_left(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why);
int lp_head_keep(struct lp_exchange *x, const struct lp_head *head, struct lp_kept_head *ret);
struct lp_span lp_kept_value(const struct lp_kept_head *head, enum lp_field_id id);
/* Whether a Connection field, and there may be several, says that a field is for this hop only. */
bool lp_kept_is_named_by_connection(const struct lp_kept_head *head, struct lp_span name);
bool lp_exchange_is_call(const struct lp_exchange *x);
/* At an MCP path: there are sessions and messages. */
bool lp_exchange_is_mcp(const struct lp_exchange *x);

/* way.c */
/* Sets host, path, query, server, door and is_pinned. A reason when there is no way. */
enum lp_reason lp_way_find(struct lp_engine *e, struct lp_exchange *x);

/* request.c */
void lp_request_head(struct lp_engine *e, struct lp_stream s, const struct lp_head *head);
void lp_request_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes);
void lp_request_end(struct lp_engine *e, struct lp_exchange *x);
/* Asks lp_route and carries its verdict out. */
void lp_request_route(struct lp_engine *e, struct lp_exchange *x);
void lp_request_refused(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why);

/* leg.c */
extern const struct lp_message_ops lp_replica_ops;
/* The replica for what has no owner; `avoid` as in lp_fleet_pick. */
uint32_t lp_leg_pick(struct lp_exchange *x, uint32_t avoid);
void lp_leg_start(struct lp_engine *e, struct lp_exchange *x, uint32_t replica);
void lp_leg_close(struct lp_engine *e, struct lp_exchange *x);
void lp_leg_done(struct lp_engine *e, struct lp_exchange *x);
/* How long the replica may be silent when it is its turn. */
/* A part of the held body still waits for the replica to take what was sent before. */
bool lp_leg_is_sending(const struct lp_exchange *x);
uint64_t lp_leg_silence_us(const struct lp_exchange *x);
struct lp_replica *lp_leg_replica(const struct lp_exchange *x);

/* trace.c */
/* Puts the trace into the head that the replica gets, and its id into the record. */
void lp_trace_add(struct lp_engine *e, struct lp_exchange *x, struct lp_head *head);

/* response.c */
void lp_response_head(struct lp_engine *e, struct lp_exchange *x, const struct lp_head *head);
void lp_response_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes);
void lp_response_end(struct lp_engine *e, struct lp_exchange *x, bool whole);
/* The replica's connection broke after the request was written. */
void lp_response_broke(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why);
/* After a 409: the older stream is closed as far as we know, so the GET is tried again; or nobody
 * answered, and the 409 is passed on. */
void lp_response_yielded(struct lp_engine *e, struct lp_exchange *x, bool closed);

/* stream.c */
void lp_stream_begin(struct lp_engine *e, struct lp_exchange *x);
/* Passes a piece on; false: the client is behind. */
bool lp_stream_pass(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes);
void lp_stream_comment(struct lp_engine *e, struct lp_exchange *x);
void lp_stream_fini(struct lp_engine *e, struct lp_exchange *x);

/* cors.c */
/* The doorkeeper has let it in: notes whether a page asks that is to be told what it may. */
void lp_page_admitted(struct lp_exchange *x);
bool lp_page_is_preflight(const struct lp_exchange *x);
/* Whether a field of a replica's answer is not passed on, because ours stands in its place. */
bool lp_page_hides(const struct lp_exchange *x, enum lp_field_id id);
/* Adds what lets the page read an answer: a replica's, or, `from` NULL, ours. */
void lp_page_add_fields(
    struct lp_exchange *x, const struct lp_kept_head *from, struct lp_head *head);
/* Adds what the page may send; `names` (LP_CORS_LIST_MAX) lives as long as the head. LP_ENOMEM. */
LP_MUST int lp_page_add_preflight(
    struct lp_exchange *x, struct lp_buf *names, struct lp_head *head);

/* answer.c */
/* Answers the client for this reason and ends the exchange. */
void lp_answer(
    struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason, const char *detail);
/* The platform is asked to send the request to x->owner. */
void lp_answer_replay(struct lp_engine *e, struct lp_exchange *x);
/* The answer to a page's preflight. */
void lp_answer_preflight(struct lp_engine *e, struct lp_exchange *x);
/* Somebody is told our owner id, signed. */
void lp_answer_owner(struct lp_engine *e, struct lp_exchange *x);
/* A JSON-RPC error in a 200: the call was sent and will never be answered. */
void lp_answer_dead_call(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason);
/* The same as an event of a running stream. */
void lp_answer_dead_event(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason);

/* home.c */
LP_MUST int lp_home_init(struct lp_engine *e);
void lp_home_fini(struct lp_engine *e);
void lp_home_sweep(struct lp_engine *e);
void lp_home_mail(struct lp_engine *e, const struct lp_mail *mail);
/* Mail as it came from another engine. */
void lp_mail_receive(struct lp_engine *e, struct lp_span bytes);
void lp_mail_send(struct lp_engine *e, uint32_t to, const struct lp_mail *mail);
void lp_mail_all(struct lp_engine *e, const struct lp_mail *mail);
void lp_home_opened(struct lp_engine *e, const struct lp_exchange *x, struct lp_key key);
void lp_home_ended(struct lp_engine *e, struct lp_key key, enum lp_end why);
void lp_home_used(struct lp_engine *e, struct lp_key key);
bool lp_home_is_closed(const struct lp_engine *e, struct lp_key key);
/* The jar of a session that is at home here; NULL when it has none. */
const struct lp_jar *lp_home_jar(struct lp_engine *e, struct lp_key key);
void lp_home_replica_gone(struct lp_engine *e, uint32_t server, uint32_t replica);
uint32_t lp_home_of(const struct lp_engine *e, struct lp_key key);

/* losses.c: on engine 0 */
/* A replica that was not seen to restart has lost a session that it had just given out. */
void lp_losses_note(struct lp_engine *e, uint32_t server, uint32_t replica, uint64_t opened_us);

/* cookies.c: each does nothing for servers without cookie_jar */
/* Before a forward: sets x->cookie. False when the exchange is over, or its home is asked first and
 * lp_request_route comes again with its word. */
bool lp_cookies_load(struct lp_engine *e, struct lp_exchange *x);
/* The home's word, or that there is none: then the ticket's cookies are used. */
void lp_cookies_loaded(
    struct lp_engine *e, struct lp_exchange *x, bool has_word, struct lp_span packed);
/* Sets x->cookie to the client's own cookies and these. LP_ENOMEM, LP_ELIMIT. */
LP_MUST int lp_cookies_use(struct lp_engine *e, struct lp_exchange *x, struct lp_span packed);
/* Takes the Set-Cookie fields of any answer: to the session's home, or for a new one's ticket. */
void lp_cookies_take(struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from);
/* A session was opened: cookies that its ticket could not take go to its home. */
void lp_cookies_opened(struct lp_engine *e, const struct lp_exchange *x);
/* A field of the answer that the client does not get. */
bool lp_cookies_is_hidden(const struct lp_exchange *x, enum lp_field_id id);

/* peers.c */
/* Whether a peer or the platform has passed the request on: sets came_by_peer and was_passed. A
 * reason when it must be refused for its mark. */
enum lp_reason lp_peer_judge_hop(struct lp_engine *e, struct lp_exchange *x);
/* Reads a readable id into id_state, ticket and owner; false when *text (then without an owner's
 * id) is a ticket. */
bool lp_peer_read_id(
    struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind, struct lp_span *text);
/* The place of a good id's owner in the fleet, its count for none; sets `owner` for a peer. */
uint32_t lp_peer_owner(const struct lp_engine *e, struct lp_exchange *x);
/* The body is, or may be, over what a platform replays. */
bool lp_peer_is_too_large(const struct lp_exchange *x);
/* The readable id of a new session, in the arena: of `inner`, the replica's id, or a ticket for an
 * old-SSE stream. LP_ENOT_FOUND when such sessions have tickets; LP_EREFUSED, LP_ENOMEM. */
LP_MUST int lp_peer_mint(struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind,
    struct lp_span inner, struct lp_span *ret_text);
/* The fields that only a peer gets: the client's session id as it is, and the hop mark. */
void lp_peer_add_fields(struct lp_engine *e, struct lp_exchange *x, struct lp_head *head);
/* Somebody asks for our owner id. */
bool lp_peer_is_question(const struct lp_engine *e, const struct lp_exchange *x);

/* metadata.c: of requests at a well-known place */
/* Where a replica has what was asked for; `path` is its MCP path. */
struct lp_span lp_metadata_target(struct lp_exchange *x, struct lp_span path);
/* True: the replica is asked at the place alone, and this answer is forgotten. */
bool lp_metadata_ask_again(struct lp_engine *e, struct lp_exchange *x, uint16_t status);
/* The answer's body is held and then rewritten. */
bool lp_metadata_is_held(const struct lp_exchange *x, uint16_t status);
void lp_metadata_rewrite(struct lp_exchange *x);
/* A challenge as the client gets it, of any answer; valid as long as the exchange. */
struct lp_span lp_metadata_challenge(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span challenge);

/* discovery.c */
#define LP_QUESTION_PATH "/.limpet/owner"
/* What an answer to the question vouches for; no request has this method. */
struct lp_hop_claim lp_discovery_claim(struct lp_span asked, struct lp_span owner);
void lp_discovery_init(struct lp_engine *e);
void lp_discovery_timer(struct lp_engine *e, const struct lp_timer *timer);
void lp_discovery_looked(struct lp_engine *e, int error, struct lp_span text);
/* Whether all peers are known as far as this session is concerned, whose owner is not among them.
 * If not, they are looked for. */
bool lp_discovery_is_settled(struct lp_engine *e, struct lp_key session);

/* id.c */
/* Sets x->id_state, and x->ticket or x->owner. */
void lp_id_open(
    struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind, struct lp_span text);
/* Whether it has the form of what is minted here. */
bool lp_id_may_be_ours(const struct lp_engine *e, struct lp_span text);

/* task.c */
/* The request has been judged: which task it is about, and whether its answer can name one. */
void lp_task_read(struct lp_engine *e, struct lp_exchange *x);
/* The held body gets the name that the replica knows. LP_ENOMEM. */
LP_MUST int lp_task_unwrap(struct lp_exchange *x);
/* Whether the answer is to be read for the name of a task; and whether as a whole, being JSON. */
bool lp_task_is_awaited(const struct lp_exchange *x);
bool lp_task_is_held(const struct lp_exchange *x, const struct lp_kept_head *from);
/* How long an answer, or an event, may be that is read for it. */
size_t lp_task_held_max(const struct lp_exchange *x);
/* The message as the client gets it in *out, which the caller releases. LP_ENOT_FOUND: it names no
 * task, and *out is not set; other errors as lp_task_reason takes them. */
LP_MUST int lp_task_show(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span message, struct lp_buf *out);
enum lp_reason lp_task_reason(int err);
/* The same for the whole held answer. */
enum lp_reason lp_task_rewrite(struct lp_engine *e, struct lp_exchange *x);

/* seal.c */
/* The id of a new session at the leg's replica, with x->cookies if they fit. The text is in the
 * exchange's arena; x->ticket has its key. The id is not empty and fits a ticket. LP_ENOMEM. */
LP_MUST int lp_seal(struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind,
    struct lp_span upstream_id, struct lp_span *ret_text);

/* pool.c */
/* A kept connection that is fit for use, or 0. */
lp_id lp_pool_take(struct lp_engine *e, struct lp_replica *r);
void lp_pool_give(struct lp_engine *e, struct lp_replica *r, lp_id link);
void lp_pool_sweep(struct lp_engine *e, struct lp_replica *r);
void lp_pool_drop_all(struct lp_engine *e, struct lp_replica *r);
/* Health checks and what connections showed; they tell the other engines. */
void lp_check_timer(struct lp_engine *e, uint32_t server, uint32_t replica);
void lp_check_now(struct lp_engine *e, uint32_t server, uint32_t replica);
void lp_replica_connected(struct lp_engine *e, uint32_t server, uint32_t replica);
/* A connection failed for want of something of our own: said at most once a second. */
void lp_replica_not_tried(struct lp_engine *e, uint32_t server, uint32_t replica, int error);
void lp_replica_failed(struct lp_engine *e, uint32_t server, uint32_t replica, int error);
void lp_replica_broke(struct lp_engine *e, uint32_t server, uint32_t replica);
void lp_replica_changed(struct lp_engine *e, uint32_t server, uint32_t replica);
struct lp_endpoint lp_replica_endpoint(
    const struct lp_engine *e, uint32_t server, uint32_t replica);

#endif
