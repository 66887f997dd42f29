/* Memory of your own: an object with a limit, whose every byte is counted (limpet(3)). */
#include <limpet.h>
#include <stdio.h>
#include <stdlib.h>

struct budget {
    size_t left;
};

static void *resize(void *context, void *ptr, size_t old_bytes, size_t bytes)
{
    struct budget *budget = (struct budget *)context;
    if (bytes > old_bytes && bytes - old_bytes > budget->left)
        return NULL;
    void *moved = NULL;
    if (bytes)
        moved = realloc(ptr, bytes);
    else
        free(ptr);
    if (moved || !bytes)
        budget->left += old_bytes - bytes;
    return moved;
}

int main(void)
{
    struct budget budget;
    struct limpet_alloc alloc;
    struct limpet_sse *sse = NULL;
    struct limpet_sse_event event;
    bool is_ready = false;
    char big[2000];
    budget.left = 1500;
    alloc.resize = resize;
    alloc.context = &budget;
    if (limpet_sse_new(&alloc, 1024 * 1024, &sse))
        return 1;
    memset(big, 'x', sizeof big);
    ptrdiff_t taken = limpet_sse_feed(sse, limpet_bytes(big, sizeof big), &event, &is_ready);
    printf("%s\n", taken < 0 ? limpet_error_sentence((int)taken) : "enough memory");
    limpet_sse_free(sse);
    printf("%u bytes are left\n", (unsigned)budget.left);
    return 0;
}
