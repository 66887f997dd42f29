/* The client against a server of any bytes: nothing crashes, every opening, call and closing ends
 * exactly once, whatever comes and in whatever order the owner acts.
 *
 * The input is a story: its first byte chooses era, transport and jar, then pieces parted by 0x1E.
 * A piece is one letter and its bytes; '$' in them stands for the id of the last request.
 *   R bytes   on the connection that was written to last     J text   a whole JSON answer there
 *   S text    a stream begins there, with this chunk          V text   a further chunk
 *   X end of that stream   B broken   F eof   N not connected   H digits+text  a status and a body
 *   C a call   L a list   K cancel   A answer   D answer with an error   M notify
 *   Q close    O open     W a second passes   P five minutes pass */
#include <stdio.h>
#include <stdlib.h>

#include "call/client.h"
#include "mcp/jar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNS = 256, PIECES_MAX = 300, WRITTEN_KEPT = 4096, PIECE_MAX = 65536 };

struct conn {
    bool is_open;
    bool is_connected;
    bool is_written;
};

struct world {
    struct lp_shell shell;
    struct conn conns[CONNS + 1];
    uint32_t count;
    lp_id last; /* written to last */
    lp_id call;
    lp_id asked;
    uint64_t request; /* the id in what was written last */
    uint64_t mono_us;
    uint64_t timer_at_us;
    struct lp_target target;
    struct lp_netlog log;
    struct lp_fetcher *fetcher;
    struct lp_client *client;
    struct lp_jar jar;
    uint32_t opened, open_ends, made, ended, closing, closed;
};

/* --- the shell --- */

static void note_id(struct world *w, struct lp_span text)
{
    size_t at = lp_span_search(text, LP_SPAN("\"id\":"));
    if (at == text.len)
        return;
    w->request = 0;
    for (at += 5; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++)
        w->request = w->request * 10 + (uint64_t)(text.ptr[at] - '0');
}

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    int64_t taken = 0;
    switch (action->kind) {
    case LP_ACT_CONNECT:
        if (w->count == CONNS)
            return LP_EREFUSED;
        w->conns[++w->count].is_open = true;
        return w->count;
    case LP_ACT_WRITE:
        for (uint32_t i = 0; i < action->u.write.count; i++) {
            note_id(w, action->u.write.parts[i]);
            taken += (int64_t)action->u.write.parts[i].len;
        }
        w->last = action->conn;
        return taken;
    case LP_ACT_CLOSE:
        LP_ASSERT(w->conns[action->conn].is_open);
        w->conns[action->conn].is_open = false;
        return 0;
    case LP_ACT_TIMER:
        w->timer_at_us = action->u.timer_at_us;
        return 0;
    default:
        return 0;
    }
}

static void tell(struct world *w, struct lp_event event)
{
    event.mono_us = w->mono_us;
    event.wall_ms = 1764522132123 + w->mono_us / 1000;
    lp_fetcher_event(w->fetcher, &event);
}

static void connect_all(struct world *w)
{
    lp_fetcher_settle(w->fetcher);
    for (lp_id id = 1; id <= w->count; id++) {
        struct conn *conn = &w->conns[id];
        if (!conn->is_open || conn->is_connected)
            continue;
        conn->is_connected = true;
        tell(w, (struct lp_event){.kind = LP_EV_CONNECTED, .conn = id});
    }
}

static void pass(struct world *w, uint64_t ms)
{
    uint64_t end_us = w->mono_us + ms * 1000;
    for (int i = 0; i < 1000 && w->timer_at_us <= end_us; i++) {
        w->mono_us = w->timer_at_us > w->mono_us ? w->timer_at_us : w->mono_us;
        w->timer_at_us = UINT64_MAX;
        tell(w, (struct lp_event){.kind = LP_EV_TIMER});
        connect_all(w);
    }
    w->mono_us = end_us;
}

/* --- the owner --- */

static void on_opened(void *ctx, const struct lp_client_info *info)
{
    (void)info;
    ((struct world *)ctx)->open_ends++;
}

static void on_failed(void *ctx, const struct lp_client_failure *why)
{
    LP_ASSERT(why->sentence.len);
    ((struct world *)ctx)->open_ends++;
}

static void on_notification(void *ctx, struct lp_span method, struct lp_span message)
{
    (void)ctx;
    LP_ASSERT(method.len <= message.len);
}

static void on_asked(void *ctx, lp_id asked, struct lp_span method, struct lp_span params)
{
    (void)method;
    (void)params;
    ((struct world *)ctx)->asked = asked;
}

static void on_asked_over(void *ctx, lp_id asked)
{
    (void)ctx;
    (void)asked;
}

static void on_lost(void *ctx, const struct lp_client_failure *why)
{
    struct world *w = ctx;
    LP_ASSERT(why->kind == LP_FAILURE_LOST);
    LP_ASSERT(lp_client_state(w->client) == LP_CLIENT_IDLE);
}

static void on_closed(void *ctx)
{
    ((struct world *)ctx)->closed++;
}

static void on_note(void *ctx, struct lp_span sentence)
{
    (void)ctx;
    LP_ASSERT(sentence.len);
}

static const struct lp_client_ops OPS = {
    on_opened, on_failed, on_notification, on_asked, on_asked_over, on_lost, on_closed, on_note};

static void on_answer(void *ctx, lp_id call, struct lp_span result, struct lp_span error)
{
    (void)call;
    LP_ASSERT(!result.len != !error.len);
    ((struct world *)ctx)->ended++;
}

static void on_call_failed(void *ctx, lp_id call, const struct lp_client_failure *why)
{
    (void)call;
    LP_ASSERT(why->sentence.len);
    ((struct world *)ctx)->ended++;
}

static const struct lp_call_ops CALL_OPS = {.answer = on_answer, .failed = on_call_failed};

static void call(struct world *w, const char *method, const char *params)
{
    struct lp_call_args args = {.method = lp_span_str(method),
        .params = lp_span_str(params),
        .wants_progress = true,
        .ops = &CALL_OPS,
        .ctx = w};
    if (lp_client_request(w->client, &args, &w->call) == LP_OK)
        w->made++;
}

static void open_client(struct world *w)
{
    if (lp_client_state(w->client) != LP_CLIENT_IDLE)
        return;
    w->opened++;
    lp_client_open(w->client);
}

static void close_client(struct world *w)
{
    if (lp_client_state(w->client) == LP_CLIENT_CLOSING)
        return;
    if (lp_client_state(w->client) == LP_CLIENT_OPENING)
        w->open_ends++; /* nothing is told of an opening that is given up */
    w->closing++;
    lp_client_close(w->client);
}

/* --- pieces --- */

static void feed(struct world *w, struct lp_span bytes)
{
    struct conn *conn = &w->conns[w->last];
    if (w->last && conn->is_open && conn->is_connected && bytes.len)
        tell(w, (struct lp_event){.kind = LP_EV_READ, .conn = w->last, .u.bytes = bytes});
}

static void end_conn(struct world *w, enum lp_event_kind kind)
{
    struct conn *conn = &w->conns[w->last];
    if (!w->last || !conn->is_open || !conn->is_connected)
        return;
    if (kind == LP_EV_BROKEN)
        conn->is_open = false;
    tell(w, (struct lp_event){.kind = kind, .conn = w->last});
}

/* '$' becomes the id of the last request. */
static struct lp_span fill(const struct world *w, struct lp_span text, struct lp_buf *out)
{
    lp_buf_clear(out);
    while (text.len) {
        size_t n = lp_span_find(text, '$');
        int err = lp_buf_append(out, lp_span(text.ptr, n));
        if (!err && n < text.len)
            err = lp_buf_printf(out, "%llu", (unsigned long long)w->request);
        if (err)
            return LP_SPAN("");
        text = lp_span_from(text, n < text.len ? n + 1 : n);
    }
    return lp_buf_span(out);
}

static void answer(struct world *w, const char *head, struct lp_span body)
{
    char text[256];
    int n =
        snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, body.len);
    feed(w, lp_span(text, (size_t)n));
    feed(w, body);
}

static void send_chunk(struct world *w, struct lp_span text)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%zx\r\n", text.len);
    if (!text.len)
        return;
    feed(w, lp_span(line, (size_t)n));
    feed(w, text);
    feed(w, LP_SPAN("\r\n"));
}

static void status(struct world *w, struct lp_span text)
{
    char head[128];
    if (text.len < 3)
        return;
    snprintf(head, sizeof head, "%.3s X\r\nWWW-Authenticate: Bearer\r\nLocation: /there", text.ptr);
    answer(w, head, lp_span_from(text, 3));
}

static void play_server(struct world *w, char letter, struct lp_span text)
{
    switch (letter) {
    case 'R':
        feed(w, text);
        break;
    case 'J':
        answer(w,
            "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nSet-Cookie: a=b",
            text);
        break;
    case 'S':
        feed(w,
            LP_SPAN("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n"));
        send_chunk(w, text);
        break;
    case 'V':
        send_chunk(w, text);
        break;
    case 'X':
        feed(w, LP_SPAN("0\r\n\r\n"));
        break;
    case 'H':
        status(w, text);
        break;
    case 'B':
        end_conn(w, LP_EV_BROKEN);
        break;
    case 'F':
        end_conn(w, LP_EV_EOF);
        break;
    default:
        break;
    }
}

static void play_owner(struct world *w, char letter)
{
    switch (letter) {
    case 'C':
        call(w, "tools/call", "{\"name\":\"a\",\"arguments\":{\"x\":1}}");
        break;
    case 'L':
        call(w, "tools/list", "");
        break;
    case 'K':
        if (lp_client_state(w->client) == LP_CLIENT_OPEN && w->made > w->ended) {
            uint32_t before = w->ended;
            lp_call_cancel(w->client, w->call, LP_SPAN("k"));
            LP_ASSERT(w->ended == before);
        }
        break;
    case 'A':
        lp_client_answer(w->client, w->asked, LP_SPAN("{}"));
        break;
    case 'D':
        lp_client_answer_error(w->client, w->asked, -1, LP_SPAN("no"));
        break;
    case 'M':
        if (lp_client_notify(w->client, LP_SPAN("notifications/x"), LP_SPAN("")))
            break; /* not open */
        break;
    case 'Q':
        close_client(w);
        break;
    case 'O':
        open_client(w);
        break;
    case 'W':
        pass(w, 1000);
        break;
    case 'P':
        pass(w, 300000);
        break;
    default:
        break;
    }
}

static void no_line(void *ctx, struct lp_span line)
{
    (void)ctx;
    (void)line;
}

static void begin(struct world *w, uint8_t choice)
{
    static const unsigned char KEY[LP_NETLOG_KEY_BYTES];
    w->shell = (struct lp_shell){.ctx = w, .perform = perform};
    w->mono_us = 1000000;
    w->timer_at_us = UINT64_MAX;
    lp_target_init(&w->target);
    int err = lp_target_set_url(&w->target, LP_SPAN("http://a.test/mcp"));
    LP_ASSERT(!err);
    w->target.era = choice % 3;
    w->target.transport = choice / 3 % 3;
    w->target.suppress_notification_stream = choice / 9 % 2;
    lp_netlog_init(&w->log, no_line, w, KEY);
    struct lp_fetcher_args fetcher = {.shell = &w->shell, .target = &w->target, .log = &w->log};
    err = lp_fetcher_new(&fetcher, &w->fetcher);
    LP_ASSERT(!err);
    lp_jar_init(&w->jar, &w->target.uri, LP_JAR_BYTES_MAX);
    struct lp_client_args client = {
        .fetcher = w->fetcher, .jar = choice / 18 % 2 ? &w->jar : NULL, .ops = &OPS, .ctx = w};
    err = lp_client_new(&client, &w->client);
    LP_ASSERT(!err);
    tell(w, (struct lp_event){.kind = LP_EV_CONFIG});
}

static void end(struct world *w)
{
    close_client(w);
    connect_all(w);
    pass(w, 10000);
    LP_ASSERT(lp_client_state(w->client) == LP_CLIENT_IDLE);
    LP_ASSERT(w->closed == w->closing);
    LP_ASSERT(w->open_ends == w->opened);
    LP_ASSERT(w->ended <= w->made);
    lp_client_free(w->client);
    lp_fetcher_free(w->fetcher);
    for (uint32_t i = 1; i <= w->count; i++)
        LP_ASSERT(!w->conns[i].is_open);
    lp_jar_fini(&w->jar);
    lp_netlog_fini(&w->log);
    lp_target_fini(&w->target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world *w = calloc(1, sizeof *w);
    struct lp_buf filled;
    if (!w || !size) {
        free(w);
        return 0;
    }
    lp_buf_init(&filled, PIECE_MAX * 4);
    begin(w, data[0]);
    open_client(w);
    connect_all(w);
    struct lp_span rest = lp_span((const char *)data + 1, size - 1);
    for (int i = 0; i < PIECES_MAX && rest.ptr; i++) {
        struct lp_span piece = lp_span_split(rest, 0x1E, &rest);
        if (!piece.len || piece.len > PIECE_MAX)
            continue;
        char letter = piece.ptr[0];
        play_server(w, letter, fill(w, lp_span_from(piece, 1), &filled));
        play_owner(w, letter);
        connect_all(w);
    }
    end(w);
    lp_buf_release(&filled);
    free(w);
    return 0;
}
