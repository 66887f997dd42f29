/* The scripts that work on a session in the store (serve/shared.h), each one step that nobody can
 * come between. They need Redis 6.2 or a Valkey: XTRIM with MINID, and scripts that read the time.
 *
 * KEYS[1] is the session, a hash; all keys of a session have the same hash tag, so they lie on one
 * node of a cluster:
 *
 * - {limpet:KEY}:s, that hash: v version, c capabilities, l level, p principal, n channels so far,
 * - g which GET has its stream (REPLICA.REQUEST; "-": none just now), e its events so far, d sent,
 * - sr and st revision and bytes of the program's state, u:URI a subscription,
 * - f:REPLICA when that replica has last said that it takes part, in ms.
 * - {limpet:KEY}:h:N, a stream: the events of channel N, <number>-0, fields c (bytes so far),
 * - w (the replica that wrote it), d (JSON; "" at its begin, "." at its end).
 * - {limpet:KEY}:c, a list: the channels that have one, oldest first.
 * - {limpet:KEY}:b, a stream: messages from replica to replica, fields t (to), f (from),
 * - k (LP_BOX_...), q (what the sender calls it), d.
 *
 * limpet:a is a stream of what is to be told to all sessions: fields w, d, u (address, or "").
 *
 * limpet:w:REPLICA is the channel of publish/subscribe that wakes a replica: "w" and a session's
 * key, or "a" and the name of a message that was taken; limpet:a wakes all. Nothing depends on them
 * but speed. */
#ifndef LP_SERVE_SHARED_LUA_H
#define LP_SERVE_SHARED_LUA_H

#include "base/span.h"

enum {
    LP_SHARED_ALIVE_MS = 10000, /* a replica that has not said for so long that it takes part */
    LP_SHARED_BOX_MS = 60000,   /* how long messages stay when nobody works on the session */
    LP_SHARED_CHANNELS = 32,    /* of a session, whose events are kept */
    LP_SHARED_BOX_MAX = 64,     /* messages that may wait; larger ones four */
    LP_SHARED_BOX_LARGE = 262144,
};

/* Before each: its keys; its arguments -> its answer. */
#define LP_SCRIPTS(X)                                                                              \
    /* s; idle ms, version, capabilities, level, principal -> 1 */                                 \
    X(CREATE)                                                                                      \
    /* s; idle ms, "1" for a channel number -> 0: there is no such session; else                   \
     * {number, v, c, l, p, g, count of replicas, replicas..., addresses...} */                    \
    X(USE)                                                                                         \
    /* s b c; tag -> 1: it was there, 0 */                                                         \
    X(END)                                                                                         \
    /* s; field, value; without a value: the field goes -> 1, 0: no such session */                \
    X(SAVE)                                                                                        \
    /* s; revision, value; without: only read -> 0: no such session, else {1: done, revision,      \
     * state} */                                                                                   \
    X(STATE)                                                                                       \
    /* s h c; idle ms, replica, tag, channel, id, data -> 1, 0: no such session */                 \
    X(APPEND)                                                                                      \
    /* s h; idle ms, replica, data, address -> its number; 0: there is no GET stream, or the       \
     * address (unless "") is not subscribed to */                                                 \
    X(TELL)                                                                                        \
    /* s; replica, last event that the client has, or "", the new g -> {event to go on from}, 0 */ \
    X(LISTEN)                                                                                      \
    /* s h; replica -> {last event's number, its writer}, 0: nothing is kept */                    \
    X(RESUME)                                                                                      \
    /* s b h...; idle ms, replica, our g or "-", sent up to, cursor of b, of each h -> 0: no       \
     * such session, else {g, {replicas}, cursor of b, {{id, {f, q, k, d}}...},                    \
     * {{id, {w, d}}...}...} */                                                                    \
    X(POLL)                                                                                        \
    /* s; replica, "1": it takes part no more, g that has ended, or "", sent up to -> 1 */         \
    X(LEAVE)                                                                                       \
    /* s b; from, name, kind, data, to... -> 0: no such session, else {ids}: empty when full */    \
    X(POST)                                                                                        \
    /* b; from, name, id -> 1 */                                                                   \
    X(TAKEN)                                                                                       \
    /* b; ids... -> how many of them nobody has taken; they are gone now */                        \
    X(WITHDRAW)                                                                                    \
    /* a; replica, data, address or "" -> 1 */                                                     \
    X(ANNOUNCE)                                                                                    \
    /* a; replica, cursor, or "" -> {cursor, {{data, address}...}}: what others have announced */  \
    X(HEAR)

enum lp_script {
#define X(name) LP_SCRIPT_##name,
    LP_SCRIPTS(X)
#undef X
        LP_SCRIPT_count
};

/* What a message in the box is. */
#define LP_BOX_REPLY "r"
#define LP_BOX_CANCEL "c"

extern const struct lp_span lp_shared_scripts[LP_SCRIPT_count];

#endif
