/* Calls as a handler of liblimpet-server has them: what it reads, sends meanwhile, waits for, asks
 * and keeps, what is refused, and how it ends. By limpet-server.h alone, in exchanges. */
#include "fed_harness.h"

static bool is_text(struct limpet_span span, const char *text)
{
    return span.len == strlen(text) && (!span.len || memcmp(span.ptr, text, span.len) == 0);
}

/* A server of one tool, "it", with this handler, and a session on it. */
struct place {
    struct limpet_server *server;
    char session[SESSION_ROOM];
    struct heard heard; /* of the last call */
};

static void set_up(struct place *place, struct limpet_handler handler, const char *initialize)
{
    struct limpet_server_options options = {
        .name = "test", .version = "1", .has_subscriptions = true};
    struct limpet_tool tool = {.name = "it", .more = "\"title\":\"It\"", .handler = handler};
    assert_int_equal(limpet_server_new(NULL, &options, &place->server), LIMPET_OK);
    assert_int_equal(limpet_server_add_tool(place->server, &tool), LIMPET_OK);
    open_session(place->server, initialize, place->session);
}

#define PLAIN INITIALIZE_WITH("{}")
#define CAPABLE INITIALIZE_WITH("{\"elicitation\":{}}")
#define CALL_IT(arguments)                                                                         \
    REQUEST("1", "tools/call",                                                                     \
        "{\"name\":\"it\",\"arguments\":" arguments ",\"_meta\":{\"progressToken\":\"p\"}}")

static void call_it(struct place *place, const char *message)
{
    post(place->server, place->session, message, &place->heard);
}

/* Lets the time go on until the call is over. */
static void run_until_over(struct place *place)
{
    while (!place->heard.ends) {
        int ms = limpet_server_timeout_ms(place->server);
        assert_true(ms >= 0);
        limpet_server_turn(place->server);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void read_all(void *context, struct limpet_call *call)
{
    (void)context;
    assert_true(is_text(limpet_call_arguments(call), "{\"a\": [1 ] }"));
    assert_true(is_text(limpet_json_member(limpet_call_params(call), "name"), "\"it\""));
    assert_true(is_text(limpet_call_uri(call), ""));
    assert_true(is_text(limpet_call_variable(call, "x"), ""));
    assert_null(limpet_call_data(call));
    limpet_call_set_data(call, context);
    limpet_call_result(call, limpet_str("{\"content\":[],\"x\":1}"));
}

static void test_what_was_asked(void **state)
{
    (void)state;
    struct place place;
    set_up(&place, (struct limpet_handler){.run = read_all}, PLAIN);
    call_it(&place, CALL_IT("{\"a\": [1 ] }"));
    HAS(place.heard, "\"result\":{\"content\":[],\"x\":1}");
    post(place.server, place.session, REQUEST("2", "tools/list", "{}"), &place.heard);
    HAS(place.heard, "\"inputSchema\":{\"type\":\"object\"}");
    HAS(place.heard, "\"title\":\"It\"");
    limpet_server_free(place.server);
}

static void read_resource(void *context, struct limpet_call *call)
{
    (void)context;
    assert_true(is_text(limpet_call_uri(call), "note://7/x"));
    assert_true(is_text(limpet_call_variable(call, "n"), "7"));
    assert_true(is_text(limpet_call_variable(call, "m"), ""));
    limpet_call_result(call, limpet_str("{\"contents\":[]}"));
}

static void test_resources_prompts_and_completion(void **state)
{
    (void)state;
    struct place place;
    struct limpet_resource resource = {
        .uri = "note://{n}/x", .name = "note", .handler = {.run = read_resource}};
    struct limpet_prompt prompt = {.name = "p", .handler = {.run = read_all}};
    set_up(&place, (struct limpet_handler){.run = read_all}, PLAIN);
    assert_int_equal(limpet_server_add_resource(place.server, &resource), LIMPET_OK);
    assert_int_equal(limpet_server_add_prompt(place.server, &prompt), LIMPET_OK);
    call_it(&place, REQUEST("1", "resources/read", "{\"uri\":\"note://7/x\"}"));
    HAS(place.heard, "\"contents\":[]");
    call_it(&place, REQUEST("1", "prompts/list", "{}"));
    HAS(place.heard, "\"arguments\":[]");
    struct heard stream;
    ask(place.server, (struct asked){.method = "GET", .session = place.session}, &stream);
    call_it(&place, REQUEST("1", "resources/subscribe", "{\"uri\":\"note://7/x\"}"));
    limpet_server_resource_updated(place.server, "note://7/x");
    limpet_server_turn(place.server);
    HAS(stream, "\"uri\":\"note://7/x\"");
    limpet_server_free(place.server);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void end_as_told(void *context, struct limpet_call *call)
{
    (void)context;
    char how[16];
    struct limpet_span text;
    assert_int_equal(
        limpet_json_text(limpet_call_arguments(call), "how", how, sizeof how, &text), LIMPET_OK);
    if (strcmp(how, "text") == 0)
        limpet_call_text(call, limpet_str("a \"b\""));
    else if (strcmp(how, "tool_error") == 0)
        limpet_call_tool_error(call, limpet_str("a \"b\""));
    else if (strcmp(how, "error") == 0)
        limpet_call_error(call, -32602, "a \"b\"");
    else if (strcmp(how, "lacks") == 0)
        limpet_call_lacks(call, "{\"sampling\":{}}");
    else if (strcmp(how, "lacks_null") == 0)
        limpet_call_lacks(call, NULL);
    else if (strcmp(how, "error_null") == 0)
        limpet_call_error(call, -32602, NULL);
    else
        limpet_call_result(call, text);
}

static void test_ends(void **state)
{
    (void)state;
    struct place place;
    set_up(&place, (struct limpet_handler){.run = end_as_told}, PLAIN);
    call_it(&place, CALL_IT("{\"how\":\"text\"}"));
    HAS(place.heard, "\"text\":\"a \\\"b\\\"\"}]}");
    call_it(&place, CALL_IT("{\"how\":\"tool_error\"}"));
    HAS(place.heard, "\"text\":\"a \\\"b\\\"\"}],\"isError\":true}");
    call_it(&place, CALL_IT("{\"how\":\"error\"}"));
    HAS(place.heard, "\"code\":-32602,\"message\":\"a \\\"b\\\"\"");
    call_it(&place, CALL_IT("{\"how\":\"lacks\"}"));
    HAS(place.heard, "the client lacks a capability that this needs");
    call_it(&place, CALL_IT("{\"how\":\"lacks_null\"}"));
    HAS(place.heard, "the client lacks a capability that this needs");
    call_it(&place, CALL_IT("{\"how\":\"error_null\"}"));
    HAS(place.heard, "\"message\":\"\"");
    call_it(&place, CALL_IT("{\"how\":\"{\\\"a\\\":1\"}")); /* no whole JSON */
    HAS(place.heard, "\"code\":-32603,\"message\":\"the program's result is no JSON object\"");
    call_it(&place, CALL_IT("{\"how\":\"[1]\"}"));
    HAS(place.heard, "is no JSON object");
    limpet_server_free(place.server);
}

/* --- meanwhile -------------------------------------------------------------------------------- */

static void talk(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_progress(call, 1, 2);
    limpet_call_log(call, LIMPET_LEVEL_WARNING, "me", limpet_str("a \"b\""));
    limpet_call_log(call, (enum limpet_level)9, NULL, limpet_str("not said"));
    assert_false(limpet_call_log_session(call, (enum limpet_level)9, NULL, limpet_str("x")));
    bool is_sent = limpet_call_log_session(call, LIMPET_LEVEL_INFO, NULL, limpet_str("to all"));
    assert_false(limpet_call_log_session_json(call, LIMPET_LEVEL_INFO, NULL, limpet_str("{,}")));
    assert_false(limpet_call_log_session_json(call, LIMPET_LEVEL_INFO, NULL, limpet_str(" ")));
    assert_false(limpet_call_log_session_json(call, (enum limpet_level)9, NULL, limpet_str("1")));
    limpet_call_poll(call); /* the client comes again for the rest */
    limpet_call_text(call, limpet_str(is_sent ? "sent" : "not sent"));
}

static void test_notifications(void **state)
{
    (void)state;
    struct place place;
    struct heard stream;
    set_up(&place, (struct limpet_handler){.run = talk}, PLAIN);
    ask(place.server, (struct asked){.method = "GET", .session = place.session}, &stream);
    call_it(&place, CALL_IT("{}"));
    HAS(place.heard, "\"progressToken\":\"p\",\"progress\":1,\"total\":2");
    HAS(place.heard, "\"level\":\"warning\",\"logger\":\"me\",\"data\":\"a \\\"b\\\"\"");
    LACKS(place.heard, "not said");
    HAS(stream, "\"data\":\"to all\"");
    assert_int_equal(place.heard.ends, 1);
    struct asked again = {.method = "GET",
        .session = place.session,
        .more = {limpet_str("Last-Event-ID"), limpet_str("1-2")}};
    ask(place.server, again, &place.heard);
    HAS(place.heard, "\"text\":\"sent\"");
    limpet_server_free(place.server);
}

/* --- waiting and asking ----------------------------------------------------------------------- */

static void wait_a_little(void *context, struct limpet_call *call)
{
    (void)context;
    assert_int_equal(limpet_call_wait(call, 2), LIMPET_OK);
}

static void on_time(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    int *overs = context;
    assert_int_equal(*overs, 0);
    assert_int_equal(wake->kind, LIMPET_WAKE_TIME);
    limpet_call_text(call, limpet_str("waited"));
}

static void count_over(void *context, struct limpet_call *call)
{
    (void)call;
    ++*(int *)context;
}

static void test_waiting(void **state)
{
    (void)state;
    int overs = 0;
    struct place place;
    set_up(&place,
        (struct limpet_handler){
            .run = wait_a_little, .wake = on_time, .over = count_over, .context = &overs},
        PLAIN);
    call_it(&place, CALL_IT("{}"));
    run_until_over(&place);
    HAS(place.heard, "waited");
    assert_int_equal(overs, 1);
    limpet_server_free(place.server);
}

static void refuse_all(void *context, struct limpet_call *call)
{
    (void)context;
    assert_int_equal(limpet_call_wait(call, 1), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_call_ask(call, "roots/list", limpet_str(""), 1), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_call_state_get(call), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_call_state_set(call, 0, limpet_str("x")), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_call_task(call, 0), LIMPET_ERANGE);
    assert_int_equal(limpet_call_task(call, 1000), LIMPET_EUNSUPPORTED);
    limpet_call_text(call, limpet_str("refused"));
}

static void test_a_handler_without_wake_cannot_wait(void **state)
{
    (void)state;
    struct place place;
    set_up(&place, (struct limpet_handler){.run = refuse_all}, CAPABLE);
    call_it(&place, CALL_IT("{}"));
    HAS(place.heard, "refused");
    limpet_server_free(place.server);
}

#define QUESTION "{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\"}}"

static void ask_client(void *context, struct limpet_call *call)
{
    uint32_t *timeout_ms = context;
    assert_int_equal(
        limpet_call_ask(call, "elicitation/create", limpet_str("{"), 9), LIMPET_ESYNTAX);
    assert_int_equal(
        limpet_call_ask(call, "sampling/createMessage", limpet_str("{}"), 9), LIMPET_EUNSUPPORTED);
    int err = limpet_call_ask(call, "elicitation/create", limpet_str(QUESTION), *timeout_ms);
    if (err) {
        limpet_call_tool_error(call, limpet_str(limpet_error_name(err)));
        return;
    }
    assert_int_equal(
        limpet_call_ask(call, "elicitation/create", limpet_str("{}"), 9), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_call_wait(call, 1), LIMPET_EUNSUPPORTED);
}

static void on_answer(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    if (wake->kind == LIMPET_WAKE_TIMEOUT)
        limpet_call_text(call, limpet_str("no answer"));
    else if (wake->error.len)
        limpet_call_text(call, wake->error);
    else
        limpet_call_text(call, wake->result);
}

static void answer_question(struct place *place, const char *answer)
{
    char message[512];
    struct heard heard;
    const char *id = strstr(place->heard.body, "\"id\":\"");
    assert_non_null(id);
    const char *end = strchr(id + 6, '"');
    snprintf(
        message, sizeof message, "{\"jsonrpc\":\"2.0\",%.*s\",%s}", (int)(end - id), id, answer);
    post(place->server, place->session, message, &heard);
    assert_int_equal(heard.status, 202);
}

static void test_questions(void **state)
{
    (void)state;
    uint32_t timeout_ms = 60000;
    struct place place;
    set_up(&place,
        (struct limpet_handler){.run = ask_client, .wake = on_answer, .context = &timeout_ms},
        CAPABLE);
    call_it(&place, CALL_IT("{}"));
    HAS(place.heard, "\"method\":\"elicitation/create\",\"params\":" QUESTION);
    answer_question(&place, "\"result\":{\"action\":\"decline\"}");
    assert_int_equal(place.heard.ends, 1);
    HAS(place.heard, "{\\\"action\\\":\\\"decline\\\"}");
    call_it(&place, CALL_IT("{}"));
    answer_question(&place, "\"error\":{\"code\":-1,\"message\":\"no\"}");
    HAS(place.heard, "\\\"code\\\":-1");
    timeout_ms = 1;
    call_it(&place, CALL_IT("{}"));
    run_until_over(&place);
    HAS(place.heard, "no answer");
    limpet_server_free(place.server);
}

static void ask_all(void *context, struct limpet_call *call)
{
    static const struct limpet_question BAD[][2] = {
        {{NULL, "roots/list", {NULL, 0}}, {"b", "roots/list", {NULL, 0}}},
        {{"", "roots/list", {NULL, 0}}, {"b", "roots/list", {NULL, 0}}},
        {{"a-b", "roots/list", {NULL, 0}}, {"b", "roots/list", {NULL, 0}}},
        {{"a", NULL, {NULL, 0}}, {"b", "roots/list", {NULL, 0}}},
        {{"a", "roots/list", {"[]", 2}}, {"b", "roots/list", {NULL, 0}}},
        {{"a", "roots/list", {NULL, 0}}, {"a", "roots/list", {NULL, 0}}},
    };
    const struct limpet_question questions[] = {{"who", "elicitation/create", limpet_str(QUESTION)},
        {"Who_2", "elicitation/create", limpet_str(QUESTION)}};
    (void)context;
    assert_int_equal(limpet_call_ask_all(call, questions, 0, 9), LIMPET_ESYNTAX);
    assert_int_equal(limpet_call_ask_all(call, questions, 17, 9), LIMPET_ELIMIT);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(limpet_call_ask_all(call, BAD[i], 2, 9), LIMPET_ESYNTAX);
    assert_int_equal(limpet_call_ask_all(call, questions, 2, 60000), LIMPET_OK);
}

static void test_several_questions(void **state)
{
    (void)state;
    struct place place;
    set_up(&place, (struct limpet_handler){.run = ask_all, .wake = on_answer}, CAPABLE);
    call_it(&place, CALL_IT("{}"));
    answer_question(&place, "\"result\":{\"action\":\"accept\"}");
    assert_int_equal(place.heard.ends, 0);
    char *second = strstr(strstr(place.heard.body, "\"id\":\"") + 1, "\"id\":\"");
    memmove(place.heard.body, second, strlen(second) + 1); /* only that is looked at */
    place.heard.len = strlen(place.heard.body);
    answer_question(&place, "\"result\":{\"action\":\"decline\"}");
    assert_int_equal(place.heard.ends, 1);
    HAS(place.heard, "\\\"who\\\":{\\\"action\\\":\\\"accept\\\"}");
    HAS(place.heard, "\\\"Who_2\\\":{\\\"action\\\":\\\"decline\\\"}");
    limpet_server_free(place.server);
}

static void test_a_client_that_cannot_be_asked(void **state)
{
    (void)state;
    uint32_t timeout_ms = 1000;
    struct place place;
    set_up(&place,
        (struct limpet_handler){.run = ask_client, .wake = on_answer, .context = &timeout_ms},
        PLAIN);
    call_it(&place, CALL_IT("{}"));
    HAS(place.heard, "UNSUPPORTED");
    limpet_server_free(place.server);
}

/* --- the session's state ---------------------------------------------------------------------- */

static void read_state(void *context, struct limpet_call *call)
{
    (void)context;
    static const char LONG[LIMPET_STATE_MAX + 1];
    assert_int_equal(
        limpet_call_state_set(call, 0, limpet_bytes(LONG, sizeof LONG)), LIMPET_ETOO_LONG);
    assert_int_equal(limpet_call_state_get(call), LIMPET_OK);
    assert_int_equal(limpet_call_state_get(call), LIMPET_EUNSUPPORTED); /* one at a time */
}

/* Adds an x; writes on a wrong revision first, which is told. */
static void add_x(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    int *step = context;
    char text[64];
    assert_int_equal(wake->kind, LIMPET_WAKE_STATE);
    if (*step == 0) {
        assert_int_equal(wake->outcome, LIMPET_STATE_DONE);
        *step = 1;
        assert_int_equal(
            limpet_call_state_set(call, wake->revision + 7, limpet_str("wrong")), LIMPET_OK);
    } else if (wake->outcome == LIMPET_STATE_CHANGED) {
        int len = snprintf(text, sizeof text, "%.*sx", (int)wake->state.len, wake->state.ptr);
        assert_int_equal(
            limpet_call_state_set(call, wake->revision, limpet_bytes(text, (size_t)len)),
            LIMPET_OK);
        *step = 2;
    } else {
        assert_int_equal(wake->outcome, LIMPET_STATE_DONE);
        snprintf(text, sizeof text, "revision %llu", (unsigned long long)wake->revision);
        *step = 0;
        limpet_call_text(call, limpet_str(text));
    }
}

static void test_state(void **state)
{
    (void)state;
    int step = 0;
    struct place place;
    set_up(
        &place, (struct limpet_handler){.run = read_state, .wake = add_x, .context = &step}, PLAIN);
    call_it(&place, CALL_IT("{}"));
    run_until_over(&place);
    HAS(place.heard, "revision 1");
    call_it(&place, CALL_IT("{}"));
    run_until_over(&place);
    HAS(place.heard, "revision 2");
    limpet_server_free(place.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_asked),
        cmocka_unit_test(test_resources_prompts_and_completion),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_a_handler_without_wake_cannot_wait),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_several_questions),
        cmocka_unit_test(test_a_client_that_cannot_be_asked),
        cmocka_unit_test(test_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
