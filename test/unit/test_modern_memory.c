/* Requests of 2026-07-28 when memory runs out: in a story of discovery, lists, questions over two
 * rounds and a stream of subscriptions each allocation fails once in its turn. Nothing crashes,
 * nothing leaks, every request ends, and afterwards the server works as before. */
#include "../interop/conf_offer.h"
#include "modern_harness.h"
#include "scarce_memory.h"

struct story {
    struct world *world;
    long left;
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
    assert_int_equal(lp_buf_reserve(&w->peers[slot].got, 1 << 18, &room), 0);
    w->peers[slot].is_open = true;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted.is_loopback = true;
    tell_scarce(s, event);
    return conn;
}

static lp_id say(struct story *s, const char *method, const char *name, const char *params)
{
    static char text[1 << 15], body[1 << 14];
    lp_id conn = arrive(s);
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s" MODERN_META(
            "{\"elicitation\":{},\"sampling\":{},\"roots\":{},\"extensions\":{\"io."
            "modelcontextprotocol/tasks\":{}}}",
            ",\"" PREFIX "logLevel\":\"debug\",\"progressToken\":1") "}}",
        method, params);
    int n = snprintf(text, sizeof text,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" ACCEPT
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\nMcp-Name: %s\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        method, name, strlen(body), body);
    if (peer_of(s->world, conn)->is_open)
        tell_scarce(s,
            (struct lp_event){
                .kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span(text, (size_t)n)});
    return conn;
}

/* Asks again with the state of the last answer, if it has one. */
static lp_id say_again(struct story *s, lp_id before, const char *tool, const char *responses)
{
    static char params[1 << 13];
    struct lp_span text = lp_buf_span(&peer_of(s->world, before)->got);
    size_t at = lp_span_search(text, LP_SPAN("\"requestState\":\""));
    struct lp_span rest;
    if (at == text.len)
        return before;
    struct lp_span state = lp_span_split(lp_span_from(text, at + 16), '"', &rest);
    snprintf(params, sizeof params,
        "\"name\":\"%s\",\"requestState\":\"%.*s\",\"inputResponses\":%s,", tool, (int)state.len,
        state.ptr, responses);
    return say(s, "tools/call", tool, params);
}

/* The same questions in a session, one after the other. */
static void ask_session(struct story *s)
{
    static char text[4096], body[1024];
    char session[40] = "";
    const char *say = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                      "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{},"
                      "\"sampling\":{},\"roots\":{}}}}";
    lp_id stream = 0;
    snprintf(body, sizeof body, "%s", say);
    for (int step = 0; step < 5; step++) {
        lp_id conn = arrive(s);
        int n = snprintf(text, sizeof text,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" ACCEPT
            "%s%s%sContent-Length: %zu\r\n\r\n%s",
            step ? "Mcp-Session-Id: " : "", session, step ? "\r\n" : "", strlen(body), body);
        if (!peer_of(s->world, conn)->is_open)
            return;
        tell_scarce(s,
            (struct lp_event){
                .kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span(text, (size_t)n)});
        stream = step == 1 ? conn : stream;
        struct lp_span got = lp_buf_span(&peer_of(s->world, step ? stream : conn)->got);
        size_t at = lp_span_search(got, step ? LP_SPAN("\"id\":\"") : LP_SPAN("mcp-session-id: "));
        if (at == got.len)
            return;
        if (step == 0) {
            snprintf(session, sizeof session, "%.36s", got.ptr + at + 16);
            snprintf(body, sizeof body, "%s",
                CALL("1", "test_input_required_result_multiple_inputs", "{}"));
            continue;
        }
        snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",%.40s,\"result\":{}}", got.ptr + at);
        lp_buf_clear(&peer_of(s->world, stream)->got);
    }
}

/* What may be done with a task, and it is answered in between; somebody listens. */
static void use_task(struct story *s, lp_id conn)
{
    static char params[512];
    struct lp_span text = lp_buf_span(&peer_of(s->world, conn)->got);
    size_t at = lp_span_search(text, LP_SPAN("\"taskId\":\""));
    struct lp_span rest;
    char id[64];
    if (at == text.len)
        return;
    struct lp_span token = lp_span_split(lp_span_from(text, at + 10), '"', &rest);
    snprintf(id, sizeof id, "%.*s", (int)token.len, token.ptr);
    snprintf(params, sizeof params, "\"notifications\":{\"taskIds\":[\"%s\"]},", id);
    say(s, "subscriptions/listen", "-", params);
    snprintf(params, sizeof params, "\"taskId\":\"%s\",", id);
    say(s, "tasks/get", id, params);
    snprintf(params, sizeof params,
        "\"taskId\":\"%s\",\"inputResponses\":{\"user_name\":{},\"confirm\":{}},", id);
    say(s, "tasks/update", id, params);
    say(s, "tasks/get", id, params);
}

static void tell_story(struct story *s)
{
    say(s, "server/discover", "-", "");
    say(s, "tools/list", "-", "");
    say(s, "no/such", "-", "");
    say(s, "tools/call", "no", "\"name\":\"other\",");
    say(s, "tools/call", "test_tool_with_progress", "\"name\":\"test_tool_with_progress\",");
    lp_id conn = say(s, "tools/call", "roots", "\"name\":\"roots\",");
    say_again(s, conn, "roots", "{\"q1\":{\"roots\":[]}}");
    conn = say(s, "tools/call", "test_elicitation", "\"name\":\"test_elicitation\",");
    conn = say_again(s, conn, "test_elicitation", "{\"q1\":{\"action\":\"accept\"}}");
    ask_session(s);
    conn = say(s, "tools/call", "multi_input", "\"name\":\"multi_input\",");
    use_task(s, conn);
    say(s, "subscriptions/listen", "-",
        "\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":["
        "\"test://static-text\"]},");
    calls_left = s->left;
    lp_server_resource_updated(s->world->server, LP_SPAN("test://static-text"));
    lp_server_list_changed(s->world->server, LP_LIST_TOOLS);
    s->left = calls_left;
    calls_left = -1;
    tell_scarce(s, (struct lp_event){.kind = LP_EV_STOP});
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
        start_server(&w, &offer, (struct lp_server_args){0});
        struct client c = {.world = &w};
        struct story s = {.world = &w, .left = n};
        failed = 0;
        HAS(call_modern(&c, "whoami", "{}"), "blue");
        tell_story(&s);
        was_needed = failed > 0;
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
