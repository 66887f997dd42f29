/* One session of old SSE (call/probe_priv.h; wire document 3): a stream, and pings POSTed to the
 * endpoint that it announced, all at once, each over a connection of its own. A ping is allowed
 * before initialize, so nothing else is needed.
 *
 * A ping that reached the stream's replica is answered on the stream; one that went elsewhere gets
 * a 4xx, or 202 and silence, or no answer at all. The stream is the session: closing it ends it. */
#include <stdio.h>
#include <stdlib.h>

#include "call/probe_priv.h"
#include "wire/json.h"
#include "wire/member.h"

enum {
    BESIDE_CALLS = 8,
    POST_MS = 1200,
    WAIT_MS = 300, /* for answers on the stream, after the last POST */
    STREAM_MS = 2500,
    URL_MAX = 1024,
};

struct post {
    struct sse *owner;
    struct lp_ask *ask; /* NULL: answered */
    uint16_t distance;
    bool is_home;  /* the answer came on the stream */
    bool is_fault; /* 5xx */
};

struct sse {
    struct lp_list node; /* in probe->sse_sessions */
    struct lp_probe *probe;
    struct lp_probe_task task;
    struct lp_jar jar;
    struct lp_ask *stream;
    struct lp_fetcher_timer timer;
    bool is_beside;
    uint32_t opened_at;
    uint32_t count;
    uint32_t waiting; /* posts without an answer of their own */
    uint32_t home;
    char url[URL_MAX];
    struct post posts[LP_SEEN_CALLS_MAX];
};

static void sse_free(struct sse *s)
{
    lp_fetcher_timer_cancel(s->probe->args.fetcher, &s->timer);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->posts[i].ask)
            lp_ask_cancel(s->posts[i].ask);
    if (s->stream)
        lp_ask_cancel(s->stream);
    lp_list_remove(&s->node);
    lp_jar_fini(&s->jar);
    free(s);
}

static void end(struct sse *s)
{
    struct lp_probe *probe = s->probe;
    sse_free(s);
    probe->running--;
    lp_probe_advance(probe);
}

/* --- what came of it --- */

static enum lp_seen_mark mark_of(const struct post *post)
{
    if (post->is_home)
        return LP_MARK_OK;
    return post->is_fault ? LP_MARK_FAULT : LP_MARK_LOST;
}

static void note_row(struct sse *s)
{
    struct lp_seen_row *row = lp_seen_add_row(&s->probe->seen, s->task.arm, false);
    for (uint32_t i = 0; row && i < s->count; i++)
        lp_seen_add_call(row, mark_of(&s->posts[i]), s->posts[i].distance);
}

static void note_tally(struct sse *s)
{
    struct lp_seen_tally *tally = &s->probe->seen.sse;
    for (uint32_t i = 0; i < s->count; i++) {
        enum lp_seen_mark mark = mark_of(&s->posts[i]);
        tally->asked++;
        tally->fine += mark == LP_MARK_OK;
        tally->lost += mark == LP_MARK_LOST;
        tally->faults += mark == LP_MARK_FAULT;
    }
}

static void finish(void *ctx)
{
    struct sse *s = ctx;
    if (s->is_beside)
        note_tally(s);
    else
        note_row(s);
    end(s);
}

static void finish_if_all_home(struct sse *s)
{
    if (s->count && s->home == s->count && !s->waiting)
        finish(s);
}

/* --- POSTs --- */

static void on_posted(void *ctx, const struct lp_reply *reply)
{
    struct post *post = ctx;
    struct sse *s = post->owner;
    post->ask = NULL;
    post->is_fault = reply->answer.status >= 500 || reply->answer.status == 429;
    lp_seen_add_request(&s->probe->seen, reply->answer.status, post->is_fault);
    s->waiting--;
    if (!s->waiting &&
        lp_fetcher_timer_set(s->probe->args.fetcher, &s->timer, (uint64_t)WAIT_MS * 1000))
        finish(s);
    else
        finish_if_all_home(s);
}

static void start_post(struct sse *s, uint32_t number)
{
    char body[96];
    struct post *post = &s->posts[number];
    struct lp_probe *probe = s->probe;
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"ping\"}", number);
    struct lp_ask_args args = {.method = LP_METHOD_POST,
        .url = lp_span_str(s->url),
        .body = lp_span_str(body),
        .jar = s->task.arm == LP_ARM_COOKIE ? &s->jar : NULL,
        .timeout_ms = POST_MS,
        .done = on_posted,
        .ctx = post};
    if (s->task.arm == LP_ARM_ELSEWHERE)
        args.source = probe->args.sources[probe->source++ % probe->args.source_count];
    post->owner = s;
    post->ask = lp_ask_start(&probe->asker, &args);
    post->distance = (uint16_t)(probe->asker.sent - s->opened_at);
    s->waiting += post->ask != NULL;
}

static void start_posts(struct sse *s)
{
    uint32_t calls = s->is_beside ? BESIDE_CALLS : s->probe->args.calls;
    for (; s->count < calls; s->count++)
        start_post(s, s->count);
}

/* --- the stream --- */

/* The announced address, which must be of the server's own origin. */
static bool take_endpoint(struct sse *s, struct lp_span data)
{
    struct lp_uri ref, next;
    struct lp_buf text;
    const struct lp_target *target = lp_fetcher_target(s->probe->args.fetcher);
    lp_buf_init(&text, URL_MAX - 1);
    bool is_fine = lp_uri_parse(lp_span_trim(data), &ref) == LP_OK &&
        lp_uri_resolve(&target->uri, &ref, &text) == LP_OK &&
        lp_uri_parse(lp_buf_span(&text), &next) == LP_OK && lp_target_is_own(target, &next);
    if (is_fine) {
        memcpy(s->url, lp_buf_span(&text).ptr, text.len);
        s->url[text.len] = '\0';
    }
    lp_buf_release(&text);
    return is_fine;
}

static void take_answer(struct sse *s, struct lp_span data)
{
    uint64_t id;
    struct lp_span token = lp_member(data, LP_SPAN("id"));
    bool is_ours = lp_span_to_u64(token, &id) && id < s->count && !s->posts[id].is_home;
    bool is_answer =
        lp_member(data, LP_SPAN("result")).len || lp_member(data, LP_SPAN("error")).len;
    if (!is_ours || !is_answer)
        return;
    s->posts[id].is_home = true;
    s->home++;
}

/* Wakes the session outside of the stream's own callback. */
static void on_woken(void *ctx)
{
    struct sse *s = ctx;
    if (s->count)
        finish(s);
    else
        start_posts(s);
}

static void wake(struct sse *s, uint64_t after_us)
{
    s->timer.fire = on_woken;
    if (lp_fetcher_timer_set(s->probe->args.fetcher, &s->timer, after_us))
        s->probe->is_hurried = true; /* no memory: the budget's alarm ends it */
}

static void on_event(void *ctx, const struct lp_sse_event *event)
{
    struct sse *s = ctx;
    if (lp_span_eq(event->type, LP_SPAN("endpoint"))) {
        if (!s->url[0] && take_endpoint(s, event->data))
            wake(s, 0);
        return;
    }
    if (!event->has_data || !lp_json_is_whole(event->data))
        return;
    take_answer(s, event->data);
    if (s->count && s->home == s->count && !s->waiting)
        wake(s, 0);
}

/* It ended, or never began. */
static void on_stream_over(void *ctx, const struct lp_reply *reply)
{
    struct sse *s = ctx;
    struct lp_seen *seen = &s->probe->seen;
    s->stream = NULL;
    if (!s->is_beside && !reply->head_us) {
        seen->openings++;
        seen->opening_faults++;
    }
    if (s->count)
        finish(s);
    else
        end(s);
}

static void note_head_of(void *ctx, const struct lp_head *head)
{
    struct sse *s = ctx;
    lp_probe_note_head(s->probe, head);
    s->probe->seen.openings += !s->is_beside;
    s->probe->seen.opening_faults += !s->is_beside && head->status >= 500;
}

void lp_probe_sse_begin(struct lp_probe *probe, const struct lp_probe_task *task, bool is_beside)
{
    struct sse *s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->probe = probe;
    s->task = *task;
    s->is_beside = is_beside;
    s->timer.fire = on_woken;
    s->timer.ctx = s;
    lp_list_init(&s->node);
    lp_list_push_back(&probe->sse_sessions, &s->node);
    lp_jar_init(&s->jar, &lp_fetcher_target(probe->args.fetcher)->uri, LP_JAR_BYTES_MAX);
    struct lp_ask_args args = {.method = LP_METHOD_GET,
        .url = is_beside ? lp_span_str(probe->sse_url) : LP_SPAN(""),
        .jar = task->arm == LP_ARM_COOKIE ? &s->jar : NULL,
        .timeout_ms = STREAM_MS,
        .hold_ms = UINT32_MAX,
        .event = on_event,
        .head = note_head_of,
        .done = on_stream_over,
        .ctx = s};
    probe->running++;
    s->stream = lp_ask_start(&probe->asker, &args);
    s->opened_at = probe->asker.sent;
    if (!s->stream)
        end(s);
}

void lp_probe_sse_free(struct lp_probe *probe)
{
    while (!lp_list_empty(&probe->sse_sessions))
        sse_free(LP_CONTAINER(probe->sse_sessions.next, struct sse, node));
}
