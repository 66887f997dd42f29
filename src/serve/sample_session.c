/* Sessions of the sample server: opened, found, pushed out, ended (wire document 4.4).
 *
 * The random bits of a session's id are its key (serve/session_id.h). A session is either busy
 * (a request or its GET stream holds it) or in the idle list, whose front is the one to go when
 * there are too many or its time is over. Invariant: busy is 0 exactly when it is in that list. */
#include "base/error.h"
#include "serve/sample_priv.h"

struct lp_sample_session *lp_sample_session_get(const struct lp_sample *sample, lp_id id)
{
    return lp_slab_get(&sample->sessions, id);
}

/* The oldest idle one makes room for a new one. */
static bool make_room(struct lp_sample *sample)
{
    if (sample->sessions.live_count < sample->sessions.live_max)
        return true;
    if (lp_list_empty(&sample->idle))
        return false;
    lp_sample_session_end(sample, LP_CONTAINER(sample->idle.next, struct lp_sample_session, idle));
    return true;
}

struct lp_sample_session *lp_sample_session_new(struct lp_sample *sample)
{
    lp_id id;
    struct lp_sample_session *session = NULL;
    if (make_room(sample))
        session = lp_slab_new(&sample->sessions, &id);
    if (!session)
        return NULL;
    session->id = id;
    lp_list_init(&session->idle);
    lp_entropy_bytes(&sample->entropy, (unsigned char *)&session->key, sizeof session->key);
    session->text_len = lp_session_id_mint(sample->owner, &session->key, session->text);
    if (lp_map_put(&sample->by_key, session->key, id)) {
        lp_slab_free(&sample->sessions, id);
        return NULL;
    }
    lp_sample_session_hold(sample, session);
    lp_sample_session_release(sample, id);
    return session;
}

struct lp_sample_session *lp_sample_session_find(struct lp_sample *sample, struct lp_key key)
{
    return lp_sample_session_get(sample, lp_map_get(&sample->by_key, key));
}

void lp_sample_session_hold(struct lp_sample *sample, struct lp_sample_session *session)
{
    session->busy++;
    session->used_us = sample->now_us;
    lp_list_remove(&session->idle);
}

void lp_sample_session_release(struct lp_sample *sample, lp_id id)
{
    struct lp_sample_session *session = lp_sample_session_get(sample, id);
    if (!session)
        return;
    LP_ASSERT(session->busy > 0);
    session->used_us = sample->now_us;
    if (--session->busy == 0) {
        lp_list_push_back(&sample->idle, &session->idle);
        lp_sample_sweep(sample);
    }
}

void lp_sample_session_end(struct lp_sample *sample, struct lp_sample_session *session)
{
    lp_id ended = session->id;
    lp_map_remove(&sample->by_key, session->key);
    lp_list_remove(&session->idle);
    lp_slab_free(&sample->sessions, ended);
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_sample_request *r; (r = lp_slab_next(&sample->requests, &cursor, &id));)
        if (r->session == ended && (r->state == LP_SAMPLE_WORKING || r->state == LP_SAMPLE_STREAM))
            lp_sample_drop(sample, id);
}

void lp_sample_sweep(struct lp_sample *sample)
{
    while (!lp_list_empty(&sample->idle)) {
        struct lp_sample_session *oldest =
            LP_CONTAINER(sample->idle.next, struct lp_sample_session, idle);
        uint64_t at_us = oldest->used_us + sample->idle_us;
        if (at_us > sample->now_us) {
            /* A timer that was set for an older one comes too early and finds out. Without memory
             * for it the sessions stay until they are pushed out, which is no harm. */
            int err =
                sample->sweep.index ? LP_OK : lp_heap_set(&sample->timers, &sample->sweep, at_us);
            (void)err;
            return;
        }
        lp_sample_session_end(sample, oldest);
    }
}
