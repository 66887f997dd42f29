/* Event history (serve/history.h): a list of copies. Streams are short or read in order, so that
 * looking for a number from the front is cheap enough: at most 1,000 steps. */
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
    *history = (struct lp_history){0};
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
    while ((history->count > LP_HISTORY_EVENTS || history->bytes > LP_HISTORY_BYTES) &&
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
    for (struct lp_list *at = history->events.next; at != &history->events; at = at->next) {
        const struct event *event = event_of(at);
        if (event->number < number)
            continue;
        *ret = (struct lp_kept){event->number, lp_span(event->bytes, event->len)};
        return true;
    }
    return false;
}

void lp_history_drop(struct lp_history *history, uint64_t number)
{
    while (!lp_list_empty(&history->events) && event_of(history->events.next)->number <= number)
        drop(history, event_of(history->events.next));
}
