/* URI references (RFC 3986) and request targets (RFC 9112 section 3.2).
 *
 * It cuts a reference into its parts, compares origins and resolves. It is strict, since what two
 * readers take for two different hosts is how credentials go astray: characters outside the
 * grammar ("\" above all), a second "@", ports and addresses that are none, and an authority
 * without host are errors. A query names no host, and real clients leave in it what the grammar
 * wants encoded: it is read as the WHATWG URL standard writes it. Nothing is decoded, looked up or
 * changed in case. */
#include "wire/uri.h"

enum { URI_BYTES_MAX = 8192, PORT_MAX = 65535 };

/* --- characters ------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_unreserved(char c)
{
    return is_alpha(c) || is_digit(c) || c == '.' || c == '-' || c == '_' || c == '~';
}

/* Unreserved characters, sub-delimiters and whole percent-encodings (RFC 3986 2.1 to 2.3), and
 * those in `extra`: only that separates the rules of the parts. */
static bool is_part(struct lp_span s, struct lp_span extra)
{
    const struct lp_span marks = LP_SPAN("!$&'()*+,;=");
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (is_unreserved(c))
            continue;
        if (c == '%') {
            if (s.len - i < 3 || !is_hex(s.ptr[i + 1]) || !is_hex(s.ptr[i + 2]))
                return false;
            i += 2;
        } else if (lp_span_find(marks, c) == marks.len && lp_span_find(extra, c) == extra.len) {
            return false;
        }
    }
    return true;
}

static bool is_path(struct lp_span s)
{
    return is_part(s, LP_SPAN("/:@"));
}

static bool is_fragment(struct lp_span s)
{
    return is_part(s, LP_SPAN("/:@?"));
}

static bool is_query(struct lp_span s)
{
    return is_part(s, LP_SPAN("/:@?[]{}|^`\""));
}

static bool is_scheme(struct lp_span s)
{
    const struct lp_span marks = LP_SPAN("+-.");
    if (s.len == 0 || !is_alpha(s.ptr[0]))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_alpha(s.ptr[i]) && !is_digit(s.ptr[i]) &&
            lp_span_find(marks, s.ptr[i]) == marks.len)
            return false;
    return true;
}

/* --- hosts ------------------------------------------------------------------------------------ */

/* Four decimal numbers up to 255 without leading zeros. */
static bool is_ipv4(struct lp_span s)
{
    for (int i = 0; i < 4; i++) {
        uint64_t value;
        struct lp_span rest;
        struct lp_span number = lp_span_split(s, '.', &rest);
        if (!lp_span_to_u64(number, &value) || value > 255)
            return false;
        if (number.len > 1 && number.ptr[0] == '0')
            return false;
        if (!rest.ptr != (i == 3))
            return false;
        s = rest;
    }
    return true;
}

static size_t hex_run(struct lp_span s)
{
    size_t n = 0;
    while (n < s.len && is_hex(s.ptr[n]))
        n++;
    return n;
}

/* Takes "16 bits" or, as the last thing, an IPv4 address from the front: how many groups of 16 bits
 * it is worth; 0 when there is neither. */
static unsigned take_group(struct lp_span *s)
{
    size_t n = hex_run(*s);
    if (n < s->len && s->ptr[n] == '.') {
        unsigned groups = is_ipv4(*s) ? 2 : 0;
        *s = lp_span_from(*s, s->len);
        return groups;
    }
    *s = lp_span_from(*s, n);
    return n >= 1 && n <= 4 ? 1 : 0;
}

/* IPv6address of RFC 3986 3.2.2. No zone (RFC 6874): it means nothing to another machine. */
static bool is_ipv6(struct lp_span s)
{
    unsigned total = 0;
    bool has_gap = lp_span_starts(s, LP_SPAN("::"));
    if (has_gap)
        s = lp_span_from(s, 2);
    while (s.len) {
        unsigned groups = take_group(&s);
        total += groups;
        if (groups == 0 || total > 8)
            return false;
        if (s.len == 0)
            break;
        if (s.ptr[0] != ':' || s.len == 1)
            return false;
        s = lp_span_from(s, 1);
        if (s.ptr[0] != ':')
            continue;
        if (has_gap)
            return false;
        has_gap = true;
        s = lp_span_from(s, 1);
    }
    return has_gap ? total < 8 : total == 8;
}

static bool is_port(struct lp_span s)
{
    uint64_t value;
    return s.len == 0 || (lp_span_to_u64(s, &value) && value <= PORT_MAX);
}

/* "host", "host:port", "[v6]", "[v6]:port"; the host may be empty here. */
static int parse_host(struct lp_span s, struct lp_uri *uri)
{
    uri->has_authority = true;
    if (s.len && s.ptr[0] == '[') {
        uri->host_is_ipv6 = true;
        uri->host = lp_span_split(lp_span_from(s, 1), ']', &s);
        if (!s.ptr || (s.len && s.ptr[0] != ':') || !is_ipv6(uri->host))
            return LP_ESYNTAX;
        if (s.len)
            uri->port = lp_span_from(s, 1);
    } else {
        uri->host = lp_span_split(s, ':', &uri->port);
        if (!is_part(uri->host, LP_SPAN("")))
            return LP_ESYNTAX;
    }
    return is_port(uri->port) ? LP_OK : LP_ESYNTAX;
}

static int parse_authority(struct lp_span s, struct lp_uri *uri)
{
    size_t at = lp_span_find(s, '@');
    if (at < s.len) {
        uri->userinfo = lp_span(s.ptr, at);
        s = lp_span_from(s, at + 1);
        if (!is_part(uri->userinfo, LP_SPAN(":")))
            return LP_ESYNTAX;
    }
    return parse_host(s, uri);
}

/* --- references ------------------------------------------------------------------------------- */

static uint16_t default_port(struct lp_span scheme)
{
    if (lp_span_ieq(scheme, LP_SPAN("http")))
        return 80;
    return lp_span_ieq(scheme, LP_SPAN("https")) ? 443 : 0;
}

/* An empty host has no meaning in http and https (RFC 9110 4.2), and a relative reference is one to
 * these; browsers read the host of "///b.example/" out of the path. */
static bool lacks_host(const struct lp_uri *uri)
{
    return uri->has_authority && uri->host.len == 0 &&
        (!uri->scheme.ptr || default_port(uri->scheme));
}

/* Cuts the scheme off. A colon before any slash that ends no scheme is an error, also by RFC 3986
 * 4.2: a relative path has no colon in its first segment. */
static int take_scheme(struct lp_span *text, struct lp_uri *uri)
{
    size_t colon = lp_span_find(*text, ':');
    if (colon == text->len || lp_span_find(*text, '/') < colon)
        return LP_OK;
    uri->scheme = lp_span(text->ptr, colon);
    *text = lp_span_from(*text, colon + 1);
    return is_scheme(uri->scheme) ? LP_OK : LP_ESYNTAX;
}

static int take_authority(struct lp_span *text, struct lp_uri *uri)
{
    if (!lp_span_starts(*text, LP_SPAN("//")))
        return LP_OK;
    struct lp_span rest = lp_span_from(*text, 2);
    size_t slash = lp_span_find(rest, '/');
    *text = lp_span_from(rest, slash);
    return parse_authority(lp_span(rest.ptr, slash), uri);
}

int lp_uri_parse(struct lp_span text, struct lp_uri *ret)
{
    struct lp_uri uri = {.has_authority = false};
    if (text.len > URI_BYTES_MAX)
        return LP_ETOO_LONG;
    if (!text.ptr)
        text = LP_SPAN("");
    text = lp_span_split(text, '#', &uri.fragment);
    text = lp_span_split(text, '?', &uri.query);
    int err = take_scheme(&text, &uri);
    if (!err)
        err = take_authority(&text, &uri);
    if (err)
        return err;
    uri.path = text;
    if (lacks_host(&uri) || !is_path(uri.path) || !is_query(uri.query) ||
        !is_fragment(uri.fragment))
        return LP_ESYNTAX;
    *ret = uri;
    return LP_OK;
}

int lp_uri_parse_authority(struct lp_span text, struct lp_uri *ret)
{
    struct lp_uri uri = {.path = LP_SPAN("")};
    if (text.len > URI_BYTES_MAX)
        return LP_ETOO_LONG;
    if (text.len == 0 || parse_host(text, &uri) || uri.host.len == 0)
        return LP_ESYNTAX;
    *ret = uri;
    return LP_OK;
}

/* "//b.example/m" is a path here, not an authority (RFC 9112 3.2.1). */
static int parse_origin_form(struct lp_span target, struct lp_uri *ret)
{
    struct lp_uri uri = {.has_authority = false};
    if (target.len > URI_BYTES_MAX)
        return LP_ETOO_LONG;
    uri.path = lp_span_split(target, '?', &uri.query);
    if (!is_path(uri.path) || !is_query(uri.query))
        return LP_ESYNTAX;
    *ret = uri;
    return LP_OK;
}

int lp_uri_parse_target(struct lp_span target, struct lp_uri *ret)
{
    struct lp_uri uri;
    if (lp_span_eq(target, LP_SPAN("*"))) {
        *ret = (struct lp_uri){.path = LP_SPAN("")};
        return LP_OK;
    }
    if (target.len && target.ptr[0] == '/')
        return parse_origin_form(target, ret);
    int err = lp_uri_parse(target, &uri);
    if (err)
        return err;
    if (!uri.scheme.ptr || !uri.has_authority || uri.userinfo.ptr || uri.fragment.ptr)
        return LP_ESYNTAX;
    *ret = uri;
    return LP_OK;
}

uint16_t lp_uri_port(const struct lp_uri *uri)
{
    uint64_t value = 0;
    if (uri->port.len == 0)
        return default_port(uri->scheme);
    bool is_number = lp_span_to_u64(uri->port, &value);
    LP_ASSERT(is_number && value <= PORT_MAX);
    return (uint16_t)value;
}

bool lp_uri_same_origin(const struct lp_uri *a, const struct lp_uri *b)
{
    return a->has_authority && b->has_authority && lp_span_ieq(a->scheme, b->scheme) &&
        a->host_is_ipv6 == b->host_is_ipv6 && lp_span_ieq(a->host, b->host) &&
        lp_uri_port(a) == lp_uri_port(b);
}

bool lp_uri_query_get(struct lp_span query, struct lp_span key, struct lp_span *ret_value)
{
    while (query.len) {
        struct lp_span value;
        struct lp_span member = lp_span_split(query, '&', &query);
        struct lp_span name = lp_span_split(member, '=', &value);
        if (member.len && lp_span_eq(name, key)) {
            *ret_value = value.ptr ? value : lp_span_from(member, member.len);
            return true;
        }
    }
    return false;
}

/* --- resolving -------------------------------------------------------------------------------- */

/* 1 for ".", 2 for "..", else 0. A dot may be percent-encoded: it means the same (RFC 3986
 * 6.2.2.2), and browsers step up at "%2e%2e" too. */
static int count_dots(struct lp_span segment)
{
    int dots = 0;
    while (segment.len) {
        bool is_encoded = segment.len >= 3 && lp_span_ieq(lp_span(segment.ptr, 3), LP_SPAN("%2e"));
        if (!is_encoded && segment.ptr[0] != '.')
            return 0;
        segment = lp_span_from(segment, is_encoded ? 3 : 1);
        dots++;
    }
    return dots <= 2 ? dots : 0;
}

/* `n` without its last segment and the slash before it. */
static size_t step_up(const char *path, size_t n)
{
    while (n && path[n - 1] != '/')
        n--;
    return n ? n - 1 : 0;
}

/* remove_dot_segments of RFC 3986 5.2.4, in place; the new length. */
static size_t remove_dots(char *path, size_t len)
{
    size_t out = 0;
    for (size_t in = 0; in < len;) {
        size_t name = in + (path[in] == '/' ? 1 : 0);
        size_t end = name + lp_span_find(lp_span(path + name, len - name), '/');
        int dots = count_dots(lp_span(path + name, end - name));
        bool has_slash = name > in;
        if (dots == 0) {
            memmove(path + out, path + in, end - in);
            out += end - in;
        } else if (dots == 2 && has_slash) {
            out = step_up(path, out);
        }
        if (dots && has_slash && end == len)
            path[out++] = '/';
        /* Dots in front of a path without slash take the slash behind them along. */
        in = dots && !has_slash && end < len ? end + 1 : end;
    }
    return out;
}

/* Appends up to four pieces; a null piece is none. */
static int append_pieces(struct lp_buf *out, const struct lp_span pieces[4])
{
    for (int i = 0; i < 4; i++) {
        int err = lp_buf_append(out, pieces[i]);
        if (err)
            return err;
    }
    return LP_OK;
}

static int append_authority(struct lp_buf *out, const struct lp_uri *uri)
{
    const struct lp_span none = {NULL, 0};
    const struct lp_span user[4] = {
        LP_SPAN("//"), uri->userinfo, uri->userinfo.ptr ? LP_SPAN("@") : none};
    const struct lp_span host[4] = {uri->host_is_ipv6 ? LP_SPAN("[") : none, uri->host,
        uri->host_is_ipv6 ? LP_SPAN("]") : none, uri->port.ptr ? LP_SPAN(":") : none};
    if (!uri->has_authority)
        return LP_OK;
    int err = append_pieces(out, user);
    if (!err)
        err = append_pieces(out, host);
    return err ? err : lp_buf_append(out, uri->port);
}

/* The directory that a relative path starts from (RFC 3986 5.2.3). */
static struct lp_span base_directory(const struct lp_uri *base)
{
    size_t n = base->path.len;
    if (n == 0)
        return base->has_authority ? LP_SPAN("/") : lp_span(NULL, 0);
    while (n && base->path.ptr[n - 1] != '/')
        n--;
    return lp_span(base->path.ptr, n);
}

static int append_path(
    struct lp_buf *out, const struct lp_uri *root, struct lp_span directory, struct lp_span path)
{
    size_t at = out->len;
    int err = lp_buf_append(out, directory);
    if (!err)
        err = lp_buf_append(out, path);
    if (err || out->len == at)
        return err;
    char *start = out->ptr + out->off + at;
    size_t len = remove_dots(start, out->len - at);
    out->len = at + len;
    /* "x:/.//b" would become "x://b", where b is a host. */
    bool grew_host = !root->has_authority && lp_span_starts(lp_span(start, len), LP_SPAN("//"));
    return grew_host ? LP_ESYNTAX : LP_OK;
}

/* The cases of RFC 3986 5.2.2. `root` is where scheme or authority comes from. */
static int resolve(const struct lp_uri *base, const struct lp_uri *ref, struct lp_buf *out)
{
    bool is_own = ref->scheme.ptr || ref->has_authority;
    const struct lp_uri *root = is_own ? ref : base;
    struct lp_span directory = {NULL, 0};
    struct lp_span path = ref->path;
    struct lp_span query = ref->query;
    if (!is_own && ref->path.len == 0) {
        path = base->path;
        query = ref->query.ptr ? ref->query : base->query;
    } else if (!is_own && ref->path.ptr[0] != '/') {
        directory = base_directory(base);
    }
    const struct lp_span scheme[4] = {ref->scheme.ptr ? ref->scheme : base->scheme, LP_SPAN(":")};
    const struct lp_span tail[4] = {query.ptr ? LP_SPAN("?") : query, query};
    int err = append_pieces(out, scheme);
    if (!err)
        err = append_authority(out, root);
    if (!err)
        err = append_path(out, root, directory, path);
    return err ? err : append_pieces(out, tail);
}

int lp_uri_resolve(const struct lp_uri *base, const struct lp_uri *ref, struct lp_buf *out)
{
    size_t len_before = out->len;
    if (!base->scheme.ptr)
        return LP_ESYNTAX;
    int err = resolve(base, ref, out);
    if (err)
        out->len = len_before;
    return err;
}

bool lp_uri_hide_user(struct lp_span text, struct lp_span *ret_head, struct lp_span *ret_tail)
{
    size_t from = lp_span_search(text, LP_SPAN("://"));
    size_t at = text.len;
    from = from < text.len ? from + 3 : 0;
    while (at > from && text.ptr[at - 1] != '@') /* the last one: a password may hold others */
        at--;
    bool has_user = at > from;
    *ret_head = has_user ? lp_span(text.ptr, from) : text;
    *ret_tail = has_user ? lp_span_from(text, at - 1) : lp_span_from(text, text.len);
    return has_user;
}

bool lp_uri_is_loopback(struct lp_span host)
{
    if (lp_span_ieq(host, LP_SPAN("localhost")) || lp_span_eq(host, LP_SPAN("::1")))
        return true;
    if (!lp_span_starts(host, LP_SPAN("127.")))
        return false;
    for (size_t i = 0; i < host.len; i++)
        if ((host.ptr[i] < '0' || host.ptr[i] > '9') && host.ptr[i] != '.')
            return false;
    return true;
}
