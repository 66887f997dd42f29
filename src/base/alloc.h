/* Where memory comes from, for the parts that a program of somebody else may hold (the installed
 * library): a function of the owner's, or the C library's when there is none. Given to each object
 * by itself, so that there is no global one.
 *
 * Only buffers and jars ask here; the gateway's own tables use the C library. */
#ifndef LP_BASE_ALLOC_H
#define LP_BASE_ALLOC_H

#include <stddef.h>

/* Makes a block of `old_bytes` at `ptr` (NULL and 0: a new one) one of `bytes`; 0 gives it back and
 * returns NULL. NULL for any other size means that there is no memory, and the block stays. */
typedef void *(*lp_resize_fn)(void *context, void *ptr, size_t old_bytes, size_t bytes);

struct lp_alloc {
    lp_resize_fn resize; /* NULL: the C library's */
    void *context;
};

/* The same by `alloc`, which may be NULL: the C library's. */
void *lp_resize(const struct lp_alloc *alloc, void *ptr, size_t old_bytes, size_t bytes);

#endif
