/* Prepared answers (call/answers.h): which one is next. */
#include "call/answers.h"

#include "wire/json.h"
#include "wire/member.h"

struct filling {
    struct lp_answers *answers;
    bool is_over;
};

static void take_method(void *ctx, struct lp_span key, struct lp_span value)
{
    struct filling *f = ctx;
    struct lp_answers *a = f->answers;
    f->is_over |= a->count == LP_ANSWERS_METHODS_MAX;
    if (!f->is_over)
        a->methods[a->count++] = (struct lp_answers_method){.key = key, .value = value};
}

int lp_answers_init(struct lp_answers *answers, struct lp_span text)
{
    *answers = (struct lp_answers){0};
    lp_buf_init(&answers->text, LP_ANSWERS_BYTES_MAX);
    int err = lp_json_is_object(text) ? LP_OK : LP_ESYNTAX;
    if (!err)
        err = lp_buf_append(&answers->text, text);
    if (err)
        return err;
    struct filling f = {.answers = answers};
    lp_members(lp_buf_span(&answers->text), take_method, &f);
    return f.is_over ? LP_ELIMIT : LP_OK;
}

void lp_answers_fini(struct lp_answers *answers)
{
    lp_buf_release(&answers->text);
    answers->count = 0;
}

static const struct lp_answers_method *find(const struct lp_answers *answers, struct lp_span method)
{
    for (uint32_t i = 0; i < answers->count; i++)
        if (lp_json_string_is(answers->methods[i].key, method))
            return &answers->methods[i];
    return NULL;
}

struct lp_span lp_answers_unknown(const struct lp_answers *answers)
{
    static const struct lp_span KNOWN[] = {
        {"elicitation/create", 18}, {"sampling/createMessage", 22}, {"roots/list", 10}};
    for (uint32_t i = 0; i < answers->count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
            is_known |= lp_json_string_is(answers->methods[i].key, KNOWN[k]);
        if (!is_known)
            return answers->methods[i].key;
    }
    return LP_SPAN("");
}

bool lp_answers_has(const struct lp_answers *answers, struct lp_span method)
{
    return find(answers, method) != NULL;
}

struct picking {
    uint32_t wanted;
    uint32_t index;
    struct lp_span picked;
};

static void pick(void *ctx, struct lp_span element)
{
    struct picking *p = ctx;
    if (p->index++ <= p->wanted)
        p->picked = element; /* the last one is for all further questions */
}

int lp_answers_next(struct lp_answers *answers, struct lp_span method, struct lp_buf *out)
{
    const struct lp_answers_method *found = find(answers, method);
    if (!found)
        return LP_ENOT_FOUND;
    struct lp_answers_method *of = &answers->methods[found - answers->methods];
    struct picking p = {.wanted = of->used++, .picked = of->value};
    if (lp_span_starts(of->value, LP_SPAN("["))) {
        p.picked = LP_SPAN("");
        lp_elements(of->value, pick, &p);
    }
    if (!p.picked.len)
        return LP_ENOT_FOUND;
    bool is_content = lp_span_eq(method, LP_SPAN("elicitation/create")) &&
        !lp_member(p.picked, LP_SPAN("action")).len;
    int err =
        is_content ? lp_buf_append(out, LP_SPAN("{\"action\":\"accept\",\"content\":")) : LP_OK;
    if (!err)
        err = lp_buf_append(out, p.picked);
    if (!err && is_content)
        err = lp_buf_append(out, LP_SPAN("}"));
    return err;
}
