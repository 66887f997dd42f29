/* What other threads may say to a server: run this, stop. A list under a mutex; the loop's own mail
 * is only the bell, rung for the first item of a batch, so what was posted is never lost in a loop
 * that ends. These blocks come from malloc: the owner's hook may be for one thread only. */
#include <stdlib.h>

#include "io/loop.h"
#include "libserver/libserver.h"

struct lp_seat_post {
    struct lp_seat_post *next;
    void (*run)(void *context, struct limpet_server *server);
    void *context;
};

/* Before it listens or is fed nobody needs to be told: limpet_server_listen and _turn look. */
static int ring(struct limpet_server *server)
{
    if (server->listens)
        return lp_loop_config(server->loop, NULL);
    if (server->feeder.wake)
        server->feeder.wake(server->feeder.context);
    return LIMPET_OK;
}

int limpet_server_post(struct limpet_server *server,
    void (*run)(void *context, struct limpet_server *server), void *context)
{
    struct lp_seat_post *post = malloc(sizeof *post);
    if (!post)
        return LIMPET_ENOMEM;
    *post = (struct lp_seat_post){.run = run, .context = context};
    (void)pthread_mutex_lock(&server->mutex);
    int err = server->posts ? LIMPET_OK : ring(server);
    if (!err) {
        *server->posts_end = post;
        server->posts_end = &post->next;
    }
    (void)pthread_mutex_unlock(&server->mutex);
    if (err)
        free(post);
    return err;
}

static struct lp_seat_post *take_all(struct limpet_server *server)
{
    (void)pthread_mutex_lock(&server->mutex);
    struct lp_seat_post *first = server->posts;
    server->posts = NULL;
    server->posts_end = &server->posts;
    (void)pthread_mutex_unlock(&server->mutex);
    return first;
}

void lp_seat_run_posts(struct limpet_server *server)
{
    for (struct lp_seat_post *post = take_all(server), *next; post; post = next) {
        next = post->next;
        post->run(post->context, server);
        free(post);
    }
}

void lp_seat_drop_posts(struct limpet_server *server)
{
    for (struct lp_seat_post *post = take_all(server), *next; post; post = next) {
        next = post->next;
        free(post);
    }
}

/* Rings without posts too: the store is looked for now, and not at the first request. */
int lp_seat_catch_up(struct limpet_server *server)
{
    (void)pthread_mutex_lock(&server->mutex);
    int err = ring(server);
    if (!err && server->is_stop_due)
        err = lp_loop_stop(server->loop);
    (void)pthread_mutex_unlock(&server->mutex);
    return err;
}

int limpet_server_stop(struct limpet_server *server)
{
    (void)pthread_mutex_lock(&server->mutex);
    server->is_stop_due = true;
    int err = server->listens ? lp_loop_stop(server->loop) : ring(server);
    (void)pthread_mutex_unlock(&server->mutex);
    return err;
}

bool lp_seat_is_due(struct limpet_server *server)
{
    (void)pthread_mutex_lock(&server->mutex);
    bool is_due = server->posts || (server->is_stop_due && !server->was_stop_told);
    (void)pthread_mutex_unlock(&server->mutex);
    return is_due;
}

bool lp_seat_take_stop(struct limpet_server *server)
{
    (void)pthread_mutex_lock(&server->mutex);
    bool is_now = server->is_stop_due && !server->was_stop_told;
    server->was_stop_told = server->is_stop_due;
    (void)pthread_mutex_unlock(&server->mutex);
    return is_now;
}
