/* Calls as tasks: the extension io.modelcontextprotocol/tasks of 2026-07-28 (wire document 8.2).
 *
 * A call that becomes a task answers its request with the task's name and goes on in its channel,
 * which nobody carries any more; what it says at its end is kept until the task's time is over. So
 * leaving the connection ends nothing, tasks/cancel does. A task lives in the memory of this
 * process and is found by its principal alone. Its name begins with the owner's id, where there is
 * one, so a request that comes to another owner is replayed to this one (http.c). A question waits
 * in the task for tasks/update. */
#include "base/error.h"
#include "base/time.h"
#include "serve/inputs.h"
#include "serve/server_priv.h"
#include "wire/member.h"

#define EXTENSION "io.modelcontextprotocol/tasks"

enum { INVALID_PARAMS = -32602, POLL_MS = 1000 };

/* --- birth and death --- */

static struct lp_task *get_task(const struct lp_server *server, lp_id id)
{
    return lp_slab_get(&server->tasks, id);
}

void lp_task_free(struct lp_server *server, lp_id id)
{
    struct lp_task *task = get_task(server, id);
    struct lp_channel *ch = lp_channel_get(server, task->channel);
    task->channel = 0;
    if (ch) {
        ch->task = 0;
        lp_channel_kill(server, ch);
    }
    lp_heap_cancel(&server->timers, &task->timer);
    lp_map_remove(&server->task_keys, task->key);
    server->task_bytes -= task->answer.buf.len;
    lp_out_release(&task->answer);
    lp_slab_free(&server->tasks, id);
}

void lp_task_free_all(struct lp_server *server)
{
    uint32_t cursor = 0;
    lp_id id;
    while (lp_slab_next(&server->tasks, &cursor, &id))
        lp_task_free(server, id);
}

static struct lp_task *new_task(struct lp_job *call, uint64_t ttl_ms)
{
    lp_id id;
    struct lp_server *server = call->server;
    struct lp_task *task = lp_slab_new(&server->tasks, &id);
    if (!task)
        return NULL;
    task->id = id;
    task->ttl_ms = ttl_ms;
    task->principal = call->principal;
    task->created_ms = task->changed_ms = server->wall_ms;
    task->timer = (struct lp_timer){.kind = LP_TIMER_SERVER_TASK, .owner = id};
    lp_out_init(&task->answer);
    lp_entropy_bytes(&server->entropy, (unsigned char *)&task->key, sizeof task->key);
    task->text_len = lp_session_id_mint(server->args.owner, &task->key, task->text);
    if (!lp_map_put(&server->task_keys, task->key, id) &&
        !lp_heap_set(&server->timers, &task->timer, server->now_us + ttl_ms * 1000))
        return task;
    lp_task_free(server, id);
    return NULL;
}

/* --- what is told of one --- */

static void put_time(struct lp_out *out, const char *name, uint64_t wall_ms)
{
    lp_out_printf(out, ",\"%s\":\"", name);
    out->failed |= lp_time_write(&out->buf, wall_ms) != LP_OK;
    lp_out_str(out, "\"");
}

/* The call that a task is, while it works. */
static struct lp_job *job_of(const struct lp_server *server, const struct lp_task *task)
{
    struct lp_channel *ch = lp_channel_get(server, task->channel);
    bool has_one = ch && !lp_list_empty(&ch->calls);
    return has_one ? LP_CONTAINER(ch->calls.next, struct lp_job, of_channel) : NULL;
}

static const char *status_of(const struct lp_server *server, const struct lp_task *task)
{
    struct lp_job *call = job_of(server, task);
    if (call)
        return call->is_asking ? "input_required" : "working";
    if (task->is_cancelled)
        return "cancelled";
    return lp_member(lp_out_span(&task->answer), LP_SPAN("result")).len ? "completed" : "failed";
}

static void put_task(const struct lp_server *server, const struct lp_task *task, struct lp_out *out)
{
    lp_out_str(out, "\"taskId\":");
    lp_out_quote(out, lp_span(task->text, task->text_len));
    lp_out_printf(out, ",\"status\":\"%s\",\"ttlMs\":%llu,\"pollIntervalMs\":%d",
        status_of(server, task), (unsigned long long)task->ttl_ms, POLL_MS);
    put_time(out, "createdAt", task->created_ms);
    put_time(out, "lastUpdatedAt", task->changed_ms);
}

static void put_member(struct lp_out *out, const char *name, struct lp_span value)
{
    if (!value.len)
        return;
    lp_out_printf(out, ",\"%s\":", name);
    lp_out_put(out, value);
}

void lp_task_write(const struct lp_server *server, const struct lp_task *task, struct lp_out *out)
{
    struct lp_span answer = lp_out_span(&task->answer);
    struct lp_job *call = job_of(server, task);
    put_task(server, task, out);
    put_member(out, "result", lp_member(answer, LP_SPAN("result")));
    put_member(out, "error", lp_member(answer, LP_SPAN("error")));
    if (call && call->is_asking)
        put_member(out, "inputRequests", lp_out_span(&call->inputs->asked));
}

void lp_task_changed(struct lp_server *server, const struct lp_channel *ch)
{
    struct lp_task *task = get_task(server, ch->task);
    if (!task)
        return;
    task->changed_ms = server->wall_ms;
    lp_listen_task_changed(server, task);
}

/* --- becoming one --- */

bool lp_task_is_taken(struct lp_span params)
{
    struct lp_span can = lp_modern_meta(params, "io.modelcontextprotocol/clientCapabilities");
    return lp_member(lp_member(can, LP_SPAN("extensions")), LP_SPAN(EXTENSION)).len > 0;
}

int lp_job_task(struct lp_job *call, uint32_t ttl_ms)
{
    struct lp_server *server = call->server;
    struct lp_channel *ch = lp_channel_get(server, call->channel);
    struct lp_request *r = lp_request_get(server, ch->request);
    bool may = call->is_modern && server->offer->has_tasks && r && !ch->is_sse &&
        ch->method == LP_RPC_TOOLS_CALL && lp_task_is_taken(call->params);
    if (!may)
        return LP_EUNSUPPORTED;
    LP_ASSERT(ttl_ms > 0);
    struct lp_task *task = new_task(call, ttl_ms);
    if (!task)
        return LP_ELIMIT;
    struct lp_out result;
    task->channel = ch->id;
    ch->task = task->id;
    lp_out_init(&result);
    lp_out_str(&result, "{\"resultType\":\"task\",");
    put_task(server, task, &result);
    lp_out_str(&result, "}");
    lp_rpc_begin_answer(&r->out, call->message_id);
    lp_out_str(&r->out, ",\"result\":");
    lp_modern_write_result(server, ch, lp_out_span(&result), &r->out);
    lp_out_str(&r->out, "}");
    r->out.failed |= result.failed;
    lp_out_release(&result);
    lp_channel_leave(server, ch);
    lp_respond_json(server, r, 200);
    return LP_OK;
}

void lp_task_finish(struct lp_server *server, struct lp_channel *ch)
{
    struct lp_task *task = get_task(server, ch->task);
    bool fits = !ch->out.failed && server->task_bytes + ch->out.buf.len <= LP_SERVER_TASKS_BYTES;
    task->channel = 0;
    task->changed_ms = server->wall_ms;
    if (fits) {
        task->answer = ch->out;
        lp_out_init(&ch->out);
    } else {
        lp_rpc_write_error(&task->answer, LP_SPAN(""), -32603,
            "the result is too large to be kept, or there is no memory for it");
    }
    server->task_bytes += task->answer.buf.len;
    lp_listen_task_changed(server, task);
}

/* --- the three methods --- */

static void acknowledge(struct lp_server *server, const struct lp_message *m)
{
    lp_rpc_result(server, m->channel, m->env->id, LP_SPAN("{}"));
}

static void tell(struct lp_server *server, const struct lp_message *m, const struct lp_task *task)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{");
    lp_task_write(server, task, &out);
    lp_out_str(&out, "}");
    if (out.failed)
        lp_rpc_error(server, m->channel, m->env->id, -32603, "out of memory");
    else
        lp_rpc_result(server, m->channel, m->env->id, lp_out_span(&out));
    lp_out_release(&out);
}

static void update(struct lp_server *server, const struct lp_message *m, struct lp_task *task)
{
    struct lp_job *call = job_of(server, task);
    struct lp_span params = lp_member(m->text, LP_SPAN("params"));
    struct lp_span responses = lp_member(params, LP_SPAN("inputResponses"));
    if (!responses.len || responses.ptr[0] != '{') {
        lp_rpc_error(
            server, m->channel, m->env->id, INVALID_PARAMS, "inputResponses must be an object");
        return;
    }
    acknowledge(server, m);
    task->changed_ms = server->wall_ms;
    if (call && call->is_asking)
        lp_inputs_update(call, responses);
}

static void cancel(struct lp_server *server, const struct lp_message *m, struct lp_task *task)
{
    struct lp_channel *ch = lp_channel_get(server, task->channel);
    if (ch) {
        task->is_cancelled = true;
        task->changed_ms = server->wall_ms;
        task->channel = 0;
        ch->task = 0;
        lp_channel_kill(server, ch);
        lp_listen_task_changed(server, task);
    }
    acknowledge(server, m);
}

struct lp_task *lp_task_find(
    struct lp_server *server, struct lp_span token, struct lp_key principal)
{
    char room[LP_SESSION_ID_MAX];
    size_t len;
    struct lp_key key;
    struct lp_span owner;
    if (!lp_span_starts(token, LP_SPAN("\"")) || lp_json_unescape(token, room, sizeof room, &len) ||
        lp_session_id_judge(server->args.owner, lp_span(room, len), &key, &owner) != LP_WHOSE_OURS)
        return NULL;
    struct lp_task *task = get_task(server, lp_map_get(&server->task_keys, key));
    return task && lp_key_eq(task->principal, principal) ? task : NULL;
}

bool lp_task_message(struct lp_server *server, const struct lp_message *m)
{
    enum lp_rpc_method method = m->env->method;
    bool is_one = method == LP_RPC_TASKS_GET || method == LP_RPC_TASKS_UPDATE ||
        method == LP_RPC_TASKS_CANCEL;
    if (!is_one || !server->offer->has_tasks)
        return false;
    struct lp_task *task = lp_task_find(server, m->env->task_id, m->principal);
    if (!lp_task_is_taken(lp_member(m->text, LP_SPAN("params"))))
        lp_modern_lacks(server, m->channel, m->env->id, "{\"extensions\":{\"" EXTENSION "\":{}}}");
    else if (!task)
        lp_rpc_error(server, m->channel, m->env->id, INVALID_PARAMS, "Unknown task");
    else if (method == LP_RPC_TASKS_GET)
        tell(server, m, task);
    else if (method == LP_RPC_TASKS_UPDATE)
        update(server, m, task);
    else
        cancel(server, m, task);
    return true;
}
