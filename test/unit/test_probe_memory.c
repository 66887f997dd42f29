/* A probe that finds no memory: it ends, says what it saw, and leaves nothing behind. Every
 * allocation of it fails once in turn, and then all from one on. */
#include "probe_world.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *old, size_t n);

static uint64_t allocations;
static uint64_t fails_at;
static bool fails_on;

static bool fails_now(void)
{
    if (!is_counting)
        return false;
    allocations++;
    return allocations == fails_at || (fails_on && allocations > fails_at);
}

void *__wrap_malloc(size_t n)
{
    return fails_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
    return fails_now() ? NULL : __real_calloc(count, n);
}

void *__wrap_realloc(void *old, size_t n)
{
    return fails_now() ? NULL : __real_realloc(old, n);
}

static const struct world WORLDS[] = {
    {.law = COOKIE, .replicas = 2, .cookies = 2},
    {.law = HEADER, .replicas = 2, .tells_kind = true, .has_sse_beside = true},
    {.law = RANDOM, .replicas = 2, .is_old_sse = true},
    {.law = ONE, .is_modern = true},
    {.law = ONE, .cut_us = 2000000},
    {.law = RANDOM, .replicas = 2, .is_modern = true},
};
enum { WORLD_COUNT = sizeof WORLDS / sizeof *WORLDS };

/* How many allocations one probe asks for. */
static uint64_t run(uint32_t i, uint64_t at, bool goes_on)
{
    struct lp_probe_args args = {.sessions = 4, .calls = 3, .rest_s = i == 4 ? 3 : 0};
    if (i == 5)
        args.step_tool = LP_SPAN("t");
    struct lp_buf out;
    struct lp_verdict verdict;
    struct world *w = world_new(&WORLDS[i]);
    allocations = 0;
    fails_at = at;
    fails_on = goes_on;
    world_begin(w, args);
    is_counting = true;
    while (!w->is_over)
        step(w);
    is_counting = false;
    lp_verdict_judge(lp_probe_seen(w->probe), &verdict);
    struct lp_report report = {LP_SPAN("u"), lp_probe_seen(w->probe), &verdict};
    lp_buf_init(&out, 1 << 20);
    assert_int_equal(lp_report_text(&report, &out), LP_OK);
    lp_buf_release(&out);
    world_free(w);
    return allocations;
}

static void test_one_fails(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD_COUNT; i++) {
        uint64_t all = run(i, 0, false);
        uint64_t stride = all / 400 + 1;
        for (uint64_t at = 1; at <= all; at += stride)
            (void)run(i, at, false);
        print_message("# world %u: %llu allocations\n", i, (unsigned long long)all);
    }
}

static void test_all_fail_from_one_on(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD_COUNT; i++) {
        uint64_t all = run(i, 0, false);
        uint64_t stride = all / 200 + 1;
        for (uint64_t at = 1; at <= all; at += stride)
            (void)run(i, at, true);
    }
}

/* The page and the object are told whole or not at all. */
static void test_report_without_room(void **state)
{
    (void)state;
    struct lp_verdict verdict;
    struct world *w = probe_world(&WORLDS[0], (struct lp_probe_args){.sessions = 4, .calls = 3});
    lp_verdict_judge(lp_probe_seen(w->probe), &verdict);
    struct lp_report report = {LP_SPAN("u"), lp_probe_seen(w->probe), &verdict};
    for (size_t max = 0; max < 9000; max += 97) {
        struct lp_buf out;
        lp_buf_init(&out, max);
        int text = lp_report_text(&report, &out);
        lp_buf_clear(&out);
        int json = lp_report_json(&report, &out);
        assert_true((text == LP_OK || text == LP_ELIMIT) && (json == LP_OK || json == LP_ELIMIT));
        assert_true(max > 100 || (text == LP_ELIMIT && json == LP_ELIMIT));
        lp_buf_release(&out);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_all_fail_from_one_on),
        cmocka_unit_test(test_report_without_room),
    };
    return cmocka_run_group_tests_name("probe without memory", tests, NULL, NULL);
}
