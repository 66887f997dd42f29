/* The header fields in which a request of 2026-07-28 repeats what its body says (wire
 * document 7.3): kept until the body is there, and those of a tool's arguments compared with it. */
#ifndef LP_SERVE_MIRROR_H
#define LP_SERVE_MIRROR_H

#include "base/assert.h"
#include "base/buf.h"
#include "wire/head.h"

enum { LP_MIRROR_MAX = 65536, LP_MIRROR_WHY_MAX = 160 };

/* Appends the fields that are named Mcp-..., but the session id. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_mirror_keep(struct lp_buf *kept, const struct lp_head *head);

/* Makes the fields of `ret` those that were kept; their spans lie in `kept`. */
void lp_mirror_read(struct lp_span kept, struct lp_head *ret);

/* Whether the Mcp-Param-... fields are those that the arguments of the call and the marks
 * `x-mcp-header` of the tool's schema want; else `why` becomes a sentence. `schema` and `arguments`
 * are JSON that has passed the reader; empty arguments have no members. */
LP_MUST bool lp_mirror_agrees(const struct lp_head *head, struct lp_span schema,
    struct lp_span arguments, char why[LP_MIRROR_WHY_MAX]);

#endif
