/* What comes too slowly or takes too much is ended, and what is merely large or held up by us is
 * not: one engine, a scripted shell and a clock that the tests turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "gate/engine.h"

enum {
    CLIENT = 1,
    CONNS = 8,  /* connections to replicas have the numbers between */
    SECOND = 6, /* another client */
    SECOND_US = 1000000,
    WRITTEN_MAX = 1 << 22,
    PIECE = 16384,
};

struct world {
    struct lp_shell shell;
    struct lp_keyring ring;
    struct lp_conf conf;
    struct lp_conf_server server;
    struct lp_conf_replica replica;
    struct lp_engine *engine;
    uint64_t now_us;
    uint64_t timer_us;
    char *written[CONNS];
    size_t written_len[CONNS];
    bool takes_nothing[CONNS];
    bool is_draining[CONNS];
    bool is_paused[CONNS];
    bool is_closed[CONNS];
    lp_id up; /* the last connection to the replica */
    bool is_connecting;
    char log[8192];
    char ticket[1200];
};

static void keep(struct world *w, lp_id conn, struct lp_span bytes)
{
    assert_true(w->written_len[conn] + bytes.len < WRITTEN_MAX);
    if (bytes.len)
        memcpy(w->written[conn] + w->written_len[conn], bytes.ptr, bytes.len);
    w->written_len[conn] += bytes.len;
}

static int64_t write_parts(struct world *w, const struct lp_action *action)
{
    size_t before = w->written_len[action->conn];
    for (uint32_t i = 0; i < action->u.write.count && !w->takes_nothing[action->conn]; i++)
        keep(w, action->conn, action->u.write.parts[i]);
    return (int64_t)(w->written_len[action->conn] - before);
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        assert_true(++w->up < SECOND);
        w->is_connecting = true;
        return w->up;
    case LP_ACT_WRITE:
        return write_parts(w, action);
    case LP_ACT_DRAIN:
        w->is_draining[action->conn] = true;
        return LP_OK;
    case LP_ACT_READ_ON:
    case LP_ACT_READ_OFF:
        w->is_paused[action->conn] = action->kind == LP_ACT_READ_OFF;
        return LP_OK;
    case LP_ACT_CLOSE:
        w->is_closed[action->conn] = true;
        return LP_OK;
    case LP_ACT_TIMER:
        w->timer_us = action->u.timer_at_us;
        return LP_OK;
    case LP_ACT_LOG:
        strncat(w->log, action->u.log.line.ptr, action->u.log.line.len);
        return LP_OK;
    default:
        return LP_OK;
    }
}

static void fill_conf(struct world *w)
{
    w->replica = (struct lp_conf_replica){.name = LP_SPAN("r"),
        .address = {.host = LP_SPAN("r.test"), .port = 1, .authority = LP_SPAN("r.test:1")},
        .path = LP_SPAN("/mcp"),
        .weight = 1};
    w->server = (struct lp_conf_server){.name = LP_SPAN("default"),
        .path = LP_SPAN("/mcp"),
        .replicas = &w->replica,
        .replica_count = 1,
        .gone_after_ms = 3000,
        .connect_ms = 2000,
        .first_byte_ms = 300000,
        .sse_post_ms = 10000,
        .stalled_ms = 60000,
        .ticket_age_ms = 1000000000,
        .body_max = 1 << 21};
    w->conf = (struct lp_conf){.threads = 1,
        .servers = &w->server,
        .server_count = 1,
        .access_log = true,
        .log_level = LP_LOG_WARN,
        .request_ms = 30000,
        .large_bodies_max = 1 << 20,
        .stop_ms = 1000,
        .conn_max = 10};
}

static void tell(struct world *w, struct lp_event event)
{
    event.mono_us = w->now_us;
    event.wall_ms = 1800000000000 + w->now_us / 1000;
    lp_engine_event(w->engine, &event);
    if (!w->is_connecting)
        return;
    w->is_connecting = false;
    event.kind = LP_EV_CONNECTED;
    event.conn = w->up;
    lp_engine_event(w->engine, &event);
}

/* Lets time pass as the shell does: it wakes the engine when the engine asked for it. */
static void wait_us(struct world *w, uint64_t us)
{
    uint64_t end_us = w->now_us + us;
    while (w->timer_us <= end_us) {
        w->now_us = w->timer_us > w->now_us ? w->timer_us : w->now_us;
        w->timer_us = UINT64_MAX;
        tell(w, (struct lp_event){.kind = LP_EV_TIMER});
    }
    w->now_us = end_us;
}

static void wait_s(struct world *w, uint32_t seconds)
{
    wait_us(w, (uint64_t)seconds * SECOND_US);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    uint32_t line;
    w->shell = (struct lp_shell){w, perform};
    w->now_us = SECOND_US;
    w->timer_us = UINT64_MAX;
    w->up = CLIENT;
    for (int i = 0; i < CONNS; i++)
        w->written[i] = calloc(1, WRITTEN_MAX);
    fill_conf(w);
    assert_int_equal(lp_keyring_parse(LP_SPAN("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"),
                         &w->ring, &line),
        LP_OK);
    struct lp_engine_args args = {.shell = &w->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = 1800000000000};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    lp_engine_free(w->engine);
    for (int i = 0; i < CONNS; i++)
        free(w->written[i]);
    free(w);
    return 0;
}

static void accept_on(struct world *w, lp_id conn)
{
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.7:1"), .unix_uid = -1};
    tell(w, event);
}

static void accept_client(struct world *w)
{
    accept_on(w, CLIENT);
}

static void read_span(struct world *w, lp_id conn, struct lp_span bytes)
{
    tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = bytes});
}

static void read_text(struct world *w, lp_id conn, const char *text)
{
    read_span(w, conn, lp_span_str(text));
}

/* `bytes` blanks: white space is good JSON at the end of a body. */
static void read_blanks(struct world *w, lp_id conn, size_t bytes)
{
    static char blanks[PIECE];
    memset(blanks, ' ', sizeof blanks);
    for (; bytes && !w->is_closed[conn]; bytes -= bytes < PIECE ? bytes : PIECE)
        read_span(w, conn, lp_span(blanks, bytes < PIECE ? bytes : PIECE));
}

/* The shell has handed over the slice it was given, and takes the rest at once. */
static void drain(struct world *w, lp_id conn)
{
    w->takes_nothing[conn] = false;
    while (w->is_draining[conn]) {
        w->is_draining[conn] = false;
        tell(w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
}

static bool has(const struct world *w, lp_id conn, const char *text)
{
    struct lp_span all = lp_span(w->written[conn], w->written_len[conn]);
    return lp_span_search(all, lp_span_str(text)) < all.len;
}

static uint64_t ended(const struct world *w, enum lp_reason reason)
{
    return lp_engine_metrics(w->engine)->reasons[reason];
}

static const char INITIALIZE[] = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 46\r\n\r\n"
                                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}";

/* A session, so that large bodies may stream; its connections are kept. */
static void open_session(struct world *w)
{
    static const struct lp_span NAME = {"mcp-session-id: ", 16};
    accept_client(w);
    read_text(w, CLIENT, INITIALIZE);
    read_text(w, w->up,
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: u1\r\nContent-Type: application/json\r\n"
        "Content-Length: 2\r\n\r\n{}");
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    size_t at = lp_span_search(all, NAME);
    assert_true(at < all.len);
    struct lp_span rest, id = lp_span_split(lp_span_from(all, at + NAME.len), '\r', &rest);
    assert_true(id.len < sizeof w->ticket);
    memcpy(w->ticket, id.ptr, id.len);
    w->written_len[CLIENT] = w->written_len[w->up] = 0;
    w->log[0] = 0;
}

/* The head of a request of the session, and the beginning of a ping as its body. */
static void begin_ping(struct world *w, size_t body_bytes)
{
    char text[2000];
    snprintf(text, sizeof text,
        "POST /mcp HTTP/1.1\r\nHost: a\r\nMcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n"
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}",
        w->ticket, body_bytes);
    read_text(w, CLIENT, text);
}

enum { PING_BYTES = 40 };

static void assert_cut_for_time(struct world *w)
{
    assert_true(has(w, CLIENT, "HTTP/1.1 408 "));
    assert_true(has(w, CLIENT, "connection: close\r\n") || has(w, CLIENT, "Connection: close\r\n"));
    assert_true(w->is_closed[CLIENT]);
    assert_int_equal(ended(w, LP_REASON_request_timeout), 1);
    assert_non_null(strstr(w->log, "(request_timeout)"));
}

/* --- a request that does not arrive --- */

static void a_head_that_drips_is_cut_at_its_limit(void **state)
{
    struct world *w = *state;
    accept_client(w);
    wait_s(w, 60); /* idle, which is another limit */
    read_text(w, CLIENT, "POST /mcp HTTP/1.1\r\nX-Drip: ");
    for (int i = 0; i < 29; i++) {
        wait_s(w, 1);
        read_text(w, CLIENT, "x");
        assert_false(w->is_closed[CLIENT]);
    }
    wait_s(w, 2);
    assert_cut_for_time(w);
}

static void the_limit_of_a_head_begins_anew_with_each_request(void **state)
{
    struct world *w = *state;
    accept_client(w);
    for (int i = 0; i < 3; i++) {
        read_text(w, CLIENT, "POST /mcp HTTP/1.1\r\n");
        wait_s(w, 29);
        read_text(w, CLIENT, "Host: a\r\nContent-Length: 1\r\n\r\n{");
        wait_s(w, 70);
    }
    assert_int_equal(ended(w, LP_REASON_bad_json), 3);
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 6); /* silent for 75 s since the last answer */
    assert_true(w->is_closed[CLIENT]);
    assert_int_equal(ended(w, LP_REASON_request_timeout), 0);
}

static void empty_lines_do_not_keep_a_connection(void **state)
{
    struct world *w = *state;
    accept_client(w);
    for (int i = 0; i < 2; i++) {
        wait_s(w, 30);
        read_text(w, CLIENT, "\r\n");
    }
    wait_s(w, 16);
    assert_true(w->is_closed[CLIENT]);
}

static void a_body_that_drips_is_cut(void **state)
{
    struct world *w = *state;
    open_session(w);
    begin_ping(w, 1000);
    for (int i = 0; i < 29; i++) {
        wait_s(w, 1);
        read_text(w, CLIENT, " ");
        assert_false(w->is_closed[CLIENT]);
    }
    wait_s(w, 2);
    assert_cut_for_time(w);
    assert_int_equal(w->written_len[w->up], 0);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
}

static void a_chunked_body_is_measured_by_what_it_carries(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, CLIENT, "POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 29; i++) {
        char line[1200] = "1;";
        memset(line + 2, 'x', 1100);
        strcpy(line + 1102, "\r\n \r\n");
        wait_s(w, 1);
        read_text(w, CLIENT, line);
    }
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 2);
    assert_cut_for_time(w);
}

static void a_slow_body_of_any_length_gets_through(void **state)
{
    struct world *w = *state;
    enum { SECONDS = 600, RATE = 1100 };
    open_session(w);
    begin_ping(w, PING_BYTES + SECONDS * RATE);
    for (int i = 0; i < SECONDS; i++) {
        wait_s(w, 1);
        read_blanks(w, CLIENT, RATE);
        assert_false(w->is_closed[CLIENT]);
    }
    read_text(w, w->up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(ended(w, LP_REASON_answered), 2);
    assert_true(w->written_len[w->up] > SECONDS * RATE);
}

static void a_large_body_that_slows_down_is_cut_too(void **state)
{
    struct world *w = *state;
    enum { MEGABYTE = 1 << 20 };
    open_session(w);
    begin_ping(w, 2 * MEGABYTE);
    read_blanks(w, CLIENT, MEGABYTE);
    assert_true(w->written_len[w->up] > MEGABYTE);
    for (int i = 0; i < 61 && !w->is_closed[CLIENT]; i++) {
        wait_s(w, 1);
        read_blanks(w, CLIENT, 1000);
    }
    assert_cut_for_time(w);
    assert_true(w->is_closed[w->up]);
}

/* The replica takes nothing, so the client is not read: that is not the client's fault. */
static void time_in_which_we_do_not_read_does_not_count(void **state)
{
    struct world *w = *state;
    enum { LONG = 1 << 20 };
    open_session(w);
    begin_ping(w, LONG);
    read_blanks(w, CLIENT, 100000);
    wait_s(w, 20);
    w->takes_nothing[w->up] = true;
    while (!w->is_paused[CLIENT]) /* and no further, as what waits would count later */
        read_blanks(w, CLIENT, 10000);
    wait_s(w, 50);
    assert_false(w->is_closed[CLIENT]);
    drain(w, w->up);
    assert_false(w->is_paused[CLIENT]);
    wait_s(w, 29);
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 1);
    assert_cut_for_time(w);
}

/* --- a replica that stands still --- */

static void ask(struct world *w)
{
    begin_ping(w, PING_BYTES);
}

static void assert_answer_was_cut(struct world *w)
{
    assert_true(w->is_closed[CLIENT]);
    assert_true(w->is_closed[w->up]);
    assert_int_equal(ended(w, LP_REASON_upstream_stalled), 1);
    assert_non_null(strstr(w->log, "(upstream_stalled)"));
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
}

static void an_answer_that_stops_half_way_is_cut(void **state)
{
    struct world *w = *state;
    open_session(w);
    ask(w);
    wait_s(w, 200);
    read_text(w, w->up,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{");
    for (int i = 0; i < 3; i++) {
        wait_s(w, 290);
        read_text(w, w->up, " ");
        assert_false(w->is_closed[CLIENT]);
    }
    wait_s(w, 299);
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 1);
    assert_true(has(w, CLIENT, "HTTP/1.1 200 "));
    assert_answer_was_cut(w);
}

static void one_that_is_judged_is_answered_with_504(void **state)
{
    struct world *w = *state;
    open_session(w);
    ask(w);
    read_text(w, w->up, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nSess");
    wait_s(w, 10);
    assert_true(has(w, CLIENT, "HTTP/1.1 504 "));
    assert_true(has(w, CLIENT, "\"id\":7"));
    assert_true(w->is_closed[w->up]);
    assert_int_equal(ended(w, LP_REASON_upstream_stalled), 1);
}

static void one_that_was_judged_has_the_long_limit(void **state)
{
    struct world *w = *state;
    open_session(w);
    ask(w);
    read_text(w, w->up, "HTTP/1.1 400 Bad Request\r\nContent-Length: 100000\r\n\r\n");
    read_blanks(w, w->up, 90000);
    assert_true(has(w, CLIENT, "HTTP/1.1 400 "));
    wait_s(w, 299);
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 1);
    assert_answer_was_cut(w);
}

static void an_event_stream_may_be_silent(void **state)
{
    struct world *w = *state;
    open_session(w);
    ask(w);
    read_text(w, w->up,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    wait_s(w, 100000);
    read_text(w, w->up, "8\r\ndata: 1\n\r\n");
    assert_true(has(w, CLIENT, "data: 1\n"));
    assert_false(w->is_closed[w->up]);
}

/* The client reads slowly, so the replica is not read: that is not the replica's fault. */
static void an_answer_that_we_do_not_read_has_not_stopped(void **state)
{
    struct world *w = *state;
    enum { LONG = 200000, BEFORE_THE_STALL_S = 59 };
    open_session(w);
    w->server.first_byte_ms = 10000;
    ask(w);
    w->takes_nothing[CLIENT] = true;
    char head[100];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LONG);
    read_text(w, w->up, head);
    for (size_t left = LONG / 2; !w->is_paused[w->up]; left -= 10000) {
        assert_true(left >= 10000);
        read_blanks(w, w->up, 10000);
    }
    wait_s(w, BEFORE_THE_STALL_S);
    assert_int_equal(ended(w, LP_REASON_upstream_stalled), 0);
    drain(w, CLIENT);
    assert_false(w->is_paused[w->up]);
    wait_s(w, 9);
    assert_false(w->is_closed[CLIENT]);
    wait_s(w, 1);
    assert_answer_was_cut(w);
}

static void one_for_a_client_that_left_has_its_minute(void **state)
{
    struct world *w = *state;
    open_session(w);
    ask(w);
    read_text(w, w->up, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{");
    tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = CLIENT});
    wait_s(w, 59);
    assert_false(w->is_closed[w->up]);
    wait_s(w, 1);
    assert_true(w->is_closed[w->up]);
    assert_int_equal(ended(w, LP_REASON_client_left), 1);
}

/* The DELETE that we make for a session id that is too long has no client to give up. */
static void an_answer_to_our_own_request_has_the_limit_too(void **state)
{
    struct world *w = *state;
    char text[900] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: ";
    size_t len = strlen(text);
    memset(text + len, 'i', 600);
    strcpy(text + len + 600, "\r\n\r\n{}");
    open_session(w);
    lp_id kept = w->up;
    read_text(w, CLIENT, INITIALIZE);
    read_text(w, w->up, text);
    assert_true(has(w, kept, "DELETE /mcp HTTP/1.1\r\n"));
    read_text(w, kept, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{");
    wait_s(w, 299);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 1);
    wait_s(w, 1);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
    assert_int_equal(ended(w, LP_REASON_upstream_stalled), 1);
}

static void a_replica_that_takes_no_body_is_given_up(void **state)
{
    struct world *w = *state;
    open_session(w);
    w->server.stalled_ms = 20000;
    begin_ping(w, 1 << 20);
    read_blanks(w, CLIENT, 100000);
    w->takes_nothing[w->up] = true;
    read_blanks(w, CLIENT, 100000);
    wait_s(w, 19);
    assert_int_equal(w->written_len[CLIENT], 0);
    wait_s(w, 1);
    assert_true(has(w, CLIENT, "HTTP/1.1 504 "));
    assert_true(has(w, CLIENT, "\"id\":7"));
    assert_answer_was_cut(w);
}

/* What of a body has not come yet is the client's business, and its own limit is a minute off. */
static void the_first_byte_is_due_after_the_last_of_the_request(void **state)
{
    struct world *w = *state;
    enum { LONG = 200000 };
    open_session(w);
    w->server.first_byte_ms = 5000;
    begin_ping(w, LONG);
    read_blanks(w, CLIENT, 100000);
    wait_s(w, 29);
    assert_int_equal(w->written_len[CLIENT], 0);
    read_blanks(w, CLIENT, LONG - PING_BYTES - 100000);
    wait_s(w, 4);
    assert_int_equal(w->written_len[CLIENT], 0);
    wait_s(w, 1);
    assert_true(has(w, CLIENT, "HTTP/1.1 504 "));
    assert_int_equal(ended(w, LP_REASON_first_byte_timeout), 1);
}

/* --- a request that takes too much --- */

static uint64_t large_bytes(const struct world *w)
{
    return lp_engine_metrics(w->engine)->cells[LP_METRIC_LARGE_BODIES];
}

/* A request without a session: its body is held whole, however large. */
static void begin_held(struct world *w, lp_id conn, size_t declared)
{
    char text[200];
    snprintf(text, sizeof text, "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
        declared);
    accept_on(w, conn);
    read_text(w, conn, text);
}

static void only_what_has_come_takes_memory(void **state)
{
    struct world *w = *state;
    begin_held(w, CLIENT, 2000000);
    read_blanks(w, CLIENT, 60000);
    assert_int_equal(large_bytes(w), 0);
    read_blanks(w, CLIENT, 40000);
    assert_in_range(large_bytes(w), 100000, 200000);
    tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = CLIENT});
    assert_int_equal(large_bytes(w), 0);
}

static void large_bodies_share_a_limit(void **state)
{
    struct world *w = *state;
    begin_held(w, CLIENT, 2000000);
    read_blanks(w, CLIENT, 1900000); /* over the limit, but alone */
    assert_false(w->is_closed[CLIENT]);
    begin_held(w, SECOND, 200000);
    read_blanks(w, SECOND, 60000);
    assert_int_equal(w->written_len[SECOND], 0);
    read_blanks(w, SECOND, 10000);
    assert_true(has(w, SECOND, "HTTP/1.1 503 "));
    assert_true(has(w, SECOND, "retry-after: 1\r\n"));
    assert_int_equal(ended(w, LP_REASON_over_capacity), 1);
    assert_non_null(strstr(w->log, "large_bodies_limit is reached"));
    wait_s(w, 30);
    assert_cut_for_time(w);
    assert_int_equal(large_bytes(w), 0);
}

static void small_bodies_and_those_that_stream_have_no_part_in_it(void **state)
{
    struct world *w = *state;
    enum { LONG = 200000 };
    open_session(w);
    begin_held(w, SECOND, 2000000);
    read_blanks(w, SECOND, 1900000);
    ask(w);
    read_text(w, w->up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    begin_ping(w, LONG);
    read_blanks(w, CLIENT, LONG - PING_BYTES);
    read_text(w, w->up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(ended(w, LP_REASON_answered), 3);
}

/* A stream may last for hours; what its request carried is not kept as long. */
static void a_stream_does_not_keep_its_body(void **state)
{
    struct world *w = *state;
    enum { LONG = 200000 };
    char text[1500];
    open_session(w);
    snprintf(text, sizeof text,
        "GET /mcp HTTP/1.1\r\nHost: a\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n",
        w->ticket, LONG);
    read_text(w, CLIENT, text);
    read_blanks(w, CLIENT, LONG);
    assert_in_range(large_bytes(w), LONG, 2 * LONG);
    read_text(w, w->up,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    assert_true(has(w, CLIENT, "HTTP/1.1 200 "));
    assert_int_equal(large_bytes(w), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_head_that_drips_is_cut_at_its_limit),
        TEST(the_limit_of_a_head_begins_anew_with_each_request),
        TEST(empty_lines_do_not_keep_a_connection),
        TEST(a_body_that_drips_is_cut),
        TEST(a_chunked_body_is_measured_by_what_it_carries),
        TEST(a_slow_body_of_any_length_gets_through),
        TEST(a_large_body_that_slows_down_is_cut_too),
        TEST(time_in_which_we_do_not_read_does_not_count),
        TEST(an_answer_that_stops_half_way_is_cut),
        TEST(one_that_is_judged_is_answered_with_504),
        TEST(one_that_was_judged_has_the_long_limit),
        TEST(an_event_stream_may_be_silent),
        TEST(an_answer_that_we_do_not_read_has_not_stopped),
        TEST(one_for_a_client_that_left_has_its_minute),
        TEST(an_answer_to_our_own_request_has_the_limit_too),
        TEST(a_replica_that_takes_no_body_is_given_up),
        TEST(the_first_byte_is_due_after_the_last_of_the_request),
        TEST(only_what_has_come_takes_memory),
        TEST(large_bodies_share_a_limit),
        TEST(small_bodies_and_those_that_stream_have_no_part_in_it),
        TEST(a_stream_does_not_keep_its_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
