/* The sample server when memory runs out: in a story of everything it does each allocation fails
 * once in its turn. Nothing crashes, nothing leaks, every request ends, and afterwards the server
 * works as before. */
#include "sample_harness.h"
#include "scarce_memory.h"

/* The shell's own memory is not the server's: it never runs out. */
static void tell_scarce(struct world *w, long *left, struct lp_event event)
{
    calls_left = *left;
    tell(w, event);
    *left = calls_left;
    calls_left = -1;
}

struct story {
    struct world *world;
    long left;
    char session[64];
};

static lp_id arrive(struct story *s)
{
    struct world *w = s->world;
    uint32_t slot = w->next++;
    lp_id conn = (lp_id)1 << 32 | (slot + 1);
    lp_buf_init(&w->peers[slot].got, 64 << 20);
    char *room;
    assert_int_equal(lp_buf_reserve(&w->peers[slot].got, 1 << 20, &room), 0);
    w->peers[slot].is_open = true;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted.is_loopback = true;
    tell_scarce(w, &s->left, event);
    return conn;
}

/* In two pieces, so that the parser has to keep the first one. */
static void say(struct story *s, lp_id conn, const char *method, const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
        "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        method, s->session, strlen(body), body);
    const struct lp_span pieces[2] = {lp_span(text, 30), lp_span(text + 30, (size_t)n - 30)};
    for (int i = 0; i < 2 && peer_of(s->world, conn)->is_open; i++)
        tell_scarce(s->world, &s->left,
            (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = pieces[i]});
}

static void take_session(struct story *s, lp_id conn)
{
    struct lp_span text = lp_buf_span(&peer_of(s->world, conn)->got);
    size_t at = lp_span_search(text, LP_SPAN("mcp-session-id: "));
    if (at < text.len)
        memcpy(s->session, text.ptr + at + 16, 36);
}

static void wait_scarce(struct story *s, uint64_t us)
{
    struct world *w = s->world;
    uint64_t end_us = w->now_us + us;
    while (w->timer_at_us <= end_us) {
        w->now_us = w->timer_at_us > w->now_us ? w->timer_at_us : w->now_us;
        w->timer_at_us = UINT64_MAX;
        tell_scarce(w, &s->left, (struct lp_event){.kind = LP_EV_TIMER});
    }
    w->now_us = end_us;
}

static void tell_story(struct story *s)
{
    lp_id conn = arrive(s);
    say(s, conn, "POST", INITIALIZE("2025-03-26"));
    take_session(s, conn);
    lp_id stream = arrive(s);
    say(s, stream, "GET", "");
    say(s, arrive(s), "POST", CALL("1", "notify", "{\"count\":3}"));
    say(s, arrive(s), "POST", CALL("1", "counter", "{}"));
    say(s, arrive(s), "POST", "[" CALL("1", "whoami", "{}") "," CALL("2", "nothing", "{}") "]");
    say(s, arrive(s), "POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    say(s, arrive(s), "POST", SLOW("7", "{\"ms\":20,\"steps\":2}"));
    lp_id left = arrive(s);
    say(s, left, "POST", SLOW("8", "{\"ms\":20000}"));
    say(s, arrive(s), "POST", "{");
    say(s, arrive(s), "PUT", "");
    wait_scarce(s, 16000000);
    say(s, arrive(s), "DELETE", "");
}

static void expect_all_ended(struct world *w)
{
    tell(w, (struct lp_event){.kind = LP_EV_STOP});
    pass(w, 100000000);
    assert_true(w->stopped);
    for (uint32_t i = 0; i < w->next; i++)
        assert_false(w->peers[i].is_open);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    bool was_needed = true;
    long n = 0;
    for (; was_needed; n++) {
        struct world w;
        start(&w, 2);
        struct story s = {.world = &w, .left = n};
        failed = 0;
        tell_story(&s);
        was_needed = failed > 0;
        struct client c = new_client(&w);
        HAS(post(&c, CALL("1", "counter", "{}")), "{\"count\":1,");
        expect_all_ended(&w);
        finish(&w);
    }
    assert_in_range(n, 20, 1000);
}

static void a_server_needs_memory_to_begin(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct lp_server_args args = {.shell = &w.shell, .path = LP_SPAN("/")};
    args.offer = &sample_book()->offer;
    for (long n = 0; n < 2; n++) {
        struct lp_server *server = NULL;
        calls_left = n;
        int err = lp_server_new(&args, &server);
        calls_left = -1;
        assert_int_equal(err, LP_ENOMEM);
        assert_null(server);
    }
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_server_needs_memory_to_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
