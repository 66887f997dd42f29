/* Lines over standard input and output: any split of the input gives the same lines, nothing that
 * was sent is lost or reordered however little the shell takes, and limits are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/lines.h"

enum { CONN = 7, ROOM = 1 << 16 };

struct world {
    struct lp_shell shell;
    struct lp_lines lines;
    char heard[ROOM]; /* lines, each ended by '|' */
    size_t heard_len;
    uint32_t too_long, ended;
    int broken;
    char written[ROOM];
    size_t written_len;
    size_t takes; /* bytes that a WRITE takes at most */
    int error;    /* what CONNECT and WRITE say instead, when not 0 */
    struct lp_span drain;
    uint32_t closes;
};

static void put(char *room, size_t *len, struct lp_span bytes)
{
    assert_true(*len + bytes.len < ROOM);
    memcpy(room + *len, bytes.ptr, bytes.len);
    *len += bytes.len;
    room[*len] = 0;
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    if (w->error && (action->kind == LP_ACT_CONNECT || action->kind == LP_ACT_WRITE))
        return w->error;
    if (action->kind == LP_ACT_CONNECT) {
        assert_int_equal(action->u.connect.kind, LP_EP_STDIO);
        return CONN;
    }
    if (action->kind == LP_ACT_CLOSE)
        w->closes++;
    if (action->kind == LP_ACT_DRAIN) {
        assert_int_equal(w->drain.len, 0);
        w->drain = action->u.drain;
    }
    if (action->kind != LP_ACT_WRITE)
        return LP_OK;
    struct lp_span part = action->u.write.parts[0];
    if (part.len > w->takes)
        part.len = w->takes;
    if (part.len)
        put(w->written, &w->written_len, part);
    return (int64_t)part.len;
}

static void on_line(void *ctx, struct lp_span line)
{
    struct world *w = ctx;
    put(w->heard, &w->heard_len, line);
    put(w->heard, &w->heard_len, LP_SPAN("|"));
}

static void on_too_long(void *ctx)
{
    ((struct world *)ctx)->too_long++;
}

static void on_ended(void *ctx)
{
    ((struct world *)ctx)->ended++;
}

static void on_broken(void *ctx, int error)
{
    ((struct world *)ctx)->broken = error;
}

static const struct lp_lines_ops OPS = {on_line, on_too_long, on_ended, on_broken};

static void event(struct world *w, struct lp_event e)
{
    e.conn = CONN;
    assert_true(lp_lines_event(&w->lines, &e));
    lp_lines_flush(&w->lines);
}

static void feed(struct world *w, struct lp_span bytes)
{
    event(w, (struct lp_event){.kind = LP_EV_READ, .u.bytes = bytes});
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->shell = (struct lp_shell){.ctx = w, .perform = perform};
    w->takes = SIZE_MAX;
    assert_int_equal(lp_lines_open(&w->lines, &w->shell, &OPS, w), LP_OK);
    event(w, (struct lp_event){.kind = LP_EV_CONNECTED});
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    lp_lines_fini(&w->lines);
    free(w);
    return 0;
}

static void any_split_gives_the_same_lines(void **state)
{
    static const char TEXT[] = "{\"a\":1}\n\n{\"b\":\"x\"}\r\nlast";
    size_t len = sizeof TEXT - 1;
    for (size_t a = 0; a <= len; a++)
        for (size_t b = a; b <= len; b++) {
            struct world *w = *state;
            w->heard_len = 0;
            feed(w, lp_span(TEXT, a));
            feed(w, lp_span(TEXT + a, b - a));
            feed(w, lp_span(TEXT + b, len - b));
            event(w, (struct lp_event){.kind = LP_EV_EOF});
            assert_string_equal(w->heard, "{\"a\":1}|{\"b\":\"x\"}|last|");
            assert_int_equal(w->ended, 1);
            assert_int_equal(w->too_long, 0);
            tear_down(state);
            set_up(state);
        }
}

static void a_line_too_long_is_dropped_alone(void **state)
{
    struct world *w = *state;
    size_t big = LP_LINES_IN_MAX;
    char *bytes = malloc(big);
    assert_non_null(bytes);
    memset(bytes, 'x', big);
    feed(w, lp_span(bytes, big));
    feed(w, lp_span(bytes, big));
    assert_int_equal(w->too_long, 0); /* it is told when its end is seen */
    feed(w, LP_SPAN("xx\nnext\n"));
    assert_int_equal(w->too_long, 1);
    assert_string_equal(w->heard, "next|");
    free(bytes);
}

static void what_is_sent_goes_out_in_order_however_little_is_taken(void **state)
{
    struct world *w = *state;
    w->takes = 3;
    lp_lines_send(&w->lines, LP_SPAN("{\"a\":\n1}"));
    lp_lines_flush(&w->lines);
    assert_string_equal(w->written, "{\"a");
    lp_lines_send(&w->lines, LP_SPAN("{\"b\":\r\n2}"));
    lp_lines_flush(&w->lines);
    assert_false(lp_lines_are_out(&w->lines));
    for (int turns = 0; !lp_lines_are_out(&w->lines); turns++) {
        assert_true(turns < 10);
        put(w->written, &w->written_len, w->drain);
        w->drain = lp_span(NULL, 0);
        event(w, (struct lp_event){.kind = LP_EV_DRAINED});
    }
    assert_string_equal(w->written, "{\"a\": 1}\n{\"b\":  2}\n");
}

/* Node's readline and Python's splitlines take them for line ends. */
static void other_line_ends_are_escaped(void **state)
{
    struct world *w = *state;
    lp_lines_send(&w->lines, LP_SPAN("{\"\u2028\":\"\u2029\u2029x\xC2\x85\xC2\xA0\xE2\x80\xA6\"}"));
    lp_lines_send(&w->lines, LP_SPAN("\"\u2028"));
    lp_lines_flush(&w->lines);
    assert_string_equal(
        w->written, "{\"\\u2028\":\"\\u2029\\u2029x\\u0085\xC2\xA0\xE2\x80\xA6\"}\n\"\\u2028\n");
}

static void before_the_connection_is_there_nothing_is_written(void **state)
{
    struct world *w = *state;
    lp_lines_fini(&w->lines);
    assert_int_equal(lp_lines_open(&w->lines, &w->shell, &OPS, w), LP_OK);
    lp_lines_send(&w->lines, LP_SPAN("1"));
    lp_lines_flush(&w->lines);
    assert_int_equal(w->written_len, 0);
    event(w, (struct lp_event){.kind = LP_EV_CONNECTED});
    assert_string_equal(w->written, "1\n");
}

static void a_reader_that_is_gone_is_told_once(void **state)
{
    struct world *w = *state;
    event(w, (struct lp_event){.kind = LP_EV_BROKEN});
    assert_int_equal(w->broken, LP_EBROKEN);
    w->broken = 0;
    lp_lines_send(&w->lines, LP_SPAN("1"));
    lp_lines_flush(&w->lines);
    assert_int_equal(w->broken, 0);
    assert_int_equal(w->written_len, 0);
    assert_true(lp_lines_are_out(&w->lines));
}

static void a_reader_that_takes_nothing_is_given_up(void **state)
{
    struct world *w = *state;
    size_t big = LP_LINES_OUT_MAX / 2;
    char *bytes = malloc(big);
    assert_non_null(bytes);
    memset(bytes, 'x', big);
    w->takes = 0;
    for (int i = 0; i < 4 && !w->broken; i++) {
        lp_lines_send(&w->lines, lp_span(bytes, big));
    }
    assert_int_equal(w->broken, LP_ELIMIT);
    free(bytes);
}

static void a_shell_that_has_no_input_says_so(void **state)
{
    struct world *w = *state;
    lp_lines_fini(&w->lines);
    w->error = LP_EIO;
    assert_int_equal(lp_lines_open(&w->lines, &w->shell, &OPS, w), LP_EIO);
}

/* The word about it comes as an event of its own, once, and no line is told after it. */
static void a_write_that_fails_waits_for_the_end(void **state)
{
    struct world *w = *state;
    w->error = LP_EBROKEN;
    lp_lines_send(&w->lines, LP_SPAN("1"));
    lp_lines_flush(&w->lines);
    assert_int_equal(w->broken, 0);
    assert_false(lp_lines_are_out(&w->lines));
    event(w, (struct lp_event){.kind = LP_EV_BROKEN});
    assert_int_equal(w->broken, LP_EBROKEN);
    w->broken = 0;
    struct lp_event late = {.kind = LP_EV_READ, .conn = CONN, .u.bytes = LP_SPAN("x\n")};
    assert_false(lp_lines_event(&w->lines, &late));
    assert_int_equal(w->heard_len, 0);
}

/* Whoever is given up for taking nothing is not given up again when he is seen to be gone. */
static void one_that_was_given_up_is_told_once(void **state)
{
    struct world *w = *state;
    w->takes = 0;
    char *bytes = calloc(1, LP_LINES_OUT_MAX);
    assert_non_null(bytes);
    lp_lines_send(&w->lines, lp_span(bytes, LP_LINES_OUT_MAX));
    free(bytes);
    assert_int_equal(w->broken, LP_ELIMIT);
    w->broken = 0;
    feed(w, LP_SPAN("not heard\n"));
    event(w, (struct lp_event){.kind = LP_EV_BROKEN});
    assert_int_equal(w->broken, 0);
    assert_int_equal(w->heard_len, 0);
}

static void input_that_ends_in_a_line_too_long_is_told(void **state)
{
    struct world *w = *state;
    char *bytes = malloc(LP_LINES_IN_MAX + 2);
    assert_non_null(bytes);
    memset(bytes, 'x', LP_LINES_IN_MAX + 2);
    feed(w, lp_span(bytes, LP_LINES_IN_MAX + 2));
    event(w, (struct lp_event){.kind = LP_EV_EOF});
    assert_int_equal(w->too_long, 1);
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->heard_len, 0);
    free(bytes);
}

/* The limit holds for a line that comes in two pieces, the second with its end, too. */
static void a_line_that_ends_past_the_limit_is_dropped(void **state)
{
    struct world *w = *state;
    char *bytes = malloc(LP_LINES_IN_MAX);
    assert_non_null(bytes);
    memset(bytes, 'x', LP_LINES_IN_MAX);
    feed(w, lp_span(bytes, LP_LINES_IN_MAX));
    feed(w, LP_SPAN("xx\nnext\n"));
    assert_int_equal(w->too_long, 1);
    assert_string_equal(w->heard, "next|");
    free(bytes);
}

static void events_of_others_are_left_alone(void **state)
{
    struct world *w = *state;
    struct lp_event e = {.kind = LP_EV_READ, .conn = CONN + 1, .u.bytes = LP_SPAN("x\n")};
    assert_false(lp_lines_event(&w->lines, &e));
    e = (struct lp_event){.kind = LP_EV_TIMER};
    assert_false(lp_lines_event(&w->lines, &e));
    assert_int_equal(w->heard_len, 0);
}

static void no_standard_input_is_told(void **state)
{
    struct world *w = *state;
    struct lp_event e = {.kind = LP_EV_CONNECT_FAILED, .conn = CONN, .u.error = LP_EIO};
    assert_true(lp_lines_event(&w->lines, &e));
    assert_int_equal(w->broken, LP_EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_split_gives_the_same_lines),
        TEST(a_line_too_long_is_dropped_alone),
        TEST(what_is_sent_goes_out_in_order_however_little_is_taken),
        TEST(other_line_ends_are_escaped),
        TEST(before_the_connection_is_there_nothing_is_written),
        TEST(a_reader_that_is_gone_is_told_once),
        TEST(a_reader_that_takes_nothing_is_given_up),
        TEST(a_shell_that_has_no_input_says_so),
        TEST(a_write_that_fails_waits_for_the_end),
        TEST(one_that_was_given_up_is_told_once),
        TEST(input_that_ends_in_a_line_too_long_is_told),
        TEST(a_line_that_ends_past_the_limit_is_dropped),
        TEST(events_of_others_are_left_alone),
        TEST(no_standard_input_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
