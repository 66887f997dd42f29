/* The cases of lp_route, written once, as data: the unit test checks them, and `test_route --table`
 * prints them for the manual.
 *
 * X(what it says, method, door, era, initialize, sse id, credential, id, closed,
 *   owner known, owner state, unreachable, any up, sse: 0 off 1 own path 2 on the MCP path, mints,
 *   challenges, verdict, reason) */
#ifndef LP_TEST_ROUTE_CASES_H
#define LP_TEST_ROUTE_CASES_H

/* clang-format off */
#define ROUTE_CASES(X) \
  /* what needs no session */ \
  X("OPTIONS goes to any replica", \
    OPTIONS, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANY, none) \
  X("OPTIONS with all replicas gone", \
    OPTIONS, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 0, 0, YES, 0, ANSWER, no_replica_up) \
  X("PUT is refused", \
    PUT,     MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 0, ANSWER, method_not_allowed) \
  X("HEAD is refused", \
    HEAD,    MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, method_not_allowed) \
  X("an unknown method is refused", \
    OTHER,   MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, method_not_allowed) \
  X("metadata comes from any replica", \
    GET,     METADATA, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 1, ANY, none) \
  X("metadata with all replicas gone", \
    GET,     METADATA, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 0, 0, YES, 0, ANSWER, no_replica_up) \
  X("a preflight for metadata", \
    OPTIONS, METADATA, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANY, none) \
  X("nothing is posted to metadata", \
    POST,    METADATA, LEGACY, 1,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, method_not_allowed) \
  X("a rule's path takes any method", \
    DELETE,  PASS, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 1, ANY, none) \
  X("a rule's path with all replicas gone", \
    POST,    PASS, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 0, 0, YES, 0, ANSWER, no_replica_up) \
  X("modern goes to any replica", \
    POST, MCP, MODERN, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANY, none) \
  X("modern ignores a session id", \
    POST, MCP, MODERN, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, YES, 0, ANY, none) \
  X("modern with all replicas gone", \
    POST, MCP, MODERN, 0,0,0, NONE, 0, 0, UP, 0, 0, 0, YES, 0, ANSWER, no_replica_up) \
  X("initialize opens a session", \
    POST, MCP, LEGACY, 1,0,0, NONE, 0, 0, UP, 0, 1, 0, UNKNOWN, 0, NEW_SESSION, none) \
  X("initialize with a stale id is new", \
    POST, MCP, LEGACY, 1,0,0, EXPIRED, 0, 0, UP, 0, 1, 0, YES, 0, NEW_SESSION, none) \
  X("initialize with a live id is new", \
    POST, MCP, LEGACY, 1,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 0, NEW_SESSION, none) \
  X("initialize with all replicas gone", \
    POST, MCP, LEGACY, 1,0,0, NONE, 0, 0, UP, 0, 0, 0, YES, 0, ANSWER, no_replica_up) \
  /* within a session */ \
  X("POST goes to the owner", \
    POST,   MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 0, FORWARD, none) \
  X("GET goes to the owner", \
    GET,    MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 0, FORWARD, none) \
  X("DELETE goes to the owner", \
    DELETE, MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 0, FORWARD, none) \
  X("a good id is enough before we know", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, UNKNOWN, 0, FORWARD, none) \
  X("a draining owner keeps its sessions", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, DRAINING, 0, 1, 0, YES, 0, FORWARD, none) \
  X("an owner refused once is tried", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, DOUBT, 0, 1, 0, YES, 0, FORWARD, none) \
  X("an owner out of reach: 503", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, DOUBT, 1, 1, 0, YES, 0, ANSWER, owner_in_doubt) \
  X("... for GET too", \
    GET,  MCP, LEGACY, 0,0,0, GOOD, 0, 1, DOUBT, 1, 1, 0, YES, 0, ANSWER, owner_in_doubt) \
  X("... for DELETE too", \
    DELETE, MCP, LEGACY, 0,0,0, GOOD, 0, 1, DOUBT, 1, 1, 0, YES, 0, ANSWER, owner_in_doubt) \
  X("an owner gone: 404", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, GONE, 0, 1, 0, YES, 0, ANSWER, session_owner_gone) \
  X("... for GET too", \
    GET,  MCP, LEGACY, 0,0,0, GOOD, 0, 1, GONE, 0, 1, 0, YES, 0, ANSWER, session_owner_gone) \
  X("... for DELETE too", \
    DELETE, MCP, LEGACY, 0,0,0, GOOD, 0, 1, GONE, 0, 1, 0, YES, 0, ANSWER, session_owner_gone) \
  X("all gone is 404 for a session", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, GONE, 0, 0, 0, YES, 0, ANSWER, session_owner_gone) \
  X("an owner removed from the list: 404", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_no_replica) \
  /* ids that do not open */ \
  X("a forged id: 404", \
    POST, MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_forged) \
  X("... also before we know", \
    POST, MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, UNKNOWN, 0, ANSWER, session_forged) \
  X("... also where no ids are minted", \
    POST, MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, NO, 0, ANSWER, session_forged) \
  X("... for GET", \
    GET,  MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_forged) \
  X("... for DELETE", \
    DELETE, MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_forged) \
  X("a lost key: 404, logged apart", \
    POST, MCP, LEGACY, 0,0,0, UNKNOWN_KEY, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_unknown_key) \
  X("too old: 404", \
    POST, MCP, LEGACY, 0,0,0, EXPIRED, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, session_expired) \
  X("of another entry: 404", \
    POST, MCP, LEGACY, 0,0,0, OTHER_SERVER, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, \
    session_other_server) \
  X("log in first where it is asked for", \
    POST, MCP, LEGACY, 0,0,0, FORGED, 0, 0, UP, 0, 1, 0, YES, 1, ANSWER, challenged) \
  X("with a credential the 404 comes", \
    POST, MCP, LEGACY, 0,0,1, FORGED, 0, 0, UP, 0, 1, 0, YES, 1, ANSWER, session_forged) \
  X("an owner gone, log in first", \
    GET,  MCP, LEGACY, 0,0,0, GOOD, 0, 1, GONE, 0, 1, 0, YES, 1, ANSWER, challenged) \
  X("a good id passes without credential", \
    POST, MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 0, YES, 1, FORWARD, none) \
  /* no id */ \
  X("no id, ids are minted: 400", \
    POST, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, missing_session) \
  X("... for GET", \
    GET,  MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, missing_session) \
  X("... for DELETE", \
    DELETE, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 0, ANSWER, missing_session) \
  X("no id, log in first", \
    POST, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, YES, 1, ANSWER, challenged) \
  X("no id, not yet known: any replica", \
    POST, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, UNKNOWN, 0, ANY, none) \
  X("no id, none are minted: any replica", \
    POST, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, NO, 0, ANY, none) \
  X("GET without id: any replica's own 405", \
    GET,  MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 0, UNKNOWN, 0, ANY, none) \
  X("no id, all gone: 503", \
    POST, MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 0, 0, UNKNOWN, 0, ANSWER, no_replica_up) \
  /* old SSE */ \
  X("GET on the SSE path opens a stream", \
    GET,  SSE, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 0, NEW_STREAM, none) \
  X("... whatever id comes along", \
    GET,  SSE, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, NEW_STREAM, none) \
  X("... all gone: 503", \
    GET,  SSE, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 0, 1, YES, 0, ANSWER, no_replica_up) \
  X("a shared path: GET without id", \
    GET,  MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 2, YES, 0, NEW_STREAM, none) \
  X("a shared path: GET with id is no SSE", \
    GET,  MCP, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 2, YES, 0, FORWARD, none) \
  X("SSE elsewhere leaves the MCP path be", \
    GET,  MCP, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 0, ANSWER, missing_session) \
  X("a message goes to the stream's owner", \
    POST, SSE, LEGACY, 0,1,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, FORWARD, none) \
  X("... also an initialize", \
    POST, SSE, LEGACY, 1,1,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, FORWARD, none) \
  X("... also on a shared path", \
    POST, MCP, LEGACY, 1,1,0, GOOD, 0, 1, UP, 0, 1, 2, YES, 0, FORWARD, none) \
  X("a message after the stream closed: 404", \
    POST, SSE, LEGACY, 0,1,0, GOOD, 1, 1, UP, 0, 1, 1, YES, 0, ANSWER, session_closed) \
  X("a message with a forged token: 404", \
    POST, SSE, LEGACY, 0,1,0, FORGED, 0, 0, UP, 0, 1, 1, YES, 0, ANSWER, session_forged) \
  X("a message to an owner gone: 404", \
    POST, SSE, LEGACY, 0,1,0, GOOD, 0, 1, GONE, 0, 1, 1, YES, 0, ANSWER, session_owner_gone) \
  X("a message without a token: 400", \
    POST, SSE, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 0, ANSWER, missing_session) \
  X("... a header is no token", \
    POST, SSE, LEGACY, 0,0,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, ANSWER, missing_session) \
  X("DELETE on the SSE path: 405", \
    DELETE, SSE, LEGACY, 0,0,0, NONE, 0, 0, UP, 0, 1, 1, YES, 0, ANSWER, method_not_allowed) \
  X("GET with a token: 405", \
    GET,  SSE, LEGACY, 0,1,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, ANSWER, method_not_allowed) \
  X("... on a shared path too", \
    GET,  MCP, LEGACY, 0,1,0, GOOD, 0, 1, UP, 0, 1, 2, YES, 0, ANSWER, method_not_allowed) \
  X("... and while its owner is out of reach", \
    GET,  SSE, LEGACY, 0,1,0, GOOD, 0, 1, DOUBT, 1, 1, 1, YES, 0, ANSWER, method_not_allowed) \
  X("DELETE with a token: 405", \
    DELETE, SSE, LEGACY, 0,1,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, ANSWER, method_not_allowed) \
  X("GET with the token of a closed stream: 404", \
    GET,  SSE, LEGACY, 0,1,0, GOOD, 1, 1, UP, 0, 1, 1, YES, 0, ANSWER, session_closed) \
  X("GET with a token that is none: 404", \
    GET,  SSE, LEGACY, 0,1,0, FORGED, 0, 0, UP, 0, 1, 1, YES, 0, ANSWER, session_forged) \
  X("DELETE with the token of a dead owner: 404", \
    DELETE, SSE, LEGACY, 0,1,0, GOOD, 0, 1, GONE, 0, 1, 1, YES, 0, ANSWER, session_owner_gone) \
  X("OPTIONS with a token goes to any replica", \
    OPTIONS, SSE, LEGACY, 0,1,0, GOOD, 0, 1, UP, 0, 1, 1, YES, 0, ANY, none)
/* clang-format on */

/* The same for a sidecar ([S3] to [S5]; cases AFF-02, OWN-02): the session's owner is another
 * process.
 *
 * X(what, method, door, sse_id, init, id, other, known, state, unreach, replays, passed, large,
 *   verdict, reason)
 * other: the owner is another; known: it is a peer of the list, in `state`; passed: a peer or the
 * platform passed the request on already; large: the body is over what a platform replays. */
/* clang-format off */
#define ROUTE_PEER_CASES(X) \
  /* forward mode */ \
  X("POST of another's session: to the peer", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 0, 0, FORWARD_PEER, none) \
  X("... GET", \
    GET,    MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 0, 0, FORWARD_PEER, none) \
  X("... DELETE", \
    DELETE, MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 0, 0, FORWARD_PEER, none) \
  X("... a message of old SSE", \
    POST,   SSE, 1,0, GOOD, 1, 1, UP, 0, 0, 0, 0, FORWARD_PEER, none) \
  X("... a GET of its address stays 405", \
    GET,    SSE, 1,0, GOOD, 1, 1, UP, 0, 0, 0, 0, ANSWER, method_not_allowed) \
  X("... however large its body", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 0, 1, FORWARD_PEER, none) \
  X("initialize with another's id is new, here", \
    POST,   MCP, 0,1, GOOD, 1, 1, UP, 0, 0, 0, 0, NEW_SESSION, none) \
  X("... also when it was passed on", \
    POST,   MCP, 0,1, GOOD, 1, 1, UP, 0, 0, 1, 0, NEW_SESSION, none) \
  X("another's that is no peer: 404", \
    POST,   MCP, 0,0, GOOD, 1, 0, UP, 0, 0, 0, 0, ANSWER, session_no_replica) \
  X("... GET", \
    GET,    MCP, 0,0, GOOD, 1, 0, UP, 0, 0, 0, 0, ANSWER, session_no_replica) \
  X("... DELETE", \
    DELETE, MCP, 0,0, GOOD, 1, 0, UP, 0, 0, 0, 0, ANSWER, session_no_replica) \
  X("a peer that is gone: 404", \
    POST,   MCP, 0,0, GOOD, 1, 1, GONE, 0, 0, 0, 0, ANSWER, session_owner_gone) \
  X("a peer out of reach: 503", \
    POST,   MCP, 0,0, GOOD, 1, 1, DOUBT, 1, 0, 0, 0, ANSWER, owner_in_doubt) \
  X("passed on once already: 404, never twice", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 1, 0, ANSWER, session_passed_on) \
  X("... GET", \
    GET,    MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 1, 0, ANSWER, session_passed_on) \
  X("... DELETE", \
    DELETE, MCP, 0,0, GOOD, 1, 1, UP, 0, 0, 1, 0, ANSWER, session_passed_on) \
  X("... a message of old SSE", \
    POST,   SSE, 1,0, GOOD, 1, 1, UP, 0, 0, 1, 0, ANSWER, session_passed_on) \
  /* replay mode */ \
  X("replay: POST", \
    POST,   MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 0, 0, REPLAY, none) \
  X("replay: GET", \
    GET,    MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 0, 0, REPLAY, none) \
  X("replay: DELETE", \
    DELETE, MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 0, 0, REPLAY, none) \
  X("replay: a message of old SSE", \
    POST,   SSE, 1,0, GOOD, 1, 0, UP, 0, 1, 0, 0, REPLAY, none) \
  X("replay comes before a peer that is known", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 1, 0, 0, REPLAY, none) \
  X("... whatever is thought of that peer", \
    POST,   MCP, 0,0, GOOD, 1, 1, GONE, 0, 1, 0, 0, REPLAY, none) \
  X("replayed once already: 404, never twice", \
    POST,   MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 1, 0, ANSWER, session_passed_on) \
  X("... GET", \
    GET,    MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 1, 0, ANSWER, session_passed_on) \
  X("... DELETE", \
    DELETE, MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 1, 0, ANSWER, session_passed_on) \
  X("... also with a peer that is known", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 1, 1, 1, ANSWER, session_passed_on) \
  X("too large to replay: to the peer", \
    POST,   MCP, 0,0, GOOD, 1, 1, UP, 0, 1, 0, 1, FORWARD_PEER, none) \
  X("too large to replay, no peer: 413", \
    POST,   MCP, 0,0, GOOD, 1, 0, UP, 0, 1, 0, 1, ANSWER, replay_too_large) \
  X("initialize is never replayed", \
    POST,   MCP, 0,1, GOOD, 1, 0, UP, 0, 1, 0, 0, NEW_SESSION, none) \
  /* our own, and what is none */ \
  X("our own session: here", \
    POST,   MCP, 0,0, GOOD, 0, 1, UP, 0, 1, 0, 0, FORWARD, none) \
  X("... GET", \
    GET,    MCP, 0,0, GOOD, 0, 1, UP, 0, 1, 0, 0, FORWARD, none) \
  X("... DELETE", \
    DELETE, MCP, 0,0, GOOD, 0, 1, UP, 0, 1, 0, 0, FORWARD, none) \
  X("... that was passed on to us", \
    POST,   MCP, 0,0, GOOD, 0, 1, UP, 0, 1, 1, 0, FORWARD, none) \
  X("... of any size", \
    POST,   MCP, 0,0, GOOD, 0, 1, UP, 0, 1, 0, 1, FORWARD, none) \
  X("... whose server is gone: 404, no replay", \
    POST,   MCP, 0,0, GOOD, 0, 1, GONE, 0, 1, 0, 0, ANSWER, session_owner_gone) \
  X("an id without an owner: 404", \
    POST,   MCP, 0,0, NO_OWNER, 0, 0, UP, 0, 1, 0, 0, ANSWER, session_no_owner) \
  X("... GET", \
    GET,    MCP, 0,0, NO_OWNER, 0, 0, UP, 0, 1, 0, 0, ANSWER, session_no_owner) \
  X("... DELETE", \
    DELETE, MCP, 0,0, NO_OWNER, 0, 0, UP, 0, 1, 0, 0, ANSWER, session_no_owner) \
  X("... however large, 404", \
    POST,   MCP, 0,0, NO_OWNER, 0, 0, UP, 0, 1, 0, 1, ANSWER, session_no_owner) \
  X("no id: 400", \
    POST,   MCP, 0,0, NONE, 0, 0, UP, 0, 1, 0, 0, ANSWER, missing_session) \
  X("... GET", \
    GET,    MCP, 0,0, NONE, 0, 0, UP, 0, 1, 0, 0, ANSWER, missing_session) \
  X("... DELETE", \
    DELETE, MCP, 0,0, NONE, 0, 0, UP, 0, 1, 0, 0, ANSWER, missing_session)
/* clang-format on */

#endif
