/* One listening socket in one loop: accepting (io/listener.h). Decides when to accept, when to
 * pause and what a client is told to the engine as; binding is listener.c. How many clients may be
 * here at once is the engine's business. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/listener.h"
#include "io/loop_priv.h"

enum { ACCEPTS_PER_EVENT = 16, PAUSE_US = 100000, COMPLAINT_US = 1000000 };

struct door {
    uv_poll_t poll;
    struct lp_list node; /* in the loop's doors */
    struct lp_timer timer;
    int fd;
    int spare_fd;         /* given up for a moment to get rid of a client when there are no more */
    uint64_t complain_us; /* the next complaint not before this */
    uint32_t index;
    bool is_admin;
    bool is_loopback;
    bool is_wildcard;
    char text[LP_ADDRESS_TEXT_MAX];
};

static void on_client(uv_poll_t *poll, int status, int events);

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void complain(struct lp_loop *loop, struct door *door, const char *what)
{
    uint64_t now_us = lp_io_now_us(loop);
    if (now_us < door->complain_us)
        return;
    door->complain_us = now_us + COMPLAINT_US;
    lp_log_say(loop->log, LP_LOG_ERROR, "cannot take clients on %s: %s; pausing for 100 ms",
        door->text, what);
}

/* Out of descriptors or over the ceiling: the client at the head of the queue is told so by a
 * close, the rest waits in the backlog. */
static void pause_door(struct lp_loop *loop, struct door *door, const char *what)
{
    complain(loop, door, what);
    if (lp_heap_set(&loop->timers, &door->timer, lp_io_now_us(loop) + PAUSE_US))
        return;
    (void)uv_poll_stop(&door->poll);
}

static void turn_away(struct door *door)
{
    if (door->spare_fd >= 0)
        (void)close(door->spare_fd);
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    door->spare_fd = open_spare();
}

static int64_t uid_of(int fd)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? -1 : (int64_t)cred.uid;
}

static void welcome(struct lp_loop *loop, struct door *door, int fd, const struct lp_address *peer)
{
    struct lp_io_conn *conn = lp_io_conn_new(loop);
    if (!conn) {
        (void)close(fd);
        pause_door(loop, door, "all connection slots are in use");
        return;
    }
    char peer_text[LP_ADDRESS_TEXT_MAX], local_text[LP_ADDRESS_TEXT_MAX];
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn->id};
    event.u.accepted = (struct lp_conn_facts){
        .listener = door->index,
        .is_admin = door->is_admin,
        .is_loopback = door->is_loopback,
        .peer = lp_span(peer_text, lp_address_text(peer, peer_text)),
        .local = lp_span_str(door->text),
        .unix_uid = peer->u.any.sa_family == AF_UNIX ? uid_of(fd) : -1,
    };
    struct lp_address local = {.len = sizeof local.u};
    if (door->is_wildcard && !getsockname(fd, &local.u.any, &local.len))
        event.u.accepted.local = lp_span(local_text, lp_address_text(&local, local_text));
    if (lp_io_conn_open(loop, conn, fd) == LP_OK)
        lp_io_emit(loop, &event);
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct lp_loop *loop, struct door *door)
{
    struct lp_address peer = {.len = sizeof peer.u};
    int fd = accept4(door->fd, &peer.u.any, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        welcome(loop, door, fd, &peer);
        return !lp_list_empty(&door->node) && !door->timer.index;
    }
    switch (errno) {
    case EMFILE:
    case ENFILE:
        turn_away(door);
        pause_door(loop, door, "no more file descriptors (raise LimitNOFILE or ulimit -n)");
        return false;
    case ENOBUFS:
    case ENOMEM:
        pause_door(loop, door, "the system is out of memory");
        return false;
    case EINTR:
    case ECONNABORTED: /* the client has left the queue */
        return true;
    default:
        return false;
    }
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct door *door = LP_CONTAINER(poll, struct door, poll);
    for (int i = 0; i < ACCEPTS_PER_EVENT; i++)
        if (!accept_one(poll->loop->data, door))
            break;
}

int lp_io_door_open(struct lp_loop *loop, const struct lp_io_door_args *args)
{
    struct door *door = calloc(1, sizeof *door);
    if (!door || uv_poll_init(&loop->uv, &door->poll, args->fd)) {
        (void)close(args->fd);
        free(door);
        return door ? LP_EIO : LP_ENOMEM;
    }
    door->fd = args->fd;
    door->spare_fd = open_spare();
    door->index = args->index;
    door->is_admin = args->is_admin;
    door->is_loopback = lp_address_is_loopback(&args->address);
    door->is_wildcard = lp_address_is_wildcard(&args->address);
    door->timer.kind = LP_IO_TIMER_DOOR;
    (void)lp_address_text(&args->address, door->text);
    lp_list_push_back(&loop->doors, &door->node);
    (void)uv_poll_start(&door->poll, UV_READABLE, on_client);
    return LP_OK;
}

void lp_io_door_timeout(struct lp_loop *loop, struct lp_timer *timer)
{
    (void)loop;
    struct door *door = LP_CONTAINER(timer, struct door, timer);
    if (door->spare_fd < 0)
        door->spare_fd = open_spare();
    (void)uv_poll_start(&door->poll, UV_READABLE, on_client);
}

static void on_door_closed(uv_handle_t *handle)
{
    free(LP_CONTAINER((uv_poll_t *)handle, struct door, poll));
}

static void close_door(struct lp_loop *loop, struct door *door)
{
    lp_list_remove(&door->node);
    lp_heap_cancel(&loop->timers, &door->timer);
    uv_close((uv_handle_t *)&door->poll, on_door_closed);
    (void)close(door->fd);
    if (door->spare_fd >= 0)
        (void)close(door->spare_fd);
}

/* A socket that is closed resets those in its queue: they have been promised a server. */
static void empty_backlog(struct lp_loop *loop, struct door *door)
{
    for (int i = 0; i < SOMAXCONN && !door->timer.index; i++)
        if (!accept_one(loop, door))
            break;
}

void lp_io_doors_close(struct lp_loop *loop, bool with_admin)
{
    struct lp_list *node = loop->doors.next;
    while (node != &loop->doors) {
        struct door *door = LP_CONTAINER(node, struct door, node);
        node = node->next;
        if (door->is_admin && !with_admin)
            continue;
        if (!with_admin)
            empty_backlog(loop, door);
        if (lp_list_empty(&door->node))
            return; /* the engine said STOPPED meanwhile: all doors are closed */
        close_door(loop, door);
    }
}
