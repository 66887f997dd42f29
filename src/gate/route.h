/* Where a request goes: one pure function of what the request says and what is known of the fleet
 * (design 3; requirements [G1] to [G6], [S3], [S5]). The heart of the product. Nothing is looked up
 * in here and nothing is remembered. Its cases are a table in test/unit/route_cases.h. */
#ifndef LP_GATE_ROUTE_H
#define LP_GATE_ROUTE_H

#include "base/reason.h"
#include "mcp/version.h"
#include "wire/head.h"

/* What the id that the client sent turned out to be. */
enum lp_id_state {
    LP_ID_NONE,
    LP_ID_GOOD,
    LP_ID_FORGED,
    LP_ID_UNKNOWN_KEY,
    LP_ID_EXPIRED,
    LP_ID_OTHER_SERVER,
    LP_ID_NO_OWNER, /* of a sidecar: it does not begin with an owner's id */
};

/* Which door of the server entry the request came through. */
enum lp_door {
    LP_DOOR_MCP,      /* the MCP path: Streamable HTTP, modern */
    LP_DOOR_SSE,      /* the old-SSE path, and not the MCP path too */
    LP_DOOR_METADATA, /* a well-known place of the server: no session, no token */
    LP_DOOR_PASS,     /* a path that a rule passes: the same, any method */
};

enum lp_replica_state { LP_REPLICA_UP, LP_REPLICA_DOUBT, LP_REPLICA_GONE, LP_REPLICA_DRAINING };

enum lp_knowledge { LP_UNKNOWN, LP_YES, LP_NO };

struct lp_route_facts {
    enum lp_method method;
    enum lp_door door;
    enum lp_era era;     /* POST only */
    bool is_initialize;  /* POST only */
    bool id_is_sse;      /* the id came as the token of an old-SSE message address */
    bool has_credential; /* an Authorization header */
    enum lp_id_state id;
    bool stream_closed; /* old SSE: its stream was seen to close */
    bool is_listen;     /* subscriptions/listen: a stream without end */
    bool is_task;       /* modern: about a task, whose name is the id */
    bool was_passed;    /* a peer, or the platform, has passed it on once already */
    bool is_too_large;  /* the body is, or may be, more than a platform replays */
};

struct lp_route_view {
    bool owner_known;    /* the ticket's replica is in the fleet */
    uint32_t owner;      /* its index */
    bool owner_is_other; /* of a sidecar: another one's; then the index is a peer's */
    enum lp_replica_state owner_state;
    bool owner_unreachable; /* in doubt because connections to it time out */
    bool any_up;            /* at least one replica is not gone */
    bool sse_on_mcp_path;   /* a GET without id on the MCP path opens an old-SSE stream */
    bool sse_configured;
    enum lp_knowledge mints_ids;
    bool challenges; /* a 401 of this server was seen */
    bool stopping;   /* this gateway takes no new work that lasts */
    bool unsettled;  /* of a sidecar: the owner may be a peer that is not known yet */
    bool replays;    /* of a sidecar: the platform replays to other owners */
};

enum lp_verdict_kind {
    LP_VERDICT_FORWARD,      /* to `replica`, as part of a session */
    LP_VERDICT_NEW_SESSION,  /* to a replica picked for a new session */
    LP_VERDICT_NEW_STREAM,   /* the same for an old-SSE stream */
    LP_VERDICT_ANY,          /* to any replica, without a session id */
    LP_VERDICT_ANSWER,       /* answered here, for `reason` */
    LP_VERDICT_FORWARD_PEER, /* to the other Limpet `replica`, as part of its session */
    LP_VERDICT_REPLAY,       /* the platform is asked to send it to its owner */
};

struct lp_verdict {
    enum lp_verdict_kind kind;
    uint32_t replica;
    enum lp_reason reason;
};

/* The verdict. Total: every combination of facts and view has one. */
struct lp_verdict lp_route(const struct lp_route_facts *facts, const struct lp_route_view *view);

/* "forward" and so on; "" for no verdict. */
const char *lp_verdict_name(enum lp_verdict_kind kind);

#endif
