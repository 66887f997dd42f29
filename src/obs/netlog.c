/* The network log (obs/netlog.h): which parts of a head are secrets, and how a line looks.
 *
 * What is redacted keeps a hash under a key of this run, so that a reader sees equal values as
 * equal and learns nothing else. A field that is not known to be harmless by its name and came from
 * the user counts as a secret too. */
#include "obs/netlog.h"

#include <sodium.h>

#include "base/error.h"
#include "base/time.h"
#include "obs/record.h"

enum { BODY_SHOWN_MAX = 12288 };

void lp_netlog_init(struct lp_netlog *log, lp_netlog_line_fn line, void *ctx,
    const unsigned char key[LP_NETLOG_KEY_BYTES])
{
    *log = (struct lp_netlog){.line = line, .ctx = ctx};
    memcpy(log->key, key, sizeof log->key);
    lp_buf_init(&log->room, LP_NETLOG_LINE_MAX);
}

void lp_netlog_fini(struct lp_netlog *log)
{
    lp_buf_release(&log->room);
}

void lp_netlog_hash(
    const struct lp_netlog *log, struct lp_span secret, char room[LP_NETLOG_HASH_CHARS + 1])
{
    static const char HEX[] = "0123456789abcdef";
    unsigned char hash[crypto_shorthash_BYTES];
    const unsigned char *bytes = (const unsigned char *)(secret.len ? secret.ptr : "");
    int err = crypto_shorthash(hash, bytes, secret.len, log->key);
    LP_ASSERT(err == 0);
    room[0] = '#';
    for (int i = 0; i < 4; i++) {
        room[1 + 2 * i] = HEX[hash[i] >> 4];
        room[2 + 2 * i] = HEX[hash[i] & 15];
    }
    room[LP_NETLOG_HASH_CHARS] = '\0';
}

static int append_hash(const struct lp_netlog *log, struct lp_span secret, struct lp_buf *out)
{
    char room[LP_NETLOG_HASH_CHARS + 1];
    lp_netlog_hash(log, secret, room);
    return lp_buf_append(out, lp_span(room, LP_NETLOG_HASH_CHARS));
}

/* --- members: "name=value" parts, in queries and cookies --- */

static int append_member(const struct lp_netlog *log, struct lp_span member, struct lp_buf *out)
{
    struct lp_span value;
    struct lp_span name = lp_span_split(member, '=', &value);
    if (!value.ptr)
        return append_hash(log, member, out);
    int err = lp_buf_append(out, name);
    if (!err)
        err = lp_buf_append(out, LP_SPAN("="));
    return err ? err : append_hash(log, value, out);
}

static int append_members(
    const struct lp_netlog *log, struct lp_span list, char separator, struct lp_buf *out)
{
    int err = LP_OK;
    const char between[2] = {separator, ' '};
    for (bool is_first = true; list.ptr && !err; is_first = false) {
        struct lp_span member = lp_span_trim(lp_span_split(list, separator, &list));
        if (!is_first)
            err = lp_buf_append(out, lp_span(between, separator == ';' ? 2 : 1));
        if (!err && member.len)
            err = append_member(log, member, out);
    }
    return err;
}

int lp_netlog_redact_url(const struct lp_netlog *log, struct lp_span url, struct lp_buf *out)
{
    struct lp_span query;
    url.len = lp_span_find(url, '#');
    struct lp_span path = lp_span_split(url, '?', &query);
    int err = lp_buf_append(out, path);
    if (err || !query.ptr)
        return err;
    err = lp_buf_append(out, LP_SPAN("?"));
    return err ? err : append_members(log, query, '&', out);
}

/* --- fields --- */

/* The pair is the secret, the attributes behind it are not. */
static int append_set_cookie(const struct lp_netlog *log, struct lp_span value, struct lp_buf *out)
{
    size_t pair_len = lp_span_find(value, ';');
    int err = append_member(log, lp_span_trim(lp_span(value.ptr, pair_len)), out);
    return err ? err : lp_buf_append(out, lp_span_from(value, pair_len));
}

static int append_credentials(const struct lp_netlog *log, struct lp_span value, struct lp_buf *out)
{
    struct lp_span rest;
    struct lp_span scheme = lp_span_split(value, ' ', &rest);
    if (!rest.ptr)
        return append_hash(log, value, out);
    int err = lp_buf_append(out, scheme);
    if (!err)
        err = lp_buf_append(out, LP_SPAN(" "));
    return err ? err : append_hash(log, lp_span_trim(rest), out);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool holds_word(struct lp_span name, struct lp_span word)
{
    for (size_t i = 0; i + word.len <= name.len; i++) {
        size_t n = 0;
        while (n < word.len && lower(name.ptr[i + n]) == word.ptr[n])
            n++;
        if (n == word.len)
            return true;
    }
    return false;
}

static bool is_secret_name(struct lp_span name)
{
    static const struct lp_span WORDS[] = {{"session-id", 10}, {"token", 5}, {"secret", 6},
        {"api-key", 7}, {"apikey", 6}, {"password", 8}, {"credential", 10}, {"cookie", 6},
        {"authorization", 13}};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (holds_word(name, WORDS[i]))
            return true;
    return false;
}

int lp_netlog_redact_value(
    const struct lp_netlog *log, const struct lp_netlog_field *field, struct lp_buf *out)
{
    struct lp_span name = field->name;
    if (lp_span_ieq(name, LP_SPAN("set-cookie")))
        return append_set_cookie(log, field->value, out);
    if (lp_span_ieq(name, LP_SPAN("cookie")))
        return append_members(log, field->value, ';', out);
    if (lp_span_ieq(name, LP_SPAN("authorization")) ||
        lp_span_ieq(name, LP_SPAN("proxy-authorization")))
        return append_credentials(log, field->value, out);
    if (lp_span_ieq(name, LP_SPAN("location")) || lp_span_ieq(name, LP_SPAN("referer")))
        return lp_netlog_redact_url(log, field->value, out);
    if (field->is_secret || is_secret_name(name))
        return append_hash(log, field->value, out);
    return lp_buf_append(out, field->value);
}

/* --- lines --- */

static int begin_line(struct lp_netlog *log, struct lp_netlog_at at, char mark)
{
    lp_buf_clear(&log->room);
    int err = lp_time_write(&log->room, at.wall_ms);
    return err ? err : lp_buf_printf(&log->room, " %llu %c ", (unsigned long long)at.number, mark);
}

/* Whatever came from outside: no line end and no escape sequence reaches the reader's terminal. */
static void send_line(struct lp_netlog *log)
{
    struct lp_span line = lp_buf_span(&log->room);
    for (char *p = log->room.ptr + log->room.off; p < line.ptr + line.len; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            *p = ' ';
    log->line(log->ctx, line);
}

static char mark_of(struct lp_netlog_at at)
{
    return at.is_sent ? '>' : '<';
}

void lp_netlog_start_line(
    struct lp_netlog *log, struct lp_netlog_at at, struct lp_span word, struct lp_span rest)
{
    if (!log || begin_line(log, at, mark_of(at)))
        return;
    int err = lp_buf_append(&log->room, word);
    if (!err)
        err = lp_buf_append(&log->room, LP_SPAN(" "));
    if (!err)
        err = at.is_sent ? lp_netlog_redact_url(log, rest, &log->room)
                         : lp_buf_append(&log->room, rest);
    if (!err)
        send_line(log);
}

void lp_netlog_field(
    struct lp_netlog *log, struct lp_netlog_at at, const struct lp_netlog_field *field)
{
    if (!log || begin_line(log, at, mark_of(at)))
        return;
    int err = lp_buf_append(&log->room, field->name);
    if (!err)
        err = lp_buf_append(&log->room, LP_SPAN(": "));
    if (!err)
        err = lp_netlog_redact_value(log, field, &log->room);
    if (!err)
        send_line(log);
}

void lp_netlog_content(struct lp_netlog *log, struct lp_netlog_at at, const char *kind,
    struct lp_span what, struct lp_span bytes)
{
    if (!log || begin_line(log, at, mark_of(at)))
        return;
    int err = lp_buf_printf(&log->room, "(%s) %zu bytes", kind, bytes.len);
    if (!err && what.len)
        err = lp_buf_printf(&log->room, ": %.*s", (int)what.len, what.ptr);
    if (!err && log->with_bodies && bytes.len) {
        bool is_cut = bytes.len > BODY_SHOWN_MAX;
        size_t shown = is_cut ? BODY_SHOWN_MAX : bytes.len;
        err = lp_buf_printf(
            &log->room, " | %.*s%s", (int)shown, bytes.ptr, is_cut ? " (cut here)" : "");
    }
    if (!err)
        send_line(log);
}

void lp_netlog_note(struct lp_netlog *log, struct lp_netlog_at at, struct lp_span sentence)
{
    if (!log || begin_line(log, at, '.'))
        return;
    if (!lp_buf_append(&log->room, sentence))
        send_line(log);
}
