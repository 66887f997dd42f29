/* The connection of LP_EP_STDIO: one end of a socket pair for the loop, and two threads that pump
 * between the other end and the descriptors 0 and 1.
 *
 *   fd 0 --> thread "in" --> pair --> loop: an ordinary connection (conn.c)
 *   fd 1 <-- thread "out" <-- pair <-- loop
 *
 * Threads, because epoll refuses regular files and /dev/null, and because a non-blocking flag would
 * be seen by every other process that has the same pipe or terminal. A full pair is the
 * back-pressure. What the loop cannot see from the pair, that nobody reads fd 1 any more, comes by
 * mail.
 *
 * The pump belongs to the loop until lp_io_stdio_fini. A thread stuck in a write to a reader that
 * does not read is left behind then, and frees the pump if it ever gets on. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/loop_priv.h"

enum { PUMP_BYTES = 16384, FINI_WAIT_S = 2 };

struct lp_io_stdio {
    pthread_mutex_t mutex; /* over `loop` and `running_count` */
    pthread_cond_t ended;
    struct lp_loop *loop; /* NULL: it is gone */
    lp_id conn;
    uint32_t running_count;
    int fd; /* the threads' end of the pair */
    bool is_out_regular;
};

static void pump_free(struct lp_io_stdio *pump)
{
    (void)close(pump->fd);
    (void)pthread_cond_destroy(&pump->ended);
    (void)pthread_mutex_destroy(&pump->mutex);
    free(pump);
}

/* The last act of a thread. */
static void leave(struct lp_io_stdio *pump)
{
    (void)pthread_mutex_lock(&pump->mutex);
    bool is_orphan = --pump->running_count == 0 && !pump->loop;
    (void)pthread_cond_signal(&pump->ended);
    (void)pthread_mutex_unlock(&pump->mutex);
    if (is_orphan)
        pump_free(pump);
}

/* A standard descriptor has failed. Without memory for the mail the pair's end tells the loop as
 * much as it can: EOF, and an error for the next write. */
static void tell_broken(struct lp_io_stdio *pump, int error)
{
    (void)pthread_mutex_lock(&pump->mutex);
    if (pump->loop && lp_io_mail_broken(pump->loop, pump->conn, error))
        (void)shutdown(pump->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&pump->mutex);
}

/* Waits until fds[0] or fds[1] has something; what poll says of an error is told by the call that
 * comes next. */
static void wait_for(struct pollfd fds[2])
{
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
}

static bool must_try_again(void)
{
    return errno == EINTR || errno == EAGAIN;
}

/* In */

static bool send_all(struct lp_io_stdio *pump, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(pump->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false; /* the loop has closed */
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static void *run_in(void *arg)
{
    struct lp_io_stdio *pump = arg;
    char room[PUMP_BYTES];
    ssize_t n = 1;
    while (n > 0) {
        /* Both ways of the pair are closed: POLLHUP, which need not be asked for. */
        struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {pump->fd, 0, 0}};
        wait_for(fds);
        if (fds[1].revents)
            break;
        n = read(STDIN_FILENO, room, sizeof room);
        if (n < 0 && must_try_again())
            n = 1;
        else if (n > 0 && !send_all(pump, room, (size_t)n))
            break;
    }
    if (n == 0)
        (void)shutdown(pump->fd, SHUT_WR);
    if (n < 0)
        tell_broken(pump, LP_EIO);
    leave(pump);
    return NULL;
}

/* Out */

/* A pipe that is ready takes PIPE_BUF bytes without blocking; so a reader that goes away is noticed
 * in poll, and not only by what is written next. A reader that is gone is no failure of ours:
 * LP_EBROKEN; a full disk or a closed descriptor is LP_EIO. */
static int write_all(struct lp_io_stdio *pump, const char *bytes, size_t len)
{
    while (len) {
        struct pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            return LP_EIO;
        size_t part = pump->is_out_regular || len < PIPE_BUF ? len : PIPE_BUF;
        ssize_t n = write(STDOUT_FILENO, bytes, part);
        if (n < 0 && must_try_again())
            continue;
        if (n < 0)
            return errno == EPIPE ? LP_EBROKEN : LP_EIO;
        bytes += n;
        len -= (size_t)n;
    }
    return LP_OK;
}

static void *run_out(void *arg)
{
    struct lp_io_stdio *pump = arg;
    char room[PUMP_BYTES];
    int err = LP_OK;
    while (!err) {
        struct pollfd fds[] = {{pump->fd, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
        wait_for(fds);
        ssize_t n = fds[0].revents ? recv(pump->fd, room, sizeof room, MSG_DONTWAIT) : -1;
        if (n > 0)
            err = write_all(pump, room, (size_t)n);
        else if (fds[0].revents)
            break; /* the loop has ended its side, and all of it is written */
        else
            err = fds[1].revents & (POLLERR | POLLHUP | POLLNVAL) ? LP_EBROKEN : LP_OK;
    }
    if (err)
        tell_broken(pump, err);
    else
        (void)shutdown(pump->fd, SHUT_RDWR); /* ends a LINGER, and "in" */
    leave(pump);
    return NULL;
}

/* Life */

static int start_thread(struct lp_io_stdio *pump, void *(*run)(void *))
{
    pthread_t thread;
    (void)pthread_mutex_lock(&pump->mutex);
    int err = pthread_create(&thread, NULL, run, pump) ? LP_ENOMEM : LP_OK;
    if (!err)
        pump->running_count++;
    (void)pthread_mutex_unlock(&pump->mutex);
    if (!err)
        (void)pthread_detach(thread);
    return err;
}

static struct lp_io_stdio *pump_new(struct lp_loop *loop, lp_id conn, int fd)
{
    struct lp_io_stdio *pump = calloc(1, sizeof *pump);
    if (!pump)
        return NULL;
    struct stat out;
    pump->is_out_regular = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
    pump->loop = loop;
    pump->conn = conn;
    pump->fd = fd;
    (void)pthread_mutex_init(&pump->mutex, NULL);
    (void)pthread_cond_init(&pump->ended, NULL);
    return pump;
}

/* Opens `conn`; LP_ELIMIT, LP_ENOMEM, LP_EIO. */
static int open_pair(struct lp_loop *loop, struct lp_io_conn *conn)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return LP_ELIMIT;
    struct lp_io_stdio *pump = pump_new(loop, conn->id, pair[1]);
    if (!pump) {
        (void)close(pair[0]);
        (void)close(pair[1]);
        return LP_ENOMEM;
    }
    loop->stdio = pump; /* freed with the loop from here on */
    int flag = 1;
    if (ioctl(pair[0], FIONBIO, &flag)) {
        (void)close(pair[0]);
        return LP_EIO;
    }
    int err = lp_io_conn_open(loop, conn, pair[0]);
    if (!err)
        err = start_thread(pump, run_in);
    if (!err)
        err = start_thread(pump, run_out);
    return err;
}

int64_t lp_io_stdio_dial(struct lp_loop *loop)
{
    if (loop->has_stdio)
        return LP_EEXISTS;
    struct lp_io_conn *conn = lp_io_conn_new(loop);
    if (!conn)
        return LP_ELIMIT;
    if (lp_heap_set(&loop->timers, &conn->timer, 0)) {
        lp_io_conn_drop(loop, conn);
        return LP_ENOMEM;
    }
    loop->has_stdio = true;
    return (int64_t)conn->id;
}

void lp_io_stdio_connect(struct lp_loop *loop, struct lp_io_conn *conn)
{
    struct lp_event event = {.kind = LP_EV_CONNECTED, .conn = conn->id};
    int err = open_pair(loop, conn);
    if (err) {
        lp_io_conn_drop(loop, conn);
        event.kind = LP_EV_CONNECT_FAILED;
        event.u.error = err;
    }
    lp_io_emit(loop, &event);
}

void lp_io_stdio_fini(struct lp_loop *loop)
{
    struct lp_io_stdio *pump = loop->stdio;
    if (!pump)
        return;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FINI_WAIT_S;
    (void)pthread_mutex_lock(&pump->mutex);
    int err = 0;
    while (pump->running_count && !err)
        err = pthread_cond_timedwait(&pump->ended, &pump->mutex, &until);
    bool is_over = pump->running_count == 0;
    pump->loop = NULL;
    (void)pthread_mutex_unlock(&pump->mutex);
    loop->stdio = NULL;
    if (is_over)
        pump_free(pump);
}
