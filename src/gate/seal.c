/* The id of a new session, the name of a new task: a ticket, unless this is a sidecar that mints
 * readable ones; what goes into a ticket, and whether the cookies of its first answer have room
 * there (requirements [G3]). */
#include "base/error.h"
#include "gate/engine_priv.h"

/* Without the cookies when they are what makes it too long; the id's length was looked at before.
 */
static void seal_with(const struct lp_ticket_context *context, struct lp_ticket *ticket,
    const unsigned char nonce[LP_TICKET_NONCE_BYTES], char *room, size_t *ret_len)
{
    int err = lp_ticket_seal(context, ticket, nonce, room, ret_len);
    if (err == LP_ERANGE) {
        ticket->cookies = lp_span(NULL, 0);
        err = lp_ticket_seal(context, ticket, nonce, room, ret_len);
    }
    LP_ASSERT(!err);
}

static int seal_ticket(struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind,
    struct lp_span upstream_id, struct lp_span *ret_text)
{
    unsigned char nonce[LP_TICKET_NONCE_BYTES];
    char text[LP_TICKET_TEXT_MAX];
    size_t len = 0;
    struct lp_ticket_scope scope = {.kind = kind, .server = x->server->conf->name};
    struct lp_ticket_context context = {e->keyring, &scope, e->wall_ms, UINT64_MAX};
    struct lp_ticket ticket = {
        .issued_ms = e->wall_ms, .upstream_id = upstream_id, .cookies = x->cookies};
    memcpy(ticket.replica, lp_leg_replica(x)->hash[0], sizeof ticket.replica);
    lp_entropy_bytes(&e->entropy, nonce, sizeof nonce);
    seal_with(&context, &ticket, nonce, text, &len);
    int err = lp_ticket_open(&context, lp_span(text, len), e->room, &x->ticket);
    LP_ASSERT(!err);
    x->ticket.upstream_id = x->ticket.cookies = lp_span(NULL, 0); /* they lie in e->room */
    if (ticket.cookies.len)
        x->cookies = lp_span(NULL, 0);
    err = kind == LP_TICKET_SSE ? lp_peer_mint(e, x, kind, lp_span(text, len), ret_text)
                                : LP_ENOT_FOUND;
    return err == LP_ENOT_FOUND ? lp_arena_dup(&x->arena, lp_span(text, len), ret_text) : err;
}

/* A readable id needs no ticket; the address of an old-SSE stream holds one behind its owner's id,
 * since what it stands for is a path at the replica. */
int lp_seal(struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind,
    struct lp_span upstream_id, struct lp_span *ret_text)
{
    int err =
        kind == LP_TICKET_SSE ? LP_ENOT_FOUND : lp_peer_mint(e, x, kind, upstream_id, ret_text);
    return err == LP_ENOT_FOUND ? seal_ticket(e, x, kind, upstream_id, ret_text) : err;
}
