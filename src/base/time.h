/* Wall time as a text. */
#ifndef LP_BASE_TIME_H
#define LP_BASE_TIME_H

#include "base/buf.h"

/* RFC 3339 UTC with milliseconds, 24 characters. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_time_write(struct lp_buf *out, uint64_t wall_ms);

#endif
