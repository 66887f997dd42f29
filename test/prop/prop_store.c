/* Laws of the reader of the store's replies: any split of the bytes gives the same replies and the
 * same error, and what it keeps in memory follows what has come, never a length that is announced
 * (case OWN-06). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "store_transcript.h"

enum { OUT_MAX = 1 << 20, ROUNDS = 3000, REPLY_MAX = 2000 };

static const char *const SAMPLES[] = {"", "+OK\r\n", "+OK\r\n-ERR no\r\n:5\r\n$-1\r\n*-1\r\n",
    "$0\r\n\r\n$5\r\na\r\nb\n\r\n", "*0\r\n*2\r\n*1\r\n*1\r\n:-9223372036854775808\r\n+x\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n", "?", "$3\r\nab", "$x\r\n", ":\r\n", ":1x\r\n",
    "*2\r\n:1\r\n", "$99999999999999999999\r\n", "*4294967297\r\n", "$-2\r\n", "*-2\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "$3\r\nabcde\r\n",
    "+\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"};

static const char *const FRAGMENTS[] = {"+OK\r\n", "-ERR x\r\n", ":1\r\n", ":-77\r\n", "$-1\r\n",
    "$3\r\nabc\r\n", "$0\r\n\r\n", "*0\r\n", "*1\r\n", "*2\r\n", "*3\r\n", "*-1\r\n", "$5\r\n",
    "hello", "\r\n", "\r", "\n", "$", "*", "+", "-", ":", "1", "*1000000\r\n", "$1000000000\r\n"};

static void assert_same(struct lp_span in, struct cuts cuts)
{
    struct lp_buf whole, parts;
    lp_buf_init(&whole, OUT_MAX);
    lp_buf_init(&parts, OUT_MAX);
    store_transcript(in, (struct cuts){CUT_NONE, 0, 0}, REPLY_MAX, &whole);
    store_transcript(in, cuts, REPLY_MAX, &parts);
    assert_true(lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts)));
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

static void test_every_split_of_the_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        struct lp_span in = lp_span_str(SAMPLES[i]);
        assert_same(in, (struct cuts){CUT_BYTES, 0, 0});
        for (size_t at = 1; at < in.len; at++)
            assert_same(in, (struct cuts){CUT_AT, at, 0});
    }
}

static void test_random_replies(void **state)
{
    (void)state;
    uint64_t seed = 20261130;
    for (int round = 0; round < ROUNDS; round++) {
        char text[1024] = "";
        for (size_t n = draw(&seed, 24); n; n--)
            strcat(text, FRAGMENTS[draw(&seed, sizeof FRAGMENTS / sizeof *FRAGMENTS)]);
        assert_same(lp_span_str(text), (struct cuts){CUT_BYTES, 0, 0});
        assert_same(lp_span_str(text), (struct cuts){CUT_RANDOM, 0, seed});
    }
}

static void test_memory_follows_what_has_come(void **state)
{
    (void)state;
    struct lp_store_reader reader;
    const struct lp_store_reply *reply = NULL;
    lp_store_reader_init(&reader, 1 << 30);
    const struct lp_span LIES[] = {
        LP_SPAN("*1000000000\r\n:1\r\n"), LP_SPAN("*2000000\r\n"), LP_SPAN("$1000000000\r\nx")};
    for (size_t i = 0; i < sizeof LIES / sizeof *LIES; i++) {
        assert_int_equal(lp_store_reader_feed(&reader, LIES[i]), LP_OK);
        assert_int_equal(lp_store_reader_next(&reader, &reply), LP_OK);
        assert_null(reply);
        assert_true(reader.arena.used < 4096);
    }
    lp_store_reader_reset(&reader);
}

static void test_a_reply_that_is_kept(void **state)
{
    (void)state;
    struct lp_store_reader reader;
    const struct lp_store_reply *first = NULL, *second = NULL;
    lp_store_reader_init(&reader, REPLY_MAX);
    assert_int_equal(lp_store_reader_feed(&reader, LP_SPAN("$3\r\none\r\n$3\r\ntwo\r\n")), LP_OK);
    assert_int_equal(lp_store_reader_next(&reader, &first), LP_OK);
    struct lp_arena kept = lp_store_reader_take(&reader);
    assert_int_equal(lp_store_reader_next(&reader, &second), LP_OK);
    assert_true(lp_span_eq(first->text, LP_SPAN("one")));
    assert_true(lp_span_eq(second->text, LP_SPAN("two")));
    lp_arena_fini(&kept);
    lp_store_reader_reset(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split_of_the_samples),
        cmocka_unit_test(test_random_replies),
        cmocka_unit_test(test_memory_follows_what_has_come),
        cmocka_unit_test(test_a_reply_that_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
