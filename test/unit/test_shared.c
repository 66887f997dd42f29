/* Sessions that replicas share, on a real Redis, in the orders in which it could go wrong: the id
 * is used before its answer is through, ended while a call runs, two GETs, pushed out of memory,
 * resumed, asked here and answered there. */
#include "shared_harness.h"

static void set_up_two(struct replica *a, struct replica *b)
{
    redis_does("FLUSHALL");
    start_up(a, "a");
    start_up(b, "b");
}

static void tear_down(struct replica *a, struct replica *b)
{
    finish_replica(a);
    finish_replica(b);
}

static void break_off(struct replica *r, lp_id conn)
{
    peer_of(&r->w, conn)->is_open = false;
    tell(&r->w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

/* The answer came in full, and its connection may be read no more. */
static bool has_ended(struct replica *r, lp_id conn)
{
    struct lp_span bytes = lp_buf_span(&peer_of(&r->w, conn)->got);
    return lp_span_ends(bytes, LP_SPAN("0\r\n\r\n"));
}

static void await_end(struct replica *r, lp_id conn, struct replica *other)
{
    for (int left = PATIENCE; left && !has_ended(r, conn); left--) {
        pump(r);
        pump(other);
        nap(r, other);
    }
    assert_true(has_ended(r, conn));
}

/* --- sessions --- */

static void a_session_is_the_same_everywhere(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    HAS(post_to(&c, &b, TOOL("1", "count")), "outcome 0, count 1");
    HAS(post_to(&c, &a, TOOL("2", "count")), "outcome 0, count 2");
    HAS(post_to(&c, &b, TOOL("3", "look")), "outcome 0, revision 2, state 2");
    const char *text = post_to(&c, &b, TOOL("4", "count"));
    HAS(text, "count 3");
    HAS(text, "content-type: application/json");
    STATUS(say(&c, &a, "DELETE", NULL), "200");
    STATUS(post_to(&c, &b, TOOL("5", "who")), "404");
    STATUS(post_to(&c, &a, TOOL("6", "who")), "404");
    STATUS(say(&c, &b, "DELETE", NULL), "404");
    HAS(redis_does("DBSIZE"), ":0");
    tear_down(&a, &b);
}

static void no_byte_leaves_before_it_is_stored(void **state)
{
    (void)state;
    struct replica a, b;
    lp_id id;
    uint32_t cursor = 0;
    char exists[96];
    set_up_two(&a, &b);
    a.is_deaf = true;
    struct client c = {.world = &a.w};
    lp_id conn = begin_ask(&c, &a, "POST", INITIALIZE_ALL);
    assert_int_equal(peer_of(&a.w, conn)->got.len, 0);
    /* It is stored, the answer is not through, and the id is used elsewhere, and here. */
    struct lp_session *session = lp_slab_next(&a.w.server->sessions, &cursor, &id);
    memcpy(c.session, session->text, session->text_len);
    snprintf(exists, sizeof exists, "EXISTS %s:s", tag_of(&c));
    while (!strstr(redis_does(exists), ":1"))
        nap(&b, NULL);
    HAS(post_to(&c, &b, TOOL("1", "count")), "count 1");
    lp_id here = begin_ask(&c, &a, "POST", TOOL("2", "count"));
    assert_int_equal(peer_of(&a.w, conn)->got.len, 0);
    a.is_deaf = false;
    quiet(&a);
    STATUS(got(&a.w, conn), "200");
    HAS(got(&a.w, here), "count 2");
    tear_down(&a, &b);
}

static void an_image_that_is_pushed_out_comes_back(void **state)
{
    (void)state;
    struct replica a, b;
    redis_does("FLUSHALL");
    start_up(&a, "a");
    start_replica(&b, "b", (struct lp_server_args){.session_max = 1});
    struct client one = open_session(&a);
    struct client two = open_session(&a);
    HAS(post_to(&one, &b, TOOL("1", "count")), "count 1");
    HAS(post_to(&two, &b, TOOL("1", "count")), "count 1");
    HAS(post_to(&one, &b, TOOL("2", "count")), "count 2");
    assert_int_equal(lp_server_session_count(b.w.server), 1);
    lp_id stream = begin_ask(&one, &b, "GET", NULL);
    quiet(&b);
    STATUS(got(&b.w, stream), "200");
    /* in use, it makes no room; what there is no room for is not lost */
    STATUS(post_to(&two, &b, TOOL("2", "count")), "503");
    STATUS(post_to(&(struct client){0}, &b, INITIALIZE_ALL), "503");
    HAS(post_to(&two, &a, TOOL("2", "count")), "count 2");
    break_off(&b, stream);
    quiet(&b);
    HAS(post_to(&two, &b, TOOL("3", "count")), "count 3");
    tear_down(&a, &b);
}

static bool takes_token(void *ctx, struct lp_span token, struct lp_key *ret)
{
    (void)ctx;
    *ret = (struct lp_key){.hi = token.len ? (unsigned char)token.ptr[0] : 0};
    return token.len == 1;
}

static void a_session_is_its_principals(void **state)
{
    (void)state;
    struct replica a, b;
    struct lp_server_args args = {.bearer = takes_token};
    redis_does("FLUSHALL");
    start_replica(&a, "a", args);
    start_replica(&b, "b", args);
    struct client c = {.world = &a.w, .extra = "Authorization: Bearer x\r\n"};
    const char *text = post_to(&c, &a, INITIALIZE_ALL);
    assert_int_equal(sscanf(strcasestr(text, "mcp-session-id: ") + 16, "%127[^\r]", c.session), 1);
    STATUS(post_to(&c, &b, TOOL("1", "who")), "200");
    c.extra = "Authorization: Bearer y\r\n";
    STATUS(post_to(&c, &b, TOOL("1", "who")), "404");
    STATUS(post_to(&c, &a, TOOL("1", "who")), "404");
    STATUS(say(&c, &a, "GET", NULL), "404");
    STATUS(say(&c, &a, "DELETE", NULL), "404");
    c.extra = "";
    STATUS(post_to(&c, &b, TOOL("1", "who")), "401");
    tear_down(&a, &b);
}

static void what_is_not_ours_is_not_found(void **state)
{
    (void)state;
    struct replica a, b;
    char command[160];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    /* of a version that is not spoken here; and of no principal that can be read */
    snprintf(command, sizeof command, "HSET %s:s v 1999-01-01", tag_of(&c));
    redis_does(command);
    STATUS(post_to(&c, &b, TOOL("1", "who")), "503");
    snprintf(command, sizeof command, "HSET %s:s v 2025-11-25 p x", tag_of(&c));
    redis_does(command);
    STATUS(post_to(&c, &b, TOOL("1", "who")), "404");
    tear_down(&a, &b);
}

/* --- level, subscriptions, lists --- */

static void level_and_subscriptions_hold_everywhere(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id stream = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    STATUS(got(&b.w, stream), "200");
    HAS(post_to(&c, &a, RPC("1", "logging/setLevel", "{\"level\":\"error\"}")), "\"result\":{}");
    HAS(post_to(&c, &b, TOOL("2", "shout")), "not heard");
    HAS(post_to(&c, &b, RPC("3", "logging/setLevel", "{\"level\":\"info\"}")), "\"result\":{}");
    HAS(post_to(&c, &a, TOOL("4", "shout")), "\"heard\"");
    HAS(await_part(&b, stream, "\"hey\"", &a), "id: 0-1\n");
    HAS(post_to(&c, &a, RPC("5", "resources/subscribe", "{\"uri\":\"test://x\"}")),
        "\"result\":{}");
    lp_server_resource_updated(a.w.server, LP_SPAN("test://y"));
    lp_server_resource_updated(a.w.server, LP_SPAN("test://x"));
    lp_server_settle(a.w.server, a.w.now_us);
    LACKS(await_part(&b, stream, "test://x", &a), "test://y");
    lp_server_list_changed(a.w.server, LP_LIST_TOOLS);
    lp_server_settle(a.w.server, a.w.now_us);
    await_part(&b, stream, "tools/list_changed", &a);
    /* and where the stream is itself */
    lp_server_list_changed(b.w.server, LP_LIST_PROMPTS);
    lp_server_settle(b.w.server, b.w.now_us);
    await_part(&b, stream, "prompts/list_changed", &a);
    HAS(post_to(&c, &b, RPC("6", "resources/unsubscribe", "{\"uri\":\"test://x\"}")), "{}");
    lp_server_resource_updated(a.w.server, LP_SPAN("test://x"));
    lp_server_list_changed(a.w.server, LP_LIST_RESOURCES);
    lp_server_settle(a.w.server, a.w.now_us);
    LACKS(await_part(&b, stream, "resources/list_changed", &a), "test://x");
    tear_down(&a, &b);
}

static void what_is_told_while_nobody_wakes_comes_with_the_next_look(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id stream = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    redis_does("CLIENT KILL TYPE pubsub");
    HAS(post_to(&c, &a, TOOL("4", "shout")), "\"heard\"");
    lp_server_list_changed(a.w.server, LP_LIST_TOOLS);
    lp_server_settle(a.w.server, a.w.now_us);
    quiet(&a);
    got(&b.w, stream);
    pass(&b.w, 1100000);
    quiet(&b);
    pass(&b.w, 1100000);
    quiet(&b);
    HAS(await_part(&b, stream, "tools/list_changed", NULL), "\"hey\"");
    tear_down(&a, &b);
}

/* --- streams --- */

static void the_newest_get_counts(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id first = begin_ask(&c, &a, "GET", NULL);
    quiet(&a);
    lp_id second = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    await_end(&a, first, &b);
    lp_id third = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    assert_true(has_ended(&b, second));
    HAS(post_to(&c, &a, TOOL("1", "shout")), "\"heard\"");
    await_part(&b, third, "\"hey\"", &a);
    /* While it is away messages gather, and the next one gets them. */
    break_off(&b, third);
    quiet(&b);
    HAS(post_to(&c, &a, TOOL("1", "shout")), "\"heard\"");
    lp_id fourth = begin_ask(&c, &a, "GET", NULL);
    quiet(&a);
    const char *text = await_part(&a, fourth, "\"hey\"", &b);
    HAS(text, "id: 0-2\n");
    LACKS(text, "id: 0-1\ndata: {");
    tear_down(&a, &b);
}

static void a_get_that_leaves_does_not_end_the_next_one(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id first = begin_ask(&c, &a, "GET", NULL);
    quiet(&a);
    lp_id second = begin_ask(&c, &a, "GET", NULL);
    while (a.w.server->shared->waits.live_count == 1 && waiting(&a) > 1)
        pump(&a); /* looked up, and listening is asked for */
    break_off(&a, first);
    quiet(&a);
    HAS(post_to(&c, &b, TOOL("1", "shout")), "\"heard\"");
    await_part(&a, second, "\"hey\"", &b);
    tear_down(&a, &b);
}

static lp_id resume(struct client *c, struct replica *r, const char *event)
{
    char extra[128];
    struct client here = *c;
    snprintf(extra, sizeof extra, "Accept: text/event-stream\r\nLast-Event-ID: %s\r\n", event);
    here.extra = extra;
    lp_id conn = begin_ask(&here, r, "GET", NULL);
    quiet(r);
    return conn;
}

static void a_stream_goes_on_at_another_replica(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    HAS(got(&a.w, call), "id: 1-0\n");
    break_off(&a, call);
    lp_id again = resume(&c, &b, "1-0");
    STATUS(got(&b.w, again), "200");
    pass(&a.w, SECOND);
    HAS(await_part(&b, again, "\"progress\":1", &a), "id: 1-1\n");
    pass(&a.w, 2 * SECOND);
    await_end(&b, again, &a);
    const char *text = got(&b.w, again);
    HAS(text, "id: 1-3\n");
    HAS(text, "arrived");
    /* once more, when all is over: at the other, and at its own */
    again = resume(&c, &b, "1-1");
    await_end(&b, again, &a);
    text = got(&b.w, again);
    LACKS(text, "id: 1-1\n");
    HAS(text, "id: 1-2\n");
    again = resume(&c, &a, "1-2");
    HAS(got(&a.w, again), "arrived");
    /* what is not known replays nothing */
    LACKS(got(&b.w, resume(&c, &b, "1-9")), "arrived");
    LACKS(got(&b.w, resume(&c, &b, "5-0")), "arrived");
    LACKS(got(&b.w, resume(&c, &b, "0-99")), "arrived");
    struct client other = open_session(&b);
    LACKS(got(&b.w, resume(&other, &b, "1-0")), "arrived");
    tear_down(&a, &b);
}

static void a_stream_whose_writer_has_died_ends(void **state)
{
    (void)state;
    struct replica a, b;
    char command[160];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    pass(&a.w, SECOND);
    quiet(&a);
    lp_id again = resume(&c, &b, "1-0");
    HAS(await_part(&b, again, "\"progress\":1", NULL), "id: 1-1\n");
    assert_false(has_ended(&b, again));
    snprintf(command, sizeof command, "HDEL %s:s f:%s", tag_of(&c), a.w.server->shared->replica);
    redis_does(command);
    pass(&b.w, SECOND);
    quiet(&b);
    assert_true(has_ended(&b, again));
    tear_down(&a, &b);
}

static void so_many_streams_are_read_and_no_more(void **state)
{
    (void)state;
    struct replica a, b;
    char event[16];
    lp_id streams[LP_SHARED_READERS];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    for (int i = 0; i <= LP_SHARED_READERS; i++) {
        begin_ask(&c, &a, "POST", WALK("7"));
        quiet(&a);
    }
    for (int i = 0; i < LP_SHARED_READERS; i++) {
        snprintf(event, sizeof event, "%d-0", i + 1);
        streams[i] = resume(&c, &b, event);
        STATUS(got(&b.w, streams[i]), "200");
    }
    STATUS(got(&b.w, resume(&c, &b, "9-0")), "503");
    pass(&a.w, 3 * SECOND);
    for (int i = 0; i < LP_SHARED_READERS; i++)
        await_part(&b, streams[i], "arrived", &a);
    STATUS(got(&b.w, resume(&c, &b, "9-0")), "200");
    tear_down(&a, &b);
}

static long length_of(const char *key)
{
    char text[160];
    long n = -1;
    snprintf(text, sizeof text, "XLEN %s", key);
    assert_int_equal(sscanf(redis_does(text), ":%ld", &n), 1);
    return n;
}

static void what_is_kept_of_a_stream_is_bounded(void **state)
{
    (void)state;
    struct replica a, b;
    char key[96];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    post_to(&c, &a, CALL("1", "flood", "{\"count\":1500,\"size\":10}"));
    snprintf(key, sizeof key, "%s:h:1", tag_of(&c));
    assert_int_equal(length_of(key), 1000);
    post_to(&c, &a, CALL("2", "flood", "{\"count\":50,\"size\":100000}"));
    snprintf(key, sizeof key, "%s:h:2", tag_of(&c));
    assert_in_range(length_of(key), 5, 12);
    /* one that is larger than all of it stays, as long as it is the newest */
    post_to(&c, &a, CALL("3", "flood", "{\"count\":3,\"size\":2000000}"));
    snprintf(key, sizeof key, "%s:h:3", tag_of(&c));
    assert_in_range(length_of(key), 1, 3);
    lp_id stream = resume(&c, &b, "2-0");
    struct lp_span bytes = lp_buf_span(&peer_of(&b.w, stream)->got);
    assert_true(lp_span_search(bytes, LP_SPAN("id: 2-50\n")) < bytes.len);
    assert_int_equal(lp_span_search(bytes, LP_SPAN("id: 2-10\n")), bytes.len);
    tear_down(&a, &b);
}

static void a_stop_sends_streams_elsewhere(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    lp_id again = resume(&c, &b, "1-0");
    lp_id stream = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    tell(&b.w, (struct lp_event){.kind = LP_EV_STOP});
    assert_true(has_ended(&b, again));
    assert_true(has_ended(&b, stream));
    quiet(&b);
    HAS(post_to(&c, &a, TOOL("1", "shout")), "\"heard\"");
    stream = begin_ask(&c, &a, "GET", NULL);
    quiet(&a);
    await_part(&a, stream, "\"hey\"", NULL);
    tear_down(&a, &b);
}

/* --- ends --- */

static void delete_ends_what_runs_elsewhere(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    STATUS(say(&c, &b, "DELETE", NULL), "200");
    for (int left = PATIENCE; left && lp_server_session_count(a.w.server); left--) {
        pump(&a);
        poll(NULL, 0, 1);
    }
    assert_int_equal(lp_server_session_count(a.w.server), 0);
    assert_true(has_ended(&a, call) || !peer_of(&a.w, call)->is_open);
    LACKS(got(&a.w, call), "arrived");
    tear_down(&a, &b);
}

static void a_session_that_expires_under_a_call_is_gone(void **state)
{
    (void)state;
    struct replica a, b;
    char command[160];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id look_up = begin_ask(&c, &a, "POST", TOOL("1", "count"));
    lp_id level = begin_ask(&c, &a, "POST", RPC("2", "logging/setLevel", "{\"level\":\"info\"}"));
    lp_id get = begin_ask(&c, &a, "GET", NULL);
    a.is_deaf = true;
    struct lp_store *store = a.w.server->shared->store;
    assert_true(lp_store_waiting(store) >= 3);
    a.is_deaf = false;
    for (int left = PATIENCE; left && a.w.server->shared->waits.live_count; left--) {
        poll(NULL, 0, 1);
        snprintf(command, sizeof command, "DEL %s:s", tag_of(&c));
        redis_does(command);
        pump(&a);
    }
    LACKS(got(&a.w, look_up), "count 1");
    LACKS(got(&a.w, level), "\"result\"");
    STATUS(got(&a.w, get), "404");
    assert_int_equal(lp_server_session_count(a.w.server), 0);
    tear_down(&a, &b);
}

/* --- messages --- */

static const char *reply(struct client *c, struct replica *r, const char *id, struct replica *asker)
{
    char body[256];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}", id);
    lp_id conn = begin_ask(c, r, "POST", body);
    return await_part(r, conn, "HTTP/1.1 ", asker);
}

static void asked_here_answered_there(void **state)
{
    (void)state;
    struct replica a, b;
    char id[64];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("7", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    STATUS(reply(&c, &b, id, &a), "202");
    await_part(&a, call, "\"id\":7,\"result\":{\"ok\":1}", &b);
    /* answered twice, or here: as it is with one process */
    STATUS(reply(&c, &b, id, &a), "202");
    STATUS(reply(&c, &a, id, NULL), "202");
    STATUS(reply(&c, &b, "\"0123456789abcdef-0123456789abcdef\"", NULL), "202");
    STATUS(reply(&c, &b, "17", NULL), "202");
    static const char *const odd[] = {"\"", "-0123456789abcdef-zz\"", "-zz-0123456789abcdef\"",
        "-0123456789abcdef-0123456789abcdef\""};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char text[128];
        snprintf(text, sizeof text, "\"%s%s", b.w.server->shared->replica, odd[i]);
        STATUS(reply(&c, &b, text, NULL), "202");
    }
    /* in a client that takes no stream the question comes on the GET stream, wherever it is */
    lp_id stream = begin_ask(&c, &b, "GET", NULL);
    quiet(&b);
    struct client plain = c;
    plain.extra = "Accept: application/json\r\n";
    call = begin_ask(&plain, &a, "POST", TOOL("8", "query"));
    quiet(&a);
    take_question(await_part(&b, stream, "elicitation/create", &a), id);
    STATUS(reply(&c, &b, id, &a), "202");
    HAS(await_part(&a, call, "\"id\":8", &b), "application/json");
    tear_down(&a, &b);
}

static void nobody_to_ask_is_said(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    c.extra = "Accept: application/json\r\n";
    HAS(post_to(&c, &a, TOOL("8", "query")), "NOT_FOUND");
    tear_down(&a, &b);
}

static void what_is_not_taken_in_time_is_said(void **state)
{
    (void)state;
    struct replica a, b;
    char id[64];
    char body[256];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("7", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}", id);
    a.is_deaf = true;
    lp_id conn = begin_ask(&c, &b, "POST", body);
    quiet(&b);
    assert_int_equal(peer_of(&b.w, conn)->got.len, 0);
    pass(&b.w, 3 * SECOND);
    quiet(&b);
    const char *text = got(&b.w, conn);
    STATUS(text, "503");
    HAS(text, "retry-after: 1");
    HAS(text, "did not take it in time");
    /* It was withdrawn: the asker does not find it later either. */
    a.is_deaf = false;
    quiet(&a);
    pass(&a.w, SECOND);
    quiet(&a);
    LACKS(got(&a.w, call), "\"ok\"");
    /* Taken, but the news of it is lost: that is found out at the deadline. */
    conn = begin_ask(&c, &b, "POST", body);
    while (!b.w.server->shared->posts.live_count)
        pump(&b);
    quiet(&b);
    b.is_deaf = true;
    await_part(&a, call, "\"ok\"", NULL);
    quiet(&a);
    redis_does("CLIENT KILL TYPE pubsub");
    pass(&b.w, 3 * SECOND);
    b.is_deaf = false;
    cut_store(&b, true);
    for (int left = 10; left; left--) {
        quiet(&b);
        pass(&b.w, SECOND);
    }
    STATUS(got(&b.w, conn), "202");
    tear_down(&a, &b);
}

static void a_full_box_takes_nothing(void **state)
{
    (void)state;
    struct replica a, b;
    char id[64];
    char command[256];
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("7", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    for (int i = 0; i < LP_SHARED_BOX_MAX; i++) {
        snprintf(command, sizeof command, "XADD %s:b * t x f x k r q x d x", tag_of(&c));
        redis_does(command);
    }
    const char *text = reply(&c, &b, id, NULL);
    STATUS(text, "503");
    tear_down(&a, &b);
}

static void a_call_is_cancelled_from_anywhere(void **state)
{
    (void)state;
    struct replica a, b;
    set_up_two(&a, &b);
    struct client c = open_session(&a);
    static const char cancel[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}";
    STATUS(post_to(&c, &b, cancel), "202"); /* of nothing */
    lp_id call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    lp_id conn = begin_ask(&c, &b, "POST", cancel);
    STATUS(await_part(&b, conn, "HTTP/1.1 ", &a), "202");
    assert_true(has_ended(&a, call));
    call = begin_ask(&c, &a, "POST", WALK("7"));
    quiet(&a);
    STATUS(post_to(&c, &a, cancel), "202");
    assert_true(has_ended(&a, call));
    tear_down(&a, &b);
}

static void answers_in_a_batch_are_taken_too(void **state)
{
    (void)state;
    struct replica a, b;
    char id[64];
    char body[256];
    set_up_two(&a, &b);
    struct client c = {.world = &a.w};
    const char *text = post_to(&c, &a,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-03-26\",\"capabilities\":" CAN "}}");
    assert_int_equal(sscanf(strcasestr(text, "mcp-session-id: ") + 16, "%127[^\r]", c.session), 1);
    lp_id call = begin_ask(&c, &a, "POST", TOOL("7", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    snprintf(body, sizeof body,
        "[{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}},"
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}]",
        id);
    lp_id conn = begin_ask(&c, &b, "POST", body);
    text = await_part(&b, conn, "HTTP/1.1 ", &a);
    STATUS(text, "200");
    HAS(text, "[{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}]");
    await_part(&a, call, "\"ok\"", &b);
    /* and one that is not taken is not said to be */
    call = begin_ask(&c, &a, "POST", TOOL("8", "query"));
    quiet(&a);
    take_question(got(&a.w, call), id);
    a.is_deaf = true;
    snprintf(body, sizeof body, "[{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}]", id);
    conn = begin_ask(&c, &b, "POST", body);
    quiet(&b);
    pass(&b.w, 3 * SECOND);
    quiet(&b);
    STATUS(got(&b.w, conn), "503");
    tear_down(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_the_same_everywhere),
        cmocka_unit_test(no_byte_leaves_before_it_is_stored),
        cmocka_unit_test(an_image_that_is_pushed_out_comes_back),
        cmocka_unit_test(a_session_is_its_principals),
        cmocka_unit_test(what_is_not_ours_is_not_found),
        cmocka_unit_test(level_and_subscriptions_hold_everywhere),
        cmocka_unit_test(what_is_told_while_nobody_wakes_comes_with_the_next_look),
        cmocka_unit_test(the_newest_get_counts),
        cmocka_unit_test(a_get_that_leaves_does_not_end_the_next_one),
        cmocka_unit_test(a_stream_goes_on_at_another_replica),
        cmocka_unit_test(a_stream_whose_writer_has_died_ends),
        cmocka_unit_test(so_many_streams_are_read_and_no_more),
        cmocka_unit_test(what_is_kept_of_a_stream_is_bounded),
        cmocka_unit_test(a_stop_sends_streams_elsewhere),
        cmocka_unit_test(delete_ends_what_runs_elsewhere),
        cmocka_unit_test(a_session_that_expires_under_a_call_is_gone),
        cmocka_unit_test(asked_here_answered_there),
        cmocka_unit_test(nobody_to_ask_is_said),
        cmocka_unit_test(what_is_not_taken_in_time_is_said),
        cmocka_unit_test(a_full_box_takes_nothing),
        cmocka_unit_test(a_call_is_cancelled_from_anywhere),
        cmocka_unit_test(answers_in_a_batch_are_taken_too),
    };
    return cmocka_run_group_tests(tests, begin_redis, end_redis);
}
