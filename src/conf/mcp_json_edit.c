/* Changing mcp.json (conf/mcp_json.h): the file belongs to its user and to other programs too, so
 * an edit takes out or puts in the bytes of one member and copies all others. */
#include "conf/mcp_json_priv.h"

/* What the walk over an entry's members remembers for both kinds of edit. */
struct scan {
    struct lp_span key;
    uint32_t count;
    struct lp_member last;
    bool is_found;
    struct lp_member found; /* the last of that name */
};

static int on_scanned(void *ctx, const struct lp_member *member)
{
    struct scan *s = ctx;
    s->count++;
    s->last = *member;
    if (lp_json_string_is(member->key, s->key)) {
        s->is_found = true;
        s->found = *member;
    }
    return LP_OK;
}

static const char *end_of(struct lp_span s)
{
    return s.ptr + s.len;
}

/* Where the copy stands: everything of `text` before `from` was copied or left out. */
struct copy {
    struct lp_span text;
    const char *from;
    char *at;
};

static void put(struct copy *c, struct lp_span bytes)
{
    if (bytes.len)
        memcpy(c->at, bytes.ptr, bytes.len);
    c->at += bytes.len;
}

static void copy_up_to(struct copy *c, const char *to)
{
    put(c, lp_span(c->from, (size_t)(to - c->from)));
    c->from = to;
}

/* --- putting in ------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The blanks before the member, which set it apart from the one before. */
static struct lp_span indent_of(const struct lp_member *member)
{
    const char *begin = member->key.ptr;
    while (is_blank(begin[-1])) /* ends at "{" or "," */
        begin--;
    return lp_span(begin, (size_t)(member->key.ptr - begin));
}

static void insert(struct copy *c, const struct scan *s, struct lp_span entry)
{
    struct lp_span colon = LP_SPAN(": ");
    if (s->count) {
        const char *key_end = end_of(s->last.key);
        struct lp_span indent = indent_of(&s->last);
        colon = lp_span(key_end, (size_t)(s->last.value.ptr - key_end));
        /* Of one member in one line nobody knows how a second would be set apart. */
        if (s->count == 1 && !indent.len && colon.len > 1)
            indent = LP_SPAN(" ");
        copy_up_to(c, end_of(s->last.value));
        put(c, LP_SPAN(","));
        put(c, indent);
    } else {
        copy_up_to(c, entry.ptr + 1);
    }
    put(c, LP_SPAN("\""));
    put(c, s->key);
    put(c, LP_SPAN("\""));
    put(c, colon);
    put(c, LP_SPAN("true"));
}

/* --- taking out ------------------------------------------------------------------------------- */

/* A member goes with the comma before it; the first ones go with the comma behind. */
struct removal {
    struct copy *copy;
    struct lp_span key;
    bool has_kept;
    const char *previous_end;
    const char *pending; /* end of a removed member that nothing kept comes before */
};

static int on_kept_or_not(void *ctx, const struct lp_member *member)
{
    struct removal *r = ctx;
    bool is_removed = lp_json_string_is(member->key, r->key);
    if (r->pending)
        r->copy->from = member->key.ptr;
    r->pending = NULL;
    if (is_removed && r->has_kept) {
        copy_up_to(r->copy, r->previous_end);
        r->copy->from = end_of(member->value);
    } else if (is_removed) {
        copy_up_to(r->copy, member->key.ptr);
        r->pending = end_of(member->value);
    } else {
        r->has_kept = true;
    }
    r->previous_end = end_of(member->value);
    return LP_OK;
}

static int remove_all(struct copy *c, struct lp_span key, struct lp_span entry)
{
    struct removal r = {.copy = c, .key = key};
    int err = lp_members_walk(entry, on_kept_or_not, &r);
    if (r.pending)
        c->from = r.pending;
    return err;
}

/* ---------------------------------------------------------------------------------------------- */

int lp_mcp_json_set_bool(
    struct lp_span text, struct lp_span server, struct lp_span key, bool value, struct lp_buf *out)
{
    enum { ADDED_MAX = 16 }; /* besides the key and blanks that are in the text */
    struct lp_span entry;
    struct scan scan = {.key = key};
    struct copy copy = {.text = text, .from = text.ptr};
    enum lp_mcp_json_type type;
    int err = lp_mcp_json_entry(text, server, &entry);
    if (!err && !lp_mcp_json_entry_type(entry, &type) && type == LP_MCP_JSON_STDIO)
        err = LP_EUNSUPPORTED;
    if (!err)
        err = lp_members_walk(entry, on_scanned, &scan);
    if (!err)
        err = lp_buf_reserve(out, 2 * text.len + key.len + ADDED_MAX, &copy.at);
    if (err)
        return err;
    const char *begin = copy.at;
    if (!value) {
        err = remove_all(&copy, key, entry);
        LP_ASSERT(!err); /* it was walked a moment ago */
    } else if (scan.is_found) {
        copy_up_to(&copy, scan.found.value.ptr);
        put(&copy, LP_SPAN("true"));
        copy.from = end_of(scan.found.value);
    } else {
        insert(&copy, &scan, entry);
    }
    copy_up_to(&copy, end_of(text));
    lp_buf_commit(out, (size_t)(copy.at - begin));
    return LP_OK;
}

/* --- a request to change settings ------------------------------------------------------------- */

struct settings {
    struct lp_mcp_json_settings read;
    const char **ret_sentence;
};

static int read_flag(
    struct settings *s, const struct lp_member *member, bool *ret, const char *wrong)
{
    *s->ret_sentence = wrong;
    *ret = member->kind == LP_JSON_TRUE;
    return *ret || member->kind == LP_JSON_FALSE ? LP_OK : LP_ERANGE;
}

static int on_setting(void *ctx, const struct lp_member *member)
{
    struct settings *s = ctx;
    if (lp_json_string_is(member->key, LP_SPAN("cookieJar"))) {
        s->read.has_cookie_jar = true;
        return read_flag(s, member, &s->read.cookie_jar, "settings.cookieJar must be a boolean");
    }
    if (lp_json_string_is(member->key, LP_SPAN("suppressNotificationStream"))) {
        s->read.has_suppress_notification_stream = true;
        return read_flag(s, member, &s->read.suppress_notification_stream,
            "settings.suppressNotificationStream must be a boolean");
    }
    return LP_OK;
}

int lp_mcp_json_read_settings(
    struct lp_span json, struct lp_mcp_json_settings *ret, const char **ret_sentence)
{
    const char *sentence = NULL;
    struct lp_member none;
    struct settings s = {.ret_sentence = &sentence};
    /* First whether it is an object at all: a member's mistake must not hide that. */
    int err = lp_members_find(json, LP_SPAN(""), &none);
    if (err && err != LP_ENOT_FOUND) {
        *ret_sentence = "settings must be an object";
        return LP_ESYNTAX;
    }
    err = lp_members_walk(json, on_setting, &s);
    if (err) {
        *ret_sentence = sentence;
        return err;
    }
    *ret = s.read;
    return LP_OK;
}
