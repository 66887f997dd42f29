/* Reading mcp.json (conf/mcp_json.h): one entry becomes a server that the client commands can use.
 *
 * Strict where a mistake would send a request to the wrong place or without its credential, silent
 * about everything else in the file. A header's value is never told: it may be a secret. */
#include <stdio.h>

#include "conf/mcp_json_priv.h"
#include "wire/field.h"

enum { NAMES_TOLD_MAX = 20, EXPANDED_MAX = 65536, HEADERS_MAX = 64 };

/* One entry being read. */
struct reader {
    const struct lp_mcp_json_source *source;
    struct lp_span name;
    struct lp_span entry;
};

/* Without room for the sentence the error alone has to do. */
static int refuse(const struct reader *r, const char *where, const char *what)
{
    lp_buf_clear(r->source->problem);
    (void)!lp_buf_printf(
        r->source->problem, "mcpServers.%.*s%s%s", (int)r->name.len, r->name.ptr, where, what);
    return LP_ERANGE;
}

/* --- ${NAME} ---------------------------------------------------------------------------------- */

static bool is_name(struct lp_span s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

/* What stands for the text between "${" and "}". */
static int look_up(
    const struct reader *r, const char *where, struct lp_span inside, struct lp_span *ret)
{
    const struct lp_span ENV = LP_SPAN("env:");
    size_t at = lp_span_search(inside, LP_SPAN(":-"));
    struct lp_span name = lp_span(inside.ptr, at);
    if (lp_span_starts(name, ENV))
        name = lp_span_from(name, ENV.len);
    if (!is_name(name))
        return refuse(r, where,
            " holds a ${...} that is no environment variable; write ${NAME} or ${NAME:-default}");
    if (r->source->lookup(r->source->lookup_ctx, name, ret))
        return LP_OK;
    if (at < inside.len) {
        *ret = lp_span_from(inside, at + 2);
        return LP_OK;
    }
    char what[160];
    (void)snprintf(what, sizeof what, " wants the environment variable %.*s, which is not set",
        (int)(name.len < 80 ? name.len : 80), name.ptr);
    return refuse(r, where, what);
}

static int expand_into(
    const struct reader *r, const char *where, struct lp_span text, struct lp_buf *out)
{
    while (text.len) {
        size_t at = lp_span_search(text, LP_SPAN("${"));
        size_t end = at + lp_span_find(lp_span_from(text, at), '}');
        if (end >= text.len) /* none, or one without its end */
            return lp_buf_append(out, text);
        struct lp_span value;
        int err = lp_buf_append(out, lp_span(text.ptr, at));
        if (!err)
            err = look_up(r, where, lp_span(text.ptr + at + 2, end - at - 2), &value);
        if (!err)
            err = lp_buf_append(out, value);
        if (err)
            return err;
        text = lp_span_from(text, end + 1);
    }
    return LP_OK;
}

static int expand(
    const struct reader *r, const char *where, struct lp_span text, struct lp_span *ret)
{
    if (!r->source->lookup || lp_span_search(text, LP_SPAN("${")) == text.len) {
        *ret = text;
        return LP_OK;
    }
    struct lp_buf out;
    lp_buf_init(&out, EXPANDED_MAX);
    int err = expand_into(r, where, text, &out);
    if (err == LP_ELIMIT)
        err = refuse(r, where, " is too long once its variables are filled in");
    if (!err)
        err = lp_arena_dup(r->source->arena, lp_buf_span(&out), ret);
    lp_buf_release(&out);
    return err;
}

/* --- members ---------------------------------------------------------------------------------- */

static int decode(const struct reader *r, struct lp_span token, struct lp_span *ret)
{
    char *room = lp_arena_alloc(r->source->arena, token.len);
    size_t len = 0;
    if (!room)
        return LP_ENOMEM;
    int err = lp_json_unescape(token, room, token.len, &len);
    LP_ASSERT(!err); /* a decoded string is never longer than its token */
    *ret = lp_span(room, len);
    return LP_OK;
}

static int read_string(
    const struct reader *r, const char *where, const struct lp_member *member, struct lp_span *ret)
{
    struct lp_span text;
    if (member->kind != LP_JSON_STRING)
        return refuse(r, where, " is not a string");
    int err = decode(r, member->value, &text);
    return err ? err : expand(r, where, text, ret);
}

/* The string member `key`, which must be there. */
static int read_needed(const struct reader *r, const char *key, struct lp_span *ret)
{
    struct lp_member member;
    char where[32];
    (void)snprintf(where, sizeof where, ".%s", key);
    if (lp_members_find(r->entry, lp_span_str(key), &member))
        return refuse(r, where, " is missing");
    int err = read_string(r, where, &member, ret);
    if (!err && !ret->len)
        return refuse(r, where, " is empty");
    return err;
}

/* [C8]: anything but an explicit true is as good as not there. */
static bool read_bool(const struct reader *r, const char *key)
{
    struct lp_member member;
    return !lp_members_find(r->entry, lp_span_str(key), &member) && member.kind == LP_JSON_TRUE;
}

struct headers {
    const struct reader *reader;
    struct lp_mcp_json_header *all;
    uint32_t count;
};

static int on_header(void *ctx, const struct lp_member *member)
{
    struct headers *h = ctx;
    const struct reader *r = h->reader;
    struct lp_mcp_json_header header;
    char where[96];
    if (h->count == HEADERS_MAX)
        return refuse(r, ".headers", " has more than 64 members");
    int err = decode(r, member->key, &header.name);
    if (err)
        return err;
    if (!lp_field_is_token(header.name))
        return refuse(r, ".headers", " has a member whose name cannot be that of a header");
    (void)snprintf(where, sizeof where, ".headers.%.*s",
        (int)(header.name.len < 64 ? header.name.len : 64), header.name.ptr);
    err = read_string(r, where, member, &header.value);
    if (err)
        return err;
    if (!lp_field_is_value(header.value))
        return refuse(r, where, " has a value that no header can have (a line end or a control)");
    header.value = lp_span_trim(header.value);
    h->all[h->count++] = header;
    return LP_OK;
}

static int read_headers(const struct reader *r, struct lp_mcp_json_server *server)
{
    struct lp_member member;
    struct headers h = {.reader = r};
    if (lp_members_find(r->entry, LP_SPAN("headers"), &member))
        return LP_OK;
    if (member.kind != LP_JSON_OBJECT_BEGIN)
        return refuse(r, ".headers", " is not an object of strings");
    h.all = lp_arena_alloc(r->source->arena, HEADERS_MAX * sizeof *h.all);
    if (!h.all)
        return LP_ENOMEM;
    int err = lp_members_walk(member.value, on_header, &h);
    server->headers = h.all;
    server->header_count = h.count;
    return err;
}

static int read_entry(const struct reader *r, struct lp_mcp_json_server *server)
{
    int err = lp_mcp_json_entry_type(r->entry, &server->type);
    if (err == LP_ENOT_FOUND)
        return refuse(r, "", " has neither a url nor a command");
    if (err)
        return refuse(r, ".type", " is not known; use streamable-http, sse or stdio");
    if (server->type == LP_MCP_JSON_STDIO)
        return read_needed(r, "command", &server->command);
    err = read_needed(r, "url", &server->url);
    if (!err)
        err = read_headers(r, server);
    server->cookie_jar = read_bool(r, "cookieJar");
    server->suppress_notification_stream = read_bool(r, "suppressNotificationStream");
    return err;
}

/* --- entries ---------------------------------------------------------------------------------- */

struct names {
    struct lp_buf *out;
    uint32_t count;
};

static int on_name(void *ctx, const struct lp_member *member)
{
    struct names *n = ctx;
    if (n->count++ >= NAMES_TOLD_MAX)
        return LP_OK;
    return lp_buf_printf(
        n->out, "%s%.*s", n->count > 1 ? ", " : "", (int)member->key.len, member->key.ptr);
}

/* Without room for all of it the sentence is shorter; it is still one. */
static int tell_missing(const struct reader *r)
{
    struct lp_member servers;
    struct names names = {.out = r->source->problem};
    if (lp_members_find(r->source->text, LP_SPAN("mcpServers"), &servers))
        (void)!lp_buf_append(names.out, LP_SPAN("there is no mcpServers in it"));
    else if (!lp_buf_printf(names.out,
                 "there is no server \"%.*s\" in it; there is: ", (int)r->name.len, r->name.ptr) &&
        !lp_members_walk(servers.value, on_name, &names) && !names.count)
        (void)!lp_buf_append(names.out, LP_SPAN("none"));
    return LP_ENOT_FOUND;
}

int lp_mcp_json_find(
    const struct lp_mcp_json_source *source, struct lp_span name, struct lp_mcp_json_server *ret)
{
    struct reader r = {.source = source, .name = name};
    struct lp_mcp_json_server server = {0};
    lp_buf_clear(source->problem);
    int err = lp_mcp_json_entry(source->text, name, &r.entry);
    if (err == LP_ENOT_FOUND)
        return tell_missing(&r);
    if (err) {
        (void)!lp_buf_append(source->problem,
            LP_SPAN("it is not JSON of the form {\"mcpServers\": {\"NAME\": {...}}}"));
        return err;
    }
    err = read_entry(&r, &server);
    if (!err)
        *ret = server;
    return err;
}
