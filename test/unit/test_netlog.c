/* The network log: what a line looks like, and that no secret is in it while equal secrets can
 * still be seen to be equal (cases SEC-05). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "obs/netlog.h"

static const unsigned char KEY[LP_NETLOG_KEY_BYTES] = "0123456789abcde";
static const struct lp_netlog_at OUT = {1764522132123, 3, true};
static const struct lp_netlog_at IN = {1764522132123, 3, false};

struct lines {
    char text[65536];
    size_t len;
};

static void take(void *ctx, struct lp_span line)
{
    struct lines *l = ctx;
    memcpy(l->text, line.ptr, line.len);
    l->text[line.len] = '\0';
    l->len = line.len;
}

static void redacted(const struct lp_netlog *log, const char *name, const char *value, char *room)
{
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    struct lp_netlog_field field = {lp_span_str(name), lp_span_str(value), false};
    assert_int_equal(lp_netlog_redact_value(log, &field, &out), LP_OK);
    struct lp_span text = lp_buf_span(&out);
    memcpy(room, text.ptr ? text.ptr : "", text.len);
    room[text.len] = '\0';
    lp_buf_release(&out);
}

static void test_secrets(void **state)
{
    (void)state;
    struct lines lines = {0};
    struct lp_netlog log;
    char room[4096], other[4096], hash[LP_NETLOG_HASH_CHARS + 1];
    lp_netlog_init(&log, take, &lines, KEY);
    lp_netlog_hash(&log, LP_SPAN("SECRET"), hash);
    static const struct {
        const char *name;
        const char *value;
        const char *shown; /* % stands for the hash of SECRET */
    } CASES[] = {
        {"Authorization", "Bearer SECRET", "Bearer %"},
        {"authorization", "SECRET", "%"},
        {"Proxy-Authorization", "Basic  SECRET", "Basic %"},
        {"Cookie", "a=SECRET; b=SECRET", "a=%; b=%"},
        {"cookie", "SECRET", "%"},
        {"Set-Cookie", "lb=SECRET; Path=/; HttpOnly", "lb=%; Path=/; HttpOnly"},
        {"Mcp-Session-Id", "SECRET", "%"},
        {"X-Api-Key", "SECRET", "%"},
        {"X-Auth-Token", "SECRET", "%"},
        {"Location", "/messages?sessionId=SECRET&x=SECRET#SECRET", "/messages?sessionId=%&x=%"},
        {"Location", "/messages?SECRET", "/messages?%"},
        {"Content-Type", "text/event-stream", "text/event-stream"},
        {"Last-Event-ID", "s1-3", "s1-3"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char wanted[256];
        size_t n = 0;
        for (const char *p = CASES[i].shown; *p; p++) {
            if (*p == '%') {
                memcpy(wanted + n, hash, LP_NETLOG_HASH_CHARS);
                n += LP_NETLOG_HASH_CHARS;
            } else {
                wanted[n++] = *p;
            }
        }
        wanted[n] = '\0';
        redacted(&log, CASES[i].name, CASES[i].value, room);
        assert_string_equal(room, wanted);
    }
    redacted(&log, "Mcp-Session-Id", "OTHER", other);
    assert_string_not_equal(other, hash);
    struct lp_netlog_field own = {LP_SPAN("X-Mine"), LP_SPAN("SECRET"), true};
    lp_netlog_field(&log, OUT, &own);
    assert_null(strstr(lines.text, "SECRET"));
    assert_non_null(strstr(lines.text, hash));
    log.key[0] ^= 1;
    lp_netlog_hash(&log, LP_SPAN("SECRET"), room);
    assert_string_not_equal(room, hash);
    lp_netlog_fini(&log);
}

static void test_lines(void **state)
{
    (void)state;
    struct lines lines = {0};
    struct lp_netlog log;
    lp_netlog_init(&log, take, &lines, KEY);
    lp_netlog_start_line(&log, OUT, LP_SPAN("POST"), LP_SPAN("http://a/mcp"));
    assert_string_equal(lines.text, "2025-11-30T17:02:12.123Z 3 > POST http://a/mcp");
    lp_netlog_start_line(&log, IN, LP_SPAN("404"), LP_SPAN("Not Found"));
    assert_string_equal(lines.text, "2025-11-30T17:02:12.123Z 3 < 404 Not Found");
    lp_netlog_content(&log, IN, "event", LP_SPAN("result of 7"), LP_SPAN("{\"a\":1}"));
    assert_string_equal(lines.text, "2025-11-30T17:02:12.123Z 3 < (event) 7 bytes: result of 7");
    log.with_bodies = true;
    lp_netlog_content(&log, IN, "body", LP_SPAN(""), LP_SPAN("{\n\"a\":\"\x1b[31m\"}"));
    assert_string_equal(
        lines.text, "2025-11-30T17:02:12.123Z 3 < (body) 14 bytes | { \"a\":\" [31m\"}");
    lp_netlog_note(&log, IN, LP_SPAN("the connection broke"));
    assert_string_equal(lines.text, "2025-11-30T17:02:12.123Z 3 . the connection broke");
    lp_netlog_fini(&log);
}

static void test_large_bodies_are_cut(void **state)
{
    (void)state;
    struct lines lines = {0};
    struct lp_netlog log;
    size_t len = 100000;
    char *body = malloc(len);
    memset(body, 'x', len);
    lp_netlog_init(&log, take, &lines, KEY);
    log.with_bodies = true;
    lp_netlog_content(&log, IN, "body", LP_SPAN(""), lp_span(body, len));
    assert_true(lines.len < LP_NETLOG_LINE_MAX);
    assert_non_null(strstr(lines.text, "(cut here)"));
    assert_non_null(strstr(lines.text, "100000 bytes"));
    /* A field that does not fit is left out rather than shown in part. */
    lines.len = 0;
    struct lp_netlog_field large = {LP_SPAN("X-Large"), lp_span(body, len), false};
    lp_netlog_field(&log, IN, &large);
    assert_int_equal(lines.len, 0);
    free(body);
    lp_netlog_fini(&log);
}

static void write_one(struct lp_netlog *log, int which, const struct lp_netlog_field *field)
{
    if (which == 0)
        lp_netlog_start_line(log, OUT, LP_SPAN("POST"), LP_SPAN("http://a/mcp?a=1&b&&c=2"));
    else if (which == 1)
        lp_netlog_field(log, OUT, field);
    else if (which == 2)
        lp_netlog_content(log, IN, "body", LP_SPAN("a call"), LP_SPAN("{}"));
    else
        lp_netlog_note(log, IN, LP_SPAN("the connection broke"));
}

/* A line is there whole or not at all, wherever the room ends. */
static void test_lines_that_do_not_fit(void **state)
{
    (void)state;
    static const struct lp_netlog_field FIELDS[] = {{{"Cookie", 6}, {"a=1; b; c=2", 11}, false},
        {{"Set-Cookie", 10}, {"lb=SECRET; Path=/", 17}, false},
        {{"Authorization", 13}, {"Bearer SECRET", 13}, false},
        {{"Referer", 7}, {"http://a/?x=1#y", 15}, false}, {{"X-Mine", 6}, {"SECRET", 6}, true}};
    enum { KINDS = 4, FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS };
    for (int i = 0; i < KINDS * FIELD_COUNT; i++) {
        const struct lp_netlog_field *field = &FIELDS[i / KINDS];
        struct lines lines = {0};
        struct lp_netlog log;
        lp_netlog_init(&log, take, &lines, KEY);
        log.with_bodies = true;
        write_one(&log, i % KINDS, field);
        size_t whole = lines.len;
        assert_true(whole > 20);
        assert_null(strstr(lines.text, "SECRET"));
        lines.len = 0;
        for (log.room.max = 0; log.room.max < whole; log.room.max++) {
            write_one(&log, i % KINDS, field);
            assert_int_equal(lines.len, 0);
        }
        lp_netlog_fini(&log);
    }
}

static void test_no_control_reaches_a_terminal(void **state)
{
    (void)state;
    struct lines lines = {0};
    struct lp_netlog log;
    lp_netlog_init(&log, take, &lines, KEY);
    lp_netlog_note(&log, IN, LP_SPAN("a\r\n\x1b[2J\x7f\tb"));
    assert_string_equal(lines.text, "2025-11-30T17:02:12.123Z 3 . a   [2J  b");
    lp_netlog_fini(&log);
}

static void test_no_log(void **state)
{
    (void)state;
    lp_netlog_start_line(NULL, OUT, LP_SPAN("GET"), LP_SPAN("/"));
    lp_netlog_content(NULL, OUT, "body", LP_SPAN(""), LP_SPAN("x"));
    lp_netlog_note(NULL, OUT, LP_SPAN("x"));
    struct lp_netlog_field field = {LP_SPAN("A"), LP_SPAN("b"), false};
    lp_netlog_field(NULL, OUT, &field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_large_bodies_are_cut),
        cmocka_unit_test(test_lines_that_do_not_fit),
        cmocka_unit_test(test_no_control_reaches_a_terminal),
        cmocka_unit_test(test_no_log),
    };
    return cmocka_run_group_tests_name("netlog", tests, NULL, NULL);
}
