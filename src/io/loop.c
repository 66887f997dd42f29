/* The loop (io/loop.h): clocks, timers, the order of a turn, and which file performs an action.
 *
 * A turn: alarm (heap timers) -> prepare (log lines out, alarm set, end?) -> poll (sockets, mail,
 * signals). All timers of the room stand in one heap with one libuv timer for the earliest; a timer
 * set to 0 is how "in the next turn" is said, so that nothing is ever told from within `perform`.
 * The engine's timer is always in the heap: setting it cannot fail. */
#include "io/loop.h"

#include <stdlib.h>
#include <time.h>

#include "io/loop_priv.h"

enum { CONN_MAX_DEFAULT = 65536 };

uint64_t lp_clock_mono_us(void)
{
    return uv_hrtime() / 1000;
}

uint64_t lp_clock_wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t lp_io_now_us(struct lp_loop *loop)
{
    if (loop->clock_left == 0) {
        loop->mono_us = lp_clock_mono_us();
        loop->wall_ms = lp_clock_wall_ms();
        loop->clock_left = LP_IO_CLOCK_EVENTS;
    }
    return loop->mono_us;
}

void lp_io_emit(struct lp_loop *loop, struct lp_event *event)
{
    if (loop->is_stopped || !loop->on_event)
        return;
    event->mono_us = lp_io_now_us(loop);
    event->wall_ms = loop->wall_ms;
    loop->clock_left--;
    loop->on_event(loop->engine, event);
}

/* The store: there is none yet, which is told in the next turn. */

static int64_t take_store(struct lp_loop *loop, uint64_t ticket)
{
    if (loop->store_count == loop->store_cap) {
        uint32_t cap = loop->store_cap ? loop->store_cap * 2 : 16;
        uint64_t *tickets = realloc(loop->store_tickets, cap * sizeof *tickets);
        if (!tickets)
            return LP_ENOMEM;
        loop->store_tickets = tickets;
        loop->store_cap = cap;
    }
    int err = lp_heap_set(&loop->timers, &loop->store_timer, 0);
    if (err)
        return err;
    loop->store_tickets[loop->store_count++] = ticket;
    return LP_OK;
}

static void answer_stores(struct lp_loop *loop)
{
    /* The engine may ask again while it is told: those answers wait for the turn after. */
    uint32_t count = loop->store_count;
    for (uint32_t i = 0; i < count; i++) {
        struct lp_event event = {.kind = LP_EV_STORE_REPLY};
        event.u.store.ticket = loop->store_tickets[i];
        event.u.store.status = LP_STORE_DOWN;
        lp_io_emit(loop, &event);
    }
    loop->store_count -= count;
    memmove(loop->store_tickets, loop->store_tickets + count,
        loop->store_count * sizeof *loop->store_tickets);
}

/* Timers */

static void set_engine_timer(struct lp_loop *loop, uint64_t at_us)
{
    int err = lp_heap_set(&loop->timers, &loop->engine_timer, at_us);
    LP_ASSERT(!err);
}

static void ring(struct lp_loop *loop, struct lp_timer *timer)
{
    switch ((enum lp_io_timer)timer->kind) {
    case LP_IO_TIMER_ENGINE:
        /* Held in the heap even while it is not set; see lp_loop_new. */
        set_engine_timer(loop, UINT64_MAX);
        lp_io_emit(loop, &(struct lp_event){.kind = LP_EV_TIMER});
        break;
    case LP_IO_TIMER_CONN:
        lp_io_conn_timeout(loop, LP_CONTAINER(timer, struct lp_io_conn, timer));
        break;
    case LP_IO_TIMER_DIAL:
        lp_io_dial_timeout(loop, timer);
        break;
    case LP_IO_TIMER_DOOR:
        lp_io_door_timeout(loop, timer);
        break;
    case LP_IO_TIMER_STORE:
        answer_stores(loop);
        break;
    }
}

static void on_alarm(uv_timer_t *alarm)
{
    struct lp_loop *loop = alarm->loop->data;
    loop->alarm_us = UINT64_MAX;
    loop->clock_left = 0;
    uint64_t now_us = lp_io_now_us(loop);
    /* As many as there are now: what is set again for "at once" waits for the next turn, so that an
     * engine which keeps doing so cannot starve the sockets. */
    for (uint32_t left = loop->timers.count; left; left--) {
        struct lp_timer *timer = lp_heap_due(&loop->timers, now_us);
        if (!timer)
            break;
        ring(loop, timer);
    }
}

static void set_alarm(struct lp_loop *loop)
{
    uint64_t next_us = lp_heap_next_us(&loop->timers);
    if (next_us == loop->alarm_us)
        return;
    loop->alarm_us = next_us;
    if (next_us == UINT64_MAX) {
        (void)uv_timer_stop(&loop->alarm);
        return;
    }
    /* libuv counts milliseconds of the same clock; rounded up, a timer never comes early. */
    uint64_t next_ms = next_us / 1000 + (next_us % 1000 != 0);
    uint64_t now_ms = uv_now(&loop->uv);
    (void)uv_timer_start(&loop->alarm, on_alarm, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

/* The log lines of a turn */

static void flush_lines(struct lp_loop *loop)
{
    if (loop->lines.len == 0)
        return;
    lp_log_take(loop->log, lp_buf_span(&loop->lines));
    lp_buf_clear(&loop->lines);
}

static int64_t log_line(struct lp_loop *loop, struct lp_span line)
{
    if (!loop->log)
        return LP_OK;
    if (line.len >= LP_IO_LINES_BYTES)
        return LP_ELIMIT;
    if (line.len >= lp_buf_room(&loop->lines))
        flush_lines(loop);
    char *room = NULL;
    int err = lp_buf_reserve(&loop->lines, line.len + 1, &room);
    if (err)
        return err;
    memcpy(room, line.ptr, line.len);
    room[line.len] = '\n';
    lp_buf_commit(&loop->lines, line.len + 1);
    return LP_OK;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct lp_loop *loop = prepare->loop->data;
    flush_lines(loop);
    set_alarm(loop);
    loop->clock_left = 0;
    if (loop->is_stopped && loop->lingering_count == 0 && !atomic_load(&loop->running_peers))
        uv_stop(&loop->uv);
}

/* Actions */

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct lp_loop *loop = ctx;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return lp_io_dial(loop, &action->u.connect);
    case LP_ACT_WRITE:
        return lp_io_conn_write(loop, action);
    case LP_ACT_DRAIN:
        return lp_io_conn_drain(loop, action);
    case LP_ACT_READ_OFF:
    case LP_ACT_READ_ON:
        return lp_io_conn_pause(loop, action->conn, action->kind == LP_ACT_READ_OFF);
    case LP_ACT_CLOSE:
        return lp_io_conn_close(loop, action->conn, action->u.close);
    case LP_ACT_TIMER:
        set_engine_timer(loop, action->u.timer_at_us);
        return LP_OK;
    case LP_ACT_MAIL:
        return lp_io_mail_send(loop, action->u.mail.to, action->u.mail.bytes);
    case LP_ACT_STORE:
        return take_store(loop, action->u.store.ticket);
    case LP_ACT_LOOK:
        return lp_io_look(loop, action->u.look.is_file, action->u.look.text);
    case LP_ACT_LOG:
        return log_line(loop, action->u.log.line);
    case LP_ACT_STOPPED:
        lp_io_doors_close(loop, true);
        loop->is_stopped = true;
        return LP_OK;
    }
    return LP_EUNSUPPORTED;
}

const struct lp_shell *lp_loop_shell(struct lp_loop *loop)
{
    return &loop->shell;
}

/* Life */

static int open_handles(struct lp_loop *loop)
{
    loop->uv.data = loop;
    int err = lp_io_mail_init(loop);
    if (err)
        return err;
    (void)uv_timer_init(&loop->uv, &loop->alarm);
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    return uv_prepare_start(&loop->prepare, on_prepare);
}

struct lp_loop *lp_loop_new(const struct lp_loop_args *args)
{
    struct lp_loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->number = args->number;
    loop->shell = (struct lp_shell){.ctx = loop, .perform = perform};
    loop->log = args->log;
    loop->trust = args->trust;
    loop->alarm_us = UINT64_MAX;
    loop->engine_timer.kind = LP_IO_TIMER_ENGINE;
    loop->store_timer.kind = LP_IO_TIMER_STORE;
    lp_heap_init(&loop->timers);
    lp_list_init(&loop->doors);
    lp_buf_init(&loop->lines, LP_IO_LINES_BYTES);
    lp_slab_init(&loop->conns, sizeof(struct lp_io_conn),
        args->conn_max ? args->conn_max : CONN_MAX_DEFAULT);
    loop->read_room = malloc(LP_IO_READ_BYTES);
    if (!loop->read_room || lp_heap_set(&loop->timers, &loop->engine_timer, UINT64_MAX) ||
        uv_loop_init(&loop->uv)) {
        lp_heap_fini(&loop->timers);
        free(loop->read_room);
        free(loop);
        return NULL;
    }
    if (open_handles(loop)) {
        lp_loop_free(loop);
        return NULL;
    }
    return loop;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void lp_loop_free(struct lp_loop *loop)
{
    if (!loop)
        return;
    loop->is_stopped = true; /* no more events */
    uint32_t cursor = 0;
    lp_id id;
    struct lp_io_conn *conn;
    while ((conn = lp_slab_next(&loop->conns, &cursor, &id)))
        lp_io_conn_drop(loop, conn);
    lp_io_stdio_fini(loop);
    lp_io_doors_close(loop, true);
    /* The connections, dials and doors free themselves in the callbacks of their closing handles.
     */
    uv_walk(&loop->uv, close_handle, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    int err = uv_loop_close(&loop->uv);
    LP_ASSERT(!err);
    flush_lines(loop);
    lp_io_mail_fini(loop);
    lp_slab_fini(&loop->conns);
    lp_heap_fini(&loop->timers);
    lp_buf_release(&loop->lines);
    free(loop->store_tickets);
    free(loop->read_room);
    free(loop);
}

void lp_loop_attach(struct lp_loop *loop, void *engine, lp_event_fn on_event)
{
    loop->engine = engine;
    loop->on_event = on_event;
}

void lp_loops_join(struct lp_loop *const *loops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        LP_ASSERT(loops[i]->number == i);
        loops[i]->peers = loops;
        loops[i]->peer_count = count;
    }
}

void lp_loop_run(struct lp_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    flush_lines(loop);
}

void lp_loop_turn(struct lp_loop *loop)
{
    loop->clock_left = 0; /* time has passed outside */
    uv_update_time(&loop->uv);
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    flush_lines(loop);
}

int lp_loop_fd(const struct lp_loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

int lp_loop_timeout_ms(struct lp_loop *loop)
{
    uv_update_time(&loop->uv);
    set_alarm(loop);
    return uv_backend_timeout(&loop->uv);
}

static void *run_thread(void *arg)
{
    struct lp_loop *loop = arg;
    lp_loop_run(loop);
    struct lp_loop *first = loop->peers[0];
    (void)atomic_fetch_sub(&first->running_peers, 1);
    (void)uv_async_send(&first->mail_bell);
    return NULL;
}

int lp_loops_run(struct lp_loop *const *loops, uint32_t count)
{
    LP_ASSERT(loops[0]->peers == loops);
    pthread_t *threads = calloc(count, sizeof *threads);
    uint32_t running = 1;
    atomic_store(&loops[0]->running_peers, count - 1);
    while (threads && running < count &&
        !pthread_create(&threads[running], NULL, run_thread, loops[running]))
        running++;
    int err = threads && running == count ? LP_OK : LP_ENOMEM;
    if (!err)
        lp_loop_run(loops[0]);
    for (uint32_t i = 1; threads && i < running; i++) {
        if (err && lp_loop_end(loops[i]))
            abort(); /* not even memory for the word to stop */
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
    return err;
}
