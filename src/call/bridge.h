/* The stdio bridge (requirements [C11]): a program that speaks MCP over stdio talks to a server
 * that is reached over HTTP, as if that server had been started by it.
 *
 *   host program <-- lines --> bridge <-- call/client.h --> MCP server
 *
 * What it adds to carrying messages: one session for the host's whole life. A session that the
 * server does not know any more is opened again, once for all calls that wait; a call is repeated
 * only when it cannot have run, or is ping or a list. What may have run is reported as an error.
 * The log level and the subscriptions of the lost session are set again; other state of it is gone,
 * which is said through `say`.
 *
 * A host of the legacy revisions may talk to a modern server (wire document 14, without streams of
 * a session). A modern host in front of a legacy server is told the versions that the server has
 * (-32022), and begins again with initialize. */
#ifndef LP_CALL_BRIDGE_H
#define LP_CALL_BRIDGE_H

#include "base/error.h"
#include "call/fetch.h"

struct lp_bridge;

enum {
    LP_BRIDGE_CALLS_MAX = 1024, /* requests of the host without an answer */
    LP_BRIDGE_MEMOS_MAX = 1024, /* subscriptions that are set again */
};

struct lp_bridge_args {
    const struct lp_shell *shell;
    struct lp_fetcher *fetcher; /* must outlive the bridge */
    struct lp_jar *jar;         /* NULL: off */
    uint32_t timeout_ms;        /* of one call, without answer or progress; 0: none */
    void (*say)(void *ctx, struct lp_span sentence); /* for the user: never on stdout */
    /* Everything has ended, told once. `has_failed`: not because the host wished so. */
    void (*over)(void *ctx, bool has_failed);
    void *ctx;
};

LP_MUST int lp_bridge_new(const struct lp_bridge_args *args, struct lp_bridge **ret);
/* NULL is fine. */
void lp_bridge_free(struct lp_bridge *bridge);

/* Begins to read the standard input. LP_E... of the shell. */
LP_MUST int lp_bridge_start(struct lp_bridge *bridge);

/* Whether the event was of the standard input or output; if so it has been handled. All others
 * belong to the fetcher. */
bool lp_bridge_event(struct lp_bridge *bridge, const struct lp_event *event);
/* Ends the session at once. Without it the end of the input ends it, when the calls in progress
 * have been answered. */
void lp_bridge_stop(struct lp_bridge *bridge);
/* Does what the event has led to: at the end of every event, the fetcher's too. */
void lp_bridge_settle(struct lp_bridge *bridge);

#endif
