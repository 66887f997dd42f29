/* The sample server, driven through real HTTP bytes by a shell in memory: sessions, statuses,
 * streams, the tools, limits and time. No sockets, no clock. */
#include "sample_harness.h"
#include "serve/guard.h"
#include "wire/member.h"

/* --- tests: the life of a session --- */

static void a_session_keeps_its_counter(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    STATUS(text, "202");
    HAS(text, "content-length: 0\r\n");
    HAS(post(&c, CALL("1", "counter", "{}")), "\"structuredContent\":{\"count\":1,");
    HAS(post(&c, CALL("2", "counter", "{}")), "{\"count\":2,\"replica\":\"blue\"}}}");
    struct client other = new_client(&w);
    assert_string_not_equal(c.session, other.session);
    HAS(post(&other, CALL("1", "counter", "{}")), "\"count\":1,");
    assert_int_equal(lp_server_session_count(w.server), 2);
    finish(&w);
}

static void the_version_is_negotiated(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    HAS(open_as(&c, INITIALIZE("2025-03-26")), "\"protocolVersion\":\"2025-03-26\"");
    HAS(open_as(&c, INITIALIZE("2025-06-18")), "\"protocolVersion\":\"2025-06-18\"");
    HAS(open_as(&c, INITIALIZE("2031-01-01")), "\"protocolVersion\":\"2025-11-25\"");
    HAS(open_as(&c, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\"}"),
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"protocolVersion\":\"2025-11-25\"");
    c.extra = "MCP-Protocol-Version: 2025-06-18\r\n";
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    c.extra = "MCP-Protocol-Version: 2024-11-05\r\n";
    const char *text = post(&c, CALL("1", "whoami", "{}"));
    STATUS(text, "400");
    HAS(text, "\"code\":-32000,\"message\":\"Bad Request: Unsupported protocol version");
    finish(&w);
}

static void ids_decide_the_status(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    const char *const methods[] = {"POST", "GET", "DELETE"};
    for (size_t i = 0; i < 3; i++) {
        const char *body = i ? NULL : CALL("5", "whoami", "{}");
        c.session[0] = 0;
        const char *text = ask(&c, dial(&w), methods[i], body);
        STATUS(text, "400");
        HAS(text, "\"code\":-32000,\"message\":\"Bad Request: Mcp-Session-Id header is required\"");
        const char *const unknown[] = {"01234567-89ab-4def-8123-456789abcdef",
            "01234567-89AB-4DEF-8123-456789ABCDEF", "short", "0123456789abcdef0123456789abcdef",
            "m2.01234567-89ab-4def-8123-456789abcdef"};
        for (size_t j = 0; j < sizeof unknown / sizeof *unknown; j++) {
            snprintf(c.session, sizeof c.session, "%s", unknown[j]);
            text = ask(&c, dial(&w), methods[i], body);
            STATUS(text, "404");
            HAS(text, "\"code\":-32001,\"message\":\"Session not found\"");
        }
    }
    finish(&w);
}

static void a_deleted_session_is_gone(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    STATUS(ask(&c, stream, "GET", NULL), "200");
    lp_id call = dial(&w);
    STATUS(ask(&c, call, "POST", SLOW("3", "{\"ms\":1000,\"steps\":1}")), "200");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    HAS(got(&w, stream), "0\r\n\r\n");
    HAS(got(&w, call), "0\r\n\r\n");
    assert_int_equal(lp_server_session_count(w.server), 0);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "404");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "404");
    pass(&w, 2 * SECOND);
    assert_string_equal(got(&w, call), "");
    finish(&w);
}

static void idle_sessions_expire_and_busy_ones_do_not(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client idle = new_client(&w);
    struct client busy = new_client(&w);
    STATUS(ask(&busy, dial(&w), "GET", NULL), "200");
    pass(&w, 600ull * SECOND);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "200");
    pass(&w, 899ull * SECOND);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "200");
    pass(&w, 901ull * SECOND);
    assert_int_equal(lp_server_session_count(w.server), 1);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&busy, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void the_longest_idle_session_makes_room(void **state)
{
    (void)state;
    struct world w;
    start(&w, 3);
    struct client a = new_client(&w);
    struct client b = new_client(&w);
    struct client c = new_client(&w);
    STATUS(post(&a, CALL("1", "whoami", "{}")), "200");
    struct client d = new_client(&w);
    assert_int_equal(lp_server_session_count(w.server), 3);
    STATUS(post(&b, CALL("1", "whoami", "{}")), "404");
    struct client *const alive[] = {&a, &c, &d};
    for (size_t i = 0; i < 3; i++)
        STATUS(ask(alive[i], dial(&w), "GET", NULL), "200");
    b.session[0] = 0;
    const char *text = post(&b, INITIALIZE("2025-11-25"));
    STATUS(text, "503");
    HAS(text, "retry-after: 1\r\n");
    finish(&w);
}

static void a_stale_id_does_not_hinder_initialize(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    snprintf(c.session, sizeof c.session, "01234567-89ab-4def-8123-456789abcdef");
    const char *text = post(&c, INITIALIZE("2025-11-25"));
    STATUS(text, "200");
    HAS(text, "mcp-session-id: ");
    LACKS(text, c.session);
    finish(&w);
}

/* --- messages --- */

static void bad_bodies_are_refused(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *const not_json[] = {"", "{", "{\"a\":1} x", "nonsense"};
    for (size_t i = 0; i < 4; i++) {
        const char *text = post(&c, not_json[i]);
        STATUS(text, "400");
        HAS(text, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,");
    }
    const char *const no_message[] = {"1", "\"x\"", "{}", "{\"id\":1}",
        "{\"id\":1.5,\"method\":\"ping\"}", "{\"id\":1,\"id\":2,\"method\":\"ping\"}", "[]", "[1]"};
    for (size_t i = 0; i < 8; i++) {
        const char *text = post(&c, no_message[i]);
        STATUS(text, "400");
        HAS(text, "\"code\":-32600,");
    }
    finish(&w);
}

static void unknown_things_are_answered_in_200(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}");
    STATUS(text, "200");
    HAS(text, "{\"code\":-32601,\"message\":\"Method not found\"}");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"prompts/list\"}"),
        "\"id\":12345678901234567890,\"error\":{\"code\":-32601");
    HAS(post(&c, CALL("1", "nothing", "{}")), "{\"code\":-32602,\"message\":\"Unknown tool\"}");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}"), "\"code\":-32602");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}"), "\"id\":9,\"result\":{}}");
    STATUS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"), "202");
    finish(&w);
}

static void the_tools_do_what_they_say(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    const char *const names[] = {"echo", "whoami", "counter", "slow", "notify", "ask"};
    for (size_t i = 0; i < 6; i++)
        HAS(text, names[i]);
    HAS(post(&c, CALL("1", "echo", "{\"a\":[{}],\"message\":\"h\\u00e9 \\\"you\\\"\"}")),
        "\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9 \\\"you\\\"\"}]}}");
    HAS(post(&c, CALL("1", "echo", "{\"message\":7}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "echo", "[]")), "\"code\":-32602");
    HAS(post(&c, CALL("\"x\"", "whoami", "{}")),
        "\"id\":\"x\",\"result\":{\"content\":[{\"type\":"
        "\"text\",\"text\":\"blue\"}]}}");
    HAS(post(&c, CALL("1", "slow", "{\"ms\":600001}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "slow", "{\"steps\":0}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "slow", "{\"steps\":-1}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "notify", "{\"count\":101}")), "\"code\":-32602");
    finish(&w);
}

static void batches_belong_to_2025_03_26(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *batch = "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"},"
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},"
                        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}},7]";
    STATUS(post(&c, batch), "400");
    open_as(&c, INITIALIZE("2025-03-26"));
    const char *text = post(&c, batch);
    STATUS(text, "200");
    HAS(text,
        "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":null,"
        "\"error\":{\"code\":-32600,");
    STATUS(post(&c, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]"), "202");
    STATUS(post(&c, "[" INITIALIZE("2025-03-26") "]"), "400");
    char many[4096] = "[1";
    for (int i = 0; i < 100; i++)
        strcat(many, ",1");
    strcat(many, "]");
    HAS(post(&c, many), "at most 100 messages");
    finish(&w);
}

/* --- streams --- */

static void slow_shows_progress(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", SLOW("\"s\"", "{\"ms\":900,\"steps\":3}"));
    STATUS(text, "200");
    HAS(text, "content-type: text/event-stream\r\n");
    HAS(text, "x-accel-buffering: no\r\n");
    HAS(text, "id: 1-0\nretry: 1000\ndata: \n\n");
    pass(&w, 300000);
    HAS(got(&w, conn), "\"params\":{\"progressToken\":\"p1\",\"progress\":1,\"total\":3}}\n\n");
    pass(&w, 300000);
    HAS(got(&w, conn), "\"progress\":2,");
    pass(&w, 300000);
    text = got(&w, conn);
    HAS(text, "\"progress\":3,");
    HAS(text,
        "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{\"content\":[{\"type\":\"text\","
        "\"text\":\"done in 3 steps\"}]}}\n\n\r\n0\r\n\r\n");
    STATUS(ask(&c, conn, "POST", CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void slow_is_plain_json_where_no_stream_is_taken(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    c.extra = "Accept: application/json\r\n";
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", SLOW("7", "{\"ms\":900,\"steps\":3}")), "");
    pass(&w, 899999);
    assert_string_equal(got(&w, conn), "");
    pass(&w, 1);
    const char *text = got(&w, conn);
    HAS(text, "content-type: application/json\r\n");
    HAS(text, "\"id\":7,\"result\"");
    finish(&w);
}

static void a_cancelled_call_ends(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    struct client other = new_client(&w);
    lp_id as_stream = dial(&w);
    lp_id as_json = dial(&w);
    ask(&c, as_stream, "POST", SLOW("7", "{\"ms\":900}"));
    c.extra = "Accept: application/json\r\n";
    ask(&c, as_json, "POST", SLOW("8", "{\"ms\":900}"));
    c.extra = NULL;
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"
    STATUS(post(&other, CANCEL("7")), "202");
    assert_string_equal(got(&w, as_stream), "");
    STATUS(post(&c, CANCEL("7")), "202");
    assert_string_equal(got(&w, as_stream), "0\r\n\r\n");
    STATUS(post(&c, CANCEL("8")), "202");
    HAS(got(&w, as_json), "\"id\":8,\"error\":{\"code\":-32800,");
    finish(&w);
}

static void the_get_stream_brings_notifications(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 0\"");
    lp_id stream = dial(&w);
    const char *text = ask(&c, stream, "GET", NULL);
    STATUS(text, "200");
    HAS(text, "cache-control: no-cache, no-transform\r\n");
    HAS(text, ": limpet\n\n");
    STATUS(ask(&c, dial(&w), "GET", NULL), "409");
    HAS(post(&c, CALL("1", "notify", "{\"count\":2}")), "\"sent 2\"");
    text = got(&w, stream);
    HAS(text,
        "event: message\nid: 0-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"");
    HAS(text, "{\"replica\":\"blue\",\"number\":2}");
    pass(&w, 15 * SECOND);
    HAS(got(&w, stream), ": limpet\n\n");
#define LEVEL(name)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{\"level\":" name "}}"
    HAS(post(&c, LEVEL("\"loud\"")), "\"code\":-32602");
    HAS(post(&c, LEVEL("\"error\"")), "\"result\":{}");
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 0\"");
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = stream});
    STATUS(ask(&c, dial(&w), "GET", NULL), "200");
    c.extra = "Accept: application/json\r\n";
    STATUS(ask(&c, dial(&w), "GET", NULL), "406");
    finish(&w);
}

static void notify_tells_those_who_subscribed(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    STATUS(ask(&c, stream, "GET", NULL), "200");
    HAS(post(&c, CALL("1", "notify", "{\"about\":\"tools\"}")), "\"sent 1\"");
    HAS(got(&w, stream), "notifications/tools/list_changed");
    HAS(post(&c, CALL("1", "notify", "{\"about\":\"resource\"}")), "\"sent 1\"");
    LACKS(got(&w, stream), "resources/updated");
#define ABOUT(method)                                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/" method "\",\"params\":{\"uri\":"       \
    "\"replica://notified\"}}"
    HAS(post(&c, ABOUT("subscribe")), "\"result\":{}");
    HAS(post(&c, CALL("1", "notify", "{\"about\":\"resource\",\"count\":2}")), "\"sent 2\"");
    HAS(got(&w, stream), "\"uri\":\"replica://notified\"");
    HAS(post(&c, ABOUT("read")), "{\\\"replica\\\":\\\"blue\\\",\\\"count\\\":3}");
    HAS(post(&c, CALL("1", "notify", "{\"about\":\"weather\"}")), "about must be log, tools or");
    HAS(post(&c, CALL("1", "notify", "{\"about\":7}")), "about must be log, tools or");
    finish(&w);
}

static void broken_connections_leave_nothing_behind(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    lp_id call = dial(&w);
    lp_id half = dial(&w);
    lp_id left = dial(&w);
    ask(&c, stream, "GET", NULL);
    ask(&c, call, "POST", SLOW("7", "{\"ms\":900}"));
    ask(&c, left, "POST", SLOW("8", "{\"ms\":900}"));
    send_bytes(&w, half, LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-"));
    const lp_id broken[] = {stream, call, half};
    for (size_t i = 0; i < 3; i++) {
        peer_of(&w, broken[i])->is_open = false;
        tell(&w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = broken[i]});
    }
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = left});
    assert_false(peer_of(&w, left)->is_open);
    pass(&w, 2 * SECOND);
    STATUS(ask(&c, dial(&w), "GET", NULL), "200");
    finish(&w);
}

/* --- HTTP --- */

static void heads_decide_early(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    static const struct {
        const char *request, *status, *part;
    } CASES[] = {
        {"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404", "-32600"},
        {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", "405",
            "allow: GET, POST, DELETE\r\n"},
        {"HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "405", "allow: "},
        {"POST /mcp HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\n{}", "415", "-32600"},
        {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", "403", "Host"},
        {"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n", "403",
            "Origin"},
        {"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://localhost:6274\r\n"
         "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
            "400", "-32600"},
        {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         "Content-Length: 4194305\r\n\r\n",
            "413", "-32600"},
        {"GET /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n", "400", "connection: close"},
        {"GET  /mcp HTTP/1.1\r\n\r\n", "400", "connection: close"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        lp_id conn = dial(&w);
        send_bytes(&w, conn, lp_span_str(CASES[i].request));
        const char *text = got(&w, conn);
        STATUS(text, CASES[i].status);
        HAS(text, CASES[i].part);
    }
    lp_id open = dial_to(&w, false);
    send_bytes(&w, open, LP_SPAN("GET /mcp HTTP/1.1\r\nHost: mcp.example\r\n\r\n"));
    STATUS(got(&w, open), "400");
    finish(&w);
}

static void continue_is_said_before_the_body(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    send_bytes(&w, conn,
        LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    assert_string_equal(got(&w, conn), "HTTP/1.1 100 Continue\r\n\r\n");
    send_bytes(&w, conn, LP_SPAN("{}"));
    STATUS(got(&w, conn), "400");
    finish(&w);
}

/* A body that grows over the limit without having said so. */
static void chunked_bodies_have_a_limit(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    static char chunk[65536];
    memset(chunk, ' ', sizeof chunk);
    send_bytes(&w, conn,
        LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 65 && peer_of(&w, conn)->is_open; i++) {
        send_bytes(&w, conn, LP_SPAN("10000\r\n"));
        send_bytes(&w, conn, lp_span(chunk, sizeof chunk));
        send_bytes(&w, conn, LP_SPAN("\r\n"));
    }
    STATUS(got(&w, conn), "413");
    assert_false(peer_of(&w, conn)->is_open);
    finish(&w);
}

static void a_body_that_is_broken_or_does_not_come_is_answered(void **state)
{
    static const struct {
        const char *rest, *status;
    } ROWS[] = {{"no size\r\n", "400"}, {"5\r\nhalf", "408"}};
    (void)state;
    struct world w;
    start(&w, 0);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        lp_id conn = dial(&w);
        send_bytes(&w, conn,
            LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n"));
        send_bytes(&w, conn, lp_span_str(ROWS[i].rest));
        pass(&w, 60ull * SECOND);
        STATUS(got(&w, conn), ROWS[i].status);
        assert_false(peer_of(&w, conn)->is_open);
    }
    finish(&w);
}

/* An answer larger than the backlog may be waits for its reader, and arrives whole. */
static void a_large_answer_waits_for_its_reader(void **state)
{
    (void)state;
    enum { SIZE = 3 << 20 };
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    struct peer *peer = peer_of(&w, conn);
    struct lp_buf body;
    lp_buf_init(&body, 8 << 20);
    char *room;
    assert_int_equal(
        lp_buf_append(&body,
            LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\""
                    ":{\"name\":\"echo\",\"arguments\":{\"message\":\"")),
        0);
    assert_int_equal(lp_buf_reserve(&body, SIZE, &room), 0);
    memset(room, 'm', SIZE);
    lp_buf_commit(&body, SIZE);
    assert_int_equal(lp_buf_append(&body, LP_SPAN("\"}}}")), 0);
    char head[512];
    int n = snprintf(head, sizeof head,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Mcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n",
        c.session, body.len);
    peer->window = 1000;
    send_bytes(&w, conn, lp_span(head, (size_t)n));
    send_bytes(&w, conn, lp_buf_span(&body));
    while (peer->drain.len) {
        struct lp_span drain = peer->drain;
        peer->drain = lp_span(NULL, 0);
        assert_int_equal(lp_buf_append(&peer->got, drain), 0);
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
    struct lp_span answer = lp_buf_span(&peer->got);
    assert_true(answer.len > SIZE);
    assert_true(lp_span_ends(answer, LP_SPAN("m\"}]}}")));
    lp_buf_release(&body);
    finish(&w);
}

static void stop_ends_streams_and_lets_calls_finish(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    lp_id call = dial(&w);
    ask(&c, stream, "GET", NULL);
    ask(&c, call, "POST", SLOW("7", "{\"ms\":900,\"steps\":1}"));
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    assert_false(peer_of(&w, stream)->is_open);
    assert_false(w.stopped);
    lp_id late = dial(&w);
    assert_false(peer_of(&w, late)->is_open);
    pass(&w, SECOND);
    HAS(got(&w, call), "done in 1 steps");
    assert_true(w.stopped);
    finish(&w);
}

static void silent_connections_are_closed(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    pass(&w, 76ull * SECOND);
    assert_false(peer_of(&w, conn)->is_open);
    lp_id half = dial(&w);
    send_bytes(&w, half, LP_SPAN("POST /mcp HTTP/1.1\r\n"));
    pass(&w, 31ull * SECOND);
    STATUS(got(&w, half), "408");
    finish(&w);
}

static void paths_have_a_limit(void **state)
{
    (void)state;
    char text[257];
    memset(text, 'a', sizeof text);
    struct lp_server *server = NULL;
    struct lp_server_args args = {.path = lp_span(text, sizeof text)};
    assert_int_equal(lp_server_new(&args, &server), LP_ETOO_LONG);
}

/* --- limits and oddities --- */

static void connections_have_a_ceiling(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id last = 0;
    for (int i = 0; i < LP_SERVER_CONNECTIONS_MAX; i++)
        last = dial(&w);
    assert_true(peer_of(&w, last)->is_open);
    lp_id over = dial(&w);
    assert_false(peer_of(&w, over)->is_open);
    pass(&w, 76ull * SECOND);
    assert_true(peer_of(&w, dial(&w))->is_open);
    finish(&w);
}

/* Notifications for a reader that does not read are dropped, not gathered without end. */
static void an_unread_stream_costs_one_backlog(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    ask(&c, stream, "GET", NULL);
    peer_of(&w, stream)->window = 1;
    for (int i = 0; i < 100; i++)
        HAS(post(&c, CALL("1", "notify", "{\"count\":100}")), "\"sent 100\"");
    struct peer *peer = peer_of(&w, stream);
    size_t kept = peer->drain.len;
    for (int i = 0; i < 100 && peer->drain.len; i++) {
        peer->drain = lp_span(NULL, 0);
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = stream});
        kept += peer->drain.len;
    }
    assert_in_range(kept, 65536, 1200000);
    finish(&w);
}

static void an_unread_stream_is_cut_in_the_end(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    ask(&c, stream, "GET", NULL);
    peer_of(&w, stream)->window = 1;
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 1\"");
    pass(&w, 80ull * SECOND);
    assert_false(peer_of(&w, stream)->is_open);
    assert_int_equal(peer_of(&w, stream)->how, LP_CLOSE_RESET);
    STATUS(ask(&c, dial(&w), "GET", NULL), "200");
    finish(&w);
}

static void delete_breaks_a_call_that_has_no_answer_yet(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id call = dial(&w);
    c.extra = "Accept: application/json\r\n";
    ask(&c, call, "POST", SLOW("1", "{\"ms\":9000}"));
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    assert_false(peer_of(&w, call)->is_open);
    assert_string_equal(got(&w, call), "");
    finish(&w);
}

static void a_client_may_end_its_side_while_it_reads(void **state)
{
    (void)state;
    enum { SIZE = 200000 };
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    struct peer *peer = peer_of(&w, conn);
    char *body = malloc(SIZE + 512);
    assert_non_null(body);
    char *at = body;
    at += sprintf(at,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n",
        c.session, SIZE + (int)strlen(CALL("1", "echo", "{\"message\":\"\"}")));
    at += sprintf(at, "%s",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
        "\"arguments\":{\"message\":\"");
    memset(at, 'm', SIZE);
    at += SIZE;
    at += sprintf(at, "\"}}}");
    peer->window = 1;
    send_bytes(&w, conn, lp_span(body, (size_t)(at - body)));
    free(body);
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = conn});
    while (peer->drain.len) {
        struct lp_span drain = peer->drain;
        peer->drain = lp_span(NULL, 0);
        assert_int_equal(lp_buf_append(&peer->got, drain), 0);
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
    assert_true(lp_span_ends(lp_buf_span(&peer->got), LP_SPAN("m\"}]}}")));
    assert_false(peer->is_open);
    finish(&w);
}

static void odd_arguments_are_refused_in_words(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    static const char *const odd[] = {CALL("1", "notify", "{\"count\":0}"),
        CALL("1", "notify", "{\"count\":\"2\"}"), CALL("1", "slow", "{\"ms\":1.5}"),
        CALL("1", "slow", "{\"steps\":1001}"), CALL("1", "slow", "{\"steps\":true}"),
        CALL("1", "echo", "{\"message\":[\"x\"]}")};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        HAS(post(&c, odd[i]), "\"code\":-32602");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\"}"), "-32602");
    finish(&w);
}

static void odd_messages_of_a_batch_are_told_apart(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    open_as(&c, INITIALIZE("2025-03-26"));
    const char *text = post(&c,
        "[{\"id\":1.5,\"method\":\"ping\"},[],"
        "{\"id\":4,\"error\":{\"code\":1,\"message\":\"x\"}},{\"a\":{\"b\":[1]}},\"s\"]");
    STATUS(text, "200");
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, "-32600")); at++)
        count++;
    assert_int_equal(count, 4);
    STATUS(post(&c, "[{\"id\":4,\"error\":{\"code\":1,\"message\":\"x\"}}]"), "202");
    STATUS(post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"initialize\"}"), "202");
    STATUS(post(&c, "{\"id\":4,\"error\":{\"code\":1,\"message\":\"x\"}}"), "202");
    finish(&w);
}

static void too_deep_is_no_message(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    char deep[1024];
    memset(deep, '[', 400);
    memset(deep + 400, ']', 400);
    deep[800] = '\0';
    HAS(post(&c, deep), "\"code\":-32700");
    finish(&w);
}

static void other_events_are_nothing_to_it(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    const enum lp_event_kind kinds[] = {LP_EV_MAIL, LP_EV_STORE_REPLY, LP_EV_CONFIG};
    for (size_t i = 0; i < 3; i++)
        tell(&w, (struct lp_event){.kind = kinds[i]});
    const enum lp_event_kind strangers[] = {LP_EV_CONNECTED, LP_EV_CONNECT_FAILED, LP_EV_DRAINED};
    for (size_t i = 0; i < 3; i++)
        tell(&w, (struct lp_event){.kind = strangers[i], .conn = (lp_id)1 << 32 | 9});
    assert_int_equal(lp_server_session_count(w.server), 0);
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    assert_true(w.stopped);
    tell(&w, (struct lp_event){.kind = LP_EV_TIMER});
    finish(&w);
}

static void the_idle_time_is_as_set(void **state)
{
    (void)state;
    struct world w;
    start_as(&w, (struct lp_server_args){.idle_us = SECOND});
    struct client c = new_client(&w);
    pass(&w, 2 * SECOND);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "404");
    finish(&w);
}

/* --- the small rooms beside it --- */

static void loopback_names_are_known(void **state)
{
    (void)state;
    const char *const good[] = {
        "localhost", "LOCALHOST:80", "127.0.0.1", "127.9.8.7:1", "[::1]", "[::1]:8080"};
    const char *const bad[] = {"", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0",
        "127.0.0.256", "127.0.0.x", "10.0.0.1", "[::2]", "::1", "127.0.0.1:99999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(lp_guard_is_loopback_host(lp_span_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(lp_guard_is_loopback_host(lp_span_str(bad[i])));
}

static void origins_are_judged(void **state)
{
    static const struct {
        const char *host, *origin, *origins;
        bool is_loopback;
        enum lp_reason why;
    } ROWS[] = {
        {NULL, NULL, "", true, LP_REASON_none},
        {"localhost:80", NULL, "", true, LP_REASON_none},
        {"evil.example", NULL, "", true, LP_REASON_host_refused},
        {"evil.example", NULL, "", false, LP_REASON_none},
        {NULL, "http://[::1]:99", "", true, LP_REASON_none},
        {NULL, "null", "", true, LP_REASON_origin_refused},
        {NULL, "http://evil.example", "", true, LP_REASON_origin_refused},
        {NULL, "", "", true, LP_REASON_origin_refused},
        {NULL, "localhost", "", true, LP_REASON_origin_refused},
        {"mcp.example:8080", "https://mcp.example:8080", "", false, LP_REASON_none},
        {"mcp.example", "https://other.example", "", false, LP_REASON_origin_refused},
        {"mcp.example", "null", "", false, LP_REASON_origin_refused},
        {NULL, "https://mcp.example", "", false, LP_REASON_origin_refused},
        {"", "https://", "", false, LP_REASON_origin_refused},
        {"mcp.example", "https://app.example", "https://x.example, https://app.example", false,
            LP_REASON_none},
        {"mcp.example", "https://mcp.example", "https://app.example", false,
            LP_REASON_origin_refused},
        {"localhost", "http://localhost", "https://app.example", true, LP_REASON_origin_refused},
        {"localhost", "", ",", true, LP_REASON_origin_refused},
        {"localhost", "null", "*", true, LP_REASON_none},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        static struct lp_head head;
        head.field_count = 0;
        if (ROWS[i].host)
            lp_head_add(&head, LP_FIELD_HOST, lp_span_str(ROWS[i].host));
        if (ROWS[i].origin)
            lp_head_add(&head, LP_FIELD_ORIGIN, lp_span_str(ROWS[i].origin));
        if (lp_guard_judge(&head, ROWS[i].is_loopback, lp_span_str(ROWS[i].origins)) != ROWS[i].why)
            fail_msg("row %zu", i);
    }
}

static void expect_member(const char *json, const char *key, const char *value)
{
    struct lp_span found = lp_member(lp_span_str(json), lp_span_str(key));
    assert_int_equal(found.len, strlen(value));
    assert_memory_equal(found.ptr ? found.ptr : "", value, found.len);
}

static void members_are_spans_of_the_text(void **state)
{
    (void)state;
    expect_member("{\"a\":{\"b\":1},\"b\":[2,{\"a\":3}],\"c\":null}", "a", "{\"b\":1}");
    expect_member("{\"a\":{\"b\":1},\"b\":[2,{\"a\":3}],\"c\":null}", "b", "[2,{\"a\":3}]");
    expect_member("{\"a\":{\"b\":1},\"c\":\"x\\\"y\"}", "c", "\"x\\\"y\"");
    expect_member("{\"\\u0061\":1.0}", "a", "1.0");
    expect_member("{\"a\":1,\"a\":2}", "a", "1");
    expect_member("{\"x\":{\"a\":1}}", "a", "");
    expect_member("[\"a\",1]", "a", "");
    expect_member("\"a\"", "a", "");
    expect_member("", "a", "");
    uint64_t n = 5;
    assert_true(lp_member_u64(LP_SPAN("{\"a\":7}"), LP_SPAN("b"), &n));
    assert_int_equal(n, 5);
    assert_true(lp_member_u64(LP_SPAN("{\"a\":7}"), LP_SPAN("a"), &n));
    assert_int_equal(n, 7);
    assert_false(lp_member_u64(LP_SPAN("{\"a\":7.0}"), LP_SPAN("a"), &n));
}

/* --- ask --- */

static void reply_to(struct client *c, const char *question, const char *result)
{
    char body[512];
    const char *id = strstr(question, "\"id\":\"");
    assert_non_null(id);
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",%.40s,\"result\":%s}", id, result);
    STATUS(post(c, body), "202");
}

static void ask_says_the_answer(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    open_as(&c,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}");
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", CALL("1", "ask", "{\"question\":\"who?\"}"));
    HAS(text, "\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\"");
    reply_to(&c, text, "{\"action\":\"accept\",\"content\":{\"answer\":\"me\"}}");
    HAS(got(&w, conn), "\"text\":\"me\"}],\"structuredContent\":{\"replica\":\"blue\"}");
    conn = dial(&w);
    text = ask(&c, conn, "POST", CALL("2", "ask", "{\"question\":7}"));
    HAS(text, "What shall I say?");
    reply_to(&c, text, "{\"action\":\"decline\"}");
    HAS(got(&w, conn), "\"text\":\"no answer\"}],\"isError\":true");
    conn = dial(&w);
    (void)ask(&c, conn, "POST", CALL("3", "ask", "{}"));
    pass(&w, 601ull * SECOND);
    HAS(got(&w, conn), "no answer came");
    c.extra = "Accept: application/json\r\n";
    HAS(post(&c, CALL("4", "ask", "{}")), "see that a stream is open");
    c = new_client(&w);
    HAS(post(&c, CALL("5", "ask", "{}")), "\"code\":-32600");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_keeps_its_counter),
        cmocka_unit_test(the_version_is_negotiated),
        cmocka_unit_test(ids_decide_the_status),
        cmocka_unit_test(a_deleted_session_is_gone),
        cmocka_unit_test(idle_sessions_expire_and_busy_ones_do_not),
        cmocka_unit_test(the_longest_idle_session_makes_room),
        cmocka_unit_test(a_stale_id_does_not_hinder_initialize),
        cmocka_unit_test(bad_bodies_are_refused),
        cmocka_unit_test(unknown_things_are_answered_in_200),
        cmocka_unit_test(the_tools_do_what_they_say),
        cmocka_unit_test(ask_says_the_answer),
        cmocka_unit_test(batches_belong_to_2025_03_26),
        cmocka_unit_test(slow_shows_progress),
        cmocka_unit_test(slow_is_plain_json_where_no_stream_is_taken),
        cmocka_unit_test(a_cancelled_call_ends),
        cmocka_unit_test(the_get_stream_brings_notifications),
        cmocka_unit_test(notify_tells_those_who_subscribed),
        cmocka_unit_test(broken_connections_leave_nothing_behind),
        cmocka_unit_test(heads_decide_early),
        cmocka_unit_test(continue_is_said_before_the_body),
        cmocka_unit_test(chunked_bodies_have_a_limit),
        cmocka_unit_test(a_body_that_is_broken_or_does_not_come_is_answered),
        cmocka_unit_test(a_large_answer_waits_for_its_reader),
        cmocka_unit_test(stop_ends_streams_and_lets_calls_finish),
        cmocka_unit_test(silent_connections_are_closed),
        cmocka_unit_test(paths_have_a_limit),
        cmocka_unit_test(connections_have_a_ceiling),
        cmocka_unit_test(an_unread_stream_costs_one_backlog),
        cmocka_unit_test(an_unread_stream_is_cut_in_the_end),
        cmocka_unit_test(delete_breaks_a_call_that_has_no_answer_yet),
        cmocka_unit_test(a_client_may_end_its_side_while_it_reads),
        cmocka_unit_test(odd_arguments_are_refused_in_words),
        cmocka_unit_test(odd_messages_of_a_batch_are_told_apart),
        cmocka_unit_test(too_deep_is_no_message),
        cmocka_unit_test(other_events_are_nothing_to_it),
        cmocka_unit_test(the_idle_time_is_as_set),
        cmocka_unit_test(loopback_names_are_known),
        cmocka_unit_test(origins_are_judged),
        cmocka_unit_test(members_are_spans_of_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
