/* The sample server with an owner id, and without sessions: who gets 404, who is replayed, and that
 * nothing is ever asked for where there are no sessions ([S2] to [S5], [L3]). */
#include "sample_harness.h"

#define OTHERS "m2.01234567-89ab-4def-8123-456789abcdef"
#define OURS "m1.01234567-89ab-4def-8123-456789abcdef"

static const char *const METHODS[] = {"POST", "GET", "DELETE"};

static const char *ask_as(struct client *c, const char *method, const char *session)
{
    snprintf(c->session, sizeof c->session, "%s", session);
    bool is_post = method[0] == 'P';
    return ask(c, dial(c->world), method, is_post ? CALL("\"x\"", "whoami", "{}") : NULL);
}

static void start_owner(struct world *w, enum lp_server_replay replay)
{
    struct lp_server_args args = {.replay = replay};
    args.owner = LP_SPAN("m1");
    start_as(w, args);
}

static void ids_begin_with_the_owner(void **state)
{
    (void)state;
    struct world w;
    start_owner(&w, LP_SERVER_REPLAY_OFF);
    struct client c = new_client(&w);
    assert_memory_equal(c.session, "m1.", 3);
    assert_int_equal(strlen(c.session), 39);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void expect_replay(const char *text, const char *value)
{
    STATUS(text, "204");
    HAS(text, value);
    LACKS(text, "content-length");
}

static void another_owners_session_is_replayed(void **state)
{
    static const struct {
        enum lp_server_replay replay;
        const char *value;
    } ROWS[] = {
        {LP_SERVER_REPLAY_PREFER, "fly-replay: prefer_instance=m2;timeout=5s\r\n"},
        {LP_SERVER_REPLAY_STRICT, "fly-replay: instance=m2\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        start_owner(&w, ROWS[i].replay);
        struct client c = {.world = &w};
        for (size_t j = 0; j < 3; j++)
            expect_replay(ask_as(&c, METHODS[j], OTHERS), ROWS[i].value);
        c.extra = "Limpet-Hop: v1.forged\r\n";
        expect_replay(ask_as(&c, "POST", OTHERS), ROWS[i].value);
        finish(&w);
    }
}

static void expect_lost(const char *text, bool is_post)
{
    STATUS(text, "404");
    HAS(text, "\"code\":-32001,\"message\":\"Session not found\"");
    HAS(text, is_post ? "\"id\":\"x\"" : "\"id\":null");
    LACKS(text, "fly-replay");
    LACKS(text, "m2");
}

static void who_is_not_replayed_is_lost(void **state)
{
    static const char *const ids[] = {OURS, "01234567-89ab-4def-8123-456789abcdef", "m2;x=y.1",
        "m234567890123456789012345678901234.1", ".", "m1.", "m2.", "m\xc3\xa9.1"};
    static const char *const marks[] = {
        "fly-replay-src: instance=m3\r\n", "fly-replay-failed: instance=m2\r\n"};
    (void)state;
    struct world w;
    start_owner(&w, LP_SERVER_REPLAY_PREFER);
    struct client c = {.world = &w};
    for (size_t j = 0; j < 3; j++) {
        c.extra = NULL;
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
            expect_lost(ask_as(&c, METHODS[j], ids[i]), j == 0);
        for (size_t i = 0; i < 2; i++) {
            c.extra = marks[i];
            expect_lost(ask_as(&c, METHODS[j], OTHERS), j == 0);
        }
        c.extra = NULL;
        STATUS(ask_as(&c, METHODS[j], ""), "400");
    }
    finish(&w);
}

static void without_replay_or_owner_nothing_is_replayed(void **state)
{
    (void)state;
    for (int with_owner = 0; with_owner < 2; with_owner++) {
        struct world w;
        struct lp_server_args args = {.replay = LP_SERVER_REPLAY_PREFER};
        if (with_owner) {
            args.owner = LP_SPAN("m1");
            args.replay = LP_SERVER_REPLAY_OFF;
        }
        start_as(&w, args);
        struct client c = {.world = &w};
        for (size_t j = 0; j < 3; j++)
            expect_lost(ask_as(&c, METHODS[j], OTHERS), j == 0);
        finish(&w);
    }
}

static void initialize_is_always_answered_here(void **state)
{
    (void)state;
    struct world w;
    start_owner(&w, LP_SERVER_REPLAY_PREFER);
    struct client c = {.world = &w};
    snprintf(c.session, sizeof c.session, "%s", OTHERS);
    const char *text = post(&c, INITIALIZE("2025-11-25"));
    STATUS(text, "200");
    HAS(text, "mcp-session-id: m1.");
    finish(&w);
}

/* What the platform cannot send again is refused by its head. */
static void long_bodies_are_not_replayed(void **state)
{
    static const struct {
        const char *framing, *extra, *status;
    } ROWS[] = {
        {"Content-Length: 1000001", "", "413"},
        {"Transfer-Encoding: chunked", "", "413"},
        {"Transfer-Encoding: chunked", "fly-replay-src: instance=m3\r\n", "100"},
        {"Content-Length: 1000000", "", "100"},
    };
    (void)state;
    struct world w;
    start_owner(&w, LP_SERVER_REPLAY_PREFER);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char text[512];
        int n = snprintf(text, sizeof text,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Mcp-Session-Id: " OTHERS "\r\nExpect: 100-continue\r\n%s%s\r\n\r\n",
            ROWS[i].extra, ROWS[i].framing);
        lp_id conn = dial(&w);
        send_bytes(&w, conn, lp_span(text, (size_t)n));
        const char *answer = got(&w, conn);
        STATUS(answer, ROWS[i].status);
        if (ROWS[i].status[0] == '4')
            HAS(answer, "1,000,000");
    }
    finish(&w);
}

static void bad_owners_are_refused(void **state)
{
    (void)state;
    struct lp_server *server = NULL;
    struct lp_server_args args = {.name = LP_SPAN("a"), .path = LP_SPAN("/mcp")};
    args.owner = LP_SPAN("m-1");
    assert_int_equal(lp_server_new(&args, &server), LP_ESYNTAX);
}

/* --- without sessions --- */

static void start_stateless(struct world *w)
{
    start_as(w, (struct lp_server_args){.mode = LP_SESSIONS_STATELESS});
}

static void the_first_request_may_be_any(void **state)
{
    (void)state;
    struct world w;
    start_stateless(&w);
    struct client c = {.world = &w};
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    STATUS(text, "200");
    HAS(text, "\"name\":\"whoami\"");
    LACKS(text, "mcp-session-id");
    text = post(&c, INITIALIZE("2025-06-18"));
    STATUS(text, "200");
    HAS(text, "\"protocolVersion\":\"2025-06-18\"");
    LACKS(text, "mcp-session-id");
    snprintf(c.session, sizeof c.session, "whatever");
    text = post(&c, CALL("2", "echo", "{\"message\":\"m\"}"));
    STATUS(text, "200");
    LACKS(text, "mcp-session-id");
    STATUS(post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), "202");
    assert_int_equal(lp_server_session_count(w.server), 0);
    finish(&w);
}

static void there_is_no_stream_and_nothing_to_delete(void **state)
{
    (void)state;
    struct world w;
    start_stateless(&w);
    struct client c = {.world = &w};
    for (size_t i = 1; i < 3; i++) {
        const char *text = ask(&c, dial(&w), METHODS[i], NULL);
        STATUS(text, "405");
        HAS(text, "allow: POST\r\n");
    }
    finish(&w);
}

static void tools_do_without_a_session(void **state)
{
    (void)state;
    struct world w;
    start_stateless(&w);
    struct client c = {.world = &w};
    HAS(post(&c, CALL("1", "counter", "{}")), "no session here");
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 0\"");
    HAS(post(&c,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{\"level\":"
            "\"info\"}}"),
        "\"result\":{}");
    lp_id conn = dial(&w);
    HAS(ask(&c, conn, "POST", SLOW("1", "{\"ms\":10,\"steps\":1}")), "text/event-stream");
    STATUS(post(&c,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":1}}"),
        "202");
    pass(&w, SECOND);
    HAS(got(&w, conn), "done in 1 steps");
    finish(&w);
}

static void the_header_decides_about_batches(void **state)
{
    static const struct {
        const char *header, *status;
    } ROWS[] = {{"", "200"}, {"MCP-Protocol-Version: 2025-03-26\r\n", "200"},
        {"MCP-Protocol-Version: 2025-11-25\r\n", "400"}};
    (void)state;
    struct world w;
    start_stateless(&w);
    struct client c = {.world = &w};
    for (size_t i = 0; i < 3; i++) {
        c.extra = ROWS[i].header;
        STATUS(post(&c, "[" CALL("1", "whoami", "{}") "]"), ROWS[i].status);
    }
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_begin_with_the_owner),
        cmocka_unit_test(another_owners_session_is_replayed),
        cmocka_unit_test(who_is_not_replayed_is_lost),
        cmocka_unit_test(without_replay_or_owner_nothing_is_replayed),
        cmocka_unit_test(initialize_is_always_answered_here),
        cmocka_unit_test(long_bodies_are_not_replayed),
        cmocka_unit_test(bad_owners_are_refused),
        cmocka_unit_test(the_first_request_may_be_any),
        cmocka_unit_test(there_is_no_stream_and_nothing_to_delete),
        cmocka_unit_test(tools_do_without_a_session),
        cmocka_unit_test(the_header_decides_about_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
