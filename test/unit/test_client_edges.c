/* The client at its edges: messages that are hardly any, limits, owners that do things from within
 * a callback, and what a caller may set. */
#include "client_harness.h"

#define URL "http://example.test:3000/mcp"

static struct play *begin(void)
{
    struct play *p = play_new(URL, false);
    p->s->target.suppress_notification_stream = true;
    return p;
}

static void settle(struct play *p)
{
    lp_fetcher_settle(p->s->fetcher);
}

/* A call whose answer is a stream that is still open. */
static lp_id open_stream(struct play *p)
{
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_begin_events(p, conn, "");
    return conn;
}

static void event(struct play *p, lp_id conn, const char *data)
{
    char text[8192];
    snprintf(text, sizeof text, "data: %s\n\n", data);
    play_event(p, conn, text);
}

static void test_messages_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const BAD[] = {"7", "[]", "[7]", "nonsense", "{}",
        "{\"jsonrpc\":\"2.0\",\"id\":2}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1,\"error\":{}}",
        "{\"id\":2,\"id\":2,\"result\":1}", "{\"id\":2,\"method\":{}}", "{\"method\":7}"};
    struct play *p = begin();
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        p->notes[0] = '\0';
        event(p, conn, BAD[i]);
        assert_true(text_has(p->notes, "is no JSON-RPC message"));
    }
    p->notes[0] = '\0';
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":1}");
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":1}");
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}");
    assert_true(text_has(p->notes, "nobody waits for"));
    play_event(p, conn, "event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}\n\n");
    play_event(p, conn, "event: endpoint\ndata: /elsewhere\n\n"); /* not this transport's */
    assert_int_equal(p->answers + p->call_failures, 0);
    event(p, conn,
        "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"},"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}]");
    assert_int_equal(p->answers, 1);
    assert_int_equal(p->notifications, 1);
    play_free(p);
}

static void test_long_names(void **state)
{
    (void)state;
    char name[300], message[700];
    struct play *p = begin();
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", name);
    event(p, conn, message); /* no method has such a name: left out */
    assert_int_equal(p->notifications, 0);
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"%s\"}", name,
        name);
    event(p, conn, message);
    assert_int_equal(p->asks, 1);
    assert_string_equal(p->asked_method, "");
    lp_client_answer_error(p->client, p->asked, -32601, LP_SPAN("no"));
    settle(p);
    assert_true(play_take(p) != 0);
    assert_true(text_has(p->body, name)); /* its id goes back whole */
    play_free(p);
}

static void test_cancelling_what_is_not_there(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}");
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"roots/list\"}");
    event(p, conn,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "cancelled\",\"params\":{\"requestId\":9}}");
    assert_int_equal(p->asked_ends, 0);
    event(p, conn,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "cancelled\",\"params\":{\"requestId\":6}}");
    assert_int_equal(p->asked_ends, 1);
    event(p, conn,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
        "{\"progressToken\":\"other\"}}");
    event(p, conn, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}");
    assert_int_equal(p->progresses, 0);
    assert_int_equal(p->notifications, 4);
    lp_client_answer_error(p->client, 12345, 1, LP_SPAN("dead"));
    settle(p);
    play_expect_nothing(p);
    play_free(p);
}

/* A token of the owner's own, and an owner that does not look at progress. */
static void test_progress_of_an_own_token(void **state)
{
    (void)state;
    static const struct lp_call_ops OPS = {.answer = play_answer, .failed = play_call_failed};
    struct play *p = begin();
    lp_id call;
    p->s->target.timeout_ms = 1000;
    play_open_legacy(p);
    struct lp_call_args args = {.method = LP_SPAN("tools/call"),
        .params = LP_SPAN(" \t{ \"_meta\" : {\"progressToken\":\"mine\"}, \"name\":\"a\"}"),
        .wants_progress = true,
        .ops = &OPS,
        .ctx = p};
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
    settle(p);
    lp_id conn = play_expect(p, "\"params\": \t{ \"_meta\" : {\"progressToken\":\"mine\"}, ");
    play_begin_events(p, conn, "");
    for (int i = 0; i < 3; i++) {
        shell_pass(p->s, 900);
        event(p, conn,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
            "{\"progressToken\":\"mine\",\"progress\":1}}");
    }
    assert_int_equal(p->notifications, 3);
    assert_int_equal(p->call_failures, 0);
    shell_pass(p->s, 1000);
    assert_int_equal(p->call_failures, 1);
    play_free(p);
}

static void test_a_call_without_a_time_out(void **state)
{
    (void)state;
    struct play *p = begin();
    lp_id call;
    play_open_legacy(p);
    struct lp_call_args args = {
        .method = LP_SPAN("tools/call"), .timeout_ms = UINT32_MAX, .ops = &PLAY_CALL_OPS, .ctx = p};
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
    settle(p);
    lp_id conn = play_expect(p, "tools/call");
    shell_pass(p->s, 86400000);
    assert_int_equal(p->call_failures, 0);
    play_json(p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    assert_int_equal(p->answers, 1);
    play_free(p);
}

static void test_too_many(void **state)
{
    (void)state;
    struct play *p = begin();
    lp_id call;
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    for (int i = 0; i <= LP_CLIENT_ASKED_MAX; i++) {
        char message[128];
        snprintf(message, sizeof message,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}", i);
        event(p, conn, message);
    }
    assert_int_equal(p->asks, LP_CLIENT_ASKED_MAX);
    play_expect(p, "\"error\":{\"code\":-32603,\"message\":\"too many requests at once\"}");
    struct lp_call_args args = {.method = LP_SPAN("ping"), .ops = &PLAY_CALL_OPS, .ctx = p};
    int err = LP_OK;
    int count = 0;
    while (!err && count < LP_CLIENT_CALLS_MAX + 10) {
        err = lp_client_request(p->client, &args, &call);
        count += !err;
    }
    assert_int_equal(err, LP_ELIMIT);
    assert_true(count > 500);
    lp_client_close(p->client);
    assert_int_equal(p->call_failures, count + 1);
    play_free(p);
}

/* Half of an error answer is enough to fail on, and no more than 64 KiB of it is kept. */
static void test_a_long_refusal(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    shell_read(p->s, conn, "HTTP/1.1 500 Oops\r\nContent-Length: 90000\r\n\r\n");
    char piece[9001];
    memset(piece, 'x', sizeof piece - 1);
    piece[sizeof piece - 1] = '\0';
    for (int i = 0; i < 10; i++)
        shell_read(p->s, conn, piece);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(strlen(p->failure_body), 65536);
    play_free(p);
}

/* What is shown of a body ends between characters, and says what was left. */
static void test_a_brief_refusal(void **state)
{
    (void)state;
    char text[16 + 2 * LP_CLIENT_SHOWN_MAX] = "it said: ";
    size_t body = strlen(text);
    text[body] = 'x'; /* so that the bound falls within a character */
    for (size_t i = 0; i < LP_CLIENT_SHOWN_MAX; i += 2)
        memcpy(text + body + 1 + i, "\xC3\xA9", 2);
    struct lp_client_failure why = {
        .sentence = lp_span_str(text), .body = lp_span_str(text + body)};
    size_t left;
    struct lp_span brief = lp_client_brief(&why, &left);
    assert_int_equal(brief.len, body + LP_CLIENT_SHOWN_MAX - 1);
    assert_int_equal(left, 2);
    memset(text, 0x80, sizeof text); /* no character anywhere */
    why.sentence = why.body = lp_span(text, sizeof text);
    assert_int_equal(lp_client_brief(&why, &left).len, 0);
    why.sentence = LP_SPAN("it said much");
    assert_int_equal(lp_client_brief(&why, &left).len, why.sentence.len);
    assert_int_equal(left, 0);
}

static void close_when_opened(void *ctx, const struct lp_client_info *info)
{
    play_opened(ctx, info);
    lp_client_close(((struct play *)ctx)->client);
}

/* Then no stream is asked for any more. */
static void test_closed_when_it_opens(void **state)
{
    (void)state;
    struct lp_client_ops ops = PLAY_OPS;
    struct play *p = begin();
    ops.opened = close_when_opened;
    struct lp_client_args args = {.fetcher = p->s->fetcher, .ops = &ops, .ctx = p};
    lp_client_free(p->client);
    assert_int_equal(lp_client_new(&args, &p->client), LP_OK);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    lp_client_open(p->client);
    settle(p);
    play_json(p, play_expect(p, "\"initialize\""), "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}");
    play_accepted(p, play_expect(p, "notifications/initialized"));
    play_expect_nothing(p);
    assert_int_equal(p->opens, 1);
    assert_int_equal(p->closes, 1);
    play_free(p);
}

static void test_an_event_over_the_limit(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    size_t len = 1 << 20;
    char *piece = malloc(len + 16);
    size_t head = (size_t)snprintf(piece, 16, "%zx\r\n", len);
    memset(piece + head, 'x', len);
    memcpy(piece + head + len, "\r\n", 3);
    shell_read(p->s, conn, "6\r\ndata: \r\n");
    for (int i = 0; i < (LP_CLIENT_MESSAGE_MAX >> 20) + 2 && !p->call_failures; i++)
        shell_read(p->s, conn, piece);
    free(piece);
    assert_int_equal(p->call_failures, 1);
    assert_int_equal(p->call_failure.kind, LP_FAILURE_LIMIT);
    assert_int_equal(p->call_failure.error, LP_ETOO_LONG);
    play_free(p);
}

/* --- owners that act from within --- */

struct acting {
    struct play *p;
    enum { CLOSES, CANCELS, OPENS_ANEW } how;
    lp_id other;
    uint32_t ends;
};

static void act(struct acting *a)
{
    a->ends++;
    if (a->how == CLOSES)
        lp_client_close(a->p->client);
    else if (a->how == CANCELS)
        lp_call_cancel(a->p->client, a->other, LP_SPAN(""));
}

static void on_acting_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    (void)call;
    (void)result;
    (void)error;
    act(ctx);
}

static void on_acting_progress(void *ctx, lp_id call, struct lp_span message)
{
    (void)call;
    (void)message;
    act(ctx);
}

static void on_acting_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    (void)call;
    (void)why;
    ((struct acting *)ctx)->ends++;
}

static void test_closing_from_within(void **state)
{
    (void)state;
    static const struct lp_call_ops OPS = {on_acting_answer, on_acting_progress, on_acting_failed};
    for (int how = CLOSES; how <= CANCELS; how++)
        for (int with_progress = 0; with_progress < 2; with_progress++) {
            struct play *p = begin();
            play_open_legacy(p);
            struct acting a = {.p = p, .how = how};
            struct lp_call_args args = {
                .method = LP_SPAN("tools/call"), .wants_progress = true, .ops = &OPS, .ctx = &a};
            lp_id call;
            assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
            a.other = how == CANCELS && with_progress ? call : play_request(p, "tools/list", "");
            settle(p);
            lp_id conn = play_expect(p, "tools/call");
            play_begin_events(p, conn, "");
            /* Two messages in one piece: the second one finds that all is over. */
            play_event(p, conn,
                with_progress ? "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                                "\"params\":{\"progressToken\":2}}\n\n"
                                "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"
                              : "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"
                                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n");
            assert_int_equal(a.ends, how == CLOSES && with_progress ? 2 : 1);
            assert_int_equal(p->notifications, how == CANCELS && !with_progress);
            assert_int_equal(
                lp_client_state(p->client), how == CLOSES ? LP_CLIENT_CLOSING : LP_CLIENT_OPEN);
            play_free(p);
        }
}

/* A cancelled call of a lost session is not cancelled in the next one, where its number means
 * something else. */
static void test_a_call_of_an_earlier_session(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    lp_id call = play_request(p, "tools/call", "{\"name\":\"slow\"}");
    play_expect(p, "tools/call");
    play_request(p, "tools/list", "");
    p->reopens_when_lost = true;
    shell_answer(p->s, play_expect(p, "tools/list"), "404 Not Found", "");
    lp_id conn = play_expect(p, "\"initialize\"");
    play_json(
        p, conn, "\r\nMcp-Session-Id: S2", "{\"jsonrpc\":\"2.0\",\"id\":4," INITIALIZE_RESULT "}");
    play_accepted(p, play_expect(p, "initialized"));
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    lp_call_cancel(p->client, call, LP_SPAN("late"));
    settle(p);
    play_expect_nothing(p);
    play_free(p);
}

/* A resumed stream whose session is lost meanwhile does not come back in the new one. */
static void test_resuming_across_a_loss(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    play_event(p, conn, "id: e\nretry: 50\ndata:\n\n");
    play_request(p, "tools/list", "");
    shell_answer(p->s, play_expect(p, "tools/list"), "404 Not Found", "");
    assert_int_equal(p->losses, 1);
    shell_broken(p->s, conn);
    assert_int_equal(p->call_failures, 2);
    assert_true(text_has(p->sentence, "not known"));
    shell_pass(p->s, 1000);
    play_expect_nothing(p);
    play_free(p);
}

/* --- fields and params --- */

static void test_params_beside_others(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *wanted; /* what stands at the end */
    } CASES[] = {
        {"", "}}}"},
        {"{}", "}}}"},
        {"{ }", "} }}"},
        {"{\"_meta\":{}}", "}}}"},
        {"{\"_meta\":7}", "},\"_meta\":7}}"},
        {"{\"a\":1,\"_meta\":{\"b\":2},\"c\":3}", ",\"b\":2},\"c\":3}}"},
        {"{\"_meta\":{\"io.modelcontextprotocol/clientInfo\":{\"name\":\"own\"}}}",
            "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"own\"}}}}"},
    };
    struct play *p = begin();
    play_open_modern(p, "{}");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        play_request(p, "x/y", CASES[i].given);
        assert_true(play_take(p) != 0);
        struct lp_span body = lp_span_str(p->body);
        assert_true(lp_span_ends(body, lp_span_str(CASES[i].wanted)));
        struct lp_envelope env;
        int err = lp_envelope_scan(body, &env);
        bool is_double = i == 4; /* the owner's own mistake */
        assert_int_equal(err != LP_OK, is_double);
    }
    play_free(p);
}

/* An owner who has said everything of _meta is not added to, not even when inputs come later. */
static void test_params_that_say_everything(void **state)
{
    (void)state;
    static const char META[] = "{\"io.modelcontextprotocol/protocolVersion\":\"v\","
                               "\"io.modelcontextprotocol/clientCapabilities\":{},"
                               "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"x\"}}";
    char params[512], wanted[600];
    struct play *p = begin();
    play_open_modern(p, "{}");
    snprintf(params, sizeof params, "{\"name\":\"a\",\"_meta\":%s}", META);
    play_request(p, "tools/call", params);
    snprintf(wanted, sizeof wanted, "\"params\":%s}", params);
    lp_id conn = play_expect(p, wanted);
    play_json(p, conn, "",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
        "\"requestState\":\"s\"}}");
    snprintf(wanted, sizeof wanted,
        "\"params\":{\"requestState\":\"s\",\"name\":\"a\",\"_meta\":%s}}", META);
    play_expect(p, wanted);
    play_free(p);
}

static void test_names_of_tasks_and_tools(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        const char *params;
        const char *field; /* NULL: none */
    } CASES[] = {
        {"tasks/get", "{\"taskId\":\"t-1\"}", "Mcp-Name: t-1\r\n"},
        {"tasks/cancel", "{\"taskId\":7}", "Mcp-Name: 7\r\n"},
        {"tasks/update", "{}", NULL},
        {"tools/call", "{\"name\":null}", NULL},
        {"tools/call", "{\"name\":[1]}", NULL},
        {"tools/call", "{\"name\":{}}", NULL},
        {"tools/call", "{\"name\":\"\\u007f\"}", "Mcp-Name: =?base64?fw==?=\r\n"},
        {"tools/call", "{\"name\":\"=?base64?x\"}", "Mcp-Name: =?base64?x\r\n"},
        {"tools/call", "{\"name\":\"a\\tb\"}", "Mcp-Name: a\tb\r\n"},
    };
    struct play *p = begin();
    play_open_modern(p, "{}");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        play_request(p, CASES[i].method, CASES[i].params);
        assert_true(play_take(p) != 0);
        if (CASES[i].field)
            assert_true(text_has(p->head, CASES[i].field));
        else
            assert_false(text_has(p->head, "Mcp-Name"));
    }
    play_free(p);
}

/* A name that no field has room for, and a tool that mirrors more than fits. */
static void test_fields_over_the_limit(void **state)
{
    (void)state;
    struct play *p = begin();
    lp_id call;
    char *params = malloc(20000);
    play_open_modern(p, "{}");
    snprintf(params, 20000, "{\"name\":\"%9000s\"}", "n");
    struct lp_call_args args = {.method = LP_SPAN("tools/call"),
        .params = lp_span_str(params),
        .ops = &PLAY_CALL_OPS,
        .ctx = p};
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_ETOO_LONG);
    play_request(p, "tools/list", "");
    lp_id conn = play_expect(p, "tools/list");
    char *body = malloc(20000);
    size_t len = (size_t)snprintf(body, 20000,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{\"name\":\"many\",\"inputSchema\":"
        "{\"properties\":{\"p\":{}");
    size_t given = (size_t)snprintf(params, 20000, "{\"name\":\"many\",\"arguments\":{\"p\":1");
    for (int i = 0; i < 50; i++) {
        len += (size_t)snprintf(body + len, 20000 - len,
            ",\"p%d\":{\"type\":\"integer\",\"x-mcp-header\":\"P%d\"}", i, i);
        given += (size_t)snprintf(params + given, 20000 - given, ",\"p%d\":%d", i, i);
    }
    snprintf(body + len, 20000 - len, "}}}]}}");
    snprintf(params + given, 20000 - given, "}}");
    play_json(p, conn, "", body);
    args.params = lp_span_str(params);
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_ELIMIT);
    play_expect_nothing(p);
    free(params);
    free(body);
    play_free(p);
}

static void test_what_a_caller_may_set(void **state)
{
    (void)state;
    struct play *p = begin();
    struct lp_client_args args = {.fetcher = p->s->fetcher,
        .client_info = LP_SPAN("{\"name\":\"own\",\"version\":\"7\"}"),
        .version = LP_SPAN("2025-06-18"),
        .ops = &PLAY_OPS,
        .ctx = p};
    lp_client_free(p->client);
    assert_int_equal(lp_client_new(&args, &p->client), LP_OK);
    p->s->target.era = LP_ERA_WISH_LEGACY;
    lp_client_open(p->client);
    settle(p);
    play_expect(p, "\"protocolVersion\":\"2025-06-18\"");
    assert_true(text_has(p->body, "\"capabilities\":{},\"clientInfo\":{\"name\":\"own\""));
    lp_client_close(p->client);
    p->s->target.era = LP_ERA_WISH_AUTO;
    assert_int_equal(lp_client_set_log_level(p->client, LP_SPAN("\"loud\"")), LP_ERANGE);
    assert_int_equal(lp_client_set_log_level(p->client, LP_SPAN("\"debug\"")), LP_OK);
    lp_client_open(p->client);
    settle(p);
    play_expect(p, "\"io.modelcontextprotocol/logLevel\":\"debug\"");
    lp_client_free(NULL);
    play_free(p);
}

static void test_closing_twice(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_legacy(p);
    lp_client_close(p->client);
    lp_client_close(p->client);
    settle(p);
    shell_answer(p->s, play_expect(p, "DELETE /mcp"), "405 Method Not Allowed", "");
    assert_int_equal(p->closes, 1);
    /* An orphan's DELETE that is answered late means nothing. */
    p->s->target.era = LP_ERA_WISH_AUTO;
    lp_client_open(p->client);
    settle(p);
    shell_answer(
        p->s, play_expect(p, "server/discover"), "400 Bad Request\r\nMcp-Session-Id: O", "");
    lp_id conn = play_expect(p, "DELETE /mcp");
    shell_broken(p->s, conn);
    assert_int_equal(p->closes, 1);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPENING);
    play_free(p);
}

/* --- 2026-07-28 --- */

static void answer_inputs(struct play *p, const char *inputs)
{
    char body[2048];
    lp_id conn = play_expect(p, "tools/call");
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":{\"resultType\":\"input_required\",%s}}",
        strtoul(strstr(p->body, "\"id\":") + 5, NULL, 10), inputs);
    play_json(p, conn, "", body);
}

static void test_odd_inputs(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    answer_inputs(p,
        "\"inputRequests\":{\"a\":{},\"b\":{\"method\":7},\"c\":8,\"d\":{\"method\":"
        "\"x\"}}");
    assert_int_equal(p->asks, 4);
    for (int i = 0; i < 4; i++)
        lp_client_answer(p->client, p->asked_ids[i], LP_SPAN("{}"));
    settle(p);
    answer_inputs(p, "\"inputRequests\":7"); /* nothing to ask: it is only sent again */
    play_expect(p, "tools/call");
    assert_false(text_has(p->body, "inputResponses"));
    play_free(p);
}

static void test_too_many_inputs(void **state)
{
    (void)state;
    struct play *p = begin();
    char *body = malloc(40000);
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    size_t len = (size_t)snprintf(body, 40000,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"input_required\","
        "\"inputRequests\":{\"k\":{}");
    for (int i = 0; i < LP_CLIENT_ASKED_MAX; i++)
        len += (size_t)snprintf(body + len, 40000 - len, ",\"k%d\":{}", i);
    snprintf(body + len, 40000 - len, "}}}");
    char head[128];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    shell_read(p->s, conn, head);
    shell_read(p->s, conn, body);
    assert_int_equal(p->call_failures, 1);
    assert_true(text_has(p->sentence, "more inputs at once"));
    assert_int_equal(p->asks, 0);
    free(body);
    play_free(p);
}

static struct play *cancelling;
static lp_id to_cancel;

static void cancel_when_asked(void *ctx, lp_id asked, struct lp_span method, struct lp_span params)
{
    play_asked(ctx, asked, method, params);
    lp_call_cancel(cancelling->client, to_cancel, LP_SPAN(""));
}

static void test_a_call_is_cancelled_when_it_asks(void **state)
{
    (void)state;
    struct lp_client_ops ops = PLAY_OPS;
    struct play *p = cancelling = begin();
    ops.asked = cancel_when_asked;
    struct lp_client_args args = {.fetcher = p->s->fetcher, .ops = &ops, .ctx = p};
    lp_client_free(p->client);
    assert_int_equal(lp_client_new(&args, &p->client), LP_OK);
    play_open_modern(p, "{}");
    to_cancel = play_request(p, "tools/call", "{\"name\":\"a\"}");
    answer_inputs(p, "\"inputRequests\":{\"a\":{\"method\":\"x\"},\"b\":{\"method\":\"y\"}}");
    assert_int_equal(p->asks, 1);
    assert_int_equal(p->asked_ends, 2);
    lp_client_answer(p->client, p->asked, LP_SPAN("{}"));
    settle(p);
    play_expect_nothing(p);
    assert_int_equal(p->answers + p->call_failures, 0);
    play_free(p);
}

static void test_an_error_without_words(void **state)
{
    (void)state;
    struct play *p = begin();
    play_open_modern(p, "{}");
    play_request(p, "tools/call", "{\"name\":\"a\"}");
    answer_inputs(p, "\"inputRequests\":{\"a\":{\"method\":\"x\"}}");
    lp_client_answer_raw_error(p->client, p->asked, LP_SPAN("{\"code\":1}"));
    assert_int_equal(p->call_failures, 1);
    assert_true(text_has(p->sentence, "was not answered: "));
    lp_client_answer_raw_error(p->client, p->asked, LP_SPAN("{}")); /* dead */
    play_free(p);
}

static void test_mirrors_at_their_limits(void **state)
{
    (void)state;
    static const char PAGE_1[] =
        "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"properties\":{\"x\":{\"type\":\"string\"},"
        "\"y\":{\"type\":\"string\",\"x-mcp-header\":\"Y\"}}}}],\"nextCursor\":\"2\"}";
    static const char PAGE_2[] =
        "{\"tools\":[{\"name\":\"b\",\"inputSchema\":{\"properties\":{\"z\":{\"type\":\"boolean\","
        "\"x-mcp-header\":\"Z\"}}}}]}";
    struct play *p = begin();
    char body[1024];
    lp_id call;
    play_open_modern(p, "{}");
    play_request(p, "tools/list", "");
    lp_id conn = play_expect(p, "tools/list");
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":%s}", PAGE_1);
    play_json(p, conn, "", body);
    play_request(p, "tools/list", "{\"cursor\":\"2\"}");
    conn = play_expect(p, "tools/list");
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":%s}", PAGE_2);
    play_json(p, conn, "", body);
    play_request(p, "tools/call", "{\"name\":\"a\",\"arguments\":{\"x\":1,\"y\":\"v\",\"q\":2}}");
    play_expect(p, "Mcp-Param-Y: v\r\n");
    play_request(p, "tools/call", "{\"name\":\"b\",\"arguments\":{\"z\":false}}");
    play_expect(p, "Mcp-Param-Z: false\r\n");
    play_request(p, "tools/call", "{\"name\":\"b\"}");
    play_expect(p, "tools/call");
    assert_false(text_has(p->head, "Mcp-Param"));
    /* One value that is too long for any field. */
    char *params = malloc(12000);
    snprintf(params, 12000, "{\"name\":\"b\",\"arguments\":{\"z\":\"%9000s\"}}", "v");
    struct lp_call_args args = {.method = LP_SPAN("tools/call"),
        .params = lp_span_str(params),
        .ops = &PLAY_CALL_OPS,
        .ctx = p};
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_ETOO_LONG);
    free(params);
    /* A list that is no list forgets what was known. */
    play_request(p, "tools/list", "");
    conn = play_expect(p, "tools/list");
    play_json(p, conn, "", "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"tools\":7}}");
    assert_int_equal(p->answers, 3);
    play_request(p, "tools/call", "{\"name\":\"b\",\"arguments\":{\"z\":false}}");
    play_expect(p, "tools/call");
    assert_false(text_has(p->head, "Mcp-Param"));
    play_free(p);
}

/* Wire 7.3: a tool whose marks nobody can follow is left out of the list, all else stays as it is.
 */
static void test_tools_that_are_left_out(void **state)
{
    (void)state;
#define MARK(type, name) "{\"type\":\"" type "\",\"x-mcp-header\":\"" name "\"}"
    static const struct {
        const char *schema;
        bool is_kept;
    } CASES[] = {
        {"{\"properties\":{\"a\":" MARK("string", "A") ",\"b\":" MARK(
             "integer", "B") ",\"c\":" MARK("boolean", "C") "}}",
            true},
        {"{\"properties\":{\"o\":{\"properties\":{\"a\":" MARK("string", "A") "}}}}", true},
        {"{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}", true}, /* a mere name */
        {"{\"properties\":{\"a\":{\"default\":{\"x-mcp-header\":7},\"enum\":[{\"x-mcp-header\":1}]}"
         "}}",
            true},
        {"{\"properties\":{\"a\":" MARK("number", "A") "}}", false},
        {"{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}", false},
        {"{\"properties\":{\"a\":" MARK("string", "") "}}", false},
        {"{\"properties\":{\"a\":" MARK("string", "a b") "}}", false},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}}", false},
        {"{\"properties\":{\"a\":" MARK("string", "A") ",\"b\":" MARK("string", "a") "}}", false},
        {"{\"type\":\"string\",\"x-mcp-header\":\"Root\"}", false},
        {"{\"properties\":{\"a\":{\"items\":" MARK("string", "A") "}}}", false},
        {"{\"anyOf\":[{\"properties\":{\"a\":" MARK("string", "A") "}}]}", false},
        {"{\"$defs\":{\"a\":" MARK("string", "A") "}}", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct play *p = begin();
        char body[1024], wanted[1024];
        play_open_modern(p, "{}");
        play_request(p, "tools/list", "");
        lp_id conn = play_expect(p, "tools/list");
        snprintf(wanted, sizeof wanted,
            "{\"a\":1, \"tools\":[{\"name\":\"plain\"}%s%s%s,{\"name\":\"last\"}],\"ttlMs\":5 }",
            CASES[i].is_kept ? ",{\"name\":\"odd\",\"inputSchema\":" : "",
            CASES[i].is_kept ? CASES[i].schema : "", CASES[i].is_kept ? "}" : "");
        snprintf(body, sizeof body,
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":1, "
            "\"tools\":[{\"name\":\"plain\"},{\"name\":"
            "\"odd\",\"inputSchema\":%s},{\"name\":\"last\"}],\"ttlMs\":5 }}",
            CASES[i].schema);
        play_json(p, conn, "", body);
        assert_string_equal(p->result, wanted);
        assert_int_equal(text_has(p->notes, "the tool \"odd\" is left out"), !CASES[i].is_kept);
        play_free(p);
    }
}

/* The call that waits for the tools to be listed again is cancelled; another one in the meantime
 * gets its error at once. */
static void test_relisting(void **state)
{
    (void)state;
    static const char MISMATCH[] =
        "{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32020,\"message\":\"m\"}}";
    struct play *p = begin();
    char body[256];
    play_open_modern(p, "{}");
    lp_id first = play_request(p, "tools/call", "{\"name\":\"a\"}");
    lp_id conn = play_expect(p, "tools/call");
    play_request(p, "prompts/get", "{\"name\":\"a\"}");
    lp_id prompt = play_expect(p, "prompts/get");
    play_request(p, "tools/call", "{\"name\":\"b\"}");
    lp_id second = play_expect(p, "tools/call");
    snprintf(body, sizeof body, MISMATCH, 3);
    shell_answer(p->s, prompt, "400 Bad Request", body);
    assert_int_equal(p->answers, 1); /* not a tool's */
    snprintf(body, sizeof body, MISMATCH, 2);
    shell_answer(p->s, conn, "400 Bad Request", body);
    lp_id list = play_expect(p, "tools/list");
    snprintf(body, sizeof body, MISMATCH, 4);
    shell_answer(p->s, second, "400 Bad Request", body);
    assert_int_equal(p->answers, 2);
    lp_call_cancel(p->client, first, LP_SPAN(""));
    shell_broken(p->s, list); /* a kept connection: once more */
    shell_broken(p->s, play_expect(p, "tools/list"));
    play_expect_nothing(p);
    assert_int_equal(p->answers, 2);
    assert_int_equal(p->call_failures, 0);
    play_free(p);
}

/* --- streams --- */

static void test_event_ids_that_are_none(void **state)
{
    (void)state;
    struct play *p = begin();
    char *text = malloc(6000);
    play_open_legacy(p);
    lp_id conn = open_stream(p);
    play_event(p, conn, "id: first\nretry: 0\ndata:\n\n");
    snprintf(text, 6000, "id: %5000s\ndata:\n\n", "x"); /* no field has room for it */
    play_event(p, conn, text);
    play_end_events(p, conn);
    assert_int_equal(p->call_failures, 1);
    conn = open_stream(p);
    play_event(p, conn,
        "id: a\x01"
        "b\ndata:\n\n");
    play_end_events(p, conn);
    assert_int_equal(p->call_failures, 2);
    conn = open_stream(p);
    play_event(p, conn, "id: e\nretry: 0\ndata:\n\n");
    play_end_events(p, conn);
    shell_pass(p->s, 0);
    shell_broken(p->s, play_expect(p, "Last-Event-ID: e\r\n")); /* at once, then more slowly */
    shell_pass(p->s, 1499);
    play_expect_nothing(p);
    shell_pass(p->s, 1);
    play_expect(p, "Last-Event-ID: e\r\n");
    free(text);
    play_free(p);
}

static void test_a_stream_that_comes_back(void **state)
{
    (void)state;
    static const char *const BACK[] = {"429 Slow", "502 Bad Gateway", "409 Conflict"};
    for (size_t i = 0; i < 3; i++) {
        struct play *p = play_new(URL, false);
        shell_answer(p->s, play_open_legacy(p), BACK[i], "");
        shell_pass(p->s, 1000);
        lp_id conn = play_expect(p, "GET /mcp");
        shell_answer(p->s, conn, "200 OK\r\nContent-Type: text/html", "<html>");
        assert_true(text_has(p->notes, "there is no notification stream"));
        lp_client_close(p->client);
        shell_pass(p->s, 60000);
        play_free(p);
    }
}

static void test_listen_ends_with_the_session(void **state)
{
    (void)state;
    struct play *p = play_new(URL, false);
    play_open_modern(p, "{\"tools\":{\"listChanged\":true}}");
    lp_id conn = play_expect(p, "subscriptions/listen");
    play_begin_events(p, conn, "");
    lp_client_close(p->client);
    assert_int_equal(p->closes, 1);
    assert_true(p->s->conns[conn].is_closed);
    shell_pass(p->s, 60000);
    play_expect_nothing(p);
    play_free(p);
}

/* --- login --- */

static void test_metadata_that_is_none(void **state)
{
    (void)state;
    static const char *const BAD[] = {"{\"authorization_servers\":7}",
        "{\"authorization_servers\":[7,{},\"x y\",\"https://\",\"ftp://a/\",\"\\ud800\"]}", "{",
        ""};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct play *p = play_new("http://example.test:3000", false);
        p->s->target.era = LP_ERA_WISH_LEGACY;
        lp_client_open(p->client);
        settle(p);
        lp_id conn = play_expect(p, "initialize");
        shell_answer(p->s, conn,
            "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"http://[::1]:1/\"",
            "");
        for (int k = 0; k < 3; k++) {
            conn = play_take(p);
            if (conn)
                shell_answer(p->s, conn, "200 OK", BAD[i]);
        }
        assert_int_equal(p->failures, 1);
        assert_true(text_has(p->sentence, "does not say where to log in"));
        play_free(p);
    }
}

static void test_a_loopback_login(void **state)
{
    (void)state;
    static const char *const HOSTS[] = {"127.0.0.1", "[::1]", "localhost"};
    for (size_t i = 0; i < 3; i++) {
        struct play *p = begin();
        char body[256];
        p->s->target.era = LP_ERA_WISH_LEGACY;
        lp_client_open(p->client);
        settle(p);
        shell_answer(p->s, play_expect(p, "initialize"), "403 Forbidden", "");
        snprintf(body, sizeof body, "{\"authorization_servers\":[\"http://%s:9/\"]}", HOSTS[i]);
        shell_answer(p->s, play_expect(p, "oauth-protected-resource"), "200 OK", body);
        assert_int_equal(p->failures, 1);
        assert_true(text_has(p->sentence, "(HTTP 403). Log in at http://"));
        play_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_that_make_no_sense),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_cancelling_what_is_not_there),
        cmocka_unit_test(test_progress_of_an_own_token),
        cmocka_unit_test(test_a_call_without_a_time_out),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_a_long_refusal),
        cmocka_unit_test(test_a_brief_refusal),
        cmocka_unit_test(test_closed_when_it_opens),
        cmocka_unit_test(test_an_event_over_the_limit),
        cmocka_unit_test(test_closing_from_within),
        cmocka_unit_test(test_a_call_of_an_earlier_session),
        cmocka_unit_test(test_resuming_across_a_loss),
        cmocka_unit_test(test_params_beside_others),
        cmocka_unit_test(test_params_that_say_everything),
        cmocka_unit_test(test_names_of_tasks_and_tools),
        cmocka_unit_test(test_fields_over_the_limit),
        cmocka_unit_test(test_what_a_caller_may_set),
        cmocka_unit_test(test_closing_twice),
        cmocka_unit_test(test_odd_inputs),
        cmocka_unit_test(test_too_many_inputs),
        cmocka_unit_test(test_a_call_is_cancelled_when_it_asks),
        cmocka_unit_test(test_an_error_without_words),
        cmocka_unit_test(test_mirrors_at_their_limits),
        cmocka_unit_test(test_tools_that_are_left_out),
        cmocka_unit_test(test_relisting),
        cmocka_unit_test(test_event_ids_that_are_none),
        cmocka_unit_test(test_a_stream_that_comes_back),
        cmocka_unit_test(test_listen_ends_with_the_session),
        cmocka_unit_test(test_metadata_that_is_none),
        cmocka_unit_test(test_a_loopback_login),
    };
    return cmocka_run_group_tests_name("client edges", tests, NULL, NULL);
}
