/* The tools of `limpet replica` in the world of serve_harness.h: their offer comes through the
 * library, and is served with a clock that is turned by hand. */
#ifndef LP_TEST_SAMPLE_HARNESS_H
#define LP_TEST_SAMPLE_HARNESS_H

#include "app/replica_tools.h"
#include "libserver/libserver.h"
#include "serve_harness.h"

/* Made once; its own server is none, so that the world's stands in its place. */
static inline struct limpet_server *sample_book(void)
{
    static struct limpet_server *book;
    static struct lp_replica_self self = {.name = "blue"};
    struct limpet_server_options options = {.name = "test",
        .version = "1",
        .lists_change = true,
        .has_subscriptions = true,
        .has_tasks = true};
    if (book)
        return book;
    assert_int_equal(limpet_server_new(NULL, &options, &book), 0);
    assert_int_equal(lp_replica_add_tools(book, &self), 0);
    lp_server_free(book->server);
    return book;
}

static inline void start_as(struct world *w, struct lp_server_args args)
{
    struct limpet_server *book = sample_book();
    start_server(w, &book->offer, args);
    book->server = w->server;
}

static inline void start(struct world *w, uint32_t session_max)
{
    start_as(w, (struct lp_server_args){.session_max = session_max});
}

#endif
