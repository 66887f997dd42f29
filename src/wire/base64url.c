/* Base64 in its two alphabets (RFC 4648 sections 4 and 5).
 *
 * Decoding is canonical: a text is accepted only when encoding its bytes would give it back, so a
 * sealed thing has one spelling and cannot be altered without being noticed. White space, missing
 * or extra padding and spare bits are errors, never repaired (RFC 4648 sections 3.2, 3.3, 3.5). */
#include "wire/base64url.h"

/* The last two characters are where the alphabets differ. */
#define COMMON "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
static const char url_alphabet[] = COMMON "-_";
static const char std_alphabet[] = COMMON "+/";

/* The six bits that a character stands for, or -1. */
static int sextet(char c, const char *alphabet)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == alphabet[62])
        return 62;
    return c == alphabet[63] ? 63 : -1;
}

static size_t encode(struct lp_span bytes, const char *alphabet, char *room)
{
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t n = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | (unsigned char)bytes.ptr[i];
        for (bit_count += 8; bit_count >= 6; bit_count -= 6)
            room[n++] = alphabet[bits >> (bit_count - 6) & 63];
    }
    if (bit_count)
        room[n++] = alphabet[bits << (6 - bit_count) & 63];
    LP_ASSERT(n == lp_base64url_len(bytes.len));
    return n;
}

static int decode(
    struct lp_span text, const char *alphabet, char *room, size_t room_len, size_t *ret_len)
{
    size_t tail = text.len % 4;
    if (tail == 1)
        return LP_ESYNTAX;
    size_t need = text.len / 4 * 3 + (tail ? tail - 1 : 0);
    if (need > room_len)
        return LP_ETOO_LONG;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = sextet(text.ptr[i], alphabet);
        if (value < 0)
            return LP_ESYNTAX;
        bits = bits << 6 | (unsigned)value;
        bit_count += 6;
        if (bit_count < 8)
            continue;
        bit_count -= 8;
        room[n++] = (char)(unsigned char)(bits >> bit_count);
    }
    if (bits & ((1u << bit_count) - 1))
        return LP_ESYNTAX;
    LP_ASSERT(n == need);
    *ret_len = n;
    return LP_OK;
}

size_t lp_base64url_encode(struct lp_span bytes, char *room)
{
    return encode(bytes, url_alphabet, room);
}

int lp_base64url_decode(struct lp_span text, char *room, size_t room_len, size_t *ret_len)
{
    return decode(text, url_alphabet, room, room_len, ret_len);
}

size_t lp_base64_encode(struct lp_span bytes, char *room)
{
    size_t n = encode(bytes, std_alphabet, room);
    while (n % 4)
        room[n++] = '=';
    return n;
}

int lp_base64_decode(struct lp_span text, char *room, size_t room_len, size_t *ret_len)
{
    if (text.len % 4)
        return LP_ESYNTAX;
    /* Cutting at most two keeps "====" and "A===" errors: what is left has a length of 4n+2, 4n+3
     * or 4n, each with the only padding that fits it, or still holds a '='. */
    for (int i = 0; i < 2 && text.len && text.ptr[text.len - 1] == '='; i++)
        text.len--;
    return decode(text, std_alphabet, room, room_len, ret_len);
}
