/* Our own JSON-RPC errors: the id byte for byte, the reason's code, nothing half written
 * (mcp/reply.h, cases STA-12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "mcp/envelope.h"
#include "mcp/reply.h"

static void check(const struct lp_reply *reply, const char *expected)
{
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    assert_int_equal(lp_reply_write(&out, reply), LP_OK);
    struct lp_span text = lp_buf_span(&out);
    if (!lp_span_eq(text, lp_span_str(expected)))
        print_error("got  %.*s\nwant %s\n", (int)text.len, text.ptr, expected);
    assert_true(lp_span_eq(text, lp_span_str(expected)));
    lp_buf_release(&out);
}

/* The id goes from a request's body through the scan into the answer without a change. */
static void test_ids(void **state)
{
    (void)state;
    static const char *const IDS[] = {"7", "\"7\"", "\"abc-\xc3\xbc\"", "9007199254740993", "null",
        "\"\\u0061\\/\"", "-0", "12345678901234567890", "1.0", "\"\""};
    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        char body[128];
        char expected[256];
        struct lp_envelope env;
        snprintf(
            body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\": %s ,\"method\":\"ping\"}", IDS[i]);
        snprintf(expected, sizeof expected,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32001,"
            "\"message\":\"Session not found\"}}",
            IDS[i]);
        assert_int_equal(lp_envelope_scan(lp_span_str(body), &env), LP_OK);
        check(&(struct lp_reply){.reason = LP_REASON_session_forged, .id = env.id}, expected);
    }
}

static void test_no_id(void **state)
{
    (void)state;
    check(&(struct lp_reply){.reason = LP_REASON_bad_json},
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
        "\"message\":\"Parse error: the body is not valid JSON\"}}");
}

/* A client never learns why its session is gone. */
static void test_neutral_text(void **state)
{
    (void)state;
    for (int reason = LP_REASON_none; reason < LP_REASON_count; reason++)
        if (lp_reason_info((enum lp_reason)reason)->jsonrpc_code == -32001)
            check(&(struct lp_reply){.reason = (enum lp_reason)reason, .id = LP_SPAN("1")},
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32001,"
                "\"message\":\"Session not found\"}}");
}

static void test_detail_and_data(void **state)
{
    (void)state;
    check(&(struct lp_reply){.reason = LP_REASON_unknown_version,
              .id = LP_SPAN("\"c2\""),
              .data = LP_SPAN("{\"supported\":[\"2026-07-28\"]}")},
        "{\"jsonrpc\":\"2.0\",\"id\":\"c2\",\"error\":{\"code\":-32022,"
        "\"message\":\"Unsupported protocol version\","
        "\"data\":{\"supported\":[\"2026-07-28\"]}}}");
    check(
        &(struct lp_reply){
            .reason = LP_REASON_header_mismatch, .id = LP_SPAN("2"), .detail = "say \"no\"\n"},
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32020,"
        "\"message\":\"say \\\"no\\\"\\n\"}}");
}

/* A reason without a code of its own is an internal error. */
static void test_code(void **state)
{
    (void)state;
    check(&(struct lp_reply){.reason = LP_REASON_reader_stalled, .id = LP_SPAN("2")},
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32603,"
        "\"message\":\"the client did not read for too long\"}}");
}

/* At every size that is too small nothing is appended. */
static void test_limits(void **state)
{
    (void)state;
    struct lp_reply reply = {
        .reason = LP_REASON_stopping, .id = LP_SPAN("123"), .data = LP_SPAN("[1]")};
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    assert_int_equal(lp_reply_write(&out, &reply), LP_OK);
    size_t whole = out.len;
    lp_buf_release(&out);
    for (size_t max = 1; max <= whole; max++) {
        lp_buf_init(&out, max + 2);
        assert_int_equal(lp_buf_append(&out, LP_SPAN("ab")), LP_OK);
        assert_int_equal(lp_reply_write(&out, &reply), max < whole ? LP_ELIMIT : LP_OK);
        assert_int_equal(out.len, max < whole ? 2 : 2 + whole);
        lp_buf_release(&out);
    }
}

static void test_wants_plain(void **state)
{
    (void)state;
    static const struct lp_span PREFIXES[] = {{"Go-http-client/", 15}, {"curl/", 5}};
    assert_true(lp_reply_wants_plain(LP_SPAN("Go-http-client/1.1"), PREFIXES, 2));
    assert_true(lp_reply_wants_plain(LP_SPAN("curl/8"), PREFIXES, 2));
    assert_false(lp_reply_wants_plain(LP_SPAN("curl/8"), PREFIXES, 1));
    assert_false(lp_reply_wants_plain(LP_SPAN("go-http-client/1.1"), PREFIXES, 2));
    assert_false(lp_reply_wants_plain(LP_SPAN("x Go-http-client/1.1"), PREFIXES, 2));
    assert_false(lp_reply_wants_plain(LP_SPAN("Go-http"), PREFIXES, 2));
    assert_false(lp_reply_wants_plain(lp_span(NULL, 0), PREFIXES, 2));
    assert_false(lp_reply_wants_plain(LP_SPAN("Go-http-client/1.1"), NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_no_id),
        cmocka_unit_test(test_neutral_text),
        cmocka_unit_test(test_detail_and_data),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_wants_plain),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
