/* The program's state of a session (serve/job.h, lp_job_state_get).
 *
 * In the memory of this process both are done at once, but the call is woken only when what it does
 * just now is over: a handler is never entered from within itself. */
#include "base/error.h"
#include "serve/inputs.h"
#include "serve/server_priv.h"
#include "serve/shared.h"

static struct lp_session *begin(struct lp_job *call)
{
    LP_ASSERT(lp_job_may_wait(call));
    return lp_session_get(call->server, call->session);
}

static int wake_soon(struct lp_job *call, enum lp_state_outcome outcome, uint64_t revision)
{
    struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    call->is_storing = true;
    ch->brief++;
    call->outcome = outcome;
    call->revision = revision;
    lp_list_push_back(&call->server->ready, &call->ready);
    return LP_OK;
}

int lp_job_state_get(struct lp_job *call)
{
    struct lp_session *session = begin(call);
    if (!session)
        return LP_EUNSUPPORTED;
    return call->server->shared ? lp_shared_state(call, 0, NULL)
                                : wake_soon(call, LP_STATE_DONE, 0);
}

int lp_job_state_set(struct lp_job *call, uint64_t revision, struct lp_span value)
{
    struct lp_session *session = begin(call);
    if (!session)
        return LP_EUNSUPPORTED;
    if (value.len > LP_SERVER_STATE_MAX)
        return LP_ETOO_LONG;
    if (call->server->shared)
        return lp_shared_state(call, revision, &value);
    if (session->revision != revision)
        return wake_soon(call, LP_STATE_CHANGED, 0);
    struct lp_buf next;
    lp_buf_init(&next, LP_SERVER_STATE_MAX);
    int err = lp_buf_append(&next, value);
    if (err)
        return err;
    lp_buf_release(&session->state);
    session->state = next;
    return wake_soon(call, LP_STATE_DONE, ++session->revision);
}

static void wake(struct lp_job *call)
{
    const struct lp_session *session = lp_session_get(call->server, call->session);
    struct lp_wake wake = {
        .kind = LP_WAKE_STATE, .outcome = call->outcome, .revision = call->revision};
    if (!call->revision) {
        wake.state = lp_buf_span(&session->state);
        wake.revision = session->revision;
    }
    call->is_storing = false;
    lp_channel_get(call->server, call->channel)->brief--;
    lp_job_wake(call, &wake);
}

void lp_state_run_ready(struct lp_server *server)
{
    while (!lp_list_empty(&server->ready)) {
        struct lp_job *call = LP_CONTAINER(server->ready.next, struct lp_job, ready);
        lp_list_remove(&call->ready);
        if (call->is_asking)
            lp_inputs_go_on(call);
        else
            wake(call);
    }
}
