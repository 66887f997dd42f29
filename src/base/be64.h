/* Whole numbers of 64 bits as eight bytes, the highest first: how sealed and signed notes hold
 * them. */
#ifndef LP_BASE_BE64_H
#define LP_BASE_BE64_H

#include <stdint.h>

static inline void lp_be64_put(unsigned char room[8], uint64_t value)
{
    for (int i = 0; i < 8; i++)
        room[i] = (unsigned char)(value >> (56 - 8 * i));
}

static inline uint64_t lp_be64_get(const unsigned char bytes[8])
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

#endif
