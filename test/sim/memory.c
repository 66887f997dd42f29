/* Memory that runs out, but only for the engines: the linker's --wrap leads their allocations
 * through here (requirements [P10]). What the world itself allocates is always there. */
#include <stdlib.h>

#include "sim.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

static struct sim *within; /* the world whose engine is running */

struct sim *sim_memory_of(struct sim *w)
{
    struct sim *before = within;
    within = w;
    return before;
}

static bool fails(void)
{
    if (!within || within->is_settling || !sim_one_in(within, within->plan.no_memory_in))
        return false;
    sim_count(within, SIM_FAULT_no_memory);
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return fails() ? NULL : __real_realloc(ptr, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}
