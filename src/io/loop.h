/* One event loop for one engine: performs the actions of seam/action.h on real sockets and reports
 * the events of seam/event.h. This room is the only one with libuv, descriptors, clocks, files and
 * signals; it knows nothing of HTTP or MCP.
 *
 *     engine 0                engine 1     ...     one thread each
 *   events ^ | actions      events ^ | actions
 *          | v                     | v
 *   struct lp_loop ---mail---> struct lp_loop      listener.h: accepting
 *          '----- log lines -------+-----> log.h: one writer thread
 *
 * Facts that callers may rely on
 * - No event is ever delivered from within `perform`. What an action causes at once (a WRITE that
 *   finds the connection broken, a CONNECT refused, a STORE) is told in the next turn of the loop.
 * - A connection id is dead after CLOSE, LP_EV_BROKEN and LP_EV_CONNECT_FAILED. An action on a dead
 *   id is harmless: WRITE and DRAIN answer LP_EBROKEN, everything else 0.
 * - Between a WRITE that answered LP_EBROKEN and its BROKEN, READ and EOF may still come: what the
 *   peer said before it hung up.
 * - WRITE on a connection that is not open yet takes 0 bytes; a DRAIN on it waits for it.
 * - READ_OFF costs no system call: the socket stays watched until something arrives. A paused
 *   connection still reports a reset, and EOF too, at once when no unread bytes lie before it; with
 *   unread bytes before it, both wait for READ_ON, so that bytes which did arrive are never lost.
 *   After EOF a reset is noticed by the next write only.
 * - CLOSE_LINGER while a DRAIN is out is CLOSE_RESET: an answer cut short must not look whole.
 *   CLOSE_RESET on a unix socket is an ordinary close: the kernel has no reset there.
 * - CONNECT: the addresses of a name are tried in the order of the resolver, each with its share of
 *   the time that is left; timeout_ms 0 means no limit. A full unix backlog is tried again until
 *   the time is over. With is_tls the handshake is part of it, within the same time. A source that
 *   is no address of ours gives LP_EUNREACHABLE.
 * - TLS (a client's, over TCP): the end of input is close_notify, and an end without it is BROKEN:
 *   who cuts a connection cannot make an answer look whole. Half-closed connections work as
 *   without TLS. A WRITE is taken record by record; the rest of one record that the socket did not
 *   take is kept here, and goes out before DRAINED and, within two seconds, after a CLOSE_NOW or
 *   CLOSE_LINGER without a DRAIN out; these also say close_notify.
 * - CONNECT to LP_EP_STDIO: once in a loop's life (LP_EEXISTS), whatever the descriptors are: pipe,
 *   terminal, file, socket, /dev/null. Their flags are not touched. The end of standard input is
 *   EOF; a failed read, or nobody there to read standard output, is BROKEN. Bytes a WRITE has taken
 *   are written after CLOSE too: LINGER waits for that as for a peer, lp_loop_free for two seconds.
 * - LOOK: a host's addresses in the order of the resolver, or the bytes of a file, up to 1 MiB;
 * what a name server does not answer may take as long as the system's resolver waits.
 * - There is no store in this release: a STORE is answered with LP_STORE_DOWN in the next turn.
 * - `mono_us` is taken once per turn, and again after every 32 events of a long one.
 * - An idle connection is one slab cell (about 260 bytes) and no buffer; all connections of a loop
 *   read into one buffer of 64 KiB. One with TLS keeps OpenSSL's state beside it, but no buffer
 *   either. */
#ifndef LP_IO_LOOP_H
#define LP_IO_LOOP_H

#include "base/error.h"
#include "seam/action.h"
#include "seam/event.h"

struct lp_log;
struct lp_loop;
struct lp_tls_trust;

typedef void (*lp_event_fn)(void *engine, const struct lp_event *event);

struct lp_loop_args {
    uint32_t number;                  /* the engine's number, its address for MAIL */
    uint32_t conn_max;                /* connections of both sides at once; 0: 65,536 */
    struct lp_log *log;               /* where LP_ACT_LOG lines go; NULL: nowhere. Not owned */
    const struct lp_tls_trust *trust; /* io/tls_trust.h; NULL: is_tls gives LP_EUNSUPPORTED. Not
                                         owned */
};

/* NULL: out of memory or of descriptors. */
LP_MUST struct lp_loop *lp_loop_new(const struct lp_loop_args *args);

/* Closes what is still open, without events. All loops must have returned from lp_loop_run. May
 * wait for a name server that is being asked. NULL is fine. */
void lp_loop_free(struct lp_loop *loop);

/* The shell for the engine of this loop; lives as long as the loop, and may be used only in the
 * thread that runs it. */
const struct lp_shell *lp_loop_shell(struct lp_loop *loop);

/* Before the loop runs: who gets the events. */
void lp_loop_attach(struct lp_loop *loop, void *engine, lp_event_fn on_event);

/* Before the loops run: makes the engines of a process known to each other. The loop of engine i is
 * loops[i]; the array must outlive the loops. */
void lp_loops_join(struct lp_loop *const *loops, uint32_t count);

/* Runs until the engine has said STOPPED and the connections that linger are closed, or until
 * lp_loop_end. */
void lp_loop_run(struct lp_loop *loop);

/* For one that lives inside the loop of somebody else: does what is due, without waiting; the
 * descriptor that is readable when more is; and how long until then, as poll(2) takes it. */
void lp_loop_turn(struct lp_loop *loop);
int lp_loop_fd(const struct lp_loop *loop);
int lp_loop_timeout_ms(struct lp_loop *loop);

/* Runs loop 0 in this thread and each other one in its own; returns when all have ended. Loop 0
 * turns on until the others have, so that a second signal is heard. The loops were joined before.
 * LP_ENOMEM when a thread cannot be started: those that run are ended. */
LP_MUST int lp_loops_run(struct lp_loop *const *loops, uint32_t count);

/* From any thread. The event reaches the engine in its own thread, in the order of these calls.
 * LP_ENOMEM. */
LP_MUST int lp_loop_config(struct lp_loop *loop, const void *config); /* LP_EV_CONFIG */
LP_MUST int lp_loop_stop(struct lp_loop *loop);                       /* LP_EV_STOP, once */
LP_MUST int lp_loop_end(struct lp_loop *loop);                        /* lp_loop_run returns soon */

/* The two clocks, for what the app does before its loops run. */
uint64_t lp_clock_mono_us(void);
uint64_t lp_clock_wall_ms(void);

#endif
