/* Laws of cookie jars over generated histories (test/prop/cookie_laws.h), and of cookie dates: any
 * moment written in any of the ways that servers write it is read as that moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cookie_laws.h"
#include "cuts.h"

enum { ROUNDS = 6000, TEXT_MAX = 4096 };

static const char *const pieces[] = {"LB", "a", "b", "__Host-x", "__Secure-y", "=", "=", "=1", "=2",
    ";", "; ", "\n", "\n", "\n", "\n@1\n", "\n@60\n", "\n+LB=own; k=v\n", "\n+a; b=2;;\n", ",",
    "\"", " ", "\t", "Max-Age=0", "Max-Age=1", "; Max-Age=59", "; Max-Age=-1", "; Secure",
    "; Path=/", "; Domain=x", "; Expires=01 Jan 2037 00:00:00", "; Expires=01-Jan-99 00:00:00",
    "; Expires=Fri, 15 Jan 2027 08:01:00 GMT", "\x80", "\x01", "novalue"};

static struct lp_span make_history(uint64_t *seed, char *room)
{
    size_t len = 0;
    for (size_t count = draw(seed, 120); count > 0; count--) {
        struct lp_span piece = lp_span_str(pieces[draw(seed, sizeof pieces / sizeof *pieces)]);
        LP_ASSERT(len + piece.len < TEXT_MAX);
        memcpy(room + len, piece.ptr, piece.len);
        len += piece.len;
        if (draw(seed, 8) == 0) /* many names, so that jars overflow */
            len += (size_t)snprintf(room + len, 16, "\nn%zu=1\n", draw(seed, 100));
    }
    return lp_span(room, len);
}

static void test_histories(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char room[TEXT_MAX + 32];
        uint64_t seed = round * 7919;
        struct lp_span text = make_history(&seed, room);
        struct cuts whole = {CUT_NONE, 0, 0};
        text = cut_piece(&whole, text);
        check_jar_laws(text, round % 2, round % 3 ? LP_JAR_BYTES_MAX : 150);
        free((void *)text.ptr);
    }
}

static const char *const months[] = {
    "Jan", "feb", "MARCH", "Apr", "May", "June", "Jul", "Aug", "Sept", "Oct", "Nov", "December"};

/* Days counted one by one: the reader's arithmetic is another one. */
static void test_every_day(void **state)
{
    (void)state;
    static const int days_of[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = -134774; /* 1601-01-01 */
    for (int year = 1601; year <= 2500; year++)
        for (int month = 0; month < 12; month++) {
            bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            int last = days_of[month] + (month == 1 && is_leap);
            for (int day = 1; day <= last; day++, days++) {
                char text[64];
                int64_t s = 0;
                snprintf(
                    text, sizeof text, "%02d %s %d 23:59:5%d", day, months[month], year, day % 10);
                assert_int_equal(lp_cookie_parse_date(lp_span_str(text), &s), LP_OK);
                assert_true(s == days * 86400 + 86390 + day % 10);
            }
            char text[64];
            int64_t s = 0;
            snprintf(text, sizeof text, "%d %s %d 0:0:0", last + 1, months[month], year);
            assert_int_equal(lp_cookie_parse_date(lp_span_str(text), &s), LP_ESYNTAX);
        }
}

/* The four parts in any order, with any delimiters between them. */
static void test_any_order(void **state)
{
    (void)state;
    static const char delimiters[] = "\t !\"#$%&'()*+,-./;<=>?@[\\]^_`{|}~";
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t seed = round * 104729;
        const char *parts[] = {"08:49:37", "06", "Nov", "1994"};
        char text[64];
        size_t len = 0;
        bool has_day = false;
        for (size_t left = 4; left > 0; left--) {
            size_t i = draw(&seed, left);
            /* Of two plain numbers the first is the day. */
            if (!has_day && strcmp(parts[i], "1994") == 0) {
                left++;
                continue;
            }
            has_day |= strcmp(parts[i], "06") == 0;
            len += (size_t)snprintf(text + len, sizeof text - len, "%c%s%c",
                delimiters[draw(&seed, sizeof delimiters - 1)], parts[i],
                delimiters[draw(&seed, sizeof delimiters - 1)]);
            parts[i] = parts[left - 1];
        }
        int64_t s = 0;
        if (lp_cookie_parse_date(lp_span(text, len), &s) || s != 784111777)
            fail_msg("\"%s\": %lld", text, (long long)s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
