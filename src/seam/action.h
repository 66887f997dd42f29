/* What the engine asks of the shell: the byte-level vocabulary downwards (design 3).
 *
 * An action is performed while `perform` runs; spans in it are borrowed for that call, with one
 * exception: the span of DRAIN stays valid and unmoved until LP_EV_DRAINED, LP_EV_BROKEN or the
 * CLOSE of that connection. The engine owns every buffer, cap and pause; the shell keeps nothing
 * of a connection's bytes. */
#ifndef LP_SEAM_ACTION_H
#define LP_SEAM_ACTION_H

#include "base/slab.h"
#include "base/span.h"

enum lp_action_kind {
    LP_ACT_CONNECT,  /* returns the new connection's id (> 0) or LP_E...; the outcome is an event,
                        never from within this call */
    LP_ACT_WRITE,    /* returns how many bytes were taken at once (>= 0) or LP_EBROKEN, after which
                        a BROKEN event follows too. Not while a DRAIN is out */
    LP_ACT_DRAIN,    /* takes the whole span when it can: LP_EV_DRAINED. One at a time */
    LP_ACT_READ_OFF, /* no READ until READ_ON; EOF and BROKEN may still be seen late */
    LP_ACT_READ_ON,
    LP_ACT_CLOSE, /* the id is dead on return */
    LP_ACT_TIMER, /* one TIMER event at at_us or soon after; replaces the last; UINT64_MAX: none */
    LP_ACT_MAIL,  /* to another engine of this process; copied; order per sender is kept */
    LP_ACT_STORE, /* get, put, lease: answered by LP_EV_STORE_REPLY or its time-out */
    LP_ACT_LOOK, /* look a host's addresses or a small file up: answered by LP_EV_LOOKED, never from
                    within this call; one at a time (LP_EEXISTS) */
    LP_ACT_LOG,  /* one line for the event log or the access log */
    LP_ACT_STOPPED, /* the engine is empty after LP_EV_STOP */
};

enum lp_close_how {
    LP_CLOSE_NOW,    /* both ways, at once: nothing more is wanted or owed */
    LP_CLOSE_LINGER, /* end our side, drop what still comes (bounded in bytes and time), then close:
                        so an answer written before is not lost to a reset */
    LP_CLOSE_RESET,  /* the peer must see that it was cut: a reset */
};

/* Where to connect: strings, because a resolver may be needed. STDIO is this process's standard
 * input and output, whatever they are: bytes from descriptor 0, bytes to descriptor 1, kind alone
 * matters. */
struct lp_endpoint {
    enum { LP_EP_TCP, LP_EP_UNIX, LP_EP_STDIO } kind;
    bool is_tls;
    bool is_public;      /* TCP: not to loopback, private or link-local addresses: UNREACHABLE */
    struct lp_span host; /* name, IPv4 or bare IPv6 for TCP; path for unix */
    uint16_t port;
    struct lp_span source; /* TCP: connect from this address of ours, numeric; empty: any */
    uint32_t timeout_ms;
};

enum lp_store_op { LP_STORE_GET, LP_STORE_PUT, LP_STORE_DELETE, LP_STORE_LEASE };
enum lp_log_level { LP_LOG_ERROR, LP_LOG_WARN, LP_LOG_INFO, LP_LOG_DEBUG, LP_LOG_ACCESS };

enum { LP_WRITE_PARTS_MAX = 8 };

struct lp_action {
    enum lp_action_kind kind;
    lp_id conn;
    union {
        struct lp_endpoint connect;
        struct {
            const struct lp_span *parts;
            uint32_t count; /* at most LP_WRITE_PARTS_MAX */
        } write;
        struct lp_span drain;
        enum lp_close_how close;
        uint64_t timer_at_us;
        struct {
            uint32_t to;
            struct lp_span bytes;
        } mail;
        struct {
            enum lp_store_op op;
            uint64_t ticket;
            struct lp_span key;
            struct lp_span value;
            uint64_t version;
            uint32_t ttl_s;
            uint32_t timeout_ms;
        } store;
        struct {
            bool is_file;
            struct lp_span text; /* a host's name, or a path */
        } look;
        struct {
            enum lp_log_level level;
            struct lp_span line; /* without line end; never holds a secret */
        } log;
    } u;
};

/* The shell as the engine sees it. In the program it is io/, in tests a simulator or a fuzzer. */
struct lp_shell {
    void *ctx;
    int64_t (*perform)(void *ctx, const struct lp_action *action);
};

#endif
