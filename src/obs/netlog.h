/* The network log of the client commands: what was really sent and received, as text lines.
 *
 *   2026-11-30T16:42:12.123Z 3 > POST http://127.0.0.1:3000/mcp
 *   2026-11-30T16:42:12.123Z 3 > mcp-session-id: #3fa2b1c9
 *   2026-11-30T16:42:12.123Z 3 > cookie: lb_affinity=#90d1e2ab
 *   2026-11-30T16:42:12.130Z 3 < 200 OK
 *   2026-11-30T16:42:12.131Z 3 < (body) 143 bytes: result of 7
 *
 * The number is that of the exchange; `>` was sent, `<` was received, `.` is said about it. Secrets
 * are never in it: credentials, cookie values, session ids and the values of a query are replaced
 * by a short keyed hash, so that equal values can be seen to be equal. Bodies are told by size and
 * kind, and in full only when asked for. No I/O: the lines go to a function. */
#ifndef LP_OBS_NETLOG_H
#define LP_OBS_NETLOG_H

#include "base/buf.h"

enum { LP_NETLOG_KEY_BYTES = 16, LP_NETLOG_LINE_MAX = 16384, LP_NETLOG_HASH_CHARS = 9 };

/* One line without its end; it lives until the call returns. */
typedef void (*lp_netlog_line_fn)(void *ctx, struct lp_span line);

struct lp_netlog {
    lp_netlog_line_fn line;
    void *ctx;
    unsigned char key[LP_NETLOG_KEY_BYTES];
    bool with_bodies;
    struct lp_buf room;
};

struct lp_netlog_field {
    struct lp_span name;
    struct lp_span value;
    bool is_secret; /* the user's own field: its value is hashed, whatever its name */
};

/* Where and when a line belongs. */
struct lp_netlog_at {
    uint64_t wall_ms;
    uint64_t number; /* of the exchange */
    bool is_sent;
};

/* `key`: random bytes; the same key gives the same hashes. */
void lp_netlog_init(struct lp_netlog *log, lp_netlog_line_fn line, void *ctx,
    const unsigned char key[LP_NETLOG_KEY_BYTES]);
void lp_netlog_fini(struct lp_netlog *log);

/* The first line of a head: "POST http://..." (its query redacted) or "200 OK". A line that finds
 * no memory is left out; so with all of these. `log` may be NULL: nothing happens. */
void lp_netlog_start_line(
    struct lp_netlog *log, struct lp_netlog_at at, struct lp_span word, struct lp_span rest);
/* One field of a head. */
void lp_netlog_field(
    struct lp_netlog *log, struct lp_netlog_at at, const struct lp_netlog_field *field);
/* A body or an event: `kind` is "body" or "event", `what` a few words about it without any secret.
 */
void lp_netlog_content(struct lp_netlog *log, struct lp_netlog_at at, const char *kind,
    struct lp_span what, struct lp_span bytes);
/* A sentence about the exchange. */
void lp_netlog_note(struct lp_netlog *log, struct lp_netlog_at at, struct lp_span sentence);

/* "#" and 8 hex digits of the keyed hash of `secret`, and a zero byte. */
void lp_netlog_hash(
    const struct lp_netlog *log, struct lp_span secret, char room[LP_NETLOG_HASH_CHARS + 1]);

/* Appends a field's value as the log shows it. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_netlog_redact_value(
    const struct lp_netlog *log, const struct lp_netlog_field *field, struct lp_buf *out);
/* Appends a URL with the values of its query hashed. */
LP_MUST int lp_netlog_redact_url(
    const struct lp_netlog *log, struct lp_span url, struct lp_buf *out);

#endif
