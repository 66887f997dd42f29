/* Fuzzes hop marks (mcp/hop.h). The first byte chooses what the rest is: the text of a mark as
 * anybody may send it; or method, path, session, one a line, to be signed and judged, with the
 * first byte's upper bits as what is wrong with it.
 *
 * Laws: nothing that was not signed is believed; what was signed is good once, and for its request
 * only. */
#include "mcp/hop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

enum { NOW_MS = 1000000 };

static void judge_foreign(struct lp_hop_cache *cache, const struct lp_keyring *ring,
    const struct lp_hop_claim *claim, struct lp_span text)
{
    enum lp_hop_state got = lp_hop_judge(cache, ring, claim, text, NOW_MS);
    LP_ASSERT(got == LP_HOP_FORGED && cache->seen.count == 0);
}

/* One mark more than are kept: the oldest is forgotten, the new one is good once all the same. */
static void judge_in_a_full_cache(
    struct lp_hop_cache *cache, const struct lp_keyring *ring, const struct lp_hop_claim *claim)
{
    static const unsigned char NONCE[LP_HOP_NONCE_BYTES] = {8};
    char room[LP_HOP_TEXT_MAX];
    struct lp_span mark = lp_hop_sign(ring, claim, NOW_MS, NONCE, room);
    cache->next = LP_HOP_CACHE_MAX;
    LP_ASSERT(lp_hop_judge(cache, ring, claim, mark, NOW_MS) == LP_HOP_GOOD);
    LP_ASSERT(cache->seen.count == 1 && cache->floor_ms == NOW_MS - LP_HOP_FRESH_MS);
    LP_ASSERT(lp_hop_judge(cache, ring, claim, mark, NOW_MS) == LP_HOP_REPLAYED);
}

static void judge_signed(struct lp_hop_cache *cache, const struct lp_keyring *ring,
    const struct lp_hop_claim *claim, unsigned fault)
{
    static const unsigned char NONCE[LP_HOP_NONCE_BYTES] = {7};
    char room[LP_HOP_TEXT_MAX];
    struct lp_hop_claim other = *claim;
    struct lp_span mark = lp_hop_sign(ring, claim, NOW_MS, NONCE, room);
    LP_ASSERT(mark.len <= LP_HOP_TEXT_MAX);
    other.target = fault & 1 ? LP_SPAN("m3") : claim->target;
    other.session = fault & 2 ? LP_SPAN("another") : claim->session;
    bool is_other = !lp_span_eq(other.session, claim->session);
    uint64_t wall_ms = fault & 4 ? 2 * NOW_MS : NOW_MS;
    enum lp_hop_state want = is_other ? LP_HOP_FORGED
        : fault & 1                   ? LP_HOP_OTHER_TARGET
        : fault & 4                   ? LP_HOP_STALE
                                      : LP_HOP_GOOD;
    LP_ASSERT(lp_hop_judge(cache, ring, &other, mark, wall_ms) == want);
    want = want == LP_HOP_GOOD ? LP_HOP_REPLAYED : want;
    LP_ASSERT(lp_hop_judge(cache, ring, &other, mark, wall_ms) == want);
    if (want == LP_HOP_REPLAYED && fault & 8)
        judge_in_a_full_cache(cache, ring, claim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_keyring ring;
    struct lp_hop_cache cache;
    uint32_t line;
    if (size == 0)
        return 0;
    int err = lp_keyring_parse(LP_SPAN(KEYS), &ring, &line);
    LP_ASSERT(!err);
    err = lp_hop_cache_init(&cache, NULL);
    LP_ASSERT(!err);
    struct lp_span rest = lp_span((const char *)data + 1, size - 1);
    struct lp_hop_claim claim = {.target = LP_SPAN("m2")};
    if (data[0] & 1) {
        claim.method = lp_span_split(rest, '\n', &rest);
        claim.path = lp_span_split(rest, '\n', &rest);
        claim.session = rest;
        judge_signed(&cache, &ring, &claim, data[0] >> 1);
    } else {
        judge_foreign(&cache, &ring, &claim, rest);
    }
    lp_hop_cache_fini(&cache);
    return 0;
}
