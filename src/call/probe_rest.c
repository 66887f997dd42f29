/* The long test (call/probe_priv.h): how long a quiet stream stays open, and how long an idle
 * session is remembered.
 *
 * Three streams are watched side by side, so that chance shows. Each session of the ladder rests a
 * different time and is asked once: asking it before would have kept it awake. */
#include "call/probe_priv.h"

enum { LADDER = 10, ASK_MS = 5000 };

static struct lp_seen_idle *idle_of(struct lp_probe_session *s)
{
    return &s->probe->seen.idle;
}

/* --- idle sessions --- */

static void on_asked(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    struct lp_seen_idle *idle = idle_of(s);
    uint32_t rest_s = s->task.rest_s;
    enum lp_seen_mark mark = lp_probe_mark(s->probe, reply);
    if (mark == LP_MARK_OK && rest_s > idle->alive_s)
        idle->alive_s = rest_s;
    if (mark == LP_MARK_LOST && (!idle->dead_s || rest_s < idle->dead_s))
        idle->dead_s = rest_s;
    if (mark == LP_MARK_LOST)
        s->id_len = 0; /* nothing to delete */
    lp_probe_session_leave(s);
}

static void on_rested(void *ctx)
{
    struct lp_probe_session *s = ctx;
    struct lp_ask_args args = lp_probe_session_args(s);
    args.body = LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"rested\",\"method\":\"ping\"}");
    args.rpc_id = LP_SPAN("\"rested\"");
    args.timeout_ms = ASK_MS;
    args.done = on_asked;
    struct lp_ask *asked = lp_ask_start(&s->probe->asker, &args);
    if (!asked)
        lp_probe_session_leave(s);
}

static void begin_rest(struct lp_probe_session *s)
{
    s->timer.fire = on_rested;
    s->timer.ctx = s;
    if (lp_fetcher_timer_set(s->probe->args.fetcher, &s->timer, (uint64_t)s->task.rest_s * 1000000))
        lp_probe_session_leave(s);
}

/* --- quiet streams --- */

static void note_stream(struct lp_seen_idle *idle, const struct lp_reply *reply)
{
    bool is_stream = reply->answer.status == 200 && reply->answer.media == LP_MEDIA_EVENTS;
    LP_ASSERT(idle->tries < LP_SEEN_TRIES_MAX);
    if (!is_stream)
        return;
    uint32_t heard_ms = (uint32_t)(reply->quiet_us / 1000);
    if (reply->last_us > reply->head_us && heard_ms > idle->heard_ms)
        idle->heard_ms = heard_ms;
    uint32_t cut_ms = (uint32_t)((reply->end_us - reply->last_us) / 1000);
    idle->cut_ms[idle->tries++] = reply->was_cut ? cut_ms + !cut_ms : 0;
}

static void on_watched(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    s->stream = NULL;
    note_stream(idle_of(s), reply);
    lp_probe_session_leave(s);
}

static void begin_quiet(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    args.method = LP_METHOD_GET;
    args.hold_ms = s->task.rest_s * 1000;
    args.timeout_ms = ASK_MS;
    args.done = on_watched;
    s->stream = lp_ask_start(&s->probe->asker, &args);
    if (!s->stream)
        lp_probe_session_leave(s);
}

void lp_probe_rest_begin(struct lp_probe_session *s)
{
    if (s->probe->is_hurried)
        lp_probe_session_leave(s);
    else if (s->task.job == LP_JOB_QUIET)
        begin_quiet(s);
    else
        begin_rest(s);
}

/* --- before its time --- */

static void wake(struct lp_probe_session *s)
{
    bool is_resting = s->task.job == LP_JOB_REST && s->timer.timer.index;
    bool is_watching = s->task.job == LP_JOB_QUIET && s->stream;
    if (is_resting)
        lp_fetcher_timer_cancel(s->probe->args.fetcher, &s->timer);
    if (is_watching)
        lp_ask_cancel(s->stream);
    s->stream = NULL;
    if (is_resting || is_watching)
        lp_probe_session_leave(s);
}

void lp_probe_rest_hurry(struct lp_probe *probe)
{
    struct lp_list *node = probe->sessions.next;
    probe->questions++; /* the phase is not over before all are woken */
    while (node != &probe->sessions) {
        struct lp_probe_session *s = LP_CONTAINER(node, struct lp_probe_session, node);
        node = node->next;
        wake(s);
    }
    probe->questions--;
}

/* --- the plan --- */

static void add(struct lp_probe *probe, enum lp_probe_job job, uint32_t rest_s)
{
    struct lp_probe_task task = {.job = (uint8_t)job, .arm = LP_ARM_FRESH, .rest_s = rest_s};
    bool is_new = !probe->task_count || rest_s > probe->tasks[probe->task_count - 1].rest_s;
    LP_ASSERT(probe->task_count < LP_PROBE_JOBS_MAX);
    if (rest_s && (is_new || job == LP_JOB_QUIET))
        probe->tasks[probe->task_count++] = task;
}

void lp_probe_rest_plan(struct lp_probe *probe)
{
    uint32_t rest_s = probe->args.rest_s;
    bool has_streams = probe->seen.gets.fine > 0;
    probe->seen.idle.watched_s = rest_s;
    for (uint32_t i = 1; i <= LADDER && probe->seen.mints_ids; i++)
        add(probe, LP_JOB_REST, (uint32_t)((uint64_t)rest_s * i / LADDER));
    for (uint32_t i = 0; i < LP_SEEN_TRIES_MAX && has_streams; i++)
        add(probe, LP_JOB_QUIET, rest_s);
}
