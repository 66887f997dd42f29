/* Counting, and the sum of all engines' counts as Prometheus text (exposition format 0.0.4,
 * requirements [G14]). A block has one writer, so adding is a relaxed load and a relaxed store: no
 * locked instruction on the request path. A scrape may see one cell of a request and not yet the
 * next; sums within a family still agree, because they are taken from the same reads. */
#include "obs/metrics.h"

#include "base/error.h"

#define X(id, name, type, help) {name, #type, help},
static const struct {
    const char *name;
    const char *type;
    const char *help;
} FAMILIES[] = {LP_METRICS(X)};
#undef X

/* Upper bounds of the buckets; the last bucket has none. */
static const struct {
    uint64_t us;
    const char *seconds;
} BOUNDS[] = {
    {100, "0.0001"},
    {250, "0.00025"},
    {500, "0.0005"},
    {1000, "0.001"},
    {2500, "0.0025"},
    {5000, "0.005"},
    {10000, "0.01"},
    {25000, "0.025"},
    {50000, "0.05"},
    {100000, "0.1"},
    {250000, "0.25"},
    {500000, "0.5"},
    {1000000, "1"},
    {5000000, "5"},
    {30000000, "30"},
};

enum { BOUND_COUNT = sizeof BOUNDS / sizeof BOUNDS[0] };
_Static_assert(BOUND_COUNT + 1 == (int)LP_LATENCY_BUCKETS, "one bucket more than bounds");

#define X(id, word) word,
static const char *const ENDS[] = {LP_ENDS(X)};
#undef X

static const char *const CLASSES[LP_STATUS_CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

static uint64_t read_cell(const uint64_t *cell)
{
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

static void add_to(uint64_t *cell, uint64_t delta)
{
    __atomic_store_n(cell, read_cell(cell) + delta, __ATOMIC_RELAXED);
}

void lp_metrics_add(struct lp_metrics *m, enum lp_metric which, int64_t delta)
{
    LP_ASSERT(which < LP_METRIC_count);
    add_to(&m->cells[which], (uint64_t)delta);
}

void lp_metrics_reason(struct lp_metrics *m, enum lp_reason reason)
{
    LP_ASSERT(reason < LP_REASON_count);
    add_to(&m->reasons[reason], 1);
}

void lp_metrics_end(struct lp_metrics *m, enum lp_end end)
{
    LP_ASSERT(end < LP_END_count);
    add_to(&m->ends[end], 1);
}

const char *lp_metrics_end_word(enum lp_end end)
{
    LP_ASSERT(end < LP_END_count);
    return ENDS[end];
}

void lp_metrics_status(struct lp_metrics *m, int status)
{
    int class = status / 100;
    add_to(&m->statuses[class >= 1 && class < LP_STATUS_CLASSES ? class : 0], 1);
}

void lp_metrics_first_byte(struct lp_metrics *m, uint64_t us)
{
    uint32_t bucket = 0;
    while (bucket < BOUND_COUNT && us > BOUNDS[bucket].us)
        bucket++;
    add_to(&m->latency_us[bucket], 1);
    add_to(&m->latency_sum_us, us);
    add_to(&m->latency_count, 1);
}

/* The blocks and what is appended to; a printing function returns at once after a failure. */
struct scrape {
    const struct lp_metrics *const *blocks;
    uint32_t block_count;
    const struct lp_metrics_replica *replicas;
    uint32_t replica_count;
    struct lp_buf *out;
};

/* The sum over all engines of the cell at this offset. */
static uint64_t sum(const struct scrape *s, size_t offset)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < s->block_count; i++)
        total += read_cell((const uint64_t *)((const char *)s->blocks[i] + offset));
    return total;
}

struct lp_metrics_sessions lp_metrics_sessions(
    const struct lp_metrics *const *blocks, uint32_t block_count)
{
    const struct scrape s = {.blocks = blocks, .block_count = block_count};
    struct lp_metrics_sessions all = {
        .opened = sum(
            &s, offsetof(struct lp_metrics, cells) + LP_METRIC_SESSIONS_OPENED * sizeof(uint64_t))};
    for (size_t i = 0; i < LP_END_count; i++)
        all.ended[i] = sum(&s, offsetof(struct lp_metrics, ends) + i * sizeof(uint64_t));
    return all;
}

static int print_head(struct lp_buf *out, const char *name, const char *type, const char *help)
{
    return lp_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int print_cells(const struct scrape *s)
{
    int err = LP_OK;
    for (size_t i = 0; i < LP_METRIC_count && !err; i++) {
        /* Signed: an engine that ends what another began has a gauge below zero. */
        int64_t value = (int64_t)sum(s, offsetof(struct lp_metrics, cells) + i * sizeof(uint64_t));
        err = print_head(s->out, FAMILIES[i].name, FAMILIES[i].type, FAMILIES[i].help);
        if (!err)
            err = lp_buf_printf(s->out, "%s %lld\n", FAMILIES[i].name, (long long)value);
    }
    return err;
}

static int print_reasons(const struct scrape *s)
{
    const char *name = "limpet_exchanges_total";
    int err = print_head(s->out, name, "counter", "Exchanges ended, by reason");
    for (size_t i = LP_REASON_none + 1; i < LP_REASON_count && !err; i++)
        err = lp_buf_printf(s->out, "%s{reason=\"%s\"} %llu\n", name,
            lp_reason_info((enum lp_reason)i)->name,
            (unsigned long long)sum(
                s, offsetof(struct lp_metrics, reasons) + i * sizeof(uint64_t)));
    return err;
}

static int print_ends(const struct scrape *s)
{
    const char *name = "limpet_sessions_ended_total";
    struct lp_metrics_sessions all = lp_metrics_sessions(s->blocks, s->block_count);
    int err = print_head(s->out, name, "counter", "Sessions ended, by cause");
    for (size_t i = 0; i < LP_END_count && !err; i++)
        err = lp_buf_printf(
            s->out, "%s{cause=\"%s\"} %llu\n", name, ENDS[i], (unsigned long long)all.ended[i]);
    return err;
}

static int print_statuses(const struct scrape *s)
{
    const char *name = "limpet_responses_total";
    int err = print_head(s->out, name, "counter", "Responses to clients, by class of status");
    for (size_t i = 0; i < LP_STATUS_CLASSES && !err; i++)
        err = lp_buf_printf(s->out, "%s{class=\"%s\"} %llu\n", name, CLASSES[i],
            (unsigned long long)sum(
                s, offsetof(struct lp_metrics, statuses) + i * sizeof(uint64_t)));
    return err;
}

/* The count is the last bucket, not its own cell: a reader checks that the two agree. */
static int print_first_byte(const struct scrape *s)
{
    const char *name = "limpet_first_byte_seconds";
    uint64_t count = 0;
    int err = print_head(
        s->out, name, "histogram", "Time from a request's head to the head of its answer");
    for (size_t i = 0; i < LP_LATENCY_BUCKETS && !err; i++) {
        count += sum(s, offsetof(struct lp_metrics, latency_us) + i * sizeof(uint64_t));
        err = lp_buf_printf(s->out, "%s_bucket{le=\"%s\"} %llu\n", name,
            i < BOUND_COUNT ? BOUNDS[i].seconds : "+Inf", (unsigned long long)count);
    }
    uint64_t sum_us = sum(s, offsetof(struct lp_metrics, latency_sum_us));
    if (!err)
        err = lp_buf_printf(s->out, "%s_sum %llu.%06llu\n%s_count %llu\n", name,
            (unsigned long long)(sum_us / 1000000), (unsigned long long)(sum_us % 1000000), name,
            (unsigned long long)count);
    return err;
}

/* A label's value: backslash, quote and line feed escaped (format 0.0.4). */
static int print_label(struct lp_buf *out, const char *name, struct lp_span value)
{
    int err = lp_buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < value.len && !err; i++) {
        char c = value.ptr[i];
        if (c == '\n')
            err = lp_buf_append(out, LP_SPAN("\\n"));
        else if (c == '\\' || c == '"')
            err = lp_buf_printf(out, "\\%c", c);
        else
            err = lp_buf_append(out, lp_span(&value.ptr[i], 1));
    }
    return err ? err : lp_buf_append(out, LP_SPAN("\""));
}

static int print_replica_line(
    struct lp_buf *out, const char *name, const struct lp_metrics_replica *replica, uint64_t value)
{
    int err = lp_buf_printf(out, "%s{", name);
    if (!err)
        err = print_label(out, "server", replica->server);
    if (!err)
        err = lp_buf_append(out, LP_SPAN(","));
    if (!err)
        err = print_label(out, "replica", replica->name);
    return err ? err : lp_buf_printf(out, "} %llu\n", (unsigned long long)value);
}

static bool is_up(const struct lp_metrics_replica *replica)
{
    return lp_span_eq(replica->state, LP_SPAN("up")) ||
        lp_span_eq(replica->state, LP_SPAN("draining"));
}

static int print_replicas(const struct scrape *s)
{
    const char *up = "limpet_replica_up", *sessions = "limpet_replica_sessions",
               *waiting = "limpet_replica_requests_waiting";
    if (s->replica_count == 0)
        return LP_OK;
    int err =
        print_head(s->out, up, "gauge", "1 when the replica serves its sessions (up, draining)");
    for (uint32_t i = 0; i < s->replica_count && !err; i++)
        err = print_replica_line(s->out, up, &s->replicas[i], is_up(&s->replicas[i]));
    if (!err)
        err = print_head(s->out, sessions, "gauge", "Sessions that the replica owns");
    for (uint32_t i = 0; i < s->replica_count && !err; i++)
        err = print_replica_line(s->out, sessions, &s->replicas[i], s->replicas[i].sessions);
    if (!err)
        err = print_head(
            s->out, waiting, "gauge", "Requests that wait for the replica's answer, GETs aside");
    for (uint32_t i = 0; i < s->replica_count && !err; i++)
        err = print_replica_line(s->out, waiting, &s->replicas[i], s->replicas[i].waiting);
    return err;
}

static int print_build(const struct scrape *s)
{
    const char *name = "limpet_build_info";
    int err = print_head(s->out, name, "gauge", "The version of this program");
    return err ? err : lp_buf_printf(s->out, "%s{version=\"%s\"} 1\n", name, LP_VERSION);
}

int lp_metrics_print(const struct lp_metrics *const *blocks, uint32_t block_count,
    const struct lp_metrics_replica *replicas, uint32_t replica_count, struct lp_buf *out)
{
    const struct scrape scrape = {blocks, block_count, replicas, replica_count, out};
    static int (*const PARTS[])(const struct scrape *) = {print_cells, print_reasons, print_ends,
        print_statuses, print_first_byte, print_replicas, print_build};
    int err = LP_OK;
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0] && !err; i++)
        err = PARTS[i](&scrape);
    return err;
}
