/* The engine: one thread's whole gateway, events in and actions out (design 1, 3, 4).
 *
 * It holds its connections (link), its exchanges, its view of the fleet and the homes of its share
 * of the sessions. Engines of one process share nothing but mail. No I/O, no clock, no entropy: the
 * program gives it a shell on libuv, the tests a simulator. */
#ifndef LP_GATE_ENGINE_H
#define LP_GATE_ENGINE_H

#include "conf/conf.h"
#include "link/link.h"
#include "mcp/keyring.h"
#include "obs/metrics.h"
#include "seam/action.h"
#include "seam/event.h"

struct lp_engine;

struct lp_engine_args {
    const struct lp_shell *shell;
    uint32_t number; /* of this engine, from 0 */
    uint32_t count;  /* of engines in the process, at most 64 */
    unsigned char seed[32];
    const struct lp_conf *conf;       /* immutable, outlives the engine */
    const struct lp_keyring *keyring; /* likewise */
    uint64_t mono_us;
    uint64_t wall_ms;
    /* Owner of the messages on the admin listener; NULL: such connections are closed. */
    const struct lp_message_ops *admin_ops;
    void *admin_ctx;
};

LP_MUST int lp_engine_new(const struct lp_engine_args *args, struct lp_engine **ret);
/* Drops everything that is open, in silence. */
void lp_engine_free(struct lp_engine *engine);

/* Handles one event; actions are performed before it returns. */
void lp_engine_event(struct lp_engine *engine, const struct lp_event *event);

/* Its own counters: other threads may read them (obs/metrics.h). */
const struct lp_metrics *lp_engine_metrics(const struct lp_engine *engine);

/* The connections, for the owner of the admin messages. */
struct lp_links *lp_engine_links(struct lp_engine *engine);

/* True once it takes new work: before LP_EV_STOP, with at least one replica of each server not
 * gone. Other threads may ask. */
bool lp_engine_is_ready(const struct lp_engine *engine);

/* What is known of the replicas (this engine's view), at most `max` rows; returns how many there
 * are. Spans point into the configuration. */
uint32_t lp_engine_replicas(
    const struct lp_engine *engine, struct lp_metrics_replica *rows, uint32_t max);

#endif
