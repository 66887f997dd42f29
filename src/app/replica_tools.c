/* What `limpet replica` offers, as any program would write them: on limpet-server.h alone.
 *
 * `counter` lives in the session and nowhere else: an answer that goes on counting proves that the
 * request reached where the session is. `slow` shows progress as an event stream where the client
 * takes one, and answers as plain JSON where not. `notify` gives clients something to listen to. */
#include "app/replica_tools.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOW_MS_MAX = 600000, SLOW_STEPS_MAX = 1000, NOTIFY_MAX = 100, TEXT_MAX = 128 };
enum { ASK_MS = 600000, TASK_MS = 600000 }; /* people take their time */
enum { INVALID_PARAMS = -32602, INTERNAL = -32603 };

#define WHOLE_NUMBER(min, max) "{\"type\":\"integer\",\"minimum\":" min ",\"maximum\":" max "}"
#define A_BOOL "{\"type\":\"boolean\"}"
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"
#define NOTIFIED "replica://notified"
#define TEXT_CONTENT "{\"content\":[{\"type\":\"text\",\"text\":"

static void refuse(struct limpet_call *call, const char *message)
{
    limpet_call_error(call, INVALID_PARAMS, message);
}

static void fail(struct limpet_call *call, const char *message)
{
    limpet_call_error(call, INTERNAL, message);
}

/* Ends the call with the JSON that the format makes. */
__attribute__((format(printf, 2, 3))) static void answer(
    struct limpet_call *call, const char *format, ...)
{
    char *json;
    va_list values;
    va_start(values, format);
    int n = vasprintf(&json, format, values);
    va_end(values);
    if (n < 0) {
        fail(call, "out of memory");
        return;
    }
    limpet_call_result(call, limpet_bytes(json, (size_t)n));
    free(json);
}

/* The argument of that name, when it is a string: raw, with its quotes. Else empty. */
static struct limpet_span text_argument(const struct limpet_call *call, const char *name)
{
    struct limpet_span value = limpet_json_member(limpet_call_arguments(call), name);
    bool is_text = value.len && value.ptr[0] == '"';
    return is_text ? value : limpet_bytes("", 0);
}

/* False: it is there, and no whole number from `min` to `max`. */
static bool number_argument(
    const struct limpet_call *call, const char *name, int64_t min, int64_t max, int64_t *number)
{
    int err = limpet_json_integer(limpet_call_arguments(call), name, number);
    return err == LIMPET_ENOT_FOUND || (!err && *number >= min && *number <= max);
}

static void echo(void *context, struct limpet_call *call)
{
    (void)context;
    struct limpet_span message = text_argument(call, "message");
    if (message.len)
        answer(call, TEXT_CONTENT "%.*s}]}", (int)message.len, message.ptr);
    else
        refuse(call, "echo needs the argument message, a string");
}

static void whoami(void *context, struct limpet_call *call)
{
    const struct lp_replica_self *self = context;
    limpet_call_text(call, limpet_str(self->name));
}

/* --- counter --- */

/* Writes the count, made from the state of that revision. */
static void write_count(struct limpet_call *call, uint64_t revision, uint64_t count)
{
    char text[TEXT_MAX];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    limpet_call_set_data(call, (void *)(uintptr_t)count); // NOLINT: a number
    int err = limpet_call_state_set(call, revision, limpet_bytes(text, (size_t)n));
    if (err == LIMPET_EUNSUPPORTED)
        refuse(call,
            "there is no session here, so nothing is counted; limpet inspect opens one with --era "
            "legacy");
    else if (err)
        fail(call, "too much waits for the session's state; call again");
}

static void counter(void *context, struct limpet_call *call)
{
    (void)context;
    write_count(call, 0, 1); /* if it is not the first one, we are told how far it is */
}

static void count_on(struct limpet_call *call, const struct limpet_wake *wake)
{
    char text[TEXT_MAX];
    char *end;
    (void)snprintf(text, sizeof text, "%.*s", (int)wake->state.len, wake->state.ptr);
    unsigned long long count = strtoull(text, &end, 10);
    if (end == text || *end)
        fail(call, "the session's state is no number");
    else
        write_count(call, wake->revision, count + 1);
}

static void counter_goes_on(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    const struct lp_replica_self *self = context;
    unsigned long long count = (uintptr_t)limpet_call_data(call);
    if (wake->outcome == LIMPET_STATE_DONE)
        answer(call,
            TEXT_CONTENT "\"%llu\"}],\"structuredContent\":{\"count\":%llu,\"replica\":\"%s\"}}",
            count, count, self->name);
    else if (wake->outcome == LIMPET_STATE_AWAY)
        fail(call, "nothing was counted: the state is away; call again");
    else if (wake->outcome == LIMPET_STATE_IN_DOUBT)
        fail(call, "the session's state broke off; it may have been counted");
    else
        count_on(call, wake);
}

/* --- notify, and the resource that it tells of --- */

static const char *const ABOUT[] = {"log", "tools", "resource"};
enum about { ABOUT_LOG, ABOUT_TOOLS, ABOUT_RESOURCE, ABOUT_COUNT };

/* What the argument `about` says; ABOUT_COUNT: nothing that we know. */
static enum about about_argument(const struct limpet_call *call)
{
    char room[16];
    struct limpet_span text;
    unsigned about = ABOUT_LOG;
    int err = limpet_json_text(limpet_call_arguments(call), "about", room, sizeof room, &text);
    if (err)
        return err == LIMPET_ENOT_FOUND ? ABOUT_LOG : ABOUT_COUNT;
    while (about < ABOUT_COUNT && strcmp(ABOUT[about], room) != 0)
        about++;
    return (enum about)about;
}

static bool log_once(const struct lp_replica_self *self, struct limpet_call *call, int64_t number)
{
    char data[TEXT_MAX];
    int n = snprintf(
        data, sizeof data, "{\"replica\":\"%s\",\"number\":%lld}", self->name, (long long)number);
    return limpet_call_log_session_json(
        call, LIMPET_LEVEL_INFO, "limpet-replica", limpet_bytes(data, (size_t)n));
}

static bool notify_once(
    struct lp_replica_self *self, struct limpet_call *call, enum about about, int64_t number)
{
    if (about == ABOUT_LOG)
        return log_once(self, call, number);
    if (about == ABOUT_TOOLS) {
        limpet_server_list_changed(self->server, LIMPET_LIST_TOOLS);
        return true;
    }
    self->notified++;
    limpet_server_resource_updated(self->server, NOTIFIED);
    return true;
}

static void notify(void *context, struct limpet_call *call)
{
    char text[TEXT_MAX];
    int64_t count = 1;
    int64_t sent = 0;
    enum about about = about_argument(call);
    if (!number_argument(call, "count", 1, NOTIFY_MAX, &count)) {
        refuse(call, "count must be a whole number from 1 to 100");
        return;
    }
    if (about == ABOUT_COUNT) {
        refuse(call, "about must be log, tools or resource");
        return;
    }
    while (sent < count && notify_once(context, call, about, sent + 1))
        sent++;
    int n = snprintf(text, sizeof text, "sent %lld", (long long)sent);
    limpet_call_text(call, limpet_bytes(text, (size_t)n));
}

static void read_notified(void *context, struct limpet_call *call)
{
    const struct lp_replica_self *self = context;
    answer(call,
        "{\"contents\":[{\"uri\":\"" NOTIFIED "\",\"mimeType\":\"application/json\",\"text\":"
        "\"{\\\"replica\\\":\\\"%s\\\",\\\"count\\\":%lld}\"}]}",
        self->name, (long long)self->notified);
}

/* --- slow --- */

struct slow {
    int64_t ms;
    int64_t steps;
    int64_t done;
};

/* Where it is asked to be a task and its client takes none, the call goes on as it is. */
static void take_as_task(struct limpet_call *call)
{
    bool is_task = false;
    int err = limpet_json_bool(limpet_call_arguments(call), "task", &is_task);
    if (!err && is_task)
        (void)!limpet_call_task(call, TASK_MS);
}

static void wait_step(struct limpet_call *call, const struct slow *slow)
{
    int64_t ms = slow->ms * (slow->done + 1) / slow->steps - slow->ms * slow->done / slow->steps;
    if (limpet_call_wait(call, (uint32_t)ms))
        fail(call, "out of memory");
}

static void slow(void *context, struct limpet_call *call)
{
    (void)context;
    struct slow plan = {.ms = 1000, .steps = 5};
    if (!number_argument(call, "ms", 0, SLOW_MS_MAX, &plan.ms)) {
        refuse(call, "ms must be a whole number from 0 to 600000");
        return;
    }
    if (!number_argument(call, "steps", 1, SLOW_STEPS_MAX, &plan.steps)) {
        refuse(call, "steps must be a whole number from 1 to 1000");
        return;
    }
    struct slow *slow = malloc(sizeof *slow);
    if (!slow) {
        fail(call, "out of memory");
        return;
    }
    *slow = plan;
    limpet_call_set_data(call, slow);
    take_as_task(call);
    wait_step(call, slow);
}

static void slow_step(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake; /* it only ever waits */
    char text[TEXT_MAX];
    struct slow *slow = limpet_call_data(call);
    slow->done++;
    limpet_call_progress(call, (uint64_t)slow->done, (uint64_t)slow->steps);
    if (slow->done < slow->steps) {
        wait_step(call, slow);
        return;
    }
    int n = snprintf(text, sizeof text, "done in %lld steps", (long long)slow->steps);
    limpet_call_text(call, limpet_bytes(text, (size_t)n));
}

static void slow_over(void *context, struct limpet_call *call)
{
    (void)context;
    free(limpet_call_data(call));
}

/* --- ask --- */

/* Nothing is done before the answer is there, as limpet_call_ask wants it. */
static void ask(void *context, struct limpet_call *call)
{
    (void)context;
    char *params;
    struct limpet_span question = text_argument(call, "question");
    if (!question.len)
        question = limpet_str("\"What shall I say?\"");
    int n = asprintf(&params,
        "{\"mode\":\"form\",\"message\":%.*s,\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"answer\":{\"type\":\"string\"}},\"required\":[\"answer\"]}}",
        (int)question.len, question.ptr);
    if (n < 0) {
        fail(call, "out of memory");
        return;
    }
    take_as_task(call);
    int err = limpet_call_ask(call, "elicitation/create", limpet_bytes(params, (size_t)n), ASK_MS);
    free(params);
    if (err == LIMPET_EUNSUPPORTED)
        limpet_call_lacks(call, "{\"elicitation\":{}}");
    else if (err)
        limpet_call_tool_error(
            call, limpet_str("the question could not be asked; see that a stream is open"));
}

static void ask_on(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    const struct lp_replica_self *self = context;
    bool is_late = wake->kind == LIMPET_WAKE_TIMEOUT;
    struct limpet_span text =
        limpet_json_member(limpet_json_member(wake->result, "content"), "answer");
    if (text.len && text.ptr[0] == '"')
        answer(call, TEXT_CONTENT "%.*s}],\"structuredContent\":{\"replica\":\"%s\"}}",
            (int)text.len, text.ptr, self->name);
    else
        limpet_call_tool_error(call, limpet_str(is_late ? "no answer came" : "no answer"));
}

/* --- the list --- */

static const struct limpet_tool TOOLS[] = {
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
        .description = "Takes its time, with progress; as a task where that is wanted",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"ms\":" WHOLE_NUMBER(
            "0", "600000") ",\"steps\":" WHOLE_NUMBER("1", "1000") ",\"task\":" A_BOOL "}}",
        .handler = {.run = slow, .wake = slow_step, .over = slow_over}},
    {.name = "notify",
        .description = "Sends log messages on the session's GET stream, or tells those who listen "
                       "that the tools are others, or the resource " NOTIFIED,
        .input_schema = "{\"type\":\"object\",\"properties\":{\"count\":" WHOLE_NUMBER("1",
            "100") ",\"about\":{\"type\":\"string\",\"enum\":[\"log\",\"tools\",\"resource\"]}}}",
        .handler = {.run = notify}},
    {.name = "ask",
        .description =
            "Asks the user a question and says the answer; as a task where that is wanted",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\"},"
                        "\"task\":" A_BOOL "}}",
        .handler = {.run = ask, .wake = ask_on}},
};

int lp_replica_add_tools(struct limpet_server *server, struct lp_replica_self *self)
{
    struct limpet_resource resource = {.uri = NOTIFIED,
        .name = "notified",
        .description = "How often this replica has told that this has changed",
        .mime_type = "application/json",
        .handler = {.run = read_notified, .context = self}};
    self->server = server;
    int err = limpet_server_add_resource(server, &resource);
    for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS && !err; i++) {
        struct limpet_tool tool = TOOLS[i];
        tool.handler.context = self;
        err = limpet_server_add_tool(server, &tool);
    }
    return err;
}
