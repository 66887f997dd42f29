/* The hop mark: how a Limpet tells another that it has already judged a request and passes it on
 * (requirements [S6]; cases OWN-05). It is a header that only a holder of the key can write.
 *
 *   Limpet-Hop: h1.<target>.base64url( key id 4 | wall ms 8 | nonce 16 | BLAKE2b-256 )
 *
 * The hash, keyed, covers method, path with query, session id, target, time and nonce; not the
 * body, which streams. Each mark is good once and for a short time. No I/O; time and nonce are
 * arguments. */
#ifndef LP_MCP_HOP_H
#define LP_MCP_HOP_H

#include "base/map.h"
#include "mcp/keyring.h"
#include "mcp/owner.h"

enum {
    LP_HOP_NONCE_BYTES = 16,
    LP_HOP_TEXT_MAX = 3 + LP_OWNER_MAX + 1 + 80, /* room that always suffices */
    LP_HOP_AGE_MAX_MS = 30000,                   /* older marks are refused */
    LP_HOP_AHEAD_MAX_MS = 5000,                  /* and those from further in the future */
    LP_HOP_FRESH_MS = 1000, /* younger marks are never refused for want of memory */
    LP_HOP_CACHE_MAX = 65536,
};

/* What a mark vouches for. */
struct lp_hop_claim {
    struct lp_span method;
    struct lp_span path;    /* as asked for, with its query */
    struct lp_span session; /* as the client sent it; empty: none */
    struct lp_span target;  /* owner id of who is meant to get it */
};

/* The nonces of good marks: the last LP_HOP_CACHE_MAX, in at most 5 MiB of memory. */
struct lp_hop_cell {
    struct lp_key nonce;
    uint64_t time_ms;
};

struct lp_hop_cache {
    struct lp_map seen;
    struct lp_hop_cell *ring;
    uint32_t next;
    uint64_t floor_ms; /* marks up to this time may have been forgotten */
};

enum lp_hop_state {
    LP_HOP_NONE,
    LP_HOP_GOOD,
    LP_HOP_FORGED,       /* no mark by its form, or by its hash: anybody can send that */
    LP_HOP_OTHER_TARGET, /* genuine, and meant for another owner */
    LP_HOP_STALE,        /* genuine, too old or from the future */
    LP_HOP_REPLAYED,     /* genuine, and seen before */
    LP_HOP_NO_MEMORY,    /* genuine, but it could not be remembered */
};

/* Writes a mark, with the first key, to `room` (LP_HOP_TEXT_MAX bytes). `target` is an owner id
 * (asserted); `nonce` must be fresh random bytes. */
struct lp_span lp_hop_sign(const struct lp_keyring *ring, const struct lp_hop_claim *claim,
    uint64_t wall_ms, const unsigned char nonce[LP_HOP_NONCE_BYTES], char room[LP_HOP_TEXT_MAX]);

/* What the text of a mark is worth for this request; claim->target is who we are. A good one is
 * remembered, so that it is good once. */
enum lp_hop_state lp_hop_judge(struct lp_hop_cache *cache, const struct lp_keyring *ring,
    const struct lp_hop_claim *claim, struct lp_span text, uint64_t wall_ms);

/* Who a mark says it is for: a checked owner id, or empty for what is none by its form. To be
 * believed only once the mark has been judged. */
struct lp_span lp_hop_target(struct lp_span text);

/* An empty cache; LP_ENOMEM. `alloc` may be NULL: the C library's. fini is harmless when done
 * twice. */
LP_MUST int lp_hop_cache_init(struct lp_hop_cache *cache, const struct lp_alloc *alloc);
void lp_hop_cache_fini(struct lp_hop_cache *cache);

#endif
