/* The program's state of a session in the memory of the process: read, written, written by somebody
 * else, and what is not possible. */
#include "serve/job.h"
#include "serve_harness.h"
#include "wire/member.h"

/* What put is to write: `value` with `revision`, after `ms`. Both tools answer with what they were
 * told: "outcome revision state". */
struct step {
    struct lp_span value;
    uint64_t revision;
    uint64_t ms;
};

static struct step step_of(const struct lp_job *call)
{
    struct step step = {0};
    struct lp_span arguments = lp_job_arguments(call);
    step.value = lp_member(arguments, LP_SPAN("value"));
    assert_true(lp_member_u64(arguments, LP_SPAN("revision"), &step.revision));
    assert_true(lp_member_u64(arguments, LP_SPAN("ms"), &step.ms));
    return step;
}

static void refuse(struct lp_job *call, int err)
{
    lp_job_tool_error(call, lp_error_name(err));
}

static void write_it(struct lp_job *call)
{
    struct step step = step_of(call);
    int err = lp_job_state_set(call, step.revision, step.value);
    if (err)
        refuse(call, err);
}

static void put(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct step step = step_of(call);
    if (step.ms)
        assert_int_equal(lp_job_wait(call, step.ms * 1000), 0);
    else
        write_it(call);
}

static void put_goes_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    char text[256];
    if (wake->kind == LP_WAKE_TIME) {
        write_it(call);
        return;
    }
    assert_int_equal(wake->kind, LP_WAKE_STATE);
    int n = snprintf(text, sizeof text, "%d %llu %.*s", (int)wake->outcome,
        (unsigned long long)wake->revision, (int)wake->state.len,
        wake->state.len ? wake->state.ptr : "");
    lp_job_text(call, lp_span(text, (size_t)n));
}

static void get(void *ctx, struct lp_job *call)
{
    (void)ctx;
    int err = lp_job_state_get(call);
    if (err)
        refuse(call, err);
}

static void put_too_much(void *ctx, struct lp_job *call)
{
    (void)ctx;
    static const char much[LP_SERVER_STATE_MAX + 1];
    refuse(call, lp_job_state_set(call, 0, lp_span(much, sizeof much)));
}

static const struct lp_tool tools[] = {
    {.name = "get", .input_schema = "{}", .handler = {.run = get, .wake = put_goes_on}},
    {.name = "put", .input_schema = "{}", .handler = {.run = put, .wake = put_goes_on}},
    {.name = "much", .input_schema = "{}", .handler = {.run = put_too_much, .wake = put_goes_on}},
};
static const struct lp_offer offer = {.tools = tools, .tool_count = 3};

#define PUT(value, revision, ms)                                                                   \
    CALL("1", "put", "{\"value\":" value ",\"revision\":" revision ",\"ms\":" ms "}")
#define GET CALL("1", "get", "{}")

static void state_is_read_and_written(void **state)
{
    (void)state;
    struct world w;
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = new_client(&w);
    struct client other = new_client(&w);
    const char *text = post(&c, GET);
    HAS(text, "content-type: application/json");
    HAS(text, "\"0 0 \"");
    HAS(post(&c, PUT("12", "0", "0")), "\"0 1 \"");
    HAS(post(&c, GET), "\"0 1 12\"");
    HAS(post(&c, PUT("13", "1", "0")), "\"0 2 \"");
    HAS(post(&c, GET), "\"0 2 13\"");
    HAS(post(&other, GET), "\"0 0 \"");
    finish(&w);
}

static void a_write_overwrites_no_other(void **state)
{
    (void)state;
    struct world w;
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    ask(&c, conn, "POST", PUT("1", "0", "50"));
    HAS(post(&c, PUT("2", "0", "0")), "\"0 1 \"");
    pass(&w, SECOND);
    HAS(got(&w, conn), "\"1 1 2\"");
    HAS(post(&c, GET), "\"0 1 2\"");
    finish(&w);
}

static void two_in_one_batch_take_their_turns(void **state)
{
    (void)state;
    struct world w;
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = {.world = &w};
    open_as(&c, INITIALIZE("2025-03-26"));
    const char *text = post(&c, "[" PUT("1", "0", "0") "," PUT("2", "0", "0") "," GET "]");
    HAS(text, "\"0 1 \"");
    HAS(text, "\"1 1 1\"");
    HAS(text, "\"0 1 1\"");
    finish(&w);
}

static void what_cannot_be_is_said(void **state)
{
    (void)state;
    struct world w;
    start_server(&w, &offer, (struct lp_server_args){0});
    struct client c = new_client(&w);
    HAS(post(&c, CALL("1", "much", "{}")), "TOO_LONG");
    finish(&w);
    start_server(&w, &offer, (struct lp_server_args){.mode = LP_SESSIONS_STATELESS});
    c = (struct client){.world = &w};
    HAS(post(&c, GET), "UNSUPPORTED");
    HAS(post(&c, PUT("1", "0", "0")), "UNSUPPORTED");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests_of_state[] = {
        cmocka_unit_test(state_is_read_and_written),
        cmocka_unit_test(a_write_overwrites_no_other),
        cmocka_unit_test(two_in_one_batch_take_their_turns),
        cmocka_unit_test(what_cannot_be_is_said),
    };
    return cmocka_run_group_tests(tests_of_state, NULL, NULL);
}
