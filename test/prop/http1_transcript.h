/* What the HTTP/1 parser says about some bytes, as text, so that two ways of feeding the same bytes
 * can be compared by comparing texts. Used by the property test and the fuzz target.
 *
 * Every piece is freed when it has been consumed, so a sanitizer sees a span that outlives its
 * bytes. On the way each head is written and parsed again and must be the same head (the law of the
 * writer). */
#ifndef LP_TEST_HTTP1_TRANSCRIPT_H
#define LP_TEST_HTTP1_TRANSCRIPT_H

#include "cuts.h"
#include "wire/http1.h"

struct transcript_setup {
    enum lp_http1_side side;
    enum lp_method answered; /* responses: what every answer is taken to answer */
    size_t head_max;
};

struct transcript {
    struct lp_buf text;
    bool in_body;
    bool failed;
};

static void say(struct transcript *t, struct lp_span s)
{
    int err = lp_buf_append(&t->text, s);
    LP_ASSERT(!err);
}

static void say_number(struct transcript *t, const char *what, long long n)
{
    int err = lp_buf_printf(&t->text, " %s %lld", what, n);
    LP_ASSERT(!err);
}

/* Everything a head says. The framing fields are told by their effect when `is_written`, because
 * the writer has its own spelling of them. */
static void say_head(struct transcript *t, const struct lp_head *head, bool is_written)
{
    say(t, LP_SPAN("head "));
    say(t, head->is_request ? head->method_name : head->reason);
    say(t, LP_SPAN(" "));
    say(t, head->target);
    say_number(t, "method", head->method);
    say_number(t, "status", head->status);
    say_number(t, "minor", is_written ? 1 : head->minor);
    say_number(t, "kind", head->body);
    say_number(t, "bytes", (long long)head->body_bytes);
    say_number(t, "keep", head->keep_alive);
    if (!is_written || head->minor == 1)
        say_number(t, "expects", head->expect_continue);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        bool is_framing = field->id == LP_FIELD_CONTENT_LENGTH ||
            field->id == LP_FIELD_TRANSFER_ENCODING || field->id == LP_FIELD_CONNECTION;
        if (is_written && is_framing)
            continue;
        LP_ASSERT(field->id == lp_field_lookup(field->name));
        say_number(t, "\nfield", field->id);
        say(t, LP_SPAN(" <"));
        say(t, field->name);
        say(t, LP_SPAN("> <"));
        say(t, field->value);
        say(t, LP_SPAN(">"));
    }
    say(t, LP_SPAN("\n"));
}

static void check_same(struct lp_span a, struct lp_span b)
{
    LP_ASSERT(lp_span_eq(a, b));
}

/* parse(write(head)) says the same as head. */
static void check_written(const struct lp_head *parsed)
{
    static struct lp_head again, head;
    struct transcript before = {0}, after = {0};
    struct lp_buf wire;
    struct lp_http1 p;
    struct lp_http1_item item;
    head = *parsed;
    /* What a proxy must do to send an HTTP/1.0 request on as 1.1; then perhaps it is full. */
    if (head.is_request && !lp_head_find(&head, LP_FIELD_HOST, NULL) &&
        lp_head_add(&head, LP_FIELD_HOST, LP_SPAN("h")))
        return;
    if (head.field_count >= LP_HEAD_FIELDS_MAX - 2)
        return;
    lp_buf_init(&before.text, 1 << 24);
    lp_buf_init(&after.text, 1 << 24);
    lp_buf_init(&wire, 1 << 24);
    int err = lp_http1_write_head(&wire, &head);
    LP_ASSERT(!err);
    lp_http1_init(&p, head.is_request ? LP_HTTP1_REQUESTS : LP_HTTP1_RESPONSES, &again);
    if (!head.is_request)
        lp_http1_answering(&p, head.method);
    p.head_max = wire.len + 1;
    ptrdiff_t n = lp_http1_feed(&p, lp_buf_span(&wire), &item);
    LP_ASSERT(n == (ptrdiff_t)wire.len && item.kind == LP_HTTP1_HEAD);
    again.minor = head.minor; /* always written as 1.1 */
    say_head(&before, &head, true);
    say_head(&after, &again, true);
    check_same(lp_buf_span(&before.text), lp_buf_span(&after.text));
    lp_http1_release(&p);
    lp_buf_release(&before.text);
    lp_buf_release(&after.text);
    lp_buf_release(&wire);
}

static void say_item(struct transcript *t, struct lp_http1 *p, const struct lp_http1_item *item)
{
    if (item->kind == LP_HTTP1_NONE)
        return;
    if (item->kind == LP_HTTP1_BODY && !t->in_body)
        say(t, LP_SPAN("body "));
    t->in_body = item->kind == LP_HTTP1_BODY;
    if (item->kind == LP_HTTP1_HEAD) {
        say_head(t, item->head, false);
        check_written(item->head);
    } else if (item->kind == LP_HTTP1_BODY) {
        LP_ASSERT(item->body.len > 0);
        say(t, item->body);
    } else {
        say(t, LP_SPAN("\nend\n"));
        LP_ASSERT(lp_http1_is_between(p));
    }
}

/* Feeds one piece until the parser has nothing more to say about it, and gives it back. */
static void feed_piece(struct transcript *t, struct lp_http1 *p, const struct transcript_setup *s,
    struct lp_span piece)
{
    struct lp_span rest = piece;
    struct lp_http1_item item = {0};
    do {
        ptrdiff_t n = lp_http1_feed(p, rest, &item);
        if (n < 0) {
            say_number(t, "\nerror", n);
            t->failed = true;
            break;
        }
        LP_ASSERT((size_t)n <= rest.len);
        rest = lp_span_from(rest, (size_t)n);
        say_item(t, p, &item);
        if (item.kind == LP_HTTP1_END && s->side == LP_HTTP1_RESPONSES)
            lp_http1_answering(p, s->answered);
    } while (item.kind != LP_HTTP1_NONE);
    LP_ASSERT(t->failed || rest.len == 0);
    free((char *)piece.ptr);
}

static void say_ending(struct transcript *t, struct lp_http1 *p)
{
    bool ended = false;
    say_number(t, "\nbetween", lp_http1_is_between(p));
    say_number(t, "eof", lp_http1_eof(p, &ended));
    say_number(t, "ended", ended);
}

/* The transcript of `bytes` fed in pieces; release ret->text afterwards. */
static void transcribe(struct transcript *ret, const struct transcript_setup *s,
    struct lp_span bytes, struct cuts cuts)
{
    static struct lp_head head;
    struct lp_http1 p;
    *ret = (struct transcript){0};
    lp_buf_init(&ret->text, 1 << 26);
    lp_http1_init(&p, s->side, &head);
    p.head_max = s->head_max;
    if (s->side == LP_HTTP1_RESPONSES)
        lp_http1_answering(&p, s->answered);
    while (bytes.len && !ret->failed) {
        struct lp_span piece = cut_piece(&cuts, bytes);
        bytes = lp_span_from(bytes, piece.len);
        feed_piece(ret, &p, s, piece);
    }
    say_ending(ret, &p);
    lp_http1_release(&p);
}

#endif
