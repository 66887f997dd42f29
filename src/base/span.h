/* A borrowed run of bytes, by value. It owns nothing: it is valid as long as its owner says
 * (by default: until the next call on that owner). Never terminated by a zero byte. */
#ifndef LP_BASE_SPAN_H
#define LP_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lp_span {
    const char *ptr;
    size_t len;
};

/* A span of a string literal, and of a zero-terminated string. */
#define LP_SPAN(literal) ((struct lp_span){"" literal, sizeof(literal) - 1})

static inline struct lp_span lp_span(const char *ptr, size_t len)
{
    return (struct lp_span){ptr, len};
}

static inline struct lp_span lp_span_str(const char *str)
{
    return (struct lp_span){str, str ? strlen(str) : 0};
}

static inline bool lp_span_eq(struct lp_span a, struct lp_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Equal without regard to the case of ASCII letters. */
bool lp_span_ieq(struct lp_span a, struct lp_span b);

bool lp_span_starts(struct lp_span s, struct lp_span prefix);
bool lp_span_ends(struct lp_span s, struct lp_span suffix);

/* Index of the first byte `c`, or s.len when there is none. */
size_t lp_span_find(struct lp_span s, char c);

/* Index of the first occurrence of `needle`, or s.len when there is none. */
size_t lp_span_search(struct lp_span s, struct lp_span needle);

/* `s` without its first `n` bytes (n <= s.len is asserted). */
struct lp_span lp_span_from(struct lp_span s, size_t n);

/* `s` without spaces and tabs at both ends. */
struct lp_span lp_span_trim(struct lp_span s);

/* The part before the first `sep`; *rest becomes what follows it. When there is no `sep` the
 * whole is the part and *rest becomes empty with a null pointer. */
struct lp_span lp_span_split(struct lp_span s, char sep, struct lp_span *rest);

/* Decimal digits only, no sign, no space; false for anything else or on overflow. */
bool lp_span_to_u64(struct lp_span s, uint64_t *ret_value);

#endif
