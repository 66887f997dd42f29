/* Shares, bounds and patterns. See call/stats.h.
 *
 * Bounds are Wilson's. Patterns are judged by the chance that independent calls would show them:
 * the product of each call's chance, so no logarithm is needed and an underflow to nothing is the
 * right answer. */
#include "call/stats.h"

/* A pattern counts when chance would give it less often than this. */
static const double BEYOND_CHANCE = 1e-5;
static const double Z95 = 1.959964;

static double square_root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 60; i++)
        r = (r + x / r) / 2;
    return r;
}

static double power(double base, uint32_t n)
{
    double product = 1;
    for (; n; n >>= 1, base *= base)
        if (n & 1)
            product *= base;
    return product;
}

static void add_row(struct lp_rate *rate, const struct lp_seen_row *row)
{
    for (uint32_t i = 0; i < row->count; i++) {
        rate->ok += row->marks[i] == LP_MARK_OK;
        rate->lost += row->marks[i] == LP_MARK_LOST;
        rate->faults += row->marks[i] == LP_MARK_FAULT;
    }
    rate->rows++;
}

struct lp_rate lp_rate_of(const struct lp_seen *seen, enum lp_seen_arm arm, bool serial_only)
{
    struct lp_rate rate = {0};
    for (uint32_t i = 0; i < seen->row_count; i++)
        if (seen->rows[i].arm == arm && (seen->rows[i].is_serial || !serial_only))
            add_row(&rate, &seen->rows[i]);
    return rate;
}

void lp_share_bounds(uint32_t hits, uint32_t asked, double *ret_low, double *ret_high)
{
    LP_ASSERT(asked > 0 && hits <= asked);
    double n = asked;
    double p = hits / n;
    double z2 = Z95 * Z95;
    double middle = p + z2 / (2 * n);
    double spread = Z95 * square_root(p * (1 - p) / n + z2 / (4 * n * n));
    double low = (middle - spread) / (1 + z2 / n);
    double high = (middle + spread) / (1 + z2 / n);
    *ret_low = hits && low > 0 ? low : 0;
    *ret_high = high < 1 ? high : 1;
}

double lp_share_tail(uint32_t hits, uint32_t asked, double share)
{
    double term = power(1 - share, asked);
    double below = 0;
    for (uint32_t k = 0; k < hits && k <= asked; k++) {
        below += term;
        term *= share / (1 - share) * (asked - k) / (k + 1);
    }
    return below < 1 ? 1 - below : 0;
}

struct lp_estimate lp_replicas_of(uint32_t hits, uint32_t asked)
{
    double low, high;
    lp_share_bounds(hits, asked, &low, &high);
    struct lp_estimate estimate = {.low = 1 / high};
    if (hits) {
        estimate.value = (double)asked / hits;
        estimate.high = low > 0 ? 1 / low : 0;
    }
    return estimate;
}

/* --- strict rotation --- */

struct fit {
    uint32_t agree;
    uint32_t differ;
    uint32_t hits;
    double chance; /* that calls tossed with 1/period give these marks */
};

static void fit_row(struct fit *fit, const struct lp_seen_row *row, uint32_t period)
{
    for (uint32_t i = 0; i < row->count; i++) {
        if (row->marks[i] == LP_MARK_FAULT)
            continue;
        bool hits = row->marks[i] == LP_MARK_OK;
        bool is_due = row->distance[i] % period == 0;
        fit->agree += hits == is_due;
        fit->differ += hits != is_due;
        fit->hits += hits;
        fit->chance *= hits ? 1.0 / period : 1 - 1.0 / period;
    }
}

static struct fit fit_rows(const struct lp_seen *seen, uint32_t period)
{
    struct fit fit = {.chance = 1};
    for (uint32_t i = 0; i < seen->row_count; i++)
        if (seen->rows[i].arm == LP_ARM_FRESH && seen->rows[i].is_serial)
            fit_row(&fit, &seen->rows[i], period);
    return fit;
}

uint32_t lp_rotation_of(const struct lp_seen *seen)
{
    for (uint32_t period = 2; period <= LP_SEEN_CALLS_MAX; period++) {
        struct fit fit = fit_rows(seen, period);
        /* One in fifty may differ: a check of the balancer's own, or somebody else's request. */
        if (fit.hits && fit.agree >= 50 * fit.differ && fit.chance < BEYOND_CHANCE)
            return period;
    }
    return 0;
}

/* --- each session right or wrong as a whole --- */

enum { PURE_CALLS_MIN = 2 };

static void judge_row(struct lp_pure_rows *rows, struct lp_rate row, double share, double *chance)
{
    uint32_t n = row.ok + row.lost;
    if (n < PURE_CALLS_MIN)
        return;
    bool is_pure = !row.ok || !row.lost;
    rows->right += is_pure && row.ok;
    rows->wrong += is_pure && row.lost;
    rows->mixed += !is_pure;
    if (is_pure)
        *chance *= power(share, n) + power(1 - share, n);
}

struct lp_pure_rows lp_pure_rows_of(const struct lp_seen *seen, enum lp_seen_arm arm)
{
    struct lp_pure_rows rows = {0};
    struct lp_rate all = lp_rate_of(seen, arm, false);
    double chance = 1;
    if (!all.ok || !all.lost)
        return rows;
    double share = (double)all.ok / (all.ok + all.lost);
    for (uint32_t i = 0; i < seen->row_count; i++) {
        struct lp_rate row = {0};
        if (seen->rows[i].arm != arm)
            continue;
        add_row(&row, &seen->rows[i]);
        judge_row(&rows, row, share, &chance);
    }
    uint32_t pure = rows.right + rows.wrong;
    rows.is_beyond_chance =
        rows.right && rows.wrong && pure >= 20 * rows.mixed && chance < BEYOND_CHANCE;
    return rows;
}
