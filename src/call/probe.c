/* The plan of the probe: which experiments, in which order, how many at once, and when to stop
 * (call/probe.h).
 *
 * The first session runs alone; its pace decides how many run side by side later. Where everything
 * can run one after the other it does, because strict rotation shows in nothing else. Each phase
 * has its share of the time; what it could not ask is not asked. */
#include "call/probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "call/probe_priv.h"
#include "mcp/version.h"
#include "wire/member.h"

enum {
    WIDTH_MAX = 16,
    STREAMS = 6, /* sessions whose GET is tried */
    MORE = 60,   /* sessions or openings when a verdict hangs on them */
    MORE_TIMES = 2,
    BESIDE_MS = 2000,
    GRACE_MS = 700, /* between the end of the time and the end of the probe, for DELETE */
    BESIDE = 4,     /* sessions of old SSE beside the probed endpoint */
    OLD_SSE_WIDTH = 6,
    OLD_SSE_SESSIONS = 12,
    FIRST_LEAST_MS = 100,
};

/* Shares of the budget by which a phase has to be over. */
static const double FIRST_SHARE = 0.25;
static const double ROWS_SHARE = 0.55;
static const double ARMS_SHARE = 0.75;
static const double MORE_SHARE = 0.82;
static const double STEPS_SHARE = 0.87;
static const double STREAMS_SHARE = 0.92;

static void enter(struct lp_probe *probe, enum lp_probe_phase phase);

static uint64_t now_us(const struct lp_probe *probe)
{
    return lp_fetcher_now_us(probe->args.fetcher);
}

bool lp_probe_is_late(const struct lp_probe *probe)
{
    return probe->is_hurried || now_us(probe) >= probe->phase_end_us;
}

bool lp_probe_has_opened(const struct lp_reply *reply)
{
    return reply->answer.status == 200 && reply->answer.is_result;
}

static void set_share(struct lp_probe *probe, double share)
{
    probe->phase_end_us = probe->started_us + (uint64_t)((double)probe->budget_us * share);
}

static void end_probe(struct lp_probe *probe)
{
    if (probe->is_over)
        return;
    probe->is_over = true;
    probe->phase = LP_PROBE_OVER;
    probe->seen.took_ms = (uint32_t)((now_us(probe) - probe->started_us) / 1000);
    lp_fetcher_timer_cancel(probe->args.fetcher, &probe->alarm);
    probe->args.over(probe->args.ctx);
}

/* --- tasks --- */

static void add_task(struct lp_probe *probe, struct lp_probe_task task)
{
    LP_ASSERT(probe->task_count < LP_PROBE_JOBS_MAX);
    probe->tasks[probe->task_count++] = task;
}

static void add_rows(struct lp_probe *probe, enum lp_seen_arm arm, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_task(probe, (struct lp_probe_task){.job = LP_JOB_ROW, .arm = (uint8_t)arm});
}

static void clear_tasks(struct lp_probe *probe)
{
    probe->task_count = probe->task_next = 0;
}

/* So many side by side that what is left of the phase suffices; never fewer than before. */
static void choose_width(struct lp_probe *probe)
{
    uint64_t rows = probe->task_count - probe->task_next;
    uint64_t work_us = rows * probe->args.calls * lp_probe_pace(probe) * 5 / 4;
    LP_ASSERT(probe->phase_end_us > now_us(probe)); /* else no task begins */
    uint64_t width = work_us / (probe->phase_end_us - now_us(probe)) + 1;
    width = width < WIDTH_MAX ? width : WIDTH_MAX;
    if (probe->seen.is_old_sse)
        width = OLD_SSE_WIDTH;
    if (probe->width < width)
        probe->width = (uint32_t)width;
}

static uint32_t some(const struct lp_probe *probe, uint32_t least)
{
    uint32_t count = probe->args.sessions / 4;
    return count > least ? count : least;
}

static void plan_first(struct lp_probe *probe)
{
    probe->width = 1;
    add_task(probe,
        (struct lp_probe_task){
            .job = LP_JOB_ROW, .arm = LP_ARM_FRESH, .wants_stream = !probe->seen.is_old_sse});
}

static void plan_rows(struct lp_probe *probe)
{
    uint32_t count = probe->args.sessions;
    if (probe->seen.is_old_sse && count > OLD_SSE_SESSIONS)
        count = OLD_SSE_SESSIONS;
    for (uint32_t i = 1; i < count; i++)
        add_task(probe,
            (struct lp_probe_task){.job = LP_JOB_ROW,
                .arm = LP_ARM_FRESH,
                .wants_stream = i < STREAMS && !probe->seen.is_old_sse});
}

static void plan_arms(struct lp_probe *probe)
{
    const struct lp_seen *seen = &probe->seen;
    bool has_sessions = (seen->mints_ids || seen->is_old_sse) && !seen->is_modern;
    if (!has_sessions)
        return;
    if (!seen->is_old_sse)
        add_rows(probe, LP_ARM_KEPT, some(probe, 3));
    if (seen->cookie_count)
        add_rows(probe, LP_ARM_COOKIE, some(probe, 3));
    if (probe->args.source_count)
        add_rows(probe, LP_ARM_ELSEWHERE, some(probe, 3));
    for (uint32_t i = 0; !seen->is_old_sse && seen->cookie_count > 1 && i < seen->cookie_count; i++)
        add_task(probe,
            (struct lp_probe_task){
                .job = LP_JOB_ALONE, .arm = LP_ARM_COOKIE, .cookie = (uint8_t)i});
}

/* False: nothing more is wanted. */
static bool plan_more(struct lp_probe *probe)
{
    enum lp_want want = lp_verdict_wants(&probe->seen);
    bool can_ask = !probe->seen.is_modern && !probe->seen.is_old_sse;
    if (want == LP_WANT_NOTHING || probe->more++ >= MORE_TIMES || !can_ask)
        return false;
    bool wants_rows = want == LP_WANT_SESSIONS;
    for (uint32_t i = 0; i < MORE; i++)
        add_task(probe,
            (struct lp_probe_task){
                .job = wants_rows ? LP_JOB_SHORT : LP_JOB_OPENING, .arm = LP_ARM_FRESH});
    return true;
}

/* --- another transport, or another era --- */

/* Nothing opened a session: is it another transport, or the modern era alone? */
static void look_elsewhere(struct lp_probe *probe)
{
    struct lp_seen *seen = &probe->seen;
    uint16_t status = seen->opening.status;
    bool may_be_sse = probe->phase == LP_PROBE_FIRST && status >= 400 && status < 500 &&
        status != 401 && status != 403;
    if (seen->modern[0]) {
        seen->is_open = seen->is_modern = true;
        lp_seen_text(probe->version, sizeof probe->version, LP_SPAN(LP_VERSION_MODERN));
        enter(probe, LP_PROBE_FIRST);
    } else if (may_be_sse && !probe->has_looked) {
        probe->has_looked = true;
        lp_probe_ask_old_sse(probe);
    } else if (status == 401 && !probe->has_asked_login) {
        probe->has_asked_login = true;
        lp_probe_login_begin(probe);
    } else {
        end_probe(probe);
    }
}

/* --- streams --- */

/* "/sse" in place of the last segment of the probed path. */
static void put_sse_url(struct lp_probe *probe)
{
    const struct lp_target *target = lp_fetcher_target(probe->args.fetcher);
    struct lp_span url = target->url;
    size_t end = url.len;
    size_t query = lp_span_find(url, '?');
    end = query < end ? query : end;
    while (url.ptr[end - 1] != '/') /* there are two behind the scheme */
        end--;
    int n = snprintf(probe->sse_url, sizeof probe->sse_url, "%.*ssse", (int)end, url.ptr);
    bool is_other = (size_t)n < sizeof probe->sse_url && end > 8 &&
        !lp_span_eq(lp_span_str(probe->sse_url), url);
    if (!is_other)
        probe->sse_url[0] = '\0';
}

static void on_beside_found(void *ctx, const struct lp_sse_event *event)
{
    struct lp_probe *probe = ctx;
    if (probe->seen.sse_is_beside || !lp_span_eq(event->type, LP_SPAN("endpoint")))
        return;
    probe->seen.sse_is_beside = true;
    for (uint32_t i = 0; i < BESIDE; i++)
        add_task(probe, (struct lp_probe_task){.job = LP_JOB_BESIDE, .arm = LP_ARM_FRESH});
}

/* Sessions were opened in order, so a balancer that rotates could bring GET after GET home by
 * chance. Therefore neighbours change places from the third on: no constant step leads from where
 * they live to where their GETs go. */
static void begin_gets(struct lp_probe *probe)
{
    struct lp_list *node = probe->sessions.next;
    struct lp_probe_session *waiting = NULL;
    for (uint32_t i = 0; node != &probe->sessions; node = node->next, i++) {
        struct lp_probe_session *s = LP_CONTAINER(node, struct lp_probe_session, node);
        bool is_first_of_two = i >= 2 && i % 2 == 0 && node->next != &probe->sessions;
        if (!is_first_of_two)
            lp_probe_session_stream(s);
        if (waiting)
            lp_probe_session_stream(waiting);
        waiting = is_first_of_two ? s : NULL;
    }
}

static void begin_streams(struct lp_probe *probe)
{
    put_sse_url(probe);
    probe->seen.stream.post_ms = lp_probe_pace(probe) / 1000;
    begin_gets(probe);
    if (!probe->seen.is_modern && !probe->seen.is_old_sse) {
        lp_probe_ask_unknown_delete(probe);
        if (!probe->seen.unknown.status)
            lp_probe_ask_unknown(probe); /* was it chance that nothing came? */
        add_task(probe, (struct lp_probe_task){.job = LP_JOB_ORIGIN});
    }
    if (probe->sse_url[0] && !probe->seen.is_old_sse && !probe->is_transport_given)
        (void)lp_probe_ask(probe,
            (struct lp_ask_args){.method = LP_METHOD_GET,
                .url = lp_span_str(probe->sse_url),
                .timeout_ms = BESIDE_MS,
                .hold_ms = 200,
                .event = on_beside_found,
                .done = lp_probe_forget});
}

static void begin_endings(struct lp_probe *probe)
{
    struct lp_list *node = probe->sessions.next;
    probe->questions++; /* the phase is not over before all have begun to end */
    while (node != &probe->sessions) {
        struct lp_probe_session *s = LP_CONTAINER(node, struct lp_probe_session, node);
        node = node->next;
        if (s->is_parked)
            lp_probe_session_end(s);
    }
    probe->questions--;
}

/* --- the long test --- */

/* It says something only where sessions hold in the first place. */
static bool wants_rest(const struct lp_probe *probe)
{
    struct lp_rate fresh = lp_rate_of(&probe->seen, LP_ARM_FRESH, false);
    bool is_plain = !probe->seen.is_modern && !probe->seen.is_old_sse;
    return probe->args.rest_s && !probe->is_hurried && is_plain && fresh.ok && !fresh.lost;
}

static void begin_rest(struct lp_probe *probe)
{
    uint64_t rest_us = (uint64_t)probe->args.rest_s * 1000000;
    probe->phase_end_us = now_us(probe) + rest_us + probe->budget_us;
    if (lp_fetcher_timer_set(
            probe->args.fetcher, &probe->alarm, rest_us + probe->budget_us + GRACE_MS * 1000))
        probe->is_hurried = true;
    lp_probe_rest_plan(probe);
}

/* --- phases --- */

static void tell(const struct lp_probe *probe)
{
    static const char *const WORDS[] = {[LP_PROBE_DISCOVER] = "looking for the server",
        [LP_PROBE_QUESTIONS] = "asking with an unknown session",
        [LP_PROBE_FIRST] = "one session alone",
        [LP_PROBE_ROWS] = "sessions, a new connection for each call",
        [LP_PROBE_ARMS] = "kept connections, cookies, other addresses",
        [LP_PROBE_MORE] = "more sessions, to be sure",
        [LP_PROBE_STEPS] = "calls in two steps",
        [LP_PROBE_STREAMS] = "event streams",
        [LP_PROBE_ENDINGS] = "deleting sessions",
        [LP_PROBE_REST] = "resting"};
    if (probe->args.progress && probe->phase < LP_PROBE_OVER)
        probe->args.progress(
            probe->args.ctx, WORDS[probe->phase], probe->task_next, probe->task_count);
}

static void begin_phase(struct lp_probe *probe)
{
    switch (probe->phase) {
    case LP_PROBE_DISCOVER:
        lp_probe_ask_discover(probe);
        break;
    case LP_PROBE_QUESTIONS:
        probe->tries = probe->missing_tries = 0;
        lp_probe_ask_unknown(probe);
        lp_probe_ask_missing(probe);
        break;
    case LP_PROBE_FIRST:
        set_share(probe, FIRST_SHARE);
        if (!probe->is_hurried && lp_probe_is_late(probe)) /* initialize is asked in any case */
            probe->phase_end_us = now_us(probe) + FIRST_LEAST_MS * 1000;
        plan_first(probe);
        break;
    case LP_PROBE_ROWS:
        set_share(probe, ROWS_SHARE);
        plan_rows(probe);
        break;
    case LP_PROBE_ARMS:
        set_share(probe, ARMS_SHARE);
        plan_arms(probe);
        break;
    case LP_PROBE_MORE:
        set_share(probe, MORE_SHARE);
        (void)plan_more(probe);
        break;
    case LP_PROBE_STEPS:
        set_share(probe, STEPS_SHARE);
        lp_probe_steps_begin(probe);
        break;
    case LP_PROBE_STREAMS:
        set_share(probe, STREAMS_SHARE);
        probe->width = WIDTH_MAX;
        begin_streams(probe);
        break;
    case LP_PROBE_ENDINGS:
        begin_endings(probe);
        break;
    case LP_PROBE_REST:
        begin_rest(probe);
        break;
    default:
        break;
    }
}

static void enter(struct lp_probe *probe, enum lp_probe_phase phase)
{
    probe->seen.is_cut_short |= probe->task_next < probe->task_count;
    clear_tasks(probe);
    probe->phase = phase;
    begin_phase(probe);
    tell(probe);
}

/* The phase is through: which one comes next. */
static void leave_phase(struct lp_probe *probe)
{
    struct lp_seen *seen = &probe->seen;
    bool is_silent = seen->discover.is_connected && seen->discover.error == LP_ETIMEOUT;
    bool is_nobody_there =
        probe->phase == LP_PROBE_DISCOVER && !seen->discover.status && !is_silent;
    bool is_first = probe->phase == LP_PROBE_FIRST;
    bool is_modern_wish = lp_fetcher_target(probe->args.fetcher)->era == LP_ERA_WISH_MODERN;
    if (is_nobody_there || (probe->phase == LP_PROBE_DISCOVER && is_modern_wish)) {
        seen->opening = seen->discover;
        look_elsewhere(probe);
    } else if (is_first && !seen->is_open) {
        look_elsewhere(probe);
    } else if (is_first && seen->is_old_sse && !probe->has_begun_sse) {
        probe->has_begun_sse = true;
        enter(probe, LP_PROBE_FIRST);
    } else if (probe->phase == LP_PROBE_MORE && plan_more(probe)) {
        tell(probe);
    } else if (probe->phase == LP_PROBE_REST ||
        (probe->phase == LP_PROBE_ENDINGS && !wants_rest(probe))) {
        end_probe(probe);
    } else {
        enter(probe, probe->phase + 1);
    }
    lp_probe_advance(probe);
}

static void begin_task(struct lp_probe *probe)
{
    if (probe->phase == LP_PROBE_ROWS || probe->phase == LP_PROBE_ARMS)
        choose_width(probe);
    const struct lp_probe_task *task = &probe->tasks[probe->task_next++];
    if (probe->seen.is_old_sse || task->job == LP_JOB_BESIDE)
        lp_probe_sse_begin(probe, task, task->job == LP_JOB_BESIDE);
    else
        lp_probe_session_begin(probe, task);
    tell(probe);
}

void lp_probe_advance(struct lp_probe *probe)
{
    if (probe->is_over)
        return;
    bool has_task = true;
    while (has_task && !probe->is_over) {
        has_task = probe->task_next < probe->task_count && probe->running < probe->width &&
            !lp_probe_is_late(probe);
        if (has_task)
            begin_task(probe);
    }
    bool is_late = lp_probe_is_late(probe) || probe->task_next == probe->task_count;
    if (!probe->is_over && !probe->running && !probe->questions && is_late)
        leave_phase(probe);
}

/* --- the beginning and the end --- */

static void on_alarm(void *ctx)
{
    struct lp_probe *probe = ctx;
    probe->seen.is_cut_short = true;
    probe->seen.left += lp_probe_sessions_left(probe);
    end_probe(probe);
}

static void put_unknown_id(struct lp_probe *probe)
{
    unsigned char bytes[16];
    char *p = probe->unknown_id;
    lp_entropy_bytes(&probe->entropy, bytes, sizeof bytes);
    bytes[6] = (unsigned char)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3F) | 0x80);
    for (int i = 0; i < 16; i++)
        p += snprintf(p, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

int lp_probe_new(const struct lp_probe_args *args, struct lp_probe **ret)
{
    LP_ASSERT(args->sessions && args->calls && args->calls <= LP_SEEN_CALLS_MAX && args->over);
    struct lp_probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return LP_ENOMEM;
    probe->args = *args;
    probe->seen.has_jar = args->has_jar;
    probe->seen.sources = args->source_count;
    probe->width = 1;
    probe->alarm.fire = on_alarm;
    probe->alarm.ctx = probe;
    lp_list_init(&probe->sessions);
    lp_list_init(&probe->sse_sessions);
    lp_asker_init(&probe->asker, args->fetcher);
    lp_entropy_init(&probe->entropy, args->seed);
    put_unknown_id(probe);
    lp_seen_text(probe->version, sizeof probe->version, LP_SPAN("2025-11-25"));
    *ret = probe;
    return LP_OK;
}

void lp_probe_free(struct lp_probe *probe)
{
    if (!probe)
        return;
    lp_fetcher_timer_cancel(probe->args.fetcher, &probe->alarm);
    lp_probe_sse_free(probe);
    lp_asker_fini(&probe->asker);
    lp_probe_sessions_free(probe);
    free(probe);
}

/* What the user knows of transport and era is not asked. */
static void begin_as_wished(struct lp_probe *probe)
{
    const struct lp_target *target = lp_fetcher_target(probe->args.fetcher);
    probe->is_transport_given = target->transport != LP_TRANSPORT_AUTO;
    probe->has_looked = probe->is_transport_given;
    if (target->transport == LP_TRANSPORT_SSE) {
        probe->phase = LP_PROBE_FIRST;
        lp_probe_ask_old_sse(probe);
    } else {
        enter(probe, target->era == LP_ERA_WISH_LEGACY ? LP_PROBE_QUESTIONS : LP_PROBE_DISCOVER);
    }
}

void lp_probe_start(struct lp_probe *probe)
{
    uint64_t usual = LP_PROBE_SESSIONS * LP_PROBE_CALLS;
    uint64_t asked = (uint64_t)probe->args.sessions * probe->args.calls;
    uint64_t budget_ms = LP_PROBE_BUDGET_MS * (asked > usual ? asked : usual) / usual;
    probe->budget_us = budget_ms * 1000;
    probe->started_us = now_us(probe);
    set_share(probe, ROWS_SHARE);
    if (lp_fetcher_timer_set(
            probe->args.fetcher, &probe->alarm, probe->budget_us + GRACE_MS * 1000))
        probe->is_hurried = true;
    begin_as_wished(probe);
    lp_probe_advance(probe);
}

void lp_probe_hurry(struct lp_probe *probe)
{
    probe->is_hurried = true;
    if (probe->phase == LP_PROBE_REST)
        lp_probe_rest_hurry(probe);
    lp_probe_advance(probe);
}

const struct lp_seen *lp_probe_seen(const struct lp_probe *probe)
{
    return &probe->seen;
}
