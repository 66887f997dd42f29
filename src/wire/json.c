/* A strict, incremental JSON reader (RFC 8259) that keeps nothing, and the string forms around it.
 *
 * It decides whether the bytes are JSON and where its tokens lie; what they mean, duplicate names
 * too, is left to the caller. Each state has one small handler that takes at least one byte or
 * changes the state; the driver knows no grammar. A verdict is final: the reader that has failed
 * or was stopped says the same to whatever comes later. Inside strings, eight plain bytes are
 * passed over at a time, since that is where the bytes are. */
#include "wire/json.h"

#include <endian.h>

#include "base/buf.h"

enum state {
    AT_START, /* no byte yet: a BOM may come */
    IN_BOM,
    AT_VALUE,       /* a value must come */
    AT_FIRST_VALUE, /* behind '[': a value or ']' */
    AT_FIRST_KEY,   /* behind '{': a key or '}' */
    AT_KEY,         /* behind ',' in an object */
    AT_COLON,
    AFTER_VALUE,
    IN_STRING,
    IN_ESCAPE, /* behind '\' */
    IN_HEX,    /* behind '\u': substate counts the digits */
    IN_UTF8,
    IN_NUMBER, /* substate is an enum number_state */
    IN_LITERAL,
};

/* --- characters ------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

static uint64_t load_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Marks the zero bytes among eight with 0x80, for bytes below 0x80. */
static uint64_t mark_zero(uint64_t word)
{
    return EACH_BYTE(0x80) - word;
}

/* Marks with 0x80 the bytes that are not plain. No sum reaches into the next byte, as all of them
 * are made of seven bits. */
static uint64_t mark_special(uint64_t word)
{
    uint64_t low = word & EACH_BYTE(0x7F);
    uint64_t is_control = ~(low + EACH_BYTE(0x60));
    uint64_t is_quote = mark_zero(low ^ EACH_BYTE('"'));
    uint64_t is_backslash = mark_zero(low ^ EACH_BYTE('\\'));
    return (word | is_control | is_quote | is_backslash) & EACH_BYTE(0x80);
}

static size_t skip_plain(struct lp_span in, size_t at)
{
    while (in.len - at >= 8) {
        uint64_t special = mark_special(le64toh(load_word(in.ptr + at)));
        if (special)
            return at + (size_t)__builtin_ctzll(special) / 8;
        at += 8;
    }
    while (at < in.len && is_plain(in.ptr[at]))
        at++;
    return at;
}

static size_t skip_blanks(struct lp_span in, size_t at)
{
    while (at < in.len && is_blank(in.ptr[at])) {
        at++;
        /* Indentation: the only long run of blanks that is common. */
        while (in.len - at >= 8 && load_word(in.ptr + at) == EACH_BYTE(' '))
            at += 8;
    }
    return at;
}

/* The first byte of a sequence of two and more; false when there is no such sequence. The bounds
 * keep out overlong forms, surrogates and what is over U+10FFFF (RFC 3629 section 4). */
static bool utf8_begin(struct lp_json_utf8 *u, char first)
{
    unsigned char c = (unsigned char)first;
    if (c < 0xC2 || c > 0xF4)
        return false;
    u->left = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    u->min = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    u->max = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    return true;
}

static bool utf8_continue(struct lp_json_utf8 *u, char next)
{
    unsigned char c = (unsigned char)next;
    if (c < u->min || c > u->max)
        return false;
    u->left--;
    u->min = 0x80;
    u->max = 0xBF;
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

void lp_json_init(struct lp_json *j, lp_json_token_fn on_token, void *ctx)
{
    *j = (struct lp_json){.on_token = on_token, .ctx = ctx, .state = AT_START};
}

static size_t fail(struct lp_json *j, size_t at)
{
    j->verdict = LP_ESYNTAX;
    return at;
}

static size_t go(struct lp_json *j, enum state state, size_t at)
{
    j->state = (uint8_t)state;
    return at;
}

static void emit(struct lp_json *j, enum lp_json_token_kind kind, size_t end)
{
    const struct lp_json_token token = {
        .kind = kind,
        .depth = j->depth,
        .begin = j->token_begin,
        .end = end,
        .has_escape = (kind == LP_JSON_KEY || kind == LP_JSON_STRING) && j->has_escape,
        .is_integer = kind == LP_JSON_NUMBER && j->is_integer,
    };
    if (j->on_token)
        j->verdict = j->on_token(j->ctx, &token);
}

static bool in_object(const struct lp_json *j)
{
    uint32_t top = j->depth - 1;
    return j->depth && (j->stack[top / 8] >> (top % 8) & 1);
}

static size_t open_container(struct lp_json *j, bool is_object, size_t at)
{
    if (j->depth == LP_JSON_DEPTH_MAX) {
        j->verdict = LP_ELIMIT;
        return at;
    }
    emit(j, is_object ? LP_JSON_OBJECT_BEGIN : LP_JSON_ARRAY_BEGIN, j->token_begin + 1);
    uint8_t bit = (uint8_t)(1u << (j->depth % 8));
    uint8_t *cell = &j->stack[j->depth / 8];
    *cell = (uint8_t)(is_object ? *cell | bit : *cell & ~bit);
    j->depth++;
    return go(j, is_object ? AT_FIRST_KEY : AT_FIRST_VALUE, at + 1);
}

static size_t close_container(struct lp_json *j, bool is_object, size_t at)
{
    if (j->depth == 0 || in_object(j) != is_object)
        return fail(j, at);
    j->depth--;
    emit(j, is_object ? LP_JSON_OBJECT_END : LP_JSON_ARRAY_END, j->token_begin + 1);
    return go(j, AFTER_VALUE, at + 1);
}

/* The handler of the literal or number sees its first byte again. */
static size_t begin_literal(struct lp_json *j, enum lp_json_token_kind kind, size_t at)
{
    j->literal = (uint8_t)kind;
    j->substate = 0;
    return go(j, IN_LITERAL, at);
}

static size_t begin_string(struct lp_json *j, struct lp_span in, bool is_key, size_t at);

static size_t begin_value(struct lp_json *j, struct lp_span in, size_t at)
{
    char c = in.ptr[at];
    j->substate = 0;
    if (is_digit(c) || c == '-')
        return go(j, IN_NUMBER, at);
    switch (c) {
    case '"':
        return begin_string(j, in, false, at);
    case '{':
        return open_container(j, true, at);
    case '[':
        return open_container(j, false, at);
    case 't':
        return begin_literal(j, LP_JSON_TRUE, at);
    case 'f':
        return begin_literal(j, LP_JSON_FALSE, at);
    case 'n':
        return begin_literal(j, LP_JSON_NULL, at);
    default:
        return fail(j, at);
    }
}

static size_t at_key(struct lp_json *j, struct lp_span in, size_t at)
{
    return in.ptr[at] == '"' ? begin_string(j, in, true, at) : fail(j, at);
}

/* Behind a comma, where nearly always the next key stands at once. */
static size_t after_comma(struct lp_json *j, struct lp_span in, size_t at)
{
    bool is_object = in_object(j);
    if (!is_object || at == in.len || in.ptr[at] != '"')
        return go(j, is_object ? AT_KEY : AT_VALUE, at);
    j->token_begin = j->offset + at;
    return at_key(j, in, at);
}

static size_t after_value(struct lp_json *j, struct lp_span in, size_t at)
{
    char c = in.ptr[at];
    if (c == ',' && j->depth)
        return after_comma(j, in, at + 1);
    if (c == '}' || c == ']')
        return close_container(j, c == '}', at);
    return fail(j, at);
}

/* Between tokens, where blanks may stand. */
static size_t between(struct lp_json *j, struct lp_span in, size_t at)
{
    at = skip_blanks(in, at);
    if (at == in.len)
        return at;
    char c = in.ptr[at];
    j->token_begin = j->offset + at;
    switch (j->state) {
    case AT_VALUE:
        return begin_value(j, in, at);
    case AT_FIRST_VALUE:
        return c == ']' ? close_container(j, false, at) : begin_value(j, in, at);
    case AT_FIRST_KEY:
        return c == '}' ? close_container(j, true, at) : at_key(j, in, at);
    case AT_KEY:
        return at_key(j, in, at);
    case AT_COLON:
        return c == ':' ? go(j, AT_VALUE, at + 1) : fail(j, at);
    default:
        return after_value(j, in, at);
    }
}

static size_t in_bom(struct lp_json *j, char c, size_t at)
{
    static const char bom[] = "\xEF\xBB\xBF";
    if (c != bom[j->substate])
        return j->state == AT_START ? go(j, AT_VALUE, at) : fail(j, at);
    return go(j, ++j->substate == 3 ? AT_VALUE : IN_BOM, at + 1);
}

/* --- strings ---------------------------------------------------------------------------------- */

static size_t end_string(struct lp_json *j, struct lp_span in, size_t at)
{
    emit(j, j->is_key ? LP_JSON_KEY : LP_JSON_STRING, j->offset + at + 1);
    if (!j->is_key)
        return go(j, AFTER_VALUE, at + 1);
    bool has_colon = at + 1 < in.len && in.ptr[at + 1] == ':'; /* as nearly always */
    return has_colon ? go(j, AT_VALUE, at + 2) : go(j, AT_COLON, at + 1);
}

static size_t in_utf8(struct lp_json *j, struct lp_span in, size_t at)
{
    while (at < in.len && j->utf8.left) {
        if (!utf8_continue(&j->utf8, in.ptr[at]))
            return fail(j, at);
        at++;
    }
    return go(j, j->utf8.left ? IN_UTF8 : IN_STRING, at);
}

static size_t in_string(struct lp_json *j, struct lp_span in, size_t at)
{
    at = skip_plain(in, at);
    if (at == in.len)
        return at;
    char c = in.ptr[at];
    if (c == '"')
        return end_string(j, in, at);
    if (c == '\\') {
        j->has_escape = true;
        return go(j, IN_ESCAPE, at + 1);
    }
    return utf8_begin(&j->utf8, c) ? in_utf8(j, in, at + 1) : fail(j, at);
}

static size_t begin_string(struct lp_json *j, struct lp_span in, bool is_key, size_t at)
{
    j->is_key = is_key;
    j->has_escape = false;
    j->state = IN_STRING;
    return in_string(j, in, at + 1);
}

/* The byte that a one letter escape stands for; 0 for a letter that is none. */
static char escape_meaning(char letter)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    size_t i = lp_span_find(lp_span(letters, sizeof letters - 1), letter);
    return meanings[i];
}

static size_t in_escape(struct lp_json *j, char c, size_t at)
{
    j->substate = 0;
    if (c == 'u')
        return go(j, IN_HEX, at + 1);
    return escape_meaning(c) ? go(j, IN_STRING, at + 1) : fail(j, at);
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t in_hex(struct lp_json *j, char c, size_t at)
{
    if (hex_value(c) < 0)
        return fail(j, at);
    return go(j, ++j->substate == 4 ? IN_STRING : IN_HEX, at + 1);
}

/* --- numbers and literals --------------------------------------------------------------------- */

enum number_state {
    N_BEGIN,
    N_MINUS,
    N_ZERO,
    N_DIGITS,
    N_POINT,
    N_FRACTION,
    N_E,
    N_E_SIGN,
    N_EXPONENT,
    N_OVER, /* the byte is not part of the number */
    N_BAD,
};

enum number_class { C_ZERO, C_DIGIT, C_MINUS, C_PLUS, C_POINT, C_E, C_OTHER };

/* A digit or sign where none may stand is an error at once, not the end of the number. */
static const uint8_t number_next[N_OVER][C_OTHER + 1] = {
    [N_BEGIN] = {N_ZERO, N_DIGITS, N_MINUS, N_BAD, N_BAD, N_BAD, N_BAD},
    [N_MINUS] = {N_ZERO, N_DIGITS, N_BAD, N_BAD, N_BAD, N_BAD, N_BAD},
    [N_ZERO] = {N_BAD, N_BAD, N_BAD, N_BAD, N_POINT, N_E, N_OVER},
    [N_DIGITS] = {N_DIGITS, N_DIGITS, N_BAD, N_BAD, N_POINT, N_E, N_OVER},
    [N_POINT] = {N_FRACTION, N_FRACTION, N_BAD, N_BAD, N_BAD, N_BAD, N_BAD},
    [N_FRACTION] = {N_FRACTION, N_FRACTION, N_BAD, N_BAD, N_BAD, N_E, N_OVER},
    [N_E] = {N_EXPONENT, N_EXPONENT, N_E_SIGN, N_E_SIGN, N_BAD, N_BAD, N_BAD},
    [N_E_SIGN] = {N_EXPONENT, N_EXPONENT, N_BAD, N_BAD, N_BAD, N_BAD, N_BAD},
    [N_EXPONENT] = {N_EXPONENT, N_EXPONENT, N_BAD, N_BAD, N_BAD, N_BAD, N_OVER},
};

static enum number_class number_class(char c)
{
    if (is_digit(c))
        return c == '0' ? C_ZERO : C_DIGIT;
    switch (c) {
    case '-':
        return C_MINUS;
    case '+':
        return C_PLUS;
    case '.':
        return C_POINT;
    case 'e':
    case 'E':
        return C_E;
    default:
        return C_OTHER;
    }
}

static size_t end_number(struct lp_json *j, size_t at)
{
    j->is_integer = j->substate == N_ZERO || j->substate == N_DIGITS;
    emit(j, LP_JSON_NUMBER, j->offset + at);
    return go(j, AFTER_VALUE, at);
}

static size_t in_number(struct lp_json *j, struct lp_span in, size_t at)
{
    for (; at < in.len; at++) {
        uint8_t next = number_next[j->substate][number_class(in.ptr[at])];
        if (next == N_OVER)
            return end_number(j, at);
        if (next == N_BAD)
            return fail(j, at);
        j->substate = next;
    }
    return at;
}

static size_t in_literal(struct lp_json *j, char c, size_t at)
{
    static const char *const words[] = {
        [LP_JSON_TRUE] = "true", [LP_JSON_FALSE] = "false", [LP_JSON_NULL] = "null"};
    const char *word = words[j->literal];
    if (c != word[j->substate])
        return fail(j, at);
    if (word[++j->substate] == '\0') {
        emit(j, (enum lp_json_token_kind)j->literal, j->offset + at + 1);
        return go(j, AFTER_VALUE, at + 1);
    }
    return at + 1;
}

/* --- driver ----------------------------------------------------------------------------------- */

/* One step from in.ptr[at] on; the index of the next byte. */
static size_t step(struct lp_json *j, struct lp_span in, size_t at)
{
    switch ((enum state)j->state) {
    case AT_START:
    case IN_BOM:
        return in_bom(j, in.ptr[at], at);
    case IN_STRING:
        return in_string(j, in, at);
    case IN_ESCAPE:
        return in_escape(j, in.ptr[at], at);
    case IN_HEX:
        return in_hex(j, in.ptr[at], at);
    case IN_UTF8:
        return in_utf8(j, in, at);
    case IN_NUMBER:
        return in_number(j, in, at);
    case IN_LITERAL:
        return in_literal(j, in.ptr[at], at);
    default:
        return between(j, in, at);
    }
}

int lp_json_feed(struct lp_json *j, struct lp_span in)
{
    size_t at = 0;
    while (at < in.len && j->verdict == 0)
        at = step(j, in, at);
    j->offset += in.len;
    return j->verdict;
}

int lp_json_finish(struct lp_json *j)
{
    if (j->verdict)
        return j->verdict;
    if (j->state == IN_NUMBER && number_next[j->substate][C_OTHER] == N_OVER)
        end_number(j, 0);
    if (j->verdict == 0 && (j->state != AFTER_VALUE || j->depth))
        j->verdict = LP_ESYNTAX;
    return j->verdict;
}

/* --- what a string token means ---------------------------------------------------------------- */

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
