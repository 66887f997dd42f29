/* A sidecar in the engine (gate/peers.c): the owner-id table for every method, in forward and in
 * replay mode; the hop mark on its way out and in; old SSE; sessions with tickets. The sidecar is
 * m1, its peer m2; m9 is nobody's. */
#include "engine_harness.h"

#define UUID "7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":\"q7\",\"method\":\"tools/list\"}"

enum { WALL_MS_S = 1800000000, LOCAL = 0, PEER = 1 };
#define WALL_MS ((uint64_t)WALL_MS_S * 1000)

/* The world's one replica becomes the local one of a sidecar. */
struct sidecar {
    struct world *w;
    struct lp_conf_replica replicas[2];
};

static void start(struct sidecar *s, enum lp_ids ids, enum lp_replay replay, const char *self)
{
    struct world *w = s->w;
    lp_engine_free(w->engine);
    s->replicas[LOCAL] = w->replica;
    if (*self)
        s->replicas[LOCAL].name = lp_span_str(self);
    s->replicas[PEER] = (struct lp_conf_replica){.name = LP_SPAN("m2"),
        .address = {.host = LP_SPAN("peer.test"), .port = 2, .authority = LP_SPAN("peer.test:2")},
        .path = LP_SPAN("/mcp"),
        .weight = 1,
        .is_peer = true};
    w->server.replicas = s->replicas;
    w->server.replica_count = 2;
    w->server.body_max = 4 << 20;
    w->conf.is_sidecar = true;
    w->conf.self = lp_span_str(self);
    w->conf.ids = ids;
    w->conf.replay = replay;
    struct lp_engine_args args = {.shell = &w->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = WALL_MS};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
}

static int set_up(void **state)
{
    static struct sidecar s;
    s = (struct sidecar){.w = new_world(1)};
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct sidecar *s = *state;
    void *world = s->w;
    return teardown(&world);
}

/* Both of the last connections end. */
static void hang_up(struct world *w)
{
    tell_kind(w, LP_EV_BROKEN, CLIENT);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
}

/* A request on a connection of its own, so that none waits for another's answer. */
static void ask(struct world *w, const char *method, const char *target, const char *fields)
{
    char line[1024];
    bool has_body = strcmp(method, "POST") == 0;
    hang_up(w);
    accept_client(w, false, "192.0.2.7:1");
    snprintf(line, sizeof line, "%s %s", method, target);
    w->connects = 0;
    w->log[0] = '\0';
    request(w, line, fields, has_body ? LIST : "");
    if (w->connects)
        tell_kind(w, LP_EV_CONNECTED, REPLICA);
}

static const char *const METHODS[] = {"POST", "GET", "DELETE"};

/* Nobody was asked; the client has its 404 with its id and nothing of what it sent beside. */
static void assert_lost(struct world *w, const char *method, const char *why)
{
    assert_true(has(w, CLIENT, "HTTP/1.1 404 Not Found\r\n"));
    assert_true(has(w, CLIENT, "\"code\":-32001,\"message\":\"Session not found\""));
    assert_int_equal(has(w, CLIENT, "\"id\":\"q7\""), strcmp(method, "POST") == 0);
    assert_false(has(w, CLIENT, "fly-replay") || has(w, CLIENT, "m2") || has(w, CLIENT, UUID));
    assert_int_equal(w->written_len[REPLICA], 0);
    if (!strstr(w->log, why))
        fail_msg("%s: wanted %s in: %s", method, why, w->log);
}

static void test_mints(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    open_session(s->w);
    assert_string_equal(s->w->ticket, "mcp-session-id: m1.u1\r\n");
    for (size_t i = 0; i < 3; i++) {
        ask(s->w, METHODS[i], "/mcp", s->w->ticket);
        assert_true(has(s->w, REPLICA, "mcp-session-id: u1\r\n"));
        assert_true(has(s->w, REPLICA, "host: r.test:1\r\n"));
        assert_false(has(s->w, REPLICA, "limpet-hop"));
        answer_with(s->w, "200 OK", "Mcp-Session-Id: u1\r\n", "{}");
        assert_true(has(s->w, CLIENT, s->w->ticket));
    }
}

/* "" also means that a client's id is passed on byte for byte, whatever it looks like. */
static void test_no_owner(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "");
    open_session(s->w);
    assert_string_equal(s->w->ticket, "mcp-session-id: u1\r\n");
    for (size_t i = 0; i < 3; i++) {
        ask(s->w, METHODS[i], "/mcp", "Mcp-Session-Id: m2." UUID "\r\n");
        assert_true(has(s->w, REPLICA, "mcp-session-id: m2." UUID "\r\n"));
        assert_true(has(s->w, REPLICA, "host: r.test:1\r\n"));
        answer_with(s->w, "404 Not Found", "", "{\"error\":\"Session not found\"}");
        assert_true(has(s->w, CLIENT, "HTTP/1.1 404") && !has(s->w, CLIENT, "fly-replay"));
        assert_true(has(s->w, CLIENT, "-32001"));
    }
}

/* The mark that the peer got, as the peer judges it. */
static void assert_mark(struct world *w, const char *method, const char *path, const char *session)
{
    static const char FIELD[] = "limpet-hop: ";
    struct lp_span all = lp_span(w->written[REPLICA], w->written_len[REPLICA]), rest;
    size_t at = lp_span_search(all, lp_span_str(FIELD));
    assert_true(at < all.len);
    struct lp_span mark = lp_span_split(lp_span_from(all, at + sizeof FIELD - 1), '\r', &rest);
    struct lp_hop_claim claim = {
        lp_span_str(method), lp_span_str(path), lp_span_str(session), LP_SPAN("m2")};
    struct lp_hop_cache cache;
    assert_int_equal(lp_hop_cache_init(&cache, NULL), LP_OK);
    assert_int_equal(lp_hop_judge(&cache, &w->ring, &claim, mark, WALL_MS), LP_HOP_GOOD);
    lp_hop_cache_fini(&cache);
}

static void test_forwards(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    for (size_t i = 0; i < 3; i++) {
        ask(s->w, METHODS[i], "/mcp?tenant=a",
            "Mcp-Session-Id: m2." UUID "\r\nAuthorization: Bearer t\r\n");
        assert_true(has(s->w, REPLICA, "/mcp?tenant=a HTTP/1.1\r\n"));
        assert_true(has(s->w, REPLICA, "host: peer.test:2\r\n"));
        assert_true(has(s->w, REPLICA, "mcp-session-id: m2." UUID "\r\n"));
        assert_true(has(s->w, REPLICA, "Authorization: Bearer t\r\n"));
        assert_true(has(s->w, REPLICA, "x-forwarded-for: 192.0.2.7\r\n"));
        assert_mark(s->w, METHODS[i], "/mcp?tenant=a", "m2." UUID);
        /* its 404 passes as it is, and nothing is remembered of the session */
        answer_with(s->w, "404 Not Found", "", "{\"of\":\"the peer\"}");
        assert_true(has(s->w, CLIENT, "404 Not Found") && has(s->w, CLIENT, "of\":\"the peer"));
    }
    assert_int_equal(s->w->engine->sessions.live_count, 0);
    ask(s->w, "POST", "/mcp", "Mcp-Session-Id: m9." UUID "\r\n");
    assert_lost(s->w, "POST", "session_no_replica");
}

static void test_replays(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "m1");
    for (size_t i = 0; i < 3; i++) {
        ask(s->w, METHODS[i], "/mcp", "Mcp-Session-Id: m9." UUID "\r\n");
        assert_true(has(s->w, CLIENT, "HTTP/1.1 204 No Content\r\n"));
        assert_true(has(s->w, CLIENT, "fly-replay: prefer_instance=m9;timeout=5s\r\n"));
        assert_int_equal(s->w->connects, 0);
        assert_non_null(strstr(s->w->log, "-> m9 (replayed)"));
    }
    s->w->conf.replay = LP_REPLAY_FLY_INSTANCE;
    ask(s->w, "GET", "/mcp", "Mcp-Session-Id: m2." UUID "\r\n");
    assert_true(has(s->w, CLIENT, "fly-replay: instance=m2\r\n"));
}

/* Malformed ids and marks of the platform, for each method and mode. */
static void test_table(void **state)
{
    struct sidecar *s = *state;
    static const struct {
        const char *fields, *why;
    } CASES[] = {
        {"Mcp-Session-Id: " UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: m2;x=y." UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: m2,instance=m3." UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: abcdefghijklmnopqrstuvwxyz0123456." UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: .\r\n", "session_no_owner"},
        {"Mcp-Session-Id: ." UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: m2.\r\n", "session_no_owner"},
        {"Mcp-Session-Id:\r\n", "session_no_owner"},
        {"Mcp-Session-Id: m\xC3\xBC." UUID "\r\n", "session_no_owner"},
        {"Mcp-Session-Id: m2." UUID "\r\nFly-Replay-Src: instance=m3\r\n", "session_passed_on"},
        {"Mcp-Session-Id: m2." UUID "\r\nFly-Replay-Failed: 1\r\n", "session_passed_on"},
        {"Mcp-Session-Id: m9." UUID "\r\nFly-Replay-Src:\r\n", "session_passed_on"},
    };
    for (enum lp_replay mode = LP_REPLAY_OFF; mode <= LP_REPLAY_FLY_INSTANCE; mode++) {
        start(s, LP_IDS_OWNER, mode, "m1");
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
            for (size_t m = 0; m < 3; m++) {
                ask(s->w, METHODS[m], "/mcp", CASES[i].fields);
                assert_lost(s->w, METHODS[m], CASES[i].why);
            }
    }
    /* Our own that was replayed to us is served. */
    ask(s->w, "POST", "/mcp", "Mcp-Session-Id: m1.u1\r\nFly-Replay-Src: instance=m3\r\n");
    assert_true(has(s->w, REPLICA, "mcp-session-id: u1\r\n"));
}

/* A line end within a value is no request at all: nothing of it comes back. */
static void test_line_ends(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "m1");
    ask(s->w, "GET", "/mcp", "Mcp-Session-Id: m2\rfly-replay: x." UUID "\r\n");
    assert_true(has(s->w, CLIENT, "HTTP/1.1 400") && !has(s->w, CLIENT, "m2"));
    ask(s->w, "GET", "/mcp", "Mcp-Session-Id: m2\r\n ;x." UUID "\r\n");
    assert_true(has(s->w, CLIENT, "HTTP/1.1 400") && !has(s->w, CLIENT, "m2"));
}

static void test_no_id(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "m1");
    open_session(s->w);
    for (size_t i = 0; i < 3; i++) {
        ask(s->w, METHODS[i], "/mcp", "");
        assert_true(has(s->w, CLIENT, "HTTP/1.1 400") && has(s->w, CLIENT, "-32000"));
    }
}

/* --- hop marks that come --- */

static void write_mark(
    struct world *w, const char *session, const char *target, uint64_t wall_ms, char room[512])
{
    static unsigned char number;
    unsigned char nonce[LP_HOP_NONCE_BYTES] = {++number};
    char mark[LP_HOP_TEXT_MAX];
    struct lp_hop_claim claim = {
        LP_SPAN("POST"), LP_SPAN("/mcp"), lp_span_str(session), lp_span_str(target)};
    struct lp_span text = lp_hop_sign(&w->ring, &claim, wall_ms, nonce, mark);
    snprintf(
        room, 512, "Mcp-Session-Id: %s\r\nLimpet-Hop: %.*s\r\n", session, (int)text.len, text.ptr);
}

static void test_good_mark(void **state)
{
    struct sidecar *s = *state;
    char fields[512], more[1024];
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    static const struct lp_span ONLY = {"mcp.example", 11};
    s->w->server.hosts = &ONLY; /* the peer has looked at it, and asks us by our address */
    s->w->server.host_count = 1;
    write_mark(s->w, "m1.u1", "m1", WALL_MS, fields);
    snprintf(more, sizeof more,
        "%sX-Forwarded-For: 198.51.100.9\r\nForwarded: for=198.51.100.9\r\n", fields);
    ask(s->w, "POST", "/mcp", more);
    assert_true(has(s->w, REPLICA, "mcp-session-id: u1\r\n"));
    assert_true(has(s->w, REPLICA, "X-Forwarded-For: 198.51.100.9\r\n"));
    assert_true(has(s->w, REPLICA, "Forwarded: for=198.51.100.9\r\n"));
    assert_false(has(s->w, REPLICA, "192.0.2.7") || has(s->w, REPLICA, "limpet-hop"));
    answer_with(s->w, "200 OK", "", "{}");
    ask(s->w, "POST", "/mcp", more); /* the same again */
    assert_true(has(s->w, CLIENT, "HTTP/1.1 403") && has(s->w, CLIENT, "\"id\":\"q7\""));
    assert_non_null(strstr(s->w->log, "hop_refused"));
    write_mark(s->w, "m1.u1", "m1", WALL_MS - 60000, fields);
    ask(s->w, "POST", "/mcp", fields); /* recorded a minute ago */
    assert_true(has(s->w, CLIENT, "HTTP/1.1 403"));
    write_mark(s->w, "m2." UUID, "m1", WALL_MS, fields);
    ask(s->w, "POST", "/mcp", fields); /* a peer was wrong: never passed on twice */
    assert_lost(s->w, "POST", "session_passed_on");
    s->w->server.host_count = 0;
    for (int i = 0; i < 2; i++) { /* meant for another than us; told once a second */
        write_mark(s->w, "m2." UUID, "m2", WALL_MS, fields);
        ask(s->w, "POST", "/mcp", fields);
        assert_lost(s->w, "POST", "session_passed_on");
    }
}

/* What a client makes up changes nothing. */
static void test_forged_mark(void **state)
{
    struct sidecar *s = *state;
    char fields[512];
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    write_mark(s->w, "m2." UUID, "m1", WALL_MS, fields);
    fields[strlen(fields) - 4] ^= 1;
    ask(s->w, "POST", "/mcp", fields);
    assert_true(has(s->w, REPLICA, "host: peer.test:2\r\n"));
    assert_mark(s->w, "POST", "/mcp", "m2." UUID);
    answer_with(s->w, "200 OK", "", "{}");
    ask(s->w, "POST", "/mcp",
        "Mcp-Session-Id: m1.u1\r\nLimpet-Hop: true\r\nX-Forwarded-For: 203.0.113.1\r\n");
    assert_true(has(s->w, REPLICA, "mcp-session-id: u1\r\n"));
    assert_true(has(s->w, REPLICA, "x-forwarded-for: 192.0.2.7\r\n"));
    assert_false(has(s->w, REPLICA, "203.0.113.1") || has(s->w, REPLICA, "imp-hop: true"));
}

/* --- bodies --- */

static void head_only(struct world *w, const char *session, const char *framing)
{
    char text[1024];
    hang_up(w);
    accept_client(w, false, "192.0.2.7:1");
    w->connects = 0;
    w->written_len[CLIENT] = w->written_len[REPLICA] = 0;
    snprintf(text, sizeof text,
        "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        "Mcp-Session-Id: %s\r\n%s\r\n\r\n",
        session, framing);
    read_text(w, CLIENT, text);
}

/* By the head alone: nothing of the body is needed for a verdict. */
static void test_large_bodies(void **state)
{
    struct sidecar *s = *state;
    struct world *w = s->w;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "m1");
    head_only(w, "m9." UUID, "Content-Length: 1000000");
    assert_true(has(w, CLIENT, "fly-replay: prefer_instance=m9;timeout=5s\r\n"));
    head_only(w, "m9." UUID, "Content-Length: 1000000\r\nExpect: 100-continue");
    assert_true(has(w, CLIENT, "fly-replay: ") && !has(w, CLIENT, "100 Continue"));
    static const char *const LARGE[] = {"Content-Length: 1000001", "Transfer-Encoding: chunked"};
    for (size_t i = 0; i < 2; i++) {
        head_only(w, "m9." UUID, LARGE[i]);
        assert_true(has(w, CLIENT, "HTTP/1.1 413") && has(w, CLIENT, "1,000,000 bytes"));
        assert_true(has(w, CLIENT, "\"code\":-32600") && !has(w, CLIENT, "fly-replay"));
        head_only(w, "m2." UUID, LARGE[i]); /* a peer that is known gets it */
        assert_int_equal(w->written_len[CLIENT], 0);
    }
    static char body[70000];
    memset(body, ' ', sizeof body);
    memcpy(body, LIST, sizeof LIST - 1);
    head_only(w, "m2." UUID, "Content-Length: 1000001");
    read_span(w, CLIENT, lp_span(body, sizeof body));
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    assert_true(
        has(w, REPLICA, "host: peer.test:2\r\n") && has(w, REPLICA, "Content-Length: 1000001"));
    assert_true(w->written_len[REPLICA] > sizeof body);
    /* One of ours is nobody's business. */
    head_only(w, "m1.u1", "Content-Length: 1000001");
    assert_int_equal(w->written_len[CLIENT], 0);
    /* A modern request has no session, an initialize opens one. */
    head_only(w, "m9." UUID, "Content-Length: 1000001\r\nMCP-Protocol-Version: 2026-07-28");
    assert_int_equal(w->written_len[CLIENT], 0);
}

/* A new session is the local server's, whatever stale id comes along. */
static void test_initialize(void **state)
{
    struct sidecar *s = *state;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "m1");
    for (int i = 0; i < 8; i++) {
        tell_kind(s->w, LP_EV_BROKEN, CLIENT);
        accept_client(s->w, false, "192.0.2.7:1");
        request(s->w, "POST /mcp", "Mcp-Session-Id: m2." UUID "\r\n",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
        tell_kind(s->w, LP_EV_CONNECTED, REPLICA);
        assert_true(has(s->w, REPLICA, "host: r.test:1\r\n"));
        answer_with(s->w, "200 OK", "Mcp-Session-Id: u1\r\n", "{}");
        assert_true(has(s->w, CLIENT, "mcp-session-id: m1.u1\r\n"));
    }
    /* Its server gone, a peer does not stand in for it. */
    s->w->engine->servers[0].fleet.replicas[LOCAL].state = LP_REPLICA_GONE;
    tell_kind(s->w, LP_EV_BROKEN, CLIENT);
    accept_client(s->w, false, "192.0.2.7:1");
    request(s->w, "POST /mcp", "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    assert_true(has(s->w, CLIENT, "HTTP/1.1 503"));
    assert_false(lp_fleet_any_up(&s->w->engine->servers[0].fleet));
}

/* --- tickets --- */

static void seal_for(struct world *w, const char *owner, char room[LP_TICKET_TEXT_MAX + 32])
{
    struct lp_ticket_scope scope = {LP_TICKET_HTTP, LP_SPAN("default")};
    struct lp_ticket ticket = {.issued_ms = WALL_MS, .upstream_id = LP_SPAN("secret")};
    unsigned char nonce[LP_TICKET_NONCE_BYTES] = {1};
    char text[LP_TICKET_TEXT_MAX];
    size_t len;
    lp_ring_key_hash_name(&w->ring.keys[0], lp_span_str(owner), ticket.replica);
    assert_int_equal(lp_ticket_seal(&(struct lp_ticket_context){.ring = &w->ring, .scope = &scope},
                         &ticket, nonce, text, &len),
        LP_OK);
    snprintf(room, LP_TICKET_TEXT_MAX + 32, "Mcp-Session-Id: %.*s\r\n", (int)len, text);
}

static void test_sealed(void **state)
{
    struct sidecar *s = *state;
    char field[LP_TICKET_TEXT_MAX + 32];
    start(s, LP_IDS_SEALED, LP_REPLAY_OFF, "m1");
    open_session(s->w);
    assert_non_null(strstr(s->w->ticket, "mcp-session-id: lp1_"));
    ask(s->w, "POST", "/mcp", s->w->ticket);
    assert_true(
        has(s->w, REPLICA, "host: r.test:1\r\n") && has(s->w, REPLICA, "session-id: u1\r\n"));
    answer_with(s->w, "200 OK", "", "{}");
    seal_for(s->w, "m2", field);
    ask(s->w, "GET", "/mcp", field); /* the peer opens it itself */
    assert_true(has(s->w, REPLICA, "host: peer.test:2\r\n") && has(s->w, REPLICA, field + 15));
    assert_true(has(s->w, REPLICA, "limpet-hop: h1.m2.") && !has(s->w, REPLICA, "secret"));
    answer_with(s->w, "405 Method Not Allowed", "", "{}");
    s->w->conf.replay = LP_REPLAY_FLY;
    ask(s->w, "DELETE", "/mcp", field);
    assert_true(has(s->w, CLIENT, "fly-replay: prefer_instance=m2;timeout=5s\r\n"));
    seal_for(s->w, "m9", field); /* whose name nobody here knows */
    ask(s->w, "POST", "/mcp", field);
    assert_lost(s->w, "POST", "session_no_replica");
}

/* --- old SSE --- */

/* Without an owner the address holds a ticket alone, which nobody else can open. */
static void test_old_sse_without_owner(void **state)
{
    struct sidecar *s = *state;
    struct world *w = s->w;
    start(s, LP_IDS_OWNER, LP_REPLAY_FLY, "");
    ask(w, "GET", "/sse", "");
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        "event: endpoint\ndata: /messages?sessionId=u7\n\n");
    assert_true(has(w, CLIENT, "data: /sse?lp=lp1_"));
    ask(w, "POST", "/sse?lp=m2.lp1_abc", "");
    assert_lost(w, "POST", "session_forged");
}

static void test_old_sse(void **state)
{
    struct sidecar *s = *state;
    struct world *w = s->w;
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    ask(w, "GET", "/sse", "");
    assert_true(has(w, REPLICA, "GET /sse HTTP/1.1\r\nhost: r.test:1\r\n"));
    read_text(w, REPLICA,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        "event: endpoint\ndata: /messages?sessionId=u7&a=b\n\n");
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]), rest;
    size_t at = lp_span_search(all, LP_SPAN("/sse?lp=m1.lp1_"));
    assert_true(at < all.len);
    char line[1024], own[512], other[512];
    struct lp_span target = lp_span_split(lp_span_from(all, at), '\n', &rest);
    snprintf(own, sizeof own, "%.*s", (int)target.len, target.ptr);
    snprintf(other, sizeof other, "/sse?lp=m2%s", own + strlen("/sse?lp=m1"));
    /* On another connection, so that the stream stays open. */
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT_2};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.8:1"), .unix_uid = -1};
    tell(w, event);
    w->connect_result = REPLICA_2;
    snprintf(line, sizeof line,
        "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: "
        "%zu\r\n\r\n" LIST,
        own, sizeof LIST - 1);
    read_text(w, CLIENT_2, line);
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(
        has(w, REPLICA_2, "POST /messages?sessionId=u7&a=b HTTP/1.1\r\nhost: r.test:1\r\n"));
    answer_with(w, "202 Accepted", "", "");
    assert_true(has(w, CLIENT_2, "HTTP/1.1 202 Accepted"));
    w->connect_result = REPLICA;
    ask(w, "POST", other, "");
    struct lp_span asked = lp_span(w->written[REPLICA], w->written_len[REPLICA]);
    assert_true(lp_span_starts(lp_span_from(asked, 5), lp_span_str(other)));
    assert_true(has(w, REPLICA, "host: peer.test:2\r\n"));
    assert_mark(w, "POST", other, "");
    answer_with(w, "202 Accepted", "", "");
    w->conf.replay = LP_REPLAY_FLY;
    ask(w, "POST", other, "");
    assert_true(has(w, CLIENT, "fly-replay: prefer_instance=m2;timeout=5s\r\n"));
    ask(w, "POST", "/sse?lp=m2;x.lp1_abc", "");
    assert_lost(w, "POST", "session_no_owner");
    ask(w, "POST", "/sse?lp=m1.lp1_abc", "");
    assert_lost(w, "POST", "session_forged");
}

/* Cases OWN-01: an owner that hangs takes no more than its room, and nothing from others. */
static void test_owner_busy(void **state)
{
    struct sidecar *s = *state;
    struct world *w = s->w;
    start(s, LP_IDS_OWNER, LP_REPLAY_OFF, "m1");
    w->conf.waiting_max = 1;
    ask(w, "POST", "/mcp", "Mcp-Session-Id: m2." UUID "\r\n");
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT_2};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.8:1"), .unix_uid = -1};
    tell(w, event);
    static const char NEXT[] = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                               "Mcp-Session-Id: m2." UUID "\r\nContent-Length: 49\r\n\r\n" LIST;
    read_text(w, CLIENT_2, NEXT);
    assert_true(has(w, CLIENT_2, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_true(has(w, CLIENT_2, "retry-after: 1\r\n") && has(w, CLIENT_2, "\"id\":\"q7\""));
    assert_non_null(strstr(w->log, "owner_busy"));
    struct lp_metrics_replica rows[2];
    assert_int_equal(lp_engine_replicas(w->engine, rows, 2), 2);
    assert_int_equal(rows[LOCAL].waiting, 0);
    assert_int_equal(rows[PEER].waiting, 1);
    w->connect_result = REPLICA_2; /* a stream waits for its first event, and is not counted */
    read_text(w, CLIENT_2, "GET /mcp HTTP/1.1\r\nHost: a\r\nMcp-Session-Id: m2." UUID "\r\n\r\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA_2);
    assert_true(has(w, REPLICA_2, "GET /mcp HTTP/1.1\r\n"));
    w->connect_result = REPLICA;
    answer_with(w, "200 OK", "", "{}"); /* to the first: there is room again */
    assert_int_equal(w->engine->servers[0].fleet.replicas[PEER].waiting, 0);
    ask(w, "POST", "/mcp", "Mcp-Session-Id: m2." UUID "\r\n");
    assert_true(has(w, REPLICA, "mcp-session-id: m2." UUID "\r\n"));
    tell_kind(w, LP_EV_BROKEN, REPLICA); /* it is tried again, and counts on */
    assert_int_equal(w->engine->servers[0].fleet.replicas[PEER].waiting, 1);
    tell(w, (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .conn = REPLICA, .u.error = LP_ELIMIT});
    assert_int_equal(w->engine->servers[0].fleet.replicas[PEER].waiting, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_mints),
        CASE(test_no_owner),
        CASE(test_forwards),
        CASE(test_replays),
        CASE(test_table),
        CASE(test_line_ends),
        CASE(test_no_id),
        CASE(test_good_mark),
        CASE(test_forged_mark),
        CASE(test_large_bodies),
        CASE(test_initialize),
        CASE(test_owner_busy),
        CASE(test_sealed),
        CASE(test_old_sse),
        CASE(test_old_sse_without_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
