/* How the client finds out what a server speaks, old SSE, requests of 2026-07-28, and what a 401
 * says. */
#include "client_harness.h"

#define URL "http://example.test:3000/mcp"
#define MODERN_META                                                                                \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                  \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{}},"                            \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"limpet\",\"version\":\"" LP_VERSION "\"}"

static void settle(struct play *p)
{
    lp_fetcher_settle(p->s->fetcher);
}

static struct play *begin(void)
{
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    lp_client_open(p->client);
    settle(p);
    return p;
}

/* --- which era --- */

static void test_the_question(void **state)
{
    (void)state;
    struct play *p = begin();
    play_expect(p, "server/discover");
    assert_true(
        text_has(p->head, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n"));
    assert_false(text_has(p->head, "Mcp-Session-Id"));
    assert_string_equal(p->body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/"
        "discover\",\"params\":{\"_meta\":{" MODERN_META "}}}");
    play_free(p);
}

enum next { OPEN_MODERN, INITIALIZES, FAILS };

static void test_what_the_answer_means(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *body;
        enum next next;
        const char *says;
    } CASES[] = {
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2025-11-25\","
            "\"2026-07-28\"],\"capabilities\":{}}}",
            OPEN_MODERN, ""},
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2025-11-25\"]}}",
            INITIALIZES, ""},
        {"200 OK\r\nContent-Type: application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"?\"}}",
            INITIALIZES, ""},
        {"200 OK\r\nContent-Type: application/json", "", INITIALIZES, ""},
        {"202 Accepted", "", INITIALIZES, ""},
        {"200 OK\r\nContent-Type: text/html", "<html>", INITIALIZES, ""},
        {"400 Bad Request", "", INITIALIZES, ""},
        {"400 Bad Request",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":"
            "\"Bad Request: Server not initialized\"}}",
            INITIALIZES, ""},
        {"400 Bad Request",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":"
            "{\"supported\":[\"2025-11-25\"],\"requested\":\"2026-07-28\"}}}",
            INITIALIZES, ""},
        {"400 Bad Request",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"v\",\"data\":"
            "{\"supported\":[\"2031-01-01\"]}}}",
            FAILS, "[\"2031-01-01\"]"},
        {"404 Not Found", "not here", INITIALIZES, ""},
        {"404 Not Found", "{\"error\":\"Session not found\"}", INITIALIZES, ""},
        {"405 Method Not Allowed", "", INITIALIZES, ""},
        {"415 Unsupported Media Type", "", INITIALIZES, ""},
        {"422 X", "Unexpected message, expect initialize request", INITIALIZES, ""},
        {"500 Oops", "broken", FAILS, "Error POSTing to endpoint (HTTP 500): broken"},
        {"503 Busy", "", FAILS, "(HTTP 503)"},
        {"429 Slow", "", FAILS, "(HTTP 429)"},
        {"408 Late", "", FAILS, "(HTTP 408)"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = begin();
        lp_id conn = play_expect(p, "server/discover");
        shell_answer(p->s, conn, CASES[i].head, CASES[i].body);
        assert_int_equal(p->opens, CASES[i].next == OPEN_MODERN);
        assert_int_equal(p->failures, CASES[i].next == FAILS);
        assert_true(text_has(p->sentence, CASES[i].says));
        if (CASES[i].next == INITIALIZES) {
            play_expect(p, "\"initialize\"");
            assert_false(text_has(p->head, "MCP-Protocol-Version"));
            assert_false(text_has(p->head, "Mcp-Method"));
            assert_false(text_has(p->body, "_meta"));
        }
        assert_int_equal(lp_client_state(p->client),
            CASES[i].next == OPEN_MODERN       ? LP_CLIENT_OPEN
                : CASES[i].next == INITIALIZES ? LP_CLIENT_OPENING
                                               : LP_CLIENT_IDLE);
        play_free(p);
    }
}

/* Who speaks legacy himself takes it of a server that has both, unless told otherwise. */
static void test_legacy_is_preferred(void **state)
{
    static const struct {
        enum lp_era_wish wish;
        const char *versions;
        bool is_legacy;
    } ROWS[] = {
        {LP_ERA_WISH_AUTO, "\"2026-07-28\",\"2025-11-25\"", true},
        {LP_ERA_WISH_AUTO, "\"2026-07-28\"", false},
        {LP_ERA_WISH_MODERN, "\"2026-07-28\",\"2025-11-25\"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char body[256];
        struct play *p = play_new(URL, false);
        struct lp_client_args args = {
            .fetcher = p->s->fetcher, .prefers_legacy = true, .ops = &PLAY_OPS, .ctx = p};
        lp_client_free(p->client);
        assert_int_equal(lp_client_new(&args, &p->client), LP_OK);
        p->s->target.era = ROWS[i].wish;
        lp_client_open(p->client);
        settle(p);
        snprintf(body, sizeof body,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[%s]}}",
            ROWS[i].versions);
        play_json(p, play_expect(p, "server/discover"), "", body);
        if (ROWS[i].is_legacy)
            play_expect(p, "\"initialize\"");
        assert_int_equal(p->opens, !ROWS[i].is_legacy);
        play_free(p);
    }
}

static void test_trouble_is_no_era(void **state)
{
    (void)state;
    struct play *p = begin();
    shell_not_connected(p->s, 1, LP_EREFUSED);
    p->is_connected[1] = true;
    assert_int_equal(p->failures, 1);
    assert_int_equal(p->failure.kind, LP_FAILURE_NETWORK);
    assert_true(text_has(p->sentence, "is the server running"));
    lp_client_open(p->client);
    settle(p);
    play_expect(p, "server/discover");
    shell_pass(p->s, LP_TARGET_TIMEOUT_MS);
    assert_int_equal(p->failures, 2);
    assert_int_equal(p->failure.kind, LP_FAILURE_TIMEOUT);
    assert_true(text_has(p->sentence,
        "if it is of before 2026-07-28, leave this question out with "
        "--era legacy"));
    play_free(p);
}

/* A session that the question made is ended again: nobody wants it. */
static void test_an_orphan_is_deleted(void **state)
{
    (void)state;
    struct play *p = begin();
    lp_id conn = play_expect(p, "server/discover");
    shell_answer(p->s, conn, "400 Bad Request\r\nMcp-Session-Id: ORPHAN", "no");
    conn = play_expect(p, "DELETE /mcp");
    assert_true(text_has(p->head, "Mcp-Session-Id: ORPHAN\r\n"));
    shell_answer(p->s, conn, "200 OK", "");
    conn = play_expect(p, "\"initialize\"");
    assert_false(text_has(p->head, "ORPHAN"));
    assert_int_equal(p->closes, 0);
    play_free(p);
}

static void test_modern_or_nothing(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.era = LP_ERA_WISH_MODERN;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "server/discover");
    shell_answer(p->s, conn, "400 Bad Request", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}");
    assert_int_equal(p->failures, 1);
    assert_true(text_has(p->sentence, "--era"));
    lp_client_open(p->client);
    settle(p);
    conn = play_expect(p, "server/discover");
    shell_answer(p->s, conn, "404 Not Found", "x");
    assert_int_equal(p->failures, 2);
    play_expect_nothing(p);
    play_free(p);
}

static void test_bad_initialize_answers(void **state)
{
    (void)state;
    static const struct {
        const char *result;
        const char *says;
    } CASES[] = {
        {"\"result\":{\"protocolVersion\":\"1999-01-01\"}", "\"1999-01-01\", which is not known"},
        {"\"result\":{}", "none, which is not known"},
        {"\"result\":{\"protocolVersion\":7}", "7, which is not known"},
        {"\"error\":{\"code\":-32602,\"message\":\"no\"}", "the server refuses initialize: {"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = play_new(URL, false);
        char body[512];
        p->s->target.era = LP_ERA_WISH_LEGACY;
        lp_client_open(p->client);
        settle(p);
        lp_id conn = play_expect(p, "initialize");
        snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", CASES[i].result);
        play_json(p, conn, "\r\nMcp-Session-Id: S", body);
        assert_int_equal(p->failures, 1);
        assert_true(text_has(p->sentence, CASES[i].says));
        assert_int_equal(lp_client_state(p->client), LP_CLIENT_IDLE);
        play_free(p);
    }
}

/* A server that does not take `initialized` may still work: the next call tells. */
static void test_initialized_is_refused(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    p->s->target.suppress_notification_stream = true;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "initialize");
    play_json(
        p, conn, "\r\nMcp-Session-Id: S", "{\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}");
    conn = play_expect(p, "initialized");
    shell_answer(p->s, conn, "404 Not Found", "{\"error\":\"Session not found\"}");
    assert_int_equal(p->opens, 1);
    assert_int_equal(p->losses, 0);
    assert_true(text_has(p->notes, "did not take notifications/initialized: Error POSTing"));
    play_free(p);
}

/* --- old SSE --- */

static lp_id open_old_sse(struct play *p, const char *endpoint)
{
    char event[512];
    p->s->target.era = LP_ERA_WISH_LEGACY;
    p->s->target.transport = LP_TRANSPORT_SSE;
    lp_client_open(p->client);
    settle(p);
    lp_id stream = play_expect(p, "GET /mcp");
    play_begin_events(p, stream, "");
    snprintf(event, sizeof event, "event: endpoint\ndata: %s\n\n", endpoint);
    play_event(p, stream, event);
    return stream;
}

static void test_old_sse(void **state)
{
    (void)state;
    struct play *p = play_new(URL, true);
    lp_id stream = open_old_sse(p, "/messages?sessionId=SECRET-9");
    lp_id conn = play_expect(p, "\"initialize\"");
    assert_true(text_has(p->head, "POST /messages?sessionId=SECRET-9 HTTP/1.1\r\n"));
    shell_answer(p->s, conn, "202 Accepted", "Accepted");
    play_event(p, stream,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":"
        "\"2024-11-05\",\"capabilities\":{}}}\n\n");
    conn = play_expect(p, "notifications/initialized");
    play_accepted(p, conn);
    assert_int_equal(p->opens, 1);
    assert_int_equal(lp_client_info(p->client)->transport, LP_TRANSPORT_SSE);
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    play_accepted(p, conn);
    assert_int_equal(p->answers + p->call_failures, 0);
    play_event(p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}\n\n");
    assert_int_equal(p->answers, 1);
    /* An answer that is quicker than the 202. */
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    play_event(p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[]}}\n\n");
    play_accepted(p, conn);
    assert_int_equal(p->answers, 2);
    assert_int_equal(p->call_failures, 0);
    assert_false(text_has(p->s->log, "SECRET-9"));
    assert_true(text_has(p->s->log, "endpoint event: /messages?sessionId=#"));
    /* The stream is the session. */
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    play_accepted(p, play_expect(p, "tools/call"));
    shell_broken(p->s, stream);
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->failure.kind, LP_FAILURE_LOST);
    assert_int_equal(p->call_failures, 1);
    assert_false(p->call_failure.cannot_have_run);
    play_free(p);
}

static void test_old_sse_post_is_lost(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    lp_id stream = open_old_sse(p, "http://example.test:3000/m?session_id=1");
    play_accepted(p, play_expect(p, "\"initialize\""));
    play_event(p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}\n\n");
    play_accepted(p, play_expect(p, "initialized"));
    play_request(p, "tools/list", "");
    lp_id conn = play_expect(p, "tools/list");
    shell_answer(p->s, conn, "404 Not Found", "Could not find session");
    assert_int_equal(p->losses, 1);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_LOST);
    assert_true(p->call_failure.cannot_have_run);
    assert_true(p->s->conns[stream].is_closed);
    play_free(p);
}

/* The stream is the session: an id beside it is none of ours. */
static void test_old_sse_has_no_session_id(void **state)
{
    (void)state;
    struct play *p = play_new_waiting(URL, false, true);
    lp_id stream = open_old_sse(p, "/m?session_id=1");
    shell_read(p->s, play_expect(p, "\"initialize\""),
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: STRAY\r\nContent-Length: 0\r\n\r\n");
    play_event(p, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}\n\n");
    lp_id conn = play_expect(p, "initialized");
    assert_false(text_has(p->head, "STRAY"));
    play_accepted(p, conn);
    assert_int_equal(p->opens, 1);
    lp_client_close(p->client);
    settle(p);
    play_expect_nothing(p);
    assert_int_equal(p->closes, 1);
    play_free(p);
}

static void test_bad_endpoints(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint;
        const char *says;
    } CASES[] = {
        {"http://other.test/messages", "another origin (other.test)"},
        {"https://example.test:3000/messages", "another origin"},
        {"//example.test:3001/m", "another origin"},
        {"http://u@example.test:3000/m", "another origin"},
        {"http://[", "no address"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = play_new(URL, false);
        open_old_sse(p, CASES[i].endpoint);
        assert_int_equal(p->failures, 1);
        assert_true(text_has(p->sentence, CASES[i].says));
        play_expect_nothing(p);
        play_free(p);
    }
}

static void test_no_endpoint_comes(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.transport = LP_TRANSPORT_SSE;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "GET /mcp");
    play_begin_events(p, conn, "");
    shell_pass(p->s, LP_TARGET_TIMEOUT_MS);
    assert_int_equal(p->failures, 1);
    assert_true(text_has(p->sentence, "announced no endpoint"));
    lp_client_open(p->client);
    settle(p);
    conn = play_expect(p, "GET /mcp");
    play_begin_events(p, conn, "");
    play_end_events(p, conn);
    assert_int_equal(p->failures, 2);
    assert_true(text_has(p->sentence, "ended before the session was open"));
    lp_client_open(p->client);
    settle(p);
    conn = play_expect(p, "GET /mcp");
    shell_answer(p->s, conn, "200 OK\r\nContent-Type: text/html", "<html>");
    assert_int_equal(p->failures, 3);
    assert_true(text_has(p->sentence, "no MCP message"));
    play_free(p);
}

/* Wire 4.6, 6.1: initialize is refused with a 4xx, the same URL is a stream. */
static void test_the_fallback(void **state)
{
    (void)state;
    static const char *const REFUSALS[] = {
        "400 Bad Request", "404 Not Found", "405 Method Not Allowed", "404 Nothing"};
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
        struct play *p = play_new(URL, false);
        p->s->target.era = LP_ERA_WISH_LEGACY;
        lp_client_open(p->client);
        settle(p);
        lp_id conn = play_expect(p, "initialize");
        shell_answer(p->s, conn, REFUSALS[i], "Cannot POST /mcp");
        conn = play_expect(p, "GET /mcp");
        assert_true(text_has(p->head, "Accept: text/event-stream\r\n"));
        if (i % 2) {
            play_begin_events(p, conn, "");
            play_event(p, conn, "event: endpoint\ndata: m\n\n");
            play_expect(p, "POST /m HTTP/1.1");
            assert_true(text_has(p->body, "initialize"));
        } else { /* not that either: the first refusal is what the user has to know */
            shell_answer(p->s, conn, "405 Method Not Allowed", "");
            assert_int_equal(p->failures, 1);
            assert_true(text_has(p->sentence, "Error POSTing to endpoint (HTTP 40"));
            assert_string_equal(p->failure_body, "Cannot POST /mcp");
            assert_true(text_has(p->notes, "old HTTP+SSE was tried too"));
        }
        play_free(p);
    }
}

static void test_no_fallback(void **state)
{
    (void)state;
    static const struct {
        const char *status, *body;
    } ROWS[] = {{"500 Oops", "x"}, {"429 Slow", "x"}, {"408 Late", "x"}, {"503 Busy", "x"},
        {"406 Not Acceptable", "x"}, {"411 Length Required", "x"}, {"422 No", "x"},
        {"404 Not Found", "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001}}"},
        {"400 Bad Request", "{\"error\":{\"code\":-32022,\"message\":\"m\"}}"},
        {"404 Not Found", "x"}};
    enum { COUNT = sizeof ROWS / sizeof *ROWS };
    for (size_t i = 0; i < COUNT; i++) {
        struct play *p = play_new(URL, false);
        p->s->target.era = LP_ERA_WISH_LEGACY;
        if (i == COUNT - 1)
            p->s->target.transport = LP_TRANSPORT_STREAMABLE_HTTP;
        lp_client_open(p->client);
        settle(p);
        lp_id conn = play_expect(p, "initialize");
        shell_answer(p->s, conn, ROWS[i].status, ROWS[i].body);
        assert_int_equal(p->failures, 1);
        play_expect_nothing(p);
        play_free(p);
    }
}

/* --- 2026-07-28 --- */

static void test_a_modern_call(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    lp_id conn = play_open_modern(p, "{}");
    assert_int_equal(lp_client_info(p->client)->era, LP_ERA_MODERN);
    play_expect_nothing(p);
    play_request(p, "tools/call", "{\"name\":\"gr\\u00f6\\u00dfe\",\"_meta\":{\"a\":1}}");
    conn = play_expect(p, "tools/call");
    assert_true(text_has(p->head,
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
        "Mcp-Name: =?base64?Z3LDtsOfZQ==?=\r\n"));
    assert_string_equal(p->body,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"gr\\u00f6\\u00dfe\",\"_meta\":{" MODERN_META ",\"a\":1}}}");
    play_json(
        p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\"}}");
    assert_int_equal(p->answers, 1);
    play_request(p, "resources/read", "{\"uri\":\"file:///a b\"}");
    conn = play_expect(p, "resources/read");
    assert_true(text_has(p->head, "Mcp-Name: file:///a b\r\n"));
    shell_answer(p->s, conn, "404 Not Found\r\nContent-Type: application/json",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"x\"}}");
    assert_int_equal(p->answers, 2);
    assert_true(text_has(p->error, "-32601"));
    assert_int_equal(p->losses, 0);
    /* [C4]: notifications are stamped too. */
    assert_int_equal(lp_client_notify(p->client, LP_SPAN("notifications/x"), LP_SPAN("")), LP_OK);
    settle(p);
    play_expect(p, "Mcp-Method: notifications/x\r\n");
    assert_true(text_has(p->body, "\"params\":{\"_meta\":{" MODERN_META "}}"));
    /* A stream that breaks loses the request; nothing is resumed. */
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    play_begin_events(p, conn, "");
    play_event(p, conn, "id: 7\ndata:\n\n");
    shell_broken(p->s, conn);
    assert_int_equal(p->call_failures, 1);
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    /* Cancelling is closing, and there is no session to delete. */
    lp_id call = play_request(p, "tools/call", "{\"name\":\"slow\"}");
    conn = play_expect(p, "tools/call");
    lp_call_cancel(p->client, call, LP_SPAN("enough"));
    settle(p);
    assert_true(p->s->conns[conn].is_closed);
    play_expect_nothing(p);
    lp_client_close(p->client);
    assert_int_equal(p->closes, 1);
    play_expect_nothing(p);
    play_free(p);
}

static void test_names_in_fields(void **state)
{
    (void)state;
    static const struct {
        const char *name; /* as it stands in JSON */
        const char *field;
    } CASES[] = {
        {"plain", "plain"},
        {"with blank", "with blank"},
        {" leading", "=?base64?IGxlYWRpbmc=?="},
        {"trailing\\t", "=?base64?dHJhaWxpbmcJ?="},
        {"=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="},
        {"a\\nb", "=?base64?YQpi?="},
        {"", ""},
    };
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_modern(p, "{}");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char params[256], field[256];
        snprintf(params, sizeof params, "{\"name\":\"%s\"}", CASES[i].name);
        snprintf(field, sizeof field, "\r\nMcp-Name: %s\r\n", CASES[i].field);
        play_request(p, "prompts/get", params);
        play_expect(p, "prompts/get");
        assert_true(text_has(p->head, field));
    }
    play_free(p);
}

#define TOOLS                                                                                      \
    "{\"tools\":[{\"name\":\"other\"},{\"name\":\"order\",\"inputSchema\":{\"type\":\"object\","   \
    "\"properties\":{\"shop\":{\"type\":\"string\",\"x-mcp-header\":\"Shop\"},"                    \
    "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"},\"where\":{\"properties\":"           \
    "{\"fast\":{\"type\":\"boolean\",\"x-mcp-header\":\"Fast\"}}},"                                \
    "\"none\":{\"type\":\"string\",\"x-mcp-header\":\"None\"}}}}]}"

static void list_tools(struct play *p, uint32_t id)
{
    char body[2048];
    lp_id conn = play_expect(p, "tools/list");
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":" TOOLS "}", id);
    play_json(p, conn, "", body);
}

static void test_arguments_in_fields(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_modern(p, "{}");
    play_request(p, "tools/list", "");
    list_tools(p, 2);
    play_request(p, "tools/call",
        "{\"name\":\"order\",\"arguments\":{\"shop\":\"n\\u00f6rd\",\"n\":42,\"where\":{\"fast\":"
        "true},\"none\":null}}");
    play_expect(p, "tools/call");
    assert_true(text_has(p->head,
        "Mcp-Name: order\r\nMcp-Param-Shop: =?base64?bsO2cmQ=?=\r\n"
        "Mcp-Param-Count: 42\r\nMcp-Param-Fast: true\r\n"));
    assert_false(text_has(p->head, "Mcp-Param-None"));
    play_free(p);
}

/* Wire 7.3: a mismatch makes the client list the tools again and send once more. */
static void test_a_mismatch_is_mended_once(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"order\",\"arguments\":{\"shop\":\"a\"}}");
    lp_id conn = play_expect(p, "tools/call");
    assert_false(text_has(p->head, "Mcp-Param"));
    static const char MISMATCH[] =
        "{\"jsonrpc\":\"2.0\",\"id\":%u,\"error\":{\"code\":-32020,\"message\":\"m\"}}";
    char body[256];
    snprintf(body, sizeof body, MISMATCH, 2);
    shell_answer(p->s, conn, "400 Bad Request", body);
    assert_int_equal(p->answers, 0);
    list_tools(p, 3);
    conn = play_expect(p, "tools/call");
    assert_true(text_has(p->head, "Mcp-Param-Shop: a\r\n"));
    assert_true(text_has(p->body, "\"id\":4"));
    snprintf(body, sizeof body, MISMATCH, 4);
    shell_answer(p->s, conn, "400 Bad Request", body);
    assert_int_equal(p->answers, 1);
    assert_true(text_has(p->error, "-32020"));
    play_free(p);
}

/* Wire 7.9 and 16.11. */
static void test_inputs(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    p->s->target.timeout_ms = 1000;
    play_open_modern(p, "{}");
    lp_id call = play_request(p, "tools/call", "{\"name\":\"order\",\"arguments\":{}}");
    lp_id conn = play_expect(p, "tools/call");
    play_json(p, conn, "",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
        "\"requestState\":\"st\\u00e4te\",\"inputRequests\":{\"k1\":{\"method\":"
        "\"elicitation/create\",\"params\":{\"message\":\"How many?\"}},\"k2\":{\"method\":"
        "\"roots/list\"}}}}");
    assert_int_equal(p->asks, 2);
    assert_string_equal(p->asked_method, "roots/list");
    lp_client_answer(p->client, p->asked_ids[1], LP_SPAN("{\"roots\":[]}"));
    settle(p);
    play_expect_nothing(p);
    shell_pass(p->s, 5000); /* the user may think */
    lp_client_answer(p->client, p->asked_ids[0], LP_SPAN("{\"action\":\"accept\"}"));
    settle(p);
    conn = play_expect(p, "Mcp-Name: order\r\n");
    assert_true(text_has(p->body,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":"
        "{\"inputResponses\":{\"k2\":{\"roots\":[]},\"k1\":{\"action\":"
        "\"accept\"}},\"requestState\":\"st\\u00e4te\",\"_meta\":{"));
    assert_true(text_has(p->body, "\"name\":\"order\",\"arguments\":{}}}"));
    play_json(p, conn, "",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"resultType\":\"complete\",\"a\":1}}");
    assert_int_equal(p->answers, 1);
    assert_int_equal(p->last_call, call);
    play_free(p);
}

static void test_inputs_at_once_and_again_and_again(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    p->answers_at_once = "{}";
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    for (uint32_t i = 0; i <= LP_CLIENT_ROUNDS_MAX; i++) {
        char body[256];
        lp_id conn = play_expect(p, "tools/call");
        /* Without inputs only the state is sent back. */
        snprintf(body, sizeof body,
            "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"resultType\":\"input_required\",%s}}",
            i + 2,
            i % 2 ? "\"requestState\":\"s\"" : "\"inputRequests\":{\"k\":{\"method\":\"m\"}}");
        assert_int_equal(p->call_failures, 0);
        play_json(p, conn, "", body);
    }
    assert_int_equal(p->call_failures, 1);
    assert_true(text_has(p->sentence, "again and again"));
    play_expect_nothing(p);
    play_free(p);
}

static void test_an_input_is_refused(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_json(p, conn, "",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
        "\"inputRequests\":{\"a\":{\"method\":\"m\"},\"b\":{\"method\":\"m\"}}}}");
    lp_client_answer_error(p->client, p->asked_ids[0], -32601, LP_SPAN("cannot"));
    assert_int_equal(p->call_failures, 1);
    assert_true(text_has(p->sentence, "the server's question was not answered: cannot"));
    assert_int_equal(p->asked_ends, 2);
    play_free(p);
}

static void test_listen(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    play_open_modern(p,
        "{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":false},"
        "\"resources\":{\"listChanged\":true}}");
    lp_id conn = play_expect(p, "subscriptions/listen");
    assert_true(text_has(p->body,
        "\"notifications\":{\"toolsListChanged\":true,"
        "\"resourcesListChanged\":true}"));
    play_begin_events(p, conn, "");
    play_event(
        p, conn, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    assert_int_equal(p->notifications, 1);
    shell_pass(p->s, 600000); /* it has no time-out */
    shell_broken(p->s, conn);
    shell_pass(p->s, 1000);
    conn = play_expect(p, "subscriptions/listen");
    shell_answer(p->s, conn, "404 Not Found",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"x\"}}");
    assert_true(text_has(p->notes, "there is no notification stream"));
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    assert_int_equal(p->answers + p->call_failures, 0);
    play_free(p);
}

/* --- where to log in: AUT-02, SEC-04, SEC-08 --- */

static const struct {
    const char *challenge;
    const char *asked[3]; /* the addresses, in order; the last one gets `metadata` */
    const char *metadata;
    const char *says;
} LOGINS[] = {
    {"Bearer resource_metadata=\"https://meta.test/x?y=1\", scope=\"a\"",
        {"GET /x?y=1 HTTP/1.1\r\nHost: meta.test\r\n"},
        "{\"authorization_servers\":[\"https://login.test/t1\",\"https://b.test\"]}",
        "The server asks for a login (HTTP 401). Log in at https://login.test/t1 and give"},
    {"Bearer",
        {"GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: example.test:3000",
            "GET /.well-known/oauth-protected-resource HTTP/1.1"},
        "{\"authorization_servers\":[\"http://localhost:9/\"]}", "Log in at http://localhost:9/"},
    {"Bearer resource_metadata=\"javascript:1\"", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"authorization_servers\":[\"javascript:alert(1)\",\"http://plain.test/\",\"http://"
        "127.evil.test/\","
        "\"https://a.test/$(id)\",\"https://u:p@a.test/\",\"https://b.test/`id`\","
        "\"-flag\",\"https://c.test/\\\" & calc\",\"https://d.test/t?a=1\"]}",
        "Log in at https://d.test/t?a=1 and"},
    /* SEC-08: neither https nor at the server itself */
    {"Bearer resource_metadata=\"http://127.0.0.1:9/\"",
        {"GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: example.test:3000"},
        "{\"authorization_servers\":[\"https://login.test/\"]}",
        "Log in at https://login.test/ and"},
    /* RFC 9728 3.3: metadata of somebody else are not used; those of a place above are. */
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"http://example.test:3000/\",\"authorization_servers\":"
        "[\"https://login.test/\"]}",
        "Log in at https://login.test/ and"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"http://example.test:3000/mc\",\"authorization_servers\":"
        "[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"https://example.test:3000/mcp\",\"authorization_servers\":"
        "[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"/mcp\",\"authorization_servers\":[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"a b\",\"authorization_servers\":[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"authorization_servers\":[7,\"\",\"a b\",\"/x\",\"ftp://a.test/\",\"http://[::1]:9/\"]}",
        "Log in at http://[::1]:9/ and"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"}, "{\"authorization_servers\":{}}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"http://example.test:3000/mcp/\",\"authorization_servers\":"
        "[\"https://login.test/\"]}",
        "Log in at https://login.test/ and"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":\"http://example.test:3000/mcp/below\",\"authorization_servers\":"
        "[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Bearer", {"GET /.well-known/oauth-protected-resource/mcp"},
        "{\"resource\":7,\"authorization_servers\":[\"https://login.test/\"]}",
        "It does not say where to log in"},
    {"Basic realm=\"x\"",
        {"GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-protected-resource HTTP/1.1"},
        "<html>", "It does not say where to log in"},
};

static void test_login(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LOGINS / sizeof *LOGINS; i++) {
        struct play *p = play_new(URL, true);
        char head[512];
        p->s->target.era = LP_ERA_WISH_LEGACY;
        assert_int_equal(lp_target_set_field_line(&p->s->target, LP_SPAN("X-Mine: 1")), LP_OK);
        lp_client_open(p->client);
        settle(p);
        lp_id conn = play_expect(p, "initialize");
        snprintf(head, sizeof head, "401 Unauthorized\r\nSet-Cookie: lb=1\r\nWWW-Authenticate: %s",
            LOGINS[i].challenge);
        shell_answer(p->s, conn, head, "who are you");
        for (int k = 0; k < 3 && LOGINS[i].asked[k]; k++) {
            bool is_last = k == 2 || !LOGINS[i].asked[k + 1];
            conn = play_expect(p, LOGINS[i].asked[k]);
            assert_false(text_has(p->head, "Cookie")); /* [C2] */
            assert_false(text_has(p->head, "X-Mine"));
            assert_int_equal(p->failures, 0);
            shell_answer(p->s, conn, is_last ? "200 OK" : "404 Not Found",
                is_last ? LOGINS[i].metadata : "no");
        }
        assert_int_equal(p->failures, 1);
        assert_int_equal(p->failure.kind, LP_FAILURE_LOGIN);
        assert_int_equal(p->failure.status, 401);
        assert_string_equal(p->failure_body, "who are you");
        assert_true(text_has(p->sentence, LOGINS[i].says));
        assert_false(text_has(p->sentence, "javascript"));
        play_free(p);
    }
}

static void test_login_of_a_call(void **state)
{
    (void)state;
    struct play *p = play_new("http://example.test:3000/", false);
    p->s->target.suppress_notification_stream = true;
    p->s->target.era = LP_ERA_WISH_LEGACY;
    assert_int_equal(lp_target_set_bearer(&p->s->target, LP_SPAN("tok")), LP_OK);
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "initialize");
    play_json(p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":1," INITIALIZE_RESULT "}");
    play_accepted(p, play_expect(p, "initialized"));
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    shell_answer(p->s, conn, "401 Unauthorized", "");
    conn = play_expect(p, "GET /.well-known/oauth-protected-resource HTTP/1.1");
    assert_false(text_has(p->head, "Bearer"));
    shell_broken(p->s, conn); /* a kept connection: it is asked once more */
    shell_broken(p->s, play_expect(p, "GET /.well-known/oauth-protected-resource HTTP/1.1"));
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_LOGIN);
    assert_true(p->call_failure.cannot_have_run);
    assert_true(text_has(p->sentence, "does not accept this token"));
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    play_request(p, "tools/call", "{}");
    conn = play_expect(p, "tools/call");
    shell_answer(p->s, conn, "403 Forbidden", "");
    play_expect(p, "GET /.well-known/oauth-protected-resource HTTP/1.1");
    lp_client_close(p->client); /* the question is dropped with all else */
    assert_int_equal(p->call_failures, 2);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_CANCELLED);
    play_free(p);
}

static void test_login_of_old_sse(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    p->s->target.transport = LP_TRANSPORT_SSE;
    lp_client_open(p->client);
    settle(p);
    lp_id conn = play_expect(p, "GET /mcp");
    shell_answer(p->s, conn, "401 Unauthorized", "");
    for (int i = 0; i < 2; i++) {
        conn = play_expect(p, "oauth-protected-resource");
        shell_answer(p->s, conn, "404 Not Found", "");
    }
    assert_int_equal(p->failures, 1);
    assert_int_equal(p->failure.kind, LP_FAILURE_LOGIN);
    play_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_question),
        cmocka_unit_test(test_what_the_answer_means),
        cmocka_unit_test(test_legacy_is_preferred),
        cmocka_unit_test(test_trouble_is_no_era),
        cmocka_unit_test(test_an_orphan_is_deleted),
        cmocka_unit_test(test_modern_or_nothing),
        cmocka_unit_test(test_bad_initialize_answers),
        cmocka_unit_test(test_initialized_is_refused),
        cmocka_unit_test(test_old_sse),
        cmocka_unit_test(test_old_sse_post_is_lost),
        cmocka_unit_test(test_old_sse_has_no_session_id),
        cmocka_unit_test(test_bad_endpoints),
        cmocka_unit_test(test_no_endpoint_comes),
        cmocka_unit_test(test_the_fallback),
        cmocka_unit_test(test_no_fallback),
        cmocka_unit_test(test_a_modern_call),
        cmocka_unit_test(test_names_in_fields),
        cmocka_unit_test(test_arguments_in_fields),
        cmocka_unit_test(test_a_mismatch_is_mended_once),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_inputs_at_once_and_again_and_again),
        cmocka_unit_test(test_an_input_is_refused),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_login),
        cmocka_unit_test(test_login_of_a_call),
        cmocka_unit_test(test_login_of_old_sse),
    };
    return cmocka_run_group_tests_name("client open", tests, NULL, NULL);
}
