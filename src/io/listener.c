/* Binding at start (io/listener.h): which addresses, in use or not, one socket for each loop.
 * Accepting is accept.c. Blocks (a name may have to be looked up), so never while loops run. */
#include "io/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop_priv.h"

struct lp_listener {
    struct lp_address addresses[LP_ADDRESSES_MAX]; /* those that are bound */
    uint32_t count;
    char text[LP_ADDRESS_TEXT_MAX];
};

/* One call of lp_listener_open. */
struct opening {
    const struct lp_listener_args *args;
    struct lp_loop *const *loops;
    uint32_t loop_count; /* 0: a mere probe, which leaves nothing behind */
    struct lp_buf *why;
};

static int complain(const struct opening *o, const struct lp_address *address, int sys_errno)
{
    char text[LP_ADDRESS_TEXT_MAX];
    (void)lp_address_text(address, text);
    switch (sys_errno) {
    case EADDRINUSE:
        (void)!lp_buf_printf(o->why, "cannot listen on %s: the address is in use", text);
        return LP_EEXISTS;
    case EADDRNOTAVAIL:
        (void)!lp_buf_printf(o->why,
            "cannot listen on %s: this machine has no such address; use one of its own, or "
            "0.0.0.0 for all",
            text);
        return LP_EUNREACHABLE;
    case EACCES:
        (void)!lp_buf_printf(o->why, "cannot listen on %s: permission denied; %s", text,
            address->u.any.sa_family != AF_UNIX
                ? "use a port from 1024 on, or give the program CAP_NET_BIND_SERVICE"
                : "its folder must be writable for the user that runs Limpet");
        return LP_EIO;
    case ENOENT: /* a unix socket's */
        (void)!lp_buf_printf(o->why,
            "cannot listen on %s: its folder is not there; make it, or choose another path", text);
        return LP_EIO;
    default:
        (void)!lp_buf_printf(o->why, "cannot listen on %s: %s", text, strerror(sys_errno));
        return LP_EIO;
    }
}

static void set_option(int fd, int level, int name)
{
    int on = 1;
    (void)setsockopt(fd, level, name, &on, sizeof on);
}

/* A bound socket, or the negative errno. Without `is_shared` it succeeds only when nobody else,
 * this process included, listens there. */
static int bind_socket(const struct lp_address *address, bool is_shared)
{
    int family = address->u.any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX) {
        set_option(fd, SOL_SOCKET, SO_REUSEADDR); /* connections of the process before, closing */
        lp_io_tcp_options(fd);
    }
    if (family == AF_INET6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (is_shared)
        set_option(fd, SOL_SOCKET, SO_REUSEPORT);
    if (bind(fd, &address->u.any, address->len) == 0)
        return fd;
    int err = -errno;
    (void)close(fd);
    return err;
}

/* The same, listening. The port that was chosen is written to the address. */
static int listen_on(struct lp_address *address, bool is_shared)
{
    int fd = bind_socket(address, is_shared);
    if (fd < 0)
        return fd;
    socklen_t len = sizeof address->u;
    bool is_unix = address->u.any.sa_family == AF_UNIX;
    if (listen(fd, SOMAXCONN) == 0 && (is_unix || !getsockname(fd, &address->u.any, &len)))
        return fd;
    int err = -errno;
    (void)close(fd);
    return err;
}

static int open_door(
    const struct opening *o, struct lp_loop *loop, int fd, const struct lp_address *address)
{
    struct lp_io_door_args door = {
        .fd = fd,
        .index = o->args->index,
        .is_admin = o->args->is_admin,
        .address = *address,
    };
    int err = lp_io_door_open(loop, &door);
    if (err)
        (void)!lp_buf_printf(o->why, "cannot listen: %s", lp_error_sentence(err));
    return err;
}

/* TCP: the first socket proves that the address is free. It stays when there is one loop; else it
 * makes room for sockets that share, because one that does not cannot stand beside them. Two
 * processes that start in the same few microseconds can slip through here, no others. */
static int bind_tcp(const struct opening *o, struct lp_address *address)
{
    bool is_probe = o->loop_count == 0;
    int fd = is_probe ? bind_socket(address, false) : listen_on(address, false);
    if (fd < 0)
        return complain(o, address, -fd);
    if (is_probe) {
        (void)close(fd);
        return LP_OK;
    }
    if (o->loop_count == 1)
        return open_door(o, o->loops[0], fd, address);
    (void)close(fd);
    for (uint32_t i = 0; i < o->loop_count; i++) {
        fd = listen_on(address, true);
        if (fd < 0)
            return complain(o, address, -fd);
        int err = open_door(o, o->loops[i], fd, address);
        if (err)
            return err;
    }
    return LP_OK;
}

/* Unix sockets */

/* Whether somebody answers at the path: 0 is yes, else the errno. */
static int knock(const struct lp_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int err = connect(fd, &address->u.any, address->len) ? errno : 0;
    (void)close(fd);
    return err == EAGAIN ? 0 : err; /* a full backlog has an owner */
}

/* Whether the folder of the path takes a new name. */
static int check_folder(const struct opening *o, const struct lp_address *address)
{
    char folder[sizeof address->u.un.sun_path];
    const char *path = address->u.un.sun_path;
    const char *slash = strrchr(path, '/');
    size_t len = slash && slash > path ? (size_t)(slash - path) : 1;
    memcpy(folder, slash ? path : ".", len);
    folder[len] = 0;
    return eaccess(folder, W_OK | X_OK) ? complain(o, address, errno) : LP_OK;
}

/* Removes what a dead process left, unless this is a mere probe. Only a socket that refuses is
 * that.
 */
static int clear_path(const struct opening *o, const struct lp_address *address)
{
    const char *path = address->u.un.sun_path;
    bool is_probe = o->loop_count == 0;
    struct stat info;
    if (lstat(path, &info)) {
        if (errno != ENOENT)
            return complain(o, address, errno);
        return is_probe ? check_folder(o, address) : LP_OK;
    }
    if (!S_ISSOCK(info.st_mode)) {
        (void)!lp_buf_printf(o->why,
            "cannot listen on unix:%s: there is a file that is no socket; remove it, or choose "
            "another path",
            path);
        return LP_EIO;
    }
    int err = knock(address);
    if (err == 0)
        return complain(o, address, EADDRINUSE);
    if (err == ECONNREFUSED)
        err = !is_probe && unlink(path) ? errno : 0;
    return err ? complain(o, address, err) : LP_OK;
}

/* All loops poll the one socket, each through a descriptor of its own: whoever comes first takes
 * the client. */
static int bind_unix(const struct opening *o, struct lp_address *address)
{
    int err = clear_path(o, address);
    if (err || o->loop_count == 0)
        return err;
    int first = listen_on(address, false);
    if (first < 0)
        return complain(o, address, -first);
    for (uint32_t i = 0; i < o->loop_count && !err; i++) {
        int fd = dup(first);
        err = fd < 0 ? complain(o, address, errno) : open_door(o, o->loops[i], fd, address);
    }
    (void)close(first);
    if (err)
        (void)unlink(address->u.un.sun_path);
    return err;
}

/* Which addresses */

static int look_up(const struct opening *o, struct lp_address *ret, uint32_t *ret_count)
{
    char name[NI_MAXHOST];
    struct lp_span host = o->args->host;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    if (host.len == 0 || host.len >= sizeof name)
        return LP_EUNREACHABLE;
    memcpy(name, host.ptr, host.len);
    name[host.len] = 0;
    if (getaddrinfo(name, NULL, &hints, &list))
        return LP_EUNREACHABLE;
    *ret_count = lp_address_list(list, o->args->port, ret);
    freeaddrinfo(list);
    return *ret_count ? LP_OK : LP_EUNREACHABLE;
}

static int find_addresses(const struct opening *o, struct lp_address *ret, uint32_t *ret_count)
{
    struct lp_span host = o->args->host;
    *ret_count = 1;
    int err = o->args->is_unix ? lp_address_unix(host, ret)
                               : lp_address_numeric(host, o->args->port, ret);
    if (err == LP_ENOT_FOUND)
        err = look_up(o, ret, ret_count);
    if (err)
        (void)!lp_buf_printf(o->why, "cannot listen on %s%.*s: %s", o->args->is_unix ? "unix:" : "",
            (int)host.len, host.ptr,
            err == LP_ETOO_LONG ? "the path is longer than 107 bytes; choose a shorter one"
                                : "the name is not known here; use an address of this machine");
    return err ? LP_EUNREACHABLE : LP_OK;
}

/* A name may have an address of a family that this machine lacks (localhost and IPv6): that one is
 * left out, as long as another is bound. */
static int bind_all(const struct opening *o, struct lp_listener *listener)
{
    struct lp_address found[LP_ADDRESSES_MAX];
    uint32_t count = 0;
    int err = find_addresses(o, found, &count);
    for (uint32_t i = 0; i < count && !err; i++) {
        struct lp_address *address = &found[i];
        if (listener->count && lp_address_port(address) == 0)
            lp_address_set_port(address, lp_address_port(&listener->addresses[0]));
        err = o->args->is_unix ? bind_unix(o, address) : bind_tcp(o, address);
        if (!err)
            listener->addresses[listener->count++] = *address;
        else if (err == LP_EUNREACHABLE && (listener->count || i + 1 < count))
            err = LP_OK;
    }
    return err;
}

int lp_listener_open(const struct lp_listener_args *args, struct lp_loop *const *loops,
    uint32_t loop_count, struct lp_buf *why, struct lp_listener **ret)
{
    LP_ASSERT(loop_count > 0);
    struct opening o = {args, loops, loop_count, why};
    struct lp_listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return LP_ENOMEM;
    int err = bind_all(&o, listener);
    if (err) {
        free(listener);
        return err;
    }
    lp_buf_clear(why);
    (void)lp_address_text(&listener->addresses[0], listener->text);
    *ret = listener;
    return LP_OK;
}

int lp_listener_probe(const struct lp_listener_args *args, struct lp_buf *why)
{
    struct opening o = {.args = args, .why = why};
    struct lp_listener listener = {.count = 0};
    int err = bind_all(&o, &listener);
    if (!err)
        lp_buf_clear(why);
    return err;
}

uint16_t lp_listener_port(const struct lp_listener *listener)
{
    return lp_address_port(&listener->addresses[0]);
}

const char *lp_listener_text(const struct lp_listener *listener)
{
    return listener->text;
}

void lp_listener_free(struct lp_listener *listener)
{
    if (listener && listener->addresses[0].u.any.sa_family == AF_UNIX)
        (void)unlink(listener->addresses[0].u.un.sun_path);
    free(listener);
}
