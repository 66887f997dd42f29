/* One MCP session with one server, on a fetcher: Streamable HTTP of every legacy revision, old SSE,
 * and the requests of 2026-07-28 (wire document 3 to 7, 11.2).
 *
 * The owner opens it, asks, answers what the server asks, and closes it. It hears everything
 * through two tables of functions: lp_client_ops for the session, lp_call_ops for each request.
 * Messages are handed over as they came, byte for byte; ids of requests are the client's own
 * numbers.
 *
 *   lp_client_open -> opened | failed        lp_client_request -> lp_call_ops, once an end
 *   lost: the server does not know the session any more; lp_client_open starts anew (with an
 * emptied jar). It is told before the failure of the call that found out. Calls that are still in
 *         flight end each by their own answer, with cannot_have_run where that is sure
 *
 * A client does not repeat a call that may have run and does not start a lost session again by
 * itself: both are its owner's decision (lp_client_failure.cannot_have_run says which is safe).
 * It resumes broken streams with Last-Event-ID, waits where the server says `retry`, and reopens
 * the notification stream.
 *
 * Nothing is called from within lp_client_open and lp_client_request. From within a callback every
 * function of this file may be called but lp_client_free. */
#ifndef LP_CALL_CLIENT_H
#define LP_CALL_CLIENT_H

#include "call/fetch.h"
#include "mcp/version.h"

enum {
    LP_CLIENT_MESSAGE_MAX = 64 << 20, /* one message of the server */
    LP_CLIENT_CALLS_MAX = 1024,       /* at once */
    LP_CLIENT_ASKED_MAX = 256,        /* requests of the server that wait for an answer */
    LP_CLIENT_SESSION_MAX = 8192,     /* bytes of a session id */
    LP_CLIENT_ROUNDS_MAX = 10,        /* of input_required for one call */
    LP_CLIENT_STREAM_MS = 1000,
    LP_CLIENT_SHOWN_MAX = 300,
};

enum lp_client_state {
    LP_CLIENT_IDLE, /* not opened, closed, lost or failed */
    LP_CLIENT_OPENING,
    LP_CLIENT_OPEN,
    LP_CLIENT_CLOSING, /* DELETE is on its way */
};

enum lp_failure_kind {
    LP_FAILURE_NETWORK,   /* the exchange failed: see error, reason */
    LP_FAILURE_STATUS,    /* an HTTP status that is no answer: see status, body */
    LP_FAILURE_LOGIN,     /* 401 or 403: the sentence says where to log in */
    LP_FAILURE_LOST,      /* the session is not known any more */
    LP_FAILURE_GARBLED,   /* the answer makes no sense as MCP */
    LP_FAILURE_TIMEOUT,   /* no answer in time; a legacy server was told to cancel */
    LP_FAILURE_CANCELLED, /* by lp_call_cancel or by closing */
    LP_FAILURE_LIMIT,     /* a limit or memory */
};

struct lp_client_failure {
    enum lp_failure_kind kind;
    int error; /* LP_E... */
    enum lp_reason reason;
    uint16_t status;         /* of the HTTP answer, 0: none came */
    struct lp_span body;     /* of it, as received; at most 64 KiB */
    bool cannot_have_run;    /* the server has not acted on the request: it may be sent again */
    struct lp_span sentence; /* whole, for the user; like all spans here it lives until the callback
                                calls a function of the client, or returns */
};

/* What is known of the server once the session is open. Spans live as long as the session. */
struct lp_client_info {
    enum lp_era era;
    enum lp_transport transport; /* STREAMABLE_HTTP or SSE */
    struct lp_span version;      /* negotiated: "2025-11-25" */
    struct lp_span result;       /* of initialize or server/discover, as it came */
    struct lp_span session_id;   /* empty: the server minted none; a secret */
};

/* The sentence with no more than LP_CLIENT_SHOWN_MAX bytes of the body that it ends with; *ret_left
 * is how many were left out. */
struct lp_span lp_client_brief(const struct lp_client_failure *why, size_t *ret_left);

struct lp_client_ops {
    void (*opened)(void *ctx, const struct lp_client_info *info);
    /* It could not be opened. */
    void (*failed)(void *ctx, const struct lp_client_failure *why);
    /* A notification of the server, also those that belong to a call (progress, message). `message`
     * is the whole JSON-RPC message, `method` its method without quotes. */
    void (*notification)(void *ctx, struct lp_span method, struct lp_span message);
    /* The server asks; `asked` is to be answered with lp_client_answer or lp_client_answer_error.
     * `params` may be empty. `ping` is answered by the client itself. In the modern era the inputs
     * that a call needs (input_required) come the same way. */
    void (*asked)(void *ctx, lp_id asked, struct lp_span method, struct lp_span params);
    /* The server does not want the answer any more; `asked` is dead. */
    void (*asked_cancelled)(void *ctx, lp_id asked);
    /* 404 and its dialects, or the stream of an old-SSE session has ended. */
    void (*lost)(void *ctx, const struct lp_client_failure *why);
    /* After lp_client_close: DELETE was answered, or not needed. */
    void (*closed)(void *ctx);
    /* Something worth knowing that is no failure: the fallback to old SSE, a resumed stream. */
    void (*note)(void *ctx, struct lp_span sentence);
};

struct lp_call_ops {
    /* The JSON-RPC answer, whole, with the client's id. Exactly one of `result` and `error` is not
     * empty: the raw value of that member. */
    void (*answer)(void *ctx, lp_id call, struct lp_span result, struct lp_span error);
    /* notifications/progress for this call; `message` as in lp_client_ops.notification, which is
     * not called for it then. May be NULL. */
    void (*progress)(void *ctx, lp_id call, struct lp_span message);
    void (*failed)(void *ctx, lp_id call, const struct lp_client_failure *why);
};

struct lp_call_args {
    struct lp_span method;
    struct lp_span params; /* a raw JSON object, or empty */
    bool wants_progress;   /* adds _meta.progressToken when params has none */
    uint32_t timeout_ms;   /* without answer or progress; 0: the target's; UINT32_MAX: none */
    const struct lp_call_ops *ops;
    void *ctx;
};

struct lp_client_args {
    struct lp_fetcher *fetcher;
    struct lp_jar *jar;          /* NULL: off. Emptied when a session is opened */
    struct lp_span capabilities; /* of this client, raw JSON object; empty: "{}" */
    struct lp_span client_info;  /* raw JSON object; empty: limpet's own */
    struct lp_span version;      /* offered in initialize; empty: the newest legacy one */
    struct lp_span log_level;    /* modern: _meta logLevel of every request; empty: none */
    uint32_t lane;               /* of its connections (call/fetch.h) */
    /* `opened` is told when the notification stream of a legacy session is open or refused, or has
     * been neither for LP_CLIENT_STREAM_MS: what a first call makes the server say is not missed.
     */
    bool stream_first;
    /* Of a server that speaks both eras the legacy one is taken, unless the target wishes the other
     * one: who speaks legacy himself keeps his session. */
    bool prefers_legacy;
    const struct lp_client_ops *ops;
    void *ctx;
};

struct lp_client;

/* Spans of args are copied. */
LP_MUST int lp_client_new(const struct lp_client_args *args, struct lp_client **ret);
/* Ends everything without callbacks and without DELETE. NULL is fine. */
void lp_client_free(struct lp_client *client);

enum lp_client_state lp_client_state(const struct lp_client *client);

/* Opens the session; in IDLE only (asserted). Ends in `opened` or `failed`. */
void lp_client_open(struct lp_client *client);
/* Ends the session: calls in progress fail as CANCELLED, streams are closed, a legacy session is
 * deleted at the server (waits 2 s at most), then `closed`. In IDLE `closed` comes at once. */
void lp_client_close(struct lp_client *client);

/* Asks; in OPEN only. LP_EUSAGE: not open; LP_ELIMIT: too many at once; LP_ESYNTAX: params is no
 * JSON object; LP_ENOMEM. */
LP_MUST int lp_client_request(
    struct lp_client *client, const struct lp_call_args *args, lp_id *ret_call);
/* Ends a call: the server is told (notifications/cancelled; modern: the stream is closed). `failed`
 * is not called. Dead ids are ignored. `reason` may be empty. */
void lp_call_cancel(struct lp_client *client, lp_id call, struct lp_span reason);

/* Sends a notification; what comes of it is told by `note` only. The same errors as a request. */
LP_MUST int lp_client_notify(
    struct lp_client *client, struct lp_span method, struct lp_span params);

/* Answers what the server asked: a raw JSON value. Dead ids are ignored. */
void lp_client_answer(struct lp_client *client, lp_id asked, struct lp_span result);
void lp_client_answer_error(
    struct lp_client *client, lp_id asked, int code, struct lp_span message);

/* The same with the whole error object, raw. */
void lp_client_answer_raw_error(struct lp_client *client, lp_id asked, struct lp_span error);

/* Modern: the log level of later requests, a raw JSON string; legacy servers are asked with
 * logging/setLevel. LP_ERANGE: it is none of the eight levels. */
LP_MUST int lp_client_set_log_level(struct lp_client *client, struct lp_span level);

/* NULL unless it is open. */
const struct lp_client_info *lp_client_info(const struct lp_client *client);

#endif
