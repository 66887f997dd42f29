/* The JSON reader: what is JSON and what is not, where tokens lie, what strings mean, and each
 * place where our verdict is not that of jansson (wire/json.h; RFC 8259; case BOD-03). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/buf.h"
#include "wire/json.h"

static int verdict_of(struct lp_span text)
{
    struct lp_json reader;
    lp_json_init(&reader, NULL, NULL);
    int err = lp_json_feed(&reader, text);
    int end = lp_json_finish(&reader);
    assert_true(err == 0 || err == end);
    return end;
}

static bool jansson_accepts(struct lp_span text)
{
    json_t *value = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool is_good = value != NULL;
    json_decref(value);
    return is_good;
}

static const struct lp_span good[] = {
#define S(s) {s, sizeof(s) - 1},
    S("0") S("-0") S("1") S("-12") S("10") S("1.5") S("0.0") S("-0.00") S("1e5") S("1E5") S("1e+5")
        S("1e-05") S("1.25E+2") S("9007199254740993") S("true") S("false") S("null") S("\"\"")
            S("\"a\"") S("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"") S("\"\\u00e9\\u00E9\"") S("\"\x7F\"")
                S("\"\\ud83d\\ude00\"") S("\"'\"") S("\"/\"") S("\"\xE2\x80\xA8\"") S("\"\\u0000\"")
                    S("[]") S("[ ]") S("[1]") S("[1,2]") S("[[],[]]") S("[1 , \"a\" , null]")
                        S("{}") S("{ }") S("{\"a\":1}") S("{\"a\" : 1 , \"b\" : {}}")
                            S("{\"\":\"\"}") S("{\"a\":1,\"a\":2}") S(" \t\r\n1 \t\r\n") S("\n{}\n")
                                S("{\"a\":[{\"b\":[{}]}]}") S("[1e5,-0.1,2]") S("\"\xC2\x80\"")
                                    S("\"\xDF\xBF\"") S("\"\xE0\xA0\x80\"") S("\"\xED\x9F\xBF\"")
                                        S("\"\xEE\x80\x80\"") S("\"\xEF\xBF\xBF\"")
                                            S("\"\xF0\x90\x80\x80\"") S("\"\xF4\x8F\xBF\xBF\"")
                                                S("\"0123456\"") S("\"01234567\"")
                                                    S("\"012345678\xC3\xA9"
                                                      "01234567\\n01234567\"")
#undef S
};

static const struct lp_span bad[] = {
#define S(s) {s, sizeof(s) - 1},
    S("") S(" ") S("\n\t") S("-") S("+1") S("01") S("-01") S("00") S("1.") S(".5") S("-.5") S(
        "1.e5") S("1e") S("1e+") S("1e-") S("1e5.0") S("1.2.3") S("1-") S("1+1") S("--1") S("0x10")
        S("1a") S("NaN") S("Infinity") S("-Infinity") S("tru") S("truee") S("True") S("TRUE") S(
            "nul") S("nulll") S("fals") S("undefined") S("\"") S("\"a") S("\"\\\"") S("\"\\a\"")
            S("\"\\x41\"") S("\"\\'\"") S("\"\\u\"") S("\"\\u12\"") S("\"\\u12g4\"") S(
                "\"\\U0041\"") S("\"\\u+041\"") S("\"\\u 041\"") S("'a'") S("\"a\nb\"") S("\"\t\"")
                S("\"\0\"") S("\"\x1F\"") S("\"01234567\x1F"
                                            "01234567\"") S("[") S("[1") S("[1,") S("[1,]")
                    S("[,1]") S("[1,,2]") S("[1 2]") S("]") S("[}") S("[1}") S("{") S("{\"a\"") S(
                        "{\"a\":") S("{\"a\":1") S("{\"a\":1,") S("{\"a\":1,}") S("{,\"a\":1}")
                        S("{\"a\" 1}") S("{\"a\",1}") S("{\"a\"::1}") S("{a:1}") S("{1:1}") S(
                            "{'a':1}") S("{null:1}") S("{\"a\":1]") S("{]") S("}") S("{\"a\":}")
                            S("{\"a\":1 \"b\":2}") S("{[]:1}") S("{\"a\":1:2}") S("1 1") S(
                                "{} {}") S("[] x") S("{},") S("1,2") S("\"a\" \"b\"") S("{}\0")
                                S("\0") S("1\v") S("\f1") S("\xC2\xA0"
                                                            "1") S("/* */1") S("1//x") S("#1")
                                    S("[1;2]") S("\\u0031") S("=1") S("\"\x80\"") S("\"\xBF\"")
                                        S("\"\xC0\x80\"") S("\"\xC1\xBF\"") S("\"\xC2\"") S(
                                            "\"\xC2\xC0\"") S("\"\xE0\x9F\xBF\"") S("\"\xE2\x82\"")
                                            S("\"\xED\xA0\x80\"") S("\"\xED\xBF\xBF\"") S(
                                                "\"\xF0\x8F\xBF\xBF\"") S("\"\xF0\x9F\x98\"")
                                                S("\"\xF4\x90\x80\x80\"") S("\"\xF5\x80\x80\x80\"")
                                                    S("\"\xFE\"") S("\"\xFF\"") S("\"\xE9\"")
                                                        S("\"\xE2\\n\"") S("\xC3\xA9")
    /* BOD-03: marks of UTF-16 and UTF-32, a mark anywhere but at the very start, half a mark */
    S("\xFF\xFE{\0}\0") S("\xFE\xFF\0{\0}") S("\0\0\xFE\xFF") S(" \xEF\xBB\xBF{}")
        S("{}\xEF\xBB\xBF") S("\xEF\xBB\xBF\xEF\xBB\xBF{}") S("{\xEF\xBB\xBF}") S("\xEF\xBB{}")
            S("\xEF{}") S("\xEF\xBB\xBF") S("\xEF\xBB") S("\xEF")
#undef S
};

static void test_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (verdict_of(good[i]) != LP_OK)
            fail_msg("refused: %.*s", (int)good[i].len, good[i].ptr);
        if (!jansson_accepts(good[i]))
            fail_msg("jansson refuses: %.*s", (int)good[i].len, good[i].ptr);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (verdict_of(bad[i]) != LP_ESYNTAX)
            fail_msg("accepted: %.*s", (int)bad[i].len, bad[i].ptr);
        if (jansson_accepts(bad[i]))
            fail_msg("jansson accepts: %.*s", (int)bad[i].len, bad[i].ptr);
    }
}

/* Where the verdicts differ, each for a reason: jansson must hold values, we only pass them on. */
struct difference {
    struct lp_span text;
    const char *why;
};

static const struct difference only_we_accept[] = {
#define D(s, why) {{s, sizeof(s) - 1}, why},
    D("12345678901234567890", "an integer over 64 bits: RFC 8259 sets no limit, we convert nothing")
        D("-9223372036854775809", "the same below") D(
            "1e400", "a number over the range of double; the grammar has no range") D("\"\\ud83d\"",
            "a high surrogate alone: the grammar allows it, the peer decides (8.2)")
            D("\"\\ude00\"", "a low surrogate alone") D("\"\\ud83d\\ud83d\"", "two high surrogates")
                D("\"\\ud83dx\"", "a high surrogate before something else") D("{\"\\u0000\":1}",
                    "NUL in a name: jansson's names are C strings, JSON_ALLOW_NUL is for values")
                    D("\xEF\xBB\xBF{\"id\":3}",
                        "a leading UTF-8 mark is skipped here, as BOD-03 wants")
#undef D
};

static void test_differences_from_jansson(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof only_we_accept / sizeof only_we_accept[0]; i++) {
        const struct difference *d = &only_we_accept[i];
        if (verdict_of(d->text) != LP_OK || jansson_accepts(d->text))
            fail_msg("no longer different: %s", d->why);
    }
}

static size_t nest(char *room, size_t depth, char open, char close)
{
    memset(room, open, depth);
    memset(room + depth, close, depth);
    return 2 * depth;
}

/* The only thing that jansson accepts and we do not: it nests to 2048, we to LP_JSON_DEPTH_MAX. */
static void test_depth(void **state)
{
    (void)state;
    char room[2 * LP_JSON_DEPTH_MAX + 2];
    struct lp_span deepest = lp_span(room, nest(room, LP_JSON_DEPTH_MAX, '[', ']'));
    assert_int_equal(verdict_of(deepest), LP_OK);
    struct lp_span deeper = lp_span(room, nest(room, LP_JSON_DEPTH_MAX + 1, '[', ']'));
    assert_int_equal(verdict_of(deeper), LP_ELIMIT);
    assert_true(jansson_accepts(deeper));

    char objects[5 * (LP_JSON_DEPTH_MAX + 1)];
    for (size_t i = 0; i <= LP_JSON_DEPTH_MAX; i++)
        memcpy(objects + 5 * i, "{\"a\":", 5);
    assert_int_equal(verdict_of(lp_span(objects, 5 * LP_JSON_DEPTH_MAX)), LP_ESYNTAX);
    assert_int_equal(verdict_of(lp_span(objects, sizeof objects)), LP_ELIMIT);
}

/* The kind of each level is remembered, at every depth. */
static void test_brackets_match(void **state)
{
    (void)state;
    char room[4096];
    for (size_t depth = 1; depth < LP_JSON_DEPTH_MAX; depth++) {
        size_t len = 0;
        for (size_t i = 0; i < depth; i++)
            len += (size_t)snprintf(room + len, sizeof room - len, i % 3 ? "[" : "{\"a\":");
        room[len++] = '1';
        for (size_t i = depth; i-- > 0;)
            room[len++] = i % 3 ? ']' : '}';
        assert_int_equal(verdict_of(lp_span(room, len)), LP_OK);
        room[len - depth] = room[len - depth] == ']' ? '}' : ']';
        assert_int_equal(verdict_of(lp_span(room, len)), LP_ESYNTAX);
    }
}

struct seen {
    char text[2048];
    size_t len;
    struct lp_span in;
    size_t left; /* tokens until STOP; 0: never */
};

enum { STOP = 42 };

static int see(void *ctx, const struct lp_json_token *t)
{
    static const char letters[] = "{}[]ksntfz";
    struct seen *s = ctx;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%c%u%s%s<%.*s>",
        letters[t->kind], t->depth, t->has_escape ? "e" : "", t->is_integer ? "i" : "",
        (int)(t->end - t->begin), s->in.ptr + t->begin);
    return s->left && --s->left == 0 ? STOP : 0;
}

static void check_tokens(struct lp_span in, const char *expect)
{
    struct seen s = {.in = in};
    struct lp_json reader;
    lp_json_init(&reader, see, &s);
    assert_int_equal(lp_json_feed(&reader, in), LP_OK);
    assert_int_equal(lp_json_finish(&reader), LP_OK);
    assert_string_equal(s.text, expect);
}

static void test_tokens(void **state)
{
    (void)state;
    check_tokens(
        LP_SPAN("{\"id\": 12345678901234567890, \"p\\u0061\":[1.0,-0,1E2,true,false,null]}"),
        "{0<{>k1<\"id\">n1i<12345678901234567890>k1e<\"p\\u0061\">[1<[>n2<1.0>n2i<-0>n2<1E2>"
        "t2<true>f2<false>z2<null>]1<]>}0<}>");
    check_tokens(LP_SPAN("\xEF\xBB\xBF {\"a\":{\"b\":\"\\n\"},\"c\":\"\"}"),
        "{0<{>k1<\"a\">{1<{>k2<\"b\">s2e<\"\\n\">}1<}>k1<\"c\">s1<\"\">}0<}>");
    check_tokens(LP_SPAN(" -1.5e3"), "n0<-1.5e3>");
    check_tokens(LP_SPAN("7"), "n0i<7>");
    check_tokens(LP_SPAN("[[],{}]"), "[0<[>[1<[>]1<]>{1<{>}1<}>]0<]>");
}

/* A token is told before the next byte is seen, but for numbers, which have no end of their own. */
static void test_tokens_come_at_once(void **state)
{
    (void)state;
    struct seen s = {.in = LP_SPAN("{\"a\":12 ")};
    struct lp_json reader;
    lp_json_init(&reader, see, &s);
    assert_int_equal(lp_json_feed(&reader, lp_span(s.in.ptr, 4)), LP_OK);
    assert_string_equal(s.text, "{0<{>k1<\"a\">");
    assert_int_equal(lp_json_feed(&reader, lp_span(s.in.ptr + 4, 3)), LP_OK);
    assert_string_equal(s.text, "{0<{>k1<\"a\">");
    assert_int_equal(lp_json_feed(&reader, lp_span(s.in.ptr + 7, 1)), LP_OK);
    assert_string_equal(s.text, "{0<{>k1<\"a\">n1i<12>");
}

/* What on_token says is passed on and final, also when it is said at the end of the input. */
static void test_stopping(void **state)
{
    (void)state;
    struct lp_span in = LP_SPAN("[1,2] x");
    for (size_t left = 1; left <= 4; left++) {
        struct seen s = {.in = in, .left = left};
        struct lp_json reader;
        lp_json_init(&reader, see, &s);
        assert_int_equal(lp_json_feed(&reader, in), STOP);
        size_t len = s.len;
        assert_int_equal(lp_json_feed(&reader, in), STOP);
        assert_int_equal(lp_json_finish(&reader), STOP);
        assert_int_equal(s.len, len);
    }
    struct seen s = {.in = LP_SPAN("12"), .left = 1};
    struct lp_json reader;
    lp_json_init(&reader, see, &s);
    assert_int_equal(lp_json_feed(&reader, s.in), LP_OK);
    assert_int_equal(lp_json_finish(&reader), STOP);
    assert_int_equal(lp_json_finish(&reader), STOP);
}

static void test_errors_are_final(void **state)
{
    (void)state;
    struct lp_json reader;
    lp_json_init(&reader, NULL, NULL);
    assert_int_equal(lp_json_feed(&reader, LP_SPAN("{\"a\":x")), LP_ESYNTAX);
    assert_int_equal(lp_json_feed(&reader, LP_SPAN("1}")), LP_ESYNTAX);
    assert_int_equal(lp_json_finish(&reader), LP_ESYNTAX);
    lp_json_init(&reader, NULL, NULL);
    assert_int_equal(lp_json_finish(&reader), LP_ESYNTAX);
    assert_int_equal(lp_json_feed(&reader, LP_SPAN("1")), LP_ESYNTAX);
}

struct meaning {
    struct lp_span token;
    struct lp_span text;
};

static const struct meaning meanings[] = {
#define M(token, text) {{token, sizeof(token) - 1}, {text, sizeof(text) - 1}},
    M("\"\"", "") M("\"abc\"", "abc") M("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t") M(
        "\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC") M("\"\\u0000\"", "\0")
        M("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"", "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF")
            M("\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80") M("\"\\uDBFF\\uDFFF\"", "\xF4\x8F\xBF\xBF")
                M("\"\\uD800\\uDC00x\"", "\xF0\x90\x80\x80x")
    /* surrogates alone, each for itself */
    M("\"\\ud83d\"", "\xEF\xBF\xBD") M("\"\\ude00\"", "\xEF\xBF\xBD")
        M("\"\\ud83d\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80")
            M("\"\\ude00\\ud83d\"", "\xEF\xBF\xBD\xEF\xBF\xBD") M("\"\\ud83dx\"", "\xEF\xBF\xBDx")
                M("\"\\ud83d\\n\"", "\xEF\xBF\xBD\n") M("\"\\ud83d\\u0041\"",
                    "\xEF\xBF\xBD"
                    "A") M("\"tools\\/list\"", "tools/list")
                    M("\"\xC3\xA9\\n\xC3\xA9\"", "\xC3\xA9\n\xC3\xA9")
#undef M
};

static void test_meaning_of_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        const struct meaning *m = &meanings[i];
        char room[64];
        size_t len = 99;
        assert_int_equal(verdict_of(m->token), LP_OK);
        assert_int_equal(lp_json_unescape(m->token, room, m->text.len, &len), LP_OK);
        assert_true(lp_span_eq(lp_span(room, len), m->text));
        assert_true(lp_json_string_is(m->token, m->text));
        for (size_t room_len = 0; room_len < m->text.len; room_len++) {
            len = 99;
            assert_int_equal(lp_json_unescape(m->token, room, room_len, &len), LP_ETOO_LONG);
            assert_int_equal(len, 99);
            assert_false(lp_json_string_is(m->token, lp_span(m->text.ptr, room_len)));
        }
    }
    assert_false(lp_json_string_is(LP_SPAN("\"abc\""), LP_SPAN("abd")));
    assert_false(lp_json_string_is(LP_SPAN("\"a\\u0062c\""), LP_SPAN("aBc")));
    assert_false(lp_json_string_is(LP_SPAN("\"\""), LP_SPAN("a")));
}

static const struct meaning quotes[] = {
#define M(token, text) {{token, sizeof(token) - 1}, {text, sizeof(text) - 1}},
    M("\"\"", "") M("\"a/b\"", "a/b") M("\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\b\f\n\r\t")
        M("\"\\u0000\\u0001\\u001f\x7F\"", "\0\1\x1F\x7F")
            M("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")
                M("\"0123456789\\n0123456789\"", "0123456789\n0123456789")
    /* one replacement for the longest beginning of a sequence, else for each byte */
    M("\"\xEF\xBF\xBD\"", "\xFF") M("\"a\xEF\xBF\xBD"
                                    "b\"",
        "a\xE2\x82"
        "b") M("\"\xEF\xBF\xBD\xEF\xBF\xBD\"", "\xC0\x80") M("\"\xEF\xBF\xBD\"", "\xF0\x9F\x98")
        M("\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", "\xED\xA0\x80")
            M("\"\xEF\xBF\xBD\xC3\xA9\"", "\xE2\xC3\xA9") M("\"\xEF\xBF\xBD\\\"\"", "\xC3\"")
#undef M
};

static void test_quote(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof quotes / sizeof quotes[0]; i++) {
        const struct meaning *m = &quotes[i];
        struct lp_buf out;
        /* Every ceiling below the need leaves the buffer as it was. */
        for (size_t max = 1; max < m->token.len + 1; max++) {
            lp_buf_init(&out, max);
            assert_int_equal(lp_buf_append(&out, LP_SPAN("x")), LP_OK);
            assert_int_equal(lp_json_quote(&out, m->text), LP_ELIMIT);
            assert_true(lp_span_eq(lp_buf_span(&out), LP_SPAN("x")));
            lp_buf_release(&out);
        }
        lp_buf_init(&out, m->token.len);
        assert_int_equal(lp_json_quote(&out, m->text), LP_OK);
        assert_true(lp_span_eq(lp_buf_span(&out), m->token));
        assert_int_equal(verdict_of(lp_buf_span(&out)), LP_OK);
        lp_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_differences_from_jansson),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_brackets_match),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_tokens_come_at_once),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_errors_are_final),
        cmocka_unit_test(test_meaning_of_strings),
        cmocka_unit_test(test_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
