/* Laws of exchanges over random requests, by limpet-server.h alone: whatever stands in method,
 * target, fields and body, and however the body is cut, there is one answer at most, and of one
 * request: a head before anything else, one end, and the length that was told; what cannot stand in
 * HTTP is refused before the server sees it; a second request never comes out of one. */
#include "../unit/fed_harness.h"

enum { ROUNDS = 20000, TEXT_ROOM = 64, MORE_FIELDS = 3 };

struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *dice, uint32_t sides)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 33) % sides;
}

static const char *one_of(struct dice *dice, const char *const *texts, uint32_t count)
{
    return texts[roll(dice, count)];
}

#define ONE_OF(dice, ...)                                                                          \
    one_of(dice, (const char *const[]){__VA_ARGS__},                                               \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A text that is mostly as it should be, else with some other bytes in it. */
static struct limpet_span spoiled(struct dice *dice, const char *text, char room[TEXT_ROOM])
{
    static const char BYTES[] = "\r\n \t:;,.\x80\xff\x01"
                                "0aG/?#";
    size_t len = strlen(text);
    memcpy(room, text, len);
    if (roll(dice, 4))
        return limpet_bytes(room, len);
    for (uint32_t n = 1 + roll(dice, 3); n && len; n--)
        room[roll(dice, (uint32_t)len)] = BYTES[roll(dice, sizeof BYTES)]; /* its zero byte too */
    return limpet_bytes(room, len);
}

#define SMUGGLED "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"

static const char *body_of(struct dice *dice)
{
    return ONE_OF(dice, "", "{}", "{", "[]", CALL("1", "greet", "{}"), INITIALIZE_WITH("{}"),
        "0\r\n\r\n" SMUGGLED, SMUGGLED, "\r\n\r\n");
}

struct
try {
    struct limpet_field fields[FIELDS_MAX + MORE_FIELDS];
    char rooms[2 + 2 * MORE_FIELDS][TEXT_ROOM];
    struct limpet_request request;
};

static void make(struct dice *dice, struct try *try, const char *body)
{
    struct asked asked = {.method = "POST", .body = body};
    size_t count = put_fields(&asked, try->fields);
    for (int i = 0; i < MORE_FIELDS; i++) {
        const char *name = ONE_OF(dice, "Mcp-Session-Id", "Content-Length", "Transfer-Encoding",
            "Connection", "X-Any", "Last-Event-ID", "Expect", "Host", "MCP-Protocol-Version");
        const char *value = ONE_OF(dice, "1", "2", "chunked", "close", "m2." UUID, "100-continue",
            "2025-06-18", "127.0.0.1");
        try->fields[count++] = (struct limpet_field){spoiled(dice, name, try->rooms[2 + 2 * i]),
            spoiled(dice, value, try->rooms[3 + 2 * i])};
    }
    try->request = (struct limpet_request){
        .method = spoiled(dice,
            ONE_OF(dice, "POST", "POST", "GET", "DELETE", "HEAD", "PUT", "CONNECT"), try->rooms[0]),
        .target = spoiled(dice, ONE_OF(dice, "/mcp", "/mcp", "/mcp?x=1", "/", "*", "http://a/mcp"),
            try->rooms[1]),
        .fields = try->fields,
        .field_count = count,
        .body_follows = roll(dice, 2),
        .is_loopback = true};
    if (!try->request.body_follows)
        try->request.body = limpet_str(body);
}

/* The body in pieces; true: it was not refused. */
static bool hand_in(
    struct dice *dice, struct limpet_server *server, uint64_t exchange, const char *body)
{
    for (size_t at = 0, left; (left = strlen(body) - at) > 0;) {
        size_t piece = 1 + roll(dice, (uint32_t)left);
        if (limpet_exchange_body(server, exchange, limpet_bytes(body + at, piece)))
            return false;
        at += piece;
    }
    return limpet_exchange_end(server, exchange) == LIMPET_OK;
}

static void greet(void *context, struct limpet_call *call)
{
    ++*(unsigned *)context;
    limpet_call_text(call, limpet_str("hello"));
}

static struct limpet_server *new_server(unsigned *calls)
{
    struct limpet_server_options options = {.name = "test",
        .version = "1",
        .owner = "m1",
        .replay = LIMPET_REPLAY_PREFER,
        .session_max = 4};
    struct limpet_tool tool = {.name = "greet", .handler = {.run = greet, .context = calls}};
    struct limpet_server *server = NULL;
    assert_int_equal(limpet_server_new(NULL, &options, &server), LIMPET_OK);
    assert_int_equal(limpet_server_add_tool(server, &tool), LIMPET_OK);
    return server;
}

static void expect_one_answer(struct limpet_server *server, const struct heard *heard)
{
    assert_true(heard->heads <= 1 && heard->ends <= 1);
    assert_true(heard->heads == 1 || !heard->is_whole);
    if (heard->is_whole && heard->body_bytes >= 0)
        assert_true(heard->len == (size_t)heard->body_bytes || heard->len == 0); /* HEAD */
    if (!heard->ends)
        limpet_exchange_left(server, heard->exchange);
}

static void there_is_one_answer_to_one_request(void **state)
{
    (void)state;
    static struct heard heard;
    static struct try try;
    struct dice dice = {1};
    unsigned calls = 0, refused = 0, whole = 0;
    struct limpet_server *server = new_server(&calls);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const char *body = body_of(&dice);
        uint64_t exchange = 0;
        make(&dice, &try, body);
        struct limpet_answer answer = answer_to(&heard);
        if (limpet_exchange_begin(server, &try.request, &answer, &exchange)) {
            assert_int_equal(heard.heads + heard.ends, 0);
            refused++;
            continue;
        }
        heard.exchange = exchange;
        if (try.request.body_follows && !hand_in(&dice, server, exchange, body))
            assert_true(heard.ends == 1);
        whole += heard.is_whole;
        expect_one_answer(server, &heard);
    }
    assert_true(refused > ROUNDS / 10 && whole > ROUNDS / 10);
    assert_int_equal(calls, 0); /* it takes a session, and nobody was told of one */
    limpet_server_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_is_one_answer_to_one_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
