/* Writing JSON (serve/out.h): all that can fail is counted in one flag, and whoever sends what was
 * written looks at it once. */
#include "serve/out.h"

#include <stdarg.h>
#include <stdio.h>

#include "wire/json.h"

enum { PRINTF_MAX = 256 };

void lp_out_init(struct lp_out *out)
{
    *out = (struct lp_out){0};
    lp_buf_init(&out->buf, LP_OUT_MAX);
}

void lp_out_release(struct lp_out *out)
{
    lp_buf_release(&out->buf);
    out->failed = false;
}

void lp_out_clear(struct lp_out *out)
{
    lp_buf_clear(&out->buf);
    out->failed = false;
}

void lp_out_put(struct lp_out *out, struct lp_span bytes)
{
    if (out->failed || lp_buf_append(&out->buf, bytes))
        out->failed = true;
}

void lp_out_str(struct lp_out *out, const char *text)
{
    lp_out_put(out, lp_span_str(text));
}

void lp_out_printf(struct lp_out *out, const char *fmt, ...)
{
    char text[PRINTF_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    LP_ASSERT(n >= 0 && n < PRINTF_MAX);
    lp_out_put(out, lp_span(text, (size_t)n));
}

void lp_out_quote(struct lp_out *out, struct lp_span text)
{
    if (out->failed || lp_json_quote(&out->buf, text))
        out->failed = true;
}
