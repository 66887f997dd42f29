/* The tools of the sample server: echo, whoami, counter, slow, notify. */
#ifndef LP_SERVE_SAMPLE_TOOLS_H
#define LP_SERVE_SAMPLE_TOOLS_H

#include "serve/server.h"

/* What the tools know of the server. */
struct lp_sample_self {
    struct lp_span name;
};

/* Fills the offer; `self` must outlive it. */
void lp_sample_offer(struct lp_sample_self *self, struct lp_offer *ret);

#endif
