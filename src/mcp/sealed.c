/* Sealing what a client carries (mcp/sealed.h).
 *
 * The purpose is covered by the seal and not part of the text: it may be as long as a request. What
 * the ticket (mcp/ticket.h) covers begins with other bytes, so that neither passes for the other
 * though both use the ring's keys. */
#include "mcp/sealed.h"

#include <sodium.h>

#include "wire/base64url.h"

enum {
    NONCE_AT = LP_KEY_ID_BYTES,
    SEALED_AT = NONCE_AT + LP_SEALED_NONCE_BYTES,
    SEAL_BYTES = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    PREFIX_LEN = sizeof LP_SEALED_PREFIX - 1,
    RAW_MAX = SEALED_AT + LP_SEALED_MAX + SEAL_BYTES,
    TEXT_MAX = PREFIX_LEN + (RAW_MAX + 2) / 3 * 4,
    PURPOSE_MAX = 64 << 20,
    MARK_BYTES = LP_SEALED_MARK_LEN / 2,
};
_Static_assert(LP_SEALED_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");

static int write_covered(struct lp_span purpose, struct lp_buf *covered)
{
    lp_buf_init(covered, PURPOSE_MAX);
    return LP_JOIN(covered, LP_SPAN("limpet sealed 1\n"), purpose);
}

/* Fills `raw` with what becomes the text. */
static int seal(const struct lp_ring_key *key, struct lp_span purpose, struct lp_span bytes,
    const unsigned char *nonce, struct lp_buf *raw)
{
    char *room;
    struct lp_buf covered;
    size_t len = SEALED_AT + bytes.len + SEAL_BYTES;
    int err = write_covered(purpose, &covered);
    if (!err)
        err = lp_buf_reserve(raw, len, &room);
    if (!err) {
        memcpy(room, key->id, LP_KEY_ID_BYTES);
        memcpy(room + NONCE_AT, nonce, LP_SEALED_NONCE_BYTES);
        (void)crypto_aead_xchacha20poly1305_ietf_encrypt((unsigned char *)room + SEALED_AT, NULL,
            (const unsigned char *)bytes.ptr, bytes.len,
            (const unsigned char *)lp_buf_span(&covered).ptr, covered.len, NULL, nonce, key->aead);
        lp_buf_commit(raw, len);
    }
    lp_buf_release(&covered);
    return err;
}

int lp_sealed_write(const struct lp_keyring *ring, struct lp_span purpose, struct lp_span bytes,
    const unsigned char nonce[LP_SEALED_NONCE_BYTES], struct lp_buf *out)
{
    char *room;
    struct lp_buf raw;
    LP_ASSERT(ring->count > 0);
    if (bytes.len > LP_SEALED_MAX)
        return LP_ETOO_LONG;
    lp_buf_init(&raw, RAW_MAX);
    int err = seal(&ring->keys[0], purpose, bytes, nonce, &raw);
    size_t len = PREFIX_LEN + lp_base64url_len(raw.len);
    if (!err)
        err = lp_buf_reserve(out, len, &room);
    if (!err) {
        memcpy(room, LP_SEALED_PREFIX, PREFIX_LEN);
        lp_base64url_encode(lp_buf_span(&raw), room + PREFIX_LEN);
        lp_buf_commit(out, len);
    }
    lp_buf_release(&raw);
    return err;
}

static int decode(struct lp_span text, struct lp_buf *raw)
{
    char *room;
    size_t len = 0;
    if (text.len > TEXT_MAX || !lp_span_starts(text, LP_SPAN(LP_SEALED_PREFIX)))
        return LP_ESYNTAX;
    text = lp_span_from(text, PREFIX_LEN);
    int err = lp_buf_reserve(raw, text.len, &room);
    if (err)
        return err;
    if (lp_base64url_decode(text, room, text.len, &len) || len < SEALED_AT + SEAL_BYTES)
        return LP_ESYNTAX;
    lp_buf_commit(raw, len);
    return LP_OK;
}

/* Tries every key with the id that the text names: ids are 4 bytes, two keys may share one. */
static int unseal(
    const struct lp_keyring *ring, struct lp_span covered, struct lp_span raw, char *room)
{
    const unsigned char *bytes = (const unsigned char *)raw.ptr;
    int err = LP_EUNKNOWN_KEY;
    for (uint32_t i = 0; i < ring->count && err; i++) {
        if (memcmp(ring->keys[i].id, bytes, LP_KEY_ID_BYTES) != 0)
            continue;
        err = crypto_aead_xchacha20poly1305_ietf_decrypt((unsigned char *)room, NULL, NULL,
                  bytes + SEALED_AT, raw.len - SEALED_AT, (const unsigned char *)covered.ptr,
                  covered.len, bytes + NONCE_AT, ring->keys[i].aead)
            ? LP_EFORGED
            : LP_OK;
    }
    return err;
}

int lp_sealed_open(
    const struct lp_keyring *ring, struct lp_span purpose, struct lp_span text, struct lp_buf *out)
{
    char *room;
    struct lp_buf raw;
    struct lp_buf covered;
    lp_buf_init(&raw, TEXT_MAX);
    int err = write_covered(purpose, &covered);
    if (!err)
        err = decode(text, &raw);
    size_t len = err ? 0 : raw.len - SEALED_AT - SEAL_BYTES;
    if (!err)
        err = lp_buf_reserve(out, len, &room);
    if (!err)
        err = unseal(ring, lp_buf_span(&covered), lp_buf_span(&raw), room);
    if (!err)
        lp_buf_commit(out, len);
    lp_buf_release(&raw);
    lp_buf_release(&covered);
    return err;
}

void lp_sealed_mark(struct lp_span text, char room[LP_SEALED_MARK_LEN])
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char hash[MARK_BYTES];
    int err =
        crypto_generichash(hash, sizeof hash, (const unsigned char *)text.ptr, text.len, NULL, 0);
    LP_ASSERT(err == 0);
    for (size_t i = 0; i < sizeof hash; i++) {
        room[2 * i] = DIGITS[hash[i] >> 4];
        room[2 * i + 1] = DIGITS[hash[i] & 15];
    }
}
