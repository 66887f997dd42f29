/* A play against the library's server: bytes choose what four clients, their connections, the clock
 * and the program do next, and the watcher says what must never happen, whatever they choose:
 *
 *   - nothing of one client's (ids, tokens, addresses, questions) comes to another one;
 *   - what a connection gets is HTTP, no more answers than requests, events of JSON-RPC;
 *   - a request is answered at most once, and within one answer never twice;
 *   - each call that began is over, once; and when all have left nothing is held any more.
 *
 * The network cuts what it carries where it likes, takes writes in part, and loses connections at
 * any point. All of a client's words carry its mark, "@k:", so that they are known wherever they
 * turn up. Used by prop_server (choices by seed, memory failing) and by fuzz_server. */
#ifndef LP_TEST_SERVER_PLAY_H
#define LP_TEST_SERVER_PLAY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "serve/server_priv.h"
#include "wire/http1.h"
#include "wire/sse.h"

enum {
    PLAY_CLIENTS = 4,
    PLAY_CONNS = 64,
    PLAY_REQUESTS = 16, /* on one connection */
    PLAY_MESSAGES = 512,
    PLAY_TEXT = 8192,
    PLAY_STATE = 2048,
    PLAY_GOT_MAX = 4 << 20,
    PLAY_KEPT = 8,
    PLAY_MS = 1000,
};

struct play_conn {
    bool is_open;
    uint32_t client;
    size_t window; /* bytes that are taken of each write; 0: all */
    struct lp_span drain;
    struct lp_buf out; /* on its way to the server */
    struct lp_buf got;
    uint32_t request_count;
    enum lp_method methods[PLAY_REQUESTS];
    bool repeats[PLAY_REQUESTS]; /* what was sent before may come again */
};

struct play_client {
    char session[LP_SESSION_ID_MAX + 1];
    char address[LP_SESSION_ID_MAX + 32]; /* of old SSE */
    char question[64];                    /* the last that it was asked */
    char state[PLAY_STATE];               /* of the last question of 2026-07-28 */
    uint32_t last;                        /* its last request */
};

struct play {
    const uint8_t *data;
    size_t size;
    size_t at;
    struct lp_shell shell;
    struct lp_server *server;
    struct play_conn conns[PLAY_CONNS];
    uint32_t conn_count;
    struct play_client clients[PLAY_CLIENTS];
    uint64_t now_us;
    uint64_t timer_at_us;
    uint32_t message_count;
    uint32_t answer_counts[PLAY_MESSAGES];
    lp_id kept[PLAY_KEPT];
    uint32_t kept_count;
    uint32_t jobs_begun;
    uint32_t jobs_over;
    bool is_stopping;
    bool is_stopped;
};

/* While the server works; for who lets its memory fail. */
static bool play_server_works;

static inline uint32_t play_choose(struct play *p, uint32_t below)
{
    return p->at < p->size ? p->data[p->at++] % below : 0;
}

/* --- the shell --- */

static inline struct play_conn *play_conn_of(struct play *p, lp_id id)
{
    return &p->conns[lp_id_slot(id)];
}

static inline lp_id play_id_of(const struct play *p, const struct play_conn *c)
{
    return (lp_id)1 << 32 | (uint64_t)(c - p->conns + 1);
}

static inline void play_keep(struct play_conn *c, struct lp_span bytes)
{
    bool worked = play_server_works;
    play_server_works = false;
    LP_ASSERT(!lp_buf_append(&c->got, bytes));
    play_server_works = worked;
}

static inline int64_t play_write(struct play_conn *c, const struct lp_action *action)
{
    int64_t taken = 0;
    size_t window = c->window ? c->window : SIZE_MAX;
    for (uint32_t i = 0; i < action->u.write.count && window; i++) {
        struct lp_span part = action->u.write.parts[i];
        part.len = part.len < window ? part.len : window;
        play_keep(c, part);
        window -= part.len;
        taken += (int64_t)part.len;
    }
    return taken;
}

static inline int64_t play_perform(void *ctx, const struct lp_action *action)
{
    struct play *p = ctx;
    struct play_conn *c = action->conn ? play_conn_of(p, action->conn) : NULL;
    LP_ASSERT(!c || c->is_open);
    switch (action->kind) {
    case LP_ACT_WRITE:
        return play_write(c, action);
    case LP_ACT_DRAIN:
        LP_ASSERT(!c->drain.len && action->u.drain.len);
        c->drain = action->u.drain;
        return 0;
    case LP_ACT_CLOSE:
        c->is_open = false;
        c->drain = LP_SPAN("");
        return 0;
    case LP_ACT_TIMER:
        p->timer_at_us = action->u.timer_at_us;
        return 0;
    case LP_ACT_STOPPED:
        LP_ASSERT(p->is_stopping && !p->is_stopped);
        p->is_stopped = true;
        return 0;
    default:
        return 0;
    }
}

static inline void play_tell(struct play *p, struct lp_event event)
{
    event.mono_us = p->now_us;
    event.wall_ms = 1764522132123 + p->now_us / 1000;
    play_server_works = true;
    lp_server_event(p->server, &event);
    play_server_works = false;
}

static inline void play_pass(struct play *p, uint64_t us)
{
    uint64_t end_us = p->now_us + us;
    while (p->timer_at_us <= end_us) {
        p->now_us = p->timer_at_us > p->now_us ? p->timer_at_us : p->now_us;
        p->timer_at_us = UINT64_MAX;
        play_tell(p, (struct lp_event){.kind = LP_EV_TIMER});
    }
    p->now_us = end_us;
}

/* --- the program --- */

static inline struct play *play_of(void *ctx)
{
    return ctx;
}

static inline void play_run(void *ctx, struct lp_job *call)
{
    play_of(ctx)->jobs_begun++;
    lp_job_set_state(call, NULL);
}

static inline void play_over(void *ctx, struct lp_job *call)
{
    (void)call;
    play_of(ctx)->jobs_over++;
}

static inline void play_echo(void *ctx, struct lp_job *call)
{
    play_run(ctx, call);
    lp_job_log(call, LP_LEVEL_INFO, "play", lp_job_arguments(call));
    lp_job_result(call, lp_job_arguments(call));
}

/* Goes on for three steps, each with progress; state counts them. */
static inline void play_step(struct lp_job *call, uintptr_t step)
{
    lp_job_progress(call, step, 3);
    lp_job_set_state(call, (void *)step);
    if (step == 3)
        lp_job_result(call, lp_job_arguments(call));
    else if (lp_job_wait(call, 100 * PLAY_MS))
        lp_job_error(call, -32603, "no memory");
}

static inline void play_wait(void *ctx, struct lp_job *call)
{
    play_run(ctx, call);
    play_step(call, 0);
}

static inline void play_wait_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    LP_ASSERT(wake->kind == LP_WAKE_TIME);
    play_step(call, (uintptr_t)lp_job_state(call) + 1);
}

static inline void play_ask(void *ctx, struct lp_job *call)
{
    play_run(ctx, call);
    if (lp_job_ask(call, "elicitation/create", lp_job_arguments(call), 2000 * PLAY_MS))
        lp_job_tool_error(call, "nobody can be asked");
}

/* The answer to a question goes into the result: a stranger's would be seen there. */
static inline void play_ask_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    if (wake->result.len)
        lp_job_result(call, wake->result);
    else
        lp_job_tool_error(call, "no answer");
}

static inline void play_later(void *ctx, struct lp_job *call)
{
    struct play *p = ctx;
    play_run(ctx, call);
    p->kept[p->kept_count++ % PLAY_KEPT] = lp_job_id(call);
}

static inline void play_poll(void *ctx, struct lp_job *call)
{
    play_run(ctx, call);
    lp_job_poll(call);
    play_step(call, 2);
}

/* Reads its session's state and writes its arguments there. */
static inline void play_state(void *ctx, struct lp_job *call)
{
    play_run(ctx, call);
    if (lp_job_state_get(call))
        lp_job_tool_error(call, "there is no state");
}

static inline void play_state_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    bool has_read = !lp_job_state(call);
    LP_ASSERT(wake->kind == LP_WAKE_STATE);
    lp_job_set_state(call, call);
    if (!has_read)
        lp_job_text(call, LP_SPAN("done"));
    else if (wake->state.len)
        lp_job_result(call, wake->state);
    else if (lp_job_state_set(call, wake->revision, lp_job_arguments(call)))
        lp_job_tool_error(call, "it cannot be written");
}

static const char *const PLAY_TOOLS[] = {"echo", "wait", "ask", "later", "poll", "state"};

static inline const struct lp_offer *play_offer(struct play *p)
{
#define PLAY_TOOL(n, r, w)                                                                         \
    {                                                                                              \
        .name = n, .input_schema = "{\"type\":\"object\"}",                                        \
        .handler = {.run = r, .wake = w, .over = play_over},                                       \
    }
    static const struct lp_tool tools[] = {PLAY_TOOL("echo", play_echo, NULL),
        PLAY_TOOL("wait", play_wait, play_wait_on), PLAY_TOOL("ask", play_ask, play_ask_on),
        PLAY_TOOL("later", play_later, NULL), PLAY_TOOL("poll", play_poll, play_wait_on),
        PLAY_TOOL("state", play_state, play_state_on)};
    static struct lp_offer offer = {
        .tools = tools, .tool_count = 6, .lists_change = true, .has_subscriptions = true};
    offer.ctx = p;
    return &offer;
}

/* "Bearer @k:" is the principal k. */
static inline bool play_bearer(void *ctx, struct lp_span token, struct lp_key *ret_principal)
{
    (void)ctx;
    bool is_good = token.len == 3 && token.ptr[0] == '@';
    ret_principal->lo = is_good ? (unsigned char)token.ptr[1] : 0;
    return is_good;
}

/* --- what the clients say --- */

static inline uint32_t play_new_message(struct play *p, uint32_t k)
{
    p->clients[k].last = p->message_count++ % PLAY_MESSAGES;
    return p->clients[k].last;
}

static inline void play_printf(char text[PLAY_TEXT], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void play_printf(char text[PLAY_TEXT], const char *fmt, ...)
{
    va_list args;
    size_t len = strlen(text);
    va_start(args, fmt);
    int n = vsnprintf(text + len, PLAY_TEXT - len, fmt, args);
    va_end(args);
    LP_ASSERT(n >= 0 && (size_t)n < PLAY_TEXT - len);
}

static inline void play_add_call(struct play *p, uint32_t k, char text[PLAY_TEXT])
{
    uint32_t n = play_new_message(p, k);
    play_printf(text,
        "{\"jsonrpc\":\"2.0\",\"id\":\"@%u:%u\",\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"%s\",\"arguments\":{\"message\":\"@%u:\"}%s",
        k, n, PLAY_TOOLS[play_choose(p, 6)], k, play_choose(p, 2) ? "}}" : "");
    if (text[strlen(text) - 2] != '}' || text[strlen(text) - 3] != '}')
        play_printf(text, ",\"_meta\":{\"progressToken\":\"@%u:%u\"}}}", k, n);
}

static inline void play_add_initialize(struct play *p, uint32_t k, char text[PLAY_TEXT])
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    play_printf(text,
        "{\"jsonrpc\":\"2.0\",\"id\":\"@%u:%u\",\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"%s\",\"capabilities\":{%s}}}",
        k, play_new_message(p, k), versions[play_choose(p, 4)],
        play_choose(p, 4) ? "\"elicitation\":{}" : "");
}

/* A message of the client's; requests are the only ones with an id of their own. */
static inline void play_add_message(struct play *p, uint32_t k, char text[PLAY_TEXT])
{
    static const char *const methods[] = {"ping", "tools/list", "no/such", "logging/setLevel"};
    struct play_client *client = &p->clients[k];
    switch (play_choose(p, 10)) {
    case 0:
        play_add_initialize(p, k, text);
        break;
    case 1:
        play_printf(text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
        break;
    case 2:
        play_printf(text,
            "{\"jsonrpc\":\"2.0\",\"id\":\"@%u:%u\",\"method\":\"%s\",\"params\":{\"level\":"
            "\"error\"}}",
            k, play_new_message(p, k), methods[play_choose(p, 4)]);
        break;
    case 3:
        play_printf(text,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
            "\"requestId\":\"@%u:%u\"}}",
            k, client->last);
        break;
    case 4: /* also of a question that another one was asked */
        play_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"%s\":{\"message\":\"@%u:\"}}",
            p->clients[play_choose(p, 3) ? k : play_choose(p, PLAY_CLIENTS)].question,
            play_choose(p, 4) ? "result" : "error", k);
        break;
    case 5:
        play_printf(text,
            "{\"jsonrpc\":\"2.0\",\"id\":\"@%u:%u\",\"method\":\"resources/%s\",\"params\":{"
            "\"uri\":\"test://@%u:\"}}",
            k, play_new_message(p, k), play_choose(p, 3) ? "subscribe" : "unsubscribe", k);
        break;
    case 6:
        play_printf(text, "[");
        play_add_call(p, k, text);
        play_printf(text, ",");
        play_add_call(p, k, text);
        play_printf(text, "]");
        break;
    default:
        play_add_call(p, k, text);
        break;
    }
}

/* Its own session's id mostly, but also a stranger's. */
static inline uint32_t play_whose(struct play *p, uint32_t k)
{
    return play_choose(p, 8) ? k : play_choose(p, PLAY_CLIENTS);
}

static inline void play_add_head(
    struct play *p, uint32_t k, char text[PLAY_TEXT], const char *line, bool is_old)
{
    static const char *const accepts[] = {"application/json, text/event-stream",
        "application/json, text/event-stream", "text/event-stream", "application/json"};
    play_printf(text, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer @%u:\r\n", line, k);
    play_printf(
        text, "Content-Type: application/json\r\nAccept: %s\r\n", accepts[play_choose(p, 4)]);
    const char *session = p->clients[play_whose(p, k)].session;
    if (session[0] && !is_old && play_choose(p, 8))
        play_printf(text, "Mcp-Session-Id: %s\r\n", session);
    if (!play_choose(p, 8))
        play_printf(text, "Origin: http://localhost:%u\r\n", k);
}

static inline void play_note(struct play_conn *c, enum lp_method method, bool repeats)
{
    if (c->request_count == PLAY_REQUESTS)
        return;
    c->methods[c->request_count] = method;
    c->repeats[c->request_count++] = repeats;
}

/* What follows is the state of a question, and its answer; also with a stranger's state. */
static inline void play_add_answer(struct play *p, uint32_t k, char text[PLAY_TEXT])
{
    const char *state = p->clients[play_whose(p, k)].state;
    if (state[0])
        play_printf(text,
            "\"requestState\":\"%s\",\"inputResponses\":{\"q1\":{\"message\":\"@%u:\"}},", state,
            k);
}

/* A request of 2026-07-28, which belongs to no session: a call, or a stream of notices. */
static inline void play_modern(struct play *p, struct play_conn *c, char text[PLAY_TEXT])
{
    char body[PLAY_TEXT] = "";
    uint32_t k = c->client;
    uint32_t n = play_new_message(p, k);
    bool listens = !play_choose(p, 4);
    uint32_t which = play_choose(p, 8);
    const char *tool = which < 6 ? PLAY_TOOLS[which] : "ask";
    const char *method = listens ? "subscriptions/listen" : "tools/call";
    play_printf(body, "{\"jsonrpc\":\"2.0\",\"id\":\"@%u:%u\",\"method\":\"%s\",\"params\":{", k, n,
        method);
    if (listens)
        play_printf(body,
            "\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":["
            "\"test://@%u:\"]},",
            k);
    else
        play_printf(body, "\"name\":\"%s\",\"arguments\":{\"message\":\"@%u:\"},", tool, k);
    if (!listens && which >= 6)
        play_add_answer(p, k, body);
    play_printf(body,
        "\"_meta\":{\"progressToken\":\"@%u:%u\",\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}}}",
        k, n);
    play_add_head(p, k, text, "POST /mcp", false);
    play_printf(text, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n", method);
    if (!listens)
        play_printf(text, "Mcp-Name: %s\r\n", play_choose(p, 8) ? tool : "other");
    play_printf(text, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    play_note(c, LP_METHOD_POST, false);
}

static inline void play_post(struct play *p, struct play_conn *c, char text[PLAY_TEXT])
{
    char body[PLAY_TEXT] = "";
    char line[sizeof p->clients[0].address + 16];
    uint32_t k = c->client;
    const char *address = p->clients[play_whose(p, k)].address;
    bool is_old = address[0] && play_choose(p, 2);
    play_add_message(p, k, body);
    snprintf(line, sizeof line, "POST %s", is_old ? address : "/mcp");
    play_add_head(p, k, text, line, is_old);
    if (play_choose(p, 4))
        play_printf(text, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        play_printf(
            text, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n", strlen(body), body);
    play_note(c, LP_METHOD_POST, false);
}

static inline void play_other(struct play *p, struct play_conn *c, char text[PLAY_TEXT])
{
    static const char *const lines[] = {
        "GET /mcp", "GET /sse", "GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "HEAD /mcp", "PUT /mcp"};
    static const enum lp_method methods[] = {LP_METHOD_GET, LP_METHOD_GET, LP_METHOD_GET,
        LP_METHOD_DELETE, LP_METHOD_OPTIONS, LP_METHOD_HEAD, LP_METHOD_PUT};
    uint32_t i = play_choose(p, 7);
    play_add_head(p, c->client, text, lines[i], i == 1);
    if (i == 2)
        play_printf(text, "Last-Event-ID: %u-%u\r\n", play_choose(p, 6), play_choose(p, 8));
    play_printf(text, "\r\n");
    play_note(c, methods[i], i == 2);
}

/* --- what they hear, as far as they need it to go on --- */

static inline void play_find(struct lp_span text, const char *mark, char *ret, size_t room)
{
    struct lp_span word = lp_span_str(mark);
    for (size_t at; (at = lp_span_search(text, word)) < text.len;) {
        text = lp_span_from(text, at + word.len);
        size_t n = 0;
        while (n < text.len && text.ptr[n] > ' ' && text.ptr[n] != '"')
            n++;
        if (n && n < room) {
            memcpy(ret, text.ptr, n);
            ret[n] = '\0';
        }
    }
}

static inline void play_listen(struct play *p, struct play_conn *c)
{
    char id[LP_SESSION_ID_MAX + 1] = "";
    struct play_client *client = &p->clients[c->client];
    struct lp_span got = lp_buf_span(&c->got);
    play_find(got, "mcp-session-id: ", client->session, sizeof client->session);
    play_find(got, "/sse?sessionId=", id, sizeof id);
    if (id[0])
        snprintf(client->address, sizeof client->address, "/sse?sessionId=%s", id);
    play_find(got, "\"requestState\":\"", client->state, sizeof client->state);
    struct lp_span question = got;
    for (size_t at; (at = lp_span_search(question, LP_SPAN("\"jsonrpc\":\"2.0\",\"id\":\""))) <
         question.len;) {
        question = lp_span_from(question, at + 22);
        if (question.len > 33 && question.ptr[16] == '-' && question.ptr[33] == '"')
            snprintf(client->question, sizeof client->question, "%.33s", question.ptr);
    }
}

/* --- what the network does --- */

static inline struct play_conn *play_dial(struct play *p, uint32_t k)
{
    if (p->conn_count == PLAY_CONNS)
        return NULL;
    struct play_conn *c = &p->conns[p->conn_count++];
    c->client = k;
    c->is_open = true;
    lp_buf_init(&c->out, PLAY_GOT_MAX);
    lp_buf_init(&c->got, PLAY_GOT_MAX);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = play_id_of(p, c)};
    event.u.accepted.is_loopback = true;
    play_tell(p, event);
    return c;
}

static inline void play_carry(struct play *p, struct play_conn *c, size_t n)
{
    if (n > c->out.len)
        n = c->out.len;
    if (!n || !c->is_open)
        return;
    struct lp_event event = {.kind = LP_EV_READ, .conn = play_id_of(p, c)};
    event.u.bytes = lp_span(lp_buf_span(&c->out).ptr, n);
    play_tell(p, event);
    lp_buf_consume(&c->out, n);
    play_listen(p, c);
}

static inline void play_drain(struct play *p, struct play_conn *c)
{
    if (!c->is_open || !c->drain.len)
        return;
    play_keep(c, c->drain);
    c->drain = LP_SPAN("");
    play_tell(p, (struct lp_event){.kind = LP_EV_DRAINED, .conn = play_id_of(p, c)});
    play_listen(p, c);
}

static inline void play_break(struct play *p, struct play_conn *c)
{
    if (!c->is_open)
        return;
    c->is_open = false;
    c->drain = LP_SPAN("");
    play_tell(p, (struct lp_event){.kind = LP_EV_BROKEN, .conn = play_id_of(p, c)});
}

/* --- what may happen next --- */

static inline void play_request(struct play *p, struct play_conn *c)
{
    char text[PLAY_TEXT] = "";
    if (!c->is_open || c->request_count == PLAY_REQUESTS)
        return;
    uint32_t what = play_choose(p, 8);
    if (what > 2)
        play_post(p, c, text);
    else if (what)
        play_modern(p, c, text);
    else
        play_other(p, c, text);
    LP_ASSERT(!lp_buf_append(&c->out, lp_span_str(text)));
    play_carry(p, c, play_choose(p, 3) ? SIZE_MAX : play_choose(p, 256));
}

/* The beginning of most clients: a session by either transport. */
static inline void play_enter(struct play *p, uint32_t k)
{
    char text[PLAY_TEXT] = "";
    uint32_t how = play_choose(p, 8);
    struct play_conn *c = how ? play_dial(p, k) : NULL;
    if (!c)
        return;
    if (how == 1) {
        play_add_head(p, k, text, "GET /sse", true);
        play_printf(text, "\r\n");
        play_note(c, LP_METHOD_GET, false);
    } else {
        char body[PLAY_TEXT] = "";
        play_add_initialize(p, k, body);
        play_add_head(p, k, text, "POST /mcp", false);
        play_printf(text, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
        play_note(c, LP_METHOD_POST, false);
    }
    LP_ASSERT(!lp_buf_append(&c->out, lp_span_str(text)));
    play_carry(p, c, SIZE_MAX);
}

static inline void play_garbage(struct play *p, struct play_conn *c)
{
    char bytes[16];
    uint32_t n = play_choose(p, sizeof bytes);
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (char)play_choose(p, 256);
    if (!c->is_open || c->request_count == PLAY_REQUESTS)
        return;
    play_note(c, LP_METHOD_OTHER, false);
    LP_ASSERT(!lp_buf_append(&c->out, lp_span(bytes, n)));
    play_carry(p, c, SIZE_MAX);
}

static inline void play_program(struct play *p)
{
    char uri[32];
    struct lp_job *call = lp_server_job(p->server, p->kept[play_choose(p, PLAY_KEPT)]);
    snprintf(uri, sizeof uri, "test://@%u:", play_choose(p, PLAY_CLIENTS));
    uint32_t what = play_choose(p, 3);
    play_server_works = true;
    if (what == 0 && call)
        lp_job_result(call, lp_job_arguments(call));
    else if (what == 1)
        lp_server_list_changed(p->server, LP_LIST_TOOLS);
    else
        lp_server_resource_updated(p->server, lp_span_str(uri));
    lp_server_settle(p->server, p->now_us);
    play_server_works = false;
}

static inline void play_step_on(struct play *p)
{
    static const uint64_t times_ms[] = {1, 50, 100, 1000, 3000, 16000, 76000, 360000};
    uint32_t what = play_choose(p, 16);
    uint32_t which = play_choose(p, PLAY_CONNS);
    struct play_conn *c =
        p->conn_count && what > 2 ? &p->conns[p->conn_count - 1 - which % p->conn_count] : NULL;
    if (what <= 2)
        c = play_dial(p, play_choose(p, PLAY_CLIENTS));
    if (!c)
        return;
    if (what <= 7)
        play_request(p, c);
    else if (what == 8)
        play_carry(p, c, play_choose(p, 2) ? SIZE_MAX : play_choose(p, 256));
    else if (what == 9)
        play_drain(p, c);
    else if (what == 10)
        c->window = play_choose(p, 2) * (1 + play_choose(p, 256));
    else if (what == 11)
        play_break(p, c);
    else if (what == 12 && c->is_open)
        play_tell(p, (struct lp_event){.kind = LP_EV_EOF, .conn = play_id_of(p, c)});
    else if (what == 13)
        play_program(p);
    else if (what == 14)
        play_pass(p, times_ms[play_choose(p, 8)] * PLAY_MS);
    else if (!play_choose(p, 8))
        play_garbage(p, c);
}

/* --- the watcher --- */

/* Nothing of another client's: every mark is this one's. */
static inline void play_watch_marks(const struct play_conn *c)
{
    struct lp_span got = lp_buf_span(&c->got);
    for (size_t i = 0; i + 2 < got.len; i++)
        if (got.ptr[i] == '@' && got.ptr[i + 2] == ':')
            LP_ASSERT(got.ptr[i + 1] == (char)('0' + c->client));
}

/* One answer of a connection, as it is read. */
struct play_answer {
    struct play *play;
    const struct play_conn *conn;
    bool repeats;
    bool is_stream;
    bool seen[PLAY_MESSAGES];
    struct lp_buf body;
    struct lp_sse events;
};

/* The number in an id of a client's request, "@k:n" in quotes; PLAY_MESSAGES: it is none. */
static inline uint32_t play_number(struct lp_span id)
{
    uint64_t n = PLAY_MESSAGES;
    bool is_ours = id.len > 5 && id.ptr[1] == '@' && id.ptr[3] == ':';
    if (is_ours && lp_span_to_u64(lp_span(id.ptr + 4, id.len - 5), &n))
        LP_ASSERT(n < PLAY_MESSAGES);
    return (uint32_t)n;
}

static inline void play_watch_message(struct play_answer *a, struct lp_span text)
{
    struct lp_envelope env;
    LP_ASSERT(lp_envelope_scan(text, &env) == LP_OK);
    uint32_t n = play_number(env.id);
    if (env.is_batch || (!env.has_result && !env.has_error) || n == PLAY_MESSAGES)
        return;
    LP_ASSERT(!a->seen[n]);
    a->seen[n] = true;
    if (a->play->message_count <= PLAY_MESSAGES && !a->repeats)
        LP_ASSERT(++a->play->answer_counts[n] == 1);
}

static inline void play_watch_events(struct play_answer *a, struct lp_span bytes)
{
    while (bytes.len) {
        struct lp_sse_event event;
        bool is_ready;
        ptrdiff_t n = lp_sse_feed(&a->events, bytes, &event, &is_ready);
        LP_ASSERT(n > 0);
        bytes = lp_span_from(bytes, (size_t)n);
        if (is_ready && event.data.len && lp_span_eq(event.type, LP_SPAN("message")))
            play_watch_message(a, event.data);
    }
}

static inline void play_begin_answer(
    struct play_answer *a, const struct lp_head *head, uint32_t number)
{
    LP_ASSERT(number < a->conn->request_count);
    a->repeats = a->conn->repeats[number];
    a->is_stream =
        lp_span_eq(lp_head_value(head, LP_FIELD_CONTENT_TYPE), LP_SPAN("text/event-stream"));
    memset(a->seen, 0, sizeof a->seen);
    lp_sse_release(&a->events);
    lp_sse_init(&a->events, PLAY_GOT_MAX);
    lp_buf_clear(&a->body);
}

static inline void play_watch_http(struct play_answer *a)
{
    struct lp_http1 parser;
    static struct lp_head head;
    uint32_t count = 0;
    struct lp_span rest = lp_buf_span(&a->conn->got);
    lp_http1_init(&parser, LP_HTTP1_RESPONSES, &head);
    for (struct lp_http1_item item = {0}; rest.len || item.kind != LP_HTTP1_NONE;) {
        lp_http1_answering(
            &parser, count < a->conn->request_count ? a->conn->methods[count] : LP_METHOD_OTHER);
        ptrdiff_t n = lp_http1_feed(&parser, rest, &item);
        LP_ASSERT(n >= 0);
        rest = lp_span_from(rest, (size_t)n);
        if (item.kind == LP_HTTP1_HEAD && item.head->status >= 200)
            play_begin_answer(a, item.head, count++);
        else if (item.kind == LP_HTTP1_BODY && a->is_stream)
            play_watch_events(a, item.body);
        else if (item.kind == LP_HTTP1_BODY)
            LP_ASSERT(!lp_buf_append(&a->body, item.body));
        else if (item.kind == LP_HTTP1_END && a->body.len)
            play_watch_message(a, lp_buf_span(&a->body));
        else if (item.kind == LP_HTTP1_NONE)
            break;
    }
    lp_http1_release(&parser);
}

static inline void play_watch(struct play *p)
{
    for (uint32_t i = 0; i < p->conn_count; i++) {
        struct play_answer a = {.play = p, .conn = &p->conns[i]};
        lp_buf_init(&a.body, PLAY_GOT_MAX);
        lp_sse_init(&a.events, PLAY_GOT_MAX);
        play_watch_marks(a.conn);
        play_watch_http(&a);
        lp_sse_release(&a.events);
        lp_buf_release(&a.body);
    }
}

/* All have left, and all time has passed. */
static inline void play_watch_rest(const struct play *p)
{
    const struct lp_server *server = p->server;
    LP_ASSERT(p->jobs_over == p->jobs_begun);
    LP_ASSERT(!server->requests.live_count && !server->channels.live_count);
    LP_ASSERT(!server->calls.live_count && !server->sessions.live_count);
    LP_ASSERT(!server->held_bytes && !server->finished_bytes && !server->finished_count);
    LP_ASSERT(!server->links.client_count);
}

/* --- the play --- */

static inline void play_begin(struct play *p, const uint8_t *data, size_t size)
{
    *p = (struct play){.data = data, .size = size, .now_us = 1000, .timer_at_us = UINT64_MAX};
    p->shell = (struct lp_shell){p, play_perform};
    uint32_t how = play_choose(p, 8);
    struct lp_server_args args = {.shell = &p->shell,
        .offer = play_offer(p),
        .name = LP_SPAN("play"),
        .version = LP_SPAN("1"),
        .path = LP_SPAN("/mcp"),
        .bearer = play_bearer,
        .session_max = 3,
        .seed = {1}};
    if (how == 7)
        args.mode = LP_SESSIONS_STATELESS;
    else if (how > 1)
        args.sse_path = how == 2 ? args.path : LP_SPAN("/sse");
    if (how == 3)
        args.owner = LP_SPAN("m1");
    LP_ASSERT(!lp_server_new(&args, &p->server));
}

static inline void play_answer_kept(struct play *p)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_job *call; (call = lp_slab_next(&p->server->calls, &cursor, &id));)
        if (!call->timer.index && !call->is_asking)
            lp_job_text(call, LP_SPAN("late"));
    lp_server_settle(p->server, p->now_us);
}

static inline void play_stop(struct play *p)
{
    p->is_stopping = true;
    play_tell(p, (struct lp_event){.kind = LP_EV_STOP});
}

static inline void play_end(struct play *p)
{
    for (uint32_t i = 0; i < p->conn_count; i++)
        play_break(p, &p->conns[i]);
    play_pass(p, 60000 * PLAY_MS);
    play_answer_kept(p);
    play_pass(p, 1800ull * 1000 * PLAY_MS);
    if (!p->is_stopping) { /* else connections may have been cut, and their requests are left */
        play_watch_rest(p);
        play_stop(p);
    }
    play_pass(p, 1);
    LP_ASSERT(p->is_stopped);
}

static inline void play_free(struct play *p)
{
    lp_server_free(p->server);
    for (uint32_t i = 0; i < p->conn_count; i++) {
        lp_buf_release(&p->conns[i].out);
        lp_buf_release(&p->conns[i].got);
    }
}

/* The whole of it. A stop comes at the end of the input for one in eight, with everything open. */
static inline void play_all(struct play *p, const uint8_t *data, size_t size)
{
    play_begin(p, data, size);
    bool stops_early = !play_choose(p, 8);
    for (uint32_t k = 0; k < PLAY_CLIENTS; k++)
        play_enter(p, k);
    while (p->at < p->size && !p->is_stopped)
        play_step_on(p);
    if (stops_early) {
        play_stop(p);
        play_pass(p, 5000 * PLAY_MS);
        play_program(p);
        for (uint32_t i = 0; i < p->conn_count; i++)
            play_drain(p, &p->conns[i]);
        play_pass(p, 6000 * PLAY_MS);
    }
    play_watch(p);
    play_end(p);
    play_free(p);
}

#endif
