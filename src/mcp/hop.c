/* Hop marks (mcp/hop.h): writing one, and what one that came is worth.
 *
 * The hash is looked at first: what nobody with a key wrote is forged whatever it says, and is told
 * apart from a genuine mark that comes late, twice or to the wrong place. What follows for the
 * request is decided in gate. */
#include "mcp/hop.h"

#include <sodium.h>

#include "base/be64.h"
#include "wire/base64url.h"

enum {
    TIME_AT = LP_KEY_ID_BYTES,
    NONCE_AT = TIME_AT + 8,
    HASH_AT = NONCE_AT + LP_HOP_NONCE_BYTES,
    HASH_BYTES = 32,
    RAW_BYTES = HASH_AT + HASH_BYTES,
    RAW_TEXT_LEN = RAW_BYTES / 3 * 4,
};
_Static_assert(RAW_BYTES % 3 == 0 && RAW_TEXT_LEN == 80, "the header's contract");

static const struct lp_span PREFIX = {"h1.", 3};

/* --- the hash --- */

static void add(crypto_generichash_state *hash, struct lp_span part)
{
    unsigned char len[8];
    lp_be64_put(len, part.len); /* so that no byte can move from one part to the next */
    (void)crypto_generichash_update(hash, len, sizeof len);
    (void)crypto_generichash_update(hash, (const unsigned char *)part.ptr, part.len);
}

/* Over the claim and what stands in front of the hash in `raw`. */
static void hash_claim(const struct lp_ring_key *key, const struct lp_hop_claim *claim,
    const unsigned char raw[RAW_BYTES], unsigned char ret_hash[HASH_BYTES])
{
    crypto_generichash_state hash;
    (void)crypto_generichash_init(&hash, key->hop, sizeof key->hop, HASH_BYTES);
    add(&hash, LP_SPAN("limpet hop 1"));
    add(&hash, lp_span((const char *)raw, HASH_AT));
    add(&hash, claim->method);
    add(&hash, claim->path);
    add(&hash, claim->session);
    add(&hash, claim->target);
    (void)crypto_generichash_final(&hash, ret_hash, HASH_BYTES);
}

struct lp_span lp_hop_sign(const struct lp_keyring *ring, const struct lp_hop_claim *claim,
    uint64_t wall_ms, const unsigned char nonce[LP_HOP_NONCE_BYTES], char room[LP_HOP_TEXT_MAX])
{
    unsigned char raw[RAW_BYTES];
    LP_ASSERT(ring->count > 0 && lp_owner_is_id(claim->target));
    memcpy(raw, ring->keys[0].id, LP_KEY_ID_BYTES);
    lp_be64_put(raw + TIME_AT, wall_ms);
    memcpy(raw + NONCE_AT, nonce, LP_HOP_NONCE_BYTES);
    hash_claim(&ring->keys[0], claim, raw, raw + HASH_AT);
    char *at = room;
    memcpy(at, PREFIX.ptr, PREFIX.len);
    at += PREFIX.len;
    memcpy(at, claim->target.ptr, claim->target.len);
    at += claim->target.len;
    *at++ = '.';
    at += lp_base64url_encode(lp_span((const char *)raw, sizeof raw), at);
    return lp_span(room, (size_t)(at - room));
}

/* --- judging --- */

static bool read_mark(struct lp_span text, struct lp_span *ret_target, unsigned char raw[RAW_BYTES])
{
    size_t len = 0;
    struct lp_span rest;
    if (!lp_span_starts(text, PREFIX))
        return false;
    *ret_target = lp_span_split(lp_span_from(text, PREFIX.len), '.', &rest);
    return lp_owner_is_id(*ret_target) &&
        !lp_base64url_decode(rest, (char *)raw, RAW_BYTES, &len) && len == RAW_BYTES;
}

struct lp_span lp_hop_target(struct lp_span text)
{
    unsigned char raw[RAW_BYTES];
    struct lp_span target;
    return read_mark(text, &target, raw) ? target : lp_span(NULL, 0);
}

/* Tries every key with the id that the mark names: ids are 4 bytes, two keys may share one. */
static bool is_genuine(const struct lp_keyring *ring, const struct lp_hop_claim *claim,
    const unsigned char raw[RAW_BYTES])
{
    unsigned char hash[HASH_BYTES];
    for (uint32_t i = 0; i < ring->count; i++) {
        if (memcmp(ring->keys[i].id, raw, LP_KEY_ID_BYTES) != 0)
            continue;
        hash_claim(&ring->keys[i], claim, raw, hash);
        if (sodium_memcmp(hash, raw + HASH_AT, HASH_BYTES) == 0)
            return true;
    }
    return false;
}

/* Forgets the oldest where there is no more room. From then on nothing as old as that is believed;
 * but who is at most this fresh is, or a clock that goes ahead could lock all others out. */
static void forget(struct lp_hop_cache *cache, struct lp_hop_cell *cell, uint64_t wall_ms)
{
    uint64_t limit_ms = wall_ms > LP_HOP_FRESH_MS ? wall_ms - LP_HOP_FRESH_MS : 0;
    uint64_t floor_ms = cell->time_ms < limit_ms ? cell->time_ms : limit_ms;
    if (floor_ms > cache->floor_ms)
        cache->floor_ms = floor_ms;
    lp_map_remove(&cache->seen, cell->nonce);
    *cell = (struct lp_hop_cell){0};
}

static enum lp_hop_state remember(
    struct lp_hop_cache *cache, const struct lp_hop_cell *mark, uint64_t wall_ms)
{
    if (lp_map_get(&cache->seen, mark->nonce))
        return LP_HOP_REPLAYED;
    struct lp_hop_cell *cell = &cache->ring[cache->next % LP_HOP_CACHE_MAX];
    if (cell->time_ms)
        forget(cache, cell, wall_ms);
    if (lp_map_put(&cache->seen, mark->nonce, 1))
        return LP_HOP_NO_MEMORY;
    *cell = *mark;
    cache->next++;
    return LP_HOP_GOOD;
}

enum lp_hop_state lp_hop_judge(struct lp_hop_cache *cache, const struct lp_keyring *ring,
    const struct lp_hop_claim *claim, struct lp_span text, uint64_t wall_ms)
{
    unsigned char raw[RAW_BYTES];
    struct lp_hop_claim stated = *claim;
    if (!read_mark(text, &stated.target, raw) || !is_genuine(ring, &stated, raw))
        return LP_HOP_FORGED;
    if (!lp_span_eq(stated.target, claim->target))
        return LP_HOP_OTHER_TARGET;
    const unsigned char *nonce = raw + NONCE_AT;
    struct lp_hop_cell mark = {.nonce = {lp_be64_get(nonce), lp_be64_get(nonce + 8)},
        .time_ms = lp_be64_get(raw + TIME_AT)};
    bool is_old = mark.time_ms <= cache->floor_ms ||
        (wall_ms > mark.time_ms && wall_ms - mark.time_ms > LP_HOP_AGE_MAX_MS);
    bool is_ahead = mark.time_ms > wall_ms && mark.time_ms - wall_ms > LP_HOP_AHEAD_MAX_MS;
    return is_old || is_ahead ? LP_HOP_STALE : remember(cache, &mark, wall_ms);
}

/* --- the cache --- */

enum { RING_BYTES = LP_HOP_CACHE_MAX * sizeof(struct lp_hop_cell) };

int lp_hop_cache_init(struct lp_hop_cache *cache, const struct lp_alloc *alloc)
{
    *cache = (struct lp_hop_cache){0};
    lp_map_init(&cache->seen);
    if (alloc)
        cache->seen.alloc = *alloc;
    cache->ring = lp_resize(alloc, NULL, 0, RING_BYTES);
    if (!cache->ring)
        return LP_ENOMEM;
    memset(cache->ring, 0, RING_BYTES);
    return LP_OK;
}

void lp_hop_cache_fini(struct lp_hop_cache *cache)
{
    struct lp_alloc alloc = cache->seen.alloc;
    (void)lp_resize(&alloc, cache->ring, cache->ring ? RING_BYTES : 0, 0);
    cache->ring = NULL;
    lp_map_fini(&cache->seen);
}
