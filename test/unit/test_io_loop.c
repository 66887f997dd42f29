/* Proves the loop's own promises: timers never early, store answers, mail in order between threads,
 * configuration and stop, log lines, and the end after STOPPED. */
#include "io_harness.h"

#include <poll.h>

static int setup(void **state)
{
    *state = engine_plain();
    return 0;
}

static int teardown(void **state)
{
    engine_free(*state);
    return 0;
}

static void set_timer(struct engine *e, uint64_t at_us)
{
    struct lp_action action = {.kind = LP_ACT_TIMER, .u.timer_at_us = at_us};
    assert_int_equal(act(e, action), LP_OK);
}

static void a_timer_comes_once_and_never_early(void **state)
{
    struct engine *e = *state;
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t at_us = lp_clock_mono_us() + 1000 + i * 137;
        set_timer(e, at_us);
        TURN_UNTIL(e, e->counts[LP_EV_TIMER] == i + 1);
        assert_true(e->events[i].mono_us >= at_us);
        assert_true(e->events[i].mono_us < at_us + 500000);
    }
    turn_for_ms(e, 10);
    assert_int_equal(e->counts[LP_EV_TIMER], 20);
}

static void a_timer_is_replaced_and_taken_back(void **state)
{
    struct engine *e = *state;
    uint64_t now_us = lp_clock_mono_us();
    set_timer(e, now_us + 5000);
    turn(e);
    set_timer(e, now_us + 60000);
    turn_for_ms(e, 20);
    assert_int_equal(e->counts[LP_EV_TIMER], 0);
    set_timer(e, UINT64_MAX);
    turn_for_ms(e, 60);
    assert_int_equal(e->counts[LP_EV_TIMER], 0);
    set_timer(e, 0);
    assert_int_equal(e->counts[LP_EV_TIMER], 0);
    TURN_UNTIL(e, e->counts[LP_EV_TIMER] == 1);
}

static void timer_again_at_once(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_TIMER && e->count < 100)
        set_timer(e, 0);
}

static void a_timer_set_again_for_now_leaves_the_loop_turning(void **state)
{
    struct engine *e = *state;
    e->hook = timer_again_at_once;
    set_timer(e, 0);
    turn(e);
    turn(e);
    assert_true(e->counts[LP_EV_TIMER] >= 1 && e->counts[LP_EV_TIMER] <= 2);
    TURN_UNTIL(e, e->counts[LP_EV_TIMER] == 100);
}

/* Waits as somebody else's loop does, then turns. */
static void wait_and_turn(struct engine *e)
{
    struct pollfd fd = {.fd = lp_loop_fd(e->loop), .events = POLLIN};
    (void)poll(&fd, 1, lp_loop_timeout_ms(e->loop));
    lp_loop_turn(e->loop);
}

static void it_turns_within_the_loop_of_somebody_else(void **state)
{
    struct engine *e = *state;
    uint64_t at_us = lp_clock_mono_us() + 20000;
    lp_loop_turn(e->loop);
    assert_int_equal(lp_loop_timeout_ms(e->loop), -1);
    set_timer(e, at_us);
    assert_in_range(lp_loop_timeout_ms(e->loop), 1, 21);
    lp_loop_turn(e->loop);
    assert_int_equal(e->counts[LP_EV_TIMER], 0);
    while (!e->counts[LP_EV_TIMER])
        wait_and_turn(e);
    assert_true(e->events[0].mono_us >= at_us);
    assert_int_equal(lp_loop_config(e->loop, e), LP_OK);
    while (!e->counts[LP_EV_CONFIG])
        wait_and_turn(e);
}

static void ask_store(struct engine *e, uint64_t ticket)
{
    struct lp_action action = {.kind = LP_ACT_STORE, .u.store = {.ticket = ticket}};
    assert_int_equal(act(e, action), LP_OK);
}

static void ask_again_once(struct engine *e, const struct lp_event *event)
{
    if (event->u.store.ticket == 100)
        ask_store(e, 1000);
}

static void the_store_is_down(void **state)
{
    struct engine *e = *state;
    e->hook = ask_again_once;
    for (uint64_t ticket = 100; ticket < 140; ticket++)
        ask_store(e, ticket);
    TURN_UNTIL(e, e->counts[LP_EV_STORE_REPLY] == 41);
    for (uint32_t i = 0; i < 41; i++) {
        assert_int_equal(e->events[i].u.store.ticket, i < 40 ? 100 + i : 1000);
        assert_int_equal(e->events[i].u.store.status, LP_STORE_DOWN);
    }
}

static void an_unknown_action_is_refused(void **state)
{
    assert_int_equal(
        act(*state, (struct lp_action){.kind = (enum lp_action_kind)99}), LP_EUNSUPPORTED);
}

static int64_t mail(struct engine *e, uint32_t to, struct lp_span bytes)
{
    struct lp_action action = {.kind = LP_ACT_MAIL};
    action.u.mail.to = to;
    action.u.mail.bytes = bytes;
    return act(e, action);
}

static void mail_to_nobody_and_to_oneself(void **state)
{
    struct engine *e = *state;
    assert_int_equal(mail(e, 0, LP_SPAN("x")), LP_ENOT_FOUND);
    lp_loops_join(&e->loop, 1);
    assert_int_equal(mail(e, 1, LP_SPAN("x")), LP_ENOT_FOUND);
    assert_int_equal(mail(e, 0, LP_SPAN("to me")), LP_OK);
    assert_int_equal(mail(e, 0, LP_SPAN("")), LP_OK);
    assert_int_equal(e->count, 0);
    TURN_UNTIL(e, e->counts[LP_EV_MAIL] == 2);
    assert_span(lp_buf_span(&e->got), "to me");
    assert_int_equal(mail(e, 0, LP_SPAN("left lying")), LP_OK); /* freed with the loop */
}

/* Two engines in two threads send each other numbered letters, in bursts, until both have all. */

enum { LETTERS = 5000, BURST = 7 };

struct correspondent {
    struct engine *e;
    uint32_t sent;
    uint32_t expected;
    bool has_stopped;
};

static void send_burst(struct correspondent *c)
{
    for (int i = 0; i < BURST && c->sent < LETTERS; i++, c->sent++)
        assert_int_equal(
            mail(c->e, !c->e->loop->number, lp_span((char *)&c->sent, sizeof c->sent)), LP_OK);
}

static void on_letter(void *engine, const struct lp_event *event)
{
    struct correspondent *c = engine;
    switch (event->kind) {
    case LP_EV_CONFIG:
        assert_ptr_equal(event->u.config, "the config");
        break;
    case LP_EV_MAIL: {
        uint32_t number;
        assert_int_equal(event->u.mail.from, !c->e->loop->number);
        assert_int_equal(event->u.mail.bytes.len, sizeof number);
        memcpy(&number, event->u.mail.bytes.ptr, sizeof number);
        assert_int_equal(number, c->expected++);
        break;
    }
    case LP_EV_TIMER:
        break;
    case LP_EV_STOP:
        assert_false(c->has_stopped);
        c->has_stopped = true;
        assert_int_equal(act(c->e, (struct lp_action){.kind = LP_ACT_STOPPED}), LP_OK);
        return;
    default:
        fail();
    }
    send_burst(c);
    if (c->sent < LETTERS)
        set_timer(c->e, 0);
    else if (c->expected == LETTERS)
        assert_int_equal(lp_loop_stop(c->e->loop), LP_OK);
}

static void letters_between_two_threads_keep_their_order(void **state)
{
    struct correspondent c[2] = {0};
    struct lp_loop *loops[2];
    static const char *config = "the config";
    for (uint32_t i = 0; i < 2; i++) {
        c[i].e = engine_new(&(struct lp_loop_args){.number = i});
        lp_loop_attach(c[i].e->loop, &c[i], on_letter);
        loops[i] = c[i].e->loop;
    }
    lp_loops_join(loops, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(lp_loop_config(loops[i], config), LP_OK);
    assert_int_equal(lp_loops_run(loops, 2), LP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(c[i].expected, LETTERS);
        assert_true(c[i].has_stopped);
        engine_free(c[i].e);
    }
    (void)state;
}

static void count_stops(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_TIMER)
        assert_int_equal(lp_loop_end(e->loop), LP_OK);
}

static void stop_is_told_once_and_end_ends(void **state)
{
    struct engine *e = *state;
    e->hook = count_stops;
    assert_int_equal(lp_loop_stop(e->loop), LP_OK);
    assert_int_equal(lp_loop_stop(e->loop), LP_OK);
    set_timer(e, lp_clock_mono_us() + 10000);
    lp_loop_run(e->loop);
    assert_int_equal(e->counts[LP_EV_STOP], 1);
    assert_int_equal(e->counts[LP_EV_TIMER], 1);
}

static void stopped_at_stop(struct engine *e, const struct lp_event *event)
{
    if (event->kind != LP_EV_STOP)
        return;
    assert_int_equal(write_span(e, LP_SPAN("bye")), 3);
    close_conn(e, LP_CLOSE_LINGER);
    assert_int_equal(act(e, (struct lp_action){.kind = LP_ACT_STOPPED}), LP_OK);
    assert_int_equal(lp_loop_config(e->loop, e), LP_OK); /* too late: never told */
}

static void run_ends_after_stopped_and_lingering(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false);
    int fd = connect_peer(e, listener);
    e->hook = stopped_at_stop;
    assert_int_equal(lp_loop_stop(e->loop), LP_OK);
    uint64_t begin_us = lp_clock_mono_us();
    lp_loop_run(e->loop); /* the peer holds its side open: until the lingering is over */
    assert_true(lp_clock_mono_us() - begin_us >= 1900000);
    assert_int_equal(e->counts[LP_EV_STOP], 1);
    assert_int_equal(e->counts[LP_EV_CONFIG], 0);
    char text[8];
    assert_int_equal(recv(fd, text, sizeof text, 0), 3);
    close(fd);
    lp_listener_free(listener);
}

/* Log lines of the engine */

static int64_t log_line(struct engine *e, struct lp_span line)
{
    struct lp_action action = {.kind = LP_ACT_LOG, .u.log = {LP_LOG_INFO, line}};
    return act(e, action);
}

static void log_lines_reach_the_file(void **state)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-loop-log.%d", getpid());
    (void)unlink(path);
    struct lp_buf text;
    lp_buf_init(&text, (size_t)4 << 20);
    struct lp_log *log = NULL;
    assert_int_equal(lp_log_open(&(struct lp_log_args){.path = path}, &text, &log), LP_OK);
    struct engine *e = engine_new(&(struct lp_loop_args){.log = log});
    static char line[1000], too_long[LP_IO_LINES_BYTES];
    memset(line, 'l', sizeof line);
    for (int i = 0; i < 200; i++) /* more than a turn's buffer holds */
        assert_int_equal(log_line(e, lp_span(line, sizeof line)), LP_OK);
    turn(e);
    assert_int_equal(log_line(e, LP_SPAN("at the end of a turn")), LP_OK);
    assert_int_equal(log_line(e, lp_span(too_long, sizeof too_long)), LP_ELIMIT);
    engine_free(e);
    lp_log_close(log);
    assert_int_equal(lp_file_read(path, &text, &text), LP_OK);
    assert_int_equal(text.len, 200 * 1001 + 21);
    assert_true(lp_span_ends(lp_buf_span(&text), LP_SPAN("\nat the end of a turn\n")));
    lp_buf_release(&text);
    (void)unlink(path);
    assert_int_equal(log_line(*state, LP_SPAN("without a log")), LP_OK);
}

static void clocks_move_on_in_a_long_turn(void **state)
{
    struct engine *e = *state;
    uint64_t first_us = lp_io_now_us(e->loop);
    usleep(2000);
    assert_int_equal(lp_io_now_us(e->loop), first_us);
    for (int i = 0; i < LP_IO_CLOCK_EVENTS; i++)
        lp_io_emit(e->loop, &(struct lp_event){.kind = LP_EV_TIMER});
    assert_int_equal(e->events[LP_IO_CLOCK_EVENTS - 1].mono_us, first_us);
    lp_io_emit(e->loop, &(struct lp_event){.kind = LP_EV_TIMER});
    assert_true(e->events[LP_IO_CLOCK_EVENTS].mono_us >= first_us + 2000);
}

/* A loop that cannot be made says so, and the next try works. */
static void no_loop_without_descriptors(void **state)
{
    struct rlimit kept, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = kept.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct lp_loop *loop = lp_loop_new(&(struct lp_loop_args){0});
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    assert_null(loop);
    lp_loop_free(NULL);
    loop = lp_loop_new(&(struct lp_loop_args){0});
    assert_non_null(loop);
    lp_loop_free(loop);
    (void)state;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_timer_comes_once_and_never_early),
        T(a_timer_is_replaced_and_taken_back),
        T(a_timer_set_again_for_now_leaves_the_loop_turning),
        T(it_turns_within_the_loop_of_somebody_else),
        T(the_store_is_down),
        T(an_unknown_action_is_refused),
        T(mail_to_nobody_and_to_oneself),
        cmocka_unit_test(letters_between_two_threads_keep_their_order),
        T(stop_is_told_once_and_end_ends),
        T(run_ends_after_stopped_and_lingering),
        T(log_lines_reach_the_file),
        T(clocks_move_on_in_a_long_turn),
        cmocka_unit_test(no_loop_without_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
