/* A byte buffer with a ceiling: bytes are appended at the end and consumed at the front.
 *
 *   ptr                off              off+len          cap         max
 *    |---- consumed ----|----- bytes -----|---- room ------|- may grow -|
 *
 * Memory is taken on the first append and given back when the buffer is emptied by
 * lp_buf_release, so an idle holder costs nothing. Pointers from lp_buf_span are valid until the
 * next append, reserve or release. */
#ifndef LP_BASE_BUF_H
#define LP_BASE_BUF_H

#include "base/alloc.h"
#include "base/assert.h"
#include "base/span.h"

struct lp_buf {
    char *ptr;
    size_t off;
    size_t len;
    size_t cap;
    size_t max;
    const struct lp_alloc *alloc; /* borrowed; NULL: the C library's memory */
};

/* An empty buffer that may hold up to `max` bytes. */
void lp_buf_init(struct lp_buf *buf, size_t max);

/* The same with memory from `alloc`, which must live as long as the buffer. */
void lp_buf_init_in(struct lp_buf *buf, size_t max, const struct lp_alloc *alloc);

/* Frees the memory; the buffer is empty and may be used again. Harmless when done twice. */
void lp_buf_release(struct lp_buf *buf);

/* Appends all or nothing. LP_ELIMIT when `max` would be passed, LP_ENOMEM. */
LP_MUST int lp_buf_append(struct lp_buf *buf, struct lp_span bytes);

/* Appends the parts one behind the other, all or nothing; errors as lp_buf_append. */
LP_MUST int lp_buf_join(struct lp_buf *buf, const struct lp_span *parts, size_t count);

/* The same with the parts written out: LP_JOIN(buf, LP_SPAN("a"), b, c). */
#define LP_JOIN(buf, ...)                                                                          \
    lp_buf_join(buf, (const struct lp_span[]){__VA_ARGS__},                                        \
        sizeof((const struct lp_span[]){__VA_ARGS__}) / sizeof(struct lp_span))

/* Room for `n` more bytes at *ret_room, to be filled and then taken with lp_buf_commit. */
LP_MUST int lp_buf_reserve(struct lp_buf *buf, size_t n, char **ret_room);
void lp_buf_commit(struct lp_buf *buf, size_t n);

/* printf at the end; nothing is appended on failure (as lp_buf_append). */
LP_MUST int lp_buf_printf(struct lp_buf *buf, const char *fmt, ...) LP_PRINTF(2, 3);

/* Drops `n` bytes at the front (n <= len is asserted). Memory is kept. */
void lp_buf_consume(struct lp_buf *buf, size_t n);

/* Drops everything; memory is kept. */
void lp_buf_clear(struct lp_buf *buf);

static inline struct lp_span lp_buf_span(const struct lp_buf *buf)
{
    return lp_span(buf->ptr ? buf->ptr + buf->off : NULL, buf->len);
}

/* How many bytes could still be appended. */
static inline size_t lp_buf_room(const struct lp_buf *buf)
{
    return buf->max - buf->len;
}

#endif
