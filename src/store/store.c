/* The store as a whole (store/store.h): its life, and which event is whose.
 *
 * A skeleton for now: the vocabulary is there, nothing connects yet, every call is refused. */
#include "store/store.h"

#include <stdlib.h>

#include "base/error.h"

struct lp_store {
    struct lp_store_args args;
};

int lp_store_new(const struct lp_store_args *args, struct lp_store **ret)
{
    struct lp_store *store = calloc(1, sizeof *store);
    if (!store)
        return LP_ENOMEM;
    store->args = *args;
    *ret = store;
    return LP_OK;
}

void lp_store_free(struct lp_store *store)
{
    free(store);
}

bool lp_store_event(struct lp_store *store, const struct lp_event *event)
{
    (void)store;
    (void)event;
    return false;
}

void lp_store_timer(struct lp_store *store, struct lp_timer *timer, uint64_t now_us)
{
    (void)store;
    (void)timer;
    (void)now_us;
}

void lp_store_flush(struct lp_store *store)
{
    (void)store;
}

bool lp_store_is_up(const struct lp_store *store)
{
    (void)store;
    return false;
}

struct lp_span lp_store_sentence(const struct lp_store *store)
{
    (void)store;
    return LP_SPAN("");
}

int lp_store_call(struct lp_store *store, const struct lp_store_call_args *args, lp_id *ret_call)
{
    (void)store;
    (void)args;
    (void)ret_call;
    return LP_EUNSUPPORTED;
}

int lp_store_eval(struct lp_store *store, uint32_t script, uint32_t key_count,
    const struct lp_store_call_args *args, lp_id *ret_call)
{
    (void)script;
    (void)key_count;
    return lp_store_call(store, args, ret_call);
}

void lp_store_cancel(struct lp_store *store, lp_id call)
{
    (void)store;
    (void)call;
}

uint32_t lp_store_waiting(const struct lp_store *store)
{
    (void)store;
    return 0;
}

int lp_store_subscribe(struct lp_store *store, struct lp_span channel, lp_id *ret_id)
{
    (void)store;
    (void)channel;
    (void)ret_id;
    return LP_EUNSUPPORTED;
}

void lp_store_unsubscribe(struct lp_store *store, lp_id id)
{
    (void)store;
    (void)id;
}
