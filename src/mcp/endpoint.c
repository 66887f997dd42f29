/* The old SSE endpoint event (mcp/endpoint.h; wire document 3, requirements [G4]).
 *
 * What the upstream announced is resolved against the address of its stream, must stay on that
 * origin (or on the one the client sees), and is cut in two: the session key, a bearer secret, goes
 * into the ticket with the path; other query members stay where the client can see them. The path
 * is never edited: the client's address is made of the client's own path, so a mount prefix can
 * neither be lost nor doubled (cases SSE-02). Sealing, and that only the first event counts, is
 * gate's part. */
#include "mcp/endpoint.h"

#include "mcp/ticket.h"

enum { RESOLVED_MAX = 2 * 8192 }; /* two references of the greatest length that wire/uri takes */

#define TOKEN_MEMBER "lp"

/* --- query members --------------------------------------------------------------------------- */

/* The next non-empty member of a query, the rest in *query; false at the end. */
static bool next_member(struct lp_span *query, struct lp_span *ret_member)
{
    while (query->len) {
        *ret_member = lp_span_split(*query, '&', query);
        if (ret_member->len)
            return true;
    }
    return false;
}

static struct lp_span member_name(struct lp_span member)
{
    return lp_span(member.ptr, lp_span_find(member, '='));
}

static bool is_token_member(struct lp_span member)
{
    return lp_span_eq(member_name(member), LP_SPAN(TOKEN_MEMBER));
}

/* sessionId, session_id, Session-ID: one name in the spellings of several SDKs. */
static bool names_session(struct lp_span member)
{
    static const struct lp_span WORDS[] = {
        {"sessionid", 9}, {"session", 7}, {"sid", 3}, {"id", 2}, {"token", 5}};
    enum { WORD_MAX = 9 };
    struct lp_span name = member_name(member);
    char folded[WORD_MAX];
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '-' || name.ptr[i] == '_')
            continue;
        if (len == sizeof folded)
            return false;
        folded[len++] = name.ptr[i];
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (lp_span_ieq(lp_span(folded, len), WORDS[i]))
            return true;
    return false;
}

static bool any_names_session(struct lp_span query)
{
    struct lp_span member;
    while (next_member(&query, &member))
        if (names_session(member))
            return true;
    return false;
}

/* Appends `separator` (NULL: none) and the member. */
static int append_member(struct lp_buf *out, const char *separator, struct lp_span member)
{
    int err = lp_buf_append(out, lp_span_str(separator));
    return err ? err : lp_buf_append(out, member);
}

/* --- from the upstream's announcement -------------------------------------------------------- */

static int check_origin(
    const struct lp_uri *target, const struct lp_uri *stream, const struct lp_uri *visible)
{
    if (target->userinfo.ptr)
        return LP_EREFUSED;
    if (lp_uri_same_origin(target, stream))
        return LP_OK;
    return visible && lp_uri_same_origin(target, visible) ? LP_OK : LP_EREFUSED;
}

/* The members of `query`, the session key to `sealed`, the others to `kept`. A member of the name
 * that we use ourselves must not be seen by the client twice, so it is sealed too. */
static int split_query(struct lp_span query, struct lp_buf *sealed, struct lp_buf *kept)
{
    bool has_key = any_names_session(query);
    const char *before_key = "?";
    struct lp_span member;
    while (next_member(&query, &member)) {
        bool is_key = !has_key || names_session(member) || is_token_member(member);
        int err = is_key ? append_member(sealed, before_key, member)
                         : append_member(kept, kept->len ? "&" : NULL, member);
        if (err)
            return err;
        if (is_key)
            before_key = "&";
    }
    return LP_OK;
}

static int split_target(const struct lp_uri *target, struct lp_buf *sealed, struct lp_buf *kept)
{
    size_t sealed_before = sealed->len;
    size_t kept_before = kept->len;
    int err = lp_buf_append(sealed, target->path.len ? target->path : LP_SPAN("/"));
    if (!err)
        err = split_query(target->query, sealed, kept);
    if (!err && sealed->len - sealed_before > LP_TICKET_UPSTREAM_ID_MAX)
        err = LP_ETOO_LONG;
    if (err) {
        sealed->len = sealed_before;
        kept->len = kept_before;
    }
    return err;
}

int lp_endpoint_split(struct lp_span data, const struct lp_uri *stream,
    const struct lp_uri *visible, struct lp_buf *sealed, struct lp_buf *kept)
{
    struct lp_uri ref;
    struct lp_uri target;
    struct lp_buf absolute;
    lp_buf_init(&absolute, RESOLVED_MAX);
    int err = lp_uri_parse(lp_span_trim(data), &ref);
    if (!err)
        err = lp_uri_resolve(stream, &ref, &absolute);
    if (!err)
        err = lp_uri_parse(lp_buf_span(&absolute), &target);
    if (!err)
        err = check_origin(&target, stream, visible);
    if (!err)
        err = split_target(&target, sealed, kept);
    lp_buf_release(&absolute);
    return err;
}

/* --- towards the client, and back ------------------------------------------------------------ */

int lp_endpoint_visible(
    struct lp_buf *out, struct lp_span sse_path, struct lp_span token, struct lp_span kept)
{
    size_t before = out->len;
    int err = lp_buf_append(out, sse_path);
    if (!err)
        err = lp_buf_append(out, LP_SPAN("?" TOKEN_MEMBER "="));
    if (!err)
        err = lp_buf_append(out, token);
    if (!err && kept.len)
        err = append_member(out, "&", kept);
    if (err)
        out->len = before;
    return err;
}

static int find_token(struct lp_span query, struct lp_span *ret_token)
{
    struct lp_span member;
    struct lp_span token = {NULL, 0};
    bool found = false;
    while (next_member(&query, &member)) {
        if (!is_token_member(member))
            continue;
        if (found)
            return LP_EAMBIGUOUS;
        found = true;
        (void)lp_span_split(member, '=', &token);
    }
    if (!found)
        return LP_ENOT_FOUND;
    *ret_token = token;
    return LP_OK;
}

int lp_endpoint_token(struct lp_span query, struct lp_span *ret_token, struct lp_buf *rest)
{
    size_t before = rest->len;
    struct lp_span token;
    struct lp_span member;
    int err = find_token(query, &token);
    while (!err && next_member(&query, &member))
        if (!is_token_member(member))
            err = append_member(rest, rest->len ? "&" : NULL, member);
    if (err)
        rest->len = before;
    else
        *ret_token = token;
    return err;
}

/* --- towards the upstream -------------------------------------------------------------------- */

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

/* The next byte of a member's name as servers may read it: decoded, and without case; `a[]` and
 * `a[b]` are the name `a` to those that make arrays of them. -1 at the end. */
static int next_name_byte(struct lp_span *name)
{
    if (!name->len)
        return -1;
    unsigned char byte = (unsigned char)name->ptr[0];
    bool is_coded = byte == '%' && name->len >= 3;
    if (is_coded)
        byte = (unsigned char)(hex_value(name->ptr[1]) << 4 | hex_value(name->ptr[2]));
    *name = lp_span_from(*name, is_coded ? 3 : 1);
    if (byte == '[')
        return -1;
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

static bool is_same_name(struct lp_span a, struct lp_span b)
{
    int byte;
    do {
        byte = next_name_byte(&a);
        if (byte != next_name_byte(&b))
            return false;
    } while (byte >= 0);
    return true;
}

static bool has_member(struct lp_span query, struct lp_span like)
{
    struct lp_span member;
    while (next_member(&query, &member))
        if (is_same_name(member_name(member), member_name(like)))
            return true;
    return false;
}

int lp_endpoint_target(struct lp_buf *out, struct lp_span sealed, struct lp_span rest)
{
    size_t before = out->len;
    struct lp_span key;
    struct lp_span member;
    (void)lp_span_split(sealed, '?', &key);
    const char *separator = key.ptr ? "&" : "?";
    int err = lp_buf_append(out, sealed);
    while (!err && next_member(&rest, &member)) {
        if (has_member(key, member))
            continue;
        err = append_member(out, separator, member);
        separator = "&";
    }
    if (err)
        out->len = before;
    return err;
}
