/* The Host and Origin rule of servers (serve/guard.h; requirements [G12], [L4]).
 *
 * A browser tells the truth in both headers, and nobody else is kept out by them: that is what
 * they are for here. */
#include "serve/guard.h"

#include "wire/uri.h"

static bool is_loopback_name(const struct lp_uri *uri)
{
    if (uri->host_is_ipv6)
        return lp_span_eq(uri->host, LP_SPAN("::1"));
    if (lp_span_ieq(uri->host, LP_SPAN("localhost")))
        return true;
    /* 127.x.y.z in digits; a name such as 127.0.0.1.example is not one. */
    struct lp_span rest = uri->host;
    struct lp_span first = lp_span_split(rest, '.', &rest);
    bool is_loopback = lp_span_eq(first, LP_SPAN("127"));
    uint64_t part;
    for (int i = 0; i < 3 && is_loopback; i++)
        is_loopback = lp_span_to_u64(lp_span_split(rest, '.', &rest), &part) && part <= 255;
    return is_loopback && !rest.ptr;
}

bool lp_guard_is_loopback_host(struct lp_span authority)
{
    struct lp_uri uri;
    return lp_uri_parse_authority(authority, &uri) == LP_OK && is_loopback_name(&uri);
}

static bool is_loopback_origin(struct lp_span origin)
{
    struct lp_uri uri;
    return lp_uri_parse(origin, &uri) == LP_OK && uri.has_authority && is_loopback_name(&uri);
}

/* An origin is scheme, "://" and authority, as a browser writes it. */
static bool is_of_host(struct lp_span origin, struct lp_span host)
{
    size_t at = lp_span_search(origin, LP_SPAN("://"));
    return at < origin.len && host.len && lp_span_ieq(lp_span_from(origin, at + 3), host);
}

static bool is_listed(struct lp_span origins, struct lp_span origin)
{
    while (origins.len) {
        struct lp_span one = lp_span_trim(lp_span_split(origins, ',', &origins));
        if (lp_span_eq(one, LP_SPAN("*")) || (one.len && lp_span_ieq(one, origin)))
            return true;
    }
    return false;
}

enum lp_reason lp_guard_judge(const struct lp_head *head, bool is_loopback, struct lp_span origins)
{
    const struct lp_field *host = lp_head_find(head, LP_FIELD_HOST, NULL);
    const struct lp_field *origin = lp_head_find(head, LP_FIELD_ORIGIN, NULL);
    bool is_fine = true;
    if (origin && origins.len)
        is_fine = is_listed(origins, origin->value);
    else if (origin && is_loopback)
        is_fine = is_loopback_origin(origin->value);
    else if (origin)
        is_fine = host && is_of_host(origin->value, host->value);
    if (!is_fine)
        return LP_REASON_origin_refused;
    bool is_foreign = is_loopback && host && !lp_guard_is_loopback_host(host->value);
    return is_foreign ? LP_REASON_host_refused : LP_REASON_none;
}
