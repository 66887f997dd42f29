/* What `limpet replica` offers: tools that show who answered and what a session remembers, and a
 * resource that changes. */
#ifndef LP_APP_REPLICA_TOOLS_H
#define LP_APP_REPLICA_TOOLS_H

#include <limpet-server.h>

/* What the tools know of the replica. */
struct lp_replica_self {
    const char *name;             /* what whoami says: letters, digits, - . _ */
    struct limpet_server *server; /* set by lp_replica_add_tools */
    int64_t notified;             /* so often notify has told of the resource */
};

/* Adds all of it; `self` must outlive the server. LIMPET_ENOMEM. */
LIMPET_MUST int lp_replica_add_tools(struct limpet_server *server, struct lp_replica_self *self);

#endif
