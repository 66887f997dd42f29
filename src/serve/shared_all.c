/* What all sessions of a deployment are told (serve/shared.h): a list has changed, a resource was
 * updated.
 *
 * Each replica reads what the others announce, and hands it to the sessions whose GET stream it
 * carries. What was announced before it began is not its business. */
#include "base/error.h"
#include "serve/shared.h"

static void tell_here(struct lp_server *server, struct lp_span json, struct lp_span uri)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));)
        if (lp_channel_get(server, s->standalone))
            (void)lp_shared_tell(server, s, json, uri);
}

void lp_shared_announce(struct lp_server *server, struct lp_span json, struct lp_span uri)
{
    struct lp_step step;
    tell_here(server, json, uri);
    lp_step_begin(&step, server, LP_SCRIPT_ANNOUNCE);
    lp_step_key_all(&step);
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_put(&step, json);
    lp_step_put(&step, uri);
    step.is_write = true;
    lp_step_post(&step, NULL);
}

static void on_heard(
    struct lp_server *server, const struct lp_wait *wait, const struct lp_store_result *result)
{
    (void)wait;
    struct lp_shared *shared = server->shared;
    struct lp_span cursor = lp_shared_text(result->reply, 0);
    shared->is_hearing = false;
    if (result->outcome != LP_OUTCOME_ANSWERED || cursor.len >= sizeof shared->heard)
        return;
    for (const struct lp_store_reply *at = lp_shared_list(result->reply, 1); at; at = at->next)
        tell_here(server, lp_shared_text(at, 0), lp_shared_text(at, 1));
    bool has_moved = shared->heard[0] && !lp_span_eq(cursor, lp_span_str(shared->heard));
    memcpy(shared->heard, cursor.ptr, cursor.len);
    shared->heard[cursor.len] = '\0';
    if (has_moved || shared->is_stale)
        lp_shared_hear(server);
}

void lp_shared_hear(struct lp_server *server)
{
    struct lp_step step;
    struct lp_shared *shared = server->shared;
    struct lp_wait wait = {.answered = on_heard};
    shared->is_stale = shared->is_hearing;
    if (shared->is_hearing)
        return;
    lp_step_begin(&step, server, LP_SCRIPT_HEAR);
    lp_step_key_all(&step);
    lp_step_put(&step, lp_shared_replica(server));
    lp_step_put(&step, lp_span_str(shared->heard));
    shared->is_hearing = !lp_step_send(&step, &wait);
}
