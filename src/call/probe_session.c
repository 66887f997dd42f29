/* One session of the probe from its initialize to its DELETE (call/probe_priv.h).
 *
 *   open -> initialized -> call, call, ... -> [parked, stream] -> delete -> [check] -> over
 *
 * What a 5xx must not spoil is tried LP_PROBE_TRIES times: initialize, initialized, DELETE. A call
 * is never repeated: each is one toss. DELETE is repeated until it reaches the session's replica,
 * so that nothing is left behind; its first try alone is counted. */
#include <stdio.h>
#include <stdlib.h>

#include "call/probe_priv.h"
#include "mcp/ticket.h"
#include "mcp/version.h"
#include "wire/member.h"

enum {
    SHORT_CALLS = 2,
    ALONE_CALLS = 8,
    CHECKS = 4,
    CHECK_MS = 1500,
    DELETE_TRIES = 24, /* where the server is quick */
    DELETE_TRIES_SLOW = 4,
    QUICK_US = 30000,
    HOLD_MS = 300,
    HEAD_MS = 2500, /* without a head the stream is held back */
    BODY_MAX = 512,
};

#define CLIENT_INFO "{\"name\":\"limpet-probe\",\"version\":\"" LP_VERSION "\"}"
#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"                         \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":" CLIENT_INFO "}}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define MODERN                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"server/discover\",\"params\":{\"_meta\":{"        \
    "\"io.modelcontextprotocol/protocolVersion\":\"" LP_VERSION_MODERN "\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{},"                                           \
    "\"io.modelcontextprotocol/clientInfo\":" CLIENT_INFO "}}}"

static void open_session(struct lp_probe_session *s);
static void next_call(struct lp_probe_session *s);

static void session_free(struct lp_probe_session *s)
{
    lp_fetcher_timer_cancel(s->probe->args.fetcher, &s->timer);
    lp_list_remove(&s->node);
    lp_jar_fini(&s->jar);
    free(s);
}

static void end(struct lp_probe_session *s)
{
    struct lp_probe *probe = s->probe;
    if (s->lane)
        lp_fetcher_drop_kept(probe->args.fetcher, s->lane);
    session_free(s);
    probe->running--;
    lp_probe_advance(probe);
}

/* --- asking --- */

static bool is_arm(const struct lp_probe_session *s, enum lp_seen_arm arm)
{
    return s->task.job != LP_JOB_OPENING && s->task.arm == arm;
}

struct lp_ask_args lp_probe_session_args(struct lp_probe_session *s)
{
    struct lp_ask_args args = {.method = LP_METHOD_POST,
        .session = lp_span(s->id, s->id_len),
        .version = lp_span_str(s->probe->version),
        .cookie = lp_span_str(s->cookie),
        .jar = is_arm(s, LP_ARM_COOKIE) && s->task.job == LP_JOB_ROW ? &s->jar : NULL,
        .lane = s->lane,
        .ctx = s};
    return args;
}

/* The session cannot go on without its question: it counts as over. */
static void ask(struct lp_probe_session *s, const struct lp_ask_args *args)
{
    struct lp_ask *asked = lp_ask_start(&s->probe->asker, args);
    if (!asked)
        end(s);
}

/* --- opening --- */

static void on_initialized(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    if (lp_probe_is_fault(reply) && ++s->tries < LP_PROBE_TRIES) {
        struct lp_ask_args args = lp_probe_session_args(s);
        args.body = LP_SPAN(INITIALIZED);
        args.done = on_initialized;
        ask(s, &args);
        return;
    }
    if (s->task.job == LP_JOB_REST || s->task.job == LP_JOB_QUIET)
        lp_probe_rest_begin(s);
    else
        next_call(s);
}

static void begin_row(struct lp_probe_session *s)
{
    struct lp_probe *probe = s->probe;
    if (s->task.job == LP_JOB_ROW || s->task.job == LP_JOB_SHORT)
        s->row = lp_seen_add_row(&probe->seen, s->task.arm, probe->width == 1);
}

static void say_initialized(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    s->tries = 0;
    begin_row(s);
    args.body = LP_SPAN(INITIALIZED);
    args.done = on_initialized;
    ask(s, &args);
}

/* "name=value" of the cookie that this session may keep. */
static void keep_cookie(void *ctx, const struct lp_head *head)
{
    struct lp_probe_session *s = ctx;
    uint32_t from = 0;
    const char *wanted = s->probe->seen.cookies[s->task.cookie];
    lp_probe_note_head(s->probe, head);
    for (const struct lp_field *field; (field = lp_head_find(head, LP_FIELD_SET_COOKIE, &from));) {
        struct lp_span rest;
        struct lp_span pair = lp_span_trim(lp_span_split(field->value, ';', &rest));
        struct lp_span name = lp_span_trim(lp_span_split(pair, '=', &rest));
        bool is_kept = s->task.job == LP_JOB_ALONE && pair.len < sizeof s->cookie &&
            lp_span_eq(name, lp_span_str(wanted));
        if (is_kept) {
            memcpy(s->cookie, pair.ptr, pair.len);
            s->cookie[pair.len] = '\0';
        }
    }
}

static void note_head_of(void *ctx, const struct lp_head *head)
{
    struct lp_probe_session *s = ctx;
    lp_probe_note_head(s->probe, head);
}

static void note_opening(struct lp_probe_session *s, const struct lp_reply *reply)
{
    struct lp_seen *seen = &s->probe->seen;
    char version[LP_SEEN_TEXT_MAX] = "2025-11-25";
    size_t len = 0;
    struct lp_span token = lp_member(reply->result, LP_SPAN("protocolVersion"));
    bool is_string = token.len > 2 && token.ptr[0] == '"';
    if (is_string && !lp_json_unescape(token, version, sizeof version - 1, &len))
        version[len] = '\0';
    lp_seen_text(s->probe->version, sizeof s->probe->version, lp_span_str(version));
    lp_seen_text(seen->legacy, sizeof seen->legacy, lp_span_str(version));
    seen->is_open = true;
    seen->mints_ids |= reply->session_id.len > 0;
    seen->has_tickets |= lp_span_starts(reply->session_id, LP_SPAN(LP_TICKET_PREFIX));
    lp_probe_note_kind(s->probe, reply->result, reply->session_id);
    if (s->task.job == LP_JOB_ORIGIN) {
        seen->cors_is_offered = reply->allows_origin;
        seen->cors_shows_id = reply->exposes_id;
    }
}

static void on_opened(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    struct lp_seen *seen = &s->probe->seen;
    bool is_fault = lp_probe_is_fault(reply);
    if (s->task.job != LP_JOB_ORIGIN) {
        seen->openings++;
        lp_seen_add_request(seen, reply->answer.status, is_fault);
        seen->opening_faults += is_fault;
        if (!seen->is_open && !lp_probe_has_opened(reply)) {
            seen->opening = reply->answer;
            lp_probe_login_note(s->probe, reply->login);
            lp_probe_note_failure(s->probe, reply);
        }
    }
    bool may_change =
        seen->is_open ? reply->answer.error != LP_EREFUSED : lp_probe_may_change(reply);
    if (is_fault && ++s->tries < LP_PROBE_TRIES && may_change) {
        open_session(s);
        return;
    }
    if (!lp_probe_has_opened(reply) || reply->session_id.len > LP_PROBE_ID_MAX) {
        end(s);
        return;
    }
    s->id_len = reply->session_id.len;
    if (s->id_len)
        memcpy(s->id, reply->session_id.ptr, s->id_len);
    note_opening(s, reply);
    if (s->task.job == LP_JOB_OPENING || s->task.job == LP_JOB_ORIGIN)
        lp_probe_session_leave(s);
    else
        say_initialized(s);
}

static void open_session(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    args.version = args.session = LP_SPAN("");
    args.body = LP_SPAN(INITIALIZE);
    args.rpc_id = LP_SPAN("0");
    args.origin = s->task.job == LP_JOB_ORIGIN ? LP_SPAN("https://probe.example") : LP_SPAN("");
    args.head = s->task.job == LP_JOB_ALONE ? keep_cookie : note_head_of;
    args.done = on_opened;
    struct lp_ask *asked = lp_ask_start(&s->probe->asker, &args);
    s->opened_at = s->probe->asker.sent;
    if (!asked)
        end(s);
}

/* --- calls --- */

static void after_calls(struct lp_probe_session *s)
{
    if (s->task.job == LP_JOB_ALONE && s->calls_done)
        s->probe->seen.suffices[s->task.cookie] = s->calls_done == ALONE_CALLS;
    if (!s->task.wants_stream) {
        lp_probe_session_leave(s);
        return;
    }
    s->is_parked = true;
    s->probe->running--;
    lp_probe_advance(s->probe);
}

/* A miss, or what looks like one, is kept as an example. */
static void note_call(struct lp_probe_session *s, const struct lp_reply *reply)
{
    struct lp_probe *probe = s->probe;
    enum lp_seen_mark mark = lp_probe_mark(probe, reply);
    lp_seen_add_request(&probe->seen, reply->answer.status, mark == LP_MARK_FAULT);
    if (mark == LP_MARK_LOST)
        probe->seen.lost = reply->answer;
    if (mark == LP_MARK_OK && s->task.arm == LP_ARM_FRESH)
        lp_probe_note_pace(probe, reply);
    probe->seen.stream.has_length |= reply->has_length;
    s->calls_done += mark == LP_MARK_OK;
    bool is_new = is_arm(s, LP_ARM_KEPT) && !reply->is_reused;
    if (s->row && !is_new)
        lp_seen_add_call(s->row, mark, probe->asker.sent - s->opened_at);
    if (probe->seen.is_modern)
        lp_probe_note_kind(probe, reply->result, LP_SPAN(""));
}

static void on_called(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    bool was_short = s->task.job == LP_JOB_SHORT && !s->calls_done;
    note_call(s, reply);
    if (was_short && s->calls_done)
        s->calls_left = s->probe->args.calls; /* a hit: is it always right? */
    next_call(s);
}

static void next_call(struct lp_probe_session *s)
{
    char body[BODY_MAX];
    char id[16];
    struct lp_probe *probe = s->probe;
    if (!s->calls_left || lp_probe_is_late(probe)) {
        after_calls(s);
        return;
    }
    uint32_t number = s->calls_left--;
    struct lp_ask_args args = lp_probe_session_args(s);
    if (probe->seen.is_modern)
        snprintf(body, sizeof body, MODERN, number);
    else
        snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"ping\"}", number);
    snprintf(id, sizeof id, "%u", number);
    args.body = lp_span_str(body);
    args.rpc_id = lp_span_str(id);
    args.rpc = probe->seen.is_modern ? LP_SPAN("server/discover") : LP_SPAN("");
    args.head = note_head_of;
    args.done = on_called;
    if (is_arm(s, LP_ARM_ELSEWHERE))
        args.source = probe->args.sources[probe->source++ % probe->args.source_count];
    ask(s, &args);
}

/* --- the stream --- */

static void note_stream(struct lp_probe_session *s, const struct lp_reply *reply)
{
    struct lp_seen *seen = &s->probe->seen;
    struct lp_seen_stream *stream = &seen->stream;
    bool is_stream = reply->answer.status == 200 && reply->answer.media == LP_MEDIA_EVENTS;
    bool has_no_head = !reply->head_us && reply->answer.error == LP_ETIMEOUT;
    uint32_t head_ms = (uint32_t)((reply->head_us - reply->sent_us) / 1000);
    if (!seen->own_get.status || (is_stream && seen->gets.fine == 0))
        seen->own_get = reply->answer;
    lp_probe_tally(s->probe, &seen->gets, reply, is_stream);
    stream->no_head += has_no_head;
    stream->closed_at_once += is_stream && reply->was_cut && !reply->event_count;
    stream->has_length |= reply->has_length && !reply->was_cut;
    if (is_stream && (seen->gets.fine == 1 || head_ms < stream->head_ms))
        stream->head_ms = head_ms;
}

static void on_streamed(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    struct lp_probe *probe = s->probe;
    note_stream(s, reply);
    probe->questions--;
    lp_probe_advance(probe);
}

void lp_probe_session_stream(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    args.method = LP_METHOD_GET;
    args.lane = 0;
    args.timeout_ms = HEAD_MS;
    args.hold_ms = HOLD_MS;
    args.head = note_head_of;
    args.done = on_streamed;
    struct lp_ask *asked = lp_ask_start(&s->probe->asker, &args);
    s->probe->questions += asked != NULL;
}

/* --- the end --- */

static void on_checked(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    struct lp_seen *seen = &s->probe->seen;
    enum lp_seen_mark mark = lp_probe_mark(s->probe, reply);
    if (mark == LP_MARK_LOST)
        seen->ended = reply->answer;
    seen->ended_checks += mark != LP_MARK_FAULT;
    seen->undead += mark == LP_MARK_OK;
    end(s);
}

/* Is a session really over after an accepted DELETE? */
static void check(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    args.body = LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"ping\"}");
    args.rpc_id = LP_SPAN("\"after\"");
    args.timeout_ms = CHECK_MS;
    args.done = on_checked;
    ask(s, &args);
}

static void tally_delete(struct lp_probe_session *s, const struct lp_reply *reply, bool is_fine)
{
    struct lp_seen *seen = &s->probe->seen;
    bool is_counted = s->task.job < LP_JOB_ORIGIN && s->task.arm == LP_ARM_FRESH &&
        (s->tries == 0 || !s->is_tallied);
    if (!is_counted || (lp_probe_is_fault(reply) && s->tries + 1 < LP_PROBE_TRIES))
        return;
    s->is_tallied = true;
    if (!seen->own_delete.status || is_fine)
        seen->own_delete = reply->answer;
    lp_probe_tally(s->probe, &seen->deletes, reply, is_fine);
}

static void delete_session(struct lp_probe_session *s);

static void on_deleted(void *ctx, const struct lp_reply *reply)
{
    struct lp_probe_session *s = ctx;
    struct lp_probe *probe = s->probe;
    uint16_t status = reply->answer.status;
    bool is_page = reply->answer.media == LP_MEDIA_HTML;
    bool is_fine = status >= 200 && status < 300 && !is_page;
    bool is_first = s->tries == 0;
    bool has_died = s->task.job == LP_JOB_QUIET && lp_probe_mark(probe, reply) == LP_MARK_LOST;
    uint32_t limit = lp_probe_pace(probe) < QUICK_US ? DELETE_TRIES : DELETE_TRIES_SLOW;
    is_fine |= has_died;
    tally_delete(s, reply, is_fine);
    bool may_check = is_fine && is_first && s->task.job == LP_JOB_ROW;
    if (may_check && probe->seen.unknown.status && probe->checks < CHECKS) {
        probe->checks++;
        check(s);
    } else if (!is_fine && status != 405 && status != 501 && ++s->tries < limit) {
        delete_session(s);
    } else {
        probe->seen.left += !is_fine;
        end(s);
    }
}

static void delete_session(struct lp_probe_session *s)
{
    struct lp_ask_args args = lp_probe_session_args(s);
    args.method = LP_METHOD_DELETE;
    args.done = on_deleted;
    ask(s, &args);
}

void lp_probe_session_leave(struct lp_probe_session *s)
{
    s->tries = 0;
    if (s->id_len)
        delete_session(s);
    else
        end(s);
}

void lp_probe_session_end(struct lp_probe_session *s)
{
    s->is_parked = false;
    s->probe->running++;
    lp_probe_session_leave(s);
}

/* --- the beginning --- */

static void prepare(struct lp_probe_session *s)
{
    struct lp_probe *probe = s->probe;
    enum lp_probe_job job = s->task.job;
    s->calls_left = probe->args.calls;
    if (job == LP_JOB_SHORT)
        s->calls_left = SHORT_CALLS;
    if (job == LP_JOB_ALONE)
        s->calls_left = ALONE_CALLS;
    if (is_arm(s, LP_ARM_KEPT))
        s->lane = ++probe->lane;
}

void lp_probe_session_begin(struct lp_probe *probe, const struct lp_probe_task *task)
{
    struct lp_probe_session *s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->probe = probe;
    s->task = *task;
    lp_list_init(&s->node);
    lp_list_push_back(&probe->sessions, &s->node);
    lp_jar_init(&s->jar, &lp_fetcher_target(probe->args.fetcher)->uri, LP_JAR_BYTES_MAX);
    prepare(s);
    probe->running++;
    if (!probe->seen.is_modern) {
        open_session(s);
        return;
    }
    s->opened_at = probe->asker.sent;
    begin_row(s);
    if (s->row)
        next_call(s);
    else
        end(s);
}

uint32_t lp_probe_sessions_left(const struct lp_probe *probe)
{
    uint32_t count = 0;
    const struct lp_list *node = probe->sessions.next;
    for (; node != &probe->sessions; node = node->next)
        count += LP_CONTAINER(node, struct lp_probe_session, node)->id_len > 0;
    return count;
}

void lp_probe_sessions_free(struct lp_probe *probe)
{
    while (!lp_list_empty(&probe->sessions))
        session_free(LP_CONTAINER(probe->sessions.next, struct lp_probe_session, node));
}
