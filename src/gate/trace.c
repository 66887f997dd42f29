/* W3C trace context: a client's is passed on as it is, else a trace begins here ([G14]). One that
 * is malformed is none, and the state that came along with it says nothing (its section 4.3). */
#include "gate/engine_priv.h"

enum {
    TRACEPARENT_BYTES = 55,
    TRACE_ID_AT = 3,
    TRACE_ID_BYTES = 32,
    SPAN_ID_AT = 36,
    SPAN_ID_BYTES = 16,
    FLAGS_AT = 53,
};

/* Lower-case hexadecimal digits, not all of them zero unless they `may_be_zero`. */
static bool are_digits(struct lp_span text, size_t at, size_t len, bool may_be_zero)
{
    bool is_zero = true;
    for (size_t i = at; i < at + len; i++) {
        char c = text.ptr[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        is_zero &= c == '0';
    }
    return may_be_zero || !is_zero;
}

static bool is_traceparent(struct lp_span text)
{
    if (text.len < TRACEPARENT_BYTES || text.ptr[TRACE_ID_AT - 1] != '-' ||
        text.ptr[SPAN_ID_AT - 1] != '-' || text.ptr[FLAGS_AT - 1] != '-')
        return false;
    if (!are_digits(text, 0, 2, true) || !are_digits(text, TRACE_ID_AT, TRACE_ID_BYTES, false) ||
        !are_digits(text, SPAN_ID_AT, SPAN_ID_BYTES, false) || !are_digits(text, FLAGS_AT, 2, true))
        return false;
    struct lp_span version = lp_span(text.ptr, 2);
    if (lp_span_eq(version, LP_SPAN("ff")))
        return false;
    /* Later versions may have more behind a dash. */
    bool is_first = lp_span_eq(version, LP_SPAN("00"));
    return text.len == TRACEPARENT_BYTES || (!is_first && text.ptr[TRACEPARENT_BYTES] == '-');
}

/* Random digits. Two plain loops, which the compiler takes many bytes at a time. */
static void put_digits(struct lp_engine *e, char *at, size_t digits)
{
    unsigned char bytes[16];
    lp_entropy_bytes(&e->entropy, bytes, digits / 2);
    for (size_t i = 0; i < digits / 2; i++) {
        at[2 * i] = (char)(bytes[i] >> 4);
        at[2 * i + 1] = (char)(bytes[i] & 15);
    }
    for (size_t i = 0; i < digits; i++)
        at[i] = (char)(at[i] + (at[i] < 10 ? '0' : 'a' - 10));
}

static struct lp_span begin_trace(struct lp_engine *e, struct lp_exchange *x)
{
    char *text = lp_arena_alloc(&x->arena, TRACEPARENT_BYTES);
    if (!text)
        return lp_span(NULL, 0);
    memcpy(text, "00-", 3);
    put_digits(e, text + TRACE_ID_AT, TRACE_ID_BYTES);
    text[SPAN_ID_AT - 1] = '-';
    put_digits(e, text + SPAN_ID_AT, SPAN_ID_BYTES);
    memcpy(text + FLAGS_AT - 1, "-01", 3);
    return lp_span(text, TRACEPARENT_BYTES);
}

void lp_trace_add(struct lp_engine *e, struct lp_exchange *x, struct lp_head *head)
{
    struct lp_span parent = lp_kept_value(&x->request, LP_FIELD_TRACEPARENT);
    bool goes_on = is_traceparent(parent);
    if (!goes_on)
        parent = begin_trace(e, x);
    if (!parent.ptr)
        return;
    x->record.trace_id = lp_span(parent.ptr + TRACE_ID_AT, TRACE_ID_BYTES);
    (void)!lp_head_add(head, LP_FIELD_TRACEPARENT, parent);
    for (uint32_t i = 0; goes_on && i < x->request.field_count; i++)
        if (x->request.fields[i].id == LP_FIELD_TRACESTATE)
            (void)!lp_head_add(head, LP_FIELD_TRACESTATE, x->request.fields[i].value);
}
