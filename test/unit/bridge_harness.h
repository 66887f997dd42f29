/* The stdio bridge between a host and a server that are both played by the test: lines in and out
 * on connection 1, requests to the server as in client_harness.h. */
#ifndef BRIDGE_HARNESS_H
#define BRIDGE_HARNESS_H

#include "call/bridge.h"
#include "client_harness.h"

enum { HOST = 1 };

struct hosted {
    struct play *p; /* its client is not used: the bridge has one of its own */
    struct lp_bridge *bridge;
    size_t heard; /* bytes of the output that the test has looked at */
    char line[PLAY_TEXT];
    char said[PLAY_NOTES];
    uint32_t overs;
    bool has_failed;
};

static inline void hosted_say(void *ctx, struct lp_span sentence)
{
    struct hosted *h = ctx;
    size_t len = strlen(h->said);
    snprintf(h->said + len, sizeof h->said - len, "%.*s\n", (int)sentence.len, sentence.ptr);
}

static inline void hosted_over(void *ctx, bool has_failed)
{
    struct hosted *h = ctx;
    h->overs++;
    h->has_failed = has_failed;
}

static inline void hosted_settle(void *owner)
{
    lp_bridge_settle(((struct hosted *)owner)->bridge);
}

/* An event of the standard input and output. */
static inline void host_event(struct hosted *h, struct lp_event event)
{
    struct shell *s = h->p->s;
    event.conn = HOST;
    lp_bridge_event(h->bridge, &event);
    shell_event(s, event);
}

/* The user wants it to end: SIGTERM. */
static inline void hosted_stop(struct hosted *h)
{
    lp_bridge_stop(h->bridge);
    shell_event(h->p->s, (struct lp_event){.kind = LP_EV_STOP});
}

/* NULL: there was no memory for it. */
static inline struct hosted *hosted_try_new(const char *url, uint32_t timeout_ms)
{
    struct hosted *h = calloc(1, sizeof *h);
    struct play *p = calloc(1, sizeof *p);
    h->p = p;
    p->s = shell_new(url);
    lp_jar_init(&p->jar, &p->s->target.uri, LP_JAR_BYTES_MAX);
    struct lp_bridge_args args = {.shell = &p->s->shell,
        .fetcher = p->s->fetcher,
        .jar = &p->jar,
        .timeout_ms = timeout_ms,
        .say = hosted_say,
        .over = hosted_over,
        .ctx = h};
    if (lp_bridge_new(&args, &h->bridge) != LP_OK)
        return h;
    p->s->settle = hosted_settle;
    p->s->owner = h;
    assert_int_equal(lp_bridge_start(h->bridge), LP_OK);
    assert_int_equal(p->s->count, HOST);
    p->is_connected[HOST] = true;
    host_event(h, (struct lp_event){.kind = LP_EV_CONNECTED});
    return h;
}

static inline struct hosted *hosted_new(void)
{
    struct hosted *h = hosted_try_new("http://example.test:3000/mcp", 0);
    assert_non_null(h->bridge);
    h->p->s->target.suppress_notification_stream = true;
    return h;
}

static inline void hosted_free(struct hosted *h)
{
    lp_bridge_free(h->bridge);
    h->p->s->settle = NULL;
    play_free(h->p);
    free(h);
}

/* The host says a line. */
static inline void host_says(struct hosted *h, const char *line)
{
    host_event(h, (struct lp_event){.kind = LP_EV_READ, .u.bytes = lp_span_str(line)});
    host_event(h, (struct lp_event){.kind = LP_EV_READ, .u.bytes = LP_SPAN("\n")});
}

static inline void host_ends(struct hosted *h)
{
    host_event(h, (struct lp_event){.kind = LP_EV_EOF});
}

/* Takes the next line that the host gets; false: there is none. */
static inline bool host_takes(struct hosted *h)
{
    const char *text = shell_written(h->p->s, HOST) + h->heard;
    const char *end = strchr(text, '\n');
    if (!end) {
        h->line[0] = '\0';
        return false;
    }
    play_copy(h->line, sizeof h->line, lp_span(text, (size_t)(end - text)));
    h->heard += (size_t)(end - text) + 1;
    return true;
}

static inline void host_hears(struct hosted *h, const char *part)
{
    bool is_there = host_takes(h);
    if (!is_there || !text_has(h->line, part))
        print_message("wanted %s, got %s; said %s\n", part, h->line, h->said);
    assert_true(is_there && text_has(h->line, part));
}

static inline void host_hears_nothing(struct hosted *h)
{
    if (host_takes(h))
        print_message("unexpected: %s\n", h->line);
    assert_string_equal(h->line, "");
}

/* The server answers the request that was taken last: `member` is result or error. */
static inline void server_answers(
    struct hosted *h, lp_id conn, const char *fields, const char *member)
{
    char body[4096];
    const char *at = strstr(h->p->body, "\"id\":");
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s}",
        at ? strtoull(at + 5, NULL, 10) : 0, member);
    play_json(h->p, conn, fields, body);
}

#define HOST_INITIALIZE                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"initialize\",\"params\":{"                  \
    "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"roots\":{}},"                          \
    "\"clientInfo\":{\"name\":\"h\",\"version\":\"1\"}}}"

/* The server's side of opening a legacy session. */
static inline void server_opens(struct hosted *h, const char *session)
{
    char field[64];
    lp_id conn = play_expect(h->p, "\"initialize\"");
    snprintf(field, sizeof field, "\r\nMcp-Session-Id: %s", session);
    server_answers(h, conn, field, INITIALIZE_RESULT);
    play_accepted(h->p, play_expect(h->p, "notifications/initialized"));
}

static inline struct hosted *hosted_open_legacy(void)
{
    struct hosted *h = hosted_new();
    h->p->s->target.era = LP_ERA_WISH_LEGACY;
    host_says(h, HOST_INITIALIZE);
    server_opens(h, "S1");
    host_hears(h, "{\"jsonrpc\":\"2.0\",\"id\":\"open\"," INITIALIZE_RESULT "}");
    return h;
}

static inline struct hosted *hosted_open_modern(void)
{
    struct hosted *h = hosted_new();
    host_says(h, HOST_INITIALIZE);
    lp_id conn = play_expect(h->p, "\"server/discover\"");
    server_answers(h, conn, "",
        "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
        "\"capabilities\":{\"tools\":{}}}");
    host_hears(h, "\"id\":\"open\",\"result\":{\"protocolVersion\":\"2025-06-18\"");
    return h;
}

#endif
