/* Addresses in the configuration: where to listen, where replicas are, Host and Origin values.
 *
 * Deliberately narrower than a URI (RFC 3986): no userinfo, query, fragment or percent-encoding in
 * a host; a port may be left out of a replica's URL only. What is accepted here needs no second
 * look in the room that connects. */
#include "conf/conf_priv.h"
#include "wire/uri.h"

enum { HOST_MAX = 253, PORT_DIGITS_MAX = 5, PORT_HTTP = 80, PORT_HTTPS = 443 };

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool all_in(struct lp_span text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_alnum(text.ptr[i]) && !strchr(others, text.ptr[i] ? text.ptr[i] : ' '))
            return false;
    return text.len > 0;
}

bool lp_conf_is_name(struct lp_span text)
{
    return text.len <= LP_CONF_NAME_MAX && all_in(text, "._-");
}

bool lp_conf_is_path(struct lp_span text)
{
    return text.len <= 1024 && lp_span_starts(text, LP_SPAN("/")) &&
        all_in(text, "/-._~%!$&'()*+,;=:@");
}

static void lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + ('a' - 'A'));
}

static bool is_ipv4(struct lp_span text)
{
    uint32_t count = 0;
    for (struct lp_span rest = text; rest.ptr; count++) {
        uint64_t part;
        struct lp_span digits = lp_span_split(rest, '.', &rest);
        if (digits.len > 3 || !lp_span_to_u64(digits, &part) || part > UINT8_MAX)
            return false;
    }
    return count == 4;
}

/* A name or an IPv4 address. Digits and dots only must be a real IPv4 address: "10.0.0.256" is a
 * slip of the hand, no name. */
static bool is_host_name(struct lp_span text)
{
    bool has_letter = false;
    for (size_t i = 0; i < text.len; i++)
        has_letter |= text.ptr[i] != '.' && (text.ptr[i] < '0' || text.ptr[i] > '9');
    if (text.len > HOST_MAX || !all_in(text, "._-"))
        return false;
    return has_letter ? is_alnum(text.ptr[0]) : is_ipv4(text);
}

static int parse_port(struct lp_span text, uint16_t *ret_port)
{
    uint64_t port = 0;
    if (!lp_span_to_u64(text, &port))
        return LP_ESYNTAX;
    if (text.len > PORT_DIGITS_MAX || text.ptr[0] == '0' || port > UINT16_MAX)
        return LP_ERANGE;
    *ret_port = (uint16_t)port;
    return LP_OK;
}

/* "host", "host:port", "[v6]" or "[v6]:port" -> host and the text after it: empty, or ":port". */
static int split_host(struct lp_span text, struct lp_span *ret_host, struct lp_span *ret_rest)
{
    bool is_v6 = lp_span_starts(text, LP_SPAN("["));
    size_t bracket = is_v6 ? lp_span_find(text, ']') : 0;
    struct lp_span tail = lp_span_from(text, bracket);
    size_t end = bracket + lp_span_find(tail, ':');
    struct lp_span host = lp_span(text.ptr, end);
    if (is_v6) {
        struct lp_uri uri;
        if (lp_uri_parse_authority(host, &uri) || !uri.host_is_ipv6)
            return LP_ESYNTAX;
        host = uri.host;
    } else if (!is_host_name(host)) {
        return LP_ESYNTAX;
    }
    *ret_host = host;
    *ret_rest = lp_span_from(text, end);
    return LP_OK;
}

/* `port` is what a missing port means; 0: it must be there. */
static int parse_authority(char *text, size_t len, uint16_t port, struct lp_conf_address *ret)
{
    struct lp_span host, rest;
    uint16_t implied = port ? port : PORT_HTTP; /* what a Host field without a port means */
    lower(text, len);
    int err = split_host(lp_span(text, len), &host, &rest);
    if (!err && rest.len)
        err = parse_port(lp_span_from(rest, 1), &port);
    if (err)
        return err;
    if (port == 0)
        return LP_ESYNTAX;
    *ret = (struct lp_conf_address){
        .host = host,
        .port = port,
        .is_loopback = lp_uri_is_loopback(host),
        .authority = lp_span(text, port == implied ? len - rest.len : len),
    };
    return LP_OK;
}

static int parse_unix(struct lp_span path, struct lp_conf_address *ret)
{
    if (!lp_span_starts(path, LP_SPAN("/")) || path.len < 2)
        return LP_ESYNTAX;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] <= ' ' || path.ptr[i] == 0x7F || path.ptr[i] == ':')
            return LP_ESYNTAX;
    if (path.len > LP_CONF_UNIX_PATH_MAX)
        return LP_ETOO_LONG;
    *ret = (struct lp_conf_address){
        .is_unix = true, .is_loopback = true, .host = path, .authority = LP_SPAN("localhost")};
    return LP_OK;
}

int lp_conf_parse_listen(char *text, size_t len, struct lp_conf_address *ret)
{
    struct lp_span all = lp_span(text, len);
    struct lp_span scheme = LP_SPAN("unix:");
    if (lp_span_starts(all, scheme))
        return parse_unix(lp_span_from(all, scheme.len), ret);
    return parse_authority(text, len, 0, ret);
}

static int parse_path(struct lp_span text, struct lp_span *ret_path)
{
    if (text.len && !lp_conf_is_path(text))
        return LP_ESYNTAX;
    *ret_path = text;
    return LP_OK;
}

static bool has_scheme(struct lp_span text, struct lp_span scheme)
{
    return text.len >= scheme.len && lp_span_ieq(lp_span(text.ptr, scheme.len), scheme);
}

/* What follows "http://" or "https://". */
static int parse_web(
    char *text, size_t len, bool is_tls, struct lp_conf_address *ret, struct lp_span *ret_path)
{
    struct lp_span all = lp_span(text, len);
    size_t slash = lp_span_find(all, '/');
    int err = parse_path(lp_span_from(all, slash), ret_path);
    if (!err)
        err = parse_authority(text, slash, is_tls ? PORT_HTTPS : PORT_HTTP, ret);
    if (!err)
        ret->is_tls = is_tls;
    return err;
}

int lp_conf_parse_replica(
    char *text, size_t len, struct lp_conf_address *ret, struct lp_span *ret_path)
{
    struct lp_span all = lp_span(text, len);
    struct lp_span http = LP_SPAN("http://"), https = LP_SPAN("https://"), local = LP_SPAN("unix:");
    if (has_scheme(all, http))
        return parse_web(text + http.len, len - http.len, false, ret, ret_path);
    if (has_scheme(all, https))
        return parse_web(text + https.len, len - https.len, true, ret, ret_path);
    if (lp_span_starts(all, local)) {
        struct lp_span path = {NULL, 0};
        struct lp_span socket = lp_span_split(lp_span_from(all, local.len), ':', &path);
        int err = parse_path(path, ret_path);
        return err ? err : parse_unix(socket, ret);
    }
    return LP_ESYNTAX;
}

/* Beyond what a replica's URL may have, it must be one that wire/uri can read. */
int lp_conf_parse_public(char *text, size_t len)
{
    struct lp_conf_address address;
    struct lp_span path = {NULL, 0};
    struct lp_uri uri;
    int err = lp_conf_parse_replica(text, len, &address, &path);
    if (err || address.is_unix)
        return LP_ESYNTAX;
    return lp_uri_parse(lp_span(text, len), &uri);
}

int lp_conf_parse_origin(char *text, size_t len)
{
    struct lp_span all = lp_span(text, len);
    size_t colon = lp_span_search(all, LP_SPAN("://"));
    if (lp_span_eq(all, LP_SPAN("*")) || lp_span_eq(all, LP_SPAN("null")))
        return LP_OK;
    if (colon == len || !all_in(lp_span(text, colon), "+-."))
        return LP_ESYNTAX;
    lower(text, len);
    return lp_conf_is_host(lp_span_from(all, colon + 3)) ? LP_OK : LP_ESYNTAX;
}

bool lp_conf_is_host(struct lp_span text)
{
    struct lp_span host, rest;
    uint16_t port;
    if (split_host(text, &host, &rest))
        return false;
    return rest.len == 0 || parse_port(lp_span_from(rest, 1), &port) == LP_OK;
}

int lp_conf_write_address(struct lp_buf *out, const struct lp_conf_address *address)
{
    int len = (int)address->host.len;
    if (address->is_unix)
        return lp_buf_printf(out, "unix:%.*s", len, address->host.ptr);
    bool is_v6 = lp_span_find(address->host, ':') < address->host.len;
    return lp_buf_printf(
        out, is_v6 ? "[%.*s]:%u" : "%.*s:%u", len, address->host.ptr, (unsigned)address->port);
}

static struct lp_span scheme_of(const struct lp_conf_address *address)
{
    if (address->is_unix)
        return LP_SPAN("");
    return address->is_tls ? LP_SPAN("https://") : LP_SPAN("http://");
}

int lp_conf_write_url(struct lp_buf *out, const struct lp_conf_replica *replica)
{
    int err = lp_buf_append(out, scheme_of(&replica->address));
    if (!err)
        err = lp_conf_write_address(out, &replica->address);
    if (!err && replica->address.is_unix)
        err = lp_buf_append(out, LP_SPAN(":"));
    return err ? err : lp_buf_append(out, replica->path);
}

struct lp_span lp_conf_replica_name(struct lp_arena *arena, const struct lp_conf_replica *replica)
{
    struct lp_span name = {NULL, 0};
    struct lp_span scheme = scheme_of(&replica->address);
    struct lp_buf url;
    lp_buf_init(&url, LP_CONF_TEXT_MAX);
    if (lp_conf_write_url(&url, replica) == LP_OK)
        name = lp_conf_text(arena, "%.*s", (int)(url.len - scheme.len),
            lp_span_from(lp_buf_span(&url), scheme.len).ptr);
    lp_buf_release(&url);
    return name;
}
