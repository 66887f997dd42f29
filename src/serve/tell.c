/* What the program tells its clients without being asked (serve/server.h): on the GET streams of
 * the sessions that have one, and on those of subscriptions/listen. */
#include "serve/server_priv.h"
#include "serve/shared.h"
#include "serve/uris.h"

void lp_tell_write_log(
    struct lp_server *server, enum lp_level level, const char *logger, struct lp_span data)
{
    struct lp_out *out = &server->scratch;
    lp_out_clear(out);
    lp_out_printf(out,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"%s\"",
        lp_rpc_level(level));
    if (logger) {
        lp_out_str(out, ",\"logger\":");
        lp_out_quote(out, lp_span_str(logger));
    }
    lp_out_str(out, ",\"data\":");
    lp_out_put(out, data);
    lp_out_str(out, "}}");
}

/* Sends what is in scratch; to the subscribers of `uri` when it is not NULL. */
static void send_to_all(struct lp_server *server, const struct lp_span *uri)
{
    if (server->shared) {
        if (!server->scratch.failed)
            lp_shared_announce(server, lp_out_span(&server->scratch), uri ? *uri : LP_SPAN(""));
        return;
    }
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_session *s; (s = lp_slab_next(&server->sessions, &cursor, &id));) {
        struct lp_channel *ch = lp_channel_get(server, s->standalone);
        bool is_wanted = ch && (!uri || lp_uris_has(&s->subscriptions, *uri));
        if (is_wanted && !server->scratch.failed)
            (void)lp_channel_tell(server, s, lp_out_span(&server->scratch));
    }
}

void lp_server_list_changed(struct lp_server *server, enum lp_list_kind kind)
{
    static const char *const KINDS[] = {"tools", "resources", "prompts"};
    LP_ASSERT(server->offer->lists_change);
    lp_out_clear(&server->scratch);
    lp_out_printf(&server->scratch,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s/list_changed\"}", KINDS[kind]);
    send_to_all(server, NULL);
    lp_listen_list_changed(server, kind);
}

void lp_server_resource_updated(struct lp_server *server, struct lp_span uri)
{
    struct lp_out *out = &server->scratch;
    LP_ASSERT(server->offer->has_subscriptions);
    lp_out_clear(out);
    lp_out_str(out,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":");
    lp_out_quote(out, uri);
    lp_out_str(out, "}}");
    send_to_all(server, &uri);
    lp_listen_resource_updated(server, uri);
}
