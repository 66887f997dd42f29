/* Proves that READ, WRITE, DRAIN, READ_OFF and CLOSE mean over TLS what they mean without it, and
 * that an end which the peer has not announced is never taken for one. */
#include "tls_peer.h"

#include <malloc.h>

#include "io/tls.h"

struct fixture {
    struct engine *e;
    struct lp_tls_trust *trust;
    SSL_CTX *context;
    SSL *peer;
    int listener, fd;
    uint16_t port;
    struct lp_buf heard;
};

static struct issued self;
static char chunk[1 << 16];

static int setup_all(void **state)
{
    (void)state;
    self = issue(&(struct wish){.names = "IP:127.0.0.1"});
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    issued_free(&self);
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->trust = trust_of(NULL, true);
    f->e = engine_new(&(struct lp_loop_args){.trust = f->trust});
    f->context = peer_context(&self, TLS1_3_VERSION);
    f->listener = peer_listen(5, &f->port);
    f->fd = -1;
    lp_buf_init(&f->heard, (size_t)64 << 20);
    *state = f;
    return 0;
}

static void hang_up(struct fixture *f)
{
    SSL_free(f->peer);
    f->peer = NULL;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    if (f->e)
        engine_free(f->e);
    lp_tls_trust_free(f->trust);
    SSL_CTX_free(f->context);
    close(f->listener);
    lp_buf_release(&f->heard);
    free(f);
    return 0;
}

static void dial(struct fixture *f)
{
    struct lp_endpoint to = tcp_endpoint("127.0.0.1", f->port, 5000);
    to.is_tls = true;
    (void)connect_out(f->e, to);
    f->fd = peer_accept(f->e, f->listener);
    f->peer = SSL_new(f->context);
    assert_int_equal(SSL_set_fd(f->peer, f->fd), 1);
}

/* Connected, and the event noted; whatever the peer sent behind the handshake is read. */
static void meet(struct fixture *f)
{
    uint32_t before = f->e->counts[LP_EV_CONNECTED];
    dial(f);
    assert_true(peer_shake(f->e, f->peer));
    TURN_UNTIL(f->e, f->e->counts[LP_EV_CONNECTED] > before);
    turn_for_ms(f->e, 2);
}

static void say(struct fixture *f, const char *text)
{
    peer_say(f->e, f->peer, text, strlen(text));
}

static void hear(struct fixture *f, size_t len)
{
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (f->heard.len < len) {
        turn(f->e);
        int n = peer_hear(f->peer, &f->heard);
        assert_true(n > 0 || n == -EAGAIN);
        assert_true(lp_clock_mono_us() < until_us);
    }
    assert_int_equal(f->heard.len, len);
}

static struct lp_io_conn *conn_of(struct fixture *f)
{
    return lp_slab_get(&f->e->loop->conns, f->e->conn);
}

/* Bytes */

static void bytes_go_both_ways(void **state)
{
    struct fixture *f = *state;
    meet(f);
    struct lp_span parts[LP_WRITE_PARTS_MAX] = {LP_SPAN("POST /mcp "), LP_SPAN(""),
        LP_SPAN("HTTP/1.1"), LP_SPAN("\r\n"), LP_SPAN("\r\n"), LP_SPAN("{"), LP_SPAN("}"),
        LP_SPAN("")};
    assert_int_equal(write_parts(f->e, parts, LP_WRITE_PARTS_MAX), 24);
    assert_int_equal(write_parts(f->e, parts, 0), 0);
    assert_int_equal(write_span(f->e, LP_SPAN("")), 0);
    assert_int_equal(peer_hear(f->peer, &f->heard), 24); /* one record, not one a part */
    assert_span(lp_buf_span(&f->heard), "POST /mcp HTTP/1.1\r\n\r\n{}");
    say(f, "HTTP/1.1 202 Accepted\r\n\r\n");
    TURN_UNTIL(f->e, f->e->counts[LP_EV_READ] == 1);
    assert_span(lp_buf_span(&f->e->got), "HTTP/1.1 202 Accepted\r\n\r\n");
}

static void parts_may_be_longer_than_a_record(void **state)
{
    struct fixture *f = *state;
    meet(f);
    struct lp_span parts[] = {LP_SPAN("head"), lp_span(chunk, 40000), LP_SPAN("tail")};
    assert_int_equal(write_parts(f->e, parts, 3), 40008);
    hear(f, 40008);
    struct lp_span heard = lp_buf_span(&f->heard);
    assert_memory_equal(heard.ptr, "head", 4);
    assert_memory_equal(heard.ptr + 4, chunk, 40000);
    assert_memory_equal(heard.ptr + 40004, "tail", 4);
}

static void actions_before_connected_are_kept(void **state)
{
    struct fixture *f = *state;
    dial(f);
    assert_int_equal(write_span(f->e, LP_SPAN("early")), 0);
    assert_int_equal(drain_span(f->e, LP_SPAN("early")), LP_OK);
    pause_conn(f->e, true);
    turn_for_ms(f->e, 5);
    assert_int_equal(f->e->count, 0);
    assert_true(peer_shake(f->e, f->peer));
    say(f, "unwanted");
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
    assert_int_equal(f->e->events[0].kind, LP_EV_CONNECTED);
    hear(f, 5);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    pause_conn(f->e, false);
    TURN_UNTIL(f->e, f->e->got.len == 8);
}

/* The server speaks in the same segment as its last word of the handshake: nothing more comes, so
 * no readiness of the socket tells of it. */
static void bytes_behind_the_handshake_are_read(void **state)
{
    struct fixture *f = *state;
    SSL_CTX_free(f->context);
    f->context = peer_context(&self, TLS1_2_VERSION);
    dial(f);
    /* All that the peer sends is held back here and passed on by hand. */
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(f->peer, in, out);
    SSL_set_accept_state(f->peer);
    for (int flight = 0; flight < 2; flight++) {
        struct lp_buf hello;
        lp_buf_init(&hello, 65536);
        while (hello.len == 0) {
            turn(f->e);
            (void)peer_read(f->fd, &hello);
        }
        (void)BIO_write(in, hello.ptr, (int)hello.len);
        lp_buf_release(&hello);
        int done = SSL_do_handshake(f->peer);
        assert_int_equal(done == 1, flight == 1);
        if (flight)
            assert_int_equal(SSL_write(f->peer, "at once", 7), 7);
        char *bytes;
        long len = BIO_get_mem_data(out, &bytes);
        assert_int_equal(send(f->fd, bytes, (size_t)len, MSG_NOSIGNAL), len);
        (void)BIO_reset(out);
    }
    TURN_UNTIL(f->e, f->e->got.len == 7);
    assert_int_equal(f->e->events[0].kind, LP_EV_CONNECTED);
    assert_span(lp_buf_span(&f->e->got), "at once");
}

static void a_slow_handshake_is_waited_for(void **state)
{
    struct fixture *f = *state;
    dial(f);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(f->peer, in, out);
    SSL_set_accept_state(f->peer);
    while (!f->e->count) {
        struct lp_buf said;
        lp_buf_init(&said, 65536);
        turn(f->e);
        (void)peer_read(f->fd, &said);
        if (said.len)
            (void)BIO_write(in, said.ptr, (int)said.len);
        lp_buf_release(&said);
        (void)SSL_do_handshake(f->peer);
        char byte; /* one byte at a time */
        if (BIO_read(out, &byte, 1) == 1)
            assert_int_equal(send(f->fd, &byte, 1, MSG_NOSIGNAL), 1);
    }
    assert_int_equal(f->e->events[0].kind, LP_EV_CONNECTED);
}

static void close_during_the_handshake_is_silent(void **state)
{
    struct fixture *f = *state;
    for (int how = LP_CLOSE_NOW; how <= LP_CLOSE_RESET; how++) {
        dial(f);
        turn_for_ms(f->e, 2);
        close_conn(f->e, (enum lp_close_how)how);
        turn_for_ms(f->e, 5);
        assert_int_equal(f->e->loop->conns.live_count, 0);
        hang_up(f);
    }
    assert_int_equal(f->e->count, 0);
    dial(f);
    engine_free(f->e); /* and so is the end of the loop */
    f->e = NULL;
}

/* Back-pressure */

/* What is not taken at once goes to a DRAIN, reading waits for it: as the engine does. */
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
        close_conn(e, LP_CLOSE_LINGER);
}

static void echo_gives_every_byte_back(void **state)
{
    struct fixture *f = *state;
    enum { TOTAL = 24 << 20 };
    meet(f);
    f->e->hook = echo;
    char *sent = malloc(TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (char)(i * 2654435761u >> 13);
    size_t done = 0;
    bool is_shut = false;
    /* The peer does not read until it can send no more, so that the echo has to drain. */
    for (int idle = 0; f->heard.len < TOTAL;) {
        ERR_clear_error();
        int n = done < TOTAL ? SSL_write(f->peer, sent + done, (int)(TOTAL - done)) : -1;
        if (n > 0) {
            done += (size_t)n;
            idle = 0;
        }
        turn(f->e);
        if (n < 0 && ++idle > 20)
            (void)peer_hear(f->peer, &f->heard);
        if (done == TOTAL && !is_shut)
            is_shut = SSL_shutdown(f->peer) == 0;
        lp_buf_clear(&f->e->got);
        f->e->count = 0;
    }
    assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), 0);
    assert_int_equal(f->heard.len, TOTAL);
    assert_memory_equal(lp_buf_span(&f->heard).ptr, sent, TOTAL);
    assert_true(f->e->counts[LP_EV_DRAINED] > 0);
    assert_int_equal(f->e->counts[LP_EV_EOF], 1);
    free(sent);
}

static void drain_ends_when_the_peer_reads(void **state)
{
    struct fixture *f = *state;
    meet(f);
    size_t taken = fill(f->e, lp_span(chunk, sizeof chunk));
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    turn_for_ms(f->e, 30);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    hear(f, taken + sizeof chunk);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
}

static void an_empty_drain_is_answered_in_the_next_turn(void **state)
{
    struct fixture *f = *state;
    meet(f);
    assert_int_equal(drain_span(f->e, lp_span(NULL, 0)), LP_OK);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_DRAINED] == 1);
}

/* Reading is switched off and on with bytes decrypted, undecrypted and in the kernel. */
static void pause_after_each_read(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_READ)
        pause_conn(e, true);
}

static void a_paused_connection_is_not_read(void **state)
{
    struct fixture *f = *state;
    meet(f);
    f->e->hook = pause_after_each_read;
    pause_conn(f->e, true);
    for (int i = 0; i < 4; i++)
        peer_say(f->e, f->peer, chunk, sizeof chunk);
    peer_say(f->e, f->peer, "tail", 4);
    turn_for_ms(f->e, 20);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
    uint32_t reads = 0;
    while (f->e->got.len < 4 * sizeof chunk + 4) {
        pause_conn(f->e, false);
        reads++;
        TURN_UNTIL(f->e, f->e->counts[LP_EV_READ] == reads);
        turn_for_ms(f->e, 3);
        assert_int_equal(f->e->counts[LP_EV_READ], reads);
    }
    assert_true(reads >= 5); /* at most 64 KiB each */
    for (int i = 0; i < 4; i++)
        assert_memory_equal(
            lp_buf_span(&f->e->got).ptr + (size_t)i * sizeof chunk, chunk, sizeof chunk);
}

/* Endings */

static void close_notify_is_an_end(void **state)
{
    struct fixture *f = *state;
    meet(f);
    say(f, "last words");
    assert_int_equal(SSL_shutdown(f->peer), 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
    assert_span(lp_buf_span(&f->e->got), "last words");
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_EOF], 1);
    /* Half closed: it still is written to. */
    assert_int_equal(write_span(f->e, LP_SPAN("answer")), 6);
    pause_conn(f->e, true);
    pause_conn(f->e, false);
    close_conn(f->e, LP_CLOSE_LINGER);
    assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), 0);
    assert_span(lp_buf_span(&f->heard), "answer");
    assert_int_equal(f->e->loop->lingering_count, 0);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

/* Who can cut a connection must not be able to make half an answer look whole. */
static void an_end_without_close_notify_is_broken(void **state)
{
    struct fixture *f = *state;
    meet(f);
    say(f, "half an ans");
    hang_up(f);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_span(lp_buf_span(&f->e->got), "half an ans");
    assert_int_equal(f->e->counts[LP_EV_EOF], 0);
    turn_for_ms(f->e, 5);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
    assert_int_equal(f->e->loop->conns.live_count, 0);
}

static void an_end_within_a_record_is_broken(void **state)
{
    struct fixture *f = *state;
    meet(f);
    /* The head of a record of 100 bytes, and ten of them. */
    assert_int_equal(send(f->fd,
                         "\x17\x03\x03\x00\x64"
                         "0123456789",
                         15, MSG_NOSIGNAL),
        15);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->count, 1);
    hang_up(f);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->counts[LP_EV_EOF] + f->e->counts[LP_EV_READ], 0);
}

static void a_forged_record_is_broken(void **state)
{
    struct fixture *f = *state;
    meet(f);
    say(f, "good");
    assert_int_equal(send(f->fd,
                         "\x17\x03\x03\x00\x14"
                         "0123456789 123456789",
                         25, 0),
        25);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_span(lp_buf_span(&f->e->got), "good");
}

static void plain_words_after_the_handshake_are_broken(void **state)
{
    struct fixture *f = *state;
    meet(f);
    peer_send(f->fd, "HTTP/1.1 200 OK\r\n\r\n");
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    assert_int_equal(f->e->counts[LP_EV_READ], 0);
}

static void a_paused_connection_reports_each_ending(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        enum lp_event_kind ending = i == 0 ? LP_EV_EOF : LP_EV_BROKEN;
        uint32_t before = f->e->counts[ending];
        meet(f);
        pause_conn(f->e, true);
        turn_for_ms(f->e, 2);
        if (i == 0)
            assert_int_equal(SSL_shutdown(f->peer), 0);
        else if (i == 1)
            assert_int_equal(shutdown(f->fd, SHUT_RDWR), 0);
        else {
            peer_reset(f->fd);
            f->fd = -1;
        }
        TURN_UNTIL(f->e, f->e->counts[ending] == before + 1);
        close_conn(f->e, LP_CLOSE_NOW);
        hang_up(f);
    }
    assert_int_equal(f->e->counts[LP_EV_EOF], 1);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 2);
}

/* Bytes before the end are never lost, and the waiting costs no turns of the loop. */
static void unread_bytes_come_before_the_end(void **state)
{
    struct fixture *f = *state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        enum lp_event_kind ending = is_cut ? LP_EV_BROKEN : LP_EV_EOF;
        meet(f);
        lp_buf_clear(&f->e->got);
        pause_conn(f->e, true);
        say(f, "whole answer");
        turn_for_ms(f->e, 10);
        if (!is_cut)
            assert_int_equal(SSL_shutdown(f->peer), 0);
        hang_up(f);
        turn_for_ms(f->e, 20);
        assert_int_equal(f->e->counts[ending], 0);
        assert_int_equal(conn_of(f)->interest, 0);
        pause_conn(f->e, false);
        TURN_UNTIL(f->e, f->e->counts[ending] == 1);
        assert_span(lp_buf_span(&f->e->got), "whole answer");
        close_conn(f->e, LP_CLOSE_NOW);
    }
}

static void a_broken_write_is_told_later(void **state)
{
    struct fixture *f = *state;
    meet(f);
    say(f, "what was said first");
    peer_reset(f->fd);
    f->fd = -1;
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    turn_for_ms(f->e, 5);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
    assert_span(lp_buf_span(&f->e->got), "what was said first");
}

static void a_broken_write_is_told_though_paused(void **state)
{
    struct fixture *f = *state;
    meet(f);
    pause_conn(f->e, true);
    peer_reset(f->fd);
    f->fd = -1;
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
}

static void reset_during_a_drain_is_broken_once(void **state)
{
    struct fixture *f = *state;
    meet(f);
    (void)fill(f->e, lp_span(chunk, sizeof chunk));
    assert_int_equal(drain_span(f->e, lp_span(chunk, sizeof chunk)), LP_OK);
    pause_conn(f->e, true);
    peer_reset(f->fd);
    f->fd = -1;
    TURN_UNTIL(f->e, f->e->counts[LP_EV_BROKEN] == 1);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
    assert_int_equal(f->e->counts[LP_EV_DRAINED], 0);
}

static void close_within_on_read(struct engine *e, const struct lp_event *event)
{
    if (event->kind == LP_EV_READ)
        close_conn(e, LP_CLOSE_NOW);
}

static void nothing_comes_after_a_close(void **state)
{
    struct fixture *f = *state;
    meet(f);
    f->e->hook = close_within_on_read;
    say(f, "x");
    (void)SSL_shutdown(f->peer);
    TURN_UNTIL(f->e, f->e->counts[LP_EV_READ] == 1);
    turn_for_ms(f->e, 10);
    assert_int_equal(f->e->count, 2);
    assert_int_equal(f->e->loop->conns.live_count, 0);
    assert_int_equal(write_span(f->e, LP_SPAN("x")), LP_EBROKEN);
}

/* Closing */

static void now_and_linger_say_close_notify(void **state)
{
    struct fixture *f = *state;
    for (int how = LP_CLOSE_NOW; how <= LP_CLOSE_LINGER; how++) {
        meet(f);
        lp_buf_clear(&f->heard);
        assert_int_equal(write_span(f->e, LP_SPAN("answer")), 6);
        close_conn(f->e, (enum lp_close_how)how);
        assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), 0);
        assert_span(lp_buf_span(&f->heard), "answer");
        hang_up(f);
        TURN_UNTIL(f->e, f->e->loop->conns.live_count == 0);
    }
    assert_int_equal(f->e->count, 2);
}

/* What WRITE has taken arrives, also the part of a record that the socket did not take. */
static void what_was_taken_is_sent_after_a_close(void **state)
{
    struct fixture *f = *state;
    for (int how = LP_CLOSE_NOW; how <= LP_CLOSE_LINGER; how++) {
        meet(f);
        lp_buf_clear(&f->heard);
        size_t taken = fill(f->e, lp_span(chunk, sizeof chunk));
        assert_true(lp_tls_owes(conn_of(f)->tls));
        close_conn(f->e, (enum lp_close_how)how);
        assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), 0);
        assert_int_equal(f->heard.len, taken);
        hang_up(f);
        TURN_UNTIL(f->e, f->e->loop->conns.live_count == 0);
    }
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 0);
}

/* The same when the peer sends no more itself. */
static void what_was_taken_is_sent_to_a_half_closed_peer(void **state)
{
    struct fixture *f = *state;
    for (int is_told = 0; is_told < 2; is_told++) {
        meet(f);
        lp_buf_clear(&f->heard);
        size_t taken = fill(f->e, lp_span(chunk, sizeof chunk));
        if (is_told) {
            assert_int_equal(SSL_shutdown(f->peer), 0);
            TURN_UNTIL(f->e, f->e->counts[LP_EV_EOF] == 1);
        }
        close_conn(f->e, LP_CLOSE_LINGER);
        assert_int_equal(shutdown(f->fd, SHUT_WR), 0);
        assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), 0);
        assert_int_equal(f->heard.len, taken);
        hang_up(f);
        TURN_UNTIL(f->e, f->e->loop->conns.live_count == 0);
    }
}

static void a_lingering_debt_is_bounded_in_time(void **state)
{
    struct fixture *f = *state;
    meet(f);
    (void)fill(f->e, lp_span(chunk, sizeof chunk));
    uint64_t begin_us = lp_clock_mono_us();
    close_conn(f->e, LP_CLOSE_NOW);
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    assert_in_range(lp_clock_mono_us() - begin_us, 1900000, 3000000);
}

static void a_peer_that_goes_away_ends_a_linger(void **state)
{
    struct fixture *f = *state;
    meet(f);
    (void)fill(f->e, lp_span(chunk, sizeof chunk));
    uint64_t begin_us = lp_clock_mono_us();
    close_conn(f->e, LP_CLOSE_LINGER);
    assert_int_equal(f->e->loop->lingering_count, 1);
    peer_reset(f->fd);
    f->fd = -1;
    TURN_UNTIL(f->e, f->e->loop->lingering_count == 0);
    assert_true(lp_clock_mono_us() - begin_us < 1500000);
}

/* An answer cut short must not look whole: no close_notify behind it. */
static void what_is_cut_short_is_not_ended(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 4; i++) {
        meet(f);
        lp_buf_clear(&f->heard);
        assert_int_equal(write_span(f->e, LP_SPAN("half an ans")), 11);
        if (i)
            assert_int_equal(drain_span(f->e, LP_SPAN("wer")), LP_OK);
        close_conn(f->e, i == 1 ? LP_CLOSE_NOW : i == 2 ? LP_CLOSE_LINGER : LP_CLOSE_RESET);
        assert_int_equal(peer_hear_to_end(f->e, f->peer, &f->heard), -1);
        assert_int_equal(f->e->loop->conns.live_count, 0);
        hang_up(f);
    }
}

/* Limits */

/* Each key update asks for an answer; a peer that asks and never reads gets no memory for them. */
static void unread_answers_are_bounded(void **state)
{
    struct fixture *f = *state;
    meet(f);
    (void)fill(f->e, lp_span(chunk, sizeof chunk));
    for (int i = 0; i < 20000 && !f->e->counts[LP_EV_BROKEN]; i++) {
        ERR_clear_error();
        if (SSL_key_update(f->peer, SSL_KEY_UPDATE_REQUESTED) == 1)
            (void)SSL_do_handshake(f->peer);
        turn(f->e);
    }
    assert_int_equal(f->e->counts[LP_EV_BROKEN], 1);
}

/* OpenSSL's buffers go when they are empty. Not measured under sanitizers, whose allocators do not
 * count. */
static void an_idle_connection_has_no_buffers(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 64 };
    SSL *peers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        meet(f);
        assert_int_equal(write_span(f->e, lp_span(chunk, 20000)), 20000);
        hear(f, 20000);
        peer_say(f->e, f->peer, chunk, 20000);
        TURN_UNTIL(f->e, f->e->got.len == 20000);
        assert_int_equal(conn_of(f)->interest, UV_READABLE);
        lp_buf_clear(&f->e->got);
        lp_buf_clear(&f->heard);
        peers[i] = f->peer;
    }
    size_t with = mallinfo2().uordblks;
    uint32_t cursor = 0;
    lp_id id;
    struct lp_io_conn *conn;
    while ((conn = lp_slab_next(&f->e->loop->conns, &cursor, &id)))
        lp_io_conn_drop(f->e->loop, conn);
    size_t each = (with - mallinfo2().uordblks) / COUNT;
    assert_true(each < 24000);
    f->peer = NULL;
    f->fd = -1;
    for (int i = 0; i < COUNT; i++) {
        close(SSL_get_fd(peers[i]));
        SSL_free(peers[i]);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bytes_go_both_ways),
        T(parts_may_be_longer_than_a_record),
        T(actions_before_connected_are_kept),
        T(bytes_behind_the_handshake_are_read),
        T(a_slow_handshake_is_waited_for),
        T(close_during_the_handshake_is_silent),
        T(echo_gives_every_byte_back),
        T(drain_ends_when_the_peer_reads),
        T(an_empty_drain_is_answered_in_the_next_turn),
        T(a_paused_connection_is_not_read),
        T(close_notify_is_an_end),
        T(an_end_without_close_notify_is_broken),
        T(an_end_within_a_record_is_broken),
        T(a_forged_record_is_broken),
        T(plain_words_after_the_handshake_are_broken),
        T(a_paused_connection_reports_each_ending),
        T(unread_bytes_come_before_the_end),
        T(a_broken_write_is_told_later),
        T(a_broken_write_is_told_though_paused),
        T(reset_during_a_drain_is_broken_once),
        T(nothing_comes_after_a_close),
        T(now_and_linger_say_close_notify),
        T(what_was_taken_is_sent_after_a_close),
        T(what_was_taken_is_sent_to_a_half_closed_peer),
        T(a_lingering_debt_is_bounded_in_time),
        T(a_peer_that_goes_away_ends_a_linger),
        T(what_is_cut_short_is_not_ended),
        T(unread_answers_are_bounded),
        T(an_idle_connection_has_no_buffers),
    };
    (void)lp_process_setup();
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
