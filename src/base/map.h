/* A hash map from a 128-bit key to a 64-bit value. Keys are expected to be random already (they
 * come from nonces and keyed hashes), so the key is its own hash. Open addressing, linear probing,
 * deletion by shifting back: no tombstones, nothing grows with use. */
#ifndef LP_BASE_MAP_H
#define LP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"

struct lp_key {
    uint64_t hi;
    uint64_t lo;
};

struct lp_map_cell;

struct lp_map {
    struct lp_alloc alloc; /* the C library's, unless set before the first put */
    struct lp_map_cell *cells;
    uint32_t cap; /* a power of two, or 0 */
    uint32_t count;
};

void lp_map_init(struct lp_map *map);
void lp_map_fini(struct lp_map *map);

/* Adds or replaces. `value` must not be 0 (asserted): 0 is "none". LP_ENOMEM. */
LP_MUST int lp_map_put(struct lp_map *map, struct lp_key key, uint64_t value);

/* The value, or 0. */
uint64_t lp_map_get(const struct lp_map *map, struct lp_key key);

/* The value that was there, or 0. */
uint64_t lp_map_remove(struct lp_map *map, struct lp_key key);

static inline bool lp_key_eq(struct lp_key a, struct lp_key b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

#endif
