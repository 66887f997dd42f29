/* Answers that Limpet makes itself: status and body by the reason, the request's id echoed byte for
 * byte (requirements [G6]; cases STA-11, STA-12). */
#include <stdio.h>

#include "base/error.h"
#include "gate/engine_priv.h"
#include "mcp/cors.h"
#include "mcp/replay.h"
#include "mcp/reply.h"
#include "wire/http1.h"

enum { ANSWER_MAX = 70000 };

/* An answer with a body of its own, whole at once. The other fields are in e->out_head already. */
static void send_whole(struct lp_engine *e, struct lp_exchange *x, int status, struct lp_span type,
    struct lp_span body)
{
    struct lp_head *head = e->out_head;
    head->is_request = false;
    head->method = x->request.method;
    head->status = (uint16_t)status;
    head->reason = lp_http1_phrase(head->status);
    head->body = body.len ? LP_BODY_LENGTH : LP_BODY_NONE;
    head->body_bytes = body.len;
    if (body.len)
        (void)!lp_head_add(head, LP_FIELD_CONTENT_TYPE, type);
    lp_page_add_fields(x, NULL, head);
    x->record.status = status;
    x->record.bytes_out += body.len;
    if (!x->record.first_byte_us)
        x->record.first_byte_us = e->mono_us - x->begun_us;
    lp_link_send_head(&e->links, x->down, head);
    lp_link_send_body(&e->links, x->down, body);
    lp_link_send_end(&e->links, x->down);
    x->down_open = false;
}

static struct lp_span methods_of(const struct lp_exchange *x)
{
    if (x->id_is_sse)
        return LP_SPAN("POST");
    if (x->door == LP_DOOR_METADATA)
        return LP_SPAN("GET, OPTIONS");
    return x->door == LP_DOOR_SSE ? LP_SPAN("GET") : LP_SPAN("GET, POST, DELETE");
}

static struct lp_span challenge_of(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_span learnt = lp_span(x->server->challenge, x->server->challenge_len);
    return learnt.len ? lp_metadata_challenge(e, x, learnt) : LP_SPAN("Bearer");
}

static void add_fields(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    int status = lp_reason_info(reason)->http_status;
    e->out_head->field_count = 0;
    /* A cache in between may keep a 404 or 405 that says nothing else (cases HDR-13). */
    (void)!lp_head_add(e->out_head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-store"));
    if (status == 503)
        (void)!lp_head_add(e->out_head, LP_FIELD_RETRY_AFTER, LP_SPAN("1"));
    if (status == 405)
        (void)!lp_head_add(e->out_head, LP_FIELD_ALLOW, methods_of(x));
    /* The server's own challenge may be none, or too long to keep; a bare one makes a client ask as
     * well. */
    if (reason == LP_REASON_challenged)
        (void)!lp_head_add(e->out_head, LP_FIELD_WWW_AUTHENTICATE, challenge_of(e, x));
}

static bool wants_plain(const struct lp_exchange *x, enum lp_reason reason)
{
    if (!x->server || lp_reason_info(reason)->jsonrpc_code != -32001)
        return false;
    return lp_reply_wants_plain(lp_kept_value(&x->request, LP_FIELD_USER_AGENT),
        x->server->conf->plain_404_agents, x->server->conf->plain_404_agent_count);
}

/* The id of a response is the replica's: a client could take it for one of its own requests. */
static struct lp_span id_to_echo(const struct lp_envelope *env)
{
    bool is_response = env->method == LP_RPC_NONE && (env->has_result || env->has_error);
    return is_response || env->id.len > LP_ID_ECHO_MAX ? lp_span(NULL, 0) : env->id;
}

static struct lp_span version_to_echo(const struct lp_envelope *env)
{
    enum { ECHO_MAX = 1000 };
    bool is_sane = env->meta_version.len && env->meta_version.len <= ECHO_MAX;
    return is_sane ? env->meta_version : LP_SPAN("null");
}

static int write_body(
    struct lp_buf *body, const struct lp_exchange *x, enum lp_reason reason, const char *detail)
{
    struct lp_reply reply = {.reason = reason, .id = id_to_echo(&x->env), .detail = detail};
    struct lp_buf data;
    char limit[80];
    if (reason == LP_REASON_body_too_large && x->server) {
        (void)snprintf(limit, sizeof limit, "the body is over the limit of %llu bytes (body_limit)",
            (unsigned long long)x->server->conf->body_max);
        reply.detail = limit;
    }
    lp_buf_init(&data, ANSWER_MAX);
    /* After a replica's answer it is the replica that knows sessions only, and the body is gone. */
    bool is_theirs = x->answer != NULL;
    struct lp_span asked =
        is_theirs ? LP_SPAN("\"" LP_VERSION_MODERN "\"") : version_to_echo(&x->env);
    if (reason == LP_REASON_unknown_version &&
        !lp_buf_printf(&data, "{\"supported\":%s,\"requested\":%.*s}",
            is_theirs ? LP_VERSIONS_LEGACY_JSON : LP_VERSIONS_JSON, (int)asked.len, asked.ptr))
        reply.data = lp_buf_span(&data);
    int err = lp_reply_write(body, &reply);
    lp_buf_release(&data);
    return err;
}

/* What has begun cannot be answered otherwise: it is broken off so that it does not look whole. */
static void break_off(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    if (x->down_open)
        lp_link_abort(&e->links, x->down);
    x->down_open = false;
    lp_exchange_over(e, x, reason);
}

void lp_answer(
    struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason, const char *detail)
{
    LP_ASSERT(lp_reason_info(reason)->http_status);
    lp_leg_close(e, x);
    if (!x->down_open || x->down_begun) {
        break_off(e, x, reason);
        return;
    }
    struct lp_buf body;
    lp_buf_init(&body, ANSWER_MAX);
    add_fields(e, x, reason);
    struct lp_span type = LP_SPAN("application/json");
    int err = LP_OK;
    if (wants_plain(x, reason)) {
        type = LP_SPAN("text/plain; charset=utf-8");
        err = lp_buf_append(&body, LP_SPAN("session not found\n"));
    } else {
        err = write_body(&body, x, reason, detail);
    }
    if (err)
        lp_buf_clear(&body);
    send_whole(e, x, lp_reason_info(reason)->http_status, type, lp_buf_span(&body));
    lp_buf_release(&body);
    lp_exchange_over(e, x, reason);
}

void lp_answer_replay(struct lp_engine *e, struct lp_exchange *x)
{
    char room[LP_REPLAY_TEXT_MAX];
    bool is_strict = e->conf->replay == LP_REPLAY_FLY_INSTANCE;
    x->record.replica = x->owner; /* who is to have it */
    e->out_head->field_count = 0;
    (void)!lp_head_add(
        e->out_head, LP_FIELD_FLY_REPLAY, lp_replay_value(x->owner, is_strict, room));
    send_whole(e, x, 204, LP_SPAN(""), LP_SPAN(""));
    lp_exchange_over(e, x, LP_REASON_replayed);
}

void lp_answer_preflight(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_buf names;
    lp_buf_init(&names, LP_CORS_LIST_MAX);
    e->out_head->field_count = 0;
    if (lp_page_add_preflight(x, &names, e->out_head)) {
        lp_answer(e, x, LP_REASON_out_of_memory, NULL);
    } else {
        send_whole(e, x, 204, LP_SPAN(""), LP_SPAN(""));
        lp_exchange_over(e, x, LP_REASON_answered_here);
    }
    lp_buf_release(&names);
}

void lp_answer_owner(struct lp_engine *e, struct lp_exchange *x)
{
    unsigned char nonce[LP_HOP_NONCE_BYTES];
    struct lp_hop_claim claim = lp_discovery_claim(x->request.path, e->conf->self);
    lp_entropy_bytes(&e->entropy, nonce, sizeof nonce);
    struct lp_span mark = lp_hop_sign(e->keyring, &claim, e->wall_ms, nonce, e->mark);
    e->out_head->field_count = 0;
    (void)!lp_head_add(e->out_head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-store"));
    (void)!lp_head_add(e->out_head, LP_FIELD_LIMPET_HOP, mark);
    send_whole(e, x, 204, LP_SPAN(""), LP_SPAN(""));
    lp_exchange_over(e, x, LP_REASON_answered_here);
}

void lp_answer_dead_call(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    struct lp_buf body;
    lp_buf_init(&body, ANSWER_MAX);
    e->out_head->field_count = 0;
    if (write_body(&body, x, reason, NULL)) { /* a 200 that says nothing would look like success */
        lp_buf_release(&body);
        lp_answer(e, x, reason, NULL);
        return;
    }
    send_whole(e, x, 200, LP_SPAN("application/json"), lp_buf_span(&body));
    lp_buf_release(&body);
    lp_exchange_over(e, x, reason);
}

void lp_answer_dead_event(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    struct lp_buf body, event;
    lp_buf_init(&body, ANSWER_MAX);
    lp_buf_init(&event, ANSWER_MAX);
    bool is_written = !write_body(&body, x, reason, NULL) &&
        !lp_sse_write(&event, LP_SPAN("message"), LP_SPAN(""), lp_buf_span(&body));
    if (is_written) {
        lp_link_send_body(&e->links, x->down, lp_buf_span(&event));
        lp_link_send_end(&e->links, x->down);
        x->down_open = false;
    }
    lp_buf_release(&body);
    lp_buf_release(&event);
    break_off(e, x, reason);
}
