/* The demo's round robin as a proxy: heads and bodies both ways, its turn-taking, slow readers, and
 * every way a connection can end. A shell in memory; the test plays clients and replicas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/naive.h"
#include "base/buf.h"
#include "base/error.h"

enum { CONNS = 2100 };

struct peer {
    struct lp_buf got;
    struct lp_span drain;
    bool is_open;
    bool is_stuck; /* takes nothing at once */
    bool is_paused;
    enum lp_close_how how;
    uint16_t port; /* of the replica it is; 0: a client */
};

struct world {
    struct lp_shell shell;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_naive naive;
    struct peer peers[CONNS];
    uint32_t next;
    bool connect_fails;
    bool replicas_are_stuck;
};

static struct peer *peer_of(struct world *w, lp_id conn)
{
    return &w->peers[lp_id_slot(conn)];
}

static lp_id new_peer(struct world *w, uint16_t port)
{
    assert_true(w->next < CONNS);
    struct peer *peer = &w->peers[w->next++];
    *peer = (struct peer){.is_open = true, .port = port};
    lp_buf_init(&peer->got, 16 << 20);
    return (lp_id)1 << 32 | w->next;
}

static int64_t on_write(struct peer *peer, const struct lp_action *action)
{
    int64_t taken = 0;
    if (peer->is_stuck)
        return 0;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        assert_int_equal(lp_buf_append(&peer->got, action->u.write.parts[i]), 0);
        taken += (int64_t)action->u.write.parts[i].len;
    }
    return taken;
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    if (action->kind == LP_ACT_CONNECT) {
        if (w->connect_fails)
            return LP_ELIMIT;
        lp_id conn = new_peer(w, action->u.connect.port);
        peer_of(w, conn)->is_stuck = w->replicas_are_stuck;
        return (int64_t)conn;
    }
    struct peer *peer = action->conn ? peer_of(w, action->conn) : NULL;
    switch (action->kind) {
    case LP_ACT_WRITE:
        return on_write(peer, action);
    case LP_ACT_DRAIN:
        peer->drain = action->u.drain;
        break;
    case LP_ACT_CLOSE:
        peer->is_open = false;
        peer->how = action->u.close;
        break;
    case LP_ACT_READ_OFF:
    case LP_ACT_READ_ON:
        peer->is_paused = action->kind == LP_ACT_READ_OFF;
        break;
    default:
        break;
    }
    return 0;
}

static void tell(struct world *w, struct lp_event event)
{
    if (event.kind == LP_EV_ACCEPTED)
        assert_int_equal(lp_link_accept(&w->links, &event, &lp_naive_ops, &w->naive), 0);
    else
        lp_links_event(&w->links, &event);
    lp_links_flush(&w->links);
}

static void start(struct world *w)
{
    static const struct lp_link_limits LIMITS = {1000, 1000, 1000, 0};
    *w = (struct world){0};
    w->shell = (struct lp_shell){w, perform};
    lp_heap_init(&w->timers);
    assert_int_equal(lp_links_init(&w->links, &w->shell, &w->timers, &LIMITS), 0);
    lp_naive_init(&w->naive, &w->links);
    w->naive.count = 3;
    for (uint16_t i = 0; i < 3; i++)
        w->naive.ports[i] = 3001 + i;
}

static void finish(struct world *w)
{
    lp_links_fini(&w->links);
    lp_naive_fini(&w->naive);
    lp_heap_fini(&w->timers);
    for (uint32_t i = 0; i < w->next; i++)
        lp_buf_release(&w->peers[i].got);
}

static lp_id dial(struct world *w)
{
    lp_id conn = new_peer(w, 0);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    tell(w, event);
    return conn;
}

static void put(struct world *w, lp_id conn, const char *text)
{
    tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span_str(text)});
}

static void signal_to(struct world *w, lp_id conn, enum lp_event_kind kind)
{
    tell(w, (struct lp_event){.kind = kind, .conn = conn});
}

static void break_off(struct world *w, lp_id conn)
{
    peer_of(w, conn)->is_open = false;
    signal_to(w, conn, LP_EV_BROKEN);
}

/* The connection that the proxy opened last. */
static lp_id last(struct world *w)
{
    return (lp_id)1 << 32 | w->next;
}

static const char *got(struct world *w, lp_id conn)
{
    static char text[4096];
    struct lp_span bytes = lp_buf_span(&peer_of(w, conn)->got);
    size_t n = bytes.len < sizeof text ? bytes.len : sizeof text - 1;
    if (n)
        memcpy(text, bytes.ptr, n);
    text[n] = '\0';
    lp_buf_clear(&peer_of(w, conn)->got);
    return text;
}

static void expect_got(struct world *w, lp_id conn, const char *part)
{
    const char *text = got(w, conn);
    if (!strcasestr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

/* A client whose request is with a replica; that replica's connection at *ret_up. */
static lp_id ask(struct world *w, lp_id *ret_up)
{
    lp_id conn = dial(w);
    put(w, conn, "GET /mcp HTTP/1.1\r\nHost: demo\r\n\r\n");
    *ret_up = last(w);
    signal_to(w, *ret_up, LP_EV_CONNECTED);
    return conn;
}

static void drain_all(struct world *w, lp_id conn)
{
    struct peer *peer = peer_of(w, conn);
    peer->is_stuck = false;
    while (peer->drain.len) {
        struct lp_span drain = peer->drain;
        peer->drain = lp_span(NULL, 0);
        assert_int_equal(lp_buf_append(&peer->got, drain), 0);
        signal_to(w, conn, LP_EV_DRAINED);
    }
}

/* --- tests --- */

static void each_request_goes_to_the_next(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id conn = dial(&w);
    for (uint16_t i = 0; i < 7; i++) {
        put(&w, conn, "GET /mcp HTTP/1.1\r\nHost: demo\r\n\r\n");
        lp_id up = last(&w);
        assert_int_equal(peer_of(&w, up)->port, 3001 + i % 3);
        assert_int_equal(w.naive.last, i % 3);
        signal_to(&w, up, LP_EV_CONNECTED);
        put(&w, up, "HTTP/1.1 204 No Content\r\n\r\n");
        assert_false(peer_of(&w, up)->is_open);
        expect_got(&w, conn, "HTTP/1.1 204 No Content\r\n");
    }
    finish(&w);
}

static void heads_and_bodies_pass_both_ways(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id conn = dial(&w);
    put(&w, conn,
        "POST /mcp?x=1 HTTP/1.1\r\nHost: demo\r\nX-Mine: 1\r\nConnection: keep-alive\r\n"
        "TE: trailers\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
    lp_id up = last(&w);
    expect_got(&w, conn, "100 Continue");
    put(&w, conn, "3\r\nabc\r\n");
    signal_to(&w, up, LP_EV_CONNECTED);
    assert_string_equal(got(&w, up), "");
    put(&w, conn, "2\r\nde\r\n0\r\n\r\n");
    const char *sent = got(&w, up);
    assert_non_null(strstr(sent, "POST /mcp?x=1 HTTP/1.1\r\n"));
    assert_non_null(strcasestr(sent, "host: 127.0.0.1:3001\r\n"));
    assert_non_null(strcasestr(sent, "x-mine: 1\r\n"));
    assert_null(strcasestr(sent, "te: "));
    assert_null(strcasestr(sent, "expect"));
    assert_non_null(strstr(sent, "\r\n\r\nabcde"));
    put(&w, up,
        "HTTP/1.1 200 OK\r\nX-Theirs: 2\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n");
    const char *answer = got(&w, conn);
    assert_non_null(strcasestr(answer, "x-theirs: 2\r\n"));
    assert_non_null(strstr(answer, "4\r\nwxyz\r\n"));
    put(&w, up, "0\r\n\r\n");
    assert_string_equal(got(&w, conn), "0\r\n\r\n");
    finish(&w);
}

static void an_answer_that_ends_with_its_connection_is_chunked(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id up;
    lp_id conn = ask(&w, &up);
    put(&w, up, "HTTP/1.1 200 OK\r\n\r\nall");
    expect_got(&w, conn, "3\r\nall\r\n");
    signal_to(&w, up, LP_EV_EOF);
    assert_string_equal(got(&w, conn), "0\r\n\r\n");
    finish(&w);
}

static void a_replica_that_is_not_there_is_502(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id early = dial(&w);
    put(&w, early, "POST /mcp HTTP/1.1\r\nHost: demo\r\nContent-Length: 5\r\n\r\nab");
    tell(&w,
        (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .conn = last(&w), .u.error = LP_EREFUSED});
    expect_got(&w, early, "HTTP/1.1 502 Bad Gateway\r\n");
    lp_id closed = dial(&w);
    put(&w, closed, "POST /mcp HTTP/1.1\r\nHost: demo\r\nContent-Length: 5\r\n\r\nab");
    signal_to(&w, last(&w), LP_EV_CONNECTED);
    signal_to(&w, last(&w), LP_EV_EOF);
    expect_got(&w, closed, "HTTP/1.1 502");
    lp_id up;
    lp_id silent = ask(&w, &up);
    break_off(&w, up);
    expect_got(&w, silent, "HTTP/1.1 502");
    lp_id garbled = ask(&w, &up);
    put(&w, up, "nonsense\r\n\r\n");
    expect_got(&w, garbled, "HTTP/1.1 502");
    w.connect_fails = true;
    lp_id none = dial(&w);
    put(&w, none, "GET /mcp HTTP/1.1\r\nHost: demo\r\n\r\n");
    expect_got(&w, none, "HTTP/1.1 502");
    assert_int_equal(w.naive.passes.live_count, 0);
    finish(&w);
}

static void an_answer_that_breaks_off_does_not_look_whole(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id up;
    lp_id conn = ask(&w, &up);
    put(&w, up, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    break_off(&w, up);
    expect_got(&w, conn, "\r\n\r\nhalf");
    assert_false(peer_of(&w, conn)->is_open);
    assert_int_equal(w.naive.passes.live_count, 0);
    finish(&w);
}

static void a_client_that_goes_takes_its_request_along(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id up;
    lp_id left = ask(&w, &up);
    signal_to(&w, left, LP_EV_EOF);
    assert_false(peer_of(&w, up)->is_open);
    lp_id broken = ask(&w, &up);
    break_off(&w, broken);
    assert_false(peer_of(&w, up)->is_open);
    lp_id garbled = dial(&w);
    put(&w, garbled, "POST /mcp HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n");
    up = last(&w);
    put(&w, garbled, "zz\r\n");
    expect_got(&w, garbled, "HTTP/1.1 400 Bad Request\r\n");
    assert_false(peer_of(&w, up)->is_open);
    lp_id nonsense = dial(&w);
    put(&w, nonsense, "nonsense\r\n\r\n");
    expect_got(&w, nonsense, "HTTP/1.1 400");
    lp_id idle = dial(&w);
    signal_to(&w, idle, LP_EV_EOF);
    assert_false(peer_of(&w, idle)->is_open);
    assert_int_equal(w.naive.passes.live_count, 0);
    finish(&w);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    static char text[300000];
    memset(text, 'x', sizeof text - 1);
    lp_id body = dial(&w);
    put(&w, body, "POST /mcp HTTP/1.1\r\nHost: demo\r\nContent-Length: 299999\r\n\r\n");
    lp_id up = last(&w);
    put(&w, body, text);
    expect_got(&w, body, "HTTP/1.1 413");
    assert_false(peer_of(&w, up)->is_open);
    text[9000] = '\0';
    lp_id head = dial(&w);
    put(&w, head, "GET /mcp HTTP/1.1\r\nHost: demo\r\nX-Long: ");
    put(&w, head, text);
    put(&w, head, "\r\n\r\n");
    expect_got(&w, head, "HTTP/1.1 431");
    finish(&w);
}

static void a_large_request_waits_for_its_replica(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    static char text[200000];
    memset(text, 'x', sizeof text - 1);
    lp_id conn = dial(&w);
    w.replicas_are_stuck = true;
    put(&w, conn, "POST /mcp HTTP/1.1\r\nHost: demo\r\nContent-Length: 199999\r\n\r\n");
    lp_id up = last(&w);
    put(&w, conn, text);
    signal_to(&w, up, LP_EV_CONNECTED);
    drain_all(&w, up);
    assert_true(peer_of(&w, up)->got.len > 199999);
    put(&w, up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect_got(&w, conn, "\r\n\r\nok");
    finish(&w);
}

static void a_client_that_does_not_read_pauses_its_replica(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    static char text[70000];
    memset(text, 'x', sizeof text - 1);
    lp_id up;
    lp_id conn = ask(&w, &up);
    peer_of(&w, conn)->is_stuck = true;
    put(&w, up, "HTTP/1.1 200 OK\r\nContent-Length: 139998\r\n\r\n");
    put(&w, up, text);
    assert_true(peer_of(&w, up)->is_paused);
    drain_all(&w, conn);
    assert_false(peer_of(&w, up)->is_paused);
    put(&w, up, text);
    drain_all(&w, conn);
    assert_true(peer_of(&w, conn)->got.len > 139998);
    assert_false(peer_of(&w, up)->is_open);
    finish(&w);
}

static void requests_in_progress_have_a_ceiling(void **state)
{
    (void)state;
    struct world w;
    start(&w);
    lp_id up;
    for (int i = 0; i < 1024; i++)
        ask(&w, &up);
    lp_id over = dial(&w);
    put(&w, over, "GET /mcp HTTP/1.1\r\nHost: demo\r\n\r\n");
    expect_got(&w, over, "HTTP/1.1 503");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_goes_to_the_next),
        cmocka_unit_test(heads_and_bodies_pass_both_ways),
        cmocka_unit_test(an_answer_that_ends_with_its_connection_is_chunked),
        cmocka_unit_test(a_replica_that_is_not_there_is_502),
        cmocka_unit_test(an_answer_that_breaks_off_does_not_look_whole),
        cmocka_unit_test(a_client_that_goes_takes_its_request_along),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(a_large_request_waits_for_its_replica),
        cmocka_unit_test(a_client_that_does_not_read_pauses_its_replica),
        cmocka_unit_test(requests_in_progress_have_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
