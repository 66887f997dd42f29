/* Server-sent events: what each line means, where borders are, what is written (wire/sse.h; cases
 * PAR-01 to PAR-04). Splits are the property test's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/sse.h"

enum { EVENTS_MAX = 8, EVENT_BYTES_MAX = 1 << 20 };

/* Events of a whole input, told as "type|id|data" or, without data, "type|id". */
struct heard {
    int count;
    char events[EVENTS_MAX][64];
    uint64_t retry_ms;
    ptrdiff_t verdict;
};

static void tell(char *room, size_t room_len, const struct lp_sse_event *e)
{
    int n = snprintf(room, room_len, "%.*s|%s%.*s%s%.*s", (int)e->type.len, e->type.ptr,
        e->has_id ? "*" : "", (int)e->id.len, e->id.len ? e->id.ptr : "", e->has_data ? "|" : "",
        (int)e->data.len, e->data.len ? e->data.ptr : "");
    assert_true(n > 0 && (size_t)n < room_len);
}

static struct heard hear_limited(struct lp_span in, size_t event_max)
{
    struct heard h = {.count = 0};
    struct lp_sse reader;
    lp_sse_init(&reader, event_max);
    while (in.len && h.verdict >= 0) {
        struct lp_sse_event event;
        bool ready = false;
        h.verdict = lp_sse_feed(&reader, in, &event, &ready);
        if (h.verdict < 0)
            break;
        in = lp_span_from(in, (size_t)h.verdict);
        assert_true(ready || in.len == 0);
        if (!ready)
            continue;
        assert_true(h.count < EVENTS_MAX);
        tell(h.events[h.count++], sizeof h.events[0], &event);
        if (event.has_retry)
            h.retry_ms = event.retry_ms;
    }
    lp_sse_release(&reader);
    return h;
}

static struct heard hear(struct lp_span in)
{
    struct heard h = hear_limited(in, EVENT_BYTES_MAX);
    assert_true(h.verdict >= 0);
    return h;
}

/* PAR-01: empty data is an event, an id alone is remembered, a comment is nothing. */
static void test_events_without_data(void **state)
{
    (void)state;
    struct heard h = hear(LP_SPAN("id: 1\ndata:\n\nid: 2\ndata\n\nevent: message\ndata: {}\n\n"
                                  ":c\n\nid: 3\n\n"));
    assert_int_equal(h.count, 4);
    assert_string_equal(h.events[0], "message|*1|");
    assert_string_equal(h.events[1], "message|*2|");
    assert_string_equal(h.events[2], "message|2|{}");
    assert_string_equal(h.events[3], "message|*3");
}

/* PAR-02: the same three events with every kind of line end. */
static void test_line_ends(void **state)
{
    (void)state;
    const struct lp_span forms[] = {
        LP_SPAN("data: 1\n\nevent: b\ndata: 2\n\nid: c\ndata: 3\n\n"),
        LP_SPAN("data: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\nid: c\r\ndata: 3\r\n\r\n"),
        LP_SPAN("data: 1\r\revent: b\rdata: 2\r\rid: c\rdata: 3\r\r"),
        LP_SPAN("data: 1\r\n\revent: b\ndata: 2\r\r\nid: c\rdata: 3\n\r"),
        LP_SPAN("data: 1\n\r\nevent: b\r\ndata: 2\r\n\nid: c\ndata: 3\r\r"),
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct heard h = hear(forms[i]);
        assert_int_equal(h.count, 3);
        assert_string_equal(h.events[0], "message||1");
        assert_string_equal(h.events[1], "b||2");
        assert_string_equal(h.events[2], "message|*c|3");
    }
}

/* PAR-03: data lines are joined, one space goes, names are exact. */
static void test_data_lines(void **state)
{
    (void)state;
    assert_string_equal(hear(LP_SPAN("data: {\ndata:   \"a\": 1\ndata: }\n\n")).events[0],
        "message||{\n  \"a\": 1\n}");
    struct heard five = hear(LP_SPAN("data:1\n\ndata:2\n\ndata:3\n\ndata:4\n\ndata:5\n\n"));
    assert_int_equal(five.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(five.events[i][9], '1' + i);
    }
    struct heard spaces = hear(LP_SPAN("data:x\n\ndata: x\n\ndata:  x\n\n"));
    assert_string_equal(spaces.events[0], "message||x");
    assert_string_equal(spaces.events[1], "message||x");
    assert_string_equal(spaces.events[2], "message|| x");
    struct heard names = hear(LP_SPAN("dataX: 1\nData: 1\n data: 1\n: data\n\n"));
    assert_int_equal(names.count, 1);
    assert_string_equal(names.events[0], "message|");
}

/* PAR-04: what has no empty line never happened, and its id neither. */
static void test_unfinished_event(void **state)
{
    (void)state;
    struct heard cut = hear(LP_SPAN("id: 1\ndata: {\"ok\":1}\n\nid: 2\ndata: {\"cut\":1}"));
    assert_int_equal(cut.count, 1);
    assert_string_equal(cut.events[0], "message|*1|{\"ok\":1}");
    assert_int_equal(hear(LP_SPAN("id: 2\ndata: {\"cut\":1}\n")).count, 0);
    struct heard last_cr = hear(LP_SPAN("data: 1\n\r"));
    assert_int_equal(last_cr.count, 1);
    assert_string_equal(last_cr.events[0], "message||1");
    assert_int_equal(hear(LP_SPAN("data: 2\r")).count, 0);
}

struct row {
    struct lp_span in;
    const char *first; /* the first event; NULL for none */
};

static const struct row rows[] = {
    {{"\xEF\xBB\xBF"
      "data: 1\n\n",
         12},
        "message||1"},
    {{"\n\xEF\xBB\xBF"
      "data: 1\n\n",
         13},
        "message|"}, /* a mark that leads nothing is a name */
    {{"\xEF\xBB\xBF\xEF\xBB\xBF"
      "data: 1\n\n",
         15},
        "message|"},
    {{"\xEF\xBB\xBF\n\n", 5}, NULL},
    {{"\n\r\r\n\n", 5}, NULL},
    {{":a\n\n::\n\n", 8}, NULL},
    {{"event: e\n\n", 10}, "e|"},
    {{"event: e\nevent:\ndata\n\n", 22}, "message||"},
    {{"event: a\nevent: b\ndata\n\n", 24}, "b||"},
    {{"id: a\nid: b\n\n", 13}, "message|*b"},
    {{"id: a\0b\ndata: 1\n\n", 17}, "message||1"},
    {{"id\ndata: 1\n\n", 12}, "message|*|1"},
    {{"data\ndata\n\n", 11}, "message||\n"},
    {{"data: a:b: c\n\n", 14}, "message||a:b: c"},
    {{"unknown\n\n", 9}, "message|"},
    {{"retry: 5\n\n", 10}, "message|"},
};

static void test_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct heard h = hear(rows[i].in);
        assert_int_equal(h.count, rows[i].first ? 1 : 0);
        if (rows[i].first)
            assert_string_equal(h.events[0], rows[i].first);
    }
}

/* An id stays until another comes, an empty one resets it, one with NUL is no id. */
static void test_last_event_id(void **state)
{
    (void)state;
    struct heard h = hear(LP_SPAN("id: 7\n\ndata: a\n\nid: x\0y\ndata: b\n\nid:\ndata: c\n\n"
                                  "data: d\n\n"));
    assert_int_equal(h.count, 5);
    assert_string_equal(h.events[1], "message|7|a");
    assert_string_equal(h.events[2], "message|7|b");
    assert_string_equal(h.events[3], "message|*|c");
    assert_string_equal(h.events[4], "message||d");
}

static void test_retry(void **state)
{
    (void)state;
    assert_int_equal(hear(LP_SPAN("retry: 1500\ndata: 1\n\n")).retry_ms, 1500);
    assert_int_equal(hear(LP_SPAN("retry: 5\nretry: 1x\ndata: 1\n\n")).retry_ms, 5);
    assert_int_equal(hear(LP_SPAN("retry\nretry: -1\nretry:  5\nretry: 0x5\n\n")).retry_ms, 0);
    assert_int_equal(hear(LP_SPAN("retry: 18446744073709551616\n\n")).retry_ms, 0);
}

static void test_place_in_the_stream(void **state)
{
    (void)state;
    struct lp_sse reader;
    struct lp_sse_event event;
    bool ready;
    struct lp_span in = LP_SPAN("\xEF\xBB\xBF:c\n\n:d\ndata: 1\r\n\r\ndata: 2");
    lp_sse_init(&reader, 100);
    /* The mark and the comment's block are not part of the event; the comment within is. */
    assert_int_equal(lp_sse_feed(&reader, in, &event, &ready), 21);
    assert_true(ready);
    assert_int_equal(event.raw_bytes, 14);
    in = lp_span_from(in, 21);
    assert_int_equal(lp_sse_feed(&reader, in, &event, &ready), 7);
    assert_false(ready);
    assert_int_equal(lp_sse_feed(&reader, LP_SPAN("\r\r\n:"), &event, &ready), 3);
    assert_true(ready);
    assert_int_equal(event.raw_bytes, 10);
    assert_int_equal(lp_sse_feed(&reader, LP_SPAN("data\n\r"), &event, &ready), 6);
    assert_true(ready);
    assert_int_equal(lp_sse_feed(&reader, LP_SPAN("\ndata\n\n"), &event, &ready), 7);
    assert_true(ready);
    assert_int_equal(event.raw_bytes, 6); /* the late LF is nobody's */
    lp_sse_release(&reader);
    lp_sse_release(&reader);
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(hear_limited(LP_SPAN("data: 4567\n\n"), 10).count, 1);
    assert_int_equal(hear_limited(LP_SPAN("data: 45678\n\n"), 10).verdict, LP_ETOO_LONG);
    assert_int_equal(hear_limited(LP_SPAN("data: 45678"), 10).verdict, LP_ETOO_LONG);
    assert_int_equal(hear_limited(LP_SPAN(": 345678901\n\n"), 10).verdict, LP_ETOO_LONG);
    /* 4 + 1 + 4 + 1 + 0 bytes of data fit, one more does not. */
    assert_int_equal(hear_limited(LP_SPAN("data: 1234\ndata: 6789\ndata\n\n"), 10).count, 1);
    assert_int_equal(
        hear_limited(LP_SPAN("data: 1234\ndata: 6789\ndata: 1\n\n"), 10).verdict, LP_ETOO_LONG);
    assert_int_equal(
        hear_limited(LP_SPAN("data: 1234\ndata: 6789\ndata\ndata\n\n"), 10).verdict, LP_ETOO_LONG);
}

struct border_row {
    struct lp_span in;
    size_t border;
    bool is_at;
};

static const struct border_row border_rows[] = {
    {{"", 0}, 0, true},
    {{"\n", 1}, 1, true},
    {{"\r", 1}, 1, true},
    {{"\r\n", 2}, 2, true},
    {{"data: 1", 7}, 0, false},
    {{"data: 1\n", 8}, 0, false},
    {{"data: 1\r\n", 9}, 0, false},
    {{"data: 1\n\n", 9}, 9, true},
    {{"data: 1\n\ndata: 2\n", 17}, 9, false},
    {{"data: 1\r\n\r\ndata: 2\r\n", 20}, 11, false},
    {{"data: 1\r\rd", 10}, 9, false},
    {{"data: 1\n\r", 9}, 9, true},
    {{"data: 1\n\r\n\n", 11}, 11, true},
    {{": c\n", 4}, 0, false},
};

static void test_border_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof border_rows / sizeof border_rows[0]; i++) {
        struct lp_sse_border b;
        lp_sse_border_init(&b);
        assert_true(lp_sse_border_at(&b));
        assert_int_equal(lp_sse_border_feed(&b, border_rows[i].in), border_rows[i].border);
        assert_int_equal(lp_sse_border_at(&b), border_rows[i].is_at);
    }
}

/* An LF that comes late moves the border when it belongs to one, and is nothing otherwise. */
static void test_border_between_cr_and_lf(void **state)
{
    (void)state;
    struct lp_sse_border b;
    lp_sse_border_init(&b);
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("data: 1\r\n\r")), 10);
    assert_true(lp_sse_border_at(&b));
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("")), 0);
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("\n")), 1);
    assert_true(lp_sse_border_at(&b));
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("data: 2\r")), 0);
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("\n")), 0);
    assert_false(lp_sse_border_at(&b));
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("\n")), 1);
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("x\r")), 0);
    assert_int_equal(lp_sse_border_feed(&b, LP_SPAN("\r")), 1);
}

static void check_write(
    struct lp_span type, struct lp_span id, struct lp_span data, struct lp_span expect)
{
    struct lp_buf out;
    lp_buf_init(&out, 1000);
    assert_int_equal(lp_buf_append(&out, LP_SPAN("x")), LP_OK);
    assert_int_equal(lp_sse_write(&out, type, id, data), LP_OK);
    assert_true(lp_span_eq(lp_span_from(lp_buf_span(&out), 1), expect));
    lp_buf_release(&out);
}

static void test_write(void **state)
{
    (void)state;
    const struct lp_span none = {NULL, 0};
    check_write(none, none, none, LP_SPAN("data: \n\n"));
    check_write(none, none, LP_SPAN("{}"), LP_SPAN("data: {}\n\n"));
    check_write(LP_SPAN("endpoint"), LP_SPAN("7"), LP_SPAN("/m"),
        LP_SPAN("event: endpoint\nid: 7\ndata: /m\n\n"));
    check_write(none, none, LP_SPAN("a\nb\rc\r\nd\n\r"),
        LP_SPAN("data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n"));
    check_write(LP_SPAN("a\0"), LP_SPAN(" 1"), LP_SPAN(" \0"),
        LP_SPAN("event: a\0\nid:  1\ndata:  \0\n\n"));
}

static void test_write_refuses(void **state)
{
    (void)state;
    struct lp_buf out;
    const struct lp_span none = {NULL, 0};
    const struct lp_span bad[] = {LP_SPAN("\n"), LP_SPAN("a\nb"), LP_SPAN("\r"), LP_SPAN("a\r\n")};
    lp_buf_init(&out, 20);
    assert_int_equal(lp_buf_append(&out, LP_SPAN("1234")), LP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(lp_sse_write(&out, bad[i], none, none), LP_ESYNTAX);
        assert_int_equal(lp_sse_write(&out, none, bad[i], none), LP_ESYNTAX);
    }
    assert_int_equal(lp_sse_write(&out, none, LP_SPAN("a\0"), none), LP_ESYNTAX);
    /* Nothing of an event that does not fit stays. */
    assert_int_equal(lp_sse_write(&out, none, none, LP_SPAN("1\n2345")), LP_ELIMIT);
    assert_int_equal(lp_sse_write(&out, LP_SPAN("123456789"), none, none), LP_ELIMIT);
    assert_int_equal(lp_sse_write(&out, none, LP_SPAN("1"), LP_SPAN("1234")), LP_ELIMIT);
    assert_int_equal(lp_sse_write(&out, none, none, LP_SPAN("123456789")), LP_ELIMIT);
    assert_true(lp_span_eq(lp_buf_span(&out), LP_SPAN("1234")));
    assert_int_equal(lp_sse_write(&out, none, none, LP_SPAN("12345678")), LP_OK);
    lp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_without_data),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_data_lines),
        cmocka_unit_test(test_unfinished_event),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_last_event_id),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_place_in_the_stream),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_border_table),
        cmocka_unit_test(test_border_between_cr_and_lf),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
