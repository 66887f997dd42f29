/* How a problem is told: "file:line: where: "value" what is accepted", one a line. Whatever comes
 * from the file or the flags is cut short and freed of control bytes first: a message must not
 * write to somebody's terminal what the file says. */
#include <stdarg.h>
#include <stdio.h>

#include "conf/conf_priv.h"
#include "wire/uri.h"

enum { SHOWN_MAX = 60, FILE_SHOWN_MAX = 250, SENTENCE_MAX = 400, MESSAGE_MAX = 900 };

struct lp_span lp_conf_text(struct lp_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    LP_ASSERT(need >= 0);
    char *text = lp_arena_alloc(arena, (size_t)need + 1);
    if (!text)
        return lp_span(NULL, 0);
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)need + 1, fmt, args);
    va_end(args);
    return lp_span(text, (size_t)need);
}

/* How many bytes of `text` are shown; a cut never falls into a UTF-8 sequence. */
static int shown(struct lp_span text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    while (len && len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return (int)len;
}

static void clean(char *line)
{
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            *c = '?';
}

static void tell(struct lp_conf_problems *problems, struct lp_conf_value *at, const char *value,
    const char *sentence)
{
    char line[MESSAGE_MAX];
    int len = 0;
    if (at->line)
        len = snprintf(line, sizeof line, "%.*s:%u: ", shown(problems->file, FILE_SHOWN_MAX),
            problems->file.ptr, (unsigned)at->line);
    if (at->where.len)
        len += snprintf(line + len, sizeof line - (size_t)len,
            "%.*s: ", shown(at->where, SHOWN_MAX), at->where.ptr);
    (void)snprintf(line + len, sizeof line - (size_t)len, "%s%s", value, sentence);
    clean(line);
    problems->count++;
    problems->file_count += at->line != 0;
    at->is_refused = true;
    int err = lp_buf_printf(problems->out, "%s\n", line);
    if (err && !problems->err)
        problems->err = err;
}

void lp_conf_problem(
    struct lp_conf_problems *problems, struct lp_conf_value *at, const char *fmt, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;
    if (at->is_refused)
        return;
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    tell(problems, at, "", sentence);
}

void lp_conf_refuse(
    struct lp_conf_problems *problems, struct lp_conf_value *at, const char *fmt, ...)
{
    char sentence[SENTENCE_MAX], value[2 * SHOWN_MAX + 16];
    struct lp_span head, tail;
    va_list args;
    if (at->is_refused)
        return;
    const char *hidden = lp_uri_hide_user(at->text, &head, &tail) ? "***" : ""; /* a password */
    int head_len = shown(head, SHOWN_MAX);
    int tail_len = shown(tail, SHOWN_MAX);
    bool is_cut = (size_t)head_len < head.len || (size_t)tail_len < tail.len;
    (void)snprintf(value, sizeof value, "\"%.*s%s%.*s%s\" ", head_len, head.ptr, hidden, tail_len,
        tail.ptr, is_cut ? "..." : "");
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    tell(problems, at, value, sentence);
}
