/* What the scenarios of the official conformance suite ask a server for, as an offer of
 * serve/server.h: the same tools, resources and prompts as system/replica/conf-tools.mjs. Used by
 * the conformance server (conf-server.c) and by the unit tests of the room serve. */
#ifndef LP_TEST_CONF_OFFER_H
#define LP_TEST_CONF_OFFER_H

#include <stdint.h>

#include "conf_modern.h"
#include "conf_texts.h"
#include "serve/job.h"
#include "wire/member.h"

enum { CONF_STEP_US = 50000, CONF_ASK_US = 5000000 };

/* --- tools whose result is always the same --- */

#define CONSTANT(name, json)                                                                       \
    static inline void name(void *ctx, struct lp_job *call)                                        \
    {                                                                                              \
        (void)ctx;                                                                                 \
        lp_job_result(call, LP_SPAN(json));                                                        \
    }

CONSTANT(simple_text, SIMPLE_TEXT)
CONSTANT(image_content, IMAGE_CONTENT)
CONSTANT(audio_content, AUDIO_CONTENT)
CONSTANT(embedded_resource, EMBEDDED_RESOURCE)
CONSTANT(multiple_content, MULTIPLE_CONTENT)
CONSTANT(schema_ok, CONTENT(TEXT("ok")))

static inline void error_handling(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_tool_error(call, "This tool intentionally returns an error for testing");
}

/* --- tools that take three steps --- */

static inline int stage_of(const struct lp_job *call)
{
    return (int)(intptr_t)lp_job_state(call);
}

static inline void next_stage(struct lp_job *call)
{
    lp_job_set_state(call, (void *)(intptr_t)(stage_of(call) + 1)); // NOLINT: a number
    if (lp_job_wait(call, CONF_STEP_US))
        lp_job_error(call, -32603, "out of memory");
}

static inline void logging(void *ctx, struct lp_job *call)
{
    static const char *const SAYS[] = {
        "\"Tool execution started\"", "\"Tool processing data\"", "\"Tool execution completed\""};
    (void)ctx;
    int stage = stage_of(call);
    lp_job_log(call, LP_LEVEL_INFO, NULL, lp_span_str(SAYS[stage]));
    if (stage < 2)
        next_stage(call);
    else
        lp_job_result(call, LP_SPAN(CONTENT(TEXT("done"))));
}

static inline void logging_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)wake;
    logging(ctx, call);
}

static inline void progress(void *ctx, struct lp_job *call)
{
    (void)ctx;
    int stage = stage_of(call);
    lp_job_progress(call, (uint64_t)stage * 50, 100);
    if (stage < 2)
        next_stage(call);
    else
        lp_job_result(call, LP_SPAN(CONTENT(TEXT("done"))));
}

static inline void progress_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)wake;
    progress(ctx, call);
}

static inline void reconnection(void *ctx, struct lp_job *call)
{
    (void)ctx;
    lp_job_poll(call);
    next_stage(call);
}

static inline void reconnection_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    (void)wake;
    lp_job_result(call, LP_SPAN(CONTENT(TEXT("Reconnection test completed successfully"))));
}

/* --- tools that ask the client --- */

static inline void ask_client(struct lp_job *call, const char *method, struct lp_span params)
{
    int err = lp_job_ask(call, method, params, CONF_ASK_US);
    if (err)
        lp_job_tool_error(call, lp_error_sentence(err));
}

static inline void elicit(struct lp_job *call, const char *message, const char *schema)
{
    struct lp_out params;
    struct lp_span given = lp_member(lp_job_arguments(call), LP_SPAN("message"));
    lp_out_init(&params);
    lp_out_str(&params, "{\"message\":");
    if (given.len)
        lp_out_put(&params, given);
    else
        lp_out_quote(&params, lp_span_str(message));
    lp_out_str(&params, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{");
    lp_out_str(&params, schema);
    lp_out_str(&params, "}}}");
    ask_client(call, "elicitation/create", lp_out_span(&params));
    lp_out_release(&params);
}

/* A raw string token without its quotes. */
static inline struct lp_span bare(struct lp_span token)
{
    return token.len >= 2 ? lp_span(token.ptr + 1, token.len - 2) : LP_SPAN("none");
}

static inline void answer_text(struct lp_job *call, const struct lp_out *text)
{
    lp_job_text(call, lp_out_span(text));
}

static inline void elicited(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    struct lp_out text;
    struct lp_span content = lp_member(wake->result, LP_SPAN("content"));
    if (!wake->result.len) {
        lp_job_tool_error(call, wake->kind == LP_WAKE_TIMEOUT ? "no answer" : "refused");
        return;
    }
    lp_out_init(&text);
    lp_out_str(&text, "Elicitation completed: action=");
    lp_out_put(&text, bare(lp_member(wake->result, LP_SPAN("action"))));
    lp_out_str(&text, ", content=");
    lp_out_put(&text, content.len ? content : LP_SPAN("{}"));
    answer_text(call, &text);
    lp_out_release(&text);
}

static inline void elicitation(void *ctx, struct lp_job *call)
{
    (void)ctx;
    elicit(call, "Who are you?", USER_PROPERTIES);
}

static inline void defaults(void *ctx, struct lp_job *call)
{
    (void)ctx;
    elicit(call, "defaults", DEFAULT_PROPERTIES);
}

static inline void enums(void *ctx, struct lp_job *call)
{
    (void)ctx;
    elicit(call, "enums", ENUM_PROPERTIES);
}

static inline void sampling(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out params;
    lp_out_init(&params);
    lp_out_str(
        &params, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    struct lp_span prompt = lp_member(lp_job_arguments(call), LP_SPAN("prompt"));
    lp_out_put(&params, prompt.len ? prompt : LP_SPAN("\"\""));
    lp_out_str(&params, "}}],\"maxTokens\":100}");
    ask_client(call, "sampling/createMessage", lp_out_span(&params));
    lp_out_release(&params);
}

static inline void sampled(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    struct lp_out text;
    struct lp_span content = lp_member(wake->result, LP_SPAN("content"));
    lp_out_init(&text);
    lp_out_str(&text, "LLM response: ");
    lp_out_put(&text, bare(lp_member(content, LP_SPAN("text"))));
    answer_text(call, &text);
    lp_out_release(&text);
}

/* --- of our own: who is the client's file system, and who answered --- */

static inline void roots(void *ctx, struct lp_job *call)
{
    (void)ctx;
    ask_client(call, "roots/list", LP_SPAN(""));
}

static inline void rooted(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    lp_job_text(call, wake->result.len ? wake->result : wake->error);
}

static inline void whoami(void *ctx, struct lp_job *call)
{
    lp_job_text(call, lp_span_str(ctx));
}

#define TOOL(tool, schema, ...)                                                                    \
    {                                                                                              \
        .name = tool, .description = tool, .input_schema = schema, .handler = {                    \
            .run = __VA_ARGS__                                                                     \
        }                                                                                          \
    }

static const struct lp_tool CONF_TOOLS[] = {
    TOOL("test_simple_text", OBJECT(""), simple_text),
    TOOL("test_image_content", OBJECT(""), image_content),
    TOOL("test_audio_content", OBJECT(""), audio_content),
    TOOL("test_embedded_resource", OBJECT(""), embedded_resource),
    TOOL("test_multiple_content_types", OBJECT(""), multiple_content),
    TOOL("test_tool_with_logging", OBJECT(""), logging, .wake = logging_on),
    TOOL("test_error_handling", OBJECT(""), error_handling),
    TOOL("test_tool_with_progress", OBJECT(""), progress, .wake = progress_on),
    TOOL("test_sampling", OBJECT(STRING("prompt")), sampling, .wake = sampled),
    TOOL("test_elicitation", OBJECT(STRING("message")), elicitation, .wake = elicited),
    TOOL("test_elicitation_sep1034_defaults", OBJECT(""), defaults, .wake = elicited),
    TOOL("test_elicitation_sep1330_enums", OBJECT(""), enums, .wake = elicited),
    TOOL("test_reconnection", OBJECT(""), reconnection, .wake = reconnection_on),
    TOOL("json_schema_2020_12_tool", SCHEMA_2020_12, schema_ok),
    TOOL("roots", OBJECT(""), roots, .wake = rooted),
    TOOL("test_missing_capability", OBJECT(""), conf_needs_sampling),
    TOOL("test_streaming_elicitation", OBJECT(""), ask_name, .wake = conf_answered),
    TOOL("test_logging_tool", OBJECT(""), logging, .wake = logging_on),
    TOOL("test_trigger_tool_change", OBJECT(""), tools_change),
    TOOL("test_trigger_prompt_change", OBJECT(""), prompts_change),
    TOOL("test_input_required_result_elicitation", OBJECT(""), ask_name, .wake = conf_answered),
    TOOL("test_input_required_result_sampling", OBJECT(""), ask_capital, .wake = conf_answered),
    TOOL("test_input_required_result_list_roots", OBJECT(""), ask_roots, .wake = conf_answered),
    TOOL("test_input_required_result_request_state", OBJECT(""), ask_confirm,
        .wake = conf_confirmed),
    TOOL("test_input_required_result_multiple_inputs", OBJECT(""), ask_everything,
        .wake = conf_answered),
    TOOL("test_input_required_result_multi_round", OBJECT(""), ask_step1, .wake = ask_step2),
    TOOL("test_input_required_result_tampered_state", OBJECT(""), ask_confirm,
        .wake = conf_confirmed),
    TOOL("test_input_required_result_capabilities", OBJECT(""), ask_what_it_can,
        .wake = conf_answered),
    TOOL("greet", OBJECT(STRING("name")), greet),
    TOOL("slow_compute", CONF_SECONDS, compute, .wake = computed),
    TOOL("failing_job", OBJECT(""), fail_as_tool, .wake = failed_as_tool),
    TOOL("protocol_error_job", OBJECT(""), fail_as_call, .wake = failed_as_call),
    TOOL("confirm_delete", OBJECT(STRING("filename")), confirm_in_task, .wake = confirmed_in_task),
    TOOL("multi_input", OBJECT(""), ask_two_in_task, .wake = conf_answered),
    TOOL("test_tool_with_task", OBJECT(""), ask_name, .wake = named_task),
    TOOL("test_custom_header", CONF_REGION, simple_text),
    {.name = "whoami",
        .description = "who answered",
        .input_schema = OBJECT(""),
        .more = "\"title\":\"Who am I\"",
        .handler = {.run = whoami}},
};

/* --- resources --- */

static inline void read_as(
    struct lp_job *call, const char *mime, const char *kind, struct lp_span value)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{\"contents\":[{\"uri\":");
    lp_out_quote(&out, lp_job_uri(call));
    lp_out_printf(&out, ",\"mimeType\":\"%s\",\"%s\":", mime, kind);
    lp_out_quote(&out, value);
    lp_out_str(&out, "}]}");
    lp_job_finish(call, &out);
}

static inline void read_text(void *ctx, struct lp_job *call)
{
    (void)ctx;
    read_as(call, "text/plain", "text", LP_SPAN(STATIC_TEXT));
}

static inline void read_binary(void *ctx, struct lp_job *call)
{
    (void)ctx;
    read_as(call, "image/png", "blob", LP_SPAN(PNG));
}

static inline void read_template(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out text;
    struct lp_span id = lp_job_variable(call, "id");
    lp_out_init(&text);
    lp_out_str(&text, "{\"id\":");
    lp_out_quote(&text, id);
    lp_out_str(&text, ",\"templateTest\":true,\"data\":\"Data for ID: ");
    lp_out_put(&text, id);
    lp_out_str(&text, "\"}");
    read_as(call, "application/json", "text", lp_out_span(&text));
    lp_out_release(&text);
}

static const struct lp_resource CONF_RESOURCES[] = {
    {"test://static-text", "static-text", "a text", "text/plain", {.run = read_text}},
    {"test://static-binary", "static-binary", "an image", "image/png", {.run = read_binary}},
    {"test://watched-resource", "watched-resource", NULL, "text/plain", {.run = read_text}},
    {"test://template/{id}/data", "template", "by id", "application/json", {.run = read_template}},
};

/* --- prompts and completion --- */

CONSTANT(simple_prompt, SIMPLE_PROMPT)
CONSTANT(prompt_with_image, PROMPT_WITH_IMAGE)

static inline void prompt_with_arguments(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out out;
    struct lp_span given = lp_job_arguments(call);
    lp_out_init(&out);
    lp_out_str(&out,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
        "\"Prompt with arguments: arg1='");
    lp_out_put(&out, bare(lp_member(given, LP_SPAN("arg1"))));
    lp_out_str(&out, "', arg2='");
    lp_out_put(&out, bare(lp_member(given, LP_SPAN("arg2"))));
    lp_out_str(&out, "'\"}}]}");
    lp_job_finish(call, &out);
}

static inline void prompt_with_resource(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out out;
    struct lp_span uri = lp_member(lp_job_arguments(call), LP_SPAN("resourceUri"));
    lp_out_init(&out);
    lp_out_str(&out,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\",\"resource\":{"
        "\"uri\":");
    lp_out_put(&out, uri.len ? uri : LP_SPAN("\"\""));
    lp_out_str(&out,
        ",\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for testing.\"}}}," USER(
            TEXT("Please process the embedded resource above.")) "]}");
    lp_job_finish(call, &out);
}

static const struct lp_prompt CONF_PROMPTS[] = {
    {"test_simple_prompt", "simple", "[]", {.run = simple_prompt}},
    {"test_prompt_with_arguments", "two", "[" NEEDED("arg1") "," NEEDED("arg2") "]",
        {.run = prompt_with_arguments}},
    {"test_prompt_with_embedded_resource", "one", "[" NEEDED("resourceUri") "]",
        {.run = prompt_with_resource}},
    {"test_prompt_with_image", "image", "[]", {.run = prompt_with_image}},
    {"test_input_required_result_prompt", "asks", "[]",
        {.run = prompt_of_context, .wake = prompt_with_context}},
};

CONSTANT(complete, COMPLETION)

static const struct lp_handler CONF_COMPLETE = {.run = complete};

/* All of it; `name` is what whoami says. */
static inline struct lp_offer conf_offer(char *name)
{
    return (struct lp_offer){.tools = CONF_TOOLS,
        .resources = CONF_RESOURCES,
        .prompts = CONF_PROMPTS,
        .tool_count = sizeof CONF_TOOLS / sizeof *CONF_TOOLS,
        .resource_count = sizeof CONF_RESOURCES / sizeof *CONF_RESOURCES,
        .prompt_count = sizeof CONF_PROMPTS / sizeof *CONF_PROMPTS,
        .complete = &CONF_COMPLETE,
        .lists_change = true,
        .has_subscriptions = true,
        .has_tasks = true,
        .ctx = name};
}

#endif
