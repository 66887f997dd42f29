/* The load: a closed loop of POSTs over keep-alive connections, or SSE streams that are read.
 *
 * Sessions are opened first, through the proxy, so that it knows them. Then, after a second of
 * warming up, requests and the CPU time of the proxy's process are counted over one window, which
 * gives CPU per request. A line of JSON is the result.
 *
 * bench_load post|sse -p PORT -P PID [-c CONNECTIONS] [-s SESSIONS] [-d SECONDS] */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common.h"

enum { SESSION_BYTES = 1024, CARRY_BYTES = 32, WARM_UP_NS = 1000000000, TICK_MS = 50 };

/* One answer being read. */
struct answer {
    char head[BENCH_BUFFER_BYTES];
    size_t head_len; /* bytes of `head` in use; the head is whole when `is_body` */
    bool is_body;
    bool is_chunked;
    uint64_t left; /* of a body with a length */
    char tail[5];  /* the last bytes of a chunked body */
};

struct conn {
    int fd;
    size_t next_session;
    uint64_t sent_ns;
    struct answer answer;
    char carry[CARRY_BYTES]; /* SSE: the end of the last read, in case a time stamp was split */
    size_t carry_len;
};

struct load {
    uint16_t port;
    int pid;
    bool is_sse;
    size_t conn_count;
    size_t session_count;
    uint64_t seconds;
    char (*sessions)[SESSION_BYTES];
    struct conn *conns;
    bool is_measuring;
    uint64_t errors;
    struct bench_histogram latency;
};

static struct load self = {.conn_count = 64, .session_count = 1000, .seconds = 5};

static const char OPEN[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                           "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                           "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
static const char CALL[] = "{\"jsonrpc\":\"2.0\",\"id\":12345,\"method\":\"tools/call\",\"params\":"
                           "{\"name\":\"echo\",\"arguments\":{\"message\":"
                           "\"what it carries does not matter, only its size\"}}}";

static bool send_post(int fd, const char *session, const char *body)
{
    char out[4096];
    int n = snprintf(out, sizeof out,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\n%s%s%s"
        "Mcp-Protocol-Version: 2025-11-25\r\nContent-Length: %zu\r\n\r\n%s",
        self.port, session ? "Mcp-Session-Id: " : "", session ? session : "", session ? "\r\n" : "",
        strlen(body), body);
    return bench_write_all(fd, out, (size_t)n);
}

static void answer_reset(struct answer *a)
{
    a->head_len = 0;
    a->is_body = a->is_chunked = false;
    a->left = 0;
    memset(a->tail, 0, sizeof a->tail);
}

/* Body bytes: true when they are the last. */
static bool feed_body(struct answer *a, const char *bytes, size_t n)
{
    if (!a->is_chunked) {
        a->left -= n < a->left ? n : a->left;
        return a->left == 0;
    }
    size_t kept = n < sizeof a->tail ? sizeof a->tail - n : 0;
    memmove(a->tail, a->tail + sizeof a->tail - kept, kept);
    memcpy(a->tail + kept, bytes + n - (sizeof a->tail - kept), sizeof a->tail - kept);
    return memcmp(a->tail, "0\r\n\r\n", sizeof a->tail) == 0;
}

/* Bytes of an answer: 1 when it is whole, 0 when more must come, -1 when it is no answer. */
static int answer_feed(struct answer *a, const char *bytes, size_t n)
{
    if (a->is_body)
        return feed_body(a, bytes, n);
    if (n > sizeof a->head - a->head_len)
        return -1;
    memcpy(a->head + a->head_len, bytes, n);
    a->head_len += n;
    char *end = memmem(a->head, a->head_len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    end += 4;
    size_t body = a->head_len - (size_t)(end - a->head);
    size_t len;
    const char *length = bench_header(a->head, (size_t)(end - a->head), "content-length", &len);
    a->head_len = (size_t)(end - a->head);
    a->is_body = true;
    a->is_chunked = !length;
    a->left = length ? strtoull(length, NULL, 10) : 0;
    if (a->left == 0 && length)
        return 1;
    return body ? feed_body(a, end, body) : 0;
}

static bool is_good(const struct answer *a)
{
    return a->head_len > 12 && memcmp(a->head + 8, " 200 ", 5) == 0;
}

/* Opens one session over a connection of its own kind and keeps its id. */
static void open_session(int fd, char *ret_session)
{
    static struct answer answer;
    char bytes[BENCH_BUFFER_BYTES];
    answer_reset(&answer);
    if (!send_post(fd, NULL, OPEN))
        bench_die("the proxy closed the connection on a POST");
    for (int done = 0; done == 0;) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        done = n > 0 ? answer_feed(&answer, bytes, (size_t)n) : -1;
    }
    size_t len;
    const char *id = bench_header(answer.head, answer.head_len, "mcp-session-id", &len);
    if (!is_good(&answer) || !id || len >= SESSION_BYTES)
        bench_die("no session was opened: %.*s", (int)answer.head_len, answer.head);
    memcpy(ret_session, id, len);
    ret_session[len] = 0;
}

static void open_sessions(void)
{
    self.sessions = calloc(self.session_count, sizeof *self.sessions);
    int fd = bench_dial(self.port);
    if (!self.sessions || fd < 0)
        bench_die("nothing listens on port %u", self.port);
    for (size_t i = 0; i < self.session_count; i++)
        open_session(fd, self.sessions[i]);
    close(fd);
}

static void send_next(struct conn *c)
{
    const char *session = self.sessions[c->next_session % self.session_count];
    c->next_session += self.conn_count;
    answer_reset(&c->answer);
    c->sent_ns = bench_now_ns();
    if (!send_post(c->fd, session, CALL))
        self.errors++;
}

static void open_stream(struct conn *c, const char *session)
{
    char out[2048];
    int n = snprintf(out, sizeof out,
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: text/event-stream\r\n"
        "Mcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n",
        self.port, session);
    if (!bench_write_all(c->fd, out, (size_t)n))
        self.errors++;
}

static void open_conns(int epoll)
{
    self.conns = calloc(self.conn_count, sizeof *self.conns);
    if (!self.conns)
        bench_die("out of memory");
    for (size_t i = 0; i < self.conn_count; i++) {
        struct conn *c = &self.conns[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        c->fd = bench_dial(self.port);
        c->next_session = i;
        if (c->fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event))
            bench_die("cannot connect to port %u", self.port);
        if (self.is_sse)
            open_stream(c, self.sessions[i % self.session_count]);
        else
            send_next(c);
    }
}

/* Takes the times that events carry. A stamp at the very end may go on in the next read. */
static void on_events(struct conn *c, const char *bytes, size_t n)
{
    char text[CARRY_BYTES + BENCH_BUFFER_BYTES + 1];
    size_t len = c->carry_len + n;
    uint64_t now = bench_now_ns();
    memcpy(text, c->carry, c->carry_len);
    memcpy(text + c->carry_len, bytes, n);
    text[len] = 0;
    c->carry_len = 0;
    for (char *at = text; (at = memmem(at, len - (size_t)(at - text), "\"t\":", 4));) {
        char *end;
        uint64_t sent = strtoull(at + 4, &end, 10);
        if (*end == 0 && len - (size_t)(at - text) <= CARRY_BYTES) {
            c->carry_len = len - (size_t)(at - text);
            memcpy(c->carry, at, c->carry_len);
            break;
        }
        if (self.is_measuring)
            bench_histogram_add(&self.latency, now - sent);
        at = end;
    }
}

static void on_answer(struct conn *c, const char *bytes, size_t n)
{
    int done = answer_feed(&c->answer, bytes, n);
    if (done == 0)
        return;
    if (done < 0 || !is_good(&c->answer))
        self.errors++;
    else if (self.is_measuring)
        bench_histogram_add(&self.latency, bench_now_ns() - c->sent_ns);
    send_next(c);
}

static void on_readable(struct conn *c)
{
    char bytes[BENCH_BUFFER_BYTES];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n <= 0) {
        /* No proxy here has a reason to close: each such end is an error, and not made good. */
        self.errors++;
        close(c->fd);
        return;
    }
    if (self.is_sse)
        on_events(c, bytes, (size_t)n);
    else
        on_answer(c, bytes, (size_t)n);
}

static void run_until(int epoll, uint64_t end_ns)
{
    while (bench_now_ns() < end_ns) {
        struct epoll_event events[BENCH_EVENTS_MAX];
        int count = epoll_wait(epoll, events, BENCH_EVENTS_MAX, TICK_MS);
        for (int i = 0; i < count; i++)
            on_readable(events[i].data.ptr);
    }
}

static void parse_args(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "post") != 0 && strcmp(argv[1], "sse") != 0))
        bench_die("usage: bench_load post|sse -p PORT -P PID [-c N] [-s N] [-d SECONDS]");
    self.is_sse = strcmp(argv[1], "sse") == 0;
    optind = 2;
    for (int option; (option = getopt(argc, argv, "p:P:c:s:d:")) != -1;) {
        if (option == '?')
            exit(1);
        uint64_t value = bench_number(optarg, 1, INT32_MAX);
        switch (option) {
        case 'p':
            self.port = (uint16_t)value;
            break;
        case 'P':
            self.pid = (int)value;
            break;
        case 'c':
            self.conn_count = value;
            break;
        case 's':
            self.session_count = value;
            break;
        default:
            self.seconds = value;
            break;
        }
    }
    if (!self.port || !self.pid)
        bench_die("-p and -P must be given");
}

int main(int argc, char **argv)
{
    parse_args(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    int epoll = epoll_create1(0);
    open_sessions();
    open_conns(epoll);
    run_until(epoll, bench_now_ns() + WARM_UP_NS);
    uint64_t begin_ns = bench_now_ns();
    uint64_t cpu_ns = bench_cpu_ns(self.pid);
    self.is_measuring = true;
    run_until(epoll, begin_ns + self.seconds * 1000000000U);
    cpu_ns = bench_cpu_ns(self.pid) - cpu_ns;
    double seconds = (double)(bench_now_ns() - begin_ns) / 1e9;
    double count = self.latency.count ? (double)self.latency.count : 1;
    printf("{\"count\":%llu,\"per_second\":%.0f,\"cpu_us\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"max_us\":%.1f,\"errors\":%llu}\n",
        (unsigned long long)self.latency.count, (double)self.latency.count / seconds,
        (double)cpu_ns / 1e3 / count, bench_histogram_us(&self.latency, .5),
        bench_histogram_us(&self.latency, .99), (double)self.latency.max / 1e3,
        (unsigned long long)self.errors);
    free(self.conns);
    free(self.sessions);
    return 0;
}
