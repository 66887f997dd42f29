/* The 128-bit key map (base/map.h). At most three quarters full. */
#include "base/map.h"

#include <string.h>

#include "base/error.h"

enum { CAP_FIRST = 64 };

struct lp_map_cell {
    struct lp_key key;
    uint64_t value; /* 0: the cell is empty */
};

void lp_map_init(struct lp_map *map)
{
    *map = (struct lp_map){0};
}

static void give_back(const struct lp_map *map)
{
    (void)lp_resize(&map->alloc, map->cells, map->cap * sizeof *map->cells, 0);
}

void lp_map_fini(struct lp_map *map)
{
    give_back(map);
    lp_map_init(map);
}

/* The cell that holds `key`, or the empty one where it belongs. */
static uint32_t seek(const struct lp_map *map, struct lp_key key)
{
    uint32_t i = (uint32_t)key.lo & (map->cap - 1);
    while (map->cells[i].value && !lp_key_eq(map->cells[i].key, key))
        i = (i + 1) & (map->cap - 1);
    return i;
}

static int grow(struct lp_map *map)
{
    struct lp_map bigger = {
        .alloc = map->alloc, .cap = map->cap ? map->cap * 2 : CAP_FIRST, .count = map->count};
    size_t bytes = bigger.cap * sizeof *bigger.cells;
    bigger.cells = lp_resize(&map->alloc, NULL, 0, bytes);
    if (!bigger.cells)
        return LP_ENOMEM;
    memset(bigger.cells, 0, bytes);
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->cells[i].value)
            bigger.cells[seek(&bigger, map->cells[i].key)] = map->cells[i];
    give_back(map);
    *map = bigger;
    return LP_OK;
}

int lp_map_put(struct lp_map *map, struct lp_key key, uint64_t value)
{
    LP_ASSERT(value);
    if ((map->count + 1) * 4 > map->cap * 3) {
        int err = grow(map);
        if (err)
            return err;
    }
    uint32_t i = seek(map, key);
    if (!map->cells[i].value)
        map->count++;
    map->cells[i] = (struct lp_map_cell){key, value};
    return LP_OK;
}

uint64_t lp_map_get(const struct lp_map *map, struct lp_key key)
{
    return map->cap ? map->cells[seek(map, key)].value : 0;
}

/* Whether the entry at `at` may be moved back into the hole: its own place is not after it. */
static bool may_fill(const struct lp_map *map, uint32_t hole, uint32_t at)
{
    uint32_t home = (uint32_t)map->cells[at].key.lo & (map->cap - 1);
    return ((at - home) & (map->cap - 1)) >= ((at - hole) & (map->cap - 1));
}

uint64_t lp_map_remove(struct lp_map *map, struct lp_key key)
{
    if (!map->cap)
        return 0;
    uint32_t hole = seek(map, key);
    uint64_t value = map->cells[hole].value;
    if (!value)
        return 0;
    map->count--;
    for (uint32_t at = (hole + 1) & (map->cap - 1); map->cells[at].value;
         at = (at + 1) & (map->cap - 1)) {
        if (may_fill(map, hole, at)) {
            map->cells[hole] = map->cells[at];
            hole = at;
        }
    }
    map->cells[hole].value = 0;
    return value;
}
