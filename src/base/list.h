/* An intrusive doubly linked ring. A node that is in no list points to itself, so removing twice
 * is harmless. The owner of a node finds itself with LP_CONTAINER. */
#ifndef LP_BASE_LIST_H
#define LP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct lp_list {
    struct lp_list *next;
    struct lp_list *prev;
};

#define LP_CONTAINER(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void lp_list_init(struct lp_list *node)
{
    node->next = node->prev = node;
}

static inline bool lp_list_empty(const struct lp_list *list)
{
    return list->next == list;
}

static inline void lp_list_push_back(struct lp_list *list, struct lp_list *node)
{
    node->next = list;
    node->prev = list->prev;
    list->prev->next = node;
    list->prev = node;
}

static inline void lp_list_push_front(struct lp_list *list, struct lp_list *node)
{
    lp_list_push_back(list->next, node);
}

static inline void lp_list_remove(struct lp_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    lp_list_init(node);
}

#endif
