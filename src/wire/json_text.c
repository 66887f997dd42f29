/* What a JSON string says, and text as a JSON string (wire/json.h; RFC 8259 section 7).
 *
 * Read are tokens that the reader has passed, so their escapes are sound; whether a surrogate has
 * its other half is decided here. What is written may be any bytes: what is no UTF-8 is replaced.
 */
#include "base/buf.h"
#include "wire/json_priv.h"

/* --- reading ---------------------------------------------------------------------------------- */

enum { REPLACEMENT = 0xFFFD };

static bool is_high_surrogate(uint32_t c)
{
    return c >= 0xD800 && c <= 0xDBFF;
}

static bool is_low_surrogate(uint32_t c)
{
    return c >= 0xDC00 && c <= 0xDFFF;
}

static size_t utf8_put(uint32_t c, char room[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        room[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    room[0] = (char)(marks[n] | c);
    return n;
}

/* The value of "\uXXXX" at the front of `s`, or -1 when that is not what stands there. */
static int32_t peek_unit(struct lp_span s)
{
    int32_t value = 0;
    if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(s.ptr[i]);
        LP_ASSERT(digit >= 0);
        value = value << 4 | digit;
    }
    return value;
}

/* Takes one \u escape, or two when they are a surrogate pair. */
static uint32_t take_code_point(struct lp_span *s)
{
    int32_t unit = peek_unit(*s);
    LP_ASSERT(unit >= 0);
    *s = lp_span_from(*s, 6);
    if (is_low_surrogate((uint32_t)unit))
        return REPLACEMENT;
    if (!is_high_surrogate((uint32_t)unit))
        return (uint32_t)unit;
    int32_t low = peek_unit(*s);
    if (low < 0 || !is_low_surrogate((uint32_t)low))
        return REPLACEMENT;
    *s = lp_span_from(*s, 6);
    return 0x10000u + (((uint32_t)unit - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u);
}

/* Takes a run without escapes, or one escape, which is decoded into `room`. */
static struct lp_span take_piece(struct lp_span *s, char room[4])
{
    size_t plain = lp_span_find(*s, '\\');
    struct lp_span piece = lp_span(s->ptr, plain);
    if (plain) {
        *s = lp_span_from(*s, plain);
        return piece;
    }
    LP_ASSERT(s->len >= 2);
    if (s->ptr[1] == 'u')
        return lp_span(room, utf8_put(take_code_point(s), room));
    room[0] = escape_meaning(s->ptr[1]);
    *s = lp_span_from(*s, 2);
    return lp_span(room, 1);
}

static struct lp_span inner(struct lp_span token)
{
    LP_ASSERT(token.len >= 2 && token.ptr[0] == '"' && token.ptr[token.len - 1] == '"');
    return lp_span(token.ptr + 1, token.len - 2);
}

int lp_json_unescape(struct lp_span token, char *room, size_t room_len, size_t *ret_len)
{
    struct lp_span rest = inner(token);
    size_t len = 0;
    while (rest.len) {
        char decoded[4];
        struct lp_span piece = take_piece(&rest, decoded);
        if (piece.len > room_len - len)
            return LP_ETOO_LONG;
        memcpy(room + len, piece.ptr, piece.len);
        len += piece.len;
    }
    *ret_len = len;
    return LP_OK;
}

bool lp_json_string_is(struct lp_span token, struct lp_span text)
{
    struct lp_span rest = inner(token);
    while (rest.len) {
        char decoded[4];
        struct lp_span piece = take_piece(&rest, decoded);
        if (!lp_span_starts(text, piece))
            return false;
        text = lp_span_from(text, piece.len);
    }
    return text.len == 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int quote_ascii(struct lp_buf *out, char c)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    size_t i = lp_span_find(lp_span(letters, sizeof letters - 1), c);
    if (i < sizeof letters - 1)
        return lp_buf_append(out, lp_span((const char[]){'\\', names[i]}, 2));
    return lp_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
}

/* Length of the UTF-8 sequence at the front, or of what is to be replaced: the longest beginning of
 * a sequence, or one byte (Unicode 15, 3.9, "maximal subpart"). */
static size_t measure_utf8(struct lp_span s, bool *ret_whole)
{
    struct lp_json_utf8 u = {.left = 0};
    size_t n = 1;
    *ret_whole = utf8_begin(&u, s.ptr[0]);
    if (!*ret_whole)
        return 1;
    while (n < s.len && u.left && utf8_continue(&u, s.ptr[n]))
        n++;
    *ret_whole = u.left == 0;
    return n;
}

/* Appends what stands at text[at], which is not plain; the index behind it or an error. */
static ptrdiff_t quote_special(struct lp_buf *out, struct lp_span text, size_t at)
{
    bool is_whole;
    size_t n = 1;
    int err;
    if ((unsigned char)text.ptr[at] < 0x80) {
        err = quote_ascii(out, text.ptr[at]);
    } else {
        n = measure_utf8(lp_span_from(text, at), &is_whole);
        err = lp_buf_append(out, is_whole ? lp_span(text.ptr + at, n) : LP_SPAN("\xEF\xBF\xBD"));
    }
    return err ? err : (ptrdiff_t)(at + n);
}

static int quote(struct lp_buf *out, struct lp_span text)
{
    int err = lp_buf_append(out, LP_SPAN("\""));
    for (size_t at = 0; !err && at < text.len;) {
        size_t end = skip_plain(text, at);
        err = lp_buf_append(out, lp_span(text.ptr + at, end - at));
        if (err || end == text.len)
            break;
        ptrdiff_t next = quote_special(out, text, end);
        if (next < 0)
            return (int)next;
        at = (size_t)next;
    }
    return err ? err : lp_buf_append(out, LP_SPAN("\""));
}

int lp_json_quote(struct lp_buf *out, struct lp_span text)
{
    size_t len_before = out->len;
    int err = quote(out, text);
    if (err)
        out->len = len_before;
    return err;
}
