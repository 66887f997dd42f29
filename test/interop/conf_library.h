/* What the scenarios of the official conformance suite ask a server for, as in conf_offer.h, but
 * written as a stranger would: on limpet-server.h alone. Used by conf-library.c and conf-host.c. */
#ifndef LP_TEST_CONF_LIBRARY_H
#define LP_TEST_CONF_LIBRARY_H

#include <limpet-server.h>
#include <stdint.h>
#include <stdlib.h>

#include "conf_texts.h"

enum { STEP_MS = 50, ASK_MS = 5000, ROUND_MS = 60000, WORK_MS = 300, TEXT_MAX = 4096 };

/* JSON that is put together in a room; too long is told by the server, which wants whole JSON. */
struct text {
    char room[TEXT_MAX];
    size_t len;
};

static void put(struct text *text, struct limpet_span bytes)
{
    if (text->len + bytes.len >= TEXT_MAX)
        return;
    memcpy(text->room + text->len, bytes.ptr, bytes.len);
    text->len += bytes.len;
}

static void put_str(struct text *text, const char *str)
{
    put(text, limpet_str(str));
}

static void put_quoted(struct text *text, struct limpet_span bytes)
{
    struct limpet_span json;
    if (!limpet_json_quote(bytes, text->room + text->len, TEXT_MAX - text->len, &json))
        text->len += json.len;
}

static struct limpet_span all(const struct text *text)
{
    return limpet_bytes(text->room, text->len);
}

/* The raw argument, a JSON string, or `otherwise`. */
static struct limpet_span argument(
    const struct limpet_call *call, const char *name, const char *otherwise)
{
    struct limpet_span given = limpet_json_member(limpet_call_arguments(call), name);
    return given.len ? given : limpet_str(otherwise);
}

/* A raw string token without its quotes. */
static struct limpet_span bare(struct limpet_span token)
{
    return token.len >= 2 ? limpet_bytes(token.ptr + 1, token.len - 2) : limpet_str("none");
}

/* --- tools ------------------------------------------------------------------------------------ */

/* The context is the result. */
static void constant(void *context, struct limpet_call *call)
{
    limpet_call_result(call, limpet_str(context));
}

static void fail(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_tool_error(
        call, limpet_str("This tool intentionally returns an error for testing"));
}

static void whoami(void *context, struct limpet_call *call)
{
    limpet_call_text(call, limpet_str(context));
}

static intptr_t stage_of(const struct limpet_call *call)
{
    return (intptr_t)limpet_call_data(call);
}

static void next_stage(struct limpet_call *call)
{
    limpet_call_set_data(call, (void *)(stage_of(call) + 1)); // NOLINT: a number
    if (limpet_call_wait(call, STEP_MS))
        limpet_call_error(call, -32603, "out of memory");
}

static void logging(void *context, struct limpet_call *call)
{
    static const char *const SAYS[] = {
        "Tool execution started", "Tool processing data", "Tool execution completed"};
    limpet_call_log(call, LIMPET_LEVEL_INFO, NULL, limpet_str(SAYS[stage_of(call)]));
    if (stage_of(call) < 2)
        next_stage(call);
    else
        constant(context, call);
}

static void logging_on(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)wake;
    logging(context, call);
}

static void progress(void *context, struct limpet_call *call)
{
    limpet_call_progress(call, (uint64_t)stage_of(call) * 50, 100);
    if (stage_of(call) < 2)
        next_stage(call);
    else
        constant(context, call);
}

static void progress_on(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)wake;
    progress(context, call);
}

static void reconnection(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_poll(call);
    next_stage(call);
}

static void reconnection_on(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)wake;
    constant(context, call);
}

/* --- tools that ask --------------------------------------------------------------------------- */

static void ask(struct limpet_call *call, const char *method, struct limpet_span params)
{
    int err = limpet_call_ask(call, method, params, ASK_MS);
    if (err)
        limpet_call_tool_error(call, limpet_str(limpet_server_why(NULL, err)));
}

/* The context is the properties that are asked for. */
static void elicit(void *context, struct limpet_call *call)
{
    struct text params = {.len = 0};
    put_str(&params, "{\"message\":");
    put(&params, argument(call, "message", "\"Who are you?\""));
    put_str(&params, ",\"requestedSchema\":");
    put_str(&params, context);
    put_str(&params, "}");
    ask(call, "elicitation/create", all(&params));
}

static void elicited(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    struct text text = {.len = 0};
    struct limpet_span content = limpet_json_member(wake->result, "content");
    if (!wake->result.len) {
        limpet_call_tool_error(
            call, limpet_str(wake->kind == LIMPET_WAKE_TIMEOUT ? "no answer" : "refused"));
        return;
    }
    put_str(&text, "Elicitation completed: action=");
    put(&text, bare(limpet_json_member(wake->result, "action")));
    put_str(&text, ", content=");
    put(&text, content.len ? content : limpet_str("{}"));
    limpet_call_text(call, all(&text));
}

static void sample(void *context, struct limpet_call *call)
{
    (void)context;
    struct text params = {.len = 0};
    put_str(&params, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    put(&params, argument(call, "prompt", "\"\""));
    put_str(&params, "}}],\"maxTokens\":100}");
    ask(call, "sampling/createMessage", all(&params));
}

static void sampled(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    struct text text = {.len = 0};
    struct limpet_span content = limpet_json_member(wake->result, "content");
    put_str(&text, "LLM response: ");
    put(&text, bare(limpet_json_member(content, "text")));
    limpet_call_text(call, all(&text));
}

/* --- tools that ask as 2026-07-28 has it ------------------------------------------------------ */

/* What a tool asks, and which capabilities of the client that takes. */
struct inquiry {
    struct limpet_question questions[3];
    size_t count;
    const char *needs;
};

#define FORM(message, name, type)                                                                  \
    "elicitation/create",                                                                          \
    {                                                                                              \
        CONF_FORM(message, name, type), sizeof CONF_FORM(message, name, type) - 1                  \
    }
#define SAMPLE(text)                                                                               \
    "sampling/createMessage",                                                                      \
    {                                                                                              \
        CONF_SAMPLE(text), sizeof CONF_SAMPLE(text) - 1                                            \
    }
#define ASK_ROOTS                                                                                  \
    {                                                                                              \
        "client_roots", "roots/list",                                                              \
        {                                                                                          \
            "{}", 2                                                                                \
        }                                                                                          \
    }
#define ASK_NAME                                                                                   \
    {                                                                                              \
        "user_name", FORM("What is your name?", "name", "string")                                  \
    }

static const struct inquiry INQUIRE_NAME = {{ASK_NAME}, 1, "{\"elicitation\":{}}"};
static const struct inquiry INQUIRE_CAPITAL = {
    {{"capital_question", SAMPLE("What is the capital of France?")}}, 1, "{\"sampling\":{}}"};
static const struct inquiry INQUIRE_ROOTS = {{ASK_ROOTS}, 1, "{\"roots\":{}}"};
static const struct inquiry INQUIRE_CONFIRM = {
    {{"confirm", FORM("Please confirm", "ok", "boolean")}}, 1, "{\"elicitation\":{}}"};
static const struct inquiry INQUIRE_ALL = {
    {ASK_NAME, {"greeting", SAMPLE("Generate a greeting")}, ASK_ROOTS}, 3,
    "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"};
static const struct inquiry INQUIRE_STEP1 = {
    {{"step1", FORM("Step 1: What is your name?", "name", "string")}}, 1, "{\"elicitation\":{}}"};
static const struct inquiry INQUIRE_STEP2 = {
    {{"step2", FORM("Step 2: What is your favorite color?", "color", "string")}}, 1,
    "{\"elicitation\":{}}"};
static const struct inquiry INQUIRE_TWO = {
    {ASK_NAME, {"confirm", FORM("Please confirm", "confirm", "boolean")}}, 2,
    "{\"elicitation\":{}}"};
static const struct inquiry INQUIRE_CONTEXT = {
    {{"user_context", FORM("What context should the prompt use?", "context", "string")}}, 1,
    "{\"elicitation\":{}}"};

static void inquire(void *context, struct limpet_call *call)
{
    const struct inquiry *inquiry = context;
    int err = limpet_call_ask_all(call, inquiry->questions, inquiry->count, ROUND_MS);
    if (err == LIMPET_EUNSUPPORTED)
        limpet_call_lacks(call, inquiry->needs);
    else if (err)
        limpet_call_tool_error(call, limpet_str(limpet_server_why(NULL, err)));
}

static void answered(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    limpet_call_text(call, wake->result.len ? wake->result : limpet_str("no answer"));
}

/* The server has opened and checked the state before it comes here. */
static void confirmed(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake;
    limpet_call_text(call, limpet_str("state-ok"));
}

static void inquire_what_it_can(void *context, struct limpet_call *call)
{
    (void)context;
    if (limpet_call_ask_all(call, INQUIRE_NAME.questions, 1, ROUND_MS))
        inquire((void *)&INQUIRE_CAPITAL, call);
}

static void inquire_further(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    if (limpet_json_member(wake->result, "step1").len)
        inquire((void *)&INQUIRE_STEP2, call);
    else
        answered(context, call, wake);
}

static void prompt_with_context(
    void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    struct text json = {.len = 0};
    put_str(&json, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    put_quoted(&json, wake->result);
    put_str(&json, "}}]}");
    limpet_call_result(call, all(&json));
}

static void needs_sampling(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_lacks(call, "{\"sampling\":{}}");
}

/* --- calls that become tasks ------------------------------------------------------------------ */

/* False: it is no task, and the call may have been ended. */
static bool is_task(struct limpet_call *call, bool is_needed)
{
    int err = limpet_call_task(call, ROUND_MS);
    if (err && is_needed)
        limpet_call_lacks(call, "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    return !err;
}

static void work(struct limpet_call *call, uint32_t ms)
{
    if (limpet_call_wait(call, ms))
        limpet_call_error(call, -32603, "out of memory");
}

static void hello(void *context, struct limpet_call *call)
{
    (void)context;
    struct text text = {.len = 0};
    put_str(&text, "Hello, ");
    put(&text, bare(argument(call, "name", "")));
    put_str(&text, "!");
    limpet_call_text(call, all(&text));
}

static void compute(void *context, struct limpet_call *call)
{
    (void)context;
    int64_t seconds = 0;
    (void)!limpet_json_integer(limpet_call_arguments(call), "seconds", &seconds);
    work(call, is_task(call, false) ? (uint32_t)seconds * 1000 : 0);
}

static void computed(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake;
    limpet_call_text(call, limpet_str("computed"));
}

static void work_and_fail(void *context, struct limpet_call *call)
{
    (void)context;
    if (is_task(call, true))
        work(call, WORK_MS);
}

static void failed_as_tool(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake;
    limpet_call_tool_error(call, limpet_str("the job has failed"));
}

static void failed_as_call(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake;
    limpet_call_error(call, -32603, "the job broke off");
}

static void inquire_in_task(void *context, struct limpet_call *call)
{
    if (is_task(call, true))
        inquire(context, call);
}

/* Asked as a call, finished as a task. */
static void finish_as_task(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    if (is_task(call, true))
        answered(context, call, wake);
}

/* The context is the server. */
static void tools_change(void *context, struct limpet_call *call)
{
    limpet_server_list_changed(context, LIMPET_LIST_TOOLS);
    limpet_call_text(call, limpet_str("the tools have changed"));
}

static void prompts_change(void *context, struct limpet_call *call)
{
    limpet_server_list_changed(context, LIMPET_LIST_PROMPTS);
    limpet_call_text(call, limpet_str("the prompts have changed"));
}

/* --- resources -------------------------------------------------------------------------------- */

static void read_as(
    struct limpet_call *call, const char *mime, const char *kind, struct limpet_span value)
{
    struct text json = {.len = 0};
    put_str(&json, "{\"contents\":[{\"uri\":");
    put_quoted(&json, limpet_call_uri(call));
    put_str(&json, ",\"mimeType\":");
    put_quoted(&json, limpet_str(mime));
    put_str(&json, ",\"");
    put_str(&json, kind);
    put_str(&json, "\":");
    put_quoted(&json, value);
    put_str(&json, "}]}");
    limpet_call_result(call, all(&json));
}

static void read_text(void *context, struct limpet_call *call)
{
    read_as(call, "text/plain", "text", limpet_str(context));
}

static void read_binary(void *context, struct limpet_call *call)
{
    read_as(call, "image/png", "blob", limpet_str(context));
}

static void read_template(void *context, struct limpet_call *call)
{
    (void)context;
    struct text text = {.len = 0};
    struct limpet_span id = limpet_call_variable(call, "id");
    put_str(&text, "{\"id\":");
    put_quoted(&text, id);
    put_str(&text, ",\"templateTest\":true,\"data\":\"Data for ID: ");
    put(&text, id);
    put_str(&text, "\"}");
    read_as(call, "application/json", "text", all(&text));
}

/* --- prompts ---------------------------------------------------------------------------------- */

static void prompt_with_arguments(void *context, struct limpet_call *call)
{
    (void)context;
    struct text json = {.len = 0};
    put_str(&json,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
        "\"Prompt with arguments: arg1='");
    put(&json, bare(argument(call, "arg1", "")));
    put_str(&json, "', arg2='");
    put(&json, bare(argument(call, "arg2", "")));
    put_str(&json, "'\"}}]}");
    limpet_call_result(call, all(&json));
}

static void prompt_with_resource(void *context, struct limpet_call *call)
{
    (void)context;
    struct text json = {.len = 0};
    put_str(&json,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\","
        "\"resource\":{\"uri\":");
    put(&json, argument(call, "resourceUri", "\"\""));
    put_str(&json,
        ",\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for "
        "testing.\"}}}," USER(TEXT("Please process the embedded resource above.")) "]}");
    limpet_call_result(call, all(&json));
}

/* --- the list --------------------------------------------------------------------------------- */

#define TOOL(tool, schema, ...)                                                                    \
    {                                                                                              \
        .name = tool, .description = tool, .input_schema = schema, .handler = { __VA_ARGS__ }      \
    }
#define CONSTANT(json) .run = constant, .context = (void *)json
#define INQUIRE(what) .run = inquire, .context = (void *)&INQUIRE_##what
#define ELICIT(properties) .run = elicit, .wake = elicited, .context = (void *)OBJECT(properties)

static const struct limpet_tool TOOLS[] = {
    TOOL("test_simple_text", OBJECT(""), CONSTANT(SIMPLE_TEXT)),
    TOOL("test_image_content", OBJECT(""), CONSTANT(IMAGE_CONTENT)),
    TOOL("test_audio_content", OBJECT(""), CONSTANT(AUDIO_CONTENT)),
    TOOL("test_embedded_resource", OBJECT(""), CONSTANT(EMBEDDED_RESOURCE)),
    TOOL("test_multiple_content_types", OBJECT(""), CONSTANT(MULTIPLE_CONTENT)),
    TOOL("test_tool_with_logging", OBJECT(""), .run = logging, .wake = logging_on,
        .context = CONTENT(TEXT("done"))),
    TOOL("test_error_handling", OBJECT(""), .run = fail),
    TOOL("test_tool_with_progress", OBJECT(""), .run = progress, .wake = progress_on,
        .context = CONTENT(TEXT("done"))),
    TOOL("test_sampling", OBJECT(STRING("prompt")), .run = sample, .wake = sampled),
    TOOL("test_elicitation", OBJECT(STRING("message")), ELICIT(USER_PROPERTIES)),
    TOOL("test_elicitation_sep1034_defaults", OBJECT(""), ELICIT(DEFAULT_PROPERTIES)),
    TOOL("test_elicitation_sep1330_enums", OBJECT(""), ELICIT(ENUM_PROPERTIES)),
    TOOL("test_reconnection", OBJECT(""), .run = reconnection, .wake = reconnection_on,
        .context = CONTENT(TEXT("Reconnection test completed successfully"))),
    TOOL("test_missing_capability", OBJECT(""), .run = needs_sampling),
    TOOL("test_streaming_elicitation", OBJECT(""), INQUIRE(NAME), .wake = answered),
    TOOL("test_logging_tool", OBJECT(""), .run = logging, .wake = logging_on,
        .context = CONTENT(TEXT("done"))),
    TOOL("test_input_required_result_elicitation", OBJECT(""), INQUIRE(NAME), .wake = answered),
    TOOL("test_input_required_result_sampling", OBJECT(""), INQUIRE(CAPITAL), .wake = answered),
    TOOL("test_input_required_result_list_roots", OBJECT(""), INQUIRE(ROOTS), .wake = answered),
    TOOL("test_input_required_result_request_state", OBJECT(""), INQUIRE(CONFIRM),
        .wake = confirmed),
    TOOL("test_input_required_result_multiple_inputs", OBJECT(""), INQUIRE(ALL), .wake = answered),
    TOOL("test_input_required_result_multi_round", OBJECT(""), INQUIRE(STEP1),
        .wake = inquire_further),
    TOOL("test_input_required_result_tampered_state", OBJECT(""), INQUIRE(CONFIRM),
        .wake = confirmed),
    TOOL("test_input_required_result_capabilities", OBJECT(""), .run = inquire_what_it_can,
        .wake = answered),
    TOOL("test_custom_header", CONF_REGION, CONSTANT(SIMPLE_TEXT)),
    TOOL("greet", OBJECT(STRING("name")), .run = hello),
    TOOL("slow_compute", "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"}}}",
        .run = compute, .wake = computed),
    TOOL("failing_job", OBJECT(""), .run = work_and_fail, .wake = failed_as_tool),
    TOOL("protocol_error_job", OBJECT(""), .run = work_and_fail, .wake = failed_as_call),
    TOOL("confirm_delete", OBJECT(STRING("filename")), .run = inquire_in_task, .wake = answered,
        .context = (void *)&INQUIRE_CONFIRM),
    TOOL("multi_input", OBJECT(""), .run = inquire_in_task, .wake = answered,
        .context = (void *)&INQUIRE_TWO),
    TOOL("test_tool_with_task", OBJECT(""), INQUIRE(NAME), .wake = finish_as_task),
    TOOL("json_schema_2020_12_tool", SCHEMA_2020_12, CONSTANT(CONTENT(TEXT("ok")))),
};

static const struct limpet_resource RESOURCES[] = {
    {"test://static-text", "static-text", "a text", "text/plain",
        {.run = read_text, .context = STATIC_TEXT}},
    {"test://static-binary", "static-binary", "an image", "image/png",
        {.run = read_binary, .context = PNG}},
    {"test://watched-resource", "watched-resource", NULL, "text/plain",
        {.run = read_text, .context = STATIC_TEXT}},
    {"test://template/{id}/data", "template", "by id", "application/json", {.run = read_template}},
};

static const struct limpet_prompt PROMPTS[] = {
    {"test_simple_prompt", "simple", NULL, {CONSTANT(SIMPLE_PROMPT)}},
    {"test_prompt_with_arguments", "two", "[" NEEDED("arg1") "," NEEDED("arg2") "]",
        {.run = prompt_with_arguments}},
    {"test_prompt_with_embedded_resource", "one", "[" NEEDED("resourceUri") "]",
        {.run = prompt_with_resource}},
    {"test_input_required_result_prompt", "asks", "[]",
        {INQUIRE(CONTEXT), .wake = prompt_with_context}},
    {"test_prompt_with_image", "image", "[]", {CONSTANT(PROMPT_WITH_IMAGE)}},
};

static int conf_offer_all(struct limpet_server *server, char *name)
{
    const struct limpet_tool changes[] = {
        TOOL("test_trigger_tool_change", OBJECT(""), .run = tools_change, .context = server),
        TOOL("test_trigger_prompt_change", OBJECT(""), .run = prompts_change, .context = server)};
    const struct limpet_tool who = TOOL("whoami", OBJECT(""), .run = whoami, .context = name);
    const struct limpet_handler completion = {CONSTANT(COMPLETION)};
    int err = limpet_server_add_tool(server, &who);
    for (size_t i = 0; i < 2 && !err; i++)
        err = limpet_server_add_tool(server, &changes[i]);
    for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS && !err; i++)
        err = limpet_server_add_tool(server, &TOOLS[i]);
    for (size_t i = 0; i < sizeof RESOURCES / sizeof *RESOURCES && !err; i++)
        err = limpet_server_add_resource(server, &RESOURCES[i]);
    for (size_t i = 0; i < sizeof PROMPTS / sizeof *PROMPTS && !err; i++)
        err = limpet_server_add_prompt(server, &PROMPTS[i]);
    return err ? err : limpet_server_set_completion(server, &completion);
}

static struct limpet_server_options conf_options(void)
{
    return (struct limpet_server_options){.name = "conf-library",
        .version = "1",
        .lists_change = true,
        .has_subscriptions = true,
        .has_tasks = true,
        .keys = getenv("KEYS"), /* the text of a key file, for several of it */
        .retry_ms = 500};
}

#endif
