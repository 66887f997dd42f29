/* Laws of tickets over seeded random values: opening gives back what was sealed, sealing that again
 * gives the same text, and no part of a text opens. A failing seed is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mcp/entropy.h"
#include "mcp/ticket.h"

enum { SEEDS = 3000 };

struct world {
    struct lp_entropy e;
    struct lp_keyring ring;
    struct lp_ticket_scope scope;
    struct lp_ticket ticket;
    unsigned char nonce[LP_TICKET_NONCE_BYTES];
    char name[64];
    char id[LP_TICKET_UPSTREAM_ID_MAX];
    char cookies[LP_TICKET_COOKIES_MAX];
};

static struct lp_span random_span(struct lp_entropy *e, char *room, size_t min, size_t max)
{
    size_t len = min + lp_entropy_below(e, (uint32_t)(max - min + 1));
    lp_entropy_bytes(e, (unsigned char *)room, len);
    return lp_span(room, len);
}

static void make_ring(struct world *w)
{
    char text[46 * LP_KEYRING_MAX];
    size_t len = 0;
    uint32_t line = 0;
    uint32_t count = 1 + lp_entropy_below(&w->e, LP_KEYRING_MAX);
    for (uint32_t i = 0; i < count; i++) {
        unsigned char key[LP_KEY_BYTES];
        lp_entropy_bytes(&w->e, key, sizeof key);
        len += lp_keyring_format(key, text + len);
    }
    assert_int_equal(lp_keyring_parse(lp_span(text, len), &w->ring, &line), LP_OK);
    assert_int_equal(w->ring.count, count);
}

static void make_world(struct world *w, uint32_t seed)
{
    static const enum lp_ticket_kind KINDS[] = {
        LP_TICKET_HTTP, LP_TICKET_SSE, LP_TICKET_TASK, LP_TICKET_STATE};
    unsigned char bytes[LP_ENTROPY_SEED_BYTES] = {(unsigned char)seed, (unsigned char)(seed >> 8)};
    lp_entropy_init(&w->e, bytes);
    make_ring(w);
    w->scope = (struct lp_ticket_scope){
        KINDS[lp_entropy_below(&w->e, 4)], random_span(&w->e, w->name, 0, sizeof w->name)};
    lp_entropy_bytes(&w->e, w->nonce, sizeof w->nonce);
    w->ticket = (struct lp_ticket){.has_principal = lp_entropy_below(&w->e, 2)};
    lp_entropy_bytes(&w->e, (unsigned char *)&w->ticket.issued_ms, sizeof w->ticket.issued_ms);
    lp_entropy_bytes(&w->e, w->ticket.replica, sizeof w->ticket.replica);
    if (w->ticket.has_principal)
        lp_entropy_bytes(&w->e, w->ticket.principal, sizeof w->ticket.principal);
    w->ticket.upstream_id = random_span(&w->e, w->id, 1, sizeof w->id);
    if (lp_entropy_below(&w->e, 2))
        w->ticket.cookies = random_span(&w->e, w->cookies, 0, sizeof w->cookies);
}

static bool same(const struct lp_ticket *a, const struct lp_ticket *b)
{
    return a->issued_ms == b->issued_ms && memcmp(a->replica, b->replica, 8) == 0 &&
        a->has_principal == b->has_principal && memcmp(a->principal, b->principal, 8) == 0 &&
        lp_span_eq(a->cookies, b->cookies) && lp_span_eq(a->upstream_id, b->upstream_id);
}

/* Whether the laws hold for one seed; *ret_sealed says that its ticket was within the limits. */
static bool holds(struct world *w, bool *ret_sealed)
{
    char text[LP_TICKET_TEXT_MAX];
    char again[LP_TICKET_TEXT_MAX];
    char room[LP_TICKET_TEXT_MAX];
    size_t len = 0;
    size_t again_len = 0;
    struct lp_ticket out;
    int err = lp_ticket_seal(&(struct lp_ticket_context){.ring = &w->ring, .scope = &w->scope},
        &w->ticket, w->nonce, text, &len);
    *ret_sealed = err == LP_OK;
    if (err)
        return err == LP_ERANGE && w->ticket.cookies.len > 0 &&
            w->ticket.cookies.len + w->ticket.upstream_id.len > 600;
    struct lp_span whole = lp_span(text, len);
    uint64_t issued = w->ticket.issued_ms;
    if (lp_ticket_open(
            &(struct lp_ticket_context){&w->ring, &w->scope, issued, 0}, whole, room, &out) ||
        !same(&w->ticket, &out))
        return false;
    if (lp_ticket_seal(&(struct lp_ticket_context){.ring = &w->ring, .scope = &w->scope}, &out,
            w->nonce, again, &again_len) ||
        !lp_span_eq(whole, lp_span(again, again_len)))
        return false;
    for (size_t n = 0; n < len; n += 1 + lp_entropy_below(&w->e, 64))
        if (!lp_ticket_open(&(struct lp_ticket_context){&w->ring, &w->scope, issued, 0},
                lp_span(text, n), room, &out))
            return false;
    size_t at = 4 + lp_entropy_below(&w->e, (uint32_t)len - 4);
    text[at] = text[at] == 'A' ? 'B' : 'A';
    return lp_ticket_open(&(struct lp_ticket_context){&w->ring, &w->scope, issued, 0}, whole, room,
               &out) != LP_OK;
}

static void test_laws(void **state)
{
    (void)state;
    static struct world w;
    unsigned sealed_count = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        bool sealed = false;
        make_world(&w, seed);
        if (!holds(&w, &sealed)) {
            print_error("seed %u\n", seed);
            fail();
        }
        sealed_count += sealed;
    }
    assert_in_range(sealed_count, SEEDS / 2, SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laws)};
    return cmocka_run_group_tests_name("prop_ticket", tests, NULL, NULL);
}
