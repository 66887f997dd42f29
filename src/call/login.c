/* What a 401 says (wire document 9.2): where the server's metadata lies, and from it where to log
 * in. Read with a fetch of its own, without the jar and without credentials, because the address is
 * the other side's word. What is shown is a checked https address (http for loopback only; cases
 * SEC-04), never text as it came. */
#include <stdio.h>
#include <stdlib.h>

#include "call/client_priv.h"
#include "mcp/challenge.h"

enum { METADATA_MAX = 65536, METADATA_MS = 5000, URL_MAX = 1024 };

struct lp_login {
    struct lp_client *client;
    struct lp_list node;
    lp_id call; /* 0: the stream of old SSE while it opens */
    lp_id fetch;
    uint16_t status;
    uint16_t metadata_status;
    uint32_t place;        /* which address is being asked */
    struct lp_buf refusal; /* the body that came with the status */
    struct lp_buf metadata;
    char challenge[1024];
    bool had_credentials;
};

static const struct lp_fetch_ops METADATA_OPS;

static void free_login(struct lp_login *login)
{
    lp_fetch_cancel(login->client->fetcher, login->fetch);
    lp_list_remove(&login->node);
    lp_buf_release(&login->refusal);
    lp_buf_release(&login->metadata);
    free(login);
}

void lp_login_drop_all(struct lp_client *client)
{
    while (!lp_list_empty(&client->logins))
        free_login(LP_CONTAINER(client->logins.next, struct lp_login, node));
}

/* --- the answer --- */

/* An address that may be shown: the bytes of a URI, but for those that a shell would act on. */
static bool read_url(struct lp_span token, char room[URL_MAX])
{
    struct lp_uri uri;
    size_t len = 0;
    if (!token.len || token.ptr[0] != '"' || lp_json_unescape(token, room, URL_MAX - 1, &len))
        return false;
    room[len] = '\0';
    if (strpbrk(room, "$`'\"()<>|;*!\\"))
        return false;
    if (lp_uri_parse(lp_span(room, len), &uri) || !uri.host.len || uri.userinfo.ptr)
        return false;
    return lp_span_ieq(uri.scheme, LP_SPAN("https")) ||
        (lp_span_ieq(uri.scheme, LP_SPAN("http")) && lp_uri_is_loopback(uri.host));
}

/* The server's own address may be the resource or lie below it; other metadata must not be used
 * (RFC 9728 3.3, which wants the same address; clients take the one above it, too). */
static bool is_for_us(struct lp_login *login, struct lp_span document)
{
    const struct lp_target *target = lp_fetcher_target(login->client->fetcher);
    struct lp_span path = target->uri.path;
    struct lp_uri uri;
    char resource[URL_MAX];
    size_t len = 0;
    struct lp_span token = lp_member(document, LP_SPAN("resource"));
    if (!token.len)
        return true; /* documents of before RFC 9728 name none */
    if (token.ptr[0] == '"' && !lp_json_unescape(token, resource, sizeof resource, &len) &&
        !lp_uri_parse(lp_span(resource, len), &uri) && uri.host.len &&
        lp_uri_same_origin(&target->uri, &uri)) {
        struct lp_span above = uri.path;
        if (lp_span_ends(above, LP_SPAN("/")))
            above.len--;
        if (lp_span_starts(path, above) && (path.len == above.len || path.ptr[above.len] == '/'))
            return true;
    }
    lp_client_note(login->client,
        "the server's metadata are for the resource %.*s and not for %.*s, which is used here: "
        "they "
        "are not believed; whoever runs it should correct them",
        (int)token.len, token.ptr, (int)lp_span_find(target->url, '?'), target->url.ptr);
    return false;
}

struct first {
    char url[URL_MAX];
    bool is_found;
};

static void take_first(void *ctx, struct lp_span element)
{
    struct first *first = ctx;
    if (!first->is_found)
        first->is_found = read_url(element, first->url);
}

/* Raw; empty when no metadata came. */
static struct lp_span servers_of(const struct lp_login *login)
{
    struct lp_span text = lp_buf_span(&login->metadata);
    bool is_document = login->metadata_status == 200 && lp_json_is_object(text);
    return is_document ? lp_member(text, LP_SPAN("authorization_servers")) : LP_SPAN("");
}

static void finish(struct lp_login *login)
{
    struct lp_client *client = login->client;
    struct lp_call *call = lp_call_get(client, login->call);
    struct first server = {0};
    struct lp_span list = servers_of(login);
    if (lp_span_starts(list, LP_SPAN("[")) && is_for_us(login, lp_buf_span(&login->metadata)))
        lp_elements(list, take_first, &server);
    const char *what = login->status == 403 ? "The server refuses these credentials (HTTP 403)."
        : login->had_credentials            ? "The server does not accept this token (HTTP 401)."
                                            : "The server asks for a login (HTTP 401).";
    struct lp_client_failure why = {.kind = LP_FAILURE_LOGIN,
        .error = LP_EREFUSED,
        .reason = LP_REASON_challenged,
        .status = login->status,
        .body = lp_buf_span(&login->refusal),
        .cannot_have_run = true};
    if (server.is_found)
        why.sentence = lp_client_say(client,
            "%s Log in at %s and give the token with --bearer, or --bearer @FILE.", what,
            server.url);
    else
        why.sentence = lp_client_say(client,
            "%s It does not say where to log in; get a token from whoever runs it and give it with "
            "--bearer, or --bearer @FILE.",
            what);
    lp_list_remove(&login->node);
    if (call)
        lp_call_fail(call, &why);
    else if (!login->call && client->state == LP_CLIENT_OPENING)
        lp_open_stream_failed(client, &why);
    free_login(login);
}

/* --- where the metadata may lie --- */

/* The addresses in the order of 2025-11-25: the challenge's, with the path, at the root. */
static bool put_place(const struct lp_login *login, char room[URL_MAX])
{
    const struct lp_target *target = lp_fetcher_target(login->client->fetcher);
    struct lp_span origin = lp_target_origin(target);
    struct lp_span path = target->uri.path;
    struct lp_span named = lp_challenge_metadata(lp_span_str(login->challenge));
    int n = 0;
    if (path.len == 1)
        path.len = 0;
    if (login->place == 0)
        n = snprintf(room, URL_MAX, "%.*s", (int)named.len, named.ptr);
    else if (login->place == 1 && path.len)
        n = snprintf(room, URL_MAX, "%.*s%s%.*s", (int)origin.len, origin.ptr, LP_CHALLENGE_PLACE,
            (int)path.len, path.ptr);
    else if (login->place == 2)
        n = snprintf(room, URL_MAX, "%.*s%s", (int)origin.len, origin.ptr, LP_CHALLENGE_PLACE);
    return n > 0 && n < URL_MAX;
}

/* The address is the other side's word (cases SEC-08): at home it may be anything, elsewhere it has
 * to be https, and a private address only where the server itself stands. */
static bool may_ask(const struct lp_login *login, struct lp_span url, bool *ret_is_public)
{
    const struct lp_uri *home = &lp_fetcher_target(login->client->fetcher)->uri;
    struct lp_uri uri;
    if (lp_uri_parse(url, &uri) || !uri.host.len)
        return false;
    *ret_is_public = !lp_span_ieq(uri.host, home->host);
    return lp_uri_same_origin(home, &uri) || lp_span_ieq(uri.scheme, LP_SPAN("https"));
}

static void ask_next(struct lp_login *login)
{
    bool is_public = false;
    struct lp_target_field accept = {LP_SPAN("Accept"), LP_SPAN("application/json")};
    char url[URL_MAX];
    login->fetch = 0;
    for (; login->place < 3; login->place++) {
        if (!put_place(login, url))
            continue;
        if (!may_ask(login, lp_span_str(url), &is_public)) {
            lp_client_note(login->client,
                "the server names %s for its login, which is not asked: it is neither https nor "
                "at the server itself",
                url);
            continue;
        }
        struct lp_fetch_args args = {.method = LP_METHOD_GET,
            .url = lp_span_str(url),
            .fields = &accept,
            .field_count = 1,
            .is_public = is_public,
            .is_foreign = true,
            .may_repeat = true,
            .head_ms = METADATA_MS,
            .quiet_ms = METADATA_MS,
            .ops = &METADATA_OPS,
            .ctx = login};
        lp_buf_clear(&login->metadata);
        login->metadata_status = 0;
        if (lp_fetch_start(login->client->fetcher, &args, &login->fetch) == LP_OK) {
            login->place++;
            return;
        }
    }
    finish(login);
}

static void on_head(void *ctx, lp_id fetch, const struct lp_head *head)
{
    (void)fetch;
    ((struct lp_login *)ctx)->metadata_status = head->status;
}

static void on_body(void *ctx, lp_id fetch, struct lp_span bytes)
{
    struct lp_login *login = ctx;
    (void)fetch;
    if (lp_buf_append(&login->metadata, bytes))
        login->metadata_status = 0; /* far too long to be what it should be */
}

static void on_end(void *ctx, lp_id fetch, bool whole)
{
    struct lp_login *login = ctx;
    (void)fetch;
    (void)whole;
    if (servers_of(login).len)
        finish(login);
    else
        ask_next(login);
}

static void on_failed(void *ctx, lp_id fetch, const struct lp_fetch_failure *why)
{
    (void)fetch;
    (void)why;
    ask_next(ctx);
}

static const struct lp_fetch_ops METADATA_OPS = {
    .head = on_head, .body = on_body, .end = on_end, .failed = on_failed};

static bool has_credentials(const struct lp_target *target)
{
    for (uint32_t i = 0; i < target->field_count; i++)
        if (lp_span_ieq(target->fields[i].name, LP_SPAN("authorization")))
            return true;
    return false;
}

void lp_login_ask(struct lp_exchange *x)
{
    struct lp_client *client = x->client;
    struct lp_call *call = lp_call_get(client, x->call);
    struct lp_login *login = calloc(1, sizeof *login);
    if (call)
        call->exchange = NULL;
    if (!login) {
        struct lp_client_failure why = lp_client_limit(client, LP_ENOMEM);
        if (call)
            lp_call_fail(call, &why);
        else
            lp_open_stream_failed(client, &why);
        return;
    }
    login->client = client;
    login->call = x->call;
    login->status = x->status;
    login->had_credentials = has_credentials(lp_fetcher_target(client->fetcher));
    memcpy(login->challenge, x->challenge, sizeof login->challenge);
    login->refusal = x->body; /* taken over */
    lp_buf_init(&x->body, 0);
    lp_buf_init(&login->metadata, METADATA_MAX);
    lp_list_push_back(&client->logins, &login->node);
    ask_next(login);
}
