/* Ids on the way in: a session's, the token of an old-SSE address, a task's name. Each is a ticket,
 * or begins with an owner's id (gate/peers.c). */
#include "base/error.h"
#include "gate/engine_priv.h"

static enum lp_id_state state_of_error(int err)
{
    switch (err) {
    case LP_OK:
        return LP_ID_GOOD;
    case LP_EUNKNOWN_KEY:
        return LP_ID_UNKNOWN_KEY;
    case LP_EEXPIRED:
        return LP_ID_EXPIRED;
    default:
        return LP_ID_FORGED;
    }
}

/* A ticket that does not open here may be one of another entry: worth knowing for the log. */
static bool opens_elsewhere(struct lp_engine *e, const struct lp_exchange *x,
    struct lp_ticket_scope scope, struct lp_span text)
{
    enum { TRIES_MAX = 16 };
    struct lp_ticket ticket;
    for (uint32_t i = 0; i < e->conf->server_count && i < TRIES_MAX; i++) {
        scope.server = e->conf->servers[i].name;
        if (i != x->server->index &&
            !lp_ticket_open(&(struct lp_ticket_context){e->keyring, &scope, e->wall_ms, UINT64_MAX},
                text, e->room, &ticket))
            return true;
    }
    return false;
}

void lp_id_open(
    struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind, struct lp_span text)
{
    if (lp_peer_read_id(e, x, kind, &text))
        return;
    struct lp_ticket_scope scope = {.kind = kind, .server = x->server->conf->name};
    int err = lp_ticket_open(
        &(struct lp_ticket_context){e->keyring, &scope, e->wall_ms, x->server->conf->ticket_age_ms},
        text, e->room, &x->ticket);
    x->id_state = state_of_error(err);
    if (x->id_state == LP_ID_FORGED && opens_elsewhere(e, x, scope, text))
        x->id_state = LP_ID_OTHER_SERVER;
    if (err) {
        lp_metrics_add(&e->metrics, LP_METRIC_TICKETS_REFUSED, 1);
        return;
    }
    lp_metrics_add(&e->metrics, LP_METRIC_TICKETS_OPENED, 1);
    if (lp_arena_dup(&x->arena, x->ticket.upstream_id, &x->ticket.upstream_id))
        x->id_state = LP_ID_FORGED;
    if (!x->server->conf->cookie_jar)
        x->ticket.cookies = lp_span(NULL, 0);
    else if (lp_arena_dup(&x->arena, x->ticket.cookies, &x->ticket.cookies))
        x->id_state = LP_ID_FORGED;
    x->record.session = x->ticket.key.lo;
}

bool lp_id_may_be_ours(const struct lp_engine *e, struct lp_span text)
{
    bool are_readable = e->conf->is_sidecar && e->conf->ids == LP_IDS_OWNER;
    return are_readable || lp_span_starts(text, LP_SPAN(LP_TICKET_PREFIX));
}
