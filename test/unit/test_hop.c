/* Hop marks: one that was signed is good once, for its request, its target and a short time; all
 * else is told apart (mcp/hop.h; requirements [S6], cases OWN-05). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/hop.h"

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define KEY_B "//////////////////////////////////////////8=\n"

enum { NOW_MS = 1700000000 };

static const struct lp_hop_claim CLAIM = {
    {"POST", 4}, {"/mcp?tenant=a", 13}, {"m2.7d6f", 7}, {"m2", 2}};

static struct lp_keyring parse(const char *text)
{
    struct lp_keyring ring;
    uint32_t line;
    assert_int_equal(lp_keyring_parse(lp_span_str(text), &ring, &line), LP_OK);
    return ring;
}

static struct lp_span sign(
    const struct lp_keyring *ring, uint64_t wall_ms, unsigned number, char room[LP_HOP_TEXT_MAX])
{
    unsigned char nonce[LP_HOP_NONCE_BYTES] = {0};
    uint64_t spread = (number + 1) * 0x9E3779B97F4A7C15u; /* real ones are random */
    memcpy(nonce, &spread, sizeof spread);
    memcpy(nonce + 8, &spread, sizeof spread);
    return lp_hop_sign(ring, &CLAIM, wall_ms, nonce, room);
}

static int set_up(void **state)
{
    static struct lp_hop_cache cache;
    *state = &cache;
    return lp_hop_cache_init(&cache, NULL);
}

static int tear_down(void **state)
{
    lp_hop_cache_fini(*state);
    lp_hop_cache_fini(*state);
    return 0;
}

static void test_good_once(void **state)
{
    struct lp_keyring ring = parse(KEY_A);
    char room[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&ring, NOW_MS, 1, room);
    assert_true(lp_span_starts(mark, LP_SPAN("h1.m2.")));
    assert_int_equal(mark.len, 6 + 80);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS + 5), LP_HOP_GOOD);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS + 6), LP_HOP_REPLAYED);
    mark = sign(&ring, NOW_MS, 2, room);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS + 7), LP_HOP_GOOD);
}

/* The mark's time is good from 5 s ahead to 30 s behind, both included. */
static void test_time(void **state)
{
    struct lp_keyring ring = parse(KEY_A);
    char room[LP_HOP_TEXT_MAX];
    static const struct {
        int64_t later_ms;
        enum lp_hop_state state;
    } CASES[] = {{30000, LP_HOP_GOOD}, {30001, LP_HOP_STALE}, {60000, LP_HOP_STALE},
        {-5000, LP_HOP_GOOD}, {-5001, LP_HOP_STALE}, {-86400000, LP_HOP_STALE}};
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_span mark = sign(&ring, NOW_MS, i, room);
        uint64_t wall_ms = (uint64_t)(NOW_MS + CASES[i].later_ms);
        assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, wall_ms), CASES[i].state);
    }
    struct lp_span mark = sign(&ring, 0, 99, room);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, 0), LP_HOP_STALE);
}

/* Each part of the claim is covered, and no byte can move from one part to the next. */
static void test_other_request(void **state)
{
    struct lp_keyring ring = parse(KEY_A);
    char room[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&ring, NOW_MS, 1, room);
    struct lp_hop_claim claims[] = {CLAIM, CLAIM, CLAIM, CLAIM, CLAIM};
    claims[0].method = LP_SPAN("DELETE");
    claims[1].path = LP_SPAN("/mcp");
    claims[2].session = LP_SPAN("m2.7d6e");
    claims[3].session = LP_SPAN("");
    claims[4].path = LP_SPAN("/mcp?tenant=am");
    claims[4].session = LP_SPAN("2.7d6f");
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        assert_int_equal(lp_hop_judge(*state, &ring, &claims[i], mark, NOW_MS), LP_HOP_FORGED);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
}

/* Genuine but meant for somebody else, which is told apart; a target put in by hand is forged. */
static void test_other_target(void **state)
{
    struct lp_keyring ring = parse(KEY_A);
    char room[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&ring, NOW_MS, 1, room);
    struct lp_hop_claim claim = CLAIM;
    claim.target = LP_SPAN("m3");
    assert_int_equal(lp_hop_judge(*state, &ring, &claim, mark, NOW_MS), LP_HOP_OTHER_TARGET);
    room[4] = '3';
    assert_int_equal(lp_hop_judge(*state, &ring, &claim, mark, NOW_MS), LP_HOP_FORGED);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS), LP_HOP_FORGED);
}

static void test_forged(void **state)
{
    struct lp_keyring ring = parse(KEY_A);
    char room[LP_HOP_TEXT_MAX], changed[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&ring, NOW_MS, 1, room);
    for (size_t i = 0; i < mark.len; i++) { /* each byte counts */
        memcpy(changed, mark.ptr, mark.len);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        struct lp_span text = lp_span(changed, mark.len);
        assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, text, NOW_MS), LP_HOP_FORGED);
    }
    for (size_t len = 0; len < mark.len; len++) {
        struct lp_span text = lp_span(mark.ptr, len);
        assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, text, NOW_MS), LP_HOP_FORGED);
    }
    static const char *const WORDS[] = {"1", "h1", "h1.", "h1.m2", "h1..", "h2.m2.AAAA", "true",
        "h1.m2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "h1.m2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        assert_int_equal(
            lp_hop_judge(*state, &ring, &CLAIM, lp_span_str(WORDS[i]), NOW_MS), LP_HOP_FORGED);
    assert_int_equal(lp_hop_judge(*state, &ring, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
}

/* The first key signs, every key is believed. */
static void test_rotation(void **state)
{
    struct lp_keyring old = parse(KEY_A), both = parse(KEY_B KEY_A), new = parse(KEY_B);
    char room[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&old, NOW_MS, 1, room);
    assert_int_equal(lp_hop_judge(*state, &new, &CLAIM, mark, NOW_MS), LP_HOP_FORGED);
    assert_int_equal(lp_hop_judge(*state, &both, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
    mark = sign(&both, NOW_MS, 2, room);
    assert_int_equal(lp_hop_judge(*state, &old, &CLAIM, mark, NOW_MS), LP_HOP_FORGED);
    assert_int_equal(lp_hop_judge(*state, &new, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
    /* Two keys may have one id, of which the second signed. */
    struct lp_keyring twins = both;
    memcpy(twins.keys[0].id, twins.keys[1].id, LP_KEY_ID_BYTES);
    mark = sign(&old, NOW_MS, 3, room);
    assert_int_equal(lp_hop_judge(*state, &twins, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
}

/* However many there are: memory is bounded, none that was forgotten is good again, and a fresh one
 * always is. */
static void test_bound(void **state)
{
    struct lp_hop_cache *cache = *state;
    struct lp_keyring ring = parse(KEY_A);
    char first[LP_HOP_TEXT_MAX], room[LP_HOP_TEXT_MAX];
    struct lp_span mark = sign(&ring, NOW_MS, 0, first);
    assert_int_equal(lp_hop_judge(cache, &ring, &CLAIM, mark, NOW_MS), LP_HOP_GOOD);
    for (unsigned i = 1; i <= LP_HOP_CACHE_MAX; i++)
        assert_int_equal(lp_hop_judge(cache, &ring, &CLAIM, sign(&ring, NOW_MS + 1, i, room),
                             NOW_MS + 2 * LP_HOP_FRESH_MS),
            LP_HOP_GOOD);
    assert_int_equal(cache->seen.count, LP_HOP_CACHE_MAX);
    assert_int_equal(
        lp_hop_judge(cache, &ring, &CLAIM, mark, NOW_MS + 2 * LP_HOP_FRESH_MS), LP_HOP_STALE);
    /* These come from a clock that is ahead; one with the right clock is believed all the same. */
    for (unsigned i = 1; i <= LP_HOP_CACHE_MAX; i++)
        assert_int_equal(lp_hop_judge(cache, &ring, &CLAIM,
                             sign(&ring, NOW_MS + 9000, i + 1000000, room), NOW_MS + 5000),
            LP_HOP_GOOD);
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal(lp_hop_judge(cache, &ring, &CLAIM,
                             sign(&ring, NOW_MS + 5000, i + 9000000, room), NOW_MS + 5000),
            LP_HOP_GOOD);
    assert_int_equal(cache->seen.count, LP_HOP_CACHE_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_good_once),
        TEST(test_time),
        TEST(test_other_request),
        TEST(test_other_target),
        TEST(test_forged),
        TEST(test_rotation),
        TEST(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
