/* What the HTTP/1 parser makes of the bytes on its standard input, taken as requests of a client
 * that then ends its side. One line on standard output:
 *
 *     accept 2 messages, bodies 5 0
 *     SYNTAX after 1 messages, bodies 5
 *     BROKEN after 0 messages, bodies     (the input ends inside a message)
 *
 * As a server would, it reads no further than a message that ends the connection. */
#include <inttypes.h>
#include <stdio.h>

#include "wire/http1.h"

enum { INPUT_MAX = 1 << 20, MESSAGES_MAX = 64 };

struct verdict {
    uint64_t bodies[MESSAGES_MAX + 1]; /* the last one is that of the message that comes */
    unsigned count;
    bool is_last;
    int error;
};

static void take_item(struct verdict *v, const struct lp_http1_item *item)
{
    switch (item->kind) {
    case LP_HTTP1_NONE:
        break;
    case LP_HTTP1_HEAD:
        v->bodies[v->count] = 0;
        v->is_last = !item->head->keep_alive;
        break;
    case LP_HTTP1_BODY:
        v->bodies[v->count] += item->body.len;
        break;
    case LP_HTTP1_END:
        v->count++;
        break;
    }
}

static bool is_over(const struct verdict *v, const struct lp_http1_item *item)
{
    return item->kind == LP_HTTP1_NONE || v->count == MESSAGES_MAX ||
        (item->kind == LP_HTTP1_END && v->is_last);
}

static void judge(struct verdict *v, struct lp_span in)
{
    static struct lp_head head;
    struct lp_http1 p;
    struct lp_http1_item item;
    bool ended = false;
    lp_http1_init(&p, LP_HTTP1_REQUESTS, &head);
    do {
        ptrdiff_t n = lp_http1_feed(&p, in, &item);
        if (n < 0) {
            v->error = (int)n;
            return;
        }
        in = lp_span_from(in, (size_t)n);
        take_item(v, &item);
    } while (!is_over(v, &item));
    v->error = lp_http1_eof(&p, &ended);
    lp_http1_release(&p);
}

int main(void)
{
    static char input[INPUT_MAX];
    struct verdict v = {.count = 0};
    judge(&v, lp_span(input, fread(input, 1, sizeof input, stdin)));
    if (v.error)
        printf("%s after %u messages, bodies", lp_error_name(v.error), v.count);
    else
        printf("accept %u messages, bodies", v.count);
    for (unsigned i = 0; i < v.count; i++)
        printf(" %" PRIu64, v.bodies[i]);
    printf("\n");
    return 0;
}
