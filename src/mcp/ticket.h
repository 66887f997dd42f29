/* The ticket: the session id a client holds, a sealed note of who owns the session (design 5).
 *
 *   lp1_ base64url( key id 4 | nonce 24 | XChaCha20-Poly1305( TLV... ) )
 *   TLV: tag 1 byte, length 2 bytes big-endian, value
 *        1 issued-at (8 bytes, wall ms)   2 replica (8 bytes)   3 principal (8 bytes, optional)
 *        4 affinity cookies (optional)    5 upstream id (1..512 bytes)
 *   associated data: "lp1" | kind 1 byte | server entry name
 *
 * Bytes are 0x21-0x7E, one text for each value (base64url canonical, unknown or repeated tags are
 * refused as forged). No I/O; time and nonce are arguments. */
#ifndef LP_MCP_TICKET_H
#define LP_MCP_TICKET_H

#include "base/map.h"
#include "mcp/keyring.h"

enum lp_ticket_kind {
    LP_TICKET_HTTP = 'h',
    LP_TICKET_SSE = 's',
    LP_TICKET_TASK = 't',
    LP_TICKET_STATE = 'r',
};

enum {
    LP_TICKET_NONCE_BYTES = 24,
    LP_TICKET_UPSTREAM_ID_MAX = 512,
    LP_TICKET_COOKIES_MAX = 512,
    LP_TICKET_TEXT_MAX = 2048, /* room that always suffices */
    LP_TICKET_WITH_COOKIES_MAX = 1024,
};
#define LP_TICKET_PREFIX "lp1_"

struct lp_ticket {
    uint64_t issued_ms;
    unsigned char replica[LP_REPLICA_HASH_BYTES];
    bool has_principal;
    unsigned char principal[8];
    struct lp_span cookies;     /* empty: none */
    struct lp_span upstream_id; /* as the replica gave it; for SSE: path and query */
    struct lp_key key;   /* after open: 128 bits of the nonce, the session's name inside Limpet */
    uint32_t ring_index; /* after open: which key of the ring sealed it */
};

struct lp_ticket_scope {
    enum lp_ticket_kind kind;
    struct lp_span server; /* name of the server entry, at most 64 bytes */
};

/* With what, for what and when tickets are sealed and opened. The two times matter for opening
 * only. */
struct lp_ticket_context {
    const struct lp_keyring *ring;
    const struct lp_ticket_scope *scope;
    uint64_t wall_ms;
    uint64_t age_max_ms;
};

/* Seals with the first key. `nonce` must be fresh random bytes. The text goes to `room`
 * (LP_TICKET_TEXT_MAX bytes), its length to *ret_len. LP_ERANGE when the upstream id is empty, or
 * the cookies are over their limit or would push the text over 1,024; LP_ETOO_LONG when the
 * upstream id is over 512. */
LP_MUST int lp_ticket_seal(const struct lp_ticket_context *context, const struct lp_ticket *ticket,
    const unsigned char nonce[LP_TICKET_NONCE_BYTES], char *room, size_t *ret_len);

/* Opens a text. Spans of *ret point into `room` (LP_TICKET_TEXT_MAX bytes). Errors: LP_ESYNTAX when
 * it is no ticket by its form; LP_EUNKNOWN_KEY; LP_EFORGED (seal, other entry or other kind: the
 * seal covers these); LP_EEXPIRED when issued more than `age_max_ms` before `wall_ms`. A ticket
 * from the future is accepted (clocks jump). */
LP_MUST int lp_ticket_open(const struct lp_ticket_context *context, struct lp_span text, char *room,
    struct lp_ticket *ret);

#endif
