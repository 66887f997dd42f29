/* The bridge's life (call/bridge.h): one session after the other, for one host.
 *
 * Nothing that ends or begins a client happens within its callbacks: they set must_open and
 * must_send, and settle() acts at the end of the event. */
#include "call/bridge_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE_MAX = 1024, REFUSAL_MAX = 128 << 10, RETRY_FIRST_MS = 250, PAUSE_FIRST_MS = 1000 };

void lp_bridge_say(struct lp_bridge *b, const char *fmt, ...)
{
    char text[SENTENCE_MAX];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    LP_ASSERT(len >= 0);
    b->args.say(
        b->args.ctx, lp_span(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1));
}

/* --- opening --- */

static void fail_opening(struct lp_bridge *b, const struct lp_client_failure *why)
{
    LP_ASSERT(b->opener.len);
    b->state = LP_BRIDGE_NEW;
    lp_bridge_refuse_failed(b, b->opener, why, "");
    b->opener = lp_span(NULL, 0);
    lp_bridge_refuse_waiting(b, why);
    b->must_close |= b->input_has_ended;
}

void lp_bridge_open(struct lp_bridge *b)
{
    b->state = LP_BRIDGE_OPENING;
    b->must_open = true;
}

static const struct lp_client_ops CLIENT_OPS;

static int make_client(struct lp_bridge *b)
{
    struct lp_client_args args = {.fetcher = b->args.fetcher,
        .jar = b->args.jar,
        .capabilities = b->capabilities,
        .client_info = b->client_info,
        .version = b->offered,
        .prefers_legacy = true, /* as its host speaks */
        .ops = &CLIENT_OPS,
        .ctx = b};
    return lp_client_new(&args, &b->client);
}

/* At the end of an event, outside of the client's callbacks. */
static void open_now(struct lp_bridge *b)
{
    const struct lp_client_failure no_memory = {.kind = LP_FAILURE_LIMIT,
        .error = LP_ENOMEM,
        .cannot_have_run = true,
        .sentence = LP_SPAN("out of memory")};
    b->must_open = false;
    if (b->state == LP_BRIDGE_OPENING) {
        lp_client_free(b->client);
        b->client = NULL;
        if (make_client(b)) {
            fail_opening(b, &no_memory);
            return;
        }
    }
    if (lp_client_state(b->client) == LP_CLIENT_IDLE)
        lp_client_open(b->client);
}

void lp_bridge_reopen(struct lp_bridge *b)
{
    uint64_t now_us = lp_fetcher_now_us(b->args.fetcher);
    if (b->state != LP_BRIDGE_LOST)
        return;
    lp_fetcher_timer_cancel(b->args.fetcher, &b->pause);
    bool is_early = now_us < b->next_open_us;
    if (!is_early || lp_fetcher_timer_set(b->args.fetcher, &b->pause, b->next_open_us - now_us))
        b->must_open = true; /* or out of memory: at once */
}

/* A server that opens sessions and then does not know them must not be asked for one after the
 * other: from the second such session on there is a pause, and none is opened until a call wants
 * it (cases STA-08). */
static void note_loss(struct lp_bridge *b)
{
    uint64_t pause_ms = 0;
    if (b->state == LP_BRIDGE_LOST || b->state == LP_BRIDGE_CLOSING)
        return;
    b->state = LP_BRIDGE_LOST;
    b->opens = 0;
    if (b->fruitless < UINT8_MAX)
        b->fruitless++;
    if (b->fruitless > 1) {
        uint32_t doublings = b->fruitless - 2u;
        pause_ms = doublings < 8 ? (uint64_t)PAUSE_FIRST_MS << doublings : UINT64_MAX;
    }
    if (pause_ms > LP_BRIDGE_PAUSE_MAX_MS)
        pause_ms = LP_BRIDGE_PAUSE_MAX_MS;
    b->next_open_us = lp_fetcher_now_us(b->args.fetcher) + pause_ms * 1000;
    if (!pause_ms)
        lp_bridge_reopen(b);
}

static void on_pause_over(void *ctx)
{
    lp_bridge_reopen(ctx);
}

static void on_retry(void *ctx)
{
    struct lp_bridge *b = ctx;
    lp_bridge_reopen(b);
    b->must_send = true;
}

void lp_bridge_retry_later(struct lp_bridge *b, uint32_t tries)
{
    uint64_t wait_ms = (uint64_t)RETRY_FIRST_MS << (tries < LP_BRIDGE_TRIES_MAX ? tries : 0);
    lp_fetcher_timer_cancel(b->args.fetcher, &b->retry);
    if (lp_fetcher_timer_set(b->args.fetcher, &b->retry, wait_ms * 1000))
        b->must_send = true; /* out of memory: at once */
}

/* Another session with another version is another server: its host must begin again. */
static bool is_as_before(const struct lp_bridge *b, const struct lp_client_info *info)
{
    return info->era == b->era && lp_span_eq(info->version, lp_span_str(b->version));
}

static void remember(struct lp_bridge *b, const struct lp_client_info *info)
{
    b->era = info->era;
    (void)snprintf(
        b->version, sizeof b->version, "%.*s", (int)info->version.len, info->version.ptr);
}

static void on_opened(void *ctx, const struct lp_client_info *info)
{
    struct lp_bridge *b = ctx;
    bool is_first = b->state == LP_BRIDGE_OPENING;
    if (!is_first && !is_as_before(b, info)) {
        lp_bridge_say(b,
            "the session was lost, and the server now speaks %.*s in place of %s; start again",
            (int)info->version.len, info->version.ptr, b->version);
        b->has_failed = b->must_close = true;
        return;
    }
    b->state = LP_BRIDGE_OPEN;
    b->must_send = true;
    if (is_first) {
        remember(b, info);
        lp_bridge_welcome(b, info);
        return;
    }
    lp_bridge_say(
        b, "the session was lost; a new one is open, without what the old one remembered");
    lp_bridge_restore(b);
}

static void refuse_without_session(struct lp_bridge *b, const struct lp_client_failure *why)
{
    struct lp_client_failure told = *why;
    struct lp_buf words;
    lp_buf_init(&words, REFUSAL_MAX);
    if (!lp_buf_printf(&words, "the session was lost, and no new one could be opened: %.*s",
            (int)why->sentence.len, why->sentence.ptr))
        told.sentence = lp_buf_span(&words);
    lp_bridge_refuse_waiting(b, &told);
    lp_buf_release(&words);
}

/* Opening once more may help: nobody was there, or somebody in between says "not now". */
static bool is_passing(const struct lp_client_failure *why)
{
    bool is_busy = why->status == 429 || why->status == 502 || why->status == 503;
    return why->kind == LP_FAILURE_NETWORK || (why->kind == LP_FAILURE_STATUS && is_busy);
}

static void say_failure(
    struct lp_bridge *b, const char *before, const struct lp_client_failure *why)
{
    size_t left = 0;
    struct lp_span brief = lp_client_brief(why, &left);
    if (left)
        lp_bridge_say(b, "%s%.*s... (%zu bytes more)", before, (int)brief.len, brief.ptr, left);
    else
        lp_bridge_say(b, "%s%.*s", before, (int)brief.len, brief.ptr);
}

static void on_open_failed(void *ctx, const struct lp_client_failure *why)
{
    struct lp_bridge *b = ctx;
    if (b->state == LP_BRIDGE_CLOSING || b->state == LP_BRIDGE_OVER)
        return;
    if (b->state == LP_BRIDGE_OPENING) {
        say_failure(b, "", why);
        fail_opening(b, why);
        return;
    }
    if (is_passing(why) && ++b->opens < LP_BRIDGE_TRIES_MAX) {
        lp_bridge_retry_later(b, b->opens);
        return;
    }
    say_failure(b, "the session was lost and none could be opened: ", why);
    refuse_without_session(b, why);
    b->opens = 0; /* the next request tries again */
}

static void on_lost(void *ctx, const struct lp_client_failure *why)
{
    struct lp_bridge *b = ctx;
    (void)why;
    lp_bridge_unask_host(b, 0);
    note_loss(b);
}

static void on_note(void *ctx, struct lp_span sentence)
{
    lp_bridge_say(ctx, "%.*s", (int)sentence.len, sentence.ptr);
}

/* --- what the server says by itself --- */

static void on_notification(void *ctx, struct lp_span method, struct lp_span message)
{
    struct lp_bridge *b = ctx;
    if (lp_span_eq(method, LP_SPAN("notifications/subscriptions/acknowledged")))
        lp_bridge_acknowledged(b, message);
    else
        lp_lines_send(&b->lines, message);
}

static void on_asked(void *ctx, lp_id asked, struct lp_span method, struct lp_span params)
{
    lp_bridge_ask_host(ctx, asked, method, params);
}

static void on_asked_cancelled(void *ctx, lp_id asked)
{
    lp_bridge_unask_host(ctx, asked);
}

/* --- the end --- */

static void on_closed(void *ctx)
{
    struct lp_bridge *b = ctx;
    b->state = LP_BRIDGE_OVER;
}

static const struct lp_client_ops CLIENT_OPS = {
    .opened = on_opened,
    .failed = on_open_failed,
    .notification = on_notification,
    .asked = on_asked,
    .asked_cancelled = on_asked_cancelled,
    .lost = on_lost,
    .closed = on_closed,
    .note = on_note,
};

static void close_now(struct lp_bridge *b)
{
    if (b->state == LP_BRIDGE_CLOSING || b->state == LP_BRIDGE_OVER)
        return;
    b->state = LP_BRIDGE_CLOSING;
    b->must_open = b->must_send = false;
    lp_fetcher_timer_cancel(b->args.fetcher, &b->retry);
    lp_fetcher_timer_cancel(b->args.fetcher, &b->pause);
    if (b->client)
        lp_client_close(b->client);
    else
        b->state = LP_BRIDGE_OVER;
}

/* --- the frame --- */

void lp_bridge_settle(struct lp_bridge *b)
{
    bool is_ending = b->input_has_ended && !lp_bridge_is_busy(b) && !b->opener.len;
    if (b->must_close || is_ending)
        close_now(b);
    if (b->must_open)
        open_now(b);
    if (b->must_send && b->state == LP_BRIDGE_OPEN) {
        b->must_send = false;
        lp_bridge_send_waiting(b);
    }
    lp_lines_flush(&b->lines);
    if (b->state != LP_BRIDGE_OVER || !lp_lines_are_out(&b->lines) || b->has_ended)
        return;
    b->has_ended = true;
    lp_lines_fini(&b->lines);
    b->args.over(b->args.ctx, b->has_failed);
}

bool lp_bridge_event(struct lp_bridge *b, const struct lp_event *event)
{
    return lp_lines_event(&b->lines, event);
}

void lp_bridge_stop(struct lp_bridge *b)
{
    b->must_close = true;
}

int lp_bridge_new(const struct lp_bridge_args *args, struct lp_bridge **ret)
{
    struct lp_bridge *b = calloc(1, sizeof *b);
    if (!b)
        return LP_ENOMEM;
    b->args = *args;
    lp_list_init(&b->calls);
    lp_list_init(&b->asked);
    lp_list_init(&b->memos);
    b->retry = (struct lp_fetcher_timer){.fire = on_retry, .ctx = b};
    b->pause = (struct lp_fetcher_timer){.fire = on_pause_over, .ctx = b};
    *ret = b;
    return LP_OK;
}

void lp_bridge_free(struct lp_bridge *b)
{
    if (!b)
        return;
    lp_client_free(b->client);
    lp_fetcher_timer_cancel(b->args.fetcher, &b->retry);
    lp_fetcher_timer_cancel(b->args.fetcher, &b->pause);
    lp_bridge_calls_fini(b);
    lp_lines_fini(&b->lines);
    free(b->opening);
    free(b);
}

int lp_bridge_start(struct lp_bridge *b)
{
    return lp_lines_open(&b->lines, b->args.shell, &lp_bridge_lines_ops, b);
}
