/* Server-sent events as the public header has them (limpet.h; wire/sse.h). That a reader which
 * failed stays failed is seen to here: in the gateway the stream ends with the first error. */
#include "wire/sse.h"

#include "lib/glue.h"

enum { RETRY_LINE_MAX = 7 + 20 + 1 };

struct limpet_sse {
    struct lp_lib_object object;
    struct lp_sse sse;
    int failed; /* the error that every further call gets, or 0 */
};

/* --- reading ---------------------------------------------------------------------------------- */

int limpet_sse_new(
    const struct limpet_alloc *alloc, size_t event_bytes_max, struct limpet_sse **ret_sse)
{
    if (event_bytes_max == 0 || event_bytes_max > LIMPET_SSE_EVENT_MAX)
        return LIMPET_ERANGE;
    struct limpet_sse *sse = lp_lib_new(alloc, sizeof *sse);
    if (!sse)
        return LIMPET_ENOMEM;
    lp_sse_init_in(&sse->sse, event_bytes_max, &sse->object.alloc);
    *ret_sse = sse;
    return LIMPET_OK;
}

void limpet_sse_free(struct limpet_sse *sse)
{
    if (sse)
        lp_sse_release(&sse->sse);
    lp_lib_free(sse);
}

static struct limpet_sse_event event_out(const struct lp_sse_event *event)
{
    return (struct limpet_sse_event){.type = lp_lib_out(event->type),
        .data = lp_lib_out(event->data),
        .has_data = event->has_data,
        .id = lp_lib_out(event->id),
        .has_id = event->has_id,
        .has_retry = event->has_retry,
        .retry_ms = event->retry_ms,
        .raw_bytes = event->raw_bytes};
}

ptrdiff_t limpet_sse_feed(struct limpet_sse *sse, struct limpet_span in,
    struct limpet_sse_event *ret_event, bool *ret_ready)
{
    struct lp_sse_event event;
    bool is_ready = false;
    if (sse->failed)
        return sse->failed;
    ptrdiff_t taken = lp_sse_feed(&sse->sse, lp_lib_in(in), &event, &is_ready);
    if (taken < 0) {
        sse->failed = (int)taken;
        return taken;
    }
    if (is_ready)
        *ret_event = event_out(&event);
    *ret_ready = is_ready;
    return taken;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* "retry: 3000" and LF; returns how many bytes, none where there is no retry. */
static size_t write_retry(const struct limpet_sse_event *event, char room[RETRY_LINE_MAX])
{
    char digits[20];
    size_t count = 0, len = 7;
    uint64_t left = event->retry_ms;
    if (!event->has_retry)
        return 0;
    do {
        digits[count++] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    memcpy(room, "retry: ", len);
    while (count)
        room[len++] = digits[--count];
    room[len++] = '\n';
    return len;
}

static size_t count_lines(struct limpet_span data)
{
    size_t lines = 1;
    for (size_t i = 0; i < data.len; i++) {
        bool is_crlf = data.ptr[i] == '\n' && i && data.ptr[i - 1] == '\r';
        if ((data.ptr[i] == '\n' || data.ptr[i] == '\r') && !is_crlf)
            lines++;
    }
    return lines;
}

/* Bytes of data without its line ends. */
static size_t count_text(struct limpet_span data)
{
    size_t text = 0;
    for (size_t i = 0; i < data.len; i++)
        text += data.ptr[i] != '\n' && data.ptr[i] != '\r';
    return text;
}

size_t limpet_sse_write_bytes(const struct limpet_sse_event *event)
{
    char line[RETRY_LINE_MAX];
    size_t bytes = write_retry(event, line);
    if (event->type.len)
        bytes += sizeof "event: \n" - 1 + event->type.len;
    if (event->id.len)
        bytes += sizeof "id: \n" - 1 + event->id.len;
    return bytes + count_lines(event->data) * (sizeof "data: \n" - 1) + count_text(event->data) + 1;
}

int limpet_sse_write(
    const struct limpet_sse_event *event, char *room, size_t room_bytes, size_t *ret_len)
{
    char line[RETRY_LINE_MAX];
    if (room_bytes < limpet_sse_write_bytes(event))
        return LIMPET_ELIMIT;
    struct lp_buf out = lp_lib_room(room, room_bytes);
    int err = lp_buf_append(&out, lp_span(line, write_retry(event, line)));
    if (!err)
        err = lp_sse_write(
            &out, lp_lib_in(event->type), lp_lib_in(event->id), lp_lib_in(event->data));
    if (err)
        return err;
    *ret_len = out.len;
    return LIMPET_OK;
}

/* --- where events end ------------------------------------------------------------------------- */

static struct lp_sse_border border_in(const struct limpet_sse_border *border)
{
    return (struct lp_sse_border){
        .in_line = border->in_line, .after_cr = border->after_cr, .any = border->any};
}

void limpet_sse_border_init(struct limpet_sse_border *border)
{
    *border = (struct limpet_sse_border){.any = false};
}

size_t limpet_sse_border_feed(struct limpet_sse_border *border, struct limpet_span in)
{
    struct lp_sse_border inner = border_in(border);
    size_t offset = lp_sse_border_feed(&inner, lp_lib_in(in));
    *border = (struct limpet_sse_border){
        .in_line = inner.in_line, .after_cr = inner.after_cr, .any = inner.any};
    return offset;
}

bool limpet_sse_border_at(const struct limpet_sse_border *border)
{
    struct lp_sse_border inner = border_in(border);
    return lp_sse_border_at(&inner);
}
