/* The JSON reader on any bytes: any split gives the same tokens and verdict, tokens lie in order
 * and nest, strings decode, compare and quote consistently. The first byte chooses the split and
 * where the caller stops; the rest is the text. */
#include "../prop/json_transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 };

static void check_same(struct lp_span in, struct cuts cuts, size_t stop_after)
{
    struct lp_buf whole, parts;
    lp_buf_init(&whole, OUT_MAX);
    lp_buf_init(&parts, OUT_MAX);
    int verdict = json_transcript(in, (struct cuts){CUT_NONE, 0, 0}, stop_after, &whole);
    LP_ASSERT(json_transcript(in, cuts, stop_after, &parts) == verdict);
    LP_ASSERT(verdict == 0 || verdict == LP_ESYNTAX || verdict == LP_ELIMIT ||
        (stop_after && verdict == JSON_STOPPED));
    LP_ASSERT(lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts)));
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

/* Quoting needs what it needs: with one byte less nothing is appended. */
static void check_quote_limit(struct lp_span bytes)
{
    struct lp_buf whole, small;
    lp_buf_init(&whole, 6 * bytes.len + 2);
    int err = lp_json_quote(&whole, bytes);
    LP_ASSERT(!err);
    lp_buf_init(&small, whole.len - 1);
    err = lp_json_quote(&small, bytes);
    LP_ASSERT(err == LP_ELIMIT && small.len == 0);
    lp_buf_release(&whole);
    lp_buf_release(&small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    struct lp_span in = lp_span((const char *)data + 1, size - 1);
    check_same(in, (struct cuts){CUT_BYTES, 0, 0}, 0);
    check_same(in, (struct cuts){CUT_AT, data[0], 0}, data[0]);
    check_same(in, (struct cuts){CUT_RANDOM, 0, data[0] + 1u}, data[0] % 8);
    check_quote(in);
    check_quote_limit(in);
    return 0;
}
