/* A replica may be a balancer itself, or a function with instances that nobody can name: then it
 * loses sessions that it has just given out, and those that are opened in their place as well
 * (cases AFF-10). Nothing here can mend that, but it can be said. One that has forgotten everything
 * at once loses what was opened before that only, and is not blamed. */
#include "gate/engine_priv.h"

enum { TELL_US = 60 * 1000000, TOGETHER_US = 600 * 1000000 };

/* Since the last restart of the process, and by that name. */
static void tell(struct lp_engine *e, const struct lp_server_state *server, struct lp_replica *r)
{
    struct lp_span name = r->conf->name;
    r->lost_told_us = e->mono_us;
    lp_engine_say(e, LP_LOG_WARN,
        "backend %.*s loses sessions it has issued; it seems to be balanced itself (server %.*s, "
        "%llu sessions so far); list its instances as replicas, or set cookie_jar if it pins by "
        "cookie",
        (int)name.len, name.ptr, (int)server->conf->name.len, server->conf->name.ptr,
        (unsigned long long)r->lost_fresh);
}

void lp_losses_note(struct lp_engine *e, uint32_t server, uint32_t replica, uint64_t opened_us)
{
    struct lp_replica *r = &e->servers[server].fleet.replicas[replica];
    bool is_another = r->lost_us && e->mono_us - r->lost_us < TOGETHER_US;
    r->lost_fresh++;
    lp_metrics_add(&e->metrics, LP_METRIC_SESSIONS_LOST_FRESH, 1);
    if (!is_another)
        r->lost_us = e->mono_us;
    else if (opened_us > r->lost_us)
        r->loses_its_own = true;
    bool is_told = r->lost_told_us && e->mono_us - r->lost_told_us < TELL_US;
    if (is_another && opened_us > r->lost_us && !is_told)
        tell(e, &e->servers[server], r);
}
