/* Publish/subscribe of the store's client: a connection of its own, everything subscribed again
 * after each reconnection, and its owner told so. */
#include "store_harness.h"

#define CONFIRMED(n, channel) "*3\r\n$9\r\nsubscribe\r\n$" n "\r\n" channel "\r\n:1\r\n"

static lp_id subscribe(struct world *w, const char *channel)
{
    lp_id id = 0;
    assert_int_equal(lp_store_subscribe(w->store, lp_span_str(channel), &id), LP_OK);
    settle(w);
    return id;
}

static void test_messages(void **state)
{
    (void)state;
    struct world *w = world_new("redis://:p@db/3", (struct lp_store_args){0});
    connected(w, 1);
    answer(w, 1, "+OK\r\n+OK\r\n" NO_CLUSTER PRIMARY "+PONG\r\n");
    assert_int_equal(w->count, 1); /* nothing to listen to */
    lp_id news = subscribe(w, "news");
    assert_string_equal(w->conns[2].host, "db");
    connected(w, 2);
    assert_said(w, 2, "AUTH p; PING");
    assert_false(lp_store_is_listening(w->store));
    answer(w, 2, "+OK\r\n+PONG\r\n");
    assert_true(lp_store_is_listening(w->store));
    assert_said(w, 2, "SUBSCRIBE news");
    answer(w, 2, CONFIRMED("4", "news"));
    answer(w, 2, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
    assert_told(w, "up NONE\nsubscribed news\nmessage news hello\n");
    subscribe(w, "b");
    assert_said(w, 2, "SUBSCRIBE b");
    lp_store_unsubscribe(w->store, news);
    lp_store_unsubscribe(w->store, news);
    settle(w);
    assert_said(w, 2, "UNSUBSCRIBE news");
    answer(w, 2, CONFIRMED("1", "b") "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    assert_told(w, "subscribed b\n");
    world_free(w);
}

static void test_again_after_a_loss(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    subscribe(w, "a");
    lp_id b = subscribe(w, "b");
    failed(w, 2, LP_EREFUSED);
    assert_told(w, ""); /* calls work: the store is up */
    pass_ms(w, 100);
    connected(w, 3);
    answer(w, 3, "+PONG\r\n");
    assert_said(w, 3, "PING; SUBSCRIBE a; SUBSCRIBE b");
    answer(w, 3, CONFIRMED("1", "a") CONFIRMED("1", "b"));
    pass_ms(w, 1500);
    broken(w, 3);
    lp_store_unsubscribe(w->store, b);
    connected(w, 4);
    answer(w, 4, "+PONG\r\n");
    assert_said(w, 4, "PING; SUBSCRIBE a");
    answer(w, 4, CONFIRMED("1", "a"));
    assert_told(w, "subscribed a\nsubscribed b\nsubscribed a\n");
    world_free(w);
}

static void test_quiet_listener(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    lp_id a = subscribe(w, "a");
    connected(w, 2);
    answer(w, 2, "+PONG\r\n" CONFIRMED("1", "a"));
    said(w, 2);
    pass_ms(w, 2999);
    pass_ms(w, 1);
    assert_said(w, 2, "PING");
    answer(w, 1, "+PONG\r\n");
    answer(w, 2, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    lp_store_unsubscribe(w->store, a);
    settle(w);
    pass_ms(w, 3000);
    said(w, 2);
    answer(w, 2, "+PONG\r\n"); /* of one who listens to nothing */
    answer(w, 1, "+PONG\r\n");
    pass_ms(w, 3000);
    answer(w, 1, "+PONG\r\n");
    pass_ms(w, 3000);
    assert_true(w->conns[2].is_closed);
    assert_false(lp_store_is_listening(w->store));
    world_free(w);
}

static void test_refused_channels(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    subscribe(w, "a");
    connected(w, 2);
    answer(w, 2, "+PONG\r\n");
    answer(w, 2, "-NOPERM this user may not\r\n");
    assert_true(w->conns[2].is_closed);
    assert_told(w, "");
    world_free(w);

    w = world_up((struct lp_store_args){0});
    subscribe(w, "a");
    connected(w, 2);
    answer(w, 2, "+PONG\r\n");
    answer(w, 2, "+what\r\n*1\r\n:1\r\n*3\r\n$8\r\npmessage\r\n+x\r\n+y\r\n");
    assert_false(w->conns[2].is_closed); /* of no interest */
    world_free(w);
}

static void test_too_many_channels(void **state)
{
    (void)state;
    struct world *w = world_new("redis://db", (struct lp_store_args){0});
    lp_id id;
    for (uint32_t i = 0; i < LP_STORE_CHANNELS_MAX; i++)
        assert_int_equal(lp_store_subscribe(w->store, LP_SPAN("c"), &id), LP_OK);
    assert_int_equal(lp_store_subscribe(w->store, LP_SPAN("c"), &id), LP_ELIMIT);
    lp_store_unsubscribe(w->store, id);
    assert_int_equal(lp_store_subscribe(w->store, LP_SPAN("c"), &id), LP_OK);
    settle(w);
    assert_string_equal(w->conns[2].host, "db"); /* though nobody is up yet */
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_again_after_a_loss),
        cmocka_unit_test(test_quiet_listener),
        cmocka_unit_test(test_refused_channels),
        cmocka_unit_test(test_too_many_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
