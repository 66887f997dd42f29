/* Wall time as people read it (base/time.h). Clocks are the shell's; this only writes. */
#include "base/time.h"

#include "base/error.h"

struct date {
    uint64_t year;
    unsigned month, day;
};

/* Days since 1970-01-01 -> date, by eras of 400 years that begin on 1 March: then the leap day is
 * the last of its year. */
static struct date date_of(uint64_t days)
{
    enum { DAYS_TO_1970 = 719468, DAYS_PER_ERA = 146097 };
    uint64_t z = days + DAYS_TO_1970;
    uint64_t era = z / DAYS_PER_ERA;
    uint64_t day_of_era = z % DAYS_PER_ERA;
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march_month = (5 * day_of_year + 2) / 153;
    unsigned month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9);
    return (struct date){
        .year = era * 400 + year_of_era + (month <= 2),
        .month = month,
        .day = (unsigned)(day_of_year - (153 * march_month + 2) / 5 + 1),
    };
}

int lp_time_write(struct lp_buf *out, uint64_t wall_ms)
{
    /* The last millisecond that RFC 3339 can write. */
    const uint64_t last_ms = 253402300799999;
    enum { TIME_LEN = 24 };
    uint64_t ms = wall_ms < last_ms ? wall_ms : last_ms;
    struct date date = date_of(ms / 86400000);
    if (lp_buf_room(out) < TIME_LEN)
        return LP_ELIMIT;
    unsigned of_day = (unsigned)(ms % 86400000);
    return lp_buf_printf(out, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)date.year,
        date.month, date.day, of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60,
        of_day % 1000);
}
