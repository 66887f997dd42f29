/* The answer by which a platform's balancer is asked to send a request once more, to the instance
 * that owns the session (requirements [S3], [S5]): the header `fly-replay`. */
#ifndef LP_MCP_REPLAY_H
#define LP_MCP_REPLAY_H

#include "base/span.h"

enum {
    LP_REPLAY_BODY_MAX = 1000000, /* bytes: the platform keeps no longer body to send again */
    LP_REPLAY_TEXT_MAX = 64,
};

/* The header's value for an owner id (one that passed lp_owner_is_id; asserted), in `room`
 * (LP_REPLAY_TEXT_MAX bytes). `is_strict`: that instance or none ("instance=m2"); else another one
 * gets the request where that one does not answer in 5 s ("prefer_instance=m2;timeout=5s"), and
 * tells the client that the session is lost. */
struct lp_span lp_replay_value(struct lp_span owner, bool is_strict, char room[LP_REPLAY_TEXT_MAX]);

#endif
