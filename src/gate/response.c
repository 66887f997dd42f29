/* The replica's side of an exchange: its answer is judged, rewritten and passed on.
 *
 * Most heads pass at once. Held back are only: an error that may mean a lost session, or that the
 * server knows sessions only, until its body says so (requirements [G6]), and a 409 to a standalone
 * stream, until the older stream has yielded
 * ([G10]). The upstream's session id never leaves here: a successful initialize gets a ticket. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "mcp/dialect.h"
#include "wire/json.h"
#include "wire/member.h"

enum { FIELDS_MAX = LP_HEAD_FIELDS_MAX - LP_FIELDS_ADDED_MAX };

static struct lp_kept_head borrow(const struct lp_head *head)
{
    /* Only read from: the fields are those of the codec's head. */
    return (struct lp_kept_head){.status = head->status,
        .reason = head->reason,
        .body = head->body,
        .body_bytes = head->body_bytes,
        .field_count = head->field_count,
        .fields = (struct lp_field *)(uintptr_t)head->fields};
}

/* Interim answers do not get here. */
static bool is_success(uint16_t status)
{
    return status < 300;
}

static bool has_credential(const struct lp_exchange *x)
{
    return lp_kept_value(&x->request, LP_FIELD_AUTHORIZATION).ptr != NULL;
}

/* --- passing a head on --- */

static bool is_event_stream(const struct lp_kept_head *from)
{
    struct lp_span rest;
    struct lp_span type = lp_kept_value(from, LP_FIELD_CONTENT_TYPE);
    return from->status == 200 &&
        lp_span_ieq(lp_span_trim(lp_span_split(type, ';', &rest)), LP_SPAN("text/event-stream"));
}

static bool is_encoded(const struct lp_kept_head *from)
{
    struct lp_span coding = lp_kept_value(from, LP_FIELD_CONTENT_ENCODING);
    return coding.len && !lp_span_ieq(coding, LP_SPAN("identity"));
}

static bool is_dropped(const struct lp_exchange *x, const struct lp_field *field)
{
    if (field->id == LP_FIELD_CONTENT_LENGTH || field->id == LP_FIELD_MCP_SESSION_ID ||
        lp_field_is_hop_by_hop(field->id) || lp_cookies_is_hidden(x, field->id) ||
        lp_page_hides(x, field->id))
        return true;
    return x->is_sse &&
        (field->id == LP_FIELD_CACHE_CONTROL || field->id == LP_FIELD_X_ACCEL_BUFFERING);
}

static void copy_fields(struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from)
{
    struct lp_head *head = e->out_head;
    bool has_connection = lp_kept_value(from, LP_FIELD_CONNECTION).ptr != NULL;
    for (uint32_t i = 0; i < from->field_count; i++) {
        const struct lp_field *field = &from->fields[i];
        if (is_dropped(x, field))
            continue;
        if (has_connection && lp_kept_is_named_by_connection(from, field->name))
            continue;
        struct lp_field *shown = &head->fields[head->field_count++];
        *shown = *field;
        if (field->id == LP_FIELD_WWW_AUTHENTICATE && x->door != LP_DOOR_PASS)
            shown->value = lp_metadata_challenge(e, x, field->value);
    }
}

static void frame_body(
    struct lp_head *head, const struct lp_exchange *x, const struct lp_kept_head *from)
{
    head->body = from->body;
    head->body_bytes = from->body_bytes;
    if (x->is_sse || from->body == LP_BODY_UNTIL_CLOSE)
        head->body = LP_BODY_CHUNKED;
}

/* `ticket`: a session id to add; empty for none. */
static void pass_head(struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from,
    struct lp_span ticket)
{
    struct lp_head *head = e->out_head;
    x->is_sse = is_event_stream(from) && x->door != LP_DOOR_PASS;
    x->is_encoded = is_encoded(from);
    head->is_request = false;
    head->method = x->request.method;
    head->status = from->status;
    head->reason = from->reason;
    head->field_count = 0;
    copy_fields(e, x, from);
    frame_body(head, x, from);
    if (ticket.len)
        (void)!lp_head_add(head, LP_FIELD_MCP_SESSION_ID, ticket);
    if (x->is_sse) {
        (void)!lp_head_add(head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-cache, no-transform"));
        (void)!lp_head_add(head, LP_FIELD_X_ACCEL_BUFFERING, LP_SPAN("no"));
    }
    if (from->status == 405 && lp_exchange_is_mcp(x) && !lp_kept_value(from, LP_FIELD_ALLOW).ptr)
        (void)!lp_head_add(head, LP_FIELD_ALLOW, LP_SPAN("POST, DELETE"));
    lp_page_add_fields(x, from, head);
    lp_exchange_set_phase(x, LP_PHASE_RELAYING);
    x->record.status = from->status;
    x->record.is_stream = x->is_sse;
    lp_exchange_await_body(e, x);
    if (!x->down_open)
        return;
    x->down_begun = true;
    lp_link_send_head(&e->links, x->down, head);
    if (x->is_sse)
        lp_stream_begin(e, x);
}

/* An answer within a session carries the client's own id where the replica repeats its own. */
static struct lp_span id_to_show(const struct lp_exchange *x, const struct lp_kept_head *from)
{
    bool is_bound =
        x->verdict.kind == LP_VERDICT_FORWARD || x->verdict.kind == LP_VERDICT_FORWARD_PEER;
    bool is_repeated = is_bound && x->client_id.ptr && is_success(from->status) &&
        lp_kept_value(from, LP_FIELD_MCP_SESSION_ID).ptr;
    return is_repeated ? x->client_id : LP_SPAN("");
}

/* --- a new session --- */

/* Ends the session that cannot be used at the replica, with the credentials at hand. */
static void make_delete(struct lp_engine *e, const struct lp_exchange *for_x, struct lp_span id)
{
    struct lp_exchange *x = lp_exchange_new(e);
    if (!x)
        return;
    x->server = for_x->server;
    x->is_made = true;
    x->end_reason = LP_REASON_answered; /* whatever else the answer says */
    x->body_done = true;
    x->verdict.kind = LP_VERDICT_FORWARD;
    x->request = for_x->request;
    x->request.method = LP_METHOD_DELETE;
    x->request.method_name = LP_SPAN("DELETE");
    x->request.query = lp_span(NULL, 0);
    x->request.body = LP_BODY_NONE;
    struct lp_field *credential = lp_arena_alloc(&x->arena, sizeof *credential);
    struct lp_span value = lp_kept_value(&for_x->request, LP_FIELD_AUTHORIZATION);
    x->request.field_count = 0;
    x->request.fields = credential;
    if (credential && value.ptr && !lp_arena_dup(&x->arena, value, &value)) {
        *credential = (struct lp_field){LP_SPAN("Authorization"), value, LP_FIELD_AUTHORIZATION};
        x->request.field_count = 1;
    }
    x->record.server = x->server->conf->name;
    x->record.http_method = x->request.method_name;
    x->record.path = x->server->conf->path;
    if (lp_arena_dup(&x->arena, id, &x->ticket.upstream_id) || lp_cookies_use(e, x, for_x->cookies))
        lp_exchange_over(e, x, LP_REASON_out_of_memory);
    else
        lp_leg_start(e, x, for_x->leg.replica);
}

static enum lp_reason check_upstream_id(struct lp_span id)
{
    if (id.len > LP_TICKET_UPSTREAM_ID_MAX)
        return LP_REASON_upstream_id_too_long;
    for (size_t i = 0; i < id.len; i++)
        if (id.ptr[i] < 0x21 || id.ptr[i] > 0x7E)
            return LP_REASON_upstream_id_bad;
    return id.len ? LP_REASON_none : LP_REASON_upstream_id_bad;
}

static void learn_minting(struct lp_engine *e, struct lp_server_state *server, bool mints)
{
    if (server->mints_ids == (mints ? LP_YES : LP_NO))
        return;
    struct lp_mail mail = {.kind = LP_MAIL_LEARNT,
        .server = server->index,
        .delta = mints ? LP_LEARNT_MINTS : LP_LEARNT_MINTS_NOT};
    lp_mail_all(e, &mail);
}

/* Who asks nobody for credentials any more: a lost session's 404 would otherwise stay a 401. */
static void learn_no_challenge(struct lp_engine *e, const struct lp_server_state *server)
{
    struct lp_mail mail = {
        .kind = LP_MAIL_LEARNT, .server = server->index, .delta = LP_LEARNT_CHALLENGES_NOT};
    lp_mail_all(e, &mail);
}

static void open_session(
    struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from)
{
    struct lp_span id = lp_kept_value(from, LP_FIELD_MCP_SESSION_ID);
    learn_minting(e, x->server, id.ptr != NULL);
    if (x->server->challenges && !has_credential(x))
        learn_no_challenge(e, x->server);
    if (!id.ptr) {
        pass_head(e, x, from, LP_SPAN(""));
        return;
    }
    enum lp_reason reason = check_upstream_id(id);
    struct lp_span ticket = LP_SPAN("");
    bool has_another = x->id_state == LP_ID_GOOD && !x->owner.len;
    struct lp_key another = x->ticket.key;
    if (!reason && lp_seal(e, x, LP_TICKET_HTTP, id, &ticket))
        reason = LP_REASON_out_of_memory;
    if (reason) {
        if (id.len) /* an empty one names no session that could be ended */
            make_delete(e, x, id);
        lp_answer(e, x, reason, NULL);
        return;
    }
    x->record.session = x->ticket.key.lo;
    lp_metrics_add(&e->metrics, LP_METRIC_SESSIONS_OPENED, 1);
    if (has_another)
        lp_home_ended(e, another, LP_END_REPLACED);
    lp_home_opened(e, x, x->ticket.key);
    pass_head(e, x, from, ticket);
}

/* --- what is learnt from every answer --- */

/* "timeout=5": the replica closes a connection that idle; ours go a second earlier. */
static void learn_keep_alive(struct lp_replica *r, struct lp_span value)
{
    static const struct lp_span WORD = {"timeout=", 8};
    size_t at = lp_span_search(value, WORD);
    if (at == value.len)
        return;
    struct lp_span rest, digits = lp_span_from(value, at + WORD.len);
    uint64_t seconds;
    if (!lp_span_to_u64(lp_span_trim(lp_span_split(digits, ',', &rest)), &seconds) ||
        seconds > 3600)
        return;
    r->keep_us = seconds > 1 ? (seconds - 1) * 1000000 : seconds * 500000;
}

/* All challenges of an answer as one list (RFC 9110 11.6.1), which may be a few fields there; empty
 * when it does not fit. */
static struct lp_span join_challenges(const struct lp_kept_head *from, char room[LP_CHALLENGE_MAX])
{
    struct lp_buf list;
    lp_buf_init(&list, LP_CHALLENGE_MAX);
    int err = LP_OK;
    for (uint32_t i = 0; i < from->field_count && !err; i++) {
        const struct lp_field *field = &from->fields[i];
        if (field->id != LP_FIELD_WWW_AUTHENTICATE || !field->value.len)
            continue;
        if (list.len)
            err = lp_buf_append(&list, LP_SPAN(", "));
        if (!err)
            err = lp_buf_append(&list, field->value);
    }
    struct lp_span all = err ? LP_SPAN("") : lp_span(room, list.len);
    if (all.len)
        memcpy(room, lp_buf_span(&list).ptr, all.len);
    lp_buf_release(&list);
    return all;
}

static void learn_challenge(
    struct lp_engine *e, const struct lp_server_state *server, const struct lp_kept_head *from)
{
    char room[LP_CHALLENGE_MAX];
    struct lp_span challenge = join_challenges(from, room);
    if (server->challenges &&
        lp_span_eq(challenge, lp_span(server->challenge, server->challenge_len)))
        return;
    struct lp_mail mail = {.kind = LP_MAIL_LEARNT,
        .server = server->index,
        .delta = LP_LEARNT_CHALLENGES,
        .text = challenge};
    lp_mail_all(e, &mail);
}

static void learn(struct lp_engine *e, struct lp_exchange *x, const struct lp_kept_head *from)
{
    struct lp_replica *r = lp_leg_replica(x);
    r->late = false;
    if (r->broke || r->state != LP_REPLICA_UP)
        lp_replica_connected(e, x->server->index, x->leg.replica);
    struct lp_span keep_alive = lp_kept_value(from, LP_FIELD_KEEP_ALIVE);
    if (keep_alive.ptr)
        learn_keep_alive(r, keep_alive);
    /* Only who came without credentials was asked for them; and a bad token's challenge may name
     * it. */
    if (from->status == 401 && !has_credential(x) && lp_exchange_is_mcp(x))
        learn_challenge(e, x->server, from);
    x->record.first_byte_us = e->mono_us - x->begun_us;
    lp_metrics_first_byte(&e->metrics, x->record.first_byte_us);
}

/* --- judging --- */

static bool is_lost_status(const struct lp_conf_server *conf, uint16_t status)
{
    if (status == 404 || status == 400 || status == 422)
        return true;
    for (uint32_t i = 0; i < conf->lost_dialect_count; i++)
        if (conf->lost_dialects[i].status == status)
            return true;
    return false;
}

/* A modern request at a server which may know sessions only. */
static bool may_be_of_sessions(const struct lp_exchange *x, uint16_t status)
{
    return status == 400 && x->verdict.kind == LP_VERDICT_ANY && x->era == LP_ERA_MODERN &&
        lp_exchange_is_mcp(x);
}

/* In their words: a session, or its initialize, is missing (wire 15.3; cases MOD-01). */
static bool asks_for_session(struct lp_span body)
{
    if (!lp_json_is_object(body))
        return false;
    struct lp_span error = lp_member(body, LP_SPAN("error"));
    struct lp_span code = lp_member(error, LP_SPAN("code"));
    struct lp_span message = lp_member(error, LP_SPAN("message"));
    bool names_session = lp_span_search(message, LP_SPAN("ession")) < message.len;
    return lp_span_eq(code, LP_SPAN("-32000")) ||
        (lp_span_eq(code, LP_SPAN("-32600")) && names_session);
}

static bool must_be_judged(const struct lp_exchange *x, uint16_t status)
{
    if (may_be_of_sessions(x, status))
        return true;
    if (x->verdict.kind != LP_VERDICT_FORWARD || x->is_made || x->is_task)
        return false;
    return is_lost_status(x->server->conf, status) || (status == 409 && x->is_standalone);
}

/* An id-less request went to any replica and was refused for want of an id: our words for it. */
static bool is_missing_id(const struct lp_exchange *x, uint16_t status)
{
    return status == 400 && x->verdict.kind == LP_VERDICT_ANY && x->era == LP_ERA_LEGACY &&
        lp_exchange_is_mcp(x) && x->request.method != LP_METHOD_OPTIONS &&
        x->server->mints_ids != LP_NO;
}

static void begin_judging(struct lp_engine *e, struct lp_exchange *x, const struct lp_head *head)
{
    lp_exchange_set_phase(x, LP_PHASE_JUDGING);
    x->answer = lp_arena_alloc(&x->arena, sizeof *x->answer);
    if (x->door == LP_DOOR_METADATA)
        x->held.max = LP_METADATA_MAX;
    else if (lp_task_is_awaited(x))
        x->held.max = lp_task_held_max(x);
    if (!x->answer || lp_head_keep(x, head, x->answer))
        lp_answer(e, x, LP_REASON_out_of_memory, NULL);
}

void lp_response_head(struct lp_engine *e, struct lp_exchange *x, const struct lp_head *head)
{
    struct lp_kept_head from = borrow(head);
    x->turn_us = e->mono_us;
    if (!x->body_streams && !x->is_standalone && !lp_leg_is_sending(x))
        lp_exchange_drop_body(e, x); /* no second attempt from here on */
    if (head->field_count > FIELDS_MAX) {
        lp_answer(e, x, LP_REASON_upstream_garbled, "the replica's answer has too many fields");
        return;
    }
    learn(e, x, &from);
    lp_cookies_take(e, x, &from);
    if (x->door == LP_DOOR_METADATA && lp_metadata_ask_again(e, x, head->status))
        return;
    if (must_be_judged(x, head->status) || lp_metadata_is_held(x, head->status)) {
        lp_engine_arm(e, &x->timer, e->mono_us + x->server->conf->sse_post_ms * 1000);
        begin_judging(e, x, head);
        return;
    }
    if (lp_task_is_held(x, &from) && !is_encoded(&from)) {
        begin_judging(e, x, head);
        return;
    }
    if (x->is_old_sse && is_event_stream(&from) && is_encoded(&from)) {
        lp_answer(e, x, LP_REASON_upstream_garbled,
            "the replica's event stream is compressed, which nobody asked for");
        return;
    }
    if (is_missing_id(x, head->status)) {
        lp_answer(e, x, LP_REASON_missing_session, NULL);
        return;
    }
    if (x->client_left)
        lp_engine_arm(e, &x->timer, e->mono_us + LP_LEFT_US);
    if (x->verdict.kind == LP_VERDICT_NEW_SESSION && is_success(head->status))
        open_session(e, x, &from);
    else
        pass_head(e, x, &from, id_to_show(x, &from));
    bool is_ended_session = x->request.method == LP_METHOD_DELETE && !x->is_made &&
        x->verdict.kind == LP_VERDICT_FORWARD && is_success(head->status);
    if (is_ended_session)
        lp_home_ended(e, x->ticket.key, LP_END_DELETED);
}

/* --- passing the body on --- */

static void pass_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    x->turn_us = e->mono_us;
    if (!x->down_open) {
        x->left_bytes += bytes.len;
        if (x->left_bytes > LP_LEFT_BYTES_MAX) {
            lp_leg_close(e, x);
            lp_exchange_over(e, x, x->end_reason);
        }
        return;
    }
    x->record.bytes_out += bytes.len;
    lp_metrics_add(&e->metrics, LP_METRIC_BYTES_TO_CLIENTS, (int64_t)bytes.len);
    bool goes_on =
        x->is_sse ? lp_stream_pass(e, x, bytes) : lp_link_send_body(&e->links, x->down, bytes);
    if (goes_on || x->phase == LP_PHASE_OVER || !x->leg.open)
        return;
    x->down_blocked = true;
    lp_link_pause(&e->links, x->leg.up);
}

static void finish(struct lp_engine *e, struct lp_exchange *x, bool whole)
{
    enum lp_reason reason = x->is_sse ? LP_REASON_stream_ended : LP_REASON_answered;
    if (!whole && !x->is_sse)
        reason = LP_REASON_no_framing;
    if (x->client_left)
        reason = x->end_reason;
    if (x->down_open)
        lp_link_send_end(&e->links, x->down);
    x->down_open = false;
    lp_exchange_over(e, x, reason);
}

/* The older stream's home is asked to have it closed; once that is done, each further try leaves
 * the replica a little longer to notice. */
static void start_replacing(struct lp_engine *e, struct lp_exchange *x)
{
    enum { WAIT_US = 1000000, PAUSE_US = 30000 };
    lp_exchange_set_phase(x, LP_PHASE_REPLACING);
    if (x->replace_tries) {
        lp_engine_arm(e, &x->timer, e->mono_us + PAUSE_US * x->replace_tries);
        return;
    }
    lp_engine_arm(e, &x->timer, e->mono_us + WAIT_US);
    struct lp_mail mail = {.kind = LP_MAIL_EVICT, .key = x->ticket.key, .exchange = x->id};
    lp_mail_send(e, lp_home_of(e, x->ticket.key), &mail);
}

static void pass_judged(struct lp_engine *e, struct lp_exchange *x)
{
    pass_head(e, x, x->answer, id_to_show(x, x->answer));
    struct lp_span held = lp_buf_span(&x->held);
    if (held.len)
        pass_body(e, x, held);
    if (x->answer_done)
        finish(e, x, true);
}

/* One that is too long passes as it is: what made a task is short. */
static void show_task(struct lp_engine *e, struct lp_exchange *x)
{
    enum lp_reason reason = LP_REASON_none;
    if (x->answer_done)
        reason = lp_task_rewrite(e, x);
    if (reason)
        lp_answer(e, x, reason, NULL);
    else
        pass_judged(e, x);
}

static void judge(struct lp_engine *e, struct lp_exchange *x)
{
    const struct lp_conf_server *conf = x->server->conf;
    struct lp_dialect extra[LP_CONF_DIALECTS_MAX];
    uint32_t count = conf->lost_dialect_count;
    LP_ASSERT(count <= LP_CONF_DIALECTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        extra[i] = (struct lp_dialect){conf->lost_dialects[i].status, conf->lost_dialects[i].code,
            conf->lost_dialects[i].text};
    lp_heap_cancel(&e->timers, &x->timer);
    if (x->door == LP_DOOR_METADATA) {
        if (x->answer_done)
            lp_metadata_rewrite(x);
        pass_judged(e, x);
    } else if (lp_task_is_awaited(x)) {
        show_task(e, x);
    } else if (may_be_of_sessions(x, x->answer->status)) {
        if (x->answer_done && asks_for_session(lp_buf_span(&x->held)))
            lp_answer(e, x, LP_REASON_unknown_version, NULL);
        else
            pass_judged(e, x);
    } else if (lp_dialect_is_lost(
                   x->answer->status, lp_buf_span(&x->held), x->answer_done, extra, count)) {
        lp_home_ended(e, x->ticket.key, LP_END_LOST);
        lp_answer(e, x, LP_REASON_session_lost, NULL);
    } else if (x->answer->status == 409 && x->is_standalone && x->answer_done) {
        start_replacing(e, x);
    } else {
        pass_judged(e, x);
    }
}

void lp_response_body(struct lp_engine *e, struct lp_exchange *x, struct lp_span bytes)
{
    if (x->phase != LP_PHASE_JUDGING) {
        pass_body(e, x, bytes);
        return;
    }
    if (bytes.len <= lp_buf_room(&x->held)) {
        if (lp_buf_append(&x->held, bytes))
            lp_answer(e, x, LP_REASON_out_of_memory, NULL);
        return;
    }
    judge(e, x); /* too long for any dialect */
    if (x->phase == LP_PHASE_RELAYING)
        pass_body(e, x, bytes);
}

void lp_response_end(struct lp_engine *e, struct lp_exchange *x, bool whole)
{
    lp_leg_done(e, x);
    x->answer_done = true;
    if (x->phase == LP_PHASE_JUDGING)
        judge(e, x);
    else
        finish(e, x, whole);
}

void lp_response_yielded(struct lp_engine *e, struct lp_exchange *x, bool closed)
{
    enum { PAUSE_US = 30000 };
    if (x->phase != LP_PHASE_REPLACING || x->asks_home)
        return;
    lp_heap_cancel(&e->timers, &x->timer);
    if (!closed || x->replace_tries > LP_REPLACE_TRIES_MAX) {
        pass_judged(e, x);
        return;
    }
    if (x->replace_tries++ == 0) {
        lp_engine_arm(e, &x->timer, e->mono_us + PAUSE_US);
        return;
    }
    lp_buf_clear(&x->held);
    x->answer_done = false;
    x->knows_cookies = false; /* the 409 may have renewed them */
    if (lp_cookies_load(e, x))
        lp_leg_start(e, x, x->leg.replica);
}

void lp_response_broke(struct lp_engine *e, struct lp_exchange *x, enum lp_reason why)
{
    bool may_say_so = x->is_sse && !x->is_old_sse && !x->is_encoded && lp_exchange_is_call(x) &&
        lp_sse_border_at(&x->border);
    /* The body of an answer to an old-SSE message is read by nobody: only its status tells. */
    bool is_dead_call = why == LP_REASON_upstream_broke && lp_exchange_is_call(x) && !x->id_is_sse;
    if (!x->down_open) {
        lp_exchange_over(e, x, why);
    } else if (!x->down_begun && is_dead_call) {
        lp_answer_dead_call(e, x, why);
    } else if (!x->down_begun) {
        lp_answer(e, x, why, NULL);
    } else if (may_say_so) {
        lp_answer_dead_event(e, x, why);
    } else {
        lp_link_abort(&e->links, x->down);
        x->down_open = false;
        lp_exchange_over(e, x, why);
    }
}
