/* The scan of a JSON-RPC body (mcp/envelope.h; wire document 2.1): one pass of the JSON reader,
 * nothing copied, nothing built.
 *
 * Where a token stands is known from the last key on each of three levels (message, params or
 * error, _meta): a key clears the level below it, so a value can never be taken for a member of
 * another object. What the members mean together is judged in version.c and gate. */
#include "mcp/envelope.h"

/* Interpreted members; the bit of each says "seen in this message". */
enum member {
    NO_MEMBER,
    ID,
    METHOD,
    PARAMS,
    RESULT,
    ERROR,
    NAME,
    URI,
    TASK_ID,
    PROTOCOL_VERSION,
    META,
    CODE,
    MESSAGE,
    META_VERSION,
    META_CAPABILITIES,
};

enum { LEVELS = 3 };

struct member_name {
    enum member member;
    enum member parent; /* NO_MEMBER: the message itself */
    struct lp_span name;
};

#define NAME_ROW(member, parent, text)                                                             \
    {                                                                                              \
        member, parent,                                                                            \
        {                                                                                          \
            "" text, sizeof(text) - 1                                                              \
        }                                                                                          \
    }
static const struct member_name NAMES[] = {
    NAME_ROW(ID, NO_MEMBER, "id"),
    NAME_ROW(METHOD, NO_MEMBER, "method"),
    NAME_ROW(PARAMS, NO_MEMBER, "params"),
    NAME_ROW(RESULT, NO_MEMBER, "result"),
    NAME_ROW(ERROR, NO_MEMBER, "error"),
    NAME_ROW(NAME, PARAMS, "name"),
    NAME_ROW(URI, PARAMS, "uri"),
    NAME_ROW(TASK_ID, PARAMS, "taskId"),
    NAME_ROW(PROTOCOL_VERSION, PARAMS, "protocolVersion"),
    NAME_ROW(META, PARAMS, "_meta"),
    NAME_ROW(CODE, ERROR, "code"),
    NAME_ROW(MESSAGE, ERROR, "message"),
    NAME_ROW(META_VERSION, META, "io.modelcontextprotocol/protocolVersion"),
    NAME_ROW(META_CAPABILITIES, META, "io.modelcontextprotocol/clientCapabilities"),
};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

static const struct {
    struct lp_span name;
    bool may_repeat;
} METHODS[] = {[LP_RPC_NONE] = {{"", 0}, false},
    [LP_RPC_OTHER] = {{"other", 5}, false},
#define X(id, text, again) [LP_RPC_##id] = {{"" text, sizeof(text) - 1}, again},
    LP_RPC_METHODS(X)
#undef X
};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

struct scan {
    const char *body;
    struct lp_envelope *ret;
    struct lp_envelope *message; /* ret itself, or `element` in a batch */
    struct lp_envelope element;
    uint32_t top;             /* depth of the message: 0, in a batch 1 */
    enum member path[LEVELS]; /* the last key on each level */
    uint32_t seen;
};

static struct lp_span token_span(const struct scan *s, const struct lp_json_token *token)
{
    return lp_span(s->body + token->begin, token->end - token->begin);
}

/* --- names ----------------------------------------------------------------------------------- */

/* Whether a string token means `text`; a backslash is the rare case. */
static bool token_is(struct lp_span token, bool has_escape, struct lp_span text)
{
    if (has_escape)
        return lp_json_string_is(token, text);
    return lp_span_eq(lp_span(token.ptr + 1, token.len - 2), text);
}

static enum member look_up_member(struct lp_span key, bool has_escape, enum member parent)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (NAMES[i].parent == parent && token_is(key, has_escape, NAMES[i].name))
            return NAMES[i].member;
    return NO_MEMBER;
}

static enum lp_rpc_method look_up_method(struct lp_span token, bool has_escape)
{
    for (size_t i = LP_RPC_OTHER + 1; i < METHOD_COUNT; i++)
        if (token_is(token, has_escape, METHODS[i].name))
            return (enum lp_rpc_method)i;
    return LP_RPC_OTHER;
}

/* --- tokens ---------------------------------------------------------------------------------- */

static int on_key(struct scan *s, const struct lp_json_token *token)
{
    uint32_t level = token->depth - s->top - 1;
    if (level >= LEVELS)
        return LP_OK;
    bool is_inside = level == 0 || s->path[level - 1] != NO_MEMBER;
    enum member parent = level == 0 ? NO_MEMBER : s->path[level - 1];
    enum member member = NO_MEMBER;
    if (is_inside)
        member = look_up_member(token_span(s, token), token->has_escape, parent);
    s->path[level] = member;
    if (level + 1 < LEVELS)
        s->path[level + 1] = NO_MEMBER;
    if (member != NO_MEMBER && s->seen & 1u << member)
        return LP_EAMBIGUOUS;
    s->seen |= 1u << member;
    return LP_OK;
}

static void take_id(struct lp_envelope *env, const struct lp_json_token *token, struct lp_span text)
{
    bool is_string = token->kind == LP_JSON_STRING;
    bool is_number = token->kind == LP_JSON_NUMBER;
    env->has_id = token->kind != LP_JSON_NULL;
    env->id_is_valid = is_string || (is_number && token->is_integer);
    /* An id of another kind cannot be one; it is not echoed. */
    if (is_string || is_number || !env->has_id)
        env->id = text;
}

static void take_method(
    struct lp_envelope *env, const struct lp_json_token *token, struct lp_span text)
{
    env->method_token = text;
    env->method = LP_RPC_OTHER;
    if (token->kind == LP_JSON_STRING)
        env->method = look_up_method(text, token->has_escape);
}

static void take_value(struct lp_envelope *env, enum member member,
    const struct lp_json_token *token, struct lp_span text)
{
    bool is_string = token->kind == LP_JSON_STRING;
    bool is_object = token->kind == LP_JSON_OBJECT_BEGIN;
    struct lp_span string = is_string ? text : lp_span(NULL, 0);
    switch (member) {
    case NO_MEMBER:
        break;
    case ID:
        take_id(env, token, text);
        break;
    case METHOD:
        take_method(env, token, text);
        break;
    case PARAMS:
        env->has_params = is_object;
        break;
    case RESULT:
        env->has_result = true;
        break;
    case ERROR:
        env->has_error = true;
        break;
    case NAME:
        env->name = string;
        break;
    case URI:
        env->uri = string;
        break;
    case TASK_ID:
        env->task_id = string;
        break;
    case PROTOCOL_VERSION:
        env->protocol_version = text;
        break;
    case META:
        env->has_meta = is_object;
        break;
    case CODE:
        env->error_code = text;
        break;
    case MESSAGE:
        env->error_message = text;
        break;
    case META_VERSION:
        env->meta_version = text;
        env->meta_version_is_string = is_string;
        break;
    case META_CAPABILITIES:
        env->has_client_capabilities = is_object;
        break;
    }
}

/* The outermost value says what the body is. */
static void on_outermost(struct scan *s, const struct lp_json_token *token)
{
    s->ret->is_object = token->kind == LP_JSON_OBJECT_BEGIN;
    s->ret->is_batch = token->kind == LP_JSON_ARRAY_BEGIN;
    s->ret->batch_is_empty = s->ret->is_batch;
    if (s->ret->is_batch) {
        s->top = 1;
        s->message = &s->element;
    }
}

static void on_element(struct scan *s)
{
    s->ret->batch_is_empty = false;
    s->element = (struct lp_envelope){0};
    s->seen = 0;
    s->path[0] = NO_MEMBER;
}

static void note_element(struct lp_envelope *batch, const struct lp_envelope *element)
{
    batch->batch_has_request |= element->has_id && element->method != LP_RPC_NONE;
    batch->batch_has_initialize |= element->method == LP_RPC_INITIALIZE;
    batch->batch_has_modern_meta |= element->meta_version.len > 0;
}

static int on_token(void *ctx, const struct lp_json_token *token)
{
    struct scan *s = ctx;
    if (token->kind == LP_JSON_OBJECT_END || token->kind == LP_JSON_ARRAY_END)
        return LP_OK;
    if (token->kind == LP_JSON_KEY)
        return on_key(s, token);
    if (token->depth == 0) {
        on_outermost(s, token);
    } else if (token->depth == s->top) {
        on_element(s);
    } else if (token->depth - s->top <= LEVELS) {
        enum member member = s->path[token->depth - s->top - 1];
        take_value(s->message, member, token, token_span(s, token));
        if (s->ret->is_batch)
            note_element(s->ret, s->message);
    }
    return LP_OK;
}

/* --- entry points ---------------------------------------------------------------------------- */

static int scan(struct lp_span body, struct lp_envelope *ret, bool is_part)
{
    struct lp_json json;
    struct scan s;
    *ret = (struct lp_envelope){0};
    s.body = body.ptr;
    s.ret = ret;
    s.message = ret;
    s.top = 0;
    s.seen = 0;
    for (size_t i = 0; i < LEVELS; i++)
        s.path[i] = NO_MEMBER;
    lp_json_init(&json, on_token, &s);
    int err = lp_json_feed(&json, body);
    return err || is_part ? err : lp_json_finish(&json);
}

int lp_envelope_scan(struct lp_span body, struct lp_envelope *ret)
{
    return scan(body, ret, false);
}

int lp_envelope_scan_part(struct lp_span body, struct lp_envelope *ret)
{
    return scan(body, ret, true);
}

bool lp_rpc_is_repeatable(enum lp_rpc_method method)
{
    LP_ASSERT((size_t)method < METHOD_COUNT);
    return METHODS[method].may_repeat;
}

const char *lp_rpc_method_name(enum lp_rpc_method method)
{
    LP_ASSERT((size_t)method < METHOD_COUNT);
    return METHODS[method].name.ptr;
}
