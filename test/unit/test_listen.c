/* subscriptions/listen against the MCP server, through real HTTP bytes: what is granted and told,
 * to whom, how many there may be, and how they end. */
#include "../interop/conf_offer.h"
#include "modern_harness.h"

#define ID_OF(id) "\"_meta\":{\"" PREFIX "subscriptionId\":" id "}"
#define TOOLS_CHANGED(id)                                                                          \
    "\"method\":\"notifications/tools/list_changed\",\"params\":{" ID_OF(id) "}}"

static struct lp_offer offer;

static struct client begin(struct world *w)
{
    static char name[] = "blue";
    offer = conf_offer(name);
    start_server(w, &offer, (struct lp_server_args){0});
    return (struct client){.world = w};
}

static lp_id listen_as(struct client *c, const char *id, const char *filter, const char **ret_text)
{
    char params[8192];
    lp_id conn = dial(c->world);
    snprintf(params, sizeof params, "\"notifications\":%s,", filter);
    *ret_text = ask_modern_on(
        c, conn, (struct modern){.method = "subscriptions/listen", .params = params, .id = id});
    return conn;
}

static void tell_tools(struct world *w)
{
    lp_server_list_changed(w->server, LP_LIST_TOOLS);
    lp_server_settle(w->server, w->now_us);
}

static void what_is_granted_comes_first(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    (void)listen_as(&c, "\"L1\"",
        "{\"toolsListChanged\":true,\"promptsListChanged\":false,\"other\":true,"
        "\"resourceSubscriptions\":[\"test://watched-resource\",\"file:///a\",7,"
        "\"test:\\/\\/template\\/3\\/data\"]}",
        &text);
    STATUS(text, "200");
    HAS(text, "content-type: text/event-stream");
    HAS(text, "x-accel-buffering: no");
    HAS(text,
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
        "\"params\":{\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":["
        "\"test://watched-resource\",\"test://template/3/data\"]}," ID_OF("\"L1\"") "}}");
    LACKS(text, "\nid:");
    static char filter[4096];
    snprintf(filter, sizeof filter,
        "{\"resourceSubscriptions\":[\"test://template/%02100d/data\","
        "\"test://template/a\\u0000b/data\",\"test://static-text\"]}",
        0);
    (void)listen_as(&c, "1", filter, &text);
    HAS(text, "\"notifications\":{\"resourceSubscriptions\":[\"test://static-text\"]}");
    (void)listen_as(&c, "1", "{\"resourceSubscriptions\":7}", &text);
    HAS(text, "\"notifications\":{},");
    finish(&w);
}

static void what_is_not_offered_is_not_granted(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    offer.lists_change = offer.has_subscriptions = false;
    static const char ALL[] = "{\"toolsListChanged\":true,\"promptsListChanged\":true,"
                              "\"resourcesListChanged\":true,\"resourceSubscriptions\":["
                              "\"test://watched-resource\"]}";
    (void)listen_as(&c, "1", ALL, &text);
    HAS(text, "\"notifications\":{}," ID_OF("1"));
    offer.lists_change = offer.has_subscriptions = true;
    offer.prompt_count = 0;
    (void)listen_as(&c, "1", ALL, &text);
    HAS(text,
        "{\"toolsListChanged\":true,\"resourcesListChanged\":true,\"resourceSubscriptions\":[");
    finish(&w);
}

static void everybody_is_told_what_was_asked_for(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    lp_id tools = listen_as(&c, "7", "{\"toolsListChanged\":true}", &text);
    lp_id both = listen_as(&c, "\"b\"",
        "{\"promptsListChanged\":true,\"toolsListChanged\":true,\"resourceSubscriptions\":["
        "\"test://watched-resource\"]}",
        &text);
    tell_tools(&w);
    HAS(got(&w, tools), TOOLS_CHANGED("7"));
    HAS(got(&w, both), TOOLS_CHANGED("\"b\""));
    lp_server_list_changed(w.server, LP_LIST_PROMPTS);
    lp_server_list_changed(w.server, LP_LIST_RESOURCES);
    lp_server_resource_updated(w.server, LP_SPAN("test://watched-resource"));
    lp_server_resource_updated(w.server, LP_SPAN("test://static-text"));
    lp_server_settle(w.server, w.now_us);
    assert_string_equal(got(&w, tools), "");
    text = got(&w, both);
    HAS(text, "notifications/prompts/list_changed");
    LACKS(text, "notifications/resources/list_changed");
    HAS(text, "\"params\":{\"uri\":\"test://watched-resource\"," ID_OF("\"b\"") "}}");
    LACKS(text, "static-text");
    pass(&w, 16ull * SECOND);
    HAS(got(&w, tools), ": limpet");
    finish(&w);
}

static void sessions_are_told_too(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    lp_id new = listen_as(&c, "7", "{\"toolsListChanged\":true}", &text);
    struct client old = new_client(&w);
    lp_id get = dial(&w);
    old.extra = "Accept: text/event-stream\r\n";
    (void)ask(&old, get, "GET", NULL);
    tell_tools(&w);
    LACKS(got(&w, get), "subscriptionId");
    HAS(got(&w, new), TOOLS_CHANGED("7"));
    finish(&w);
}

static void who_left_is_told_nothing(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    for (int i = 0; i < 2 * LP_SERVER_LISTENS_MAX; i++) {
        lp_id conn = listen_as(&c, "7", "{\"toolsListChanged\":true}", &text);
        HAS(text, "acknowledged");
        tell(&w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
    }
    tell_tools(&w);
    finish(&w);
}

static void there_is_an_end_to_them(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    for (int i = 0; i < LP_SERVER_LISTENS_MAX; i++)
        (void)listen_as(&c, "7", "{}", &text);
    (void)listen_as(&c, "7", "{}", &text);
    STATUS(text, "200");
    HAS(text, "-32603");
    HAS(text, "too many subscriptions");
    finish(&w);
}

static void bad_ones_are_refused(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    (void)listen_as(&c, "7", "[]", &text);
    HAS(text, "-32602");
    HAS(ask_modern(&c, (struct modern){.method = "subscriptions/listen"}), "-32602");
    c.extra = "Accept: application/json\r\n" MODERN_HEAD("subscriptions/listen");
    text = post(&c,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
        "\"notifications\":{}," MODERN_META("{}", "") "}}");
    STATUS(text, "406");
    HAS(text, "must accept text/event-stream");
    finish(&w);
}

static void a_stop_is_told(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    lp_id conn = listen_as(&c, "\"L1\"", "{\"toolsListChanged\":true}", &text);
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    text = got(&w, conn);
    HAS(text, "data: {\"jsonrpc\":\"2.0\",\"id\":\"L1\",\"result\":{");
    HAS(text, "\"" PREFIX "subscriptionId\":\"L1\"}");
    HAS(text, "\"resultType\":\"complete\"");
    HAS(text, "\r\n0\r\n\r\n");
    assert_true(w.stopped);
    finish(&w);
}

static void one_that_comes_during_the_stop_ends_at_once(void **state)
{
    (void)state;
    struct world w;
    struct client c = begin(&w);
    lp_id conn = dial(&w);
    static const char HEAD[] = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                               "application/json\r\n" ACCEPT MODERN_HEAD("subscriptions/listen");
    static const char BODY[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"late\",\"method\":\"subscriptions/listen\",\"params\":{"
        "\"notifications\":{}," MODERN_META("{}", "") "}}";
    char length[64];
    (void)c;
    snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", sizeof BODY - 1);
    send_bytes(&w, conn, lp_span_str(HEAD));
    send_bytes(&w, conn, lp_span_str(length));
    tell(&w, (struct lp_event){.kind = LP_EV_STOP});
    send_bytes(&w, conn, lp_span_str(BODY));
    const char *text = got(&w, conn);
    HAS(text, "notifications/subscriptions/acknowledged");
    HAS(text, "\"id\":\"late\",\"result\":{");
    assert_true(w.stopped);
    finish(&w);
}

static void a_slow_reader_loses_the_oldest(void **state)
{
    (void)state;
    struct world w;
    const char *text;
    struct client c = begin(&w);
    lp_id conn = listen_as(&c, "1", "{\"toolsListChanged\":true}", &text);
    peer_of(&w, conn)->window = 1;
    for (int i = 0; i < 5000; i++)
        tell_tools(&w);
    assert_true(peer_of(&w, conn)->is_open);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_granted_comes_first),
        cmocka_unit_test(what_is_not_offered_is_not_granted),
        cmocka_unit_test(everybody_is_told_what_was_asked_for),
        cmocka_unit_test(sessions_are_told_too),
        cmocka_unit_test(who_left_is_told_nothing),
        cmocka_unit_test(there_is_an_end_to_them),
        cmocka_unit_test(bad_ones_are_refused),
        cmocka_unit_test(a_stop_is_told),
        cmocka_unit_test(one_that_comes_during_the_stop_ends_at_once),
        cmocka_unit_test(a_slow_reader_loses_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
