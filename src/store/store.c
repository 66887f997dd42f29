/* The store as a whole (store/store.h): its life, which event is whose, what is due at a flush, and
 * whether it is up. */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/store_priv.h"

enum { FLUSH_ROUNDS_MAX = 4 };

/* --- life --- */

static void fill_args(struct lp_store *store, const struct lp_store_args *args)
{
    struct lp_store_args *own = &store->args;
    *own = *args;
    store->url = *args->url;
    own->url = &store->url;
    own->call_ms = args->call_ms ? args->call_ms : LP_STORE_CALL_MS;
    own->wait_ms = args->wait_ms ? args->wait_ms : own->call_ms / 2;
    own->connect_ms = args->connect_ms ? args->connect_ms : LP_STORE_CONNECT_MS;
    own->calls_max = args->calls_max ? args->calls_max : LP_STORE_CALLS_MAX;
    own->bytes_max = args->bytes_max ? args->bytes_max : LP_STORE_BYTES_MAX;
    own->reply_max = args->reply_max ? args->reply_max : LP_STORE_REPLY_MAX;
}

static int open_store(struct lp_store *store)
{
    const struct lp_store_args *args = &store->args;
    int err = lp_store_node_init(&store->listener, store, &store->url.seeds[0]);
    if (!err)
        err = lp_heap_set(store->timers, &store->tick, UINT64_MAX);
    if (!err && args->script_count) {
        store->hashes = calloc(args->script_count, sizeof *store->hashes);
        err = store->hashes ? LP_OK : LP_ENOMEM;
    }
    if (!err && !lp_store_node_at(store, &store->url.seeds[0]))
        err = LP_ENOMEM;
    return err;
}

int lp_store_new(const struct lp_store_args *args, struct lp_store **ret)
{
    struct lp_store *store = calloc(1, sizeof *store);
    if (!store)
        return LP_ENOMEM;
    fill_args(store, args);
    store->shell = args->shell;
    store->timers = args->timers;
    store->tick = (struct lp_timer){.kind = LP_TIMER_STORE_TICK};
    lp_list_init(&store->parked);
    lp_list_init(&store->ended);
    lp_slab_init(&store->commands, sizeof(struct lp_store_command),
        2 * store->args.calls_max + LP_STORE_INNER_MAX);
    lp_store_channels_init(store);
    int err = open_store(store);
    store->listener.is_channels = true;
    if (err)
        lp_store_free(store);
    else
        *ret = store;
    return err;
}

static void free_commands(struct lp_store *store)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_store_command *c; (c = lp_slab_next(&store->commands, &cursor, &id));)
        lp_store_command_free(store, c);
    lp_slab_fini(&store->commands);
}

void lp_store_free(struct lp_store *store)
{
    if (!store)
        return;
    free_commands(store);
    for (uint32_t i = 0; i < store->node_count; i++) {
        if (store->nodes[i])
            lp_store_node_fini(store->nodes[i]);
        free(store->nodes[i]);
    }
    lp_store_node_fini(&store->listener);
    lp_store_channels_fini(store);
    lp_heap_cancel(store->timers, &store->tick);
    free(store->hashes);
    free(store->owner);
    free(store);
}

/* --- events --- */

static struct lp_store_node *node_of_conn(struct lp_store *store, lp_id conn)
{
    if (!conn)
        return NULL;
    if (store->listener.conn == conn)
        return &store->listener;
    for (uint32_t i = 0; i < store->node_count; i++)
        if (store->nodes[i] && store->nodes[i]->conn == conn)
            return store->nodes[i];
    return NULL;
}

static bool is_of_connection(enum lp_event_kind kind)
{
    return kind == LP_EV_CONNECTED || kind == LP_EV_CONNECT_FAILED || kind == LP_EV_READ ||
        kind == LP_EV_EOF || kind == LP_EV_BROKEN || kind == LP_EV_DRAINED;
}

bool lp_store_event(struct lp_store *store, const struct lp_event *event)
{
    store->now_us = event->mono_us;
    struct lp_store_node *node =
        is_of_connection(event->kind) ? node_of_conn(store, event->conn) : NULL;
    if (node)
        lp_store_node_event(node, event);
    return node != NULL;
}

void lp_store_tick_at(struct lp_store *store, uint64_t at_us)
{
    if (at_us < store->tick.at_us || !store->tick.index)
        LP_ASSERT(lp_heap_set(store->timers, &store->tick, at_us) == LP_OK);
}

void lp_store_timer(struct lp_store *store, struct lp_timer *timer, uint64_t now_us)
{
    store->now_us = now_us;
    if (timer->kind == LP_TIMER_STORE_COMMAND)
        lp_store_command_expire(store, LP_CONTAINER(timer, struct lp_store_command, timer));
    else if (timer->kind == LP_TIMER_STORE_NODE)
        lp_store_node_timer(LP_CONTAINER(timer, struct lp_store_node, timer));
    else {
        lp_store_tick_at(store, UINT64_MAX);
        store->is_retry_due = true;
    }
}

/* --- the flush --- */

/* What ends while callbacks run is told in the next round. */
static bool tell_ended(struct lp_store *store)
{
    struct lp_list batch;
    lp_list_init(&batch);
    while (!lp_list_empty(&store->ended)) {
        struct lp_list *link = store->ended.next;
        lp_list_remove(link);
        lp_list_push_back(&batch, link);
    }
    bool has_told = !lp_list_empty(&batch);
    while (!lp_list_empty(&batch)) {
        struct lp_store_command *command = LP_CONTAINER(batch.next, struct lp_store_command, link);
        lp_store_command_tell(store, command, command->outcome, command->reply);
    }
    return has_told;
}

static bool flush_round(struct lp_store *store)
{
    if (store->is_retry_due) {
        store->is_retry_due = false;
        lp_store_route_parked(store);
    }
    lp_store_slots_tend(store);
    lp_store_channels_tend(store);
    for (uint32_t i = 0; i < store->node_count; i++)
        if (store->nodes[i])
            lp_store_pipe_flush(store->nodes[i]);
    lp_store_pipe_flush(&store->listener);
    lp_store_tell_state(store); /* before those who suffer from it */
    return tell_ended(store) || store->is_retry_due;
}

void lp_store_flush(struct lp_store *store)
{
    int rounds = 0;
    LP_ASSERT(lp_heap_set(store->timers, &store->tick, UINT64_MAX) == LP_OK); /* set anew below */
    while (flush_round(store) && ++rounds < FLUSH_ROUNDS_MAX)
        ;
    /* Who calls again each time that it is told "down" is told again in another turn. */
    if (!lp_list_empty(&store->ended) || store->is_retry_due)
        lp_store_tick_at(store, store->now_us);
    if (!lp_list_empty(&store->parked))
        lp_store_tick_at(store, store->now_us + LP_STORE_TICK_US);
}
