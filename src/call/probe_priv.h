/* Inside the probe: its phases (probe.c), single questions (probe_question.c), the sessions of
 * Streamable HTTP (probe_session.c), those of old SSE (probe_sse.c), calls in two steps
 * (probe_steps.c), the long test (probe_rest.c),
 * and how answers are noted (probe_note.c).
 */
#ifndef LP_CALL_PROBE_PRIV_H
#define LP_CALL_PROBE_PRIV_H

#include "call/probe.h"
#include "call/verdict.h"
#include "mcp/entropy.h"
#include "mcp/jar.h"

enum {
    LP_PROBE_JOBS_MAX = 256,
    LP_PROBE_ID_MAX = 1024, /* bytes of a session id */
    LP_PROBE_KINDS_MAX = 64,
    LP_PROBE_PACE_MAX = 512,
    LP_PROBE_TRIES = 3, /* of what a 5xx must not spoil */
    LP_PROBE_UUID_MAX = 40,
    LP_PROBE_URL_MAX = 1024,
};

enum lp_probe_phase {
    LP_PROBE_DISCOVER,
    LP_PROBE_QUESTIONS,
    LP_PROBE_FIRST, /* one session alone: its row, and how quick the server is */
    LP_PROBE_ROWS,
    LP_PROBE_ARMS,
    LP_PROBE_MORE,
    LP_PROBE_STEPS, /* a tool that wants an input, when the user named one */
    LP_PROBE_STREAMS,
    LP_PROBE_ENDINGS,
    LP_PROBE_REST,
    LP_PROBE_OVER,
};

/* What a worker does from beginning to end. */
enum lp_probe_job {
    LP_JOB_ROW,     /* an arm's session with all its calls */
    LP_JOB_SHORT,   /* FRESH, two calls, all of them when one hits */
    LP_JOB_OPENING, /* a session that is opened and deleted */
    LP_JOB_ALONE,   /* as COOKIE, with one cookie only */
    LP_JOB_ORIGIN,  /* OPENING with an Origin field */
    LP_JOB_BESIDE,  /* old SSE beside the probed endpoint */
    LP_JOB_REST,    /* a session that is asked once, after a rest */
    LP_JOB_QUIET,   /* a session whose stream is watched */
};

struct lp_probe_task {
    uint8_t job;
    uint8_t arm;
    uint8_t cookie; /* ALONE: which */
    bool wants_stream;
    uint32_t rest_s;
};

struct lp_probe;

struct lp_probe_session {
    struct lp_list node; /* in probe->sessions */
    struct lp_probe *probe;
    struct lp_probe_task task;
    struct lp_seen_row *row;
    struct lp_jar jar;
    struct lp_ask *stream;
    struct lp_fetcher_timer timer;
    uint32_t lane;
    uint32_t opened_at; /* requests sent by the probe when it was opened */
    uint32_t calls_left;
    uint32_t calls_done;
    uint32_t tries;
    bool is_parked;  /* waits for the phase of streams */
    bool is_tallied; /* its DELETE is in the tally */
    size_t id_len;
    char id[LP_PROBE_ID_MAX];
    char cookie[LP_JAR_PAIR_MAX + 1]; /* ALONE */
};

/* A question about a login, by its place in lp_seen.addresses. */
struct lp_probe_address {
    struct lp_probe *probe;
    uint32_t number;
};

struct lp_probe {
    struct lp_probe_args args;
    struct lp_asker asker;
    struct lp_entropy entropy;
    struct lp_seen seen;
    enum lp_probe_phase phase;
    struct lp_list sessions;
    struct lp_list sse_sessions;
    struct lp_fetcher_timer alarm; /* the end of the budget */
    uint64_t started_us;
    uint64_t budget_us;
    uint64_t phase_end_us; /* no new calls after that */
    bool is_hurried;
    bool is_over;
    bool has_asked_login;
    bool is_transport_given;
    bool has_looked;    /* for old SSE at the very URL */
    bool has_begun_sse; /* with sessions of it */
    uint32_t task_count, task_next;
    struct lp_probe_task tasks[LP_PROBE_JOBS_MAX];
    uint32_t running, width;
    uint32_t lane;
    uint32_t source; /* ELSEWHERE: the next one */
    uint32_t more;
    uint32_t questions;     /* that wait for their answers */
    uint32_t tries;         /* of discover, then of the unknown id */
    uint32_t missing_tries; /* of no id */
    uint32_t checks;
    uint32_t pace_count;
    uint32_t pace_us[LP_PROBE_PACE_MAX];
    uint32_t kind_count, kind_sum;
    uint32_t kinds[LP_PROBE_KINDS_MAX];
    char version[LP_SEEN_TEXT_MAX];
    char unknown_id[LP_PROBE_UUID_MAX];
    char sse_url[LP_PROBE_URL_MAX];
    struct lp_probe_address addresses[LP_SEEN_ADDRESSES];
};

/* --- probe.c --- */

/* Goes on with the next task, or the next phase. After everything that ends. */
void lp_probe_advance(struct lp_probe *probe);
/* Whether the phase's time is over. */
bool lp_probe_is_late(const struct lp_probe *probe);
/* The answer is one to `initialize` that opened a session. */
bool lp_probe_has_opened(const struct lp_reply *reply);

/* --- probe_question.c --- */

/* A question of the probe itself; `done` ends with lp_probe_answered. False: not started. */
bool lp_probe_ask(struct lp_probe *probe, struct lp_ask_args args);
/* One of them is answered: goes on. */
void lp_probe_answered(struct lp_probe *probe);
/* A `done` for what nobody wants to know. */
void lp_probe_forget(void *ctx, const struct lp_reply *reply);
/* Which modern revisions there are. */
void lp_probe_ask_discover(struct lp_probe *probe);
/* What the server says of an id that nobody minted, of none, and of deleting the first. */
void lp_probe_ask_unknown(struct lp_probe *probe);
void lp_probe_ask_missing(struct lp_probe *probe);
void lp_probe_ask_unknown_delete(struct lp_probe *probe);
/* Whether the very URL is an old SSE endpoint. */
void lp_probe_ask_old_sse(struct lp_probe *probe);

/* --- probe_note.c --- */

/* Cookies, hops and the like of any head; `ctx` is the probe. */
void lp_probe_note_head(void *ctx, const struct lp_head *head);
/* What became of a call. */
enum lp_seen_mark lp_probe_mark(const struct lp_probe *probe, const struct lp_reply *reply);
/* The answer says nothing of the session: 5xx, 429, none. */
bool lp_probe_is_fault(const struct lp_reply *reply);
/* Whether asking at once again may bring another answer: a refusal stays, and to wait for silence
 * again costs the time for everything else. */
bool lp_probe_may_change(const struct lp_reply *reply);
/* In words, why nothing was opened. */
void lp_probe_note_failure(struct lp_probe *probe, const struct lp_reply *reply);
/* Counts a GET or DELETE; `is_fine`: what was hoped for. */
void lp_probe_tally(const struct lp_probe *probe, struct lp_seen_tally *tally,
    const struct lp_reply *reply, bool is_fine);
/* A replica that says of itself which it is. */
void lp_probe_note_kind(struct lp_probe *probe, struct lp_span result, struct lp_span id);
/* How long an answer took. */
void lp_probe_note_pace(struct lp_probe *probe, const struct lp_reply *reply);
/* The middle of them, in microseconds. */
uint32_t lp_probe_pace(struct lp_probe *probe);

/* --- probe_session.c --- */

/* Runs a task of Streamable HTTP or the modern era. */
void lp_probe_session_begin(struct lp_probe *probe, const struct lp_probe_task *task);
/* GET on one that is parked. */
void lp_probe_session_stream(struct lp_probe_session *session);
/* DELETE, and then it is over. */
void lp_probe_session_end(struct lp_probe_session *session);
/* How many are open at the server. */
uint32_t lp_probe_sessions_left(const struct lp_probe *probe);
/* Frees all. */
void lp_probe_sessions_free(struct lp_probe *probe);

/* GET, DELETE and the like: deletes the session if there is one, and ends it. */
void lp_probe_session_leave(struct lp_probe_session *session);
/* What every question of the session carries. */
struct lp_ask_args lp_probe_session_args(struct lp_probe_session *session);

/* --- probe_login.c --- */

/* The challenge of a 401. */
void lp_probe_login_note(struct lp_probe *probe, struct lp_span challenge);
/* Asks where a client would look for metadata. */
void lp_probe_login_begin(struct lp_probe *probe);

/* --- probe_steps.c --- */

/* Calls the tool that was named, in two steps, again and again. */
void lp_probe_steps_begin(struct lp_probe *probe);

/* --- probe_rest.c --- */

/* The tasks of the long test. */
void lp_probe_rest_plan(struct lp_probe *probe);
/* REST and QUIET, from `initialized` on. */
void lp_probe_rest_begin(struct lp_probe_session *session);
/* No more rest: everything that waits is deleted now. */
void lp_probe_rest_hurry(struct lp_probe *probe);

/* --- probe_sse.c --- */

/* One old SSE session: a stream and `calls` POSTs at once. `beside`: the tally of an endpoint
 * beside the probed one, else NULL and a row of `arm`. */
void lp_probe_sse_begin(struct lp_probe *probe, const struct lp_probe_task *task, bool is_beside);
/* Frees all. */
void lp_probe_sse_free(struct lp_probe *probe);

#endif
