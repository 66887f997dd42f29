/* HTTP/1 as a codec of link: one stream at a time on a connection (RFC 9112).
 *
 * It decides when a connection may carry another request, how our message is framed, and what an
 * end of the connection means for the stream. Requests that come early (pipelining) wait in the
 * link until the answer before them is out. */
#include "base/error.h"
#include "link/link_priv.h"

static struct lp_stream stream_of(const struct lp_link *link)
{
    return (struct lp_stream){link->id, link->h1.number};
}

/* The link of a stream that is still in progress, or NULL. */
static struct lp_link *open_link(const struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = lp_link_get(links, s.link);
    bool is_it = link && link->h1.open && link->h1.number == s.number;
    return is_it ? link : NULL;
}

/* From now on the client's next bytes are awaited. */
static void await(struct lp_links *links, struct lp_link *link)
{
    link->h1.awaited_us = links->now_us;
    link->h1.awaited_bytes = 0;
}

static void start(struct lp_links *links, struct lp_link *link)
{
    lp_http1_init(
        &link->h1.parser, link->is_client ? LP_HTTP1_REQUESTS : LP_HTTP1_RESPONSES, links->head);
    await(links, link);
}

static void release(struct lp_link *link)
{
    lp_http1_release(&link->h1.parser);
}

static void begin_stream(struct lp_links *links, struct lp_link *link)
{
    struct lp_h1 *h1 = &link->h1;
    LP_ASSERT(!h1->open);
    h1->number++;
    h1->open = true;
    h1->head_seen = h1->in_ended = h1->out_begun = h1->out_ended = false;
    h1->paused = h1->blocked = h1->refused = h1->is_head_method = false;
    h1->keep_alive = true;
    h1->minor = 1;
    h1->out_kind = LP_BODY_NONE;
    link->wrote = false;
    link->wrote_us = links->now_us;
    await(links, link);
    link->stalled_us = links->limits.stalled_us;
}

struct lp_stream lp_link_begin(struct lp_links *links, lp_id id)
{
    struct lp_link *link = lp_link_get(links, id);
    LP_ASSERT(link && !link->is_client);
    begin_stream(links, link);
    return stream_of(link);
}

bool lp_link_is_idle(const struct lp_links *links, lp_id id)
{
    const struct lp_link *link = lp_link_get(links, id);
    return link && link->state == LP_LINK_OPEN && !link->h1.open && !link->eof &&
        !link->close_after && !link->held.len && lp_http1_is_between(&link->h1.parser) &&
        !lp_link_waiting(link);
}

/* --- the stream's end --- */

/* Both messages are complete, or ours is and that is all that matters. */
static void settle(struct lp_links *links, struct lp_link *link)
{
    struct lp_h1 *h1 = &link->h1;
    LP_ASSERT(h1->open);
    if (!h1->out_ended || link->state == LP_LINK_DEAD)
        return;
    if (!link->is_client) {
        if (h1->in_ended) {
            h1->open = false;
            link->close_after |= !h1->keep_alive;
        }
        return;
    }
    h1->open = false;
    link->tag = 0;
    bool stays = h1->in_ended && h1->keep_alive && !link->close_after && !h1->refused &&
        (!link->eof || link->held.len) && (!links->stopping || links->limits.parting_us);
    if (!stays) {
        lp_link_finish(links, link, LP_CLOSE_LINGER);
        return;
    }
    await(links, link); /* it is idle from here on, however long the answer took */
    lp_link_rearm(links, link);
    lp_link_go_on_later(links, link);
}

/* Reasons speak of the client where either side could be meant. */
static enum lp_reason reason_at_replica(enum lp_reason why)
{
    switch (why) {
    case LP_REASON_client_left:
        return LP_REASON_upstream_broke;
    case LP_REASON_reader_stalled:
        return LP_REASON_upstream_stalled;
    case LP_REASON_client_sent_more:
        return LP_REASON_upstream_garbled;
    default:
        return why;
    }
}

static void lost(struct lp_links *links, struct lp_link *link, enum lp_reason why)
{
    (void)links;
    struct lp_stream s = stream_of(link);
    uint64_t tag = link->tag;
    bool was_open = link->h1.open;
    link->h1.open = false;
    if (!link->is_client)
        why = reason_at_replica(why);
    if (was_open)
        link->ops->reset(link->ctx, tag, s, why);
    else
        link->ops->closed(link->ctx, tag, link->id, why);
}

static void die(
    struct lp_links *links, struct lp_link *link, enum lp_close_how how, enum lp_reason why)
{
    lp_link_kill(links, link, how);
    lost(links, link, why);
}

/* --- input --- */

static enum lp_reason reason_of_error(const struct lp_link *link, int error)
{
    if (!link->is_client)
        return error == LP_ENOMEM ? LP_REASON_out_of_memory : LP_REASON_upstream_garbled;
    if (error == LP_ETOO_LONG)
        return LP_REASON_head_too_large;
    return error == LP_ENOMEM ? LP_REASON_out_of_memory : LP_REASON_bad_http;
}

/* The client's bytes make no request. Between two requests that opens a stream of its own, so that
 * there is something to answer on; within one whose answer has begun only breaking off is left. */
static void refuse(struct lp_links *links, struct lp_link *link, enum lp_reason why)
{
    struct lp_h1 *h1 = &link->h1;
    if (!h1->open)
        begin_stream(links, link);
    if (h1->out_begun) {
        die(links, link, LP_CLOSE_RESET, why);
        return;
    }
    h1->refused = true;
    h1->in_ended = true;
    link->ops->refused(link->ctx, link->tag, stream_of(link), why);
}

static void on_head(struct lp_links *links, struct lp_link *link, const struct lp_head *head)
{
    struct lp_h1 *h1 = &link->h1;
    if (link->is_client) {
        begin_stream(links, link);
        h1->is_head_method = head->method == LP_METHOD_HEAD;
        h1->minor = head->minor;
    } else if (head->status < 200) {
        return;
    }
    h1->head_seen = true;
    /* To HTTP/1.0 the word would have to be said back; its connections end instead. */
    h1->keep_alive = head->keep_alive && (h1->minor || !link->is_client);
    link->ops->head(link->ctx, link->tag, stream_of(link), head);
}

static void on_end(struct lp_links *links, struct lp_link *link)
{
    struct lp_h1 *h1 = &link->h1;
    if (!h1->head_seen)
        return; /* an interim answer */
    h1->in_ended = true;
    struct lp_stream s = stream_of(link);
    uint64_t tag = link->tag;
    settle(links, link);
    link->ops->end(link->ctx, tag, s, true);
}

static uint64_t bytes_wanted(const struct lp_links *links)
{
    enum { SECOND_US = 1000000 };
    return links->limits.request_us * LP_LINK_BODY_RATE / SECOND_US + 1;
}

static void on_body(struct lp_links *links, struct lp_link *link, struct lp_span bytes)
{
    LP_ASSERT(link->h1.open);
    link->h1.awaited_bytes += bytes.len;
    if (link->h1.awaited_bytes >= bytes_wanted(links))
        await(links, link);
    link->ops->body(link->ctx, link->tag, stream_of(link), bytes);
}

static void on_item(struct lp_links *links, struct lp_link *link, const struct lp_http1_item *item)
{
    switch (item->kind) {
    case LP_HTTP1_NONE:
        LP_UNREACHABLE();
    case LP_HTTP1_HEAD:
        on_head(links, link, item->head);
        break;
    case LP_HTTP1_BODY:
        on_body(links, link, item->body);
        break;
    case LP_HTTP1_END:
        on_end(links, link);
        break;
    }
}

/* Between two messages, with no byte of the next one here. */
static bool is_idle(const struct lp_link *link)
{
    return !link->h1.open && lp_http1_is_between(&link->h1.parser);
}

/* Whether the parser may get more bytes now. */
static bool may_feed(const struct lp_link *link)
{
    const struct lp_h1 *h1 = &link->h1;
    if (link->state != LP_LINK_OPEN || h1->paused || h1->refused)
        return false;
    if (link->is_client)
        return !(h1->open && h1->in_ended);
    return h1->open && !h1->in_ended;
}

static size_t input(struct lp_links *links, struct lp_link *link, struct lp_span bytes)
{
    struct lp_h1 *h1 = &link->h1;
    if (!link->is_client && !h1->open && bytes.len) {
        /* An idle replica connection has nothing to say: not fit for use any more. */
        die(links, link, LP_CLOSE_NOW, LP_REASON_upstream_garbled);
        return bytes.len;
    }
    size_t taken = 0;
    while (may_feed(link)) {
        struct lp_http1_item item;
        bool was_idle = is_idle(link);
        ptrdiff_t n = lp_http1_feed(&h1->parser, lp_span_from(bytes, taken), &item);
        if (n < 0) {
            enum lp_reason why = reason_of_error(link, (int)n);
            if (link->is_client)
                refuse(links, link, why);
            else
                die(links, link, LP_CLOSE_NOW, why);
            return bytes.len;
        }
        taken += (size_t)n;
        if (was_idle && !is_idle(link))
            await(links, link); /* a head has begun */
        if (item.kind == LP_HTTP1_NONE)
            break;
        on_item(links, link, &item);
    }
    if (link->state == LP_LINK_OPEN)
        lp_link_rearm(links, link);
    return link->state == LP_LINK_OPEN && !h1->refused ? taken : bytes.len;
}

static void eof_of_client(struct lp_links *links, struct lp_link *link)
{
    struct lp_h1 *h1 = &link->h1;
    if (!h1->open && lp_link_waiting(link))
        lp_link_finish(links, link, LP_CLOSE_LINGER); /* it may only have half closed */
    else if (!h1->open)
        die(links, link, LP_CLOSE_NOW, LP_REASON_client_left);
    else if (!h1->in_ended)
        die(links, link, LP_CLOSE_NOW, LP_REASON_client_left);
    else
        link->ops->left(link->ctx, link->tag, stream_of(link));
}

static void eof_of_replica(struct lp_links *links, struct lp_link *link)
{
    struct lp_h1 *h1 = &link->h1;
    bool ended = false;
    int err = h1->open ? lp_http1_eof(&h1->parser, &ended) : LP_OK;
    if (err || !ended || !h1->head_seen) {
        die(links, link, LP_CLOSE_NOW, LP_REASON_upstream_broke);
        return;
    }
    h1->in_ended = true;
    h1->keep_alive = false;
    struct lp_stream s = stream_of(link);
    uint64_t tag = link->tag;
    settle(links, link);
    link->ops->end(link->ctx, tag, s, false);
}

static void eof(struct lp_links *links, struct lp_link *link)
{
    if (link->is_client)
        eof_of_client(links, link);
    else
        eof_of_replica(links, link);
}

static void credit(struct lp_links *links, struct lp_link *link)
{
    (void)links;
    if (!link->h1.blocked)
        return;
    link->h1.blocked = false;
    if (link->h1.open)
        link->ops->writable(link->ctx, link->tag, stream_of(link));
}

/* --- deadlines: only a client's connection has them here; a replica's are its owner's --- */

static uint64_t parting_end_us(const struct lp_links *links, const struct lp_link *link)
{
    uint64_t from_us = link->h1.awaited_us > links->stop_us ? link->h1.awaited_us : links->stop_us;
    return from_us + links->limits.parting_us;
}

static uint64_t deadline_us(const struct lp_links *links, const struct lp_link *link)
{
    const struct lp_h1 *h1 = &link->h1;
    if (!link->is_client || (h1->open && (h1->in_ended || h1->paused)))
        return UINT64_MAX;
    if (!is_idle(link))
        return h1->awaited_us + links->limits.request_us;
    return links->stopping ? parting_end_us(links, link) : h1->awaited_us + links->limits.idle_us;
}

static void timeout(struct lp_links *links, struct lp_link *link)
{
    if (is_idle(link) && lp_link_waiting(link)) /* its last answer is still on the way */
        lp_link_finish(links, link, LP_CLOSE_LINGER);
    else if (is_idle(link))
        die(links, link, LP_CLOSE_LINGER, LP_REASON_idle);
    else
        refuse(links, link, LP_REASON_request_timeout);
}

const struct lp_link_codec lp_h1_codec = {
    .start = start,
    .input = input,
    .eof = eof,
    .lost = lost,
    .credit = credit,
    .deadline_us = deadline_us,
    .timeout = timeout,
    .release = release,
};

/* --- output --- */

static enum lp_body_kind framing_for(const struct lp_link *link, const struct lp_head *head)
{
    if (link->is_client && head->body == LP_BODY_CHUNKED && link->h1.minor == 0)
        return LP_BODY_UNTIL_CLOSE;
    return head->body;
}

void lp_link_send_head(struct lp_links *links, struct lp_stream s, struct lp_head *head)
{
    struct lp_link *link = open_link(links, s);
    if (!link || link->h1.out_begun)
        return;
    struct lp_h1 *h1 = &link->h1;
    head->body = h1->out_kind = framing_for(link, head);
    if (link->is_client) {
        bool closes = !h1->in_ended || !h1->keep_alive || h1->refused || link->close_after ||
            links->stopping || h1->out_kind == LP_BODY_UNTIL_CLOSE;
        head->keep_alive = h1->keep_alive = !closes;
    } else {
        head->keep_alive = true;
        lp_http1_answering(&h1->parser, head->method);
    }
    h1->out_begun = true;
    if (lp_http1_write_head(lp_link_out_buf(links, link), head))
        lp_link_overflow(links, link);
}

bool lp_link_send_body(struct lp_links *links, struct lp_stream s, struct lp_span bytes)
{
    struct lp_link *link = open_link(links, s);
    if (!link || !link->h1.out_begun)
        return false;
    struct lp_h1 *h1 = &link->h1;
    if (bytes.len && !(link->is_client && h1->is_head_method)) {
        char line[LP_HTTP1_CHUNK_LINE_BYTES];
        struct lp_span parts[3] = {LP_SPAN(""), bytes, LP_SPAN("")};
        if (h1->out_kind == LP_BODY_CHUNKED) {
            parts[0] = lp_span(line, lp_http1_chunk_line(line, bytes.len));
            parts[2] = LP_HTTP1_CHUNK_TAIL;
        }
        lp_link_out_large(links, link, parts);
    }
    h1->blocked = lp_link_waiting(link) >= LP_LINK_HIGH_WATER;
    return !h1->blocked;
}

void lp_link_send_end(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (!link || link->h1.out_ended)
        return;
    struct lp_h1 *h1 = &link->h1;
    if (h1->out_kind == LP_BODY_CHUNKED && !(link->is_client && h1->is_head_method))
        lp_link_out(links, link, LP_HTTP1_LAST_CHUNK);
    h1->out_ended = true;
    h1->blocked = false;
    settle(links, link);
}

void lp_link_continue(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (link && !link->h1.out_begun && !link->h1.in_ended && link->h1.minor >= 1)
        lp_link_out(links, link, LP_SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

void lp_link_pause(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (!link || link->h1.in_ended)
        return;
    if (!link->h1.paused)
        link->h1.paused_us = links->now_us;
    link->h1.paused = true;
    lp_link_reading(links, link, false);
}

void lp_link_resume(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (!link || !link->h1.paused)
        return;
    link->h1.paused = false;
    link->h1.awaited_us += links->now_us - link->h1.paused_us;
    lp_link_go_on_later(links, link);
}

void lp_link_abort(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (!link)
        return;
    struct lp_h1 *h1 = &link->h1;
    h1->open = false;
    /* A counted or chunked body that stops short is seen as cut, and so is a missing head, and what
     * was sent before (an earlier answer too) still arrives; a body that ends with its connection
     * looks whole unless the connection is reset. */
    bool looks_whole = h1->out_begun && h1->out_kind == LP_BODY_UNTIL_CLOSE;
    if (link->is_client && !looks_whole)
        lp_link_finish(links, link, LP_CLOSE_LINGER);
    else
        lp_link_kill(links, link, link->is_client ? LP_CLOSE_RESET : LP_CLOSE_NOW);
}

bool lp_link_has_written(const struct lp_links *links, struct lp_stream s)
{
    const struct lp_link *link = lp_slab_get(&links->slab, s.link);
    return link && link->h1.number == s.number && link->wrote;
}

size_t lp_link_backlog(const struct lp_links *links, struct lp_stream s)
{
    const struct lp_link *link = open_link(links, s);
    return link ? lp_link_waiting(link) : 0;
}

void lp_link_set_stalled(struct lp_links *links, struct lp_stream s, uint64_t stalled_us)
{
    struct lp_link *link = open_link(links, s);
    if (link)
        link->stalled_us = stalled_us;
}

void lp_link_close_after(struct lp_links *links, struct lp_stream s)
{
    struct lp_link *link = open_link(links, s);
    if (link)
        link->close_after = true;
}

void lp_links_stop(struct lp_links *links)
{
    links->stopping = true;
    links->stop_us = links->now_us;
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_link *link; (link = lp_slab_next(&links->slab, &cursor, &id));) {
        if (link->state != LP_LINK_OPEN || !link->is_client || link->h1.open)
            continue;
        if (links->limits.parting_us)
            lp_link_rearm(links, link);
        else
            lp_link_finish(links, link, LP_CLOSE_LINGER);
    }
}
