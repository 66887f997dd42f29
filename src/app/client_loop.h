/* What a client command runs on: the loop, certificates, the fetcher, the jar and the network log,
 * opened from the shared flags and closed again in the right order. */
#ifndef LP_APP_CLIENT_LOOP_H
#define LP_APP_CLIENT_LOOP_H

#include "app/client_flags.h"
#include "call/fetch.h"
#include "io/loop.h"
#include "mcp/jar.h"

struct lp_tls_trust;

struct lp_client_loop {
    /* Set by the command before lp_client_loop_open. */
    void *ctx;
    void (*on_start)(void *ctx); /* the first event: from here on fetches may be started */
    void (*on_stop)(void *ctx);  /* SIGINT or SIGTERM, the first time */
    /* An event of a connection that the command itself opened (standard input). True: it was its
     * own. May be NULL. */
    bool (*on_own)(void *ctx, const struct lp_event *event);
    void (*on_settle)(void *ctx); /* at the end of every event; may be NULL */

    /* Made by it. */
    struct lp_target target;
    struct lp_client_log log;
    struct lp_netlog *netlog; /* NULL: none */
    struct lp_netlog live_log;
    lp_netlog_line_fn live;
    struct lp_tls_trust *trust;
    struct lp_loop *loop;
    struct lp_fetcher *fetcher;
    struct lp_jar jar;
    struct lp_jar *jar_in_use; /* NULL: off */
    bool has_target;
    bool is_stopped;
};

/* `live`: another sink of the network log, or NULL; it gets the lines beside the file. Not
 * LP_EXIT_OK: everything has been said; lp_client_loop_close is still to be called. */
LP_MUST int lp_client_loop_open(const struct lp_client_flags *flags, const char *where,
    lp_netlog_line_fn live, struct lp_client_loop *loop);
/* Runs until lp_client_loop_stop. LP_EXIT_OK, or LP_EXIT_FAILED after saying why. */
int lp_client_loop_run(struct lp_client_loop *loop);
/* From within an event: nothing more is wanted. */
void lp_client_loop_stop(struct lp_client_loop *loop);
/* LP_EXIT_FAILED after saying that lines of the log were lost. Harmless when done twice. */
int lp_client_loop_close(struct lp_client_loop *loop);

#endif
