/* An MCP server over Streamable HTTP, 2025-03-26 to 2025-11-25 and 2026-07-28, for a C program: the
 * program says what it offers, the server does the rest (requirements [L2] to [L5]).
 *
 * Driven like the engine: events in, actions out; no clock, no entropy, no I/O of its own. Texts
 * of the offer are the program's and must outlive the server. What a handler may do with a call is
 * in serve/job.h. */
#ifndef LP_SERVE_SERVER_H
#define LP_SERVE_SERVER_H

#include "base/map.h"
#include "mcp/owner.h"
#include "seam/action.h"
#include "seam/event.h"
#include "store/url.h"

enum {
    LP_SERVER_SESSIONS = 256, /* the default */
    LP_SERVER_PATH_MAX = 256,
    LP_SERVER_CONNECTIONS_MAX = 4096,
    LP_SERVER_BODY_MAX = 4 << 20,
    LP_SERVER_STATE_MAX = 4096,            /* of the program, in each session */
    LP_SERVER_URI_MAX = 2048,              /* of a resource */
    LP_SERVER_SUBSCRIPTIONS_BYTES = 16384, /* of one session, all addresses together */
    LP_SERVER_TASKS_MAX = 1024,
    LP_SERVER_TASKS_BYTES = 64 << 20,    /* what tasks have said at their end, together */
    LP_SERVER_LISTENS_MAX = 1024,        /* streams of subscriptions/listen, together */
    LP_SERVER_SESSION_STREAMS = 256,     /* with calls in progress, of one session */
    LP_SERVER_HELD_BYTES = 256 << 20,    /* bodies of calls in progress, together */
    LP_SERVER_FINISHED_MAX = 1024,       /* streams that are kept for who comes again */
    LP_SERVER_FINISHED_BYTES = 64 << 20, /* of these together */
};

struct lp_keyring;
struct lp_server;
struct lp_job;

/* Why a call that waits goes on. */
enum lp_wake_kind {
    LP_WAKE_TIME,    /* lp_job_wait: the time is over */
    LP_WAKE_REPLY,   /* lp_job_ask: the client has answered: result, or error */
    LP_WAKE_TIMEOUT, /* lp_job_ask: it has not, in time */
    LP_WAKE_STATE,   /* lp_job_state_get, lp_job_state_set: see `outcome` */
};

/* What became of lp_job_state_get or lp_job_state_set. */
enum lp_state_outcome {
    LP_STATE_DONE,     /* read, or written */
    LP_STATE_CHANGED,  /* not written: somebody else has, `state` and `revision` are what is now */
    LP_STATE_AWAY,     /* nothing was done: what keeps the state cannot be asked just now */
    LP_STATE_IN_DOUBT, /* it may have been written, or not: read it again */
};

/* Its spans live until `wake` returns. */
struct lp_wake {
    enum lp_wake_kind kind;
    struct lp_span result; /* raw JSON; empty: an error was answered */
    struct lp_span error;
    enum lp_state_outcome outcome;
    struct lp_span state; /* after a read, or CHANGED; empty: nothing was written yet */
    uint64_t revision;    /* of that state, or of the one that was just written; 0: there is none */
};

/* The program's part of a call. `run` begins it, `wake` goes on with it; each either answers (then
 * the call is over and must not be touched again), or waits, or asks. `over` comes exactly once
 * after `run`, when the call has ended in whatever way (answered, cancelled, its session gone): to
 * free lp_job_state. `wake` and `over` may be NULL. */
struct lp_handler {
    void (*run)(void *ctx, struct lp_job *call);
    void (*wake)(void *ctx, struct lp_job *call, const struct lp_wake *wake);
    void (*over)(void *ctx, struct lp_job *call);
    void *ctx; /* for the three; NULL: the offer's */
};

struct lp_tool {
    const char *name;
    const char *description;
    const char *input_schema; /* a JSON object */
    const char *more;         /* NULL, or further members: "\"title\":\"x\"" */
    struct lp_handler handler;
};

/* A resource, or, when `uri` has {names} in it, a template of them (level 1 of RFC 6570). */
struct lp_resource {
    const char *uri;
    const char *name;
    const char *description;
    const char *mime_type;
    struct lp_handler handler;
};

struct lp_prompt {
    const char *name;
    const char *description;
    const char *arguments; /* a JSON array */
    struct lp_handler handler;
};

/* What a server offers. Kinds with count 0 are not offered: their methods are not found. */
struct lp_offer {
    const struct lp_tool *tools;
    const struct lp_resource *resources;
    const struct lp_prompt *prompts;
    uint32_t tool_count;
    uint32_t resource_count;
    uint32_t prompt_count;
    const struct lp_handler *complete; /* completion/complete; NULL: not offered */
    bool lists_change;                 /* lp_server_list_changed may be called */
    bool has_subscriptions;            /* lp_server_resource_updated may be called */
    bool has_tasks;                    /* lp_job_task may be called */
    bool is_public;    /* lists are the same for everybody: a shared cache may keep them */
    uint32_t fresh_ms; /* how long a client may keep them (2026-07-28); 0: not at all */
    void *ctx;         /* for handlers that have none of their own */
};

/* Where sessions live ([L3]). */
enum lp_session_mode {
    LP_SESSIONS_LOCAL,     /* in the memory of this process */
    LP_SESSIONS_STATELESS, /* nowhere: no id is given, and none asked for */
    LP_SESSIONS_SHARED,    /* in a Redis or Valkey: any replica serves any session */
};

/* Which revisions are spoken. Requests of 2026-07-28 have no session, whatever the mode is. */
enum lp_server_eras {
    LP_ERAS_BOTH,
    LP_ERAS_LEGACY, /* up to 2025-11-25 */
    LP_ERAS_MODERN, /* 2026-07-28 alone */
};

/* How a request of another owner's session is answered ([S3]). */
enum lp_server_replay {
    LP_SERVER_REPLAY_OFF,    /* 404 */
    LP_SERVER_REPLAY_PREFER, /* fly-replay: prefer_instance=<owner>;timeout=5s */
    LP_SERVER_REPLAY_STRICT, /* fly-replay: instance=<owner> */
};

/* Who may use the server ([L4]). The token is that of `Authorization: Bearer`, empty without one.
 * True: it is good, and *ret_principal says whose; a session belongs to the principal that opened
 * it, and is not found by another one. */
typedef bool (*lp_bearer_fn)(void *ctx, struct lp_span token, struct lp_key *ret_principal);

struct lp_server_args {
    const struct lp_shell *shell;
    const struct lp_offer *offer;
    struct lp_span name; /* serverInfo */
    struct lp_span version;
    struct lp_span instructions; /* empty: none */
    struct lp_span path;         /* where MCP is served, begins with '/' */
    struct lp_span sse_path;     /* where HTTP+SSE of 2024-11-05 is served; empty: nowhere */
    enum lp_session_mode mode;
    enum lp_server_eras eras;
    struct lp_span owner; /* passes lp_owner_is_id; empty: ids are plain. Not used by SHARED */
    enum lp_server_replay replay;
    const struct lp_store_url *store; /* of SHARED */
    uint32_t store_wait;  /* so many replicas of the store must have what is written; 0: none */
    uint32_t session_max; /* in this process; 0: LP_SERVER_SESSIONS */
    uint32_t session_max_each; /* of one principal; 0: no limit beside that of all */
    uint64_t idle_us;          /* a session without a request; 0: 15 minutes */
    uint64_t grace_us;         /* calls in progress after LP_EV_STOP; 0: 10 seconds */
    uint32_t retry_ms;         /* after which a client comes again for a stream; 0: 1000 */
    struct lp_span origins;    /* allowed ones, comma separated; empty: see serve/guard.h */
    lp_bearer_fn bearer;       /* NULL: everybody */
    void *bearer_ctx;
    struct lp_span resource_metadata; /* its URL for the 401's challenge; empty: none */
    /* What a client carries from one question of a call to the next is sealed with the first one
     * (2026-07-28; see lp_job_ask); copied. NULL: a key of its own, so that no other process can go
     * on with it, nor this one after a restart. */
    const struct lp_keyring *keys;
    unsigned char seed[32];
};

/* Copies texts of `args` other than the offer. LP_ETOO_LONG: a path; LP_ESYNTAX: the owner is
 * no owner id; LP_EUNSUPPORTED: sse_path where sessions are not local, or the era has none;
 * LP_ENOMEM. */
LP_MUST int lp_server_new(const struct lp_server_args *args, struct lp_server **ret);
void lp_server_free(struct lp_server *server);

/* Handles one event; its actions are performed before it returns. */
void lp_server_event(struct lp_server *server, const struct lp_event *event);

/* Sessions that are open now. */
uint32_t lp_server_session_count(const struct lp_server *server);

/* --- what the program does on its own: within a handler, or between two events and then followed
 * by lp_server_settle --- */

/* A call in progress by its lp_job_id; NULL when it is over. Who works on a call elsewhere keeps
 * the id, and answers when the work is done. */
struct lp_job *lp_server_job(const struct lp_server *server, lp_id id);

/* Sends what the program has caused since the last event; `mono_us` is the time, as in events. */
void lp_server_settle(struct lp_server *server, uint64_t mono_us);

enum lp_list_kind { LP_LIST_TOOLS, LP_LIST_RESOURCES, LP_LIST_PROMPTS };

/* notifications/<kind>/list_changed, on the GET stream of each session that has one, and to those
 * who listen for it (2026-07-28). */
void lp_server_list_changed(struct lp_server *server, enum lp_list_kind kind);

/* notifications/resources/updated, to the sessions that have subscribed to that address, and to
 * those who listen for it. */
void lp_server_resource_updated(struct lp_server *server, struct lp_span uri);

#endif
