/* The MCP server with the offer of the conformance suite, driven through real HTTP bytes by a shell
 * in memory: what it offers, questions to the client, subscriptions, tokens. */
#include "../interop/conf_offer.h"
#include "serve_harness.h"

#define ASK(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define INITIALIZE_WITH(capabilities)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":" capabilities "}}"
#define CAN_ALL "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"

static struct lp_offer whole_offer(void)
{
    static char name[] = "blue";
    return conf_offer(name);
}

static struct client begin(struct world *w, struct lp_offer *offer)
{
    *offer = whole_offer();
    start_server(w, offer, (struct lp_server_args){0});
    struct client c = {.world = w};
    open_as(&c, INITIALIZE_WITH(CAN_ALL));
    return c;
}

/* --- lists and reads --- */

static void initialize_tells_what_is_offered(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    const char *text = open_as(&c, INITIALIZE("2025-06-18"));
    HAS(text, "\"tools\":{\"listChanged\":true}");
    HAS(text, "\"prompts\":{\"listChanged\":true}");
    HAS(text, "\"resources\":{\"subscribe\":true,\"listChanged\":true}");
    HAS(text, "\"completions\":{}");
    HAS(text, "\"serverInfo\":{\"name\":\"test\",\"version\":\"1\"}}");
    LACKS(text, "instructions");
    finish(&w);
    offer.lists_change = offer.has_subscriptions = false;
    start_server(&w, &offer, (struct lp_server_args){.instructions = LP_SPAN("Ask \"me\"")});
    c = (struct client){.world = &w};
    text = open_as(&c, INITIALIZE("2025-06-18"));
    HAS(text, "\"resources\":{\"subscribe\":false}");
    HAS(text, "\"tools\":{}");
    HAS(text, "\"instructions\":\"Ask \\\"me\\\"\"");
    HAS(post(&c, ASK("1", "resources/subscribe", "{\"uri\":\"test://x\"}")), "-32601");
    finish(&w);
}

static void lists_name_everything(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    const char *text = post(&c, ASK("1", "tools/list", "{}"));
    HAS(text, "{\"name\":\"whoami\",\"description\":\"who answered\",\"inputSchema\":");
    HAS(text, ",\"title\":\"Who am I\"}]}");
    text = post(&c, ASK("1", "resources/list", "{}"));
    HAS(text, "{\"resources\":[{\"name\":\"static-text\",\"uri\":\"test://static-text\"");
    HAS(text, "{\"name\":\"watched-resource\",\"uri\":\"test://watched-resource\",\"mimeType\"");
    LACKS(text, "template");
    text = post(&c, ASK("1", "resources/templates/list", "{}"));
    HAS(text, "\"resourceTemplates\":[{\"name\":\"template\",\"uriTemplate\":");
    text = post(&c, ASK("1", "prompts/list", "{}"));
    HAS(text, "{\"name\":\"test_simple_prompt\",\"description\":\"simple\",\"arguments\":[]},");
    finish(&w);
}

static void resources_are_read(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    HAS(post(&c, ASK("1", "resources/read", "{\"uri\":\"test:\\/\\/static-text\"}")),
        "\"uri\":\"test://static-text\",\"mimeType\":\"text/plain\",\"text\":");
    HAS(post(&c, ASK("1", "resources/read", "{\"uri\":\"test://static-binary\"}")), "\"blob\":");
    HAS(post(&c, ASK("1", "resources/read", "{\"uri\":\"test://template/4/data\"}")),
        "Data for ID: 4");
    HAS(post(&c, ASK("1", "resources/read", "{\"uri\":\"test://template/4/other\"}")), "-32002");
    HAS(post(&c, ASK("1", "resources/read", "{}")), "-32602");
    char call[4096];
    char uri[2100];
    memset(uri, 'u', sizeof uri - 1);
    uri[sizeof uri - 1] = '\0';
    snprintf(call, sizeof call, ASK("1", "resources/read", "{\"uri\":\"%s\"}"), uri);
    HAS(post(&c, call), "2,048 bytes");
    snprintf(call, sizeof call, ASK("1", "resources/subscribe", "{\"uri\":\"%s\"}"), uri);
    HAS(post(&c, call), "2,048 bytes");
    finish(&w);
}

static void prompts_and_completion_are_answered(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    HAS(post(&c,
            ASK("1", "prompts/get",
                "{\"name\":\"test_prompt_with_arguments\",\"arguments\":{\"arg1\":\"x\",\"arg2\":"
                "\"y\"}}")),
        "arg1='x', arg2='y'");
    HAS(post(&c,
            ASK("1", "prompts/get",
                "{\"name\":\"test_prompt_with_embedded_resource\",\"arguments\":{}}")),
        "\"uri\":\"\"");
    HAS(post(&c, ASK("1", "prompts/get", "{\"name\":\"none\"}")), "Unknown prompt");
    HAS(post(&c, ASK("1", "prompts/get", "{}")), "Unknown prompt");
    HAS(post(&c, ASK("1", "completion/complete", "{}")), "\"values\":[\"paris\"");
    HAS(post(&c, ASK("1", "other/thing", "{}")), "-32601");
    finish(&w);
}

static void what_is_not_offered_is_not_found(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = {0};
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = {.world = &w};
    LACKS(open_as(&c, INITIALIZE("2025-11-25")), "\"tools\"");
    static const char *const methods[] = {"tools/list", "tools/call", "resources/list",
        "resources/templates/list", "resources/read", "prompts/list", "prompts/get",
        "completion/complete", "resources/unsubscribe"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char body[256];
        snprintf(body, sizeof body, ASK("1", "%s", "{\"name\":\"x\",\"uri\":\"y\"}"), methods[i]);
        HAS(post(&c, body), "-32601");
    }
    finish(&w);
}

static void constant_tools_answer(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    HAS(post(&c, CALL("1", "test_error_handling", "{}")), "\"isError\":true");
    HAS(post(&c, CALL("1", "whoami", "{}")), "\"blue\"");
    HAS(post(&c, CALL("1", "who\\u0061mi", "{}")), "\"blue\"");
    lp_id conn = dial(&w);
    HAS(ask(&c, conn, "POST", CALL("1", "test_tool_with_logging", "{}")), "execution started");
    pass(&w, SECOND);
    const char *text = got(&w, conn);
    HAS(text, "{\"level\":\"info\",\"data\":\"Tool processing data\"}");
    HAS(text, "\"done\"");
    HAS(post(&c, ASK("1", "logging/setLevel", "{\"level\":\"error\"}")), "{}");
    conn = dial(&w);
    ask(&c, conn, "POST", CALL("1", "test_tool_with_logging", "{}"));
    pass(&w, SECOND);
    LACKS(got(&w, conn), "notifications/message");
    conn = dial(&w);
    ask(&c, conn, "POST", CALL("1", "test_tool_with_progress", "{}"));
    pass(&w, SECOND);
    LACKS(got(&w, conn), "progress\"");
    finish(&w);
}

/* --- questions to the client --- */

/* The id of the question in `text`, with its quotes. */
static void question_id(const char *text, char id[64])
{
    const char *at = strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    if (!at || sscanf(at, "{\"jsonrpc\":\"2.0\",\"id\":%40[^,]", id) != 1)
        fail_msg("no question in: %s", text);
}

static const char *reply_to(struct client *c, const char *id, const char *rest)
{
    char body[512];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}", id, rest);
    return post(c, body);
}

#define ACCEPT "\"result\":{\"action\":\"accept\",\"content\":{\"a\":1}}"

static void a_question_goes_out_and_its_answer_comes_in(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", CALL("7", "test_elicitation", "{\"message\":\"m\"}"));
    HAS(text, "\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\",");
    question_id(text, id);
    STATUS(reply_to(&c, id, ACCEPT), "202");
    text = got(&w, conn);
    HAS(text, "\"id\":7,\"result\":");
    HAS(text, "action=accept, content={\\\"a\\\":1}");
    HAS(text, "0\r\n\r\n");
    STATUS(reply_to(&c, id, ACCEPT), "202");
    assert_string_equal(got(&w, conn), "");
    finish(&w);
}

static void only_the_right_answer_counts(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    char wrong[64];
    struct client c = begin(&w, &offer);
    struct client other = {.world = &w};
    open_as(&other, INITIALIZE_WITH(CAN_ALL));
    lp_id conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
    STATUS(reply_to(&other, id, ACCEPT), "202");
    memcpy(wrong, id, sizeof id);
    wrong[33] = wrong[33] == '0' ? '1' : '0';
    STATUS(reply_to(&c, wrong, ACCEPT), "202");
    memcpy(wrong, id, sizeof id);
    wrong[3] = 'X';
    STATUS(reply_to(&c, wrong, ACCEPT), "202");
    memcpy(wrong, id, sizeof id);
    wrong[17] = '_';
    STATUS(reply_to(&c, wrong, ACCEPT), "202");
    memcpy(wrong, id, sizeof id);
    wrong[30] = 'X';
    STATUS(reply_to(&c, wrong, ACCEPT), "202");
    STATUS(reply_to(&c, "1", ACCEPT), "202");
    STATUS(reply_to(&c, "12345678901234567890123456789012345", ACCEPT), "202");
    STATUS(reply_to(&c, "\"0000000100000001-0000000000000000\"", ACCEPT), "202");
    assert_string_equal(got(&w, conn), "");
    STATUS(reply_to(&c, id, "\"result\":{\"action\":\"decline\"}"), "202");
    HAS(got(&w, conn), "action=decline, content={}");
    finish(&w);
}

static void a_refusal_or_silence_ends_the_question(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
    STATUS(reply_to(&c, id, "\"error\":{\"code\":-1,\"message\":\"no\"}"), "202");
    HAS(got(&w, conn), "\"text\":\"refused\"}],\"isError\":true");
    conn = dial(&w);
    ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}"));
    pass(&w, 6 * SECOND);
    HAS(got(&w, conn), "\"text\":\"no answer\"");
    conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("8", "test_elicitation", "{}")), id);
    STATUS(post(&c,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":8}}"),
        "202");
    assert_string_equal(got(&w, conn), "0\r\n\r\n");
    STATUS(reply_to(&c, id, ACCEPT), "202");
    STATUS(post(&c,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":99}}"),
        "202");
    finish(&w);
}

static void sampling_and_roots_are_questions_too(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", CALL("7", "test_sampling", "{\"prompt\":\"p\"}"));
    HAS(text, "\"method\":\"sampling/createMessage\"");
    question_id(text, id);
    reply_to(&c, id, "\"result\":{\"content\":{\"type\":\"text\",\"text\":\"t\"}}");
    HAS(got(&w, conn), "LLM response: t");
    conn = dial(&w);
    text = ask(&c, conn, "POST", CALL("7", "roots", "{}"));
    HAS(text, "\"method\":\"roots/list\"}");
    question_id(text, id);
    reply_to(&c, id, "\"result\":{\"roots\":[]}");
    HAS(got(&w, conn), "roots");
    finish(&w);
}

static void only_who_can_is_asked(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    open_as(&c, INITIALIZE_WITH("{}"));
    static const char *const calls[] = {CALL("1", "test_elicitation", "{}"),
        CALL("1", "test_sampling", "{}"), CALL("1", "roots", "{}")};
    for (size_t i = 0; i < 3; i++)
        HAS(post(&c, calls[i]), "\"isError\":true");
    finish(&w);
    start_server(&w, &offer, (struct lp_server_args){.mode = LP_SESSIONS_STATELESS});
    c = (struct client){.world = &w};
    HAS(post(&c, calls[0]), "\"isError\":true");
    HAS(post(&c, ASK("1", "resources/subscribe", "{\"uri\":\"x\"}")), "\"result\":{}");
    STATUS(reply_to(&c, "\"0000000100000001-0000000000000000\"", ACCEPT), "202");
    finish(&w);
}

/* A client that takes no stream for its call is asked on its GET stream, if it has one. */
static void a_question_finds_the_get_stream(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    struct client c = begin(&w, &offer);
    c.extra = "Accept: application/json\r\n";
    HAS(post(&c, CALL("1", "test_elicitation", "{}")), "no such thing");
    c.extra = NULL;
    lp_id stream = dial(&w);
    ask(&c, stream, "GET", NULL);
    c.extra = "Accept: application/json\r\n";
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", CALL("1", "test_elicitation", "{}")), "");
    question_id(got(&w, stream), id);
    STATUS(reply_to(&c, id, ACCEPT), "202");
    HAS(got(&w, conn), "action=accept");
    finish(&w);
}

/* --- what the program tells --- */

static void subscribers_are_told(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    struct client other = {.world = &w};
    open_as(&other, INITIALIZE_WITH("{}"));
    lp_id stream = dial(&w);
    lp_id other_stream = dial(&w);
    ask(&c, stream, "GET", NULL);
    ask(&other, other_stream, "GET", NULL);
    for (int i = 0; i < 2; i++)
        HAS(post(&c, ASK("1", "resources/subscribe", "{\"uri\":\"test://a\"}")), "\"result\":{}");
    HAS(post(&c, ASK("1", "resources/subscribe", "{\"uri\":\"test://b\"}")), "\"result\":{}");
    lp_server_resource_updated(w.server, LP_SPAN("test://a"));
    lp_server_list_changed(w.server, LP_LIST_TOOLS);
    lp_server_list_changed(w.server, LP_LIST_PROMPTS);
    tell(&w, (struct lp_event){.kind = LP_EV_TIMER});
    const char *text = got(&w, stream);
    HAS(text, "notifications/resources/updated\",\"params\":{\"uri\":\"test://a\"}}");
    HAS(text, "notifications/prompts/list_changed");
    text = got(&w, other_stream);
    LACKS(text, "resources/updated");
    HAS(text, "notifications/tools/list_changed");
    for (int i = 0; i < 2; i++)
        HAS(post(&c, ASK("1", "resources/unsubscribe", "{\"uri\":\"test://a\"}")), "{}");
    lp_server_resource_updated(w.server, LP_SPAN("test://a"));
    lp_server_resource_updated(w.server, LP_SPAN("test://b"));
    tell(&w, (struct lp_event){.kind = LP_EV_TIMER});
    text = got(&w, stream);
    LACKS(text, "test://a");
    HAS(text, "test://b");
    static const char *const bad[] = {"{}", "{\"uri\":\"\"}", "{\"uri\":\"a\\u0000\"}"};
    for (size_t i = 0; i < 3; i++) {
        char body[256];
        snprintf(body, sizeof body, ASK("1", "resources/subscribe", "%s"), bad[i]);
        HAS(post(&c, body), "-32602");
    }
    finish(&w);
}

static void subscriptions_are_bounded(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    const char *text = "";
    int count = 0;
    for (; count < 2000 && !strstr(text, "too many subscriptions"); count++) {
        char body[256];
        snprintf(
            body, sizeof body, ASK("1", "resources/subscribe", "{\"uri\":\"test://%d\"}"), count);
        text = post(&c, body);
    }
    assert_in_range(count, 1000, 1900);
    finish(&w);
}

/* --- tokens --- */

static bool judge_token(void *ctx, struct lp_span token, struct lp_key *ret_principal)
{
    (void)ctx;
    ret_principal->hi = token.len ? (uint64_t)token.ptr[0] : 0;
    return token.len == 5;
}

/* Cases STA-03, and STA-09: another's session is as unknown as any. */
static void tokens_come_before_sessions(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    struct lp_server_args args = {.bearer = judge_token};
    start_server(&w, &offer, args);
    struct client c = {.world = &w, .session = "unknown"};
    static const char *const bad[] = {"", "Authorization: Bearer four\r\n",
        "Authorization: Basic alice\r\n", "Authorization: Bearer\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c.extra = bad[i];
        const char *text = post(&c, CALL("1", "whoami", "{}"));
        STATUS(text, "401");
        HAS(text, "www-authenticate: Bearer realm=\"mcp\"\r\n");
    }
    c.extra = "authorization: bearer alice\r\n";
    STATUS(post(&c, CALL("1", "whoami", "{}")), "404");
    open_as(&c, INITIALIZE("2025-11-25"));
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    c.extra = "Authorization: Bearer  robin\r\n";
    STATUS(post(&c, CALL("1", "whoami", "{}")), "404");
    STATUS(ask(&c, dial(&w), "GET", NULL), "404");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "404");
    finish(&w);
}

static void a_challenge_names_the_metadata(void **state)
{
    (void)state;
    static char long_url[1000];
    struct world w;
    struct lp_offer offer = whole_offer();
    memset(long_url, 'u', sizeof long_url);
    struct lp_server_args args = {.bearer = judge_token};
    args.resource_metadata = LP_SPAN("https://mcp.example/.well-known/x");
    start_server(&w, &offer, args);
    struct client c = {.world = &w};
    HAS(post(&c, INITIALIZE("2025-11-25")),
        "realm=\"mcp\", resource_metadata=\"https://mcp.example/.well-known/x\"\r\n");
    finish(&w);
    args.resource_metadata = lp_span(long_url, sizeof long_url);
    start_server(&w, &offer, args);
    HAS(post(&c, INITIALIZE("2025-11-25")), "Bearer realm=\"mcp\"\r\n");
    finish(&w);
}

static void arguments_have_limits(void **state)
{
    (void)state;
    struct lp_offer offer = {0};
    struct lp_server *server = NULL;
    static char text[70000];
    memset(text, 't', sizeof text);
    struct lp_server_args args = {.offer = &offer, .path = lp_span(text, LP_SERVER_PATH_MAX + 1)};
    assert_int_equal(lp_server_new(&args, &server), LP_ETOO_LONG);
    args = (struct lp_server_args){.offer = &offer, .instructions = lp_span(text, sizeof text)};
    assert_int_equal(lp_server_new(&args, &server), LP_ENOMEM);
    lp_server_free(NULL);
}

/* --- work that is done elsewhere --- */

static lp_id kept_job;

static void keep_job(void *ctx, struct lp_job *call)
{
    (void)ctx;
    kept_job = lp_job_id(call);
}

static void a_call_is_answered_between_two_events(void **state)
{
    (void)state;
    static const struct lp_tool tools[] = {
        {.name = "later", .input_schema = OBJECT(""), .handler = {.run = keep_job}}};
    struct world w;
    struct lp_offer offer = {.tools = tools, .tool_count = 1};
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    LACKS(ask(&c, conn, "POST", CALL("9", "later", "{}")), "result");
    struct lp_job *call = lp_server_job(w.server, kept_job);
    assert_non_null(call);
    lp_job_text(call, LP_SPAN("late"));
    lp_server_settle(w.server, w.now_us);
    HAS(got(&w, conn), "\"late\"");
    assert_null(lp_server_job(w.server, kept_job));
    finish(&w);
}

/* --- races and limits --- */

/* The session is there before the first byte of the answer that names it has left. */
static void a_session_is_found_before_its_answer_is_through(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    peer_of(&w, conn)->window = 1;
    c.session[0] = '\0';
    assert_string_equal(ask(&c, conn, "POST", INITIALIZE("2025-11-25")), "");
    char answer[1024];
    struct lp_span drain = peer_of(&w, conn)->drain;
    snprintf(answer, sizeof answer, "%.*s", (int)drain.len, drain.ptr);
    const char *id = strstr(answer, "mcp-session-id: ");
    assert_non_null(id);
    assert_int_equal(sscanf(id, "mcp-session-id: %127[^\r]", c.session), 1);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void initialize_twice_makes_two_sessions(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    struct client again = c;
    const char *text = post(&c, INITIALIZE("2025-11-25"));
    STATUS(text, "200");
    const char *id = strstr(text, "mcp-session-id: ");
    assert_int_equal(sscanf(id, "mcp-session-id: %127[^\r]", again.session), 1);
    assert_string_not_equal(c.session, again.session);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    STATUS(post(&again, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

/* Cases LIF-02: a session that somebody listens to or waits in is never pushed out; an idle one
 * goes, with what was kept of its streams. */
static void eviction_spares_streams_and_calls(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    start_server(&w, &offer, (struct lp_server_args){.session_max = 3});
    struct client idle = new_client(&w);
    struct client listens = new_client(&w);
    struct client waits = new_client(&w);
    lp_id conn = dial(&w);
    ask(&idle, dial(&w), "POST", CALL("1", "test_tool_with_logging", "{}"));
    pass(&w, SECOND);
    lp_id stream = dial(&w);
    ask(&listens, stream, "GET", NULL);
    ask(&waits, conn, "POST", CALL("1", "test_tool_with_logging", "{}"));
    struct client late = new_client(&w);
    STATUS(post(&late, CALL("1", "whoami", "{}")), "200");
    STATUS(ask(&idle, dial(&w), "GET", NULL), "404");
    pass(&w, SECOND);
    HAS(got(&w, conn), "\"done\"");
    assert_true(peer_of(&w, stream)->is_open);
    finish(&w);
}

/* Cases STA-09, LIF-01: idle time counts from the last use, and an open stream or a call is use. */
static void idle_time_counts_from_the_last_use(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    start_server(&w, &offer, (struct lp_server_args){.idle_us = 10 * SECOND});
    struct client used = new_client(&w), listens = new_client(&w), silent = new_client(&w);
    lp_id stream = dial(&w);
    ask(&listens, stream, "GET", NULL);
    for (int i = 0; i < 15; i++) {
        pass(&w, 4 * SECOND);
        STATUS(post(&used, CALL("1", "whoami", "{}")), "200");
    }
    assert_int_equal(lp_server_session_count(w.server), 2);
    STATUS(post(&silent, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&listens, CALL("1", "whoami", "{}")), "200");
    tell(&w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = stream});
    pass(&w, 12 * SECOND);
    STATUS(post(&listens, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&used, CALL("1", "whoami", "{}")), "404");
    assert_int_equal(lp_server_session_count(w.server), 0);
    finish(&w);
}

/* Cases LIF-02: a call that takes longer than the idle limit. */
static void a_call_keeps_its_session(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    start_server(&w, &offer, (struct lp_server_args){.idle_us = 20000});
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    ask(&c, conn, "POST", CALL("1", "test_tool_with_logging", "{}"));
    pass(&w, 2 * SECOND);
    HAS(got(&w, conn), "\"done\"");
    finish(&w);
}

/* Cases LIF-03: five for each; whoever leaves his behind pushes out his own, nobody else's. */
static void orphans_use_up_their_own_allowance(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    start_server(&w, &offer, (struct lp_server_args){.bearer = judge_token, .session_max_each = 5});
    struct client b[5], a = {.world = &w, .extra = "Authorization: Bearer alice\r\n"}, first;
    for (int i = 0; i < 5; i++) {
        b[i] = (struct client){.world = &w, .extra = "Authorization: Bearer bobby\r\n"};
        open_as(&b[i], INITIALIZE("2025-11-25"));
    }
    for (int i = 0; i < 20; i++) {
        open_as(&a, INITIALIZE("2025-11-25")); /* asserts that it is answered 200 */
        if (i == 0)
            first = a;
    }
    assert_int_equal(lp_server_session_count(w.server), 10);
    STATUS(post(&first, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&a, CALL("1", "whoami", "{}")), "200");
    for (int i = 0; i < 5; i++)
        STATUS(post(&b[i], CALL("1", "whoami", "{}")), "200");
    /* DELETE counts at once; and with five calls in progress the sixth session has to wait. */
    STATUS(ask(&a, dial(&w), "DELETE", NULL), "200");
    assert_int_equal(lp_server_session_count(w.server), 9);
    for (int i = 0; i < 5; i++) {
        open_as(&a, INITIALIZE("2025-11-25"));
        ask(&a, dial(&w), "POST", CALL("7", "test_tool_with_logging", "{}"));
    }
    assert_int_equal(lp_server_session_count(w.server), 10);
    const char *text = post(&a, INITIALIZE("2025-11-25"));
    STATUS(text, "429");
    HAS(text, "retry-after: 1\r\n");
    HAS(text, "\"error\":{\"code\":-32603");
    STATUS(post(&b[0], CALL("1", "whoami", "{}")), "200");
    pass(&w, 10 * SECOND);
    open_as(&a, INITIALIZE("2025-11-25"));
    finish(&w);
}

/* Without a limit for each, the one of all takes the opener's own first, then the oldest. */
static void the_limit_of_all_takes_the_openers_first(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer = whole_offer();
    start_server(&w, &offer, (struct lp_server_args){.bearer = judge_token, .session_max = 2});
    struct client a = {.world = &w, .extra = "Authorization: Bearer alice\r\n"}, second = a;
    struct client b = {.world = &w, .extra = "Authorization: Bearer bobby\r\n"};
    struct client c = {.world = &w, .extra = "Authorization: Bearer carol\r\n"};
    open_as(&b, INITIALIZE("2025-11-25"));
    open_as(&a, INITIALIZE("2025-11-25"));
    open_as(&second, INITIALIZE("2025-11-25"));
    STATUS(post(&a, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&b, CALL("1", "whoami", "{}")), "200");
    open_as(&c, INITIALIZE("2025-11-25"));
    STATUS(post(&second, CALL("1", "whoami", "{}")), "404"); /* idle for longer than b's */
    STATUS(post(&b, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void delete_ends_a_question(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    char id[64];
    struct client c = begin(&w, &offer);
    lp_id conn = dial(&w);
    question_id(ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}")), id);
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    HAS(got(&w, conn), "0\r\n\r\n");
    STATUS(reply_to(&c, id, ACCEPT), "404");
    pass(&w, 10 * SECOND);
    assert_string_equal(got(&w, conn), "");
    finish(&w);
}

static void calls_of_a_session_have_a_ceiling(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    struct client other = new_client(&w);
    for (int i = 0; i < LP_SERVER_SESSION_STREAMS; i++)
        ask(&c, dial(&w), "POST", CALL("7", "test_elicitation", "{}"));
    const char *text = post(&c, CALL("\"x\"", "whoami", "{}"));
    STATUS(text, "503");
    HAS(text, "\"id\":\"x\"");
    STATUS(post(&other, CALL("1", "whoami", "{}")), "200");
    pass(&w, 6 * SECOND);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void bodies_in_progress_have_a_ceiling(void **state)
{
    (void)state;
    struct world w;
    struct lp_offer offer;
    struct client c = begin(&w, &offer);
    enum { SIZE = 3 << 20 };
    char *body = malloc(SIZE + 512);
    assert_non_null(body);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE, CALL("7", "test_elicitation", "{}"));
    int count = 0;
    bool is_full = false;
    while (!is_full && count++ < 100) {
        char head[512];
        lp_id conn = dial(&w);
        int n = snprintf(head, sizeof head,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n",
            c.session, strlen(body));
        send_bytes(&w, conn, lp_span(head, (size_t)n));
        send_bytes(&w, conn, lp_span(body, strlen(body)));
        is_full = strstr(got(&w, conn), "HTTP/1.1 503") != NULL;
    }
    free(body);
    assert_in_range(count, 60, 90);
    pass(&w, 6 * SECOND);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void accept_is_read_as_it_is_meant(void **state)
{
    static const struct {
        const char *accept, *status;
    } ROWS[] = {{"Accept: */*\r\n", "200"}, {"Accept: TEXT/Event-Stream;q=1\r\n", "200"},
        {"Accept: application/json\r\nAccept: text/*\r\n", "200"},
        {"Accept: application/json, text/plain\r\n", "406"}, {"X: y\r\n", "406"}};
    (void)state;
    struct world w;
    struct lp_offer offer;
    begin(&w, &offer);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct client c = new_client(&w);
        c.extra = ROWS[i].accept;
        STATUS(ask(&c, dial(&w), "GET", NULL), ROWS[i].status);
    }
    struct client c = new_client(&w);
    c.extra = "Accept: */*\r\n";
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", CALL("1", "test_tool_with_logging", "{}")), "");
    pass(&w, SECOND);
    HAS(got(&w, conn), "content-type: application/json");
    finish(&w);
}

/* LIF-05: a stop waits for calls, but not for ever, nor for who does not read. */
static void a_stop_has_a_bound(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        struct world w;
        struct lp_offer offer = whole_offer();
        start_server(&w, &offer, (struct lp_server_args){.grace_us = SECOND});
        struct client c = {.world = &w};
        open_as(&c, INITIALIZE_WITH(CAN_ALL));
        lp_id conn = dial(&w);
        ask(&c, conn, "POST", CALL("7", "test_elicitation", "{}"));
        peer_of(&w, conn)->window = reads ? 0 : 1;
        tell(&w, (struct lp_event){.kind = LP_EV_STOP});
        pass(&w, SECOND - 1);
        assert_false(w.stopped);
        pass(&w, 1);
        if (reads)
            HAS(got(&w, conn),
                "\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the server is stop");
        pass(&w, SECOND);
        assert_true(w.stopped);
        assert_false(peer_of(&w, conn)->is_open);
        finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialize_tells_what_is_offered),
        cmocka_unit_test(lists_name_everything),
        cmocka_unit_test(resources_are_read),
        cmocka_unit_test(prompts_and_completion_are_answered),
        cmocka_unit_test(what_is_not_offered_is_not_found),
        cmocka_unit_test(constant_tools_answer),
        cmocka_unit_test(a_question_goes_out_and_its_answer_comes_in),
        cmocka_unit_test(only_the_right_answer_counts),
        cmocka_unit_test(a_refusal_or_silence_ends_the_question),
        cmocka_unit_test(sampling_and_roots_are_questions_too),
        cmocka_unit_test(only_who_can_is_asked),
        cmocka_unit_test(a_question_finds_the_get_stream),
        cmocka_unit_test(subscribers_are_told),
        cmocka_unit_test(subscriptions_are_bounded),
        cmocka_unit_test(tokens_come_before_sessions),
        cmocka_unit_test(a_challenge_names_the_metadata),
        cmocka_unit_test(arguments_have_limits),
        cmocka_unit_test(a_call_is_answered_between_two_events),
        cmocka_unit_test(a_session_is_found_before_its_answer_is_through),
        cmocka_unit_test(initialize_twice_makes_two_sessions),
        cmocka_unit_test(eviction_spares_streams_and_calls),
        cmocka_unit_test(idle_time_counts_from_the_last_use),
        cmocka_unit_test(a_call_keeps_its_session),
        cmocka_unit_test(orphans_use_up_their_own_allowance),
        cmocka_unit_test(the_limit_of_all_takes_the_openers_first),
        cmocka_unit_test(delete_ends_a_question),
        cmocka_unit_test(calls_of_a_session_have_a_ceiling),
        cmocka_unit_test(bodies_in_progress_have_a_ceiling),
        cmocka_unit_test(accept_is_read_as_it_is_meant),
        cmocka_unit_test(a_stop_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
