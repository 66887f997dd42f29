/* A bump allocator with a ceiling: many small allocations, one reset. The first block is kept by
 * a reset, so a reused arena stops asking for memory. Memory is aligned to 16 bytes. */
#ifndef LP_BASE_ARENA_H
#define LP_BASE_ARENA_H

#include "base/assert.h"
#include "base/span.h"

struct lp_arena_block;

struct lp_arena {
    struct lp_arena_block *head;
    size_t used;
    size_t max;
};

void lp_arena_init(struct lp_arena *arena, size_t max);

/* Frees all memory; the arena may be used again. Harmless when done twice. */
void lp_arena_fini(struct lp_arena *arena);

/* Makes every allocation invalid and keeps one block for the next user. */
void lp_arena_reset(struct lp_arena *arena);

/* `n` bytes of unset memory, or NULL when the ceiling or the system says no. */
LP_MUST void *lp_arena_alloc(struct lp_arena *arena, size_t n);

/* A copy of `bytes` in the arena. LP_ENOMEM. */
LP_MUST int lp_arena_dup(struct lp_arena *arena, struct lp_span bytes, struct lp_span *ret_copy);

#endif
