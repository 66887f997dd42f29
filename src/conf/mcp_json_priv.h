/* Inside conf: where the members of a JSON object lie, for the reader and the editor of mcp.json.
 */
#ifndef LP_CONF_MCP_JSON_PRIV_H
#define LP_CONF_MCP_JSON_PRIV_H

#include "conf/mcp_json.h"
#include "wire/json.h"

struct lp_member {
    struct lp_span key; /* with its quotes */
    struct lp_span value;
    enum lp_json_token_kind kind; /* of the value's first token */
};

typedef int (*lp_member_fn)(void *ctx, const struct lp_member *member);

/* Calls `on_member` for each member of the object, in order; a non-zero return ends it and is
 * passed on. LP_ESYNTAX when the text is not JSON; LP_ERANGE when it is no object. */
LP_MUST int lp_members_walk(struct lp_span object, lp_member_fn on_member, void *ctx);

/* The last member of that name; LP_ENOT_FOUND, and as above. */
LP_MUST int lp_members_find(struct lp_span object, struct lp_span key, struct lp_member *ret);

/* The entry mcpServers.NAME; LP_ENOT_FOUND when there is no such entry or no mcpServers, LP_ESYNTAX
 * when the text, mcpServers or the entry is not what it should be. */
LP_MUST int lp_mcp_json_entry(struct lp_span text, struct lp_span name, struct lp_span *ret);

/* What an entry is by its type, or by having a command or a url. LP_ERANGE: a type that is not
 * known; LP_ENOT_FOUND: none of the three is there. */
LP_MUST int lp_mcp_json_entry_type(struct lp_span entry, enum lp_mcp_json_type *ret);

#endif
