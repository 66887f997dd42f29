/* What the client commands' shared flags mean (app/client_flags.h). */
#include "app/client_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/mcp_json.h"
#include "io/file.h"

enum {
    FILE_MAX = 8 << 20,
    BEARER_MAX = 65536,
    SECONDS_MAX = 86400,
    WHY_MAX = 4096,
};

static const char CONFIG_HERE[] = "mcp.json";

const char lp_client_flags_help[] =
    "  --header 'NAME: VALUE'  sent with every request; may be given several times\n"
    "  --bearer TOKEN|@FILE    a token for Authorization; also from LIMPET_BEARER\n"
    "  --config FILE           where NAME is looked up (default mcp.json, here)\n"
    "  --transport KIND        streamable-http or sse (default: found out)\n"
    "  --era WHICH             auto, legacy (with sessions) or modern (2026-07-28)\n"
    "  --cookie-jar            keep the server's cookies: for several replicas behind\n"
    "                          a balancer that pins by cookie; without it requests\n"
    "                          land on replicas without the session and fail with\n"
    "                          404 Session not found right after initialize\n"
    "  --no-notification-stream  do not open the GET stream\n"
    "  --timeout SECONDS       for an answer or the next progress (default 60)\n"
    "  --cacert FILE           believe these certificates (PEM) and no others\n"
    "  --insecure              believe any certificate\n"
    "  --log-file FILE         what was really sent and received; secrets are hashed\n"
    "  --log-bodies            bodies and events too, as they are: what they hold is\n"
    "                          not hashed\n";

void lp_client_flags_options(struct lp_client_flags *f, struct lp_option room[LP_CLIENT_OPTIONS])
{
    const struct lp_option options[LP_CLIENT_OPTIONS] = {
        {.name = "--header", .list = &f->headers},
        {.name = "--bearer", .value = &f->bearer},
        {.name = "--config", .value = &f->config},
        {.name = "--log-file", .value = &f->log_file},
        {.name = "--cacert", .value = &f->cacert},
        {.name = "--timeout", .value = &f->timeout},
        {.name = "--transport", .value = &f->transport},
        {.name = "--era", .value = &f->era},
        {.name = "--insecure", .is_set = &f->insecure},
        {.name = "--cookie-jar", .is_set = &f->cookie_jar},
        {.name = "--no-notification-stream", .is_set = &f->no_stream},
        {.name = "--log-bodies", .is_set = &f->log_bodies},
    };
    memcpy(room, options, sizeof options);
}

/* --- the target: address --- */

static int say_no_memory(void)
{
    return lp_app_fail(LP_EXIT_FAILED, "%s", lp_error_sentence(LP_ENOMEM));
}

static int set_url(struct lp_target *target, struct lp_span url, const char *whose)
{
    struct lp_span head, tail;
    int err = lp_target_set_url(target, url);
    const char *hidden = lp_uri_hide_user(url, &head, &tail) ? "***" : ""; /* a password */
    if (err == LP_ENOMEM)
        return say_no_memory();
    if (err == LP_EUNSUPPORTED)
        return lp_app_fail(LP_EXIT_USAGE, "%s: \"%.*s%s%.*s\" is neither http nor https", whose,
            (int)head.len, head.ptr, hidden, (int)tail.len, tail.ptr);
    if (err)
        return lp_app_fail(LP_EXIT_USAGE,
            "%s: \"%.*s%s%.*s\" is no address of a server; write http://HOST:PORT/mcp, without a "
            "user name in it",
            whose, (int)head.len, head.ptr, hidden, (int)tail.len, tail.ptr);
    return LP_EXIT_OK;
}

static bool look_up(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    char room[256];
    (void)ctx;
    if (name.len >= sizeof room)
        return false;
    memcpy(room, name.ptr, name.len);
    room[name.len] = 0;
    const char *value = getenv(room);
    *ret_value = lp_span_str(value);
    return value != NULL;
}

static int say_header(int err, struct lp_span name, const char *whose)
{
    if (err == LP_ENOMEM)
        return say_no_memory();
    if (err == LP_ELIMIT)
        return lp_app_fail(
            LP_EXIT_USAGE, "%s: there are more than %d header fields", whose, LP_TARGET_FIELDS_MAX);
    if (err)
        return lp_app_fail(LP_EXIT_USAGE,
            "%s: the field \"%.*s\" cannot be sent; write 'Name: value', and leave out those that "
            "the program sets itself (Host, Connection, Content-Length, Mcp-...)",
            whose, (int)name.len, name.ptr);
    return LP_EXIT_OK;
}

static int take_entry(
    const struct lp_mcp_json_server *server, const char *name, struct lp_target *target)
{
    if (server->type == LP_MCP_JSON_STDIO)
        return lp_app_fail(LP_EXIT_USAGE,
            "%s is a stdio server: it has no address; its host starts it by itself", name);
    int status = set_url(target, server->url, name);
    for (uint32_t i = 0; i < server->header_count && status == LP_EXIT_OK; i++) {
        const struct lp_mcp_json_header *header = &server->headers[i];
        int err = lp_target_set_field(target, header->name, header->value);
        status = say_header(err, header->name, name);
    }
    target->cookie_jar = server->cookie_jar;
    target->suppress_notification_stream = server->suppress_notification_stream;
    if (server->type != LP_MCP_JSON_AUTO)
        target->transport =
            server->type == LP_MCP_JSON_SSE ? LP_TRANSPORT_SSE : LP_TRANSPORT_STREAMABLE_HTTP;
    return status;
}

static int find_entry(
    struct lp_mcp_json_source *source, const char *file, const char *name, struct lp_target *target)
{
    struct lp_mcp_json_server server;
    int err = lp_mcp_json_find(source, lp_span_str(name), &server);
    struct lp_span sentence = lp_buf_span(source->problem);
    if (err == LP_ENOMEM)
        return say_no_memory();
    if (err)
        return lp_app_fail(LP_EXIT_USAGE, "%s: %.*s", file, (int)sentence.len, sentence.ptr);
    return take_entry(&server, name, target);
}

static int set_name(const struct lp_client_flags *f, const char *name, struct lp_target *target)
{
    const char *file = f->config ? f->config : CONFIG_HERE;
    struct lp_buf text;
    struct lp_buf why;
    struct lp_arena arena;
    lp_buf_init(&text, FILE_MAX);
    lp_buf_init(&why, WHY_MAX);
    lp_arena_init(&arena, FILE_MAX);
    int status;
    int err = lp_file_read(file, &text, &why);
    struct lp_span sentence = lp_buf_span(&why);
    struct lp_span head, tail;
    const char *hidden = lp_uri_hide_user(lp_span_str(name), &head, &tail) ? "***" : "";
    if (err == LP_ENOT_FOUND && !f->config)
        status = lp_app_fail(LP_EXIT_USAGE,
            "\"%.*s%s%.*s\" is no URL, and there is no mcp.json here to look it up in; write "
            "http://HOST:PORT/mcp, or say --config FILE",
            (int)head.len, head.ptr, hidden, (int)tail.len, tail.ptr);
    else if (err)
        status = lp_app_fail(LP_EXIT_USAGE, "%.*s", (int)sentence.len, sentence.ptr);
    else {
        lp_buf_clear(&why);
        struct lp_mcp_json_source source = {
            .text = lp_buf_span(&text), .lookup = look_up, .arena = &arena, .problem = &why};
        status = find_entry(&source, file, name, target);
    }
    lp_arena_fini(&arena);
    lp_buf_release(&text);
    lp_buf_release(&why);
    return status;
}

/* --- the target: the rest --- */

static int set_bearer(struct lp_target *target, struct lp_span token, const char *whose)
{
    int err = lp_target_set_bearer(target, token);
    if (err == LP_ENOMEM)
        return say_no_memory();
    if (err)
        return lp_app_fail(
            LP_EXIT_USAGE, "%s: that is no token; it is one word without blanks", whose);
    return LP_EXIT_OK;
}

static int set_bearer_file(struct lp_target *target, const char *path)
{
    struct lp_buf text;
    struct lp_buf why;
    lp_buf_init(&text, BEARER_MAX);
    lp_buf_init(&why, WHY_MAX);
    int err = lp_file_read(path, &text, &why);
    struct lp_span sentence = lp_buf_span(&why);
    int status = err ? lp_app_fail(LP_EXIT_USAGE, "--bearer: %.*s", (int)sentence.len, sentence.ptr)
                     : set_bearer(target, lp_buf_span(&text), "--bearer");
    lp_buf_release(&text);
    lp_buf_release(&why);
    return status;
}

static bool has_authorization(const struct lp_target *target)
{
    for (uint32_t i = 0; i < target->field_count; i++)
        if (lp_span_ieq(target->fields[i].name, LP_SPAN("Authorization")))
            return true;
    return false;
}

static int set_credentials(const struct lp_client_flags *f, struct lp_target *target)
{
    const char *from_environment = getenv("LIMPET_BEARER");
    if (f->bearer && f->bearer[0] == '@')
        return set_bearer_file(target, f->bearer + 1);
    if (f->bearer)
        return set_bearer(target, lp_span_str(f->bearer), "--bearer");
    if (from_environment && *from_environment && !has_authorization(target))
        return set_bearer(target, lp_span_str(from_environment), "LIMPET_BEARER");
    return LP_EXIT_OK;
}

static int set_headers(const struct lp_client_flags *f, struct lp_target *target)
{
    int status = LP_EXIT_OK;
    for (uint32_t i = 0; i < f->headers.count && status == LP_EXIT_OK; i++) {
        struct lp_span rest;
        struct lp_span line = lp_span_str(f->headers.values[i]);
        struct lp_span name = lp_span_split(line, ':', &rest);
        status = say_header(lp_target_set_field_line(target, line), name, "--header");
    }
    return status;
}

static int set_choices(const struct lp_client_flags *f, struct lp_target *target)
{
    uint32_t seconds;
    if (f->transport && strcmp(f->transport, "sse") == 0)
        target->transport = LP_TRANSPORT_SSE;
    else if (f->transport && strcmp(f->transport, "streamable-http") == 0)
        target->transport = LP_TRANSPORT_STREAMABLE_HTTP;
    else if (f->transport)
        return lp_app_fail(LP_EXIT_USAGE,
            "--transport: there is no \"%s\"; say streamable-http or sse", f->transport);
    if (f->era && strcmp(f->era, "legacy") == 0)
        target->era = LP_ERA_WISH_LEGACY;
    else if (f->era && strcmp(f->era, "modern") == 0)
        target->era = LP_ERA_WISH_MODERN;
    else if (f->era && strcmp(f->era, "auto") != 0)
        return lp_app_fail(
            LP_EXIT_USAGE, "--era: there is no \"%s\"; say auto, legacy or modern", f->era);
    if (f->timeout) {
        int status = lp_options_number("--timeout", f->timeout, SECONDS_MAX, &seconds);
        if (status != LP_EXIT_OK)
            return status;
        target->timeout_ms = seconds * 1000;
    }
    target->cookie_jar = target->cookie_jar || f->cookie_jar;
    target->suppress_notification_stream = target->suppress_notification_stream || f->no_stream;
    return LP_EXIT_OK;
}

int lp_client_flags_target(
    const struct lp_client_flags *flags, const char *where, struct lp_target *ret)
{
    lp_target_init(ret);
    bool is_url = strstr(where, "://") != NULL;
    int status =
        is_url ? set_url(ret, lp_span_str(where), "the address") : set_name(flags, where, ret);
    if (status == LP_EXIT_OK)
        status = set_headers(flags, ret);
    if (status == LP_EXIT_OK)
        status = set_credentials(flags, ret);
    if (status == LP_EXIT_OK)
        status = set_choices(flags, ret);
    return status;
}

/* --- the network log --- */

static void write_line(void *ctx, struct lp_span line)
{
    FILE *file = ctx;
    fwrite(line.ptr, 1, line.len, file);
    fputc('\n', file);
    fflush(file);
}

int lp_client_log_open(
    const struct lp_client_flags *flags, struct lp_client_log *log, struct lp_netlog **ret_log)
{
    unsigned char key[LP_NETLOG_KEY_BYTES];
    *log = (struct lp_client_log){0};
    *ret_log = NULL;
    if (!flags->log_file)
        return LP_EXIT_OK;
    int fd = open(flags->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log->file = fd < 0 ? NULL : fdopen(fd, "a");
    if (!log->file) {
        int status = lp_app_fail(LP_EXIT_USAGE, "--log-file: %s cannot be written: %s",
            flags->log_file, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    lp_io_random(key, sizeof key);
    lp_netlog_init(&log->net, write_line, log->file, key);
    log->net.with_bodies = flags->log_bodies;
    *ret_log = &log->net;
    return LP_EXIT_OK;
}

int lp_client_log_close(struct lp_client_log *log)
{
    if (!log->file)
        return LP_EXIT_OK;
    bool has_failed = ferror(log->file);
    lp_netlog_fini(&log->net);
    has_failed = fclose(log->file) || has_failed;
    log->file = NULL;
    if (has_failed)
        return lp_app_fail(LP_EXIT_FAILED, "lines of the network log were lost: is the disk full?");
    return LP_EXIT_OK;
}
