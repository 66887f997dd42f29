/* A server in a world of memory: a shell that keeps what is written, a clock that is turned
 * by hand, and a client that speaks real HTTP. For the tests of the room serve. */
#ifndef LP_TEST_SERVE_HARNESS_H
#define LP_TEST_SERVE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "serve/server.h"

enum { CONNS = 4200, SECOND = 1000000 };

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
    struct lp_server *server;
    struct peer peers[CONNS];
    uint64_t now_us;
    uint64_t wall_ms;
    uint64_t timer_at_us;
    bool stopped;
    uint32_t next;
};

/* --- the shell --- */

static inline struct peer *peer_of(struct world *w, lp_id conn)
{
    return &w->peers[lp_id_slot(conn)];
}

static inline size_t give(struct peer *peer, struct lp_span bytes)
{
    size_t n = peer->window && bytes.len > peer->window ? peer->window : bytes.len;
    if (peer->window)
        peer->window = peer->window > n ? peer->window - n : 1;
    assert_int_equal(lp_buf_append(&peer->got, lp_span(bytes.ptr, n)), 0);
    return n;
}

static inline int64_t on_write(struct peer *peer, const struct lp_action *action)
{
    int64_t taken = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++)
        if (!peer->window)
            taken += (int64_t)give(peer, action->u.write.parts[i]);
    return taken;
}

static inline int64_t perform(void *ctx, const struct lp_action *action)
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

/* Set by tests in which memory runs out: called when the server begins to work, and is done. */
static void (*work_hook)(bool begins);

static inline void tell(struct world *w, struct lp_event event)
{
    event.mono_us = w->now_us;
    event.wall_ms = w->wall_ms;
    if (work_hook)
        work_hook(true);
    lp_server_event(w->server, &event);
    if (work_hook)
        work_hook(false);
}

/* Lets time pass, with every timer on its way. */
static inline void pass(struct world *w, uint64_t us)
{
    uint64_t end_us = w->now_us + us;
    while (w->timer_at_us <= end_us) {
        w->now_us = w->timer_at_us > w->now_us ? w->timer_at_us : w->now_us;
        w->timer_at_us = UINT64_MAX;
        tell(w, (struct lp_event){.kind = LP_EV_TIMER});
    }
    w->now_us = end_us;
}

/* A server with that offer; further arguments as given. */
static inline void start_server(
    struct world *w, const struct lp_offer *offer, struct lp_server_args args)
{
    *w = (struct world){.now_us = 1000, .timer_at_us = UINT64_MAX};
    w->shell = (struct lp_shell){w, perform};
    args.shell = &w->shell;
    args.offer = offer;
    args.name = LP_SPAN("test");
    args.version = LP_SPAN("1");
    args.path = LP_SPAN("/mcp");
    args.seed[0] = 9;
    assert_int_equal(lp_server_new(&args, &w->server), 0);
}

static inline void finish(struct world *w)
{
    lp_server_free(w->server);
    for (size_t i = 0; i < CONNS; i++)
        lp_buf_release(&w->peers[i].got);
}

static inline lp_id dial_to(struct world *w, bool is_loopback)
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

static inline lp_id dial(struct world *w)
{
    return dial_to(w, true);
}

static inline void send_bytes(struct world *w, lp_id conn, struct lp_span bytes)
{
    tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = bytes});
}

/* What came since the last call, as a C string that lives until the next one. */
static inline const char *got(struct world *w, lp_id conn)
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

static inline const char *ask(struct client *c, lp_id conn, const char *method, const char *body)
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

static inline const char *post(struct client *c, const char *body)
{
    return ask(c, dial(c->world), "POST", body);
}

/* Without regard to case, as header names are. */
static inline void expect_part(const char *text, const char *part, bool wanted)
{
    if ((strcasestr(text, part) != NULL) != wanted)
        fail_msg("%s \"%s\" in:\n%s", wanted ? "no" : "there is", part, text);
}

static inline void expect_status(const char *text, const char *code)
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

static inline const char *open_as(struct client *c, const char *initialize)
{
    c->session[0] = 0;
    const char *text = post(c, initialize);
    const char *id = strstr(text, "mcp-session-id: ");
    STATUS(text, "200");
    assert_non_null(id);
    assert_int_equal(sscanf(id, "mcp-session-id: %127[^\r]", c->session), 1);
    assert_in_range(strlen(c->session), 36, 69);
    return text;
}

static inline struct client new_client(struct world *w)
{
    struct client c = {.world = w};
    open_as(&c, INITIALIZE("2025-11-25"));
    return c;
}

#endif
