/* sim --seeds N [--from S]   runs N seeds, prints what they reached, fails on a broken invariant or
 *                            on anything that none of them reached
 * sim --seed N               runs one and prints its story
 * sim --first N              runs up to N seeds until one fails: exit status 0 only then
 * sim --twice N              runs N seeds twice each: both must leave the same trace */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

/* An assertion in the engine ends the program: the seed has to be known then. */
static char current[64];
static size_t current_len;
static volatile sig_atomic_t aborts_are_finds;

static void on_abort(int signum)
{
    (void)signum;
    ssize_t n = write(STDOUT_FILENO, current, current_len);
    _exit(aborts_are_finds && n > 0 ? 0 : 1);
}

static bool run(uint64_t seed, bool story, struct sim_cover *cover, uint64_t *ret_trace)
{
    current_len = (size_t)snprintf(
        current, sizeof current, "seed %llu: an assertion failed\n", (unsigned long long)seed);
    return sim_run(seed, story, cover, ret_trace);
}

/* What no seed can reach, and why. */
static const struct {
    enum lp_reason reason;
    const char *why;
} BEYOND[] = {
    {LP_REASON_none, "is no reason"},
    {LP_REASON_client_sent_more,
        "reading stops long before; only a shell that reads on gets there"},
    {LP_REASON_replayed, "a platform's matter; no seed has one"},
    {LP_REASON_replay_too_large, "a platform's matter; no seed has one"},
    {LP_REASON_store_away, "of the library's server; gateways ask no store"},
    {LP_REASON_not_taken, "likewise"},
    {LP_REASON_too_many_sessions, "likewise"},
    {LP_REASON_owner_busy, "there are never that many clients"},
    {LP_REASON_hop_refused, "only a clock that jumps between two sidecars; rare"},
    {LP_REASON_path_refused, "no simulated gateway has a rule for other paths"},
    {LP_REASON_looped, "no simulated gateway stands in front of another one"},
    {LP_REASON_idle, "ends a connection, never an exchange"},
    {LP_REASON_client_sent_more, "reading stops long before, as a read is 64 KiB at most"},
};

static const char *why_beyond(uint32_t reason)
{
    for (size_t i = 0; i < sizeof BEYOND / sizeof *BEYOND; i++)
        if (BEYOND[i].reason == reason)
            return BEYOND[i].why;
    return NULL;
}

static bool print_row(const char *kind, const char *name, uint64_t count, const char *why)
{
    bool is_missing = !count && !why;
    printf("  %-8s %-24s %10llu  %s\n", kind, name, (unsigned long long)count,
        is_missing ? "NOT REACHED"
            : why  ? why
                   : "");
    return !is_missing;
}

static bool print_cover(const struct sim_cover *cover)
{
    static const char *const FAULTS[] = {
#define X(name) #name,
        SIM_FAULTS(X)
#undef X
    };
    bool all = true;
    for (uint32_t i = 0; i < LP_REASON_count; i++)
        all &= print_row("reason", lp_reason_info(i)->name, cover->reasons[i], why_beyond(i));
    for (uint32_t i = 0; i < SIM_VERDICTS; i++)
        all &= print_row("verdict", lp_verdict_name(i), cover->verdicts[i], NULL);
    for (uint32_t i = 0; i < SIM_FAULT_count; i++)
        all &= print_row("fault", FAULTS[i], cover->faults[i], NULL);
    for (uint32_t i = 0; i < SIM_KIND_count; i++)
        all &= print_row("request", sim_kind_name(i), cover->kinds[i], NULL);
    return all;
}

static int run_many(uint64_t from, uint64_t count)
{
    enum { COVERED_FROM = 1000 };
    struct sim_cover cover = {0};
    uint64_t trace, bad = 0;
    for (uint64_t i = 0; i < count; i++)
        bad += !run(from + i, false, &cover, &trace);
    bool all = print_cover(&cover);
    printf("%llu seeds, %llu of them bad; %llu answers, %llu visible cuts, %llu events\n",
        (unsigned long long)count, (unsigned long long)bad, (unsigned long long)cover.answered,
        (unsigned long long)cover.cut, (unsigned long long)cover.events);
    if (count >= COVERED_FROM && !all)
        printf("something was reached by no seed: see above\n");
    return bad || (count >= COVERED_FROM && !all);
}

static int run_until_bad(uint64_t count)
{
    struct sim_cover cover = {0};
    uint64_t trace;
    aborts_are_finds = 1;
    for (uint64_t seed = 1; seed <= count; seed++)
        if (!run(seed, false, &cover, &trace))
            return 0;
    printf("none of %llu seeds found anything\n", (unsigned long long)count);
    return 1;
}

static int run_twice(uint64_t count)
{
    struct sim_cover cover = {0};
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t first, second;
        bool good = run(seed, false, &cover, &first);
        good = run(seed, false, &cover, &second) && good;
        if (!good || first != second) {
            printf("seed %llu: %016llx, then %016llx\n", (unsigned long long)seed,
                (unsigned long long)first, (unsigned long long)second);
            return 1;
        }
    }
    return 0;
}

static int run_one(uint64_t seed)
{
    struct sim_cover cover = {0};
    uint64_t trace;
    bool good = run(seed, true, &cover, &trace);
    printf("seed %llu is %s, trace %016llx\n", (unsigned long long)seed, good ? "good" : "BAD",
        (unsigned long long)trace);
    return !good;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim --seeds N [--from S] | --seed N | --first N | --twice N\n");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 5)
        return usage();
    signal(SIGABRT, on_abort);
    uint64_t n = strtoull(argv[2], NULL, 10);
    if (strcmp(argv[1], "--seed") == 0)
        return run_one(n);
    if (strcmp(argv[1], "--first") == 0)
        return run_until_bad(n);
    if (strcmp(argv[1], "--twice") == 0)
        return run_twice(n);
    if (strcmp(argv[1], "--seeds") != 0)
        return usage();
    return run_many(argc == 5 ? strtoull(argv[4], NULL, 10) : 1, n);
}
