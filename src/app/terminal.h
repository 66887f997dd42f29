/* Text of a server on the screen of a person. */
#ifndef LP_APP_TERMINAL_H
#define LP_APP_TERMINAL_H

#include <stdio.h>

#include "base/span.h"

/* Writes text that somebody else has made. What a terminal would obey (C0 and C1 controls but line
 * end and tab, marks that turn the direction of writing) and what is no UTF-8 become question
 * marks, one for each byte. */
void lp_terminal_put(FILE *to, struct lp_span text);

#endif
