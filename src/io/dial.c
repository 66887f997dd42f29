/* From CONNECT to CONNECTED or CONNECT_FAILED (io/loop.h): the name is looked up, its addresses are
 * tried in order, each with its share of the time that is left. All of it lives in a struct
 * lp_io_dial that is gone once the connection is open, so a connection does not carry it.
 *
 *   LOOKING_UP --> TRYING --> (connected: the descriptor goes to the connection)
 *                  ^    |
 *                  '--- BETWEEN   a failed try's handle is closing
 *                  FAILED         no try is left; told in the next turn, never from within CONNECT
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/loop_priv.h"
#include "io/tls.h"

enum { BACKLOG_RETRY_US = 20000, HOST_MAX = 255 };

enum dial_phase { LOOKING_UP, TRYING, BETWEEN, FAILED };

struct lp_io_dial {
    struct lp_loop *loop;
    uv_poll_t poll;
    uv_getaddrinfo_t lookup;
    struct lp_timer timer;
    struct lp_io_conn *conn; /* NULL: nobody waits any more */
    struct lp_address addresses[LP_ADDRESSES_MAX];
    struct lp_address source; /* len 0: any */
    uint32_t count;
    uint32_t next;
    uint64_t deadline_us;
    uint16_t port;
    bool is_public;
    enum dial_phase phase;
    int fd; /* of the try; -1: none, and then `poll` is not open */
    int error;
};

static int error_of(int sys_errno)
{
    switch (sys_errno) {
    case ECONNREFUSED:
    case ECONNRESET: /* the process there is just ending */
    case ECONNABORTED:
    case ENOENT: /* no such unix socket */
        return LP_EREFUSED;
    case ETIMEDOUT:
        return LP_ETIMEOUT;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case EINVAL: /* the source is of the other family */
    case EAFNOSUPPORT:
    case ENETDOWN:
    case EHOSTDOWN:
        return LP_EUNREACHABLE;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return LP_ELIMIT; /* ours, not the peer's */
    default:
        return LP_EIO;
    }
}

/* The timer stands in the heap as long as somebody waits, UINT64_MAX meaning "not set": so it needs
 * no memory in the middle of a dial. */
static void set_timer(struct lp_io_dial *dial, uint64_t at_us)
{
    int err = lp_heap_set(&dial->loop->timers, &dial->timer, at_us);
    LP_ASSERT(!err);
}

static void fail(struct lp_io_dial *dial)
{
    dial->phase = FAILED;
    set_timer(dial, 0);
}

/* Tries */

static void try_next(struct lp_io_dial *dial);
static void on_writable(uv_poll_t *poll, int status, int events);

static void on_try_closed(uv_handle_t *handle)
{
    struct lp_io_dial *dial = LP_CONTAINER((uv_poll_t *)handle, struct lp_io_dial, poll);
    if (!dial->conn)
        free(dial);
    else
        try_next(dial);
}

static void close_try(struct lp_io_dial *dial)
{
    uv_close((uv_handle_t *)&dial->poll, on_try_closed);
    if (dial->fd >= 0)
        (void)close(dial->fd);
    dial->fd = -1;
    dial->phase = BETWEEN;
}

static uint64_t try_deadline(struct lp_io_dial *dial)
{
    uint64_t now_us = lp_io_now_us(dial->loop);
    if (dial->deadline_us == UINT64_MAX || dial->deadline_us <= now_us)
        return dial->deadline_us;
    return now_us + (dial->deadline_us - now_us) / (dial->count - dial->next);
}

/* 0, or the errno. The port is left to connect, which can use one for many peers. */
static int bind_source(int fd, const struct lp_address *source)
{
    int one = 1;
    if (!source->len)
        return 0;
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    return bind(fd, &source->u.any, source->len) ? errno : 0;
}

/* 0 when the try is under way, else the errno. */
static int start_try(struct lp_io_dial *dial, const struct lp_address *address)
{
    int fd = socket(address->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (address->u.any.sa_family != AF_UNIX)
        lp_io_tcp_options(fd);
    int err = bind_source(fd, &dial->source);
    if (!err && connect(fd, &address->u.any, address->len))
        err = errno;
    if (err == EINPROGRESS)
        err = 0;
    if (!err && uv_poll_init(&dial->loop->uv, &dial->poll, fd))
        err = EIO;
    if (err) {
        (void)close(fd);
        return err;
    }
    dial->fd = fd;
    (void)uv_poll_start(&dial->poll, UV_WRITABLE, on_writable);
    return 0;
}

static void try_next(struct lp_io_dial *dial)
{
    dial->phase = TRYING;
    for (; dial->next < dial->count; dial->next++) {
        int err = start_try(dial, &dial->addresses[dial->next]);
        if (!err) {
            set_timer(dial, try_deadline(dial));
            return;
        }
        if (err == EAGAIN) { /* a unix socket's backlog is full: nothing will tell when it is not */
            dial->error = LP_ETIMEOUT;
            set_timer(dial, lp_io_now_us(dial->loop) + BACKLOG_RETRY_US);
            return;
        }
        dial->error = error_of(err);
    }
    fail(dial);
}

static void connected(struct lp_io_dial *dial)
{
    struct lp_loop *loop = dial->loop;
    struct lp_io_conn *conn = dial->conn;
    lp_id id = conn->id;
    int fd = dial->fd;
    uint64_t deadline_us = dial->deadline_us;
    dial->fd = -1;
    dial->conn = NULL;
    conn->dial = NULL;
    lp_heap_cancel(&loop->timers, &dial->timer);
    close_try(dial); /* frees the dial */
    if (conn->tls) {
        lp_io_conn_secure(loop, conn, fd, deadline_us);
        return;
    }
    struct lp_event event = {.kind = LP_EV_CONNECTED, .conn = id};
    int err = lp_io_conn_open(loop, conn, fd);
    if (err) {
        event.kind = LP_EV_CONNECT_FAILED;
        event.u.error = err;
    }
    lp_io_emit(loop, &event);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* with an error the reason lies in the socket */
    (void)events;
    struct lp_io_dial *dial = LP_CONTAINER(poll, struct lp_io_dial, poll);
    int err = 0;
    socklen_t len = sizeof err;
    (void)getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &err, &len);
    if (!err) {
        connected(dial);
        return;
    }
    dial->error = error_of(err);
    dial->next++;
    set_timer(dial, UINT64_MAX);
    close_try(dial);
}

/* The name */

static int error_of_lookup(int status)
{
    switch (status) {
    case UV_EAI_AGAIN: /* the name server does not answer */
        return LP_ETIMEOUT;
    case UV_EAI_MEMORY:
    case UV_ENOMEM:
        return LP_ELIMIT;
    default:
        return LP_ENOT_FOUND;
    }
}

/* What the name means is looked at, not the name: anybody can let a name point to 127.0.0.1. */
static void leave_out_private(struct lp_io_dial *dial)
{
    uint32_t kept = 0;
    if (!dial->is_public)
        return;
    for (uint32_t i = 0; i < dial->count; i++)
        if (lp_address_is_public(&dial->addresses[i]))
            dial->addresses[kept++] = dial->addresses[i];
    if (kept < dial->count)
        dial->error = LP_EUNREACHABLE;
    dial->count = kept;
}

static void on_looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *list)
{
    struct lp_io_dial *dial = LP_CONTAINER(lookup, struct lp_io_dial, lookup);
    if (!dial->conn) {
        uv_freeaddrinfo(list);
        free(dial);
        return;
    }
    dial->error = error_of_lookup(status);
    if (status == 0)
        dial->count = lp_address_list(list, dial->port, dial->addresses);
    uv_freeaddrinfo(list);
    leave_out_private(dial);
    try_next(dial);
}

static int look_up(struct lp_io_dial *dial, struct lp_span host)
{
    char name[HOST_MAX + 1];
    if (host.len == 0 || host.len > HOST_MAX || lp_span_find(host, 0) < host.len)
        return LP_ENOT_FOUND;
    memcpy(name, host.ptr, host.len);
    name[host.len] = 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    return uv_getaddrinfo(&dial->loop->uv, &dial->lookup, on_looked_up, name, NULL, &hints) ? LP_EIO
                                                                                            : LP_OK;
}

/* Begins the dial; what goes wrong at once is told in the next turn. */
static void begin(struct lp_io_dial *dial, const struct lp_endpoint *endpoint)
{
    int err = LP_OK;
    if (endpoint->source.len && lp_address_numeric(endpoint->source, 0, &dial->source))
        err = LP_EUNREACHABLE;
    else if (endpoint->kind == LP_EP_UNIX)
        err = lp_address_unix(endpoint->host, &dial->addresses[0]) ? LP_EUNREACHABLE : LP_OK;
    else
        err = lp_address_numeric(endpoint->host, endpoint->port, &dial->addresses[0]);
    if (!err) {
        dial->count = 1;
        leave_out_private(dial);
        try_next(dial);
        return;
    }
    if (err == LP_ENOT_FOUND)
        err = look_up(dial, endpoint->host);
    if (err) {
        dial->error = err;
        fail(dial);
    }
}

static struct lp_io_dial *dial_new(struct lp_loop *loop, const struct lp_endpoint *endpoint)
{
    struct lp_io_dial *dial = calloc(1, sizeof *dial);
    if (!dial)
        return NULL;
    dial->loop = loop;
    dial->timer.kind = LP_IO_TIMER_DIAL;
    dial->phase = LOOKING_UP;
    dial->port = endpoint->port;
    dial->is_public = endpoint->is_public;
    dial->fd = -1;
    dial->deadline_us = endpoint->timeout_ms
        ? lp_io_now_us(loop) + (uint64_t)endpoint->timeout_ms * 1000
        : UINT64_MAX;
    if (lp_heap_set(&loop->timers, &dial->timer, dial->deadline_us)) {
        free(dial);
        return NULL;
    }
    return dial;
}

static int prepare(
    struct lp_loop *loop, struct lp_io_conn *conn, const struct lp_endpoint *endpoint)
{
    int err = endpoint->is_tls ? lp_tls_new(loop->trust, endpoint->host, &conn->tls) : LP_OK;
    if (err)
        return err;
    conn->dial = dial_new(loop, endpoint);
    return conn->dial ? LP_OK : LP_ENOMEM;
}

int64_t lp_io_dial(struct lp_loop *loop, const struct lp_endpoint *endpoint)
{
    if (endpoint->is_tls && (!loop->trust || endpoint->kind != LP_EP_TCP))
        return LP_EUNSUPPORTED;
    if (endpoint->kind == LP_EP_STDIO)
        return lp_io_stdio_dial(loop);
    struct lp_io_conn *conn = lp_io_conn_new(loop);
    if (!conn)
        return LP_ELIMIT;
    int err = prepare(loop, conn, endpoint);
    if (err) {
        lp_io_conn_drop(loop, conn);
        return err;
    }
    conn->dial->conn = conn;
    begin(conn->dial, endpoint);
    return (int64_t)conn->id;
}

/* Endings */

void lp_io_dial_cancel(struct lp_loop *loop, struct lp_io_dial *dial)
{
    lp_heap_cancel(&loop->timers, &dial->timer);
    dial->conn = NULL;
    if (dial->fd >= 0)
        close_try(dial);
    else if (dial->phase == LOOKING_UP)
        (void)uv_cancel((uv_req_t *)&dial->lookup); /* on_looked_up comes in any case */
    else if (dial->phase != BETWEEN)
        free(dial);
}

static void tell_failed(struct lp_io_dial *dial)
{
    struct lp_loop *loop = dial->loop;
    struct lp_event event = {.kind = LP_EV_CONNECT_FAILED, .conn = dial->conn->id};
    event.u.error = dial->error;
    lp_io_conn_drop(loop, dial->conn); /* cancels the dial too */
    lp_io_emit(loop, &event);
}

void lp_io_dial_timeout(struct lp_loop *loop, struct lp_timer *timer)
{
    struct lp_io_dial *dial = LP_CONTAINER(timer, struct lp_io_dial, timer);
    bool is_over = lp_io_now_us(loop) >= dial->deadline_us;
    set_timer(dial, UINT64_MAX);
    if (dial->phase == TRYING && dial->fd < 0 && !is_over) {
        try_next(dial); /* the backlog again */
        return;
    }
    if (dial->phase != FAILED)
        dial->error = LP_ETIMEOUT;
    if (dial->phase != TRYING || dial->fd < 0 || is_over) {
        tell_failed(dial);
        return;
    }
    dial->next++;
    close_try(dial);
}
