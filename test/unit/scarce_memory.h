/* Memory that runs out: malloc, calloc and realloc of the test as a whole, once allocations are
 * counted. The test links with scarce_dep, the linker's --wrap for the three. */
#ifndef TEST_SCARCE_MEMORY_H
#define TEST_SCARCE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

static long calls_left = -1; /* allocations that still succeed; -1: all */
static long failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

static bool may_succeed(void)
{
    if (calls_left < 0 || calls_left-- > 0)
        return true;
    failed++;
    return false;
}

void *__wrap_malloc(size_t n)
{
    return may_succeed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_succeed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return may_succeed() ? __real_realloc(ptr, n) : NULL;
}

#endif
