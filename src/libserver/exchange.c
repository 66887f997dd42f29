/* Requests that a host program got by its own HTTP server (limpet-server.h, requirement [S4]).
 *
 * Each is a connection of one request for the server: the head is written as HTTP/1, and the answer
 * read by the parser that also reads replicas. So every rule of the wire (heads, lengths, back
 * pressure, a client that leaves) is in one place, and what a host hands in can say no more than a
 * client could (doc/DECISIONS/014). */
#include "base/error.h"
#include "libserver/libserver.h"

static struct lp_seat_conn *get(const struct limpet_server *server, uint64_t exchange)
{
    struct lp_seat_conn *conn = lp_seat_conn_get(server, exchange);
    return conn && conn->is_exchange ? conn : NULL;
}

/* --- the request's head --- */

/* A session id with bytes that no field may have is refused as any malformed one is, with 404. */
static struct lp_span sound_value(enum lp_field_id id, struct lp_span value)
{
    bool is_bad = id == LP_FIELD_MCP_SESSION_ID && !lp_field_is_value(value);
    return is_bad ? LP_SPAN(".") : value;
}

static bool is_about_connection(enum lp_field_id id)
{
    return id == LP_FIELD_CONTENT_LENGTH || id == LP_FIELD_EXPECT || lp_field_is_hop_by_hop(id);
}

static int add_fields(struct lp_head *head, const struct limpet_request *request)
{
    int err = LIMPET_OK;
    for (size_t i = 0; i < request->field_count && !err; i++) {
        struct lp_span name = lp_lib_in(request->fields[i].name);
        enum lp_field_id id = lp_field_lookup(name);
        struct lp_span value = sound_value(id, lp_lib_in(request->fields[i].value));
        if (!is_about_connection(id))
            err = lp_head_add_other(head, name, value);
    }
    return err;
}

/* The length that a request says of itself; false: none, or none that can be read. */
static bool declared_length(const struct limpet_request *request, uint64_t *ret)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (lp_field_lookup(lp_lib_in(request->fields[i].name)) == LP_FIELD_CONTENT_LENGTH)
            return lp_span_to_u64(lp_lib_in(request->fields[i].value), ret);
    return false;
}

static void frame(struct lp_head *head, const struct limpet_request *request)
{
    uint64_t bytes = request->body.len;
    bool is_known = !request->body_follows || declared_length(request, &bytes);
    head->body = is_known ? LP_BODY_LENGTH : LP_BODY_CHUNKED;
    head->body_bytes = bytes;
    if (is_known && !bytes)
        head->body = LP_BODY_NONE;
}

/* LIMPET_ESYNTAX, LIMPET_ELIMIT, LIMPET_ENOMEM. */
static int write_head(
    struct limpet_server *server, const struct limpet_request *request, struct lp_buf *out)
{
    struct lp_head *head = &server->head;
    head->is_request = true;
    head->method_name = lp_lib_in(request->method);
    head->method = lp_method_lookup(head->method_name);
    head->target = lp_lib_in(request->target);
    head->minor = 1;
    head->keep_alive = true;
    head->field_count = 0;
    frame(head, request);
    int err = add_fields(head, request);
    return err ? err : lp_http1_write_head(out, head);
}

/* --- the request --- */

static struct lp_seat_conn *new_exchange(
    struct limpet_server *server, const struct limpet_answer *answer)
{
    struct lp_seat_conn *conn = lp_seat_conn_new(server);
    if (!conn)
        return NULL;
    conn->is_exchange = true;
    conn->answer = *answer;
    conn->is_chunked = server->head.body == LP_BODY_CHUNKED;
    conn->left = server->head.body == LP_BODY_LENGTH ? server->head.body_bytes : 0;
    lp_http1_init(&conn->parser, LP_HTTP1_RESPONSES, &server->answered);
    lp_http1_answering(&conn->parser, server->head.method);
    return conn;
}

static int begin(struct limpet_server *server, const struct limpet_request *request,
    const struct limpet_answer *answer, struct lp_span head, uint64_t *ret_exchange)
{
    struct limpet_peer peer = {.is_loopback = request->is_loopback};
    struct lp_seat_conn *conn = new_exchange(server, answer);
    if (!conn)
        return LIMPET_ELIMIT;
    lp_id id = conn->id;
    int err = lp_seat_conn_accept(server, conn, &peer);
    if (err)
        return err;
    *ret_exchange = id;
    lp_seat_conn_read(server, id, head);
    (void)!limpet_exchange_body(
        server, id, request->body); /* a false length ends it, and is told */
    return LIMPET_OK;
}

int limpet_exchange_begin(struct limpet_server *server, const struct limpet_request *request,
    const struct limpet_answer *answer, uint64_t *ret_exchange)
{
    struct lp_buf out;
    if (server->listens)
        return LIMPET_EEXISTS;
    server->is_fed = true;
    lp_buf_init(&out, LP_HTTP1_HEAD_MAX);
    int err = write_head(server, request, &out);
    if (!err)
        err = begin(server, request, answer, lp_buf_span(&out), ret_exchange);
    lp_buf_release(&out);
    return err;
}

/* The body is not what its head said: to go on would make a second request of the rest. */
static int refuse_length(struct limpet_server *server, struct lp_seat_conn *conn)
{
    lp_seat_exchange_close(conn);
    lp_seat_conn_break(server, conn->id);
    return LIMPET_ERANGE;
}

static void read_chunk(struct limpet_server *server, lp_id id, struct lp_span bytes)
{
    char line[LP_HTTP1_CHUNK_LINE_BYTES];
    lp_seat_conn_read(server, id, lp_span(line, lp_http1_chunk_line(line, bytes.len)));
    lp_seat_conn_read(server, id, bytes);
    lp_seat_conn_read(server, id, LP_HTTP1_CHUNK_TAIL);
}

int limpet_exchange_body(struct limpet_server *server, uint64_t exchange, struct limpet_span bytes)
{
    struct lp_seat_conn *conn = get(server, exchange);
    if (!conn || !bytes.len)
        return LIMPET_OK;
    if (conn->is_chunked) {
        read_chunk(server, exchange, lp_lib_in(bytes));
        return LIMPET_OK;
    }
    if (bytes.len > conn->left)
        return refuse_length(server, conn);
    conn->left -= bytes.len;
    lp_seat_conn_read(server, exchange, lp_lib_in(bytes));
    return LIMPET_OK;
}

int limpet_exchange_end(struct limpet_server *server, uint64_t exchange)
{
    struct lp_seat_conn *conn = get(server, exchange);
    if (conn && conn->left)
        return refuse_length(server, conn);
    if (conn && conn->is_chunked)
        lp_seat_conn_read(server, exchange, LP_HTTP1_LAST_CHUNK);
    return LIMPET_OK;
}

void limpet_exchange_left(struct limpet_server *server, uint64_t exchange)
{
    if (get(server, exchange))
        lp_seat_conn_break(server, exchange);
}

/* --- the answer --- */

static bool is_hosts_own(enum lp_field_id id)
{
    return id == LP_FIELD_CONTENT_LENGTH || id == LP_FIELD_TRANSFER_ENCODING ||
        id == LP_FIELD_CONNECTION || id == LP_FIELD_KEEP_ALIVE;
}

static void tell_head(const struct lp_seat_conn *conn, const struct lp_head *head)
{
    struct limpet_field fields[LP_HEAD_FIELDS_MAX];
    struct limpet_answer_head outer = {.status = head->status, .fields = fields};
    for (uint32_t i = 0; i < head->field_count; i++)
        if (!is_hosts_own(head->fields[i].id))
            fields[outer.field_count++] = (struct limpet_field){
                lp_lib_out(head->fields[i].name), lp_lib_out(head->fields[i].value)};
    if (head->body == LP_BODY_LENGTH)
        outer.body_bytes = (int64_t)head->body_bytes;
    else if (head->body != LP_BODY_NONE)
        outer.body_bytes = -1;
    conn->answer.head(conn->answer.context, &outer);
}

static void finish(struct limpet_server *server, struct lp_seat_conn *conn, bool is_whole)
{
    conn->is_over = true;
    conn->answer.end(conn->answer.context, is_whole);
    lp_list_push_back(&server->over, &conn->over);
}

static void tell(
    struct limpet_server *server, struct lp_seat_conn *conn, const struct lp_http1_item *item)
{
    if (item->kind == LP_HTTP1_HEAD)
        tell_head(conn, item->head);
    else if (item->kind == LP_HTTP1_BODY)
        conn->is_blocked = !conn->answer.body(conn->answer.context, lp_lib_out(item->body));
    else
        finish(server, conn, true);
}

size_t lp_seat_exchange_take(
    struct limpet_server *server, struct lp_seat_conn *conn, struct lp_span bytes)
{
    size_t taken = 0;
    while (!conn->is_blocked && !conn->is_over) {
        struct lp_http1_item item;
        ptrdiff_t n = lp_http1_feed(&conn->parser, lp_span_from(bytes, taken), &item);
        LP_ASSERT(n >= 0 || n == LP_ENOMEM); /* it is our own writer's */
        taken += n > 0 ? (size_t)n : 0;
        if (n < 0)
            finish(server, conn, false);
        else if (item.kind == LP_HTTP1_NONE)
            break;
        else
            tell(server, conn, &item);
    }
    return conn->is_over ? bytes.len : taken;
}

void lp_seat_exchange_close(struct lp_seat_conn *conn)
{
    if (!conn->is_over)
        conn->answer.end(conn->answer.context, false);
    conn->is_over = true;
}

void limpet_exchange_resume(struct limpet_server *server, uint64_t exchange)
{
    struct lp_seat_conn *conn = get(server, exchange);
    if (!conn || !conn->is_blocked)
        return;
    conn->is_blocked = false;
    (void)lp_seat_exchange_take(server, conn, LP_SPAN("")); /* its end may be known already */
    lp_seat_conn_pump(server, exchange);
    lp_seat_close_over(server);
}
