/* The demo's client (app/demo_client.h): a list of requests, each on a connection of its own.
 *
 * It behaves as simple clients do: what is not answered with 200 has failed, and it goes on. */
#include "app/demo_client.h"

#include <stdio.h>

#include "base/error.h"
#include "wire/member.h"

enum { BODY_MAX = 65536, CONNECT_MS = 2000, FIRST_CALL = 3 };

static const char *const OPENING[FIRST_CALL] = {
    "{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":"
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"limpet-demo\",\"version\":\"1\"}"
    "}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"method\":\"tools/list\"}",
};

static const struct lp_message_ops OPS;

static void begin_step(struct lp_demo_client *c);

/* --- one answer --- */

static void note_call(struct lp_demo_client *c)
{
    uint32_t i = c->step - FIRST_CALL;
    struct lp_span result = lp_member(lp_buf_span(&c->body), LP_SPAN("result"));
    struct lp_span facts = lp_member(result, LP_SPAN("structuredContent"));
    struct lp_span name = lp_member(facts, LP_SPAN("replica"));
    bool is_good = c->status == 200 && name.len >= 3 &&
        lp_member_u64(facts, LP_SPAN("count"), &c->row.last_count);
    c->row.result[i] = is_good ? 'O' : 'x';
    c->row.replica[i] = is_good ? name.ptr[1] : c->who_failed(c->ctx);
    c->row.answered += is_good;
    if (!is_good)
        c->row.last_bad_status = c->status;
}

static void end_step(struct lp_demo_client *c)
{
    lp_link_close(c->links, c->link, LP_CLOSE_NOW);
    c->link = 0;
    if (c->step >= FIRST_CALL)
        note_call(c);
    c->step++;
    if (c->step < FIRST_CALL + LP_DEMO_CALLS)
        begin_step(c);
    else
        c->done(c->ctx);
}

/* --- one request --- */

static void begin_step(struct lp_demo_client *c)
{
    struct lp_endpoint to = {
        .kind = LP_EP_TCP, .host = LP_SPAN("127.0.0.1"), .port = c->port, .timeout_ms = CONNECT_MS};
    c->status = 0;
    lp_buf_clear(&c->body);
    if (lp_link_open(c->links, &to, &OPS, c, &c->link))
        end_step(c); /* out of memory: a few steps deep at most */
}

static void add(struct lp_head *head, enum lp_field_id id, struct lp_span value)
{
    int err = lp_head_add(head, id, value);
    LP_ASSERT(!err);
}

static void send_request(struct lp_demo_client *c)
{
    char call[160];
    char host[32];
    snprintf(call, sizeof call,
        "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"counter\","
        "\"arguments\":{}}}",
        c->step);
    snprintf(host, sizeof host, "127.0.0.1:%u", c->port);
    struct lp_span body = lp_span_str(c->step < FIRST_CALL ? OPENING[c->step] : call);
    c->head = (struct lp_head){.is_request = true,
        .method = LP_METHOD_POST,
        .method_name = LP_SPAN("POST"),
        .target = LP_SPAN("/mcp"),
        .body = LP_BODY_LENGTH,
        .body_bytes = body.len};
    add(&c->head, LP_FIELD_HOST, lp_span_str(host));
    add(&c->head, LP_FIELD_CONTENT_TYPE, LP_SPAN("application/json"));
    add(&c->head, LP_FIELD_ACCEPT, LP_SPAN("application/json, text/event-stream"));
    if (c->step > 0)
        add(&c->head, LP_FIELD_MCP_PROTOCOL_VERSION, LP_SPAN("2025-11-25"));
    if (c->session_len)
        add(&c->head, LP_FIELD_MCP_SESSION_ID, lp_span(c->session, c->session_len));
    struct lp_stream s = lp_link_begin(c->links, c->link);
    lp_link_send_head(c->links, s, &c->head);
    bool takes_more = lp_link_send_body(c->links, s, body);
    (void)takes_more; /* it is small */
    lp_link_send_end(c->links, s);
}

static void on_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    (void)tag;
    (void)link;
    struct lp_demo_client *c = ctx;
    if (error)
        end_step(c);
    else
        send_request(c);
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    (void)s;
    struct lp_demo_client *c = ctx;
    struct lp_span id = lp_head_value(head, LP_FIELD_MCP_SESSION_ID);
    c->status = head->status;
    if (c->step == 0 && id.len <= sizeof c->session) {
        if (id.len)
            memcpy(c->session, id.ptr, id.len);
        c->session_len = id.len;
    }
}

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)tag;
    (void)s;
    struct lp_demo_client *c = ctx;
    if (lp_buf_append(&c->body, bytes))
        c->status = 0; /* far too long to be what was asked for */
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)tag;
    (void)s;
    (void)whole;
    end_step(ctx);
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)tag;
    (void)s;
    (void)why;
    struct lp_demo_client *c = ctx;
    c->status = 0;
    end_step(c);
}

/* The rest is never called: `left` and `refused` are a client's connection's, `writable` follows a
 * backlog that these small requests do not make, and `closed` a connection without a request. */
static const struct lp_message_ops OPS = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .reset = on_reset,
    .connected = on_connected,
};

void lp_demo_client_start(struct lp_demo_client *c, uint16_t port)
{
    c->port = port;
    c->row = (struct lp_demo_row){0};
    c->step = 0;
    c->session_len = 0;
    lp_buf_init(&c->body, BODY_MAX);
    begin_step(c);
}

void lp_demo_client_fini(struct lp_demo_client *c)
{
    lp_buf_release(&c->body);
}
