/* Who may talk to a listener that only this machine can reach: a web page that was made to resolve
 * to 127.0.0.1 must not (DNS rebinding; wire document 10). */
#ifndef LP_SERVE_GUARD_H
#define LP_SERVE_GUARD_H

#include "wire/head.h"

/* "localhost", 127.0.0.0/8 or ::1, with or without a port and brackets. */
bool lp_guard_is_loopback_host(struct lp_span authority);

/* Whether a request may be served on a loopback listener: its Host is a loopback name (or absent,
 * as in HTTP/1.0), and so is the host of its Origin when there is one. */
bool lp_guard_allows(const struct lp_head *head);

#endif
