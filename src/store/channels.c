/* Publish/subscribe (store/store_priv.h): one connection that only listens, to any node, since a
 * cluster passes messages to all. After each reconnection everything is subscribed again, and its
 * owner told, because messages of the time in between are lost. */
#include <stdlib.h>

#include "base/error.h"
#include "store/store_priv.h"

enum { CHANNEL_MAX = 512 };

struct channel {
    char *name;
    size_t len;
};

/* Nobody waits for the answer in node.sent: what comes on this connection says itself what it is.
 */
static int say(struct lp_store_node *listener, struct lp_span verb, struct lp_span channel)
{
    struct lp_span words[] = {verb, channel};
    int err = lp_buf_append(&listener->out, LP_SPAN("*2\r\n"));
    return err ? err : lp_store_encode(&listener->out, words, 2);
}

/* Without memory the connection is left at the flush, and not at once: a message that was read from
 * it may be in its owner's hands. */
static void say_or_leave(struct lp_store *store, struct lp_span verb, struct lp_span channel)
{
    if (store->listener.state == LP_NODE_UP && say(&store->listener, verb, channel))
        store->listener.is_leaving = true;
    lp_store_tick_at(store, store->now_us); /* if no flush follows in this event */
}

int lp_store_subscribe(struct lp_store *store, struct lp_span channel, lp_id *ret_id)
{
    lp_id id;
    LP_ASSERT(channel.len && channel.len <= CHANNEL_MAX);
    if (store->channels.live_count >= store->channels.live_max)
        return LP_ELIMIT;
    struct channel *new = lp_slab_new(&store->channels, &id);
    if (!new)
        return LP_ENOMEM;
    new->name = malloc(channel.len);
    if (!new->name) {
        lp_slab_free(&store->channels, id);
        return LP_ENOMEM;
    }
    memcpy(new->name, channel.ptr, channel.len);
    new->len = channel.len;
    *ret_id = id;
    say_or_leave(store, LP_SPAN("SUBSCRIBE"), channel);
    return LP_OK;
}

void lp_store_unsubscribe(struct lp_store *store, lp_id id)
{
    struct channel *channel = lp_slab_get(&store->channels, id);
    if (!channel)
        return;
    say_or_leave(store, LP_SPAN("UNSUBSCRIBE"), lp_span(channel->name, channel->len));
    free(channel->name);
    lp_slab_free(&store->channels, id);
}

void lp_store_channels_up(struct lp_store *store)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct channel *c; (c = lp_slab_next(&store->channels, &cursor, &id));)
        say_or_leave(store, LP_SPAN("SUBSCRIBE"), lp_span(c->name, c->len));
}

bool lp_store_is_listening(const struct lp_store *store)
{
    return store->listener.state == LP_NODE_UP;
}

/* "PONG" of one who listens to nothing, ["pong", ""] of one who does, or an error. */
static void on_other(struct lp_store_node *listener, const struct lp_store_reply *reply)
{
    if (!lp_list_empty(&listener->sent))
        lp_store_command_free(
            listener->store, LP_CONTAINER(listener->sent.next, struct lp_store_command, link));
    else if (reply->kind == LP_REPLY_ERROR) /* the user may not listen to this channel */
        lp_store_node_lose(listener, LP_TROUBLE_PASSWORD);
}

void lp_store_channels_reply(struct lp_store *store, const struct lp_store_reply *reply)
{
    const struct lp_store_ops *ops = store->args.ops;
    const struct lp_store_reply *what = lp_store_reply_item(reply, 0);
    const struct lp_store_reply *channel = lp_store_reply_item(reply, 1);
    const struct lp_store_reply *payload = lp_store_reply_item(reply, 2);
    if (!payload)
        on_other(&store->listener, reply);
    else if (lp_span_eq(what->text, LP_SPAN("message")))
        ops->message(store->args.ctx, channel->text, payload->text);
    else if (lp_span_eq(what->text, LP_SPAN("subscribe")))
        ops->subscribed(store->args.ctx, channel->text);
}

void lp_store_channels_tend(struct lp_store *store)
{
    struct lp_store_node *listener = &store->listener;
    if (listener->state != LP_NODE_IDLE || !store->channels.live_count)
        return;
    uint32_t turn = store->listener_turn++;
    struct lp_store_node *node = lp_store_any_node(store, turn);
    bool is_known = node && node->state == LP_NODE_UP;
    listener->address = is_known ? node->address : store->url.seeds[turn % store->url.seed_count];
    lp_store_node_connect(listener);
}

void lp_store_channels_fini(struct lp_store *store)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct channel *c; (c = lp_slab_next(&store->channels, &cursor, &id));)
        free(c->name);
    lp_slab_fini(&store->channels);
}

void lp_store_channels_init(struct lp_store *store)
{
    lp_slab_init(&store->channels, sizeof(struct channel), LP_STORE_CHANNELS_MAX);
}
