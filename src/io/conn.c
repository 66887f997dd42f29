/* An open connection: reading, writing, pausing, closing (io/loop.h). Decides what a descriptor is
 * watched for and what an ending looks like on the wire; how it came to be is dial.c and accept.c.
 *
 * Sockets are driven by uv_poll and plain recv/send, not by libuv's streams: a stream keeps a write
 * request and a queue for each connection (twice the memory), copies nothing less, and hides resets
 * while it is not reading.
 *
 *   DIALLING --open--> OPEN --LINGER--> LINGERING --> CLOSED       (memory goes when libuv lets go)
 *       '----------------'---NOW, RESET, BROKEN---------^ */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io/loop_priv.h"

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
    tell(loop, conn, LP_EV_BROKEN); /* the memory lives until on_closed */
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

static int wanted(const struct lp_io_conn *conn)
{
    int events = conn->is_draining ? UV_WRITABLE : 0;
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

/* What a recv that gave no bytes means. */
static void take_end(struct lp_loop *loop, struct lp_io_conn *conn, ssize_t n)
{
    if (n < 0 && errno == EAGAIN)
        return;
    if (n < 0 || conn->has_eof) {
        die(loop, conn);
        return;
    }
    conn->has_eof = true;
    conn->watch = LP_IO_WATCH_NOTHING;
    tell(loop, conn, LP_EV_EOF);
}

static void read_input(struct lp_loop *loop, struct lp_io_conn *conn)
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

/* Something came while the engine does not want to read. An end or a reset with no bytes before it
 * is told all the same; bytes stay in the kernel. */
static void look_while_paused(struct lp_loop *loop, struct lp_io_conn *conn, bool is_ended)
{
    char byte;
    ssize_t n = receive(conn, &byte, 1, MSG_PEEK);
    if (n <= 0)
        take_end(loop, conn, n);
    else
        conn->watch = is_ended ? LP_IO_WATCH_NOTHING : LP_IO_WATCH_END;
}

/* The drop-what-comes of CLOSE_LINGER. */
static void drop_input(struct lp_loop *loop, struct lp_io_conn *conn)
{
    ssize_t n = receive(conn, loop->read_room, LP_IO_READ_BYTES, 0);
    if (n < 0 && errno == EAGAIN)
        return;
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

static void drain_more(struct lp_loop *loop, struct lp_io_conn *conn)
{
    struct iovec part = {.iov_base = (char *)conn->drain.ptr, .iov_len = conn->drain.len};
    ssize_t n = transmit(conn, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1});
    if (n < 0) {
        die(loop, conn);
        return;
    }
    if (n > 0)
        conn->drain = lp_span_from(conn->drain, (size_t)n);
    if (conn->drain.len == 0) {
        conn->is_draining = false;
        tell(loop, conn, LP_EV_DRAINED);
    }
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
    /* Input first: a peer may answer and then reset, and its answer counts. */
    bool is_ended = is_failed || (events & UV_DISCONNECT);
    if (is_ended || (events & UV_READABLE))
        on_input(loop, conn, is_ended);
    bool can_write = is_failed || (events & UV_WRITABLE);
    if (can_write && conn->state == LP_IO_OPEN && conn->is_draining)
        drain_more(loop, conn);
    refresh(conn);
}

int lp_io_conn_open(struct lp_loop *loop, struct lp_io_conn *conn, int fd)
{
    LP_ASSERT(conn->state == LP_IO_DIALLING && conn->fd < 0);
    if (uv_poll_init(&loop->uv, &conn->poll, fd)) {
        (void)close(fd);
        lp_io_conn_drop(loop, conn);
        return LP_EIO;
    }
    conn->fd = fd;
    conn->state = LP_IO_OPEN;
    /* A pause or a DRAIN may have been asked for while it was dialling. */
    conn->watch = LP_IO_WATCH_INPUT;
    refresh(conn);
    return LP_OK;
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
    struct msghdr message = gather(action, parts);
    ssize_t n = message.msg_iovlen ? transmit(conn, &message) : 0;
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
    }
    return LP_OK;
}

static void linger(struct lp_loop *loop, struct lp_io_conn *conn)
{
    bool is_over = conn->fd < 0 || conn->is_broken || conn->has_eof;
    if (is_over || shutdown(conn->fd, SHUT_WR) ||
        lp_heap_set(&loop->timers, &conn->timer, lp_io_now_us(loop) + LINGER_US)) {
        lp_io_conn_drop(loop, conn);
        return;
    }
    conn->state = LP_IO_LINGERING;
    loop->lingering_count++;
    conn->watch = LP_IO_WATCH_INPUT;
    refresh(conn);
}

int64_t lp_io_conn_close(struct lp_loop *loop, lp_id id, enum lp_close_how how)
{
    struct lp_io_conn *conn = find(loop, id);
    if (!conn)
        return LP_OK;
    if (how == LP_CLOSE_RESET || (how == LP_CLOSE_LINGER && conn->is_draining))
        reset(loop, conn);
    else if (how == LP_CLOSE_LINGER)
        linger(loop, conn);
    else
        lp_io_conn_drop(loop, conn);
    return LP_OK;
}

void lp_io_conn_timeout(struct lp_loop *loop, struct lp_io_conn *conn)
{
    if (conn->state == LP_IO_DIALLING) {
        lp_io_stdio_connect(loop, conn);
        return;
    }
    if (conn->state == LP_IO_LINGERING) {
        lp_io_conn_drop(loop, conn);
        return;
    }
    /* A BROKEN is owed; but what the peer said before it hung up comes first. */
    if (!conn->is_paused && !conn->has_eof)
        read_input(loop, conn);
    if (conn->state == LP_IO_OPEN)
        die(loop, conn);
}

void lp_io_conn_break(struct lp_loop *loop, lp_id id)
{
    struct lp_io_conn *conn = lp_slab_get(&loop->conns, id);
    if (conn && conn->state != LP_IO_CLOSED)
        lp_io_conn_timeout(loop, conn);
}
