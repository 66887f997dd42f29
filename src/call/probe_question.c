/* The single questions of the probe (call/probe_priv.h): server/discover, an id that nobody minted,
 * none, and whether the URL is one of old SSE.
 *
 * An answer that says nothing (5xx) is asked for again; one that hangs is not, because that may be
 * the server's very word. */
#include <stdio.h>

#include "call/probe_priv.h"
#include "mcp/version.h"
#include "wire/member.h"

enum { QUESTION_MS = 1500, SSE_HOLD_MS = 300 };

/* --- asking --- */

void lp_probe_answered(struct lp_probe *probe)
{
    probe->questions--;
    lp_probe_advance(probe);
}

bool lp_probe_ask(struct lp_probe *probe, struct lp_ask_args args)
{
    args.head = lp_probe_note_head;
    args.ctx = probe;
    struct lp_ask *asked = lp_ask_start(&probe->asker, &args);
    probe->questions += asked != NULL;
    return asked != NULL;
}

void lp_probe_forget(void *ctx, const struct lp_reply *reply)
{
    (void)reply;
    lp_probe_answered(ctx);
}

/* Some servers open a session for a question that was none. */
static void drop_session(struct lp_probe *probe, struct lp_span id)
{
    if (id.len)
        (void)lp_probe_ask(probe,
            (struct lp_ask_args){
                .method = LP_METHOD_DELETE, .session = id, .done = lp_probe_forget});
}

static struct lp_ask_args ping(const struct lp_probe *probe, struct lp_span id)
{
    return (struct lp_ask_args){.method = LP_METHOD_POST,
        .body = LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"who\",\"method\":\"ping\"}"),
        .rpc_id = LP_SPAN("\"who\""),
        .session = id,
        .version = lp_span_str(probe->version),
        .timeout_ms = QUESTION_MS};
}

static void on_unknown_delete(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    probe->seen.unknown_delete = reply->answer;
    lp_probe_answered(probe);
}

void lp_probe_ask_unknown_delete(struct lp_probe *probe)
{
    (void)lp_probe_ask(probe,
        (struct lp_ask_args){.method = LP_METHOD_DELETE,
            .session = lp_span_str(probe->unknown_id),
            .version = lp_span_str(probe->version),
            .timeout_ms = QUESTION_MS,
            .done = on_unknown_delete});
}

static void on_missing(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    bool is_fault = lp_probe_is_fault(reply) && reply->answer.status;
    probe->seen.missing = reply->answer;
    drop_session(probe, reply->session_id);
    if (is_fault && ++probe->missing_tries < LP_PROBE_TRIES)
        lp_probe_ask_missing(probe);
    lp_probe_answered(probe);
}

void lp_probe_ask_missing(struct lp_probe *probe)
{
    struct lp_ask_args args = ping(probe, LP_SPAN(""));
    args.done = on_missing;
    (void)lp_probe_ask(probe, args);
}

static void on_unknown(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    bool is_fault = lp_probe_is_fault(reply) && reply->answer.status;
    probe->seen.unknown = reply->answer;
    if (is_fault && ++probe->tries < LP_PROBE_TRIES)
        lp_probe_ask_unknown(probe);
    if (!is_fault)
        lp_probe_note_pace(probe, reply);
    lp_probe_answered(probe);
}

void lp_probe_ask_unknown(struct lp_probe *probe)
{
    struct lp_ask_args args = ping(probe, lp_span_str(probe->unknown_id));
    args.done = on_unknown;
    (void)lp_probe_ask(probe, args);
}

/* --- the modern era --- */

static void on_version(void *ctx, struct lp_span element)
{
    struct lp_seen *seen = ctx;
    size_t at = strlen(seen->modern);
    struct lp_span name = element.len > 2 ? lp_span(element.ptr + 1, element.len - 2) : element;
    if (lp_version_is_legacy(name))
        return; /* a server of both eras may name them too */
    if (at + name.len + 2 < sizeof seen->modern)
        snprintf(seen->modern + at, sizeof seen->modern - at, "%s%.*s", at ? " " : "",
            (int)name.len, name.ptr);
}

static void on_discovered(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    struct lp_seen *seen = &probe->seen;
    bool is_fault = lp_probe_is_fault(reply) && lp_probe_may_change(reply);
    seen->discover = reply->answer;
    lp_seen_add_request(seen, reply->answer.status, lp_probe_is_fault(reply));
    if (!reply->answer.status)
        lp_probe_note_failure(probe, reply);
    if (is_fault && ++probe->tries < LP_PROBE_TRIES) {
        lp_probe_ask_discover(probe);
        lp_probe_answered(probe);
        return;
    }
    drop_session(probe, reply->session_id);
    if (reply->answer.is_result)
        lp_elements(lp_member(reply->result, LP_SPAN("supportedVersions")), on_version, seen);
    lp_probe_answered(probe);
}

void lp_probe_ask_discover(struct lp_probe *probe)
{
    (void)lp_probe_ask(probe,
        (struct lp_ask_args){.method = LP_METHOD_POST,
            .body = LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"server/discover\","
                            "\"params\":{\"_meta\":{"
                            "\"io.modelcontextprotocol/protocolVersion\":\"" LP_VERSION_MODERN
                            "\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}"),
            .rpc_id = LP_SPAN("\"d\""),
            .version = LP_SPAN(LP_VERSION_MODERN),
            .rpc = LP_SPAN("server/discover"),
            .done = on_discovered});
}

/* --- old SSE in place of Streamable HTTP --- */

static void on_sse_found(void *ctx, const struct lp_sse_event *event)
{
    struct lp_probe *probe = ctx;
    probe->seen.is_old_sse |= lp_span_eq(event->type, LP_SPAN("endpoint"));
}

static void on_sse_asked(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe *probe = ctx;
    if (!probe->seen.is_old_sse && !probe->seen.opening.status)
        probe->seen.opening = reply->answer;
    if (probe->seen.is_old_sse) {
        probe->seen.is_open = true;
        probe->seen.unknown = probe->seen.missing = (struct lp_seen_answer){0};
    }
    lp_probe_answered(probe);
}

void lp_probe_ask_old_sse(struct lp_probe *probe)
{
    (void)lp_probe_ask(probe,
        (struct lp_ask_args){.method = LP_METHOD_GET,
            .timeout_ms = QUESTION_MS,
            .hold_ms = SSE_HOLD_MS,
            .event = on_sse_found,
            .done = on_sse_asked});
}
