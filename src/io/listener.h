/* Listening addresses: bound at start, one socket for each loop, accepting in the loop's thread.
 *
 * A second start on the same address fails with "in use", although the sockets of one process share
 * the port (SO_REUSEPORT): the address is first bound and listened on without sharing. IPv6 sockets
 * take IPv6 only, so that what is configured is what is bound. A unix socket file left over by a
 * dead process is replaced, one that is answered is not.
 *
 * When descriptors run out (EMFILE, or conn_max of the loop), the waiting client is accepted with a
 * spare descriptor and closed at once, accepting pauses for 100 ms, and the log says so at most
 * once a second. After LP_EV_STOP a loop takes what waits in the backlog and stops accepting,
 * except on the admin listener, which accepts until the engine has said STOPPED. */
#ifndef LP_IO_LISTENER_H
#define LP_IO_LISTENER_H

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

struct lp_listener;
struct lp_loop;

struct lp_listener_args {
    struct lp_span host; /* address or name (each of its addresses is bound); path for unix */
    uint16_t port;       /* 0: any free one */
    bool is_unix;
    bool is_admin;
    uint32_t index; /* for lp_conn_facts.listener */
};

/* Before the loops run. LP_EEXISTS: the address is in use; LP_EUNREACHABLE: no such address here;
 * LP_EIO; LP_ENOMEM; each with a sentence in `why`. */
LP_MUST int lp_listener_open(const struct lp_listener_args *args, struct lp_loop *const *loops,
    uint32_t loop_count, struct lp_buf *why, struct lp_listener **ret);

/* Whether lp_listener_open would succeed just now: the same errors and sentences. Nobody can
 * connect meanwhile, and nothing is removed. */
LP_MUST int lp_listener_probe(const struct lp_listener_args *args, struct lp_buf *why);

/* The port that is bound; 0 for unix. */
uint16_t lp_listener_port(const struct lp_listener *listener);

/* The first address as text: "127.0.0.1:8080", "[::1]:8080", "unix:/run/a.sock". */
const char *lp_listener_text(const struct lp_listener *listener);

/* After its loops were freed. Removes the unix socket file. NULL is fine. */
void lp_listener_free(struct lp_listener *listener);

#endif
