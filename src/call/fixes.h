/* What mends a situation, in words that can be pasted: one fix for the hop that was seen, and the
 * same for the others. */
#ifndef LP_CALL_FIXES_H
#define LP_CALL_FIXES_H

#include "call/verdict.h"

/* What stands in front of the server. */
enum lp_front {
    LP_FRONT_GATEWAY, /* Limpet itself, also where nothing is known */
    LP_FRONT_HAPROXY,
    LP_FRONT_NGINX,
    LP_FRONT_CADDY,
    LP_FRONT_CDN,
    LP_FRONT_INGRESS,
    LP_FRONT_PLATFORM, /* whose balancer nobody can configure */
    LP_FRONT_CODE,     /* the server's own code */
    LP_FRONT_COUNT,
};

struct lp_fix {
    const char *words; /* one sentence; NULL: there is no such fix */
    const char *lines; /* to be pasted, ending with '\n'; URL is that of the probe. NULL: none */
};

/* "HAProxy" and so on. */
const char *lp_front_name(enum lp_front front);
/* What `Via` and `Server` name; GATEWAY when they name nobody. */
enum lp_front lp_front_of(const struct lp_seen *seen);
/* The fix for a remedy at a front. */
struct lp_fix lp_fix_of(enum lp_remedy remedy, enum lp_front front);
/* Whether it is work on that front: false for advice that has nothing to do with any. */
bool lp_fix_has_front(enum lp_remedy remedy, enum lp_front front);
/* Appends its lines with `url` in its place. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_fix_lines(struct lp_fix fix, struct lp_span url, struct lp_buf *out);
/* The front whose fix is told first: the one that was seen when it can mend it, else the gateway,
 * else the code. */
enum lp_front lp_fix_front(const struct lp_verdict *verdict, const struct lp_seen *seen);

#endif
