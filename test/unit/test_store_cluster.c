/* The store's client at a cluster, played byte by byte: the slot map, MOVED and ASK in all their
 * forms (case OWN-06), nodes that come, go and fail over. Slots: a 15495, b 3300, c 7365. */
#include "base/buf.h"
#include "store_harness.h"

/* [first, last, [host, port, id]] */
static const char *range(char *room, int first, int last, const char *host, int port)
{
    sprintf(room, "*3\r\n:%d\r\n:%d\r\n*3\r\n$%zu\r\n%s\r\n:%d\r\n$1\r\ni\r\n", first, last,
        strlen(host), host, port);
    return room;
}

/* Two halves, on hosts A and B. */
static const char *two_halves(const char *a, const char *b)
{
    static char map[1024];
    char first[256], second[256];
    snprintf(map, sizeof map, "*2\r\n%s%s", range(first, 0, 8191, a, 7),
        range(second, 8192, 16383, b, 7));
    return map;
}

static void greet(struct world *w, lp_id conn, const char *expected, const char *map)
{
    char answers[2048];
    connected(w, conn);
    assert_said(w, conn, expected);
    snprintf(answers, sizeof answers, "%s+PONG\r\n", map);
    answer(w, conn, answers);
}

/* Conn 1 is seed A, which owns the first half (keys b and c); conn 2 is B with the second (key a).
 */
static struct world *cluster_up(struct lp_store_args args)
{
    char answers[2048];
    struct world *w = world_new("redis+cluster://A:7", args);
    connected(w, 1);
    assert_said(w, 1, "CLUSTER SLOTS; ROLE; PING");
    snprintf(answers, sizeof answers, "%s-NOPERM\r\n+PONG\r\n", two_halves("A", "B"));
    answer(w, 1, answers);
    assert_string_equal(w->conns[2].host, "B");
    greet(w, 2, "PING", "");
    assert_told(w, "up NONE\n");
    return w;
}

static void test_each_key_to_its_owner(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){0});
    call(w, 1, READS, "GET a");
    call(w, 2, READS, "GET b");
    call(w, 3, READS, "GET {b}x");
    assert_said(w, 1, "GET b; GET {b}x");
    assert_said(w, 2, "GET a");
    answer(w, 2, ":1\r\n");
    answer(w, 1, ":2\r\n:3\r\n");
    assert_told(w, "1 ANSWERED yes 1\n2 ANSWERED yes 2\n3 ANSWERED yes 3\n");
    call(w, 4, READS, "PING"); /* without a key: anywhere */
    assert_true(strlen(said(w, 1)) + strlen(said(w, 2)) == 4);
    assert_true(
        lp_span_eq(lp_store_sentence(w->store), LP_SPAN("The store at A:7 is up, a cluster.")));
    world_free(w);
}

static void test_moved(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){0});
    call(w, 1, WRITES, "INCR a");
    said(w, 2);
    answer(w, 2, "-MOVED 15495 C:9\r\n");
    assert_string_equal(w->conns[3].host, "C");
    assert_int_equal(w->conns[3].port, 9);
    assert_int_equal(strlen(said(w, 1)) + strlen(said(w, 2)), 13); /* CLUSTER SLOTS: for the rest */
    greet(w, 3, "PING", "");
    assert_said(w, 3, "INCR a");
    answer(w, 3, ":1\r\n");
    assert_told(w, "1 ANSWERED yes 1\n");
    call(w, 2, WRITES, "INCR a"); /* the slot is known to be there */
    assert_said(w, 3, "INCR a");
    world_free(w);
}

/* An empty host is the one that said so; IPv6 addresses come with and without brackets. */
static void test_forms_of_moved(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint16_t port;
    } FORMS[] = {{"-MOVED 15495 :9\r\n", "B", 9}, {"-MOVED 15495 ::1:9\r\n", "::1", 9},
        {"-MOVED 15495 [fe80::2]:9\r\n", "fe80::2", 9},
        {"-MOVED 15495 db-2.example:65535\r\n", "db-2.example", 65535}};
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        struct world *w = cluster_up((struct lp_store_args){0});
        call(w, 1, WRITES, "INCR a");
        answer(w, 2, FORMS[i].text);
        assert_string_equal(w->conns[3].host, FORMS[i].host);
        assert_int_equal(w->conns[3].port, FORMS[i].port);
        world_free(w);
    }
}

static void test_broken_redirects(void **state)
{
    (void)state;
    static const char *const BAD[] = {"-MOVED\r\n", "-MOVED 1\r\n", "-MOVED x C:9\r\n",
        "-MOVED 16384 C:9\r\n", "-MOVED 15495 C\r\n", "-MOVED 15495 C:0\r\n",
        "-MOVED 15495 C:65536\r\n", "-MOVED 15495 ?:9\r\n"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct world *w = cluster_up((struct lp_store_args){0});
        call(w, 1, WRITES, "INCR a");
        answer(w, 2, BAD[i]);
        assert_int_equal(lp_store_waiting(w->store), 0);
        assert_true(strncmp(told(w), "1 MOVED no !MOVED", 17) == 0);
        world_free(w);
    }
}

/* A socket has no host that another address could be at; neither has a name that is too long. */
static void test_hosts_that_are_none(void **state)
{
    (void)state;
    char text[400], row[256];
    struct world *w = world_new("unix:/s", (struct lp_store_args){0});
    connected(w, 1);
    snprintf(text, sizeof text, "*1\r\n%s", range(row, 0, 16383, "", 7));
    answer(w, 1, text);
    assert_told(w, "down CLUSTER_DOWN\n");
    world_free(w);

    w = cluster_up((struct lp_store_args){0});
    call(w, 1, WRITES, "INCR a");
    snprintf(text, sizeof text, "-MOVED 15495 %0254d:9\r\n", 0);
    answer(w, 2, text);
    assert_int_equal(w->count, 2);
    assert_true(strncmp(told(w), "1 MOVED no !MOVED", 17) == 0);
    world_free(w);
}

/* The nodes are gone before the map could be asked for, or while it is asked for. */
static void test_nobody_to_ask(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){.call_ms = 900});
    call(w, 1, READS, "GET a");
    answer(w, 2, "-CLUSTERDOWN Hash slot not served\r\n");
    broken(w, 1);
    broken(w, 2);
    call(w, 2, READS, "PING");
    call(w, 3, READS, "GET a");
    assert_told(w, "down BROKEN\n2 DOWN no -\n3 DOWN no -\n");
    pass_ms(w, 100);
    failed(w, 3, LP_EREFUSED);
    failed(w, 4, LP_EREFUSED);
    pass_ms(w, 900);
    assert_told(w, "1 CLUSTERDOWN no -\n");
    world_free(w);
}

static void test_moved_in_a_circle(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){0});
    call(w, 1, WRITES, "INCR a");
    for (int i = 0; i < LP_STORE_REDIRECTS_MAX; i++) {
        lp_id at = i % 2 ? 1 : 2;
        const char *words = said(w, at);
        assert_non_null(strstr(words, "INCR a"));
        bool is_asked = strstr(words, "CLUSTER SLOTS; INCR a") != NULL;
        answer(w, at, is_asked ? "-ERR\r\n" : "");
        answer(w, at, at == 1 ? "-MOVED 15495 B:7\r\n" : "-MOVED 15495 A:7\r\n");
    }
    answer(w, 2, "-MOVED 15495 A:7\r\n");
    assert_string_equal(told(w), "1 MOVED no !MOVED 15495 A:7\n");
    world_free(w);
}

/* ASK is for this once: ASKING goes before it, and the next one goes to the owner again. */
static void test_ask(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){.replicas_waited = 1});
    call(w, 1, WRITES, "INCR a");
    assert_said(w, 2, "INCR a; WAIT 1 750");
    answer(w, 2, "-ASK 15495 A:7\r\n:0\r\n");
    assert_said(w, 1, "ASKING; INCR a; WAIT 1 750");
    answer(w, 1, "+OK\r\n:1\r\n:1\r\n");
    assert_told(w, "1 ANSWERED yes 1\n");
    call(w, 2, READS, "GET a");
    assert_said(w, 2, "GET a");
    answer(w, 2, "-ASK 15495 A:7\r\n");
    assert_said(w, 1, "ASKING; GET a");
    answer(w, 1, "+OK\r\n-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    pass_ms(w, 100);
    assert_said(w, 2, "GET a");
    answer(w, 2, "$1\r\n1\r\n");
    assert_told(w, "2 ANSWERED yes 1\n");
    world_free(w);
}

/* The primary of the second half dies; a replica is promoted. */
static void test_failing_over(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){.grace_ms = 5000, .call_ms = 4000});
    pass_ms(w, 1500);
    call(w, 1, WRITES, "INCR a");
    broken(w, 2);
    assert_told(w, "1 UNKNOWN yes -\n"); /* the rest of the cluster is there: it is up */
    assert_said(w, 1, "CLUSTER SLOTS");
    answer(w, 1, two_halves("A", "B")); /* nothing new yet */
    failed(w, 3, LP_EREFUSED);
    call(w, 2, WRITES, "INCR a");
    call(w, 3, WRITES, "INCR b");
    answer(w, 1, ":1\r\n");
    pass_ms(w, 100);
    assert_non_null(strstr(said(w, 1), "CLUSTER SLOTS"));
    answer(w, 1, "-CLUSTERDOWN The cluster is down\r\n");
    pass_ms(w, 300);
    assert_non_null(strstr(said(w, 1), "CLUSTER SLOTS"));
    answer(w, 1, two_halves("A", "C"));
    lp_id to_c = w->count;
    assert_string_equal(w->conns[to_c].host, "C");
    greet(w, to_c, "PING", "");
    assert_said(w, to_c, "INCR a");
    answer(w, to_c, ":2\r\n");
    assert_told(w, "3 ANSWERED yes 1\n2 ANSWERED yes 2\n");
    uint32_t count = w->count;
    pass_ms(w, 2000); /* B is nobody any more */
    assert_int_equal(w->count, count);
    world_free(w);
}

static void test_without_grace(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){0});
    pass_ms(w, 1500);
    broken(w, 2);
    failed(w, 3, LP_EREFUSED);
    call(w, 1, WRITES, "INCR a");
    assert_told(w, "1 DOWN no -\n");
    call(w, 2, WRITES, "INCR b");
    answer(w, 1, "-CLUSTERDOWN Hash slot not served\r\n");
    answer(w, 1, "-CLUSTERDOWN The cluster is down\r\n");
    pass_ms(w, 100);
    assert_non_null(strstr(said(w, 1), "INCR b"));
    world_free(w);
}

/* Time passes, and who is asked says that it is there. */
static void stay(struct world *w, uint64_t ms)
{
    for (; ms >= 500; ms -= 500) {
        pass_ms(w, 500);
        for (lp_id id = 1; id <= w->count; id++)
            if (!w->conns[id].is_closed && strcmp(said(w, id), "PING") == 0)
                answer(w, id, "+PONG\r\n");
    }
}

/* Nobody that it knew is there: whoever the URL names is asked again. */
static void test_seeds_when_all_are_gone(void **state)
{
    (void)state;
    struct world *w = world_new("redis+cluster://A:7,S:7", (struct lp_store_args){0});
    connected(w, 1);
    said(w, 1);
    char answers[2048];
    snprintf(answers, sizeof answers, "%s%s+PONG\r\n", two_halves("B", "C"), PRIMARY);
    answer(w, 1, answers);
    assert_int_equal(w->count, 3);
    assert_told(w, ""); /* this one owns nothing */
    greet(w, 2, "PING", "");
    assert_told(w, "up NONE\n");
    greet(w, 3, "PING", "");
    stay(w, 10500);
    assert_true(w->conns[1].is_closed); /* a seed without slots, not used for ten seconds */
    told(w);
    broken(w, 2);
    broken(w, 3);
    assert_told(w, "down BROKEN\n");
    assert_int_equal(w->count, 7);
    failed(w, 4, LP_EREFUSED);
    failed(w, 5, LP_EREFUSED);
    failed(w, 6, LP_EREFUSED);
    call(w, 1, READS, "GET a");
    assert_told(w, "1 DOWN no -\n");
    assert_string_equal(w->conns[7].host, "S");
    greet(w, 7, "CLUSTER SLOTS; PING", two_halves("S", "T"));
    assert_told(w, "up NONE\n");
    assert_string_equal(w->conns[8].host, "T");
    call(w, 2, READS, "GET b");
    assert_said(w, 7, "GET b");
    world_free(w);
}

/* A slot that nobody owns, and a map with rows that cannot be understood. */
static void test_holes_in_the_map(void **state)
{
    (void)state;
    static char map[2048];
    char good[256], same[256], unknown[256], far[256];
    struct world *w = world_new("redis://A:7", (struct lp_store_args){.call_ms = 1000});
    connected(w, 1);
    said(w, 1);
    snprintf(map, sizeof map, "*9\r\n%s%s%s%s*1\r\n:1\r\n%s%s%s%s-NOPERM\r\n+PONG\r\n",
        range(good, 0, 99, "A", 7), range(same, 3300, 3300, "", 8),
        range(unknown, 200, 300, "?", 7), range(far, 0, 16384, "A", 7),
        "*3\r\n:5\r\n:4\r\n*2\r\n$1\r\nA\r\n:7\r\n", "*3\r\n:-1\r\n:4\r\n*2\r\n$1\r\nA\r\n:7\r\n",
        "*3\r\n+x\r\n:4\r\n*2\r\n$1\r\nA\r\n:7\r\n", "*3\r\n:1\r\n+x\r\n*2\r\n$1\r\nA\r\n:7\r\n");
    answer(w, 1, map);
    assert_told(w, "up NONE\n");
    assert_string_equal(w->conns[2].host, "A"); /* the host that was asked */
    assert_int_equal(w->conns[2].port, 8);
    call(w, 1, READS, "GET a");
    pass_ms(w, 100);
    assert_non_null(strstr(said(w, 1), "CLUSTER SLOTS"));
    answer(w, 1, two_halves("A", "A"));
    assert_said(w, 1, "GET a");
    world_free(w);
}

static void test_more_nodes_than_there_may_be(void **state)
{
    (void)state;
    struct lp_buf map;
    struct world *w = world_new("redis://A:7", (struct lp_store_args){0});
    connected(w, 1);
    said(w, 1);
    lp_buf_init(&map, 1 << 16);
    assert_int_equal(lp_buf_printf(&map, "*%d\r\n", LP_STORE_NODES_MAX + 10), LP_OK);
    for (int i = 0; i < LP_STORE_NODES_MAX + 10; i++) {
        char row[256];
        assert_int_equal(lp_buf_append(&map, lp_span_str(range(row, i, i, "A", i + 7))), LP_OK);
    }
    assert_int_equal(lp_buf_printf(&map, "%s%s", PRIMARY, "+PONG\r\n"), LP_OK);

    answer(w, 1, map.ptr);
    assert_int_equal(w->count, 1);
    assert_told(w, "down LIMIT\n");
    lp_buf_release(&map);
    world_free(w);
}

/* One that was taken for a single server, and says MOVED. */
static void test_a_cluster_after_all(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    call(w, 1, WRITES, "INCR a");
    said(w, 1);
    answer(w, 1, "-MOVED 15495 B:7\r\n");
    assert_said(w, 1, "CLUSTER SLOTS");
    greet(w, 2, "PING", "");
    assert_said(w, 2, "INCR a");
    world_free(w);
}

static void test_readonly_in_a_cluster(void **state)
{
    (void)state;
    struct world *w = cluster_up((struct lp_store_args){0});
    call(w, 1, WRITES, "INCR a");
    said(w, 2);
    answer(w, 2, "-READONLY You can't write against a read only replica.\r\n");
    assert_true(lp_store_is_up(w->store));
    const char *words = said(w, 1)[0] ? "1" : said(w, 2);
    lp_id asked = words[0] == '1' ? 1 : 2;
    answer(w, asked, two_halves("B", "A"));
    assert_said(w, 1, "INCR a");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_key_to_its_owner),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_forms_of_moved),
        cmocka_unit_test(test_broken_redirects),
        cmocka_unit_test(test_hosts_that_are_none),
        cmocka_unit_test(test_nobody_to_ask),
        cmocka_unit_test(test_moved_in_a_circle),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_failing_over),
        cmocka_unit_test(test_without_grace),
        cmocka_unit_test(test_seeds_when_all_are_gone),
        cmocka_unit_test(test_holes_in_the_map),
        cmocka_unit_test(test_more_nodes_than_there_may_be),
        cmocka_unit_test(test_a_cluster_after_all),
        cmocka_unit_test(test_readonly_in_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
