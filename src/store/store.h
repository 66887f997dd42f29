/* A client of Redis or Valkey, one server or a cluster, for one engine.
 *
 *    owner                               lp_store
 *      lp_store_call    -- command -->     slot -> node -> connection --> WRITE
 *      done             <-- outcome --     <----------- reply <---------- READ
 *      ops.message      <-- channel --     a connection of its own for publish/subscribe
 *
 * Pure: the shell's events in, its actions out (seam/), timers on the owner's heap. Commands are
 * pipelined; everything sent during one event leaves in one write a connection at lp_store_flush.
 * No clock: the time is that of the last event. The wire is RESP2, so that every version since
 * Redis 3 and every Valkey will do.
 *
 * The promise: each call that was accepted (LP_OK) gets exactly one `done`, unless it is cancelled.
 * The store repeats what cannot have run, and reads; a write that may have run only when the call
 * says that it is_idempotent. It follows MOVED and ASK, waits while a server is loading, failing
 * over or demoted, all within the call's deadline, and when the store is away it says so at once.
 *
 * Callbacks run within lp_store_event, lp_store_timer and lp_store_flush, and only there. In them
 * everything is allowed but lp_store_free and these three. */
#ifndef LP_STORE_STORE_H
#define LP_STORE_STORE_H

#include "base/heap.h"
#include "seam/action.h"
#include "seam/event.h"
#include "store/url.h"

struct lp_store;

enum {
    LP_TIMER_STORE = 600, /* lp_timer.kind of this room's timers: 600 to 603 */
    LP_TIMER_STORE_END = 604,
    LP_STORE_CALL_MS = 1500,
    LP_STORE_CONNECT_MS = 1000,
    LP_STORE_CALLS_MAX = 4096,
    LP_STORE_BYTES_MAX = 32 << 20,
    LP_STORE_REPLY_MAX = 8 << 20,
    LP_STORE_CHANNELS_MAX = 65536,
    LP_STORE_REDIRECTS_MAX = 8, /* of one call */
    LP_STORE_NODES_MAX = 128,   /* of a cluster: primaries, and seeds */
    LP_STORE_SLOTS = 16384,
};

/* --- replies --- */

enum lp_store_reply_kind {
    LP_REPLY_NIL,
    LP_REPLY_INTEGER,
    LP_REPLY_STRING, /* status replies ("OK") too */
    LP_REPLY_ARRAY,
    LP_REPLY_ERROR, /* as a whole: with the outcomes from READONLY on. Else inside an array */
};

/* A tree; valid until the callback returns. Arrays are rings without a ring: for (r = reply->first;
 * r; r = r->next). */
struct lp_store_reply {
    enum lp_store_reply_kind kind;
    int64_t integer;
    struct lp_span text; /* STRING, ERROR: any bytes */
    const struct lp_store_reply *first;
    const struct lp_store_reply *next;
    uint32_t count; /* of an ARRAY's items */
};

/* The item at `index` of an array; NULL when there is none, or `reply` is NULL or no array. */
const struct lp_store_reply *lp_store_reply_item(
    const struct lp_store_reply *reply, uint32_t index);

/* --- outcomes of a call --- */

/* From READONLY on they are the server's words: X(name, the word an error begins with, sentence).*/
#define LP_STORE_OUTCOMES(X)                                                                       \
    X(ANSWERED, "", "the store has answered")                                                      \
    X(DOWN, "", "the store is away")                                                               \
    X(UNKNOWN, "",                                                                                 \
        "the connection to the store ended before the answer; the command may have run")           \
    X(TIMEOUT, "", "the store did not answer in time")                                             \
    X(UNCONFIRMED, "", "it is written, but fewer replicas than asked for confirmed it in time")    \
    X(MEMORY, "", "out of memory here")                                                            \
    X(TOO_LARGE, "", "the store's answer is larger than the limit")                                \
    X(READONLY, "READONLY", "the store takes no writes: it is a replica")                          \
    X(LOADING, "LOADING", "the store is loading its data")                                         \
    X(CLUSTERDOWN, "CLUSTERDOWN", "the cluster is down")                                           \
    X(MASTERDOWN, "MASTERDOWN", "the replica has lost its primary")                                \
    X(TRYAGAIN, "TRYAGAIN", "the keys are moving between two nodes of the cluster")                \
    X(MOVED, "MOVED", "the cluster sent the command around in a circle")                           \
    X(ASK, "ASK", "the cluster sent the command around in a circle")                               \
    X(NOREPLICAS, "NOREPLICAS", "the store takes no writes: too few replicas are connected")       \
    X(OOM, "OOM", "the store is out of memory")                                                    \
    X(MISCONF, "MISCONF", "the store takes no writes: it cannot save them to its disk")            \
    X(REFUSED, "", "the store answered with an error")

enum lp_store_outcome {
#define X(name, word, sentence) LP_OUTCOME_##name,
    LP_STORE_OUTCOMES(X)
#undef X
};

/* A sentence without a full stop, and the name as it stands in the list. */
const char *lp_store_outcome_sentence(enum lp_store_outcome outcome);
const char *lp_store_outcome_name(enum lp_store_outcome outcome);

struct lp_store_result {
    enum lp_store_outcome outcome;
    bool may_have_run; /* true as well when it has */
    /* ANSWERED, UNCONFIRMED: the answer, never an ERROR. What the server said no to: its error, but
     * NULL when that was long ago. Else NULL. */
    const struct lp_store_reply *reply;
};

typedef void (*lp_store_done_fn)(void *ctx, uint64_t tag, const struct lp_store_result *result);

/* --- the store --- */

/* Why it is not up: X(name, sentence that follows "the store at ADDRESS "). */
#define LP_STORE_TROUBLES(X)                                                                       \
    X(NONE, "is up")                                                                               \
    X(REFUSED, "refuses connections; see whether it runs, and whether the port is right")          \
    X(TIMEOUT, "does not answer; see whether it runs, and whether a firewall is in between")       \
    X(UNREACHABLE, "cannot be reached; see the address and the network")                           \
    X(NO_NAME, "has a name without an address; see the spelling and the name server")              \
    X(TLS,                                                                                         \
        "does not get through the TLS handshake; see whether the port speaks TLS, and who "        \
        "signed its certificate")                                                                  \
    X(BROKEN, "ended the connection")                                                              \
    X(PASSWORD, "refuses the user or password; put the right ones into the store's URL")           \
    X(DATABASE, "does not have the database of the store's URL")                                   \
    X(LOADING, "is loading its data")                                                              \
    X(READONLY, "is a replica and takes no writes; name its primary")                              \
    X(STALE, "is a replica that has lost its primary")                                             \
    X(NO_CLUSTER, "is not a cluster; write redis:// in the store's URL")                           \
    X(CLUSTER_DOWN, "has no slot map; see CLUSTER INFO on it")                                     \
    X(PROTOCOL, "does not speak the Redis protocol; see whether the port is right")                \
    X(TOO_LARGE, "sent an answer larger than the limit")                                           \
    X(LIMIT, "has more nodes than are supported")                                                  \
    X(MEMORY, "cannot be served: out of memory here")                                              \
    X(OTHER, "refused to be used; its log may say more")

enum lp_store_trouble {
#define X(name, sentence) LP_TROUBLE_##name,
    LP_STORE_TROUBLES(X)
#undef X
};

/* The name as it stands in the list: for a log line or a metric. */
const char *lp_store_trouble_name(enum lp_store_trouble trouble);

struct lp_store_ops {
    /* Up, or not up for this reason: when it changes, and the first time it is known. The sentence
     * is whole, for the log, and never holds a secret. May be NULL. */
    void (*state)(void *ctx, bool is_up, enum lp_store_trouble trouble, struct lp_span sentence);
    /* A message of a channel that is, or was until just now, subscribed. May be NULL if nothing is.
     */
    void (*message)(void *ctx, struct lp_span channel, struct lp_span payload);
    /* The subscription is in place, or in place again: what was published before may be missed. */
    void (*subscribed)(void *ctx, struct lp_span channel);
};

struct lp_store_args {
    const struct lp_shell *shell;
    struct lp_heap *timers;
    const struct lp_store_url *url; /* copied */
    const struct lp_span *scripts;  /* Lua; array and texts must outlive the store */
    uint32_t script_count;
    uint32_t replicas_waited; /* after each write WAIT for so many; 0: none */
    uint32_t wait_ms;         /* as long as this; 0: half of call_ms */
    uint32_t call_ms;         /* default deadline of a call; 0: LP_STORE_CALL_MS */
    uint32_t connect_ms;      /* connecting, with log-in; 0: LP_STORE_CONNECT_MS */
    uint32_t grace_ms;        /* so long after a loss calls still wait for the store to come back
                                 (within their deadline); 0: until the first refusal */
    uint32_t calls_max;       /* that wait for an answer; 0: LP_STORE_CALLS_MAX */
    size_t bytes_max;         /* of commands that wait; 0: LP_STORE_BYTES_MAX */
    size_t reply_max;         /* bytes of one reply in memory; 0: LP_STORE_REPLY_MAX */
    const struct lp_store_ops *ops;
    void *ctx;
};

/* LP_ENOMEM. It connects at the first flush, not before. */
LP_MUST int lp_store_new(const struct lp_store_args *args, struct lp_store **ret);
/* Closes everything, without callbacks. NULL is fine. */
void lp_store_free(struct lp_store *store);

/* Every event of the shell (it has the clock); true: it was of one of the store's connections, and
 * nobody else needs to see it. */
bool lp_store_event(struct lp_store *store, const struct lp_event *event);
/* A timer of the heap with a kind from LP_TIMER_STORE to below LP_TIMER_STORE_END. */
void lp_store_timer(struct lp_store *store, struct lp_timer *timer, uint64_t now_us);
/* At the end of every event, before the owner flushes its own connections, since `done` is called
 * from here too. What is called after it goes out in the next turn: a timer is set for it. */
void lp_store_flush(struct lp_store *store);

/* A connection is there and logged in (cluster: and the slot map is known). */
bool lp_store_is_up(const struct lp_store *store);
/* The connection that listens to the channels is there; false also as long as there are none. */
bool lp_store_is_listening(const struct lp_store *store);
/* Why not: the sentence of the last `state`; empty as long as nothing is known. */
struct lp_span lp_store_sentence(const struct lp_store *store);

/* --- calls --- */

struct lp_store_call_args {
    struct lp_span key;         /* decides the slot, {hash tags} and all; empty: any node */
    const struct lp_span *argv; /* the command and its arguments; copied */
    uint32_t argc;
    bool is_write;
    bool is_idempotent;  /* running twice does no harm: a write is then repeated too */
    uint32_t timeout_ms; /* 0: call_ms of the store */
    lp_store_done_fn done;
    void *ctx;
    uint64_t tag;
};

/* LP_OK: `done` comes, later. LP_ELIMIT: too much waits already; LP_ENOMEM: no `done` comes.
 * `ret_call` may be NULL. */
LP_MUST int lp_store_call(
    struct lp_store *store, const struct lp_store_call_args *args, lp_id *ret_call);

/* The script with this place in the store's `scripts`. argv is `key_count` keys and then the
 * arguments (no command); `key` is argv[0] when it is left empty. Sent by its hash where the node
 * has it, else whole. */
LP_MUST int lp_store_eval(struct lp_store *store, uint32_t script, uint32_t key_count,
    const struct lp_store_call_args *args, lp_id *ret_call);

/* No `done` comes any more; a command that is on its way may still run. Dead ids are ignored. */
void lp_store_cancel(struct lp_store *store, lp_id call);

/* How many calls wait for an answer. */
uint32_t lp_store_waiting(const struct lp_store *store);

/* The slot of a key (Redis cluster specification, "Hash tags"). */
uint16_t lp_store_slot(struct lp_span key);

/* --- channels --- */

/* `subscribed` follows, and again after each reconnection. A channel is subscribed once at a time:
 * the owner sees to that. Its name has 1 to 512 bytes. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_store_subscribe(struct lp_store *store, struct lp_span channel, lp_id *ret_id);
/* Dead ids are ignored. */
void lp_store_unsubscribe(struct lp_store *store, lp_id id);

#endif
