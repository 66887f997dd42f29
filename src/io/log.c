/* The log's writer (io/log.h). Loops put whole lines into one capped buffer under a mutex; a thread
 * takes the buffer and writes it, blocking as long as the file likes. Why a thread and not a
 * non-blocking descriptor: that flag belongs to the open file, which stderr shares with others, and
 * it means nothing for a disk. */
#include "io/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/loop.h"

enum { WAITING_MAX_DEFAULT = 1024 * 1024, SENTENCE_MAX = 1024, CLOSE_WAIT_S = 1 };

struct lp_log {
    pthread_mutex_t mutex; /* over all that follows up to `thread` */
    pthread_cond_t wake;   /* the writer has something to do */
    pthread_cond_t gone;   /* the writer has ended */
    struct lp_buf waiting;
    uint64_t dropped_lines; /* not said yet */
    struct lp_log_trouble trouble;
    bool is_idle; /* the writer waits */
    bool must_reopen;
    bool is_closing;
    bool is_gone;
    pthread_t thread;
    char *path;          /* NULL: stderr */
    lp_log_line_fn line; /* or NULL */
    int fd;              /* the writer's */
    bool is_losing;      /* the writer's: it has been told on stderr */
};

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
}

static uint64_t count_lines(struct lp_span lines)
{
    uint64_t count = 0;
    for (size_t i = 0; i < lines.len; i++)
        count += lines.ptr[i] == '\n';
    return count;
}

/* The writer */

/* How much of `text` was written; less than all when the file does not take it, and then errno says
 * why. */
static size_t write_all(int fd, struct lp_span text)
{
    size_t done = 0;
    while (done < text.len) {
        ssize_t n = write(fd, text.ptr + done, text.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN) /* another owner of the open file has made it non-blocking */
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            break;
    }
    return done;
}

static void make_line(
    struct lp_log *log, struct lp_buf *out, enum lp_log_level level, struct lp_span sentence)
{
    int err = log->line ? log->line(out, lp_clock_wall_ms(), level, sentence)
                        : lp_buf_append(out, sentence);
    if (!err)
        (void)!lp_buf_append(out, LP_SPAN("\n"));
}

static void say_dropped(struct lp_log *log, struct lp_buf *out, uint64_t count)
{
    char text[128];
    int n = snprintf(text, sizeof text, "%llu log lines were dropped: the log is too slow or full",
        (unsigned long long)count);
    make_line(log, out, LP_LOG_WARN, lp_span(text, (size_t)n));
}

/* To standard error, for what the log file itself cannot be trusted with. Never waits: nobody may
 * be reading there. */
static void tell_stderr(struct lp_log *log, const char *fmt, ...) LP_PRINTF(2, 3);
static void tell_stderr(struct lp_log *log, const char *fmt, ...)
{
    char text[SENTENCE_MAX];
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct lp_buf line;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lp_buf_init(&line, (size_t)4 * SENTENCE_MAX);
    make_line(log, &line, LP_LOG_ERROR, lp_span_str(text));
    if (log->path && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
        (void)!write(STDERR_FILENO, lp_buf_span(&line).ptr, line.len);
    lp_buf_release(&line);
}

static void reopen(struct lp_log *log)
{
    int fd = log->path ? open_file(log->path) : -1;
    if (fd >= 0) {
        (void)close(log->fd);
        log->fd = fd;
    } else if (log->path) {
        const char *why = strerror(errno);
        tell_stderr(log, "cannot open the log file %s again: %s; the old one is still written to",
            log->path, why);
        lp_log_say(log, LP_LOG_ERROR, "cannot open the log file %s again: %s", log->path, why);
        (void)pthread_mutex_lock(&log->mutex);
        log->trouble.failed_reopens++;
        (void)pthread_mutex_unlock(&log->mutex);
    }
}

/* Told once for each time that it begins. */
static void tell_losing(struct lp_log *log, bool is_losing, const char *why)
{
    if (is_losing && !log->is_losing)
        tell_stderr(log,
            "log lines for %s are lost: %s; make room, then SIGHUP opens the file again",
            log->path ? log->path : "standard error", why);
    log->is_losing = is_losing;
}

/* What the writer does outside the mutex. Returns lines that were lost. */
static uint64_t write_out(
    struct lp_log *log, struct lp_buf *lines, uint64_t dropped, bool must_reopen)
{
    if (must_reopen)
        reopen(log);
    size_t done = write_all(log->fd, lp_buf_span(lines));
    int err = done < lines->len ? errno : 0;
    uint64_t lost = err ? count_lines(lp_span_from(lp_buf_span(lines), done)) : 0;
    lp_buf_clear(lines);
    tell_losing(
        log, lost || dropped, err ? strerror(err) : "they come faster than they are written");
    if (lost || !dropped)
        return lost + dropped; /* still no room: said later */
    say_dropped(log, lines, dropped);
    done = write_all(log->fd, lp_buf_span(lines));
    bool is_said = done == lines->len;
    lp_buf_clear(lines);
    return is_said ? 0 : dropped;
}

static void wait_for_work(struct lp_log *log)
{
    while (!log->waiting.len && !log->must_reopen && !log->is_closing) {
        log->is_idle = true;
        (void)pthread_cond_wait(&log->wake, &log->mutex);
    }
    log->is_idle = false;
}

static void *run_writer(void *arg)
{
    struct lp_log *log = arg;
    struct lp_buf lines;
    lp_buf_init(&lines, log->waiting.max);
    (void)pthread_mutex_lock(&log->mutex);
    for (;;) {
        wait_for_work(log);
        if (!log->waiting.len && !log->must_reopen)
            break; /* closing, and nothing is left */
        struct lp_buf taken = log->waiting;
        log->waiting = lines;
        lines = taken;
        uint64_t dropped = log->dropped_lines;
        log->dropped_lines = 0;
        bool must_reopen = log->must_reopen;
        log->must_reopen = false;
        (void)pthread_mutex_unlock(&log->mutex);
        uint64_t lost = write_out(log, &lines, dropped, must_reopen);
        (void)pthread_mutex_lock(&log->mutex);
        log->dropped_lines += lost;
        /* What was dropped for want of room is in both: it was counted when it was dropped. */
        log->trouble.lost_lines += lost > dropped ? lost - dropped : 0;
    }
    lp_buf_release(&lines);
    log->is_gone = true;
    (void)pthread_cond_signal(&log->gone);
    (void)pthread_mutex_unlock(&log->mutex);
    return NULL;
}

/* The callers' side */

void lp_log_take(struct lp_log *log, struct lp_span lines)
{
    if (!log || !lines.len)
        return;
    (void)pthread_mutex_lock(&log->mutex);
    if (lp_buf_append(&log->waiting, lines)) {
        log->dropped_lines += count_lines(lines);
        log->trouble.lost_lines += count_lines(lines);
    }
    if (log->is_idle)
        (void)pthread_cond_signal(&log->wake);
    log->is_idle = false; /* one signal is enough */
    (void)pthread_mutex_unlock(&log->mutex);
}

void lp_log_say(struct lp_log *log, enum lp_log_level level, const char *fmt, ...)
{
    if (!log)
        return;
    char text[SENTENCE_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    struct lp_buf line;
    lp_buf_init(&line, (size_t)4 * SENTENCE_MAX);
    make_line(log, &line, level, lp_span(text, len));
    lp_log_take(log, lp_buf_span(&line));
    lp_buf_release(&line);
}

void lp_log_reopen(struct lp_log *log)
{
    (void)pthread_mutex_lock(&log->mutex);
    log->must_reopen = true;
    (void)pthread_cond_signal(&log->wake);
    (void)pthread_mutex_unlock(&log->mutex);
}

struct lp_log_trouble lp_log_trouble(struct lp_log *log)
{
    struct lp_log_trouble trouble = {0};
    if (!log)
        return trouble;
    (void)pthread_mutex_lock(&log->mutex);
    trouble = log->trouble;
    (void)pthread_mutex_unlock(&log->mutex);
    return trouble;
}

static void release(struct lp_log *log)
{
    if (log->path && log->fd >= 0)
        (void)close(log->fd);
    lp_buf_release(&log->waiting);
    free(log->path);
    free(log);
}

int lp_log_open(const struct lp_log_args *args, struct lp_buf *why, struct lp_log **ret)
{
    struct lp_log *log = calloc(1, sizeof *log);
    if (!log)
        return LP_ENOMEM;
    lp_buf_init(&log->waiting, args->waiting_max ? args->waiting_max : WAITING_MAX_DEFAULT);
    log->line = args->line;
    log->fd = STDERR_FILENO;
    (void)pthread_mutex_init(&log->mutex, NULL);
    (void)pthread_cond_init(&log->wake, NULL);
    (void)pthread_cond_init(&log->gone, NULL);
    int err = LP_OK;
    if (args->path) {
        log->path = strdup(args->path);
        log->fd = open_file(args->path);
        if (log->fd < 0) {
            (void)!lp_buf_printf(
                why, "cannot open the log file %s: %s", args->path, strerror(errno));
            err = LP_EIO;
        }
    }
    if (!err && ((args->path && !log->path) || pthread_create(&log->thread, NULL, run_writer, log)))
        err = LP_ENOMEM;
    if (err)
        release(log);
    else
        *ret = log;
    return err;
}

void lp_log_close(struct lp_log *log)
{
    if (!log)
        return;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_WAIT_S;
    (void)pthread_mutex_lock(&log->mutex);
    log->is_closing = true;
    (void)pthread_cond_signal(&log->wake);
    int err = 0;
    while (!log->is_gone && !err)
        err = pthread_cond_timedwait(&log->gone, &log->mutex, &until);
    bool is_gone = log->is_gone;
    (void)pthread_mutex_unlock(&log->mutex);
    if (!is_gone) {
        (void)pthread_detach(log->thread); /* stuck in a write: the process ends without it */
        return;
    }
    (void)pthread_join(log->thread, NULL);
    release(log);
}
