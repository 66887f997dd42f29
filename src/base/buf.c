/* The capped buffer (base/buf.h). Growth doubles and stops at the ceiling; consumed bytes are
 * squeezed out before memory is grown. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

enum { CAP_FIRST = 256 };

static void check(const struct lp_buf *buf)
{
    LP_ASSERT(buf->off + buf->len <= buf->cap);
    LP_ASSERT(buf->len <= buf->max);
}

void lp_buf_init_in(struct lp_buf *buf, size_t max, const struct lp_alloc *alloc)
{
    *buf = (struct lp_buf){.max = max, .alloc = alloc};
}

void lp_buf_init(struct lp_buf *buf, size_t max)
{
    lp_buf_init_in(buf, max, NULL);
}

void lp_buf_release(struct lp_buf *buf)
{
    if (buf->ptr)
        (void)lp_resize(buf->alloc, buf->ptr, buf->cap, 0);
    lp_buf_init_in(buf, buf->max, buf->alloc);
}

static void squeeze(struct lp_buf *buf)
{
    if (buf->off && buf->len)
        memmove(buf->ptr, buf->ptr + buf->off, buf->len);
    buf->off = 0;
}

static int grow(struct lp_buf *buf, size_t need)
{
    size_t cap = buf->cap ? buf->cap : CAP_FIRST;
    while (cap < need)
        cap *= 2;
    char *ptr = lp_resize(buf->alloc, buf->ptr, buf->cap, cap);
    if (!ptr)
        return LP_ENOMEM;
    buf->ptr = ptr;
    buf->cap = cap;
    return LP_OK;
}

int lp_buf_reserve(struct lp_buf *buf, size_t n, char **ret_room)
{
    check(buf);
    if (n > lp_buf_room(buf))
        return LP_ELIMIT;
    if (buf->off + buf->len + n > buf->cap)
        squeeze(buf);
    if (buf->len + n > buf->cap || !buf->ptr) {
        int err = grow(buf, buf->len + n);
        if (err)
            return err;
    }
    *ret_room = buf->ptr + buf->off + buf->len;
    return LP_OK;
}

void lp_buf_commit(struct lp_buf *buf, size_t n)
{
    buf->len += n;
    check(buf);
}

int lp_buf_append(struct lp_buf *buf, struct lp_span bytes)
{
    char *room = NULL;
    int err = lp_buf_reserve(buf, bytes.len, &room);
    if (err)
        return err;
    if (bytes.len)
        memcpy(room, bytes.ptr, bytes.len);
    lp_buf_commit(buf, bytes.len);
    return LP_OK;
}

int lp_buf_printf(struct lp_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    LP_ASSERT(need >= 0);
    /* One byte more than is kept: vsnprintf ends its output with a zero byte. */
    char *room = NULL;
    if ((size_t)need > lp_buf_room(buf))
        return LP_ELIMIT;
    buf->max++;
    int err = lp_buf_reserve(buf, (size_t)need + 1, &room);
    buf->max--;
    if (err)
        return err;
    va_start(args, fmt);
    (void)vsnprintf(room, (size_t)need + 1, fmt, args);
    va_end(args);
    lp_buf_commit(buf, (size_t)need);
    return LP_OK;
}

int lp_buf_join(struct lp_buf *buf, const struct lp_span *parts, size_t count)
{
    size_t len = 0;
    char *room;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len > buf->max - len)
            return LP_ELIMIT;
        len += parts[i].len;
    }
    int err = lp_buf_reserve(buf, len, &room);
    if (err)
        return err;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len)
            memcpy(room, parts[i].ptr, parts[i].len);
        room += parts[i].len;
    }
    lp_buf_commit(buf, len);
    return LP_OK;
}

void lp_buf_consume(struct lp_buf *buf, size_t n)
{
    LP_ASSERT(n <= buf->len);
    buf->off += n;
    buf->len -= n;
    if (buf->len == 0)
        buf->off = 0;
}

void lp_buf_clear(struct lp_buf *buf)
{
    buf->off = 0;
    buf->len = 0;
}
