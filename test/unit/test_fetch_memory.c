/* A fetcher when memory runs out: in a story of all that it does each allocation fails once in its
 * turn. Nothing crashes or leaks, each exchange that has begun ends once, no secret gets into the
 * log, and afterwards it works as before. Needs the linker's --wrap for malloc, calloc, realloc. */
#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

#define calloc __real_calloc /* the shell's own memory does not run out */
#include "call_harness.h"
#undef calloc

#include "mcp/jar.h"

#define URL "http://example.test:3000/mcp"

static long calls_left = -1; /* allocations that still succeed; -1: all */
static long failed;

/* One allocation fails, those after it succeed again. */
static bool may_succeed(void)
{
    if (calls_left < 0)
        return true;
    if (calls_left-- > 0)
        return true;
    failed++;
    return false;
}

void *__wrap_malloc(size_t n)
{
    return may_succeed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_succeed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return may_succeed() ? __real_realloc(ptr, n) : NULL;
}

struct owner {
    uint32_t begun, ends, failures;
    uint32_t connected; /* connections that are told to be there: all up to this */
};

static void on_head(void *ctx, lp_id fetch, const struct lp_head *head)
{
    (void)ctx;
    (void)fetch;
    (void)head;
}

static void on_body(void *ctx, lp_id fetch, struct lp_span bytes)
{
    (void)ctx;
    (void)fetch;
    (void)bytes;
}

static void on_end(void *ctx, lp_id fetch, bool whole)
{
    (void)fetch;
    (void)whole;
    ((struct owner *)ctx)->ends++;
}

static void on_failed(void *ctx, lp_id fetch, const struct lp_fetch_failure *why)
{
    struct owner *o = ctx;
    (void)fetch;
    o->failures++;
    assert_true(why->sentence.len > 0);
}

static const struct lp_fetch_ops OPS = {on_head, on_body, on_end, on_failed};

static void connect(struct shell *s, struct owner *o)
{
    while (o->connected < s->count)
        shell_connected(s, ++o->connected);
}

static lp_id ask(struct shell *s, struct owner *o, struct lp_fetch_args args)
{
    lp_id id = 0;
    args.ops = &OPS;
    args.ctx = o;
    args.head_ms = 1000;
    if (lp_fetch_start(s->fetcher, &args, &id) == LP_OK)
        o->begun++;
    lp_fetcher_settle(s->fetcher);
    return s->count;
}

/* An answer in pieces, so that the parser has to keep some of it. */
static void answer_in_pieces(struct shell *s, lp_id conn)
{
    shell_read(s, conn, "HTTP/1.1 200 OK\r\nSet-Cookie: lb=SECRET; Path=/\r\nKeep-Al");
    shell_read(s, conn, "ive: timeout=3\r\nTransfer-Encoding: chunked\r\n\r\n5");
    shell_read(s, conn, "\r\nhello\r\n0");
    shell_read(s, conn, "\r\n\r\n");
}

static void tell_story(struct shell *s, struct owner *o, struct lp_jar *jar)
{
    struct lp_target_field accept = {LP_SPAN("Accept"), LP_SPAN("application/json")};
    struct lp_fetch_args post = {.method = LP_METHOD_POST,
        .fields = &accept,
        .field_count = 1,
        .body = LP_SPAN("{\"n\":1}"),
        .what = LP_SPAN("a call"),
        .jar = jar};
    lp_id conn = ask(s, o, post);
    connect(s, o);
    shell_answer(s, conn, "307 Temporary Redirect\r\nLocation: /other?token=SECRET", "");
    connect(s, o);
    answer_in_pieces(s, s->count);
    s->takes_max = 10; /* of what is written the rest has to be kept */
    ask(s, o, (struct lp_fetch_args){.method = LP_METHOD_GET, .jar = jar});
    connect(s, o);
    shell_drain_all(s, s->count);
    s->takes_max = 0;
    answer_in_pieces(s, s->count);
    conn = ask(s, o, (struct lp_fetch_args){.method = LP_METHOD_GET, .may_repeat = true});
    connect(s, o);
    shell_broken(s, conn);
    connect(s, o);
    answer_in_pieces(s, s->count);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 0;
    for (bool was_needed = true; was_needed; n++) {
        struct shell *s = shell_new(URL);
        struct owner o = {0};
        struct lp_jar jar;
        lp_jar_init(&jar, &s->target.uri, LP_JAR_BYTES_MAX);
        assert_int_equal(lp_target_set_bearer(&s->target, LP_SPAN("SECRET")), LP_OK);
        calls_left = n;
        failed = 0;
        tell_story(s, &o, &jar);
        shell_pass(s, 100000);
        calls_left = -1;
        was_needed = failed > 0;
        assert_int_equal(o.begun, o.ends + o.failures);
        assert_true(was_needed || (o.begun == 3 && o.ends == 3));
        assert_false(text_has(s->log, "SECRET"));
        lp_id conn = ask(s, &o, (struct lp_fetch_args){.method = LP_METHOD_GET, .lane = 9});
        connect(s, &o);
        shell_answer(s, conn, "200 OK", "as before");
        assert_int_equal(o.begun, o.ends + o.failures);
        lp_jar_fini(&jar);
        shell_free(s);
    }
    assert_in_range(n, 20, 1000);
}

static void a_fetcher_needs_memory_to_begin(void **state)
{
    (void)state;
    struct lp_shell shell = {NULL, shell_perform};
    struct lp_target target;
    lp_target_init(&target);
    struct lp_fetcher_args args = {.shell = &shell, .target = &target};
    for (long n = 0; n < 2; n++) {
        struct lp_fetcher *fetcher = NULL;
        calls_left = n;
        int err = lp_fetcher_new(&args, &fetcher);
        calls_left = -1;
        assert_int_equal(err, LP_ENOMEM);
        assert_null(fetcher);
    }
    lp_fetcher_free(NULL);
    lp_target_fini(&target);
}

/* What was said of a server is kept as it was when the new word finds no memory. */
static void a_target_keeps_what_it_had(void **state)
{
    (void)state;
    for (long n = 0; n < 3; n++) {
        struct lp_target t;
        lp_target_init(&t);
        calls_left = n;
        failed = 0;
        int url = lp_target_set_url(&t, LP_SPAN(URL));
        int bearer = lp_target_set_bearer(&t, LP_SPAN("abc"));
        calls_left = -1;
        assert_int_equal(failed, n < 2);
        assert_int_equal(url, n == 0 ? LP_ENOMEM : LP_OK);
        assert_int_equal(bearer, n == 1 ? LP_ENOMEM : LP_OK);
        assert_int_equal(t.url.len, n == 0 ? 0 : sizeof URL - 1);
        assert_int_equal(t.field_count, n != 1);
        assert_false(n == 0 && lp_target_is_own(&t, &t.uri));
        lp_target_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_fetcher_needs_memory_to_begin),
        cmocka_unit_test(a_target_keeps_what_it_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
