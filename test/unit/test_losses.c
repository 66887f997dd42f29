/* Why sessions ended, and replicas that lose what they have just given out (gate/home.c,
 * gate/losses.c; cases LIF-06, AFF-10). */
#include "engine_harness.h"

static void mail_in(struct world *w, struct lp_mail mail)
{
    tell(w,
        (struct lp_event){
            .kind = LP_EV_MAIL, .u.mail.bytes = lp_span((const char *)&mail, sizeof mail)});
}

static void opened(struct world *w, uint64_t number)
{
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_OPENED, .key = {1, number}});
}

static void ended(struct world *w, uint64_t number, enum lp_end why)
{
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_ENDED, .key = {1, number}, .delta = (int32_t)why});
}

static uint64_t count(const struct world *w, enum lp_end why)
{
    return lp_engine_metrics(w->engine)->ends[why];
}

static struct lp_metrics_replica row_of(const struct world *w)
{
    struct lp_metrics_replica row;
    assert_int_equal(lp_engine_replicas(w->engine, &row, 1), 1);
    return row;
}

static bool has_told(struct world *w, const char *words)
{
    bool is_told = strstr(w->log, words) != NULL;
    w->log[0] = '\0';
    return is_told;
}

static const char LOSES[] =
    "backend r loses sessions it has issued; it seems to be balanced itself";

static int loud(void **state)
{
    int err = setup(state);
    struct world *w = *state;
    w->conf.log_level = LP_LOG_WARN;
    w->conf.access_log = false;
    return err;
}

static void each_end_has_its_cause(void **state)
{
    struct world *w = *state;
    open_session(w);
    char first[sizeof w->ticket];
    memcpy(first, w->ticket, sizeof first);
    /* The client begins anew and still names the old one. */
    request(w, "POST /mcp", first,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    w->connect_result = REPLICA;
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "Mcp-Session-Id: u2\r\n", "{}");
    assert_int_equal(count(w, LP_END_REPLACED), 1);
    assert_int_equal(session_count(w), 2); /* it may have a stream that goes on */
    for (uint64_t i = 0; i < 5; i++)
        opened(w, i);
    ended(w, 0, LP_END_DELETED);
    ended(w, 0, LP_END_DELETED); /* once is once */
    ended(w, 1, LP_END_LOST);
    ended(w, 2, LP_END_CLOSED);
    pass_time(w, (uint64_t)LP_SESSION_IDLE_S * SECOND_US);
    assert_int_equal(count(w, LP_END_DELETED), 1);
    assert_int_equal(count(w, LP_END_LOST), 1);
    assert_int_equal(count(w, LP_END_CLOSED), 1);
    assert_int_equal(count(w, LP_END_IDLE), 3);
    assert_int_equal(count(w, LP_END_REPLACED), 1); /* which is not idle as well */
    assert_int_equal(count(w, LP_END_GONE), 0);
    assert_int_equal(count(w, LP_END_LIMIT), 0);
    assert_int_equal(lp_engine_metrics(w->engine)->cells[LP_METRIC_SESSIONS_LOST_FRESH], 1);
}

static void who_loses_the_new_one_too_is_told_of(void **state)
{
    struct world *w = *state;
    opened(w, 1);
    ended(w, 1, LP_END_LOST);
    assert_false(has_told(w, "loses"));
    assert_false(row_of(w).loses_its_own);
    opened(w, 2);
    ended(w, 2, LP_END_LOST);
    assert_true(has_told(w, LOSES));
    assert_true(row_of(w).loses_its_own);
    assert_int_equal(row_of(w).lost_fresh, 2);
    /* At most once a minute, and then with the count. */
    for (uint64_t i = 3; i < 20; i++) {
        opened(w, i);
        ended(w, i, LP_END_LOST);
    }
    assert_false(has_told(w, "loses"));
    pass_time(w, 61 * SECOND_US);
    opened(w, 20);
    ended(w, 20, LP_END_LOST);
    assert_true(has_told(w, "20 sessions so far"));
}

static void who_forgets_everything_once_is_not(void **state)
{
    struct world *w = *state;
    for (uint64_t i = 0; i < 5; i++)
        opened(w, i);
    for (uint64_t i = 0; i < 5; i++)
        ended(w, i, LP_END_LOST);
    assert_false(has_told(w, "loses"));
    assert_int_equal(row_of(w).lost_fresh, 5);
    /* Another time, long after: that is a beginning again. */
    pass_time(w, 601 * (uint64_t)SECOND_US);
    opened(w, 6);
    ended(w, 6, LP_END_LOST);
    assert_false(has_told(w, "loses"));
    assert_false(row_of(w).loses_its_own);
}

/* Old sessions end somehow; and a process that was seen to end takes its sessions along. */
static void what_is_old_or_was_restarted_does_not_count(void **state)
{
    struct world *w = *state;
    opened(w, 1);
    opened(w, 2);
    pass_time(w, 61 * SECOND_US);
    ended(w, 1, LP_END_LOST);
    ended(w, 2, LP_END_LOST);
    opened(w, 3);
    opened(w, 4);
    lp_fleet_broke(&w->engine->servers[0].fleet.replicas[0]);
    ended(w, 3, LP_END_LOST);
    ended(w, 4, LP_END_LOST);
    /* Known by its stream only: nobody saw when it was opened. */
    mail_in(w, (struct lp_mail){.kind = LP_MAIL_STREAM, .key = {1, 5}, .exchange = 1});
    ended(w, 5, LP_END_LOST);
    assert_int_equal(row_of(w).lost_fresh, 0);
    assert_int_equal(count(w, LP_END_LOST), 5);
}

int main(void)
{
#define LOUD(name) cmocka_unit_test_setup_teardown(name, loud, teardown)
    const struct CMUnitTest tests[] = {
        LOUD(each_end_has_its_cause),
        LOUD(who_loses_the_new_one_too_is_told_of),
        LOUD(who_forgets_everything_once_is_not),
        LOUD(what_is_old_or_was_restarted_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
