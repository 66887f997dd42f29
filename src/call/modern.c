/* Requests of 2026-07-28: what goes into _meta and into mirrored header fields (wire document 7.2,
 * 7.3). The owner's params stay byte for byte; members are put in beside them. */
#include <stdio.h>

#include "call/client_priv.h"
#include "wire/base64url.h"

enum { TOOLS_MAX = 4 << 20, VALUE_MAX = 8192, PATH_DEPTH_MAX = 16 };

#define META(name) "\"io.modelcontextprotocol/" name "\":"

/* --- params --- */

static int append_member(
    struct lp_buf *out, struct lp_span meta, const char *key, struct lp_span value)
{
    char name[64];
    size_t len = strlen(key) - 3; /* without its quotes and colon */
    memcpy(name, key + 1, len);
    if (!value.len || lp_member(meta, lp_span(name, len)).len)
        return LP_OK; /* the owner has said it already */
    return LP_JOIN(out, out->len ? LP_SPAN(",") : LP_SPAN(""), lp_span_str(key), value);
}

static int write_meta(const struct lp_client *client, const struct lp_params *params,
    struct lp_span meta, struct lp_buf *out)
{
    int err = append_member(out, meta, "\"progressToken\":", params->token);
    if (err || !client->is_modern)
        return err;
    err = append_member(out, meta, META("protocolVersion"), LP_SPAN("\"" LP_VERSION_MODERN "\""));
    if (!err)
        err = append_member(out, meta, META("clientCapabilities"), client->capabilities);
    if (!err)
        err = append_member(out, meta, META("clientInfo"), client->client_info);
    return err ? err : append_member(out, meta, META("logLevel"), client->log_level);
}

static bool is_empty_object(struct lp_span json)
{
    size_t i = 1; /* it has been read: something comes before its end */
    while (strchr(" \t\r\n", json.ptr[i]))
        i++;
    return json.ptr[i] == '}';
}

/* What parts new members from an object's own. */
static struct lp_span comma_before(struct lp_span object)
{
    return is_empty_object(object) ? LP_SPAN("") : LP_SPAN(",");
}

/* The new members of params and of its _meta, put in front of the owner's own. */
static int write_with_meta(
    const struct lp_params *params, struct lp_span meta, struct lp_span extra, struct lp_buf *out)
{
    struct lp_span given = params->given.len ? params->given : LP_SPAN("{}");
    given = lp_span_from(given, lp_span_find(given, '{'));
    struct lp_span own = lp_span_from(given, 1);
    struct lp_span inputs = params->inputs;
    struct lp_span comma = inputs.len ? LP_SPAN(",") : LP_SPAN("");
    if (!meta.len)
        return LP_JOIN(out, LP_SPAN("{"), inputs, extra.len ? comma : LP_SPAN(""),
            extra.len ? LP_SPAN("\"_meta\":{") : LP_SPAN(""), extra,
            extra.len ? LP_SPAN("}") : LP_SPAN(""), comma_before(given), own);
    struct lp_span until = lp_span(own.ptr, (size_t)(meta.ptr - own.ptr));
    struct lp_span after = lp_span_from(own, until.len + meta.len);
    return LP_JOIN(out, LP_SPAN("{"), inputs, comma, until, LP_SPAN("{"), extra,
        extra.len ? comma_before(meta) : LP_SPAN(""), lp_span_from(meta, 1), after);
}

int lp_modern_write_params(
    const struct lp_client *client, const struct lp_params *params, struct lp_buf *out)
{
    struct lp_span meta = lp_member(params->given, LP_SPAN("_meta"));
    struct lp_buf extra;
    if (!lp_span_starts(meta, LP_SPAN("{")))
        meta = LP_SPAN("");
    lp_buf_init(&extra, LP_FETCH_BODY_MAX);
    int err = write_meta(client, params, meta, &extra);
    if (!err && !extra.len && !params->inputs.len)
        err = lp_buf_append(out, params->given);
    else if (!err)
        err = write_with_meta(params, meta, lp_buf_span(&extra), out);
    lp_buf_release(&extra);
    return err;
}

/* --- mirrored fields --- */

struct mirror {
    struct lp_buf *room;
    struct lp_target_field *fields;
    uint32_t *count;
    int err;
};

static bool is_plain(struct lp_span value)
{
    if (!value.len)
        return true;
    bool has_blank_end = strchr(" \t", value.ptr[0]) || strchr(" \t", value.ptr[value.len - 1]);
    bool looks_encoded =
        lp_span_starts(value, LP_SPAN("=?base64?")) && lp_span_ends(value, LP_SPAN("?="));
    if (has_blank_end || looks_encoded)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c > 0x7E)
            return false;
    }
    return true;
}

/* Room is reserved before, so that what was put there earlier does not move. */
static int put(struct lp_buf *room, struct lp_span text, struct lp_span *ret)
{
    if (room->off + room->len + text.len > room->cap)
        return LP_ELIMIT;
    int err = lp_buf_append(room, text);
    if (!err)
        *ret = lp_span_from(lp_buf_span(room), room->len - text.len);
    return err;
}

static int put_encoded(struct lp_buf *room, struct lp_span value, struct lp_span *ret)
{
    char text[VALUE_MAX / 3 * 4 + 32];
    if (is_plain(value))
        return put(room, value, ret);
    size_t len = sizeof "=?base64?" - 1;
    memcpy(text, "=?base64?", len);
    len += lp_base64_encode(value, text + len);
    memcpy(text + len, "?=", 2);
    return put(room, lp_span(text, len + 2), ret);
}

/* Adds the field for a raw JSON value: string, integer or boolean; all else has none. */
static int add_mirrored(struct mirror *m, struct lp_span name, struct lp_span raw)
{
    char text[VALUE_MAX];
    struct lp_target_field field;
    size_t len = 0;
    struct lp_span value = raw;
    if (!raw.len || raw.ptr[0] == '{' || raw.ptr[0] == '[' || lp_span_eq(raw, LP_SPAN("null")))
        return LP_OK;
    if (raw.ptr[0] == '"') {
        int err = lp_json_unescape(raw, text, sizeof text, &len);
        if (err)
            return err;
        value = lp_span(text, len);
    }
    if (*m->count == LP_CLIENT_FIELDS_MAX)
        return LP_ELIMIT;
    int err = put(m->room, name, &field.name);
    if (!err)
        err = put_encoded(m->room, value, &field.value);
    if (!err)
        m->fields[(*m->count)++] = field;
    return err;
}

static struct lp_span name_of(enum lp_rpc_method rpc, struct lp_span params)
{
    switch (rpc) {
    case LP_RPC_TOOLS_CALL:
    case LP_RPC_PROMPTS_GET:
        return lp_member(params, LP_SPAN("name"));
    case LP_RPC_RESOURCES_READ:
        return lp_member(params, LP_SPAN("uri"));
    case LP_RPC_TASKS_GET:
    case LP_RPC_TASKS_UPDATE:
    case LP_RPC_TASKS_CANCEL:
        return lp_member(params, LP_SPAN("taskId"));
    default:
        return LP_SPAN("");
    }
}

/* --- x-mcp-header --- */

struct walk {
    struct mirror *mirror;
    struct lp_span arguments; /* at this level */
    uint32_t depth;
};

static void walk_property(void *ctx, struct lp_span key, struct lp_span schema)
{
    const struct walk *w = ctx;
    char name[256] = "Mcp-Param-";
    char text[256];
    size_t len = 0;
    if (w->mirror->err || lp_json_unescape(key, text, sizeof text, &len))
        return;
    struct lp_span value = lp_member(w->arguments, lp_span(text, len));
    struct lp_span header = lp_member(schema, LP_SPAN("x-mcp-header"));
    size_t prefix = strlen(name);
    if (header.len && header.ptr[0] == '"' &&
        !lp_json_unescape(header, name + prefix, sizeof name - prefix, &len) &&
        lp_field_is_token(lp_span(name, prefix + len)))
        w->mirror->err = add_mirrored(w->mirror, lp_span(name, prefix + len), value);
    struct walk inner = {w->mirror, value, w->depth + 1};
    struct lp_span properties = lp_member(schema, LP_SPAN("properties"));
    if (value.len && properties.len && inner.depth < PATH_DEPTH_MAX)
        lp_members(properties, walk_property, &inner);
}

/* The stored tools are length and bytes, one after the other. */
static struct lp_span find_tool(const struct lp_client *client, struct lp_span name)
{
    struct lp_span rest = lp_buf_span(&client->tools);
    while (rest.len > sizeof(uint32_t)) {
        uint32_t len;
        memcpy(&len, rest.ptr, sizeof len);
        struct lp_span tool = lp_span(rest.ptr + sizeof len, len);
        rest = lp_span_from(rest, sizeof len + len);
        if (lp_span_eq(lp_member(tool, LP_SPAN("name")), name))
            return tool;
    }
    return LP_SPAN("");
}

static void keep_tool(void *ctx, struct lp_span tool)
{
    struct lp_client *client = ctx;
    uint32_t len = (uint32_t)tool.len;
    if (lp_span_search(tool, LP_SPAN("\"x-mcp-header\"")) == tool.len)
        return;
    if (client->tools.len + sizeof len + tool.len > client->tools.max ||
        lp_buf_append(&client->tools, lp_span((const char *)&len, sizeof len)))
        lp_client_note(client, "a tool's schema was too large to keep: its calls lack Mcp-Param-*");
    else if (lp_buf_append(&client->tools, tool))
        lp_buf_clear(&client->tools); /* rather none than half of one */
}

void lp_modern_learn_tools(struct lp_client *client, struct lp_span result, bool is_first_page)
{
    struct lp_span tools = lp_member(result, LP_SPAN("tools"));
    if (is_first_page)
        lp_buf_clear(&client->tools);
    client->tools.max = TOOLS_MAX;
    if (lp_span_starts(tools, LP_SPAN("[")))
        lp_elements(tools, keep_tool, client);
}

int lp_modern_add_fields(const struct lp_client *client, const struct lp_exchange_args *args,
    struct lp_buf *room, struct lp_target_field *fields, uint32_t *count)
{
    struct mirror m = {.room = room, .fields = fields, .count = count};
    char *space;
    enum lp_rpc_method rpc = args->call ? args->call->rpc : LP_RPC_OTHER;
    int err = lp_buf_reserve(room, room->max, &space);
    if (err)
        return err;
    LP_ASSERT(*count < LP_CLIENT_FIELDS_MAX);
    fields[(*count)++] = (struct lp_target_field){LP_SPAN("Mcp-Method"), args->method};
    err = add_mirrored(&m, LP_SPAN("Mcp-Name"), name_of(rpc, args->params));
    if (err || rpc != LP_RPC_TOOLS_CALL)
        return err;
    struct lp_span tool = find_tool(client, lp_member(args->params, LP_SPAN("name")));
    struct lp_span schema = lp_member(tool, LP_SPAN("inputSchema"));
    struct walk w = {&m, lp_member(args->params, LP_SPAN("arguments")), 0};
    struct lp_span properties = lp_member(schema, LP_SPAN("properties"));
    if (properties.len)
        lp_members(properties, walk_property, &w);
    return m.err;
}

/* --- wrong fields: the tools are listed again --- */

static void send_again(struct lp_client *client)
{
    struct lp_call *call = lp_call_get(client, client->relist_for);
    client->relist = client->relist_for = 0;
    if (!call)
        return;
    call->number = ++client->number;
    int err = lp_call_send(call);
    if (!err)
        return;
    struct lp_client_failure why = lp_client_limit(client, err);
    lp_call_fail(call, &why);
}

static void on_listed(void *ctx, lp_id id, struct lp_span result, struct lp_span error)
{
    (void)id;
    (void)result;
    (void)error;
    send_again(ctx);
}

static void on_not_listed(void *ctx, lp_id id, const struct lp_client_failure *why)
{
    (void)id;
    (void)why;
    send_again(ctx);
}

static const struct lp_call_ops RELIST_OPS = {.answer = on_listed, .failed = on_not_listed};

bool lp_modern_try_again(struct lp_call *call, struct lp_span error)
{
    struct lp_client *client = call->client;
    struct lp_span code = lp_member(error, LP_SPAN("code"));
    bool is_mismatch = lp_span_eq(code, LP_SPAN("-32020"));
    if (!is_mismatch || call->rpc != LP_RPC_TOOLS_CALL || call->has_relisted || client->relist)
        return false;
    struct lp_call_args args = {.method = LP_SPAN("tools/list"), .ops = &RELIST_OPS, .ctx = client};
    if (lp_calls_start(client, &args, true, &client->relist))
        return false;
    call->has_relisted = true;
    call->exchange = NULL;
    client->relist_for = call->id;
    return true;
}
