/* Lines over standard input and output (call/lines.h).
 *
 *   lp_lines_send -> out -> WRITE ; what the shell does not take -> draining -> DRAIN
 *
 * The span of a DRAIN must not move, so what comes meanwhile gathers in `out`. */
#include "call/lines.h"

#include <string.h>

int lp_lines_open(
    struct lp_lines *lines, const struct lp_shell *shell, const struct lp_lines_ops *ops, void *ctx)
{
    *lines = (struct lp_lines){.shell = shell, .ops = ops, .ctx = ctx};
    lp_buf_init(&lines->in, LP_LINES_IN_MAX + 1);
    lp_buf_init(&lines->out, LP_LINES_OUT_MAX);
    lp_buf_init(&lines->draining, LP_LINES_OUT_MAX);
    struct lp_action connect = {.kind = LP_ACT_CONNECT, .u.connect = {.kind = LP_EP_STDIO}};
    int64_t conn = shell->perform(shell->ctx, &connect);
    if (conn < 0)
        return (int)conn;
    lines->conn = (lp_id)conn;
    return LP_OK;
}

static void act(struct lp_lines *lines, enum lp_action_kind kind)
{
    struct lp_action action = {.kind = kind, .conn = lines->conn};
    (void)lines->shell->perform(lines->shell->ctx, &action);
}

void lp_lines_fini(struct lp_lines *lines)
{
    if (lines->conn)
        act(lines, LP_ACT_CLOSE);
    lines->conn = 0;
    lp_buf_release(&lines->in);
    lp_buf_release(&lines->out);
    lp_buf_release(&lines->draining);
}

static void give_up(struct lp_lines *lines, int error)
{
    if (lines->is_broken)
        return;
    lines->is_broken = true;
    lines->ops->broken(lines->ctx, error);
}

/* --- input --- */

static void tell_line(struct lp_lines *lines, struct lp_span line)
{
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len)
        lines->ops->line(lines->ctx, line);
}

static void end_line(struct lp_lines *lines, struct lp_span rest)
{
    if (lines->is_skipping) {
        lines->is_skipping = false;
        lines->ops->too_long(lines->ctx);
        return;
    }
    if (!lines->in.len) {
        tell_line(lines, rest);
        return;
    }
    int err = lp_buf_append(&lines->in, rest);
    if (err)
        lines->ops->too_long(lines->ctx);
    else
        tell_line(lines, lp_buf_span(&lines->in));
    lp_buf_release(&lines->in);
}

static void keep_part(struct lp_lines *lines, struct lp_span part)
{
    if (lines->is_skipping || !part.len || !lp_buf_append(&lines->in, part))
        return;
    lp_buf_release(&lines->in);
    lines->is_skipping = true;
}

static void take_input(struct lp_lines *lines, struct lp_span bytes)
{
    while (bytes.len && !lines->is_broken) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        if (!end) {
            keep_part(lines, bytes);
            return;
        }
        size_t len = (size_t)(end - bytes.ptr);
        end_line(lines, lp_span(bytes.ptr, len));
        bytes = lp_span(end + 1, bytes.len - len - 1);
    }
}

static void end_input(struct lp_lines *lines)
{
    if (lines->in.len || lines->is_skipping)
        end_line(lines, lp_span(NULL, 0));
    lines->ops->ended(lines->ctx);
}

/* --- output --- */

/* The escape of the line end that `text` begins with; NULL: it begins with none. */
static const char *escape_of(struct lp_span text)
{
    if (lp_span_starts(text, LP_SPAN("\xE2\x80\xA8")))
        return "\\u2028";
    if (lp_span_starts(text, LP_SPAN("\xE2\x80\xA9")))
        return "\\u2029";
    return lp_span_starts(text, LP_SPAN("\xC2\x85")) ? "\\u0085" : NULL;
}

/* How many bytes of `text` go out as they are: up to a line end of more than one byte. */
static size_t plain_len(struct lp_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((text.ptr[i] == '\xE2' || text.ptr[i] == '\xC2') && escape_of(lp_span_from(text, i)))
            return i;
    return text.len;
}

static int put_plain(struct lp_buf *out, struct lp_span text)
{
    char *room;
    int err = lp_buf_reserve(out, text.len, &room);
    if (err)
        return err;
    for (size_t i = 0; i < text.len; i++)
        room[i] = text.ptr[i] == '\n' || text.ptr[i] == '\r' ? ' ' : text.ptr[i];
    lp_buf_commit(out, text.len);
    return LP_OK;
}

void lp_lines_send(struct lp_lines *lines, struct lp_span message)
{
    int err = LP_OK;
    if (lines->is_broken)
        return;
    while (message.len && !err) {
        size_t len = plain_len(message);
        err = put_plain(&lines->out, lp_span(message.ptr, len));
        message = lp_span_from(message, len);
        if (!message.len || err)
            break;
        err = lp_buf_append(&lines->out, lp_span_str(escape_of(message)));
        message = lp_span_from(message, message.ptr[0] == '\xE2' ? 3 : 2);
    }
    if (!err)
        err = lp_buf_append(&lines->out, LP_SPAN("\n"));
    if (err)
        give_up(lines, err);
}

void lp_lines_flush(struct lp_lines *lines)
{
    if (!lines->is_open || lines->is_draining || lines->is_broken || !lines->out.len)
        return;
    struct lp_span all = lp_buf_span(&lines->out);
    struct lp_action write = {
        .kind = LP_ACT_WRITE, .conn = lines->conn, .u.write = {.parts = &all, .count = 1}};
    int64_t taken = lines->shell->perform(lines->shell->ctx, &write);
    if (taken < 0)
        return; /* BROKEN follows */
    lp_buf_consume(&lines->out, (size_t)taken);
    if (!lines->out.len) {
        lp_buf_release(&lines->out);
        return;
    }
    struct lp_buf rest = lines->out;
    lines->out = lines->draining;
    lines->draining = rest;
    lines->is_draining = true;
    struct lp_action drain = {
        .kind = LP_ACT_DRAIN, .conn = lines->conn, .u.drain = lp_buf_span(&lines->draining)};
    (void)lines->shell->perform(lines->shell->ctx, &drain);
}

bool lp_lines_are_out(const struct lp_lines *lines)
{
    return lines->is_broken || (!lines->is_draining && !lines->out.len);
}

bool lp_lines_event(struct lp_lines *lines, const struct lp_event *event)
{
    if (!lines->conn || event->conn != lines->conn)
        return false;
    switch (event->kind) {
    case LP_EV_CONNECTED:
        lines->is_open = true;
        break;
    case LP_EV_READ:
        take_input(lines, event->u.bytes);
        break;
    case LP_EV_EOF:
        end_input(lines);
        break;
    case LP_EV_DRAINED:
        lines->is_draining = false;
        lp_buf_release(&lines->draining);
        break;
    case LP_EV_CONNECT_FAILED:
        lines->conn = 0;
        give_up(lines, event->u.error);
        break;
    case LP_EV_BROKEN:
        lines->conn = 0;
        give_up(lines, event->u.error ? event->u.error : LP_EBROKEN);
        break;
    default:
        return false;
    }
    return true;
}
