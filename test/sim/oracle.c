/* The oracle: what may reach a replica, what a client may see, and what must be left when all is
 * quiet (requirements [P7], [G6], [G8]). It knows what the replica models minted and for which
 * request, what they wrote, and when something was made to go wrong near them. It never asks how a
 * request was routed. */
#include <stdio.h>
#include <stdlib.h>

#include "gate/engine_priv.h"
#include "sim.h"

enum { UNSEEN_US = 6000000, TROUBLE_US = 1000000, CLOSED_SEEN_US = 6000000 };

void sim_trouble(struct sim *w, uint32_t replica)
{
    w->replicas[replica].trouble_us = w->now_us;
}

void sim_unseen(struct sim *w, uint32_t replica)
{
    w->replicas[replica].unseen_us = w->now_us;
    w->any_fail_us = w->now_us;
}

/* Memory runs out now and then: any request may be refused or cut, but nothing may go astray. */
static bool is_poor(const struct sim *w)
{
    return w->plan.no_memory_in;
}

static bool is_recent(uint64_t what_us, const struct sim_request *r, uint64_t before_us)
{
    return what_us && what_us + before_us >= r->begun_us;
}

/* --- at the replicas --- */

static void check_made_delete(struct sim *w, uint32_t replica, struct lp_span id)
{
    for (uint32_t i = 1; i < w->session_count; i++)
        if (w->sessions[i].replica == replica && (!w->sessions[i].usable || is_poor(w)) &&
            lp_span_eq(lp_span_str(w->sessions[i].id), id))
            return;
    sim_fail(w, "r%u gets a request that nobody made", replica);
}

static void check_bound(struct sim *w, uint32_t number, uint32_t replica, struct lp_span id)
{
    const struct sim_request *r = &w->requests[number];
    const struct sim_session *s = sim_session_of(w, r);
    if (s->replica != replica)
        sim_fail(w, "#%u of session %u reaches r%u, its owner is r%u", number, r->session, replica,
            s->replica);
    else if (!s->is_sse && !id.ptr)
        sim_fail(w, "#%u reaches r%u without its session id", number, replica);
    else if (id.ptr && !lp_span_eq(id, lp_span_str(s->id)))
        sim_fail(w, "#%u reaches r%u with another session's id", number, replica);
    bool is_dead = !is_poor(w) && s->is_sse && s->closed_us && s->closed_gateway == r->gateway &&
        s->closed_epoch == r->epoch && s->closed_us + CLOSED_SEEN_US < r->begun_us;
    if (is_dead)
        sim_fail(
            w, "#%u reaches r%u on the token of a stream that was seen to close", number, replica);
}

void sim_oracle_reached(struct sim *w, uint32_t number, uint32_t replica, struct lp_span id)
{
    if (!number) {
        check_made_delete(w, replica, id);
        return;
    }
    struct sim_request *r = &w->requests[number];
    r->replica = (int32_t)replica;
    r->incarnation = w->replicas[replica].incarnation;
    sim_say(w, "#%u %s reaches r%u", number, sim_kind_name(r->kind), replica);
    if (r->session > 0) {
        bool is_others = w->plan.is_sidecars && r->gateway != replica;
        w->cover->verdicts[is_others ? LP_VERDICT_FORWARD_PEER : LP_VERDICT_FORWARD]++;
        check_bound(w, number, replica, id);
        if (!r->accepts_any && r->want)
            sim_fail(w, "#%u, a bad request, reaches r%u", number, replica);
        return;
    }
    if (r->want)
        sim_fail(w, "#%u, a bad request, reaches r%u", number, replica);
    if (id.ptr)
        sim_fail(w, "#%u, of no session, reaches r%u with a session id", number, replica);
    bool opens = r->kind == SIM_KIND_initialize || r->kind == SIM_KIND_initialize_stale;
    w->cover->verdicts[opens               ? LP_VERDICT_NEW_SESSION
            : r->kind == SIM_KIND_sse_open ? LP_VERDICT_NEW_STREAM
                                           : LP_VERDICT_ANY]++;
}

void sim_oracle_runs(struct sim *w, uint32_t number, struct lp_span body)
{
    struct sim_request *r = &w->requests[number];
    r->runs++;
    if (r->runs > 1 && !r->may_repeat)
        sim_fail(w, "#%u, a %s, is carried out twice", number, sim_kind_name(r->kind));
    if (body.len != r->body_bytes || sim_sum(body) != r->body_sum)
        sim_fail(w, "#%u: the body of %zu bytes is another one at r%d (%zu)", number, r->body_bytes,
            r->replica, body.len);
}

/* --- what a client may see --- */

void sim_oracle_sees(struct sim *w, struct lp_span bytes)
{
    if (w->plan.owner_ids)
        return;
    size_t at = sim_search(bytes, LP_SPAN(SIM_ID_MARK));
    if (at == bytes.len)
        return;
    size_t from = at > 60 ? at - 60 : 0;
    char around[121] = "";
    for (size_t i = 0; i < sizeof around - 1 && from + i < bytes.len; i++)
        around[i] = (char)(bytes.ptr[from + i] < ' ' ? '.' : bytes.ptr[from + i]);
    sim_fail(w, "a client sees a session id of a replica: %s", around);
}

static bool gateway_had_trouble(const struct sim *w, const struct sim_request *r)
{
    const struct sim_gateway *g = &w->gateways[r->gateway];
    return g->epoch != r->epoch || g->is_stopping || !g->engines[0].engine;
}

static bool replica_had_trouble(const struct sim *w, const struct sim_request *r)
{
    if (r->in_trouble)
        return true;
    for (uint32_t i = 0; i < w->plan.replicas; i++) {
        bool is_it = r->replica < 0 || r->replica == (int32_t)i;
        if (is_it && is_recent(w->replicas[i].trouble_us, r, TROUBLE_US))
            return true;
    }
    return false;
}

/* The sidecar of that replica. */
static bool is_away(const struct sim *w, uint32_t replica)
{
    return !sim_gateway_is_up(w, replica) || w->gateways[replica].is_stopping;
}

/* A sidecar that has just started, or whose looks fail, does not know whom it does not know. */
static bool is_unsettled(const struct sim *w, const struct sim_request *r)
{
    return w->plan.peers != SIM_LISTED && r->session > 0 &&
        (is_recent(w->gateways[r->gateway].start_us, r, UNSEEN_US) ||
            is_recent(w->look_us, r, UNSEEN_US));
}

/* Whether a replica that the request needs could not be reached lately. */
static bool was_unseen(struct sim *w, const struct sim_request *r)
{
    const struct sim_session *s = sim_session_of(w, r);
    if (s && w->plan.is_sidecars && is_away(w, s->replica))
        return true;
    return is_recent(s ? w->replicas[s->replica].unseen_us : w->any_fail_us, r, UNSEEN_US);
}

static bool is_removed(const struct sim *w, const struct sim_request *r, uint32_t replica)
{
    const struct lp_conf_server *server = &w->gateways[r->gateway].servers[r->server];
    for (uint32_t i = 0; i < server->replica_count; i++)
        if (lp_span_eq(server->replicas[i].name, lp_span_str(w->replicas[replica].name)))
            return false;
    return true;
}

void sim_oracle_sent(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    const struct sim_session *s = sim_session_of(w, r);
    /* Its gateway may have another list by the time the answer is read. */
    if (s && is_removed(w, r, s->replica))
        r->may_404 = true;
}

static bool may_be_lost(struct sim *w, const struct sim_request *r)
{
    const struct sim_session *s = sim_session_of(w, r);
    if (!s)
        return false;
    return s->ended || s->closed_us || r->may_404 || r->wrote_lost || was_unseen(w, r) ||
        s->incarnation != w->replicas[s->replica].incarnation || is_removed(w, r, s->replica);
}

static bool holds(const struct lp_buf *buf, const char *text)
{
    struct lp_span all = lp_buf_span(buf);
    return sim_search(all, lp_span_str(text)) < all.len;
}

/* An error of the gateway's own must carry the id of the request. */
static void check_echo(struct sim *w, uint32_t number)
{
    const struct sim_request *r = &w->requests[number];
    char wanted[40];
    if (r->is_plain_agent && r->status == 404)
        return;
    if (r->status == 503 && gateway_had_trouble(w, r))
        return; /* a stop may come before the id */
    snprintf(wanted, sizeof wanted, "\"id\":%s,", r->has_id ? r->id : "null");
    if (r->body_bytes && !r->want && !holds(&r->got, wanted))
        sim_fail(w, "#%u: an error without the request's id %s: %.*s", number, r->id,
            (int)r->got.len, lp_buf_span(&r->got).ptr);
}

/* --- answers of the gateway's own --- */

static bool is_allowed_error(struct sim *w, const struct sim_request *r)
{
    switch (r->status) {
    case 200:
        return r->has_id && holds(&r->got, "-32603") && replica_had_trouble(w, r);
    case 400:
        return r->session <= 0 && (r->kind == SIM_KIND_no_id || r->kind == SIM_KIND_no_id_get) &&
            w->plan.mints && holds(&r->got, "-32000");
    case 401:
        return w->plan.challenges && !r->has_auth;
    case 403: /* a mark that was signed before the clock jumped */
        return w->plan.is_sidecars && is_recent(w->jump_us, r, TROUBLE_US);
    case 404:
        return may_be_lost(w, r);
    case 408: /* said by the replica to a connection that was idle, and taken for an answer */
        return !r->got.len && replica_had_trouble(w, r);
    case 502:
        return replica_had_trouble(w, r) || r->runs;
    case 503:
        return was_unseen(w, r) || gateway_had_trouble(w, r) || is_unsettled(w, r) ||
            is_recent(w->room_us, r, TROUBLE_US) ||
            (r->session <= 0 && is_recent(w->any_fail_us, r, UNSEEN_US));
    case 504:
        return replica_had_trouble(w, r);
    default:
        return false;
    }
}

static void check_own_answer(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    if (is_poor(w)) {
        if (r->got_ticket[0])
            sim_fail(w, "#%u gets a session id with an error", number);
        return;
    }
    if (!is_allowed_error(w, r)) {
        sim_fail(w, "#%u %s gets %u, and there is no reason for it: %.*s", number,
            sim_kind_name(r->kind), r->status, (int)(r->got.len < 300 ? r->got.len : 300),
            r->got.len ? lp_buf_span(&r->got).ptr : "");
        return;
    }
    if (r->got.len && r->status != 401)
        check_echo(w, number);
    if (r->got_ticket[0])
        sim_fail(w, "#%u gets a session id with an error", number);
}

/* --- event streams --- */

static const struct lp_span COMMENT = {": limpet\n\n", 10};

/* Whether what came before `at` ends with an empty line, or is nothing. */
static bool is_border(struct lp_span got, size_t at)
{
    static const struct lp_span ENDS[] = {
        {"\n\n", 2}, {"\r\r", 2}, {"\r\n\r\n", 4}, {"\r\n\r", 3}, {"\n\r", 2}};
    if (!at)
        return true;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (lp_span_ends(lp_span(got.ptr, at), ENDS[i]))
            return true;
    return false;
}

/* The stream without our comments; they may only stand between events. */
static void strip(struct sim *w, uint32_t number, struct lp_buf *out)
{
    struct sim_request *r = &w->requests[number];
    struct lp_span got = lp_buf_span(&r->got);
    size_t from = 0;
    for (;;) {
        struct lp_span left = lp_span_from(got, from);
        size_t at = sim_search(left, COMMENT);
        int err = lp_buf_append(out, lp_span(left.ptr, at));
        LP_ASSERT(!err);
        if (at == left.len)
            return;
        if (!is_border(got, from + at)) {
            sim_fail(w, "#%u: a comment inside an event", number);
            return;
        }
        from += at + COMMENT.len;
    }
}

static struct lp_span skip_endpoint(struct lp_span stripped)
{
    if (lp_span_starts(LP_SPAN("event: endpoint\n"), stripped))
        return lp_span("", 0); /* cut in its middle */
    if (!lp_span_starts(stripped, LP_SPAN("event: endpoint\n")))
        return stripped;
    size_t end = sim_search(stripped, LP_SPAN("\n\n")); /* an id may come with it */
    return end == stripped.len ? lp_span("", 0) : lp_span_from(stripped, end + 2);
}

/* How the event begins by which a gateway says that a call is dead. */
static struct lp_span dead_event(const struct sim_request *r, char room[120])
{
    int n = snprintf(room, 120,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,", r->id);
    return lp_span(room, (size_t)n);
}

static bool take_dead_event(const struct sim_request *r, struct lp_span *seen)
{
    char room[120];
    size_t at = sim_search(*seen, dead_event(r, room));
    if (!r->has_id || at == seen->len)
        return false;
    seen->len = at;
    return true;
}

static bool is_standing(const struct sim_request *r)
{
    return r->kind == SIM_KIND_get_stream || r->kind == SIM_KIND_resume ||
        r->kind == SIM_KIND_sse_open || r->kind == SIM_KIND_no_id_get;
}

/* Bodies that end with their connection, and a process at either end of it that was killed. */
static bool may_look_whole(const struct sim *w, const struct sim_request *r)
{
    return (r->wrote_until_close && replica_had_trouble(w, r)) ||
        (r->http10 && gateway_had_trouble(w, r));
}

static bool begins(struct lp_span wrote, struct lp_span seen)
{
    return seen.len <= wrote.len && (!seen.len || memcmp(seen.ptr, wrote.ptr, seen.len) == 0);
}

/* A stream that was cut may end within what the gateway put in. */
static void drop_half(struct lp_span *seen, struct lp_span wrote, struct lp_span whole)
{
    for (size_t n = whole.len - 1; n && !begins(wrote, *seen); n--) {
        struct lp_span shorter = lp_span(seen->ptr, seen->len > n ? seen->len - n : 0);
        if (lp_span_ends(*seen, lp_span(whole.ptr, n)) && begins(wrote, shorter))
            *seen = shorter;
    }
}

static void check_events(struct sim *w, uint32_t number, struct lp_span seen)
{
    const struct sim_request *r = &w->requests[number];
    struct lp_span wrote = lp_buf_span(&r->wrote);
    bool is_dead = take_dead_event(r, &seen);
    char room[120];
    if (r->outcome != SIM_ANSWERED)
        drop_half(&seen, wrote, COMMENT);
    if (r->outcome != SIM_ANSWERED && r->has_id && replica_had_trouble(w, r))
        drop_half(&seen, wrote, dead_event(r, room));
    if (!begins(wrote, seen))
        sim_fail(w, "#%u: the events are not those that its replica wrote", number);
    if (is_dead && !replica_had_trouble(w, r) && !is_poor(w))
        sim_fail(w, "#%u is told that its call is dead, and it is not", number);
    bool is_whole = r->wrote_all && seen.len >= wrote.len;
    bool may_stop = is_dead || is_standing(r) || may_look_whole(w, r);
    if (r->outcome == SIM_ANSWERED && !is_whole && !may_stop)
        sim_fail(w, "#%u: a stream that was broken off looks whole", number);
}

static void check_stream(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    struct lp_buf stripped;
    lp_buf_init(&stripped, SIM_BUF_MAX);
    strip(w, number, &stripped);
    struct lp_span seen = lp_buf_span(&stripped);
    if (lp_span_starts(seen, LP_SPAN("\xEF\xBB\xBF")))
        seen = lp_span_from(seen, 3);
    else if (seen.len < 3 && lp_span_starts(LP_SPAN("\xEF\xBB\xBF"), seen))
        seen.len = 0;
    check_events(w, number, r->kind == SIM_KIND_sse_open ? skip_endpoint(seen) : seen);
    lp_buf_release(&stripped);
}

/* --- answers passed on --- */

static void check_ticket(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    struct sim_session *s = sim_session_of(w, r);
    bool is_opening = r->kind == SIM_KIND_initialize || r->kind == SIM_KIND_initialize_stale;
    if (r->kind == SIM_KIND_sse_open)
        return;
    if (is_opening && r->status == 200) {
        const char *prefix = w->plan.owner_ids ? w->replicas[r->gateway].name : LP_TICKET_PREFIX;
        bool has_one = strncmp(r->got_ticket, prefix, strlen(prefix)) == 0;
        if (has_one != w->plan.mints)
            sim_fail(w, "#%u opened a session, and the client holds \"%s\"", number, r->got_ticket);
        return;
    }
    if (r->got_ticket[0] && (!s || strcmp(s->ticket, r->got_ticket) != 0))
        sim_fail(w, "#%u shows a session id that is not the client's own", number);
}

static bool is_relayed(const struct sim_request *r)
{
    if (r->replica < 0 || r->status != r->wrote_status)
        return false;
    return r->got_sse == r->wrote_sse &&
        (r->wrote_sse || lp_span_eq(lp_buf_span(&r->got), lp_buf_span(&r->wrote)));
}

/* A second stream of a session is refused only when the older one is out of this process's hands.
 */
static void check_409(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    struct sim_session *s = sim_session_of(w, r);
    enum { SETTLED_US = 1500000 };
    if (!s || w->plan.mail_us > 100000 || w->plan.slow_readers || gateway_had_trouble(w, r) ||
        is_poor(w))
        return;
    for (uint32_t i = 1; i < number; i++) {
        struct sim_request *old = &w->requests[i];
        bool is_it = old->session == r->session && old->kind == SIM_KIND_get_stream &&
            old->outcome == SIM_OPEN && old->has_head && old->gateway == r->gateway &&
            old->epoch == r->epoch && s->stream == i;
        bool is_old = old->head_us + SETTLED_US < r->begun_us &&
            w->replicas[s->replica].unseen_us < old->begun_us;
        if (is_it && is_old && r->runs > 0)
            sim_fail(
                w, "#%u gets 409 while its gateway holds the older stream #%u open", number, i);
    }
}

static void check_answer(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    w->cover->answered++;
    bool is_killed = r->http10 && gateway_had_trouble(w, r); /* looks whole to HTTP/1.0 */
    if (r->accepts_any || is_killed)
        return;
    if (r->want) {
        bool is_challenge = r->status == 401 && w->plan.challenges && !r->has_auth;
        bool is_new = r->kind == SIM_KIND_bad_ticket && w->plan.peers != SIM_LISTED;
        bool is_stop = r->status == 503 && (gateway_had_trouble(w, r) || is_new);
        if (r->status != r->want && !is_challenge && !is_stop && !is_poor(w))
            sim_fail(w, "#%u gets %u instead of %u: %.*s", number, r->status, r->want,
                (int)r->got.len, r->got.len ? lp_buf_span(&r->got).ptr : "");
        else
            w->cover->verdicts[LP_VERDICT_ANSWER]++;
        return;
    }
    if (r->wrote_sse && r->got_sse) {
        check_stream(w, number);
        check_ticket(w, number);
        return;
    }
    if (!is_relayed(r)) {
        check_own_answer(w, number);
        return;
    }
    if (!r->wrote_all && !may_look_whole(w, r))
        sim_fail(w, "#%u: an answer that was broken off looks whole", number);
    check_ticket(w, number);
    if (r->status == 409)
        check_409(w, number);
}

/* A stop that was asked for, not a death: who had been kept until then, and asks soon enough for
 * the slowest network to bring it, is answered. */
static bool should_survive_stop(const struct sim *w, const struct sim_request *r)
{
    enum { SOON_US = 500000 };
    const struct sim_gateway *g = &w->gateways[r->gateway];
    bool is_alive = g->epoch == r->epoch && g->is_stopping && g->engines[0].engine;
    return is_alive && r->is_kept && r->begun_us < g->stop_us + SOON_US &&
        w->now_us < g->stop_us + g->conf.stop_ms * 1000;
}

/* What ended early must have had a reason to, and before the head only two. */
static void check_cut(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    w->cover->cut++;
    if (r->may_cut || r->accepts_any || is_poor(w))
        return;
    if (!r->has_head && should_survive_stop(w, r))
        sim_fail(w, "#%u %s crossed a stop and got no answer", number, sim_kind_name(r->kind));
    if (gateway_had_trouble(w, r))
        return;
    if (!r->runs && !r->has_head && w->plan.conn_max < SIM_CLIENTS_MAX) {
        sim_count(w, SIM_FAULT_too_many_clients);
        return;
    }
    /* To HTTP/1.0 a broken answer is a reset, and that may overtake its head. */
    if (!r->has_head && !(r->http10 && replica_had_trouble(w, r)))
        sim_fail(w, "#%u %s is cut off without any answer", number, sim_kind_name(r->kind));
    else if (!replica_had_trouble(w, r))
        sim_fail(
            w, "#%u %s is cut off, and there is no reason for it", number, sim_kind_name(r->kind));
}

static void note_closed_streams(struct sim *w, uint32_t number)
{
    const struct sim_request *r = &w->requests[number];
    for (uint32_t i = 1; i < w->session_count; i++) {
        struct sim_session *s = &w->sessions[i];
        if (!s->is_sse || s->request != number)
            continue;
        s->closed_us = w->now_us;
        s->closed_gateway = r->gateway;
        s->closed_epoch = r->epoch;
    }
}

void sim_oracle_ended(struct sim *w, uint32_t number)
{
    struct sim_request *r = &w->requests[number];
    static const char *const HOW[] = {"is open", "is answered", "is cut", "was left"};
    sim_say(w, "#%u %s: %u, %zu bytes", number, HOW[r->outcome], r->status, r->got.len);
    sim_oracle_sees(w, lp_buf_span(&r->got));
    if (r->kind == SIM_KIND_sse_open)
        note_closed_streams(w, number);
    if (r->outcome == SIM_ANSWERED)
        check_answer(w, number);
    else if (r->outcome == SIM_CUT)
        check_cut(w, number);
    if (r->outcome != SIM_ANSWERED && r->got_sse && r->wrote_sse)
        check_stream(w, number);
    lp_buf_release(&r->text);
    lp_buf_release(&r->got);
}

/* --- when all is quiet --- */

void sim_oracle_collect(struct sim *w, const struct sim_engine *engine)
{
    for (uint32_t i = 0; i < LP_REASON_count; i++)
        w->cover->reasons[i] += engine->engine->metrics.reasons[i];
}

static uint64_t ended_exchanges(const struct lp_engine *e)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LP_REASON_count; i++)
        sum += e->metrics.reasons[i];
    return sum;
}

/* What still goes on when nothing should: the first thing to know of it. */
static void tell_open(struct sim *w, const struct lp_engine *e)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_exchange *x; (x = lp_slab_next(&e->exchanges, &cursor, &id));)
        sim_say(w,
            "open since %llu us: phase %d, client %d (begun %d, left %d, blocked %d), leg %d",
            (unsigned long long)x->begun_us, x->phase, x->down_open, x->down_begun, x->client_left,
            x->down_blocked, x->leg.open);
}

static void check_counters(struct sim *w, const struct sim_engine *s)
{
    const struct lp_engine *e = s->engine;
    tell_open(w, e);
    const uint64_t *cells = e->metrics.cells;
    uint64_t ended = ended_exchanges(e);
    if (cells[LP_METRIC_REQUESTS] != ended || cells[LP_METRIC_REQUESTS_OPEN] ||
        (s->lines != (e->conf->access_log ? ended : 0) && !is_poor(w)))
        sim_fail(w, "g%u/%u: %llu requests, %llu reasons, %llu lines, %llu open", s->gateway,
            s->number, (unsigned long long)cells[LP_METRIC_REQUESTS], (unsigned long long)ended,
            (unsigned long long)s->lines, (unsigned long long)cells[LP_METRIC_REQUESTS_OPEN]);
    if (cells[LP_METRIC_STREAMS_OPEN])
        sim_fail(w, "g%u/%u: %lld streams open when all have ended", s->gateway, s->number,
            (long long)cells[LP_METRIC_STREAMS_OPEN]);
}

static uint32_t kept_connections(const struct lp_engine *e)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->conf->server_count; i++) {
        for (uint32_t r = 0; r < e->servers[i].fleet.count; r++) {
            const struct lp_replica *replica = &e->servers[i].fleet.replicas[r];
            count += lp_slab_get(&e->links.slab, replica->check_link) != NULL;
            count += replica->found && lp_slab_get(&e->links.slab, replica->found->question);
            for (uint32_t k = 0; k < replica->pooled_count; k++)
                count += lp_link_is_idle(&e->links, replica->pooled[k].link);
        }
    }
    return count;
}

static void check_leftovers(struct sim *w, const struct sim_engine *s)
{
    const struct lp_engine *e = s->engine;
    if (e->exchanges.live_count)
        sim_fail(w, "g%u/%u holds %u exchanges when all have ended", s->gateway, s->number,
            e->exchanges.live_count);
    uint32_t others = e->links.slab.live_count - e->links.client_count;
    if (others != kept_connections(e))
        sim_fail(w, "g%u/%u holds %u connections to replicas, of which %u are kept ones",
            s->gateway, s->number, others, kept_connections(e));
    if (e->sessions.live_count > w->session_count)
        sim_fail(w, "g%u/%u knows more sessions than there are", s->gateway, s->number);
}

static uint32_t sessions_at_home(const struct sim_gateway *g, uint32_t server, uint32_t replica)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->engine_count; i++) {
        uint32_t cursor = 0;
        lp_id id;
        const struct lp_slab *slab = &g->engines[i].engine->sessions;
        for (struct lp_session *s; (s = lp_slab_next(slab, &cursor, &id));)
            count += s->server == server && s->replica == replica;
    }
    return count;
}

/* Every engine counts the sessions of a replica as their homes do. */
static void check_balance(struct sim *w, const struct sim_gateway *g, const struct sim_engine *s)
{
    for (uint32_t i = 0; i < w->plan.servers; i++) {
        const struct lp_fleet *fleet = &s->engine->servers[i].fleet;
        for (uint32_t r = 0; r < fleet->count; r++) {
            if (fleet->replicas[r].opening)
                sim_fail(w, "g%u/%u: replica %u has sessions that open forever", s->gateway,
                    s->number, r);
            uint32_t at_home = sessions_at_home(g, i, r);
            if (fleet->replicas[r].sessions != at_home)
                sim_fail(w, "g%u/%u counts %u sessions at replica %u of server %u, their homes %u",
                    s->gateway, s->number, fleet->replicas[r].sessions, r, i, at_home);
        }
    }
}

/* A sidecar that was away when the faults ended stays so. */
static bool has_dead_peer(const struct sim *w)
{
    bool has_one = false;
    for (uint32_t i = 0; i < w->plan.gateways && w->plan.is_sidecars; i++)
        has_one |= is_away(w, i);
    return has_one;
}

/* All replicas have been reachable for a while: every engine must have noticed. */
static void check_view(struct sim *w, const struct sim_engine *s)
{
    struct lp_metrics_replica rows[3];
    const struct lp_engine *e = s->engine;
    uint32_t count = lp_engine_replicas(e, rows, 3);
    bool is_up = true;
    for (uint32_t i = 0; i < count && i < 3 && !has_dead_peer(w); i++)
        is_up &= lp_span_eq(rows[i].state, LP_SPAN("up"));
    bool should_be = !w->gateways[s->gateway].is_stopping;
    if (should_be && !is_poor(w) && (!is_up || !lp_engine_is_ready(e)))
        sim_fail(w, "g%u/%u does not know that all replicas are up again", s->gateway, s->number);
    if (!should_be && lp_engine_is_ready(e))
        sim_fail(w, "g%u/%u takes new work while it stops", s->gateway, s->number);
}

void sim_oracle_settled(struct sim *w)
{
    for (uint32_t i = 1; i < w->request_count; i++)
        if (w->requests[i].outcome == SIM_OPEN)
            sim_fail(w, "#%u %s of client %u never got an answer", i,
                sim_kind_name(w->requests[i].kind), w->requests[i].client);
    for (uint32_t i = 0; i < w->plan.gateways; i++) {
        const struct sim_gateway *g = &w->gateways[i];
        for (uint32_t k = 0; k < g->engine_count && g->engines[k].engine; k++) {
            check_view(w, &g->engines[k]);
            check_counters(w, &g->engines[k]);
            check_leftovers(w, &g->engines[k]);
            check_balance(w, g, &g->engines[k]);
        }
    }
}

/* Half an hour without a request: homes forget, though tickets would still route. */
void sim_oracle_rested(struct sim *w)
{
    for (uint32_t i = 0; i < w->plan.gateways; i++) {
        const struct sim_gateway *g = &w->gateways[i];
        for (uint32_t k = 0; k < g->engine_count && g->engines[k].engine; k++)
            if (g->engines[k].engine->sessions.live_count && !is_poor(w))
                sim_fail(w, "g%u/%u remembers %u sessions that nobody uses", i, k,
                    g->engines[k].engine->sessions.live_count);
    }
    sim_oracle_settled(w);
}

void sim_oracle_stopped(struct sim *w)
{
    for (uint32_t i = 0; i < w->plan.gateways; i++) {
        const struct sim_gateway *g = &w->gateways[i];
        for (uint32_t k = 0; k < g->engine_count && g->engines[k].engine; k++)
            if (!g->engines[k].stopped)
                sim_fail(w, "g%u/%u never stopped", i, k);
    }
}
