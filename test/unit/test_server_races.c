/* Races at the library's server, each in its two orders: what crosses what on the way, and every
 * end in every phase of a request, with and without sessions. Whatever happens, each call ends
 * once, nothing is held afterwards, and the server goes on or stops in time. */
#include "../interop/conf_offer.h"
#include "serve/server_priv.h"
#include "serve_harness.h"

#define CAN_ELICIT                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{\"elicitation\":{}}}}"
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define PLAIN "Accept: application/json\r\n"

static struct lp_offer offer;

static struct client begin(struct world *w)
{
    static char name[] = "blue";
    offer = conf_offer(name);
    start_server(w, &offer, (struct lp_server_args){0});
    struct client c = {.world = w};
    open_as(&c, CAN_ELICIT);
    return c;
}

static void drop(struct world *w, lp_id conn)
{
    if (!peer_of(w, conn)->is_open)
        return;
    peer_of(w, conn)->is_open = false;
    tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

static void question_id(const char *text, char id[64])
{
    const char *at = strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "{\"jsonrpc\":\"2.0\",\"id\":%40[^,]", id), 1);
}

static const char *reply_to(struct client *c, const char *id)
{
    char body[256];
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\"}}", id);
    return post(c, body);
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* --- the beginning of a session --- */

/* Two of them behind one another on one connection, before either answer is out. */
static void initialize_twice_on_one_connection(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    struct client first = {.world = &w}, second = {.world = &w};
    char text[2048];
    int n = 0;
    for (int i = 0; i < 2; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\n\r\n%s",
            strlen(CAN_ELICIT), CAN_ELICIT);
    lp_id conn = dial(&w);
    send_bytes(&w, conn, lp_span(text, (size_t)n));
    const char *answers = got(&w, conn);
    assert_int_equal(count_of(answers, "HTTP/1.1 200 "), 2);
    const char *at = strstr(answers, "mcp-session-id: ");
    assert_int_equal(sscanf(at, "mcp-session-id: %127[^\r]", first.session), 1);
    at = strstr(at + 1, "mcp-session-id: ");
    assert_int_equal(sscanf(at, "mcp-session-id: %127[^\r]", second.session), 1);
    assert_string_not_equal(first.session, second.session);
    STATUS(post(&first, PING), "200");
    STATUS(post(&second, PING), "200");
    STATUS(post(&c, PING), "200");
    finish(&w);
}

/* STA-06: the id of a session that has ended, or of nobody, makes no difference to initialize. */
static void initialize_with_an_old_id_opens_a_new_session(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    for (int i = 0; i < 2; i++) {
        const char *text = post(&c, CAN_ELICIT);
        struct client fresh = {.world = &w};
        STATUS(text, "200");
        assert_int_equal(
            sscanf(strstr(text, "mcp-session-id: "), "mcp-session-id: %127[^\r]", fresh.session),
            1);
        STATUS(post(&fresh, PING), "200");
        STATUS(post(&c, PING), "404");
        snprintf(c.session, sizeof c.session, "nobody's");
    }
    finish(&w);
}

/* Its client has gone before the answer: the session is there, unused, and times out. */
static void initialize_whose_client_leaves_is_forgotten(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    lp_id conn = dial(&w);
    peer_of(&w, conn)->window = 1;
    c.session[0] = '\0';
    ask(&c, conn, "POST", CAN_ELICIT);
    assert_int_equal(lp_server_session_count(w.server), 2);
    drop(&w, conn);
    pass(&w, 901ull * SECOND);
    assert_int_equal(lp_server_session_count(w.server), 0);
    finish(&w);
}

/* --- what crosses an answer --- */

static void a_cancel_before_and_after_the_answer(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    char id[64];
    lp_id conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
    STATUS(post(&c, CANCEL("7")), "202");
    const char *text = got(&w, conn);
    HAS(text, "0\r\n\r\n");
    LACKS(text, "\"id\":7");
    STATUS(reply_to(&c, id), "202"); /* crosses the cancel */
    question_id(ask(&c, conn, "POST", CALL("8", "test_elicitation", "{}")), id);
    STATUS(reply_to(&c, id), "202");
    STATUS(post(&c, CANCEL("8")), "202"); /* crosses the answer */
    text = got(&w, conn);
    assert_int_equal(count_of(text, "\"id\":8,\"result\""), 1);
    assert_int_equal(count_of(text, "0\r\n\r\n"), 1);
    finish(&w);
}

/* An answer as JSON is owed to the POST, so a cancelled call says that it was; once. */
static void a_cancel_of_a_call_that_answers_as_json(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    c.extra = PLAIN;
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", CALL("7", "test_tool_with_logging", "{}")), "");
    STATUS(post(&c, CANCEL("7")), "202");
    HAS(got(&w, conn), "-32800");
    STATUS(post(&c, CANCEL("7")), "202");
    pass(&w, SECOND);
    assert_string_equal(got(&w, conn), "");
    STATUS(ask(&c, conn, "POST", PING), "200");
    finish(&w);
}

static void a_reply_on_either_side_of_its_time(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct world w;
        struct client c = begin(&w);
        char id[64];
        lp_id conn = dial(&w);
        question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
        pass(&w, CONF_ASK_US - 1 + (uint64_t)late);
        STATUS(reply_to(&c, id), "202");
        pass(&w, SECOND);
        const char *text = got(&w, conn);
        assert_int_equal(count_of(text, "\"id\":7,\"result\""), 1);
        assert_int_equal(count_of(text, "action=accept"), !late);
        finish(&w);
    }
}

static void two_replies_count_once(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    char id[64];
    lp_id conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
    STATUS(reply_to(&c, id), "202");
    STATUS(reply_to(&c, id), "202");
    assert_int_equal(count_of(got(&w, conn), "\"id\":7,\"result\""), 1);
    finish(&w);
}

static void delete_while_a_call_gathers_json(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    c.extra = PLAIN;
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", CALL("7", "test_tool_with_logging", "{}")), "");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    assert_string_equal(got(&w, conn), ""); /* no half answer, and an end that is seen */
    assert_false(peer_of(&w, conn)->is_open);
    pass(&w, SECOND);
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "404");
    finish(&w);
}

/* --- two GET streams --- */

static void of_two_streams_one_is_taken(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    lp_id first = dial(&w), second = dial(&w);
    HAS(ask(&c, first, "GET", NULL), "text/event-stream");
    STATUS(ask(&c, second, "GET", NULL), "409");
    drop(&w, first); /* it had left, only nobody knew */
    HAS(ask(&c, second, "GET", NULL), "text/event-stream");
    lp_server_list_changed(w.server, LP_LIST_TOOLS);
    lp_server_settle(w.server, w.now_us);
    HAS(got(&w, second), "notifications/tools/list_changed");
    assert_string_equal(got(&w, first), "");
    finish(&w);
}

/* --- every end in every phase --- */

enum phase {
    HALF_HEAD,
    HALF_BODY,
    GATHERING, /* JSON, later */
    TAKEN_SLOWLY,
    CALL_STREAM,
    QUESTION,
    GET_STREAM,
    KEPT_IDLE,
    OLD_SSE,
    OLD_SSE_CALL,
    PHASE_COUNT,
};
enum ending { LEFT, HALF_CLOSED, STOPPED, DELETED, TIMED_OUT, ENDING_COUNT };

static bool needs_session(int phase)
{
    return phase == QUESTION || phase == GET_STREAM || phase == OLD_SSE || phase == OLD_SSE_CALL;
}

static void send_old(struct world *w, lp_id conn, const char *line, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        line, strlen(body), body);
    send_bytes(w, conn, lp_span(text, (size_t)n));
}

static void begin_old_sse(struct world *w, lp_id conn, bool in_call)
{
    char line[256] = "POST ";
    send_old(w, conn, "GET /sse", "");
    const char *at = strstr(got(w, conn), "/sse?");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "%200[^\n]", line + 5), 1);
    if (in_call)
        send_old(w, dial(w), line, CALL("7", "test_tool_with_logging", "{}"));
}

static lp_id begin_phase(struct client *c, int phase)
{
    struct world *w = c->world;
    lp_id conn = dial(w);
    switch (phase) {
    case HALF_HEAD:
        send_bytes(w, conn, LP_SPAN("POST /mcp HTTP/1.1\r\nHost: loc"));
        break;
    case HALF_BODY:
        send_bytes(w, conn,
            LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Content-Length: 100\r\n\r\n{\"jsonrpc\""));
        break;
    case GATHERING:
        c->extra = PLAIN;
        ask(c, conn, "POST", CALL("7", "test_tool_with_logging", "{}"));
        break;
    case TAKEN_SLOWLY:
        peer_of(w, conn)->window = 1;
        ask(c, conn, "POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
        break;
    case CALL_STREAM:
        ask(c, conn, "POST", CALL("7", "test_tool_with_logging", "{}"));
        break;
    case QUESTION:
        ask(c, conn, "POST", CALL("7", "test_elicitation", "{}"));
        break;
    case GET_STREAM:
        ask(c, conn, "GET", NULL);
        break;
    case KEPT_IDLE:
        ask(c, conn, "POST", PING);
        break;
    default:
        begin_old_sse(w, conn, phase == OLD_SSE_CALL);
        break;
    }
    c->extra = NULL;
    return conn;
}

static void bring_to_end(struct client *c, lp_id conn, int ending)
{
    struct world *w = c->world;
    switch (ending) {
    case LEFT:
        drop(w, conn);
        break;
    case HALF_CLOSED:
        tell(w, (struct lp_event){.kind = LP_EV_EOF, .conn = conn});
        break;
    case STOPPED:
        tell(w, (struct lp_event){.kind = LP_EV_STOP});
        break;
    case DELETED:
        if (c->session[0])
            STATUS(ask(c, dial(w), "DELETE", NULL), "200");
        break;
    default:
        pass(w, 1000ull * SECOND);
        break;
    }
}

static void expect_nothing_held(const struct lp_server *server, const char *what)
{
    bool is_clean = !server->requests.live_count && !server->channels.live_count &&
        !server->calls.live_count && !server->sessions.live_count && !server->held_bytes &&
        !server->finished_count && !server->links.client_count;
    if (!is_clean)
        fail_msg("%s: %u requests, %u channels, %u calls, %u sessions, %u connections", what,
            server->requests.live_count, server->channels.live_count, server->calls.live_count,
            server->sessions.live_count, server->links.client_count);
}

static void end_in_phase(bool has_sessions, int phase, int ending)
{
    struct world w;
    char what[64];
    static char name[] = "blue";
    offer = conf_offer(name);
    struct lp_server_args args = {.grace_us = SECOND};
    args.mode = has_sessions ? LP_SESSIONS_LOCAL : LP_SESSIONS_STATELESS;
    if (has_sessions)
        args.sse_path = LP_SPAN("/sse");
    start_server(&w, &offer, args);
    struct client c = {.world = &w};
    if (has_sessions)
        open_as(&c, CAN_ELICIT);
    lp_id conn = begin_phase(&c, phase);
    bring_to_end(&c, conn, ending);
    snprintf(what, sizeof what, "sessions %d, phase %d, ending %d", has_sessions, phase, ending);
    if (ending == STOPPED) {
        pass(&w, 3 * SECOND); /* grace, and a second for who does not read */
        if (!w.stopped)
            fail_msg("%s: it does not stop", what);
    } else {
        struct client late = {.world = &w};
        if (has_sessions)
            open_as(&late, CAN_ELICIT);
        STATUS(post(&late, PING), "200");
        for (uint32_t i = 0; i < w.next; i++)
            drop(&w, (lp_id)1 << 32 | (i + 1));
        pass(&w, 2000ull * SECOND);
        expect_nothing_held(w.server, what);
    }
    finish(&w);
}

static void every_end_in_every_phase(void **state)
{
    (void)state;
    for (int has_sessions = 0; has_sessions < 2; has_sessions++)
        for (int phase = 0; phase < PHASE_COUNT; phase++)
            for (int ending = 0; ending < ENDING_COUNT; ending++)
                if (has_sessions || !needs_session(phase))
                    end_in_phase(has_sessions, phase, ending);
}

/* One end upon another: a DELETE, a cancel or a reply comes while the server stops. */
static void what_comes_during_a_stop(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        struct world w;
        struct client c = begin(&w);
        char id[64];
        lp_id conn = dial(&w), other = dial(&w);
        question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
        char body[512], text[2048];
        snprintf(body, sizeof body,
            what ? CANCEL("7") : "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", id);
        int n = snprintf(text, sizeof text,
            "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Mcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n",
            what == 2 ? "DELETE" : "POST", c.session, strlen(body));
        send_bytes(&w, other, lp_span(text, (size_t)n));
        tell(&w, (struct lp_event){.kind = LP_EV_STOP});
        send_bytes(&w, other, lp_span_str(body));
        STATUS(got(&w, other), what == 2 ? "200" : "202");
        const char *rest = got(&w, conn);
        assert_int_equal(count_of(rest, "\"id\":7,\"result\""), what == 0);
        HAS(rest, "0\r\n\r\n");
        pass(&w, 2 * SECOND);
        assert_true(w.stopped);
        finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialize_twice_on_one_connection),
        cmocka_unit_test(initialize_with_an_old_id_opens_a_new_session),
        cmocka_unit_test(initialize_whose_client_leaves_is_forgotten),
        cmocka_unit_test(a_cancel_before_and_after_the_answer),
        cmocka_unit_test(a_cancel_of_a_call_that_answers_as_json),
        cmocka_unit_test(a_reply_on_either_side_of_its_time),
        cmocka_unit_test(two_replies_count_once),
        cmocka_unit_test(delete_while_a_call_gathers_json),
        cmocka_unit_test(of_two_streams_one_is_taken),
        cmocka_unit_test(every_end_in_every_phase),
        cmocka_unit_test(what_comes_during_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
