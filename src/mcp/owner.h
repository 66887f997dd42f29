/* Owner ids: the readable way of saying in a session id who owns the session (requirements [S1],
 * [S2]), for platforms where nobody shares a key.
 *
 *   <owner>.<rest>    owner: ^[A-Za-z0-9]{1,32}$    rest: the server's own id, opaque
 *
 * What a client sent is never repeated before it has passed the check here: an owner goes into a
 * header of the answer. No I/O: the environment comes in as arguments. */
#ifndef LP_MCP_OWNER_H
#define LP_MCP_OWNER_H

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"

enum {
    LP_OWNER_MAX = 32,
    LP_OWNER_HOSTNAME_DIGITS = 16, /* of the SHA-256 of HOSTNAME */
    LP_OWNER_REST_MAX = 2048,      /* a server's own id, or the ticket of an old-SSE stream */
    LP_OWNER_TEXT_MAX = LP_OWNER_MAX + 1 + LP_OWNER_REST_MAX,
};

/* The one check that every owner id passes, wherever it came from. */
bool lp_owner_is_id(struct lp_span text);

/* Whence this process may have its own id. Empty is as if not there. */
struct lp_owner_sources {
    struct lp_span configured;
    struct lp_span machine; /* FLY_MACHINE_ID */
    struct lp_span hostname;
    bool takes_hostname; /* chosen: an id may be made of the hostname */
};

enum lp_owner_source {
    LP_OWNER_NOWHERE, /* no owner: ids stay plain */
    LP_OWNER_CONFIGURED,
    LP_OWNER_MACHINE,
    LP_OWNER_MACHINE_BAD, /* no owner either, and somebody should be told */
    LP_OWNER_HOSTNAME,
};

struct lp_owner {
    enum lp_owner_source source;
    size_t len; /* 0: no owner */
    char text[LP_OWNER_MAX];
};

static inline struct lp_span lp_owner_span(const struct lp_owner *owner)
{
    return lp_span(owner->text, owner->len);
}

/* The process's own id: the configured one, else the platform's, else, where chosen, 16 hexadecimal
 * digits of the SHA-256 of the hostname. LP_EREFUSED when the configured one is bad: then the
 * program must not start. A bad one of the platform means no owner. */
LP_MUST int lp_owner_choose(const struct lp_owner_sources *sources, struct lp_owner *ret);

/* Appends "<owner>.<rest>". `owner` has passed the check (asserted). LP_EREFUSED when `rest` is
 * empty, over 2,048 bytes, or holds bytes other than 0x21-0x7E; LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_owner_mint(struct lp_span owner, struct lp_span rest, struct lp_buf *out);

/* Splits an id at its first dot; the rest may hold more of them. LP_ESYNTAX when it is none that
 * could have been minted: no dot, a prefix that is no owner id, or a rest that lp_owner_mint
 * refuses. */
LP_MUST int lp_owner_split(struct lp_span id, struct lp_span *ret_owner, struct lp_span *ret_rest);

#endif
