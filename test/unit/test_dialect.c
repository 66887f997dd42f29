/* Which answers mean a lost session: the table of requirements [G6] exactly, and nothing near it
 * (mcp/dialect.h, wire document 15.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "mcp/dialect.h"

#define ERROR_BODY(id, code, message)                                                              \
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":" code ",\"message\":\"" message "\"}" id "}"
#define NULL_ID ",\"id\":null"

struct row {
    uint16_t status;
    const char *body;
    bool is_lost;
};

static void check(const struct row *rows, size_t count, const struct lp_dialect *extra, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        struct lp_span body = lp_span_str(rows[i].body);
        if (lp_dialect_is_lost(rows[i].status, body, true, extra, n) == rows[i].is_lost)
            continue;
        print_error("row %zu: %u %s\n", i, rows[i].status, rows[i].body);
        fail();
    }
}

/* Printed for the manual; each row is lost in its own words and in no other status. */
static void test_table(void **state)
{
    (void)state;
    size_t count = 0;
    const struct lp_dialect *table = lp_dialects(&count);
    assert_int_equal(count, 8);
    for (size_t i = 0; i < count; i++) {
        char body[LP_DIALECT_BODY_MAX];
        int len = (int)table[i].text.len;
        const char *text = table[i].text.ptr;
        int n = snprintf(body, sizeof body, "%.*s", len, text);
        if (table[i].code)
            n = snprintf(body, sizeof body, ERROR_BODY(NULL_ID, "%d", "%.*s"), (int)table[i].code,
                len, text);
        struct lp_span whole = lp_span(body, (size_t)n);
        print_message("# %u %s\n", table[i].status, body);
        assert_true(lp_dialect_is_lost(table[i].status, whole, true, NULL, 0));
        assert_false(lp_dialect_is_lost(table[i].status, whole, false, NULL, 0));
        assert_false(lp_dialect_is_lost(200, whole, true, NULL, 0));
        assert_false(lp_dialect_is_lost(401, whole, true, NULL, 0));
        assert_false(lp_dialect_is_lost(500, whole, true, NULL, 0));
        whole.len--;
        assert_false(lp_dialect_is_lost(table[i].status, whole, true, NULL, 0));
    }
}

static void test_words(void **state)
{
    (void)state;
#define INIT_FIRST "Bad Request: initialize first, then send mcp-session-id on follow-up requests."
#define NO_VALID "Bad Request: No valid session ID provided"
    static const struct row ROWS[] = {
        {400, ERROR_BODY(NULL_ID, "-32000", NO_VALID), true},
        {400, ERROR_BODY("", "-32000", NO_VALID), true},
        {400, ERROR_BODY(",\"id\":\"server-error\"", "-32000", NO_VALID), true},
        {400, ERROR_BODY(NULL_ID, "-32000", "Bad Request: Server not initialized"), true},
        {400, ERROR_BODY(NULL_ID, "-32000", INIT_FIRST), true},
        {400, ERROR_BODY(",\"id\":\"server-error\"", "-32600", "Session not found"), true},
        {400, ERROR_BODY(NULL_ID, "-32600", "Session \\u006eot found"), true},
        {400, " \n" ERROR_BODY(NULL_ID, "-32600", "Session not found") "\r\n", true},
        {400, "{\"error\":\"initialize the MCP session first\"}", true},
        {400, "{\"error\":\"initialize the MCP session first\"} \r\n\t", true},
        {400, "Session ID not found.\n", true},
        {400, "session not found", true},
        {422, "Unexpected message, expect initialize request", true},
        /* an id of a request: somebody answered that request */
        {400, ERROR_BODY(",\"id\":3", "-32000", NO_VALID), false},
        {400, ERROR_BODY(",\"id\":\"7\"", "-32600", "Session not found"), false},
        {400, ERROR_BODY(",\"id\":[]", "-32600", "Session not found"), false},
        /* another code, message, status, shape */
        {400, ERROR_BODY(NULL_ID, "-32001", NO_VALID), false},
        {400, ERROR_BODY(NULL_ID, "-32000", "Session not found"), false},
        {400, ERROR_BODY(NULL_ID, "-32000.0", NO_VALID), false},
        {400, ERROR_BODY(NULL_ID, "32000", NO_VALID), false},
        {400, ERROR_BODY(NULL_ID, "\"-32000\"", NO_VALID), false},
        {400, ERROR_BODY(NULL_ID, "-32000", NO_VALID "."), false},
        {400, ERROR_BODY(NULL_ID, "-32000", "tool: " NO_VALID), false},
        {400, "{\"error\":{\"code\":-32600,\"message\":7},\"id\":null}", false},
        {400, "{\"error\":{\"code\":-32600},\"id\":null}", false},
        {400, "{\"error\":{\"message\":\"Session not found\"},\"id\":null}", false},
        {400, "{\"error\":{\"code\":-99999999999,\"message\":\"Session not found\"}}", false},
        {400, "{\"result\":1,\"error\":{\"code\":-32600,\"message\":\"Session not found\"}}",
            false},
        {400, "{\"method\":\"a\",\"error\":{\"code\":-32600,\"message\":\"Session not found\"}}",
            false},
        {400, "[" ERROR_BODY(NULL_ID, "-32600", "Session not found") "]", false},
        {400, ERROR_BODY(NULL_ID, "-32600", "Session not found") "x", false},
        {400, "{ \"error\":\"initialize the MCP session first\"}", false},
        {400, " session not found", false},
        {400, "Session not found", false},
        {422, "session not found", false},
        {400, "Unexpected message, expect initialize request", false},
        {400, "", false},
        {400, " ", false},
        {401, "session not found", false},
        {503, "session not found", false},
        {200, "session not found", false},
    };
    check(ROWS, sizeof ROWS / sizeof *ROWS, NULL, 0);
}

/* 404 means lost in any words, but "method not found" is an answer (wire document 2.3). */
static void test_404(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {404, "", true},
        {404, "404 page not found\n", true},
        {404, "{\"error\":\"Session not found\"}", true},
        {404, ERROR_BODY(",\"id\":3", "-32001", "Session not found"), true},
        {404, ERROR_BODY(NULL_ID, "-32600", "Session not found"), true},
        {404, ERROR_BODY(",\"id\":3", "-32601", "Method not found: ping"), false},
        {404, ERROR_BODY(NULL_ID, "-32601", "x"), false},
        {404, "{\"code\":-32601}", true},
        {404, "-32601", true},
        {404, ERROR_BODY(NULL_ID, "-32601.5", "x"), true},
    };
    check(ROWS, sizeof ROWS / sizeof *ROWS, NULL, 0);
    struct lp_span method = lp_span_str(ERROR_BODY(NULL_ID, "-32601", "x"));
    assert_true(lp_dialect_is_lost(404, method, false, NULL, 0));
}

static void test_long_body(void **state)
{
    (void)state;
    char body[LP_DIALECT_BODY_MAX + 1];
    memset(body, ' ', sizeof body);
    memcpy(body, "session not found", 17);
    assert_true(lp_dialect_is_lost(400, lp_span(body, LP_DIALECT_BODY_MAX), true, NULL, 0));
    assert_false(lp_dialect_is_lost(400, lp_span(body, sizeof body), true, NULL, 0));
    assert_true(lp_dialect_is_lost(404, lp_span(body, sizeof body), true, NULL, 0));
}

static void test_extra(void **state)
{
    (void)state;
    static const struct lp_dialect EXTRA[] = {
        {409, 0, {"gone away", 9}},
        {400, -32099, {"who are you?", 12}},
        {400, 5, {"five", 4}},
    };
    static const struct row ROWS[] = {
        {409, "gone away\n", true},
        {400, "gone away", false},
        {400, ERROR_BODY(NULL_ID, "-32099", "who are you?"), true},
        {400, ERROR_BODY(NULL_ID, "5", "five"), true},
        {400, ERROR_BODY(NULL_ID, "-5", "five"), false},
        {409, ERROR_BODY(NULL_ID, "-32099", "who are you?"), false},
        {400, "session not found", true},
    };
    check(ROWS, sizeof ROWS / sizeof *ROWS, EXTRA, sizeof EXTRA / sizeof *EXTRA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_404),
        cmocka_unit_test(test_long_body),
        cmocka_unit_test(test_extra),
    };
    return cmocka_run_group_tests_name("dialect", tests, NULL, NULL);
}
