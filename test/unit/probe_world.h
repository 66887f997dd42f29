/* A fleet behind a balancer, in memory: what the probe's unit tests probe. Virtual time, seeded
 * chance, HTTP as text. A session's id tells where it lives, so the world keeps no table but of
 * what has ended and when it was last used. */
#ifndef PROBE_WORLD_H
#define PROBE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/probe.h"
#include "call/probe_report.h"

enum { CONNS = 20000, SESSIONS_MAX = 4000, EVENTS = 4096, TEXT = 4096 };

/* test_probe_memory counts allocations while it is set. */
static bool is_counting;

enum law { ONE, RANDOM, ROTATION, HASH, HEADER, COOKIE, CONNECTION, ADDRESS };
enum dialect { SAYS_404, SAYS_400, SAYS_HTML, SAYS_NOTHING };

struct conn {
    char *in;
    size_t len;
    uint32_t replica; /* CONNECTION: where it goes */
    uint32_t source;  /* a hash of the address it came from */
    bool is_closed;
};

struct pending {
    uint64_t at_us;
    uint64_t order;
    enum lp_event_kind kind;
    lp_id conn;
    int error;
    char *text;
};

struct world {
    /* the deployment */
    enum law law;
    uint32_t replicas;
    double noise;
    double dead; /* share of choices that hit a dead server */
    enum dialect dialect;
    bool is_stateless, is_modern, is_old_sse, is_open_to_browsers;
    bool drops_id_out, drops_id_in, holds_streams, has_no_stream, stream_ends, delete_fails;
    bool get_is_free, delete_is_free; /* that method goes anywhere */
    bool rotates_apart;               /* new sessions in rotation, and such a method in its own */
    bool refuses_connections, is_login, is_page, answers_events, tells_kind;
    bool is_slow_sse; /* a POST that went elsewhere hangs */
    bool has_sse_beside, has_foreign_endpoint, says_nonsense;
    bool gives_orphans;          /* a session for what was no initialize */
    bool has_no_sources;         /* the machine has no other address */
    bool shares_states;          /* a second step goes on at any replica */
    bool asks_nothing;           /* its tool wants no input */
    bool steps_fail;             /* ... or a 5xx is all that comes of it */
    bool has_no_tool;            /* ... or it is not known at all */
    bool beats;                  /* something is sent on a quiet stream */
    bool answers_first, errors;  /* old SSE: before the POST is answered; with an error */
    const char *url;             /* NULL: the usual one */
    const char *version;         /* what initialize answers, raw */
    const char *versions;        /* modern: a JSON list */
    const char *challenge;       /* of a 401 */
    const char *document;        /* the metadata of a login */
    uint64_t sse_cut_us;         /* old SSE: the stream breaks */
    enum lp_transport transport; /* what the user said */
    enum lp_era_wish era;
    uint32_t cookies; /* how many are set; the last one pins */
    uint64_t answer_us;
    uint64_t cut_us;    /* a quiet stream is cut; 0: never */
    uint64_t forget_us; /* an idle session is forgotten; 0: never */
    /* its state */
    uint64_t seed, turn, free_turn;
    uint32_t session_count;
    bool ended[SESSIONS_MAX];
    uint64_t used_us[SESSIONS_MAX];
    lp_id stream_of[SESSIONS_MAX];
    uint32_t live; /* sessions opened and not deleted */
    uint32_t orphans_deleted;
    /* the shell */
    struct lp_shell shell;
    uint64_t now_us, timer_at_us, order;
    uint32_t conn_count, event_count, requests, discovers, initializes;
    struct conn conns[CONNS + 1];
    struct pending events[EVENTS];
    /* the probe */
    struct lp_target target;
    struct lp_fetcher *fetcher;
    struct lp_probe *probe;
    bool is_over;
    uint32_t told;
};

static inline double toss(struct world *w)
{
    uint64_t z = w->seed += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static inline uint32_t pick_any(struct world *w)
{
    return (uint32_t)(toss(w) * w->replicas);
}

/* --- the shell's queue --- */

static inline void push(
    struct world *w, uint64_t after_us, enum lp_event_kind kind, lp_id conn, const char *text)
{
    assert_true(w->event_count < EVENTS);
    w->events[w->event_count++] = (struct pending){.at_us = w->now_us + after_us,
        .order = w->order++,
        .kind = kind,
        .conn = conn,
        .text = text ? strdup(text) : NULL};
}

static inline void answer(
    struct world *w, lp_id conn, const char *status, const char *fields, const char *body)
{
    char text[TEXT];
    int n = snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
        fields, strlen(body), body);
    assert_true(n > 0 && n < TEXT);
    push(w, w->answer_us, LP_EV_READ, conn, text);
}

#define JSON "Content-Type: application/json\r\n"
#define ERROR(code, message)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":" code ",\"message\":\"" message "\"}}"

static inline void say_lost(struct world *w, lp_id conn)
{
    if (w->dialect == SAYS_404)
        answer(w, conn, "404 Not Found", JSON, ERROR("-32001", "Session not found"));
    else if (w->dialect == SAYS_400)
        answer(w, conn, "400 Bad Request", JSON, ERROR("-32000", "No valid session"));
    else if (w->dialect == SAYS_HTML)
        answer(w, conn, "200 OK", "Content-Type: text/html\r\n", "<html>not found");
}

/* --- requests --- */

struct request {
    lp_id conn;
    bool is_post, is_get, is_delete;
    char id[64];     /* of JSON-RPC, raw */
    char method[64]; /* of JSON-RPC */
    int session;     /* -1: none, -2: unknown */
    uint32_t home;
    int cookie; /* the replica that it names; -1: none */
    bool has_origin;
    char target[128];
};

static inline void take_word(const char *from, const char *key, char *room, size_t room_len)
{
    const char *at = strstr(from, key);
    room[0] = '\0';
    if (!at)
        return;
    at += strlen(key);
    size_t n = strcspn(at, ",}\r\n; ");
    n = n < room_len - 1 ? n : room_len - 1;
    memcpy(room, at, n);
    room[n] = '\0';
}

static inline void read_session(struct world *w, struct request *r, const char *id)
{
    unsigned number, home;
    r->session = id[0] ? -2 : -1;
    bool is_ours = sscanf(id, "s%u-%u", &number, &home) == 2 && number < w->session_count;
    if (!is_ours)
        return;
    bool is_over =
        w->ended[number] || (w->forget_us && w->now_us - w->used_us[number] > w->forget_us);
    r->session = is_over ? -2 : (int)number;
    r->home = home;
}

static inline struct request read_request(struct world *w, lp_id conn, const char *text)
{
    struct request r = {.conn = conn, .cookie = -1};
    char id[64], word[64];
    sscanf(text, "%*s %127s", r.target);
    r.is_post = strncmp(text, "POST", 4) == 0;
    r.is_get = strncmp(text, "GET", 3) == 0;
    r.is_delete = strncmp(text, "DELETE", 6) == 0;
    r.has_origin = strstr(text, "\r\nOrigin: ");
    take_word(text, "\"id\":", r.id, sizeof r.id);
    take_word(text, "\"method\":", r.method, sizeof r.method);
    take_word(text, "Mcp-Session-Id: ", id, sizeof id);
    const char *query = strstr(r.target, "sessionId=");
    if (query)
        snprintf(id, sizeof id, "%s", query + 10);
    read_session(w, &r, w->drops_id_in ? "" : id);
    take_word(text, "pin=r", word, sizeof word);
    if (word[0])
        r.cookie = atoi(word);
    return r;
}

/* Where the balancer sends it. */
static inline uint32_t route(struct world *w, const struct request *r)
{
    struct conn *conn = &w->conns[r->conn];
    uint32_t any = w->law == ROTATION ? (uint32_t)(w->turn++ % w->replicas) : pick_any(w);
    bool is_beside = w->has_sse_beside && strncmp(r->target, "/mcp", 4) != 0;
    bool is_free =
        (r->is_get && w->get_is_free) || (r->is_delete && w->delete_is_free) || is_beside;
    if (w->law == ONE)
        return 0;
    if (w->rotates_apart && is_free)
        return (uint32_t)(w->free_turn++ % w->replicas);
    if (w->rotates_apart && r->session < 0)
        return (uint32_t)(w->turn++ % w->replicas);
    if (is_free)
        return any;
    if (w->law == CONNECTION) {
        conn->replica = conn->replica ? conn->replica : any + 1;
        return conn->replica - 1;
    }
    if (w->law == ADDRESS)
        return (conn->source * 2654435761u >> 8) % w->replicas;
    if (w->law == COOKIE && r->cookie >= 0)
        return (uint32_t)r->cookie;
    if (w->law == HASH && r->session != -1)
        return (uint32_t)(((unsigned)r->session * 2654435761u) >> 12) % w->replicas;
    if (w->law == HEADER && r->session >= 0)
        return r->home;
    return any;
}

static inline void open_session(struct world *w, const struct request *r, uint32_t at)
{
    char fields[1024], body[512];
    uint32_t number = w->session_count++;
    assert_true(number < SESSIONS_MAX);
    w->used_us[number] = w->now_us;
    w->live += !w->is_stateless && !w->drops_id_out;
    size_t n = (size_t)snprintf(fields, sizeof fields,
        JSON "Server: virtual/%d\r\nVia: 1.1 front\r\n", w->tells_kind ? 1 : 0);
    if (!w->is_stateless && !w->drops_id_out)
        n += (size_t)snprintf(
            fields + n, sizeof fields - n, "Mcp-Session-Id: s%u-%u\r\n", number, at);
    for (uint32_t i = 1; i <= w->cookies; i++)
        n += (size_t)(i == w->cookies
                ? snprintf(fields + n, sizeof fields - n, "Set-Cookie: pin=r%u; Path=/\r\n", at)
                : snprintf(fields + n, sizeof fields - n, "Set-Cookie: other%u=1\r\n", i));
    if (w->is_open_to_browsers)
        snprintf(fields + n, sizeof fields - n, "Access-Control-Allow-Origin: *\r\n");
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":%s,"
        "\"instructions\":\"%u\"}}",
        r->id, w->version ? w->version : "\"2025-11-25\"", w->tells_kind ? at : 0);
    answer(w, r->conn, "200 OK", fields, body);
}

static inline void give_result(struct world *w, const struct request *r)
{
    char body[512];
    const char *versions = w->versions ? w->versions : "[\"2026-07-28\"]";
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s%s}}", r->id,
        w->is_modern ? "\"supportedVersions\":" : "", w->is_modern ? versions : "");
    if (!w->answers_events) {
        answer(w, r->conn, "200 OK", JSON, body);
        return;
    }
    char events[1024];
    snprintf(events, sizeof events,
        "id: 1\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
        "data: %s\n\n",
        body);
    char text[2048];
    snprintf(text, sizeof text,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "%zx\r\n%s\r\n0\r\n\r\n",
        strlen(events), events);
    push(w, w->answer_us, LP_EV_READ, r->conn, text);
}

static inline void open_stream(struct world *w, const struct request *r)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    if (w->has_no_stream) {
        answer(w, r->conn, "405 Method Not Allowed", "Allow: POST\r\n", "");
        return;
    }
    if (w->holds_streams)
        return;
    push(w, w->answer_us, LP_EV_READ, r->conn, HEAD);
    if (w->stream_ends)
        push(w, w->answer_us + 1, LP_EV_READ, r->conn, "0\r\n\r\n");
    if (w->beats)
        push(w, w->answer_us + 400000, LP_EV_READ, r->conn, "5\r\n: hi\n\r\n");
    if (w->cut_us)
        push(w, w->answer_us + w->cut_us, LP_EV_BROKEN, r->conn, NULL);
}

static inline void end_session(struct world *w, const struct request *r)
{
    if (!w->delete_fails) {
        w->ended[r->session] = true;
        w->live--;
    }
    answer(w, r->conn, "200 OK", "", "");
}

/* --- old SSE --- */

static inline void chunk(struct world *w, lp_id conn, uint64_t after_us, const char *data)
{
    char text[1024];
    snprintf(text, sizeof text, "%zx\r\n%s\r\n", strlen(data), data);
    push(w, after_us, LP_EV_READ, conn, text);
}

static inline void open_old_stream(struct world *w, const struct request *r, uint32_t at)
{
    char data[256], head[512];
    uint32_t number = w->session_count++;
    assert_true(number < SESSIONS_MAX);
    w->stream_of[number] = r->conn;
    w->used_us[number] = w->now_us;
    snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s%u%sTransfer-Encoding: "
        "chunked\r\n\r\n",
        w->cookies ? "Set-Cookie: pin=r" : "X-At: ", at, w->cookies ? "; Path=/\r\n" : "\r\n");
    push(w, w->answer_us, LP_EV_READ, r->conn, head);
    if (w->says_nonsense)
        chunk(w, r->conn, w->answer_us, ": hi\n\ndata: {]\n\nid: 3\n\n");
    snprintf(data, sizeof data, "event: endpoint\ndata: %s/message?sessionId=s%u-%u\n\n",
        w->has_foreign_endpoint ? "http://elsewhere.test" : "", number, at);
    chunk(w, r->conn, w->answer_us + 1, data);
    if (w->sse_cut_us)
        push(w, w->sse_cut_us, LP_EV_BROKEN, r->conn, NULL);
}

static inline void post_old(struct world *w, const struct request *r, uint32_t at)
{
    char data[256];
    if (r->session < 0 || r->home != at) {
        if (!w->is_slow_sse)
            answer(w, r->conn, "404 Not Found", "", "no such session");
        return;
    }
    answer(w, r->conn, "202 Accepted", "", "Accepted");
    snprintf(data, sizeof data,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":{}}\n\n", r->id,
        w->errors ? "error" : "result");
    lp_id stream = w->stream_of[r->session];
    if (w->says_nonsense && !w->conns[stream].is_closed)
        chunk(w, stream, w->answer_us,
            "data: {\"id\":999,\"result\":{}}\n\ndata: {\"id\":0,\"method\":\"x\"}\n\n"
            "data: {\n\nevent: endpoint\ndata: /other\n\n");
    if (!w->conns[stream].is_closed)
        chunk(w, stream, w->answers_first ? w->answer_us / 2 : w->answer_us * 2, data);
}

static inline void serve_old(struct world *w, const struct request *r, uint32_t at)
{
    bool is_stream = r->is_get && strcmp(r->target, "/sse") == 0;
    if (is_stream)
        open_old_stream(w, r, at);
    else if (r->is_post && strncmp(r->target, "/message", 8) == 0)
        post_old(w, r, at);
    else
        answer(w, r->conn, "404 Not Found", "", "no such path");
}

/* --- calls in two steps: the state tells which replica made it --- */

static inline void serve_step(
    struct world *w, const struct request *r, uint32_t at, const char *text)
{
    char body[1024];
    const char *state = strstr(text, "\"requestState\":\"at-");
    bool is_taken = state && (w->shares_states || (uint32_t)atoi(state + 19) == at);
    if (state) {
        assert_non_null(strstr(text,
            "\"inputResponses\":{\"a\":{\"action\":\"decline\"},"
            "\"b\":{\"roots\":[]},\"c\":{\"role\":\"assistant\""));
        assert_non_null(strstr(text, "Mcp-Name: t\r\n"));
    }
    if (w->has_no_tool) {
        answer(w, r->conn, "400 Bad Request", JSON, ERROR("-32602", "no such tool"));
        return;
    }
    if (w->steps_fail) {
        answer(w, r->conn, "503 Service Unavailable", "", "");
        return;
    }
    if (state && !is_taken) {
        answer(w, r->conn, "400 Bad Request", JSON, ERROR("-32602", "the state is not valid"));
        return;
    }
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"input_required\","
        "\"requestState\":"
        "\"at-%u\",\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\"},\"b\":{\"method\":"
        "\"roots/list\"},\"c\":{\"method\":\"sampling/createMessage\"}}}}",
        r->id, at);
    if (is_taken || w->asks_nothing)
        snprintf(body, sizeof body,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\"}}", r->id);
    answer(w, r->conn, "200 OK", JSON, body);
}

/* --- Streamable HTTP --- */

static inline bool is_method(const struct request *r, const char *name)
{
    return strncmp(r->method + 1, name, strlen(name)) == 0;
}

static inline void serve_session(struct world *w, const struct request *r, uint32_t at)
{
    if (r->session == -1 && !w->is_stateless)
        answer(w, r->conn, "400 Bad Request", JSON, ERROR("-32000", "Mcp-Session-Id is required"));
    else if (!w->is_stateless && (r->session < 0 || r->home != at))
        say_lost(w, r->conn);
    else if (r->is_get)
        open_stream(w, r);
    else if (r->is_delete && r->session >= 0)
        end_session(w, r);
    else if (!r->id[0])
        answer(w, r->conn, "202 Accepted", "", "");
    else
        give_result(w, r);
    if (r->session >= 0)
        w->used_us[r->session] = w->now_us;
}

static inline void serve(struct world *w, lp_id conn, const char *text)
{
    struct request r = read_request(w, conn, text);
    uint32_t at = route(w, &r);
    w->discovers += is_method(&r, "server/discover");
    w->initializes += is_method(&r, "initialize\"");
    bool is_opening = is_method(&r, "initialize\"");
    bool is_free = is_opening || r.session < 0;
    w->requests++;
    w->orphans_deleted += r.is_delete && strstr(text, "Mcp-Session-Id: orphan");
    if (w->is_page)
        answer(w, conn, "200 OK", "Content-Type: text/html\r\n", "<html>");
    else if (w->document && strstr(r.target, "/.well-known/oauth-protected-resource"))
        answer(w, conn, "200 OK", JSON, w->document);
    else if (w->is_login)
        answer(w, conn, "401 Unauthorized",
            w->challenge ? w->challenge : "WWW-Authenticate: Bearer realm=\"x\"\r\n", "");
    else if (toss(w) < w->noise || (is_free && toss(w) < w->dead))
        answer(w, conn, "503 Service Unavailable", "", "try again");
    else if (w->is_old_sse || (w->has_sse_beside && strncmp(r.target, "/mcp", 4) != 0))
        serve_old(w, &r, at);
    else if (is_method(&r, "tools/call"))
        serve_step(w, &r, at, text);
    else if (w->is_modern)
        is_method(&r, "server/discover") ? give_result(w, &r)
                                         : answer(w, conn, "405 Method Not Allowed", "", "");
    else if (is_opening)
        open_session(w, &r, at);
    else if (is_method(&r, "server/discover"))
        answer(w, conn, "400 Bad Request",
            w->gives_orphans ? JSON "Mcp-Session-Id: orphan\r\n" : JSON,
            ERROR("-32000", "Server not initialized"));
    else
        serve_session(w, &r, at);
}

/* --- the shell --- */

static inline void feed(struct world *w, lp_id id)
{
    struct conn *conn = &w->conns[id];
    conn->in[conn->len] = '\0';
    const char *body = strstr(conn->in, "\r\n\r\n");
    if (!body)
        return;
    const char *length = strstr(conn->in, "Content-Length: ");
    size_t need = length && length < body ? (size_t)atoi(length + 16) : 0;
    if (conn->len < (size_t)(body + 4 - conn->in) + need)
        return;
    conn->len = 0;
    serve(w, id, conn->in);
}

static inline int64_t perform_connect(struct world *w, const struct lp_endpoint *to)
{
    assert_true(w->conn_count < CONNS);
    lp_id id = ++w->conn_count;
    w->conns[id].in = malloc(TEXT + 1);
    for (size_t i = 0; i < to->source.len; i++)
        w->conns[id].source = w->conns[id].source * 31 + (unsigned char)to->source.ptr[i];
    push(w, w->answer_us / 2, w->refuses_connections ? LP_EV_CONNECT_FAILED : LP_EV_CONNECTED, id,
        NULL);
    return (int64_t)id;
}

static inline int64_t perform_write(struct world *w, const struct lp_action *action)
{
    struct conn *conn = &w->conns[action->conn];
    int64_t taken = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        assert_true(conn->len + part.len <= TEXT);
        if (part.len)
            memcpy(conn->in + conn->len, part.ptr, part.len);
        conn->len += part.len;
        taken += (int64_t)part.len;
    }
    feed(w, action->conn);
    return taken;
}

static inline int64_t perform_action(struct world *w, const struct lp_action *action)
{
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return perform_connect(w, &action->u.connect);
    case LP_ACT_WRITE:
        return perform_write(w, action);
    case LP_ACT_CLOSE:
        w->conns[action->conn].is_closed = true;
        return 0;
    case LP_ACT_TIMER:
        w->timer_at_us = action->u.timer_at_us;
        return 0;
    default:
        return 0;
    }
}

static inline int64_t perform(void *ctx, const struct lp_action *action)
{
    bool was_counting = is_counting;
    is_counting = false;
    int64_t result = perform_action(ctx, action);
    is_counting = was_counting;
    return result;
}

static inline void deliver(struct world *w, struct pending p)
{
    struct lp_event event = {.kind = p.kind,
        .mono_us = w->now_us,
        .wall_ms = 1764522132123 + w->now_us / 1000,
        .conn = p.conn};
    if (p.kind == LP_EV_READ)
        event.u.bytes = lp_span_str(p.text);
    if (p.kind == LP_EV_CONNECT_FAILED)
        event.u.error = LP_EREFUSED;
    if (!p.conn || !w->conns[p.conn].is_closed)
        lp_fetcher_event(w->fetcher, &event);
    if (p.kind == LP_EV_BROKEN || p.kind == LP_EV_CONNECT_FAILED)
        w->conns[p.conn].is_closed = true;
    free(p.text);
}

/* The next thing that happens. */
static inline void step(struct world *w)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < w->event_count; i++) {
        const struct pending *a = &w->events[i];
        const struct pending *b = &w->events[next];
        if (a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order))
            next = i;
    }
    if (!w->event_count || w->timer_at_us < w->events[next].at_us) {
        assert_true(w->timer_at_us != UINT64_MAX);
        w->now_us = w->timer_at_us > w->now_us ? w->timer_at_us : w->now_us;
        w->timer_at_us = UINT64_MAX;
        deliver(w, (struct pending){.kind = LP_EV_TIMER});
        return;
    }
    struct pending p = w->events[next];
    w->events[next] = w->events[--w->event_count];
    w->now_us = p.at_us;
    deliver(w, p);
}

/* --- a probe of it --- */

static inline void on_over(void *ctx)
{
    struct world *w = ctx;
    assert_false(w->is_over);
    w->is_over = true;
}

static inline void on_progress(void *ctx, const char *what, uint32_t done, uint32_t all)
{
    struct world *w = ctx;
    assert_true(strlen(what) > 3 && done <= all);
    w->told++;
}

/* A copy of a deployment on the heap, ready to be probed. */
static inline struct world *world_new(const struct world *deployment)
{
    struct world *w = malloc(sizeof *w);
    assert_non_null(w);
    *w = *deployment;
    w->replicas = w->replicas ? w->replicas : 1;
    w->answer_us = w->answer_us ? w->answer_us : 1000;
    w->shell = (struct lp_shell){.ctx = w, .perform = perform};
    w->now_us = 1000000;
    w->timer_at_us = UINT64_MAX;
    lp_target_init(&w->target);
    struct lp_span url =
        w->is_old_sse ? LP_SPAN("http://127.0.0.1:3000/sse") : LP_SPAN("http://127.0.0.1:3000/mcp");
    if (w->url)
        url = lp_span_str(w->url);
    assert_int_equal(lp_target_set_url(&w->target, url), LP_OK);
    w->target.transport = w->transport;
    w->target.era = w->era;
    struct lp_fetcher_args args = {.shell = &w->shell, .target = &w->target};
    assert_int_equal(lp_fetcher_new(&args, &w->fetcher), LP_OK);
    return w;
}

static inline void world_begin(struct world *w, struct lp_probe_args args)
{
    static const char *const SOURCES[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5",
        "127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9", "127.0.0.10", "127.0.0.11"};
    args.fetcher = w->fetcher;
    args.sessions = args.sessions ? args.sessions : LP_PROBE_SESSIONS;
    args.calls = args.calls ? args.calls : LP_PROBE_CALLS;
    args.over = on_over;
    args.progress = on_progress;
    args.ctx = w;
    for (args.source_count = 0; args.source_count < 10 && !w->has_no_sources; args.source_count++)
        args.sources[args.source_count] = lp_span_str(SOURCES[args.source_count]);
    assert_int_equal(lp_probe_new(&args, &w->probe), LP_OK);
    deliver(w, (struct pending){.kind = LP_EV_CONFIG});
    lp_probe_start(w->probe);
    lp_fetcher_settle(w->fetcher);
}

static inline void world_free(struct world *w)
{
    lp_probe_free(w->probe);
    lp_fetcher_free(w->fetcher);
    lp_target_fini(&w->target);
    for (uint32_t i = 0; i < w->event_count; i++)
        free(w->events[i].text);
    for (uint32_t i = 1; i <= w->conn_count; i++)
        free(w->conns[i].in);
    free(w);
}

/* From beginning to end. */
static inline struct world *probe_world(const struct world *deployment, struct lp_probe_args args)
{
    struct world *w = world_new(deployment);
    world_begin(w, args);
    while (!w->is_over)
        step(w);
    is_counting = false;
    return w;
}

#endif
