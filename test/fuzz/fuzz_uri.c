/* URI references, request targets, authorities and base64 from any bytes: the laws of
 * test/prop/uri_laws.h. There is no split: these readers take whole texts. */
#include "../prop/uri_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* `base` and `ref` parted by the first line feed: where both are what they should be, resolving
 * into too small a room leaves nothing. */
static void check_pair(struct lp_span text)
{
    struct lp_uri base, ref;
    struct lp_span rest;
    struct lp_span first = lp_span_split(text, '\n', &rest);
    if (!rest.ptr || lp_uri_parse(first, &base) || lp_uri_parse(rest, &ref))
        return;
    struct lp_buf out, small;
    lp_buf_init(&out, 20000);
    int err = lp_uri_resolve(&base, &ref, &out);
    LP_ASSERT(err == 0 || (err == LP_ESYNTAX && out.len == 0));
    LP_ASSERT(base.scheme.ptr || err);
    if (!err) {
        LP_ASSERT(out.len > 0);
        lp_buf_init(&small, out.len - 1);
        err = lp_uri_resolve(&base, &ref, &small);
        LP_ASSERT(err == LP_ELIMIT && small.len == 0);
        lp_buf_release(&small);
    }
    lp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_span text = lp_span((const char *)data, size);
    if (size > 9000)
        return 0;
    check_uri_laws(text);
    check_pair(text);
    return 0;
}
