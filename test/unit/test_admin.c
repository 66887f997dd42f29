/* The admin listener where no system test gets it (app/admin.h): /ready of several engines, which
 * is true only while every one of them takes work, because a balancer's connections reach them all;
 * and answers whose reader is slow or leaves. Two engines with a scripted shell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/admin.h"
#include "base/error.h"

enum { ENGINES = 2, CLIENT = 1, WRITTEN_MAX = 1 << 20, LARGE = 300000 };

struct world {
    struct lp_shell shell;
    struct lp_keyring ring;
    struct lp_conf_replica replica;
    struct lp_conf_server server;
    struct lp_conf conf;
    struct lp_engine *engines[ENGINES];
    struct lp_admin *admin;
    char written[WRITTEN_MAX];
    size_t written_len;
    bool takes_nothing;
    struct lp_span drain;
};

static bool status_is_large;

/* The texts of /status are admin_status.c's and not wanted here. */
int lp_status_json(const struct lp_status *status, struct lp_buf *out)
{
    for (int i = 0; status_is_large && i < LARGE; i++)
        if (lp_buf_append(out, LP_SPAN("s")))
            return LP_ENOMEM;
    return lp_buf_append(out, status->is_ready ? LP_SPAN("yes") : LP_SPAN("no"));
}

int lp_status_text(const struct lp_status *status, struct lp_buf *out)
{
    return lp_status_json(status, out);
}

static void keep(struct world *w, struct lp_span part)
{
    assert_true(w->written_len + part.len < WRITTEN_MAX);
    if (part.len)
        memcpy(w->written + w->written_len, part.ptr, part.len);
    w->written_len += part.len;
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    size_t before = w->written_len;
    if (action->kind == LP_ACT_DRAIN)
        w->drain = action->u.drain;
    if (action->kind != LP_ACT_WRITE || w->takes_nothing)
        return LP_OK;
    for (uint32_t i = 0; i < action->u.write.count; i++)
        keep(w, action->u.write.parts[i]);
    return (int64_t)(w->written_len - before);
}

static void fill_conf(struct world *w)
{
    w->replica = (struct lp_conf_replica){
        .name = LP_SPAN("r"), .address = {.host = LP_SPAN("r.test"), .port = 1}, .weight = 1};
    w->server = (struct lp_conf_server){.name = LP_SPAN("tools"),
        .path = LP_SPAN("/mcp"),
        .replicas = &w->replica,
        .replica_count = 1};
    w->conf = (struct lp_conf){.servers = &w->server,
        .server_count = 1,
        .admin = {.is_loopback = true},
        .log_level = LP_LOG_ERROR,
        .conn_max = 10};
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    w->shell = (struct lp_shell){w, perform};
    fill_conf(w);
    w->admin = lp_admin_new(&(struct lp_admin_args){
        .conf = &w->conf, .keyring = &w->ring, .engines = w->engines, .engine_count = ENGINES});
    for (uint32_t i = 0; i < ENGINES; i++) {
        struct lp_engine_args args = {.shell = &w->shell,
            .number = i,
            .count = ENGINES,
            .conf = &w->conf,
            .keyring = &w->ring,
            .admin_ops = i == 0 ? &lp_admin_ops : NULL,
            .admin_ctx = w->admin};
        assert_int_equal(lp_engine_new(&args, &w->engines[i]), LP_OK);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < ENGINES; i++)
        lp_engine_free(w->engines[i]);
    lp_admin_free(w->admin);
    free(w);
    return 0;
}

static void tell(struct world *w, enum lp_event_kind kind)
{
    lp_engine_event(w->engines[0], &(struct lp_event){.kind = kind, .conn = CLIENT});
}

/* A connection of its own for a GET of this path. */
static void ask(struct world *w, const char *path)
{
    char request[128];
    int n = snprintf(request, sizeof request,
        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT};
    event.u.accepted = (struct lp_conn_facts){.is_admin = true, .is_loopback = true};
    w->written_len = 0;
    lp_engine_event(w->engines[0], &event);
    event = (struct lp_event){
        .kind = LP_EV_READ, .conn = CLIENT, .u.bytes = lp_span(request, (size_t)n)};
    lp_engine_event(w->engines[0], &event);
}

/* What the admin listener answers to a GET of this path, head and body. */
static const char *get(struct world *w, const char *path)
{
    ask(w, path);
    tell(w, LP_EV_BROKEN);
    w->written[w->written_len] = '\0';
    return w->written;
}

static void ready_means_every_engine(void **state)
{
    struct world *w = *state;
    assert_non_null(strstr(get(w, "/ready"), " 200 OK\r\n"));
    assert_non_null(strstr(get(w, "/status"), "\r\n\r\nyes"));
    lp_engine_event(w->engines[1], &(struct lp_event){.kind = LP_EV_STOP});
    assert_non_null(strstr(get(w, "/ready"), " 503 "));
    assert_non_null(strstr(w->written, "\r\n\r\nthread 1 is stopping, or sees a server "));
    assert_non_null(strstr(get(w, "/status"), "\r\n\r\nno"));
}

static void the_first_engine_says_more(void **state)
{
    struct world *w = *state;
    lp_engine_event(w->engines[0], &(struct lp_event){.kind = LP_EV_STOP});
    assert_non_null(strstr(get(w, "/ready"), " 503 "));
    assert_non_null(strstr(w->written, "\r\n\r\nstopping\n"));
}

/* It has ended its side and reads on: nothing of the answer is missing. */
static void a_slow_reader_gets_all_of_it(void **state)
{
    struct world *w = *state;
    status_is_large = w->takes_nothing = true;
    ask(w, "/status");
    tell(w, LP_EV_EOF);
    while (w->drain.len) {
        keep(w, w->drain);
        w->drain.len = 0;
        w->takes_nothing = w->written_len < LARGE / 2;
        tell(w, LP_EV_DRAINED);
    }
    status_is_large = false;
    w->written[w->written_len] = '\0';
    const char *body = strstr(w->written, "\r\n\r\n") + 4;
    assert_int_equal(strspn(body, "s"), LARGE);
    assert_string_equal(body + LARGE, "yes");
}

/* There is room for some answers only; one that nobody waits for takes none. */
static void a_reader_that_leaves_costs_nothing(void **state)
{
    struct world *w = *state;
    enum { MORE_THAN_THERE_IS_ROOM_FOR = 100 };
    status_is_large = w->takes_nothing = true;
    for (int i = 0; i < MORE_THAN_THERE_IS_ROOM_FOR; i++) {
        ask(w, "/status");
        tell(w, LP_EV_BROKEN);
    }
    status_is_large = w->takes_nothing = false;
    assert_non_null(strstr(get(w, "/status"), "\r\n\r\nyes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ready_means_every_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_engine_says_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_reader_gets_all_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reader_that_leaves_costs_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
