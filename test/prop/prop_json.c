/* Laws of the JSON reader: any split gives the same tokens and verdict; strings decode, compare and
 * quote consistently (checked on every string token by the transcript); altered texts get the
 * verdict that jansson gives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "json_transcript.h"

enum { OUT_MAX = 1 << 20, ROUNDS = 4000, TEXT_MAX = 600 };

static const struct lp_span samples[] = {{"", 0},
#define S(s) {s, sizeof(s) - 1},
    S("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}")
        S(" {\"a\" : [ 1 , -0 , 0.5e+10 , 1E-2, true,false , null , \"\", {} , [] ] }\r\n\t")
            S("\xEF\xBB\xBF{\"id\":1.0}") S("\xEF\xBB") S(" \xEF\xBB\xBF{}") S("\xFF\xFE{\0}\0")
                S("\"\\u0041\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\"")
                    S("\"\\ud83d\\ude00\\ude00\\ud83d\"") S(
                        "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF \xED\x9F\xBF\"")
                        S("\"\xC0\x80\"") S("\"\xED\xA0\x80\"") S("\"\xF4\x90\x80\x80\"")
                            S("\"\xE2\x82\"") S("\"\x80\"") S("12345678901234567890") S("-") S("01")
                                S("1.") S("1e") S("1e+") S("-0.0e-0 ") S("truefalse") S("nul")
                                    S("[1,]") S("{\"a\":1,}") S("{,}") S("[,1]") S("{\"a\" 1}")
                                        S("{1:2}") S("[1 2]") S("{\"a\":1]") S("[}") S("]") S("1 1")
                                            S("\"a\nb\"") S("\"\\x\"") S("\"\\u12g4\"") S("'a'")
                                                S("[[[[[[[[[[[[[[[[[[[[[[[[\"a long enough string "
                                                  "for the fast path, \\u0041 and on\"]]]]]]]]]"
                                                  "]]]]]]]]]]]]]]]")
                                                    S("{\"a\":\n                                "
                                                      "{\"b\":\n         [\n                1 ]}}")
#undef S
};

static const struct lp_span fragments[] = {
#define S(s) {s, sizeof(s) - 1},
    S("{") S("}") S("[") S("]") S(":") S(",") S("\"\"") S("\"a\"") S("\"a\":") S("\"a\":1,") S("\"")
        S("1") S("0") S("-") S(".") S("e") S("E+") S("12.5e-3") S("true") S("false") S("null")
            S("nul") S(" ") S("\n        ") S("\\") S("\\u00") S("\\u0041") S("\\ud83d")
                S("\\ude00") S("\\n") S("\t") S("\xC3\xA9") S("\xE2\x82\xAC") S("\xF0\x9F\x98\x80")
                    S("\xF4") S("\xED\xA0") S("\xEF\xBB\xBF") S("plain text of some length") S("{}")
                        S("[]") S("[{\"b\":[") S("]}]") S("\0") S("\x7F")
#undef S
};

static void check_cuts(struct lp_span in, struct cuts cuts, size_t stop_after)
{
    struct lp_buf whole, parts;
    lp_buf_init(&whole, OUT_MAX);
    lp_buf_init(&parts, OUT_MAX);
    json_transcript(in, (struct cuts){CUT_NONE, 0, 0}, stop_after, &whole);
    json_transcript(in, cuts, stop_after, &parts);
    if (!lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts))) {
        print_message("whole: %.*s\nparts: %.*s\n", (int)whole.len, lp_buf_span(&whole).ptr,
            (int)parts.len, lp_buf_span(&parts).ptr);
        fail_msg("%.*s: split %d at %zu seed %llu differs", (int)in.len, in.ptr, (int)cuts.kind,
            cuts.at, (unsigned long long)cuts.seed);
    }
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

static void test_samples_any_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct lp_span in = samples[i];
        for (size_t stop_after = 0; stop_after < 4; stop_after++) {
            check_cuts(in, (struct cuts){CUT_BYTES, 0, 0}, stop_after);
            for (size_t at = 1; at < in.len; at++)
                check_cuts(in, (struct cuts){CUT_AT, at, 0}, stop_after);
        }
        for (uint64_t seed = 1; seed <= 20; seed++)
            check_cuts(in, (struct cuts){CUT_RANDOM, 0, seed}, 0);
    }
}

static struct lp_span make_text(uint64_t *seed, char *room)
{
    size_t len = 0;
    for (size_t count = draw(seed, 24); count > 0; count--) {
        struct lp_span f = fragments[draw(seed, sizeof fragments / sizeof fragments[0])];
        memcpy(room + len, f.ptr, f.len);
        len += f.len;
        LP_ASSERT(len <= TEXT_MAX);
    }
    return lp_span(room, len);
}

static void test_generated_texts(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char room[TEXT_MAX + 32];
        uint64_t seed = round * 7919;
        struct lp_span in = make_text(&seed, room);
        check_cuts(in, (struct cuts){CUT_BYTES, 0, 0}, 0);
        check_cuts(in, (struct cuts){CUT_RANDOM, 0, seed}, 0);
        check_quote(in);
    }
}

/* A random value, printed with blanks and escapes at random; depth ends the recursion. */
struct printer {
    uint64_t seed;
    char *room;
    size_t len;
};

static void put(struct printer *p, struct lp_span s)
{
    if (p->len + s.len > TEXT_MAX)
        return;
    memcpy(p->room + p->len, s.ptr, s.len);
    p->len += s.len;
}

static void put_blank(struct printer *p)
{
    static const struct lp_span blanks[] = {{"", 0}, {"", 0}, {" ", 1}, {"\r\n\t", 3}};
    put(p, blanks[draw(&p->seed, 4)]);
}

static void put_string(struct printer *p)
{
    static const struct lp_span parts[] = {{"a", 1}, {"\\u0041", 6}, {"\\n", 2}, {"\\\\", 2},
        {"\xC3\xA9", 2}, {"\xF0\x9F\x98\x80", 4}, {"eight or more", 13}, {"\\ud83d\\ude00", 12}};
    put(p, LP_SPAN("\""));
    for (size_t count = draw(&p->seed, 4); count > 0; count--)
        put(p, parts[draw(&p->seed, sizeof parts / sizeof parts[0])]);
    put(p, LP_SPAN("\""));
}

static void put_value(struct printer *p, int depth)
{
    static const struct lp_span leaves[] = {{"0", 1}, {"-1.5e3", 6}, {"12345678901234567890.0", 22},
        {"true", 4}, {"false", 5}, {"null", 4}, {"7E-2", 4}, {"-0", 2}};
    size_t kind = draw(&p->seed, depth ? 4 : 2);
    put_blank(p);
    if (kind == 0)
        put(p, leaves[draw(&p->seed, sizeof leaves / sizeof leaves[0])]);
    if (kind == 1)
        put_string(p);
    if (kind >= 2) {
        put(p, kind == 2 ? LP_SPAN("{") : LP_SPAN("["));
        size_t count = draw(&p->seed, 4);
        for (size_t i = 0; i < count; i++) {
            put(p, i ? LP_SPAN(",") : LP_SPAN(" "));
            if (kind == 2) {
                put_string(p);
                put_blank(p);
                put(p, LP_SPAN(":"));
            }
            put_value(p, depth - 1);
        }
        put(p, kind == 2 ? LP_SPAN("}") : LP_SPAN("]"));
    }
    put_blank(p);
}

static void alter(uint64_t *seed, struct lp_span *text, char *room)
{
    static const char bytes[] = "{}[]:,\"\\/ue0-+.tfn \t\r\n\x01\x7F\x80\xBF\xC2\xE0\xED\xF0\xF4'";
    size_t at = text->len ? draw(seed, text->len) : 0;
    if (text->len == 0)
        return;
    if (draw(seed, 3) == 0) {
        memmove(room + at, room + at + 1, text->len - at - 1);
        text->len--;
    } else {
        room[at] = bytes[draw(seed, sizeof bytes - 1)];
    }
}

/* The differences that test_json explains: numbers that jansson cannot hold, surrogates alone. */
static bool is_known_difference(struct lp_span text, const json_error_t *error)
{
    return json_error_code(error) == json_error_numeric_overflow ||
        lp_span_search(text, LP_SPAN("\\ud")) < text.len ||
        lp_span_search(text, LP_SPAN("\\uD")) < text.len;
}

static void compare_verdicts(struct lp_span text, size_t *accepted)
{
    struct lp_buf out;
    json_error_t error;
    lp_buf_init(&out, OUT_MAX);
    int verdict = json_transcript(text, (struct cuts){CUT_NONE, 0, 0}, 0, &out);
    json_t *theirs = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if ((verdict == 0) != (theirs != NULL) && (theirs || !is_known_difference(text, &error)))
        fail_msg("%.*s: we say %d, jansson says %s", (int)text.len, text.ptr, verdict,
            theirs ? "yes" : error.text);
    *accepted += theirs ? 1 : 0;
    json_decref(theirs);
    lp_buf_release(&out);
}

static void test_verdicts_of_jansson(void **state)
{
    (void)state;
    size_t accepted = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        char room[TEXT_MAX + 1];
        struct printer p = {.seed = round * 104729, .room = room};
        put_value(&p, 4);
        struct lp_span text = lp_span(room, p.len);
        compare_verdicts(text, &accepted);
        for (int i = 0; i < 3; i++) {
            alter(&p.seed, &text, room);
            compare_verdicts(text, &accepted);
        }
    }
    /* Both sides of the verdict were met often. */
    assert_in_range(accepted, ROUNDS / 2, ROUNDS * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_any_split),
        cmocka_unit_test(test_generated_texts),
        cmocka_unit_test(test_verdicts_of_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
