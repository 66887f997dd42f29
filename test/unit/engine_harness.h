/* One engine in a world of memory: a shell that keeps what is written, a clock that is turned by
 * hand, a client and the connections to one replica. For the tests of the room gate. */
#ifndef LP_TEST_ENGINE_HARNESS_H
#define LP_TEST_ENGINE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "gate/engine_priv.h"

enum {
    CLIENT = 1,
    REPLICA, /* the connection to the replica, unless connect_result says otherwise */
    REPLICA_2,
    CLIENT_2,
    CONNS,
    WRITTEN_MAX = 1 << 18,
    MAILS_MAX = 8,
    SECOND_US = 1000000,
};

struct world {
    struct lp_shell shell;
    struct lp_keyring ring;
    struct lp_conf conf;
    struct lp_conf_server server;
    struct lp_conf_replica replica;
    struct lp_engine *engine;
    uint64_t now_us;
    char written[CONNS][WRITTEN_MAX];
    size_t written_len[CONNS];
    bool takes_nothing[CONNS];
    bool breaks[CONNS]; /* a write fails: LP_EV_BROKEN is owed */
    uint32_t closes[CONNS];
    int64_t connect_result;
    uint32_t connects;
    struct lp_mail mails[MAILS_MAX];
    uint32_t mail_count;
    char log[4096];
    bool stopped;
    char ticket[LP_TICKET_TEXT_MAX];
};

static inline int64_t keep_written(
    struct world *w, lp_id conn, const struct lp_span *parts, uint32_t count)
{
    int64_t taken = 0;
    if (w->breaks[conn])
        return LP_EBROKEN;
    if (w->takes_nothing[conn])
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(w->written_len[conn] + parts[i].len <= WRITTEN_MAX);
        if (parts[i].len)
            memcpy(w->written[conn] + w->written_len[conn], parts[i].ptr, parts[i].len);
        w->written_len[conn] += parts[i].len;
        taken += (int64_t)parts[i].len;
    }
    return taken;
}

static inline int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        w->connects++;
        return w->connect_result;
    case LP_ACT_WRITE:
        return keep_written(w, action->conn, action->u.write.parts, action->u.write.count);
    case LP_ACT_CLOSE:
        w->closes[action->conn]++;
        return LP_OK;
    case LP_ACT_LOG:
        snprintf(
            w->log, sizeof w->log, "%.*s", (int)action->u.log.line.len, action->u.log.line.ptr);
        return LP_OK;
    case LP_ACT_MAIL:
        memcpy(&w->mails[w->mail_count++ % MAILS_MAX], action->u.mail.bytes.ptr,
            sizeof(struct lp_mail));
        return LP_OK;
    case LP_ACT_STOPPED:
        w->stopped = true;
        return LP_OK;
    default:
        return LP_OK;
    }
}

static inline void fill_conf(struct world *w)
{
    w->replica = (struct lp_conf_replica){.name = LP_SPAN("r"),
        .address = {.host = LP_SPAN("r.test"), .port = 1, .authority = LP_SPAN("r.test:1")},
        .path = LP_SPAN("/mcp"),
        .weight = 1};
    w->server = (struct lp_conf_server){.name = LP_SPAN("default"),
        .path = LP_SPAN("/mcp"),
        .sse_path = LP_SPAN("/sse"),
        .sse_upstream = LP_SPAN("/sse"),
        .replicas = &w->replica,
        .replica_count = 1,
        .gone_after_ms = 3000,
        .connect_ms = 2000,
        .first_byte_ms = 300000,
        .sse_post_ms = 10000,
        .stalled_ms = 60000,
        .ticket_age_ms = 1000000,
        .body_max = 1 << 20};
    w->conf = (struct lp_conf){.threads = 1,
        .servers = &w->server,
        .server_count = 1,
        .access_log = true,
        .log_level = LP_LOG_ERROR,
        .request_ms = 30000,
        .large_bodies_max = 1 << 28,
        .stop_ms = 1000,
        .conn_max = 10};
}

/* An engine that believes to be the first of `count`. */
static inline struct world *new_world(uint32_t count)
{
    struct world *w = calloc(1, sizeof *w);
    uint32_t line;
    assert_non_null(w);
    w->shell = (struct lp_shell){w, perform};
    w->connect_result = REPLICA;
    w->now_us = SECOND_US;
    fill_conf(w);
    assert_int_equal(lp_keyring_parse(LP_SPAN("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"),
                         &w->ring, &line),
        LP_OK);
    struct lp_engine_args args = {.shell = &w->shell,
        .count = count,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = 1800000000000};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    return w;
}

static inline int setup(void **state)
{
    *state = new_world(1);
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;
    lp_engine_free(w->engine);
    free(w);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- events --- */

static inline void tell(struct world *w, struct lp_event event)
{
    event.mono_us = ++w->now_us;
    event.wall_ms = 1800000000000;
    lp_engine_event(w->engine, &event);
}

static inline void tell_kind(struct world *w, enum lp_event_kind kind, lp_id conn)
{
    tell(w, (struct lp_event){.kind = kind, .conn = conn});
}

static inline void pass_time(struct world *w, uint64_t us)
{
    w->now_us += us;
    tell_kind(w, LP_EV_TIMER, 0);
}

static inline void accept_client(struct world *w, bool is_admin, const char *peer)
{
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = CLIENT};
    event.u.accepted =
        (struct lp_conn_facts){.is_admin = is_admin, .peer = lp_span_str(peer), .unix_uid = -1};
    tell(w, event);
}

static inline void read_span(struct world *w, lp_id conn, struct lp_span bytes)
{
    tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = bytes});
}

static inline void read_text(struct world *w, lp_id conn, const char *text)
{
    read_span(w, conn, lp_span_str(text));
}

static inline bool has(const struct world *w, lp_id conn, const char *text)
{
    struct lp_span all = lp_span(w->written[conn], w->written_len[conn]);
    return lp_span_search(all, lp_span_str(text)) < all.len;
}

/* --- a conversation --- */

/* The client's next request; `fields` are whole lines. What was written before is forgotten. */
static inline void request(struct world *w, const char *line, const char *fields, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof text,
        "%s HTTP/1.1\r\nHost: a\r\n%sContent-Type: application/json\r\nContent-Length: "
        "%zu\r\n\r\n%s",
        line, fields, strlen(body), body);
    assert_true(n > 0 && n < (int)sizeof text);
    w->written_len[CLIENT] = w->written_len[REPLICA] = 0;
    read_text(w, CLIENT, text);
}

/* The replica answers on its newest connection, a JSON body when there is one. */
static inline void answer_with(
    struct world *w, const char *status, const char *fields, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
        fields, strlen(body), body);
    assert_true(n > 0 && n < (int)sizeof text);
    read_text(w, (lp_id)w->connect_result, text);
}

/* A session by way of a client that stays connected; w->ticket is its id field, a whole line. Its
 * replica connection is kept: later requests go out on it at once. */
static inline void open_session(struct world *w)
{
    static const char FIELD[] = "mcp-session-id: ";
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "200 OK", "Mcp-Session-Id: u1\r\n", "{}");
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    size_t at = lp_span_search(all, lp_span_str(FIELD));
    assert_true(at < all.len);
    struct lp_span line = lp_span_from(all, at);
    line.len = lp_span_search(line, LP_SPAN("\r\n")) + 2;
    assert_true(line.len < sizeof w->ticket);
    memcpy(w->ticket, line.ptr, line.len);
    w->ticket[line.len] = '\0';
}

/* How many sessions the engine believes its replica to have. */
static inline uint32_t session_count(const struct world *w)
{
    struct lp_metrics_replica row;
    assert_int_equal(lp_engine_replicas(w->engine, &row, 1), 1);
    return row.sessions;
}

#endif
