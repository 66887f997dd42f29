/* What a browser is told: who may call, what it may send, what it may read (mcp/cors.h; cases
 * HDR-02, HDR-04, HDR-09), and the server that tells it. */
#include "mcp/cors.h"
#include "serve_harness.h"
#include "wire/field.h"

#define APP "https://app.example.test"

/* --- the lists --- */

static void expect_names(const char *asked, const char *tail)
{
    struct lp_buf out;
    char text[2 * LP_CORS_LIST_MAX];
    lp_buf_init(&out, LP_CORS_LIST_MAX);
    assert_int_equal(lp_cors_names(lp_span_str(asked), &out), LP_OK);
    snprintf(text, sizeof text,
        "content-type, accept, authorization, last-event-id, mcp-session-id, "
        "mcp-protocol-version, mcp-method, mcp-name%s",
        tail);
    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(lp_buf_span(&out).ptr, text, out.len);
    lp_buf_release(&out);
}

static void names_are_mcps_and_the_asked_parameters(void **state)
{
    (void)state;
    expect_names("", "");
    expect_names(
        "last-event-id,mcp-method,mcp-name,mcp-param-region,authorization", ", mcp-param-region");
    expect_names("x-evil, mcp-param-, Mcp-Param-B,mcp-param-b , ,mcp-param-c d", ", Mcp-Param-B");
    expect_names("mcp-paramx, mcp-param-a:b", "");
}

static void a_name_that_does_not_fit_stays_out(void **state)
{
    char asked[LP_CORS_LIST_MAX + 64];
    (void)state;
    int n = snprintf(asked, sizeof asked, "mcp-param-");
    memset(asked + n, 'x', LP_CORS_LIST_MAX - (size_t)n);
    snprintf(asked + LP_CORS_LIST_MAX, 64, ",mcp-param-y");
    expect_names(asked, ", mcp-param-y");
}

static void exposed_lists_become_one(void **state)
{
    struct lp_buf out;
    (void)state;
    lp_buf_init(&out, LP_CORS_LIST_MAX);
    assert_int_equal(lp_cors_expose(LP_SPAN("X-A, mcp-session-id,X-B,\x01"), &out), LP_OK);
    assert_int_equal(lp_buf_append(&out, LP_SPAN("")), LP_OK);
    const char *want = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, "
                       "Last-Event-Id, X-A, X-B";
    assert_int_equal(out.len, strlen(want));
    assert_memory_equal(lp_buf_span(&out).ptr, want, out.len);
    lp_buf_release(&out);
}

static void only_an_origin_of_sane_length_is_answered_to(void **state)
{
    static struct lp_head head;
    char text[LP_CORS_ORIGIN_MAX + 1];
    (void)state;
    memset(text, 'o', sizeof text);
    lp_cors_allow(&head, LP_SPAN(""), LP_SPAN(""));
    lp_cors_allow(&head, lp_span(text, sizeof text), LP_SPAN(""));
    assert_int_equal(head.field_count, 0);
    lp_cors_allow(&head, lp_span(text, sizeof text - 1), LP_SPAN("X-Mine"));
    assert_int_equal(head.field_count, 3);
    struct lp_span exposed = lp_head_value(&head, LP_FIELD_ACCESS_CONTROL_EXPOSE_HEADERS);
    assert_memory_equal(exposed.ptr, "X-Mine", exposed.len);
}

/* --- the server --- */

static bool nobody(void *ctx, struct lp_span token, struct lp_key *ret_principal)
{
    (void)ctx;
    (void)ret_principal;
    return token.len > 0;
}

static void start_for_app(struct world *w)
{
    static const struct lp_offer nothing;
    struct lp_server_args args = {.bearer = nobody};
    args.origins = LP_SPAN(APP);
    start_server(w, &nothing, args);
}

static const char *send_text(struct world *w, const char *text)
{
    lp_id conn = dial(w);
    send_bytes(w, conn, lp_span_str(text));
    return got(w, conn);
}

#define OPTIONS(more) "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n" more "\r\n"

static void a_preflight_needs_no_token(void **state)
{
    (void)state;
    struct world w;
    start_for_app(&w);
    lp_id conn = dial(&w);
    for (int i = 0; i < 2; i++) { /* the connection stays */
        send_bytes(&w, conn,
            LP_SPAN(OPTIONS("Origin: " APP "\r\nAccess-Control-Request-Method: POST\r\n"
                            "Access-Control-Request-Headers: mcp-param-region,x-evil\r\n")));
        const char *text = got(&w, conn);
        STATUS(text, "204");
        HAS(text, "access-control-allow-origin: " APP "\r\n");
        HAS(text, "vary: Origin\r\n");
        HAS(text, "access-control-allow-methods: GET, POST, DELETE, OPTIONS\r\n");
        HAS(text, "mcp-name, mcp-param-region\r\n");
        HAS(text, "access-control-max-age: 7200\r\n");
        LACKS(text, "x-evil");
        LACKS(text, "credentials");
    }
    finish(&w);
}

static void options_of_others_get_no_permission(void **state)
{
    (void)state;
    struct world w;
    start_for_app(&w);
    const char *text = send_text(&w, OPTIONS("Origin: https://evil.example\r\n"));
    STATUS(text, "403");
    LACKS(text, "access-control");
    text = send_text(&w, OPTIONS("")); /* no browser */
    STATUS(text, "204");
    HAS(text, "allow: GET, POST, DELETE\r\n");
    LACKS(text, "access-control");
    finish(&w);
}

static void every_answer_to_an_allowed_page_can_be_read(void **state)
{
    static const struct {
        const char *status, *request;
    } ROWS[] = {
        {"401", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: " APP "\r\n\r\n"},
        {"404", "GET /else HTTP/1.1\r\nHost: localhost\r\nOrigin: " APP "\r\n\r\n"},
        {"405", "PUT /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: " APP "\r\n\r\n"},
        {"400",
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
            "Origin: " APP "\r\n\r\n"},
        {"413",
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
            "Content-Type: application/json\r\nContent-Length: 99999999\r\n"
            "Origin: " APP "\r\n\r\n"},
    };
    (void)state;
    struct world w;
    start_for_app(&w);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *text = send_text(&w, ROWS[i].request);
        STATUS(text, ROWS[i].status);
        HAS(text, "access-control-allow-origin: " APP "\r\n");
        HAS(text, "access-control-expose-headers: Mcp-Session-Id, ");
    }
    finish(&w);
}

static void a_page_reads_the_session_id_and_streams(void **state)
{
    (void)state;
    struct world w;
    start_for_app(&w);
    struct client c = {.world = &w,
        .extra = "Accept: text/event-stream\r\nAuthorization: Bearer x\r\nOrigin: " APP "\r\n"};
    const char *text = open_as(&c, INITIALIZE("2025-11-25"));
    HAS(text, "access-control-allow-origin: " APP "\r\n");
    HAS(text, "vary: Origin\r\n");
    HAS(text, "access-control-expose-headers: Mcp-Session-Id, ");
    text = ask(&c, dial(&w), "GET", NULL);
    HAS(text, "text/event-stream");
    HAS(text, "access-control-allow-origin: " APP "\r\n");
    c.extra = "Accept: text/event-stream\r\nAuthorization: Bearer x\r\n";
    LACKS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), "access-control");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_mcps_and_the_asked_parameters),
        cmocka_unit_test(a_name_that_does_not_fit_stays_out),
        cmocka_unit_test(exposed_lists_become_one),
        cmocka_unit_test(only_an_origin_of_sane_length_is_answered_to),
        cmocka_unit_test(a_preflight_needs_no_token),
        cmocka_unit_test(options_of_others_get_no_permission),
        cmocka_unit_test(every_answer_to_an_allowed_page_can_be_read),
        cmocka_unit_test(a_page_reads_the_session_id_and_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
