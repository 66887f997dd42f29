/* Plays against the library's server by seed: a lying network, clients that mix everything, and, in
 * half of them, memory that fails (see server_play.h for what must never happen). Needs the
 * linker's --wrap for malloc, calloc and realloc. PLAYS sets their number, PLAY one seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server_play.h"

enum { PLAYS = 1500, BYTES_MAX = 1500 };

static uint64_t noise;
static uint32_t scarcity; /* one allocation in so many fails; 0: none */
static uint64_t failures;

static uint32_t draw(void)
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    return (uint32_t)(noise >> 32);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

static bool may_succeed(void)
{
    if (!scarcity || !play_server_works || draw() % scarcity)
        return true;
    failures++;
    return false;
}

void *__wrap_malloc(size_t n)
{
    return may_succeed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_succeed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return may_succeed() ? __real_realloc(ptr, n) : NULL;
}

struct sums {
    uint64_t answers, jobs, kept;
};

static void play_seed(uint64_t seed, struct sums *sums)
{
    static uint8_t data[BYTES_MAX];
    static struct play p;
    noise = (seed + 1) * 0x9E3779B97F4A7C15ull;
    size_t size = 100 + draw() % (BYTES_MAX - 100);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)draw();
    scarcity = seed % 2 ? 5 + draw() % 100 : 0;
    play_all(&p, data, size);
    for (uint32_t i = 0; i < PLAY_MESSAGES; i++)
        sums->answers += p.answer_counts[i];
    sums->jobs += p.jobs_begun;
    sums->kept += p.kept_count;
}

static void no_play_breaks_a_rule(void **state)
{
    (void)state;
    struct sums sums = {0};
    const char *count = getenv("PLAYS");
    const char *one = getenv("PLAY");
    uint64_t end = count ? strtoull(count, NULL, 10) : PLAYS;
    uint64_t seed = one ? strtoull(one, NULL, 10) : 0;
    for (end = one ? seed + 1 : end; seed < end; seed++) {
        if (getenv("SAY"))
            fprintf(stderr, "play %llu\n", (unsigned long long)seed);
        play_seed(seed, &sums);
    }
    print_message("%llu answers, %llu calls, %llu failed allocations\n",
        (unsigned long long)sums.answers, (unsigned long long)sums.jobs,
        (unsigned long long)failures);
    if (one)
        return;
    assert_true(sums.answers > end && sums.jobs > end && sums.kept > end / 20 && failures > end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_play_breaks_a_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
