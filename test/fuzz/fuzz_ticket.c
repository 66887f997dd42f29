/* Fuzzes tickets (mcp/ticket.h). The first byte chooses what the rest is: the text that a client
 * sends, a content that only a holder of the key could seal, or values to be sealed.
 *
 * Laws: whatever opens, sealed again under its nonce, is the same text; what is sealed opens to the
 * same values. */
#include "../unit/forge_ticket.h"

#define KEYS "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WALL_MS = 1000000, AGE_MAX_MS = 500000 };

static const struct lp_ticket_scope SCOPE = {LP_TICKET_HTTP, {"tools", 5}};
static const unsigned char NONCE[LP_TICKET_NONCE_BYTES] = {1, 2, 3};

static void open_and_seal_again(const struct lp_keyring *ring, struct lp_span text)
{
    char room[LP_TICKET_TEXT_MAX];
    char again[LP_TICKET_TEXT_MAX];
    char raw[LP_TICKET_TEXT_MAX];
    struct lp_ticket t;
    size_t len = 0;
    if (lp_ticket_open(
            &(struct lp_ticket_context){ring, &SCOPE, WALL_MS, AGE_MAX_MS}, text, room, &t))
        return;
    LP_ASSERT(t.upstream_id.len > 0 && t.upstream_id.len <= LP_TICKET_UPSTREAM_ID_MAX);
    LP_ASSERT(t.cookies.len <= LP_TICKET_COOKIES_MAX);
    int err = lp_base64url_decode(lp_span_from(text, 4), raw, sizeof raw, &len);
    LP_ASSERT(err == LP_OK);
    const unsigned char *nonce = (const unsigned char *)raw + LP_KEY_ID_BYTES;
    err = lp_ticket_seal(
        &(struct lp_ticket_context){.ring = ring, .scope = &SCOPE}, &t, nonce, again, &len);
    LP_ASSERT(err == LP_OK || text.len > LP_TICKET_WITH_COOKIES_MAX);
    LP_ASSERT(err || lp_span_eq(text, lp_span(again, len)));
}

static struct lp_span take(struct lp_span *in, size_t n)
{
    struct lp_span part = lp_span(in->ptr, n < in->len ? n : in->len);
    *in = lp_span_from(*in, part.len);
    return part;
}

/* 8 bytes of time, a byte of lengths, cookies, and the upstream id. */
static void seal_and_open(const struct lp_keyring *ring, struct lp_span in)
{
    char text[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = {0};
    struct lp_ticket out;
    size_t len = 0;
    struct lp_span issued = take(&in, sizeof t.issued_ms);
    struct lp_span lengths = take(&in, 1);
    if (!lengths.len)
        return;
    memcpy(&t.issued_ms, issued.ptr, sizeof t.issued_ms);
    t.has_principal = lengths.ptr[0] & 1;
    t.cookies = take(&in, 4 * (size_t)(unsigned char)lengths.ptr[0]);
    t.upstream_id = in;
    if (lp_ticket_seal(
            &(struct lp_ticket_context){.ring = ring, .scope = &SCOPE}, &t, NONCE, text, &len))
        return;
    int err = lp_ticket_open(&(struct lp_ticket_context){ring, &SCOPE, t.issued_ms, AGE_MAX_MS},
        lp_span(text, len), room, &out);
    LP_ASSERT(err == LP_OK);
    LP_ASSERT(lp_span_eq(out.cookies, t.cookies) && lp_span_eq(out.upstream_id, t.upstream_id));
    LP_ASSERT(out.has_principal == t.has_principal && out.issued_ms == t.issued_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_keyring ring;
    uint32_t line;
    char text[LP_TICKET_TEXT_MAX];
    if (size == 0)
        return 0;
    int err = lp_keyring_parse(LP_SPAN(KEYS), &ring, &line);
    LP_ASSERT(err == LP_OK);
    struct lp_span rest = lp_span((const char *)data + 1, size - 1);
    if (data[0] % 3 == 0)
        open_and_seal_again(&ring, rest);
    else if (data[0] % 3 == 1)
        open_and_seal_again(
            &ring, lp_span(text, forge_ticket(&ring.keys[0], &SCOPE, NONCE, rest, text)));
    else
        seal_and_open(&ring, rest);
    return 0;
}
