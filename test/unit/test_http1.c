/* The HTTP/1 parser and writer (wire/http1.h): tables of good and bad inputs with exact verdicts,
 * the limits at their edges, what is copied and what is not, and the writer's spelling.
 *
 * A verdict is written in one line: for each message its start ("POST /x" or "200 OK"), framing
 * ("none", "5", "chunked", "close"), "keep" or "once", "expect" if so, then the body in brackets
 * and "end"; at last "!NAME" for an error, "..." when the input ends inside a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/http1.h"

static struct lp_head shared_head;

struct verdict {
    char text[2000];
    size_t len;
    bool in_body;
};

static void say(struct verdict *v, const char *fmt, ...) LP_PRINTF(2, 3);
static void say(struct verdict *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(v->text + v->len, sizeof v->text - v->len, fmt, args);
    va_end(args);
    assert_true(n >= 0 && v->len + (size_t)n < sizeof v->text);
    v->len += (size_t)n;
}

static void say_head(struct verdict *v, const struct lp_head *head)
{
    const char *gap = v->len ? " " : "";
    if (head->is_request)
        say(v, "%s%.*s %.*s", gap, (int)head->method_name.len, head->method_name.ptr,
            (int)head->target.len, head->target.ptr);
    else
        say(v, "%s%d %.*s", gap, head->status, (int)head->reason.len, head->reason.ptr);
    switch (head->body) {
    case LP_BODY_NONE:
        say(v, " none");
        break;
    case LP_BODY_LENGTH:
        say(v, " %llu", (unsigned long long)head->body_bytes);
        break;
    case LP_BODY_CHUNKED:
        say(v, " chunked");
        break;
    case LP_BODY_UNTIL_CLOSE:
        say(v, " close");
        break;
    }
    say(v, head->keep_alive ? " keep" : " once");
    if (head->expect_continue)
        say(v, " expect");
}

static void say_item(struct verdict *v, const struct lp_http1_item *item)
{
    bool is_body = item->kind == LP_HTTP1_BODY;
    if (v->in_body && !is_body)
        say(v, "]");
    if (is_body)
        say(v, "%s%.*s", v->in_body ? "" : " [", (int)item->body.len, item->body.ptr);
    v->in_body = is_body;
    if (item->kind == LP_HTTP1_HEAD)
        say_head(v, item->head);
    if (item->kind == LP_HTTP1_END)
        say(v, " end");
}

/* All items of `in`, which is copied to a block of its own so that sanitizers see its edges. */
static void judge(struct lp_http1 *p, struct lp_span in, struct verdict *v)
{
    char *block = malloc(in.len + 1);
    assert_non_null(block);
    memcpy(block, in.ptr, in.len);
    struct lp_span rest = lp_span(block, in.len);
    struct lp_http1_item item;
    ptrdiff_t n;
    do {
        n = lp_http1_feed(p, rest, &item);
        if (n < 0) {
            say(v, "%s%s!%s", v->in_body ? "]" : "", v->len ? " " : "", lp_error_name((int)n));
            break;
        }
        rest = lp_span_from(rest, (size_t)n);
        say_item(v, &item);
    } while (item.kind != LP_HTTP1_NONE);
    if (n >= 0 && !lp_http1_is_between(p))
        say(v, "%s...", v->len ? " " : "");
    free(block);
}

struct row {
    struct lp_span in;
    const char *want;
};

#define IN(s)                                                                                      \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

/* `answered` is for answers; OTHER: the parser is not told. */
static void check_row(enum lp_http1_side side, enum lp_method answered, const struct row *row)
{
    struct lp_http1 p;
    struct verdict v = {.len = 0};
    lp_http1_init(&p, side, &shared_head);
    if (answered)
        lp_http1_answering(&p, answered);
    judge(&p, row->in, &v);
    if (strcmp(v.text, row->want) != 0)
        fail_msg(
            "\n%.*s\n--- gave: %s\n--- not:  %s", (int)row->in.len, row->in.ptr, v.text, row->want);
    lp_http1_release(&p);
}

#define CHECK_ROWS(side, answered, rows)                                                           \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    check_row(LP_HTTP1_##side, LP_METHOD_##answered, &(rows)[i])

#define H "Host: a\r\n"
#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static const struct row good_requests[] = {
    {IN(""), ""},
    {IN("GET / HTTP/1.1\r\n" H "\r\n"), "GET / none keep end"},
    {IN("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"), "GET / none keep end"},
    {IN("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n\r\n"), "GET / none keep end"},
    {IN("M-SEARCH * HTTP/1.1\r\nhost:\r\n\r\n"), "M-SEARCH * none keep end"},
    {IN("GET http://[::1]:80/x?y HTTP/1.1\r\n" H "\r\n"), "GET http://[::1]:80/x?y none keep end"},
    {IN("CONNECT h:443 HTTP/1.1\r\n" H "\r\n"), "CONNECT h:443 none keep end"},
    {IN("GET /\xC3\xA4 HTTP/1.1\r\n" H "\r\n"), "GET /\xC3\xA4 none keep end"},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), "POST / 5 keep [hello] end"},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhell"), "POST / 5 keep [hell] ..."},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"), "POST / none keep end"},
    {IN("POST / HTTP/1.1\r\n" H "content-LENGTH:\t 05 \t\r\n\r\nhello"),
        "POST / 5 keep [hello] end"},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi"),
        "POST / 2 keep [hi] end"},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551615\r\n\r\n"),
        "POST / 18446744073709551615 keep ..."},
    {IN("POST / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\naGET / HTTP/1.1\r\n" H "\r\n"),
        "POST / 1 keep [a] end GET / none keep end"},
    {IN("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n"), "GET / none once end"},
    {IN("GET / HTTP/1.1\r\n" H "Connection: Upgrade,\tCLOSE\r\n\r\n"), "GET / none once end"},
    {IN("GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n"),
        "GET / none once end"},
    {IN("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n"), "GET / none keep end"},
    {IN("GET / HTTP/1.0\r\n\r\n"), "GET / none once end"},
    {IN("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), "GET / none keep end"},
    {IN("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), "GET / none once end"},
    {IN("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"), "POST / 1 once [x] end"},
    {IN("PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"),
        "PUT / 1 keep expect ..."},
    {IN("PUT / HTTP/1.1\r\n" H "Expect: banana\r\n\r\n"), "PUT / none keep end"},
    {IN("PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: banana\r\n\r\n"),
        "PUT / none keep end"},
    {IN("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), "PUT / none once end"},
    {IN(CHUNKED "0\r\n\r\n"), "POST / chunked keep end"},
    {IN(CHUNKED "5\r\nhello\r\n0\r\n\r\n"), "POST / chunked keep [hello] end"},
    {IN(CHUNKED "5\r\nhello\r\n01\r\n \r\n5\r\nworld\r\n0000000000000000\r\n\r\n"),
        "POST / chunked keep [hello world] end"},
    {IN(CHUNKED "b\r\nhello world\r\n0\r\n\r\n"), "POST / chunked keep [hello world] end"},
    {IN(CHUNKED "B\r\nhello world\r\n0\r\n\r\n"), "POST / chunked keep [hello world] end"},
    {IN(CHUNKED "2;a;b=c;d=\"e \\\" f\"\r\nhi\r\n0;z\r\n\r\n"), "POST / chunked keep [hi] end"},
    {IN(CHUNKED "2; \x80\t\r\n\r\n\r\n0\r\n\r\n"), "POST / chunked keep [\r\n] end"},
    {IN(CHUNKED "1\r\nx\r\n0\r\nTrailer: 1\r\nX-Sum: x\r\nHost:\r\n\r\n"),
        "POST / chunked keep [x] end"},
    {IN(CHUNKED "ffffffffffffffff\r\nx"), "POST / chunked keep [x] ..."},
    {IN(CHUNKED "0\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"),
        "POST / chunked keep end GET / none keep end"},
    {IN("POST / HTTP/1.1\r\n" H "transfer-encoding: \tCHUNKED \r\n\r\n0\r\n\r\n"),
        "POST / chunked keep end"},
    {IN("GET / HTTP/1.1\r\n" H "A:\r\nB: \t \r\nC:x:y\r\n: \r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "A:\r\nB: \t \r\nC:x:y\r\n"), "..."},
    {IN("\r"), "..."},
    {IN("G"), "..."},
};

static void test_good_requests(void **state)
{
    (void)state;
    CHECK_ROWS(REQUESTS, OTHER, good_requests);
}

static const struct row bad_lines[] = {
    /* line ends and controls, as soon as they are seen */
    {IN("\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: a\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: a\r\n\n"), "!SYNTAX"},
    {IN("\rG"), "!SYNTAX"},
    {IN("\r\r"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\r"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: a\rb"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: \0"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: a\x7F"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost: a\x0B"), "!SYNTAX"},
    {IN("\x16\x03\x01"), "!SYNTAX"},
    {IN("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"), "!SYNTAX"},
    /* the request line */
    {IN(" GET / HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET  / HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET /  HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1 \r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / x HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET\t/\tHTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET /\tx HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GE(T / HTTP/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET /\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / \r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.2\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/2.0\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/0.9\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / http/1.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.10\r\n" H "\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/01.1\r\n" H "\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 200 OK\r\n" H "\r\n"), "!SYNTAX"},
    /* fields */
    {IN("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\nHost\t: a\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H " folded: b\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "\tfolded: b\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "nocolon\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H ": noname\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "a b: c\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "a\x80: c\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H "(a): c\r\n\r\n"), "!SYNTAX"},
    /* Host */
    {IN("GET / HTTP/1.1\r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n" H H "\r\n"), "!AMBIGUOUS"},
    {IN("GET / HTTP/1.0\r\n" H "hOST: b\r\n\r\n"), "!AMBIGUOUS"},
};

static void test_bad_lines(void **state)
{
    (void)state;
    CHECK_ROWS(REQUESTS, OTHER, bad_lines);
}

#define POST_WITH(fields) IN("POST / HTTP/1.1\r\n" H fields "\r\nhello")

static const struct row bad_framing[] = {
    {POST_WITH("Content-Length:\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: +5\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: -5\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: 0x5\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: 5 5\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: 5.0\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: five\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: 18446744073709551616\r\n"), "!SYNTAX"},
    {POST_WITH("Content-Length: 5, 5\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Content-Length: 5,\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Content-Length: 5\r\nContent-Length: 6\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Content-Length: 5\r\nContent-Length: 05\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding:\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: gzip\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: identity\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: gzip, chunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: chunked, chunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: chunked,\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: xchunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: \"chunked\"\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: chunked;q=1\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), "!AMBIGUOUS"},
    {POST_WITH("Transfer-Encoding : chunked\r\n"), "!SYNTAX"},
    {POST_WITH("Transfer-Encoding: \x0B"
               "chunked\r\n"),
        "!SYNTAX"},
    {IN("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "!AMBIGUOUS"},
    {IN("POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n"), "!AMBIGUOUS"},
};

static void test_bad_framing(void **state)
{
    (void)state;
    CHECK_ROWS(REQUESTS, OTHER, bad_framing);
}

#define BAD_CHUNKS(s, verdict)                                                                     \
    {                                                                                              \
        IN(CHUNKED s), "POST / chunked keep " verdict                                              \
    }

static const struct row bad_chunks[] = {
    BAD_CHUNKS("\r\n", "!SYNTAX"),
    BAD_CHUNKS("5\n", "!SYNTAX"),
    BAD_CHUNKS("5\r\r", "!SYNTAX"),
    BAD_CHUNKS("5\r\nhello0\r\n\r\n", "[hello] !SYNTAX"),
    BAD_CHUNKS("5\r\nhello\n0\r\n\r\n", "[hello] !SYNTAX"),
    BAD_CHUNKS("5\r\nhello\r0", "[hello] !SYNTAX"),
    BAD_CHUNKS("5\r\nhello\r\r\n", "[hello] !SYNTAX"),
    BAD_CHUNKS("5\r\nhello\r", "[hello] ..."),
    BAD_CHUNKS(" 5\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("5 \r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("5\t;a\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("+5\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("-5\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("0x5\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("5g\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("5,\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS(";a\r\n", "!SYNTAX"),
    BAD_CHUNKS("@\r\n", "!SYNTAX"),
    BAD_CHUNKS("`\r\n", "!SYNTAX"),
    BAD_CHUNKS("\x10\r\n", "!SYNTAX"),
    BAD_CHUNKS("00000000000000005\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("10000000000000000\r\n", "!SYNTAX"),
    BAD_CHUNKS("5;a\nb\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("5;\0\r\nhello\r\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\n\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\nX", "..."),
    BAD_CHUNKS("0\r\nX\r\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\nX : y\r\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\n X: y\r\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\nX: y\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\nGET / HTTP/1.1\r\n", "!SYNTAX"),
    BAD_CHUNKS("0\r\ncontent-length: 5\r\n", "!AMBIGUOUS"),
    BAD_CHUNKS("0\r\nA: b\r\nTRANSFER-ENCODING: chunked\r\n", "!AMBIGUOUS"),
};

static void test_bad_chunks(void **state)
{
    (void)state;
    CHECK_ROWS(REQUESTS, OTHER, bad_chunks);
}

static const struct row answers[] = {
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.0 500 \r\nContent-Length: "
        "1\r\n\r\nx"),
        "200 OK 2 keep [hi] end 500  1 once [x] end"},
    {IN("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), "200  none keep end"},
    {IN("HTTP/1.1 200 OK, \xC3\xA4 fine\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
        "200 OK, \xC3\xA4 fine chunked keep [x] end"},
    {IN("HTTP/1.1 200 OK\r\nHost: a\r\nHost: b\r\n\r\nto the end"),
        "200 OK close once [to the end] ..."},
    {IN("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"), "200 OK close once ..."},
    {IN("HTTP/1.1 999 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "999  none once end"},
    {IN("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
        "100 Continue none keep end 103 Early Hints none keep end 202 Accepted none keep end"},
    {IN("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n"), "100 Continue none keep end"},
    {IN("HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n"), "!AMBIGUOUS"},
    {IN("HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n"), "!AMBIGUOUS"},
    {IN("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "!UNSUPPORTED"},
    {IN("HTTP/1.1 204 No Content\r\n\r\n"), "204 No Content none keep end"},
    {IN("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), "204 No Content none keep end"},
    {IN("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "204 No Content none once end"},
    {IN("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
        "304 Not Modified none keep end"},
    /* bad ones */
    {IN("\r\nHTTP/1.1 200 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 099 Low\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 20 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 2000 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 2000\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 +20 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1  200 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1\t200 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 200\tOK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.2 200 OK\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/2 200\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 \r\n\r\n"), "!SYNTAX"},
    {IN("GET / HTTP/1.1\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 200 OK\nX: y\r\n\r\n"), "!SYNTAX"},
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "!AMBIGUOUS"},
    {IN("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), "!AMBIGUOUS"},
    {IN("HTTP/1.1 304 N\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "!AMBIGUOUS"},
};

/* The method of the request decides; after a final answer it is forgotten. */
static const struct row answers_to_head[] = {
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "200 OK none keep end"},
    {IN("HTTP/1.1 200 OK\r\n\r\n"), "200 OK none keep end"},
    {IN("HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        "103 E none keep end 200 OK none keep end 200 OK 1 keep [x] end"},
};

static const struct row answers_to_connect[] = {
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "200 OK none once end"},
    {IN("HTTP/1.1 103 E\r\n\r\n"), "103 E none keep end"},
    {IN("HTTP/1.1 407 P\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"),
        "407 P 1 once [x] end"},
};

static void test_answers(void **state)
{
    (void)state;
    CHECK_ROWS(RESPONSES, OTHER, answers);
    CHECK_ROWS(RESPONSES, POST, answers);
    CHECK_ROWS(RESPONSES, HEAD, answers_to_head);
    CHECK_ROWS(RESPONSES, CONNECT, answers_to_connect);
}

/* --- heads in detail --- */

static void test_fields_of_a_head(void **state)
{
    (void)state;
    static const char in[] = "POST /mcp HTTP/1.1\r\nHOST: a:1\r\nX-One:  two\t\r\n"
                             "Mcp-Session-Id:s\r\nempty: \r\n\r\n";
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_int_equal(lp_http1_feed(&p, lp_span(in, sizeof in - 1), &item), sizeof in - 1);
    const struct lp_head *head = item.head;
    assert_ptr_equal(head, &shared_head);
    assert_true(head->is_request);
    assert_int_equal(head->method, LP_METHOD_POST);
    assert_int_equal(head->minor, 1);
    assert_int_equal(head->field_count, 4);
    assert_true(lp_span_eq(head->fields[0].name, LP_SPAN("HOST")));
    assert_true(lp_span_eq(lp_head_value(head, LP_FIELD_HOST), LP_SPAN("a:1")));
    assert_int_equal(head->fields[1].id, LP_FIELD_OTHER);
    assert_true(lp_span_eq(head->fields[1].value, LP_SPAN("two")));
    assert_true(lp_span_eq(lp_head_value(head, LP_FIELD_MCP_SESSION_ID), LP_SPAN("s")));
    assert_int_equal(head->fields[3].value.len, 0);
    assert_non_null(head->fields[3].value.ptr);
    lp_http1_release(&p);
}

/* Whole in one span: no allocation, spans into the fed bytes. In pieces: one copy, which lives
 * until the next feed and not longer. */
static void test_what_is_copied(void **state)
{
    (void)state;
    static const char in[] = "\r\nGET /abc HTTP/1.1\r\nHost: a\r\n\r\n";
    struct lp_span bytes = lp_span(in, sizeof in - 1);
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_int_equal(lp_http1_feed(&p, bytes, &item), bytes.len);
    assert_ptr_equal(item.head->target.ptr, in + 6);
    assert_null(p.held.ptr);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN(""), &item), 0);
    assert_int_equal(item.kind, LP_HTTP1_END);

    assert_int_equal(lp_http1_feed(&p, lp_span(in, 12), &item), 12);
    assert_int_equal(item.kind, LP_HTTP1_NONE);
    assert_false(lp_http1_is_between(&p));
    assert_int_equal(lp_http1_feed(&p, lp_span_from(bytes, 12), &item), bytes.len - 12);
    assert_int_equal(item.kind, LP_HTTP1_HEAD);
    assert_non_null(p.held.ptr);
    assert_true(
        item.head->target.ptr >= p.held.ptr && item.head->target.ptr < p.held.ptr + p.held.cap);
    assert_true(lp_span_eq(item.head->target, LP_SPAN("/abc")));
    assert_false(lp_http1_is_between(&p));
    assert_int_equal(lp_http1_feed(&p, LP_SPAN(""), &item), 0);
    assert_int_equal(item.kind, LP_HTTP1_END);
    assert_null(p.held.ptr);
    assert_true(lp_http1_is_between(&p));
    lp_http1_release(&p);
}

/* A head is consumed to its end and no byte further, though more is there. */
static void test_consumes_no_more_than_the_head(void **state)
{
    (void)state;
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_int_equal(
        lp_http1_feed(&p, LP_SPAN("POST / HTTP/1.1\r\nHost: a\r\nContent-Le"), &item), 36);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN("ngth: 3\r\n\r\nabcdef"), &item), 11);
    assert_int_equal(item.kind, LP_HTTP1_HEAD);
    struct lp_span rest = LP_SPAN("abcdef");
    assert_int_equal(lp_http1_feed(&p, rest, &item), 3);
    assert_int_equal(item.kind, LP_HTTP1_BODY);
    assert_ptr_equal(item.body.ptr, rest.ptr);
    assert_int_equal(lp_http1_feed(&p, lp_span_from(rest, 3), &item), 0);
    assert_int_equal(item.kind, LP_HTTP1_END);
    lp_http1_release(&p);
}

/* --- limits --- */

/* A request head of exactly `len` bytes. */
static struct lp_span head_of_length(char *room, size_t len)
{
    static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    memset(room, 'x', len);
    memcpy(room, start, sizeof start - 1);
    memcpy(room + len - 4, "\r\n\r\n", 4);
    return lp_span(room, len);
}

static ptrdiff_t feed_head(size_t head_max, struct lp_span bytes, size_t piece)
{
    struct lp_http1 p;
    struct lp_http1_item item = {.kind = LP_HTTP1_NONE};
    ptrdiff_t n = 0;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    p.head_max = head_max;
    while (bytes.len && n >= 0 && item.kind == LP_HTTP1_NONE) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        n = lp_http1_feed(&p, lp_span(bytes.ptr, len), &item);
        bytes = lp_span_from(bytes, len);
    }
    lp_http1_release(&p);
    return n < 0 ? n : (ptrdiff_t)item.kind;
}

static void test_head_max(void **state)
{
    (void)state;
    static char room[LP_HTTP1_HEAD_MAX + 1];
    for (size_t piece = 1; piece < 200; piece += 9) {
        assert_int_equal(feed_head(100, head_of_length(room, 100), piece), LP_HTTP1_HEAD);
        assert_int_equal(feed_head(100, head_of_length(room, 101), piece), LP_ETOO_LONG);
        /* refused when the limit is reached, not when the end comes */
        assert_int_equal(
            feed_head(100, lp_span(head_of_length(room, 900).ptr, 100), piece), LP_ETOO_LONG);
    }
    size_t max = LP_HTTP1_HEAD_MAX;
    assert_int_equal(feed_head(max, head_of_length(room, max), max), LP_HTTP1_HEAD);
    assert_int_equal(feed_head(max, head_of_length(room, max), 1000), LP_HTTP1_HEAD);
    assert_int_equal(feed_head(max, head_of_length(room, max + 1), max + 1), LP_ETOO_LONG);
    assert_int_equal(feed_head(max, head_of_length(room, max + 1), 1000), LP_ETOO_LONG);
}

/* The limit may be lowered below what is held already. */
static void test_head_max_lowered(void **state)
{
    (void)state;
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN("GET /0123456789"), &item), 15);
    p.head_max = 10;
    assert_int_equal(lp_http1_feed(&p, LP_SPAN(" HTTP/1.1\r\n"), &item), LP_ETOO_LONG);
    assert_null(p.held.ptr);
}

static void test_field_count(void **state)
{
    (void)state;
    for (int count = LP_HEAD_FIELDS_MAX; count <= LP_HEAD_FIELDS_MAX + 1; count++) {
        struct lp_buf in;
        lp_buf_init(&in, 10000);
        assert_int_equal(lp_buf_append(&in, LP_SPAN("GET / HTTP/1.1\r\nHost: a\r\n")), LP_OK);
        for (int i = 1; i < count; i++)
            assert_int_equal(lp_buf_printf(&in, "X-%d: y\r\n", i), LP_OK);
        assert_int_equal(lp_buf_append(&in, LP_SPAN("\r\n")), LP_OK);
        ptrdiff_t want = count == LP_HEAD_FIELDS_MAX ? LP_HTTP1_HEAD : LP_ETOO_LONG;
        assert_int_equal(feed_head(LP_HTTP1_HEAD_MAX, lp_buf_span(&in), in.len), want);
        lp_buf_release(&in);
    }
}

/* What `line_len` bytes of a chunk line (with CRLF) give after the head of a chunked request. */
static ptrdiff_t feed_chunk_line(size_t line_len, size_t piece)
{
    static char line[2 * LP_HTTP1_CHUNK_LINE_MAX];
    struct lp_http1 p;
    struct lp_http1_item item;
    memset(line, 'e', sizeof line);
    memcpy(line, "1;", 2);
    memcpy(line + line_len - 2, "\r\n", 2);
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    ptrdiff_t n = lp_http1_feed(&p, LP_SPAN(CHUNKED), &item);
    for (size_t at = 0; at < line_len && n >= 0; at += piece)
        n = lp_http1_feed(
            &p, lp_span(line + at, piece < line_len - at ? piece : line_len - at), &item);
    int state = p.state;
    lp_http1_release(&p);
    return n < 0 ? n : state;
}

static void test_chunk_line_max(void **state)
{
    (void)state;
    size_t max = LP_HTTP1_CHUNK_LINE_MAX;
    for (size_t piece = 500; piece <= 5000; piece += 1500) {
        assert_int_equal(feed_chunk_line(max, piece), LP_HTTP1_IN_CHUNK_DATA);
        assert_int_equal(feed_chunk_line(max + 1, piece), LP_ETOO_LONG);
        assert_int_equal(feed_chunk_line(max + 999, piece), LP_ETOO_LONG);
    }
}

static ptrdiff_t feed_trailers(size_t head_max, struct lp_span trailers)
{
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    p.head_max = head_max;
    ptrdiff_t n = lp_http1_feed(&p, LP_SPAN(CHUNKED), &item);
    if (n >= 0)
        n = lp_http1_feed(&p, LP_SPAN("0\r\n"), &item);
    if (n >= 0)
        n = lp_http1_feed(&p, trailers, &item);
    lp_http1_release(&p);
    return n < 0 ? n : (ptrdiff_t)item.kind;
}

/* All trailers of a message together may be as long as a head. */
static void test_trailers_max(void **state)
{
    (void)state;
    struct lp_span trailers = LP_SPAN("A: 01234567890123456789012345\r\n"
                                      "B: 01234567890123456789012345678901\r\n\r\n");
    assert_int_equal(trailers.len, 70);
    assert_int_equal(feed_trailers(70, trailers), LP_HTTP1_END);
    assert_int_equal(feed_trailers(69, trailers), LP_ETOO_LONG);
    assert_int_equal(feed_trailers(68, trailers), LP_ETOO_LONG);
}

/* --- the end of the connection, and after an error --- */

static void check_eof(enum lp_http1_side side, struct lp_span in, int want, bool want_ended)
{
    struct lp_http1 p;
    struct verdict v = {.len = 0};
    bool ended = false;
    lp_http1_init(&p, side, &shared_head);
    judge(&p, in, &v);
    int err = lp_http1_eof(&p, &ended);
    if (err != want || ended != want_ended)
        fail_msg("\n%.*s\n--- gave %s, %d", (int)in.len, in.ptr, lp_error_name(err), ended);
    assert_null(p.held.ptr);
}

static void test_eof(void **state)
{
    (void)state;
    enum lp_http1_side requests = LP_HTTP1_REQUESTS, responses = LP_HTTP1_RESPONSES;
    check_eof(requests, LP_SPAN(""), LP_OK, false);
    check_eof(requests, LP_SPAN("\r\n"), LP_OK, false);
    check_eof(requests, LP_SPAN("GET / HTTP/1.1\r\n" H "\r\n"), LP_OK, false);
    check_eof(requests, LP_SPAN("GET / HTTP/1.1\r\n" H), LP_EBROKEN, false);
    check_eof(requests, LP_SPAN(CHUNKED), LP_EBROKEN, false);
    check_eof(requests, LP_SPAN(CHUNKED "5\r\nhel"), LP_EBROKEN, false);
    check_eof(requests, LP_SPAN(CHUNKED "0\r\n"), LP_EBROKEN, false);
    check_eof(
        responses, LP_SPAN("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"), LP_EBROKEN, false);
    check_eof(responses, LP_SPAN("HTTP/1.1 200 OK\r\n\r\nsome"), LP_OK, true);
    check_eof(responses, LP_SPAN("HTTP/1.1 200 OK\r\n\r\n"), LP_OK, true);
    check_eof(responses, LP_SPAN("junk\n"), LP_EBROKEN, false);
}

/* END not fetched yet: the message has ended all the same. */
static void test_eof_before_end(void **state)
{
    (void)state;
    struct lp_http1 p;
    struct lp_http1_item item;
    bool ended = false;
    lp_http1_init(&p, LP_HTTP1_RESPONSES, &shared_head);
    assert_true(lp_http1_feed(&p, LP_SPAN("HTTP/1.1 204 \r\n\r\n"), &item) > 0);
    assert_int_equal(lp_http1_eof(&p, &ended), LP_OK);
    assert_true(ended);
}

static void test_dead_after_an_error(void **state)
{
    (void)state;
    struct lp_http1 p;
    struct lp_http1_item item;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN("GET"), &item), 3);
    assert_non_null(p.held.ptr);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN("\n"), &item), LP_ESYNTAX);
    assert_null(p.held.ptr);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN("GET / HTTP/1.1\r\n" H "\r\n"), &item), LP_ESYNTAX);
    assert_int_equal(lp_http1_feed(&p, LP_SPAN(""), &item), LP_ESYNTAX);
    assert_false(lp_http1_is_between(&p));
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &shared_head);
    assert_true(lp_http1_feed(&p, LP_SPAN("GET / HTTP/1.1\r\n" H "\r\n"), &item) > 0);
    lp_http1_release(&p);
}

/* --- writing --- */

static void check_written(const struct lp_head *head, const char *want)
{
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    assert_int_equal(lp_buf_append(&out, LP_SPAN(">")), LP_OK);
    assert_int_equal(lp_http1_write_head(&out, head), LP_OK);
    struct lp_span got = lp_span_from(lp_buf_span(&out), 1);
    if (!lp_span_eq(got, lp_span_str(want)))
        fail_msg("wrote:\n%.*s--- not:\n%s", (int)got.len, got.ptr, want);
    lp_buf_release(&out);
}

static struct lp_head *request(const char *method)
{
    static struct lp_head head;
    memset(&head, 0, sizeof head);
    head.is_request = true;
    head.method_name = lp_span_str(method);
    head.method = lp_method_lookup(head.method_name);
    head.target = LP_SPAN("/x");
    head.keep_alive = true;
    return &head;
}

static struct lp_head *answer(uint16_t status)
{
    struct lp_head *head = request("");
    head->is_request = false;
    head->status = status;
    head->reason = lp_http1_phrase(status);
    return head;
}

static void test_write_requests(void **state)
{
    (void)state;
    struct lp_head *head = request("GET");
    check_written(head, "GET /x HTTP/1.1\r\n\r\n");
    assert_int_equal(lp_head_add(head, LP_FIELD_CONTENT_LENGTH, LP_SPAN("9")), LP_OK);
    assert_int_equal(lp_head_add_other(head, LP_SPAN("X-Y"), LP_SPAN("z")), LP_OK);
    assert_int_equal(lp_head_add_other(head, LP_SPAN("TRANSFER-ENCODING"), LP_SPAN("x")), LP_OK);
    assert_int_equal(lp_head_add(head, LP_FIELD_CONNECTION, LP_SPAN("close")), LP_OK);
    assert_int_equal(lp_head_add(head, LP_FIELD_HOST, LP_SPAN("")), LP_OK);
    check_written(head, "GET /x HTTP/1.1\r\nX-Y: z\r\nhost: \r\n\r\n");
    check_written(request("POST"), "POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    check_written(request("PUT"), "PUT /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    check_written(request("PATCH"), "PATCH /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    check_written(request("DELETE"), "DELETE /x HTTP/1.1\r\n\r\n");
    head = request("POST");
    head->body = LP_BODY_LENGTH;
    head->body_bytes = UINT64_MAX;
    check_written(head, "POST /x HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n");
    head->body = LP_BODY_CHUNKED;
    head->keep_alive = false;
    head->minor = 0;
    check_written(
        head, "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
}

static void test_write_answers(void **state)
{
    (void)state;
    check_written(answer(200), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    check_written(answer(299), "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n");
    check_written(answer(100), "HTTP/1.1 100 Continue\r\n\r\n");
    check_written(answer(204), "HTTP/1.1 204 No Content\r\n\r\n");
    check_written(answer(304), "HTTP/1.1 304 Not Modified\r\n\r\n");
    struct lp_head *head = answer(200);
    head->method = LP_METHOD_HEAD;
    check_written(head, "HTTP/1.1 200 OK\r\n\r\n");
    head->body = LP_BODY_UNTIL_CLOSE;
    check_written(head, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

static void check_refused(const struct lp_head *head)
{
    struct lp_buf out;
    lp_buf_init(&out, 4096);
    assert_int_equal(lp_http1_write_head(&out, head), LP_ESYNTAX);
    assert_int_equal(out.len, 0);
    lp_buf_release(&out);
}

static void test_write_refuses_what_would_not_parse(void **state)
{
    (void)state;
    struct lp_head *head = request("GET");
    assert_int_equal(lp_head_add(head, LP_FIELD_MCP_NAME, LP_SPAN("a\r\nX: y")), LP_OK);
    check_refused(head);
    head = request("GET");
    assert_int_equal(lp_head_add_other(head, LP_SPAN("a: b\r\nc"), LP_SPAN("d")), LP_OK);
    check_refused(head);
    head = request("GET");
    assert_int_equal(lp_head_add_other(head, LP_SPAN(""), LP_SPAN("d")), LP_OK);
    check_refused(head);
    head = request("GET");
    head->target = LP_SPAN("/ HTTP/1.1");
    check_refused(head);
    head->target = LP_SPAN("/\t");
    check_refused(head);
    head->target = LP_SPAN("");
    check_refused(head);
    head->target = LP_SPAN("/\n");
    check_refused(head);
    check_refused(request(""));
    check_refused(request("G T"));
    head = answer(200);
    head->reason = LP_SPAN("OK\r");
    check_refused(head);
    check_refused(answer(99));
    check_refused(answer(1000));
}

static void test_write_is_all_or_nothing(void **state)
{
    (void)state;
    static const char want[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct lp_buf out;
    lp_buf_init(&out, sizeof want - 2);
    assert_int_equal(lp_http1_write_head(&out, answer(200)), LP_ELIMIT);
    assert_int_equal(out.len, 0);
    lp_buf_release(&out);
    lp_buf_init(&out, sizeof want - 1);
    assert_int_equal(lp_http1_write_head(&out, answer(200)), LP_OK);
    assert_int_equal(out.len, sizeof want - 1);
    lp_buf_release(&out);
}

static void test_chunk_lines(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        const char *want;
    } rows[] = {{1, "1\r\n"}, {15, "f\r\n"}, {16, "10\r\n"}, {0xABCDEF0, "abcdef0\r\n"},
        {UINT64_MAX, "ffffffffffffffff\r\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[LP_HTTP1_CHUNK_LINE_BYTES];
        struct lp_span got = lp_span(line, lp_http1_chunk_line(line, rows[i].n));
        assert_true(lp_span_eq(got, lp_span_str(rows[i].want)));
    }
}

static void test_phrases(void **state)
{
    (void)state;
    assert_true(lp_span_eq(lp_http1_phrase(200), LP_SPAN("OK")));
    assert_true(lp_span_eq(lp_http1_phrase(431), LP_SPAN("Request Header Fields Too Large")));
    assert_int_equal(lp_http1_phrase(299).len, 0);
    assert_int_equal(lp_http1_phrase(0).len, 0);
    for (unsigned status = 0; status < 1000; status++)
        assert_true(lp_field_is_value(lp_http1_phrase((uint16_t)status)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_requests),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_bad_framing),
        cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_fields_of_a_head),
        cmocka_unit_test(test_what_is_copied),
        cmocka_unit_test(test_consumes_no_more_than_the_head),
        cmocka_unit_test(test_head_max),
        cmocka_unit_test(test_head_max_lowered),
        cmocka_unit_test(test_field_count),
        cmocka_unit_test(test_chunk_line_max),
        cmocka_unit_test(test_trailers_max),
        cmocka_unit_test(test_eof),
        cmocka_unit_test(test_eof_before_end),
        cmocka_unit_test(test_dead_after_an_error),
        cmocka_unit_test(test_write_requests),
        cmocka_unit_test(test_write_answers),
        cmocka_unit_test(test_write_refuses_what_would_not_parse),
        cmocka_unit_test(test_write_is_all_or_nothing),
        cmocka_unit_test(test_chunk_lines),
        cmocka_unit_test(test_phrases),
    };
    return cmocka_run_group_tests_name("http1", tests, NULL, NULL);
}
