/* Names of tasks through the engine, as real HTTP bytes: sealed in an answer, opened in a request,
 * in JSON and in events, however they are split; what is no name of ours; what is too long; and
 * each allocation failing once. */
#include "engine_harness.h"
#include "scarce_memory.h"

#define META(capabilities)                                                                         \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":" capabilities "}"
#define TAKES META("{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}")
#define CALL(meta)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"," meta "}" \
    "}"
#define RESULT(members) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{" members "}}"
#define BEGUN RESULT("\"resultType\":\"task\",\"taskId\":\"u \\\"7\",\"status\":\"working\"")
#define OWN "u-7"
#define BEGUN_OWN RESULT("\"resultType\":\"task\",\"taskId\":\"" OWN "\",\"status\":\"working\"")

enum { LONG = 70000 };

static char name[LP_TICKET_TEXT_MAX]; /* the task's, as the client has it */

static void call(struct world *w, const char *body)
{
    request(w, "POST /mcp",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\n", body);
}

static void ask(struct world *w, const char *method, const char *id, const char *head_id)
{
    char fields[4096], body[4096];
    snprintf(fields, sizeof fields,
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\nMcp-Name: %s\r\n", method, head_id);
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"%s\",\"params\":{\"taskId\":\"%s\"," TAKES
        "}}",
        method, id);
    request(w, "POST /mcp", fields, body);
}

/* The name in what the client got. */
static void take_name(const struct world *w)
{
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    struct lp_span from = lp_span_from(all, lp_span_search(all, LP_SPAN("lp1_")));
    size_t len = lp_span_find(from, '"');
    assert_true(len < from.len && len < sizeof name);
    memcpy(name, from.ptr, len);
    name[len] = '\0';
}

/* The client's answer without its head and chunk sizes. */
static const char *body_of(struct world *w)
{
    static char room[WRITTEN_MAX];
    size_t len = 0;
    w->written[CLIENT][w->written_len[CLIENT]] = '\0';
    char *at = strstr(w->written[CLIENT], "\r\n\r\n");
    assert_non_null(at);
    for (at += 4; *at;) {
        size_t n = strtoul(at, &at, 16);
        memcpy(room + len, at + 2, n);
        len += n;
        at += 2 + n + 2;
    }
    room[len] = '\0';
    return room;
}

#define BODY_HAS(w, text) assert_non_null(strstr(body_of(w), text))

static void open_connection(struct world *w)
{
    accept_client(w, false, "192.0.2.7:1");
    call(w, CALL(META("{}")));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "Content-Type: application/json\r\n", BEGUN_OWN);
}

/* What the replica says, with its length in the head and its body in pieces of `piece` bytes. */
static void answer_in_pieces(struct world *w, const char *type, const char *body, size_t piece)
{
    char head[256];
    snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", type, strlen(body));
    read_text(w, REPLICA, head);
    struct lp_span rest = lp_span_str(body);
    while (rest.len) {
        struct lp_span now = lp_span(rest.ptr, rest.len < piece ? rest.len : piece);
        read_span(w, REPLICA, now);
        rest = lp_span_from(rest, now.len);
    }
}

static void begin(struct world *w)
{
    call(w, CALL(TAKES));
    answer_in_pieces(w, "application/json", BEGUN_OWN, 100000);
    take_name(w);
}

static void a_name_is_sealed_and_opened(void **state)
{
    struct world *w = *state;
    open_connection(w);
    assert_true(has(w, CLIENT, "\"taskId\":\"" OWN "\"")); /* its client takes no tasks */
    for (size_t piece = 1; piece < 40; piece++) {
        call(w, CALL(TAKES));
        answer_in_pieces(w, "application/json; charset=utf-8", BEGUN_OWN, piece);
        take_name(w);
        assert_false(has(w, CLIENT, OWN));
        assert_true(has(w, CLIENT, "\",\"status\":\"working\"}}"));
        ask(w, "tasks/get", name, name);
        assert_true(
            has(w, REPLICA, "Mcp-Name: " OWN "\r\n") || has(w, REPLICA, "mcp-name: " OWN "\r\n"));
        assert_true(has(w, REPLICA, "\"params\":{\"taskId\":\"" OWN "\",\"_meta\""));
        assert_false(has(w, REPLICA, "lp1_"));
        assert_false(has(w, REPLICA, "ession-"));
        char before[sizeof name];
        strcpy(before, name);
        answer_in_pieces(w, "application/json",
            RESULT("\"taskId\":\"" OWN "\",\"result\":{\"taskId\":\"inner\"}"), piece);
        take_name(w);
        assert_string_equal(name, before);
        assert_true(has(w, CLIENT, "\"result\":{\"taskId\":\"inner\"}}}"));
        ask(w, "tasks/cancel", name, name);
        answer_in_pieces(w, "application/json", RESULT("\"resultType\":\"complete\""), piece);
        assert_true(has(w, CLIENT, "complete"));
    }
}

/* Nothing else of a stream is touched. */
static void names_in_events(void **state)
{
    struct world *w = *state;
    static const char EVENTS[] =
        ": comment\n\nid: 4\ndata: {\"method\":\"notifications/message\",\"taskId\":\"" OWN
        "\"}\n\n"
        "event: message\nid: 5\ndata: " BEGUN_OWN "\n\n"
        "data: \"taskId\" is no JSON\n\n";
    open_connection(w);
    for (size_t piece = 1; piece < 60; piece++) {
        call(w, CALL(TAKES));
        answer_in_pieces(w, "text/event-stream", EVENTS, piece);
        take_name(w);
        BODY_HAS(w, ": comment\n");
        BODY_HAS(
            w, "id: 4\ndata: {\"method\":\"notifications/message\",\"taskId\":\"" OWN "\"}\n\n");
        BODY_HAS(w, "event: message\nid: 5\ndata: {\"jsonrpc\"");
        BODY_HAS(w, "data: \"taskId\" is no JSON\n\n");
        ask(w, "tasks/get", name, name);
        assert_true(has(w, REPLICA, "\"taskId\":\"" OWN "\""));
        answer_in_pieces(
            w, "text/event-stream", "data: " RESULT("\"taskId\":\"" OWN "\"") "\n\n", piece);
        BODY_HAS(w, name);
        assert_null(strstr(body_of(w), "\"" OWN "\""));
    }
}

static void what_is_no_name_of_ours(void **state)
{
    struct world *w = *state;
    open_connection(w);
    /* From before, or of a server that tells it some other way: as it is, to any. */
    ask(w, "tasks/get", "plain", "plain");
    assert_true(has(w, REPLICA, "\"taskId\":\"plain\""));
    answer_with(w, "200 OK", "Content-Type: application/json\r\n", RESULT("\"taskId\":\"plain\""));
    assert_true(has(w, CLIENT, "\"taskId\":\"plain\""));
    begin(w);
    static const char *const METHODS[] = {"tasks/get", "tasks/update", "tasks/cancel"};
    name[30] = name[30] == 'A' ? 'B' : 'A';
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        ask(w, METHODS[i], name, name);
        assert_int_equal(w->written_len[REPLICA], 0);
        assert_true(has(w, CLIENT, "HTTP/1.1 200"));
        assert_true(has(
            w, CLIENT, "\"id\":\"x\",\"error\":{\"code\":-32602,\"message\":\"Unknown task\"}"));
        assert_false(has(w, CLIENT, "lp1_"));
    }
    ask(w, "tasks/get", "lp1_\\u0001", "=?base64?bHAxXwE=?=");
    assert_true(has(w, CLIENT, "Unknown task"));
    static char endless[LP_TICKET_TEXT_MAX + 8];
    memset(endless, 'A', sizeof endless - 1);
    memcpy(endless, "lp1_", 4);
    ask(w, "tasks/cancel", endless, endless);
    assert_true(has(w, REPLICA, endless)); /* no ticket is that long */
    answer_with(w, "200 OK", "", "{}");
    ask(w, "tasks/get", "lp1_x", "lp1_y");
    assert_true(has(w, CLIENT, "-32020"));
}

/* An error of the replica is its own: nothing of a session is lost by it. */
static void errors_pass(void **state)
{
    struct world *w = *state;
    open_connection(w);
    begin(w);
    ask(w, "tasks/get", name, name);
    answer_with(w, "404 Not Found", "Content-Type: application/json\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32601,\"message\":\"none\"}}");
    assert_true(has(w, CLIENT, "-32601"));
    ask(w, "tasks/get", name, name);
    answer_with(w, "200 OK", "Content-Type: application/json\r\n", "no JSON, \"taskId\":\"1\"");
    assert_true(has(w, CLIENT, "no JSON"));
    call(w, CALL(TAKES));
    answer_with(w, "200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", BEGUN);
    assert_true(has(w, CLIENT, "u \\\"7"));
}

static void ids_that_cannot_be_sealed(void **state)
{
    struct world *w = *state;
    char body[2048], id[600];
    open_connection(w);
    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = '\0';
    snprintf(body, sizeof body, RESULT("\"resultType\":\"task\",\"taskId\":\"%s\""), id);
    call(w, CALL(TAKES));
    answer_with(w, "200 OK", "Content-Type: application/json\r\n", body);
    assert_true(has(w, CLIENT, "HTTP/1.1 502"));
    assert_true(has(w, CLIENT, "over 512 bytes"));
    static const char *const BAD[] = {
        BEGUN, RESULT("\"taskId\":\"=?base64?eA==?=\""), RESULT("\"taskId\":\"\"")};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        call(w, CALL(TAKES));
        answer_with(w, "200 OK", "Content-Type: application/json\r\n", BAD[i]);
        assert_true(has(w, CLIENT, "HTTP/1.1 502"));
    }
    call(w, CALL(TAKES));
    answer_with(w, "200 OK", "Content-Type: application/json\r\n", RESULT("\"taskId\":7"));
    assert_true(has(w, CLIENT, "\"taskId\":7"));
    call(w, CALL(TAKES));
    answer_in_pieces(w, "text/event-stream", "data: " BEGUN "\n\n", 1000);
    assert_int_equal(w->closes[CLIENT], 1);
}

/* Then it is no beginning of a task, and is not held. */
static void what_is_long_passes(void **state)
{
    struct world *w = *state;
    static char body[3 * LONG];
    open_connection(w);
    char *at = body +
        sprintf(body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"taskId\":\"own\",\"x\":\"");
    memset(at, 'x', LONG);
    strcpy(at + LONG, "\"}}");
    for (int i = 0; i < 2; i++) {
        call(w, CALL(TAKES));
        answer_in_pieces(w, "application/json", body, i ? 1000 : sizeof body);
        assert_true(has(w, CLIENT, body));
    }
    static char events[sizeof body + 1024];
    snprintf(events, sizeof events, "data: %s\n\ndata: " BEGUN_OWN "\n\n", body);
    for (int i = 0; i < 2; i++) {
        call(w, CALL(TAKES));
        answer_in_pieces(w, "text/event-stream", events, i ? 1000 : sizeof events);
        BODY_HAS(w, events);
    }
    /* Many short lines make a long event too. */
    at = events;
    for (int i = 0; i < LONG / 10; i++)
        at += sprintf(at, ": comment\n");
    strcpy(at, "data: " BEGUN_OWN "\n\n");
    call(w, CALL(TAKES));
    answer_in_pieces(w, "text/event-stream", events, 1000);
    BODY_HAS(w, events);
}

/* A task is made and asked for; false: an allocation failed on the way. */
static bool story(long n)
{
    struct world *w = new_world(1);
    open_connection(w);
    begin(w);
    char kept[sizeof name];
    strcpy(kept, name);
    failed = 0;
    calls_left = n;
    call(w, CALL(TAKES));
    if (w->written_len[REPLICA])
        answer_in_pieces(w, n % 2 ? "application/json" : "text/event-stream",
            n % 2 ? BEGUN_OWN : "data: " BEGUN_OWN "\n\n", 20);
    if (!w->closes[CLIENT] && !w->closes[REPLICA]) {
        ask(w, "tasks/get", kept, kept);
        if (w->written_len[REPLICA])
            answer_in_pieces(w, n % 2 ? "application/json" : "text/event-stream",
                n % 2 ? RESULT("\"taskId\":\"" OWN "\"")
                      : "data: " RESULT("\"taskId\":\"" OWN "\"") "\n\n",
                20);
    }
    calls_left = -1;
    assert_false(has(w, CLIENT, "\"" OWN "\""));
    bool is_whole = !failed;
    lp_engine_free(w->engine);
    free(w);
    return is_whole;
}

static void each_allocation_fails(void **state)
{
    (void)state;
    int whole = 0;
    for (long n = 0; whole < 2 && n < 400; n++)
        whole = story(n) ? whole + 1 : 0;
    assert_int_equal(whole, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_sealed_and_opened),
        TEST(names_in_events),
        TEST(what_is_no_name_of_ours),
        TEST(errors_pass),
        TEST(ids_that_cannot_be_sealed),
        TEST(what_is_long_passes),
        cmocka_unit_test(each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
