/* An MCP server mounted under /mcp of a program that has an HTTP server already, here one of
 * libmicrohttpd in one thread (limpet-server-exchange(3)). */
#include <limpet-server.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS_MAX = 128, WAITING_MAX = 65536, TURN_MS_MAX = 500 };

/* One request for /mcp, from its head until libmicrohttpd is done with it. */
struct visit {
    struct limpet_server *server;
    struct MHD_Connection *connection;
    uint64_t exchange;
    struct MHD_Response *response; /* from its head on */
    int status;
    char *waiting; /* of its body */
    size_t waiting_bytes;
    bool is_suspended, has_ended, is_whole, is_blocked;
};

static volatile sig_atomic_t is_stopping;

static void on_signal(int number)
{
    is_stopping = number;
}

/* --- the answer: from the server to libmicrohttpd -------------------------------------------- */

static void go_on(struct visit *visit)
{
    if (visit->is_suspended)
        MHD_resume_connection(visit->connection);
    visit->is_suspended = false;
}

static ssize_t on_read(void *context, uint64_t offset, char *room, size_t room_bytes)
{
    struct visit *visit = (struct visit *)context;
    size_t len = visit->waiting_bytes < room_bytes ? visit->waiting_bytes : room_bytes;
    (void)offset;
    if (len) {
        memcpy(room, visit->waiting, len);
        visit->waiting_bytes -= len;
        memmove(visit->waiting, visit->waiting + len, visit->waiting_bytes);
        if (visit->is_blocked && !visit->waiting_bytes) {
            visit->is_blocked = false;
            limpet_exchange_resume(visit->server, visit->exchange);
        }
        return (ssize_t)len;
    }
    if (visit->has_ended)
        return visit->is_whole ? MHD_CONTENT_READER_END_OF_STREAM
                               : MHD_CONTENT_READER_END_WITH_ERROR;
    visit->is_suspended = true;
    MHD_suspend_connection(visit->connection);
    return 0;
}

/* A text of a span; libmicrohttpd wants zero bytes. */
static void add_header(struct MHD_Response *response, const struct limpet_field *field)
{
    char name[128], value[2048];
    snprintf(name, sizeof name, "%.*s", (int)field->name.len, field->name.ptr);
    snprintf(value, sizeof value, "%.*s", (int)field->value.len, field->value.ptr);
    MHD_add_response_header(response, name, value);
}

static void on_head(void *context, const struct limpet_answer_head *head)
{
    struct visit *visit = (struct visit *)context;
    uint64_t size = head->body_bytes < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)head->body_bytes;
    visit->status = head->status;
    visit->response = MHD_create_response_from_callback(size, 4096, on_read, visit, NULL);
    for (size_t i = 0; visit->response && i < head->field_count; i++)
        add_header(visit->response, &head->fields[i]);
    go_on(visit);
}

static bool on_body(void *context, struct limpet_span bytes)
{
    struct visit *visit = (struct visit *)context;
    char *room = (char *)realloc(visit->waiting, visit->waiting_bytes + bytes.len);
    if (!room)
        abort();
    memcpy(room + visit->waiting_bytes, bytes.ptr, bytes.len);
    visit->waiting = room;
    visit->waiting_bytes += bytes.len;
    visit->is_blocked = visit->waiting_bytes >= WAITING_MAX;
    go_on(visit);
    return !visit->is_blocked;
}

static void on_end(void *context, bool is_whole)
{
    struct visit *visit = (struct visit *)context;
    visit->has_ended = true;
    visit->is_whole = is_whole;
    go_on(visit);
}

/* --- the request: from libmicrohttpd to the server ------------------------------------------- */

struct fields {
    struct limpet_field at[FIELDS_MAX];
    size_t count;
    bool has_body;
};

static enum MHD_Result on_field(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct fields *fields = (struct fields *)context;
    (void)kind;
    if (fields->count == FIELDS_MAX)
        return MHD_NO;
    fields->at[fields->count].name = limpet_str(name);
    fields->at[fields->count++].value = limpet_str(value ? value : "");
    return MHD_YES;
}

static enum MHD_Result answer_plainly(
    struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static int begin(struct visit *visit, const char *method, const char *url)
{
    struct fields fields = LIMPET_ZERO;
    struct limpet_request request = LIMPET_ZERO;
    struct limpet_answer answer = LIMPET_ZERO;
    MHD_get_connection_values(visit->connection, MHD_HEADER_KIND, on_field, &fields);
    request.method = limpet_str(method);
    request.target = limpet_str(url);
    request.fields = fields.at;
    request.field_count = fields.count;
    request.body_follows = strcmp(method, "POST") == 0;
    request.is_loopback = true; /* it listens on 127.0.0.1 */
    answer.context = visit;
    answer.head = on_head;
    answer.body = on_body;
    answer.end = on_end;
    return limpet_exchange_begin(visit->server, &request, &answer, &visit->exchange);
}

/* The first time with the head alone, then with pieces of the body, then without one at its end,
 * and again after each MHD_resume_connection. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_bytes,
    void **ret_visit)
{
    struct visit *visit = (struct visit *)*ret_visit;
    (void)version;
    if (!visit && strcmp(url, "/mcp") != 0)
        return answer_plainly(connection, 200, "The program's own page.\n");
    if (!visit) {
        *ret_visit = visit = (struct visit *)calloc(1, sizeof *visit);
        if (!visit)
            return MHD_NO;
        visit->server = (struct limpet_server *)context;
        visit->connection = connection;
        int err = begin(visit, method, url);
        if (err)
            return answer_plainly(connection, err == LIMPET_ESYNTAX ? 400 : 503, "");
        return MHD_YES;
    }
    if (*upload_bytes) {
        int err = limpet_exchange_body(
            visit->server, visit->exchange, limpet_bytes(upload, *upload_bytes));
        *upload_bytes = 0;
        return err ? MHD_NO : MHD_YES;
    }
    if (!visit->response && limpet_exchange_end(visit->server, visit->exchange))
        return MHD_NO;
    if (visit->response)
        return MHD_queue_response(connection, (unsigned)visit->status, visit->response);
    if (visit->has_ended)
        return MHD_NO;
    visit->is_suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **ret_visit,
    enum MHD_RequestTerminationCode why)
{
    struct visit *visit = (struct visit *)*ret_visit;
    (void)context;
    (void)connection;
    (void)why;
    if (!visit)
        return;
    limpet_exchange_left(visit->server, visit->exchange); /* nothing where it has ended */
    if (visit->response)
        MHD_destroy_response(visit->response);
    free(visit->waiting);
    free(visit);
}

/* --- the program ------------------------------------------------------------------------------ */

static void greet(void *context, struct limpet_call *call)
{
    (void)context;
    if (limpet_call_wait(call, 50))
        limpet_call_tool_error(call, limpet_str("there is no memory"));
}

static void greet_now(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    (void)context;
    (void)wake;
    limpet_call_progress(call, 1, 1);
    limpet_call_text(call, limpet_str("Hello from below /mcp"));
}

static struct limpet_server *new_server(void)
{
    struct limpet_server_options options = LIMPET_ZERO;
    struct limpet_tool tool = LIMPET_ZERO;
    struct limpet_server *server = NULL;
    options.name = "host";
    options.version = "1.0";
    options.replay = LIMPET_REPLAY_PREFER;
    tool.name = "greet";
    tool.description = "Says hello";
    tool.handler.run = greet;
    tool.handler.wake = greet_now;
    int err = limpet_server_new(NULL, &options, &server);
    err = err ? err : limpet_server_add_tool(server, &tool);
    if (err)
        fprintf(stderr, "%s\n", limpet_server_why(server, err));
    return err ? NULL : server;
}

/* One thread for both: libmicrohttpd waits for its sockets as long as the server has time. */
static void serve(struct MHD_Daemon *daemon, struct limpet_server *server)
{
    bool was_told = false;
    while (!limpet_server_is_stopped(server)) {
        int ms = limpet_server_timeout_ms(server);
        MHD_run_wait(daemon, ms < 0 || ms > TURN_MS_MAX ? TURN_MS_MAX : ms);
        if (is_stopping && !was_told)
            was_told = limpet_server_stop(server) == LIMPET_OK;
        limpet_server_turn(server);
    }
}

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? strrchr(argv[1], ':') : NULL;
    struct sockaddr_in address = LIMPET_ZERO;
    struct limpet_server *server = new_server();
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)(port ? atoi(port + 1) : 3000));
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN);
    struct MHD_Daemon *daemon = server
        ? MHD_start_daemon(MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
              MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_NOTIFY_COMPLETED,
              on_completed, NULL, MHD_OPTION_END)
        : NULL;
    if (daemon) {
        fprintf(stderr, "listening on http://127.0.0.1:%u/mcp\n",
            MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
        serve(daemon, server);
        MHD_stop_daemon(daemon);
    }
    limpet_server_free(server);
    return daemon ? 0 : 1;
}
