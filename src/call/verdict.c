/* The rules of the verdict, one small function for each situation (call/verdict.h).
 *
 * A rule sees the notes and the sums over them, never another rule's answer; precedence is the
 * order of LP_SITUATIONS. Limits are chosen so that a healthy fleet of which one answer in a
 * hundred is a 5xx is called healthy in more than 199 of 200 probes (test_verdict proves it). */
#include "call/verdict.h"

#include "base/error.h"

enum {
    CALLS_MIN = 5,     /* fewer judge nothing */
    FAULTS_MIN = 3,    /* fewer are never a dead server */
    OPENINGS_MAX = 90, /* after so many no more are wanted */
    ROWS_ENOUGH = 70,  /* as many rows without a hit need no more rows */
    HELD_BACK_MS = 150,
};
static const double FAULTS_BY_CHANCE = 0.02; /* a share of faults that no verdict hangs on */
static const double FAULTS_BEYOND = 1e-4;
static const double LOST_SOMETIMES = 0.10; /* below this share of misses it is no balancer */
static const double TROUBLE = 0.8;

/* Sums that more than one rule needs. */
struct sums {
    const struct lp_seen *seen;
    struct lp_rate fresh, kept, cookie, elsewhere;
    struct lp_pure_rows pure;
    uint32_t rotation;
};

static struct sums sum_up(const struct lp_seen *seen)
{
    return (struct sums){.seen = seen,
        .fresh = lp_rate_of(seen, LP_ARM_FRESH, false),
        .kept = lp_rate_of(seen, LP_ARM_KEPT, false),
        .cookie = lp_rate_of(seen, LP_ARM_COOKIE, false),
        .elsewhere = lp_rate_of(seen, LP_ARM_ELSEWHERE, false),
        .pure = lp_pure_rows_of(seen, LP_ARM_FRESH),
        .rotation = lp_rotation_of(seen)};
}

static double missed(struct lp_rate rate)
{
    return rate.ok + rate.lost ? (double)rate.lost / (rate.ok + rate.lost) : 0;
}

/* Enough answers, and next to none of them a miss. */
static bool is_clean(struct lp_rate rate)
{
    return rate.ok >= CALLS_MIN && missed(rate) < 0.02;
}

static bool is_lossy(struct lp_rate rate)
{
    return rate.ok + rate.lost >= CALLS_MIN && missed(rate) >= LOST_SOMETIMES;
}

static bool is_beyond_chance(uint32_t faults, uint32_t asked)
{
    return faults >= FAULTS_MIN && lp_share_tail(faults, asked, FAULTS_BY_CHANCE) < FAULTS_BEYOND;
}

/* --- the endpoint --- */

static bool holds_no_answer(const struct sums *s)
{
    const struct lp_seen *seen = s->seen;
    return !seen->is_open && !seen->opening.status && !seen->discover.status &&
        (seen->opening.is_connected || seen->discover.is_connected);
}

static bool holds_unreachable(const struct sums *s)
{
    return !s->seen->is_open && !s->seen->opening.status && !s->seen->discover.status &&
        !holds_no_answer(s);
}

/* 501 is the word of a web server that knows no POST. */
static bool is_trouble(uint16_t status)
{
    return status == 429 || (status >= 500 && status != 501);
}

static bool holds_web_page(const struct sums *s)
{
    const struct lp_seen_answer *opening = &s->seen->opening;
    return !s->seen->is_open && opening->media == LP_MEDIA_HTML && !is_trouble(opening->status) &&
        opening->status != 401 && opening->status != 403;
}

static bool holds_login(const struct sums *s)
{
    uint16_t status = s->seen->opening.status;
    return !s->seen->is_open && (status == 401 || status == 407);
}

static bool holds_login_mismatch(const struct sums *s)
{
    return holds_login(s) && s->seen->has_login_mismatch;
}

static bool holds_refused(const struct sums *s)
{
    return !s->seen->is_open && s->seen->opening.status == 403;
}

static bool holds_no_endpoint(const struct sums *s)
{
    uint16_t status = s->seen->opening.status;
    return !s->seen->is_open && status && !is_trouble(status);
}

static bool holds_trouble(const struct sums *s)
{
    uint32_t n = s->fresh.ok + s->fresh.lost + s->fresh.faults;
    bool is_mostly_faults = n && (double)s->fresh.faults / n > TROUBLE;
    return !s->seen->is_open || is_mostly_faults;
}

/* --- sessions --- */

static bool is_stateless(const struct lp_seen *seen)
{
    return seen->is_open && !seen->is_old_sse && (seen->is_modern || !seen->mints_ids);
}

static bool has_sessions(const struct lp_seen *seen)
{
    return seen->is_open && !is_stateless(seen);
}

static bool holds_id_lost_outward(const struct sums *s)
{
    return is_stateless(s->seen) && is_lossy(s->fresh);
}

static bool nothing_found(const struct sums *s)
{
    return has_sessions(s->seen) && s->fresh.lost >= CALLS_MIN && !s->fresh.ok && !s->kept.ok &&
        !s->cookie.ok;
}

/* The server says "no id" where an id was sent, and has another word for an unknown one. */
static bool holds_id_lost_inward(const struct sums *s)
{
    const struct lp_seen *seen = s->seen;
    bool is_told_missing = lp_seen_same(&seen->lost, &seen->missing);
    bool unknown_is_missing = lp_seen_same(&seen->unknown, &seen->missing);
    return nothing_found(s) && s->kept.lost >= CALLS_MIN && is_told_missing && unknown_is_missing;
}

static bool holds_session_hash(const struct sums *s)
{
    return has_sessions(s->seen) && s->pure.is_beyond_chance && is_lossy(s->fresh);
}

static bool holds_cookie(const struct sums *s)
{
    return has_sessions(s->seen) && !s->seen->has_jar && s->seen->cookie_count &&
        is_lossy(s->fresh) && is_clean(s->cookie);
}

static bool holds_connection(const struct sums *s)
{
    return has_sessions(s->seen) && is_lossy(s->fresh) && is_clean(s->kept);
}

static bool holds_rotation(const struct sums *s)
{
    return has_sessions(s->seen) && is_lossy(s->fresh) && s->rotation;
}

static bool holds_random(const struct sums *s)
{
    return has_sessions(s->seen) && is_lossy(s->fresh) && s->fresh.ok && !s->rotation &&
        !s->pure.is_beyond_chance;
}

static bool holds_never_found(const struct sums *s)
{
    return has_sessions(s->seen) && is_lossy(s->fresh) && !s->fresh.ok;
}

static bool holds_address(const struct sums *s)
{
    return has_sessions(s->seen) && is_clean(s->fresh) && is_lossy(s->elsewhere);
}

static bool holds_old_sse(const struct sums *s)
{
    const struct lp_seen_tally *sse = &s->seen->sse;
    return s->seen->sse_is_beside && sse->lost >= FAULTS_MIN && sse->lost * 10 >= sse->asked;
}

static bool holds_lost_sometimes(const struct sums *s)
{
    return s->seen->is_open && s->fresh.lost && missed(s->fresh) < LOST_SOMETIMES;
}

static bool holds_server_down(const struct sums *s)
{
    uint32_t calls = s->fresh.ok + s->fresh.lost + s->fresh.faults;
    return s->seen->is_open &&
        (is_beyond_chance(s->seen->opening_faults, s->seen->openings) ||
            is_beyond_chance(s->fresh.faults, calls));
}

static bool goes_elsewhere(const struct sums *s, const struct lp_seen_tally *tally, uint32_t more)
{
    uint32_t answers = tally->fine + tally->refused + tally->lost + tally->odd;
    return has_sessions(s->seen) && is_clean(s->fresh) && tally->lost + more >= 2 &&
        (tally->lost + more) * 10 >= answers;
}

static bool holds_get_elsewhere(const struct sums *s)
{
    return goes_elsewhere(s, &s->seen->gets, 0);
}

static bool holds_delete_elsewhere(const struct sums *s)
{
    return goes_elsewhere(s, &s->seen->deletes, s->seen->undead);
}

static bool holds_state_not_shared(const struct sums *s)
{
    const struct lp_seen_steps *steps = &s->seen->steps;
    return steps->lost >= 2 && steps->lost * 10 >= steps->fine + steps->lost;
}

/* --- the rest --- */

static bool holds_idle_loss(const struct sums *s)
{
    return has_sessions(s->seen) && is_clean(s->fresh) && s->seen->idle.dead_s;
}

static bool holds_buffered(const struct sums *s)
{
    const struct lp_seen_stream *stream = &s->seen->stream;
    return s->seen->is_open && (stream->no_head >= 2 || stream->has_length);
}

static bool holds_idle_cut(const struct sums *s)
{
    const struct lp_seen_idle *idle = &s->seen->idle;
    uint32_t cut = 0;
    for (uint32_t i = 0; i < idle->tries; i++)
        cut += idle->cut_ms[i] > 0;
    return idle->tries && cut * 2 > idle->tries;
}

static bool holds_get_storm(const struct sums *s)
{
    const struct lp_seen *seen = s->seen;
    uint32_t bad = seen->gets.odd + seen->stream.closed_at_once;
    return seen->is_open && seen->gets.asked && bad >= 2 && bad * 2 > seen->gets.asked;
}

static bool holds_unknown_status(const struct sums *s)
{
    const struct lp_seen_answer *unknown = &s->seen->unknown;
    bool is_answered = unknown->is_asked && (unknown->status || unknown->error == LP_ETIMEOUT);
    return has_sessions(s->seen) && is_answered && unknown->status != 404;
}

static bool holds_cors_hides_id(const struct sums *s)
{
    return has_sessions(s->seen) && !s->seen->is_old_sse && s->seen->cors_is_offered &&
        !s->seen->cors_shows_id;
}

static bool holds_slow_stream(const struct sums *s)
{
    const struct lp_seen_stream *stream = &s->seen->stream;
    return s->seen->gets.fine >= 2 && stream->head_ms >= stream->post_ms * 3 + HELD_BACK_MS &&
        !holds_buffered(s);
}

static bool holds_jar(const struct sums *s)
{
    return has_sessions(s->seen) && s->seen->has_jar && s->seen->cookie_count &&
        !is_clean(s->fresh) && is_clean(s->cookie);
}

static bool holds_header(const struct sums *s)
{
    bool is_told = s->seen->kinds >= 2 || s->seen->has_tickets;
    return has_sessions(s->seen) && is_clean(s->fresh) && is_told;
}

static bool holds_stateless(const struct sums *s)
{
    return is_stateless(s->seen) && is_clean(s->fresh);
}

static bool holds_one_process(const struct sums *s)
{
    return has_sessions(s->seen) && is_clean(s->fresh) && !holds_header(s);
}

static bool holds_too_little(const struct sums *s)
{
    (void)s;
    return true;
}

/* --- the table --- */

static bool (*const RULES[])(const struct sums *) = {
#define X(name, judgement, affinity, remedy, headline) holds_##name,
    LP_SITUATIONS(X)
#undef X
};

static const struct lp_situation_info INFO[] = {
#define X(name, judgement, affinity, remedy, headline)                                             \
    {#name, LP_JUDGE_##judgement, LP_AFFINITY_##affinity, LP_REMEDY_##remedy, headline},
    LP_SITUATIONS(X)
#undef X
};

const struct lp_situation_info *lp_situation_info(enum lp_situation situation)
{
    LP_ASSERT(situation < LP_SITUATION_COUNT);
    return &INFO[situation];
}

const char *lp_affinity_name(enum lp_affinity affinity)
{
    static const char *const NAMES[] = {[LP_AFFINITY_NONE] = "none",
        [LP_AFFINITY_HEADER] = "header",
        [LP_AFFINITY_COOKIE] = "cookie",
        [LP_AFFINITY_CONNECTION] = "connection",
        [LP_AFFINITY_ADDRESS] = "address",
        [LP_AFFINITY_SESSION_HASH] = "session-hash",
        [LP_AFFINITY_NOT_NEEDED] = "not-needed"};
    return NAMES[affinity];
}

const char *lp_judgement_name(enum lp_judgement judgement)
{
    static const char *const NAMES[] = {[LP_JUDGE_HEALTHY] = "healthy",
        [LP_JUDGE_BROKEN] = "broken",
        [LP_JUDGE_UNKNOWN] = "unknown",
        [LP_JUDGE_NO_ENDPOINT] = "unknown"};
    return NAMES[judgement];
}

/* A jar turns what would be broken for most clients into something that holds. */
static bool is_mended_by_jar(const struct sums *s, enum lp_situation situation)
{
    enum lp_remedy remedy = lp_situation_info(situation)->remedy;
    return holds_jar(s) && (remedy == LP_REMEDY_PIN || remedy == LP_REMEDY_COOKIE);
}

/* What keeps sessions where the situation itself does not say: the first word of health. */
static enum lp_affinity affinity_of(const struct sums *s)
{
    enum lp_affinity affinity = LP_AFFINITY_UNKNOWN;
    for (uint32_t i = LP_SITUATION_jar; i < LP_SITUATION_too_little && !affinity; i++)
        if (RULES[i](s))
            affinity = INFO[i].affinity;
    return affinity;
}

/* An address always gives the same: as many tosses as addresses. */
static struct lp_estimate estimate_by_address(const struct sums *s)
{
    uint32_t asked = s->elsewhere.ok + s->elsewhere.lost;
    uint32_t hits = s->elsewhere.ok;
    uint32_t sources = s->seen->sources;
    if (!sources || asked <= sources)
        return lp_replicas_of(hits, asked);
    return lp_replicas_of((hits * sources + asked / 2) / asked, sources);
}

static struct lp_estimate estimate(const struct sums *s, const struct lp_verdict *v)
{
    struct lp_estimate one = {.value = 1, .low = 1, .high = 0};
    struct lp_estimate kinds = {.value = s->seen->kinds, .low = s->seen->kinds, .high = 0};
    uint32_t rows = s->pure.right + s->pure.wrong;
    if (v->holds[LP_SITUATION_session_hash])
        return lp_replicas_of(s->pure.right, rows);
    if (has_sessions(s->seen) && is_lossy(s->fresh) && s->rotation)
        return (struct lp_estimate){s->rotation, s->rotation, s->rotation};
    if (has_sessions(s->seen) && is_lossy(s->fresh))
        return lp_replicas_of(s->fresh.ok, s->fresh.ok + s->fresh.lost);
    if (v->holds[LP_SITUATION_address])
        return estimate_by_address(s);
    if (s->seen->kinds >= 2)
        return kinds;
    return v->affinity == LP_AFFINITY_NOT_NEEDED && !is_stateless(s->seen)
        ? one
        : (struct lp_estimate){0};
}

static bool is_tls_error(int error)
{
    return error == LP_ETLS || error == LP_ETLS_UNTRUSTED || error == LP_ETLS_NAME ||
        error == LP_ETLS_EXPIRED;
}

void lp_verdict_judge(const struct lp_seen *seen, struct lp_verdict *ret)
{
    struct sums s = sum_up(seen);
    *ret = (struct lp_verdict){.situation = LP_SITUATION_COUNT,
        .rotation = s.rotation,
        .rates = {s.fresh, s.kept, s.cookie, s.elsewhere},
        .pure = s.pure};
    for (uint32_t i = 0; i < LP_SITUATION_COUNT; i++) {
        ret->holds[i] = RULES[i](&s) && !is_mended_by_jar(&s, (enum lp_situation)i);
        if (ret->holds[i] && ret->situation == LP_SITUATION_COUNT)
            ret->situation = (enum lp_situation)i;
    }
    const struct lp_situation_info *info = lp_situation_info(ret->situation);
    ret->judgement = info->judgement;
    ret->remedy = info->remedy;
    if (ret->remedy == LP_REMEDY_ADDRESS && is_tls_error(seen->opening.error))
        ret->remedy = LP_REMEDY_TLS;
    if (ret->remedy == LP_REMEDY_NOTHING && ret->holds[LP_SITUATION_slow_stream])
        ret->remedy = LP_REMEDY_STREAM;
    if (seen->is_old_sse && (info->remedy == LP_REMEDY_PIN || info->remedy == LP_REMEDY_COOKIE))
        ret->remedy = LP_REMEDY_PIN_SSE;
    ret->affinity = info->affinity ? info->affinity : affinity_of(&s);
    ret->replicas = estimate(&s, ret);
}

enum lp_want lp_verdict_wants(const struct lp_seen *seen)
{
    struct sums s = sum_up(seen);
    bool is_pinned = is_clean(s.kept) || is_clean(s.cookie);
    bool has_hit = s.fresh.ok || s.fresh.lost < CALLS_MIN || is_pinned;
    if (has_sessions(seen) && !has_hit && s.fresh.rows < ROWS_ENOUGH)
        return LP_WANT_SESSIONS;
    bool is_doubtful = seen->opening_faults >= 2 && seen->openings < OPENINGS_MAX;
    if (seen->is_open && is_doubtful && !holds_server_down(&s))
        return LP_WANT_OPENINGS;
    return LP_WANT_NOTHING;
}
