/* Requests of 2026-07-28 (wire document 7, 11.1): which they are, what is refused before anything
 * runs, and how their results differ from those of a session.
 *
 * Nothing is remembered from one to the next: version, capabilities and log level come with each in
 * params._meta. A session id that comes along is not looked at. Beyond that they take the same way
 * as a session's messages: offer.c finds the handler, job.c runs it, a channel without history
 * carries the answer, and whoever leaves it has cancelled the call (7.5). */
#include "base/error.h"
#include "mcp/reply.h"
#include "mcp/version.h"
#include "serve/mirror.h"
#include "serve/server_priv.h"
#include "wire/member.h"

#define META "io.modelcontextprotocol/"
#define LEGACY_LIST "\"2025-11-25\",\"2025-06-18\",\"2025-03-26\""

enum { NOT_FOUND = -32601, INTERNAL = -32603, NEEDS_CAPABILITY = -32021 };

/* --- which era, and what is wrong with it --- */

/* Those that a client may choose, newest first. */
static const char *versions(const struct lp_server *server)
{
    static const char *const LISTS[] = {
        [LP_ERAS_BOTH] = "[\"" LP_VERSION_MODERN "\"," LEGACY_LIST "]",
        [LP_ERAS_LEGACY] = "[" LEGACY_LIST "]",
        [LP_ERAS_MODERN] = "[\"" LP_VERSION_MODERN "\"]",
    };
    bool has_old_sse = server->args.sse_path.len && server->args.eras == LP_ERAS_BOTH;
    return has_old_sse ? LP_VERSIONS_JSON : LISTS[server->args.eras];
}

/* A refusal that names the versions there are, and the one that was asked for. */
static void refuse_version(struct lp_server *server, struct lp_request *r,
    const struct lp_envelope *env, struct lp_span requested)
{
    struct lp_out data;
    struct lp_reply reply = {.reason = LP_REASON_unknown_version, .id = env->id};
    lp_out_init(&data);
    lp_out_printf(&data, "{\"supported\":%s,\"requested\":", versions(server));
    lp_out_put(&data, requested.len && requested.ptr[0] == '"' ? requested : LP_SPAN("null"));
    lp_out_str(&data, "}");
    if (!data.failed)
        reply.data = lp_out_span(&data);
    lp_respond_reply(server, r, &reply);
    lp_out_release(&data);
}

static void refuse(struct lp_server *server, struct lp_request *r, const struct lp_envelope *env,
    enum lp_reason why, const char *detail)
{
    struct lp_reply reply = {.reason = why, .id = env->id, .detail = detail};
    if (why == LP_REASON_unknown_version)
        refuse_version(server, r, env, env->meta_version);
    else
        lp_respond_reply(server, r, &reply);
}

/* The arguments that a tool wants repeated in the head are there. */
static bool arguments_agree(struct lp_server *server, struct lp_request *r,
    const struct lp_envelope *env, const struct lp_head *head)
{
    char why[LP_MIRROR_WHY_MAX];
    const struct lp_tool *tool = lp_offer_find_tool(server->offer, env->name);
    struct lp_span params = lp_member(lp_buf_span(&r->in), LP_SPAN("params"));
    if (!tool ||
        lp_mirror_agrees(
            head, lp_span_str(tool->input_schema), lp_member(params, LP_SPAN("arguments")), why))
        return true;
    refuse(server, r, env, LP_REASON_header_mismatch, why);
    return false;
}

/* What a server of one era says to the other one. True: it was refused. */
static bool is_of_wrong_era(
    struct lp_server *server, struct lp_request *r, const struct lp_envelope *env, enum lp_era era)
{
    enum lp_server_eras eras = server->args.eras;
    if (era == LP_ERA_MODERN && eras == LP_ERAS_LEGACY)
        refuse_version(server, r, env, env->meta_version);
    else if (era == LP_ERA_LEGACY && eras == LP_ERAS_MODERN && env->method == LP_RPC_INITIALIZE)
        refuse_version(server, r, env, env->protocol_version);
    else if (era == LP_ERA_LEGACY && eras == LP_ERAS_MODERN)
        refuse(server, r, env, LP_REASON_missing_meta,
            "params._meta lacks io.modelcontextprotocol/protocolVersion");
    else
        return false;
    return true;
}

enum lp_modern_verdict lp_modern_judge(
    struct lp_server *server, struct lp_request *r, const struct lp_envelope *env)
{
    struct lp_head *head = &server->head;
    enum lp_era era = env->meta_version.len ? LP_ERA_MODERN : LP_ERA_LEGACY;
    const char *detail = NULL;
    enum lp_reason why = LP_REASON_none;
    lp_mirror_read(lp_buf_span(&r->mirror), head);
    if (server->args.eras != LP_ERAS_LEGACY)
        why = lp_version_judge(head, env, &era, &detail);
    if (why) {
        refuse(server, r, env, why, detail);
        return LP_MODERN_REFUSED;
    }
    if (is_of_wrong_era(server, r, env, era))
        return LP_MODERN_REFUSED;
    if (era == LP_ERA_LEGACY)
        return LP_MODERN_NO;
    if (env->method == LP_RPC_TOOLS_CALL && !arguments_agree(server, r, env, head))
        return LP_MODERN_REFUSED;
    return LP_MODERN_YES;
}

/* --- methods --- */

static void discover(struct lp_server *server, const struct lp_message *m)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_printf(&out, "{\"supportedVersions\":%s,\"capabilities\":{", versions(server));
    lp_offer_capabilities(server->offer, &out);
    if (server->offer->has_tasks)
        lp_out_str(&out, ",\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    lp_out_str(&out, "}");
    if (server->args.instructions.len) {
        lp_out_str(&out, ",\"instructions\":");
        lp_out_quote(&out, server->args.instructions);
    }
    lp_out_str(&out, "}");
    if (out.failed)
        lp_rpc_error(server, m->channel, m->env->id, INTERNAL, "out of memory");
    else
        lp_rpc_result(server, m->channel, m->env->id, lp_out_span(&out));
    lp_out_release(&out);
}

void lp_modern_message(struct lp_server *server, const struct lp_message *m)
{
    struct lp_channel *ch = lp_channel_get(server, m->channel);
    if (m->env->method == LP_RPC_DISCOVER)
        discover(server, m);
    else if (m->env->method == LP_RPC_LISTEN)
        lp_listen_begin(server, m);
    else if (!lp_task_message(server, m) && !lp_offer_message(server, m)) {
        ch->status = 404;
        lp_rpc_error(server, m->channel, m->env->id, NOT_FOUND, "Method not found");
    }
}

/* --- what a call is told in _meta --- */

struct lp_span lp_modern_meta(struct lp_span params, const char *name)
{
    return lp_member(lp_member(params, LP_SPAN("_meta")), lp_span_str(name));
}

enum lp_level lp_modern_level(struct lp_span params)
{
    struct lp_span meta = lp_member(params, LP_SPAN("_meta"));
    enum lp_level level = LP_LEVEL_DEBUG;
    while (level < LP_LEVEL_count &&
        !lp_member_is(meta, LP_SPAN(META "logLevel"), lp_span_str(lp_rpc_level(level))))
        level++;
    return level;
}

/* --- results --- */

static bool is_cacheable(enum lp_rpc_method method)
{
    switch (method) {
    case LP_RPC_DISCOVER:
    case LP_RPC_TOOLS_LIST:
    case LP_RPC_PROMPTS_LIST:
    case LP_RPC_RESOURCES_LIST:
    case LP_RPC_RESOURCE_TEMPLATES_LIST:
    case LP_RPC_RESOURCES_READ:
        return true;
    default:
        return false;
    }
}

/* How long a result is fresh, and for whom (7.7). What a resource says may change at any time, so
 * of that only its handler can promise something. */
static void put_freshness(const struct lp_server *server, const struct lp_channel *ch,
    struct lp_span result, struct lp_out *out)
{
    const struct lp_offer *offer = server->offer;
    bool is_list = ch->method != LP_RPC_RESOURCES_READ;
    if (!lp_member(result, LP_SPAN("ttlMs")).len)
        lp_out_printf(out, ",\"ttlMs\":%u", is_list ? offer->fresh_ms : 0);
    if (!lp_member(result, LP_SPAN("cacheScope")).len)
        lp_out_printf(
            out, ",\"cacheScope\":\"%s\"", is_list && offer->is_public ? "public" : "private");
}

static void put_member(struct lp_out *out, struct lp_span key, struct lp_span value)
{
    lp_out_str(out, ",");
    lp_out_put(out, key);
    lp_out_str(out, ":");
    lp_out_put(out, value);
}

static void put_meta_member(void *ctx, struct lp_span key, struct lp_span value)
{
    if (!lp_json_string_is(key, LP_SPAN(META "serverInfo")))
        put_member(ctx, key, value);
}

static void put_result_member(void *ctx, struct lp_span key, struct lp_span value)
{
    if (!lp_json_string_is(key, LP_SPAN("_meta")))
        put_member(ctx, key, value);
}

void lp_modern_write_result(struct lp_server *server, const struct lp_channel *ch,
    struct lp_span result, struct lp_out *out)
{
    bool is_typed = lp_member(result, LP_SPAN("resultType")).len > 0;
    lp_out_str(out, "{\"_meta\":{\"" META "serverInfo\":");
    lp_rpc_write_server_info(server, out);
    lp_members(lp_member(result, LP_SPAN("_meta")), put_meta_member, out);
    lp_out_str(out, "}");
    if (!is_typed)
        lp_out_str(out, ",\"resultType\":\"complete\"");
    lp_members(result, put_result_member, out);
    if (!is_typed && is_cacheable(ch->method))
        put_freshness(server, ch, result, out);
    lp_out_str(out, "}");
}

void lp_modern_lacks(
    struct lp_server *server, lp_id channel, struct lp_span id, const char *capabilities)
{
    struct lp_channel *ch = lp_channel_get(server, channel);
    struct lp_out *out = &server->scratch;
    lp_out_clear(out);
    lp_rpc_begin_answer(out, id);
    lp_out_printf(out,
        ",\"error\":{\"code\":%d,\"message\":\"Missing required client capability\","
        "\"data\":{\"requiredCapabilities\":",
        NEEDS_CAPABILITY);
    lp_out_str(out, capabilities);
    lp_out_str(out, "}}}");
    ch->status = 400; /* where the head has not left yet */
    lp_channel_answer(server, ch);
}
