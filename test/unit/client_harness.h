/* A client with a server that is played by the test: requests are taken one by one, whatever
 * connection they come on, and answered as the test says. */
#ifndef CLIENT_HARNESS_H
#define CLIENT_HARNESS_H

#include "call/client.h"
#include "call_harness.h"
#include "mcp/jar.h"
#include "wire/member.h"

enum { PLAY_TEXT = 1 << 17, PLAY_NOTES = 1 << 14 };

struct play {
    struct shell *s;
    struct lp_client *client;
    struct lp_jar jar;
    bool is_connected[SHELL_CONNS + 1];
    size_t seen[SHELL_CONNS + 1];
    /* the request that was taken last */
    char head[16384];
    char body[PLAY_TEXT];
    /* what the owner heard */
    uint32_t opens, failures, losses, closes, asks, asked_ends, notifications;
    uint32_t answers, call_failures, progresses;
    struct lp_client_failure failure, call_failure;
    char sentence[PLAY_TEXT]; /* of the last failure of either kind */
    char failure_body[PLAY_TEXT];
    char result[PLAY_TEXT];
    char error[PLAY_TEXT];
    char notified[PLAY_TEXT];
    char asked_method[128];
    char asked_params[4096];
    char notes[PLAY_NOTES];
    lp_id asked;
    lp_id asked_ids[16];
    lp_id last_call;
    /* what the owner does within a call */
    const char *answers_at_once;
    bool reopens_when_lost;
};

static inline void play_copy(char *room, size_t room_len, struct lp_span text)
{
    size_t len = text.len < room_len - 1 ? text.len : room_len - 1;
    if (len)
        memcpy(room, text.ptr, len);
    room[len] = '\0';
}

static inline void play_opened(void *ctx, const struct lp_client_info *info)
{
    (void)info;
    ((struct play *)ctx)->opens++;
}

static inline void play_failed(void *ctx, const struct lp_client_failure *why)
{
    struct play *p = ctx;
    p->failures++;
    p->failure = *why;
    play_copy(p->sentence, sizeof p->sentence, why->sentence);
    play_copy(p->failure_body, sizeof p->failure_body, why->body);
}

static inline void play_notification(void *ctx, struct lp_span method, struct lp_span message)
{
    struct play *p = ctx;
    (void)method;
    p->notifications++;
    play_copy(p->notified, sizeof p->notified, message);
}

static inline void play_asked(void *ctx, lp_id asked, struct lp_span method, struct lp_span params)
{
    struct play *p = ctx;
    p->asked = asked;
    p->asked_ids[p->asks % 16] = asked;
    p->asks++;
    play_copy(p->asked_method, sizeof p->asked_method, method);
    play_copy(p->asked_params, sizeof p->asked_params, params);
    if (p->answers_at_once)
        lp_client_answer(p->client, asked, lp_span_str(p->answers_at_once));
}

static inline void play_asked_cancelled(void *ctx, lp_id asked)
{
    (void)asked;
    ((struct play *)ctx)->asked_ends++;
}

static inline void play_lost(void *ctx, const struct lp_client_failure *why)
{
    struct play *p = ctx;
    p->losses++;
    p->failure = *why;
    if (p->reopens_when_lost)
        lp_client_open(p->client);
}

static inline void play_closed(void *ctx)
{
    ((struct play *)ctx)->closes++;
}

static inline void play_note(void *ctx, struct lp_span sentence)
{
    struct play *p = ctx;
    size_t len = strlen(p->notes);
    snprintf(p->notes + len, sizeof p->notes - len, "%.*s\n", (int)sentence.len, sentence.ptr);
}

static inline void play_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    struct play *p = ctx;
    p->answers++;
    p->last_call = call;
    play_copy(p->result, sizeof p->result, result);
    play_copy(p->error, sizeof p->error, error);
}

static inline void play_progress(void *ctx, lp_id call, struct lp_span message)
{
    struct play *p = ctx;
    (void)call;
    p->progresses++;
    play_copy(p->notified, sizeof p->notified, message);
}

static inline void play_call_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    struct play *p = ctx;
    p->call_failures++;
    p->last_call = call;
    p->call_failure = *why;
    play_copy(p->sentence, sizeof p->sentence, why->sentence);
    play_copy(p->failure_body, sizeof p->failure_body, why->body);
}

static const struct lp_client_ops PLAY_OPS = {play_opened, play_failed, play_notification,
    play_asked, play_asked_cancelled, play_lost, play_closed, play_note};
static const struct lp_call_ops PLAY_CALL_OPS = {play_answer, play_progress, play_call_failed};

static inline struct play *play_new_waiting(const char *url, bool with_jar, bool stream_first)
{
    struct play *p = calloc(1, sizeof *p);
    p->s = shell_new(url);
    lp_jar_init(&p->jar, &p->s->target.uri, LP_JAR_BYTES_MAX);
    struct lp_client_args args = {.fetcher = p->s->fetcher,
        .jar = with_jar ? &p->jar : NULL,
        .capabilities = LP_SPAN("{\"sampling\":{}}"),
        .stream_first = stream_first,
        .ops = &PLAY_OPS,
        .ctx = p};
    assert_int_equal(lp_client_new(&args, &p->client), LP_OK);
    return p;
}

static inline struct play *play_new(const char *url, bool with_jar)
{
    return play_new_waiting(url, with_jar, false);
}

static inline void play_free(struct play *p)
{
    lp_client_free(p->client);
    shell_free(p->s);
    lp_jar_fini(&p->jar);
    free(p);
}

/* Takes the next request: its connection, or 0 when there is none. */
static inline lp_id play_take(struct play *p)
{
    for (lp_id conn = 1; conn <= p->s->count; conn++) {
        if (!p->is_connected[conn] && !p->s->conns[conn].is_closed) {
            p->is_connected[conn] = true;
            shell_connected(p->s, conn);
        }
        const char *text = shell_written(p->s, conn) + p->seen[conn];
        const char *end = strstr(text, "\r\n\r\n");
        if (!end)
            continue;
        size_t head_len = (size_t)(end - text) + 4;
        const char *field = strstr(text, "Content-Length: ");
        size_t body_len = field && field < end ? strtoul(field + 16, NULL, 10) : 0;
        play_copy(p->head, sizeof p->head, lp_span(text, head_len));
        play_copy(p->body, sizeof p->body, lp_span(text + head_len, body_len));
        p->seen[conn] += head_len + body_len;
        return conn;
    }
    p->head[0] = p->body[0] = '\0';
    return 0;
}

/* Takes the next request, which must hold `part` in its head or body. */
static inline lp_id play_expect(struct play *p, const char *part)
{
    lp_id conn = play_take(p);
    if (!conn || (!text_has(p->head, part) && !text_has(p->body, part)))
        print_message("wanted %s, got %s%s\n", part, p->head, p->body);
    assert_true(conn && (text_has(p->head, part) || text_has(p->body, part)));
    return conn;
}

static inline void play_expect_nothing(struct play *p)
{
    lp_id conn = play_take(p);
    if (conn)
        print_message("unexpected: %s%s\n", p->head, p->body);
    assert_int_equal(conn, 0);
}

static inline void play_json(struct play *p, lp_id conn, const char *fields, const char *body)
{
    char head[2048];
    snprintf(head, sizeof head, "200 OK\r\nContent-Type: application/json%s", fields);
    shell_answer(p->s, conn, head, body);
}

static inline void play_accepted(struct play *p, lp_id conn)
{
    shell_read(p->s, conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

static inline void play_begin_events(struct play *p, lp_id conn, const char *fields)
{
    char head[2048];
    snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked%s"
        "\r\n\r\n",
        fields);
    shell_read(p->s, conn, head);
}

static inline void play_event(struct play *p, lp_id conn, const char *text)
{
    char chunk[16384];
    snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n", strlen(text), text);
    shell_read(p->s, conn, chunk);
}

static inline void play_end_events(struct play *p, lp_id conn)
{
    shell_read(p->s, conn, "0\r\n\r\n");
}

#define INITIALIZE_RESULT                                                                          \
    "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":" \
    "\"s\",\"version\":\"1\"}}"

/* Opens a legacy session with the id "S1"; answers everything but the notification stream, whose
 * connection is returned. */
static inline lp_id play_open_legacy(struct play *p)
{
    p->s->target.era = LP_ERA_WISH_LEGACY;
    lp_client_open(p->client);
    lp_fetcher_settle(p->s->fetcher);
    lp_id conn = play_expect(p, "\"initialize\"");
    char answer[512];
    snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%lu," INITIALIZE_RESULT "}",
        strtoul(strstr(p->body, "\"id\":") + 5, NULL, 10));
    play_json(p, conn, "\r\nMcp-Session-Id: S1", answer);
    conn = play_expect(p, "notifications/initialized");
    play_accepted(p, conn);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    return p->s->target.suppress_notification_stream ? 0 : play_expect(p, "GET /mcp");
}

static inline lp_id play_open_modern(struct play *p, const char *capabilities)
{
    char body[1024];
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
        "\"supportedVersions\":"
        "[\"2026-07-28\"],\"capabilities\":%s}}",
        capabilities);
    lp_client_open(p->client);
    lp_fetcher_settle(p->s->fetcher);
    lp_id conn = play_expect(p, "\"server/discover\"");
    play_json(p, conn, "", body);
    assert_int_equal(lp_client_state(p->client), LP_CLIENT_OPEN);
    return conn;
}

static inline lp_id play_request(struct play *p, const char *method, const char *params)
{
    lp_id call = 0;
    struct lp_call_args args = {.method = lp_span_str(method),
        .params = lp_span_str(params),
        .ops = &PLAY_CALL_OPS,
        .ctx = p};
    assert_int_equal(lp_client_request(p->client, &args, &call), LP_OK);
    lp_fetcher_settle(p->s->fetcher);
    return call;
}

#endif
