/* Shared sessions when memory runs out: in a story of everything that two replicas do with a
 * session each allocation of one of them fails once in its turn. Nothing crashes, nothing leaks,
 * nothing hangs, and afterwards the replica works as before. */
#include "scarce_memory.h"
#include "shared_harness.h"

static long kept_back = -1; /* the same while the other replica or the shell works */

static struct replica poor;
static struct replica rich;
static bool is_scarce; /* the poor one works now */

static void on_work(bool begins)
{
    if (!is_scarce)
        return;
    if (begins) {
        calls_left = kept_back;
    } else {
        kept_back = calls_left;
        calls_left = -1;
    }
}

/* Lets both of them do what there is, for a while that no store of this world is slower than. */
static void work(void)
{
    for (int left = 6; left; left--) {
        is_scarce = true;
        pump(&poor);
        is_scarce = false;
        pump(&rich);
        if (left < 6 && !waiting(&poor) && !waiting(&rich))
            return;
        nap(&poor, &rich);
    }
}

static lp_id ask_poor(struct client *c, const char *method, const char *body)
{
    is_scarce = true;
    lp_id conn = begin_ask(c, &poor, method, body);
    is_scarce = false;
    work();
    return conn;
}

static void answer_question(struct client *c, struct replica *asker, lp_id conn, struct replica *to)
{
    char body[256];
    char id[64];
    struct lp_buf *buf = &peer_of(&asker->w, conn)->got;
    size_t at = lp_span_search(lp_buf_span(buf), LP_SPAN("\"id\":\""));
    if (at == buf->len)
        return;
    take_question(got(&asker->w, conn), id);
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"ok\":1}}", id);
    if (to == &poor)
        ask_poor(c, "POST", body);
    else
        begin_ask(c, &rich, "POST", body);
    work();
}

static void time_passes(uint64_t us)
{
    is_scarce = true;
    pass(&poor.w, us);
    is_scarce = false;
    pass(&rich.w, us);
    work();
}

static void tell_story(struct client *c)
{
    char extra[96];
    ask_poor(&(struct client){0}, "POST", INITIALIZE_ALL);
    ask_poor(c, "POST", TOOL("1", "count"));
    ask_poor(c, "POST", TOOL("1", "look"));
    ask_poor(c, "POST", RPC("2", "logging/setLevel", "{\"level\":\"info\"}"));
    ask_poor(c, "POST", RPC("3", "resources/subscribe", "{\"uri\":\"test://x\"}"));
    ask_poor(c, "GET", NULL);
    begin_ask(c, &rich, "POST", TOOL("4", "shout"));
    work();
    ask_poor(c, "POST", TOOL("4", "shout"));
    lp_server_list_changed(rich.w.server, LP_LIST_TOOLS);
    lp_server_settle(rich.w.server, rich.w.now_us);
    is_scarce = true;
    on_work(true);
    lp_server_resource_updated(poor.w.server, LP_SPAN("test://x"));
    on_work(false);
    is_scarce = false;
    lp_id asked = ask_poor(c, "POST", TOOL("5", "query"));
    answer_question(c, &poor, asked, &rich);
    asked = begin_ask(c, &rich, "POST", TOOL("6", "query"));
    work();
    answer_question(c, &rich, asked, &poor);
    begin_ask(c, &rich, "POST", WALK("7"));
    work();
    struct client resumes = *c;
    snprintf(extra, sizeof extra, "Accept: text/event-stream\r\nLast-Event-ID: 11-0\r\n");
    resumes.extra = extra;
    ask_poor(&resumes, "GET", NULL);
    ask_poor(c, "POST", WALK("8"));
    time_passes(SECOND);
    ask_poor(c, "POST",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
        "\"requestId\":7}}");
    time_passes(2 * SECOND);
    ask_poor(c, "DELETE", NULL);
}

/* A store that was lost for want of memory comes back. */
static void recover(struct replica *r)
{
    for (int left = 50; left && !lp_store_is_up(r->w.server->shared->store); left--) {
        pass(&r->w, SECOND / 10);
        for (int turns = 100; turns && !lp_store_is_up(r->w.server->shared->store); turns--) {
            pump(r);
            nap(r, NULL);
        }
    }
    for (int left = 3; left; left--) {
        quiet(r);
        pass(&r->w, 3 * SECOND);
    }
    quiet(r);
}

/* The clients of the last round have left, and make room for the next. */
static void forget_peers(struct world *w)
{
    for (uint32_t i = 0; i < w->next; i++) {
        if (w->peers[i].is_open) {
            w->peers[i].is_open = false;
            tell(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = (lp_id)1 << 32 | (i + 1)});
        }
        lp_buf_release(&w->peers[i].got);
    }
    w->next = 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    bool was_needed = true;
    long n = 0;
    redis_does("FLUSHALL");
    start_up(&rich, "rich");
    for (; was_needed; n++) {
        start_up(&poor, "poor");
        struct client c = open_session(&rich);
        work_hook = on_work;
        kept_back = n;
        failed = 0;
        tell_story(&c);
        was_needed = failed > 0;
        work_hook = NULL;
        recover(&poor);
        struct client fresh = open_session(&poor);
        HAS(post_to(&fresh, &poor, TOOL("1", "count")), "outcome 0, count 1");
        finish_replica(&poor);
        forget_peers(&rich.w);
        quiet(&rich);
    }
    finish_replica(&rich);
    assert_in_range(n, 50, 2000);
}

static void a_server_needs_memory_to_begin(void **state)
{
    (void)state;
    struct lp_store_url url;
    struct lp_span why;
    struct lp_offer offer = {0};
    struct lp_shell shell = {NULL, perform};
    assert_int_equal(lp_store_url_parse(LP_SPAN("redis://127.0.0.1"), NULL, NULL, &url, &why), 0);
    struct lp_server_args args = {.shell = &shell,
        .offer = &offer,
        .path = LP_SPAN("/"),
        .mode = LP_SESSIONS_SHARED,
        .store = &url};
    int err = LP_ENOMEM;
    for (long n = 0; err; n++) {
        struct lp_server *server = NULL;
        calls_left = n;
        err = lp_server_new(&args, &server);
        calls_left = -1;
        if (err)
            assert_int_equal(err, LP_ENOMEM);
        lp_server_free(server);
        assert_in_range(n, 0, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_server_needs_memory_to_begin),
    };
    return cmocka_run_group_tests(tests, begin_redis, end_redis);
}
