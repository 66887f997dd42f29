/* The lying network: connections between engines and models, with bytes under way in both
 * directions.
 *
 *   model --peer_out--> [to_engine: window] --READ--> engine
 *   model <-----------  [to_peer:   window] <--WRITE, DRAIN-- engine
 *
 * Bytes of one direction keep their order; everything else is the seed's: how much a write takes,
 * how a read is cut, how long each piece is under way, whether a reset overtakes what was sent. A
 * close with bytes unread, or met by bytes that still come, is a reset, as the kernel has it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "sim.h"

enum { LINGER_US = 2000000, READ_MAX = 65536, SPIKE_US = 300000 };

struct sim_conn *sim_conn_get(struct sim *w, lp_id id)
{
    return lp_slab_get(&w->conns, id);
}

static uint64_t latency(struct sim *w, const struct sim_conn *c)
{
    if (w->plan.fault_in && sim_one_in(w, 400)) {
        sim_count(w, SIM_FAULT_latency_spike);
        return sim_between(w, 1000, SPIKE_US);
    }
    return 1 + sim_below(w, c->latency_us + 1);
}

static bool engine_is_alive(const struct sim_conn *c)
{
    return c->engine->engine && c->engine->w->gateways[c->engine->gateway].epoch == c->epoch;
}

static void free_conn(struct sim *w, struct sim_conn *c)
{
    lp_buf_release(&c->peer_out);
    lp_buf_release(&c->to_engine.bytes);
    lp_buf_release(&c->to_peer.bytes);
    lp_slab_free(&w->conns, c->id);
}

/* True when nobody is left: the connection is gone. */
static bool free_if_done(struct sim *w, struct sim_conn *c)
{
    if (!c->engine_done || !c->peer_done)
        return false;
    free_conn(w, c);
    return true;
}

static void deliver_to_engine(struct sim *w, uint64_t id, uint64_t unused);
static void deliver_to_peer(struct sim *w, uint64_t id, uint64_t unused);
static void break_engine(struct sim *w, uint64_t id, uint64_t unused);

static void schedule_engine(struct sim *w, struct sim_conn *c)
{
    struct sim_pipe *p = &c->to_engine;
    bool has_news = p->bytes.len || (p->fin && !p->fin_told);
    if (p->is_due || !c->is_open || !has_news || p->reset)
        return;
    p->is_due = true;
    sim_at(w, latency(w, c), deliver_to_engine, c->id, 0);
}

static void schedule_peer(struct sim *w, struct sim_conn *c)
{
    struct sim_pipe *p = &c->to_peer;
    bool has_news = p->bytes.len || (p->fin && !p->fin_told) || p->reset;
    if (p->is_due || !c->is_open || !has_news || c->peer_done)
        return;
    p->is_due = true;
    sim_at(w, latency(w, c), deliver_to_peer, c->id, 0);
}

static void reset_engine(struct sim *w, struct sim_conn *c)
{
    if (c->to_engine.reset)
        return;
    c->to_engine.reset = true;
    sim_at(w, latency(w, c), break_engine, c->id, 0);
}

static void append(struct lp_buf *buf, struct lp_span bytes)
{
    int err = lp_buf_append(buf, bytes);
    LP_ASSERT(!err);
}

/* --- towards the engine --- */

static void pump_peer_out(struct sim *w, struct sim_conn *c)
{
    struct sim_pipe *p = &c->to_engine;
    size_t room = p->bytes.len < w->plan.window ? w->plan.window - p->bytes.len : 0;
    struct lp_span out = lp_buf_span(&c->peer_out);
    if (out.len > room)
        out.len = room;
    if (out.len) {
        append(&p->bytes, out);
        lp_buf_consume(&c->peer_out, out.len);
    }
    if (c->peer_fin && !c->peer_out.len)
        p->fin = true;
    schedule_engine(w, c);
}

/* How much of what has come is read at once. */
static size_t cut_read(struct sim *w, size_t n)
{
    size_t max = n < READ_MAX ? n : READ_MAX;
    if (w->plan.split == 0 || sim_one_in(w, 2))
        return max;
    size_t cut = 1 + sim_below(w, (uint32_t)max);
    if (w->plan.split == 2 && max < 4096)
        cut = 1 + sim_below(w, max < 24 ? (uint32_t)max : 24);
    if (cut < max)
        sim_count(w, SIM_FAULT_split_read);
    return cut;
}

static void emit_read(struct sim *w, struct sim_conn *c)
{
    struct sim_pipe *p = &c->to_engine;
    size_t n = cut_read(w, p->bytes.len);
    char *piece = malloc(n); /* of its own, so that a reader who goes too far is seen */
    LP_ASSERT(piece);
    memcpy(piece, lp_buf_span(&p->bytes).ptr, n);
    lp_buf_consume(&p->bytes, n);
    pump_peer_out(w, c);
    sim_hash(w, piece, n);
    struct lp_event event = {.kind = LP_EV_READ, .conn = c->id, .u.bytes = lp_span(piece, n)};
    sim_emit(c->engine, &event);
    free(piece);
}

static void deliver_to_engine(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c)
        return;
    struct sim_pipe *p = &c->to_engine;
    p->is_due = false;
    if (p->reset)
        return;
    if (c->engine_done) {
        bool is_unwelcome = p->bytes.len && c->engine_closed_hard && !c->to_peer.reset;
        lp_buf_clear(&p->bytes);
        if (is_unwelcome) {
            sim_count(w, SIM_FAULT_unread_reset);
            c->to_peer.reset = true;
            schedule_peer(w, c);
        }
        if (p->fin)
            p->fin_told = true;
        pump_peer_out(w, c);
        return;
    }
    if (p->bytes.len) {
        if (!c->is_reading_off)
            emit_read(w, c);
        return;
    }
    if (!p->fin || p->fin_told)
        return;
    p->fin_told = true;
    struct lp_event event = {.kind = LP_EV_EOF, .conn = c->id};
    sim_emit(c->engine, &event);
}

static void break_engine(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c || c->engine_done || !c->is_open)
        return;
    struct sim_engine *engine = c->engine;
    c->engine_done = true;
    c->has_drain = false;
    struct lp_event event = {.kind = LP_EV_BROKEN, .conn = c->id};
    /* The far end may still live: a reset overtook what it sent. */
    if (!c->peer_done) {
        c->to_peer.reset = true;
        schedule_peer(w, c);
    }
    free_if_done(w, c);
    sim_emit(engine, &event);
}

/* --- towards the model --- */

static void told_drained(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c || c->engine_done)
        return;
    struct lp_event event = {.kind = LP_EV_DRAINED, .conn = c->id};
    sim_emit(c->engine, &event);
}

/* Far ends that are gone take everything, and say so with a reset. */
static size_t take(struct sim *w, struct sim_conn *c, struct lp_span bytes)
{
    struct sim_pipe *p = &c->to_peer;
    if (c->peer_done) {
        if (!c->is_client)
            sim_trouble(w, c->who); /* a request that met a closing connection */
        reset_engine(w, c);
        return bytes.len;
    }
    size_t room = p->bytes.len < w->plan.window ? w->plan.window - p->bytes.len : 0;
    size_t n = bytes.len < room ? bytes.len : room;
    append(&p->bytes, lp_span(bytes.ptr, n));
    schedule_peer(w, c);
    return n;
}

static void progress_drain(struct sim *w, struct sim_conn *c)
{
    if (!c->has_drain || !c->is_open)
        return;
    size_t n = take(w, c, c->drain);
    sim_hash(w, c->drain.ptr, n);
    c->drain = lp_span_from(c->drain, n);
    if (c->drain.len)
        return;
    c->has_drain = false;
    sim_count(w, SIM_FAULT_late_drain);
    sim_at(w, latency(w, c), told_drained, c->id, 0);
}

static void deliver_bytes_to_peer(struct sim *w, struct sim_conn *c)
{
    struct sim_pipe *p = &c->to_peer;
    struct lp_span all = lp_buf_span(&p->bytes);
    size_t n = all.len;
    char *piece = malloc(n);
    LP_ASSERT(piece);
    memcpy(piece, all.ptr, n);
    lp_buf_consume(&p->bytes, n);
    progress_drain(w, c);
    schedule_peer(w, c);
    if (c->is_client)
        sim_oracle_sees(w, lp_span(piece, n));
    c->ops->read(w, c, lp_span(piece, n));
    free(piece);
}

static void deliver_to_peer(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c)
        return;
    struct sim_pipe *p = &c->to_peer;
    p->is_due = false;
    if (c->peer_done)
        return;
    if (p->reset) {
        c->peer_done = true;
        c->ops->broken(w, c);
        if (!free_if_done(w, c))
            reset_engine(w, c);
        return;
    }
    if (c->peer_reading_off)
        return;
    if (p->bytes.len) {
        deliver_bytes_to_peer(w, c);
    } else if (p->fin && !p->fin_told) {
        p->fin_told = true;
        c->ops->eof(w, c);
    }
}

/* --- what the models do --- */

void sim_peer_write(struct sim *w, struct sim_conn *c, struct lp_span bytes)
{
    if (c->peer_done || c->peer_fin)
        return;
    append(&c->peer_out, bytes);
    pump_peer_out(w, c);
}

static void reset_by_peer(struct sim *w, struct sim_conn *c)
{
    lp_buf_clear(&c->peer_out);
    lp_buf_clear(&c->to_engine.bytes);
    reset_engine(w, c);
}

void sim_peer_close(struct sim *w, struct sim_conn *c, enum sim_how how)
{
    if (c->peer_done)
        return;
    c->peer_fin = true;
    if (how != SIM_FIN) {
        c->peer_done = true;
        bool is_unread = c->to_peer.bytes.len > 0;
        if (is_unread && !c->is_client)
            sim_trouble(w, c->who);
        if (how == SIM_RESET || (is_unread && sim_one_in(w, 2)))
            reset_by_peer(w, c);
        /* What the engine still wants to write is met by a reset. */
        progress_drain(w, c);
        if (free_if_done(w, c))
            return;
    }
    pump_peer_out(w, c);
}

void sim_peer_reading(struct sim *w, struct sim_conn *c, bool on)
{
    c->peer_reading_off = !on;
    if (on)
        schedule_peer(w, c);
}

static struct sim_conn *new_conn(struct sim *w, struct sim_engine *engine)
{
    lp_id id;
    struct sim_conn *c = lp_slab_new(&w->conns, &id);
    LP_ASSERT(c);
    c->id = id;
    c->engine = engine;
    c->epoch = w->gateways[engine->gateway].epoch;
    c->latency_us = sim_below(w, w->plan.latency_us + 1);
    lp_buf_init(&c->peer_out, SIM_BUF_MAX);
    lp_buf_init(&c->to_engine.bytes, SIM_BUF_MAX);
    lp_buf_init(&c->to_peer.bytes, SIM_BUF_MAX);
    return c;
}

/* --- a client connects --- */

static void refuse_client(struct sim *w, struct sim_conn *c)
{
    c->engine_done = c->peer_done = true;
    c->ops->connected(w, c, false);
    free_conn(w, c);
}

static void accept_client(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c)
        return;
    if (c->peer_done) {
        free_conn(w, c);
        return;
    }
    if (!engine_is_alive(c)) {
        refuse_client(w, c);
        return;
    }
    c->is_open = true;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = c->id};
    event.u.accepted = (struct lp_conn_facts){.is_loopback = w->plan.is_loopback,
        .peer = lp_span_str(c->facts_peer),
        .local = LP_SPAN("192.0.2.1:8080"),
        .unix_uid = -1};
    c->ops->connected(w, c, true);
    sim_emit(c->engine, &event);
    c = sim_conn_get(w, id);
    if (c)
        pump_peer_out(w, c);
}

lp_id sim_dial(struct sim *w, struct sim_engine *engine, const struct sim_peer_ops *ops, void *peer)
{
    struct sim_conn *c = new_conn(w, engine);
    c->is_client = true;
    c->ops = ops;
    c->peer = peer;
    uint32_t host = 2 + sim_below(w, 9), port = 1024 + sim_below(w, 60000);
    snprintf(c->facts_peer, sizeof c->facts_peer,
        sim_one_in(w, 4) ? "[2001:db8::%u]:%u" : "192.0.2.%u:%u", host, port);
    sim_at(w, latency(w, c), accept_client, c->id, 0);
    return c->id;
}

/* --- an engine connects --- */

static void fail_connect(struct sim *w, struct sim_conn *c, int error)
{
    struct sim_engine *engine = c->engine;
    static const enum sim_fault FAULTS[] = {
        SIM_FAULT_connect_refused, SIM_FAULT_connect_timeout, SIM_FAULT_connect_unreachable};
    sim_count(w, FAULTS[error == LP_EREFUSED ? 0 : error == LP_ETIMEOUT ? 1 : 2]);
    sim_unseen(w, c->who);
    struct lp_event event = {.kind = LP_EV_CONNECT_FAILED, .conn = c->id, .u.error = error};
    c->engine_done = true;
    free_conn(w, c);
    sim_emit(engine, &event);
}

static void connect_late(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (c && !c->engine_done)
        fail_connect(w, c, sim_one_in(w, 4) ? LP_EUNREACHABLE : LP_ETIMEOUT);
}

static void connect_now(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (!c || c->engine_done)
        return;
    struct sim_replica *r = &w->replicas[c->who];
    if (c->is_bridge) {
        if (!sim_bridge_open(w, c)) {
            fail_connect(w, c, LP_EREFUSED);
            return;
        }
        c->is_open = true;
        sim_emit(c->engine, &(struct lp_event){.kind = LP_EV_CONNECTED, .conn = id});
        return;
    }
    if (r->is_black_hole) {
        sim_at(w, c->connect_us, connect_late, id, 0);
        return;
    }
    if (r->is_down) {
        fail_connect(w, c, LP_EREFUSED);
        return;
    }
    c->is_open = true;
    sim_replica_accept(w, c);
    struct lp_event event = {.kind = LP_EV_CONNECTED, .conn = c->id};
    sim_emit(c->engine, &event);
}

static int64_t on_connect(struct sim_engine *engine, const struct lp_endpoint *to)
{
    struct sim *w = engine->w;
    if (sim_one_in(w, w->plan.no_room_in) && !w->is_settling) {
        sim_count(w, SIM_FAULT_connect_no_room);
        w->room_us = w->now_us;
        return LP_ELIMIT;
    }
    uint32_t who = UINT32_MAX;
    for (uint32_t i = 0; i < w->plan.replicas; i++) {
        struct lp_span host = lp_span_str(w->replicas[i].host);
        if (lp_span_eq(to->host, host))
            who = i;
    }
    bool is_bridge = who == UINT32_MAX;
    if (is_bridge)
        who = sim_bridge_find(w, to->host);
    LP_ASSERT(who < w->plan.replicas); /* an engine connects to what its configuration names */
    struct sim_conn *c = new_conn(w, engine);
    c->who = who;
    c->is_bridge = is_bridge;
    c->connect_us = to->timeout_ms * 1000ull;
    sim_at(w, latency(w, c), connect_now, c->id, 0);
    return (int64_t)c->id;
}

/* --- what the engine does --- */

static int64_t on_write(struct sim *w, struct sim_conn *c, const struct lp_action *action)
{
    LP_ASSERT(c && c->is_open && !c->engine_done && !c->has_drain);
    LP_ASSERT(action->u.write.count <= LP_WRITE_PARTS_MAX);
    if (c->to_engine.reset) {
        sim_count(w, SIM_FAULT_broken_write);
        return LP_EBROKEN;
    }
    size_t total = 0, taken = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++)
        total += action->u.write.parts[i].len;
    size_t limit = total;
    if (total && sim_one_in(w, w->plan.partial_in)) {
        limit = sim_below(w, (uint32_t)total + 1);
        sim_count(w, SIM_FAULT_partial_write);
    }
    for (uint32_t i = 0; i < action->u.write.count && taken < limit; i++) {
        struct lp_span part = action->u.write.parts[i];
        if (part.len > limit - taken)
            part.len = limit - taken;
        size_t n = take(w, c, part);
        sim_hash(w, part.ptr, n);
        taken += n;
        if (n < part.len)
            break;
    }
    return (int64_t)taken;
}

static int64_t on_drain(struct sim *w, struct sim_conn *c, const struct lp_action *action)
{
    LP_ASSERT(c && !c->engine_done && !c->has_drain);
    c->has_drain = true;
    c->drain = action->u.drain;
    if (c->to_engine.reset)
        c->has_drain = false; /* BROKEN is on its way */
    else
        progress_drain(w, c);
    return LP_OK;
}

static int64_t on_reading(struct sim *w, struct sim_conn *c, bool on)
{
    LP_ASSERT(c && !c->engine_done);
    c->is_reading_off = !on;
    if (on)
        schedule_engine(w, c);
    return LP_OK;
}

static void linger_over(struct sim *w, uint64_t id, uint64_t unused)
{
    (void)unused;
    struct sim_conn *c = sim_conn_get(w, id);
    if (c)
        c->engine_closed_hard = true;
}

static int64_t on_close(struct sim *w, struct sim_conn *c, enum lp_close_how how)
{
    if (!c)
        return LP_OK;
    LP_ASSERT(!c->engine_done);
    bool is_cut = how == LP_CLOSE_RESET || (how == LP_CLOSE_LINGER && c->has_drain) ||
        (how == LP_CLOSE_NOW && c->to_engine.bytes.len);
    if (c->is_client)
        sim_say(w, "    g%u/%u closes connection %llx (%d%s)", c->engine->gateway,
            c->engine->number, (unsigned long long)c->id, (int)how, is_cut ? ", cut" : "");
    c->engine_done = true;
    c->has_drain = false;
    c->engine_closed_hard = how != LP_CLOSE_LINGER;
    if (!c->ops) /* nobody was there yet */
        c->peer_done = true;
    if (free_if_done(w, c))
        return LP_OK;
    if (is_cut) {
        c->to_peer.reset = true;
        if (how == LP_CLOSE_NOW)
            sim_count(w, SIM_FAULT_unread_reset);
    } else {
        c->to_peer.fin = true;
    }
    if (how == LP_CLOSE_LINGER) {
        sim_count(w, SIM_FAULT_linger);
        sim_at(w, LINGER_US, linger_over, c->id, 0);
    }
    schedule_peer(w, c);
    schedule_engine(w, c);
    return LP_OK;
}

static void deliver_timer(struct sim *w, uint64_t gateway, uint64_t number)
{
    struct sim_engine *engine = &w->gateways[gateway].engines[number & 0xFF];
    if (!engine->engine || engine->timer_order != number >> 8)
        return;
    struct lp_event event = {.kind = LP_EV_TIMER};
    sim_emit(engine, &event);
}

static int64_t on_timer(struct sim_engine *engine, uint64_t at_us)
{
    struct sim *w = engine->w;
    engine->timer_order++;
    if (at_us == UINT64_MAX)
        return LP_OK;
    uint64_t delay_us = at_us > w->now_us ? at_us - w->now_us : 0;
    sim_at(w, delay_us + sim_below(w, 500), deliver_timer, engine->gateway,
        engine->timer_order << 8 | engine->number);
    return LP_OK;
}

struct letter {
    struct sim_engine *to;
    uint32_t epoch, from;
    size_t len;
    char bytes[];
};

static void deliver_mail(struct sim *w, uint64_t address, uint64_t unused)
{
    (void)unused;
    struct letter *letter = (struct letter *)(uintptr_t)address;
    bool is_there = letter->to->engine && w->gateways[letter->to->gateway].epoch == letter->epoch;
    struct lp_event event = {.kind = LP_EV_MAIL};
    event.u.mail.from = letter->from;
    event.u.mail.bytes = lp_span(letter->bytes, letter->len);
    if (is_there)
        sim_emit(letter->to, &event);
    free(letter);
}

static int64_t on_mail(struct sim_engine *engine, uint32_t number, struct lp_span bytes)
{
    struct sim *w = engine->w;
    struct sim_gateway *g = &w->gateways[engine->gateway];
    LP_ASSERT(number < g->engine_count && number != engine->number);
    struct letter *letter = malloc(sizeof *letter + bytes.len);
    LP_ASSERT(letter);
    *letter = (struct letter){&g->engines[number], g->epoch, engine->number, bytes.len};
    memcpy(letter->bytes, bytes.ptr, bytes.len);
    uint64_t at_us = w->now_us + 1 + sim_below(w, w->plan.mail_us + 1);
    uint64_t *last_us = &engine->mail_at_us[number];
    if (w->plan.mail_us >= 100000)
        sim_count(w, SIM_FAULT_slow_mail);
    if (at_us < g->engines[number].mail_at_us[engine->number])
        sim_count(w, SIM_FAULT_reordered_mail); /* it passes mail that goes the other way */
    if (at_us < *last_us)
        at_us = *last_us;
    *last_us = at_us;
    sim_at(w, at_us - w->now_us, deliver_mail, (uintptr_t)letter, 0);
    return LP_OK;
}

/* The access line's last word is its reason, in parentheses. */
static void on_log(struct sim_engine *engine, enum lp_log_level level, struct lp_span line)
{
    struct sim *w = engine->w;
    sim_say(w, "    g%u/%u %s %.*s", engine->gateway, engine->number,
        level == LP_LOG_ACCESS ? "access:" : "says:", (int)line.len, line.ptr);
    if (level == LP_LOG_ACCESS)
        engine->lines++;
    if (sim_search(line, LP_SPAN(SIM_ID_MARK)) < line.len)
        sim_fail(w, "the log holds a session id of a replica: %.*s", (int)line.len, line.ptr);
}

static int64_t perform(struct sim_engine *engine, const struct lp_action *action)
{
    struct sim *w = engine->w;
    struct sim_conn *c = action->conn ? sim_conn_get(w, action->conn) : NULL;
    LP_ASSERT(!c || c->engine == engine);
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return on_connect(engine, &action->u.connect);
    case LP_ACT_WRITE:
        return on_write(w, c, action);
    case LP_ACT_DRAIN:
        return on_drain(w, c, action);
    case LP_ACT_READ_OFF:
        return on_reading(w, c, false);
    case LP_ACT_READ_ON:
        return on_reading(w, c, true);
    case LP_ACT_CLOSE:
        return on_close(w, c, action->u.close);
    case LP_ACT_TIMER:
        return on_timer(engine, action->u.timer_at_us);
    case LP_ACT_MAIL:
        return on_mail(engine, action->u.mail.to, action->u.mail.bytes);
    case LP_ACT_LOG:
        on_log(engine, action->u.log.level, action->u.log.line);
        return LP_OK;
    case LP_ACT_STOPPED:
        engine->stopped = true;
        sim_say(w, "g%u/%u has stopped", engine->gateway, engine->number);
        return LP_OK;
    case LP_ACT_LOOK:
        sim_look(w, engine);
        return LP_OK;
    case LP_ACT_STORE:
        break;
    }
    sim_fail(w, "an action that does not exist in this release: %d", (int)action->kind);
    return LP_EUNSUPPORTED;
}

int64_t sim_perform(void *ctx, const struct lp_action *action)
{
    struct sim *before = sim_memory_of(NULL);
    int64_t result = perform(ctx, action);
    sim_memory_of(before);
    return result;
}

/* --- processes that die --- */

void sim_net_crash_replica(struct sim *w, uint32_t replica)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct sim_conn *c; (c = lp_slab_next(&w->conns, &cursor, &id));) {
        if (c->is_client || c->is_bridge || c->who != replica || c->peer_done || !c->ops)
            continue;
        sim_replica_fini(c);
        sim_peer_close(w, c, sim_one_in(w, 3) ? SIM_CLOSE : SIM_RESET);
    }
}

void sim_net_fini(struct sim *w)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct sim_conn *c; (c = lp_slab_next(&w->conns, &cursor, &id));) {
        if (c->is_bridge && !c->peer_done && c->ops)
            sim_bridge_fini(c);
        else if (!c->is_client && !c->peer_done && c->ops)
            sim_replica_fini(c);
        free_conn(w, c);
    }
    for (uint32_t i = 0; i < w->due_count; i++)
        if (w->due[i].run == deliver_mail)
            free((struct letter *)(uintptr_t)w->due[i].a);
    w->due_count = 0;
}
