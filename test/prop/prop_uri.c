/* Laws of URI references and base64 over generated texts (test/prop/uri_laws.h): parts put together
 * give the text, a resolved reference is absolute, without dots and resolves to itself, an
 * authority means the same alone and within a URI, base64 is canonical. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuts.h"
#include "uri_laws.h"

/* A broken law stops the program; a handler says which text broke it. */
static struct lp_span law_input;

static void on_abort(int signal_number)
{
    (void)signal_number;
    fprintf(stderr, "text: %.*s\n", (int)law_input.len, law_input.ptr);
}

enum { ROUNDS = 40000, TEXT_MAX = 512 };

static const char *const fragments[] = {"http:", "https:", "x:", "/", "/", "//", "a", "b.example",
    ".", "..", "/./", "/../", "%2e", "%2E%2e", "%41", "%4", "%", "?", "#", "@", ":", ":80",
    ":65535", ":65536", "[::1]", "[", "]", "[1:2::3]", "[::ffff:1.2.3.4]", "user", "a=1", "&", "=",
    ";p", "\\", " ", "{}", "|^`", "\"", "+", "*", "~", "\x80", "Zm9v", "Zg==", "-_"};

static const char *const alphabets[] = {"0123456789abcF:.[]", "ab/.:?#@%2e", "ABZaz019+/-_="};

static struct lp_span make_text(uint64_t *seed, char *room)
{
    size_t len = 0;
    size_t kind = draw(seed, 6);
    for (size_t count = draw(seed, 14); count > 0; count--) {
        if (kind < 3) {
            room[len++] = alphabets[kind][draw(seed, strlen(alphabets[kind]))];
            continue;
        }
        struct lp_span f = lp_span_str(fragments[draw(seed, sizeof fragments / sizeof *fragments)]);
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
        struct lp_span text = make_text(&seed, room);
        struct cuts whole = {CUT_NONE, 0, 0};
        text = cut_piece(&whole, text);
        law_input = text;
        check_uri_laws(text);
        free((void *)text.ptr);
    }
}

/* Of all texts of up to 4 letters from a small alphabet each obeys the laws. */
static void test_every_short_text(void **state)
{
    (void)state;
    static const char letters[] = "/.:?#@a%2[]x";
    enum { LETTERS = sizeof letters - 1 };
    for (size_t number = 0; number < (size_t)LETTERS * LETTERS * LETTERS * LETTERS; number++) {
        char text[4];
        size_t rest = number;
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = letters[rest % LETTERS];
            rest /= LETTERS;
        }
        law_input = lp_span(text, sizeof text);
        check_uri_laws(lp_span(text, sizeof text));
        check_uri_laws(lp_span(text, 3));
    }
}

int main(void)
{
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generated_texts),
        cmocka_unit_test(test_every_short_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
