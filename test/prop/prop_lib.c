/* Laws of the public library over random input, by limpet.h alone: an event takes just the bytes
 * that were foretold and, split anyhow, is read as it was written; a ticket opens as what was
 * sealed, in its own room, and with any one bit changed not at all; a jar that was packed and
 * unpacked sends the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limpet.h>

enum { ROUNDS = 4000, TEXT_MAX = 60 };

struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *dice, uint32_t sides)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 33) % sides;
}

/* Up to `max` bytes of the alphabet. */
static struct limpet_span text_of(
    struct dice *dice, const char *alphabet, size_t max, char room[TEXT_MAX])
{
    size_t len = roll(dice, (uint32_t)max + 1);
    for (size_t i = 0; i < len; i++)
        room[i] = alphabet[roll(dice, (uint32_t)strlen(alphabet))];
    return limpet_bytes(room, len);
}

static bool is_same(struct limpet_span a, struct limpet_span b)
{
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* What the data is to a reader: every line end an LF. */
static struct limpet_span as_read(struct limpet_span data, char room[TEXT_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < data.len; i++)
        if (data.ptr[i] != '\n' || i == 0 || data.ptr[i - 1] != '\r')
            room[len++] = data.ptr[i] == '\r' ? '\n' : data.ptr[i];
    return limpet_bytes(room, len);
}

static void read_again(
    struct dice *dice, const char *stream, size_t len, const struct limpet_sse_event *written)
{
    char room[TEXT_MAX];
    struct limpet_sse *sse = NULL;
    struct limpet_sse_event event;
    bool is_ready = false;
    assert_int_equal(limpet_sse_new(NULL, 1000, &sse), LIMPET_OK);
    for (size_t at = 0; at < len;) {
        assert_false(is_ready);
        size_t piece = 1 + roll(dice, (uint32_t)(len - at));
        ptrdiff_t taken = limpet_sse_feed(sse, limpet_bytes(stream + at, piece), &event, &is_ready);
        assert_true(taken >= 0);
        at += (size_t)taken;
    }
    assert_true(is_ready);
    assert_true(is_same(event.data, as_read(written->data, room)));
    assert_true(is_same(event.type, written->type.len ? written->type : limpet_str("message")));
    assert_true(is_same(event.id, written->id));
    assert_int_equal(event.has_retry, written->has_retry);
    assert_true(!event.has_retry || event.retry_ms == written->retry_ms);
    assert_int_equal(event.raw_bytes, len);
    limpet_sse_free(sse);
}

static void an_event_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct dice dice = {1};
    for (unsigned i = 0; i < ROUNDS; i++) {
        char type[TEXT_MAX], id[TEXT_MAX], data[TEXT_MAX];
        struct limpet_sse_event event = {.type = text_of(&dice, "ab: \t", 5, type),
            .id = text_of(&dice, "01: ", 5, id),
            .data = text_of(&dice, "\r\n\n\r: x", TEXT_MAX, data),
            .has_retry = roll(&dice, 2),
            .retry_ms = (uint64_t)roll(&dice, 1u << 31) << roll(&dice, 33)};
        size_t need = limpet_sse_write_bytes(&event), len = 0;
        char *room = malloc(need);
        assert_non_null(room);
        assert_int_equal(limpet_sse_write(&event, room, need - 1, &len), LIMPET_ELIMIT);
        assert_int_equal(limpet_sse_write(&event, room, need, &len), LIMPET_OK);
        assert_int_equal(len, need);
        read_again(&dice, room, len, &event);
        free(room);
    }
}

static void a_ticket_opens_as_what_was_sealed(void **state)
{
    (void)state;
    struct dice dice = {2};
    struct limpet_keyring *ring = NULL;
    uint32_t line;
    assert_int_equal(
        limpet_keyring_new(
            NULL, limpet_str("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), &ring, &line),
        LIMPET_OK);
    struct limpet_ticket_context context = {
        .ring = ring, .kind = LIMPET_TICKET_HTTP, .age_max_ms = UINT64_MAX};
    for (unsigned i = 0; i < ROUNDS; i++) {
        char id[TEXT_MAX], cookies[TEXT_MAX], text[LIMPET_TICKET_ROOM], room[LIMPET_TICKET_ROOM];
        unsigned char nonce[LIMPET_NONCE_BYTES];
        size_t len = 0;
        struct limpet_ticket ticket;
        struct limpet_note note = {.upstream_id = text_of(&dice, "0123456789abcdef-", 50, id),
            .cookies = text_of(&dice, "ab=;", 50, cookies),
            .replica = limpet_str("a"),
            .issued_ms = roll(&dice, 1u << 31)};
        for (size_t n = 0; n < sizeof nonce; n++)
            nonce[n] = (unsigned char)roll(&dice, 256);
        int err = limpet_ticket_seal(&context, &note, nonce, text, &len);
        assert_int_equal(err, note.upstream_id.len ? LIMPET_OK : LIMPET_ERANGE);
        if (err)
            continue;
        assert_int_equal(
            limpet_ticket_open(&context, limpet_bytes(text, len), room, &ticket), LIMPET_OK);
        assert_true(is_same(ticket.upstream_id, note.upstream_id));
        assert_true(is_same(ticket.cookies, note.cookies));
        assert_int_equal(ticket.issued_ms, note.issued_ms);
        assert_memory_equal(ticket.session, nonce, sizeof ticket.session);
        text[roll(&dice, (uint32_t)len)] ^= (char)(1 << roll(&dice, 8));
        assert_true(limpet_ticket_open(&context, limpet_bytes(text, len), room, &ticket) < 0);
    }
    limpet_keyring_free(ring);
}

static void a_packed_jar_sends_the_same(void **state)
{
    (void)state;
    struct dice dice = {3};
    const struct limpet_span url = limpet_str("http://127.0.0.1:3000/mcp");
    for (unsigned i = 0; i < ROUNDS / 20; i++) {
        struct limpet_jar *jar = NULL, *other = NULL;
        struct limpet_span name, sent = {NULL, 0}, sent_again = {NULL, 0};
        assert_int_equal(limpet_jar_new(NULL, url, 400, &jar), LIMPET_OK);
        assert_int_equal(limpet_jar_new(NULL, url, 400, &other), LIMPET_OK);
        for (unsigned n = 0; n < 30; n++) {
            char line[TEXT_MAX];
            (void)limpet_jar_store(jar, url, text_of(&dice, "ab==; ", 20, line), 1000, &name);
        }
        assert_true(limpet_jar_packed(jar).len <= 400);
        assert_int_equal(limpet_jar_unpack(other, limpet_jar_packed(jar), 1000), LIMPET_OK);
        assert_int_equal(limpet_jar_cookie(jar, url, 1000, limpet_str("z=1"), &sent), LIMPET_OK);
        assert_int_equal(
            limpet_jar_cookie(other, url, 1000, limpet_str("z=1"), &sent_again), LIMPET_OK);
        assert_true(is_same(sent, sent_again) && sent.len > 3);
        limpet_jar_free(jar);
        limpet_jar_free(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_read_as_it_was_written),
        cmocka_unit_test(a_ticket_opens_as_what_was_sealed),
        cmocka_unit_test(a_packed_jar_sends_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
