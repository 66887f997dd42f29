/* State of the replicas, and the pick for what has no owner yet (gate/fleet.h). */
#include "gate/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A number that only the name decides (FNV-1a, then the finalizer of MurmurHash3, so that names
 * that differ in their last letter are not neighbours). */
static uint64_t rank_of(struct lp_span name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 0x100000001B3u;
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}

/* A place as nobody has used it; its array of connections stays. */
static int settle(
    struct lp_replica *r, const struct lp_conf_replica *conf, const struct lp_keyring *ring)
{
    *r = (struct lp_replica){.conf = conf,
        .incarnation = 1,
        .keep_us = LP_POOL_IDLE_DEFAULT_US,
        .rank = rank_of(conf->name),
        .pooled = r->pooled,
        .check = {.kind = r->check.kind, .owner = r->check.owner}};
    if (!r->pooled)
        r->pooled = calloc(LP_POOL_MAX, sizeof *r->pooled);
    for (uint32_t k = 0; k < ring->count; k++)
        lp_ring_key_hash_name(&ring->keys[k], conf->name, r->hash[k]);
    return r->pooled ? LP_OK : LP_ENOMEM;
}

int lp_fleet_init(struct lp_fleet *fleet, const struct lp_conf_server *conf,
    const struct lp_keyring *ring, uint32_t more)
{
    *fleet = (struct lp_fleet){.conf = conf, .room = conf->replica_count + more};
    fleet->replicas = calloc(fleet->room ? fleet->room : 1, sizeof *fleet->replicas);
    if (!fleet->replicas)
        return LP_ENOMEM;
    fleet->count = conf->replica_count;
    int err = LP_OK;
    for (uint32_t i = 0; i < fleet->count && !err; i++)
        err = settle(&fleet->replicas[i], &conf->replicas[i], ring);
    return err;
}

int lp_fleet_put(
    struct lp_fleet *fleet, const struct lp_keyring *ring, uint32_t at, struct lp_found *found)
{
    struct lp_replica *r = &fleet->replicas[at];
    LP_ASSERT(at < fleet->count ? r->is_absent : at == fleet->count && at < fleet->room);
    free(r->found);
    r->found = NULL;
    if (settle(r, &found->conf, ring)) {
        free(found);
        return LP_ENOMEM;
    }
    r->found = found;
    if (at == fleet->count)
        fleet->count++;
    return LP_OK;
}

void lp_fleet_name(struct lp_replica *r, const struct lp_keyring *ring, struct lp_span owner)
{
    LP_ASSERT(r->found && !r->conf->name.len && lp_owner_is_id(owner));
    memcpy(r->found->owner, owner.ptr, owner.len);
    r->found->conf.name = lp_span(r->found->owner, owner.len);
    for (uint32_t k = 0; k < ring->count; k++)
        lp_ring_key_hash_name(&ring->keys[k], owner, r->hash[k]);
}

bool lp_fleet_is_there(const struct lp_replica *r)
{
    return !r->is_absent && r->conf->name.len;
}

void lp_fleet_fini(struct lp_fleet *fleet)
{
    for (uint32_t i = 0; fleet->replicas && i < fleet->room; i++) {
        free(fleet->replicas[i].pooled);
        free(fleet->replicas[i].found);
    }
    free(fleet->replicas);
    *fleet = (struct lp_fleet){0};
}

static bool set_state(struct lp_replica *r, enum lp_replica_state state)
{
    bool changed = r->state != state;
    r->state = state;
    return changed;
}

/* The process behind the address may be another one from here on. */
static void suspect(struct lp_replica *r)
{
    if (!r->broke)
        r->incarnation++;
    r->broke = true;
}

bool lp_fleet_succeeded(struct lp_replica *r)
{
    r->broke = false;
    r->unreachable = false;
    r->refused = 0;
    r->doubt_since_us = 0;
    return r->state == LP_REPLICA_DRAINING ? false : set_state(r, LP_REPLICA_UP);
}

static bool enter_doubt(struct lp_replica *r, uint64_t now_us)
{
    if (r->state == LP_REPLICA_GONE)
        return false;
    if (!r->doubt_since_us)
        r->doubt_since_us = now_us;
    return set_state(r, LP_REPLICA_DOUBT);
}

bool lp_fleet_is_refusal(int connect_error)
{
    return connect_error == LP_EREFUSED;
}

/* The process there may be well, with its sessions: what is wrong is a certificate, or what stands
 * between. */
static bool is_tls_error(int connect_error)
{
    return connect_error == LP_ETLS || connect_error == LP_ETLS_UNTRUSTED ||
        connect_error == LP_ETLS_NAME || connect_error == LP_ETLS_EXPIRED;
}

bool lp_fleet_is_silence(int connect_error)
{
    return connect_error == LP_ETIMEOUT || connect_error == LP_EUNREACHABLE ||
        connect_error == LP_ENOT_FOUND || is_tls_error(connect_error);
}

bool lp_fleet_refused(struct lp_replica *r, uint64_t now_us)
{
    suspect(r);
    r->refused++;
    /* Nothing listens at the address, twice: memory sessions of a process there are gone. */
    if (r->refused >= 2)
        return set_state(r, LP_REPLICA_GONE);
    return enter_doubt(r, now_us);
}

bool lp_fleet_timed_out(struct lp_replica *r, uint64_t now_us)
{
    r->unreachable = true;
    return enter_doubt(r, now_us);
}

bool lp_fleet_check_age(struct lp_replica *r, uint64_t gone_after_us, uint64_t now_us)
{
    if (r->state != LP_REPLICA_DOUBT || now_us - r->doubt_since_us < gone_after_us)
        return false;
    suspect(r);
    return set_state(r, LP_REPLICA_GONE);
}

void lp_fleet_broke(struct lp_replica *r)
{
    suspect(r);
}

bool lp_fleet_adopt(struct lp_replica *r, enum lp_replica_state state, uint64_t now_us)
{
    if (state == LP_REPLICA_UP)
        return lp_fleet_succeeded(r);
    suspect(r);
    if (!r->doubt_since_us)
        r->doubt_since_us = now_us;
    return set_state(r, state);
}

uint32_t lp_fleet_find(const struct lp_fleet *fleet, uint32_t ring_index,
    const unsigned char hash[LP_REPLICA_HASH_BYTES])
{
    for (uint32_t i = 0; i < fleet->count; i++)
        if (lp_fleet_is_there(&fleet->replicas[i]) &&
            memcmp(fleet->replicas[i].hash[ring_index], hash, LP_REPLICA_HASH_BYTES) == 0)
            return i;
    return fleet->count;
}

bool lp_fleet_any_up(const struct lp_fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->count; i++)
        if (fleet->replicas[i].state != LP_REPLICA_GONE && !fleet->replicas[i].conf->is_peer)
            return true;
    return false;
}

/* Lower is better: sessions in proportion to the weight. */
static bool has_less(const struct lp_replica *a, const struct lp_replica *b)
{
    uint64_t load_a = (uint64_t)(a->sessions + a->opening) * b->conf->weight;
    uint64_t load_b = (uint64_t)(b->sessions + b->opening) * a->conf->weight;
    return load_a < load_b;
}

static bool is_better(const struct lp_replica *a, const struct lp_replica *b, bool by_load)
{
    if (a->late != b->late)
        return b->late; /* one that hangs has few sessions, and must not attract more */
    return by_load && has_less(a, b);
}

/* The best of those in `state`, looking at all of them from the turn on; count when there is none.
 */
static uint32_t pick_in_state(
    const struct lp_fleet *fleet, enum lp_replica_state state, bool by_load, uint32_t avoid)
{
    uint32_t best = fleet->count;
    for (uint32_t i = 0; i < fleet->count; i++) {
        uint32_t at = (fleet->turn + i) % fleet->count;
        const struct lp_replica *r = &fleet->replicas[at];
        if (at == avoid || r->state != state || r->conf->is_peer)
            continue;
        if (best == fleet->count || is_better(r, &fleet->replicas[best], by_load))
            best = at;
    }
    return best;
}

uint32_t lp_fleet_pick(struct lp_fleet *fleet, bool for_session, uint32_t avoid)
{
    static const enum lp_replica_state ORDER[] = {LP_REPLICA_UP, LP_REPLICA_DOUBT};
    bool by_load = for_session && fleet->conf->balance == LP_BALANCE_LEAST_SESSIONS;
    for (size_t i = 0; i < sizeof ORDER / sizeof *ORDER; i++) {
        uint32_t at = pick_in_state(fleet, ORDER[i], by_load, avoid);
        if (at < fleet->count) {
            fleet->turn = (at + 1) % fleet->count;
            return at;
        }
    }
    if (avoid < fleet->count && fleet->replicas[avoid].state != LP_REPLICA_GONE)
        return avoid;
    return fleet->count;
}

uint32_t lp_fleet_pinned(const struct lp_fleet *fleet, uint32_t avoid)
{
    uint32_t best = fleet->count;
    for (uint32_t i = 0; i < fleet->count; i++) {
        const struct lp_replica *r = &fleet->replicas[i];
        if (i == avoid || r->state == LP_REPLICA_GONE || r->is_absent || r->conf->is_peer)
            continue;
        if (best == fleet->count || r->rank < fleet->replicas[best].rank)
            best = i;
    }
    bool is_alone = best == fleet->count && avoid < fleet->count;
    return is_alone && fleet->replicas[avoid].state != LP_REPLICA_GONE ? avoid : best;
}

const char *lp_fleet_connect_sentence(int connect_error)
{
    switch (connect_error) {
    case LP_EREFUSED:
        return "connection refused";
    case LP_ETIMEOUT:
        return "no answer to the connection in time";
    case LP_EUNREACHABLE:
        return "no way to its address";
    case LP_ENOT_FOUND:
        return "its name was not found";
    case LP_ELIMIT:
        return "no file descriptor, memory or connection is left in this process; raise "
               "LimitNOFILE "
               "(ulimit -n) or lower connections_max";
    case LP_ETLS_UNTRUSTED:
        return "nobody we trust has signed its certificate; name its CA with tls_ca";
    case LP_EIO:
        return "the system does not allow it; of a unix socket, look at its permissions";
    default:
        return lp_error_sentence(connect_error);
    }
}

const char *lp_replica_state_name(enum lp_replica_state state)
{
    switch (state) {
    case LP_REPLICA_UP:
        return "up";
    case LP_REPLICA_DOUBT:
        return "doubt";
    case LP_REPLICA_GONE:
        return "gone";
    case LP_REPLICA_DRAINING:
        return "draining";
    }
    return "";
}
