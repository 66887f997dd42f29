/* The tools of `limpet replica`: they show who answered and what a session remembers. */
#ifndef LP_APP_REPLICA_TOOLS_H
#define LP_APP_REPLICA_TOOLS_H

#include <limpet-server.h>

/* What the tools know of the replica. */
struct lp_replica_self {
    const char *name; /* what whoami says: letters, digits, - . _ */
};

/* Adds the tools; `self` must outlive the server. LIMPET_ENOMEM. */
LIMPET_MUST int lp_replica_add_tools(struct limpet_server *server, struct lp_replica_self *self);

#endif
