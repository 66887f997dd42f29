/* What a server offers: the lists, and which handler a request means (serve/server.h).
 *
 * Names are compared as they mean, escapes resolved; addresses exactly, then by template. */
#include "serve/server_priv.h"
#include "serve/uri_template.h"

enum { NOT_FOUND = -32002, INVALID_PARAMS = -32602 };

/* --- initialize --- */

static void put_capability(struct lp_out *out, const char *name, const char *more)
{
    lp_out_printf(out, ",\"%s\":{%s}", name, more);
}

void lp_offer_capabilities(const struct lp_offer *offer, struct lp_out *out)
{
    const char *changes = offer->lists_change ? "\"listChanged\":true" : "";
    lp_out_str(out, "\"logging\":{}");
    if (offer->tool_count)
        put_capability(out, "tools", changes);
    if (offer->prompt_count)
        put_capability(out, "prompts", changes);
    if (offer->complete)
        put_capability(out, "completions", "");
    if (!offer->resource_count)
        return;
    lp_out_printf(out, ",\"resources\":{\"subscribe\":%s%s}",
        offer->has_subscriptions ? "true" : "false",
        offer->lists_change ? ",\"listChanged\":true" : "");
}

/* --- lists --- */

static void put_member(struct lp_out *out, const char *name, const char *text)
{
    if (!text)
        return;
    lp_out_printf(out, ",\"%s\":", name);
    lp_out_quote(out, lp_span_str(text));
}

static void put_raw(struct lp_out *out, const char *name, const char *json)
{
    lp_out_printf(out, ",\"%s\":", name);
    lp_out_str(out, json);
}

static void begin_entry(struct lp_out *out, const char *name)
{
    if (out->buf.len && lp_span_ends(lp_out_span(out), LP_SPAN("}")))
        lp_out_str(out, ",");
    lp_out_str(out, "{\"name\":");
    lp_out_quote(out, lp_span_str(name));
}

static void put_tools(const struct lp_offer *offer, struct lp_out *out)
{
    lp_out_str(out, "{\"tools\":[");
    for (uint32_t i = 0; i < offer->tool_count; i++) {
        const struct lp_tool *tool = &offer->tools[i];
        begin_entry(out, tool->name);
        put_member(out, "description", tool->description);
        put_raw(out, "inputSchema", tool->input_schema);
        if (tool->more) {
            lp_out_str(out, ",");
            lp_out_str(out, tool->more);
        }
        lp_out_str(out, "}");
    }
    lp_out_str(out, "]}");
}

static void put_resources(const struct lp_offer *offer, bool templates, struct lp_out *out)
{
    lp_out_str(out, templates ? "{\"resourceTemplates\":[" : "{\"resources\":[");
    for (uint32_t i = 0; i < offer->resource_count; i++) {
        const struct lp_resource *resource = &offer->resources[i];
        if (lp_uri_is_template(lp_span_str(resource->uri)) != templates)
            continue;
        begin_entry(out, resource->name);
        put_member(out, templates ? "uriTemplate" : "uri", resource->uri);
        put_member(out, "description", resource->description);
        put_member(out, "mimeType", resource->mime_type);
        lp_out_str(out, "}");
    }
    lp_out_str(out, "]}");
}

static void put_prompts(const struct lp_offer *offer, struct lp_out *out)
{
    lp_out_str(out, "{\"prompts\":[");
    for (uint32_t i = 0; i < offer->prompt_count; i++) {
        const struct lp_prompt *prompt = &offer->prompts[i];
        begin_entry(out, prompt->name);
        put_member(out, "description", prompt->description);
        put_raw(out, "arguments", prompt->arguments);
        lp_out_str(out, "}");
    }
    lp_out_str(out, "]}");
}

static void answer_list(struct lp_server *server, const struct lp_message *m)
{
    struct lp_out out;
    lp_out_init(&out);
    if (m->env->method == LP_RPC_TOOLS_LIST)
        put_tools(server->offer, &out);
    else if (m->env->method == LP_RPC_PROMPTS_LIST)
        put_prompts(server->offer, &out);
    else
        put_resources(server->offer, m->env->method == LP_RPC_RESOURCE_TEMPLATES_LIST, &out);
    if (out.failed)
        lp_rpc_error(server, m->channel, m->env->id, -32603, "out of memory");
    else
        lp_rpc_result(server, m->channel, m->env->id, lp_out_span(&out));
    lp_out_release(&out);
}

/* --- calls --- */

static void refuse(struct lp_server *server, const struct lp_message *m, int code, const char *text)
{
    lp_rpc_error(server, m->channel, m->env->id, code, text);
}

const struct lp_tool *lp_offer_find_tool(const struct lp_offer *offer, struct lp_span name)
{
    for (uint32_t i = 0; name.len && i < offer->tool_count; i++)
        if (lp_json_string_is(name, lp_span_str(offer->tools[i].name)))
            return &offer->tools[i];
    return NULL;
}

static void call_tool(struct lp_server *server, const struct lp_message *m)
{
    const struct lp_tool *tool = lp_offer_find_tool(server->offer, m->env->name);
    if (tool)
        lp_job_begin(server, m, &tool->handler, NULL);
    else
        refuse(server, m, INVALID_PARAMS, "Unknown tool");
}

static void get_prompt(struct lp_server *server, const struct lp_message *m)
{
    const struct lp_offer *offer = server->offer;
    for (uint32_t i = 0; i < offer->prompt_count; i++) {
        const struct lp_prompt *prompt = &offer->prompts[i];
        if (!m->env->name.len || !lp_json_string_is(m->env->name, lp_span_str(prompt->name)))
            continue;
        lp_job_begin(server, m, &prompt->handler, NULL);
        return;
    }
    refuse(server, m, INVALID_PARAMS, "Unknown prompt");
}

const struct lp_resource *lp_offer_find_resource(const struct lp_offer *offer, struct lp_span uri)
{
    for (uint32_t i = 0; i < offer->resource_count; i++)
        if (lp_span_eq(lp_span_str(offer->resources[i].uri), uri))
            return &offer->resources[i];
    for (uint32_t i = 0; i < offer->resource_count; i++) {
        struct lp_span text = lp_span_str(offer->resources[i].uri);
        if (lp_uri_is_template(text) && lp_uri_template_fits(text, uri))
            return &offer->resources[i];
    }
    return NULL;
}

static void read_resource(struct lp_server *server, const struct lp_message *m)
{
    char room[LP_SERVER_URI_MAX];
    size_t len;
    struct lp_span token = m->env->uri;
    if (!token.len || lp_json_unescape(token, room, sizeof room, &len)) {
        refuse(server, m, INVALID_PARAMS, "uri must be an address of at most 2,048 bytes");
        return;
    }
    const struct lp_resource *resource = lp_offer_find_resource(server->offer, lp_span(room, len));
    if (resource)
        lp_job_begin(server, m, &resource->handler, resource);
    else
        refuse(server, m, m->is_modern ? INVALID_PARAMS : NOT_FOUND, "Resource not found");
}

bool lp_offer_message(struct lp_server *server, const struct lp_message *m)
{
    const struct lp_offer *offer = server->offer;
    bool is_list = false;
    void (*answer)(struct lp_server *, const struct lp_message *) = NULL;
    switch (m->env->method) {
    case LP_RPC_TOOLS_LIST:
        is_list = offer->tool_count > 0;
        break;
    case LP_RPC_RESOURCES_LIST:
    case LP_RPC_RESOURCE_TEMPLATES_LIST:
        is_list = offer->resource_count > 0;
        break;
    case LP_RPC_PROMPTS_LIST:
        is_list = offer->prompt_count > 0;
        break;
    case LP_RPC_TOOLS_CALL:
        answer = offer->tool_count ? call_tool : NULL;
        break;
    case LP_RPC_RESOURCES_READ:
        answer = offer->resource_count ? read_resource : NULL;
        break;
    case LP_RPC_PROMPTS_GET:
        answer = offer->prompt_count ? get_prompt : NULL;
        break;
    case LP_RPC_COMPLETE:
        if (offer->complete)
            lp_job_begin(server, m, offer->complete, NULL);
        return offer->complete != NULL;
    default:
        return false;
    }
    if (is_list)
        answer_list(server, m);
    else if (answer)
        answer(server, m);
    return is_list || answer;
}
