/* Era and header rules: the order of wire document 11.1, and every way a modern request can
 * disagree with its headers (mcp/version.h; 7.3, 7.4; cases HDR-07). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/version.h"

#define VERSION_KEY "\"io.modelcontextprotocol/protocolVersion\""
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define META(version) "\"_meta\":{" VERSION_KEY ":" version "," CAPABILITIES "}"
#define MODERN META("\"2026-07-28\"")
#define REQUEST(method, params) "{\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define NOTIFICATION(method, params) "{\"method\":\"" method "\",\"params\":{" params "}}"

#define OK LP_REASON_none
enum { HEADERS_MAX = 4 };
enum { LEGACY = LP_ERA_LEGACY, MODERN_ERA = LP_ERA_MODERN, NO_ERA = 9 };

/* Headers as "v:", "m:" or "n:" (version, method, name) and the value; "x:" is another one. */
struct row {
    const char *body;
    const char *headers[HEADERS_MAX];
    enum lp_reason reason;
    int era;
};

#define V "v:2026-07-28"

static void add_header(struct lp_head *head, const char *text)
{
    enum lp_field_id id = LP_FIELD_OTHER;
    if (text[0] == 'v')
        id = LP_FIELD_MCP_PROTOCOL_VERSION;
    if (text[0] == 'm')
        id = LP_FIELD_MCP_METHOD;
    if (text[0] == 'n')
        id = LP_FIELD_MCP_NAME;
    struct lp_field *field = &head->fields[head->field_count++];
    *field = (struct lp_field){LP_SPAN("any"), lp_span_str(text + 2), id};
}

static void check_row(const struct row *row)
{
    static struct lp_head head;
    struct lp_envelope env;
    head.is_request = true;
    head.field_count = 0;
    add_header(&head, "x:1");
    for (size_t i = 0; i < HEADERS_MAX && row->headers[i]; i++)
        add_header(&head, row->headers[i]);
    assert_int_equal(lp_envelope_scan(lp_span_str(row->body), &env), LP_OK);
    enum lp_era era = (enum lp_era)NO_ERA;
    const char *detail = NULL;
    enum lp_reason reason = lp_version_judge(&head, &env, &era, &detail);
    if (reason != row->reason || (int)era != row->era)
        print_error("%s: %s %s era %d\n", row->body, lp_reason_info(reason)->name,
            detail ? detail : "", (int)era);
    assert_int_equal(reason, row->reason);
    assert_int_equal(era, row->era);
    assert_int_equal(detail == NULL, reason == LP_REASON_none);
}

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i]);
}
#define CHECK(rows) check_rows(rows, sizeof rows / sizeof *rows)

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool is_legacy, is_modern, looks_modern;
    } ROWS[] = {
        {"2024-10-07", true, false, false},
        {"2024-11-05", true, false, false},
        {"2025-03-26", true, false, false},
        {"2025-06-18", true, false, false},
        {"2025-11-25", true, false, false},
        {"2026-07-28", false, true, true},
        {"2026-07-27", false, false, false},
        {"2026-07-29", false, false, true},
        {"2031-01-01", false, false, true},
        {"9999-99-99", false, false, true},
        {"2026-07-2", false, false, false},
        {"2026-07-280", false, false, false},
        {"2026-07-28 ", false, false, false},
        {"2026/07/28", false, false, false},
        {"2026-07/28", false, false, false},
        {"2026-0a-28", false, false, false},
        {"2026-0 -28", false, false, false},
        {"DRAFT-2026", false, false, false},
        {"", false, false, false},
        {"2025-06-19", false, false, false},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct lp_span version = lp_span_str(ROWS[i].version);
        assert_int_equal(lp_version_is_legacy(version), ROWS[i].is_legacy);
        assert_int_equal(lp_version_is_modern(version), ROWS[i].is_modern);
        assert_int_equal(lp_version_looks_modern(version), ROWS[i].looks_modern);
    }
    /* The list for answers is JSON and holds just the versions that we know. */
    struct lp_span list = LP_SPAN(LP_VERSIONS_JSON);
    struct lp_envelope env;
    assert_int_equal(lp_envelope_scan(list, &env), LP_OK);
    assert_true(lp_span_starts(list, LP_SPAN("[\"" LP_VERSION_MODERN "\"")));
}

/* Step 4. */
static void test_batches(void **state)
{
    (void)state;
#define PAIR "[{\"id\":1,\"method\":\"tools/list\"},{\"method\":\"notifications/cancelled\"}]"
    static const struct row ROWS[] = {
        {PAIR, {NULL}, OK, LEGACY},
        {PAIR, {"v:2025-03-26"}, OK, LEGACY},
        {PAIR, {"v:2025-03-26", "v:2025-03-26"}, OK, LEGACY},
        {PAIR, {"v:2025-06-18"}, LP_REASON_bad_batch, NO_ERA},
        {PAIR, {"v:2024-11-05"}, LP_REASON_bad_batch, NO_ERA},
        {PAIR, {"v:2025-03-26", "v:2025-06-18"}, LP_REASON_bad_batch, NO_ERA},
        {PAIR, {"v:nonsense"}, LP_REASON_bad_batch, NO_ERA},
        {PAIR, {V}, LP_REASON_bad_batch, NO_ERA},
        {"[]", {NULL}, LP_REASON_bad_batch, NO_ERA},
        {"[{\"id\":1,\"result\":{}}]", {NULL}, OK, LEGACY},
        {"[{\"id\":1,\"method\":\"initialize\"}]", {NULL}, LP_REASON_bad_batch, NO_ERA},
        {"[" REQUEST("tools/list", MODERN) "]", {NULL}, LP_REASON_bad_batch, NO_ERA},
        {"[" REQUEST("tools/list", MODERN) "]", {V}, LP_REASON_bad_batch, NO_ERA},
    };
    CHECK(ROWS);
}

/* Step 5, and bodies that are no message. */
static void test_responses(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{\"id\":1,\"result\":{}}", {NULL}, OK, LEGACY},
        {"{\"id\":1,\"result\":{}}", {"v:2025-06-18"}, OK, LEGACY},
        {"{\"id\":1,\"result\":{}}", {"v:nonsense"}, OK, LEGACY},
        {"{\"id\":1,\"error\":{}}", {NULL}, OK, LEGACY},
        {"{\"id\":1,\"result\":{}}", {V}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":1,\"result\":{}}", {"v:2031-01-01"}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":1,\"result\":{}}", {"v:2025-06-18", V}, LP_REASON_bad_message, NO_ERA},
        {"{}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":1}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"3", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"null", {V}, LP_REASON_bad_message, NO_ERA},
        {"\"ping\"", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":1,\"method\":7}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":1,\"method\":{}}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":{},\"method\":\"ping\"}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":true,\"method\":\"ping\"}", {NULL}, LP_REASON_bad_message, NO_ERA},
        {"{\"id\":null,\"method\":\"ping\"}", {NULL}, OK, LEGACY},
        {"{\"id\":1.5,\"method\":\"ping\"}", {NULL}, OK, LEGACY},
    };
    CHECK(ROWS);
}

/* Step 6 in its own order: version, header, capabilities, Mcp-Method. */
static void test_modern(void **state)
{
    (void)state;
#define LIST(meta) REQUEST("tools/list", meta)
#define ONLY_VERSION "\"_meta\":{" VERSION_KEY ":\"2026-07-28\"}"
#define NULL_CAPABILITIES                                                                          \
    "\"_meta\":{" VERSION_KEY ":\"2026-07-28\",\"io.modelcontextprotocol/"                         \
    "clientCapabilities\":null}"
    static const struct row ROWS[] = {
        {LIST(MODERN), {V, "m:tools/list"}, OK, MODERN_ERA},
        {LIST(META("\"2026\\u002d07-28\"")), {V, "m:tools/list"}, OK, MODERN_ERA},
        {LIST(META("\"2031-01-01\"")), {"v:2031-01-01"}, LP_REASON_unknown_version, NO_ERA},
        {LIST(META("\"2025-11-25\"")), {"v:2025-11-25"}, LP_REASON_unknown_version, NO_ERA},
        {LIST(META("\"\"")), {NULL}, LP_REASON_unknown_version, NO_ERA},
        {LIST(META("3")), {V}, LP_REASON_unknown_version, NO_ERA},
        {LIST(META("null")), {V}, LP_REASON_unknown_version, NO_ERA},
        {LIST(META("{}")), {V}, LP_REASON_unknown_version, NO_ERA},
        {LIST(MODERN), {"m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {"v:2025-11-25", "m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {"v:2031-01-01", "m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {"v:", "m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, V, "m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(ONLY_VERSION), {V, "m:tools/list"}, LP_REASON_missing_meta, NO_ERA},
        {LIST(ONLY_VERSION), {"m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(NULL_CAPABILITIES), {V, "m:tools/list"}, LP_REASON_missing_meta, NO_ERA},
        {LIST(MODERN), {V}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, "m:tools/call"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, "m:Tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, "m:=?base64?dG9vbHMvbGlzdA==?="}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, "m:tools/list", "m:tools/list"}, LP_REASON_header_mismatch, NO_ERA},
        {LIST(MODERN), {V, "m:tools/list", "n:ignored"}, OK, MODERN_ERA},
        {REQUEST("my/own", MODERN), {V, "m:my/own"}, OK, MODERN_ERA},
        {REQUEST("my\\/own", MODERN), {V, "m:my/own"}, OK, MODERN_ERA},
        {REQUEST("initialize", MODERN), {V, "m:initialize"}, OK, MODERN_ERA},
        {REQUEST("server/discover", MODERN), {V, "m:server/discover"}, OK, MODERN_ERA},
    };
    CHECK(ROWS);
}

#define CALL(name) REQUEST("tools/call", "\"name\":\"" name "\"," MODERN)
#define M_CALL "m:tools/call"

static void test_names(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {CALL("add"), {V, M_CALL, "n:add"}, OK, MODERN_ERA},
        {CALL("a\\u0064d"), {V, M_CALL, "n:add"}, OK, MODERN_ERA},
        {CALL("a b"), {V, M_CALL, "n:a b"}, OK, MODERN_ERA},
        {CALL("! ~"), {V, M_CALL, "n:! ~"}, OK, MODERN_ERA},
        {CALL("a\\tb"), {V, M_CALL, "n:a\tb"}, OK, MODERN_ERA},
        {CALL(""), {V, M_CALL, "n:"}, OK, MODERN_ERA},
        {CALL("gr\xc3\xb6\xc3\x9f"
              "e"),
            {V, M_CALL, "n:=?base64?Z3LDtsOfZQ==?="}, OK, MODERN_ERA},
        {CALL("gr\\u00f6\\u00dfe"), {V, M_CALL, "n:=?base64?Z3LDtsOfZQ==?="}, OK, MODERN_ERA},
        {CALL("add"), {V, M_CALL, "n:=?base64?YWRk?="}, OK, MODERN_ERA},
        {CALL(""),
            {V, M_CALL,
                "n:=?base64?"
                "?="},
            OK, MODERN_ERA},
        {CALL("=?base64?YWRk?="), {V, M_CALL, "n:=?base64?PT9iYXNlNjQ/WVdSaz89?="}, OK, MODERN_ERA},
        /* what looks encoded but is not, is literal */
        {CALL("=?base64?="), {V, M_CALL, "n:=?base64?="}, OK, MODERN_ERA},
        {CALL("=?BASE64?YWRk?="), {V, M_CALL, "n:=?BASE64?YWRk?="}, OK, MODERN_ERA},
        {CALL("=?base64?YWRk"), {V, M_CALL, "n:=?base64?YWRk"}, OK, MODERN_ERA},
        {CALL("add"), {V, M_CALL}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:"}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:sub"}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:ADD"}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:add", "n:add"}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:=?base64?YWRi?="}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("add"), {V, M_CALL, "n:=?base64?YWR?="}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("a"), {V, M_CALL, "n:=?base64?YR==?="}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("a"), {V, M_CALL, "n:=?base64?YQ?="}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("=?base64?YWRk?="), {V, M_CALL, "n:=?base64?YWRk?="}, LP_REASON_header_mismatch,
            NO_ERA},
        {CALL("gr\xc3\xb6\xc3\x9f"
              "e"),
            {V, M_CALL,
                "n:gr\xc3\xb6\xc3\x9f"
                "e"},
            LP_REASON_header_mismatch, NO_ERA},
        {CALL("a\\u0001"), {V, M_CALL, "n:a\x01"}, LP_REASON_header_mismatch, NO_ERA},
        {CALL("a\\u007f"), {V, M_CALL, "n:a\x7f"}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("tools/call", MODERN), {V, M_CALL, "n:add"}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("tools/call", MODERN), {V, M_CALL, "n:"}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("tools/call", "\"name\":7," MODERN), {V, M_CALL, "n:7"}, LP_REASON_header_mismatch,
            NO_ERA},
    };
    CHECK(ROWS);
}

/* Which member the name comes from, by method; the details say which. */
static void test_name_sources(void **state)
{
    (void)state;
#define ALL_THREE "\"name\":\"N\",\"uri\":\"U\",\"taskId\":\"T\"," MODERN
#define SOURCE(method, good, bad)                                                                  \
    {REQUEST(method, ALL_THREE), {V, "m:" method, "n:" good}, OK, MODERN_ERA},                     \
        {REQUEST(method, ALL_THREE), {V, "m:" method, "n:" bad}, LP_REASON_header_mismatch,        \
            NO_ERA},                                                                               \
    {                                                                                              \
        REQUEST(method, ALL_THREE), {V, "m:" method}, LP_REASON_header_mismatch, NO_ERA            \
    }
    static const struct row ROWS[] = {
        SOURCE("tools/call", "N", "U"),
        SOURCE("prompts/get", "N", "T"),
        SOURCE("resources/read", "U", "N"),
        SOURCE("tasks/get", "T", "N"),
        SOURCE("tasks/update", "T", "U"),
        SOURCE("tasks/cancel", "T", "N"),
        {REQUEST("tasks/list", ALL_THREE), {V, "m:tasks/list"}, OK, MODERN_ERA},
        {REQUEST("resources/list", ALL_THREE), {V, "m:resources/list"}, OK, MODERN_ERA},
    };
    CHECK(ROWS);
}

static void test_notifications(void **state)
{
    (void)state;
#define NOTE "notifications/cancelled"
    static const struct row ROWS[] = {
        {NOTIFICATION(NOTE, MODERN), {V}, OK, MODERN_ERA},
        {NOTIFICATION(NOTE, MODERN), {V, "m:" NOTE}, OK, MODERN_ERA},
        {NOTIFICATION(NOTE, MODERN), {V, "m:other"}, LP_REASON_header_mismatch, NO_ERA},
        {NOTIFICATION(NOTE, MODERN), {NULL}, LP_REASON_header_mismatch, NO_ERA},
        {NOTIFICATION(NOTE, ""), {V}, OK, MODERN_ERA},
        {NOTIFICATION(NOTE, ""), {V, "m:" NOTE}, OK, MODERN_ERA},
        {NOTIFICATION(NOTE, ""), {V, "m:other"}, LP_REASON_header_mismatch, NO_ERA},
        {NOTIFICATION(NOTE, ""), {V, V}, LP_REASON_header_mismatch, NO_ERA},
        {NOTIFICATION(NOTE, ""), {"v:2031-01-01"}, LP_REASON_unknown_version, NO_ERA},
        {NOTIFICATION(NOTE, ""), {"v:2025-11-25"}, OK, LEGACY},
        {NOTIFICATION("tools/call", "\"name\":\"a\"," MODERN), {V}, OK, MODERN_ERA},
        {NOTIFICATION("tools/call", "\"name\":\"a\"," MODERN), {V, "n:a"}, OK, MODERN_ERA},
        {NOTIFICATION("tools/call", "\"name\":\"a\"," MODERN), {V, "n:b"},
            LP_REASON_header_mismatch, NO_ERA},
    };
    CHECK(ROWS);
}

/* Steps 7 to 10. */
static void test_legacy(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {REQUEST("initialize", ""), {NULL}, OK, LEGACY},
        {REQUEST("initialize", ""), {"v:2025-06-18"}, OK, LEGACY},
        {REQUEST("initialize", ""), {V}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("initialize", ""), {"v:2031-01-01"}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("initialize", ""), {"v:2025-06-18", V}, LP_REASON_header_mismatch, NO_ERA},
        {REQUEST("tools/list", ""), {V}, LP_REASON_missing_meta, NO_ERA},
        {REQUEST("tools/list", ""), {"v:2031-01-01"}, LP_REASON_missing_meta, NO_ERA},
        {REQUEST("tools/list", "\"_meta\":{\"progressToken\":1}"), {V}, LP_REASON_missing_meta,
            NO_ERA},
        {"{\"id\":1,\"method\":\"tools/list\"}", {V}, LP_REASON_missing_meta, NO_ERA},
        {REQUEST("server/discover", ""), {NULL}, LP_REASON_missing_meta, NO_ERA},
        {REQUEST("subscriptions/listen", ""), {"v:2025-06-18"}, LP_REASON_missing_meta, NO_ERA},
        {REQUEST("tools/list", ""), {NULL}, OK, LEGACY},
        {REQUEST("tools/list", ""), {"v:2025-11-25"}, OK, LEGACY},
        {REQUEST("tools/list", ""), {"v:nonsense"}, OK, LEGACY},
        {REQUEST("tools/call", "\"name\":\"a\""), {"n:b", "m:c"}, OK, LEGACY},
        {NOTIFICATION("notifications/initialized", ""), {NULL}, OK, LEGACY},
    };
    CHECK(ROWS);
}

/* A long name outside ASCII, as big as a head allows. */
static void test_long_name(void **state)
{
    (void)state;
    enum { PAIRS = 12000 };
    static char body[PAIRS * 3 + 300];
    static char header[PAIRS * 4 + 100];
    strcpy(body, "{\"id\":1,\"method\":\"tools/call\",\"params\":{" MODERN ",\"name\":\"");
    strcpy(header, "n:=?base64?");
    size_t body_len = strlen(body);
    size_t header_len = strlen(header);
    for (int i = 0; i < PAIRS; i++) {
        memcpy(body + body_len, "\xe2\x82\xac", 3);
        memcpy(header + header_len, "4oKs", 4);
        body_len += 3;
        header_len += 4;
    }
    strcpy(body + body_len, "\"}}");
    strcpy(header + header_len, "?=");
    check_row(&(struct row){body, {V, M_CALL, header}, OK, MODERN_ERA});
    header[header_len - 1] = 't';
    check_row(&(struct row){body, {V, M_CALL, header}, LP_REASON_header_mismatch, NO_ERA});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_modern),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_name_sources),
        cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_legacy),
        cmocka_unit_test(test_long_name),
    };
    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
