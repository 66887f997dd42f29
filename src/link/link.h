/* Connections as carriers of HTTP messages: bytes and back-pressure on one side, streams on the
 * other.
 *
 * One struct lp_links per engine holds all its connections. It gets the connection events of the
 * shell and calls the owners' lp_message_ops; the owners send with the functions below. Everything
 * sent during one event leaves in one write at lp_links_flush. No clock: the time is that of the
 * event being handled. */
#ifndef LP_LINK_LINK_H
#define LP_LINK_LINK_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "link/message.h"
#include "seam/action.h"
#include "seam/event.h"

enum {
    LP_LINK_HIGH_WATER = 65536, /* backlog from which send_body says "stop" */
    LP_LINK_LOW_WATER = 16384,  /* backlog at which `writable` is called */
    LP_LINK_OUT_MAX = 1 << 20,  /* a backlog that no rule-abiding owner reaches */
    LP_LINK_HELD_MAX = 1 << 18, /* input that waits: at most this */
    LP_LINK_PEER_MAX = 56,
    LP_LINK_BODY_RATE = 1024, /* bytes a second that a body has to bring, see request_us */
    LP_TIMER_LINK = 1,        /* lp_timer.kind of all timers of this room */
};

struct lp_link_limits {
    uint64_t idle_us; /* a client's connection between two requests */
    /* A request's head, from its first byte on, however its bytes are spread; and then as much of
     * its body as LP_LINK_BODY_RATE makes of that time, again and again. While the owner has paused
     * the stream no time passes. */
    uint64_t request_us;
    uint64_t stalled_us; /* a peer that takes nothing of what waits for it */
    uint64_t parting_us; /* an idle client's connection after lp_links_stop; 0: none stays */
};

struct lp_links {
    const struct lp_shell *shell;
    struct lp_heap *timers;
    struct lp_link_limits limits;
    struct lp_slab slab;
    lp_id *by_conn; /* shell's connection slot -> link */
    uint32_t by_conn_count;
    struct lp_list dirty;
    struct lp_list dying;
    struct lp_head *head; /* where parsed heads are put; one is enough */
    struct lp_buf spare;  /* memory of the last output that was written whole, for the next one */
    uint64_t now_us;
    uint32_t client_count; /* connections that came in */
    uint32_t admin_count;  /* of these, on the admin listener */
    bool stopping;
    uint64_t stop_us; /* since when */
};

LP_MUST int lp_links_init(struct lp_links *links, const struct lp_shell *shell,
    struct lp_heap *timers, const struct lp_link_limits *limits);
/* Closes what is open, without callbacks. */
void lp_links_fini(struct lp_links *links);

/* Takes a new client connection over. LP_ENOMEM: it was closed. */
LP_MUST int lp_link_accept(struct lp_links *links, const struct lp_event *accepted,
    const struct lp_message_ops *ops, void *ctx);

/* Begins a connection to a replica; `connected` follows. Returns the link at *ret. */
LP_MUST int lp_link_open(struct lp_links *links, const struct lp_endpoint *to,
    const struct lp_message_ops *ops, void *ctx, lp_id *ret);

/* Handles a connection event, or a timer of this room (lp_links_timer). */
void lp_links_event(struct lp_links *links, const struct lp_event *event);
void lp_links_timer(struct lp_links *links, struct lp_timer *timer, uint64_t now_us);

/* Writes what has gathered and frees what has died. At the end of every event. */
void lp_links_flush(struct lp_links *links);

/* From now on each answer says that its client's connection ends with it. An idle one, and one
 * whose answer had promised that it stays, gets another `parting_us`: a request that is on its way
 * is still answered (RFC 9112 9.6). */
void lp_links_stop(struct lp_links *links);

/* Cuts every client's connection, without callbacks. */
void lp_links_cut(struct lp_links *links);

/* --- one connection --- */

/* The tag of the stream in progress, or of the next one. */
void lp_link_set_tag(struct lp_links *links, lp_id link, uint64_t tag);
/* A stream for a new request on a replica's connection that is_idle. */
struct lp_stream lp_link_begin(struct lp_links *links, lp_id link);
/* Alive, connected, no stream in progress, and fit for another one. */
bool lp_link_is_idle(const struct lp_links *links, lp_id link);
/* Ends a connection now; no callback. Unknown ids are ignored. */
void lp_link_close(struct lp_links *links, lp_id link, enum lp_close_how how);
/* "192.0.2.7:1234": valid as long as the link. */
struct lp_span lp_link_peer(const struct lp_links *links, lp_id link);

struct lp_link_facts {
    uint32_t listener;
    bool is_admin;
    bool is_loopback;
    bool is_tls;
};
struct lp_link_facts lp_link_facts(const struct lp_links *links, lp_id link);

/* --- one stream; calls for a stream that is over are ignored (sends return false) --- */

/* The head of our message; head->body says how the body is framed. An answer that cannot be framed
 * that way for this client (HTTP/1.0 and chunked) is framed by closing. The head's framing members
 * are set by the call. */
void lp_link_send_head(struct lp_links *links, struct lp_stream s, struct lp_head *head);
/* A piece of the body. False: the backlog is high; wait for `writable`. */
bool lp_link_send_body(struct lp_links *links, struct lp_stream s, struct lp_span bytes);
void lp_link_send_end(struct lp_links *links, struct lp_stream s);
/* "100 Continue". */
void lp_link_continue(struct lp_links *links, struct lp_stream s);
/* Stops and restarts the flow of the peer's message. */
void lp_link_pause(struct lp_links *links, struct lp_stream s);
void lp_link_resume(struct lp_links *links, struct lp_stream s);
/* Breaks the stream off so that the peer sees it: our message is not whole. No callback follows. */
void lp_link_abort(struct lp_links *links, struct lp_stream s);
/* Whether any byte of our message has been handed to the shell. */
bool lp_link_has_written(const struct lp_links *links, struct lp_stream s);
/* Bytes that wait to be taken by the peer. */
size_t lp_link_backlog(const struct lp_links *links, struct lp_stream s);
/* This stream's peer may stall that long (default: limits.stalled_us). */
void lp_link_set_stalled(struct lp_links *links, struct lp_stream s, uint64_t stalled_us);
/* The client's connection ends after this answer. */
void lp_link_close_after(struct lp_links *links, struct lp_stream s);

#endif
