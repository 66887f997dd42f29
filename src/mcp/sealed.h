/* Bytes of ours that a client carries and gives back: a requestState (wire document 7.9). Nobody
 * without the key reads or makes one, and each is good for one purpose, which is not in it but must
 * be named again when it is opened.
 *
 *   ls1_ base64url( key id 4 | nonce 24 | XChaCha20-Poly1305( bytes ) )
 *
 * No I/O; the nonce is an argument. Whether it has been used before is not known here. */
#ifndef LP_MCP_SEALED_H
#define LP_MCP_SEALED_H

#include "base/buf.h"
#include "mcp/keyring.h"

enum {
    LP_SEALED_NONCE_BYTES = 24,
    LP_SEALED_MAX = 256 << 10, /* of bytes that are sealed */
    LP_SEALED_MARK_LEN = 32,
};
#define LP_SEALED_PREFIX "ls1_"

/* Appends the text of `bytes` to `out`, sealed with the first key. `purpose` may be of any length;
 * `nonce` must be fresh random bytes. LP_ETOO_LONG: over LP_SEALED_MAX; LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_sealed_write(const struct lp_keyring *ring, struct lp_span purpose,
    struct lp_span bytes, const unsigned char nonce[LP_SEALED_NONCE_BYTES], struct lp_buf *out);

/* Appends the bytes to `out`. LP_ESYNTAX when the text is none of ours by its form;
 * LP_EUNKNOWN_KEY; LP_EFORGED (altered, or of another purpose); LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_sealed_open(
    const struct lp_keyring *ring, struct lp_span purpose, struct lp_span text, struct lp_buf *out);

/* 32 hex digits that stand for `text`: another text has others. Not zero-terminated. */
void lp_sealed_mark(struct lp_span text, char room[LP_SEALED_MARK_LEN]);

#endif
