/* What a legacy host asks and a modern server has no method for (wire document 14.1): the log level
 * goes along with every request from then on, and each subscribed resource is a listen stream of
 * its own, which stays until the host unsubscribes. */
#include "call/bridge_priv.h"
#include "wire/member.h"

static struct lp_bridge_call *find_listening(struct lp_bridge *b, struct lp_span uri)
{
    for (struct lp_list *node = b->calls.next; node != &b->calls; node = node->next) {
        struct lp_bridge_call *c = LP_CONTAINER(node, struct lp_bridge_call, node);
        if (c->is_listening && lp_span_eq(lp_member(c->params, LP_SPAN("uri")), uri))
            return c;
    }
    return NULL;
}

static void on_acknowledged(void *ctx, struct lp_span uri)
{
    struct lp_bridge *b = ctx;
    struct lp_bridge_call *c = find_listening(b, uri);
    if (!c || c->is_ours)
        return;
    lp_bridge_send_result(b, c->id, LP_SPAN("{}"));
    c->is_ours = true;
}

void lp_bridge_acknowledged(struct lp_bridge *b, struct lp_span message)
{
    struct lp_span params = lp_member(message, LP_SPAN("params"));
    struct lp_span what = lp_member(params, LP_SPAN("notifications"));
    struct lp_span uris = lp_member(what, LP_SPAN("resourceSubscriptions"));
    if (lp_span_starts(uris, LP_SPAN("[")))
        lp_elements(uris, on_acknowledged, b);
}

/* --- the listen stream of one resource --- */

static void listen_again(struct lp_bridge_call *c)
{
    c->call = 0;
    lp_bridge_retry_later(c->bridge, c->tries);
}

static void on_listen_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_bridge_call *c = ctx;
    (void)call;
    if (result.len && c->is_ours) {
        listen_again(c); /* the server has ended it in order */
        return;
    }
    if (error.len && !c->is_ours)
        lp_bridge_send_error(c->bridge, c->id, error);
    else if (error.len)
        lp_bridge_say(c->bridge, "a subscription has ended: %.*s", (int)error.len, error.ptr);
    else
        lp_bridge_refuse(c->bridge, c->id, -32602,
            LP_SPAN("the server does not tell of changes of this resource"), lp_span(NULL, 0));
    lp_bridge_call_free(c);
}

static void on_listen_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_bridge_call *c = ctx;
    (void)call;
    if (why->kind == LP_FAILURE_NETWORK && c->tries < LP_BRIDGE_TRIES_MAX) {
        listen_again(c);
        return;
    }
    if (!c->is_ours)
        lp_bridge_refuse_failed(c->bridge, c->id, why, "");
    else if (why->kind != LP_FAILURE_CANCELLED)
        lp_bridge_say(
            c->bridge, "a subscription has ended: %.*s", (int)why->sentence.len, why->sentence.ptr);
    lp_bridge_call_free(c);
}

static const struct lp_call_ops LISTEN_OPS = {
    .answer = on_listen_answer,
    .failed = on_listen_failed,
};

static int listen_to(struct lp_bridge_call *c)
{
    struct lp_span uri = lp_member(c->params, LP_SPAN("uri"));
    struct lp_buf params;
    lp_buf_init(&params, LP_FETCH_BODY_MAX);
    int err = lp_buf_printf(
        &params, "{\"notifications\":{\"resourceSubscriptions\":[%.*s]}}", (int)uri.len, uri.ptr);
    struct lp_call_args args = {.method = LP_SPAN("subscriptions/listen"),
        .params = lp_buf_span(&params),
        .timeout_ms = UINT32_MAX,
        .ops = &LISTEN_OPS,
        .ctx = c};
    c->is_listening = true;
    c->tries++;
    if (!err)
        err = lp_client_request(c->bridge->client, &args, &c->call);
    lp_buf_release(&params);
    return err;
}

/* --- what the host asks --- */

static void set_level(struct lp_bridge_call *c)
{
    struct lp_bridge *b = c->bridge;
    if (lp_client_set_log_level(b->client, lp_member(c->params, LP_SPAN("level"))))
        lp_bridge_refuse(b, c->id, -32602,
            LP_SPAN("level is none of debug, info, notice, warning, error, critical, alert, "
                    "emergency"),
            lp_span(NULL, 0));
    else
        lp_bridge_send_result(b, c->id, LP_SPAN("{}"));
    lp_bridge_call_free(c);
}

static void subscribe(struct lp_bridge_call *c)
{
    struct lp_bridge *b = c->bridge;
    struct lp_span uri = lp_member(c->params, LP_SPAN("uri"));
    struct lp_bridge_call *other = find_listening(b, uri);
    bool is_done = other && other != c && other->is_ours;
    if (!lp_span_starts(uri, LP_SPAN("\"")))
        lp_bridge_refuse(b, c->id, -32602, LP_SPAN("uri is missing"), lp_span(NULL, 0));
    else if (is_done)
        lp_bridge_send_result(b, c->id, LP_SPAN("{}"));
    else {
        int err = listen_to(c);
        if (!err)
            return;
        lp_bridge_refuse(b, c->id, -32603, lp_span_str(lp_error_sentence(err)), lp_span(NULL, 0));
    }
    lp_bridge_call_free(c);
}

static void unsubscribe(struct lp_bridge_call *c)
{
    struct lp_bridge *b = c->bridge;
    struct lp_bridge_call *listening = find_listening(b, lp_member(c->params, LP_SPAN("uri")));
    if (listening) {
        if (listening->call)
            lp_call_cancel(b->client, listening->call, lp_span(NULL, 0));
        lp_bridge_call_free(listening);
    }
    lp_bridge_send_result(b, c->id, LP_SPAN("{}"));
    lp_bridge_call_free(c);
}

bool lp_bridge_translate(struct lp_bridge_call *c)
{
    switch (c->method) {
    case LP_RPC_SET_LEVEL:
        set_level(c);
        return true;
    case LP_RPC_RESOURCES_SUBSCRIBE:
        subscribe(c);
        return true;
    case LP_RPC_RESOURCES_UNSUBSCRIBE:
        unsubscribe(c);
        return true;
    default:
        return false;
    }
}
