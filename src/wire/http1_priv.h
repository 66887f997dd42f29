/* Inside wire/http1: what finds the ends of heads and lines (http1.c) and what reads a whole head
 * (http1_head.c). */
#ifndef LP_WIRE_HTTP1_PRIV_H
#define LP_WIRE_HTTP1_PRIV_H

#include "wire/http1.h"

/* The line before its LF. */
static inline bool ends_with_cr(struct lp_span s)
{
    return s.len && s.ptr[s.len - 1] == '\r';
}

/* The next line of a text in which every line is known to end with CRLF, without that. */
static inline struct lp_span next_text_line(struct lp_span *rest)
{
    struct lp_span line = lp_span_split(*rest, '\n', rest);
    LP_ASSERT(ends_with_cr(line));
    line.len--;
    return line;
}

/* One field line without its CRLF. Spans of *ret point into it. LP_ESYNTAX. */
LP_MUST int lp_http1_parse_field(struct lp_span line, struct lp_field *ret);

/* Reads a whole head, empty line included, into p->head. Its field lines are in the names of
 * p->head's fields already, field_count of them, those over LP_HEAD_FIELDS_MAX only counted. Spans
 * of the head point into `bytes`. Errors as of lp_http1_feed. */
LP_MUST int lp_http1_parse_head(const struct lp_http1 *p, struct lp_span bytes);

#endif
