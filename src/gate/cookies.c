/* The cookies that replicas set, kept for a session on behalf of clients that keep none
 * (requirements [C1] to [C6], [G3]; cases AFF-05, AFF-09, COO-04). Only for servers with
 * cookie_jar: for the others every function here leaves things as they are.
 *
 * What the answer to initialize set goes into the ticket, and so with the session wherever it is
 * served. What comes later, or is too long for a ticket, is with the session's home; another engine
 * asks it before it forwards. No Set-Cookie gets to the client. A jar belongs to one session, which
 * has one replica, so the replica's name does not matter for its scope, only the scheme does. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "mcp/jar.h"

enum { HOME_WAIT_US = 1000000 };

static bool has_jar(const struct lp_exchange *x)
{
    return x->server->conf->cookie_jar && x->door != LP_DOOR_PASS;
}

static struct lp_uri origin_of(bool is_tls)
{
    return (struct lp_uri){.scheme = is_tls ? LP_SPAN("https") : LP_SPAN("http"),
        .has_authority = true,
        .host = LP_SPAN("replica")};
}

/* --- towards the replica ---------------------------------------------------------------------- */

/* The client's own cookies, which may come in a few fields, as one value. */
static int join_own(const struct lp_exchange *x, struct lp_buf *own)
{
    int err = LP_OK;
    for (uint32_t i = 0; i < x->request.field_count && !err; i++) {
        if (x->request.fields[i].id != LP_FIELD_COOKIE)
            continue;
        if (own->len)
            err = lp_buf_append(own, LP_SPAN("; "));
        if (!err)
            err = lp_buf_append(own, x->request.fields[i].value);
    }
    return err;
}

int lp_cookies_use(struct lp_engine *e, struct lp_exchange *x, struct lp_span packed)
{
    struct lp_uri origin = origin_of(false);
    struct lp_jar jar;
    struct lp_buf own, out;
    lp_jar_init(&jar, &origin, LP_JAR_SESSION_BYTES_MAX);
    lp_buf_init(&own, LP_ARENA_MAX);
    lp_buf_init(&out, LP_ARENA_MAX);
    int err = lp_jar_unpack(&jar, packed, e->wall_ms);
    if (!err && jar.count)
        err = join_own(x, &own);
    if (!err && jar.count)
        err = lp_jar_write(&jar, &origin, e->wall_ms, lp_buf_span(&own), &out);
    if (!err && jar.count)
        err = lp_arena_dup(&x->arena, lp_buf_span(&out), &x->cookie);
    lp_jar_fini(&jar);
    lp_buf_release(&own);
    lp_buf_release(&out);
    return err;
}

static bool use_or_answer(struct lp_engine *e, struct lp_exchange *x, struct lp_span packed)
{
    x->knows_cookies = true;
    if (!lp_cookies_use(e, x, packed))
        return true;
    lp_answer(e, x, LP_REASON_out_of_memory, NULL);
    return false;
}

bool lp_cookies_load(struct lp_engine *e, struct lp_exchange *x)
{
    if (!has_jar(x) || x->knows_cookies)
        return true;
    uint32_t home = lp_home_of(e, x->ticket.key);
    if (home == e->number) {
        const struct lp_jar *jar = lp_home_jar(e, x->ticket.key);
        return use_or_answer(e, x, jar ? lp_jar_packed(jar) : x->ticket.cookies);
    }
    x->asks_home = true;
    lp_engine_arm(e, &x->timer, e->mono_us + HOME_WAIT_US);
    struct lp_mail mail = {.kind = LP_MAIL_ASK_COOKIES, .key = x->ticket.key, .exchange = x->id};
    lp_mail_send(e, home, &mail);
    return false;
}

void lp_cookies_loaded(
    struct lp_engine *e, struct lp_exchange *x, bool has_word, struct lp_span packed)
{
    x->asks_home = false;
    lp_heap_cancel(&e->timers, &x->timer);
    if (use_or_answer(e, x, has_word ? packed : x->ticket.cookies))
        lp_request_route(e, x);
}

/* --- from the replica ------------------------------------------------------------------------- */

/* At most one a second, but all of one answer. */
static void tell_dropped(struct lp_engine *e, const struct lp_exchange *x, struct lp_span name,
    enum lp_jar_verdict verdict)
{
    enum { TELL_US = 1000000 };
    struct lp_span server = x->server->conf->name;
    if (e->cookie_told_us && e->mono_us != e->cookie_told_us &&
        e->mono_us - e->cookie_told_us < TELL_US)
        return;
    e->cookie_told_us = e->mono_us;
    lp_engine_say(e, LP_LOG_WARN, "server %.*s: the cookie %.*s of replica %.*s %s",
        (int)server.len, server.ptr, (int)(name.len < 100 ? name.len : 100), name.ptr,
        (int)x->record.replica.len, x->record.replica.ptr, lp_jar_words(verdict));
}

/* What the Set-Cookie fields of an answer change, packed. */
static void read_changes(struct lp_engine *e, const struct lp_exchange *x,
    const struct lp_kept_head *from, struct lp_buf *changes)
{
    struct lp_uri origin = origin_of(lp_leg_replica(x)->conf->address.is_tls);
    struct lp_jar jar;
    lp_jar_init(&jar, &origin, LP_JAR_SESSION_BYTES_MAX);
    for (uint32_t i = 0; i < from->field_count; i++) {
        struct lp_jar_entry entry = {0};
        if (from->fields[i].id != LP_FIELD_SET_COOKIE)
            continue;
        enum lp_jar_verdict verdict =
            lp_jar_judge(&jar, &origin, from->fields[i].value, e->wall_ms, &entry);
        bool is_change = verdict == LP_JAR_STORED || verdict == LP_JAR_REMOVED;
        if (is_change && lp_jar_pack(changes, &entry))
            verdict = LP_JAR_NO_ROOM;
        if (verdict == LP_JAR_NO_ROOM || lp_jar_must_tell(verdict))
            tell_dropped(e, x, entry.name, verdict);
    }
    lp_jar_fini(&jar);
}

static void send_home(
    struct lp_engine *e, const struct lp_exchange *x, struct lp_span packed, bool as_base)
{
    if (!packed.len)
        return;
    struct lp_mail mail = {.kind = as_base ? LP_MAIL_BASE_COOKIES : LP_MAIL_COOKIES,
        .key = x->ticket.key,
        .server = x->server->index,
        .replica = x->leg.replica,
        .text = packed};
    lp_mail_send(e, lp_home_of(e, x->ticket.key), &mail);
}

/* A new session's: removals and repetitions leave only what counts. */
static void keep_for_ticket(struct lp_engine *e, struct lp_exchange *x, struct lp_span changes)
{
    struct lp_uri origin = origin_of(false);
    struct lp_jar jar;
    lp_jar_init(&jar, &origin, LP_JAR_SESSION_BYTES_MAX);
    x->cookies = lp_span(NULL, 0);
    if (lp_jar_unpack(&jar, changes, e->wall_ms) ||
        lp_arena_dup(&x->arena, lp_jar_packed(&jar), &x->cookies))
        lp_engine_say(e, LP_LOG_ERROR, "out of memory: the cookies of a new session were dropped");
    lp_jar_fini(&jar);
}

void lp_cookies_take(struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from)
{
    bool is_bound = x->verdict.kind == LP_VERDICT_FORWARD;
    bool is_ended = x->request.method == LP_METHOD_DELETE && from->status < 300;
    if (!has_jar(x) || x->is_made || (is_bound && is_ended))
        return;
    struct lp_buf changes;
    lp_buf_init(&changes, LP_JAR_SESSION_BYTES_MAX);
    read_changes(e, x, from, &changes);
    struct lp_span packed = lp_buf_span(&changes);
    if (is_bound && packed.len) {
        send_home(e, x, x->ticket.cookies, true);
        send_home(e, x, packed, false);
    } else if (packed.len && x->verdict.kind != LP_VERDICT_ANY) {
        keep_for_ticket(e, x, packed);
    }
    lp_buf_release(&changes);
}

void lp_cookies_opened(struct lp_engine *e, const struct lp_exchange *x)
{
    struct lp_span server = x->server->conf->name;
    if (!x->cookies.len)
        return;
    send_home(e, x, x->cookies, false);
    lp_engine_say(e, LP_LOG_WARN,
        "server %.*s: the cookies of a new session take %zu bytes, too many for its id; only this "
        "gateway has them, and a restart or another gateway will not",
        (int)server.len, server.ptr, x->cookies.len);
}

bool lp_cookies_is_hidden(const struct lp_exchange *x, enum lp_field_id id)
{
    return id == LP_FIELD_SET_COOKIE && has_jar(x);
}
