/* Cookie lines and dates (wire/cookie.h): what browsers read is read, in RFC 6265's own order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/cookie.h"

static const int64_t NONE = INT64_MIN;

struct date_row {
    const char *text;
    int64_t s; /* NONE: unreadable */
};

static const struct date_row dates[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Thu, 31-Dec-2037 23:55:55 GMT", 2145916555},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    {"Mon, 01 Jan 1601 00:00:00 GMT", -11644473600},
    /* any order, any delimiters, no weekday, no zone */
    {"1994 08:49:37 nov 6", 784111777},
    {"6;nov;1994;8:49:37", 784111777},
    {"!!6~NOVEMBER/94(08:49:37)", 784111777},
    {"\t06 Nov 1994\t08:49:37", 784111777},
    /* the zone is not looked at, nor what follows digits */
    {"Sun, 06 Nov 1994 08:49:37 +0500", 784111777},
    {"06th Nov 1994AD 08:49:37.123", 784111777},
    /* the first of a kind counts; a third number is a year only with two to four digits */
    {"06 07 Nov 1994 08:49:37 09:00:00", 1194338977},
    {"06 Nov Dec 1994 08:49:37", 784111777},
    /* two-digit years */
    {"01 Jan 69 00:00:00", 3124224000},
    {"01 Jan 70 00:00:00", 0},
    {"01 Jan 00 00:00:00", 946684800},
    {"01 Jan 99 00:00:00", 915148800},
    /* leap days */
    {"29 Feb 2000 00:00:00", 951782400},
    {"29 Feb 2024 00:00:00", 1709164800},
    {"29 Feb 1900 00:00:00", NONE},
    {"29 Feb 2023 00:00:00", NONE},
    {"30 Feb 2024 00:00:00", NONE},
    {"31 Apr 2024 00:00:00", NONE},
    {"00 Jan 2024 00:00:00", NONE},
    {"32 Jan 2024 00:00:00", NONE},
    {"31 Dec 1600 23:59:59", NONE},
    {"01 Jan 100 00:00:00", NONE},
    {"01 Jan 2024 23:59:59", 1704153599},
    {"01 Jan 2024 24:00:00", NONE},
    {"01 Jan 2024 00:60:00", NONE},
    {"01 Jan 2024 00:00:60", NONE},
    {"01 Jan 2024 000:00:00", NONE},
    {"01 Jan 2024 00:00", NONE},
    {"01 Jan 2024 00-00-00", NONE},
    {"01 Jan 2024 0:", NONE},
    {"01 Jan 2024", NONE},
    {"01 Jan 00:00:00", NONE},
    {"01 Ja 2024 00:00:00", NONE},
    {"Jan 2024 00:00:00", NONE},
    {"01 Jan 20245 00:00:00", NONE},
    {"0", NONE},
    {"", NONE},
    {"Session", NONE},
    {"\x80\x81\xFF", NONE},
};

static void test_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        int64_t s = NONE;
        int err = lp_cookie_parse_date(lp_span_str(dates[i].text), &s);
        if (s != dates[i].s || err != (dates[i].s == NONE ? LP_ESYNTAX : LP_OK))
            fail_msg("\"%s\": %d, %lld", dates[i].text, err, (long long)s);
    }
}

/* A line in the form "name|value|max-age|expires|flags"; "-" for what is not there. */
static void tell(const struct lp_set_cookie *c, char room[256])
{
    char age[32] = "-", expires[32] = "-";
    if (c->has_max_age)
        snprintf(age, sizeof age, "%llu", (unsigned long long)c->max_age_s);
    if (c->has_expires)
        snprintf(expires, sizeof expires, "%lld", (long long)c->expires_s);
    snprintf(room, 256, "%.*s|%.*s|%s|%s|%s%s%s", (int)c->name.len, c->name.ptr, (int)c->value.len,
        c->value.ptr, age, expires, c->is_secure ? "S" : "", c->has_domain ? "D" : "",
        c->path_is_root ? "/" : "");
}

struct line_row {
    const char *line;
    const char *told; /* NULL: no cookie */
};

static const struct line_row lines[] = {
    {"LB=a; Path=/; HttpOnly", "LB|a|-|-|/"},
    {"LB=a", "LB|a|-|-|"},
    {"  LB \t= \ta b ; x", "LB|a b|-|-|"},
    {"LB=", "LB||-|-|"},
    {"LB=a=b=c", "LB|a=b=c|-|-|"},
    {"LB=\"a,b\"", "LB|\"a,b\"|-|-|"},
    {"LB=a,b=c; Max-Age=1,2", "LB|a,b=c|-|-|"},
    {"LB=\"a;b\"", "LB|\"a|-|-|"},
    {"L,B=\xC3\xA9", "L,B|\xC3\xA9|-|-|"},
    {"LB=a\tb", "LB|a\tb|-|-|"},
    {"LB=a;;;Secure;;", "LB|a|-|-|S"},
    {"LB=a; SECURE=no; DOMAIN; PATH = / ", "LB|a|-|-|SD/"},
    {"LB=a; Domain=", "LB|a|-|-|D"},
    {"LB=a; Path=/x; Path=/", "LB|a|-|-|/"},
    {"LB=a; Path=/; Path=/x", "LB|a|-|-|"},
    {"LB=a; Path=\"/\"", "LB|a|-|-|"},
    {"LB=a; Max-Age=60", "LB|a|60|-|"},
    {"LB=a; max-age=0", "LB|a|0|-|"},
    {"LB=a; Max-Age=-5", "LB|a|0|-|"},
    {"LB=a; Max-Age=00007", "LB|a|7|-|"},
    {"LB=a; Max-Age=99999999999999999999999", "LB|a|18446744073709551615|-|"},
    {"LB=a; Max-Age=-99999999999999999999999", "LB|a|0|-|"},
    {"LB=a; Max-Age=soon", "LB|a|-|-|"},
    {"LB=a; Max-Age=", "LB|a|-|-|"},
    {"LB=a; Max-Age=-", "LB|a|-|-|"},
    {"LB=a; Max-Age=+5", "LB|a|-|-|"},
    {"LB=a; Max-Age=5s", "LB|a|-|-|"},
    {"LB=a; Max-Age=\"5\"", "LB|a|-|-|"},
    {"LB=a; Max-Age=5; Max-Age=6", "LB|a|6|-|"},
    {"LB=a; Max-Age=5; Max-Age=x", "LB|a|5|-|"},
    {"LB=a; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "LB|a|-|784111777|"},
    {"LB=a; Expires=never", "LB|a|-|-|"},
    {"LB=a; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Expires=never", "LB|a|-|784111777|"},
    {"LB=a; Expires=01 Jan 1970 00:00:01; Max-Age=9", "LB|a|9|1|"},
    {"LB=a; SameSite=None; Partitioned; Priority=High", "LB|a|-|-|"},
    {"=x", NULL},
    {" =x", NULL},
    {"novalue", NULL},
    {"novalue; Path=/x=y", NULL},
    {";", NULL},
    {"; LB=a", NULL},
    {"", NULL},
    {"LB=a\rb", NULL},
    {"LB=a; Path=/\x01", NULL},
    {"L\x7F=a", NULL},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct lp_set_cookie c = {.name = LP_SPAN("untouched")};
        char told[256];
        int err = lp_cookie_parse_set(lp_span_str(lines[i].line), &c);
        if (err != (lines[i].told ? LP_OK : LP_ESYNTAX))
            fail_msg("\"%s\": %d", lines[i].line, err);
        if (err) {
            assert_true(lp_span_eq(c.name, LP_SPAN("untouched")));
            continue;
        }
        tell(&c, told);
        assert_string_equal(told, lines[i].told);
    }
    struct lp_set_cookie c;
    assert_int_equal(lp_cookie_parse_set(lp_span("LB=a\0b", 6), &c), LP_ESYNTAX);
}

/* The pairs of a Cookie field as "name:pair" joined by "|". */
static void check_pairs(const char *field, const char *expected)
{
    char told[256] = "";
    struct lp_span rest = lp_span_str(field), name, pair;
    while (lp_cookie_next(&rest, &name, &pair)) {
        size_t used = strlen(told);
        snprintf(told + used, sizeof told - used, "%s%.*s:%.*s", used ? "|" : "", (int)name.len,
            name.ptr, (int)pair.len, pair.ptr);
    }
    assert_string_equal(told, expected);
}

static void test_cookie_field(void **state)
{
    (void)state;
    check_pairs("", "");
    check_pairs(" ;; \t;", "");
    check_pairs("a=1", "a:a=1");
    check_pairs("a=1; b=2;c=\"x, y\" ;", "a:a=1|b:b=2|c:c=\"x, y\"");
    check_pairs("a = 1; flag; =x; a=2", "a:a = 1|:flag|:=x|a:a=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_cookie_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
