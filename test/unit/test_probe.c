/* The probe itself, from its first question to its last DELETE, against fleets in memory: every
 * situation, many seeds where chance plays, what is left behind, and how long it takes. */
#include "probe_world.h"

#include "call/verdict.h"

enum { RUNS = 100 };

static struct lp_verdict judged(const struct world *w)
{
    struct lp_verdict verdict;
    lp_verdict_judge(lp_probe_seen(w->probe), &verdict);
    return verdict;
}

static void check_report(const struct world *w, const struct lp_verdict *verdict)
{
    struct lp_report report = {
        LP_SPAN("http://127.0.0.1:3000/mcp"), lp_probe_seen(w->probe), verdict};
    struct lp_buf out;
    lp_buf_init(&out, 1 << 20);
    assert_int_equal(lp_report_json(&report, &out), LP_OK);
    lp_buf_clear(&out);
    assert_int_equal(lp_report_text(&report, &out), LP_OK);
    lp_buf_release(&out);
}

static void expect_args(const struct world *deployment, struct lp_probe_args args,
    enum lp_situation situation, enum lp_affinity affinity)
{
    struct world *w = probe_world(deployment, args);
    struct lp_verdict verdict = judged(w);
    assert_string_equal(
        lp_situation_info(verdict.situation)->name, lp_situation_info(situation)->name);
    assert_int_equal(verdict.affinity, affinity);
    check_report(w, &verdict);
    assert_true(w->told > 0 || !lp_probe_seen(w->probe)->is_open);
    assert_true(args.rest_s || lp_probe_seen(w->probe)->took_ms <= 9700);
    if (w->live != lp_probe_seen(w->probe)->left)
        print_message("# %s: %u sessions are left, %u told\n", lp_situation_info(situation)->name,
            w->live, lp_probe_seen(w->probe)->left);
    assert_int_equal(w->live, lp_probe_seen(w->probe)->left);
    world_free(w);
}

#define EXPECT(situation, affinity, ...)                                                           \
    do {                                                                                           \
        static const struct world deployment = {__VA_ARGS__};                                      \
        expect_args(&deployment, (struct lp_probe_args){0}, LP_SITUATION_##situation,              \
            LP_AFFINITY_##affinity);                                                               \
    } while (0)

static void test_affinity(void **state)
{
    (void)state;
    EXPECT(one_process, NOT_NEEDED, .law = ONE);
    EXPECT(one_process, NOT_NEEDED, .law = ONE, .answers_events = true);
    EXPECT(rotation, NONE, .law = ROTATION, .replicas = 3);
    EXPECT(rotation, NONE, .law = ROTATION, .replicas = 12);
    EXPECT(random, NONE, .law = RANDOM, .replicas = 3);
    EXPECT(session_hash, SESSION_HASH, .law = HASH, .replicas = 2);
    EXPECT(header, HEADER, .law = HEADER, .replicas = 3, .tells_kind = true);
    EXPECT(one_process, NOT_NEEDED, .law = HEADER, .replicas = 3);
    EXPECT(connection, CONNECTION, .law = CONNECTION, .replicas = 3);
    EXPECT(address, ADDRESS, .law = ADDRESS, .replicas = 3);
    EXPECT(stateless, NOT_NEEDED, .law = RANDOM, .replicas = 3, .is_stateless = true);
    EXPECT(stateless, NOT_NEEDED, .law = RANDOM, .replicas = 3, .is_modern = true);
}

static struct lp_seen_steps steps_of(const struct world *deployment, enum lp_situation situation)
{
    struct lp_probe_args args = {
        .step_tool = LP_SPAN("t"), .step_arguments = LP_SPAN(" {\"x\":1}")};
    struct world *w = probe_world(deployment, args);
    struct lp_verdict verdict = judged(w);
    struct lp_seen_steps steps = lp_probe_seen(w->probe)->steps;
    assert_string_equal(
        lp_situation_info(verdict.situation)->name, lp_situation_info(situation)->name);
    check_report(w, &verdict);
    world_free(w);
    return steps;
}

/* MOD-04: a state that only the replica knows which made it. */
static void test_calls_in_two_steps(void **state)
{
    (void)state;
    static const struct world APART = {.law = RANDOM, .replicas = 3, .is_modern = true};
    static const struct world TURNS = {.law = ROTATION, .replicas = 2, .is_modern = true};
    static const struct world SHARED = {
        .law = RANDOM, .replicas = 3, .is_modern = true, .shares_states = true};
    static const struct world PLAIN = {.law = ONE, .is_modern = true, .asks_nothing = true};
    static const struct world BUSY = {.law = ONE, .is_modern = true, .steps_fail = true};
    static const struct world LEGACY = {.law = ONE};
    static const struct world WITHOUT = {.law = ONE, .is_modern = true, .has_no_tool = true};
    struct lp_seen_steps steps = steps_of(&APART, LP_SITUATION_state_not_shared);
    assert_true(steps.begun == 30 && steps.fine + steps.lost == 30);
    assert_true(steps.fine >= 3 && steps.fine <= 18); /* about a third */
    assert_string_equal(steps.words, "the state is not valid");
    assert_true(steps_of(&TURNS, LP_SITUATION_state_not_shared).lost >= 2);
    steps = steps_of(&SHARED, LP_SITUATION_stateless);
    assert_true(steps.fine == 30 && !steps.lost && !steps.words[0]);
    steps = steps_of(&PLAIN, LP_SITUATION_stateless);
    assert_true(steps.asked >= 1 && steps.asked <= 5 && !steps.begun);
    assert_string_equal(steps.words, "the tool asked for no input");
    steps = steps_of(&BUSY, LP_SITUATION_stateless);
    assert_true(steps.faults == 30 && !steps.begun);
    assert_string_equal(steps_of(&WITHOUT, LP_SITUATION_stateless).words, "no such tool");
    assert_int_equal(steps_of(&LEGACY, LP_SITUATION_one_process).asked, 0);
}

static void test_cookies(void **state)
{
    (void)state;
    static const struct world ONE_COOKIE = {.law = COOKIE, .replicas = 3, .cookies = 1};
    static const struct world THREE = {.law = COOKIE, .replicas = 3, .cookies = 3};
    struct lp_probe_args none = {0};
    expect_args(&ONE_COOKIE, none, LP_SITUATION_cookie, LP_AFFINITY_COOKIE);
    expect_args(&THREE, none, LP_SITUATION_cookie, LP_AFFINITY_COOKIE);
    expect_args(
        &ONE_COOKIE, (struct lp_probe_args){.has_jar = true}, LP_SITUATION_jar, LP_AFFINITY_COOKIE);
    struct world *w = probe_world(&THREE, none);
    const struct lp_seen *seen = lp_probe_seen(w->probe);
    assert_int_equal(seen->cookie_count, 3);
    assert_string_equal(lp_report_cookie(seen), "pin");
    assert_false(seen->suffices[0]);
    world_free(w);
}

static void test_ways(void **state)
{
    (void)state;
    EXPECT(id_lost_outward, NONE, .drops_id_out = true);
    EXPECT(get_elsewhere, HEADER, .law = HEADER, .replicas = 3, .tells_kind = true,
        .get_is_free = true);
    EXPECT(delete_elsewhere, HEADER, .law = HEADER, .replicas = 3, .tells_kind = true,
        .delete_is_free = true);
    EXPECT(buffered, NOT_NEEDED, .holds_streams = true);
    EXPECT(get_storm, NOT_NEEDED, .stream_ends = true);
    EXPECT(one_process, NOT_NEEDED, .has_no_stream = true);
    EXPECT(cors_hides_id, NOT_NEEDED, .is_open_to_browsers = true);
    EXPECT(server_down, HEADER, .law = HEADER, .replicas = 3, .tells_kind = true, .dead = 0.33);
    EXPECT(unknown_status, NOT_NEEDED, .dialect = SAYS_400);
    EXPECT(unknown_status, NOT_NEEDED, .dialect = SAYS_HTML);
    EXPECT(unknown_status, NOT_NEEDED, .dialect = SAYS_NOTHING);
    EXPECT(random, NONE, .law = RANDOM, .replicas = 3, .dialect = SAYS_400);
    EXPECT(random, NONE, .law = RANDOM, .replicas = 3, .dialect = SAYS_HTML);
}

/* A header that is lost on the way in: the sessions cannot be deleted either. */
static void test_id_lost_inward(void **state)
{
    (void)state;
    EXPECT(id_lost_inward, NONE, .drops_id_in = true);
}

/* A server that accepts DELETE and goes on answering. */
static void test_undead(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.delete_fails = true};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){0});
    assert_int_equal(judged(w).situation, LP_SITUATION_delete_elsewhere);
    assert_true(lp_probe_seen(w->probe)->undead >= 2);
    world_free(w);
}

static void test_no_endpoint(void **state)
{
    (void)state;
    EXPECT(unreachable, UNKNOWN, .refuses_connections = true);
    EXPECT(web_page, UNKNOWN, .is_page = true);
    EXPECT(login, UNKNOWN, .is_login = true);
    EXPECT(trouble, UNKNOWN, .noise = 1.1);
}

static void test_old_sse(void **state)
{
    (void)state;
    EXPECT(one_process, NOT_NEEDED, .is_old_sse = true);
    EXPECT(random, NONE, .is_old_sse = true, .law = RANDOM, .replicas = 3);
    EXPECT(random, NONE, .is_old_sse = true, .law = ROTATION, .replicas = 3, .is_slow_sse = true);
    EXPECT(cookie, COOKIE, .is_old_sse = true, .law = COOKIE, .replicas = 3, .cookies = 1);
    EXPECT(address, ADDRESS, .is_old_sse = true, .law = ADDRESS, .replicas = 3);
}

/* An old SSE endpoint beside the probed one: its sessions are judged too. */
static void test_beside(void **state)
{
    (void)state;
    EXPECT(
        old_sse, HEADER, .law = HEADER, .replicas = 3, .tells_kind = true, .has_sse_beside = true);
    EXPECT(one_process, NOT_NEEDED, .has_sse_beside = true);
    static const struct world DEPLOYMENT = {.has_sse_beside = true, .says_nonsense = true};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){0});
    const struct lp_seen *seen = lp_probe_seen(w->probe);
    assert_true(seen->sse_is_beside);
    assert_int_equal(seen->sse.asked, 32);
    assert_int_equal(seen->sse.fine, 32);
    world_free(w);
}

/* Streams that break, endpoints that are no endpoints, events that say nothing. */
static void test_odd_streams(void **state)
{
    (void)state;
    EXPECT(one_process, NOT_NEEDED, .is_old_sse = true, .says_nonsense = true);
    EXPECT(too_little, UNKNOWN, .is_old_sse = true, .has_foreign_endpoint = true);
    for (uint64_t cut_us = 500; cut_us < 8000; cut_us += 500) {
        struct world deployment = {.is_old_sse = true, .sse_cut_us = cut_us};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        struct lp_verdict verdict = judged(w);
        check_report(w, &verdict);
        world_free(w);
    }
}

/* What the user says of transport and era is believed, and nothing else is tried. */
static void test_wishes(void **state)
{
    (void)state;
    EXPECT(one_process, NOT_NEEDED, .is_old_sse = true, .transport = LP_TRANSPORT_SSE);
    EXPECT(no_endpoint, UNKNOWN, .transport = LP_TRANSPORT_SSE);
    EXPECT(unreachable, UNKNOWN, .transport = LP_TRANSPORT_SSE, .refuses_connections = true);
    EXPECT(no_endpoint, UNKNOWN, .is_old_sse = true, .transport = LP_TRANSPORT_STREAMABLE_HTTP);
    EXPECT(stateless, NOT_NEEDED, .is_modern = true, .era = LP_ERA_WISH_MODERN);
    EXPECT(no_endpoint, UNKNOWN, .era = LP_ERA_WISH_MODERN);
    EXPECT(one_process, NOT_NEEDED, .era = LP_ERA_WISH_LEGACY);
    EXPECT(unreachable, UNKNOWN, .era = LP_ERA_WISH_LEGACY, .refuses_connections = true);
    static const struct world LEGACY = {.era = LP_ERA_WISH_LEGACY, .has_sse_beside = true};
    static const struct world MODERN = {.era = LP_ERA_WISH_MODERN};
    struct world *w = probe_world(&LEGACY, (struct lp_probe_args){0});
    assert_int_equal(w->discovers, 0);
    assert_true(lp_probe_seen(w->probe)->sse_is_beside);
    world_free(w);
    w = probe_world(&MODERN, (struct lp_probe_args){0});
    assert_int_equal(w->initializes, 0);
    world_free(w);
}

/* --- chance --- */

static void test_noise(void **state)
{
    (void)state;
    uint32_t healthy = 0;
    for (uint32_t run = 0; run < 2 * RUNS; run++) {
        struct world deployment = {
            .law = HEADER, .replicas = 3, .tells_kind = true, .noise = 0.01, .seed = run * 7919};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        struct lp_verdict verdict = judged(w);
        healthy += verdict.situation == LP_SITUATION_header;
        if (verdict.situation != LP_SITUATION_header)
            print_message("# run %u: %s\n", run, lp_situation_info(verdict.situation)->name);
        world_free(w);
    }
    print_message("# healthy in %u of %d\n", healthy, 2 * RUNS);
    assert_true(healthy >= 199);
}

static void estimate(enum law law, uint32_t replicas)
{
    uint32_t within = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        struct world deployment = {.law = law, .replicas = replicas, .seed = run * 104729 + 1};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        struct lp_verdict verdict = judged(w);
        assert_int_equal(verdict.affinity, LP_AFFINITY_NONE);
        within += verdict.replicas.value * 2 >= replicas && verdict.replicas.value <= 2 * replicas;
        assert_int_equal(w->live, lp_probe_seen(w->probe)->left);
        world_free(w);
    }
    print_message("# %u replicas: within a factor of two in %u of %d\n", replicas, within, RUNS);
    assert_true(within >= RUNS * 95 / 100);
}

static void test_estimates(void **state)
{
    (void)state;
    estimate(RANDOM, 3);
    estimate(RANDOM, 12);
    estimate(ROTATION, 12);
}

/* A slow server: sessions run side by side, nothing is taken for a hash, the time is kept. */
static void test_slow(void **state)
{
    (void)state;
    EXPECT(one_process, NOT_NEEDED, .answer_us = 100000);
    EXPECT(one_process, NOT_NEEDED, .answer_us = 300000);
    for (uint32_t run = 0; run < 20; run++) {
        struct world deployment = {
            .law = ROTATION, .replicas = 4, .answer_us = 150000, .seed = run * 31};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        struct lp_verdict verdict = judged(w);
        assert_int_equal(verdict.affinity, LP_AFFINITY_NONE);
        assert_true(lp_probe_seen(w->probe)->took_ms <= 9700);
        world_free(w);
    }
}

/* --- rests --- */

static void test_rest(void **state)
{
    (void)state;
    static const struct world FORGETS = {.forget_us = 5000000};
    static const struct world CUTS = {.cut_us = 8000000};
    struct lp_probe_args args = {.rest_s = 20};
    expect_args(&CUTS, args, LP_SITUATION_idle_cut, LP_AFFINITY_NOT_NEEDED);
    struct world *w = probe_world(&FORGETS, args);
    const struct lp_seen_idle *idle = &lp_probe_seen(w->probe)->idle;
    assert_int_equal(judged(w).situation, LP_SITUATION_idle_loss);
    assert_int_equal(idle->alive_s, 4);
    assert_int_equal(idle->dead_s, 6);
    assert_int_equal(idle->tries, 3);
    assert_int_equal(idle->cut_ms[0], 0);
    struct lp_verdict verdict = judged(w);
    check_report(w, &verdict);
    world_free(w);
    w = probe_world(&CUTS, args);
    idle = &lp_probe_seen(w->probe)->idle;
    for (int i = 0; i < 3; i++)
        assert_true(idle->cut_ms[i] > 7500 && idle->cut_ms[i] < 8500);
    assert_int_equal(idle->alive_s, 20);
    world_free(w);
}

/* --- logins --- */

/* A protocol version that is none, or is no string, breaks nothing. */
static void test_odd_versions(void **state)
{
    (void)state;
    static const char *const VERSIONS[] = {"7", "null", "\"\"", "{}", "\"a\\u0007\\nb\"", "[\"x\"]",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "\""};
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++) {
        struct world deployment = {.version = VERSIONS[i]};
        expect_args(&deployment, (struct lp_probe_args){0}, LP_SITUATION_one_process,
            LP_AFFINITY_NOT_NEEDED);
    }
}

static void test_login_metadata(void **state)
{
    (void)state;
#define BEARER(rest) "WWW-Authenticate: Bearer " rest "\r\n"
#define AT(url) BEARER("resource_metadata=\"" url "/.well-known/oauth-protected-resource/mcp\"")
#define HERE "http://127.0.0.1:3000"
    static const struct {
        const char *challenge, *document;
        enum lp_situation situation;
    } ROWS[] = {
        {NULL, NULL, LP_SITUATION_login},
        {AT(HERE), NULL, LP_SITUATION_login},
        {AT(HERE), "{\"resource\":\"" HERE "/mcp\"}", LP_SITUATION_login},
        {AT(HERE), "{\"resource\":\"" HERE "/mcp/\"}", LP_SITUATION_login},
        {AT(HERE), "{\"resource\":\"http:\\/\\/127.0.0.1:3000\\/mcp\"}", LP_SITUATION_login},
        {AT(HERE), "{\"resource\":\"" HERE "/other\"}", LP_SITUATION_login_mismatch},
        {AT(HERE), "{\"resource\":\"https://127.0.0.1:3000/mcp\"}", LP_SITUATION_login_mismatch},
        {AT(HERE), "{\"resource\":7}", LP_SITUATION_login},
        {AT(HERE), "{\"resource\":\"", LP_SITUATION_login},
        {AT(HERE), "<html>", LP_SITUATION_login},
        {AT("http://10.0.0.5:8000"), NULL, LP_SITUATION_login_mismatch},
        {BEARER("resource_metadata=\"/relative\""), NULL, LP_SITUATION_login_mismatch},
        {BEARER("resource_metadata=\""), NULL, LP_SITUATION_login_mismatch},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct world deployment = {
            .is_login = true, .challenge = ROWS[i].challenge, .document = ROWS[i].document};
        expect_args(&deployment, (struct lp_probe_args){0}, ROWS[i].situation, LP_AFFINITY_UNKNOWN);
    }
}

/* --- ends before the end --- */

static void test_hurry(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < 3000; steps += 37) {
        static const struct world DEPLOYMENT = {.law = RANDOM, .replicas = 3, .seed = 3};
        struct world *w = world_new(&DEPLOYMENT);
        world_begin(w, (struct lp_probe_args){.calls = 5});
        for (uint32_t i = 0; i < steps && !w->is_over; i++)
            step(w);
        lp_probe_hurry(w->probe);
        lp_fetcher_settle(w->fetcher);
        while (!w->is_over)
            step(w);
        assert_int_equal(w->live, lp_probe_seen(w->probe)->left);
        struct lp_verdict verdict = judged(w);
        check_report(w, &verdict);
        world_free(w);
    }
}

/* A long test that is broken off ends at once and deletes what it opened. */
static void test_hurry_in_a_rest(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < 200; steps += 7) {
        static const struct world DEPLOYMENT = {.law = ONE};
        struct world *w = world_new(&DEPLOYMENT);
        world_begin(w, (struct lp_probe_args){.calls = 2, .sessions = 2, .rest_s = 100});
        while (!lp_probe_seen(w->probe)->idle.watched_s)
            step(w);
        for (uint32_t i = 0; i < steps && !w->is_over; i++)
            step(w);
        bool is_late = w->now_us > 95000000;
        uint64_t begin_us = w->now_us;
        lp_probe_hurry(w->probe);
        lp_fetcher_settle(w->fetcher);
        while (!w->is_over)
            step(w);
        assert_true(is_late || w->now_us - begin_us < 5000000);
        assert_int_equal(w->live, lp_probe_seen(w->probe)->left);
        world_free(w);
    }
}

/* 5xx in between say nothing of rests. */
static void test_noisy_rest(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        struct world deployment = {.noise = 0.2, .seed = seed * 77};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){.rest_s = 10});
        assert_int_equal(lp_probe_seen(w->probe)->idle.dead_s, 0);
        assert_int_equal(w->live, lp_probe_seen(w->probe)->left);
        world_free(w);
    }
}

/* Given up at any moment, it leaves no memory behind (the sanitizers see it). */
static void test_given_up(void **state)
{
    (void)state;
    static const struct world WORLDS[] = {{.law = COOKIE, .replicas = 3, .cookies = 2},
        {.law = RANDOM, .replicas = 3, .is_old_sse = true}};
    for (uint32_t steps = 0; steps < 2000; steps += 31) {
        struct world *w = world_new(&WORLDS[steps % 2]);
        world_begin(w, (struct lp_probe_args){.sessions = 8, .calls = 4});
        for (uint32_t i = 0; i < steps && !w->is_over; i++)
            step(w);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_calls_in_two_steps),
        cmocka_unit_test(test_cookies),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_id_lost_inward),
        cmocka_unit_test(test_undead),
        cmocka_unit_test(test_no_endpoint),
        cmocka_unit_test(test_old_sse),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_odd_streams),
        cmocka_unit_test(test_wishes),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_hurry),
        cmocka_unit_test(test_odd_versions),
        cmocka_unit_test(test_login_metadata),
        cmocka_unit_test(test_hurry_in_a_rest),
        cmocka_unit_test(test_noisy_rest),
        cmocka_unit_test(test_given_up),
    };
    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
