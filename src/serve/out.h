/* JSON as it is written: a buffer that remembers that something did not fit, so that who writes
 * need not ask each time. */
#ifndef LP_SERVE_OUT_H
#define LP_SERVE_OUT_H

#include "base/buf.h"

enum { LP_OUT_MAX = 16 << 20 };

struct lp_out {
    struct lp_buf buf; /* at most LP_OUT_MAX bytes */
    bool failed;       /* over the limit, or no memory: what is in the buffer is of no use */
};

void lp_out_init(struct lp_out *out);

/* Frees the memory; it may be used again. Harmless when done twice. */
void lp_out_release(struct lp_out *out);

/* Empties it; memory is kept. */
void lp_out_clear(struct lp_out *out);

/* Appends bytes; text (at most 255 bytes, asserted); a JSON string with its quotes. */
void lp_out_put(struct lp_out *out, struct lp_span bytes);
void lp_out_str(struct lp_out *out, const char *text);
void lp_out_printf(struct lp_out *out, const char *fmt, ...) LP_PRINTF(2, 3);
void lp_out_quote(struct lp_out *out, struct lp_span text);

static inline struct lp_span lp_out_span(const struct lp_out *out)
{
    return lp_buf_span(&out->buf);
}

#endif
