/* Shared sessions when the store is away, silent, cut off in the middle, or full: what is here goes
 * on, what is not is 503 and never 404, and nobody hangs. Cases OWN-03. */
#include "shared_harness.h"

static const char *now(struct client *c, struct replica *r, const char *method, const char *body)
{
    return got(&r->w, begin_ask(c, r, method, body));
}

/* Everything that is refused at once while the store is away. */
static void expect_away(struct client *c, struct replica *r)
{
    const char *text = now(c, r, "POST", TOOL("1", "who"));
    STATUS(text, "503");
    HAS(text, "retry-after: 1");
    HAS(text, "\"id\":1,");
    HAS(text, "store of the sessions");
    STATUS(now(c, r, "GET", NULL), "503");
    STATUS(now(c, r, "DELETE", NULL), "503");
    text = now(c, r, "POST", INITIALIZE_ALL);
    STATUS(text, "503");
    HAS(text, "\"id\":0,");
    LACKS(text, "mcp-session-id");
}

static void pump_until_up(struct replica *r)
{
    for (int left = 100; left && !lp_store_is_up(r->w.server->shared->store); left--) {
        pump(r);
        nap(r, NULL);
    }
}

/* Redis answers in its own time, which does not pass here: so little of ours at once. */
static void come_back(struct replica *r)
{
    r->is_refused = false;
    for (int left = 50; left && !lp_store_is_up(r->w.server->shared->store); left--) {
        pass(&r->w, SECOND / 10);
        pump_until_up(r);
    }
    assert_true(lp_store_is_up(r->w.server->shared->store));
}

static void go_away(struct replica *r)
{
    cut_store(r, false);
    pass(&r->w, 3 * SECOND);
    pump(r);
    pass(&r->w, 3 * SECOND);
    pump(r);
    assert_false(lp_store_is_up(r->w.server->shared->store));
}

static void what_is_here_goes_on(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_up(&b, "b");
    struct client c = open_session(&a);
    struct client other = open_session(&b);
    HAS(post_to(&c, &a, TOOL("1", "count")), "count 1");
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    uint32_t lines = a.log_lines;
    go_away(&a);
    assert_true(a.log_lines > lines);
    lines = a.log_lines;
    /* The call has gone on meanwhile. */
    HAS(got(&a.w, call), "arrived");
    HAS(now(&c, &a, "POST", TOOL("2", "who")), "\"a\"");
    HAS(now(&c, &a, "POST", RPC("3", "ping", "{}")), "\"result\":{}");
    HAS(now(&c, &a, "POST", RPC("3", "logging/setLevel", "{\"level\":\"info\"}")),
        "nothing was changed");
    HAS(now(&c, &a, "POST", RPC("3", "resources/subscribe", "{\"uri\":\"test://x\"}")),
        "nothing was changed");
    HAS(now(&c, &a, "POST", TOOL("4", "look")), "outcome 2, revision 0");
    HAS(now(&c, &a, "POST", TOOL("4", "count")), "outcome 2");
    STATUS(now(&c, &a, "GET", NULL), "503");
    STATUS(now(&c, &a, "DELETE", NULL), "503");
    lp_server_list_changed(a.w.server, LP_LIST_TOOLS);
    lp_server_settle(a.w.server, a.w.now_us);
    /* A stream that began without the store has numbers of its own. */
    call = begin_ask(&c, &a, "POST", WALK("8"));
    pass(&a.w, SECOND);
    pump(&a);
    HAS(got(&a.w, call), "\"progress\":1");
    expect_away(&other, &a);
    come_back(&a);
    quiet(&a);
    assert_true(a.log_lines > lines);
    HAS(post_to(&c, &a, TOOL("5", "count")), "outcome 0, count 2");
    HAS(post_to(&other, &a, TOOL("5", "count")), "outcome 0, count 1");
    finish_replica(&a);
    finish_replica(&b);
}

static void a_store_that_was_never_there(void **state)
{
    (void)state;
    struct replica a;
    struct client c = {.session = "7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34"};
    redis_does("FLUSHALL");
    start_replica(&a, "a", (struct lp_server_args){0});
    a.is_refused = true;
    cut_store(&a, false);
    for (int i = 0; i < 5; i++) {
        pass(&a.w, SECOND);
        pump(&a);
    }
    expect_away(&c, &a);
    come_back(&a);
    STATUS(post_to(&c, &a, TOOL("1", "who")), "404");
    open_session(&a);
    finish_replica(&a);
}

static void silence_has_an_end(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_up(&b, "b");
    struct client known = open_session(&a);
    struct client c = open_session(&b);
    lp_id count = begin_ask(&known, &a, "POST", TOOL("1", "count"));
    lp_id look = begin_ask(&known, &a, "POST", TOOL("1", "look"));
    lp_id level =
        begin_ask(&known, &a, "POST", RPC("2", "logging/setLevel", "{\"level\":\"info\"}"));
    lp_id get = begin_ask(&known, &a, "GET", NULL);
    lp_id end = begin_ask(&known, &a, "DELETE", NULL);
    a.is_mute = true; /* the sessions are found, what follows is never heard of */
    quiet_but(&a, 5);
    lp_id look_up = begin_ask(&c, &a, "POST", TOOL("1", "who"));
    lp_id create = begin_ask(&c, &a, "POST", INITIALIZE_ALL);
    pass(&a.w, 2 * SECOND);
    STATUS(got(&a.w, look_up), "503");
    STATUS(got(&a.w, create), "503");
    HAS(got(&a.w, count), "outcome 3");
    HAS(got(&a.w, look), "outcome 2");
    HAS(got(&a.w, level), "nothing was changed");
    STATUS(got(&a.w, get), "503");
    STATUS(got(&a.w, end), "503");
    assert_int_equal(waiting(&a), 0);
    a.is_mute = false;
    cut_store(&a, true);
    come_back(&a);
    quiet(&a);
    STATUS(post_to(&c, &a, TOOL("3", "who")), "200");
    finish_replica(&a);
    finish_replica(&b);
}

static void what_was_cut_off_is_in_doubt(void **state)
{
    (void)state;
    struct replica a;
    char written[96];
    redis_does("FLUSHALL");
    start_up(&a, "a");
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("1", "count"));
    a.is_mute = true;
    quiet_but(&a, 1);
    a.is_deaf = true;
    unmute(&a);
    snprintf(written, sizeof written, "HEXISTS %s:s sr", tag_of(&c));
    while (!strstr(redis_does(written), ":1"))
        nap(&a, NULL);
    cut_store(&a, false);
    a.is_deaf = false;
    for (int i = 0; i < 4; i++) {
        pass(&a.w, SECOND);
        pump(&a);
    }
    HAS(got(&a.w, call), "outcome 3");
    come_back(&a);
    quiet(&a);
    HAS(post_to(&c, &a, TOOL("2", "look")), "outcome 0, revision 1, state 1");
    finish_replica(&a);
}

static void who_leaves_is_forgotten(void **state)
{
    (void)state;
    struct replica a;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    struct client c = open_session(&a);
    static const char *const methods[] = {"POST", "POST", "GET", "DELETE"};
    for (size_t i = 0; i < 4; i++) {
        const char *body = i == 0 ? TOOL("1", "count") : i == 1 ? INITIALIZE_ALL : NULL;
        lp_id conn = begin_ask(&c, &a, methods[i], body);
        peer_of(&a.w, conn)->is_open = false;
        tell(&a.w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
    }
    quiet(&a);
    assert_int_equal(a.w.server->requests.live_count, 0);
    finish_replica(&a);
}

static void a_message_cannot_be_sent_on(void **state)
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
    HAS(post_to(&c, &b, TOOL("1", "who")), "\"b\"");
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}", id);
    /* on its way to the box when the store goes */
    lp_id conn = begin_ask(&c, &b, "POST", body);
    for (int left = PATIENCE; left && !b.w.server->shared->posts.live_count; left--) {
        pump(&b);
        poll(NULL, 0, 1);
    }
    go_away(&b);
    STATUS(got(&b.w, conn), "503");
    STATUS(now(&c, &b, "POST", body), "503");
    come_back(&b);
    /* in the box, when the store goes */
    a.is_deaf = true;
    conn = begin_ask(&c, &b, "POST", body);
    quiet(&b);
    go_away(&b);
    STATUS(got(&b.w, conn), "503");
    assert_int_equal(b.w.server->shared->posts.live_count, 0);
    finish_replica(&a);
    finish_replica(&b);
}

static void words_that_nobody_knows_are_passed_over(void **state)
{
    (void)state;
    struct replica a;
    char command[256];
    redis_does("FLUSHALL");
    start_up(&a, "a");
    struct client c = open_session(&a);
    static const char *const words[] = {"x", "wzz", "w0123456789abcdef0123456789abcdeg", "a12",
        "a0123456789abcdef", "w00000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(command, sizeof command, "PUBLISH limpet:w:%s %s", a.w.server->shared->replica,
            words[i]);
        redis_does(command);
    }
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    /* in its box: what is no JSON */
    snprintf(command, sizeof command, "XADD %s:b * t %s f x k r q x d nothing", tag_of(&c),
        a.w.server->shared->replica);
    redis_does(command);
    pass(&a.w, 3 * SECOND);
    quiet(&a);
    HAS(got(&a.w, call), "arrived");
    snprintf(command, sizeof command, "XLEN %s:b", tag_of(&c));
    HAS(redis_does(command), ":0");
    finish_replica(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_here_goes_on),
        cmocka_unit_test(a_store_that_was_never_there),
        cmocka_unit_test(silence_has_an_end),
        cmocka_unit_test(what_was_cut_off_is_in_doubt),
        cmocka_unit_test(who_leaves_is_forgotten),
        cmocka_unit_test(a_message_cannot_be_sent_on),
        cmocka_unit_test(words_that_nobody_knows_are_passed_over),
    };
    return cmocka_run_group_tests(tests, begin_redis, end_redis);
}
