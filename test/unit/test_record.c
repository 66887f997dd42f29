/* Access lines: the JSON one reads back through an independent JSON reader, the text one fits a
 * terminal and never carries a control byte; and times by a table of known days. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/error.h"
#include "base/time.h"
#include "obs/record.h"

static struct lp_record whole_record(void)
{
    return (struct lp_record){
        .wall_ms = 1796014800123,
        .duration_us = 1234,
        .first_byte_us = 1001,
        .server = LP_SPAN("tools"),
        .peer = LP_SPAN("192.0.2.7:1234"),
        .http_method = LP_SPAN("POST"),
        .path = LP_SPAN("/mcp"),
        .rpc_method = LP_SPAN("tools/call"),
        .replica = LP_SPAN("10.0.0.11:3001/mcp"),
        .incarnation = 3,
        .session = 0xabc123,
        .trace_id = LP_SPAN("0af7651916cd43dd8448eb211c80319c"),
        .status = 200,
        .reason = LP_REASON_answered,
        .is_stream = true,
        .is_modern = true,
        .attempts = 1,
        .engine = 2,
        .bytes_in = 10,
        .bytes_out = 20,
    };
}

static struct lp_buf write_line(const struct lp_record *record, bool as_json)
{
    struct lp_buf out;
    lp_buf_init(&out, 1 << 16);
    assert_int_equal(lp_record_write(&out, record, as_json), LP_OK);
    assert_int_equal(lp_buf_append(&out, lp_span("", 1)), LP_OK);
    return out;
}

static void check_line(const struct lp_record *record, bool as_json, const char *line)
{
    struct lp_buf out = write_line(record, as_json);
    assert_string_equal(out.ptr, line);
    lp_buf_release(&out);
}

static void whole_record_as_json(void **state)
{
    (void)state;
    struct lp_record record = whole_record();
    check_line(&record, true,
        "{\"time\":\"2026-11-30T05:00:00.123Z\",\"server\":\"tools\",\"peer\":\"192.0.2.7:1234\","
        "\"http_method\":\"POST\",\"path\":\"/mcp\",\"rpc_method\":\"tools/call\",\"status\":200,"
        "\"reason\":\"answered\",\"replica\":\"10.0.0.11:3001/mcp\",\"incarnation\":3,"
        "\"session\":\"0000000000abc123\",\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\","
        "\"duration_ms\":1.234,\"first_byte_ms\":1.001,\"stream\":true,\"modern\":true,"
        "\"attempts\":1,\"engine\":2,\"bytes_in\":10,\"bytes_out\":20}");
}

static void empty_members_are_left_out(void **state)
{
    (void)state;
    struct lp_record record = {.reason = LP_REASON_client_left};
    check_line(&record, true,
        "{\"time\":\"1970-01-01T00:00:00.000Z\",\"reason\":\"client_left\",\"duration_ms\":0.000,"
        "\"engine\":0}");
}

static void check_path(struct lp_span path, const char *meaning, size_t meaning_len)
{
    struct lp_record record = {.path = path};
    struct lp_buf out = write_line(&record, true);
    json_t *json = json_loadb(out.ptr, out.len - 1, JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    const json_t *value = json_object_get(json, "path");
    assert_int_equal(json_string_length(value), meaning_len);
    assert_memory_equal(json_string_value(value), meaning, meaning_len);
    json_decref(json);
    lp_buf_release(&out);
}

static void every_byte_is_escaped_where_it_must_be(void **state)
{
    (void)state;
    for (int c = 0; c < 0x80; c++) {
        char text[3] = {'a', (char)c, 'b'};
        check_path(lp_span(text, 3), text, 3);
    }
    check_path(
        LP_SPAN("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    check_path(LP_SPAN("\xed\x9f\xbf\xf4\x8f\xbf\xbf"), "\xed\x9f\xbf\xf4\x8f\xbf\xbf", 7);
}

/* Bad UTF-8: each byte that begins no sequence becomes U+FFFD. */
static void bad_utf8_is_replaced(void **state)
{
    static const struct {
        const char *bytes;
        size_t bad_count;
    } ROWS[] = {
        {"\x80", 1},
        {"\xff", 1},
        {"\xc0\x80", 2},
        {"\xc1\xbf", 2},
        {"\xe0\x9f\xbf", 3},
        {"\xed\xa0\x80", 3},
        {"\xf0\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 4},
        {"\xf5\x80\x80\x80", 4},
        {"\xc3", 1},
        {"\xe2\x82", 2},
        {"\xf0\x9f\x98", 3},
        {"\xf0\x9f\x98z", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char meaning[64] = "";
        size_t len = 0;
        for (size_t j = 0; j < ROWS[i].bad_count; j++)
            len += (size_t)snprintf(meaning + len, sizeof meaning - len, "\xef\xbf\xbd");
        if (strchr(ROWS[i].bytes, 'z'))
            len += (size_t)snprintf(meaning + len, sizeof meaning - len, "z");
        check_path(lp_span_str(ROWS[i].bytes), meaning, len);
    }
}

static void text_is_short(void **state)
{
    (void)state;
    struct lp_record record = whole_record();
    check_line(&record, false,
        "2026-11-30T05:00:00.123Z POST /mcp tools/call 200 1.2ms -> 10.0.0.11:3001/mcp (answered)");
    record = (struct lp_record){.wall_ms = 86399999, .reason = LP_REASON_client_left};
    check_line(&record, false, "1970-01-01T23:59:59.999Z - - 0.0ms (client_left)");
}

static void long_and_odd_words_are_tamed(void **state)
{
    (void)state;
    struct lp_record record = whole_record();
    record.path = LP_SPAN("/a b\x1b[2J\xc3\xa9");
    record.rpc_method = LP_SPAN("0123456789012345678901234567");
    record.replica = LP_SPAN("a234567890b234567890c234567890d234567890e");
    check_line(&record, false,
        "2026-11-30T05:00:00.123Z POST /a?b?[2J?? 0123456789012345678901234567 200 1.2ms -> "
        "a234567890b234567890c234567890d234567... (answered)");
}

static void time_spans_have_few_digits(void **state)
{
    static const struct {
        uint64_t us;
        const char *text;
    } ROWS[] = {
        {0, "0.0ms"},
        {99, "0.0ms"},
        {100, "0.1ms"},
        {99999, "99.9ms"},
        {100000, "100ms"},
        {999999, "999ms"},
        {1000000, "1.0s"},
        {1960000, "1.9s"},
        {59999999, "59.9s"},
        {60000000, "1m00s"},
        {3725000000, "62m05s"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char line[128];
        struct lp_record record = {
            .http_method = LP_SPAN("GET"), .duration_us = ROWS[i].us, .status = 404};
        snprintf(line, sizeof line, "1970-01-01T00:00:00.000Z GET 404 %s (none)", ROWS[i].text);
        check_line(&record, false, line);
    }
}

static void times_are_right(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } ROWS[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {68169600000, "1972-02-29T00:00:00.000Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1796014800123, "2026-11-30T05:00:00.123Z"},
        {4107542399000, "2100-02-28T23:59:59.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {UINT64_MAX, "9999-12-31T23:59:59.999Z"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct lp_buf out;
        lp_buf_init(&out, 24);
        assert_int_equal(lp_time_write(&out, ROWS[i].ms), LP_OK);
        assert_true(lp_span_eq(lp_buf_span(&out), lp_span_str(ROWS[i].text)));
        lp_buf_release(&out);
        lp_buf_init(&out, 23);
        assert_int_equal(lp_time_write(&out, ROWS[i].ms), LP_ELIMIT);
        assert_int_equal(out.len, 0);
        lp_buf_release(&out);
    }
}

/* A line that does not fit leaves what was there before, and nothing else. */
static void full_buffer_keeps_no_half_line(void **state)
{
    (void)state;
    struct lp_record record = whole_record();
    record.server = LP_SPAN("\"\x01\xff");
    for (int as_json = 0; as_json < 2; as_json++) {
        struct lp_buf out = write_line(&record, as_json);
        size_t len = out.len - 1;
        lp_buf_release(&out);
        for (size_t room = 0; room < len; room++) {
            lp_buf_init(&out, room + 1);
            assert_int_equal(lp_buf_append(&out, LP_SPAN("x")), LP_OK);
            assert_int_equal(lp_record_write(&out, &record, as_json), LP_ELIMIT);
            assert_true(lp_span_eq(lp_buf_span(&out), LP_SPAN("x")));
            lp_buf_release(&out);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(whole_record_as_json),
        cmocka_unit_test(empty_members_are_left_out),
        cmocka_unit_test(every_byte_is_escaped_where_it_must_be),
        cmocka_unit_test(bad_utf8_is_replaced),
        cmocka_unit_test(text_is_short),
        cmocka_unit_test(long_and_odd_words_are_tamed),
        cmocka_unit_test(time_spans_have_few_digits),
        cmocka_unit_test(times_are_right),
        cmocka_unit_test(full_buffer_keeps_no_half_line),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
