/* The objects of the public library (jar, event reader, key ring): what they do, that all of their
 * memory comes from the hook they were given and goes back to it with its size, and that each
 * allocation may fail. By limpet.h alone, through the shared library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limpet.h>

#define KEY_1 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define ORIGIN "https://example.org/mcp"

static bool is_text(struct limpet_span span, const char *text)
{
    return span.len == strlen(text) && (!span.len || memcmp(span.ptr, text, span.len) == 0);
}

/* --- a hook that counts, and fails where it is told ------------------------------------------- */

struct pool {
    size_t bytes;   /* given out now */
    unsigned calls; /* that asked for memory */
    unsigned fails; /* the call that gets none, from 1 on; 0: none fails */
};

static void *resize(void *context, void *ptr, size_t old_bytes, size_t bytes)
{
    struct pool *pool = context;
    size_t *block = ptr ? (size_t *)ptr - 2 : NULL;
    assert_int_equal(block ? *block : 0, old_bytes); /* sizes are told truly */
    if (bytes && ++pool->calls == pool->fails)
        return NULL;
    pool->bytes += bytes - old_bytes;
    if (!bytes) {
        free(block);
        return NULL;
    }
    block = realloc(block, bytes + 2 * sizeof *block);
    assert_non_null(block);
    *block = bytes;
    return block + 2;
}

static struct limpet_alloc hook(struct pool *pool)
{
    return (struct limpet_alloc){.resize = resize, .context = pool};
}

/* --- jar -------------------------------------------------------------------------------------- */

static struct limpet_jar *jar_of(const struct limpet_alloc *alloc)
{
    struct limpet_jar *jar = NULL;
    assert_int_equal(
        limpet_jar_new(alloc, limpet_str(ORIGIN), LIMPET_JAR_BYTES_MAX, &jar), LIMPET_OK);
    return jar;
}

static enum limpet_jar_verdict store(struct limpet_jar *jar, const char *url, const char *line)
{
    struct limpet_span name;
    return limpet_jar_store(jar, limpet_str(url), limpet_str(line), 1000, &name);
}

static struct limpet_span cookie(struct limpet_jar *jar, const char *url, const char *configured)
{
    struct limpet_span value = {NULL, 0};
    assert_int_equal(
        limpet_jar_cookie(jar, limpet_str(url), 1000, limpet_str(configured), &value), LIMPET_OK);
    return value;
}

static void test_a_jar(void **state)
{
    (void)state;
    struct limpet_span name = {NULL, 0};
    struct limpet_jar *jar = jar_of(NULL);
    assert_int_equal(cookie(jar, ORIGIN, "").len, 0);
    assert_int_equal(limpet_jar_store(jar, limpet_str("https://EXAMPLE.org:443/other"),
                         limpet_str("lb=pod-2; Path=/; HttpOnly"), 1000, &name),
        LIMPET_JAR_STORED);
    assert_true(is_text(name, "lb"));
    assert_true(is_text(cookie(jar, ORIGIN, ""), "lb=pod-2"));
    assert_true(is_text(cookie(jar, ORIGIN, "a=1; lb=mine"), "a=1; lb=pod-2"));
    assert_true(is_text(cookie(jar, "https://login.example.org/", "a=1"), "a=1"));
    assert_true(is_text(cookie(jar, "no url", "a=1"), "a=1"));
    limpet_jar_clear(jar);
    assert_int_equal(cookie(jar, ORIGIN, "").len, 0);
    assert_int_equal(store(jar, ORIGIN, "x=1"), LIMPET_JAR_STORED);
    assert_true(is_text(cookie(jar, ORIGIN, ""), "x=1"));
    limpet_jar_free(jar);
    limpet_jar_free(NULL);
}

static void test_verdicts_of_a_jar(void **state)
{
    (void)state;
    char big[5000];
    struct limpet_jar *jar = jar_of(NULL), *plain = NULL, *small = NULL;
    memset(big, 'v', sizeof big);
    memcpy(big, "n=", 2);
    big[sizeof big - 1] = '\0';
    assert_int_equal(store(jar, ORIGIN, "a=1; Max-Age=0"), LIMPET_JAR_REMOVED);
    assert_int_equal(store(jar, "http://example.org/", "a=1"), LIMPET_JAR_OTHER_ORIGIN);
    assert_int_equal(store(jar, "mailto:a@example.org", "a=1"), LIMPET_JAR_OTHER_ORIGIN);
    assert_int_equal(store(jar, ORIGIN, "nothing"), LIMPET_JAR_MALFORMED);
    assert_int_equal(store(jar, ORIGIN, big), LIMPET_JAR_TOO_LONG);
    assert_int_equal(store(jar, ORIGIN, "__Host-a=1; Secure"), LIMPET_JAR_BAD_PREFIX);
    assert_int_equal(
        limpet_jar_new(NULL, limpet_str("http://h/"), LIMPET_JAR_BYTES_MAX, &plain), LIMPET_OK);
    assert_int_equal(store(plain, "http://h/", "a=1; Secure"), LIMPET_JAR_NOT_SECURE);
    assert_int_equal(limpet_jar_new(NULL, limpet_str("http://h/"), 20, &small), LIMPET_OK);
    assert_int_equal(store(small, "http://h/", "a=123456789"), LIMPET_JAR_TOO_LONG);
    assert_true(limpet_jar_must_tell(LIMPET_JAR_NOT_SECURE));
    assert_false(limpet_jar_must_tell(LIMPET_JAR_STORED));
    assert_string_equal(limpet_jar_words(LIMPET_JAR_STORED), "was kept");
    assert_string_equal(limpet_jar_words((enum limpet_jar_verdict)8), "");
    limpet_jar_free(jar);
    limpet_jar_free(plain);
    limpet_jar_free(small);
}

static void test_jars_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        int error;
    } CASES[] = {{"", LIMPET_ESYNTAX}, {"/mcp", LIMPET_ESYNTAX}, {"ftp://h/", LIMPET_ESYNTAX},
        {"http:h", LIMPET_ESYNTAX}, {"http://h h/", LIMPET_ESYNTAX}};
    struct limpet_jar *jar = NULL;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(
            limpet_jar_new(NULL, limpet_str(CASES[i].url), 8192, &jar), CASES[i].error);
    assert_null(jar);
}

static void test_a_jar_in_a_ticket(void **state)
{
    (void)state;
    struct limpet_jar *jar = jar_of(NULL), *other = jar_of(NULL);
    assert_int_equal(store(jar, ORIGIN, "a=1"), LIMPET_JAR_STORED);
    assert_int_equal(store(jar, ORIGIN, "b=2"), LIMPET_JAR_STORED);
    struct limpet_span packed = limpet_jar_packed(jar);
    assert_int_equal(limpet_jar_unpack(other, packed, 1000), LIMPET_OK);
    assert_true(is_text(cookie(other, ORIGIN, ""), "a=1; b=2"));
    packed.len--;
    assert_int_equal(limpet_jar_unpack(other, packed, 1000), LIMPET_ESYNTAX);
    limpet_jar_free(jar);
    limpet_jar_free(other);
}

static void test_a_configured_value_has_a_limit(void **state)
{
    (void)state;
    static char big[LIMPET_COOKIE_VALUE_MAX + 1];
    struct limpet_span value = {NULL, 0};
    struct limpet_jar *jar = jar_of(NULL);
    assert_int_equal(store(jar, ORIGIN, "a=1"), LIMPET_JAR_STORED);
    memset(big, ';', sizeof big);
    memcpy(big, "b=2", 3);
    assert_int_equal(limpet_jar_cookie(jar, limpet_str(ORIGIN), 1000,
                         limpet_bytes(big, LIMPET_COOKIE_VALUE_MAX), &value),
        LIMPET_OK);
    assert_true(is_text(value, "b=2; a=1"));
    assert_int_equal(
        limpet_jar_cookie(jar, limpet_str(ORIGIN), 1000, limpet_bytes(big, sizeof big), &value),
        LIMPET_ETOO_LONG);
    limpet_jar_free(jar);
}

/* One use of a jar; false as soon as there is no memory. Whatever was made is given back. */
static bool use_jar(struct pool *pool)
{
    struct limpet_alloc alloc = hook(pool);
    struct limpet_jar *jar = NULL;
    struct limpet_span value;
    int err = limpet_jar_new(&alloc, limpet_str(ORIGIN), 8192, &jar);
    memset(&alloc, 0, sizeof alloc); /* it was copied */
    if (err) {
        assert_int_equal(err, LIMPET_ENOMEM);
        return false;
    }
    enum limpet_jar_verdict verdict = store(jar, ORIGIN, "a=1");
    bool is_good = verdict == LIMPET_JAR_STORED;
    assert_true(is_good || verdict == LIMPET_JAR_NO_ROOM);
    if (is_good) {
        err = limpet_jar_cookie(jar, limpet_str(ORIGIN), 1000, limpet_str("b=2"), &value);
        assert_true(!err || err == LIMPET_ENOMEM);
        is_good = !err && is_text(value, "b=2; a=1");
    }
    if (is_good) {
        struct limpet_jar *other = jar_of(NULL);
        assert_int_equal(limpet_jar_unpack(other, limpet_jar_packed(jar), 1000), LIMPET_OK);
        limpet_jar_free(other);
    }
    limpet_jar_free(jar);
    return is_good;
}

/* --- events ----------------------------------------------------------------------------------- */

static struct limpet_sse *reader(const struct limpet_alloc *alloc, size_t bytes_max)
{
    struct limpet_sse *sse = NULL;
    assert_int_equal(limpet_sse_new(alloc, bytes_max, &sse), LIMPET_OK);
    return sse;
}

static void test_events_in_any_pieces(void **state)
{
    (void)state;
    const char *stream = "retry: 3000\nid: 7\nevent: tick\ndata: one\r\ndata: two\n\n";
    for (size_t piece = 1; piece <= strlen(stream); piece++) {
        struct limpet_sse *sse = reader(NULL, 100);
        struct limpet_sse_event event = {0};
        bool is_ready = false;
        for (size_t at = 0; at < strlen(stream) && !is_ready;) {
            size_t n = strlen(stream) - at < piece ? strlen(stream) - at : piece;
            ptrdiff_t taken = limpet_sse_feed(sse, limpet_bytes(stream + at, n), &event, &is_ready);
            assert_true(taken >= 0);
            at += (size_t)taken;
        }
        assert_true(is_ready && event.has_data && event.has_id && event.has_retry);
        assert_true(is_text(event.type, "tick") && is_text(event.data, "one\ntwo"));
        assert_true(is_text(event.id, "7") && event.retry_ms == 3000);
        assert_int_equal(event.raw_bytes, strlen(stream));
        limpet_sse_free(sse);
    }
    limpet_sse_free(NULL);
}

static void test_a_reader_that_failed_stays_so(void **state)
{
    (void)state;
    struct limpet_sse_event event;
    bool is_ready = true;
    struct limpet_sse *sse = reader(NULL, 10);
    assert_int_equal(limpet_sse_feed(sse, limpet_str("data: 12345678901\n\n"), &event, &is_ready),
        LIMPET_ETOO_LONG);
    assert_int_equal(
        limpet_sse_feed(sse, limpet_str("data: 1\n\n"), &event, &is_ready), LIMPET_ETOO_LONG);
    assert_true(is_ready); /* untouched */
    limpet_sse_free(sse);
    sse = NULL;
    assert_int_equal(limpet_sse_new(NULL, 0, &sse), LIMPET_ERANGE);
    assert_int_equal(limpet_sse_new(NULL, (size_t)LIMPET_SSE_EVENT_MAX + 1, &sse), LIMPET_ERANGE);
    assert_null(sse);
}

static void test_written_events(void **state)
{
    (void)state;
    static const struct {
        struct limpet_sse_event event;
        const char *text;
    } CASES[] = {
        {{.data = {"x", 1}}, "data: x\n\n"},
        {{.id = {"1", 1}}, "id: 1\ndata: \n\n"},
        {{.type = {"tick", 4}, .id = {"7", 1}, .data = {"a\nb\r\nc\rd\r\r\ne", 12}},
            "event: tick\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\n\n"},
        {{.has_retry = true}, "retry: 0\ndata: \n\n"},
        {{.has_retry = true, .retry_ms = UINT64_MAX, .data = {"\n", 1}},
            "retry: 18446744073709551615\ndata: \ndata: \n\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct limpet_sse_event *event = &CASES[i].event;
        size_t len = 0, need = strlen(CASES[i].text);
        char *room = malloc(need); /* to the byte, so that a sanitizer sees one more */
        assert_int_equal(limpet_sse_write_bytes(event), need);
        assert_int_equal(limpet_sse_write(event, room, need - 1, &len), LIMPET_ELIMIT);
        assert_int_equal(limpet_sse_write(event, NULL, 0, &len), LIMPET_ELIMIT);
        assert_int_equal(len, 0);
        assert_int_equal(limpet_sse_write(event, room, need, &len), LIMPET_OK);
        assert_true(is_text(limpet_bytes(room, len), CASES[i].text));
        free(room);
    }
    char room[100];
    size_t len = 0;
    struct limpet_sse_event bad = {.type = limpet_str("a\nb"), .data = limpet_str("x")};
    assert_int_equal(limpet_sse_write(&bad, room, sizeof room, &len), LIMPET_ESYNTAX);
    bad = (struct limpet_sse_event){.id = limpet_bytes("a\0b", 3), .data = limpet_str("x")};
    assert_int_equal(limpet_sse_write(&bad, room, sizeof room, &len), LIMPET_ESYNTAX);
}

static void test_borders(void **state)
{
    (void)state;
    struct limpet_sse_border border;
    limpet_sse_border_init(&border);
    assert_true(limpet_sse_border_at(&border));
    assert_int_equal(limpet_sse_border_feed(&border, limpet_str("data: 1\n\ndata")), 9);
    assert_false(limpet_sse_border_at(&border));
    assert_int_equal(limpet_sse_border_feed(&border, limpet_str(": 2\r\n")), 0);
    assert_int_equal(limpet_sse_border_feed(&border, limpet_str("\r")), 1);
    assert_true(limpet_sse_border_at(&border));
    assert_int_equal(limpet_sse_border_feed(&border, limpet_str("\n")), 1);
    assert_true(limpet_sse_border_at(&border));
}

/* One stream, in pieces so that every buffer of the reader is needed. */
static bool use_sse(struct pool *pool)
{
    static const char *const PIECES[] = {"id: 1\nevent: a\ndata: x", "\ndata: y\n", "\n"};
    struct limpet_alloc alloc = hook(pool);
    struct limpet_sse *sse = NULL;
    struct limpet_sse_event event;
    bool is_ready = false, is_good = true;
    int err = limpet_sse_new(&alloc, 1000, &sse);
    memset(&alloc, 0, sizeof alloc);
    if (err) {
        assert_int_equal(err, LIMPET_ENOMEM);
        return false;
    }
    for (size_t i = 0; i < 3 && is_good; i++) {
        ptrdiff_t taken = limpet_sse_feed(sse, limpet_str(PIECES[i]), &event, &is_ready);
        is_good = taken == (ptrdiff_t)strlen(PIECES[i]);
        assert_true(is_good || taken == LIMPET_ENOMEM);
    }
    assert_int_equal(is_ready, is_good);
    assert_true(!is_good || is_text(event.data, "x\ny"));
    limpet_sse_free(sse);
    return is_good;
}

/* Marks until the table of them has grown. */
static bool use_hops(struct pool *pool)
{
    struct limpet_alloc alloc = hook(pool);
    struct limpet_keyring *ring = NULL;
    struct limpet_hops *hops = NULL;
    struct limpet_hop hop = {.target = limpet_str("m2"), .wall_ms = 1000};
    char room[LIMPET_HOP_ROOM];
    size_t len = 0;
    uint32_t line = 0;
    enum limpet_hop_state state = LIMPET_HOP_GOOD;
    assert_int_equal(limpet_keyring_new(NULL, limpet_str(KEY_1), &ring, &line), LIMPET_OK);
    int err = limpet_hops_new(&alloc, &hops);
    memset(&alloc, 0, sizeof alloc);
    assert_true(!err || err == LIMPET_ENOMEM);
    for (unsigned char i = 0; i < 60 && !err && state == LIMPET_HOP_GOOD; i++) {
        unsigned char nonce[LIMPET_HOP_NONCE_BYTES] = {i};
        assert_int_equal(limpet_hop_sign(ring, &hop, nonce, room, &len), LIMPET_OK);
        state = limpet_hop_judge(hops, ring, &hop, limpet_bytes(room, len));
    }
    assert_true(state == LIMPET_HOP_GOOD || state == LIMPET_HOP_NO_MEMORY);
    limpet_hops_free(hops);
    limpet_keyring_free(ring);
    return !err && state == LIMPET_HOP_GOOD;
}

/* --- each allocation fails once --------------------------------------------------------------- */

static bool use_keyring(struct pool *pool)
{
    struct limpet_alloc alloc = hook(pool);
    struct limpet_keyring *ring = NULL;
    uint32_t line = 0;
    int err = limpet_keyring_new(&alloc, limpet_str("bad\n"), &ring, &line);
    assert_true(err == LIMPET_ESYNTAX || err == LIMPET_ENOMEM);
    if (err == LIMPET_ENOMEM)
        return false;
    err = limpet_keyring_new(&alloc, limpet_str(KEY_1), &ring, &line);
    memset(&alloc, 0, sizeof alloc);
    assert_true(!err || err == LIMPET_ENOMEM);
    limpet_keyring_free(ring);
    return !err;
}

static void fail_each(bool (*use)(struct pool *), unsigned calls_min)
{
    struct pool pool = {.fails = 0};
    assert_true(use(&pool));
    assert_int_equal(pool.bytes, 0);
    unsigned calls = pool.calls;
    assert_true(calls >= calls_min);
    for (unsigned i = 1; i <= calls; i++) {
        pool = (struct pool){.fails = i};
        assert_false(use(&pool));
        assert_int_equal(pool.bytes, 0);
    }
}

static void test_each_allocation_fails_once(void **state)
{
    (void)state;
    fail_each(use_keyring, 2);
    fail_each(use_jar, 3);
    fail_each(use_sse, 5);
    fail_each(use_hops, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_jar),
        cmocka_unit_test(test_verdicts_of_a_jar),
        cmocka_unit_test(test_jars_that_cannot_be),
        cmocka_unit_test(test_a_jar_in_a_ticket),
        cmocka_unit_test(test_a_configured_value_has_a_limit),
        cmocka_unit_test(test_events_in_any_pieces),
        cmocka_unit_test(test_a_reader_that_failed_stays_so),
        cmocka_unit_test(test_written_events),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_each_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
