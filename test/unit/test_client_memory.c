/* The client when memory runs out: in a story of everything it does, each allocation fails once in
 * its turn, and then all from one on. Nothing crashes, nothing leaks, every opening, call and
 * closing ends exactly once. Needs the linker's --wrap for malloc, calloc and realloc. */
#include "client_harness.h"

enum { HARNESS_MIN = 1 << 20, STEPS_MAX = 200 };

static long left = -1;    /* allocations that still succeed; -1: all */
static bool stays_scarce; /* all fail from there on */
static long failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

/* What is large is the harness's own. */
static bool may_succeed(size_t n)
{
    if (left < 0 || n >= HARNESS_MIN)
        return true;
    if (left > 0) {
        left--;
        return true;
    }
    failed++;
    if (!stays_scarce)
        left = -1;
    return false;
}

void *__wrap_malloc(size_t n)
{
    return may_succeed(n) ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_succeed(n * size) ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return may_succeed(n) ? __real_realloc(ptr, n) : NULL;
}

/* --- a server that answers whatever comes --- */

enum kind { LEGACY, MODERN, OLD_SSE, LOGIN, KINDS };

struct story {
    struct play *p;
    enum kind kind;
    lp_id stream; /* old SSE: where answers go */
    uint32_t calls;
    uint32_t made;
    bool has_lost;
};

#define SCHEMA                                                                                     \
    "{\"name\":\"bad\",\"inputSchema\":{\"properties\":{\"a\":{\"x-mcp-header\":7}}}},"            \
    "{\"name\":\"order\",\"inputSchema\":{\"properties\":{\"shop\":{\"type\":\"string\","          \
    "\"x-mcp-header\":\"Shop\"},\"deep\":{\"properties\":{\"n\":{\"type\":\"integer\","            \
    "\"x-mcp-header\":\"N\"}}}}}}"

static uint64_t id_of(const struct play *p)
{
    const char *at = strstr(p->body, "\"id\":");
    return at ? strtoull(at + 5, NULL, 10) : 0;
}

static void answer(struct story *y, lp_id conn, const char *member, const char *fields)
{
    char body[2048];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s}",
        (unsigned long long)id_of(y->p), member);
    if (y->kind == OLD_SSE) {
        char event[2200];
        play_accepted(y->p, conn);
        snprintf(event, sizeof event, "data: %s\n\n", body);
        play_event(y->p, y->stream, event);
        return;
    }
    play_json(y->p, conn, fields, body);
}

static void answer_call(struct story *y, lp_id conn)
{
    struct play *p = y->p;
    y->calls++;
    if (y->kind == MODERN && y->calls == 1) {
        char body[256];
        snprintf(body, sizeof body,
            "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":-32020,\"message\":\"m\"}}",
            (unsigned long long)id_of(p));
        shell_answer(p->s, conn, "400 Bad Request", body);
    } else if (y->kind == MODERN && y->calls == 2) {
        answer(y, conn,
            "\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\","
            "\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\",\"params\":{}},"
            "\"b\":{\"method\":\"roots/list\"}}}",
            "");
    } else if (y->kind == LEGACY && y->calls == 1) {
        play_begin_events(p, conn, "");
        play_event(p, conn, "id: e-1\nretry: 10\ndata:\n\n");
        play_event(p, conn,
            "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"elicitation/create\","
            "\"params\":{}}\n\n");
        play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n");
        play_event(p, conn,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
            "{\"progressToken\":3,\"progress\":1}}\n\n");
        play_end_events(p, conn);
    } else if (y->kind == LEGACY && y->calls == 2) {
        y->has_lost = true;
        shell_answer(p->s, conn, "404 Not Found", "{\"error\":\"Session not found\"}");
    } else {
        answer(y, conn, "\"result\":{\"content\":[]}", "");
    }
}

static void answer_get(struct story *y, lp_id conn)
{
    struct play *p = y->p;
    if (text_has(p->head, "oauth-protected-resource")) {
        shell_answer(p->s, conn, "200 OK", "{\"authorization_servers\":[\"https://login.test/\"]}");
    } else if (y->kind == OLD_SSE) {
        y->stream = conn;
        play_begin_events(p, conn, "");
        play_event(p, conn, "event: endpoint\ndata: /m?sessionId=1\n\n");
    } else if (text_has(p->head, "Last-Event-ID: e-1")) {
        play_begin_events(p, conn, "");
        play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n");
        play_event(p, conn, "data: {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n\n");
        play_end_events(p, conn);
    } else {
        play_begin_events(p, conn, "");
        play_event(
            p, conn, "id: n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
        play_end_events(p, conn);
    }
}

static void serve(struct story *y, lp_id conn)
{
    struct play *p = y->p;
    if (text_has(p->head, "GET "))
        answer_get(y, conn);
    else if (text_has(p->head, "DELETE "))
        shell_answer(p->s, conn, "200 OK", "");
    else if (text_has(p->body, "server/discover") && y->kind == MODERN)
        answer(y, conn,
            "\"result\":{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":"
            "{\"listChanged\":true}}}",
            "");
    else if (text_has(p->body, "server/discover"))
        shell_answer(p->s, conn, "400 Bad Request\r\nMcp-Session-Id: orphan", "no");
    else if (text_has(p->body, "\"initialize\"") && y->kind == LOGIN)
        shell_answer(p->s, conn, "401 Unauthorized\r\nWWW-Authenticate: Bearer", "who");
    else if (text_has(p->body, "\"initialize\"") && text_has(p->head, "POST /mcp") &&
        y->kind == OLD_SSE)
        shell_answer(p->s, conn, "405 Method Not Allowed", "");
    else if (text_has(p->body, "\"initialize\""))
        answer(y, conn, INITIALIZE_RESULT, "\r\nMcp-Session-Id: S1\r\nSet-Cookie: lb=1");
    else if (text_has(p->body, "tools/list"))
        answer(y, conn, "\"result\":{\"tools\":[" SCHEMA "]}", "");
    else if (text_has(p->body, "tools/call"))
        answer_call(y, conn);
    else if (text_has(p->body, "subscriptions/listen"))
        answer(y, conn, "\"result\":{\"resultType\":\"complete\"}", "");
    else
        play_accepted(p, conn);
}

static void serve_all(struct story *y)
{
    lp_fetcher_settle(y->p->s->fetcher);
    for (int i = 0; i < STEPS_MAX; i++) {
        lp_id conn = play_take(y->p);
        if (!conn)
            return;
        serve(y, conn);
    }
}

static void request(struct story *y, const char *method, const char *params)
{
    lp_id call;
    struct lp_call_args args = {.method = lp_span_str(method),
        .params = lp_span_str(params),
        .wants_progress = true,
        .ops = &PLAY_CALL_OPS,
        .ctx = y->p};
    if (lp_client_request(y->p->client, &args, &call) == LP_OK)
        y->made++;
    serve_all(y);
}

/* The whole story, by half of them with the stream first; what it needs before is made without
 * scarcity. */
static void tell(enum kind kind, long fails_after, bool stays)
{
    struct story y = {
        .p = play_new_waiting("http://example.test:3000/mcp", true, stays), .kind = kind};
    struct play *p = y.p;
    p->answers_at_once = "{}";
    assert_int_equal(lp_target_set_bearer(&p->s->target, LP_SPAN("tok")), LP_OK);
    stays_scarce = stays;
    failed = 0;
    left = fails_after;
    lp_client_open(p->client);
    serve_all(&y);
    shell_pass(p->s, 100);
    serve_all(&y);
    for (int i = 0; i < 3; i++) {
        request(&y, "tools/call",
            "{\"name\":\"order\",\"arguments\":{\"shop\":\"a\",\"deep\":{\"n\":1}}}");
        shell_pass(p->s, 2000);
        serve_all(&y);
    }
    request(&y, "tools/list", "");
    int ignored = lp_client_notify(p->client, LP_SPAN("notifications/x"), LP_SPAN("{\"a\":1}"));
    (void)ignored;
    serve_all(&y);
    shell_pass(p->s, 300000);
    serve_all(&y);
    left = -1;
    shell_pass(p->s, 300000);
    serve_all(&y);
    assert_int_equal(p->opens + p->failures, 1);
    assert_int_equal(p->answers + p->call_failures, y.made);
    lp_client_close(p->client);
    serve_all(&y);
    shell_pass(p->s, 10000);
    assert_int_equal(p->closes, 1);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_IDLE);
    play_free(p);
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int stays = 0; stays < 2; stays++) {
            long n = 0;
            do
                tell((enum kind)kind, n++, stays);
            while (failed && n < 5000);
            assert_int_equal(failed, 0);
            assert_true(n > 20);
        }
}

static void test_a_client_that_cannot_be_made(void **state)
{
    (void)state;
    struct play *p = play_new("http://example.test:3000/mcp", false);
    struct lp_client_args args = {
        .fetcher = p->s->fetcher, .log_level = LP_SPAN("\"info\""), .ops = &PLAY_OPS, .ctx = p};
    int err = LP_ENOMEM;
    long n = 0;
    stays_scarce = false;
    for (; err; n++) {
        struct lp_client *client = NULL;
        left = n;
        err = lp_client_new(&args, &client);
        left = -1;
        assert_true(err == LP_OK || err == LP_ENOMEM);
        lp_client_free(client);
    }
    assert_true(n > 2);
    play_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_a_client_that_cannot_be_made),
    };
    return cmocka_run_group_tests_name("client memory", tests, NULL, NULL);
}
