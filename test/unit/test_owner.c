/* Owner ids: the one check, the three sources in their order, minting and splitting; and the replay
 * header that is made of them (mcp/owner.h, mcp/replay.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/owner.h"
#include "mcp/replay.h"

#define REST "7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34"
#define LETTERS_32 "abcdefghijklmnopqrstuvwxyzABCDEF"

/* Every text that is no owner id by itself, and as a prefix makes an id that was never minted. */
static const struct lp_span BAD[] = {
    {"", 0},
    {LETTERS_32 "G", 33},
    {"m2;x=y", 6},
    {"m2,m3", 5},
    {"m2 ", 3},
    {" m2", 3},
    {"m2\r", 3},
    {"m2\n", 3},
    {"m2\r\nfly-replay: instance=m3", 27},
    {"m2\0", 3},
    {"m-2", 3},
    {"m_2", 3},
    {"m\xC3\xBC", 3},
    {"\xEF\xBC\xAD", 3}, /* a letter, but a wide one */
    {"m2=", 3},
    {"m2/", 3},
    {"m\x7F", 2},
};
enum { BAD_COUNT = sizeof BAD / sizeof *BAD };

static void test_check(void **state)
{
    (void)state;
    assert_true(lp_owner_is_id(LP_SPAN("m")));
    assert_true(lp_owner_is_id(LP_SPAN("0")));
    assert_true(lp_owner_is_id(LP_SPAN("d8d9034b27e048")));
    assert_true(lp_owner_is_id(LP_SPAN(LETTERS_32)));
    for (size_t i = 0; i < BAD_COUNT; i++)
        assert_false(lp_owner_is_id(BAD[i]));
    assert_false(lp_owner_is_id(LP_SPAN("m.2")));
    for (int c = 0; c < 256; c++) { /* no byte but the 62 */
        char text[3] = {'a', (char)c, 'z'};
        bool is_good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        assert_int_equal(lp_owner_is_id(lp_span(text, 3)), is_good);
    }
}

static void test_sources(void **state)
{
    (void)state;
    static const struct {
        const char *configured, *machine, *hostname;
        bool takes_hostname;
        enum lp_owner_source source;
        const char *id;
    } CASES[] = {
        {NULL, NULL, NULL, true, LP_OWNER_NOWHERE, ""},
        {"", "", "", true, LP_OWNER_NOWHERE, ""},
        {"", "", "box", false, LP_OWNER_NOWHERE, ""},
        {"m1", "d8d9034b27e048", "box", true, LP_OWNER_CONFIGURED, "m1"},
        {NULL, "d8d9034b27e048", "box", true, LP_OWNER_MACHINE, "d8d9034b27e048"},
        {"", "d8d9034b27e048", NULL, false, LP_OWNER_MACHINE, "d8d9034b27e048"},
        {NULL, "d8-9", NULL, false, LP_OWNER_MACHINE_BAD, ""},
        {NULL, "d8-9", "box", true, LP_OWNER_MACHINE_BAD, ""},
        {NULL, LETTERS_32 "G", NULL, false, LP_OWNER_MACHINE_BAD, ""},
        /* printf abc | sha256sum */
        {NULL, NULL, "abc", true, LP_OWNER_HOSTNAME, "ba7816bf8f01cfea"},
        {NULL, "", "no.id-at_all", true, LP_OWNER_HOSTNAME, NULL},
        {"m1", "d8-9", NULL, false, LP_OWNER_CONFIGURED, "m1"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_owner_sources sources = {lp_span_str(CASES[i].configured),
            lp_span_str(CASES[i].machine), lp_span_str(CASES[i].hostname), CASES[i].takes_hostname};
        struct lp_owner owner = {.len = 99};
        assert_int_equal(lp_owner_choose(&sources, &owner), LP_OK);
        assert_int_equal(owner.source, CASES[i].source);
        if (CASES[i].id)
            assert_true(lp_span_eq(lp_owner_span(&owner), lp_span_str(CASES[i].id)));
        else
            assert_true(owner.len == 16 && lp_owner_is_id(lp_owner_span(&owner)));
    }
}

/* A bad configured one is an error, whatever else is there, and nothing is chosen. */
static void test_bad_configured(void **state)
{
    (void)state;
    for (size_t i = 0; i < BAD_COUNT; i++) {
        struct lp_owner_sources sources = {BAD[i], LP_SPAN("d8d9"), LP_SPAN("box"), true};
        struct lp_owner owner = {.len = 99};
        if (!BAD[i].len)
            continue;
        assert_int_equal(lp_owner_choose(&sources, &owner), LP_EREFUSED);
        assert_int_equal(owner.len, 99);
    }
}

static void test_mint(void **state)
{
    (void)state;
    char long_rest[LP_OWNER_REST_MAX + 1];
    memset(long_rest, 'x', sizeof long_rest);
    struct lp_buf out;
    lp_buf_init(&out, LP_OWNER_TEXT_MAX);
    assert_int_equal(lp_owner_mint(LP_SPAN("m2"), LP_SPAN(REST), &out), LP_OK);
    assert_true(lp_span_eq(lp_buf_span(&out), LP_SPAN("m2." REST)));
    static const struct lp_span REFUSED[] = {
        {"", 0}, {"a b", 3}, {"a\n", 2}, {"\xC3\xBC", 2}, {"\x7F", 1}};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
        assert_int_equal(lp_owner_mint(LP_SPAN("m2"), REFUSED[i], &out), LP_EREFUSED);
    assert_int_equal(
        lp_owner_mint(LP_SPAN("m2"), lp_span(long_rest, sizeof long_rest), &out), LP_EREFUSED);
    assert_int_equal(out.len, 3 + sizeof REST - 1);
    lp_buf_clear(&out);
    struct lp_span longest = lp_span(long_rest, LP_OWNER_REST_MAX);
    assert_int_equal(lp_owner_mint(LP_SPAN(LETTERS_32), longest, &out), LP_OK);
    assert_int_equal(out.len, LP_OWNER_TEXT_MAX);
    assert_int_equal(lp_owner_mint(LP_SPAN("m"), LP_SPAN("x"), &out), LP_ELIMIT);
    lp_buf_release(&out);
}

static void assert_splits(struct lp_span id, struct lp_span owner, struct lp_span rest)
{
    struct lp_span got_owner, got_rest;
    assert_int_equal(lp_owner_split(id, &got_owner, &got_rest), LP_OK);
    assert_true(lp_span_eq(got_owner, owner));
    assert_true(lp_span_eq(got_rest, rest));
}

static void test_split(void **state)
{
    (void)state;
    assert_splits(LP_SPAN("m2." REST), LP_SPAN("m2"), LP_SPAN(REST));
    assert_splits(LP_SPAN("m2.a.b"), LP_SPAN("m2"), LP_SPAN("a.b"));
    assert_splits(LP_SPAN("m2.."), LP_SPAN("m2"), LP_SPAN("."));
    assert_splits(LP_SPAN(LETTERS_32 ".x"), LP_SPAN(LETTERS_32), LP_SPAN("x"));
    assert_splits(LP_SPAN("m2.{\"a\";}"), LP_SPAN("m2"), LP_SPAN("{\"a\";}"));
}

static void assert_no_split(struct lp_span id)
{
    struct lp_span owner = LP_SPAN("untouched"), rest = LP_SPAN("too");
    assert_int_equal(lp_owner_split(id, &owner, &rest), LP_ESYNTAX);
    assert_true(lp_span_eq(owner, LP_SPAN("untouched")) && lp_span_eq(rest, LP_SPAN("too")));
}

static void test_malformed(void **state)
{
    (void)state;
    struct lp_buf id;
    lp_buf_init(&id, 200);
    for (size_t i = 0; i < BAD_COUNT; i++) {
        lp_buf_clear(&id);
        assert_int_equal(lp_buf_append(&id, BAD[i]), LP_OK);
        assert_no_split(lp_buf_span(&id));
        assert_int_equal(lp_buf_append(&id, LP_SPAN("." REST)), LP_OK);
        assert_no_split(lp_buf_span(&id));
    }
    static const struct lp_span MORE[] = {{".", 1}, {"..", 2}, {"m2.", 3}, {"m2", 2},
        {REST, sizeof REST - 1}, {"m2.a b", 6}, {"m2.a\r\n", 6}, {"m2.\xC3\xBC", 5}};
    for (size_t i = 0; i < sizeof MORE / sizeof *MORE; i++)
        assert_no_split(MORE[i]);
    char long_id[3 + LP_OWNER_REST_MAX + 1];
    memset(long_id, 'x', sizeof long_id);
    memcpy(long_id, "m2.", 3);
    assert_no_split(lp_span(long_id, sizeof long_id));
    assert_splits(lp_span(long_id, sizeof long_id - 1), LP_SPAN("m2"),
        lp_span(long_id + 3, LP_OWNER_REST_MAX));
    lp_buf_release(&id);
}

static void test_replay_value(void **state)
{
    (void)state;
    char room[LP_REPLAY_TEXT_MAX];
    assert_true(lp_span_eq(
        lp_replay_value(LP_SPAN("m2"), false, room), LP_SPAN("prefer_instance=m2;timeout=5s")));
    assert_true(lp_span_eq(lp_replay_value(LP_SPAN("m2"), true, room), LP_SPAN("instance=m2")));
    assert_true(lp_span_eq(lp_replay_value(LP_SPAN(LETTERS_32), false, room),
        LP_SPAN("prefer_instance=" LETTERS_32 ";timeout=5s")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_bad_configured),
        cmocka_unit_test(test_mint),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_replay_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
