/* Comparing and cutting borrowed bytes. Nothing here copies or allocates. */
#include "base/span.h"

#include "base/assert.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool lp_span_ieq(struct lp_span a, struct lp_span b)
{
    if (a.len != b.len)
        return false;
    if (lp_span_eq(a, b))
        return true;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    return true;
}

bool lp_span_starts(struct lp_span s, struct lp_span prefix)
{
    return s.len >= prefix.len && lp_span_eq(lp_span(s.ptr, prefix.len), prefix);
}

bool lp_span_ends(struct lp_span s, struct lp_span suffix)
{
    return s.len >= suffix.len &&
        lp_span_eq(lp_span(s.ptr + (s.len - suffix.len), suffix.len), suffix);
}

size_t lp_span_find(struct lp_span s, char c)
{
    const char *hit = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return hit ? (size_t)(hit - s.ptr) : s.len;
}

size_t lp_span_search(struct lp_span s, struct lp_span needle)
{
    for (size_t i = 0; i + needle.len <= s.len; i++)
        if (lp_span_eq(lp_span(s.ptr + i, needle.len), needle))
            return i;
    return s.len;
}

struct lp_span lp_span_from(struct lp_span s, size_t n)
{
    LP_ASSERT(n <= s.len);
    return n ? lp_span(s.ptr + n, s.len - n) : s; /* nothing is added to a null pointer */
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct lp_span lp_span_trim(struct lp_span s)
{
    for (; s.len && is_blank(s.ptr[0]); s.len--)
        s.ptr++;
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct lp_span lp_span_split(struct lp_span s, char sep, struct lp_span *rest)
{
    size_t at = lp_span_find(s, sep);
    *rest = at < s.len ? lp_span_from(s, at + 1) : lp_span(NULL, 0);
    return lp_span(s.ptr, at);
}

bool lp_span_to_u64(struct lp_span s, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}
