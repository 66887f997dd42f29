/* Proves what conn.c promises: bytes both ways, back-pressure, and each kind of ending as the peer
 * and the engine see it. */
#include "io_harness.h"

struct fixture {
    struct engine *e;
    struct lp_listener *listener;
    struct lp_buf peer_got;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->e = engine_plain();
    f->listener = listen_at(f->e, "127.0.0.1", false);
    lp_buf_init(&f->peer_got, (size_t)64 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    engine_free(f->e);
    lp_listener_free(f->listener);
    lp_buf_release(&f->peer_got);
    free(f);
    return 0;
}

/* What the socket does not take at once goes to a DRAIN, reading waits for it: as the engine does.
 */
static void echo(struct engine *e, const struct lp_event *event)
{
    e->conn = event->conn;
    if (event->kind == LP_EV_READ) {
        int64_t n = write_span(e, event->u.bytes);
        assert_true(n >= 0);
        struct lp_span left = lp_span_from(event->u.bytes, (size_t)n);
        if (!left.len)
            return;
        char *copy = malloc(left.len);
        memcpy(copy, left.ptr, left.len);
        e->extra = copy;
        pause_conn(e, true);
        assert_int_equal(drain_span(e, lp_span(copy, left.len)), LP_OK);
    }
    if (event->kind == LP_EV_DRAINED) {
        free(e->extra);
        e->extra = NULL;
        pause_conn(e, false);
    }
    if (event->kind == LP_EV_EOF)
        close_conn(e, LP_CLOSE_NOW);
}

static void echo_gives_every_byte_back(void **state)
{
    struct fixture *f = *state;
    enum { TOTAL = 24 << 20 };
    f->e->hook = echo;
    char *sent = malloc(TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (char)(i * 2654435761u >> 13);
    int fd = connect_peer(f->e, f->listener);
    size_t done = 0;
    bool is_shut = false;
    /* The peer does not read until it can send no more, so that the echo has to drain. */
    for (int idle = 0; f->peer_got.len < TOTAL;) {
        ssize_t n = done < TOTAL ? send(fd, sent + done, TOTAL - done, MSG_NOSIGNAL) : -1;
        if (n > 0) {
            done += (size_t)n;
            idle = 0;
        }
        turn(f->e);
        if (n < 0 && ++idle > 20)
            (void)peer_read(fd, &f->peer_got);
        if (done == TOTAL && !is_shut)
            is_shut = shutdown(fd, SHUT_WR) == 0;
        lp_buf_clear(&f->e->got);
        f->e->count = 0;
    }
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), 0);
    assert_int_equal(f->peer_got.len, TOTAL);
    assert_memory_equal(lp_buf_span(&f->peer_got).ptr, sent, TOTAL);
    assert_true(f->e->counts[LP_EV_DRAINED] > 0);
    assert_int_equal(f->e->counts[LP_EV_EOF], 1);
    close(fd);
    free(sent);
}

static void facts_of_an_accepted_connection(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    const struct lp_conn_facts *facts = &f->e->events[0].u.accepted;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    char want[64];
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(want, sizeof want, "127.0.0.1:%u", ntohs(at.sin_port));
    assert_string_equal(f->e->peer, want);
    assert_string_equal(f->e->local, lp_listener_text(f->listener));
    assert_int_equal(facts->listener, 7);
    assert_true(facts->is_loopback);
    assert_false(facts->is_admin);
    assert_false(facts->is_tls);
    assert_int_equal(facts->unix_uid, -1);
    struct lp_io_conn *conn = lp_slab_get(&f->e->loop->conns, f->e->conn);
    int value = 0;
    len = sizeof value;
    assert_int_equal(getsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    assert_int_equal(value, 1);
    assert_int_equal(getsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len), 0);
    assert_int_equal(value, 1);
    close(fd);
}

static void write_gathers_parts_in_order(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    struct lp_span parts[LP_WRITE_PARTS_MAX] = {LP_SPAN("HTTP/1.1 "), LP_SPAN(""), LP_SPAN("200"),
        LP_SPAN(" OK"), LP_SPAN("\r\n"), LP_SPAN("\r\n"), LP_SPAN("a"), LP_SPAN("b")};
    assert_int_equal(write_parts(f->e, parts, LP_WRITE_PARTS_MAX), 21);
    assert_int_equal(write_parts(f->e, parts, 0), 0);
    assert_int_equal(write_span(f->e, LP_SPAN("")), 0);
    close_conn(f->e, LP_CLOSE_NOW);
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), 0);
    assert_span(lp_buf_span(&f->peer_got), "HTTP/1.1 200 OK\r\n\r\nab");
    close(fd);
}

static void drain_ends_when_the_peer_reads(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    memset(chunk, 'x', sizeof chunk);
    int fd = connect_peer(f->e, f->listener);
    size_t taken = fill(f->e, lp_span(chunk, sizeof chunk));
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    turn_for_ms(f->e, 30);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    while (!f->e->counts[LP_EV_DRAINED]) {
        (void)peer_read(fd, &f->peer_got);
        turn(f->e);
    }
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 1);
    close_conn(f->e, LP_CLOSE_NOW);
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), 0);
    assert_int_equal(f->peer_got.len, taken + sizeof chunk);
    close(fd);
}

static void an_empty_drain_is_answered_in_the_next_turn(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    assert_int_equal(drain_span(f->e, lp_span(NULL, 0)), LP_OK);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
    close(fd);
}

static void reset_during_a_drain_is_broken_once(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    int fd = connect_peer(f->e, f->listener);
    (void)fill(f->e, lp_span(chunk, sizeof chunk));
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    pause_conn(f->e, true);
    peer_reset(fd);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    assert_int_equal(drain_span(f->e, LP_SPAN("x")), LP_EBROKEN);
}

static void half_closed_peers_are_still_written_to(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    peer_send(fd, "last words");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_span(lp_buf_span(&f->e->got), "last words");
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_EOF], 1);
    assert_int_equal(write_span(f->e, LP_SPAN("answer")), 6);
    pause_conn(f->e, true);
    pause_conn(f->e, false);
    close_conn(f->e, LP_CLOSE_LINGER);
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), 0);
    assert_span(lp_buf_span(&f->peer_got), "answer");
    assert_int_equal(f->e->loop->lingering_count, 0); /* nothing could come: closed at once */
    close(fd);
}

static void a_broken_write_is_told_later(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    peer_send(fd, "what was said first");
    peer_reset(fd);
    int64_t n = write_span(f->e, LP_SPAN("x"));
    assert_int_equal(n, LP_EBROKEN);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    assert_int_equal(drain_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
    assert_span(lp_buf_span(&f->e->got), "what was said first");
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
}

static void a_broken_write_is_told_though_paused(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    pause_conn(f->e, true);
    peer_reset(fd);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
}

static void close_after_a_broken_write_silences_it(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    peer_reset(fd);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    close_conn(f->e, LP_CLOSE_LINGER);
    turn_for_ms(f->e, 20);
    assert_int_equal(f->e->count, 1); /* ACCEPTED */
}

static void a_paused_connection_is_not_read(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    pause_conn(f->e, true);
    peer_send(fd, "one");
    turn_for_ms(f->e, 20);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    peer_send(fd, "two");
    turn_for_ms(f->e, 20);
    pause_conn(f->e, false);
    TURN_UNTIL(f->e, f->e->got.len == 6);
    assert_span(lp_buf_span(&f->e->got), "onetwo");
    close(fd);
}

static void a_paused_connection_reports_a_reset(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    pause_conn(f->e, true);
    turn_for_ms(f->e, 5);
    peer_reset(fd);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
}

static void a_paused_connection_reports_an_end(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    pause_conn(f->e, true);
    close(fd);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
}

/* Bytes before the end or the reset are never lost, and the waiting costs no turns of the loop. */
static void unread_bytes_come_before_the_end(void **state)
{
    struct fixture *f = *state;
    for (int is_reset = 0; is_reset < 2; is_reset++) {
        int fd = connect_peer(f->e, f->listener);
        enum lp_event_kind ending = is_reset ? LP_EV_BROKEN : LP_EV_EOF;
        lp_buf_clear(&f->e->got);
        pause_conn(f->e, true);
        peer_send(fd, "whole answer");
        turn_for_ms(f->e, 10);
        if (is_reset)
            peer_reset(fd);
        else
            close(fd);
        turn_for_ms(f->e, 20);
        assert_int_equal(f->e->counts[ending], 0);
        struct lp_io_conn *conn = lp_slab_get(&f->e->loop->conns, f->e->conn);
        assert_int_equal(conn->interest, 0);
        pause_conn(f->e, false);
        TURN_UNTIL(f->e, f->e->counts[ending] == 1);
        assert_span(lp_buf_span(&f->e->got), "whole answer");
        close_conn(f->e, LP_CLOSE_NOW);
    }
}

static void close_within_on_read(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_READ)
        close_conn(e, LP_CLOSE_NOW);
}

static void nothing_comes_after_a_close(void **state)
{
    struct fixture *f = *state;
    f->e->hook = close_within_on_read;
    int fd = connect_peer(f->e, f->listener);
    peer_send(fd, "x");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_READ] == 1);
    turn_for_ms(f->e, 20);
    assert_int_equal(f->e->count, 2);
    assert_null(lp_slab_get(&f->e->loop->conns, f->e->conn));
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    pause_conn(f->e, true);
    close_conn(f->e, LP_CLOSE_RESET); /* harmless */
    close(fd);
}

static void reset_is_seen_by_the_peer(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    assert_int_equal(write_span(f->e, LP_SPAN("half an ans")), 11);
    close_conn(f->e, LP_CLOSE_RESET);
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), -ECONNRESET);
    close(fd);
}

static void linger_with_a_drain_out_is_a_reset(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    assert_int_equal(drain_span(f->e, LP_SPAN("never sent")), LP_OK);
    close_conn(f->e, LP_CLOSE_LINGER);
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), -ECONNRESET);
    assert_int_equal(f->peer_got.len, 0);
    close(fd);
}

/* The peer still sends when the answer leaves: a plain close would reset and lose it. */
static void linger_delivers_the_answer(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    int fd = connect_peer(f->e, f->listener);
    pause_conn(f->e, true);
    (void)send(fd, chunk, sizeof chunk, MSG_NOSIGNAL);
    turn_for_ms(f->e, 5);
    assert_int_equal(write_span(f->e, LP_SPAN("413")), 3);
    close_conn(f->e, LP_CLOSE_LINGER);
    assert_int_equal(f->e->loop->lingering_count, 1);
    for (int i = 0; i < 4; i++) {
        (void)send(fd, chunk, sizeof chunk, MSG_NOSIGNAL);
        turn_for_ms(f->e, 5);
    }
    assert_int_equal(peer_read_to_end(f->e, fd, &f->peer_got), 0);
    assert_span(lp_buf_span(&f->peer_got), "413");
    close(fd);
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
}

static void linger_is_bounded_in_bytes(void **state)
{
    struct fixture *f = *state;
    static char chunk[1 << 16];
    int fd = connect_peer(f->e, f->listener);
    close_conn(f->e, LP_CLOSE_LINGER);
    size_t sent = 0;
    while (f->e->loop->lingering_count) {
        ssize_t n = send(fd, chunk, sizeof chunk, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn(f->e);
        assert_true(sent < (size_t)32 << 20);
    }
    assert_true(sent >= (size_t)1 << 20);
    close(fd);
}

static void linger_is_bounded_in_time(void **state)
{
    struct fixture *f = *state;
    int fd = connect_peer(f->e, f->listener);
    uint64_t begin_us = lp_clock_mono_us();
    close_conn(f->e, LP_CLOSE_LINGER);
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    uint64_t took_us = lp_clock_mono_us() - begin_us;
    assert_in_range(took_us, 1900000, 3000000);
    close(fd);
}

static void freeing_the_loop_closes_everything(void **state)
{
    struct fixture *f = *state;
    int open_fd = connect_peer(f->e, f->listener);
    int lingering_fd = connect_peer(f->e, f->listener);
    close_conn(f->e, LP_CLOSE_LINGER);
    int draining_fd = connect_peer(f->e, f->listener);
    assert_int_equal(drain_span(f->e, LP_SPAN("x")), LP_OK);
    (void)connect_out(f->e, tcp_endpoint("localhost", 9, 0));
    (void)connect_out(f->e, tcp_endpoint("127.0.0.1", lp_listener_port(f->listener), 0));
    uint32_t count = f->e->count;
    struct engine *e = f->e;
    lp_loop_free(e->loop);
    assert_int_equal(e->count, count);
    e->loop = NULL;
    char c;
    assert_int_equal(recv(open_fd, &c, 1, 0), 0);
    assert_int_equal(recv(lingering_fd, &c, 1, 0), 0);
    close(open_fd);
    close(lingering_fd);
    close(draining_fd);
}

static void an_idle_connection_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct lp_io_conn) + 16 < 300);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(echo_gives_every_byte_back),
        T(facts_of_an_accepted_connection),
        T(write_gathers_parts_in_order),
        T(drain_ends_when_the_peer_reads),
        T(an_empty_drain_is_answered_in_the_next_turn),
        T(reset_during_a_drain_is_broken_once),
        T(half_closed_peers_are_still_written_to),
        T(a_broken_write_is_told_later),
        T(a_broken_write_is_told_though_paused),
        T(close_after_a_broken_write_silences_it),
        T(a_paused_connection_is_not_read),
        T(a_paused_connection_reports_a_reset),
        T(a_paused_connection_reports_an_end),
        T(unread_bytes_come_before_the_end),
        T(nothing_comes_after_a_close),
        T(reset_is_seen_by_the_peer),
        T(linger_with_a_drain_out_is_a_reset),
        T(linger_delivers_the_answer),
        T(linger_is_bounded_in_bytes),
        T(linger_is_bounded_in_time),
        T(freeing_the_loop_closes_everything),
        cmocka_unit_test(an_idle_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
