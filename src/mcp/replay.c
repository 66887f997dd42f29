/* The value of `fly-replay` (mcp/replay.h). That the owner has passed its check is what keeps a
 * client from writing more than an instance's name into a header that a balancer obeys. Whether a
 * request may be replayed at all is decided in gate/route. */
#include "mcp/replay.h"

#include "mcp/owner.h"

static size_t put(char *room, size_t at, struct lp_span text)
{
    memcpy(room + at, text.ptr, text.len);
    return at + text.len;
}

struct lp_span lp_replay_value(struct lp_span owner, bool is_strict, char room[LP_REPLAY_TEXT_MAX])
{
    static const struct lp_span STRICT = {"instance=", 9}, PREFERS = {"prefer_instance=", 16};
    static const struct lp_span TIMEOUT = {";timeout=5s", 11};
    _Static_assert(16 + LP_OWNER_MAX + 11 <= LP_REPLAY_TEXT_MAX, "room suffices");
    LP_ASSERT(lp_owner_is_id(owner));
    size_t len = put(room, 0, is_strict ? STRICT : PREFERS);
    len = put(room, len, owner);
    if (!is_strict)
        len = put(room, len, TIMEOUT);
    return lp_span(room, len);
}
