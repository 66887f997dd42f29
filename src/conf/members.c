/* Where the members of a JSON object lie (conf/mcp_json_priv.h). Values are found, not decoded: the
 * reader checks every byte, this only remembers where a direct member began. */
#include "conf/mcp_json_priv.h"

struct walk {
    struct lp_span text;
    lp_member_fn on_member;
    void *ctx;
    struct lp_span key;
    size_t value_begin; /* of an object or array that is being read */
    enum lp_json_token_kind kind;
};

static struct lp_span span_of(const struct walk *w, size_t begin, size_t end)
{
    return lp_span(w->text.ptr + begin, end - begin);
}

static int report(struct walk *w, size_t begin, size_t end, enum lp_json_token_kind kind)
{
    struct lp_member member = {.key = w->key, .value = span_of(w, begin, end), .kind = kind};
    return w->on_member(w->ctx, &member);
}

static int on_token(void *ctx, const struct lp_json_token *token)
{
    struct walk *w = ctx;
    if (token->depth == 0) {
        bool is_object = token->kind == LP_JSON_OBJECT_BEGIN || token->kind == LP_JSON_OBJECT_END;
        return is_object ? LP_OK : LP_ERANGE;
    }
    if (token->depth > 1)
        return LP_OK;
    switch (token->kind) {
    case LP_JSON_KEY:
        w->key = span_of(w, token->begin, token->end);
        return LP_OK;
    case LP_JSON_OBJECT_BEGIN:
    case LP_JSON_ARRAY_BEGIN:
        w->value_begin = token->begin;
        w->kind = token->kind;
        return LP_OK;
    case LP_JSON_OBJECT_END:
    case LP_JSON_ARRAY_END:
        return report(w, w->value_begin, token->end, w->kind);
    default:
        return report(w, token->begin, token->end, token->kind);
    }
}

int lp_members_walk(struct lp_span object, lp_member_fn on_member, void *ctx)
{
    struct walk w = {.text = object, .on_member = on_member, .ctx = ctx};
    struct lp_json json;
    lp_json_init(&json, on_token, &w);
    int err = lp_json_feed(&json, object);
    return err ? err : lp_json_finish(&json);
}

struct search {
    struct lp_span key;
    struct lp_member *ret;
    bool is_found;
};

static int on_searched(void *ctx, const struct lp_member *member)
{
    struct search *s = ctx;
    if (lp_json_string_is(member->key, s->key)) {
        *s->ret = *member;
        s->is_found = true;
    }
    return LP_OK;
}

int lp_members_find(struct lp_span object, struct lp_span key, struct lp_member *ret)
{
    struct search s = {.key = key, .ret = ret};
    int err = lp_members_walk(object, on_searched, &s);
    if (err)
        return err;
    return s.is_found ? LP_OK : LP_ENOT_FOUND;
}

/* --- entries of mcp.json ---------------------------------------------------------------------- */

/* Every kind of "not built like this" is one to the caller. */
static int find_object(struct lp_span object, struct lp_span key, struct lp_span *ret)
{
    struct lp_member member;
    int err = lp_members_find(object, key, &member);
    if (err)
        return err == LP_ENOT_FOUND ? err : LP_ESYNTAX;
    if (member.kind != LP_JSON_OBJECT_BEGIN)
        return LP_ESYNTAX;
    *ret = member.value;
    return LP_OK;
}

int lp_mcp_json_entry(struct lp_span text, struct lp_span name, struct lp_span *ret)
{
    struct lp_span servers;
    int err = find_object(text, LP_SPAN("mcpServers"), &servers);
    return err ? err : find_object(servers, name, ret);
}

int lp_mcp_json_entry_type(struct lp_span entry, enum lp_mcp_json_type *ret)
{
    static const struct {
        const char *name;
        enum lp_mcp_json_type type;
    } types[] = {
        {"streamable-http", LP_MCP_JSON_STREAMABLE_HTTP},
        {"http", LP_MCP_JSON_STREAMABLE_HTTP},
        {"streamableHttp", LP_MCP_JSON_STREAMABLE_HTTP},
        {"sse", LP_MCP_JSON_SSE},
        {"stdio", LP_MCP_JSON_STDIO},
    };
    struct lp_member member;
    if (!lp_members_find(entry, LP_SPAN("type"), &member)) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (member.kind == LP_JSON_STRING &&
                lp_json_string_is(member.value, lp_span_str(types[i].name))) {
                *ret = types[i].type;
                return LP_OK;
            }
        return LP_ERANGE;
    }
    bool has_command = !lp_members_find(entry, LP_SPAN("command"), &member);
    if (!has_command && lp_members_find(entry, LP_SPAN("url"), &member))
        return LP_ENOT_FOUND;
    *ret = has_command ? LP_MCP_JSON_STDIO : LP_MCP_JSON_AUTO;
    return LP_OK;
}
