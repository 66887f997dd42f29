/* Protocol versions, era, and the header rules of 2026-07-28 (wire document 1.1, 7.3, 11.1).
 *
 * Pure comparison of a head with its envelope: nothing is looked up, nothing remembered. */
#ifndef LP_MCP_VERSION_H
#define LP_MCP_VERSION_H

#include "base/reason.h"
#include "mcp/envelope.h"
#include "wire/head.h"

#define LP_VERSION_MODERN "2026-07-28"
#define LP_VERSION_LEGACY "2025-11-25" /* the newest of them */

/* Every version this build knows, newest first, as a JSON array for data.supported. */
#define LP_VERSIONS_JSON                                                                           \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

/* The same without the modern ones. */
#define LP_VERSIONS_LEGACY_JSON "[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

enum lp_era { LP_ERA_LEGACY, LP_ERA_MODERN };

/* One of the released versions up to 2025-11-25 (and the pre-release 2024-10-07). */
bool lp_version_is_legacy(struct lp_span version);
/* Exactly a modern version this build knows. */
bool lp_version_is_modern(struct lp_span version);
/* An ISO date at or above 2026-07-28, known or not. */
bool lp_version_looks_modern(struct lp_span version);

/* Whether a header's value, `=?base64?...?=` decoded, means the same as a JSON string token (7.3).
 */
bool lp_version_value_means(struct lp_span value, struct lp_span token);

/* Classifies a POST by head and envelope, in the order of wire document 11.1 steps 4 to 10, and
 * checks what a modern request must satisfy (7.3, 7.4): header equal to body, version known,
 * clientCapabilities present, Mcp-Method and Mcp-Name present where due, equal after decoding
 * `=?base64?...?=`, given once.
 * Returns LP_REASON_none and *ret_era when the request may be routed; else bad_batch, bad_message,
 * header_mismatch, missing_meta or unknown_version, with a short detail for the message in
 * *ret_detail ("Mcp-Name does not match params.name"; static text). A legacy
 * MCP-Protocol-Version header is not judged here except by step 7 and 8. */
LP_MUST enum lp_reason lp_version_judge(const struct lp_head *head, const struct lp_envelope *env,
    enum lp_era *ret_era, const char **ret_detail);

#endif
