/* Fuzzes owner ids (mcp/owner.h) and the replay header (mcp/replay.h): the input is a session id as
 * a client sends it.
 *
 * Laws: what splits, minted again, is the same text; its owner has passed the one check, and is all
 * of the input that gets into the header. */
#include "mcp/owner.h"
#include "mcp/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_replay(struct lp_span owner)
{
    char room[LP_REPLAY_TEXT_MAX];
    struct lp_span value = lp_replay_value(owner, true, room);
    LP_ASSERT(lp_span_starts(value, LP_SPAN("instance=")));
    LP_ASSERT(lp_span_eq(lp_span_from(value, 9), owner));
    value = lp_replay_value(owner, false, room);
    LP_ASSERT(lp_span_starts(value, LP_SPAN("prefer_instance=")));
    LP_ASSERT(lp_span_eq(lp_span(value.ptr + 16, owner.len), owner));
    LP_ASSERT(lp_span_eq(lp_span_from(value, 16 + owner.len), LP_SPAN(";timeout=5s")));
}

static void check_split(struct lp_span id)
{
    struct lp_span owner, rest;
    struct lp_buf again;
    if (lp_owner_split(id, &owner, &rest))
        return;
    LP_ASSERT(lp_owner_is_id(owner) && id.len <= LP_OWNER_TEXT_MAX);
    lp_buf_init(&again, LP_OWNER_TEXT_MAX);
    int err = lp_owner_mint(owner, rest, &again);
    LP_ASSERT(!err && lp_span_eq(lp_buf_span(&again), id));
    lp_buf_release(&again);
    check_replay(owner);
}

/* Lines of the input as configured id, machine id and hostname. */
static void check_sources(struct lp_span in)
{
    struct lp_owner owner;
    struct lp_owner_sources sources = {.takes_hostname = in.len % 2};
    sources.configured = lp_span_split(in, '\n', &in);
    sources.machine = lp_span_split(in, '\n', &in);
    sources.hostname = in;
    if (lp_owner_choose(&sources, &owner)) {
        LP_ASSERT(sources.configured.len && !lp_owner_is_id(sources.configured));
        return;
    }
    LP_ASSERT(owner.len == 0 || lp_owner_is_id(lp_owner_span(&owner)));
    LP_ASSERT(!sources.configured.len || owner.source == LP_OWNER_CONFIGURED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_span in = lp_span((const char *)data, size);
    check_split(in);
    check_sources(in);
    return 0;
}
