/* Requests of 2026-07-28 against the MCP server, through real HTTP bytes: what is refused and how,
 * what their results carry, that nothing of a session sticks to them. */
#include "../interop/conf_offer.h"
#include "modern_harness.h"

/* --- an offer of our own --- */

static uint32_t over_count;

static void say_ok(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_result(call,
        LP_SPAN("{\"content\":[],\"_meta\":{\"a\":1,\"" PREFIX "serverInfo\":{\"name\":\"x\"}}}"));
}

static void say_typed(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_result(call, LP_SPAN("{\"resultType\":\"own\",\"content\":[]}"));
}

static void report(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_log(call, LP_LEVEL_DEBUG, NULL, LP_SPAN("\"low\""));
    lp_job_log(call, LP_LEVEL_ERROR, NULL, LP_SPAN("\"high\""));
    lp_job_progress(call, 1, 2);
    say_ok(ctx, call);
}

static void wait_long(void *ctx, struct lp_job *call)
{
    (void)ctx;
    assert_int_equal(lp_job_wait(call, 60ull * SECOND), 0);
}

static void wake_up(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)wake;
    say_ok(ctx, call);
}

static void count_over(void *ctx, struct lp_job *call)
{
    (void)ctx;
    (void)call;
    over_count++;
}

static void need_sampling(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_lacks(call, "{\"sampling\":{}}");
}

#define MARKED                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"shop\":{\"type\":\"string\",\"x-mcp-header\":\"Shop\"" \
    "},\"odd\":{\"x-mcp-header\":7},\"none\":{\"x-mcp-header\":\"\"},\"n\":{\"type\":\"integer\"," \
    "\"x-mcp-header\":\"Count\"},\"on\":{\"type\":\"boolean\","                                    \
    "\"x-mcp-header\":\"On\"},\"plain\":{\"type\":\"string\"},\"in\":{\"type\":\"object\","        \
    "\"properties\":{\"deep\":{\"type\":\"string\",\"x-mcp-header\":\"Deep\"}}}}}"

static const struct lp_tool TOOLS[] = {
    {.name = "ok", .description = "x", .input_schema = OBJECT(""), .handler = {.run = say_ok}},
    {.name = "typed",
        .description = "x",
        .input_schema = OBJECT(""),
        .handler = {.run = say_typed}},
    {.name = "report", .description = "x", .input_schema = OBJECT(""), .handler = {.run = report}},
    {.name = "wait",
        .description = "x",
        .input_schema = OBJECT(""),
        .handler = {.run = wait_long, .wake = wake_up, .over = count_over}},
    {.name = "marked", .description = "x", .input_schema = MARKED, .handler = {.run = say_ok}},
    {.name = "gr\xC3\xB6\xC3\x9F"
             "e",
        .description = "x",
        .input_schema = OBJECT(""),
        .handler = {.run = say_ok}},
    {.name = "needs",
        .description = "x",
        .input_schema = OBJECT(""),
        .handler = {.run = need_sampling}},
};

static struct lp_offer OFFER = {.tools = TOOLS,
    .resources = CONF_RESOURCES,
    .prompts = CONF_PROMPTS,
    .complete = &CONF_COMPLETE,
    .tool_count = sizeof TOOLS / sizeof *TOOLS,
    .resource_count = sizeof CONF_RESOURCES / sizeof *CONF_RESOURCES,
    .prompt_count = sizeof CONF_PROMPTS / sizeof *CONF_PROMPTS,
    .lists_change = true,
    .has_subscriptions = true};

static struct client begin_as(struct world *w, struct lp_server_args args)
{
    start_server(w, &OFFER, args);
    return (struct client){.world = w};
}

static struct client begin(struct world *w)
{
    return begin_as(w, (struct lp_server_args){0});
}

#define SERVER_INFO "\"_meta\":{\"" PREFIX "serverInfo\":{\"name\":\"test\",\"version\":\"1\"}"

/* --- what is answered --- */

static void discover_tells_what_there_is(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin_as(&w, (struct lp_server_args){.instructions = LP_SPAN("Be kind")});
    const char *text = ask_modern(&c, (struct modern){.method = "server/discover", .id = "\"d\""});
    STATUS(text, "200");
    HAS(text, "\"id\":\"d\",\"result\":{" SERVER_INFO "},\"resultType\":\"complete\"");
    HAS(text,
        "\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]");
    HAS(text, "\"capabilities\":{\"logging\":{},\"tools\":{\"listChanged\":true}");
    HAS(text, "\"instructions\":\"Be kind\",\"ttlMs\":0,\"cacheScope\":\"private\"}");
    LACKS(text, "mcp-session-id");
    finish(&w);
    c = begin_as(&w, (struct lp_server_args){.sse_path = LP_SPAN("/sse")});
    HAS(ask_modern(&c, (struct modern){.method = "server/discover"}), ",\"2024-11-05\"]");
    finish(&w);
}

static void lists_and_reads_say_how_long_they_are_fresh(void **state)
{
    (void)state;
    struct world w;
    OFFER.fresh_ms = 5000;
    OFFER.is_public = true;
    struct client c = begin(&w);
    static const char *const LISTS[] = {
        "tools/list", "prompts/list", "resources/list", "resources/templates/list"};
    for (size_t i = 0; i < 4; i++)
        HAS(ask_modern(&c, (struct modern){.method = LISTS[i]}),
            "\"ttlMs\":5000,\"cacheScope\":\"public\"}");
    const char *text = ask_modern(&c,
        (struct modern){.method = "resources/read",
            .name = "test://static-text",
            .params = "\"uri\":\"test://static-text\","});
    HAS(text, "\"ttlMs\":0,\"cacheScope\":\"private\"}");
    LACKS(ask_modern(&c,
              (struct modern){.method = "prompts/get",
                  .name = "test_simple_prompt",
                  .params = "\"name\":\"test_simple_prompt\","}),
        "ttlMs");
    HAS(ask_modern(&c, (struct modern){.method = "completion/complete"}), "\"paris\"");
    OFFER.fresh_ms = 0;
    OFFER.is_public = false;
    finish(&w);
}

static void results_carry_type_and_server(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *text = call_modern(&c, "ok", "{}");
    STATUS(text, "200");
    HAS(text, "content-type: application/json");
    HAS(text, "{" SERVER_INFO ",\"a\":1},\"resultType\":\"complete\",\"content\":[]}");
    text = call_modern(&c, "typed", "{}");
    HAS(text, "\"resultType\":\"own\"");
    LACKS(text, "complete");
    finish(&w);
}

static void names_are_decoded(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *params = "\"name\":\"gr\\u00f6\xC3\x9F"
                         "e\",\"arguments\":{},";
    struct modern m = {.method = "tools/call", .name = "=?base64?Z3LDtsOfZQ==?=", .params = params};
    HAS(ask_modern(&c, m), "complete");
    m.name = "=?base64?Z3LDtsOfZQ=?=";
    HAS(ask_modern(&c, m), "-32020");
    finish(&w);
}

/* --- what is refused --- */

static void heads_agree_with_bodies(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    static const struct modern CASES[] = {
        {.method = "tools/call", .params = "\"name\":\"ok\","},
        {.method = "tools/call", .name = "other", .params = "\"name\":\"ok\","},
        {.method = "tools/call",
            .name = "ok",
            .params = "\"name\":\"ok\",",
            .head = "Mcp-Name: ok\r\n"},
        {.method = "tools/list", .head = "Mcp-Method: tools/list\r\n"},
        {.method = "tools/list", .head = "MCP-Protocol-Version: 2026-07-28\r\n"},
        {.method = "resources/read", .name = "test://x", .params = "\"uri\":\"test://y\","},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *text = ask_modern(&c, CASES[i]);
        STATUS(text, "400");
        HAS(text, "\"id\":1,\"error\":{\"code\":-32020");
    }
    c.extra = ACCEPT MODERN_HEAD("initialize");
    HAS(post(&c, INITIALIZE("2025-11-25")), "-32020");
    finish(&w);
}

static void versions_are_judged(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    static const char LIST[] =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{"
        "\"_meta\":{\"" PREFIX "protocolVersion\":\"2031-01-01\",\"" PREFIX
        "clientCapabilities\":{}}}}";
    c.extra = ACCEPT "MCP-Protocol-Version: 2031-01-01\r\nMcp-Method: tools/list\r\n";
    const char *text = post(&c, LIST);
    STATUS(text, "400");
    HAS(text, "\"id\":7,\"error\":{\"code\":-32022,\"message\":\"Unsupported protocol version\"");
    HAS(text, "\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\"");
    HAS(text, "],\"requested\":\"2031-01-01\"}");
    c.extra = ACCEPT MODERN_HEAD("tools/list");
    HAS(post(&c, LIST), "-32020");
    text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/list\"}");
    STATUS(text, "400");
    HAS(text, "\"id\":8,\"error\":{\"code\":-32602,\"message\":\"params._meta lacks");
    HAS(post(&c,
            "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
            "\"" PREFIX "protocolVersion\":\"2026-07-28\"}}}"),
        "clientCapabilities");
    HAS(post(&c,
            "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
            "\"" PREFIX "protocolVersion\":3}}}"),
        "\"requested\":null");
    HAS(post(&c, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]"), "-32600");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), "-32600");
    c.extra = NULL;
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}"), "-32602");
    finish(&w);
}

static void removed_methods_are_not_found(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    static const char *const METHODS[] = {"ping", "initialize", "logging/setLevel",
        "resources/subscribe", "resources/unsubscribe", "tasks/list", "any/thing"};
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        const char *text = ask_modern(&c, (struct modern){.method = METHODS[i], .id = "\"m\""});
        STATUS(text, "404");
        HAS(text, "\"id\":\"m\",\"error\":{\"code\":-32601");
    }
    finish(&w);
}

static void unknown_things_are_invalid_params(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *text = call_modern(&c, "none", "{}");
    STATUS(text, "200");
    HAS(text, "-32602");
    text = ask_modern(&c,
        (struct modern){
            .method = "resources/read", .name = "test://no", .params = "\"uri\":\"test://no\","});
    STATUS(text, "200");
    HAS(text, "-32602");
    text = call_modern(&c, "needs", "{}");
    STATUS(text, "400");
    HAS(text,
        "\"code\":-32021,\"message\":\"Missing required client capability\",\"data\":{"
        "\"requiredCapabilities\":{\"sampling\":{}}}}");
    finish(&w);
}

static const char *call_marked(struct client *c, const char *arguments, const char *head)
{
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"marked\",\"arguments\":%s,", arguments);
    return ask_modern(c,
        (struct modern){.method = "tools/call", .name = "marked", .params = params, .head = head});
}

static void marked_arguments_are_compared(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    static const struct {
        const char *arguments, *head, *why; /* NULL: it is fine */
    } CASES[] = {
        {"{}", NULL, NULL},
        {"{\"plain\":\"x\"}", "Mcp-Param-Other: y\r\n", NULL},
        {"{\"shop\":\"north\"}", "Mcp-Param-Shop: north\r\n", NULL},
        {"{\"shop\":\"north\"}", "mcp-param-SHOP: north\r\n", NULL},
        {"{\"shop\":\"Hello\"}", "Mcp-Param-Shop: =?base64?SGVsbG8=?=\r\n", NULL},
        {"{\"shop\":\"\"}", "Mcp-Param-Shop: \r\n", NULL},
        {"{\"shop\":null}", NULL, NULL},
        {"{\"n\":42,\"on\":true}", "Mcp-Param-Count: 42.0\r\nMcp-Param-On: true\r\n", NULL},
        {"{\"in\":{\"deep\":\"x\"}}", "Mcp-Param-Deep: x\r\n", NULL},
        {"{\"in\":\"none\",\"odd\":\"x\",\"none\":\"y\"}", NULL, NULL},
        {"{\"n\":-5}", "Mcp-Param-Count: -5.0\r\n", NULL},
        {"{\"shop\":\"n\"}", "Mcp-Param-Shoq: x\r\nMcp-Xaram-Shop: y\r\nMcp-Param-Shop: n\r\n",
            NULL},
        {"{\"shop\":\"north\"}", NULL, "Mcp-Param-Shop is missing"},
        {"{\"shop\":\"north\"}", "Mcp-Param-Shop: south\r\n", "does not match"},
        {"{\"shop\":\"Hello\"}", "Mcp-Param-Shop: =?base64?SGVsbG8?=\r\n", "does not match"},
        {"{\"shop\":\"n\"}", "Mcp-Param-Shop: n\r\nMcp-Param-Shop: n\r\n", "is given twice"},
        {"{\"shop\":null}", "Mcp-Param-Shop: n\r\n", "does not match"},
        {"{}", "Mcp-Param-Shop: n\r\n", "does not match"},
        {"{\"n\":42}", "Mcp-Param-Count: 43\r\n", "does not match"},
        {"{\"n\":42}", "Mcp-Param-Count: \r\n", "does not match"},
        {"{\"n\":42}", "Mcp-Param-Count: [42]\r\n", "does not match"},
        {"{\"n\":42}", "Mcp-Param-Count: 42.000000000000000000000000000000000\r\n",
            "does not match"},
        {"{\"shop\":\"n\",\"n\":4}", NULL, "Mcp-Param-Shop is missing"},
        {"{\"n\":42}", "Mcp-Param-Count: 4x\r\n", "does not match"},
        {"{\"n\":42}", "Mcp-Param-Count: true\r\n", "does not match"},
        {"{\"n\":true}", "Mcp-Param-Count: 1\r\n", "does not match"},
        {"{\"on\":true}", "Mcp-Param-On: false\r\n", "does not match"},
        {"{\"in\":{\"deep\":\"x\"}}", NULL, "Mcp-Param-Deep is missing"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *text = call_marked(&c, CASES[i].arguments, CASES[i].head);
        STATUS(text, CASES[i].why ? "400" : "200");
        HAS(text, CASES[i].why ? CASES[i].why : "complete");
        expect_part(text, "-32020", CASES[i].why != NULL);
    }
    finish(&w);
}

/* --- nothing of a session --- */

static void sessions_are_neither_asked_for_nor_used(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin_as(
        &w, (struct lp_server_args){.owner = LP_SPAN("m1"), .replay = LP_SERVER_REPLAY_PREFER});
    snprintf(c.session, sizeof c.session, "m2.6f1b0a4e-0d2f-4a4b-8c11-0123456789ab");
    const char *text = call_modern(&c, "ok", "{}");
    STATUS(text, "200");
    LACKS(text, "fly-replay");
    LACKS(text, "mcp-session-id");
    assert_int_equal(lp_server_session_count(w.server), 0);
    static const char *const METHODS[] = {"GET", "DELETE"};
    c.extra = "Accept: text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n";
    for (size_t i = 0; i < 2; i++) {
        text = ask(&c, dial(&w), METHODS[i], NULL);
        STATUS(text, "405");
        HAS(text, "allow: POST\r\n");
    }
    finish(&w);
}

static void both_eras_live_side_by_side(void **state)
{
    (void)state;
    struct world w;
    struct client old = begin(&w);
    open_as(&old, INITIALIZE("2025-11-25"));
    struct client new = {.world = &w};
    HAS(call_modern(&new, "ok", "{}"), "resultType");
    LACKS(post(&old, CALL("1", "ok", "{}")), "resultType");
    HAS(post(&old, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), "\"result\":{}");
    finish(&w);
}

static void a_server_may_speak_one_era(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin_as(&w, (struct lp_server_args){.eras = LP_ERAS_LEGACY});
    const char *text = call_modern(&c, "ok", "{}");
    STATUS(text, "400");
    HAS(text, "-32022");
    HAS(text, "\"supported\":[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]");
    open_as(&c, INITIALIZE("2025-11-25"));
    finish(&w);
    c = begin_as(&w, (struct lp_server_args){.eras = LP_ERAS_MODERN});
    HAS(call_modern(&c, "ok", "{}"), "complete");
    text = post(&c, INITIALIZE("2025-11-25"));
    STATUS(text, "400");
    HAS(text, "\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"");
    HAS(post(&c, CALL("1", "ok", "{}")), "-32602");
    text = ask(&c, dial(&w), "GET", NULL);
    STATUS(text, "405");
    HAS(text, "allow: POST\r\n");
    finish(&w);
}

static void a_server_without_sessions_speaks_it_too(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin_as(&w, (struct lp_server_args){.mode = LP_SESSIONS_STATELESS});
    HAS(call_modern(&c, "ok", "{}"), "complete");
    LACKS(post(&c, CALL("1", "ok", "{}")), "resultType");
    finish(&w);
}

static void notifications_are_accepted(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    c.extra = ACCEPT MODERN_HEAD("notifications/cancelled");
    const char *text = post(&c,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "cancelled\",\"params\":{\"requestId\":1," MODERN_META("{}", "") "}}");
    STATUS(text, "202");
    finish(&w);
}

/* --- streams --- */

static void logs_and_progress_are_asked_for(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *text = call_modern(&c, "report", "{}");
    LACKS(text, "notifications/");
    HAS(text, "content-type: application/json");
    struct modern m = {.method = "tools/call",
        .name = "report",
        .params = "\"name\":\"report\",",
        .meta = ",\"" PREFIX "logLevel\":\"warning\",\"progressToken\":\"p\""};
    text = ask_modern(&c, m);
    HAS(text, "content-type: text/event-stream");
    HAS(text, "\"data\":\"high\"");
    LACKS(text, "\"data\":\"low\"");
    HAS(text, "\"progressToken\":\"p\",\"progress\":1,\"total\":2");
    HAS(text, "\"resultType\":\"complete\"");
    LACKS(text, "\nid:");
    m.meta = ",\"" PREFIX "logLevel\":\"loud\"";
    LACKS(ask_modern(&c, m), "notifications/message");
    m.meta = ",\"" PREFIX "logLevel\":3";
    LACKS(ask_modern(&c, m), "notifications/message");
    finish(&w);
}

static void who_leaves_has_cancelled(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    over_count = 0;
    lp_id conn = dial(&w);
    const char *text = ask_modern_on(&c, conn,
        (struct modern){.method = "tools/call", .name = "wait", .params = "\"name\":\"wait\","});
    HAS(text, "text/event-stream");
    LACKS(text, "\nid:");
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = conn});
    assert_int_equal(over_count, 1);
    finish(&w);
}

static void who_takes_no_stream_waits_for_json(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    lp_id conn = dial(&w);
    c.extra = "Accept: application/json\r\n" MODERN_HEAD("tools/call") "Mcp-Name: wait\r\n";
    const char *text = ask(&c, conn, "POST",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"wait\"," MODERN_META("{}", "") "}}");
    assert_string_equal(text, "");
    pass(&w, 61ull * SECOND);
    HAS(got(&w, conn), "\"resultType\":\"complete\"");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(discover_tells_what_there_is),
        cmocka_unit_test(lists_and_reads_say_how_long_they_are_fresh),
        cmocka_unit_test(results_carry_type_and_server),
        cmocka_unit_test(names_are_decoded),
        cmocka_unit_test(heads_agree_with_bodies),
        cmocka_unit_test(versions_are_judged),
        cmocka_unit_test(removed_methods_are_not_found),
        cmocka_unit_test(unknown_things_are_invalid_params),
        cmocka_unit_test(marked_arguments_are_compared),
        cmocka_unit_test(sessions_are_neither_asked_for_nor_used),
        cmocka_unit_test(both_eras_live_side_by_side),
        cmocka_unit_test(a_server_may_speak_one_era),
        cmocka_unit_test(a_server_without_sessions_speaks_it_too),
        cmocka_unit_test(notifications_are_accepted),
        cmocka_unit_test(logs_and_progress_are_asked_for),
        cmocka_unit_test(who_leaves_has_cancelled),
        cmocka_unit_test(who_takes_no_stream_waits_for_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
