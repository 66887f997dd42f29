/* Which era a POST belongs to, and whether a modern one agrees with itself (mcp/version.h).
 *
 * The order of the checks is that of wire document 11.1, steps 4 to 10: what the body says in _meta
 * decides, the header only has to agree. Sessions, Origin and the legacy version header are judged
 * in gate; so is the list of versions that goes into an answer. */
#include "mcp/version.h"

#include "wire/base64url.h"

#define VERSION_WITH_BATCHES "2025-03-26"

enum {
    DATE_LEN = sizeof LP_VERSION_MODERN - 1,
    /* A head is at most 64 KiB, so no decoded header value is longer. */
    NAME_MAX_BYTES = 65536 / 4 * 3,
};

static const struct lp_span LEGACY[] = {
    {"2025-11-25", 10},
    {"2025-06-18", 10},
    {"2025-03-26", 10},
    {"2024-11-05", 10},
    {"2024-10-07", 10},
};

/* --- version strings ------------------------------------------------------------------------- */

bool lp_version_is_legacy(struct lp_span version)
{
    for (size_t i = 0; i < sizeof LEGACY / sizeof *LEGACY; i++)
        if (lp_span_eq(version, LEGACY[i]))
            return true;
    return false;
}

bool lp_version_is_modern(struct lp_span version)
{
    return lp_span_eq(version, LP_SPAN(LP_VERSION_MODERN));
}

bool lp_version_looks_modern(struct lp_span version)
{
    if (version.len != DATE_LEN)
        return false;
    for (size_t i = 0; i < DATE_LEN; i++) {
        bool is_digit = version.ptr[i] >= '0' && version.ptr[i] <= '9';
        if (i == 4 || i == 7 ? version.ptr[i] != '-' : !is_digit)
            return false;
    }
    return memcmp(version.ptr, LP_VERSION_MODERN, DATE_LEN) >= 0;
}

/* --- headers --------------------------------------------------------------------------------- */

struct header {
    uint32_t count;
    struct lp_span value; /* of the first one */
};

static struct header get_header(const struct lp_head *head, enum lp_field_id id)
{
    struct header h = {0, {NULL, 0}};
    const struct lp_field *field;
    for (uint32_t from = 0; (field = lp_head_find(head, id, &from)); h.count++)
        if (h.count == 0)
            h.value = field->value;
    return h;
}

/* One of several is enough: somebody behind us may read just that one. */
static bool header_looks_modern(const struct lp_head *head)
{
    const struct lp_field *field;
    for (uint32_t from = 0; (field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, &from));)
        if (lp_version_looks_modern(field->value))
            return true;
    return false;
}

static bool header_allows_batch(const struct lp_head *head)
{
    const struct lp_field *field;
    for (uint32_t from = 0; (field = lp_head_find(head, LP_FIELD_MCP_PROTOCOL_VERSION, &from));)
        if (!lp_span_eq(field->value, LP_SPAN(VERSION_WITH_BATCHES)))
            return false;
    return true;
}

static enum lp_reason refuse(enum lp_reason reason, const char *detail, const char **ret_detail)
{
    *ret_detail = detail;
    return reason;
}

/* --- modern: the header equals the body ------------------------------------------------------ */

/* Which member of params a method's Mcp-Name repeats. */
static const struct name_rule {
    enum lp_rpc_method method;
    enum { IN_NAME, IN_URI, IN_TASK_ID } member;
    const char *mismatch;
} NAME_RULES[] = {
    {LP_RPC_TOOLS_CALL, IN_NAME, "Mcp-Name does not match params.name"},
    {LP_RPC_PROMPTS_GET, IN_NAME, "Mcp-Name does not match params.name"},
    {LP_RPC_RESOURCES_READ, IN_URI, "Mcp-Name does not match params.uri"},
    {LP_RPC_TASKS_GET, IN_TASK_ID, "Mcp-Name does not match params.taskId"},
    {LP_RPC_TASKS_UPDATE, IN_TASK_ID, "Mcp-Name does not match params.taskId"},
    {LP_RPC_TASKS_CANCEL, IN_TASK_ID, "Mcp-Name does not match params.taskId"},
};

static const struct name_rule *find_name_rule(enum lp_rpc_method method)
{
    for (size_t i = 0; i < sizeof NAME_RULES / sizeof *NAME_RULES; i++)
        if (NAME_RULES[i].method == method)
            return &NAME_RULES[i];
    return NULL;
}

static struct lp_span pick_member(const struct lp_envelope *env, const struct name_rule *rule)
{
    switch (rule->member) {
    case IN_NAME:
        return env->name;
    case IN_URI:
        return env->uri;
    case IN_TASK_ID:
        break;
    }
    return env->task_id;
}

/* Plain values are visible ASCII, blanks and tabs (wire document 7.3). */
static bool is_plain(struct lp_span value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] > '~')
            return false;
    return true;
}

bool lp_version_value_means(struct lp_span value, struct lp_span token)
{
    const struct lp_span begin = LP_SPAN("=?base64?");
    const struct lp_span end = LP_SPAN("?=");
    if (token.len == 0 || !is_plain(value))
        return false;
    bool is_encoded = value.len >= begin.len + end.len && lp_span_starts(value, begin) &&
        lp_span_ends(value, end);
    if (!is_encoded)
        return lp_json_string_is(token, value);
    char room[NAME_MAX_BYTES];
    size_t len = 0;
    struct lp_span inner = lp_span(value.ptr + begin.len, value.len - begin.len - end.len);
    if (lp_base64_decode(inner, room, sizeof room, &len))
        return false;
    return lp_json_string_is(token, lp_span(room, len));
}

static enum lp_reason check_method(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    struct header h = get_header(head, LP_FIELD_MCP_METHOD);
    if (h.count == 0 && !env->has_id)
        return LP_REASON_none;
    if (h.count == 0)
        return refuse(LP_REASON_header_mismatch, "Mcp-Method is missing", ret_detail);
    if (h.count > 1)
        return refuse(LP_REASON_header_mismatch, "Mcp-Method is given twice", ret_detail);
    if (!lp_json_string_is(env->method_token, h.value))
        return refuse(LP_REASON_header_mismatch, "Mcp-Method does not match method", ret_detail);
    return LP_REASON_none;
}

static enum lp_reason check_name(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    const struct name_rule *rule = find_name_rule(env->method);
    struct header h = get_header(head, LP_FIELD_MCP_NAME);
    if (!rule || (h.count == 0 && !env->has_id))
        return LP_REASON_none;
    if (h.count == 0)
        return refuse(LP_REASON_header_mismatch, "Mcp-Name is missing", ret_detail);
    if (h.count > 1)
        return refuse(LP_REASON_header_mismatch, "Mcp-Name is given twice", ret_detail);
    if (!lp_version_value_means(h.value, pick_member(env, rule)))
        return refuse(LP_REASON_header_mismatch, rule->mismatch, ret_detail);
    return LP_REASON_none;
}

static enum lp_reason check_names(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    enum lp_reason reason = check_method(head, env, ret_detail);
    return reason == LP_REASON_none ? check_name(head, env, ret_detail) : reason;
}

/* Step 6: the body names a version in _meta. */
static enum lp_reason judge_modern(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    struct header h = get_header(head, LP_FIELD_MCP_PROTOCOL_VERSION);
    if (!env->meta_version_is_string)
        return refuse(
            LP_REASON_unknown_version, "the protocol version must be a string", ret_detail);
    if (h.count == 1 && !lp_json_string_is(env->meta_version, h.value))
        return refuse(LP_REASON_header_mismatch,
            "MCP-Protocol-Version does not match the protocol version in params._meta", ret_detail);
    if (!lp_json_string_is(env->meta_version, LP_SPAN(LP_VERSION_MODERN)))
        return refuse(LP_REASON_unknown_version, "Unsupported protocol version", ret_detail);
    if (h.count == 0)
        return refuse(LP_REASON_header_mismatch, "MCP-Protocol-Version is missing", ret_detail);
    if (h.count > 1)
        return refuse(LP_REASON_header_mismatch, "MCP-Protocol-Version is given twice", ret_detail);
    if (!env->has_client_capabilities)
        return refuse(LP_REASON_missing_meta,
            "params._meta lacks io.modelcontextprotocol/clientCapabilities", ret_detail);
    return check_names(head, env, ret_detail);
}

/* Step 8: the header alone is modern. A notification needs no _meta (wire document 7.2 speaks of
 * requests, and clients stamp their notifications too); a request does. */
static enum lp_reason judge_modern_header(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    struct header h = get_header(head, LP_FIELD_MCP_PROTOCOL_VERSION);
    if (env->has_id)
        return refuse(LP_REASON_missing_meta,
            "params._meta lacks io.modelcontextprotocol/protocolVersion", ret_detail);
    if (h.count > 1)
        return refuse(LP_REASON_header_mismatch, "MCP-Protocol-Version is given twice", ret_detail);
    if (!lp_version_is_modern(h.value))
        return refuse(LP_REASON_unknown_version, "Unsupported protocol version", ret_detail);
    return check_names(head, env, ret_detail);
}

/* --- what is no single message with a method ------------------------------------------------- */

/* Step 4. */
static enum lp_reason judge_batch(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    if (env->batch_is_empty)
        return refuse(LP_REASON_bad_batch, "the batch is empty", ret_detail);
    if (env->batch_has_modern_meta || env->batch_has_initialize)
        return refuse(LP_REASON_bad_batch, "this message must not be sent in a batch", ret_detail);
    if (!header_allows_batch(head))
        return refuse(LP_REASON_bad_batch,
            "batches exist only in protocol version " VERSION_WITH_BATCHES, ret_detail);
    return LP_REASON_none;
}

/* Step 5, and what is no message at all. */
static enum lp_reason judge_response(
    const struct lp_head *head, const struct lp_envelope *env, const char **ret_detail)
{
    if (!env->has_result && !env->has_error)
        return refuse(LP_REASON_bad_message, "the body has no method, result or error", ret_detail);
    if (header_looks_modern(head))
        return refuse(LP_REASON_bad_message, "a response cannot be posted in this protocol version",
            ret_detail);
    return LP_REASON_none;
}

static enum lp_reason check_shape(const struct lp_envelope *env, const char **ret_detail)
{
    if (!env->is_object)
        return refuse(LP_REASON_bad_message, "the body is not a JSON object", ret_detail);
    if (env->method_token.len && env->method_token.ptr[0] != '"')
        return refuse(LP_REASON_bad_message, "method must be a string", ret_detail);
    if (env->has_id && env->id.len == 0)
        return refuse(LP_REASON_bad_message, "id must be a string or a number", ret_detail);
    return LP_REASON_none;
}

/* --- the order of it all --------------------------------------------------------------------- */

static enum lp_reason judge(const struct lp_head *head, const struct lp_envelope *env,
    enum lp_era *era, const char **ret_detail)
{
    *era = LP_ERA_LEGACY;
    if (env->is_batch)
        return judge_batch(head, env, ret_detail);
    enum lp_reason reason = check_shape(env, ret_detail);
    if (reason != LP_REASON_none)
        return reason;
    if (env->method == LP_RPC_NONE)
        return judge_response(head, env, ret_detail);
    if (env->meta_version.len) {
        *era = LP_ERA_MODERN;
        return judge_modern(head, env, ret_detail);
    }
    if (env->method == LP_RPC_INITIALIZE)
        return header_looks_modern(head)
            ? refuse(LP_REASON_header_mismatch,
                  "initialize does not exist in this protocol version", ret_detail)
            : LP_REASON_none;
    if (header_looks_modern(head)) {
        *era = LP_ERA_MODERN;
        return judge_modern_header(head, env, ret_detail);
    }
    if (env->method == LP_RPC_DISCOVER || env->method == LP_RPC_LISTEN)
        return refuse(LP_REASON_missing_meta,
            "params._meta lacks io.modelcontextprotocol/protocolVersion", ret_detail);
    return LP_REASON_none;
}

enum lp_reason lp_version_judge(const struct lp_head *head, const struct lp_envelope *env,
    enum lp_era *ret_era, const char **ret_detail)
{
    enum lp_era era;
    enum lp_reason reason = judge(head, env, &era, ret_detail);
    if (reason == LP_REASON_none)
        *ret_era = era;
    return reason;
}
