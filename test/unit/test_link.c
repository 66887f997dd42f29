/* One connection through link: what is promised of streams that are over, of what comes too much,
 * and of ends that must be seen. A scripted shell takes everything and remembers the closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "link/link.h"

enum { CONN = 1, WRITTEN_MAX = 1 << 20 };

struct world {
    struct lp_shell shell;
    struct lp_heap timers;
    struct lp_links links;
    char written[WRITTEN_MAX];
    size_t written_len;
    bool takes_nothing;
    bool is_closed;
    enum lp_close_how how;
    struct lp_stream stream;
    uint32_t heads, ends, resets, refusals, closes, leaves;
    enum lp_reason why;
    int connect_error;
    size_t body;
};

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    int64_t taken = 0;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return CONN;
    case LP_ACT_WRITE:
        if (w->takes_nothing)
            return 0;
        for (uint32_t i = 0; i < action->u.write.count; i++) {
            struct lp_span part = action->u.write.parts[i];
            if (part.len)
                memcpy(w->written + w->written_len, part.ptr, part.len);
            w->written_len += part.len;
            taken += (int64_t)part.len;
        }
        return taken;
    case LP_ACT_CLOSE:
        w->is_closed = true;
        w->how = action->u.close;
        return LP_OK;
    default:
        return LP_OK;
    }
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    (void)head;
    struct world *w = ctx;
    w->heads++;
    w->stream = s;
}

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)tag;
    (void)s;
    ((struct world *)ctx)->body += bytes.len;
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)tag;
    (void)s;
    (void)whole;
    ((struct world *)ctx)->ends++;
}

static void on_left(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)tag;
    (void)s;
    ((struct world *)ctx)->leaves++;
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)tag;
    (void)s;
    struct world *w = ctx;
    w->resets++;
    w->why = why;
}

static void on_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)tag;
    struct world *w = ctx;
    w->refusals++;
    w->stream = s;
    w->why = why;
}

static void on_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    (void)tag;
    (void)link;
    ((struct world *)ctx)->connect_error = error;
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)tag;
    (void)link;
    struct world *w = ctx;
    w->closes++;
    w->why = why;
}

static const struct lp_message_ops OPS = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .left = on_left,
    .reset = on_reset,
    .refused = on_refused,
    .connected = on_connected,
    .closed = on_closed,
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    const struct lp_link_limits limits = {
        .idle_us = 75000000, .request_us = 30000000, .stalled_us = 60000000};
    w->shell = (struct lp_shell){w, perform};
    lp_heap_init(&w->timers);
    assert_int_equal(lp_links_init(&w->links, &w->shell, &w->timers, &limits), LP_OK);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    lp_links_fini(&w->links);
    lp_heap_fini(&w->timers);
    free(w);
    return 0;
}

static void tell(struct world *w, enum lp_event_kind kind)
{
    struct lp_event event = {.kind = kind, .mono_us = 1000, .conn = CONN};
    lp_links_event(&w->links, &event);
    lp_links_flush(&w->links);
}

static void read_span(struct world *w, struct lp_span bytes)
{
    struct lp_event event = {.kind = LP_EV_READ, .mono_us = 1000, .conn = CONN, .u.bytes = bytes};
    lp_links_event(&w->links, &event);
    lp_links_flush(&w->links);
}

static void read_text(struct world *w, const char *text)
{
    read_span(w, lp_span_str(text));
}

static void accept_client(struct world *w)
{
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .mono_us = 1000, .conn = CONN};
    event.u.accepted.peer = LP_SPAN("192.0.2.7:1234");
    assert_int_equal(lp_link_accept(&w->links, &event, &OPS, w), LP_OK);
}

static lp_id open_replica(struct world *w)
{
    struct lp_endpoint to = {.host = LP_SPAN("r.test"), .port = 1};
    lp_id link;
    assert_int_equal(lp_link_open(&w->links, &to, &OPS, w, &link), LP_OK);
    tell(w, LP_EV_CONNECTED);
    return link;
}

static void send_head(struct world *w, enum lp_body_kind body, uint64_t body_bytes)
{
    static struct lp_head head;
    head = (struct lp_head){
        .status = 200, .reason = LP_SPAN("OK"), .body = body, .body_bytes = body_bytes};
    lp_link_send_head(&w->links, w->stream, &head);
}

static bool has_written(const struct world *w, const char *text)
{
    struct lp_span all = lp_span(w->written, w->written_len);
    return lp_span_search(all, lp_span_str(text)) < all.len;
}

static void calls_for_a_stream_that_is_over_are_ignored(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    struct lp_stream none = {0, 1}, past = {w->stream.link, w->stream.number - 1};
    struct lp_stream all[] = {none, past};
    for (size_t i = 0; i < 2; i++) {
        struct lp_head head = {.status = 200, .body = LP_BODY_CHUNKED};
        lp_link_send_head(&w->links, all[i], &head);
        assert_false(lp_link_send_body(&w->links, all[i], LP_SPAN("x")));
        lp_link_send_end(&w->links, all[i]);
        lp_link_continue(&w->links, all[i]);
        lp_link_pause(&w->links, all[i]);
        lp_link_resume(&w->links, all[i]);
        lp_link_abort(&w->links, all[i]);
        lp_link_close_after(&w->links, all[i]);
        lp_link_set_stalled(&w->links, all[i], 1);
        assert_false(lp_link_has_written(&w->links, all[i]));
        assert_int_equal(lp_link_backlog(&w->links, all[i]), 0);
    }
    lp_link_set_tag(&w->links, 0, 1);
    lp_link_close(&w->links, 0, LP_CLOSE_NOW);
    assert_int_equal(lp_link_peer(&w->links, 0).len, 0);
    assert_false(lp_link_facts(&w->links, 0).is_admin);
    assert_false(lp_link_is_idle(&w->links, 0));
    lp_links_flush(&w->links);
    assert_false(w->is_closed);
    assert_int_equal(w->written_len, 0);
}

static void an_answer_is_sent_once(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_false(lp_link_send_body(&w->links, w->stream, LP_SPAN("early"))); /* no head yet */
    send_head(w, LP_BODY_LENGTH, 2);
    send_head(w, LP_BODY_LENGTH, 9);
    lp_link_continue(&w->links, w->stream);
    assert_true(lp_link_send_body(&w->links, w->stream, LP_SPAN("ok")));
    lp_link_send_end(&w->links, w->stream);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_true(has_written(w, "Content-Length: 2\r\n"));
    assert_false(has_written(w, "Content-Length: 9\r\n"));
    assert_false(has_written(w, "100 Continue"));
    assert_false(w->is_closed);
}

static void close_after_ends_the_connection_behind_the_answer(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    lp_link_close_after(&w->links, w->stream);
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_true(has_written(w, "Connection: close"));
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

static void head_is_answered_without_a_body(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    send_head(w, LP_BODY_CHUNKED, 0);
    lp_link_send_body(&w->links, w->stream, LP_SPAN("secret"));
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_false(has_written(w, "secret"));
    assert_false(has_written(w, "0\r\n\r\n"));
    assert_false(w->is_closed);
}

static void continue_is_said_to_whom_it_helps(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n");
    lp_link_continue(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_int_equal(w->written_len, 0);
    read_text(w, "12345");
    send_head(w, LP_BODY_CHUNKED, 0); /* which HTTP/1.0 gets as a body until close */
    lp_link_send_body(&w->links, w->stream, LP_SPAN("plain"));
    lp_link_abort(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_RESET); /* else it would look whole */
}

static void what_goes_wrong_behind_a_begun_answer_is_a_reset(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    assert_int_equal(w->body, 3);
    send_head(w, LP_BODY_CHUNKED, 0);
    read_text(w, "no chunk\r\n");
    assert_int_equal(w->refusals, 0);
    assert_int_equal(w->resets, 1);
    assert_int_equal(w->why, LP_REASON_bad_http);
    assert_int_equal(w->how, LP_CLOSE_RESET);
}

static void input_after_a_refusal_is_not_read(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "what is this?\r\n\r\n");
    assert_int_equal(w->refusals, 1);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(w->heads, 0);
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); /* the id is dead */
    assert_int_equal(w->heads, 0);
    assert_true(w->is_closed);
}

/* A shell that reads on though it was told to stop. */
static void more_input_than_may_wait_ends_the_connection(void **state)
{
    struct world *w = *state;
    size_t n = LP_LINK_HELD_MAX + 1;
    char *flood = malloc(n);
    memset(flood, 'x', n);
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    read_span(w, lp_span(flood, n));
    free(flood);
    assert_int_equal(w->resets, 1);
    assert_int_equal(w->why, LP_REASON_client_sent_more);
    assert_int_equal(w->how, LP_CLOSE_RESET);
}

static void an_idle_replica_has_nothing_to_say(void **state)
{
    struct world *w = *state;
    lp_id link = open_replica(w);
    assert_true(lp_link_is_idle(&w->links, link));
    read_text(w, "HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert_int_equal(w->closes, 1);
    assert_int_equal(w->why, LP_REASON_upstream_garbled);
    assert_false(lp_link_is_idle(&w->links, link));
}

static void ask(struct world *w, lp_id link)
{
    static struct lp_head head;
    head = (struct lp_head){.is_request = true,
        .method = LP_METHOD_GET,
        .method_name = LP_SPAN("GET"),
        .target = LP_SPAN("/")};
    w->stream = lp_link_begin(&w->links, link);
    lp_link_send_head(&w->links, w->stream, &head);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
}

static void begin_upload(struct world *w, lp_id link)
{
    static struct lp_head head;
    head = (struct lp_head){.is_request = true,
        .method = LP_METHOD_POST,
        .method_name = LP_SPAN("POST"),
        .target = LP_SPAN("/"),
        .body = LP_BODY_CHUNKED};
    w->stream = lp_link_begin(&w->links, link);
    lp_link_send_head(&w->links, w->stream, &head);
    assert_true(lp_link_send_body(&w->links, w->stream, LP_SPAN("half")));
    lp_links_flush(&w->links);
}

static void an_answer_may_be_whole_before_its_request(void **state)
{
    struct world *w = *state;
    lp_id link = open_replica(w);
    begin_upload(w, link);
    read_text(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_int_equal(w->heads, 1);
    assert_int_equal(w->ends, 1);
    assert_false(lp_link_is_idle(&w->links, link));
    lp_link_send_end(&w->links, w->stream);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_true(lp_link_is_idle(&w->links, link));
}

static void what_follows_an_early_answer_spoils_the_connection(void **state)
{
    struct world *w = *state;
    lp_id link = open_replica(w);
    begin_upload(w, link);
    read_text(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n");
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_int_equal(w->heads, 1);
    assert_int_equal(w->body, 2);
    assert_false(lp_link_is_idle(&w->links, link));
}

static void a_request_ends_once(void **state)
{
    struct world *w = *state;
    begin_upload(w, open_replica(w));
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    size_t before = w->written_len;
    assert_true(has_written(w, "half\r\n0\r\n\r\n"));
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_int_equal(w->written_len, before);
}

static void a_replica_that_sends_more_than_may_wait_is_garbled(void **state)
{
    struct world *w = *state;
    size_t n = LP_LINK_HELD_MAX + 1;
    char *flood = malloc(n);
    memset(flood, 'x', n);
    ask(w, open_replica(w));
    read_text(w, "HTTP/1.1 200 OK\r\n\r\n");
    lp_link_pause(&w->links, w->stream);
    read_span(w, lp_span(flood, n));
    free(flood);
    assert_int_equal(w->resets, 1);
    assert_int_equal(w->why, LP_REASON_upstream_garbled);
}

/* Once the request is all there, neither a pause nor "100 Continue" has anything to do. */
static void a_whole_request_is_neither_paused_nor_asked_for(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
    lp_link_continue(&w->links, w->stream);
    lp_link_pause(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_int_equal(w->written_len, 0);
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(w->heads, 2);
    assert_int_equal(w->ends, 2);
}

static void an_end_before_the_head_is_a_broken_answer(void **state)
{
    struct world *w = *state;
    lp_id link = open_replica(w);
    ask(w, link);
    assert_true(lp_link_has_written(&w->links, w->stream));
    read_text(w, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_int_equal(w->heads, 0); /* interim answers are not told */
    tell(w, LP_EV_EOF);
    assert_int_equal(w->resets, 1);
    assert_int_equal(w->why, LP_REASON_upstream_broke);
}

static void an_answer_without_framing_ends_with_its_connection(void **state)
{
    struct world *w = *state;
    lp_id link = open_replica(w);
    ask(w, link);
    read_text(w, "HTTP/1.1 200 OK\r\n\r\nhalf of it, or all");
    lp_link_pause(&w->links, w->stream);
    tell(w, LP_EV_EOF); /* not told before it is wanted */
    assert_int_equal(w->ends, 0);
    lp_link_resume(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->body, 18);
    assert_false(lp_link_is_idle(&w->links, link));
}

static void a_client_that_ends_its_side_has_left_or_not(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    tell(w, LP_EV_EOF);
    assert_int_equal(w->leaves, 1);
    w->takes_nothing = true; /* its answer has to wait */
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_false(w->is_closed);
    tell(w, LP_EV_DRAINED);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

static void an_answer_on_its_way_outlives_a_half_close(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    w->takes_nothing = true;
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    tell(w, LP_EV_EOF);
    assert_false(w->is_closed);
    tell(w, LP_EV_DRAINED);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

static void a_quiet_reader_has_its_time_from_when_it_gets_slow(void **state)
{
    struct world *w = *state;
    enum { LATE_US = 100000000, STALLED_US = 60000000 };
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    send_head(w, LP_BODY_CHUNKED, 0);
    lp_links_flush(&w->links);
    w->takes_nothing = true;
    w->links.now_us = LATE_US;
    lp_link_send_body(&w->links, w->stream, LP_SPAN("data: x\n\n"));
    lp_links_flush(&w->links);
    struct lp_timer *due = lp_heap_due(&w->timers, LATE_US + 1);
    if (due)
        lp_links_timer(&w->links, due, LATE_US + 1);
    assert_int_equal(w->resets, 0);
    while ((due = lp_heap_due(&w->timers, LATE_US + STALLED_US)))
        lp_links_timer(&w->links, due, LATE_US + STALLED_US);
    assert_int_equal(w->resets, 1);
    assert_int_equal(w->why, LP_REASON_reader_stalled);
}

static void a_dial_that_is_reset_is_a_failure(void **state)
{
    struct world *w = *state;
    struct lp_endpoint to = {.host = LP_SPAN("r.test"), .port = 1};
    lp_id link;
    assert_int_equal(lp_link_open(&w->links, &to, &OPS, w, &link), LP_OK);
    struct lp_event event = {.kind = LP_EV_CONNECT_FAILED, .conn = CONN, .u.error = LP_EREFUSED};
    lp_links_event(&w->links, &event);
    lp_links_flush(&w->links);
    assert_int_equal(w->connect_error, LP_EREFUSED);
    assert_false(lp_link_is_idle(&w->links, link));
}

static void a_stop_ends_idle_clients_and_a_cut_all(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    lp_links_stop(&w->links);
    lp_links_flush(&w->links);
    assert_false(w->is_closed);
    lp_links_cut(&w->links);
    lp_links_flush(&w->links);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_RESET);
    assert_int_equal(w->links.client_count, 0);
}

/* What the shell has, the replica may have: it is not sent a second time. */
static void what_is_to_be_drained_may_have_been_sent(void **state)
{
    struct world *w = *state;
    struct lp_stream s = lp_link_begin(&w->links, open_replica(w));
    struct lp_head head = {.is_request = true,
        .method = LP_METHOD_GET,
        .method_name = LP_SPAN("GET"),
        .target = LP_SPAN("/"),
        .body = LP_BODY_NONE};
    w->takes_nothing = true;
    lp_link_send_head(&w->links, s, &head);
    assert_false(lp_link_has_written(&w->links, s));
    lp_links_flush(&w->links);
    assert_true(lp_link_has_written(&w->links, s));
}

/* --- a graceful stop --- */

enum { STOP_US = 5000000, PARTING_US = 1000000 };

static const char GET[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

static void pass_to(struct world *w, uint64_t now_us)
{
    w->links.now_us = now_us;
    for (struct lp_timer *due; (due = lp_heap_due(&w->timers, now_us));)
        lp_links_timer(&w->links, due, now_us);
    lp_links_flush(&w->links);
}

static void read_at(struct world *w, uint64_t now_us, const char *text)
{
    struct lp_event event = {
        .kind = LP_EV_READ, .mono_us = now_us, .conn = CONN, .u.bytes = lp_span_str(text)};
    lp_links_event(&w->links, &event);
    lp_links_flush(&w->links);
}

static void stop_with_parting(struct world *w)
{
    w->links.limits.parting_us = PARTING_US;
    pass_to(w, STOP_US);
    lp_links_stop(&w->links);
    pass_to(w, STOP_US);
}

static void answer(struct world *w)
{
    send_head(w, LP_BODY_NONE, 0);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
}

static void a_request_that_crosses_a_stop_is_answered(void **state)
{
    struct world *w = *state;
    accept_client(w); /* idle for much longer than it may stay from now on */
    stop_with_parting(w);
    pass_to(w, STOP_US + PARTING_US - 1);
    assert_false(w->is_closed);
    read_at(w, STOP_US + PARTING_US - 1, GET);
    assert_int_equal(w->heads, 1);
    pass_to(w, STOP_US + 5 * PARTING_US); /* it takes what it takes */
    assert_false(w->is_closed);
    answer(w);
    assert_true(has_written(w, "Connection: close\r\n"));
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

static void an_idle_client_parts_in_its_time(void **state)
{
    struct world *w = *state;
    accept_client(w);
    stop_with_parting(w);
    pass_to(w, STOP_US + PARTING_US);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
    assert_int_equal(w->closes, 1);
    assert_int_equal(w->why, LP_REASON_idle);
}

static void an_answer_that_said_it_stays_is_kept_to(void **state)
{
    struct world *w = *state;
    accept_client(w);
    read_text(w, GET);
    send_head(w, LP_BODY_CHUNKED, 0);
    stop_with_parting(w);
    pass_to(w, STOP_US + 7 * PARTING_US);
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    assert_false(has_written(w, "Connection: close\r\n"));
    assert_false(w->is_closed);
    read_at(w, STOP_US + 8 * PARTING_US - 1, GET);
    assert_int_equal(w->heads, 2);
    answer(w);
    assert_true(has_written(w, "Connection: close\r\n"));
    assert_true(w->is_closed);
}

static void with_no_time_to_part_a_stop_is_at_once(void **state)
{
    struct world *w = *state;
    accept_client(w);
    lp_links_stop(&w->links);
    lp_links_flush(&w->links);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

static void drain_at(struct world *w, uint64_t now_us)
{
    struct lp_event drained = {.kind = LP_EV_DRAINED, .mono_us = now_us, .conn = CONN};
    lp_links_event(&w->links, &drained);
    pass_to(w, now_us);
}

/* Its owner is done with it and its reader is slow, but not stalled: that is no idle connection. */
static void the_last_answer_is_written_before_an_idle_end(void **state)
{
    struct world *w = *state;
    static const char BODY[40000];
    enum { SECOND_US = 1000000 };
    accept_client(w);
    read_text(w, GET);
    w->takes_nothing = true;
    send_head(w, LP_BODY_LENGTH, sizeof BODY);
    lp_link_send_body(&w->links, w->stream, lp_span(BODY, sizeof BODY));
    lp_link_send_end(&w->links, w->stream);
    lp_links_flush(&w->links);
    drain_at(w, 50 * SECOND_US);
    pass_to(w, 76 * SECOND_US);
    assert_false(w->is_closed);
    drain_at(w, 100 * SECOND_US);
    assert_false(w->is_closed);
    drain_at(w, 150 * SECOND_US);
    assert_true(w->is_closed);
    assert_int_equal(w->how, LP_CLOSE_LINGER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_for_a_stream_that_is_over_are_ignored),
        TEST(an_answer_is_sent_once),
        TEST(close_after_ends_the_connection_behind_the_answer),
        TEST(head_is_answered_without_a_body),
        TEST(continue_is_said_to_whom_it_helps),
        TEST(what_goes_wrong_behind_a_begun_answer_is_a_reset),
        TEST(input_after_a_refusal_is_not_read),
        TEST(more_input_than_may_wait_ends_the_connection),
        TEST(an_idle_replica_has_nothing_to_say),
        TEST(an_answer_may_be_whole_before_its_request),
        TEST(what_follows_an_early_answer_spoils_the_connection),
        TEST(a_request_ends_once),
        TEST(a_replica_that_sends_more_than_may_wait_is_garbled),
        TEST(a_whole_request_is_neither_paused_nor_asked_for),
        TEST(an_end_before_the_head_is_a_broken_answer),
        TEST(an_answer_without_framing_ends_with_its_connection),
        TEST(a_client_that_ends_its_side_has_left_or_not),
        TEST(an_answer_on_its_way_outlives_a_half_close),
        TEST(a_quiet_reader_has_its_time_from_when_it_gets_slow),
        TEST(a_dial_that_is_reset_is_a_failure),
        TEST(a_stop_ends_idle_clients_and_a_cut_all),
        TEST(what_is_to_be_drained_may_have_been_sent),
        TEST(a_request_that_crosses_a_stop_is_answered),
        TEST(an_idle_client_parts_in_its_time),
        TEST(an_answer_that_said_it_stays_is_kept_to),
        TEST(with_no_time_to_part_a_stop_is_at_once),
        TEST(the_last_answer_is_written_before_an_idle_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
