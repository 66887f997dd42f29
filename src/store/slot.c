/* Which slot a key belongs to (store/store.h): CRC16 of the key or of its hash tag, modulo 16384
 * (Redis cluster specification, "Key distribution model" and "Hash tags"). */
#include "store/store.h"

/* CCITT polynomial 0x1021, from 0, most significant bit first, one half byte at a time. */
static uint16_t crc16(struct lp_span bytes)
{
    static const uint16_t STEP[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6,
        0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    uint16_t crc = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.ptr[i];
        crc = (uint16_t)(crc << 4) ^ STEP[(crc >> 12) ^ (byte >> 4)];
        crc = (uint16_t)(crc << 4) ^ STEP[(crc >> 12) ^ (byte & 15)];
    }
    return crc;
}

/* What is between the first '{' and the first '}' behind it, unless that is nothing. */
static struct lp_span hashed_part(struct lp_span key)
{
    size_t open = lp_span_find(key, '{');
    if (open == key.len)
        return key;
    struct lp_span rest = lp_span_from(key, open + 1);
    size_t close = lp_span_find(rest, '}');
    return close == rest.len || close == 0 ? key : lp_span(rest.ptr, close);
}

uint16_t lp_store_slot(struct lp_span key)
{
    return crc16(hashed_part(key)) % LP_STORE_SLOTS;
}
