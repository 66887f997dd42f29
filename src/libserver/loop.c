/* A server on its own loop (limpet-server.h; io/loop.h, io/listener.h): one thread, the caller's.
 */
#include "io/loop.h"

#include <stdio.h>

#include "base/error.h"
#include "io/listener.h"
#include "io/signals.h"
#include "io/tls_trust.h"
#include "libserver/libserver.h"
#include "store/store.h"
#include "wire/uri.h"

/* Clients', and those to the nodes of a store. */
enum { CONN_MAX = LP_SERVER_CONNECTIONS_MAX + LP_STORE_NODES_MAX + 16 };

/* --- listening --- */

static int parse(const char *address, struct lp_listener_args *ret)
{
    struct lp_uri uri;
    uint64_t port = 0;
    struct lp_span text = lp_span_str(address);
    if (lp_span_starts(text, LP_SPAN("unix:"))) {
        *ret = (struct lp_listener_args){.host = lp_span_from(text, 5), .is_unix = true};
        return LIMPET_OK;
    }
    if (lp_uri_parse_authority(text, &uri) || !uri.host.len || !lp_span_to_u64(uri.port, &port) ||
        port > UINT16_MAX)
        return LIMPET_ESYNTAX;
    *ret = (struct lp_listener_args){.host = uri.host, .port = (uint16_t)port};
    return LIMPET_OK;
}

static void on_event(void *ctx, const struct lp_event *event)
{
    struct limpet_server *server = ctx;
    if (server->listens)
        lp_seat_event(server, event);
    else
        lp_seat_dialled(server, event);
}

int lp_seat_make_loop(struct limpet_server *server, bool dials_tls)
{
    struct lp_buf why;
    lp_buf_init(&why, LP_SEAT_WHY_MAX);
    int err = dials_tls ? lp_tls_trust_new(&(struct lp_tls_trust_args){0}, &why, &server->trust)
                        : LIMPET_OK;
    lp_buf_release(&why);
    if (!err)
        server->loop =
            lp_loop_new(&(struct lp_loop_args){.conn_max = CONN_MAX, .trust = server->trust});
    if (!server->loop) /* which of the two was missing is not told */
        return lp_seat_fail(
            server, LIMPET_ENOMEM, LP_SPAN("out of memory or of open files (ulimit -n)"));
    lp_loop_attach(server->loop, server, on_event);
    lp_loops_join(&server->loop, 1);
    return LIMPET_OK;
}

/* Before anybody can know that it listens: a signal that comes early must not be lost. */
static int take_process(struct limpet_server *server)
{
    if (!server->owns_process)
        return LIMPET_OK;
    (void)lp_process_setup();
    return lp_signals_open(server->loop, &(struct lp_signals_args){0});
}

/* From now on the loop is the server's shell. Nothing has happened yet that set its timer. */
static int begin(struct limpet_server *server)
{
    int err = server->loop ? LIMPET_OK : lp_seat_make_loop(server, false);
    if (err)
        return err;
    (void)pthread_mutex_lock(&server->mutex);
    server->listens = true;
    (void)pthread_mutex_unlock(&server->mutex);
    err = take_process(server);
    return err ? err : lp_seat_catch_up(server);
}

static void write_url(struct limpet_server *server, const struct lp_listener_args *args)
{
    const char *text = lp_listener_text(server->listeners[0]);
    if (args->is_unix)
        (void)snprintf(server->url, sizeof server->url, "%s", text);
    else
        (void)snprintf(server->url, sizeof server->url, "http://%s%s", text, server->path);
}

static int open_listener(struct limpet_server *server, const struct lp_listener_args *args)
{
    struct lp_buf why;
    lp_buf_init(&why, LP_SEAT_WHY_MAX);
    struct lp_listener **place = &server->listeners[server->listener_count];
    int err = lp_listener_open(args, &server->loop, 1, &why, place);
    if (err)
        (void)lp_seat_fail(server, err, lp_buf_span(&why));
    else if (server->listener_count++ == 0)
        write_url(server, args);
    lp_buf_release(&why);
    return err;
}

int limpet_server_listen(struct limpet_server *server, const char *address)
{
    struct lp_listener_args args;
    if (parse(address, &args))
        return lp_seat_fail(server, LIMPET_ESYNTAX,
            LP_SPAN(
                "the address to listen on must be host:port, as 127.0.0.1:3000, or unix:/path"));
    if (server->is_fed)
        return lp_seat_fail(server, LIMPET_EEXISTS, LP_SPAN("a server that is fed cannot listen"));
    if (server->listener_count == LP_SEAT_LISTENERS)
        return lp_seat_fail(
            server, LIMPET_ELIMIT, LP_SPAN("a server listens on at most 8 addresses"));
    int err = server->listens ? LIMPET_OK : begin(server);
    args.index = server->listener_count;
    return err ? err : open_listener(server, &args);
}

const char *limpet_server_url(const struct limpet_server *server)
{
    return server->url;
}

/* --- running --- */

int limpet_server_run(struct limpet_server *server)
{
    if (!server->listener_count || server->has_run)
        return lp_seat_fail(
            server, LIMPET_EUNSUPPORTED, LP_SPAN("a server runs once, after limpet_server_listen"));
    server->has_run = true;
    lp_loop_run(server->loop);
    return LIMPET_OK;
}

void lp_seat_close(struct limpet_server *server)
{
    lp_loop_free(server->loop);
    lp_tls_trust_free(server->trust);
    for (uint32_t i = 0; i < server->listener_count; i++)
        lp_listener_free(server->listeners[i]);
}
