/* The sample server as a whole: events and timers in, its life and its end (serve/sample.h).
 *
 * All connection business is link's; what the messages mean is in the files named in
 * sample_priv.h. At the end of every event the gathered output leaves and the next timer is set. */
#include "serve/sample.h"

#include <stdlib.h>

#include "base/error.h"
#include "serve/sample_priv.h"

enum { MINUTE_US = 60000000 };

static const struct lp_link_limits LIMITS = {
    .idle_us = 75000000, .request_us = 30000000, .stalled_us = MINUTE_US};

static struct lp_span copy_text(char *room, struct lp_span text)
{
    if (text.len)
        memcpy(room, text.ptr, text.len);
    return lp_span(room, text.len);
}

static void set_up(struct lp_sample *sample, const struct lp_sample_args *args)
{
    uint32_t session_max = args->session_max ? args->session_max : LP_SAMPLE_SESSIONS;
    sample->shell = args->shell;
    sample->name = copy_text(sample->name_room, args->name);
    sample->path = copy_text(sample->path_room, args->path);
    sample->owner = copy_text(sample->owner_room, args->owner);
    sample->mode = args->mode;
    sample->replay = args->replay;
    sample->idle_us = args->idle_us ? args->idle_us : 15ull * MINUTE_US;
    sample->timer_at_us = UINT64_MAX;
    sample->sweep = (struct lp_timer){.kind = LP_TIMER_SAMPLE_SWEEP};
    lp_heap_init(&sample->timers);
    lp_entropy_init(&sample->entropy, args->seed);
    lp_slab_init(&sample->requests, sizeof(struct lp_sample_request), LP_SAMPLE_CONNECTIONS_MAX);
    lp_slab_init(&sample->sessions, sizeof(struct lp_sample_session), session_max);
    lp_map_init(&sample->by_key);
    lp_list_init(&sample->idle);
}

int lp_sample_new(const struct lp_sample_args *args, struct lp_sample **ret)
{
    if (args->name.len > LP_SAMPLE_NAME_MAX || args->path.len > LP_SAMPLE_PATH_MAX)
        return LP_ETOO_LONG;
    if (!lp_field_is_token(args->name) || (args->owner.len && !lp_owner_is_id(args->owner)))
        return LP_ESYNTAX;
    struct lp_sample *sample = calloc(1, sizeof *sample);
    if (!sample)
        return LP_ENOMEM;
    set_up(sample, args);
    int err = lp_links_init(&sample->links, sample->shell, &sample->timers, &LIMITS);
    if (err) {
        lp_sample_free(sample);
        return err;
    }
    *ret = sample;
    return LP_OK;
}

void lp_sample_free(struct lp_sample *sample)
{
    if (!sample)
        return;
    lp_links_fini(&sample->links);
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_sample_request *r; (r = lp_slab_next(&sample->requests, &cursor, &id));)
        lp_sample_request_free(sample, r);
    lp_slab_fini(&sample->requests);
    lp_slab_fini(&sample->sessions);
    lp_map_fini(&sample->by_key);
    lp_heap_fini(&sample->timers);
    free(sample);
}

uint32_t lp_sample_session_count(const struct lp_sample *sample)
{
    return sample->sessions.live_count;
}

static void perform(struct lp_sample *sample, const struct lp_action *action)
{
    sample->shell->perform(sample->shell->ctx, action);
}

static void on_accepted(struct lp_sample *sample, const struct lp_event *event)
{
    bool is_full = sample->links.client_count >= LP_SAMPLE_CONNECTIONS_MAX;
    if (is_full || sample->stopping) {
        struct lp_action close = {.kind = LP_ACT_CLOSE, .conn = event->conn};
        close.u.close = LP_CLOSE_NOW;
        perform(sample, &close);
        return;
    }
    if (lp_link_accept(&sample->links, event, &lp_sample_ops, sample))
        return; /* link has closed it */
}

static void on_timer(struct lp_sample *sample)
{
    sample->timer_at_us = UINT64_MAX;
    for (struct lp_timer *timer; (timer = lp_heap_due(&sample->timers, sample->now_us));) {
        if (timer->kind == LP_TIMER_LINK)
            lp_links_timer(&sample->links, timer, sample->now_us);
        else if (timer->kind == LP_TIMER_SAMPLE_REQUEST)
            lp_sample_request_timer(sample, timer->owner);
        else
            lp_sample_sweep(sample);
    }
}

/* Streams end at once, calls in progress are finished, idle connections close. */
static void on_stop(struct lp_sample *sample)
{
    sample->stopping = true;
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_sample_request *r; (r = lp_slab_next(&sample->requests, &cursor, &id));)
        if (r->state == LP_SAMPLE_STREAM)
            lp_sample_drop(sample, id);
    lp_links_stop(&sample->links);
}

static void settle(struct lp_sample *sample)
{
    lp_links_flush(&sample->links);
    uint64_t next_us = lp_heap_next_us(&sample->timers);
    if (next_us != sample->timer_at_us) {
        struct lp_action timer = {.kind = LP_ACT_TIMER, .u.timer_at_us = next_us};
        sample->timer_at_us = next_us;
        perform(sample, &timer);
    }
    if (sample->stopping && !sample->stopped && sample->links.client_count == 0) {
        sample->stopped = true;
        perform(sample, &(struct lp_action){.kind = LP_ACT_STOPPED});
    }
}

void lp_sample_event(struct lp_sample *sample, const struct lp_event *event)
{
    sample->now_us = sample->links.now_us = event->mono_us;
    switch (event->kind) {
    case LP_EV_ACCEPTED:
        on_accepted(sample, event);
        break;
    case LP_EV_CONNECTED:
    case LP_EV_CONNECT_FAILED:
    case LP_EV_READ:
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_DRAINED:
        lp_links_event(&sample->links, event);
        break;
    case LP_EV_TIMER:
        on_timer(sample);
        break;
    case LP_EV_STOP:
        on_stop(sample);
        break;
    case LP_EV_MAIL:
    case LP_EV_STORE_REPLY:
    case LP_EV_CONFIG:
        break;
    }
    settle(sample);
}
