/* liblimpet-server: an MCP server for a C or C++ program. The program says what it offers (tools,
 * resources, prompts) and answers calls; the server speaks Streamable HTTP, keeps the sessions, and
 * tells by the session id which process owns one (owner ids).
 *
 * It runs on its own loop (limpet_server_listen, limpet_server_run), or the program feeds it:
 * requests that its own HTTP server got (limpet_exchange_begin), or the bytes of connections
 * (limpet_server_connected). A server is used by one thread at a time; only limpet_server_post and
 * limpet_server_stop may be called by any. There are no globals: a program may have any number of
 * servers.
 *
 * Texts in structures are copied; NULL is as if not there. Raw JSON that the program hands in is
 * checked. The manual is limpet-server(3); link with `pkg-config --cflags --libs limpet-server`.
 * Fit for C11 and C++17. */
#ifndef LIMPET_SERVER_H
#define LIMPET_SERVER_H

#include <limpet.h>

#ifdef __cplusplus
extern "C" {
#endif

struct limpet_server;
struct limpet_call;

/* Errors that limpet.h has no use for. */
enum limpet_server_error {
    LIMPET_EUNSUPPORTED = -5,  /* this server, session, client or call cannot do that */
    LIMPET_EUNREACHABLE = -15, /* no such address here */
    LIMPET_EIO = -16,
};

/* --- the server: limpet-server(3) ------------------------------------------------------------ */

enum {
    LIMPET_PRINCIPAL_BYTES = 16,
    LIMPET_STATE_MAX = 4096, /* of yours, in each session */
};

/* Where sessions live. */
enum limpet_sessions {
    LIMPET_SESSIONS_LOCAL,     /* in the memory of this process */
    LIMPET_SESSIONS_STATELESS, /* nowhere: no id is given, and none asked for */
    LIMPET_SESSIONS_SHARED,    /* in a Redis or Valkey: any replica serves any session */
};

/* Which revisions are spoken. Requests of 2026-07-28 have no session, wherever those live. */
enum limpet_eras {
    LIMPET_ERAS_BOTH,
    LIMPET_ERAS_LEGACY, /* 2025-03-26 to 2025-11-25 */
    LIMPET_ERAS_MODERN, /* 2026-07-28 */
};

/* How a request of another owner's session is answered. */
enum limpet_replay {
    LIMPET_REPLAY_OFF,    /* 404 */
    LIMPET_REPLAY_PREFER, /* fly-replay: prefer_instance=<owner>;timeout=5s */
    LIMPET_REPLAY_STRICT, /* fly-replay: instance=<owner> */
};

/* Who may use the server. `token` is that of `Authorization: Bearer`, empty without one. True: it
 * is good, and `principal`, zero before, may say whose (a hash of yours): a session belongs to the
 * principal that opened it, and is not found by another one. */
typedef bool (*limpet_bearer_fn)(
    void *context, struct limpet_span token, unsigned char principal[LIMPET_PRINCIPAL_BYTES]);

enum limpet_level {
    LIMPET_LEVEL_DEBUG,
    LIMPET_LEVEL_INFO,
    LIMPET_LEVEL_NOTICE,
    LIMPET_LEVEL_WARNING,
    LIMPET_LEVEL_ERROR,
    LIMPET_LEVEL_CRITICAL,
    LIMPET_LEVEL_ALERT,
    LIMPET_LEVEL_EMERGENCY,
};

/* Begin with LIMPET_ZERO; a member that is zero has the value that is named. */
struct limpet_server_options {
    const char *name; /* what clients are told; needed, as is the version */
    const char *version;
    const char *instructions;
    const char *path;     /* where MCP is served: begins with '/', at most 256 bytes; "/mcp" */
    const char *sse_path; /* where HTTP+SSE of 2024-11-05 is served; nowhere */
    enum limpet_sessions sessions;
    enum limpet_eras eras;
    const char *store;   /* of shared ones: "redis://host:port" */
    uint32_t store_wait; /* so many replicas of the store must have what is written; 0 */
    /* Sentences for a log: the store goes and comes, its URL cannot be. */
    void (*log)(void *context, enum limpet_level level, struct limpet_span sentence);
    void *log_context;
    const char *owner;        /* of the sessions; FLY_MACHINE_ID of the environment */
    bool owner_from_hostname; /* where there is no other, made of HOSTNAME */
    enum limpet_replay replay;
    /* The text of a key file (limpet_ticket(3)), the same for all replicas: what a client of
     * 2026-07-28 carries from one question of a call to the next is sealed with it. Without, with a
     * key of this server's own, and no other one can go on with such a call. */
    const char *keys;
    const char *origins;       /* allowed ones, comma separated; LIMPET_ALLOWED_ORIGINS */
    uint32_t session_max;      /* 256; beyond, the one that was idle longest ends, his own first */
    uint32_t session_max_each; /* of one principal; no limit beside that of all */
    uint32_t idle_ms;          /* a session without a request; 15 minutes */
    uint32_t grace_ms;         /* for calls in progress after a stop; 10 seconds */
    uint32_t retry_ms;         /* after which a client comes again for a stream; 1 second */
    limpet_bearer_fn bearer;   /* everybody may */
    void *bearer_context;
    const char *resource_metadata; /* its URL, for the challenge of a 401 */
    uint32_t fresh_ms;             /* how long clients may keep lists (2026-07-28); not at all */
    bool is_public;                /* these are the same for everybody: caches may share them */
    bool lists_change;             /* limpet_server_list_changed will be called */
    bool has_subscriptions;        /* limpet_server_resource_updated will be called */
    bool has_tasks;                /* limpet_call_task may be called */
    /* The process is the server's: from limpet_server_listen on, SIGTERM and SIGINT stop it and a
     * second one ends the process; SIGPIPE and SIGHUP are ignored; the limit of descriptors is
     * raised. */
    bool owns_process;
};

/* LIMPET_ESYNTAX: name or version is missing, or a path, owner, key or store cannot be;
 * LIMPET_EUNSUPPORTED: sse_path where sessions are not local; LIMPET_ENOMEM. `alloc` may be NULL;
 * what it is asked for: limpet-server(3). */
LIMPET_API LIMPET_MUST int limpet_server_new(const struct limpet_alloc *alloc,
    const struct limpet_server_options *options, struct limpet_server **ret_server);

/* Ends what is in progress and gives all memory back. Functions that were posted and have not run
 * are dropped. Not from within a handler. NULL is harmless. */
LIMPET_API void limpet_server_free(struct limpet_server *server);

/* The owner id, and where it comes from. LIMPET_OWNER_MACHINE_BAD: somebody should be told. */
LIMPET_API void limpet_server_owner(
    const struct limpet_server *server, struct limpet_owner *ret_owner);

/* Sessions that are open now. */
LIMPET_API uint32_t limpet_server_session_count(const struct limpet_server *server);

/* What the last function that failed has to say to a person ("127.0.0.1:3000 is in use"), else the
 * sentence of `error`. `server` may be NULL. Lives until the next failure. */
LIMPET_API const char *limpet_server_why(const struct limpet_server *server, int error);

/* --- its own loop ---------------------------------------------------------------------------- */

/* "127.0.0.1:3000", "[::1]:0" (any free port), "unix:/run/mcp.sock". Once or more often, before
 * limpet_server_run. LIMPET_ESYNTAX; LIMPET_EEXISTS: it is in use, or the server is fed;
 * LIMPET_EUNREACHABLE, LIMPET_ELIMIT (more than 8), LIMPET_EIO, LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_server_listen(struct limpet_server *server, const char *address);

/* The URL of the first address, "http://127.0.0.1:3000/mcp"; "unix:/run/mcp.sock". "" before. */
LIMPET_API const char *limpet_server_url(const struct limpet_server *server);

/* Serves until it is stopped; once in a server's life. LIMPET_EUNSUPPORTED: it listens nowhere, or
 * has run. */
LIMPET_API LIMPET_MUST int limpet_server_run(struct limpet_server *server);

/* From any thread (not from a signal handler): begin to stop. Calls in progress have their grace.
 * LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_server_stop(struct limpet_server *server);

/* From any thread: `run` is called in the server's, soon, once, in the order of these calls.
 * LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_server_post(struct limpet_server *server,
    void (*run)(void *context, struct limpet_server *server), void *context);

/* --- fed by its program: limpet-server-feed(3) ----------------------------------------------- */

enum limpet_close {
    LIMPET_CLOSE_NOW,    /* both ways, at once */
    LIMPET_CLOSE_LINGER, /* end our side, drop what still comes, then close */
    LIMPET_CLOSE_RESET,  /* the peer must see that it was cut */
};

/* What a server that is fed asks of its program. Neither these nor handlers may feed it. */
struct limpet_feeder {
    void *context;
    /* From any thread: limpet_server_turn is due. NULL: no other thread posts or stops. */
    void (*wake)(void *context);
    /* These are for connections, and may be NULL where there are only exchanges.
     *
     * Bytes for a peer; how many were taken. Where that is fewer, limpet_server_writable follows.
     */
    size_t (*write)(void *context, void *peer, struct limpet_span bytes);
    /* No limpet_server_received until it goes on. */
    void (*pause)(void *context, void *peer, bool is_paused);
    /* Its last word on this peer. */
    void (*close)(void *context, void *peer, enum limpet_close how);
};

/* From now on it is fed. LIMPET_EEXISTS: it listens, or is fed already. */
LIMPET_API LIMPET_MUST int limpet_server_feed(
    struct limpet_server *server, const struct limpet_feeder *feeder);

/* How long until limpet_server_turn is due: 0 now, -1 never, as poll(2) takes it. Ask after each
 * call that feeds. */
LIMPET_API int limpet_server_timeout_ms(struct limpet_server *server);

/* Readable when a turn is due too, where sessions are shared: the store has answered. Else -1. */
LIMPET_API int limpet_server_fd(const struct limpet_server *server);

/* Does what is due: timers, posted functions, a stop; and sends what calls have said meanwhile. */
LIMPET_API void limpet_server_turn(struct limpet_server *server);

/* After limpet_server_stop: nothing is in progress any more. */
LIMPET_API bool limpet_server_is_stopped(const struct limpet_server *server);

struct limpet_peer {
    void *peer;       /* yours, for the feeder */
    bool is_loopback; /* the address that it connected to is a loopback one */
    bool is_tls;
    struct limpet_span address; /* of the peer, "192.0.2.7:1234", or empty */
};

/* A client has connected. Its number goes to *ret_connection; it is dead after `close`, and after
 * limpet_server_broken, and may be used then without harm. LIMPET_EUNSUPPORTED: no feeder with
 * write, pause and close; LIMPET_ELIMIT: there are too many, or the server stops; LIMPET_ENOMEM. On
 * failure the peer stays the caller's: `close` is not called. */
LIMPET_API LIMPET_MUST int limpet_server_connected(
    struct limpet_server *server, const struct limpet_peer *peer, uint64_t *ret_connection);
/* Bytes have come; it sends no more; it takes more; it is gone. */
LIMPET_API void limpet_server_received(
    struct limpet_server *server, uint64_t connection, struct limpet_span bytes);
LIMPET_API void limpet_server_ended(struct limpet_server *server, uint64_t connection);
LIMPET_API void limpet_server_writable(struct limpet_server *server, uint64_t connection);
LIMPET_API void limpet_server_broken(struct limpet_server *server, uint64_t connection);

/* --- requests that a host program got: limpet-server-exchange(3) ----------------------------- */

/* A request as it came. Any fields; those that are about its connection are not looked at. The body
 * is whole, or its rest follows by limpet_exchange_body. */
struct limpet_request {
    struct limpet_span method;
    struct limpet_span target; /* with options.path, whatever the host's own path is */
    const struct limpet_field *fields;
    size_t field_count;
    struct limpet_span body;
    bool body_follows;
    bool is_loopback; /* the address that the client connected to is a loopback one */
};

struct limpet_answer_head {
    int status;
    const struct limpet_field *fields; /* none about length, coding or connection */
    size_t field_count;
    int64_t body_bytes; /* -1: not known beforehand, as of an event stream */
};

/* Who takes the answer: one head, any number of pieces, one end. The spans live until the function
 * returns. None of these may call a function of the server. */
struct limpet_answer {
    void *context;
    void (*head)(void *context, const struct limpet_answer_head *head);
    /* False: it was taken, and no more until limpet_exchange_resume. */
    bool (*body)(void *context, struct limpet_span bytes);
    /* Not whole: the host should cut its client's connection. The exchange is dead. */
    void (*end)(void *context, bool is_whole);
};

/* Hands a request in; the answer may come before this returns. LIMPET_ESYNTAX: it cannot stand in
 * HTTP (answer 400); LIMPET_ELIMIT: more than 128 fields, too many exchanges, or the server stops
 * (answer 503); LIMPET_EEXISTS: it listens itself; LIMPET_ENOMEM. On failure `answer` hears
 * nothing. */
LIMPET_API LIMPET_MUST int limpet_exchange_begin(struct limpet_server *server,
    const struct limpet_request *request, const struct limpet_answer *answer,
    uint64_t *ret_exchange);
/* The next piece of the body, and its end. An exchange that is dead takes and ignores both.
 * LIMPET_ERANGE: it is not as long as its Content-Length says; the exchange ends, not whole. */
LIMPET_API LIMPET_MUST int limpet_exchange_body(
    struct limpet_server *server, uint64_t exchange, struct limpet_span bytes);
LIMPET_API LIMPET_MUST int limpet_exchange_end(struct limpet_server *server, uint64_t exchange);
/* More of the answer may come. */
LIMPET_API void limpet_exchange_resume(struct limpet_server *server, uint64_t exchange);
/* Its client has gone: `answer` hears nothing more. */
LIMPET_API void limpet_exchange_left(struct limpet_server *server, uint64_t exchange);

/* --- what it offers: limpet-server-offer(3) -------------------------------------------------- */

/* Why a call that waits goes on. */
enum limpet_wake_kind {
    LIMPET_WAKE_TIME,    /* limpet_call_wait: the time is over */
    LIMPET_WAKE_REPLY,   /* limpet_call_ask: the client has answered: result, or error */
    LIMPET_WAKE_TIMEOUT, /* limpet_call_ask: it has not, in time */
    LIMPET_WAKE_STATE,   /* limpet_call_state_get, limpet_call_state_set: see `outcome` */
};

/* What became of the session's state. */
enum limpet_state_outcome {
    LIMPET_STATE_DONE,     /* read, or written */
    LIMPET_STATE_CHANGED,  /* not written: somebody else has; `state`, `revision`: what is now */
    LIMPET_STATE_AWAY,     /* nothing was done: what keeps the state cannot be asked just now */
    LIMPET_STATE_IN_DOUBT, /* it may have been written, or not: read it again */
};

/* Its spans live until `wake` returns. */
struct limpet_wake {
    enum limpet_wake_kind kind;
    struct limpet_span result; /* raw JSON; empty: an error was answered */
    struct limpet_span error;
    enum limpet_state_outcome outcome;
    struct limpet_span state; /* after a read, or CHANGED; empty: nothing was written yet */
    uint64_t revision; /* of that state, or of the one that was just written; 0: there is none */
};

/* The program's part of a call. `run` begins it, `wake` goes on with it; each either answers (then
 * the call is over and must not be touched again), or waits, or asks, or keeps limpet_call_id for
 * later. `over` comes exactly once, when the call has ended in whatever way (answered, cancelled,
 * its session gone). `wake` and `over` may be NULL. */
struct limpet_handler {
    void (*run)(void *context, struct limpet_call *call);
    void (*wake)(void *context, struct limpet_call *call, const struct limpet_wake *wake);
    void (*over)(void *context, struct limpet_call *call);
    void *context;
};

struct limpet_tool {
    const char *name;
    const char *description;
    const char *input_schema; /* a JSON object; {"type":"object"} */
    const char *more;         /* further members, "\"title\":\"x\"" */
    struct limpet_handler handler;
};

/* A resource, or, when `uri` has {names} in it, a template of them (level 1 of RFC 6570). */
struct limpet_resource {
    const char *uri;
    const char *name;
    const char *description;
    const char *mime_type;
    struct limpet_handler handler;
};

struct limpet_prompt {
    const char *name;
    const char *description;
    const char *arguments; /* a JSON array; [] */
    struct limpet_handler handler;
};

/* Before or while it runs; what is added while it runs, clients see after
 * limpet_server_list_changed. LIMPET_EEXISTS: there is one of that name, or address;
 * LIMPET_ESYNTAX: a text is missing or no such JSON; LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_server_add_tool(
    struct limpet_server *server, const struct limpet_tool *tool);
LIMPET_API LIMPET_MUST int limpet_server_add_resource(
    struct limpet_server *server, const struct limpet_resource *resource);
LIMPET_API LIMPET_MUST int limpet_server_add_prompt(
    struct limpet_server *server, const struct limpet_prompt *prompt);

/* Who answers completion/complete, for all prompts and templates. Errors as above. */
LIMPET_API LIMPET_MUST int limpet_server_set_completion(
    struct limpet_server *server, const struct limpet_handler *handler);

enum limpet_list { LIMPET_LIST_TOOLS, LIMPET_LIST_RESOURCES, LIMPET_LIST_PROMPTS };

/* Tell the clients that a list is another one now, or what a resource holds. Nothing without
 * options.lists_change, or has_subscriptions. */
LIMPET_API void limpet_server_list_changed(struct limpet_server *server, enum limpet_list list);
LIMPET_API void limpet_server_resource_updated(struct limpet_server *server, const char *uri);

/* --- a call: limpet-server-call(3) ----------------------------------------------------------- */

/* The raw JSON of params, and of params.arguments; empty when not there. Spans that come out of a
 * call live until it is over. */
LIMPET_API struct limpet_span limpet_call_params(const struct limpet_call *call);
LIMPET_API struct limpet_span limpet_call_arguments(const struct limpet_call *call);
/* resources/read: the address that was asked for; and what stands for {name} in it. Else empty. */
LIMPET_API struct limpet_span limpet_call_uri(const struct limpet_call *call);
LIMPET_API struct limpet_span limpet_call_variable(
    const struct limpet_call *call, const char *name);
/* A pointer that is kept with the call. */
LIMPET_API void limpet_call_set_data(struct limpet_call *call, void *data);
LIMPET_API void *limpet_call_data(const struct limpet_call *call);

/* To answer later: keep the id. limpet_server_call has the call, or NULL when it is over; from
 * another thread, do that in a function that is posted. */
LIMPET_API uint64_t limpet_call_id(const struct limpet_call *call);
LIMPET_API struct limpet_call *limpet_server_call(const struct limpet_server *server, uint64_t id);

/* notifications/progress, when the client has asked for it and takes a stream; `total` 0: unknown.
 */
LIMPET_API void limpet_call_progress(struct limpet_call *call, uint64_t progress, uint64_t total);
/* notifications/message on the call's own stream: a text, not below the session's level. `logger`
 * may be NULL. */
LIMPET_API void limpet_call_log(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span text);
/* The same on the session's GET stream. False: the level says no, or there is no such stream. */
LIMPET_API bool limpet_call_log_session(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span text);
/* The same with any JSON in place of the text. False too: it is none. */
LIMPET_API bool limpet_call_log_session_json(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span json);

/* `wake` follows after `ms`. LIMPET_EUNSUPPORTED: the handler has no `wake`, or a reply or state is
 * on its way; LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_call_wait(struct limpet_call *call, uint32_t ms);
/* Asks the client: "elicitation/create", "sampling/createMessage", "roots/list". `params` is raw
 * JSON, or empty; `wake` follows with the reply or, after `timeout_ms`, without. One question at a
 * time; after LIMPET_OK the call is not touched before. LIMPET_EUNSUPPORTED: as above, or the
 * client has not said that it can, or there is no session (before 2026-07-28); LIMPET_ENOT_FOUND:
 * it has no stream open on which to ask; LIMPET_ELIMIT, LIMPET_ESYNTAX, LIMPET_ENOMEM.
 *
 * In 2026-07-28 the question is the answer to the request: the call ends here, `over` comes, and
 * when the client has asked again, with its answer and in time, the handler runs once more from its
 * start, perhaps in another process (options.keys). Up to here it must ask the same questions in
 * the same order, which are answered at once. So a handler does nothing with lasting effect before
 * its last question. */
LIMPET_API LIMPET_MUST int limpet_call_ask(
    struct limpet_call *call, const char *method, struct limpet_span params, uint32_t timeout_ms);

enum { LIMPET_QUESTIONS_MAX = 16, LIMPET_QUESTION_KEY_MAX = 63 };

struct limpet_question {
    const char *key; /* yours: letters, digits, '_'; another one for each */
    const char *method;
    struct limpet_span params;
};

/* Several at once; `wake` follows with an object of all answers by their keys as `result`, or with
 * the first error. With a session they are asked one after the other. Errors as above;
 * LIMPET_ELIMIT: more than LIMPET_QUESTIONS_MAX, LIMPET_ESYNTAX: none, or a bad key. */
LIMPET_API LIMPET_MUST int limpet_call_ask_all(struct limpet_call *call,
    const struct limpet_question *questions, size_t count, uint32_t timeout_ms);
/* The call of a tool becomes a task (2026-07-28, extension io.modelcontextprotocol/tasks): its
 * request is answered with the task's name, and the client comes for the rest, for `ttl_ms`. In
 * `run`, or when the first questions have been answered, before anything is sent or waited for.
 * LIMPET_EUNSUPPORTED: it is none, and goes on as it was: there is no options.has_tasks, the client
 * does not take tasks (see limpet_call_lacks), or its stream has begun; LIMPET_ELIMIT: too many
 * tasks, or no memory; LIMPET_ERANGE: `ttl_ms` is 0. */
LIMPET_API LIMPET_MUST int limpet_call_task(struct limpet_call *call, uint32_t ttl_ms);
/* Ends the connection of the call's stream, not the call: the client comes again for the rest
 * (2025-11-25). Nothing where the client could not. */
LIMPET_API void limpet_call_poll(struct limpet_call *call);

/* The session's state: bytes of yours that live as long as the session, wherever that is kept. Each
 * change makes the revision one higher, and names the one that it was made from, so that calls that
 * run at the same time overwrite nothing. `wake` follows with LIMPET_WAKE_STATE.
 * LIMPET_EUNSUPPORTED: no `wake`, something is on its way, or there is no session; LIMPET_ELIMIT,
 * LIMPET_ENOMEM.
 *
 * Reads it. */
LIMPET_API LIMPET_MUST int limpet_call_state_get(struct limpet_call *call);
/* Writes it if its revision is still that one (0: nothing was written yet). LIMPET_ETOO_LONG: over
 * LIMPET_STATE_MAX. */
LIMPET_API LIMPET_MUST int limpet_call_state_set(
    struct limpet_call *call, uint64_t revision, struct limpet_span value);

/* Each of these ends the call. */
/* A tool's result that is one text; and one that says what went wrong (isError). */
LIMPET_API void limpet_call_text(struct limpet_call *call, struct limpet_span text);
LIMPET_API void limpet_call_tool_error(struct limpet_call *call, struct limpet_span text);
/* Any result, a JSON object. What is none, becomes a JSON-RPC error. */
LIMPET_API void limpet_call_result(struct limpet_call *call, struct limpet_span json);
/* It needs what the client has not said that it can: a ClientCapabilities object, as
 * {"sampling":{}}. */
LIMPET_API void limpet_call_lacks(struct limpet_call *call, const char *capabilities);
/* A JSON-RPC error. */
LIMPET_API void limpet_call_error(struct limpet_call *call, int code, const char *message);

/* --- as much JSON as a handler needs: limpet-server-json(3) ---------------------------------- */

/* The raw value of the first member `key` of the object `json`; empty when there is none. */
LIMPET_API struct limpet_span limpet_json_member(struct limpet_span json, const char *key);
/* That of the element `index`, from 0 on, of the array `json`; empty when there is none. */
LIMPET_API struct limpet_span limpet_json_element(struct limpet_span json, size_t index);

/* A value of the object `json`: LIMPET_ENOT_FOUND when it is not there (or null), LIMPET_ESYNTAX
 * when it is of another type, LIMPET_ERANGE, LIMPET_ETOO_LONG.
 *
 * A text, decoded, to `room`, with a zero byte; it may hold others. */
LIMPET_API LIMPET_MUST int limpet_json_text(struct limpet_span json, const char *key, char *room,
    size_t room_bytes, struct limpet_span *ret_text);
/* A whole number, as it is written: 1, not 1.0 or 1e3. */
LIMPET_API LIMPET_MUST int limpet_json_integer(
    struct limpet_span json, const char *key, int64_t *ret_number);
LIMPET_API LIMPET_MUST int limpet_json_bool(
    struct limpet_span json, const char *key, bool *ret_value);

/* `text` as a JSON string, with its quotes and a zero byte, to `room`. LIMPET_ETOO_LONG. */
LIMPET_API LIMPET_MUST int limpet_json_quote(
    struct limpet_span text, char *room, size_t room_bytes, struct limpet_span *ret_json);

#ifdef __cplusplus
}
#endif

#endif
