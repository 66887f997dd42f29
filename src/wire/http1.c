/* The HTTP/1.1 push parser (wire/http1.h; RFC 9112): where lines, heads, bodies and messages end.
 *
 * What a message means, and whether it is welcome, is for the gate. One handler for each state,
 * driven by a loop that knows no grammar. A head goes through twice: `line_end` looks at every byte
 * as soon as it is there (line ends, controls, length), in whatever pieces it comes;
 * lp_http1_parse_head (http1_head.c) runs once, over the whole head. Both see the same bytes
 * however the input was split, so the verdict does not depend on the split. Bytes are copied only
 * when a head or line does not lie whole in one span. */
#include "wire/http1_priv.h"

/* What a handler says; errors are negative. */
enum step {
    STEP_ON = LP_OK, /* go on with the rest, in whatever state it is now */
    STEP_MORE,       /* all bytes are consumed */
    STEP_ITEM,       /* *ret is filled in */
};

typedef int (*handler_fn)(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret);

static void eat(struct lp_span *in, size_t n)
{
    *in = lp_span_from(*in, n);
}

static size_t smaller(size_t a, uint64_t b)
{
    return a < b ? a : (size_t)b;
}

/* --- lines, as they come --- */

/* Looks at the bytes that continue a line; `after_cr` says that what came before them ended with
 * CR. How many belong to the line, its LF included; 0 when the line does not end here; LP_ESYNTAX
 * for LF without CR, CR without LF and other controls, seen at once and not at the line's end. */
static ptrdiff_t line_end(struct lp_span bytes, bool after_cr)
{
    if (after_cr)
        return !bytes.len ? 0 : bytes.ptr[0] == '\n' ? 1 : LP_ESYNTAX;
    size_t cr = lp_field_value_len(bytes);
    if (cr == bytes.len)
        return 0;
    if (bytes.ptr[cr] != '\r')
        return LP_ESYNTAX;
    if (cr + 1 == bytes.len)
        return 0; /* its LF may still come */
    return bytes.ptr[cr + 1] == '\n' ? (ptrdiff_t)cr + 2 : LP_ESYNTAX;
}

/* Keeps the `n` bytes at the front of `in`, which is all that may be needed of it. */
static int hold(struct lp_http1 *p, struct lp_span *in, size_t n, size_t max)
{
    p->held.max = max;
    int err = lp_buf_append(&p->held, lp_span(in->ptr, n));
    if (!err)
        eat(in, n);
    return err;
}

/* The line or head does not end in the first `n` bytes of `in`: they are kept if there is hope. */
static int wait_for_more(struct lp_http1 *p, struct lp_span *in, size_t n, size_t max)
{
    if (p->held.len + n >= max)
        return LP_ETOO_LONG;
    LP_ASSERT(n == in->len);
    int err = hold(p, in, n, max);
    return err ? err : STEP_MORE;
}

/* What is held and the `n` bytes at the front of `in` as one span, without a copy if nothing is
 * held. Valid until the next handler runs. */
static int join(struct lp_http1 *p, struct lp_span *in, size_t n, struct lp_span *ret)
{
    if (!p->held.len) {
        *ret = lp_span(in->ptr, n);
        eat(in, n);
        return LP_OK;
    }
    int err = hold(p, in, n, p->held.len + n);
    if (err)
        return err;
    p->held_is_spent = true;
    *ret = lp_buf_span(&p->held);
    return LP_OK;
}

/* The part of `in` that a line or head of at most `max` bytes may still take. */
static struct lp_span window(const struct lp_http1 *p, struct lp_span in, uint64_t max)
{
    return lp_span(in.ptr, smaller(in.len, p->held.len < max ? max - p->held.len : 0));
}

/* One line of at most `max` bytes with its CRLF: STEP_ON when *ret is filled in, else STEP_MORE. */
static int take_line(struct lp_http1 *p, struct lp_span *in, size_t max, struct lp_span *ret)
{
    struct lp_span bytes = window(p, *in, max);
    ptrdiff_t n = line_end(bytes, ends_with_cr(lp_buf_span(&p->held)));
    if (n < 0)
        return (int)n;
    if (n == 0)
        return wait_for_more(p, in, bytes.len, max);
    return join(p, in, (size_t)n, ret);
}

/* --- heads --- */

/* A field's line waits in the `name` of the field that it will be; those over the limit are only
 * counted. */
static void note_line(struct lp_head *head, struct lp_span line)
{
    if (head->field_count < LP_HEAD_FIELDS_MAX)
        head->fields[head->field_count].name = line;
    head->field_count++;
}

/* For a head that came in pieces; else `head_end` has noted the lines. */
static void note_lines(struct lp_head *head, struct lp_span bytes)
{
    head->field_count = 0;
    struct lp_span line = next_text_line(&bytes);
    while ((line = next_text_line(&bytes)).len)
        note_line(head, line);
}

static enum lp_http1_state state_after_head(const struct lp_head *head)
{
    switch (head->body) {
    case LP_BODY_NONE:
        return LP_HTTP1_AT_END;
    case LP_BODY_LENGTH:
        return LP_HTTP1_IN_BODY;
    case LP_BODY_CHUNKED:
        return LP_HTTP1_IN_CHUNK_SIZE;
    case LP_BODY_UNTIL_CLOSE:
        return LP_HTTP1_IN_UNTIL_CLOSE;
    }
    LP_UNREACHABLE();
}

/* Looks at the lines of the head that are in `in`, and notes them if it begins there. How many
 * bytes belong to the head, its empty line included; 0 when that is not there yet. */
static ptrdiff_t head_end(struct lp_http1 *p, struct lp_span in)
{
    size_t held = p->held.len;
    size_t at = 0;
    bool after_cr = ends_with_cr(lp_buf_span(&p->held));
    p->head->field_count = 0;
    for (;;) {
        ptrdiff_t n = line_end(lp_span_from(in, at), after_cr);
        if (n <= 0)
            return n;
        size_t line_len = held + at + (size_t)n - p->line_start;
        bool is_field = p->line_start && line_len > 2;
        if (!held && is_field)
            note_line(p->head, lp_span(in.ptr + at, line_len - 2));
        at += (size_t)n;
        p->line_start = (uint32_t)(held + at);
        if (line_len == 2)
            return (ptrdiff_t)at;
        after_cr = false;
    }
}

/* RFC 9112 2.2: an empty line where a request line should be is from a careless client. */
static int skip_empty_line(struct lp_http1 *p)
{
    if (p->side == LP_HTTP1_RESPONSES || p->skipped == LP_HTTP1_LINE_SKIP_MAX)
        return LP_ESYNTAX;
    p->skipped++;
    return STEP_ON;
}

/* --- one handler for each state --- */

static int on_head(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    struct lp_span bytes = window(p, *in, p->head_max);
    ptrdiff_t n = head_end(p, bytes);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return wait_for_more(p, in, bytes.len, p->head_max);
    bool has_pieces = p->held.len > 0;
    p->line_start = 0;
    int err = join(p, in, (size_t)n, &bytes);
    if (err)
        return err;
    if (bytes.len == 2)
        return skip_empty_line(p);
    if (has_pieces)
        note_lines(p->head, bytes);
    err = lp_http1_parse_head(p, bytes);
    if (err)
        return err;
    if (!p->head->is_request && p->head->status >= 200)
        p->answered_method = LP_METHOD_GET;
    p->skipped = 0;
    p->left = p->head->body_bytes;
    p->state = state_after_head(p->head);
    ret->kind = LP_HTTP1_HEAD;
    ret->head = p->head;
    return STEP_ITEM;
}

static int give_body(struct lp_span *in, size_t n, struct lp_http1_item *ret)
{
    ret->kind = LP_HTTP1_BODY;
    ret->body = lp_span(in->ptr, n);
    eat(in, n);
    return STEP_ITEM;
}

/* A counted body, or the data of a chunk, which is followed by CRLF. */
static int on_counted(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    size_t n = smaller(in->len, p->left);
    p->left -= n;
    if (p->left == 0 && p->state == LP_HTTP1_IN_CHUNK_DATA) {
        p->state = LP_HTTP1_IN_CHUNK_END;
        p->left = 2;
    } else if (p->left == 0) {
        p->state = LP_HTTP1_AT_END;
    }
    return give_body(in, n, ret);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* RFC 9112 7.1: 1*HEXDIG, then nothing or an extension, which no one has found a use for. */
static int parse_chunk_size(struct lp_span line, uint64_t *ret_size)
{
    enum { DIGITS_MAX = 16 };
    struct lp_span extension;
    struct lp_span digits = lp_span_split(line, ';', &extension);
    uint64_t size = 0;
    if (digits.len == 0 || digits.len > DIGITS_MAX)
        return LP_ESYNTAX;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = hex_digit(digits.ptr[i]);
        if (digit < 0)
            return LP_ESYNTAX;
        size = size << 4 | (unsigned)digit;
    }
    *ret_size = size;
    return LP_OK;
}

static int on_chunk_size(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    (void)ret;
    struct lp_span line;
    int step = take_line(p, in, LP_HTTP1_CHUNK_LINE_MAX, &line);
    if (step != STEP_ON)
        return step;
    int err = parse_chunk_size(next_text_line(&line), &p->left);
    if (err)
        return err;
    p->state = p->left ? LP_HTTP1_IN_CHUNK_DATA : LP_HTTP1_IN_TRAILERS;
    if (!p->left)
        p->left = p->head_max;
    return STEP_ON;
}

static int on_chunk_end(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    (void)ret;
    LP_ASSERT(p->left == 1 || p->left == 2);
    if (in->ptr[0] != (p->left == 2 ? '\r' : '\n'))
        return LP_ESYNTAX;
    eat(in, 1);
    if (--p->left == 0)
        p->state = LP_HTTP1_IN_CHUNK_SIZE;
    return STEP_ON;
}

/* RFC 9110 6.5.1: trailers may not say anything about framing; to us they say nothing at all. */
static int check_trailer(struct lp_span line)
{
    struct lp_field field;
    int err = lp_http1_parse_field(line, &field);
    if (err)
        return err;
    bool frames = field.id == LP_FIELD_CONTENT_LENGTH || field.id == LP_FIELD_TRANSFER_ENCODING;
    return frames ? LP_EAMBIGUOUS : LP_OK;
}

static int on_trailers(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    struct lp_span line;
    (void)ret;
    int step = take_line(p, in, (size_t)p->left, &line);
    if (step != STEP_ON)
        return step;
    p->left -= line.len;
    line = next_text_line(&line);
    if (line.len)
        return check_trailer(line);
    p->state = LP_HTTP1_AT_END;
    return STEP_ON;
}

static int on_until_close(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    (void)p;
    return give_body(in, in->len, ret);
}

static int on_end(struct lp_http1 *p, struct lp_span *in, struct lp_http1_item *ret)
{
    (void)in;
    p->state = LP_HTTP1_IN_HEAD;
    ret->kind = LP_HTTP1_END;
    return STEP_ITEM;
}

static const handler_fn handlers[] = {
    [LP_HTTP1_IN_HEAD] = on_head,
    [LP_HTTP1_IN_BODY] = on_counted,
    [LP_HTTP1_IN_CHUNK_SIZE] = on_chunk_size,
    [LP_HTTP1_IN_CHUNK_DATA] = on_counted,
    [LP_HTTP1_IN_CHUNK_END] = on_chunk_end,
    [LP_HTTP1_IN_TRAILERS] = on_trailers,
    [LP_HTTP1_IN_UNTIL_CLOSE] = on_until_close,
    [LP_HTTP1_AT_END] = on_end,
};

/* --- the interface --- */

void lp_http1_init(struct lp_http1 *p, enum lp_http1_side side, struct lp_head *head)
{
    *p = (struct lp_http1){
        .side = side,
        .answered_method = LP_METHOD_GET,
        .head_max = LP_HTTP1_HEAD_MAX,
        .head = head,
    };
}

static void drop_held(struct lp_http1 *p)
{
    lp_buf_release(&p->held);
    p->held_is_spent = false;
}

void lp_http1_release(struct lp_http1 *p)
{
    drop_held(p);
    p->state = LP_HTTP1_DEAD;
}

void lp_http1_answering(struct lp_http1 *p, enum lp_method method)
{
    LP_ASSERT(p->side == LP_HTTP1_RESPONSES);
    p->answered_method = method;
}

ptrdiff_t lp_http1_feed(struct lp_http1 *p, struct lp_span in, struct lp_http1_item *ret)
{
    struct lp_span rest = in;
    int step = p->state == LP_HTTP1_DEAD ? LP_ESYNTAX : STEP_ON;
    while (step == STEP_ON) {
        LP_ASSERT(p->state < LP_HTTP1_DEAD);
        if (p->held_is_spent)
            drop_held(p);
        /* END is due without a further byte; no other handler is called without one. */
        bool is_due = rest.len || p->state == LP_HTTP1_AT_END;
        step = is_due ? handlers[p->state](p, &rest, ret) : STEP_MORE;
    }
    if (step < 0) {
        lp_http1_release(p);
        return step;
    }
    if (step == STEP_MORE) {
        LP_ASSERT(!rest.len);
        ret->kind = LP_HTTP1_NONE;
    }
    return (ptrdiff_t)(in.len - rest.len);
}

int lp_http1_eof(struct lp_http1 *p, bool *ret_ended_message)
{
    bool is_fair = lp_http1_is_between(p);
    bool ends_message = p->state == LP_HTTP1_IN_UNTIL_CLOSE || p->state == LP_HTTP1_AT_END;
    lp_http1_release(p);
    if (!is_fair && !ends_message)
        return LP_EBROKEN;
    *ret_ended_message = ends_message;
    return LP_OK;
}

bool lp_http1_is_between(const struct lp_http1 *p)
{
    return p->state == LP_HTTP1_IN_HEAD && !p->held.len;
}
