/* What the host says, line by line, and what is said to it (call/bridge.h).
 *
 * The ids of the host are given back byte for byte. Requests of the server get numbers of the
 * bridge's own, because two sessions, one after the other, may use the same ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/bridge_priv.h"
#include "mcp/reply.h"
#include "wire/member.h"

enum {
    MESSAGE_MAX = LP_CLIENT_MESSAGE_MAX + 4096,
    BODY_SHOWN_MAX = 2048,
    CODE_INVALID = -32600,
    CODE_PARSE = -32700,
    CODE_INTERNAL = -32603,
    CODE_VERSION = -32022,
    CODE_STATE = -32000,
};

/* --- to the host --- */

/* Sends head, body and tail as one message. */
static void send_parts(struct lp_bridge *b, const struct lp_span *parts, size_t count)
{
    struct lp_buf out;
    lp_buf_init(&out, MESSAGE_MAX);
    int err = LP_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = lp_buf_append(&out, parts[i]);
    if (err)
        lp_bridge_say(b, "a message for the host was lost: %s", lp_error_sentence(err));
    else
        lp_lines_send(&b->lines, lp_buf_span(&out));
    lp_buf_release(&out);
}

static void send_answer(
    struct lp_bridge *b, struct lp_span id, struct lp_span word, struct lp_span value)
{
    const struct lp_span parts[] = {LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":"),
        id.len ? id : LP_SPAN("null"), LP_SPAN(",\""), word, LP_SPAN("\":"), value, LP_SPAN("}")};
    send_parts(b, parts, sizeof parts / sizeof *parts);
}

void lp_bridge_send_result(struct lp_bridge *b, struct lp_span id, struct lp_span result)
{
    send_answer(b, id, LP_SPAN("result"), result);
}

void lp_bridge_send_error(struct lp_bridge *b, struct lp_span id, struct lp_span error)
{
    send_answer(b, id, LP_SPAN("error"), error);
}

void lp_bridge_refuse(
    struct lp_bridge *b, struct lp_span id, int code, struct lp_span sentence, struct lp_span data)
{
    struct lp_buf error;
    lp_buf_init(&error, MESSAGE_MAX);
    int err = lp_buf_printf(&error, "{\"code\":%d,\"message\":", code);
    if (!err)
        err = lp_json_quote(&error, sentence);
    if (!err && data.len)
        err = lp_buf_printf(&error, ",\"data\":%.*s", (int)data.len, data.ptr);
    if (!err)
        err = lp_buf_append(&error, LP_SPAN("}"));
    if (err)
        lp_bridge_say(b, "an error for the host was lost: %s", lp_error_sentence(err));
    else
        lp_bridge_send_error(b, id, lp_buf_span(&error));
    lp_buf_release(&error);
}

static int write_data(struct lp_buf *data, const struct lp_client_failure *why)
{
    struct lp_span body = why->body;
    if (body.len > BODY_SHOWN_MAX)
        body.len = BODY_SHOWN_MAX;
    int err = lp_buf_printf(data, "{\"status\":%u,\"body\":", why->status);
    if (!err)
        err = lp_json_quote(data, body);
    return err ? err : lp_buf_append(data, LP_SPAN("}"));
}

void lp_bridge_refuse_failed(
    struct lp_bridge *b, struct lp_span id, const struct lp_client_failure *why, const char *more)
{
    struct lp_buf sentence;
    struct lp_buf data;
    lp_buf_init(&sentence, MESSAGE_MAX);
    lp_buf_init(&data, MESSAGE_MAX);
    int err = lp_buf_printf(&sentence, "%.*s%s", (int)why->sentence.len, why->sentence.ptr, more);
    if (err || (why->status && write_data(&data, why)))
        lp_buf_clear(&data);
    struct lp_span words = sentence.len ? lp_buf_span(&sentence) : why->sentence;
    lp_bridge_refuse(b, id, CODE_INTERNAL, words, lp_buf_span(&data));
    lp_buf_release(&sentence);
    lp_buf_release(&data);
}

/* --- welcome: the answer to the request that opened the session --- */

static struct lp_span member_or(struct lp_span json, struct lp_span key, struct lp_span other)
{
    struct lp_span value = lp_member(json, key);
    return value.len ? value : other;
}

/* An initialize result out of a discover result (wire document 14.1). */
static int write_initialize_result(
    struct lp_buf *out, const struct lp_bridge *b, const struct lp_client_info *info)
{
    struct lp_span version =
        lp_version_is_legacy(b->offered) ? b->offered : LP_SPAN(LP_VERSION_LEGACY);
    struct lp_span meta = lp_member(info->result, LP_SPAN("_meta"));
    struct lp_span server = member_or(meta, LP_SPAN("io.modelcontextprotocol/serverInfo"),
        LP_SPAN("{\"name\":\"limpet-connect\",\"version\":\"" LP_VERSION "\"}"));
    struct lp_span capabilities = member_or(info->result, LP_SPAN("capabilities"), LP_SPAN("{}"));
    struct lp_span instructions = lp_member(info->result, LP_SPAN("instructions"));
    int err = lp_buf_printf(out,
        "{\"protocolVersion\":\"%.*s\",\"capabilities\":%.*s,\"serverInfo\":%.*s", (int)version.len,
        version.ptr, (int)capabilities.len, capabilities.ptr, (int)server.len, server.ptr);
    if (!err && instructions.len)
        err = lp_buf_printf(out, ",\"instructions\":%.*s", (int)instructions.len, instructions.ptr);
    return err ? err : lp_buf_append(out, LP_SPAN("}"));
}

static void welcome_translated(struct lp_bridge *b, const struct lp_client_info *info)
{
    struct lp_buf result;
    lp_buf_init(&result, MESSAGE_MAX);
    int err = write_initialize_result(&result, b, info);
    if (err)
        lp_bridge_refuse(
            b, b->opener, CODE_INTERNAL, lp_span_str(lp_error_sentence(err)), lp_span(NULL, 0));
    else
        lp_bridge_send_result(b, b->opener, lp_buf_span(&result));
    lp_buf_release(&result);
}

void lp_bridge_welcome(struct lp_bridge *b, const struct lp_client_info *info)
{
    LP_ASSERT(b->opener.len);
    if (info->era == LP_ERA_LEGACY)
        lp_bridge_send_result(b, b->opener, info->result);
    else
        welcome_translated(b, info);
    b->opener = lp_span(NULL, 0);
}

/* --- what the server asks of the host --- */

void lp_bridge_ask_host(
    struct lp_bridge *b, lp_id asked, struct lp_span method, struct lp_span params)
{
    struct lp_bridge_asked *a = calloc(1, sizeof *a);
    char head[64];
    if (!a) {
        lp_client_answer_error(b->client, asked, CODE_INTERNAL, LP_SPAN("out of memory"));
        return;
    }
    a->asked = asked;
    a->number = ++b->asked_last;
    lp_list_push_back(&b->asked, &a->node);
    (void)snprintf(head, sizeof head, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"",
        (unsigned long long)a->number);
    const struct lp_span parts[] = {lp_span_str(head), method,
        params.len ? LP_SPAN("\",\"params\":") : LP_SPAN("\""), params, LP_SPAN("}")};
    send_parts(b, parts, sizeof parts / sizeof *parts);
}

static void drop_asked(struct lp_bridge_asked *a)
{
    lp_list_remove(&a->node);
    free(a);
}

void lp_bridge_unask_host(struct lp_bridge *b, lp_id asked)
{
    struct lp_list *node = b->asked.next;
    while (node != &b->asked) {
        struct lp_bridge_asked *a = LP_CONTAINER(node, struct lp_bridge_asked, node);
        node = node->next;
        if (asked && a->asked != asked)
            continue;
        char text[160];
        int len = snprintf(text, sizeof text,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
            "{\"requestId\":%llu}}",
            (unsigned long long)a->number);
        lp_lines_send(&b->lines, lp_span(text, (size_t)len));
        drop_asked(a);
    }
}

void lp_bridge_answer_server(
    struct lp_bridge *b, struct lp_span id, struct lp_span result, struct lp_span error)
{
    uint64_t number;
    if (!lp_span_to_u64(id, &number))
        return;
    for (struct lp_list *node = b->asked.next; node != &b->asked; node = node->next) {
        struct lp_bridge_asked *a = LP_CONTAINER(node, struct lp_bridge_asked, node);
        if (a->number != number)
            continue;
        if (result.len)
            lp_client_answer(b->client, a->asked, result);
        else
            lp_client_answer_raw_error(b->client, a->asked, error);
        drop_asked(a);
        return;
    }
}

/* --- from the host --- */

/* A string token without its quotes, kept in `opening`. */
static struct lp_span unquote(struct lp_span token, char *room, size_t room_len)
{
    size_t len;
    if (!token.len || token.ptr[0] != '"' || lp_json_unescape(token, room, room_len, &len))
        return lp_span(NULL, 0);
    return lp_span(room, len);
}

static struct lp_span keep_part(char **room, struct lp_span part)
{
    struct lp_span kept = lp_span(*room, part.len);
    if (part.len)
        memcpy(*room, part.ptr, part.len);
    *room += part.len;
    return kept;
}

/* Copies what the session is opened with. */
static int keep_opening(struct lp_bridge *b, const struct lp_envelope *env, struct lp_span params)
{
    char version[LP_BRIDGE_VERSION_MAX];
    struct lp_span offered = unquote(env->protocol_version, version, sizeof version);
    struct lp_span capabilities = lp_member(params, LP_SPAN("capabilities"));
    struct lp_span client_info = lp_member(params, LP_SPAN("clientInfo"));
    char *room = malloc(env->id.len + offered.len + capabilities.len + client_info.len + 1);
    if (!room)
        return LP_ENOMEM;
    free(b->opening);
    b->opening = room;
    b->opener = keep_part(&room, env->id);
    b->offered = keep_part(&room, offered);
    b->capabilities = keep_part(&room, capabilities);
    b->client_info = keep_part(&room, client_info);
    return LP_OK;
}

static void take_initialize(struct lp_bridge *b, const struct lp_envelope *env, struct lp_span line)
{
    if (b->state != LP_BRIDGE_NEW) {
        lp_bridge_refuse(b, env->id, CODE_INVALID,
            LP_SPAN("the session is open; start limpet connect again for another one"),
            lp_span(NULL, 0));
        return;
    }
    int err = keep_opening(b, env, lp_member(line, LP_SPAN("params")));
    if (err)
        lp_bridge_refuse(
            b, env->id, CODE_INTERNAL, lp_span_str(lp_error_sentence(err)), lp_span(NULL, 0));
    else
        lp_bridge_open(b);
}

/* A host of 2026-07-28 is led to initialize: what it would do without a session, the bridge does
 * towards a server of that revision. */
static void refuse_modern(struct lp_bridge *b, const struct lp_envelope *env)
{
    struct lp_buf data;
    lp_buf_init(&data, 1024);
    struct lp_span asked = env->meta_version.len ? env->meta_version : LP_SPAN("null");
    int err = lp_buf_printf(&data, "{\"supported\":%s,\"requested\":%.*s}", LP_VERSIONS_LEGACY_JSON,
        (int)asked.len, asked.ptr);
    if (err)
        lp_buf_clear(&data);
    lp_bridge_refuse(b, env->id, CODE_VERSION,
        LP_SPAN("Unsupported protocol version: over stdio begin with initialize"),
        lp_buf_span(&data));
    lp_buf_release(&data);
}

static void take_request(struct lp_bridge *b, const struct lp_envelope *env, struct lp_span line)
{
    bool is_local_ping =
        env->method == LP_RPC_PING && (b->state != LP_BRIDGE_OPEN || b->era == LP_ERA_MODERN);
    if (!env->id_is_valid)
        lp_bridge_refuse(b, LP_SPAN("null"), CODE_INVALID,
            LP_SPAN("a request has a string or a whole number as its id"), lp_span(NULL, 0));
    else if (!lp_span_starts(env->method_token, LP_SPAN("\"")))
        lp_bridge_refuse(b, env->id, CODE_INVALID, LP_SPAN("the method of a request is a string"),
            lp_span(NULL, 0));
    else if (env->method == LP_RPC_INITIALIZE)
        take_initialize(b, env, line);
    else if (env->meta_version.len || env->method == LP_RPC_DISCOVER)
        refuse_modern(b, env);
    else if (is_local_ping)
        lp_bridge_send_result(b, env->id, LP_SPAN("{}"));
    else if (b->state == LP_BRIDGE_NEW)
        lp_bridge_refuse(b, env->id, CODE_STATE,
            LP_SPAN("there is no session yet: send initialize first"), lp_span(NULL, 0));
    else
        lp_bridge_call(b, env, line);
}

static void take_cancelled(struct lp_bridge *b, struct lp_span line)
{
    char room[1024];
    struct lp_span params = lp_member(line, LP_SPAN("params"));
    struct lp_span reason = unquote(lp_member(params, LP_SPAN("reason")), room, sizeof room);
    lp_bridge_cancel(b, lp_member(params, LP_SPAN("requestId")), reason);
}

static void take_notification(
    struct lp_bridge *b, const struct lp_envelope *env, struct lp_span line)
{
    char room[256];
    struct lp_span method = unquote(env->method_token, room, sizeof room);
    if (env->method == LP_RPC_CANCELLED)
        take_cancelled(b, line);
    else if (env->method == LP_RPC_INITIALIZED || b->state != LP_BRIDGE_OPEN ||
        b->era == LP_ERA_MODERN)
        return; /* the client has said it itself; a modern server has no use for the others */
    else if (method.len) {
        int err = lp_client_notify(b->client, method, lp_member(line, LP_SPAN("params")));
        if (err)
            lp_bridge_say(b, "a notification was dropped: %s", lp_error_sentence(err));
    }
}

static void take_message(struct lp_bridge *b, struct lp_span line);

static void take_element(void *ctx, struct lp_span element)
{
    take_message(ctx, element);
}

static void take_unreadable(struct lp_bridge *b, int error, struct lp_span id)
{
    const char *sentence = error == LP_ESYNTAX ? "Parse error: the line is not valid JSON"
        : error == LP_ELIMIT                   ? "Parse error: the JSON is nested too deep"
                                               : "Parse error: a member is there twice";
    lp_bridge_refuse(b, id, CODE_PARSE, lp_span_str(sentence), lp_span(NULL, 0));
}

static void take_message(struct lp_bridge *b, struct lp_span line)
{
    struct lp_envelope env;
    int err = lp_envelope_scan(line, &env);
    if (err)
        take_unreadable(b, err, env.id);
    else if (env.is_batch && !env.batch_is_empty)
        lp_elements(line, take_element, b); /* a batch within a batch has no messages */
    else if (env.is_object && env.method != LP_RPC_NONE && env.has_id)
        take_request(b, &env, line);
    else if (env.is_object && env.method != LP_RPC_NONE)
        take_notification(b, &env, line);
    else if (env.is_object && (env.has_result || env.has_error))
        lp_bridge_answer_server(
            b, env.id, lp_member(line, LP_SPAN("result")), lp_member(line, LP_SPAN("error")));
    else
        lp_bridge_refuse(b, LP_SPAN("null"), CODE_INVALID,
            LP_SPAN("Invalid Request: no method, result or error"), lp_span(NULL, 0));
}

static void on_line(void *ctx, struct lp_span line)
{
    take_message(ctx, line);
}

static void on_too_long(void *ctx)
{
    lp_bridge_refuse(ctx, LP_SPAN("null"), CODE_INVALID,
        LP_SPAN("the line is longer than 16 MiB and was dropped"), lp_span(NULL, 0));
}

static void on_ended(void *ctx)
{
    struct lp_bridge *b = ctx;
    b->input_has_ended = true;
    while (!lp_list_empty(&b->asked)) {
        struct lp_bridge_asked *a = LP_CONTAINER(b->asked.next, struct lp_bridge_asked, node);
        lp_client_answer_error(
            b->client, a->asked, CODE_INTERNAL, LP_SPAN("the client's input has ended"));
        drop_asked(a);
    }
}

static void on_broken(void *ctx, int error)
{
    struct lp_bridge *b = ctx;
    if (error == LP_EIO)
        lp_bridge_say(b,
            "the standard input or output has failed: it is closed, or no stream, or its disk is "
            "full");
    else if (error != LP_EBROKEN)
        lp_bridge_say(b, "the standard output cannot be written: %s", lp_error_sentence(error));
    b->has_failed = b->has_failed || error != LP_EBROKEN;
    b->must_close = true;
}

const struct lp_lines_ops lp_bridge_lines_ops = {
    .line = on_line,
    .too_long = on_too_long,
    .ended = on_ended,
    .broken = on_broken,
};
