/* What a server takes from its owner's hook: itself, and blocks that live as long as it does. They
 * hang in a list, so that nobody else need know them. */
#include "libserver/libserver.h"

struct lp_seat_block {
    struct lp_seat_block *next;
    size_t bytes; /* with this head */
};

enum { HEAD_BYTES = 16 };

_Static_assert(
    sizeof(struct lp_seat_block) <= HEAD_BYTES, "what follows is aligned as malloc does");

void *lp_seat_take(struct limpet_server *server, size_t bytes)
{
    struct lp_seat_block *block = lp_resize(&server->alloc, NULL, 0, HEAD_BYTES + bytes);
    if (!block)
        return NULL;
    memset(block, 0, HEAD_BYTES + bytes);
    *block = (struct lp_seat_block){.next = server->blocks, .bytes = HEAD_BYTES + bytes};
    server->blocks = block;
    return (char *)block + HEAD_BYTES;
}

int lp_seat_copy(struct limpet_server *server, const char *text, const char **ret)
{
    char *copy = text ? lp_seat_take(server, strlen(text) + 1) : NULL;
    if (text && !copy)
        return LIMPET_ENOMEM;
    if (text)
        memcpy(copy, text, strlen(text));
    *ret = copy;
    return LIMPET_OK;
}

void lp_seat_give_back(struct limpet_server *server)
{
    while (server->blocks) {
        struct lp_seat_block *block = server->blocks;
        server->blocks = block->next;
        (void)lp_resize(&server->alloc, block, block->bytes, 0);
    }
}
