/* Timers as a binary heap: the earliest first, any can be cancelled. Intrusive: the owner holds
 * the struct lp_timer, the heap only an array of pointers. No clock in here: time is a number. */
#ifndef LP_BASE_HEAP_H
#define LP_BASE_HEAP_H

#include <stdint.h>

#include "base/assert.h"

struct lp_timer {
    uint64_t at_us;
    uint32_t index; /* place in the heap + 1; 0 when not set */
    uint32_t kind;  /* the owner's own word for what it is for */
    uint64_t owner; /* an id: the owner may be gone when the timer fires */
};

struct lp_heap {
    struct lp_timer **items;
    uint32_t count;
    uint32_t cap;
};

void lp_heap_init(struct lp_heap *heap);
void lp_heap_fini(struct lp_heap *heap);

/* Sets or moves the timer. LP_ENOMEM (only for one that was not set). */
LP_MUST int lp_heap_set(struct lp_heap *heap, struct lp_timer *timer, uint64_t at_us);

/* Harmless when it is not set. */
void lp_heap_cancel(struct lp_heap *heap, struct lp_timer *timer);

/* The earliest timer that is due at `now_us`, taken off the heap; NULL when none is. */
struct lp_timer *lp_heap_due(struct lp_heap *heap, uint64_t now_us);

/* When the earliest timer is due; UINT64_MAX when there is none. */
uint64_t lp_heap_next_us(const struct lp_heap *heap);

#endif
