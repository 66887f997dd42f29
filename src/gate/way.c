/* Which server entry and which door of it a request is for, by its target and the host that it
 * names: the MCP path, the old-SSE path, a well-known place, or a path that a rule passes. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "gate/pass.h"
#include "gate/public.h"

/* Whose metadata that is: a public URL says so, else the path behind the place; the place alone is
 * that of the only server. */
static struct lp_server_state *find_described(
    struct lp_engine *e, struct lp_span host, struct lp_span suffix)
{
    for (uint32_t i = 0; i < e->conf->server_count; i++)
        if (lp_public_has_path(e->servers[i].conf, host, suffix))
            return &e->servers[i];
    for (uint32_t i = 0; i < e->conf->server_count; i++)
        if (lp_span_eq(e->servers[i].conf->path, suffix))
            return &e->servers[i];
    return suffix.len == 0 && e->conf->server_count == 1 ? &e->servers[0] : NULL;
}

/* The server whose own path it is. */
static struct lp_server_state *find_mcp(
    struct lp_engine *e, struct lp_span path, enum lp_door *ret_door)
{
    for (uint32_t i = 0; i < e->conf->server_count; i++) {
        const struct lp_conf_server *conf = e->servers[i].conf;
        bool is_mcp = lp_span_eq(path, conf->path);
        if (!is_mcp && !(conf->sse_path.len && lp_span_eq(path, conf->sse_path)))
            continue;
        *ret_door = is_mcp ? LP_DOOR_MCP : LP_DOOR_SSE;
        return &e->servers[i];
    }
    return NULL;
}

/* The server whose rule fits best; among equals the first. */
static struct lp_server_state *find_passed(
    struct lp_engine *e, struct lp_span path, const struct lp_conf_pass **ret_rule)
{
    struct lp_server_state *best = NULL;
    for (uint32_t i = 0; i < e->conf->server_count; i++) {
        const struct lp_conf_pass *rule = lp_pass_find(e->servers[i].conf, path);
        if (!rule || (best && rule->path.len <= (*ret_rule)->path.len))
            continue;
        best = &e->servers[i];
        *ret_rule = rule;
    }
    return best;
}

/* Whether the path could be taken for an MCP path: one of ours, or one at the replicas. */
static bool leads_to_mcp(const struct lp_engine *e, const struct lp_server_state *server,
    struct lp_span read, const struct lp_conf_pass *rule)
{
    for (uint32_t i = 0; i < e->conf->server_count; i++)
        if (lp_pass_leads_to(read, rule, e->conf->servers[i].path) ||
            lp_pass_leads_to(read, rule, e->conf->servers[i].sse_path))
            return true;
    for (uint32_t i = 0; i < server->fleet.count; i++)
        if (lp_pass_leads_to(read, rule, server->fleet.replicas[i].conf->path))
            return true;
    return lp_pass_leads_to(read, rule, server->conf->sse_upstream);
}

static enum lp_reason judge_passed(
    const struct lp_engine *e, struct lp_exchange *x, const struct lp_conf_pass *rule)
{
    struct lp_span read, path = x->request.path;
    char *room = lp_arena_alloc(&x->arena, path.len);
    if (!room)
        return LP_REASON_out_of_memory;
    bool is_clear = lp_pass_read(path, room, &read) && !leads_to_mcp(e, x->server, read, rule);
    return is_clear ? LP_REASON_none : LP_REASON_path_refused;
}

/* Sets the server and the door, and whether a rule pins the request. What a well-known place says
 * of a server is rewritten also where a rule has it. */
static enum lp_reason find_server(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_span place, suffix, path = x->request.path;
    const struct lp_conf_pass *rule = NULL;
    x->server = find_mcp(e, path, &x->door);
    if (x->server)
        return LP_REASON_none;
    x->door = LP_DOOR_METADATA;
    if (lp_public_split(path, &place, &suffix))
        x->server = find_described(e, x->host, suffix);
    if (x->server) {
        rule = lp_pass_find(x->server->conf, path);
    } else {
        x->door = LP_DOOR_PASS;
        x->server = find_passed(e, path, &rule);
    }
    x->is_pinned = rule && rule->to == LP_PASS_PINNED;
    if (!x->server)
        return LP_REASON_unknown_path;
    return x->door == LP_DOOR_PASS ? judge_passed(e, x, rule) : LP_REASON_none;
}

/* The authority of an absolute-form target. */
static struct lp_span authority_of(struct lp_span text, const struct lp_uri *target)
{
    struct lp_span rest = lp_span_from(text, target->scheme.len + 3);
    size_t to_path = lp_span_find(rest, '/'), to_query = lp_span_find(rest, '?');
    return lp_span(rest.ptr, to_path < to_query ? to_path : to_query);
}

enum lp_reason lp_way_find(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_uri target;
    if (lp_uri_parse_target(x->request.path, &target))
        return LP_REASON_bad_http;
    /* RFC 9112 3.2.2: a target that names its host outranks the Host field. */
    x->host = target.has_authority ? authority_of(x->request.path, &target)
                                   : lp_kept_value(&x->request, LP_FIELD_HOST);
    bool has_query = target.query.ptr == target.path.ptr + target.path.len + 1;
    x->asked = lp_span(target.path.ptr, target.path.len + (has_query ? 1 + target.query.len : 0));
    x->request.path = target.path;
    x->request.query = target.query;
    x->record.path = target.path;
    enum lp_reason reason = find_server(e, x);
    if (x->server)
        x->record.server = x->server->conf->name;
    return reason;
}
