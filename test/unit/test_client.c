/* The client's session in the legacy eras: opening, calls, streams and their resumption, what the
 * server asks, loss and end. */
#include "client_harness.h"

#define URL "http://example.test:3000/mcp"

static void settle(struct play *p)
{
    lp_fetcher_settle(p->s->fetcher);
}

static void test_a_session(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    lp_client_open(p->client);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPENING);
    settle(p);
    lp_id conn = play_take(p);
    assert_string_equal(p->head,
        "POST /mcp HTTP/1.1\r\nHost: example.test:3000\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nUser-Agent: limpet/" LP_VERSION "\r\n"
        "Content-Length: 168\r\n\r\n");
    assert_string_equal(p->body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{\"sampling\":{}},\"clientInfo\":{\"name\":\"limpet\","
        "\"version\":\"" LP_VERSION "\"}}}");
    play_json(p, conn, "\r\nMcp-Session-Id: S1",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-03-26\",\"a\":1}}");
    /* VER-02: the version that the server agreed to, from now on. */
    conn = play_expect(p, "notifications/initialized");
    assert_true(text_has(p->head, "Mcp-Session-Id: S1\r\nMCP-Protocol-Version: 2025-03-26\r\n"));
    assert_int_equal(p->opens, 0);
    play_accepted(p, conn);
    assert_int_equal(p->opens, 1);
    const struct lp_client_info *info = lp_client_info(p->client);
    assert_int_equal(info->era, LP_ERA_LEGACY);
    assert_int_equal(info->transport, LP_TRANSPORT_STREAMABLE_HTTP);
    assert_memory_equal(info->version.ptr, "2025-03-26", 10);
    assert_true(lp_member(info->result, LP_SPAN("a")).len == 1);
    lp_id stream = play_expect(p, "GET /mcp");
    assert_true(text_has(p->head, "Accept: text/event-stream\r\nMcp-Session-Id: S1\r\n"));
    shell_answer(p->s, stream, "405 Method Not Allowed\r\nAllow: POST", "");
    lp_id call = play_request(p, "tools/list", "{\"cursor\":\"x\"}");
    conn = play_expect(p,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":"
        "{\"cursor\":\"x\"}}");
    play_json(p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}");
    assert_int_equal(p->answers, 1);
    assert_int_equal(p->last_call, call);
    assert_string_equal(p->result, "{\"tools\":[]}");
    assert_string_equal(p->error, "");
    lp_client_close(p->client);
    settle(p);
    conn = play_expect(p, "DELETE /mcp");
    assert_true(text_has(p->head, "Mcp-Session-Id: S1\r\n"));
    assert_int_equal(p->closes, 0);
    shell_read(p->s, conn, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(p->closes, 1);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_IDLE);
    assert_string_equal(p->notes, "");
    play_free(p);
}

static void test_no_session_no_delete(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    p->s->target.suppress_notification_stream = true;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "initialize");
    play_json(p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}");
    conn = play_expect(p, "notifications/initialized");
    assert_false(text_has(p->head, "Mcp-Session-Id"));
    play_accepted(p, conn);
    play_expect_nothing(p); /* [C7]: no GET */
    lp_client_close(p->client);
    assert_int_equal(p->closes, 1);
    lp_client_close(p->client); /* again: harmless */
    assert_int_equal(p->closes, 2);
    play_free(p);
}

/* A DELETE that is not answered holds nobody up. */
static void test_close_waits_a_while(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"slow\"}");
    lp_client_close(p->client);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_CANCELLED);
    settle(p);
    shell_pass(p->s, 1999);
    assert_int_equal(p->closes, 0);
    shell_pass(p->s, 1);
    assert_int_equal(p->closes, 1);
    play_free(p);
}

static void test_what_an_answer_may_be(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *body;
        const char *result; /* NULL: a failure */
        const char *said;   /* of the error, or the sentence */
    } CASES[] = {
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":12345678901234567890}}",
            "{\"n\":12345678901234567890}", ""},
        {"200 OK", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":7}", "7", ""},
        {"200 OK\r\nContent-Type: application/json",
            "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}]",
            "[]", ""},
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"no\"}}", "",
            "-32602"},
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":\"server-error\",\"error\":{\"code\":-32600}}", "",
            "-32600"},
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}", NULL, "no MCP message"},
        {"200 OK\r\nContent-Type: text/html", "<html>", NULL,
            "The server answers 200 text/html with something that is no MCP message"},
        {"200 OK\r\nContent-Type: application/json", "{\"half\":", NULL, "no MCP message"},
        {"202 Accepted", "", NULL, "The server answers 202 and sends no answer"},
        {"500 Oops\r\nContent-Type: text/plain", "it broke", NULL,
            "Error POSTing to endpoint (HTTP 500): it broke"},
        {"400 Bad Request", "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602}}", NULL,
            "Error POSTing to endpoint (HTTP 400): {"},
        {"503 Busy", "", NULL, "Error POSTing to endpoint (HTTP 503)"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = play_new(URL, false);
        p->s->target.suppress_notification_stream = true;
        play_open_legacy(p);
        play_request(p, "tools/call", "{\"name\":\"a\"}");
        lp_id conn = play_expect(p, "tools/call");
        shell_answer(p->s, conn, CASES[i].head, CASES[i].body);
        assert_int_equal(p->answers, CASES[i].result != NULL);
        assert_int_equal(p->call_failures, CASES[i].result == NULL);
        assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
        if (CASES[i].result) {
            assert_string_equal(p->result, CASES[i].result);
            assert_true(text_has(p->error, CASES[i].said));
        } else {
            assert_true(text_has(p->sentence, CASES[i].said));
            assert_string_equal(p->failure_body, CASES[i].body);
            assert_false(p->call_failure.cannot_have_run);
        }
        play_free(p);
    }
}

/* --- streams --- */

static void test_a_stream_with_progress(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    p->s->target.timeout_ms = 1000;
    play_open_legacy(p);
    struct lp_call_args args = {.method = LP_SPAN("tools/call"),
        .params = LP_SPAN("{\"name\":\"slow\",\"_meta\":{}}"),
        .wants_progress = true,
        .ops = &PLAY_CALL_OPS,
        .ctx = p};
    lp_id call;
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
    settle(p);
    lp_id conn = play_expect(p, "{\"name\":\"slow\",\"_meta\":{\"progressToken\":2}}");
    play_begin_events(p, conn, "");
    for (int i = 0; i < 4; i++) {
        shell_pass(p->s, 900); /* each time less than the time-out, together more */
        play_event(p, conn,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
            "{\"progressToken\":2,\"progress\":1}}\n\n");
    }
    assert_int_equal(p->progresses, 4);
    assert_int_equal(p->notifications, 0);
    play_event(p, conn,
        "event: message\ndata: "
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
        "{\"level\":\"info\"}}\n\n: comment\n\n");
    assert_int_equal(p->notifications, 1);
    assert_true(text_has(p->notified, "info"));
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\ndata: \"result\":{}}\n\n");
    assert_int_equal(p->answers, 1);
    play_end_events(p, conn);
    assert_int_equal(p->call_failures, 0);
    play_free(p);
}

/* RET-03: a time-out ends that request, tells the server, and nothing else. */
static void test_a_time_out(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    struct lp_call_args args = {
        .method = LP_SPAN("tools/call"), .timeout_ms = 2000, .ops = &PLAY_CALL_OPS, .ctx = p};
    lp_id call;
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
    play_request(p, "tools/list", "");
    lp_id first = play_expect(p, "tools/call");
    lp_id second = play_expect(p, "tools/list");
    shell_pass(p->s, 2000);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->last_call, call);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_TIMEOUT);
    assert_true(text_has(p->sentence, "tools/call: no answer within 2.0 s"));
    assert_true(p->s->conns[first].is_closed);
    lp_id conn = play_expect(p,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":2,\"reason\":\"no answer in time\"}}");
    play_accepted(p, conn);
    play_json(p, second, "", "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
    assert_int_equal(p->answers, 1);
    assert_int_equal(p->losses, 0);
    play_request(p, "tools/list", "");
    play_expect(p, "Mcp-Session-Id: S1");
    play_free(p);
}

static void test_cancel(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    lp_id call = play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    lp_call_cancel(p->client, call, LP_SPAN("the \"user\""));
    settle(p);
    assert_true(p->s->conns[conn].is_closed);
    play_expect(p, "{\"requestId\":2,\"reason\":\"the \\\"user\\\"\"}");
    lp_call_cancel(p->client, call, LP_SPAN("")); /* dead */
    settle(p);
    play_expect_nothing(p);
    assert_int_equal(p->answers + p->call_failures, 0);
    play_free(p);
}

/* RES, wire 6.1: the stream ends after an id; the client comes back when the server said so. */
static void test_a_polled_stream(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: e-0\nretry: 2000\ndata:\n\n");
    play_end_events(p, conn);
    shell_pass(p->s, 1999);
    play_expect_nothing(p);
    shell_pass(p->s, 1);
    conn = play_expect(p, "GET /mcp");
    assert_true(text_has(p->head, "Last-Event-ID: e-0\r\n"));
    assert_true(text_has(p->head, "Mcp-Session-Id: S1\r\n"));
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: e-1\nretry: 500\ndata:\n\n");
    shell_broken(p->s, conn); /* this time it is cut */
    shell_pass(p->s, 500);
    conn = play_expect(p, "Last-Event-ID: e-1\r\n");
    play_begin_events(p, conn, "");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":1}}\n\n");
    assert_int_equal(p->answers, 1);
    assert_string_equal(p->result, "{\"a\":1}");
    play_end_events(p, conn);
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    play_free(p);
}

/* RES-02: each stream is taken up after its own last event, whatever the others had. */
static void test_streams_are_resumed_apart(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id conns[2];
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    for (int i = 0; i < 2; i++) {
        play_request(p, "tools/call", "{\"name\":\"a\"}");
        conns[i] = play_expect(p, "tools/call");
        play_begin_events(p, conns[i], "");
    }
    play_event(p, conns[0], "id: 1\ndata:\n\n");
    play_event(p, conns[1], "id: 2\nretry: 1200\ndata:\n\n");
    play_event(p, conns[0], "id: 3\ndata:\n\n");
    shell_broken(p->s, conns[1]);
    shell_broken(p->s, conns[0]);
    shell_pass(p->s, 1000);
    lp_id first = play_expect(p, "Last-Event-ID: 3\r\n");
    shell_pass(p->s, 200);
    lp_id second = play_expect(p, "Last-Event-ID: 2\r\n");
    play_begin_events(p, second, "");
    play_event(p, second, "id: 4\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"b\"}\n\n");
    assert_string_equal(p->result, "\"b\"");
    play_begin_events(p, first, "");
    play_event(p, first, "id: 5\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"a\"}\n\n");
    assert_string_equal(p->result, "\"a\"");
    assert_int_equal(p->answers, 2);
    play_free(p);
}

static void test_without_an_id_it_is_not_known(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, ": nothing yet\n\n");
    shell_broken(p->s, conn);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_NETWORK);
    assert_false(p->call_failure.cannot_have_run);
    assert_true(text_has(p->sentence, "whether it was carried out is not known"));
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    play_free(p);
}

/* A stream that cannot be taken up again is given up after a number of tries: 1 s, 1.5 s, ... */
static void test_resuming_ends(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    static const uint64_t WAITS[] = {1000, 1500, 2250, 3375, 5062};
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: e\ndata:\n\n");
    shell_broken(p->s, conn);
    for (size_t i = 0; i < sizeof WAITS / sizeof *WAITS; i++) {
        assert_int_equal(p->call_failures, 0);
        shell_pass(p->s, WAITS[i] - 1);
        play_expect_nothing(p);
        shell_pass(p->s, 1);
        conn = play_expect(p, "Last-Event-ID: e\r\n");
        if (i % 2)
            shell_answer(p->s, conn, "503 Busy", "later");
        else
            shell_broken(p->s, conn);
    }
    assert_int_equal(p->call_failures, 1);
    play_free(p);
}

static void test_resuming_is_refused(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: e\ndata:\n\n");
    play_end_events(p, conn);
    shell_pass(p->s, 1000);
    conn = play_expect(p, "Last-Event-ID: e\r\n");
    shell_answer(p->s, conn, "405 Method Not Allowed", "");
    assert_int_equal(p->call_failures, 1);
    assert_true(text_has(p->sentence, "Error opening the event stream (HTTP 405)"));
    play_free(p);
}

/* Who waits for the stream is told when it is open, refused, or slow; once. */
static void test_the_stream_first(void **state)
{
    (void)state;
    for (int how = 0; how < 5; how++) {
        struct play *p = play_new_waiting(URL, false, true);
        p->s->target.suppress_notification_stream = how == 4;
        lp_id conn = play_open_legacy(p);
        assert_int_equal(p->opens, 0);
        if (how == 0)
            play_begin_events(p, conn, "");
        else if (how == 1)
            shell_answer(p->s, conn, "405 Method Not Allowed", "");
        else if (how == 2)
            shell_broken(p->s, conn);
        shell_pass(p->s, how == 3 ? LP_CLIENT_STREAM_MS - 1 : 0);
        assert_int_equal(p->opens, how != 3);
        shell_pass(p->s, LP_CLIENT_STREAM_MS);
        assert_int_equal(p->opens, 1);
        play_free(p);
    }
    struct play *p = play_new_waiting(URL, false, true); /* which cannot have one */
    play_open_modern(p, "{}");
    assert_int_equal(p->opens, 1);
    lp_client_close(p->client);
    play_free(p);
}

static void test_a_stream_first_that_is_closed(void **state)
{
    (void)state;
    struct play *p = play_new_waiting(URL, false, true);
    play_open_legacy(p);
    lp_client_close(p->client);
    lp_fetcher_settle(p->s->fetcher);
    shell_answer(p->s, play_expect(p, "DELETE /mcp"), "200 OK", "");
    shell_pass(p->s, 10000);
    assert_int_equal(p->opens, 0);
    assert_int_equal(p->closes, 1);
    play_free(p);
}

static void test_the_notification_stream(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id conn = play_open_legacy(p);
    play_begin_events(p, conn, "");
    play_event(p, conn,
        "id: n-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    assert_int_equal(p->notifications, 1);
    play_end_events(p, conn);
    shell_pass(p->s, 1000);
    conn = play_expect(p, "Last-Event-ID: n-1\r\n");
    shell_answer(p->s, conn, "409 Conflict", "one is enough");
    shell_pass(p->s, 1500);
    conn = play_expect(p, "Last-Event-ID: n-1\r\n");
    play_begin_events(p, conn, "");
    play_event(p, conn, "retry: 50\nid:\ndata:\n\n"); /* an empty id forgets */
    shell_broken(p->s, conn);
    shell_pass(p->s, 50);
    conn = play_expect(p, "GET /mcp");
    assert_false(text_has(p->head, "Last-Event-ID"));
    shell_answer(p->s, conn, "400 Bad Request", "no");
    shell_pass(p->s, 100000);
    play_expect_nothing(p); /* no storm */
    assert_true(text_has(p->notes, "there is no notification stream: Error opening"));
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    play_free(p);
}

/* --- what the server asks --- */

static void test_the_server_asks(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    p->s->target.timeout_ms = 1000;
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n");
    lp_id other = play_expect(p, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
    assert_true(text_has(p->head, "Mcp-Session-Id: S1\r\n"));
    play_accepted(p, other);
    assert_int_equal(p->asks, 0);
    play_event(p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"elicitation/create\",\"params\":"
        "{\"message\":\"How many?\"}}\n\n");
    assert_int_equal(p->asks, 1);
    assert_string_equal(p->asked_method, "elicitation/create");
    assert_string_equal(p->asked_params, "{\"message\":\"How many?\"}");
    shell_pass(p->s, 60000); /* a user may think: the call's time stands still */
    assert_int_equal(p->call_failures, 0);
    lp_client_answer(p->client, p->asked, LP_SPAN("{\"action\":\"accept\"}"));
    lp_client_answer(p->client, p->asked, LP_SPAN("{}")); /* dead */
    settle(p);
    other = play_expect(p, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"action\":\"accept\"}}");
    play_accepted(p, other);
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n");
    assert_string_equal(p->asked_params, "");
    lp_client_answer_error(p->client, p->asked, -32601, LP_SPAN("no \"roots\""));
    settle(p);
    other = play_expect(p,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":"
        "\"no \\\"roots\\\"\"}}");
    shell_answer(p->s, other, "500 Oops", "");
    assert_true(text_has(p->notes, "what was sent did not arrive"));
    play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x/y\"}\n\n");
    play_event(p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
        "{\"requestId\":2}}\n\n");
    assert_int_equal(p->asked_ends, 1);
    play_expect_nothing(p);
    shell_pass(p->s, 999);
    assert_int_equal(p->call_failures, 0);
    shell_pass(p->s, 1);
    assert_int_equal(p->call_failures, 1);
    play_free(p);
}

/* --- loss --- */

/* [C6]: the sentence to the letter. */
static void test_a_lost_session(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    play_request(p, "tools/list", "");
    lp_id conn = play_expect(p, "tools/list");
    shell_answer(p->s, conn, "404 Not Found", "{\"error\":\"Session not found\"}");
    assert_string_equal(
        p->sentence, "Error POSTing to endpoint (HTTP 404): {\"error\":\"Session not found\"}");
    assert_string_equal(p->failure_body, "{\"error\":\"Session not found\"}");
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_LOST);
    assert_int_equal(p->call_failure.status, 404);
    assert_true(p->call_failure.cannot_have_run);
    assert_int_equal(p->losses, 1);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_IDLE);
    assert_null(lp_client_info(p->client));
    struct lp_call_args args = {.method = LP_SPAN("ping"), .ops = &PLAY_CALL_OPS, .ctx = p};
    lp_id call;
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_EUSAGE);
    assert_int_equal(lp_client_notify(p->client, LP_SPAN("x"), LP_SPAN("")), LP_EUSAGE);
    play_free(p);
}

/* STA-01, STA-04, STA-11: what means a loss, and what does not. */
static void test_what_is_a_loss(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *body;
        bool is_lost;
    } CASES[] = {
        {"404 Not Found", "", true},
        {"404 Not Found", "<html>Not Found</html>", true},
        {"404 Not Found", "{\"jsonrpc\":\"2.0\"}", true},
        {"404 Not Found", "{\"half", true},
        {"404 Not Found",
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":"
            "\"x\"}}",
            false},
        {"400 Bad Request",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
            "\"message\":\"Bad Request: No valid session ID provided\"}}",
            true},
        {"400 Bad Request",
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,"
            "\"message\":\"bad arguments\"}}",
            false},
        {"422 Unprocessable", "Unexpected message, expect initialize request", true},
        {"500 Oops", "Session not found", false},
        {"200 OK", "Session not found", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = play_new(URL, false);
        p->s->target.suppress_notification_stream = true;
        play_open_legacy(p);
        play_request(p, "tools/list", "");
        lp_id conn = play_expect(p, "tools/list");
        shell_answer(p->s, conn, CASES[i].head, CASES[i].body);
        assert_int_equal(p->call_failures, 1);
        assert_int_equal(p->losses, CASES[i].is_lost);
        assert_int_equal(p->call_failure.kind == LP_FAILURE_LOST, CASES[i].is_lost);
        play_free(p);
    }
}

/* Parallel calls: each has its own verdict, the loss is told once, and a late 404 of the old
 * session does not end the new one (STA-07). */
static void test_parallel_calls_and_a_loss(void **state)
{
    (void)state;
    struct play *p = play_new(URL, true);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    lp_id conns[3];
    for (int i = 0; i < 3; i++) {
        play_request(p, "tools/list", "");
        conns[i] = play_expect(p, "tools/list");
    }
    p->reopens_when_lost = true;
    shell_answer(p->s, conns[0], "404 Not Found\r\nSet-Cookie: lb=a", "");
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPENING);
    lp_id conn = play_expect(p, "\"initialize\"");
    assert_false(text_has(p->head, "Mcp-Session-Id")); /* STA-06 */
    assert_false(text_has(p->head, "MCP-Protocol-Version"));
    assert_false(text_has(p->head, "Cookie")); /* [C1]: the jar begins empty */
    shell_answer(p->s, conns[1], "404 Not Found", "");
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->call_failures, 2);
    play_json(
        p, conn, "\r\nMcp-Session-Id: S2", "{\"jsonrpc\":\"2.0\",\"id\":5," INITIALIZE_RESULT "}");
    conn = play_expect(p, "Mcp-Session-Id: S2");
    play_accepted(p, conn);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    shell_answer(p->s, conns[2], "404 Not Found", "");
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->call_failures, 3);
    assert_true(p->call_failure.cannot_have_run);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    play_free(p);
}

/* A call that waits to be resumed is stranded by a loss, and what the server asked is dead. */
static void test_a_loss_strands(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id stream = play_open_legacy(p);
    play_begin_events(p, stream, "");
    play_event(p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}\n\n");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: e\nretry: 5000\ndata:\n\n");
    play_end_events(p, conn);
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    shell_answer(p->s, conn, "404 Not Found", "");
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->asked_ends, 1);
    assert_int_equal(p->call_failures, 2);
    assert_true(p->s->conns[stream].is_closed);
    lp_client_answer(p->client, p->asked, LP_SPAN("{}"));
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    play_free(p);
}

static void test_the_stream_tells_the_loss(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id stream = play_open_legacy(p);
    shell_read(p->s, stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n");
    shell_eof(p->s, stream);
    shell_pass(p->s, 1000);
    stream = play_expect(p, "GET /mcp");
    shell_answer(p->s, stream, "404 Not Found", "");
    assert_int_equal(p->losses, 1);
    play_free(p);
}

/* A 404 to the first GET is no loss: there may be no such route, or GET goes to another replica. */
static void test_no_stream_is_no_loss(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id stream = play_open_legacy(p);
    shell_answer(p->s, stream, "404 Not Found", "");
    assert_int_equal(p->losses, 0);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    assert_true(text_has(p->notes, "there is no notification stream"));
    play_free(p);
}

/* [C1]: the affinity cookie of the initialize answer pins everything after it; [C4]: the log is
 * written after the jar and before the socket, so it tells what the socket got. */
static void test_the_jar_pins(void **state)
{
    (void)state;
    struct play *p = play_new(URL, true);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "initialize");
    assert_false(text_has(p->head, "Cookie"));
    play_json(p, conn, "\r\nMcp-Session-Id: S1\r\nSet-Cookie: lb=pod-2; Path=/",
        "{\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}");
    conn = play_expect(p, "notifications/initialized");
    assert_true(text_has(p->head, "\r\nCookie: lb=pod-2\r\n"));
    play_accepted(p, conn);
    conn = play_expect(p, "GET /mcp");
    assert_true(text_has(p->head, "\r\nCookie: lb=pod-2\r\n"));
    lp_client_close(p->client);
    settle(p);
    play_expect(p, "DELETE /mcp");
    assert_true(text_has(p->head, "\r\nCookie: lb=pod-2\r\n"));
    assert_false(text_has(p->s->log, "pod-2"));
    assert_false(text_has(p->s->log, ": S1"));
    assert_true(text_has(p->s->log, "> Cookie: lb=#"));
    assert_true(text_has(p->s->log, "request \"initialize\", id 1"));
    play_free(p);
}

static void test_requests_that_cannot_be(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_legacy(p);
    static const char *const BAD[] = {"[]", "7", "{", "{}x", "\"a\""};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct lp_call_args args = {
            .method = LP_SPAN("x"), .params = lp_span_str(BAD[i]), .ops = &PLAY_CALL_OPS, .ctx = p};
        lp_id call;
        assert_int_equal(lp_client_request(p->client, &args, &call), LP_ESYNTAX);
    }
    assert_int_equal(
        lp_client_notify(p->client, LP_SPAN("notifications/x"), LP_SPAN("{\"a\":1}")), LP_OK);
    settle(p);
    play_expect(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":1}}");
    play_free(p);
}

/* Freed in the middle of everything: nothing is called, nothing is left. */
static void test_free_at_any_time(void **state)
{
    (void)state;
    for (int step = 0; step < 6; step++) {
        struct play *p = play_new(URL, false);
        p->s->target.era = LP_ERA_WISH_LEGACY;
        if (step > 0)
            lp_client_open(p->client);
        settle(p);
        if (step == 2)
            play_take(p);
        lp_client_close(p->client);
        if (step > 2) {
            lp_id stream = play_open_legacy(p);
            play_request(p, "tools/call", "{}");
            play_begin_events(p, stream, "");
            play_event(
                p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}\n\n");
        }
        if (step == 4)
            lp_client_close(p->client);
        uint32_t before = p->call_failures + p->asked_ends;
        struct lp_client *client = p->client;
        p->client = NULL;
        lp_client_free(client);
        assert_int_equal(p->call_failures + p->asked_ends, before);
        play_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session),
        cmocka_unit_test(test_no_session_no_delete),
        cmocka_unit_test(test_close_waits_a_while),
        cmocka_unit_test(test_what_an_answer_may_be),
        cmocka_unit_test(test_a_stream_with_progress),
        cmocka_unit_test(test_a_time_out),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_a_polled_stream),
        cmocka_unit_test(test_streams_are_resumed_apart),
        cmocka_unit_test(test_without_an_id_it_is_not_known),
        cmocka_unit_test(test_resuming_ends),
        cmocka_unit_test(test_resuming_is_refused),
        cmocka_unit_test(test_the_stream_first),
        cmocka_unit_test(test_a_stream_first_that_is_closed),
        cmocka_unit_test(test_the_notification_stream),
        cmocka_unit_test(test_the_server_asks),
        cmocka_unit_test(test_a_lost_session),
        cmocka_unit_test(test_what_is_a_loss),
        cmocka_unit_test(test_parallel_calls_and_a_loss),
        cmocka_unit_test(test_a_loss_strands),
        cmocka_unit_test(test_the_stream_tells_the_loss),
        cmocka_unit_test(test_no_stream_is_no_loss),
        cmocka_unit_test(test_the_jar_pins),
        cmocka_unit_test(test_requests_that_cannot_be),
        cmocka_unit_test(test_free_at_any_time),
    };
    return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
