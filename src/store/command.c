/* Commands (store/store_priv.h): from lp_store_call to the outcome. What is still possible when a
 * deadline comes or a connection ends is decided here; where a command goes, in route.c. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/store_priv.h"

int lp_store_encode(struct lp_buf *out, const struct lp_span *argv, uint32_t argc)
{
    int err = LP_OK;
    for (uint32_t i = 0; i < argc && !err; i++) {
        err = lp_buf_printf(out, "$%zu\r\n", argv[i].len);
        if (!err)
            err = LP_JOIN(out, argv[i], LP_SPAN("\r\n"));
    }
    return err;
}

/* --- birth --- */

static struct lp_store_command *new_command(
    struct lp_store *store, enum lp_store_command_kind kind, size_t bytes_max)
{
    lp_id id;
    struct lp_store_command *command = lp_slab_new(&store->commands, &id);
    if (!command)
        return NULL;
    command->id = id;
    command->kind = kind;
    command->timer = (struct lp_timer){.kind = LP_TIMER_STORE_COMMAND, .owner = id};
    lp_list_init(&command->link);
    lp_buf_init(&command->rest, bytes_max);
    return command;
}

int lp_store_inner(struct lp_store_node *node, enum lp_store_command_kind kind, uint32_t script,
    const struct lp_span *argv, uint32_t argc)
{
    struct lp_store_command *command = new_command(node->store, kind, node->out.max);
    if (!command)
        return LP_ENOMEM;
    command->script = script;
    command->rest_count = argc;
    int err = lp_store_encode(&command->rest, argv, argc);
    if (!err)
        err = lp_store_pipe_put(node, command);
    if (err)
        lp_store_command_free(node->store, command);
    else
        lp_buf_release(&command->rest);
    return err;
}

static void fill(struct lp_store *store, struct lp_store_command *command,
    const struct lp_store_call_args *args, struct lp_span key)
{
    command->has_key = key.len > 0;
    command->slot = lp_store_slot(key);
    command->is_write = args->is_write;
    command->is_idempotent = args->is_idempotent;
    command->done = args->done;
    command->ctx = args->ctx;
    command->tag = args->tag;
    store->call_count++;
    store->bytes += command->rest.len;
}

static int set_deadline(
    struct lp_store *store, struct lp_store_command *command, uint32_t timeout_ms)
{
    uint64_t us = (uint64_t)(timeout_ms ? timeout_ms : store->args.call_ms) * 1000;
    return lp_heap_set(store->timers, &command->timer, store->now_us + us);
}

/* `first` (may be empty) and args->argv make up the command behind its head. */
static int begin(struct lp_store *store, const struct lp_store_call_args *args,
    struct lp_span first, struct lp_store_command **ret)
{
    LP_ASSERT(args->done);
    if (store->call_count >= store->args.calls_max ||
        store->commands.live_count >= store->commands.live_max - LP_STORE_INNER_MAX)
        return LP_ELIMIT;
    struct lp_store_command *command =
        new_command(store, LP_COMMAND_CALL, store->args.bytes_max - store->bytes);
    if (!command)
        return LP_ENOMEM;
    int err = first.len ? lp_store_encode(&command->rest, &first, 1) : LP_OK;
    if (!err)
        err = lp_store_encode(&command->rest, args->argv, args->argc);
    if (!err)
        err = set_deadline(store, command, args->timeout_ms);
    if (err) {
        lp_buf_release(&command->rest);
        lp_slab_free(&store->commands, command->id);
        return err;
    }
    command->rest_count = args->argc + (first.len > 0);
    *ret = command;
    return LP_OK;
}

int lp_store_call(struct lp_store *store, const struct lp_store_call_args *args, lp_id *ret_call)
{
    struct lp_store_command *command;
    LP_ASSERT(args->argc);
    int err = begin(store, args, LP_SPAN(""), &command);
    if (err)
        return err;
    fill(store, command, args, args->key);
    if (ret_call)
        *ret_call = command->id;
    lp_store_route(store, command);
    lp_store_tick_at(store, store->now_us); /* if no flush follows in this event */
    return LP_OK;
}

int lp_store_eval(struct lp_store *store, uint32_t script, uint32_t key_count,
    const struct lp_store_call_args *args, lp_id *ret_call)
{
    struct lp_store_command *command;
    char count[16];
    LP_ASSERT(script < store->args.script_count && key_count <= args->argc);
    int len = snprintf(count, sizeof count, "%u", (unsigned)key_count);
    int err = begin(store, args, lp_span(count, (size_t)len), &command);
    if (err)
        return err;
    fill(store, command, args, !args->key.len && key_count ? args->argv[0] : args->key);
    command->script = script + 1;
    if (ret_call)
        *ret_call = command->id;
    lp_store_route(store, command);
    lp_store_tick_at(store, store->now_us); /* if no flush follows in this event */
    return LP_OK;
}

/* --- lists --- */

void lp_store_command_move(
    struct lp_store_command *command, enum lp_store_command_state state, struct lp_store_node *node)
{
    lp_list_remove(&command->link);
    command->state = state;
    command->node = node;
    struct lp_list *list = state == LP_COMMAND_WAITING ? &node->waiting
        : state == LP_COMMAND_SENT                     ? &node->sent
                                                       : &node->held;
    lp_list_push_back(list, &command->link);
}

void lp_store_command_park(struct lp_store_command *command, struct lp_store *store)
{
    lp_list_remove(&command->link);
    command->state = LP_COMMAND_PARKED;
    command->node = NULL;
    command->asks = false;
    lp_list_push_back(&store->parked, &command->link);
}

/* --- death --- */

/* No deadline, no place in the counts, no bytes: as far as its owner is concerned it is gone. */
static void retire(struct lp_store *store, struct lp_store_command *command)
{
    lp_heap_cancel(store->timers, &command->timer);
    if (command->kind == LP_COMMAND_CALL && !command->is_over) {
        store->call_count--;
        store->bytes -= command->rest.len;
    }
    command->is_over = true;
    command->done = NULL;
    lp_buf_release(&command->rest);
}

void lp_store_command_free(struct lp_store *store, struct lp_store_command *command)
{
    retire(store, command);
    lp_list_remove(&command->link);
    lp_arena_fini(&command->arena);
    lp_slab_free(&store->commands, command->id);
}

void lp_store_command_end(
    struct lp_store *store, struct lp_store_command *command, enum lp_store_outcome outcome)
{
    lp_heap_cancel(store->timers, &command->timer);
    if (outcome == LP_OUTCOME_DOWN && command->may_have_run)
        outcome = LP_OUTCOME_UNKNOWN;
    command->outcome = outcome;
    command->state = LP_COMMAND_ENDED;
    lp_list_remove(&command->link);
    lp_list_push_back(&store->ended, &command->link);
}

static bool may_have_run(const struct lp_store_command *command, enum lp_store_outcome outcome)
{
    switch (outcome) {
    case LP_OUTCOME_ANSWERED:
    case LP_OUTCOME_UNCONFIRMED:
    case LP_OUTCOME_UNKNOWN:
    case LP_OUTCOME_TIMEOUT:
    case LP_OUTCOME_TOO_LARGE:
        return true;
    case LP_OUTCOME_OOM:
    case LP_OUTCOME_MISCONF:
    case LP_OUTCOME_REFUSED: /* a script may have got to its middle */
        return command->script || command->may_have_run;
    default:
        return command->may_have_run;
    }
}

void lp_store_command_tell(struct lp_store *store, struct lp_store_command *command,
    enum lp_store_outcome outcome, const struct lp_store_reply *reply)
{
    struct lp_store_result result = {outcome, may_have_run(command, outcome), reply};
    lp_store_done_fn done = command->done;
    void *ctx = command->ctx;
    uint64_t tag = command->tag;
    struct lp_arena arena = command->arena;
    lp_arena_init(&command->arena, 0);
    if (command->state == LP_COMMAND_SENT)
        retire(store, command);
    else
        lp_store_command_free(store, command);
    done(ctx, tag, &result);
    lp_arena_fini(&arena);
}

void lp_store_cancel(struct lp_store *store, lp_id call)
{
    struct lp_store_command *command = lp_slab_get(&store->commands, call);
    if (!command)
        return;
    if (command->state == LP_COMMAND_SENT)
        retire(store, command);
    else
        lp_store_command_free(store, command);
}

/* --- what may happen to it --- */

/* Nothing at all has come since the oldest command was sent, and that is long ago: the connection
 * is dead. */
static bool is_silent(const struct lp_store_node *node)
{
    const struct lp_store *store = node->store;
    const struct lp_store_command *oldest =
        LP_CONTAINER(node->sent.next, struct lp_store_command, link);
    return node->read_us <= oldest->sent_us &&
        store->now_us - oldest->sent_us >= (uint64_t)store->args.connect_ms * 1000;
}

static void expire_sent(struct lp_store *store, struct lp_store_command *command)
{
    struct lp_store_node *node = command->node;
    lp_store_command_tell(store, command, LP_OUTCOME_TIMEOUT, NULL);
    if (is_silent(node)) /* the command is still in its list, as a shell */
        lp_store_node_lose(node, LP_TROUBLE_TIMEOUT);
}

void lp_store_command_expire(struct lp_store *store, struct lp_store_command *command)
{
    enum lp_store_outcome outcome = command->outcome;
    if (command->state == LP_COMMAND_SENT) {
        expire_sent(store, command);
        return;
    }
    if (command->state == LP_COMMAND_HELD)
        outcome = LP_OUTCOME_UNCONFIRMED;
    else if (outcome == LP_OUTCOME_ANSWERED)
        outcome = command->may_have_run ? LP_OUTCOME_UNKNOWN : LP_OUTCOME_DOWN;
    lp_store_command_tell(store, command, outcome, command->reply);
}

void lp_store_command_cut(struct lp_store *store, struct lp_store_command *command, bool has_run)
{
    bool is_safe = !has_run || !command->is_write || command->is_idempotent;
    if (command->kind == LP_COMMAND_SLOTS)
        store->is_map_asked = false;
    if (command->is_over || command->kind != LP_COMMAND_CALL) {
        lp_store_command_free(store, command);
        return;
    }
    command->may_have_run |= has_run && command->is_write;
    command->reply = NULL;
    lp_arena_fini(&command->arena);
    if (is_safe && command->redirects++ < LP_STORE_REDIRECTS_MAX)
        lp_store_command_park(command, store);
    else
        lp_store_command_end(store, command, LP_OUTCOME_DOWN);
    if (command->state == LP_COMMAND_ENDED && has_run)
        command->outcome = LP_OUTCOME_UNKNOWN;
}

uint32_t lp_store_waiting(const struct lp_store *store)
{
    return store->call_count;
}
