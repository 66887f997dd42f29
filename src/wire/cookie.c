/* Cookie lines and cookie dates (RFC 6265 5.1.1 and 5.2), the lenient reading that user agents
 * have.
 *
 * A line says what it says: whether a cookie is kept, is for this origin or has run out is for the
 * jar. What cannot be read of an attribute is as if it were not there; only a line without a name
 * is no cookie at all. */
#include "wire/cookie.h"

#include "wire/field.h"

/* --- dates ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* %x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E */
static bool is_delimiter(char c)
{
    unsigned char u = (unsigned char)c;
    return u == 0x09 || (u >= 0x20 && u <= 0x2F) || (u >= 0x3B && u <= 0x40) ||
        (u >= 0x5B && u <= 0x60) || (u >= 0x7B && u <= 0x7E);
}

struct date {
    bool has_time, has_day, has_month, has_year;
    int hour, minute, second;
    int day;
    int month; /* 1 to 12 */
    int year;
};

/* `min` to `max` digits at the front of *token, and no digit after them; they are cut off. */
static bool read_digits(struct lp_span *token, size_t min, size_t max, int *ret_value)
{
    int value = 0;
    size_t n = 0;
    for (; n < token->len && is_digit(token->ptr[n]); n++) {
        if (n == max)
            return false;
        value = value * 10 + (token->ptr[n] - '0');
    }
    if (n < min)
        return false;
    *token = lp_span_from(*token, n);
    *ret_value = value;
    return true;
}

static bool read_colon(struct lp_span *token)
{
    if (!token->len || token->ptr[0] != ':')
        return false;
    *token = lp_span_from(*token, 1);
    return true;
}

static bool read_time(struct lp_span token, struct date *date)
{
    int hour, minute, second;
    if (!read_digits(&token, 1, 2, &hour) || !read_colon(&token) ||
        !read_digits(&token, 1, 2, &minute) || !read_colon(&token) ||
        !read_digits(&token, 1, 2, &second))
        return false;
    date->hour = hour;
    date->minute = minute;
    date->second = second;
    return true;
}

static bool read_month(struct lp_span token, int *ret_month)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (token.len < 3)
        return false;
    for (int i = 0; i < 12; i++)
        if (lp_span_ieq(lp_span(token.ptr, 3), lp_span(names + 3 * i, 3))) {
            *ret_month = i + 1;
            return true;
        }
    return false;
}

/* The first thing that a token can be and that was not seen yet. */
static void read_token(struct lp_span token, struct date *date)
{
    struct lp_span rest = token;
    if (!date->has_time && read_time(token, date))
        date->has_time = true;
    else if (!date->has_day && read_digits(&rest, 1, 2, &date->day))
        date->has_day = true;
    else if (!date->has_month && read_month(token, &date->month))
        date->has_month = true;
    else if (!date->has_year && read_digits(&rest, 2, 4, &date->year))
        date->has_year = true;
}

static int days_of_month(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

static bool is_date(const struct date *date)
{
    return date->has_time && date->has_day && date->has_month && date->has_year &&
        date->year >= 1601 && date->day >= 1 &&
        date->day <= days_of_month(date->year, date->month) && date->hour <= 23 &&
        date->minute <= 59 && date->second <= 59;
}

/* Days since 1970 in the Gregorian calendar; years begin in March here, so that the odd day is
 * their last. */
static int64_t count_days(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

int lp_cookie_parse_date(struct lp_span text, int64_t *ret_s)
{
    struct date date = {0};
    size_t at = 0;
    while (at < text.len) {
        size_t begin = at;
        while (at < text.len && !is_delimiter(text.ptr[at]))
            at++;
        if (at > begin)
            read_token(lp_span(text.ptr + begin, at - begin), &date);
        else
            at++;
    }
    if (date.has_year && date.year <= 99)
        date.year += date.year >= 70 ? 1900 : 2000;
    if (!is_date(&date))
        return LP_ESYNTAX;
    *ret_s = count_days(date.year, date.month, date.day) * 86400 + date.hour * 3600 +
        date.minute * 60 + date.second;
    return LP_OK;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* RFC 6265 5.2.2: digits, perhaps after a minus. */
static bool read_max_age(struct lp_span text, uint64_t *ret_s)
{
    bool is_negative = text.len && text.ptr[0] == '-';
    struct lp_span digits = lp_span_from(text, is_negative);
    if (!digits.len)
        return false;
    for (size_t i = 0; i < digits.len; i++)
        if (!is_digit(digits.ptr[i]))
            return false;
    if (is_negative)
        *ret_s = 0;
    else if (!lp_span_to_u64(digits, ret_s))
        *ret_s = UINT64_MAX;
    return true;
}

static void read_attribute(struct lp_span piece, struct lp_set_cookie *c)
{
    struct lp_span value;
    struct lp_span name = lp_span_trim(lp_span_split(piece, '=', &value));
    value = lp_span_trim(value);
    if (lp_span_ieq(name, LP_SPAN("max-age")))
        c->has_max_age |= read_max_age(value, &c->max_age_s);
    else if (lp_span_ieq(name, LP_SPAN("expires")))
        c->has_expires |= lp_cookie_parse_date(value, &c->expires_s) == LP_OK;
    else if (lp_span_ieq(name, LP_SPAN("secure")))
        c->is_secure = true;
    else if (lp_span_ieq(name, LP_SPAN("domain")))
        c->has_domain = true;
    else if (lp_span_ieq(name, LP_SPAN("path")))
        c->path_is_root = lp_span_eq(value, LP_SPAN("/"));
}

int lp_cookie_parse_set(struct lp_span line, struct lp_set_cookie *ret)
{
    struct lp_set_cookie c = {0};
    struct lp_span attributes;
    struct lp_span pair = lp_span_split(line, ';', &attributes);
    c.name = lp_span_trim(lp_span_split(pair, '=', &c.value));
    if (!lp_field_is_value(line) || !c.value.ptr || !c.name.len)
        return LP_ESYNTAX;
    c.value = lp_span_trim(c.value);
    while (attributes.len)
        read_attribute(lp_span_split(attributes, ';', &attributes), &c);
    *ret = c;
    return LP_OK;
}

bool lp_cookie_next(struct lp_span *rest, struct lp_span *ret_name, struct lp_span *ret_pair)
{
    while (rest->len) {
        struct lp_span value;
        struct lp_span pair = lp_span_trim(lp_span_split(*rest, ';', rest));
        struct lp_span name = lp_span_split(pair, '=', &value);
        if (!pair.len)
            continue;
        *ret_name = value.ptr ? lp_span_trim(name) : lp_span(pair.ptr, 0);
        *ret_pair = pair;
        return true;
    }
    return false;
}
