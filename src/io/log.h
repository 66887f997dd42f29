/* The log: lines of all loops in one file or on stderr, written by a thread of its own, so that a
 * pipe nobody reads or a full disk never holds up a loop. What finds no room is dropped, counted,
 * said on stderr when that begins, and said in the log as soon as there is room again. A line is
 * never torn by another loop's line. */
#ifndef LP_IO_LOG_H
#define LP_IO_LOG_H

#include "base/buf.h"
#include "base/error.h"
#include "seam/action.h"

struct lp_log;

/* Makes a log line (without line end) of a sentence of this room, so that it looks like the
 * engine's lines: appends to `out`. May be called in any thread. */
typedef int (*lp_log_line_fn)(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence);

struct lp_log_args {
    const char *path;    /* appended to, created with mode 0640; NULL: stderr */
    lp_log_line_fn line; /* NULL: the sentence itself is the line */
    size_t waiting_max;  /* bytes that may wait to be written; 0: 1 MiB */
};

/* LP_EIO with a sentence in `why`, LP_ENOMEM. */
LP_MUST int lp_log_open(const struct lp_log_args *args, struct lp_buf *why, struct lp_log **ret);

/* Writes what waits, for at most a second, and frees. NULL is fine. */
void lp_log_close(struct lp_log *log);

/* Whole lines, each with its line end; taken all or none. From any thread; never blocks on output.
 * Harmless when `log` is NULL. */
void lp_log_take(struct lp_log *log, struct lp_span lines);

/* A sentence of the program itself, as a line. From any thread. Harmless when `log` is NULL. */
void lp_log_say(struct lp_log *log, enum lp_log_level level, const char *fmt, ...) LP_PRINTF(3, 4);

/* Opens the file again under its name (after a rotation): later lines go there. Nothing for stderr.
 * When it cannot be opened the old file stays in use and says so, and so does stderr. */
void lp_log_reopen(struct lp_log *log);

/* What went wrong since the log was opened. From any thread; nothing when `log` is NULL. */
struct lp_log_trouble {
    uint64_t lost_lines;
    uint64_t failed_reopens;
};
struct lp_log_trouble lp_log_trouble(struct lp_log *log);

#endif
