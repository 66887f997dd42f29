/* Who may talk to a server: the Host and Origin of a request (wire document 10, requirements [L4]).
 * A web page that was made to resolve to 127.0.0.1 must not (DNS rebinding). */
#ifndef LP_SERVE_GUARD_H
#define LP_SERVE_GUARD_H

#include "base/reason.h"
#include "wire/head.h"

/* "localhost", 127.0.0.0/8 or ::1, with or without a port and brackets. */
bool lp_guard_is_loopback_host(struct lp_span authority);

/* LP_REASON_none, host_refused or origin_refused.
 *
 * A loopback listener takes loopback names as Host (or none, as in HTTP/1.0), any other takes any.
 * An Origin, when there is one, must be in `origins` (comma separated, "https://app.example", or
 * "*" for all); with an empty list a loopback listener takes those with a loopback name, any other
 * listener one whose authority is the Host. */
enum lp_reason lp_guard_judge(const struct lp_head *head, bool is_loopback, struct lp_span origins);

#endif
