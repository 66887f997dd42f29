/* The engine when memory runs out: in a story of all that a gateway does each allocation fails once
 * in its turn. Nothing crashes or leaks, every exchange ends, and afterwards it opens sessions as
 * before. */
#include "engine_harness.h"
#include "scarce_memory.h"

enum { PEERS = 400, HEARD_MAX = 1 << 20 };

/* --- a shell with a connection for every request ---------------------------------------------- */

enum peer_state { NOBODY, CLIENT_OPEN, REPLICA_DIALED, REPLICA_OPEN, CLOSED };

struct story {
    struct world *w;
    enum peer_state peers[PEERS];
    bool is_draining[PEERS];
    lp_id next;
    lp_id asked; /* the connection to the replica that was written to last */
    uint64_t timer_at_us;
    size_t takes_max;      /* of one write, 0: all */
    char heard[HEARD_MAX]; /* by clients, since the last request */
    size_t heard_len;
};

static int64_t take_write(struct story *s, const struct lp_action *action)
{
    size_t taken = 0;
    if (s->peers[action->conn] == REPLICA_OPEN)
        s->asked = action->conn;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        if (s->takes_max && part.len > s->takes_max - taken)
            part.len = s->takes_max - taken;
        if (s->peers[action->conn] == CLIENT_OPEN && part.len) {
            assert_true(s->heard_len + part.len < HEARD_MAX);
            memcpy(s->heard + s->heard_len, part.ptr, part.len);
            s->heard_len += part.len;
        }
        taken += part.len;
    }
    s->heard[s->heard_len] = '\0';
    return (int64_t)taken;
}

static int64_t act(void *ctx, const struct lp_action *action)
{
    struct story *s = ctx;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        assert_true(s->next < PEERS);
        s->peers[s->next] = REPLICA_DIALED;
        return (int64_t)s->next++;
    case LP_ACT_WRITE:
        return take_write(s, action);
    case LP_ACT_DRAIN:
        s->is_draining[action->conn] = true;
        return LP_OK;
    case LP_ACT_CLOSE:
        s->peers[action->conn] = CLOSED;
        return LP_OK;
    case LP_ACT_TIMER:
        s->timer_at_us = action->u.timer_at_us;
        return LP_OK;
    default:
        return LP_OK;
    }
}

/* Whatever is dialed is there, and whatever waits to be written is taken. */
static void settle(struct story *s)
{
    for (lp_id i = 1; i < s->next; i++) {
        if (s->peers[i] == REPLICA_DIALED) {
            s->peers[i] = REPLICA_OPEN;
            tell_kind(s->w, LP_EV_CONNECTED, i);
        }
        while (s->is_draining[i]) {
            s->is_draining[i] = false;
            if (s->peers[i] != CLOSED)
                tell_kind(s->w, LP_EV_DRAINED, i);
        }
    }
}

static void wait(struct story *s, uint64_t us)
{
    uint64_t end_us = s->w->now_us + us;
    while (s->timer_at_us <= end_us) {
        if (s->timer_at_us > s->w->now_us)
            s->w->now_us = s->timer_at_us;
        s->timer_at_us = UINT64_MAX;
        tell_kind(s->w, LP_EV_TIMER, 0);
        settle(s);
    }
    s->w->now_us = end_us;
}

static void hear(struct story *s, lp_id conn, const char *text)
{
    if (s->peers[conn] == CLIENT_OPEN || s->peers[conn] == REPLICA_OPEN)
        read_text(s->w, conn, text);
    settle(s);
}

static lp_id arrive(struct story *s)
{
    lp_id conn = s->next++;
    assert_true(conn < PEERS);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.7:1"), .unix_uid = -1};
    s->peers[conn] = CLIENT_OPEN;
    s->heard_len = 0;
    tell(s->w, event);
    return conn;
}

/* A request in two pieces, so that the parser has to keep the first, from a client of its own. */
static lp_id say(struct story *s, const char *line, const char *fields, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: a\r\n%sContent-Type: application/json\r\nCookie: own=1\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        line, fields, strlen(body), body);
    assert_true(n > 0 && n < (int)sizeof text);
    lp_id conn = arrive(s);
    if (s->peers[conn] == CLIENT_OPEN)
        read_span(s->w, conn, lp_span(text, 20));
    hear(s, conn, text + 20);
    return conn;
}

/* The replica answers what it was asked last, in a few pieces. */
static void answer(struct story *s, const char *head, const char *body)
{
    char text[4096];
    lp_id conn = s->asked;
    snprintf(text, sizeof text, "HTTP/1.1 %s\r\n\r\n", head);
    hear(s, conn, "HTTP/1.1 103 Early Hints\r\n\r\n");
    char first = text[20];
    text[20] = '\0';
    hear(s, conn, text);
    text[20] = first;
    hear(s, conn, text + 20);
    hear(s, conn, body);
}

static void leave(struct story *s, lp_id conn)
{
    if (s->peers[conn] != CLIENT_OPEN)
        return;
    s->peers[conn] = CLOSED;
    tell_kind(s->w, LP_EV_BROKEN, conn);
    settle(s);
}

/* --- the story -------------------------------------------------------------------------------- */

static const char INITIALIZE[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}";
static const char CALL[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}";

/* What clients heard behind `mark`, up to the end of its line; empty when they did not. */
static void find_word(const struct story *s, const char *mark, char *room, size_t room_len)
{
    const char *at = strstr(s->heard, mark);
    size_t n = at ? strcspn(at, "\r\n") : 0;
    assert_true(n < room_len - 3);
    memcpy(room, at ? at : "", n);
    room[n] = '\0';
}

static void open_one(struct story *s, char ticket[2048])
{
    say(s, "POST /mcp", "Authorization: Bearer t\r\n", INITIALIZE);
    answer(s, "200 OK\r\nMcp-Session-Id: u1\r\nSet-Cookie: lb=1\r\nContent-Length: 2", "{}");
    find_word(s, "mcp-session-id: ", ticket, 2048);
    strcat(ticket, "\r\n");
}

static void use_session(struct story *s, const char *ticket)
{
    lp_id stream = say(s, "GET /mcp?a=1", ticket, "");
    answer(s, "200 OK\r\nContent-Type: text/event-stream", "data: 1\n\n");
    say(s, "POST /mcp", ticket, CALL);
    answer(s, "200 OK\r\nSet-Cookie: lb=2\r\nContent-Length: 2", "{}");
    say(s, "GET /mcp", ticket, ""); /* a second stream, which the replica does not want */
    answer(s, "409 Conflict\r\nContent-Length: 0", "");
    wait(s, SECOND_US / 2);
    answer(s, "200 OK\r\nContent-Type: text/event-stream", "data: 2\n\n");
    leave(s, stream);
    lp_id left = say(s, "POST /mcp", ticket, CALL);
    leave(s, left);
    say(s, "POST /mcp", ticket, CALL);
    answer(s, "404 Not Found\r\nContent-Length: 2", "{}");
    say(s, "DELETE /mcp", ticket, "");
    answer(s, "200 OK\r\nContent-Length: 0", "");
}

/* A body that is too large to be held goes out as it comes, to a replica that takes it slowly. */
static void upload(struct story *s, const char *ticket)
{
    char head[4096];
    static char rest[200000];
    memset(rest, 'x', sizeof rest);
    memcpy(rest + sizeof rest - 2, "\"}", 2);
    snprintf(head, sizeof head,
        "POST /mcp HTTP/1.1\r\nHost: a\r\n%sContent-Type: application/json\r\n"
        "Content-Length: "
        "%zu\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"x\":\"",
        ticket,
        strlen("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"x\":\"") + sizeof rest);
    lp_id conn = arrive(s);
    hear(s, conn, head);
    for (size_t at = 0; at < sizeof rest && s->peers[conn] == CLIENT_OPEN; at += 50000) {
        read_span(s->w, conn, lp_span(rest + at, 50000));
        settle(s);
    }
    answer(s, "200 OK\r\nContent-Length: 2", "{}");
}

static void use_old_sse(struct story *s)
{
    char address[2048];
    lp_id stream = say(s, "GET /sse", "", "");
    answer(s, "200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: lb=3",
        "event: endpoint\ndata: /messages?sessionId=1&a=2\n\n");
    find_word(s, "/sse?lp=", address, sizeof address);
    char line[2100];
    snprintf(line, sizeof line, "POST %s", address[0] ? address : "/sse?lp=x");
    say(s, line, "", CALL);
    answer(s, "202 Accepted\r\nContent-Length: 0", "");
    leave(s, stream);
}

static void be_refused(struct story *s)
{
    say(s, "POST /mcp", "Mcp-Session-Id: forged\r\n", CALL);
    say(s, "POST /mcp", "MCP-Protocol-Version: 2099-01-01\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\","
        "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"},"
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
    say(s, "POST /mcp", "", "{");
    say(s, "POST /mcp", "", INITIALIZE);
    answer(s, "200 OK\r\nMcp-Session-Id: two words\r\nContent-Length: 2", "{}");
    answer(s, "200 OK\r\nContent-Length: 0", ""); /* to the DELETE that ends it */
    say(s, "POST /mcp", "", INITIALIZE);
    answer(s,
        "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata="
        "\"http://r/.well-known/oauth-protected-resource/mcp\"\r\nContent-Length: 0",
        "");
    say(s, "POST /mcp", "", CALL);
}

static void look_for_login(struct story *s)
{
    say(s, "GET /.well-known/oauth-protected-resource/mcp", "", "");
    answer(s, "200 OK\r\nContent-Length: 23", "{\"resource\":\"http://r\"}");
}

static void break_off(struct story *s, const char *ticket)
{
    say(s, "POST /mcp", ticket, CALL);
    answer(s, "200 OK\r\nContent-Type: text/event-stream", "data: 1\n\n");
    for (lp_id i = 1; i < s->next; i++) {
        if (s->peers[i] != REPLICA_OPEN)
            continue;
        s->peers[i] = CLOSED;
        tell_kind(s->w, LP_EV_BROKEN, i);
    }
    say(s, "POST /mcp", ticket, CALL);
    answer(s, "500 Oops", "the end");
    if (s->peers[s->asked] == REPLICA_OPEN)
        tell_kind(s->w, LP_EV_EOF, s->asked);
}

static void call_from_page(struct story *s, const char *ticket)
{
    char fields[2200];
    say(s, "OPTIONS /mcp",
        "Origin: http://a.test\r\nAccess-Control-Request-Headers: mcp-param-x\r\n", "");
    snprintf(fields, sizeof fields, "Origin: http://a.test\r\n%s", ticket);
    say(s, "POST /mcp", fields, CALL);
    answer(s,
        "200 OK\r\nAccess-Control-Expose-Headers: X-A\r\nAccess-Control-Expose-Headers: X-B\r\n"
        "Content-Length: 2",
        "{}");
}

static void tell_story(struct story *s)
{
    char first[2048], second[2048];
    open_one(s, first);
    open_one(s, second);
    call_from_page(s, first);
    use_session(s, first);
    use_old_sse(s);
    be_refused(s);
    look_for_login(s);
    s->takes_max = 100; /* what is left of a write has to be kept */
    upload(s, second);
    break_off(s, second);
    s->takes_max = 0;
}

/* With all the memory it wants, this is what the story comes to. */
static void check_story(const struct story *s)
{
    static const struct {
        enum lp_reason reason;
        uint64_t count;
    } WANTED[] = {{LP_REASON_answered, 10}, {LP_REASON_answered_here, 1}, {LP_REASON_no_framing, 1},
        {LP_REASON_client_left, 2}, {LP_REASON_replaced, 1}, {LP_REASON_bad_json, 1},
        {LP_REASON_unknown_version, 1}, {LP_REASON_session_forged, 1}, {LP_REASON_session_lost, 1},
        {LP_REASON_challenged, 1}, {LP_REASON_upstream_broke, 2}, {LP_REASON_upstream_id_bad, 1}};
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (lp_engine_metrics(s->w->engine)->reasons[WANTED[i].reason] != WANTED[i].count)
            fail_msg("%s: %llu", lp_reason_info(WANTED[i].reason)->name,
                (unsigned long long)lp_engine_metrics(s->w->engine)->reasons[WANTED[i].reason]);
}

static void end_all(struct story *s)
{
    for (lp_id i = 1; i < s->next; i++)
        leave(s, i);
    wait(s, 400ull * SECOND_US);
    assert_int_equal(lp_engine_metrics(s->w->engine)->cells[LP_METRIC_REQUESTS_OPEN], 0);
    assert_int_equal(s->w->engine->exchanges.live_count, 0);
}

static struct story *new_story(void)
{
    struct story *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->w = new_world(1);
    static const struct lp_span any = {"*", 1};
    static const struct lp_span own = {"https://a/x/mcp", 15};
    s->w->server.cookie_jar = true;
    s->w->server.origins = &any;
    s->w->server.origin_count = 1;
    s->w->server.public_urls = &own;
    s->w->server.public_url_count = 1;
    s->w->server.comment_ms = 15000;
    s->w->conf.conn_max = PEERS;
    s->w->shell = (struct lp_shell){s, act};
    s->next = 1;
    s->timer_at_us = s->w->now_us;
    return s;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 0;
    for (bool was_needed = true; was_needed; n++) {
        struct story *s = new_story();
        char ticket[2048];
        calls_left = n;
        failed = 0;
        tell_story(s);
        calls_left = -1;
        was_needed = failed > 0;
        if (!was_needed)
            check_story(s);
        end_all(s);
        open_one(s, ticket);
        assert_true(ticket[0] == 'm');
        end_all(s);
        lp_engine_free(s->w->engine);
        free(s->w);
        free(s);
    }
    assert_in_range(n, 100, 5000);
}

static void an_engine_needs_memory_to_begin(void **state)
{
    struct world *w = *state;
    struct lp_engine_args args = {
        .shell = &w->shell, .count = 1, .conf = &w->conf, .keyring = &w->ring};
    int err = LP_ENOMEM;
    long n = 0;
    for (; err; n++) {
        struct lp_engine *engine = NULL;
        calls_left = n;
        failed = 0;
        err = lp_engine_new(&args, &engine);
        calls_left = -1;
        assert_int_equal(err, engine ? LP_OK : LP_ENOMEM);
        assert_true(engine || failed);
        lp_engine_free(engine);
    }
    assert_in_range(n, 4, 50);
}

/* A look that finds no memory for its peers fails as one, and the next one finds them. */
static void looking_for_peers_needs_memory(void **state)
{
    struct world *w = *state;
    struct lp_event found = {.kind = LP_EV_LOOKED};
    struct lp_metrics_replica rows[4];
    w->conf.is_sidecar = true;
    w->conf.self = LP_SPAN("m1");
    w->conf.peers_file = LP_SPAN("/etc/peers");
    w->conf.peers_every_ms = 1000;
    w->replica.name = LP_SPAN("m1");
    found.u.looked.text = LP_SPAN("m2=http://b:1\nm3=http://c:1\n");
    struct lp_engine_args args = {.shell = &w->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us};
    long n = 0;
    for (failed = 1; failed; n++) {
        lp_engine_free(w->engine);
        assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
        tell_kind(w, LP_EV_TIMER, 0);
        failed = 0;
        calls_left = n;
        tell(w, found);
        calls_left = -1;
        assert_int_equal(w->engine->discovery.is_failing, failed > 0);
        tell(w, found);
        assert_int_equal(lp_engine_replicas(w->engine, rows, 4), 3);
    }
    assert_in_range(n, 4, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        TEST(an_engine_needs_memory_to_begin),
        TEST(looking_for_peers_needs_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
