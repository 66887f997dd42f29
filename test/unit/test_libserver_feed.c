/* liblimpet-server on connections of its program: bytes in, bytes out where the program takes few
 * at a time, pauses, ends; turns and time-outs; wakes from other threads. By limpet-server.h alone.
 */
#include "fed_harness.h"

#include <pthread.h>

enum { PEERS = 4 };

/* One peer: what the server has said to it. */
struct peer {
    uint64_t connection;
    char text[ROOM * 4];
    size_t len;
    size_t room; /* bytes that it takes until it is given more */
    unsigned closes;
    enum limpet_close how;
    bool is_paused;
};

static size_t on_write(void *context, void *peer, struct limpet_span bytes)
{
    (void)context;
    struct peer *p = peer;
    size_t len = bytes.len < p->room ? bytes.len : p->room;
    assert_true(p->len + len < sizeof p->text);
    memcpy(p->text + p->len, bytes.ptr, len);
    p->len += len;
    p->text[p->len] = '\0';
    p->room -= len;
    return len;
}

static void on_pause(void *context, void *peer, bool is_paused)
{
    (void)context;
    ((struct peer *)peer)->is_paused = is_paused;
}

static void on_close(void *context, void *peer, enum limpet_close how)
{
    (void)context;
    struct peer *p = peer;
    p->closes++;
    p->how = how;
}

static void on_wake(void *context)
{
    unsigned *wakes = context;
    ++*wakes;
}

static void answer_large(void *context, struct limpet_call *call)
{
    (void)context;
    static char text[100000];
    memset(text, 'x', sizeof text);
    limpet_call_text(call, limpet_bytes(text, sizeof text));
}

static void answer_never(void *context, struct limpet_call *call)
{
    (void)context;
    (void)call;
}

struct place {
    struct limpet_server *server;
    unsigned wakes;
    struct peer peers[PEERS];
};

static void add(struct limpet_server *server, const char *name,
    void (*run)(void *context, struct limpet_call *call))
{
    struct limpet_tool tool = {.name = name, .handler = {.run = run}};
    assert_int_equal(limpet_server_add_tool(server, &tool), LIMPET_OK);
}

static void set_up(struct place *place)
{
    struct limpet_server_options options = {
        .name = "test", .version = "1", .sessions = LIMPET_SESSIONS_STATELESS, .grace_ms = 1};
    struct limpet_feeder feeder = {.context = &place->wakes,
        .wake = on_wake,
        .write = on_write,
        .pause = on_pause,
        .close = on_close};
    memset(place, 0, sizeof *place);
    assert_int_equal(limpet_server_new(NULL, &options, &place->server), LIMPET_OK);
    assert_int_equal(limpet_server_feed(place->server, &feeder), LIMPET_OK);
    add(place->server, "large", answer_large);
    add(place->server, "never", answer_never);
}

static struct peer *dial(struct place *place, unsigned i)
{
    struct peer *peer = &place->peers[i];
    struct limpet_peer facts = {
        .peer = peer, .is_loopback = true, .address = limpet_str("127.0.0.1:99")};
    *peer = (struct peer){.room = SIZE_MAX};
    assert_int_equal(limpet_server_connected(place->server, &facts, &peer->connection), LIMPET_OK);
    return peer;
}

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

static void send_post(struct place *place, const struct peer *peer, const char *body)
{
    char text[1024];
    int len = snprintf(text, sizeof text,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    for (int i = 0; i < len; i += 10) /* in small pieces */
        limpet_server_received(place->server, peer->connection,
            limpet_bytes(text + i, (size_t)(len - i < 10 ? len - i : 10)));
}

static void test_requests_on_connections(void **state)
{
    (void)state;
    static struct place place;
    set_up(&place);
    struct peer *a = dial(&place, 0), *b = dial(&place, 1);
    send_post(&place, a, PING);
    assert_memory_equal(a->text, "HTTP/1.1 200 OK\r\n", 17);
    assert_int_equal(b->len, 0);
    send_post(&place, b, PING);
    send_post(&place, a, PING); /* the connection stays */
    assert_int_equal(a->len, 2 * b->len);
    limpet_server_ended(place.server, a->connection);
    assert_int_equal(a->closes, 1);
    limpet_server_broken(place.server, b->connection);
    assert_int_equal(b->closes, 0); /* its program knows */
    for (int i = 0; i < 2; i++) {   /* dead: no harm */
        limpet_server_received(place.server, place.peers[i].connection, limpet_str("x"));
        limpet_server_ended(place.server, place.peers[i].connection);
        limpet_server_writable(place.server, place.peers[i].connection);
        limpet_server_broken(place.server, place.peers[i].connection);
    }
    struct peer *c = dial(&place, 2);
    limpet_server_received(place.server, c->connection, limpet_str("no HTTP\r\n\r\n"));
    assert_non_null(strstr(c->text, "HTTP/1.1 400 "));
    assert_int_equal(c->how, LIMPET_CLOSE_LINGER);
    struct peer *d = dial(&place, 3);
    limpet_server_free(place.server);
    assert_int_equal(d->closes, 1);
}

static void test_a_peer_that_takes_little_at_a_time(void **state)
{
    (void)state;
    static struct place place;
    set_up(&place);
    struct peer *peer = dial(&place, 0);
    peer->room = 7;
    send_post(&place, peer, CALL("1", "large", "{}"));
    assert_int_equal(peer->len, 7);
    for (int i = 0; i < 1000 && !strstr(peer->text, "x\"}]}}"); i++) {
        peer->room = 1000;
        limpet_server_writable(place.server, peer->connection);
    }
    assert_true(peer->len > 100000);
    peer->room = 1;
    send_post(&place, peer, CALL("1", "large", "{}"));
    limpet_server_ended(place.server, peer->connection); /* it still gets the answer */
    assert_int_equal(peer->closes, 0);
    peer->room = SIZE_MAX;
    limpet_server_writable(place.server, peer->connection);
    assert_int_equal(peer->closes, 1);
    limpet_server_free(place.server);
}

/* Requests that come too early are held up to a bound, then the program is asked to pause. */
static void test_a_peer_that_sends_too_much(void **state)
{
    (void)state;
    static struct place place;
    static char blanks[70000];
    set_up(&place);
    struct peer *peer = dial(&place, 0);
    send_post(&place, peer, CALL("1", "never", "{}"));
    memset(blanks, 'x', sizeof blanks);
    for (int i = 0; i < 100 && !peer->is_paused && !peer->closes; i++)
        limpet_server_received(place.server, peer->connection, limpet_bytes(blanks, sizeof blanks));
    assert_true(peer->is_paused);
    limpet_server_free(place.server);
    assert_int_equal(peer->closes, 1);
}

static void test_who_may_feed(void **state)
{
    (void)state;
    struct limpet_server_options options = {.name = "test", .version = "1"};
    struct limpet_feeder feeder = {.wake = on_wake, .write = on_write, .close = on_close};
    struct limpet_peer facts = {.is_loopback = true};
    struct limpet_server *server = NULL;
    uint64_t connection = 7;
    assert_int_equal(limpet_server_new(NULL, &options, &server), LIMPET_OK);
    assert_int_equal(limpet_server_connected(server, &facts, &connection), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_server_feed(server, &feeder), LIMPET_OK);
    assert_int_equal(limpet_server_connected(server, &facts, &connection), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_server_feed(server, &feeder), LIMPET_EEXISTS);
    assert_int_equal(connection, 7);
    limpet_server_free(server);
}

/* --- turns ------------------------------------------------------------------------------------ */

static void count(void *context, struct limpet_server *server)
{
    (void)server;
    ++*(int *)context;
}

static void *post_one(void *context)
{
    struct place *place = context;
    static int posted;
    if (limpet_server_post(place->server, count, &posted))
        abort();
    return &posted;
}

static void test_turns(void **state)
{
    (void)state;
    static struct place place;
    pthread_t thread;
    void *posted;
    set_up(&place);
    assert_int_equal(limpet_server_timeout_ms(place.server), -1);
    struct peer *peer = dial(&place, 0);
    assert_true(limpet_server_timeout_ms(place.server) > 1000); /* until the peer is idle */
    assert_int_equal(pthread_create(&thread, NULL, post_one, &place), 0);
    pthread_join(thread, &posted);
    assert_int_equal(place.wakes, 1);
    assert_int_equal(limpet_server_timeout_ms(place.server), 0);
    limpet_server_turn(place.server);
    assert_int_equal(*(int *)posted, 1);
    assert_true(limpet_server_timeout_ms(place.server) > 1000);
    limpet_server_broken(place.server, peer->connection);
    assert_int_equal(limpet_server_stop(place.server), LIMPET_OK);
    assert_int_equal(place.wakes, 2);
    assert_false(limpet_server_is_stopped(place.server));
    limpet_server_turn(place.server);
    assert_true(limpet_server_is_stopped(place.server));
    struct limpet_peer facts = {.peer = peer, .is_loopback = true};
    assert_int_equal(
        limpet_server_connected(place.server, &facts, &peer->connection), LIMPET_ELIMIT);
    assert_int_equal(peer->closes, 0);
    limpet_server_free(place.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_on_connections),
        cmocka_unit_test(test_a_peer_that_takes_little_at_a_time),
        cmocka_unit_test(test_a_peer_that_sends_too_much),
        cmocka_unit_test(test_who_may_feed),
        cmocka_unit_test(test_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
