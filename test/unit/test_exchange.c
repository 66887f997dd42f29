/* Exchanges at the edges that no simulated day reaches: answers that come too early, too late or
 * not at all, ids and heads that are odd, tables that are full. One engine and a scripted shell. */
#include "engine_harness.h"

static const char PING[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
static const char CALL[] =
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}";

/* --- what the replica does not do --- */

static void a_request_is_sent_again_if_nothing_of_it_was_handed_over(void **state)
{
    struct world *w = *state;
    open_session(w);
    w->breaks[REPLICA] = true;
    w->connect_result = REPLICA_2;
    request(w, "POST /mcp", w->ticket, CALL);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "tools/call"));
    answer_with(w, "200 OK", "", "{\"ok\":1}");
    assert_true(has(w, CLIENT, "{\"ok\":1}"));
    assert_non_null(strstr(w->log, "(answered)"));
}

static void a_request_that_was_handed_over_is_not_sent_again(void **state)
{
    struct world *w = *state;
    open_session(w);
    w->connect_result = REPLICA_2;
    request(w, "POST /mcp", w->ticket, CALL);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    assert_int_equal(w->written_len[REPLICA_2], 0);
    assert_true(has(w, CLIENT, "\"id\":7,\"error\""));
    assert_non_null(strstr(w->log, "(upstream_broke)"));
}

/* The shell had it to drain, so it may have gone out before the connection broke. */
static void a_request_that_was_to_be_drained_is_not_sent_again(void **state)
{
    struct world *w = *state;
    open_session(w);
    w->takes_nothing[REPLICA] = true;
    w->connect_result = REPLICA_2;
    request(w, "POST /mcp", w->ticket, CALL);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    assert_int_equal(w->written_len[REPLICA_2], 0);
    assert_non_null(strstr(w->log, "(upstream_broke)"));
}

/* The limit of the first attempt passes while the second one still connects, which has its own. */
static void a_second_attempt_has_its_own_time(void **state)
{
    struct world *w = *state;
    open_session(w);
    request(w, "POST /mcp", w->ticket, PING);
    pass_time(w, 299ull * SECOND_US);
    w->connect_result = REPLICA_2;
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    pass_time(w, 2ull * SECOND_US);
    assert_int_equal(w->written_len[CLIENT], 0);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    pass_time(w, 200ull * SECOND_US);
    answer_with(w, "200 OK", "", "{}");
    assert_true(has(w, CLIENT, "HTTP/1.1 200 "));
}

/* --- an upload and an answer at once --- */

static void begin_upload(struct world *w, size_t bytes)
{
    char head[4096];
    int n = snprintf(head, sizeof head,
        "POST /mcp HTTP/1.1\r\nHost: a\r\n%sContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n%zx\r\n"
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"x\":\"",
        w->ticket, bytes);
    char *text = malloc((size_t)n + bytes);
    memcpy(text, head, (size_t)n);
    size_t begun = strlen(strchr(strstr(head, "\r\n\r\n") + 4, '{'));
    memset(text + n, 'x', bytes - begun);
    w->written_len[CLIENT] = w->written_len[REPLICA] = 0;
    read_span(w, CLIENT, lp_span(text, (size_t)n + bytes - begun));
    free(text);
}

static void events_that_come_during_an_upload_are_passed_on(void **state)
{
    struct world *w = *state;
    open_session(w);
    begin_upload(w, 70000);
    assert_true(has(w, REPLICA, "tools/call"));
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\ndata: 1\n\n\r\n");
    assert_true(has(w, CLIENT, "data: 1\n\n"));
    read_text(w, CLIENT, "\r\n2\r\n\"}\r\n0\r\n\r\n");
    assert_true(has(w, REPLICA, "2\r\n\"}\r\n0\r\n\r\n"));
    read_text(w, REPLICA, "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
    assert_true(has(w, CLIENT, "data: 2\n\n"));
    assert_non_null(strstr(w->log, "tools/call"));
    assert_non_null(strstr(w->log, "(stream_ended)"));
}

/* --- errors that are no lost session --- */

/* The answer of this status to `line` is passed on as it is. */
static void check_passes(
    struct world *w, const char *line, const char *fields, const char *body, const char *status)
{
    request(w, line, fields, body);
    if (w->connects > 1 || !w->written_len[REPLICA])
        tell_kind(w, LP_EV_CONNECTED, (lp_id)w->connect_result);
    answer_with(w, status, "", "what the replica says");
    assert_true(has(w, CLIENT, status));
    assert_true(has(w, CLIENT, "what the replica says"));
    assert_non_null(strstr(w->log, "(answered)"));
}

static void a_conflict_that_is_no_second_stream_is_passed_on(void **state)
{
    struct world *w = *state;
    open_session(w);
    check_passes(w, "POST /mcp", w->ticket, PING, "409 Conflict");
}

/* The id of an answer is the replica's, which a client could take for one of its own. */
static void an_error_that_the_client_answers_has_no_id_to_echo(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "Mcp-Session-Id: forged\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,\"message\":\"no\"}}");
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
    assert_true(has(w, CLIENT, "\"id\":null"));
}

static void a_refused_initialize_is_passed_on(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    check_passes(w, "POST /mcp", "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}",
        "400 Bad Request");
}

static void a_refused_preflight_is_passed_on(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    check_passes(w, "OPTIONS /mcp", "", "", "400 Bad Request");
}

static const char MODERN_FIELDS[] =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
static const char MODERN_BODY[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"},"
    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";

static void a_refused_modern_request_is_passed_on(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    check_passes(w, "POST /mcp", MODERN_FIELDS, MODERN_BODY, "400 Bad Request");
}

/* MOD-01: who misses a session, or its initialize, knows sessions only. */
static void a_server_with_sessions_is_told_of_to_a_modern_client(void **state)
{
    static const struct {
        const char *body;
        bool is_told;
    } ROWS[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}", true},
        {"{\"error\":{\"message\":\"Missing session ID\",\"code\":-32600}}", true},
        {"{\"error\":{\"message\":\"Invalid Request\",\"code\":-32600}}", false},
        {"{\"error\":{\"code\":-32020,\"message\":\"session\"}}", false},
        {"{\"error\":1}", false},
        {"Bad Request: no session", false},
        {"", false},
    };
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        request(w, "POST /mcp", MODERN_FIELDS, MODERN_BODY);
        if (i == 0)
            tell_kind(w, LP_EV_CONNECTED, REPLICA);
        answer_with(w, "400 Bad Request", "", ROWS[i].body);
        assert_true(has(w, CLIENT, "HTTP/1.1 400 "));
        if (has(w, CLIENT, "-32022") != ROWS[i].is_told)
            fail_msg("%s", ROWS[i].body);
        if (ROWS[i].is_told)
            assert_true(has(w, CLIENT,
                "\"supported\":[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"],"
                "\"requested\":\"2026-07-28\""));
        else
            assert_true(has(w, CLIENT, ROWS[i].body));
    }
}

/* Who gives no ids does not miss one: the refusal means something else. */
static void a_server_without_ids_refuses_in_its_own_words(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "", "{}");
    check_passes(w, "POST /mcp", "", PING, "400 Bad Request");
}

static void a_conflict_that_is_too_long_to_be_understood_is_passed_on(void **state)
{
    struct world *w = *state;
    char body[LP_ANSWER_HELD_MAX + 2];
    memset(body, 'c', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    open_session(w);
    request(w, "GET /mcp", w->ticket, "");
    answer_with(w, "409 Conflict", "", body);
    assert_true(has(w, CLIENT, "HTTP/1.1 409 "));
    assert_true(has(w, CLIENT, body));
}

static void a_conflict_may_be_configured_to_mean_a_lost_session(void **state)
{
    struct world *w = *state;
    static const struct lp_conf_dialect LOST = {409, 0, {"no such session", 15}};
    w->server.lost_dialects = &LOST;
    w->server.lost_dialect_count = 1;
    open_session(w);
    check_passes(w, "POST /mcp", w->ticket, PING, "409 Conflict");
    request(w, "POST /mcp", w->ticket, PING);
    answer_with(w, "409 Conflict", "", "no such session");
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
    assert_non_null(strstr(w->log, "(session_lost)"));
    assert_int_equal(session_count(w), 0);
}

static void a_long_answer_of_a_lost_session_is_not_waited_for(void **state)
{
    struct world *w = *state;
    char body[LP_ANSWER_HELD_MAX + 2];
    memset(body, 'n', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    open_session(w);
    request(w, "POST /mcp", w->ticket, PING);
    answer_with(w, "404 Not Found", "", body);
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
    assert_false(has(w, CLIENT, "nnnn"));
    assert_non_null(strstr(w->log, "(session_lost)"));
}

static void a_delete_that_is_refused_ends_no_session(void **state)
{
    struct world *w = *state;
    open_session(w);
    assert_int_equal(session_count(w), 1);
    request(w, "DELETE /mcp", w->ticket, "");
    answer_with(w, "405 Method Not Allowed", "", "");
    assert_true(has(w, CLIENT, "HTTP/1.1 405 "));
    assert_true(has(w, CLIENT, "allow: POST, DELETE\r\n"));
    assert_int_equal(session_count(w), 1);
    request(w, "DELETE /mcp", w->ticket, "");
    answer_with(w, "200 OK", "", "");
    assert_int_equal(session_count(w), 0);
}

/* --- sessions that cannot be used --- */

/* A session whose id no ticket may hold is ended at the replica. */
static void check_bad_id(struct world *w, const char *field)
{
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "Authorization: Bearer t\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    w->connect_result = REPLICA_2;
    read_text(w, REPLICA, "HTTP/1.1 200 OK\r\n");
    read_text(w, REPLICA, field);
    read_text(w, REPLICA, "Content-Length: 2\r\n\r\n{}");
    assert_true(has(w, CLIENT, "HTTP/1.1 502 "));
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "DELETE /mcp HTTP/1.1\r\n"));
    assert_true(has(w, REPLICA_2, field));
    assert_true(has(w, REPLICA_2, "Authorization: Bearer t\r\n"));
    assert_int_equal(session_count(w), 0);
}

static void an_id_with_a_blank_is_ended_where_it_came_from(void **state)
{
    struct world *w = *state;
    check_bad_id(w, "mcp-session-id: two words\r\n");
    answer_with(w, "200 OK", "", "ended");
    assert_false(has(w, CLIENT, "ended")); /* there is nobody to tell */
    assert_int_equal(w->closes[REPLICA_2], 0);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
}

static void an_id_that_is_not_ascii_is_ended_and_its_answer_read_within_a_bound(void **state)
{
    struct world *w = *state;
    char many[65536];
    check_bad_id(w, "mcp-session-id: caf\xC3\xA9\r\n");
    read_text(w, REPLICA_2, "HTTP/1.1 200 OK\r\n\r\n");
    memset(many, 'x', sizeof many);
    for (int i = 0; i <= LP_LEFT_BYTES_MAX / (int)sizeof many; i++)
        read_span(w, REPLICA_2, lp_span(many, sizeof many));
    assert_int_equal(w->closes[REPLICA_2], 1);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
}

/* --- heads --- */

static void a_head_says_over_what_and_for_whom_it_came(void **state)
{
    struct world *w = *state;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT};
    event.u.accepted =
        (struct lp_conn_facts){.is_tls = true, .peer = LP_SPAN("192.0.2.7:1"), .unix_uid = -1};
    tell(w, event);
    read_text(w, CLIENT, "OPTIONS /mcp HTTP/1.0\r\n\r\n"); /* without a Host */
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, "for=192.0.2.7;proto=https"));
    assert_true(has(w, REPLICA, "x-forwarded-proto: https\r\n"));
    assert_false(has(w, REPLICA, "x-forwarded-host"));
}

/* W3C trace context: what is no traceparent is replaced, and the state beside it does not go on. */
static void only_a_sound_trace_goes_on(void **state)
{
    struct world *w = *state;
#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
    static const struct {
        const char *parent;
        bool goes_on;
    } ROWS[] = {{"00-" ID "-" SPAN "-01", true}, {"00-" ID "-" SPAN "-00", true},
        {"cc-" ID "-" SPAN "-01-what later versions say", true}, {"cc-" ID "-" SPAN "-01", true},
        {"00-" ID "-" SPAN "-01-more", false}, {"cc-" ID "-" SPAN "-01.more", false},
        {"ff-" ID "-" SPAN "-01", false}, {"00-" ID "-" SPAN "-0", false},
        {"0G-" ID "-" SPAN "-01", false}, {"0:-" ID "-" SPAN "-01", false},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false},
        {"00-00000000000000000000000000000000-" SPAN "-01", false},
        {"00-" ID "-0000000000000000-01", false}, {"00-" ID "-b7ad6b716920333z-01", false},
        {"00-" ID "-" SPAN "-0 ", false}, {"00-" ID "-" SPAN "-0/", false},
        {"00." ID "-" SPAN "-01", false}, {"00-" ID "." SPAN "-01", false},
        {"00-" ID "-" SPAN ".01", false}, {"", false}};
    open_session(w);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char fields[4096], wanted[256];
        snprintf(fields, sizeof fields, "%straceparent: %s\r\ntracestate: a=1\r\n", w->ticket,
            ROWS[i].parent);
        request(w, "POST /mcp", fields, PING);
        snprintf(wanted, sizeof wanted, "traceparent: %s\r\n", ROWS[i].parent);
        assert_int_equal(has(w, REPLICA, wanted), ROWS[i].goes_on);
        assert_int_equal(has(w, REPLICA, "tracestate: a=1\r\n"), ROWS[i].goes_on);
        assert_true(has(w, REPLICA, "traceparent: "));
        answer_with(w, "200 OK", "", "{}");
    }
}

/* --- old SSE --- */

static void an_endpoint_is_announced_to_a_client_that_named_no_host(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    read_text(w, CLIENT, "GET /sse HTTP/1.0\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        "event: endpoint\ndata: /messages?s=1\n\n");
    assert_true(has(w, CLIENT, "event: endpoint\ndata: /sse?lp="));
    assert_int_equal(session_count(w), 1);
}

/* The address for messages of a stream that lives takes messages only. */
static void a_message_address_says_what_it_takes(void **state)
{
    struct world *w = *state;
    char text[2048];
    accept_client(w, false, "192.0.2.7:1");
    read_text(w, CLIENT, "GET /sse HTTP/1.1\r\nHost: a\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        "event: endpoint\ndata: /messages?s=1\n\n");
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]), rest;
    struct lp_span address = lp_span_from(all, lp_span_search(all, LP_SPAN("/sse?lp=")));
    assert_true(address.len);
    address = lp_span_split(address, '\n', &rest);
    snprintf(text, sizeof text, "DELETE %.*s HTTP/1.1\r\nHost: a\r\n\r\n", (int)address.len,
        address.ptr);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT_2};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.7:2"), .unix_uid = -1};
    tell(w, event);
    read_text(w, CLIENT_2, text);
    assert_true(has(w, CLIENT_2, "HTTP/1.1 405 "));
    assert_true(has(w, CLIENT_2, "allow: POST\r\n"));
    assert_int_equal(session_count(w), 1);
}

static void what_may_be_an_endpoint_is_held_to_a_bound(void **state)
{
    struct world *w = *state;
    char many[LP_SSE_HOLD_MAX];
    memset(many, 'x', sizeof many);
    accept_client(w, false, "192.0.2.7:1");
    read_text(w, CLIENT, "GET /sse HTTP/1.1\r\nHost: a\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ");
    read_span(w, REPLICA, lp_span(many, sizeof many));
    assert_false(has(w, CLIENT, "xxxx"));
    assert_non_null(strstr(w->log, "(endpoint_refused)"));
    assert_int_equal(w->closes[CLIENT], 1);
}

/* --- homes --- */

static void mail_in(struct world *w, struct lp_mail mail)
{
    tell(w,
        (struct lp_event){
            .kind = LP_EV_MAIL, .u.mail.bytes = lp_span((const char *)&mail, sizeof mail)});
}

static void a_full_home_forgets_who_was_quiet_longest(void **state)
{
    struct world *w = *state;
    for (uint64_t i = 0; i <= LP_SESSIONS_MAX; i++)
        mail_in(w, (struct lp_mail){.kind = LP_MAIL_OPENED, .key = {1, i}});
    assert_int_equal(session_count(w), LP_SESSIONS_MAX);
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_ENDED, .key = {1, 0}});
    assert_int_equal(session_count(w), LP_SESSIONS_MAX);
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_ENDED, .key = {1, 1}});
    assert_int_equal(session_count(w), LP_SESSIONS_MAX - 1);
}

/* Half an hour of silence ends many records; their end must not make one event long. */
static void quiet_records_go_some_at_a_time(void **state)
{
    struct world *w = *state;
    enum { MANY = 1500 };
    for (uint64_t i = 0; i < MANY; i++)
        mail_in(w, (struct lp_mail){.kind = LP_MAIL_OPENED, .key = {1, i}});
    pass_time(w, (uint64_t)LP_SESSION_IDLE_S * SECOND_US);
    assert_in_range(session_count(w), 1, MANY - 1);
    pass_time(w, SECOND_US);
    assert_int_equal(session_count(w), 0);
}

static void closed_streams_are_remembered_up_to_a_number(void **state)
{
    struct world *w = *state;
    for (uint64_t i = 0; i <= LP_CLOSED_MAX; i++)
        mail_in(w, (struct lp_mail){.kind = LP_MAIL_CLOSED, .key = {0, i + 1}});
    assert_false(lp_home_is_closed(w->engine, (struct lp_key){0, 1}));
    assert_true(lp_home_is_closed(w->engine, (struct lp_key){0, 2}));
    assert_true(lp_home_is_closed(w->engine, (struct lp_key){0, LP_CLOSED_MAX + 1}));
}

/* An engine whose mailbox was full may hear of an end without a beginning. */
static void a_count_is_never_below_nothing(void **state)
{
    struct world *w = *state;
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_COUNT, .delta = -1});
    assert_int_equal(session_count(w), 0);
}

static struct lp_exchange *only_exchange(struct world *w)
{
    uint32_t cursor = 0;
    lp_id id;
    struct lp_exchange *x = lp_slab_next(&w->engine->exchanges, &cursor, &id);
    assert_non_null(x);
    return x;
}

/* A second stream is tried again once its home says that the first is closed; that it says so
 * twice starts nothing a second time. */
static void a_home_that_answers_twice_changes_nothing(void **state)
{
    struct world *w = *state;
    open_session(w);
    request(w, "GET /mcp", w->ticket, "");
    answer_with(w, "409 Conflict", "", "one is open");
    assert_int_equal(w->written_len[CLIENT], 0);
    w->connect_result = REPLICA_2;
    pass_time(w, SECOND_US);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    size_t asked = w->written_len[REPLICA_2];
    assert_true(has(w, REPLICA_2, "GET /mcp HTTP/1.1\r\n"));
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_YIELDED, .exchange = only_exchange(w)->id});
    pass_time(w, SECOND_US);
    assert_int_equal(w->written_len[REPLICA_2], asked);
    assert_int_equal(w->connects, 2);
    read_text(w, REPLICA_2, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    assert_true(has(w, CLIENT, "HTTP/1.1 200 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_again_if_nothing_of_it_was_handed_over),
        TEST(a_request_that_was_handed_over_is_not_sent_again),
        TEST(a_request_that_was_to_be_drained_is_not_sent_again),
        TEST(a_second_attempt_has_its_own_time),
        TEST(events_that_come_during_an_upload_are_passed_on),
        TEST(a_conflict_that_is_no_second_stream_is_passed_on),
        TEST(an_error_that_the_client_answers_has_no_id_to_echo),
        TEST(a_refused_initialize_is_passed_on),
        TEST(a_refused_preflight_is_passed_on),
        TEST(a_refused_modern_request_is_passed_on),
        TEST(a_server_with_sessions_is_told_of_to_a_modern_client),
        TEST(a_server_without_ids_refuses_in_its_own_words),
        TEST(a_conflict_that_is_too_long_to_be_understood_is_passed_on),
        TEST(a_conflict_may_be_configured_to_mean_a_lost_session),
        TEST(a_long_answer_of_a_lost_session_is_not_waited_for),
        TEST(a_delete_that_is_refused_ends_no_session),
        TEST(an_id_with_a_blank_is_ended_where_it_came_from),
        TEST(an_id_that_is_not_ascii_is_ended_and_its_answer_read_within_a_bound),
        TEST(a_head_says_over_what_and_for_whom_it_came),
        TEST(only_a_sound_trace_goes_on),
        TEST(an_endpoint_is_announced_to_a_client_that_named_no_host),
        TEST(a_message_address_says_what_it_takes),
        TEST(what_may_be_an_endpoint_is_held_to_a_bound),
        TEST(a_full_home_forgets_who_was_quiet_longest),
        TEST(quiet_records_go_some_at_a_time),
        TEST(closed_streams_are_remembered_up_to_a_number),
        TEST(a_count_is_never_below_nothing),
        TEST(a_home_that_answers_twice_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
