/* Lines over the process's standard input and output: the stdio transport of MCP, one message a
 * line (MCP basic/transports, stdio).
 *
 * It holds what does not go out at once; a reader that takes nothing of LP_LINES_OUT_MAX bytes is
 * given up. No clock, no parsing. */
#ifndef LP_CALL_LINES_H
#define LP_CALL_LINES_H

#include "base/buf.h"
#include "base/error.h"
#include "seam/action.h"
#include "seam/event.h"

enum {
    LP_LINES_IN_MAX = 16 << 20, /* one line */
    LP_LINES_OUT_MAX = 128 << 20,
};

struct lp_lines_ops {
    /* A line without its end ("\n" or "\r\n"); empty ones are not told. Valid until it returns. */
    void (*line)(void *ctx, struct lp_span line);
    /* A line longer than LP_LINES_IN_MAX was dropped. */
    void (*too_long)(void *ctx);
    /* The input has ended; a last line without an end was told before. */
    void (*ended)(void *ctx);
    /* Nobody reads our output any more (LP_EBROKEN), a descriptor failed (LP_EIO), or there is no
     * memory for it. Nothing follows. */
    void (*broken)(void *ctx, int error);
};

struct lp_lines {
    const struct lp_shell *shell;
    const struct lp_lines_ops *ops;
    void *ctx;
    lp_id conn;
    struct lp_buf in;
    struct lp_buf out;      /* what was not offered yet */
    struct lp_buf draining; /* what the shell is taking */
    bool is_open;
    bool is_draining;
    bool is_skipping; /* the rest of a line that was too long */
    bool is_broken;
};

/* Connects to the standard input and output. LP_E... of the shell. */
LP_MUST int lp_lines_open(struct lp_lines *lines, const struct lp_shell *shell,
    const struct lp_lines_ops *ops, void *ctx);
void lp_lines_fini(struct lp_lines *lines);

/* Whether the event was this connection's; if so it has been handled. */
bool lp_lines_event(struct lp_lines *lines, const struct lp_event *event);

/* Sends one message. Line ends within it (blanks of JSON) become blanks; U+2028, U+2029 and U+0085,
 * which many readers of lines take for ends too (Node's readline, Python's splitlines), can only be
 * in strings and become their \u escapes. */
void lp_lines_send(struct lp_lines *lines, struct lp_span message);
/* Offers what has gathered to the shell: at the end of every event. */
void lp_lines_flush(struct lp_lines *lines);
/* Everything that was sent has been taken. */
bool lp_lines_are_out(const struct lp_lines *lines);

#endif
