/* Prepared answers: by method, in turn, the last one for all further questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/answers.h"

static void expect(struct lp_answers *answers, const char *method, const char *wanted)
{
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    int err = lp_answers_next(answers, lp_span_str(method), &out);
    if (!wanted) {
        assert_int_equal(err, LP_ENOT_FOUND);
    } else {
        assert_int_equal(err, LP_OK);
        assert_int_equal(out.len, strlen(wanted));
        assert_memory_equal(lp_buf_span(&out).ptr, wanted, out.len);
    }
    lp_buf_release(&out);
}

static void test_in_turn(void **state)
{
    (void)state;
    struct lp_answers a;
    assert_int_equal(lp_answers_init(&a,
                         LP_SPAN(" {\"elicitation/create\":[{\"name\":\"Ada\"},{\"action\":"
                                 "\"decline\"},{}],\"roots/list\":{\"roots\":[]},"
                                 "\"sampling\\/createMessage\":[],\"x\":7}")),
        LP_OK);
    assert_true(lp_answers_has(&a, LP_SPAN("roots/list")));
    assert_true(lp_answers_has(&a, LP_SPAN("sampling/createMessage")));
    assert_false(lp_answers_has(&a, LP_SPAN("ping")));
    expect(&a, "elicitation/create", "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}");
    expect(&a, "elicitation/create", "{\"action\":\"decline\"}");
    for (int i = 0; i < 3; i++) {
        expect(&a, "elicitation/create", "{\"action\":\"accept\",\"content\":{}}");
        expect(&a, "roots/list", "{\"roots\":[]}");
    }
    expect(&a, "x", "7");
    expect(&a, "sampling/createMessage", NULL);
    expect(&a, "ping", NULL);
    lp_answers_fini(&a);
}

static void test_what_nobody_asks(void **state)
{
    (void)state;
    struct lp_answers a;
    assert_int_equal(
        lp_answers_init(&a, LP_SPAN("{\"roots/list\":{},\"sampling\\/createMessage\":1}")), LP_OK);
    assert_int_equal(lp_answers_unknown(&a).len, 0);
    lp_answers_fini(&a);
    assert_int_equal(lp_answers_init(&a, LP_SPAN("{\"roots/list\":{},\"elicitation\":1}")), LP_OK);
    assert_true(lp_span_eq(lp_answers_unknown(&a), LP_SPAN("\"elicitation\"")));
    lp_answers_fini(&a);
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "[]", "7", "{", "{}{}", "nonsense"};
    struct lp_answers a;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(lp_answers_init(&a, lp_span_str(BAD[i])), LP_ESYNTAX);
        lp_answers_fini(&a);
    }
    char many[1024] = "{";
    for (int i = 0; i <= LP_ANSWERS_METHODS_MAX; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%s\"m%d\":1", i ? "," : "", i);
    strcat(many, "}");
    assert_int_equal(lp_answers_init(&a, lp_span_str(many)), LP_ELIMIT);
    lp_answers_fini(&a);
    lp_answers_fini(&a); /* twice is harmless */
}

static void test_too_large(void **state)
{
    (void)state;
    struct lp_answers a;
    struct lp_buf out;
    assert_int_equal(lp_answers_init(&a, LP_SPAN("{\"m\":\"0123456789\"}")), LP_OK);
    lp_buf_init(&out, 4);
    assert_int_equal(lp_answers_next(&a, LP_SPAN("m"), &out), LP_ELIMIT);
    lp_buf_release(&out);
    lp_answers_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_what_nobody_asks),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
