/* One question and its answer taken apart (call/ask.h): media types, JSON-RPC forms, streams that
 * are read to the answer or held, what fails, and what is given up. */
#include "call/ask.h"
#include "call_harness.h"

#define URL "http://example.test:3000/mcp"

struct asking {
    struct shell *s;
    struct lp_asker asker;
    struct lp_ask *ask;
    uint32_t done, heads, events;
    struct lp_reply reply; /* of the last one; its spans are copied below */
    char message[512];
    char result[512];
    char session_id[512];
    char login[512];
    char failure[512];
};

static void copy(char room[512], struct lp_span text)
{
    size_t len = text.len < 511 ? text.len : 511;
    if (len)
        memcpy(room, text.ptr, len);
    room[len] = '\0';
}

static void on_done(void *ctx, const struct lp_reply *reply)
{
    struct asking *a = ctx;
    a->done++;
    a->reply = *reply;
    copy(a->message, reply->message);
    copy(a->result, reply->result);
    copy(a->session_id, reply->session_id);
    copy(a->login, reply->login);
    copy(a->failure, reply->failure);
}

static void on_event(void *ctx, const struct lp_sse_event *event)
{
    (void)event;
    ((struct asking *)ctx)->events++;
}

static void on_head(void *ctx, const struct lp_head *head)
{
    (void)head;
    ((struct asking *)ctx)->heads++;
}

static struct asking *asking_new(void)
{
    struct asking *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->s = shell_new(URL);
    lp_asker_init(&a->asker, a->s->fetcher);
    return a;
}

static void asking_free(struct asking *a)
{
    lp_asker_fini(&a->asker);
    shell_free(a->s);
    free(a);
}

/* Asks; the connection that it is asked on. */
static lp_id ask(struct asking *a, struct lp_ask_args args)
{
    uint32_t before = a->s->count;
    args.done = on_done;
    args.ctx = a;
    a->ask = lp_ask_start(&a->asker, &args);
    assert_non_null(a->ask);
    lp_fetcher_settle(a->s->fetcher);
    if (a->s->count > before)
        shell_connected(a->s, a->s->count);
    return a->s->count;
}

static lp_id post(struct asking *a, const char *id)
{
    return ask(a,
        (struct lp_ask_args){.method = LP_METHOD_POST,
            .body = LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"),
            .rpc_id = lp_span_str(id)});
}

static void test_what_is_sent(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = ask(a,
        (struct lp_ask_args){.method = LP_METHOD_POST,
            .body = LP_SPAN("{}"),
            .session = LP_SPAN("S"),
            .version = LP_SPAN("2025-06-18"),
            .rpc = LP_SPAN("ping"),
            .cookie = LP_SPAN("a=1"),
            .origin = LP_SPAN("http://o.test")});
    static const char *const PARTS[] = {"POST /mcp HTTP/1.1\r\n",
        "Accept: application/json, text/event-stream\r\n", "Content-Type: application/json\r\n",
        "Mcp-Session-Id: S\r\n", "MCP-Protocol-Version: 2025-06-18\r\n", "Mcp-Method: ping\r\n",
        "Cookie: a=1\r\n", "Origin: http://o.test\r\n", "\r\n\r\n{}"};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        assert_true(text_has(shell_written(a->s, conn), PARTS[i]));
    conn = ask(a, (struct lp_ask_args){.method = LP_METHOD_GET});
    assert_true(text_has(shell_written(a->s, conn), "Accept: text/event-stream\r\n"));
    assert_false(text_has(shell_written(a->s, conn), "Content-Type"));
    conn = ask(
        a, (struct lp_ask_args){.method = LP_METHOD_OPTIONS, .origin = LP_SPAN("http://o.test")});
    assert_true(text_has(shell_written(a->s, conn), "Access-Control-Request-Method: POST\r\n"));
    assert_int_equal(a->asker.count, 3);
    assert_int_equal(a->asker.sent, 3);
    assert_int_equal(a->done, 0);
    asking_free(a); /* what waits is given up without a word */
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        const char *body;
        enum lp_media media;
        bool is_result;
        int32_t code;
        const char *message;
    } CASES[] = {
        {"application/json", "{\"id\":1,\"result\":{\"a\":1}}", LP_MEDIA_JSON, true, 0, ""},
        {"Application/JSON; charset=utf-8", "{\"id\":1,\"result\":{\"a\":1}}", LP_MEDIA_JSON, true,
            0, ""},
        {"application/json", "{\"id\":1,\"error\":{\"code\":-32001,\"message\":\"x\"}}",
            LP_MEDIA_JSON, false, -32001, "\"x\""},
        {"application/json", "{\"id\":null,\"error\":{\"code\":404,\"message\":\"x\"}}",
            LP_MEDIA_JSON, false, 404, "\"x\""},
        {"application/json", "{\"id\":\"server-error\",\"error\":{\"code\":1}}", LP_MEDIA_JSON,
            false, 0, "{\"id\":\"server-error\",\"error\":{\"code\":1}}"},
        {"application/json", "{\"id\":[],\"error\":{\"code\":7}}", LP_MEDIA_JSON, false, 7, ""},
        {"application/json", "{\"error\":{\"code\":99999999999}}", LP_MEDIA_JSON, false, 0, ""},
        {"application/json", "{\"error\":{\"code\":\"x\"}}", LP_MEDIA_JSON, false, 0, ""},
        {"application/json", "{\"error\":{}}", LP_MEDIA_JSON, false, 0, ""},
        {"application/json", "{\"id\":2,\"result\":{}}", LP_MEDIA_JSON, false, 0,
            "{\"id\":2,\"result\":{}}"},
        {"application/json", "{\"id\":1,\"method\":\"ping\"}", LP_MEDIA_JSON, false, 0,
            "{\"id\":1,\"method\":\"ping\"}"},
        {"application/json", "[1]", LP_MEDIA_JSON, false, 0, "[1]"},
        {"application/json", " no ", LP_MEDIA_JSON, false, 0, " no "},
        {"text/html", "<html>", LP_MEDIA_HTML, false, 0, "<html>"},
        {"application/xhtml+xml", "<html>", LP_MEDIA_HTML, false, 0, "<html>"},
        {"text/plain", "hello", LP_MEDIA_OTHER, false, 0, "hello"},
        {"", "", LP_MEDIA_NONE, false, 0, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char head[256];
        struct asking *a = asking_new();
        lp_id conn = post(a, "1");
        snprintf(head, sizeof head, "200 OK%s%s", CASES[i].type[0] ? "\r\nContent-Type: " : "",
            CASES[i].type);
        shell_answer(a->s, conn, head, CASES[i].body);
        assert_int_equal(a->done, 1);
        assert_true(a->reply.answer.is_asked);
        assert_int_equal(a->reply.answer.status, 200);
        assert_int_equal(a->reply.answer.media, CASES[i].media);
        assert_int_equal(a->reply.answer.is_result, CASES[i].is_result);
        assert_int_equal(a->reply.answer.code, CASES[i].code);
        assert_string_equal(a->message, CASES[i].message);
        assert_string_equal(a->result, CASES[i].is_result ? "{\"a\":1}" : "");
        assert_int_equal(a->reply.answer.print != 0, CASES[i].message[0] != '\0');
        assert_int_equal(a->asker.count, 0);
        asking_free(a);
    }
}

/* Without an id of ours any error is an answer. */
static void test_an_error_for_a_notification(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = post(a, "");
    shell_answer(a->s, conn, "400 Bad Request\r\nContent-Type: application/json\r\nAllow: POST",
        "{\"id\":9,\"error\":{\"code\":-1}}");
    assert_int_equal(a->reply.answer.code, -1);
    assert_true(a->reply.answer.has_allow);
    asking_free(a);
}

static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        bool allows, exposes;
    } CASES[] = {
        {"X: 1", false, false},
        {"Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *", true, true},
        {"Access-Control-Allow-Origin: http://a\r\n"
         "Access-Control-Expose-Headers: X, Mcp-Session-Id",
            true, true},
        {"Access-Control-Expose-Headers: X, Y", false, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char head[512];
        struct asking *a = asking_new();
        lp_id conn = post(a, "1");
        snprintf(head, sizeof head,
            "401 No\r\nMcp-Session-Id: the-id\r\nWWW-Authenticate: Bearer x\r\n%s",
            CASES[i].fields);
        shell_answer(a->s, conn, head, "");
        assert_int_equal(a->reply.allows_origin, CASES[i].allows);
        assert_int_equal(a->reply.exposes_id, CASES[i].exposes);
        assert_string_equal(a->session_id, "the-id");
        assert_string_equal(a->login, "Bearer x");
        asking_free(a);
    }
}

/* What is longer than is kept of a head counts as not there. */
static void test_fields_that_are_too_long(void **state)
{
    (void)state;
    static char head[24000];
    struct asking *a = asking_new();
    lp_id conn = post(a, "1");
    char id[9001];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: %s\r\nWWW-Authenticate: %s\r\nContent-Length: "
        "0\r\n\r\n",
        id, id);
    shell_read(a->s, conn, head);
    assert_int_equal(a->reply.session_id.len, 9000);
    assert_int_equal(a->reply.login.len, 0);
    asking_free(a);
}

static void begin_stream(struct asking *a, lp_id conn, const char *fields)
{
    char head[256];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n",
        fields);
    shell_read(a->s, conn, head);
}

/* A stream is read up to the answer and then given up; on a kept connection it is read on. */
static void test_an_answer_in_a_stream(void **state)
{
    (void)state;
    for (uint32_t lane = 0; lane < 2; lane++) {
        struct asking *a = asking_new();
        lp_id conn = ask(a,
            (struct lp_ask_args){.method = LP_METHOD_POST,
                .body = LP_SPAN("{}"),
                .rpc_id = LP_SPAN("1"),
                .lane = lane,
                .head = on_head,
                .event = on_event});
        begin_stream(a, conn, "Content-Length: 104");
        shell_read(a->s, conn, ": hi\n\nid: 1\n\ndata: {\"id\":5,\"result\":{}}\n\n");
        assert_int_equal(a->done, 0);
        shell_pass(a->s, 20);
        shell_read(a->s, conn, "data: {\"id\":1,\"result\":{\"b\":2}}\n\n");
        if (lane) {
            assert_int_equal(a->done, 0);
            shell_read(a->s, conn, "data: [1]\n\ndata: {\"id\":1,\n\n");
            shell_read(a->s, conn, "\n\n\n");
        }
        assert_int_equal(a->done, 1);
        assert_true(a->reply.answer.is_result);
        assert_int_equal(a->heads, 1);
        assert_true(a->events >= 2);
        assert_int_equal(a->reply.event_count, a->events);
        assert_true(a->reply.has_length);
        assert_false(a->reply.was_cut);
        assert_int_equal(a->reply.quiet_us, 20000);
        asking_free(a);
    }
}

static void test_a_line_of_a_stream_that_is_too_long(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = post(a, "1");
    size_t len = LP_ASK_BODY_MAX + 100;
    char *big = malloc(len + 1);
    assert_non_null(big);
    memset(big, 'x', len);
    memcpy(big, "data: ", 6);
    big[len] = '\0';
    begin_stream(a, conn, "Connection: close");
    shell_read(a->s, conn, big);
    shell_read(a->s, conn, "\n\n");
    shell_eof(a->s, conn);
    assert_int_equal(a->done, 1);
    assert_false(a->reply.answer.is_result);
    free(big);
    asking_free(a);
}

/* A body that is too long is no message and no text. */
static void test_a_body_that_is_too_long(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = post(a, "1");
    size_t len = LP_ASK_BODY_MAX + 1;
    char *big = malloc(len + 1);
    assert_non_null(big);
    memset(big, 'x', len);
    big[len] = '\0';
    shell_read(a->s, conn, "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n");
    shell_read(a->s, conn, big);
    assert_int_equal(a->done, 1);
    assert_string_equal(a->message, "");
    assert_int_equal(a->reply.answer.print, 0);
    free(big);
    asking_free(a);
}

static void test_a_stream_that_is_held(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    struct lp_ask_args get = {.method = LP_METHOD_GET, .hold_ms = 5000};
    lp_id conn = ask(a, get);
    begin_stream(a, conn, "X: 1");
    shell_pass(a->s, 4999);
    assert_int_equal(a->done, 0);
    shell_pass(a->s, 1);
    assert_int_equal(a->done, 1);
    assert_false(a->reply.was_cut);
    assert_int_equal(a->reply.quiet_us, 5000000);
    /* One that is held for ever ends when it is cut. */
    get.hold_ms = UINT32_MAX;
    conn = ask(a, get);
    begin_stream(a, conn, "X: 1");
    shell_pass(a->s, 3600000);
    assert_int_equal(a->done, 1);
    shell_broken(a->s, conn);
    assert_int_equal(a->done, 2);
    assert_true(a->reply.was_cut);
    assert_int_equal(a->reply.answer.status, 200); /* it was a stream all the same */
    /* One that ends by itself. */
    conn = ask(a, get);
    begin_stream(a, conn, "Content-Length: 0");
    assert_int_equal(a->done, 3);
    assert_true(a->reply.was_cut);
    /* Held, but no stream. */
    conn = ask(a, get);
    shell_answer(a->s, conn, "405 No", "");
    assert_int_equal(a->done, 4);
    assert_false(a->reply.was_cut);
    asking_free(a);
}

static void test_failures(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = post(a, "1"); /* nothing comes */
    shell_pass(a->s, LP_ASK_MS);
    assert_int_equal(a->done, 1);
    assert_int_equal(a->reply.answer.error, LP_ETIMEOUT);
    assert_int_equal(a->reply.answer.status, 0);
    assert_true(strlen(a->failure) > 10);
    conn = post(a, "1"); /* half an answer */
    shell_read(a->s, conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    shell_broken(a->s, conn);
    assert_int_equal(a->done, 2);
    assert_true(a->reply.answer.error != LP_OK);
    conn = post(a, "1"); /* half a stream, without the answer */
    begin_stream(a, conn, "X: 1");
    shell_broken(a->s, conn);
    assert_int_equal(a->done, 3);
    a->s->connect_error = LP_EREFUSED;
    lp_fetcher_settle(a->s->fetcher);
    struct lp_ask_args args = {.method = LP_METHOD_POST, .done = on_done, .ctx = a};
    assert_non_null(lp_ask_start(&a->asker, &args));
    lp_fetcher_settle(a->s->fetcher);
    assert_int_equal(a->done, 4);
    assert_int_equal(a->reply.answer.error, LP_EREFUSED);
    args.url = LP_SPAN("ftp://no/"); /* cannot be asked at all */
    assert_null(lp_ask_start(&a->asker, &args));
    assert_int_equal(a->done, 4);
    assert_int_equal(a->asker.count, 0);
    asking_free(a);
}

static void test_giving_up(void **state)
{
    (void)state;
    struct asking *a = asking_new();
    lp_id conn = post(a, "1");
    lp_ask_cancel(a->ask);
    shell_pass(a->s, 1);
    assert_true(a->s->conns[conn].is_closed);
    assert_int_equal(a->done, 0);
    assert_int_equal(a->asker.count, 0);
    asking_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_sent),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_an_error_for_a_notification),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_fields_that_are_too_long),
        cmocka_unit_test(test_an_answer_in_a_stream),
        cmocka_unit_test(test_a_line_of_a_stream_that_is_too_long),
        cmocka_unit_test(test_a_body_that_is_too_long),
        cmocka_unit_test(test_a_stream_that_is_held),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_giving_up),
    };
    return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
