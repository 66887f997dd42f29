/* Proves that each LOOK is answered once, never from within the call, by what is there. No name
 * server is asked: the names here are addresses, or none that could have one. */
#include "io_harness.h"

static char found[4096];
static int error;

static void keep(struct engine *e, const struct lp_event *event)
{
    (void)e;
    if (event->kind != LP_EV_LOOKED)
        return;
    error = event->u.looked.error;
    snprintf(found, sizeof found, "%.*s", (int)event->u.looked.text.len, event->u.looked.text.ptr);
}

static int setup(void **state)
{
    struct engine *e = engine_plain();
    e->hook = keep;
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    engine_free(*state);
    return 0;
}

static int64_t look(struct engine *e, bool is_file, const char *text)
{
    struct lp_action action = {
        .kind = LP_ACT_LOOK, .u.look = {.is_file = is_file, .text = lp_span_str(text)}};
    return act(e, action);
}

static void assert_found(struct engine *e, bool is_file, const char *text, const char *want)
{
    uint32_t before = e->counts[LP_EV_LOOKED];
    assert_int_equal(look(e, is_file, text), LP_OK);
    TURN_UNTIL(e, e->counts[LP_EV_LOOKED] == before + 1);
    assert_int_equal(error, LP_OK);
    assert_string_equal(found, want);
}

static void assert_refused(struct engine *e, bool is_file, const char *text, int want)
{
    uint32_t before = e->counts[LP_EV_LOOKED];
    assert_int_equal(look(e, is_file, text), LP_OK);
    TURN_UNTIL(e, e->counts[LP_EV_LOOKED] == before + 1);
    assert_int_equal(error, want);
    assert_string_equal(found, "");
}

static void names(void **state)
{
    char longest[80];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_found(*state, false, "127.0.0.1", "127.0.0.1\n");
    assert_found(*state, false, "::1", "::1\n");
    assert_refused(*state, false, longest, LP_ENOT_FOUND); /* a label has 63 bytes at most */
    assert_refused(*state, false, "", LP_ENOT_FOUND);
}

static void files(void **state)
{
    char path[] = "/tmp/limpet-look-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a\nb\n", 4), 4);
    assert_found(*state, true, path, "a\nb\n");
    assert_int_equal(write(fd, "c", 1), 1); /* it is read anew each time */
    assert_found(*state, true, path, "a\nb\nc");
    assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
    assert_refused(*state, true, path, LP_ELIMIT);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_found(*state, true, path, "");
    close(fd);
    unlink(path);
    assert_refused(*state, true, path, LP_ENOT_FOUND);
    assert_refused(*state, true, "/", LP_EIO);
}

static void one_at_a_time(void **state)
{
    struct engine *e = *state;
    assert_int_equal(look(e, true, "/dev/null"), LP_OK);
    assert_int_equal(look(e, true, "/dev/null"), LP_EEXISTS);
    TURN_UNTIL(e, e->counts[LP_EV_LOOKED] == 1);
    assert_int_equal(look(e, true, "/dev/null"), LP_OK);
    /* the loop ends while the answer is on its way: the teardown */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
