/* Pages of other origins at a gateway that names them: preflights are answered there, and every
 * answer, its own and a replica's, can be read (gate/cors.c; cases HDR-02, HDR-04, HDR-09). */
#include "engine_harness.h"

#define APP "https://app.example.test"
#define FROM_APP "Origin: " APP "\r\n"

static const char PING[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";

static int setup_named(void **state)
{
    static const struct lp_span app = {APP, sizeof APP - 1};
    struct world *w = new_world(1);
    w->server.origins = &app;
    w->server.origin_count = 1;
    *state = w;
    return 0;
}

#define NAMED(name) cmocka_unit_test_setup_teardown(name, setup_named, teardown)

static uint32_t count_of(const struct world *w, const char *text)
{
    uint32_t count = 0;
    struct lp_span rest = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    for (size_t at; (at = lp_span_search(rest, lp_span_str(text))) < rest.len; count++)
        rest = lp_span_from(rest, at + 1);
    return count;
}

static void expect_readable(const struct world *w, const char *status)
{
    assert_true(has(w, CLIENT, status));
    assert_int_equal(count_of(w, "access-control-allow-origin: " APP "\r\n"), 1);
    assert_int_equal(count_of(w, "vary: Origin\r\n"), 1);
    assert_int_equal(count_of(w, "access-control-expose-headers: Mcp-Session-Id, "), 1);
}

static void a_preflight_is_answered_here(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "OPTIONS /mcp",
        FROM_APP "Access-Control-Request-Headers: last-event-id,mcp-param-region,x-evil\r\n", "");
    expect_readable(w, "HTTP/1.1 204 ");
    assert_true(has(w, CLIENT, "mcp-name, mcp-param-region\r\n"));
    assert_true(has(w, CLIENT, "access-control-allow-methods: GET, POST, DELETE, OPTIONS\r\n"));
    assert_true(has(w, CLIENT, "access-control-max-age: "));
    assert_false(has(w, CLIENT, "x-evil"));
    assert_int_equal(w->connects, 0);
    assert_non_null(strstr(w->log, "(answered_here)"));
}

static void other_pages_and_no_page_get_no_permission(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "OPTIONS /mcp", "", "");
    assert_int_equal(w->connects, 1); /* any replica's own answer */
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "204 No Content", "Access-Control-Allow-Origin: *\r\n", "");
    assert_true(has(w, CLIENT, "Access-Control-Allow-Origin: *\r\n"));
    assert_false(has(w, CLIENT, APP));
    request(w, "OPTIONS /mcp", "Origin: https://evil.example\r\n", "");
    assert_true(has(w, CLIENT, "HTTP/1.1 403 "));
    assert_false(has(w, CLIENT, "access-control"));
}

static void errors_of_our_own_can_be_read(void **state)
{
    struct world *w = *state;
    open_session(w);
    request(w, "POST /mcp", FROM_APP, PING);
    expect_readable(w, "HTTP/1.1 400 ");
    request(w, "POST /mcp", FROM_APP "Mcp-Session-Id: unknown\r\n", PING);
    expect_readable(w, "HTTP/1.1 404 ");
    request(w, "PUT /mcp", FROM_APP, "");
    expect_readable(w, "HTTP/1.1 405 ");
    request(w, "POST /mcp", FROM_APP, "{");
    expect_readable(w, "HTTP/1.1 400 ");
}

/* One word on each matter: the replica's own are replaced, its list becomes part of ours. */
static void a_replicas_answer_gets_our_fields(void **state)
{
    struct world *w = *state;
    char fields[3000];
    open_session(w);
    snprintf(fields, sizeof fields, FROM_APP "%s", w->ticket);
    request(w, "POST /mcp", fields, PING);
    assert_false(has(w, REPLICA, "rigin"));
    answer_with(w, "200 OK",
        "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n"
        "Access-Control-Expose-Headers: X-A\r\naccess-control-expose-headers: x-a, X-B\r\n",
        "{}");
    expect_readable(w, "HTTP/1.1 200 ");
    assert_true(has(w, CLIENT, "Last-Event-Id, X-A, X-B\r\n"));
    assert_int_equal(count_of(w, "llow-"), 1);
    assert_int_equal(count_of(w, "xpose-"), 1);
    request(w, "POST /mcp", w->ticket, PING); /* not from a page */
    answer_with(w, "200 OK", "Access-Control-Expose-Headers: X-A\r\n", "{}");
    assert_false(has(w, CLIENT, "Allow-Origin"));
    assert_true(has(w, CLIENT, "Access-Control-Expose-Headers: X-A\r\n"));
}

static void without_names_options_goes_to_a_replica(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "OPTIONS /mcp", "Origin: http://a\r\n", "");
    assert_int_equal(w->connects, 1);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "204 No Content", "Access-Control-Allow-Origin: *\r\n", "");
    assert_true(has(w, CLIENT, "Access-Control-Allow-Origin: *\r\n"));
    assert_int_equal(count_of(w, "llow-Origin"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED(a_preflight_is_answered_here),
        NAMED(other_pages_and_no_page_get_no_permission),
        NAMED(errors_of_our_own_can_be_read),
        NAMED(a_replicas_answer_gets_our_fields),
        TEST(without_names_options_goes_to_a_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
