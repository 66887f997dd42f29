/* The stdio bridge: what the host says reaches the server and what the server says the host, one
 * session after the other; what may be sent again and what is refused; hosts and servers that do
 * what they should not. Servers of the modern era are in test_bridge_modern.c. */
#include "bridge_harness.h"

static const char LOST[] = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,"
                           "\"message\":\"Session not found\"},\"id\":null}";

static void server_forgets(struct hosted *h, lp_id conn)
{
    shell_answer(h->p->s, conn, "404 Not Found\r\nContent-Type: application/json", LOST);
}

/* Every attempt to connect is refused, in the time that is given. */
static void refuse_for(struct hosted *h, uint64_t ms)
{
    h->p->s->connect_error = LP_EREFUSED;
    shell_pass(h->p->s, ms);
    h->p->s->connect_error = 0;
}

/* --- a session --- */

static void test_a_session(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    struct play *p = h->p;
    p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    lp_id conn = play_expect(p, "\"initialize\"");
    /* What the host opened with, not what limpet would have. */
    assert_true(text_has(p->body, "\"protocolVersion\":\"2025-06-18\""));
    assert_true(text_has(p->body, "\"capabilities\":{\"roots\":{}}"));
    assert_true(text_has(p->body, "\"clientInfo\":{\"name\":\"h\",\"version\":\"1\"}"));
    host_hears_nothing(h);
    server_answers(h, conn, "\r\nMcp-Session-Id: S1", INITIALIZE_RESULT);
    play_accepted(p, play_expect(p, "notifications/initialized"));
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":\"open\"," INITIALIZE_RESULT "}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    play_expect_nothing(p); /* the client has said it */
    host_says(h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}");
    play_accepted(p, play_expect(p, "notifications/roots/list_changed"));
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"tools/call\","
        "\"params\":{\"name\":\"a\",\"_meta\":{\"progressToken\":\"t\"}}}");
    conn = play_expect(p, "\"params\":{\"name\":\"a\",\"_meta\":{\"progressToken\":\"t\"}}");
    play_begin_events(p, conn, "");
    play_event(p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
        "{\"progressToken\":\"t\",\"progress\":1}}\n\n");
    host_hears(h, "\"progressToken\":\"t\"");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":1}}\n\n");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"result\":{\"a\":1}}");
    play_end_events(p, conn);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\"}");
    conn = play_expect(p, "\"x\"");
    host_ends(h); /* the call in progress is still answered */
    server_answers(h, conn, "", "\"error\":{\"code\":-32601,\"message\":\"no\"}");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"no\"}}");
    conn = play_expect(p, "DELETE /mcp");
    assert_int_equal(h->overs, 0);
    shell_answer(p->s, conn, "200 OK", "");
    assert_int_equal(h->overs, 1);
    assert_false(h->has_failed);
    assert_string_equal(h->said, "");
    hosted_free(h);
}

/* The host's own time-out is in force; without one of ours a call may take its time. */
static void test_time_outs(void **state)
{
    (void)state;
    for (int is_limited = 0; is_limited < 2; is_limited++) {
        struct hosted *h = hosted_try_new("http://example.test:3000/mcp", is_limited ? 2000 : 0);
        h->p->s->target.suppress_notification_stream = true;
        h->p->s->target.era = LP_ERA_WISH_LEGACY;
        host_says(h, HOST_INITIALIZE);
        server_opens(h, "S1");
        host_hears(h, "open");
        host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
        play_begin_events(h->p, play_expect(h->p, "tools/call"), "");
        shell_pass(h->p->s, 7200000);
        if (is_limited)
            host_hears(h, "no answer within 2.0 s");
        host_hears_nothing(h);
        hosted_free(h);
    }
}

static void test_the_end_without_a_session(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    host_ends(h);
    assert_int_equal(h->overs, 1);
    assert_false(h->has_failed);
    shell_pass(h->p->s, 1); /* nothing more happens */
    assert_int_equal(h->overs, 1);
    hosted_free(h);
    lp_bridge_free(NULL);
}

static void test_stopped_while_it_opens(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    h->p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    play_expect(h->p, "\"initialize\"");
    hosted_stop(h);
    shell_pass(h->p->s, 3000);
    assert_int_equal(h->overs, 1);
    assert_false(h->has_failed);
    hosted_free(h);
}

static void test_stopped_while_a_call_runs(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
    play_expect(h->p, "tools/call");
    hosted_stop(h);
    shell_pass(h->p->s, 1);
    shell_answer(h->p->s, play_expect(h->p, "DELETE"), "200 OK", "");
    host_hears(h, "\"id\":2,\"error\"");
    assert_int_equal(h->overs, 1);
    hosted_free(h);
}

/* --- opening that fails --- */

static void test_opening_fails(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    struct play *p = h->p;
    p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"); /* waits */
    shell_answer(p->s, play_expect(p, "\"initialize\""), "500 Oops", "it \"broke\"");
    host_hears(h, "\"id\":\"open\",\"error\":{\"code\":-32603,\"message\":");
    assert_true(text_has(h->line, "\"data\":{\"status\":500,\"body\":\"it \\\"broke\\\"\"}"));
    host_hears(h, "\"id\":2,\"error\":{\"code\":-32603");
    assert_true(text_has(h->said, "HTTP 500"));
    /* The host may try again with other words. */
    host_says(h, HOST_INITIALIZE);
    server_opens(h, "S1");
    host_hears(h, "\"id\":\"open\",\"result\"");
    hosted_free(h);
}

static void test_opening_fails_after_the_input_ended(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    h->p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    host_ends(h);
    assert_int_equal(h->overs, 0);
    shell_broken(h->p->s, play_expect(h->p, "\"initialize\""));
    host_hears(h, "\"id\":\"open\",\"error\"");
    assert_false(text_has(h->line, "\"data\"")); /* nothing was answered */
    assert_int_equal(h->overs, 1);
    hosted_free(h);
}

/* Of a body only the beginning is shown. */
static void test_a_long_body(void **state)
{
    (void)state;
    char body[5000];
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    struct hosted *h = hosted_new();
    h->p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    shell_answer(h->p->s, play_expect(h->p, "\"initialize\""), "500 Oops", body);
    host_hears(h, "xxx");
    assert_int_equal(strspn(strstr(h->said, "xxx"), "x"), LP_CLIENT_SHOWN_MAX);
    assert_true(text_has(h->said, "... (4699 bytes more)"));
    hosted_free(h);
    h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
    shell_answer(h->p->s, play_expect(h->p, "tools/call"), "500 Oops", body);
    host_hears(h, "\"data\":{\"status\":500,\"body\":\"xxx");
    const char *shown = strstr(h->line, "\"body\":\"") + 8;
    assert_int_equal(strspn(shown, "x"), 2048);
    hosted_free(h);
}

/* --- what the host may say --- */

static void test_what_is_no_request(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *heard[3];
    } CASES[] = {
        {"not json", {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700"}},
        {"{\"id\":4,\"method\":\"a\",\"method\":\"b\"}", {"\"id\":4,\"error\":{\"code\":-32700"}},
        {"7", {"\"id\":null,\"error\":{\"code\":-32600"}},
        {"{\"id\":4}", {"no method, result or error"}},
        {"[]", {"-32600"}},
        {"[[{\"id\":4,\"method\":\"ping\"}]]", {"\"id\":4,\"result\":{}"}},
        {"[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"},7,"
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}]",
            {"\"id\":4,\"result\":{}", "-32600", "\"id\":5,\"result\":{}"}},
        {"{\"id\":1.5,\"method\":\"ping\"}", {"a string or a whole number as its id"}},
        {"{\"id\":{},\"method\":\"ping\"}", {"\"id\":null,\"error\""}},
        {"{\"id\":4,\"method\":\"tools/list\"}", {"-32000", NULL}},
        {"{\"id\":4,\"method\":\"server/discover\"}", {"\"requested\":null}"}},
        {"{\"id\":4,\"method\":\"tools/list\",\"params\":{\"_meta\":"
         "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
            {"\"error\":{\"code\":-32022,\"message\":\"Unsupported protocol version: over stdio "
             "begin with initialize\",\"data\":{\"supported\":[\"2025-11-25\",\"2025-06-18\","
             "\"2025-03-26\",\"2024-11-05\"],\"requested\":\"2026-07-28\"}}"}},
        {"{\"method\":\"notifications/roots/list_changed\"}", {NULL}},
        {"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":4}}", {NULL}},
        {"{\"id\":4,\"result\":{}}", {NULL}},
        {"{\"id\":\"x\",\"error\":{}}", {NULL}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct hosted *h = hosted_new();
        host_says(h, CASES[i].line);
        for (int k = 0; k < 3 && CASES[i].heard[k]; k++)
            host_hears(h, CASES[i].heard[k]);
        host_hears_nothing(h);
        play_expect_nothing(h->p);
        hosted_free(h);
    }
}

static void test_lines_that_are_too_much(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    size_t len = (16u << 20) + 2;
    char *big = malloc(len + 1);
    assert_non_null(big);
    memset(big, '[', len);
    big[len] = '\0';
    host_says(h, big);
    host_hears(h, "\"id\":null,\"error\":{\"code\":-32600,\"message\":\"the line is longer than");
    big[2000] = '\0';
    host_says(h, big);
    host_hears(h, "nested too deep");
    free(big);
    hosted_free(h);
}

static void test_a_second_initialize(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    host_says(h, HOST_INITIALIZE);
    host_hears(h, "\"code\":-32600,\"message\":\"the session is open");
    play_expect_nothing(h->p);
    hosted_free(h);
}

/* An initialize without what it should have is sent with limpet's own. */
static void test_a_bare_initialize(void **state)
{
    (void)state;
    static const char *const PARAMS[] = {"{}", "{\"protocolVersion\":7}",
        "{\"protocolVersion\":\"a version that is longer than all that there will ever be\"}"};
    for (size_t i = 0; i < sizeof PARAMS / sizeof *PARAMS; i++) {
        char line[512];
        struct hosted *h = hosted_new();
        h->p->s->target.era = LP_ERA_WISH_LEGACY;
        snprintf(line, sizeof line,
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":%s}", PARAMS[i]);
        host_says(h, line);
        play_expect(h->p, "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}");
        hosted_free(h);
    }
}

static void test_calls_that_cannot_be_sent(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    char line[512];
    char name[300];
    memset(name, 'm', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\"}", name);
    host_says(h, line);
    host_hears(h, "\"id\":2,\"error\":{\"code\":-32603,\"message\":\"the request cannot be held");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\",\"params\":[1]}");
    host_hears(h, "\"id\":3,\"error\":{\"code\":-32603,\"message\":\"params is no JSON object");
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", name);
    host_says(h, line);
    host_hears_nothing(h);
    play_expect_nothing(h->p);
    hosted_free(h);
}

static void test_too_many_calls(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    char line[128];
    h->p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    for (int i = 0; i < LP_BRIDGE_CALLS_MAX; i++) {
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"x\"}", i);
        host_says(h, line);
    }
    host_hears_nothing(h);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"x\"}");
    host_hears(h, "\"id\":\"last\",\"error\":{\"code\":-32603,\"message\":\"too many requests");
    hosted_free(h);
}

static void test_cancelling(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    struct play *p = h->p;
    p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":\"w\",\"method\":\"waits\"}");
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
        "{\"requestId\":\"w\"}}");
    server_opens(h, "S1");
    host_hears(h, "open");
    play_expect_nothing(p);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"one\"}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"two\"}");
    play_expect(p, "one");
    play_expect(p, "two");
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
        "{\"requestId\":3,\"reason\":\"en\\u006fugh\"}}");
    play_accepted(p, play_expect(p, "\"requestId\":3,\"reason\":\"enough\""));
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
        "{\"requestId\":77,\"reason\":7}}"); /* none of them */
    play_expect_nothing(p);
    host_hears_nothing(h);
    hosted_free(h);
}

/* --- what the server asks of the host --- */

static void test_questions(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    struct play *p = h->p;
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"sampling/createMessage\","
        "\"params\":{\"a\":1}}\n\n");
    host_hears(h,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
        "\"params\":{\"a\":1}}");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q2\",\"method\":\"roots/list\"}\n\n");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"); /* nobody asked */
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}");
    play_expect_nothing(p);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"roots\":[]}}");
    play_accepted(
        p, play_expect(p, "{\"jsonrpc\":\"2.0\",\"id\":\"q2\",\"result\":{\"roots\":[]}}"));
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"no\"}}");
    play_accepted(p, play_expect(p, "\"id\":\"q1\",\"error\":{\"code\":-1,\"message\":\"no\"}"));
    /* One that the server takes back. */
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\n");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"roots/list\"}\n\n");
    host_hears(h, "\"id\":3,\"method\"");
    host_hears(h, "\"id\":4,\"method\"");
    play_event(p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
        "{\"requestId\":8}}\n\n");
    host_hears(h, "notifications/cancelled\",\"params\":{\"requestId\":4}");
    /* One that nobody can answer any more. */
    host_ends(h);
    play_accepted(
        p, play_expect(p, "\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the client's input"));
    hosted_free(h);
}

/* Neither of the two is there any more: what is left is freed. */
static void test_a_question_that_stays_open(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
    lp_id conn = play_expect(h->p, "tools/call");
    play_begin_events(h->p, conn, "");
    play_event(h->p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\n");
    host_hears(h, "\"id\":1,\"method\"");
    hosted_free(h);
}

/* --- loss --- */

/* One new session for all calls that wait; the level and the subscriptions are set again. */
static void test_a_lost_session(void **state)
{
    (void)state;
    static const char *const SETTINGS[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\",\"params\":"
        "{\"level\":\"debug\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"logging/setLevel\",\"params\":"
        "{\"level\":\"error\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"resources/subscribe\",\"params\":"
        "{\"uri\":\"a:1\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\",\"params\":"
        "{\"uri\":\"a:2\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"resources/unsubscribe\",\"params\":"
        "{\"uri\":\"a:1\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"resources/unsubscribe\",\"params\":"
        "{\"uri\":\"a:9\"}}",
    };
    struct hosted *h = hosted_open_legacy();
    struct play *p = h->p;
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        host_says(h, SETTINGS[i]);
        server_answers(h, play_expect(p, "\"params\""), "", "\"result\":{}");
        host_hears(h, "\"result\":{}");
    }
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\"}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/list\"}");
    lp_id slow = play_expect(p, "tools/call");
    lp_id conn = play_expect(p, "tools/list");
    play_begin_events(p, slow, "");
    play_event(p, slow, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n");
    host_hears(h, "\"id\":1,\"method\":\"roots/list\"");
    server_forgets(h, conn);
    host_hears(h, "notifications/cancelled\",\"params\":{\"requestId\":1}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"prompts/list\"}"); /* waits */
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"ping\"}");
    host_hears(h, "\"id\":11,\"result\":{}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}");
    server_opens(h, "S2");
    assert_true(text_has(h->said, "the session was lost; a new one is open"));
    bool seen[4] = {false};
    for (int i = 0; i < 4; i++) {
        conn = play_take(p);
        assert_true(text_has(p->head, "Mcp-Session-Id: S2"));
        seen[0] |= text_has(p->body, "tools/list");
        seen[1] |= text_has(p->body, "prompts/list");
        seen[2] |= text_has(p->body, "\"level\":\"error\"");
        seen[3] |= text_has(p->body, "resources/subscribe\",\"params\":{\"uri\":\"a:2\"}");
        if (text_has(p->body, "uri"))
            server_answers(h, conn, "", "\"error\":{\"code\":-32602,\"message\":\"gone\"}");
        else
            server_answers(h, conn, "", "\"result\":{}");
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    play_expect_nothing(p);
    host_hears(h, "\"result\":{}");
    host_hears(h, "\"result\":{}");
    host_hears_nothing(h); /* of what was set again the host hears nothing */
    assert_true(text_has(h->said, "resources/subscribe could not be set again: {\"code\":-32602"));
    play_event(p, slow, "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"late\":1}}\n\n");
    host_hears(h, "\"id\":8,\"result\":{\"late\":1}");
    hosted_free(h);
}

/* What may have run is not sent again. */
static void test_a_cut_call(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}");
    lp_id conn = play_expect(h->p, "tools/call");
    play_begin_events(h->p, conn, "");
    shell_broken(h->p->s, conn);
    host_hears(h, "; the request may have run, so it was not sent again\"");
    shell_pass(h->p->s, 60000);
    play_expect_nothing(h->p);
    hosted_free(h);
}

/* A list is asked again, each time later, and not for ever. */
static void test_a_list_that_is_cut(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    struct play *p = h->p;
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    for (int i = 0; i < 5; i++) {
        lp_id conn = play_expect(p, "tools/list");
        play_begin_events(p, conn, "");
        host_hears_nothing(h);
        shell_broken(p->s, conn);
        play_expect_nothing(p);
        shell_pass(p->s, 10000);
    }
    host_hears(h, "\"id\":2,\"error\"");
    assert_false(text_has(h->line, "may have run"));
    play_expect_nothing(p);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
    lp_id conn = play_expect(p, "tools/list");
    play_begin_events(p, conn, "");
    shell_broken(p->s, conn);
    shell_pass(p->s, 10000);
    server_answers(h, play_expect(p, "tools/list"), "", "\"result\":{}");
    host_hears(h, "\"id\":3,\"result\":{}");
    hosted_free(h);
}

/* Brings a session into the state in which it is lost and `tools/list` of id 2 waits. */
static struct hosted *lose(void)
{
    struct hosted *h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    server_forgets(h, play_expect(h->p, "tools/list"));
    return h;
}

static void test_a_lost_session_and_no_server(void **state)
{
    (void)state;
    struct hosted *h = lose();
    shell_broken(h->p->s, play_expect(h->p, "\"initialize\""));
    host_hears_nothing(h); /* it is waited for */
    refuse_for(h, 60000);
    host_hears(h, "\"id\":2,\"error\":{\"code\":-32603");
    assert_true(text_has(h->said, "the session was lost and none could be opened"));
    play_expect_nothing(h->p);
    /* The next request tries again. */
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
    server_opens(h, "S2");
    server_answers(h, play_expect(h->p, "tools/list"), "", "\"result\":{}");
    host_hears(h, "\"id\":3,\"result\":{}");
    hosted_free(h);
}

static void test_a_server_that_is_away_for_a_moment(void **state)
{
    (void)state;
    struct hosted *h = lose();
    shell_broken(h->p->s, play_expect(h->p, "\"initialize\""));
    shell_pass(h->p->s, 5000);
    server_opens(h, "S2");
    server_answers(h, play_expect(h->p, "tools/list"), "", "\"result\":{}");
    host_hears(h, "\"id\":2,\"result\":{}");
    hosted_free(h);
}

/* What stands in between says "not now": that is waited for too, but not for ever. */
static void test_a_lost_session_and_a_busy_server(void **state)
{
    (void)state;
    static const char *const BUSY[] = {"429 Too Many", "502 Bad Gateway", "503 Not Now"};
    struct hosted *h = lose();
    for (size_t i = 0; i < sizeof BUSY / sizeof *BUSY; i++) {
        shell_answer(h->p->s, play_expect(h->p, "\"initialize\""), BUSY[i], "later");
        play_expect_nothing(h->p);
        shell_pass(h->p->s, 5000);
    }
    server_opens(h, "S2");
    server_answers(h, play_expect(h->p, "tools/list"), "", "\"result\":{}");
    host_hears(h, "\"id\":2,\"result\":{}");
    hosted_free(h);
    h = lose();
    for (int i = 0; i < 5; i++) {
        host_hears_nothing(h);
        shell_answer(h->p->s, play_expect(h->p, "\"initialize\""), "503 Not Now", "later");
        shell_pass(h->p->s, 10000);
    }
    host_hears(h, "\"id\":2,\"error\"");
    play_expect_nothing(h->p);
    hosted_free(h);
}

static void test_a_lost_session_and_a_server_that_wants_none(void **state)
{
    (void)state;
    struct hosted *h = lose();
    shell_answer(h->p->s, play_expect(h->p, "\"initialize\""), "500 Oops", "");
    host_hears(h, "\"id\":2,\"error\":{\"code\":-32603");
    shell_pass(h->p->s, 60000);
    play_expect_nothing(h->p);
    hosted_free(h);
}

/* Another version: the host was promised something else, so it must begin again. */
static void test_a_lost_session_and_another_server(void **state)
{
    (void)state;
    struct hosted *h = lose();
    lp_id conn = play_expect(h->p, "\"initialize\"");
    server_answers(h, conn, "\r\nMcp-Session-Id: S2",
        "\"result\":{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{},\"serverInfo\":{}}");
    play_accepted(h->p, play_expect(h->p, "notifications/initialized"));
    assert_true(text_has(h->said, "now speaks 2025-03-26 in place of 2025-11-25; start again"));
    shell_answer(h->p->s, play_expect(h->p, "DELETE"), "200 OK", "");
    assert_int_equal(h->overs, 1);
    assert_true(h->has_failed);
    hosted_free(h);
}

static void test_lost_and_the_input_ends(void **state)
{
    (void)state;
    struct hosted *h = lose();
    lp_id conn = play_expect(h->p, "\"initialize\"");
    host_ends(h);
    assert_int_equal(h->overs, 0); /* somebody waits for an answer */
    shell_answer(h->p->s, conn, "500 Oops", "");
    host_hears(h, "\"id\":2,\"error\"");
    shell_pass(h->p->s, 3000);
    assert_int_equal(h->overs, 1);
    hosted_free(h);
}

static void test_lost_while_it_closes(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    lp_id conn = play_expect(h->p, "tools/list");
    hosted_stop(h);
    server_forgets(h, conn);
    shell_pass(h->p->s, 3000);
    assert_int_equal(h->overs, 1);
    play_take(h->p);
    assert_false(text_has(h->p->body, "initialize"));
    hosted_free(h);
}

/* STA-08: a server that opens sessions and knows none of them is asked for another one later and
 * later, only when a call wants it, and no call is sent a third time. */
static void test_a_server_that_loses_every_session(void **state)
{
    (void)state;
    static const uint64_t PAUSES_MS[] = {
        0, 1000, 2000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000};
    struct hosted *h = lose();
    size_t count = sizeof PAUSES_MS / sizeof *PAUSES_MS;
    for (size_t i = 0; i < count; i++) {
        char line[128];
        bool is_second = i % 2 == 0; /* the call that waits was sent once before */
        if (!is_second) {
            shell_pass(h->p->s, 60);
            play_expect_nothing(h->p); /* nobody wants a session */
            snprintf(line, sizeof line,
                "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/list\"}", i + 2);
            host_says(h, line);
        }
        if (PAUSES_MS[i]) {
            shell_pass(h->p->s, PAUSES_MS[i] - (is_second ? 1 : 61));
            play_expect_nothing(h->p);
            shell_pass(h->p->s, 1);
        }
        server_opens(h, "S");
        host_hears_nothing(h);
        server_forgets(h, play_expect(h->p, "tools/list"));
        if (is_second)
            host_hears(h, "\"error\":{\"code\":-32603");
    }
    /* One answer, and the next loss is mended at once. */
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"tools/list\"}");
    shell_pass(h->p->s, 4000);
    server_opens(h, "S");
    server_answers(h, play_expect(h->p, "tools/list"), "", "\"result\":{}");
    host_hears(h, "\"result\":{}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":\"tools/list\"}");
    server_forgets(h, play_expect(h->p, "tools/list"));
    server_opens(h, "S");
    hosted_free(h);
}

static void test_more_subscriptions_than_are_kept(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    for (int i = 0; i <= LP_BRIDGE_MEMOS_MAX; i++) {
        char line[160];
        snprintf(line, sizeof line,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"resources/subscribe\",\"params\":"
            "{\"uri\":\"a:%d\"}}",
            i, i);
        assert_string_equal(h->said, "");
        host_says(h, line);
        server_answers(h, play_expect(h->p, "subscribe"), "", "\"result\":{}");
        host_hears(h, "\"result\":{}");
        h->p->s->log_len = 0;
        shell_forget(h->p->s, 2);
        h->p->seen[2] = 0;
    }
    assert_true(text_has(h->said, "will not be set again if the session is lost: too many"));
    hosted_free(h);
}

/* --- the standard output --- */

static void test_a_host_that_is_gone(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_legacy();
    h->p->s->conns[HOST].is_closed = true;
    host_event(h, (struct lp_event){.kind = LP_EV_BROKEN});
    shell_answer(h->p->s, play_expect(h->p, "DELETE"), "200 OK", "");
    assert_int_equal(h->overs, 1);
    assert_false(h->has_failed); /* that is how hosts end */
    assert_string_equal(h->said, "");
    hosted_free(h);
}

static void test_no_standard_output(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    h->p->s->conns[HOST].is_closed = true;
    host_event(h, (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .u.error = LP_EIO});
    assert_int_equal(h->overs, 1);
    assert_true(h->has_failed);
    assert_true(text_has(h->said, "the standard input or output has failed"));
    hosted_free(h);
}

/* The end waits until the host has taken everything. */
static void test_a_slow_host(void **state)
{
    (void)state;
    struct hosted *h = hosted_new();
    h->p->s->takes_max = 5;
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    host_ends(h);
    assert_int_equal(h->overs, 0);
    assert_true(h->p->s->conns[HOST].is_draining);
    h->p->s->conns[HOST].is_draining = false;
    host_event(h, (struct lp_event){.kind = LP_EV_DRAINED});
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_int_equal(h->overs, 1);
    hosted_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session),
        cmocka_unit_test(test_time_outs),
        cmocka_unit_test(test_the_end_without_a_session),
        cmocka_unit_test(test_stopped_while_it_opens),
        cmocka_unit_test(test_stopped_while_a_call_runs),
        cmocka_unit_test(test_opening_fails),
        cmocka_unit_test(test_opening_fails_after_the_input_ended),
        cmocka_unit_test(test_a_long_body),
        cmocka_unit_test(test_what_is_no_request),
        cmocka_unit_test(test_lines_that_are_too_much),
        cmocka_unit_test(test_a_second_initialize),
        cmocka_unit_test(test_a_bare_initialize),
        cmocka_unit_test(test_calls_that_cannot_be_sent),
        cmocka_unit_test(test_too_many_calls),
        cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_a_question_that_stays_open),
        cmocka_unit_test(test_a_lost_session),
        cmocka_unit_test(test_a_cut_call),
        cmocka_unit_test(test_a_list_that_is_cut),
        cmocka_unit_test(test_a_lost_session_and_no_server),
        cmocka_unit_test(test_a_server_that_is_away_for_a_moment),
        cmocka_unit_test(test_a_lost_session_and_a_busy_server),
        cmocka_unit_test(test_a_lost_session_and_a_server_that_wants_none),
        cmocka_unit_test(test_a_lost_session_and_another_server),
        cmocka_unit_test(test_lost_and_the_input_ends),
        cmocka_unit_test(test_lost_while_it_closes),
        cmocka_unit_test(test_a_server_that_loses_every_session),
        cmocka_unit_test(test_more_subscriptions_than_are_kept),
        cmocka_unit_test(test_a_host_that_is_gone),
        cmocka_unit_test(test_no_standard_output),
        cmocka_unit_test(test_a_slow_host),
    };
    return cmocka_run_group_tests_name("bridge", tests, NULL, NULL);
}
