/* What a 401 leads to (call/probe_priv.h; cases AUT-01, AUT-02): the three addresses where a client
 * looks for metadata, and whether the document names the very address that is in use.
 *
 * Only addresses of the server's own origin are asked, and without credentials. */
#include <stdio.h>

#include "call/probe_priv.h"
#include "mcp/challenge.h"
#include "wire/json.h"
#include "wire/member.h"

enum { ADDRESS_MS = 2000 };

static const char *const KINDS[LP_SEEN_ADDRESSES] = {
    "oauth-protected-resource", "oauth-authorization-server", "openid-configuration"};

/* The same address, but for a slash at its end. */
static bool is_same(struct lp_span a, struct lp_span b)
{
    while (a.len && a.ptr[a.len - 1] == '/')
        a.len--;
    while (b.len && b.ptr[b.len - 1] == '/')
        b.len--;
    return lp_span_ieq(a, b);
}

/* resource_metadata="..." of WWW-Authenticate: another origin's is not what clients can use. */
void lp_probe_login_note(struct lp_probe *probe, struct lp_span challenge)
{
    struct lp_seen *seen = &probe->seen;
    struct lp_uri uri;
    struct lp_span url = lp_challenge_metadata(challenge);
    lp_seen_text(seen->login, sizeof seen->login, challenge);
    if (!url.ptr)
        return;
    lp_seen_text(seen->metadata_url, sizeof seen->metadata_url, url);
    bool is_own = lp_uri_parse(url, &uri) == LP_OK &&
        lp_target_is_own(lp_fetcher_target(probe->args.fetcher), &uri);
    seen->has_login_mismatch |= !is_own;
}

/* --- the addresses --- */

static void take_document(struct lp_probe *probe, struct lp_span document)
{
    struct lp_seen *seen = &probe->seen;
    const struct lp_target *target = lp_fetcher_target(probe->args.fetcher);
    struct lp_span token =
        lp_json_is_object(document) ? lp_member(document, LP_SPAN("resource")) : LP_SPAN("");
    size_t len = 0;
    char resource[LP_SEEN_TEXT_MAX * 2];
    bool is_string = token.len && token.ptr[0] == '"';
    if (!is_string || lp_json_unescape(token, resource, sizeof resource, &len))
        return;
    lp_seen_text(seen->resource, sizeof seen->resource, lp_span(resource, len));
    struct lp_span used = lp_span(target->url.ptr, lp_span_find(target->url, '?'));
    seen->has_login_mismatch |= !is_same(lp_span(resource, len), used);
}

static void on_answered(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_address *address = ctx;
    struct lp_probe *probe = address->probe;
    probe->seen.addresses[address->number] = reply->answer;
    if (address->number == 0 && reply->answer.status == 200)
        take_document(probe, reply->body);
    probe->questions--;
    lp_probe_advance(probe);
}

static void ask_address(struct lp_probe *probe, uint32_t number)
{
    char url[LP_PROBE_URL_MAX];
    const struct lp_target *target = lp_fetcher_target(probe->args.fetcher);
    struct lp_span origin = lp_target_origin(target);
    struct lp_span path = target->uri.path;
    int n = snprintf(url, sizeof url, "%.*s/.well-known/%s%.*s", (int)origin.len, origin.ptr,
        KINDS[number], (int)path.len, path.ptr);
    if ((size_t)n >= sizeof url)
        return;
    probe->addresses[number] = (struct lp_probe_address){probe, number};
    struct lp_ask *asked = lp_ask_start(&probe->asker,
        &(struct lp_ask_args){.method = LP_METHOD_GET,
            .url = lp_span(url, (size_t)n),
            .is_foreign = true,
            .timeout_ms = ADDRESS_MS,
            .done = on_answered,
            .ctx = &probe->addresses[number]});
    probe->questions += asked != NULL;
}

void lp_probe_login_begin(struct lp_probe *probe)
{
    for (uint32_t i = 0; i < LP_SEEN_ADDRESSES; i++)
        ask_address(probe, i);
}
