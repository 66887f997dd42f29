/* Who may come in: Host and Origin against the allow-lists (requirements [G12], wire document 10).
 * Pure: what the client sent, what is configured, and whether the listener is a loopback one. */
#ifndef LP_GATE_DOORKEEPER_H
#define LP_GATE_DOORKEEPER_H

#include "base/reason.h"
#include "conf/conf.h"

/* LP_REASON_none, host_refused or origin_refused. `host` and `origin` have null pointers when the
 * field was not there. Defaults: a loopback listener takes loopback names and origins, any other
 * listener takes any Host, and an Origin that equals it; with public URLs their names are taken,
 * and beside them only a loopback listener's loopback names. */
enum lp_reason lp_doorkeeper_judge(const struct lp_conf_server *conf, bool is_loopback,
    struct lp_span host, struct lp_span origin);

#endif
