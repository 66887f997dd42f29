/* The cookie jar (requirements [C1] to [C3]; cases COO-01 to COO-07): what one connection or one
 * session keeps of the cookies of one origin, so that a balancer which pins by cookie works for
 * clients that keep none.
 *
 * Host-only and origin-only: Domain, Path, SameSite and HttpOnly change nothing. Secure and the
 * name prefixes __Host- and __Secure- are honoured when a cookie comes; what is refused for them is
 * named to the caller, for the log. No I/O and no clock: bytes and wall time in, a Cookie value
 * out.
 *
 *   kept and packed alike, the longest since stored first, each
 *   expires 8 bytes big-endian (wall ms) | name length 2 | value length 2 | name | value */
#ifndef LP_MCP_JAR_H
#define LP_MCP_JAR_H

#include "base/buf.h"
#include "base/error.h"
#include "wire/uri.h"

enum {
    LP_JAR_COOKIES_MAX = 50,
    LP_JAR_PAIR_MAX = 4096, /* bytes of name=value */
    LP_JAR_ENTRY_BYTES = 12,
    LP_JAR_BYTES_MAX = LP_JAR_COOKIES_MAX * (LP_JAR_PAIR_MAX + LP_JAR_ENTRY_BYTES),
    LP_JAR_SESSION_BYTES_MAX = 8192, /* the gateway's, one for each session */
};

/* When a cookie goes: never by itself, or at once. */
#define LP_JAR_KEEPS UINT64_MAX
#define LP_JAR_GONE 0

/* What became of a Set-Cookie line. One row is the verdict and its words after "the cookie NAME".
 */
#define LP_JAR_VERDICTS(X)                                                                         \
    X(STORED, "was kept")                                                                          \
    X(REMOVED, "was removed: it has expired")                                                      \
    X(OTHER_ORIGIN, "was dropped: it came from another origin")                                    \
    X(MALFORMED, "was dropped: it has no name and value")                                          \
    X(TOO_LONG, "was dropped: its name and value are over the limit")                              \
    X(NOT_SECURE, "was dropped: it is Secure and came over http")                                  \
    X(BAD_PREFIX, "was dropped: it is not what its name promises (__Host- or __Secure-)")          \
    X(NO_ROOM, "was dropped: there is no room for it")

enum lp_jar_verdict {
#define X(name, words) LP_JAR_##name,
    LP_JAR_VERDICTS(X)
#undef X
};

/* The words of the table above. */
const char *lp_jar_words(enum lp_jar_verdict verdict);

/* Whether the drop is one that the user should read of: for Secure or a name's prefix. */
bool lp_jar_must_tell(enum lp_jar_verdict verdict);

struct lp_jar_entry {
    struct lp_span name;
    struct lp_span value;
    uint64_t expires_ms; /* wall; LP_JAR_KEEPS, LP_JAR_GONE */
};

struct lp_jar {
    struct lp_uri origin; /* without path and query; its parts are borrowed */
    char *bytes;
    size_t len;
    size_t cap;
    size_t max;
    uint32_t count;
    const struct lp_alloc *alloc; /* borrowed; NULL: the C library's memory */
};

/* An empty jar for one origin; nothing is allocated. Scheme, host and port of `origin` must live as
 * long as the jar. It holds up to `bytes_max` packed bytes (LP_JAR_BYTES_MAX keeps all that [C3]
 * allows). */
void lp_jar_init(struct lp_jar *jar, const struct lp_uri *origin, size_t bytes_max);

/* The same with memory from `alloc`, which must live as long as the jar. */
void lp_jar_init_in(struct lp_jar *jar, const struct lp_uri *origin, size_t bytes_max,
    const struct lp_alloc *alloc);

/* Empties it and gives the memory back; it may be used again (a new session starts with an empty
 * one). Harmless when done twice. */
void lp_jar_fini(struct lp_jar *jar);

/* What a Set-Cookie value from `from` means at this time; the jar stays as it is. *ret_entry (spans
 * in `line`) is set for every verdict but OTHER_ORIGIN and MALFORMED; it is fit for lp_jar_put
 * after STORED and REMOVED. */
enum lp_jar_verdict lp_jar_judge(const struct lp_jar *jar, const struct lp_uri *from,
    struct lp_span line, uint64_t wall_ms, struct lp_jar_entry *ret_entry);

/* Stores an entry as the newest in place of one of the same name, or only removes that one when it
 * has run out at `wall_ms`. Those longest since stored make room. LP_ETOO_LONG and LP_ENOMEM leave
 * the jar as it was. */
LP_MUST int lp_jar_put(struct lp_jar *jar, const struct lp_jar_entry *entry, uint64_t wall_ms);

/* Both in one: the value of a Set-Cookie field of any answer from `from`. *ret_name is the name to
 * tell with lp_jar_words; empty where none could be read. */
enum lp_jar_verdict lp_jar_store(struct lp_jar *jar, const struct lp_uri *from, struct lp_span line,
    uint64_t wall_ms, struct lp_span *ret_name);

/* Appends the value of the Cookie field for a request to `to`: the pairs of `configured` (the
 * user's own Cookie value, or empty) of which the jar has no cookie of that name, then the jar's.
 * Nothing to add for that origin: `configured` byte for byte. Appends all or nothing and asks for
 * room for three times `configured` and the packed bytes; LP_ELIMIT, LP_ENOMEM. When nothing was
 * appended and `configured` is empty, no Cookie field is to be sent. */
LP_MUST int lp_jar_write(struct lp_jar *jar, const struct lp_uri *to, uint64_t wall_ms,
    struct lp_span configured, struct lp_buf *out);

/* The cookies in the packed form, valid until the jar is changed. */
struct lp_span lp_jar_packed(const struct lp_jar *jar);

/* Appends one packed entry, with LP_JAR_GONE for a removal; LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_jar_pack(struct lp_buf *out, const struct lp_jar_entry *entry);

/* Puts packed entries, one after the other. LP_ESYNTAX when the bytes are no such entries (those
 * before are put), else as lp_jar_put. */
LP_MUST int lp_jar_unpack(struct lp_jar *jar, struct lp_span packed, uint64_t wall_ms);

#endif
