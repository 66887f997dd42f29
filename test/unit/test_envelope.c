/* The scan of a body: which members are seen and where, byte for byte; which are not; and bodies
 * that two readers could take differently (mcp/envelope.h, cases BOD-03). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/envelope.h"

#define META_VERSION_KEY "\"io.modelcontextprotocol/protocolVersion\""
#define META_CAPABILITIES_KEY "\"io.modelcontextprotocol/clientCapabilities\""

static struct lp_envelope scan(const char *body)
{
    struct lp_envelope env;
    int err = lp_envelope_scan(lp_span_str(body), &env);
    if (err)
        print_error("%s: %d\n", body, err);
    assert_int_equal(err, LP_OK);
    return env;
}

static void assert_span(struct lp_span got, const char *want)
{
    struct lp_span span = lp_span_str(want);
    if (!lp_span_eq(got, span))
        print_error("got %.*s, want %.*s\n", (int)got.len, got.ptr, (int)span.len, span.ptr);
    assert_true(lp_span_eq(got, span));
}

static void test_request(void **state)
{
    (void)state;
    struct lp_envelope env =
        scan("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"add\","
             "\"uri\":\"a://b\",\"taskId\":\"t1\",\"protocolVersion\":\"2025-06-18\","
             "\"arguments\":{\"name\":\"x\",\"id\":8},\"_meta\":{" META_VERSION_KEY
             ":\"2026-07-28\"," META_CAPABILITIES_KEY ":{\"a\":{}},\"progressToken\":3}}}");
    assert_true(env.is_object);
    assert_false(env.is_batch);
    assert_true(env.has_id && env.id_is_valid);
    assert_span(env.id, "7");
    assert_int_equal(env.method, LP_RPC_TOOLS_CALL);
    assert_span(env.method_token, "\"tools/call\"");
    assert_true(env.has_params && env.has_meta && env.has_client_capabilities);
    assert_span(env.name, "\"add\"");
    assert_span(env.uri, "\"a://b\"");
    assert_span(env.task_id, "\"t1\"");
    assert_span(env.protocol_version, "\"2025-06-18\"");
    assert_span(env.meta_version, "\"2026-07-28\"");
    assert_true(env.meta_version_is_string);
    assert_false(env.has_result || env.has_error);
}

static void test_response(void **state)
{
    (void)state;
    struct lp_envelope env = scan("{\"id\":\"a\",\"result\":{\"id\":1,\"method\":\"ping\"}}");
    assert_true(env.has_result && !env.has_error && env.method == LP_RPC_NONE);
    assert_span(env.id, "\"a\"");
    env = scan("{\"error\":{\"code\":-32001,\"message\":\"Session not found\","
               "\"data\":{\"code\":1,\"message\":\"x\"}},\"id\":null}");
    assert_true(env.has_error && !env.has_result && !env.has_id);
    assert_span(env.id, "null");
    assert_span(env.error_code, "-32001");
    assert_span(env.error_message, "\"Session not found\"");
    env = scan("{\"error\":\"initialize the MCP session first\"}");
    assert_true(env.has_error);
    assert_span(env.error_message, "");
}

static void test_ids(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        const char *span;
        bool has_id;
        bool is_valid;
    } ROWS[] = {
        {"7", "7", true, true},
        {"0", "0", true, true},
        {"-1", "-1", true, true},
        {"9007199254740993", "9007199254740993", true, true},
        {"\"7\"", "\"7\"", true, true},
        {"\"abc-\xc3\xbc\"", "\"abc-\xc3\xbc\"", true, true},
        {"\"\"", "\"\"", true, true},
        {"1.0", "1.0", true, false},
        {"1e3", "1e3", true, false},
        {"null", "null", false, false},
        {"true", "", true, false},
        {"{\"a\":1}", "", true, false},
        {"[1]", "", true, false},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char body[128] = "{\"method\":\"ping\",\"id\": ";
        strcat(body, ROWS[i].id);
        strcat(body, " }");
        struct lp_envelope env = scan(body);
        assert_span(env.id, ROWS[i].span);
        assert_int_equal(env.has_id, ROWS[i].has_id);
        assert_int_equal(env.id_is_valid, ROWS[i].is_valid);
    }
}

/* Every method by its name, also with escapes, and none by a near miss. */
static void test_methods(void **state)
{
    (void)state;
    static const char *const NAMES[] = {
#define X(id, text, again) text,
        LP_RPC_METHODS(X)
#undef X
    };
    static const bool AGAIN[] = {
#define X(id, text, again) again,
        LP_RPC_METHODS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        enum lp_rpc_method method = (enum lp_rpc_method)(LP_RPC_OTHER + 1 + i);
        char body[128] = "{\"method\":\"";
        strcat(body, NAMES[i]);
        strcat(body, "\"}");
        assert_int_equal(scan(body).method, method);
        assert_string_equal(lp_rpc_method_name(method), NAMES[i]);
        assert_int_equal(lp_rpc_is_repeatable(method), AGAIN[i]);
        char *escaped = strchr(body, 'i');
        char rest[128];
        if (!escaped || escaped < body + 11)
            continue;
        strcpy(rest, escaped + 1);
        strcpy(escaped, "\\u0069");
        strcat(body, rest);
        assert_int_equal(scan(body).method, method);
    }
    assert_int_equal(scan("{\"method\":\"tools\\/call\"}").method, LP_RPC_TOOLS_CALL);
    assert_int_equal(scan("{\"method\":\"Ping\"}").method, LP_RPC_OTHER);
    assert_int_equal(scan("{\"method\":\"\"}").method, LP_RPC_OTHER);
    assert_int_equal(scan("{\"method\":\"ping \"}").method, LP_RPC_OTHER);
    assert_int_equal(scan("{\"method\":\"pin\\u0067\\n\"}").method, LP_RPC_OTHER);
    assert_int_equal(scan("{\"method\":5}").method, LP_RPC_OTHER);
    assert_int_equal(scan("{\"Method\":\"ping\"}").method, LP_RPC_NONE);
    assert_string_equal(lp_rpc_method_name(LP_RPC_NONE), "");
    assert_string_equal(lp_rpc_method_name(LP_RPC_OTHER), "other");
    assert_false(lp_rpc_is_repeatable(LP_RPC_NONE));
    assert_false(lp_rpc_is_repeatable(LP_RPC_OTHER));
}

static void test_escaped_keys(void **state)
{
    (void)state;
    struct lp_envelope env = scan(
        "{\"m\\u0065thod\":\"ping\",\"\\u0069d\":3,\"p\\u0061rams\":{\"_m\\u0065ta\":{"
        "\"io.modelcontextprotocol\\/protocolVersion\":\"2026-07-28\"},\"n\\u0061me\":\"x\"}}");
    assert_int_equal(env.method, LP_RPC_PING);
    assert_span(env.id, "3");
    assert_span(env.meta_version, "\"2026-07-28\"");
    assert_span(env.name, "\"x\"");
}

/* Members of other objects are not those that we look for. */
static void test_elsewhere(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "{}",
        "{\"x\":{\"id\":1,\"method\":\"ping\",\"name\":\"a\"}}",
        "{\"x\":[{\"id\":1,\"method\":\"ping\"}]}",
        "{\"x\":{\"params\":{\"name\":\"a\"}}}",
        "{\"name\":\"a\",\"uri\":\"b\",\"code\":1,\"_meta\":{\"a\":1},"
        "" META_VERSION_KEY ":\"2026-07-28\"}",
        "{\"_meta\":{" META_VERSION_KEY ":\"2026-07-28\"," META_CAPABILITIES_KEY ":{}}}",
        "{\"params\":[{\"name\":\"a\",\"_meta\":{" META_VERSION_KEY ":\"x\"}}]}",
        "{\"params\":[\"a\",[{\"name\":\"a\"}],{\"_meta\":[]}]}",
        "{\"params\":{\"code\":1,\"message\":\"a\",\"id\":1,\"method\":\"ping\"}}",
        "{\"params\":{\"a\":{\"name\":\"x\",\"taskId\":\"y\"},\"b\":[{\"uri\":\"z\"}]}}",
        "{\"params\":{\"_meta\":[{" META_VERSION_KEY ":\"x\"}]}}",
        "{\"params\":{\"_meta\":{\"a\":{" META_VERSION_KEY ":\"x\"}}}}",
        "{\"params\":{\"a\":{" META_VERSION_KEY ":\"x\"},\"_meta\":3}}",
        "{\"params\":{\"_meta\":{\"a\":1},\"z\":{" META_VERSION_KEY ":\"x\"}}}",
        "{\"params\":{\"name\":1,\"uri\":{\"uri\":\"a\"},\"taskId\":[\"taskId\"]}}",
        "{\"params\":null,\"x\":{\"name\":\"a\"}}",
        "{\"params\":{},\"x\":{\"name\":\"a\",\"_meta\":{" META_VERSION_KEY ":\"x\"}}}",
        "{\"params\":{\"_meta\":{" META_CAPABILITIES_KEY ":[]}}}",
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct lp_envelope env = scan(BODIES[i]);
        assert_true(env.is_object);
        assert_int_equal(env.method, LP_RPC_NONE);
        assert_false(env.has_id || env.has_result || env.has_error || env.has_client_capabilities);
        assert_int_equal(env.id.len + env.meta_version.len + env.method_token.len, 0);
        assert_int_equal(env.name.len + env.uri.len + env.task_id.len, 0);
        assert_int_equal(env.error_code.len + env.error_message.len, 0);
    }
    assert_true(scan("{\"params\":{}}").has_params);
    assert_false(scan("{\"params\":[]}").has_params);
    assert_true(scan("{\"params\":{\"_meta\":{}}}").has_meta);
    assert_false(scan("{\"params\":{\"_meta\":[]}}").has_meta);
}

/* A version that is no string is there all the same. */
static void test_odd_meta_version(void **state)
{
    (void)state;
    static const char *const VALUES[] = {"3", "null", "{\"a\":1}", "[]", "true"};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        char body[160] = "{\"params\":{\"_meta\":{" META_VERSION_KEY ":";
        strcat(body, VALUES[i]);
        strcat(body, "}}}");
        struct lp_envelope env = scan(body);
        assert_true(env.meta_version.len > 0);
        assert_false(env.meta_version_is_string);
    }
}

static void test_twice(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "{\"id\":1,\"id\":1}",
        "{\"id\":1,\"\\u0069d\":2}",
        "{\"method\":\"a\",\"method\":\"a\"}",
        "{\"params\":{},\"x\":1,\"params\":{}}",
        "{\"result\":1,\"result\":1}",
        "{\"error\":{},\"error\":{}}",
        "{\"error\":{\"code\":1,\"code\":1}}",
        "{\"error\":{\"message\":1,\"message\":1}}",
        "{\"params\":{\"name\":\"a\",\"name\":\"b\"}}",
        "{\"params\":{\"name\":\"a\",\"n\\u0061me\":\"b\"}}",
        "{\"params\":{\"uri\":1,\"uri\":2}}",
        "{\"params\":{\"taskId\":1,\"taskId\":2}}",
        "{\"params\":{\"protocolVersion\":1,\"protocolVersion\":2}}",
        "{\"params\":{\"_meta\":{},\"_meta\":{}}}",
        "{\"params\":{\"_meta\":{" META_VERSION_KEY ":1," META_VERSION_KEY ":1}}}",
        "{\"params\":{\"_meta\":{" META_CAPABILITIES_KEY ":{}," META_CAPABILITIES_KEY ":{}}}}",
        "[{\"id\":1,\"id\":1}]",
        "[{\"id\":1},{\"method\":1,\"method\":1}]",
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct lp_envelope env;
        assert_int_equal(lp_envelope_scan(lp_span_str(BODIES[i]), &env), LP_EAMBIGUOUS);
        assert_int_equal(lp_envelope_scan_part(lp_span_str(BODIES[i]), &env), LP_EAMBIGUOUS);
    }
    /* What nobody decides by may come twice, and the same name may be in several objects. */
    scan("{\"x\":1,\"x\":2,\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}");
    scan("{\"params\":{\"x\":{\"name\":1,\"name\":2},\"name\":3,\"id\":1},\"id\":2,\"name\":4}");
    scan("[{\"id\":1},{\"id\":1}]");
}

/* The id that was read before the fault is there for the answer. */
static void test_id_of_bad_body(void **state)
{
    (void)state;
    struct lp_envelope env;
    assert_int_equal(
        lp_envelope_scan(LP_SPAN("{\"id\":\"q\",\"method\":tools}"), &env), LP_ESYNTAX);
    assert_span(env.id, "\"q\"");
    assert_int_equal(lp_envelope_scan(LP_SPAN("{\"id\":5,\"id\":6}"), &env), LP_EAMBIGUOUS);
    assert_span(env.id, "5");
    char deep[400] = "{\"id\":5,\"x\":";
    memset(deep + 12, '[', 300);
    assert_int_equal(lp_envelope_scan(lp_span(deep, 312), &env), LP_ELIMIT);
    assert_span(env.id, "5");
}

static void test_not_json(void **state)
{
    (void)state;
    static const struct lp_span BODIES[] = {
        {NULL, 0},
        {" \n", 2},
        {"{", 1},
        {"{\"id\":1", 7},
        {"{\"id\":1}x", 9},
        {"[1,]", 4},
        {"tools/list", 10},
        {"\xff\xfe{\0}\0", 6},
        {" \xef\xbb\xbf{}", 6},
        {"{\"a\":\"\xff\"}", 9},
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct lp_envelope env;
        assert_int_equal(lp_envelope_scan(BODIES[i], &env), LP_ESYNTAX);
    }
}

/* A byte order mark is skipped, and the spans are still those of the body (BOD-03). */
static void test_mark(void **state)
{
    (void)state;
    struct lp_envelope env = scan("\xef\xbb\xbf{\"id\":3,\"method\":\"tools/list\"}");
    assert_span(env.id, "3");
    assert_int_equal(env.method, LP_RPC_TOOLS_LIST);
    env = scan("\xef\xbb\xbf[{\"id\":3,\"method\":\"initialize\"}]");
    assert_true(env.is_batch && env.batch_has_request && env.batch_has_initialize);
}

static void test_bare_values(void **state)
{
    (void)state;
    static const char *const BODIES[] = {"1", "\"x\"", "null", "true", "-0.5e1"};
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct lp_envelope env = scan(BODIES[i]);
        assert_false(env.is_object || env.is_batch || env.has_id);
    }
}

static void test_batches(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool has_request, has_initialize, has_modern_meta, is_empty;
    } ROWS[] = {
        {"[]", false, false, false, true},
        {" [ ] ", false, false, false, true},
        {"[1]", false, false, false, false},
        {"[[]]", false, false, false, false},
        {"[[{\"id\":1,\"method\":\"initialize\"}]]", false, false, false, false},
        {"[{\"method\":\"a\"}]", false, false, false, false},
        {"[{\"id\":1}]", false, false, false, false},
        {"[{\"id\":1,\"result\":{\"method\":\"a\"}}]", false, false, false, false},
        {"[{\"id\":1},{\"method\":\"a\"}]", false, false, false, false},
        {"[{\"id\":null,\"method\":\"a\"}]", false, false, false, false},
        {"[{\"id\":1,\"method\":\"a\"}]", true, false, false, false},
        {"[{\"method\":\"a\",\"id\":1}]", true, false, false, false},
        {"[0,{\"x\":1},{\"method\":\"a\",\"id\":\"1\"},{}]", true, false, false, false},
        {"[{\"id\":1,\"method\":\"initialize\"}]", true, true, false, false},
        {"[{\"method\":\"initialize\"},2]", false, true, false, false},
        {"[{\"params\":{\"_meta\":{" META_VERSION_KEY ":1}}}]", false, false, true, false},
        {"[{},{\"id\":1,\"params\":{\"_meta\":{" META_VERSION_KEY ":\"a\"}},\"method\":\"b\"}]",
            true, false, true, false},
        {"[{\"params\":{\"x\":{" META_VERSION_KEY ":1}}}]", false, false, false, false},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct lp_envelope env = scan(ROWS[i].body);
        assert_true(env.is_batch && !env.is_object);
        assert_int_equal(env.batch_has_request, ROWS[i].has_request);
        assert_int_equal(env.batch_has_initialize, ROWS[i].has_initialize);
        assert_int_equal(env.batch_has_modern_meta, ROWS[i].has_modern_meta);
        assert_int_equal(env.batch_is_empty, ROWS[i].is_empty);
        assert_false(env.has_id || env.has_params || env.has_result);
        assert_int_equal(env.method, LP_RPC_NONE);
        assert_int_equal(env.id.len + env.method_token.len + env.meta_version.len, 0);
    }
}

/* A body cut anywhere gives what was read so far. */
static void test_part(void **state)
{
    (void)state;
    struct lp_span body =
        LP_SPAN("{\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"b\","
                "\"arguments\":{\"x\":[1,2,{\"y\":\"long\"}]}}}");
    size_t method_end = lp_span_search(body, LP_SPAN(",\"params\""));
    for (size_t n = 0; n <= body.len; n++) {
        struct lp_envelope env;
        assert_int_equal(lp_envelope_scan_part(lp_span(body.ptr, n), &env), LP_OK);
        assert_int_equal(env.method, n >= method_end ? LP_RPC_TOOLS_CALL : LP_RPC_NONE);
        assert_span(env.id, n >= 9 ? "\"a\"" : "");
        int err = lp_envelope_scan(lp_span(body.ptr, n), &env);
        assert_int_equal(err, n == body.len ? LP_OK : LP_ESYNTAX);
    }
    struct lp_envelope env;
    assert_int_equal(lp_envelope_scan_part(LP_SPAN("{\"id\":1,}"), &env), LP_ESYNTAX);
    assert_span(env.id, "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_response),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_escaped_keys),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_odd_meta_version),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_id_of_bad_body),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_bare_values),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_part),
    };
    return cmocka_run_group_tests_name("envelope", tests, NULL, NULL);
}
