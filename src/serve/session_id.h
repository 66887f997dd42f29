/* The session ids of a server: minted, and judged when they come back (requirements [S2], [S3]).
 *
 *   <uuid>            a server without an owner id: 36 characters, version 4, lower case
 *   <owner>.<uuid>    a server with one (mcp/owner.h)
 *
 * Pure: who this server is and the random bytes are arguments. */
#ifndef LP_SERVE_SESSION_ID_H
#define LP_SERVE_SESSION_ID_H

#include "base/map.h"
#include "mcp/owner.h"

enum {
    LP_UUID_LEN = 36,
    LP_SESSION_ID_MAX = LP_OWNER_MAX + 1 + LP_UUID_LEN,
};

enum lp_whose {
    LP_WHOSE_OURS,    /* this server may have minted it */
    LP_WHOSE_OTHERS,  /* another owner has minted it */
    LP_WHOSE_NOBODYS, /* no server can have minted it, or nobody can say which one */
};

/* Writes the id of a new session into `text` and returns its length. `owner` is empty or has passed
 * lp_owner_is_id. Of the random `*key` six bits become those of a version 4 UUID (RFC 9562 5.4);
 * after the call it is what lp_session_id_judge finds in the text. */
size_t lp_session_id_mint(struct lp_span owner, struct lp_key *key, char text[LP_SESSION_ID_MAX]);

/* Whose the id is that a client sent. OURS: *ret_key is its key. OTHERS (only for a server that has
 * an owner id itself): *ret_owner is its owner, which has passed lp_owner_is_id. */
enum lp_whose lp_session_id_judge(
    struct lp_span owner, struct lp_span text, struct lp_key *ret_key, struct lp_span *ret_owner);

#endif
