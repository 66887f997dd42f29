/* Objects of one size addressed by ids that can never mean a later object.
 *
 * An id is (generation << 32 | slot + 1); 0 is "none". Memory comes in chunks, so an object does
 * not move while it lives. lp_slab_get of an id whose object is gone returns NULL: that is how
 * "it may have died in between" is asked. */
#ifndef LP_BASE_SLAB_H
#define LP_BASE_SLAB_H

#include <stdint.h>

#include "base/assert.h"

typedef uint64_t lp_id;

struct lp_slab {
    char **chunks;
    uint32_t chunk_count;
    uint32_t object_bytes;
    uint32_t live_count;
    uint32_t live_max;
    uint32_t free_head; /* slot + 1 of the first free cell, 0 when none */
    uint32_t slot_count;
};

/* `object_bytes` per object, at most `live_max` of them alive at once. */
void lp_slab_init(struct lp_slab *slab, uint32_t object_bytes, uint32_t live_max);
void lp_slab_fini(struct lp_slab *slab);

/* A zeroed object; its id at *ret_id. NULL when the ceiling or the system says no. */
LP_MUST void *lp_slab_new(struct lp_slab *slab, lp_id *ret_id);

/* The object, or NULL when `id` is 0 or its object was freed. */
void *lp_slab_get(const struct lp_slab *slab, lp_id id);

/* `id` must be alive (asserted). */
void lp_slab_free(struct lp_slab *slab, lp_id id);

/* Iteration: the first live object with a slot >= *cursor, or NULL at the end; *cursor moves on. */
void *lp_slab_next(const struct lp_slab *slab, uint32_t *cursor, lp_id *ret_id);

static inline uint32_t lp_id_slot(lp_id id)
{
    return (uint32_t)id - 1;
}

#endif
