/* Event histories: numbers, limits, what stays; and templates of addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "serve/history.h"
#include "serve/uri_template.h"

static void events_are_numbered_and_read_in_order(void **state)
{
    (void)state;
    struct lp_history h;
    struct lp_kept kept;
    lp_history_init(&h);
    assert_false(lp_history_get(&h, 1, &kept));
    assert_int_equal(lp_history_add(&h, LP_SPAN("one")), 0);
    assert_int_equal(lp_history_add(&h, LP_SPAN("two")), 0);
    assert_true(lp_history_get(&h, 2, &kept));
    assert_true(lp_span_eq(kept.bytes, LP_SPAN("two")));
    assert_int_equal(kept.number, 2);
    assert_false(lp_history_get(&h, 3, &kept));
    lp_history_drop(&h, 1);
    assert_true(lp_history_get(&h, 0, &kept));
    assert_int_equal(kept.number, 2);
    lp_history_drop(&h, 9);
    assert_int_equal(h.bytes, 0);
    lp_history_fini(&h);
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    struct lp_history h;
    struct lp_kept kept;
    lp_history_init(&h);
    for (int i = 0; i < LP_HISTORY_EVENTS + 5; i++)
        assert_int_equal(lp_history_add(&h, LP_SPAN("x")), 0);
    assert_int_equal(h.count, LP_HISTORY_EVENTS);
    assert_true(lp_history_get(&h, 1, &kept));
    assert_int_equal(kept.number, 6);
    lp_history_fini(&h);
}

static void bytes_are_bounded_but_the_newest_and_the_one_in_use_stay(void **state)
{
    (void)state;
    struct lp_history h;
    struct lp_kept kept;
    static char large[LP_HISTORY_BYTES];
    lp_history_init(&h);
    assert_int_equal(lp_history_add(&h, lp_span(large, sizeof large)), 0);
    h.in_use = 1;
    assert_int_equal(lp_history_add(&h, lp_span(large, sizeof large)), 0);
    assert_int_equal(lp_history_add(&h, LP_SPAN("x")), 0);
    assert_int_equal(h.count, 2);
    assert_true(lp_history_get(&h, 1, &kept));
    assert_int_equal(kept.number, 1);
    assert_true(lp_history_get(&h, 2, &kept));
    assert_int_equal(kept.number, 3);
    h.in_use = 0;
    assert_int_equal(lp_history_add(&h, lp_span(large, sizeof large)), 0);
    assert_int_equal(h.count, 1);
    lp_history_fini(&h);
}

static void templates_fit_or_not(void **state)
{
    static const struct {
        const char *text, *uri, *a, *b;
        bool fits;
    } ROWS[] = {
        {"t://x/{a}/data", "t://x/7/data", "7", "", true},
        {"t://x/{a}", "t://x/7", "7", "", true},
        {"t://{a}/{b}", "t://one/two", "one", "two", true},
        {"t://{a}-{b}.x", "t://1-2.x", "1", "2", true},
        {"t://x", "t://x", "", "", true},
        {"t://x/{a}/data", "t://x//data", "", "", false},
        {"t://x/{a}/data", "t://x/7/8/data", "7", "", false},
        {"t://x/{a}", "t://x/7/8", "", "", false},
        {"t://x/{a}", "t://y/7", "", "", false},
        {"t://x/{a}/data", "t://x/7/dat", "7", "", false},
        {"t://x/{a", "t://x/7", "", "", false},
        {"t://x", "t://xy", "", "", false},
    };
    (void)state;
    assert_false(lp_uri_is_template(LP_SPAN("t://x")));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct lp_span text = lp_span_str(ROWS[i].text);
        struct lp_span uri = lp_span_str(ROWS[i].uri);
        struct lp_span a = lp_uri_template_value(text, uri, LP_SPAN("a"));
        struct lp_span b = lp_uri_template_value(text, uri, LP_SPAN("b"));
        if (lp_uri_template_fits(text, uri) != ROWS[i].fits ||
            !lp_span_eq(a, lp_span_str(ROWS[i].a)) || !lp_span_eq(b, lp_span_str(ROWS[i].b)))
            fail_msg("row %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_numbered_and_read_in_order),
        cmocka_unit_test(the_oldest_go_first),
        cmocka_unit_test(bytes_are_bounded_but_the_newest_and_the_one_in_use_stay),
        cmocka_unit_test(templates_fit_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
