/* Laws of the event reader, writer and border tracker: any split of the input gives the same events
 * at the same places, they are those of a plain reading of the standard, and a written event reads
 * back as itself (checked on every event by the transcript). Cases PAR-02, PAR-03. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "sse_transcript.h"

enum { OUT_MAX = 1 << 20, ROUNDS = 3000, EVENT_MAX = 40 };

static const struct lp_span samples[] = {{"", 0},
#define S(s) {s, sizeof(s) - 1},
    S("data: 1\n\ndata: 2\n\ndata: 3\n\n") S("data: 1\r\n\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n") S(
        "data: 1\r\rdata: 2\r\rdata: 3\r\r") S("data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\n")
        S("\r\n\r\n\n\r:c\r\r\n\n") S(
            "\xEF\xBB\xBF"
            "data: x\n\n\xEF\xBB\xBF"
            "data: y\n\n") S("\xEF\xBB\xBF\n\xEF\xBB\xBF\n") S("\xEF\xBB") S("\xEF\xBB"
                                                                             "data: x\n\n")
            S("id: 1\ndata:\n\nid: 2\ndata\n\nevent: message\ndata: {}\n\n:c\n\nid: 3\n\n") S(
                "retry: 10\nretry: x\ndata:  a\n\nretry: 99999999999999999999\nevent\ndata:b\n\n")
                S("id: 1\ndata: {\"ok\":1}\n\nid: 2\ndata: {\"cut\":1}") S("data: 1\n\r")
                    S("data: 2\r") S(
                        "data: "
                        "0123456789012345678901234567890123456789"
                        "\n\n") S("data: 01234567890123456789\ndata: 012345678901234567\ndata\n\n")
                        S(": 01234567890123456789012345678901234567890123456789\n\n")
                            S("id: a\0b\ndata: \0\n\nid: c\n\nid\n\nfoo: 1\n\n: only a comment\n\n")
#undef S
};

static const struct lp_span fragments[] = {
#define S(s) {s, sizeof(s) - 1},
    S("data") S("event") S("id") S("retry") S("Data") S(":") S(":") S(": ") S(":  ") S("\n") S("\n")
        S("\n\n") S("\r") S("\r") S("\r\r") S("\r\n") S("\r\n\r\n") S("\xEF\xBB\xBF") S("1") S("x")
            S("\0") S("{\"a\":[1,2]}") S("0123456789012345678901234567890123456789") S(" ")
                S("\n\r")
#undef S
};

static size_t count_fragments(void)
{
    return sizeof fragments / sizeof fragments[0];
}

static void render(struct lp_span in, struct cuts cuts, size_t event_max, struct lp_buf *out)
{
    lp_buf_init(out, OUT_MAX);
    sse_transcript(in, cuts, event_max, out);
    border_transcript(in, cuts, out);
}

static void check_cuts(struct lp_span in, struct cuts cuts, size_t event_max)
{
    struct lp_buf whole, parts;
    render(in, (struct cuts){CUT_NONE, 0, 0}, event_max, &whole);
    render(in, cuts, event_max, &parts);
    if (!lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts))) {
        print_message("whole: %.*s\nparts: %.*s\n", (int)whole.len, lp_buf_span(&whole).ptr,
            (int)parts.len, lp_buf_span(&parts).ptr);
        fail_msg("split %d at %zu seed %llu differs", (int)cuts.kind, cuts.at,
            (unsigned long long)cuts.seed);
    }
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

static void check_reference(struct lp_span in)
{
    struct lp_buf ours, plain;
    lp_buf_init(&ours, OUT_MAX);
    lp_buf_init(&plain, OUT_MAX);
    sse_transcript(in, (struct cuts){CUT_NONE, 0, 0}, OUT_MAX, &ours);
    sse_reference(in, &plain);
    if (!lp_span_eq(lp_buf_span(&ours), lp_buf_span(&plain)))
        fail_msg("in: %.*s\nours: %.*s\nplain: %.*s", (int)in.len, in.ptr, (int)ours.len,
            lp_buf_span(&ours).ptr, (int)plain.len, lp_buf_span(&plain).ptr);
    lp_buf_release(&ours);
    lp_buf_release(&plain);
}

static void test_samples_any_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct lp_span in = samples[i];
        check_reference(in);
        for (size_t max = EVENT_MAX; max <= 1000; max += 960) {
            check_cuts(in, (struct cuts){CUT_BYTES, 0, 0}, max);
            for (size_t at = 1; at < in.len; at++)
                check_cuts(in, (struct cuts){CUT_AT, at, 0}, max);
            for (uint64_t seed = 1; seed <= 20; seed++)
                check_cuts(in, (struct cuts){CUT_RANDOM, 0, seed}, max);
        }
    }
}

static struct lp_span make_stream(uint64_t *seed, char *room, size_t room_len)
{
    size_t len = 0;
    for (size_t count = draw(seed, 40); count > 0; count--) {
        struct lp_span f = fragments[draw(seed, count_fragments())];
        if (f.len > room_len - len)
            break;
        memcpy(room + len, f.ptr, f.len);
        len += f.len;
    }
    return lp_span(room, len);
}

static void test_generated_streams(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char room[1024];
        uint64_t seed = round * 7919;
        struct lp_span in = make_stream(&seed, room, sizeof room);
        check_reference(in);
        check_cuts(in, (struct cuts){CUT_BYTES, 0, 0}, EVENT_MAX);
        check_cuts(in, (struct cuts){CUT_BYTES, 0, 0}, 1000);
        check_cuts(in, (struct cuts){CUT_RANDOM, 0, seed}, EVENT_MAX);
        check_cuts(in, (struct cuts){CUT_RANDOM, 0, seed + 1}, 1000);
    }
}

/* A border is where an empty line ends: the tracker's last one is that of a plain look at it. */
static void test_border_is_an_empty_line(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char room[1024];
        uint64_t seed = round * 104729;
        struct lp_span in = make_stream(&seed, room, sizeof room);
        size_t expect = 0;
        for (size_t at = 0, next = 1; next; at = next)
            if (plain_line(in, at, &next).len == 0 && next)
                expect = next;
        struct lp_sse_border border;
        lp_sse_border_init(&border);
        if (lp_sse_border_feed(&border, in) != expect)
            fail_msg("round %llu: the border is not at %zu", (unsigned long long)round, expect);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_any_split),
        cmocka_unit_test(test_generated_streams),
        cmocka_unit_test(test_border_is_an_empty_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
