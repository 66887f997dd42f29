/* The names by which clients know a server (requirements [G11]; cases AUT-01 to AUT-03): which of
 * its public URLs a client uses, and what a replica says of itself rewritten to that one. Pure. */
#ifndef LP_GATE_PUBLIC_H
#define LP_GATE_PUBLIC_H

#include "base/buf.h"
#include "conf/conf.h"

/* The public URL whose authority is `host`; else one of that name; else the first, so that no Host
 * that was only let in is ever said back. Empty when none is configured. */
struct lp_span lp_public_url(const struct lp_conf_server *conf, struct lp_span host);

/* Whether `host` names one of the public URLs, by its name alone or with its port. */
bool lp_public_has_host(const struct lp_conf_server *conf, struct lp_span host);

/* Whether `suffix`, the path behind a metadata place, is that of a public URL of this host. */
bool lp_public_has_path(
    const struct lp_conf_server *conf, struct lp_span host, struct lp_span suffix);

/* "/.well-known/oauth-protected-resource/team/mcp" -> the place and "/team/mcp", which is empty for
 * the place alone. Places are those of RFC 9728, RFC 8414 and OpenID discovery; false for others.
 */
bool lp_public_split(struct lp_span path, struct lp_span *ret_place, struct lp_span *ret_suffix);

/* Only the place of RFC 9728 tells of the resource. */
bool lp_public_is_resource(struct lp_span place);

/* Appends the challenge with each resource_metadata that is at a place of RFC 9728 moved to that of
 * `url`. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_public_challenge(struct lp_buf *out, struct lp_span challenge, struct lp_span url);

/* Appends the metadata document with `url` as its resource. LP_ESYNTAX when it is no JSON object
 * that names one; LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_public_document(struct lp_buf *out, struct lp_span document, struct lp_span url);

#endif
