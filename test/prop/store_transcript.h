/* What the reader of the store's replies says about some bytes, as text: two ways of feeding the
 * same bytes are compared by comparing texts. Used by property test and fuzz target. */
#ifndef LP_TEST_STORE_TRANSCRIPT_H
#define LP_TEST_STORE_TRANSCRIPT_H

#include "base/buf.h"
#include "base/error.h"
#include "cuts.h"
#include "store/reader.h"

static inline void store_say(struct lp_buf *out, struct lp_span s)
{
    int err = lp_buf_append(out, s);
    LP_ASSERT(!err);
}

static inline void store_say_reply(struct lp_buf *out, const struct lp_store_reply *reply)
{
    static const char *const KINDS[] = {"nil", "int", "str", "arr", "err"};
    int err = lp_buf_printf(
        out, "%s %lld %u <", KINDS[reply->kind], (long long)reply->integer, (unsigned)reply->count);
    LP_ASSERT(!err);
    store_say(out, reply->text);
    uint32_t count = 0;
    for (const struct lp_store_reply *item = reply->first; item; item = item->next, count++) {
        LP_ASSERT(item == lp_store_reply_item(reply, count));
        store_say_reply(out, item);
    }
    LP_ASSERT(count == reply->count);
    store_say(out, LP_SPAN(">"));
}

/* All replies in `piece`; 0 or the reader's error. */
static inline int store_read_piece(
    struct lp_store_reader *reader, struct lp_span piece, struct lp_buf *out)
{
    int err = lp_store_reader_feed(reader, piece);
    while (!err) {
        const struct lp_store_reply *reply = NULL;
        err = lp_store_reader_next(reader, &reply);
        if (err || !reply)
            break;
        store_say_reply(out, reply);
        store_say(out, LP_SPAN("\n"));
    }
    return err;
}

static inline void store_transcript(
    struct lp_span in, struct cuts cuts, size_t reply_max, struct lp_buf *out)
{
    struct lp_store_reader reader;
    lp_store_reader_init(&reader, reply_max);
    int err = LP_OK;
    while (in.len && !err) {
        struct lp_span piece = cut_piece(&cuts, in);
        in = lp_span_from(in, piece.len);
        err = store_read_piece(&reader, piece, out);
        free((char *)piece.ptr);
    }
    if (err)
        store_say(out, lp_span_str(lp_error_name(err)));
    lp_store_reader_reset(&reader);
    lp_store_reader_reset(&reader);
}

#endif
