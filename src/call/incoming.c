/* One JSON-RPC message from the server: an answer to a call, a question, or a notification (wire
 * document 2.1). What the server asks is numbered anew for the owner, so that an id of an earlier
 * session can never be answered in a later one. */
#include <stdio.h>
#include <stdlib.h>

#include "call/client_priv.h"

/* --- words for the network log --- */

struct lp_span lp_incoming_describe(struct lp_span message, char *room, size_t room_len)
{
    struct lp_envelope env;
    int n;
    if (!message.len || lp_envelope_scan(message, &env))
        return LP_SPAN("");
    struct lp_span method = env.method_token;
    struct lp_span id = env.id;
    if (method.len > 64)
        method.len = 64;
    if (id.len > 40)
        id.len = 40;
    if (env.is_batch)
        n = snprintf(room, room_len, "a batch");
    else if (env.method != LP_RPC_NONE && env.has_id)
        n = snprintf(room, room_len, "request %.*s, id %.*s", (int)method.len, method.ptr,
            (int)id.len, id.ptr);
    else if (env.method != LP_RPC_NONE)
        n = snprintf(room, room_len, "notification %.*s", (int)method.len, method.ptr);
    else if (env.has_error)
        n = snprintf(room, room_len, "error %.*s, id %.*s", (int)env.error_code.len,
            env.error_code.len ? env.error_code.ptr : "", (int)id.len, id.len ? id.ptr : "");
    else if (env.has_result)
        n = snprintf(room, room_len, "result, id %.*s", (int)id.len, id.len ? id.ptr : "");
    else
        return LP_SPAN("");
    return lp_span(room, n > 0 && (size_t)n < room_len ? (size_t)n : 0);
}

/* --- what the server asks --- */

struct lp_asked *lp_asked_new(
    struct lp_client *client, struct lp_span token, lp_id call, bool is_input)
{
    lp_id id;
    struct lp_asked *asked = lp_slab_new(&client->asked, &id);
    if (!asked)
        return NULL;
    *asked = (struct lp_asked){.id = id, .call = call, .is_input = is_input};
    asked->token = malloc(token.len + 1);
    if (!asked->token) {
        lp_slab_free(&client->asked, id);
        return NULL;
    }
    memcpy(asked->token, token.ptr, token.len);
    asked->token_len = token.len;
    struct lp_call *owner = lp_call_get(client, call);
    if (owner) {
        owner->asked_count++;
        lp_call_touch(owner);
    }
    return asked;
}

static void free_asked(struct lp_client *client, struct lp_asked *asked)
{
    struct lp_call *call = lp_call_get(client, asked->call);
    lp_id id = asked->id;
    free(asked->token);
    lp_slab_free(&client->asked, id);
    if (call && call->asked_count) {
        call->asked_count--;
        lp_call_touch(call);
    }
}

void lp_asked_drop(struct lp_client *client, lp_id call)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_asked *asked; (asked = lp_slab_next(&client->asked, &cursor, &id));) {
        if (call && asked->call != call)
            continue;
        asked->call = 0;
        free_asked(client, asked);
        client->ops->asked_cancelled(client->ctx, id);
    }
}

int lp_client_say_message(struct lp_client *client, struct lp_span method, struct lp_span message,
    struct lp_exchange **ret)
{
    struct lp_exchange_args args = {.kind = LP_EXCHANGE_SAY, .method = method, .body = message};
    return lp_exchange_start(client, &args, ret);
}

/* {"jsonrpc":"2.0","id":<token>,<member>} */
static void say_answer(
    struct lp_client *client, struct lp_span token, const char *member, struct lp_span value)
{
    struct lp_exchange *x;
    struct lp_buf text;
    lp_buf_init(&text, LP_FETCH_BODY_MAX);
    int err = LP_JOIN(&text, LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":"), token, LP_SPAN(",\""),
        lp_span_str(member), LP_SPAN("\":"), value, LP_SPAN("}"));
    if (!err)
        err = lp_client_say_message(client, LP_SPAN(""), lp_buf_span(&text), &x);
    lp_buf_release(&text);
    if (err)
        lp_client_note(
            client, "the server's request could not be answered: %s", lp_error_sentence(err));
}

void lp_client_answer(struct lp_client *client, lp_id id, struct lp_span result)
{
    struct lp_asked *asked = lp_slab_get(&client->asked, id);
    if (!asked)
        return;
    bool is_input = asked->is_input;
    lp_id call = asked->call;
    if (is_input)
        lp_inputs_answered(client, asked, result);
    else
        say_answer(client, lp_span(asked->token, asked->token_len), "result", result);
    asked = lp_slab_get(&client->asked, id); /* the call may have failed just now */
    if (asked)
        free_asked(client, asked);
    if (is_input)
        lp_inputs_settle(client, call);
}

/* There is no place for an error of an input (wire document 7.9): the call ends. */
static void fail_input(struct lp_client *client, struct lp_call *call, struct lp_span error)
{
    char words[512];
    size_t len = 0;
    struct lp_span message = lp_member(error, LP_SPAN("message"));
    if (!lp_span_starts(message, LP_SPAN("\"")) ||
        lp_json_unescape(message, words, sizeof words, &len))
        len = 0;
    struct lp_client_failure why = {.kind = LP_FAILURE_CANCELLED,
        .error = LP_EUNSUPPORTED,
        .reason = LP_REASON_client_left,
        .sentence = lp_client_say(client, "%.*s: the server's question was not answered: %.*s",
            (int)call->method.len, call->method.ptr, (int)len, words)};
    lp_call_fail(call, &why);
}

void lp_client_answer_raw_error(struct lp_client *client, lp_id id, struct lp_span error)
{
    struct lp_asked *asked = lp_slab_get(&client->asked, id);
    if (!asked)
        return;
    struct lp_call *call = lp_call_get(client, asked->call);
    if (asked->is_input && call) {
        fail_input(client, call, error);
        return;
    }
    say_answer(client, lp_span(asked->token, asked->token_len), "error", error);
    free_asked(client, asked);
}

void lp_client_answer_error(struct lp_client *client, lp_id id, int code, struct lp_span message)
{
    struct lp_buf error;
    lp_buf_init(&error, LP_FETCH_BODY_MAX);
    int err = lp_buf_printf(&error, "{\"code\":%d,\"message\":", code);
    if (!err)
        err = lp_json_quote(&error, message);
    if (!err)
        err = lp_buf_append(&error, LP_SPAN("}"));
    if (!err)
        lp_client_answer_raw_error(client, id, lp_buf_span(&error));
    lp_buf_release(&error);
}

/* --- one message --- */

static void take_request(struct lp_client *client, struct lp_exchange *x,
    const struct lp_envelope *env, struct lp_span message)
{
    char method[128];
    size_t len = 0;
    if (lp_json_unescape(env->method_token, method, sizeof method, &len))
        len = 0;
    if (env->method == LP_RPC_PING) {
        say_answer(client, env->id, "result", LP_SPAN("{}"));
        return;
    }
    struct lp_asked *asked = lp_asked_new(client, env->id, x->call, false);
    if (!asked) {
        say_answer(client, env->id, "error",
            LP_SPAN("{\"code\":-32603,\"message\":\"too many requests at once\"}"));
        return;
    }
    client->ops->asked(
        client->ctx, asked->id, lp_span(method, len), lp_member(message, LP_SPAN("params")));
}

static void take_cancelled(struct lp_client *client, struct lp_span params)
{
    struct lp_span token = lp_member(params, LP_SPAN("requestId"));
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_asked *asked; (asked = lp_slab_next(&client->asked, &cursor, &id));) {
        if (asked->is_input || !lp_span_eq(lp_span(asked->token, asked->token_len), token))
            continue;
        free_asked(client, asked);
        client->ops->asked_cancelled(client->ctx, id);
        return;
    }
}

static struct lp_call *call_of_token(struct lp_client *client, struct lp_span token)
{
    for (struct lp_list *node = client->calls_open.next; node != &client->calls_open;
         node = node->next) {
        struct lp_call *call = LP_CONTAINER(node, struct lp_call, node);
        if (token.len && lp_span_eq(call->token, token))
            return call;
    }
    return NULL;
}

static void take_notification(
    struct lp_client *client, const struct lp_envelope *env, struct lp_span message)
{
    struct lp_span params = lp_member(message, LP_SPAN("params"));
    char method[128];
    size_t len = 0;
    if (lp_json_unescape(env->method_token, method, sizeof method, &len))
        return;
    struct lp_span name = lp_span(method, len);
    if (env->method == LP_RPC_CANCELLED)
        take_cancelled(client, params);
    if (lp_span_eq(name, LP_SPAN("notifications/progress"))) {
        struct lp_call *call = call_of_token(client, lp_member(params, LP_SPAN("progressToken")));
        if (call)
            lp_call_touch(call);
        if (call && call->ops->progress) {
            call->ops->progress(call->ctx, call->id, message);
            return;
        }
    }
    client->ops->notification(client->ctx, name, message);
}

/* The call that an answer belongs to. An error whose id could not be read by the server is of the
 * request that this exchange carried (cases STA-12). */
static struct lp_call *call_of_answer(
    struct lp_client *client, const struct lp_exchange *x, const struct lp_envelope *env)
{
    uint64_t number;
    if (env->has_id && lp_span_to_u64(env->id, &number))
        return lp_call_by_number(client, number);
    bool is_own = env->has_error && x->kind == LP_EXCHANGE_CALL && !x->is_old_sse;
    return is_own ? lp_call_get(client, x->call) : NULL;
}

static bool take_one(struct lp_client *client, struct lp_exchange *x, struct lp_span message)
{
    struct lp_envelope env;
    if (lp_envelope_scan(message, &env) || !env.is_object)
        return false;
    if (env.method != LP_RPC_NONE && !lp_span_starts(env.method_token, LP_SPAN("\"")))
        return false;
    if (env.method != LP_RPC_NONE && env.has_id) {
        take_request(client, x, &env, message);
        return true;
    }
    if (env.method != LP_RPC_NONE) {
        take_notification(client, &env, message);
        return true;
    }
    if (env.has_result == env.has_error)
        return false;
    struct lp_call *call = call_of_answer(client, x, &env);
    if (call)
        lp_call_answer(call, message);
    else
        lp_client_note(client, "an answer came that nobody waits for");
    return true;
}

struct batch {
    struct lp_client *client;
    struct lp_exchange *x;
    bool is_fine;
};

static void take_element(void *ctx, struct lp_span element)
{
    struct batch *b = ctx;
    if (!b->x->is_dead)
        b->is_fine &= take_one(b->client, b->x, element);
}

bool lp_incoming(struct lp_client *client, struct lp_exchange *x, struct lp_span message)
{
    struct lp_envelope env;
    if (lp_envelope_scan(message, &env))
        return false;
    if (!env.is_batch)
        return take_one(client, x, message);
    struct batch b = {client, x, !env.batch_is_empty};
    lp_elements(message, take_element, &b);
    return b.is_fine;
}
