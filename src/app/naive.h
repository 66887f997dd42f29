/* A plain load balancer, for the demo: every request to the next replica in turn, whatever session
 * it belongs to. A real proxy on real connections; it has no affinity, and that is its point. */
#ifndef LP_APP_NAIVE_H
#define LP_APP_NAIVE_H

#include "link/link.h"

enum { LP_NAIVE_REPLICAS_MAX = 8 };

struct lp_naive {
    struct lp_links *links;
    uint32_t count;
    uint16_t ports[LP_NAIVE_REPLICAS_MAX]; /* of replicas on 127.0.0.1 */
    uint32_t next;
    uint32_t last; /* which replica got the last request */
    struct lp_slab passes;
    struct lp_head head;
};

/* For the connections that clients make to it, with the struct as context. */
extern const struct lp_message_ops lp_naive_ops;

void lp_naive_init(struct lp_naive *naive, struct lp_links *links);
/* After lp_links_fini. */
void lp_naive_fini(struct lp_naive *naive);

#endif
