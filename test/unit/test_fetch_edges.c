/* Exchanges of the client commands at their edges: methods, addresses and fields that are odd, a
 * peer that takes nothing, more connections than are kept, and no log at all. */
#include "call_harness.h"
#include "mcp/jar.h"

#define URL "http://example.test:3000/mcp"

struct owner {
    uint32_t ends, failures;
    struct lp_fetch_failure failure;
    char sentence[LP_FETCH_SENTENCE_MAX];
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

static void each_method_is_written_by_its_name(void **state)
{
    (void)state;
    static const struct {
        enum lp_method method;
        const char *line;
    } CASES[] = {{LP_METHOD_GET, "GET /mcp HTTP/1.1\r\n"},
        {LP_METHOD_POST, "POST /mcp HTTP/1.1\r\n"}, {LP_METHOD_DELETE, "DELETE /mcp HTTP/1.1\r\n"},
        {LP_METHOD_HEAD, "HEAD /mcp HTTP/1.1\r\n"},
        {LP_METHOD_OPTIONS, "OPTIONS /mcp HTTP/1.1\r\n"}};
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(s, &o, (struct lp_fetch_args){.method = CASES[i].method, .lane = (uint32_t)i});
        shell_connected(s, s->count);
        assert_int_equal(
            strncmp(shell_written(s, s->count), CASES[i].line, strlen(CASES[i].line)), 0);
    }
    shell_free(s);
}

static void an_address_without_a_path_is_the_root(void **state)
{
    (void)state;
    struct shell *s = shell_new("http://example.test");
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    assert_true(text_has(shell_written(s, 1), "GET / HTTP/1.1\r\nHost: example.test\r\n"));
    shell_free(s);
}

/* The caller's own User-Agent, or the user's, stands in the place of ours. */
static void another_user_agent_replaces_ours(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_target_field own = {LP_SPAN("user-agent"), LP_SPAN("caller/1")};
    start(s, &o, (struct lp_fetch_args){.fields = &own, .field_count = 1});
    assert_int_equal(lp_target_set_field_line(&s->target, LP_SPAN("User-Agent: user/1")), LP_OK);
    start(s, &o, (struct lp_fetch_args){.lane = 1});
    shell_connected(s, 1);
    shell_connected(s, 2);
    assert_true(text_has(shell_written(s, 1), "\r\nuser-agent: caller/1\r\n"));
    assert_true(text_has(shell_written(s, 2), "\r\nUser-Agent: user/1\r\n"));
    assert_false(text_has(shell_written(s, 1), "limpet/"));
    assert_false(text_has(shell_written(s, 2), "limpet/"));
    assert_true(text_has(s->log, "User-Agent: user/1")); /* which is no secret */
    shell_free(s);
}

static void what_cannot_be_asked_is_refused_at_once(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct lp_fetch_args args = {.method = LP_METHOD_POST, .ops = &OPS};
    struct lp_target_field bad = {LP_SPAN("two words"), LP_SPAN("x")};
    lp_id id = 0;
    args.fields = &bad;
    args.field_count = 1;
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_ESYNTAX);
    args.field_count = 0;
    char *body = malloc(LP_FETCH_BODY_MAX + 1);
    assert_non_null(body);
    memset(body, 'x', LP_FETCH_BODY_MAX + 1);
    args.body = lp_span(body, LP_FETCH_BODY_MAX + 1);
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_ELIMIT);
    free(body);
    char url[8300] = "http://";
    memset(url + 7, 'h', 256);
    args.body = LP_SPAN("");
    args.url = lp_span(url, 7 + 256);
    assert_int_equal(lp_fetch_start(s->fetcher, &args, &id), LP_ESYNTAX);
    memset(url + 8, '/', sizeof url - 8);
    args.url = lp_span(url, sizeof url);
    assert_true(lp_fetch_start(s->fetcher, &args, &id) < 0);
    assert_int_equal(s->count, 0);
    shell_free(s);
}

static void more_at_once_than_allowed_are_refused(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    struct lp_fetcher *few = NULL;
    struct lp_fetcher_args how = {.shell = &s->shell, .target = &s->target, .fetches_max = 2};
    struct lp_fetch_args args = {.method = LP_METHOD_GET, .ops = &OPS, .ctx = &o};
    lp_id id = 0;
    assert_int_equal(lp_fetcher_new(&how, &few), LP_OK); /* and without a log */
    assert_int_equal(lp_fetch_start(few, &args, &id), LP_OK);
    assert_int_equal(lp_fetch_start(few, &args, &id), LP_OK);
    assert_true(lp_fetch_start(few, &args, &id) < 0);
    lp_fetch_cancel(few, id);
    assert_int_equal(lp_fetch_start(few, &args, &id), LP_OK);
    lp_fetcher_free(few);
    shell_free(s);
}

static void without_a_log_all_is_the_same(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct lp_fetcher *logged = s->fetcher;
    struct owner o = {0};
    struct lp_fetcher_args how = {.shell = &s->shell, .target = &s->target};
    assert_int_equal(lp_fetcher_new(&how, &s->fetcher), LP_OK);
    assert_null(lp_fetcher_log(s->fetcher));
    assert_ptr_equal(lp_fetcher_log(logged), &s->netlog);
    assert_ptr_equal(lp_fetcher_target(s->fetcher), &s->target);
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    assert_int_equal(lp_fetcher_now_us(s->fetcher), s->mono_us);
    assert_int_equal(lp_fetcher_wall_ms(s->fetcher), s->wall_ms);
    shell_answer(s, 1, "200 OK", "x");
    assert_int_equal(o.ends, 1);
    assert_int_equal(s->log_len, 0);
    lp_fetcher_free(logged);
    shell_free(s);
}

/* A minute without a byte taken is a time-out, not a broken connection. */
static void a_server_that_takes_nothing_is_given_up(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    static char body[300000];
    memset(body, 'x', sizeof body);
    s->takes_max = 1;
    lp_id id = start(s, &o,
        (struct lp_fetch_args){
            .method = LP_METHOD_POST, .body = lp_span(body, sizeof body), .head_ms = 1000});
    shell_connected(s, 1);
    lp_fetch_set_timeout(s->fetcher, id, 0);
    lp_fetcher_settle(s->fetcher);
    shell_pass(s, 59000);
    assert_int_equal(o.failures, 0);
    shell_pass(s, 2000);
    assert_int_equal(o.failures, 1);
    assert_int_equal(o.failure.error, LP_ETIMEOUT);
    assert_int_equal(o.failure.reason, LP_REASON_upstream_stalled);
    assert_true(s->conns[1].is_closed);
    shell_free(s);
}

static void the_time_between_pieces_may_be_changed(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    lp_id id = start(s, &o, (struct lp_fetch_args){.quiet_ms = 100});
    shell_connected(s, 1);
    shell_read(s, 1, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    lp_fetch_set_timeout(s->fetcher, id, 5000);
    lp_fetcher_settle(s->fetcher);
    shell_pass(s, 4999);
    shell_read(s, 1, "y");
    shell_pass(s, 4999);
    assert_int_equal(o.failures, 0);
    shell_pass(s, 1);
    assert_int_equal(o.failures, 1);
    assert_int_equal(o.failure.error, LP_ETIMEOUT);
    shell_free(s);
}

/* Kept connections are told apart: by where they lead, by their lane, and when one of them ends. */
static void each_kept_connection_is_its_own(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){.lane = 1});
    start(s, &o, (struct lp_fetch_args){.lane = 1, .url = LP_SPAN("http://other.test/")});
    start(s, &o, (struct lp_fetch_args){.lane = 2});
    for (lp_id conn = 1; conn <= 3; conn++) {
        shell_connected(s, conn);
        shell_answer(s, conn, "200 OK", "x");
        shell_forget(s, conn);
    }
    start(s, &o, (struct lp_fetch_args){.lane = 1});
    assert_true(text_has(shell_written(s, 1), "GET /mcp "));
    shell_answer(s, 1, "200 OK", "x");
    assert_int_equal(s->count, 3);
    shell_eof(s, 2);
    assert_true(s->conns[2].is_closed);
    lp_fetcher_drop_kept(s->fetcher, 2);
    assert_true(s->conns[3].is_closed);
    assert_false(s->conns[1].is_closed);
    start(s, &o, (struct lp_fetch_args){.lane = 1, .url = LP_SPAN("http://other.test/")});
    assert_int_equal(s->count, 4); /* the one that leads there has ended */
    shell_free(s);
}

/* A far address is shown, but not all of a long one. */
static void a_long_redirect_is_told_in_short(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    char head[600] = "307 X\r\nLocation: http://other.test/";
    size_t n = strlen(head);
    memset(head + n, 'p', 400);
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_answer(s, 1, head, "");
    assert_int_equal(o.failures, 1);
    assert_true(text_has(o.sentence, "points to http://other.test/ppp"));
    assert_true(text_has(o.sentence, "another origin"));
    assert_true(strlen(o.sentence) < 500);
    shell_free(s);
}

static void a_keep_alive_without_a_number_changes_nothing(void **state)
{
    (void)state;
    struct shell *s = shell_new(URL);
    struct owner o = {0};
    start(s, &o, (struct lp_fetch_args){0});
    shell_connected(s, 1);
    shell_answer(s, 1, "200 OK\r\nKeep-Alive: timeout=soon, max", "x");
    shell_pass(s, LP_FETCH_KEPT_MS - 1);
    assert_false(s->conns[1].is_closed);
    shell_pass(s, 1);
    assert_true(s->conns[1].is_closed);
    shell_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_is_written_by_its_name),
        cmocka_unit_test(an_address_without_a_path_is_the_root),
        cmocka_unit_test(another_user_agent_replaces_ours),
        cmocka_unit_test(what_cannot_be_asked_is_refused_at_once),
        cmocka_unit_test(more_at_once_than_allowed_are_refused),
        cmocka_unit_test(without_a_log_all_is_the_same),
        cmocka_unit_test(a_server_that_takes_nothing_is_given_up),
        cmocka_unit_test(the_time_between_pieces_may_be_changed),
        cmocka_unit_test(each_kept_connection_is_its_own),
        cmocka_unit_test(a_long_redirect_is_told_in_short),
        cmocka_unit_test(a_keep_alive_without_a_number_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
