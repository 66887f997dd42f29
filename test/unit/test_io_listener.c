/* Proves what listener.c and accept.c promise: in use is in use, every loop gets clients, stale
 * unix sockets, running out of descriptors, and stopping. */
#include "io_harness.h"

static struct lp_buf why;

static int setup(void **state)
{
    *state = engine_plain();
    lp_buf_init(&why, 1000);
    return 0;
}

static int teardown(void **state)
{
    engine_free(*state);
    lp_buf_release(&why);
    return 0;
}

static int try_listen(struct engine *e, struct lp_listener_args args, struct lp_listener **ret)
{
    lp_buf_clear(&why);
    return lp_listener_open(&args, &e->loop, 1, &why, ret);
}

static void assert_why(const char *want)
{
    lp_buf_append(&why, lp_span("", 1)) == LP_OK ? (void)0 : fail();
    if (!strstr(lp_buf_span(&why).ptr, want))
        fail_msg("\"%s\" does not say \"%s\"", lp_buf_span(&why).ptr, want);
}

static void a_second_start_is_told_in_use(void **state)
{
    struct engine *e = *state, *other = engine_plain();
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false), *second = NULL;
    struct lp_listener_args args = {
        .host = LP_SPAN("127.0.0.1"), .port = lp_listener_port(listener)};
    assert_int_equal(try_listen(other, args, &second), LP_EEXISTS);
    assert_why("the address is in use");
    args.host = LP_SPAN("0.0.0.0");
    assert_int_equal(try_listen(other, args, &second), LP_EEXISTS);
    engine_free(other);
    lp_listener_free(listener);
}

/* Also when the first start shares its port among its own loops; and each loop gets clients. */
static void loops_share_a_port_among_themselves_only(void **state)
{
    enum { LOOPS = 3, CLIENTS = 60 };
    struct engine *e[LOOPS];
    struct lp_loop *loops[LOOPS];
    for (uint32_t i = 0; i < LOOPS; i++) {
        e[i] = engine_new(&(struct lp_loop_args){.number = i});
        loops[i] = e[i]->loop;
    }
    struct lp_listener_args args = {.host = LP_SPAN("127.0.0.1")};
    struct lp_listener *listener = NULL, *second = NULL;
    assert_int_equal(lp_listener_open(&args, loops, LOOPS, &why, &listener), LP_OK);
    args.port = lp_listener_port(listener);
    assert_true(args.port > 0);
    assert_int_equal(try_listen(*state, args, &second), LP_EEXISTS);
    assert_int_equal(lp_listener_open(&args, loops, LOOPS, &why, &second), LP_EEXISTS);
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = dial_port(args.port);
    uint32_t total = 0;
    for (uint32_t i = 0; i < LOOPS; i++) {
        turn_for_ms(e[i], 20);
        assert_true(e[i]->counts[LP_EV_ACCEPTED] > 0);
        total += e[i]->counts[LP_EV_ACCEPTED];
    }
    assert_int_equal(total, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    for (uint32_t i = 0; i < LOOPS; i++)
        engine_free(e[i]);
    lp_listener_free(listener);
}

/* A restart right after a crash: the old connections are still closing (TIME_WAIT). */
static void connections_that_are_closing_do_not_hold_the_port(void **state)
{
    struct engine *e = engine_plain();
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false), *again = NULL;
    struct lp_listener_args args = {
        .host = LP_SPAN("127.0.0.1"), .port = lp_listener_port(listener)};
    int fd = connect_peer(e, listener);
    close_conn(e, LP_CLOSE_NOW);
    close(fd);
    engine_free(e);
    lp_listener_free(listener);
    assert_int_equal(try_listen(*state, args, &again), LP_OK);
    lp_listener_free(again);
}

static void ipv6_and_names(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "localhost", false);
    assert_true(lp_listener_port(listener) > 0);
    /* Whatever localhost is here, 127.0.0.1 is one of its addresses. */
    int fd = connect_peer(e, listener);
    assert_true(e->events[0].u.accepted.is_loopback);
    close(fd);
    lp_listener_free(listener);

    struct lp_listener_args args = {.host = LP_SPAN("::1")};
    struct lp_listener *six = NULL;
    int err = try_listen(e, args, &six);
    if (err == LP_EUNREACHABLE)
        skip(); /* a machine without IPv6 */
    assert_int_equal(err, LP_OK);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
        .sin6_port = htons(lp_listener_port(six)),
        .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t before = e->counts[LP_EV_ACCEPTED];
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    TURN_UNTIL(e, e->counts[LP_EV_ACCEPTED] == before + 1);
    assert_memory_equal(e->peer, "[::1]:", 6);
    assert_string_equal(e->local, lp_listener_text(six));
    close(fd);
    lp_listener_free(six);
}

static void a_wildcard_listener_tells_the_address_that_was_used(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "0.0.0.0", false);
    int fd = connect_peer(e, listener);
    char want[64];
    (void)snprintf(want, sizeof want, "127.0.0.1:%u", lp_listener_port(listener));
    assert_string_equal(e->local, want);
    assert_false(e->events[0].u.accepted.is_loopback);
    close(fd);
    lp_listener_free(listener);
}

static void bad_addresses_are_explained(void **state)
{
    static char path[200];
    memset(path, 'p', sizeof path - 1);
    const struct {
        struct lp_listener_args args;
        int error;
        const char *why;
    } rows[] = {
        {{.host = LP_SPAN("192.0.2.1")}, LP_EUNREACHABLE,
            "192.0.2.1:0: this machine has no such address; use one"},
        {{.host = LP_SPAN("no-such-host.invalid")}, LP_EUNREACHABLE,
            "the name is not known here; use an"},
        {{.host = LP_SPAN("")}, LP_EUNREACHABLE, "the name is not known here; use an"},
        {{.host = {path, 199}, .is_unix = true}, LP_EUNREACHABLE, "longer than 107 bytes"},
        {{.host = LP_SPAN("/tmp"), .is_unix = true}, LP_EIO, "a file that is no socket; remove it"},
        {{.host = LP_SPAN("/tmp/lp-none/x/y"), .is_unix = true}, LP_EIO,
            "its folder is not there; make it"},
        {{.host = LP_SPAN("/dev/null/x"), .is_unix = true}, LP_EIO, "Not a directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lp_listener *listener = NULL;
        assert_int_equal(try_listen(*state, rows[i].args, &listener), rows[i].error);
        assert_why(rows[i].why);
        assert_null(listener);
        lp_buf_clear(&why);
        assert_int_equal(lp_listener_probe(&rows[i].args, &why), rows[i].error);
        assert_why(rows[i].why);
    }
}

static void unix_path(char room[64])
{
    (void)snprintf(room, 64, "/tmp/lp-test-listen.%d", getpid());
    (void)unlink(room);
}

/* A probe says what a start would say, and leaves nothing behind: no port, no file, no hole. */
static void a_probe_leaves_nothing_behind(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false);
    struct lp_listener_args args = {
        .host = LP_SPAN("127.0.0.1"), .port = lp_listener_port(listener)};
    assert_int_equal(lp_listener_probe(&args, &why), LP_EEXISTS);
    assert_why("the address is in use");
    close(connect_peer(e, listener));
    lp_io_doors_close(e->loop, true);
    lp_listener_free(listener);
    assert_int_equal(lp_listener_probe(&args, &why), LP_OK);
    assert_int_equal(why.len, 0);
    char path[64];
    unix_path(path);
    args = (struct lp_listener_args){.host = lp_span_str(path), .is_unix = true};
    assert_int_equal(lp_listener_probe(&args, &why), LP_OK);
    assert_int_equal(access(path, F_OK), -1);
    struct lp_address at;
    assert_int_equal(lp_address_unix(lp_span_str(path), &at), LP_OK);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, &at.u.any, at.len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(lp_listener_probe(&args, &why), LP_EEXISTS);
    close(fd);
    assert_int_equal(lp_listener_probe(&args, &why), LP_OK);
    assert_int_equal(access(path, F_OK), 0); /* what a dead process left is for the start */
    assert_int_equal(unlink(path), 0);
}

static void a_low_port_needs_a_privilege(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lp_loop *loop = lp_loop_new(&(struct lp_loop_args){0});
        struct lp_listener_args args = {.host = LP_SPAN("127.0.0.1"), .port = 81};
        struct lp_listener *listener = NULL;
        if (!loop || (geteuid() == 0 && setuid(65534)))
            _exit(3);
        int err = lp_listener_open(&args, &loop, 1, &why, &listener);
        /* Some systems let everybody have low ports: then there is nothing to explain. */
        bool is_said = lp_span_search(lp_buf_span(&why), LP_SPAN("CAP_NET_BIND")) < why.len;
        lp_listener_free(listener);
        lp_loop_free(loop);
        lp_buf_release(&why);
        _exit(err == LP_OK || (err == LP_EIO && is_said) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Unix sockets */

static int dial_unix(const char *path)
{
    struct lp_address at;
    assert_int_equal(lp_address_unix(lp_span_str(path), &at), LP_OK);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &at.u.any, at.len), 0);
    return fd;
}

static void a_unix_listener_knows_its_clients(void **state)
{
    struct engine *e = *state;
    char path[64], want[72];
    unix_path(path);
    struct lp_listener *listener = listen_at(e, path, true);
    int fd = dial_unix(path);
    TURN_UNTIL(e, e->counts[LP_EV_ACCEPTED] == 1);
    (void)snprintf(want, sizeof want, "unix:%s", path);
    assert_string_equal(e->peer, "unix:");
    assert_string_equal(e->local, want);
    assert_string_equal(lp_listener_text(listener), want);
    assert_int_equal(lp_listener_port(listener), 0);
    assert_int_equal(e->events[0].u.accepted.unix_uid, geteuid());
    assert_true(e->events[0].u.accepted.is_loopback);
    peer_send(fd, "hi");
    TURN_UNTIL(e, e->got.len == 2);
    close_conn(e, LP_CLOSE_RESET);
    char c;
    assert_int_equal(recv(fd, &c, 1, 0), 0);
    close(fd);
    lp_listener_free(listener);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_stale_unix_socket_is_replaced_a_living_one_is_not(void **state)
{
    struct engine *e = *state;
    char path[64];
    unix_path(path);
    struct lp_address at;
    assert_int_equal(lp_address_unix(lp_span_str(path), &at), LP_OK);
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, &at.u.any, at.len), 0);
    close(dead);
    struct lp_listener *listener = listen_at(e, path, true), *second = NULL;
    struct lp_listener_args args = {.host = lp_span_str(path), .is_unix = true};
    assert_int_equal(try_listen(e, args, &second), LP_EEXISTS);
    assert_why("in use");
    assert_int_equal(access(path, F_OK), 0);
    lp_listener_free(listener);
}

static void loops_share_a_unix_socket(void **state)
{
    struct engine *e[2] = {engine_plain(), engine_plain()};
    struct lp_loop *loops[2] = {e[0]->loop, e[1]->loop};
    char path[64];
    unix_path(path);
    struct lp_listener_args args = {.host = lp_span_str(path), .is_unix = true};
    struct lp_listener *listener = NULL;
    assert_int_equal(lp_listener_open(&args, loops, 2, &why, &listener), LP_OK);
    for (int i = 0; i < 2; i++) {
        close(dial_unix(path));
        TURN_UNTIL(e[i], e[i]->counts[LP_EV_ACCEPTED] == 1);
    }
    turn(e[0]);
    engine_free(e[0]);
    engine_free(e[1]);
    lp_listener_free(listener);
    (void)state;
}

/* Too many */

static size_t lines_of(const char *path, struct lp_buf *text)
{
    lp_buf_clear(text);
    assert_int_equal(lp_file_read(path, text, text), LP_OK);
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += lp_buf_span(text).ptr[i] == '\n';
    return count;
}

/* Without descriptors a client is let in and closed, instead of the loop turning in vain; the log
 * says so once a second; afterwards everything works again. */
static void no_more_descriptors(void **state)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-emfile.%d", getpid());
    (void)unlink(path);
    struct lp_log *log = NULL;
    assert_int_equal(lp_log_open(&(struct lp_log_args){.path = path}, &why, &log), LP_OK);
    struct engine *e = engine_new(&(struct lp_loop_args){.log = log});
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false);
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = dial_port(lp_listener_port(listener));
    struct rlimit kept, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)fds[2] + 1, .rlim_max = kept.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);

    char c;
    ssize_t n = -1;
    uint64_t begin_us = lp_clock_mono_us();
    while (n < 0 && lp_clock_mono_us() - begin_us < 5000000) {
        turn(e);
        n = recv(fds[0], &c, 1, 0);
    }
    assert_int_equal(n, 0);                       /* turned away */
    assert_int_equal(recv(fds[1], &c, 1, 0), -1); /* waits: accepting pauses */
    while (recv(fds[1], &c, 1, 0) < 0 && lp_clock_mono_us() - begin_us < 5000000)
        turn(e);
    assert_true(lp_clock_mono_us() - begin_us >= 100000);
    assert_int_equal(e->counts[LP_EV_ACCEPTED], 0);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    TURN_UNTIL(e, e->counts[LP_EV_ACCEPTED] == 1);
    peer_send(fds[2], "x");
    TURN_UNTIL(e, e->counts[LP_EV_READ] == 1);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    engine_free(e);
    lp_log_close(log);
    lp_listener_free(listener);
    assert_int_equal(lines_of(path, &why), 1);
    assert_why("no more file descriptors");
    (void)unlink(path);
    (void)state;
}

static void the_ceiling_of_connections(void **state)
{
    struct engine *e = engine_new(&(struct lp_loop_args){.conn_max = 1});
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false);
    int first = connect_peer(e, listener);
    int second = dial_port(lp_listener_port(listener));
    char c;
    uint64_t begin_us = lp_clock_mono_us();
    while (recv(second, &c, 1, 0) < 0 && lp_clock_mono_us() - begin_us < 5000000)
        turn(e);
    assert_int_equal(e->counts[LP_EV_ACCEPTED], 1);
    assert_int_equal(recv(second, &c, 1, 0), 0);
    close_conn(e, LP_CLOSE_NOW);
    int third = connect_peer(e, listener);
    assert_int_equal(e->counts[LP_EV_ACCEPTED], 2);
    close(first);
    close(second);
    close(third);
    engine_free(e);
    lp_listener_free(listener);
    (void)state;
}

/* Stopping */

static bool is_refused(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = at_port(port);
    bool is_refused = connect(fd, (struct sockaddr *)&to, sizeof to) && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

/* Clients that wait in the backlog when a stop comes are taken, before the engine hears of it; the
 * admin listener stays open until the engine has said STOPPED. */
static void a_stop_takes_the_backlog_first(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false), *admin = NULL;
    struct lp_listener_args args = {.host = LP_SPAN("127.0.0.1"), .is_admin = true};
    assert_int_equal(try_listen(e, args, &admin), LP_OK);
    int fds[20];
    assert_int_equal(lp_loop_stop(e->loop), LP_OK);
    for (int i = 0; i < 20; i++)
        fds[i] = dial_port(lp_listener_port(listener));
    TURN_UNTIL(e, e->counts[LP_EV_STOP] == 1);
    assert_int_equal(e->counts[LP_EV_ACCEPTED], 20);
    assert_int_equal(e->events[20].kind, LP_EV_STOP);
    assert_true(is_refused(lp_listener_port(listener)));
    int fd = connect_peer(e, admin);
    assert_true(e->events[21].u.accepted.is_admin);
    assert_int_equal(act(e, (struct lp_action){.kind = LP_ACT_STOPPED}), LP_OK);
    assert_true(is_refused(lp_listener_port(admin)));
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    close(fd);
    lp_listener_free(listener);
    lp_listener_free(admin);
}

static void stopped_when_accepted(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_ACCEPTED)
        assert_int_equal(act(e, (struct lp_action){.kind = LP_ACT_STOPPED}), LP_OK);
}

static void stopped_in_the_middle_of_the_backlog(void **state)
{
    struct engine *e = *state;
    struct lp_listener *listener = listen_at(e, "127.0.0.1", false);
    struct lp_listener *other = listen_at(e, "127.0.0.1", false);
    e->hook = stopped_when_accepted;
    int fds[2] = {dial_port(lp_listener_port(listener)), dial_port(lp_listener_port(other))};
    assert_int_equal(lp_loop_stop(e->loop), LP_OK);
    lp_loop_run(e->loop);
    assert_int_equal(e->count, 1);
    close(fds[0]);
    close(fds[1]);
    lp_listener_free(listener);
    lp_listener_free(other);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_second_start_is_told_in_use),
        T(loops_share_a_port_among_themselves_only),
        T(connections_that_are_closing_do_not_hold_the_port),
        T(ipv6_and_names),
        T(a_wildcard_listener_tells_the_address_that_was_used),
        T(bad_addresses_are_explained),
        T(a_probe_leaves_nothing_behind),
        T(a_low_port_needs_a_privilege),
        T(a_unix_listener_knows_its_clients),
        T(a_stale_unix_socket_is_replaced_a_living_one_is_not),
        T(loops_share_a_unix_socket),
        T(no_more_descriptors),
        T(the_ceiling_of_connections),
        T(a_stop_takes_the_backlog_first),
        T(stopped_in_the_middle_of_the_backlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
