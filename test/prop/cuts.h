/* Ways to cut an input into pieces, and the small seeded generator behind them. A law that holds
 * for one piece must hold for every other way. */
#ifndef LP_TEST_CUTS_H
#define LP_TEST_CUTS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/span.h"

enum cut_kind { CUT_NONE, CUT_AT, CUT_BYTES, CUT_RANDOM };

struct cuts {
    enum cut_kind kind;
    size_t at;     /* CUT_AT: length of the first piece */
    uint64_t seed; /* CUT_RANDOM; moves on with each piece; never 0 */
};

/* xorshift64*: a number below `limit` (> 0). */
static inline size_t draw(uint64_t *seed, size_t limit)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (size_t)((*seed * UINT64_C(2685821657736338717)) >> 33) % limit;
}

/* The next piece of `rest`, in a block of exactly its size, so that a sanitizer sees a read past
 * its end and a use after it is given back. The caller frees ptr. Random pieces may be empty. */
static inline struct lp_span cut_piece(struct cuts *cuts, struct lp_span rest)
{
    size_t n = rest.len;
    if (cuts->kind == CUT_AT && cuts->at) {
        n = cuts->at < n ? cuts->at : n;
        cuts->at = 0;
    } else if (cuts->kind == CUT_BYTES && n) {
        n = 1;
    } else if (cuts->kind == CUT_RANDOM) {
        size_t limit = 1 + draw(&cuts->seed, 24);
        size_t wish = draw(&cuts->seed, limit);
        n = wish < n ? wish : n;
    }
    char *block = malloc(n ? n : 1);
    LP_ASSERT(block);
    if (n)
        memcpy(block, rest.ptr, n);
    return lp_span(block, n);
}

#endif
