/* Replies (store/reader.h). hiredis asks for an object when it has a whole line or string; each
 * goes into the arena, and into the list of the array it belongs to. Its own limit of depth holds
 * too. Works with hiredis 0.14, which knows RESP2 only, and with 1.x. */
#include "store/reader.h"

#include <hiredis/read.h>

#include "base/error.h"

enum { ONE_READ = 65536 }; /* bytes beyond a whole reply that may come with its end */

/* A reply while its array is being filled. */
struct draft {
    struct lp_store_reply reply; /* first: what goes out */
    struct lp_store_reply *last;
};

static struct draft *new_draft(const redisReadTask *task, enum lp_store_reply_kind kind)
{
    struct lp_store_reader *reader = task->privdata;
    struct draft *draft = lp_arena_alloc(&reader->arena, sizeof *draft);
    if (!draft) {
        reader->is_too_large = reader->arena.used + sizeof *draft > reader->arena.max;
        return NULL;
    }
    *draft = (struct draft){.reply.kind = kind};
    if (task->parent) {
        struct draft *parent = task->parent->obj;
        if (parent->last)
            parent->last->next = &draft->reply;
        else
            parent->reply.first = &draft->reply;
        parent->last = &draft->reply;
        parent->reply.count++;
    }
    return draft;
}

static void *on_string(const redisReadTask *task, char *bytes, size_t len)
{
    struct lp_store_reader *reader = task->privdata;
    bool is_error = task->type == REDIS_REPLY_ERROR;
    struct draft *draft = new_draft(task, is_error ? LP_REPLY_ERROR : LP_REPLY_STRING);
    if (!draft)
        return NULL;
    if (lp_arena_dup(&reader->arena, lp_span(bytes, len), &draft->reply.text)) {
        reader->is_too_large = reader->arena.used + len > reader->arena.max;
        return NULL;
    }
    return draft;
}

#ifdef REDIS_REPLY_DOUBLE /* hiredis 1.0 and later, which reads RESP3 too: nobody asked for it */
typedef size_t item_count;

static void *on_double(const redisReadTask *task, double value, char *text, size_t len)
{
    (void)value;
    return on_string(task, text, len);
}
#else
typedef int item_count;
#endif

/* How many items were announced is not kept: what counts is what comes. */
static void *on_array(const redisReadTask *task, item_count count)
{
    (void)count;
    return new_draft(task, LP_REPLY_ARRAY);
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct draft *draft = new_draft(task, LP_REPLY_INTEGER);
    if (draft)
        draft->reply.integer = value;
    return draft;
}

static void *on_nil(const redisReadTask *task)
{
    return new_draft(task, LP_REPLY_NIL);
}

#ifdef REDIS_REPLY_DOUBLE
static void *on_bool(const redisReadTask *task, int value)
{
    return on_integer(task, value);
}
#endif

static void on_free(void *object)
{
    (void)object; /* the arena's */
}

void lp_store_reader_init(struct lp_store_reader *reader, size_t reply_max)
{
    *reader = (struct lp_store_reader){.reply_max = reply_max};
    lp_arena_init(&reader->arena, reply_max);
}

void lp_store_reader_reset(struct lp_store_reader *reader)
{
    if (reader->redis)
        redisReaderFree(reader->redis);
    lp_arena_fini(&reader->arena);
    lp_store_reader_init(reader, reader->reply_max);
}

int lp_store_reader_feed(struct lp_store_reader *reader, struct lp_span bytes)
{
    static const redisReplyObjectFunctions BUILD = {
        .createString = on_string,
        .createArray = on_array,
        .createInteger = on_integer,
        .createNil = on_nil,
        .freeObject = on_free,
#ifdef REDIS_REPLY_DOUBLE
        .createDouble = on_double,
        .createBool = on_bool,
#endif
    };
    if (!reader->redis) {
        /* hiredis does not write into its table, though it does not say so. */
        reader->redis = redisReaderCreateWithFunctions((redisReplyObjectFunctions *)&BUILD);
        if (!reader->redis)
            return LP_ENOMEM;
        reader->redis->privdata = reader;
    }
    if (reader->redis->len - reader->redis->pos + bytes.len > reader->reply_max + ONE_READ)
        return LP_ELIMIT;
    return redisReaderFeed(reader->redis, bytes.ptr, bytes.len) == REDIS_OK ? LP_OK : LP_ENOMEM;
}

int lp_store_reader_next(struct lp_store_reader *reader, const struct lp_store_reply **ret_reply)
{
    void *reply = NULL;
    if (reader->redis->ridx <= 0) /* nothing of a reply is built */
        lp_arena_reset(&reader->arena);
    if (redisReaderGetReply(reader->redis, &reply) != REDIS_OK) {
        if (reader->is_too_large)
            return LP_ELIMIT;
        return reader->redis->err == REDIS_ERR_OOM ? LP_ENOMEM : LP_ESYNTAX;
    }
    *ret_reply = reply; /* a draft begins with it */
    return LP_OK;
}

struct lp_arena lp_store_reader_take(struct lp_store_reader *reader)
{
    struct lp_arena arena = reader->arena;
    lp_arena_init(&reader->arena, reader->reply_max);
    return arena;
}
