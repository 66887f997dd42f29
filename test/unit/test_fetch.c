/* The exchanges of the client commands: what is written, in which order, when a request may be
 * repeated, where a redirect may lead, and that each ends exactly once. */
#include "call_harness.h"
#include "mcp/jar.h"

#define URL "http://example.test:3000/mcp"

struct owner {
    uint32_t heads, ends, failures;
    uint16_t status;
    bool was_whole;
    char body[65536];
    size_t body_len;
    struct lp_fetch_failure failure;
    char sentence[LP_FETCH_SENTENCE_MAX];
};

static void on_head(void *ctx, lp_id fetch, const struct lp_head *head)
{
    (void)fetch;
    struct owner *o = ctx;
    o->heads++;
    o->status = head->status;
}

static void on_body(void *ctx, lp_id fetch, struct lp_span bytes)
{
    (void)fetch;
    struct owner *o = ctx;
    assert_true(o->body_len + bytes.len < sizeof o->body);
    memcpy(o->body + o->body_len, bytes.ptr, bytes.len);
    o->body_len += bytes.len;
}

static void on_end(void *ctx, lp_id fetch, bool whole)
{
    (void)fetch;
    struct owner *o = ctx;
    o->ends++;
    o->was_whole = whole;
}

static void on_failed(void *ctx, lp_id fetch, const struct lp_fetch_failure *why)
{
    (void)fetch;
    struct owner *o = ctx;
    o->failures++;
    o->failure = *why;
    snprintf(o->sentence, sizeof o->sentence, "%.*s", (int)why->sentence.len, why->sentence.ptr);
}

static const struct lp_fetch_ops OPS = {on_head, on_body, on_end, on_failed};

static lp_id start(struct shell *s, struct owner *o, struct lp_fetch_args args)
{
    lp_id id = 0;
    args.ops = &OPS;
    args.ctx = o;
    if (!args.method)
        args.method = LP_METHOD_GET;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_OK);
    lp_fetcher_settle(s->fetcher);
    return id;
}

static struct lp_fetch_args post(const char *body)
{
    return (struct lp_fetch_args){.method = LP_METHOD_POST, .body = lp_span_str(body)};
}

static void test_what_is_written(void **state)
{
    (void)state;
    struct shell *s = shell_new("http://Example.Test/a?b=1");
    struct owner o = {0};
    struct lp_target_field accept = {LP_SPAN("Accept"), LP_SPAN("application/json")};
    struct lp_fetch_args args = post("{}");
    args.fields = &accept;
    args.field_count = 1;
    assert_int_equal(lp_target_set_bearer(&s->target, LP_SPAN(" secret-1\n")), LP_OK);
    start(s, &o, args);
    assert_string_equal(s->conns[1].host, "Example.Test");
    assert_int_equal(s->conns[1].port, 80);
    assert_false(s->conns[1].is_tls);
    assert_string_equal(shell_written(s, 1), "");
    shell_connected(s, 1);
    assert_string_equal(shell_written(s, 1),
        "POST /a?b=1 HTTP/1.1\r\nHost: example.test\r\nAccept: application/json\r\n"
        "User-Agent: limpet/" LP_VERSION "\r\nAuthorization: Bearer secret-1\r\n"
        "Content-Length: 2\r\n\r\n{}");
    shell_answer(s, 1, "200 OK\r\nX-A: b", "hello");
    assert_int_equal(o.heads, 1);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.ends, 1);
    assert_true(o.was_whole);
    assert_memory_equal(o.body, "hello", 5);
    assert_false(text_has(s->log, "secret-1"));
    assert_true(text_has(s->log, "1 > POST http://Example.Test/a?b=#"));
    assert_true(text_has(s->log, "1 > Authorization: Bearer #"));
    assert_true(text_has(s->log, "1 < 200 OK\n"));
    assert_true(text_has(s->log, "1 < X-A: b\n"));
    shell_free(s);
}

static void test_tls_and_ipv6(void **state)
{
    (void)state;
    struct shell *s = shell_new("https://[::1]:8443/");
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    assert_string_equal(s->conns[1].host, "::1");
    assert_int_equal(s->conns[1].port, 8443);
    assert_true(s->conns[1].is_tls);
    shell_connected(s, 1);
    assert_true(text_has(shell_written(s, 1), "GET / HTTP/1.1\r\nHost: [::1]:8443\r\n"));
    shell_free(s);
}

static void test_connections_are_kept_by_lane(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_answer(s, 1, "200 OK", "1");
    assert_false(s->conns[1].is_closed);
    start(s, &o, (struct lp_fetch_args){.lane = 7});
    assert_int_equal(s->count, 2);
    shell_forget(s, 1);
    lp_id id = start(s, &o, (struct lp_fetch_args){0});
    struct lp_fetch_facts facts;
    assert_int_equal(s->count, 2);
    assert_true(text_has(shell_written(s, 1), "GET /mcp "));
    assert_true(lp_fetch_facts(s->fetcher, id, &facts));
    assert_true(facts.is_reused);
    assert_int_equal(facts.connection, 1);
    assert_int_equal(facts.number, 3);
    shell_answer(s, 1, "200 OK", "2");
    assert_false(lp_fetch_facts(s->fetcher, id, &facts));
    lp_fetcher_drop_kept(s->fetcher, 0);
    assert_true(s->conns[1].is_closed);
    assert_false(s->conns[2].is_closed);
    shell_free(s);
}

/* What comes behind an answer belongs to nobody: that connection carries no further request. */
static void test_more_than_an_answer(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_read(s, 1, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab");
    assert_int_equal(o.ends, 1);
    start(s, &o, (struct lp_fetch_args){0});
    assert_int_equal(s->count, 2);
    assert_true(s->conns[1].is_closed);
    shell_free(s);
}

static void test_not_too_many_rest(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    for (int i = 0; i < 66; i++)
        start(s, &o, (struct lp_fetch_args){0});
    for (lp_id conn = 1; conn <= 66; conn++) {
        shell_connected(s, conn);
        shell_answer(s, conn, "200 OK", "x");
    }
    assert_int_equal(o.ends, 66);
    for (lp_id conn = 1; conn <= 66; conn++) /* those that have rested longest are gone */
        assert_int_equal(s->conns[conn].is_closed, conn <= 2);
    shell_eof(s, 40);
    assert_true(s->conns[40].is_closed);
    shell_free(s);
}

static void test_fresh_is_fresh(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    for (lp_id conn = 1; conn <= 3; conn++) {
        start(s, &o, (struct lp_fetch_args){.policy = LP_FETCH_FRESH});
        assert_int_equal(s->count, conn);
        shell_connected(s, conn);
        shell_answer(s, conn, "200 OK", "x");
        assert_true(s->conns[conn].is_closed);
    }
    assert_int_equal(o.ends, 3);
    shell_free(s);
}

static void test_how_long_a_connection_rests(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        uint32_t ms;
    } CASES[] = {{"200 OK", LP_FETCH_KEPT_MS}, {"200 OK\r\nKeep-Alive: max=9, timeout=3", 2000},
        {"200 OK\r\nKeep-Alive: timeout=60", LP_FETCH_KEPT_MS},
        {"200 OK\r\nKeep-Alive: timeout=1", 0}, {"200 OK\r\nConnection: close", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shell *s = shell_new(URL);
        struct owner o = {0};
        start(s, &o, (struct lp_fetch_args){0});
        shell_connected(s, 1);
        shell_answer(s, 1, CASES[i].status, "x");
        assert_int_equal(s->conns[1].is_closed, CASES[i].ms == 0);
        if (CASES[i].ms) {
            shell_pass(s, CASES[i].ms - 1);
            assert_false(s->conns[1].is_closed);
            shell_pass(s, 1);
            assert_true(s->conns[1].is_closed);
        }
        shell_free(s);
    }
}

/* A kept connection whose peer hangs up while it rests is not used. */
static void test_a_kept_connection_ends(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_answer(s, 1, "200 OK", "x");
    shell_eof(s, 1);
    start(s, &o, (struct lp_fetch_args){0});
    assert_int_equal(s->count, 2);
    shell_free(s);
}

/* RET-02: a reused connection that fails with no byte of an answer. */
static void test_what_may_be_repeated(void **state)
{
    (void)state;
    for (int is_harmless = 0; is_harmless < 2; is_harmless++) {
        struct shell *s = shell_new(URL);
        struct owner o = {0};
        start(s, &o, (struct lp_fetch_args){0});
        shell_connected(s, 1);
        shell_answer(s, 1, "200 OK", "x");
        struct lp_fetch_args args = post("{\"n\":1}");
        args.may_repeat = is_harmless;
        start(s, &o, args);
        shell_broken(s, 1);
        if (is_harmless) {
            assert_int_equal(s->count, 2);
            assert_int_equal(o.failures, 0);
            shell_connected(s, 2);
            assert_true(text_has(shell_written(s, 2), "{\"n\":1}"));
            shell_broken(s, 2); /* and no third time */
        }
        assert_int_equal(s->count, 1 + is_harmless);
        assert_int_equal(o.failures, 1);
        assert_int_equal(o.failure.phase, LP_FETCH_SENDING);
        assert_int_equal(o.failure.error, LP_EBROKEN);
        assert_false(o.failure.cannot_have_run);
        assert_true(text_has(o.sentence, "whether the request was carried out is not known"));
        shell_free(s);
    }
}

static void test_a_first_use_is_not_repeated(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_fetch_args args = post("{}");
    args.may_repeat = true;
    start(s, &o, args);
    shell_connected(s, 1);
    shell_broken(s, 1);
    assert_int_equal(s->count, 1);
    assert_int_equal(o.failures, 1);
    shell_free(s);
}

/* The kept connection takes nothing of the request before it breaks: it cannot have run. */
static void test_nothing_written_is_repeated(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    lp_id id = 0;
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_answer(s, 1, "200 OK", "x");
    struct lp_fetch_args args = post("{}");
    args.ops = &OPS;
    args.ctx = &o;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_OK);
    shell_broken(s, 1); /* before the settle that would have sent it */
    assert_int_equal(s->count, 2);
    shell_connected(s, 2);
    shell_answer(s, 2, "200 OK", "y");
    assert_int_equal(o.ends, 2);
    shell_free(s);
}

static void test_connecting_fails(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *words;
    } CASES[] = {{LP_EREFUSED, "is the server running"}, {LP_ETIMEOUT, "nobody accepted"},
        {LP_EUNREACHABLE, "check the host name"}, {LP_ENOT_FOUND, "no host of that name"},
        {LP_EIO, "failed"}, {LP_ENOMEM, "memory"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shell *s = shell_new(URL);
        struct owner o = {0};
        start(s, &o, (struct lp_fetch_args){0});
        shell_not_connected(s, 1, CASES[i].error);
        assert_int_equal(o.failures, 1);
        assert_int_equal(o.failure.phase, LP_FETCH_CONNECTING);
        assert_int_equal(o.failure.error, CASES[i].error);
        assert_true(o.failure.cannot_have_run);
        assert_true(text_has(o.sentence, "http://example.test:3000: "));
        assert_true(text_has(o.sentence, CASES[i].words));
        s->connect_error = CASES[i].error; /* the same at once */
        start(s, &o, (struct lp_fetch_args){0});
        assert_int_equal(o.failures, 2);
        assert_int_equal(o.failure.phase, LP_FETCH_CONNECTING);
        shell_free(s);
    }
}

static void test_times(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){.head_ms = 500, .quiet_ms = 300});
    shell_connected(s, 1);
    shell_pass(s, 499);
    assert_int_equal(o.failures, 0);
    shell_pass(s, 1);
    assert_int_equal(o.failures, 1);
    assert_int_equal(o.failure.error, LP_ETIMEOUT);
    assert_int_equal(o.failure.phase, LP_FETCH_SENDING);
    assert_true(text_has(o.sentence, "--timeout"));
    assert_true(s->conns[1].is_closed);

    start(s, &o, (struct lp_fetch_args){.head_ms = 500, .quiet_ms = 300});
    shell_connected(s, 2);
    shell_pass(s, 400);
    shell_read(s, 2, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        shell_pass(s, 299);
        shell_read(s, 2, "x");
    }
    assert_int_equal(o.failures, 1);
    shell_pass(s, 300);
    assert_int_equal(o.failures, 2);
    assert_int_equal(o.failure.phase, LP_FETCH_READING);

    lp_id id = start(s, &o, (struct lp_fetch_args){.head_ms = 500});
    lp_fetch_set_timeout(s->fetcher, id, 0);
    shell_connected(s, 3);
    shell_pass(s, 100000);
    assert_int_equal(o.failures, 2);
    lp_fetch_set_timeout(s->fetcher, id, 50);
    lp_fetcher_settle(s->fetcher);
    shell_pass(s, 50);
    assert_int_equal(o.failures, 3);
    shell_free(s);
}

static void test_the_default_time(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    s->target.timeout_ms = 2000;
    start(s, &o, (struct lp_fetch_args){0});
    shell_pass(s, 1999);
    assert_int_equal(o.failures, 0);
    shell_pass(s, 1);
    assert_int_equal(o.failures, 1);
    assert_int_equal(o.failure.phase, LP_FETCH_CONNECTING);
    assert_true(s->conns[1].is_closed);
    shell_free(s);
}

static void test_garbage(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_read(s, 1, "220 mail.example ESMTP\r\n\r\n");
    assert_int_equal(o.failures, 1);
    assert_int_equal(o.failure.error, LP_ESYNTAX);
    assert_true(text_has(o.sentence, "does not speak HTTP"));
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 2);
    shell_read(s, 2, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_int_equal(o.failures, 2);
    assert_true(text_has(o.sentence, "garbled"));
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 3);
    shell_read(s, 3, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    shell_eof(s, 3);
    assert_int_equal(o.failures, 3);
    assert_int_equal(o.failure.error, LP_EBROKEN);
    assert_true(text_has(o.sentence, "in the middle of the answer"));
    shell_free(s);
}

static void test_an_answer_without_framing(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_read(s, 1, "HTTP/1.1 200 OK\r\n\r\nall of it");
    shell_eof(s, 1);
    assert_int_equal(o.ends, 1);
    assert_false(o.was_whole);
    assert_memory_equal(o.body, "all of it", 9);
    assert_true(s->conns[1].is_closed);
    shell_free(s);
}

/* --- redirects --- */

static void test_redirects_are_followed_at_home(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, post("{\"n\":1}"));
    shell_connected(s, 1);
    shell_answer(s, 1, "307 Temporary Redirect\r\nLocation: /other/?x=1", "moved");
    assert_int_equal(s->count, 2);
    shell_connected(s, 2);
    assert_true(text_has(shell_written(s, 2), "POST /other/?x=1 HTTP/1.1\r\n"));
    assert_true(text_has(shell_written(s, 2), "{\"n\":1}"));
    shell_answer(s, 2, "308 Permanent Redirect\r\nLocation: http://EXAMPLE.test:3000/z", "");
    shell_connected(s, 3);
    assert_true(text_has(shell_written(s, 3), "POST /z HTTP/1.1\r\n"));
    shell_answer(s, 3, "200 OK", "here");
    assert_int_equal(o.ends, 1);
    assert_int_equal(o.heads, 1);
    assert_memory_equal(o.body, "here", 4);
    shell_free(s);
}

static void test_redirects_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *words;
    } CASES[] = {
        {"307 X\r\nLocation: http://other.test:3000/mcp?token=SECRET", "another origin"},
        {"307 X\r\nLocation: https://example.test:3000/mcp", "another origin"},
        {"308 X\r\nLocation: http://example.test:3001/mcp", "another origin"},
        {"301 X\r\nLocation: /mcp/", "turns a POST into a GET"},
        {"302 X\r\nLocation: /mcp/", "turns a POST into a GET"},
        {"303 X\r\nLocation: /mcp/", "turns a POST into a GET"},
        {"307 X", "no address"},
        {"307 X\r\nLocation: http://a b/", "no address"},
        {"307 X\r\nLocation: http://u:p@example.test:3000/mcp", "no address"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shell *s = shell_new(URL);
        struct owner o = {0};
        start(s, &o, post("{}"));
        shell_connected(s, 1);
        shell_answer(s, 1, CASES[i].head, "");
        assert_int_equal(o.failures, 1);
        assert_int_equal(s->count, 1);
        assert_true(o.failure.cannot_have_run);
        assert_true(o.failure.status >= 301);
        assert_true(text_has(o.sentence, CASES[i].words));
        assert_false(text_has(o.sentence, "SECRET"));
        assert_false(text_has(s->log, "SECRET"));
        shell_free(s);
    }
}

static void test_a_redirected_get(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    for (lp_id conn = 1; conn <= 1 + LP_FETCH_REDIRECTS_MAX; conn++) {
        shell_connected(s, conn);
        shell_answer(s, conn, "302 Found\r\nLocation: /again", "");
    }
    assert_int_equal(s->count, 1 + LP_FETCH_REDIRECTS_MAX);
    assert_int_equal(o.failures, 1);
    assert_true(text_has(o.sentence, "too many redirects"));
    shell_free(s);
}

/* --- whose fields go where --- */

static void test_foreign_requests_carry_nothing(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    assert_int_equal(lp_target_set_bearer(&s->target, LP_SPAN("tok")), LP_OK);
    assert_int_equal(lp_target_set_field_line(&s->target, LP_SPAN("Cookie: a=b")), LP_OK);
    start(s, &o,
        (struct lp_fetch_args){.url = LP_SPAN("http://example.test:3001/mcp")}); /* other port */
    start(s, &o, (struct lp_fetch_args){.url = LP_SPAN(URL), .is_foreign = true});
    start(s, &o, (struct lp_fetch_args){.url = LP_SPAN(URL)});
    for (lp_id conn = 1; conn <= 3; conn++) {
        shell_connected(s, conn);
        assert_int_equal(text_has(shell_written(s, conn), "Bearer"), conn == 3);
        assert_int_equal(text_has(shell_written(s, conn), "Cookie: a=b"), conn == 3);
    }
    shell_free(s);
}

/* [C5]: with a jar that has nothing to send, and without one, the bytes are the same; then the
 * Cookie line is all that differs. */
static void test_the_jar_adds_one_line(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_jar jar;
    lp_jar_init(&jar, &s->target.uri, LP_JAR_BYTES_MAX);
    struct lp_fetch_args args = post("{}");
    args.policy = LP_FETCH_FRESH;
    start(s, &o, args);
    args.jar = &jar;
    start(s, &o, args);
    shell_connected(s, 1);
    shell_connected(s, 2);
    assert_string_equal(shell_written(s, 1), shell_written(s, 2));
    shell_answer(s, 1, "200 OK\r\nSet-Cookie: unseen=1", "x"); /* its fetch has no jar */
    shell_answer(s, 2, "404 Not Found\r\nSet-Cookie: lb=pod-SECRET; Path=/", "x");
    start(s, &o, args);
    shell_connected(s, 3);
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s", shell_written(s, 1));
    char *at = strstr(wanted, "Content-Length");
    assert_non_null(at);
    char rest[256];
    snprintf(rest, sizeof rest, "%s", at);
    snprintf(at, sizeof wanted - (size_t)(at - wanted), "Cookie: lb=pod-SECRET\r\n%s", rest);
    assert_string_equal(shell_written(s, 3), wanted);
    assert_false(text_has(s->log, "pod-SECRET"));
    assert_true(text_has(s->log, "3 > Cookie: lb=#"));
    assert_true(text_has(s->log, "2 . the cookie lb was kept"));
    lp_jar_fini(&jar);
    shell_free(s);
}

/* [C2]: a configured Cookie is merged, and neither it nor the jar goes to another origin. */
static void test_the_jar_stays_at_home(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_jar jar;
    lp_jar_init(&jar, &s->target.uri, LP_JAR_BYTES_MAX);
    assert_int_equal(lp_target_set_field_line(&s->target, LP_SPAN("Cookie: a=1; lb=old")), LP_OK);
    struct lp_fetch_args args = {.jar = &jar, .policy = LP_FETCH_FRESH};
    start(s, &o, args);
    shell_connected(s, 1);
    assert_true(text_has(shell_written(s, 1), "\r\nCookie: a=1; lb=old\r\n"));
    shell_read(s, 1,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: lb=new\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"); /* before its first event */
    start(s, &o, args);
    shell_connected(s, 2);
    assert_true(text_has(shell_written(s, 2), "\r\nCookie: a=1; lb=new\r\n"));
    args.url = LP_SPAN("http://other.test/.well-known/x");
    start(s, &o, args);
    shell_connected(s, 3);
    assert_false(text_has(shell_written(s, 3), "Cookie"));
    shell_answer(s, 3, "200 OK\r\nSet-Cookie: lb=evil", "x");
    args.url = LP_SPAN(URL);
    args.is_foreign = true;
    start(s, &o, args);
    shell_connected(s, 4);
    assert_false(text_has(shell_written(s, 4), "Cookie"));
    shell_answer(s, 4, "200 OK\r\nSet-Cookie: lb=evil", "x");
    args.is_foreign = false;
    start(s, &o, args);
    shell_connected(s, 5);
    assert_true(text_has(shell_written(s, 5), "\r\nCookie: a=1; lb=new\r\n"));
    lp_jar_fini(&jar);
    shell_free(s);
}

static void test_bad_starts(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    lp_id id = 0;
    struct lp_fetch_args args = {.method = LP_METHOD_GET, .ops = &OPS, .ctx = &o};
    static const struct {
        const char *url;
        int error;
    } CASES[] = {{"http://a b/", LP_ESYNTAX}, {"ftp://a/", LP_EUNSUPPORTED},
        {"http://u@a/", LP_ESYNTAX}, {"/mcp", LP_EUNSUPPORTED}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        args.url = lp_span_str(CASES[i].url);
        assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), CASES[i].error);
    }
    struct lp_target_field bad = {LP_SPAN("X"), LP_SPAN("a\r\nb")};
    args.url = LP_SPAN("");
    args.fields = &bad;
    args.field_count = 1;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_ESYNTAX);
    args.field_count = LP_FETCH_FIELDS_MAX + 1;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_ELIMIT);
    assert_int_equal(s->count, 0);
    shell_free(s);
}

static void test_cancel(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_fetch_args args = {.method = LP_METHOD_GET, .ops = &OPS, .ctx = &o};
    lp_id id = 0;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_OK);
    lp_fetch_cancel(s->fetcher, id); /* queued */
    lp_fetcher_settle(s->fetcher);
    assert_int_equal(s->count, 0);
    id = start(s, &o, args);
    lp_fetch_cancel(s->fetcher, id); /* connecting */
    assert_true(s->conns[1].is_closed);
    id = start(s, &o, args);
    shell_connected(s, 2);
    lp_fetch_cancel(s->fetcher, id); /* sent */
    assert_true(s->conns[2].is_closed);
    id = start(s, &o, args);
    shell_connected(s, 3);
    shell_read(s, 3, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    lp_fetch_pause(s->fetcher, id, true);
    lp_fetch_pause(s->fetcher, id, false);
    lp_fetch_cancel(s->fetcher, id); /* reading */
    lp_fetch_cancel(s->fetcher, id); /* dead */
    lp_fetch_pause(s->fetcher, id, true);
    lp_fetch_set_timeout(s->fetcher, id, 1);
    assert_true(s->conns[3].is_closed);
    shell_pass(s, 100000);
    assert_int_equal(o.heads, 1);
    assert_int_equal(o.ends + o.failures, 0);
    shell_free(s);
}

/* A large body goes out piece by piece as the peer takes it. */
static void test_a_large_body(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    size_t len = 1500000;
    char *body = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)('a' + i % 23);
    body[len] = '\0';
    s->takes_max = 10000;
    start(s, &o, post(body));
    shell_connected(s, 1);
    shell_drain_all(s, 1);
    const char *sent = strstr(shell_written(s, 1), "\r\n\r\n");
    assert_non_null(sent);
    assert_string_equal(sent + 4, body);
    shell_answer(s, 1, "200 OK", "x");
    assert_int_equal(o.ends, 1);
    free(body);
    shell_free(s);
}

static void test_target(void **state)
{
    (void)state;
    struct lp_target t;
    lp_target_init(&t);
    assert_int_equal(t.timeout_ms, LP_TARGET_TIMEOUT_MS);
    assert_int_equal(lp_target_set_url(&t, LP_SPAN("ws://a/")), LP_EUNSUPPORTED);
    assert_int_equal(lp_target_set_url(&t, LP_SPAN("example.test/mcp")), LP_ESYNTAX);
    assert_int_equal(lp_target_set_url(&t, LP_SPAN("http://me:pw@a/")), LP_ESYNTAX);
    assert_int_equal(lp_target_set_url(&t, LP_SPAN("http:///mcp")), LP_ESYNTAX);
    assert_int_equal(lp_target_set_url(&t, LP_SPAN("HTTPS://a.test/mcp#part")), LP_OK);
    assert_int_equal(t.port, 443);
    assert_true(t.is_tls);
    assert_memory_equal(t.url.ptr, "HTTPS://a.test/mcp", t.url.len);
    static const char *const RESERVED[] = {"Host: a", "Content-Length: 1", "Connection: close",
        "Transfer-Encoding: x", "Accept: x", "Mcp-Session-Id: x", "MCP-Protocol-Version: 1",
        "Mcp-Method: a", "Last-Event-ID: 1", "no line", ": x", "A B: x"};
    for (size_t i = 0; i < sizeof RESERVED / sizeof *RESERVED; i++)
        assert_int_equal(lp_target_set_field_line(&t, lp_span_str(RESERVED[i])), LP_ESYNTAX);
    assert_int_equal(lp_target_set_field(&t, LP_SPAN("X"), LP_SPAN("a\nb")), LP_ESYNTAX);
    assert_int_equal(lp_target_set_bearer(&t, LP_SPAN(" \n")), LP_ESYNTAX);
    assert_int_equal(lp_target_set_field_line(&t, LP_SPAN("X-A:  1 ")), LP_OK);
    assert_int_equal(lp_target_set_field_line(&t, LP_SPAN("x-a: 2")), LP_OK);
    assert_int_equal(t.field_count, 1);
    assert_memory_equal(t.fields[0].value.ptr, "2", 1);
    char name[8];
    for (int i = 1; i < LP_TARGET_FIELDS_MAX; i++) {
        snprintf(name, sizeof name, "X-%d", i);
        assert_int_equal(lp_target_set_field(&t, lp_span_str(name), LP_SPAN("v")), LP_OK);
    }
    assert_int_equal(lp_target_set_field(&t, LP_SPAN("One-More"), LP_SPAN("v")), LP_ELIMIT);
    assert_int_equal(lp_target_set_field(&t, LP_SPAN("X-1"), LP_SPAN("w")), LP_OK);
    lp_target_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written),
        cmocka_unit_test(test_tls_and_ipv6),
        cmocka_unit_test(test_connections_are_kept_by_lane),
        cmocka_unit_test(test_more_than_an_answer),
        cmocka_unit_test(test_not_too_many_rest),
        cmocka_unit_test(test_fresh_is_fresh),
        cmocka_unit_test(test_how_long_a_connection_rests),
        cmocka_unit_test(test_a_kept_connection_ends),
        cmocka_unit_test(test_what_may_be_repeated),
        cmocka_unit_test(test_a_first_use_is_not_repeated),
        cmocka_unit_test(test_nothing_written_is_repeated),
        cmocka_unit_test(test_connecting_fails),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_the_default_time),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_an_answer_without_framing),
        cmocka_unit_test(test_redirects_are_followed_at_home),
        cmocka_unit_test(test_redirects_that_are_refused),
        cmocka_unit_test(test_a_redirected_get),
        cmocka_unit_test(test_foreign_requests_carry_nothing),
        cmocka_unit_test(test_the_jar_adds_one_line),
        cmocka_unit_test(test_the_jar_stays_at_home),
        cmocka_unit_test(test_bad_starts),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_a_large_body),
        cmocka_unit_test(test_target),
    };
    return cmocka_run_group_tests_name("fetch", tests, NULL, NULL);
}
