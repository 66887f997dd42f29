/* Shared sessions between two steps of one request: the session ends, the client leaves, the image
 * is pushed out; what stands in the store is odd; and what is written is not confirmed. */
#include "shared_harness.h"

/* The request, its session found, and its next command held back. */
static lp_id begin_step(struct client *c, struct replica *r, const char *method, const char *body)
{
    lp_id conn = begin_ask(c, r, method, body);
    r->is_mute = true;
    quiet_but(r, 1);
    return conn;
}

static void go_on(struct replica *r)
{
    unmute(r);
    quiet(r);
}

/* VERB {limpet:KEY}:SUFFIX REST */
static void command(const struct client *c, const char *verb, const char *suffix, const char *rest)
{
    char text[256];
    snprintf(text, sizeof text, "%s %s:%s %s", verb, tag_of(c), suffix, rest);
    redis_does(text);
}

static const struct {
    const char *method;
    const char *body;
    const char *extra;
} STEPS[] = {
    {"POST", RPC("1", "logging/setLevel", "{\"level\":\"info\"}"), NULL},
    {"POST", RPC("1", "resources/subscribe", "{\"uri\":\"test://x\"}"), NULL},
    {"POST", TOOL("1", "count"), NULL},
    {"POST", TOOL("1", "look"), NULL},
    {"GET", NULL, NULL},
    {"GET", NULL, "Accept: text/event-stream\r\nLast-Event-ID: 3-0\r\n"},
    {"DELETE", NULL, NULL},
    {"POST",
        "{\"jsonrpc\":\"2.0\",\"id\":\"0123456789abcdef-0123456789abcdef-0123456789abcdef\","
        "\"result\":{}}",
        NULL},
};
enum { STEP_COUNT = sizeof STEPS / sizeof *STEPS };

static void it_ends_in_between(void **state)
{
    (void)state;
    static const char *const answers[STEP_COUNT] = {"the session has ended",
        "the session has ended", "", "", "HTTP/1.1 404", "HTTP/1.1 404", "HTTP/1.1 404",
        "HTTP/1.1 404"};
    struct replica a;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    for (size_t i = 0; i < STEP_COUNT; i++) {
        struct client c = open_session(&a);
        c.extra = STEPS[i].extra;
        lp_id conn = begin_step(&c, &a, STEPS[i].method, STEPS[i].body);
        command(&c, "DEL", "s", "");
        go_on(&a);
        const char *text = got(&a.w, conn);
        HAS(text, answers[i]);
        LACKS(text, "outcome");
        c.extra = NULL;
        STATUS(post_to(&c, &a, TOOL("2", "who")), "404");
    }
    assert_int_equal(lp_server_session_count(a.w.server), 0);
    finish_replica(&a);
}

static void the_client_leaves_in_between(void **state)
{
    (void)state;
    struct replica a;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    for (size_t i = 0; i < STEP_COUNT; i++) {
        struct client c = open_session(&a);
        c.extra = STEPS[i].extra;
        lp_id conn = begin_step(&c, &a, STEPS[i].method, STEPS[i].body);
        peer_of(&a.w, conn)->is_open = false;
        tell(&a.w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
        go_on(&a);
        assert_int_equal(a.w.server->requests.live_count, 0);
    }
    struct client c = {0};
    lp_id conn = begin_ask(&c, &a, "POST", INITIALIZE_ALL);
    peer_of(&a.w, conn)->is_open = false;
    tell(&a.w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
    quiet(&a);
    pass(&a.w, 3 * SECOND);
    quiet(&a);
    assert_int_equal(a.w.server->shared->posts.live_count, 0);
    finish_replica(&a);
}

static void it_is_pushed_out_in_between(void **state)
{
    (void)state;
    static const char *const answers[STEP_COUNT] = {"\"result\":{}", "\"result\":{}", "count 1",
        "outcome 0", "HTTP/1.1 503", "HTTP/1.1 503", "HTTP/1.1 200", ""};
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&b, "b");
    start_replica(&a, "a", (struct lp_server_args){.session_max = 1});
    for (size_t i = 0; i < STEP_COUNT; i++) {
        struct client c = open_session(&b);
        struct client other = open_session(&b);
        c.extra = STEPS[i].extra;
        lp_id conn = begin_ask(&c, &a, STEPS[i].method, STEPS[i].body);
        lp_id beside = begin_ask(&other, &a, "POST", TOOL("1", "who"));
        for (int turn = 0; turn < 4; turn++)
            quiet(&a);
        HAS(got(&a.w, conn), answers[i]);
        HAS(got(&a.w, beside), "HTTP/1.1 ");
    }
    finish_replica(&a);
    finish_replica(&b);
}

static void a_look_is_answered_after_its_end(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&b, "b");
    start_replica(&a, "a", (struct lp_server_args){.session_max = 1});
    struct client c = open_session(&b);
    struct client other = open_session(&b);
    lp_id stream = begin_ask(&c, &a, "GET", NULL);
    quiet(&a);
    STATUS(got(&a.w, stream), "200");
    a.is_mute = true;
    pass(&a.w, SECOND);
    peer_of(&a.w, stream)->is_open = false;
    tell(&a.w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = stream});
    unmute(&a);
    HAS(post_to(&other, &a, TOOL("1", "who")), "\"a\"");
    STATUS(post_to(&c, &a, TOOL("1", "who")), "200");
    finish_replica(&a);
    finish_replica(&b);
}

static void what_stands_there_is_odd(void **state)
{
    (void)state;
    struct replica a;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    struct client c = open_session(&a);
    static const char *const bad[] = {"l 99", "l 0 v x",
        "v 2025-11-25 p zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "p 0000000000000000zzzzzzzzzzzzzzzz",
        "p 0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command(&c, "HSET", "s", bad[i]);
        STATUS(post_to(&c, &a, TOOL("1", "who")), i < 2 ? "503" : "404");
    }
    command(&c, "HSET", "s", "p 00000000000000000000000000000000 f:x 99999999999999");
    for (int i = 0; i < LP_SHARED_TARGETS + 2; i++) {
        char text[160];
        snprintf(text, sizeof text, "f:%016d 99999999999999", i);
        command(&c, "HSET", "s", text);
    }
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    pass(&a.w, SECOND);
    quiet(&a);
    HAS(got(&a.w, call), "\"progress\":1");
    /* a stream whose entries nobody of ours has written */
    command(&c, "XADD", "h:9", "0-1 c 0 w x d x");
    command(&c, "XADD", "h:9", "3-0 c 0 w x d {}");
    command(&c, "XADD", "h:9", "4-7 c 0 w x d .");
    c.extra = "Accept: text/event-stream\r\nLast-Event-ID: 9-0\r\n";
    const char *text = say(&c, &a, "GET", NULL);
    HAS(text, "id: 9-3\ndata: {}\n");
    LACKS(text, "id: 9-4");
    finish_replica(&a);
}

static void what_is_written_is_not_confirmed(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_replica(&b, "b", (struct lp_server_args){.store_wait = 1});
    struct client c = open_session(&a);
    STATUS(post_to(&(struct client){0}, &b, INITIALIZE_ALL), "503");
    HAS(post_to(&c, &b, RPC("1", "logging/setLevel", "{\"level\":\"info\"}")), "\"result\":{}");
    HAS(post_to(&c, &b, TOOL("1", "count")), "outcome 3, count 1");
    HAS(post_to(&c, &a, TOOL("1", "count")), "outcome 0, count 2");
    HAS(post_to(&c, &b, TOOL("1", "count")), "outcome 3, count 3");
    HAS(post_to(&c, &b, TOOL("1", "look")), "outcome 0, revision 3");
    STATUS(say(&c, &b, "DELETE", NULL), "200");
    STATUS(post_to(&c, &a, TOOL("1", "who")), "404");
    finish_replica(&a);
    finish_replica(&b);
}

static void taken_while_it_is_withdrawn(void **state)
{
    (void)state;
    struct replica a, b;
    char id[64];
    char body[256];
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_up(&b, "b");
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("7", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}", id);
    a.is_deaf = true;
    lp_id conn = begin_ask(&c, &b, "POST", body);
    quiet(&b);
    b.is_mute = true;
    pass(&b.w, 2100000);
    assert_true(waiting(&b) > 0);
    a.is_deaf = false;
    STATUS(await_part(&b, conn, "HTTP/1.1 ", &a), "202");
    go_on(&b);
    HAS(got(&a.w, call), "\"ok\"");
    finish_replica(&a);
    finish_replica(&b);
}

static void a_client_without_capabilities_is_not_asked(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_up(&b, "b");
    struct client c = {.world = &a.w};
    const char *text = post_to(&c, &a, INITIALIZE("2025-06-18"));
    assert_int_equal(sscanf(strcasestr(text, "mcp-session-id: ") + 16, "%127[^\r]", c.session), 1);
    HAS(post_to(&c, &b, TOOL("8", "query")), "UNSUPPORTED");
    finish_replica(&a);
    finish_replica(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_in_between),
        cmocka_unit_test(the_client_leaves_in_between),
        cmocka_unit_test(it_is_pushed_out_in_between),
        cmocka_unit_test(a_look_is_answered_after_its_end),
        cmocka_unit_test(what_stands_there_is_odd),
        cmocka_unit_test(what_is_written_is_not_confirmed),
        cmocka_unit_test(taken_while_it_is_withdrawn),
        cmocka_unit_test(a_client_without_capabilities_is_not_asked),
    };
    return cmocka_run_group_tests(tests, begin_redis, end_redis);
}
