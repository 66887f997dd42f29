/* What a client carries for us (mcp/sealed.h): opened only with the key, whole, and for the purpose
 * that it was sealed for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/sealed.h"

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define KEY_B "//////////////////////////////////////////8=\n"

static const unsigned char NONCE[LP_SEALED_NONCE_BYTES] = {1, 2, 3};

static struct lp_keyring parse(const char *text)
{
    struct lp_keyring ring;
    uint32_t line;
    assert_int_equal(lp_keyring_parse(lp_span_str(text), &ring, &line), LP_OK);
    return ring;
}

static struct lp_buf seal(const struct lp_keyring *ring, struct lp_span bytes)
{
    struct lp_buf text;
    lp_buf_init(&text, 1 << 20);
    assert_int_equal(lp_sealed_write(ring, LP_SPAN("why"), bytes, NONCE, &text), LP_OK);
    return text;
}

static int open_as(const struct lp_keyring *ring, struct lp_span purpose, struct lp_span text,
    struct lp_span expected)
{
    struct lp_buf out;
    lp_buf_init(&out, LP_SEALED_MAX);
    int err = lp_sealed_open(ring, purpose, text, &out);
    assert_true(lp_span_eq(lp_buf_span(&out), err ? LP_SPAN("") : expected));
    lp_buf_release(&out);
    return err;
}

static void what_was_sealed_opens(void **state)
{
    (void)state;
    struct lp_keyring ring = parse(KEY_A);
    static char large[LP_SEALED_MAX + 1];
    const struct lp_span texts[] = {
        LP_SPAN(""), LP_SPAN("x"), LP_SPAN("{\"a\":1}"), {large, LP_SEALED_MAX}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lp_buf text = seal(&ring, texts[i]);
        assert_true(lp_span_starts(lp_buf_span(&text), LP_SPAN(LP_SEALED_PREFIX)));
        assert_int_equal(open_as(&ring, LP_SPAN("why"), lp_buf_span(&text), texts[i]), LP_OK);
        lp_buf_release(&text);
    }
    struct lp_buf out;
    lp_buf_init(&out, 1 << 20);
    assert_int_equal(lp_sealed_write(&ring, LP_SPAN(""), lp_span(large, sizeof large), NONCE, &out),
        LP_ETOO_LONG);
    lp_buf_init(&out, 8);
    assert_int_equal(lp_sealed_write(&ring, LP_SPAN(""), LP_SPAN("x"), NONCE, &out), LP_ELIMIT);
    struct lp_buf text = seal(&ring, lp_span(large, 16));
    assert_int_equal(lp_sealed_open(&ring, LP_SPAN("why"), lp_buf_span(&text), &out), LP_ELIMIT);
    lp_buf_release(&text);
}

static void every_key_opens_and_the_first_seals(void **state)
{
    (void)state;
    struct lp_keyring a = parse(KEY_A);
    struct lp_keyring b = parse(KEY_B);
    struct lp_keyring both = parse(KEY_B KEY_A);
    struct lp_buf text = seal(&a, LP_SPAN("x"));
    assert_int_equal(open_as(&both, LP_SPAN("why"), lp_buf_span(&text), LP_SPAN("x")), LP_OK);
    assert_int_equal(open_as(&b, LP_SPAN("why"), lp_buf_span(&text), LP_SPAN("")), LP_EUNKNOWN_KEY);
    /* Two keys with one id: both are tried. */
    memcpy(both.keys[0].id, a.keys[0].id, LP_KEY_ID_BYTES);
    assert_int_equal(open_as(&both, LP_SPAN("why"), lp_buf_span(&text), LP_SPAN("x")), LP_OK);
    lp_buf_release(&text);
}

static void what_was_altered_does_not_open(void **state)
{
    (void)state;
    struct lp_keyring ring = parse(KEY_A);
    struct lp_buf text = seal(&ring, LP_SPAN("{\"a\":1}"));
    struct lp_span whole = lp_buf_span(&text);
    assert_int_equal(open_as(&ring, LP_SPAN("other"), whole, LP_SPAN("")), LP_EFORGED);
    assert_int_equal(open_as(&ring, LP_SPAN(""), whole, LP_SPAN("")), LP_EFORGED);
    for (size_t i = 0; i < whole.len; i++) {
        char before = text.ptr[i];
        text.ptr[i] = before == 'A' ? 'B' : 'A';
        assert_int_not_equal(open_as(&ring, LP_SPAN("why"), whole, LP_SPAN("")), LP_OK);
        text.ptr[i] = before;
        assert_int_not_equal(
            open_as(&ring, LP_SPAN("why"), lp_span(whole.ptr, i), LP_SPAN("")), LP_OK);
    }
    lp_buf_release(&text);
    assert_int_equal(open_as(&ring, LP_SPAN("why"), LP_SPAN("ls1_AAAA"), LP_SPAN("")), LP_ESYNTAX);
    assert_int_equal(open_as(&ring, LP_SPAN("why"), LP_SPAN("lp1_AAAA"), LP_SPAN("")), LP_ESYNTAX);
    static char endless[1 << 20];
    memset(endless, 'A', sizeof endless);
    memcpy(endless, "ls1_", 4);
    assert_int_equal(
        open_as(&ring, LP_SPAN("why"), lp_span(endless, sizeof endless), LP_SPAN("")), LP_ESYNTAX);
}

static void marks_differ_as_texts_do(void **state)
{
    (void)state;
    char a[LP_SEALED_MARK_LEN], b[LP_SEALED_MARK_LEN];
    lp_sealed_mark(LP_SPAN("a"), a);
    lp_sealed_mark(LP_SPAN("a"), b);
    assert_memory_equal(a, b, sizeof a);
    lp_sealed_mark(LP_SPAN("b"), b);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t i = 0; i < sizeof a; i++)
        assert_non_null(strchr("0123456789abcdef", a[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_opens),
        cmocka_unit_test(every_key_opens_and_the_first_seals),
        cmocka_unit_test(what_was_altered_does_not_open),
        cmocka_unit_test(marks_differ_as_texts_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
