/* Where a command goes, and what a refusal means for it (store/store_priv.h; case OWN-06): a server
 * that said no to a command has not run it, so that it may be sent again, elsewhere or later, as
 * long as its deadline allows. */
#include "base/error.h"
#include "store/store_priv.h"

/* --- the way out --- */

static void queue(struct lp_store_node *node, struct lp_store_command *command)
{
    node->used_us = node->store->now_us;
    lp_store_command_move(command, LP_COMMAND_WAITING, node);
}

/* Nobody can take it now. What a server has refused for a while waits as long as it may; the rest
 * only as long as the loss is fresh. */
static void put_off(struct lp_store *store, struct lp_store_command *command, uint64_t away_us)
{
    uint64_t grace_us = (uint64_t)store->args.grace_ms * 1000;
    bool is_refused = command->outcome != LP_OUTCOME_ANSWERED;
    if (is_refused || store->now_us - away_us < grace_us)
        lp_store_command_park(command, store);
    else
        lp_store_command_end(store, command, LP_OUTCOME_DOWN);
}

static void route_to(
    struct lp_store *store, struct lp_store_command *command, struct lp_store_node *node)
{
    if (node->state == LP_NODE_AWAY)
        put_off(store, command, node->away_us);
    else
        queue(node, command);
}

/* A slot without an owner: the map is about to come, or nobody is there to tell it. */
static void route_unowned(struct lp_store *store, struct lp_store_command *command)
{
    lp_store_slots_want(store, NULL);
    if (lp_store_any_node(store, 0))
        lp_store_command_park(command, store);
    else
        put_off(store, command, store->down_us);
}

void lp_store_route(struct lp_store *store, struct lp_store_command *command)
{
    struct lp_store_node *node = store->nodes[0];
    if (store->shape == LP_SHAPE_CLUSTER && command->has_key)
        node = lp_store_slots_get(store, command->slot);
    else if (store->shape == LP_SHAPE_CLUSTER)
        node = lp_store_any_node(store, store->map_turn);
    if (node)
        route_to(store, command, node);
    else
        route_unowned(store, command);
}

void lp_store_route_parked(struct lp_store *store)
{
    struct lp_list batch;
    lp_list_init(&batch);
    while (!lp_list_empty(&store->parked)) {
        struct lp_list *link = store->parked.next;
        lp_list_remove(link);
        lp_list_push_back(&batch, link);
    }
    while (!lp_list_empty(&batch))
        lp_store_route(store, LP_CONTAINER(batch.next, struct lp_store_command, link));
}

/* --- refusals --- */

/* The word that the error begins with. */
static struct lp_span word_of(struct lp_span error)
{
    return lp_span(error.ptr, lp_span_find(error, ' '));
}

enum lp_store_outcome lp_store_outcome_of(struct lp_span error)
{
    static const char *const WORDS[] = {
#define X(name, word, sentence) word,
        LP_STORE_OUTCOMES(X)
#undef X
    };
    struct lp_span word = word_of(error);
    for (uint32_t i = LP_OUTCOME_READONLY; i < LP_OUTCOME_REFUSED; i++)
        if (lp_span_eq(lp_span_str(WORDS[i]), word))
            return (enum lp_store_outcome)i;
    return LP_OUTCOME_REFUSED;
}

/* "MOVED 3999 127.0.0.1:6381", and ASK likewise. */
static struct lp_store_node *target_of(
    struct lp_store_node *from, struct lp_span error, uint16_t *ret_slot)
{
    struct lp_store_address address;
    struct lp_span rest;
    uint64_t slot;
    (void)lp_span_split(error, ' ', &rest);
    if (!lp_span_to_u64(lp_span_split(rest, ' ', &rest), &slot) || slot >= LP_STORE_SLOTS)
        return NULL;
    *ret_slot = (uint16_t)slot;
    return lp_store_address_read(rest, from, &address) ? NULL
                                                       : lp_store_node_at(from->store, &address);
}

static void redirect(struct lp_store_node *node, struct lp_store_command *command,
    enum lp_store_outcome outcome, const struct lp_store_reply *reply)
{
    struct lp_store *store = node->store;
    uint16_t slot;
    struct lp_store_node *target =
        command->redirects++ < LP_STORE_REDIRECTS_MAX ? target_of(node, reply->text, &slot) : NULL;
    if (!target) {
        lp_store_command_tell(store, command, outcome, reply);
        return;
    }
    if (outcome == LP_OUTCOME_MOVED) {
        store->shape = LP_SHAPE_CLUSTER;
        lp_store_slots_set(store, slot, target);
        lp_store_slots_want(store, target);
    }
    route_to(store, command, target);
    command->asks = outcome == LP_OUTCOME_ASK && command->state == LP_COMMAND_WAITING;
}

/* Tried again at the next tick, or when a node comes back. */
static void retry_later(
    struct lp_store_node *node, struct lp_store_command *command, enum lp_store_outcome outcome)
{
    struct lp_store *store = node->store;
    bool is_alone = store->shape != LP_SHAPE_CLUSTER;
    command->outcome = outcome;
    lp_store_command_park(command, store);
    if (outcome == LP_OUTCOME_READONLY && is_alone)
        node->is_leaving = true;
    else if (!is_alone && outcome != LP_OUTCOME_TRYAGAIN)
        lp_store_slots_want(store, NULL);
}

static void on_refused(struct lp_store_node *node, struct lp_store_command *command,
    const struct lp_store_reply *reply)
{
    enum lp_store_outcome outcome = lp_store_outcome_of(reply->text);
    switch (outcome) {
    case LP_OUTCOME_MOVED:
    case LP_OUTCOME_ASK:
        redirect(node, command, outcome, reply);
        break;
    case LP_OUTCOME_READONLY:
    case LP_OUTCOME_LOADING:
    case LP_OUTCOME_CLUSTERDOWN:
    case LP_OUTCOME_MASTERDOWN:
    case LP_OUTCOME_TRYAGAIN:
        retry_later(node, command, outcome);
        break;
    default:
        lp_store_command_tell(node->store, command, outcome, reply);
        break;
    }
}

/* --- replies --- */

/* Until WAIT, which was sent behind it, is answered. */
static void hold(struct lp_store_node *node, struct lp_store_command *command,
    const struct lp_store_reply *reply)
{
    command->arena = lp_store_reader_take(&node->reader);
    command->reply = reply;
    lp_store_command_move(command, LP_COMMAND_HELD, node);
}

void lp_store_answer(struct lp_store_node *node, struct lp_store_command *command,
    const struct lp_store_reply *reply)
{
    bool is_unknown_script = command->script && !command->needs_source &&
        reply->kind == LP_REPLY_ERROR && lp_span_eq(word_of(reply->text), LP_SPAN("NOSCRIPT"));
    lp_store_command_move(command, LP_COMMAND_HELD, node); /* out of what is being sent */
    if (is_unknown_script) {
        command->needs_source = true;
        queue(node, command);
    } else if (reply->kind == LP_REPLY_ERROR) {
        on_refused(node, command, reply);
    } else if (command->is_write && node->store->args.replicas_waited) {
        hold(node, command, reply);
    } else {
        lp_store_command_tell(node->store, command, LP_OUTCOME_ANSWERED, reply);
    }
}
