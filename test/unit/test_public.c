/* Public names (gate/public.c, gate/metadata.c; cases AUT-01 to AUT-03): which name a client gets
 * to see in challenges and metadata, and where a metadata document is asked for. */
#include "engine_harness.h"

#include "gate/public.h"

static const struct lp_span URLS[] = {
    {"https://a.example/team/mcp", 26},
    {"https://b.example:8443/mcp", 26},
    {"http://b.example/", 17},
};
static const struct lp_conf_server NAMED = {.public_urls = URLS, .public_url_count = 3};

static void the_name_is_chosen_by_the_host(void **state)
{
    static const struct {
        const char *host;
        size_t want;
        bool is_known;
    } CASES[] = {
        {"a.example", 0, true},
        {"A.example:443", 0, true},
        {"a.example:99", 0, true},
        {"b.example:8443", 1, true},
        {"b.example", 2, true}, /* the exact port is better than the first of the name */
        {"b.example:80", 2, true},
        {"b.example:99", 1, true},
        {"c.example", 0, false}, /* never said back */
        {"bad host", 0, false},
        {NULL, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_span host = lp_span_str(CASES[i].host);
        assert_ptr_equal(lp_public_url(&NAMED, host).ptr, URLS[CASES[i].want].ptr);
        assert_int_equal(lp_public_has_host(&NAMED, host), CASES[i].is_known);
    }
    static const struct lp_conf_server NONE;
    assert_int_equal(lp_public_url(&NONE, LP_SPAN("a.example")).len, 0);
    assert_true(lp_public_has_path(&NAMED, LP_SPAN("a.example"), LP_SPAN("/team/mcp")));
    assert_true(lp_public_has_path(&NAMED, LP_SPAN("b.example"), LP_SPAN("")));
    assert_false(lp_public_has_path(&NAMED, LP_SPAN("a.example"), LP_SPAN("/mcp")));
    assert_false(lp_public_has_path(&NAMED, LP_SPAN("c.example"), LP_SPAN("/team/mcp")));
}

static void places_are_known(void **state)
{
    struct lp_span place, suffix;
    (void)state;
    assert_true(
        lp_public_split(LP_SPAN("/.well-known/oauth-protected-resource/a/b"), &place, &suffix));
    assert_true(lp_public_is_resource(place) && lp_span_eq(suffix, LP_SPAN("/a/b")));
    assert_true(
        lp_public_split(LP_SPAN("/.well-known/oauth-authorization-server/"), &place, &suffix));
    assert_true(!lp_public_is_resource(place) && suffix.len == 0);
    assert_true(lp_public_split(LP_SPAN("/.well-known/openid-configuration"), &place, &suffix));
    assert_false(lp_public_split(LP_SPAN("/.well-known/openid-configurations"), &place, &suffix));
    assert_false(lp_public_split(LP_SPAN("/mcp"), &place, &suffix));
}

#define WELL "/.well-known/oauth-protected-resource"

static void a_challenge_names_the_public_place(void **state)
{
    static const struct {
        const char *from, *to;
    } CASES[] = {
        {"Bearer resource_metadata=\"http://10.0.0.5:8000" WELL "/mcp\", scope=\"a b\"",
            "Bearer resource_metadata=\"https://a.example" WELL "/team/mcp\", scope=\"a b\""},
        {"Bearer resource_metadata=http://10.0.0.5" WELL ", scope=\"a\"",
            "Bearer resource_metadata=https://a.example" WELL "/team/mcp, scope=\"a\""},
        {"Basic realm=\"x\", Bearer error=\"e\", resource_metadata=\"http://i" WELL
         "\", DPoP resource_metadata=\"http://i" WELL "/mcp\"",
            "Basic realm=\"x\", Bearer error=\"e\", resource_metadata=\"https://a.example" WELL
            "/team/mcp\", DPoP resource_metadata=\"https://a.example" WELL "/team/mcp\""},
        {"Bearer", "Bearer"},
        {"Bearer resource_metadata=\"https://elsewhere.example/doc\"",
            "Bearer resource_metadata=\"https://elsewhere.example/doc\""},
        {"Bearer resource_metadata=\"not a URL\"", "Bearer resource_metadata=\"not a URL\""},
        {"Bearer resource_metadata=\"", "Bearer resource_metadata=\""},
        {"Bearer resource_metadata=http://i" WELL,
            "Bearer resource_metadata=https://a.example" WELL "/team/mcp"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_buf out;
        lp_buf_init(&out, 4096);
        assert_int_equal(lp_public_challenge(&out, lp_span_str(CASES[i].from), URLS[0]), LP_OK);
        if (!lp_span_eq(lp_buf_span(&out), lp_span_str(CASES[i].to)))
            fail_msg("%s became %.*s", CASES[i].from, (int)out.len, lp_buf_span(&out).ptr);
        lp_buf_release(&out);
    }
    struct lp_buf small;
    lp_buf_init(&small, 50);
    assert_int_equal(lp_public_challenge(&small, lp_span_str(CASES[0].from), URLS[0]), LP_ELIMIT);
    lp_buf_release(&small);
}

static void a_document_names_the_public_url(void **state)
{
    struct lp_buf out;
    (void)state;
    lp_buf_init(&out, 200);
    assert_int_equal(
        lp_public_document(
            &out, LP_SPAN("{\"x\": {\"resource\": 1}, \"resource\" : \"http://i/mcp\" }"), URLS[0]),
        LP_OK);
    assert_true(lp_span_eq(lp_buf_span(&out),
        LP_SPAN("{\"x\": {\"resource\": 1}, \"resource\" : \"https://a.example/team/mcp\" }")));
    lp_buf_clear(&out);
    assert_int_equal(lp_public_document(&out, LP_SPAN("{\"resources\":1}"), URLS[0]), LP_ESYNTAX);
    assert_int_equal(lp_public_document(&out, LP_SPAN("{\"resource\":"), URLS[0]), LP_ESYNTAX);
    assert_int_equal(lp_public_document(&out, LP_SPAN("<html>"), URLS[0]), LP_ESYNTAX);
    assert_int_equal(out.len, 0);
    lp_buf_release(&out);
}

/* --- through the engine --- */

static int setup_named(void **state)
{
    struct world *w = new_world(1);
    w->server.public_urls = URLS;
    w->server.public_url_count = 3;
    *state = w;
    return 0;
}

#define NAMED_TEST(name) cmocka_unit_test_setup_teardown(name, setup_named, teardown)

static void get(struct world *w, const char *host, const char *path)
{
    char text[1024];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host);
    w->written_len[CLIENT] = w->written_len[REPLICA] = w->written_len[REPLICA_2] = 0;
    read_text(w, CLIENT, text);
}

static void metadata_is_asked_of_the_replica_and_rewritten(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    get(w, "a.example", WELL "/team/mcp");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "GET " WELL "/mcp HTTP/1.1\r\nhost: r.test:1\r\n"));
    assert_true(has(w, REPLICA, "accept: application/json\r\n"));
    answer_with(
        w, "200 OK", "Content-Type: application/json\r\n", "{\"resource\":\"http://r/mcp\"}");
    assert_true(has(w, CLIENT, "HTTP/1.1 200 OK\r\n"));
    assert_true(has(w, CLIENT, "\r\n\r\n{\"resource\":\"https://a.example/team/mcp\"}"));
    assert_true(has(w, CLIENT, "Content-Length: 41\r\n"));

    /* What is no such document passes as it came, and so do those of other places. */
    get(w, "b.example:8443", WELL "/mcp");
    answer_with(w, "200 OK", "", "<html>");
    assert_true(has(w, CLIENT, "\r\n\r\n<html>"));
    get(w, "b.example", "/.well-known/openid-configuration/mcp");
    assert_true(has(w, REPLICA, "GET /.well-known/openid-configuration/mcp HTTP/1.1\r\n"));
    answer_with(w, "200 OK", "", "{\"resource\":1}");
    assert_true(has(w, CLIENT, "{\"resource\":1}"));
    get(w, "b.example", WELL); /* of the only server, and of the third URL */
    assert_true(has(w, REPLICA, "GET " WELL " HTTP/1.1\r\n"));
    answer_with(w, "404 Not Found", "", "no");
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
}

static void a_replica_with_the_place_alone_is_asked_again(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    get(w, "a.example", WELL "/mcp");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    w->connect_result = REPLICA_2;
    read_text(w, REPLICA, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "GET " WELL " HTTP/1.1\r\n"));
    assert_int_equal(w->written_len[CLIENT], 0);
    answer_with(w, "404 Not Found", "", "none");
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
    assert_true(has(w, CLIENT, "none"));
}

/* Only reading what is not there is asked for again, and only where a server tells of itself. */
static void nothing_else_is_asked_again_or_held(void **state)
{
    static const struct {
        const char *method, *path, *status;
    } CASES[] = {
        {"OPTIONS", WELL "/mcp", "404 Not Found"},
        {"OPTIONS", WELL "/mcp", "200 OK"},
        {"GET", "/.well-known/openid-configuration/mcp", "404 Not Found"},
        {"GET", WELL "/mcp", "201 Created"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[512];
        accept_client(w, false, "192.0.2.7:1");
        snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a.example\r\n\r\n", CASES[i].method,
            CASES[i].path);
        w->written_len[CLIENT] = 0;
        read_text(w, CLIENT, text);
        if (i == 0)
            tell_kind(w, LP_EV_CONNECTED, REPLICA);
        answer_with(w, CASES[i].status, "", "{\"resource\":1}");
        assert_true(has(w, CLIENT, CASES[i].status));
        assert_true(has(w, CLIENT, "{\"resource\":1}"));
        tell_kind(w, LP_EV_BROKEN, CLIENT);
    }
}

static void a_replica_at_the_root_has_no_path_behind_the_place(void **state)
{
    struct world *w = *state;
    w->replica.path = LP_SPAN("/");
    accept_client(w, false, "192.0.2.7:1");
    get(w, "a.example", WELL "/mcp");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "GET " WELL " HTTP/1.1\r\n"));
}

static void a_long_document_passes_as_it_is(void **state)
{
    struct world *w = *state;
    char *body = malloc(LP_METADATA_MAX + 2);
    memset(body, ' ', LP_METADATA_MAX + 1);
    body[LP_METADATA_MAX + 1] = '\0';
    accept_client(w, false, "192.0.2.7:1");
    get(w, "a.example", WELL "/mcp");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA, "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n");
    read_span(w, REPLICA, lp_span(body, 100));
    assert_int_equal(w->written_len[CLIENT], 0);
    read_span(w, REPLICA, lp_span(body, LP_METADATA_MAX + 1 - 100));
    assert_true(has(w, CLIENT, "Content-Length: 65537\r\n"));
    assert_true(w->written_len[CLIENT] > LP_METADATA_MAX);
    free(body);
}

static void only_reading_is_allowed(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    read_text(w, CLIENT, "DELETE " WELL "/mcp HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_true(has(w, CLIENT, "HTTP/1.1 405 "));
    assert_true(has(w, CLIENT, "allow: GET, OPTIONS\r\n"));
    get(w, "a.example", WELL "/other");
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
}

static void other_names_are_refused(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    get(w, "c.example", WELL "/mcp");
    assert_true(has(w, CLIENT, "HTTP/1.1 403 "));
    assert_false(has(w, CLIENT, "c.example"));
}

static const char CHALLENGE[] =
    "WWW-Authenticate: Bearer resource_metadata=\"http://r.test:1" WELL "/mcp\"\r\n";
static const char INITIALIZE[] =
    "POST /mcp HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: "
    "58\r\n\r\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}";

static void initialize_at(struct world *w, const char *host, const char *fields)
{
    char text[1024];
    snprintf(text, sizeof text, INITIALIZE, host, fields);
    w->written_len[CLIENT] = 0;
    read_text(w, CLIENT, text);
}

static void challenges_are_the_clients_own(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    initialize_at(w, "b.example", "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "401 Unauthorized", CHALLENGE, "who?");
    assert_true(has(w, CLIENT, "resource_metadata=\"http://b.example" WELL "\"\r\n"));
    assert_false(has(w, CLIENT, "r.test"));
    assert_null(strstr(w->log, "set public_url"));

    /* One that this gateway repeats by itself is the next client's. */
    w->written_len[CLIENT] = 0;
    read_text(w, CLIENT, "GET /mcp HTTP/1.1\r\nHost: a.example\r\nMcp-Session-Id: gone\r\n\r\n");
    assert_true(has(w, CLIENT, "HTTP/1.1 401 "));
    assert_true(has(w, CLIENT, "resource_metadata=\"https://a.example" WELL "/team/mcp\"\r\n"));
}

static void an_address_that_clients_do_not_use_is_told_once(void **state)
{
    struct world *w = new_world(1);
    (void)state;
    w->conf.log_level = LP_LOG_WARN;
    w->conf.access_log = false;
    static const char *const FINE[] = {"Bearer", "Bearer resource_metadata=\"not a URL\"",
        "Bearer resource_metadata=\"/relative\"",
        "Bearer resource_metadata=\"https://A.example/x\""};
    accept_client(w, false, "192.0.2.7:1");
    for (size_t i = 0; i < sizeof FINE / sizeof *FINE; i++) {
        char field[128];
        snprintf(field, sizeof field, "WWW-Authenticate: %s\r\n", FINE[i]);
        initialize_at(w, "a.example", "");
        tell_kind(w, LP_EV_CONNECTED, REPLICA);
        answer_with(w, "401 Unauthorized", field, "who?");
        assert_string_equal(w->log, "");
    }
    initialize_at(w, "a.example", "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "401 Unauthorized", CHALLENGE, "who?");
    assert_true(has(w, CLIENT, "resource_metadata=\"http://r.test:1" WELL "/mcp\"\r\n"));
    assert_non_null(strstr(w->log,
        "its challenge sends clients to http://r.test:1" WELL
        "/mcp to log in, but they know it as a.example; set public_url"));
    w->log[0] = '\0';
    initialize_at(w, "a.example", "");
    answer_with(w, "401 Unauthorized", CHALLENGE, "who?");
    assert_string_equal(w->log, "");
    *(struct world **)state = w;
    teardown(state);
}

static void without_public_urls_a_document_passes_as_it_is(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    get(w, "a.example", WELL "/mcp");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "", "{\"resource\":\"http://r.test:1/mcp\"}");
    assert_true(has(w, CLIENT, "\r\n\r\n{\"resource\":\"http://r.test:1/mcp\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_chosen_by_the_host),
        cmocka_unit_test(places_are_known),
        cmocka_unit_test(a_challenge_names_the_public_place),
        cmocka_unit_test(a_document_names_the_public_url),
        NAMED_TEST(metadata_is_asked_of_the_replica_and_rewritten),
        NAMED_TEST(a_replica_with_the_place_alone_is_asked_again),
        NAMED_TEST(nothing_else_is_asked_again_or_held),
        NAMED_TEST(a_replica_at_the_root_has_no_path_behind_the_place),
        NAMED_TEST(a_long_document_passes_as_it_is),
        NAMED_TEST(only_reading_is_allowed),
        NAMED_TEST(other_names_are_refused),
        NAMED_TEST(challenges_are_the_clients_own),
        TEST(without_public_urls_a_document_passes_as_it_is),
        cmocka_unit_test(an_address_that_clients_do_not_use_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
