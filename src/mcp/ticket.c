/* Sealing and opening tickets (mcp/ticket.h, design 5): the one place where a session id that a
 * client holds is made or believed.
 *
 *   raw:   key id 4 | nonce 24 | sealed TLVs | tag 16        text: "lp1_" base64url(raw)
 *
 * There is exactly one text for each content and nonce: tags ascend, optional ones are left out
 * when empty, base64url is canonical. Whether the replica is still in the fleet, and what a refusal
 * is answered with, is decided in gate. */
#include "mcp/ticket.h"

#include <sodium.h>

#include "base/be64.h"
#include "wire/base64url.h"

enum tlv_tag { TAG_ISSUED = 1, TAG_REPLICA, TAG_PRINCIPAL, TAG_COOKIES, TAG_UPSTREAM_ID };

enum {
    NONCE_AT = LP_KEY_ID_BYTES,
    SEALED_AT = NONCE_AT + LP_TICKET_NONCE_BYTES,
    SEAL_BYTES = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    PREFIX_LEN = sizeof LP_TICKET_PREFIX - 1,
    TLV_HEAD = 3,
    PLAIN_MAX = 5 * TLV_HEAD + 8 + LP_REPLICA_HASH_BYTES + 8 + LP_TICKET_COOKIES_MAX +
        LP_TICKET_UPSTREAM_ID_MAX,
    RAW_MAX = (LP_TICKET_TEXT_MAX - PREFIX_LEN) / 4 * 3,
    SERVER_NAME_MAX = 64,
    SCOPE_MAX = 4 + SERVER_NAME_MAX,
};
_Static_assert(SEALED_AT + PLAIN_MAX + SEAL_BYTES <= RAW_MAX, "LP_TICKET_TEXT_MAX always suffices");
_Static_assert(LP_TICKET_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");

/* --- what the seal covers beside the content ------------------------------------------------- */

static size_t write_scope(const struct lp_ticket_scope *scope, unsigned char room[SCOPE_MAX])
{
    LP_ASSERT(scope->server.len <= SERVER_NAME_MAX);
    memcpy(room, "lp1", 3);
    room[3] = (unsigned char)scope->kind;
    if (scope->server.len)
        memcpy(room + 4, scope->server.ptr, scope->server.len);
    return 4 + scope->server.len;
}

/* --- the content as TLVs --------------------------------------------------------------------- */

static size_t write_tlv(unsigned char *room, enum tlv_tag tag, const void *bytes, size_t n)
{
    room[0] = (unsigned char)tag;
    room[1] = (unsigned char)(n >> 8);
    room[2] = (unsigned char)n;
    memcpy(room + TLV_HEAD, bytes, n);
    return TLV_HEAD + n;
}

static size_t write_plain(const struct lp_ticket *ticket, unsigned char room[PLAIN_MAX])
{
    unsigned char issued[8];
    lp_be64_put(issued, ticket->issued_ms);
    size_t n = write_tlv(room, TAG_ISSUED, issued, sizeof issued);
    n += write_tlv(room + n, TAG_REPLICA, ticket->replica, sizeof ticket->replica);
    if (ticket->has_principal)
        n += write_tlv(room + n, TAG_PRINCIPAL, ticket->principal, sizeof ticket->principal);
    if (ticket->cookies.len)
        n += write_tlv(room + n, TAG_COOKIES, ticket->cookies.ptr, ticket->cookies.len);
    n += write_tlv(room + n, TAG_UPSTREAM_ID, ticket->upstream_id.ptr, ticket->upstream_id.len);
    return n;
}

/* One value into its member; false when the tag is unknown or its length cannot be. */
static bool take_value(enum tlv_tag tag, struct lp_span value, struct lp_ticket *t)
{
    switch (tag) {
    case TAG_ISSUED:
        if (value.len != 8)
            return false;
        t->issued_ms = lp_be64_get((const unsigned char *)value.ptr);
        return true;
    case TAG_REPLICA:
        if (value.len != sizeof t->replica)
            return false;
        memcpy(t->replica, value.ptr, sizeof t->replica);
        return true;
    case TAG_PRINCIPAL:
        if (value.len != sizeof t->principal)
            return false;
        t->has_principal = true;
        memcpy(t->principal, value.ptr, sizeof t->principal);
        return true;
    case TAG_COOKIES:
        t->cookies = value;
        return value.len > 0 && value.len <= LP_TICKET_COOKIES_MAX;
    case TAG_UPSTREAM_ID:
        t->upstream_id = value;
        return value.len > 0 && value.len <= LP_TICKET_UPSTREAM_ID_MAX;
    }
    return false;
}

/* Tags ascend, so none comes twice; issued, replica and upstream id must all be there. */
static bool read_plain(struct lp_span plain, struct lp_ticket *t)
{
    unsigned seen = 0;
    unsigned last = 0;
    while (plain.len >= TLV_HEAD) {
        const unsigned char *head = (const unsigned char *)plain.ptr;
        size_t n = (size_t)head[1] << 8 | head[2];
        if (head[0] <= last || n > plain.len - TLV_HEAD)
            return false;
        if (!take_value((enum tlv_tag)head[0], lp_span(plain.ptr + TLV_HEAD, n), t))
            return false;
        last = head[0];
        seen |= 1u << last;
        plain = lp_span_from(plain, TLV_HEAD + n);
    }
    unsigned needed = 1u << TAG_ISSUED | 1u << TAG_REPLICA | 1u << TAG_UPSTREAM_ID;
    return plain.len == 0 && (seen & needed) == needed;
}

/* --- seal ------------------------------------------------------------------------------------ */

static int check_sizes(const struct lp_ticket *ticket)
{
    size_t id_len = ticket->upstream_id.len;
    if (id_len > LP_TICKET_UPSTREAM_ID_MAX)
        return LP_ETOO_LONG;
    if (id_len == 0 || ticket->cookies.len > LP_TICKET_COOKIES_MAX)
        return LP_ERANGE;
    return LP_OK;
}

int lp_ticket_seal(const struct lp_ticket_context *context, const struct lp_ticket *ticket,
    const unsigned char nonce[LP_TICKET_NONCE_BYTES], char *room, size_t *ret_len)
{
    const struct lp_keyring *ring = context->ring;
    const struct lp_ticket_scope *scope = context->scope;
    LP_ASSERT(ring->count > 0);
    int err = check_sizes(ticket);
    if (err)
        return err;
    unsigned char plain[PLAIN_MAX];
    unsigned char raw[RAW_MAX];
    unsigned char covered[SCOPE_MAX];
    size_t plain_len = write_plain(ticket, plain);
    size_t raw_len = SEALED_AT + plain_len + SEAL_BYTES;
    size_t text_len = PREFIX_LEN + lp_base64url_len(raw_len);
    if (ticket->cookies.len && text_len > LP_TICKET_WITH_COOKIES_MAX)
        return LP_ERANGE;
    memcpy(raw, ring->keys[0].id, LP_KEY_ID_BYTES);
    memcpy(raw + NONCE_AT, nonce, LP_TICKET_NONCE_BYTES);
    size_t covered_len = write_scope(scope, covered);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(raw + SEALED_AT, NULL, plain, plain_len,
        covered, covered_len, NULL, nonce, ring->keys[0].aead);
    memcpy(room, LP_TICKET_PREFIX, PREFIX_LEN);
    lp_base64url_encode(lp_span((const char *)raw, raw_len), room + PREFIX_LEN);
    *ret_len = text_len;
    return LP_OK;
}

/* --- open ------------------------------------------------------------------------------------ */

static int decode_text(struct lp_span text, unsigned char raw[RAW_MAX], size_t *ret_len)
{
    if (text.len > LP_TICKET_TEXT_MAX || !lp_span_starts(text, LP_SPAN(LP_TICKET_PREFIX)))
        return LP_ESYNTAX;
    size_t len = 0;
    if (lp_base64url_decode(lp_span_from(text, PREFIX_LEN), (char *)raw, RAW_MAX, &len))
        return LP_ESYNTAX;
    if (len < SEALED_AT + SEAL_BYTES)
        return LP_ESYNTAX;
    *ret_len = len;
    return LP_OK;
}

/* Tries every key with the id that the ticket names: ids are 4 bytes, two keys may share one. */
static int unseal(const struct lp_keyring *ring, const struct lp_ticket_scope *scope,
    struct lp_span raw, char *room, struct lp_ticket *t)
{
    const unsigned char *bytes = (const unsigned char *)raw.ptr;
    unsigned char covered[SCOPE_MAX];
    size_t covered_len = write_scope(scope, covered);
    size_t sealed_len = raw.len - SEALED_AT;
    int err = LP_EUNKNOWN_KEY;
    for (uint32_t i = 0; i < ring->count; i++) {
        if (memcmp(ring->keys[i].id, bytes, LP_KEY_ID_BYTES) != 0)
            continue;
        err = LP_EFORGED;
        if (crypto_aead_xchacha20poly1305_ietf_decrypt((unsigned char *)room, NULL, NULL,
                bytes + SEALED_AT, sealed_len, covered, covered_len, bytes + NONCE_AT,
                ring->keys[i].aead))
            continue;
        t->ring_index = i;
        return read_plain(lp_span(room, sealed_len - SEAL_BYTES), t) ? LP_OK : LP_EFORGED;
    }
    return err;
}

int lp_ticket_open(
    const struct lp_ticket_context *context, struct lp_span text, char *room, struct lp_ticket *ret)
{
    uint64_t wall_ms = context->wall_ms;
    unsigned char raw[RAW_MAX];
    size_t raw_len = 0;
    struct lp_ticket t = {0};
    int err = decode_text(text, raw, &raw_len);
    if (!err)
        err = unseal(context->ring, context->scope, lp_span((const char *)raw, raw_len), room, &t);
    if (err)
        return err;
    if (wall_ms > t.issued_ms && wall_ms - t.issued_ms > context->age_max_ms)
        return LP_EEXPIRED;
    t.key = (struct lp_key){lp_be64_get(raw + NONCE_AT), lp_be64_get(raw + NONCE_AT + 8)};
    *ret = t;
    return LP_OK;
}
