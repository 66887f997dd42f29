/* conf-host ADDRESS   the offer of conf_library.h below /mcp of a host program:
 * doc/examples/server/host.c as it is, but for what it offers. */
#include "conf_library.h"

static int conf_new(const struct limpet_alloc *alloc, const struct limpet_server_options *options,
    struct limpet_server **ret_server)
{
    (void)options;
    struct limpet_server_options ours = conf_options();
    return limpet_server_new(alloc, &ours, ret_server);
}

static int conf_add(struct limpet_server *server, const struct limpet_tool *tool)
{
    (void)tool; /* the host's own */
    return conf_offer_all(server, (char *)"host");
}

#define limpet_server_new conf_new
#define limpet_server_add_tool conf_add
#include "../../doc/examples/server/host.c"
