/* Between the public header and the rooms below: the same bytes, rooms and memory by both names.
 * The two vocabularies are kept apart on purpose (doc/DECISIONS/007): what the rooms change inside
 * must not change what programs were compiled with. */
#ifndef LP_LIB_GLUE_H
#define LP_LIB_GLUE_H

#include <limpet.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/reason.h"
#include "base/span.h"
#include "mcp/keyring.h"

static inline struct lp_span lp_lib_in(struct limpet_span s)
{
    return lp_span(s.ptr, s.len);
}

static inline struct limpet_span lp_lib_out(struct lp_span s)
{
    return limpet_bytes(s.ptr, s.len);
}

/* A buffer over the caller's room: it never grows, is never released, and says LP_ELIMIT when the
 * room is full. lp_buf_printf is not for it. */
struct lp_buf lp_lib_room(char *room, size_t room_bytes);

/* The first member of each object: whence its memory came, and how much it is. */
struct lp_lib_object {
    struct lp_alloc alloc;
    size_t bytes;
};

struct limpet_keyring {
    struct lp_lib_object object;
    struct lp_keyring ring;
};

/* A new object of `bytes`, all zero but its first member; NULL when there is no memory. `alloc` may
 * be NULL. */
void *lp_lib_new(const struct limpet_alloc *alloc, size_t bytes);

/* Gives an object back; NULL is harmless. */
void lp_lib_free(void *object);

/* The public row of a reason. */
struct limpet_ending lp_lib_ending(enum lp_reason reason, const char *detail);

#endif
