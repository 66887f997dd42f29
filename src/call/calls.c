/* Requests of the client: how a message is written, what their time-outs mean, and their one end.
 *
 * A time-out ends that request only; the session and the other requests stay (cases RET-03). A
 * legacy server is told with notifications/cancelled; in the modern era the closed stream says it.
 * A call's time stands still while the server waits for an answer of ours. */
#include <stdio.h>
#include <stdlib.h>

#include "call/client_priv.h"

static void on_timeout(void *ctx);

struct lp_call *lp_call_get(const struct lp_client *client, lp_id id)
{
    return id ? lp_slab_get(&client->calls, id) : NULL;
}

struct lp_call *lp_call_by_number(const struct lp_client *client, uint64_t number)
{
    for (struct lp_list *node = client->calls_open.next; node != &client->calls_open;
         node = node->next) {
        struct lp_call *call = LP_CONTAINER(node, struct lp_call, node);
        if (call->number == number)
            return call;
    }
    return NULL;
}

/* --- its memory --- */

void lp_call_drop(struct lp_call *call)
{
    struct lp_client *client = call->client;
    lp_fetcher_timer_cancel(client->fetcher, &call->timer);
    lp_fetcher_timer_cancel(client->fetcher, &call->resume_timer);
    lp_asked_drop(client, call->id);
    lp_list_remove(&call->node);
    lp_arena_fini(&call->text);
    lp_buf_release(&call->input_answers);
    free(call->resume);
    if (client->listen == call->id)
        client->listen = 0;
    lp_slab_free(&client->calls, call->id);
}

/* --- time --- */

void lp_call_touch(struct lp_call *call)
{
    struct lp_fetcher *fetcher = call->client->fetcher;
    lp_fetcher_timer_cancel(fetcher, &call->timer);
    if (call->timeout_ms == UINT32_MAX || call->asked_count)
        return;
    if (lp_fetcher_timer_set(fetcher, &call->timer, (uint64_t)call->timeout_ms * 1000))
        lp_client_note(call->client, "no memory for a time-out: the request has none");
}

/* --- start --- */

static enum lp_rpc_method rpc_of(struct lp_span method)
{
    for (int i = LP_RPC_OTHER + 1; i <= LP_RPC_TASKS_LIST; i++)
        if (lp_span_eq(method, lp_span_str(lp_rpc_method_name((enum lp_rpc_method)i))))
            return (enum lp_rpc_method)i;
    return LP_RPC_OTHER;
}

static int copy_args(struct lp_call *call, const struct lp_call_args *args)
{
    struct lp_span meta = lp_member(args->params, LP_SPAN("_meta"));
    int err = lp_arena_dup(&call->text, args->method, &call->method);
    if (!err)
        err = lp_arena_dup(&call->text, args->params, &call->params);
    if (!err)
        err = lp_arena_dup(&call->text, lp_member(meta, LP_SPAN("progressToken")), &call->token);
    call->adds_token = args->wants_progress && !call->token.len;
    if (err || !call->adds_token)
        return err;
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)call->number);
    return lp_arena_dup(&call->text, lp_span(digits, (size_t)n), &call->token);
}

int lp_calls_start(
    struct lp_client *client, const struct lp_call_args *args, bool is_opening, lp_id *ret_call)
{
    lp_id id;
    bool is_fine = !args->params.len || lp_json_is_object(args->params);
    int err = is_fine ? LP_OK : LP_ESYNTAX;
    struct lp_call *call = err ? NULL : lp_slab_new(&client->calls, &id);
    if (!call)
        return err ? err : LP_ELIMIT;
    call->id = id;
    call->client = client;
    call->number = ++client->number;
    call->epoch = client->epoch;
    call->ops = args->ops;
    call->ctx = args->ctx;
    call->rpc = rpc_of(args->method);
    call->is_opening = is_opening;
    call->timeout_ms =
        args->timeout_ms ? args->timeout_ms : lp_fetcher_target(client->fetcher)->timeout_ms;
    call->timer.fire = on_timeout;
    call->timer.ctx = call;
    lp_arena_init(&call->text, LP_FETCH_BODY_MAX);
    lp_buf_init(&call->input_answers, LP_FETCH_BODY_MAX);
    lp_list_push_back(&client->calls_open, &call->node);
    err = copy_args(call, args);
    if (!err)
        err = lp_call_send(call);
    if (err) {
        lp_call_drop(call);
        return err;
    }
    lp_call_touch(call);
    *ret_call = id;
    return LP_OK;
}

/* --- its message --- */

int lp_calls_write_message(struct lp_client *client, uint64_t number, struct lp_span method,
    const struct lp_params *params)
{
    struct lp_buf *out = &client->room;
    char id[32] = "";
    bool has_params = params->given.len || params->token.len || client->is_modern;
    if (number)
        snprintf(id, sizeof id, "\"id\":%llu,", (unsigned long long)number);
    lp_buf_clear(out);
    int err =
        LP_JOIN(out, LP_SPAN("{\"jsonrpc\":\"2.0\","), lp_span_str(id), LP_SPAN("\"method\":"));
    if (!err)
        err = lp_json_quote(out, method);
    if (!err && has_params)
        err = lp_buf_append(out, LP_SPAN(",\"params\":"));
    if (!err && has_params)
        err = lp_modern_write_params(client, params, out);
    return err ? err : lp_buf_append(out, LP_SPAN("}"));
}

int lp_call_send(struct lp_call *call)
{
    struct lp_client *client = call->client;
    struct lp_params params = {.given = call->params,
        .token = call->adds_token ? call->token : LP_SPAN(""),
        .inputs = call->inputs};
    LP_ASSERT(!call->exchange);
    int err = lp_calls_write_message(client, call->number, call->method, &params);
    struct lp_exchange_args args = {.kind = LP_EXCHANGE_CALL,
        .call = call,
        .method = call->method,
        .params = call->params,
        .body = lp_buf_span(&client->room)};
    return err ? err : lp_exchange_start(client, &args, &call->exchange);
}

int lp_client_request(struct lp_client *client, const struct lp_call_args *args, lp_id *ret_call)
{
    if (client->state != LP_CLIENT_OPEN)
        return LP_EUSAGE;
    return lp_calls_start(client, args, false, ret_call);
}

/* --- endings --- */

/* The exchange of a call that has its answer may still bring notifications, but not for long. */
static void let_go(struct lp_client *client, struct lp_exchange *x)
{
    enum { AFTER_ANSWER_MS = 5000 };
    if (!x)
        return;
    x->call = 0;
    lp_fetch_set_timeout(client->fetcher, x->fetch, AFTER_ANSWER_MS);
}

/* What a list of tools tells, and what of it is passed on (in `room`, when not all of it). */
static void learn(struct lp_call *call, struct lp_span *result, struct lp_buf *room)
{
    struct lp_client *client = call->client;
    if (!client->is_modern || call->rpc != LP_RPC_TOOLS_LIST || !result->len)
        return;
    if (lp_tools_filter(client, result, room))
        lp_client_note(client, "no memory to leave out tools that cannot be called");
    lp_modern_learn_tools(client, *result, !lp_member(call->params, LP_SPAN("cursor")).len);
}

void lp_call_answer(struct lp_call *call, struct lp_span message)
{
    struct lp_client *client = call->client;
    const struct lp_call_ops *ops = call->ops;
    void *ctx = call->ctx;
    lp_id id = call->id;
    struct lp_buf room;
    struct lp_span result = lp_member(message, LP_SPAN("result"));
    struct lp_span error = lp_member(message, LP_SPAN("error"));
    if (client->is_modern && result.len && lp_inputs_take(call, result))
        return;
    if (client->is_modern && error.len && lp_modern_try_again(call, error))
        return;
    lp_buf_init(&room, LP_CLIENT_MESSAGE_MAX);
    learn(call, &result, &room);
    let_go(client, call->exchange);
    call->exchange = NULL;
    lp_call_drop(call);
    ops->answer(ctx, id, result, error);
    lp_buf_release(&room);
}

void lp_call_fail(struct lp_call *call, const struct lp_client_failure *why)
{
    const struct lp_call_ops *ops = call->ops;
    void *ctx = call->ctx;
    lp_id id = call->id;
    lp_exchange_drop(call->exchange);
    lp_call_drop(call);
    ops->failed(ctx, id, why);
}

void lp_calls_fail_all(struct lp_client *client, const struct lp_client_failure *why)
{
    LP_ASSERT(client->state == LP_CLIENT_CLOSING); /* so nobody can ask anew meanwhile */
    while (!lp_list_empty(&client->calls_open))
        lp_call_fail(LP_CONTAINER(client->calls_open.next, struct lp_call, node), why);
}

/* --- cancelling --- */

static void tell_cancelled(struct lp_call *call, struct lp_span reason)
{
    struct lp_client *client = call->client;
    struct lp_buf params;
    bool is_of_session = client->state == LP_CLIENT_OPEN && call->epoch == client->epoch;
    if (!is_of_session || client->is_modern)
        return;
    if (!reason.len)
        reason = LP_SPAN("not wanted any more");
    lp_buf_init(&params, LP_FETCH_BODY_MAX);
    int err =
        lp_buf_printf(&params, "{\"requestId\":%llu,\"reason\":", (unsigned long long)call->number);
    if (!err)
        err = lp_json_quote(&params, reason);
    if (!err)
        err = lp_buf_append(&params, LP_SPAN("}"));
    if (!err)
        err = lp_client_notify(client, LP_SPAN("notifications/cancelled"), lp_buf_span(&params));
    lp_buf_release(&params);
    if (err)
        lp_client_note(client, "the server was not told to cancel: %s", lp_error_sentence(err));
}

void lp_call_cancel(struct lp_client *client, lp_id id, struct lp_span reason)
{
    struct lp_call *call = lp_call_get(client, id);
    if (!call)
        return;
    tell_cancelled(call, reason);
    lp_exchange_drop(call->exchange);
    lp_call_drop(call);
}

static void on_timeout(void *ctx)
{
    struct lp_call *call = ctx;
    struct lp_client *client = call->client;
    struct lp_client_failure why = {
        .kind = LP_FAILURE_TIMEOUT, .error = LP_ETIMEOUT, .reason = LP_REASON_first_byte_timeout};
    tell_cancelled(call, LP_SPAN("no answer in time"));
    why.sentence = lp_client_say(client,
        "%.*s: no answer within %u.%u s; give the server longer with --timeout",
        (int)call->method.len, call->method.ptr, call->timeout_ms / 1000,
        call->timeout_ms % 1000 / 100);
    if (client->step ==
        LP_OPEN_DISCOVER) /* which says nothing about its era (wire document 11.2) */
        why.sentence = lp_client_say_more(client, why.sentence,
            LP_SPAN(
                "; if it is of before " LP_VERSION_MODERN ", leave this question out with --era "
                "legacy"));
    lp_call_fail(call, &why);
}
