/* Owner ids and the replay header as the public header has them (limpet.h; mcp/owner.h,
 * mcp/replay.h). A text that is no owner id is bad input here, never a mistake of the program. */
#include "mcp/owner.h"

#include "lib/glue.h"
#include "mcp/replay.h"

_Static_assert((int)LIMPET_OWNER_MAX == LP_OWNER_MAX, "");
_Static_assert((int)LIMPET_OWNER_ROOM == LP_OWNER_TEXT_MAX, "");
_Static_assert((int)LIMPET_OWNER_NOWHERE == LP_OWNER_NOWHERE, "");
_Static_assert((int)LIMPET_OWNER_CONFIGURED == LP_OWNER_CONFIGURED, "");
_Static_assert((int)LIMPET_OWNER_MACHINE == LP_OWNER_MACHINE, "");
_Static_assert((int)LIMPET_OWNER_MACHINE_BAD == LP_OWNER_MACHINE_BAD, "");
_Static_assert((int)LIMPET_OWNER_HOSTNAME == LP_OWNER_HOSTNAME, "");
_Static_assert((int)LIMPET_REPLAY_ROOM == LP_REPLAY_TEXT_MAX, "");
_Static_assert(16 + LP_OWNER_MAX + 11 < LP_REPLAY_TEXT_MAX, "a zero byte has room too");

bool limpet_owner_is_id(struct limpet_span text)
{
    return lp_owner_is_id(lp_lib_in(text));
}

int limpet_owner_choose(const struct limpet_owner_sources *sources, struct limpet_owner *ret_owner)
{
    struct lp_owner owner;
    struct lp_owner_sources inner = {.configured = lp_lib_in(sources->configured),
        .machine = lp_lib_in(sources->machine),
        .hostname = lp_lib_in(sources->hostname),
        .takes_hostname = sources->takes_hostname};
    if (lp_owner_choose(&inner, &owner))
        return LIMPET_ESYNTAX;
    *ret_owner =
        (struct limpet_owner){.source = (enum limpet_owner_source)owner.source, .len = owner.len};
    memcpy(ret_owner->text, owner.text, owner.len);
    return LIMPET_OK;
}

int limpet_owner_mint(
    struct limpet_span owner, struct limpet_span rest, char *room, size_t *ret_len)
{
    struct lp_buf out = lp_lib_room(room, LIMPET_OWNER_ROOM);
    if (!limpet_owner_is_id(owner) || lp_owner_mint(lp_lib_in(owner), lp_lib_in(rest), &out))
        return LIMPET_ESYNTAX;
    *ret_len = out.len;
    return LIMPET_OK;
}

int limpet_owner_split(
    struct limpet_span id, struct limpet_span *ret_owner, struct limpet_span *ret_rest)
{
    struct lp_span owner, rest;
    int err = lp_owner_split(lp_lib_in(id), &owner, &rest);
    if (err)
        return err;
    *ret_owner = lp_lib_out(owner);
    *ret_rest = lp_lib_out(rest);
    return LIMPET_OK;
}

int limpet_replay_value(struct limpet_span owner, bool is_strict, char *room, size_t *ret_len)
{
    if (!limpet_owner_is_id(owner))
        return LIMPET_ESYNTAX;
    struct lp_span value = lp_replay_value(lp_lib_in(owner), is_strict, room);
    room[value.len] = '\0';
    *ret_len = value.len;
    return LIMPET_OK;
}
