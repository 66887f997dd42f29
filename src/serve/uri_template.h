/* Addresses with {names} in them (RFC 6570, level 1), read backwards: which address fits, and what
 * stands for a name. A name stands for one or more bytes other than '/'. */
#ifndef LP_SERVE_URI_TEMPLATE_H
#define LP_SERVE_URI_TEMPLATE_H

#include "base/span.h"

/* Whether there is a '{' in it. */
bool lp_uri_is_template(struct lp_span text);

/* Whether `uri` fits. A name ends where the byte after its '}' comes first. */
bool lp_uri_template_fits(struct lp_span text, struct lp_span uri);

/* What stands for {name} in an address that fits; empty when there is no such name. */
struct lp_span lp_uri_template_value(struct lp_span text, struct lp_span uri, struct lp_span name);

#endif
