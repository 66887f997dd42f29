/* The endpoint event of old SSE: where it may point, what is sealed, what stays visible
 * (mcp/endpoint.h, cases SSE-02 and SSE-03). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "mcp/endpoint.h"

#define BACKEND "http://backend:9000/sse"
#define VISIBLE "https://gw.example/team/a/sse"

struct row {
    const char *stream;
    const char *visible; /* NULL: not known */
    const char *data;
    int err;
    const char *sealed;
    const char *kept;
};

static void check_row(const struct row *row)
{
    struct lp_uri stream;
    struct lp_uri visible;
    struct lp_buf sealed;
    struct lp_buf kept;
    lp_buf_init(&sealed, 8192);
    lp_buf_init(&kept, 8192);
    assert_int_equal(lp_uri_parse(lp_span_str(row->stream), &stream), LP_OK);
    if (row->visible)
        assert_int_equal(lp_uri_parse(lp_span_str(row->visible), &visible), LP_OK);
    int err = lp_endpoint_split(
        lp_span_str(row->data), &stream, row->visible ? &visible : NULL, &sealed, &kept);
    if (err != row->err)
        print_error("%s: %d, not %d\n", row->data, err, row->err);
    assert_int_equal(err, row->err);
    if (!lp_span_eq(lp_buf_span(&sealed), lp_span_str(row->sealed)))
        print_error("%s: sealed %.*s\n", row->data, (int)sealed.len, lp_buf_span(&sealed).ptr);
    assert_true(lp_span_eq(lp_buf_span(&sealed), lp_span_str(row->sealed)));
    if (!lp_span_eq(lp_buf_span(&kept), lp_span_str(row->kept)))
        print_error("%s: kept %.*s\n", row->data, (int)kept.len, lp_buf_span(&kept).ptr);
    assert_true(lp_span_eq(lp_buf_span(&kept), lp_span_str(row->kept)));
    lp_buf_release(&sealed);
    lp_buf_release(&kept);
}

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i]);
}

/* SSE-02: four ways to say the same, and a backend that knows its public prefix. */
static void test_prefixes(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {BACKEND, VISIBLE, "/messages?sessionId=1", LP_OK, "/messages?sessionId=1", ""},
        {BACKEND, VISIBLE, "messages?sessionId=1", LP_OK, "/messages?sessionId=1", ""},
        {BACKEND, VISIBLE, "?sessionId=1", LP_OK, "/sse?sessionId=1", ""},
        {BACKEND, VISIBLE, "http://backend:9000/messages?sessionId=1", LP_OK,
            "/messages?sessionId=1", ""},
        {BACKEND, VISIBLE, "//backend:9000/messages?sessionId=1", LP_OK, "/messages?sessionId=1",
            ""},
        {BACKEND, VISIBLE, "/team/a/messages?sessionId=1", LP_OK, "/team/a/messages?sessionId=1",
            ""},
        {BACKEND, VISIBLE, "https://gw.example/team/a/messages?sessionId=1", LP_OK,
            "/team/a/messages?sessionId=1", ""},
        {BACKEND, VISIBLE, "https://GW.example:443/m?sessionId=1#x", LP_OK, "/m?sessionId=1", ""},
        {"http://backend:9000/a/b/sse", NULL, "../m?session_id=2", LP_OK, "/a/m?session_id=2", ""},
        {"http://backend:9000/a/sse?x=1", NULL, "./m", LP_OK, "/a/m", ""},
        {BACKEND, NULL, "http://backend:9000?sid=1", LP_OK, "/?sid=1", ""},
        {BACKEND, NULL, " /m?sid=1 ", LP_OK, "/m?sid=1", ""},
    };
    check_rows(ROWS, sizeof ROWS / sizeof *ROWS);
}

/* SSE-03: elsewhere is refused before anything is sent. */
static void test_elsewhere(void **state)
{
    (void)state;
    static const char *const REFUSED[] = {
        "https://b.example/m",
        "//b.example/m",
        "http://a.example/m",
        "https://a.example:8443/m",
        "https://a.example@b.example/m",
        "https://user@a.example/m",
        "https://@a.example/m",
        "https://a.example.b.example/m",
        "javascript:x",
        "data:text/plain,x",
        "https:m",
        "ftp://a.example/m",
    };
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        check_row(&(struct row){"https://a.example/sse", NULL, REFUSED[i], LP_EREFUSED, "", ""});
        check_row(&(struct row){
            "https://a.example/sse", "http://gw.example/sse", REFUSED[i], LP_EREFUSED, "", ""});
    }
    static const struct row BAD[] = {
        {BACKEND, NULL, "/m?a=1 2", LP_ESYNTAX, "", ""},
        {BACKEND, NULL, "/m\x01", LP_ESYNTAX, "", ""},
        {BACKEND, NULL, "/m?\xc3\xbc", LP_ESYNTAX, "", ""},
        {BACKEND, NULL, "http://backend:99999/m", LP_ESYNTAX, "", ""},
        {BACKEND, NULL, "/m%", LP_ESYNTAX, "", ""},
        {"/sse", NULL, "/m", LP_ESYNTAX, "", ""},
    };
    check_rows(BAD, sizeof BAD / sizeof *BAD);
}

static void test_members(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {BACKEND, NULL, "/m", LP_OK, "/m", ""},
        {BACKEND, NULL, "/m?", LP_OK, "/m", ""},
        {BACKEND, NULL, "/m?sessionId=1&tenant=a&b=2", LP_OK, "/m?sessionId=1", "tenant=a&b=2"},
        {BACKEND, NULL, "/m?tenant=a&sessionid=1&b=2", LP_OK, "/m?sessionid=1", "tenant=a&b=2"},
        {BACKEND, NULL, "/m?session_id=1&x", LP_OK, "/m?session_id=1", "x"},
        {BACKEND, NULL, "/m?Session-Id=1&x=", LP_OK, "/m?Session-Id=1", "x="},
        {BACKEND, NULL, "/m?session=1&x=1", LP_OK, "/m?session=1", "x=1"},
        {BACKEND, NULL, "/m?SID=1&x=1", LP_OK, "/m?SID=1", "x=1"},
        {BACKEND, NULL, "/m?id=1&token=2&x=1", LP_OK, "/m?id=1&token=2", "x=1"},
        {BACKEND, NULL, "/m?__id__=1&x=1", LP_OK, "/m?__id__=1", "x=1"},
        {BACKEND, NULL, "/m?id&x=1", LP_OK, "/m?id", "x=1"},
        {BACKEND, NULL, "/m?connection=77&x=1", LP_OK, "/m?connection=77&x=1", ""},
        {BACKEND, NULL, "/m?sessionidx=77&ids=1", LP_OK, "/m?sessionidx=77&ids=1", ""},
        {BACKEND, NULL, "/m?averyveryverylongname=1", LP_OK, "/m?averyveryverylongname=1", ""},
        {BACKEND, NULL, "/m?=1&-=2", LP_OK, "/m?=1&-=2", ""},
        {BACKEND, NULL, "/m?&&sid=1&&x=1&", LP_OK, "/m?sid=1", "x=1"},
        /* our own name is sealed: the client must see it once */
        {BACKEND, NULL, "/m?lp=9&sid=1&x=1", LP_OK, "/m?lp=9&sid=1", "x=1"},
    };
    check_rows(ROWS, sizeof ROWS / sizeof *ROWS);
}

static void test_lengths(void **state)
{
    (void)state;
    char data[9000];
    memset(data, 'a', sizeof data);
    data[0] = '/';
    for (size_t n = 512; n <= 513; n++) {
        data[n] = '\0';
        check_row(&(struct row){
            BACKEND, NULL, data, n == 512 ? LP_OK : LP_ETOO_LONG, n == 512 ? data : "", ""});
        data[n] = 'a';
    }
    memcpy(data, "/m?sid=1&x=", 11);
    data[2000] = '\0';
    check_row(&(struct row){BACKEND, NULL, data, LP_OK, "/m?sid=1", data + 9});
    data[2000] = 'a';
    data[8999] = '\0';
    check_row(&(struct row){BACKEND, NULL, data, LP_ETOO_LONG, "", ""});
}

/* A buffer that is too small gets nothing, whatever came first. */
static void test_small_buffers(void **state)
{
    (void)state;
    struct lp_uri stream;
    assert_int_equal(lp_uri_parse(LP_SPAN(BACKEND), &stream), LP_OK);
    struct lp_span data = LP_SPAN("/messages?a=1&sid=2&b=3&id=4");
    for (size_t sealed_max = 0; sealed_max <= 21; sealed_max++) {
        for (size_t kept_max = 0; kept_max <= 7; kept_max++) {
            struct lp_buf sealed;
            struct lp_buf kept;
            lp_buf_init(&sealed, sealed_max);
            lp_buf_init(&kept, kept_max);
            bool fits = sealed_max >= 20 && kept_max == 7;
            int err = lp_endpoint_split(data, &stream, NULL, &sealed, &kept);
            assert_int_equal(err, fits ? LP_OK : LP_ELIMIT);
            assert_int_equal(sealed.len, fits ? 20 : 0);
            assert_int_equal(kept.len, fits ? 7 : 0);
            lp_buf_release(&sealed);
            lp_buf_release(&kept);
        }
    }
}

/* What was in the buffers stays, and does not count. */
static void test_appending(void **state)
{
    (void)state;
    struct lp_uri stream;
    struct lp_buf sealed;
    struct lp_buf kept;
    char before[500];
    memset(before, '.', sizeof before);
    lp_buf_init(&sealed, 8192);
    lp_buf_init(&kept, 8192);
    assert_int_equal(lp_uri_parse(LP_SPAN(BACKEND), &stream), LP_OK);
    assert_int_equal(lp_buf_append(&sealed, lp_span(before, sizeof before)), LP_OK);
    assert_int_equal(lp_buf_append(&kept, LP_SPAN("z=1")), LP_OK);
    struct lp_span data = LP_SPAN("/a/long/path/to/messages?sid=1&x=2");
    assert_int_equal(lp_endpoint_split(data, &stream, NULL, &sealed, &kept), LP_OK);
    assert_true(lp_span_ends(lp_buf_span(&sealed), LP_SPAN("./a/long/path/to/messages?sid=1")));
    assert_true(lp_span_eq(lp_buf_span(&kept), LP_SPAN("z=1&x=2")));
    lp_buf_release(&sealed);
    lp_buf_release(&kept);
}

static void test_visible(void **state)
{
    (void)state;
    static const struct lp_span KEPT[] = {{NULL, 0}, {"tenant=a&b=2", 12}};
    static const char *const EXPECTED[] = {
        "/team/a/sse?lp=lp1_T", "/team/a/sse?lp=lp1_T&tenant=a&b=2"};
    for (size_t i = 0; i < 2; i++) {
        struct lp_span expected = lp_span_str(EXPECTED[i]);
        for (size_t max = 1; max <= expected.len; max++) {
            struct lp_buf out;
            lp_buf_init(&out, max);
            int err = lp_endpoint_visible(&out, LP_SPAN("/team/a/sse"), LP_SPAN("lp1_T"), KEPT[i]);
            assert_int_equal(err, max < expected.len ? LP_ELIMIT : LP_OK);
            assert_true(
                lp_span_eq(lp_buf_span(&out), max < expected.len ? lp_span(NULL, 0) : expected));
            lp_buf_release(&out);
        }
    }
}

static void test_token(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        int err;
        const char *token;
        const char *rest;
    } ROWS[] = {
        {"lp=lp1_T", LP_OK, "lp1_T", ""},
        {"lp=lp1_T&tenant=a&b=2", LP_OK, "lp1_T", "tenant=a&b=2"},
        {"tenant=a&lp=lp1_T&b=2", LP_OK, "lp1_T", "tenant=a&b=2"},
        {"a=1&&lp=x=y&", LP_OK, "x=y", "a=1"},
        {"lp", LP_OK, "", ""},
        {"lp=", LP_OK, "", ""},
        {"", LP_ENOT_FOUND, "unset", ""},
        {"a=1&LP=2&lpx=3&=lp", LP_ENOT_FOUND, "unset", ""},
        {"lp=1&lp=2", LP_EAMBIGUOUS, "unset", ""},
        {"lp=1&a=1&lp=1", LP_EAMBIGUOUS, "unset", ""},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct lp_buf rest;
        struct lp_span token = LP_SPAN("unset");
        lp_buf_init(&rest, 100);
        assert_int_equal(lp_endpoint_token(lp_span_str(ROWS[i].query), &token, &rest), ROWS[i].err);
        assert_true(lp_span_eq(token, lp_span_str(ROWS[i].token)));
        assert_true(lp_span_eq(lp_buf_span(&rest), lp_span_str(ROWS[i].rest)));
        lp_buf_release(&rest);
    }
    struct lp_buf rest;
    struct lp_span token = LP_SPAN("unset");
    lp_buf_init(&rest, 4);
    assert_int_equal(lp_endpoint_token(LP_SPAN("a=1&b=2&lp=T"), &token, &rest), LP_ELIMIT);
    assert_int_equal(rest.len, 0);
    assert_true(lp_span_eq(token, LP_SPAN("unset")));
    lp_buf_release(&rest);
}

static void check_target(const char *sealed, const char *rest, const char *expected)
{
    struct lp_span wanted = lp_span_str(expected);
    for (size_t max = 1; max <= wanted.len; max++) {
        struct lp_buf out;
        lp_buf_init(&out, max);
        int err = lp_endpoint_target(&out, lp_span_str(sealed), lp_span_str(rest));
        assert_int_equal(err, max < wanted.len ? LP_ELIMIT : LP_OK);
        if (!err && !lp_span_eq(lp_buf_span(&out), wanted))
            print_error("%s + %s: %.*s\n", sealed, rest, (int)out.len, lp_buf_span(&out).ptr);
        assert_true(lp_span_eq(lp_buf_span(&out), err ? lp_span(NULL, 0) : wanted));
        lp_buf_release(&out);
    }
}

/* A client's own member never comes beside the announced one of that name, however it is spelt. */
static void test_target(void **state)
{
    (void)state;
    static const char *const SAME[] = {"sessionId=X", "sessionid=X", "SESSIONID=X", "sessionId",
        "sessionId=", "session%49d=X", "session%69d=X", "%73ESSIONid=X", "sessionId[]=X",
        "sessionId[a]=X", "sessionId%5b%5d=X", "sessionId%5B0%5D=X"};
    static const char *const OTHER[] = {"session_id=X", "sessionIdx=X", "xsessionId=X", "session=X",
        "=X", "session%2549d=X", "sessionId%=X", "sessionId%4=X", "[sessionId]=X"};
    char both[200];
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        check_target("/m?sessionId=1", SAME[i], "/m?sessionId=1");
        snprintf(both, sizeof both, "a=1&%s&b=2", SAME[i]);
        check_target("/m?sessionId=1", both, "/m?sessionId=1&a=1&b=2");
    }
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++) {
        snprintf(both, sizeof both, "/m?sessionId=1&%s", OTHER[i]);
        check_target("/m?sessionId=1", OTHER[i], both);
    }
    check_target("/m", "", "/m");
    check_target("/m", "a=1&sessionId=2", "/m?a=1&sessionId=2");
    check_target("/m?connection=7&x=1", "x=2&X=3&y=4&connection=8", "/m?connection=7&x=1&y=4");
    check_target("/m?key[]=1", "key=2&key[]=3&k=4", "/m?key[]=1&k=4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_small_buffers),
        cmocka_unit_test(test_appending),
        cmocka_unit_test(test_visible),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_target),
    };
    return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
