/* The probe's verdict on simulated fleets: each named situation, the estimate of replicas, and how
 * seldom chance alone misleads it (call/verdict.h, call/stats.h, call/fixes.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "call/fixes.h"

enum { SESSIONS = 20, CALLS = 20, SHORT = 2, RUNS = 200 };

enum law { RANDOM, ROTATION, HASH, HEADER, COOKIE, CONNECTION, ADDRESS };

/* A fleet behind a balancer, and a client that probes it. */
struct fleet {
    enum law law;
    uint32_t replicas;
    double noise;     /* share of answers that are a 5xx */
    double dead;      /* share of the balancer's choices that hit a dead server */
    double strangers; /* somebody else's requests for each of ours, which turn a rotation on */
    bool is_crowded;  /* the sessions run side by side */
    uint64_t seed;
    uint64_t turn;
    uint32_t sent; /* in this session */
};

static uint64_t next_random(struct fleet *f)
{
    uint64_t z = f->seed += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double toss(struct fleet *f)
{
    return (double)(next_random(f) >> 11) / 9007199254740992.0;
}

static uint32_t pick_any(struct fleet *f)
{
    return (uint32_t)(next_random(f) % f->replicas);
}

/* Where a request goes that nothing ties to its session. */
static uint32_t pick_free(struct fleet *f)
{
    if (f->law != ROTATION)
        return pick_any(f);
    while (f->strangers && toss(f) < f->strangers / (1 + f->strangers))
        f->turn++;
    return (uint32_t)(f->turn++ % f->replicas);
}

struct session {
    uint32_t home;
    uint32_t hashed; /* where a hash of its id points */
};

static uint32_t pick(struct fleet *f, const struct session *session, enum lp_seen_arm arm)
{
    f->sent++;
    uint32_t other = pick_free(f);
    if (f->law == HEADER || (f->law == COOKIE && arm == LP_ARM_COOKIE))
        return session->home;
    if (f->law == CONNECTION && arm == LP_ARM_KEPT)
        return session->home;
    if (f->law == ADDRESS && arm != LP_ARM_ELSEWHERE)
        return session->home;
    return f->law == HASH ? session->hashed : other;
}

static bool fails(struct fleet *f)
{
    return toss(f) < f->noise || toss(f) < f->dead;
}

static struct session open_session(struct fleet *f, struct lp_seen *seen)
{
    struct session session = {.hashed = pick_any(f)};
    do {
        seen->openings++;
        session.home = pick_free(f);
        f->sent = 0;
        if (!fails(f))
            break;
        seen->opening_faults++;
    } while (true);
    return session;
}

static void run_session(struct fleet *f, struct lp_seen *seen, enum lp_seen_arm arm, uint32_t calls)
{
    struct session session = open_session(f, seen);
    struct lp_seen_row *row = lp_seen_add_row(seen, arm, !f->is_crowded);
    assert_non_null(row);
    (void)pick(f, &session, arm); /* notifications/initialized */
    for (uint32_t i = 0; i < calls; i++) {
        uint32_t at = pick(f, &session, arm);
        bool is_home = at == session.home;
        bool is_failed = f->law == HEADER || is_home ? toss(f) < f->noise : fails(f);
        enum lp_seen_mark mark = is_home ? LP_MARK_OK : LP_MARK_LOST;
        lp_seen_add_call(row, is_failed ? LP_MARK_FAULT : mark, f->sent);
        if (calls == SHORT && mark == LP_MARK_OK)
            calls = CALLS;
    }
    if (f->is_crowded)
        f->turn += next_random(f) % 7;
}

static void fill_answers(struct lp_seen *seen)
{
    seen->is_open = seen->mints_ids = true;
    seen->opening = (struct lp_seen_answer){.is_asked = true, .status = 200, .is_result = true};
    seen->missing = (struct lp_seen_answer){.is_asked = true, .status = 400, .code = -32000};
    seen->unknown = (struct lp_seen_answer){.is_asked = true, .status = 404, .code = -32001};
    seen->lost = seen->unknown;
}

/* What call/probe.h does, without sockets. */
static struct lp_seen *probe(struct fleet *f, uint32_t sessions, uint32_t calls)
{
    struct lp_seen *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    fill_answers(seen);
    seen->cookie_count = f->law == COOKIE;
    seen->kinds = f->law == HEADER ? f->replicas : 0;
    for (uint32_t i = 0; i < sessions; i++)
        run_session(f, seen, LP_ARM_FRESH, calls);
    for (uint32_t i = 0; i < sessions / 4 + 1; i++) {
        run_session(f, seen, LP_ARM_KEPT, calls);
        if (f->law == COOKIE)
            run_session(f, seen, LP_ARM_COOKIE, calls);
        if (f->law == ADDRESS)
            run_session(f, seen, LP_ARM_ELSEWHERE, calls);
    }
    for (enum lp_want want; (want = lp_verdict_wants(seen)) != LP_WANT_NOTHING;)
        for (uint32_t i = 0; i < 60; i++)
            if (want == LP_WANT_SESSIONS)
                run_session(f, seen, LP_ARM_FRESH, SHORT);
            else
                (void)open_session(f, seen);
    return seen;
}

static struct lp_verdict verdict_of(struct fleet f)
{
    struct lp_verdict verdict;
    struct lp_seen *seen = probe(&f, SESSIONS, CALLS);
    lp_verdict_judge(seen, &verdict);
    free(seen);
    return verdict;
}

/* How many of RUNS probes of such a fleet come to that situation. */
static uint32_t count_situation(struct fleet f, enum lp_situation wanted)
{
    uint32_t count = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        f.seed = 1000003 * run + f.replicas;
        f.turn = run;
        struct lp_verdict verdict = verdict_of(f);
        count += verdict.situation == wanted;
        if (verdict.situation != wanted)
            print_message("# law %d, %u replicas, run %u: %s\n", f.law, f.replicas, run,
                lp_situation_info(verdict.situation)->name);
    }
    return count;
}

/* --- healthy fleets --- */

static void test_noise_is_healthy(void **state)
{
    (void)state;
    const uint32_t sizes[] = {1, 3, 12};
    for (size_t i = 0; i < 3; i++) {
        struct fleet f = {.law = HEADER, .replicas = sizes[i], .noise = 0.01};
        enum lp_situation wanted = sizes[i] == 1 ? LP_SITUATION_one_process : LP_SITUATION_header;
        uint32_t healthy = count_situation(f, wanted);
        print_message("# %u replicas, 1 %% noise: healthy in %u of %d\n", sizes[i], healthy, RUNS);
        assert_true(healthy >= 199);
    }
}

/* Three in a hundred are still no verdict against the affinity. */
static void test_more_noise_blames_no_affinity(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct fleet f = {.law = HEADER, .replicas = 3, .noise = 0.03, .seed = run};
        struct lp_verdict verdict = verdict_of(f);
        assert_int_equal(verdict.affinity, LP_AFFINITY_HEADER);
    }
}

/* --- broken fleets, told apart --- */

static void test_laws_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        enum law law;
        enum lp_situation situation;
        enum lp_affinity affinity;
    } ROWS[] = {
        {RANDOM, LP_SITUATION_random, LP_AFFINITY_NONE},
        {ROTATION, LP_SITUATION_rotation, LP_AFFINITY_NONE},
        {HASH, LP_SITUATION_session_hash, LP_AFFINITY_SESSION_HASH},
        {COOKIE, LP_SITUATION_cookie, LP_AFFINITY_COOKIE},
        {CONNECTION, LP_SITUATION_connection, LP_AFFINITY_CONNECTION},
        {ADDRESS, LP_SITUATION_address, LP_AFFINITY_ADDRESS},
    };
    static const uint32_t SIZES[] = {2, 3, 12};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        for (size_t k = 0; k < 3; k++) {
            struct fleet f = {.law = ROWS[i].law, .replicas = SIZES[k], .noise = 0.01};
            uint32_t right = count_situation(f, ROWS[i].situation);
            print_message("# %s, %u replicas: %u of %d\n",
                lp_situation_info(ROWS[i].situation)->name, SIZES[k], right, RUNS);
            assert_true(right >= 199);
        }
        assert_int_equal(lp_situation_info(ROWS[i].situation)->affinity, ROWS[i].affinity);
    }
}

/* Others use the balancer too, or the sessions run side by side: no strict rotation is seen, and
 * nothing is taken for a hash. */
static void test_disturbed_rotation(void **state)
{
    (void)state;
    struct fleet f = {.law = ROTATION, .replicas = 4, .strangers = 1.5};
    assert_true(count_situation(f, LP_SITUATION_random) >= 199);
    f = (struct fleet){.law = RANDOM, .replicas = 5, .is_crowded = true};
    assert_int_equal(count_situation(f, LP_SITUATION_random), RUNS);
}

/* --- how many replicas --- */

static uint32_t count_within_two(struct fleet f, uint32_t sessions, uint32_t calls, bool *covered)
{
    uint32_t count = 0;
    uint32_t inside = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct lp_verdict verdict;
        f.seed = 7777 * run + 13;
        struct lp_seen *seen = probe(&f, sessions, calls);
        lp_verdict_judge(seen, &verdict);
        free(seen);
        double n = f.replicas;
        count += verdict.replicas.value >= n / 2 && verdict.replicas.value <= n * 2;
        inside +=
            verdict.replicas.low <= n && (verdict.replicas.high >= n || !verdict.replicas.high);
    }
    *covered = inside >= RUNS * 90 / 100;
    return count;
}

static void test_estimate(void **state)
{
    (void)state;
    static const enum law LAWS[] = {RANDOM, ROTATION, COOKIE, CONNECTION, ADDRESS};
    static const uint32_t SIZES[] = {3, 12};
    for (size_t i = 0; i < sizeof LAWS / sizeof *LAWS; i++) {
        for (size_t k = 0; k < 2; k++) {
            struct fleet f = {.law = LAWS[i], .replicas = SIZES[k], .noise = 0.01};
            bool is_covered;
            uint32_t within = count_within_two(f, SESSIONS, CALLS, &is_covered);
            print_message("# law %d, %u replicas: within a factor of two in %u of %d\n", LAWS[i],
                SIZES[k], within, RUNS);
            assert_true(within >= RUNS * 95 / 100);
            assert_true(is_covered);
        }
    }
    /* the case of a dozen: twenty sessions of twelve calls */
    struct fleet f = {.law = RANDOM, .replicas = 12};
    bool is_covered;
    assert_true(count_within_two(f, 20, 12, &is_covered) >= RUNS * 95 / 100);
    assert_true(is_covered);
}

/* --- a dead server --- */

static void test_dead_server(void **state)
{
    (void)state;
    static const uint32_t SIZES[] = {2, 3, 5};
    for (size_t i = 0; i < 3; i++) {
        struct fleet f = {.law = HEADER, .replicas = SIZES[i], .dead = 1.0 / SIZES[i]};
        assert_true(count_situation(f, LP_SITUATION_server_down) >= RUNS * 98 / 100);
    }
}

/* --- single rules --- */

static struct lp_seen *healthy(void)
{
    struct fleet f = {.law = HEADER, .replicas = 3, .seed = 5};
    return probe(&f, SESSIONS, CALLS);
}

static void expect(struct lp_seen *seen, enum lp_situation situation, enum lp_affinity affinity)
{
    struct lp_verdict verdict;
    lp_verdict_judge(seen, &verdict);
    assert_string_equal(
        lp_situation_info(verdict.situation)->name, lp_situation_info(situation)->name);
    assert_int_equal(verdict.affinity, affinity);
    assert_true(verdict.holds[situation]);
    free(seen);
}

#define EXPECT(change, situation, affinity)                                                        \
    do {                                                                                           \
        struct lp_seen *seen = healthy();                                                          \
        change;                                                                                    \
        expect(seen, LP_SITUATION_##situation, LP_AFFINITY_##affinity);                            \
    } while (0)

static void test_endpoints(void **state)
{
    (void)state;
#define CLOSED(...) (seen->is_open = false, seen->opening = (struct lp_seen_answer){__VA_ARGS__})
    EXPECT(CLOSED(.is_asked = true, .error = LP_EREFUSED), unreachable, UNKNOWN);
    EXPECT(CLOSED(.error = LP_ETLS_UNTRUSTED), unreachable, UNKNOWN);
    EXPECT(CLOSED(.error = LP_ETIMEOUT), unreachable, UNKNOWN);
    EXPECT(CLOSED(.error = LP_ETIMEOUT, .is_connected = true), no_answer, UNKNOWN);
    EXPECT(CLOSED(.status = 501, .media = LP_MEDIA_HTML), web_page, UNKNOWN);
    EXPECT(CLOSED(.status = 501, .media = LP_MEDIA_JSON), no_endpoint, UNKNOWN);
    EXPECT(CLOSED(.status = 200, .media = LP_MEDIA_HTML), web_page, UNKNOWN);
    EXPECT(CLOSED(.status = 404, .media = LP_MEDIA_HTML), web_page, UNKNOWN);
    EXPECT(CLOSED(.status = 401, .media = LP_MEDIA_HTML), login, UNKNOWN);
    EXPECT(CLOSED(.status = 403, .media = LP_MEDIA_JSON), refused, UNKNOWN);
    EXPECT(CLOSED(.status = 404, .media = LP_MEDIA_JSON), no_endpoint, UNKNOWN);
    EXPECT(CLOSED(.status = 200, .media = LP_MEDIA_OTHER), no_endpoint, UNKNOWN);
    EXPECT(CLOSED(.status = 502, .media = LP_MEDIA_HTML), trouble, UNKNOWN);
    EXPECT(CLOSED(.status = 429, .media = LP_MEDIA_JSON), trouble, UNKNOWN);
    EXPECT(seen->row_count = 0, too_little, UNKNOWN);
}

static void test_protocol(void **state)
{
    (void)state;
#define TALLY(...) ((struct lp_seen_tally){__VA_ARGS__})
    EXPECT(seen->gets = TALLY(.asked = 6, .fine = 2, .lost = 4), get_elsewhere, HEADER);
    EXPECT(seen->gets = TALLY(.asked = 6, .refused = 6), header, HEADER);
    EXPECT(seen->deletes = TALLY(.asked = 20, .fine = 8, .lost = 12), delete_elsewhere, HEADER);
    EXPECT((seen->deletes = TALLY(.asked = 20, .fine = 20), seen->undead = 9), delete_elsewhere,
        HEADER);
    EXPECT(seen->gets = TALLY(.asked = 6, .odd = 6), get_storm, HEADER);
    EXPECT((seen->gets = TALLY(.asked = 6, .fine = 6), seen->stream.closed_at_once = 6), get_storm,
        HEADER);
    EXPECT(seen->stream.no_head = 3, buffered, HEADER);
    EXPECT(seen->stream.has_length = true, buffered, HEADER);
    EXPECT(seen->cors_is_offered = true, cors_hides_id, HEADER);
    EXPECT((seen->cors_is_offered = true, seen->cors_shows_id = true), header, HEADER);
    EXPECT((seen->sse_is_beside = true, seen->sse = TALLY(.asked = 9, .lost = 6, .fine = 3)),
        old_sse, HEADER);
    EXPECT(seen->mints_ids = false, stateless, NOT_NEEDED);
    EXPECT(seen->is_modern = true, stateless, NOT_NEEDED);
    EXPECT(seen->kinds = 1, one_process, NOT_NEEDED);
    EXPECT((seen->kinds = 0, seen->has_tickets = true), header, HEADER);
    EXPECT(seen->idle.dead_s = 60, idle_loss, HEADER);
    EXPECT((seen->idle.tries = 3, seen->idle.cut_ms[0] = seen->idle.cut_ms[2] = 60000), idle_cut,
        HEADER);
    EXPECT((seen->idle.tries = 3, seen->idle.cut_ms[0] = 60000), header, HEADER);
}

static void test_unknown_status(void **state)
{
    (void)state;
    static const uint16_t STATUSES[] = {200, 400, 401, 409, 422, 500};
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++)
        EXPECT(seen->unknown.status = STATUSES[i], unknown_status, HEADER);
    EXPECT((seen->unknown.status = 0, seen->unknown.error = LP_ETIMEOUT), unknown_status, HEADER);
    EXPECT(seen->unknown.is_asked = false, header, HEADER);
}

static void mark_all(struct lp_seen *seen, enum lp_seen_mark mark)
{
    for (uint32_t i = 0; i < seen->row_count; i++)
        memset(seen->rows[i].marks, (int)mark, seen->rows[i].count);
}

static void test_lost_ids(void **state)
{
    (void)state;
    EXPECT((mark_all(seen, LP_MARK_LOST), seen->mints_ids = false), id_lost_outward, NONE);
    EXPECT((mark_all(seen, LP_MARK_LOST), seen->lost = seen->unknown = seen->missing),
        id_lost_inward, NONE);
    EXPECT(mark_all(seen, LP_MARK_LOST), never_found, NONE);
    EXPECT(mark_all(seen, LP_MARK_FAULT), trouble, UNKNOWN);
    EXPECT((seen->rows[3].marks[4] = seen->rows[9].marks[1] = LP_MARK_LOST), lost_sometimes, NONE);
}

/* A client with a jar is judged by what it will live through. */
static void test_jar(void **state)
{
    (void)state;
    struct fleet f = {.law = COOKIE, .replicas = 3, .seed = 8};
    struct lp_seen *seen = probe(&f, SESSIONS, CALLS);
    seen->has_jar = true;
    struct lp_verdict verdict;
    lp_verdict_judge(seen, &verdict);
    assert_true(verdict.replicas.value > 2 && verdict.replicas.value < 5);
    expect(seen, LP_SITUATION_jar, LP_AFFINITY_COOKIE);
}

/* No hit in twenty sessions of a hash over many: more sessions are asked for, and then it shows. */
static void test_unlucky_hash(void **state)
{
    (void)state;
    uint32_t wanted = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct fleet f = {.law = HASH, .replicas = 12, .seed = run};
        struct lp_seen *seen = probe(&f, SESSIONS, CALLS);
        struct lp_verdict verdict;
        lp_verdict_judge(seen, &verdict);
        wanted += seen->row_count > SESSIONS + SESSIONS / 4 + 1;
        free(seen);
        assert_int_equal(verdict.situation, LP_SITUATION_session_hash);
    }
    print_message("# %u of %d asked for more sessions\n", wanted, RUNS);
    assert_true(wanted > RUNS / 20);
}

/* --- words --- */

static void test_words(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LP_SITUATION_COUNT; i++) {
        const struct lp_situation_info *info = lp_situation_info((enum lp_situation)i);
        struct lp_verdict verdict = {.situation = (enum lp_situation)i, .remedy = info->remedy};
        static struct lp_seen seen;
        assert_true(strlen(info->headline) > 10);
        enum lp_front front = lp_fix_front(&verdict, &seen);
        assert_true(info->remedy == LP_REMEDY_NOTHING || lp_fix_of(info->remedy, front).words);
        assert_non_null(lp_judgement_name(info->judgement));
    }
    assert_null(lp_affinity_name(LP_AFFINITY_UNKNOWN));
    assert_string_equal(lp_affinity_name(LP_AFFINITY_SESSION_HASH), "session-hash");
    assert_string_equal(lp_affinity_name(LP_AFFINITY_NOT_NEEDED), "not-needed");
}

/* The lines that people paste say what they must say. */
static void test_fixes(void **state)
{
    (void)state;
    static const struct {
        enum lp_remedy remedy;
        enum lp_front front;
        const char *text;
    } ROWS[] = {
        {LP_REMEDY_PIN, LP_FRONT_GATEWAY, "limpet gateway http"},
        {LP_REMEDY_PIN, LP_FRONT_HAPROXY, "stick store-response res.hdr(Mcp-Session-Id)"},
        {LP_REMEDY_PIN, LP_FRONT_NGINX, "sticky learn create=$upstream_http_mcp_session_id"},
        {LP_REMEDY_PIN, LP_FRONT_CADDY, "reverse_proxy"},
        {LP_REMEDY_PIN, LP_FRONT_CDN, "limpet gateway"},
        {LP_REMEDY_PIN, LP_FRONT_INGRESS, "limpet gateway"},
        {LP_REMEDY_PIN, LP_FRONT_CODE, "sessionIdGenerator: undefined"},
        {LP_REMEDY_COOKIE, LP_FRONT_GATEWAY, "--cookie-jar"},
        {LP_REMEDY_COOKIE, LP_FRONT_HAPROXY, "stick match"},
        {LP_REMEDY_STREAM, LP_FRONT_NGINX, "proxy_buffering off"},
        {LP_REMEDY_STREAM, LP_FRONT_HAPROXY, "http-no-delay"},
        {LP_REMEDY_STATUS, LP_FRONT_CODE, "-32001"},
        {LP_REMEDY_CORS, LP_FRONT_CODE, "exposedHeaders"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct lp_fix fix = lp_fix_of(ROWS[i].remedy, ROWS[i].front);
        assert_non_null(fix.lines);
        assert_non_null(strstr(fix.lines, ROWS[i].text));
        assert_int_equal(fix.lines[strlen(fix.lines) - 1], '\n');
    }
    struct lp_buf out;
    lp_buf_init(&out, 300);
    struct lp_fix jar = lp_fix_of(LP_REMEDY_COOKIE, LP_FRONT_GATEWAY);
    assert_int_equal(lp_fix_lines(jar, LP_SPAN("http://a/b"), &out), LP_OK);
    assert_true(lp_span_eq(lp_buf_span(&out),
        LP_SPAN("limpet gateway --cookie-jar http://a/b\n"
                "limpet connect --cookie-jar http://a/b\n")));
    assert_int_equal(
        lp_fix_lines(lp_fix_of(LP_REMEDY_LOGIN_URL, LP_FRONT_GATEWAY), LP_SPAN("u"), &out), LP_OK);
    while (lp_fix_lines(jar, LP_SPAN("http://a/b"), &out) == LP_OK)
        assert_true(out.len <= 300);
    lp_buf_release(&out);
    assert_null(lp_fix_of(LP_REMEDY_NOTHING, LP_FRONT_CODE).words);
    assert_null(lp_fix_of(LP_REMEDY_LOGIN, LP_FRONT_CODE).words);
}

static void test_fronts(void **state)
{
    (void)state;
    static const struct {
        const char *hop;
        enum lp_front front;
    } ROWS[] = {
        {"Server: nginx/1.29.6", LP_FRONT_NGINX},
        {"Server: Caddy", LP_FRONT_CADDY},
        {"Server: cloudflare", LP_FRONT_CDN},
        {"Via: 1.1 abc.cloudfront.net (CloudFront)", LP_FRONT_CDN},
        {"Via: 1.1 haproxy", LP_FRONT_HAPROXY},
        {"Server: istio-envoy", LP_FRONT_INGRESS},
        {"Server: Kestrel", LP_FRONT_GATEWAY},
    };
    static struct lp_seen seen;
    struct lp_verdict verdict = {.remedy = LP_REMEDY_PIN};
    seen.hop_count = 1;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        lp_seen_text(seen.hops[0], sizeof seen.hops[0], lp_span_str(ROWS[i].hop));
        assert_int_equal(lp_front_of(&seen), ROWS[i].front);
        assert_int_equal(lp_fix_front(&verdict, &seen), ROWS[i].front);
        assert_true(strlen(lp_front_name(ROWS[i].front)) > 2);
    }
}

/* Nothing is lost, but streams begin late: healthy, and told how to mend it. */
static void test_slow_stream_is_mended(void **state)
{
    (void)state;
    struct lp_seen *seen = healthy();
    struct lp_verdict verdict;
    seen->gets = (struct lp_seen_tally){.asked = 3, .fine = 3};
    seen->stream = (struct lp_seen_stream){.head_ms = 400, .post_ms = 3};
    lp_verdict_judge(seen, &verdict);
    assert_int_equal(verdict.judgement, LP_JUDGE_HEALTHY);
    assert_int_equal(verdict.remedy, LP_REMEDY_STREAM);
    seen->stream.head_ms = 4;
    lp_verdict_judge(seen, &verdict);
    assert_int_equal(verdict.remedy, LP_REMEDY_NOTHING);
    free(seen);
}

/* The advice follows what is wrong with the address. */
static void test_address_is_mended(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum lp_remedy remedy;
    } CASES[] = {{LP_EREFUSED, LP_REMEDY_ADDRESS}, {LP_ETLS, LP_REMEDY_TLS},
        {LP_ETLS_UNTRUSTED, LP_REMEDY_TLS}, {LP_ETLS_NAME, LP_REMEDY_TLS},
        {LP_ETLS_EXPIRED, LP_REMEDY_TLS}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_seen *seen = healthy();
        struct lp_verdict verdict;
        seen->is_open = false;
        seen->opening = (struct lp_seen_answer){.is_asked = true, .error = CASES[i].error};
        lp_verdict_judge(seen, &verdict);
        assert_int_equal(verdict.remedy, CASES[i].remedy);
        assert_false(lp_fix_has_front(verdict.remedy, LP_FRONT_GATEWAY));
        assert_non_null(lp_fix_of(verdict.remedy, LP_FRONT_GATEWAY).words);
        free(seen);
    }
    assert_true(lp_fix_has_front(LP_REMEDY_PIN, LP_FRONT_GATEWAY));
}

static void test_notes(void **state)
{
    (void)state;
    char room[6];
    lp_seen_text(room, sizeof room,
        LP_SPAN("a\n\x01"
                "cdefgh"));
    assert_string_equal(room, "a ?cd");
    static struct lp_seen seen;
    struct lp_seen_row *row = NULL;
    for (uint32_t i = 0; i < LP_SEEN_ROWS_MAX; i++)
        assert_non_null(row = lp_seen_add_row(&seen, LP_ARM_KEPT, false));
    assert_null(lp_seen_add_row(&seen, LP_ARM_KEPT, false));
    for (uint32_t i = 0; i <= LP_SEEN_CALLS_MAX; i++)
        lp_seen_add_call(row, LP_MARK_OK, 70000);
    assert_int_equal(row->count, LP_SEEN_CALLS_MAX);
    assert_int_equal(row->distance[0], UINT16_MAX);
    double low, high;
    lp_share_bounds(0, 60, &low, &high);
    assert_true(low == 0 && high > 0.04 && high < 0.08);
    lp_share_bounds(5, 5, &low, &high);
    assert_true(low > 0.5 && high == 1);
    assert_true(lp_share_tail(0, 10, 0.5) > 0.999);
    assert_true(lp_share_tail(11, 10, 0.5) < 1e-9);
    double ten = lp_share_tail(10, 10, 0.5) * 1024;
    assert_true(ten > 0.999 && ten < 1.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise_is_healthy),
        cmocka_unit_test(test_more_noise_blames_no_affinity),
        cmocka_unit_test(test_laws_are_told_apart),
        cmocka_unit_test(test_disturbed_rotation),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_dead_server),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_protocol),
        cmocka_unit_test(test_unknown_status),
        cmocka_unit_test(test_lost_ids),
        cmocka_unit_test(test_jar),
        cmocka_unit_test(test_unlucky_hash),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_fixes),
        cmocka_unit_test(test_fronts),
        cmocka_unit_test(test_slow_stream_is_mended),
        cmocka_unit_test(test_address_is_mended),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
