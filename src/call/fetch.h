/* HTTP exchanges for the client commands: the engine below probe, inspect and connect.
 *
 *    shell events                     owner (client, probe)
 *        v                              ^ head, body, end, failed
 *   lp_fetcher_event -> links -> fetch -'
 *
 * One struct lp_fetcher per command holds all connections, timers and exchanges ("fetches"). An
 * owner starts a fetch and hears of it through its ops; after `end` or `failed` its id is dead. A
 * fetch takes care of: connecting (or a kept connection), the fields of the target, the jar, the
 * network log, time-outs, redirects, and the one repeat that is safe.
 *
 * Order towards the wire (requirements [C4]): the owner's fields (modern stamping among them), the
 * target's own, the jar's Cookie, the network log, the socket. A target's fields and a jar's
 * cookies go to the target's own origin only, and only answers from there are shown to the jar.
 *
 * Redirects: 307 and 308 to the same origin are followed, at most LP_FETCH_REDIRECTS_MAX times, and
 * 301, 302 and 303 too when the method is GET. Everything else ends as `failed`.
 *
 * Nothing is told from within lp_fetch_start. No clock: the time is that of the last event. */
#ifndef LP_CALL_FETCH_H
#define LP_CALL_FETCH_H

#include "base/heap.h"
#include "call/target.h"
#include "link/link.h"
#include "obs/netlog.h"

struct lp_jar;
struct lp_fetcher;

enum {
    LP_FETCH_REDIRECTS_MAX = 5,
    LP_FETCH_FIELDS_MAX = 48,
    LP_FETCH_BODY_MAX = 16 << 20, /* of a request */
    LP_FETCH_CONNECT_MS = 10000,
    LP_FETCH_KEPT_MS = 4000, /* a connection without a request is not used longer than this */
    LP_FETCH_SENTENCE_MAX = 640,
    LP_TIMER_FETCHER = 400, /* lp_timer.kind of all timers on a fetcher's heap but link's */
};

enum lp_fetch_policy {
    LP_FETCH_KEEP,  /* a kept connection of that origin and lane, or a new one that is then kept */
    LP_FETCH_FRESH, /* a new connection, ended after the answer */
};

/* Why a fetch has failed. */
enum lp_fetch_phase {
    LP_FETCH_CONNECTING, /* nothing was sent */
    LP_FETCH_SENDING,    /* no byte of the answer has come */
    LP_FETCH_READING,    /* the answer's head was there */
};

struct lp_fetch_failure {
    enum lp_fetch_phase phase;
    int error; /* LP_E...: REFUSED, TIMEOUT, UNREACHABLE, BROKEN, SYNTAX (no HTTP), ... */
    enum lp_reason reason;   /* why the exchange is over */
    bool cannot_have_run;    /* the server has not got the request */
    uint16_t status;         /* of a redirect that was not followed; else 0 */
    struct lp_span sentence; /* whole, for the user: what happened and what to do */
};

/* A fetch's head may be asked for more (lp_fetch_facts). Spans live until the call returns. */
struct lp_fetch_ops {
    void (*head)(void *ctx, lp_id fetch, const struct lp_head *head);
    void (*body)(void *ctx, lp_id fetch, struct lp_span bytes);
    /* `whole` is false when the answer had no framing and ended with its connection. */
    void (*end)(void *ctx, lp_id fetch, bool whole);
    void (*failed)(void *ctx, lp_id fetch, const struct lp_fetch_failure *why);
};

struct lp_fetch_args {
    enum lp_method method; /* GET, POST, DELETE, HEAD, OPTIONS */
    struct lp_span url;    /* absolute; empty: the target's */
    const struct lp_target_field *fields;
    uint32_t field_count;
    struct lp_span body;
    struct lp_span what; /* for the network log: a few words about the body; may be empty */
    struct lp_jar *jar;  /* NULL: off. Must outlive the fetch */
    enum lp_fetch_policy policy;
    uint32_t lane;         /* connections are kept apart by lane: 0 where nobody cares */
    struct lp_span source; /* a new connection comes from this address of ours; empty: any */
    bool is_public;        /* not to a private address (seam/action.h) */
    bool is_foreign;       /* no fields of the target and no jar, whatever the origin (metadata) */
    bool may_repeat;       /* asking twice does no harm: ping and lists */
    uint32_t connect_ms;   /* 0: LP_FETCH_CONNECT_MS */
    uint32_t head_ms;      /* from start to the answer's head; 0: the target's time-out */
    uint32_t quiet_ms;     /* between two pieces of the answer; 0: no limit */
    const struct lp_fetch_ops *ops;
    void *ctx;
};

/* A timer on the fetcher's heap: `fire` is called once when its time has come. The owner cancels it
 * before its memory goes. */
struct lp_fetcher_timer {
    struct lp_timer timer;
    void (*fire)(void *ctx);
    void *ctx;
};

struct lp_fetcher_args {
    const struct lp_shell *shell;
    const struct lp_target *target; /* must outlive the fetcher */
    struct lp_netlog *log;          /* NULL: none */
    uint32_t fetches_max;           /* at once; 0: 4096 */
};

/* What is known of a fetch. */
struct lp_fetch_facts {
    uint64_t number;     /* of the exchange, as in the network log; from 1 */
    uint64_t connection; /* number of its connection, from 1 */
    bool is_reused;      /* the connection had carried another request before */
    uint64_t started_us;
    uint64_t sent_us; /* when its head was handed to the connection */
    uint64_t head_us; /* when the answer's head came */
};

LP_MUST int lp_fetcher_new(const struct lp_fetcher_args *args, struct lp_fetcher **ret);
/* Closes everything, without callbacks. NULL is fine. */
void lp_fetcher_free(struct lp_fetcher *fetcher);

/* Every event of the shell; ends with lp_fetcher_settle. */
void lp_fetcher_event(struct lp_fetcher *fetcher, const struct lp_event *event);
/* After calls that did not happen within an event: what waits is sent, and the timer set. */
void lp_fetcher_settle(struct lp_fetcher *fetcher);

uint64_t lp_fetcher_now_us(const struct lp_fetcher *fetcher);
uint64_t lp_fetcher_wall_ms(const struct lp_fetcher *fetcher);
const struct lp_target *lp_fetcher_target(const struct lp_fetcher *fetcher);
struct lp_netlog *lp_fetcher_log(const struct lp_fetcher *fetcher);

/* Fires `after_us` from now. LP_ENOMEM. */
LP_MUST int lp_fetcher_timer_set(
    struct lp_fetcher *fetcher, struct lp_fetcher_timer *timer, uint64_t after_us);
/* Harmless when it is not set. */
void lp_fetcher_timer_cancel(struct lp_fetcher *fetcher, struct lp_fetcher_timer *timer);

/* Begins. LP_ESYNTAX: the URL is none; LP_EUNSUPPORTED: its scheme; LP_ELIMIT, LP_ENOMEM. What goes
 * wrong later is told through `failed`. All spans of args are copied. */
LP_MUST int lp_fetch_start(
    struct lp_fetcher *fetcher, const struct lp_fetch_args *args, lp_id *ret_fetch);
/* Breaks it off; no callback follows. Dead ids are ignored. */
void lp_fetch_cancel(struct lp_fetcher *fetcher, lp_id fetch);
/* Stops and restarts the flow of the answer. */
void lp_fetch_pause(struct lp_fetcher *fetcher, lp_id fetch, bool is_paused);
/* Another time-out for what is awaited next, from now on; 0: none. */
void lp_fetch_set_timeout(struct lp_fetcher *fetcher, lp_id fetch, uint32_t ms);
/* False: the id is dead. */
bool lp_fetch_facts(
    const struct lp_fetcher *fetcher, lp_id fetch, struct lp_fetch_facts *ret_facts);
/* Ends the kept connections of a lane; UINT32_MAX: of all. */
void lp_fetcher_drop_kept(struct lp_fetcher *fetcher, uint32_t lane);

#endif
