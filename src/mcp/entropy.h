/* Random bytes inside the pure rooms: 32 bytes come in at start, the rest is expanded from them
 * (ChaCha20 keystream; the seed is replaced by its own output, so old output cannot be found from
 * the state). In a simulator the seed makes a run repeatable. */
#ifndef LP_MCP_ENTROPY_H
#define LP_MCP_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

enum { LP_ENTROPY_SEED_BYTES = 32, LP_ENTROPY_POOL_BYTES = 480 };

struct lp_entropy {
    unsigned char seed[LP_ENTROPY_SEED_BYTES];
    unsigned char pool[LP_ENTROPY_POOL_BYTES];
    size_t left;
};

void lp_entropy_init(struct lp_entropy *e, const unsigned char seed[LP_ENTROPY_SEED_BYTES]);
void lp_entropy_bytes(struct lp_entropy *e, unsigned char *room, size_t n);
/* A number in [0, below), without bias that matters; below > 0. */
uint32_t lp_entropy_below(struct lp_entropy *e, uint32_t below);

#endif
