/* Base64 in both alphabets: the vectors of RFC 4648 section 10, and that every other spelling of
 * the same bytes is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "wire/base64url.h"

typedef int (*decode_fn)(struct lp_span text, char *room, size_t room_len, size_t *ret_len);
typedef size_t (*encode_fn)(struct lp_span bytes, char *room);

struct row {
    struct lp_span bytes;
    struct lp_span url;
    struct lp_span std;
};

static const struct row rows[] = {
#define ROW(bytes, url, std)                                                                       \
    {{bytes, sizeof(bytes) - 1}, {url, sizeof(url) - 1}, {std, sizeof(std) - 1}},
    ROW("", "", "") ROW("f", "Zg", "Zg==") ROW("fo", "Zm8", "Zm8=") ROW("foo", "Zm9v", "Zm9v")
        ROW("foob", "Zm9vYg", "Zm9vYg==") ROW("fooba", "Zm9vYmE", "Zm9vYmE=")
            ROW("foobar", "Zm9vYmFy", "Zm9vYmFy") ROW("\xFB\xFF\xBF", "-_-_", "+/+/") ROW(
                "\0\0\0\0", "AAAAAA", "AAAAAA==") ROW("\xFF\xFF\xFF\xFF\xFF", "______8", "//////8=")
#undef ROW
};

static void check(decode_fn decode, encode_fn encode, struct lp_span bytes, struct lp_span text)
{
    char room[64];
    size_t len = 99;
    assert_int_equal(encode(bytes, room), text.len);
    assert_true(lp_span_eq(lp_span(room, text.len), text));
    assert_int_equal(decode(text, room, bytes.len, &len), LP_OK);
    assert_true(lp_span_eq(lp_span(room, len), bytes));
    if (bytes.len == 0)
        return;
    len = 99;
    assert_int_equal(decode(text, room, bytes.len - 1, &len), LP_ETOO_LONG);
    assert_int_equal(len, 99);
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(lp_base64url_len(rows[i].bytes.len), rows[i].url.len);
        check(lp_base64url_decode, lp_base64url_encode, rows[i].bytes, rows[i].url);
        check(lp_base64_decode, lp_base64_encode, rows[i].bytes, rows[i].std);
    }
}

static void refuse(decode_fn decode, struct lp_span text)
{
    char room[64];
    size_t len = 99;
    if (decode(text, room, sizeof room, &len) != LP_ESYNTAX)
        fail_msg("accepted: %.*s", (int)text.len, text.ptr);
    assert_int_equal(len, 99);
}

static void test_other_spellings(void **state)
{
    (void)state;
    const struct lp_span bad_url[] = {LP_SPAN("A"), LP_SPAN("AAAAA"), /* 4n+1 */
        LP_SPAN("Zh"), LP_SPAN("Zn"), LP_SPAN("Zv"),                  /* spare bits of one byte */
        LP_SPAN("Zm9"), LP_SPAN("Zm+"), LP_SPAN("_-"),                /* of two; other alphabet */
        LP_SPAN("Zg=="), LP_SPAN("Zm8="), LP_SPAN("="), LP_SPAN("+/+/"), LP_SPAN("Zm 9v"),
        LP_SPAN("Zm9v\n"), LP_SPAN("Zm\x80v"), LP_SPAN("Zm\0v"), LP_SPAN("Zm@v"), LP_SPAN("Zm[v"),
        LP_SPAN("Zm`v"), LP_SPAN("Zm{v"), LP_SPAN("Zm:v"), LP_SPAN("Zm.v"), LP_SPAN("Zm,v")};
    const struct lp_span bad_std[] = {LP_SPAN("Zg"), LP_SPAN("Zg="), LP_SPAN("Zg==="),
        LP_SPAN("Zm8"), LP_SPAN("Zm8=="), LP_SPAN("Z==="), LP_SPAN("===="), LP_SPAN("=Zm9"),
        LP_SPAN("Zm=v"), LP_SPAN("Zg==Zg=="), LP_SPAN("Zh=="), LP_SPAN("Zm9="), LP_SPAN("-_-_"),
        LP_SPAN("Zg==\n"), LP_SPAN("Zm9v "), LP_SPAN("Zm9v===="), LP_SPAN("Zm9v=")};
    for (size_t i = 0; i < sizeof bad_url / sizeof bad_url[0]; i++)
        refuse(lp_base64url_decode, bad_url[i]);
    for (size_t i = 0; i < sizeof bad_std / sizeof bad_std[0]; i++)
        refuse(lp_base64_decode, bad_std[i]);
}

/* Of the 64^2 texts of two characters exactly 256 are accepted, and each for another byte. */
static void test_one_spelling_each(void **state)
{
    (void)state;
    bool seen[256] = {false};
    int count = 0;
    for (int hi = 0; hi < 256; hi++) {
        for (int lo = 0; lo < 256; lo++) {
            const char text[2] = {(char)hi, (char)lo};
            char byte;
            size_t len;
            if (lp_base64url_decode(lp_span(text, 2), &byte, 1, &len))
                continue;
            assert_false(seen[(unsigned char)byte]);
            seen[(unsigned char)byte] = true;
            count++;
        }
    }
    assert_int_equal(count, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_other_spellings),
        cmocka_unit_test(test_one_spelling_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
