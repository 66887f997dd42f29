/* A store whose servers are played by the test: a scripted shell with a virtual clock. What the
 * store sends is read back as lines of words ("GET k"), what it tells its owner is kept as lines
 * ("1 ANSWERED yes OK"), so that a test is a dialogue. */
#ifndef STORE_HARNESS_H
#define STORE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "store/store.h"

enum { WORLD_CONNS = 200, WORLD_TEXT = 1 << 16 };

struct world_conn {
    char host[256];
    uint16_t port;
    bool is_unix, is_tls, is_closed, is_draining;
    bool is_connected;
    char *out; /* what was sent and not looked at yet */
    size_t out_len;
};

struct world {
    struct lp_shell shell;
    struct lp_heap timers;
    struct lp_store *store;
    struct world_conn conns[WORLD_CONNS + 1]; /* by id, from 1 */
    uint32_t count;
    uint64_t now_us;
    int connect_error;  /* what CONNECT answers at once, when not 0 */
    bool is_write_dead; /* WRITE answers LP_EBROKEN */
    int64_t takes_max;  /* bytes that a WRITE takes; -1: all */
    char said[WORLD_TEXT], told[WORLD_TEXT];
    void (*on_done)(struct world *w, uint64_t tag); /* more to do in `done`, or NULL */
};

static inline void tell(struct world *w, const char *fmt, ...) LP_PRINTF(2, 3);
static inline void tell(struct world *w, const char *fmt, ...)
{
    size_t len = strlen(w->told);
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->told + len, sizeof w->told - len, fmt, args);
    va_end(args);
}

/* --- the shell --- */

static inline int64_t world_connect(struct world *w, const struct lp_endpoint *to)
{
    if (w->connect_error)
        return w->connect_error;
    assert_true(w->count < WORLD_CONNS);
    struct world_conn *conn = &w->conns[++w->count];
    *conn = (struct world_conn){
        .port = to->port, .is_unix = to->kind == LP_EP_UNIX, .is_tls = to->is_tls};
    snprintf(conn->host, sizeof conn->host, "%.*s", (int)to->host.len, to->host.ptr);
    return w->count;
}

static inline int64_t world_keep(struct world_conn *conn, struct lp_span bytes)
{
    conn->out = realloc(conn->out, conn->out_len + bytes.len + 1);
    assert_non_null(conn->out);
    memcpy(conn->out + conn->out_len, bytes.ptr, bytes.len);
    conn->out_len += bytes.len;
    return (int64_t)bytes.len;
}

static inline int64_t world_write(struct world *w, struct world_conn *conn, struct lp_span part)
{
    if (w->is_write_dead)
        return LP_EBROKEN;
    if (w->takes_max >= 0 && part.len > (size_t)w->takes_max)
        part.len = (size_t)w->takes_max;
    return world_keep(conn, part);
}

static inline int64_t world_perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    struct world_conn *conn = &w->conns[action->conn];
    switch (action->kind) {
    case LP_ACT_CONNECT:
        return world_connect(w, &action->u.connect);
    case LP_ACT_WRITE:
        assert_false(conn->is_draining || conn->is_closed);
        assert_int_equal(action->u.write.count, 1);
        return world_write(w, conn, action->u.write.parts[0]);
    case LP_ACT_DRAIN:
        assert_false(conn->is_draining || conn->is_closed);
        conn->is_draining = true;
        return world_keep(conn, action->u.drain);
    case LP_ACT_CLOSE:
        assert_false(conn->is_closed);
        conn->is_closed = true;
        return 0;
    default:
        fail();
        return 0;
    }
}

/* --- the owner --- */

static inline void tell_reply(struct world *w, const struct lp_store_reply *reply)
{
    if (!reply) {
        tell(w, "-");
    } else if (reply->kind == LP_REPLY_NIL) {
        tell(w, "nil");
    } else if (reply->kind == LP_REPLY_INTEGER) {
        tell(w, "%lld", (long long)reply->integer);
    } else if (reply->kind == LP_REPLY_ARRAY) {
        tell(w, "[");
        for (const struct lp_store_reply *item = reply->first; item; item = item->next) {
            tell_reply(w, item);
            tell(w, item->next ? "," : "");
        }
        tell(w, "]");
    } else {
        tell(w, "%s%.*s", reply->kind == LP_REPLY_ERROR ? "!" : "", (int)reply->text.len,
            reply->text.ptr);
    }
}

static inline void on_done(void *ctx, uint64_t tag, const struct lp_store_result *result)
{
    struct world *w = ctx;
    tell(w, "%d %s %s ", (int)tag, lp_store_outcome_name(result->outcome),
        result->may_have_run ? "yes" : "no");
    tell_reply(w, result->reply);
    tell(w, "\n");
    if (w->on_done)
        w->on_done(w, tag);
}

static inline void on_state(
    void *ctx, bool is_up, enum lp_store_trouble trouble, struct lp_span sentence)
{
    assert_true(lp_span_starts(sentence, LP_SPAN("The store at ")));
    assert_true(lp_span_ends(sentence, LP_SPAN(".")));
    tell(ctx, "%s %s\n", is_up ? "up" : "down", lp_store_trouble_name(trouble));
}

static inline void on_message(void *ctx, struct lp_span channel, struct lp_span payload)
{
    tell(ctx, "message %.*s %.*s\n", (int)channel.len, channel.ptr, (int)payload.len, payload.ptr);
}

static inline void on_subscribed(void *ctx, struct lp_span channel)
{
    tell(ctx, "subscribed %.*s\n", (int)channel.len, channel.ptr);
}

/* What the owner was told since the last look. */
static inline const char *told(struct world *w)
{
    static char last[WORLD_TEXT];
    memcpy(last, w->told, sizeof last);
    w->told[0] = '\0';
    return last;
}

#define assert_told(w, text) assert_string_equal(told(w), text)

/* --- what the servers see --- */

/* Takes "$3\r\nGET\r\n" off; the word. */
static inline struct lp_span take_word(struct lp_span *bytes)
{
    uint64_t len;
    struct lp_span rest;
    struct lp_span head = lp_span_split(*bytes, '\r', &rest);
    assert_int_equal(head.ptr[0], '$');
    assert_true(lp_span_to_u64(lp_span_from(head, 1), &len));
    assert_true(rest.len >= len + 3);
    *bytes = lp_span_from(rest, len + 3);
    return lp_span(rest.ptr + 1, len);
}

static inline size_t word_count(struct lp_span *bytes)
{
    uint64_t count;
    struct lp_span head = lp_span_split(*bytes, '\r', bytes);
    assert_int_equal(head.ptr[0], '*');
    assert_true(lp_span_to_u64(lp_span_from(head, 1), &count));
    *bytes = lp_span_from(*bytes, 1);
    return count;
}

/* The commands that a connection got since the last look: "SET k v; GET k". */
static inline const char *said(struct world *w, lp_id id)
{
    struct lp_span bytes = lp_span(w->conns[id].out, w->conns[id].out_len);
    size_t len = 0;
    w->said[0] = '\0';
    while (bytes.len) {
        size_t count = word_count(&bytes);
        while (count--) {
            struct lp_span word = take_word(&bytes);
            len += (size_t)snprintf(w->said + len, sizeof w->said - len, "%.*s%s", (int)word.len,
                word.ptr,
                count           ? " "
                    : bytes.len ? "; "
                                : "");
        }
    }
    w->conns[id].out_len = 0;
    return w->said;
}

#define assert_said(w, conn, text) assert_string_equal(said(w, conn), text)

static inline void settle(struct world *w)
{
    lp_store_flush(w->store);
}

static inline void happen(struct world *w, struct lp_event event)
{
    event.mono_us = w->now_us;
    assert_int_equal(lp_store_event(w->store, &event), event.conn != 0);
    settle(w);
}

static inline void connected(struct world *w, lp_id conn)
{
    w->conns[conn].is_connected = true;
    happen(w, (struct lp_event){.kind = LP_EV_CONNECTED, .conn = conn});
}

static inline void failed(struct world *w, lp_id conn, int error)
{
    w->conns[conn].is_closed = true;
    happen(w, (struct lp_event){.kind = LP_EV_CONNECT_FAILED, .conn = conn, .u.error = error});
}

static inline void broken(struct world *w, lp_id conn)
{
    w->conns[conn].is_closed = true;
    happen(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = conn});
}

static inline void drained(struct world *w, lp_id conn)
{
    w->conns[conn].is_draining = false;
    happen(w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn});
}

static inline void answer(struct world *w, lp_id conn, const char *bytes)
{
    happen(w, (struct lp_event){.kind = LP_EV_READ, .conn = conn, .u.bytes = lp_span_str(bytes)});
}

/* Time passes; timers fire at their time. */
static inline void pass_ms(struct world *w, uint64_t ms)
{
    uint64_t end_us = w->now_us + ms * 1000;
    while (lp_heap_next_us(&w->timers) <= end_us) {
        w->now_us =
            lp_heap_next_us(&w->timers) > w->now_us ? lp_heap_next_us(&w->timers) : w->now_us;
        struct lp_timer *timer = lp_heap_due(&w->timers, w->now_us);
        lp_store_timer(w->store, timer, w->now_us);
        settle(w);
    }
    w->now_us = end_us;
    happen(w, (struct lp_event){.kind = LP_EV_TIMER});
}

/* --- life --- */

static const struct lp_store_ops OPS = {on_state, on_message, on_subscribed};

static inline struct world *world_bare(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->shell = (struct lp_shell){.ctx = w, .perform = world_perform};
    w->now_us = 1000000;
    w->takes_max = -1;
    lp_heap_init(&w->timers);
    return w;
}

/* `args` says what is not as usual. */
static inline int world_open(struct world *w, const char *url, struct lp_store_args args)
{
    struct lp_store_url parsed;
    struct lp_span why;
    assert_int_equal(lp_store_url_parse(lp_span_str(url), NULL, NULL, &parsed, &why), LP_OK);
    args.shell = &w->shell;
    args.timers = &w->timers;
    args.url = &parsed;
    args.ops = &OPS;
    args.ctx = w;
    return lp_store_new(&args, &w->store);
}

static inline struct world *world_new(const char *url, struct lp_store_args args)
{
    struct world *w = world_bare();
    assert_int_equal(world_open(w, url, args), LP_OK);
    assert_int_equal(w->count, 0);
    happen(w, (struct lp_event){.kind = LP_EV_CONFIG});
    return w;
}

static inline void world_free(struct world *w)
{
    lp_store_free(w->store);
    assert_int_equal(w->timers.count, 0);
    lp_heap_fini(&w->timers);
    for (uint32_t i = 1; i <= w->count; i++) {
        assert_true(w->conns[i].is_closed);
        free(w->conns[i].out);
    }
    free(w);
}

#define NO_CLUSTER "-ERR This instance has cluster support disabled\r\n"
#define PRIMARY "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"

/* One server without password or scripts, up at connection 1. */
static inline struct world *world_up(struct lp_store_args args)
{
    struct world *w = world_new("redis://db", args);
    connected(w, 1);
    assert_said(w, 1, "CLUSTER SLOTS; ROLE; PING");
    answer(w, 1, NO_CLUSTER PRIMARY "+PONG\r\n");
    assert_told(w, "up NONE\n");
    return w;
}

/* --- calls: words by spaces --- */

enum { READS, WRITES, REPEATS };

static inline uint32_t split_words(const char *text, struct lp_span *words)
{
    struct lp_span rest = lp_span_str(text);
    uint32_t count = 0;
    while (rest.ptr)
        words[count++] = lp_span_split(rest, ' ', &rest);
    return count;
}

static inline struct lp_store_call_args call_args(
    struct world *w, uint64_t tag, int kind, const struct lp_span *words, uint32_t count)
{
    return (struct lp_store_call_args){.argv = words,
        .argc = count,
        .is_write = kind != READS,
        .is_idempotent = kind == REPEATS,
        .done = on_done,
        .ctx = w,
        .tag = tag};
}

/* "GET k": the key is the second word, if there is one. */
static inline int try_call(struct world *w, uint64_t tag, int kind, const char *text, lp_id *ret)
{
    struct lp_span words[16];
    uint32_t count = split_words(text, words);
    struct lp_store_call_args args = call_args(w, tag, kind, words, count);
    if (count > 1)
        args.key = words[1];
    return lp_store_call(w->store, &args, ret);
}

static inline lp_id call(struct world *w, uint64_t tag, int kind, const char *text)
{
    lp_id id = 0;
    assert_int_equal(try_call(w, tag, kind, text, &id), LP_OK);
    settle(w);
    return id;
}

#endif
