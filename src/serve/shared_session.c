/* A session in the store (serve/shared.h): made, looked up, changed, ended.
 *
 * Every request looks its session up, also one whose image is here: so what another replica has
 * changed or ended is seen at once. When the store cannot tell, the image serves (cases OWN-03). */
#include <stdio.h>

#include "base/error.h"
#include "serve/hex.h"
#include "serve/shared.h"
#include "serve/uris.h"

enum { CAN_ELICIT = 1, CAN_SAMPLE = 2, CAN_ROOTS = 4, INTERNAL = -32603 };
/* Items of USE's answer. */
enum { NUMBER, VERSION, CAPABILITIES, LEVEL, PRINCIPAL, LISTENER, REPLICAS, FIRST };
#define OFFLINE_NUMBER 0x80000000u /* channels that are numbered without the store */

#define AWAY "the store of the sessions cannot be reached just now; nothing was changed"

static bool is_done(const struct lp_store_result *result)
{
    return result->outcome == LP_OUTCOME_ANSWERED;
}

/* --- initialize --- */

static uint64_t capabilities(const struct lp_session *session)
{
    return (session->can_elicit ? CAN_ELICIT : 0u) | (session->can_sample ? CAN_SAMPLE : 0u) |
        (session->can_roots ? CAN_ROOTS : 0u);
}

static void fail_to_create(struct lp_server *server, lp_id request, struct lp_session *session)
{
    struct lp_request *r = lp_request_get(server, request);
    if (session)
        lp_session_end(server, session);
    if (!r)
        return;
    lp_out_clear(&r->out);
    lp_request_found(server, request, LP_CANNOT_TELL, NULL);
}

static void on_created(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_request *r = lp_request_get(server, wait->request);
    lp_session_release(server, wait->session);
    if (!is_done(result))
        fail_to_create(server, wait->request, lp_session_get(server, wait->session));
    else if (r)
        lp_respond_json(server, r, 200);
}

void lp_shared_create(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    char principal[2 * LP_HEX_DIGITS + 1];
    struct lp_step step;
    struct lp_wait wait = {.request = r->id, .session = session->id, .answered = on_created};
    r->state = LP_REQUEST_LOOKING;
    snprintf(principal, sizeof principal, "%016llx%016llx",
        (unsigned long long)session->principal.hi, (unsigned long long)session->principal.lo);
    lp_step_begin(&step, server, LP_SCRIPT_CREATE);
    lp_step_key(&step, session->key, "s");
    lp_step_idle(&step);
    lp_step_put(&step, lp_span_str(session->version));
    lp_step_number(&step, capabilities(session));
    lp_step_number(&step, session->level);
    lp_step_put(&step, lp_span_str(principal));
    step.is_write = step.is_idempotent = true;
    if (lp_step_send(&step, &wait))
        fail_to_create(server, r->id, session);
    else
        lp_session_hold(server, session);
}

/* --- look-up --- */

/* What this process remembers of it has to do. */
static void fall_back(struct lp_server *server, struct lp_request *r)
{
    struct lp_session *session = lp_session_find(server, r);
    lp_entropy_bytes(
        &server->entropy, (unsigned char *)&r->channel_number, sizeof r->channel_number);
    r->channel_number |= OFFLINE_NUMBER;
    lp_request_found(server, r->id, session ? LP_FOUND : LP_CANNOT_TELL, session);
}

static bool is_of(const struct lp_store_reply *reply, struct lp_key principal)
{
    struct lp_key key;
    struct lp_span text = lp_shared_text(reply, PRINCIPAL);
    return text.len == 2 * LP_HEX_DIGITS &&
        lp_hex_to_u64(lp_span(text.ptr, LP_HEX_DIGITS), &key.hi) &&
        lp_hex_to_u64(lp_span_from(text, LP_HEX_DIGITS), &key.lo) && lp_key_eq(key, principal);
}

/* The replicas that take part, as many as a message can go to, and the subscriptions. */
static int take_lists(
    const struct lp_server *server, struct lp_session *session, const struct lp_store_reply *reply)
{
    int err = LP_OK;
    uint64_t left = lp_shared_number(reply, REPLICAS);
    lp_buf_clear(&session->others);
    lp_buf_clear(&session->subscriptions);
    const struct lp_store_reply *at = lp_store_reply_item(reply, FIRST);
    for (; at && left && !err; at = at->next, left--)
        if (at->text.len == LP_REPLICA_LEN && lp_buf_room(&session->others) >= LP_REPLICA_LEN &&
            !lp_span_eq(at->text, lp_shared_replica(server)))
            err = lp_buf_append(&session->others, at->text);
    for (; at && !err; at = at->next)
        err = lp_uris_add(&session->subscriptions, at->text);
    return err;
}

/* Makes the image what the store says; false: no memory, or it is of no version of ours. */
static bool refresh(
    const struct lp_server *server, struct lp_session *session, const struct lp_store_reply *reply)
{
    uint64_t can = lp_shared_number(reply, CAPABILITIES);
    session->version = lp_rpc_version(lp_shared_text(reply, VERSION));
    session->level = (uint32_t)lp_shared_number(reply, LEVEL);
    session->can_elicit = can & CAN_ELICIT;
    session->can_sample = can & CAN_SAMPLE;
    session->can_roots = can & CAN_ROOTS;
    session->has_listener = lp_shared_text(reply, LISTENER).len > 0;
    return session->version && session->level < LP_LEVEL_count &&
        !take_lists(server, session, reply);
}

static void on_known(
    struct lp_server *server, struct lp_request *r, const struct lp_store_reply *reply)
{
    if (!is_of(reply, r->principal)) {
        lp_request_found(server, r->id, LP_NOT_FOUND, NULL);
        return;
    }
    struct lp_session *session = lp_session_find(server, r);
    if (!session)
        session = lp_session_adopt(server, r->key, r->principal);
    if (session && !refresh(server, session, reply)) {
        lp_session_end(server, session);
        session = NULL;
    }
    r->channel_number = (uint32_t)lp_shared_number(reply, NUMBER);
    lp_request_found(server, r->id, session ? LP_FOUND : LP_NO_ROOM, session);
}

static void on_used(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_request *r = lp_request_get(server, wait->request);
    if (!r)
        return;
    struct lp_session *image = lp_session_find(server, r);
    if (!is_done(result))
        fall_back(server, r);
    else if (!lp_shared_says_gone(result))
        on_known(server, r, result->reply);
    else {
        if (image)
            lp_session_end(server, image);
        lp_request_found(server, wait->request, LP_NOT_FOUND, NULL);
    }
}

void lp_shared_look_up(struct lp_server *server, struct lp_request *r)
{
    struct lp_step step;
    struct lp_wait wait = {.request = r->id, .answered = on_used};
    lp_step_begin(&step, server, LP_SCRIPT_USE);
    lp_step_key(&step, r->key, "s");
    lp_step_idle(&step);
    lp_step_number(&step, r->method == LP_METHOD_POST);
    if (lp_step_send(&step, &wait))
        fall_back(server, r);
}

/* --- DELETE --- */

static void on_ended(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_request *r = lp_request_get(server, wait->request);
    struct lp_session *session = lp_session_get(server, wait->session);
    bool has_ended = is_done(result) || result->outcome == LP_OUTCOME_UNCONFIRMED;
    if (has_ended && session)
        lp_session_end(server, session);
    if (!r)
        return;
    if (!has_ended)
        lp_request_found(server, wait->request, LP_CANNOT_TELL, NULL);
    else if (lp_shared_says_gone(result))
        lp_request_found(server, wait->request, LP_NOT_FOUND, NULL);
    else
        lp_respond_json(server, r, 200);
}

void lp_shared_end(struct lp_server *server, struct lp_request *r, struct lp_session *session)
{
    struct lp_step step;
    struct lp_wait wait = {.request = r->id, .session = session->id, .answered = on_ended};
    lp_step_begin(&step, server, LP_SCRIPT_END);
    lp_step_key(&step, session->key, "s");
    lp_step_key(&step, session->key, "b");
    lp_step_key(&step, session->key, "c");
    lp_step_tag(&step, session->key);
    step.is_write = true;
    if (lp_step_send(&step, &wait))
        lp_request_found(server, r->id, LP_CANNOT_TELL, NULL);
}

/* --- level and subscriptions --- */

static void on_saved(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_channel *ch = lp_channel_get(server, wait->channel);
    if (!ch)
        return;
    ch->brief--;
    if (lp_shared_says_gone(result))
        lp_rpc_error(server, ch->id, wait->message_id, INTERNAL, "the session has ended");
    else if (is_done(result) || result->outcome == LP_OUTCOME_UNCONFIRMED)
        lp_rpc_result(server, ch->id, wait->message_id, LP_SPAN("{}"));
    else
        lp_rpc_error(server, ch->id, wait->message_id, INTERNAL, AWAY);
    lp_channel_release(server, wait->channel);
}

static void save(struct lp_server *server, const struct lp_message *m, struct lp_span field,
    struct lp_span value)
{
    struct lp_step step;
    struct lp_channel *ch = lp_channel_get(server, m->channel);
    struct lp_wait wait = {.channel = m->channel, .message_id = m->env->id, .answered = on_saved};
    lp_step_begin(&step, server, LP_SCRIPT_SAVE);
    lp_step_key(&step, m->session->key, "s");
    lp_step_put(&step, field);
    if (value.ptr)
        lp_step_put(&step, value);
    step.is_write = step.is_idempotent = true;
    if (lp_step_send(&step, &wait)) {
        lp_rpc_error(server, m->channel, m->env->id, INTERNAL, AWAY);
        return;
    }
    ch->open++;
    ch->brief++;
}

void lp_shared_save_level(struct lp_server *server, const struct lp_message *m, uint32_t level)
{
    char digit = (char)('0' + level);
    save(server, m, LP_SPAN("l"), lp_span(&digit, 1));
}

void lp_shared_save_subscription(
    struct lp_server *server, const struct lp_message *m, struct lp_span uri, bool is_wanted)
{
    char field[LP_SERVER_URI_MAX + 2] = "u:";
    memcpy(field + 2, uri.ptr, uri.len);
    save(server, m, lp_span(field, uri.len + 2), is_wanted ? LP_SPAN("1") : lp_span(NULL, 0));
}

/* --- the program's state --- */

static enum lp_state_outcome judge(const struct lp_wait *wait, const struct lp_store_result *result)
{
    bool is_written = wait->is_set && lp_shared_number(result->reply, 0) == 1;
    if (is_done(result))
        return is_written || !wait->is_set ? LP_STATE_DONE : LP_STATE_CHANGED;
    if (result->outcome == LP_OUTCOME_UNCONFIRMED && !is_written)
        return LP_STATE_CHANGED;
    return wait->is_set && result->may_have_run ? LP_STATE_IN_DOUBT : LP_STATE_AWAY;
}

static void on_state(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_job *call = lp_server_job(server, wait->call);
    struct lp_channel *ch = lp_channel_get(server, wait->channel);
    struct lp_session *session = lp_session_get(server, wait->session);
    if (!call)
        return;
    if (lp_shared_says_gone(result)) {
        lp_session_end(server, session);
        return;
    }
    struct lp_wake wake = {.kind = LP_WAKE_STATE, .outcome = judge(wait, result)};
    if (wake.outcome == LP_STATE_DONE || wake.outcome == LP_STATE_CHANGED) {
        wake.revision = lp_shared_number(result->reply, 1);
        wake.state = lp_shared_text(result->reply, 2);
    }
    call->is_storing = false;
    ch->brief--;
    lp_job_wake(call, &wake);
    lp_channel_settle(server, wait->channel);
}

int lp_shared_state(struct lp_job *call, uint64_t revision, const struct lp_span *value)
{
    struct lp_step step;
    const struct lp_session *session = lp_session_get(call->server, call->session);
    struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    struct lp_wait wait = {.session = call->session,
        .channel = call->channel,
        .call = call->id,
        .is_set = value != NULL,
        .answered = on_state};
    lp_step_begin(&step, call->server, LP_SCRIPT_STATE);
    lp_step_key(&step, session->key, "s");
    if (value) {
        lp_step_number(&step, revision);
        lp_step_put(&step, *value);
        step.is_write = true;
    }
    int err = lp_step_send(&step, &wait);
    if (err)
        return err;
    call->is_storing = true;
    ch->brief++;
    return LP_OK;
}
