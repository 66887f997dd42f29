/* The one way out of a broken invariant: say what and where, then abort.
 *
 * It writes with stdio on purpose: nothing else of the program can be trusted at this point. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void lp_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "limpet: broken invariant `%s` at %s:%d\n", expr, file, line);
    abort();
}
