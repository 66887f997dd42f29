/* A set of addresses in one buffer, each with a zero byte behind it: what a session, or a stream of
 * subscriptions/listen, is told about. */
#ifndef LP_SERVE_URIS_H
#define LP_SERVE_URIS_H

#include "base/buf.h"

/* Whether that address is in the set. */
bool lp_uris_has(const struct lp_buf *uris, struct lp_span uri);

/* One that is there already is not added again. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_uris_add(struct lp_buf *uris, struct lp_span uri);

/* One that is not there is no mistake. */
void lp_uris_remove(struct lp_buf *uris, struct lp_span uri);

#endif
