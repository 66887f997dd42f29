/* What the scenarios for 2026-07-28 of the conformance suite ask a server for beyond conf_offer.h,
 * which includes this. */
#ifndef LP_TEST_CONF_MODERN_H
#define LP_TEST_CONF_MODERN_H

#include <string.h>

#include "conf_texts.h"
#include "serve/job.h"
#include "wire/member.h"

enum { CONF_ROUND_US = 60000000 };

static const struct lp_question CONF_NAME = {"user_name", "elicitation/create",
    {CONF_FORM("What is your name?", "name", "string"),
        sizeof CONF_FORM("What is your name?", "name", "string") - 1}};

/* Asks, or says what the client would have to be able to do. */
static inline void conf_ask(struct lp_job *call, const struct lp_question *questions,
    uint32_t count, const char *capability)
{
    int err = lp_job_ask_all(call, questions, count, CONF_ROUND_US);
    if (err == LP_EUNSUPPORTED)
        lp_job_lacks(call, capability);
    else if (err)
        lp_job_tool_error(call, lp_error_sentence(err));
}

/* The answers, as they are. */
static inline void conf_answered(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    lp_job_text(call, wake->result.len ? wake->result : LP_SPAN("no answer"));
}

static inline void ask_name(void *ctx, struct lp_job *call)
{
    (void)ctx;
    conf_ask(call, &CONF_NAME, 1, "{\"elicitation\":{}}");
}

static inline void ask_capital(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question q = {"capital_question", "sampling/createMessage",
        LP_SPAN(CONF_SAMPLE("What is the capital of France?"))};
    conf_ask(call, &q, 1, "{\"sampling\":{}}");
}

static inline void ask_roots(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question q = {"client_roots", "roots/list", LP_SPAN("{}")};
    conf_ask(call, &q, 1, "{\"roots\":{}}");
}

static inline void ask_confirm(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question q = {
        "confirm", "elicitation/create", LP_SPAN(CONF_FORM("Please confirm", "ok", "boolean"))};
    conf_ask(call, &q, 1, "{\"elicitation\":{}}");
}

/* The server has opened and checked the state before it comes here. */
static inline void conf_confirmed(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake;
    lp_job_text(call, LP_SPAN("state-ok"));
}

static inline void ask_everything(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question all[] = {CONF_NAME,
        {"greeting", "sampling/createMessage", LP_SPAN(CONF_SAMPLE("Generate a greeting"))},
        {"client_roots", "roots/list", LP_SPAN("{}")}};
    conf_ask(call, all, 3, "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}");
}

static inline void ask_what_it_can(void *ctx, struct lp_job *call)
{
    if (lp_job_ask_all(call, &CONF_NAME, 1, CONF_ROUND_US))
        ask_capital(ctx, call);
}

static inline void ask_step1(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question q = {"step1", "elicitation/create",
        LP_SPAN(CONF_FORM("Step 1: What is your name?", "name", "string"))};
    conf_ask(call, &q, 1, "{\"elicitation\":{}}");
}

static inline void ask_step2(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    const struct lp_question q = {"step2", "elicitation/create",
        LP_SPAN(CONF_FORM("Step 2: What is your favorite color?", "color", "string"))};
    if (lp_member(wake->result, LP_SPAN("step1")).len)
        conf_ask(call, &q, 1, "{\"elicitation\":{}}");
    else
        conf_answered(ctx, call, wake);
}

static inline void prompt_of_context(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question q = {"user_context", "elicitation/create",
        LP_SPAN(CONF_FORM("What context should the prompt use?", "context", "string"))};
    conf_ask(call, &q, 1, "{\"elicitation\":{}}");
}

static inline void prompt_with_context(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    lp_out_quote(&out, wake->result);
    lp_out_str(&out, "}}]}");
    lp_job_finish(call, &out);
}

static inline void conf_needs_sampling(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_lacks(call, "{\"sampling\":{}}");
}

static inline void tools_change(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_server_list_changed(lp_job_server(call), LP_LIST_TOOLS);
    lp_job_text(call, LP_SPAN("the tools have changed"));
}

static inline void prompts_change(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_server_list_changed(lp_job_server(call), LP_LIST_PROMPTS);
    lp_job_text(call, LP_SPAN("the prompts have changed"));
}

/* --- calls that become tasks --- */

enum { CONF_TTL_MS = 60000, CONF_WORK_US = 300000 };

/* False: it is no task, and the call may have been ended. */
static inline bool conf_is_task(struct lp_job *call, bool is_needed)
{
    int err = lp_job_task(call, CONF_TTL_MS);
    if (err && is_needed)
        lp_job_lacks(call, "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    return !err;
}

static inline void conf_work(struct lp_job *call, uint64_t us)
{
    if (lp_job_wait(call, us))
        lp_job_error(call, -32603, "out of memory");
}

static inline void greet(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out text;
    lp_out_init(&text);
    struct lp_span name = lp_member(lp_job_arguments(call), LP_SPAN("name"));
    lp_out_str(&text, "Hello, ");
    if (name.len > 1)
        lp_out_put(&text, lp_span(name.ptr + 1, name.len - 2));
    lp_out_str(&text, "!");
    lp_job_text(call, lp_out_span(&text));
    lp_out_release(&text);
}

static inline void compute(void *ctx, struct lp_job *call)
{
    (void)ctx;
    uint64_t seconds = 0;
    (void)!lp_member_u64(lp_job_arguments(call), LP_SPAN("seconds"), &seconds);
    bool is_task = conf_is_task(call, false);
    conf_work(call, is_task ? seconds * 1000000 : 0);
}

static inline void computed(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake;
    lp_job_text(call, LP_SPAN("computed"));
}

static inline void fail_as_tool(void *ctx, struct lp_job *call)
{
    (void)ctx;
    if (conf_is_task(call, true))
        conf_work(call, CONF_WORK_US);
}

static inline void failed_as_tool(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake;
    lp_job_tool_error(call, "the job has failed");
}

static inline void fail_as_call(void *ctx, struct lp_job *call)
{
    fail_as_tool(ctx, call);
}

static inline void failed_as_call(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake;
    lp_job_error(call, -32603, "the job broke off");
}

static inline void confirm_in_task(void *ctx, struct lp_job *call)
{
    if (conf_is_task(call, true))
        ask_confirm(ctx, call);
}

static inline void confirmed_in_task(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    lp_job_text(call, wake->kind == LP_WAKE_TIMEOUT ? LP_SPAN("no answer") : wake->result);
}

static inline void ask_two_in_task(void *ctx, struct lp_job *call)
{
    (void)ctx;
    const struct lp_question both[] = {CONF_NAME,
        {"confirm", "elicitation/create",
            LP_SPAN(CONF_FORM("Please confirm", "confirm", "boolean"))}};
    if (conf_is_task(call, true))
        conf_ask(call, both, 2, "{\"elicitation\":{}}");
}

/* Asked as a call, finished as a task. */
static inline void named_task(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    if (!conf_is_task(call, true))
        return;
    conf_answered(ctx, call, wake);
}

#define CONF_SECONDS "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"}}}"

#endif
