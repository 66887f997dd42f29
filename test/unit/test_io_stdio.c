/* Proves what stdio.c promises of LP_EP_STDIO: it is a connection like any other, whatever the
 * descriptors 0 and 1 are, and leaves them as it found them. */
#include "io_harness.h"

#include <sys/ioctl.h>
#include <termios.h>

struct fixture {
    struct engine *e;
    int kept[2]; /* the test program's own descriptors 0 and 1 */
    int in, out; /* the far ends: what is written to `in` is read from 0 */
    struct lp_buf written;
};

/* Gives the two descriptors their places; they are closed here. */
static void put_in_place(int in, int out)
{
    assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    close(in);
    if (out != in)
        close(out);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)fflush(stdout);
    f->e = engine_plain();
    for (int i = 0; i < 2; i++)
        f->kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
    lp_buf_init(&f->written, (size_t)64 << 20);
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    put_in_place(in[0], out[1]);
    f->in = in[1];
    f->out = out[0];
    assert_int_equal(fcntl(f->out, F_SETFL, O_NONBLOCK), 0);
    *state = f;
    return 0;
}

static void close_far(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->e)
        engine_free(f->e);
    put_in_place(f->kept[0], f->kept[1]);
    close_far(&f->in);
    close_far(&f->out);
    lp_buf_release(&f->written);
    free(f);
    return 0;
}

static void open_stdio(struct fixture *f)
{
    (void)connect_out(f->e, (struct lp_endpoint){.kind = LP_EP_STDIO});
    assert_int_equal(f->e->count, 0);
    TURN_UNTIL(f->e, f->e->count > 0);
    assert_int_equal(f->e->events[0].kind, LP_EV_CONNECTED);
    assert_int_equal(f->e->events[0].conn, f->e->conn);
}

static void put_in(struct fixture *f, const char *text)
{
    assert_int_equal(write(f->in, text, strlen(text)), (ssize_t)strlen(text));
}

/* Turns the loop until `len` bytes have come out at the far end. */
static void take_out(struct fixture *f, size_t len)
{
    char room[65536];
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (f->written.len < len) {
        turn(f->e);
        ssize_t n = read(f->out, room, sizeof room);
        if (n > 0)
            assert_int_equal(lp_buf_append(&f->written, lp_span(room, (size_t)n)), LP_OK);
        else
            usleep(200);
        assert_true(lp_clock_mono_us() < until_us);
    }
    assert_int_equal(f->written.len, len);
}

static void pipes_carry_bytes_both_ways(void **state)
{
    struct fixture *f = *state;
    open_stdio(f);
    put_in(f, "{\"id\":1}\n");
    TURN_UNTIL(f->e, f->e->got.len == 9);
    assert_span(lp_buf_span(&f->e->got), "{\"id\":1}\n");
    assert_int_equal(write_span(f->e, LP_SPAN("answer\n")), 7);
    take_out(f, 7);
    assert_span(lp_buf_span(&f->written), "answer\n");
    put_in(f, "last");
    close_far(&f->in);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_span(lp_buf_span(&f->e->got), "{\"id\":1}\nlast");
    assert_int_equal(write_span(f->e, LP_SPAN("!")), 1); /* writing still works */
    take_out(f, 8);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

static void what_is_asked_before_connected_is_kept(void **state)
{
    struct fixture *f = *state;
    (void)connect_out(f->e, (struct lp_endpoint){.kind = LP_EP_STDIO});
    assert_int_equal(write_span(f->e, LP_SPAN("early")), 0);
    assert_int_equal(drain_span(f->e, LP_SPAN("early")), LP_OK);
    pause_conn(f->e, true);
    put_in(f, "unwanted");
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
    take_out(f, 5);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    pause_conn(f->e, false);
    TURN_UNTIL(f->e, f->e->got.len == 8);
}

/* Two readers of one standard input, and a close before the outcome that was never told. */
static void there_is_one_in_a_loops_life(void **state)
{
    struct fixture *f = *state;
    struct lp_action action = {.kind = LP_ACT_CONNECT, .u.connect.kind = LP_EP_STDIO};
    (void)connect_out(f->e, action.u.connect);
    assert_int_equal(act(f->e, action), LP_EEXISTS);
    close_conn(f->e, LP_CLOSE_NOW);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->count, 0);
    assert_int_equal(f->e->loop->conns.live_count, 0);
    assert_int_equal(act(f->e, action), LP_EEXISTS);
}

static void a_loop_without_room_says_so(void **state)
{
    struct engine *e = engine_new(&(struct lp_loop_args){.conn_max = 1});
    struct lp_action action = {.kind = LP_ACT_CONNECT, .u.connect = tcp_endpoint("::1", 9, 0)};
    assert_true(act(e, action) > 0);
    action.u.connect.kind = LP_EP_STDIO;
    assert_int_equal(act(e, action), LP_ELIMIT);
    engine_free(e);
    (void)state;
}

static void no_descriptor_is_a_limit_of_ours(void **state)
{
    struct fixture *f = *state;
    struct rlimit kept, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = kept.rlim_max};
    close(next);
    (void)connect_out(f->e, (struct lp_endpoint){.kind = LP_EP_STDIO});
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    TURN_UNTIL(f->e, f->e->count == 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    assert_int_equal(f->e->events[0].kind, LP_EV_CONNECT_FAILED);
    assert_int_equal(f->e->events[0].u.error, LP_ELIMIT);
}

static void a_reader_that_goes_away_is_broken(void **state)
{
    struct fixture *f = *state;
    open_stdio(f);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
    close_far(&f->out); /* nothing is written: it is noticed all the same */
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->events[f->e->count - 1].u.error, LP_EBROKEN);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
}

static void a_reader_that_goes_away_during_a_drain_is_broken(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 20];
    open_stdio(f);
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    turn_for_ms(f->e, 20);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    close_far(&f->out);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
}

/* A directory is the one thing that can be opened and not be read. */
static void an_input_that_fails_is_broken(void **state)
{
    struct fixture *f = *state;
    put_in_place(open("/", O_RDONLY | O_CLOEXEC), fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    open_stdio(f);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->counts[LP_EV_EOF], 0);
    assert_int_equal(f->e->events[f->e->count - 1].u.error, LP_EIO);
}

static void a_full_disk_is_no_reader_that_left(void **state)
{
    struct fixture *f = *state;
    put_in_place(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), open("/dev/full", O_WRONLY | O_CLOEXEC));
    open_stdio(f);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), 1);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->events[f->e->count - 1].u.error, LP_EIO);
}

static void pausing_holds_back_who_writes_to_us(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    assert_int_equal(fcntl(f->in, F_SETFL, O_NONBLOCK), 0);
    open_stdio(f);
    pause_conn(f->e, true);
    size_t sent = 0;
    for (int idle = 0; idle < 20;) {
        ssize_t n = write(f->in, chunk, sizeof chunk);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        turn_for_ms(f->e, 1);
    }
    assert_in_range(sent, 1, 4 << 20);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    close_far(&f->in);
    pause_conn(f->e, false);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_int_equal(f->e->got.len, sent);
}

static void a_reader_that_does_not_read_holds_us_back(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    open_stdio(f);
    size_t taken = 0;
    for (int idle = 0; idle < 20;) {
        int64_t n = write_span(f->e, lp_span(chunk, sizeof chunk));
        assert_true(n >= 0);
        taken += (size_t)n;
        idle = n > 0 ? 0 : idle + 1;
        turn_for_ms(f->e, 1);
    }
    assert_in_range(taken, 1, 4 << 20);
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    take_out(f, taken + sizeof chunk);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
}

static void flags_are_left_alone(void **state)
{
    struct fixture *f = *state;
    /* Without a blocking flag, as another process may have left them, it works too. */
    assert_int_equal(fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK), 0);
    static char chunk[1 << 18];
    open_stdio(f);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    take_out(f, sizeof chunk);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

static int temporary_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* `limpet connect <requests >>answers`: epoll takes neither. */
static void files_are_read_and_appended_to(void **state)
{
    struct fixture *f = *state;
    int in = temporary_file(), out = temporary_file();
    assert_int_equal(write(in, "one\ntwo\n", 8), 8);
    assert_int_equal(lseek(in, 4, SEEK_SET), 4); /* what was read before is not read again */
    assert_int_equal(write(out, "old ", 4), 4);
    put_in_place(in, fcntl(out, F_DUPFD_CLOEXEC, 3));
    open_stdio(f);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_span(lp_buf_span(&f->e->got), "two\n");
    static char chunk[1 << 20];
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
    close_conn(f->e, LP_CLOSE_NOW);
    engine_free(f->e); /* waits until all is written */
    f->e = NULL;
    assert_int_equal(lseek(out, 0, SEEK_END), (off_t)(4 + sizeof chunk));
    close(out);
}

static void dev_null_is_an_end(void **state)
{
    struct fixture *f = *state;
    put_in_place(open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC));
    open_stdio(f);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_int_equal(write_span(f->e, LP_SPAN("into nothing")), 12);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

/* As Node gives them to its children. */
static void sockets_are_read_and_written(void **state)
{
    struct fixture *f = *state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    put_in_place(pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3));
    close_far(&f->in);
    f->in = pair[1];
    open_stdio(f);
    put_in(f, "ping");
    TURN_UNTIL(f->e, f->e->got.len == 4);
    assert_int_equal(write_span(f->e, LP_SPAN("pong")), 4);
    char room[8];
    assert_int_equal(recv(pair[1], room, 4, MSG_WAITALL), 4);
    assert_memory_equal(room, "pong", 4);
    assert_int_equal(shutdown(pair[1], SHUT_WR), 0); /* half a close is no break */
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
    close_far(&f->in);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
}

static void terminals_are_read_by_lines(void **state)
{
    struct fixture *f = *state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    struct termios modes;
    assert_int_equal(tcgetattr(slave, &modes), 0);
    modes.c_lflag &= ~(tcflag_t)ECHO;
    modes.c_oflag &= ~(tcflag_t)OPOST;
    assert_int_equal(tcsetattr(slave, TCSANOW, &modes), 0);
    put_in_place(slave, fcntl(slave, F_DUPFD_CLOEXEC, 3));
    close_far(&f->in);
    close_far(&f->out);
    f->in = master;
    open_stdio(f);
    put_in(f, "typed\n");
    TURN_UNTIL(f->e, f->e->got.len == 6);
    assert_span(lp_buf_span(&f->e->got), "typed\n");
    assert_int_equal(write_span(f->e, LP_SPAN("shown")), 5);
    char room[8];
    ssize_t n = 0;
    while (n < 5)
        n += read(master, room + n, sizeof room - (size_t)n);
    assert_memory_equal(room, "shown", 5);
    put_in(f, "\x04"); /* control-D */
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_int_equal(write_span(f->e, LP_SPAN("more")), 4);
    turn_for_ms(f->e, 5);
    close_far(&f->in); /* the terminal is closed */
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
}

static void linger_ends_when_all_is_written(void **state)
{
    struct fixture *f = *state;
    open_stdio(f);
    put_in(f, "too late");
    assert_int_equal(write_span(f->e, LP_SPAN("answer")), 6);
    uint64_t begin_us = lp_clock_mono_us();
    close_conn(f->e, LP_CLOSE_LINGER);
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    assert_true(lp_clock_mono_us() - begin_us < 1500000);
    take_out(f, 6);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

static void a_reader_that_goes_away_ends_a_linger(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 17];
    open_stdio(f);
    assert_true(write_span(f->e, lp_span(chunk, sizeof chunk)) > 0);
    turn_for_ms(f->e, 5);
    uint64_t begin_us = lp_clock_mono_us();
    close_conn(f->e, LP_CLOSE_LINGER);
    close_far(&f->out);
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    assert_true(lp_clock_mono_us() - begin_us < 1500000);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

/* Nobody reads: the end of the process is not held up for ever. */
static void freeing_the_loop_waits_two_seconds_at_most(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 17];
    open_stdio(f);
    assert_true(write_span(f->e, lp_span(chunk, sizeof chunk)) > 0);
    turn_for_ms(f->e, 5);
    uint64_t begin_us = lp_clock_mono_us();
    engine_free(f->e);
    f->e = NULL;
    uint64_t took_us = lp_clock_mono_us() - begin_us;
    assert_in_range(took_us, 1000000, 5000000);
    close_far(&f->out); /* the thread that was left behind ends now */
    usleep(20000);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(pipes_carry_bytes_both_ways),
        T(what_is_asked_before_connected_is_kept),
        T(there_is_one_in_a_loops_life),
        T(a_loop_without_room_says_so),
        T(no_descriptor_is_a_limit_of_ours),
        T(a_reader_that_goes_away_is_broken),
        T(a_reader_that_goes_away_during_a_drain_is_broken),
        T(an_input_that_fails_is_broken),
        T(a_full_disk_is_no_reader_that_left),
        T(pausing_holds_back_who_writes_to_us),
        T(a_reader_that_does_not_read_holds_us_back),
        T(flags_are_left_alone),
        T(files_are_read_and_appended_to),
        T(dev_null_is_an_end),
        T(sockets_are_read_and_written),
        T(terminals_are_read_by_lines),
        T(linger_ends_when_all_is_written),
        T(a_reader_that_goes_away_ends_a_linger),
        T(freeing_the_loop_waits_two_seconds_at_most),
    };
    (void)lp_process_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
