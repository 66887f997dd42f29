/* Calls in progress (serve/job.h): what a handler reads, sends, waits for, asks, and how it ends.
 *
 * A call belongs to its channel and dies with it. A question to the client carries the call's id
 * and a random number in its JSON-RPC id, so that an answer finds its call, and an old or invented
 * one finds nothing (cases MSG-01, MSG-02). */
#include "serve/job.h"

#include "serve/hex.h"
#include "serve/inputs.h"
#include "serve/server_priv.h"
#include "serve/shared.h"
#include "serve/uri_template.h"
#include "wire/member.h"

enum { INVALID_REQUEST = -32600, INVALID_PARAMS = -32602, INTERNAL = -32603 };

static struct lp_job *get_job(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->calls, id);
}

struct lp_job *lp_server_job(const struct lp_server *server, lp_id id)
{
    return get_job(server, id);
}

struct lp_server *lp_job_server(const struct lp_job *call)
{
    return call->server;
}

lp_id lp_job_id(const struct lp_job *call)
{
    return call->id;
}

/* --- begin and end --- */

static void *context_of(const struct lp_job *call)
{
    return call->handler->ctx ? call->handler->ctx : call->server->offer->ctx;
}

static bool take_uri(struct lp_job *call, struct lp_span token)
{
    char *room;
    size_t len;
    if (lp_buf_reserve(&call->uri, token.len, &room) ||
        lp_json_unescape(token, room, token.len, &len))
        return false;
    lp_buf_commit(&call->uri, len);
    return true;
}

/* What a modern request brings of earlier questions is looked at first. */
static void run(struct lp_job *call)
{
    const char *why = call->is_modern ? lp_inputs_begin(call) : NULL;
    if (why) {
        lp_job_error(call, INVALID_PARAMS, why);
        return;
    }
    call->has_run = true;
    call->handler->run(context_of(call), call);
}

void lp_job_begin(struct lp_server *server, const struct lp_message *m,
    const struct lp_handler *handler, const struct lp_resource *resource)
{
    lp_id id;
    struct lp_channel *ch = lp_channel_get(server, m->channel);
    struct lp_job *call = lp_slab_new(&server->calls, &id);
    if (!call) {
        lp_rpc_error(server, m->channel, m->env->id, INTERNAL, "too many calls are in progress");
        return;
    }
    *call = (struct lp_job){.id = id, .server = server, .channel = m->channel};
    call->session = m->session ? m->session->id : 0;
    call->handler = handler;
    call->resource = resource;
    call->message_id = m->env->id;
    call->params = lp_member(m->text, LP_SPAN("params"));
    call->token = lp_modern_meta(call->params, "progressToken");
    call->is_modern = m->is_modern;
    call->principal = m->principal;
    call->timer = (struct lp_timer){.kind = LP_TIMER_SERVER_CALL, .owner = id};
    lp_buf_init(&call->uri, LP_SERVER_URI_MAX);
    lp_list_init(&call->of_channel);
    lp_list_init(&call->ready);
    lp_list_push_back(&ch->calls, &call->of_channel);
    ch->open++;
    if (resource && !take_uri(call, m->env->uri))
        lp_job_error(call, INTERNAL, "out of memory");
    else
        run(call);
}

void lp_job_end(struct lp_server *server, struct lp_job *call)
{
    if (call->has_run && call->handler->over)
        call->handler->over(context_of(call), call);
    lp_heap_cancel(&server->timers, &call->timer);
    lp_list_remove(&call->of_channel);
    lp_list_remove(&call->ready);
    if (call->is_storing)
        lp_channel_get(server, call->channel)->brief--;
    lp_buf_release(&call->uri);
    lp_inputs_free(call->inputs);
    lp_slab_free(&server->calls, call->id);
}

/* Its answer is given, or none is due. */
static void close_call(struct lp_job *call)
{
    struct lp_server *server = call->server;
    lp_id channel = call->channel;
    lp_job_end(server, call);
    lp_channel_release(server, channel);
}

void lp_job_result(struct lp_job *call, struct lp_span result)
{
    lp_rpc_result(call->server, call->channel, call->message_id, result);
    close_call(call);
}

void lp_job_error(struct lp_job *call, int code, const char *message)
{
    lp_rpc_error(call->server, call->channel, call->message_id, code, message);
    close_call(call);
}

void lp_job_lacks(struct lp_job *call, const char *capabilities)
{
    if (call->is_modern)
        lp_modern_lacks(call->server, call->channel, call->message_id, capabilities);
    else
        lp_rpc_error(call->server, call->channel, call->message_id, INVALID_REQUEST,
            "the client lacks a capability that this needs");
    close_call(call);
}

void lp_job_finish(struct lp_job *call, struct lp_out *out)
{
    if (out->failed)
        lp_job_error(call, INTERNAL, "the result is too large, or there is no memory for it");
    else
        lp_job_result(call, lp_out_span(out));
    lp_out_release(out);
}

static void finish_text(struct lp_job *call, struct lp_span text, const char *tail)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    lp_out_quote(&out, text);
    lp_out_str(&out, tail);
    lp_job_finish(call, &out);
}

void lp_job_text(struct lp_job *call, struct lp_span text)
{
    finish_text(call, text, "}]}");
}

void lp_job_tool_error(struct lp_job *call, const char *text)
{
    finish_text(call, lp_span_str(text), "}],\"isError\":true}");
}

void lp_job_end_all(struct lp_server *server)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_job *call; (call = lp_slab_next(&server->calls, &cursor, &id));)
        lp_job_error(call, INTERNAL, "the server is stopping");
}

/* --- what was asked --- */

struct lp_span lp_job_params(const struct lp_job *call)
{
    return call->params;
}

struct lp_span lp_job_arguments(const struct lp_job *call)
{
    return lp_member(call->params, LP_SPAN("arguments"));
}

struct lp_span lp_job_uri(const struct lp_job *call)
{
    return lp_buf_span(&call->uri);
}

struct lp_span lp_job_variable(const struct lp_job *call, const char *name)
{
    LP_ASSERT(call->resource);
    return lp_uri_template_value(
        lp_span_str(call->resource->uri), lp_buf_span(&call->uri), lp_span_str(name));
}

void lp_job_set_state(struct lp_job *call, void *state)
{
    call->state = state;
}

void *lp_job_state(const struct lp_job *call)
{
    return call->state;
}

/* --- what it sends --- */

static void send_scratch(struct lp_server *server, struct lp_channel *ch)
{
    if (!server->scratch.failed)
        (void)lp_channel_event(server, ch, lp_out_span(&server->scratch));
}

void lp_job_progress(struct lp_job *call, uint64_t progress, uint64_t total)
{
    struct lp_out *out = &call->server->scratch;
    if (!call->token.len)
        return;
    lp_out_clear(out);
    lp_out_str(out,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
        "\"progressToken\":");
    lp_out_put(out, call->token);
    lp_out_printf(out, ",\"progress\":%llu", (unsigned long long)progress);
    if (total)
        lp_out_printf(out, ",\"total\":%llu", (unsigned long long)total);
    lp_out_str(out, "}}");
    send_scratch(call->server, lp_channel_get(call->server, call->channel));
}

void lp_job_log(struct lp_job *call, enum lp_level level, const char *logger, struct lp_span data)
{
    const struct lp_session *session = lp_session_get(call->server, call->session);
    bool is_quiet =
        call->is_modern ? level < lp_modern_level(call->params) : session && level < session->level;
    if (is_quiet)
        return;
    lp_tell_write_log(call->server, level, logger, data);
    send_scratch(call->server, lp_channel_get(call->server, call->channel));
}

bool lp_job_log_session(
    struct lp_job *call, enum lp_level level, const char *logger, struct lp_span data)
{
    struct lp_server *server = call->server;
    const struct lp_session *session = lp_session_get(server, call->session);
    if (!session || level < session->level)
        return false;
    lp_tell_write_log(server, level, logger, data);
    return !server->scratch.failed &&
        lp_channel_tell(server, session, lp_out_span(&server->scratch));
}

void lp_job_poll(struct lp_job *call)
{
    struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    lp_channel_begin_sse(call->server, ch);
    lp_channel_poll(call->server, ch);
}

/* --- waiting and asking --- */

void lp_job_wake(struct lp_job *call, const struct lp_wake *wake)
{
    call->handler->wake(context_of(call), call, wake);
}

bool lp_job_may_wait(const struct lp_job *call)
{
    return call->handler->wake && !call->is_asking && !call->is_storing;
}

int lp_job_wait(struct lp_job *call, uint64_t us)
{
    struct lp_server *server = call->server;
    LP_ASSERT(lp_job_may_wait(call));
    return lp_heap_set(&server->timers, &call->timer, server->now_us + us);
}

static bool client_can(const struct lp_session *session, const char *method)
{
    if (strcmp(method, "elicitation/create") == 0)
        return session->can_elicit;
    if (strcmp(method, "sampling/createMessage") == 0)
        return session->can_sample;
    return strcmp(method, "roots/list") == 0 && session->can_roots;
}

/* Sends the question where it can go: on the call's own stream, else on the session's GET stream.
 */
static int send_question(struct lp_job *call, const struct lp_session *session)
{
    struct lp_server *server = call->server;
    struct lp_span json = lp_out_span(&server->scratch);
    struct lp_channel *ch = lp_channel_get(server, call->channel);
    if (server->scratch.failed)
        return LP_ENOMEM;
    lp_channel_begin_sse(server, ch);
    if (!ch->is_sse && !lp_channel_can_tell(server, session))
        return LP_ENOT_FOUND;
    bool is_sent =
        ch->is_sse ? lp_channel_event(server, ch, json) : lp_channel_tell(server, session, json);
    return is_sent ? LP_OK : LP_ENOMEM;
}

static void write_question(struct lp_job *call, const char *method, struct lp_span params)
{
    struct lp_out *out = &call->server->scratch;
    lp_out_clear(out);
    lp_out_str(out, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    if (call->server->shared) {
        lp_out_put(out, lp_shared_replica(call->server));
        lp_out_str(out, "-");
    }
    lp_out_printf(out, "%016llx-%016llx\",\"method\":\"%s\"", (unsigned long long)call->id,
        (unsigned long long)call->nonce, method);
    if (params.len) {
        lp_out_str(out, ",\"params\":");
        lp_out_put(out, params);
    }
    lp_out_str(out, "}");
}

int lp_job_may_ask_session(const struct lp_job *call, const char *method)
{
    const struct lp_session *session = lp_session_get(call->server, call->session);
    return session && client_can(session, method) ? LP_OK : LP_EUNSUPPORTED;
}

int lp_job_ask_session(struct lp_job *call, const struct lp_question *q, uint64_t timeout_us)
{
    struct lp_server *server = call->server;
    const struct lp_session *session = lp_session_get(server, call->session);
    if (lp_job_may_ask_session(call, q->method))
        return LP_EUNSUPPORTED;
    int err = lp_heap_set(&server->timers, &call->timer, server->now_us + timeout_us);
    if (err)
        return err;
    lp_entropy_bytes(&server->entropy, (unsigned char *)&call->nonce, sizeof call->nonce);
    write_question(call, q->method, q->params);
    err = send_question(call, session);
    call->is_asking = !err;
    if (err)
        lp_heap_cancel(&server->timers, &call->timer);
    return err;
}

/* The call that has asked with that id, a raw token; NULL: none has. */
static struct lp_job *find_asking(const struct lp_server *server, struct lp_span token)
{
    uint64_t id, nonce;
    struct lp_span rest = token.len > 2 ? lp_span(token.ptr + 1, token.len - 2) : LP_SPAN("");
    if (server->shared && !lp_span_eq(lp_span_split(rest, '-', &rest), lp_shared_replica(server)))
        return NULL;
    struct lp_span first = lp_span_split(rest, '-', &rest);
    bool is_ours = token.ptr[0] == '"' && lp_hex_to_u64(first, &id) && lp_hex_to_u64(rest, &nonce);
    struct lp_job *call = is_ours ? get_job(server, id) : NULL;
    return call && call->is_asking && call->nonce == nonce ? call : NULL;
}

void lp_job_reply(struct lp_server *server, const struct lp_message *m)
{
    struct lp_job *call = find_asking(server, m->env->id);
    if (!call || !m->session || call->session != m->session->id)
        return;
    struct lp_wake wake = {.kind = LP_WAKE_REPLY,
        .result = lp_member(m->text, LP_SPAN("result")),
        .error = lp_member(m->text, LP_SPAN("error"))};
    call->is_asking = false;
    lp_heap_cancel(&server->timers, &call->timer);
    if (!lp_inputs_reply(call, &wake))
        lp_job_wake(call, &wake);
}

void lp_job_timer(struct lp_server *server, lp_id id)
{
    struct lp_job *call = get_job(server, id);
    LP_ASSERT(call); /* its end has cancelled the timer */
    struct lp_wake wake = {.kind = call->is_asking ? LP_WAKE_TIMEOUT : LP_WAKE_TIME};
    call->is_asking = false;
    if (!lp_inputs_reply(call, &wake))
        lp_job_wake(call, &wake);
}

/* --- cancel --- */

static struct lp_job *find_call(struct lp_channel *ch, struct lp_span message_id)
{
    for (struct lp_list *at = ch->calls.next; at != &ch->calls; at = at->next) {
        struct lp_job *call = LP_CONTAINER(at, struct lp_job, of_channel);
        if (lp_span_eq(call->message_id, message_id))
            return call;
    }
    return NULL;
}

/* The call that the cancellation means; NULL: none that is in progress here. */
static struct lp_job *find_cancelled(const struct lp_message *m)
{
    struct lp_job *call = NULL;
    struct lp_span params = lp_member(m->text, LP_SPAN("params"));
    struct lp_span wanted = lp_member(params, LP_SPAN("requestId"));
    const struct lp_list *end = m->session ? &m->session->channels : NULL;
    for (struct lp_list *at = end ? end->next : NULL; at != end && !call; at = at->next)
        call = find_call(LP_CONTAINER(at, struct lp_channel, of_session), wanted);
    return call;
}

bool lp_job_is_here(const struct lp_message *m)
{
    return find_cancelled(m) != NULL;
}

void lp_job_cancel(const struct lp_message *m)
{
    struct lp_job *call = find_cancelled(m);
    if (!call)
        return;
    const struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    if (ch->is_sse || ch->is_old_sse)
        close_call(call); /* a cancelled call gets no answer */
    else
        lp_job_error(call, -32800, "Request cancelled"); /* but HTTP wants one */
}
