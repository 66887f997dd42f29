/* The plain load balancer of the demo (app/naive.h).
 *
 * One pass per request: its head is kept, its body gathered, a fresh connection to the next replica
 * opened, and the answer passed on as it comes, paused while the client does not read. The client's
 * stream and the replica's link both carry the pass as their tag. */
#include "app/naive.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/http1.h"

enum { PASSES_MAX = 1024, TEXT_MAX = 8192, BODY_MAX = 262144, CONNECT_MS = 2000 };

struct pass {
    lp_id id;
    struct lp_stream down;
    struct lp_stream up;
    lp_id link;
    bool is_connected;
    bool is_complete; /* the request is all here */
    bool is_sent;
    bool has_begun; /* the answer to the client */
    struct lp_head head;
    char text[TEXT_MAX];
    size_t text_len;
    struct lp_buf body;
};

static const struct lp_message_ops REPLICA_OPS;

void lp_naive_init(struct lp_naive *naive, struct lp_links *links)
{
    *naive = (struct lp_naive){.links = links};
    lp_slab_init(&naive->passes, sizeof(struct pass), PASSES_MAX);
}

void lp_naive_fini(struct lp_naive *naive)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct pass *p; (p = lp_slab_next(&naive->passes, &cursor, &id));)
        lp_buf_release(&p->body);
    lp_slab_fini(&naive->passes);
}

static void forget(struct lp_naive *naive, struct pass *p)
{
    lp_link_close(naive->links, p->link, LP_CLOSE_NOW);
    lp_buf_release(&p->body);
    lp_slab_free(&naive->passes, p->id);
}

/* --- heads --- */

static bool is_passed_on(enum lp_field_id id)
{
    return !lp_field_is_hop_by_hop(id) && id != LP_FIELD_HOST && id != LP_FIELD_CONTENT_LENGTH &&
        id != LP_FIELD_EXPECT;
}

static bool keep(struct pass *p, struct lp_span *span)
{
    if (span->len > sizeof p->text - p->text_len)
        return false;
    if (span->len)
        memcpy(p->text + p->text_len, span->ptr, span->len);
    span->ptr = p->text + p->text_len;
    p->text_len += span->len;
    return true;
}

/* The request's head, copied: it is sent when the replica's connection is there. */
static bool keep_head(struct pass *p, const struct lp_head *head, struct lp_span host)
{
    p->head = (struct lp_head){.is_request = true,
        .method = head->method,
        .method_name = head->method_name,
        .target = head->target,
        .minor = 1};
    bool fits = keep(p, &p->head.method_name) && keep(p, &p->head.target) && keep(p, &host);
    (void)lp_head_add(&p->head, LP_FIELD_HOST, host);
    for (uint32_t i = 0; i < head->field_count && fits; i++) {
        struct lp_field field = head->fields[i];
        if (!is_passed_on(field.id))
            continue;
        fits = keep(p, &field.name) && keep(p, &field.value) &&
            p->head.field_count < LP_HEAD_FIELDS_MAX;
        if (fits)
            p->head.fields[p->head.field_count++] = field;
    }
    return fits;
}

static struct lp_head *answer_head(struct lp_naive *naive, uint16_t status)
{
    struct lp_head *head = &naive->head;
    head->is_request = false;
    head->status = status;
    head->reason = lp_http1_phrase(status);
    head->body = LP_BODY_NONE;
    head->body_bytes = 0;
    head->field_count = 0;
    return head;
}

/* Our own answer, without a body. */
static void refuse(struct lp_naive *naive, struct lp_stream s, uint16_t status)
{
    lp_link_send_head(naive->links, s, answer_head(naive, status));
    lp_link_send_end(naive->links, s);
}

static void give_up(struct lp_naive *naive, struct pass *p, uint16_t status)
{
    struct lp_stream down = p->down;
    bool has_begun = p->has_begun;
    forget(naive, p);
    if (has_begun)
        lp_link_abort(naive->links, down);
    else
        refuse(naive, down, status);
}

/* --- the client's side --- */

static void send_request(struct lp_naive *naive, struct pass *p)
{
    if (!p->is_connected || !p->is_complete || p->is_sent)
        return;
    lp_id id = p->id;
    p->is_sent = true;
    p->up = lp_link_begin(naive->links, p->link);
    p->head.body = p->body.len ? LP_BODY_LENGTH : LP_BODY_NONE;
    p->head.body_bytes = p->body.len;
    lp_link_send_head(naive->links, p->up, &p->head);
    p = lp_slab_get(&naive->passes, id);
    if (p && p->body.len && !lp_link_send_body(naive->links, p->up, lp_buf_span(&p->body)))
        p = lp_slab_get(&naive->passes, id);
    if (p)
        lp_link_send_end(naive->links, p->up);
}

static int connect_next(struct lp_naive *naive, struct pass *p, const struct lp_head *head)
{
    char host[32];
    uint32_t chosen = naive->next++ % naive->count;
    naive->last = chosen;
    int n = snprintf(host, sizeof host, "127.0.0.1:%u", naive->ports[chosen]);
    if (!keep_head(p, head, lp_span(host, (size_t)n)))
        return LP_ETOO_LONG;
    struct lp_endpoint to = {.kind = LP_EP_TCP,
        .host = LP_SPAN("127.0.0.1"),
        .port = naive->ports[chosen],
        .timeout_ms = CONNECT_MS};
    int err = lp_link_open(naive->links, &to, &REPLICA_OPS, naive, &p->link);
    if (!err)
        lp_link_set_tag(naive->links, p->link, p->id);
    return err;
}

static void on_request(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    struct lp_naive *naive = ctx;
    lp_id id;
    struct pass *p = lp_slab_new(&naive->passes, &id);
    if (!p) {
        refuse(naive, s, 503);
        return;
    }
    p->id = id;
    p->down = s;
    lp_buf_init(&p->body, BODY_MAX);
    lp_link_set_tag(naive->links, s.link, id);
    int err = connect_next(naive, p, head);
    if (err)
        give_up(naive, p, err == LP_ETOO_LONG ? 431 : 502);
    else if (head->expect_continue)
        lp_link_continue(naive->links, s);
}

static void on_request_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)s;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p && lp_buf_append(&p->body, bytes))
        give_up(naive, p, 413);
}

static void on_request_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    (void)whole;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (!p)
        return;
    p->is_complete = true;
    send_request(naive, p);
}

static void on_client_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p)
        lp_link_resume(naive->links, p->up);
}

static void on_client_left(void *ctx, uint64_t tag, struct lp_stream s)
{
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p)
        forget(naive, p);
    lp_link_abort(naive->links, s);
}

static void on_client_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p)
        forget(naive, p);
}

static void on_client_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)why;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p)
        forget(naive, p);
    refuse(naive, s, 400);
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why;
}

/* No `connected`: clients come by themselves. */
const struct lp_message_ops lp_naive_ops = {
    .head = on_request,
    .body = on_request_body,
    .end = on_request_end,
    .writable = on_client_writable,
    .left = on_client_left,
    .reset = on_client_reset,
    .refused = on_client_refused,
    .closed = on_closed,
};

/* --- the replica's side --- */

static void on_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    (void)link;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (!p)
        return;
    p->is_connected = true;
    if (error)
        give_up(naive, p, 502);
    else
        send_request(naive, p);
}

static void on_answer(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)s;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (!p)
        return;
    struct lp_head *out = answer_head(naive, head->status);
    out->body = head->body == LP_BODY_UNTIL_CLOSE ? LP_BODY_CHUNKED : head->body;
    out->body_bytes = head->body_bytes;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (is_passed_on(head->fields[i].id))
            out->fields[out->field_count++] = head->fields[i];
    p->has_begun = true;
    lp_link_send_head(naive->links, p->down, out);
}

static void on_answer_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    struct lp_naive *naive = ctx;
    const struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p && !lp_link_send_body(naive->links, p->down, bytes))
        lp_link_pause(naive->links, s);
}

static void on_answer_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    (void)whole;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (!p)
        return;
    struct lp_stream down = p->down;
    forget(naive, p);
    lp_link_send_end(naive->links, down);
}

static void on_replica_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)ctx;
    (void)tag;
    (void)s; /* the request was handed over whole */
}

static void on_replica_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    struct lp_naive *naive = ctx;
    struct pass *p = lp_slab_get(&naive->passes, tag);
    if (p)
        give_up(naive, p, 502);
}

static void on_replica_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)link;
    on_replica_reset(ctx, tag, (struct lp_stream){0}, why);
}

/* `left` and `refused` are a client's; `writable` follows a backlog, and a request, handed over
 * whole, has nothing more to write. */
static const struct lp_message_ops REPLICA_OPS = {
    .head = on_answer,
    .body = on_answer_body,
    .end = on_answer_end,
    .writable = on_replica_writable,
    .reset = on_replica_reset,
    .connected = on_connected,
    .closed = on_replica_closed,
};
