/* Which tools of a modern server a client may offer (wire document 7.3): one whose schema marks an
 * argument for mirroring in a way that nobody could follow is left out of the list, and said so.
 *
 * A mark is a member x-mcp-header of an argument's schema. It must be a token, be there once (case
 * aside), stand on a string, an integer or a boolean, and be reached from the root through
 * `properties` alone. */
#include "call/client_priv.h"

enum { MARKS_MAX = 64, MARK_BYTES = 128, DEPTH_MAX = 32 };

struct marks {
    char names[MARKS_MAX][MARK_BYTES];
    uint32_t count;
    bool is_bad;
};

struct place {
    struct marks *marks;
    struct lp_span schema;
    bool is_argument; /* reached through `properties` alone, and not the root */
    bool is_on_path;  /* the same, or the root */
    uint32_t depth;
};

static void look_at(const struct place *place);

static bool may_be_marked(struct lp_span schema)
{
    struct lp_span type = lp_member(schema, LP_SPAN("type"));
    return lp_span_eq(type, LP_SPAN("\"string\"")) || lp_span_eq(type, LP_SPAN("\"integer\"")) ||
        lp_span_eq(type, LP_SPAN("\"boolean\""));
}

static bool is_new(const struct marks *marks, struct lp_span name)
{
    for (uint32_t i = 0; i < marks->count; i++)
        if (lp_span_ieq(lp_span_str(marks->names[i]), name))
            return false;
    return true;
}

static void take_mark(const struct place *place, struct lp_span value)
{
    struct marks *marks = place->marks;
    char name[MARK_BYTES];
    size_t len = 0;
    bool is_readable = place->is_argument && marks->count < MARKS_MAX &&
        lp_span_starts(value, LP_SPAN("\"")) &&
        !lp_json_unescape(value, name, sizeof name - 1, &len);
    if (!is_readable || !lp_field_is_token(lp_span(name, len)) ||
        !is_new(marks, lp_span(name, len)) || !may_be_marked(place->schema)) {
        marks->is_bad = true;
        return;
    }
    name[len] = '\0';
    memcpy(marks->names[marks->count++], name, len + 1);
}

static void take_property(void *ctx, struct lp_span key, struct lp_span value)
{
    const struct place *outer = ctx;
    (void)key;
    look_at(&(struct place){
        outer->marks, value, outer->is_on_path, outer->is_on_path, outer->depth + 1});
}

static void take_other(void *ctx, struct lp_span value)
{
    const struct place *outer = ctx;
    look_at(&(struct place){outer->marks, value, false, false, outer->depth + 1});
}

/* What is data and no schema may hold any member. */
static bool is_data(struct lp_span key)
{
    static const char *const KEYS[] = {"default", "const", "enum", "examples"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (lp_json_string_is(key, lp_span_str(KEYS[i])))
            return true;
    return false;
}

static void take_keyword(void *ctx, struct lp_span key, struct lp_span value)
{
    struct place *place = ctx;
    if (lp_json_string_is(key, LP_SPAN("x-mcp-header")))
        take_mark(place, value);
    else if (lp_json_string_is(key, LP_SPAN("properties")) && lp_span_starts(value, LP_SPAN("{")))
        lp_members(value, take_property, place);
    else if (lp_span_starts(value, LP_SPAN("[")) && !is_data(key))
        lp_elements(value, take_other, place);
    else if (!is_data(key))
        take_other(place, value);
}

static void look_at(const struct place *place)
{
    struct place here = *place;
    if (here.depth < DEPTH_MAX && lp_span_starts(here.schema, LP_SPAN("{")))
        lp_members(here.schema, take_keyword, &here);
}

bool lp_tools_is_followable(struct lp_span tool)
{
    struct marks marks = {.count = 0};
    struct lp_span schema = lp_member(tool, LP_SPAN("inputSchema"));
    if (lp_span_search(tool, LP_SPAN("x-mcp-header")) == tool.len)
        return true; /* nearly all of them */
    look_at(&(struct place){&marks, schema, false, true, 0});
    return !marks.is_bad;
}

/* --- the list without them --- */

struct filter {
    struct lp_client *client;
    struct lp_buf *out;
    bool has_any;
    bool has_dropped;
    int err;
};

static void keep(void *ctx, struct lp_span tool)
{
    struct filter *f = ctx;
    if (!lp_tools_is_followable(tool)) {
        struct lp_span name = lp_member(tool, LP_SPAN("name"));
        f->has_dropped = true;
        lp_client_note(f->client,
            "the tool %.*s is left out: its x-mcp-header cannot be followed; tell its author",
            (int)name.len, name.len ? name.ptr : "");
        return;
    }
    if (!f->err)
        f->err = LP_JOIN(f->out, f->has_any ? LP_SPAN(",") : LP_SPAN(""), tool);
    f->has_any = true;
}

int lp_tools_filter(struct lp_client *client, struct lp_span *result, struct lp_buf *room)
{
    struct lp_span tools = lp_member(*result, LP_SPAN("tools"));
    struct filter f = {.client = client, .out = room};
    if (!lp_span_starts(tools, LP_SPAN("[")))
        return LP_OK;
    size_t before = (size_t)(tools.ptr - result->ptr) + 1;
    f.err = lp_buf_append(room, lp_span(result->ptr, before));
    lp_elements(tools, keep, &f);
    if (!f.has_dropped)
        return LP_OK;
    if (!f.err)
        f.err = lp_buf_append(room, lp_span_from(*result, before + tools.len - 2));
    if (!f.err)
        *result = lp_buf_span(room);
    return f.err;
}
