/* Field names, character classes and heads (wire/field.h, wire/head.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "wire/head.h"

static void upper(char *room, struct lp_span s)
{
    for (size_t i = 0; i < s.len; i++)
        room[i] = s.ptr[i] >= 'a' && s.ptr[i] <= 'z' ? (char)(s.ptr[i] - 32) : s.ptr[i];
}

/* Every row of the list is found in any case, and nothing that is one byte away from it. */
static void test_lookup_finds_every_name(void **state)
{
    (void)state;
    for (unsigned id = LP_FIELD_OTHER + 1; id < LP_FIELD_count; id++) {
        struct lp_span name = lp_field_name(id);
        char room[64];
        assert_true(name.len > 0 && name.len < sizeof room);
        assert_int_equal(lp_field_lookup(name), id);
        upper(room, name);
        assert_int_equal(lp_field_lookup(lp_span(room, name.len)), id);
        for (size_t i = 0; i < name.len; i++) {
            memcpy(room, name.ptr, name.len);
            room[i] ^= 0x10; /* '-' becomes '=' */
            assert_int_equal(lp_field_lookup(lp_span(room, name.len)), LP_FIELD_OTHER);
            room[i] = name.ptr[i] == '-' ? '\r' : (char)(name.ptr[i] & 0x1F);
            assert_int_equal(lp_field_lookup(lp_span(room, name.len)), LP_FIELD_OTHER);
        }
        memcpy(room, name.ptr, name.len);
        room[name.len] = 's';
        assert_int_equal(lp_field_lookup(lp_span(room, name.len + 1)), LP_FIELD_OTHER);
        assert_int_equal(lp_field_lookup(lp_span(room, name.len - 1)), LP_FIELD_OTHER);
    }
}

static void test_lookup_of_others(void **state)
{
    (void)state;
    assert_int_equal(lp_field_lookup(LP_SPAN("")), LP_FIELD_OTHER);
    assert_int_equal(lp_field_lookup(LP_SPAN("x")), LP_FIELD_OTHER);
    assert_int_equal(lp_field_lookup(LP_SPAN("x-forwarded-protx")), LP_FIELD_OTHER);
    assert_int_equal(lp_field_lookup(LP_SPAN("\x80ost")), LP_FIELD_OTHER);
    assert_int_equal(lp_field_name(LP_FIELD_OTHER).len, 0);
    assert_int_equal(lp_field_lookup(LP_SPAN("Mcp-Session-Id")), LP_FIELD_MCP_SESSION_ID);
}

/* All 256 bytes against the sentences of RFC 9110, written independently of the tables. */
static void test_every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool is_token = is_alnum || (c && strchr("!#$%&'*+-.^_`|~", c));
        bool is_value = c == '\t' || c == ' ' || (c > 0x20 && c < 0x7F) || c >= 0x80;
        assert_int_equal(lp_field_is_token(lp_span(&byte, 1)), is_token);
        assert_int_equal(lp_field_is_value(lp_span(&byte, 1)), is_value);
    }
}

/* A value is looked at eight bytes at a time: the byte must be seen at every place. */
static void test_value_bytes_at_every_place(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 27; len++)
        for (size_t at = 0; at < len; at++)
            for (int c = 0; c < 256; c++) {
                char text[27];
                char byte = (char)c;
                memset(text, at % 2 ? 0x80 : '!', sizeof text);
                text[at] = byte;
                if (lp_field_is_value(lp_span(text, len)) != lp_field_is_value(lp_span(&byte, 1)))
                    fail_msg("byte %d at %zu of %zu", c, at, len);
            }
    assert_true(lp_field_is_value(LP_SPAN("")));
    assert_true(lp_field_is_value(LP_SPAN("\t\t\t\t\t\t\t\t\t")));
    assert_false(lp_field_is_value(LP_SPAN("\t\t\t\t\n\t\t\t\t")));
}

static void test_tokens(void **state)
{
    (void)state;
    assert_false(lp_field_is_token(LP_SPAN("")));
    assert_true(lp_field_is_token(LP_SPAN("M-SEARCH")));
    assert_false(lp_field_is_token(LP_SPAN("a b")));
    assert_false(lp_field_is_token(LP_SPAN("a:")));
}

static size_t count_front(struct lp_span s)
{
    size_t n = 0;
    while (n < s.len && lp_field_is_value(lp_span(s.ptr + n, 1)))
        n++;
    return n;
}

/* How much of a value is at the front, for pairs of bytes at neighbouring places: the first that
 * may not be there ends it, whatever stands behind it. */
static void test_value_len(void **state)
{
    (void)state;
    for (size_t at = 0; at < 19; at++)
        for (int pair = 0; pair < 65536; pair += at % 8 == 3 ? 1 : 13) {
            char text[20];
            struct lp_span s = lp_span(text, sizeof text);
            memset(text, 'a', sizeof text);
            text[at] = (char)(pair >> 8);
            text[at + 1] = (char)(pair & 255);
            if (lp_field_value_len(s) != count_front(s))
                fail_msg("pair %d at %zu", pair, at);
        }
    assert_int_equal(lp_field_value_len(LP_SPAN("")), 0);
}

static void test_hop_by_hop(void **state)
{
    (void)state;
    static const enum lp_field_id hops[] = {LP_FIELD_CONNECTION, LP_FIELD_KEEP_ALIVE,
        LP_FIELD_PROXY_CONNECTION, LP_FIELD_PROXY_AUTHENTICATE, LP_FIELD_PROXY_AUTHORIZATION,
        LP_FIELD_TE, LP_FIELD_TRAILER, LP_FIELD_TRANSFER_ENCODING, LP_FIELD_UPGRADE};
    size_t count = 0;
    for (unsigned id = 0; id < LP_FIELD_count; id++)
        count += lp_field_is_hop_by_hop(id);
    assert_int_equal(count, sizeof hops / sizeof hops[0]);
    for (size_t i = 0; i < count; i++)
        assert_true(lp_field_is_hop_by_hop(hops[i]));
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *word;
        bool has;
    } rows[] = {
        {"close", "close", true},
        {"CLOSE", "close", true},
        {"keep-alive, Close", "close", true},
        {"keep-alive\t,\t close \t", "close", true},
        {",,close,", "close", true},
        {"a,b,c", "b", true},
        {"closed", "close", false},
        {"xclose", "close", false},
        {"close x", "close", false},
        {"", "close", false},
        {"a,,b", "", false},
        {" , ", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (lp_field_list_has(lp_span_str(rows[i].list), lp_span_str(rows[i].word)) != rows[i].has)
            fail_msg("<%s> has <%s>", rows[i].list, rows[i].word);
    assert_false(lp_field_list_has(lp_span(NULL, 0), LP_SPAN("x")));
}

static void test_methods(void **state)
{
    (void)state;
#define X(name)                                                                                    \
    assert_int_equal(lp_method_lookup(LP_SPAN(#name)), LP_METHOD_##name);                          \
    assert_int_equal(lp_method_lookup(LP_SPAN(#name "S")), LP_METHOD_OTHER);
    LP_METHODS(X)
#undef X
    assert_int_equal(lp_method_lookup(LP_SPAN("")), LP_METHOD_OTHER);
    assert_int_equal(lp_method_lookup(lp_span(NULL, 0)), LP_METHOD_OTHER);
    assert_int_equal(lp_method_lookup(LP_SPAN("get")), LP_METHOD_OTHER);
    assert_int_equal(lp_method_lookup(LP_SPAN("GOT")), LP_METHOD_OTHER);
    assert_int_equal(lp_method_lookup(LP_SPAN("QUERY")), LP_METHOD_OTHER);
}

static void test_head_find(void **state)
{
    (void)state;
    static struct lp_head head;
    memset(&head, 0, sizeof head);
    assert_null(lp_head_find(&head, LP_FIELD_COOKIE, NULL));
    assert_null(lp_head_value(&head, LP_FIELD_COOKIE).ptr);
    assert_int_equal(lp_head_add(&head, LP_FIELD_COOKIE, LP_SPAN("a=1")), LP_OK);
    assert_int_equal(lp_head_add_other(&head, LP_SPAN("X-Y"), LP_SPAN("z")), LP_OK);
    assert_int_equal(lp_head_add_other(&head, LP_SPAN("COOKIE"), LP_SPAN("b=2")), LP_OK);
    assert_int_equal(lp_head_add(&head, LP_FIELD_HOST, lp_span(NULL, 0)), LP_OK);
    uint32_t from = 0;
    const struct lp_field *field = lp_head_find(&head, LP_FIELD_COOKIE, &from);
    assert_ptr_equal(field, &head.fields[0]);
    assert_true(lp_span_eq(field->name, LP_SPAN("cookie")));
    assert_int_equal(from, 1);
    assert_ptr_equal(lp_head_find(&head, LP_FIELD_COOKIE, &from), &head.fields[2]);
    assert_int_equal(from, 3);
    assert_null(lp_head_find(&head, LP_FIELD_COOKIE, &from));
    assert_null(lp_head_find(&head, LP_FIELD_COOKIE, &from));
    assert_int_equal(head.fields[1].id, LP_FIELD_OTHER);
    assert_true(lp_span_eq(lp_head_value(&head, LP_FIELD_COOKIE), LP_SPAN("a=1")));
    /* There and empty is not the same as not there. */
    assert_non_null(lp_head_value(&head, LP_FIELD_HOST).ptr);
}

static void test_head_is_full(void **state)
{
    (void)state;
    static struct lp_head head;
    memset(&head, 0, sizeof head);
    for (int i = 0; i < LP_HEAD_FIELDS_MAX; i++)
        assert_int_equal(lp_head_add(&head, LP_FIELD_DATE, LP_SPAN("d")), LP_OK);
    assert_int_equal(lp_head_add(&head, LP_FIELD_DATE, LP_SPAN("d")), LP_ELIMIT);
    assert_int_equal(lp_head_add_other(&head, LP_SPAN("x"), LP_SPAN("d")), LP_ELIMIT);
    assert_int_equal(head.field_count, LP_HEAD_FIELDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup_finds_every_name),
        cmocka_unit_test(test_lookup_of_others),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_value_bytes_at_every_place),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_value_len),
        cmocka_unit_test(test_hop_by_hop),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_head_find),
        cmocka_unit_test(test_head_is_full),
    };
    return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
