/* Header field names and the character classes of HTTP (RFC 9110 section 5).
 *
 * A name that the engine acts on has a number, so that nobody compares strings twice. Comparison
 * is without regard to case. */
#ifndef LP_WIRE_FIELD_H
#define LP_WIRE_FIELD_H

#include "base/span.h"

#define LP_FIELDS(X)                                                                               \
    X(HOST, "host")                                                                                \
    X(CONTENT_LENGTH, "content-length")                                                            \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                      \
    X(CONNECTION, "connection")                                                                    \
    X(KEEP_ALIVE, "keep-alive")                                                                    \
    X(PROXY_CONNECTION, "proxy-connection")                                                        \
    X(PROXY_AUTHENTICATE, "proxy-authenticate")                                                    \
    X(PROXY_AUTHORIZATION, "proxy-authorization")                                                  \
    X(TE, "te")                                                                                    \
    X(TRAILER, "trailer")                                                                          \
    X(UPGRADE, "upgrade")                                                                          \
    X(EXPECT, "expect")                                                                            \
    X(ACCEPT, "accept")                                                                            \
    X(CONTENT_TYPE, "content-type")                                                                \
    X(CONTENT_ENCODING, "content-encoding")                                                        \
    X(CACHE_CONTROL, "cache-control")                                                              \
    X(ALLOW, "allow")                                                                              \
    X(DATE, "date")                                                                                \
    X(USER_AGENT, "user-agent")                                                                    \
    X(AUTHORIZATION, "authorization")                                                              \
    X(WWW_AUTHENTICATE, "www-authenticate")                                                        \
    X(COOKIE, "cookie")                                                                            \
    X(SET_COOKIE, "set-cookie")                                                                    \
    X(ORIGIN, "origin")                                                                            \
    X(VARY, "vary")                                                                                \
    X(ACCESS_CONTROL_REQUEST_HEADERS, "access-control-request-headers")                            \
    X(ACCESS_CONTROL_ALLOW_ORIGIN, "access-control-allow-origin")                                  \
    X(ACCESS_CONTROL_ALLOW_CREDENTIALS, "access-control-allow-credentials")                        \
    X(ACCESS_CONTROL_EXPOSE_HEADERS, "access-control-expose-headers")                              \
    X(FORWARDED, "forwarded")                                                                      \
    X(X_FORWARDED_FOR, "x-forwarded-for")                                                          \
    X(X_FORWARDED_PROTO, "x-forwarded-proto")                                                      \
    X(X_FORWARDED_HOST, "x-forwarded-host")                                                        \
    X(X_ACCEL_BUFFERING, "x-accel-buffering")                                                      \
    X(RETRY_AFTER, "retry-after")                                                                  \
    X(TRACEPARENT, "traceparent")                                                                  \
    X(TRACESTATE, "tracestate")                                                                    \
    X(LAST_EVENT_ID, "last-event-id")                                                              \
    X(MCP_SESSION_ID, "mcp-session-id")                                                            \
    X(MCP_PROTOCOL_VERSION, "mcp-protocol-version")                                                \
    X(MCP_METHOD, "mcp-method")                                                                    \
    X(MCP_NAME, "mcp-name")                                                                        \
    X(VIA, "via")                                                                                  \
    X(LIMPET_HOP, "limpet-hop")                                                                    \
    X(FLY_REPLAY, "fly-replay")                                                                    \
    X(FLY_REPLAY_SRC, "fly-replay-src")                                                            \
    X(FLY_REPLAY_FAILED, "fly-replay-failed")

enum lp_field_id {
    LP_FIELD_OTHER,
#define X(id, name) LP_FIELD_##id,
    LP_FIELDS(X)
#undef X
        LP_FIELD_count
};

struct lp_field {
    struct lp_span name;  /* as it came */
    struct lp_span value; /* without blanks around it */
    enum lp_field_id id;
};

/* LP_FIELD_OTHER for a name that is not in the list. */
enum lp_field_id lp_field_lookup(struct lp_span name);

/* The lower-case name; "" for LP_FIELD_OTHER. */
struct lp_span lp_field_name(enum lp_field_id id);

/* RFC 9110 5.6.2: one or more token characters. */
bool lp_field_is_token(struct lp_span s);

/* RFC 9110 5.5: visible bytes, 0x80-0xFF, space and tab; no CR, LF, NUL or other controls. */
bool lp_field_is_value(struct lp_span s);

/* How many such bytes are at the front of `s`. */
size_t lp_field_value_len(struct lp_span s);

/* Hop-by-hop by its name alone (RFC 9110 7.6.1): connection, keep-alive, proxy-*, te, trailer,
 * transfer-encoding, upgrade. */
bool lp_field_is_hop_by_hop(enum lp_field_id id);

/* Whether the comma separated `list` holds the token `word`, without regard to case. */
bool lp_field_list_has(struct lp_span list, struct lp_span word);

#endif
