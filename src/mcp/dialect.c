/* Whether an upstream's answer means "I do not know this session" (mcp/dialect.h, requirements
 * [G6]).
 *
 * Servers say it in many ways, most of them with a plain 400. Only exact texts count, and only
 * here: a near miss is the upstream's own answer and passes untouched. That the forwarded request
 * carried a session id is the caller's knowledge. */
#include "mcp/dialect.h"

#include "mcp/envelope.h"
#include "wire/json.h"

enum { CODE_METHOD_NOT_FOUND = -32601 };

#define TEXT(literal)                                                                              \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
static const struct lp_dialect BUILT_IN[] = {
    {400, -32000, TEXT("Bad Request: No valid session ID provided")},
    {400, -32000, TEXT("Bad Request: Server not initialized")},
    {400, -32000,
        TEXT("Bad Request: initialize first, then send mcp-session-id on follow-up requests.")},
    {400, -32600, TEXT("Session not found")},
    {400, 0, TEXT("{\"error\":\"initialize the MCP session first\"}")},
    {400, 0, TEXT("Session ID not found.")},
    {400, 0, TEXT("session not found")},
    {422, 0, TEXT("Unexpected message, expect initialize request")},
};
enum { BUILT_IN_COUNT = sizeof BUILT_IN / sizeof *BUILT_IN };

const struct lp_dialect *lp_dialects(size_t *ret_count)
{
    *ret_count = BUILT_IN_COUNT;
    return BUILT_IN;
}

/* The decimal number of a raw JSON token; false for anything else (1.0, 1e3, "1"). */
static bool read_code(struct lp_span token, int32_t *ret_code)
{
    bool negative = lp_span_starts(token, LP_SPAN("-"));
    struct lp_span digits = negative ? lp_span_from(token, 1) : token;
    uint64_t value = 0;
    if (!lp_span_to_u64(digits, &value) || value > INT32_MAX)
        return false;
    *ret_code = negative ? -(int32_t)value : (int32_t)value;
    return true;
}

/* The body as a JSON-RPC error; false when it is none. */
static bool read_error(struct lp_span body, struct lp_envelope *env, int32_t *ret_code)
{
    return lp_envelope_scan(body, env) == LP_OK && env->has_error && !env->has_result &&
        env->method == LP_RPC_NONE && read_code(env->error_code, ret_code);
}

static bool is_string(struct lp_span token)
{
    return token.len && token.ptr[0] == '"';
}

static bool id_says_nothing(const struct lp_envelope *env)
{
    return !env->has_id ||
        (is_string(env->id) && lp_json_string_is(env->id, LP_SPAN("server-error")));
}

static struct lp_span trim_end(struct lp_span body)
{
    while (body.len && memchr(" \t\r\n", body.ptr[body.len - 1], 4))
        body.len--;
    return body;
}

struct answer {
    uint16_t status;
    struct lp_span body; /* without blanks at its end */
    bool is_error;       /* a JSON-RPC error: code and envelope are set */
    int32_t code;
    struct lp_envelope env;
};

static bool matches(const struct answer *a, const struct lp_dialect *d)
{
    if (a->status != d->status)
        return false;
    if (d->code == 0)
        return lp_span_eq(a->body, d->text);
    return a->is_error && a->code == d->code && id_says_nothing(&a->env) &&
        is_string(a->env.error_message) && lp_json_string_is(a->env.error_message, d->text);
}

static bool matches_any(const struct answer *a, const struct lp_dialect *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (matches(a, &table[i]))
            return true;
    return false;
}

bool lp_dialect_is_lost(uint16_t status, struct lp_span body, bool body_is_whole,
    const struct lp_dialect *extra, size_t extra_count)
{
    bool is_known = body_is_whole && body.len <= LP_DIALECT_BODY_MAX;
    if (status < 400 || !is_known)
        return status == 404;
    struct answer a = {.status = status, .body = trim_end(body)};
    a.is_error = read_error(body, &a.env, &a.code);
    if (status == 404)
        return !(a.is_error && a.code == CODE_METHOD_NOT_FOUND);
    return matches_any(&a, BUILT_IN, BUILT_IN_COUNT) || matches_any(&a, extra, extra_count);
}
