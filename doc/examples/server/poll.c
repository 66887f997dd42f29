/* A server whose program has a loop of its own, here one of poll(2), and owns the connections
 * (limpet-server-feed(3)). */
#include <limpet-server.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEERS_MAX = 64, TURN_MS_MAX = 500 };

struct peer {
    int fd; /* -1: this place is free */
    uint64_t connection;
    bool is_paused, must_write;
};

static volatile sig_atomic_t is_stopping;

static void on_signal(int number)
{
    is_stopping = number;
}

/* --- what the server asks --------------------------------------------------------------------- */

static size_t on_write(void *context, void *peer, struct limpet_span bytes)
{
    struct peer *p = (struct peer *)peer;
    (void)context;
    ssize_t n = send(p->fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    size_t taken = n < 0 ? 0 : (size_t)n; /* a broken one is seen by poll */
    p->must_write = taken < bytes.len;
    return taken;
}

static void on_pause(void *context, void *peer, bool is_paused)
{
    (void)context;
    ((struct peer *)peer)->is_paused = is_paused;
}

static void on_close(void *context, void *peer, enum limpet_close how)
{
    struct peer *p = (struct peer *)peer;
    (void)context;
    if (how == LIMPET_CLOSE_RESET) {
        struct linger cut = LIMPET_ZERO;
        cut.l_onoff = 1;
        setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &cut, sizeof cut);
    }
    close(p->fd); /* LIMPET_CLOSE_LINGER: a better program would read on for a while */
    p->fd = -1;
}

/* --- what it is told -------------------------------------------------------------------------- */

static void accept_one(struct limpet_server *server, int listener, struct peer *peers)
{
    struct limpet_peer facts = LIMPET_ZERO;
    struct peer *p = peers;
    int fd = accept(listener, NULL, NULL);
    while (p < peers + PEERS_MAX && p->fd >= 0)
        p++;
    if (fd < 0 || p == peers + PEERS_MAX) {
        close(fd);
        return;
    }
    p->fd = fd;
    p->is_paused = p->must_write = false;
    facts.peer = p;
    facts.is_loopback = true;
    if (limpet_server_connected(server, &facts, &p->connection)) {
        close(fd);
        p->fd = -1;
    }
}

static void serve_peer(struct limpet_server *server, struct peer *p, int events)
{
    char bytes[16384];
    uint64_t connection = p->connection;
    if (events & POLLOUT)
        limpet_server_writable(server, connection);
    if (p->fd < 0 || !(events & (POLLIN | POLLHUP | POLLERR)))
        return;
    ssize_t n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
        limpet_server_received(server, connection, limpet_bytes(bytes, (size_t)n));
    } else if (n == 0) {
        p->is_paused = true; /* nothing more will come */
        limpet_server_ended(server, connection);
    } else {
        limpet_server_broken(server, connection);
        close(p->fd);
        p->fd = -1;
    }
}

/* --- the loop --------------------------------------------------------------------------------- */

static int wanted(const struct peer *p)
{
    return (p->is_paused ? 0 : POLLIN) | (p->must_write ? POLLOUT : 0);
}

static void turn(struct limpet_server *server, int listener, struct peer *peers)
{
    struct pollfd fds[PEERS_MAX + 2];
    int ms = limpet_server_timeout_ms(server);
    for (int i = 0; i < PEERS_MAX; i++) {
        fds[i].fd = peers[i].fd;
        fds[i].events = (short)wanted(&peers[i]);
    }
    fds[PEERS_MAX].fd = listener;
    fds[PEERS_MAX].events = POLLIN;
    fds[PEERS_MAX + 1].fd = limpet_server_fd(server); /* of the store; -1: poll skips it */
    fds[PEERS_MAX + 1].events = POLLIN;
    if (poll(fds, PEERS_MAX + 2, ms < 0 || ms > TURN_MS_MAX ? TURN_MS_MAX : ms) > 0) {
        for (int i = 0; i < PEERS_MAX; i++)
            if (fds[i].fd >= 0 && fds[i].revents)
                serve_peer(server, &peers[i], fds[i].revents);
        if (fds[PEERS_MAX].revents)
            accept_one(server, listener, peers);
    }
    limpet_server_turn(server);
}

static int listen_on(const char *port)
{
    struct sockaddr_in address = LIMPET_ZERO;
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(port));
    if (bind(fd, (struct sockaddr *)&address, len) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&address, &len)) {
        perror("cannot listen");
        close(fd);
        return -1;
    }
    fprintf(stderr, "listening on http://127.0.0.1:%u/mcp\n", ntohs(address.sin_port));
    return fd;
}

static void greet(void *context, struct limpet_call *call)
{
    (void)context;
    limpet_call_text(call, limpet_str("Hello from a loop of poll"));
}

static int new_server(struct limpet_server **ret_server)
{
    struct limpet_server_options options = LIMPET_ZERO;
    struct limpet_feeder feeder = LIMPET_ZERO;
    struct limpet_tool tool = LIMPET_ZERO;
    options.name = "poll";
    options.version = "1.0";
    options.store = getenv("STORE_URL");
    options.sessions = options.store ? LIMPET_SESSIONS_SHARED : LIMPET_SESSIONS_LOCAL;
    options.replay = LIMPET_REPLAY_PREFER; /* where the platform gives an owner id */
    feeder.write = on_write;
    feeder.pause = on_pause;
    feeder.close = on_close;
    tool.name = "greet";
    tool.description = "Says hello";
    tool.handler.run = greet;
    int err = limpet_server_new(NULL, &options, ret_server);
    err = err ? err : limpet_server_feed(*ret_server, &feeder);
    return err ? err : limpet_server_add_tool(*ret_server, &tool);
}

int main(int argc, char **argv)
{
    static struct peer peers[PEERS_MAX];
    const char *colon = argc > 1 ? strrchr(argv[1], ':') : NULL;
    struct limpet_server *server = NULL;
    int err = new_server(&server);
    for (int i = 0; i < PEERS_MAX; i++)
        peers[i].fd = -1;
    signal(SIGTERM, on_signal);
    int listener = err ? -1 : listen_on(colon ? colon + 1 : "3000");
    bool was_told = listener < 0;
    while (listener >= 0 && !limpet_server_is_stopped(server)) {
        if (is_stopping && !was_told)
            was_told = limpet_server_stop(server) == LIMPET_OK;
        turn(server, listener, peers);
    }
    limpet_server_free(server);
    close(listener);
    return listener < 0 ? 1 : 0;
}
