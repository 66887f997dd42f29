/* An access record as one line (requirements [G14]): JSON for machines, or text that a person reads
 * in a terminal of 100 columns. Spans of a record come from the network, so JSON strings are
 * escaped by RFC 8259, bad UTF-8 replaced, and control bytes never reach a terminal. */
#include "obs/record.h"

#include <stdio.h>

#include "base/error.h"
#include "base/time.h"

enum { WHOLE_PATH_MAX = 32, WHOLE_METHOD_MAX = 28, WHOLE_REPLICA_MAX = 40 };

/* Appends nothing more after the first failure. */
struct line {
    struct lp_buf *out;
    int err;
    bool has_member;
};

static void put(struct line *line, struct lp_span text)
{
    if (!line->err)
        line->err = lp_buf_append(line->out, text);
}

/* How many bytes a well-formed UTF-8 sequence (RFC 3629) at the front has; 0 when it is none. */
static size_t utf8_len(struct lp_span text)
{
    unsigned char b0 = (unsigned char)text.ptr[0];
    if (b0 < 0x80)
        return 1;
    size_t len = b0 >= 0xF0 ? 4 : b0 >= 0xE0 ? 3 : 2;
    if (b0 < 0xC2 || b0 > 0xF4 || text.len < len)
        return 0;
    unsigned char b1 = (unsigned char)text.ptr[1];
    unsigned char low = b0 == 0xE0 ? 0xA0 : b0 == 0xF0 ? 0x90 : 0x80;
    unsigned char high = b0 == 0xED ? 0x9F : b0 == 0xF4 ? 0x8F : 0xBF;
    if (b1 < low || b1 > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (((unsigned char)text.ptr[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

static void put_escaped(struct line *line, struct lp_span text)
{
    put(line, LP_SPAN("\""));
    while (text.len && !line->err) {
        size_t len = utf8_len(text);
        unsigned char c = (unsigned char)text.ptr[0];
        if (len == 0)
            put(line, LP_SPAN("\xEF\xBF\xBD"));
        else if (c < 0x20 || c == 0x7F)
            line->err = lp_buf_printf(line->out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            line->err = lp_buf_printf(line->out, "\\%c", c);
        else
            put(line, lp_span(text.ptr, len));
        text = lp_span_from(text, len ? len : 1);
    }
    put(line, LP_SPAN("\""));
}

static void put_name(struct line *line, const char *name)
{
    if (!line->err)
        line->err = lp_buf_printf(line->out, "%s\"%s\":", line->has_member ? "," : "", name);
    line->has_member = true;
}

static void put_string(struct line *line, const char *name, struct lp_span value)
{
    if (value.len == 0)
        return;
    put_name(line, name);
    put_escaped(line, value);
}

static void put_number(struct line *line, const char *name, uint64_t value)
{
    put_name(line, name);
    if (!line->err)
        line->err = lp_buf_printf(line->out, "%llu", (unsigned long long)value);
}

static void put_if_some(struct line *line, const char *name, uint64_t value)
{
    if (value)
        put_number(line, name, value);
}

static void put_flag(struct line *line, const char *name, bool value)
{
    if (!value)
        return;
    put_name(line, name);
    put(line, LP_SPAN("true"));
}

/* Microseconds as milliseconds with three digits after the point. */
static void put_ms(struct line *line, const char *name, uint64_t us)
{
    put_name(line, name);
    if (!line->err)
        line->err = lp_buf_printf(
            line->out, "%llu.%03u", (unsigned long long)(us / 1000), (unsigned)(us % 1000));
}

static void put_session(struct line *line, uint64_t session)
{
    char text[17];
    int len = snprintf(text, sizeof text, "%016llx", (unsigned long long)session);
    if (session)
        put_string(line, "session", lp_span(text, (size_t)len));
}

static void put_json(struct line *line, const struct lp_record *r)
{
    put(line, LP_SPAN("{"));
    put_name(line, "time");
    put(line, LP_SPAN("\""));
    if (!line->err)
        line->err = lp_time_write(line->out, r->wall_ms);
    put(line, LP_SPAN("\""));
    put_string(line, "server", r->server);
    put_string(line, "peer", r->peer);
    put_string(line, "http_method", r->http_method);
    put_string(line, "path", r->path);
    put_string(line, "rpc_method", r->rpc_method);
    put_if_some(line, "status", r->status > 0 ? (uint64_t)r->status : 0);
    put_string(line, "reason", lp_span_str(lp_reason_info(r->reason)->name));
    put_string(line, "replica", r->replica);
    put_if_some(line, "incarnation", r->incarnation);
    put_session(line, r->session);
    put_string(line, "trace_id", r->trace_id);
    put_ms(line, "duration_ms", r->duration_us);
    if (r->first_byte_us)
        put_ms(line, "first_byte_ms", r->first_byte_us);
    put_flag(line, "stream", r->is_stream);
    put_flag(line, "modern", r->is_modern);
    put_if_some(line, "attempts", r->attempts);
    put_number(line, "engine", r->engine);
    put_if_some(line, "bytes_in", r->bytes_in);
    put_if_some(line, "bytes_out", r->bytes_out);
    put(line, LP_SPAN("}"));
}

/* A blank and the word; one that is too long loses its end, one with odd bytes gets '?' for them.
 */
static void put_word(struct line *line, struct lp_span word, size_t max)
{
    bool is_cut = word.len > max;
    size_t len = is_cut ? max - 3 : word.len;
    if (word.len == 0)
        return;
    put(line, LP_SPAN(" "));
    for (size_t i = 0; i < len; i++) {
        char c = word.ptr[i] > ' ' && word.ptr[i] < 0x7F ? word.ptr[i] : '?';
        put(line, lp_span(&c, 1));
    }
    if (is_cut)
        put(line, LP_SPAN("..."));
}

/* Two or three digits and a unit. */
static void put_time_span(struct line *line, uint64_t us)
{
    unsigned long long ms = us / 1000;
    if (line->err)
        return;
    if (us < 100000)
        line->err = lp_buf_printf(line->out, " %llu.%ums", ms, (unsigned)(us / 100 % 10));
    else if (ms < 1000)
        line->err = lp_buf_printf(line->out, " %llums", ms);
    else if (ms < 60000)
        line->err = lp_buf_printf(line->out, " %llu.%us", ms / 1000, (unsigned)(ms / 100 % 10));
    else
        line->err = lp_buf_printf(line->out, " %llum%02us", ms / 60000, (unsigned)(ms / 1000 % 60));
}

static void put_text(struct line *line, const struct lp_record *r)
{
    if (!line->err)
        line->err = lp_time_write(line->out, r->wall_ms);
    put_word(line, r->http_method.len ? r->http_method : LP_SPAN("-"), WHOLE_METHOD_MAX);
    put_word(line, r->path, WHOLE_PATH_MAX);
    put_word(line, r->rpc_method, WHOLE_METHOD_MAX);
    if (!line->err && r->status > 0)
        line->err = lp_buf_printf(line->out, " %d", r->status);
    put(line, r->status > 0 ? LP_SPAN("") : LP_SPAN(" -"));
    put_time_span(line, r->duration_us);
    if (r->replica.len)
        put(line, LP_SPAN(" ->"));
    put_word(line, r->replica, WHOLE_REPLICA_MAX);
    if (!line->err)
        line->err = lp_buf_printf(line->out, " (%s)", lp_reason_info(r->reason)->name);
}

int lp_record_write(struct lp_buf *out, const struct lp_record *record, bool as_json)
{
    struct line line = {.out = out};
    size_t start = out->len;
    if (as_json)
        put_json(&line, record);
    else
        put_text(&line, record);
    /* All or nothing: half a line would run into the next one. */
    if (line.err)
        out->len = start;
    return line.err;
}
