/* Bytes of a connection -> replies, one at a time. hiredis's reader parses (RESP2), this builds the
 * trees: memory follows what has arrived, never an announced length. */
#ifndef LP_STORE_READER_H
#define LP_STORE_READER_H

#include "base/arena.h"
#include "store/store.h"

struct redisReader;

struct lp_store_reader {
    struct redisReader *redis; /* made with the first bytes */
    struct lp_arena arena;     /* of the reply being built, or just given out */
    size_t reply_max;
    bool is_too_large;
};

/* At most `reply_max` bytes for one reply, in the arena and as long as it is not whole. */
void lp_store_reader_init(struct lp_store_reader *reader, size_t reply_max);

/* Forgets everything; harmless when done twice. */
void lp_store_reader_reset(struct lp_store_reader *reader);

/* Bytes in; take what is whole with `next` before the next call. LP_ENOMEM, LP_ELIMIT. */
LP_MUST int lp_store_reader_feed(struct lp_store_reader *reader, struct lp_span bytes);

/* The next reply, valid until the next call, or NULL when more bytes are needed. LP_ESYNTAX: this
 * is no RESP2; LP_ELIMIT: the reply is too large; LP_ENOMEM. After an error, only reset. */
LP_MUST int lp_store_reader_next(
    struct lp_store_reader *reader, const struct lp_store_reply **ret_reply);

/* Gives the memory of the last reply to the caller. */
struct lp_arena lp_store_reader_take(struct lp_store_reader *reader);

#endif
