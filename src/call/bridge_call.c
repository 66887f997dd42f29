/* Calls of the host, from its line to its answer (call/bridge.h).
 *
 *          lp_bridge_call                    answer, refusal, cancel
 *   host ------------------> waiting <----> sent ------------------> gone
 *                                   again: only what cannot have run, ping and lists */
#include <stdlib.h>
#include <string.h>

#include "call/bridge_priv.h"
#include "wire/member.h"

enum { METHOD_MAX = 256 };

static const struct lp_call_ops CALL_OPS;

static void send_call(struct lp_bridge_call *c);

/* --- a call's memory --- */

static struct lp_span put(char **room, struct lp_span part)
{
    struct lp_span kept = lp_span(*room, part.len);
    if (part.len)
        memcpy(*room, part.ptr, part.len);
    *room += part.len;
    return kept;
}

static struct lp_bridge_call *new_call(
    struct lp_bridge *b, struct lp_span id, struct lp_span name, struct lp_span params)
{
    struct lp_bridge_call *c = calloc(1, sizeof *c);
    char *room = malloc(id.len + name.len + params.len + 1);
    if (!c || !room) {
        free(c);
        free(room);
        return NULL;
    }
    c->bridge = b;
    c->bytes = room;
    c->id = put(&room, id);
    c->name = put(&room, name);
    c->params = put(&room, params);
    lp_list_push_back(&b->calls, &c->node);
    b->call_count++;
    return c;
}

void lp_bridge_call_free(struct lp_bridge_call *c)
{
    c->bridge->call_count--;
    lp_list_remove(&c->node);
    free(c->bytes);
    free(c);
}

static void free_memo(struct lp_bridge *b, struct lp_bridge_memo *memo)
{
    lp_list_remove(&memo->node);
    b->memo_count--;
    free(memo->bytes);
    free(memo);
}

void lp_bridge_calls_fini(struct lp_bridge *b)
{
    while (!lp_list_empty(&b->calls))
        lp_bridge_call_free(LP_CONTAINER(b->calls.next, struct lp_bridge_call, node));
    while (!lp_list_empty(&b->memos))
        free_memo(b, LP_CONTAINER(b->memos.next, struct lp_bridge_memo, node));
    while (!lp_list_empty(&b->asked)) {
        struct lp_bridge_asked *a = LP_CONTAINER(b->asked.next, struct lp_bridge_asked, node);
        lp_list_remove(&a->node);
        free(a);
    }
}

/* --- what another session has to be told again --- */

static struct lp_bridge_memo *find_memo(
    struct lp_bridge *b, enum lp_rpc_method method, struct lp_span uri)
{
    for (struct lp_list *node = b->memos.next; node != &b->memos; node = node->next) {
        struct lp_bridge_memo *memo = LP_CONTAINER(node, struct lp_bridge_memo, node);
        if (memo->method == method && lp_span_eq(lp_member(memo->params, LP_SPAN("uri")), uri))
            return memo;
    }
    return NULL;
}

static void forget(struct lp_bridge *b, enum lp_rpc_method method, struct lp_span uri)
{
    struct lp_bridge_memo *memo = find_memo(b, method, uri);
    if (memo)
        free_memo(b, memo);
}

static void remember(struct lp_bridge *b, const struct lp_bridge_call *c)
{
    struct lp_span uri = lp_member(c->params, LP_SPAN("uri"));
    forget(b, c->method, uri);
    struct lp_bridge_memo *memo =
        b->memo_count < LP_BRIDGE_MEMOS_MAX ? calloc(1, sizeof *memo) : NULL;
    char *room = memo ? malloc(c->params.len + 1) : NULL;
    if (!room) {
        free(memo);
        lp_bridge_say(b, "a subscription will not be set again if the session is lost: too many");
        return;
    }
    memo->method = c->method;
    memo->bytes = room;
    memo->params = put(&room, c->params);
    lp_list_push_back(&b->memos, &memo->node);
    b->memo_count++;
}

static void note_success(struct lp_bridge *b, const struct lp_bridge_call *c)
{
    if (c->is_ours)
        return;
    if (c->method == LP_RPC_SET_LEVEL || c->method == LP_RPC_RESOURCES_SUBSCRIBE)
        remember(b, c);
    else if (c->method == LP_RPC_RESOURCES_UNSUBSCRIBE)
        forget(b, LP_RPC_RESOURCES_SUBSCRIBE, lp_member(c->params, LP_SPAN("uri")));
}

void lp_bridge_restore(struct lp_bridge *b)
{
    for (struct lp_list *node = b->memos.next; node != &b->memos; node = node->next) {
        struct lp_bridge_memo *memo = LP_CONTAINER(node, struct lp_bridge_memo, node);
        struct lp_span name = lp_span_str(lp_rpc_method_name(memo->method));
        struct lp_bridge_call *c = new_call(b, lp_span(NULL, 0), name, memo->params);
        if (!c)
            return;
        c->method = memo->method;
        c->is_ours = true;
    }
}

/* --- the end of a call --- */

static void on_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct lp_bridge_call *c = ctx;
    struct lp_bridge *b = c->bridge;
    (void)call;
    b->fruitless = 0;
    if (c->is_ours && error.len)
        lp_bridge_say(b, "%.*s could not be set again: %.*s", (int)c->name.len, c->name.ptr,
            (int)error.len, error.ptr);
    if (result.len)
        note_success(b, c);
    if (!c->is_ours && result.len)
        lp_bridge_send_result(b, c->id, result);
    else if (!c->is_ours)
        lp_bridge_send_error(b, c->id, error);
    lp_bridge_call_free(c);
}

static void on_progress(void *ctx, lp_id call, struct lp_span message)
{
    struct lp_bridge_call *c = ctx;
    (void)call;
    lp_lines_send(&c->bridge->lines, message);
}

static bool may_ask_again(const struct lp_bridge_call *c, const struct lp_client_failure *why)
{
    bool is_passing = why->kind == LP_FAILURE_LOST || why->kind == LP_FAILURE_NETWORK;
    bool is_safe = why->cannot_have_run || lp_rpc_is_repeatable(c->method);
    bool is_enough = why->kind == LP_FAILURE_LOST ? c->has_lost : c->tries >= LP_BRIDGE_TRIES_MAX;
    return is_passing && is_safe && !c->is_ours && !is_enough;
}

static void refuse(struct lp_bridge_call *c, const struct lp_client_failure *why)
{
    struct lp_bridge *b = c->bridge;
    bool may_have_run = !why->cannot_have_run && !lp_rpc_is_repeatable(c->method) &&
        (why->kind == LP_FAILURE_LOST || why->kind == LP_FAILURE_NETWORK);
    if (!c->is_ours)
        lp_bridge_refuse_failed(b, c->id, why,
            may_have_run ? "; the request may have run, so it was not sent again" : "");
    lp_bridge_call_free(c);
}

static void on_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct lp_bridge_call *c = ctx;
    struct lp_bridge *b = c->bridge;
    (void)call;
    if (!may_ask_again(c, why)) {
        refuse(c, why);
        return;
    }
    c->call = 0;
    if (why->kind == LP_FAILURE_NETWORK) {
        lp_bridge_retry_later(b, c->tries);
        return;
    }
    c->has_lost = true;
    b->must_send = true;
    lp_bridge_reopen(b);
}

static const struct lp_call_ops CALL_OPS = {
    .answer = on_answer,
    .progress = on_progress,
    .failed = on_failed,
};

/* --- sending --- */

static void refuse_unsent(struct lp_bridge_call *c, int error)
{
    struct lp_client_failure why = {.kind = LP_FAILURE_LIMIT,
        .error = error,
        .cannot_have_run = true,
        .sentence = lp_span_str(
            error == LP_ESYNTAX ? "params is no JSON object" : lp_error_sentence(error))};
    refuse(c, &why);
}

static void send_call(struct lp_bridge_call *c)
{
    struct lp_bridge *b = c->bridge;
    if (b->era == LP_ERA_MODERN && lp_bridge_translate(c))
        return;
    struct lp_call_args args = {.method = c->name,
        .params = c->params,
        .timeout_ms = b->args.timeout_ms ? b->args.timeout_ms : UINT32_MAX,
        .ops = &CALL_OPS,
        .ctx = c};
    c->tries++;
    int err = lp_client_request(b->client, &args, &c->call);
    if (err)
        refuse_unsent(c, err);
}

bool lp_bridge_is_busy(const struct lp_bridge *b)
{
    for (struct lp_list *node = b->calls.next; node != &b->calls; node = node->next)
        if (!LP_CONTAINER(node, struct lp_bridge_call, node)->is_ours)
            return true;
    return false;
}

void lp_bridge_send_waiting(struct lp_bridge *b)
{
    struct lp_list *node = b->calls.next;
    while (node != &b->calls) {
        struct lp_bridge_call *c = LP_CONTAINER(node, struct lp_bridge_call, node);
        node = node->next;
        if (!c->call)
            send_call(c);
    }
}

void lp_bridge_refuse_waiting(struct lp_bridge *b, const struct lp_client_failure *why)
{
    struct lp_list *node = b->calls.next;
    while (node != &b->calls) {
        struct lp_bridge_call *c = LP_CONTAINER(node, struct lp_bridge_call, node);
        node = node->next;
        if (!c->call)
            refuse(c, why);
    }
}

/* --- from the host --- */

void lp_bridge_call(struct lp_bridge *b, const struct lp_envelope *env, struct lp_span line)
{
    char name[METHOD_MAX];
    size_t len;
    struct lp_bridge_call *c = NULL;
    bool is_full = b->call_count >= LP_BRIDGE_CALLS_MAX;
    if (!is_full && !lp_json_unescape(env->method_token, name, sizeof name, &len))
        c = new_call(b, env->id, lp_span(name, len), lp_member(line, LP_SPAN("params")));
    if (!c) {
        lp_bridge_refuse(b, env->id, -32603,
            is_full ? LP_SPAN("too many requests at once: at most 1,024 wait for their answers")
                    : LP_SPAN("the request cannot be held"),
            lp_span(NULL, 0));
        return;
    }
    c->method = env->method;
    if (b->state == LP_BRIDGE_OPEN)
        send_call(c);
    else if (b->state == LP_BRIDGE_LOST)
        lp_bridge_reopen(b);
}

void lp_bridge_cancel(struct lp_bridge *b, struct lp_span id, struct lp_span reason)
{
    for (struct lp_list *node = b->calls.next; node != &b->calls; node = node->next) {
        struct lp_bridge_call *c = LP_CONTAINER(node, struct lp_bridge_call, node);
        if (c->is_ours || !lp_span_eq(c->id, id))
            continue;
        if (c->call)
            lp_call_cancel(b->client, c->call, reason);
        lp_bridge_call_free(c);
        return;
    }
}
