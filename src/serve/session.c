/* Sessions: opened, found, pushed out, ended (wire document 4.4).
 *
 * The random bits of a session's id are its key (serve/session_id.h). A session is either busy (a
 * call or its GET stream holds it) or in the idle list, whose front is the one to go when there are
 * too many or its time is over. Invariant: busy is 0 exactly when it is in that list. */
#include "base/error.h"
#include "serve/server_priv.h"
#include "serve/shared.h"

struct lp_session *lp_session_get(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->sessions, id);
}

static bool has_used_up(const struct lp_server *server, struct lp_key principal)
{
    uint32_t cursor = 0, count = 0;
    lp_id id;
    if (!server->args.session_max_each)
        return false;
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));)
        count += lp_key_eq(s->principal, principal);
    return count >= server->args.session_max_each;
}

/* The one that has been idle longest, of this principal or, with NULL, of all; NULL: none is. */
static struct lp_session *oldest_idle(struct lp_server *server, const struct lp_key *principal)
{
    for (struct lp_list *node = server->idle.next; node != &server->idle; node = node->next) {
        struct lp_session *session = LP_CONTAINER(node, struct lp_session, idle);
        if (!principal || lp_key_eq(session->principal, *principal))
            return session;
    }
    return NULL;
}

/* Who opens many pushes out his own first, and with a limit for each nobody else's ever (cases
 * LIF-03). */
static bool make_room(struct lp_server *server, struct lp_key principal)
{
    bool is_own_limit = has_used_up(server, principal);
    if (!is_own_limit && server->sessions.live_count < server->sessions.live_max)
        return true;
    struct lp_session *oldest = oldest_idle(server, &principal);
    if (!oldest && !is_own_limit)
        oldest = oldest_idle(server, NULL);
    if (!oldest)
        return false;
    lp_session_end(server, oldest);
    return true;
}

enum lp_reason lp_session_refusal(const struct lp_server *server, struct lp_key principal)
{
    return has_used_up(server, principal) ? LP_REASON_too_many_sessions : LP_REASON_over_capacity;
}

static bool fill(struct lp_server *server, struct lp_session *session, struct lp_key key)
{
    lp_list_init(&session->idle);
    lp_list_init(&session->doomed);
    lp_list_init(&session->channels);
    lp_buf_init(&session->subscriptions, LP_SERVER_SUBSCRIPTIONS_BYTES);
    lp_buf_init(&session->state, LP_SERVER_STATE_MAX);
    lp_list_init(&session->following);
    lp_buf_init(&session->others, LP_SHARED_TARGETS * LP_REPLICA_LEN);
    memcpy(session->box, "0-0", 4);
    session->key = key;
    session->text_len = lp_session_id_mint(server->args.owner, &session->key, session->text);
    return lp_map_put(&server->by_key, session->key, session->id) == LP_OK;
}

struct lp_session *lp_session_adopt(
    struct lp_server *server, struct lp_key key, struct lp_key principal)
{
    lp_id id;
    struct lp_session *session = NULL;
    if (make_room(server, principal))
        session = lp_slab_new(&server->sessions, &id);
    if (!session)
        return NULL;
    session->id = id;
    session->principal = principal;
    if (!fill(server, session, key)) {
        lp_slab_free(&server->sessions, id);
        return NULL;
    }
    lp_session_hold(server, session);
    lp_session_release(server, id);
    return session;
}

struct lp_session *lp_session_new(struct lp_server *server, struct lp_key principal)
{
    struct lp_key key;
    lp_entropy_bytes(&server->entropy, (unsigned char *)&key, sizeof key);
    return lp_session_adopt(server, key, principal);
}

struct lp_session *lp_session_find(const struct lp_server *server, const struct lp_request *r)
{
    struct lp_session *session = lp_session_get(server, lp_map_get(&server->by_key, r->key));
    bool is_it = session && lp_key_eq(session->principal, r->principal) &&
        session->is_old_sse == r->is_old_sse;
    return is_it ? session : NULL;
}

void lp_session_look_up(struct lp_server *server, struct lp_request *r)
{
    if (server->shared) {
        lp_shared_look_up(server, r);
        return;
    }
    struct lp_session *session = lp_session_find(server, r);
    lp_request_found(server, r->id, session ? LP_FOUND : LP_NOT_FOUND, session);
}

void lp_session_hold(struct lp_server *server, struct lp_session *session)
{
    session->busy++;
    session->used_us = server->now_us;
    lp_list_remove(&session->idle);
}

void lp_session_release(struct lp_server *server, lp_id id)
{
    struct lp_session *session = lp_session_get(server, id);
    if (!session)
        return;
    LP_ASSERT(session->busy > 0);
    session->used_us = server->now_us;
    if (--session->busy == 0) {
        lp_shared_unfollow(server, session);
        lp_list_push_back(&server->idle, &session->idle);
        lp_session_sweep(server);
    }
}

void lp_session_end(struct lp_server *server, struct lp_session *session)
{
    lp_map_remove(&server->by_key, session->key);
    lp_list_remove(&session->idle);
    while (!lp_list_empty(&session->channels))
        lp_channel_kill(
            server, LP_CONTAINER(session->channels.next, struct lp_channel, of_session));
    lp_list_remove(&session->idle);
    lp_list_remove(&session->doomed);
    lp_buf_release(&session->subscriptions);
    lp_buf_release(&session->state);
    lp_buf_release(&session->others);
    lp_list_remove(&session->following);
    lp_slab_free(&server->sessions, session->id);
}

void lp_session_doom(struct lp_server *server, struct lp_session *session)
{
    lp_list_remove(&session->doomed);
    lp_list_push_back(&server->doomed, &session->doomed);
}

void lp_session_end_doomed(struct lp_server *server)
{
    while (!lp_list_empty(&server->doomed))
        lp_session_end(server, LP_CONTAINER(server->doomed.next, struct lp_session, doomed));
}

void lp_session_sweep(struct lp_server *server)
{
    while (!lp_list_empty(&server->idle)) {
        struct lp_session *oldest = LP_CONTAINER(server->idle.next, struct lp_session, idle);
        uint64_t at_us = oldest->used_us + server->args.idle_us;
        if (at_us > server->now_us) {
            /* A timer that was set for an older one comes too early and finds out. Without memory
             * for it the sessions stay until they are pushed out, which is no harm. */
            int err =
                server->sweep.index ? LP_OK : lp_heap_set(&server->timers, &server->sweep, at_us);
            (void)err;
            return;
        }
        lp_session_end(server, oldest);
    }
}
