/* What a browser needs so that a page of another origin may call and read (Fetch standard, 3.3;
 * requirements [G12], [L4]). Whether that origin may is judged before, by who has the list: these
 * only write the fields. Fields that do not fit in the head are left out: then the browser, and
 * nobody else, refuses. */
#ifndef LP_MCP_CORS_H
#define LP_MCP_CORS_H

#include "base/buf.h"
#include "wire/head.h"

enum {
    LP_CORS_ORIGIN_MAX = 512, /* bytes of an Origin that is answered to */
    LP_CORS_LIST_MAX = 1024,  /* of a list of field names */
};

/* Adds to an answer: a page of `origin` may read it, and these fields of it: `exposed`, a list as
 * lp_cors_expose makes it, that lives as long as the head; empty: the session's and MCP's own.
 * Nothing is added when `origin` is empty or too long. */
void lp_cors_allow(struct lp_head *head, struct lp_span origin, struct lp_span exposed);

/* Adds to the answer to a preflight, beside lp_cors_allow, which methods and fields may be sent:
 * `names`, a list as lp_cors_names makes it, that lives as long as the head. */
void lp_cors_preflight(struct lp_head *head, struct lp_span names);

/* Appends to the empty `out` (at most LP_CORS_LIST_MAX bytes) the names of the fields that a page
 * may send: all those of MCP, and of `asked` (Access-Control-Request-Headers) those that begin with
 * Mcp-Param-, which have no end (cases HDR-09). Names that do not fit stay out. LP_ENOMEM. */
LP_MUST int lp_cors_names(struct lp_span asked, struct lp_buf *out);

/* Adds to `out` (at most LP_CORS_LIST_MAX bytes) what of an upstream's list is not in it; an empty
 * one gets our own list first (cases HDR-02). Names that do not fit stay out. LP_ENOMEM. */
LP_MUST int lp_cors_expose(struct lp_span theirs, struct lp_buf *out);

#endif
