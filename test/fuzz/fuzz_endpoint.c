/* Fuzzes the endpoint event of old SSE and the client's query (mcp/endpoint.h). The first byte
 * chooses: an announcement, seen with and without a known public address, or a query.
 *
 * Laws: what is sealed is a path within its limit; the client's address leads back to the token and
 * to just the members that were kept. */
#include "mcp/endpoint.h"
#include "mcp/ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 16 };

static void check_way_back(struct lp_span kept)
{
    struct lp_buf out;
    struct lp_buf rest;
    struct lp_uri uri;
    struct lp_span token = {NULL, 0};
    lp_buf_init(&out, ROOM);
    lp_buf_init(&rest, ROOM);
    int err = lp_endpoint_visible(&out, LP_SPAN("/team/a/sse"), LP_SPAN("lp1_T"), kept);
    LP_ASSERT(err == LP_OK);
    err = lp_uri_parse(lp_buf_span(&out), &uri);
    LP_ASSERT(err == LP_OK || err == LP_ETOO_LONG);
    if (err == LP_OK) {
        LP_ASSERT(lp_span_eq(uri.path, LP_SPAN("/team/a/sse")));
        err = lp_endpoint_token(uri.query, &token, &rest);
        LP_ASSERT(err == LP_OK && lp_span_eq(token, LP_SPAN("lp1_T")));
        LP_ASSERT(lp_span_eq(lp_buf_span(&rest), kept));
    }
    lp_buf_release(&out);
    lp_buf_release(&rest);
}

static void announce(struct lp_span data, const struct lp_uri *stream, const struct lp_uri *visible)
{
    struct lp_buf sealed;
    struct lp_buf kept;
    lp_buf_init(&sealed, ROOM);
    lp_buf_init(&kept, ROOM);
    int err = lp_endpoint_split(data, stream, visible, &sealed, &kept);
    if (err) {
        LP_ASSERT(sealed.len == 0 && kept.len == 0);
    } else {
        LP_ASSERT(lp_span_starts(lp_buf_span(&sealed), LP_SPAN("/")));
        LP_ASSERT(sealed.len <= LP_TICKET_UPSTREAM_ID_MAX);
        check_way_back(lp_buf_span(&kept));
    }
    lp_buf_release(&sealed);
    lp_buf_release(&kept);
}

/* What was announced comes first and unchanged, and nothing is added that the client did not say.
 */
static void check_target(struct lp_span rest)
{
    struct lp_span sealed = LP_SPAN("/messages?sessionId=3f0c");
    struct lp_buf target;
    lp_buf_init(&target, ROOM);
    int err = lp_endpoint_target(&target, sealed, rest);
    LP_ASSERT(err == LP_OK && lp_span_starts(lp_buf_span(&target), sealed));
    LP_ASSERT(target.len <= sealed.len + 1 + rest.len);
    lp_buf_release(&target);
}

static void ask(struct lp_span query, size_t rest_max)
{
    struct lp_buf rest;
    struct lp_span token = {NULL, 0};
    lp_buf_init(&rest, rest_max);
    int err = lp_endpoint_token(query, &token, &rest);
    LP_ASSERT(err == LP_OK || (rest.len == 0 && token.ptr == NULL));
    LP_ASSERT(rest.len <= query.len);
    check_target(lp_buf_span(&rest));
    lp_buf_release(&rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_uri stream;
    struct lp_uri visible;
    if (size == 0)
        return 0;
    int err = lp_uri_parse(LP_SPAN("http://backend:9000/a/sse"), &stream);
    LP_ASSERT(err == LP_OK);
    err = lp_uri_parse(LP_SPAN("https://gw.example/team/a/sse"), &visible);
    LP_ASSERT(err == LP_OK);
    struct lp_span rest = lp_span((const char *)data + 1, size - 1);
    if (data[0] % 2 == 0) {
        announce(rest, &stream, NULL);
        announce(rest, &stream, &visible);
    } else {
        ask(rest, ROOM);
        ask(rest, 8);
    }
    return 0;
}
