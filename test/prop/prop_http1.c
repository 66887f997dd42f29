/* Laws of the HTTP/1 parser and writer: any split of the input gives the same items and the same
 * verdict, and a written head parses back to itself (that law is checked on every head by the
 * transcript). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "http1_transcript.h"

struct sample {
    enum lp_http1_side side;
    enum lp_method answered;
    struct lp_span bytes;
};

#define REQUEST(s)                                                                                 \
    {                                                                                              \
        LP_HTTP1_REQUESTS, LP_METHOD_GET,                                                          \
        {                                                                                          \
            s, sizeof(s) - 1                                                                       \
        }                                                                                          \
    }
#define ANSWER(s)                                                                                  \
    {                                                                                              \
        LP_HTTP1_RESPONSES, LP_METHOD_GET,                                                         \
        {                                                                                          \
            s, sizeof(s) - 1                                                                       \
        }                                                                                          \
    }
#define ANSWER_TO(method, s)                                                                       \
    {                                                                                              \
        LP_HTTP1_RESPONSES, LP_METHOD_##method,                                                    \
        {                                                                                          \
            s, sizeof(s) - 1                                                                       \
        }                                                                                          \
    }

static const struct sample samples[] = {
    REQUEST("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REQUEST("\r\n\r\nGET / HTTP/1.1\r\nHost:\ta \r\n\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"),
    REQUEST("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-Continue\r\n\r\n"
            "hello world"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            "5\r\nhello\r\n6;a=b;c=\"d e\"\r\n world\r\n000\r\nX-Sum: 1\r\nY:\r\n\r\n"
            "DELETE /x HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\nGET / HTTP/1.1\r\n"
            "Host: a\r\nX: \x80\xFF\t ~\r\n\r\n"),
    REQUEST("OPTIONS * HTTP/1.1\r\nHost:\r\nA:\r\nB: \r\nC:x\r\nEmpty-Value:   \t \r\n\r\n"),
    REQUEST("GET http://h/ HTTP/1.0\r\nConnection: Keep-Alive\r\nExpect: 100-continue\r\n\r\n"),
    REQUEST("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    REQUEST("GET / HTTP/1.1\nHost: a\n\n"),
    REQUEST("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    REQUEST("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"),
    REQUEST("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"),
    REQUEST("GET / HTTP/1.1\r\nHost : a\r\nX: \001\r\n\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
            "0\r\n\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nBad Name: 1\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n"),
    REQUEST("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nshort"),
    REQUEST("POST / HTTP/1.1\r\nHost: a\r"),
    REQUEST("\x16\x03\x01\x02\x00\x01\x00"),
    ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204\r\n\r\n"),
    ANSWER("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n0\r\n\r\n"),
    ANSWER("HTTP/1.0 200 Fine, thanks\r\nServer: x\r\n\r\nuntil the\r\n\r\nend"),
    ANSWER("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
    ANSWER_TO(HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nHTTP/1.1 404 \r\n\r\n"),
    ANSWER_TO(CONNECT, "HTTP/1.1 200 OK\r\n\r\n"),
    ANSWER("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    ANSWER("HTTP/1.1 99 Low\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12"),
    ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    ANSWER("\r\nHTTP/1.1 200 OK\r\n\r\n"),
};

enum { SAMPLE_COUNT = sizeof samples / sizeof samples[0] };

/* Small limits too, so that "too long" falls into the middle of things. */
static const size_t head_maxes[] = {LP_HTTP1_HEAD_MAX, 40, 26};

static void compare(
    const struct transcript *want, struct transcript *got, const char *how, uint64_t which)
{
    struct lp_span a = lp_buf_span(&want->text), b = lp_buf_span(&got->text);
    if (!lp_span_eq(a, b))
        fail_msg("%s (%llu) differs:\n%.*s\n--- instead of\n%.*s", how, (unsigned long long)which,
            (int)b.len, b.ptr, (int)a.len, a.ptr);
    lp_buf_release(&got->text);
}

/* For every sample and limit: the transcript of the whole against those of `check`. */
static void for_each_sample(
    void (*check)(const struct transcript_setup *, struct lp_span, const struct transcript *))
{
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        for (size_t m = 0; m < sizeof head_maxes / sizeof head_maxes[0]; m++) {
            struct transcript_setup setup = {samples[i].side, samples[i].answered, head_maxes[m]};
            struct transcript whole;
            transcribe(&whole, &setup, samples[i].bytes, (struct cuts){0});
            check(&setup, samples[i].bytes, &whole);
            lp_buf_release(&whole.text);
        }
}

static void check_two_way(
    const struct transcript_setup *setup, struct lp_span bytes, const struct transcript *whole)
{
    for (size_t cut = 1; cut < bytes.len; cut++) {
        struct transcript got;
        transcribe(&got, setup, bytes, (struct cuts){.kind = CUT_AT, .at = cut});
        compare(whole, &got, "cut at", cut);
    }
}

static void check_one_byte(
    const struct transcript_setup *setup, struct lp_span bytes, const struct transcript *whole)
{
    struct transcript got;
    transcribe(&got, setup, bytes, (struct cuts){.kind = CUT_BYTES});
    compare(whole, &got, "byte by byte", 0);
}

static void check_random(
    const struct transcript_setup *setup, struct lp_span bytes, const struct transcript *whole)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct transcript got;
        transcribe(&got, setup, bytes, (struct cuts){.kind = CUT_RANDOM, .seed = seed});
        compare(whole, &got, "pieces by seed", seed);
    }
}

static void test_two_way_splits_change_nothing(void **state)
{
    (void)state;
    for_each_sample(check_two_way);
}

static void test_byte_by_byte_changes_nothing(void **state)
{
    (void)state;
    for_each_sample(check_one_byte);
}

static void test_random_splits_change_nothing(void **state)
{
    (void)state;
    for_each_sample(check_random);
}

/* The laws would hold of a parser that refuses everything: most samples must get somewhere. */
static void test_samples_are_not_all_refused(void **state)
{
    (void)state;
    int ended = 0, failed = 0;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        struct transcript_setup setup = {samples[i].side, samples[i].answered, LP_HTTP1_HEAD_MAX};
        struct transcript t;
        transcribe(&t, &setup, samples[i].bytes, (struct cuts){0});
        struct lp_span text = lp_buf_span(&t.text);
        ended += lp_span_search(text, LP_SPAN("\nend\n")) < text.len;
        failed += t.failed;
        lp_buf_release(&t.text);
    }
    assert_int_equal(ended, 12);
    assert_int_equal(failed, 18);
}

/* --- random heads: what the writer writes, the parser reads --- */

static const char token_bytes[] = "abcXYZ019!#$%&'*+-.^_`|~";
static const char value_bytes[] = "aZ09 \t,;=\"\\:/?()<>@[]{}\x80\xC3\xFF~!";

static struct lp_span random_text(uint64_t *seed, char *room, size_t max, const char *alphabet)
{
    size_t n = draw(seed, max + 1);
    for (size_t i = 0; i < n; i++)
        room[i] = alphabet[draw(seed, strlen(alphabet))];
    return lp_span(room, n);
}

static struct lp_span random_token(uint64_t *seed, char *room)
{
    struct lp_span s = random_text(seed, room, 19, token_bytes);
    return s.len ? s : LP_SPAN("t");
}

static void add_random_fields(uint64_t *seed, struct lp_head *head, char room[][2][40])
{
    for (size_t i = draw(seed, 12); i > 0; i--) {
        /* Not the writer's own fields, and the ones with a meaning for the parser only below. */
        enum lp_field_id id =
            LP_FIELD_PROXY_CONNECTION + draw(seed, LP_FIELD_count - LP_FIELD_PROXY_CONNECTION);
        struct lp_span value = lp_span_trim(random_text(seed, room[i][1], 40, value_bytes));
        int err = draw(seed, 2) ? lp_head_add(head, id, value)
                                : lp_head_add_other(head, random_token(seed, room[i][0]), value);
        assert_int_equal(err, LP_OK);
    }
}

static void random_request(uint64_t *seed, struct lp_head *head, char room[][2][40])
{
    head->is_request = true;
    head->method_name = random_token(seed, room[12][0]);
    if (draw(seed, 2))
        head->method_name = LP_SPAN("POST");
    head->method = lp_method_lookup(head->method_name);
    head->target = random_token(seed, room[12][1]);
    assert_int_equal(lp_head_add(head, LP_FIELD_HOST, LP_SPAN("h:1")), LP_OK);
}

static void random_answer(uint64_t *seed, struct lp_head *head, char room[][2][40])
{
    head->method = draw(seed, 4) ? LP_METHOD_GET : LP_METHOD_HEAD;
    head->status = (uint16_t)(102 + draw(seed, 898));
    head->reason = random_text(seed, room[12][1], 39, value_bytes);
}

static bool may_have_body(const struct lp_head *head)
{
    return head->is_request ||
        (head->method != LP_METHOD_HEAD && head->status >= 200 && head->status != 204 &&
            head->status != 304);
}

static void random_framing(uint64_t *seed, struct lp_head *head)
{
    head->minor = 1;
    head->keep_alive = draw(seed, 2);
    if (!may_have_body(head))
        return;
    head->body = draw(seed, head->is_request ? 3 : 4);
    if (head->body == LP_BODY_LENGTH)
        head->body_bytes = UINT64_MAX >> draw(seed, 64);
    if (head->body == LP_BODY_UNTIL_CLOSE)
        head->keep_alive = false;
}

static void test_random_heads_parse_back(void **state)
{
    (void)state;
    static struct lp_head head;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        char room[13][2][40];
        uint64_t r = seed;
        memset(&head, 0, sizeof head);
        if (seed % 2)
            random_request(&r, &head, room);
        else
            random_answer(&r, &head, room);
        add_random_fields(&r, &head, room);
        random_framing(&r, &head);
        struct lp_span expect = lp_head_value(&head, LP_FIELD_EXPECT);
        assert_false(lp_span_ieq(expect, LP_SPAN("100-continue")));
        check_written(&head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_way_splits_change_nothing),
        cmocka_unit_test(test_byte_by_byte_changes_nothing),
        cmocka_unit_test(test_random_splits_change_nothing),
        cmocka_unit_test(test_samples_are_not_all_refused),
        cmocka_unit_test(test_random_heads_parse_back),
    };
    return cmocka_run_group_tests_name("prop_http1", tests, NULL, NULL);
}
