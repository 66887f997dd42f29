/* The sample server, driven through real HTTP bytes by a shell in memory: sessions, statuses,
 * streams, the tools, limits and time. No sockets, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "serve/guard.h"
#include "serve/member.h"
#include "serve/sample.h"

enum { CONNS = 600, SECOND = 1000000 };

struct peer {
    struct lp_buf got;
    size_t window; /* bytes it takes before its reader stops; 0: all */
    bool is_open;
    bool is_loopback_listener;
    enum lp_close_how how;
    struct lp_span drain;
};

struct world {
    struct lp_shell shell;
    struct lp_sample *sample;
    struct peer peers[CONNS];
    uint64_t now_us;
    uint64_t timer_at_us;
    bool stopped;
    uint32_t next;
};

/* --- the shell --- */

static struct peer *peer_of(struct world *w, lp_id conn)
{
    return &w->peers[lp_id_slot(conn)];
}

static size_t give(struct peer *peer, struct lp_span bytes)
{
    size_t n = peer->window && bytes.len > peer->window ? peer->window : bytes.len;
    if (peer->window)
        peer->window = peer->window > n ? peer->window - n : 1;
    assert_int_equal(lp_buf_append(&peer->got, lp_span(bytes.ptr, n)), 0);
    return n;
}

static int64_t on_write(struct peer *peer, const struct lp_action *action)
{
    int64_t taken = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++)
        if (!peer->window)
            taken += (int64_t)give(peer, action->u.write.parts[i]);
    return taken;
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    switch (action->kind) {
    case LP_ACT_WRITE:
        return on_write(peer_of(w, action->conn), action);
    case LP_ACT_DRAIN:
        peer_of(w, action->conn)->drain = action->u.drain;
        return 0;
    case LP_ACT_CLOSE:
        assert_true(peer_of(w, action->conn)->is_open);
        peer_of(w, action->conn)->is_open = false;
        peer_of(w, action->conn)->how = action->u.close;
        return 0;
    case LP_ACT_TIMER:
        w->timer_at_us = action->u.timer_at_us;
        return 0;
    case LP_ACT_STOPPED:
        w->stopped = true;
        return 0;
    default:
        return 0;
    }
}

static void tell(struct world *w, struct lp_event event)
{
    event.mono_us = w->now_us;
    lp_sample_event(w->sample, &event);
}

/* Lets time pass, with every timer on its way. */
static void pass(struct world *w, uint64_t us)
{
    uint64_t end_us = w->now_us + us;
    while (w->timer_at_us <= end_us) {
        w->now_us = w->timer_at_us > w->now_us ? w->timer_at_us : w->now_us;
        w->timer_at_us = UINT64_MAX;
        tell(w, (struct lp_event){.kind = LP_EV_TIMER});
    }
    w->now_us = end_us;
}

static void start(struct world *w, uint32_t session_max)
{
    *w = (struct world){.now_us = 1000, .timer_at_us = UINT64_MAX};
    w->shell = (struct lp_shell){w, perform};
    struct lp_sample_args args = {.shell = &w->shell, .session_max = session_max, .seed = {7}};
    args.name = LP_SPAN("blue");
    args.path = LP_SPAN("/mcp");
    assert_int_equal(lp_sample_new(&args, &w->sample), 0);
}

static void finish(struct world *w)
{
    lp_sample_free(w->sample);
    for (size_t i = 0; i < CONNS; i++)
        lp_buf_release(&w->peers[i].got);
}

static lp_id dial_to(struct world *w, bool is_loopback)
{
    uint32_t slot = w->next++;
    assert_true(slot < CONNS);
    lp_id conn = (lp_id)1 << 32 | (slot + 1);
    lp_buf_init(&w->peers[slot].got, 64 << 20);
    w->peers[slot].is_open = true;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = conn};
    event.u.accepted.is_loopback = is_loopback;
    event.u.accepted.peer = LP_SPAN("192.0.2.7:1234");
    tell(w, event);
    return conn;
}

static lp_id dial(struct world *w)
{
    return dial_to(w, true);
}

static void send_bytes(struct world *w, lp_id conn, struct lp_span bytes)
{
    tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = bytes});
}

/* What came since the last call, as a C string that lives until the next one. */
static const char *got(struct world *w, lp_id conn)
{
    static char text[1 << 16];
    struct lp_span bytes = lp_buf_span(&peer_of(w, conn)->got);
    size_t n = bytes.len < sizeof text ? bytes.len : sizeof text - 1;
    if (n)
        memcpy(text, bytes.ptr, n);
    text[n] = 0;
    lp_buf_clear(&peer_of(w, conn)->got);
    return text;
}

/* --- the client --- */

struct client {
    struct world *world;
    char session[128];
    const char *extra; /* further header lines */
};

static const char *ask(struct client *c, lp_id conn, const char *method, const char *body)
{
    static char text[1 << 16];
    char session[160] = "";
    char framing[64] = "";
    if (c->session[0])
        snprintf(session, sizeof session, "Mcp-Session-Id: %s\r\n", c->session);
    if (body)
        snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", strlen(body));
    int n = snprintf(text, sizeof text,
        "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:3001\r\nContent-Type: application/json\r\n"
        "%s%s%s\r\n%s",
        method, session, framing,
        c->extra ? c->extra : "Accept: application/json, text/event-stream\r\n", body ? body : "");
    send_bytes(c->world, conn, lp_span(text, (size_t)n));
    return got(c->world, conn);
}

static const char *post(struct client *c, const char *body)
{
    return ask(c, dial(c->world), "POST", body);
}

/* Without regard to case, as header names are. */
static void expect_part(const char *text, const char *part, bool wanted)
{
    if ((strcasestr(text, part) != NULL) != wanted)
        fail_msg("%s \"%s\" in:\n%s", wanted ? "no" : "there is", part, text);
}

static void expect_status(const char *text, const char *code)
{
    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || strncmp(text + 9, code, 3) != 0)
        fail_msg("not %s: %s", code, text);
}

#define HAS(text, part) expect_part(text, part, true)
#define LACKS(text, part) expect_part(text, part, false)
#define STATUS(text, code) expect_status(text, code)

#define CALL(id, tool, arguments)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool    \
    "\",\"arguments\":" arguments "}}"
#define SLOW(id, arguments)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"_meta\":{"         \
    "\"progressToken\":\"p1\"},\"name\":\"slow\",\"arguments\":" arguments "}}"
#define INITIALIZE(version)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"" version "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

static const char *open_as(struct client *c, const char *initialize)
{
    c->session[0] = 0;
    const char *text = post(c, initialize);
    const char *id = strstr(text, "mcp-session-id: ");
    STATUS(text, "200");
    assert_non_null(id);
    assert_int_equal(sscanf(id, "mcp-session-id: %127[^\r]", c->session), 1);
    assert_int_equal(strlen(c->session), 32);
    return text;
}

static struct client new_client(struct world *w)
{
    struct client c = {.world = w};
    open_as(&c, INITIALIZE("2025-11-25"));
    return c;
}

/* --- tests: the life of a session --- */

static void a_session_keeps_its_counter(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    STATUS(text, "202");
    HAS(text, "content-length: 0\r\n");
    HAS(post(&c, CALL("1", "counter", "{}")), "\"structuredContent\":{\"count\":1,");
    HAS(post(&c, CALL("2", "counter", "{}")), "{\"count\":2,\"replica\":\"blue\"}}}");
    struct client other = new_client(&w);
    assert_string_not_equal(c.session, other.session);
    HAS(post(&other, CALL("1", "counter", "{}")), "\"count\":1,");
    assert_int_equal(lp_sample_session_count(w.sample), 2);
    finish(&w);
}

static void the_version_is_negotiated(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    HAS(open_as(&c, INITIALIZE("2025-03-26")), "\"protocolVersion\":\"2025-03-26\"");
    HAS(open_as(&c, INITIALIZE("2025-06-18")), "\"protocolVersion\":\"2025-06-18\"");
    HAS(open_as(&c, INITIALIZE("2031-01-01")), "\"protocolVersion\":\"2025-11-25\"");
    HAS(open_as(&c, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\"}"),
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"protocolVersion\":\"2025-11-25\"");
    c.extra = "MCP-Protocol-Version: 2025-06-18\r\n";
    STATUS(post(&c, CALL("1", "whoami", "{}")), "200");
    c.extra = "MCP-Protocol-Version: 2026-07-28\r\n";
    const char *text = post(&c, CALL("1", "whoami", "{}"));
    STATUS(text, "400");
    HAS(text, "\"code\":-32000,\"message\":\"Bad Request: Unsupported protocol version");
    finish(&w);
}

static void ids_decide_the_status(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = {.world = &w};
    const char *const methods[] = {"POST", "GET", "DELETE"};
    for (size_t i = 0; i < 3; i++) {
        const char *body = i ? NULL : CALL("5", "whoami", "{}");
        c.session[0] = 0;
        const char *text = ask(&c, dial(&w), methods[i], body);
        STATUS(text, "400");
        HAS(text, "\"code\":-32000,\"message\":\"Bad Request: Mcp-Session-Id header is required\"");
        const char *const unknown[] = {"0123456789abcdef0123456789abcdef",
            "0123456789ABCDEF0123456789ABCDEF", "short", "z123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
        for (size_t j = 0; j < sizeof unknown / sizeof *unknown; j++) {
            snprintf(c.session, sizeof c.session, "%s", unknown[j]);
            text = ask(&c, dial(&w), methods[i], body);
            STATUS(text, "404");
            HAS(text, "\"code\":-32001,\"message\":\"Session not found\"");
        }
    }
    finish(&w);
}

static void a_deleted_session_is_gone(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    STATUS(ask(&c, stream, "GET", NULL), "200");
    lp_id call = dial(&w);
    STATUS(ask(&c, call, "POST", SLOW("3", "{\"ms\":1000,\"steps\":1}")), "200");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "200");
    HAS(got(&w, stream), "0\r\n\r\n");
    HAS(got(&w, call), "0\r\n\r\n");
    assert_int_equal(lp_sample_session_count(w.sample), 0);
    STATUS(post(&c, CALL("1", "whoami", "{}")), "404");
    STATUS(ask(&c, dial(&w), "DELETE", NULL), "404");
    pass(&w, 2 * SECOND);
    assert_string_equal(got(&w, call), "");
    finish(&w);
}

static void idle_sessions_expire_and_busy_ones_do_not(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client idle = new_client(&w);
    struct client busy = new_client(&w);
    STATUS(ask(&busy, dial(&w), "GET", NULL), "200");
    pass(&w, 600ull * SECOND);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "200");
    pass(&w, 899ull * SECOND);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "200");
    pass(&w, 901ull * SECOND);
    assert_int_equal(lp_sample_session_count(w.sample), 1);
    STATUS(post(&idle, CALL("1", "whoami", "{}")), "404");
    STATUS(post(&busy, CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void the_longest_idle_session_makes_room(void **state)
{
    (void)state;
    struct world w;
    start(&w, 3);
    struct client a = new_client(&w);
    struct client b = new_client(&w);
    struct client c = new_client(&w);
    STATUS(post(&a, CALL("1", "whoami", "{}")), "200");
    struct client d = new_client(&w);
    assert_int_equal(lp_sample_session_count(w.sample), 3);
    STATUS(post(&b, CALL("1", "whoami", "{}")), "404");
    struct client *const alive[] = {&a, &c, &d};
    for (size_t i = 0; i < 3; i++)
        STATUS(ask(alive[i], dial(&w), "GET", NULL), "200");
    b.session[0] = 0;
    const char *text = post(&b, INITIALIZE("2025-11-25"));
    STATUS(text, "503");
    HAS(text, "retry-after: 1\r\n");
    finish(&w);
}

static void a_stale_id_does_not_hinder_initialize(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    snprintf(c.session, sizeof c.session, "0123456789abcdef0123456789abcdef");
    const char *text = post(&c, INITIALIZE("2025-11-25"));
    STATUS(text, "200");
    HAS(text, "mcp-session-id: ");
    LACKS(text, c.session);
    finish(&w);
}

/* --- messages --- */

static void bad_bodies_are_refused(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *const not_json[] = {"", "{", "{\"a\":1} x", "nonsense"};
    for (size_t i = 0; i < 4; i++) {
        const char *text = post(&c, not_json[i]);
        STATUS(text, "400");
        HAS(text, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,");
    }
    const char *const no_message[] = {"1", "\"x\"", "{}", "{\"id\":1}",
        "{\"id\":1.5,\"method\":\"ping\"}", "{\"id\":1,\"id\":2,\"method\":\"ping\"}", "[]", "[1]"};
    for (size_t i = 0; i < 8; i++) {
        const char *text = post(&c, no_message[i]);
        STATUS(text, "400");
        HAS(text, "\"code\":-32600,");
    }
    finish(&w);
}

static void unknown_things_are_answered_in_200(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}");
    STATUS(text, "200");
    HAS(text, "{\"code\":-32601,\"message\":\"Method not found\"}");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"prompts/list\"}"),
        "\"id\":12345678901234567890,\"error\":{\"code\":-32601");
    HAS(post(&c, CALL("1", "nothing", "{}")), "{\"code\":-32602,\"message\":\"Unknown tool\"}");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}"), "\"code\":-32602");
    HAS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}"), "\"id\":9,\"result\":{}}");
    STATUS(post(&c, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"), "202");
    finish(&w);
}

static void the_tools_do_what_they_say(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *text = post(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    const char *const names[] = {"echo", "whoami", "counter", "slow", "notify"};
    for (size_t i = 0; i < 5; i++)
        HAS(text, names[i]);
    HAS(post(&c, CALL("1", "echo", "{\"a\":[{}],\"message\":\"h\\u00e9 \\\"you\\\"\"}")),
        "\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9 \\\"you\\\"\"}]}}");
    HAS(post(&c, CALL("1", "echo", "{\"message\":7}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "echo", "[]")), "\"code\":-32602");
    HAS(post(&c, CALL("\"x\"", "whoami", "{}")),
        "\"id\":\"x\",\"result\":{\"content\":[{\"type\":"
        "\"text\",\"text\":\"blue\"}]}}");
    HAS(post(&c, CALL("1", "slow", "{\"ms\":600001}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "slow", "{\"steps\":0}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "slow", "{\"steps\":-1}")), "\"code\":-32602");
    HAS(post(&c, CALL("1", "notify", "{\"count\":101}")), "\"code\":-32602");
    finish(&w);
}

static void batches_belong_to_2025_03_26(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    const char *batch = "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"},"
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},"
                        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}},7,"
                        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
                        "\"name\":\"slow\"}}]";
    STATUS(post(&c, batch), "400");
    open_as(&c, INITIALIZE("2025-03-26"));
    const char *text = post(&c, batch);
    STATUS(text, "200");
    HAS(text,
        "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":null,"
        "\"error\":{\"code\":-32600,");
    HAS(text, ",{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,");
    STATUS(post(&c, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]"), "202");
    STATUS(post(&c, "[" INITIALIZE("2025-03-26") "]"), "400");
    char many[4096] = "[1";
    for (int i = 0; i < 100; i++)
        strcat(many, ",1");
    strcat(many, "]");
    HAS(post(&c, many), "at most 100 messages");
    finish(&w);
}

/* --- streams --- */

static void slow_shows_progress(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    const char *text = ask(&c, conn, "POST", SLOW("\"s\"", "{\"ms\":900,\"steps\":3}"));
    STATUS(text, "200");
    HAS(text, "content-type: text/event-stream\r\n");
    HAS(text, "x-accel-buffering: no\r\n");
    LACKS(text, "data:");
    pass(&w, 300000);
    HAS(got(&w, conn), "\"params\":{\"progressToken\":\"p1\",\"progress\":1,\"total\":3}}\n\n");
    pass(&w, 300000);
    HAS(got(&w, conn), "\"progress\":2,");
    pass(&w, 300000);
    text = got(&w, conn);
    HAS(text, "\"progress\":3,");
    HAS(text,
        "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{\"content\":[{\"type\":\"text\","
        "\"text\":\"done in 3 steps\"}]}}\n\n\r\n0\r\n\r\n");
    STATUS(ask(&c, conn, "POST", CALL("1", "whoami", "{}")), "200");
    finish(&w);
}

static void slow_is_plain_json_where_no_stream_is_taken(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    c.extra = "Accept: application/json\r\n";
    lp_id conn = dial(&w);
    assert_string_equal(ask(&c, conn, "POST", SLOW("7", "{\"ms\":900,\"steps\":3}")), "");
    pass(&w, 899999);
    assert_string_equal(got(&w, conn), "");
    pass(&w, 1);
    const char *text = got(&w, conn);
    HAS(text, "content-type: application/json\r\n");
    HAS(text, "\"id\":7,\"result\"");
    finish(&w);
}

static void a_cancelled_call_ends(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    struct client other = new_client(&w);
    lp_id as_stream = dial(&w);
    lp_id as_json = dial(&w);
    ask(&c, as_stream, "POST", SLOW("7", "{\"ms\":900}"));
    c.extra = "Accept: application/json\r\n";
    ask(&c, as_json, "POST", SLOW("8", "{\"ms\":900}"));
    c.extra = NULL;
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"
    STATUS(post(&other, CANCEL("7")), "202");
    assert_string_equal(got(&w, as_stream), "");
    STATUS(post(&c, CANCEL("7")), "202");
    assert_string_equal(got(&w, as_stream), "0\r\n\r\n");
    STATUS(post(&c, CANCEL("8")), "202");
    HAS(got(&w, as_json), "\"id\":8,\"error\":{\"code\":-32800,");
    finish(&w);
}

static void the_get_stream_brings_notifications(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 0\"");
    lp_id stream = dial(&w);
    const char *text = ask(&c, stream, "GET", NULL);
    STATUS(text, "200");
    HAS(text, "cache-control: no-cache, no-transform\r\n");
    HAS(text, ": limpet replica\n\n");
    STATUS(ask(&c, dial(&w), "GET", NULL), "409");
    HAS(post(&c, CALL("1", "notify", "{\"count\":2}")), "\"sent 2\"");
    text = got(&w, stream);
    HAS(text, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"");
    HAS(text, "{\"replica\":\"blue\",\"number\":2}");
    pass(&w, 15 * SECOND);
    HAS(got(&w, stream), ": limpet replica\n\n");
#define LEVEL(name)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{\"level\":" name "}}"
    HAS(post(&c, LEVEL("\"loud\"")), "\"code\":-32602");
    HAS(post(&c, LEVEL("\"error\"")), "\"result\":{}");
    HAS(post(&c, CALL("1", "notify", "{}")), "\"sent 0\"");
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = stream});
    STATUS(ask(&c, dial(&w), "GET", NULL), "200");
    c.extra = "Accept: application/json\r\n";
    STATUS(ask(&c, dial(&w), "GET", NULL), "406");
    finish(&w);
}

static void broken_connections_leave_nothing_behind(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    lp_id call = dial(&w);
    lp_id half = dial(&w);
    lp_id left = dial(&w);
    ask(&c, stream, "GET", NULL);
    ask(&c, call, "POST", SLOW("7", "{\"ms\":900}"));
    ask(&c, left, "POST", SLOW("8", "{\"ms\":900}"));
    send_bytes(&w, half, LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-"));
    const lp_id broken[] = {stream, call, half};
    for (size_t i = 0; i < 3; i++) {
        peer_of(&w, broken[i])->is_open = false;
        tell(&w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = broken[i]});
    }
    tell(&w, (struct lp_event){.kind = LP_EV_EOF, .conn = left});
    assert_false(peer_of(&w, left)->is_open);
    pass(&w, 2 * SECOND);
    STATUS(ask(&c, dial(&w), "GET", NULL), "200");
    finish(&w);
}

/* --- HTTP --- */

static void heads_decide_early(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    static const struct {
        const char *request, *status, *part;
    } CASES[] = {
        {"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404", "-32600"},
        {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", "405",
            "allow: GET, POST, DELETE\r\n"},
        {"HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "405", "allow: "},
        {"POST /mcp HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\n{}", "415", "-32600"},
        {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", "403", "Host"},
        {"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n", "403",
            "Origin"},
        {"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://localhost:6274\r\n"
         "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
            "400", "-32600"},
        {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         "Content-Length: 4194305\r\n\r\n",
            "413", "-32600"},
        {"GET /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n", "400", "connection: close"},
        {"GET  /mcp HTTP/1.1\r\n\r\n", "400", "connection: close"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        lp_id conn = dial(&w);
        send_bytes(&w, conn, lp_span_str(CASES[i].request));
        const char *text = got(&w, conn);
        STATUS(text, CASES[i].status);
        HAS(text, CASES[i].part);
    }
    lp_id open = dial_to(&w, false);
    send_bytes(&w, open, LP_SPAN("GET /mcp HTTP/1.1\r\nHost: mcp.example\r\n\r\n"));
    STATUS(got(&w, open), "400");
    finish(&w);
}

static void continue_is_said_before_the_body(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    send_bytes(&w, conn,
        LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    assert_string_equal(got(&w, conn), "HTTP/1.1 100 Continue\r\n\r\n");
    send_bytes(&w, conn, LP_SPAN("{}"));
    STATUS(got(&w, conn), "400");
    finish(&w);
}

/* A body that grows over the limit without having said so. */
static void chunked_bodies_have_a_limit(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    static char chunk[65536];
    memset(chunk, ' ', sizeof chunk);
    send_bytes(&w, conn,
        LP_SPAN("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 65 && peer_of(&w, conn)->is_open; i++) {
        send_bytes(&w, conn, LP_SPAN("10000\r\n"));
        send_bytes(&w, conn, lp_span(chunk, sizeof chunk));
        send_bytes(&w, conn, LP_SPAN("\r\n"));
    }
    STATUS(got(&w, conn), "413");
    assert_false(peer_of(&w, conn)->is_open);
    finish(&w);
}

/* An answer larger than the backlog may be waits for its reader, and arrives whole. */
static void a_large_answer_waits_for_its_reader(void **state)
{
    (void)state;
    enum { SIZE = 3 << 20 };
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id conn = dial(&w);
    struct peer *peer = peer_of(&w, conn);
    struct lp_buf body;
    lp_buf_init(&body, 8 << 20);
    char *room;
    assert_int_equal(
        lp_buf_append(&body,
            LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\""
                    ":{\"name\":\"echo\",\"arguments\":{\"message\":\"")),
        0);
    assert_int_equal(lp_buf_reserve(&body, SIZE, &room), 0);
    memset(room, 'm', SIZE);
    lp_buf_commit(&body, SIZE);
    assert_int_equal(lp_buf_append(&body, LP_SPAN("\"}}}")), 0);
    char head[512];
    int n = snprintf(head, sizeof head,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Mcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n",
        c.session, body.len);
    peer->window = 1000;
    send_bytes(&w, conn, lp_span(head, (size_t)n));
    send_bytes(&w, conn, lp_buf_span(&body));
    while (peer->drain.len) {
        struct lp_span drain = peer->drain;
        peer->drain = lp_span(NULL, 0);
        assert_int_equal(lp_buf_append(&peer->got, drain), 0);
        tell(&w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
    struct lp_span answer = lp_buf_span(&peer->got);
    assert_true(answer.len > SIZE);
    assert_true(lp_span_ends(answer, LP_SPAN("m\"}]}}")));
    lp_buf_release(&body);
    finish(&w);
}

static void stop_ends_streams_and_lets_calls_finish(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    struct client c = new_client(&w);
    lp_id stream = dial(&w);
    lp_id call = dial(&w);
    ask(&c, stream, "GET", NULL);
    ask(&c, call, "POST", SLOW("7", "{\"ms\":900,\"steps\":1}"));
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    assert_false(peer_of(&w, stream)->is_open);
    assert_false(w.stopped);
    lp_id late = dial(&w);
    assert_false(peer_of(&w, late)->is_open);
    pass(&w, SECOND);
    HAS(got(&w, call), "done in 1 steps");
    assert_true(w.stopped);
    finish(&w);
}

static void silent_connections_are_closed(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    lp_id conn = dial(&w);
    pass(&w, 76ull * SECOND);
    assert_false(peer_of(&w, conn)->is_open);
    lp_id half = dial(&w);
    send_bytes(&w, half, LP_SPAN("POST /mcp HTTP/1.1\r\n"));
    pass(&w, 31ull * SECOND);
    STATUS(got(&w, half), "408");
    finish(&w);
}

static void names_and_paths_have_limits(void **state)
{
    (void)state;
    char text[512];
    memset(text, 'a', sizeof text);
    struct lp_sample *sample = NULL;
    struct lp_sample_args args = {.name = lp_span(text, 65), .path = LP_SPAN("/mcp")};
    assert_int_equal(lp_sample_new(&args, &sample), LP_ETOO_LONG);
    args = (struct lp_sample_args){.name = LP_SPAN("a"), .path = lp_span(text, 257)};
    assert_int_equal(lp_sample_new(&args, &sample), LP_ETOO_LONG);
    args = (struct lp_sample_args){.name = LP_SPAN("a \"b\""), .path = LP_SPAN("/mcp")};
    assert_int_equal(lp_sample_new(&args, &sample), LP_ESYNTAX);
    lp_sample_free(NULL);
}

/* --- the small rooms beside it --- */

static void loopback_names_are_known(void **state)
{
    (void)state;
    const char *const good[] = {
        "localhost", "LOCALHOST:80", "127.0.0.1", "127.9.8.7:1", "[::1]", "[::1]:8080"};
    const char *const bad[] = {"", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0",
        "127.0.0.256", "127.0.0.x", "10.0.0.1", "[::2]", "::1", "127.0.0.1:99999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(lp_guard_is_loopback_host(lp_span_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(lp_guard_is_loopback_host(lp_span_str(bad[i])));
}

static void origins_must_be_loopback_too(void **state)
{
    (void)state;
    static struct lp_head head;
    assert_true(lp_guard_allows(&head));
    lp_head_add(&head, LP_FIELD_ORIGIN, LP_SPAN("http://[::1]:99"));
    assert_true(lp_guard_allows(&head));
    const char *const bad[] = {"null", "http://evil.example", "", "localhost"};
    for (size_t i = 0; i < 4; i++) {
        head.fields[0].value = lp_span_str(bad[i]);
        assert_false(lp_guard_allows(&head));
    }
}

static void expect_member(const char *json, const char *key, const char *value)
{
    struct lp_span found = lp_member(lp_span_str(json), lp_span_str(key));
    assert_int_equal(found.len, strlen(value));
    assert_memory_equal(found.ptr ? found.ptr : "", value, found.len);
}

static void members_are_spans_of_the_text(void **state)
{
    (void)state;
    expect_member("{\"a\":{\"b\":1},\"b\":[2,{\"a\":3}],\"c\":null}", "a", "{\"b\":1}");
    expect_member("{\"a\":{\"b\":1},\"b\":[2,{\"a\":3}],\"c\":null}", "b", "[2,{\"a\":3}]");
    expect_member("{\"a\":{\"b\":1},\"c\":\"x\\\"y\"}", "c", "\"x\\\"y\"");
    expect_member("{\"\\u0061\":1.0}", "a", "1.0");
    expect_member("{\"a\":1,\"a\":2}", "a", "1");
    expect_member("{\"x\":{\"a\":1}}", "a", "");
    expect_member("[\"a\",1]", "a", "");
    expect_member("\"a\"", "a", "");
    expect_member("", "a", "");
    uint64_t n = 5;
    assert_true(lp_member_u64(LP_SPAN("{\"a\":7}"), LP_SPAN("b"), &n));
    assert_int_equal(n, 5);
    assert_true(lp_member_u64(LP_SPAN("{\"a\":7}"), LP_SPAN("a"), &n));
    assert_int_equal(n, 7);
    assert_false(lp_member_u64(LP_SPAN("{\"a\":7.0}"), LP_SPAN("a"), &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_keeps_its_counter),
        cmocka_unit_test(the_version_is_negotiated),
        cmocka_unit_test(ids_decide_the_status),
        cmocka_unit_test(a_deleted_session_is_gone),
        cmocka_unit_test(idle_sessions_expire_and_busy_ones_do_not),
        cmocka_unit_test(the_longest_idle_session_makes_room),
        cmocka_unit_test(a_stale_id_does_not_hinder_initialize),
        cmocka_unit_test(bad_bodies_are_refused),
        cmocka_unit_test(unknown_things_are_answered_in_200),
        cmocka_unit_test(the_tools_do_what_they_say),
        cmocka_unit_test(batches_belong_to_2025_03_26),
        cmocka_unit_test(slow_shows_progress),
        cmocka_unit_test(slow_is_plain_json_where_no_stream_is_taken),
        cmocka_unit_test(a_cancelled_call_ends),
        cmocka_unit_test(the_get_stream_brings_notifications),
        cmocka_unit_test(broken_connections_leave_nothing_behind),
        cmocka_unit_test(heads_decide_early),
        cmocka_unit_test(continue_is_said_before_the_body),
        cmocka_unit_test(chunked_bodies_have_a_limit),
        cmocka_unit_test(a_large_answer_waits_for_its_reader),
        cmocka_unit_test(stop_ends_streams_and_lets_calls_finish),
        cmocka_unit_test(silent_connections_are_closed),
        cmocka_unit_test(names_and_paths_have_limits),
        cmocka_unit_test(loopback_names_are_known),
        cmocka_unit_test(origins_must_be_loopback_too),
        cmocka_unit_test(members_are_spans_of_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
