/* Why an exchange, stream or connection ended. Every ending has one; the table is the enum, the
 * counter, the word in the log and the sentence in the manual. Errors (base/error.h) say why a
 * call failed; reasons say why something is over.
 *
 * X(name, is_error, http_status, jsonrpc_code, sentence)
 *   http_status  what the client gets when the reason ends a request before any answer; 0: none
 *   jsonrpc_code the code in the JSON-RPC error body; 0: the answer has no such body
 * Statuses follow requirements [G6]; codes the wire document 2.3 and 2.4. */
#ifndef LP_BASE_REASON_H
#define LP_BASE_REASON_H

#include <stdbool.h>

#define LP_REASONS(X)                                                                              \
    /* good endings */                                                                             \
    X(answered, 0, 0, 0, "the upstream's answer was passed on whole")                              \
    X(answered_here, 0, 0, 0, "Limpet itself answered, as asked")                                  \
    X(stream_ended, 0, 0, 0, "the upstream ended the stream")                                      \
    X(no_framing, 0, 0, 0, "the upstream's answer ended with its connection, without framing")     \
    X(client_left, 0, 0, 0, "the client closed the connection first")                              \
    X(idle, 0, 0, 0, "a connection without a request reached its idle limit")                      \
    X(stopping, 0, 503, -32603, "Limpet is stopping")                                              \
    X(replaced, 0, 0, 0, "a newer GET stream of the same session took its place")                  \
    X(replayed, 0, 0, 0, "the platform was told which instance to send the request to")            \
    /* the request is wrong */                                                                     \
    X(bad_http, 1, 400, -32600, "the request is not valid HTTP")                                   \
    X(head_too_large, 1, 431, -32600, "the request head is over the limit")                        \
    X(bad_expectation, 1, 417, -32600,                                                             \
        "the Expect header names something other than 100-continue")                               \
    X(bad_json, 1, 400, -32700, "Parse error: the body is not valid JSON")                         \
    X(bad_message, 1, 400, -32600, "the body is not one JSON-RPC message")                         \
    X(bad_batch, 1, 400, -32600, "a batch is not allowed here")                                    \
    X(body_too_large, 1, 413, -32600, "the body is over the limit")                                \
    X(replay_too_large, 1, 413, -32600,                                                            \
        "the body is, or may be, over the 1,000,000 bytes that the platform can replay")           \
    X(bad_media_type, 1, 415, -32600, "Content-Type must be application/json")                     \
    X(bad_session_header, 1, 400, -32600, "the session id header is given twice or is malformed")  \
    X(missing_session, 1, 400, -32000, "Bad Request: Mcp-Session-Id header is required")           \
    X(host_refused, 1, 403, -32000, "the Host header is not in the list of allowed hosts")         \
    X(hop_refused, 1, 403, -32000, "the mark of another Limpet is too old, or was used before")    \
    X(origin_refused, 1, 403, -32000, "the Origin header is not in the list of allowed origins")   \
    X(unknown_path, 1, 404, -32600, "no server is configured for this path")                       \
    X(path_refused, 1, 404, -32600,                                                                \
        "a rule has the path, but it may lead to an MCP path, or be read in two ways")             \
    X(method_not_allowed, 1, 405, -32000, "Method not allowed")                                    \
    X(looped, 1, 508, -32603,                                                                      \
        "the request came back to this gateway: a replica's address leads to it")                  \
    X(header_mismatch, 1, 400, -32020, "a header does not agree with the body")                    \
    X(missing_meta, 1, 400, -32602, "params._meta lacks a required key")                           \
    X(unknown_version, 1, 400, -32022, "Unsupported protocol version")                             \
    /* the session is not here: one neutral text for the client, one reason each for us */         \
    X(session_forged, 1, 404, -32001, "the session id is no ticket of ours or was altered")        \
    X(session_unknown_key, 1, 404, -32001, "the session id is sealed with a key we do not have")   \
    X(session_expired, 1, 404, -32001, "the session id is older than the age limit")               \
    X(session_other_server, 1, 404, -32001, "the session id belongs to another server entry")      \
    X(session_no_replica, 1, 404, -32001, "the session's replica is not in the fleet any more")    \
    X(session_owner_gone, 1, 404, -32001, "the session's replica is gone")                         \
    X(session_lost, 1, 404, -32001, "the session's replica does not know the session")             \
    X(session_closed, 1, 404, -32001, "the session's stream was closed")                           \
    X(task_unknown, 1, 200, -32602, "Unknown task")                                                \
    X(session_no_owner, 1, 404, -32001, "the session id does not begin with an owner's id")        \
    X(session_passed_on, 1, 404, -32001,                                                           \
        "the request was passed on once already, and the session is not here")                     \
    X(challenged, 1, 401, -32000, "the server asks for credentials")                               \
    /* the upstream is in trouble */                                                               \
    X(owner_in_doubt, 1, 503, -32603, "the session's replica cannot be reached just now")          \
    X(peers_unsettled, 1, 503, -32603,                                                             \
        "the session's owner is not known, and the peers are still being looked for")              \
    X(owner_busy, 1, 503, -32603,                                                                  \
        "as many requests as may (waiting_max) wait for the session's replica already")            \
    X(no_replica_up, 1, 503, -32603, "no replica can take a new session")                          \
    X(store_away, 1, 503, -32603, "the store of the sessions cannot be reached just now")          \
    X(too_many_sessions, 1, 429, -32603,                                                           \
        "this principal has as many sessions as may be, and all of them are in use")               \
    X(not_taken, 1, 503, -32603, "the replica that this message is for did not take it in time")   \
    X(over_capacity, 1, 503, -32603, "a limit of Limpet itself was reached")                       \
    X(upstream_broke, 1, 502, -32603,                                                              \
        "the replica's connection broke before its answer was whole")                              \
    X(upstream_garbled, 1, 502, -32603, "the replica's answer is not valid HTTP")                  \
    X(upstream_stalled, 1, 504, -32603,                                                            \
        "the replica stopped in the middle of a request or of its answer")                         \
    X(upstream_id_too_long, 1, 502, -32603, "the replica's session id is over 512 bytes")          \
    X(upstream_id_bad, 1, 502, -32603,                                                             \
        "the replica's session id holds bytes that are not allowed")                               \
    X(endpoint_refused, 1, 502, -32603, "the endpoint event names no address that may be used")    \
    X(first_byte_timeout, 1, 504, -32603, "no answer from the replica in time")                    \
    X(request_timeout, 1, 408, -32600, "the request did not arrive in time")                       \
    X(reader_stalled, 1, 0, 0, "the client did not read for too long")                             \
    X(client_sent_more, 1, 0, 0, "the client sent more than may wait")                             \
    X(out_of_memory, 1, 503, -32603, "out of memory")

enum lp_reason {
    LP_REASON_none,
#define X(name, is_error, status, code, sentence) LP_REASON_##name,
    LP_REASONS(X)
#undef X
        LP_REASON_count
};

struct lp_reason_info {
    const char *name;
    bool is_error;
    int http_status;
    int jsonrpc_code;
    const char *sentence;
};

/* The row of a reason; that of LP_REASON_none has the name "none". */
const struct lp_reason_info *lp_reason_info(enum lp_reason reason);

/* The text that a client may see: the sentence, but "Session not found" for every reason with
 * code -32001, so that a client learns nothing about why (requirements [G6]). */
const char *lp_reason_public(enum lp_reason reason);

#endif
