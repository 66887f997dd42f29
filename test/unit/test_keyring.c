/* The key ring: what a key file may hold, which line is to blame, and that the derived keys have
 * nothing in common (mcp/keyring.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/keyring.h"

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_B "//////////////////////////////////////////8="
#define KEY_C "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
        uint32_t count;
        uint32_t line;
    } CASES[] = {
        {KEY_A, LP_OK, 1, 99},
        {KEY_A "\n", LP_OK, 1, 99},
        {KEY_A "\r\n" KEY_B "\r\n", LP_OK, 2, 99},
        {"# first\n\n  " KEY_A " \t\n#\n" KEY_B "\n\n", LP_OK, 2, 99},
        {"", LP_ENOT_FOUND, 0, 99},
        {"\n# nothing\n \t\n\r\n", LP_ENOT_FOUND, 0, 99},
        {KEY_A "\nabc\n", LP_ESYNTAX, 0, 2},
        {"#\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==\n", LP_ESYNTAX, 0, 2},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", LP_ESYNTAX, 0, 1},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", LP_ESYNTAX, 0, 1},
        {KEY_A " " KEY_B, LP_ESYNTAX, 0, 1},
        {KEY_A "\n" KEY_B "\n" KEY_A "\n", LP_EEXISTS, 0, 3},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_keyring ring = {0};
        uint32_t line = 99;
        assert_int_equal(lp_keyring_parse(lp_span_str(CASES[i].text), &ring, &line), CASES[i].err);
        assert_int_equal(ring.count, CASES[i].count);
        assert_int_equal(line, CASES[i].line);
    }
}

/* Sixteen keys are kept, the seventeenth is named with its line. */
static void test_limit(void **state)
{
    (void)state;
    char text[46 * (LP_KEYRING_MAX + 1) + 1];
    size_t len = 0;
    size_t len_of_max = 0;
    for (unsigned i = 0; i <= LP_KEYRING_MAX; i++) {
        unsigned char key[LP_KEY_BYTES] = {(unsigned char)i};
        if (i == LP_KEYRING_MAX)
            len_of_max = len;
        len += lp_keyring_format(key, text + len);
    }
    struct lp_keyring ring = {0};
    uint32_t line = 0;
    assert_int_equal(lp_keyring_parse(lp_span(text, len_of_max), &ring, &line), LP_OK);
    assert_int_equal(ring.count, LP_KEYRING_MAX);
    assert_int_equal(lp_keyring_parse(lp_span(text, len), &ring, &line), LP_ELIMIT);
    assert_int_equal(line, LP_KEYRING_MAX + 1);
    lp_keyring_fini(&ring);
    assert_int_equal(ring.count, 0);
    assert_int_equal(ring.keys[0].aead[0] | ring.keys[0].aead[31], 0);
}

static void test_format(void **state)
{
    (void)state;
    unsigned char key[LP_KEY_BYTES];
    char room[46];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    assert_int_equal(lp_keyring_format(key, room), 45);
    assert_string_equal(room, KEY_A "\n");
}

/* The derived keys differ from each other and from the file's key, and are stable: another value
 * here would make every ticket in the field unreadable. */
static void test_derivation(void **state)
{
    (void)state;
    struct lp_keyring ring;
    uint32_t line = 0;
    assert_int_equal(lp_keyring_parse(LP_SPAN(KEY_A "\n" KEY_C), &ring, &line), LP_OK);
    const struct lp_ring_key *a = &ring.keys[0];
    const struct lp_ring_key *c = &ring.keys[1];
    unsigned char zero[LP_KEY_BYTES] = {0};
    assert_memory_not_equal(a->aead, a->naming, LP_KEY_BYTES);
    assert_memory_not_equal(a->aead, c->aead, LP_KEY_BYTES);
    assert_memory_not_equal(a->id, c->id, LP_KEY_ID_BYTES);
    assert_memory_not_equal(c->aead, zero, LP_KEY_BYTES);
    assert_memory_not_equal(c->naming, zero, LP_KEY_BYTES);
    char hex[9];
    lp_ring_key_id_hex(a, hex);
    assert_string_equal(hex, "bc81835f");
    lp_ring_key_id_hex(c, hex);
    assert_string_equal(hex, "e4f0792d");
    unsigned char key[LP_KEY_BYTES];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    struct lp_keyring made;
    lp_keyring_make(key, &made);
    assert_int_equal(made.count, 1);
    assert_memory_equal(&made.keys[0], a, sizeof *a);
    assert_memory_equal(key, zero, sizeof key);
}

static void test_names(void **state)
{
    (void)state;
    struct lp_keyring ring;
    uint32_t line = 0;
    assert_int_equal(lp_keyring_parse(LP_SPAN(KEY_A "\n" KEY_B), &ring, &line), LP_OK);
    unsigned char one[LP_REPLICA_HASH_BYTES];
    unsigned char two[LP_REPLICA_HASH_BYTES];
    lp_ring_key_hash_name(&ring.keys[0], LP_SPAN("10.0.0.1:3001/mcp"), one);
    lp_ring_key_hash_name(&ring.keys[0], LP_SPAN("10.0.0.1:3001/mcp"), two);
    assert_memory_equal(one, two, sizeof one);
    lp_ring_key_hash_name(&ring.keys[0], LP_SPAN("10.0.0.2:3001/mcp"), two);
    assert_memory_not_equal(one, two, sizeof one);
    lp_ring_key_hash_name(&ring.keys[1], LP_SPAN("10.0.0.1:3001/mcp"), two);
    assert_memory_not_equal(one, two, sizeof one);
    lp_ring_key_hash_name(&ring.keys[0], LP_SPAN(""), two);
    assert_memory_not_equal(one, two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_derivation),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("keyring", tests, NULL, NULL);
}
