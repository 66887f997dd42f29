/* Inside liblimpet-server: the object behind limpet-server.h, and what its files ask of each other.
 *
 *   server.c    the server's life, its options, who performs its actions
 *   memory.c    what is taken from the owner's hook
 *   offer.c     tools, resources, prompts: copied, and handed to serve
 *   call.c      calls in progress, translated
 *   json.c      JSON for handlers
 *   loop.c      its own loop: listening, running
 *   post.c      what other threads may say
 *
 * As in lib/, names and structures of the public header are its own (doc/DECISIONS/007); a
 * limpet_call is an lp_job by another name. */
#ifndef LP_LIBSERVER_LIBSERVER_H
#define LP_LIBSERVER_LIBSERVER_H

#include <limpet-server.h>
#include <pthread.h>

#include "base/alloc.h"
#include "lib/glue.h"
#include "serve/server.h"

enum { LP_SEAT_LISTENERS = 8, LP_SEAT_WHY_MAX = 512, LP_SEAT_URL_MAX = 512 };

struct lp_loop;
struct lp_listener;
struct lp_seat_block;
struct lp_seat_post;

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

    struct lp_loop *loop; /* NULL until it listens */
    struct lp_listener *listeners[LP_SEAT_LISTENERS];
    uint32_t listener_count;
    bool has_run;

    pthread_mutex_t mutex; /* over the next four, and `loop` against lp_seat_ring */
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
/* Handles an event of the loop. */
void lp_seat_event(void *server, const struct lp_event *event);

/* --- loop.c --- */

void lp_seat_close(struct limpet_server *server);

/* --- post.c --- */

/* Runs what was posted. */
void lp_seat_run_posts(struct limpet_server *server);
/* Tells the loop of what was said before it was there. LIMPET_ENOMEM. */
LP_MUST int lp_seat_catch_up(struct limpet_server *server);
void lp_seat_drop_posts(struct limpet_server *server);

/* --- json.c --- */

/* Whether it is a whole JSON text that begins with that byte, '{' or '['. */
bool lp_seat_is_json(struct lp_span text, char first);

#endif
