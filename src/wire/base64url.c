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

/* Per character 64 + the six bits that it stands for, so that 0 is left for "none". */
enum { VALID = 64 };
#define EIGHT(v) 64 + v, 65 + v, 66 + v, 67 + v, 68 + v, 69 + v, 70 + v, 71 + v
#define COMMON_SEXTETS                                                                             \
    ['A'] = EIGHT(0), EIGHT(8), EIGHT(16), 88, 89, ['a'] = EIGHT(26), EIGHT(34), EIGHT(42), 114,   \
    115, ['0'] = EIGHT(52), 124, 125
static const unsigned char url_sextets[256] = {COMMON_SEXTETS, ['-'] = 126, ['_'] = 127};
static const unsigned char std_sextets[256] = {COMMON_SEXTETS, ['+'] = 126, ['/'] = 127};

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

/* Four characters are three bytes; false when one of them stands for nothing. */
static bool decode_four(const char *text, const unsigned char *sextets, char *room)
{
    unsigned a = sextets[(unsigned char)text[0]];
    unsigned b = sextets[(unsigned char)text[1]];
    unsigned c = sextets[(unsigned char)text[2]];
    unsigned d = sextets[(unsigned char)text[3]];
    unsigned bits = (a << 18) + (b << 12) + (c << 6) + d - VALID * (1 << 18 | 1 << 12 | 1 << 6 | 1);
    room[0] = (char)(unsigned char)(bits >> 16);
    room[1] = (char)(unsigned char)(bits >> 8);
    room[2] = (char)(unsigned char)bits;
    return a & b & c & d & VALID;
}

/* The last two or three characters, whose spare bits must be zero. */
static bool decode_tail(struct lp_span tail, const unsigned char *sextets, char *room)
{
    char filled[4] = {'A', 'A', 'A', 'A'}; /* zero bits */
    char bytes[3];
    memcpy(filled, tail.ptr, tail.len);
    if (!decode_four(filled, sextets, bytes))
        return false;
    memcpy(room, bytes, tail.len - 1);
    return !bytes[2] && (tail.len == 3 || !bytes[1]);
}

static int decode(
    struct lp_span text, const unsigned char *sextets, char *room, size_t room_len, size_t *ret_len)
{
    size_t tail = text.len % 4;
    if (tail == 1)
        return LP_ESYNTAX;
    size_t need = text.len / 4 * 3 + (tail ? tail - 1 : 0);
    if (need > room_len)
        return LP_ETOO_LONG;
    const char *at = text.ptr;
    for (size_t left = text.len / 4; left; left--, at += 4, room += 3)
        if (!decode_four(at, sextets, room))
            return LP_ESYNTAX;
    if (tail && !decode_tail(lp_span(at, tail), sextets, room))
        return LP_ESYNTAX;
    *ret_len = need;
    return LP_OK;
}

size_t lp_base64url_encode(struct lp_span bytes, char *room)
{
    return encode(bytes, url_alphabet, room);
}

int lp_base64url_decode(struct lp_span text, char *room, size_t room_len, size_t *ret_len)
{
    return decode(text, url_sextets, room, room_len, ret_len);
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
    return decode(text, std_sextets, room, room_len, ret_len);
}
