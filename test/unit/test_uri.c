/* URI references: every part, every refusal, the resolution examples of RFC 3986 5.4 and what an
 * endpoint event may announce (wire/uri.h; cases SSE-02, SSE-03). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/uri.h"

/* A part that is not there is told as "-". */
static void tell_part(struct lp_buf *out, const char *name, struct lp_span part)
{
    assert_int_equal(lp_buf_printf(out, "%s=", name), LP_OK);
    assert_int_equal(lp_buf_append(out, part.ptr ? part : LP_SPAN("-")), LP_OK);
    assert_int_equal(lp_buf_append(out, LP_SPAN(" ")), LP_OK);
}

/* "scheme user host[6] port path query fragment" as one line. */
static void tell(const struct lp_uri *u, char room[256])
{
    struct lp_buf out;
    lp_buf_init(&out, 255);
    tell_part(&out, "s", u->scheme);
    tell_part(&out, "u", u->userinfo);
    tell_part(&out, u->host_is_ipv6 ? "h6" : "h", u->host);
    tell_part(&out, "p", u->port);
    tell_part(&out, "path", u->path);
    tell_part(&out, "q", u->query);
    tell_part(&out, "f", u->fragment);
    assert_int_equal(u->has_authority, u->host.ptr != NULL);
    assert_non_null(u->path.ptr);
    memcpy(room, lp_buf_span(&out).ptr, out.len);
    room[out.len - 1] = '\0';
    lp_buf_release(&out);
}

typedef int (*parse_fn)(struct lp_span text, struct lp_uri *ret);

struct row {
    const char *text;
    const char *parts; /* NULL: LP_ESYNTAX */
};

static void check_rows(parse_fn parse, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct lp_uri u = {.port = LP_SPAN("untouched")};
        char told[256];
        int err = parse(lp_span_str(rows[i].text), &u);
        if (err != (rows[i].parts ? LP_OK : LP_ESYNTAX))
            fail_msg("%s: %d", rows[i].text, err);
        if (err) {
            assert_true(lp_span_eq(u.port, LP_SPAN("untouched")));
            continue;
        }
        tell(&u, told);
        assert_string_equal(told, rows[i].parts);
    }
}

#define CHECK_ROWS(parse, rows) check_rows(parse, rows, sizeof(rows) / sizeof((rows)[0]))

static const struct row references[] = {
    {"", "s=- u=- h=- p=- path= q=- f=-"},
    {"http://a.example/mcp", "s=http u=- h=a.example p=- path=/mcp q=- f=-"},
    {"HTTPS://A.Example:8443", "s=HTTPS u=- h=A.Example p=8443 path= q=- f=-"},
    {"http://u:p@h:80/a/b?c=d#e", "s=http u=u:p h=h p=80 path=/a/b q=c=d f=e"},
    {"http://@h/", "s=http u= h=h p=- path=/ q=- f=-"},
    {"http://h:/", "s=http u=- h=h p= path=/ q=- f=-"},
    {"http://h?", "s=http u=- h=h p=- path= q= f=-"},
    {"http://h#", "s=http u=- h=h p=- path= q=- f="},
    {"http://h?#", "s=http u=- h=h p=- path= q= f="},
    {"http://h/?a?b/c#d?e/f", "s=http u=- h=h p=- path=/ q=a?b/c f=d?e/f"},
    {"http://[::1]:3000/x", "s=http u=- h6=::1 p=3000 path=/x q=- f=-"},
    {"http://127.0.0.1:65535", "s=http u=- h=127.0.0.1 p=65535 path= q=- f=-"},
    {"http://h:0000080", "s=http u=- h=h p=0000080 path= q=- f=-"},
    {"http://%41.b/", "s=http u=- h=%41.b p=- path=/ q=- f=-"},
    {"/messages?sessionId=1", "s=- u=- h=- p=- path=/messages q=sessionId=1 f=-"},
    {"messages?sessionId=1", "s=- u=- h=- p=- path=messages q=sessionId=1 f=-"},
    {"?sessionId=1", "s=- u=- h=- p=- path= q=sessionId=1 f=-"},
    {"#x", "s=- u=- h=- p=- path= q=- f=x"},
    {"a/b:c", "s=- u=- h=- p=- path=a/b:c q=- f=-"},
    {"./a:b", "s=- u=- h=- p=- path=./a:b q=- f=-"},
    {"?a:b", "s=- u=- h=- p=- path= q=a:b f=-"},
    {"/a%2Fb%c3%A9", "s=- u=- h=- p=- path=/a%2Fb%c3%A9 q=- f=-"},
    {"/-._~!$&'()*+,;=:@", "s=- u=- h=- p=- path=/-._~!$&'()*+,;=:@ q=- f=-"},
    {"mailto:a@b", "s=mailto u=- h=- p=- path=a@b q=- f=-"},
    {"a+b-c.1:x", "s=a+b-c.1 u=- h=- p=- path=x q=- f=-"},
    {"http:g", "s=http u=- h=- p=- path=g q=- f=-"},
    {"file:///etc", "s=file u=- h= p=- path=/etc q=- f=-"},
    {"http://h//x", "s=http u=- h=h p=- path=//x q=- f=-"},
    /* what SSE-03 has a hostile stream announce: each says plainly where it leads */
    {"https://b.example/m", "s=https u=- h=b.example p=- path=/m q=- f=-"},
    {"//b.example/m", "s=- u=- h=b.example p=- path=/m q=- f=-"},
    {"http://a.example/m", "s=http u=- h=a.example p=- path=/m q=- f=-"},
    {"https://a.example:8443/m", "s=https u=- h=a.example p=8443 path=/m q=- f=-"},
    {"https://a.example@b.example/m", "s=https u=a.example h=b.example p=- path=/m q=- f=-"},
    {"https://a.example:443@b.example/m",
        "s=https u=a.example:443 h=b.example p=- path=/m q=- f=-"},
    {"javascript:x", "s=javascript u=- h=- p=- path=x q=- f=-"},
    /* the host that a browser would find behind the backslash is never in doubt */
    {"https://b.example\\@a.example/m", NULL},
    {"https:\\\\b.example/m", NULL},
    {"/\\b.example/m", NULL},
    {"\\\\b.example/m", NULL},
    {"https://a.example@b.example@c.example/", NULL},
    {"https://a.example#@b.example/", "s=https u=- h=a.example p=- path= q=- f=@b.example/"},
    {"https://a.example?@b.example/", "s=https u=- h=a.example p=- path= q=@b.example/ f=-"},
    /* an authority without host */
    {"///b.example/m", NULL},
    {"//", NULL},
    {"//:80", NULL},
    {"http:///x", NULL},
    {"HTTPS://:443/x", NULL},
    {"http://u@/x", NULL},
    /* characters */
    {" http://h/", NULL},
    {"http://h/ ", NULL},
    {"/a b", NULL},
    {"/a\tb", NULL},
    {"/a\nb", NULL},
    {"/a\x7F", NULL},
    {"/\xC3\xA9", NULL},
    {"/<", NULL},
    {"/>", NULL},
    {"/\"", NULL},
    {"/{", NULL},
    {"/}", NULL},
    {"/|", NULL},
    {"/^", NULL},
    {"/`", NULL},
    {"/[", NULL},
    {"/]", NULL},
    {"#a#b", NULL},
    /* a query names no host: what clients leave in it as it is, is passed on as it is */
    {"?[", "s=- u=- h=- p=- path= q=[ f=-"},
    {"/m?f[a]={\"b|c\":`^}", "s=- u=- h=- p=- path=/m q=f[a]={\"b|c\":`^} f=-"},
    {"http://h?[::1]", "s=http u=- h=h p=- path= q=[::1] f=-"},
    {"?<", NULL},
    {"?>", NULL},
    {"?a b", NULL},
    {"?\x7F", NULL},
    {"?\xC3\xA9", NULL},
    {"#[", NULL},
    {"#\"", NULL},
    {"?\\", NULL},
    {"#\\", NULL},
    /* percent-encoding */
    {"/%", NULL},
    {"/%4", NULL},
    {"/%4g", NULL},
    {"/%g4", NULL},
    {"/%%41", NULL},
    {"?%zz", NULL},
    {"http://%4/", NULL},
    {"http://u%@h/", NULL},
    /* schemes */
    {":x", NULL},
    {"1a:x", NULL},
    {"a_b:x", NULL},
    {"a%41:x", NULL},
    {"+a:x", NULL},
    {"a b:x", NULL},
    /* ports */
    {"http://h:65536/", NULL},
    {"http://h:99999999999999999999/", NULL},
    {"http://h:8a/", NULL},
    {"http://h:-1/", NULL},
    {"http://h:+80/", NULL},
    {"http://h:80:80/", NULL},
    {"http://[::1]:x/", NULL},
    {"http://[::1]80/", NULL},
    {"http://[::1/", NULL},
    {"http://::1/", NULL},
    {"http://h]/", NULL},
    {"http://[::1]]/", NULL},
    {"http://a[::1]/", NULL},
    {"http://u[@h/", NULL},
};

static void test_references(void **state)
{
    (void)state;
    CHECK_ROWS(lp_uri_parse, references);
    struct lp_uri u;
    assert_int_equal(lp_uri_parse(LP_SPAN("/a\0b"), &u), LP_ESYNTAX);
    assert_int_equal(lp_uri_parse(lp_span(NULL, 0), &u), LP_OK);
    assert_non_null(u.path.ptr);
}

static void test_ipv6(void **state)
{
    (void)state;
    const char *const good[] = {"::", "::1", "1::", "1::8", "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "abcd:EF01::", "::ffff:1.2.3.4",
        "::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "64:ff9b::255.255.255.255", "1:2::5:6:0.0.0.0",
        "0000::0000"};
    const char *const bad[] = {"", ":", ":::", "1", "1:", ":1", "1:2", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "::1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::", "1::2::3", "12345::", "g::", "::1%25eth0", "::1%eth0", "v1.x",
        "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::1.2.3.04", "::1.2.3.", "::1..3.4", "1.2.3.4",
        "1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:1.2.3.4", "::a.2.3.4",
        "::1.2.3.4 ", "1:::2", "::-1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
        bool is_good = i < sizeof good / sizeof good[0];
        const char *host = is_good ? good[i] : bad[i - sizeof good / sizeof good[0]];
        char text[64];
        struct lp_uri u;
        int len = snprintf(text, sizeof text, "http://[%s]/", host);
        if ((lp_uri_parse(lp_span(text, (size_t)len), &u) == LP_OK) != is_good)
            fail_msg("%s", text);
    }
}

static void test_length(void **state)
{
    (void)state;
    static char text[8193];
    struct lp_uri u;
    memset(text, 'a', sizeof text);
    text[0] = '/';
    assert_int_equal(lp_uri_parse(lp_span(text, 8192), &u), LP_OK);
    assert_int_equal(lp_uri_parse_target(lp_span(text, 8192), &u), LP_OK);
    assert_int_equal(lp_uri_parse_authority(lp_span(text + 1, 8192), &u), LP_OK);
    assert_int_equal(lp_uri_parse(lp_span(text, 8193), &u), LP_ETOO_LONG);
    assert_int_equal(lp_uri_parse_target(lp_span(text, 8193), &u), LP_ETOO_LONG);
    text[0] = 'a';
    assert_int_equal(lp_uri_parse_target(lp_span(text, 8193), &u), LP_ETOO_LONG);
    assert_int_equal(lp_uri_parse_authority(lp_span(text, 8193), &u), LP_ETOO_LONG);
}

static const struct row targets[] = {
    {"/", "s=- u=- h=- p=- path=/ q=- f=-"},
    {"/mcp?a=b", "s=- u=- h=- p=- path=/mcp q=a=b f=-"},
    {"/a?", "s=- u=- h=- p=- path=/a q= f=-"},
    {"/mcp?x[]=1&y={\"a\":\"b|c\"}^`", "s=- u=- h=- p=- path=/mcp q=x[]=1&y={\"a\":\"b|c\"}^` f=-"},
    {"http://h/mcp?[{|^", "s=http u=- h=h p=- path=/mcp q=[{|^ f=-"},
    {"//b.example/m", "s=- u=- h=- p=- path=//b.example/m q=- f=-"},
    {"///", "s=- u=- h=- p=- path=/// q=- f=-"},
    {"/http://x/", "s=- u=- h=- p=- path=/http://x/ q=- f=-"},
    {"*", "s=- u=- h=- p=- path= q=- f=-"},
    {"http://h:80/mcp?x", "s=http u=- h=h p=80 path=/mcp q=x f=-"},
    {"http://[::1]", "s=http u=- h6=::1 p=- path= q=- f=-"},
    {"", NULL},
    {"**", NULL},
    {"*/", NULL},
    {"?a", NULL},
    {"mcp", NULL},
    {"h:80", NULL},
    {"localhost:80", NULL},
    {"127.0.0.1:80", NULL},
    {"[::1]:80", NULL},
    {"mailto:x", NULL},
    {"http:x", NULL},
    {"http:/x", NULL},
    {"/a#b", NULL},
    {"/#", NULL},
    {"/?#", NULL},
    {"http://h/#", NULL},
    {"http://h#x", NULL},
    {"http://u@h/", NULL},
    {"http://@h/", NULL},
    {"http:///x", NULL},
    {"/a b", NULL},
    {"/%zz", NULL},
    {"/?%z", NULL},
    {"/\\", NULL},
    {"/\xC3\xA9", NULL},
    {"/[", NULL},
    {"/{a}?b", NULL},
    {"/?a\\b", NULL},
    {"/?a b", NULL},
};

static const struct row authorities[] = {
    {"h", "s=- u=- h=h p=- path= q=- f=-"},
    {"a.example:8080", "s=- u=- h=a.example p=8080 path= q=- f=-"},
    {"h:", "s=- u=- h=h p= path= q=- f=-"},
    {"[::1]", "s=- u=- h6=::1 p=- path= q=- f=-"},
    {"[::1]:80", "s=- u=- h6=::1 p=80 path= q=- f=-"},
    {"[::1]:", "s=- u=- h6=::1 p= path= q=- f=-"},
    {"my_host", "s=- u=- h=my_host p=- path= q=- f=-"},
    {"", NULL},
    {":80", NULL},
    {":", NULL},
    {"[]", NULL},
    {"[]:80", NULL},
    {"[::1", NULL},
    {"[::1]x", NULL},
    {"[::1]:65536", NULL},
    {"::1", NULL},
    {"h:80:80", NULL},
    {"h:x", NULL},
    {"u@h", NULL},
    {"h/", NULL},
    {"h?", NULL},
    {"h#", NULL},
    {"h h", NULL},
    {"h,i", "s=- u=- h=h,i p=- path= q=- f=-"},
    {"http://h", NULL},
    {"h\\", NULL},
    {"h%", NULL},
};

static void test_targets_and_authorities(void **state)
{
    (void)state;
    CHECK_ROWS(lp_uri_parse_target, targets);
    CHECK_ROWS(lp_uri_parse_authority, authorities);
}

static struct lp_uri parsed(const char *text)
{
    struct lp_uri u;
    if (lp_uri_parse(lp_span_str(text), &u) != LP_OK)
        fail_msg("%s", text);
    return u;
}

static void test_ports(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint16_t port;
    } rows[] = {{"http://h", 80}, {"HTTPS://h", 443}, {"http://h:", 80}, {"https://h:/", 443},
        {"http://h:443", 443}, {"http://h:0080", 80}, {"https://[::1]:65535", 65535},
        {"http://h:0", 0}, {"ftp://h", 0}, {"//h", 0}, {"/x", 0}, {"//h:7", 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lp_uri u = parsed(rows[i].text);
        assert_int_equal(lp_uri_port(&u), rows[i].port);
    }
}

static void test_same_origin(void **state)
{
    (void)state;
    const struct {
        const char *a;
        const char *b;
        bool is_same;
    } rows[] = {
        {"https://a.example/sse", "https://a.example/m?x", true},
        {"https://a.example/sse", "HTTPS://A.EXAMPLE:443", true},
        {"https://a.example:/", "https://u@a.example:0443/", true},
        {"http://[::1]/", "http://[::1]:80/", true},
        {"https://a.example/sse", "https://b.example/m", false},
        {"https://a.example/sse", "http://a.example/m", false},
        {"https://a.example/sse", "http://a.example:443/m", false},
        {"https://a.example/sse", "https://a.example:8443/m", false},
        {"https://a.example/sse", "https://a.example@b.example/m", false},
        {"https://a.example/sse", "https://a.example.b.example/m", false},
        {"https://a.example/sse", "https://a.example./m", false},
        {"https://a.example/sse", "//a.example/m", false},
        {"https://a.example/sse", "/m", false},
        {"https://a.example/sse", "javascript:x", false},
        {"javascript:x", "javascript:x", false},
        {"/m", "/m", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lp_uri a = parsed(rows[i].a), b = parsed(rows[i].b);
        if (lp_uri_same_origin(&a, &b) != rows[i].is_same ||
            lp_uri_same_origin(&b, &a) != rows[i].is_same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
    /* The letters of a name are not those of an address. */
    struct lp_uri a = parsed("http://[::1]/"), b = a;
    b.host_is_ipv6 = false;
    assert_false(lp_uri_same_origin(&a, &b));
}

struct resolution {
    const char *base;
    const char *ref;
    const char *result; /* NULL: LP_ESYNTAX */
};

#define RFC "http://a/b/c/d;p?q"
static const struct resolution resolutions[] = {
    /* RFC 3986 5.4.1, normal; without fragments, as the header says */
    {RFC, "g:h", "g:h"},
    {RFC, "g", "http://a/b/c/g"},
    {RFC, "./g", "http://a/b/c/g"},
    {RFC, "g/", "http://a/b/c/g/"},
    {RFC, "/g", "http://a/g"},
    {RFC, "//g", "http://g"},
    {RFC, "?y", "http://a/b/c/d;p?y"},
    {RFC, "g?y", "http://a/b/c/g?y"},
    {RFC, "#s", "http://a/b/c/d;p?q"},
    {RFC, "g#s", "http://a/b/c/g"},
    {RFC, "g?y#s", "http://a/b/c/g?y"},
    {RFC, ";x", "http://a/b/c/;x"},
    {RFC, "g;x", "http://a/b/c/g;x"},
    {RFC, "g;x?y#s", "http://a/b/c/g;x?y"},
    {RFC, "", "http://a/b/c/d;p?q"},
    {RFC, ".", "http://a/b/c/"},
    {RFC, "./", "http://a/b/c/"},
    {RFC, "..", "http://a/b/"},
    {RFC, "../", "http://a/b/"},
    {RFC, "../g", "http://a/b/g"},
    {RFC, "../..", "http://a/"},
    {RFC, "../../", "http://a/"},
    {RFC, "../../g", "http://a/g"},
    /* RFC 3986 5.4.2, abnormal; the strict reading of "http:g" */
    {RFC, "../../../g", "http://a/g"},
    {RFC, "../../../../g", "http://a/g"},
    {RFC, "/./g", "http://a/g"},
    {RFC, "/../g", "http://a/g"},
    {RFC, "g.", "http://a/b/c/g."},
    {RFC, ".g", "http://a/b/c/.g"},
    {RFC, "g..", "http://a/b/c/g.."},
    {RFC, "..g", "http://a/b/c/..g"},
    {RFC, "./../g", "http://a/b/g"},
    {RFC, "./g/.", "http://a/b/c/g/"},
    {RFC, "g/./h", "http://a/b/c/g/h"},
    {RFC, "g/../h", "http://a/b/c/h"},
    {RFC, "g;x=1/./y", "http://a/b/c/g;x=1/y"},
    {RFC, "g;x=1/../y", "http://a/b/c/y"},
    {RFC, "g?y/./x", "http://a/b/c/g?y/./x"},
    {RFC, "g?y/../x", "http://a/b/c/g?y/../x"},
    {RFC, "g#s/./x", "http://a/b/c/g"},
    {RFC, "g#s/../x", "http://a/b/c/g"},
    {RFC, "http:g", "http:g"},
    /* SSE-02: what a backend announces, seen from the stream */
    {"http://backend:9000/sse", "/messages?sessionId=1",
        "http://backend:9000/messages?sessionId=1"},
    {"http://backend:9000/sse", "messages?sessionId=1", "http://backend:9000/messages?sessionId=1"},
    {"http://backend:9000/sse", "?sessionId=1", "http://backend:9000/sse?sessionId=1"},
    {"https://gw.example/team/a/sse", "http://backend:9000/messages?sessionId=1",
        "http://backend:9000/messages?sessionId=1"},
    {"https://gw.example/team/a/sse", "messages?sessionId=1",
        "https://gw.example/team/a/messages?sessionId=1"},
    {"https://gw.example/team/a/sse", "//b.example/m", "https://b.example/m"},
    {"https://gw.example/team/a/sse", "javascript:x", "javascript:x"},
    /* authorities are kept letter for letter */
    {"HTTP://U:P@[::1]:080/x", "y", "HTTP://U:P@[::1]:080/y"},
    {"http://@h:", "x", "http://@h:/x"},
    {"http://h", "", "http://h"},
    {"http://h", "x", "http://h/x"},
    {"http://h", "..", "http://h/"},
    {"http://h?q", "", "http://h?q"},
    {"http://h?q", "?", "http://h?"},
    {"http://h/a?q", "b?", "http://h/b?"},
    /* dots in the base, in an own scheme, and in another spelling */
    {"http://h/a/../b?q", "", "http://h/b?q"},
    {"http://h/a/b", "http://i/x/../y/./z", "http://i/y/z"},
    {"http://h/a/b/c", "%2e%2E/x", "http://h/a/x"},
    {"http://h/a/b/c", ".%2e/%2e/x", "http://h/a/x"},
    {"http://h/a/b/c", "%2e%2e%2e/x", "http://h/a/b/%2e%2e%2e/x"},
    {"http://h/a/b/c", "...", "http://h/a/b/..."},
    {"http://h/a//b", "../x", "http://h/a/x"},
    {"http://h/", "//i/..//x", "http://i//x"},
    /* bases without authority */
    {"x:a/b", "c", "x:a/c"},
    {"x:a", "../c", "x:c"},
    {"x:a", "./c:d", "x:c:d"},
    {"x:a/b", "..", "x:/"},
    {"x:a", ".", "x:"},
    {"x:", "", "x:"},
    {"x:a", "", "x:a"},
    {"x:/a", "/.//b", NULL}, /* b would become a host */
    {"/a", "b", NULL},
    {"//h/a", "b", NULL},
    {"", "http://h/", NULL},
};

static void test_resolve(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof resolutions / sizeof resolutions[0]; i++) {
        const struct resolution *r = &resolutions[i];
        struct lp_uri base = parsed(r->base), ref = parsed(r->ref);
        struct lp_buf out;
        lp_buf_init(&out, 200);
        assert_int_equal(lp_buf_append(&out, LP_SPAN("x")), LP_OK);
        assert_int_equal(lp_uri_resolve(&base, &ref, &out), r->result ? LP_OK : LP_ESYNTAX);
        struct lp_span result = lp_span_from(lp_buf_span(&out), 1);
        if (!lp_span_eq(result, lp_span_str(r->result ? r->result : "")))
            fail_msg("%s + %s = %.*s", r->base, r->ref, (int)result.len, result.ptr);
        lp_buf_release(&out);
    }
}

/* Whatever the ceiling cuts off, nothing stays. */
static void test_resolve_all_or_nothing(void **state)
{
    (void)state;
    struct lp_uri base = parsed("http://u@[::1]:80/a/b"), ref = parsed("c?d");
    const struct lp_span result = LP_SPAN("http://u@[::1]:80/a/c?d");
    for (size_t max = 0; max <= result.len; max++) {
        struct lp_buf out;
        lp_buf_init(&out, max);
        assert_int_equal(lp_uri_resolve(&base, &ref, &out), max < result.len ? LP_ELIMIT : LP_OK);
        assert_int_equal(out.len, max < result.len ? 0 : result.len);
        lp_buf_release(&out);
    }
}

static void check_query(const char *query, const char *key, const char *expect)
{
    struct lp_span value = LP_SPAN("untouched");
    bool is_there = lp_uri_query_get(lp_span_str(query), lp_span_str(key), &value);
    assert_int_equal(is_there, expect != NULL);
    assert_true(lp_span_eq(value, lp_span_str(expect ? expect : "untouched")));
    assert_non_null(value.ptr);
}

static void test_query(void **state)
{
    (void)state;
    check_query("a=1&b=2", "a", "1");
    check_query("a=1&b=2", "b", "2");
    check_query("a=1&b=2", "c", NULL);
    check_query("a=1&b=2", "A", NULL);
    check_query("a=1&b=2", "", NULL);
    check_query("sessionId=x", "session", NULL);
    check_query("a=1&a=2", "a", "1");
    check_query("a=b=c&d", "a", "b=c");
    check_query("a=b=c&d", "d", "");
    check_query("a=&b", "a", "");
    check_query("a=%41+%zz", "a", "%41+%zz");
    check_query("%61=1", "a", NULL);
    check_query("&&a=1&", "a", "1");
    check_query("&&", "", NULL);
    check_query("=1", "", "1");
    check_query("", "a", NULL);
    check_query(NULL, "a", NULL);
}

static void check_hidden(const char *text, const char *head, const char *tail)
{
    struct lp_span left;
    struct lp_span right;
    assert_int_equal(lp_uri_hide_user(lp_span_str(text), &left, &right), *tail != 0);
    assert_true(lp_span_eq(left, lp_span_str(head)));
    assert_true(lp_span_eq(right, lp_span_str(tail)));
}

static void test_users_are_hidden(void **state)
{
    (void)state;
    check_hidden("http://u:secret@h/mcp", "http://", "@h/mcp");
    check_hidden("http://u:a@b/c@h/mcp", "http://", "@h/mcp");
    check_hidden("B=http://u:secret@h", "B=http://", "@h");
    check_hidden("u:secret@h/mcp", "", "@h/mcp");
    check_hidden("http://@h", "http://", "@h");
    check_hidden("http://h/mcp", "http://h/mcp", "");
    check_hidden("", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_targets_and_authorities),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_same_origin),
        cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_resolve_all_or_nothing),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_users_are_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
