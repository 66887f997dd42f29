/* JSON-RPC: one message in, at most one answer out (wire document 2.1, 4.5).
 *
 * The id of an answer is the request's raw token. Batches are those of 2025-03-26: whether one is
 * allowed was decided before. What is not offered is -32601 with status 200, as legacy servers say
 * it. */
#include "serve/server_priv.h"
#include "serve/shared.h"
#include "serve/uris.h"
#include "wire/member.h"

enum { BATCH_MAX = 100 };

static const char *const VERSIONS[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
static const char *const LEVELS[LP_LEVEL_count] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

const char *lp_rpc_level(enum lp_level level)
{
    return LEVELS[level];
}

const char *lp_rpc_version(struct lp_span version)
{
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++)
        if (lp_span_eq(version, lp_span_str(VERSIONS[i])))
            return VERSIONS[i];
    return NULL;
}

/* --- answers --- */

void lp_rpc_begin_answer(struct lp_out *out, struct lp_span id)
{
    lp_out_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    lp_out_put(out, id.len ? id : LP_SPAN("null"));
}

void lp_rpc_write_error(struct lp_out *out, struct lp_span id, int code, const char *text)
{
    lp_rpc_begin_answer(out, id);
    lp_out_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    lp_out_quote(out, lp_span_str(text));
    lp_out_str(out, "}}");
}

void lp_rpc_error(
    struct lp_server *server, lp_id channel, struct lp_span id, int code, const char *text)
{
    struct lp_channel *ch = lp_channel_get(server, channel);
    lp_out_clear(&server->scratch);
    lp_rpc_write_error(&server->scratch, id, code, text);
    if (ch)
        lp_channel_answer(server, ch);
}

void lp_rpc_result(
    struct lp_server *server, lp_id channel, struct lp_span id, struct lp_span result)
{
    struct lp_out *out = &server->scratch;
    struct lp_channel *ch = lp_channel_get(server, channel);
    lp_out_clear(out);
    lp_rpc_begin_answer(out, id);
    lp_out_str(out, ",\"result\":");
    if (ch && ch->is_modern)
        lp_modern_write_result(server, ch, result, out);
    else
        lp_out_put(out, result);
    lp_out_str(out, "}");
    if (ch)
        lp_channel_answer(server, ch);
}

/* --- initialize --- */

void lp_rpc_write_server_info(const struct lp_server *server, struct lp_out *out)
{
    lp_out_str(out, "{\"name\":");
    lp_out_quote(out, server->args.name);
    lp_out_str(out, ",\"version\":");
    lp_out_quote(out, server->args.version);
    lp_out_str(out, "}");
}

/* A JSON string token without its quotes; escapes make it another text, which nothing here is. */
static struct lp_span unquoted(struct lp_span token)
{
    bool is_string = token.len >= 2 && token.ptr[0] == '"';
    return is_string ? lp_span(token.ptr + 1, token.len - 2) : LP_SPAN("");
}

static void take_capabilities(struct lp_session *session, struct lp_span message)
{
    struct lp_span params = lp_member(message, LP_SPAN("params"));
    struct lp_span can = lp_member(params, LP_SPAN("capabilities"));
    session->can_elicit = lp_member(can, LP_SPAN("elicitation")).len > 0;
    session->can_sample = lp_member(can, LP_SPAN("sampling")).len > 0;
    session->can_roots = lp_member(can, LP_SPAN("roots")).len > 0;
}

void lp_rpc_initialize(
    struct lp_server *server, const struct lp_message *message, struct lp_out *out)
{
    const struct lp_server_args *args = &server->args;
    const char *asked = lp_rpc_version(unquoted(message->env->protocol_version));
    bool is_old = message->session && message->session->is_old_sse;
    if (is_old && lp_span_eq(unquoted(message->env->protocol_version), LP_SPAN(LP_OLD_SSE_VERSION)))
        asked = LP_OLD_SSE_VERSION;
    const char *version = asked ? asked : VERSIONS[0];
    if (message->session) {
        message->session->version = version;
        take_capabilities(message->session, message->text);
    }
    lp_rpc_begin_answer(out, message->env->id);
    lp_out_printf(out, ",\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":{", version);
    lp_offer_capabilities(server->offer, out);
    lp_out_str(out, "},\"serverInfo\":");
    lp_rpc_write_server_info(server, out);
    if (args->instructions.len) {
        lp_out_str(out, ",\"instructions\":");
        lp_out_quote(out, args->instructions);
    }
    lp_out_str(out, "}}");
}

/* --- small methods --- */

static void set_level(struct lp_server *server, const struct lp_message *m)
{
    struct lp_span params = lp_member(m->text, LP_SPAN("params"));
    struct lp_span level = unquoted(lp_member(params, LP_SPAN("level")));
    for (uint32_t i = 0; i < LP_LEVEL_count; i++) {
        if (!lp_span_eq(level, lp_span_str(LEVELS[i])))
            continue;
        if (m->session)
            m->session->level = i;
        if (m->session && server->shared)
            lp_shared_save_level(server, m, i);
        else
            lp_rpc_result(server, m->channel, m->env->id, LP_SPAN("{}"));
        return;
    }
    lp_rpc_error(server, m->channel, m->env->id, -32602, "level must be one of RFC 5424's names");
}

static void subscribe(struct lp_server *server, const struct lp_message *m)
{
    char room[LP_SERVER_URI_MAX];
    size_t len;
    struct lp_span token = m->env->uri;
    if (!token.len || lp_json_unescape(token, room, sizeof room, &len) || !len ||
        lp_span_find(lp_span(room, len), '\0') < len) {
        lp_rpc_error(server, m->channel, m->env->id, -32602,
            "uri must be an address of at most 2,048 bytes");
        return;
    }
    int err = LP_OK;
    if (m->session && m->env->method == LP_RPC_RESOURCES_SUBSCRIBE)
        err = lp_uris_add(&m->session->subscriptions, lp_span(room, len));
    else if (m->session)
        lp_uris_remove(&m->session->subscriptions, lp_span(room, len));
    if (err)
        lp_rpc_error(server, m->channel, m->env->id, -32603,
            "this session has too many subscriptions; end some of them");
    else if (m->session && server->shared)
        lp_shared_save_subscription(
            server, m, lp_span(room, len), m->env->method == LP_RPC_RESOURCES_SUBSCRIBE);
    else
        lp_rpc_result(server, m->channel, m->env->id, LP_SPAN("{}"));
}

/* Elsewhere it opens a session; here there is one, which its stream has opened. */
static void initialize_old_sse(struct lp_server *server, const struct lp_message *m)
{
    lp_out_clear(&server->scratch);
    lp_rpc_initialize(server, m, &server->scratch);
    lp_channel_answer(server, lp_channel_get(server, m->channel));
}

static bool on_small_request(struct lp_server *server, const struct lp_message *m)
{
    switch (m->env->method) {
    case LP_RPC_INITIALIZE:
        if (!m->session || !m->session->is_old_sse)
            return false;
        initialize_old_sse(server, m);
        return true;
    case LP_RPC_PING:
        lp_rpc_result(server, m->channel, m->env->id, LP_SPAN("{}"));
        return true;
    case LP_RPC_SET_LEVEL:
        set_level(server, m);
        return true;
    case LP_RPC_RESOURCES_SUBSCRIBE:
    case LP_RPC_RESOURCES_UNSUBSCRIBE:
        if (!server->offer->has_subscriptions)
            return false;
        subscribe(server, m);
        return true;
    default:
        return false;
    }
}

void lp_rpc_message(struct lp_server *server, const struct lp_message *m)
{
    const struct lp_envelope *env = m->env;
    if (env->method == LP_RPC_NONE)
        lp_job_reply(server, m);
    else if (!env->has_id && env->method == LP_RPC_CANCELLED)
        lp_job_cancel(m);
    else if (env->has_id && !on_small_request(server, m) && !lp_offer_message(server, m))
        lp_rpc_error(server, m->channel, env->id, -32601, "Method not found");
}

/* --- batches --- */

struct batch {
    struct lp_server *server;
    const struct lp_message *whole;
    uint32_t count;
};

static void on_element(void *ctx, struct lp_span element)
{
    struct batch *b = ctx;
    struct lp_message m = *b->whole;
    struct lp_envelope env;
    if (b->count++ >= BATCH_MAX)
        return;
    int err = lp_envelope_scan(element, &env);
    bool is_message = !err && env.is_object &&
        (env.method != LP_RPC_NONE || env.has_result || env.has_error) &&
        (!env.has_id || env.id_is_valid);
    m.env = &env;
    m.text = element;
    if (is_message && lp_shared_forward(b->server, NULL, &m))
        return;
    if (is_message)
        lp_rpc_message(b->server, &m);
    else
        lp_rpc_error(b->server, m.channel, LP_SPAN(""), -32600, "Invalid Request");
}

void lp_rpc_batch(struct lp_server *server, const struct lp_message *whole)
{
    struct batch b = {.server = server, .whole = whole};
    lp_elements(whole->text, on_element, &b);
    if (b.count > BATCH_MAX)
        lp_rpc_error(
            server, whole->channel, LP_SPAN(""), -32600, "a batch holds at most 100 messages");
}
