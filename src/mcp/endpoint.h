/* The `endpoint` event of old SSE (wire document 3): what an upstream announced, taken apart for
 * the ticket, and the address that the client gets instead (requirements [G4], cases SSE-01 to 03).
 */
#ifndef LP_MCP_ENDPOINT_H
#define LP_MCP_ENDPOINT_H

#include "base/buf.h"
#include "base/error.h"
#include "wire/uri.h"

/* `data`: the event's data. `stream`: the absolute URL of the stream at the upstream. `visible`:
 * the origin and path as the client sees the stream (absolute URL; NULL when not known). Appends to
 * `sealed` the path and query at the upstream that the ticket carries (e.g.
 * "/messages?sessionId=1"), and to `kept` the other query members that stay visible
 * ("tenant=a&b=2", without the leading '&'; empty when all members are the key). The session key is
 * the members named sessionId, session_id, sessionid, session, sid, id or token (without case and
 * '-'/'_'); when none is so named, all members are. An announced path that already begins with the
 * visible mount prefix is not doubled (SSE-02 test 2): the upstream gets the path as announced.
 * LP_EREFUSED: another origin than the upstream's or the visible one, userinfo, or another scheme.
 * LP_ESYNTAX: no URI reference. LP_ETOO_LONG: over 512 bytes for the ticket. */
LP_MUST int lp_endpoint_split(struct lp_span data, const struct lp_uri *stream,
    const struct lp_uri *visible, struct lp_buf *sealed, struct lp_buf *kept);

/* Appends the client's address: `<sse_path>?lp=<token>` and "&" kept. */
LP_MUST int lp_endpoint_visible(
    struct lp_buf *out, struct lp_span sse_path, struct lp_span token, struct lp_span kept);

/* Takes a client's query apart: the token (member "lp"), and the rest that is passed on (appended
 * to `rest`, "a=1&b=2"). LP_ENOT_FOUND: no "lp" member; LP_EAMBIGUOUS: two of them. */
LP_MUST int lp_endpoint_token(struct lp_span query, struct lp_span *ret_token, struct lp_buf *rest);

/* Appends the request target at the upstream: what the ticket sealed, and those members of the
 * client's `rest` that bear no name of the sealed query. Names are compared as servers read them:
 * percent-decoded, without case, and up to a '[', so that no client can put a second session key
 * beside the announced one. */
LP_MUST int lp_endpoint_target(struct lp_buf *out, struct lp_span sealed, struct lp_span rest);

#endif
