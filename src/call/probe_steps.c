/* A call in two steps (wire document 7.9; cases MOD-04): the server wants an input and hands out a
 * state, the second step brings both back, and a load balancer may show them to another replica. It
 * is the one experiment that calls a tool, so the user has to name it; every question of that tool
 * is declined. */
#include "call/probe_priv.h"
#include "mcp/version.h"
#include "wire/json.h"
#include "wire/member.h"

enum { STEPS = 30, WORKERS = 5, BODY_MAX = LP_ASK_BODY_MAX };

static void begin_call(struct lp_probe *probe);

/* --- what is sent --- */

struct inputs {
    struct lp_buf *out;
    size_t count;
    int err;
};

/* A no for what people decide, and the least that can be said for the rest. */
static void add_response(void *ctx, struct lp_span key, struct lp_span request)
{
    struct inputs *in = ctx;
    struct lp_span method = lp_member(request, LP_SPAN("method"));
    struct lp_span answer = LP_SPAN("{\"action\":\"decline\"}");
    if (lp_json_string_is(method, LP_SPAN("roots/list")))
        answer = LP_SPAN("{\"roots\":[]}");
    else if (lp_json_string_is(method, LP_SPAN("sampling/createMessage")))
        answer = LP_SPAN("{\"role\":\"assistant\",\"model\":\"limpet\",\"stopReason\":\"endTurn\","
                         "\"content\":{\"type\":\"text\",\"text\":\"a probe\"}}");
    if (!in->err)
        in->err =
            LP_JOIN(in->out, in->count++ ? LP_SPAN(",") : LP_SPAN(""), key, LP_SPAN(":"), answer);
}

/* `wanted` and `state` are those of the first step's result; empty: this is the first one. */
static int write_call(
    const struct lp_probe *probe, struct lp_span wanted, struct lp_span state, struct lp_buf *out)
{
    struct inputs in = {.out = out};
    struct lp_span arguments = probe->args.step_arguments;
    int err = lp_buf_append(out,
        LP_SPAN(
            "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"tools/call\",\"params\":{\"name\":"));
    if (!err)
        err = lp_json_quote(out, probe->args.step_tool);
    if (!err)
        err = LP_JOIN(out, LP_SPAN(",\"arguments\":"), arguments.len ? arguments : LP_SPAN("{}"));
    if (!err && wanted.len) {
        err = lp_buf_append(out, LP_SPAN(",\"inputResponses\":{"));
        lp_members(wanted, add_response, &in);
        err = err ? err : in.err ? in.err : lp_buf_append(out, LP_SPAN("}"));
    }
    if (!err && state.len)
        err = LP_JOIN(out, LP_SPAN(",\"requestState\":"), state);
    return err ? err
               : lp_buf_append(out,
                     LP_SPAN(",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                             "\"" LP_VERSION_MODERN "\","
                             "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":"
                             "{\"form\":{},\"url\":{}},\"sampling\":{},\"roots\":{}}}}}"));
}

static bool ask(struct lp_probe *probe, struct lp_span wanted, struct lp_span state,
    void (*done)(void *ctx, const struct lp_reply *reply))
{
    struct lp_buf body;
    lp_buf_init(&body, BODY_MAX);
    bool is_asked = !write_call(probe, wanted, state, &body) &&
        lp_probe_ask(probe,
            (struct lp_ask_args){.method = LP_METHOD_POST,
                .body = lp_buf_span(&body),
                .rpc_id = LP_SPAN("\"s\""),
                .version = LP_SPAN(LP_VERSION_MODERN),
                .rpc = LP_SPAN("tools/call"),
                .name = probe->args.step_tool,
                .runs_once = true,
                .done = done});
    lp_buf_release(&body);
    return is_asked;
}

/* --- what comes --- */

static void keep_words(struct lp_seen_steps *steps, struct lp_span words)
{
    char text[sizeof steps->words];
    size_t len = 0;
    if (steps->words[0])
        return;
    if (lp_span_starts(words, LP_SPAN("\"")) && !lp_json_unescape(words, text, sizeof text, &len))
        words = lp_span(text, len);
    lp_seen_text(steps->words, sizeof steps->words, words);
}

static bool wants_input(const struct lp_reply *reply)
{
    return lp_json_string_is(
        lp_member(reply->result, LP_SPAN("resultType")), LP_SPAN("input_required"));
}

static void on_second(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    struct lp_seen_steps *steps = &probe->seen.steps;
    if (lp_probe_is_fault(reply)) {
        steps->faults++;
    } else if (reply->answer.is_result) {
        steps->fine++;
    } else {
        steps->lost++;
        keep_words(steps, reply->message);
    }
    begin_call(probe);
    lp_probe_answered(probe);
}

static void on_first(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    struct lp_seen_steps *steps = &probe->seen.steps;
    struct lp_span wanted = lp_member(reply->result, LP_SPAN("inputRequests"));
    struct lp_span state = lp_member(reply->result, LP_SPAN("requestState"));
    if (lp_probe_is_fault(reply)) {
        steps->faults++;
        begin_call(probe);
    } else if (reply->answer.is_result && wants_input(reply)) {
        steps->begun++;
        if (!ask(probe, wanted, state, on_second))
            steps->faults++;
    } else { /* this tool asks for nothing: once is enough */
        keep_words(steps,
            reply->answer.is_result ? LP_SPAN("the tool asked for no input") : reply->message);
    }
    lp_probe_answered(probe);
}

static void begin_call(struct lp_probe *probe)
{
    struct lp_seen_steps *steps = &probe->seen.steps;
    if (steps->asked < STEPS && !lp_probe_is_late(probe) &&
        ask(probe, LP_SPAN(""), LP_SPAN(""), on_first))
        steps->asked++;
}

void lp_probe_steps_begin(struct lp_probe *probe)
{
    if (!probe->args.step_tool.len || !probe->seen.modern[0])
        return;
    for (uint32_t i = 0; i < WORKERS; i++)
        begin_call(probe);
}
