/* Session ids: what is minted is found again, and nothing else is taken for ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "serve/session_id.h"

static enum lp_whose judge(const char *owner, const char *text)
{
    struct lp_key key;
    struct lp_span other;
    return lp_session_id_judge(lp_span_str(owner), lp_span_str(text), &key, &other);
}

static void what_is_minted_is_found_again(void **state)
{
    (void)state;
    const char *const owners[] = {"", "m1", "A2345678901234567890123456789012"};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        struct lp_key key = {0x0123456789ABCDEF * (i + 1), 0xFEDCBA9876543210 >> i};
        struct lp_key found = {0};
        struct lp_span other;
        char text[LP_SESSION_ID_MAX];
        struct lp_span owner = lp_span_str(owners[i]);
        size_t len = lp_session_id_mint(owner, &key, text);
        assert_int_equal(len, LP_UUID_LEN + (owner.len ? owner.len + 1 : 0));
        enum lp_whose whose = lp_session_id_judge(owner, lp_span(text, len), &found, &other);
        assert_int_equal(whose, LP_WHOSE_OURS);
        assert_true(lp_key_eq(key, found));
    }
}

static void an_id_is_a_uuid_of_version_4(void **state)
{
    (void)state;
    struct lp_key key = {UINT64_MAX, UINT64_MAX};
    char text[LP_SESSION_ID_MAX];
    size_t len = lp_session_id_mint(LP_SPAN("m1"), &key, text);
    assert_int_equal(len, 39);
    assert_memory_equal(text, "m1.ffffffff-ffff-4fff-bfff-ffffffffffff", 39);
    key = (struct lp_key){0};
    lp_session_id_mint(LP_SPAN(""), &key, text);
    assert_memory_equal(text, "00000000-0000-4000-8000-000000000000", 36);
}

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void prefixes_tell_whose_it_is(void **state)
{
    static const struct {
        const char *owner, *text;
        enum lp_whose whose;
    } ROWS[] = {
        {"m1", "m1." UUID, LP_WHOSE_OURS},
        {"m1", "m2." UUID, LP_WHOSE_OTHERS},
        {"m1", "m2.anything.at-all", LP_WHOSE_OTHERS},
        {"m1", "M1." UUID, LP_WHOSE_OTHERS},
        {"m1", UUID, LP_WHOSE_NOBODYS},
        {"m1", "", LP_WHOSE_NOBODYS},
        {"m1", ".", LP_WHOSE_NOBODYS},
        {"m1", "." UUID, LP_WHOSE_NOBODYS},
        {"m1", "m2.", LP_WHOSE_NOBODYS},
        {"m1", "m1.", LP_WHOSE_NOBODYS},
        {"m1", "m1.m1." UUID, LP_WHOSE_NOBODYS},
        {"m1", "m2;x=y." UUID, LP_WHOSE_NOBODYS},
        {"m1", "m2\r\nx." UUID, LP_WHOSE_NOBODYS},
        {"m1", "m\xc3\xa9." UUID, LP_WHOSE_NOBODYS},
        {"m1", "A23456789012345678901234567890123." UUID, LP_WHOSE_NOBODYS},
        {"", UUID, LP_WHOSE_OURS},
        {"", "m2." UUID, LP_WHOSE_NOBODYS},
        {"", "01234567-89AB-4def-8123-456789abcdef", LP_WHOSE_NOBODYS},
        {"", "0123456789abcdef0123456789abcdef1234", LP_WHOSE_NOBODYS},
        {"", "01234567-89ab-4def-8123-456789abcde-", LP_WHOSE_NOBODYS},
        {"", "01234567-89ab-4def-8123-456789abcdeg", LP_WHOSE_NOBODYS},
        {"", UUID "0", LP_WHOSE_NOBODYS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (judge(ROWS[i].owner, ROWS[i].text) != ROWS[i].whose)
            fail_msg("row %zu: %s", i, ROWS[i].text);
}

static void the_other_owner_is_told(void **state)
{
    (void)state;
    struct lp_key key;
    struct lp_span other;
    assert_int_equal(
        lp_session_id_judge(LP_SPAN("m1"), LP_SPAN("m2." UUID), &key, &other), LP_WHOSE_OTHERS);
    assert_true(lp_span_eq(other, LP_SPAN("m2")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_minted_is_found_again),
        cmocka_unit_test(an_id_is_a_uuid_of_version_4),
        cmocka_unit_test(prefixes_tell_whose_it_is),
        cmocka_unit_test(the_other_owner_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
