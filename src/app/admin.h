/* The admin listener: /live, /ready, /metrics, /status (requirements [G14]). It runs on engine 0,
 * owns the messages of its admin connections, and only reads. */
#ifndef LP_APP_ADMIN_H
#define LP_APP_ADMIN_H

#include "gate/engine.h"

struct lp_admin;
struct lp_log;

struct lp_admin_args {
    const struct lp_conf *conf;
    const struct lp_keyring *keyring;
    /* Filled in before the loops run; outlives the admin. */
    struct lp_engine *const *engines;
    uint32_t engine_count;
    struct lp_log *log; /* whose troubles are told; may be NULL. Outlives the admin */
    uint64_t start_us;
};

/* NULL: out of memory. */
LP_MUST struct lp_admin *lp_admin_new(const struct lp_admin_args *args);
void lp_admin_free(struct lp_admin *admin);

/* For lp_engine_args of engine 0, with the admin as context. */
extern const struct lp_message_ops lp_admin_ops;

/* --- admin_status.c --- */

/* What /status tells. */
struct lp_status {
    const struct lp_conf *conf;
    const struct lp_keyring *keyring;
    bool is_ready;
    uint64_t uptime_s;
    const struct lp_metrics_replica *replicas; /* of all servers */
    uint32_t replica_count;
    struct lp_metrics_sessions sessions;
};

/* Appends it as JSON or as text for people. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_status_json(const struct lp_status *status, struct lp_buf *out);
LP_MUST int lp_status_text(const struct lp_status *status, struct lp_buf *out);

#endif
