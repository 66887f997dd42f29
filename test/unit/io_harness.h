/* For the tests of io/: an engine that writes down what it is told, a loop that is turned by hand,
 * and plain sockets for the other side. Everything runs over loopback in one thread unless a test
 * says otherwise; peers are non-blocking, so that nothing can hang. */
#ifndef LP_TEST_IO_HARNESS_H
#define LP_TEST_IO_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "io/listener.h"
#include "io/loop_priv.h"

enum { EVENTS_MAX = 4096 };

/* The test's engine. `hook` may act on an event; it is called after the event was noted. */
struct engine {
    struct lp_loop *loop;
    const struct lp_shell *shell;
    void (*hook)(struct engine *e, const struct lp_event *event);
    struct lp_event events[EVENTS_MAX];
    uint32_t count;
    uint32_t counts[LP_EV_STOP + 1];
    struct lp_buf got; /* the bytes of READ and MAIL events, one after the other */
    lp_id conn;        /* of the last ACCEPTED, or what the test puts here */
    char peer[LP_ADDRESS_TEXT_MAX], local[LP_ADDRESS_TEXT_MAX];
    bool is_acting;      /* an action is being performed: no event may come */
    struct lp_span rest; /* what the echo has not sent yet */
    void *extra;
};

static inline int64_t act(struct engine *e, struct lp_action action)
{
    e->is_acting = true;
    int64_t result = e->shell->perform(e->shell->ctx, &action);
    e->is_acting = false;
    return result;
}

static inline void copy_span(char *room, struct lp_span from)
{
    assert_true(from.len < LP_ADDRESS_TEXT_MAX);
    memcpy(room, from.ptr, from.len);
    room[from.len] = 0;
}

static inline void note_event(void *engine, const struct lp_event *event)
{
    struct engine *e = engine;
    assert_false(e->is_acting);
    assert_true(e->count < EVENTS_MAX);
    assert_true(event->mono_us > 0 && event->wall_ms > 1600000000000);
    if (e->count)
        assert_true(event->mono_us >= e->events[e->count - 1].mono_us);
    e->events[e->count++] = *event;
    e->counts[event->kind]++;
    if (event->kind == LP_EV_ACCEPTED) {
        e->conn = event->conn;
        copy_span(e->peer, event->u.accepted.peer);
        copy_span(e->local, event->u.accepted.local);
    }
    if (event->kind == LP_EV_READ)
        assert_int_equal(lp_buf_append(&e->got, event->u.bytes), LP_OK);
    if (event->kind == LP_EV_MAIL)
        assert_int_equal(lp_buf_append(&e->got, event->u.mail.bytes), LP_OK);
    if (e->hook)
        e->hook(e, event);
}

static inline struct engine *engine_new(const struct lp_loop_args *args)
{
    struct engine *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->loop = lp_loop_new(args);
    assert_non_null(e->loop);
    e->shell = lp_loop_shell(e->loop);
    lp_buf_init(&e->got, (size_t)64 << 20);
    lp_loop_attach(e->loop, e, note_event);
    return e;
}

static inline struct engine *engine_plain(void)
{
    return engine_new(&(struct lp_loop_args){0});
}

static inline void engine_free(struct engine *e)
{
    lp_loop_free(e->loop);
    lp_buf_release(&e->got);
    free(e);
}

static inline void turn(struct engine *e)
{
    (void)uv_run(&e->loop->uv, UV_RUN_NOWAIT);
}

/* Turns the loop until the condition holds; fails the test after ten seconds. */
#define TURN_UNTIL(e, condition)                                                                   \
    do {                                                                                           \
        uint64_t until_us = lp_clock_mono_us() + 10000000;                                         \
        while (!(condition)) {                                                                     \
            turn(e);                                                                               \
            if (lp_clock_mono_us() > until_us)                                                     \
                fail_msg("never came true: %s", #condition);                                       \
            if (!(condition))                                                                      \
                usleep(200);                                                                       \
        }                                                                                          \
    } while (0)

/* Turns the loop for a while in which something must not happen. */
static inline void turn_for_ms(struct engine *e, uint64_t ms)
{
    uint64_t until_us = lp_clock_mono_us() + ms * 1000;
    while (lp_clock_mono_us() < until_us) {
        turn(e);
        usleep(500);
    }
}

/* Listening and connecting */

static inline struct lp_listener *listen_at(struct engine *e, const char *host, bool is_unix)
{
    struct lp_buf why;
    lp_buf_init(&why, 1000);
    struct lp_listener_args args = {.host = lp_span_str(host), .is_unix = is_unix, .index = 7};
    struct lp_listener *listener = NULL;
    int err = lp_listener_open(&args, &e->loop, 1, &why, &listener);
    if (err)
        fail_msg("%s: %.*s", host, (int)why.len, why.ptr);
    lp_buf_release(&why);
    return listener;
}

static inline struct sockaddr_in at_port(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A connected non-blocking socket of the peer. */
static inline int dial_port(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = at_port(port);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* A peer's listening socket. */
static inline int peer_listen(int backlog, uint16_t *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = at_port(0);
    socklen_t len = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* An accepted connection with its peer: e->conn and the peer's socket. */
static inline int connect_peer(struct engine *e, struct lp_listener *listener)
{
    uint32_t before = e->counts[LP_EV_ACCEPTED];
    int fd = dial_port(lp_listener_port(listener));
    TURN_UNTIL(e, e->counts[LP_EV_ACCEPTED] > before);
    return fd;
}

static inline lp_id connect_out(struct engine *e, struct lp_endpoint to)
{
    int64_t id = act(e, (struct lp_action){.kind = LP_ACT_CONNECT, .u.connect = to});
    assert_true(id > 0);
    e->conn = (lp_id)id;
    return e->conn;
}

static inline struct lp_endpoint tcp_endpoint(const char *host, uint16_t port, uint32_t timeout_ms)
{
    return (struct lp_endpoint){
        .kind = LP_EP_TCP, .host = lp_span_str(host), .port = port, .timeout_ms = timeout_ms};
}

/* Short forms of actions */

static inline int64_t write_parts(struct engine *e, const struct lp_span *parts, uint32_t count)
{
    struct lp_action action = {.kind = LP_ACT_WRITE, .conn = e->conn};
    action.u.write.parts = parts;
    action.u.write.count = count;
    return act(e, action);
}

static inline int64_t write_span(struct engine *e, struct lp_span bytes)
{
    return write_parts(e, &bytes, 1);
}

static inline int64_t drain_span(struct engine *e, struct lp_span bytes)
{
    return act(e, (struct lp_action){.kind = LP_ACT_DRAIN, .conn = e->conn, .u.drain = bytes});
}

static inline void close_conn(struct engine *e, enum lp_close_how how)
{
    struct lp_action action = {.kind = LP_ACT_CLOSE, .conn = e->conn, .u.close = how};
    assert_int_equal(act(e, action), LP_OK);
}

static inline void pause_conn(struct engine *e, bool is_paused)
{
    enum lp_action_kind kind = is_paused ? LP_ACT_READ_OFF : LP_ACT_READ_ON;
    assert_int_equal(act(e, (struct lp_action){.kind = kind, .conn = e->conn}), LP_OK);
}

/* The peer's side */

static inline void peer_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static inline void peer_reset(int fd)
{
    struct linger none = {.l_onoff = 1};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    assert_int_equal(close(fd), 0);
}

/* Reads what is there: more bytes, 0 at the end, -errno. */
static inline ssize_t peer_read(int fd, struct lp_buf *into)
{
    char room[65536];
    ssize_t n = recv(fd, room, sizeof room, 0);
    if (n < 0)
        return -errno;
    assert_int_equal(lp_buf_append(into, lp_span(room, (size_t)n)), LP_OK);
    return n;
}

/* Turns the loop until the peer has seen its end of the connection: 0 or -errno. */
static inline ssize_t peer_read_to_end(struct engine *e, int fd, struct lp_buf *into)
{
    ssize_t n = 1;
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (n > 0 || n == -EAGAIN) {
        turn(e);
        n = peer_read(fd, into);
        if (lp_clock_mono_us() > until_us)
            fail_msg("the connection never ended");
        if (n == -EAGAIN)
            usleep(200);
    }
    return n;
}

static inline void assert_span(struct lp_span got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

/* Writes through the shell until the socket takes no more; how much it took. */
static inline size_t fill(struct engine *e, struct lp_span chunk)
{
    size_t total = 0;
    int64_t n;
    while ((n = write_span(e, chunk)) > 0)
        total += (size_t)n;
    assert_int_equal(n, 0);
    return total;
}

#endif
