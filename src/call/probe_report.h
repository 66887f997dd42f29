/* What a probe tells: a page of 80 columns for people, one JSON object for programs. */
#ifndef LP_CALL_PROBE_REPORT_H
#define LP_CALL_PROBE_REPORT_H

#include "call/fixes.h"

struct lp_report {
    struct lp_span url; /* without secrets: the caller has taken query values out */
    const struct lp_seen *seen;
    const struct lp_verdict *verdict;
};

/* One row of the table of answers: what was asked, what is right, what came. */
struct lp_report_row {
    const char *name;     /* "unknown-id" */
    const char *question; /* "POST with an unknown id" */
    const char *expected; /* "404" */
    const struct lp_seen_answer *answer;
    bool is_right; /* only when it was asked */
};
enum { LP_REPORT_ROWS = 5 };

/* Fills the table. */
void lp_report_rows(const struct lp_seen *seen, struct lp_report_row room[LP_REPORT_ROWS]);
/* The cookie that holds sessions; NULL when none is known to. */
const char *lp_report_cookie(const struct lp_seen *seen);

/* The name below /.well-known/ of lp_seen.addresses[number]. */
const char *lp_report_address(uint32_t number);

/* The page. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_report_text(const struct lp_report *report, struct lp_buf *out);
/* The object and a line end. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_report_json(const struct lp_report *report, struct lp_buf *out);

#endif
