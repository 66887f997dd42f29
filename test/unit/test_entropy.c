/* Random bytes from a seed: the same seed gives the same bytes however they are asked for, what was
 * handed out is gone from the state, and numbers are spread evenly (mcp/entropy.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "mcp/entropy.h"

static const unsigned char SEED[LP_ENTROPY_SEED_BYTES] = {1, 2, 3};

/* The first bytes are the keystream of ChaCha20 under the seed behind its first 32 bytes; the
 * values come from another implementation. */
static void test_known_stream(void **state)
{
    (void)state;
    static const unsigned char EXPECTED[8] = {0x85, 0x64, 0x70, 0x55, 0x79, 0xf3, 0xc7, 0xa5};
    struct lp_entropy e;
    unsigned char room[8];
    lp_entropy_init(&e, SEED);
    lp_entropy_bytes(&e, room, sizeof room);
    assert_memory_equal(room, EXPECTED, sizeof room);
}

/* Over several refills, in pieces of every size. */
static void test_any_split(void **state)
{
    (void)state;
    enum { TOTAL = 3 * LP_ENTROPY_POOL_BYTES + 7 };
    static unsigned char whole[TOTAL];
    static unsigned char pieces[TOTAL];
    struct lp_entropy e;
    lp_entropy_init(&e, SEED);
    lp_entropy_bytes(&e, whole, sizeof whole);
    for (size_t step = 1; step < 600; step += 37) {
        lp_entropy_init(&e, SEED);
        for (size_t at = 0; at < TOTAL; at += step)
            lp_entropy_bytes(&e, pieces + at, at + step > TOTAL ? TOTAL - at : step);
        assert_memory_equal(whole, pieces, sizeof whole);
    }
    for (size_t at = 0; at + 32 <= TOTAL; at += 16)
        for (size_t other = at + 16; other + 16 <= TOTAL; other += 16)
            assert_memory_not_equal(whole + at, whole + other, 16);
}

static void test_seeds_differ(void **state)
{
    (void)state;
    unsigned char other_seed[LP_ENTROPY_SEED_BYTES] = {1, 2, 4};
    unsigned char one[16];
    unsigned char two[16];
    struct lp_entropy e;
    lp_entropy_init(&e, SEED);
    lp_entropy_bytes(&e, one, sizeof one);
    lp_entropy_init(&e, other_seed);
    lp_entropy_bytes(&e, two, sizeof two);
    assert_memory_not_equal(one, two, sizeof one);
}

/* Neither the old seed nor bytes that were handed out are still in the state. */
static void test_forward_secrecy(void **state)
{
    (void)state;
    struct lp_entropy e;
    unsigned char given[64];
    lp_entropy_init(&e, SEED);
    lp_entropy_bytes(&e, given, sizeof given);
    assert_memory_not_equal(e.seed, SEED, sizeof SEED);
    assert_null(memmem(&e, sizeof e, given, 16));
    assert_null(memmem(&e, sizeof e, given + 48, 16));
    assert_null(memmem(&e, sizeof e, SEED, sizeof SEED));
}

static void test_below(void **state)
{
    (void)state;
    struct lp_entropy e;
    unsigned counts[6] = {0};
    lp_entropy_init(&e, SEED);
    for (int i = 0; i < 6000; i++) {
        uint32_t value = lp_entropy_below(&e, 6);
        assert_in_range(value, 0, 5);
        counts[value]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 850, 1150);
    assert_int_equal(lp_entropy_below(&e, 1), 0);
    uint32_t high = 0;
    for (int i = 0; i < 64; i++)
        high |= lp_entropy_below(&e, UINT32_MAX);
    assert_int_equal(high >> 24, 0xff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_stream),
        cmocka_unit_test(test_any_split),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_forward_secrecy),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests_name("entropy", tests, NULL, NULL);
}
