/* The ground floor: spans, buffers, arena, slab, heap, map, list, error and reason tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/reason.h"
#include "base/slab.h"
#include "base/span.h"

#define assert_span(span, text) assert_true(lp_span_eq((span), lp_span_str(text)))

static void spans_compare(void **state)
{
    (void)state;
    assert_true(lp_span_eq(LP_SPAN(""), lp_span(NULL, 0)));
    assert_true(lp_span_eq(LP_SPAN("ab"), lp_span_str("ab")));
    assert_false(lp_span_eq(LP_SPAN("ab"), LP_SPAN("ac")));
    assert_false(lp_span_eq(LP_SPAN("ab"), LP_SPAN("abc")));
    assert_true(lp_span_ieq(LP_SPAN("Mcp-Session-ID"), LP_SPAN("mcp-session-id")));
    assert_false(lp_span_ieq(LP_SPAN("ab"), LP_SPAN("ac")));
    assert_false(lp_span_ieq(LP_SPAN("a"), LP_SPAN("ab")));
    assert_false(lp_span_ieq(LP_SPAN("["), LP_SPAN("{"))); /* 0x20 apart, but no letters */
    assert_true(lp_span_starts(LP_SPAN("abc"), LP_SPAN("ab")));
    assert_false(lp_span_starts(LP_SPAN("a"), LP_SPAN("ab")));
    assert_false(lp_span_starts(LP_SPAN("xb"), LP_SPAN("ab")));
    assert_true(lp_span_ends(LP_SPAN("abc"), LP_SPAN("bc")));
    assert_false(lp_span_ends(LP_SPAN("c"), LP_SPAN("bc")));
    assert_false(lp_span_ends(LP_SPAN("abx"), LP_SPAN("bc")));
    assert_int_equal(lp_span_str(NULL).len, 0);
}

static void spans_search(void **state)
{
    (void)state;
    assert_int_equal(lp_span_find(LP_SPAN("abc"), 'c'), 2);
    assert_int_equal(lp_span_find(LP_SPAN("abc"), 'x'), 3);
    assert_int_equal(lp_span_find(lp_span(NULL, 0), 'x'), 0);
    assert_int_equal(lp_span_search(LP_SPAN("a timeout=5"), LP_SPAN("timeout=")), 2);
    assert_int_equal(lp_span_search(LP_SPAN("time"), LP_SPAN("timeout=")), 4);
    assert_int_equal(lp_span_search(LP_SPAN("xxxx"), LP_SPAN("y")), 4);
}

static void spans_cut(void **state)
{
    (void)state;
    struct lp_span rest;
    assert_span(lp_span_trim(LP_SPAN(" \t a b\t ")), "a b");
    assert_span(lp_span_trim(LP_SPAN(" \t ")), "");
    assert_span(lp_span_split(LP_SPAN("a;b;c"), ';', &rest), "a");
    assert_span(rest, "b;c");
    assert_span(lp_span_split(LP_SPAN("abc"), ';', &rest), "abc");
    assert_null(rest.ptr);
    assert_span(lp_span_split(LP_SPAN("a;"), ';', &rest), "a");
    assert_non_null(rest.ptr);
    assert_int_equal(rest.len, 0);
}

static void spans_to_numbers(void **state)
{
    (void)state;
    uint64_t value = 7;
    assert_true(lp_span_to_u64(LP_SPAN("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
    static const char *const BAD[] = {
        "", "18446744073709551616", "99999999999999999999", "-1", "+1", " 1", "1 ", "0x1", "1a"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        value = 7;
        assert_false(lp_span_to_u64(lp_span_str(BAD[i]), &value));
        assert_true(value == 7);
    }
}

static void a_buffer_keeps_its_ceiling(void **state)
{
    (void)state;
    struct lp_buf buf;
    lp_buf_init(&buf, 1000);
    char big[1001] = {0};
    assert_int_equal(lp_buf_append(&buf, lp_span(big, 1001)), LP_ELIMIT);
    assert_int_equal(buf.cap, 0); /* nothing was taken for it */
    assert_int_equal(lp_buf_append(&buf, lp_span(big, 600)), LP_OK);
    assert_int_equal(lp_buf_append(&buf, lp_span(big, 401)), LP_ELIMIT);
    assert_int_equal(buf.len, 600);
    assert_int_equal(lp_buf_append(&buf, lp_span(big, 400)), LP_OK);
    assert_int_equal(lp_buf_room(&buf), 0);
    assert_int_equal(lp_buf_append(&buf, LP_SPAN("")), LP_OK);
    lp_buf_release(&buf);
    lp_buf_release(&buf);
    assert_int_equal(buf.max, 1000);
    assert_null(lp_buf_span(&buf).ptr);
}

static void a_buffer_joins_all_or_nothing(void **state)
{
    (void)state;
    struct lp_buf buf;
    lp_buf_init(&buf, 10);
    assert_int_equal(LP_JOIN(&buf, LP_SPAN("ab"), LP_SPAN(""), LP_SPAN("cdef")), LP_OK);
    assert_int_equal(LP_JOIN(&buf, LP_SPAN("123"), LP_SPAN("45")), LP_ELIMIT);
    assert_int_equal(LP_JOIN(&buf, LP_SPAN("123456"), LP_SPAN("78901")), LP_ELIMIT);
    assert_int_equal(LP_JOIN(&buf, LP_SPAN("gh"), LP_SPAN("ij")), LP_OK);
    assert_int_equal(LP_JOIN(&buf, LP_SPAN("")), LP_OK);
    assert_true(lp_span_eq(lp_buf_span(&buf), LP_SPAN("abcdefghij")));
    lp_buf_release(&buf);
}

static void a_buffer_consumes_in_front(void **state)
{
    (void)state;
    struct lp_buf buf;
    lp_buf_init(&buf, 2048);
    char fill[500];
    memset(fill, 'x', sizeof fill);
    assert_int_equal(lp_buf_append(&buf, lp_span(fill, 500)), LP_OK);
    lp_buf_consume(&buf, 490);
    assert_int_equal(lp_buf_append(&buf, LP_SPAN("0123456789abcdef")), LP_OK); /* squeezed */
    assert_int_equal(buf.cap, 512);
    assert_span(lp_buf_span(&buf), "xxxxxxxxxx0123456789abcdef");
    lp_buf_consume(&buf, buf.len);
    assert_int_equal(buf.off, 0);
    assert_int_equal(lp_buf_append(&buf, LP_SPAN("y")), LP_OK);
    lp_buf_clear(&buf);
    assert_int_equal(buf.len, 0);
    lp_buf_release(&buf);
}

static void a_buffer_prints(void **state)
{
    (void)state;
    struct lp_buf buf;
    lp_buf_init(&buf, 8);
    assert_int_equal(lp_buf_printf(&buf, "%s-%d", "abc", 1234), LP_OK); /* exactly full */
    assert_span(lp_buf_span(&buf), "abc-1234");
    assert_int_equal(lp_buf_printf(&buf, "x"), LP_ELIMIT);
    assert_span(lp_buf_span(&buf), "abc-1234");
    lp_buf_release(&buf);
}

static void an_arena_resets_and_ends(void **state)
{
    (void)state;
    struct lp_arena arena;
    struct lp_span copy;
    lp_arena_init(&arena, 10000);
    lp_arena_reset(&arena); /* of nothing */
    char *first = lp_arena_alloc(&arena, 3);
    char *second = lp_arena_alloc(&arena, 3);
    assert_int_equal((uintptr_t)second % 16, (uintptr_t)first % 16);
    assert_int_equal(lp_arena_dup(&arena, LP_SPAN("hello"), &copy), LP_OK);
    assert_span(copy, "hello");
    assert_int_equal(lp_arena_dup(&arena, lp_span(NULL, 0), &copy), LP_OK);
    assert_non_null(lp_arena_alloc(&arena, 4000)); /* a block of its own */
    assert_null(lp_arena_alloc(&arena, 9000));
    lp_arena_reset(&arena);
    assert_int_equal(arena.used, 0);
    assert_non_null(lp_arena_alloc(&arena, 9000));
    assert_int_equal(lp_arena_dup(&arena, lp_span(first, 2000), &copy), LP_ENOMEM);
    lp_arena_fini(&arena);
    lp_arena_fini(&arena);
}

static void a_stale_id_finds_nothing(void **state)
{
    (void)state;
    struct lp_slab slab;
    lp_id ids[200], id = 0;
    lp_slab_init(&slab, 40, 200);
    for (int i = 0; i < 200; i++) {
        int *object = lp_slab_new(&slab, &ids[i]);
        assert_non_null(object);
        assert_int_equal(*object, 0);
        *object = i;
    }
    assert_null(lp_slab_new(&slab, &id)); /* the ceiling */
    assert_int_equal(*(int *)lp_slab_get(&slab, ids[150]), 150);
    lp_slab_free(&slab, ids[150]);
    assert_null(lp_slab_get(&slab, ids[150]));
    assert_non_null(lp_slab_new(&slab, &id));
    assert_int_equal(lp_id_slot(id), lp_id_slot(ids[150]));
    assert_true(id != ids[150]);
    assert_null(lp_slab_get(&slab, ids[150]));
    assert_null(lp_slab_get(&slab, 0));
    assert_null(lp_slab_get(&slab, (lp_id)1 << 32 | 5000));
    lp_slab_fini(&slab);
}

static void a_slab_is_walked_alive_only(void **state)
{
    (void)state;
    struct lp_slab slab;
    lp_id ids[5], id;
    lp_slab_init(&slab, 8, 100);
    for (int i = 0; i < 5; i++)
        assert_non_null(lp_slab_new(&slab, &ids[i]));
    lp_slab_free(&slab, ids[0]);
    lp_slab_free(&slab, ids[3]);
    uint32_t cursor = 0, seen = 0;
    while (lp_slab_next(&slab, &cursor, &id)) {
        assert_true(id == ids[1] || id == ids[2] || id == ids[4]);
        seen++;
    }
    assert_int_equal(seen, 3);
    lp_slab_fini(&slab);
}

static uint64_t lcg(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20;
}

static void timers_come_in_order(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static struct lp_timer timers[COUNT];
    struct lp_heap heap;
    uint64_t seed = 7, last = 0;
    int due = 0;
    lp_heap_init(&heap);
    assert_true(lp_heap_next_us(&heap) == UINT64_MAX);
    assert_null(lp_heap_due(&heap, UINT64_MAX));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(lp_heap_set(&heap, &timers[i], lcg(&seed) % 1000), LP_OK);
    for (int i = 0; i < COUNT; i += 3) /* moved, earlier and later */
        assert_int_equal(lp_heap_set(&heap, &timers[i], lcg(&seed) % 1000), LP_OK);
    for (int i = 0; i < COUNT; i += 5)
        lp_heap_cancel(&heap, &timers[i]);
    lp_heap_cancel(&heap, &timers[0]); /* twice */
    for (struct lp_timer *t; (t = lp_heap_due(&heap, 2000)); due++) {
        assert_true(t->at_us >= last);
        last = t->at_us;
        assert_int_equal(t->index, 0);
    }
    assert_int_equal(due, COUNT - COUNT / 5);
    assert_int_equal(lp_heap_set(&heap, &timers[1], 50), LP_OK);
    assert_null(lp_heap_due(&heap, 49));
    assert_ptr_equal(lp_heap_due(&heap, 50), &timers[1]);
    assert_int_equal(lp_heap_set(&heap, &timers[1], 50), LP_OK);
    lp_heap_fini(&heap);
    assert_int_equal(timers[1].index, 0);
}

static void a_map_agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { KEYS = 300 };
    static uint64_t model[KEYS];
    struct lp_map map;
    uint64_t seed = 11;
    lp_map_init(&map);
    struct lp_key none = {1, 1};
    assert_int_equal(lp_map_get(&map, none), 0);
    assert_int_equal(lp_map_remove(&map, none), 0);
    for (int step = 0; step < 20000; step++) {
        uint64_t k = lcg(&seed) % KEYS;
        struct lp_key key = {k, k * 7 % 64}; /* many share a cell */
        if (lcg(&seed) % 3) {
            uint64_t value = lcg(&seed) + 1;
            assert_int_equal(lp_map_put(&map, key, value), LP_OK);
            model[k] = value;
        } else {
            assert_true(lp_map_remove(&map, key) == model[k]);
            model[k] = 0;
        }
        k = lcg(&seed) % KEYS;
        assert_true(lp_map_get(&map, (struct lp_key){k, k * 7 % 64}) == model[k]);
    }
    lp_map_fini(&map);
}

/* Every record of a session depends on it: half a key is no key. */
static void keys_that_are_half_equal_are_two(void **state)
{
    (void)state;
    static const struct lp_key KEYS[] = {{1, 1}, {1, 2}, {2, 1}, {1, 1 + 64}};
    enum { COUNT = sizeof KEYS / sizeof *KEYS };
    struct lp_map map;
    lp_map_init(&map);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(lp_map_put(&map, KEYS[i], i + 1), LP_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(lp_map_get(&map, KEYS[i]), i + 1);
    for (uint64_t i = 0; i < COUNT; i++)
        for (uint64_t k = 0; k < COUNT; k++)
            assert_int_equal(lp_key_eq(KEYS[i], KEYS[k]), i == k);
    lp_map_fini(&map);
}

static void a_list_node_leaves_twice(void **state)
{
    (void)state;
    struct lp_list list, a, b;
    lp_list_init(&list);
    lp_list_init(&a);
    lp_list_init(&b);
    lp_list_push_back(&list, &b);
    lp_list_push_front(&list, &a);
    assert_ptr_equal(list.next, &a);
    assert_ptr_equal(list.prev, &b);
    lp_list_remove(&a);
    lp_list_remove(&a);
    assert_ptr_equal(list.next, &b);
    lp_list_remove(&b);
    assert_true(lp_list_empty(&list));
}

static void errors_have_names_and_sentences(void **state)
{
    (void)state;
    assert_string_equal(lp_error_name(LP_OK), "OK");
    assert_string_equal(lp_error_sentence(LP_OK), "success");
    assert_string_equal(lp_error_name(12345), "UNKNOWN");
    assert_string_equal(lp_error_sentence(12345), "unknown error");
#define X(name, value, sentence)                                                                   \
    assert_string_equal(lp_error_name(LP_E##name), #name);                                         \
    assert_string_equal(lp_error_sentence(value), sentence);
    LP_ERRORS(X)
#undef X
}

/* Requirements [G6]: a lost session is one neutral 404 for every cause. */
static void reasons_are_neutral_to_clients(void **state)
{
    (void)state;
    assert_string_equal(lp_reason_info(LP_REASON_none)->name, "none");
    int lost = 0;
    for (int r = LP_REASON_none + 1; r < LP_REASON_count; r++) {
        const struct lp_reason_info *info = lp_reason_info((enum lp_reason)r);
        assert_true(info->name[0] && info->sentence[0]);
        if (info->jsonrpc_code != -32001)
            continue;
        lost++;
        assert_int_equal(info->http_status, 404);
        assert_string_equal(lp_reason_public((enum lp_reason)r), "Session not found");
    }
    assert_int_equal(lost, 10);
    assert_string_equal(lp_reason_public(LP_REASON_bad_batch), "a batch is not allowed here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_compare),
        cmocka_unit_test(spans_search),
        cmocka_unit_test(spans_cut),
        cmocka_unit_test(spans_to_numbers),
        cmocka_unit_test(a_buffer_keeps_its_ceiling),
        cmocka_unit_test(a_buffer_joins_all_or_nothing),
        cmocka_unit_test(a_buffer_consumes_in_front),
        cmocka_unit_test(a_buffer_prints),
        cmocka_unit_test(an_arena_resets_and_ends),
        cmocka_unit_test(a_stale_id_finds_nothing),
        cmocka_unit_test(a_slab_is_walked_alive_only),
        cmocka_unit_test(timers_come_in_order),
        cmocka_unit_test(a_map_agrees_with_a_plain_array),
        cmocka_unit_test(keys_that_are_half_equal_are_two),
        cmocka_unit_test(a_list_node_leaves_twice),
        cmocka_unit_test(errors_have_names_and_sentences),
        cmocka_unit_test(reasons_are_neutral_to_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
