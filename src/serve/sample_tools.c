/* The tools of the sample server: echo, whoami, counter, slow, notify.
 *
 * `counter` lives in the session and nowhere else: an answer that goes on counting proves that the
 * request reached the process that opened the session. `slow` shows progress as an event stream
 * where the client takes one, and answers as plain JSON where not. */
#include "base/error.h"
#include "serve/sample_priv.h"
#include "wire/member.h"

enum { SLOW_MS_MAX = 600000, SLOW_STEPS_MAX = 1000, NOTIFY_MAX = 100, LEVEL_INFO = 1 };

#define NO_ARGUMENTS "\"inputSchema\":{\"type\":\"object\",\"properties\":{}}"
#define WHOLE_NUMBER(min, max) "{\"type\":\"integer\",\"minimum\":" min ",\"maximum\":" max "}"

static const char TOOLS[] =
    "{\"tools\":["
    "{\"name\":\"echo\",\"description\":\"Says what it was told\",\"inputSchema\":{\"type\":"
    "\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},\"required\":[\"message\"]}},"
    "{\"name\":\"whoami\",\"description\":\"Tells which replica answered\"," NO_ARGUMENTS "},"
    "{\"name\":\"counter\",\"description\":\"Adds one to a number kept in this session's "
    "memory\"," NO_ARGUMENTS "},"
    "{\"name\":\"slow\",\"description\":\"Takes its time, with progress\",\"inputSchema\":{"
    "\"type\":\"object\",\"properties\":{\"ms\":" WHOLE_NUMBER(
        "0", "600000") ",\"steps\":" WHOLE_NUMBER("1",
        "1000") "}}},"
                "{\"name\":\"notify\",\"description\":\"Sends log messages on the session's GET "
                "stream\","
                "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"count\":" WHOLE_NUMBER(
                    "1", "100") "}}}]}";

void lp_sample_tools_list(const struct lp_sample_call *call)
{
    lp_sample_rpc_result(call->out, call->env->id, lp_span(TOOLS, sizeof TOOLS - 1));
}

static enum lp_sample_outcome bad_arguments(const struct lp_sample_call *call, const char *message)
{
    lp_sample_rpc_error(call->out, call->env->id, -32602, message);
    return LP_SAMPLE_ANSWERED;
}

/* --- answers --- */

static void begin_text(struct lp_sample_out *out, struct lp_span id)
{
    lp_sample_put(out, LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":"));
    lp_sample_put(out, id);
    lp_sample_put(out, LP_SPAN(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":"));
}

/* After the text, a JSON string; what is added by hand follows before the last brace. */
static void end_text(struct lp_sample_out *out)
{
    lp_sample_put(out, LP_SPAN("}]"));
}

static void end_answer(struct lp_sample_out *out)
{
    lp_sample_put(out, LP_SPAN("}}"));
}

/* --- tools --- */

static enum lp_sample_outcome echo(const struct lp_sample_call *call, struct lp_span arguments)
{
    struct lp_span message = lp_member(arguments, LP_SPAN("message"));
    if (!message.len || message.ptr[0] != '"')
        return bad_arguments(call, "echo needs the argument message, a string");
    begin_text(call->out, call->env->id);
    lp_sample_put(call->out, message);
    end_text(call->out);
    end_answer(call->out);
    return LP_SAMPLE_ANSWERED;
}

static enum lp_sample_outcome whoami(struct lp_sample *sample, const struct lp_sample_call *call)
{
    begin_text(call->out, call->env->id);
    lp_sample_quote(call->out, sample->name);
    end_text(call->out);
    end_answer(call->out);
    return LP_SAMPLE_ANSWERED;
}

static enum lp_sample_outcome counter(struct lp_sample *sample, const struct lp_sample_call *call)
{
    if (!call->session)
        return bad_arguments(call, "this server keeps no sessions, so nothing is counted");
    unsigned long long count = ++call->session->counter;
    begin_text(call->out, call->env->id);
    lp_sample_printf(call->out, "\"%llu\"", count);
    end_text(call->out);
    lp_sample_printf(call->out, ",\"structuredContent\":{\"count\":%llu,\"replica\":", count);
    lp_sample_quote(call->out, sample->name);
    lp_sample_put(call->out, LP_SPAN("}"));
    end_answer(call->out);
    return LP_SAMPLE_ANSWERED;
}

static void notify_once(struct lp_sample *sample, lp_id stream, uint64_t number)
{
    struct lp_sample_out out = {0};
    lp_buf_init(&out.buf, 1024);
    lp_sample_put(&out,
        LP_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":"
                "\"info\",\"logger\":\"limpet-replica\",\"data\":{\"replica\":"));
    lp_sample_quote(&out, sample->name);
    lp_sample_printf(&out, ",\"number\":%llu}}}", (unsigned long long)number);
    if (!out.failed)
        lp_sample_send_event(sample, stream, lp_buf_span(&out.buf));
    lp_buf_release(&out.buf);
}

static enum lp_sample_outcome notify(
    struct lp_sample *sample, const struct lp_sample_call *call, struct lp_span arguments)
{
    uint64_t count = 1;
    if (!lp_member_u64(arguments, LP_SPAN("count"), &count) || !count || count > NOTIFY_MAX)
        return bad_arguments(call, "count must be a whole number from 1 to 100");
    const struct lp_sample_session *session = call->session;
    bool is_wanted = session && session->stream && session->level <= LEVEL_INFO;
    uint64_t sent = 0;
    while (is_wanted && sent < count)
        notify_once(sample, session->stream, ++sent);
    begin_text(call->out, call->env->id);
    lp_sample_printf(call->out, "\"sent %llu\"", (unsigned long long)sent);
    end_text(call->out);
    end_answer(call->out);
    return LP_SAMPLE_ANSWERED;
}

/* --- slow --- */

/* Keeps the tokens that the later answer needs; false when they are over the limit. */
static bool keep_tokens(struct lp_sample_request *r, const struct lp_sample_call *call)
{
    struct lp_span params = lp_member(call->message, LP_SPAN("params"));
    struct lp_span meta = lp_member(params, LP_SPAN("_meta"));
    struct lp_span token = lp_member(meta, LP_SPAN("progressToken"));
    return !lp_buf_append(&r->slow.id, call->env->id) && !lp_buf_append(&r->slow.token, token);
}

static enum lp_sample_outcome slow(
    struct lp_sample *sample, const struct lp_sample_call *call, struct lp_span arguments)
{
    struct lp_sample_request *r = call->request;
    uint64_t ms = 1000;
    uint64_t steps = 5;
    if (call->is_in_batch)
        return bad_arguments(call, "slow cannot be part of a batch");
    if (!lp_member_u64(arguments, LP_SPAN("ms"), &ms) || ms > SLOW_MS_MAX)
        return bad_arguments(call, "ms must be a whole number from 0 to 600000");
    if (!lp_member_u64(arguments, LP_SPAN("steps"), &steps) || !steps || steps > SLOW_STEPS_MAX)
        return bad_arguments(call, "steps must be a whole number from 1 to 1000");
    if (!keep_tokens(r, call))
        return bad_arguments(call, "the id and the progress token may have 256 bytes each");
    r->slow.steps = (uint32_t)steps;
    r->slow.step_us = ms * 1000 / steps;
    if (lp_heap_set(&sample->timers, &r->timer, sample->now_us + r->slow.step_us))
        return bad_arguments(call, "out of memory");
    r->state = LP_SAMPLE_WORKING;
    if (r->wants_sse)
        lp_sample_begin_sse(sample, r->id);
    return LP_SAMPLE_LATER;
}

static void report_progress(struct lp_sample *sample, const struct lp_sample_request *r)
{
    struct lp_sample_out out = {0};
    lp_buf_init(&out.buf, 1024);
    lp_sample_put(&out,
        LP_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                "\"progressToken\":"));
    lp_sample_put(&out, lp_buf_span(&r->slow.token));
    lp_sample_printf(&out, ",\"progress\":%u,\"total\":%u}}", r->slow.done, r->slow.steps);
    if (!out.failed)
        lp_sample_send_event(sample, r->id, lp_buf_span(&out.buf));
    lp_buf_release(&out.buf);
}

static void finish_slow(struct lp_sample *sample, struct lp_sample_request *r)
{
    begin_text(&r->out, lp_buf_span(&r->slow.id));
    lp_sample_printf(&r->out, "\"done in %u steps\"", r->slow.steps);
    end_text(&r->out);
    end_answer(&r->out);
    lp_sample_finish(sample, r->id, 200);
}

void lp_sample_slow_step(struct lp_sample *sample, struct lp_sample_request *r)
{
    lp_id id = r->id;
    r->slow.done++;
    if (r->is_sse && r->slow.token.len)
        report_progress(sample, r);
    r = lp_sample_request_get(sample, id);
    if (!r)
        return;
    if (r->slow.done == r->slow.steps)
        finish_slow(sample, r);
    else if (lp_heap_set(&sample->timers, &r->timer, sample->now_us + r->slow.step_us))
        lp_sample_drop(sample, id);
}

void lp_sample_slow_cancel(struct lp_sample *sample, const struct lp_sample_call *call)
{
    struct lp_span params = lp_member(call->message, LP_SPAN("params"));
    struct lp_span wanted = lp_member(params, LP_SPAN("requestId"));
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_sample_request *r; (r = lp_slab_next(&sample->requests, &cursor, &id));) {
        bool is_it = r->state == LP_SAMPLE_WORKING && r->session == call->session->id &&
            lp_span_eq(lp_buf_span(&r->slow.id), wanted);
        if (!is_it)
            continue;
        if (r->is_sse) {
            lp_sample_drop(sample, id); /* a cancelled call gets no answer */
        } else {
            lp_sample_rpc_error(&r->out, wanted, -32800, "Request cancelled");
            lp_sample_finish(sample, id, 200); /* but HTTP wants one */
        }
    }
}

enum lp_sample_outcome lp_sample_tools_call(
    struct lp_sample *sample, const struct lp_sample_call *call)
{
    struct lp_span params = lp_member(call->message, LP_SPAN("params"));
    struct lp_span arguments = lp_member(params, LP_SPAN("arguments"));
    struct lp_span name = call->env->name;
    if (lp_span_eq(name, LP_SPAN("\"echo\"")))
        return echo(call, arguments);
    if (lp_span_eq(name, LP_SPAN("\"whoami\"")))
        return whoami(sample, call);
    if (lp_span_eq(name, LP_SPAN("\"counter\"")))
        return counter(sample, call);
    if (lp_span_eq(name, LP_SPAN("\"slow\"")))
        return slow(sample, call, arguments);
    if (lp_span_eq(name, LP_SPAN("\"notify\"")))
        return notify(sample, call, arguments);
    return bad_arguments(call, "Unknown tool");
}
