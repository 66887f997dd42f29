/* The experiments of `limpet probe` on a fetcher: opens sessions, asks over kept and new
 * connections, with and without cookies, by other methods and from other addresses, and notes what
 * comes (call/seen.h). What it means is call/verdict.h's.
 *
 *   DISCOVER -> QUESTIONS -> FIRST -> ROWS -> ARMS -> MORE -> STEPS -> STREAMS -> ENDINGS -> REST
 *
 * Only `ping`, `initialize`, `server/discover` and GET are asked for: nothing of the server's own
 * is called, but for a tool that the user names (STEPS). Every session that it opened is deleted
 * again, as far as DELETE reaches it. */
#ifndef LP_CALL_PROBE_H
#define LP_CALL_PROBE_H

#include "call/ask.h"

enum {
    LP_PROBE_SESSIONS = 20, /* without --sessions */
    LP_PROBE_CALLS = 20,    /* without --calls */
    LP_PROBE_SESSIONS_MAX = 200,
    LP_PROBE_BUDGET_MS = 9000, /* for LP_PROBE_SESSIONS of LP_PROBE_CALLS */
    LP_PROBE_SOURCES_MAX = 48,
    LP_PROBE_SEED_BYTES = 32,
};

struct lp_probe_args {
    struct lp_fetcher *fetcher;
    unsigned char seed[LP_PROBE_SEED_BYTES];
    uint32_t sessions; /* 1 to LP_PROBE_SESSIONS_MAX */
    uint32_t calls;    /* 1 to LP_SEEN_CALLS_MAX */
    uint32_t rest_s;   /* how long quiet streams and idle sessions are watched; 0: not at all */
    struct lp_span step_tool;      /* a tool to call in two steps; empty: none is called */
    struct lp_span step_arguments; /* raw JSON object; empty: {}. Both must outlive it */
    bool has_jar;                  /* judge for clients that keep cookies */
    uint32_t source_count;
    struct lp_span sources[LP_PROBE_SOURCES_MAX]; /* other addresses of ours; must outlive it */
    /* What is going on, in a few words, and how much of it is done; may be NULL. */
    void (*progress)(void *ctx, const char *what, uint32_t done, uint32_t all);
    void (*over)(void *ctx);
    void *ctx;
};

struct lp_probe;

/* LP_ENOMEM. The fetcher must outlive it. */
LP_MUST int lp_probe_new(const struct lp_probe_args *args, struct lp_probe **ret);
/* Gives everything up, without `over`. NULL is fine. */
void lp_probe_free(struct lp_probe *probe);

/* Begins; `over` is called once, later. */
void lp_probe_start(struct lp_probe *probe);
/* No new experiments: ends soon with what there is. */
void lp_probe_hurry(struct lp_probe *probe);

/* What was seen so far; lives as long as the probe. */
const struct lp_seen *lp_probe_seen(const struct lp_probe *probe);

#endif
