/* liblimpet: what keeps an MCP session on the replica that owns it, as plain functions for programs
 * of your own (a server, a proxy, a client): tickets, owner ids, hop marks, the routing
 * decision, the cookie jar, server-sent events, and the header rules.
 *
 * Bytes in, answers out: no I/O, no clock, no entropy, no global. Time comes in as an argument
 * (wall clock in milliseconds since 1970), random bytes do too. An object may be used by one thread
 * at a time; different objects, and all other functions, by any number of them.
 *
 * Functions that can fail return LIMPET_OK or a negative LIMPET_E...; what they give (ret_...)
 * stays untouched on failure. Pointers must not be NULL unless it is said that they may. The manual
 * is limpet(3); link with `pkg-config --cflags --libs limpet`. Fit for C11 and C++17. */
#ifndef LIMPET_H
#define LIMPET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LIMPET_VERSION "0.1.0" /* of this header; limpet_version() is that of the library */

#ifdef __GNUC__
#define LIMPET_API __attribute__((visibility("default")))
#define LIMPET_MUST __attribute__((warn_unused_result)) /* the result must be looked at */
#else
#define LIMPET_API
#define LIMPET_MUST
#endif

/* Everything zero, in both languages: struct limpet_note note = LIMPET_ZERO; */
#ifdef __cplusplus
#define LIMPET_ZERO                                                                                \
    {                                                                                              \
    }
extern "C" {
#else
#define LIMPET_ZERO                                                                                \
    {                                                                                              \
        0                                                                                          \
    }
#endif

/* --- bytes, errors, memory: limpet(3) ------------------------------------------------------- */

/* Borrowed bytes, not ended by a zero byte. None are {NULL, 0}. */
struct limpet_span {
    const char *ptr;
    size_t len;
};

static inline struct limpet_span limpet_bytes(const char *ptr, size_t len)
{
    struct limpet_span span;
    span.ptr = ptr;
    span.len = len;
    return span;
}

/* Those of a string; NULL gives none. */
static inline struct limpet_span limpet_str(const char *str)
{
    return limpet_bytes(str, str ? strlen(str) : 0);
}

enum limpet_error {
    LIMPET_OK = 0,
    LIMPET_ENOMEM = -1,
    LIMPET_ELIMIT = -2, /* more than is taken, or than there is room for */
    LIMPET_ESYNTAX = -3,
    LIMPET_ERANGE = -4,
    LIMPET_ETOO_LONG = -7,
    LIMPET_EFORGED = -8,
    LIMPET_EUNKNOWN_KEY = -9,
    LIMPET_EEXPIRED = -10,
    LIMPET_ENOT_FOUND = -11,
    LIMPET_EEXISTS = -17,
};

/* A sentence without a full stop, and "NOMEM" and so on. For a number that is not in the list
 * "unknown error" and "UNKNOWN". */
LIMPET_API const char *limpet_error_sentence(int error);
LIMPET_API const char *limpet_error_name(int error);

/* The version of the library that is linked, "0.1.0". */
LIMPET_API const char *limpet_version(void);

/* Where an object's memory comes from. Where a function takes one, NULL means malloc and free. The
 * structure is copied; what `context` points to must live as long as the object.
 *
 * `resize` makes a block of `old_bytes` at `ptr` (NULL and 0: a new one) one of `bytes`, aligned as
 * malloc does. 0 gives it back and returns NULL. NULL for any other size means that there is no
 * memory; the block then stays as it was. */
struct limpet_alloc {
    void *(*resize)(void *context, void *ptr, size_t old_bytes, size_t bytes);
    void *context;
};

/* --- keys and tickets: limpet_ticket(3) ------------------------------------------------------ */

enum {
    LIMPET_KEY_BYTES = 32,
    LIMPET_KEY_ROOM = 46,
    LIMPET_KEY_ID_ROOM = 9,
    LIMPET_KEYS_MAX = 16,
    LIMPET_NONCE_BYTES = 24,
    LIMPET_TICKET_ROOM = 2048,
    LIMPET_UPSTREAM_ID_MAX = 512,
    LIMPET_TICKET_COOKIES_MAX = 512,
    LIMPET_SERVER_NAME_MAX = 64,
};

/* The keys that seal and open tickets: the first one seals, each one opens. */
struct limpet_keyring;

/* Writes 32 random bytes as a line of a key file, with its LF and a zero byte. */
LIMPET_API void limpet_key_write(
    const unsigned char key[LIMPET_KEY_BYTES], char room[LIMPET_KEY_ROOM]);

/* A ring from the text of a key file: one key of 32 bytes in base64 a line; empty lines and lines
 * that begin with '#' are skipped. LIMPET_ESYNTAX, LIMPET_EEXISTS (a key twice) and LIMPET_ELIMIT
 * (more than 16) with the number of the line at *ret_line; LIMPET_ENOT_FOUND when there is no key;
 * LIMPET_ENOMEM. `alloc` may be NULL. */
LIMPET_API LIMPET_MUST int limpet_keyring_new(const struct limpet_alloc *alloc,
    struct limpet_span key_file, struct limpet_keyring **ret_ring, uint32_t *ret_line);

/* Wipes the keys and gives the memory back. NULL is harmless. */
LIMPET_API void limpet_keyring_free(struct limpet_keyring *ring);

/* How many keys there are: at least one. */
LIMPET_API size_t limpet_keyring_count(const struct limpet_keyring *ring);

/* The public id of a key, 8 hexadecimal digits and a zero byte, fit for logs. LIMPET_ENOT_FOUND. */
LIMPET_API LIMPET_MUST int limpet_keyring_id(
    const struct limpet_keyring *ring, size_t index, char room[LIMPET_KEY_ID_ROOM]);

/* What a ticket is for. One kind never opens as another. */
enum limpet_ticket_kind {
    LIMPET_TICKET_HTTP = 'h', /* a session of Streamable HTTP */
    LIMPET_TICKET_SSE = 's',  /* a message address of old SSE */
    LIMPET_TICKET_TASK = 't',
    LIMPET_TICKET_STATE = 'r',
};

/* With what, for what and when tickets are sealed and opened. The two times are for opening. */
struct limpet_ticket_context {
    const struct limpet_keyring *ring;
    enum limpet_ticket_kind kind;
    struct limpet_span
        server; /* a name of yours, at most 64 bytes; tickets of others do not open */
    uint64_t wall_ms;
    uint64_t age_max_ms;
};

/* What goes into a ticket. */
struct limpet_note {
    struct limpet_span replica;     /* the owner's name, of any length; only its hash is kept */
    struct limpet_span upstream_id; /* its id for the session: 1 to 512 bytes */
    struct limpet_span cookies;     /* at most 512 bytes of yours (limpet_jar_packed), or none */
    uint64_t issued_ms;
    bool has_principal;
    unsigned char principal[8]; /* who may use it, a hash of yours */
};

/* What a ticket says. The spans lie in the room that it was opened in. */
struct limpet_ticket {
    struct limpet_span upstream_id;
    struct limpet_span cookies;
    uint64_t issued_ms;
    bool has_principal;
    unsigned char principal[8];
    unsigned char replica[8];  /* for limpet_ticket_names */
    uint32_t key_index;        /* of the key that sealed it */
    unsigned char session[16]; /* the same for each use of this ticket, and for no other one */
};

/* Seals with the first key. `nonce`: fresh random bytes, never used twice. The text (bytes 0x21 to
 * 0x7E) goes to `room` (LIMPET_TICKET_ROOM bytes), its length to *ret_len. LIMPET_ETOO_LONG when
 * the upstream id is over 512 bytes; LIMPET_ERANGE when it is empty, when the cookies are over 512
 * bytes or push the text over 1,024, or for a kind or server name that cannot be. */
LIMPET_API LIMPET_MUST int limpet_ticket_seal(const struct limpet_ticket_context *context,
    const struct limpet_note *note, const unsigned char nonce[LIMPET_NONCE_BYTES], char *room,
    size_t *ret_len);

/* Opens what a client sent. `room` has LIMPET_TICKET_ROOM bytes. LIMPET_ESYNTAX: no ticket by its
 * form; LIMPET_EUNKNOWN_KEY; LIMPET_EFORGED: the seal is broken, or was made for another server or
 * kind; LIMPET_EEXPIRED: issued more than age_max_ms ago; LIMPET_ERANGE as for sealing. */
LIMPET_API LIMPET_MUST int limpet_ticket_open(const struct limpet_ticket_context *context,
    struct limpet_span text, char *room, struct limpet_ticket *ret_ticket);

/* Whether an opened ticket names this replica. Ask for each one of the fleet; a ticket that names
 * none of them leads nowhere. */
LIMPET_API bool limpet_ticket_names(const struct limpet_keyring *ring,
    const struct limpet_ticket *ticket, struct limpet_span replica);

/* --- owner ids: limpet_owner(3) -------------------------------------------------------------- */

enum {
    LIMPET_OWNER_MAX = 32,
    LIMPET_OWNER_ROOM = 2081, /* 32, a dot, 2,048 */
    LIMPET_REPLAY_ROOM = 64,
};

/* 1 to 32 ASCII letters and digits: the check that every owner id passes. */
LIMPET_API bool limpet_owner_is_id(struct limpet_span text);

/* Whence a process may have its id. Empty is as if not there. */
struct limpet_owner_sources {
    struct limpet_span configured;
    struct limpet_span machine; /* the platform's: FLY_MACHINE_ID */
    struct limpet_span hostname;
    bool takes_hostname; /* an id may be made of the hostname */
};

enum limpet_owner_source {
    LIMPET_OWNER_NOWHERE, /* no owner: session ids stay plain */
    LIMPET_OWNER_CONFIGURED,
    LIMPET_OWNER_MACHINE,
    LIMPET_OWNER_MACHINE_BAD, /* no owner either, and somebody should be told */
    LIMPET_OWNER_HOSTNAME,
};

struct limpet_owner {
    enum limpet_owner_source source;
    size_t len; /* 0: no owner */
    char text[LIMPET_OWNER_MAX];
};

/* The configured id, else the platform's, else, where chosen, 16 hexadecimal digits of the SHA-256
 * of the hostname. LIMPET_ESYNTAX when the configured one is bad: then do not start. */
LIMPET_API LIMPET_MUST int limpet_owner_choose(
    const struct limpet_owner_sources *sources, struct limpet_owner *ret_owner);

/* Writes "<owner>.<rest>" to `room` (LIMPET_OWNER_ROOM bytes). LIMPET_ESYNTAX when `owner` is no
 * owner id, or `rest` is not 1 to 2,048 bytes of 0x21 to 0x7E. */
LIMPET_API LIMPET_MUST int limpet_owner_mint(
    struct limpet_span owner, struct limpet_span rest, char *room, size_t *ret_len);

/* Parts an id at its first dot. LIMPET_ESYNTAX when limpet_owner_mint cannot have made it: such an
 * id gets 404, and must not be repeated in an answer. */
LIMPET_API LIMPET_MUST int limpet_owner_split(
    struct limpet_span id, struct limpet_span *ret_owner, struct limpet_span *ret_rest);

/* The value of the header fly-replay that sends a request to the owner, and a zero byte, in `room`
 * (LIMPET_REPLAY_ROOM bytes). `is_strict`: to that one or none; else another one gets it where that
 * one does not answer in 5 s. LIMPET_ESYNTAX when `owner` is no owner id. */
LIMPET_API LIMPET_MUST int limpet_replay_value(
    struct limpet_span owner, bool is_strict, char *room, size_t *ret_len);

/* --- hop marks: limpet_hop(3) ---------------------------------------------------------------- */

enum {
    LIMPET_HOP_NONCE_BYTES = 16,
    LIMPET_HOP_ROOM = 117,
};

/* What a mark vouches for: that this request was judged, and who is to get it. */
struct limpet_hop {
    struct limpet_span method;
    struct limpet_span path;    /* as asked for, with its query */
    struct limpet_span session; /* its session id as the client sent it, or none */
    struct limpet_span target;  /* the owner id of who is to get it; for judging: your own */
    uint64_t wall_ms;           /* now, where it is signed or judged */
};

/* Writes the value of the header Limpet-Hop, and a zero byte, to `room` (LIMPET_HOP_ROOM bytes),
 * signed with the first key. `nonce`: fresh random bytes, never used twice. LIMPET_ESYNTAX when the
 * target is no owner id. */
LIMPET_API LIMPET_MUST int limpet_hop_sign(const struct limpet_keyring *ring,
    const struct limpet_hop *hop, const unsigned char nonce[LIMPET_HOP_NONCE_BYTES], char *room,
    size_t *ret_len);

/* The marks that were good once, so that none is good twice: 65,536 of them, in at most 5 MiB. All
 * that take requests for one owner id ask the same one. */
struct limpet_hops;

/* None yet. LIMPET_ENOMEM. `alloc` may be NULL. */
LIMPET_API LIMPET_MUST int limpet_hops_new(
    const struct limpet_alloc *alloc, struct limpet_hops **ret_hops);

/* NULL is harmless. */
LIMPET_API void limpet_hops_free(struct limpet_hops *hops);

enum limpet_hop_state {
    LIMPET_HOP_GOOD,
    LIMPET_HOP_FORGED,       /* anybody can write that: an ordinary request */
    LIMPET_HOP_OTHER_TARGET, /* genuine, for another owner: 404, and a list of peers is wrong */
    LIMPET_HOP_STALE,        /* genuine, over 30 s old, or from over 5 s ahead: 403 */
    LIMPET_HOP_REPLAYED,     /* genuine, and was used before: 403 */
    LIMPET_HOP_NO_MEMORY,    /* genuine, but there was no memory to remember it: 503 */
};

/* What the value of a Limpet-Hop header is worth for the request in `hop`. A good one is
 * remembered. Of the request's owner the hop says nothing: route it with was_passed set. */
LIMPET_API enum limpet_hop_state limpet_hop_judge(struct limpet_hops *hops,
    const struct limpet_keyring *ring, const struct limpet_hop *hop, struct limpet_span mark);

/* --- header rules: limpet_headers(3) --------------------------------------------------------- */

/* How a request ends that goes to nobody. All strings are static. */
struct limpet_ending {
    const char *name;     /* for logs: "session_forged" */
    const char *sentence; /* for the client: "Session not found" */
    const char *detail;   /* more for the client ("Mcp-Name is missing"), or NULL */
    int http_status;
    int jsonrpc_code; /* of the JSON-RPC error in the answer's body */
};

enum limpet_era {
    LIMPET_ERA_LEGACY, /* revisions up to 2025-11-25, with sessions */
    LIMPET_ERA_MODERN, /* 2026-07-28, without */
};

struct limpet_field {
    struct limpet_span name;
    struct limpet_span value;
};

/* A POST as it came: any fields, the body whole. */
struct limpet_post {
    const struct limpet_field *fields;
    size_t field_count;
    struct limpet_span body;
};

/* What it is. The spans lie in the body. */
struct limpet_message {
    enum limpet_era era;
    bool is_batch;
    bool is_initialize;
    bool is_listen;        /* subscriptions/listen: a stream without end */
    bool is_response;      /* the client's answer to a question of the server */
    bool may_repeat;       /* ping and the lists: asking twice does no harm */
    struct limpet_span id; /* the JSON token, to be echoed byte for byte; none: {NULL, 0} */
    const char *method;    /* "tools/call"; "other" for one that nothing hangs on; "" for none */
};

/* Reads the body and holds it against MCP-Protocol-Version, Mcp-Method and Mcp-Name. True: it may
 * be routed. False: answer it as *ret_ending says; of *ret_message only the id counts, where it
 * could be read. A field of another name is not looked at. */
LIMPET_API LIMPET_MUST bool limpet_post_judge(const struct limpet_post *post,
    struct limpet_message *ret_message, struct limpet_ending *ret_ending);

/* RFC 9110 5.1 and 5.5: whether these bytes may stand as a field's name, and as its value. */
LIMPET_API bool limpet_field_is_name(struct limpet_span name);
LIMPET_API bool limpet_field_is_value(struct limpet_span value);

/* RFC 9110 7.6.1: a field that no proxy passes on, by its name alone. Those that Connection names
 * are the caller's to drop. */
LIMPET_API bool limpet_field_is_hop_by_hop(struct limpet_span name);

/* --- the routing decision: limpet_route(3) --------------------------------------------------- */

enum limpet_method {
    LIMPET_METHOD_OTHER,
    LIMPET_METHOD_GET,
    LIMPET_METHOD_POST,
    LIMPET_METHOD_DELETE,
    LIMPET_METHOD_OPTIONS,
};

/* The number of a method's name, which has its case. */
LIMPET_API enum limpet_method limpet_method_of(struct limpet_span name);

/* What the id that the client sent turned out to be. */
enum limpet_id_state {
    LIMPET_ID_NONE,
    LIMPET_ID_GOOD,
    LIMPET_ID_FORGED,
    LIMPET_ID_UNKNOWN_KEY,
    LIMPET_ID_EXPIRED,
    LIMPET_ID_OTHER_SERVER,
    LIMPET_ID_NO_OWNER, /* where owner ids are used: limpet_owner_split refuses it */
};

/* The state that a result of limpet_ticket_open means. */
LIMPET_API enum limpet_id_state limpet_id_state_of(int open_result);

enum limpet_door {
    LIMPET_DOOR_MCP, /* the MCP path: Streamable HTTP, modern */
    LIMPET_DOOR_SSE, /* the path of old SSE, and not the MCP path too */
};

enum limpet_replica_state {
    LIMPET_REPLICA_UP,
    LIMPET_REPLICA_DOUBT, /* just now it could not be reached */
    LIMPET_REPLICA_GONE,
    LIMPET_REPLICA_DRAINING, /* gets no new sessions */
};

enum limpet_knowledge { LIMPET_UNKNOWN, LIMPET_YES, LIMPET_NO };

/* What the request says. */
struct limpet_facts {
    enum limpet_method method;
    enum limpet_door door;
    enum limpet_era era; /* this and the next two as limpet_post_judge says; only for POST */
    bool is_initialize;
    bool is_listen;
    bool id_is_sse;      /* the id came in a message address of old SSE */
    bool has_credential; /* an Authorization header */
    enum limpet_id_state id;
    bool stream_closed; /* old SSE: its stream was seen to close */
    bool was_passed;    /* a peer, or the platform, has passed it on once already */
    bool is_too_large;  /* the body is, or may be, over the 1,000,000 bytes of a replay */
};

/* What is known of the fleet. */
struct limpet_view {
    bool owner_known;    /* the ticket, or the owner id, names one of the fleet */
    uint32_t owner;      /* its number, given back in the verdict */
    bool owner_is_other; /* owner ids: not this process; then the number is a peer's */
    enum limpet_replica_state owner_state;
    bool owner_unreachable; /* in doubt because connections to it time out */
    bool any_up;            /* at least one replica is not gone */
    bool sse_configured;
    bool sse_on_mcp_path; /* a GET without an id on the MCP path opens an old-SSE stream */
    enum limpet_knowledge mints_ids; /* whether the replicas give session ids */
    bool challenges;                 /* they answered 401 to somebody without credentials */
    bool stopping;                   /* no new work that lasts is taken */
    bool unsettled; /* owner ids: an owner that is not known may yet turn up among the peers */
    bool replays;   /* the platform replays requests to other owners */
};

enum limpet_verdict_kind {
    LIMPET_FORWARD,      /* to `replica`, as part of its session */
    LIMPET_NEW_SESSION,  /* to a replica that is picked for a new session */
    LIMPET_NEW_STREAM,   /* the same for an old-SSE stream */
    LIMPET_ANY,          /* to any replica, without a session id */
    LIMPET_ANSWER,       /* to nobody: answered as `ending` says */
    LIMPET_FORWARD_PEER, /* to the peer `replica`, as part of its session */
    LIMPET_REPLAY,       /* to nobody: the platform is asked to send it to its owner */
};

struct limpet_verdict {
    enum limpet_verdict_kind kind;
    uint32_t replica;
    struct limpet_ending ending; /* ANSWER only, else zero */
};

/* Where the request goes. Every combination of facts and view has a verdict. */
LIMPET_API struct limpet_verdict limpet_route(
    const struct limpet_facts *facts, const struct limpet_view *view);

/* --- cookies of one origin: limpet_jar(3) ---------------------------------------------------- */

enum {
    LIMPET_JAR_BYTES_MAX = 205400, /* all that a jar may hold: 50 cookies of 4,096 bytes */
    LIMPET_COOKIE_VALUE_MAX = 65536,
};

/* What one connection or one session keeps of the cookies of one origin (scheme, host without case,
 * port). Domain, Path, SameSite and HttpOnly change nothing. */
struct limpet_jar;

enum limpet_jar_verdict {
    LIMPET_JAR_STORED,
    LIMPET_JAR_REMOVED,
    LIMPET_JAR_OTHER_ORIGIN,
    LIMPET_JAR_MALFORMED,
    LIMPET_JAR_TOO_LONG,
    LIMPET_JAR_NOT_SECURE,
    LIMPET_JAR_BAD_PREFIX,
    LIMPET_JAR_NO_ROOM,
};

/* An empty jar for the origin of a URL (http or https), of at most `bytes_max` bytes (never more
 * than LIMPET_JAR_BYTES_MAX). LIMPET_ESYNTAX, LIMPET_ETOO_LONG, LIMPET_ENOMEM. `alloc` may be
 * NULL. */
LIMPET_API LIMPET_MUST int limpet_jar_new(const struct limpet_alloc *alloc, struct limpet_span url,
    size_t bytes_max, struct limpet_jar **ret_jar);

/* NULL is harmless. */
LIMPET_API void limpet_jar_free(struct limpet_jar *jar);

/* Empties it, for a new session. */
LIMPET_API void limpet_jar_clear(struct limpet_jar *jar);

/* The value of a Set-Cookie field of an answer, of any status, from `url`. Max-Age wins over
 * Expires; the cookies longest since stored make room. *ret_name lies in `line`: the cookie's name,
 * or none where it could not be read. */
LIMPET_API enum limpet_jar_verdict limpet_jar_store(struct limpet_jar *jar, struct limpet_span url,
    struct limpet_span line, uint64_t wall_ms, struct limpet_span *ret_name);

/* The words that follow "the cookie NAME", and whether a user should read them: where Secure or a
 * name's prefix kept it out. */
LIMPET_API const char *limpet_jar_words(enum limpet_jar_verdict verdict);
LIMPET_API bool limpet_jar_must_tell(enum limpet_jar_verdict verdict);

/* The value of the Cookie field for a request to `url`, valid until the next call on this jar:
 * `configured` (a value of your own, or none) without the pairs that the jar has a cookie for, then
 * the jar's. To another origin `configured` byte for byte. Empty: send no such field.
 * LIMPET_ETOO_LONG when `configured` is over LIMPET_COOKIE_VALUE_MAX; LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_jar_cookie(struct limpet_jar *jar, struct limpet_span url,
    uint64_t wall_ms, struct limpet_span configured, struct limpet_span *ret_value);

/* All cookies as bytes, for a ticket or a store; valid until the next call on this jar. */
LIMPET_API struct limpet_span limpet_jar_packed(const struct limpet_jar *jar);

/* Puts back what was packed. LIMPET_ESYNTAX when it is not that (what was right up to there is
 * kept), LIMPET_ETOO_LONG, LIMPET_ENOMEM. */
LIMPET_API LIMPET_MUST int limpet_jar_unpack(
    struct limpet_jar *jar, struct limpet_span packed, uint64_t wall_ms);

/* --- server-sent events: limpet_sse(3) ------------------------------------------------------- */

enum { LIMPET_SSE_EVENT_MAX = 1 << 30 };

struct limpet_sse_event {
    struct limpet_span type; /* read: "message" where none was given */
    struct limpet_span data; /* lines joined by LF */
    bool has_data;           /* read: false for an id or retry alone */
    struct limpet_span id;   /* read: the last event id as it stands now */
    bool has_id;             /* read: this event gave it */
    bool has_retry;
    uint64_t retry_ms;
    size_t raw_bytes; /* read: length in the stream with its empty line */
};

/* Reads a stream that comes in any pieces. */
struct limpet_sse;

/* `event_bytes_max` (at most LIMPET_SSE_EVENT_MAX) is the limit of one line and of one event's
 * data. LIMPET_ERANGE when it is 0 or over that; LIMPET_ENOMEM. `alloc` may be NULL. */
LIMPET_API LIMPET_MUST int limpet_sse_new(
    const struct limpet_alloc *alloc, size_t event_bytes_max, struct limpet_sse **ret_sse);

/* NULL is harmless. */
LIMPET_API void limpet_sse_free(struct limpet_sse *sse);

/* Takes bytes up to the end of the next event and returns how many. *ret_ready: there is one, at
 * *ret_event, valid until the next call on this reader. Call again with the rest until all is
 * taken. LIMPET_ETOO_LONG, LIMPET_ENOMEM: this stream cannot be read on, and each further call says
 * so again. */
LIMPET_API LIMPET_MUST ptrdiff_t limpet_sse_feed(struct limpet_sse *sse, struct limpet_span in,
    struct limpet_sse_event *ret_event, bool *ret_ready);

/* How many bytes limpet_sse_write will write. */
LIMPET_API size_t limpet_sse_write_bytes(const struct limpet_sse_event *event);

/* Writes an event to `room` (`room_bytes`): retry where has_retry is set, then type, id and data.
 * Empty type and id are left out; data is cut into lines at CR, LF and CRLF. LIMPET_ESYNTAX when
 * the type or id holds CR or LF, or the id NUL; LIMPET_ELIMIT when the room is too small. */
LIMPET_API LIMPET_MUST int limpet_sse_write(
    const struct limpet_sse_event *event, char *room, size_t room_bytes, size_t *ret_len);

/* Where events end in a stream that is passed on byte for byte. Its members are not for use. */
struct limpet_sse_border {
    bool in_line, after_cr, any;
};

/* The start of a stream. */
LIMPET_API void limpet_sse_border_init(struct limpet_sse_border *border);

/* Looks at the next piece. The offset just behind the last end of an event in it, or 0. */
LIMPET_API size_t limpet_sse_border_feed(struct limpet_sse_border *border, struct limpet_span in);

/* Whether what was seen so far ends between two events: here ":\n\n" may be put in. */
LIMPET_API bool limpet_sse_border_at(const struct limpet_sse_border *border);

#ifdef __cplusplus
}
#endif

#endif
