/* What a new connection says first, all in one write: log-in, database, slot map, role, scripts,
 * and PING, whose answer tells that all before it has been answered (store/store_priv.h). The
 * answers to the store's own commands come here. */
#include <stdio.h>

#include "base/error.h"
#include "store/store_priv.h"

/* --- questions --- */

static int log_in(struct lp_store_node *node)
{
    const struct lp_store_url *url = &node->store->url;
    struct lp_span password = lp_span(url->password, url->password_len);
    if (!url->password_len)
        return LP_OK;
    if (!url->user_len)
        return LP_STORE_INNER(node, LP_COMMAND_AUTH, 0, LP_SPAN("AUTH"), password);
    return LP_STORE_INNER(
        node, LP_COMMAND_AUTH, 0, LP_SPAN("AUTH"), lp_span(url->user, url->user_len), password);
}

static int select_db(struct lp_store_node *node)
{
    char db[16];
    if (!node->store->url.db)
        return LP_OK;
    (void)snprintf(db, sizeof db, "%u", (unsigned)node->store->url.db);
    return LP_STORE_INNER(node, LP_COMMAND_SELECT, 0, LP_SPAN("SELECT"), lp_span_str(db));
}

int lp_store_ask_slots(struct lp_store_node *node)
{
    int err = LP_STORE_INNER(node, LP_COMMAND_SLOTS, 0, LP_SPAN("CLUSTER"), LP_SPAN("SLOTS"));
    node->store->is_map_asked = !err;
    return err;
}

static int ask_shape(struct lp_store_node *node)
{
    const struct lp_store *store = node->store;
    bool is_known = store->shape == LP_SHAPE_SINGLE ||
        (store->shape == LP_SHAPE_CLUSTER && (!store->is_map_wanted || store->is_map_asked));
    int err = is_known ? LP_OK : lp_store_ask_slots(node);
    if (err || store->shape == LP_SHAPE_CLUSTER)
        return err;
    return LP_STORE_INNER(node, LP_COMMAND_ROLE, 0, LP_SPAN("ROLE"));
}

static int load_scripts(struct lp_store_node *node)
{
    const struct lp_store_args *args = &node->store->args;
    int err = LP_OK;
    for (uint32_t i = 0; i < args->script_count && !err; i++)
        err = LP_STORE_INNER(
            node, LP_COMMAND_LOAD, i, LP_SPAN("SCRIPT"), LP_SPAN("LOAD"), args->scripts[i]);
    return err;
}

int lp_store_greet(struct lp_store_node *node)
{
    int err = log_in(node);
    if (!err && !node->is_channels)
        err = select_db(node);
    if (!err && !node->is_channels)
        err = ask_shape(node);
    if (!err && !node->is_channels)
        err = load_scripts(node);
    return err ? err : LP_STORE_INNER(node, LP_COMMAND_PING, 0, LP_SPAN("PING"));
}

/* --- answers --- */

static bool begins(const struct lp_store_reply *reply, const char *word)
{
    return lp_span_starts(reply->text, lp_span_str(word));
}

/* Why a log-in cannot go on after this answer, or NONE: what some servers or users may not do is
 * not needed by all. */
static enum lp_store_trouble trouble_of(
    enum lp_store_command_kind kind, const struct lp_store_reply *reply)
{
    if (reply->kind != LP_REPLY_ERROR)
        return LP_TROUBLE_NONE;
    if (begins(reply, "LOADING"))
        return LP_TROUBLE_LOADING;
    if (kind == LP_COMMAND_AUTH || begins(reply, "NOAUTH") || begins(reply, "WRONGPASS"))
        return LP_TROUBLE_PASSWORD;
    if (kind == LP_COMMAND_SELECT)
        return LP_TROUBLE_DATABASE;
    if (kind != LP_COMMAND_PING)
        return LP_TROUBLE_NONE;
    if (begins(reply, "MASTERDOWN"))
        return LP_TROUBLE_STALE;
    return begins(reply, "NOPERM") ? LP_TROUBLE_NONE : LP_TROUBLE_OTHER;
}

/* A server that is no cluster says so by an error, and one that is so old that it does not know the
 * question, too. */
static enum lp_store_trouble learn_shape(
    struct lp_store_node *node, const struct lp_store_reply *reply)
{
    struct lp_store *store = node->store;
    if (reply->kind != LP_REPLY_ERROR) {
        enum lp_store_trouble trouble = lp_store_slots_read(node, reply);
        if (trouble == LP_TROUBLE_NONE)
            store->shape = LP_SHAPE_CLUSTER;
        return trouble;
    }
    if (store->shape == LP_SHAPE_CLUSTER)
        return LP_TROUBLE_NONE; /* others are asked */
    if (store->url.kind == LP_STORE_CLUSTER)
        return LP_TROUBLE_NO_CLUSTER;
    store->shape = LP_SHAPE_SINGLE;
    return LP_TROUBLE_NONE;
}

static void on_slots(struct lp_store_node *node, const struct lp_store_reply *reply)
{
    enum lp_store_trouble trouble = learn_shape(node, reply);
    if (trouble != LP_TROUBLE_NONE && node->store->shape != LP_SHAPE_CLUSTER)
        lp_store_node_lose(node, trouble);
}

static void on_role(struct lp_store_node *node, const struct lp_store_reply *reply)
{
    const struct lp_store_reply *role = lp_store_reply_item(reply, 0);
    if (node->store->shape == LP_SHAPE_SINGLE && role && lp_span_eq(role->text, LP_SPAN("slave")))
        lp_store_node_lose(node, LP_TROUBLE_READONLY);
}

static void on_loaded(
    struct lp_store_node *node, uint32_t script, const struct lp_store_reply *reply)
{
    char *hash = node->store->hashes[script];
    if (reply->kind == LP_REPLY_STRING && reply->text.len == sizeof *node->store->hashes)
        memcpy(hash, reply->text.ptr, sizeof *node->store->hashes);
}

void lp_store_greeted(struct lp_store_node *node, enum lp_store_command_kind kind, uint32_t script,
    const struct lp_store_reply *reply)
{
    enum lp_store_trouble trouble =
        node->state == LP_NODE_GREETING ? trouble_of(kind, reply) : LP_TROUBLE_NONE;
    if (kind == LP_COMMAND_SLOTS)
        node->store->is_map_asked = false;
    if (trouble != LP_TROUBLE_NONE)
        lp_store_node_lose(node, trouble);
    else if (kind == LP_COMMAND_SLOTS)
        on_slots(node, reply);
    else if (kind == LP_COMMAND_ROLE)
        on_role(node, reply);
    else if (kind == LP_COMMAND_LOAD)
        on_loaded(node, script, reply);
    else if (kind == LP_COMMAND_PING)
        lp_store_node_up(node);
    else if (kind == LP_COMMAND_WAIT)
        lp_store_pipe_confirmed(node, reply);
}
