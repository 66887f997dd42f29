/* Addresses in a row (serve/uris.h). They are few and looked for seldom: a walk is enough. An
 * address holds no zero byte; whoever adds one has seen to it. */
#include "serve/uris.h"

#include "base/error.h"

/* Where the address stands; the length of all when it does not. */
static size_t find(const struct lp_buf *uris, struct lp_span uri)
{
    struct lp_span all = lp_buf_span(uris);
    struct lp_span rest = all;
    while (rest.len) {
        size_t at = all.len - rest.len;
        if (lp_span_eq(lp_span_split(rest, '\0', &rest), uri))
            return at;
    }
    return all.len;
}

bool lp_uris_has(const struct lp_buf *uris, struct lp_span uri)
{
    return find(uris, uri) < uris->len;
}

int lp_uris_add(struct lp_buf *uris, struct lp_span uri)
{
    char *room;
    if (lp_uris_has(uris, uri))
        return LP_OK;
    int err = lp_buf_reserve(uris, uri.len + 1, &room);
    if (err)
        return err;
    memcpy(room, uri.ptr, uri.len);
    room[uri.len] = '\0';
    lp_buf_commit(uris, uri.len + 1);
    return LP_OK;
}

void lp_uris_remove(struct lp_buf *uris, struct lp_span uri)
{
    size_t at = find(uris, uri);
    if (at == uris->len)
        return;
    char *from = uris->ptr + uris->off + at;
    memmove(from, from + uri.len + 1, uris->len - at - uri.len - 1);
    uris->len -= uri.len + 1;
}
