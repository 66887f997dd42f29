/* Slot + generation objects (base/slab.h).
 *
 * Each cell is a header (generation, next free) and the object. An odd generation means alive:
 * both birth and death add one, so a stale id never compares equal. */
#include "base/slab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SLOTS = 64, HEADER_BYTES = 16 };

struct cell {
    uint32_t generation;
    uint32_t next_free;
};

void lp_slab_init(struct lp_slab *slab, uint32_t object_bytes, uint32_t live_max)
{
    uint32_t rounded = (object_bytes + 15) / 16 * 16;
    *slab = (struct lp_slab){.object_bytes = rounded, .live_max = live_max};
}

void lp_slab_fini(struct lp_slab *slab)
{
    for (uint32_t i = 0; i < slab->chunk_count; i++)
        free(slab->chunks[i]);
    free(slab->chunks);
    slab->chunks = NULL;
    slab->chunk_count = slab->slot_count = slab->live_count = slab->free_head = 0;
}

static struct cell *cell_at(const struct lp_slab *slab, uint32_t slot)
{
    size_t stride = HEADER_BYTES + (size_t)slab->object_bytes;
    return (struct cell *)(void *)(slab->chunks[slot / CHUNK_SLOTS] + slot % CHUNK_SLOTS * stride);
}

static void *object_of(struct cell *cell)
{
    return (char *)cell + HEADER_BYTES;
}

static bool add_chunk(struct lp_slab *slab)
{
    size_t stride = HEADER_BYTES + (size_t)slab->object_bytes;
    char **chunks = realloc(slab->chunks, (slab->chunk_count + 1) * sizeof *chunks);
    if (!chunks)
        return false;
    slab->chunks = chunks;
    char *chunk = calloc(CHUNK_SLOTS, stride);
    if (!chunk)
        return false;
    slab->chunks[slab->chunk_count++] = chunk;
    return true;
}

void *lp_slab_new(struct lp_slab *slab, lp_id *ret_id)
{
    if (slab->live_count == slab->live_max)
        return NULL;
    uint32_t slot = slab->free_head - 1;
    if (slab->free_head == 0) {
        if (slab->slot_count == slab->chunk_count * CHUNK_SLOTS && !add_chunk(slab))
            return NULL;
        slot = slab->slot_count++;
    }
    struct cell *cell = cell_at(slab, slot);
    slab->free_head = cell->next_free;
    cell->next_free = 0;
    cell->generation++;
    slab->live_count++;
    memset(object_of(cell), 0, slab->object_bytes);
    *ret_id = (lp_id)cell->generation << 32 | (slot + 1);
    return object_of(cell);
}

static struct cell *live_cell(const struct lp_slab *slab, lp_id id)
{
    uint32_t slot = lp_id_slot(id);
    if ((uint32_t)id == 0 || slot >= slab->slot_count)
        return NULL;
    struct cell *cell = cell_at(slab, slot);
    return cell->generation == (uint32_t)(id >> 32) && (cell->generation & 1) ? cell : NULL;
}

void *lp_slab_get(const struct lp_slab *slab, lp_id id)
{
    struct cell *cell = live_cell(slab, id);
    return cell ? object_of(cell) : NULL;
}

void lp_slab_free(struct lp_slab *slab, lp_id id)
{
    struct cell *cell = live_cell(slab, id);
    LP_ASSERT(cell);
    cell->generation++;
    cell->next_free = slab->free_head;
    slab->free_head = lp_id_slot(id) + 1;
    slab->live_count--;
}

void *lp_slab_next(const struct lp_slab *slab, uint32_t *cursor, lp_id *ret_id)
{
    while (*cursor < slab->slot_count) {
        uint32_t slot = (*cursor)++;
        struct cell *cell = cell_at(slab, slot);
        if (cell->generation & 1) {
            *ret_id = (lp_id)cell->generation << 32 | (slot + 1);
            return object_of(cell);
        }
    }
    return NULL;
}
