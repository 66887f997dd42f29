/* The stdio bridge when memory runs out: in a story of everything that host and server may do, each
 * allocation fails once in its turn, and then all from one on. Nothing crashes or leaks, each
 * request of the host is answered or its loss is told to the user, and the bridge ends once. Needs
 * the linker's --wrap for malloc, calloc and realloc. */
#include "bridge_harness.h"

enum { HARNESS_MIN = 1 << 20, STEPS_MAX = 200, ALLOCATIONS_MAX = 5000 };

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

struct story {
    struct hosted *h;
    bool is_modern;
    uint32_t calls, listens;
    uint32_t requests, lines, answers, lost;
};

static void serve_events(struct story *y, lp_id conn, const char *events)
{
    play_begin_events(y->h->p, conn, "");
    play_event(y->h->p, conn, events);
}

static void serve_call(struct story *y, lp_id conn)
{
    y->calls++;
    if (y->calls == 1) { /* two questions, and then the stream is cut */
        serve_events(y, conn,
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\",\"params\":{}}\n\n"
            "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"sampling/createMessage\"}\n\n"
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
        host_says(y->h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
        host_says(y->h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1}}");
        y->lines += 2;
        shell_broken(y->h->p->s, conn);
    } else if (y->calls == 2) {
        shell_answer(y->h->p->s, conn, "404 Not Found",
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,\"message\":\"Session not found\"},"
            "\"id\":null}");
    } else if (y->calls == 3) {
        shell_answer(y->h->p->s, conn, "500 Oops", "it broke");
    } else
        server_answers(y->h, conn, "", "\"error\":{\"code\":-32602,\"message\":\"no\"}");
}

static void serve_listen(struct story *y, lp_id conn)
{
    static const char ACKNOWLEDGED[] =
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
        "\"params\":{\"notifications\":{\"resourceSubscriptions\":[\"a:1\"]}}}\n\n";
    y->listens++;
    if (y->listens == 3) {
        server_answers(y->h, conn, "", "\"error\":{\"code\":-1,\"message\":\"no\"}");
        return;
    }
    serve_events(y, conn, ACKNOWLEDGED);
    if (y->listens == 1)
        shell_broken(y->h->p->s, conn);
}

static void serve(struct story *y, lp_id conn)
{
    struct play *p = y->h->p;
    if (text_has(p->head, "DELETE "))
        shell_answer(p->s, conn, "200 OK", "");
    else if (text_has(p->body, "server/discover"))
        server_answers(y->h, conn, "",
            "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
            "\"capabilities\":{\"tools\":{}},\"instructions\":\"do\"}");
    else if (text_has(p->body, "\"initialize\""))
        server_answers(y->h, conn, "\r\nMcp-Session-Id: S", INITIALIZE_RESULT);
    else if (text_has(p->body, "tools/call"))
        serve_call(y, conn);
    else if (text_has(p->body, "subscriptions/listen"))
        serve_listen(y, conn);
    else if (text_has(p->body, "\"id\":") && text_has(p->body, "\"method\":") &&
        !text_has(p->body, "notifications/cancelled"))
        server_answers(y->h, conn, "", "\"result\":{\"resultType\":\"complete\"}");
    else
        play_accepted(p, conn);
}

static void serve_all(struct story *y)
{
    for (int i = 0; i < STEPS_MAX; i++) {
        lp_id conn = play_take(y->h->p);
        if (!conn)
            break;
        serve(y, conn);
    }
    while (host_takes(y->h))
        y->answers += !text_has(y->h->line, "\"method\":");
}

static void say(struct story *y, const char *line)
{
    y->lines++;
    y->requests += text_has(line, "\"id\":");
    host_says(y->h, line);
    serve_all(y);
}

static void count_lost(struct story *y)
{
    const char *at = y->h->said;
    while ((at = strstr(at, " for the host was lost"))) {
        y->lost++;
        at++;
    }
}

static void tell(bool is_modern, long fails_after, bool stays)
{
    static const char *const LINES[] = {
        HOST_INITIALIZE,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\",\"params\":"
        "{\"level\":\"debug\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/subscribe\",\"params\":"
        "{\"uri\":\"a:1\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"server/discover\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"resources/unsubscribe\",\"params\":"
        "{\"uri\":\"a:1\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"resources/subscribe\",\"params\":"
        "{\"uri\":\"a:1\"}}",
        "not json",
    };
    struct story y = {.h = hosted_new(), .is_modern = is_modern};
    struct play *p = y.h->p;
    p->s->target.era = is_modern ? LP_ERA_WISH_MODERN : LP_ERA_WISH_LEGACY;
    stays_scarce = stays;
    failed = 0;
    left = fails_after;
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        say(&y, LINES[i]);
        shell_pass(p->s, 3000);
        serve_all(&y);
    }
    left = -1;
    shell_pass(p->s, 60000);
    serve_all(&y);
    host_ends(y.h);
    serve_all(&y);
    shell_pass(p->s, 60000);
    serve_all(&y);
    count_lost(&y);
    if (y.h->overs != 1 || (!y.h->has_failed && y.answers + y.lost < y.requests))
        print_message("fails after %ld, stays %d: %u answers, %u lost, %u requests\n%s\n%s",
            fails_after, stays, y.answers, y.lost, y.requests, y.h->said,
            shell_written(p->s, HOST));
    assert_int_equal(y.h->overs, 1);
    assert_true(y.h->has_failed || y.answers + y.lost >= y.requests);
    assert_true(y.answers <= y.lines);
    hosted_free(y.h);
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    for (int is_modern = 0; is_modern < 2; is_modern++)
        for (int stays = 0; stays < 2; stays++) {
            long n = 0;
            do
                tell(is_modern, n++, stays);
            while (failed && n < ALLOCATIONS_MAX);
            assert_int_equal(failed, 0);
            assert_true(n > 20);
        }
}

static void test_there_is_no_bridge(void **state)
{
    (void)state;
    struct shell *s = shell_new("http://example.test/mcp");
    struct lp_bridge_args args = {
        .shell = &s->shell, .fetcher = s->fetcher, .say = hosted_say, .over = hosted_over};
    struct lp_bridge *bridge = NULL;
    stays_scarce = false;
    left = 0;
    assert_int_equal(lp_bridge_new(&args, &bridge), LP_ENOMEM);
    assert_null(bridge);
    shell_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_there_is_no_bridge),
    };
    return cmocka_run_group_tests_name("bridge memory", tests, NULL, NULL);
}
