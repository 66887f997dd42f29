/* The arithmetic of the probe: what a number of hits and misses says of a fleet.
 *
 * Plain arithmetic on doubles; nothing is random. Chances are compared with limits that make a
 * wrong word rarer than one probe in a thousand. */
#ifndef LP_CALL_STATS_H
#define LP_CALL_STATS_H

#include "call/seen.h"

struct lp_rate {
    uint32_t ok;
    uint32_t lost;
    uint32_t faults;
    uint32_t rows;
};

/* An estimate with the bounds between which the truth lies in 95 of 100 cases. */
struct lp_estimate {
    double value; /* 0: not known */
    double low;
    double high; /* 0: without bound */
};

/* Sums the rows of one arm; `serial_only` leaves out those that were not alone. */
struct lp_rate lp_rate_of(const struct lp_seen *seen, enum lp_seen_arm arm, bool serial_only);

/* Bounds of a share (Wilson's interval, 95 %); asked > 0. */
void lp_share_bounds(uint32_t hits, uint32_t asked, double *ret_low, double *ret_high);
/* The chance of `hits` or more among `asked` when each has the chance `share`. */
double lp_share_tail(uint32_t hits, uint32_t asked, double share);

/* How many replicas make one call in `1/share` hit. asked > 0. With unequal weights it is the
 * number of equal ones that would behave so. */
struct lp_estimate lp_replicas_of(uint32_t hits, uint32_t asked);

/* The period of strict rotation: every call whose distance from its initialize is a multiple of it
 * hits, every other one misses. 0: the serial rows of FRESH do not show one beyond doubt. */
uint32_t lp_rotation_of(const struct lp_seen *seen);

/* Rows that are right from end to end or wrong from end to end. */
struct lp_pure_rows {
    uint32_t right;
    uint32_t wrong;
    uint32_t mixed;
    bool is_beyond_chance; /* calls that are tossed one by one would hardly give such rows */
};
struct lp_pure_rows lp_pure_rows_of(const struct lp_seen *seen, enum lp_seen_arm arm);

#endif
