/* The store's client when memory runs out: in a story of all that it does each allocation fails
 * once in its turn. Nothing crashes or leaks, each call that was accepted ends once, and afterwards
 * it works as before. Needs the linker's --wrap for malloc, calloc, realloc. (What hiredis and the
 * C library allocate inside of themselves does not fail here.) */
#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

#define calloc __real_calloc /* the shell's own memory does not run out */
#define realloc __real_realloc
#include "store_robot.h"
#undef calloc
#undef realloc

static long calls_left = -1; /* allocations that still succeed; -1: all */
static long failures;
static uint32_t accepted, ended;

/* One allocation fails, those after it succeed again. */
static bool may_succeed(void)
{
    if (calls_left < 0)
        return true;
    if (calls_left-- > 0)
        return true;
    failures++;
    return false;
}

void *__wrap_malloc(size_t n)
{
    return may_succeed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return may_succeed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t n)
{
    return may_succeed() ? __real_realloc(ptr, n) : NULL;
}

static void count_done(struct world *w, uint64_t tag)
{
    (void)w;
    (void)tag;
    ended++;
}

static void try(struct world *w, int kind, const char *text)
{
    lp_id id;
    int err = try_call(w, 1, kind, text, &id);
    assert_true(err == LP_OK || err == LP_ENOMEM);
    accepted += err == LP_OK;
    settle(w);
}

static void try_eval(struct world *w)
{
    const struct lp_span WORDS[] = {LP_SPAN("a"), LP_SPAN("5")};
    struct lp_store_call_args args = call_args(w, 1, WRITES, WORDS, 2);
    int err = lp_store_eval(w->store, 0, 1, &args, NULL);
    accepted += err == LP_OK;
    settle(w);
}

static void use(struct world *w, bool is_cluster)
{
    lp_id id = 0;
    robot_run(w, is_cluster);
    try(w, WRITES, "SET a 1");
    try(w, READS, "GET b");
    try_eval(w);
    (void)!lp_store_subscribe(w->store, LP_SPAN("news"), &id);
    settle(w);
    robot_run(w, is_cluster);
    lp_store_unsubscribe(w->store, id);
    robot_run(w, is_cluster);
}

static void lose_one(struct world *w, lp_id conn, bool is_cluster)
{
    pass_ms(w, 1200);
    robot_run(w, is_cluster);
    try(w, WRITES, "SET a 1");
    try(w, READS, "GET a");
    try(w, REPEATS, "SET b 1");
    if (conn <= w->count && !w->conns[conn].is_closed)
        broken(w, conn);
    robot_run(w, is_cluster);
    pass_ms(w, 200);
    robot_run(w, is_cluster);
}

static void be_redirected(struct world *w, bool is_cluster)
{
    try(w, WRITES, "SET a 1");
    for (lp_id id = 1; id <= w->count && is_cluster; id++)
        if (!w->conns[id].is_closed && strcmp(said(w, id), "SET a 1; WAIT 1 750") == 0)
            answer(w, id, "-MOVED 15495 C:6379\r\n:1\r\n");
    robot_run(w, is_cluster);
    w->takes_max = 10;
    try(w, WRITES, "SET a 1");
    robot_run(w, is_cluster);
    w->takes_max = -1;
}

static int open_scarce(struct world *w, bool is_cluster)
{
    static struct lp_span script;
    script = LP_SPAN("return-1");
    w->on_done = count_done;
    int err = world_open(w, is_cluster ? "redis+cluster://A" : "redis://A",
        (struct lp_store_args){.replicas_waited = 1, .scripts = &script, .script_count = 1});
    if (!err)
        happen(w, (struct lp_event){.kind = LP_EV_CONFIG});
    return err;
}

static void tell_story(struct world *w, bool is_cluster)
{
    use(w, is_cluster);
    lose_one(w, 1, is_cluster);
    be_redirected(w, is_cluster);
    pass_ms(w, 3000); /* quiet connections are asked */
    robot_run(w, is_cluster);
}

static void assert_works(struct world *w, bool is_cluster)
{
    for (int i = 0; i < 8; i++) {
        pass_ms(w, 500);
        robot_run(w, is_cluster);
    }
    assert_int_equal(accepted, ended);
    assert_true(lp_store_is_up(w->store));
    told(w);
    call(w, 7, WRITES, "SET a 1");
    robot_run(w, is_cluster);
    assert_told(w, "7 ANSWERED yes 1\n");
}

static void run_all(bool is_cluster)
{
    bool was_needed = true;
    long n = 0;
    for (; was_needed; n++) {
        struct world *w = world_bare();
        failures = accepted = ended = 0;
        calls_left = n;
        int err = open_scarce(w, is_cluster);
        if (!err)
            tell_story(w, is_cluster);
        calls_left = -1;
        was_needed = failures > 0;
        if (!err)
            assert_works(w, is_cluster);
        else
            assert_int_equal(err, LP_ENOMEM);
        if (err)
            w->store = NULL;
        world_free(w);
    }
    assert_true(n > 20);
}

static void test_one_server(void **state)
{
    (void)state;
    run_all(false);
}

static void test_cluster(void **state)
{
    (void)state;
    run_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_server),
        cmocka_unit_test(test_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
