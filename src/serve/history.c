/* Event history (serve/history.h): a list of copies. What is looked for is nearly always the
 * newest, so the search begins there; a client that comes again costs at most 1,000 steps, once. */
#include "serve/history.h"

#include <stdlib.h>

#include "base/error.h"

struct event {
    struct lp_list node;
    uint64_t number;
    size_t len;
    char bytes[];
};

static struct event *event_of(struct lp_list *node)
{
    return LP_CONTAINER(node, struct event, node);
}

void lp_history_init(struct lp_history *history)
{
    *history = (struct lp_history){.count_max = LP_HISTORY_EVENTS, .bytes_max = LP_HISTORY_BYTES};
    lp_list_init(&history->events);
}

static void drop(struct lp_history *history, struct event *event)
{
    lp_list_remove(&event->node);
    history->count--;
    history->bytes -= event->len;
    free(event);
}

void lp_history_fini(struct lp_history *history)
{
    while (!lp_list_empty(&history->events))
        drop(history, event_of(history->events.next));
    lp_history_init(history);
}

/* The oldest that may go, or NULL. */
static struct event *oldest(const struct lp_history *history)
{
    struct lp_list *node = history->events.next;
    if (event_of(node)->number == history->in_use)
        node = node->next;
    bool may_go = node != &history->events && event_of(node)->number != history->last;
    return may_go ? event_of(node) : NULL;
}

static void trim(struct lp_history *history)
{
    struct event *event;
    while ((history->count > history->count_max || history->bytes > history->bytes_max) &&
        (event = oldest(history)))
        drop(history, event);
}

int lp_history_add(struct lp_history *history, struct lp_span bytes)
{
    struct event *event = malloc(sizeof *event + bytes.len);
    if (!event)
        return LP_ENOMEM;
    memcpy(event->bytes, bytes.ptr, bytes.len);
    event->len = bytes.len;
    event->number = ++history->last;
    lp_list_init(&event->node);
    lp_list_push_back(&history->events, &event->node);
    history->count++;
    history->bytes += bytes.len;
    trim(history);
    return LP_OK;
}

bool lp_history_get(const struct lp_history *history, uint64_t number, struct lp_kept *ret)
{
    const struct event *found = NULL;
    struct lp_list *at = history->events.prev;
    while (at != &history->events && event_of(at)->number >= number) {
        found = event_of(at);
        at = at->prev;
    }
    if (found)
        *ret = (struct lp_kept){found->number, lp_span(found->bytes, found->len)};
    return found != NULL;
}

void lp_history_drop(struct lp_history *history, uint64_t number)
{
    while (!lp_list_empty(&history->events) && event_of(history->events.next)->number <= number)
        drop(history, event_of(history->events.next));
}
