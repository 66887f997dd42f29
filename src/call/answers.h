/* Prepared answers to what a server asks (`limpet inspect --answer FILE`): by method, in turn.
 *
 *   {"elicitation/create": [{"name": "Ada"}, {"action": "decline"}],
 *    "sampling/createMessage": {"role": "assistant", "model": "m",
 *                               "content": {"type": "text", "text": "hello"}},
 *    "roots/list": {"roots": []}}
 *
 * A value is the result for each question of that method; an array holds results for one after the
 * other, the last one for all further ones. An elicitation's value without a member `action` is the
 * content of an accepted one. */
#ifndef LP_CALL_ANSWERS_H
#define LP_CALL_ANSWERS_H

#include "base/buf.h"
#include "base/error.h"

enum { LP_ANSWERS_METHODS_MAX = 16, LP_ANSWERS_BYTES_MAX = 8 << 20 };

struct lp_answers_method {
    struct lp_span key;   /* raw, with quotes */
    struct lp_span value; /* raw */
    uint32_t used;
};

struct lp_answers {
    struct lp_buf text;
    uint32_t count;
    struct lp_answers_method methods[LP_ANSWERS_METHODS_MAX];
};

/* Takes the text of a file. LP_ESYNTAX: it is no JSON object; LP_ELIMIT: too many methods, or too
 * long; LP_ENOMEM. */
LP_MUST int lp_answers_init(struct lp_answers *answers, struct lp_span text);
void lp_answers_fini(struct lp_answers *answers);

/* A key that is no method by which servers ask, as it stands there; empty when all are. */
struct lp_span lp_answers_unknown(const struct lp_answers *answers);

/* Whether there is an answer for the method. */
bool lp_answers_has(const struct lp_answers *answers, struct lp_span method);

/* Appends the next result for the method, raw JSON. LP_ENOT_FOUND, LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_answers_next(struct lp_answers *answers, struct lp_span method, struct lp_buf *out);

#endif
