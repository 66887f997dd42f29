/* Questions to the client (serve/job.h, lp_job_ask): several at once, and those of 2026-07-28,
 * where a question is the answer to the request (wire document 7.9).
 *
 * There the call ends with its questions, and what has been answered so far goes to the client and
 * comes back with the request when it is asked again, sealed (mcp/sealed) for this principal and
 * these params, and good until the time that the handler gave. The handler then runs again from its
 * start, here or in another process with the same key, and each question that has its answer is
 * answered at once. An answer belongs to the text of its question: another question under the same
 * name is asked anew. Nothing is kept here between the two, so that nobody enforces that a state is
 * used once.
 *
 * With a session several questions go one after the other. */
#include "serve/inputs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "mcp/sealed.h"
#include "serve/server_priv.h"
#include "wire/member.h"

enum { INVALID_PARAMS = -32602, KEY_MAX = 64, PURPOSE_MAX = 2 * LP_SERVER_BODY_MAX };

/* --- objects that grow: {"key":value,...} --- */

static void begin_object(struct lp_out *out)
{
    lp_out_init(out);
    lp_out_str(out, "{}");
}

/* Opens the object for one more member, after which comes its value and then close_member. */
static void begin_member(struct lp_out *out, struct lp_span quoted_key)
{
    if (out->buf.len)
        out->buf.len--;
    if (out->buf.len > 1)
        lp_out_str(out, ",");
    lp_out_put(out, quoted_key);
    lp_out_str(out, ":");
}

static void close_member(struct lp_out *out)
{
    lp_out_str(out, "}");
}

/* --- birth and death --- */

static struct lp_inputs *inputs_of(struct lp_job *call)
{
    if (call->inputs)
        return call->inputs;
    struct lp_inputs *in = calloc(1, sizeof *in);
    if (!in)
        return NULL;
    begin_object(&in->known);
    begin_object(&in->asked);
    begin_object(&in->marks);
    begin_object(&in->result);
    return call->inputs = in;
}

void lp_inputs_free(struct lp_inputs *in)
{
    if (!in)
        return;
    lp_out_release(&in->known);
    lp_out_release(&in->asked);
    lp_out_release(&in->marks);
    lp_out_release(&in->result);
    free(in);
}

/* --- what a state is for --- */

static void add_param(void *ctx, struct lp_span key, struct lp_span value)
{
    bool is_of_round = lp_json_string_is(key, LP_SPAN("_meta")) ||
        lp_json_string_is(key, LP_SPAN("inputResponses")) ||
        lp_json_string_is(key, LP_SPAN("requestState"));
    if (is_of_round)
        return;
    lp_out_put(ctx, key);
    lp_out_str(ctx, ":");
    lp_out_put(ctx, value);
    lp_out_str(ctx, "\n");
}

/* This principal, this method and all params that are the same in each round. */
static void write_purpose(const struct lp_job *call, struct lp_out *out)
{
    const struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    lp_out_printf(out, "%016llx%016llx %s\n", (unsigned long long)call->principal.hi,
        (unsigned long long)call->principal.lo, lp_rpc_method_name(ch->method));
    lp_members(call->params, add_param, out);
}

/* --- what comes with a request --- */

static void put_known(
    struct lp_inputs *in, struct lp_span key, struct lp_span mark, struct lp_span answer)
{
    begin_member(&in->known, key);
    lp_out_str(&in->known, "{\"of\":");
    lp_out_put(&in->known, mark);
    lp_out_str(&in->known, ",\"is\":");
    lp_out_put(&in->known, answer);
    lp_out_str(&in->known, "}");
    close_member(&in->known);
}

struct intake {
    struct lp_inputs *in;
    struct lp_span responses;
    bool is_bad;
};

/* The member of an object that a raw key names. */
static struct lp_span member_of(struct lp_span object, struct lp_span key)
{
    char room[KEY_MAX];
    size_t len = 0;
    (void)!lp_json_unescape(key, room, sizeof room, &len); /* it is one of ours: it fits */
    return lp_member(object, lp_span(room, len));
}

/* A question of the last round, and its answer if it has one. */
static void take_asked(void *ctx, struct lp_span key, struct lp_span mark)
{
    struct intake *take = ctx;
    struct lp_span answer = member_of(take->responses, key);
    if (answer.len)
        put_known(take->in, key, mark, answer);
}

static void take_known(void *ctx, struct lp_span key, struct lp_span entry)
{
    struct intake *take = ctx;
    put_known(take->in, key, lp_member(entry, LP_SPAN("of")), lp_member(entry, LP_SPAN("is")));
}

/* Without a state nothing says which question was meant; a name that the program gave does. */
static void take_unasked(void *ctx, struct lp_span key, struct lp_span answer)
{
    struct intake *take = ctx;
    put_known(take->in, key, LP_SPAN("\"\""), answer);
}

static void check_response(void *ctx, struct lp_span key, struct lp_span answer)
{
    struct intake *take = ctx;
    (void)key;
    take->is_bad |= answer.ptr[0] != '{';
}

static const char *why_not_opened(int err)
{
    if (err == LP_EUNKNOWN_KEY)
        return "requestState is sealed with a key that is not here; all replicas need one key file";
    if (err == LP_ENOMEM || err == LP_ELIMIT)
        return "out of memory";
    return "requestState was altered, or belongs to another request; ask again without it";
}

/* NULL when it was taken, else why not. */
static const char *take_state(struct lp_job *call, struct intake *take, struct lp_span token)
{
    struct lp_out purpose;
    struct lp_buf plain;
    uint64_t until_ms = 0;
    const char *why = NULL;
    lp_out_init(&purpose);
    lp_buf_init(&plain, LP_SEALED_MAX);
    write_purpose(call, &purpose);
    int err = purpose.failed ? LP_ENOMEM : LP_ESYNTAX;
    if (!purpose.failed && token.len > 2 && token.ptr[0] == '"')
        err = lp_sealed_open(&call->server->ring, lp_out_span(&purpose),
            lp_span(token.ptr + 1, token.len - 2), &plain);
    struct lp_span state = lp_buf_span(&plain);
    if (!err)
        (void)!lp_member_u64(state, LP_SPAN("until"), &until_ms);
    if (err)
        why = why_not_opened(err);
    else if (until_ms < call->server->wall_ms)
        why = "requestState has expired; ask again without it";
    else {
        /* The newest first: it is found first when a question was asked anew. */
        lp_members(lp_member(state, LP_SPAN("asked")), take_asked, take);
        lp_members(lp_member(state, LP_SPAN("known")), take_known, take);
    }
    lp_out_release(&purpose);
    lp_buf_release(&plain);
    return why;
}

const char *lp_inputs_begin(struct lp_job *call)
{
    struct lp_span state = lp_member(call->params, LP_SPAN("requestState"));
    struct lp_span responses = lp_member(call->params, LP_SPAN("inputResponses"));
    if (!state.len && !responses.len)
        return NULL;
    struct intake take = {.in = inputs_of(call), .responses = responses};
    if (!take.in)
        return "out of memory";
    take.is_bad = responses.len && responses.ptr[0] != '{';
    lp_members(responses, check_response, &take);
    if (take.is_bad)
        return "inputResponses must be an object of objects";
    const char *why = NULL;
    if (state.len)
        why = take_state(call, &take, state);
    else
        lp_members(responses, take_unasked, &take);
    return !why && take.in->known.failed ? "out of memory" : why;
}

/* --- asking in 2026-07-28 --- */

static bool can_elicit(struct lp_span can, struct lp_span params)
{
    struct lp_span elicitation = lp_member(can, LP_SPAN("elicitation"));
    bool is_url = lp_member_is(params, LP_SPAN("mode"), LP_SPAN("url"));
    bool has_url = lp_member(elicitation, LP_SPAN("url")).len > 0;
    bool has_form = lp_member(elicitation, LP_SPAN("form")).len > 0;
    return elicitation.len && (is_url ? has_url : has_form || !has_url);
}

static bool client_can(const struct lp_job *call, const struct lp_question *q)
{
    struct lp_span can = lp_modern_meta(call->params, "io.modelcontextprotocol/clientCapabilities");
    if (strcmp(q->method, "elicitation/create") == 0)
        return can_elicit(can, q->params);
    if (strcmp(q->method, "sampling/createMessage") == 0)
        return lp_member(can, LP_SPAN("sampling")).len > 0;
    return strcmp(q->method, "roots/list") == 0 && lp_member(can, LP_SPAN("roots")).len > 0;
}

/* Only these may be answered by a question. */
static bool may_ask(const struct lp_job *call)
{
    const struct lp_channel *ch = lp_channel_get(call->server, call->channel);
    return ch->method == LP_RPC_TOOLS_CALL || ch->method == LP_RPC_PROMPTS_GET ||
        ch->method == LP_RPC_RESOURCES_READ;
}

static void write_question(struct lp_out *out, const struct lp_question *q)
{
    lp_out_printf(out, "{\"method\":\"%s\",\"params\":", q->method);
    lp_out_put(out, q->params.len ? q->params : LP_SPAN("{}"));
    lp_out_str(out, "}");
}

/* The answer that is known to that question; empty: it has to be asked. */
static struct lp_span find_answer(
    const struct lp_inputs *in, const char *key, bool is_named, struct lp_span mark)
{
    struct lp_span entry = lp_member(lp_out_span(&in->known), lp_span_str(key));
    bool is_of_it = lp_member_is(entry, LP_SPAN("of"), mark) ||
        (is_named && lp_member_is(entry, LP_SPAN("of"), LP_SPAN("")));
    return is_of_it ? lp_member(entry, LP_SPAN("is")) : LP_SPAN("");
}

static void put_quoted_key(struct lp_out *out, const char *key)
{
    char quoted[KEY_MAX + 2];
    int n = snprintf(quoted, sizeof quoted, "\"%s\"", key);
    begin_member(out, lp_span(quoted, (size_t)n));
}

/* Notes one question: as answered, or as one to be asked. */
static void note_question(struct lp_inputs *in, const struct lp_question *q)
{
    char name[KEY_MAX];
    char mark[LP_SEALED_MARK_LEN];
    struct lp_out text;
    in->question_count++;
    snprintf(name, sizeof name, "q%u", in->question_count);
    const char *key = q->key ? q->key : name;
    lp_out_init(&text);
    write_question(&text, q);
    lp_sealed_mark(lp_out_span(&text), mark);
    struct lp_span answer = find_answer(in, key, q->key, lp_span(mark, sizeof mark));
    if (answer.len) {
        put_quoted_key(&in->result, key);
        lp_out_put(&in->result, answer);
        close_member(&in->result);
    } else {
        put_quoted_key(&in->asked, key);
        lp_out_put(&in->asked, lp_out_span(&text));
        close_member(&in->asked);
        put_quoted_key(&in->marks, key);
        lp_out_quote(&in->marks, lp_span(mark, sizeof mark));
        close_member(&in->marks);
    }
    in->failed |= text.failed;
    lp_out_release(&text);
}

static void clear_object(struct lp_out *out)
{
    lp_out_clear(out);
    lp_out_str(out, "{}");
}

static int ask_modern(struct lp_job *call, const struct lp_questions *all)
{
    struct lp_server *server = call->server;
    for (uint32_t i = 0; i < all->count; i++)
        if (!may_ask(call) || !client_can(call, &all->list[i]))
            return LP_EUNSUPPORTED;
    struct lp_inputs *in = inputs_of(call);
    if (!in)
        return LP_ENOMEM;
    clear_object(&in->asked);
    clear_object(&in->marks);
    clear_object(&in->result);
    for (uint32_t i = 0; i < all->count; i++)
        note_question(in, &all->list[i]);
    if (in->failed || in->asked.failed || in->marks.failed || in->result.failed)
        return LP_ENOMEM;
    in->is_single = all->is_single;
    in->timeout_us = all->timeout_us;
    in->until_ms = server->wall_ms + all->timeout_us / 1000;
    call->is_asking = true;
    lp_list_push_back(&server->ready, &call->ready);
    return LP_OK;
}

/* --- going on --- */

static void keep_value(void *ctx, struct lp_span key, struct lp_span value)
{
    (void)key;
    *(struct lp_span *)ctx = value;
}

/* All are answered: the answer, or the object of them. */
static void give_answers(struct lp_job *call)
{
    struct lp_inputs *in = call->inputs;
    struct lp_wake wake = {.kind = LP_WAKE_REPLY};
    if (in->is_single)
        lp_members(lp_out_span(&in->result), keep_value, &wake.result);
    else
        wake.result = lp_out_span(&in->result);
    call->is_asking = false;
    lp_task_changed(call->server, lp_channel_get(call->server, call->channel));
    lp_job_wake(call, &wake);
}

/* What has been answered, what is asked, and until when both are good. */
static int seal_state(const struct lp_job *call, struct lp_buf *text)
{
    struct lp_inputs *in = call->inputs;
    struct lp_out plain;
    struct lp_out purpose;
    unsigned char nonce[LP_SEALED_NONCE_BYTES];
    lp_out_init(&plain);
    lp_out_init(&purpose);
    lp_out_printf(&plain, "{\"until\":%llu,\"asked\":", (unsigned long long)in->until_ms);
    lp_out_put(&plain, lp_out_span(&in->marks));
    lp_out_str(&plain, ",\"known\":");
    lp_out_put(&plain, lp_out_span(&in->known));
    lp_out_str(&plain, "}");
    write_purpose(call, &purpose);
    lp_entropy_bytes(&call->server->entropy, nonce, sizeof nonce);
    int err = plain.failed || purpose.failed ? LP_ENOMEM : LP_OK;
    if (!err)
        err = lp_sealed_write(
            &call->server->ring, lp_out_span(&purpose), lp_out_span(&plain), nonce, text);
    lp_out_release(&plain);
    lp_out_release(&purpose);
    return err;
}

/* The request is answered by what it asks. */
static void send_questions(struct lp_job *call)
{
    struct lp_out result;
    struct lp_buf state;
    lp_out_init(&result);
    lp_buf_init(&state, LP_OUT_MAX);
    int err = seal_state(call, &state);
    lp_out_str(&result, "{\"resultType\":\"input_required\",\"inputRequests\":");
    lp_out_put(&result, lp_out_span(&call->inputs->asked));
    lp_out_str(&result, ",\"requestState\":\"");
    lp_out_put(&result, lp_buf_span(&state));
    lp_out_str(&result, "\"}");
    if (err == LP_ETOO_LONG)
        lp_job_error(call, INVALID_PARAMS, "the answers are over 256 KiB together");
    else {
        result.failed |= err != LP_OK;
        lp_job_finish(call, &result);
    }
    lp_out_release(&result);
    lp_buf_release(&state);
}

static bool is_answered(const struct lp_inputs *in)
{
    return in->asked.buf.len <= 2;
}

/* The question of a task waits there for its answer, as long as it may. */
static void wait_in_task(struct lp_job *call)
{
    struct lp_server *server = call->server;
    if (lp_heap_set(&server->timers, &call->timer, server->now_us + call->inputs->timeout_us))
        lp_job_error(call, -32603, "out of memory");
    else
        lp_task_changed(server, lp_channel_get(server, call->channel));
}

void lp_inputs_go_on(struct lp_job *call)
{
    if (is_answered(call->inputs))
        give_answers(call);
    else if (lp_channel_get(call->server, call->channel)->task)
        wait_in_task(call);
    else
        send_questions(call);
}

struct update {
    struct lp_inputs *in;
    struct lp_span responses;
    struct lp_out left; /* what is still asked */
};

static void update_one(void *ctx, struct lp_span key, struct lp_span question)
{
    struct update *u = ctx;
    struct lp_span answer = member_of(u->responses, key);
    bool is_one = answer.len && answer.ptr[0] == '{';
    struct lp_out *to = is_one ? &u->in->result : &u->left;
    begin_member(to, key);
    lp_out_put(to, is_one ? answer : question);
    close_member(to);
}

void lp_inputs_update(struct lp_job *call, struct lp_span responses)
{
    struct lp_inputs *in = call->inputs;
    struct update u = {.in = in, .responses = responses};
    begin_object(&u.left);
    lp_members(lp_out_span(&in->asked), update_one, &u);
    lp_out_release(&in->asked);
    in->asked = u.left;
    if (in->asked.failed || in->result.failed)
        lp_job_error(call, -32603, "out of memory");
    else if (is_answered(in)) {
        lp_heap_cancel(&call->server->timers, &call->timer);
        give_answers(call);
    } else {
        lp_task_changed(call->server, lp_channel_get(call->server, call->channel));
    }
}

/* --- several questions to a session, one after the other --- */

struct next {
    uint32_t left;
    struct lp_span key;
    struct lp_span question;
};

static void find_next(void *ctx, struct lp_span key, struct lp_span question)
{
    struct next *next = ctx;
    if (next->question.len || next->left-- > 0)
        return;
    next->key = key;
    next->question = question;
}

static struct next next_question(const struct lp_inputs *in)
{
    struct next next = {.left = in->answered_count};
    lp_members(lp_out_span(&in->asked), find_next, &next);
    return next;
}

static int ask_next(struct lp_job *call)
{
    char method[KEY_MAX];
    size_t len = 0;
    struct next next = next_question(call->inputs);
    struct lp_span token = lp_member(next.question, LP_SPAN("method"));
    int err = lp_json_unescape(token, method, sizeof method - 1, &len);
    method[len] = '\0';
    struct lp_question q = {
        .method = method, .params = lp_member(next.question, LP_SPAN("params"))};
    return err ? err : lp_job_ask_session(call, &q, call->inputs->timeout_us);
}

static int ask_in_turn(struct lp_job *call, const struct lp_questions *all)
{
    struct lp_inputs *in = inputs_of(call);
    if (!in)
        return LP_ENOMEM;
    clear_object(&in->asked);
    clear_object(&in->result);
    for (uint32_t i = 0; i < all->count; i++) {
        int err = lp_job_may_ask_session(call, all->list[i].method);
        if (err)
            return err;
        put_quoted_key(&in->asked, all->list[i].key);
        write_question(&in->asked, &all->list[i]);
        close_member(&in->asked);
    }
    if (in->asked.failed || in->result.failed)
        return LP_ENOMEM;
    in->answered_count = 0;
    in->timeout_us = all->timeout_us;
    in->is_in_turn = true;
    return ask_next(call);
}

bool lp_inputs_reply(struct lp_job *call, const struct lp_wake *wake)
{
    struct lp_inputs *in = call->inputs;
    if (!in || !in->is_in_turn)
        return false;
    struct lp_wake last = *wake;
    if (wake->kind == LP_WAKE_REPLY && wake->result.len) {
        begin_member(&in->result, next_question(in).key);
        lp_out_put(&in->result, wake->result);
        close_member(&in->result);
        in->answered_count++;
        last.result = lp_out_span(&in->result);
        if (next_question(in).question.len && !in->result.failed && !ask_next(call))
            return true;
        if (next_question(in).question.len || in->result.failed)
            last = (struct lp_wake){.kind = LP_WAKE_REPLY,
                .error = LP_SPAN("{\"code\":-32603,\"message\":\"the next question failed\"}")};
    }
    in->is_in_turn = false;
    lp_job_wake(call, &last);
    return true;
}

/* --- the handler's side --- */

int lp_job_ask(struct lp_job *call, const char *method, struct lp_span params, uint64_t timeout_us)
{
    struct lp_question q = {.method = method, .params = params};
    struct lp_questions one = {&q, 1, timeout_us, true};
    LP_ASSERT(lp_job_may_wait(call));
    return call->is_modern ? ask_modern(call, &one) : lp_job_ask_session(call, &q, timeout_us);
}

int lp_job_ask_all(
    struct lp_job *call, const struct lp_question *questions, uint32_t count, uint64_t timeout_us)
{
    struct lp_questions all = {questions, count, timeout_us, false};
    LP_ASSERT(lp_job_may_wait(call) && count > 0);
    for (uint32_t i = 0; i < count; i++)
        LP_ASSERT(questions[i].key && strlen(questions[i].key) < KEY_MAX);
    return call->is_modern ? ask_modern(call, &all) : ask_in_turn(call, &all);
}
