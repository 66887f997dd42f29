/* What a probe has seen of a deployment: rows of calls, counts and answers. No judgement here:
 * call/verdict.h says what it means, call/probe.h fills it.
 *
 * Never holds a secret: no session id, no cookie's value, no credential. */
#ifndef LP_CALL_SEEN_H
#define LP_CALL_SEEN_H

#include "base/assert.h"
#include "base/span.h"

enum {
    LP_SEEN_CALLS_MAX = 100, /* in a row */
    LP_SEEN_ROWS_MAX = 512,
    LP_SEEN_COOKIES_MAX = 8,
    LP_SEEN_TEXT_MAX = 128, /* of a cookie's name, a hop, a version; longer ones are cut */
    LP_SEEN_HOPS_MAX = 6,
    LP_SEEN_TRIES_MAX = 3,  /* of the idle test */
    LP_SEEN_FAULTS_MAX = 4, /* kinds of failures told apart */
    LP_SEEN_ADDRESSES = 3,  /* oauth-protected-resource, oauth-authorization-server, openid */
};

/* What became of one call on a session. */
enum lp_seen_mark {
    LP_MARK_OK,
    LP_MARK_LOST,  /* the answer of a server that does not know the session */
    LP_MARK_FAULT, /* neither: 5xx, 429, no answer. Says nothing of where the call went */
};

/* How the calls of a row were sent. */
enum lp_seen_arm {
    LP_ARM_FRESH,     /* each on a connection of its own, without cookies */
    LP_ARM_KEPT,      /* all on the connection that opened the session, without cookies */
    LP_ARM_COOKIE,    /* each on a connection of its own, with the cookies that were set */
    LP_ARM_ELSEWHERE, /* as FRESH, but from other addresses than the one that opened the session */
    LP_ARM_COUNT,
};

struct lp_seen_row {
    uint8_t arm;
    bool is_serial; /* nothing else of the probe was under way */
    uint16_t count;
    uint8_t marks[LP_SEEN_CALLS_MAX];
    uint16_t distance[LP_SEEN_CALLS_MAX]; /* requests sent from the session's initialize to this */
};

enum lp_media {
    LP_MEDIA_NONE, /* no body */
    LP_MEDIA_JSON,
    LP_MEDIA_EVENTS,
    LP_MEDIA_HTML,
    LP_MEDIA_OTHER,
};

/* One answer to one question. */
struct lp_seen_answer {
    bool is_asked;
    bool is_connected; /* the server took the connection, whatever came of it */
    int error;         /* LP_E...: no answer came */
    uint16_t status;   /* 0: no answer came */
    uint8_t media;     /* enum lp_media */
    bool is_result;    /* a JSON-RPC result */
    bool has_allow;
    int32_t code;   /* of a JSON-RPC error; 0: none */
    uint32_t print; /* equal for equal texts; 0: no text */
};

/* Questions of one kind, each with the id of a living session. */
struct lp_seen_tally {
    uint32_t asked;
    uint32_t fine;    /* a stream, an accepted DELETE */
    uint32_t refused; /* 405: not offered */
    uint32_t lost;    /* answered as by a server that does not know the session */
    uint32_t odd;     /* anything else that is an answer */
    uint32_t faults;
};

struct lp_seen_stream {
    uint32_t no_head;        /* nothing came while POSTs were answered at once */
    uint32_t closed_at_once; /* 200, and ended without an event */
    uint32_t head_ms;        /* slowest head of a stream that opened */
    uint32_t post_ms;        /* middle of the POSTs, over connections of the same kind */
    bool has_length;         /* an event stream came with Content-Length: somebody gathered it */
};

/* The long test: quiet streams and idle sessions. */
struct lp_seen_idle {
    uint32_t watched_s; /* 0: not done */
    uint32_t tries;
    uint32_t cut_ms[LP_SEEN_TRIES_MAX]; /* when each quiet stream was cut; 0: it was not */
    uint32_t heard_ms;                  /* longest silence while something still came; 0: silent */
    uint32_t alive_s;                   /* longest rest after which a session still answered */
    uint32_t dead_s;                    /* shortest rest after which one did not; 0: none */
};

/* Calls of two steps: the first hands out a state, which the second brings back. */
struct lp_seen_steps {
    uint32_t asked; /* first steps */
    uint32_t begun; /* of them got a state */
    uint32_t fine;  /* second steps that were carried out */
    uint32_t lost;  /* second steps that were refused */
    uint32_t faults;
    char words[LP_SEEN_TEXT_MAX * 2]; /* of the first refusal, or why there is no second step */
};

/* Requests that failed alike. */
struct lp_seen_fault {
    uint16_t status; /* 0: no answer came */
    uint32_t count;
};

struct lp_seen {
    /* the endpoint */
    struct lp_seen_answer opening; /* the last try to open a session, in either era */
    struct lp_seen_answer discover;
    bool is_open;    /* a session was opened, or the server answers without one */
    bool is_modern;  /* it was the modern era that answered the calls */
    bool is_old_sse; /* the URL is an old SSE endpoint; rows are of POSTs to its message endpoint */
    bool has_jar;    /* the user's clients keep cookies */
    bool mints_ids;
    bool has_tickets; /* the ids are Limpet's own */
    char legacy[LP_SEEN_TEXT_MAX];
    char modern[LP_SEEN_TEXT_MAX];
    char login[LP_SEEN_TEXT_MAX * 2];        /* the challenge of a 401 */
    char metadata_url[LP_SEEN_TEXT_MAX * 2]; /* where it says to read on */
    char resource[LP_SEEN_TEXT_MAX * 2];     /* the address that the document names */
    bool has_login_mismatch;                 /* one of them is not of the address in use */
    struct lp_seen_answer addresses[LP_SEEN_ADDRESSES]; /* below /.well-known/ */
    char failure[LP_SEEN_TEXT_MAX * 4];                 /* in words, why nothing was opened */

    /* openings and calls that say nothing of sessions, by their status */
    uint32_t requests; /* all of them, the good ones too */
    uint32_t fault_count;
    struct lp_seen_fault faults[LP_SEEN_FAULTS_MAX];

    /* calls */
    uint32_t openings;
    uint32_t opening_faults;
    uint32_t row_count;
    struct lp_seen_row rows[LP_SEEN_ROWS_MAX];
    struct lp_seen_answer lost; /* a call that was marked LOST */
    uint32_t kinds;             /* replicas told apart by what they say of themselves; 0: none */
    uint32_t sources;           /* other addresses that ELSEWHERE used */

    /* cookies */
    uint32_t cookie_count;
    char cookies[LP_SEEN_COOKIES_MAX][LP_SEEN_TEXT_MAX];
    bool suffices[LP_SEEN_COOKIES_MAX]; /* alone it keeps a session */

    /* the rest of the protocol */
    struct lp_seen_answer missing, unknown, unknown_delete, ended, own_delete, own_get;
    struct lp_seen_tally gets, deletes;
    uint32_t undead; /* sessions that answered after an accepted DELETE */
    uint32_t ended_checks;
    uint32_t left; /* sessions that could not be deleted */
    struct lp_seen_stream stream;
    bool cors_is_offered;
    bool cors_shows_id;
    bool sse_is_beside; /* an old SSE endpoint beside this one */
    char sse_path[LP_SEEN_TEXT_MAX];
    struct lp_seen_tally sse;
    uint32_t hop_count;
    char hops[LP_SEEN_HOPS_MAX][LP_SEEN_TEXT_MAX]; /* "Via: ...", "Server: ..." */
    struct lp_seen_idle idle;
    struct lp_seen_steps steps;
    bool is_cut_short; /* the time was over before everything was asked */
    uint32_t took_ms;
};

/* A new row at the end; NULL when there are LP_SEEN_ROWS_MAX. */
struct lp_seen_row *lp_seen_add_row(struct lp_seen *seen, enum lp_seen_arm arm, bool is_serial);
/* One more call in a row; beyond LP_SEEN_CALLS_MAX it is dropped. */
void lp_seen_add_call(struct lp_seen_row *row, enum lp_seen_mark mark, uint32_t distance);
/* Counts an opening or a call; a fault of a kind beyond LP_SEEN_FAULTS_MAX is not told. */
void lp_seen_add_request(struct lp_seen *seen, uint16_t status, bool is_fault);
/* Copies text into one of the fields above, cut where it does not fit; line ends as blanks,
 * other unprintable bytes as '?'. */
void lp_seen_text(char *room, size_t room_len, struct lp_span text);
/* Whether two answers are the same word: status, JSON-RPC code and text. */
bool lp_seen_same(const struct lp_seen_answer *a, const struct lp_seen_answer *b);

#endif
