/* What the event reader and the border tracker say about some bytes, as text: two ways of feeding
 * the same bytes are compared by comparing texts. sse_reference says the same by the plainest
 * reading of the standard, from the whole input at once. Used by property test and fuzz target. */
#ifndef LP_TEST_SSE_TRANSCRIPT_H
#define LP_TEST_SSE_TRANSCRIPT_H

#include "cuts.h"
#include "wire/sse.h"

static inline void say(struct lp_buf *out, struct lp_span s)
{
    int err = lp_buf_append(out, s);
    LP_ASSERT(!err);
}

static inline void say_event(struct lp_buf *out, const struct lp_sse_event *e)
{
    say(out, LP_SPAN("type <"));
    say(out, e->type);
    say(out, e->has_data ? LP_SPAN("> data <") : LP_SPAN("> none <"));
    say(out, e->data);
    say(out, e->has_id ? LP_SPAN("> own id <") : LP_SPAN("> id <"));
    say(out, e->id);
    int err =
        lp_buf_printf(out, "> retry %d %llu", (int)e->has_retry, (unsigned long long)e->retry_ms);
    LP_ASSERT(!err);
}

/* " [begin, end)" of an event that was reported at `end`. An LF behind its last CR may not have
 * been there yet: it is added. */
static inline void say_place(struct lp_buf *out, struct lp_span in, size_t end, size_t raw_bytes)
{
    size_t begin = end - raw_bytes;
    LP_ASSERT(raw_bytes > 0 && raw_bytes <= end);
    if (in.ptr[end - 1] == '\r' && end < in.len && in.ptr[end] == '\n')
        end++;
    int err = lp_buf_printf(out, " [%zu, %zu)\n", begin, end);
    LP_ASSERT(!err);
}

/* What write(event) says when it is read again: the same, but that CR and CRLF in data are LF. */
static inline void check_written(const struct lp_sse_event *e)
{
    struct lp_buf text;
    struct lp_sse reader;
    struct lp_sse_event again;
    bool ready = false;
    lp_buf_init(&text, 4 * (e->data.len + e->type.len + e->id.len) + 100);
    lp_sse_init(&reader, text.max);
    int err = lp_sse_write(&text, e->type, e->id, e->data);
    LP_ASSERT(!err);
    ptrdiff_t n = lp_sse_feed(&reader, lp_buf_span(&text), &again, &ready);
    LP_ASSERT(ready && n == (ptrdiff_t)text.len && again.raw_bytes == text.len);
    LP_ASSERT(again.has_data && lp_span_eq(again.data, e->data));
    LP_ASSERT(lp_span_eq(again.type, e->type) && lp_span_eq(again.id, e->id));
    LP_ASSERT(again.has_id == (e->id.len > 0) && !again.has_retry);
    lp_sse_release(&reader);
    lp_buf_release(&text);
}

struct sse_place {
    struct lp_span in;
    size_t end;
};

/* All events of one piece. False when the reader gave up. */
static inline bool read_piece(
    struct lp_sse *reader, struct lp_span piece, struct sse_place *place, struct lp_buf *out)
{
    struct lp_sse_event event;
    bool ready = false;
    do {
        ptrdiff_t n = lp_sse_feed(reader, piece, &event, &ready);
        if (n < 0) {
            int err = lp_buf_printf(out, "error %d\n", (int)n);
            LP_ASSERT(!err);
            return false;
        }
        LP_ASSERT((size_t)n <= piece.len && (ready || (size_t)n == piece.len));
        piece = lp_span_from(piece, (size_t)n);
        place->end += (size_t)n;
        if (ready) {
            say_event(out, &event);
            say_place(out, place->in, place->end, event.raw_bytes);
            check_written(&event);
        }
    } while (piece.len);
    return true;
}

static inline void sse_transcript(
    struct lp_span in, struct cuts cuts, size_t event_max, struct lp_buf *out)
{
    struct lp_sse reader;
    struct lp_sse_event event;
    bool ready = true;
    struct sse_place place = {.in = in};
    lp_sse_init(&reader, event_max);
    for (struct lp_span rest = in; rest.len;) {
        struct lp_span piece = cut_piece(&cuts, rest);
        rest = lp_span_from(rest, piece.len);
        bool goes_on = read_piece(&reader, piece, &place, out);
        free((void *)piece.ptr);
        if (!goes_on)
            break;
    }
    ptrdiff_t n = lp_sse_feed(&reader, lp_span(NULL, 0), &event, &ready);
    LP_ASSERT(n == 0 && !ready);
    lp_sse_release(&reader);
    lp_sse_release(&reader);
}

/* The last border, and whether the input ends at it. A border between CR and LF is told as the one
 * behind the LF, when the LF is there. */
static inline void border_transcript(struct lp_span in, struct cuts cuts, struct lp_buf *out)
{
    struct lp_sse_border border;
    size_t last = 0, done = 0;
    lp_sse_border_init(&border);
    LP_ASSERT(lp_sse_border_at(&border));
    while (done < in.len) {
        struct lp_span piece = cut_piece(&cuts, lp_span_from(in, done));
        size_t n = lp_sse_border_feed(&border, piece);
        LP_ASSERT(n <= piece.len);
        last = n ? done + n : last;
        done += piece.len;
        LP_ASSERT(lp_sse_border_at(&border) == (last == done));
        free((void *)piece.ptr);
    }
    int err = lp_buf_printf(out, "border %zu %d\n", last, (int)lp_sse_border_at(&border));
    LP_ASSERT(!err);
}

/* --- the standard, read plainly --------------------------------------------------------------- */

/* The line at `at` without its end; *ret_next is where the next begins, 0 when there is no end. */
static inline struct lp_span plain_line(struct lp_span in, size_t at, size_t *ret_next)
{
    size_t end = at;
    while (end < in.len && in.ptr[end] != '\r' && in.ptr[end] != '\n')
        end++;
    bool is_pair = end + 1 < in.len && in.ptr[end] == '\r' && in.ptr[end + 1] == '\n';
    *ret_next = end == in.len ? 0 : end + (is_pair ? 2 : 1);
    return lp_span(in.ptr + at, end - at);
}

struct plain_event {
    struct lp_sse_event event;
    struct lp_buf data; /* each line and an LF */
    bool has_fields;
    struct lp_span next_id;
    size_t begin;
};

static inline void plain_field(struct plain_event *p, struct lp_span line)
{
    struct lp_span value;
    struct lp_span name = lp_span_split(line, ':', &value);
    if (value.len && value.ptr[0] == ' ')
        value = lp_span_from(value, 1);
    p->has_fields = true;
    if (lp_span_eq(name, LP_SPAN("data"))) {
        p->event.has_data = true;
        say(&p->data, value);
        say(&p->data, LP_SPAN("\n"));
    } else if (lp_span_eq(name, LP_SPAN("event"))) {
        p->event.type = value;
    } else if (lp_span_eq(name, LP_SPAN("id")) && lp_span_find(value, '\0') == value.len) {
        p->event.has_id = true;
        p->next_id = value;
    } else if (lp_span_eq(name, LP_SPAN("retry"))) {
        p->event.has_retry |= lp_span_to_u64(value, &p->event.retry_ms);
    }
}

static inline void plain_dispatch(
    struct plain_event *p, struct lp_span in, size_t end, struct lp_buf *out)
{
    struct lp_sse_event *e = &p->event;
    if (p->has_fields) {
        if (e->type.len == 0)
            e->type = LP_SPAN("message");
        e->data = lp_buf_span(&p->data);
        e->data.len -= e->has_data ? 1 : 0;
        e->id = e->has_id ? p->next_id : e->id;
        say_event(out, e);
        say_place(out, in, end, end - p->begin);
    }
    lp_buf_clear(&p->data);
    *e = (struct lp_sse_event){.id = e->id};
    p->has_fields = false;
    p->begin = end;
}

static inline void sse_reference(struct lp_span in, struct lp_buf *out)
{
    struct plain_event p = {.has_fields = false};
    lp_buf_init(&p.data, in.len + 1);
    size_t at = lp_span_starts(in, LP_SPAN("\xEF\xBB\xBF")) ? 3 : 0;
    p.begin = at;
    for (;;) {
        size_t next;
        struct lp_span line = plain_line(in, at, &next);
        if (next == 0)
            break;
        if (line.len == 0)
            plain_dispatch(&p, in, next, out);
        else if (line.ptr[0] != ':')
            plain_field(&p, line);
        at = next;
    }
    lp_buf_release(&p.data);
}

#endif
