/* The bump allocator (base/arena.h): a list of blocks, newest first; only the newest is cut from.
 */
#include "base/arena.h"

#include <stdlib.h>

#include "base/error.h"

/* The head of a request, with what is written about it, fits; with the header it is 1 KiB. */
enum { BLOCK_MIN = 992, ALIGN = 16 };

struct lp_arena_block {
    struct lp_arena_block *next;
    size_t used;
    size_t cap;
    size_t pad;
    char bytes[];
};

void lp_arena_init(struct lp_arena *arena, size_t max)
{
    *arena = (struct lp_arena){.max = max};
}

void lp_arena_fini(struct lp_arena *arena)
{
    while (arena->head) {
        struct lp_arena_block *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    arena->used = 0;
}

void lp_arena_reset(struct lp_arena *arena)
{
    while (arena->head && arena->head->next) {
        struct lp_arena_block *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    if (arena->head)
        arena->head->used = 0;
    arena->used = 0;
}

static int push_block(struct lp_arena *arena, size_t n)
{
    size_t cap = n > BLOCK_MIN ? n : BLOCK_MIN;
    struct lp_arena_block *block = malloc(sizeof *block + cap);
    if (!block)
        return LP_ENOMEM;
    *block = (struct lp_arena_block){.next = arena->head, .cap = cap};
    arena->head = block;
    return LP_OK;
}

void *lp_arena_alloc(struct lp_arena *arena, size_t n)
{
    if (n > arena->max - arena->used)
        return NULL;
    size_t need = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (!arena->head || arena->head->cap - arena->head->used < need)
        if (push_block(arena, need))
            return NULL;
    void *ptr = arena->head->bytes + arena->head->used;
    arena->head->used += need;
    arena->used += n;
    return ptr;
}

int lp_arena_dup(struct lp_arena *arena, struct lp_span bytes, struct lp_span *ret_copy)
{
    char *copy = lp_arena_alloc(arena, bytes.len);
    if (!copy)
        return LP_ENOMEM;
    if (bytes.len)
        memcpy(copy, bytes.ptr, bytes.len);
    *ret_copy = lp_span(copy, bytes.len);
    return LP_OK;
}
