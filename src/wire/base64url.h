/* base64url without padding (RFC 4648 section 5), and canonical only: of all texts that could mean
 * the same bytes exactly one is accepted. */
#ifndef LP_WIRE_BASE64URL_H
#define LP_WIRE_BASE64URL_H

#include "base/assert.h"
#include "base/error.h"
#include "base/span.h"

/* Length of the encoding of `n` bytes. */
static inline size_t lp_base64url_len(size_t n)
{
    return n / 3 * 4 + (n % 3 ? n % 3 + 1 : 0);
}

/* Encodes into `room`, which must hold lp_base64url_len(bytes.len); returns that length. */
size_t lp_base64url_encode(struct lp_span bytes, char *room);

/* Decodes into `room` of `room_len` bytes. LP_ESYNTAX for other characters, padding, a length of
 * 4n+1 or non-zero spare bits; LP_ETOO_LONG. */
LP_MUST int lp_base64url_decode(struct lp_span text, char *room, size_t room_len, size_t *ret_len);

/* Standard base64 with padding (RFC 4648 section 4), as key files and `=?base64?...?=` headers use
 * it. The same errors. */
LP_MUST int lp_base64_decode(struct lp_span text, char *room, size_t room_len, size_t *ret_len);
size_t lp_base64_encode(struct lp_span bytes, char *room);

#endif
