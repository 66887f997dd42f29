/* The MCP server's event streams: priming, Last-Event-ID, polling, what is kept and for whom
 * (cases RES-01 to RES-03, STR-10, MSG-02). */
#include "../interop/conf_offer.h"
#include "serve_harness.h"

#define LOGGING(id) CALL(id, "test_tool_with_logging", "{}")

static void drop_conn(struct world *w, lp_id conn)
{
    peer_of(w, conn)->is_open = false;
    tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

static struct client begin(struct world *w, struct lp_offer *offer)
{
    static char name[] = "blue";
    *offer = conf_offer(name);
    start_server(w, offer, (struct lp_server_args){.retry_ms = 500});
    return new_client(w);
}

static lp_id resume(struct client *c, const char *event_id)
{
    char extra[128];
    lp_id conn = dial(c->world);
    snprintf(extra, sizeof extra, "Accept: text/event-stream\r\nLast-Event-ID: %s\r\n", event_id);
    c->extra = extra;
    char text[512];
    int n = snprintf(text, sizeof text,
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %s\r\n%s\r\n", c->session, extra);
    c->extra = NULL;
    send_bytes(c->world, conn, lp_span(text, (size_t)n));
    return conn;
}

static void streams_are_primed_from_2025_11_25_on(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    HAS(ask(&c, dial(&w), "POST", LOGGING("1")), "id: 1-0\nretry: 500\ndata: \n\n");
    HAS(ask(&c, dial(&w), "GET", NULL), "id: 0-0\nretry: 500\ndata: \n\n");
    open_as(&c, INITIALIZE("2025-06-18"));
    const char *text = ask(&c, dial(&w), "POST", LOGGING("1"));
    LACKS(text, "retry");
    HAS(text, "id: 1-1\n");
    LACKS(ask(&c, dial(&w), "GET", NULL), "retry");
    finish(&w);
}

/* Nothing that happened meanwhile is lost, and nothing comes twice. */
static void a_cut_stream_goes_on_where_it_was(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    HAS(ask(&c, conn, "POST", LOGGING("1")), "id: 1-1\ndata:");
    drop_conn(&w, conn);
    pass(&w, 60000);
    conn = resume(&c, "1-1");
    const char *text = got(&w, conn);
    STATUS(text, "200");
    LACKS(text, "execution started");
    HAS(text, "id: 1-2\ndata:");
    LACKS(text, "\r\n0\r\n");
    pass(&w, 60000);
    text = got(&w, conn);
    HAS(text, "execution completed");
    HAS(text, "\"done\"");
    HAS(text, "\r\n0\r\n");
    conn = resume(&c, "1-0");
    text = got(&w, conn);
    HAS(text, "execution started");
    HAS(text, "\"done\"");
    HAS(text, "\r\n0\r\n");
    HAS(got(&w, resume(&c, "1-4")), "\r\n0\r\n");
    finish(&w);
}

static void replay_stays_within_one_stream_and_session(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    struct client other = new_client(&w);
    lp_id one = dial(&w);
    lp_id two = dial(&w);
    ask(&c, one, "POST", LOGGING("1"));
    ask(&c, two, "POST", LOGGING("2"));
    drop_conn(&w, one);
    drop_conn(&w, two);
    pass(&w, SECOND);
    const char *text = got(&w, resume(&c, "1-1"));
    HAS(text, "id: 1-2\n");
    LACKS(text, "id: 2-");
    HAS(text, "\"id\":1,\"result\"");
    text = got(&w, resume(&c, "2-1"));
    HAS(text, "\"id\":2,\"result\"");
    LACKS(text, "id: 1-");
    static const char *const unknown[] = {"1-99", "9-1", "zzz", "1", "-", "1-x", "99999999999-1"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        lp_id conn = resume(&c, unknown[i]);
        text = got(&w, conn);
        STATUS(text, "200");
        LACKS(text, "Tool");
        drop_conn(&w, conn);
    }
    text = got(&w, resume(&other, "1-1"));
    STATUS(text, "200");
    LACKS(text, "Tool");
    finish(&w);
}

static void who_comes_again_takes_the_stream_over(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id first = dial(&w);
    ask(&c, first, "GET", NULL);
    lp_server_list_changed(w.server, LP_LIST_RESOURCES);
    lp_id second = resume(&c, "0-0");
    const char *text = got(&w, second);
    HAS(text, "id: 0-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/");
    HAS(got(&w, first), "\r\n0\r\n");
    STATUS(ask(&c, dial(&w), "GET", NULL), "409");
    drop_conn(&w, second);
    lp_server_list_changed(w.server, LP_LIST_TOOLS);
    lp_id third = dial(&w);
    text = ask(&c, third, "GET", NULL);
    HAS(text, "tools/list_changed");
    LACKS(text, "resources/list_changed");
    finish(&w);
}

static void a_call_may_let_its_client_poll(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", CALL("1", "test_reconnection", "{}"));
    HAS(text, "id: 1-0\nretry: 500\n");
    HAS(text, "\r\n0\r\n");
    conn = resume(&c, "1-0");
    LACKS(got(&w, conn), "result");
    pass(&w, SECOND);
    text = got(&w, conn);
    HAS(text, "completed successfully");
    HAS(text, "\r\n0\r\n");
    open_as(&c, INITIALIZE("2025-06-18"));
    conn = dial(&w);
    LACKS(ask(&c, conn, "POST", CALL("1", "test_reconnection", "{}")), "\r\n0\r\n");
    pass(&w, SECOND);
    HAS(got(&w, conn), "completed successfully");
    c.extra = "Accept: application/json\r\n";
    conn = dial(&w);
    ask(&c, conn, "POST", CALL("1", "test_reconnection", "{}"));
    pass(&w, SECOND);
    HAS(got(&w, conn), "completed successfully");
    finish(&w);
}

static void without_sessions_to_leave_is_to_cancel(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    finish(&w);
    start_server(&w, &offer, (struct lp_server_args){.mode = LP_SESSIONS_STATELESS});
    c = (struct client){.world = &w};
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", LOGGING("1"));
    HAS(text, "event: message\ndata:");
    LACKS(text, "id: ");
    drop_conn(&w, conn);
    conn = dial(&w);
    ask(&c, conn, "POST", LOGGING("2"));
    pass(&w, SECOND);
    HAS(got(&w, conn), "\"id\":2,\"result\"");
    finish(&w);
}

static void a_json_answer_without_its_reader_is_dropped(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    c.extra = "Accept: application/json\r\n";
    lp_id conn = dial(&w);
    ask(&c, conn, "POST", LOGGING("1"));
    drop_conn(&w, conn);
    pass(&w, SECOND);
    conn = dial(&w);
    ask(&c, conn, "POST", LOGGING("1"));
    pass(&w, SECOND);
    HAS(got(&w, conn), "\"id\":1,\"result\"");
    finish(&w);
}

#define PING "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}"

static void a_batch_is_an_array_or_a_stream(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    open_as(&c, INITIALIZE("2025-03-26"));
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", "[" PING "," LOGGING("6") "," PING "]");
    HAS(text, "data: [{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}]\n");
    HAS(text, "id: 1-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"");
    HAS(text, "id: 1-3\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,");
    pass(&w, SECOND);
    text = got(&w, conn);
    HAS(text, "data: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\"");
    HAS(text, "\r\n0\r\n");
    c.extra = "Accept: application/json\r\n";
    conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", "[" PING "," LOGGING("6") "]"), "");
    pass(&w, SECOND);
    HAS(got(&w, conn),
        "[{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":6,");
    conn = dial(&w);
    ask(&c, conn, "POST", "[" LOGGING("7") "]");
    STATUS(post(&c,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":7}}"),
        "202");
    HAS(got(&w, conn), "[{\"jsonrpc\":\"2.0\",\"id\":7,\"error\"");
    finish(&w);
}

/* What is kept for who comes again has a ceiling; the oldest goes. */
static void finished_streams_are_bounded(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    for (int i = 0; i < LP_SERVER_FINISHED_MAX + 1; i++) {
        ask(&c, conn, "POST", LOGGING("1"));
        pass(&w, 200000);
        got(&w, conn);
    }
    const char *text = got(&w, resume(&c, "2-0"));
    HAS(text, "execution started");
    text = got(&w, resume(&c, "1-0"));
    LACKS(text, "execution started");
    finish(&w);
}

/* The events that its reader has not taken wait; the stream ends when all are taken. */
static void a_slow_reader_gets_everything(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    struct peer *peer = peer_of(&w, conn);
    ask(&c, conn, "POST", LOGGING("1"));
    peer->window = 1;
    pass(&w, SECOND);
    while (peer->drain.len) {
        struct lp_span drain = peer->drain;
        peer->drain = lp_span(NULL, 0);
        assert_int_equal(lp_buf_append(&peer->got, drain), 0);
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
    const char *text = got(&w, conn);
    HAS(text, "processing");
    HAS(text, "\r\n0\r\n");
    finish(&w);
}

static void comments_keep_a_long_call_open(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    open_as(&c,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{\"roots\":{}}}}");
    lp_id stream = dial(&w);
    ask(&c, stream, "GET", NULL);
    got(&w, stream);
    pass(&w, 16 * SECOND);
    HAS(got(&w, stream), ": limpet\n\n");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    HAS(got(&w, stream), "0\r\n\r\n");
    finish(&w);
}

/* 1,000 events over 20 streams of one session have 1,000 different ids. */
static void event_ids_are_unique_in_a_session(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    static bool seen[64][8];
    for (int i = 0; i < 20; i++) {
        lp_id conn = dial(&w);
        ask(&c, conn, "POST", LOGGING("1"));
        pass(&w, SECOND);
        lp_id again = resume(&c, "0-0");
        drop_conn(&w, again);
        char first[16];
        snprintf(first, sizeof first, "%d-0", i + 1);
        for (const char *at = got(&w, resume(&c, first)); (at = strstr(at, "\nid: ")); at++) {
            unsigned stream, event;
            assert_int_equal(sscanf(at, "\nid: %u-%u", &stream, &event), 2);
            assert_false(seen[stream][event]);
            seen[stream][event] = true;
        }
        assert_true(seen[i + 1][4]);
    }
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_primed_from_2025_11_25_on),
        cmocka_unit_test(a_cut_stream_goes_on_where_it_was),
        cmocka_unit_test(replay_stays_within_one_stream_and_session),
        cmocka_unit_test(who_comes_again_takes_the_stream_over),
        cmocka_unit_test(a_call_may_let_its_client_poll),
        cmocka_unit_test(without_sessions_to_leave_is_to_cancel),
        cmocka_unit_test(a_json_answer_without_its_reader_is_dropped),
        cmocka_unit_test(a_batch_is_an_array_or_a_stream),
        cmocka_unit_test(finished_streams_are_bounded),
        cmocka_unit_test(a_slow_reader_gets_everything),
        cmocka_unit_test(comments_keep_a_long_call_open),
        cmocka_unit_test(event_ids_are_unique_in_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
