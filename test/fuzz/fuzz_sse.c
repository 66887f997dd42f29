/* Server-sent events from any bytes: any split gives the same events and borders, they are those of
 * a plain reading of the standard, and each reads back when written. The first byte chooses the
 * limit and the random split; the rest is the stream. */
#include "../prop/sse_transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_FACTOR = 200, WIDE = 1 << 20 };

static void render(struct lp_span in, struct cuts cuts, size_t event_max, struct lp_buf *out)
{
    lp_buf_init(out, in.len * (OUT_FACTOR + in.len) + 1000);
    sse_transcript(in, cuts, event_max, out);
    border_transcript(in, cuts, out);
}

static void check_same(struct lp_span in, struct cuts cuts, size_t event_max)
{
    struct lp_buf whole, parts;
    render(in, (struct cuts){CUT_NONE, 0, 0}, event_max, &whole);
    render(in, cuts, event_max, &parts);
    LP_ASSERT(lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts)));
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

static void check_reference(struct lp_span in)
{
    struct lp_buf ours, plain;
    lp_buf_init(&ours, in.len * (OUT_FACTOR + in.len) + 1000);
    lp_buf_init(&plain, in.len * (OUT_FACTOR + in.len) + 1000);
    sse_transcript(in, (struct cuts){CUT_NONE, 0, 0}, WIDE, &ours);
    sse_reference(in, &plain);
    LP_ASSERT(lp_span_eq(lp_buf_span(&ours), lp_buf_span(&plain)));
    lp_buf_release(&ours);
    lp_buf_release(&plain);
}

/* Any bytes as type, id and data: refused, or read back (the transcript checks what was read). */
static void check_write(struct lp_span in)
{
    struct lp_buf text;
    size_t third = in.len / 3;
    struct lp_span type = lp_span(in.ptr, third);
    struct lp_span id = lp_span(in.ptr + third, third);
    struct lp_span data = lp_span_from(in, 2 * third);
    lp_buf_init(&text, 7 * in.len + 100);
    bool is_bad = lp_span_find(type, '\n') < type.len || lp_span_find(type, '\r') < type.len ||
        lp_span_find(id, '\n') < id.len || lp_span_find(id, '\r') < id.len ||
        lp_span_find(id, '\0') < id.len;
    int err = lp_sse_write(&text, type, id, data);
    LP_ASSERT(err == (is_bad ? LP_ESYNTAX : LP_OK));
    if (!err)
        check_reference(lp_buf_span(&text));
    struct lp_buf small;
    lp_buf_init(&small, text.len ? text.len - 1 : 0);
    err = lp_sse_write(&small, type, id, data);
    LP_ASSERT(err == (is_bad ? LP_ESYNTAX : LP_ELIMIT) && small.len == 0);
    lp_buf_release(&small);
    lp_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    struct lp_span in = lp_span((const char *)data + 1, size - 1);
    size_t event_max = data[0];
    check_reference(in);
    check_same(in, (struct cuts){CUT_BYTES, 0, 0}, event_max);
    check_same(in, (struct cuts){CUT_AT, event_max, 0}, WIDE);
    check_same(in, (struct cuts){CUT_RANDOM, 0, event_max + 1}, event_max);
    check_write(in);
    return 0;
}
