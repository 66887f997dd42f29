/* Peers that are looked up: by the addresses of a name, or in a file (requirements [S3], [S6]).
 *
 *   look --> (file) lines of ID=URL -----------------------------> places in the fleet
 *        '-> (name) addresses --> a question to each: who are you? --^
 *
 * Round after round, so that what has left goes and what is new comes. An address does not say
 * whose it is, so it is asked; the answer is a hop mark over the question, which only a holder of
 * the key can write. Decided here is who there is, and when that is settled: a session whose owner
 * is not known is lost only when a round that began after it was first asked for has found
 * everybody. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "gate/engine_priv.h"

enum { SERVER = 0 /* a sidecar has one */, AGAIN_US = 1000000, URL_MAX = 320 };

static struct lp_fleet *fleet_of(struct lp_engine *e)
{
    return &e->servers[SERVER].fleet;
}

static bool is_file(const struct lp_engine *e)
{
    return e->conf->peers_file.len > 0;
}

static struct lp_span place_name(const struct lp_engine *e)
{
    return is_file(e) ? e->conf->peers_file : e->conf->peers_dns.address.host;
}

static bool is_live(const struct lp_replica *r)
{
    return r->found && !r->is_absent;
}

static void say_peer(struct lp_engine *e, const struct lp_replica *r, const char *what)
{
    const struct lp_conf_replica *peer = r->conf;
    bool is_self = lp_span_eq(peer->name, e->conf->self);
    if (!peer->name.len || is_self)
        return;
    lp_engine_say(e, LP_LOG_INFO, "peer %.*s %s (%.*s)", (int)peer->name.len, peer->name.ptr, what,
        (int)peer->address.authority.len, peer->address.authority.ptr);
}

/* --- rounds --- */

static void plan(struct lp_engine *e)
{
    struct lp_discovery *d = &e->discovery;
    uint64_t every_us = e->conf->peers_every_ms * 1000;
    uint64_t at_us = d->begun_us + (d->is_wanted && every_us > AGAIN_US ? AGAIN_US : every_us);
    if (d->is_looking || d->open_questions)
        return;
    d->is_wanted = false;
    lp_engine_arm(e, &d->timer, at_us > e->mono_us ? at_us : e->mono_us);
}

/* Whom nobody could ask is no peer, once he has had the time of a replica that is gone. */
static bool has_asked_all(struct lp_engine *e)
{
    const struct lp_fleet *fleet = fleet_of(e);
    uint64_t gone_after_us = e->servers[SERVER].conf->gone_after_ms * 1000;
    for (uint32_t i = 0; i < fleet->count; i++) {
        const struct lp_replica *r = &fleet->replicas[i];
        if (is_live(r) && !r->conf->name.len && e->mono_us - r->found->since_us < gone_after_us)
            return false;
    }
    return true;
}

static void end_round(struct lp_engine *e)
{
    struct lp_discovery *d = &e->discovery;
    if (d->is_failing)
        lp_engine_say(e, LP_LOG_INFO, "peers are found again");
    d->is_failing = false;
    if (has_asked_all(e) && !d->has_moved)
        d->complete_us = d->begun_us;
    plan(e);
}

static void fail_round(struct lp_engine *e, const char *why)
{
    struct lp_discovery *d = &e->discovery;
    struct lp_span where = place_name(e);
    lp_metrics_add(&e->metrics, LP_METRIC_PEER_LOOK_FAILURES, 1);
    if (!d->is_failing)
        lp_engine_say(e, LP_LOG_WARN,
            "peers cannot be looked up in %.*s: %s; those that are known stay", (int)where.len,
            where.ptr, why);
    d->is_failing = true;
    plan(e);
}

static const char *sentence_of(const struct lp_engine *e, int error)
{
    if (error == LP_ENOT_FOUND)
        return is_file(e) ? "there is no such file" : "the name has no address";
    return error == LP_ETIMEOUT ? "no name server answers" : lp_error_sentence(error);
}

static void begin_round(struct lp_engine *e)
{
    struct lp_discovery *d = &e->discovery;
    if (e->stopping)
        return;
    struct lp_action action = {
        .kind = LP_ACT_LOOK, .u.look = {.is_file = is_file(e), .text = place_name(e)}};
    d->begun_us = e->mono_us;
    d->has_moved = false;
    lp_metrics_add(&e->metrics, LP_METRIC_PEER_LOOKS, 1);
    int64_t err = e->shell->perform(e->shell->ctx, &action);
    d->is_looking = !err;
    if (err)
        fail_round(e, lp_error_sentence((int)err));
}

/* --- questions --- */

struct lp_hop_claim lp_discovery_claim(struct lp_span asked, struct lp_span owner)
{
    return (struct lp_hop_claim){.method = LP_SPAN("OWNER"), .path = asked, .target = owner};
}

static struct lp_replica *asked_peer(struct lp_engine *e, uint64_t tag)
{
    return &fleet_of(e)->replicas[tag];
}

static void end_question(struct lp_engine *e, struct lp_replica *r)
{
    struct lp_found *found = r->found;
    if (!found->question)
        return;
    lp_link_close(&e->links, found->question, LP_CLOSE_NOW);
    lp_heap_cancel(&e->timers, &found->patience);
    found->question = 0;
    if (--e->discovery.open_questions == 0 && !e->discovery.is_looking)
        end_round(e);
}

static void retire(struct lp_engine *e, struct lp_replica *r)
{
    say_peer(e, r, "has left");
    r->is_absent = true;
    lp_pool_drop_all(e, r);
    lp_heap_cancel(&e->timers, &r->check);
    end_question(e, r);
}

/* Who answers at this address. Another one than before: a place keeps its name for as long as
 * requests may name it, so the next round takes a new one. */
static void learn(struct lp_engine *e, struct lp_replica *r, struct lp_span owner)
{
    if (lp_span_eq(r->conf->name, owner))
        return;
    if (r->conf->name.len) {
        e->discovery.is_wanted = e->discovery.has_moved = true;
        retire(e, r);
        return;
    }
    lp_fleet_name(r, e->keyring, owner);
    say_peer(e, r, "is found");
}

static void judge_answer(struct lp_engine *e, struct lp_replica *r, const struct lp_head *head)
{
    struct lp_span mark = lp_head_value(head, LP_FIELD_LIMPET_HOP);
    struct lp_span owner = lp_hop_target(mark);
    struct lp_hop_claim claim = lp_discovery_claim(lp_span_str(r->found->asked), owner);
    if (owner.len && lp_hop_judge(&e->hops, e->keyring, &claim, mark, e->wall_ms) == LP_HOP_GOOD)
        learn(e, r, owner);
    else if (lp_engine_may_complain(e))
        lp_engine_say(e, LP_LOG_ERROR,
            "%.*s does not tell its owner id as a sidecar with our key does: other keys, other "
            "clocks, or none at all (status %u)",
            (int)r->conf->address.authority.len, r->conf->address.authority.ptr, head->status);
}

static void on_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    struct lp_engine *e = ctx;
    struct lp_replica *r = asked_peer(e, tag);
    struct lp_head *head = e->out_head;
    if (error) {
        end_question(e, r);
        return;
    }
    struct lp_stream stream = lp_link_begin(&e->links, link);
    head->is_request = true;
    head->method = LP_METHOD_GET;
    head->method_name = LP_SPAN("GET");
    head->target = lp_span_str(r->found->asked);
    head->body = LP_BODY_NONE;
    head->body_bytes = head->field_count = 0;
    (void)!lp_head_add(head, LP_FIELD_HOST, r->conf->address.authority);
    lp_link_send_head(&e->links, stream, head);
    lp_link_send_end(&e->links, stream);
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    struct lp_engine *e = ctx;
    struct lp_replica *r = asked_peer(e, tag);
    (void)s;
    judge_answer(e, r, head);
    end_question(e, r);
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    end_question(ctx, asked_peer(ctx, tag));
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)link;
    (void)why;
    end_question(ctx, asked_peer(ctx, tag));
}

/* Nothing follows the head: the connection is closed by then. */
static const struct lp_message_ops QUESTION_OPS = {
    .connected = on_connected,
    .head = on_head,
    .reset = on_reset,
    .closed = on_closed,
};

static void ask(struct lp_engine *e, uint32_t at)
{
    unsigned char nonce[LP_HOP_NONCE_BYTES];
    struct lp_found *found = fleet_of(e)->replicas[at].found;
    struct lp_endpoint to = lp_replica_endpoint(e, SERVER, at);
    if (lp_link_open(&e->links, &to, &QUESTION_OPS, e, &found->question)) {
        found->question = 0;
        return;
    }
    lp_entropy_bytes(&e->entropy, nonce, sizeof nonce);
    size_t len = (size_t)snprintf(found->asked, sizeof found->asked, "%s?", LP_QUESTION_PATH);
    for (size_t i = 0; i < sizeof nonce; i++)
        len += (size_t)snprintf(found->asked + len, sizeof found->asked - len, "%02x", nonce[i]);
    lp_link_set_tag(&e->links, found->question, at);
    e->discovery.open_questions++;
    found->patience = (struct lp_timer){.kind = LP_TIMER_QUESTION, .owner = at};
    lp_engine_arm(e, &found->patience, e->mono_us + 2000ull * to.timeout_ms);
}

/* --- what a look has found --- */

static bool is_same(const struct lp_conf_replica *a, const struct lp_conf_replica *b)
{
    return a->address.is_unix == b->address.is_unix && a->address.is_tls == b->address.is_tls &&
        a->address.port == b->address.port && lp_span_eq(a->address.host, b->address.host);
}

/* The peer at that address; of a file, with that owner id. */
static struct lp_replica *find_same(struct lp_engine *e, const struct lp_conf_replica *peer)
{
    struct lp_fleet *fleet = fleet_of(e);
    for (uint32_t i = 0; i < fleet->count; i++) {
        struct lp_replica *r = &fleet->replicas[i];
        bool has_name = !peer->name.len || lp_span_eq(r->conf->name, peer->name);
        if (is_live(r) && has_name && is_same(r->conf, peer))
            return r;
    }
    return NULL;
}

/* Somebody may still speak of it by its place. */
static bool is_used(struct lp_engine *e, uint32_t at)
{
    uint32_t cursor = 0;
    lp_id id;
    if (fleet_of(e)->replicas[at].check_link)
        return true;
    for (struct lp_exchange *x; (x = lp_slab_next(&e->exchanges, &cursor, &id));)
        if (x->attempts && x->leg.replica == at)
            return true;
    return false;
}

/* fleet->room: there is none. */
static uint32_t free_place(struct lp_engine *e)
{
    struct lp_fleet *fleet = fleet_of(e);
    for (uint32_t i = 0; i < fleet->count; i++)
        if (fleet->replicas[i].is_absent && !is_used(e, i))
            return i;
    return fleet->count;
}

/* Takes `found`. */
static int enter(struct lp_engine *e, struct lp_found *found)
{
    struct lp_fleet *fleet = fleet_of(e);
    uint32_t at = free_place(e);
    if (at == fleet->room) {
        free(found);
        return LP_ELIMIT;
    }
    found->is_listed = true;
    found->since_us = e->mono_us;
    int err = lp_fleet_put(fleet, e->keyring, at, found);
    if (!err)
        say_peer(e, &fleet->replicas[at], "is found");
    return err;
}

/* One peer, or with `is_trial` only whether it is one. */
static int take(struct lp_engine *e, struct lp_span id, struct lp_span url, bool is_trial)
{
    struct lp_found *found = calloc(1, sizeof *found);
    if (!found)
        return LP_ENOMEM;
    int err = lp_conf_peer_make(id, url, found->text, &found->conf);
    struct lp_replica *known = err || is_trial ? NULL : find_same(e, &found->conf);
    if (known)
        known->found->is_listed = true;
    if (err || is_trial || known)
        free(found);
    else
        err = enter(e, found);
    return err;
}

static int take_address(struct lp_engine *e, struct lp_span address, bool is_trial)
{
    char url[URL_MAX];
    bool is_v6 = lp_span_find(address, ':') < address.len;
    int len = snprintf(url, sizeof url, is_v6 ? "http://[%.*s]:%u" : "http://%.*s:%u",
        (int)address.len, address.ptr, e->conf->peers_dns.address.port);
    return take(e, LP_SPAN(""), lp_span(url, (size_t)len), is_trial);
}

static int take_line(struct lp_engine *e, struct lp_span line, bool is_trial)
{
    struct lp_span url;
    if (!line.len || line.ptr[0] == '#')
        return LP_OK;
    struct lp_span id = lp_span_trim(lp_span_split(line, '=', &url));
    if (!url.ptr || !lp_owner_is_id(id))
        return LP_ESYNTAX;
    if (lp_span_eq(id, e->conf->self))
        return LP_OK;
    return take(e, id, lp_span_trim(url), is_trial);
}

/* The first error, with its line. */
static int take_all(struct lp_engine *e, struct lp_span text, bool is_trial, uint32_t *ret_line)
{
    int err = LP_OK;
    for (uint32_t line = 1; text.len && !err; line++) {
        struct lp_span one = lp_span_split(text, '\n', &text);
        if (one.len && one.ptr[one.len - 1] == '\r')
            one.len--;
        one = lp_span_trim(one);
        err = is_file(e) ? take_line(e, one, is_trial) : take_address(e, one, is_trial);
        if (err)
            *ret_line = line;
    }
    return err;
}

static void fail_at(struct lp_engine *e, int err, uint32_t line)
{
    char why[128];
    if (err == LP_ELIMIT)
        (void)snprintf(why, sizeof why, "there are more than %d peers", LP_FOUND_MAX);
    else if (is_file(e) && err != LP_ENOMEM)
        (void)snprintf(
            why, sizeof why, "line %u is not a peer; write it like m2=http://10.0.0.2:8080", line);
    else
        (void)snprintf(why, sizeof why, "%s", lp_error_sentence(err));
    fail_round(e, why);
}

static void for_each_found(struct lp_engine *e, void (*act)(struct lp_engine *, uint32_t))
{
    for (uint32_t i = 0; i < fleet_of(e)->count; i++)
        if (is_live(&fleet_of(e)->replicas[i]))
            act(e, i);
}

static void forget_listed(struct lp_engine *e, uint32_t at)
{
    fleet_of(e)->replicas[at].found->is_listed = false;
}

static void drop_unlisted(struct lp_engine *e, uint32_t at)
{
    if (!fleet_of(e)->replicas[at].found->is_listed)
        retire(e, &fleet_of(e)->replicas[at]);
}

void lp_discovery_looked(struct lp_engine *e, int error, struct lp_span text)
{
    struct lp_discovery *d = &e->discovery;
    uint32_t line = 0;
    d->is_looking = false;
    if (error) {
        fail_round(e, sentence_of(e, error));
        return;
    }
    int err = take_all(e, text, true, &line);
    if (!err) {
        for_each_found(e, forget_listed);
        err = take_all(e, text, false, &line);
    }
    if (err) {
        fail_at(e, err, line);
        return;
    }
    for_each_found(e, drop_unlisted);
    if (!is_file(e))
        for_each_found(e, ask);
    if (!d->open_questions)
        end_round(e);
}

/* --- what the others ask of it --- */

bool lp_discovery_is_settled(struct lp_engine *e, struct lp_key session)
{
    struct lp_discovery *d = &e->discovery;
    uint32_t at = session.lo % LP_UNSETTLED_MAX;
    if (!d->is_on)
        return true;
    if (d->unsettled[at].session != session.lo || !d->unsettled[at].since_us) {
        d->unsettled[at].session = session.lo;
        d->unsettled[at].since_us = e->mono_us;
    }
    if (!d->is_failing && d->complete_us >= d->unsettled[at].since_us)
        return true;
    d->is_wanted = true;
    plan(e);
    return false;
}

void lp_discovery_timer(struct lp_engine *e, const struct lp_timer *timer)
{
    if (timer->kind == LP_TIMER_QUESTION)
        end_question(e, asked_peer(e, timer->owner));
    else
        begin_round(e);
}

void lp_discovery_init(struct lp_engine *e)
{
    struct lp_discovery *d = &e->discovery;
    d->timer = (struct lp_timer){.kind = LP_TIMER_DISCOVERY};
    d->is_on = lp_conf_finds_peers(e->conf);
    if (d->is_on)
        lp_engine_arm(e, &d->timer, e->mono_us);
}
