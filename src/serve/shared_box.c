/* Messages from replica to replica (serve/shared.h): a client's answer to a question that a call on
 * another replica has asked, and the cancellation of such a call (cases MSG-01, MSG-05).
 *
 * A message is taken when the other replica has acted on it and then removed it from the box. Who
 * sent it waits for that, told by publish/subscribe; if not told in time, it removes the message
 * itself, and learns by that whether it was taken. So 202 is only said when it was. */
#include <stdio.h>

#include "base/error.h"
#include "serve/hex.h"
#include "serve/shared.h"

/* --- for whom --- */

/* The replica that has asked the question with that id, a raw token (job.c); empty: none of ours.
 */
static struct lp_span asker_of(struct lp_span token)
{
    enum { ASKED = 3 * LP_HEX_DIGITS + 4 };
    uint64_t number;
    struct lp_span rest = lp_span_from(token, token.len == ASKED);
    struct lp_span asker = lp_span_split(rest, '-', &rest);
    return lp_hex_to_u64(asker, &number) ? asker : LP_SPAN("");
}

/* The replicas to which the message has to go, one behind the other; empty: it stays here. */
static struct lp_span targets_of(const struct lp_server *server, const struct lp_message *m)
{
    if (m->env->method == LP_RPC_NONE) {
        struct lp_span asker = asker_of(m->env->id);
        return lp_span_eq(asker, lp_shared_replica(server)) ? LP_SPAN("") : asker;
    }
    bool is_elsewhere = !m->env->has_id && m->env->method == LP_RPC_CANCELLED && !lp_job_is_here(m);
    return is_elsewhere ? lp_buf_span(&m->session->others) : LP_SPAN("");
}

/* --- posts --- */

static struct lp_post *get_post(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->shared->posts, id);
}

static void tell_request(struct lp_server *server, lp_id request, bool is_taken)
{
    struct lp_request *r = lp_request_get(server, request);
    if (r && is_taken)
        lp_respond_json(server, r, 202);
    else if (r)
        lp_respond_refuse(server, r, LP_REASON_not_taken, LP_SPAN(""));
}

static void tell_channel(struct lp_server *server, lp_id channel, bool is_taken)
{
    struct lp_channel *ch = lp_channel_get(server, channel);
    if (!ch)
        return;
    ch->brief--;
    if (!is_taken)
        ch->out.failed = true; /* of a batch: all of it is to be sent again */
    lp_channel_release(server, channel);
}

static void finish(struct lp_server *server, struct lp_post *post, bool is_taken)
{
    lp_id request = post->request;
    lp_id channel = post->channel;
    lp_heap_cancel(&server->timers, &post->timer);
    lp_slab_free(&server->shared->posts, post->id);
    tell_request(server, request, is_taken);
    tell_channel(server, channel, is_taken);
}

static void on_withdrawn(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_post *post = get_post(server, wait->post);
    bool is_known = result->outcome == LP_OUTCOME_ANSWERED;
    if (post) /* else it was told meanwhile that it was taken */
        finish(server, post, is_known && result->reply->integer < (int64_t)post->count);
}

void lp_shared_post_timer(struct lp_server *server, lp_id id)
{
    struct lp_step step;
    struct lp_wait wait = {.post = id, .answered = on_withdrawn};
    struct lp_post *post = get_post(server, id);
    LP_ASSERT(post); /* its end has cancelled the timer */
    lp_step_begin(&step, server, LP_SCRIPT_WITHDRAW);
    lp_step_key(&step, post->key, "b");
    for (uint32_t i = 0; i < post->count; i++)
        lp_step_put(&step, lp_span_str(post->ids[i]));
    if (lp_step_send(&step, &wait))
        finish(server, post, false);
}

/* Remembers under which ids the message lies in the box; false: it lies nowhere. */
static bool take_ids(struct lp_post *post, const struct lp_store_result *result)
{
    if (result->outcome != LP_OUTCOME_ANSWERED)
        return false;
    for (const struct lp_store_reply *at = result->reply->first; at; at = at->next)
        if (at->text.len < sizeof post->ids[0])
            memcpy(post->ids[post->count++], at->text.ptr, at->text.len);
    return post->count > 0;
}

static void on_posted(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    struct lp_post *post = get_post(server, wait->post);
    if (!post)
        return; /* taken already */
    if (lp_shared_says_gone(result) && post->request) {
        lp_request_found(server, post->request, LP_NOT_FOUND, NULL);
        post->request = 0;
    }
    if (!take_ids(post, result) ||
        lp_heap_set(&server->timers, &post->timer, server->now_us + LP_SHARED_TAKE_US))
        finish(server, post, false);
}

static bool send(struct lp_server *server, const struct lp_post *post, const struct lp_message *m,
    struct lp_span targets)
{
    char name[LP_HEX_DIGITS + 1];
    struct lp_step step;
    struct lp_wait wait = {.post = post->id, .answered = on_posted};
    bool is_reply = m->env->method == LP_RPC_NONE;
    snprintf(name, sizeof name, "%016llx", (unsigned long long)post->id);
    lp_step_begin(&step, server, LP_SCRIPT_POST);
    lp_step_key(&step, post->key, "s");
    lp_step_key(&step, post->key, "b");
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_put(&step, lp_span_str(name));
    lp_step_put(&step, is_reply ? LP_SPAN(LP_BOX_REPLY) : LP_SPAN(LP_BOX_CANCEL));
    lp_step_put(&step, m->text);
    for (; targets.len >= LP_REPLICA_LEN; targets = lp_span_from(targets, LP_REPLICA_LEN))
        lp_step_put(&step, lp_span(targets.ptr, LP_REPLICA_LEN));
    return lp_step_send(&step, &wait) == LP_OK;
}

bool lp_shared_forward(struct lp_server *server, struct lp_request *r, const struct lp_message *m)
{
    lp_id id;
    struct lp_span targets = server->shared && m->session ? targets_of(server, m) : LP_SPAN("");
    if (!targets.len)
        return false;
    struct lp_channel *ch = r ? NULL : lp_channel_get(server, m->channel);
    struct lp_post *post = lp_slab_new(&server->shared->posts, &id);
    if (!post) {
        tell_request(server, r ? r->id : 0, false);
        return true;
    }
    *post = (struct lp_post){.id = id, .key = m->session->key};
    post->timer = (struct lp_timer){.kind = LP_TIMER_SERVER_POST, .owner = id};
    post->request = r ? r->id : 0;
    if (ch) {
        post->channel = ch->id;
        ch->open++;
        ch->brief++;
    }
    if (!send(server, post, m, targets))
        finish(server, post, false);
    return true;
}

/* --- the other side --- */

void lp_shared_taken(struct lp_server *server, struct lp_span name)
{
    lp_id id;
    struct lp_post *post = lp_hex_to_u64(name, &id) ? get_post(server, id) : NULL;
    if (post)
        finish(server, post, true);
}

static void say_taken(
    struct lp_server *server, struct lp_key key, const struct lp_store_reply *entry)
{
    struct lp_step step;
    const struct lp_store_reply *fields = lp_store_reply_item(entry, 1);
    lp_step_begin(&step, server, LP_SCRIPT_TAKEN);
    lp_step_key(&step, key, "b");
    lp_step_put(&step, lp_shared_text(fields, 0));
    lp_step_put(&step, lp_shared_text(fields, 1));
    lp_step_put(&step, lp_shared_text(entry, 0));
    lp_step_post(&step, NULL);
}

void lp_shared_take(
    struct lp_server *server, struct lp_session *session, const struct lp_store_reply *entry)
{
    struct lp_envelope env;
    struct lp_key key = session->key;
    const struct lp_store_reply *fields = lp_store_reply_item(entry, 1);
    struct lp_message m = {.session = session, .env = &env, .text = lp_shared_text(fields, 3)};
    bool is_fine = !lp_envelope_scan(m.text, &env);
    if (is_fine && lp_span_eq(lp_shared_text(fields, 2), LP_SPAN(LP_BOX_REPLY)))
        lp_job_reply(server, &m);
    else if (is_fine)
        lp_job_cancel(&m);
    say_taken(server, key, entry);
}
