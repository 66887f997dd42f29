/* A line of a peers file, or what a look-up made of a name: a peer outside of any snapshot. The
 * rules are those of the key `peers` (value.c). */
#include "conf/conf_priv.h"

int lp_conf_peer_make(
    struct lp_span id, struct lp_span url, char room[LP_CONF_PEER_MAX], struct lp_conf_replica *ret)
{
    struct lp_conf_replica peer = {.weight = 1, .is_peer = true};
    if (id.len + url.len > LP_CONF_PEER_MAX)
        return LP_ETOO_LONG;
    if (id.len)
        memcpy(room, id.ptr, id.len);
    if (url.len)
        memcpy(room + id.len, url.ptr, url.len);
    peer.name = lp_span(room, id.len);
    int err = lp_conf_parse_replica(room + id.len, url.len, &peer.address, &peer.path);
    if (!err && peer.path.len && !lp_span_eq(peer.path, LP_SPAN("/")))
        err = LP_ESYNTAX;
    if (!err)
        *ret = peer;
    return err;
}
