/* A call as its handler sees it (serve/server.h, lp_handler).
 *
 * Spans that come out of a call live until it is over. Functions that end it are the last thing
 * that a handler does with it. */
#ifndef LP_SERVE_JOB_H
#define LP_SERVE_JOB_H

#include "base/error.h"
#include "serve/out.h"
#include "serve/server.h"

enum lp_level {
    LP_LEVEL_DEBUG,
    LP_LEVEL_INFO,
    LP_LEVEL_NOTICE,
    LP_LEVEL_WARNING,
    LP_LEVEL_ERROR,
    LP_LEVEL_CRITICAL,
    LP_LEVEL_ALERT,
    LP_LEVEL_EMERGENCY,
    LP_LEVEL_count,
};

struct lp_question {
    const char *key; /* in lp_job_ask_all; unique within the call */
    const char *method;
    struct lp_span params; /* raw JSON */
};

/* --- what was asked --- */

/* The raw JSON of params, and of params.arguments; empty when not there. */
struct lp_span lp_job_params(const struct lp_job *call);
struct lp_span lp_job_arguments(const struct lp_job *call);
/* resources/read: the address that was asked for, decoded; and what stands for {name} in it. */
struct lp_span lp_job_uri(const struct lp_job *call);
struct lp_span lp_job_variable(const struct lp_job *call, const char *name);
/* Whose call it is: to tell clients what has changed. */
struct lp_server *lp_job_server(const struct lp_job *call);
/* What lp_server_job finds it by, as long as it is in progress. */
lp_id lp_job_id(const struct lp_job *call);
/* A pointer that the handler keeps with the call. */
void lp_job_set_state(struct lp_job *call, void *state);
void *lp_job_state(const struct lp_job *call);

/* --- while it runs --- */

/* notifications/progress, when the client gave a token and takes a stream; `total` 0: unknown. */
void lp_job_progress(struct lp_job *call, uint64_t progress, uint64_t total);
/* notifications/message on the call's own stream; `data` is raw JSON. Nothing below the session's
 * level. */
void lp_job_log(struct lp_job *call, enum lp_level level, const char *logger, struct lp_span data);
/* The same on the session's GET stream. False: the level says no, or there is no such stream. */
bool lp_job_log_session(
    struct lp_job *call, enum lp_level level, const char *logger, struct lp_span data);
/* Whether it may wait, ask, read or write now: its handler has a `wake`, and no reply and no state
 * is on its way. */
bool lp_job_may_wait(const struct lp_job *call);
/* `wake` follows after `us` microseconds. LP_ENOMEM. */
LP_MUST int lp_job_wait(struct lp_job *call, uint64_t us);
/* Asks the client: elicitation/create, sampling/createMessage, roots/list. `params` is raw JSON;
 * `wake` follows with the reply or, after `timeout_us`, without. One question at a time.
 * LP_EUNSUPPORTED: there is no session, or the client has not said that it can, or (2026-07-28)
 * this is neither a tool nor a prompt nor a resource; LP_ENOT_FOUND: the client has no stream open
 * on which to ask; LP_ELIMIT, LP_ENOMEM.
 *
 * In 2026-07-28 the question is the answer to the request: the call ends here (`over` comes), and
 * when the client has asked again, with its answer and within `timeout_us`, the handler runs once
 * more from its start, perhaps in another process (args.keys); up to here it must ask the same
 * questions in the same order, and they are answered at once. So a handler does nothing with
 * lasting effect before its last question, and a client may repeat what comes after it. */
LP_MUST int lp_job_ask(
    struct lp_job *call, const char *method, struct lp_span params, uint64_t timeout_us);
/* Several at once, each under a name of the program's own (letters, digits and _, less than 64);
 * `wake` follows with an object of all answers in `result`, or with the first error. The same
 * errors. With a session they are asked one after the other, `timeout_us` each. */
LP_MUST int lp_job_ask_all(
    struct lp_job *call, const struct lp_question *questions, uint32_t count, uint64_t timeout_us);
/* Ends the connection of the call's stream, not the call: the client comes again for the rest
 * (2025-11-25, wire document 6.1). Does nothing where the client could not. */
void lp_job_poll(struct lp_job *call);

/* --- the session's state: bytes of the program's own that live as long as the session, wherever
 * that is kept. Each change makes the revision one higher, and names the one that it was made from:
 * so calls that run at the same time, on this replica or another, overwrite nothing --- */

/* Reads it: `wake` follows with LP_WAKE_STATE. LP_EUNSUPPORTED: there is no session; LP_ELIMIT,
 * LP_ENOMEM. */
LP_MUST int lp_job_state_get(struct lp_job *call);
/* Writes it if its revision is still that one (0: nothing was written yet): `wake` follows as
 * before. `value` is copied. LP_ETOO_LONG: over LP_SERVER_STATE_MAX; LP_EUNSUPPORTED, LP_ELIMIT,
 * LP_ENOMEM. */
LP_MUST int lp_job_state_set(struct lp_job *call, uint64_t revision, struct lp_span value);

/* The call becomes a task (2026-07-28, extension io.modelcontextprotocol/tasks): its request is
 * answered with the task's name, and the client comes for the rest, until `ttl_ms` (> 0) is over.
 * To be called in `run`, or when the first questions have been answered, before anything is sent or
 * waited for. Needs lp_offer.has_tasks. LP_EUNSUPPORTED: it is none, and goes on as it was: the
 * client does not take tasks (see lp_job_lacks), or an event stream has begun; LP_ELIMIT: too many
 * tasks, or no memory. */
LP_MUST int lp_job_task(struct lp_job *call, uint32_t ttl_ms);

/* --- how it ends --- */

/* The result, raw JSON. */
void lp_job_result(struct lp_job *call, struct lp_span result);
/* The result that was written to `out`, which is released. When it did not fit: an error. */
void lp_job_finish(struct lp_job *call, struct lp_out *out);
/* A tool's result that is one text; and one that says what went wrong (isError). */
void lp_job_text(struct lp_job *call, struct lp_span text);
void lp_job_tool_error(struct lp_job *call, const char *text);
/* A JSON-RPC error. */
void lp_job_error(struct lp_job *call, int code, const char *message);
/* The call needs what the client has not said that it can: a ClientCapabilities object such as
 * {"sampling":{}}. -32021 in 2026-07-28, before it -32600. */
void lp_job_lacks(struct lp_job *call, const char *capabilities);

#endif
