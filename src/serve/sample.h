/* The sample MCP server behind `limpet replica` and `limpet demo`: Streamable HTTP 2025-03-26 to
 * 2025-11-25 with private sessions in the memory of its process, so that a request of a session
 * only works where the session was opened. That is the very server that needs Limpet. It may tell
 * a platform who owns a session (requirements [S2], [S3]), or keep none at all ([L3]).
 *
 * Driven like the engine: events in, actions out; no clock, no entropy, no I/O of its own. */
#ifndef LP_SERVE_SAMPLE_H
#define LP_SERVE_SAMPLE_H

#include "mcp/owner.h"
#include "seam/action.h"
#include "seam/event.h"

enum {
    LP_SAMPLE_NAME_MAX = 64,
    LP_SAMPLE_PATH_MAX = 256,
    LP_SAMPLE_SESSIONS = 256, /* the default */
    LP_SAMPLE_CONNECTIONS_MAX = 4096,
    LP_SAMPLE_BODY_MAX = 4 << 20,
};

struct lp_sample;

/* Where its sessions live ([L3]). */
enum lp_sample_mode {
    LP_SAMPLE_LOCAL,     /* in the memory of this process */
    LP_SAMPLE_STATELESS, /* nowhere: no id is given, and none asked for */
};

/* How a request of another owner's session is answered ([S3]). */
enum lp_sample_replay {
    LP_SAMPLE_REPLAY_OFF,    /* 404 */
    LP_SAMPLE_REPLAY_PREFER, /* fly-replay: prefer_instance=<owner>;timeout=5s */
    LP_SAMPLE_REPLAY_STRICT, /* fly-replay: instance=<owner> */
};

struct lp_sample_args {
    const struct lp_shell *shell;
    struct lp_span name; /* which replica this is: what whoami says. Letters, digits, - . _ */
    struct lp_span path; /* where MCP is served, begins with '/' */
    enum lp_sample_mode mode;
    struct lp_span owner; /* passes lp_owner_is_id; empty: ids are plain */
    enum lp_sample_replay replay;
    uint32_t session_max; /* 0: LP_SAMPLE_SESSIONS */
    uint64_t idle_us;     /* a session without a request; 0: 15 minutes */
    unsigned char seed[32];
};

/* LP_ETOO_LONG: name or path; LP_ESYNTAX: the name is no HTTP token, the owner no owner id;
 * LP_ENOMEM. */
LP_MUST int lp_sample_new(const struct lp_sample_args *args, struct lp_sample **ret);
void lp_sample_free(struct lp_sample *sample);

/* Handles one event; its actions are performed before it returns. */
void lp_sample_event(struct lp_sample *sample, const struct lp_event *event);

/* Sessions that are open now. */
uint32_t lp_sample_session_count(const struct lp_sample *sample);

#endif
