/* URI references (RFC 3986), as far as a proxy and a client need them: http, https, relative. */
#ifndef LP_WIRE_URI_H
#define LP_WIRE_URI_H

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/* Parts are spans of the parsed text; a part that is not there has a null pointer (an empty query
 * "?" is there and empty). Percent-encoding is left as it is. */
struct lp_uri {
    struct lp_span scheme;
    struct lp_span userinfo;
    struct lp_span host; /* IPv6 without brackets */
    bool host_is_ipv6;
    struct lp_span port;
    bool has_authority;
    struct lp_span path; /* may be empty */
    struct lp_span query;
    struct lp_span fragment;
};

/* LP_ESYNTAX for anything that is not a URI reference: spaces, controls, bytes over 0x7E, bad
 * percent-encoding, bad ports (over 65535), bad IPv6. A query may hold [ ] { } | ^ ` and " as they
 * are, because clients send them so. LP_ETOO_LONG over 8,192 bytes. */
LP_MUST int lp_uri_parse(struct lp_span text, struct lp_uri *ret);

/* The port as a number: the given one, else 80 for http, 443 for https, else 0. */
uint16_t lp_uri_port(const struct lp_uri *uri);

/* Same scheme, host (without case) and port (with the scheme's default); both need an authority. */
bool lp_uri_same_origin(const struct lp_uri *a, const struct lp_uri *b);

/* Resolves `ref` against the absolute `base` (RFC 3986 5.2) and appends the result without its
 * fragment, dot segments removed. LP_ESYNTAX when base is not absolute; LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_uri_resolve(const struct lp_uri *base, const struct lp_uri *ref, struct lp_buf *out);

/* A request target (RFC 9112 3.2): origin-form or absolute-form, for which *ret has the authority.
 * "*" gives an empty path and no query. LP_ESYNTAX for authority-form, fragments and userinfo. */
LP_MUST int lp_uri_parse_target(struct lp_span target, struct lp_uri *ret);

/* The value of member `key` in a query ("a=1&b=2"), raw; false when there is none. */
bool lp_uri_query_get(struct lp_span query, struct lp_span key, struct lp_span *ret_value);

/* A Host or authority "name:port", "[::1]:80", "name"; LP_ESYNTAX. */
LP_MUST int lp_uri_parse_authority(struct lp_span text, struct lp_uri *ret);

/* localhost, 127.0.0.0/8, ::1 (without brackets). */
bool lp_uri_is_loopback(struct lp_span host);

/* For messages that repeat an address that may be no URI at all: what stands before a user name and
 * password, and what stands behind them, '@' included. False: there are none, *ret_head is `text`
 * and *ret_tail empty. */
bool lp_uri_hide_user(struct lp_span text, struct lp_span *ret_head, struct lp_span *ret_tail);

#endif
