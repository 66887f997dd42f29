/* What a sidecar does beside a gateway (requirements [S2] to [S6]): owner ids in place of tickets,
 * hop marks, and what the request of another owner's session is passed on with.
 *
 * A session that is not ours is the matter of who owns it: nothing is remembered of it here. A
 * sidecar has one engine, so that one cache has seen all nonces. For a gateway everything here
 * leaves things as they are. */
#include "base/error.h"
#include "gate/engine_priv.h"
#include "mcp/replay.h"

enum { LOCAL = 0 /* the place of a sidecar's own replica */ };

static bool mints_owner_ids(const struct lp_engine *e)
{
    return e->conf->is_sidecar && e->conf->ids == LP_IDS_OWNER;
}

static struct lp_key key_of(const struct lp_engine *e, struct lp_span id)
{
    return lp_ring_key_hash_id(&e->keyring->keys[0], id);
}

/* --- who has passed it on already --- */

/* What a mark is good for: one session, or one task. */
static struct lp_hop_claim claim_of(const struct lp_exchange *x, struct lp_span target)
{
    struct lp_span session = lp_kept_value(&x->request, LP_FIELD_MCP_SESSION_ID);
    struct lp_span task = lp_kept_value(&x->request, LP_FIELD_MCP_NAME);
    return (struct lp_hop_claim){.method = x->request.method_name,
        .path = x->asked,
        .session = session.ptr ? session : task,
        .target = target};
}

static enum lp_reason judge_mark(struct lp_engine *e, struct lp_exchange *x, struct lp_span mark)
{
    struct lp_hop_claim claim = claim_of(x, e->conf->self);
    switch (lp_hop_judge(&e->hops, e->keyring, &claim, mark, e->wall_ms)) {
    case LP_HOP_NONE:
    case LP_HOP_FORGED:
        break; /* anybody can write that: an ordinary request */
    case LP_HOP_GOOD:
        x->came_by_peer = x->was_passed = true;
        break;
    case LP_HOP_OTHER_TARGET:
        x->was_passed = true;
        if (lp_engine_may_complain(e))
            lp_engine_say(e, LP_LOG_ERROR,
                "a peer sent us a request that is for another owner: its peer list has our address "
                "under a wrong id, ours is %.*s",
                (int)e->conf->self.len, e->conf->self.ptr);
        break;
    case LP_HOP_STALE:
    case LP_HOP_REPLAYED:
        return LP_REASON_hop_refused;
    case LP_HOP_NO_MEMORY:
        return LP_REASON_out_of_memory;
    }
    return LP_REASON_none;
}

enum lp_reason lp_peer_judge_hop(struct lp_engine *e, struct lp_exchange *x)
{
    if (!e->conf->self.len)
        return LP_REASON_none;
    struct lp_span mark = lp_kept_value(&x->request, LP_FIELD_LIMPET_HOP);
    /* The platform's words are believed only as "not again": a client that makes them up gets a 404
     * where it would have got its session. */
    x->was_passed = lp_kept_value(&x->request, LP_FIELD_FLY_REPLAY_SRC).ptr ||
        lp_kept_value(&x->request, LP_FIELD_FLY_REPLAY_FAILED).ptr;
    return mark.ptr ? judge_mark(e, x, mark) : LP_REASON_none;
}

bool lp_peer_is_question(const struct lp_engine *e, const struct lp_exchange *x)
{
    struct lp_span query;
    struct lp_span path = lp_span_split(x->request.path, '?', &query);
    return e->conf->self.len && x->request.method == LP_METHOD_GET &&
        lp_span_eq(path, LP_SPAN(LP_QUESTION_PATH));
}

/* --- whose session it is --- */

static void take_id(struct lp_engine *e, struct lp_exchange *x, struct lp_span id)
{
    x->id_state = LP_ID_GOOD;
    x->ticket = (struct lp_ticket){.key = key_of(e, id)};
    x->record.session = x->ticket.key.lo;
}

bool lp_peer_read_id(
    struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind, struct lp_span *text)
{
    struct lp_span self = e->conf->self;
    struct lp_span id = *text, owner, rest = id;
    bool is_plain = !self.len;
    if (!mints_owner_ids(e) || (is_plain && kind == LP_TICKET_SSE))
        return false;
    if (!is_plain && lp_owner_split(id, &owner, &rest)) {
        x->id_state = LP_ID_NO_OWNER;
        return true;
    }
    bool is_ours = is_plain || lp_span_eq(owner, self);
    if (is_ours && kind == LP_TICKET_SSE) { /* its rest is a ticket of our own */
        *text = rest;
        return false;
    }
    take_id(e, x, id);
    if (is_ours)
        x->ticket.upstream_id = rest;
    else
        x->owner = owner;
    return true;
}

static uint32_t find_peer(const struct lp_fleet *fleet, struct lp_span owner)
{
    for (uint32_t i = 0; i < fleet->count; i++)
        if (fleet->replicas[i].conf->is_peer && !fleet->replicas[i].is_absent &&
            lp_span_eq(fleet->replicas[i].conf->name, owner))
            return i;
    return fleet->count;
}

uint32_t lp_peer_owner(const struct lp_engine *e, struct lp_exchange *x)
{
    const struct lp_fleet *fleet = &x->server->fleet;
    if (x->owner.len)
        return find_peer(fleet, x->owner);
    if (mints_owner_ids(e) && !x->id_is_sse)
        return LOCAL;
    uint32_t owner = lp_fleet_find(fleet, x->ticket.ring_index, x->ticket.replica);
    if (owner < fleet->count && fleet->replicas[owner].conf->is_peer)
        x->owner = fleet->replicas[owner].conf->name;
    return owner;
}

bool lp_peer_is_too_large(const struct lp_exchange *x)
{
    return x->request.body == LP_BODY_CHUNKED || x->request.body_bytes > LP_REPLAY_BODY_MAX;
}

/* --- a new session's id --- */

static int keep(struct lp_exchange *x, struct lp_buf *id, struct lp_span *ret_text)
{
    int err = lp_arena_dup(&x->arena, lp_buf_span(id), ret_text);
    lp_buf_release(id);
    return err;
}

int lp_peer_mint(struct lp_engine *e, struct lp_exchange *x, enum lp_ticket_kind kind,
    struct lp_span inner, struct lp_span *ret_text)
{
    struct lp_buf id;
    bool is_plain = !e->conf->self.len;
    if (!mints_owner_ids(e) || (is_plain && kind == LP_TICKET_SSE))
        return LP_ENOT_FOUND;
    lp_buf_init(&id, LP_OWNER_TEXT_MAX);
    int err = is_plain ? lp_buf_append(&id, inner) : lp_owner_mint(e->conf->self, inner, &id);
    if (!err && kind != LP_TICKET_SSE)
        x->ticket = (struct lp_ticket){.key = key_of(e, lp_buf_span(&id))};
    int keep_err = keep(x, &id, ret_text);
    return err ? err : keep_err;
}

/* --- passing it on --- */

void lp_peer_add_fields(struct lp_engine *e, struct lp_exchange *x, struct lp_head *head)
{
    unsigned char nonce[LP_HOP_NONCE_BYTES];
    struct lp_hop_claim claim = claim_of(x, lp_leg_replica(x)->conf->name);
    lp_entropy_bytes(&e->entropy, nonce, sizeof nonce);
    struct lp_span mark = lp_hop_sign(e->keyring, &claim, e->wall_ms, nonce, e->mark);
    struct lp_span session = lp_kept_value(&x->request, LP_FIELD_MCP_SESSION_ID);
    if (session.ptr)
        (void)!lp_head_add(head, LP_FIELD_MCP_SESSION_ID, session);
    (void)!lp_head_add(head, LP_FIELD_LIMPET_HOP, mark);
}
