/* The cookie jar (mcp/jar.h): every clause of [C2] and [C3], cases COO-01 to COO-07. A row is a
 * short history of Set-Cookie lines and the Cookie value that the next request carries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mcp/jar.h"

static const uint64_t NOW_MS = 1800000000000; /* 2027-01-15 */

static struct lp_uri uri(const char *text)
{
    struct lp_uri u;
    assert_int_equal(lp_uri_parse(lp_span_str(text), &u), LP_OK);
    return u;
}

static void init(struct lp_jar *jar, const char *origin)
{
    struct lp_uri u = uri(origin);
    lp_jar_init(jar, &u, LP_JAR_BYTES_MAX);
}

static enum lp_jar_verdict store(struct lp_jar *jar, const char *from, const char *line)
{
    struct lp_uri u = uri(from);
    struct lp_span name;
    return lp_jar_store(jar, &u, lp_span_str(line), NOW_MS, &name);
}

/* What is sent to `to` at `wall_ms` beside the user's own Cookie value; freed by the caller. */
static char *sent(struct lp_jar *jar, const char *to, const char *configured, uint64_t wall_ms)
{
    struct lp_uri u = uri(to);
    struct lp_buf out;
    lp_buf_init(&out, 1 << 20);
    assert_int_equal(lp_jar_write(jar, &u, wall_ms, lp_span_str(configured), &out), LP_OK);
    char *text = calloc(1, out.len + 1); /* strndup would look for a zero behind the buffer */
    assert_non_null(text);
    if (out.len)
        memcpy(text, lp_buf_span(&out).ptr, out.len);
    lp_buf_release(&out);
    return text;
}

static void check_sent(
    struct lp_jar *jar, const char *to, const char *configured, const char *expected)
{
    char *text = sent(jar, to, configured, NOW_MS);
    assert_string_equal(text, expected);
    free(text);
}

enum { LINES_MAX = 6 };

struct row {
    const char *what;
    const char *lines[LINES_MAX];
    const char *configured;
    const char *expected;
};

static const struct row over_http[] = {
    {"nothing stored", {NULL}, "", ""},
    {"name=value only on the wire (COO-01)", {"LB=a; Path=/; HttpOnly"}, "", "LB=a"},
    {"several, the longest since stored first", {"b=2", "a=1"}, "", "b=2; a=1"},
    {"the same name overwrites and is newest then", {"a=1", "b=2", "a=3"}, "", "b=2; a=3"},
    {"names are compared with their case", {"lb=1", "LB=2"}, "", "lb=1; LB=2"},
    {"malformed lines are dropped", {"LB=a", "=x", "novalue", ";", "", " = "}, "", "LB=a"},
    {"an empty value is a value", {"LB="}, "", "LB="},
    {"quotes belong to the value", {"LB=\"a b\""}, "", "LB=\"a b\""},
    {"commas part nothing", {"LB=a,b=c; Expires=Fri, 31 Dec 2038 23:59:59 GMT, x=y"}, "",
        "LB=a,b=c"},
    {"Path, Domain, SameSite and HttpOnly change nothing",
        {"a=1; Path=/elsewhere", "b=2; Domain=other.test", "c=3; SameSite=Strict; HttpOnly"}, "",
        "a=1; b=2; c=3"},
    {"a parent Domain widens nothing (COO-03)", {"x=1; Domain=test"}, "", "x=1"},
    /* expiry, COO-06 */
    {"Max-Age=0 removes that name only",
        {"LB=a", "LBX=b", "LB=; Max-Age=0; Expires=01 Jan 2037 00:00:00"}, "", "LBX=b"},
    {"Max-Age wins over a past date", {"LB=c; Expires=01 Jan 1999 00:00:00; Max-Age=60"}, "",
        "LB=c"},
    {"... whatever the order", {"LB=c; Max-Age=60; Expires=01 Jan 1999 00:00:00"}, "", "LB=c"},
    {"... also over a future date", {"LB=c; Max-Age=0; Expires=01 Jan 2037 00:00:00"}, "", ""},
    {"a negative one removes", {"LB=d", "LB=d; Max-Age=-5"}, "", ""},
    {"an unreadable one is ignored", {"LB=e; Max-Age=soon"}, "", "LB=e"},
    {"... and leaves the word to Expires", {"LB=e; Max-Age=soon; Expires=01 Jan 1999 00:00:00"}, "",
        ""},
    {"a past date removes", {"LB=a", "LB=a; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "", ""},
    {"a date before 1970 removes", {"LB=a", "LB=a; Expires=Mon, 01 Jan 1601 00:00:00 GMT"}, "", ""},
    {"an unreadable date is ignored", {"LB=a; Expires=tomorrow"}, "", "LB=a"},
    {"a date that is no day is ignored", {"LB=a; Expires=30 Feb 1999 00:00:00"}, "", "LB=a"},
    {"a two-digit year", {"LB=a; Expires=Sunday, 06-Nov-94 08:49:37 GMT"}, "", ""},
    {"a two-digit year to come", {"LB=a; Expires=Sunday, 06-Nov-34 08:49:37 GMT"}, "", "LB=a"},
    {"removing what is not there", {"LB=a; Max-Age=0"}, "", ""},
    {"an age beyond all numbers", {"LB=a; Max-Age=18446744073709551615"}, "", "LB=a"},
    /* Secure and the prefixes over http, COO-02 and COO-07 */
    {"Secure over http is dropped", {"AWSALB=abc; Path=/", "AWSALBCORS=abc; Path=/; Secure"}, "",
        "AWSALB=abc"},
    {"... and does not overwrite", {"LB=a", "LB=b; Secure"}, "", "LB=a"},
    {"... nor remove", {"LB=a", "LB=; Max-Age=0; Secure"}, "", "LB=a"},
    {"prefixed names over http are dropped",
        {"__Host-a=1; Secure; Path=/", "__Host-b=1; Path=/", "__Secure-e=1; Secure", "__Secure-f=1",
            "__secure-g=1"},
        "", ""},
    {"what only looks like a prefix is none", {"__Host=1", "_Host-a=1", "Secure=1"}, "",
        "__Host=1; _Host-a=1; Secure=1"},
    /* a configured Cookie header */
    {"the user's own pairs come first", {"LB=a"}, "k=v", "k=v; LB=a"},
    {"the jar wins on the same name", {"LB=a"}, "LB=mine; k=v", "k=v; LB=a"},
    {"... and takes all of them", {"LB=a"}, "LB=1; LB = 2;LB=3", "LB=a"},
    {"a case apart is another name", {"LB=a"}, "lb=1", "lb=1; LB=a"},
    {"odd pairs stay", {"LB=a"}, "flag;; =x ;k=\"a, b\";", "flag; =x; k=\"a, b\"; LB=a"},
    {"an empty jar leaves the header alone", {NULL}, " k=v;;  LB ", " k=v;;  LB "},
    {"so does one whose cookies were removed", {"LB=a", "LB=a; Max-Age=0"}, "k=v;", "k=v;"},
};

static const struct row over_https[] = {
    {"Secure over https is kept (COO-02)", {"AWSALB=abc; Path=/", "AWSALBCORS=abc; Path=/; Secure"},
        "", "AWSALB=abc; AWSALBCORS=abc"},
    {"__Host- (COO-07)",
        {"__Host-a=1; Secure; Path=/", "__Host-b=1; Path=/",
            "__Host-c=1; Secure; Path=/; Domain=a.example.test", "__Host-d=1; Secure; Path=/x",
            "__Host-e=1; Secure", "__Host-f=1; Secure; Path=/; Domain"},
        "", "__Host-a=1"},
    {"__Secure-",
        {"__Secure-e=1; Secure", "__Secure-f=1", "__Secure-g=1; Secure; Domain=x; Path=/y"}, "",
        "__Secure-e=1; __Secure-g=1"},
    {"without regard to case", {"__hOsT-a=1; Path=/", "__SECURE-b=1", "__host-c=1; Secure; Path=/"},
        "", "__host-c=1"},
    {"a broken promise does not remove", {"__Host-a=1; Secure; Path=/", "__Host-a=; Max-Age=0"}, "",
        "__Host-a=1"},
};

static void check_rows(const struct row *rows, size_t count, const char *origin)
{
    for (size_t i = 0; i < count; i++) {
        struct lp_jar jar;
        init(&jar, origin);
        for (size_t l = 0; l < LINES_MAX && rows[i].lines[l]; l++)
            store(&jar, origin, rows[i].lines[l]);
        char *text = sent(&jar, origin, rows[i].configured, NOW_MS);
        if (strcmp(text, rows[i].expected) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", rows[i].what, text, rows[i].expected);
        free(text);
        lp_jar_fini(&jar);
    }
}

static void test_rows(void **state)
{
    (void)state;
    check_rows(over_http, sizeof over_http / sizeof *over_http, "http://a.example.test/mcp");
    check_rows(over_https, sizeof over_https / sizeof *over_https, "https://a.example.test/mcp");
}

struct origin_row {
    const char *jar;
    const char *other;
    bool is_same;
};

static const struct origin_row origins[] = {
    {"http://a.test/mcp", "http://a.test/other?x=1", true},
    {"http://a.test/mcp", "HTTP://A.Test:80", true},
    {"http://a.test:80/", "http://a.test:/", true},
    {"https://a.test/", "https://a.test:443/", true},
    {"http://127.0.0.1:3000/", "http://127.0.0.1:3000/messages", true},
    {"http://[::1]:3000/", "http://[::1]:3000/", true},
    {"http://a.test/", "https://a.test/", false},
    {"http://a.test:443/", "https://a.test/", false},
    {"http://a.test/", "http://a.test:8080/", false},
    {"http://a.example.test/", "http://b.example.test/", false},
    {"http://a.example.test/", "http://example.test/", false},
    {"http://example.test/", "http://a.example.test/", false},
    {"http://a.test/", "http://a.test./", false},
    {"http://localhost:3000/", "http://127.0.0.1:3000/", false},
    {"http://localhost:3000/", "http://[::1]:3000/", false},
    {"http://127.0.0.1:3000/", "http://127.0.0.2:3000/", false},
    {"http://127.0.0.1/", "http://27.0.0.1/", false},
    {"http://[::1]/", "http://[::2]/", false},
    {"http://a.test/", "ws://a.test:80/", false},
    {"http://a.test/", "/mcp", false},
};

/* [C2]: nothing goes to another origin, also not after a redirect there, and nothing comes from it;
 * the user's own Cookie value is not the jar's to withhold. */
static void test_origins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        const struct origin_row *row = &origins[i];
        struct lp_jar jar;
        init(&jar, row->jar);
        assert_int_equal(store(&jar, row->jar, "LB=a"), LP_JAR_STORED);
        enum lp_jar_verdict verdict = store(&jar, row->other, "LB=b");
        if (verdict != (row->is_same ? LP_JAR_STORED : LP_JAR_OTHER_ORIGIN))
            fail_msg("%s, %s: %d", row->jar, row->other, (int)verdict);
        check_sent(&jar, row->jar, "k=v", row->is_same ? "k=v; LB=b" : "k=v; LB=a");
        check_sent(&jar, row->other, "k=v", row->is_same ? "k=v; LB=b" : "k=v");
        check_sent(&jar, row->other, "", row->is_same ? "LB=b" : "");
        lp_jar_fini(&jar);
    }
}

static void test_verdicts(void **state)
{
    (void)state;
    struct lp_jar jar;
    init(&jar, "http://a.test/");
    assert_int_equal(store(&jar, "http://a.test/", "a=1"), LP_JAR_STORED);
    assert_int_equal(store(&jar, "http://a.test/", "a=1; Max-Age=0"), LP_JAR_REMOVED);
    assert_int_equal(store(&jar, "http://b.test/", "a=1"), LP_JAR_OTHER_ORIGIN);
    assert_int_equal(store(&jar, "http://a.test/", "=1"), LP_JAR_MALFORMED);
    assert_int_equal(store(&jar, "http://a.test/", "a=1; Secure"), LP_JAR_NOT_SECURE);
    assert_int_equal(store(&jar, "http://a.test/", "__Host-a=1; Secure"), LP_JAR_NOT_SECURE);
    assert_int_equal(store(&jar, "http://a.test/", "__Host-a=1"), LP_JAR_BAD_PREFIX);
    assert_int_equal(store(&jar, "http://a.test/", "__Secure-a=1"), LP_JAR_BAD_PREFIX);
    lp_jar_fini(&jar);
    for (int v = 0; v <= LP_JAR_NO_ROOM; v++) {
        bool tells = v == LP_JAR_NOT_SECURE || v == LP_JAR_BAD_PREFIX;
        assert_int_equal(lp_jar_must_tell((enum lp_jar_verdict)v), tells);
        assert_memory_equal(lp_jar_words((enum lp_jar_verdict)v), "was ", 4);
    }
}

/* The name is told for the log, and never more than the name. */
static void test_name_is_told(void **state)
{
    (void)state;
    struct lp_jar jar;
    init(&jar, "http://a.test/");
    struct lp_uri from = uri("http://a.test/");
    struct lp_span name;
    enum lp_jar_verdict verdict =
        lp_jar_store(&jar, &from, LP_SPAN("__Secure-id=secret; Secure"), NOW_MS, &name);
    assert_int_equal(verdict, LP_JAR_NOT_SECURE);
    assert_true(lp_span_eq(name, LP_SPAN("__Secure-id")));
    verdict = lp_jar_store(&jar, &from, LP_SPAN("novalue"), NOW_MS, &name);
    assert_int_equal(verdict, LP_JAR_MALFORMED);
    assert_int_equal(name.len, 0);
    lp_jar_fini(&jar);
}

/* "NAME=vvv..." of `len` bytes. */
static enum lp_jar_verdict store_pair(struct lp_jar *jar, const char *name, size_t len)
{
    char line[8192];
    assert_true(len < sizeof line);
    memset(line, 'v', len);
    memcpy(line, name, strlen(name));
    line[strlen(name)] = '=';
    line[len] = '\0';
    return store(jar, "http://a.test/", line);
}

static void test_longest_pair(void **state)
{
    (void)state;
    struct lp_jar jar;
    init(&jar, "http://a.test/");
    assert_int_equal(store_pair(&jar, "fits", 4096), LP_JAR_STORED);
    assert_int_equal(store_pair(&jar, "does-not", 4097), LP_JAR_TOO_LONG);
    assert_int_equal(store_pair(&jar, "fits", 4097), LP_JAR_TOO_LONG);
    char *text = sent(&jar, "http://a.test/", "", NOW_MS);
    assert_int_equal(strlen(text), 4096);
    assert_memory_equal(text, "fits=", 5);
    free(text);
    /* Attributes do not count, nor do blanks around the pair. */
    char line[8192];
    memset(line, ' ', sizeof line);
    memcpy(line + 5000, "fits=a;HttpOnly", 16);
    assert_int_equal(store(&jar, "http://a.test/", line), LP_JAR_STORED);
    check_sent(&jar, "http://a.test/", "", "fits=a");
    lp_jar_fini(&jar);
}

static void store_number(struct lp_jar *jar, int number, const char *rest)
{
    char line[64];
    snprintf(line, sizeof line, "c%d=%d%s", number, number, rest);
    store(jar, "http://a.test/", line);
}

/* The 51st puts the one out that was stored longest ago; overwriting is storing. */
static void test_fifty(void **state)
{
    (void)state;
    struct lp_jar jar;
    init(&jar, "http://a.test/");
    for (int i = 1; i <= 50; i++)
        store_number(&jar, i, "");
    store_number(&jar, 1, ""); /* now c2 is the oldest */
    assert_int_equal(jar.count, 50);
    store_number(&jar, 51, "");
    assert_int_equal(jar.count, 50);
    char *text = sent(&jar, "http://a.test/", "", NOW_MS);
    assert_memory_equal(text, "c3=3; c4=4; ", 12);
    assert_string_equal(strstr(text, "c50="), "c50=50; c1=1; c51=51");
    free(text);
    /* A dropped line and a removal put nobody out, and what has run out makes room first. */
    store_number(&jar, 52, "; Secure");
    store_number(&jar, 53, "; Max-Age=0");
    assert_int_equal(jar.count, 50);
    store_number(&jar, 40, "; Max-Age=1");
    struct lp_uri from = uri("http://a.test/");
    struct lp_span name;
    lp_jar_store(&jar, &from, LP_SPAN("late=1"), NOW_MS + 1000, &name);
    assert_int_equal(jar.count, 50);
    text = sent(&jar, "http://a.test/", "", NOW_MS + 1000);
    assert_memory_equal(text, "c3=3; ", 6);
    assert_null(strstr(text, "c40="));
    free(text);
    lp_jar_fini(&jar);
    check_sent(&jar, "http://a.test/", "", "");
}

/* A cookie is sent up to the very millisecond in which it runs out. */
static void test_time_passes(void **state)
{
    (void)state;
    struct lp_jar jar;
    init(&jar, "http://a.test/");
    store(&jar, "http://a.test/", "LB=f; Max-Age=1");
    store(&jar, "http://a.test/", "d=1; Expires=Fri, 15 Jan 2027 08:00:02 GMT");
    store(&jar, "http://a.test/", "s=1");
    char *text = sent(&jar, "http://a.test/", "", NOW_MS + 999);
    assert_string_equal(text, "LB=f; d=1; s=1");
    free(text);
    text = sent(&jar, "http://a.test/", "LB=own", NOW_MS + 1000);
    assert_string_equal(text, "LB=own; d=1; s=1");
    free(text);
    text = sent(&jar, "http://a.test/", "", NOW_MS + 2000);
    assert_string_equal(text, "s=1");
    free(text);
    lp_jar_fini(&jar);
}

/* The gateway's: 8 KiB in all, its own numbers included; the oldest make room. */
static void test_small_jar(void **state)
{
    (void)state;
    struct lp_jar jar;
    struct lp_uri origin = uri("http://a.test/");
    lp_jar_init(&jar, &origin, LP_JAR_SESSION_BYTES_MAX);
    assert_int_equal(store_pair(&jar, "a", 4000), LP_JAR_STORED);
    assert_int_equal(store_pair(&jar, "b", 4000), LP_JAR_STORED);
    assert_int_equal(store_pair(&jar, "c", 150), LP_JAR_STORED);
    assert_int_equal(jar.count, 3);
    assert_int_equal(store_pair(&jar, "d", 20), LP_JAR_STORED);
    assert_int_equal(jar.count, 3);
    assert_true(jar.len <= LP_JAR_SESSION_BYTES_MAX && jar.cap <= LP_JAR_SESSION_BYTES_MAX);
    assert_int_equal(store_pair(&jar, "e", 4096), LP_JAR_STORED);
    assert_int_equal(jar.count, 3); /* b went */
    lp_jar_fini(&jar);
    lp_jar_init(&jar, &origin, 100);
    assert_int_equal(store_pair(&jar, "a", 89), LP_JAR_STORED);
    assert_int_equal(store_pair(&jar, "b", 90), LP_JAR_TOO_LONG);
    check_sent(&jar, "http://a.test/", "a=x; b=y",
        "b=y; "
        "a="
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv");
    lp_jar_fini(&jar);
}

static void test_packed(void **state)
{
    (void)state;
    struct lp_jar jar, copy;
    init(&jar, "http://a.test/");
    init(&copy, "http://a.test/");
    store(&jar, "http://a.test/", "LB=a; Max-Age=60");
    store(&jar, "http://a.test/", "x=");
    struct lp_span packed = lp_jar_packed(&jar);
    assert_int_equal(packed.len, 2 * LP_JAR_ENTRY_BYTES + 3 + 1);
    assert_int_equal(lp_jar_unpack(&copy, packed, NOW_MS), LP_OK);
    assert_true(lp_span_eq(packed, lp_jar_packed(&copy)));
    /* The age is kept; a second time changes nothing. */
    assert_int_equal(lp_jar_unpack(&copy, packed, NOW_MS + 60000), LP_OK);
    check_sent(&copy, "http://a.test/", "", "x=");
    for (size_t len = 1; len < packed.len; len++) {
        bool is_whole = len == LP_JAR_ENTRY_BYTES + 3;
        int err = lp_jar_unpack(&copy, lp_span(packed.ptr, len), NOW_MS);
        assert_int_equal(err, is_whole ? LP_OK : LP_ESYNTAX);
    }
    assert_int_equal(
        lp_jar_unpack(&copy, lp_span("\1\1\1\1\1\1\1\1\0\0\0\1v", 13), NOW_MS), LP_ESYNTAX);
    /* A removal travels too. */
    struct lp_buf out;
    lp_buf_init(&out, 64);
    struct lp_jar_entry gone = {LP_SPAN("LB"), LP_SPAN(""), LP_JAR_GONE};
    assert_int_equal(lp_jar_pack(&out, &gone), LP_OK);
    assert_int_equal(lp_jar_unpack(&jar, lp_buf_span(&out), NOW_MS), LP_OK);
    check_sent(&jar, "http://a.test/", "", "x=");
    out.max = out.len + LP_JAR_ENTRY_BYTES;
    assert_int_equal(lp_jar_pack(&out, &gone), LP_ELIMIT);
    lp_buf_release(&out);
    char huge[5000] = {[9] = 1, [10] = 0x13, [11] = 0x00};
    assert_int_equal(lp_jar_unpack(&jar, lp_span(huge, 12 + 1 + 0x1300), NOW_MS), LP_ETOO_LONG);
    lp_jar_fini(&jar);
    lp_jar_fini(&copy);
}

/* A value goes out whole or not at all. */
static void test_small_room(void **state)
{
    (void)state;
    struct lp_jar jar;
    struct lp_uri to = uri("http://a.test/");
    init(&jar, "http://a.test/");
    store(&jar, "http://a.test/", "LB=a");
    struct lp_buf out;
    lp_buf_init(&out, 8);
    assert_int_equal(lp_jar_write(&jar, &to, NOW_MS, LP_SPAN("k=v"), &out), LP_ELIMIT);
    assert_int_equal(out.len, 0);
    lp_buf_release(&out);
    lp_jar_fini(&jar);
    lp_jar_fini(&jar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_name_is_told),
        cmocka_unit_test(test_longest_pair),
        cmocka_unit_test(test_fifty),
        cmocka_unit_test(test_time_passes),
        cmocka_unit_test(test_small_jar),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_small_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
