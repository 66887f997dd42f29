/* 64-bit numbers as 16 hexadecimal digits, lower case. */
#ifndef LP_SERVE_HEX_H
#define LP_SERVE_HEX_H

#include <string.h>

#include "base/span.h"

enum { LP_HEX_DIGITS = 16 };

/* False: not these digits, and not exactly so many. */
static inline bool lp_hex_to_u64(struct lp_span text, uint64_t *ret)
{
    uint64_t value = 0;
    if (text.len != LP_HEX_DIGITS)
        return false;
    for (size_t i = 0; i < LP_HEX_DIGITS; i++) {
        const char *digits = "0123456789abcdef";
        const char *at = memchr(digits, text.ptr[i], 16);
        if (!at)
            return false;
        value = value << 4 | (uint64_t)(at - digits);
    }
    *ret = value;
    return true;
}

#endif
