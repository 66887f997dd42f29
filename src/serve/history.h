/* The events of one stream, numbered from 1: those that are still to be sent, and those that a
 * client which lost its connection may ask for again (requirements [L5], wire document 4.3).
 *
 * Bounded: beyond the limits the oldest goes, sent or not; only the newest, and the one that is
 * just being sent, stay whatever their size. */
#ifndef LP_SERVE_HISTORY_H
#define LP_SERVE_HISTORY_H

#include "base/assert.h"
#include "base/list.h"
#include "base/span.h"

enum { LP_HISTORY_EVENTS = 1000, LP_HISTORY_BYTES = 1 << 20 };

struct lp_history {
    struct lp_list events; /* oldest first */
    uint32_t count;
    size_t bytes;
    uint32_t count_max; /* as lp_history_init sets it; may be set otherwise after */
    size_t bytes_max;
    uint64_t last;   /* number of the newest, 0: there was none yet */
    uint64_t in_use; /* the event that must not go; 0: none */
};

/* One kept event: its bytes as they go over the wire. Valid until it is dropped. */
struct lp_kept {
    uint64_t number;
    struct lp_span bytes;
};

void lp_history_init(struct lp_history *history);
/* Frees all events; it may be used again. */
void lp_history_fini(struct lp_history *history);

/* Adds the event history->last + 1, a copy of `bytes`. LP_ENOMEM: it is not there, its number not
 * given. */
LP_MUST int lp_history_add(struct lp_history *history, struct lp_span bytes);

/* The oldest kept event with a number >= `number`; false: there is none (yet). */
bool lp_history_get(const struct lp_history *history, uint64_t number, struct lp_kept *ret);

/* Forgets the events up to and with `number`. */
void lp_history_drop(struct lp_history *history, uint64_t number);

#endif
