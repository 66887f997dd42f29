/* Notes of a probe: texts of others are harmless to a terminal, answers are compared by all that
 * tells them apart, and more than there is room for is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "call/seen.h"

static void texts_are_printable_and_cut(void **state)
{
    (void)state;
    char room[8];
    lp_seen_text(room, sizeof room, LP_SPAN("a\x1b\x7f\xc3~ "));
    assert_string_equal(room, "a???~ ");
    lp_seen_text(room, sizeof room, LP_SPAN("longer than that"));
    assert_string_equal(room, "longer ");
    lp_seen_text(room, sizeof room, LP_SPAN(""));
    assert_string_equal(room, "");
}

static void answers_are_the_same_when_nothing_tells_them_apart(void **state)
{
    (void)state;
    const struct lp_seen_answer one = {.is_asked = true, .status = 404, .code = -1, .print = 7};
    struct lp_seen_answer others[] = {one, one, one, one, one};
    others[0].is_asked = false;
    others[1].status = 400;
    others[2].code = 0;
    others[3].print = 8;
    others[4].status = 0;
    assert_true(lp_seen_same(&one, &one));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(lp_seen_same(&one, &others[i]));
        assert_false(lp_seen_same(&others[i], &one));
    }
    assert_false(lp_seen_same(&others[0], &others[0])); /* of what was not asked nothing is known */
    assert_false(lp_seen_same(&others[4], &others[4]));
}

static void what_has_no_room_is_left_out(void **state)
{
    (void)state;
    struct lp_seen *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    struct lp_seen_row *row = NULL;
    for (int i = 0; i < LP_SEEN_ROWS_MAX; i++)
        assert_non_null(row = lp_seen_add_row(seen, (enum lp_seen_arm)0, false));
    assert_null(lp_seen_add_row(seen, (enum lp_seen_arm)0, false));
    for (int i = 0; i < LP_SEEN_CALLS_MAX + 1; i++)
        lp_seen_add_call(row, (enum lp_seen_mark)0, 70000);
    assert_int_equal(row->count, LP_SEEN_CALLS_MAX);
    assert_int_equal(row->distance[0], UINT16_MAX);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_printable_and_cut),
        cmocka_unit_test(answers_are_the_same_when_nothing_tells_them_apart),
        cmocka_unit_test(what_has_no_room_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
