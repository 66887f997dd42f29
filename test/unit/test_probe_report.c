/* What a probe tells: each figure of the page and of the object, and that neither is more than it
 * may be long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "call/probe_report.h"
#include "wire/json.h"
#include "wire/member.h"

struct told {
    struct lp_seen seen;
    struct lp_verdict verdict;
    struct lp_buf text;
    struct lp_buf json;
};

static struct told *told_new(enum lp_situation situation)
{
    struct told *t = calloc(1, sizeof *t);
    assert_non_null(t);
    const struct lp_situation_info *info = lp_situation_info(situation);
    t->verdict = (struct lp_verdict){.situation = situation,
        .judgement = info->judgement,
        .affinity = info->affinity,
        .remedy = info->remedy};
    t->verdict.holds[situation] = true;
    t->seen.is_open = true;
    return t;
}

static int write_both(struct told *t, size_t bytes_max)
{
    struct lp_report report = {LP_SPAN("http://x.test/mcp"), &t->seen, &t->verdict};
    lp_buf_release(&t->text);
    lp_buf_release(&t->json);
    lp_buf_init(&t->text, bytes_max);
    lp_buf_init(&t->json, bytes_max);
    int err = lp_report_text(&report, &t->text);
    int other = lp_report_json(&report, &t->json);
    return err ? err : other;
}

static void tell(struct told *t)
{
    assert_int_equal(write_both(t, 1 << 20), LP_OK);
    assert_int_equal(lp_buf_append(&t->text, lp_span("", 1)), LP_OK);
    struct lp_json reader;
    lp_json_init(&reader, NULL, NULL);
    assert_int_equal(lp_json_feed(&reader, lp_buf_span(&t->json)), LP_OK);
    assert_int_equal(lp_json_finish(&reader), LP_OK);
}

static bool says(const struct told *t, const char *part)
{
    return strstr(lp_buf_span(&t->text).ptr, part) != NULL;
}

#define SAYS(t, part)                                                                              \
    do {                                                                                           \
        if (!says(t, part))                                                                        \
            print_message("%s\n", lp_buf_span(&(t)->text).ptr);                                    \
        assert_true(says(t, part));                                                                \
    } while (0)

/* A member of the object; with `inner` one of that member. */
static void has(const struct told *t, const char *name, const char *inner, const char *value)
{
    struct lp_span found = lp_member(lp_buf_span(&t->json), lp_span_str(name));
    if (inner)
        found = lp_member(found, lp_span_str(inner));
    if (!lp_span_eq(found, lp_span_str(value)))
        print_message("%s.%s: %.*s\n", name, inner ? inner : "", (int)found.len, found.ptr);
    assert_true(lp_span_eq(found, lp_span_str(value)));
}

static void told_free(struct told *t)
{
    lp_buf_release(&t->text);
    lp_buf_release(&t->json);
    free(t);
}

static void fill_answers(struct lp_seen *seen)
{
    seen->mints_ids = true;
    seen->missing = (struct lp_seen_answer){.is_asked = true, .status = 400};
    seen->unknown = (struct lp_seen_answer){.is_asked = true, .error = LP_ETIMEOUT};
    seen->ended = (struct lp_seen_answer){.is_asked = true, .status = 200, .media = LP_MEDIA_HTML};
    seen->own_delete = (struct lp_seen_answer){.is_asked = true, .status = 405};
    /* own_get: not asked */
}

static void fill_row(struct lp_seen *seen)
{
    struct lp_seen_row *row = lp_seen_add_row(seen, LP_ARM_KEPT, true);
    lp_seen_add_call(row, LP_MARK_OK, 1);
    lp_seen_add_row(seen, LP_ARM_FRESH, true); /* without calls: not shown */
    row = lp_seen_add_row(seen, LP_ARM_FRESH, true);
    for (uint32_t i = 0; i < LP_SEEN_CALLS_MAX; i++)
        lp_seen_add_call(row, i == 1 ? LP_MARK_LOST : i == 2 ? LP_MARK_FAULT : LP_MARK_OK, i);
}

/* A deployment in which everything is there to be told. */
static struct told *told_all(void)
{
    struct told *t = told_new(LP_SITUATION_rotation);
    struct lp_seen *seen = &t->seen;
    struct lp_verdict *v = &t->verdict;
    fill_row(seen);
    fill_answers(seen);
    v->rates[LP_ARM_FRESH] = (struct lp_rate){.ok = 1, .lost = 2, .faults = 3, .rows = 4};
    v->rates[LP_ARM_KEPT] = (struct lp_rate){.faults = 5, .rows = 1};
    v->holds[LP_SITUATION_session_hash] = true;
    v->holds[LP_SITUATION_buffered] = true;
    v->holds[LP_SITUATION_slow_stream] = true;
    v->pure = (struct lp_pure_rows){.right = 6, .wrong = 7};
    v->rotation = 3;
    v->replicas = (struct lp_estimate){.value = 3, .low = 3, .high = 3};
    seen->cookie_count = 2;
    strcpy(seen->cookies[0], "first");
    strcpy(seen->cookies[1], "second");
    seen->gets = (struct lp_seen_tally){.asked = 4, .fine = 3, .lost = 1};
    seen->deletes = (struct lp_seen_tally){.asked = 2, .refused = 2};
    seen->sse_is_beside = true;
    seen->sse = (struct lp_seen_tally){.asked = 8, .fine = 8};
    seen->stream = (struct lp_seen_stream){.no_head = 2, .head_ms = 11, .post_ms = 12};
    seen->undead = 1;
    seen->ended_checks = 9;
    seen->left = 13;
    strcpy(seen->legacy, "2025-11-25");
    strcpy(seen->modern, "2026-07-28");
    seen->hop_count = 2;
    strcpy(seen->hops[0], "Via: a");
    strcpy(seen->hops[1], "Server: b");
    seen->cors_is_offered = true;
    seen->idle = (struct lp_seen_idle){
        .watched_s = 130, .tries = 2, .cut_ms = {1500, 0}, .alive_s = 60, .dead_s = 90};
    seen->is_cut_short = true;
    strcpy(seen->failure, "in words");
    return t;
}

static void test_everything(void **state)
{
    (void)state;
    struct told *t = told_all();
    tell(t);
    SAYS(t, "limpet probe http://x.test/mcp\n");
    SAYS(t, "  BROKEN: no affinity: requests go to the replicas in strict rotation.\n");
    SAYS(t, "  in words\n");
    SAYS(t, "  one session       Ox!OOOO");
    SAYS(t, "  new connections   1 of 3 calls found their session (33 %), 4 sessions;\n");
    SAYS(t, "3 more were answered by an error of the server, or not at\n");
    SAYS(t, "                    all\n"); /* 80 columns */
    SAYS(t, "  kept connections  0 of 0 calls found their session (0 %), 1 sessions;\n");
    assert_false(says(t, "with cookies"));
    SAYS(t, "  whole sessions    6 always right, 7 always wrong\n");
    SAYS(t, "  replicas          3\n");
    SAYS(t, "  affinity          none\n");
    SAYS(t, "  cookies           first, second\n");
    SAYS(t, "  GET (stream)      3 of 4 fine; the others did not find their session\n");
    SAYS(t, "head after 11 ms, POSTs take 12 ms\n");
    SAYS(t, "2 got no head in 2.5 s\n");
    SAYS(t, "  DELETE            not offered (405), 2 asked\n");
    SAYS(t, "1 of 9 sessions answered after their DELETE\n");
    SAYS(t, "  left behind       13 sessions could not be deleted\n");
    SAYS(t, "  old SSE beside it 8 of 8 fine\n");
    SAYS(t, "  revisions         2025-11-25; without sessions: 2026-07-28\n");
    SAYS(t, "  named on the way  Via: a\n                    Server: b\n");
    SAYS(t, "  browsers (CORS)   may come, but do not see the session id\n");
    SAYS(t, "  quiet streams     cut after 1.5 s of silence\n");
    SAYS(t, "open for 130 s\n");
    SAYS(t, "  idle sessions     alive after 60 s, lost after 90 s\n");
    SAYS(t, "POST without an id       400                           400\n");
    SAYS(t, "POST with an unknown id  404                           no answer  wrong\n");
    SAYS(t, "POST after DELETE        404                           200 (web page)  wrong\n");
    SAYS(t, "DELETE                   2xx, or 405 with Allow        405  wrong\n");
    SAYS(t, "a stream, or 405 with Allow   not asked\n");
    SAYS(t, "  also              event streams are held back on the way\n");
    SAYS(t, "  also              event streams begin late: after 11 ms");
    SAYS(t, "the time was over before everything was asked\n");
    SAYS(t, "  Fix, ");
    SAYS(t, "  Or, ");
    has(t, "situation", NULL, "\"rotation\"");
    has(t, "rotation", NULL, "3");
    has(t, "findings", NULL, "[\"session-hash\",\"rotation\",\"buffered\",\"slow-stream\"]");
    has(t, "replicas", "estimate", "3.00");
    has(t, "cookie", "offered", "[\"first\",\"second\"]");
    has(t, "cookie", "name", "null");
    has(t, "get", "lost", "1");
    has(t, "old_sse", "fine", "8");
    has(t, "stream", "is_buffered", "true");
    has(t, "rest", "streams_cut_ms", "[1500,null]");
    has(t, "rest", "session_lost_s", "90.00");
    has(t, "unknown_id_status", NULL, "null");
    has(t, "revision", NULL, "\"2025-11-25\"");
    has(t, "failure", NULL, "\"in words\"");
    has(t, "is_cut_short", NULL, "true");
    told_free(t);
}

/* Whatever the limit is, nothing is written past it and the error is told. */
static void test_limits(void **state)
{
    (void)state;
    struct told *t = told_all();
    tell(t);
    size_t text_len = t->text.len;
    size_t json_len = t->json.len;
    size_t least = text_len < json_len ? text_len : json_len;
    for (size_t max = 0; max + 1 < least; max += 13) {
        assert_int_equal(write_both(t, max), LP_ELIMIT);
        assert_true(t->text.len <= max && t->json.len <= max);
    }
    told_free(t);
}

/* What failed is told by kind, and of how many. */
static void test_failures_are_counted(void **state)
{
    (void)state;
    struct told *t = told_new(LP_SITUATION_trouble);
    for (uint32_t i = 0; i < 100; i++)
        lp_seen_add_request(&t->seen, i % 3 ? 200 : 503, i % 3 == 0);
    lp_seen_add_request(&t->seen, 0, true);
    tell(t);
    SAYS(t, "  failed            503 in 34 of 101 requests; no answer in 1\n");
    has(t, "requests", NULL, "101");
    has(t, "failed", NULL, "[{\"status\":503,\"count\":34},{\"status\":0,\"count\":1}]");
    for (uint16_t status = 500; status < 520; status++)
        lp_seen_add_request(&t->seen, status, true);
    assert_int_equal(t->seen.fault_count, LP_SEEN_FAULTS_MAX);
    told_free(t);
}

static void test_little_is_told_without_a_session(void **state)
{
    (void)state;
    struct told *t = told_new(LP_SITUATION_web_page);
    t->seen.is_open = false;
    strcpy(t->seen.login, "Bearer realm=\"x\"");
    tell(t);
    SAYS(t, "NO MCP ENDPOINT: this is a web page, not an MCP endpoint.");
    SAYS(t, "Bearer realm");
    assert_false(says(t, "affinity"));
    has(t, "findings", NULL, "[]");
    has(t, "rest", NULL, "null");
    has(t, "failure", NULL, "null");
    has(t, "login", NULL, "\"Bearer realm=\\\"x\\\"\"");
    told_free(t);
}

static void test_replicas(void **state)
{
    (void)state;
    static const struct {
        uint32_t rotation;
        struct lp_estimate estimate;
        const char *line; /* NULL: none */
    } CASES[] = {
        {0, {.value = 3.2, .low = 2, .high = 5.1}, "about 3.2 (2.0 to 5.1)\n"},
        {3, {.value = 3.2, .low = 2, .high = 5.1}, "about 3.2 (2.0 to 5.1)\n"},
        {1, {.value = 1, .low = 1, .high = 1}, "about 1.0 (1.0 to 1.0)\n"},
        {0, {.value = 4}, "at least 4\n"},
        {0, {.low = 20}, "more than 20\n"},
        {0, {.low = 1}, NULL},
        {0, {.value = 1}, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct told *t = told_new(LP_SITUATION_random);
        t->verdict.rotation = CASES[i].rotation;
        t->verdict.replicas = CASES[i].estimate;
        tell(t);
        if (CASES[i].line)
            SAYS(t, CASES[i].line);
        assert_int_equal(says(t, "\n  replicas "), CASES[i].line != NULL);
        told_free(t);
    }
}

static void test_the_cookie_that_holds(void **state)
{
    (void)state;
    struct told *t = told_new(LP_SITUATION_cookie);
    t->seen.is_old_sse = true;
    t->seen.cookie_count = 2;
    strcpy(t->seen.cookies[0], "first");
    strcpy(t->seen.cookies[1], "second");
    t->seen.suffices[1] = true;
    tell(t);
    SAYS(t, "The cookie is second.\n");
    has(t, "cookie", "name", "\"second\"");
    t->seen.suffices[1] = false; /* which of the two is not known */
    tell(t);
    assert_false(says(t, "The cookie is"));
    has(t, "cookie", "name", "null");
    t->seen.cookie_count = 1;
    tell(t);
    SAYS(t, "The cookie is first.\n");
    t->seen.cookie_count = 0;
    tell(t);
    SAYS(t, "  cookies           none was offered\n");
    told_free(t);
}

static void test_notes_of_sessions_that_hold(void **state)
{
    (void)state;
    struct told *t = told_new(LP_SITUATION_one_process);
    struct lp_seen *seen = &t->seen;
    seen->cors_is_offered = seen->cors_shows_id = true;
    strcpy(seen->modern, "2026-07-28");
    seen->idle = (struct lp_seen_idle){.watched_s = 10, .tries = 1, .heard_ms = 5, .alive_s = 8};
    tell(t);
    SAYS(t, "HEALTHY: every request found its session.");
    SAYS(t, "one process, or replicas that nothing told apart\n");
    SAYS(t, "all calls came from one address");
    SAYS(t, "so few sessions do not show a hash");
    SAYS(t, "may come, and see the session id\n");
    SAYS(t, "  revisions         2026-07-28\n");
    SAYS(t, "open for 10 s, with something sent in between\n");
    SAYS(t, "  idle sessions     alive after 8 s\n");
    assert_false(says(t, "Fix"));
    has(t, "rest", "session_lost_s", "null");
    has(t, "fix", NULL, "null");
    seen->sources = 3;
    t->verdict.rates[LP_ARM_FRESH] = (struct lp_rate){.ok = 20, .rows = 20};
    strcpy(seen->legacy, "2025-06-18");
    seen->modern[0] = '\0';
    tell(t);
    assert_false(says(t, "all calls came from one address"));
    assert_false(says(t, "so few sessions"));
    SAYS(t, "20 of 20 calls found their session (100 %), 20 sessions\n");
    SAYS(t, "  revisions         2025-06-18\n");
    told_free(t);
    t = told_new(LP_SITUATION_header);
    tell(t);
    SAYS(t, "all calls came from one address");
    assert_false(says(t, "one process"));
    told_free(t);
}

/* Accepted answers of the table. */
static void test_right_answers(void **state)
{
    (void)state;
    static const struct lp_seen_answer ACCEPTED[] = {{.is_asked = true, .status = 200},
        {.is_asked = true, .status = 204}, {.is_asked = true, .status = 405, .has_allow = true}};
    static const struct lp_seen_answer WRONG[] = {{.is_asked = true, .status = 199},
        {.is_asked = true, .status = 300}, {.is_asked = true, .status = 405},
        {.is_asked = true, .status = 404, .has_allow = true}};
    struct lp_report_row rows[LP_REPORT_ROWS];
    struct lp_seen *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    for (size_t i = 0; i < 3; i++) {
        seen->own_delete = ACCEPTED[i];
        lp_report_rows(seen, rows);
        assert_true(rows[3].is_right);
    }
    for (size_t i = 0; i < 4; i++) {
        seen->own_delete = seen->own_get = WRONG[i];
        lp_report_rows(seen, rows);
        assert_false(rows[3].is_right);
        assert_false(rows[4].is_right);
    }
    seen->own_get = ACCEPTED[2];
    lp_report_rows(seen, rows);
    assert_true(rows[4].is_right);
    seen->own_get = ACCEPTED[0]; /* 200, but no stream */
    lp_report_rows(seen, rows);
    assert_false(rows[4].is_right);
    seen->own_get.media = LP_MEDIA_EVENTS;
    lp_report_rows(seen, rows);
    assert_true(rows[4].is_right);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_failures_are_counted),
        cmocka_unit_test(test_little_is_told_without_a_session),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_the_cookie_that_holds),
        cmocka_unit_test(test_notes_of_sessions_that_hold),
        cmocka_unit_test(test_right_answers),
    };
    return cmocka_run_group_tests_name("probe report", tests, NULL, NULL);
}
