/* What one engine learns of a server the others know as well: two engines of one process, the mail
 * between them carried by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "gate/engine.h"

enum { ENGINES = 2, CLIENT = 1, REPLICA = 2, WRITTEN_MAX = 1 << 16, MAIL_MAX = 2048 };

struct world;

struct half {
    struct world *w;
    struct lp_shell shell;
    struct lp_engine *engine;
    char written[REPLICA + 1][WRITTEN_MAX];
    size_t written_len[REPLICA + 1];
};

struct world {
    struct lp_keyring ring;
    struct lp_conf conf;
    struct lp_conf_server server;
    struct lp_conf_replica replica;
    struct half halves[ENGINES];
    uint32_t letters;
};

static void tell(struct half *h, struct lp_event event)
{
    event.mono_us = 1000001;
    event.wall_ms = 1800000000000;
    lp_engine_event(h->engine, &event);
}

/* The bytes are copied, as the shell does: a span within them would not survive. */
static void carry(struct world *w, uint32_t to, struct lp_span bytes)
{
    char *copy = malloc(bytes.len);
    memcpy(copy, bytes.ptr, bytes.len);
    struct lp_event event = {.kind = LP_EV_MAIL};
    event.u.mail.bytes = lp_span(copy, bytes.len);
    w->letters++;
    tell(&w->halves[to], event);
    memset(copy, 0, bytes.len);
    free(copy);
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct half *h = ctx;
    int64_t taken = 0;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return REPLICA;
    case LP_ACT_WRITE:
        for (uint32_t i = 0; i < action->u.write.count; i++) {
            struct lp_span part = action->u.write.parts[i];
            if (part.len)
                memcpy(h->written[action->conn] + h->written_len[action->conn], part.ptr, part.len);
            h->written_len[action->conn] += part.len;
            taken += (int64_t)part.len;
        }
        return taken;
    case LP_ACT_MAIL:
        carry(h->w, action->u.mail.to, action->u.mail.bytes);
        return LP_OK;
    default:
        return LP_OK;
    }
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    uint32_t line;
    w->replica = (struct lp_conf_replica){.name = LP_SPAN("r"),
        .address = {.host = LP_SPAN("r.test"), .port = 1, .authority = LP_SPAN("r.test:1")},
        .path = LP_SPAN("/mcp"),
        .weight = 1};
    w->server = (struct lp_conf_server){.name = LP_SPAN("default"),
        .path = LP_SPAN("/mcp"),
        .replicas = &w->replica,
        .replica_count = 1,
        .gone_after_ms = 3000,
        .first_byte_ms = 300000,
        .stalled_ms = 60000,
        .ticket_age_ms = 1000000,
        .body_max = 1 << 20};
    w->conf = (struct lp_conf){
        .threads = ENGINES, .servers = &w->server, .server_count = 1, .conn_max = 10};
    assert_int_equal(lp_keyring_parse(LP_SPAN("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"),
                         &w->ring, &line),
        LP_OK);
    for (uint32_t i = 0; i < ENGINES; i++) {
        struct half *h = &w->halves[i];
        *h = (struct half){.w = w, .shell = {h, perform}};
        struct lp_engine_args args = {.shell = &h->shell,
            .number = i,
            .count = ENGINES,
            .conf = &w->conf,
            .keyring = &w->ring,
            .mono_us = 1000000,
            .wall_ms = 1800000000000};
        assert_int_equal(lp_engine_new(&args, &h->engine), LP_OK);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < ENGINES; i++)
        lp_engine_free(w->halves[i].engine);
    free(w);
    return 0;
}

static void read_text(struct half *h, lp_id conn, const char *text)
{
    tell(h, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span_str(text)});
}

/* One request on a fresh connection of one engine. */
static void ask(struct half *h, const char *request)
{
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT};
    event.u.accepted = (struct lp_conn_facts){.peer = LP_SPAN("192.0.2.7:1"), .unix_uid = -1};
    h->written_len[CLIENT] = h->written_len[REPLICA] = 0;
    tell(h, event);
    read_text(h, CLIENT, request);
}

/* The replica answers what it was asked, and closes. */
static void answer(struct half *h, const char *text)
{
    tell(h, (struct lp_event){.kind = LP_EV_CONNECTED, .conn = REPLICA});
    assert_true(h->written_len[REPLICA] > 0);
    read_text(h, REPLICA, text);
}

static void hang_up(struct half *h)
{
    tell(h, (struct lp_event){.kind = LP_EV_BROKEN, .conn = CLIENT});
}

static bool has(const struct half *h, const char *text)
{
    struct lp_span all = lp_span(h->written[CLIENT], h->written_len[CLIENT]);
    return lp_span_search(all, lp_span_str(text)) < all.len;
}

#define LOST "GET /mcp HTTP/1.1\r\nHost: a\r\nMcp-Session-Id: gone\r\nConnection: close\r\n\r\n"
#define NO_BODY "Content-Length: 0\r\nConnection: close\r\n\r\n"
#define INITIALIZE                                                                                 \
    "POST /mcp HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 46\r\n\r\n"             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"

static void meet_challenge(struct half *h, const char *head)
{
    ask(h, INITIALIZE);
    answer(h, head);
    hang_up(h);
}

static void a_challenge_is_known_to_every_engine(void **state)
{
    struct world *w = *state;
    ask(&w->halves[1], LOST);
    assert_true(has(&w->halves[1], "HTTP/1.1 404 "));
    hang_up(&w->halves[1]);
    meet_challenge(&w->halves[0],
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer a=\"1\"\r\nwww-authenticate: "
        "Basic\r\n" NO_BODY);
    ask(&w->halves[1], LOST);
    assert_true(has(&w->halves[1], "HTTP/1.1 401 "));
    assert_true(has(&w->halves[1], "www-authenticate: Bearer a=\"1\", Basic\r\n"));
    hang_up(&w->halves[1]);
    uint32_t before = w->letters;
    meet_challenge(&w->halves[1],
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer a=\"1\"\r\nWWW-Authenticate: "
        "Basic\r\n" NO_BODY);
    assert_int_equal(w->letters, before); /* nothing new */
    meet_challenge(
        &w->halves[1], "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer a=\"2\"\r\n" NO_BODY);
    ask(&w->halves[0], LOST);
    assert_true(has(&w->halves[0], "www-authenticate: Bearer a=\"2\"\r\n"));
}

static void a_challenge_too_long_to_keep_is_a_bare_one(void **state)
{
    struct world *w = *state;
    char head[1200] = "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer a=\"";
    memset(head + strlen(head), 'x', 600);
    strcat(head, "\"\r\n" NO_BODY);
    meet_challenge(&w->halves[0], head);
    for (int i = 0; i < ENGINES; i++) {
        ask(&w->halves[i], LOST);
        assert_true(has(&w->halves[i], "HTTP/1.1 401 "));
        assert_true(has(&w->halves[i], "www-authenticate: Bearer\r\n"));
        hang_up(&w->halves[i]);
    }
}

static void who_opens_a_session_without_credentials_challenges_no_more(void **state)
{
    struct world *w = *state;
    meet_challenge(&w->halves[0], "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\n" NO_BODY);
    meet_challenge(&w->halves[1], "HTTP/1.1 200 OK\r\nMcp-Session-Id: u1\r\n" NO_BODY);
    for (int i = 0; i < ENGINES; i++) {
        ask(&w->halves[i], LOST);
        assert_true(has(&w->halves[i], "HTTP/1.1 404 "));
        hang_up(&w->halves[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_challenge_is_known_to_every_engine),
        TEST(a_challenge_too_long_to_keep_is_a_bare_one),
        TEST(who_opens_a_session_without_credentials_challenges_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
