/* Inside the room: the loop's body, and what its files give each other. */
#ifndef LP_IO_LOOP_PRIV_H
#define LP_IO_LOOP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "io/address.h"
#include "io/log.h"
#include "io/loop.h"
#include "io/signals.h"

enum {
    LP_IO_READ_BYTES = 65536,
    LP_IO_LINES_BYTES = 65536,
    LP_IO_CLOCK_EVENTS = 32, /* events that share one reading of the clock */
    LP_IO_SIGNALS = 3,
};

/* What a timer in the loop's heap is for (struct lp_timer.kind). */
enum lp_io_timer {
    LP_IO_TIMER_ENGINE,
    LP_IO_TIMER_CONN,
    LP_IO_TIMER_DIAL,
    LP_IO_TIMER_DOOR,
    LP_IO_TIMER_STORE,
};

enum lp_io_conn_state { LP_IO_DIALLING, LP_IO_OPEN, LP_IO_LINGERING, LP_IO_CLOSED };

/* For what a connection's descriptor is watched on the reading side. */
enum lp_io_watch {
    LP_IO_WATCH_INPUT,   /* bytes, end, reset */
    LP_IO_WATCH_END,     /* paused with bytes waiting in the kernel: end or reset */
    LP_IO_WATCH_NOTHING, /* the end was seen */
};

struct lp_io_dial;
struct lp_io_stdio;
struct lp_tls;

struct lp_io_conn {
    uv_poll_t poll;
    lp_id id;
    struct lp_span drain;    /* what is left of the engine's DRAIN */
    struct lp_timer timer;   /* the end, a BROKEN that is owed, more to read: conn.c */
    struct lp_io_dial *dial; /* while DIALLING */
    struct lp_tls *tls;      /* NULL: plain */
    int fd;
    int interest; /* what libuv was asked to watch */
    uint32_t dropped_bytes;
    uint8_t state; /* enum lp_io_conn_state */
    uint8_t watch; /* enum lp_io_watch */
    bool is_paused;
    bool is_draining;
    bool is_broken; /* a write has failed: BROKEN follows */
    int error;      /* what it tells */
    bool has_eof;
};

struct lp_io_mail;

struct lp_loop {
    uv_loop_t uv;
    uint32_t number;
    struct lp_shell shell;
    void *engine;
    lp_event_fn on_event;
    struct lp_loop *const *peers;
    uint32_t peer_count;

    uint64_t mono_us;
    uint64_t wall_ms;
    uint32_t clock_left; /* events until the clocks are read again */

    uv_prepare_t prepare;
    uv_timer_t alarm;
    uint64_t alarm_us; /* for when the alarm is set; UINT64_MAX: it is not */
    struct lp_heap timers;
    struct lp_timer engine_timer;

    struct lp_slab conns;
    uint32_t lingering_count;
    struct lp_list doors;
    char *read_room;

    pthread_mutex_t mail_mutex; /* over the two pointers and is_mail_waking */
    struct lp_io_mail *mail_first;
    struct lp_io_mail **mail_end;
    bool is_mail_waking;
    uv_async_t mail_bell;

    const struct lp_tls_trust *trust;
    struct lp_log *log;
    struct lp_buf lines; /* log lines of this turn */

    struct lp_timer store_timer;
    uint64_t *store_tickets; /* of STORE actions that wait for their answer */
    uint32_t store_count;
    uint32_t store_cap;

    uv_signal_t signals[LP_IO_SIGNALS];
    struct lp_signals_args signals_args;

    bool was_signalled;        /* SIGTERM or SIGINT came once */
    bool is_stopping;          /* LP_EV_STOP was given */
    bool is_stopped;           /* the engine has said STOPPED */
    atomic_uint running_peers; /* loop 0 outlives the other threads: signals come to it */

    bool is_looking; /* a LOOK is under way */

    bool has_stdio;            /* LP_EP_STDIO was asked for once */
    struct lp_io_stdio *stdio; /* NULL: never opened */
};

/* loop.c: hands an event to the engine, with the clocks. Nothing after STOPPED. */
void lp_io_emit(struct lp_loop *loop, struct lp_event *event);
uint64_t lp_io_now_us(struct lp_loop *loop);

/* conn.c: connections from their first byte to their end. */
/* A new connection in state DIALLING; NULL at the ceiling. */
LP_MUST struct lp_io_conn *lp_io_conn_new(struct lp_loop *loop);
/* Gives it its descriptor and begins to read. On failure it is closed, the descriptor too. LP_EIO.
 */
LP_MUST int lp_io_conn_open(struct lp_loop *loop, struct lp_io_conn *conn, int fd);
/* As lp_io_conn_open, for one with TLS: the outcome of the handshake is told, or LP_ETIMEOUT at
 * `deadline_us`. */
void lp_io_conn_secure(struct lp_loop *loop, struct lp_io_conn *conn, int fd, uint64_t deadline_us);
/* Closes without an event. */
void lp_io_conn_drop(struct lp_loop *loop, struct lp_io_conn *conn);
void lp_io_conn_timeout(struct lp_loop *loop, struct lp_io_conn *conn);
/* Ends it with a BROKEN, after what can still be read. Nothing when the id is dead. */
void lp_io_conn_break(struct lp_loop *loop, lp_id id, int error);
int64_t lp_io_conn_write(struct lp_loop *loop, const struct lp_action *action);
int64_t lp_io_conn_drain(struct lp_loop *loop, const struct lp_action *action);
int64_t lp_io_conn_pause(struct lp_loop *loop, lp_id id, bool is_paused);
int64_t lp_io_conn_close(struct lp_loop *loop, lp_id id, enum lp_close_how how);
/* The options every TCP connection has: no delay, keep-alive. Accepted ones inherit them from the
 * listening socket. */
void lp_io_tcp_options(int fd);

/* dial.c: from CONNECT to its outcome. */
int64_t lp_io_dial(struct lp_loop *loop, const struct lp_endpoint *endpoint);
void lp_io_dial_timeout(struct lp_loop *loop, struct lp_timer *timer);
/* Gives up without an event; the dial frees itself when its callbacks are through. */
void lp_io_dial_cancel(struct lp_loop *loop, struct lp_io_dial *dial);

/* accept.c: one listening socket in one loop. */
struct lp_io_door_args {
    int fd; /* listening, non-blocking; taken, on failure too */
    uint32_t index;
    bool is_admin;
    struct lp_address address; /* bound to */
};
LP_MUST int lp_io_door_open(struct lp_loop *loop, const struct lp_io_door_args *args);
void lp_io_door_timeout(struct lp_loop *loop, struct lp_timer *timer);
/* Closes the doors; those of the admin listener only when `with_admin`. */
void lp_io_doors_close(struct lp_loop *loop, bool with_admin);

/* look.c: names and files, looked up in a thread of libuv's. */
int64_t lp_io_look(struct lp_loop *loop, bool is_file, struct lp_span text);

/* mail.c: what comes from other threads. */
LP_MUST int lp_io_mail_init(struct lp_loop *loop);
void lp_io_mail_fini(struct lp_loop *loop);
int64_t lp_io_mail_send(struct lp_loop *from, uint32_t to, struct lp_span bytes);
/* From any thread: the connection breaks in the loop's thread, if it still lives. LP_ENOMEM. */
LP_MUST int lp_io_mail_broken(struct lp_loop *to, lp_id conn, int error);

/* stdio.c: the connection of LP_EP_STDIO. */
int64_t lp_io_stdio_dial(struct lp_loop *loop);
/* In the turn after: opens it and tells the outcome. */
void lp_io_stdio_connect(struct lp_loop *loop, struct lp_io_conn *conn);
/* When its connection is closed: waits two seconds at most until all is written. */
void lp_io_stdio_fini(struct lp_loop *loop);

#endif
