/* A server that its program feeds (limpet-server.h): the program's calls become events of the seam,
 * the server's actions calls of its feeder. As in io/, no event is told from within an action: what
 * the feeder or a host does not take at once waits as the server's DRAIN. */
#include <limits.h>

#include "base/error.h"
#include "io/loop.h"
#include "libserver/libserver.h"

_Static_assert((int)LIMPET_CLOSE_NOW == LP_CLOSE_NOW, "");
_Static_assert((int)LIMPET_CLOSE_LINGER == LP_CLOSE_LINGER, "");
_Static_assert((int)LIMPET_CLOSE_RESET == LP_CLOSE_RESET, "");

enum { READ_MAX = 65536 };

/* Marks the numbers of connections that are fed, beside those of the loop that dials. */
static const lp_id FED = (lp_id)1 << 63;

struct lp_seat_conn *lp_seat_conn_get(const struct limpet_server *server, lp_id id)
{
    return id & FED ? lp_slab_get(&server->conns, id & ~FED) : NULL;
}

/* --- actions --- */

static size_t give(struct limpet_server *server, struct lp_seat_conn *conn, struct lp_span bytes)
{
    if (conn->is_exchange)
        return lp_seat_exchange_take(server, conn, bytes);
    size_t taken = server->feeder.write(server->feeder.context, conn->peer, lp_lib_out(bytes));
    return taken < bytes.len ? taken : bytes.len;
}

static int64_t write_parts(
    struct limpet_server *server, struct lp_seat_conn *conn, const struct lp_action *action)
{
    size_t total = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        size_t taken = part.len ? give(server, conn, part) : 0;
        total += taken;
        if (taken < part.len)
            break;
    }
    return (int64_t)total;
}

static void close_conn(
    struct limpet_server *server, struct lp_seat_conn *conn, enum lp_close_how how)
{
    if (how == LP_CLOSE_LINGER && conn->drain.len)
        how = LP_CLOSE_RESET; /* an answer cut short must not look whole */
    if (conn->is_exchange && !conn->is_new)
        lp_seat_exchange_close(conn);
    else if (!conn->is_new)
        server->feeder.close(server->feeder.context, conn->peer, (enum limpet_close)how);
    lp_seat_conn_free(server, conn);
}

static int64_t act_on(
    struct limpet_server *server, struct lp_seat_conn *conn, const struct lp_action *action)
{
    switch (action->kind) {
    case LP_ACT_WRITE:
        return write_parts(server, conn, action);
    case LP_ACT_DRAIN:
        conn->drain = action->u.drain;
        return LP_OK;
    case LP_ACT_READ_OFF:
    case LP_ACT_READ_ON:
        if (!conn->is_exchange) /* a host's pieces are few: the server holds them */
            server->feeder.pause(
                server->feeder.context, conn->peer, action->kind == LP_ACT_READ_OFF);
        return LP_OK;
    case LP_ACT_CLOSE:
        close_conn(server, conn, action->u.close);
        return LP_OK;
    default:
        return LP_EUNSUPPORTED;
    }
}

/* What is about no connection that is fed: the store's are on the loop. */
static int64_t act_below(struct limpet_server *server, const struct lp_action *action)
{
    const struct lp_shell *below = server->loop ? lp_loop_shell(server->loop) : NULL;
    if (below && !(action->conn & FED))
        return below->perform(below->ctx, action);
    bool sends = action->kind == LP_ACT_WRITE || action->kind == LP_ACT_DRAIN;
    return sends ? LP_EBROKEN : LP_OK; /* it is dead */
}

int64_t lp_seat_perform(struct limpet_server *server, const struct lp_action *action)
{
    struct lp_seat_conn *conn = lp_seat_conn_get(server, action->conn);
    if (conn)
        return act_on(server, conn, action);
    if (action->kind == LP_ACT_TIMER)
        server->alarm_us = action->u.timer_at_us;
    else if (action->kind == LP_ACT_STOPPED)
        server->is_stopped = true;
    else
        return act_below(server, action);
    return LP_OK;
}

/* --- events --- */

void lp_seat_dialled(struct limpet_server *server, const struct lp_event *event)
{
    LP_ASSERT(!server->is_inside); /* a handler, feeder or answer has fed its server */
    server->is_inside = true;
    lp_server_event(server->server, event);
    server->is_inside = false;
}

static void emit(struct limpet_server *server, struct lp_event *event)
{
    event->mono_us = lp_clock_mono_us();
    event->wall_ms = lp_clock_wall_ms();
    lp_seat_dialled(server, event);
}

void lp_seat_close_over(struct limpet_server *server)
{
    while (!lp_list_empty(&server->over)) {
        struct lp_seat_conn *conn = LP_CONTAINER(server->over.next, struct lp_seat_conn, over);
        lp_list_remove(&conn->over);
        emit(server, &(struct lp_event){.kind = LP_EV_EOF, .conn = conn->id});
    }
}

void lp_seat_emit(struct limpet_server *server, struct lp_event *event)
{
    emit(server, event);
    lp_seat_close_over(server);
}

/* --- connections --- */

struct lp_seat_conn *lp_seat_conn_new(struct limpet_server *server)
{
    lp_id id;
    struct lp_seat_conn *conn = lp_slab_new(&server->conns, &id);
    if (!conn)
        return NULL;
    conn->id = id | FED;
    conn->is_new = true;
    lp_list_init(&conn->over);
    return conn;
}

void lp_seat_conn_free(struct limpet_server *server, struct lp_seat_conn *conn)
{
    if (conn->is_exchange)
        lp_http1_release(&conn->parser);
    lp_list_remove(&conn->over);
    lp_slab_free(&server->conns, conn->id & ~FED);
}

int lp_seat_conn_accept(
    struct limpet_server *server, struct lp_seat_conn *conn, const struct limpet_peer *peer)
{
    lp_id id = conn->id;
    struct lp_event event = {.kind = LP_EV_ACCEPTED, .conn = id};
    event.u.accepted = (struct lp_conn_facts){.is_loopback = peer->is_loopback,
        .is_tls = peer->is_tls,
        .peer = lp_lib_in(peer->address),
        .unix_uid = -1};
    lp_seat_emit(server, &event);
    conn = lp_seat_conn_get(server, id);
    if (!conn)
        return LIMPET_ELIMIT;
    conn->is_new = false;
    return LIMPET_OK;
}

void lp_seat_conn_read(struct limpet_server *server, lp_id id, struct lp_span bytes)
{
    while (bytes.len && lp_seat_conn_get(server, id)) {
        size_t len = bytes.len < READ_MAX ? bytes.len : READ_MAX;
        struct lp_event event = {.kind = LP_EV_READ, .conn = id};
        event.u.bytes = lp_span(bytes.ptr, len);
        lp_seat_emit(server, &event);
        bytes = lp_span_from(bytes, len);
    }
}

void lp_seat_conn_pump(struct limpet_server *server, lp_id id)
{
    for (struct lp_seat_conn *conn; (conn = lp_seat_conn_get(server, id)) && conn->drain.len;) {
        size_t taken = give(server, conn, conn->drain);
        conn->drain = lp_span_from(conn->drain, taken);
        if (conn->drain.len)
            return;
        conn->drain = lp_span(NULL, 0);
        lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_DRAINED, .conn = id});
    }
}

void lp_seat_conn_break(struct limpet_server *server, lp_id id)
{
    struct lp_seat_conn *conn = lp_seat_conn_get(server, id);
    if (!conn)
        return;
    lp_seat_conn_free(server, conn);
    lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_BROKEN, .conn = id});
}

int limpet_server_connected(
    struct limpet_server *server, const struct limpet_peer *peer, uint64_t *ret_connection)
{
    const struct limpet_feeder *feeder = &server->feeder;
    if (!feeder->write || !feeder->pause || !feeder->close)
        return LIMPET_EUNSUPPORTED;
    struct lp_seat_conn *conn = lp_seat_conn_new(server);
    if (!conn)
        return LIMPET_ELIMIT;
    lp_id id = conn->id;
    conn->peer = peer->peer;
    int err = lp_seat_conn_accept(server, conn, peer);
    if (!err)
        *ret_connection = id;
    return err;
}

void limpet_server_received(
    struct limpet_server *server, uint64_t connection, struct limpet_span bytes)
{
    lp_seat_conn_read(server, connection, lp_lib_in(bytes));
}

void limpet_server_ended(struct limpet_server *server, uint64_t connection)
{
    if (lp_seat_conn_get(server, connection))
        lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_EOF, .conn = connection});
}

void limpet_server_writable(struct limpet_server *server, uint64_t connection)
{
    lp_seat_conn_pump(server, connection);
}

void limpet_server_broken(struct limpet_server *server, uint64_t connection)
{
    lp_seat_conn_break(server, connection);
}

/* --- turns --- */

int limpet_server_feed(struct limpet_server *server, const struct limpet_feeder *feeder)
{
    if (server->listens || server->is_fed)
        return LIMPET_EEXISTS;
    (void)pthread_mutex_lock(&server->mutex);
    server->is_fed = true;
    server->feeder = *feeder;
    (void)pthread_mutex_unlock(&server->mutex);
    return LIMPET_OK;
}

static int until_alarm_ms(const struct limpet_server *server)
{
    if (server->alarm_us == UINT64_MAX)
        return -1;
    uint64_t now_us = lp_clock_mono_us();
    uint64_t ms = server->alarm_us > now_us ? (server->alarm_us - now_us + 999) / 1000 : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

int limpet_server_timeout_ms(struct limpet_server *server)
{
    if (lp_seat_is_due(server))
        return 0;
    int alarm_ms = until_alarm_ms(server);
    int below_ms = server->loop ? lp_loop_timeout_ms(server->loop) : -1;
    bool is_below = alarm_ms < 0 || (below_ms >= 0 && below_ms < alarm_ms);
    return is_below ? below_ms : alarm_ms;
}

int limpet_server_fd(const struct limpet_server *server)
{
    return server->loop && !server->listens ? lp_loop_fd(server->loop) : -1;
}

void limpet_server_turn(struct limpet_server *server)
{
    if (server->listens)
        return; /* that does it by itself */
    if (server->loop)
        lp_loop_turn(server->loop);
    if (lp_seat_take_stop(server))
        lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_STOP});
    if (server->alarm_us <= lp_clock_mono_us()) {
        server->alarm_us = UINT64_MAX;
        lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_TIMER});
    }
    /* An event of no meaning sets the clock for what posts do, and sends what they, and others
     * between two events, have caused. Posts may feed. */
    lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_CONFIG});
    lp_seat_run_posts(server);
    lp_seat_emit(server, &(struct lp_event){.kind = LP_EV_CONFIG});
}

bool limpet_server_is_stopped(const struct limpet_server *server)
{
    return server->is_stopped;
}
