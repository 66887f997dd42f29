/* The header rules as the public header has them (limpet.h; mcp/envelope.h, mcp/version.h,
 * wire/field.h). Of a request's fields only the three that the rules speak of are taken along, so
 * that any number of others may be there. */
#include "lib/glue.h"
#include "mcp/version.h"

_Static_assert((int)LIMPET_ERA_LEGACY == LP_ERA_LEGACY, "");
_Static_assert((int)LIMPET_ERA_MODERN == LP_ERA_MODERN, "");

static bool is_judged(enum lp_field_id id)
{
    return id == LP_FIELD_MCP_PROTOCOL_VERSION || id == LP_FIELD_MCP_METHOD ||
        id == LP_FIELD_MCP_NAME;
}

/* More of them than a head holds are not needed: two of a kind are refused as well as many. */
static void take_fields(const struct limpet_post *post, struct lp_head *head)
{
    for (size_t i = 0; i < post->field_count; i++) {
        enum lp_field_id id = lp_field_lookup(lp_lib_in(post->fields[i].name));
        if (is_judged(id) &&
            lp_head_add(head, id, lp_span_trim(lp_lib_in(post->fields[i].value))) != LP_OK)
            return;
    }
}

static enum lp_reason reason_of_scan(int err, const char **ret_detail)
{
    if (err == LP_EAMBIGUOUS) {
        *ret_detail = "a key of the message is given twice";
        return LP_REASON_bad_message;
    }
    if (err == LP_ELIMIT)
        *ret_detail = "the body is nested too deep";
    return LP_REASON_bad_json;
}

static enum lp_reason judge(const struct limpet_post *post, struct lp_envelope *env,
    enum lp_era *era, const char **ret_detail)
{
    struct lp_head head = {.is_request = true, .method = LP_METHOD_POST};
    int err = lp_envelope_scan(lp_lib_in(post->body), env);
    if (err)
        return reason_of_scan(err, ret_detail);
    if (env->has_id && !env->id_is_valid) {
        *ret_detail = "id must be a string or an integer";
        return LP_REASON_bad_message;
    }
    take_fields(post, &head);
    return lp_version_judge(&head, env, era, ret_detail);
}

static struct limpet_message message_of(const struct lp_envelope *env, enum lp_era era)
{
    return (struct limpet_message){.era = (enum limpet_era)era,
        .is_batch = env->is_batch,
        .is_initialize = env->method == LP_RPC_INITIALIZE,
        .is_listen = env->method == LP_RPC_LISTEN,
        .is_response = !env->is_batch && env->method == LP_RPC_NONE,
        .may_repeat = lp_rpc_is_repeatable(env->method),
        .id = lp_lib_out(env->id),
        .method = lp_rpc_method_name(env->method)};
}

bool limpet_post_judge(const struct limpet_post *post, struct limpet_message *ret_message,
    struct limpet_ending *ret_ending)
{
    struct lp_envelope env = {0};
    enum lp_era era = LP_ERA_LEGACY;
    const char *detail = NULL;
    enum lp_reason reason = judge(post, &env, &era, &detail);
    if (reason == LP_REASON_none) {
        *ret_message = message_of(&env, era);
        return true;
    }
    if (reason == LP_REASON_bad_json || !env.id_is_valid)
        env.id = lp_span(NULL, 0); /* of what is no JSON nothing was readable */
    *ret_message = (struct limpet_message){.method = "", .id = lp_lib_out(env.id)};
    *ret_ending = lp_lib_ending(reason, detail);
    return false;
}

bool limpet_field_is_name(struct limpet_span name)
{
    return lp_field_is_token(lp_lib_in(name));
}

bool limpet_field_is_value(struct limpet_span value)
{
    return lp_field_is_value(lp_lib_in(value));
}

bool limpet_field_is_hop_by_hop(struct limpet_span name)
{
    return lp_field_is_hop_by_hop(lp_field_lookup(lp_lib_in(name)));
}
