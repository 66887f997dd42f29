/* Seals any bytes as the content of a ticket, with a ring's own key: what nobody outside can do,
 * and the only way for a test or a fuzzer to reach the reader of the content. */
#ifndef LP_TEST_UNIT_FORGE_TICKET_H
#define LP_TEST_UNIT_FORGE_TICKET_H

#include <sodium.h>

#include "mcp/ticket.h"
#include "wire/base64url.h"

enum { FORGE_PLAIN_MAX = 1400 };

/* The length of the text in `room` (LP_TICKET_TEXT_MAX bytes); `plain` over FORGE_PLAIN_MAX is cut.
 */
static size_t forge_ticket(const struct lp_ring_key *key, const struct lp_ticket_scope *scope,
    const unsigned char nonce[LP_TICKET_NONCE_BYTES], struct lp_span plain, char *room)
{
    unsigned char covered[4 + 64] = {'l', 'p', '1', (unsigned char)scope->kind};
    unsigned char raw[LP_KEY_ID_BYTES + LP_TICKET_NONCE_BYTES + FORGE_PLAIN_MAX + 16];
    unsigned long long sealed_len = 0;
    size_t head = LP_KEY_ID_BYTES + LP_TICKET_NONCE_BYTES;
    if (plain.len > FORGE_PLAIN_MAX)
        plain.len = FORGE_PLAIN_MAX;
    if (scope->server.len)
        memcpy(covered + 4, scope->server.ptr, scope->server.len);
    memcpy(raw, key->id, LP_KEY_ID_BYTES);
    memcpy(raw + LP_KEY_ID_BYTES, nonce, LP_TICKET_NONCE_BYTES);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(raw + head, &sealed_len,
        (const unsigned char *)plain.ptr, plain.len, covered, 4 + scope->server.len, NULL, nonce,
        key->aead);
    memcpy(room, LP_TICKET_PREFIX, 4);
    return 4 + lp_base64url_encode(lp_span((const char *)raw, head + sealed_len), room + 4);
}

#endif
