/* Memory by the owner's function or the C library's (base/alloc.h). That realloc may do anything
 * with a size of 0 is why giving back is a case of its own. */
#include "base/alloc.h"

#include <stdlib.h>

void *lp_resize(const struct lp_alloc *alloc, void *ptr, size_t old_bytes, size_t bytes)
{
    if (alloc && alloc->resize)
        return alloc->resize(alloc->context, ptr, old_bytes, bytes);
    if (bytes)
        return realloc(ptr, bytes);
    free(ptr);
    return NULL;
}
