/* The routing decision: every case of route_cases.h gives its verdict, and over the whole space of
 * facts and views nothing else than what the requirements allow can come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gate/route.h"
#include "route_cases.h"

struct route_case {
    const char *what;
    struct lp_route_facts facts;
    struct lp_route_view view;
    enum lp_verdict_kind kind;
    enum lp_reason reason;
};

static const struct route_case CASES[] = {
#define X(                                                                                         \
    what, m, d, e, init, sse_id, cred, id_, closed, known, state, unr, up, sse, mint, chal, v, r)  \
    {what,                                                                                         \
        {.method = LP_METHOD_##m,                                                                  \
            .door = LP_DOOR_##d,                                                                   \
            .era = LP_ERA_##e,                                                                     \
            .is_initialize = init,                                                                 \
            .id_is_sse = sse_id,                                                                   \
            .has_credential = cred,                                                                \
            .id = LP_ID_##id_,                                                                     \
            .stream_closed = closed},                                                              \
        {.owner_known = known,                                                                     \
            .owner = 1,                                                                            \
            .owner_state = LP_REPLICA_##state,                                                     \
            .owner_unreachable = unr,                                                              \
            .any_up = up,                                                                          \
            .sse_on_mcp_path = sse == 2,                                                           \
            .sse_configured = sse > 0,                                                             \
            .mints_ids = LP_##mint,                                                                \
            .challenges = chal},                                                                   \
        LP_VERDICT_##v, LP_REASON_##r},
    ROUTE_CASES(X)
#undef X
#define X(what, m, d, sse_id, init, id_, other, known, state, unr, replay, passed, large, v, r)    \
    {what,                                                                                         \
        {.method = LP_METHOD_##m,                                                                  \
            .door = LP_DOOR_##d,                                                                   \
            .is_initialize = init,                                                                 \
            .id_is_sse = sse_id,                                                                   \
            .id = LP_ID_##id_,                                                                     \
            .was_passed = passed,                                                                  \
            .is_too_large = large},                                                                \
        {.owner_known = known,                                                                     \
            .owner = 1,                                                                            \
            .owner_is_other = other,                                                               \
            .owner_state = LP_REPLICA_##state,                                                     \
            .owner_unreachable = unr,                                                              \
            .any_up = true,                                                                        \
            .sse_configured = true,                                                                \
            .mints_ids = LP_YES,                                                                   \
            .replays = replay},                                                                    \
        LP_VERDICT_##v, LP_REASON_##r},
        ROUTE_PEER_CASES(X)
#undef X
};

enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static void each_case_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const struct route_case *c = &CASES[i];
        struct lp_verdict got = lp_route(&c->facts, &c->view);
        if (got.kind != c->kind || got.reason != c->reason)
            fail_msg("%s: got %s/%s, want %s/%s", c->what, lp_verdict_name(got.kind),
                lp_reason_info(got.reason)->name, lp_verdict_name(c->kind),
                lp_reason_info(c->reason)->name);
        if (got.kind == LP_VERDICT_FORWARD || got.kind == LP_VERDICT_FORWARD_PEER)
            assert_int_equal(got.replica, c->view.owner);
    }
}

/* One point of the space of all facts and views, by number. */
static void unpack(uint32_t n, struct lp_route_facts *facts, struct lp_route_view *view)
{
#define TAKE(count)                                                                                \
    (n % (count));                                                                                 \
    n /= (count)
    static const enum lp_method METHODS[] = {
        LP_METHOD_GET, LP_METHOD_POST, LP_METHOD_DELETE, LP_METHOD_OPTIONS, LP_METHOD_PATCH};
    facts->method = METHODS[n % 5];
    n /= 5;
    facts->door = TAKE(4);
    facts->era = TAKE(2);
    facts->is_initialize = TAKE(2);
    facts->id_is_sse = TAKE(2);
    facts->has_credential = TAKE(2);
    facts->id = TAKE(7);
    facts->stream_closed = TAKE(2);
    facts->was_passed = TAKE(2);
    facts->is_too_large = TAKE(2);
    view->owner_is_other = TAKE(2);
    view->replays = TAKE(2);
    view->owner_known = TAKE(2);
    view->owner_state = TAKE(4);
    view->owner_unreachable = TAKE(2);
    view->any_up = TAKE(2);
    view->sse_configured = TAKE(2);
    view->sse_on_mcp_path = TAKE(2);
    view->mints_ids = TAKE(3);
    view->challenges = TAKE(2);
#undef TAKE
    view->owner = 3;
}

enum { SPACE = 5 * 4 * 2 * 2 * 2 * 2 * 7 * 2 * 2 * 2 * 2 * 2 * 2 * 4 * 2 * 2 * 2 * 2 * 3 * 2 };

static void laws_hold_everywhere(void **state)
{
    (void)state;
    uint32_t kinds[7] = {0};
    for (uint32_t n = 0; n < SPACE; n++) {
        struct lp_route_facts f = {0};
        struct lp_route_view v = {0};
        unpack(n, &f, &v);
        struct lp_verdict got = lp_route(&f, &v);
        kinds[got.kind]++;
        if (got.kind == LP_VERDICT_REPLAY) {
            /* once, only what is another's, and only what the platform can take */
            assert_true(f.id == LP_ID_GOOD && v.owner_is_other && !f.stream_closed);
            assert_true(v.replays && !f.was_passed && !f.is_too_large);
        } else if (got.kind == LP_VERDICT_FORWARD || got.kind == LP_VERDICT_FORWARD_PEER) {
            /* only with a ticket that opened, only to its own replica, and never to a dead one */
            assert_true(f.id == LP_ID_GOOD && v.owner_known && !f.stream_closed);
            assert_int_equal(got.kind == LP_VERDICT_FORWARD_PEER, v.owner_is_other);
            assert_true(got.kind == LP_VERDICT_FORWARD || !f.was_passed);
            assert_int_equal(got.replica, 3);
            assert_true(v.owner_state != LP_REPLICA_GONE);
            assert_true(f.era == LP_ERA_LEGACY || f.method != LP_METHOD_POST || f.id_is_sse);
        } else if (got.kind != LP_VERDICT_ANSWER) {
            assert_true(v.any_up);
        } else {
            int status = lp_reason_info(got.reason)->http_status;
            assert_true(status >= 400);
            /* [G6]: a 404 needs an id; its lack is 400; doubt is never 404 */
            if (status == 404)
                assert_true(f.id != LP_ID_NONE || f.id_is_sse);
            if (v.owner_state == LP_REPLICA_DOUBT && v.owner_known && f.id == LP_ID_GOOD &&
                !f.stream_closed && !(v.owner_is_other && f.was_passed))
                assert_true(status != 404);
        }
    }
    for (int k = 0; k < 7; k++)
        assert_true(kinds[k] > 0);
}

/* What lasts is not begun any more; all else is as it was. */
static void a_stop_refuses_what_lasts(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < SPACE; n++) {
        struct lp_route_facts f = {0};
        struct lp_route_view v = {0};
        unpack(n, &f, &v);
        struct lp_verdict before = lp_route(&f, &v);
        f.is_listen = n % 7 == 0; /* which changes nothing else */
        v.stopping = true;
        struct lp_verdict got = lp_route(&f, &v);
        bool is_stream =
            f.method == LP_METHOD_GET && f.door != LP_DOOR_METADATA && f.door != LP_DOOR_PASS;
        bool lasts = before.kind == LP_VERDICT_NEW_SESSION ||
            before.kind == LP_VERDICT_NEW_STREAM ||
            ((is_stream || f.is_listen) && before.kind != LP_VERDICT_ANSWER &&
                before.kind != LP_VERDICT_REPLAY);
        assert_int_equal(got.kind, lasts ? LP_VERDICT_ANSWER : before.kind);
        assert_int_equal(got.reason, lasts ? LP_REASON_stopping : before.reason);
    }
}

/* A sidecar that does not know all its peers yet cannot say that a session is lost ([S3]). */
static void the_unsettled_is_not_lost(void **state)
{
    static const struct {
        bool is_unsettled, was_passed, replays, is_too_large, is_sse;
        enum lp_method method;
        enum lp_reason reason; /* none: it is replayed */
    } ROWS[] = {
        {1, 0, 0, 0, 0, LP_METHOD_POST, LP_REASON_peers_unsettled},
        {1, 0, 0, 0, 0, LP_METHOD_GET, LP_REASON_peers_unsettled},
        {1, 0, 0, 0, 0, LP_METHOD_DELETE, LP_REASON_peers_unsettled},
        {0, 0, 0, 0, 0, LP_METHOD_POST, LP_REASON_session_no_replica},
        {1, 1, 0, 0, 0, LP_METHOD_POST, LP_REASON_session_passed_on}, /* once is once */
        {1, 0, 1, 0, 0, LP_METHOD_POST, LP_REASON_none},
        {1, 0, 1, 1, 0, LP_METHOD_POST, LP_REASON_peers_unsettled},
        {0, 0, 1, 1, 0, LP_METHOD_POST, LP_REASON_replay_too_large},
        {1, 0, 0, 0, 1, LP_METHOD_POST, LP_REASON_peers_unsettled},
        {1, 0, 0, 0, 1, LP_METHOD_GET, LP_REASON_method_not_allowed},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof ROWS / sizeof ROWS[0]; i++) {
        size_t row = i / 2;
        struct lp_route_facts facts = {.method = ROWS[row].method,
            .door = LP_DOOR_MCP,
            .id = LP_ID_GOOD,
            .id_is_sse = ROWS[row].is_sse,
            .was_passed = ROWS[row].was_passed,
            .is_too_large = ROWS[row].is_too_large};
        struct lp_route_view view = {.any_up = true,
            .owner_is_other = true,
            .unsettled = ROWS[row].is_unsettled,
            .replays = ROWS[row].replays,
            .challenges = i % 2}; /* 503 comes before a server's 401 */
        struct lp_verdict verdict = lp_route(&facts, &view);
        enum lp_reason want = ROWS[row].reason;
        bool is_lost = want && lp_reason_info(want)->jsonrpc_code == -32001;
        if (is_lost && view.challenges)
            want = LP_REASON_challenged;
        if (verdict.reason != want ||
            verdict.kind != (want ? LP_VERDICT_ANSWER : LP_VERDICT_REPLAY))
            fail_msg("row %zu: %s", row, lp_reason_info(verdict.reason)->name);
    }
}

/* About a task one goes where its name says, as with a session; what is lost is an unknown task
 * ([E2]). */
static void a_task_goes_to_its_owner(void **state)
{
    static const struct {
        enum lp_id_state id;
        bool is_known, is_other, was_passed, replays, is_unsettled, is_unreachable, challenges;
        enum lp_replica_state owner;
        enum lp_verdict_kind kind;
        enum lp_reason reason;
    } ROWS[] = {
        {LP_ID_GOOD, 1, 0, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_FORWARD, LP_REASON_none},
        {LP_ID_GOOD, 1, 0, 0, 0, 0, 0, 1, LP_REPLICA_DRAINING, LP_VERDICT_FORWARD, LP_REASON_none},
        {LP_ID_GOOD, 1, 0, 0, 0, 0, 1, 0, LP_REPLICA_DOUBT, LP_VERDICT_ANSWER,
            LP_REASON_owner_in_doubt},
        {LP_ID_GOOD, 1, 0, 0, 0, 0, 0, 0, LP_REPLICA_GONE, LP_VERDICT_ANSWER,
            LP_REASON_task_unknown},
        {LP_ID_GOOD, 0, 0, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER, LP_REASON_task_unknown},
        {LP_ID_FORGED, 0, 0, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER,
            LP_REASON_task_unknown},
        {LP_ID_EXPIRED, 0, 0, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER,
            LP_REASON_task_unknown},
        {LP_ID_NO_OWNER, 0, 0, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER,
            LP_REASON_task_unknown},
        {LP_ID_FORGED, 0, 0, 0, 0, 0, 0, 1, LP_REPLICA_UP, LP_VERDICT_ANSWER, LP_REASON_challenged},
        {LP_ID_GOOD, 1, 1, 0, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_FORWARD_PEER, LP_REASON_none},
        {LP_ID_GOOD, 1, 1, 1, 0, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER, LP_REASON_task_unknown},
        {LP_ID_GOOD, 0, 1, 0, 1, 0, 0, 0, LP_REPLICA_UP, LP_VERDICT_REPLAY, LP_REASON_none},
        {LP_ID_GOOD, 0, 1, 0, 0, 1, 0, 0, LP_REPLICA_UP, LP_VERDICT_ANSWER,
            LP_REASON_peers_unsettled},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct lp_route_facts facts = {.method = LP_METHOD_POST,
            .door = LP_DOOR_MCP,
            .era = LP_ERA_MODERN,
            .is_task = true,
            .id = ROWS[i].id,
            .was_passed = ROWS[i].was_passed};
        struct lp_route_view view = {.any_up = true,
            .owner_known = ROWS[i].is_known,
            .owner_is_other = ROWS[i].is_other,
            .owner_state = ROWS[i].owner,
            .owner_unreachable = ROWS[i].is_unreachable,
            .unsettled = ROWS[i].is_unsettled,
            .replays = ROWS[i].replays,
            .challenges = ROWS[i].challenges};
        struct lp_verdict verdict = lp_route(&facts, &view);
        if (verdict.kind != ROWS[i].kind || verdict.reason != ROWS[i].reason)
            fail_msg("row %zu: %s", i, lp_reason_info(verdict.reason)->name);
    }
}

/* The same where the ticket's owner cannot even be named. */
static void an_unsettled_ticket_is_not_lost(void **state)
{
    struct lp_route_facts facts = {.method = LP_METHOD_POST, .door = LP_DOOR_MCP, .id = LP_ID_GOOD};
    struct lp_route_view view = {.any_up = true, .unsettled = true};
    (void)state;
    assert_int_equal(lp_route(&facts, &view).reason, LP_REASON_peers_unsettled);
    facts.was_passed = true;
    assert_int_equal(lp_route(&facts, &view).reason, LP_REASON_session_no_replica);
}

static void verdicts_have_names(void **state)
{
    (void)state;
    static const char *const NAMES[] = {
        "forward", "new_session", "new_stream", "any", "answer", "forward_peer", "replay"};
    for (enum lp_verdict_kind kind = LP_VERDICT_FORWARD; kind <= LP_VERDICT_REPLAY; kind++)
        assert_string_equal(lp_verdict_name(kind), NAMES[kind]);
    assert_string_equal(lp_verdict_name((enum lp_verdict_kind)99), "");
}

static void print_table(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        printf("%-42s %-12s %s\n", CASES[i].what, lp_verdict_name(CASES[i].kind),
            CASES[i].reason ? lp_reason_info(CASES[i].reason)->name : "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_has_its_verdict),
        cmocka_unit_test(laws_hold_everywhere),
        cmocka_unit_test(a_stop_refuses_what_lasts),
        cmocka_unit_test(the_unsettled_is_not_lost),
        cmocka_unit_test(an_unsettled_ticket_is_not_lost),
        cmocka_unit_test(a_task_goes_to_its_owner),
        cmocka_unit_test(verdicts_have_names),
    };
    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        print_table();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
