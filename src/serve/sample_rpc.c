/* JSON-RPC of the sample server: one message in, at most one answer out (wire document 2.1, 4.5).
 *
 * The id of an answer is the request's raw token. Batches are those of 2025-03-26: whether one is
 * allowed was decided before. What is not offered (resources, prompts) is -32601 with status 200,
 * as legacy servers say it. */
#include <stdarg.h>
#include <stdio.h>

#include "serve/sample_priv.h"
#include "wire/member.h"

enum { BATCH_MAX = 100, PRINTF_MAX = 256 };

static const char *const VERSIONS[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
static const char *const LEVELS[] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

/* --- writing --- */

void lp_sample_put(struct lp_sample_out *out, struct lp_span bytes)
{
    if (out->failed || lp_buf_append(&out->buf, bytes))
        out->failed = true;
}

void lp_sample_printf(struct lp_sample_out *out, const char *fmt, ...)
{
    char text[PRINTF_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    LP_ASSERT(n >= 0 && n < PRINTF_MAX);
    lp_sample_put(out, lp_span(text, (size_t)n));
}

void lp_sample_quote(struct lp_sample_out *out, struct lp_span text)
{
    if (out->failed || lp_json_quote(&out->buf, text))
        out->failed = true;
}

static void begin_answer(struct lp_sample_out *out, struct lp_span id)
{
    lp_sample_put(out, LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":"));
    lp_sample_put(out, id.len ? id : LP_SPAN("null"));
}

void lp_sample_rpc_result(struct lp_sample_out *out, struct lp_span id, struct lp_span result)
{
    begin_answer(out, id);
    lp_sample_put(out, LP_SPAN(",\"result\":"));
    lp_sample_put(out, result);
    lp_sample_put(out, LP_SPAN("}"));
}

void lp_sample_rpc_error(
    struct lp_sample_out *out, struct lp_span id, int code, const char *message)
{
    begin_answer(out, id);
    lp_sample_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    lp_sample_quote(out, lp_span_str(message));
    lp_sample_put(out, LP_SPAN("}}"));
}

/* --- methods --- */

const char *lp_sample_version(struct lp_span version)
{
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++)
        if (lp_span_eq(version, lp_span_str(VERSIONS[i])))
            return VERSIONS[i];
    return NULL;
}

/* A JSON string token without its quotes; escapes make it another text, which nothing here is. */
static struct lp_span unquoted(struct lp_span token)
{
    bool is_string = token.len >= 2 && token.ptr[0] == '"';
    return is_string ? lp_span(token.ptr + 1, token.len - 2) : LP_SPAN("");
}

void lp_sample_rpc_initialize(struct lp_sample *sample, const struct lp_sample_call *call)
{
    struct lp_sample_out *out = call->out;
    const char *asked = lp_sample_version(unquoted(call->env->protocol_version));
    const char *version = asked ? asked : VERSIONS[0];
    if (call->session)
        call->session->version = version;
    begin_answer(out, call->env->id);
    lp_sample_printf(out,
        ",\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{},\"logging\":{}},"
        "\"serverInfo\":{\"name\":\"limpet-replica\",\"version\":\"%s\"},\"instructions\":",
        version, LP_VERSION);
    lp_sample_put(out, LP_SPAN("\"A sample server; this one is replica "));
    lp_sample_put(out, sample->name);
    lp_sample_put(out, LP_SPAN(".\"}}"));
}

static void set_level(const struct lp_sample_call *call)
{
    struct lp_span params = lp_member(call->message, LP_SPAN("params"));
    struct lp_span level = unquoted(lp_member(params, LP_SPAN("level")));
    for (uint32_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++) {
        if (lp_span_eq(level, lp_span_str(LEVELS[i]))) {
            if (call->session)
                call->session->level = i;
            lp_sample_rpc_result(call->out, call->env->id, LP_SPAN("{}"));
            return;
        }
    }
    lp_sample_rpc_error(call->out, call->env->id, -32602, "level must be one of RFC 5424's names");
}

static enum lp_sample_outcome on_request(
    struct lp_sample *sample, const struct lp_sample_call *call)
{
    switch (call->env->method) {
    case LP_RPC_PING:
        lp_sample_rpc_result(call->out, call->env->id, LP_SPAN("{}"));
        break;
    case LP_RPC_TOOLS_LIST:
        lp_sample_tools_list(call);
        break;
    case LP_RPC_TOOLS_CALL:
        return lp_sample_tools_call(sample, call);
    case LP_RPC_SET_LEVEL:
        set_level(call);
        break;
    default:
        lp_sample_rpc_error(call->out, call->env->id, -32601, "Method not found");
        break;
    }
    return LP_SAMPLE_ANSWERED;
}

enum lp_sample_outcome lp_sample_rpc(struct lp_sample *sample, const struct lp_sample_call *call)
{
    const struct lp_envelope *env = call->env;
    if (env->method == LP_RPC_NONE)
        return LP_SAMPLE_SILENT; /* an answer; this server never asks */
    if (env->has_id)
        return on_request(sample, call);
    if (env->method == LP_RPC_CANCELLED && call->session)
        lp_sample_slow_cancel(sample, call);
    return LP_SAMPLE_SILENT;
}

/* --- batches --- */

struct batch {
    struct lp_sample *sample;
    const struct lp_sample_call *call;
    uint32_t count;
    uint32_t answers;
};

static void separate(struct batch *b)
{
    lp_sample_put(b->call->out, b->answers++ ? LP_SPAN(",") : LP_SPAN("["));
}

static void on_element(void *ctx, struct lp_span element)
{
    struct batch *b = ctx;
    struct lp_sample_call call = *b->call;
    struct lp_envelope env;
    if (b->count++ >= BATCH_MAX)
        return;
    int err = lp_envelope_scan(element, &env);
    bool is_request = !err && env.is_object && env.method != LP_RPC_NONE && env.has_id;
    bool is_answer = !err && env.is_object && (env.has_result || env.has_error);
    bool is_notice = !err && env.is_object && env.method != LP_RPC_NONE && !env.has_id;
    call.env = &env;
    call.message = element;
    call.is_in_batch = true;
    if (is_request && env.id_is_valid) {
        separate(b);
        enum lp_sample_outcome outcome = lp_sample_rpc(b->sample, &call);
        LP_ASSERT(outcome == LP_SAMPLE_ANSWERED);
    } else if (is_notice) {
        enum lp_sample_outcome outcome = lp_sample_rpc(b->sample, &call);
        LP_ASSERT(outcome == LP_SAMPLE_SILENT);
    } else if (!is_answer) {
        separate(b);
        lp_sample_rpc_error(call.out, LP_SPAN(""), -32600, "Invalid Request");
    }
}

enum lp_sample_outcome lp_sample_rpc_batch(
    struct lp_sample *sample, const struct lp_sample_call *call)
{
    struct batch b = {.sample = sample, .call = call};
    lp_elements(call->message, on_element, &b);
    if (b.count > BATCH_MAX) {
        separate(&b);
        lp_sample_rpc_error(call->out, LP_SPAN(""), -32600, "a batch holds at most 100 messages");
    }
    if (!b.answers)
        return LP_SAMPLE_SILENT;
    lp_sample_put(call->out, LP_SPAN("]"));
    return LP_SAMPLE_ANSWERED;
}
