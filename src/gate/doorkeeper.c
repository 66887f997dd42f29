/* Host and Origin checks (gate/doorkeeper.h). A browser page from anywhere can reach a loopback
 * listener; what gives it away is the name it used (DNS rebinding) or the Origin it must send. */
#include "gate/doorkeeper.h"

#include "gate/public.h"
#include "wire/uri.h"

static bool host_in_list(
    const struct lp_conf_server *conf, struct lp_span host, const struct lp_uri *parsed)
{
    for (uint32_t i = 0; i < conf->host_count; i++) {
        struct lp_span allowed = conf->hosts[i];
        if (lp_span_eq(allowed, LP_SPAN("*")) || lp_span_ieq(allowed, host) ||
            lp_span_ieq(allowed, parsed->host))
            return true;
    }
    return false;
}

static bool host_is_allowed(
    const struct lp_conf_server *conf, bool is_loopback, struct lp_span host)
{
    struct lp_uri parsed;
    if (!host.ptr)
        return true; /* HTTP/1.0 */
    if (lp_uri_parse_authority(host, &parsed))
        return false;
    if (conf->host_count)
        return host_in_list(conf, host, &parsed);
    if (conf->public_url_count && lp_public_has_host(conf, host))
        return true;
    if (conf->public_url_count && !is_loopback)
        return false;
    return !is_loopback || lp_uri_is_loopback(parsed.host);
}

static bool equals_host(const struct lp_uri *origin, struct lp_span host)
{
    struct lp_uri own;
    if (lp_uri_parse_authority(host, &own))
        return false;
    own.scheme = origin->scheme;
    return lp_uri_same_origin(origin, &own);
}

static bool origin_is_allowed(
    const struct lp_conf_server *conf, bool is_loopback, struct lp_span host, struct lp_span origin)
{
    if (!origin.ptr)
        return true;
    for (uint32_t i = 0; i < conf->origin_count; i++)
        if (lp_span_eq(conf->origins[i], LP_SPAN("*")) || lp_span_ieq(conf->origins[i], origin))
            return true;
    struct lp_uri parsed;
    if (conf->origin_count || lp_uri_parse(origin, &parsed) || !parsed.has_authority)
        return false;
    if (is_loopback)
        return lp_uri_is_loopback(parsed.host);
    return equals_host(&parsed, host);
}

enum lp_reason lp_doorkeeper_judge(
    const struct lp_conf_server *conf, bool is_loopback, struct lp_span host, struct lp_span origin)
{
    if (!host_is_allowed(conf, is_loopback, host))
        return LP_REASON_host_refused;
    if (!origin_is_allowed(conf, is_loopback, host, origin))
        return LP_REASON_origin_refused;
    return LP_REASON_none;
}
