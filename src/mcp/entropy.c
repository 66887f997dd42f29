/* Random bytes from a seed (mcp/entropy.h): the ChaCha20 keystream of the seed, 512 bytes a turn.
 *
 * The first 32 bytes of a turn replace the seed and what was handed out is wiped, so the state
 * never tells what it gave before. Where the first seed comes from is the shell's business. */
#include "mcp/entropy.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

static void refill(struct lp_entropy *e)
{
    /* The seed is used for one keystream only, so a constant nonce repeats nothing. */
    static const unsigned char NONCE[crypto_stream_chacha20_NONCEBYTES];
    unsigned char stream[LP_ENTROPY_SEED_BYTES + LP_ENTROPY_POOL_BYTES];
    int err = crypto_stream_chacha20(stream, sizeof stream, NONCE, e->seed);
    LP_ASSERT(err == 0);
    memcpy(e->seed, stream, sizeof e->seed);
    memcpy(e->pool, stream + sizeof e->seed, sizeof e->pool);
    e->left = sizeof e->pool;
    sodium_memzero(stream, sizeof stream);
}

void lp_entropy_init(struct lp_entropy *e, const unsigned char seed[LP_ENTROPY_SEED_BYTES])
{
    memcpy(e->seed, seed, sizeof e->seed);
    memset(e->pool, 0, sizeof e->pool);
    e->left = 0;
}

void lp_entropy_bytes(struct lp_entropy *e, unsigned char *room, size_t n)
{
    LP_ASSERT(e->left <= sizeof e->pool);
    while (n) {
        if (e->left == 0)
            refill(e);
        size_t take = n < e->left ? n : e->left;
        unsigned char *from = e->pool + sizeof e->pool - e->left;
        memcpy(room, from, take);
        sodium_memzero(from, take);
        e->left -= take;
        room += take;
        n -= take;
    }
}

uint32_t lp_entropy_below(struct lp_entropy *e, uint32_t below)
{
    LP_ASSERT(below > 0);
    uint64_t wide = 0;
    lp_entropy_bytes(e, (unsigned char *)&wide, sizeof wide);
    /* 64 bits for at most 32: the bias is under 2^-32. */
    return (uint32_t)(wide % below);
}
