/* What a call has asked its client, and what it was answered (serve/inputs.c). */
#ifndef LP_SERVE_INPUTS_H
#define LP_SERVE_INPUTS_H

#include "serve/job.h"

struct lp_inputs {
    struct lp_out known;  /* {"key":{"of":mark of the question,"is":answer},...} */
    struct lp_out asked;  /* {"key":{"method":...,"params":...},...}: not answered yet */
    struct lp_out marks;  /* {"key":mark,...} of these */
    struct lp_out result; /* {"key":answer,...} of what the handler asks just now */
    uint64_t until_ms;    /* wall time until which the answers are taken */
    uint64_t timeout_us;  /* of each question to a session */
    uint32_t question_count;
    uint32_t answered_count; /* of those that go one after the other */
    bool is_single;          /* the handler gets one answer, not an object of them */
    bool is_in_turn;
    bool failed;
};

struct lp_questions {
    const struct lp_question *list;
    uint32_t count;
    uint64_t timeout_us;
    bool is_single;
};

/* Takes what came with a modern request. NULL, or a sentence that says what is wrong with it. */
LP_MUST const char *lp_inputs_begin(struct lp_job *call);
/* A modern call has asked: it gets its answers, or ends with its questions. */
void lp_inputs_go_on(struct lp_job *call);
/* tasks/update has brought answers to what a task has asked. */
void lp_inputs_update(struct lp_job *call, struct lp_span responses);
/* A session has answered, or not in time. False: that is all that was asked. */
LP_MUST bool lp_inputs_reply(struct lp_job *call, const struct lp_wake *wake);
/* NULL is harmless. */
void lp_inputs_free(struct lp_inputs *inputs);

/* --- job.c --- */

/* Whether the call's session can be asked: LP_OK or LP_EUNSUPPORTED. */
LP_MUST int lp_job_may_ask_session(const struct lp_job *call, const char *method);
/* Asks it. LP_EUNSUPPORTED, LP_ENOT_FOUND, LP_ELIMIT, LP_ENOMEM as lp_job_ask. */
LP_MUST int lp_job_ask_session(
    struct lp_job *call, const struct lp_question *question, uint64_t timeout_us);

#endif
