/* A replica model as a peer on the network: requests are read, answers framed, and spoilt where the
 * seed says so. What is answered is serve.c's. */
#include <stdio.h>
#include <stdlib.h>

#include "replica.h"

static struct sim_served *served_of(struct sim *w, lp_id id, uint64_t turn)
{
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c || c->peer_done)
        return NULL;
    struct sim_served *s = c->peer;
    return s->turn == turn ? s : NULL;
}

struct sim_request *sim_served_request(struct sim *w, const struct sim_served *s)
{
    struct sim_request *r = s->number ? &w->requests[s->number] : NULL;
    return r && r->conn == s->conn ? r : NULL;
}

static void hang_up(struct sim *w, struct sim_served *s, enum sim_how how)
{
    struct sim_conn *c = sim_conn_get(w, s->conn);
    sim_serve_stream_over(w, s);
    sim_replica_fini(c);
    sim_peer_close(w, c, how);
}

/* --- answers --- */

static void write_raw(struct sim *w, struct sim_served *s, struct lp_span bytes)
{
    sim_peer_write(w, sim_conn_get(w, s->conn), bytes);
}

void sim_answer_piece(struct sim *w, struct sim_served *s, struct lp_span bytes, bool is_recorded)
{
    struct sim_request *r = sim_served_request(w, s);
    char line[LP_HTTP1_CHUNK_LINE_BYTES];
    if (!bytes.len)
        return;
    if (r && is_recorded) {
        int err = lp_buf_append(&r->wrote, bytes);
        LP_ASSERT(!err);
    }
    if (s->framing == SIM_CHUNKED)
        write_raw(w, s, lp_span(line, lp_http1_chunk_line(line, bytes.len)));
    write_raw(w, s, bytes);
    if (s->framing == SIM_CHUNKED)
        write_raw(w, s, LP_SPAN("\r\n"));
}

static void close_idle(struct sim *w, uint64_t id, uint64_t turn)
{
    struct sim_served *s = served_of(w, id, turn);
    if (!s || s->is_busy)
        return;
    if (sim_one_in(w, 8) && w->plan.fault_in) {
        sim_count(w, SIM_FAULT_replica_chatter);
        sim_trouble(w, s->replica);
        write_raw(w, s, LP_SPAN("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"));
    }
    sim_count(w, SIM_FAULT_replica_idle_close);
    hang_up(w, s, SIM_CLOSE);
}

void sim_answer_end(struct sim *w, struct sim_served *s)
{
    struct sim_request *r = sim_served_request(w, s);
    if (s->framing == SIM_CHUNKED)
        write_raw(w, s, LP_SPAN("0\r\n\r\n"));
    if (r)
        r->wrote_all = true;
    sim_serve_stream_over(w, s);
    s->is_busy = false;
    s->turn++;
    if (s->closes || s->framing == SIM_UNTIL_CLOSE || !s->has_body)
        hang_up(w, s, SIM_CLOSE);
    else if (w->plan.idle_us)
        sim_at(w, w->plan.idle_us, close_idle, s->conn, s->turn);
}

/* How long it keeps an idle connection, in a form or another, or in one that says nothing. */
static void write_idle(struct sim *w, char *room, size_t cap)
{
    static const char *const ODD[] = {"timeout=abc", "max=100", "timeout=99999"};
    if (w->plan.says_idle && w->plan.idle_us >= 1000000)
        snprintf(room, cap, "Connection: keep-alive\r\nKeep-Alive: timeout=%u, max=9\r\n",
            w->plan.idle_us / 1000000);
    else if (w->plan.says_idle)
        snprintf(room, cap, "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: %s\r\n",
            ODD[sim_below(w, 3)]);
}

static void write_head(struct sim *w, struct sim_served *s, const struct sim_answer *a)
{
    static const char *const FRAMES[] = {
        "", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"};
    char head[2200], length[40] = "", idle[100] = "";
    bool is_bare = a->status == 204 || a->status == 304;
    if (s->framing == SIM_COUNTED && !is_bare)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", a->body.len);
    write_idle(w, idle, sizeof idle);
    int n = snprintf(head, sizeof head, "HTTP/1.1 %u %s\r\n%s%s%s%s%s%s%s%s%s%s%s%s\r\n", a->status,
        a->status == 200 ? "OK" : "Whatever", a->type ? "Content-Type: " : "",
        a->type ? a->type : "", a->type ? "\r\n" : "", is_bare ? "" : FRAMES[s->framing], length,
        s->framing == SIM_UNTIL_CLOSE ? "" : idle, a->more ? a->more : "",
        a->session_id ? "Mcp-Session-Id: " : "", a->session_id ? a->session_id : "",
        a->session_id ? "\r\n" : "",
        s->closes && s->framing == SIM_COUNTED ? "Connection: close\r\n" : "", s->set_cookie);
    LP_ASSERT(n > 0 && (size_t)n < sizeof head);
    struct lp_span all = lp_span(head, (size_t)n);
    if (sim_one_in(w, 12))
        write_raw(w, s, LP_SPAN("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"));
    if (s->wrong == SIM_WRONG_GARBLED)
        all = LP_SPAN("HTTP/1.1 two hundred\r\nContent-Length : 5\r\n\r\nhello");
    if (s->wrong == SIM_WRONG_BREAK_HEAD)
        all.len = sim_below(w, (uint32_t)n);
    write_raw(w, s, all);
}

static const enum sim_fault FAULT_OF[] = {
    [SIM_WRONG_HANG] = SIM_FAULT_replica_hang,
    [SIM_WRONG_BREAK_BEFORE] = SIM_FAULT_replica_break_before,
    [SIM_WRONG_BREAK_HEAD] = SIM_FAULT_replica_break_head,
    [SIM_WRONG_BREAK_MID] = SIM_FAULT_replica_break_mid,
    [SIM_WRONG_GARBLED] = SIM_FAULT_replica_garbled,
    [SIM_WRONG_SLOW] = SIM_FAULT_replica_slow_body,
    [SIM_WRONG_STALL] = SIM_FAULT_replica_stalled_body,
};

static void decide_what_goes_wrong(struct sim *w, struct sim_served *s)
{
    struct sim_request *r = sim_served_request(w, s);
    s->wrong = SIM_WRONG_NOT;
    if (w->is_settling || !sim_one_in(w, w->plan.fault_in))
        return;
    s->wrong = SIM_WRONG_HANG + sim_below(w, SIM_WRONG_STALL);
    sim_count(w, FAULT_OF[s->wrong]);
    sim_trouble(w, s->replica);
    if (r)
        r->in_trouble = true;
    sim_say(w, "%s spoils its answer to #%u in way %d", w->replicas[s->replica].name, s->number,
        s->wrong);
}

/* What a spoilt answer comes to once its head is (half) out; true when there is nothing more. */
static bool is_spoilt(struct sim *w, struct sim_served *s)
{
    if (s->wrong != SIM_WRONG_BREAK_HEAD && s->wrong != SIM_WRONG_GARBLED)
        return false;
    hang_up(w, s, sim_one_in(w, 2) ? SIM_CLOSE : SIM_RESET);
    return true;
}

static void note_answer(struct sim *w, struct sim_served *s, uint16_t status)
{
    struct sim_request *r = sim_served_request(w, s);
    if (!r)
        return;
    r->wrote_status = status;
    r->wrote_sse = s->is_sse;
    r->wrote_all = false;
    r->wrote_until_close = s->framing == SIM_UNTIL_CLOSE;
    lp_buf_clear(&r->wrote);
}

static void finish_late(struct sim *w, uint64_t id, uint64_t turn)
{
    struct sim_served *s = served_of(w, id, turn);
    if (!s)
        return;
    struct sim_request *r = sim_served_request(w, s);
    sim_answer_piece(w, s, lp_buf_span(&s->late), r != NULL);
    sim_answer_end(w, s);
}

/* The first half goes out, the rest later or never. */
static void write_half(struct sim *w, struct sim_served *s, struct lp_span body)
{
    size_t half = body.len / 2;
    sim_answer_piece(w, s, lp_span(body.ptr, half), true);
    if (s->wrong == SIM_WRONG_BREAK_MID) {
        hang_up(w, s, s->framing != SIM_UNTIL_CLOSE && sim_one_in(w, 2) ? SIM_CLOSE : SIM_RESET);
        return;
    }
    if (s->wrong == SIM_WRONG_STALL)
        return;
    lp_buf_clear(&s->late);
    int err = lp_buf_append(&s->late, lp_span_from(body, half));
    LP_ASSERT(!err);
    sim_at(w, sim_between(w, 1000, 3000000), finish_late, s->conn, s->turn);
}

static bool is_silent(struct sim *w, struct sim_served *s)
{
    if (s->wrong == SIM_WRONG_HANG)
        return true;
    if (s->wrong != SIM_WRONG_BREAK_BEFORE)
        return false;
    hang_up(w, s, sim_one_in(w, 2) ? SIM_CLOSE : SIM_RESET);
    return true;
}

void sim_answer_whole(struct sim *w, struct sim_served *s, const struct sim_answer *a)
{
    s->is_sse = false;
    s->framing = a->body.len ? (enum sim_framing)(sim_below(w, 8) < 5 ? 0 : 1 + sim_below(w, 2))
                             : SIM_COUNTED;
    s->closes = sim_one_in(w, 20);
    note_answer(w, s, a->status);
    if (is_silent(w, s))
        return;
    write_head(w, s, a);
    if (is_spoilt(w, s))
        return;
    if (s->wrong == SIM_WRONG_BREAK_MID || s->wrong >= SIM_WRONG_SLOW) {
        if (a->body.len > 1) {
            write_half(w, s, a->body);
            return;
        }
    }
    sim_answer_piece(w, s, a->body, true);
    sim_answer_end(w, s);
}

static void step(struct sim *w, uint64_t id, uint64_t turn)
{
    struct sim_served *s = served_of(w, id, turn);
    if (!s)
        return;
    bool breaks = s->wrong == SIM_WRONG_BREAK_MID && s->events_left <= 1;
    if (s->events_left && !breaks) {
        s->events_left--;
        sim_serve_event(w, s);
        sim_at(w, 1 + sim_random(w) % s->gap_us, step, id, turn);
    } else if (breaks) {
        /* Perhaps in the middle of an event. */
        if (sim_one_in(w, 2))
            sim_answer_piece(w, s, LP_SPAN("event: message\ndata: {\"half"), true);
        hang_up(w, s, s->framing != SIM_UNTIL_CLOSE && sim_one_in(w, 2) ? SIM_CLOSE : SIM_RESET);
    } else {
        sim_answer_end(w, s);
    }
}

void sim_answer_stream(struct sim *w, struct sim_served *s, const struct sim_answer *a)
{
    s->is_sse = true;
    s->framing = sim_one_in(w, 4) ? SIM_UNTIL_CLOSE : SIM_CHUNKED;
    s->closes = false;
    s->events_said = 0;
    note_answer(w, s, a->status);
    if (is_silent(w, s))
        return;
    write_head(w, s, a);
    if (is_spoilt(w, s))
        return;
    if (sim_one_in(w, 12)) /* a byte order mark; it goes when comments come before it */
        sim_answer_piece(w, s, LP_SPAN("\xEF\xBB\xBF"), false);
    sim_at(w, 1 + sim_random(w) % s->gap_us, step, s->conn, s->turn);
}

/* --- requests --- */

static void put_text(char *room, size_t cap, struct lp_span text)
{
    size_t n = text.len < cap - 1 ? text.len : cap - 1;
    memcpy(room, text.ptr, n);
    room[n] = 0;
}

/* One Cookie field is what a replica may expect (RFC 6265 5.4). */
static void put_cookies(struct sim_served *s, const struct lp_head *head)
{
    size_t used = 0;
    s->cookie[0] = s->set_cookie[0] = 0;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == LP_FIELD_COOKIE && used < sizeof s->cookie) {
            struct lp_span value = head->fields[i].value;
            used += (size_t)snprintf(s->cookie + used, sizeof s->cookie - used, "%s%.*s",
                used ? "|" : "", (int)value.len, value.ptr);
        }
}

static uint32_t number_in(struct sim *w, const struct lp_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        uint64_t number;
        if (lp_span_ieq(head->fields[i].name, LP_SPAN("x-sim")) &&
            lp_span_to_u64(head->fields[i].value, &number) && number < w->request_count)
            return (uint32_t)number;
    }
    return 0;
}

/* A request passes two sidecars at most, and what they say to each other ends there. */
static void check_way(struct sim *w, uint32_t number, const struct lp_head *head)
{
    uint32_t passed = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct lp_span value = head->fields[i].value;
        if (head->fields[i].id == LP_FIELD_VIA)
            passed += sim_search(value, LP_SPAN("limpet-")) < value.len;
        if (head->fields[i].id == LP_FIELD_LIMPET_HOP)
            sim_fail(w, "#%u brings a hop mark to its server", number);
    }
    if (passed > (w->plan.is_sidecars ? 2 : 1))
        sim_fail(w, "#%u came through %u sidecars", number, passed);
}

static void serve_now(struct sim *w, uint64_t id, uint64_t turn)
{
    struct sim_served *s = served_of(w, id, turn);
    if (s)
        sim_serve(w, s);
}

static void on_head(struct sim *w, struct sim_served *s, const struct lp_head *head)
{
    struct lp_span id = lp_head_value(head, LP_FIELD_MCP_SESSION_ID);
    s->turn++;
    s->is_busy = true;
    s->has_body = s->is_early = false;
    s->number = number_in(w, head);
    s->method = head->method;
    s->has_session = id.ptr != NULL;
    s->has_auth = lp_head_value(head, LP_FIELD_AUTHORIZATION).ptr != NULL;
    s->is_sse = s->is_old_sse = s->is_standing = false;
    s->owner = 0;
    lp_buf_clear(&s->body);
    put_cookies(s, head);
    put_text(s->path, sizeof s->path, head->target);
    put_text(s->session, sizeof s->session, id.ptr ? id : LP_SPAN(""));
    /* What the gateway has given up on is carried out, but not what the client will see. */
    if (s->number && !sim_conn_get(w, s->conn)->engine_done)
        w->requests[s->number].conn = s->conn;
    check_way(w, s->number, head);
    sim_oracle_reached(w, s->number, s->replica, id);
    decide_what_goes_wrong(w, s);
    bool early = head->body != LP_BODY_NONE && w->plan.fault_in && sim_one_in(w, 60);
    if (early) {
        struct sim_request *r = sim_served_request(w, s);
        sim_count(w, SIM_FAULT_replica_early_answer);
        sim_trouble(w, s->replica);
        if (r)
            r->accepts_any = true;
        s->is_early = true;
        sim_at(w, sim_below(w, 20000), serve_now, s->conn, s->turn);
    }
}

static void on_end(struct sim *w, struct sim_served *s)
{
    if (!s->is_busy || s->has_body)
        return;
    s->has_body = true;
    if (s->number)
        sim_oracle_runs(w, s->number, lp_buf_span(&s->body));
    if (!s->is_early) /* else it is answered already, or soon will be */
        sim_at(
            w, 1 + sim_below(w, sim_one_in(w, 20) ? 2000000 : 5000), serve_now, s->conn, s->turn);
}

static void on_item(struct sim *w, struct sim_served *s, const struct lp_http1_item *item)
{
    if (item->kind == LP_HTTP1_HEAD)
        on_head(w, s, item->head);
    else if (item->kind == LP_HTTP1_BODY && !lp_buf_append(&s->body, item->body))
        return;
    else if (item->kind == LP_HTTP1_END)
        on_end(w, s);
}

static void served_read(struct sim *w, struct sim_conn *c, struct lp_span bytes)
{
    struct sim_served *s = c->peer;
    lp_id id = c->id;
    for (;;) {
        struct lp_http1_item item;
        if (s->is_busy && s->has_body) {
            if (bytes.len)
                sim_fail(w, "%s gets bytes while it answers #%u", w->replicas[s->replica].name,
                    s->number);
            return;
        }
        ptrdiff_t n = lp_http1_feed(&s->parser, bytes, &item);
        if (n < 0) {
            sim_fail(w, "%s gets what is no HTTP: %.*s", w->replicas[s->replica].name,
                (int)(bytes.len < 200 ? bytes.len : 200), bytes.ptr);
            return;
        }
        bytes = lp_span_from(bytes, (size_t)n);
        if (item.kind == LP_HTTP1_NONE)
            return;
        on_item(w, s, &item);
        c = sim_conn_get(w, id);
        if (!c || c->peer_done)
            return;
    }
}

static void served_eof(struct sim *w, struct sim_conn *c)
{
    struct sim_served *s = c->peer;
    sim_serve_stream_over(w, s);
    hang_up(w, s, SIM_CLOSE);
}

static void served_broken(struct sim *w, struct sim_conn *c)
{
    sim_serve_stream_over(w, c->peer);
    sim_replica_fini(c);
}

static const struct sim_peer_ops SERVED_OPS = {
    .read = served_read,
    .eof = served_eof,
    .broken = served_broken,
};

void sim_replica_accept(struct sim *w, struct sim_conn *c)
{
    struct sim_served *s = calloc(1, sizeof *s);
    LP_ASSERT(s);
    s->conn = c->id;
    s->replica = c->who;
    s->incarnation = w->replicas[c->who].incarnation;
    s->gap_us = 1000;
    lp_http1_init(&s->parser, LP_HTTP1_REQUESTS, &w->head);
    lp_buf_init(&s->body, SIM_BUF_MAX);
    lp_buf_init(&s->late, SIM_BUF_MAX);
    c->ops = &SERVED_OPS;
    c->peer = s;
}

void sim_replica_fini(struct sim_conn *c)
{
    struct sim_served *s = c->peer;
    if (!s)
        return;
    lp_http1_release(&s->parser);
    lp_buf_release(&s->body);
    lp_buf_release(&s->late);
    free(s);
    c->peer = NULL;
}

void sim_replica_crash(struct sim *w, uint32_t index)
{
    struct sim_replica *r = &w->replicas[index];
    sim_count(w, SIM_FAULT_replica_crash);
    sim_say(w, "replica %s crashes", r->name);
    sim_trouble(w, index);
    sim_unseen(w, index);
    r->is_down = true;
    r->incarnation++;
    r->dialect = sim_replica_dialect(w);
    sim_net_crash_replica(w, index);
}
