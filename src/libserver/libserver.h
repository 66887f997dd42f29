/* Inside liblimpet-server: the object behind limpet-server.h, and what its files ask of each other.
 *
 *   server.c    the server's life, its options, who performs its actions
 *   memory.c    what is taken from the owner's hook
 *   offer.c     tools, resources, prompts: copied, and handed to serve
 *   call.c      calls in progress, translated
 *   json.c      JSON for handlers
 *   loop.c      its own loop: listening, running
 *   post.c      what other threads may say
 *   feed.c      fed by its program: events in, actions out, connections
 *   exchange.c  requests of a host program, as connections of one request
 *
 * As in lib/, names and structures of the public header are its own (doc/DECISIONS/007); a
 * limpet_call is an lp_job by another name. */
#ifndef LP_LIBSERVER_LIBSERVER_H
#define LP_LIBSERVER_LIBSERVER_H

#include <limpet-server.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/list.h"
#include "lib/glue.h"
#include "serve/server.h"
#include "wire/http1.h"

enum { LP_SEAT_LISTENERS = 8, LP_SEAT_WHY_MAX = 512, LP_SEAT_URL_MAX = 512 };

struct lp_loop;
struct lp_listener;
struct lp_tls_trust;
struct lp_seat_block;
struct lp_seat_post;

/* The client's side of a connection, where the server is fed. */
struct lp_seat_conn {
    lp_id id;
    void *peer;
    struct lp_span drain; /* what is left of the server's DRAIN */
    bool is_new;          /* its peer is still the caller's */
    bool is_exchange;     /* and not a connection of the program's; then: */
    bool is_chunked;      /* the request's body is framed so, else by `left` */
    bool is_blocked;      /* the host takes no more just now */
    bool is_over;         /* the answer has ended */
    uint64_t left;
    struct limpet_answer answer;
    struct lp_http1 parser; /* of the answer */
    struct lp_list over;    /* while it waits to be closed */
};

struct limpet_server {
    struct lp_alloc alloc;
    struct lp_seat_block *blocks; /* all that was taken from it, freed at the end */
    struct lp_server *server;
    struct lp_shell shell; /* ours, for `server`; hands on to that of the loop */
    struct lp_offer offer;
    struct lp_owner owner;
    limpet_bearer_fn bearer;
    void *bearer_context;
    const char *path;
    bool owns_process;

    struct lp_loop *loop; /* where it listens; for shared sessions, where it dials */
    struct lp_tls_trust *trust;
    void (*log)(void *context, enum limpet_level level, struct limpet_span sentence);
    void *log_context;
    bool listens; /* on its own loop */
    struct lp_listener *listeners[LP_SEAT_LISTENERS];
    uint32_t listener_count;
    bool has_run;

    bool is_fed;
    bool is_inside; /* an event is being handled */
    bool is_stopped;
    bool was_stop_told;
    struct limpet_feeder feeder;
    struct lp_slab conns;
    struct lp_list over;     /* exchanges whose answer has ended */
    struct lp_head head;     /* of a request that is handed in */
    struct lp_head answered; /* of the answer that is being read */
    uint64_t alarm_us;

    pthread_mutex_t mutex; /* over the next three, and `listens` where another thread looks */
    struct lp_seat_post *posts;
    struct lp_seat_post **posts_end;
    bool is_stop_due;

    char why[LP_SEAT_WHY_MAX];
    char url[LP_SEAT_URL_MAX];
};

/* --- memory.c --- */

/* `bytes` zeroed bytes that live as long as the server; NULL: no memory. */
void *lp_seat_take(struct limpet_server *server, size_t bytes);
/* A copy of a text at *ret; NULL stays NULL. LIMPET_ENOMEM. */
LP_MUST int lp_seat_copy(struct limpet_server *server, const char *text, const char **ret);
/* Gives all of it back. */
void lp_seat_give_back(struct limpet_server *server);

/* --- server.c --- */

/* Keeps a sentence for limpet_server_why, cut where it is too long; returns `error`. */
int lp_seat_fail(struct limpet_server *server, int error, struct lp_span why);
/* Handles an event of the loop it listens on. */
void lp_seat_event(struct limpet_server *server, const struct lp_event *event);

/* --- loop.c --- */

/* Makes the loop, with TLS where it is to dial so. LIMPET_ENOMEM. */
LP_MUST int lp_seat_make_loop(struct limpet_server *server, bool dials_tls);
void lp_seat_close(struct limpet_server *server);

/* --- feed.c --- */

int64_t lp_seat_perform(struct limpet_server *server, const struct lp_action *action);
/* Hands an event in, with the clocks, and does what is due behind it. */
void lp_seat_emit(struct limpet_server *server, struct lp_event *event);
/* Handles an event of the loop that it only dials on. */
void lp_seat_dialled(struct limpet_server *server, const struct lp_event *event);
/* An exchange is a connection of one request: when it is answered, its client ends. */
void lp_seat_close_over(struct limpet_server *server);
struct lp_seat_conn *lp_seat_conn_get(const struct limpet_server *server, lp_id id);
/* A new connection, of which the server does not know yet; NULL: too many, or no memory. */
struct lp_seat_conn *lp_seat_conn_new(struct limpet_server *server);
void lp_seat_conn_free(struct limpet_server *server, struct lp_seat_conn *conn);
/* Tells the server of it. LIMPET_ELIMIT, LIMPET_ENOMEM: it is freed. */
LP_MUST int lp_seat_conn_accept(
    struct limpet_server *server, struct lp_seat_conn *conn, const struct limpet_peer *peer);
/* Bytes from its peer; it ends when the server wants so. */
void lp_seat_conn_read(struct limpet_server *server, lp_id id, struct lp_span bytes);
/* Gives what waits for its peer. */
void lp_seat_conn_pump(struct limpet_server *server, lp_id id);
/* Its peer is gone. */
void lp_seat_conn_break(struct limpet_server *server, lp_id id);

/* --- exchange.c --- */

/* How many bytes of the answer the host has taken. */
size_t lp_seat_exchange_take(
    struct limpet_server *server, struct lp_seat_conn *conn, struct lp_span bytes);
/* The server has closed it. */
void lp_seat_exchange_close(struct lp_seat_conn *conn);

/* --- post.c --- */

/* Whether limpet_server_turn has something to run. */
bool lp_seat_is_due(struct limpet_server *server);
/* Whether a stop was asked for, once. */
bool lp_seat_take_stop(struct limpet_server *server);

/* Runs what was posted. */
void lp_seat_run_posts(struct limpet_server *server);
/* Tells the loop of what was said before it was there. LIMPET_ENOMEM. */
LP_MUST int lp_seat_catch_up(struct limpet_server *server);
void lp_seat_drop_posts(struct limpet_server *server);

/* --- json.c --- */

/* Whether it is a whole JSON text that begins with that byte, '{' or '['; 0: with any. */
bool lp_seat_is_json(struct lp_span text, char first);

#endif
