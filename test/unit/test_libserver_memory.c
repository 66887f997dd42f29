/* liblimpet-server when memory runs out: in a story of exchanges and connections, posts and a stop,
 * each allocation fails once in its turn, of the rooms below too. Nothing crashes or leaks, each
 * exchange that began ends or is given up by its host, and no call is over twice. */
#include "fed_harness.h"
#include "scarce_memory.h"

/* --- the server ------------------------------------------------------------------------------- */

struct story {
    struct limpet_server *server;
    char session[SESSION_ROOM];
    int runs, overs;
    size_t peer_bytes;
    unsigned peer_closes;
};

static void run(void *context, struct limpet_call *call)
{
    struct story *story = context;
    story->runs++;
    limpet_call_progress(call, 1, 2);
    limpet_call_log(call, LIMPET_LEVEL_ERROR, NULL, limpet_str("so far"));
    if (limpet_call_state_get(call))
        limpet_call_tool_error(call, limpet_str("no state"));
}

static void wake(void *context, struct limpet_call *call, const struct limpet_wake *woken)
{
    (void)context;
    static char text[50000];
    memset(text, 'x', sizeof text);
    if (woken->kind == LIMPET_WAKE_STATE && !woken->revision &&
        !limpet_call_state_set(call, 0, limpet_str("one")))
        return;
    limpet_call_text(call, limpet_bytes(text, sizeof text));
}

static void over(void *context, struct limpet_call *call)
{
    struct story *story = context;
    (void)call;
    story->overs++;
}

static size_t on_write(void *context, void *peer, struct limpet_span bytes)
{
    (void)context;
    ((struct story *)peer)->peer_bytes += bytes.len;
    return bytes.len;
}

static void on_pause(void *context, void *peer, bool is_paused)
{
    (void)context;
    (void)peer;
    (void)is_paused;
}

static void on_close(void *context, void *peer, enum limpet_close how)
{
    (void)context;
    (void)how;
    ((struct story *)peer)->peer_closes++;
}

static int build(struct story *story)
{
    struct limpet_server_options options = {.name = "test", .version = "1", .grace_ms = 1};
    struct limpet_feeder feeder = {.write = on_write, .pause = on_pause, .close = on_close};
    struct limpet_tool tool = {
        .name = "it", .handler = {.run = run, .wake = wake, .over = over, .context = story}};
    int err = limpet_server_new(NULL, &options, &story->server);
    if (!err)
        err = limpet_server_add_tool(story->server, &tool);
    return err ? err : limpet_server_feed(story->server, &feeder);
}

/* --- the story -------------------------------------------------------------------------------- */

/* An exchange of a host that takes one piece at a time; false: it could not begin. */
static bool exchange(struct story *story, struct asked asked, struct heard *heard)
{
    struct limpet_field fields[FIELDS_MAX];
    struct limpet_request request = request_of(&asked, fields);
    struct limpet_answer answer = answer_to(heard);
    uint64_t id;
    heard->takes = asked.body ? 1 : SIZE_MAX;
    if (limpet_exchange_begin(story->server, &request, &answer, &id))
        return false;
    heard->exchange = id;
    for (int i = 0; !heard->ends && heard->heads && i < 100 && asked.body; i++) {
        heard->takes = 1;
        limpet_exchange_resume(story->server, id);
        limpet_server_turn(story->server);
    }
    return true;
}

static void nothing(void *context, struct limpet_server *server)
{
    (void)context;
    (void)server;
}

static void connection(struct story *story)
{
    struct limpet_peer facts = {.peer = story, .is_loopback = true};
    uint64_t id;
    if (limpet_server_connected(story->server, &facts, &id))
        return;
    limpet_server_received(story->server, id,
        limpet_str("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,"));
    limpet_server_received(story->server, id, limpet_str("\"method\":\"ping\"}"));
    limpet_server_ended(story->server, id);
}

static void tell(struct story *story, struct heard *stream)
{
    struct heard heard;
    if (!exchange(story, (struct asked){.method = "POST", .body = INITIALIZE_WITH("{}")}, &heard))
        return;
    snprintf(story->session, sizeof story->session, "%s", heard.session);
    if (!exchange(story, (struct asked){.method = "GET", .session = story->session}, stream))
        stream->exchange = 0;
    if (exchange(story,
            (struct asked){
                .method = "POST", .session = story->session, .body = CALL("1", "it", "{}")},
            &heard) &&
        !heard.ends)
        limpet_exchange_left(story->server, heard.exchange);
    connection(story);
    (void)!limpet_server_post(story->server, nothing, NULL);
    limpet_server_turn(story->server);
    (void)!limpet_server_stop(story->server);
    limpet_server_turn(story->server);
}

static void play(long calls)
{
    static struct heard stream;
    struct story story = {.server = NULL};
    memset(&stream, 0, sizeof stream);
    failed = 0;
    calls_left = calls;
    if (build(&story) == LIMPET_OK)
        tell(&story, &stream);
    calls_left = -1;
    limpet_server_free(story.server);
    assert_int_equal(story.runs, story.overs);
    assert_true(stream.ends <= 1);
    if (stream.exchange)
        assert_int_equal(stream.ends, 1);
    assert_true(story.peer_closes <= 1);
    if (!failed) {
        assert_int_equal(story.runs, 1);
        assert_true(story.peer_bytes > 0 && story.peer_closes == 1 && stream.is_whole);
    }
}

static void test_each_allocation_fails_once(void **state)
{
    (void)state;
    long calls = 0;
    do
        play(calls++);
    while (failed);
    assert_true(calls > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
