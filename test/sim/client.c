/* Client models on the network: connections to the gateways, requests in a row on each, answers
 * read as a strict client reads them; and the bad habits: leaving, half closing, reading slowly,
 * sending slowly, pipelining. What is asked is script.c's. */
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "sim.h"

enum { OPEN_MAX = 4, KEPT_US = 60000000 /* from then on a gateway may close what is idle */ };

struct channel {
    struct lp_list node;
    struct sim_client *client;
    lp_id conn;
    uint32_t gateway, epoch;
    struct lp_http1 parser;
    uint32_t queue[SIM_QUEUED_MAX]; /* requests without an answer, oldest first */
    uint32_t count;
    uint64_t idle_us; /* since when it is idle */
    uint64_t sent_us; /* when the last request was sent; its answer may be read much later */
    bool is_last;     /* no further request on this one */
    bool is_uploading;
    bool is_interim; /* the head that was read is one of 1xx */
    uint32_t uploading;
    size_t uploaded;
};

static void free_channel(struct channel *ch)
{
    lp_list_remove(&ch->node);
    lp_http1_release(&ch->parser);
    free(ch);
}

/* --- endings --- */

static void end_request(struct sim *w, uint32_t number, enum sim_outcome outcome)
{
    struct sim_request *r = &w->requests[number];
    r->outcome = outcome;
    r->ended_us = w->now_us;
    w->clients[r->client].open--;
    sim_oracle_ended(w, number);
}

static void end_all(struct sim *w, struct channel *ch, enum sim_outcome outcome)
{
    for (uint32_t i = 0; i < ch->count; i++) {
        if (i)
            w->requests[ch->queue[i]].may_cut = true; /* it may never have been read */
        end_request(w, ch->queue[i], outcome);
    }
    ch->count = 0;
}

/* The client closes; nothing is heard of the connection after it. */
static void hang_up(struct sim *w, struct channel *ch, enum sim_how how)
{
    struct sim_conn *c = sim_conn_get(w, ch->conn);
    free_channel(ch);
    if (c)
        sim_peer_close(w, c, how);
}

static struct channel *channel_of(struct sim *w, lp_id conn)
{
    struct sim_conn *c = sim_conn_get(w, conn);
    return c && !c->peer_done ? c->peer : NULL;
}

static void leave(struct sim *w, uint64_t conn, uint64_t number)
{
    struct channel *ch = channel_of(w, conn);
    if (!ch || !ch->count || ch->queue[0] != number)
        return;
    sim_count(w, SIM_FAULT_client_leaves);
    sim_say(w, "client %u leaves in the middle of #%u", ch->client->index, (unsigned)number);
    end_all(w, ch, SIM_LEFT);
    hang_up(w, ch, sim_one_in(w, 2) ? SIM_CLOSE : SIM_RESET);
}

/* --- answers --- */

static bool is_head_request(const struct sim_request *r)
{
    return lp_span_starts(lp_buf_span(&r->text), LP_SPAN("HEAD "));
}

static void expect_front(struct sim *w, struct channel *ch)
{
    if (ch->count)
        lp_http1_answering(&ch->parser,
            is_head_request(&w->requests[ch->queue[0]]) ? LP_METHOD_HEAD : LP_METHOD_POST);
}

static void keep_ticket(struct sim *w, uint32_t number, struct lp_span text)
{
    struct sim_request *r = &w->requests[number];
    if (text.len >= sizeof r->got_ticket) {
        sim_fail(w, "#%u got a session id of %zu bytes", number, text.len);
        return;
    }
    memcpy(r->got_ticket, text.ptr, text.len);
    r->got_ticket[text.len] = 0;
    if (r->kind != SIM_KIND_initialize && r->kind != SIM_KIND_initialize_stale)
        return;
    for (uint32_t i = 1; i < w->session_count; i++) {
        struct sim_session *session = &w->sessions[i];
        if (session->request != number || session->ticket[0])
            continue;
        memcpy(session->ticket, r->got_ticket, sizeof session->ticket);
        session->ticket_wall_ms = sim_wall_ms(w);
        sim_say(w, "client %u holds a ticket of session %u", r->client, i);
    }
}

static void on_head(struct sim *w, struct channel *ch, const struct lp_head *head)
{
    ch->is_interim = head->status < 200;
    if (ch->is_interim)
        return;
    if (!ch->count) {
        sim_fail(w, "client %u gets an answer (%u) that it did not ask for", ch->client->index,
            head->status);
        return;
    }
    uint32_t number = ch->queue[0];
    struct sim_request *r = &w->requests[number];
    if (lp_head_value(head, LP_FIELD_SET_COOKIE).ptr)
        sim_fail(w, "#%u gets a cookie that is the gateway's", number);
    struct lp_span id = lp_head_value(head, LP_FIELD_MCP_SESSION_ID);
    struct lp_span rest, type = lp_head_value(head, LP_FIELD_CONTENT_TYPE);
    r->has_head = true;
    r->head_us = w->now_us;
    r->status = head->status;
    r->got_sse = lp_span_eq(lp_span_split(type, ';', &rest), LP_SPAN("text/event-stream"));
    sim_say(w, "#%u gets %u %s", number, r->status, r->got_sse ? "(events)" : "");
    if (id.ptr)
        keep_ticket(w, number, id);
    if (!head->keep_alive)
        ch->is_last = true;
}

/* The endpoint event tells the address of the session's messages. */
static void find_endpoint(struct sim *w, uint32_t number)
{
    static const struct lp_span EVENT = {"event: endpoint\ndata: ", 22};
    struct sim_request *r = &w->requests[number];
    struct lp_span got = lp_buf_span(&r->got);
    enum { EARLY = 4096 }; /* it is the first event */
    if (got.len > EARLY)
        got.len = EARLY;
    size_t at = sim_search(got, EVENT);
    if (r->got_ticket[0] || at == got.len)
        return;
    got = lp_span_from(got, at + EVENT.len);
    size_t len = lp_span_find(got, '\n');
    if (len == got.len || len >= sizeof r->got_ticket)
        return;
    memcpy(r->got_ticket, got.ptr, len);
    /* An opening that had failed before may have been carried out as well. */
    for (uint32_t i = w->session_count; i-- > 1;) {
        struct sim_session *session = &w->sessions[i];
        if (session->request != number || !session->is_sse || session->conn != r->conn)
            continue;
        memcpy(session->ticket, r->got_ticket, sizeof session->ticket);
        session->ticket_wall_ms = sim_wall_ms(w);
        sim_say(w, "client %u knows where messages of session %u go", r->client, i);
        return;
    }
}

static void on_body(struct sim *w, struct channel *ch, struct lp_span bytes)
{
    if (!ch->count)
        return;
    uint32_t number = ch->queue[0];
    struct sim_request *r = &w->requests[number];
    int err = lp_buf_append(&r->got, bytes);
    LP_ASSERT(!err);
    if (r->got_sse && r->kind == SIM_KIND_sse_open)
        find_endpoint(w, number);
}

static void on_end(struct sim *w, struct channel *ch)
{
    if (ch->is_interim || !ch->count)
        return;
    uint32_t number = ch->queue[0];
    memmove(ch->queue, ch->queue + 1, --ch->count * sizeof *ch->queue);
    if (ch->is_uploading && ch->uploading == number)
        ch->is_uploading = false, ch->is_last = true; /* answered before it was all sent */
    expect_front(w, ch);
    ch->idle_us = w->now_us;
    end_request(w, number, SIM_ANSWERED);
}

static void channel_read(struct sim *w, struct sim_conn *c, struct lp_span bytes)
{
    struct channel *ch = c->peer;
    lp_id id = c->id;
    for (;;) {
        struct lp_http1_item item;
        ptrdiff_t n = lp_http1_feed(&ch->parser, bytes, &item);
        if (n < 0) {
            sim_fail(w, "client %u gets what is no HTTP: %.*s", ch->client->index,
                (int)(bytes.len < 200 ? bytes.len : 200), bytes.ptr);
            return;
        }
        bytes = lp_span_from(bytes, (size_t)n);
        if (item.kind == LP_HTTP1_NONE || w->failed)
            return;
        if (item.kind == LP_HTTP1_HEAD)
            on_head(w, ch, item.head);
        else if (item.kind == LP_HTTP1_BODY)
            on_body(w, ch, item.body);
        else
            on_end(w, ch);
        if (channel_of(w, id) != ch)
            return;
    }
}

static void channel_eof(struct sim *w, struct sim_conn *c)
{
    struct channel *ch = c->peer;
    bool is_end = false;
    int err = lp_http1_eof(&ch->parser, &is_end);
    if (!err && is_end && ch->count)
        on_end(w, ch);
    end_all(w, ch, SIM_CUT);
    hang_up(w, ch, SIM_CLOSE);
}

static void channel_broken(struct sim *w, struct sim_conn *c)
{
    struct channel *ch = c->peer;
    end_all(w, ch, SIM_CUT);
    free_channel(ch);
}

static void channel_connected(struct sim *w, struct sim_conn *c, bool is_there)
{
    struct channel *ch = c->peer;
    if (is_there)
        return;
    for (uint32_t i = 0; i < ch->count; i++)
        w->requests[ch->queue[i]].may_cut = true;
    end_all(w, ch, SIM_CUT);
    free_channel(ch);
}

static const struct sim_peer_ops CHANNEL_OPS = {
    .connected = channel_connected,
    .read = channel_read,
    .eof = channel_eof,
    .broken = channel_broken,
};

/* --- requests --- */

static struct channel *dial(struct sim *w, struct sim_client *client)
{
    uint32_t at = sim_below(w, w->plan.gateways);
    for (uint32_t i = 0; i < w->plan.gateways; i++) {
        uint32_t next = (at + i) % w->plan.gateways;
        if (sim_gateway_is_up(w, next) && !w->gateways[next].is_stopping) {
            at = next;
            break;
        }
    }
    struct channel *ch = calloc(1, sizeof *ch);
    LP_ASSERT(ch);
    struct sim_gateway *g = &w->gateways[at];
    ch->client = client;
    ch->gateway = at;
    ch->epoch = g->epoch;
    lp_http1_init(&ch->parser, LP_HTTP1_RESPONSES, &w->head);
    lp_list_push_back(&client->channels, &ch->node);
    ch->conn = sim_dial(w, &g->engines[sim_below(w, g->engine_count)], &CHANNEL_OPS, ch);
    return ch;
}

static bool is_free(struct sim *w, const struct channel *ch)
{
    if (ch->is_last || ch->is_uploading || ch->count == SIM_QUEUED_MAX)
        return false;
    if (!ch->count)
        return true;
    if (!sim_one_in(w, 15))
        return false;
    sim_count(w, SIM_FAULT_client_pipelines);
    return true;
}

static struct channel *pick_channel(struct sim *w, struct sim_client *client)
{
    struct lp_list *node = client->channels.next;
    for (; node != &client->channels; node = node->next) {
        struct channel *ch = LP_CONTAINER(node, struct channel, node);
        if (is_free(w, ch) && !sim_one_in(w, 3))
            return ch;
    }
    return dial(w, client);
}

static void upload(struct sim *w, uint64_t conn, uint64_t number)
{
    enum { PIECE_MAX = 40000 };
    struct channel *ch = channel_of(w, conn);
    if (!ch || !ch->is_uploading || ch->uploading != number)
        return;
    struct lp_span text = lp_span_from(lp_buf_span(&w->requests[number].text), ch->uploaded);
    size_t n = 1 + sim_below(w, text.len < PIECE_MAX ? (uint32_t)text.len : PIECE_MAX);
    if (n > text.len)
        n = text.len;
    ch->uploaded += n;
    ch->is_uploading = n < text.len;
    if (ch->is_uploading)
        sim_at(w, sim_between(w, 1000, 400000), upload, conn, number);
    sim_peer_write(w, sim_conn_get(w, conn), lp_span(text.ptr, n));
}

static void read_again(struct sim *w, uint64_t conn, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, conn);
    if (c && !c->peer_done)
        sim_peer_reading(w, c, true);
}

static void read_slowly(struct sim *w, struct channel *ch)
{
    uint64_t for_us = sim_between(w, 1000, 5000000);
    for (uint32_t i = 0; i < ch->count; i++)
        w->requests[ch->queue[i]].may_cut = true;
    if (sim_one_in(w, 3)) {
        sim_count(w, SIM_FAULT_client_stalls);
        for_us = 70000000;
    }
    sim_peer_reading(w, sim_conn_get(w, ch->conn), false);
    sim_at(w, for_us, read_again, ch->conn, 0);
}

static bool is_standing(enum sim_kind kind)
{
    return kind == SIM_KIND_get_stream || kind == SIM_KIND_sse_open || kind == SIM_KIND_resume;
}

/* Whoever waits for events or is of the modern era has left when it sends no more. */
static void half_close(struct sim *w, struct channel *ch)
{
    sim_count(w, SIM_FAULT_client_half_close);
    sim_peer_close(w, sim_conn_get(w, ch->conn), SIM_FIN);
    ch->is_last = true;
    for (uint32_t i = 0; i < ch->count; i++) {
        struct sim_request *r = &w->requests[ch->queue[i]];
        r->may_cut |= r->kind == SIM_KIND_modern || is_standing(r->kind) || r->want ||
            r->kind == SIM_KIND_no_id_get;
    }
    /* An answer without framing is broken off by a reset, which may overtake those before it. */
    struct sim_request *last = &w->requests[ch->queue[ch->count - 1]];
    for (uint32_t i = 0; last->http10 && last->may_cut && i < ch->count; i++)
        w->requests[ch->queue[i]].may_cut = true;
}

static void misbehave(struct sim *w, struct channel *ch, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    if (is_standing(r->kind))
        sim_at(w, sim_between(w, 1000, 25000000), leave, ch->conn, number);
    else if (sim_one_in(w, 14))
        sim_at(w, sim_between(w, 0, 300000), leave, ch->conn, number);
    if (!ch->is_uploading && sim_one_in(w, 20))
        half_close(w, ch);
    if (w->plan.slow_readers && sim_one_in(w, 6))
        read_slowly(w, ch);
}

void sim_client_send(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    struct sim_client *client = &w->clients[r->client];
    struct channel *ch = pick_channel(w, client);
    bool is_slow = r->text.len > 20000 ? !sim_one_in(w, 3) : sim_one_in(w, 15);
    r->gateway = ch->gateway;
    r->epoch = ch->epoch;
    r->begun_us = w->now_us;
    r->wall_ms = sim_wall_ms(w);
    client->open++;
    bool may_be_closing = ch->idle_us && w->now_us - ch->sent_us > KEPT_US;
    if (ch->count || may_be_closing)
        r->may_cut = true;
    r->is_kept = ch->idle_us != 0;
    ch->sent_us = w->now_us;
    ch->queue[ch->count++] = number;
    if (ch->count == 1)
        expect_front(w, ch);
    ch->is_last |= r->http10 || r->want != 0;
    ch->is_uploading = is_slow;
    ch->uploading = number;
    ch->uploaded = 0;
    sim_say(w, "client %u sends #%u %s to g%u, session %d, %zu bytes%s on %llx", r->client, number,
        sim_kind_name(r->kind), r->gateway, r->session, r->text.len, is_slow ? ", slowly" : "",
        (unsigned long long)ch->conn);
    if (is_slow) {
        sim_count(w, SIM_FAULT_client_slow_upload);
        sim_at(w, 0, upload, ch->conn, number);
    } else {
        sim_peer_write(w, sim_conn_get(w, ch->conn), lp_buf_span(&r->text));
    }
    sim_oracle_sent(w, number);
    misbehave(w, ch, number);
}

/* --- the pace of a client --- */

static void close_an_idle_one(struct sim *w, struct sim_client *client)
{
    for (struct lp_list *node = client->channels.next; node != &client->channels;
         node = node->next) {
        struct channel *ch = LP_CONTAINER(node, struct channel, node);
        if (ch->count || ch->is_uploading)
            continue;
        hang_up(w, ch, SIM_CLOSE);
        return;
    }
}

static void act(struct sim *w, uint64_t index, uint64_t unused)
{
    (void)unused;
    struct sim_client *client = &w->clients[index];
    if (w->is_settling)
        client->steps_left = 0;
    if (!client->steps_left)
        return;
    if (client->open < OPEN_MAX) {
        client->steps_left--;
        uint32_t number = sim_script_next(w, client);
        w->cover->kinds[w->requests[number].kind]++;
        sim_client_send(w, number);
    }
    if (sim_one_in(w, 12))
        close_an_idle_one(w, client);
    uint64_t wait_us = sim_between(w, 100, client->pace_us);
    if (sim_one_in(w, 60))
        wait_us += sim_between(w, 5000000, 90000000);
    sim_at(w, wait_us, act, index, 0);
}

void sim_client_start(struct sim *w, uint32_t index)
{
    static const uint32_t PACES_US[] = {3000, 200000, 1000000, 3000000};
    struct sim_client *client = &w->clients[index];
    client->index = index;
    client->steps_left = w->plan.steps;
    client->pace_us = PACES_US[sim_below(w, 4)];
    lp_list_init(&client->channels);
    sim_at(w, sim_below(w, 1000000), act, index, 0);
}

void sim_client_fini(struct sim *w, uint32_t index)
{
    struct sim_client *client = &w->clients[index];
    while (!lp_list_empty(&client->channels))
        free_channel(LP_CONTAINER(client->channels.next, struct channel, node));
}

uint32_t sim_request_new(struct sim *w, struct sim_client *client, enum sim_kind kind)
{
    if (w->request_count >= w->request_cap) {
        uint32_t cap = w->request_cap ? 2 * w->request_cap : 256;
        w->requests = realloc(w->requests, cap * sizeof *w->requests);
        LP_ASSERT(w->requests);
        w->request_cap = cap;
    }
    struct sim_request *r = &w->requests[w->request_count];
    *r = (struct sim_request){.kind = kind, .client = client->index, .session = -1, .replica = -1};
    lp_buf_init(&r->text, SIM_BUF_MAX);
    lp_buf_init(&r->wrote, SIM_BUF_MAX);
    lp_buf_init(&r->got, SIM_BUF_MAX);
    return w->request_count++;
}

struct sim_session *sim_session_of(struct sim *w, const struct sim_request *r)
{
    return r->session > 0 ? &w->sessions[r->session] : NULL;
}
