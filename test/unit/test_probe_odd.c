/* The probe against servers with a habit of their own: logins and their metadata, sessions that
 * nobody asked for, streams that are not quiet, old SSE in another order, and addresses without a
 * path. */
#include "probe_world.h"

#include "call/verdict.h"

static struct lp_verdict judged(const struct world *w)
{
    struct lp_verdict verdict;
    lp_verdict_judge(lp_probe_seen(w->probe), &verdict);
    return verdict;
}

/* --- logins --- */

#define OWN "http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp"

static void test_logins(void **state)
{
    (void)state;
    static char long_document[700];
    memset(long_document, 'x', sizeof long_document - 1);
    memcpy(long_document, "{\"resource\":\"", 13);
    memcpy(long_document + sizeof long_document - 3, "\"}", 3);
    static const struct {
        const char *challenge; /* behind WWW-Authenticate: */
        const char *document;
        const char *metadata_url;
        const char *resource;
        bool is_mismatch;
    } CASES[] = {
        {"Bearer realm=\"x\"", NULL, "", "", false},
        {"Bearer resource_metadata=\"" OWN "\"", NULL, OWN, "", false},
        {"Bearer resource_metadata=\"http://elsewhere.test/x\"", NULL, "http://elsewhere.test/x",
            "", true},
        {"Bearer resource_metadata=\"no url\"", NULL, "no url", "", true},
        {"Bearer", "{\"resource\":\"http://127.0.0.1:3000/mcp\"}", "", "http://127.0.0.1:3000/mcp",
            false},
        {"Bearer", "{\"resource\":\"http://127.0.0.1:3000/mcp//\"}", "",
            "http://127.0.0.1:3000/mcp//", false},
        {"Bearer", "{\"resource\":\"http://127.0.0.1:3000/\"}", "", "http://127.0.0.1:3000/", true},
        {"Bearer", "{\"resource\":\"\"}", "", "", true},
        {"Bearer", "{\"resource\":", "", "", false},
        {"Bearer", "{\"other\":1}", "", "", false},
        {"Bearer", long_document, "", "", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char challenge[256];
        static struct world deployment;
        snprintf(challenge, sizeof challenge, "WWW-Authenticate: %s\r\n", CASES[i].challenge);
        deployment =
            (struct world){.is_login = true, .challenge = challenge, .document = CASES[i].document};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        const struct lp_seen *seen = lp_probe_seen(w->probe);
        assert_string_equal(seen->login, CASES[i].challenge);
        assert_string_equal(seen->metadata_url, CASES[i].metadata_url);
        assert_string_equal(seen->resource, CASES[i].resource);
        assert_int_equal(seen->has_login_mismatch, CASES[i].is_mismatch);
        assert_int_equal(seen->addresses[0].status, CASES[i].document ? 200 : 401);
        assert_int_equal(judged(w).situation,
            CASES[i].is_mismatch ? LP_SITUATION_login_mismatch : LP_SITUATION_login);
        world_free(w);
    }
}

/* A slash at the end of either makes no other address. */
static void test_a_slash_at_the_end(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.is_login = true,
        .url = "http://127.0.0.1:3000//",
        .document = "{\"resource\":\"http://127.0.0.1:3000\"}"};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){0});
    assert_string_equal(lp_probe_seen(w->probe)->resource, "http://127.0.0.1:3000");
    assert_int_equal(judged(w).situation, LP_SITUATION_login);
    world_free(w);
}

/* The query may hold a secret and is no part of the address that is asked for; what is too long is
 * not asked at all. */
static void test_where_a_login_is_looked_for(void **state)
{
    (void)state;
    static char url[1100];
    memset(url, 'x', sizeof url - 1);
    memcpy(url, "http://127.0.0.1:3000/", 22);
    static const struct {
        const char *url;
        bool is_asked;
    } CASES[] = {{"http://127.0.0.1:3000/mcp?key=SECRET", true}, {"http://127.0.0.1:3000", true},
        {"http://127.0.0.1:3000?key=SECRET", true}, {url, false}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        static struct world deployment;
        deployment = (struct world){.is_login = true, .url = CASES[i].url};
        struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
        assert_int_equal(lp_probe_seen(w->probe)->addresses[2].is_asked, CASES[i].is_asked);
        world_free(w);
    }
}

/* --- the endpoint --- */

/* A session that was opened by a question that was none is deleted: nothing stays. */
static void test_sessions_that_nobody_asked_for(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.gives_orphans = true};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){0});
    assert_int_equal(judged(w).situation, LP_SITUATION_one_process);
    assert_int_equal(w->orphans_deleted, 1);
    world_free(w);
}

static void test_addresses_without_a_path(void **state)
{
    (void)state;
    static const char *const URLS[] = {"http://127.0.0.1:3000", "http://127.0.0.1:3000/",
        "http://127.0.0.1:3000/a/mcp?x=/y", "http://h"};
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        static struct world deployment;
        deployment = (struct world){.url = URLS[i], .has_no_sources = true};
        struct world *w =
            probe_world(&deployment, (struct lp_probe_args){.sessions = 4, .calls = 4});
        assert_int_equal(judged(w).situation, LP_SITUATION_one_process);
        assert_int_equal(lp_probe_seen(w->probe)->sources, 0);
        assert_false(lp_probe_seen(w->probe)->sse_is_beside);
        world_free(w);
    }
    lp_probe_free(NULL);
}

/* As many revisions as there is room for. */
static void test_many_versions(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.is_modern = true,
        .versions = "[\"2026-07-28\",\"2027-01-01\",\"\",\"a-name-that-is-very-long-and-has-many-"
                    "letters-so-that-there-is-no-room-for-it-and-for-the-names-that-came-before-"
                    "it\",\"2028\"]"};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){.sessions = 3, .calls = 3});
    const char *modern = lp_probe_seen(w->probe)->modern;
    assert_non_null(strstr(modern, "2026-07-28 2027-01-01"));
    assert_non_null(strstr(modern, "2028"));
    assert_null(strstr(modern, "a-name"));
    world_free(w);
}

/* No call ever finds its session: sixty more are tried, twice. */
static void test_more_and_more(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.law = RANDOM, .replicas = 900, .seed = 5};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){.sessions = 4, .calls = 2});
    const struct lp_seen *seen = lp_probe_seen(w->probe);
    assert_true(seen->openings > 100);
    assert_int_equal(w->live, seen->left);
    world_free(w);
}

/* Two rotations in step, as HAProxy makes them: whatever place each begins at, it is seen that GET
 * and DELETE do not follow their session. */
static void test_methods_in_a_rotation_of_their_own(void **state)
{
    (void)state;
    for (uint32_t replicas = 2; replicas <= 5; replicas++)
        for (uint32_t phase = 0; phase < replicas; phase++) {
            static struct world deployment;
            deployment = (struct world){.law = HEADER,
                .replicas = replicas,
                .rotates_apart = true,
                .free_turn = phase,
                .get_is_free = true};
            struct world *w = probe_world(&deployment, (struct lp_probe_args){0});
            assert_int_equal(judged(w).situation, LP_SITUATION_get_elsewhere);
            world_free(w);
            deployment.get_is_free = false;
            deployment.delete_is_free = true;
            w = probe_world(&deployment, (struct lp_probe_args){0});
            assert_int_equal(judged(w).situation, LP_SITUATION_delete_elsewhere);
            world_free(w);
        }
}

/* --- rests --- */

static void test_streams_that_are_not_quiet(void **state)
{
    (void)state;
    static const struct world DEPLOYMENT = {.beats = true};
    struct world *w = probe_world(&DEPLOYMENT, (struct lp_probe_args){.rest_s = 3});
    const struct lp_seen_idle *idle = &lp_probe_seen(w->probe)->idle;
    assert_int_equal(idle->tries, 3);
    assert_int_equal(idle->cut_ms[0], 0);
    assert_true(idle->heard_ms > 2000 && idle->heard_ms <= 3000);
    world_free(w);
}

static void test_rests_that_say_nothing(void **state)
{
    (void)state;
    static const struct world WORLDS[] = {{.is_stateless = true}, {.has_no_stream = true},
        {.law = RANDOM, .replicas = 3}, {.is_old_sse = true}, {.is_modern = true}};
    for (size_t i = 0; i < 5; i++) {
        struct world *w =
            probe_world(&WORLDS[i], (struct lp_probe_args){.sessions = 4, .rest_s = 3});
        assert_int_equal(lp_probe_seen(w->probe)->idle.tries, i == 0 ? 3 : 0);
        assert_int_equal(lp_probe_seen(w->probe)->idle.alive_s, i == 1 ? 3 : 0);
        world_free(w);
    }
}

/* --- old SSE --- */

static void test_old_sse_in_another_order(void **state)
{
    (void)state;
    static const struct world WORLDS[] = {
        {.is_old_sse = true, .answers_first = true}, {.is_old_sse = true, .errors = true}};
    for (size_t i = 0; i < 2; i++) {
        struct world *w = probe_world(&WORLDS[i], (struct lp_probe_args){0});
        struct lp_verdict verdict = judged(w);
        assert_int_equal(verdict.situation, LP_SITUATION_one_process);
        assert_int_equal(verdict.rates[LP_ARM_FRESH].lost, 0);
        world_free(w);
    }
}

/* Errors of the server are no lost sessions, whichever transport they come by. */
static void test_old_sse_with_noise(void **state)
{
    (void)state;
    static const struct world WORLDS[] = {{.is_old_sse = true, .noise = 0.1, .seed = 7},
        {.has_sse_beside = true, .noise = 0.1, .seed = 9}};
    for (size_t i = 0; i < 2; i++) {
        struct world *w = probe_world(&WORLDS[i], (struct lp_probe_args){0});
        const struct lp_seen *seen = lp_probe_seen(w->probe);
        struct lp_verdict verdict = judged(w);
        assert_true(verdict.rates[LP_ARM_FRESH].faults > 0);
        assert_int_equal(verdict.rates[LP_ARM_FRESH].lost, 0);
        assert_int_equal(seen->sse.lost, 0);
        assert_true(i == 0 || seen->sse.faults > 0);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logins),
        cmocka_unit_test(test_a_slash_at_the_end),
        cmocka_unit_test(test_where_a_login_is_looked_for),
        cmocka_unit_test(test_sessions_that_nobody_asked_for),
        cmocka_unit_test(test_addresses_without_a_path),
        cmocka_unit_test(test_many_versions),
        cmocka_unit_test(test_more_and_more),
        cmocka_unit_test(test_methods_in_a_rotation_of_their_own),
        cmocka_unit_test(test_streams_that_are_not_quiet),
        cmocka_unit_test(test_rests_that_say_nothing),
        cmocka_unit_test(test_old_sse_in_another_order),
        cmocka_unit_test(test_old_sse_with_noise),
    };
    return cmocka_run_group_tests_name("probe odd", tests, NULL, NULL);
}
