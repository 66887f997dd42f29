/* Where to log in (requirements [G11]; cases AUT-01 to AUT-03): requests at a server's well-known
 * places go to any replica, without session and token; what a replica says of its own address, in a
 * challenge or a document, is rewritten to the public URL that the client uses. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "gate/public.h"
#include "mcp/challenge.h"

enum { CHALLENGE_MAX = 8192 };

static void split(
    const struct lp_exchange *x, struct lp_span *ret_place, struct lp_span *ret_suffix)
{
    bool is_place = lp_public_split(x->request.path, ret_place, ret_suffix);
    LP_ASSERT(is_place);
}

struct lp_span lp_metadata_target(struct lp_exchange *x, struct lp_span path)
{
    struct lp_span place, suffix;
    split(x, &place, &suffix);
    if (!suffix.len || lp_span_eq(path, LP_SPAN("/")))
        return place;
    char *text = lp_arena_alloc(&x->arena, place.len + path.len);
    if (!text)
        return place;
    memcpy(text, place.ptr, place.len);
    memcpy(text + place.len, path.ptr, path.len);
    return lp_span(text, place.len + path.len);
}

/* Many a replica has the document at the place alone, which clients ask second; behind this gateway
 * that may be nobody's. */
bool lp_metadata_ask_again(struct lp_engine *e, struct lp_exchange *x, uint16_t status)
{
    struct lp_span place, suffix;
    split(x, &place, &suffix);
    if (status != 404 || x->request.method != LP_METHOD_GET || x->target.len || !suffix.len ||
        !lp_public_is_resource(place))
        return false;
    x->target = place;
    lp_leg_close(e, x);
    lp_leg_start(e, x, x->leg.replica);
    return true;
}

bool lp_metadata_is_held(const struct lp_exchange *x, uint16_t status)
{
    struct lp_span place, suffix;
    if (x->door != LP_DOOR_METADATA || status != 200 || x->request.method != LP_METHOD_GET)
        return false;
    split(x, &place, &suffix);
    return lp_public_is_resource(place) && x->server->conf->public_url_count > 0;
}

/* What is no such document passes as it is. */
void lp_metadata_rewrite(struct lp_exchange *x)
{
    struct lp_buf own;
    lp_buf_init(&own, LP_METADATA_MAX + 2048);
    if (!lp_public_document(&own, lp_buf_span(&x->held), lp_public_url(x->server->conf, x->host))) {
        lp_buf_release(&x->held);
        x->held = own;
        x->answer->body = LP_BODY_LENGTH;
        x->answer->body_bytes = own.len;
        return;
    }
    lp_buf_release(&own);
}

/* Clients refuse metadata of an address that they did not use: the operator is told once. */
static void complain(struct lp_engine *e, const struct lp_exchange *x, struct lp_span challenge)
{
    struct lp_uri uri, asked;
    struct lp_span named = lp_challenge_metadata(challenge);
    if (x->server->complained || lp_uri_parse(named, &uri) || !uri.has_authority ||
        lp_uri_parse_authority(x->host, &asked) || lp_span_ieq(uri.host, asked.host))
        return;
    x->server->complained = true;
    lp_engine_say(e, LP_LOG_WARN,
        "server %.*s: its challenge sends clients to %.*s to log in, but they know it as %.*s; set "
        "public_url to the URL that they use",
        (int)x->record.server.len, x->record.server.ptr, (int)named.len, named.ptr,
        (int)x->host.len, x->host.ptr);
}

struct lp_span lp_metadata_challenge(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span challenge)
{
    struct lp_buf own;
    struct lp_span shown = challenge;
    if (!x->server->conf->public_url_count) {
        complain(e, x, challenge);
        return challenge;
    }
    lp_buf_init(&own, CHALLENGE_MAX);
    /* Without memory for it the client is still told to log in. */
    if (lp_public_challenge(&own, challenge, lp_public_url(x->server->conf, x->host)) ||
        lp_arena_dup(&x->arena, lp_buf_span(&own), &shown))
        shown = LP_SPAN("Bearer");
    lp_buf_release(&own);
    return shown;
}
