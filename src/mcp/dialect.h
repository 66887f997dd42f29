/* How upstream servers say "I do not know this session" (requirements [G6], wire document 15.3).
 *
 * Exact matches only, and only for an answer to a request that carried a session id: a tool's own
 * text can never match. */
#ifndef LP_MCP_DIALECT_H
#define LP_MCP_DIALECT_H

#include "base/assert.h"
#include "base/span.h"

enum { LP_DIALECT_BODY_MAX = 1024 };

/* One way of saying it. JSON-RPC form: status, code and whole message, the id null, absent or
 * "server-error". Body form (code 0): status and the whole body, blanks and a line end at its end
 * ignored. */
struct lp_dialect {
    uint16_t status;
    int32_t code;
    struct lp_span text;
};

/* The built-in table (documented in the manual; printed by the tests). */
const struct lp_dialect *lp_dialects(size_t *ret_count);

/* Whether the answer means that the session is lost. Any 404 does, unless its body is a JSON-RPC
 * error with code -32601 or the body is over LP_DIALECT_BODY_MAX and thus was not read
 * (`body_is_whole` false: a 404 still means lost, a 400 or 422 never). `extra` are dialects from
 * the configuration. */
bool lp_dialect_is_lost(uint16_t status, struct lp_span body, bool body_is_whole,
    const struct lp_dialect *extra, size_t extra_count);

#endif
