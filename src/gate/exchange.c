/* Exchanges: birth, the table of legal moves, time-outs and the one way of ending.
 *
 * Every exchange ends exactly once, in lp_exchange_over, with a named reason: the access line, the
 * counters and the release of what it held are there and nowhere else. */
#include "base/error.h"
#include "gate/engine_priv.h"

static void take_spares(struct lp_spares *spares, struct lp_exchange *x)
{
    lp_arena_init(&x->arena, LP_ARENA_MAX);
    lp_buf_init(&x->body, LP_BODY_HELD_MAX);
    if (spares->arena_count)
        x->arena = spares->arenas[--spares->arena_count];
    if (spares->body_count)
        x->body = spares->bodies[--spares->body_count];
}

bool lp_exchange_count_body(struct lp_engine *e, struct lp_exchange *x)
{
    size_t bytes = x->body.cap > LP_BODY_HELD_MAX ? x->body.cap : 0;
    if (bytes != x->large_bytes) {
        int64_t delta = (int64_t)bytes - (int64_t)x->large_bytes;
        e->large_bytes += (uint64_t)delta;
        x->large_bytes = bytes;
        lp_metrics_add(&e->metrics, LP_METRIC_LARGE_BODIES, delta);
    }
    bool is_alone = e->large_bytes == bytes;
    return !bytes || is_alone || e->large_bytes <= e->conf->large_bodies_max / e->count;
}

void lp_exchange_drop_body(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_spares *spares = &e->spares;
    bool is_kept =
        x->body.cap && x->body.cap <= LP_SPARE_BYTES_MAX && spares->body_count < LP_SPARES_MAX;
    if (is_kept) {
        lp_buf_clear(&x->body);
        x->body.max = LP_BODY_HELD_MAX;
        spares->bodies[spares->body_count++] = x->body;
        lp_buf_init(&x->body, LP_BODY_HELD_MAX);
    }
    lp_buf_release(&x->body);
    (void)lp_exchange_count_body(e, x);
}

static void drop_arena(struct lp_spares *spares, struct lp_arena *arena)
{
    bool is_kept = arena->used <= LP_SPARE_BYTES_MAX && spares->arena_count < LP_SPARES_MAX;
    if (!is_kept) {
        lp_arena_fini(arena);
        return;
    }
    lp_arena_reset(arena);
    spares->arenas[spares->arena_count++] = *arena;
}

/* What the access line and an error event still tell moves into the buffer of the body, whose own
 * use is over; without memory all of it stays where it is. */
void lp_exchange_drop_request(struct lp_engine *e, struct lp_exchange *x)
{
    if (!x->body_done || lp_leg_is_sending(x))
        return;
    struct lp_span *told[] = {&x->record.peer, &x->record.http_method, &x->record.path,
        &x->record.trace_id, &x->env.id, &x->env.task_id};
    enum { COUNT = sizeof told / sizeof *told };
    size_t bytes = 0;
    char *at;
    for (size_t i = 0; i < COUNT; i++)
        bytes += told[i]->len;
    if (x->large_bytes)
        lp_exchange_drop_body(e, x);
    lp_buf_clear(&x->body);
    if (lp_buf_reserve(&x->body, bytes, &at))
        return;
    for (size_t i = 0; i < COUNT; i++) {
        if (told[i]->len)
            memcpy(at, told[i]->ptr, told[i]->len);
        *told[i] = lp_span(at, told[i]->len);
        at += told[i]->len;
    }
    lp_buf_commit(&x->body, bytes);
    x->client_id = x->target = x->asked = x->owner = x->host = x->ticket.upstream_id =
        lp_span(NULL, 0);
    x->ticket.cookies = x->cookies = x->cookie = lp_span(NULL, 0);
    x->request = (struct lp_kept_head){.method = x->request.method};
    x->answer = NULL;
    drop_arena(&e->spares, &x->arena);
    lp_arena_init(&x->arena, LP_ARENA_MAX);
}

void lp_spares_fini(struct lp_spares *spares)
{
    while (spares->arena_count)
        lp_arena_fini(&spares->arenas[--spares->arena_count]);
    while (spares->body_count)
        lp_buf_release(&spares->bodies[--spares->body_count]);
}

struct lp_exchange *lp_exchange_new(struct lp_engine *e)
{
    lp_id id;
    struct lp_exchange *x = lp_slab_new(&e->exchanges, &id);
    if (!x)
        return NULL;
    x->id = id;
    x->begun_us = e->mono_us;
    take_spares(&e->spares, x);
    lp_buf_init(&x->held, LP_ANSWER_HELD_MAX);
    lp_list_init(&x->dying);
    x->timer = (struct lp_timer){.kind = LP_TIMER_EXCHANGE, .owner = id};
    x->comment_timer = (struct lp_timer){.kind = LP_TIMER_COMMENT, .owner = id};
    x->record = (struct lp_record){.wall_ms = e->wall_ms, .engine = e->number};
    lp_metrics_add(&e->metrics, LP_METRIC_REQUESTS, 1);
    lp_metrics_add(&e->metrics, LP_METRIC_REQUESTS_OPEN, 1);
    return x;
}

/* From each phase (row) the phases that may follow. */
#define TO(phase) (1u << LP_PHASE_##phase)
static const unsigned MOVES[] = {
    [LP_PHASE_READING] = TO(WAITING) | TO(OVER),
    [LP_PHASE_WAITING] = TO(WAITING) | TO(SENT) | TO(OVER),
    [LP_PHASE_SENT] = TO(WAITING) | TO(JUDGING) | TO(RELAYING) | TO(OVER),
    [LP_PHASE_JUDGING] = TO(RELAYING) | TO(REPLACING) | TO(OVER),
    [LP_PHASE_RELAYING] = TO(OVER),
    [LP_PHASE_REPLACING] = TO(WAITING) | TO(RELAYING) | TO(OVER),
    [LP_PHASE_OVER] = 0,
};

void lp_exchange_set_phase(struct lp_exchange *x, enum lp_phase phase)
{
    LP_ASSERT(MOVES[x->phase] & (1u << phase));
    x->phase = phase;
}

static void write_access_line(struct lp_engine *e, struct lp_exchange *x)
{
    if (!e->conf->access_log)
        return;
    struct lp_buf line;
    lp_buf_init(&line, 4096);
    struct lp_action action = {.kind = LP_ACT_LOG, .u.log.level = LP_LOG_ACCESS};
    if (!lp_record_write(&line, &x->record, e->conf->access_format == LP_LOG_JSON)) {
        action.u.log.line = lp_buf_span(&line);
        e->shell->perform(e->shell->ctx, &action);
    }
    lp_buf_release(&line);
}

void lp_exchange_over(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    LP_ASSERT(reason != LP_REASON_none && !x->down_open && !x->leg.open);
    lp_exchange_set_phase(x, LP_PHASE_OVER);
    x->reason = x->record.reason = reason;
    x->record.duration_us = e->mono_us - x->begun_us;
    lp_stream_fini(e, x);
    lp_heap_cancel(&e->timers, &x->timer);
    lp_metrics_reason(&e->metrics, reason);
    lp_metrics_add(&e->metrics, LP_METRIC_REQUESTS_OPEN, -1);
    if (x->record.status)
        lp_metrics_status(&e->metrics, x->record.status);
    write_access_line(e, x);
    lp_list_push_back(&e->dying, &x->dying);
}

void lp_exchange_bury(struct lp_engine *e)
{
    while (!lp_list_empty(&e->dying)) {
        struct lp_exchange *x = LP_CONTAINER(e->dying.next, struct lp_exchange, dying);
        lp_list_remove(&x->dying);
        lp_exchange_drop_body(e, x);
        lp_buf_release(&x->held);
        drop_arena(&e->spares, &x->arena);
        lp_slab_free(&e->exchanges, x->id);
    }
}

bool lp_exchange_is_mcp(const struct lp_exchange *x)
{
    return x->door == LP_DOOR_MCP || x->door == LP_DOOR_SSE;
}

bool lp_exchange_is_call(const struct lp_exchange *x)
{
    return x->request.method == LP_METHOD_POST && !x->env.is_batch && x->env.has_id &&
        x->env.method != LP_RPC_NONE;
}

/* Legacy: who leaves a POST has not cancelled it; the replica is read on within a bound. Leaving a
 * GET stream or a modern request ends it at the replica at once (requirements [G10]). */
static bool goes_on_without_client(const struct lp_exchange *x)
{
    return x->request.method == LP_METHOD_POST && x->era == LP_ERA_LEGACY && x->body_done &&
        x->leg.open;
}

void lp_exchange_client_left(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why)
{
    x->down_open = false;
    if (goes_on_without_client(x)) {
        x->client_left = true;
        x->end_reason = why;
        lp_heap_cancel(&e->timers, &x->comment_timer);
        lp_link_resume(&e->links, x->leg.up);
        lp_engine_arm(e, &x->timer, e->mono_us + LP_LEFT_US);
        return;
    }
    lp_leg_close(e, x);
    lp_exchange_over(e, x, why);
}

/* Events may be far apart; any other body has no reason to pause. */
void lp_exchange_await_body(struct lp_engine *e, struct lp_exchange *x)
{
    if (x->client_left)
        return; /* which has a limit of its own */
    if (x->is_sse)
        lp_heap_cancel(&e->timers, &x->timer);
    else if (!x->timer.index)
        lp_engine_arm(e, &x->timer, e->mono_us + lp_leg_silence_us(x));
}

/* Whether the replica has been silent for too long. Its turn moves with every piece, the timer does
 * not; and as long as the client has to send or to take something it is not the replica's turn. */
static bool is_too_silent(struct lp_engine *e, struct lp_exchange *x)
{
    if (x->phase == LP_PHASE_JUDGING && !lp_task_is_awaited(x))
        return true;
    if (!x->body_done || x->down_blocked)
        x->turn_us = e->mono_us;
    uint64_t due_us = x->turn_us + lp_leg_silence_us(x);
    if (due_us > e->mono_us)
        lp_engine_arm(e, &x->timer, due_us);
    return due_us <= e->mono_us;
}

/* The only timer of an exchange: the replica is silent in the middle of its answer or before it,
 * the 409's older stream did not yield, or a client that left was served long enough. */
void lp_exchange_timer(struct lp_engine *e, struct lp_exchange *x)
{
    if (x->client_left) {
        lp_leg_close(e, x);
        lp_exchange_over(e, x, x->end_reason);
        return;
    }
    if (x->asks_home) { /* what the ticket says is better than no answer */
        lp_cookies_loaded(e, x, false, lp_span(NULL, 0));
        return;
    }
    if (x->phase == LP_PHASE_REPLACING) {
        lp_response_yielded(e, x, x->replace_tries > 0);
        return;
    }
    bool has_head = x->phase == LP_PHASE_JUDGING || x->phase == LP_PHASE_RELAYING;
    if ((!has_head && x->phase != LP_PHASE_SENT) || !is_too_silent(e, x))
        return;
    lp_leg_replica(x)->late = true;
    lp_answer(e, x, has_head ? LP_REASON_upstream_stalled : LP_REASON_first_byte_timeout, NULL);
}

/* --- heads that outlive their codec --- */

/* `span`, which lies in `from`, as it lies in the copy `to`. */
static struct lp_span move_span(struct lp_span span, struct lp_span from, struct lp_span to)
{
    if (!span.ptr)
        return span;
    size_t at = (size_t)(span.ptr - from.ptr);
    LP_ASSERT(at <= from.len && span.len <= from.len - at);
    return lp_span(to.ptr + at, span.len);
}

int lp_head_keep(struct lp_exchange *x, const struct lp_head *head, struct lp_kept_head *ret)
{
    struct lp_span from = head->bytes;
    struct lp_span to;
    struct lp_field *fields = lp_arena_alloc(&x->arena, (head->field_count + 1) * sizeof *fields);
    if (!fields || lp_arena_dup(&x->arena, from, &to))
        return LP_ENOMEM;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        fields[i] = (struct lp_field){.name = move_span(field->name, from, to),
            .value = move_span(field->value, from, to),
            .id = field->id};
    }
    *ret = (struct lp_kept_head){.method = head->method,
        .method_name = move_span(head->method_name, from, to),
        .path = move_span(head->target, from, to),
        .status = head->status,
        .reason = move_span(head->reason, from, to),
        .body = head->body,
        .body_bytes = head->body_bytes,
        .field_count = head->field_count,
        .fields = fields};
    return LP_OK;
}

struct lp_span lp_kept_value(const struct lp_kept_head *head, enum lp_field_id id)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == id)
            return head->fields[i].value;
    return lp_span(NULL, 0);
}

bool lp_kept_is_named_by_connection(const struct lp_kept_head *head, struct lp_span name)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == LP_FIELD_CONNECTION &&
            lp_field_list_has(head->fields[i].value, name))
            return true;
    return false;
}

/* --- the client's callbacks --- */

static void client_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    lp_request_head(ctx, s, head);
}

static void client_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)s;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    LP_ASSERT(x); /* who is over has ended its stream, which says no more */
    lp_request_body(ctx, x, bytes);
}

static void client_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    (void)whole;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    LP_ASSERT(x);
    lp_request_end(ctx, x);
}

static void client_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    LP_ASSERT(x);
    x->down_blocked = false;
    x->turn_us = e->mono_us;
    lp_link_resume(&e->links, x->leg.up);
}

/* The client has ended its side. What is short or legacy is still answered; what waits for events
 * is left. */
static void client_gone_quiet(void *ctx, uint64_t tag, struct lp_stream s)
{
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    LP_ASSERT(x && x->down_open && (x->phase != LP_PHASE_READING || x->asks_home));
    if (goes_on_without_client(x))
        return;
    if (!x->is_stream_get && x->era == LP_ERA_LEGACY)
        return;
    lp_link_abort(&e->links, s);
    lp_exchange_client_left(e, x, LP_REASON_client_left);
}

static void client_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    if (x)
        lp_exchange_client_left(ctx, x, why);
}

static void client_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    if (!x) {
        x = lp_exchange_new(e);
        if (!x) {
            lp_link_abort(&e->links, s);
            return;
        }
        x->down = s;
        x->down_open = true;
        x->record.peer = lp_link_peer(&e->links, s.link);
        lp_link_set_tag(&e->links, s.link, x->id);
    }
    lp_request_refused(e, x, why);
}

static void client_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why;
}

const struct lp_message_ops lp_client_ops = {
    .head = client_head,
    .body = client_body,
    .end = client_end,
    .writable = client_writable,
    .left = client_gone_quiet,
    .reset = client_reset,
    .refused = client_refused,
    .closed = client_closed,
};
