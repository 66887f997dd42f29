/* Proves the way of each signal, in child processes, and the limits of the process. */
#include "io_harness.h"

struct told {
    int stop;
    int hangups;
    struct lp_loop *loop;
};

static void on_stop(void *ctx, int signum)
{
    ((struct told *)ctx)->stop = signum;
}

static void on_hangup(void *ctx)
{
    struct told *told = ctx;
    told->hangups++;
    (void)raise(SIGTERM);
}

/* Both engines hear of the stop; SIGHUP reaches the app and stops nothing. */
static void the_first_signal_stops_all_engines(void **state)
{
    (void)state;
    struct engine *e[2];
    struct lp_loop *loops[2];
    struct told told = {0};
    for (uint32_t i = 0; i < 2; i++) {
        e[i] = engine_new(&(struct lp_loop_args){.number = i});
        loops[i] = e[i]->loop;
    }
    lp_loops_join(loops, 2);
    struct lp_signals_args args = {.ctx = &told, .on_stop = on_stop, .on_hangup = on_hangup};
    assert_int_equal(lp_signals_open(loops[0], &args), LP_OK);
    assert_int_equal(raise(SIGHUP), 0);
    TURN_UNTIL(e[0], e[0]->counts[LP_EV_STOP] == 1);
    TURN_UNTIL(e[1], e[1]->counts[LP_EV_STOP] == 1);
    assert_int_equal(told.hangups, 1);
    assert_int_equal(told.stop, SIGTERM);
    engine_free(e[0]);
    engine_free(e[1]);
}

/* The child's engine never stops by itself; the exit status says how it ended. */
static void end_child(int first, int second, int want)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct engine *e = engine_plain();
        lp_loops_join(&e->loop, 1);
        if (lp_signals_open(e->loop, &(struct lp_signals_args){0}) || write(ready[1], "x", 1) != 1)
            _exit(3);
        (void)raise(SIGHUP); /* nobody wants it */
        TURN_UNTIL(e, e->counts[LP_EV_STOP] == 1);
        (void)!write(ready[1], "x", 1);
        turn_for_ms(e, 5000);
        _exit(4);
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(kill(child, first), 0);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(kill(child, second), 0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), want);
    close(ready[0]);
    close(ready[1]);
}

static void the_second_signal_ends_the_process(void **state)
{
    (void)state;
    end_child(SIGTERM, SIGINT, 128 + SIGINT);
    end_child(SIGINT, SIGTERM, 128 + SIGTERM);
}

static void stop_and_tell(struct engine *e, const struct lp_event *event)
{
    if (event->kind != LP_EV_STOP)
        return;
    if (e->loop->number == 0)
        assert_int_equal(act(e, (struct lp_action){.kind = LP_ACT_STOPPED}), LP_OK);
    assert_int_equal(write(*(int *)e->extra, "x", 1), 1);
}

/* Engine 0 is done, engine 1 is not: the second signal must still be heard. */
static void the_second_signal_is_heard_while_others_run(void **state)
{
    (void)state;
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct engine *e[2];
        struct lp_loop *loops[2];
        for (uint32_t i = 0; i < 2; i++) {
            e[i] = engine_new(&(struct lp_loop_args){.number = i});
            e[i]->hook = stop_and_tell;
            e[i]->extra = &told[1];
            loops[i] = e[i]->loop;
        }
        lp_loops_join(loops, 2);
        if (lp_signals_open(loops[0], &(struct lp_signals_args){0}) || raise(SIGTERM))
            _exit(3);
        _exit(lp_loops_run(loops, 2) ? 4 : 5);
    }
    char c;
    assert_int_equal(read(told[0], &c, 1), 1);
    assert_int_equal(read(told[0], &c, 1), 1);
    usleep(50000); /* loop 0 has nothing left to do by now */
    assert_int_equal(kill(child, SIGTERM), 0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    close(told[0]);
    close(told[1]);
}

static void the_process_is_set_up(void **state)
{
    (void)state;
    struct rlimit kept, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    low = (struct rlimit){.rlim_cur = 64, .rlim_max = kept.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(lp_process_setup(), kept.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(low.rlim_cur, kept.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    assert_int_equal(raise(SIGPIPE), 0); /* ignored: we are still here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_signal_stops_all_engines),
        cmocka_unit_test(the_second_signal_ends_the_process),
        cmocka_unit_test(the_second_signal_is_heard_while_others_run),
        cmocka_unit_test(the_process_is_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
