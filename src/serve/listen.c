/* subscriptions/listen (wire document 7.8): event streams that nobody answers, in the place of a
 * session's GET stream.
 *
 * What is granted is told first and never changes: kinds of lists that this server changes,
 * addresses of resources that it has, and names of the client's own tasks. Every message carries
 * the id of the request. A stream has no history: who reads too slowly loses the oldest events, who
 * comes again asks for the lists anew. When the server stops each gets its result, so that the end
 * can be told from a broken connection (cases LIF-05). */
#include "serve/server_priv.h"
#include "serve/uris.h"
#include "wire/member.h"

#define ID_KEY "io.modelcontextprotocol/subscriptionId"

enum {
    INVALID_PARAMS = -32602,
    INTERNAL = -32603,
    NOT_ACCEPTABLE = -32000,
    BODY_MAX = 65536 /* it is held as long as the stream is open */
};

static const struct {
    const char *filter;
    const char *method;
} LISTS[] = {
    [LP_LIST_TOOLS] = {"toolsListChanged", "notifications/tools/list_changed"},
    [LP_LIST_RESOURCES] = {"resourcesListChanged", "notifications/resources/list_changed"},
    [LP_LIST_PROMPTS] = {"promptsListChanged", "notifications/prompts/list_changed"},
};

enum { LIST_COUNT = sizeof LISTS / sizeof *LISTS };

/* --- what is granted --- */

static bool is_offered(const struct lp_offer *offer, enum lp_list_kind kind)
{
    const uint32_t counts[] = {
        [LP_LIST_TOOLS] = offer->tool_count,
        [LP_LIST_RESOURCES] = offer->resource_count,
        [LP_LIST_PROMPTS] = offer->prompt_count,
    };
    return offer->lists_change && counts[kind] > 0;
}

struct grant {
    struct lp_server *server;
    struct lp_listen *listen;
    struct lp_key principal;
};

/* An address that is not known, or for which there is no room, is not granted. */
static void take_uri(void *ctx, struct lp_span token)
{
    const struct grant *g = ctx;
    char room[LP_SERVER_URI_MAX];
    size_t len;
    if (token.ptr[0] != '"' || lp_json_unescape(token, room, sizeof room, &len))
        return;
    struct lp_span uri = lp_span(room, len);
    bool is_known =
        lp_offer_find_resource(g->server->offer, uri) && lp_span_find(uri, '\0') == uri.len;
    if (is_known)
        (void)!lp_uris_add(&g->listen->uris, uri);
}

/* The same for a task, whose name is told to its own client only. */
static void take_task(void *ctx, struct lp_span token)
{
    const struct grant *g = ctx;
    const struct lp_task *task = lp_task_find(g->server, token, g->principal);
    if (task)
        (void)!lp_uris_add(&g->listen->tasks, lp_span(task->text, task->text_len));
}

static void take_filter(struct grant *grant, struct lp_span filter, struct lp_span params)
{
    struct lp_server *server = grant->server;
    struct lp_listen *listen = grant->listen;
    for (uint32_t kind = 0; kind < LIST_COUNT; kind++) {
        struct lp_span wish = lp_member(filter, lp_span_str(LISTS[kind].filter));
        if (lp_span_eq(wish, LP_SPAN("true")) && is_offered(server->offer, kind))
            listen->kinds |= 1u << kind;
    }
    struct lp_span uris = lp_member(filter, LP_SPAN("resourceSubscriptions"));
    if (server->offer->has_subscriptions && uris.len && uris.ptr[0] == '[')
        lp_elements(uris, take_uri, grant);
    struct lp_span tasks = lp_member(filter, LP_SPAN("taskIds"));
    if (server->offer->has_tasks && lp_task_is_taken(params) && tasks.len && tasks.ptr[0] == '[')
        lp_elements(tasks, take_task, grant);
}

/* --- messages --- */

static void send_scratch(struct lp_server *server, const struct lp_listen *listen)
{
    struct lp_channel *ch = lp_channel_get(server, listen->channel);
    lp_out_str(&server->scratch, "\"_meta\":{\"" ID_KEY "\":");
    lp_out_put(&server->scratch, listen->message_id);
    lp_out_str(&server->scratch, "}}}");
    if (!server->scratch.failed)
        (void)lp_channel_event(server, ch, lp_out_span(&server->scratch));
}

static void begin_message(struct lp_server *server, const char *method)
{
    lp_out_clear(&server->scratch);
    lp_out_printf(&server->scratch, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{", method);
}

static void put_set(struct lp_out *out, const char *name, struct lp_span uris)
{
    const char *before = "";
    lp_out_printf(out, "\"%s\":[", name);
    while (uris.len) {
        lp_out_str(out, before);
        lp_out_quote(out, lp_span_split(uris, '\0', &uris));
        before = ",";
    }
    lp_out_str(out, "]");
}

static void acknowledge(struct lp_server *server, const struct lp_listen *listen)
{
    struct lp_out *out = &server->scratch;
    const char *before = "";
    begin_message(server, "notifications/subscriptions/acknowledged");
    lp_out_str(out, "\"notifications\":{");
    for (uint32_t kind = 0; kind < LIST_COUNT; kind++) {
        if (!(listen->kinds & 1u << kind))
            continue;
        lp_out_printf(out, "%s\"%s\":true", before, LISTS[kind].filter);
        before = ",";
    }
    if (listen->uris.len) {
        lp_out_str(out, before);
        put_set(out, "resourceSubscriptions", lp_buf_span(&listen->uris));
        before = ",";
    }
    if (listen->tasks.len) {
        lp_out_str(out, before);
        put_set(out, "taskIds", lp_buf_span(&listen->tasks));
    }
    lp_out_str(out, "},");
    send_scratch(server, listen);
}

/* --- begin and end --- */

static void refuse(struct lp_server *server, const struct lp_message *m, int code, const char *text)
{
    lp_rpc_error(server, m->channel, m->env->id, code, text);
}

/* Its result, and with that the stream's end. */
static void end(struct lp_server *server, const struct lp_listen *listen)
{
    struct lp_out out;
    lp_id channel = listen->channel;
    lp_out_init(&out);
    lp_out_str(&out, "{\"_meta\":{\"" ID_KEY "\":");
    lp_out_put(&out, listen->message_id);
    lp_out_str(&out, "}}");
    lp_rpc_result(server, channel, listen->message_id, lp_out_span(&out));
    lp_out_release(&out);
    lp_channel_release(server, channel);
}

void lp_listen_begin(struct lp_server *server, const struct lp_message *m)
{
    lp_id id;
    struct lp_channel *ch = lp_channel_get(server, m->channel);
    struct lp_span params = lp_member(m->text, LP_SPAN("params"));
    struct lp_span filter = lp_member(params, LP_SPAN("notifications"));
    if (!ch->wants_sse) {
        ch->status = 406;
        refuse(server, m, NOT_ACCEPTABLE, "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    if (!filter.len || filter.ptr[0] != '{' || m->text.len > BODY_MAX) {
        refuse(server, m, INVALID_PARAMS, "notifications must be an object, of at most 64 KiB");
        return;
    }
    struct lp_listen *listen = lp_slab_new(&server->listens, &id);
    if (!listen) {
        refuse(server, m, INTERNAL, "too many subscriptions are open; end one of them");
        return;
    }
    listen->channel = ch->id;
    listen->message_id = m->env->id;
    lp_buf_init(&listen->uris, LP_SERVER_SUBSCRIPTIONS_BYTES);
    lp_buf_init(&listen->tasks, LP_SERVER_SUBSCRIPTIONS_BYTES);
    take_filter(&(struct grant){server, listen, m->principal}, filter, params);
    ch->listen = id;
    ch->open++;
    acknowledge(server, listen);
    if (server->stopping)
        end(server, listen);
}

void lp_listen_forget(struct lp_server *server, lp_id id)
{
    struct lp_listen *listen = lp_slab_get(&server->listens, id);
    if (!listen)
        return;
    lp_buf_release(&listen->uris);
    lp_buf_release(&listen->tasks);
    lp_slab_free(&server->listens, id);
}

void lp_listen_end_all(struct lp_server *server)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_listen *l; (l = lp_slab_next(&server->listens, &cursor, &id));)
        end(server, l);
}

/* --- what is told --- */

void lp_listen_list_changed(struct lp_server *server, enum lp_list_kind kind)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_listen *l; (l = lp_slab_next(&server->listens, &cursor, &id));) {
        if (!(l->kinds & 1u << kind))
            continue;
        begin_message(server, LISTS[kind].method);
        send_scratch(server, l);
    }
}

void lp_listen_resource_updated(struct lp_server *server, struct lp_span uri)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_listen *l; (l = lp_slab_next(&server->listens, &cursor, &id));) {
        if (!lp_uris_has(&l->uris, uri))
            continue;
        begin_message(server, "notifications/resources/updated");
        lp_out_str(&server->scratch, "\"uri\":");
        lp_out_quote(&server->scratch, uri);
        lp_out_str(&server->scratch, ",");
        send_scratch(server, l);
    }
}

void lp_listen_task_changed(struct lp_server *server, const struct lp_task *task)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_listen *l; (l = lp_slab_next(&server->listens, &cursor, &id));) {
        if (!lp_uris_has(&l->tasks, lp_span(task->text, task->text_len)))
            continue;
        begin_message(server, "notifications/tasks");
        lp_task_write(server, task, &server->scratch);
        lp_out_str(&server->scratch, ",");
        send_scratch(server, l);
    }
}
