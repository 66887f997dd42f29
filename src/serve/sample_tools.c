/* The tools of the sample server (serve/sample_tools.h).
 *
 * `counter` lives in the session and nowhere else: an answer that goes on counting proves that the
 * request reached where the session is. `slow` shows progress as an event stream
 * where the client takes one, and answers as plain JSON where not. */
#include "serve/sample_tools.h"

#include <stdio.h>
#include <stdlib.h>

#include "serve/job.h"
#include "wire/member.h"

enum { SLOW_MS_MAX = 600000, SLOW_STEPS_MAX = 1000, NOTIFY_MAX = 100, TEXT_MAX = 64 };
enum { ASK_US = 600000000 }; /* people take their time */
enum { INVALID_PARAMS = -32602, INTERNAL = -32603 };

#define WHOLE_NUMBER(min, max) "{\"type\":\"integer\",\"minimum\":" min ",\"maximum\":" max "}"
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"

static void refuse(struct lp_job *call, const char *message)
{
    lp_job_error(call, INVALID_PARAMS, message);
}

static void echo(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out out;
    struct lp_span message = lp_member(lp_job_arguments(call), LP_SPAN("message"));
    if (!message.len || message.ptr[0] != '"') {
        refuse(call, "echo needs the argument message, a string");
        return;
    }
    lp_out_init(&out);
    lp_out_str(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    lp_out_put(&out, message);
    lp_out_str(&out, "}]}");
    lp_job_finish(call, &out);
}

static void whoami(void *ctx, struct lp_job *call)
{
    const struct lp_sample_self *self = ctx;
    lp_job_text(call, self->name);
}

/* --- counter --- */

static void answer_count(const struct lp_sample_self *self, struct lp_job *call)
{
    struct lp_out out;
    unsigned long long count = (uintptr_t)lp_job_state(call);
    lp_out_init(&out);
    lp_out_printf(&out, "{\"content\":[{\"type\":\"text\",\"text\":\"%llu\"}]", count);
    lp_out_printf(&out, ",\"structuredContent\":{\"count\":%llu,\"replica\":", count);
    lp_out_quote(&out, self->name);
    lp_out_str(&out, "}}");
    lp_job_finish(call, &out);
}

/* Writes the count, made from the state of that revision. */
static void write_count(struct lp_job *call, uint64_t revision, uint64_t count)
{
    char text[TEXT_MAX];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    lp_job_set_state(call, (void *)(uintptr_t)count); // NOLINT: a number
    int err = lp_job_state_set(call, revision, lp_span(text, (size_t)n));
    if (err == LP_EUNSUPPORTED)
        refuse(call, "there is no session here, so nothing is counted");
    else if (err)
        lp_job_error(call, INTERNAL, "too much waits for the session's state; call again");
}

static void counter(void *ctx, struct lp_job *call)
{
    (void)ctx;
    write_count(call, 0, 1); /* if it is not the first one, we are told how far it is */
}

static void counter_goes_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    uint64_t count = 0;
    if (wake->outcome == LP_STATE_DONE)
        answer_count(ctx, call);
    else if (wake->outcome == LP_STATE_AWAY)
        lp_job_error(call, INTERNAL, "nothing was counted: the state is away; call again");
    else if (wake->outcome == LP_STATE_IN_DOUBT)
        lp_job_error(call, INTERNAL, "the session's state broke off; it may have been counted");
    else if (lp_span_to_u64(wake->state, &count))
        write_count(call, wake->revision, count + 1);
    else
        lp_job_error(call, INTERNAL, "the session's state is no number");
}

/* --- notify --- */

static bool notify_once(const struct lp_sample_self *self, struct lp_job *call, uint64_t number)
{
    struct lp_out data;
    lp_out_init(&data);
    lp_out_str(&data, "{\"replica\":");
    lp_out_quote(&data, self->name);
    lp_out_printf(&data, ",\"number\":%llu}", (unsigned long long)number);
    bool is_sent = !data.failed &&
        lp_job_log_session(call, LP_LEVEL_INFO, "limpet-replica", lp_out_span(&data));
    lp_out_release(&data);
    return is_sent;
}

static void notify(void *ctx, struct lp_job *call)
{
    char text[TEXT_MAX];
    uint64_t count = 1;
    uint64_t sent = 0;
    struct lp_span arguments = lp_job_arguments(call);
    if (!lp_member_u64(arguments, LP_SPAN("count"), &count) || !count || count > NOTIFY_MAX) {
        refuse(call, "count must be a whole number from 1 to 100");
        return;
    }
    while (sent < count && notify_once(ctx, call, sent + 1))
        sent++;
    int n = snprintf(text, sizeof text, "sent %llu", (unsigned long long)sent);
    lp_job_text(call, lp_span(text, (size_t)n));
}

/* --- slow --- */

struct slow {
    uint64_t step_us;
    uint32_t steps;
    uint32_t done;
};

static void wait_step(struct lp_job *call, const struct slow *slow)
{
    if (lp_job_wait(call, slow->step_us))
        lp_job_error(call, INTERNAL, "out of memory");
}

static void slow(void *ctx, struct lp_job *call)
{
    (void)ctx;
    uint64_t ms = 1000;
    uint64_t steps = 5;
    struct lp_span arguments = lp_job_arguments(call);
    if (!lp_member_u64(arguments, LP_SPAN("ms"), &ms) || ms > SLOW_MS_MAX) {
        refuse(call, "ms must be a whole number from 0 to 600000");
        return;
    }
    if (!lp_member_u64(arguments, LP_SPAN("steps"), &steps) || !steps || steps > SLOW_STEPS_MAX) {
        refuse(call, "steps must be a whole number from 1 to 1000");
        return;
    }
    struct slow *slow = malloc(sizeof *slow);
    if (!slow) {
        lp_job_error(call, INTERNAL, "out of memory");
        return;
    }
    *slow = (struct slow){.step_us = ms * 1000 / steps, .steps = (uint32_t)steps};
    lp_job_set_state(call, slow);
    wait_step(call, slow);
}

static void slow_step(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake; /* it only ever waits */
    char text[TEXT_MAX];
    struct slow *slow = lp_job_state(call);
    slow->done++;
    lp_job_progress(call, slow->done, slow->steps);
    if (slow->done < slow->steps) {
        wait_step(call, slow);
        return;
    }
    int n = snprintf(text, sizeof text, "done in %u steps", slow->steps);
    lp_job_text(call, lp_span(text, (size_t)n));
}

static void slow_over(void *ctx, struct lp_job *call)
{
    (void)ctx;
    free(lp_job_state(call));
}

/* --- ask --- */

/* Nothing is done before the answer is there, as lp_job_ask wants it. */
static void ask(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out params;
    struct lp_span question = lp_member(lp_job_arguments(call), LP_SPAN("question"));
    bool is_text = question.len && question.ptr[0] == '"';
    lp_out_init(&params);
    lp_out_str(&params, "{\"mode\":\"form\",\"message\":");
    lp_out_put(&params, is_text ? question : LP_SPAN("\"What shall I say?\""));
    lp_out_str(&params,
        ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"answer\":{\"type\":"
        "\"string\"}},\"required\":[\"answer\"]}}");
    int err = params.failed ? LP_ENOMEM
                            : lp_job_ask(call, "elicitation/create", lp_out_span(&params), ASK_US);
    lp_out_release(&params);
    if (err == LP_EUNSUPPORTED)
        lp_job_lacks(call, "{\"elicitation\":{}}");
    else if (err)
        lp_job_tool_error(call, "the question could not be asked; see that a stream is open");
}

static void ask_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    const struct lp_sample_self *self = ctx;
    struct lp_out out;
    struct lp_span content = lp_member(wake->result, LP_SPAN("content"));
    struct lp_span answer = lp_member(content, LP_SPAN("answer"));
    if (!answer.len || answer.ptr[0] != '"') {
        lp_job_tool_error(call, wake->kind == LP_WAKE_TIMEOUT ? "no answer came" : "no answer");
        return;
    }
    lp_out_init(&out);
    lp_out_str(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    lp_out_put(&out, answer);
    lp_out_str(&out, "}],\"structuredContent\":{\"replica\":");
    lp_out_quote(&out, self->name);
    lp_out_str(&out, "}}");
    lp_job_finish(call, &out);
}

/* --- the list --- */

static const struct lp_tool TOOLS[] = {
    {.name = "echo",
        .description = "Says what it was told",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},"
                        "\"required\":[\"message\"]}",
        .handler = {.run = echo}},
    {.name = "whoami",
        .description = "Tells which replica answered",
        .input_schema = NO_ARGUMENTS,
        .handler = {.run = whoami}},
    {.name = "counter",
        .description = "Adds one to a number kept in this session",
        .input_schema = NO_ARGUMENTS,
        .handler = {.run = counter, .wake = counter_goes_on}},
    {.name = "slow",
        .description = "Takes its time, with progress",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"ms\":" WHOLE_NUMBER(
            "0", "600000") ",\"steps\":" WHOLE_NUMBER("1", "1000") "}}",
        .handler = {.run = slow, .wake = slow_step, .over = slow_over}},
    {.name = "notify",
        .description = "Sends log messages on the session's GET stream",
        .input_schema =
            "{\"type\":\"object\",\"properties\":{\"count\":" WHOLE_NUMBER("1", "100") "}}",
        .handler = {.run = notify}},
    {.name = "ask",
        .description = "Asks the user a question and says the answer",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\"}}}",
        .handler = {.run = ask, .wake = ask_on}},
};

void lp_sample_offer(struct lp_sample_self *self, struct lp_offer *ret)
{
    *ret =
        (struct lp_offer){.tools = TOOLS, .tool_count = sizeof TOOLS / sizeof *TOOLS, .ctx = self};
}
