/* What clients ask, as a random walk over what they hold: sessions, streams, tickets that have gone
 * bad; and every kind of wrong request, with the status that it must get. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "mcp/ticket.h"
#include "sim.h"

enum { BIG_MAX = 260000 };

#define MODERN_META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define MODERN_HEAD "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\n"
#define MODERN_CALL                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"                                            \
    "call\",\"params\":{\"name\":\"a\"," MODERN_META                                               \
    ",\"io.modelcontextprotocol/clientCapabilities\":{}},\"pad\":\""

/* A request before it is text. */
struct draft {
    const char *method;
    const char *target;
    const char *host;
    const char *ticket; /* session header; NULL: none */
    const char *type;
    const char *more; /* further header lines */
    struct lp_span body;
    bool chunked, expects, http10;
};

static const char *const PATHS[SIM_SERVERS] = {"/mcp", "/other"};

static void put(struct lp_buf *out, const char *text)
{
    int err = lp_buf_append(out, lp_span_str(text));
    LP_ASSERT(!err);
}

static const char *host_of(const struct sim *w)
{
    return w->plan.is_loopback && !w->plan.has_lists ? "localhost:8080" : "gate.sim:8080";
}

static void put_body(struct sim *w, struct sim_request *r, const struct draft *d)
{
    char line[LP_HTTP1_CHUNK_LINE_BYTES];
    struct lp_span left = d->body;
    r->body_bytes = d->body.len;
    r->body_sum = sim_sum(d->body);
    while (d->chunked && left.len) {
        size_t n = 1 + sim_below(w, (uint32_t)left.len);
        int err = lp_buf_append(&r->text, lp_span(line, lp_http1_chunk_line(line, n)));
        err = err ? err : lp_buf_append(&r->text, lp_span(left.ptr, n));
        LP_ASSERT(!err);
        put(&r->text, "\r\n");
        left = lp_span_from(left, n);
    }
    if (d->chunked)
        put(&r->text, "0\r\n\r\n");
    int err = d->chunked ? 0 : lp_buf_append(&r->text, left);
    LP_ASSERT(!err);
}

/* Headers that a gateway meets and should live with. */
static void put_ballast(struct sim *w, struct sim_request *r)
{
    if (sim_one_in(w, 5))
        put(&r->text, "Connection: keep-alive, X-Hop\r\nX-Hop: drop me\r\n");
    if (sim_one_in(w, 5))
        put(&r->text, "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n");
    if (sim_one_in(w, 5))
        put(&r->text, "Accept-Encoding: gzip\r\nForwarded: for=1.2.3.4\r\n");
    if (sim_one_in(w, 5))
        put(&r->text, "Accept: application/json, text/event-stream\r\n");
    if (r->has_auth && !r->want && sim_one_in(w, 15)) /* twice, but the same */
        put(&r->text, "Authorization: Bearer sim\r\n");
}

/* What clients make up of the words between sidecars and platforms. */
static void put_marks(struct sim *w, struct sim_request *r)
{
    char line[160];
    if (!w->plan.is_sidecars || !sim_one_in(w, 8))
        return;
    sim_count(w, SIM_FAULT_client_forges_mark);
    if (sim_one_in(w, 3)) {
        put(&r->text, "Fly-Replay-Src: instance=m9\r\n");
        r->may_404 = true; /* it is believed, as "not again" */
        return;
    }
    snprintf(line, sizeof line, "Limpet-Hop: h1.m%u.%080u\r\n", sim_below(w, 4), 0);
    put(&r->text, line);
}

static void compose(struct sim *w, uint32_t number, const struct draft *d)
{
    struct sim_request *r = &w->requests[number];
    char line[2600];
    bool is_absolute = sim_one_in(w, 20) && !r->want;
    bool has_query = d->target[0] == '/' && !strchr(d->target, '?') && sim_one_in(w, 10);
    const char *host = d->host ? d->host : host_of(w);
    /* A target that names the host outranks the Host field. */
    snprintf(line, sizeof line, "%s %s%s%s%s HTTP/1.%d\r\nHost: %s\r\nX-Sim: %u\r\n", d->method,
        is_absolute ? "http://" : "", is_absolute ? host : "", d->target, has_query ? "?q=1" : "",
        d->http10 ? 0 : 1, is_absolute ? "elsewhere.sim" : host, number);
    put(&r->text, line);
    r->http10 = d->http10;
    r->has_auth = !sim_one_in(w, 5);
    r->is_plain_agent = sim_one_in(w, 8);
    put(&r->text, r->has_auth ? "Authorization: Bearer sim\r\n" : "");
    put(&r->text, r->is_plain_agent ? "User-Agent: Go-http-client/1.1\r\n" : "User-Agent: sim\r\n");
    put_ballast(w, r);
    put_marks(w, r);
    if (d->ticket) {
        snprintf(line, sizeof line, "Mcp-Session-Id: %s\r\n", d->ticket);
        put(&r->text, line);
    }
    if (d->type) {
        snprintf(line, sizeof line, "Content-Type: %s\r\n", d->type);
        put(&r->text, line);
    }
    put(&r->text, d->expects ? "Expect: 100-continue\r\n" : "");
    put(&r->text, d->more ? d->more : "");
    if (d->chunked) {
        put(&r->text, "Transfer-Encoding: chunked\r\n");
    } else if (d->body.len) {
        snprintf(line, sizeof line, "Content-Length: %zu\r\n", d->body.len);
        put(&r->text, line);
    }
    put(&r->text, "\r\n");
    put_body(w, r, d);
}

/* --- JSON-RPC --- */

static void make_id(struct sim *w, struct sim_request *r, uint32_t number)
{
    static const char *const FORMS[][2] = {
        {"", ""}, {"\"q-", "\""}, {"90071992547", ""}, {"\"\\u00e9", "\""}};
    uint32_t form = sim_below(w, 4);
    r->has_id = true;
    snprintf(r->id, sizeof r->id, "%s%u%s", FORMS[form][0], number, FORMS[form][1]);
}

static void post_text(struct sim *w, uint32_t number, struct draft *d, const char *text)
{
    d->method = "POST";
    d->type = sim_one_in(w, 25) ? NULL
        : sim_one_in(w, 4)      ? "application/json; charset=utf-8"
                                : "application/json";
    d->body = lp_span_str(text);
    d->chunked = !d->http10 && sim_one_in(w, 4);
    d->expects = !d->http10 && sim_one_in(w, 15);
    compose(w, number, d);
}

static void post_rpc(
    struct sim *w, uint32_t number, struct draft *d, const char *method, const char *params)
{
    struct sim_request *r = &w->requests[number];
    char text[1000], id[40] = "";
    if (r->has_id)
        snprintf(id, sizeof id, "\"id\":%s,", r->id);
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":%s}", id,
        method, params);
    d->http10 = sim_one_in(w, 25);
    post_text(w, number, d, text);
}

/* A call with a body that does not fit into what is held. */
static void post_big(struct sim *w, uint32_t number, struct draft *d)
{
    struct sim_request *r = &w->requests[number];
    char head[200];
    struct lp_buf text;
    lp_buf_init(&text, SIM_BUF_MAX);
    snprintf(head, sizeof head,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"big\",\"pad\":\"",
        r->id);
    put(&text, head);
    size_t total = sim_between(w, 30000, BIG_MAX);
    while (text.len < total)
        put(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    put(&text, "\"}}");
    d->method = "POST";
    d->type = "application/json";
    d->body = lp_buf_span(&text);
    d->chunked = sim_one_in(w, 2);
    compose(w, number, d);
    lp_buf_release(&text);
}

/* --- what a client holds --- */

/* One of its sessions; -1 when it has none. Dead ones are asked for as well, the living more. */
static int32_t pick_session(struct sim *w, const struct sim_client *client, bool is_sse)
{
    int32_t found = -1;
    uint32_t seen = 0;
    for (uint32_t i = w->session_count; i-- > 1;) {
        const struct sim_session *s = &w->sessions[i];
        if (s->client != client->index || s->is_sse != is_sse || !s->ticket[0])
            continue;
        if (s->ended && !sim_one_in(w, 5))
            continue;
        if (found < 0 || sim_one_in(w, ++seen + 2))
            found = (int32_t)i;
    }
    return found;
}

static void age_rule(struct sim *w, struct sim_request *r)
{
    /* Wall clocks jump, so what is near the limit is left open. */
    r->may_404 = r->may_404 || w->plan.age_ms;
}

/* --- requests --- */

static uint32_t initialize(struct sim *w, struct sim_client *client, const char *stale)
{
    uint32_t number =
        sim_request_new(w, client, stale ? SIM_KIND_initialize_stale : SIM_KIND_initialize);
    struct sim_request *r = &w->requests[number];
    r->server = sim_one_in(w, 3) && w->plan.servers > 1;
    make_id(w, r, number);
    struct draft d = {.target = PATHS[r->server], .ticket = stale};
    post_rpc(
        w, number, &d, "initialize", "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}");
    return number;
}

static const struct {
    enum sim_kind kind;
    const char *method;
    bool has_id, may_repeat;
} CALLS[] = {
    {SIM_KIND_initialized, "notifications/initialized", false, false},
    {SIM_KIND_ping, "ping", true, true},
    {SIM_KIND_list, "tools/list", true, true},
    {SIM_KIND_call, "tools/call", true, false},
    {SIM_KIND_call, "tools/call", true, false},
    {SIM_KIND_call_stream, "tools/call", true, false},
    {SIM_KIND_call_stream, "tools/call", true, false},
    {SIM_KIND_cancelled, "notifications/cancelled", false, false},
};

static uint32_t call(struct sim *w, struct sim_client *client, int32_t session)
{
    uint32_t which = sim_below(w, sizeof CALLS / sizeof *CALLS);
    uint32_t number = sim_request_new(w, client, CALLS[which].kind);
    struct sim_request *r = &w->requests[number];
    const struct sim_session *s = &w->sessions[session];
    r->session = session;
    r->server = s->server;
    r->may_repeat = CALLS[which].may_repeat;
    if (CALLS[which].has_id)
        make_id(w, r, number);
    age_rule(w, r);
    struct draft d = {.target = PATHS[r->server],
        .ticket = s->ticket,
        .more = sim_one_in(w, 2) ? "MCP-Protocol-Version: 2025-06-18\r\n" : NULL};
    post_rpc(w, number, &d, CALLS[which].method, "{\"name\":\"echo\",\"progressToken\":1}");
    return number;
}

/* 64 KiB are enough to see that it is no JSON, or to see that nobody will take it. */
static uint32_t odd_big(struct sim *w, struct sim_client *client, int32_t session)
{
    bool is_garbage = sim_one_in(w, 2);
    uint32_t number =
        sim_request_new(w, client, is_garbage ? SIM_KIND_bad_request : SIM_KIND_call_big);
    struct sim_request *r = &w->requests[number];
    struct lp_buf text;
    lp_buf_init(&text, SIM_BUF_MAX);
    put(&text, is_garbage ? "{\"jsonrpc\":nil," : MODERN_CALL);
    while (text.len < 150000)
        put(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    put(&text, "\"}}");
    r->server = w->sessions[session].server;
    r->want = is_garbage ? 400 : 0;
    r->accepts_any = is_garbage; /* its ticket may be worth nothing: then it is not even read */
    r->has_id = !is_garbage;
    r->kind = is_garbage ? r->kind : SIM_KIND_modern;
    snprintf(r->id, sizeof r->id, "5");
    struct draft d = {.method = "POST",
        .target = PATHS[r->server],
        .type = "application/json",
        .ticket = is_garbage ? w->sessions[session].ticket : NULL,
        .more = is_garbage ? NULL : MODERN_HEAD,
        .chunked = sim_one_in(w, 2)};
    d.body = lp_buf_span(&text);
    compose(w, number, &d);
    lp_buf_release(&text);
    return number;
}

static uint32_t call_big(struct sim *w, struct sim_client *client, int32_t session)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_call_big);
    struct sim_request *r = &w->requests[number];
    r->session = session;
    r->server = w->sessions[session].server;
    make_id(w, r, number);
    age_rule(w, r);
    struct draft d = {.target = PATHS[r->server],
        .ticket = w->sessions[session].ticket,
        .more = sim_one_in(w, 6) ? "Mcp-Method: tools/call\r\n" : NULL};
    post_big(w, number, &d);
    return number;
}

static uint32_t odd_post(struct sim *w, struct sim_client *client, int32_t session)
{
    bool is_batch = sim_one_in(w, 2);
    uint32_t number = sim_request_new(w, client, is_batch ? SIM_KIND_batch : SIM_KIND_response);
    struct sim_request *r = &w->requests[number];
    r->session = session;
    r->server = w->sessions[session].server;
    age_rule(w, r);
    struct draft d = {.target = PATHS[r->server], .ticket = w->sessions[session].ticket};
    if (is_batch)
        d.more = "MCP-Protocol-Version: 2025-03-26\r\n";
    post_text(w, number, &d,
        is_batch ? "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\","
                   "\"method\":\"x\"}]"
                 : "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"role\":\"user\"}}");
    return number;
}

static uint32_t get(struct sim *w, struct sim_client *client, int32_t session)
{
    bool resumes = sim_one_in(w, 3);
    uint32_t number = sim_request_new(w, client, resumes ? SIM_KIND_resume : SIM_KIND_get_stream);
    struct sim_request *r = &w->requests[number];
    r->session = session;
    r->server = w->sessions[session].server;
    r->may_repeat = true;
    age_rule(w, r);
    struct draft d = {.method = "GET",
        .target = PATHS[r->server],
        .ticket = w->sessions[session].ticket,
        .http10 = sim_one_in(w, 25),
        .expects = resumes && number % 4 == 0,
        .more = resumes ? "Last-Event-ID: 12-3\r\n" : NULL};
    compose(w, number, &d);
    return number;
}

static uint32_t end(struct sim *w, struct sim_client *client, int32_t session)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_end);
    struct sim_request *r = &w->requests[number];
    r->session = session;
    r->server = w->sessions[session].server;
    age_rule(w, r);
    struct draft d = {
        .method = "DELETE", .target = PATHS[r->server], .ticket = w->sessions[session].ticket};
    compose(w, number, &d);
    return number;
}

static uint32_t without_id(struct sim *w, struct sim_client *client)
{
    static const enum sim_kind KINDS[] = {SIM_KIND_no_id, SIM_KIND_no_id_get, SIM_KIND_options};
    enum sim_kind kind = KINDS[sim_below(w, 3)];
    uint32_t number = sim_request_new(w, client, kind);
    struct sim_request *r = &w->requests[number];
    r->server = sim_below(w, w->plan.servers);
    bool opens_stream =
        kind == SIM_KIND_no_id_get && !r->server && w->plan.has_sse && w->plan.sse_shares_path;
    struct draft d = {
        .method = kind == SIM_KIND_options ? "OPTIONS" : "GET", .target = PATHS[r->server]};
    if (opens_stream)
        r->kind = SIM_KIND_sse_open;
    r->may_repeat = true;
    if (kind == SIM_KIND_no_id) {
        make_id(w, r, number);
        post_rpc(w, number, &d, "tools/list", "{}");
    } else {
        compose(w, number, &d);
    }
    return number;
}

static uint32_t modern(struct sim *w, struct sim_client *client)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_modern);
    struct sim_request *r = &w->requests[number];
    char params[300];
    r->server = sim_below(w, w->plan.servers);
    make_id(w, r, number);
    snprintf(params, sizeof params,
        "{\"name\":\"t\xC3\xA9%u\",\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}",
        number % 2);
    struct draft d = {.target = PATHS[r->server],
        .more = number % 2 ? "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                             "Mcp-Name: =?base64?dMOpMQ==?=\r\n"
                           : "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                             "Mcp-Name: =?base64?dMOpMA==?=\r\n"};
    post_rpc(w, number, &d, "tools/call", params);
    return number;
}

static uint32_t open_sse(struct sim *w, struct sim_client *client)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_sse_open);
    struct draft d = {.method = "GET", .target = w->plan.sse_shares_path ? "/mcp" : "/sse"};
    w->requests[number].may_repeat = true;
    compose(w, number, &d);
    return number;
}

static uint32_t post_sse(struct sim *w, struct sim_client *client, int32_t session)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_sse_post);
    struct sim_request *r = &w->requests[number];
    r->session = session;
    make_id(w, r, number);
    age_rule(w, r);
    struct draft d = {.target = w->sessions[session].ticket};
    post_rpc(w, number, &d, "tools/call", "{\"name\":\"echo\"}");
    return number;
}

/* --- tickets that are none --- */

static void forge(
    struct sim *w, const struct sim_session *s, char room[SIM_TICKET_MAX], uint32_t how)
{
    size_t len = strlen(s->ticket);
    memcpy(room, s->ticket, len + 1);
    if (how == 0) {
        size_t at = 4 + sim_below(w, (uint32_t)len - 4);
        room[at] = room[at] == 'A' ? 'B' : 'A';
    } else if (how == 1) {
        room[sim_below(w, (uint32_t)len)] = 0;
    } else if (how == 2) {
        snprintf(room, SIM_TICKET_MAX, "0b7f3c2e-not-a-ticket");
    } else {
        char text[LP_TICKET_TEXT_MAX];
        unsigned char nonce[LP_TICKET_NONCE_BYTES] = {7};
        struct lp_ticket_scope scope = {.kind = LP_TICKET_HTTP, .server = LP_SPAN("tools")};
        struct lp_ticket ticket = {.issued_ms = sim_wall_ms(w), .upstream_id = LP_SPAN("abc")};
        int err = lp_ticket_seal(&(struct lp_ticket_context){.ring = &w->rings[1], .scope = &scope},
            &ticket, nonce, text, &len);
        LP_ASSERT(!err);
        memcpy(room, text, len);
        room[len] = 0;
    }
}

/* The same of a readable id: no owner, half of one, one that nobody is. */
static void forge_readable(struct sim *w, const struct sim_session *s, char room[SIM_TICKET_MAX])
{
    const char *rest = strchr(s->ticket, '.');
    LP_ASSERT(rest);
    switch (sim_below(w, 4)) {
    case 0:
        snprintf(room, SIM_TICKET_MAX, "%s", rest + sim_below(w, 2));
        break;
    case 1:
        snprintf(room, SIM_TICKET_MAX, "%.*s", (int)(rest - s->ticket) + 1, s->ticket);
        break;
    case 2:
        snprintf(room, SIM_TICKET_MAX, "m7%s", rest);
        break;
    default:
        snprintf(room, SIM_TICKET_MAX, "%.2s;x=y%s", s->ticket, rest);
        break;
    }
}

static uint32_t bad_ticket(struct sim *w, struct sim_client *client, int32_t session)
{
    static const char *const METHODS[] = {"POST", "GET", "DELETE"};
    char ticket[SIM_TICKET_MAX];
    uint32_t how = sim_below(w, w->plan.servers == 1 ? 4 : 5);
    uint32_t number = sim_request_new(w, client, SIM_KIND_bad_ticket);
    struct sim_request *r = &w->requests[number];
    const struct sim_session *s = &w->sessions[session];
    r->want = 404;
    r->server = how == 4 && !w->plan.owner_ids ? 1 - s->server : s->server;
    memcpy(ticket, s->ticket, sizeof ticket);
    if (w->plan.owner_ids)
        forge_readable(w, s, ticket);
    else if (how < 4)
        forge(w, s, ticket, how);
    struct draft d = {
        .method = METHODS[sim_below(w, 3)], .target = PATHS[r->server], .ticket = ticket};
    if (d.method[0] == 'P') {
        make_id(w, r, number);
        post_rpc(w, number, &d, "tools/call", "{\"name\":\"echo\"}");
    } else {
        compose(w, number, &d);
    }
    return number;
}

/* --- requests that are wrong --- */

#define RPC_CALL                                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}"

struct wrong {
    uint16_t want;
    const char *method, *target, *type, *more, *body;
};

static const struct wrong WRONGS[] = {
    {400, "POST", "/mcp", "application/json", NULL, "{\"jsonrpc\":\"2.0\",\"id\":5,"},
    {400, "POST", "/mcp", "application/json", NULL, "42"},
    {400, "POST", "/mcp", "application/json", NULL, "{\"jsonrpc\":\"2.0\",\"id\":5}"},
    {400, "POST", "/other", "application/json", NULL, "[]"},
    {400, "POST", "/mcp", "application/json", NULL,
        "[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"initialize\"}]"},
    {400, "POST", "/mcp", "application/json", NULL,
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"a\",\"method\":\"b\"}"},
    {404, "POST", "/nowhere", "application/json", NULL, RPC_CALL},
    {404, "GET", "/mcp/", NULL, NULL, ""},
    {400, "GET", "/mcp#part", NULL, NULL, ""},
    {400, "POST", "/sse?lp=a&lp=b", "application/json", NULL, RPC_CALL},
    {400, "POST", "/sse", "application/json", NULL, RPC_CALL},
    {405, "DELETE", "/sse", NULL, NULL, ""},
    {400, "DELETE", "/other", NULL,
        "Traceparent: a\r\nTraceparent: b\r\nLast-Event-ID: 1\r\n"
        "Last-Event-ID: 2\r\n",
        ""},
    {400, "POST", "/other", "application/json",
        "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"js\r\nzz", NULL},
    {403, "POST", "/mcp", "application/json", "Origin: http://evil.example\r\n", RPC_CALL},
    {415, "POST", "/mcp", "text/plain", NULL, RPC_CALL},
    {417, "POST", "/mcp", "application/json", "Expect: the-unexpected\r\n", RPC_CALL},
    {405, "PUT", "/mcp", "application/json", NULL, "{}"},
    {405, "HEAD", "/mcp", NULL, NULL, ""},
    {400, "POST", "/mcp", "application/json", "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n",
        RPC_CALL},
    {400, "POST", "/mcp", "application/json", "Authorization: x\r\nAuthorization: y\r\n", RPC_CALL},
    {413, "POST", "/mcp", "application/json", "Content-Length: 300001\r\n", NULL},
    {400, "POST", "/mcp", "application/json", "Bad Name: x\r\n", NULL},
    {400, "POST", "/mcp", "application/json", "Content-Length: 3\r\nContent-Length: 4\r\n", NULL},
    {408, "POST", "/mcp", "application/json", "Content-Length: 300\r\n", NULL},
    {400, "POST", "/mcp", "application/json", MODERN_HEAD, RPC_CALL},
    {400, "POST", "/mcp", "application/json",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nMcp-Name: a\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"a\"," MODERN_META
        ",\"io.modelcontextprotocol/clientCapabilities\":{}}}}"},
    {400, "POST", "/other", "application/json", MODERN_HEAD,
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"a\"," MODERN_META "}}}"},
    {400, "POST", "/other", "application/json",
        "MCP-Protocol-Version: 2099-01-01\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\"}}}"},
    {400, "POST", "/other", "application/json", MODERN_HEAD,
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}"},
    {415, "POST", "/mcp", "text/html", NULL, "{\"jsonrpc\":"},
    {200, "POST", "/mcp", "application/json",
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tasks/get\r\nMcp-Name: lp1_x\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tasks/get\",\"params\":{\"taskId\":"
        "\"lp1_x\"," MODERN_META ",\"io.modelcontextprotocol/clientCapabilities\":{}}}}"},
};

enum { WRONG_COUNT = sizeof WRONGS / sizeof *WRONGS };

/* Heads that are too large, and bodies that turn out too large. */
static uint32_t too_large(struct sim *w, struct sim_client *client, int32_t session)
{
    uint32_t number = sim_request_new(w, client, SIM_KIND_bad_request);
    struct sim_request *r = &w->requests[number];
    struct lp_buf text;
    lp_buf_init(&text, SIM_BUF_MAX);
    bool is_head = sim_one_in(w, 2);
    bool has_many = is_head && sim_one_in(w, 2);
    for (int i = 0; i < 117 && has_many; i++)
        put(&text, "X-One: 1\r\n");
    if (!is_head)
        put(&text,
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"pad\":\"");
    else
        put(&text, "X-Pad: ");
    for (size_t total = has_many ? 0 : is_head ? 70000 : 310000; text.len < total;)
        put(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    put(&text, is_head ? "\r\n" : "\"}}");
    r->want = is_head ? 431 : 413;
    bool is_bound = session > 0 && sim_one_in(w, 2);
    r->accepts_any = !is_head && is_bound; /* it streams, and has reached a replica by then */
    if (is_bound)
        r->server = w->sessions[session].server;
    struct draft d = {.method = "POST",
        .target = PATHS[r->server],
        .ticket = is_bound ? w->sessions[session].ticket : NULL,
        .type = "application/json"};
    if (is_bound)
        r->session = session;
    int err = is_head ? lp_buf_append(&text, lp_span("", 1)) : LP_OK; /* a string from now on */
    LP_ASSERT(!err);
    if (is_head)
        d.more = lp_buf_span(&text).ptr;
    if (!is_head) {
        d.body = lp_buf_span(&text);
        d.chunked = true;
    }
    compose(w, number, &d);
    lp_buf_release(&text);
    return number;
}

static uint32_t bad_request(struct sim *w, struct sim_client *client)
{
    const struct wrong *wrong = &WRONGS[sim_below(w, WRONG_COUNT)];
    uint32_t number = sim_request_new(w, client, SIM_KIND_bad_request);
    struct sim_request *r = &w->requests[number];
    bool has_path = w->plan.has_sse && !w->plan.sse_shares_path;
    r->want = wrong->target[1] == 's' && !has_path ? 404 : wrong->want;
    struct draft d = {.method = wrong->method,
        .target = wrong->target,
        .type = wrong->type,
        .more = wrong->more,
        .body = wrong->body ? lp_span_str(wrong->body) : LP_SPAN("")};
    bool guards_hosts = w->plan.is_loopback || w->plan.has_lists;
    if (guards_hosts && sim_one_in(w, 6) && wrong->want == 404 && wrong->body[0]) {
        r->want = 403;
        d.target = "/mcp";
        d.host = "rebound.example";
    }
    if (w->plan.servers == 1 && strcmp(d.target, "/other") == 0)
        d.target = "/mcp";
    compose(w, number, &d);
    return number;
}

/* --- the walk --- */

static uint32_t in_session(struct sim *w, struct sim_client *client, int32_t session)
{
    switch (sim_below(w, 16)) {
    case 0:
        return end(w, client, session);
    case 1:
    case 2:
    case 3:
        return get(w, client, session);
    case 4:
        return odd_post(w, client, session);
    case 5:
        return bad_ticket(w, client, session);
    case 6:
        if (sim_one_in(w, 3))
            return odd_big(w, client, session);
        return sim_one_in(w, 2) ? call_big(w, client, session) : too_large(w, client, session);
    case 7:
        return initialize(w, client, w->sessions[session].ticket);
    default:
        return call(w, client, session);
    }
}

static uint32_t in_sse(struct sim *w, struct sim_client *client)
{
    int32_t session = pick_session(w, client, true);
    return session > 0 && !sim_one_in(w, 4) ? post_sse(w, client, session) : open_sse(w, client);
}

uint32_t sim_script_next(struct sim *w, struct sim_client *client)
{
    int32_t session = pick_session(w, client, false);
    switch (sim_below(w, 12)) {
    case 0:
        return modern(w, client);
    case 1:
        return without_id(w, client);
    case 2:
        return sim_one_in(w, 8) ? too_large(w, client, -1) : bad_request(w, client);
    case 3:
    case 4:
        return w->plan.has_sse ? in_sse(w, client) : modern(w, client);
    case 5:
        return initialize(w, client, sim_one_in(w, 6) ? "stale" : NULL);
    default:
        return session > 0 ? in_session(w, client, session) : initialize(w, client, NULL);
    }
}
