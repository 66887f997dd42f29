/* Questions of a call in 2026-07-28 against the MCP server, through real HTTP bytes: the question
 * is the answer, the answer comes with the request asked again, at this server or another one with
 * the key; and several questions at once, in both eras. */
#include "../interop/conf_offer.h"
#include "mcp/keyring.h"
#include "modern_harness.h"

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define KEY_B "//////////////////////////////////////////8=\n"
#define CAN_ELICIT "{\"elicitation\":{}}"
#define CAN_EVERYTHING "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{}}"

enum { ASK_US = 60 * SECOND };

/* --- tools that ask --- */

static const char *question = "{\"message\":\"who?\"}";
static int over_count, run_count;

static void ask_or_say(struct lp_job *call, const char *method, const char *params)
{
    int err = lp_job_ask(call, method, lp_span_str(params), ASK_US);
    if (err)
        lp_job_tool_error(call, lp_error_name(err));
}

static void ask_once(void *ctx, struct lp_job *call)
{
    (void)ctx;
    run_count++;
    lp_job_set_state(call, NULL);
    ask_or_say(call, "elicitation/create", question);
}

static void say_answer(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    assert_int_equal(wake->kind, LP_WAKE_REPLY);
    lp_job_text(call, wake->result);
}

static void count_over(void *ctx, struct lp_job *call)
{
    (void)ctx;
    (void)call;
    over_count++;
}

static int stage;

static void ask_twice(void *ctx, struct lp_job *call)
{
    stage = 0;
    ask_once(ctx, call);
}

static void ask_again(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    if (stage++ == 0)
        ask_or_say(call, "elicitation/create", "{\"message\":\"how old?\"}");
    else
        say_answer(ctx, call, wake);
}

static void ask_all(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question all[] = {
        {"user_name", "elicitation/create", LP_SPAN("{\"message\":\"name?\"}")},
        {"capital", "sampling/createMessage", LP_SPAN("{\"maxTokens\":9}")},
        {"roots", "roots/list", LP_SPAN("")},
    };
    int err = lp_job_ask_all(call, all, 3, ASK_US);
    if (err)
        lp_job_tool_error(call, lp_error_name(err));
}

static void say_all(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    if (wake->kind == LP_WAKE_TIMEOUT)
        lp_job_text(call, LP_SPAN("no answer"));
    else
        lp_job_text(call, wake->result.len ? wake->result : wake->error);
}

static void ask_named(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_question one = {
        "user_name", "elicitation/create", LP_SPAN("{\"message\":\"name?\"}")};
    assert_int_equal(lp_job_ask_all(call, &one, 1, ASK_US), LP_OK);
}

static void ask_url(void *ctx, struct lp_job *call)
{
    (void)ctx;
    ask_or_say(call, "elicitation/create", "{\"mode\":\"url\",\"url\":\"https://x\"}");
}

static void ask_odd(void *ctx, struct lp_job *call)
{
    (void)ctx;
    ask_or_say(call, "odd/thing", "{}");
}

static void ask_later(void *ctx, struct lp_job *call)
{
    (void)ctx;
    stage = 0;
    assert_int_equal(lp_job_wait(call, SECOND), 0);
}

static void ask_now(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    if (wake->kind == LP_WAKE_TIME)
        ask_once(ctx, call);
    else
        say_answer(ctx, call, wake);
}

static char large[200 << 10];

static void ask_large(void *ctx, struct lp_job *call)
{
    (void)ctx;
    stage = 0;
    ask_or_say(call, "elicitation/create", "{\"message\":\"much?\"}");
}

#define TOOL_AS(tool, ...)                                                                         \
    {                                                                                              \
        .name = tool, .description = "x", .input_schema = OBJECT(""), .handler = {                 \
            .run = __VA_ARGS__                                                                     \
        }                                                                                          \
    }

static const struct lp_tool TOOLS[] = {
    TOOL_AS("once", ask_once, .wake = say_answer, .over = count_over),
    TOOL_AS("twice", ask_twice, .wake = ask_again),
    TOOL_AS("all", ask_all, .wake = say_all),
    TOOL_AS("named", ask_named, .wake = say_all),
    TOOL_AS("url", ask_url, .wake = say_answer),
    TOOL_AS("odd", ask_odd, .wake = say_answer),
    TOOL_AS("later", ask_later, .wake = ask_now),
    TOOL_AS("large", ask_large, .wake = ask_again),
};

static const struct lp_prompt PROMPTS[] = {{"p", "x", "[]", {.run = ask_once, .wake = say_answer}}};
static const struct lp_resource RESOURCES[] = {
    {"test://r", "r", NULL, NULL, {.run = ask_once, .wake = say_answer}}};
static const struct lp_handler COMPLETE = {.run = ask_once, .wake = say_answer};

static const struct lp_offer OFFER = {.tools = TOOLS,
    .prompts = PROMPTS,
    .resources = RESOURCES,
    .tool_count = sizeof TOOLS / sizeof *TOOLS,
    .prompt_count = 1,
    .resource_count = 1,
    .complete = &COMPLETE};

static struct lp_key principal_of(struct lp_span token)
{
    return (struct lp_key){token.len, token.len ? (unsigned char)token.ptr[0] : 0};
}

static bool take_any(void *ctx, struct lp_span token, struct lp_key *ret)
{
    (void)ctx;
    *ret = principal_of(token);
    return true;
}

static struct client begin_with(struct world *w, const char *keys)
{
    static struct lp_keyring ring;
    uint32_t line;
    struct lp_server_args args = {.bearer = take_any};
    if (keys) {
        assert_int_equal(lp_keyring_parse(lp_span_str(keys), &ring, &line), 0);
        args.keys = &ring;
    }
    start_server(w, &OFFER, args);
    w->wall_ms = 1700000000000;
    return (struct client){.world = w};
}

static struct client begin(struct world *w)
{
    return begin_with(w, NULL);
}

/* --- the client's side --- */

struct round {
    const char *tool;
    const char *arguments; /* NULL: {} */
    const char *can;       /* NULL: elicitation */
    const char *state;     /* NULL: none */
    const char *responses; /* NULL: none */
    const char *head;
};

static const char *go(struct client *c, struct round r)
{
    static char params[1 << 15];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":%s,%s%s%s%s%s%s", r.tool,
        r.arguments ? r.arguments : "{}", r.responses ? "\"inputResponses\":" : "",
        r.responses ? r.responses : "", r.responses ? "," : "",
        r.state ? "\"requestState\":\"" : "", r.state ? r.state : "", r.state ? "\"," : "");
    return ask_modern(c,
        (struct modern){.method = "tools/call",
            .name = r.tool,
            .params = params,
            .capabilities = r.can ? r.can : CAN_ELICIT,
            .head = r.head});
}

/* The state in an answer; a copy. */
static const char *state_in(const char *text)
{
    static char states[4][1 << 14];
    static unsigned turn;
    char *room = states[turn++ % 4];
    const char *at = strstr(text, "\"requestState\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%16383[^\"]", room), 1);
    return room;
}

#define ANSWER(key, value) "{\"" key "\":{\"action\":\"accept\",\"content\":{\"v\":" value "}}}"

static void a_question_is_the_answer(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    over_count = run_count = 0;
    const char *text = go(&c, (struct round){.tool = "once"});
    STATUS(text, "200");
    HAS(text, "content-type: application/json");
    HAS(text,
        "\"resultType\":\"input_required\",\"inputRequests\":{\"q1\":{\"method\":"
        "\"elicitation/create\",\"params\":{\"message\":\"who?\"}}}");
    LACKS(text, "ttlMs");
    assert_int_equal(over_count, 1);
    text = go(&c,
        (struct round){.tool = "once", .state = state_in(text), .responses = ANSWER("q1", "7")});
    STATUS(text, "200");
    HAS(text, "content-type: application/json");
    HAS(text, "\"resultType\":\"complete\"");
    HAS(text, "{\\\"action\\\":\\\"accept\\\",\\\"content\\\":{\\\"v\\\":7}}");
    assert_int_equal(over_count, 2);
    assert_int_equal(run_count, 2);
    finish(&w);
}

static void answers_gather_over_rounds(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *first = state_in(go(&c, (struct round){.tool = "twice"}));
    const char *text =
        go(&c, (struct round){.tool = "twice", .state = first, .responses = ANSWER("q1", "1")});
    HAS(text,
        "\"inputRequests\":{\"q2\":{\"method\":\"elicitation/create\",\"params\":{"
        "\"message\":\"how old?\"}}}");
    const char *second = state_in(text);
    assert_string_not_equal(first, second);
    text = go(&c, (struct round){.tool = "twice", .state = second, .responses = ANSWER("q2", "2")});
    HAS(text, "\\\"v\\\":2");
    /* What is missing is asked again, what nobody asked is passed over. */
    text = go(&c, (struct round){.tool = "twice", .state = second, .responses = ANSWER("q9", "2")});
    HAS(text, "\"inputRequests\":{\"q2\":");
    text = go(&c, (struct round){.tool = "twice", .state = second});
    HAS(text, "\"inputRequests\":{\"q2\":");
    finish(&w);
}

static void any_server_with_the_key_goes_on(void **state)
{
    (void)state;
    struct world one, other, stranger;
    struct client a = begin_with(&one, KEY_A);
    const char *kept = state_in(go(&a, (struct round){.tool = "once"}));
    struct client b = begin_with(&other, KEY_B KEY_A);
    struct round again = {.tool = "once", .state = kept, .responses = ANSWER("q1", "5")};
    HAS(go(&b, again), "\\\"v\\\":5");
    struct client c = begin(&stranger);
    const char *text = go(&c, again);
    STATUS(text, "200");
    HAS(text, "\"code\":-32602");
    HAS(text, "all replicas need one key file");
    finish(&one);
    finish(&other);
    finish(&stranger);
}

static void a_state_is_good_for_one_request(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *kept = state_in(go(&c,
        (struct round){
            .tool = "once", .arguments = "{\"a\":1}", .head = "Authorization: Bearer x\r\n"}));
    char altered[1 << 14];
    snprintf(altered, sizeof altered, "%s", kept);
    altered[20] = altered[20] == 'A' ? 'B' : 'A';
    const struct round CASES[] = {
        {.tool = "once", .arguments = "{\"a\":1}", .state = kept},
        {.tool = "once",
            .arguments = "{\"a\":2}",
            .state = kept,
            .head = "Authorization: Bearer x\r\n"},
        {.tool = "twice",
            .arguments = "{\"a\":1}",
            .state = kept,
            .head = "Authorization: Bearer x\r\n"},
        {.tool = "once",
            .arguments = "{\"a\":1}",
            .state = altered,
            .head = "Authorization: Bearer x\r\n"},
        {.tool = "once", .state = "x"},
        {.tool = "once", .state = "ls1_"},
        {.tool = "once", .state = "lp1_AAAA"},
        {.tool = "once", .state = "\\\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct round r = CASES[i];
        r.responses = ANSWER("q1", "1");
        const char *text = go(&c, r);
        STATUS(text, "200");
        HAS(text, "\"code\":-32602");
        HAS(text, "requestState ");
    }
    HAS(go(&c,
            (struct round){.tool = "once",
                .arguments = "{\"a\":1}",
                .state = kept,
                .responses = ANSWER("q1", "1"),
                .head = "Authorization: Bearer x\r\n"}),
        "complete");
    finish(&w);
}

static void a_state_expires(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *kept = state_in(go(&c, (struct round){.tool = "once"}));
    struct round again = {.tool = "once", .state = kept, .responses = ANSWER("q1", "1")};
    w.wall_ms += 60000;
    HAS(go(&c, again), "complete");
    w.wall_ms += 1;
    const char *text = go(&c, again);
    HAS(text, "-32602");
    HAS(text, "requestState has expired");
    finish(&w);
}

static void another_question_is_asked_anew(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    question = "{\"message\":\"delete 5?\"}";
    const char *kept = state_in(go(&c, (struct round){.tool = "once"}));
    question = "{\"message\":\"delete 7?\"}";
    const char *text =
        go(&c, (struct round){.tool = "once", .state = kept, .responses = ANSWER("q1", "1")});
    HAS(text, "input_required");
    HAS(text, "delete 7?");
    text = go(&c,
        (struct round){.tool = "once", .state = state_in(text), .responses = ANSWER("q1", "2")});
    HAS(text, "\\\"v\\\":2");
    question = "{\"message\":\"who?\"}";
    finish(&w);
}

static void bad_responses_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    static const char *const BAD[] = {"7", "null", "[]", "{\"q1\":12345}", "{\"q1\":\"x\"}"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        const char *text = go(&c, (struct round){.tool = "once", .responses = BAD[i]});
        HAS(text, "-32602");
        HAS(text, "inputResponses must be an object of objects");
    }
    /* Without a state only a name that the program gave tells which question was meant. */
    HAS(go(&c, (struct round){.tool = "once", .responses = ANSWER("q1", "1")}), "input_required");
    HAS(go(&c, (struct round){.tool = "named", .responses = ANSWER("user_name", "3")}),
        "\\\"v\\\":3");
    static char params[512];
    snprintf(params, sizeof params, "\"name\":\"once\",\"requestState\":7,");
    HAS(ask_modern(&c, (struct modern){.method = "tools/call", .name = "once", .params = params}),
        "-32602");
    finish(&w);
}

static void what_the_client_cannot_is_not_asked(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    HAS(go(&c, (struct round){.tool = "once", .can = "{}"}), "UNSUPPORTED");
    HAS(go(&c, (struct round){.tool = "once", .can = "{\"elicitation\":{\"url\":{}}}"}),
        "UNSUPPORTED");
    HAS(go(&c, (struct round){.tool = "once", .can = "{\"elicitation\":{\"form\":{}}}"}),
        "input_required");
    HAS(go(&c, (struct round){.tool = "url"}), "UNSUPPORTED");
    HAS(go(&c, (struct round){.tool = "url", .can = CAN_EVERYTHING}), "input_required");
    HAS(go(&c, (struct round){.tool = "odd", .can = CAN_EVERYTHING}), "UNSUPPORTED");
    HAS(go(&c, (struct round){.tool = "all"}), "UNSUPPORTED");
    HAS(go(&c, (struct round){.tool = "all", .can = "{\"elicitation\":{},\"sampling\":{}}"}),
        "UNSUPPORTED");
    finish(&w);
}

static void prompts_and_resources_ask_and_completion_does_not(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    struct modern m = {.method = "prompts/get",
        .name = "p",
        .params = "\"name\":\"p\",",
        .capabilities = CAN_ELICIT};
    char params[1 << 14];
    const char *text = ask_modern(&c, m);
    HAS(text, "input_required");
    snprintf(params, sizeof params, "\"name\":\"p\",\"requestState\":\"%s\",\"inputResponses\":%s,",
        state_in(text), ANSWER("q1", "1"));
    m.params = params;
    HAS(ask_modern(&c, m), "complete");
    HAS(ask_modern(&c,
            (struct modern){.method = "resources/read",
                .name = "test://r",
                .params = "\"uri\":\"test://r\",",
                .capabilities = CAN_ELICIT}),
        "input_required");
    HAS(ask_modern(
            &c, (struct modern){.method = "completion/complete", .capabilities = CAN_ELICIT}),
        "UNSUPPORTED");
    finish(&w);
}

static void several_questions_go_at_once(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *text = go(&c, (struct round){.tool = "all", .can = CAN_EVERYTHING});
    HAS(text, "\"inputRequests\":{\"user_name\":{\"method\":\"elicitation/create\"");
    HAS(text, ",\"capital\":{\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":9}}");
    HAS(text, ",\"roots\":{\"method\":\"roots/list\",\"params\":{}}}");
    text = go(&c,
        (struct round){.tool = "all",
            .can = CAN_EVERYTHING,
            .state = state_in(text),
            .responses = "{\"roots\":{\"roots\":[]},\"user_name\":{\"action\":\"decline\"}}"});
    HAS(text, "\"inputRequests\":{\"capital\":{");
    LACKS(text, "\"user_name\":{\"method\"");
    text = go(&c,
        (struct round){.tool = "all",
            .can = CAN_EVERYTHING,
            .state = state_in(text),
            .responses = "{\"capital\":{\"model\":\"m\"}}"});
    HAS(text,
        "{\\\"user_name\\\":{\\\"action\\\":\\\"decline\\\"},\\\"capital\\\":{\\\"model\\\":"
        "\\\"m\\\"},\\\"roots\\\":{\\\"roots\\\":[]}}");
    finish(&w);
}

static void a_question_may_come_late(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    lp_id conn = dial(&w);
    struct modern m = {.method = "tools/call",
        .name = "later",
        .params = "\"name\":\"later\",\"arguments\":{},",
        .capabilities = CAN_ELICIT};
    HAS(ask_modern_on(&c, conn, m), "text/event-stream");
    pass(&w, 2 * SECOND);
    char params[1 << 14];
    const char *text = got(&w, conn);
    HAS(text, "input_required");
    snprintf(params, sizeof params,
        "\"name\":\"later\",\"arguments\":{},\"requestState\":\"%s\",\"inputResponses\":%s,",
        state_in(text), ANSWER("q1", "1"));
    m.params = params;
    conn = dial(&w);
    (void)ask_modern_on(&c, conn, m);
    pass(&w, 2 * SECOND);
    HAS(got(&w, conn), "\"resultType\":\"complete\"");
    finish(&w);
}

static void answers_have_a_ceiling(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    const char *kept = state_in(go(&c, (struct round){.tool = "large"}));
    static char params[1 << 19], body[1 << 20], head[512];
    memset(large, 'x', sizeof large - 1);
    snprintf(params, sizeof params,
        "\"name\":\"large\",\"arguments\":{},\"requestState\":\"%s\",\"inputResponses\":{\"q1\":{"
        "\"a\":\"%s\",\"b\":\"%.99999s\"}},",
        kept, large, large);
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{%s" MODERN_META(
            CAN_ELICIT, "") "}}",
        params);
    lp_id conn = dial(&w);
    snprintf(head, sizeof head,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" ACCEPT
            MODERN_HEAD("tools/call") "Mcp-Name: large\r\nContent-Length: %zu\r\n\r\n",
        strlen(body));
    send_bytes(&w, conn, lp_span_str(head));
    send_bytes(&w, conn, lp_span_str(body));
    const char *text = got(&w, conn);
    HAS(text, "-32602");
    HAS(text, "over 256 KiB");
    finish(&w);
}

/* --- with a session --- */

#define INITIALIZE_WITH(capabilities)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":" capabilities "}}"

/* Answers the question in `text` with a result, or with what else stands there. */
static void reply(struct client *c, const char *text, const char *rest)
{
    char body[512];
    const char *at = strstr(text, "\"id\":\"");
    assert_non_null(at);
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",%.40s,%s}", at, rest);
    STATUS(post(c, body), "202");
}

static void a_session_is_asked_one_after_the_other(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    open_as(&c, INITIALIZE_WITH(CAN_EVERYTHING));
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", CALL("1", "all", "{}"));
    HAS(text, "elicitation/create");
    LACKS(text, "sampling/createMessage");
    reply(&c, text, "\"result\":{\"n\":1}");
    text = got(&w, conn);
    HAS(text, "sampling/createMessage");
    reply(&c, text, "\"result\":{\"n\":2}");
    text = got(&w, conn);
    HAS(text, "roots/list");
    reply(&c, text, "\"result\":{\"n\":3}");
    HAS(got(&w, conn),
        "{\\\"user_name\\\":{\\\"n\\\":1},\\\"capital\\\":{\\\"n\\\":2},\\\"roots\\\":{\\\"n\\\":"
        "3}}");
    /* The first error is the end of it, and so is the time. */
    conn = dial(&w);
    reply(&c, ask(&c, conn, "POST", CALL("2", "all", "{}")), "\"error\":{\"code\":-1}");
    HAS(got(&w, conn), "{\\\"code\\\":-1}");
    conn = dial(&w);
    reply(&c, ask(&c, conn, "POST", CALL("3", "all", "{}")), "\"result\":{}");
    (void)got(&w, conn);
    pass(&w, ASK_US + SECOND);
    HAS(got(&w, conn), "no answer");
    finish(&w);
}

static void a_session_that_cannot_is_not_asked(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    open_as(&c, INITIALIZE_WITH(CAN_ELICIT));
    HAS(post(&c, CALL("1", "all", "{}")), "UNSUPPORTED");
    HAS(post(&c, CALL("1", "odd", "{}")), "UNSUPPORTED");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_the_answer),
        cmocka_unit_test(answers_gather_over_rounds),
        cmocka_unit_test(any_server_with_the_key_goes_on),
        cmocka_unit_test(a_state_is_good_for_one_request),
        cmocka_unit_test(a_state_expires),
        cmocka_unit_test(another_question_is_asked_anew),
        cmocka_unit_test(bad_responses_are_refused),
        cmocka_unit_test(what_the_client_cannot_is_not_asked),
        cmocka_unit_test(prompts_and_resources_ask_and_completion_does_not),
        cmocka_unit_test(several_questions_go_at_once),
        cmocka_unit_test(a_question_may_come_late),
        cmocka_unit_test(answers_have_a_ceiling),
        cmocka_unit_test(a_session_is_asked_one_after_the_other),
        cmocka_unit_test(a_session_that_cannot_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
