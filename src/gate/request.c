/* The client's side of an exchange: what came is checked, held and scanned, made into facts, and
 * handed to lp_route; then the verdict is carried out (requirements [G1] to [G6], [G12]).
 *
 * A body up to 64 KiB is held whole. A larger one streams when its ticket is good and no header
 * says modern; otherwise it is held up to the body limit, because what it says must be known first.
 */
#include <stdio.h>

#include "base/error.h"
#include "gate/doorkeeper.h"
#include "gate/engine_priv.h"

/* Fields of which two different values could be read in two ways. */
static bool is_singleton(enum lp_field_id id)
{
    switch (id) {
    case LP_FIELD_MCP_SESSION_ID:
    case LP_FIELD_MCP_PROTOCOL_VERSION:
    case LP_FIELD_AUTHORIZATION:
    case LP_FIELD_CONTENT_TYPE:
    case LP_FIELD_ORIGIN:
    case LP_FIELD_LAST_EVENT_ID:
        return true;
    default:
        return false;
    }
}

static enum lp_reason check_singletons(const struct lp_kept_head *head)
{
    enum lp_reason reason = LP_REASON_none;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        if (!is_singleton(field->id) || lp_span_eq(field->value, lp_kept_value(head, field->id)))
            continue;
        if (field->id == LP_FIELD_MCP_SESSION_ID)
            return LP_REASON_bad_session_header;
        reason = LP_REASON_bad_http;
    }
    return reason;
}

/* Whether this engine has sent the request itself (RFC 9110 7.6.3). */
static bool came_back(const struct lp_engine *e, const struct lp_exchange *x)
{
    struct lp_span name = lp_span_from(lp_span(e->via, sizeof e->via - 1), sizeof "1.1 " - 1);
    for (uint32_t i = 0; i < x->request.field_count; i++) {
        const struct lp_field *field = &x->request.fields[i];
        if (field->id == LP_FIELD_VIA && lp_span_search(field->value, name) < field->value.len)
            return true;
    }
    return false;
}

static enum lp_reason refuse_loop(struct lp_engine *e, const struct lp_exchange *x)
{
    if (lp_engine_may_complain(e))
        lp_engine_say(e, LP_LOG_ERROR,
            "a request came back to this gateway: the address of a replica of server %.*s leads "
            "to it; correct the address",
            (int)x->record.server.len, x->record.server.ptr);
    return LP_REASON_looped;
}

static bool is_json(struct lp_span content_type)
{
    struct lp_span rest;
    struct lp_span media = lp_span_trim(lp_span_split(content_type, ';', &rest));
    return !content_type.ptr || lp_span_ieq(media, LP_SPAN("application/json"));
}

/* --- the session id --- */

/* A query whose token could not be read must not pass as one without. */
static enum lp_reason reason_of_token(int err)
{
    switch (err) {
    case LP_OK:
    case LP_ENOT_FOUND:
        return LP_REASON_none;
    case LP_EAMBIGUOUS:
        return LP_REASON_bad_session_header;
    default:
        return LP_REASON_out_of_memory;
    }
}

/* What the token stands for at the replica. */
static enum lp_reason open_token(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span token, struct lp_span rest)
{
    struct lp_buf target;
    enum lp_reason reason = LP_REASON_none;
    x->id_is_sse = true;
    lp_id_open(e, x, LP_TICKET_SSE, token);
    if (x->id_state != LP_ID_GOOD || x->owner.len)
        return reason;
    lp_buf_init(&target, 16384);
    if (lp_endpoint_target(&target, x->ticket.upstream_id, rest) ||
        lp_arena_dup(&x->arena, lp_buf_span(&target), &x->target))
        reason = LP_REASON_out_of_memory;
    lp_buf_release(&target);
    return reason;
}

/* The token of an old-SSE message address, if there is one. It goes no further than here. */
static enum lp_reason read_token(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_span token;
    struct lp_buf rest;
    lp_buf_init(&rest, 8192);
    int err = lp_endpoint_token(x->request.query, &token, &rest);
    enum lp_reason reason = reason_of_token(err);
    if (!err) {
        reason = open_token(e, x, token, lp_buf_span(&rest));
        x->request.query = lp_span(NULL, 0);
    }
    if (rest.len && lp_arena_dup(&x->arena, lp_buf_span(&rest), &x->request.query))
        reason = LP_REASON_out_of_memory;
    lp_buf_release(&rest);
    return reason;
}

static enum lp_reason read_id(struct lp_engine *e, struct lp_exchange *x)
{
    bool takes_tokens =
        x->server->conf->sse_path.len && lp_span_eq(x->request.path, x->server->conf->sse_path);
    if (takes_tokens && x->request.query.ptr) {
        enum lp_reason reason = read_token(e, x);
        if (reason || x->id_is_sse)
            return reason;
    }
    x->client_id = lp_kept_value(&x->request, LP_FIELD_MCP_SESSION_ID);
    if (x->client_id.ptr)
        lp_id_open(e, x, LP_TICKET_HTTP, x->client_id);
    return LP_REASON_none;
}

/* --- the head --- */

/* The key that would let it in is named, and the value shown with nothing in it that a terminal or
 * a reader of logs could take for something else (cases SEC-07). */
static void tell_refused(struct lp_engine *e, const struct lp_exchange *x, enum lp_reason reason)
{
    enum { SHOWN_MAX = 100 };
    bool is_host = reason == LP_REASON_host_refused;
    struct lp_span value = is_host ? x->host : lp_kept_value(&x->request, LP_FIELD_ORIGIN);
    char text[3 * SHOWN_MAX + 1];
    size_t len = 0;
    if (!lp_engine_may_complain(e))
        return;
    for (size_t i = 0; i < value.len && i < SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        bool is_plain = c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '%';
        len += (size_t)snprintf(text + len, sizeof text - len, is_plain ? "%c" : "%%%02X", c);
    }
    lp_engine_say(e, LP_LOG_WARN,
        "a request was refused: its %s \"%.*s\" is not allowed at server %.*s; if clients may use "
        "it, add it to %s",
        is_host ? "Host" : "Origin", (int)len, text, (int)x->record.server.len,
        x->record.server.ptr, is_host ? "hosts, or set public_url" : "origins");
}

static enum lp_reason judge_head(
    struct lp_engine *e, struct lp_exchange *x, const struct lp_head *head)
{
    if (head->minor && !head->expect_continue && lp_head_value(head, LP_FIELD_EXPECT).ptr)
        return LP_REASON_bad_expectation;
    if (head->field_count > LP_HEAD_FIELDS_MAX - LP_FIELDS_ADDED_MAX)
        return LP_REASON_head_too_large;
    enum lp_reason reason = lp_way_find(e, x);
    if (reason)
        return reason;
    if (came_back(e, x))
        return refuse_loop(e, x);
    reason = check_singletons(&x->request);
    if (!reason)
        reason = lp_peer_judge_hop(e, x);
    if (!reason && !x->came_by_peer) /* which has looked at them itself */
        reason =
            lp_doorkeeper_judge(x->server->conf, lp_link_facts(&e->links, x->down.link).is_loopback,
                x->host, lp_kept_value(&x->request, LP_FIELD_ORIGIN));
    if (reason == LP_REASON_host_refused || reason == LP_REASON_origin_refused)
        tell_refused(e, x, reason);
    if (reason)
        return reason;
    if (!x->came_by_peer && x->door != LP_DOOR_PASS)
        lp_page_admitted(x);
    if (head->body == LP_BODY_LENGTH && head->body_bytes > x->server->conf->body_max)
        return LP_REASON_body_too_large;
    if (head->method == LP_METHOD_POST && x->door != LP_DOOR_PASS &&
        !is_json(lp_kept_value(&x->request, LP_FIELD_CONTENT_TYPE)))
        return LP_REASON_bad_media_type;
    return lp_exchange_is_mcp(x) ? read_id(e, x) : LP_REASON_none;
}

/* A small body that is on its way is read first, for the id that the refusal has to carry. */
static bool waits_for_id(const struct lp_exchange *x, const struct lp_head *head)
{
    return head->method == LP_METHOD_POST && !head->expect_continue && x->request.fields &&
        head->body == LP_BODY_LENGTH && head->body_bytes <= LP_BODY_HELD_MAX;
}

static bool says_modern(const struct lp_exchange *x)
{
    return lp_version_looks_modern(lp_kept_value(&x->request, LP_FIELD_MCP_PROTOCOL_VERSION)) ||
        lp_kept_value(&x->request, LP_FIELD_MCP_METHOD).ptr;
}

static struct lp_route_facts facts_of(struct lp_engine *e, const struct lp_exchange *x)
{
    return (struct lp_route_facts){
        .method = x->request.method,
        .door = x->door,
        .era = x->era,
        .is_initialize = x->env.method == LP_RPC_INITIALIZE,
        .id_is_sse = x->id_is_sse,
        .has_credential = lp_kept_value(&x->request, LP_FIELD_AUTHORIZATION).ptr != NULL,
        .id = x->id_state,
        .stream_closed = x->id_is_sse && lp_home_is_closed(e, x->ticket.key),
        .is_listen = x->env.method == LP_RPC_LISTEN,
        .is_task = x->is_task,
        .was_passed = x->was_passed,
        .is_too_large = lp_peer_is_too_large(x),
    };
}

static struct lp_route_view view_of(struct lp_engine *e, struct lp_exchange *x)
{
    const struct lp_server_state *server = x->server;
    struct lp_route_view view = {
        .any_up = lp_fleet_any_up(&server->fleet),
        .sse_configured = server->conf->sse_path.len > 0,
        .sse_on_mcp_path = lp_span_eq(server->conf->sse_path, server->conf->path),
        .mints_ids = server->mints_ids,
        .challenges = server->challenges,
        .stopping = e->stopping,
        .replays = e->conf->replay != LP_REPLAY_OFF,
    };
    if (x->id_state != LP_ID_GOOD)
        return view;
    view.owner = lp_peer_owner(e, x);
    view.owner_is_other = x->owner.len > 0;
    view.owner_known = view.owner < server->fleet.count;
    view.unsettled = !view.owner_known && !lp_discovery_is_settled(e, x->ticket.key);
    if (view.owner_known) {
        view.owner_state = server->fleet.replicas[view.owner].state;
        view.owner_unreachable = server->fleet.replicas[view.owner].unreachable;
    }
    return view;
}

/* What a platform replays, or cannot replay, needs no long body here ([S5]). A small one is read
 * first: it may be an initialize, and the connection stays fit for use. */
static bool is_settled_by_head(
    struct lp_engine *e, struct lp_exchange *x, const struct lp_head *head)
{
    if (e->conf->replay == LP_REPLAY_OFF || head->method != LP_METHOD_POST || says_modern(x) ||
        waits_for_id(x, head))
        return false;
    struct lp_route_facts facts = facts_of(e, x);
    struct lp_route_view view = view_of(e, x);
    x->verdict = lp_route(&facts, &view);
    if (x->verdict.kind == LP_VERDICT_REPLAY)
        lp_answer_replay(e, x);
    else if (x->verdict.reason == LP_REASON_replay_too_large)
        lp_answer(e, x, x->verdict.reason, NULL);
    else
        return false;
    return true;
}

static struct lp_exchange *begin(struct lp_engine *e, struct lp_stream s)
{
    struct lp_exchange *x = lp_exchange_new(e);
    if (!x) {
        lp_engine_say(e, LP_LOG_ERROR, "a request was dropped: too many are in progress");
        lp_link_abort(&e->links, s);
        return NULL;
    }
    x->down = s;
    x->down_open = true;
    lp_link_set_tag(&e->links, s.link, x->id);
    return x;
}

void lp_request_head(struct lp_engine *e, struct lp_stream s, const struct lp_head *head)
{
    struct lp_exchange *x = begin(e, s);
    if (!x)
        return;
    if (lp_head_keep(x, head, &x->request) ||
        lp_arena_dup(&x->arena, lp_link_peer(&e->links, s.link), &x->record.peer)) {
        lp_answer(e, x, LP_REASON_out_of_memory, NULL);
        return;
    }
    x->record.http_method = x->request.method_name;
    struct lp_span query; /* may hold a token: no log line has it */
    x->record.path = lp_span_split(x->request.path, '?', &query);
    if (lp_peer_is_question(e, x)) {
        lp_answer_owner(e, x);
        return;
    }
    enum lp_reason reason = judge_head(e, x, head);
    if (reason && waits_for_id(x, head)) {
        x->refusal = reason;
        return;
    }
    if (reason) {
        lp_answer(e, x, reason, NULL);
        return;
    }
    lp_link_set_stalled(&e->links, s, x->server->conf->stalled_ms * 1000);
    x->is_stream_get = head->method == LP_METHOD_GET && lp_exchange_is_mcp(x);
    x->is_standalone = x->is_stream_get && !lp_kept_value(&x->request, LP_FIELD_LAST_EVENT_ID).ptr;
    if (!is_settled_by_head(e, x, head) && head->expect_continue && head->body != LP_BODY_NONE)
        lp_link_continue(&e->links, s);
}

/* --- the body --- */

static void refuse_large_body(struct lp_engine *e, struct lp_exchange *x, enum lp_reason reason)
{
    if (lp_envelope_scan_part(lp_buf_span(&x->body), &x->env))
        x->env.id = lp_span(NULL, 0);
    lp_leg_close(e, x);
    lp_answer(e, x, reason, NULL);
}

static bool may_stream(const struct lp_exchange *x)
{
    if (x->door == LP_DOOR_PASS)
        return true;
    return x->request.method == LP_METHOD_POST && x->id_state == LP_ID_GOOD && !says_modern(x);
}

static void decide(struct lp_engine *e, struct lp_exchange *x);

/* What a body that could not be scanned is refused with. */
static enum lp_reason reason_of_scan(struct lp_exchange *x, int err, const char **ret_detail)
{
    if (err == LP_EAMBIGUOUS) {
        *ret_detail = "Invalid Request: a key of the message is given twice";
        return LP_REASON_bad_message;
    }
    _Static_assert(LP_JSON_DEPTH_MAX == 128, "a sentence names this number");
    if (err == LP_ELIMIT)
        *ret_detail = "Parse error: the body is nested deeper than 128 levels";
    x->env.id = lp_span(NULL, 0); /* of what is no JSON nothing was readable */
    return LP_REASON_bad_json;
}

static void begin_streaming(struct lp_engine *e, struct lp_exchange *x)
{
    x->body_streams = true;
    bool is_message = x->door != LP_DOOR_PASS;
    int err = is_message ? lp_envelope_scan_part(lp_buf_span(&x->body), &x->env) : LP_OK;
    if (err) {
        const char *detail = NULL;
        enum lp_reason reason = reason_of_scan(x, err, &detail);
        lp_answer(e, x, reason, detail);
        return;
    }
    lp_link_pause(&e->links, x->down); /* until the replica's connection is there */
    decide(e, x);
}

static void hold_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    x->body.max =
        may_stream(x) ? LP_BODY_HELD_MAX + 2 * LP_LINK_HELD_MAX : (size_t)x->server->conf->body_max;
    if (lp_buf_append(&x->body, bytes)) {
        lp_answer(e, x, LP_REASON_out_of_memory, NULL);
        return;
    }
    if (!may_stream(x) && !lp_exchange_count_body(e, x)) {
        lp_engine_say(e, LP_LOG_WARN, "a request was refused: large_bodies_limit is reached");
        refuse_large_body(e, x, LP_REASON_over_capacity);
        return;
    }
    if (x->body.len > LP_BODY_HELD_MAX && may_stream(x))
        begin_streaming(e, x);
}

void lp_request_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    x->body_seen += bytes.len;
    x->record.bytes_in += bytes.len;
    if (x->refusal) {
        (void)!lp_buf_append(&x->body, bytes);
        return;
    }
    if (x->body_seen > x->server->conf->body_max) {
        size_t room = lp_buf_room(&x->body);
        (void)!lp_buf_append(&x->body, lp_span(bytes.ptr, bytes.len < room ? bytes.len : room));
        refuse_large_body(e, x, LP_REASON_body_too_large);
        return;
    }
    if (!x->body_streams) {
        hold_body(e, x, bytes);
        return;
    }
    lp_metrics_add(&e->metrics, LP_METRIC_BYTES_TO_REPLICAS, (int64_t)bytes.len);
    LP_ASSERT(x->leg.open); /* until then the client was paused */
    if (!lp_link_send_body(&e->links, x->leg.up, bytes))
        lp_link_pause(&e->links, x->down);
}

/* --- the verdict --- */

static enum lp_reason judge_body(
    struct lp_exchange *x, const struct lp_head *as_head, const char **ret_detail)
{
    if (!x->body_streams) {
        int err = lp_envelope_scan(lp_buf_span(&x->body), &x->env);
        if (err)
            return reason_of_scan(x, err, ret_detail);
    }
    const struct lp_envelope *env = &x->env;
    if (x->id_is_sse)
        return LP_REASON_none; /* old SSE: the replica's own rules */
    if (!env->is_batch && !env->is_object)
        return LP_REASON_bad_message;
    bool is_message = env->is_batch || env->method || env->has_result || env->has_error;
    if ((!is_message && !x->body_streams) || (env->has_id && !env->id_is_valid))
        return LP_REASON_bad_message;
    return lp_version_judge(as_head, env, &x->era, ret_detail);
}

/* Who posts to an old-SSE path needs no session header, but the address that the stream told. */
static const char *detail_of(const struct lp_exchange *x)
{
    bool lacks_token = x->door == LP_DOOR_SSE && x->verdict.reason == LP_REASON_missing_session;
    return lacks_token
        ? "Bad Request: POST to the address in the stream's endpoint event, with its "
          "query member lp; it is missing here"
        : NULL;
}

static void carry_out(struct lp_engine *e, struct lp_exchange *x)
{
    switch (x->verdict.kind) {
    case LP_VERDICT_ANSWER:
        lp_answer(e, x, x->verdict.reason, detail_of(x));
        return;
    case LP_VERDICT_FORWARD:
        if (x->is_task && lp_task_unwrap(x)) {
            lp_answer(e, x, LP_REASON_out_of_memory, NULL);
            return;
        }
        if (!lp_cookies_load(e, x))
            return;
        lp_home_used(e, x->ticket.key);
        lp_leg_start(e, x, x->verdict.replica);
        return;
    case LP_VERDICT_FORWARD_PEER:
        lp_metrics_add(&e->metrics, LP_METRIC_PEER_FORWARDS, 1);
        lp_leg_start(e, x, x->verdict.replica);
        return;
    case LP_VERDICT_REPLAY:
        lp_answer_replay(e, x);
        return;
    case LP_VERDICT_NEW_SESSION:
    case LP_VERDICT_NEW_STREAM:
    case LP_VERDICT_ANY:
        lp_metrics_add(&e->metrics, LP_METRIC_PASSED, x->door == LP_DOOR_PASS);
        x->is_old_sse = x->verdict.kind == LP_VERDICT_NEW_STREAM;
        lp_leg_start(e, x, lp_leg_pick(x, UINT32_MAX));
        return;
    }
}

void lp_request_route(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_route_facts facts = facts_of(e, x);
    struct lp_route_view view = view_of(e, x);
    x->verdict = lp_route(&facts, &view);
    carry_out(e, x);
}

static void decide(struct lp_engine *e, struct lp_exchange *x)
{
    const char *detail = NULL;
    if (lp_page_is_preflight(x)) {
        lp_answer_preflight(e, x);
        return;
    }
    if (x->request.method == LP_METHOD_POST && x->door != LP_DOOR_PASS) {
        /* The kept fields in the form that the version rules take. */
        e->out_head->field_count = 0;
        for (uint32_t i = 0; i < x->request.field_count; i++)
            e->out_head->fields[e->out_head->field_count++] = x->request.fields[i];
        enum lp_reason reason = judge_body(x, e->out_head, &detail);
        x->record.rpc_method = lp_span_str(lp_rpc_method_name(x->env.method));
        x->record.is_modern = x->era == LP_ERA_MODERN;
        if (reason) {
            lp_answer(e, x, reason, detail);
            return;
        }
    }
    /* The id outlives the body: it is echoed in whatever ends the call. */
    if (x->env.id.len > LP_ID_ECHO_MAX)
        x->env.id = lp_span(NULL, 0);
    if (lp_arena_dup(&x->arena, x->env.id, &x->env.id)) {
        lp_answer(e, x, LP_REASON_out_of_memory, NULL);
        return;
    }
    lp_task_read(e, x);
    lp_request_route(e, x);
}

void lp_request_end(struct lp_engine *e, struct lp_exchange *x)
{
    x->body_done = true;
    x->turn_us = e->mono_us;
    if (x->refusal) {
        if (lp_envelope_scan(lp_buf_span(&x->body), &x->env))
            x->env.id = lp_span(NULL, 0);
        lp_answer(e, x, x->refusal, NULL);
        return;
    }
    if (!x->body_streams)
        decide(e, x);
    else
        lp_link_send_end(&e->links, x->leg.up);
}

void lp_request_refused(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why)
{
    lp_leg_close(e, x);
    lp_answer(e, x, why, NULL);
}
