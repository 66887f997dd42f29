/* A strict, incremental JSON reader (RFC 8259) that keeps nothing.
 *
 * It decides whether the bytes are JSON and where its tokens lie; what they mean, duplicate names
 * too, is left to the caller, and what a string says to json_text.c. Each state has one small
 * handler that takes at least one byte or changes the state; the driver knows no grammar. A verdict
 * is final: the reader that has failed or was stopped says the same to whatever comes later. */
#include "wire/json_priv.h"

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

/* --- blanks ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
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

static size_t in_escape(struct lp_json *j, char c, size_t at)
{
    j->substate = 0;
    if (c == 'u')
        return go(j, IN_HEX, at + 1);
    return escape_meaning(c) ? go(j, IN_STRING, at + 1) : fail(j, at);
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

bool lp_json_is_whole(struct lp_span text)
{
    struct lp_json json;
    lp_json_init(&json, NULL, NULL);
    return !lp_json_feed(&json, text) && !lp_json_finish(&json);
}

bool lp_json_is_object(struct lp_span text)
{
    size_t first = 0;
    while (first < text.len && lp_span_find(LP_SPAN(" \t\r\n"), text.ptr[first]) < 4)
        first++;
    return first < text.len && text.ptr[first] == '{' && lp_json_is_whole(text);
}
