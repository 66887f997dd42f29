/* The engine's frame where no simulated day leads: what is asked of it from outside, the admin
 * listener without an owner, events of later releases, odd requests. One engine and a scripted
 * shell. */
#include "engine_harness.h"

static void nothing_is_freed_twice_and_an_admin_needs_an_owner(void **state)
{
    struct world *w = *state;
    lp_engine_free(NULL);
    accept_client(w, true, "127.0.0.1:9");
    assert_int_equal(w->closes[CLIENT], 1);
    assert_int_equal(lp_engine_links(w->engine)->client_count, 0);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_CONNECTIONS_ACCEPTED], 0);
}

static uint64_t metric(const struct world *w, enum lp_metric which)
{
    return lp_engine_metrics(w->engine)->cells[which];
}

static void ignore_close(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why;
}

static const struct lp_message_ops NO_OPS = {.closed = ignore_close};

/* Clients are counted, who looks at the counters is not. */
static void connections_of_the_admin_are_no_clients(void **state)
{
    struct world *w = *state;
    struct world *other = calloc(1, sizeof *other);
    *other = *w;
    other->shell.ctx = other;
    other->conf.conn_max = 0; /* one is let in all the same: the share is rounded up */
    struct lp_engine_args args = {.shell = &other->shell,
        .count = 1,
        .conf = &other->conf,
        .keyring = &other->ring,
        .admin_ops = &NO_OPS};
    assert_int_equal(lp_engine_new(&args, &other->engine), LP_OK);
    accept_client(other, true, "127.0.0.1:9");
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_ACCEPTED), 0);
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_OPEN), 0);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = REPLICA};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.7:1"), .unix_uid = -1};
    tell(other, event);
    assert_int_equal(other->closes[REPLICA], 0);
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_ACCEPTED), 1);
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_OPEN), 1);
    tell_kind(other, LP_EV_BROKEN, CLIENT);
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_OPEN), 1);
    tell_kind(other, LP_EV_BROKEN, REPLICA);
    assert_int_equal(metric(other, LP_METRIC_CONNECTIONS_OPEN), 0);
    lp_engine_free(other->engine);
    free(other);
}

static void it_is_ready_until_its_last_replica_is_gone(void **state)
{
    struct world *w = *state;
    struct lp_metrics_replica row;
    assert_true(lp_engine_is_ready(w->engine));
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT,
        LP_SPAN("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n"
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"));
    for (int i = 0; i < 4; i++)
        tell(w,
            (struct lp_event){
                .kind = LP_EV_CONNECT_FAILED, .conn = REPLICA, .u.error = LP_EREFUSED});
    assert_int_equal(lp_engine_replicas(w->engine, &row, 1), 1);
    assert_true(lp_span_eq(row.state, LP_SPAN("gone")));
    assert_int_equal(lp_engine_replicas(w->engine, NULL, 0), 1);
    assert_false(lp_engine_is_ready(w->engine));
    assert_true(has(w, CLIENT, "HTTP/1.1 503 "));
    assert_true(has(w, CLIENT, "retry-after: 1\r\n"));
}

/* Each change of a replica's state is one line that says why. */
static void a_change_of_state_says_why(void **state)
{
    struct world *w = *state;
    static const struct {
        int error;
        const char *said;
    } STEPS[] = {
        {LP_ENOT_FOUND, "replica r is in doubt: its name was not found (server default, "},
        {LP_EREFUSED, NULL},
        {LP_EREFUSED, "replica r is gone: connection refused (server default, incarnation 2)"},
    };
    w->conf.log_level = LP_LOG_INFO;
    w->conf.access_log = false;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        struct lp_event event = {.kind = LP_EV_CONNECT_FAILED, .conn = REPLICA};
        event.u.error = STEPS[i].error;
        w->log[0] = '\0';
        tell(w, event);
        if (STEPS[i].said)
            assert_memory_equal(w->log, STEPS[i].said, strlen(STEPS[i].said));
        else
            assert_string_equal(w->log, "");
    }
}

/* Want of something of our own is no state of the replica; it is said at most once a second. */
static void a_connection_for_which_something_is_missing_here_is_said_once(void **state)
{
    struct world *w = *state;
    w->conf.access_log = false;
    w->connect_result = LP_ELIMIT;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\n\r\n"));
    const char *wanted = "cannot connect to replica r: no file descriptor, ";
    assert_memory_equal(w->log, wanted, strlen(wanted));
    w->log[0] = '\0';
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_string_equal(w->log, "");
}

/* What it passes on is signed, and what comes back with its own signature goes no further. */
static void a_request_that_comes_back_is_refused(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT,
        LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\nVia: 1.0 fred, 1.1 limpet-00000000\r\n\r\n"));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    struct lp_span sent = lp_span(w->written[REPLICA], w->written_len[REPLICA]);
    assert_true(has(w, REPLICA, "Via: 1.0 fred, 1.1 limpet-00000000\r\n"));
    size_t at = lp_span_search(sent, LP_SPAN("\r\nvia: 1.1 limpet-"));
    assert_true(at < sent.len);
    struct lp_span own = lp_span(sent.ptr + at + 2, sizeof "via: 1.1 limpet-01234567" - 1);
    read_span(w, REPLICA, LP_SPAN("HTTP/1.1 204 x\r\n\r\n"));
    char again[256];
    int n = snprintf(again, sizeof again,
        "GET /mcp HTTP/1.1\r\nHost: a\r\nVia: 1.0 fred\r\n%.*s, 1.1 other\r\n\r\n", (int)own.len,
        own.ptr);
    read_span(w, CLIENT, lp_span(again, (size_t)n));
    assert_true(has(w, CLIENT, "HTTP/1.1 508 Loop Detected\r\n"));
    assert_true(has(w, CLIENT, "a replica's address leads to it"));
    assert_int_equal(lp_engine_metrics(w->engine)->reasons[LP_REASON_looped], 1);
}

static void no_descriptor_for_a_replica_is_said(void **state)
{
    struct world *w = *state;
    w->connect_result = LP_ELIMIT;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_true(has(w, CLIENT, "HTTP/1.1 503 "));
    assert_non_null(strstr(w->log, "(over_capacity)"));
}

static void a_connect_that_fails_here_says_nothing_of_the_replica(void **state)
{
    struct world *w = *state;
    struct lp_metrics_replica row;
    accept_client(w, false, "unix:");
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.0\r\n\r\n")); /* and no Host */
    tell(w, (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .conn = REPLICA, .u.error = LP_ELIMIT});
    assert_true(has(w, CLIENT, "HTTP/1.1 503 "));
    assert_int_equal(lp_engine_replicas(w->engine, &row, 1), 1);
    assert_true(lp_span_eq(row.state, LP_SPAN("up")));
}

/* What a peer's address becomes where the replica reads it. */
static void check_forwarded(struct world *w, const char *peer, const char *wanted)
{
    accept_client(w, false, peer);
    read_span(w, CLIENT, LP_SPAN("OPTIONS /mcp HTTP/1.1\r\nHost: a\r\n\r\n"));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has(w, REPLICA, wanted));
}

static void a_replica_learns_the_address_without_its_port(void **state)
{
    check_forwarded(*state, "[2001:db8::1]:80", "for=\"[2001:db8::1]\"");
}

static void an_address_of_no_known_form_is_unknown(void **state)
{
    check_forwarded(*state, "somewhere", "for=unknown");
}

static void a_target_that_is_too_long_is_refused(void **state)
{
    struct world *w = *state;
    enum { LONG = 8200 };
    char *text = malloc(LONG + 200);
    int n = snprintf(text, 60, "POST /sse?lp=x&pad=");
    memset(text + n, 'p', LONG);
    strcpy(text + n + LONG, " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, lp_span_str(text));
    free(text);
    assert_true(has(w, CLIENT, "HTTP/1.1 400 "));
    assert_non_null(strstr(w->log, "(bad_http)"));
}

static void a_method_that_is_not_known_learns_which_are(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, LP_SPAN("PUT /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"));
    assert_true(has(w, CLIENT, "HTTP/1.1 405 "));
    assert_true(has(w, CLIENT, "allow: GET, POST, DELETE\r\n"));
}

static void events_of_later_releases_change_nothing(void **state)
{
    struct world *w = *state;
    tell_kind(w, LP_EV_STORE_REPLY, 0);
    tell_kind(w, LP_EV_CONFIG, 0);
    assert_true(lp_engine_is_ready(w->engine));
    tell_kind(w, LP_EV_STOP, 0);
    tell_kind(w, LP_EV_STOP, 0);
    assert_true(w->stopped);
    assert_false(lp_engine_is_ready(w->engine));
    accept_client(w, false, "192.0.2.7:1");
    assert_int_equal(w->closes[CLIENT], 1);
}

static void a_server_that_is_not_reached_in_the_middle_of_a_stop_is_answered(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    read_span(w, CLIENT, LP_SPAN("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n"));
    tell_kind(w, LP_EV_STOP, 0);
    assert_non_null(strstr(w->log, "(stopping)"));
    assert_true(w->stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_freed_twice_and_an_admin_needs_an_owner),
        TEST(connections_of_the_admin_are_no_clients),
        TEST(it_is_ready_until_its_last_replica_is_gone),
        TEST(a_change_of_state_says_why),
        TEST(a_request_that_comes_back_is_refused),
        TEST(a_connection_for_which_something_is_missing_here_is_said_once),
        TEST(no_descriptor_for_a_replica_is_said),
        TEST(a_connect_that_fails_here_says_nothing_of_the_replica),
        TEST(a_replica_learns_the_address_without_its_port),
        TEST(an_address_of_no_known_form_is_unknown),
        TEST(a_target_that_is_too_long_is_refused),
        TEST(a_method_that_is_not_known_learns_which_are),
        TEST(events_of_later_releases_change_nothing),
        TEST(a_server_that_is_not_reached_in_the_middle_of_a_stop_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
