/* An open connection: reading, writing, pausing, closing (io/loop.h). Decides what a descriptor is
 * watched for and what an ending looks like on the wire; how it came to be is dial.c and accept.c.
 *
 * Sockets are driven by uv_poll and plain recv/send, not by libuv's streams: a stream keeps a write
 * request and a queue for each connection (twice the memory), copies nothing less, and hides resets
 * while it is not reading.
 *
 *   DIALLING --open--> OPEN --LINGER--> LINGERING --> CLOSED       (memory goes when libuv lets go)
 *       '----------------'---NOW, RESET, BROKEN---------^
 *
 * With TLS (io/tls.h) a connection is DIALLING until the handshake is over, and what the socket
 * says is not all there is: decrypted bytes may wait without it being readable, a record may be
 * owed to it. Its timer stands in the heap from the handshake on, so that setting it cannot fail.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io/loop_priv.h"
#include "io/tls.h"

enum {
    READS_PER_EVENT = 4,         /* then the others have their turn */
    LINGER_BYTES_MAX = 16 << 20, /* a body over the limit still comes while its 413 is on the way */
    LINGER_US = 2000000,
    KEEPALIVE_IDLE_S = 60, /* a vanished host is noticed after idle + interval * count */
    KEEPALIVE_INTERVAL_S = 15,
    KEEPALIVE_COUNT = 4,
};

void lp_io_tcp_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT},
    };
    /* A socket that lacks one of them (unix) works all the same. */
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static struct lp_io_conn *conn_of(uv_poll_t *poll)
{
    return LP_CONTAINER(poll, struct lp_io_conn, poll);
}

/* The connection for an action; NULL when its id is dead. */
static struct lp_io_conn *find(struct lp_loop *loop, lp_id id)
{
    struct lp_io_conn *conn = lp_slab_get(&loop->conns, id);
    return conn && (conn->state == LP_IO_DIALLING || conn->state == LP_IO_OPEN) ? conn : NULL;
}

struct lp_io_conn *lp_io_conn_new(struct lp_loop *loop)
{
    lp_id id;
    struct lp_io_conn *conn = lp_slab_new(&loop->conns, &id);
    if (!conn)
        return NULL;
    conn->id = id;
    conn->fd = -1;
    conn->state = LP_IO_DIALLING;
    conn->timer.kind = LP_IO_TIMER_CONN;
    return conn;
}

/* Closing */

static void on_closed(uv_handle_t *handle)
{
    struct lp_loop *loop = handle->loop->data;
    lp_slab_free(&loop->conns, conn_of((uv_poll_t *)handle)->id);
}

void lp_io_conn_drop(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->state == LP_IO_CLOSED)
        return;
    if (conn->state == LP_IO_LINGERING)
        loop->lingering_count--;
    lp_heap_cancel(&loop->timers, &conn->timer);
    if (conn->dial)
        lp_io_dial_cancel(loop, conn->dial);
    conn->dial = NULL;
    lp_tls_free(conn->tls);
    conn->tls = NULL;
    conn->state = LP_IO_CLOSED;
    if (conn->fd < 0) {
        lp_slab_free(&loop->conns, conn->id);
        return;
    }
    uv_close((uv_handle_t *)&conn->poll, on_closed);
    (void)close(conn->fd);
}

static void tell(struct lp_loop *loop, struct lp_io_conn *conn, enum lp_event_kind kind)
{
    lp_io_emit(loop, &(struct lp_event){.kind = kind, .conn = conn->id});
}

static void die(struct lp_loop *loop, struct lp_io_conn *conn)
{
    lp_io_conn_drop(loop, conn);
    lp_io_emit(loop, /* the memory lives until on_closed */
        &(struct lp_event){.kind = LP_EV_BROKEN, .conn = conn->id, .u.error = conn->error});
}

static void reset(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->fd >= 0) {
        struct linger none = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
    lp_io_conn_drop(loop, conn);
}

/* Watching */

static void on_poll(uv_poll_t *poll, int status, int events);

static bool owes(const struct lp_io_conn *conn)
{
    return conn->tls && lp_tls_owes(conn->tls);
}

static int wanted(const struct lp_io_conn *conn)
{
    bool has_output = (conn->is_draining && conn->state == LP_IO_OPEN) || owes(conn);
    int events = has_output ? UV_WRITABLE : 0;
    if (conn->watch == LP_IO_WATCH_INPUT)
        events |= UV_READABLE;
    else if (conn->watch == LP_IO_WATCH_END)
        events |= UV_DISCONNECT;
    return events;
}

static void refresh(struct lp_io_conn *conn)
{
    int events = wanted(conn);
    if (conn->state == LP_IO_CLOSED || events == conn->interest)
        return;
    conn->interest = events;
    int err = events ? uv_poll_start(&conn->poll, events, on_poll) : uv_poll_stop(&conn->poll);
    LP_ASSERT(!err);
}

/* Reading */

static ssize_t receive(struct lp_io_conn *conn, char *room, size_t cap, int flags)
{
    ssize_t n;
    do
        n = recv(conn->fd, room, cap, flags);
    while (n < 0 && errno == EINTR);
    return n;
}

static void end_input(struct lp_loop *loop, struct lp_io_conn *conn)
{
    conn->has_eof = true;
    conn->watch = LP_IO_WATCH_NOTHING;
    tell(loop, conn, LP_EV_EOF);
}

/* What a recv that gave no bytes means. */
static void take_end(struct lp_loop *loop, struct lp_io_conn *conn, ssize_t n)
{
    if (n < 0 && errno == EAGAIN)
        return;
    if (n < 0 || conn->has_eof) {
        die(loop, conn);
        return;
    }
    end_input(loop, conn);
}

static void read_plain(struct lp_loop *loop, struct lp_io_conn *conn)
{
    ssize_t n = LP_IO_READ_BYTES;
    for (int i = 0; i < READS_PER_EVENT && n == LP_IO_READ_BYTES; i++) {
        n = receive(conn, loop->read_room, LP_IO_READ_BYTES, 0);
        if (n <= 0) {
            take_end(loop, conn, n);
            return;
        }
        struct lp_event event = {.kind = LP_EV_READ, .conn = conn->id};
        event.u.bytes = lp_span(loop->read_room, (size_t)n);
        lp_io_emit(loop, &event);
        if (conn->state != LP_IO_OPEN || conn->is_paused)
            return;
    }
}

static void wake_next_turn(struct lp_loop *loop, struct lp_io_conn *conn)
{
    int err = lp_heap_set(&loop->timers, &conn->timer, 0);
    LP_ASSERT(!err);
}

static void take_tls_end(struct lp_loop *loop, struct lp_io_conn *conn, enum lp_tls_got got)
{
    if (got == LP_TLS_CUT)
        die(loop, conn);
    else if (got == LP_TLS_END)
        end_input(loop, conn);
}

static void read_tls(struct lp_loop *loop, struct lp_io_conn *conn)
{
    enum lp_tls_got got = LP_TLS_BYTES;
    for (int i = 0; i < READS_PER_EVENT && got == LP_TLS_BYTES && !conn->is_paused; i++) {
        struct lp_event event = {.kind = LP_EV_READ, .conn = conn->id};
        size_t len;
        got = lp_tls_read(conn->tls, loop->read_room, LP_IO_READ_BYTES, &len);
        event.u.bytes = lp_span(loop->read_room, len);
        if (len)
            lp_io_emit(loop, &event);
        if (conn->state != LP_IO_OPEN)
            return;
    }
    take_tls_end(loop, conn, got);
    if (got == LP_TLS_BYTES && !conn->is_paused && lp_tls_has_bytes(conn->tls))
        wake_next_turn(loop, conn);
}

static void read_input(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->tls)
        read_tls(loop, conn);
    else
        read_plain(loop, conn);
}

/* Something came while the engine does not want to read. An end or a reset with no bytes before it
 * is told all the same; bytes stay in the kernel. */
static void look_while_paused(struct lp_loop *loop, struct lp_io_conn *conn, bool is_ended)
{
    char byte;
    enum lp_tls_got got = conn->tls ? lp_tls_peek(conn->tls) : LP_TLS_BYTES;
    ssize_t n = conn->tls ? 1 : receive(conn, &byte, 1, MSG_PEEK);
    if (n <= 0)
        take_end(loop, conn, n);
    else if (got != LP_TLS_BYTES)
        take_tls_end(loop, conn, got);
    else
        conn->watch = is_ended ? LP_IO_WATCH_NOTHING : LP_IO_WATCH_END;
}

/* The drop-what-comes of CLOSE_LINGER. */
static void drop_input(struct lp_loop *loop, struct lp_io_conn *conn)
{
    ssize_t n = receive(conn, loop->read_room, LP_IO_READ_BYTES, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n == 0 && owes(conn)) { /* half closed: it may still read */
        conn->has_eof = true;
        conn->watch = LP_IO_WATCH_NOTHING;
        return;
    }
    if (n > 0)
        conn->dropped_bytes += (uint32_t)n;
    if (n <= 0 || conn->dropped_bytes >= LINGER_BYTES_MAX)
        lp_io_conn_drop(loop, conn);
}

/* Writing */

static ssize_t transmit(struct lp_io_conn *conn, const struct msghdr *message)
{
    ssize_t n;
    do
        n = sendmsg(conn->fd, message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

/* How many bytes were taken at once, or < 0. */
static int64_t write_span(struct lp_io_conn *conn, struct lp_span span)
{
    if (conn->tls)
        return lp_tls_write(conn->tls, &span, 1);
    struct iovec part = {.iov_base = (char *)span.ptr, .iov_len = span.len};
    return transmit(conn, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1});
}

static void drain_more(struct lp_loop *loop, struct lp_io_conn *conn)
{
    int64_t n = write_span(conn, conn->drain);
    if (n < 0) {
        die(loop, conn);
        return;
    }
    if (n > 0)
        conn->drain = lp_span_from(conn->drain, (size_t)n);
    if (conn->is_draining && conn->drain.len == 0 && !owes(conn)) {
        conn->is_draining = false;
        tell(loop, conn, LP_EV_DRAINED);
    }
}

/* What was owed at a CLOSE is out: now our side ends, as without TLS. */
static void flush_lingering(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (lp_tls_flush(conn->tls) || (!owes(conn) && (conn->has_eof || shutdown(conn->fd, SHUT_WR))))
        lp_io_conn_drop(loop, conn);
}

static void shake(struct lp_loop *loop, struct lp_io_conn *conn)
{
    struct lp_event event = {.kind = LP_EV_CONNECTED, .conn = conn->id};
    switch (lp_tls_handshake(conn->tls)) {
    case LP_TLS_WAIT:
        return;
    case LP_TLS_DONE:
        conn->state = LP_IO_OPEN;
        wake_next_turn(loop, conn); /* bytes may have come with the handshake's last */
        break;
    case LP_TLS_FAILED:
        event.kind = LP_EV_CONNECT_FAILED;
        event.u.error = lp_tls_error(conn->tls);
        lp_io_conn_drop(loop, conn);
        break;
    }
    lp_io_emit(loop, &event);
}

static void on_output(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->state == LP_IO_OPEN && (conn->is_draining || owes(conn)))
        drain_more(loop, conn);
    else if (conn->state == LP_IO_LINGERING && owes(conn))
        flush_lingering(loop, conn);
}

static void on_input(struct lp_loop *loop, struct lp_io_conn *conn, bool is_ended)
{
    if (conn->state == LP_IO_LINGERING)
        drop_input(loop, conn);
    else if (conn->is_paused)
        look_while_paused(loop, conn, is_ended);
    else
        read_input(loop, conn);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct lp_io_conn *conn = conn_of(poll);
    struct lp_loop *loop = poll->loop->data;
    bool is_failed = status < 0;
    /* An error stops the handle; which error it is, recv or send says. */
    if (is_failed)
        conn->interest = 0;
    if (conn->state == LP_IO_DIALLING) {
        shake(loop, conn);
        refresh(conn);
        return;
    }
    /* Input first: a peer may answer and then reset, and its answer counts. */
    bool is_ended = is_failed || (events & UV_DISCONNECT);
    if (is_ended || (events & UV_READABLE))
        on_input(loop, conn, is_ended);
    if (is_failed || (events & UV_WRITABLE))
        on_output(loop, conn);
    refresh(conn);
}

static int attach(struct lp_loop *loop, struct lp_io_conn *conn, int fd)
{
    LP_ASSERT(conn->state == LP_IO_DIALLING && conn->fd < 0);
    if (uv_poll_init(&loop->uv, &conn->poll, fd)) {
        (void)close(fd);
        lp_io_conn_drop(loop, conn);
        return LP_EIO;
    }
    conn->fd = fd;
    conn->watch = LP_IO_WATCH_INPUT;
    return LP_OK;
}

int lp_io_conn_open(struct lp_loop *loop, struct lp_io_conn *conn, int fd)
{
    int err = attach(loop, conn, fd);
    if (err)
        return err;
    conn->state = LP_IO_OPEN;
    /* A pause or a DRAIN may have been asked for while it was dialling. */
    refresh(conn);
    return LP_OK;
}

void lp_io_conn_secure(struct lp_loop *loop, struct lp_io_conn *conn, int fd, uint64_t deadline_us)
{
    struct lp_event failed = {.kind = LP_EV_CONNECT_FAILED, .conn = conn->id};
    failed.u.error = attach(loop, conn, fd);
    if (!failed.u.error && lp_heap_set(&loop->timers, &conn->timer, deadline_us)) {
        lp_io_conn_drop(loop, conn);
        failed.u.error = LP_ENOMEM;
    }
    if (failed.u.error) {
        lp_io_emit(loop, &failed);
        return;
    }
    lp_tls_attach(conn->tls, fd);
    shake(loop, conn);
    refresh(conn);
}

/* Actions */

static struct msghdr gather(const struct lp_action *action, struct iovec room[LP_WRITE_PARTS_MAX])
{
    LP_ASSERT(action->u.write.count <= LP_WRITE_PARTS_MAX);
    struct msghdr message = {.msg_iov = room};
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        if (part.len)
            room[message.msg_iovlen++] = (struct iovec){(char *)part.ptr, part.len};
    }
    return message;
}

int64_t lp_io_conn_write(struct lp_loop *loop, const struct lp_action *action)
{
    struct lp_io_conn *conn = find(loop, action->conn);
    if (!conn || conn->is_broken)
        return LP_EBROKEN;
    LP_ASSERT(!conn->is_draining);
    if (conn->state == LP_IO_DIALLING)
        return 0;
    struct iovec parts[LP_WRITE_PARTS_MAX];
    int64_t n = 0;
    if (conn->tls) {
        n = lp_tls_write(conn->tls, action->u.write.parts, action->u.write.count);
        refresh(conn);
    } else {
        struct msghdr message = gather(action, parts);
        n = message.msg_iovlen ? transmit(conn, &message) : 0;
    }
    if (n >= 0)
        return n;
    /* The event must follow, but not from here. Should there be no memory for the timer, the
     * socket, which is still watched, reports its error by itself. */
    conn->is_broken = true;
    (void)!lp_heap_set(&loop->timers, &conn->timer, 0);
    return LP_EBROKEN;
}

int64_t lp_io_conn_drain(struct lp_loop *loop, const struct lp_action *action)
{
    struct lp_io_conn *conn = find(loop, action->conn);
    if (!conn || conn->is_broken)
        return LP_EBROKEN;
    LP_ASSERT(!conn->is_draining);
    conn->is_draining = true;
    conn->drain = action->u.drain;
    if (conn->state == LP_IO_OPEN)
        refresh(conn);
    return LP_OK;
}

int64_t lp_io_conn_pause(struct lp_loop *loop, lp_id id, bool is_paused)
{
    struct lp_io_conn *conn = find(loop, id);
    if (!conn || conn->is_paused == is_paused)
        return LP_OK;
    conn->is_paused = is_paused;
    /* A pause changes what is watched only when something comes. */
    if (conn->state == LP_IO_OPEN && !is_paused && !conn->has_eof) {
        conn->watch = LP_IO_WATCH_INPUT;
        refresh(conn);
        if (conn->tls && !conn->is_broken)
            wake_next_turn(loop, conn); /* bytes may wait that the socket does not know of */
    }
    return LP_OK;
}

static void linger(struct lp_loop *loop, struct lp_io_conn *conn)
{
    bool has_debt = owes(conn); /* then our side ends later */
    bool is_over = conn->state == LP_IO_DIALLING || conn->is_broken;
    if (is_over || (!has_debt && (conn->has_eof || shutdown(conn->fd, SHUT_WR))) ||
        lp_heap_set(&loop->timers, &conn->timer, lp_io_now_us(loop) + LINGER_US)) {
        lp_io_conn_drop(loop, conn);
        return;
    }
    conn->state = LP_IO_LINGERING;
    loop->lingering_count++;
    conn->watch = conn->has_eof ? LP_IO_WATCH_NOTHING : LP_IO_WATCH_INPUT;
    refresh(conn);
}

int64_t lp_io_conn_close(struct lp_loop *loop, lp_id id, enum lp_close_how how)
{
    struct lp_io_conn *conn = find(loop, id);
    if (!conn)
        return LP_OK;
    bool is_cut = how == LP_CLOSE_RESET || conn->is_draining;
    if (conn->tls && conn->state == LP_IO_OPEN && !is_cut)
        lp_tls_end(conn->tls);
    if (how == LP_CLOSE_RESET || (how == LP_CLOSE_LINGER && conn->is_draining))
        reset(loop, conn);
    else if (how == LP_CLOSE_LINGER || (owes(conn) && !is_cut))
        linger(loop, conn);
    else
        lp_io_conn_drop(loop, conn);
    return LP_OK;
}

/* The handshake is not over in time. */
static void give_up(struct lp_loop *loop, struct lp_io_conn *conn)
{
    struct lp_event event = {.kind = LP_EV_CONNECT_FAILED, .conn = conn->id};
    event.u.error = LP_ETIMEOUT;
    lp_io_conn_drop(loop, conn);
    lp_io_emit(loop, &event);
}

/* What its timer was set for while it is OPEN. */
static void wake(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (!conn->has_eof && !conn->is_paused)
        read_input(loop, conn);
    else if (!conn->has_eof && conn->tls)
        look_while_paused(loop, conn, false);
    /* A BROKEN that is owed; but what the peer said before it hung up came first. */
    if (conn->state == LP_IO_OPEN && conn->is_broken)
        die(loop, conn);
    refresh(conn);
}

void lp_io_conn_timeout(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->tls) {
        int err = lp_heap_set(&loop->timers, &conn->timer, UINT64_MAX); /* keeps its place */
        LP_ASSERT(!err);
    }
    if (conn->state == LP_IO_LINGERING)
        lp_io_conn_drop(loop, conn);
    else if (conn->state == LP_IO_OPEN)
        wake(loop, conn);
    else if (conn->tls)
        give_up(loop, conn);
    else
        lp_io_stdio_connect(loop, conn);
}

void lp_io_conn_break(struct lp_loop *loop, lp_id id, int error)
{
    struct lp_io_conn *conn = lp_slab_get(&loop->conns, id);
    if (!conn || conn->state == LP_IO_CLOSED)
        return;
    conn->is_broken = true;
    conn->error = error;
    lp_io_conn_timeout(loop, conn);
}
