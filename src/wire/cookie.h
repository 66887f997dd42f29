/* Cookie lines (RFC 6265 5.1.1, 5.2, 5.4): what a Set-Cookie field says, what a Cookie field holds,
 * and dates as servers write them.
 *
 * Only reading. What is kept and what is sent is decided by the jar (mcp/jar.h). Values stay as
 * they came: quotes belong to them, commas do not part cookies. */
#ifndef LP_WIRE_COOKIE_H
#define LP_WIRE_COOKIE_H

#include "base/assert.h"
#include "base/error.h"
#include "base/span.h"

struct lp_set_cookie {
    struct lp_span name;  /* never empty */
    struct lp_span value; /* may be empty */
    bool has_max_age;     /* a readable one */
    uint64_t max_age_s;   /* 0 for zero and negative ones; the largest number for what is over it */
    bool has_expires;     /* a readable date */
    int64_t expires_s;    /* seconds since 1970 */
    bool is_secure;
    bool has_domain;   /* an attribute of that name, whatever its value */
    bool path_is_root; /* the last Path is exactly "/" */
};

/* Reads the value of one Set-Cookie field; of a repeated attribute the last readable one counts.
 * Spans lie in `line`. LP_ESYNTAX without "=", with an empty name, or with bytes that no field may
 * hold. */
LP_MUST int lp_cookie_parse_set(struct lp_span line, struct lp_set_cookie *ret);

/* A date as RFC 6265 5.1.1 reads it: any order, any delimiters, two-digit years from 1970 to 2069.
 * *ret_s is in seconds since 1970, at least those of the year 1601. LP_ESYNTAX, also for a day that
 * its month does not have. */
LP_MUST int lp_cookie_parse_date(struct lp_span text, int64_t *ret_s);

/* The next pair of a Cookie field's value, blanks around it dropped; empty pieces are skipped.
 * False when there is none. `*rest` is the value at first and then what is still to be read. A
 * piece without "=" has an empty name. */
bool lp_cookie_next(struct lp_span *rest, struct lp_span *ret_name, struct lp_span *ret_pair);

#endif
