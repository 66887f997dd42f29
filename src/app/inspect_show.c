/* What the user of `limpet inspect` sees. With --json a result is one line of JSON, as it came;
 * without, lists are names and descriptions, and contents are text. */
#include <stdarg.h>
#include <stdio.h>

#include "app/inspect_priv.h"
#include "app/terminal.h"
#include "wire/json.h"
#include "wire/member.h"

enum { NAME_WIDTH = 24, TEXT_MAX = 64 << 20 };

void lp_inspect_say(const char *fmt, ...)
{
    char room[4096];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room, sizeof room, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n;
    lp_terminal_put(stderr, lp_span(room, len < sizeof room ? len : sizeof room - 1));
    fputc('\n', stderr);
}

/* A string member as text; empty when there is none. */
static struct lp_span text_of(struct lp_span json, const char *key, struct lp_buf *room)
{
    char *space;
    size_t len = 0;
    struct lp_span token = lp_member(json, lp_span_str(key));
    lp_buf_clear(room);
    if (!token.len || token.ptr[0] != '"' || lp_buf_reserve(room, token.len, &space) ||
        lp_json_unescape(token, space, token.len, &len))
        return LP_SPAN("");
    lp_buf_commit(room, len);
    return lp_buf_span(room);
}

static void put_member(FILE *to, struct lp_span json, const char *key)
{
    struct lp_buf room;
    lp_buf_init(&room, TEXT_MAX);
    lp_terminal_put(to, text_of(json, key, &room));
    lp_buf_release(&room);
}

/* --- lists --- */

static void show_element(void *ctx, struct lp_span element)
{
    const struct lp_inspect *in = ctx;
    struct lp_buf room;
    lp_buf_init(&room, TEXT_MAX);
    struct lp_span name = text_of(element, in->verb->key, &room);
    size_t width = name.len;
    lp_terminal_put(stdout, name);
    struct lp_span about = text_of(element, "description", &room);
    if (!about.len)
        about = text_of(element, "title", &room);
    about.len = lp_span_find(about, '\n');
    if (about.len)
        printf("%*s", width < NAME_WIDTH ? (int)(NAME_WIDTH - width) : 2, "");
    lp_terminal_put(stdout, about);
    putchar('\n');
    lp_buf_release(&room);
}

/* --- contents --- */

static void show_content(void *ctx, struct lp_span content)
{
    struct lp_buf room;
    (void)ctx;
    lp_buf_init(&room, TEXT_MAX);
    struct lp_span inner = lp_member(content, LP_SPAN("resource"));
    struct lp_span what = inner.len ? inner : content;
    struct lp_span text = text_of(what, "text", &room);
    if (text.len) {
        lp_terminal_put(stdout, text);
    } else {
        size_t size = lp_member(what, LP_SPAN("data")).len + lp_member(what, LP_SPAN("blob")).len;
        putchar('[');
        put_member(stdout, content, "type");
        putchar(' ');
        put_member(stdout, what, "mimeType");
        putchar(' ');
        put_member(stdout, what, "uri");
        printf(" %zu bytes of base64]", size > 2 ? size - 2 : 0);
    }
    putchar('\n');
    lp_buf_release(&room);
}

static void show_message(void *ctx, struct lp_span message)
{
    put_member(stdout, message, "role");
    printf(": ");
    show_content(ctx, lp_member(message, LP_SPAN("content")));
}

static bool show_array(
    struct lp_inspect *in, struct lp_span result, const char *key, lp_element_fn each)
{
    struct lp_span list = lp_member(result, lp_span_str(key));
    if (!lp_span_starts(list, LP_SPAN("[")))
        return false;
    lp_elements(list, each, in);
    return true;
}

static bool is_empty(struct lp_span list)
{
    size_t i = 1;
    while (i < list.len && strchr(" \t\r\n", list.ptr[i]))
        i++;
    return i < list.len && list.ptr[i] == ']';
}

void lp_inspect_show_result(struct lp_inspect *in, struct lp_span result)
{
    bool is_error = lp_span_eq(lp_member(result, LP_SPAN("isError")), LP_SPAN("true"));
    bool is_shown = false;
    if (in->is_json) {
        fwrite(result.ptr, 1, result.len, stdout);
        putchar('\n');
        is_shown = true;
    } else if (in->verb->list) {
        is_shown = show_array(in, result, in->verb->list, show_element);
        if (is_shown && is_empty(lp_member(result, lp_span_str(in->verb->list))))
            lp_inspect_say("no %s", in->verb->word);
    } else {
        struct lp_span structured = lp_member(result, LP_SPAN("structuredContent"));
        is_shown = show_array(in, result, "content", show_content) ||
            show_array(in, result, "contents", show_content) ||
            show_array(in, result, "messages", show_message);
        if (structured.len) {
            lp_terminal_put(stdout, structured);
            putchar('\n');
        }
        is_shown |= structured.len > 0;
    }
    if (!is_shown) {
        lp_terminal_put(stdout, result);
        putchar('\n');
    }
    fflush(stdout);
    if (is_error) {
        in->status = LP_EXIT_FAILED;
        lp_inspect_say("limpet: the tool says that it failed");
    }
}

/* --- the server --- */

static void name_capability(void *ctx, struct lp_span key, struct lp_span value)
{
    (void)ctx;
    (void)value;
    putchar(' ');
    lp_terminal_put(stdout, key.len > 2 ? lp_span(key.ptr + 1, key.len - 2) : key);
}

static void show_info_as_text(const struct lp_client_info *info, struct lp_span server)
{
    struct lp_span capabilities = lp_member(info->result, LP_SPAN("capabilities"));
    printf("server       ");
    put_member(stdout, server, "name");
    putchar(' ');
    put_member(stdout, server, "version");
    printf("\nprotocol     %.*s\ntransport    %s\nsession      %s\ncapabilities",
        (int)info->version.len, info->version.ptr,
        info->transport == LP_TRANSPORT_SSE ? "sse" : "streamable-http",
        info->session_id.len                      ? "yes"
            : info->transport == LP_TRANSPORT_SSE ? "the stream"
                                                  : "none");
    if (lp_span_starts(capabilities, LP_SPAN("{")))
        lp_members(capabilities, name_capability, NULL);
    putchar('\n');
    if (lp_member(info->result, LP_SPAN("instructions")).len) {
        printf("instructions ");
        put_member(stdout, info->result, "instructions");
        putchar('\n');
    }
}

void lp_inspect_show_info(struct lp_inspect *in)
{
    const struct lp_client_info *info = lp_client_info(in->client);
    struct lp_span meta = lp_member(info->result, LP_SPAN("_meta"));
    struct lp_span server = lp_member(info->result, LP_SPAN("serverInfo"));
    if (!server.len)
        server = lp_member(meta, LP_SPAN("io.modelcontextprotocol/serverInfo"));
    if (!in->is_json) {
        show_info_as_text(info, server);
    } else {
        printf(
            "{\"era\":\"%s\",\"protocolVersion\":\"%.*s\",\"transport\":\"%s\",\"hasSession\":%s,"
            "\"result\":",
            info->era == LP_ERA_MODERN ? "modern" : "legacy", (int)info->version.len,
            info->version.ptr, info->transport == LP_TRANSPORT_SSE ? "sse" : "streamable-http",
            info->session_id.len ? "true" : "false");
        fwrite(info->result.ptr, 1, info->result.len, stdout);
        printf("}\n");
    }
    fflush(stdout);
}

/* --- failures --- */

void lp_inspect_show_error(struct lp_inspect *in, struct lp_span error)
{
    struct lp_buf room;
    struct lp_span code = lp_member(error, LP_SPAN("code"));
    lp_buf_init(&room, TEXT_MAX);
    struct lp_span message = text_of(error, "message", &room);
    in->status = LP_EXIT_FAILED;
    if (in->is_json) {
        printf("{\"error\":");
        fwrite(error.ptr, 1, error.len, stdout);
        printf("}\n");
        fflush(stdout);
    }
    lp_inspect_say("limpet: the server answers with the error %.*s: %.*s", (int)code.len,
        code.len ? code.ptr : "", (int)message.len, message.len ? message.ptr : "");
    struct lp_span data = lp_member(error, LP_SPAN("data"));
    if (data.len)
        lp_inspect_say("%.*s", (int)data.len, data.ptr);
    lp_buf_release(&room);
}

static void print_failure(const struct lp_client_failure *why)
{
    struct lp_buf text;
    lp_buf_init(&text, TEXT_MAX);
    int err = lp_buf_printf(&text, "{\"failure\":{\"status\":%u,\"message\":", why->status);
    if (!err)
        err = lp_json_quote(&text, why->sentence);
    if (!err)
        err = lp_buf_append(&text, LP_SPAN(",\"body\":"));
    if (!err)
        err = lp_json_quote(&text, why->body);
    if (!err)
        err = lp_buf_append(&text, LP_SPAN("}}\n"));
    if (!err)
        lp_app_print(&text);
    fflush(stdout);
    lp_buf_release(&text);
}

void lp_inspect_show_failure(struct lp_inspect *in, const struct lp_client_failure *why)
{
    in->status = LP_EXIT_FAILED;
    if (in->is_json)
        print_failure(why);
    size_t left = 0;
    fputs("limpet: ", stderr);
    lp_terminal_put(stderr, lp_client_brief(why, &left));
    if (left)
        fprintf(stderr, "... (%zu bytes more%s)", left, in->is_json ? "" : "; --json prints all");
    fputc('\n', stderr);
    struct lp_span path = in->loop.target.uri.path;
    bool has_path = path.len > 1;
    if (why->status == 404 && !has_path && !in->is_busy)
        lp_inspect_say(
            "limpet: the URL has no path; most servers have their endpoint at /mcp: %.*s%s",
            (int)in->loop.target.url.len, in->loop.target.url.ptr, path.len ? "mcp" : "/mcp");
    bool is_hint = why->kind == LP_FAILURE_LOST && !in->loop.target.cookie_jar;
    if (is_hint)
        lp_inspect_say(
            "limpet: the session was lost right after it was opened or later; if several "
            "replicas stand behind a balancer that pins by cookie, try --cookie-jar");
}

/* --- notifications --- */

void lp_inspect_show_notification(struct lp_inspect *in, struct lp_span message)
{
    struct lp_buf room;
    (void)in;
    lp_buf_init(&room, TEXT_MAX);
    struct lp_span params = lp_member(message, LP_SPAN("params"));
    struct lp_span progress = lp_member(params, LP_SPAN("progress"));
    struct lp_span total = lp_member(params, LP_SPAN("total"));
    struct lp_span words = text_of(message, "method", &room);
    if (lp_span_eq(words, LP_SPAN("notifications/progress"))) {
        words = text_of(params, "message", &room);
        lp_inspect_say("progress %.*s%s%.*s %.*s", (int)progress.len,
            progress.len ? progress.ptr : "", total.len ? "/" : "", (int)total.len,
            total.len ? total.ptr : "", (int)words.len, words.len ? words.ptr : "");
    } else {
        lp_inspect_say("%.*s %.*s", (int)words.len, words.len ? words.ptr : "", (int)params.len,
            params.len ? params.ptr : "");
    }
    lp_buf_release(&room);
}
