/* What the user said of one MCP server: where it is and how to talk to it. Filled by the program
 * from flags, environment and mcp.json; only read afterwards. It owns all its text. */
#ifndef LP_CALL_TARGET_H
#define LP_CALL_TARGET_H

#include "base/arena.h"
#include "base/error.h"
#include "wire/uri.h"

enum {
    LP_TARGET_FIELDS_MAX = 32,
    LP_TARGET_TEXT_MAX = 65536,
    LP_TARGET_TIMEOUT_MS = 60000, /* a request without an answer, when nothing else is said */
};

enum lp_transport { LP_TRANSPORT_AUTO, LP_TRANSPORT_STREAMABLE_HTTP, LP_TRANSPORT_SSE };
enum lp_era_wish { LP_ERA_WISH_AUTO, LP_ERA_WISH_LEGACY, LP_ERA_WISH_MODERN };

/* A header field that goes with every request to the server. */
struct lp_target_field {
    struct lp_span name;
    struct lp_span value;
};

struct lp_target {
    struct lp_arena text;
    struct lp_span url; /* as given, without a fragment */
    struct lp_uri uri;  /* its parts; spans of `url` */
    uint16_t port;
    bool is_tls;
    uint32_t field_count;
    struct lp_target_field fields[LP_TARGET_FIELDS_MAX]; /* Authorization among them */
    bool cookie_jar;                                     /* [C1]: off unless asked for */
    bool suppress_notification_stream;                   /* [C7] */
    enum lp_transport transport;
    enum lp_era_wish era;
    uint32_t timeout_ms;
};

/* Everything off, time-out LP_TARGET_TIMEOUT_MS, no address yet. */
void lp_target_init(struct lp_target *target);
void lp_target_fini(struct lp_target *target);

/* An absolute http or https URL. LP_ESYNTAX: it is none, or holds a user name; LP_EUNSUPPORTED:
 * another scheme; LP_ENOMEM. */
LP_MUST int lp_target_set_url(struct lp_target *target, struct lp_span url);

/* Its scheme://host:port, as given. */
struct lp_span lp_target_origin(const struct lp_target *target);

/* Adds a field, or replaces the one of that name. LP_ESYNTAX: bytes that no field may hold, or a
 * name that the program sets itself (Host, Content-Length, Connection and the like, Mcp-*);
 * LP_ELIMIT; LP_ENOMEM. */
LP_MUST int lp_target_set_field(
    struct lp_target *target, struct lp_span name, struct lp_span value);

/* The same from a line "Name: value". */
LP_MUST int lp_target_set_field_line(struct lp_target *target, struct lp_span line);

/* "Authorization: Bearer <token>"; blanks and line ends around the token are dropped. */
LP_MUST int lp_target_set_bearer(struct lp_target *target, struct lp_span token);

/* Whether `uri` is of the server's own origin (requirements [C2]): scheme, host without case, port
 * with the scheme's default. */
bool lp_target_is_own(const struct lp_target *target, const struct lp_uri *uri);

#endif
