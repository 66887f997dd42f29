/* Loading when memory runs out: each allocation fails once in its turn, and every time the load
 * says so and leaves nothing behind. Needs the linker's --wrap for malloc, calloc and realloc. */
#include "conf_harness.h"

static long calls_left = -1; /* allocations that still succeed; -1: all */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t n);

static bool may_succeed(void)
{
    if (calls_left < 0)
        return true;
    if (calls_left == 0)
        return false;
    calls_left--;
    return true;
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

static const char GOOD[] =
    "listen: [0.0.0.0:8080, localhost:1]\n"
    "log: {level: debug, file: /var/log/limpet}\n"
    "timeouts: {connect: 1s}\n"
    "servers:\n"
    "- name: a\n"
    "  replicas: [http://a:1, {url: \"unix:/b\", name: b}]\n"
    "  hosts: [a, b, c]\n"
    "  lost_dialects: [{status: 400, text: gone}]\n"
    "- name: b\n"
    "  path: /b\n"
    "  replicas: [http://a:1, http://b:1, http://c:1, http://d:1, http://e:1, http://f:1,\n"
    "    http://g:1, http://h:1, http://i:1, http://j:1, http://k:1, http://l:1, http://m:1,\n"
    "    http://n:1, http://o:1, http://p:1, http://q:1, http://r:1, http://s:1, http://t:1]\n";
static const char *const WORDS[] = {"--host=a", "--threads", "2", "--origin=http://a", NULL};

/* Loads with the n-th allocation failing; false when all n were not needed. */
static enum lp_conf_seat seat = LP_SEAT_GATEWAY;

static bool load_without(long n, const char *text, int wanted)
{
    struct lp_conf *conf = NULL;
    struct lp_buf errors;
    struct lp_conf_source source = {.seat = seat,
        .file_name = LP_SPAN("f"),
        .file_text = lp_span_str(text),
        .argc = seat == LP_SEAT_SIDECAR ? 1 : 4,
        .argv = WORDS};
    lp_buf_init(&errors, 1 << 16);
    calls_left = n;
    int err = lp_conf_load(&source, &conf, &errors);
    bool was_reached = calls_left == 0;
    calls_left = -1;
    if (err != LP_ENOMEM)
        assert_int_equal(err, wanted);
    assert_true((conf != NULL) == (err == LP_OK));
    if (conf && seat == LP_SEAT_SIDECAR)
        assert_int_equal(lp_conf_set_self(conf, LP_SPAN("m1")), LP_OK);
    lp_conf_free(conf);
    lp_buf_release(&errors);
    return was_reached && err == LP_ENOMEM;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 0;
    while (load_without(n, GOOD, LP_OK))
        n++;
    assert_in_range(n, 8, 1000);
}

static void every_allocation_of_a_sidecar_may_fail(void **state)
{
    char text[65536] = "local: http://a:1\npeers:\n";
    (void)state;
    for (int i = 2; i < 900; i++) { /* so many that each array needs memory of its own */
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "- m%d=http://peer%d:8080\n", i, i);
    }
    seat = LP_SEAT_SIDECAR;
    long n = 0;
    while (load_without(n, text, LP_OK))
        n++;
    seat = LP_SEAT_GATEWAY;
    assert_in_range(n, 8, 10000);
}

static void every_allocation_of_a_refusal_may_fail(void **state)
{
    (void)state;
    long n = 0;
    while (load_without(n, "threads: x\nlisten: [y, z]\nnoname: 1\ngone_after: 9h\n", LP_ESYNTAX))
        n++;
    assert_in_range(n, 3, 1000);
}

static void printing_may_fail(void **state)
{
    struct lp_buf out;
    (void)state;
    struct loaded l = load(GOOD, NULL);
    assert_int_equal(l.err, LP_OK);
    long n = 0;
    int err = LP_ENOMEM;
    for (; err; n++) {
        lp_buf_init(&out, 1 << 16);
        calls_left = n;
        err = lp_conf_print(l.conf, &out);
        calls_left = -1;
        assert_true(err == LP_OK || err == LP_ENOMEM);
        lp_buf_release(&out);
    }
    assert_in_range(n, 4, 1000);
    unload(&l);
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_a_sidecar_may_fail),
        cmocka_unit_test(every_allocation_of_a_refusal_may_fail),
        cmocka_unit_test(printing_may_fail),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
