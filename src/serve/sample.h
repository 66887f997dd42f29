/* The sample MCP server behind `limpet replica` and `limpet demo`, on serve/server.h: tools that
 * show who answered and what a session remembers. With its sessions in the memory of its process it
 * is the very server that needs Limpet; it may also tell a platform who owns a session
 * (requirements [S2], [S3]), or keep none at all ([L3]).
 *
 * Driven like the engine: events in, actions out; no clock, no entropy, no I/O of its own. */
#ifndef LP_SERVE_SAMPLE_H
#define LP_SERVE_SAMPLE_H

#include "serve/server.h"

enum {
    LP_SAMPLE_NAME_MAX = 64,
};

struct lp_sample;

struct lp_sample_args {
    const struct lp_shell *shell;
    struct lp_span name;     /* which replica this is: what whoami says. Letters, digits, - . _ */
    struct lp_span path;     /* where MCP is served, begins with '/' */
    struct lp_span sse_path; /* see lp_server_args */
    enum lp_session_mode mode;
    enum lp_server_eras eras;
    struct lp_span owner; /* passes lp_owner_is_id; empty: ids are plain */
    enum lp_server_replay replay;
    const struct lp_store_url *store; /* see lp_server_args */
    uint32_t store_wait;
    struct lp_span origins;        /* see lp_server_args */
    uint32_t session_max;          /* 0: LP_SERVER_SESSIONS */
    uint64_t idle_us;              /* a session without a request; 0: 15 minutes */
    const struct lp_keyring *keys; /* see lp_server_args */
    unsigned char seed[32];
};

/* LP_ETOO_LONG: name or a path; LP_EUNSUPPORTED: sse_path without local sessions; LP_ESYNTAX: the
 * name is no HTTP token, the owner no owner id; LP_ENOMEM. */
LP_MUST int lp_sample_new(const struct lp_sample_args *args, struct lp_sample **ret);
void lp_sample_free(struct lp_sample *sample);

/* Handles one event; its actions are performed before it returns. */
void lp_sample_event(struct lp_sample *sample, const struct lp_event *event);

/* Sessions that are open now. */
uint32_t lp_sample_session_count(const struct lp_sample *sample);

#endif
