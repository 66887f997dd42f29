/* One attempt at a replica: its connection, the request head as the replica gets it, and what is
 * done when the attempt fails before an answer's head (requirements [G8], [G12]; design 9.1).
 *
 * A request is sent again only if it cannot have run (nothing of it was handed over, or the
 * connection was refused) or if running it twice does no harm. */
#include "base/error.h"
#include "gate/engine_priv.h"

struct lp_replica *lp_leg_replica(const struct lp_exchange *x)
{
    return &x->server->fleet.replicas[x->leg.replica];
}

static void count_opening(struct lp_exchange *x, bool on)
{
    if (x->leg.counted_opening == on)
        return;
    x->leg.counted_opening = on;
    lp_leg_replica(x)->opening += on ? 1 : -1u;
}

/* A GET opens a stream, which some servers begin with its first event. */
static void count_waiting(struct lp_exchange *x, bool on)
{
    if (x->leg.counted_waiting == on || x->is_stream_get)
        return;
    x->leg.counted_waiting = on;
    lp_leg_replica(x)->waiting += on ? 1 : -1u;
}

static void count_out(struct lp_exchange *x)
{
    count_opening(x, false);
    count_waiting(x, false);
}

void lp_leg_close(struct lp_engine *e, struct lp_exchange *x)
{
    if (x->server)
        count_out(x);
    if (x->leg.open)
        lp_link_abort(&e->links, x->leg.up);
    else if (x->leg.link)
        lp_link_close(&e->links, x->leg.link, LP_CLOSE_NOW);
    x->leg.open = false;
    x->leg.link = 0;
}

void lp_leg_done(struct lp_engine *e, struct lp_exchange *x)
{
    count_out(x);
    lp_pool_give(e, lp_leg_replica(x), x->leg.link);
    x->leg.open = false;
    x->leg.link = 0;
}

/* --- the head that the replica gets --- */

/* Fields that are not passed on: the hop's own, and those that are set anew. A rule's requests keep
 * theirs as far as that can be. */
static bool is_replaced(const struct lp_exchange *x, enum lp_field_id id)
{
    switch (id) {
    case LP_FIELD_ORIGIN:
    case LP_FIELD_ACCEPT:
        return x->door != LP_DOOR_PASS;
    case LP_FIELD_MCP_NAME:
        return x->is_unwrapped;
    case LP_FIELD_HOST:
    case LP_FIELD_EXPECT:
    case LP_FIELD_CONTENT_LENGTH:
    case LP_FIELD_FORWARDED:
    case LP_FIELD_X_FORWARDED_FOR:
    case LP_FIELD_X_FORWARDED_PROTO:
    case LP_FIELD_X_FORWARDED_HOST:
    case LP_FIELD_TRACEPARENT:
    case LP_FIELD_TRACESTATE:
    case LP_FIELD_MCP_SESSION_ID:
    case LP_FIELD_LIMPET_HOP:
        return true;
    default:
        return lp_field_is_hop_by_hop(id);
    }
}

/* A compressed answer could neither be judged nor kept flowing event by event. */
static bool is_unwanted(const struct lp_exchange *x, const struct lp_field *field)
{
    return x->door != LP_DOOR_PASS && field->id == LP_FIELD_OTHER &&
        lp_span_ieq(field->name, LP_SPAN("accept-encoding"));
}

/* What a peer has written of the client is not written over. */
static bool is_kept_of_peer(const struct lp_exchange *x, enum lp_field_id id)
{
    bool is_forwarding = id == LP_FIELD_FORWARDED || id == LP_FIELD_X_FORWARDED_FOR ||
        id == LP_FIELD_X_FORWARDED_PROTO || id == LP_FIELD_X_FORWARDED_HOST;
    return x->came_by_peer && is_forwarding;
}

static void copy_fields(struct lp_head *head, const struct lp_exchange *x)
{
    const struct lp_kept_head *from = &x->request;
    bool has_cookie = x->cookie.ptr != NULL;
    bool has_connection = lp_kept_value(from, LP_FIELD_CONNECTION).ptr != NULL;
    uint64_t seen = 0; /* singletons that are there twice, equal, go out once */
    for (uint32_t i = 0; i < from->field_count; i++) {
        const struct lp_field *field = &from->fields[i];
        bool is_replaced_here = is_replaced(x, field->id) && !is_kept_of_peer(x, field->id);
        if (is_replaced_here || is_unwanted(x, field))
            continue;
        if (has_cookie && field->id == LP_FIELD_COOKIE)
            continue;
        if (has_connection && lp_kept_is_named_by_connection(from, field->name))
            continue;
        bool is_single = field->id == LP_FIELD_MCP_PROTOCOL_VERSION ||
            field->id == LP_FIELD_AUTHORIZATION || field->id == LP_FIELD_CONTENT_TYPE ||
            field->id == LP_FIELD_LAST_EVENT_ID;
        if (is_single && (seen & (1ull << field->id)))
            continue;
        seen |= 1ull << field->id;
        head->fields[head->field_count++] = *field;
    }
}

static struct lp_span accept_for(const struct lp_exchange *x)
{
    if (x->door == LP_DOOR_METADATA)
        return LP_SPAN("application/json");
    if (x->request.method == LP_METHOD_GET)
        return LP_SPAN("text/event-stream");
    return LP_SPAN("application/json, text/event-stream");
}

/* "192.0.2.7:1234" without its port. */
static struct lp_span peer_address(struct lp_span peer)
{
    while (peer.len && peer.ptr[peer.len - 1] != ':')
        peer.len--;
    return peer.len > 1 ? lp_span(peer.ptr, peer.len - 1) : LP_SPAN("unknown");
}

static char *put(char *at, struct lp_span bytes)
{
    if (bytes.len)
        memcpy(at, bytes.ptr, bytes.len);
    return at + bytes.len;
}

/* RFC 7239 4; an IPv6 address in its brackets has to be quoted. Empty without memory. */
static struct lp_span write_forwarded(
    struct lp_exchange *x, struct lp_span address, struct lp_span proto, struct lp_span host)
{
    char *text = lp_arena_alloc(&x->arena, address.len + proto.len + host.len + 32);
    if (!text)
        return lp_span(NULL, 0);
    struct lp_span quote = lp_span("\"", address.ptr[0] == '[');
    char *at = put(text, LP_SPAN("for="));
    at = put(at, quote);
    at = put(at, address);
    at = put(at, quote);
    at = put(at, LP_SPAN(";proto="));
    at = put(at, proto);
    at = put(at, LP_SPAN(";host=\""));
    at = put(at, host);
    at = put(at, LP_SPAN("\""));
    return lp_span(text, (size_t)(at - text));
}

static void add_forwarded(struct lp_engine *e, struct lp_exchange *x, struct lp_head *head)
{
    struct lp_span address = peer_address(x->record.peer);
    struct lp_span host = x->host;
    bool is_tls = lp_link_facts(&e->links, x->down.link).is_tls;
    struct lp_span proto = is_tls ? LP_SPAN("https") : LP_SPAN("http");
    struct lp_span forwarded = write_forwarded(x, address, proto, host);
    if (!forwarded.ptr)
        return;
    (void)!lp_head_add(head, LP_FIELD_FORWARDED, forwarded);
    if (address.ptr[0] == '[')
        address = lp_span(address.ptr + 1, address.len - 2);
    (void)!lp_head_add(head, LP_FIELD_X_FORWARDED_FOR, address);
    (void)!lp_head_add(head, LP_FIELD_X_FORWARDED_PROTO, proto);
    if (host.ptr)
        (void)!lp_head_add(head, LP_FIELD_X_FORWARDED_HOST, host);
}

static struct lp_span target_of(struct lp_exchange *x)
{
    if (x->verdict.kind == LP_VERDICT_FORWARD_PEER || x->door == LP_DOOR_PASS)
        return x->asked;
    if (x->target.len)
        return x->target;
    struct lp_span path = x->door == LP_DOOR_SSE || x->is_old_sse ? x->server->conf->sse_upstream
                                                                  : lp_leg_replica(x)->conf->path;
    if (x->door == LP_DOOR_METADATA)
        return lp_metadata_target(x, path);
    if (!x->request.query.ptr)
        return path;
    size_t len = path.len + 1 + x->request.query.len;
    char *text = lp_arena_alloc(&x->arena, len);
    if (!text)
        return path;
    memcpy(text, path.ptr, path.len);
    text[path.len] = '?';
    memcpy(text + path.len + 1, x->request.query.ptr, x->request.query.len);
    return lp_span(text, len);
}

static void frame_body(const struct lp_exchange *x, struct lp_head *head)
{
    if (x->body_streams) {
        head->body = x->request.body;
        head->body_bytes = x->request.body_bytes;
    } else if (x->body.len) {
        head->body = LP_BODY_LENGTH;
        head->body_bytes = x->body.len;
    } else {
        head->body = LP_BODY_NONE;
        head->body_bytes = 0;
    }
}

static void build_head(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_head *head = e->out_head;
    const struct lp_conf_address *address = &lp_leg_replica(x)->conf->address;
    head->is_request = true;
    head->method = x->request.method;
    head->method_name = x->request.method_name;
    head->target = target_of(x);
    head->field_count = 0;
    frame_body(x, head);
    (void)!lp_head_add(
        head, LP_FIELD_HOST, address->is_unix ? LP_SPAN("localhost") : address->authority);
    if (x->request.method != LP_METHOD_OPTIONS && x->door != LP_DOOR_PASS)
        (void)!lp_head_add(head, LP_FIELD_ACCEPT, accept_for(x));
    copy_fields(head, x);
    if (x->cookie.ptr)
        (void)!lp_head_add(head, LP_FIELD_COOKIE, x->cookie);
    (void)!lp_head_add(head, LP_FIELD_VIA, lp_span(e->via, sizeof e->via - 1));
    if (x->verdict.kind == LP_VERDICT_FORWARD && !x->id_is_sse)
        (void)!lp_head_add(
            head, x->is_task ? LP_FIELD_MCP_NAME : LP_FIELD_MCP_SESSION_ID, x->ticket.upstream_id);
    if (x->verdict.kind == LP_VERDICT_FORWARD_PEER)
        lp_peer_add_fields(e, x, head);
    if (!x->is_made && !x->came_by_peer)
        add_forwarded(e, x, head);
    lp_trace_add(e, x, head);
}

/* --- sending --- */

uint64_t lp_leg_silence_us(const struct lp_exchange *x)
{
    const struct lp_conf_server *conf = x->server->conf;
    return (x->id_is_sse ? conf->sse_post_ms : conf->first_byte_ms) * 1000;
}

/* A held body goes out piece by piece as the replica takes it: a link is not made for keeping a
 * body of its own. */
static void send_held_body(struct lp_engine *e, struct lp_exchange *x)
{
    enum { PIECE = LP_LINK_OUT_MAX / 4 };
    bool goes_on = true;
    while (goes_on && lp_leg_is_sending(x)) {
        struct lp_span piece = lp_span_from(lp_buf_span(&x->body), x->leg.body_sent);
        if (piece.len > PIECE)
            piece.len = PIECE;
        x->leg.body_sent += piece.len;
        lp_metrics_add(&e->metrics, LP_METRIC_BYTES_TO_REPLICAS, (int64_t)piece.len);
        goes_on = lp_link_send_body(&e->links, x->leg.up, piece);
    }
    if (lp_leg_is_sending(x))
        return;
    lp_link_send_end(&e->links, x->leg.up);
    if (x->phase != LP_PHASE_SENT)
        lp_exchange_drop_body(e, x); /* the answer has begun already */
}

bool lp_leg_is_sending(const struct lp_exchange *x)
{
    return !x->body_streams && x->leg.open && x->leg.body_sent < x->body.len;
}

static void send_request(struct lp_engine *e, struct lp_exchange *x)
{
    lp_exchange_set_phase(x, LP_PHASE_SENT);
    x->leg.up = lp_link_begin(&e->links, x->leg.link);
    x->leg.open = true;
    x->leg.body_sent = 0;
    x->turn_us = e->mono_us;
    lp_engine_arm(e, &x->timer, e->mono_us + lp_leg_silence_us(x));
    lp_link_set_stalled(&e->links, x->leg.up, x->server->conf->stalled_ms * 1000);
    build_head(e, x);
    lp_link_send_head(&e->links, x->leg.up, e->out_head);
    if (!x->body_streams) {
        send_held_body(e, x);
        return;
    }
    if (x->body.len)
        lp_link_send_body(&e->links, x->leg.up, lp_buf_span(&x->body));
    lp_metrics_add(&e->metrics, LP_METRIC_BYTES_TO_REPLICAS, (int64_t)x->body.len);
    lp_exchange_drop_body(e, x);
    lp_link_resume(&e->links, x->down);
}

static void open_connection(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_endpoint to = lp_replica_endpoint(e, x->server->index, x->leg.replica);
    lp_metrics_add(&e->metrics, LP_METRIC_UPSTREAM_CONNECTS, 1);
    int err = lp_link_open(&e->links, &to, &lp_replica_ops, e, &x->leg.link);
    if (err) {
        x->leg.link = 0;
        lp_replica_not_tried(e, x->server->index, x->leg.replica, err);
        lp_answer(e, x, LP_REASON_over_capacity, NULL);
        return;
    }
    lp_link_set_tag(&e->links, x->leg.link, x->id);
}

/* To one replica or peer only. */
static bool is_bound(const struct lp_exchange *x)
{
    return x->verdict.kind == LP_VERDICT_FORWARD || x->verdict.kind == LP_VERDICT_FORWARD_PEER;
}

/* An owner that hangs must not take the room of all others (cases OWN-01). */
static bool is_full(const struct lp_engine *e, const struct lp_exchange *x, uint32_t replica)
{
    uint32_t share = e->conf->waiting_max / e->count + (e->count > 1);
    return e->conf->waiting_max && is_bound(x) && !x->is_stream_get && !x->is_made &&
        x->server->fleet.replicas[replica].waiting >= share;
}

uint32_t lp_leg_pick(struct lp_exchange *x, uint32_t avoid)
{
    struct lp_fleet *fleet = &x->server->fleet;
    return x->is_pinned ? lp_fleet_pinned(fleet, avoid)
                        : lp_fleet_pick(fleet, x->verdict.kind != LP_VERDICT_ANY, avoid);
}

void lp_leg_start(struct lp_engine *e, struct lp_exchange *x, uint32_t replica)
{
    if (replica >= x->server->fleet.count) {
        lp_answer(e, x, LP_REASON_no_replica_up, NULL);
        return;
    }
    if (is_full(e, x, replica)) {
        lp_answer(e, x, LP_REASON_owner_busy, NULL);
        return;
    }
    lp_exchange_set_phase(x, LP_PHASE_WAITING);
    x->attempts++;
    x->leg = (struct lp_leg){.replica = replica};
    count_waiting(x, true);
    struct lp_replica *r = lp_leg_replica(x);
    x->record.replica = r->conf->name;
    x->record.incarnation = r->incarnation;
    x->record.attempts = x->attempts;
    bool is_opening =
        x->verdict.kind == LP_VERDICT_NEW_SESSION || x->verdict.kind == LP_VERDICT_NEW_STREAM;
    count_opening(x, is_opening);
    /* initialize is never sent twice, so it does not go where an idle connection may just be
     * closing; nor does what has already failed once. */
    bool wants_fresh = is_opening || x->attempts > 1;
    x->leg.link = wants_fresh ? 0 : lp_pool_take(e, r);
    if (!x->leg.link) {
        open_connection(e, x);
        return;
    }
    x->leg.reused = true;
    lp_metrics_add(&e->metrics, LP_METRIC_UPSTREAM_REUSED, 1);
    lp_link_set_tag(&e->links, x->leg.link, x->id);
    send_request(e, x);
}

/* --- failing --- */

static uint32_t attempts_max(const struct lp_exchange *x)
{
    uint32_t count = x->server->fleet.count + 1;
    return count > LP_ATTEMPTS_MAX ? count : LP_ATTEMPTS_MAX;
}

/* Nothing has run: another attempt, at the owner or, where there is none, at somebody else. */
static void try_again(struct lp_engine *e, struct lp_exchange *x)
{
    lp_metrics_add(&e->metrics, LP_METRIC_UPSTREAM_RESENT, 1);
    lp_leg_start(e, x, is_bound(x) ? x->leg.replica : lp_leg_pick(x, x->leg.replica));
}

static void connect_failed(struct lp_engine *e, struct lp_exchange *x, int error)
{
    count_out(x);
    x->leg.link = 0;
    lp_replica_failed(e, x->server->index, x->leg.replica, error);
    if (!lp_fleet_is_silence(error) && !lp_fleet_is_refusal(error))
        lp_answer(e, x, LP_REASON_over_capacity, NULL);
    else if (is_bound(x) && lp_leg_replica(x)->state == LP_REPLICA_GONE)
        lp_answer(e, x, x->is_task ? LP_REASON_task_unknown : LP_REASON_session_owner_gone, NULL);
    else if (is_bound(x) && lp_fleet_is_silence(error))
        lp_answer(e, x, LP_REASON_owner_in_doubt, NULL);
    else if (x->attempts < attempts_max(x))
        try_again(e, x);
    else
        lp_answer(e, x, is_bound(x) ? LP_REASON_owner_in_doubt : LP_REASON_no_replica_up, NULL);
}

static void broke_before_head(struct lp_engine *e, struct lp_exchange *x, bool has_written)
{
    bool is_harmless = x->request.method == LP_METHOD_GET || lp_rpc_is_repeatable(x->env.method);
    bool may_resend = !x->body_streams && (!has_written || is_harmless);
    if (may_resend && x->attempts < LP_ATTEMPTS_MAX && x->is_pinned)
        lp_leg_start(e, x, x->leg.replica); /* only its connection is known to have ended */
    else if (may_resend && x->attempts < LP_ATTEMPTS_MAX)
        try_again(e, x);
    else
        lp_response_broke(e, x, LP_REASON_upstream_broke);
}

/* --- the replica's callbacks --- */

static void replica_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    LP_ASSERT(x && x->leg.link == link); /* who gives an attempt up closes its connection */
    if (error) {
        connect_failed(e, x, error);
        return;
    }
    lp_replica_connected(e, x->server->index, x->leg.replica);
    send_request(e, x);
}

static void replica_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)s;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    LP_ASSERT(x); /* who is over has ended its stream, which says no more */
    count_waiting(x, false);
    lp_response_head(ctx, x, head);
}

static void replica_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)s;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    LP_ASSERT(x);
    lp_response_body(ctx, x, bytes);
}

static void replica_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)s;
    struct lp_exchange *x = lp_exchange_get(ctx, tag);
    LP_ASSERT(x);
    lp_response_end(ctx, x, whole);
}

static void replica_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    LP_ASSERT(x);
    if (x->body_streams)
        lp_link_resume(&e->links, x->down);
    else
        send_held_body(e, x);
}

static void replica_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    struct lp_engine *e = ctx;
    struct lp_exchange *x = lp_exchange_get(e, tag);
    if (!x)
        return;
    bool has_written = lp_link_has_written(&e->links, s);
    x->leg.open = false;
    x->leg.link = 0;
    count_out(x);
    if (why == LP_REASON_upstream_stalled)
        lp_leg_replica(x)->late = true;
    else
        lp_replica_broke(e, x->server->index, x->leg.replica);
    if (x->client_left)
        lp_exchange_over(e, x, x->end_reason);
    else if (x->phase == LP_PHASE_SENT && why == LP_REASON_upstream_broke)
        broke_before_head(e, x, has_written);
    else
        lp_response_broke(e, x, why);
}

/* A kept connection has ended; the pool finds out when it takes or sweeps. */
static void replica_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why;
}

const struct lp_message_ops lp_replica_ops = {
    .head = replica_head,
    .body = replica_body,
    .end = replica_end,
    .writable = replica_writable,
    .reset = replica_reset,
    .connected = replica_connected,
    .closed = replica_closed,
};
