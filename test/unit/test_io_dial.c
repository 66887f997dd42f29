/* Proves that each CONNECT has exactly one outcome, the right one, and never from within the call.
 */
#include "io/address.h"
#include "io_harness.h"

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

static const struct lp_event *last(struct engine *e)
{
    assert_true(e->count > 0);
    return &e->events[e->count - 1];
}

static void assert_failed(struct engine *e, int error)
{
    TURN_UNTIL(e, e->count == 1);
    assert_int_equal(last(e)->kind, LP_EV_CONNECT_FAILED);
    assert_int_equal(last(e)->conn, e->conn);
    assert_int_equal(last(e)->u.error, error);
    assert_int_equal(write_span(e, LP_SPAN("x")), LP_EBROKEN); /* the id is dead */
    turn_for_ms(e, 5);
    assert_int_equal(e->count, 1);
    assert_int_equal(e->loop->conns.live_count, 0);
}

static struct lp_endpoint unix_endpoint(const char *path, uint32_t timeout_ms)
{
    return (struct lp_endpoint){
        .kind = LP_EP_UNIX, .host = lp_span_str(path), .timeout_ms = timeout_ms};
}

static void talk(struct engine *e, int listener)
{
    TURN_UNTIL(e, e->count == 1);
    assert_int_equal(last(e)->kind, LP_EV_CONNECTED);
    assert_int_equal(last(e)->conn, e->conn);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write_span(e, LP_SPAN("hello")), 5);
    struct lp_buf got;
    lp_buf_init(&got, 100);
    while (got.len < 5)
        (void)peer_read(fd, &got);
    assert_span(lp_buf_span(&got), "hello");
    peer_send(fd, "welcome");
    TURN_UNTIL(e, e->counts[LP_EV_READ] == 1);
    assert_span(lp_buf_span(&e->got), "welcome");
    lp_buf_release(&got);
    close(fd);
    TURN_UNTIL(e, e->counts[LP_EV_EOF] == 1);
    close_conn(e, LP_CLOSE_NOW);
    turn_for_ms(e, 2);
    assert_int_equal(e->loop->conns.live_count, 0);
}

static void an_address_is_connected_to(void **state)
{
    uint16_t port;
    int fd = peer_listen(5, &port);
    (void)connect_out(*state, tcp_endpoint("127.0.0.1", port, 2000));
    talk(*state, fd);
    close(fd);
}

/* SEC-08: what is private is not connected to, also when a name says so. */
static void a_private_address_is_no_public_one(void **state)
{
    static const struct {
        const char *text;
        bool is_public;
    } ROWS[] = {{"8.8.8.8", true}, {"0.0.0.0", false}, {"10.1.2.3", false}, {"11.0.0.1", true},
        {"100.64.0.1", false}, {"100.128.0.1", true}, {"127.9.9.9", false},
        {"169.254.169.254", false}, {"172.15.0.1", true}, {"172.31.0.1", false},
        {"192.168.0.1", false}, {"192.169.0.1", true}, {"224.0.0.1", false},
        {"255.255.255.255", false}, {"2001:db8::1", true}, {"::", false}, {"::1", false},
        {"fe80::1", false}, {"fc00::1", false}, {"fdff::1", false}, {"ff02::1", false},
        {"::ffff:10.0.0.1", false}, {"::ffff:8.8.8.8", true}};
    struct lp_address address;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        assert_int_equal(lp_address_numeric(lp_span_str(ROWS[i].text), 1, &address), LP_OK);
        assert_int_equal(lp_address_is_public(&address), ROWS[i].is_public);
    }
    assert_int_equal(lp_address_unix(LP_SPAN("/x"), &address), LP_OK);
    assert_false(lp_address_is_public(&address));
    uint16_t port;
    int fd = peer_listen(5, &port);
    static const char *const HOSTS[] = {"127.0.0.1", "localhost"};
    for (size_t i = 0; i < sizeof HOSTS / sizeof *HOSTS; i++) {
        struct lp_endpoint endpoint = tcp_endpoint(HOSTS[i], port, 2000);
        endpoint.is_public = true;
        struct engine *e = engine_plain();
        (void)connect_out(e, endpoint);
        assert_failed(e, LP_EUNREACHABLE);
        engine_free(e);
    }
    assert_int_equal(accept4(fd, NULL, NULL, SOCK_NONBLOCK), -1);
    close(fd);
    (void)state;
}

/* The peer sees the address that was asked for; one that is not ours, is of the other family or is
 * a name reaches nothing. */
static void a_source_is_kept_to(void **state)
{
    uint16_t port;
    int fd = peer_listen(5, &port);
    struct lp_endpoint endpoint = tcp_endpoint("127.0.0.1", port, 2000);
    endpoint.source = LP_SPAN("127.0.0.77");
    (void)connect_out(*state, endpoint);
    struct engine *e = *state;
    TURN_UNTIL(e, e->count == 1);
    assert_int_equal(last(e)->kind, LP_EV_CONNECTED);
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    int conn = accept(fd, (struct sockaddr *)&peer, &len);
    assert_true(conn >= 0);
    assert_int_equal(ntohl(peer.sin_addr.s_addr), INADDR_LOOPBACK + 76);
    close(conn);
    close(fd);
}

static void refuse_source(struct engine *e, const char *source)
{
    uint16_t port;
    int fd = peer_listen(5, &port);
    struct lp_endpoint endpoint = tcp_endpoint("127.0.0.1", port, 2000);
    endpoint.source = lp_span_str(source);
    (void)connect_out(e, endpoint);
    assert_failed(e, LP_EUNREACHABLE);
    close(fd);
}

static void a_foreign_source_is_refused(void **state)
{
    refuse_source(*state, "192.0.2.1");
}

static void a_source_of_the_other_family_is_refused(void **state)
{
    refuse_source(*state, "::1");
}

static void a_source_is_no_name(void **state)
{
    refuse_source(*state, "localhost");
}

static void a_name_is_connected_to(void **state)
{
    /* localhost may be ::1 first, where nobody listens: the next address is tried. */
    uint16_t port;
    int fd = peer_listen(5, &port);
    (void)connect_out(*state, tcp_endpoint("localhost", port, 5000));
    talk(*state, fd);
    close(fd);
}

static void a_unix_socket_is_connected_to(void **state)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-dial.%d", getpid());
    (void)unlink(path);
    struct lp_address at;
    assert_int_equal(lp_address_unix(lp_span_str(path), &at), LP_OK);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, &at.u.any, at.len), 0);
    assert_int_equal(listen(fd, 5), 0);
    (void)connect_out(*state, unix_endpoint(path, 2000));
    talk(*state, fd);
    close(fd);
    (void)unlink(path);
}

static void nobody_there_is_refused(void **state)
{
    uint16_t port;
    close(peer_listen(5, &port));
    (void)connect_out(*state, tcp_endpoint("127.0.0.1", port, 2000));
    assert_failed(*state, LP_EREFUSED);
}

static void a_name_with_nobody_there_is_refused(void **state)
{
    uint16_t port;
    close(peer_listen(5, &port));
    (void)connect_out(*state, tcp_endpoint("localhost", port, 5000));
    assert_failed(*state, LP_EREFUSED);
}

static void no_unix_socket_is_refused(void **state)
{
    (void)connect_out(*state, unix_endpoint("/tmp/lp-test-there-is-nothing-here", 2000));
    assert_failed(*state, LP_EREFUSED);
}

static void bad_places_are_unreachable(void **state)
{
    static char name[400], path[200];
    memset(name, 'a', sizeof name - 1);
    memset(path, 'p', sizeof path - 1);
    struct lp_endpoint places[] = {
        tcp_endpoint("no-such-host.invalid", 80, 9000),
        tcp_endpoint("", 80, 0),
        tcp_endpoint(name, 80, 0),
        tcp_endpoint("", 80, 0),
        unix_endpoint(path, 0),
        unix_endpoint("", 0),
    };
    places[3].host = LP_SPAN("local\0host");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct engine *e = engine_plain();
        (void)connect_out(e, places[i]);
        assert_int_equal(e->count, 0);
        TURN_UNTIL(e, e->count == 1);
        /* What asks no name server has one answer; a machine without one may wait in vain. */
        int no_name = i == 0 && last(e)->u.error == LP_ETIMEOUT ? LP_ETIMEOUT : LP_ENOT_FOUND;
        assert_failed(e, i < 4 ? no_name : LP_EUNREACHABLE);
        engine_free(e);
    }
    (void)state;
}

static void tls_is_refused_in_the_call(void **state)
{
    struct lp_endpoint to = tcp_endpoint("127.0.0.1", 1, 0);
    to.is_tls = true;
    assert_int_equal(
        act(*state, (struct lp_action){.kind = LP_ACT_CONNECT, .u.connect = to}), LP_EUNSUPPORTED);
}

/* Linux drops the SYNs for a listener whose queue is full: the connect hangs. */
static void no_answer_is_a_timeout(void **state)
{
    struct engine *e = *state;
    uint16_t port;
    int listener = peer_listen(0, &port);
    int fillers[8];
    struct sockaddr_in to = at_port(port);
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (struct sockaddr *)&to, sizeof to);
    }
    usleep(20000);
    uint64_t begin_us = lp_clock_mono_us();
    (void)connect_out(e, tcp_endpoint("127.0.0.1", port, 150));
    assert_failed(e, LP_ETIMEOUT);
    assert_in_range(lp_clock_mono_us() - begin_us, 150000, 900000);
    /* The same with a name, whose first address (if it has two) may refuse. */
    (void)connect_out(e, tcp_endpoint("localhost", port, 300));
    TURN_UNTIL(e, e->count == 2);
    assert_int_equal(last(e)->kind, LP_EV_CONNECT_FAILED);
    assert_int_equal(last(e)->u.error, LP_ETIMEOUT);
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    close(listener);
}

static void a_full_unix_backlog_is_tried_again(void **state)
{
    struct engine *e = *state;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-full.%d", getpid());
    (void)unlink(path);
    struct lp_address at;
    assert_int_equal(lp_address_unix(lp_span_str(path), &at), LP_OK);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, &at.u.any, at.len), 0);
    assert_int_equal(listen(listener, 0), 0);
    int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(filler, &at.u.any, at.len), 0);

    uint64_t begin_us = lp_clock_mono_us();
    (void)connect_out(e, unix_endpoint(path, 100));
    assert_failed(e, LP_ETIMEOUT);
    assert_true(lp_clock_mono_us() - begin_us >= 100000);

    (void)connect_out(e, unix_endpoint(path, 5000));
    turn_for_ms(e, 30);
    assert_int_equal(e->count, 1);
    close(accept(listener, NULL, NULL));
    TURN_UNTIL(e, e->count == 2);
    assert_int_equal(last(e)->kind, LP_EV_CONNECTED);

    close(accept(listener, NULL, NULL)); /* and one that is given up while it waits */
    int second = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(second, &at.u.any, at.len), 0);
    (void)connect_out(e, unix_endpoint(path, 5000));
    close_conn(e, LP_CLOSE_NOW);
    turn_for_ms(e, 30);
    close(second);
    close(filler);
    close(listener);
    (void)unlink(path);
}

static void close_cancels_silently(void **state)
{
    struct engine *e = *state;
    uint16_t port;
    int listener = peer_listen(5, &port);
    (void)connect_out(e, tcp_endpoint("127.0.0.1", port, 1000));
    close_conn(e, LP_CLOSE_NOW);
    (void)connect_out(e, tcp_endpoint("localhost", port, 1000));
    close_conn(e, LP_CLOSE_LINGER);
    (void)connect_out(e, tcp_endpoint("localhost", port, 1000));
    turn_for_ms(e, 1);
    close_conn(e, LP_CLOSE_RESET);
    (void)connect_out(e, unix_endpoint("/tmp/lp-test-there-is-nothing-here", 0));
    close_conn(e, LP_CLOSE_NOW);
    turn_for_ms(e, 50);
    assert_true(e->count <= 1); /* the third may have been connected before its close */
    assert_int_equal(e->loop->conns.live_count, 0);
    assert_int_equal(e->loop->timers.count, 1);
    close(listener);
}

static void a_lookup_can_time_out(void **state)
{
    struct engine *e = *state;
    (void)connect_out(e, tcp_endpoint("localhost", 9, 1));
    usleep(5000); /* both the answer and the timer are due: whichever comes first is the outcome */
    TURN_UNTIL(e, e->count == 1);
    turn_for_ms(e, 10);
    assert_int_equal(e->count, 1);
    assert_int_equal(last(e)->kind, LP_EV_CONNECT_FAILED);
}

/* What the engine asks of a connection that is not there yet holds once it is. */
static void actions_before_connected_are_kept(void **state)
{
    struct engine *e = *state;
    uint16_t port;
    int listener = peer_listen(5, &port);
    (void)connect_out(e, tcp_endpoint("127.0.0.1", port, 1000));
    assert_int_equal(write_span(e, LP_SPAN("early")), 0);
    assert_int_equal(drain_span(e, LP_SPAN("early")), LP_OK);
    pause_conn(e, true);
    TURN_UNTIL(e, e->counts[LP_EV_DRAINED] == 1);
    assert_int_equal(e->events[0].kind, LP_EV_CONNECTED);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    peer_send(fd, "unwanted");
    turn_for_ms(e, 10);
    assert_int_equal(e->counts[LP_EV_READ], 0);
    close(fd);
    close(listener);
}

static void too_many_connections_are_refused_in_the_call(void **state)
{
    struct engine *e = engine_new(&(struct lp_loop_args){.conn_max = 1});
    uint16_t port;
    int listener = peer_listen(5, &port);
    struct lp_action action = {.kind = LP_ACT_CONNECT};
    action.u.connect = tcp_endpoint("127.0.0.1", port, 1000);
    assert_true(act(e, action) > 0);
    assert_int_equal(act(e, action), LP_ELIMIT);
    engine_free(e);
    close(listener);
    (void)state;
}

/* Out of descriptors is an event too. */
static void no_descriptor_is_a_limit_of_ours(void **state)
{
    struct engine *e = *state;
    struct rlimit kept, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = kept.rlim_max};
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    (void)connect_out(e, tcp_endpoint("127.0.0.1", 9, 1000));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    assert_failed(e, LP_ELIMIT);
}

/* connect() answers at once for addresses that no route leads to. */
static void a_broadcast_address_fails(void **state)
{
    (void)connect_out(*state, tcp_endpoint("255.255.255.255", 9, 1000));
    TURN_UNTIL((struct engine *)*state, ((struct engine *)*state)->count == 1);
    assert_int_equal(last(*state)->kind, LP_EV_CONNECT_FAILED);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_address_is_connected_to),
        T(a_private_address_is_no_public_one),
        T(a_source_is_kept_to),
        T(a_foreign_source_is_refused),
        T(a_source_of_the_other_family_is_refused),
        T(a_source_is_no_name),
        T(a_name_is_connected_to),
        T(a_unix_socket_is_connected_to),
        T(nobody_there_is_refused),
        T(a_name_with_nobody_there_is_refused),
        T(no_unix_socket_is_refused),
        T(bad_places_are_unreachable),
        T(tls_is_refused_in_the_call),
        T(no_answer_is_a_timeout),
        T(a_full_unix_backlog_is_tried_again),
        T(close_cancels_silently),
        T(a_lookup_can_time_out),
        T(actions_before_connected_are_kept),
        T(too_many_connections_are_refused_in_the_call),
        T(no_descriptor_is_a_limit_of_ours),
        T(a_broadcast_address_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
