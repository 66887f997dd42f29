/* Inside the fetcher: its connections (fetcher.c), its exchanges (fetch.c), and the words for what
 * went wrong (fetch_words.c).
 *
 *   QUEUED -> CONNECTING -> SENDING -> READING -> over (freed, then `end` or `failed`)
 *      ^           |           |
 *      '-----------+-----------'  redirect, or the one repeat that is safe */
#ifndef LP_CALL_FETCH_PRIV_H
#define LP_CALL_FETCH_PRIV_H

#include "base/list.h"
#include "call/fetch.h"

enum lp_fetch_state {
    LP_FETCH_QUEUED, /* begins at the next settle */
    LP_FETCH_IS_CONNECTING,
    LP_FETCH_IS_SENDING,
    LP_FETCH_IS_READING,
};

enum { LP_FETCH_ORIGIN_MAX = 320 };

/* A connection; in `idle` while no fetch has it. */
struct lp_fetch_conn {
    struct lp_list node;
    lp_id link;
    uint64_t number;
    uint32_t lane;
    uint32_t requests;
    uint32_t kept_ms;
    struct lp_fetcher_timer timer; /* of its rest */
    struct lp_fetcher *fetcher;
    char origin[LP_FETCH_ORIGIN_MAX]; /* "http://host:port", lower case */
};

struct lp_fetch {
    lp_id id;
    struct lp_fetcher *fetcher;
    struct lp_list node; /* in `queued` */
    struct lp_arena text;
    struct lp_fetch_args args; /* its spans are of `text` */
    struct lp_span url;        /* now: redirects change it */
    struct lp_uri uri;
    char origin[LP_FETCH_ORIGIN_MAX];
    enum lp_fetch_state state;
    struct lp_fetch_conn *conn;
    struct lp_stream stream;
    size_t body_sent;
    uint64_t body_received;
    uint32_t redirects;
    bool has_repeated;
    bool must_be_fresh;
    bool is_own; /* of the target's origin, and not foreign */
    struct lp_fetch_facts facts;
    struct lp_fetcher_timer deadline;
    uint64_t deadline_us; /* for the head; UINT64_MAX: none */
};

struct lp_fetcher {
    const struct lp_shell *shell;
    const struct lp_target *target;
    struct lp_netlog *log;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_slab fetches;
    struct lp_list queued;
    struct lp_list idle;
    uint32_t idle_count;
    uint64_t wall_ms;
    uint64_t timer_at_us;
    uint64_t fetch_count;
    uint64_t conn_count;
    struct lp_buf cookie; /* the value of the Cookie field being written */
    struct lp_head head;  /* the head being written: large, and one is enough */
    char sentence[LP_FETCH_SENTENCE_MAX];
};

extern const struct lp_message_ops lp_fetch_message_ops;

/* --- fetcher.c: connections --- */

/* A kept connection that is fit for use, taken off the list, or NULL. */
struct lp_fetch_conn *lp_fetch_conn_take(
    struct lp_fetcher *fetcher, const char *origin, uint32_t lane);
/* A new one, being made; its tag is the fetch's id. LP_E... as lp_link_open. */
LP_MUST int lp_fetch_conn_open(struct lp_fetch *fetch, struct lp_fetch_conn **ret);
/* Kept when it may be, else closed; the fetch has it no more. `is_whole`: its answer is complete.
 */
void lp_fetch_conn_release(struct lp_fetch *fetch, bool is_whole);
/* The link is dead already. */
void lp_fetch_conn_forget(struct lp_fetcher *fetcher, struct lp_fetch_conn *conn);
/* An idle connection has ended. */
void lp_fetch_conn_closed(struct lp_fetcher *fetcher, lp_id link);

/* --- fetch.c --- */

/* Takes up one that is queued. */
void lp_fetch_begin(struct lp_fetch *fetch);
/* Its memory goes; the connection is closed. */
void lp_fetch_free(struct lp_fetch *fetch);

/* --- fetch_words.c --- */

/* The error that a reason comes to. */
int lp_fetch_error_of(enum lp_reason reason);
/* Writes the sentence of a failure into the fetcher's room. */
void lp_fetch_put_words(struct lp_fetch *fetch, struct lp_fetch_failure *failure);
/* A line of the network log about this fetch. */
void lp_fetch_note(const struct lp_fetch *fetch, const char *fmt, ...) LP_PRINTF(2, 3);

#endif
