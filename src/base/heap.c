/* The timer heap (base/heap.h). Each timer knows its place, so cancelling needs no search. */
#include "base/heap.h"

#include <stdlib.h>

#include "base/error.h"

void lp_heap_init(struct lp_heap *heap)
{
    *heap = (struct lp_heap){0};
}

void lp_heap_fini(struct lp_heap *heap)
{
    for (uint32_t i = 0; i < heap->count; i++)
        heap->items[i]->index = 0;
    free(heap->items);
    lp_heap_init(heap);
}

static void put(struct lp_heap *heap, uint32_t i, struct lp_timer *timer)
{
    heap->items[i] = timer;
    timer->index = i + 1;
}

static void sift_up(struct lp_heap *heap, uint32_t i)
{
    struct lp_timer *timer = heap->items[i];
    while (i && heap->items[(i - 1) / 2]->at_us > timer->at_us) {
        put(heap, i, heap->items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(heap, i, timer);
}

static void sift_down(struct lp_heap *heap, uint32_t i)
{
    struct lp_timer *timer = heap->items[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->items[child + 1]->at_us < heap->items[child]->at_us)
            child++;
        if (heap->items[child]->at_us >= timer->at_us)
            break;
        put(heap, i, heap->items[child]);
        i = child;
    }
    put(heap, i, timer);
}

static int make_room(struct lp_heap *heap)
{
    if (heap->count < heap->cap)
        return LP_OK;
    uint32_t cap = heap->cap ? heap->cap * 2 : 64;
    struct lp_timer **items = realloc(heap->items, cap * sizeof *items);
    if (!items)
        return LP_ENOMEM;
    heap->items = items;
    heap->cap = cap;
    return LP_OK;
}

int lp_heap_set(struct lp_heap *heap, struct lp_timer *timer, uint64_t at_us)
{
    if (!timer->index) {
        int err = make_room(heap);
        if (err)
            return err;
        put(heap, heap->count++, timer);
    }
    timer->at_us = at_us;
    sift_up(heap, timer->index - 1);
    sift_down(heap, timer->index - 1);
    return LP_OK;
}

void lp_heap_cancel(struct lp_heap *heap, struct lp_timer *timer)
{
    if (!timer->index)
        return;
    uint32_t i = timer->index - 1;
    LP_ASSERT(i < heap->count && heap->items[i] == timer);
    timer->index = 0;
    struct lp_timer *last = heap->items[--heap->count];
    if (last == timer)
        return;
    put(heap, i, last);
    sift_up(heap, i);
    sift_down(heap, last->index - 1);
}

struct lp_timer *lp_heap_due(struct lp_heap *heap, uint64_t now_us)
{
    if (!heap->count || heap->items[0]->at_us > now_us)
        return NULL;
    struct lp_timer *timer = heap->items[0];
    lp_heap_cancel(heap, timer);
    return timer;
}

uint64_t lp_heap_next_us(const struct lp_heap *heap)
{
    return heap->count ? heap->items[0]->at_us : UINT64_MAX;
}
