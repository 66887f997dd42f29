/* Inside wire/json: the characters of a JSON text, for the reader (json.c) and for the meaning of
 * strings (json_text.c). Inside strings eight plain bytes are passed over at a time, since that is
 * where the bytes are. */
#ifndef LP_WIRE_JSON_PRIV_H
#define LP_WIRE_JSON_PRIV_H

#include <endian.h>

#include "wire/json.h"

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* -1 for what is no hexadecimal digit. */
static inline int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that a one letter escape stands for; 0 for a letter that is none. */
static inline char escape_meaning(char letter)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    size_t i = lp_span_find(lp_span(letters, sizeof letters - 1), letter);
    return meanings[i];
}

/* --- plain bytes ------------------------------------------------------------------------------ */

/* What a string may hold as it is, ASCII only. */
static inline bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

static inline uint64_t load_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Marks the zero bytes among eight with 0x80, for bytes below 0x80. */
static inline uint64_t mark_zero(uint64_t word)
{
    return EACH_BYTE(0x80) - word;
}

/* Marks with 0x80 the bytes that are not plain. No sum reaches into the next byte, as all of them
 * are made of seven bits. */
static inline uint64_t mark_special(uint64_t word)
{
    uint64_t low = word & EACH_BYTE(0x7F);
    uint64_t is_control = ~(low + EACH_BYTE(0x60));
    uint64_t is_quote = mark_zero(low ^ EACH_BYTE('"'));
    uint64_t is_backslash = mark_zero(low ^ EACH_BYTE('\\'));
    return (word | is_control | is_quote | is_backslash) & EACH_BYTE(0x80);
}

/* The index of the first byte from `at` on that is not plain. */
static inline size_t skip_plain(struct lp_span in, size_t at)
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

/* --- UTF-8 ------------------------------------------------------------------------------------ */

/* The first byte of a sequence of two and more; false when there is no such sequence. The bounds
 * keep out overlong forms, surrogates and what is over U+10FFFF (RFC 3629 section 4). */
static inline bool utf8_begin(struct lp_json_utf8 *u, char first)
{
    unsigned char c = (unsigned char)first;
    if (c < 0xC2 || c > 0xF4)
        return false;
    u->left = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    u->min = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    u->max = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    return true;
}

/* The next byte of a sequence that has bytes left; false when it cannot be one. */
static inline bool utf8_continue(struct lp_json_utf8 *u, char next)
{
    unsigned char c = (unsigned char)next;
    if (c < u->min || c > u->max)
        return false;
    u->left--;
    u->min = 0x80;
    u->max = 0xBF;
    return true;
}

#endif
