/* The cookies of replicas, kept by the gateway for a session (gate/cookies.c; requirements [C1] to
 * [C6], [G3]): what the client sees, what the replica gets, and who knows it. */
#include "engine_harness.h"

static int setup_jar(void **state)
{
    struct world *w = new_world(1);
    w->server.cookie_jar = true;
    *state = w;
    return 0;
}

#define JAR_TEST(name) cmocka_unit_test_setup_teardown(name, setup_jar, teardown)

static const char INITIALIZE[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}";
static const char LIST[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";

/* Keeps the first line that begins with `field` among what the client got. */
static void keep_ticket(struct world *w)
{
    static const char FIELD[] = "mcp-session-id: ";
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    size_t at = lp_span_search(all, lp_span_str(FIELD));
    assert_true(at < all.len);
    struct lp_span line = lp_span_from(all, at);
    line.len = lp_span_search(line, LP_SPAN("\r\n")) + 2;
    memcpy(w->ticket, line.ptr, line.len);
    w->ticket[line.len] = '\0';
}

/* A session whose first answer has these fields. Its replica connection is kept. */
static void open_with(struct world *w, const char *fields)
{
    char all[4096];
    snprintf(all, sizeof all, "Mcp-Session-Id: u1\r\n%s", fields);
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "", INITIALIZE);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", all, "{}");
    keep_ticket(w);
}

static void send_with(struct world *w, const char *line, const char *fields, const char *body)
{
    char all[4096];
    snprintf(all, sizeof all, "%s%s", w->ticket, fields);
    request(w, line, all, body);
}

static void ask_list(struct world *w, const char *fields)
{
    send_with(w, "POST /mcp", fields, LIST);
}

/* The one Cookie line of the newest request to the replica; NULL: there is none. */
static void check_cookie(struct world *w, const char *expected)
{
    struct lp_span all = lp_span(w->written[REPLICA], w->written_len[REPLICA]);
    assert_true(all.len > 0);
    size_t count = 0;
    while (all.len) {
        size_t at = lp_span_search(all, LP_SPAN("\r\n"));
        struct lp_span line = lp_span(all.ptr, at);
        if (line.len > 7 && lp_span_ieq(lp_span(line.ptr, 7), LP_SPAN("cookie:"))) {
            struct lp_span value = lp_span_trim(lp_span_from(line, 7));
            if (!expected || !lp_span_eq(value, lp_span_str(expected)))
                fail_msg("\"%.*s\" instead of \"%s\"", (int)value.len, value.ptr,
                    expected ? expected : "none");
            count++;
        }
        all = lp_span_from(all, at < all.len ? at + 2 : at);
    }
    assert_int_equal(count, expected ? 1 : 0);
}

/* --- off -------------------------------------------------------------------------------------- */

/* [C5]: cookies are fields like any other, both ways. */
static void off_means_untouched(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=a; Path=/\r\n");
    assert_true(has(w, CLIENT, "Set-Cookie: LB=a; Path=/\r\n"));
    ask_list(w, "");
    check_cookie(w, NULL);
    answer_with(w, "200 OK", "Set-Cookie: LB=b\r\n", "{}");
    assert_true(has(w, CLIENT, "Set-Cookie: LB=b\r\n"));
    ask_list(w, "Cookie:  k=v; ; LB=c\r\n");
    check_cookie(w, "k=v; ; LB=c");
}

/* --- on --------------------------------------------------------------------------------------- */

static void the_first_answers_cookie_goes_with_all_that_follows(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=a; Path=/; HttpOnly\r\n");
    assert_false(has(w, CLIENT, "ookie"));
    ask_list(w, "");
    check_cookie(w, "LB=a");
    answer_with(w, "200 OK", "", "{}");
    send_with(w, "GET /mcp", "", "");
    check_cookie(w, "LB=a");
    answer_with(w, "405 No", "", "");
    send_with(w, "DELETE /mcp", "", "");
    check_cookie(w, "LB=a");
    answer_with(w, "200 OK", "", "");
}

static void a_clients_own_cookies_are_merged(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=a\r\nset-cookie: x=1\r\n");
    ask_list(w, "Cookie: k=v; LB=mine\r\nCookie: l=w\r\n");
    check_cookie(w, "k=v; l=w; LB=a; x=1");
    assert_true(has(w, REPLICA, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"));
}

/* COO-04: from every answer, and no request carries two. */
static void every_answer_renews_it(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=1\r\n");
    send_with(w, "POST /mcp", "", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    check_cookie(w, "LB=1");
    answer_with(w, "202 Accepted", "Set-Cookie: LB=2\r\n", "");
    send_with(w, "GET /mcp", "", "");
    check_cookie(w, "LB=2");
    answer_with(w, "405 No", "Set-Cookie: LB=3\r\n", "");
    assert_false(has(w, CLIENT, "ookie"));
    ask_list(w, "");
    check_cookie(w, "LB=3");
    answer_with(w, "404 No", "Set-Cookie: LB=4\r\n", "{\"error\":{\"code\":-32601}}");
    ask_list(w, "");
    check_cookie(w, "LB=4");
    answer_with(w, "200 OK", "Set-Cookie: LB=; Max-Age=0\r\n", "{}");
    ask_list(w, "");
    check_cookie(w, NULL);
}

/* An event stream's head counts before its first event. */
static void a_streams_head_renews_it(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=1\r\n");
    ask_list(w, "");
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: LB=2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    assert_true(has(w, CLIENT, "text/event-stream"));
    assert_false(has(w, CLIENT, "ookie"));
    w->connect_result = REPLICA_2;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT_2};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.8:1"), .unix_uid = -1};
    tell(w, event);
    char text[4096];
    snprintf(text, sizeof text, "DELETE /mcp HTTP/1.1\r\nHost: a\r\n%s\r\n", w->ticket);
    read_text(w, CLIENT_2, text);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "ookie: LB=2\r\n"));
}

/* A stream that takes the place of an older one is asked for again, with what the 409 set. */
static void a_conflict_renews_it(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=1\r\n");
    send_with(w, "GET /mcp", "Cookie: k=v\r\n", "");
    check_cookie(w, "k=v; LB=1");
    answer_with(w, "409 Conflict", "Set-Cookie: LB=2\r\n", "{\"error\":\"only one\"}");
    w->written_len[REPLICA] = 0;
    pass_time(w, SECOND_US);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, "k=v; LB=2");
    read_text(w, REPLICA, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    assert_true(has(w, CLIENT, "text/event-stream"));
}

static void secure_over_http_is_dropped_and_named(void **state)
{
    struct world *w = *state;
    w->conf.access_log = false;
    w->conf.log_level = LP_LOG_WARN;
    open_with(w, "Set-Cookie: AWSALB=abc\r\nSet-Cookie: AWSALBCORS=s3cret; Secure\r\n");
    assert_non_null(
        strstr(w->log, "server default: the cookie AWSALBCORS of replica r was dropped"));
    assert_null(strstr(w->log, "s3cret"));
    ask_list(w, "");
    check_cookie(w, "AWSALB=abc");
    /* A server that repeats it with every answer does not fill the log. */
    w->log[0] = '\0';
    answer_with(w, "200 OK", "Set-Cookie: __Host-x=s3cret\r\n", "{}");
    assert_int_equal(w->log[0], '\0');
    pass_time(w, SECOND_US);
    ask_list(w, "");
    answer_with(w, "200 OK", "Set-Cookie: __Host-x=s3cret\r\n", "{}");
    assert_non_null(strstr(w->log, "the cookie __Host-x of replica r was dropped"));
}

/* What no session has, no session keeps: requests without one get no cookie and leave none. */
static void without_a_session_nothing_is_kept(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "Cookie: k=v\r\n", LIST);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, "k=v");
    answer_with(w, "200 OK", "Set-Cookie: LB=a\r\n", "{}");
    assert_false(has(w, CLIENT, "ookie"));
    request(w, "POST /mcp", "", LIST);
    check_cookie(w, NULL);
}

static void two_sessions_share_nothing(void **state)
{
    struct world *w = *state;
    char first[LP_TICKET_TEXT_MAX];
    open_with(w, "Set-Cookie: LB=a\r\n");
    memcpy(first, w->ticket, sizeof first);
    request(w, "POST /mcp", "", INITIALIZE);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, NULL);
    answer_with(w, "200 OK", "Mcp-Session-Id: u2\r\nSet-Cookie: LB=b\r\n", "{}");
    keep_ticket(w);
    ask_list(w, "");
    check_cookie(w, "LB=b");
    answer_with(w, "200 OK", "Set-Cookie: LB=c\r\n", "{}");
    memcpy(w->ticket, first, sizeof first);
    ask_list(w, "");
    check_cookie(w, "LB=a");
}

/* A cookie's end counts wherever it is kept. */
static void what_runs_out_is_not_sent(void **state)
{
    struct world *w = *state;
    open_with(w,
        "Set-Cookie: a=1; Max-Age=60\r\nSet-Cookie: b=2\r\nSet-Cookie: c=3; "
        "Max-Age=0\r\n");
    ask_list(w, "");
    check_cookie(w, "a=1; b=2");
    answer_with(w, "200 OK", "Set-Cookie: d=4; Max-Age=60\r\n", "{}");
    char text[4096];
    snprintf(text, sizeof text, "DELETE /mcp HTTP/1.1\r\nHost: a\r\n%s\r\n", w->ticket);
    w->written_len[REPLICA] = 0;
    struct lp_event later = {.kind = LP_EV_READ,
        .conn = CLIENT,
        .u.bytes = lp_span_str(text),
        .mono_us = ++w->now_us,
        .wall_ms = 1800000060000};
    lp_engine_event(w->engine, &later);
    check_cookie(w, "b=2");
}

/* --- the ticket ------------------------------------------------------------------------------- */

/* The same client at another gateway with the same key, or at this one after a restart. */
static void move_to_another_gateway(struct world *w)
{
    lp_engine_free(w->engine);
    struct lp_engine_args args = {.shell = &w->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = 1800000000000};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    accept_client(w, false, "192.0.2.7:1");
    w->written_len[REPLICA] = 0;
}

/* AFF-05, second test. */
static void the_ticket_takes_it_along(void **state)
{
    struct world *w = *state;
    open_with(w, "Set-Cookie: LB=a; Max-Age=3600\r\nSet-Cookie: x=1\r\n");
    move_to_another_gateway(w);
    ask_list(w, "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, "LB=a; x=1");
    /* There it is renewed on the ground of what the ticket says. */
    answer_with(w, "200 OK", "Set-Cookie: x=2\r\n", "{}");
    ask_list(w, "");
    check_cookie(w, "LB=a; x=2");
    answer_with(w, "200 OK", "Set-Cookie: LB=; Max-Age=0\r\n", "{}");
    ask_list(w, "");
    check_cookie(w, "x=2");
    assert_int_equal(session_count(w), 1);
}

/* Cookies of `bytes` bytes name, "=" and value together. */
static void open_with_long_cookie(struct world *w, size_t bytes)
{
    char field[2048];
    char value[2048];
    memset(value, 'v', sizeof value);
    snprintf(field, sizeof field, "Set-Cookie: L=%.*s\r\n", (int)(bytes - 2), value);
    open_with(w, field);
}

static bool has_sent(const struct world *w, size_t bytes)
{
    char cookie[2048] = "ookie: L=";
    memset(cookie + strlen(cookie), 'v', bytes - 2);
    return has(w, REPLICA, cookie);
}

static void what_is_too_long_for_a_ticket_stays_here(void **state)
{
    struct world *w = *state;
    w->conf.access_log = false;
    w->conf.log_level = LP_LOG_WARN;
    enum { LONGEST = LP_TICKET_COOKIES_MAX - LP_JAR_ENTRY_BYTES + 1 }; /* the "=" is not packed */
    open_with_long_cookie(w, LONGEST);
    assert_int_equal(w->log[0], '\0');
    assert_true(strlen(w->ticket) < 1024 + 20);
    move_to_another_gateway(w);
    ask_list(w, "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(has_sent(w, LONGEST));

    move_to_another_gateway(w);
    open_with_long_cookie(w, LONGEST + 1);
    assert_non_null(strstr(w->log, "take 513 bytes, too many for its id"));
    assert_null(strstr(w->log, "vvv"));
    ask_list(w, "");
    assert_true(has_sent(w, LONGEST + 1));
    move_to_another_gateway(w);
    ask_list(w, "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, NULL);
}

/* Together with a long upstream id they would be over 1,024. */
static void a_long_id_leaves_less_room(void **state)
{
    struct world *w = *state;
    char fields[2048];
    w->conf.access_log = false;
    w->conf.log_level = LP_LOG_WARN;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "", INITIALIZE);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    snprintf(fields, sizeof fields, "Mcp-Session-Id: %0400d\r\nSet-Cookie: L=%0400d\r\n", 1, 2);
    answer_with(w, "200 OK", fields, "{}");
    keep_ticket(w);
    assert_non_null(strstr(w->log, "too many for its id"));
    ask_list(w, "");
    assert_true(has(w, REPLICA, "ookie: L=000"));
}

/* A session that cannot be used is deleted where it is. */
static void an_unusable_session_is_deleted_with_its_cookie(void **state)
{
    struct world *w = *state;
    char fields[2048];
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "", INITIALIZE);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    snprintf(fields, sizeof fields, "Mcp-Session-Id: %0600d\r\nSet-Cookie: LB=a\r\n", 1);
    w->connect_result = REPLICA_2;
    read_text(w, REPLICA, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n");
    read_text(w, REPLICA, fields);
    read_text(w, REPLICA, "\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, CLIENT, "HTTP/1.1 502 "));
    assert_true(has(w, REPLICA_2, "DELETE /mcp "));
    assert_true(has(w, REPLICA_2, "ookie: LB=a\r\n"));
}

/* --- old SSE ---------------------------------------------------------------------------------- */

/* COO-02: the stream's cookie goes with the POSTs. */
static void old_sse_shares_one_jar(void **state)
{
    struct world *w = *state;
    accept_client(w, false, "192.0.2.7:1");
    request(w, "GET /sse", "", "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: AWSALB=abc; Path=/\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    read_text(w, REPLICA, "2d\r\nevent: endpoint\ndata: /messages?sessionId=1\n\n\r\n");
    assert_false(has(w, CLIENT, "ookie"));
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    size_t at = lp_span_search(all, LP_SPAN("data: "));
    assert_true(at < all.len);
    struct lp_span url = lp_span_from(all, at + 6);
    url.len = lp_span_find(url, '\n');
    char text[2048];
    snprintf(text, sizeof text,
        "POST %.*s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: "
        "%zu\r\n\r\n%s",
        (int)url.len, url.ptr, strlen(LIST), LIST);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT_2};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.8:1"), .unix_uid = -1};
    tell(w, event);
    w->connect_result = REPLICA_2;
    read_text(w, CLIENT_2, text);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "POST /messages?sessionId=1 "));
    assert_true(has(w, REPLICA_2, "ookie: AWSALB=abc\r\n"));
    read_text(w, REPLICA_2,
        "HTTP/1.1 202 Accepted\r\nSet-Cookie: AWSALB=def\r\nContent-Length: 0\r\n\r\n");
    w->written_len[REPLICA_2] = 0;
    read_text(w, CLIENT_2, text);
    assert_true(has(w, REPLICA_2, "ookie: AWSALB=def\r\n"));
}

/* Neither with nor without cookies can such an address be sealed. */
static void an_address_too_long_for_a_ticket_ends_the_stream(void **state)
{
    struct world *w = *state;
    char event[1024];
    accept_client(w, false, "192.0.2.7:1");
    request(w, "GET /sse", "", "");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: LB=a\r\n\r\n");
    snprintf(event, sizeof event, "event: endpoint\ndata: /messages?id=%0600d\n\n", 1);
    read_text(w, REPLICA, event);
    assert_false(has(w, CLIENT, "data: "));
    assert_int_equal(w->closes[CLIENT], 1);
    assert_non_null(strstr(w->log, "endpoint_refused"));
}

/* --- a home elsewhere ------------------------------------------------------------------------- */

static const struct lp_mail *newest_mail(const struct world *w)
{
    assert_true(w->mail_count > 0);
    return &w->mails[(w->mail_count - 1) % MAILS_MAX];
}

/* A session whose home is the other of two engines. */
static void open_away(struct world *w, const char *fields)
{
    for (int i = 0; i < 64; i++) {
        uint32_t before = w->mail_count;
        open_with(w, fields);
        for (uint32_t m = before; m < w->mail_count; m++)
            if (w->mails[m % MAILS_MAX].kind == LP_MAIL_OPENED)
                return;
        tell_kind(w, LP_EV_BROKEN, CLIENT);
        tell_kind(w, LP_EV_BROKEN, REPLICA);
    }
    fail_msg("no session has its home elsewhere");
}

static void letter(struct world *w, const struct lp_mail *mail, struct lp_span text)
{
    char bytes[sizeof *mail + 256];
    memcpy(bytes, mail, sizeof *mail);
    memcpy(bytes + sizeof *mail, text.ptr, text.len);
    struct lp_event event = {.kind = LP_EV_MAIL};
    event.u.mail.bytes = lp_span(bytes, sizeof *mail + text.len);
    tell(w, event);
}

static struct lp_mail asked(const struct world *w)
{
    const struct lp_mail *ask = newest_mail(w);
    assert_int_equal(ask->kind, LP_MAIL_ASK_COOKIES);
    return (struct lp_mail){.kind = LP_MAIL_COOKIES_ARE, .exchange = ask->exchange, .from = 1};
}

static int setup_two(void **state)
{
    struct world *w = new_world(2);
    w->server.cookie_jar = true;
    *state = w;
    return 0;
}

#define TWO_TEST(name) cmocka_unit_test_setup_teardown(name, setup_two, teardown)

static void a_home_elsewhere_is_asked(void **state)
{
    struct world *w = *state;
    struct lp_buf packed;
    open_away(w, "Set-Cookie: LB=a\r\n");
    ask_list(w, "");
    assert_int_equal(w->written_len[REPLICA], 0);
    /* It knows better than the ticket. */
    struct lp_mail word = asked(w);
    word.delta = 1;
    lp_buf_init(&packed, 256);
    struct lp_jar_entry entry = {LP_SPAN("LB"), LP_SPAN("b"), LP_JAR_KEEPS};
    assert_int_equal(lp_jar_pack(&packed, &entry), LP_OK);
    letter(w, &word, lp_buf_span(&packed));
    check_cookie(w, "LB=b");
    letter(w, &word, lp_buf_span(&packed)); /* nobody waits for it any more */
    lp_buf_release(&packed);
    /* A change goes there, after what the ticket says. */
    uint32_t before = w->mail_count;
    answer_with(w, "200 OK", "Set-Cookie: LB=c\r\n", "{}");
    assert_int_equal(w->mail_count - before, 2);
    assert_int_equal(w->mails[before % MAILS_MAX].kind, LP_MAIL_BASE_COOKIES);
    assert_int_equal(newest_mail(w)->kind, LP_MAIL_COOKIES);
    /* It knows nothing: the ticket's are right. */
    ask_list(w, "");
    word = asked(w);
    letter(w, &word, LP_SPAN(""));
    check_cookie(w, "LB=a");
    answer_with(w, "200 OK", "", "{}");
    /* It has an empty jar: they were removed. */
    ask_list(w, "Cookie: k=v\r\n");
    word = asked(w);
    word.delta = 1;
    letter(w, &word, LP_SPAN(""));
    check_cookie(w, "k=v");
}

/* The same with a home elsewhere: it is asked again, once for each try. */
static void a_conflict_asks_the_home_again(void **state)
{
    struct world *w = *state;
    open_away(w, "Set-Cookie: LB=a\r\n");
    send_with(w, "GET /mcp", "", "");
    struct lp_mail word = asked(w);
    letter(w, &word, LP_SPAN(""));
    check_cookie(w, "LB=a");
    answer_with(w, "409 Conflict", "", "{\"error\":\"only one\"}");
    assert_int_equal(newest_mail(w)->kind, LP_MAIL_EVICT);
    struct lp_mail yielded = {.kind = LP_MAIL_YIELDED, .exchange = newest_mail(w)->exchange};
    letter(w, &yielded, LP_SPAN(""));
    w->written_len[REPLICA] = 0;
    pass_time(w, SECOND_US / 10);
    word = asked(w);
    letter(w, &yielded, LP_SPAN("")); /* too late to count */
    assert_int_equal(w->written_len[REPLICA], 0);
    letter(w, &word, LP_SPAN(""));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    check_cookie(w, "LB=a");
}

static void a_home_that_is_silent_is_not_waited_for(void **state)
{
    struct world *w = *state;
    open_away(w, "Set-Cookie: LB=a\r\n");
    ask_list(w, "");
    (void)asked(w);
    assert_int_equal(w->written_len[REPLICA], 0);
    pass_time(w, SECOND_US);
    check_cookie(w, "LB=a");
}

static void who_leaves_while_the_home_is_asked_is_gone(void **state)
{
    struct world *w = *state;
    open_away(w, "Set-Cookie: LB=a\r\n");
    ask_list(w, "");
    struct lp_mail word = asked(w);
    tell_kind(w, LP_EV_BROKEN, CLIENT);
    letter(w, &word, LP_SPAN(""));
    assert_int_equal(w->written_len[REPLICA], 0);
    /* Who only ends its side still waits for an answer, but not for a stream. */
    accept_client(w, false, "192.0.2.7:1");
    ask_list(w, "");
    word = asked(w);
    tell_kind(w, LP_EV_EOF, CLIENT);
    letter(w, &word, LP_SPAN(""));
    check_cookie(w, "LB=a");
    answer_with(w, "200 OK", "", "{}");
    accept_client(w, false, "192.0.2.7:1");
    send_with(w, "GET /mcp", "", "");
    word = asked(w);
    tell_kind(w, LP_EV_EOF, CLIENT);
    letter(w, &word, LP_SPAN(""));
    assert_int_equal(w->written_len[REPLICA], 0);
}

/* As the home: of changes for a session it had never heard of, and of questions. */
static void the_home_answers_and_learns(void **state)
{
    struct world *w = *state;
    struct lp_buf packed;
    struct lp_key key = {.hi = 2, .lo = 1};
    lp_buf_init(&packed, 256);
    struct lp_jar_entry entry = {LP_SPAN("LB"), LP_SPAN("a"), LP_JAR_KEEPS};
    assert_int_equal(lp_jar_pack(&packed, &entry), LP_OK);
    struct lp_mail ask = {.kind = LP_MAIL_ASK_COOKIES, .from = 1, .key = key, .exchange = 77};
    letter(w, &ask, LP_SPAN(""));
    assert_int_equal(newest_mail(w)->kind, LP_MAIL_COOKIES_ARE);
    assert_int_equal(newest_mail(w)->exchange, 77);
    assert_int_equal(newest_mail(w)->delta, 0);
    struct lp_mail base = {.kind = LP_MAIL_BASE_COOKIES, .from = 1, .key = key};
    letter(w, &base, lp_buf_span(&packed));
    letter(w, &ask, LP_SPAN(""));
    assert_int_equal(newest_mail(w)->delta, 1);
    assert_int_equal(newest_mail(w)->text.len, packed.len);
    /* A base for a session that has a jar is no news; a removal empties the jar and leaves it. */
    struct lp_mail changes = {.kind = LP_MAIL_COOKIES, .from = 1, .key = key};
    lp_buf_clear(&packed);
    entry.expires_ms = LP_JAR_GONE;
    assert_int_equal(lp_jar_pack(&packed, &entry), LP_OK);
    letter(w, &changes, lp_buf_span(&packed));
    lp_buf_clear(&packed);
    entry.expires_ms = LP_JAR_KEEPS;
    assert_int_equal(lp_jar_pack(&packed, &entry), LP_OK);
    letter(w, &base, lp_buf_span(&packed));
    letter(w, &ask, LP_SPAN(""));
    assert_int_equal(newest_mail(w)->delta, 1);
    assert_int_equal(newest_mail(w)->text.len, 0);
    lp_buf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(off_means_untouched),
        JAR_TEST(the_first_answers_cookie_goes_with_all_that_follows),
        JAR_TEST(a_clients_own_cookies_are_merged),
        JAR_TEST(every_answer_renews_it),
        JAR_TEST(a_streams_head_renews_it),
        JAR_TEST(a_conflict_renews_it),
        JAR_TEST(secure_over_http_is_dropped_and_named),
        JAR_TEST(without_a_session_nothing_is_kept),
        JAR_TEST(two_sessions_share_nothing),
        JAR_TEST(what_runs_out_is_not_sent),
        JAR_TEST(the_ticket_takes_it_along),
        JAR_TEST(what_is_too_long_for_a_ticket_stays_here),
        JAR_TEST(a_long_id_leaves_less_room),
        JAR_TEST(an_unusable_session_is_deleted_with_its_cookie),
        JAR_TEST(old_sse_shares_one_jar),
        JAR_TEST(an_address_too_long_for_a_ticket_ends_the_stream),
        TWO_TEST(a_home_elsewhere_is_asked),
        TWO_TEST(a_conflict_asks_the_home_again),
        TWO_TEST(a_home_that_is_silent_is_not_waited_for),
        TWO_TEST(who_leaves_while_the_home_is_asked_is_gone),
        TWO_TEST(the_home_answers_and_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
