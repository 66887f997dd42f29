/* input_required of 2026-07-28 (wire document 7.9): a call that wants something first. What it asks
 * for goes to the owner like any question of a server; with all answers the same request is sent
 * again under a new id. */
#include "call/client_priv.h"

struct asking {
    struct lp_call *call;
    lp_id ids[LP_CLIENT_ASKED_MAX];
    struct lp_span requests[LP_CLIENT_ASKED_MAX];
    uint32_t count;
    bool is_over;
};

static void take_input(void *ctx, struct lp_span key, struct lp_span request)
{
    struct asking *a = ctx;
    struct lp_asked *asked = a->count < LP_CLIENT_ASKED_MAX
        ? lp_asked_new(a->call->client, key, a->call->id, true)
        : NULL;
    a->is_over |= !asked;
    if (!asked)
        return;
    a->ids[a->count] = asked->id;
    a->requests[a->count++] = request;
}

static void fail(struct lp_call *call, const char *words)
{
    struct lp_client_failure why = {.kind = LP_FAILURE_LIMIT,
        .error = LP_ELIMIT,
        .reason = LP_REASON_over_capacity,
        .sentence = lp_client_say(
            call->client, "%.*s: %s", (int)call->method.len, call->method.ptr, words)};
    lp_call_fail(call, &why);
}

static void ask(struct lp_client *client, const struct asking *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        char method[128];
        size_t len = 0;
        struct lp_span token = lp_member(a->requests[i], LP_SPAN("method"));
        if (!lp_slab_get(&client->asked, a->ids[i]))
            continue; /* the call is over */
        if (!token.len || token.ptr[0] != '"' ||
            lp_json_unescape(token, method, sizeof method, &len))
            len = 0;
        client->ops->asked(client->ctx, a->ids[i], lp_span(method, len),
            lp_member(a->requests[i], LP_SPAN("params")));
    }
}

bool lp_inputs_take(struct lp_call *call, struct lp_span result)
{
    struct lp_client *client = call->client;
    struct asking a = {.call = call};
    lp_id id = call->id;
    struct lp_span state = lp_member(result, LP_SPAN("requestState"));
    struct lp_span wanted = lp_member(result, LP_SPAN("inputRequests"));
    if (!lp_span_eq(lp_member(result, LP_SPAN("resultType")), LP_SPAN("\"input_required\"")))
        return false;
    if (call->exchange)
        call->exchange->call = 0;
    call->exchange = NULL;
    lp_buf_clear(&call->input_answers);
    if (++call->rounds > LP_CLIENT_ROUNDS_MAX) {
        fail(call, "the server asks for inputs again and again; it was given up");
        return true;
    }
    call->request_state = LP_SPAN("");
    if (lp_arena_dup(&call->text, state, &call->request_state)) {
        fail(call, "out of memory");
        return true;
    }
    call->asked_count++; /* so that an answer at once does not send it too early */
    if (lp_span_starts(wanted, LP_SPAN("{")))
        lp_members(wanted, take_input, &a);
    if (a.is_over) {
        fail(call, "the server asks for more inputs at once than may be open");
        return true;
    }
    ask(client, &a);
    call = lp_call_get(client, id);
    if (!call)
        return true;
    call->asked_count--;
    lp_inputs_settle(client, id);
    return true;
}

void lp_inputs_answered(struct lp_client *client, struct lp_asked *asked, struct lp_span result)
{
    struct lp_call *call = lp_call_get(client, asked->call);
    if (!call)
        return;
    struct lp_buf *out = &call->input_answers;
    struct lp_span comma = out->len ? LP_SPAN(",") : LP_SPAN("");
    if (LP_JOIN(out, comma, lp_span(asked->token, asked->token_len), LP_SPAN(":"), result))
        fail(call, "the answers are too large");
}

static int write_inputs(struct lp_call *call)
{
    struct lp_buf text;
    struct lp_span answers = lp_buf_span(&call->input_answers);
    struct lp_span state = call->request_state;
    lp_buf_init(&text, LP_FETCH_BODY_MAX);
    int err = LP_OK;
    if (answers.len)
        err = LP_JOIN(&text, LP_SPAN("\"inputResponses\":{"), answers, LP_SPAN("}"));
    if (!err && state.len)
        err = LP_JOIN(
            &text, text.len ? LP_SPAN(",") : LP_SPAN(""), LP_SPAN("\"requestState\":"), state);
    if (!err)
        err = lp_arena_dup(&call->text, lp_buf_span(&text), &call->inputs);
    lp_buf_release(&text);
    return err;
}

void lp_inputs_settle(struct lp_client *client, lp_id id)
{
    struct lp_call *call = lp_call_get(client, id);
    if (!call || call->asked_count || call->exchange)
        return;
    call->number = ++client->number;
    int err = write_inputs(call);
    if (!err)
        err = lp_call_send(call);
    if (err) {
        struct lp_client_failure why = lp_client_limit(client, err);
        lp_call_fail(call, &why);
        return;
    }
    lp_call_touch(call);
}
