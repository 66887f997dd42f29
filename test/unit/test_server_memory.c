/* The MCP server when memory runs out: in a story of everything the conformance offer does each
 * allocation fails once in its turn. Nothing crashes, nothing leaks, every request ends, and
 * afterwards the server works as before. */
#include "../interop/conf_offer.h"
#include "scarce_memory.h"
#include "serve_harness.h"

struct story {
    struct world *world;
    long left;
    char session[64];
    const char *accept;
};

/* The shell's own memory is not the server's: it never runs out. */
static void tell_scarce(struct story *s, struct lp_event event)
{
    calls_left = s->left;
    tell(s->world, event);
    s->left = calls_left;
    calls_left = -1;
}

static lp_id arrive(struct story *s)
{
    struct world *w = s->world;
    uint32_t slot = w->next++;
    lp_id conn = (lp_id)1 << 32 | (slot + 1);
    char *room;
    lp_buf_init(&w->peers[slot].got, 64 << 20);
    assert_int_equal(lp_buf_reserve(&w->peers[slot].got, 1 << 20, &room), 0);
    w->peers[slot].is_open = true;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted.is_loopback = true;
    tell_scarce(s, event);
    return conn;
}

static lp_id say_to(struct story *s, const char *line, const char *body)
{
    char text[4096];
    lp_id conn = arrive(s);
    int n = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Accept: %s\r\nMcp-Session-Id: %s\r\nLast-Event-ID: 1-0\r\nContent-Length: %zu\r\n\r\n%s",
        line, s->accept, s->session, strlen(body), body);
    if (peer_of(s->world, conn)->is_open)
        tell_scarce(s,
            (struct lp_event){
                .kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span(text, (size_t)n)});
    return conn;
}

static lp_id say(struct story *s, const char *method, const char *body)
{
    char line[32];
    snprintf(line, sizeof line, "%s /mcp", method);
    return say_to(s, line, body);
}

static void wait_scarce(struct story *s, uint64_t us)
{
    struct world *w = s->world;
    uint64_t end_us = w->now_us + us;
    while (w->timer_at_us <= end_us) {
        w->now_us = w->timer_at_us > w->now_us ? w->timer_at_us : w->now_us;
        w->timer_at_us = UINT64_MAX;
        tell_scarce(s, (struct lp_event){.kind = LP_EV_TIMER});
    }
    w->now_us = end_us;
}

static void take_session(struct story *s, lp_id conn)
{
    struct lp_span text = lp_buf_span(&peer_of(s->world, conn)->got);
    size_t at = lp_span_search(text, LP_SPAN("mcp-session-id: "));
    if (at < text.len)
        memcpy(s->session, text.ptr + at + 16, 36);
}

static void answer_question(struct story *s, lp_id conn)
{
    char body[256];
    struct lp_span text = lp_buf_span(&peer_of(s->world, conn)->got);
    size_t at = lp_span_search(text, LP_SPAN("\"id\":\""));
    if (at == text.len)
        return;
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",%.*s,\"result\":{\"action\":\"accept\"}}", 40,
        text.ptr + at);
    say(s, "POST", body);
}

#define REQUEST(method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"

/* The transport of 2024-11-05, until its stream ends. */
static void use_old_sse(struct story *s)
{
    char line[128];
    lp_id stream = say_to(s, "GET /sse", "");
    struct lp_span text = lp_buf_span(&peer_of(s->world, stream)->got);
    size_t at = lp_span_search(text, LP_SPAN("/sse?sessionId="));
    if (at == text.len)
        return;
    snprintf(line, sizeof line, "POST %.*s", 15 + 36, text.ptr + at);
    say_to(s, line,
        REQUEST("initialize",
            "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"elicitation\":{}}}"));
    say_to(s, line, CALL("1", "test_tool_with_logging", "{}"));
    say_to(s, line, CALL("2", "test_elicitation", "{}"));
    if (!peer_of(s->world, stream)->is_open)
        return;
    peer_of(s->world, stream)->is_open = false;
    tell_scarce(s, (struct lp_event){.kind = LP_EV_BROKEN, .conn = stream});
}

static void tell_story(struct story *s)
{
    use_old_sse(s);
    take_session(s,
        say(s, "POST",
            REQUEST("initialize",
                "{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{\"elicitation\":{}}}")));
    say(s, "POST", "[" CALL("1", "whoami", "{}") "," CALL("2", "test_tool_with_logging", "{}") "]");
    say(s, "GET", "");
    say(s, "POST", REQUEST("resources/subscribe", "{\"uri\":\"test://static-text\"}"));
    answer_question(s, say(s, "POST", CALL("3", "test_elicitation", "{}")));
    say(s, "POST", CALL("4", "test_elicitation", "{}"));
    say(s, "POST", CALL("5", "test_reconnection", "{}"));
    say(s, "POST", REQUEST("resources/read", "{\"uri\":\"test://template/1/data\"}"));
    say(s, "POST", REQUEST("tools/list", "{}"));
    say(s, "POST", REQUEST("resources/list", "{}"));
    say(s, "POST", REQUEST("prompts/list", "{}"));
    calls_left = s->left;
    lp_server_resource_updated(s->world->server, LP_SPAN("test://static-text"));
    lp_server_list_changed(s->world->server, LP_LIST_TOOLS);
    s->left = calls_left;
    calls_left = -1;
    s->accept = "application/json";
    say(s, "POST", CALL("6", "test_tool_with_progress", "{}"));
    wait_scarce(s, 16000000);
    say(s, "DELETE", "");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static char name[] = "blue";
    struct lp_offer offer = conf_offer(name);
    bool was_needed = true;
    long n = 0;
    for (; was_needed; n++) {
        struct world w;
        start_server(&w, &offer, (struct lp_server_args){.sse_path = LP_SPAN("/sse")});
        struct story s = {.world = &w, .left = n, .accept = "application/json, text/event-stream"};
        failed = 0;
        tell_story(&s);
        was_needed = failed > 0;
        struct client c = new_client(&w);
        HAS(post(&c, CALL("1", "whoami", "{}")), "blue");
        tell(&w, (struct lp_event){.kind = LP_EV_STOP});
        pass(&w, 100000000);
        assert_true(w.stopped);
        for (uint32_t i = 0; i < w.next; i++)
            assert_false(w.peers[i].is_open);
        finish(&w);
    }
    assert_in_range(n, 50, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
