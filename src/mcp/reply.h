/* The answers that Limpet makes itself: JSON-RPC error bodies. */
#ifndef LP_MCP_REPLY_H
#define LP_MCP_REPLY_H

#include "base/buf.h"
#include "base/reason.h"

struct lp_reply {
    enum lp_reason reason;
    struct lp_span id;   /* raw token of the request's id; empty: null */
    const char *detail;  /* NULL, or a text to say instead of the reason's public sentence */
    struct lp_span data; /* raw JSON for error.data; empty: none */
};

/* Appends {"jsonrpc":"2.0","id":...,"error":{...}}. The code is the reason's, or -32603 when it has
 * none. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_reply_write(struct lp_buf *out, const struct lp_reply *reply);

/* Whether a User-Agent begins with one of the prefixes: such clients get a lost session as plain
 * text (requirements [G6], plain_404_agents). */
bool lp_reply_wants_plain(struct lp_span user_agent, const struct lp_span *prefixes, size_t count);

#endif
