/* The routing decision (gate/route.h): the ticket routes, the fleet's state only says whether its
 * owner can be asked. Order matters: what needs no session comes first, then whether an id is
 * there, then what became of it, then how its owner is. */
#include "gate/route.h"

static struct lp_verdict answer(enum lp_reason reason)
{
    return (struct lp_verdict){.kind = LP_VERDICT_ANSWER, .reason = reason};
}

static struct lp_verdict go(enum lp_verdict_kind kind, const struct lp_route_view *view)
{
    if (!view->any_up)
        return answer(LP_REASON_no_replica_up);
    return (struct lp_verdict){.kind = kind};
}

/* The session cannot be served: why it is so is for the log, the client always sees the same 404.
 * A client without credentials is sent to log in first where the server wants that. */
static struct lp_verdict lost(
    const struct lp_route_facts *facts, const struct lp_route_view *view, enum lp_reason reason)
{
    if (view->challenges && !facts->has_credential)
        return answer(LP_REASON_challenged);
    return answer(facts->is_task ? LP_REASON_task_unknown : reason);
}

static enum lp_reason reason_of_id(enum lp_id_state id)
{
    switch (id) {
    case LP_ID_UNKNOWN_KEY:
        return LP_REASON_session_unknown_key;
    case LP_ID_EXPIRED:
        return LP_REASON_session_expired;
    case LP_ID_OTHER_SERVER:
        return LP_REASON_session_other_server;
    case LP_ID_NO_OWNER:
        return LP_REASON_session_no_owner;
    case LP_ID_NONE:
    case LP_ID_GOOD:
    case LP_ID_FORGED:
        break;
    }
    return LP_REASON_session_forged;
}

static struct lp_verdict to_replica(
    const struct lp_route_facts *facts, const struct lp_route_view *view, enum lp_verdict_kind kind)
{
    if (!view->owner_known && view->unsettled && !facts->was_passed)
        return answer(LP_REASON_peers_unsettled);
    if (!view->owner_known)
        return lost(facts, view, LP_REASON_session_no_replica);
    if (view->owner_state == LP_REPLICA_GONE)
        return lost(facts, view, LP_REASON_session_owner_gone);
    if (view->owner_state == LP_REPLICA_DOUBT && view->owner_unreachable)
        return answer(LP_REASON_owner_in_doubt);
    return (struct lp_verdict){.kind = kind, .replica = view->owner};
}

/* The session is another sidecar's. A request is passed on once, never twice: who gets it then and
 * has no such session says so ([S3]). What the platform cannot replay goes to a peer itself ([S5]).
 */
static struct lp_verdict to_other(
    const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    if (facts->was_passed)
        return lost(facts, view, LP_REASON_session_passed_on);
    if (view->replays && !facts->is_too_large)
        return (struct lp_verdict){.kind = LP_VERDICT_REPLAY};
    if (view->replays && !view->owner_known && !view->unsettled)
        return answer(LP_REASON_replay_too_large);
    return to_replica(facts, view, LP_VERDICT_FORWARD_PEER);
}

static struct lp_verdict to_owner(
    const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    if (facts->id != LP_ID_GOOD)
        return lost(facts, view, reason_of_id(facts->id));
    if (facts->stream_closed)
        return lost(facts, view, LP_REASON_session_closed);
    return view->owner_is_other ? to_other(facts, view)
                                : to_replica(facts, view, LP_VERDICT_FORWARD);
}

/* The message address of old SSE takes POSTs only; but that its session is lost is told whatever
 * the method ([G6]). */
static struct lp_verdict to_message_address(
    const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    struct lp_verdict verdict = to_owner(facts, view);
    bool is_lost = verdict.kind == LP_VERDICT_ANSWER &&
        verdict.reason != LP_REASON_owner_in_doubt && verdict.reason != LP_REASON_peers_unsettled;
    return facts->method == LP_METHOD_POST || is_lost ? verdict
                                                      : answer(LP_REASON_method_not_allowed);
}

static struct lp_verdict without_id(
    const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    bool opens_stream = facts->method == LP_METHOD_GET &&
        (facts->door == LP_DOOR_SSE || (view->sse_configured && view->sse_on_mcp_path));
    if (opens_stream)
        return go(LP_VERDICT_NEW_STREAM, view);
    if (facts->door == LP_DOOR_SSE)
        return answer(facts->method == LP_METHOD_POST ? LP_REASON_missing_session
                                                      : LP_REASON_method_not_allowed);
    if (view->mints_ids == LP_YES)
        return lost(facts, view, LP_REASON_missing_session);
    return go(LP_VERDICT_ANY, view);
}

static struct lp_verdict judge(const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    if (facts->method == LP_METHOD_OPTIONS || facts->door == LP_DOOR_PASS ||
        (facts->door == LP_DOOR_METADATA && facts->method == LP_METHOD_GET))
        return go(LP_VERDICT_ANY, view);
    if (facts->door == LP_DOOR_METADATA)
        return answer(LP_REASON_method_not_allowed);
    if (facts->method != LP_METHOD_GET && facts->method != LP_METHOD_POST &&
        facts->method != LP_METHOD_DELETE)
        return answer(LP_REASON_method_not_allowed);
    if (facts->id_is_sse)
        return to_message_address(facts, view);
    if (facts->method == LP_METHOD_POST && facts->door == LP_DOOR_MCP) {
        if (facts->era == LP_ERA_MODERN)
            return facts->is_task ? to_owner(facts, view) : go(LP_VERDICT_ANY, view);
        if (facts->is_initialize)
            return go(LP_VERDICT_NEW_SESSION, view);
    }
    if (facts->id == LP_ID_NONE || facts->door == LP_DOOR_SSE)
        return without_id(facts, view);
    return to_owner(facts, view);
}

/* What is quickly done still is; a stream would only be cut, and a new session is better begun at a
 * gateway that stays (cases STR-13). */
struct lp_verdict lp_route(const struct lp_route_facts *facts, const struct lp_route_view *view)
{
    struct lp_verdict verdict = judge(facts, view);
    bool is_stream = facts->method == LP_METHOD_GET &&
        (facts->door == LP_DOOR_MCP || facts->door == LP_DOOR_SSE);
    bool lasts = is_stream || facts->is_listen || verdict.kind == LP_VERDICT_NEW_SESSION;
    bool is_answered = verdict.kind == LP_VERDICT_ANSWER || verdict.kind == LP_VERDICT_REPLAY;
    return view->stopping && lasts && !is_answered ? answer(LP_REASON_stopping) : verdict;
}

const char *lp_verdict_name(enum lp_verdict_kind kind)
{
    switch (kind) {
    case LP_VERDICT_FORWARD:
        return "forward";
    case LP_VERDICT_FORWARD_PEER:
        return "forward_peer";
    case LP_VERDICT_REPLAY:
        return "replay";
    case LP_VERDICT_NEW_SESSION:
        return "new_session";
    case LP_VERDICT_NEW_STREAM:
        return "new_stream";
    case LP_VERDICT_ANY:
        return "any";
    case LP_VERDICT_ANSWER:
        return "answer";
    }
    return "";
}
