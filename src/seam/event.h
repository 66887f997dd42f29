/* What the shell tells the engine: the byte-level vocabulary upwards (design 3).
 *
 * An event is handed over by value of its struct; every span in it lives until the engine's call
 * returns. Each event carries both clocks: `mono_us` never goes back and serves time-outs,
 * `wall_ms` may jump and serves tickets and cookies. Connections have ids given by the shell
 * (slot + generation, base/slab.h); after a BROKEN event or a CLOSE action the id is dead and no
 * further event names it. */
#ifndef LP_SEAM_EVENT_H
#define LP_SEAM_EVENT_H

#include "base/slab.h"
#include "base/span.h"

enum lp_event_kind {
    LP_EV_ACCEPTED,       /* conn, accepted: a client has connected */
    LP_EV_CONNECTED,      /* conn: what CONNECT asked for is there */
    LP_EV_CONNECT_FAILED, /* conn, error: LP_EREFUSED, LP_ETIMEOUT, LP_EUNREACHABLE; LP_ENOT_FOUND:
                             the name has no address; LP_ELIMIT: nothing is left on our side;
                             LP_EIO; one of LP_ETLS... */
    LP_EV_READ,           /* conn, bytes (64 KiB at most): the engine takes all of them */
    LP_EV_EOF,            /* conn: the peer sends no more; writing may still work */
    LP_EV_BROKEN,         /* conn: reset or failed; the id is dead; error: of standard input
                             and output why, else 0 */
    LP_EV_DRAINED,        /* conn: the span of the last DRAIN has been taken whole */
    LP_EV_TIMER,          /* the time of the last TIMER has come */
    LP_EV_MAIL,           /* mail: from another engine (or, later, a peer) */
    LP_EV_STORE_REPLY,    /* store: the answer to a STORE action, LP_ETIMEOUT included */
    LP_EV_LOOKED,         /* looked: what the last LOOK found */
    LP_EV_CONFIG,         /* config: a new immutable snapshot (first start and reload) */
    LP_EV_STOP,           /* begin a graceful stop: stopped when the engine says STOPPED */
};

/* What is known of a connection besides its bytes. */
struct lp_conn_facts {
    uint32_t listener; /* index of the listener in the configuration */
    bool is_admin;     /* it came in on the admin listener */
    bool is_loopback;  /* the listener's address is a loopback one, or a unix socket */
    bool is_tls;
    struct lp_span alpn;         /* "http/1.1", "h2" or empty */
    struct lp_span peer;         /* "192.0.2.7:1234", "[::1]:99" or "unix:" */
    struct lp_span local;        /* the address the client connected to, same form */
    int64_t unix_uid;            /* -1 when not known */
    struct lp_span proxied_peer; /* from a PROXY header; empty when none */
};

enum lp_store_status { LP_STORE_OK, LP_STORE_MISSING, LP_STORE_CONFLICT, LP_STORE_DOWN };

struct lp_event {
    enum lp_event_kind kind;
    uint64_t mono_us;
    uint64_t wall_ms;
    lp_id conn;
    union {
        struct lp_conn_facts accepted;
        int error;
        struct lp_span bytes;
        struct {
            uint32_t from; /* engine number */
            struct lp_span bytes;
        } mail;
        struct {
            uint64_t ticket; /* what the STORE action carried */
            enum lp_store_status status;
            struct lp_span value;
            uint64_t version;
        } store;
        struct {
            int error; /* LP_ENOT_FOUND: no such name or file; LP_ETIMEOUT: no name server answers;
                          LP_ELIMIT: the file is over 1 MiB, or memory is out; LP_EIO */
            struct lp_span text; /* the file, or numeric addresses, one a line */
        } looked;
        const void *config; /* const struct lp_conf *: owned by the app, alive until replaced */
    } u;
};

#endif
