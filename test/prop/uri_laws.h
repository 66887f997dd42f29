/* Laws that hold for any bytes given to the URI reader and to base64. Used by property test and
 * fuzz target. */
#ifndef LP_TEST_URI_LAWS_H
#define LP_TEST_URI_LAWS_H

#include <stdlib.h>

#include "wire/base64url.h"
#include "wire/uri.h"

static inline void put(struct lp_buf *out, struct lp_span s)
{
    int err = lp_buf_append(out, s);
    LP_ASSERT(!err);
}

/* RFC 3986 5.3: the parts put together again. */
static inline void compose(struct lp_buf *out, const struct lp_uri *u)
{
    put(out, u->scheme);
    put(out, u->scheme.ptr ? LP_SPAN(":") : u->scheme);
    put(out, u->has_authority ? LP_SPAN("//") : LP_SPAN(""));
    put(out, u->userinfo);
    put(out, u->userinfo.ptr ? LP_SPAN("@") : u->userinfo);
    put(out, u->host_is_ipv6 ? LP_SPAN("[") : LP_SPAN(""));
    put(out, u->host);
    put(out, u->host_is_ipv6 ? LP_SPAN("]") : LP_SPAN(""));
    put(out, u->port.ptr ? LP_SPAN(":") : u->port);
    put(out, u->port);
    put(out, u->path);
    put(out, u->query.ptr ? LP_SPAN("?") : u->query);
    put(out, u->query);
    put(out, u->fragment.ptr ? LP_SPAN("#") : u->fragment);
    put(out, u->fragment);
}

static inline void check_composed(struct lp_span text, const struct lp_uri *u)
{
    struct lp_buf again;
    lp_buf_init(&again, text.len + 10);
    compose(&again, u);
    LP_ASSERT(lp_span_eq(lp_buf_span(&again), text));
    LP_ASSERT(u->has_authority || (!u->userinfo.ptr && !u->host.ptr && !u->port.ptr));
    LP_ASSERT(u->path.ptr && (!u->has_authority || !u->path.len || u->path.ptr[0] == '/'));
    LP_ASSERT(lp_uri_same_origin(u, u) == u->has_authority);
    lp_buf_release(&again);
}

static inline bool has_dot_segment(struct lp_span path)
{
    while (path.ptr) {
        struct lp_span segment = lp_span_split(path, '/', &path);
        if (lp_span_eq(segment, LP_SPAN(".")) || lp_span_eq(segment, LP_SPAN("..")) ||
            lp_span_ieq(segment, LP_SPAN("%2e")) || lp_span_ieq(segment, LP_SPAN("%2e%2e")) ||
            lp_span_ieq(segment, LP_SPAN(".%2e")) || lp_span_ieq(segment, LP_SPAN("%2e.")))
            return true;
    }
    return false;
}

/* A resolved reference is an absolute URI without dots and fragment, and resolves to itself. Where
 * the reference has no authority of its own the origin is the base's. */
static inline void check_resolved(struct lp_span base_text, const struct lp_uri *ref)
{
    struct lp_uri base, target;
    struct lp_buf out, again;
    lp_buf_init(&out, 20000);
    lp_buf_init(&again, 20000);
    int err = lp_uri_parse(base_text, &base);
    LP_ASSERT(!err);
    put(&out, LP_SPAN("x"));
    err = lp_uri_resolve(&base, ref, &out);
    struct lp_span result = lp_span_from(lp_buf_span(&out), 1);
    LP_ASSERT(err == 0 || (err == LP_ESYNTAX && result.len == 0));
    if (!err && lp_uri_parse(result, &target) != LP_ETOO_LONG) {
        err = lp_uri_parse(result, &target);
        LP_ASSERT(!err && target.scheme.ptr && !target.fragment.ptr);
        LP_ASSERT(!has_dot_segment(target.path));
        LP_ASSERT(ref->scheme.ptr || ref->has_authority || lp_uri_same_origin(&base, &target));
        err = lp_uri_resolve(&base, &target, &again);
        LP_ASSERT(!err && lp_span_eq(lp_buf_span(&again), result));
    }
    lp_buf_release(&out);
    lp_buf_release(&again);
}

/* Each member of a query is found, and the first of its name. */
static inline void check_query(struct lp_span query)
{
    struct lp_span rest = query;
    while (rest.len) {
        struct lp_span value, found;
        struct lp_span member = lp_span_split(rest, '&', &rest);
        struct lp_span name = lp_span_split(member, '=', &value);
        if (!member.len)
            continue;
        bool is_there = lp_uri_query_get(query, name, &found);
        LP_ASSERT(is_there && found.ptr && found.ptr <= member.ptr + member.len);
        LP_ASSERT(found.ptr < member.ptr || lp_span_eq(found, value));
    }
}

static inline void check_reference(struct lp_span text)
{
    struct lp_uri u;
    int err = lp_uri_parse(text, &u);
    LP_ASSERT((err == LP_ETOO_LONG) == (text.len > 8192));
    LP_ASSERT(err == 0 || err == LP_ETOO_LONG || err == LP_ESYNTAX);
    if (err)
        return;
    check_composed(text, &u);
    check_query(u.query);
    check_resolved(LP_SPAN("http://a/b/c/d;p?q"), &u);
    check_resolved(LP_SPAN("https://[::1]:8443"), &u);
    struct lp_buf out;
    lp_buf_init(&out, 20000);
    err = lp_uri_resolve(&u, &u, &out);
    LP_ASSERT(u.scheme.ptr || err == LP_ESYNTAX);
    lp_buf_release(&out);
}

static inline void check_target(struct lp_span text)
{
    struct lp_uri u, whole;
    int err = lp_uri_parse_target(text, &u);
    LP_ASSERT(err <= 0);
    if (err)
        return;
    LP_ASSERT(!u.userinfo.ptr && !u.fragment.ptr);
    if (u.has_authority)
        check_composed(text, &u);
    else if (text.ptr[0] == '*')
        LP_ASSERT(text.len == 1 && u.path.len == 0 && !u.query.ptr);
    else
        LP_ASSERT(!u.scheme.ptr && u.path.ptr == text.ptr && u.path.ptr[0] == '/' &&
            u.path.len + u.query.len + (u.query.ptr ? 1 : 0) == text.len);
    LP_ASSERT(!u.has_authority || lp_uri_parse(text, &whole) == 0);
}

/* An authority is accepted exactly where it is one in a URI without user. */
static inline void check_authority(struct lp_span text)
{
    struct lp_uri u, whole;
    struct lp_buf uri;
    if (text.len > 8000)
        return;
    int err = lp_uri_parse_authority(text, &u);
    lp_buf_init(&uri, text.len + 7);
    put(&uri, LP_SPAN("http://"));
    put(&uri, text);
    bool is_part = lp_span_find(text, '/') == text.len && lp_span_find(text, '?') == text.len &&
        lp_span_find(text, '#') == text.len && lp_span_find(text, '@') == text.len;
    int whole_err = lp_uri_parse(lp_buf_span(&uri), &whole);
    LP_ASSERT((err == 0) == (is_part && whole_err == 0));
    if (!err) {
        LP_ASSERT(u.has_authority && lp_span_eq(u.host, whole.host) && !u.scheme.ptr);
        LP_ASSERT(u.host_is_ipv6 == whole.host_is_ipv6 && lp_span_eq(u.port, whole.port));
        LP_ASSERT(u.port.len == 0 || lp_uri_port(&u) == lp_uri_port(&whole));
    }
    lp_buf_release(&uri);
}

/* --- base64 ----------------------------------------------------------------------------------- */

struct base64 {
    int (*decode)(struct lp_span text, char *room, size_t room_len, size_t *ret_len);
    size_t (*encode)(struct lp_span bytes, char *room);
};

/* decode(encode(x)) = x for any bytes, encode(decode(x)) = x for any text that is accepted. */
static inline void check_base64(struct lp_span bytes, const struct base64 *base64)
{
    size_t len = 0, again = 0;
    size_t room_len = bytes.len / 3 * 4 + 4;
    char *text = malloc(room_len);
    char *room = malloc(bytes.len + 1);
    LP_ASSERT(text && room);
    size_t text_len = base64->encode(bytes, text);
    LP_ASSERT(text_len <= room_len);
    int err = base64->decode(lp_span(text, text_len), room, bytes.len, &len);
    LP_ASSERT(!err && lp_span_eq(lp_span(room, len), bytes));
    err = base64->decode(bytes, room, bytes.len + 1, &len);
    LP_ASSERT(err == 0 || err == LP_ESYNTAX);
    if (!err) {
        again = base64->encode(lp_span(room, len), text);
        LP_ASSERT(lp_span_eq(lp_span(text, again), bytes));
    }
    free(text);
    free(room);
}

static inline void check_uri_laws(struct lp_span text)
{
    const struct base64 url = {lp_base64url_decode, lp_base64url_encode};
    const struct base64 std = {lp_base64_decode, lp_base64_encode};
    check_reference(text);
    check_target(text);
    check_authority(text);
    check_base64(text, &url);
    check_base64(text, &std);
}

#endif
