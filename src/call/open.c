/* How a session begins: which era and which transport the server speaks (wire document 4.6, 6.1,
 * 11.2), initialize, and the notification after it.
 *
 *   auto: server/discover -> modern
 *             | anything but success or a clear no
 *             v
 *         initialize -> initialized -> open
 *             | 4xx that is no challenge
 *             v
 *         GET, endpoint event -> initialize -> ... (old SSE)
 *
 * A 5xx, a time-out and a broken network say nothing about the era and end the attempt. */
#include <stdio.h>

#include "call/client_priv.h"

static const struct lp_call_ops DISCOVER_OPS;
static const struct lp_call_ops INITIALIZE_OPS;

static const struct lp_target *target_of(const struct lp_client *client)
{
    return lp_fetcher_target(client->fetcher);
}

static void fail_with(
    struct lp_client *client, enum lp_failure_kind kind, int error, struct lp_span sentence)
{
    struct lp_client_failure why = {
        .kind = kind, .error = error, .reason = LP_REASON_upstream_garbled, .sentence = sentence};
    lp_client_fail_open(client, &why);
}

static void fail_limit(struct lp_client *client, int error)
{
    struct lp_client_failure why = lp_client_limit(client, error);
    lp_client_fail_open(client, &why);
}

/* --- initialize --- */

static int initialize(struct lp_client *client)
{
    lp_id call;
    struct lp_buf params;
    client->step = LP_OPEN_INITIALIZE;
    client->is_modern = false;
    client->version[0] = '\0';
    lp_buf_init(&params, LP_FETCH_BODY_MAX);
    int err = lp_buf_printf(&params,
        "{\"protocolVersion\":\"%.*s\",\"capabilities\":", (int)client->offered.len,
        client->offered.ptr);
    if (!err)
        err = lp_buf_printf(&params, "%.*s,\"clientInfo\":%.*s}", (int)client->capabilities.len,
            client->capabilities.ptr, (int)client->client_info.len, client->client_info.ptr);
    struct lp_call_args args = {.method = LP_SPAN("initialize"),
        .params = lp_buf_span(&params),
        .ops = &INITIALIZE_OPS,
        .ctx = client};
    if (!err)
        err = lp_calls_start(client, &args, true, &call);
    lp_buf_release(&params);
    return err;
}

/* A server that made a session for the era question gets it back. */
static void give_orphan_back(struct lp_client *client)
{
    struct lp_exchange *x;
    struct lp_exchange_args args = {
        .kind = LP_EXCHANGE_DELETE, .session = lp_buf_span(&client->orphan)};
    if (!client->orphan.len)
        return;
    if (lp_exchange_start(client, &args, &x))
        lp_client_note(client, "no memory to end the session that the first question made");
    else
        x->is_orphan = true;
    lp_buf_clear(&client->orphan);
}

static void begin_legacy(struct lp_client *client)
{
    client->is_modern = false;
    client->version[0] = '\0';
    give_orphan_back(client);
    int err = initialize(client);
    if (err)
        fail_limit(client, err);
}

void lp_open_take_session(
    struct lp_client *client, enum lp_rpc_method rpc, const struct lp_head *head)
{
    struct lp_span id = lp_head_value(head, LP_FIELD_MCP_SESSION_ID);
    struct lp_buf *room = rpc == LP_RPC_INITIALIZE ? &client->session : &client->orphan;
    bool is_taken = rpc != LP_RPC_INITIALIZE || (head->status == 200 && !client->is_old_sse);
    if (!is_taken || !id.len)
        return;
    lp_buf_clear(room);
    if (lp_buf_append(room, id))
        lp_client_note(client, "the server's session id is over %d bytes and was not taken",
            LP_CLIENT_SESSION_MAX);
}

static bool take_version(struct lp_client *client, struct lp_span result)
{
    size_t len = 0;
    struct lp_span token = lp_member(result, LP_SPAN("protocolVersion"));
    bool is_string = token.len && token.ptr[0] == '"' &&
        !lp_json_unescape(token, client->version, sizeof client->version - 1, &len);
    client->version[is_string ? len : 0] = '\0';
    return is_string && lp_version_is_legacy(lp_span(client->version, len));
}

static void on_initialized(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_client *client = ctx;
    struct lp_exchange *x;
    (void)call;
    if (error.len) {
        fail_with(client, LP_FAILURE_GARBLED, LP_EUNSUPPORTED,
            lp_client_say(
                client, "the server refuses initialize: %.*s", (int)error.len, error.ptr));
        return;
    }
    if (!take_version(client, result)) {
        struct lp_span version = lp_member(result, LP_SPAN("protocolVersion"));
        client->version[0] = '\0';
        fail_with(client, LP_FAILURE_GARBLED, LP_EUNSUPPORTED,
            lp_client_say(client,
                "the server wants the protocol version %.*s, which is not known "
                "here",
                version.len ? (int)version.len : 4, version.len ? version.ptr : "none"));
        return;
    }
    lp_buf_clear(&client->result);
    int err = lp_buf_append(&client->result, result);
    client->step = LP_OPEN_INITIALIZED;
    if (!err)
        err = lp_client_say_message(client, LP_SPAN("notifications/initialized"),
            LP_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), &x);
    if (err)
        fail_limit(client, err);
    else
        x->is_initialized = true;
}

void lp_open_initialized(struct lp_client *client)
{
    lp_client_is_open(client);
}

/* --- old SSE --- */

static void on_no_endpoint(void *ctx)
{
    struct lp_client *client = ctx;
    fail_with(client, LP_FAILURE_TIMEOUT, LP_ETIMEOUT,
        lp_client_say(client, "the server opened an event stream and announced no endpoint on it"));
}

static void begin_old_sse(struct lp_client *client)
{
    client->is_old_sse = true;
    client->step = LP_OPEN_ENDPOINT;
    client->step_timer.fire = on_no_endpoint;
    client->step_timer.ctx = client;
    lp_buf_clear(&client->endpoint);
    int err = lp_fetcher_timer_set(
        client->fetcher, &client->step_timer, (uint64_t)target_of(client)->timeout_ms * 1000);
    if (err)
        fail_limit(client, err);
    else
        lp_stream_open(client);
}

void lp_open_endpoint(struct lp_client *client, struct lp_span data)
{
    struct lp_uri ref;
    struct lp_uri uri;
    const struct lp_uri *base = &target_of(client)->uri;
    if (client->step != LP_OPEN_ENDPOINT)
        return; /* one is enough */
    lp_fetcher_timer_cancel(client->fetcher, &client->step_timer);
    int err = lp_uri_parse(lp_span_trim(data), &ref);
    if (!err)
        err = lp_uri_resolve(base, &ref, &client->endpoint);
    if (!err)
        err = lp_uri_parse(lp_buf_span(&client->endpoint), &uri);
    if (err) {
        fail_with(client, LP_FAILURE_GARBLED, LP_ESYNTAX,
            lp_client_say(client, "the endpoint that the server announced is no address"));
        return;
    }
    if (!lp_uri_same_origin(base, &uri) || uri.userinfo.ptr) {
        fail_with(client, LP_FAILURE_GARBLED, LP_EREFUSED,
            lp_client_say(client,
                "the server announced an endpoint of another origin (%.*s), where nothing is sent",
                (int)uri.host.len, uri.host.ptr));
        return;
    }
    err = initialize(client);
    if (err)
        fail_limit(client, err);
}

void lp_open_stream_failed(struct lp_client *client, const struct lp_client_failure *why)
{
    struct lp_client_failure first = {.kind = LP_FAILURE_STATUS,
        .error = LP_EUNSUPPORTED,
        .reason = LP_REASON_answered,
        .status = client->first_status,
        .sentence = lp_buf_span(&client->first)};
    if (!client->first_status) {
        lp_client_fail_open(client, why);
        return;
    }
    /* The fallback was only a try: what the POST was answered is what the user has to know. */
    lp_client_note(client, "after HTTP %u for initialize old HTTP+SSE was tried too: %.*s",
        client->first_status, (int)why->sentence.len, why->sentence.ptr);
    first.body = lp_span_from(first.sentence, client->first_prefix);
    lp_client_fail_open(client, &first);
}

/* A lost session, or an error of 2026-07-28: who says that speaks Streamable HTTP. */
static bool is_protocol_error(struct lp_span body)
{
    static const struct lp_span CODES[] = {
        {"-32001", 6}, {"-32020", 6}, {"-32021", 6}, {"-32022", 6}};
    if (!lp_json_is_object(body))
        return false;
    struct lp_span code = lp_member(lp_member(body, LP_SPAN("error")), LP_SPAN("code"));
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (lp_span_eq(code, CODES[i]))
            return true;
    return false;
}

/* Wire 6.1, cases SSE-04: any other status is the fault that the user has to know of. */
static bool may_be_old_sse(const struct lp_client *client, const struct lp_client_failure *why)
{
    bool is_absent = why->kind == LP_FAILURE_STATUS &&
        (why->status == 400 || why->status == 404 || why->status == 405);
    return is_absent && !client->is_old_sse && !is_protocol_error(why->body) &&
        target_of(client)->transport == LP_TRANSPORT_AUTO;
}

static void on_not_initialized(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_client *client = ctx;
    (void)call;
    if (client->state != LP_CLIENT_OPENING)
        return;
    if (!may_be_old_sse(client, why)) {
        lp_client_fail_open(client, why);
        return;
    }
    lp_buf_clear(&client->first);
    client->first_status = why->status;
    client->first_prefix = why->sentence.len - why->body.len;
    if (lp_buf_append(&client->first, why->sentence))
        client->first_status = 0;
    begin_old_sse(client);
}

static const struct lp_call_ops INITIALIZE_OPS = {
    .answer = on_initialized, .failed = on_not_initialized};

/* --- discover --- */

struct versions {
    bool has_modern;
    bool has_legacy;
};

static void see_version(void *ctx, struct lp_span element)
{
    struct versions *v = ctx;
    if (element.len < 2 || element.ptr[0] != '"')
        return;
    struct lp_span text = lp_span(element.ptr + 1, element.len - 2);
    v->has_modern |= lp_version_is_modern(text);
    v->has_legacy |= lp_version_is_legacy(text);
}

static struct versions see_versions(struct lp_span list)
{
    struct versions v = {0};
    if (lp_span_starts(list, LP_SPAN("[")))
        lp_elements(list, see_version, &v);
    return v;
}

static void begin_modern(struct lp_client *client, struct lp_span result)
{
    lp_buf_clear(&client->result);
    lp_buf_clear(&client->orphan);
    int err = lp_buf_append(&client->result, result);
    if (err)
        fail_limit(client, err);
    else
        lp_client_is_open(client);
}

static void on_discovered(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_client *client = ctx;
    (void)call;
    struct versions offered = see_versions(lp_member(result, LP_SPAN("supportedVersions")));
    struct lp_span listed = lp_member(lp_member(error, LP_SPAN("data")), LP_SPAN("supported"));
    struct versions supported = see_versions(listed);
    bool is_version_error = lp_span_eq(lp_member(error, LP_SPAN("code")), LP_SPAN("-32022"));
    bool is_hopeless = is_version_error && listed.len && !supported.has_legacy;
    bool takes_legacy =
        offered.has_legacy && client->prefers_legacy && target_of(client)->era == LP_ERA_WISH_AUTO;
    if (offered.has_modern && !takes_legacy)
        begin_modern(client, result);
    else if (is_hopeless)
        fail_with(client, LP_FAILURE_GARBLED, LP_EUNSUPPORTED,
            lp_client_say(client,
                "the server speaks only the protocol versions %.*s, which are not known here",
                (int)listed.len, listed.ptr));
    else if (target_of(client)->era == LP_ERA_WISH_MODERN)
        fail_with(client, LP_FAILURE_GARBLED, LP_EUNSUPPORTED,
            lp_client_say(client,
                "the server does not speak " LP_VERSION_MODERN "%s%.*s; leave --era modern out",
                error.len ? ": " : "", (int)error.len, error.len ? error.ptr : ""));
    else
        begin_legacy(client);
}

static bool says_nothing(const struct lp_client_failure *why)
{
    bool is_trouble = why->status == 408 || why->status == 429 || why->status >= 500;
    bool is_status = why->kind == LP_FAILURE_STATUS || why->kind == LP_FAILURE_LOST;
    return is_status ? is_trouble : why->kind != LP_FAILURE_GARBLED;
}

static void on_not_discovered(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_client *client = ctx;
    (void)call;
    if (client->state != LP_CLIENT_OPENING)
        return;
    if (says_nothing(why) || target_of(client)->era == LP_ERA_WISH_MODERN)
        lp_client_fail_open(client, why);
    else
        begin_legacy(client);
}

static const struct lp_call_ops DISCOVER_OPS = {
    .answer = on_discovered, .failed = on_not_discovered};

static int discover(struct lp_client *client)
{
    lp_id call;
    client->step = LP_OPEN_DISCOVER;
    client->is_modern = true;
    snprintf(client->version, sizeof client->version, "%s", LP_VERSION_MODERN);
    struct lp_call_args args = {
        .method = LP_SPAN("server/discover"), .ops = &DISCOVER_OPS, .ctx = client};
    return lp_calls_start(client, &args, true, &call);
}

void lp_open_begin(struct lp_client *client)
{
    const struct lp_target *target = target_of(client);
    bool is_legacy = target->era == LP_ERA_WISH_LEGACY || client->was_legacy;
    int err = LP_OK;
    client->was_legacy = false;
    if (target->transport == LP_TRANSPORT_SSE)
        begin_old_sse(client);
    else if (is_legacy)
        err = initialize(client);
    else
        err = discover(client);
    if (err)
        lp_client_fail_soon(client, err);
}
