/* Replica states by what connections do, incarnations, and the pick for new sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "gate/fleet.h"

static const struct lp_conf_replica REPLICAS[] = {
    {.name = {"a:1/mcp", 7}, .weight = 1},
    {.name = {"b:1/mcp", 7}, .weight = 1},
    {.name = {"c:1/mcp", 7}, .weight = 2},
};

static struct lp_keyring ring;
static struct lp_conf_server conf;
static struct lp_fleet fleet;

static int set_up(void **state)
{
    (void)state;
    uint32_t line;
    conf = (struct lp_conf_server){.replicas = REPLICAS, .replica_count = 3};
    struct lp_span text = LP_SPAN("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                                  "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    if (lp_keyring_parse(text, &ring, &line))
        return -1;
    return lp_fleet_init(&fleet, &conf, &ring, 0);
}

static int tear_down(void **state)
{
    (void)state;
    lp_fleet_fini(&fleet);
    return 0;
}

static void refused_twice_is_gone_at_once(void **state)
{
    (void)state;
    struct lp_replica *r = &fleet.replicas[0];
    assert_true(lp_fleet_refused(r, 1000));
    assert_int_equal(r->state, LP_REPLICA_DOUBT);
    assert_false(r->unreachable);
    assert_true(lp_fleet_refused(r, 1001));
    assert_int_equal(r->state, LP_REPLICA_GONE);
    assert_false(lp_fleet_refused(r, 1002)); /* no news */
    assert_int_equal(r->incarnation, 2);     /* one suspicion, not three */
}

static void refused_once_and_back(void **state)
{
    (void)state;
    struct lp_replica *r = &fleet.replicas[0];
    assert_true(lp_fleet_refused(r, 1000));
    assert_true(lp_fleet_succeeded(r));
    assert_int_equal(r->state, LP_REPLICA_UP);
    assert_true(lp_fleet_refused(r, 2000)); /* counts anew */
    assert_int_equal(r->state, LP_REPLICA_DOUBT);
    assert_int_equal(r->incarnation, 3);
}

static void silence_is_doubt_and_ends_by_itself(void **state)
{
    (void)state;
    struct lp_replica *r = &fleet.replicas[0];
    assert_true(lp_fleet_timed_out(r, 1000));
    assert_true(r->unreachable);
    assert_int_equal(r->incarnation, 1);
    assert_false(lp_fleet_check_age(r, 3000000, 3000999));
    assert_false(lp_fleet_timed_out(r, 2000)); /* the first time counts */
    assert_true(lp_fleet_check_age(r, 3000000, 3001000));
    assert_int_equal(r->state, LP_REPLICA_GONE);
    assert_int_equal(r->incarnation, 2);
    assert_false(lp_fleet_timed_out(r, 9000000)); /* gone stays gone */
    assert_true(lp_fleet_succeeded(r));
    assert_int_equal(r->state, LP_REPLICA_UP);
    assert_false(r->unreachable);
}

static void a_broken_connection_moves_the_incarnation_once(void **state)
{
    (void)state;
    struct lp_replica *r = &fleet.replicas[0];
    lp_fleet_broke(r);
    lp_fleet_broke(r);
    assert_int_equal(r->state, LP_REPLICA_UP);
    assert_int_equal(r->incarnation, 2);
    assert_false(lp_fleet_succeeded(r));
    lp_fleet_broke(r);
    assert_int_equal(r->incarnation, 3);
}

static void what_others_saw_is_adopted(void **state)
{
    (void)state;
    struct lp_replica *r = &fleet.replicas[0];
    assert_true(lp_fleet_adopt(r, LP_REPLICA_GONE, 5));
    assert_false(lp_fleet_adopt(r, LP_REPLICA_GONE, 6));
    assert_int_equal(r->state, LP_REPLICA_GONE);
    assert_true(lp_fleet_adopt(r, LP_REPLICA_UP, 7));
    r->state = LP_REPLICA_DRAINING;
    assert_false(lp_fleet_succeeded(r)); /* an answer does not end draining */
    assert_int_equal(r->state, LP_REPLICA_DRAINING);
}

static void a_ticket_names_a_replica_under_each_key(void **state)
{
    (void)state;
    for (uint32_t key = 0; key < 2; key++)
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(lp_fleet_find(&fleet, key, fleet.replicas[i].hash[key]), i);
    assert_int_equal(lp_fleet_find(&fleet, 1, fleet.replicas[0].hash[0]), 3); /* the other key */
}

static void new_sessions_go_where_there_are_least(void **state)
{
    (void)state;
    uint32_t got[3] = {0};
    for (int i = 0; i < 40; i++) {
        uint32_t at = lp_fleet_pick(&fleet, true, UINT32_MAX);
        fleet.replicas[at].sessions++;
        got[at]++;
    }
    assert_int_equal(got[0], 10);
    assert_int_equal(got[1], 10);
    assert_int_equal(got[2], 20); /* weight 2 */
    /* those still opening count as well: a burst must not fall on one */
    fleet.replicas[0].opening = 100;
    for (int i = 0; i < 6; i++)
        assert_int_not_equal(lp_fleet_pick(&fleet, true, UINT32_MAX), 0);
}

static void turns_are_fair(void **state)
{
    (void)state;
    conf.balance = LP_BALANCE_ROUND_ROBIN;
    fleet.replicas[0].sessions = 1000;
    uint32_t got[3] = {0};
    for (int i = 0; i < 30; i++)
        got[lp_fleet_pick(&fleet, true, UINT32_MAX)]++;
    for (int i = 0; i < 3; i++)
        assert_int_equal(got[i], 10);
}

/* The same whatever the order of the list, and another one only while that one is gone. */
static void the_pinned_is_the_same_everywhere(void **state)
{
    (void)state;
    static struct lp_conf_replica turned[3];
    for (int i = 0; i < 3; i++)
        turned[i] = REPLICAS[2 - i];
    struct lp_conf_server other_conf = {.replicas = turned, .replica_count = 3};
    struct lp_fleet other;
    assert_int_equal(lp_fleet_init(&other, &other_conf, &ring, 0), LP_OK);
    uint32_t first = lp_fleet_pinned(&fleet, UINT32_MAX);
    assert_int_equal(lp_fleet_pinned(&other, UINT32_MAX), 2 - first);
    lp_fleet_fini(&other);
    uint32_t second = lp_fleet_pinned(&fleet, first);
    assert_int_not_equal(first, second);
    fleet.replicas[first].state = LP_REPLICA_DOUBT;
    assert_int_equal(lp_fleet_pinned(&fleet, UINT32_MAX), first);
    fleet.replicas[first].state = LP_REPLICA_GONE;
    assert_int_equal(lp_fleet_pinned(&fleet, UINT32_MAX), second);
    uint32_t third = 3 - first - second;
    fleet.replicas[third].state = LP_REPLICA_GONE;
    assert_int_equal(lp_fleet_pinned(&fleet, second), second); /* the only one, though avoided */
    fleet.replicas[second].state = LP_REPLICA_GONE;
    assert_int_equal(lp_fleet_pinned(&fleet, second), 3);
    assert_int_equal(lp_fleet_pinned(&fleet, UINT32_MAX), 3);
    fleet.replicas[second].state = LP_REPLICA_UP;
    fleet.replicas[second].is_absent = true;
    assert_int_equal(lp_fleet_pinned(&fleet, UINT32_MAX), 3);
}

static void the_dead_are_not_picked(void **state)
{
    (void)state;
    fleet.replicas[0].state = LP_REPLICA_GONE;
    fleet.replicas[1].state = LP_REPLICA_DOUBT;
    for (int i = 0; i < 5; i++)
        assert_int_equal(lp_fleet_pick(&fleet, true, UINT32_MAX), 2);
    assert_int_equal(lp_fleet_pick(&fleet, false, 2), 1); /* in doubt is better than nothing */
    fleet.replicas[2].state = LP_REPLICA_GONE;
    assert_int_equal(lp_fleet_pick(&fleet, false, 1), 1); /* the only one left, though avoided */
    assert_true(lp_fleet_any_up(&fleet));
    fleet.replicas[1].state = LP_REPLICA_GONE;
    assert_int_equal(lp_fleet_pick(&fleet, false, 1), 3);
    assert_int_equal(lp_fleet_pick(&fleet, true, UINT32_MAX), 3);
    assert_false(lp_fleet_any_up(&fleet));
}

static void draining_takes_no_new_session(void **state)
{
    (void)state;
    fleet.replicas[0].state = LP_REPLICA_DRAINING;
    for (int i = 0; i < 9; i++)
        assert_int_not_equal(lp_fleet_pick(&fleet, true, UINT32_MAX), 0);
}

static void states_have_names(void **state)
{
    (void)state;
    assert_string_equal(lp_replica_state_name(LP_REPLICA_UP), "up");
    assert_string_equal(lp_replica_state_name(LP_REPLICA_DOUBT), "doubt");
    assert_string_equal(lp_replica_state_name(LP_REPLICA_GONE), "gone");
    assert_string_equal(lp_replica_state_name(LP_REPLICA_DRAINING), "draining");
    assert_string_equal(lp_replica_state_name((enum lp_replica_state)9), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void why_a_connection_failed_is_told_and_judged(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *sentence;
        bool is_silence;
        bool is_refusal;
    } ROWS[] = {
        {LP_EREFUSED, "connection refused", false, true},
        {LP_ETIMEOUT, "no answer to the connection in time", true, false},
        {LP_EUNREACHABLE, "no way to its address", true, false},
        {LP_ENOT_FOUND, "its name was not found", true, false},
        {LP_ELIMIT,
            "no file descriptor, memory or connection is left in this process; raise LimitNOFILE "
            "(ulimit -n) or lower connections_max",
            false, false},
        {LP_EIO, "the system does not allow it; of a unix socket, look at its permissions", false,
            false},
        {LP_ETLS, "the TLS handshake failed; see whether that port speaks https and not http", true,
            false},
        {LP_ETLS_UNTRUSTED, "nobody we trust has signed its certificate; name its CA with tls_ca",
            true, false},
        {LP_ETLS_NAME, "the certificate is for another name; use one of its names in the URL", true,
            false},
        {LP_ETLS_EXPIRED, "the certificate is too old or too new; renew it or set the clock", true,
            false},
        {LP_ENOMEM, "out of memory", false, false},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        assert_string_equal(lp_fleet_connect_sentence(ROWS[i].error), ROWS[i].sentence);
        assert_int_equal(lp_fleet_is_silence(ROWS[i].error), ROWS[i].is_silence);
        assert_int_equal(lp_fleet_is_refusal(ROWS[i].error), ROWS[i].is_refusal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refused_twice_is_gone_at_once),
        TEST(refused_once_and_back),
        cmocka_unit_test(why_a_connection_failed_is_told_and_judged),
        TEST(silence_is_doubt_and_ends_by_itself),
        TEST(a_broken_connection_moves_the_incarnation_once),
        TEST(what_others_saw_is_adopted),
        TEST(a_ticket_names_a_replica_under_each_key),
        TEST(new_sessions_go_where_there_are_least),
        TEST(turns_are_fair),
        TEST(the_dead_are_not_picked),
        TEST(the_pinned_is_the_same_everywhere),
        TEST(draining_takes_no_new_session),
        TEST(states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
