/* What a challenge (WWW-Authenticate, RFC 9110 11.6.1) says of where to log in (RFC 9728 5.1). */
#ifndef LP_MCP_CHALLENGE_H
#define LP_MCP_CHALLENGE_H

#include "base/span.h"

/* Where a server tells of the resource that it is (RFC 9728 3); the resource's path follows. */
#define LP_CHALLENGE_PLACE "/.well-known/oauth-protected-resource"

/* The URL in the first resource_metadata, a span of `challenge` without its quotes; a null pointer
 * when there is none. */
struct lp_span lp_challenge_metadata(struct lp_span challenge);

#endif
