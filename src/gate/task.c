/* Names of tasks (requirements [E2]; wire document 8.2): a task lives at the replica that began it,
 * so its name is sealed like a session's id on the way out, and opened on the way in, where it
 * stands twice: in the body, and as Mcp-Name in the head.
 *
 * Only an answer that can name a task is read for it: that of a tool, when its client takes tasks,
 * and that of tasks/get. All other bytes of it stay as they are. What is no name of ours, as from
 * before Limpet was there, goes to any replica, and so does what asks for it. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "wire/json.h"
#include "wire/member.h"

enum { NAME_MAX = LP_TICKET_TEXT_MAX };

#define META "io.modelcontextprotocol/"

/* --- on the way in --- */

static bool is_about_a_task(enum lp_rpc_method method)
{
    return method == LP_RPC_TASKS_GET || method == LP_RPC_TASKS_UPDATE ||
        method == LP_RPC_TASKS_CANCEL;
}

static bool client_takes_tasks(struct lp_span body)
{
    struct lp_span meta = lp_member(lp_member(body, LP_SPAN("params")), LP_SPAN("_meta"));
    struct lp_span can = lp_member(meta, LP_SPAN(META "clientCapabilities"));
    return lp_member(lp_member(can, LP_SPAN("extensions")), LP_SPAN(META "tasks")).len > 0;
}

/* Fit to stand in a head; what begins like the encoded form of a value would be taken for it. */
static bool is_plain(struct lp_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] < 0x21 || name.ptr[i] > 0x7E)
            return false;
    return name.len && name.len <= NAME_MAX && !lp_span_starts(name, LP_SPAN("=?"));
}

static void open_name(struct lp_engine *e, struct lp_exchange *x)
{
    char room[NAME_MAX];
    size_t len = 0;
    if (lp_json_unescape(x->env.task_id, room, sizeof room, &len) ||
        !lp_id_may_be_ours(e, lp_span(room, len)))
        return;
    x->is_task = true;
    x->owner = lp_span(NULL, 0);
    x->id_state = LP_ID_FORGED;
    char *kept = is_plain(lp_span(room, len)) ? lp_arena_alloc(&x->arena, len) : NULL;
    if (!kept)
        return;
    memcpy(kept, room, len);
    lp_id_open(e, x, LP_TICKET_TASK, lp_span(kept, len));
}

void lp_task_read(struct lp_engine *e, struct lp_exchange *x)
{
    if (x->era != LP_ERA_MODERN)
        return;
    x->sees_tasks = x->env.method == LP_RPC_TASKS_GET ||
        (x->env.method == LP_RPC_TOOLS_CALL && client_takes_tasks(lp_buf_span(&x->body)));
    if (is_about_a_task(x->env.method) && x->env.task_id.len)
        open_name(e, x);
}

/* The string token `name` of `text`, which is a part of it, replaced. */
static int replace(struct lp_buf *out, struct lp_span text, struct lp_span name, struct lp_span by)
{
    size_t at = (size_t)(name.ptr - text.ptr);
    int err = lp_buf_append(out, lp_span(text.ptr, at));
    if (!err)
        err = lp_json_quote(out, by);
    return err ? err : lp_buf_append(out, lp_span_from(text, at + name.len));
}

int lp_task_unwrap(struct lp_exchange *x)
{
    struct lp_buf body;
    struct lp_span as_sent = x->env.task_id;
    if (x->is_unwrapped)
        return LP_OK;
    lp_buf_init(&body, x->body.max + NAME_MAX);
    int err = replace(&body, lp_buf_span(&x->body), as_sent, x->ticket.upstream_id);
    if (!err)
        err = lp_arena_dup(&x->arena, as_sent, &x->env.task_id);
    if (err) {
        lp_buf_release(&body);
        return err;
    }
    x->is_unwrapped = true;
    lp_buf_release(&x->body);
    x->body = body;
    return LP_OK;
}

/* --- on the way out --- */

static bool is_json(const struct lp_kept_head *head)
{
    struct lp_span rest;
    struct lp_span type = lp_kept_value(head, LP_FIELD_CONTENT_TYPE);
    return lp_span_ieq(lp_span_trim(lp_span_split(type, ';', &rest)), LP_SPAN("application/json"));
}

bool lp_task_is_awaited(const struct lp_exchange *x)
{
    return x->sees_tasks && x->verdict.kind != LP_VERDICT_FORWARD_PEER;
}

bool lp_task_is_held(const struct lp_exchange *x, const struct lp_kept_head *from)
{
    return lp_task_is_awaited(x) && from->status == 200 && is_json(from);
}

/* What makes a task is short; what tells of one has its result in it. */
size_t lp_task_held_max(const struct lp_exchange *x)
{
    return x->env.method == LP_RPC_TASKS_GET ? LP_TASK_ANSWER_MAX : LP_SSE_HOLD_MAX;
}

/* The name in a message, or an empty span. Most have none, and are not read any closer. */
static struct lp_span name_in(struct lp_span message)
{
    static const struct lp_span KEY = {"\"taskId\"", 8};
    if (lp_span_search(message, KEY) == message.len || !lp_json_is_object(message))
        return lp_span(NULL, 0);
    struct lp_span result = lp_member(message, LP_SPAN("result"));
    struct lp_span name = lp_member(result, LP_SPAN("taskId"));
    return name.len && name.ptr[0] == '"' ? name : lp_span(NULL, 0);
}

/* Who asked for a task by a name sees that name again. */
static int seal_name(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span token, struct lp_span *ret)
{
    char room[LP_TICKET_UPSTREAM_ID_MAX];
    size_t len = 0;
    int err = lp_json_unescape(token, room, sizeof room, &len);
    if (err)
        return err;
    if (!is_plain(lp_span(room, len)))
        return LP_ESYNTAX;
    return lp_seal(e, x, LP_TICKET_TASK, lp_span(room, len), ret);
}

static int name_to_show(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span token, struct lp_span *ret)
{
    char *room;
    size_t len;
    if (!x->is_task)
        return seal_name(e, x, token, ret);
    room = lp_arena_alloc(&x->arena, x->env.task_id.len);
    if (!room)
        return LP_ENOMEM;
    int err = lp_json_unescape(x->env.task_id, room, x->env.task_id.len, &len);
    *ret = lp_span(room, len);
    return err;
}

int lp_task_show(
    struct lp_engine *e, struct lp_exchange *x, struct lp_span message, struct lp_buf *out)
{
    struct lp_span shown;
    struct lp_span token = name_in(message);
    bool is_ours = x->is_task || x->env.method == LP_RPC_TOOLS_CALL;
    if (!token.len || !is_ours)
        return LP_ENOT_FOUND;
    lp_buf_init(out, message.len + NAME_MAX);
    int err = name_to_show(e, x, token, &shown);
    if (!err)
        err = replace(out, message, token, shown);
    if (err)
        lp_buf_release(out);
    return err;
}

enum lp_reason lp_task_reason(int err)
{
    switch (err) {
    case LP_ETOO_LONG:
        return LP_REASON_upstream_id_too_long;
    case LP_ESYNTAX:
        return LP_REASON_upstream_id_bad;
    default:
        return LP_REASON_out_of_memory;
    }
}

enum lp_reason lp_task_rewrite(struct lp_engine *e, struct lp_exchange *x)
{
    struct lp_buf own;
    int err = lp_task_show(e, x, lp_buf_span(&x->held), &own);
    if (err == LP_ENOT_FOUND)
        return LP_REASON_none;
    if (err)
        return lp_task_reason(err);
    lp_buf_release(&x->held);
    x->held = own;
    x->answer->body = LP_BODY_LENGTH;
    x->answer->body_bytes = own.len;
    return LP_REASON_none;
}
