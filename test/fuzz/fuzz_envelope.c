/* Fuzzes the scan of a body and what stands on it: the judgement of versions, the dialects, the
 * answer with the request's id (mcp/envelope.h, version.h, dialect.h, reply.h).
 *
 * Laws: spans lie in the body; a part of a good body is a good part and knows nothing that the
 * whole denies; an answer of ours is JSON and carries the id as it came. */
#include "mcp/dialect.h"
#include "mcp/reply.h"
#include "mcp/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct lp_span body, struct lp_span part)
{
    LP_ASSERT(part.len == 0 || part.ptr >= body.ptr);
    LP_ASSERT(part.len == 0 || part.ptr + part.len <= body.ptr + body.len);
}

static void check_spans(struct lp_span body, const struct lp_envelope *env)
{
    check_inside(body, env->id);
    check_inside(body, env->method_token);
    check_inside(body, env->meta_version);
    check_inside(body, env->name);
    check_inside(body, env->uri);
    check_inside(body, env->task_id);
    check_inside(body, env->protocol_version);
    check_inside(body, env->error_code);
    check_inside(body, env->error_message);
    LP_ASSERT(!(env->is_batch && env->is_object));
    LP_ASSERT(!env->id_is_valid || env->has_id);
    LP_ASSERT((env->method == LP_RPC_NONE) == (env->method_token.len == 0));
}

static void check_part(struct lp_span body, const struct lp_envelope *whole)
{
    struct lp_envelope part;
    int err = lp_envelope_scan_part(lp_span(body.ptr, body.len / 2), &part);
    LP_ASSERT(err == LP_OK);
    LP_ASSERT(part.id.len == 0 || lp_span_eq(part.id, whole->id));
    LP_ASSERT(part.method == LP_RPC_NONE || part.method == whole->method);
    LP_ASSERT(!part.batch_has_request || whole->batch_has_request);
}

static void check_answer(const struct lp_envelope *env)
{
    struct lp_buf out;
    struct lp_envelope answer;
    lp_buf_init(&out, 1 << 20);
    int err =
        lp_reply_write(&out, &(struct lp_reply){.reason = LP_REASON_session_lost, .id = env->id});
    LP_ASSERT(err == LP_OK);
    err = lp_envelope_scan(lp_buf_span(&out), &answer);
    LP_ASSERT(err == LP_OK && answer.has_error);
    LP_ASSERT(lp_span_eq(answer.id, env->id.len ? env->id : LP_SPAN("null")));
    lp_buf_release(&out);
}

static void judge(const struct lp_envelope *env)
{
    static const char *const METHODS[] = {"tools/call", "tools/list", "resources/read"};
    struct lp_head head = {.is_request = true};
    enum lp_era era = LP_ERA_LEGACY;
    const char *detail = NULL;
    enum lp_reason reason = lp_version_judge(&head, env, &era, &detail);
    LP_ASSERT((reason == LP_REASON_none) == (detail == NULL));
    LP_ASSERT(reason != LP_REASON_none || era == LP_ERA_LEGACY);
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        head.field_count = 0;
        (void)lp_head_add(&head, LP_FIELD_MCP_PROTOCOL_VERSION, LP_SPAN(LP_VERSION_MODERN));
        (void)lp_head_add(&head, LP_FIELD_MCP_METHOD, lp_span_str(METHODS[i]));
        (void)lp_head_add(&head, LP_FIELD_MCP_NAME, LP_SPAN("=?base64?YQ==?="));
        reason = lp_version_judge(&head, env, &era, &detail);
        LP_ASSERT(reason != LP_REASON_none || era == LP_ERA_MODERN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_span body = lp_span((const char *)data, size);
    struct lp_envelope env;
    struct lp_envelope part;
    int err = lp_envelope_scan(body, &env);
    int part_err = lp_envelope_scan_part(body, &part);
    LP_ASSERT(part_err == err || (part_err == LP_OK && err == LP_ESYNTAX));
    check_spans(body, &env);
    check_answer(&env);
    if (err == LP_OK) {
        check_part(body, &env);
        judge(&env);
        LP_ASSERT(lp_rpc_method_name(env.method) != NULL);
        LP_ASSERT(!lp_rpc_is_repeatable(env.method) || env.method > LP_RPC_OTHER);
    }
    (void)lp_dialect_is_lost(400, body, true, NULL, 0);
    (void)lp_dialect_is_lost(404, body, true, NULL, 0);
    return 0;
}
