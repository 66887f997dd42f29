/* HTTP+SSE of 2024-11-05 (serve/old_sse.c): one stream that is the session's life, answers that
 * come on it, sessions that no other transport finds, and its end in each phase. */
#include "../interop/conf_offer.h"
#include "serve_harness.h"

#define ASK(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define OLD                                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2024-11-05\",\"capabilities\":{\"elicitation\":{}}}}"

struct old {
    struct world *world;
    lp_id stream;
    char address[512];
};

static const char *send_line(struct world *w, lp_id conn, const char *line, const char *body)
{
    static char text[1 << 16];
    int n = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2024-11-05\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        line, strlen(body), body);
    assert_true(n > 0 && n < (int)sizeof text);
    send_bytes(w, conn, lp_span(text, (size_t)n));
    return got(w, conn);
}

static void open_at(struct old *o, const char *path)
{
    char line[300];
    snprintf(line, sizeof line, "GET %s", path);
    o->stream = dial(o->world);
    const char *text = send_line(o->world, o->stream, line, "");
    STATUS(text, "200");
    HAS(text, "content-type: text/event-stream\r\n");
    LACKS(text, "mcp-session-id");
    const char *at = strstr(text, "event: endpoint\r\ndata: ");
    if (!at)
        at = strstr(text, "event: endpoint\ndata: ");
    assert_non_null(at);
    assert_int_equal(sscanf(strstr(at, "data: "), "data: %500[^\r\n]", o->address), 1);
}

static const char *post_old(struct old *o, const char *body)
{
    char line[600];
    snprintf(line, sizeof line, "POST %s", o->address);
    return send_line(o->world, dial(o->world), line, body);
}

/* Accepted, and this is what comes on the stream. */
static const char *told(struct old *o, const char *body)
{
    const char *text = post_old(o, body);
    STATUS(text, "202");
    HAS(text, "content-length: 0");
    LACKS(text, "mcp-session-id");
    return got(o->world, o->stream);
}

static struct lp_offer offer;

static struct old begin_with(struct world *w, struct lp_server_args args)
{
    static char name[] = "blue";
    offer = conf_offer(name);
    if (!args.sse_path.len)
        args.sse_path = LP_SPAN("/sse");
    start_server(w, &offer, args);
    return (struct old){.world = w};
}

static struct old begin(struct world *w)
{
    struct old o = begin_with(w, (struct lp_server_args){0});
    open_at(&o, "/sse");
    HAS(told(&o, OLD), "\"protocolVersion\":\"2024-11-05\"");
    return o;
}

static void drop(struct world *w, lp_id conn)
{
    peer_of(w, conn)->is_open = false;
    tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

/* --- a session --- */

static void answers_come_on_the_stream(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    assert_memory_equal(o.address, "/sse?sessionId=", 15);
    assert_int_equal(strlen(o.address), 15 + 36);
    assert_string_equal(told(&o, ASK("1", "ping", "{}")),
        "3b\r\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n\r\n");
    finish(&w);
}

static void everything_else_works_too(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    assert_string_equal(
        told(&o, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), "");
    const char *text = told(&o, SLOW("2", "{}"));
    HAS(text, "Unknown tool");
    text = told(&o,
        "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"test_tool_with_progress\",\"_meta\":{\"progressToken\":9}}}");
    HAS(text, "\"progressToken\":9,\"progress\":0");
    pass(&w, SECOND);
    HAS(got(&w, o.stream), "\"id\":\"p\",\"result\"");
    HAS(told(&o, ASK("3", "resources/subscribe", "{\"uri\":\"test://x\"}")), "\"result\":{}");
    lp_server_resource_updated(w.server, LP_SPAN("test://x"));
    lp_server_settle(w.server, w.now_us);
    HAS(got(&w, o.stream), "notifications/resources/updated");
    HAS(told(&o, ASK("4", "nothing/such", "{}")), "-32601");
    pass(&w, 16 * SECOND);
    HAS(got(&w, o.stream), ": limpet\n\n");
    finish(&w);
}

static void a_question_is_asked_and_answered(void **state)
{
    (void)state;
    struct world w;
    char id[64], body[256];
    struct old o = begin(&w);
    const char *text = told(&o, CALL("7", "test_elicitation", "{\"message\":\"m\"}"));
    HAS(text, "\"method\":\"elicitation/create\"");
    assert_int_equal(sscanf(strstr(text, "\"id\":\""), "\"id\":\"%63[^\"]", id), 1);
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"action\":\"accept\",\"content\":{}}}",
        id);
    HAS(told(&o, body), "\"id\":7,\"result\"");
    finish(&w);
}

static void a_cancelled_call_gets_no_answer(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    HAS(told(&o, CALL("7", "test_elicitation", "{}")), "elicitation/create");
    const char *cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                         "\"requestId\":7}}";
    assert_string_equal(told(&o, cancel), "");
    assert_string_equal(told(&o, cancel), "");
    pass(&w, 10 * SECOND);
    assert_string_equal(got(&w, o.stream), "");
    finish(&w);
}

static void newer_versions_and_batches_are_taken(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    STATUS(post_old(&o, "[" CALL("1", "whoami", "{}") "]"), "400");
    HAS(told(&o, INITIALIZE("2025-03-26")), "\"protocolVersion\":\"2025-03-26\"");
    const char *text = told(&o, "[" CALL("1", "whoami", "{}") "," ASK("2", "ping", "{}") "]");
    HAS(text, "\"id\":1,\"result\"");
    HAS(text, "\"id\":2,\"result\"");
    HAS(told(&o, INITIALIZE("1999-01-01")), "\"protocolVersion\":\"2025-11-25\"");
    LACKS(told(&o, ASK("1", "ping", "{}")), "\nid: ");
    finish(&w);
}

/* --- whose it is --- */

static void wrong_requests_are_refused(void **state)
{
    static const struct {
        const char *line, *status, *part;
    } ROWS[] = {
        {"POST /sse", "400", "-32000"},
        {"POST /sse?sessionid=x", "400", "-32000"},
        {"POST /sse?sessionId=", "404", "-32001"},
        {"POST /sse?sessionId", "404", "-32001"},
        {"POST /sse?a=b&sessionId=01234567-89ab-4def-8123-456789abcdef", "404", "-32001"},
        {"DELETE /sse", "405", "allow: GET, POST\r\n"},
        {"PUT /sse", "405", "allow: GET, POST\r\n"},
        {"GET /ssee", "404", "-32600"},
    };
    (void)state;
    struct world w;
    struct old o = begin(&w);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *text = send_line(
            &w, dial(&w), ROWS[i].line, ROWS[i].line[0] == 'P' ? ASK("1", "ping", "{}") : "");
        STATUS(text, ROWS[i].status);
        HAS(text, ROWS[i].part);
    }
    STATUS(post_old(&o, "{"), "400");
    lp_id conn = dial(&w);
    send_bytes(
        &w, conn, LP_SPAN("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"));
    STATUS(got(&w, conn), "406");
    finish(&w);
}

/* An id is good for its own transport only. */
static void transports_do_not_mix(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    struct client c = {.world = &w};
    assert_int_equal(sscanf(o.address + 15, "%127s", c.session), 1);
    STATUS(post(&c, ASK("1", "ping", "{}")), "404");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "404");
    c = new_client(&w);
    snprintf(o.address + 15, sizeof o.address - 15, "%s", c.session);
    STATUS(post_old(&o, ASK("1", "ping", "{}")), "404");
    STATUS(post(&c, ASK("1", "ping", "{}")), "200");
    finish(&w);
}

static void both_may_share_a_path(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin_with(&w, (struct lp_server_args){.sse_path = LP_SPAN("/mcp")});
    open_at(&o, "/mcp");
    HAS(told(&o, ASK("1", "ping", "{}")), "\"result\":{}");
    struct client c = new_client(&w);
    STATUS(post(&c, ASK("1", "ping", "{}")), "200");
    HAS(ask(&c, dial(&w), "GET", NULL), ": limpet");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    finish(&w);
}

static bool by_token(void *ctx, struct lp_span token, struct lp_key *ret_principal)
{
    (void)ctx;
    ret_principal->lo = token.len ? (unsigned char)token.ptr[0] : 0;
    return token.len > 0;
}

static void a_session_is_its_principals(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin_with(&w, (struct lp_server_args){.bearer = by_token});
    STATUS(send_line(&w, dial(&w), "GET /sse", ""), "401");
    open_at(&o, "/sse HTTP/1.1\r\nAuthorization: Bearer a\r\nX:");
    char line[600];
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "POST %s HTTP/1.1\r\nAuthorization: Bearer %c\r\nX:", o.address,
            "ba"[i]);
        STATUS(send_line(&w, dial(&w), line, ASK("1", "ping", "{}")), i ? "202" : "404");
    }
    HAS(got(&w, o.stream), "\"result\":{}");
    finish(&w);
}

static void another_owners_session_is_replayed(void **state)
{
    (void)state;
    struct world w;
    struct lp_server_args args = {.replay = LP_SERVER_REPLAY_PREFER};
    args.owner = LP_SPAN("m1");
    struct old o = begin_with(&w, args);
    open_at(&o, "/sse");
    assert_memory_equal(o.address, "/sse?sessionId=m1.", 18);
    HAS(told(&o, ASK("1", "ping", "{}")), "\"result\":{}");
    const char *text = send_line(&w, dial(&w),
        "POST /sse?sessionId=m2.01234567-89ab-4def-8123-456789abcdef", ASK("1", "ping", "{}"));
    STATUS(text, "204");
    HAS(text, "fly-replay: prefer_instance=m2;timeout=5s\r\n");
    finish(&w);
}

/* --- ends --- */

static void it_ends_with_its_stream(void **state)
{
    (void)state;
    struct world w;
    for (int in_call = 0; in_call < 2; in_call++) {
        struct old o = begin(&w);
        if (in_call)
            HAS(told(&o, CALL("7", "test_elicitation", "{}")), "elicitation/create");
        assert_int_equal(lp_server_session_count(w.server), 1);
        drop(&w, o.stream);
        assert_int_equal(lp_server_session_count(w.server), 0);
        STATUS(post_old(&o, ASK("1", "ping", "{}")), "404");
        finish(&w);
    }
}

static void a_stop_waits_for_calls(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    struct old idle = {.world = &w};
    open_at(&idle, "/sse");
    HAS(told(&o, CALL("7", "test_elicitation", "{}")), "elicitation/create");
    lp_id late = dial(&w);
    send_bytes(&w, late,
        LP_SPAN("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"));
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    assert_string_equal(got(&w, idle.stream), "0\r\n\r\n");
    assert_string_equal(got(&w, o.stream), "");
    send_bytes(&w, late, LP_SPAN("0\r\n\r\n"));
    STATUS(got(&w, late), "503");
    pass(&w, 11 * SECOND); /* the grace; or its question's own time before */
    const char *text = got(&w, o.stream);
    HAS(text, "\"id\":7");
    assert_string_equal(text + strlen(text) - 5, "0\r\n\r\n");
    pass(&w, 100ull * SECOND);
    assert_true(w.stopped);
    finish(&w);
}

/* What its reader does not take waits, up to a bound; then the session ends, visibly. */
static void a_reader_who_takes_nothing_ends_it(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin(&w);
    peer_of(&w, o.stream)->window = 1;
    uint32_t count = 0;
    while (lp_server_session_count(w.server) && count < 20000) {
        STATUS(post_old(&o, ASK("1", "ping", "{}")), "202");
        w.next--;
        lp_buf_release(&w.peers[w.next].got);
        drop(&w, (lp_id)1 << 32 | (w.next + 1));
        count++;
    }
    assert_in_range(count, 10000, 12000);
    finish(&w);
}

static void an_answer_may_be_large(void **state)
{
    enum { SIZE = 3 << 20 };
    (void)state;
    struct world w;
    char *body = malloc(SIZE + 256);
    struct old o = begin(&w);
    assert_non_null(body);
    int n = sprintf(body, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    memset(body + n, 'i', SIZE);
    strcpy(body + n + SIZE, "\",\"method\":\"ping\"}");
    char head[1024];
    peer_of(&w, o.stream)->window = 1000;
    for (int i = 0; i < 4; i++) {
        int len = snprintf(head, sizeof head,
            "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\n\r\n",
            o.address, strlen(body));
        lp_id conn = dial(&w);
        send_bytes(&w, conn, lp_span(head, (size_t)len));
        send_bytes(&w, conn, lp_span_str(body));
        STATUS(got(&w, conn), "202");
    }
    struct peer *peer = peer_of(&w, o.stream);
    peer->window = 0;
    while (peer->drain.len) {
        assert_int_equal(lp_buf_append(&peer->got, peer->drain), 0);
        peer->drain = LP_SPAN("");
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = o.stream});
    }
    assert_in_range(peer->got.len, 4ull * SIZE, 5ull * SIZE);
    assert_int_equal(lp_server_session_count(w.server), 1);
    free(body);
    finish(&w);
}

static void no_room_is_said(void **state)
{
    (void)state;
    struct world w;
    struct old o = begin_with(&w, (struct lp_server_args){.session_max = 1});
    open_at(&o, "/sse");
    STATUS(send_line(&w, dial(&w), "GET /sse", ""), "503");
    HAS(told(&o, ASK("1", "ping", "{}")), "\"result\":{}");
    finish(&w);
}

static void it_needs_sessions_of_this_process(void **state)
{
    (void)state;
    char path[LP_SERVER_PATH_MAX + 2];
    struct world w = {0};
    struct lp_server *server = NULL;
    memset(path, '/', sizeof path);
    w.shell = (struct lp_shell){&w, perform};
    struct lp_server_args args = {
        .shell = &w.shell, .offer = &offer, .mode = LP_SESSIONS_STATELESS, .path = LP_SPAN("/mcp")};
    args.sse_path = LP_SPAN("/sse");
    assert_int_equal(lp_server_new(&args, &server), LP_EUNSUPPORTED);
    args.mode = LP_SESSIONS_LOCAL;
    args.eras = LP_ERAS_MODERN;
    assert_int_equal(lp_server_new(&args, &server), LP_EUNSUPPORTED);
    args.eras = LP_ERAS_BOTH;
    args.sse_path = lp_span(path, sizeof path - 1);
    assert_int_equal(lp_server_new(&args, &server), LP_ETOO_LONG);
    assert_null(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_on_the_stream),
        cmocka_unit_test(everything_else_works_too),
        cmocka_unit_test(a_question_is_asked_and_answered),
        cmocka_unit_test(a_cancelled_call_gets_no_answer),
        cmocka_unit_test(newer_versions_and_batches_are_taken),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(transports_do_not_mix),
        cmocka_unit_test(both_may_share_a_path),
        cmocka_unit_test(a_session_is_its_principals),
        cmocka_unit_test(another_owners_session_is_replayed),
        cmocka_unit_test(it_ends_with_its_stream),
        cmocka_unit_test(a_stop_waits_for_calls),
        cmocka_unit_test(a_reader_who_takes_nothing_ends_it),
        cmocka_unit_test(an_answer_may_be_large),
        cmocka_unit_test(no_room_is_said),
        cmocka_unit_test(it_needs_sessions_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
