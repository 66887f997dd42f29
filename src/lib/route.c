/* The routing decision as the public header has it (limpet.h; gate/route.h). Numbers of one
 * vocabulary become those of the other by tables, so that each may get new ones by itself; a number
 * that the caller made up becomes the first of its list. */
#include "gate/route.h"

#include "base/error.h"
#include "lib/glue.h"

enum limpet_method limpet_method_of(struct limpet_span name)
{
    switch (lp_method_lookup(lp_lib_in(name))) {
    case LP_METHOD_GET:
        return LIMPET_METHOD_GET;
    case LP_METHOD_POST:
        return LIMPET_METHOD_POST;
    case LP_METHOD_DELETE:
        return LIMPET_METHOD_DELETE;
    case LP_METHOD_OPTIONS:
        return LIMPET_METHOD_OPTIONS;
    default:
        return LIMPET_METHOD_OTHER;
    }
}

enum limpet_id_state limpet_id_state_of(int open_result)
{
    switch (open_result) {
    case LIMPET_OK:
        return LIMPET_ID_GOOD;
    case LIMPET_EUNKNOWN_KEY:
        return LIMPET_ID_UNKNOWN_KEY;
    case LIMPET_EEXPIRED:
        return LIMPET_ID_EXPIRED;
    default:
        return LIMPET_ID_FORGED;
    }
}

#define PICK(table, number)                                                                        \
    table[(size_t)(number) < sizeof(table) / sizeof *(table) ? (size_t)(number) : 0]

static struct lp_route_facts facts_in(const struct limpet_facts *facts)
{
    static const enum lp_method METHODS[] = {[LIMPET_METHOD_OTHER] = LP_METHOD_OTHER,
        [LIMPET_METHOD_GET] = LP_METHOD_GET,
        [LIMPET_METHOD_POST] = LP_METHOD_POST,
        [LIMPET_METHOD_DELETE] = LP_METHOD_DELETE,
        [LIMPET_METHOD_OPTIONS] = LP_METHOD_OPTIONS};
    static const enum lp_id_state IDS[] = {[LIMPET_ID_NONE] = LP_ID_NONE,
        [LIMPET_ID_GOOD] = LP_ID_GOOD,
        [LIMPET_ID_FORGED] = LP_ID_FORGED,
        [LIMPET_ID_UNKNOWN_KEY] = LP_ID_UNKNOWN_KEY,
        [LIMPET_ID_EXPIRED] = LP_ID_EXPIRED,
        [LIMPET_ID_OTHER_SERVER] = LP_ID_OTHER_SERVER,
        [LIMPET_ID_NO_OWNER] = LP_ID_NO_OWNER};
    return (struct lp_route_facts){.method = PICK(METHODS, facts->method),
        .door = facts->door == LIMPET_DOOR_SSE ? LP_DOOR_SSE : LP_DOOR_MCP,
        .era = facts->era == LIMPET_ERA_MODERN ? LP_ERA_MODERN : LP_ERA_LEGACY,
        .is_initialize = facts->is_initialize,
        .is_listen = facts->is_listen,
        .id_is_sse = facts->id_is_sse,
        .has_credential = facts->has_credential,
        .id = PICK(IDS, facts->id),
        .stream_closed = facts->stream_closed,
        .was_passed = facts->was_passed,
        .is_too_large = facts->is_too_large};
}

static struct lp_route_view view_in(const struct limpet_view *view)
{
    static const enum lp_replica_state STATES[] = {[LIMPET_REPLICA_UP] = LP_REPLICA_UP,
        [LIMPET_REPLICA_DOUBT] = LP_REPLICA_DOUBT,
        [LIMPET_REPLICA_GONE] = LP_REPLICA_GONE,
        [LIMPET_REPLICA_DRAINING] = LP_REPLICA_DRAINING};
    static const enum lp_knowledge KNOWLEDGE[] = {
        [LIMPET_UNKNOWN] = LP_UNKNOWN, [LIMPET_YES] = LP_YES, [LIMPET_NO] = LP_NO};
    return (struct lp_route_view){.owner_known = view->owner_known,
        .owner = view->owner,
        .owner_is_other = view->owner_is_other,
        .unsettled = view->unsettled,
        .owner_state = PICK(STATES, view->owner_state),
        .owner_unreachable = view->owner_unreachable,
        .any_up = view->any_up,
        .sse_on_mcp_path = view->sse_on_mcp_path,
        .sse_configured = view->sse_configured,
        .mints_ids = PICK(KNOWLEDGE, view->mints_ids),
        .challenges = view->challenges,
        .stopping = view->stopping,
        .replays = view->replays};
}

struct limpet_verdict limpet_route(const struct limpet_facts *facts, const struct limpet_view *view)
{
    static const enum limpet_verdict_kind KINDS[] = {[LP_VERDICT_FORWARD] = LIMPET_FORWARD,
        [LP_VERDICT_NEW_SESSION] = LIMPET_NEW_SESSION,
        [LP_VERDICT_NEW_STREAM] = LIMPET_NEW_STREAM,
        [LP_VERDICT_ANY] = LIMPET_ANY,
        [LP_VERDICT_ANSWER] = LIMPET_ANSWER,
        [LP_VERDICT_FORWARD_PEER] = LIMPET_FORWARD_PEER,
        [LP_VERDICT_REPLAY] = LIMPET_REPLAY};
    struct lp_route_facts inner_facts = facts_in(facts);
    struct lp_route_view inner_view = view_in(view);
    struct lp_verdict verdict = lp_route(&inner_facts, &inner_view);
    struct limpet_verdict ret = {.kind = KINDS[verdict.kind], .replica = verdict.replica};
    if (verdict.kind == LP_VERDICT_ANSWER)
        ret.ending = lp_lib_ending(verdict.reason, NULL);
    return ret;
}
