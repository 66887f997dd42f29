/* An event written, sent in two pieces, and read again; and where a comment may be put in to keep a
 * quiet stream open (limpet_sse(3)). */
#include <limpet.h>
#include <stdio.h>

static int feed(struct limpet_sse *sse, struct limpet_span in)
{
    while (in.len) {
        struct limpet_sse_event event;
        bool is_ready = false;
        ptrdiff_t taken = limpet_sse_feed(sse, in, &event, &is_ready);
        if (taken < 0)
            return (int)taken;
        in = limpet_bytes(in.ptr + taken, in.len - (size_t)taken);
        if (is_ready)
            printf("event %.*s, id %.*s: %.*s\n", (int)event.type.len, event.type.ptr,
                (int)event.id.len, event.id.ptr, (int)event.data.len, event.data.ptr);
    }
    return LIMPET_OK;
}

int main(void)
{
    char stream[200];
    size_t len = 0;
    struct limpet_sse *sse = NULL;
    struct limpet_sse_event event = LIMPET_ZERO;
    event.id = limpet_str("17");
    event.data = limpet_str("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}");
    int err = limpet_sse_write(&event, stream, sizeof stream, &len);
    if (!err)
        err = limpet_sse_new(NULL, 1024 * 1024, &sse);

    struct limpet_sse_border border;
    limpet_sse_border_init(&border);
    for (size_t at = 0; at < len && !err; at += 30) {
        struct limpet_span piece = limpet_bytes(stream + at, len - at < 30 ? len - at : 30);
        err = feed(sse, piece);
        (void)limpet_sse_border_feed(&border, piece);
        printf("a comment %s\n", limpet_sse_border_at(&border) ? "may follow" : "must wait");
    }
    if (err)
        fprintf(stderr, "the stream: %s\n", limpet_error_sentence(err));
    limpet_sse_free(sse);
    return err ? 1 : 0;
}
