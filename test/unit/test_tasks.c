/* Calls as tasks against the MCP server, through real HTTP bytes: how one becomes a task, what is
 * told of it, its questions, its end and its bounds. */
#include "../interop/conf_offer.h"
#include "modern_harness.h"

#define TAKES "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}},\"elicitation\":{}}"

static struct lp_offer offer;

static bool whose(void *ctx, struct lp_span token, struct lp_key *ret)
{
    (void)ctx;
    *ret = (struct lp_key){token.len, 1};
    return true;
}

static struct client begin_as(struct world *w, struct lp_server_args args)
{
    static char name[] = "blue";
    offer = conf_offer(name);
    args.bearer = whose;
    start_server(w, &offer, args);
    w->wall_ms = 1796000400123; /* 2026-11-30T01:00:00.123Z */
    return (struct client){.world = w};
}

static struct client begin(struct world *w, struct lp_span owner)
{
    return begin_as(w, (struct lp_server_args){.owner = owner});
}

static const char *call(struct client *c, const char *tool, const char *arguments)
{
    static char params[512];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":%s,", tool, arguments);
    return ask_modern(c,
        (struct modern){
            .method = "tools/call", .name = tool, .params = params, .capabilities = TAKES});
}

/* The task's name in an answer; a copy. */
static const char *id_in(const char *text)
{
    static char id[128];
    const char *at = strstr(text, "\"taskId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 10, "%127[^\"]", id), 1);
    return id;
}

static const char *task_as(
    struct client *c, const char *method, const char *id, const char *more, const char *head)
{
    static char params[1024];
    snprintf(params, sizeof params, "\"taskId\":\"%s\",%s", id, more);
    return ask_modern(c,
        (struct modern){
            .method = method, .name = id, .params = params, .capabilities = TAKES, .head = head});
}

static const char *get(struct client *c, const char *id)
{
    return task_as(c, "tasks/get", id, "", NULL);
}

static void let_time_pass(struct world *w, uint64_t us)
{
    w->wall_ms += us / 1000;
    pass(w, us);
}

static void a_call_becomes_a_task(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN("m1"));
    HAS(ask_modern(&c, (struct modern){.method = "server/discover"}),
        "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    const char *text = call(&c, "slow_compute", "{\"seconds\":3}");
    STATUS(text, "200");
    HAS(text, "content-type: application/json");
    HAS(text, "\"resultType\":\"task\",\"taskId\":\"m1.");
    HAS(text,
        "\"status\":\"working\",\"ttlMs\":60000,\"pollIntervalMs\":1000,\"createdAt\":"
        "\"2026-11-30T01:00:00.123Z\",\"lastUpdatedAt\":\"2026-11-30T01:00:00.123Z\"}");
    const char *id = id_in(text);
    let_time_pass(&w, SECOND);
    text = get(&c, id);
    HAS(text, "\"resultType\":\"complete\",\"taskId\":");
    HAS(text, "\"status\":\"working\"");
    LACKS(text, "\"content\"");
    /* It has asked nothing. */
    HAS(task_as(&c, "tasks/update", id, "\"inputResponses\":{},", NULL),
        "\"resultType\":\"complete\"}");
    HAS(get(&c, id), "\"status\":\"working\"");
    let_time_pass(&w, 3 * SECOND);
    text = get(&c, id);
    HAS(text, "\"status\":\"completed\"");
    HAS(text, "\"lastUpdatedAt\":\"2026-11-30T01:00:04.123Z\",\"result\":{");
    HAS(text, "\"text\":\"computed\"");
    HAS(task_as(&c, "tasks/cancel", id, "", NULL), "\"resultType\":\"complete\"}");
    HAS(get(&c, id), "\"status\":\"completed\"");
    /* Its time is over a minute after it began. */
    let_time_pass(&w, 60ull * SECOND);
    text = get(&c, id);
    STATUS(text, "200");
    HAS(text, "\"code\":-32602,\"message\":\"Unknown task\"");
    finish(&w);
}

static void errors_of_tools_and_of_calls_differ(void **state)
{
    (void)state;
    struct world w;
    char tool[128];
    struct client c = begin(&w, LP_SPAN(""));
    snprintf(tool, sizeof tool, "%s", id_in(call(&c, "failing_job", "{}")));
    const char *broken = id_in(call(&c, "protocol_error_job", "{}"));
    let_time_pass(&w, SECOND);
    const char *text = get(&c, tool);
    HAS(text, "\"status\":\"completed\"");
    HAS(text, "\"isError\":true");
    text = get(&c, broken);
    HAS(text, "\"status\":\"failed\"");
    HAS(text, "\"error\":{\"code\":-32603,\"message\":\"the job broke off\"}");
    finish(&w);
}

static void who_does_not_take_tasks_gets_none(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    const char *text = call_modern(&c, "failing_job", "{}");
    STATUS(text, "400");
    HAS(text, "\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    lp_id conn = dial(&w);
    (void)ask_modern_on(&c, conn,
        (struct modern){.method = "tools/call",
            .name = "slow_compute",
            .params = "\"name\":\"slow_compute\","});
    pass(&w, SECOND);
    HAS(got(&w, conn), "computed");
    text = ask_modern(
        &c, (struct modern){.method = "tasks/get", .name = "x", .params = "\"taskId\":\"x\","});
    STATUS(text, "400");
    HAS(text, "-32021");
    HAS(call(&c, "greet", "{\"name\":\"x\"}"), "Hello");
    offer.has_tasks = false;
    STATUS(get(&c, "x"), "404");
    HAS(call(&c, "failing_job", "{}"), "-32021");
    struct client old = new_client(&w);
    HAS(post(&old, CALL("1", "failing_job", "{}")), "-32600");
    finish(&w);
}

static void only_its_principal_finds_a_task(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN("m1"));
    const char *id = id_in(call(&c, "slow_compute", "{\"seconds\":3}"));
    HAS(task_as(&c, "tasks/get", id, "", "Authorization: Bearer other\r\n"), "Unknown task");
    HAS(get(&c, "m2.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00"), "Unknown task");
    HAS(get(&c, "m1.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00"), "Unknown task");
    HAS(get(&c, "nonsense"), "Unknown task");
    char endless[300];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    HAS(get(&c, endless), "Unknown task");
    HAS(ask_modern(&c, (struct modern){.method = "tasks/get", .name = "x", .capabilities = TAKES}),
        "-32020");
    HAS(get(&c, id), "working");
    finish(&w);
}

/* As for sessions ([S3]): once, for another owner's only, and decided by the head alone. */
static void another_owners_task_is_replayed(void **state)
{
    (void)state;
    static const char OTHERS[] = "m2.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00";
    static const char *const METHODS[] = {"tasks/get", "tasks/update", "tasks/cancel"};
    struct world w;
    struct client c = begin_as(
        &w, (struct lp_server_args){.owner = LP_SPAN("m1"), .replay = LP_SERVER_REPLAY_PREFER});
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        const char *text = task_as(&c, METHODS[i], OTHERS, "\"inputResponses\":{},", NULL);
        STATUS(text, "204");
        HAS(text, "fly-replay: prefer_instance=m2;timeout=5s\r\n");
        text = task_as(&c, METHODS[i], OTHERS, "\"inputResponses\":{},",
            "fly-replay-src: instance=m3;state=x\r\n");
        STATUS(text, "200");
        HAS(text, "Unknown task");
        LACKS(text, "m2.");
    }
    HAS(task_as(&c, "tasks/get", OTHERS, "", "fly-replay-failed: x\r\n"), "Unknown task");
    static const char *const NOT_OTHERS[] = {
        "m1.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00", "m2;x=y.1", ".", "m2", "plain"};
    for (size_t i = 0; i < sizeof NOT_OTHERS / sizeof *NOT_OTHERS; i++) {
        const char *text = get(&c, NOT_OTHERS[i]);
        HAS(text, "Unknown task");
        LACKS(text, "fly-replay");
    }
    /* Head and body must still agree. */
    const char *text = ask_modern(&c,
        (struct modern){.method = "tasks/get",
            .name = OTHERS,
            .params = "\"taskId\":\"m3.1\",",
            .capabilities = TAKES});
    STATUS(text, "400");
    HAS(text, "-32020");
    LACKS(text, "fly-replay");
    /* A name of something else is no task's. */
    HAS(ask_modern(&c,
            (struct modern){.method = "tools/call",
                .name = "m2.tool",
                .params = "\"name\":\"m2.tool\",",
                .capabilities = TAKES}),
        "-32602");
    finish(&w);
}

static void without_an_owner_no_task_is_replayed(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin_as(&w, (struct lp_server_args){.replay = LP_SERVER_REPLAY_PREFER});
    const char *text = get(&c, "m2.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00");
    HAS(text, "Unknown task");
    LACKS(text, "fly-replay");
    finish(&w);
}

static void a_task_is_cancelled(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    const char *id = id_in(call(&c, "slow_compute", "{\"seconds\":3}"));
    for (int i = 0; i < 2; i++) {
        const char *text = task_as(&c, "tasks/cancel", id, "", NULL);
        HAS(text, "\"resultType\":\"complete\"}");
        LACKS(text, "taskId");
    }
    const char *text = get(&c, id);
    HAS(text, "\"status\":\"cancelled\"");
    LACKS(text, "\"error\"");
    pass(&w, 4 * SECOND);
    HAS(get(&c, id), "\"status\":\"cancelled\"");
    finish(&w);
}

#define NAMED "{\"action\":\"accept\",\"content\":{\"name\":\"Alice\"}}"

static void questions_wait_in_the_task(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    const char *text = call(&c, "multi_input", "{}");
    LACKS(text, "inputRequests");
    const char *id = id_in(text);
    text = get(&c, id);
    HAS(text, "\"status\":\"input_required\"");
    HAS(text, "\"inputRequests\":{\"user_name\":{\"method\":\"elicitation/create\"");
    HAS(text, "\"confirm\":{\"method\"");
    HAS(task_as(&c, "tasks/update", id, "\"inputResponses\":[],", NULL), "-32602");
    HAS(task_as(&c, "tasks/update", id, "", NULL), "-32602");
    HAS(task_as(&c, "tasks/update", id,
            "\"inputResponses\":{\"user_name\":" NAMED ",\"confirm\":7,\"other\":{}},", NULL),
        "\"resultType\":\"complete\"}");
    text = get(&c, id);
    HAS(text, "\"status\":\"input_required\"");
    LACKS(text, "user_name");
    HAS(text, "\"confirm\":{\"method\"");
    HAS(task_as(&c, "tasks/update", id, "\"inputResponses\":{\"confirm\":{\"a\":1}},", NULL),
        "complete");
    text = get(&c, id);
    HAS(text, "\"status\":\"completed\"");
    HAS(text, "Alice");
    HAS(text, "\\\"confirm\\\":{\\\"a\\\":1}");
    HAS(task_as(&c, "tasks/update", id, "\"inputResponses\":{\"confirm\":{}},", NULL), "complete");
    id = id_in(call(&c, "confirm_delete", "{}"));
    pass(&w, 61ull * SECOND); /* as long as the question may wait, and the task lives */
    HAS(get(&c, id), "Unknown task");
    finish(&w);
}

static void a_call_asks_first_and_works_later(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    const char *text = call(&c, "test_tool_with_task", "{}");
    HAS(text, "\"resultType\":\"input_required\"");
    char params[8192], kept[6000];
    const char *at = strstr(text, "\"requestState\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 16, "%5999[^\"]", kept), 1);
    snprintf(params, sizeof params,
        "\"name\":\"test_tool_with_task\",\"arguments\":{},\"requestState\":\"%s\","
        "\"inputResponses\":{\"user_name\":" NAMED "},",
        kept);
    text = ask_modern(&c,
        (struct modern){.method = "tools/call",
            .name = "test_tool_with_task",
            .params = params,
            .capabilities = TAKES});
    HAS(text, "\"resultType\":\"task\"");
    LACKS(text, "requestState");
    text = get(&c, id_in(text));
    HAS(text, "\"status\":\"completed\"");
    HAS(text, "Alice");
    finish(&w);
}

static lp_id listen_for(struct client *c, const char *ids, const char *capabilities,
    const char *head, const char **ret_text)
{
    char params[1024];
    lp_id conn = dial(c->world);
    snprintf(params, sizeof params,
        "\"notifications\":{\"promptsListChanged\":true,\"taskIds\":%s},", ids);
    *ret_text = ask_modern_on(c, conn,
        (struct modern){.method = "subscriptions/listen",
            .params = params,
            .capabilities = capabilities,
            .head = head,
            .id = "\"L\""});
    return conn;
}

#define LISTENED "\"_meta\":{\"" PREFIX "subscriptionId\":\"L\"}"

static void who_listens_is_told_of_his_tasks(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN("m1"));
    const char *text;
    char id[128], ids[512], granted[512];
    snprintf(id, sizeof id, "%s", id_in(call(&c, "multi_input", "{}")));
    snprintf(
        ids, sizeof ids, "[\"m1.0f7b2a36-4c1d-4a7e-9a51-3f6f0c2d1e00\",7,\"m2.1\",\"%s\"]", id);
    snprintf(granted, sizeof granted,
        "\"notifications\":{\"promptsListChanged\":true,\"taskIds\":[\"%s\"]}," LISTENED, id);
    lp_id conn = listen_for(&c, ids, TAKES, NULL, &text);
    HAS(text, granted);
    /* Who asks for other things, for no list, or does not take tasks, or is another one. */
    lp_id none = listen_for(&c, "[\"m1.x\"]", TAKES, NULL, &text);
    LACKS(text, "taskIds");
    (void)listen_for(&c, "{}", TAKES, NULL, &text);
    LACKS(text, "taskIds");
    (void)listen_for(&c, ids, NULL, NULL, &text);
    LACKS(text, "taskIds");
    (void)listen_for(&c, ids, TAKES, "Authorization: Bearer other\r\n", &text);
    LACKS(text, "taskIds");
    /* A part of the answers, the rest, the end. */
    (void)task_as(&c, "tasks/update", id, "\"inputResponses\":{\"user_name\":" NAMED "},", NULL);
    text = got(&w, conn);
    HAS(text, "\"method\":\"notifications/tasks\",\"params\":{\"taskId\":\"m1.");
    HAS(text, "\"status\":\"input_required\"");
    HAS(text, "\"inputRequests\":{\"confirm\":{");
    LACKS(text, "user_name");
    LACKS(text, "resultType");
    HAS(text, "}}," LISTENED "}}");
    (void)task_as(&c, "tasks/update", id, "\"inputResponses\":{\"confirm\":{\"a\":1}},", NULL);
    text = got(&w, conn);
    HAS(text, "\"status\":\"working\"");
    HAS(text, "\"status\":\"completed\"");
    HAS(text, "\"result\":{");
    assert_string_equal(got(&w, none), "");
    finish(&w);
}

static void who_listens_is_told_of_other_ends(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    const char *text;
    char slow[128], broken[128], ids[512];
    snprintf(slow, sizeof slow, "%s", id_in(call(&c, "slow_compute", "{\"seconds\":3}")));
    snprintf(broken, sizeof broken, "%s", id_in(call(&c, "protocol_error_job", "{}")));
    snprintf(ids, sizeof ids, "[\"%s\",\"%s\",\"%s\"]", slow, broken, slow);
    lp_id conn = listen_for(&c, ids, TAKES, NULL, &text);
    HAS(text, slow);
    HAS(text, broken);
    (void)task_as(&c, "tasks/cancel", slow, "", NULL);
    HAS(got(&w, conn), "\"status\":\"cancelled\"");
    (void)task_as(&c, "tasks/cancel", slow, "", NULL);
    assert_string_equal(got(&w, conn), "");
    let_time_pass(&w, SECOND);
    text = got(&w, conn);
    HAS(text, "\"status\":\"failed\"");
    HAS(text, "\"error\":{\"code\":-32603");
    offer.has_tasks = false;
    (void)listen_for(&c, ids, TAKES, NULL, &text);
    LACKS(text, "taskIds");
    finish(&w);
}

static void there_is_an_end_to_them(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w, LP_SPAN(""));
    for (int i = 0; i < LP_SERVER_TASKS_MAX; i++)
        (void)id_in(call(&c, "slow_compute", "{\"seconds\":30}"));
    lp_id conn = dial(&w);
    (void)ask_modern_on(&c, conn,
        (struct modern){.method = "tools/call",
            .name = "slow_compute",
            .params = "\"name\":\"slow_compute\",\"arguments\":{},",
            .capabilities = TAKES});
    pass(&w, SECOND);
    HAS(got(&w, conn), "computed"); /* without a task */
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    pass(&w, 20ull * SECOND);
    assert_true(w.stopped);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_becomes_a_task),
        cmocka_unit_test(errors_of_tools_and_of_calls_differ),
        cmocka_unit_test(who_does_not_take_tasks_gets_none),
        cmocka_unit_test(only_its_principal_finds_a_task),
        cmocka_unit_test(another_owners_task_is_replayed),
        cmocka_unit_test(without_an_owner_no_task_is_replayed),
        cmocka_unit_test(a_task_is_cancelled),
        cmocka_unit_test(questions_wait_in_the_task),
        cmocka_unit_test(a_call_asks_first_and_works_later),
        cmocka_unit_test(who_listens_is_told_of_his_tasks),
        cmocka_unit_test(who_listens_is_told_of_other_ends),
        cmocka_unit_test(there_is_an_end_to_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
