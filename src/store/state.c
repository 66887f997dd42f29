/* Whether the store is up, and the sentences about it (store/store.h). A reason that changes while
 * it is away, as it does when a server starts, is told now and then only. */
#include <stdio.h>

#include "store/store_priv.h"

static const char *const TROUBLE_SENTENCES[] = {
#define X(name, sentence) sentence,
    LP_STORE_TROUBLES(X)
#undef X
};

/* One that can do what the store is for: of a cluster it has to own slots. NULL: none. */
static const struct lp_store_node *useful_node(const struct lp_store *store)
{
    for (uint32_t i = 0; i < store->node_count && store->shape != LP_SHAPE_UNKNOWN; i++) {
        const struct lp_store_node *node = store->nodes[i];
        bool is_there = node && node->state == LP_NODE_UP && !node->is_leaving;
        if (is_there && (node->owns_slots || store->shape == LP_SHAPE_SINGLE))
            return node;
    }
    return NULL;
}

bool lp_store_is_up(const struct lp_store *store)
{
    return useful_node(store) != NULL;
}

struct lp_span lp_store_sentence(const struct lp_store *store)
{
    return lp_span(store->sentence, store->sentence_len);
}

static void say(struct lp_store *store, const struct lp_store_address *at, const char *what)
{
    bool is_v6 = memchr(at->host, ':', at->host_len) != NULL;
    int len;
    if (at->is_unix)
        len = snprintf(store->sentence, sizeof store->sentence, "The store at unix:%.*s %s.",
            (int)at->host_len, at->host, what);
    else
        len = snprintf(store->sentence, sizeof store->sentence, "The store at %s%.*s%s:%u %s.",
            is_v6 ? "[" : "", (int)at->host_len, at->host, is_v6 ? "]" : "", (unsigned)at->port,
            what);
    store->sentence_len = (uint16_t)len; /* the longest host and sentence fit */
    LP_ASSERT(store->sentence_len < sizeof store->sentence);
}

void lp_store_note_trouble(
    struct lp_store *store, const struct lp_store_node *node, enum lp_store_trouble trouble)
{
    store->trouble = trouble;
    say(store, &node->address, TROUBLE_SENTENCES[trouble]);
}

static void tell(struct lp_store *store, bool is_up)
{
    const struct lp_store_ops *ops = store->args.ops;
    if (store->was_told_up && !is_up)
        store->down_us = store->now_us;
    store->was_told = true;
    store->was_told_up = is_up;
    store->told_us = store->now_us;
    store->told_trouble = is_up ? LP_TROUBLE_NONE : store->trouble;
    if (ops->state)
        ops->state(store->args.ctx, is_up, store->told_trouble, lp_store_sentence(store));
}

static void tell_up(struct lp_store *store)
{
    const struct lp_store_node *node = useful_node(store);
    say(store, &node->address,
        store->shape == LP_SHAPE_CLUSTER ? "is up, a cluster" : TROUBLE_SENTENCES[0]);
    tell(store, true);
}

void lp_store_tell_state(struct lp_store *store)
{
    bool is_up = lp_store_is_up(store);
    bool is_news = !store->was_told || store->was_told_up;
    bool is_other = store->trouble != store->told_trouble &&
        store->now_us - store->told_us >= LP_STORE_RETELL_US;
    if (is_up && !store->was_told_up)
        tell_up(store);
    else if (!is_up && store->trouble != LP_TROUBLE_NONE && (is_news || is_other))
        tell(store, false);
}
