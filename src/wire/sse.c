/* Server-sent events, read incrementally and written (WHATWG HTML 9.2.6, wire document 2.6).
 *
 * It decides where lines and events end and what the fields mean; bytes are kept as they are, UTF-8
 * is not checked. What an event means to MCP is left to others. The one thing to remember: an empty
 * line that ends in CR counts at once, without waiting for an LF that may never come; when the LF
 * comes it belongs to that line and is dropped. */
#include "wire/sse.h"

#define BOM LP_SPAN("\xEF\xBB\xBF")

/* Index of the first CR or LF, or s.len. Two searches in a window that doubles: the cost is linear
 * in the line found, also where a large read has thousands of short lines and only one kind of
 * line end, so that the search for the other kind would run to the end each time. */
static size_t find_line_end(struct lp_span s)
{
    size_t window = 64;
    for (size_t at = 0; at < s.len; at += window, window *= 2) {
        struct lp_span part = lp_span(s.ptr + at, s.len - at < window ? s.len - at : window);
        struct lp_span before_lf = lp_span(part.ptr, lp_span_find(part, '\n'));
        size_t end = lp_span_find(before_lf, '\r');
        if (end < part.len)
            return at + end;
    }
    return s.len;
}

/* The index behind the line end at `at`. A CR that is the last byte leaves the question open. */
static size_t skip_line_end(struct lp_span in, size_t at, bool *ret_after_cr)
{
    if (in.ptr[at++] == '\n')
        return at;
    if (at == in.len)
        *ret_after_cr = true;
    else if (in.ptr[at] == '\n')
        at++;
    return at;
}

/* --- where events end ------------------------------------------------------------------------- */

void lp_sse_border_init(struct lp_sse_border *b)
{
    *b = (struct lp_sse_border){.any = false};
}

size_t lp_sse_border_feed(struct lp_sse_border *b, struct lp_span in)
{
    size_t at = 0, border = 0;
    if (in.len == 0)
        return 0;
    if (b->after_cr && in.ptr[0] == '\n') {
        at = 1;
        border = b->any ? 0 : 1;
    }
    b->after_cr = false;
    while (at < in.len) {
        size_t n = find_line_end(lp_span_from(in, at));
        if (n)
            b->in_line = b->any = true;
        at += n;
        if (at == in.len)
            break;
        at = skip_line_end(in, at, &b->after_cr);
        if (!b->in_line) {
            border = at;
            b->any = false;
        }
        b->in_line = false;
    }
    return border;
}

bool lp_sse_border_at(const struct lp_sse_border *b)
{
    return !b->any;
}

/* --- events ----------------------------------------------------------------------------------- */

void lp_sse_init_in(struct lp_sse *s, size_t event_max, const struct lp_alloc *alloc)
{
    *s = (struct lp_sse){.started = false};
    lp_buf_init_in(&s->line, event_max, alloc);
    lp_buf_init_in(&s->data, event_max, alloc);
    lp_buf_init_in(&s->type, event_max, alloc);
    lp_buf_init_in(&s->id, event_max, alloc);
    lp_buf_init_in(&s->id_next, event_max, alloc);
}

void lp_sse_init(struct lp_sse *s, size_t event_max)
{
    lp_sse_init_in(s, event_max, NULL);
}

void lp_sse_release(struct lp_sse *s)
{
    lp_buf_release(&s->line);
    lp_buf_release(&s->data);
    lp_buf_release(&s->type);
    lp_buf_release(&s->id);
    lp_buf_release(&s->id_next);
}

/* Makes ready for the next event; the last event id stays. */
static void forget_event(struct lp_sse *s)
{
    lp_buf_clear(&s->data);
    lp_buf_clear(&s->type);
    s->data_touched = s->id_touched = s->has_retry = s->has_fields = s->reported = false;
    s->raw_bytes = 0;
}

/* The caller's limit is event_max, whichever buffer met it. */
static int append(struct lp_buf *buf, struct lp_span bytes)
{
    int err = lp_buf_append(buf, bytes);
    return err == LP_ELIMIT ? LP_ETOO_LONG : err;
}

static int replace(struct lp_buf *buf, struct lp_span bytes)
{
    lp_buf_clear(buf);
    return append(buf, bytes);
}

static int add_data(struct lp_sse *s, struct lp_span value)
{
    int err = s->data_touched ? append(&s->data, LP_SPAN("\n")) : LP_OK;
    s->data_touched = true;
    return err ? err : append(&s->data, value);
}

static int on_field(struct lp_sse *s, struct lp_span name, struct lp_span value)
{
    s->has_fields = true;
    if (lp_span_eq(name, LP_SPAN("data")))
        return add_data(s, value);
    if (lp_span_eq(name, LP_SPAN("event")))
        return replace(&s->type, value);
    if (lp_span_eq(name, LP_SPAN("id")) && lp_span_find(value, '\0') == value.len) {
        s->id_touched = true;
        return replace(&s->id_next, value);
    }
    if (lp_span_eq(name, LP_SPAN("retry")) && lp_span_to_u64(value, &s->retry_ms))
        s->has_retry = true;
    return LP_OK;
}

static int on_line(struct lp_sse *s, struct lp_span line)
{
    struct lp_span value;
    if (line.ptr[0] == ':')
        return LP_OK;
    struct lp_span name = lp_span_split(line, ':', &value);
    if (value.len && value.ptr[0] == ' ')
        value = lp_span_from(value, 1);
    return on_field(s, name, value);
}

/* An empty line. True when there is something to report; then *ret is filled. */
static bool dispatch(struct lp_sse *s, struct lp_sse_event *ret)
{
    if (!s->has_fields) {
        forget_event(s);
        return false;
    }
    if (s->id_touched) {
        struct lp_buf old = s->id;
        s->id = s->id_next;
        s->id_next = old;
    }
    s->reported = true;
    *ret = (struct lp_sse_event){
        .type = s->type.len ? lp_buf_span(&s->type) : LP_SPAN("message"),
        .data = lp_buf_span(&s->data),
        .has_data = s->data_touched,
        .id = lp_buf_span(&s->id),
        .has_id = s->id_touched,
        .has_retry = s->has_retry,
        .retry_ms = s->has_retry ? s->retry_ms : 0,
        .raw_bytes = s->raw_bytes,
    };
    return true;
}

/* The whole line of which `tail` is the last piece. */
static int join_line(struct lp_sse *s, struct lp_span tail, struct lp_span *ret_line)
{
    struct lp_span line = tail;
    if (tail.len > s->line.max)
        return LP_ETOO_LONG;
    if (s->line.len) {
        int err = append(&s->line, tail);
        if (err)
            return err;
        line = lp_buf_span(&s->line);
    }
    if (!s->started && lp_span_starts(line, BOM)) {
        line = lp_span_from(line, BOM.len);
        s->raw_bytes -= BOM.len;
    }
    s->started = true;
    *ret_line = line;
    return LP_OK;
}

/* Takes bytes up to a line end, or all. Bytes taken or an error. */
static ptrdiff_t feed_line(
    struct lp_sse *s, struct lp_span in, struct lp_sse_event *ret_event, bool *ret_ready)
{
    struct lp_span line;
    size_t n = find_line_end(in);
    if (n == in.len) {
        int err = append(&s->line, in);
        s->raw_bytes += n;
        return err ? err : (ptrdiff_t)n;
    }
    size_t taken = skip_line_end(in, n, &s->after_cr);
    s->raw_bytes += taken;
    int err = join_line(s, lp_span(in.ptr, n), &line);
    if (err == LP_OK && line.len)
        err = on_line(s, line);
    else if (err == LP_OK)
        *ret_ready = dispatch(s, ret_event);
    lp_buf_clear(&s->line);
    return err ? err : (ptrdiff_t)taken;
}

ptrdiff_t lp_sse_feed(
    struct lp_sse *s, struct lp_span in, struct lp_sse_event *ret_event, bool *ret_ready)
{
    size_t at = 0;
    bool ready = false;
    if (s->reported)
        forget_event(s);
    if (in.len && s->after_cr) {
        at = in.ptr[0] == '\n' ? 1 : 0;
        s->after_cr = false;
        /* Behind an empty line it belongs to an event that is over, and is not counted. */
        s->raw_bytes += s->raw_bytes ? at : 0;
    }
    while (at < in.len && !ready) {
        ptrdiff_t n = feed_line(s, lp_span_from(in, at), ret_event, &ready);
        if (n < 0)
            return n;
        at += (size_t)n;
    }
    *ret_ready = ready;
    return (ptrdiff_t)at;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int write_line(struct lp_buf *out, struct lp_span name, struct lp_span value)
{
    char *room = NULL;
    int err = lp_buf_reserve(out, name.len + value.len + 1, &room);
    if (err)
        return err;
    memcpy(room, name.ptr, name.len);
    if (value.len)
        memcpy(room + name.len, value.ptr, value.len);
    room[name.len + value.len] = '\n';
    lp_buf_commit(out, name.len + value.len + 1);
    return LP_OK;
}

static int write_data(struct lp_buf *out, struct lp_span data)
{
    for (;;) {
        size_t n = find_line_end(data);
        bool after_cr;
        int err = write_line(out, LP_SPAN("data: "), lp_span(data.ptr, n));
        if (err || n == data.len)
            return err;
        data = lp_span_from(data, skip_line_end(data, n, &after_cr));
    }
}

static int write_event(
    struct lp_buf *out, struct lp_span type, struct lp_span id, struct lp_span data)
{
    int err = type.len ? write_line(out, LP_SPAN("event: "), type) : LP_OK;
    if (!err && id.len)
        err = write_line(out, LP_SPAN("id: "), id);
    if (!err)
        err = write_data(out, data);
    return err ? err : lp_buf_append(out, LP_SPAN("\n"));
}

int lp_sse_write(struct lp_buf *out, struct lp_span type, struct lp_span id, struct lp_span data)
{
    size_t len_before = out->len;
    if (find_line_end(type) < type.len || find_line_end(id) < id.len ||
        lp_span_find(id, '\0') < id.len)
        return LP_ESYNTAX;
    int err = write_event(out, type, id, data);
    if (err)
        out->len = len_before; /* half an event would swallow what comes after it */
    return err;
}
