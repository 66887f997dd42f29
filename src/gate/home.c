/* Sessions by home, and the mail between engines (design 4).
 *
 * A session's home is the engine that its key hashes to. There is the one record of it: when it was
 * last used, on which replica it is, who holds its standalone stream. A plain forward asks nobody;
 * the record only improves things (balance, idle accounting, the 409 of a second stream). What
 * every engine should know (counts, closed old-SSE streams, replica states) goes to all by mail.
 * Mail to oneself is handled at once, so one engine alone needs no mailbox. */
#include <stdlib.h>

#include "base/error.h"
#include "gate/engine_priv.h"

int lp_home_init(struct lp_engine *e)
{
    lp_slab_init(&e->sessions, sizeof(struct lp_session), LP_SESSIONS_MAX);
    lp_map_init(&e->session_by_key);
    lp_map_init(&e->closed_by_key);
    lp_list_init(&e->session_lru);
    e->closed_ring = calloc(LP_CLOSED_MAX, sizeof *e->closed_ring);
    return e->closed_ring ? LP_OK : LP_ENOMEM;
}

static void drop_jar(struct lp_session *s)
{
    if (s->jar)
        lp_jar_fini(s->jar);
    free(s->jar);
    s->jar = NULL;
}

void lp_home_fini(struct lp_engine *e)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_session *s; (s = lp_slab_next(&e->sessions, &cursor, &id));)
        drop_jar(s);
    lp_slab_fini(&e->sessions);
    lp_map_fini(&e->session_by_key);
    lp_map_fini(&e->closed_by_key);
    free(e->closed_ring);
    e->closed_ring = NULL;
}

uint32_t lp_home_of(const struct lp_engine *e, struct lp_key key)
{
    return (uint32_t)(key.hi % e->count);
}

/* --- mail --- */

void lp_mail_send(struct lp_engine *e, uint32_t to, const struct lp_mail *mail)
{
    struct lp_mail stamped = *mail;
    stamped.from = e->number;
    if (to == e->number) {
        lp_home_mail(e, &stamped);
        return;
    }
    char room[sizeof stamped + LP_MAIL_TEXT_MAX];
    struct lp_span text = mail->text;
    LP_ASSERT(text.len <= LP_MAIL_TEXT_MAX);
    stamped.text = lp_span(NULL, text.len);
    memcpy(room, &stamped, sizeof stamped);
    if (text.len)
        memcpy(room + sizeof stamped, text.ptr, text.len);
    struct lp_action action = {.kind = LP_ACT_MAIL,
        .u.mail = {.to = to, .bytes = lp_span(room, sizeof stamped + text.len)}};
    e->shell->perform(e->shell->ctx, &action);
}

void lp_mail_receive(struct lp_engine *e, struct lp_span bytes)
{
    struct lp_mail mail;
    LP_ASSERT(bytes.len >= sizeof mail);
    memcpy(&mail, bytes.ptr, sizeof mail);
    mail.text = lp_span_from(bytes, sizeof mail);
    lp_home_mail(e, &mail);
}

void lp_mail_all(struct lp_engine *e, const struct lp_mail *mail)
{
    for (uint32_t i = 0; i < e->count; i++)
        lp_mail_send(e, i, mail);
}

/* --- the records --- */

static struct lp_replica *replica_of(struct lp_engine *e, const struct lp_mail *mail)
{
    return &e->servers[mail->server].fleet.replicas[mail->replica];
}

static struct lp_session *find(struct lp_engine *e, struct lp_key key)
{
    return lp_slab_get(&e->sessions, lp_map_get(&e->session_by_key, key));
}

static void count(struct lp_engine *e, uint32_t server, uint32_t replica, int32_t delta)
{
    struct lp_mail mail = {
        .kind = LP_MAIL_COUNT, .server = server, .replica = replica, .delta = delta};
    lp_mail_all(e, &mail);
}

static void forget(struct lp_engine *e, struct lp_session *s, enum lp_end why)
{
    if (!s->is_replaced)
        lp_metrics_end(&e->metrics, why);
    count(e, s->server, s->replica, -1);
    lp_list_remove(&s->lru);
    drop_jar(s);
    lp_slab_free(&e->sessions, lp_map_remove(&e->session_by_key, s->key));
}

static void touch(struct lp_engine *e, struct lp_session *s)
{
    s->used_us = e->mono_us;
    lp_list_remove(&s->lru);
    lp_list_push_back(&e->session_lru, &s->lru);
}

static void remember(struct lp_engine *e, const struct lp_mail *mail)
{
    lp_id id;
    if (find(e, mail->key))
        return;
    if (e->sessions.live_count == LP_SESSIONS_MAX)
        forget(e, LP_CONTAINER(e->session_lru.next, struct lp_session, lru), LP_END_LIMIT);
    struct lp_session *s = lp_slab_new(&e->sessions, &id);
    if (!s || lp_map_put(&e->session_by_key, mail->key, id)) {
        if (s)
            lp_slab_free(&e->sessions, id);
        return;
    }
    s->key = mail->key;
    s->server = mail->server;
    s->replica = mail->replica;
    s->incarnation = replica_of(e, mail)->incarnation;
    s->opened_us = mail->kind == LP_MAIL_OPENED ? e->mono_us : 0;
    lp_list_init(&s->lru);
    touch(e, s);
    count(e, s->server, s->replica, 1);
}

/* Lost by a replica which, as far as was seen, is the process that has given it out just now. */
static bool is_lost_fresh(struct lp_engine *e, const struct lp_session *s)
{
    enum { FRESH_US = 60 * 1000000 };
    const struct lp_replica *r = &e->servers[s->server].fleet.replicas[s->replica];
    return s->opened_us && e->mono_us - s->opened_us < FRESH_US && s->incarnation == r->incarnation;
}

static void on_ended(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_session *s = find(e, mail->key);
    if (!s)
        return; /* it was opened before a restart, or has ended already */
    if (mail->delta == LP_END_REPLACED) {
        if (!s->is_replaced)
            lp_metrics_end(&e->metrics, LP_END_REPLACED);
        s->is_replaced = true;
        return;
    }
    if (mail->delta == LP_END_LOST && is_lost_fresh(e, s)) {
        struct lp_mail fresh = {.kind = LP_MAIL_LOST_FRESH,
            .server = s->server,
            .replica = s->replica,
            .opened_us = s->opened_us};
        lp_mail_send(e, 0, &fresh);
    }
    forget(e, s, (enum lp_end)mail->delta);
}

/* Idle records go: what they count has most likely left. Their tickets still route. */
void lp_home_sweep(struct lp_engine *e)
{
    enum { AT_ONCE_MAX = 1024 };
    for (int i = 0; i < AT_ONCE_MAX && !lp_list_empty(&e->session_lru); i++) {
        struct lp_session *s = LP_CONTAINER(e->session_lru.next, struct lp_session, lru);
        if (e->mono_us - s->used_us < (uint64_t)LP_SESSION_IDLE_S * 1000000)
            return;
        forget(e, s, LP_END_IDLE);
    }
}

void lp_home_replica_gone(struct lp_engine *e, uint32_t server, uint32_t replica)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_session *s; (s = lp_slab_next(&e->sessions, &cursor, &id));)
        if (s->server == server && s->replica == replica)
            forget(e, s, LP_END_GONE);
}

/* --- from the exchanges of this engine --- */

void lp_home_opened(struct lp_engine *e, const struct lp_exchange *x, struct lp_key key)
{
    struct lp_mail mail = {
        .kind = LP_MAIL_OPENED, .key = key, .server = x->server->index, .replica = x->leg.replica};
    lp_mail_send(e, lp_home_of(e, key), &mail);
    lp_cookies_opened(e, x);
}

void lp_home_ended(struct lp_engine *e, struct lp_key key, enum lp_end why)
{
    struct lp_mail mail = {.kind = LP_MAIL_ENDED, .key = key, .delta = (int32_t)why};
    lp_mail_send(e, lp_home_of(e, key), &mail);
}

/* For a session at home here the record is touched; a foreign home hears of use now and then, since
 * idle time is counted in minutes. */
void lp_home_used(struct lp_engine *e, struct lp_key key)
{
    enum { TELL_ONE_IN = 64 };
    uint32_t home = lp_home_of(e, key);
    if (home == e->number) {
        struct lp_session *s = find(e, key);
        if (s)
            touch(e, s);
    } else if (lp_entropy_below(&e->entropy, TELL_ONE_IN) == 0) {
        struct lp_mail mail = {.kind = LP_MAIL_USED, .key = key};
        lp_mail_send(e, home, &mail);
    }
}

bool lp_home_is_closed(const struct lp_engine *e, struct lp_key key)
{
    return lp_map_get(&e->closed_by_key, key) != 0;
}

static void remember_closed(struct lp_engine *e, struct lp_key key)
{
    struct lp_key *cell = &e->closed_ring[e->closed_next++ % LP_CLOSED_MAX];
    if (cell->hi || cell->lo)
        lp_map_remove(&e->closed_by_key, *cell);
    *cell = key;
    if (lp_map_put(&e->closed_by_key, key, 1))
        *cell = (struct lp_key){0, 0}; /* no memory: the owner's word counts */
}

/* --- the one standalone stream of a session --- */

static void on_stream(struct lp_engine *e, const struct lp_mail *mail)
{
    remember(e, mail); /* if it was opened through another process, or before a restart */
    struct lp_session *s = find(e, mail->key);
    if (!s)
        return;
    s->stream_engine = mail->from;
    s->stream_exchange = mail->exchange;
}

static void on_unstream(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_session *s = find(e, mail->key);
    if (s && s->stream_engine == mail->from && s->stream_exchange == mail->exchange)
        s->stream_exchange = 0;
}

static void on_evict(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_session *s = find(e, mail->key);
    if (!s || !s->stream_exchange) {
        /* The replica may just not have noticed yet that an older one has gone. */
        struct lp_mail none = {.kind = LP_MAIL_YIELDED, .exchange = mail->exchange};
        lp_mail_send(e, mail->from, &none);
        return;
    }
    struct lp_mail yield = {.kind = LP_MAIL_YIELD,
        .exchange = s->stream_exchange,
        .other_engine = mail->from,
        .other_exchange = mail->exchange};
    s->stream_exchange = 0;
    lp_mail_send(e, s->stream_engine, &yield);
}

static void on_yield(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_exchange *x = lp_exchange_get(e, mail->exchange);
    if (x) {
        lp_metrics_add(&e->metrics, LP_METRIC_STREAMS_REPLACED, 1);
        lp_leg_close(e, x);
        lp_link_send_end(&e->links, x->down);
        x->down_open = false;
        lp_exchange_over(e, x, LP_REASON_replaced);
    }
    struct lp_mail yielded = {.kind = LP_MAIL_YIELDED, .exchange = mail->other_exchange};
    lp_mail_send(e, mail->other_engine, &yielded);
}

/* --- a session's cookies --- */

const struct lp_jar *lp_home_jar(struct lp_engine *e, struct lp_key key)
{
    const struct lp_session *s = find(e, key);
    return s ? s->jar : NULL;
}

/* Only puts and packs: which origin it is for matters to the engine that reads lines. */
static struct lp_jar *new_jar(void)
{
    const struct lp_uri nowhere = {.has_authority = false};
    struct lp_jar *jar = malloc(sizeof *jar);
    if (jar)
        lp_jar_init(jar, &nowhere, LP_JAR_SESSION_BYTES_MAX);
    return jar;
}

static void on_cookies(struct lp_engine *e, const struct lp_mail *mail)
{
    remember(e, mail); /* if it was opened through another process, or before a restart */
    struct lp_session *s = find(e, mail->key);
    if (!s || (s->jar && mail->kind == LP_MAIL_BASE_COOKIES))
        return;
    if (!s->jar)
        s->jar = new_jar();
    if (!s->jar || lp_jar_unpack(s->jar, mail->text, e->wall_ms))
        lp_engine_say(e, LP_LOG_ERROR, "out of memory: a cookie of a session was not kept");
}

static void on_ask_cookies(struct lp_engine *e, const struct lp_mail *mail)
{
    const struct lp_jar *jar = lp_home_jar(e, mail->key);
    struct lp_mail word = {.kind = LP_MAIL_COOKIES_ARE,
        .exchange = mail->exchange,
        .delta = jar != NULL,
        .text = jar ? lp_jar_packed(jar) : lp_span(NULL, 0)};
    lp_mail_send(e, mail->from, &word);
}

/* --- what everybody hears --- */

static void on_count(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_replica *r = replica_of(e, mail);
    if (mail->delta > 0 || r->sessions > 0)
        r->sessions += (uint32_t)mail->delta;
}

static void on_state(struct lp_engine *e, const struct lp_mail *mail)
{
    if (mail->from == e->number)
        return;
    replica_of(e, mail)->error = mail->error;
    if (lp_fleet_adopt(replica_of(e, mail), (enum lp_replica_state)mail->delta, e->mono_us)) {
        lp_replica_changed(e, mail->server, mail->replica);
        lp_check_timer(e, mail->server, mail->replica);
    }
}

static void on_learnt(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_server_state *server = &e->servers[mail->server];
    switch ((enum lp_learnt)mail->delta) {
    case LP_LEARNT_MINTS:
        server->mints_ids = LP_YES;
        break;
    case LP_LEARNT_MINTS_NOT:
        server->mints_ids = LP_NO;
        break;
    case LP_LEARNT_CHALLENGES:
        server->challenges = true;
        if (mail->text.len)
            memcpy(server->challenge, mail->text.ptr, mail->text.len);
        server->challenge_len = mail->text.len;
        break;
    case LP_LEARNT_CHALLENGES_NOT:
        server->challenges = false;
        break;
    }
}

void lp_home_mail(struct lp_engine *e, const struct lp_mail *mail)
{
    struct lp_session *s = NULL;
    struct lp_exchange *x = NULL;
    switch ((enum lp_mail_kind)mail->kind) {
    case LP_MAIL_OPENED:
        remember(e, mail);
        break;
    case LP_MAIL_ENDED:
        on_ended(e, mail);
        break;
    case LP_MAIL_LOST_FRESH:
        lp_losses_note(e, mail->server, mail->replica, mail->opened_us);
        break;
    case LP_MAIL_USED:
        s = find(e, mail->key);
        if (s)
            touch(e, s);
        break;
    case LP_MAIL_COUNT:
        on_count(e, mail);
        break;
    case LP_MAIL_CLOSED:
        remember_closed(e, mail->key);
        break;
    case LP_MAIL_STATE:
        on_state(e, mail);
        break;
    case LP_MAIL_LEARNT:
        on_learnt(e, mail);
        break;
    case LP_MAIL_STREAM:
        on_stream(e, mail);
        break;
    case LP_MAIL_UNSTREAM:
        on_unstream(e, mail);
        break;
    case LP_MAIL_EVICT:
        on_evict(e, mail);
        break;
    case LP_MAIL_YIELD:
        on_yield(e, mail);
        break;
    case LP_MAIL_YIELDED:
        x = lp_exchange_get(e, mail->exchange);
        if (x)
            lp_response_yielded(e, x, true);
        break;
    case LP_MAIL_ASK_COOKIES:
        on_ask_cookies(e, mail);
        break;
    case LP_MAIL_COOKIES_ARE:
        x = lp_exchange_get(e, mail->exchange);
        if (x && x->asks_home)
            lp_cookies_loaded(e, x, mail->delta, mail->text);
        break;
    case LP_MAIL_BASE_COOKIES:
    case LP_MAIL_COOKIES:
        on_cookies(e, mail);
        break;
    }
}
