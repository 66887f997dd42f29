/* Public names (gate/public.h). A replica knows itself by an address that clients cannot use; they
 * compare what it says with the one they used and refuse another (RFC 9728 3.3, 7.3). */
#include "gate/public.h"

#include "base/error.h"
#include "mcp/challenge.h"
#include "wire/json.h"
#include "wire/member.h"
#include "wire/uri.h"

static const struct lp_span PLACES[] = {
    {LP_CHALLENGE_PLACE, sizeof LP_CHALLENGE_PLACE - 1},
    {"/.well-known/oauth-authorization-server", 39},
    {"/.well-known/openid-configuration", 33},
};

/* Configured URLs have passed conf: they parse. */
static struct lp_uri parse(struct lp_span url)
{
    struct lp_uri uri = {0};
    int err = lp_uri_parse(url, &uri);
    LP_ASSERT(!err && uri.has_authority);
    if (lp_span_eq(uri.path, LP_SPAN("/")))
        uri.path.len = 0;
    return uri;
}

/* The first public URL of this name; with its port too when `is_exact`. */
static struct lp_span find(const struct lp_conf_server *conf, struct lp_span host, bool is_exact)
{
    struct lp_uri asked;
    bool is_host = host.ptr && !lp_uri_parse_authority(host, &asked);
    for (uint32_t i = 0; is_host && i < conf->public_url_count; i++) {
        struct lp_uri own = parse(conf->public_urls[i]);
        asked.scheme = own.scheme; /* TLS ends in front of us */
        if (is_exact ? lp_uri_same_origin(&own, &asked) : lp_span_ieq(own.host, asked.host))
            return conf->public_urls[i];
    }
    return lp_span(NULL, 0);
}

struct lp_span lp_public_url(const struct lp_conf_server *conf, struct lp_span host)
{
    struct lp_span url = find(conf, host, true);
    if (!url.ptr)
        url = find(conf, host, false);
    return url.ptr || !conf->public_url_count ? url : conf->public_urls[0];
}

bool lp_public_has_host(const struct lp_conf_server *conf, struct lp_span host)
{
    return find(conf, host, false).ptr != NULL;
}

bool lp_public_has_path(
    const struct lp_conf_server *conf, struct lp_span host, struct lp_span suffix)
{
    return lp_public_has_host(conf, host) &&
        lp_span_eq(parse(lp_public_url(conf, host)).path, suffix);
}

/* --- places --- */

bool lp_public_split(struct lp_span path, struct lp_span *ret_place, struct lp_span *ret_suffix)
{
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        if (!lp_span_starts(path, PLACES[i]))
            continue;
        struct lp_span suffix = lp_span_from(path, PLACES[i].len);
        if (suffix.len && suffix.ptr[0] != '/')
            continue;
        *ret_place = PLACES[i];
        *ret_suffix = suffix.len == 1 ? LP_SPAN("") : suffix;
        return true;
    }
    return false;
}

bool lp_public_is_resource(struct lp_span place)
{
    return lp_span_eq(place, PLACES[0]);
}

/* --- challenges --- */

/* Whether that address is one where a replica tells of itself. */
static bool is_own_metadata(struct lp_span value)
{
    struct lp_uri uri;
    struct lp_span place, suffix;
    return !lp_uri_parse(value, &uri) && lp_public_split(uri.path, &place, &suffix) &&
        lp_public_is_resource(place);
}

int lp_public_challenge(struct lp_buf *out, struct lp_span challenge, struct lp_span url)
{
    struct lp_uri uri = parse(url);
    struct lp_span path = uri.path;
    struct lp_span origin = lp_span(url.ptr, path.ptr ? (size_t)(path.ptr - url.ptr) : url.len);
    struct lp_span rest = challenge;
    int err = LP_OK;
    for (struct lp_span value = lp_challenge_metadata(rest); value.ptr && !err;
         value = lp_challenge_metadata(rest)) {
        struct lp_span before = lp_span(rest.ptr, (size_t)(value.ptr - rest.ptr));
        err = is_own_metadata(value) ? LP_JOIN(out, before, origin, PLACES[0], path)
                                     : LP_JOIN(out, before, value);
        rest = lp_span_from(rest, before.len + value.len);
    }
    return err ? err : lp_buf_append(out, rest);
}

/* --- documents --- */

int lp_public_document(struct lp_buf *out, struct lp_span document, struct lp_span url)
{
    if (!lp_json_is_object(document))
        return LP_ESYNTAX;
    struct lp_span value = lp_member(document, LP_SPAN("resource"));
    if (!value.len)
        return LP_ESYNTAX;
    size_t before = (size_t)(value.ptr - document.ptr);
    return LP_JOIN(out, lp_span(document.ptr, before), LP_SPAN("\""), url, LP_SPAN("\""),
        lp_span_from(document, before + value.len));
}
