/* The slot map of a cluster, and its nodes (store/store_priv.h). MOVED mends one slot at once; the
 * whole map is asked for (CLUSTER SLOTS) when anything hints that it is old, ten times a second at
 * most. Nodes are those that own slots; a seed of the URL is one only while nobody else is there.
 */
#include <stdlib.h>

#include "base/error.h"
#include "store/store_priv.h"

enum { FAILOVER_US = 300000 };

/* --- addresses --- */

static bool is_same(const struct lp_store_address *a, const struct lp_store_address *b)
{
    return a->is_unix == b->is_unix && a->port == b->port &&
        lp_span_eq(lp_span(a->host, a->host_len), lp_span(b->host, b->host_len));
}

/* An empty host is the one that said it. "?" is a host that the cluster does not know itself. */
static int make_address(struct lp_span host, uint64_t port, const struct lp_store_node *from,
    struct lp_store_address *ret)
{
    struct lp_store_address address = {.port = (uint16_t)port};
    if (!host.len && !from->address.is_unix)
        host = lp_span(from->address.host, from->address.host_len);
    if (!host.len || host.len > LP_STORE_HOST_MAX || lp_span_eq(host, LP_SPAN("?")))
        return LP_ESYNTAX;
    if (port == 0 || port > UINT16_MAX)
        return LP_ESYNTAX;
    memcpy(address.host, host.ptr, host.len);
    address.host_len = (uint8_t)host.len;
    *ret = address;
    return LP_OK;
}

int lp_store_address_read(
    struct lp_span text, const struct lp_store_node *from, struct lp_store_address *ret)
{
    uint64_t port;
    size_t colon = text.len; /* the last: an IPv6 address has its own, and no brackets */
    while (colon && text.ptr[colon - 1] != ':')
        colon--;
    if (!colon || !lp_span_to_u64(lp_span_from(text, colon), &port))
        return LP_ESYNTAX;
    struct lp_span host = lp_span(text.ptr, colon - 1);
    if (lp_span_starts(host, LP_SPAN("[")) && lp_span_ends(host, LP_SPAN("]")))
        host = lp_span(host.ptr + 1, host.len - 2);
    return make_address(host, port, from, ret);
}

/* --- nodes --- */

static struct lp_store_node *new_node(
    struct lp_store *store, uint32_t place, const struct lp_store_address *address)
{
    struct lp_store_node *node = calloc(1, sizeof *node);
    if (!node || lp_store_node_init(node, store, address)) {
        free(node);
        return NULL;
    }
    store->nodes[place] = node;
    if (place == store->node_count)
        store->node_count++;
    return node;
}

struct lp_store_node *lp_store_node_at(
    struct lp_store *store, const struct lp_store_address *address)
{
    uint32_t hole = store->node_count;
    for (uint32_t i = store->node_count; i-- > 0;) {
        if (!store->nodes[i])
            hole = i;
        else if (is_same(&store->nodes[i]->address, address))
            return store->nodes[i];
    }
    return hole < LP_STORE_NODES_MAX ? new_node(store, hole, address) : NULL;
}

struct lp_store_node *lp_store_any_node(const struct lp_store *store, uint32_t turn)
{
    struct lp_store_node *tried = NULL;
    for (uint32_t i = 0; i < store->node_count; i++) {
        struct lp_store_node *node = store->nodes[(turn + i) % store->node_count];
        if (node && node->state == LP_NODE_UP && !node->is_leaving)
            return node;
        if (node && node->state != LP_NODE_AWAY)
            tried = node;
    }
    return tried;
}

/* --- the map --- */

struct lp_store_node *lp_store_slots_get(const struct lp_store *store, uint16_t slot)
{
    uint8_t owner = store->owner ? store->owner[slot] : 0;
    return owner ? store->nodes[owner - 1] : NULL;
}

static uint8_t place_of(const struct lp_store *store, const struct lp_store_node *node)
{
    uint32_t place = 0;
    while (store->nodes[place] != node)
        place++;
    return (uint8_t)(place + 1);
}

static bool has_map(struct lp_store *store)
{
    if (!store->owner)
        store->owner = calloc(LP_STORE_SLOTS, sizeof *store->owner);
    return store->owner != NULL;
}

void lp_store_slots_set(struct lp_store *store, uint16_t slot, struct lp_store_node *node)
{
    if (!has_map(store))
        return;
    store->owner[slot] = place_of(store, node);
    node->owns_slots = true;
}

/* [first, last, [host, port, ...], replica, ...] */
static bool read_range(struct lp_store_node *from, const struct lp_store_reply *range)
{
    struct lp_store_address address;
    const struct lp_store_reply *first = lp_store_reply_item(range, 0);
    const struct lp_store_reply *last = lp_store_reply_item(range, 1);
    const struct lp_store_reply *host = lp_store_reply_item(lp_store_reply_item(range, 2), 0);
    const struct lp_store_reply *port = lp_store_reply_item(lp_store_reply_item(range, 2), 1);
    if (!port || first->kind != LP_REPLY_INTEGER || last->kind != LP_REPLY_INTEGER)
        return false;
    if (first->integer < 0 || last->integer < first->integer || last->integer >= LP_STORE_SLOTS)
        return false;
    if (make_address(host->text, (uint64_t)port->integer, from, &address))
        return false;
    struct lp_store_node *node = lp_store_node_at(from->store, &address);
    if (!node)
        return false;
    node->owns_slots = true;
    memset(from->store->owner + first->integer, place_of(from->store, node),
        (size_t)(last->integer - first->integer) + 1);
    return true;
}

static void forget_owners(struct lp_store *store)
{
    memset(store->owner, 0, LP_STORE_SLOTS * sizeof *store->owner);
    for (uint32_t i = 0; i < store->node_count; i++)
        if (store->nodes[i])
            store->nodes[i]->owns_slots = false;
}

/* What waits for a node that is not there may have another owner now. */
static void call_back(struct lp_store *store)
{
    for (uint32_t i = 0; i < store->node_count; i++) {
        struct lp_store_node *node = store->nodes[i];
        while (node && node->state != LP_NODE_UP && !lp_list_empty(&node->waiting))
            lp_store_command_park(
                LP_CONTAINER(node->waiting.next, struct lp_store_command, link), store);
    }
    store->is_retry_due = true;
}

static bool is_full(const struct lp_store *store)
{
    uint32_t i = 0;
    while (i < store->node_count && store->nodes[i])
        i++;
    return i == LP_STORE_NODES_MAX;
}

enum lp_store_trouble lp_store_slots_read(
    struct lp_store_node *node, const struct lp_store_reply *reply)
{
    struct lp_store *store = node->store;
    uint32_t good = 0;
    if (reply->kind != LP_REPLY_ARRAY)
        return LP_TROUBLE_PROTOCOL;
    if (!reply->count)
        return LP_TROUBLE_CLUSTER_DOWN;
    if (!has_map(store))
        return LP_TROUBLE_MEMORY;
    forget_owners(store);
    for (const struct lp_store_reply *range = reply->first; range; range = range->next)
        good += read_range(node, range);
    store->is_map_wanted = false;
    call_back(store);
    if (good < reply->count && is_full(store))
        return LP_TROUBLE_LIMIT;
    return good ? LP_TROUBLE_NONE : LP_TROUBLE_CLUSTER_DOWN;
}

void lp_store_slots_want(struct lp_store *store, const struct lp_store_node *from)
{
    store->is_map_wanted = true;
    store->map_conn = from ? from->conn : 0;
}

/* --- tending --- */

static struct lp_store_node *node_to_ask(struct lp_store *store)
{
    for (uint32_t i = 0; i < store->node_count && store->map_conn; i++)
        if (store->nodes[i] && store->nodes[i]->conn == store->map_conn &&
            store->nodes[i]->state == LP_NODE_UP)
            return store->nodes[i];
    struct lp_store_node *node = lp_store_any_node(store, ++store->map_turn);
    return node && node->state == LP_NODE_UP ? node : NULL;
}

static void ask_for_map(struct lp_store *store)
{
    if (!store->is_map_wanted || store->is_map_asked)
        return;
    if (store->now_us < store->map_next_us) {
        lp_store_tick_at(store, store->map_next_us);
        return;
    }
    struct lp_store_node *node = node_to_ask(store);
    store->map_next_us = store->now_us + LP_STORE_TICK_US;
    if (node && lp_store_ask_slots(node))
        lp_store_node_lose(node, LP_TROUBLE_MEMORY);
}

/* While an owner is away, another one may have taken its place at any time. */
static void expect_failover(struct lp_store *store)
{
    uint64_t at_us = store->map_next_us + FAILOVER_US;
    bool is_away = false;
    for (uint32_t i = 0; i < store->node_count && !is_away; i++) {
        const struct lp_store_node *node = store->nodes[i];
        is_away = node && node->owns_slots && node->state == LP_NODE_AWAY;
    }
    if (is_away && store->now_us >= at_us)
        store->is_map_wanted = true;
    else if (is_away)
        lp_store_tick_at(store, at_us);
}

/* When nobody is there, whoever is named in the URL may know more. */
static void tend_lifelines(struct lp_store *store)
{
    struct lp_store_node *any = lp_store_any_node(store, 0);
    bool is_lost = !any || any->state != LP_NODE_UP;
    if (is_lost)
        store->is_map_wanted = true;
    for (uint32_t i = 0; i < store->node_count && !is_lost; i++)
        if (store->nodes[i])
            store->nodes[i]->is_lifeline = false;
    for (uint32_t i = 0; i < store->url.seed_count && is_lost; i++) {
        struct lp_store_node *node = lp_store_node_at(store, &store->url.seeds[i]);
        if (node)
            node->is_lifeline = true;
    }
}

static bool is_wanted(const struct lp_store_node *node)
{
    bool is_used =
        node->state != LP_NODE_AWAY && node->store->now_us - node->used_us < LP_STORE_UNUSED_US;
    return node->owns_slots || node->is_lifeline || is_used || !lp_store_node_is_idle(node);
}

static void drop_unwanted(struct lp_store *store)
{
    for (uint32_t i = 0; i < store->node_count; i++) {
        struct lp_store_node *node = store->nodes[i];
        if (!node || is_wanted(node))
            continue;
        lp_store_node_fini(node);
        free(node);
        store->nodes[i] = NULL;
    }
}

void lp_store_slots_tend(struct lp_store *store)
{
    if (store->shape == LP_SHAPE_CLUSTER) {
        tend_lifelines(store);
        expect_failover(store);
        ask_for_map(store);
        drop_unwanted(store);
    }
    uint32_t count = store->shape == LP_SHAPE_CLUSTER ? store->node_count : 1;
    for (uint32_t i = 0; i < count; i++)
        if (store->nodes[i] && store->nodes[i]->state == LP_NODE_IDLE)
            lp_store_node_connect(store->nodes[i]);
}
