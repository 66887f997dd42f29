/* A scripted shell for the client's rooms: connections that remember what was written to them, a
 * virtual clock, and a network log kept as text. */
#ifndef CALL_HARNESS_H
#define CALL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/fetch.h"

enum { SHELL_CONNS = 80, SHELL_WRITTEN = 1 << 21, SHELL_LOG = 1 << 16 };

struct shell_conn {
    char host[128];
    uint16_t port;
    bool is_tls;
    bool is_closed;
    bool is_draining;
    char *written;
    size_t len;
};

struct shell {
    struct lp_shell shell;
    struct shell_conn conns[SHELL_CONNS + 1]; /* by id, from 1 */
    uint32_t count;
    uint64_t mono_us;
    uint64_t wall_ms;
    uint64_t timer_at_us;
    int connect_error; /* what CONNECT answers at once, when not 0 */
    size_t takes_max;  /* bytes that a WRITE takes; 0: all */
    struct lp_target target;
    struct lp_netlog netlog;
    struct lp_fetcher *fetcher;
    void (*settle)(void *owner); /* what the fetcher's owner does at the end of an event, or NULL */
    void *owner;
    char log[SHELL_LOG];
    size_t log_len;
};

static inline int64_t shell_take(struct shell_conn *conn, const char *ptr, size_t len)
{
    assert_true(conn->len + len <= SHELL_WRITTEN);
    if (len)
        memcpy(conn->written + conn->len, ptr, len);
    conn->len += len;
    conn->written[conn->len] = '\0';
    return (int64_t)len;
}

static inline int64_t shell_write(struct shell *s, const struct lp_action *action)
{
    int64_t taken = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        if (s->takes_max && (size_t)taken + part.len > s->takes_max)
            part.len = s->takes_max - (size_t)taken;
        taken += shell_take(&s->conns[action->conn], part.ptr, part.len);
    }
    return taken;
}

static inline int64_t shell_connect(struct shell *s, const struct lp_endpoint *to)
{
    if (s->connect_error)
        return s->connect_error;
    assert_true(s->count < SHELL_CONNS);
    struct shell_conn *conn = &s->conns[++s->count];
    snprintf(conn->host, sizeof conn->host, "%.*s", (int)to->host.len, to->host.ptr);
    conn->port = to->port;
    conn->is_tls = to->is_tls;
    conn->written = calloc(1, SHELL_WRITTEN + 1);
    return s->count;
}

static inline int64_t shell_perform(void *ctx, const struct lp_action *action)
{
    struct shell *s = ctx;
    struct shell_conn *conn = &s->conns[action->conn <= SHELL_CONNS ? action->conn : 0];
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return shell_connect(s, &action->u.connect);
    case LP_ACT_WRITE:
        return shell_write(s, action);
    case LP_ACT_DRAIN:
        conn->is_draining = true;
        return shell_take(conn, action->u.drain.ptr, action->u.drain.len);
    case LP_ACT_CLOSE:
        assert_false(conn->is_closed);
        conn->is_closed = true;
        return 0;
    case LP_ACT_TIMER:
        s->timer_at_us = action->u.timer_at_us;
        return 0;
    default:
        return 0;
    }
}

static inline void shell_log_line(void *ctx, struct lp_span line)
{
    struct shell *s = ctx;
    if (s->log_len + line.len + 2 > sizeof s->log)
        return;
    memcpy(s->log + s->log_len, line.ptr, line.len);
    s->log_len += line.len;
    s->log[s->log_len++] = '\n';
    s->log[s->log_len] = '\0';
}

/* A fetcher whose target is `url`, with a network log. */
static inline struct shell *shell_new(const char *url)
{
    static const unsigned char KEY[LP_NETLOG_KEY_BYTES] = "0123456789abcde";
    struct shell *s = calloc(1, sizeof *s);
    s->shell = (struct lp_shell){.ctx = s, .perform = shell_perform};
    s->mono_us = 1000000;
    s->wall_ms = 1764522132123;
    s->timer_at_us = UINT64_MAX;
    lp_target_init(&s->target);
    assert_int_equal(lp_target_set_url(&s->target, lp_span_str(url)), LP_OK);
    lp_netlog_init(&s->netlog, shell_log_line, s, KEY);
    struct lp_fetcher_args args = {.shell = &s->shell, .target = &s->target, .log = &s->netlog};
    assert_int_equal(lp_fetcher_new(&args, &s->fetcher), LP_OK);
    struct lp_event start = {.kind = LP_EV_CONFIG, .mono_us = s->mono_us, .wall_ms = s->wall_ms};
    lp_fetcher_event(s->fetcher, &start);
    return s;
}

static inline void shell_free(struct shell *s)
{
    lp_fetcher_free(s->fetcher);
    lp_netlog_fini(&s->netlog);
    lp_target_fini(&s->target);
    for (uint32_t i = 1; i <= s->count; i++) {
        assert_true(s->conns[i].is_closed);
        free(s->conns[i].written);
    }
    free(s);
}

static inline void shell_event(struct shell *s, struct lp_event event)
{
    event.mono_us = s->mono_us;
    event.wall_ms = s->wall_ms;
    lp_fetcher_event(s->fetcher, &event);
    for (int round = 0; s->settle && round < 2; round++) { /* as app/client_loop.c does it */
        s->settle(s->owner);
        lp_fetcher_settle(s->fetcher);
    }
}

static inline void shell_connected(struct shell *s, lp_id conn)
{
    shell_event(s, (struct lp_event){.kind = LP_EV_CONNECTED, .conn = conn});
}

static inline void shell_not_connected(struct shell *s, lp_id conn, int error)
{
    s->conns[conn].is_closed = true;
    shell_event(s, (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .conn = conn, .u.error = error});
}

static inline void shell_read(struct shell *s, lp_id conn, const char *text)
{
    if (!s->conns[conn].is_closed)
        shell_event(
            s, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span_str(text)});
}

static inline void shell_eof(struct shell *s, lp_id conn)
{
    if (!s->conns[conn].is_closed)
        shell_event(s, (struct lp_event){.kind = LP_EV_EOF, .conn = conn});
}

static inline void shell_broken(struct shell *s, lp_id conn)
{
    if (s->conns[conn].is_closed)
        return;
    s->conns[conn].is_closed = true;
    shell_event(s, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

/* Tells that what was drained is gone, until nothing is. */
static inline void shell_drain_all(struct shell *s, lp_id conn)
{
    while (s->conns[conn].is_draining && !s->conns[conn].is_closed) {
        s->conns[conn].is_draining = false;
        shell_event(s, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
    }
}

/* Lets time pass; timers fire at their own moments. */
static inline void shell_pass(struct shell *s, uint64_t ms)
{
    uint64_t end_us = s->mono_us + ms * 1000;
    while (s->timer_at_us <= end_us) {
        uint64_t step_us = s->timer_at_us > s->mono_us ? s->timer_at_us - s->mono_us : 0;
        s->mono_us += step_us;
        s->wall_ms += step_us / 1000;
        s->timer_at_us = UINT64_MAX;
        shell_event(s, (struct lp_event){.kind = LP_EV_TIMER});
    }
    s->wall_ms += (end_us - s->mono_us) / 1000;
    s->mono_us = end_us;
}

/* What was written to a connection since the last time. */
static inline const char *shell_written(struct shell *s, lp_id conn)
{
    return s->conns[conn].written ? s->conns[conn].written : "";
}

static inline void shell_forget(struct shell *s, lp_id conn)
{
    s->conns[conn].len = 0;
    s->conns[conn].written[0] = '\0';
}

static inline bool text_has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* An answer with a counted body. */
static inline void shell_answer(
    struct shell *s, lp_id conn, const char *status_and_fields, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s",
        status_and_fields, strlen(body), body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    shell_read(s, conn, text);
}

#endif
