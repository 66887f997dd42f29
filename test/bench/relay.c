/* The least that a proxy can do: bytes in, bytes out, between each client and one upstream. It
 * knows no HTTP and no sessions; its CPU time per request is the floor that others are measured
 * against.
 *
 * bench_relay PORT UPSTREAM_PORT */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common.h"

enum { FD_MAX = 20000 };

/* The other end of each connection; 0 for none. */
static int peer_of[FD_MAX];

static void cut(int fd)
{
    int peer = peer_of[fd];
    peer_of[fd] = peer_of[peer] = 0;
    close(fd);
    close(peer);
}

static void join(int epoll, int client, uint16_t upstream_port)
{
    int upstream = bench_dial(upstream_port);
    if (upstream < 0 || upstream >= FD_MAX || client >= FD_MAX)
        bench_die("no upstream on port %u, or too many connections", upstream_port);
    peer_of[client] = upstream;
    peer_of[upstream] = client;
    bench_watch(epoll, client);
    bench_watch(epoll, upstream);
}

static void pass_on(int fd)
{
    static char bytes[65536];
    /* Its peer may have been cut earlier in this turn. */
    if (!peer_of[fd])
        return;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || !bench_write_all(peer_of[fd], bytes, (size_t)n))
        cut(fd);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_die("usage: bench_relay PORT UPSTREAM_PORT");
    signal(SIGPIPE, SIG_IGN);
    int listener = bench_listen((uint16_t)bench_number(argv[1], 1, UINT16_MAX));
    uint16_t upstream_port = (uint16_t)bench_number(argv[2], 1, UINT16_MAX);
    int epoll = epoll_create1(0);
    bench_watch(epoll, listener);
    for (;;) {
        struct epoll_event events[BENCH_EVENTS_MAX];
        int count = epoll_wait(epoll, events, BENCH_EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != listener) {
                pass_on(events[i].data.fd);
                continue;
            }
            for (int client; (client = bench_accept(listener)) >= 0;)
                join(epoll, client, upstream_port);
        }
    }
}
