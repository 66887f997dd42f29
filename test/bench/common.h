/* What the programs of the benchmark share: sockets on the loopback, a clock, a histogram and the
 * CPU time that another process has used. Nothing of the product is in them, so that they stay as
 * they are when it changes. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_EVENTS_MAX = 256, BENCH_BUFFER_BYTES = 16384 };

/* Ends the program with a sentence. */
_Noreturn __attribute__((format(printf, 1, 2))) void bench_die(const char *format, ...);

uint64_t bench_now_ns(void);

/* A listening socket that does not block, on 127.0.0.1; dies when the port is taken. */
int bench_listen(uint16_t port);

/* A connected socket without Nagle's delay that blocks, or -1. */
int bench_dial(uint16_t port);

/* The next waiting connection, not blocking and without Nagle's delay, or -1. */
int bench_accept(int listener);

/* Writes all of it, waiting for room when it must; false when the peer is gone. */
bool bench_write_all(int fd, const char *bytes, size_t n);

void bench_watch(int epoll, int fd);

/* A number given on the command line, in [min, max]; dies otherwise. */
uint64_t bench_number(const char *text, uint64_t min, uint64_t max);

/* The value of a header field in a message head of `n` bytes, and its length; NULL when it is not
 * there. Names are compared without regard to case. */
const char *bench_header(const char *head, size_t n, const char *name, size_t *ret_len);

/* CPU time of all threads of a process in ns, from the scheduler's own account (exact, where the
 * usual ticks count in steps of 10 ms); dies when the kernel does not keep it. */
uint64_t bench_cpu_ns(int pid);

/* Values in ns, in buckets no wider than 1/64 of their value. */
enum { BENCH_SUB_BUCKETS = 64 };

struct bench_histogram {
    uint64_t buckets[64 * BENCH_SUB_BUCKETS];
    uint64_t count;
    uint64_t max;
};

void bench_histogram_add(struct bench_histogram *h, uint64_t value);

/* The value in us that a part `q` of all values does not exceed. */
double bench_histogram_us(const struct bench_histogram *h, double q);

#endif
