/* The demo's client: opens a session, calls `counter` a dozen times, and notes who answered. A
 * fresh connection for every request, one request at a time. */
#ifndef LP_APP_DEMO_CLIENT_H
#define LP_APP_DEMO_CLIENT_H

#include "base/buf.h"
#include "link/link.h"

enum { LP_DEMO_CALLS = 12, LP_DEMO_SESSION_MAX = 1024 };

/* What came of the calls, one character each. */
struct lp_demo_row {
    char replica[LP_DEMO_CALLS + 1]; /* the replica's name; '-' when nobody knows */
    char result[LP_DEMO_CALLS + 1];  /* 'O' answered, 'x' not */
    uint32_t answered;
    uint64_t last_count; /* of the counter in the session */
    uint16_t last_bad_status;
};

struct lp_demo_client {
    struct lp_links *links;
    uint16_t port;
    void *ctx;
    void (*done)(void *ctx);
    /* Who got the request that found no answer: '-' when that cannot be known. */
    char (*who_failed)(void *ctx);

    struct lp_demo_row row;
    uint32_t step;
    lp_id link;
    bool has_answer;
    uint16_t status;
    struct lp_buf body;
    char session[LP_DEMO_SESSION_MAX];
    size_t session_len;
    struct lp_head head;
};

/* Links, ctx and the two functions are set by the caller before. Begins; `done` is called at the
 * end.
 */
void lp_demo_client_start(struct lp_demo_client *client, uint16_t port);
void lp_demo_client_fini(struct lp_demo_client *client);

#endif
