/* The store's client at one server, played byte by byte: log-in, calls, what is repeated after a
 * loss and what is not, deadlines, limits, refusals (case OWN-06), scripts. */
#include "store_harness.h"

/* --- log-in --- */

static void test_log_in(void **state)
{
    (void)state;
    const struct lp_span SCRIPTS[] = {LP_SPAN("return-1"), LP_SPAN("return-2")};
    struct world *w = world_new(
        "rediss://u:p@db:7000/2", (struct lp_store_args){.scripts = SCRIPTS, .script_count = 2});
    assert_string_equal(w->conns[1].host, "db");
    assert_int_equal(w->conns[1].port, 7000);
    assert_true(w->conns[1].is_tls);
    assert_said(w, 1, "");
    connected(w, 1);
    assert_said(w, 1,
        "AUTH u p; SELECT 2; CLUSTER SLOTS; ROLE; SCRIPT LOAD return-1; SCRIPT LOAD return-2; "
        "PING");
    assert_false(lp_store_is_up(w->store));
    answer(w, 1, "+OK\r\n+OK\r\n" NO_CLUSTER PRIMARY "-NOPERM no\r\n-NOPERM no\r\n");
    assert_told(w, "");
    answer(w, 1, "-NOPERM no\r\n"); /* PING: it is logged in, and may at least be asked */
    assert_told(w, "up NONE\n");
    assert_true(lp_store_is_up(w->store));
    assert_true(lp_span_eq(lp_store_sentence(w->store), LP_SPAN("The store at db:7000 is up.")));
    world_free(w);

    w = world_new("unix:/s", (struct lp_store_args){0});
    assert_true(w->conns[1].is_unix);
    failed(w, 1, LP_EREFUSED);
    assert_told(w, "down REFUSED\n");
    assert_true(lp_span_starts(
        lp_store_sentence(w->store), LP_SPAN("The store at unix:/s refuses connections;")));
    world_free(w);
}

static void assert_trouble(const char *url, const char *answers, const char *expected)
{
    struct world *w = world_new(url, (struct lp_store_args){0});
    connected(w, 1);
    answer(w, 1, answers);
    assert_told(w, expected);
    assert_true(w->conns[1].is_closed);
    call(w, 1, READS, "GET k");
    assert_told(w, "1 DOWN no -\n");
    world_free(w);
}

static void test_refused_log_ins(void **state)
{
    (void)state;
    assert_trouble("redis://:p@db", "-WRONGPASS no\r\n", "down PASSWORD\n");
    assert_trouble("redis://:p@db", "-ERR no password is set\r\n", "down PASSWORD\n");
    assert_trouble("redis://db", "-NOAUTH Authentication required.\r\n", "down PASSWORD\n");
    assert_trouble("redis://db/9", "-ERR DB index is out of range\r\n", "down DATABASE\n");
    assert_trouble("redis://db", "-LOADING Redis is loading\r\n", "down LOADING\n");
    assert_trouble("redis://db", NO_CLUSTER "*1\r\n$5\r\nslave\r\n", "down READONLY\n");
    assert_trouble("redis://db", NO_CLUSTER "-NOPERM\r\n-MASTERDOWN\r\n", "down STALE\n");
    assert_trouble("redis://db", NO_CLUSTER PRIMARY "-ERR what\r\n", "down OTHER\n");
    assert_trouble("redis+cluster://db", NO_CLUSTER, "down NO_CLUSTER\n");
    assert_trouble("redis://db", "*0\r\n", "down CLUSTER_DOWN\n");
    assert_trouble("redis://db", "+OK\r\n", "down PROTOCOL\n");
    assert_trouble("redis://db", "HTTP/1.1 400 Bad Request\r\n\r\n", "down PROTOCOL\n");
    assert_trouble("redis://db", "-ERR max number of clients reached\r\n+OK\r\n+OK\r\n+OK\r\n",
        "down PROTOCOL\n");
}

static void test_connections_that_fail(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *told;
    } CASES[] = {{LP_EREFUSED, "down REFUSED\n"}, {LP_ETIMEOUT, "down TIMEOUT\n"},
        {LP_EUNREACHABLE, "down UNREACHABLE\n"}, {LP_ENOT_FOUND, "down NO_NAME\n"},
        {LP_ETLS, "down TLS\n"}, {LP_ETLS_UNTRUSTED, "down TLS\n"}, {LP_ETLS_NAME, "down TLS\n"},
        {LP_ETLS_EXPIRED, "down TLS\n"}, {LP_EUNSUPPORTED, "down TLS\n"},
        {LP_ENOMEM, "down MEMORY\n"}, {LP_EIO, "down BROKEN\n"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct world *w = world_new("redis://db", (struct lp_store_args){0});
        failed(w, 1, CASES[i].error);
        assert_told(w, CASES[i].told);
        world_free(w);
    }
    struct world *w = world_bare();
    w->connect_error = LP_ELIMIT;
    assert_int_equal(world_open(w, "redis://[::1]", (struct lp_store_args){0}), LP_OK);
    settle(w);
    assert_told(w, "down BROKEN\n");
    assert_true(lp_span_starts(lp_store_sentence(w->store), LP_SPAN("The store at [::1]:6379 ")));
    world_free(w);
}

/* 100, 200, 400, 800, 1600, 2000, 2000: then each time the same. */
static void test_pauses(void **state)
{
    (void)state;
    static const uint64_t PAUSES[] = {100, 200, 400, 800, 1600, 2000, 2000};
    struct world *w = world_new("redis://db", (struct lp_store_args){0});
    for (lp_id i = 0; i < sizeof PAUSES / sizeof *PAUSES; i++) {
        failed(w, i + 1, LP_EREFUSED);
        pass_ms(w, PAUSES[i] - 1);
        assert_int_equal(w->count, i + 1);
        pass_ms(w, 1);
        assert_int_equal(w->count, i + 2);
    }
    assert_told(w, "down REFUSED\n"); /* once */
    failed(w, w->count, LP_ETIMEOUT);
    assert_told(w, "down TIMEOUT\n"); /* news, and long after the other */
    world_free(w);
}

static void test_hosts_in_turn(void **state)
{
    (void)state;
    struct world *w = world_new("redis://a,b:7", (struct lp_store_args){0});
    assert_string_equal(w->conns[1].host, "a");
    failed(w, 1, LP_EREFUSED);
    assert_string_equal(w->conns[2].host, "b");
    assert_int_equal(w->conns[2].port, 7);
    failed(w, 2, LP_ETIMEOUT);
    assert_int_equal(w->count, 2);
    pass_ms(w, 100);
    assert_string_equal(w->conns[3].host, "a");
    assert_told(w, "down REFUSED\n"); /* the other reason would be told five seconds later */
    world_free(w);
}

static void test_log_in_that_takes_too_long(void **state)
{
    (void)state;
    struct world *w = world_new("redis://db", (struct lp_store_args){.connect_ms = 300});
    connected(w, 1);
    pass_ms(w, 299);
    assert_told(w, "");
    pass_ms(w, 1);
    assert_told(w, "down TIMEOUT\n");
    world_free(w);
}

/* --- calls --- */

static void test_replies(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    const char *const WORDS[] = {"SET k v", "GET k", "LRANGE l 0 -1", "INCR n", "GET none"};
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(try_call(w, i, i == 0 || i == 3 ? WRITES : READS, WORDS[i], NULL), LP_OK);
    assert_said(w, 1, "");
    assert_int_equal(lp_store_waiting(w->store), 5);
    settle(w); /* all in one write */
    assert_said(w, 1, "SET k v; GET k; LRANGE l 0 -1; INCR n; GET none");
    answer(
        w, 1, "+OK\r\n$1\r\nv\r\n*4\r\n$0\r\n\r\n*2\r\n:1\r\n-ERR in\r\n*0\r\n*-1\r\n:-7\r\n$-1\r");
    assert_told(w,
        "0 ANSWERED yes OK\n1 ANSWERED yes v\n2 ANSWERED yes [,[1,!ERR in],[],nil]\n"
        "3 ANSWERED yes -7\n");
    answer(w, 1, "\n");
    assert_told(w, "4 ANSWERED yes nil\n");
    assert_int_equal(lp_store_waiting(w->store), 0);
    assert_null(lp_store_reply_item(NULL, 0));
    world_free(w);
}

static void test_named_refusals(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    for (uint64_t i = 0; i < 5; i++)
        call(w, i, WRITES, "SET k v");
    answer(w, 1,
        "-OOM command not allowed\r\n-NOREPLICAS too few\r\n-ERR unknown\r\n-WRONGTYPE\r\n-MISCONF "
        "disk\r\n");
    assert_told(w,
        "0 OOM no !OOM command not allowed\n1 NOREPLICAS no !NOREPLICAS too few\n"
        "2 REFUSED no !ERR unknown\n3 REFUSED no !WRONGTYPE\n"
        "4 MISCONF no !MISCONF disk\n");
    world_free(w);
}

/* A call after the flush is not forgotten until something else happens. */
static void test_call_after_the_flush(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    uint64_t next_us = lp_heap_next_us(&w->timers);
    assert_int_equal(try_call(w, 1, READS, "GET k", NULL), LP_OK);
    assert_int_equal(lp_heap_next_us(&w->timers), w->now_us);
    pass_ms(w, 0);
    assert_said(w, 1, "GET k");
    answer(w, 1, "$-1\r\n");
    assert_int_equal(lp_heap_next_us(&w->timers), next_us);
    world_free(w);
}

/* Calls that come before there is a connection wait for it; without one they fail at once. */
static void test_before_it_is_up(void **state)
{
    (void)state;
    struct world *w = world_new("redis://db", (struct lp_store_args){0});
    call(w, 1, READS, "GET a");
    connected(w, 1);
    call(w, 2, READS, "GET b");
    said(w, 1);
    answer(w, 1, NO_CLUSTER PRIMARY "+PONG\r\n");
    assert_said(w, 1, "GET a; GET b");
    broken(w, 1); /* up for less than a second: there is a pause */
    assert_told(w, "up NONE\ndown BROKEN\n1 DOWN no -\n2 DOWN no -\n");
    call(w, 3, READS, "GET c");
    assert_told(w, "3 DOWN no -\n");
    world_free(w);
}

/* What was cut: reads and writes that may run twice are repeated, others are not, and what has not
 * left whole cannot have run. */
static void test_cut(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    pass_ms(w, 1500);
    call(w, 1, WRITES, "INCR n");
    call(w, 2, READS, "GET k");
    call(w, 3, REPEATS, "SET k v");
    assert_said(w, 1, "INCR n; GET k; SET k v");
    w->takes_max = 20;
    call(w, 4, WRITES, "APPEND k 0123456789");
    assert_true(w->conns[1].is_draining); /* the rest goes at any time: it may have run */
    call(w, 5, WRITES, "INCR m");
    w->conns[1].out_len = 0;
    w->takes_max = -1;
    broken(w, 1);
    assert_told(w, "down BROKEN\n1 UNKNOWN yes -\n4 UNKNOWN yes -\n");
    connected(w, 2); /* at once, since it was up for a while */
    assert_said(w, 2, "ROLE; PING");
    answer(w, 2, PRIMARY "+PONG\r\n");
    assert_said(w, 2, "GET k; SET k v; INCR m");
    answer(w, 2, "$1\r\nx\r\n+OK\r\n:1\r\n");
    assert_told(w, "up NONE\n2 ANSWERED yes x\n3 ANSWERED yes OK\n5 ANSWERED yes 1\n");
    world_free(w);
}

static void test_cut_and_then_away(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    pass_ms(w, 1500);
    call(w, 1, REPEATS, "SET k v");
    call(w, 2, READS, "GET k");
    happen(w, (struct lp_event){.kind = LP_EV_EOF, .conn = 1});
    failed(w, 2, LP_EREFUSED);
    assert_told(w, "down BROKEN\n1 UNKNOWN yes -\n2 DOWN no -\n");
    world_free(w);
}

/* With a grace, calls outlast a short absence, but not their deadline. */
static void test_grace(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.grace_ms = 500, .call_ms = 300});
    pass_ms(w, 1500);
    broken(w, 1);
    failed(w, 2, LP_EREFUSED);
    call(w, 1, READS, "GET k");
    assert_told(w, "down BROKEN\n");
    pass_ms(w, 100);
    connected(w, 3);
    answer(w, 3, PRIMARY "+PONG\r\n");
    said(w, 3);
    answer(w, 3, "$1\r\nx\r\n");
    assert_told(w, "up NONE\n1 ANSWERED yes x\n");
    broken(w, 3);
    call(w, 2, READS, "GET k");
    pass_ms(w, 200);
    failed(w, 4, LP_EREFUSED);
    pass_ms(w, 100);
    assert_told(w, "down BROKEN\n2 DOWN no -\n");
    world_free(w);
}

static void test_deadlines(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.call_ms = 200});
    call(w, 1, WRITES, "INCR n");
    pass_ms(w, 199);
    assert_told(w, "");
    pass_ms(w, 1);
    assert_told(w, "1 TIMEOUT yes -\n");
    assert_int_equal(lp_store_waiting(w->store), 0);
    call(w, 2, READS, "GET n");
    answer(w, 1, ":1\r\n$1\r\n1\r\n"); /* the late answer is nobody's */
    assert_told(w, "2 ANSWERED yes 1\n");
    world_free(w);

    /* Not even connected when it comes. */
    w = world_new("redis://db", (struct lp_store_args){.call_ms = 200});
    call(w, 1, WRITES, "INCR n");
    pass_ms(w, 200);
    assert_told(w, "1 DOWN no -\n");
    world_free(w);
}

static void test_own_deadline(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    const struct lp_span WORDS[] = {LP_SPAN("GET"), LP_SPAN("k")};
    struct lp_store_call_args args = call_args(w, 1, READS, WORDS, 2);
    args.timeout_ms = 50;
    assert_int_equal(lp_store_call(w->store, &args, NULL), LP_OK);
    settle(w);
    pass_ms(w, 50);
    assert_told(w, "1 TIMEOUT yes -\n");
    world_free(w);
}

/* A connection that ends again and again: each repetition counts, and one of them is the last. */
static void test_cut_for_ever(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.call_ms = 60000, .grace_ms = 60000});
    call(w, 1, READS, "GET k");
    for (lp_id id = 1; id <= LP_STORE_REDIRECTS_MAX + 1; id++) {
        assert_non_null(strstr(said(w, id), "GET k"));
        pass_ms(w, 1100);
        broken(w, id);
        connected(w, id + 1);
        answer(w, id + 1, PRIMARY "+PONG\r\n");
    }
    assert_non_null(strstr(told(w), "1 UNKNOWN yes -\n"));
    world_free(w);
}

/* Short deadlines find a dead connection too: what counts is how long the oldest one waits. */
static void test_silence_and_short_deadlines(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.call_ms = 300});
    pass_ms(w, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        call(w, i, READS, "GET a");
        pass_ms(w, 300);
    }
    assert_told(w, "1 TIMEOUT yes -\n2 TIMEOUT yes -\n3 TIMEOUT yes -\n");
    call(w, 4, READS, "GET a");
    pass_ms(w, 300);
    assert_told(w, "4 TIMEOUT yes -\ndown TIMEOUT\n");
    world_free(w);
}

/* A server that says nothing at all is left, and what else waits there is not lost with it. */
static void test_silence(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.call_ms = 1500});
    pass_ms(w, 1100);
    call(w, 1, READS, "GET a");
    pass_ms(w, 1000);
    call(w, 2, READS, "GET b");
    pass_ms(w, 500);
    assert_told(w, "1 TIMEOUT yes -\ndown TIMEOUT\n");
    said(w, 1);
    connected(w, 2);
    assert_said(w, 2, "ROLE; PING");
    answer(w, 2, PRIMARY "+PONG\r\n");
    assert_said(w, 2, "GET b");
    world_free(w);
}

static void test_quiet_connections_are_asked(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    pass_ms(w, 3000);
    assert_said(w, 1, "PING");
    pass_ms(w, 10);
    answer(w, 1, "+PONG\r\n");
    pass_ms(w, 2990);
    assert_said(w, 1, ""); /* heard of since */
    pass_ms(w, 3000);
    assert_said(w, 1, "PING");
    pass_ms(w, 2999);
    assert_told(w, "");
    pass_ms(w, 1);
    assert_told(w, "down TIMEOUT\n");
    world_free(w);
}

static void test_cancel(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    lp_id sent = call(w, 1, WRITES, "INCR a");
    call(w, 2, WRITES, "INCR b");
    lp_id waiting;
    assert_int_equal(try_call(w, 3, WRITES, "INCR c", &waiting), LP_OK);
    lp_store_cancel(w->store, waiting);
    lp_store_cancel(w->store, waiting);
    lp_store_cancel(w->store, sent);
    assert_int_equal(lp_store_waiting(w->store), 1);
    settle(w);
    assert_said(w, 1, "INCR a; INCR b");
    lp_store_cancel(w->store, sent); /* still in the pipeline, and nobody's */
    answer(w, 1, ":1\r\n:2\r\n");
    assert_told(w, "2 ANSWERED yes 2\n");
    lp_store_cancel(w->store, sent);
    world_free(w);
}

/* --- limits --- */

static void test_too_many_calls(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.calls_max = 2});
    call(w, 1, READS, "GET a");
    call(w, 2, READS, "GET b");
    assert_int_equal(try_call(w, 3, READS, "GET c", NULL), LP_ELIMIT);
    answer(w, 1, "$-1\r\n");
    call(w, 4, READS, "GET d");
    assert_told(w, "1 ANSWERED yes nil\n");
    world_free(w);
}

static void test_too_many_bytes(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.bytes_max = 64});
    assert_int_equal(try_call(w, 1, WRITES,
                         "SET k 0123456789012345678901234567890123456789012345678901234567", NULL),
        LP_ELIMIT);
    call(w, 2, WRITES, "SET k 0123456789");
    assert_int_equal(
        try_call(w, 3, WRITES, "SET k 0123456789012345678901234567890", NULL), LP_ELIMIT);
    answer(w, 1, "+OK\r\n");
    call(w, 4, WRITES, "SET k 012345678901234567890");
    assert_told(w, "2 ANSWERED yes OK\n");
    world_free(w);
}

/* A length of a gigabyte, and items without end: the limit is that of what arrives. */
static void test_too_large_replies(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.reply_max = 4096});
    char many[70000];
    memset(many, 'x', sizeof many);
    many[sizeof many - 1] = '\0';
    call(w, 1, READS, "GET k");
    call(w, 2, WRITES, "INCR n");
    answer(w, 1, "$1000000000\r\n");
    answer(w, 1, many);
    assert_told(w, "down TOO_LARGE\n1 TOO_LARGE yes -\n2 UNKNOWN yes -\n");
    world_free(w);

    w = world_up((struct lp_store_args){.reply_max = 4096});
    call(w, 1, READS, "KEYS *");
    answer(w, 1, "*1000000000\r\n");
    assert_told(w, "");
    for (int i = 0; i < 4096 / 20 && !w->conns[1].is_closed; i++)
        answer(w, 1, "$-1\r\n:1\r\n+a\r\n");
    assert_told(w, "down TOO_LARGE\n1 TOO_LARGE yes -\n");
    world_free(w);
}

static void test_garbage(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    call(w, 1, READS, "GET k");
    answer(w, 1, "?what\r\n");
    assert_told(w, "down PROTOCOL\n1 DOWN no -\n");
    world_free(w);
    w = world_up((struct lp_store_args){0});
    answer(w, 1, "+unasked\r\n");
    assert_told(w, "down PROTOCOL\n");
    world_free(w);
}

/* More than a connection takes at once goes out bit by bit, in its order. */
static void test_slow_reader(void **state)
{
    (void)state;
    enum { BIG = 100000, COUNT = 5 };
    struct world *w = world_up((struct lp_store_args){0});
    static char text[BIG + 10];
    memcpy(text, "SET k ", 6);
    memset(text + 6, 'x', BIG);
    w->takes_max = 1000;
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(try_call(w, i, WRITES, text, NULL), LP_OK);
    settle(w);
    while (w->conns[1].is_draining)
        drained(w, 1);
    assert_true(w->conns[1].out_len > COUNT * BIG);
    assert_true(lp_span_starts(
        lp_span(w->conns[1].out, w->conns[1].out_len), LP_SPAN("*3\r\n$3\r\nSET\r\n")));
    for (uint64_t i = 0; i < COUNT; i++)
        answer(w, 1, "+OK\r\n");
    assert_told(w,
        "0 ANSWERED yes OK\n1 ANSWERED yes OK\n2 ANSWERED yes OK\n3 ANSWERED yes OK\n"
        "4 ANSWERED yes OK\n");
    world_free(w);
}

/* WRITE says that the connection is gone; what was not taken goes over the next one. */
static void test_dead_write(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    pass_ms(w, 1500);
    w->is_write_dead = true;
    call(w, 1, WRITES, "INCR n");
    w->is_write_dead = false;
    broken(w, 1);
    connected(w, 2);
    said(w, 2);
    answer(w, 2, PRIMARY "+PONG\r\n");
    assert_said(w, 2, "INCR n");
    answer(w, 2, ":1\r\n");
    assert_told(w, "down BROKEN\nup NONE\n1 ANSWERED yes 1\n");
    world_free(w);
}

/* --- refusals for a while --- */

static void test_loading(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    call(w, 1, READS, "GET k");
    call(w, 2, READS, "GET k");
    said(w, 1);
    answer(w, 1, "-LOADING Redis is loading\r\n-MASTERDOWN Link with MASTER is down\r\n");
    assert_said(w, 1, "");
    pass_ms(w, 100);
    assert_said(w, 1, "GET k; GET k");
    answer(w, 1, "$1\r\nv\r\n-BUSY script\r\n");
    assert_told(w, "1 ANSWERED yes v\n2 REFUSED no !BUSY script\n");
    world_free(w);
}

static void test_loading_longer_than_the_deadline(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.call_ms = 350});
    call(w, 1, WRITES, "INCR n");
    for (int i = 0; i < 3; i++) {
        assert_said(w, 1, "INCR n");
        answer(w, 1, "-LOADING Redis is loading\r\n");
        pass_ms(w, 100);
    }
    answer(w, 1, "-LOADING Redis is loading\r\n");
    pass_ms(w, 50);
    assert_told(w, "1 LOADING no -\n");
    world_free(w);
}

/* A primary that was made a replica: left as soon as it has answered all, for the other host. */
static void test_readonly(void **state)
{
    (void)state;
    struct world *w = world_new("redis://a,b", (struct lp_store_args){.call_ms = 5000});
    connected(w, 1);
    answer(w, 1, NO_CLUSTER PRIMARY "+PONG\r\n");
    pass_ms(w, 1500);
    said(w, 1);
    call(w, 1, WRITES, "INCR n");
    call(w, 2, READS, "GET k");
    answer(w, 1, "-READONLY You can't write against a read only replica.\r\n");
    assert_false(lp_store_is_up(w->store));
    call(w, 3, WRITES, "INCR m");
    assert_said(w, 1, "INCR n; GET k");
    answer(w, 1, "$1\r\nv\r\n");
    assert_true(w->conns[1].is_closed);
    assert_string_equal(w->conns[2].host, "b");
    connected(w, 2);
    assert_said(w, 2, "ROLE; PING");
    answer(w, 2, PRIMARY "+PONG\r\n");
    assert_said(w, 2, "INCR n; INCR m");
    answer(w, 2, ":1\r\n:1\r\n");
    assert_told(w,
        "up NONE\n2 ANSWERED yes v\ndown READONLY\nup NONE\n1 ANSWERED yes 1\n"
        "3 ANSWERED yes 1\n");
    world_free(w);
}

/* --- writes that are waited for --- */

static void test_waiting_for_replicas(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.replicas_waited = 2, .wait_ms = 70});
    assert_int_equal(try_call(w, 1, WRITES, "INCR a", NULL), LP_OK);
    assert_int_equal(try_call(w, 2, READS, "GET a", NULL), LP_OK);
    assert_int_equal(try_call(w, 3, WRITES, "INCR b", NULL), LP_OK);
    settle(w);
    assert_said(w, 1, "INCR a; GET a; INCR b; WAIT 2 70"); /* one for all */
    answer(w, 1, ":1\r\n$1\r\n1\r\n:5\r\n");
    assert_told(w, "2 ANSWERED yes 1\n");
    answer(w, 1, ":2\r\n");
    assert_told(w, "1 ANSWERED yes 1\n3 ANSWERED yes 5\n");

    call(w, 4, WRITES, "INCR a");
    answer(w, 1, ":2\r\n:1\r\n"); /* one replica */
    assert_told(w, "4 UNCONFIRMED yes 2\n");
    call(w, 5, WRITES, "INCR a");
    answer(w, 1, ":3\r\n-ERR WAIT cannot be used here\r\n");
    assert_told(w, "5 UNCONFIRMED yes 3\n");
    call(w, 6, WRITES, "INCR a");
    answer(w, 1, "-ERR no\r\n:0\r\n");
    assert_told(w, "6 REFUSED no !ERR no\n");
    call(w, 7, WRITES, "INCR a");
    pass_ms(w, 1);
    lp_id held = call(w, 8, WRITES, "INCR b");
    pass_ms(w, 1);
    call(w, 9, REPEATS, "SET c 1");
    pass_ms(w, 1);
    answer(w, 1, ":4\r\n");
    pass_ms(w, 1499); /* the deadline comes before the replicas */
    assert_told(w, "7 UNCONFIRMED yes 4\n8 TIMEOUT yes -\n9 TIMEOUT yes -\n");
    lp_store_cancel(w->store, held);
    world_free(w);
}

static void test_cut_while_waiting_for_replicas(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){.replicas_waited = 1});
    pass_ms(w, 1500);
    call(w, 1, WRITES, "INCR a");
    call(w, 2, REPEATS, "SET b 1");
    lp_id cancelled = call(w, 3, WRITES, "INCR c");
    answer(w, 1, ":1\r\n");
    answer(w, 1, ":1\r\n+OK\r\n"); /* the first WAIT and the second write */
    answer(w, 1, ":0\r\n:1\r\n");
    assert_told(w, "1 ANSWERED yes 1\n2 UNCONFIRMED yes OK\n");
    lp_store_cancel(w->store, cancelled);
    call(w, 4, WRITES, "INCR a");
    call(w, 5, REPEATS, "SET b 1");
    answer(w, 1, ":0\r\n:2\r\n");
    said(w, 1);
    broken(w, 1);
    assert_told(w, "down BROKEN\n4 UNKNOWN yes -\n");
    connected(w, 2);
    answer(w, 2, PRIMARY "+PONG\r\n");
    assert_said(w, 2, "ROLE; PING; SET b 1; WAIT 1 750");
    world_free(w);
}

/* --- scripts --- */

#define HASH "0123456789abcdef0123456789abcdef01234567"

static int eval(struct world *w, uint64_t tag, uint32_t keys, const char *text)
{
    struct lp_span words[16];
    uint32_t count = split_words(text, words);
    struct lp_store_call_args args = call_args(w, tag, WRITES, words, count);
    lp_id id;
    int err = lp_store_eval(w->store, 0, keys, &args, &id);
    settle(w);
    return err;
}

static void test_scripts(void **state)
{
    (void)state;
    const struct lp_span SCRIPTS[] = {LP_SPAN("return-1")};
    struct world *w = world_new("redis://db",
        (struct lp_store_args){.scripts = SCRIPTS, .script_count = 1, .calls_max = 3});
    connected(w, 1);
    said(w, 1);
    answer(w, 1, NO_CLUSTER PRIMARY "-ERR no such command\r\n+PONG\r\n");
    assert_int_equal(eval(w, 1, 1, "k 5"), LP_OK);
    assert_said(w, 1, "EVAL return-1 1 k 5"); /* its hash is not known */
    answer(w, 1, ":5\r\n");
    pass_ms(w, 1500);
    said(w, 1);
    broken(w, 1);
    connected(w, 2);
    assert_said(w, 2, "ROLE; SCRIPT LOAD return-1; PING");
    answer(w, 2, PRIMARY "$40\r\n" HASH "\r\n+PONG\r\n");
    assert_int_equal(eval(w, 2, 2, "k l 5"), LP_OK);
    assert_said(w, 2, "EVALSHA " HASH " 2 k l 5");
    answer(w, 2, "-NOSCRIPT No matching script.\r\n");
    assert_said(w, 2, "EVAL return-1 2 k l 5");
    answer(w, 2, "-NOSCRIPT of its own\r\n");
    assert_int_equal(eval(w, 3, 0, "5"), LP_OK);
    answer(w, 2, "-ERR in the middle\r\n"); /* who knows what it did before */
    assert_told(w,
        "up NONE\n1 ANSWERED yes 5\ndown BROKEN\nup NONE\n"
        "2 REFUSED yes !NOSCRIPT of its own\n3 REFUSED yes !ERR in the middle\n");
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(eval(w, i, 0, "5"), LP_OK);
    assert_int_equal(eval(w, 3, 0, "5"), LP_ELIMIT);
    world_free(w);
}

/* --- from within callbacks --- */

static lp_id other;

static void call_again(struct world *w, uint64_t tag)
{
    if (tag < 3)
        assert_int_equal(try_call(w, tag + 1, READS, "GET k", NULL), LP_OK);
    if (tag == 1)
        lp_store_cancel(w->store, other);
}

static void test_calls_from_within_done(void **state)
{
    (void)state;
    struct world *w = world_up((struct lp_store_args){0});
    w->on_done = call_again;
    call(w, 1, READS, "GET k");
    other = call(w, 9, READS, "GET l");
    answer(w, 1, "$-1\r\n$-1\r\n");
    answer(w, 1, "$-1\r\n");
    answer(w, 1, "$-1\r\n");
    assert_told(w, "1 ANSWERED yes nil\n2 ANSWERED yes nil\n3 ANSWERED yes nil\n");
    world_free(w);
}

static void call_for_ever(struct world *w, uint64_t tag)
{
    assert_int_equal(try_call(w, tag + 1, READS, "GET k", NULL), LP_OK);
}

/* An owner who does not take "down" for an answer gets on in each turn of the loop, and no faster.
 */
static void test_calls_without_end(void **state)
{
    (void)state;
    struct world *w = world_new("redis://db", (struct lp_store_args){0});
    failed(w, 1, LP_EREFUSED);
    told(w);
    w->on_done = call_for_ever;
    call(w, 1, READS, "GET k");
    assert_told(w, "1 DOWN no -\n2 DOWN no -\n3 DOWN no -\n4 DOWN no -\n");
    assert_int_equal(lp_heap_next_us(&w->timers), w->now_us);
    w->on_done = NULL;
    pass_ms(w, 0);
    assert_told(w, "5 DOWN no -\n");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_in),
        cmocka_unit_test(test_refused_log_ins),
        cmocka_unit_test(test_connections_that_fail),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_hosts_in_turn),
        cmocka_unit_test(test_log_in_that_takes_too_long),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_named_refusals),
        cmocka_unit_test(test_call_after_the_flush),
        cmocka_unit_test(test_before_it_is_up),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_and_then_away),
        cmocka_unit_test(test_grace),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_own_deadline),
        cmocka_unit_test(test_cut_for_ever),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_silence_and_short_deadlines),
        cmocka_unit_test(test_quiet_connections_are_asked),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_too_many_calls),
        cmocka_unit_test(test_too_many_bytes),
        cmocka_unit_test(test_too_large_replies),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_dead_write),
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_loading_longer_than_the_deadline),
        cmocka_unit_test(test_readonly),
        cmocka_unit_test(test_waiting_for_replicas),
        cmocka_unit_test(test_cut_while_waiting_for_replicas),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_calls_from_within_done),
        cmocka_unit_test(test_calls_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
