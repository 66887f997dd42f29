/* Tickets: what is sealed comes back, nothing else ever opens, and the sizes that are promised hold
 * (mcp/ticket.h, requirements [G3], cases AFF-08). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "forge_ticket.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static const unsigned char NONCE[LP_TICKET_NONCE_BYTES] = {
    1, 2, 3, 4, 5, 6, 7, 8, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 9, 9, 9, 9};
static const struct lp_ticket_scope SCOPE = {LP_TICKET_HTTP, {"tools", 5}};
static const uint64_t NOW = 1790000000000;

/* A ring of keys 32 x `first`, 32 x `first + 1`, ... */
static struct lp_keyring make_ring(unsigned char first, uint32_t count)
{
    char text[46 * LP_KEYRING_MAX];
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char key[LP_KEY_BYTES];
        memset(key, (int)(first + i), sizeof key);
        len += lp_keyring_format(key, text + len);
    }
    struct lp_keyring ring;
    uint32_t line = 0;
    assert_int_equal(lp_keyring_parse(lp_span(text, len), &ring, &line), LP_OK);
    return ring;
}

static struct lp_ticket make_ticket(struct lp_span upstream_id)
{
    return (struct lp_ticket){
        .issued_ms = NOW, .replica = {8, 7, 6, 5, 4, 3, 2, 1}, .upstream_id = upstream_id};
}

static struct lp_span seal(const struct lp_keyring *ring, const struct lp_ticket *t, char *room)
{
    size_t len = 0;
    assert_int_equal(lp_ticket_seal(&(struct lp_ticket_context){.ring = ring, .scope = &SCOPE}, t,
                         NONCE, room, &len),
        LP_OK);
    assert_true(len <= LP_TICKET_TEXT_MAX);
    return lp_span(room, len);
}

static int open_at(const struct lp_keyring *ring, struct lp_span text, uint64_t now)
{
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t;
    return lp_ticket_open(
        &(struct lp_ticket_context){ring, &SCOPE, now, 30ull * DAY_MS}, text, room, &t);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char text_room[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket in = make_ticket(LP_SPAN("3f0c-\x01\xff"));
    for (int i = 0; i < 4; i++) {
        in.has_principal = i & 1;
        memcpy(in.principal, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
        in.cookies = i & 2 ? LP_SPAN("lb=a; route=b") : lp_span(NULL, 0);
        struct lp_span text = seal(&ring, &in, text_room);
        struct lp_ticket out;
        assert_int_equal(
            lp_ticket_open(&(struct lp_ticket_context){&ring, &SCOPE, NOW, 0}, text, room, &out),
            LP_OK);
        assert_true(out.issued_ms == NOW);
        assert_memory_equal(out.replica, in.replica, sizeof in.replica);
        assert_int_equal(out.has_principal, in.has_principal);
        if (in.has_principal)
            assert_memory_equal(out.principal, in.principal, sizeof in.principal);
        assert_true(lp_span_eq(out.cookies, in.cookies));
        assert_true(lp_span_eq(out.upstream_id, in.upstream_id));
        assert_true(out.key.hi == 0x0102030405060708 && out.key.lo == 0xa1a2a3a4a5a6a7a8);
        assert_int_equal(out.ring_index, 0);
    }
}

/* All bytes are 0x21 to 0x7E, and nothing of the content can be read (AFF-08 test 1). */
static void test_text(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char room[LP_TICKET_TEXT_MAX];
    char raw[LP_TICKET_TEXT_MAX];
    size_t len = 0;
    struct lp_ticket t = make_ticket(LP_SPAN("10.1.2.3:9000"));
    struct lp_span text = seal(&ring, &t, room);
    assert_true(lp_span_starts(text, LP_SPAN("lp1_")));
    for (size_t i = 0; i < text.len; i++)
        assert_in_range(text.ptr[i], 0x21, 0x7e);
    assert_int_equal(lp_base64url_decode(lp_span_from(text, 4), raw, sizeof raw, &len), LP_OK);
    assert_int_equal(lp_span_search(lp_span(raw, len), LP_SPAN("9000")), len);
    assert_int_equal(lp_span_search(lp_span(raw, len), LP_SPAN("10.1.2.3")), len);
}

/* Each byte in turn is replaced by each other byte that a header may hold (AFF-08 test 2). */
static void test_flips(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 2);
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_span text = seal(&ring, &t, room);
    assert_int_equal(open_at(&ring, text, NOW), LP_OK);
    for (size_t i = 0; i < text.len; i++) {
        char was = room[i];
        for (int c = 0x21; c <= 0x7e; c++) {
            room[i] = (char)c;
            int err = open_at(&ring, text, NOW);
            if (c == was)
                assert_int_equal(err, LP_OK);
            else
                assert_true(err == LP_ESYNTAX || err == LP_EUNKNOWN_KEY || err == LP_EFORGED);
        }
        room[i] = was;
    }
}

static void test_form(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char room[LP_TICKET_TEXT_MAX + 1];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_span text = seal(&ring, &t, room);
    for (size_t n = 0; n < text.len; n++) {
        int err = open_at(&ring, lp_span(room, n), NOW);
        assert_true(err == LP_ESYNTAX || err == LP_EFORGED);
    }
    room[text.len] = 'A';
    assert_int_not_equal(open_at(&ring, lp_span(room, text.len + 1), NOW), LP_OK);
    assert_int_equal(open_at(&ring, lp_span(NULL, 0), NOW), LP_ESYNTAX);
    assert_int_equal(
        open_at(&ring, LP_SPAN("3f0c1d2e-0000-4000-8000-000000000000"), NOW), LP_ESYNTAX);
    assert_int_equal(open_at(&ring, LP_SPAN("lp1_"), NOW), LP_ESYNTAX);
    memset(room, 'A', sizeof room);
    memcpy(room, "lp1_", 4);
    assert_int_equal(open_at(&ring, lp_span(room, 4 + 56), NOW), LP_ESYNTAX);
    assert_int_equal(open_at(&ring, lp_span(room, 4 + 60), NOW), LP_EUNKNOWN_KEY);
    assert_int_equal(open_at(&ring, lp_span(room, LP_TICKET_TEXT_MAX), NOW), LP_EUNKNOWN_KEY);
    assert_int_equal(open_at(&ring, lp_span(room, LP_TICKET_TEXT_MAX + 1), NOW), LP_ESYNTAX);
}

/* The seal covers the server entry and the kind. */
static void test_scope(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char text_room[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_span text = seal(&ring, &t, text_room);
    static const struct lp_ticket_scope OTHERS[] = {
        {LP_TICKET_SSE, {"tools", 5}},
        {LP_TICKET_TASK, {"tools", 5}},
        {LP_TICKET_STATE, {"tools", 5}},
        {LP_TICKET_HTTP, {"tool", 4}},
        {LP_TICKET_HTTP, {"toolss", 6}},
        {LP_TICKET_HTTP, {"Tools", 5}},
        {LP_TICKET_HTTP, {NULL, 0}},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct lp_ticket out = {.ring_index = 77};
        assert_int_equal(lp_ticket_open(&(struct lp_ticket_context){&ring, &OTHERS[i], NOW, DAY_MS},
                             text, room, &out),
            LP_EFORGED);
        assert_int_equal(out.ring_index, 77);
        size_t len = 0;
        char other_room[LP_TICKET_TEXT_MAX];
        assert_int_equal(
            lp_ticket_seal(&(struct lp_ticket_context){.ring = &ring, .scope = &OTHERS[i]}, &t,
                NONCE, other_room, &len),
            LP_OK);
        struct lp_span other = lp_span(other_room, len);
        assert_int_equal(lp_ticket_open(&(struct lp_ticket_context){&ring, &OTHERS[i], NOW, DAY_MS},
                             other, room, &out),
            LP_OK);
    }
}

/* Rotation in two steps: the new key first opens everywhere, then seals (AFF-08 test 3). */
static void test_rotation(void **state)
{
    (void)state;
    struct lp_keyring old_only = make_ring(9, 1);
    struct lp_keyring new_only = make_ring(5, 1);
    struct lp_keyring both = {.count = 2, .keys = {new_only.keys[0], old_only.keys[0]}};
    char text_room[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_ticket out;
    struct lp_span text = seal(&old_only, &t, text_room);
    assert_int_equal(
        lp_ticket_open(&(struct lp_ticket_context){&both, &SCOPE, NOW, DAY_MS}, text, room, &out),
        LP_OK);
    assert_int_equal(out.ring_index, 1);
    assert_int_equal(open_at(&new_only, text, NOW), LP_EUNKNOWN_KEY);
    text = seal(&both, &t, text_room);
    assert_int_equal(lp_ticket_open(&(struct lp_ticket_context){&new_only, &SCOPE, NOW, DAY_MS},
                         text, room, &out),
        LP_OK);
    assert_int_equal(open_at(&old_only, text, NOW), LP_EUNKNOWN_KEY);
}

/* Two keys with one id: the id only says where to try first. */
static void test_shared_key_id(void **state)
{
    (void)state;
    struct lp_keyring old_only = make_ring(9, 1);
    struct lp_keyring ring = {.count = 2, .keys = {make_ring(5, 1).keys[0], old_only.keys[0]}};
    memcpy(ring.keys[0].id, ring.keys[1].id, LP_KEY_ID_BYTES);
    char text_room[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_ticket out;
    struct lp_span text = seal(&old_only, &t, text_room);
    assert_int_equal(
        lp_ticket_open(&(struct lp_ticket_context){&ring, &SCOPE, NOW, DAY_MS}, text, room, &out),
        LP_OK);
    assert_int_equal(out.ring_index, 1);
    ring.count = 1;
    assert_int_equal(open_at(&ring, text, NOW), LP_EFORGED);
}

static void test_age(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t = make_ticket(LP_SPAN("session-1"));
    struct lp_span text = seal(&ring, &t, room);
    assert_int_equal(open_at(&ring, text, NOW), LP_OK);
    assert_int_equal(open_at(&ring, text, NOW + 30ull * DAY_MS), LP_OK);
    assert_int_equal(open_at(&ring, text, NOW + 30ull * DAY_MS + 1), LP_EEXPIRED);
    assert_int_equal(open_at(&ring, text, UINT64_MAX), LP_EEXPIRED);
    assert_int_equal(open_at(&ring, text, NOW - 1), LP_OK);
    assert_int_equal(open_at(&ring, text, 0), LP_OK);
}

static void test_sizes(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char room[LP_TICKET_TEXT_MAX];
    char bytes[LP_TICKET_UPSTREAM_ID_MAX + 1];
    size_t len = 0;
    memset(bytes, 'x', sizeof bytes);
    static const struct {
        size_t id_len;
        size_t cookies_len;
        int err;
        size_t len_max;
    } CASES[] = {
        {64, 0, LP_OK, 512},
        {1, 0, LP_OK, 512},
        {0, 0, LP_ERANGE, 0},
        {512, 0, LP_OK, LP_TICKET_TEXT_MAX},
        {513, 0, LP_ETOO_LONG, 0},
        {513, 513, LP_ETOO_LONG, 0},
        {64, 512, LP_OK, 1024},
        {64, 513, LP_ERANGE, 0},
        {512, 512, LP_ERANGE, 0},
        {512, 1, LP_OK, 1024},
        {170, 512, LP_OK, 1024},
        {171, 512, LP_ERANGE, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_ticket t = make_ticket(lp_span(bytes, CASES[i].id_len));
        t.cookies = lp_span(bytes, CASES[i].cookies_len);
        t.has_principal = true;
        len = 0;
        assert_int_equal(lp_ticket_seal(&(struct lp_ticket_context){.ring = &ring, .scope = &SCOPE},
                             &t, NONCE, room, &len),
            CASES[i].err);
        assert_true(len <= CASES[i].len_max);
        if (CASES[i].err == LP_OK)
            assert_int_equal(open_at(&ring, lp_span(room, len), NOW), LP_OK);
        else
            assert_int_equal(len, 0);
    }
}

#define ISSUED "\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x05"
#define REPLICA "\x02\x00\x08RRRRRRRR"
#define PRINCIPAL "\x03\x00\x08PPPPPPPP"
#define COOKIES                                                                                    \
    "\x04\x00\x03"                                                                                 \
    "a=b"
#define UPSTREAM "\x05\x00\x02id"

/* Contents that only a holder of the key could have sealed: still nothing but the one form opens.
 */
static void test_contents(void **state)
{
    (void)state;
    static const struct {
        struct lp_span plain;
        int err;
    } CASES[] = {
#define ROW(text, err) {{"" text, sizeof(text) - 1}, err}
        ROW(ISSUED REPLICA UPSTREAM, LP_OK),
        ROW(ISSUED REPLICA PRINCIPAL COOKIES UPSTREAM, LP_OK),
        ROW("", LP_EFORGED),
        ROW("\x01", LP_EFORGED),
        ROW("\x01\x00", LP_EFORGED),
        ROW(ISSUED REPLICA, LP_EFORGED),
        ROW(ISSUED UPSTREAM, LP_EFORGED),
        ROW(REPLICA UPSTREAM, LP_EFORGED),
        ROW(REPLICA ISSUED UPSTREAM, LP_EFORGED),
        ROW(ISSUED REPLICA COOKIES PRINCIPAL UPSTREAM, LP_EFORGED),
        ROW(ISSUED ISSUED REPLICA UPSTREAM, LP_EFORGED),
        ROW(ISSUED REPLICA UPSTREAM UPSTREAM, LP_EFORGED),
        ROW(ISSUED REPLICA UPSTREAM "\x06\x00\x01x", LP_EFORGED),
        ROW("\x00\x00\x01x" ISSUED REPLICA UPSTREAM, LP_EFORGED),
        ROW(ISSUED REPLICA UPSTREAM "\x06", LP_EFORGED),
        ROW(ISSUED REPLICA "\x05\x00\x03id", LP_EFORGED),
        ROW(ISSUED REPLICA "\x05\xff\xffid", LP_EFORGED),
        ROW(ISSUED REPLICA "\x05\x00\x00", LP_EFORGED),
        ROW(ISSUED REPLICA "\x04\x00\x00" UPSTREAM, LP_EFORGED),
        ROW("\x01\x00\x07ttttttt" REPLICA UPSTREAM, LP_EFORGED),
        ROW(ISSUED "\x02\x00\x09RRRRRRRRR" UPSTREAM, LP_EFORGED),
        ROW(ISSUED REPLICA "\x03\x00\x01P" UPSTREAM, LP_EFORGED),
#undef ROW
    };
    struct lp_keyring ring = make_ring(1, 1);
    char text_room[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    struct lp_ticket t;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t len = forge_ticket(&ring.keys[0], &SCOPE, NONCE, CASES[i].plain, text_room);
        struct lp_span text = lp_span(text_room, len);
        assert_int_equal(
            lp_ticket_open(&(struct lp_ticket_context){&ring, &SCOPE, 0, DAY_MS}, text, room, &t),
            CASES[i].err);
        if (CASES[i].err == LP_OK)
            assert_true(lp_span_eq(t.upstream_id, LP_SPAN("id")) && t.issued_ms == 5);
    }
}

/* Values over their limits, sealed by a holder of the key. */
static void test_contents_too_long(void **state)
{
    (void)state;
    struct lp_keyring ring = make_ring(1, 1);
    char plain[FORGE_PLAIN_MAX];
    char text[LP_TICKET_TEXT_MAX];
    size_t head = sizeof ISSUED REPLICA - 1;
    memset(plain, 'x', sizeof plain);
    memcpy(plain, ISSUED REPLICA, head);
    for (unsigned n = 512; n <= 513; n++) {
        memcpy(plain + head, (char[]){5, (char)(n >> 8), (char)n}, 3);
        size_t len = forge_ticket(&ring.keys[0], &SCOPE, NONCE, lp_span(plain, head + 3 + n), text);
        assert_int_equal(open_at(&ring, lp_span(text, len), 0), n == 512 ? LP_OK : LP_EFORGED);
        plain[head] = 4;
        memcpy(plain + head + 3 + n, UPSTREAM, 5);
        len = forge_ticket(&ring.keys[0], &SCOPE, NONCE, lp_span(plain, head + 3 + n + 5), text);
        assert_int_equal(open_at(&ring, lp_span(text, len), 0), n == 512 ? LP_OK : LP_EFORGED);
        plain[head + 3 + n] = 'x';
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_shared_key_id),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_contents_too_long),
    };
    return cmocka_run_group_tests_name("ticket", tests, NULL, NULL);
}
