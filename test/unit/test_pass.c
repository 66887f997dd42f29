/* Paths that a rule passes on (gate/pass.c, gate/way.c; cases AFF-13): which rule has a path, what
 * a path may be read as, and what becomes of such requests in an engine. */
#include "engine_harness.h"
#include "gate/pass.h"

static const struct lp_conf_pass RULES[] = {
    {{"/a", 2}, LP_PASS_ANY},
    {{"/a/b/", 5}, LP_PASS_PINNED},
    {{"/mcp/x", 6}, LP_PASS_PINNED},
};

static void the_longest_rule_has_it(void **state)
{
    static const struct {
        const char *path;
        int rule;
    } ROWS[] = {{"/a", 0}, {"/a/", 0}, {"/a/b", 0}, {"/a/b/", 1}, {"/a/b/c", 1}, {"/ab", -1},
        {"/A", -1}, {"/", -1}, {"/mcp/xy", -1}, {"/mcp/x/y", 2}};
    struct lp_conf_server conf = {.passes = RULES, .pass_count = 3};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct lp_conf_pass *want = ROWS[i].rule < 0 ? NULL : &RULES[ROWS[i].rule];
        if (lp_pass_find(&conf, lp_span_str(ROWS[i].path)) != want)
            fail_msg("%s", ROWS[i].path);
    }
    struct lp_conf_pass all[] = {{LP_SPAN("/a"), LP_PASS_ANY}, {LP_SPAN("/"), LP_PASS_ANY}};
    conf = (struct lp_conf_server){.passes = all, .pass_count = 2};
    assert_ptr_equal(lp_pass_find(&conf, LP_SPAN("/x/y")), &all[1]);
    assert_ptr_equal(lp_pass_find(&conf, LP_SPAN("/a/y")), &all[0]);
}

static void a_path_has_one_reading_or_none(void **state)
{
    static const struct {
        const char *path, *read; /* NULL: refused */
    } ROWS[] = {{"/", ""}, {"/a", "/a"}, {"/a/", "/a"}, {"/%61%2E%5A", "/a.Z"},
        {"/a;x=1/b;y", "/a/b"}, {"/a%3bx", "/a"}, {"/a.b/..c", "/a.b/..c"}, {"/a/;x", "/a"},
        {"//", NULL}, {"/a//b", NULL}, {"/.", NULL}, {"/./a", NULL}, {"/a/..", NULL},
        {"/%2e%2E/a", NULL}, {"/..;x/a", NULL}, {"/;x/a", NULL}, {"/a%2fb", NULL}, {"/a%2Fb", NULL},
        {"/a\\b", NULL}, {"/a%5Cb", NULL}, {"/a%00", NULL}, {"/a%1f", NULL}, {"/a%7F", NULL},
        {"/a\x7F", NULL}, {"/a\x01", NULL}, {"/a%25b", NULL}, {"/a%", NULL}, {"/a%4", NULL},
        {"/a%4g", NULL}, {"/a%g4", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char room[32];
        struct lp_span read = LP_SPAN("?");
        bool is_clear = lp_pass_read(lp_span_str(ROWS[i].path), room, &read);
        if (is_clear != (ROWS[i].read != NULL))
            fail_msg("%s", ROWS[i].path);
        if (is_clear && !lp_span_eq(read, lp_span_str(ROWS[i].read)))
            fail_msg("%s: %.*s", ROWS[i].path, (int)read.len, read.ptr);
    }
}

static void what_leads_to_an_mcp_path_is_known(void **state)
{
    const struct lp_conf_pass all = {LP_SPAN("/"), LP_PASS_ANY};
    struct lp_span mcp = LP_SPAN("/mcp");
    (void)state;
    assert_true(lp_pass_leads_to(mcp, &all, mcp));
    assert_true(lp_pass_leads_to(LP_SPAN("/MCP"), &all, LP_SPAN("/mcp/")));
    assert_true(lp_pass_leads_to(LP_SPAN("/mcp/x"), &all, mcp));
    assert_false(lp_pass_leads_to(LP_SPAN("/mcpx"), &all, mcp));
    assert_false(lp_pass_leads_to(LP_SPAN("/mc"), &all, mcp));
    assert_false(lp_pass_leads_to(LP_SPAN("/x"), &all, LP_SPAN("")));
    assert_false(lp_pass_leads_to(LP_SPAN("/mcp/x"), &RULES[2], mcp)); /* that is meant */
    assert_true(lp_pass_leads_to(mcp, &RULES[0], mcp));
    assert_false(lp_pass_leads_to(LP_SPAN("/a"), &RULES[0], LP_SPAN("/"))); /* all is below it */
    assert_true(lp_pass_leads_to(LP_SPAN(""), &all, LP_SPAN("/")));
}

/* --- in an engine --- */

static struct world *with_rules(void **state)
{
    static const struct lp_conf_pass rules[] = {
        {{"/login", 6}, LP_PASS_PINNED}, {{"/.well-known/", 13}, LP_PASS_PINNED}};
    struct world *w = *state;
    w->server.passes = rules;
    w->server.pass_count = 2;
    accept_client(w, false, "192.0.2.7:1");
    return w;
}

static void it_passes_as_it_is(void **state)
{
    struct world *w = with_rules(state);
    read_text(w, CLIENT,
        "PUT /login/x?code=1 HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nAccept-Encoding: br\r\n"
        "Mcp-Session-Id: s\r\nContent-Length: 3\r\n\r\n{\"a");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "PUT /login/x?code=1 HTTP/1.1\r\n"));
    assert_true(has(w, REPLICA, "Accept: text/html\r\n"));
    assert_true(has(w, REPLICA, "Accept-Encoding: br\r\n"));
    assert_true(has(w, REPLICA, "\r\n\r\n{\"a"));
    assert_false(has(w, REPLICA, "ession-Id"));
    answer_with(w, "401 No", "WWW-Authenticate: Basic\r\nSet-Cookie: a=1\r\n", "no");
    assert_true(has(w, CLIENT, "401 No"));
    assert_true(has(w, CLIENT, "Basic\r\n"));
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_PASSED], 1);
    /* Nothing was learnt of it: a lost session is still 404. */
    request(w, "POST /mcp", "Mcp-Session-Id: s\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_true(has(w, CLIENT, "404 "));
    /* An event stream of such a path is bytes like others. */
    read_text(w, CLIENT, "GET /login HTTP/1.1\r\nHost: a\r\n\r\n");
    answer_with(w, "200 OK", "Content-Type: text/event-stream\r\n", "data: 1\n\n");
    assert_true(has(w, CLIENT, "content-length: 9\r\n") || has(w, CLIENT, "Content-Length: 9\r\n"));
}

static void large_bodies_stream(void **state)
{
    struct world *w = with_rules(state);
    static char body[LP_BODY_HELD_MAX + 1000];
    memset(body, 'x', sizeof body);
    char head[128];
    snprintf(head, sizeof head, "POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
        sizeof body);
    read_text(w, CLIENT, head);
    read_span(w, CLIENT, lp_span(body, sizeof body));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "POST /login HTTP/1.1\r\n"));
    assert_true(w->written_len[REPLICA] > 60000);
}

static void what_could_be_mcp_is_refused(void **state)
{
    static const struct lp_conf_pass rules[] = {{{"/", 1}, LP_PASS_ANY}, {{"/x", 2}, LP_PASS_ANY}};
    static const char *const PATHS[] = {"/mcp/", "/MCP", "/sse/", "/inner", "/old", "/a//b"};
    struct world *w = *state;
    w->server.passes = rules;
    w->server.pass_count = 2;
    w->replica.path = LP_SPAN("/inner");
    w->server.sse_upstream = LP_SPAN("/old");
    accept_client(w, false, "192.0.2.7:1");
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        char line[64];
        snprintf(line, sizeof line, "POST %s", PATHS[i]);
        request(w, line, "", "{}");
        if (!has(w, CLIENT, "404 "))
            fail_msg("%s", PATHS[i]);
    }
    assert_int_equal(w->connects, 0);
    assert_int_equal(lp_engine_metrics(w->engine)->reasons[LP_REASON_path_refused], 6);
    request(w, "POST /inne", "", "{}");
    assert_int_equal(w->connects, 1);
}

/* A kept connection that ends under a pinned GET says nothing of the replica. */
static void a_pinned_get_stays(void **state)
{
    struct world *w = with_rules(state);
    read_text(w, CLIENT, "GET /login HTTP/1.1\r\nHost: a\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "", "1");
    read_text(w, CLIENT, "GET /login HTTP/1.1\r\nHost: a\r\n\r\n");
    w->connect_result = REPLICA_2;
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "GET /login HTTP/1.1\r\n"));
    answer_with(w, "200 OK", "", "two");
    assert_true(has(w, CLIENT, "two"));
}

/* What a well-known place says of a server keeps its door, and is pinned by the rule. */
static void metadata_is_pinned_too(void **state)
{
    struct world *w = with_rules(state);
    read_text(
        w, CLIENT, "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: a\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\n"));
    assert_true(has(w, REPLICA, "application/json\r\n"));
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_PASSED], 0);
}

/* The longest path wins over all servers, and of equals the first server's; another server's MCP
 * path is one too. */
static void two_servers_have_their_own(void **state)
{
    static const struct lp_conf_pass first[] = {{{"/a", 2}, LP_PASS_ANY},
        {{"/c/d", 4}, LP_PASS_ANY}},
                                     second[] = {{{"/a", 2}, LP_PASS_ANY},
                                         {{"/a/b", 4}, LP_PASS_ANY}, {{"/c", 2}, LP_PASS_PINNED},
                                         {{"/", 1}, LP_PASS_ANY}};
    static const struct {
        const char *target, *host; /* NULL: refused */
    } ROWS[] = {{"/a/x", "r.test:1"}, {"http://h/a?q", "r.test:1"}, {"/a/b/c", "r2.test:1"},
        {"/c/d", "r.test:1"}, {"/c/e", "r2.test:1"}, {"/x", "r2.test:1"}, {"/B/", NULL},
        {"/sse/", NULL}, {"/.well-known/oauth-protected-resource", "r2.test:1"},
        {"/.well-known/oauth-protected-resource/b", "r2.test:1"}};
    struct world *w = *state;
    struct lp_conf_replica replica = w->replica;
    struct lp_conf_server servers[2] = {w->server, w->server};
    replica.name = LP_SPAN("r2");
    replica.address.authority = LP_SPAN("r2.test:1");
    servers[0].passes = first;
    servers[0].pass_count = 2;
    servers[1].name = LP_SPAN("b");
    servers[1].path = LP_SPAN("/b");
    servers[1].sse_path = servers[1].sse_upstream = LP_SPAN("");
    servers[1].replicas = &replica;
    servers[1].passes = second;
    servers[1].pass_count = 4;
    lp_engine_free(w->engine);
    w->conf.servers = servers;
    w->conf.server_count = 2;
    struct lp_engine_args args = {.shell = &w->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = 1800000000000};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char text[256];
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            ROWS[i].target);
        w->written_len[CLIENT] = w->written_len[REPLICA] = 0;
        uint32_t connects = w->connects;
        accept_client(w, false, "192.0.2.7:1");
        read_text(w, CLIENT, text);
        if (w->connects > connects)
            tell_kind(w, LP_EV_CONNECTED, REPLICA);
        char line[64];
        snprintf(line, sizeof line, "host: %s\r\n", ROWS[i].host ? ROWS[i].host : "");
        if (ROWS[i].host ? !has(w, REPLICA, line) : !has(w, CLIENT, "HTTP/1.1 404 "))
            fail_msg("%s", ROWS[i].target);
        if (ROWS[i].host)
            answer_with(w, "200 OK", "Connection: close\r\n", "1");
    }
    lp_engine_free(w->engine);
    w->conf.server_count = 1;
    w->conf.servers = &w->server;
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK); /* for the end of the test */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_rule_has_it),
        cmocka_unit_test(a_path_has_one_reading_or_none),
        cmocka_unit_test(what_leads_to_an_mcp_path_is_known),
        TEST(it_passes_as_it_is),
        TEST(large_bodies_stream),
        TEST(what_could_be_mcp_is_refused),
        TEST(a_pinned_get_stays),
        TEST(metadata_is_pinned_too),
        TEST(two_servers_have_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
