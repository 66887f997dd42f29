/* Laws of mcp.json over generated files (test/prop/mcp_json_laws.h): any blanks, any order, members
 * twice, nested ones of the same name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuts.h"
#include "mcp_json_laws.h"

enum { ROUNDS = 20000, TEXT_MAX = 1 << 16, DEPTH_MAX = 5 };

static const char *const keys[] = {"cookieJar", "cookieJar", "cookie\\u004aar", "url", "type",
    "command", "headers", "s", "mcpServers", "a b", ""};
static const char *const scalars[] = {"true", "true", "false", "null", "1.0e+5", "-0", "\"sse\"",
    "\"http://a/${B}\"", "\"stdio\"", "\"\\u00e9\\\"}{\"", "\"\"", "[]", "{}"};
static const char *const blanks[] = {"", "", "", " ", "\n", "\r\n", "\t", "\n    "};

struct maker {
    uint64_t seed;
    char *at;
    char *end;
};

static void say(struct maker *m, const char *text)
{
    size_t len = strlen(text);
    LP_ASSERT((size_t)(m->end - m->at) > len);
    memcpy(m->at, text, len);
    m->at += len;
}

static void say_one_of(struct maker *m, const char *const *texts, size_t count)
{
    say(m, texts[draw(&m->seed, count)]);
}

#define SAY_ONE_OF(m, texts) say_one_of(m, texts, sizeof(texts) / sizeof((texts)[0]))

static void say_value(struct maker *m, size_t depth);

static void say_member(struct maker *m, const char *key, size_t depth)
{
    SAY_ONE_OF(m, blanks);
    say(m, "\"");
    if (key)
        say(m, key);
    else
        SAY_ONE_OF(m, keys);
    say(m, "\"");
    SAY_ONE_OF(m, blanks);
    say(m, ":");
    SAY_ONE_OF(m, blanks);
    say_value(m, depth);
    SAY_ONE_OF(m, blanks);
}

/* An object; down to the entry it mostly has the member that leads there. */
static void say_object(struct maker *m, size_t depth)
{
    static const char *const path[] = {"mcpServers", "s"};
    const char *next = depth < 2 ? path[depth] : NULL;
    size_t before = draw(&m->seed, 3), behind = draw(&m->seed, 4);
    say(m, "{");
    for (size_t i = 0; i < before + 1 + behind; i++) {
        if (depth >= 2 && i == before && !before)
            continue;
        if (m->at[-1] != '{')
            say(m, ",");
        bool leads = next && i == before && draw(&m->seed, 20);
        say_member(m, leads ? next : NULL, leads || depth > 2 ? depth + 1 : 3 + draw(&m->seed, 3));
    }
    SAY_ONE_OF(m, blanks);
    say(m, "}");
}

static void say_value(struct maker *m, size_t depth)
{
    if (depth <= 2 || (depth < DEPTH_MAX && draw(&m->seed, 2)))
        say_object(m, depth);
    else
        SAY_ONE_OF(m, scalars);
}

static void test_generated_files(void **state)
{
    (void)state;
    static char room[TEXT_MAX];
    size_t edited = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct maker m = {.seed = round * 7919, .at = room, .end = room + sizeof room};
        SAY_ONE_OF(&m, blanks);
        say_object(&m, 0);
        SAY_ONE_OF(&m, blanks);
        struct cuts whole = {CUT_NONE, 0, 0};
        struct lp_span text = cut_piece(&whole, lp_span(room, (size_t)(m.at - room)));
        struct lp_span entry;
        edited += lp_mcp_json_entry(text, LAW_SERVER, &entry) == 0;
        check_mcp_json_laws(text);
        free((void *)text.ptr);
    }
    assert_true(edited > ROUNDS / 2); /* else the laws were hardly asked */
}

/* A file cut short anywhere is refused, and nothing is written. */
static void test_cut_short(void **state)
{
    (void)state;
    static const char text[] = "{\"mcpServers\": {\"s\": {\"type\": \"sse\", \"url\": \"u\", "
                               "\"cookieJar\": true}}, \"x\": [1]}";
    for (size_t len = 0; len < sizeof text - 1; len++) {
        struct cuts first = {CUT_AT, len, 0};
        struct lp_span part = len ? cut_piece(&first, lp_span_str(text)) : lp_span(NULL, 0);
        struct lp_buf out;
        lp_buf_init(&out, 4096);
        check_mcp_json_laws(part);
        int err = lp_mcp_json_set_bool(part, LAW_SERVER, LAW_KEY, false, &out);
        assert_int_equal(err, LP_ESYNTAX);
        assert_int_equal(out.len, 0);
        free((void *)part.ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generated_files),
        cmocka_unit_test(test_cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
