/* One connection's bytes (store/store_priv.h): commands out, one behind the other and in one write
 * an event, replies in, in the same order. `taken` tells which commands the server can have got
 * whole: a command of which a byte is missing there cannot have run. */
#include <stdio.h>

#include "base/error.h"
#include "store/store_priv.h"

enum { DRAIN_SLICE = 65536, KEPT_MAX = 16384 };

/* --- out --- */

static int put_head(struct lp_store_node *node, const struct lp_store_command *command)
{
    const struct lp_store *store = node->store;
    if (command->kind != LP_COMMAND_CALL || !command->script)
        return lp_buf_printf(&node->out, "*%u\r\n", (unsigned)command->rest_count);
    uint32_t script = command->script - 1;
    bool is_hash = store->hashes[script][0] && !command->needs_source;
    struct lp_span words[2] = {is_hash ? LP_SPAN("EVALSHA") : LP_SPAN("EVAL"),
        is_hash ? lp_span(store->hashes[script], sizeof store->hashes[script])
                : store->args.scripts[script]};
    int err = lp_buf_printf(&node->out, "*%u\r\n", (unsigned)command->rest_count + 2);
    return err ? err : lp_store_encode(&node->out, words, 2);
}

int lp_store_pipe_put(struct lp_store_node *node, struct lp_store_command *command)
{
    size_t before = node->out.len;
    int err = put_head(node, command);
    if (!err)
        err = lp_buf_append(&node->out, lp_buf_span(&command->rest));
    if (err)
        return err;
    node->put += node->out.len - before;
    node->used_us = node->store->now_us;
    command->end = node->put;
    command->sent_us = node->store->now_us;
    lp_store_command_move(command, LP_COMMAND_SENT, node);
    return LP_OK;
}

static int put_waiting(struct lp_store_node *node)
{
    const struct lp_store_args *args = &node->store->args;
    bool has_written = false;
    int err = LP_OK;
    while (!err && !lp_list_empty(&node->waiting) && node->out.len < LP_STORE_OUT_SOFT) {
        struct lp_store_command *command =
            LP_CONTAINER(node->waiting.next, struct lp_store_command, link);
        if (command->asks)
            err = LP_STORE_INNER(node, LP_COMMAND_ASKING, 0, LP_SPAN("ASKING"));
        if (!err)
            err = lp_store_pipe_put(node, command);
        has_written |= command->is_write;
    }
    if (err || !has_written || !args->replicas_waited)
        return err;
    char count[16], ms[16];
    (void)snprintf(count, sizeof count, "%u", (unsigned)args->replicas_waited);
    (void)snprintf(ms, sizeof ms, "%u", (unsigned)args->wait_ms);
    return LP_STORE_INNER(
        node, LP_COMMAND_WAIT, 0, LP_SPAN("WAIT"), lp_span_str(count), lp_span_str(ms));
}

static void start_drain(struct lp_store_node *node)
{
    const struct lp_shell *shell = node->store->shell;
    struct lp_span slice = lp_buf_span(&node->draining);
    if (slice.len > DRAIN_SLICE)
        slice.len = DRAIN_SLICE;
    node->is_draining = true;
    node->taken += slice.len; /* it may go out at any time, whenever the shell says so */
    struct lp_action action = {.kind = LP_ACT_DRAIN, .conn = node->conn, .u.drain = slice};
    shell->perform(shell->ctx, &action);
}

static void drop_out(struct lp_store_node *node)
{
    if (node->out.cap <= KEPT_MAX)
        lp_buf_clear(&node->out);
    else
        lp_buf_release(&node->out);
}

static void write_out(struct lp_store_node *node)
{
    const struct lp_shell *shell = node->store->shell;
    if (node->is_draining || !node->out.len)
        return;
    struct lp_span part = lp_buf_span(&node->out);
    struct lp_action action = {
        .kind = LP_ACT_WRITE, .conn = node->conn, .u.write = {.parts = &part, .count = 1}};
    int64_t taken = shell->perform(shell->ctx, &action);
    if (taken < 0)
        return; /* BROKEN comes */
    node->taken += (uint64_t)taken;
    lp_buf_consume(&node->out, (size_t)taken);
    if (!node->out.len) {
        drop_out(node);
        return;
    }
    struct lp_buf empty = node->draining;
    node->draining = node->out;
    node->out = empty;
    start_drain(node);
}

void lp_store_pipe_flush(struct lp_store_node *node)
{
    if (node->state == LP_NODE_UP && !node->is_leaving && put_waiting(node)) {
        lp_store_node_lose(node, LP_TROUBLE_MEMORY);
        return;
    }
    if (node->is_leaving && lp_list_empty(&node->sent) && lp_list_empty(&node->held)) {
        lp_store_node_lose(node, LP_TROUBLE_READONLY);
        return;
    }
    if (node->state == LP_NODE_UP || node->state == LP_NODE_GREETING)
        write_out(node);
}

void lp_store_pipe_drained(struct lp_store_node *node)
{
    size_t slice = node->draining.len < DRAIN_SLICE ? node->draining.len : DRAIN_SLICE;
    lp_buf_consume(&node->draining, slice);
    node->is_draining = false;
    if (node->draining.len)
        start_drain(node);
    else
        lp_buf_release(&node->draining);
}

/* --- in --- */

void lp_store_pipe_confirmed(struct lp_store_node *node, const struct lp_store_reply *count)
{
    struct lp_store *store = node->store;
    bool is_enough =
        count->kind == LP_REPLY_INTEGER && count->integer >= store->args.replicas_waited;
    while (!lp_list_empty(&node->held)) {
        struct lp_store_command *command =
            LP_CONTAINER(node->held.next, struct lp_store_command, link);
        lp_store_command_end(
            store, command, is_enough ? LP_OUTCOME_ANSWERED : LP_OUTCOME_UNCONFIRMED);
    }
}

static void on_reply(struct lp_store_node *node, const struct lp_store_reply *reply)
{
    if (node->is_channels && node->state == LP_NODE_UP) {
        lp_store_channels_reply(node->store, reply);
        return;
    }
    if (lp_list_empty(&node->sent)) {
        lp_store_node_lose(node, LP_TROUBLE_PROTOCOL);
        return;
    }
    struct lp_store_command *command = LP_CONTAINER(node->sent.next, struct lp_store_command, link);
    enum lp_store_command_kind kind = command->kind;
    uint32_t script = command->script;
    if (kind == LP_COMMAND_CALL && !command->is_over) {
        lp_store_answer(node, command, reply);
        return;
    }
    lp_store_command_free(node->store, command);
    if (kind != LP_COMMAND_CALL)
        lp_store_greeted(node, kind, script, reply);
}

/* The stream cannot be read on. Whose answer it was can be said when it was only too long. */
static void on_unreadable(struct lp_store_node *node, int err)
{
    struct lp_store *store = node->store;
    if (err == LP_ELIMIT && !lp_list_empty(&node->sent)) {
        struct lp_store_command *command =
            LP_CONTAINER(node->sent.next, struct lp_store_command, link);
        if (command->kind == LP_COMMAND_CALL && !command->is_over)
            lp_store_command_end(store, command, LP_OUTCOME_TOO_LARGE);
    }
    lp_store_node_lose(node,
        err == LP_ELIMIT       ? LP_TROUBLE_TOO_LARGE
            : err == LP_ENOMEM ? LP_TROUBLE_MEMORY
                               : LP_TROUBLE_PROTOCOL);
}

void lp_store_pipe_read(struct lp_store_node *node, struct lp_span bytes)
{
    lp_id conn = node->conn;
    node->read_us = node->store->now_us;
    node->is_asked = false;
    int err = lp_store_reader_feed(&node->reader, bytes);
    while (!err) {
        const struct lp_store_reply *reply = NULL;
        err = lp_store_reader_next(&node->reader, &reply);
        if (!err && !reply)
            return;
        if (!err)
            on_reply(node, reply);
        if (node->conn != conn)
            return; /* lost because of what it said */
    }
    on_unreadable(node, err);
}
