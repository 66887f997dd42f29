/* liblimpet-server mounted in a host program [S4]: requests handed in whole and in pieces, answers
 * taken in pieces, streams, clients that leave, bodies that are not what they said; and the
 * owner-id table for POST, GET and DELETE. By limpet-server.h alone. */
#include "fed_harness.h"

static void greet(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_text(call, limpet_str("hello"));
}

static void large(void *context, struct limpet_call *call)
{
    (void)context;
    static char text[200000];
    memset(text, 'x', sizeof text);
    limpet_call_text(call, limpet_bytes(text, sizeof text));
}

/* Waits, until somebody answers. */
static void later(void *context, struct limpet_call *call)
{
    uint64_t *id = context;
    *id = limpet_call_id(call);
}

static void on_over(void *context, struct limpet_call *call)
{
    uint64_t *id = context;
    assert_true(*id == limpet_call_id(call));
    *id = 0;
}

static void add(struct limpet_server *server, const char *name, struct limpet_handler handler)
{
    struct limpet_tool tool = {.name = name, .handler = handler};
    assert_int_equal(limpet_server_add_tool(server, &tool), LIMPET_OK);
}

static uint64_t waiting; /* the id of a call of the tool `later` */

static struct limpet_server *new_server(struct limpet_server_options options)
{
    struct limpet_server *server = NULL;
    options.name = "test";
    options.version = "1";
    options.lists_change = true;
    assert_int_equal(limpet_server_new(NULL, &options, &server), LIMPET_OK);
    add(server, "greet", (struct limpet_handler){.run = greet});
    add(server, "large", (struct limpet_handler){.run = large});
    add(server, "later",
        (struct limpet_handler){.run = later, .over = on_over, .context = &waiting});
    waiting = 0;
    return server;
}

static struct limpet_server *plain_server(void)
{
    return new_server((struct limpet_server_options){.path = NULL});
}

#define INITIALIZE INITIALIZE_WITH("{}")

/* --- whole, and in pieces --------------------------------------------------------------------- */

static void test_a_session(void **state)
{
    (void)state;
    struct heard heard;
    char session[SESSION_ROOM];
    struct limpet_server *server = plain_server();
    open_session(server, INITIALIZE, session);
    assert_int_equal(strlen(session), 36);
    assert_int_equal(limpet_server_session_count(server), 1);
    post(server, session, CALL("1", "greet", "{}"), &heard);
    assert_int_equal(heard.status, 200);
    assert_int_equal(heard.body_bytes, heard.len);
    assert_string_equal(heard.type, "application/json");
    HAS(heard, "\"text\":\"hello\"");
    ask(server, (struct asked){.method = "DELETE", .session = session}, &heard);
    assert_int_equal(heard.status, 200);
    assert_int_equal(heard.body_bytes, 0);
    assert_int_equal(heard.ends, 1);
    post(server, session, CALL("2", "greet", "{}"), &heard);
    assert_int_equal(heard.status, 404);
    limpet_server_free(server);
}

static void test_other_paths_and_methods(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_server *server = new_server((struct limpet_server_options){.path = "/elsewhere"});
    post(server, NULL, INITIALIZE, &heard);
    assert_int_equal(heard.status, 404);
    limpet_server_free(server);
    server = plain_server();
    ask(server, (struct asked){.method = "HEAD"}, &heard);
    assert_int_equal(heard.status, 405);
    assert_int_equal(heard.len, 0);
    assert_int_equal(heard.ends, 1);
    ask(server, (struct asked){.method = "PUT", .body = "{}"}, &heard);
    assert_int_equal(heard.status, 405);
    limpet_server_free(server);
}

static uint64_t begin_in_pieces(
    struct limpet_server *server, const char *length, struct heard *heard)
{
    struct asked asked = {.method = "POST", .body = ""};
    struct limpet_field fields[FIELDS_MAX];
    if (length)
        asked.more = (struct limpet_field){limpet_str("content-length"), limpet_str(length)};
    struct limpet_request request = request_of(&asked, fields);
    struct limpet_answer answer = answer_to(heard);
    uint64_t exchange = 0;
    request.body_follows = true;
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
    return exchange;
}

static void test_a_body_in_pieces(void **state)
{
    (void)state;
    struct heard heard;
    char length[24];
    struct limpet_server *server = plain_server();
    snprintf(length, sizeof length, "%zu", strlen(INITIALIZE));
    for (int known = 0; known < 2; known++) {
        uint64_t exchange = begin_in_pieces(server, known ? length : NULL, &heard);
        for (size_t i = 0; i < strlen(INITIALIZE); i += 7) {
            size_t left = strlen(INITIALIZE) - i;
            assert_int_equal(limpet_exchange_body(server, exchange,
                                 limpet_bytes(&INITIALIZE[i], left < 7 ? left : 7)),
                LIMPET_OK);
        }
        assert_int_equal(limpet_exchange_end(server, exchange), LIMPET_OK);
        assert_int_equal(heard.status, 200);
        assert_int_equal(heard.ends, 1);
        assert_int_equal(limpet_exchange_end(server, exchange), LIMPET_OK); /* dead: no harm */
        assert_int_equal(limpet_exchange_body(server, exchange, limpet_str("x")), LIMPET_OK);
        limpet_exchange_resume(server, exchange);
        limpet_exchange_left(server, exchange);
        assert_int_equal(heard.ends, 1);
    }
    limpet_server_free(server);
}

/* Else the rest would be read as a second request, made by the client alone. */
static void test_a_body_that_is_not_as_long_as_it_says(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_server *server = plain_server();
    uint64_t exchange = begin_in_pieces(server, "3", &heard);
    assert_int_equal(limpet_exchange_body(server, exchange, limpet_str("{}  GET")), LIMPET_ERANGE);
    assert_int_equal(heard.ends, 1);
    assert_false(heard.is_whole);
    exchange = begin_in_pieces(server, "3", &heard);
    assert_int_equal(limpet_exchange_body(server, exchange, limpet_str("{}")), LIMPET_OK);
    assert_int_equal(limpet_exchange_end(server, exchange), LIMPET_ERANGE);
    assert_int_equal(heard.ends, 1);
    assert_false(heard.is_whole);
    limpet_server_free(server);
}

/* The first piece may come with the head; what began is told its end, and not by an error too. */
static void test_a_first_piece_that_is_too_long(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_field fields[FIELDS_MAX];
    struct asked asked = {.method = "POST",
        .body = "{}  GET",
        .more = {limpet_str("Content-Length"), limpet_str("2")}};
    struct limpet_server *server = plain_server();
    struct limpet_request request = request_of(&asked, fields);
    struct limpet_answer answer = answer_to(&heard);
    uint64_t exchange = 0;
    request.body_follows = true;
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
    assert_int_equal(heard.ends, 1);
    assert_false(heard.is_whole);
    limpet_server_free(server);
}

static void test_what_cannot_stand_in_http(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_field fields[FIELDS_MAX], many[130];
    struct limpet_server *server = plain_server();
    const struct asked bad[] = {
        {.method = "GET x"},
        {.method = "GET", .more = {limpet_str("a b"), limpet_str("1")}},
        {.method = "GET", .more = {limpet_str("a"), limpet_str("1\r\nb: 2")}},
    };
    uint64_t exchange = 7;
    struct limpet_answer answer = answer_to(&heard);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct limpet_request request = request_of(&bad[i], fields);
        assert_int_equal(
            limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_ESYNTAX);
    }
    struct limpet_request request = request_of(&(struct asked){.method = "GET"}, fields);
    for (size_t i = 0; i < 130; i++)
        many[i] = (struct limpet_field){limpet_str("a"), limpet_str("b")};
    request.fields = many;
    request.field_count = 130;
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_ELIMIT);
    assert_int_equal(heard.heads + heard.ends, 0);
    assert_int_equal(exchange, 7);
    request.field_count = 0; /* no Host: HTTP/1.1 wants one */
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
    assert_int_equal(heard.status, 400);
    limpet_server_free(server);
}

/* --- streams, back pressure, leaving ---------------------------------------------------------- */

static void test_a_host_that_takes_little_at_a_time(void **state)
{
    (void)state;
    struct heard heard;
    char session[SESSION_ROOM];
    struct limpet_server *server = plain_server();
    open_session(server, INITIALIZE, session);
    struct limpet_field fields[FIELDS_MAX];
    struct asked asked = {.method = "POST", .session = session, .body = CALL("1", "large", "{}")};
    struct limpet_request request = request_of(&asked, fields);
    struct limpet_answer answer = answer_to(&heard);
    uint64_t exchange;
    size_t total = 0;
    heard.takes = 1;
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
    for (int turns = 0; !heard.ends && turns < 1000; turns++) {
        assert_int_equal(heard.takes, 0);
        total += heard.len;
        heard.len = 0;
        heard.takes = 1;
        limpet_exchange_resume(server, exchange);
    }
    total += heard.len;
    assert_true(heard.is_whole);
    assert_true((int64_t)total == heard.body_bytes && total > 200000);
    limpet_server_free(server);
}

static void test_a_call_that_is_answered_later(void **state)
{
    (void)state;
    struct heard heard;
    char session[SESSION_ROOM];
    struct limpet_server *server = plain_server();
    open_session(server, INITIALIZE, session);
    post(server, session, CALL("1", "later", "{}"), &heard);
    assert_int_equal(heard.status, 200);
    assert_string_equal(heard.type, "text/event-stream");
    assert_int_equal(heard.body_bytes, -1);
    assert_int_equal(heard.ends, 0);
    limpet_call_text(limpet_server_call(server, waiting), limpet_str("at last"));
    LACKS(heard, "at last");
    limpet_server_turn(server);
    HAS(heard, "at last");
    assert_int_equal(heard.ends, 1);
    assert_true(heard.is_whole);
    assert_true(waiting == 0 && !limpet_server_call(server, 1));
    limpet_server_free(server);
}

static void test_a_get_stream(void **state)
{
    (void)state;
    struct heard stream, heard;
    char session[SESSION_ROOM];
    struct limpet_server *server = plain_server();
    open_session(server, INITIALIZE, session);
    ask(server, (struct asked){.method = "GET", .session = session}, &stream);
    assert_int_equal(stream.status, 200);
    limpet_server_list_changed(server, LIMPET_LIST_TOOLS);
    limpet_server_turn(server);
    HAS(stream, "notifications/tools/list_changed");
    assert_int_equal(stream.ends, 0);
    ask(server, (struct asked){.method = "GET", .session = session}, &heard);
    assert_int_equal(heard.status, 409);
    limpet_exchange_left(server, stream.exchange);
    assert_int_equal(stream.ends, 0); /* nothing more is said to it */
    ask(server, (struct asked){.method = "GET", .session = session}, &heard);
    assert_int_equal(heard.status, 200);
    ask(server, (struct asked){.method = "DELETE", .session = session}, &stream);
    assert_int_equal(heard.ends, 1);
    limpet_server_free(server);
}

static void test_what_is_open_when_the_server_is_freed(void **state)
{
    (void)state;
    struct heard heard;
    char session[SESSION_ROOM];
    struct limpet_server *server = plain_server();
    open_session(server, INITIALIZE, session);
    post(server, session, CALL("1", "later", "{}"), &heard);
    limpet_server_free(server);
    assert_int_equal(heard.ends, 1);
    assert_false(heard.is_whole);
    assert_true(waiting == 0);
}

static void test_a_stop(void **state)
{
    (void)state;
    struct heard heard, late;
    char session[SESSION_ROOM];
    struct limpet_server *server = new_server((struct limpet_server_options){.grace_ms = 1});
    open_session(server, INITIALIZE, session);
    post(server, session, CALL("1", "later", "{}"), &heard);
    assert_int_equal(limpet_server_stop(server), LIMPET_OK);
    assert_int_equal(limpet_server_timeout_ms(server), 0);
    limpet_server_turn(server);
    struct limpet_field fields[FIELDS_MAX];
    struct limpet_request request = request_of(&(struct asked){.method = "GET"}, fields);
    struct limpet_answer answer = answer_to(&late);
    assert_int_equal(
        limpet_exchange_begin(server, &request, &answer, &late.exchange), LIMPET_ELIMIT);
    assert_int_equal(late.ends, 0);
    while (!limpet_server_is_stopped(server))
        limpet_server_turn(server); /* for a millisecond: until the grace is over */
    HAS(heard, "the server is stopping");
    assert_int_equal(heard.ends, 1);
    limpet_server_free(server);
}

/* --- the owner-id table, issue 4 acceptance 2 ------------------------------------------------- */

static const char *const METHODS[] = {"POST", "GET", "DELETE"};

static void ask_as(struct limpet_server *server, const char *method, const char *session,
    struct limpet_field more, struct heard *heard)
{
    bool is_post = method[0] == 'P';
    ask(server,
        (struct asked){.method = method,
            .session = session,
            .body = is_post ? CALL("\"x\"", "greet", "{}") : NULL,
            .more = more},
        heard);
    assert_int_equal(heard->ends, 1);
    assert_true(heard->is_whole);
}

static const struct limpet_field NO_MORE;

static void expect_replay(const struct heard *heard, const char *value)
{
    assert_int_equal(heard->status, 204);
    assert_string_equal(heard->replay, value);
    assert_int_equal(heard->len, 0);
}

static void expect_lost(const struct heard *heard, bool is_post)
{
    assert_int_equal(heard->status, 404);
    HAS(*heard, "\"code\":-32001,\"message\":\"Session not found\"");
    HAS(*heard, is_post ? "\"id\":\"x\"" : "\"id\":null");
    LACKS(*heard, "m2");
    assert_string_equal(heard->replay, "");
}

static void owner_table(struct limpet_server *server, const char *method)
{
    static const char *const LOST[] = {"m1." UUID, UUID, "m2;x=y", "m2;x=y." UUID,
        "m23456789012345678901234567890123.1", ".", "", "m2.", "." UUID, "m1.", "m\xc3\xa9.1",
        "m2\r\nfly-replay: instance=m3." UUID, "m2\n." UUID};
    const struct limpet_field forged = {limpet_str("Limpet-Hop"), limpet_str("v1.forged")};
    const struct limpet_field marks[] = {
        {limpet_str("Fly-Replay-Src"), limpet_str("instance=m3;t=1")},
        {limpet_str("Fly-Replay-Failed"), limpet_str("instance=m2")}};
    struct heard heard;
    ask_as(server, method, "m2." UUID, NO_MORE, &heard);
    expect_replay(&heard, "prefer_instance=m2;timeout=5s");
    ask_as(server, method, "m2." UUID, forged, &heard);
    expect_replay(&heard, "prefer_instance=m2;timeout=5s");
    for (size_t i = 0; i < sizeof LOST / sizeof *LOST; i++) {
        ask_as(server, method, LOST[i], NO_MORE, &heard);
        expect_lost(&heard, method[0] == 'P');
    }
    for (size_t i = 0; i < 2; i++) {
        ask_as(server, method, "m2." UUID, marks[i], &heard);
        expect_lost(&heard, method[0] == 'P');
    }
    ask_as(server, method, NULL, NO_MORE, &heard);
    assert_int_equal(heard.status, 400);
    assert_string_equal(heard.replay, "");
}

static void test_the_owner_id_table(void **state)
{
    (void)state;
    char session[SESSION_ROOM];
    struct limpet_server *server =
        new_server((struct limpet_server_options){.owner = "m1", .replay = LIMPET_REPLAY_PREFER});
    for (size_t i = 0; i < 3; i++)
        owner_table(server, METHODS[i]);
    open_session(server, INITIALIZE, session);
    assert_memory_equal(session, "m1.", 3);
    limpet_server_free(server);
    struct heard heard;
    server =
        new_server((struct limpet_server_options){.owner = "m1", .replay = LIMPET_REPLAY_STRICT});
    ask_as(server, "GET", "m2." UUID, NO_MORE, &heard);
    expect_replay(&heard, "instance=m2");
    limpet_server_free(server);
}

/* Also where a replay is asked for: it needs an owner. */
static void test_without_an_owner(void **state)
{
    (void)state;
    char session[SESSION_ROOM];
    struct heard heard;
    unsetenv("FLY_MACHINE_ID");
    struct limpet_server *server =
        new_server((struct limpet_server_options){.replay = LIMPET_REPLAY_PREFER});
    open_session(server, INITIALIZE, session);
    assert_int_equal(strlen(session), 36);
    assert_null(strchr(session, '.'));
    for (size_t i = 0; i < 3; i++) {
        ask_as(server, METHODS[i], "m2." UUID, NO_MORE, &heard);
        expect_lost(&heard, METHODS[i][0] == 'P');
        ask_as(server, METHODS[i], NULL, NO_MORE, &heard);
        assert_int_equal(heard.status, 400);
    }
    limpet_server_free(server);
}

/* [S5]: by the head alone, before a byte of the body has come. */
static void test_a_body_that_is_too_large_to_be_replayed(void **state)
{
    (void)state;
    static const char *const LENGTHS[] = {"1000001", NULL};
    struct heard heard;
    struct limpet_server *server =
        new_server((struct limpet_server_options){.owner = "m1", .replay = LIMPET_REPLAY_PREFER});
    for (size_t i = 0; i < 2; i++) {
        struct limpet_field fields[FIELDS_MAX];
        struct asked asked = {.method = "POST", .session = "m2." UUID, .body = ""};
        if (LENGTHS[i])
            asked.more =
                (struct limpet_field){limpet_str("Content-Length"), limpet_str(LENGTHS[i])};
        struct limpet_request request = request_of(&asked, fields);
        struct limpet_answer answer = answer_to(&heard);
        uint64_t exchange;
        request.body_follows = true;
        assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
        assert_int_equal(heard.status, 413);
        HAS(heard, "1,000,000 bytes");
        assert_int_equal(heard.ends, 1);
        assert_int_equal(limpet_exchange_body(server, exchange, limpet_str("{")), LIMPET_OK);
    }
    limpet_server_free(server);
}

static void test_stateless(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_server *server =
        new_server((struct limpet_server_options){.sessions = LIMPET_SESSIONS_STATELESS});
    post(server, NULL, CALL("1", "greet", "{}"), &heard);
    HAS(heard, "hello");
    assert_string_equal(heard.session, "");
    limpet_server_free(server);
}

static bool on_bearer(
    void *context, struct limpet_span token, unsigned char principal[LIMPET_PRINCIPAL_BYTES])
{
    assert_string_equal(context, "context");
    assert_int_equal(principal[0], 0);
    if (token.len)
        principal[0] = (unsigned char)token.ptr[0];
    return token.len == 1;
}

static void test_a_session_is_its_principals(void **state)
{
    (void)state;
    char context[] = "context";
    struct heard heard;
    struct limpet_server *server = new_server((struct limpet_server_options){.bearer = on_bearer,
        .bearer_context = context,
        .resource_metadata = "https://a.example/m"});
    post(server, NULL, INITIALIZE, &heard);
    assert_int_equal(heard.status, 401);
    struct asked asked = {.method = "POST",
        .body = INITIALIZE,
        .more = {limpet_str("Authorization"), limpet_str("Bearer a")}};
    ask(server, asked, &heard);
    assert_int_equal(heard.status, 200);
    char session[SESSION_ROOM];
    snprintf(session, sizeof session, "%s", heard.session);
    asked.session = session;
    asked.body = CALL("1", "greet", "{}");
    ask(server, asked, &heard);
    assert_int_equal(heard.status, 200);
    asked.more.value = limpet_str("Bearer b");
    ask(server, asked, &heard);
    assert_int_equal(heard.status, 404);
    limpet_server_free(server);
}

static void test_one_that_listens_takes_no_exchange_and_the_other_way_round(void **state)
{
    (void)state;
    struct heard heard;
    struct limpet_server *server = plain_server();
    struct limpet_field fields[FIELDS_MAX];
    struct limpet_request request = request_of(&(struct asked){.method = "GET"}, fields);
    struct limpet_answer answer = answer_to(&heard);
    struct limpet_feeder feeder = {.context = NULL};
    assert_int_equal(limpet_server_listen(server, "127.0.0.1:0"), LIMPET_OK);
    assert_int_equal(
        limpet_exchange_begin(server, &request, &answer, &heard.exchange), LIMPET_EEXISTS);
    assert_int_equal(limpet_server_feed(server, &feeder), LIMPET_EEXISTS);
    limpet_server_turn(server);
    limpet_server_free(server);
    server = plain_server();
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &heard.exchange), LIMPET_OK);
    assert_int_equal(limpet_server_listen(server, "127.0.0.1:0"), LIMPET_EEXISTS);
    assert_int_equal(limpet_server_feed(server, &feeder), LIMPET_EEXISTS);
    limpet_server_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session),
        cmocka_unit_test(test_other_paths_and_methods),
        cmocka_unit_test(test_a_body_in_pieces),
        cmocka_unit_test(test_a_body_that_is_not_as_long_as_it_says),
        cmocka_unit_test(test_a_first_piece_that_is_too_long),
        cmocka_unit_test(test_what_cannot_stand_in_http),
        cmocka_unit_test(test_a_host_that_takes_little_at_a_time),
        cmocka_unit_test(test_a_call_that_is_answered_later),
        cmocka_unit_test(test_a_get_stream),
        cmocka_unit_test(test_what_is_open_when_the_server_is_freed),
        cmocka_unit_test(test_a_stop),
        cmocka_unit_test(test_the_owner_id_table),
        cmocka_unit_test(test_without_an_owner),
        cmocka_unit_test(test_a_body_that_is_too_large_to_be_replayed),
        cmocka_unit_test(test_stateless),
        cmocka_unit_test(test_a_session_is_its_principals),
        cmocka_unit_test(test_one_that_listens_takes_no_exchange_and_the_other_way_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
