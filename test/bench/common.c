/* See common.h. */
#include "common.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 4096, NS_PER_US = 1000 };

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static void set_no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int bench_listen(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int on = 1;
    struct sockaddr_in at = loopback(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG))
        bench_die("cannot listen on 127.0.0.1:%u: %s", port, strerror(errno));
    return fd;
}

int bench_dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = loopback(port);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    set_no_delay(fd);
    return fd;
}

int bench_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd >= 0)
        set_no_delay(fd);
    return fd;
}

bool bench_write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
            continue;
        }
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

void bench_watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
        bench_die("epoll: %s", strerror(errno));
}

uint64_t bench_number(const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max)
        bench_die("'%s' is no number from %llu to %llu", text, (unsigned long long)min,
            (unsigned long long)max);
    return value;
}

const char *bench_header(const char *head, size_t n, const char *name, size_t *ret_len)
{
    size_t name_len = strlen(name);
    const char *end = head + n;
    for (const char *line = memchr(head, '\n', n); line;
         line = memchr(line, '\n', (size_t)(end - line))) {
        line++;
        if ((size_t)(end - line) <= name_len || line[name_len] != ':' ||
            strncasecmp(line, name, name_len) != 0)
            continue;
        const char *value = line + name_len + 1;
        while (value < end && *value == ' ')
            value++;
        const char *stop = memchr(value, '\r', (size_t)(end - value));
        *ret_len = (size_t)((stop ? stop : end) - value);
        return value;
    }
    return NULL;
}

uint64_t bench_cpu_ns(int pid)
{
    char path[512];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        bench_die("process %d is not there", pid);
    uint64_t sum = 0;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, entry->d_name);
        FILE *file = fopen(path, "r");
        unsigned long long ns = 0;
        if (!file || fscanf(file, "%llu", &ns) != 1)
            bench_die("%s cannot be read: this kernel keeps no account", path);
        fclose(file);
        sum += ns;
    }
    closedir(tasks);
    return sum;
}

/* Bucket of a value: itself below 64, then 64 steps for each doubling. */
static size_t bucket_of(uint64_t value)
{
    if (value < BENCH_SUB_BUCKETS)
        return (size_t)value;
    int exponent = 63 - __builtin_clzll(value);
    return (size_t)(exponent - 5) * BENCH_SUB_BUCKETS +
        ((value >> (exponent - 6)) & (BENCH_SUB_BUCKETS - 1));
}

static uint64_t lowest_of(size_t bucket)
{
    if (bucket < BENCH_SUB_BUCKETS)
        return bucket;
    size_t exponent = bucket / BENCH_SUB_BUCKETS + 5;
    return (BENCH_SUB_BUCKETS + bucket % BENCH_SUB_BUCKETS) << (exponent - 6);
}

void bench_histogram_add(struct bench_histogram *h, uint64_t value)
{
    h->buckets[bucket_of(value)]++;
    h->count++;
    if (value > h->max)
        h->max = value;
}

double bench_histogram_us(const struct bench_histogram *h, double q)
{
    uint64_t below = 0;
    for (size_t i = 0; i < sizeof h->buckets / sizeof h->buckets[0]; i++) {
        below += h->buckets[i];
        if ((double)below > q * (double)h->count)
            return (double)lowest_of(i) / NS_PER_US;
    }
    return (double)h->max / NS_PER_US;
}
