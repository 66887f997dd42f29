/* mcp.json (conf/mcp_json.h, requirements [C8]): what an entry means, what is refused and how it is
 * told, and that an edit leaves every other byte where it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conf/mcp_json.h"

static bool look_up(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    (void)ctx;
    if (lp_span_eq(name, LP_SPAN("TOKEN")))
        *ret_value = LP_SPAN("s3cret");
    else if (lp_span_eq(name, LP_SPAN("HOST_1")))
        *ret_value = LP_SPAN("a.test");
    else if (lp_span_eq(name, LP_SPAN("EMPTY")))
        *ret_value = LP_SPAN("");
    else if (lp_span_eq(name, LP_SPAN("LINES")))
        *ret_value = LP_SPAN("s3cret\r\nX: y");
    else
        return false;
    return true;
}

struct reading {
    struct lp_arena arena;
    struct lp_buf problem;
    struct lp_mcp_json_server server;
    int err;
};

static void begin(struct reading *r, const char *text, const char *name, bool with_lookup)
{
    lp_arena_init(&r->arena, 1 << 20);
    lp_buf_init(&r->problem, 1024);
    r->server = (struct lp_mcp_json_server){.url = LP_SPAN("untouched")};
    struct lp_mcp_json_source source = {.text = lp_span_str(text),
        .lookup = with_lookup ? look_up : NULL,
        .arena = &r->arena,
        .problem = &r->problem};
    r->err = lp_mcp_json_find(&source, lp_span_str(name), &r->server);
}

static void end(struct reading *r)
{
    lp_arena_fini(&r->arena);
    lp_buf_release(&r->problem);
}

/* "type|url or command|header: value; ...|jar|suppress" */
static void tell(const struct lp_mcp_json_server *s, char room[512])
{
    static const char *const types[] = {"auto", "http", "sse", "stdio"};
    struct lp_span target = s->type == LP_MCP_JSON_STDIO ? s->command : s->url;
    int len = snprintf(room, 512, "%s|%.*s|", types[s->type], (int)target.len, target.ptr);
    for (uint32_t i = 0; i < s->header_count; i++)
        len += snprintf(room + len, 512 - (size_t)len, "%.*s: %.*s;", (int)s->headers[i].name.len,
            s->headers[i].name.ptr, (int)s->headers[i].value.len, s->headers[i].value.ptr);
    snprintf(room + len, 512 - (size_t)len, "|%s|%s", s->cookie_jar ? "jar" : "",
        s->suppress_notification_stream ? "quiet" : "");
}

struct entry_row {
    const char *entry;
    const char *told; /* or the sentence after "mcpServers.s" when it begins with a "!" */
};

static const struct entry_row entries[] = {
    {"{\"url\": \"http://a/mcp\"}", "auto|http://a/mcp|||"},
    {"{\"type\": \"streamable-http\", \"url\": \"http://a/mcp\"}", "http|http://a/mcp|||"},
    {"{\"type\": \"http\", \"url\": \"http://a/mcp\"}", "http|http://a/mcp|||"},
    {"{\"type\": \"streamableHttp\", \"url\": \"http://a/mcp\"}", "http|http://a/mcp|||"},
    {"{\"type\": \"sse\", \"url\": \"http://a/sse\"}", "sse|http://a/sse|||"},
    {"{\"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {\"A\": "
     "\"b\"}}",
        "stdio|npx|||"},
    {"{\"command\": \"npx\"}", "stdio|npx|||"},
    {"{\"command\": \"npx\", \"url\": \"http://a\"}", "stdio|npx|||"},
    {"{\"url\": \"http:\\/\\/a\\u002Fmcp\", \"other\": [1.0, {\"url\": 1}]}",
        "auto|http://a/mcp|||"},
    {"{\"url\": 1, \"url\": \"http://a\"}", "auto|http://a|||"},
    /* [C8]: anything but an explicit true is dropped */
    {"{\"url\": \"http://a\", \"cookieJar\": true}", "auto|http://a||jar|"},
    {"{\"url\": \"http://a\", \"cookieJar\": true, \"suppressNotificationStream\": true}",
        "auto|http://a||jar|quiet"},
    {"{\"url\": \"http://a\", \"cookieJar\": false}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": null}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": \"true\"}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": 1}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": [true]}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": {\"on\": true}}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"CookieJar\": true, \"x\": {\"cookieJar\": true}}",
        "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookieJar\": true, \"cookieJar\": false}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"cookie\\u004Aar\": true}", "auto|http://a||jar|"},
    {"{\"command\": \"npx\", \"cookieJar\": true, \"suppressNotificationStream\": true}",
        "stdio|npx|||"},
    /* headers */
    {"{\"url\": \"http://a\", \"headers\": {}}", "auto|http://a|||"},
    {"{\"url\": \"http://a\", \"headers\": {\"X-A\": \" b \\u0041\", \"X-Empty\": \"\"}}",
        "auto|http://a|X-A: b A;X-Empty: ;||"},
    {"{\"url\": \"http://a\", \"headers\": {\"A\": \"Bearer ${TOKEN}\", \"B\": \"${env:TOKEN}!\"}}",
        "auto|http://a|A: Bearer s3cret;B: s3cret!;||"},
    {"{\"url\": \"http://${HOST_1}:${PORT:-80}/${EMPTY}${NONE:-}mcp\"}",
        "auto|http://a.test:80/mcp|||"},
    {"{\"url\": \"http://a/${HOST_1:-b}\"}", "auto|http://a/a.test|||"},
    {"{\"url\": \"http://a/${NONE:-x:-y}\"}", "auto|http://a/x:-y|||"},
    {"{\"url\": \"http://a/$TOKEN/$/${TOKEN\"}", "auto|http://a/$TOKEN/$/${TOKEN|||"},
    {"{\"command\": \"${HOST_1}/npx\"}", "stdio|a.test/npx|||"},
    /* refused, and how it is told */
    {"{}", "! has neither a url nor a command"},
    {"{\"type\": \"streamable-http\"}", "!.url is missing"},
    {"{\"type\": \"stdio\"}", "!.command is missing"},
    {"{\"type\": \"ws\", \"url\": \"ws://a\"}",
        "!.type is not known; use streamable-http, sse or stdio"},
    {"{\"type\": 1, \"url\": \"http://a\"}",
        "!.type is not known; use streamable-http, sse or stdio"},
    {"{\"url\": 1}", "!.url is not a string"},
    {"{\"url\": \"\"}", "!.url is empty"},
    {"{\"url\": \"${EMPTY}\"}", "!.url is empty"},
    {"{\"url\": \"http://${PORT}\"}",
        "!.url wants the environment variable PORT, which is not set"},
    {"{\"url\": \"http://${input:host}\"}",
        "!.url holds a ${...} that is no environment variable; "
        "write ${NAME} or ${NAME:-default}"},
    {"{\"url\": \"http://${}\"}",
        "!.url holds a ${...} that is no environment variable; "
        "write ${NAME} or ${NAME:-default}"},
    {"{\"url\": \"http://${1A}\"}",
        "!.url holds a ${...} that is no environment variable; "
        "write ${NAME} or ${NAME:-default}"},
    {"{\"url\": \"http://a\", \"headers\": [\"A: b\"]}", "!.headers is not an object of strings"},
    {"{\"url\": \"http://a\", \"headers\": {\"A\": 1}}", "!.headers.A is not a string"},
    {"{\"url\": \"http://a\", \"headers\": {\"A b\": \"1\"}}",
        "!.headers has a member whose name cannot be that of a header"},
    {"{\"url\": \"http://a\", \"headers\": {\"A\": \"s3cret\\n\"}}",
        "!.headers.A has a value that no header can have (a line end or a control)"},
    {"{\"url\": \"http://a\", \"headers\": {\"A\": \"${LINES}\"}}",
        "!.headers.A has a value that no header can have (a line end or a control)"},
    {"{\"url\": \"http://a\", \"headers\": {\"A\": \"${NONE}\"}}",
        "!.headers.A wants the environment variable NONE, which is not set"},
};

static void test_entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char text[512], told[512];
        struct reading r;
        snprintf(text, sizeof text,
            "\xEF\xBB\xBF{\"mcpServers\": {\"o\": 1, \"s\": %s}, \"x\": 2}\n", entries[i].entry);
        begin(&r, text, "s", true);
        tell(&r.server, told);
        if (r.err)
            snprintf(told, sizeof told, "!%.*s", (int)r.problem.len - 12,
                lp_buf_span(&r.problem).ptr + 12);
        if (strcmp(told, entries[i].told) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", entries[i].entry, told, entries[i].told);
        assert_true(r.err ? r.err == LP_ERANGE : r.problem.len == 0);
        assert_true(!r.err || lp_span_eq(r.server.url, LP_SPAN("untouched")));
        assert_int_equal(lp_span_search(lp_buf_span(&r.problem), LP_SPAN("s3cret")), r.problem.len);
        end(&r);
    }
}

struct file_row {
    const char *text;
    const char *name;
    int err;
    const char *problem;
};

#define NO_FORM "it is not JSON of the form {\"mcpServers\": {\"NAME\": {...}}}"

static const struct file_row files[] = {
    {"", "s", LP_ESYNTAX, NO_FORM},
    {"{\"mcpServers\": {\"s\": {\"url\": \"http://a\"}}", "s", LP_ESYNTAX, NO_FORM},
    {"{\"mcpServers\": {\"s\": {\"url\": \"http://a\"},}}", "s", LP_ESYNTAX, NO_FORM},
    {"// comment\n{}", "s", LP_ESYNTAX, NO_FORM},
    {"[]", "s", LP_ESYNTAX, NO_FORM},
    {"\"mcpServers\"", "s", LP_ESYNTAX, NO_FORM},
    {"{\"mcpServers\": []}", "s", LP_ESYNTAX, NO_FORM},
    {"{\"mcpServers\": {\"s\": []}}", "s", LP_ESYNTAX, NO_FORM},
    {"{\"mcpServers\": {\"s\": null}}", "s", LP_ESYNTAX, NO_FORM},
    {"{}", "s", LP_ENOT_FOUND, "there is no mcpServers in it"},
    {"{\"servers\": {\"s\": {}}}", "s", LP_ENOT_FOUND, "there is no mcpServers in it"},
    {"{\"mcpServers\": {}}", "s", LP_ENOT_FOUND, "there is no server \"s\" in it; there is: none"},
    {"{\"mcpServers\": {\"S\": {}, \"s \": {}}}", "s", LP_ENOT_FOUND,
        "there is no server \"s\" in it; there is: \"S\", \"s \""},
    {"{\"mcpServers\": {\"s\\u0020t\": {\"url\": \"http://a\"}}}", "s t", LP_OK, ""},
    {"{\"mcpServers\": {\"s\": {}}, \"mcpServers\": {\"s\": {\"url\": \"http://a\"}}}", "s", LP_OK,
        ""},
};

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct reading r;
        begin(&r, files[i].text, files[i].name, true);
        if (r.err != files[i].err ||
            !lp_span_eq(lp_buf_span(&r.problem), lp_span_str(files[i].problem)))
            fail_msg("%s: %d, %.*s", files[i].text, r.err, (int)r.problem.len,
                lp_buf_span(&r.problem).ptr);
        end(&r);
    }
}

static void test_without_lookup(void **state)
{
    (void)state;
    struct reading r;
    begin(&r, "{\"mcpServers\": {\"s\": {\"url\": \"http://${HOST_1}\"}}}", "s", false);
    assert_int_equal(r.err, LP_OK);
    assert_true(lp_span_eq(r.server.url, LP_SPAN("http://${HOST_1}")));
    end(&r);
}

/* Bounds: memory, headers, what variables make of a value, and the room for the sentence. */
static void test_bounds(void **state)
{
    (void)state;
    static char text[8192];
    struct reading r;
    size_t len = (size_t)snprintf(
        text, sizeof text, "{\"mcpServers\": {\"s\": {\"url\": \"u\", \"headers\": {");
    for (int i = 0; i < 65; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s\"h%d\": \"\"", i ? "," : "", i);
    snprintf(text + len, sizeof text - len, "}}}}");
    begin(&r, text, "s", true);
    assert_int_equal(r.err, LP_ERANGE);
    assert_true(
        lp_span_ends(lp_buf_span(&r.problem), LP_SPAN(".headers has more than 64 members")));
    end(&r);

    len = (size_t)snprintf(text, sizeof text, "{\"mcpServers\": {\"s\": {\"url\": \"");
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "${BIG}");
    snprintf(text + len, sizeof text - len, "\"}}}");
    lp_arena_init(&r.arena, 4096);
    lp_buf_init(&r.problem, 16);
    struct lp_mcp_json_source source = {
        .text = lp_span_str(text), .arena = &r.arena, .problem = &r.problem};
    assert_int_equal(lp_mcp_json_find(&source, LP_SPAN("s"), &r.server), LP_OK);
    source.lookup = look_up;
    assert_int_equal(lp_mcp_json_find(&source, LP_SPAN("s"), &r.server), LP_ERANGE);
    assert_int_equal(r.problem.len, 0);
    assert_int_equal(lp_mcp_json_find(&source, LP_SPAN("t"), &r.server), LP_ENOT_FOUND);
    r.arena.max = 16;
    lp_arena_fini(&r.arena);
    assert_int_equal(lp_mcp_json_find(&source, LP_SPAN("s"), &r.server), LP_ENOMEM);
    end(&r);
}

static bool look_up_big(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    static char big[4096];
    (void)ctx;
    (void)name;
    memset(big, 'x', sizeof big);
    *ret_value = lp_span(big, sizeof big);
    return true;
}

static void test_long_variables(void **state)
{
    (void)state;
    static char text[1024];
    struct reading r;
    size_t len = (size_t)snprintf(text, sizeof text, "{\"mcpServers\": {\"s\": {\"url\": \"");
    for (int i = 0; i < 17; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "${BIG}");
    snprintf(text + len, sizeof text - len, "\"}}}");
    lp_arena_init(&r.arena, 1 << 20);
    lp_buf_init(&r.problem, 256);
    struct lp_mcp_json_source source = {
        .text = lp_span_str(text), .lookup = look_up_big, .arena = &r.arena, .problem = &r.problem};
    assert_int_equal(lp_mcp_json_find(&source, LP_SPAN("s"), &r.server), LP_ERANGE);
    assert_true(lp_span_eq(lp_buf_span(&r.problem),
        LP_SPAN("mcpServers.s.url is too long once its variables are filled in")));
    end(&r);
}

/* --- editing ---------------------------------------------------------------------------------- */

struct edit_row {
    const char *before;
    const char *on;  /* NULL: as before */
    const char *off; /* NULL: as before */
};

/* The entry "s"; what is around it is added by the test. */
static const struct edit_row edits[] = {
    {"{}", "{\"cookieJar\": true}", NULL},
    {"{ \n }", "{\"cookieJar\": true \n }", NULL},
    {"{\"url\": \"u\"}", "{\"url\": \"u\", \"cookieJar\": true}", NULL},
    {"{\"url\":\"u\"}", "{\"url\":\"u\",\"cookieJar\":true}", NULL},
    {"{ \"url\" : \"u\" }", "{ \"url\" : \"u\", \"cookieJar\" : true }", NULL},
    {"{\n\t\"type\": \"sse\",\n\t\"url\": \"u\"\n}",
        "{\n\t\"type\": \"sse\",\n\t\"url\": \"u\",\n\t\"cookieJar\": true\n}", NULL},
    {"{\r\n    \"url\":\t\"u\"\r\n  }",
        "{\r\n    \"url\":\t\"u\",\r\n    \"cookieJar\":\ttrue\r\n  }", NULL},
    {"{\"url\": \"u\", \"headers\": {\"cookieJar\": \"no\"}}",
        "{\"url\": \"u\", \"headers\": {\"cookieJar\": \"no\"}, \"cookieJar\": true}", NULL},
    {"{\"url\": \"u\", \"n\": 1.0e5, \"e\": \"\\u00e9\\/\"}",
        "{\"url\": \"u\", \"n\": 1.0e5, \"e\": \"\\u00e9\\/\", \"cookieJar\": true}", NULL},
    /* there already */
    {"{\"cookieJar\": true}", NULL, "{}"},
    {"{\"cookieJar\":true,\"url\":\"u\"}", NULL, "{\"url\":\"u\"}"},
    {"{\"url\": \"u\", \"cookieJar\": true}", NULL, "{\"url\": \"u\"}"},
    {"{\n  \"url\": \"u\",\n  \"cookieJar\": true\n}", NULL, "{\n  \"url\": \"u\"\n}"},
    {"{\n  \"cookieJar\": true,\n  \"url\": \"u\"\n}", NULL, "{\n  \"url\": \"u\"\n}"},
    {"{\"a\": 1, \"cookieJar\": true, \"url\": \"u\"}", NULL, "{\"a\": 1, \"url\": \"u\"}"},
    {"{\"a\": 1 , \"cookieJar\" : true , \"url\": \"u\"}", NULL, "{\"a\": 1 , \"url\": \"u\"}"},
    /* what is no explicit true becomes one, or goes: off values are omitted */
    {"{\"url\": \"u\", \"cookieJar\": false}", "{\"url\": \"u\", \"cookieJar\": true}",
        "{\"url\": \"u\"}"},
    {"{\"cookieJar\": {\"x\": [1]}, \"url\": \"u\"}", "{\"cookieJar\": true, \"url\": \"u\"}",
        "{\"url\": \"u\"}"},
    {"{\"cookie\\u004Aar\": null, \"url\": \"u\"}", "{\"cookie\\u004Aar\": true, \"url\": \"u\"}",
        "{\"url\": \"u\"}"},
    /* twice: the last counts, and all of them go */
    {"{\"cookieJar\": 1, \"cookieJar\": 2}", "{\"cookieJar\": 1, \"cookieJar\": true}", "{}"},
    {"{\"cookieJar\": 1, \"a\": 0, \"cookieJar\": 2}",
        "{\"cookieJar\": 1, \"a\": 0, \"cookieJar\": true}", "{\"a\": 0}"},
    {"{\"a\": 0, \"cookieJar\": 1, \"cookieJar\": 2, \"b\": 0}",
        "{\"a\": 0, \"cookieJar\": 1, \"cookieJar\": true, \"b\": 0}", "{\"a\": 0, \"b\": 0}"},
    {"{\"cookieJar\": 1,\"cookieJar\": 2, \"b\": 0}",
        "{\"cookieJar\": 1,\"cookieJar\": true, \"b\": 0}", "{\"b\": 0}"},
};

struct frame {
    const char *before;
    const char *behind;
};

static void check_edit(const struct frame *frame, const struct edit_row *row, bool value)
{
    char text[512], expected[512];
    const char *wanted = value ? row->on : row->off;
    struct lp_buf out;
    snprintf(text, sizeof text, "%s%s%s", frame->before, row->before, frame->behind);
    snprintf(expected, sizeof expected, "%s%s%s", frame->before, wanted ? wanted : row->before,
        frame->behind);
    lp_buf_init(&out, 4096);
    assert_int_equal(lp_buf_append(&out, LP_SPAN("kept ")), LP_OK);
    int err =
        lp_mcp_json_set_bool(lp_span_str(text), LP_SPAN("s"), LP_SPAN("cookieJar"), value, &out);
    assert_int_equal(err, LP_OK);
    struct lp_span got = lp_span_from(lp_buf_span(&out), 5);
    if (!lp_span_eq(got, lp_span_str(expected)))
        fail_msg("%s: %.*s instead of %s", text, (int)got.len, got.ptr, expected);
    lp_buf_release(&out);
}

static void test_edits(void **state)
{
    (void)state;
    static const struct frame frames[] = {
        {"{\"mcpServers\": {\"s\": ", "}}"},
        {"\xEF\xBB\xBF\n{ \"a\": 1.00,\"cookieJar\":0, \"mcpServers\":\n"
         "{\"r\": {\"cookieJar\": true},\"s\":",
            " , \"t\": {} }, \"z\" : [ ] }\r\n\r\n"},
    };
    for (size_t f = 0; f < sizeof frames / sizeof *frames; f++)
        for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
            check_edit(&frames[f], &edits[i], true);
            check_edit(&frames[f], &edits[i], false);
        }
}

static void check_refused(const char *text, int expected, size_t room)
{
    for (int value = 0; value < 2; value++) {
        struct lp_buf out;
        lp_buf_init(&out, room);
        int err = lp_mcp_json_set_bool(
            lp_span_str(text), LP_SPAN("s"), LP_SPAN("cookieJar"), value, &out);
        assert_int_equal(err, expected);
        assert_int_equal(out.len, 0);
        lp_buf_release(&out);
    }
}

static void test_refused_edits(void **state)
{
    (void)state;
    check_refused("{\"mcpServers\": {\"s\": {\"url\": \"u\"}}", LP_ESYNTAX, 4096);
    check_refused("{\"mcpServers\": {\"s\": 1}}", LP_ESYNTAX, 4096);
    check_refused("{\"mcpServers\": {\"t\": {}}}", LP_ENOT_FOUND, 4096);
    check_refused("{}", LP_ENOT_FOUND, 4096);
    check_refused("{\"mcpServers\": {\"s\": {\"url\": \"u\"}}}", LP_ELIMIT, 40);
    /* A stdio entry keeps what it has and is offered nothing. */
    check_refused("{\"mcpServers\": {\"s\": {\"command\": \"x\", \"cookieJar\": true}}}",
        LP_EUNSUPPORTED, 4096);
    check_refused("{\"mcpServers\": {\"s\": {\"type\": \"stdio\"}}}", LP_EUNSUPPORTED, 4096);
}

struct settings_row {
    const char *json;
    int err;
    const char *told; /* the sentence, or two of "-", "0", "1" */
};

static const struct settings_row settings_rows[] = {
    {"{}", LP_OK, "--"},
    {"{\"cookieJar\": true}", LP_OK, "1-"},
    {"{\"cookieJar\": false, \"suppressNotificationStream\": true, \"x\": 1}", LP_OK, "01"},
    {"{\"suppressNotificationStream\": false}", LP_OK, "-0"},
    {"{\"cookieJar\": \"true\"}", LP_ERANGE, "settings.cookieJar must be a boolean"},
    {"{\"cookieJar\": 1}", LP_ERANGE, "settings.cookieJar must be a boolean"},
    {"{\"cookieJar\": null}", LP_ERANGE, "settings.cookieJar must be a boolean"},
    {"{\"cookieJar\": {}}", LP_ERANGE, "settings.cookieJar must be a boolean"},
    {"{\"cookieJar\": true, \"suppressNotificationStream\": 0}", LP_ERANGE,
        "settings.suppressNotificationStream must be a boolean"},
    {"[]", LP_ESYNTAX, "settings must be an object"},
    {"true", LP_ESYNTAX, "settings must be an object"},
    {"{\"cookieJar\": 1", LP_ESYNTAX, "settings must be an object"},
};

static char told_flag(bool is_there, bool value)
{
    return is_there ? value ? '1' : '0' : '-';
}

static void test_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof settings_rows / sizeof *settings_rows; i++) {
        struct lp_mcp_json_settings s = {0};
        const char *sentence = NULL;
        int err = lp_mcp_json_read_settings(lp_span_str(settings_rows[i].json), &s, &sentence);
        assert_int_equal(err, settings_rows[i].err);
        char told[3] = {told_flag(s.has_cookie_jar, s.cookie_jar),
            told_flag(s.has_suppress_notification_stream, s.suppress_notification_stream), '\0'};
        assert_string_equal(err ? sentence : told, settings_rows[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_without_lookup),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_long_variables),
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_refused_edits),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
