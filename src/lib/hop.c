/* Hop marks as the public header has them (limpet.h; mcp/hop.h). The target is checked here: it is
 * what somebody else's program gives. */
#include "mcp/hop.h"

#include "lib/glue.h"

_Static_assert((int)LIMPET_HOP_NONCE_BYTES == LP_HOP_NONCE_BYTES, "");
_Static_assert((int)LIMPET_HOP_ROOM == LP_HOP_TEXT_MAX + 1, "a zero byte has room too");

struct limpet_hops {
    struct lp_lib_object object;
    struct lp_hop_cache cache;
};

static struct lp_hop_claim claim_of(const struct limpet_hop *hop)
{
    return (struct lp_hop_claim){.method = lp_lib_in(hop->method),
        .path = lp_lib_in(hop->path),
        .session = lp_lib_in(hop->session),
        .target = lp_lib_in(hop->target)};
}

int limpet_hop_sign(const struct limpet_keyring *ring, const struct limpet_hop *hop,
    const unsigned char nonce[LIMPET_HOP_NONCE_BYTES], char *room, size_t *ret_len)
{
    struct lp_hop_claim claim = claim_of(hop);
    if (!lp_owner_is_id(claim.target))
        return LIMPET_ESYNTAX;
    struct lp_span mark = lp_hop_sign(&ring->ring, &claim, hop->wall_ms, nonce, room);
    room[mark.len] = '\0';
    *ret_len = mark.len;
    return LIMPET_OK;
}

int limpet_hops_new(const struct limpet_alloc *alloc, struct limpet_hops **ret_hops)
{
    struct limpet_hops *hops = lp_lib_new(alloc, sizeof *hops);
    if (!hops)
        return LIMPET_ENOMEM;
    int err = lp_hop_cache_init(&hops->cache, &hops->object.alloc);
    if (err)
        lp_lib_free(hops);
    else
        *ret_hops = hops;
    return err;
}

void limpet_hops_free(struct limpet_hops *hops)
{
    if (hops)
        lp_hop_cache_fini(&hops->cache);
    lp_lib_free(hops);
}

enum limpet_hop_state limpet_hop_judge(struct limpet_hops *hops, const struct limpet_keyring *ring,
    const struct limpet_hop *hop, struct limpet_span mark)
{
    struct lp_hop_claim claim = claim_of(hop);
    switch (lp_hop_judge(&hops->cache, &ring->ring, &claim, lp_lib_in(mark), hop->wall_ms)) {
    case LP_HOP_GOOD:
        return LIMPET_HOP_GOOD;
    case LP_HOP_OTHER_TARGET:
        return LIMPET_HOP_OTHER_TARGET;
    case LP_HOP_STALE:
        return LIMPET_HOP_STALE;
    case LP_HOP_REPLAYED:
        return LIMPET_HOP_REPLAYED;
    case LP_HOP_NO_MEMORY:
        return LIMPET_HOP_NO_MEMORY;
    case LP_HOP_NONE:
    case LP_HOP_FORGED:
        break;
    }
    return LIMPET_HOP_FORGED;
}
