/* A fake MCP server that costs far less than any proxy before it.
 *
 * POST without a session id opens a session, "r<PORT>-<n>"; with one it answers ~300 bytes. Only
 * its own ids are known, any other gets 404, so a proxy that loses a session cannot hide it. GET
 * holds an SSE stream; with --events N it writes N events a second in all, one stream after the
 * other, each with "t":<monotonic ns at the write>. DELETE is answered 200.
 *
 * bench_replica PORT [EVENTS_PER_SECOND] */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common.h"

enum { FD_MAX = 20000, TICK_NS = 1000000, TICKS_PER_SECOND = 1000, ANSWER_BYTES = 300 };

struct conn {
    char *in; /* a request as far as it has come; NULL when nothing waits */
    size_t len;
    bool is_stream;
};

struct replica {
    uint16_t port;
    uint64_t events_per_second;
    uint64_t issued;
    uint64_t events;
    struct conn conns[FD_MAX];
    int streams[FD_MAX];
    size_t stream_count;
    size_t next_stream;
    char answer[ANSWER_BYTES + 1];
};

static struct replica self;

static const char INITIALIZED[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2025-11-25\","
    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
static const char UNKNOWN[] = "{\"jsonrpc\":\"2.0\",\"id\":null,"
                              "\"error\":{\"code\":-32001,\"message\":\"Session not found\"}}";

static void make_answer(void)
{
    static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":12345,\"result\":{\"content\":"
                                 "[{\"type\":\"text\",\"text\":\"";
    static const char after[] = "\"}]}}";
    memset(self.answer, 'x', ANSWER_BYTES);
    memcpy(self.answer, before, sizeof before - 1);
    memcpy(self.answer + ANSWER_BYTES - (sizeof after - 1), after, sizeof after);
}

static void drop(int fd)
{
    for (size_t i = 0; self.conns[fd].is_stream && i < self.stream_count; i++) {
        if (self.streams[i] == fd) {
            self.streams[i] = self.streams[--self.stream_count];
            break;
        }
    }
    free(self.conns[fd].in);
    self.conns[fd] = (struct conn){0};
    close(fd);
}

static bool answer_with(int fd, const char *status, const char *session, const char *body)
{
    char out[4096];
    int n = snprintf(out, sizeof out,
        "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%s%s%sContent-Length: %zu\r\n\r\n%s",
        status, session ? "Mcp-Session-Id: " : "", session ? session : "", session ? "\r\n" : "",
        strlen(body), body);
    return bench_write_all(fd, out, (size_t)n);
}

static bool open_stream(int fd, const char *session)
{
    char out[512];
    int n = snprintf(out, sizeof out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        "Mcp-Session-Id: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
        session);
    self.conns[fd].is_stream = true;
    self.streams[self.stream_count++] = fd;
    return bench_write_all(fd, out, (size_t)n);
}

static bool answer(int fd, const char *head, size_t head_len)
{
    char session[64];
    char own[16];
    size_t len;
    const char *given = bench_header(head, head_len, "mcp-session-id", &len);
    snprintf(own, sizeof own, "r%u-", self.port);
    if (!given) {
        snprintf(session, sizeof session, "%s%llu", own, (unsigned long long)++self.issued);
        return answer_with(fd, "200 OK", session, INITIALIZED);
    }
    if (len >= sizeof session || strncmp(given, own, strlen(own)) != 0)
        return answer_with(fd, "404 Not Found", NULL, UNKNOWN);
    memcpy(session, given, len);
    session[len] = 0;
    if (head[0] == 'G')
        return open_stream(fd, session);
    return answer_with(fd, "200 OK", session, self.answer);
}

/* Answers the first request of the connection if it is whole: 1 done, 0 not whole, -1 broken. */
static int answer_next(int fd)
{
    struct conn *c = &self.conns[fd];
    char *end = memmem(c->in, c->len, "\r\n\r\n", 4);
    if (!end)
        return c->len == BENCH_BUFFER_BYTES ? -1 : 0;
    size_t head_len = (size_t)(end - c->in) + 2;
    size_t length_len;
    const char *length = bench_header(c->in, head_len, "content-length", &length_len);
    size_t total = head_len + 2 + (length ? strtoul(length, NULL, 10) : 0);
    if (c->len < total)
        return total > BENCH_BUFFER_BYTES ? -1 : 0;
    if (!answer(fd, c->in, head_len))
        return -1;
    c->len -= total;
    memmove(c->in, c->in + total, c->len);
    return 1;
}

static void on_readable(int fd)
{
    struct conn *c = &self.conns[fd];
    if (!c->in && !(c->in = malloc(BENCH_BUFFER_BYTES)))
        bench_die("out of memory");
    ssize_t n = read(fd, c->in + c->len, BENCH_BUFFER_BYTES - c->len);
    if (n < 0 && errno == EAGAIN)
        return;
    int done = n <= 0 ? -1 : 1;
    c->len += n > 0 ? (size_t)n : 0;
    while (done == 1 && c->len)
        done = answer_next(fd);
    if (done < 0) {
        drop(fd);
    } else if (c->is_stream && !c->len) {
        free(c->in);
        c->in = NULL;
    }
}

static void emit(void)
{
    char event[512];
    char chunk[600];
    int fd = self.streams[self.next_stream++ % self.stream_count];
    int n = snprintf(event, sizeof event,
        "event: message\nid: %llu\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
        "\"params\":{\"level\":\"info\",\"t\":%llu,\"data\":\"%.100s\"}}\n\n",
        (unsigned long long)++self.events, (unsigned long long)bench_now_ns(),
        self.answer + ANSWER_BYTES / 2);
    n = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n", (unsigned)n, event);
    if (!bench_write_all(fd, chunk, (size_t)n))
        drop(fd);
}

static void on_tick(int timer)
{
    static uint64_t ticks;
    static uint64_t sent;
    uint64_t passed;
    if (read(timer, &passed, sizeof passed) != sizeof passed)
        return;
    if (!self.stream_count) {
        ticks = sent = 0;
        return;
    }
    ticks += passed;
    for (; self.stream_count && sent < ticks * self.events_per_second / TICKS_PER_SECOND; sent++)
        emit();
}

static int start_timer(int epoll)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec each = {{0, TICK_NS}, {0, TICK_NS}};
    timerfd_settime(timer, 0, &each, NULL);
    bench_watch(epoll, timer);
    return timer;
}

static void accept_all(int epoll, int listener)
{
    for (int fd; (fd = bench_accept(listener)) >= 0;) {
        if (fd >= FD_MAX)
            bench_die("too many connections");
        bench_watch(epoll, fd);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3)
        bench_die("usage: bench_replica PORT [EVENTS_PER_SECOND]");
    signal(SIGPIPE, SIG_IGN);
    self.port = (uint16_t)bench_number(argv[1], 1, UINT16_MAX);
    self.events_per_second = argc == 3 ? bench_number(argv[2], 1, 1000000) : 0;
    make_answer();
    int listener = bench_listen(self.port);
    int epoll = epoll_create1(0);
    bench_watch(epoll, listener);
    int timer = self.events_per_second ? start_timer(epoll) : -1;
    for (;;) {
        struct epoll_event events[BENCH_EVENTS_MAX];
        int count = epoll_wait(epoll, events, BENCH_EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(epoll, listener);
            else if (fd == timer)
                on_tick(timer);
            else
                on_readable(fd);
        }
    }
}
