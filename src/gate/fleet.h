/* The replicas of one server entry as one engine sees them: state, incarnation, sessions, kept
 * connections (requirements [G7], [G8]). A replica's state follows what its connections do:
 *
 *   up --refused once, time-out--> doubt --refused again, or gone_after without success--> gone
 *   any --a connection or an answer--> up
 *
 * The incarnation moves when connections broke or were refused since the last success: then the
 * process behind the address may be another one. Pure: time is an argument; connecting for a check
 * is the caller's. */
#ifndef LP_GATE_FLEET_H
#define LP_GATE_FLEET_H

#include "base/heap.h"
#include "base/slab.h"
#include "conf/conf.h"
#include "gate/route.h"
#include "mcp/keyring.h"
#include "mcp/owner.h"

enum {
    LP_POOL_MAX = 512,                 /* kept connections per replica and engine */
    LP_POOL_IDLE_DEFAULT_US = 1500000, /* until the replica says how long it keeps them */
    LP_CHECK_DOUBT_US = 250000,        /* between two checks while in doubt */
    LP_CHECK_GONE_US = 500000,         /* and while gone */
    LP_FOUND_MAX = 512,                /* peers that are looked up */
    LP_QUESTION_MAX = 64,              /* path and query */
};

struct lp_pooled {
    lp_id link;
    uint64_t since_us;
};

/* A peer that was looked up, not configured: what its place's conf points to. */
struct lp_found {
    struct lp_conf_replica conf;
    char text[LP_CONF_PEER_MAX];
    char owner[LP_OWNER_MAX]; /* its owner id, when it told it itself */
    bool is_listed;           /* the last look found it */
    uint64_t since_us;        /* when it was found first */
    lp_id question;           /* the connection on which it is asked for its owner id; 0: none */
    struct lp_timer patience;
    char asked[LP_QUESTION_MAX];
};

struct lp_replica {
    const struct lp_conf_replica *conf;
    struct lp_found *found; /* NULL: it is in the configuration */
    bool is_absent;         /* it has left; its place may be taken again */
    enum lp_replica_state state;
    bool unreachable;     /* in doubt by time-outs, not by refusals */
    bool broke;           /* a connection broke or was refused since the last success */
    uint32_t refused;     /* refusals in a row */
    int error;            /* of the last connection that failed; 0: none has */
    bool late;            /* the last answer asked of it did not come in time */
    uint32_t incarnation; /* from 1 */
    uint32_t sessions;    /* live, as far as known */
    uint32_t opening;     /* initializes under way from this engine */
    uint32_t waiting;     /* requests that wait for the head of its answer, GETs aside */
    uint64_t lost_fresh;  /* as engine 0 hears of it (gate/losses.c) */
    bool loses_its_own;   /* likewise */
    uint64_t lost_us;     /* likewise: when such losses began; 0: not yet */
    uint64_t lost_told_us;
    uint64_t rank; /* of its name: lower comes first for what is pinned */
    uint64_t doubt_since_us;
    uint64_t keep_us;      /* how long a kept connection may be idle */
    struct lp_timer check; /* next health check */
    lp_id check_link;
    uint32_t pooled_count;
    struct lp_pooled *pooled; /* LP_POOL_MAX, allocated with the fleet */
    unsigned char hash[LP_KEYRING_MAX][LP_REPLICA_HASH_BYTES];
};

struct lp_fleet {
    const struct lp_conf_server *conf;
    uint32_t count; /* places, absent replicas included: they never move */
    uint32_t room;  /* for that many */
    uint32_t turn;  /* round robin */
    struct lp_replica *replicas;
};

/* With `more` free places. */
LP_MUST int lp_fleet_init(struct lp_fleet *fleet, const struct lp_conf_server *conf,
    const struct lp_keyring *ring, uint32_t more);
void lp_fleet_fini(struct lp_fleet *fleet);

/* Puts a peer into the place `at`: an absent one that nobody uses any more, or fleet->count while
 * there is room. Takes `found`, also when it fails (LP_ENOMEM). */
LP_MUST int lp_fleet_put(
    struct lp_fleet *fleet, const struct lp_keyring *ring, uint32_t at, struct lp_found *found);
/* The owner id of a peer that had none. */
void lp_fleet_name(struct lp_replica *r, const struct lp_keyring *ring, struct lp_span owner);
/* There, and its owner id is known. */
bool lp_fleet_is_there(const struct lp_replica *r);

/* Why a connection could not be made: nothing was heard (a time-out, no route, no address of that
 * name), or somebody said no. When neither holds it failed on our side, which says nothing of the
 * replica. */
bool lp_fleet_is_silence(int connect_error);
bool lp_fleet_is_refusal(int connect_error);
/* The same in words, for the log: "connection refused". */
const char *lp_fleet_connect_sentence(int connect_error);

/* Each returns true when the state changed. */
bool lp_fleet_succeeded(struct lp_replica *r);
bool lp_fleet_refused(struct lp_replica *r, uint64_t now_us);
bool lp_fleet_timed_out(struct lp_replica *r, uint64_t now_us);
bool lp_fleet_check_age(struct lp_replica *r, uint64_t gone_after_us, uint64_t now_us);
/* A connection broke while it was in use: says nothing of the state, but of the incarnation. */
void lp_fleet_broke(struct lp_replica *r);
/* Takes over what another engine has seen. */
bool lp_fleet_adopt(struct lp_replica *r, enum lp_replica_state state, uint64_t now_us);

/* The replica that a ticket names under one key of the ring; fleet->count when there is none. */
uint32_t lp_fleet_find(const struct lp_fleet *fleet, uint32_t ring_index,
    const unsigned char hash[LP_REPLICA_HASH_BYTES]);

/* True when at least one replica is not gone; a sidecar's peers are not its replicas. */
bool lp_fleet_any_up(const struct lp_fleet *fleet);

/* Picks for a new session by the configured balance; for_session false: plain turn. Replicas that
 * are up come first, then those in doubt; `avoid` (an index, or UINT32_MAX) only if it is the only
 * one; peers are never picked. fleet->count when all are gone. */
uint32_t lp_fleet_pick(struct lp_fleet *fleet, bool for_session, uint32_t avoid);

/* The replica that all gateways pick for what is pinned to one: the first, by a hash of the names,
 * that is not gone. `avoid` as above. The order does not depend on the list's. */
uint32_t lp_fleet_pinned(const struct lp_fleet *fleet, uint32_t avoid);

const char *lp_replica_state_name(enum lp_replica_state state);

#endif
