/* The stdio bridge between a host of the legacy revisions and a modern server: the welcome, the log
 * level, and subscriptions, each of which is a listen stream of its own. */
#include "bridge_harness.h"

static const char SUBSCRIBE[] = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\","
                                "\"params\":{\"uri\":\"a:1\"}}";
static const char UNSUBSCRIBE[] =
    "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"resources/unsubscribe\","
    "\"params\":{\"uri\":\"a:1\"}}";
static const char LISTEN[] = "\"notifications\":{\"resourceSubscriptions\":[\"a:1\"]}";

static void acknowledge(struct hosted *h, lp_id conn, const char *uris)
{
    char text[512];
    snprintf(text, sizeof text,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
        "\"params\":{\"notifications\":{\"resourceSubscriptions\":%s}}}\n\n",
        uris);
    play_event(h->p, conn, text);
}

/* A subscription that the server has taken; its stream is returned. */
static lp_id subscribe(struct hosted *h)
{
    host_says(h, SUBSCRIBE);
    lp_id conn = play_expect(h->p, LISTEN);
    host_hears_nothing(h);
    play_begin_events(h->p, conn, "");
    acknowledge(h, conn, "[\"a:9\",\"a:1\"]");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}");
    return conn;
}

static void test_the_welcome(void **state)
{
    (void)state;
    static const struct {
        const char *offered;
        const char *result;
        const char *heard;
    } CASES[] = {
        {"2025-06-18", "\"capabilities\":{\"tools\":{}}",
            "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
            "{\"name\":\"limpet-connect\",\"version\":\"" LP_VERSION "\"}}"},
        {"2099-01-01",
            "\"instructions\":\"do\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
            "{\"name\":\"s\"}}",
            "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":"
            "{\"name\":\"s\"},\"instructions\":\"do\"}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[1024];
        struct hosted *h = hosted_new();
        snprintf(text, sizeof text,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
            "{\"protocolVersion\":\"%s\",\"capabilities\":{}}}",
            CASES[i].offered);
        host_says(h, text);
        lp_id conn = play_expect(h->p, "\"server/discover\"");
        snprintf(text, sizeof text,
            "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],%s}",
            CASES[i].result);
        server_answers(h, conn, "", text);
        host_hears(h, CASES[i].heard);
        hosted_free(h);
    }
}

static void test_pings_and_notifications_stay_here(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    host_hears(h, "\"id\":2,\"result\":{}");
    host_says(h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}");
    play_expect_nothing(h->p);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
    server_answers(
        h, play_expect(h->p, "tools/list"), "", "\"result\":{\"resultType\":\"complete\"}");
    host_hears(h, "\"id\":3,\"result\":{");
    hosted_free(h);
}

static void test_the_log_level(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\",\"params\":"
        "{\"level\":\"loud\"}}");
    host_hears(h, "\"id\":2,\"error\":{\"code\":-32602,\"message\":\"level is none of debug");
    host_says(h,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"logging/setLevel\",\"params\":"
        "{\"level\":\"warning\"}}");
    host_hears(h, "\"id\":3,\"result\":{}");
    play_expect_nothing(h->p);
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\"}");
    play_expect(h->p, "logLevel\":\"warning\"");
    hosted_free(h);
}

static void test_a_subscription(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    lp_id conn = subscribe(h);
    play_event(h->p, conn,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":"
        "{\"uri\":\"a:1\"}}\n\n");
    host_hears(h, "notifications/resources/updated");
    acknowledge(h, conn, "[\"a:1\"]"); /* once more: the host has its answer */
    acknowledge(h, conn, "7");
    host_hears_nothing(h);
    host_says(h, SUBSCRIBE); /* it is there already */
    host_hears(h, "\"id\":5,\"result\":{}");
    play_expect_nothing(h->p);
    host_says(h, UNSUBSCRIBE);
    host_hears(h, "\"id\":6,\"result\":{}");
    shell_pass(h->p->s, 1);
    assert_true(h->p->s->conns[conn].is_closed);
    host_says(h, UNSUBSCRIBE); /* there is none */
    host_hears(h, "\"id\":6,\"result\":{}");
    play_expect_nothing(h->p);
    hosted_free(h);
}

static void test_a_subscription_to_nothing(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    host_says(h, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\"}");
    host_hears(h, "\"id\":5,\"error\":{\"code\":-32602,\"message\":\"uri is missing\"");
    play_expect_nothing(h->p);
    hosted_free(h);
}

static void test_a_subscription_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        const char *member;
        const char *heard;
    } CASES[] = {
        {"200 OK", "\"error\":{\"code\":-1,\"message\":\"no\"}",
            "\"id\":5,\"error\":{\"code\":-1,\"message\":\"no\"}"},
        {"200 OK", "\"result\":{\"resultType\":\"complete\"}",
            "\"id\":5,\"error\":{\"code\":-32602,\"message\":\"the server does not tell"},
        {"500 Oops", "\"a\":1", "\"id\":5,\"error\":{\"code\":-32603"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        char head[128];
        struct hosted *h = hosted_open_modern();
        host_says(h, SUBSCRIBE);
        lp_id conn = play_expect(h->p, LISTEN);
        snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%lu,%s}",
            strtoul(strstr(h->p->body, "\"id\":") + 5, NULL, 10), CASES[i].member);
        snprintf(head, sizeof head, "%s\r\nContent-Type: application/json", CASES[i].status);
        shell_answer(h->p->s, conn, head, body);
        host_hears(h, CASES[i].heard);
        host_says(h, UNSUBSCRIBE);
        host_hears(h, "\"id\":6,\"result\":{}");
        play_expect_nothing(h->p);
        hosted_free(h);
    }
}

/* A stream that the server ends in order is opened again, one that is cut too. */
static void test_a_subscription_goes_on(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    lp_id conn = subscribe(h);
    for (int i = 0; i < 7; i++) {
        char text[256];
        snprintf(text, sizeof text,
            "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"resultType\":\"complete\"}}\n\n",
            i + 2);
        play_event(h->p, conn, text);
        play_expect_nothing(h->p);
        shell_pass(h->p->s, 10000);
        conn = play_expect(h->p, LISTEN);
        play_begin_events(h->p, conn, "");
        acknowledge(h, conn, "[\"a:1\"]");
    }
    assert_string_equal(h->said, "");
    play_expect_nothing(h->p);
    shell_broken(h->p->s, conn);
    play_expect_nothing(h->p);
    host_says(h, UNSUBSCRIBE); /* while it waits */
    host_hears(h, "\"id\":6,\"result\":{}");
    shell_pass(h->p->s, 10000);
    play_expect_nothing(h->p);
    hosted_free(h);
}

static void test_a_subscription_ends(void **state)
{
    (void)state;
    for (int is_error = 0; is_error < 2; is_error++) {
        struct hosted *h = hosted_open_modern();
        lp_id conn = subscribe(h);
        char text[256];
        snprintf(text, sizeof text,
            "data: {\"jsonrpc\":\"2.0\",\"id\":%lu,\"error\":{\"code\":-1,\"message\":\"x\"}}\n\n",
            strtoul(strstr(h->p->body, "\"id\":") + 5, NULL, 10));
        for (int i = 0; !is_error && i < 5; i++) {
            shell_broken(h->p->s, conn);
            shell_pass(h->p->s, 10000);
            conn = i < 4 ? play_expect(h->p, LISTEN) : 0;
        }
        if (is_error)
            play_event(h->p, conn, text);
        assert_true(text_has(h->said, "a subscription has ended"));
        host_hears_nothing(h);
        shell_pass(h->p->s, 10000);
        play_expect_nothing(h->p);
        hosted_free(h);
    }
}

static void test_subscriptions_and_the_end(void **state)
{
    (void)state;
    struct hosted *h = hosted_open_modern();
    subscribe(h);
    host_ends(h); /* a subscription is nothing that is waited for */
    shell_pass(h->p->s, 3000);
    assert_int_equal(h->overs, 1);
    assert_false(h->has_failed);
    assert_string_equal(h->said, "");
    hosted_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_welcome),
        cmocka_unit_test(test_pings_and_notifications_stay_here),
        cmocka_unit_test(test_the_log_level),
        cmocka_unit_test(test_a_subscription),
        cmocka_unit_test(test_a_subscription_to_nothing),
        cmocka_unit_test(test_a_subscription_is_refused),
        cmocka_unit_test(test_a_subscription_goes_on),
        cmocka_unit_test(test_a_subscription_ends),
        cmocka_unit_test(test_subscriptions_and_the_end),
    };
    return cmocka_run_group_tests_name("bridge modern", tests, NULL, NULL);
}
