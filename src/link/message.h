/* Messages: what `link` and the rooms above it say to each other (design 3).
 *
 * A stream is one request and its answer on one connection; HTTP/1 has one at a time, HTTP/2 many.
 * It is named by (link, number), never by pointer. Each stream carries a tag, the owner's own word
 * for it, which comes back with every call. All callbacks run inside lp_links_event; spans and
 * heads are valid until the callback returns. From within a callback every lp_link_ call is
 * allowed, also closing the very connection. */
#ifndef LP_LINK_MESSAGE_H
#define LP_LINK_MESSAGE_H

#include "base/reason.h"
#include "base/slab.h"
#include "wire/head.h"

struct lp_stream {
    lp_id link;
    uint32_t number;
};

/* Callbacks of whoever owns the messages of a connection. After `reset`, and after `end` on the
 * side that answers, the stream is over for its owner: no further callback names it. */
struct lp_message_ops {
    /* A request (on a client's connection) or an answer (on a replica's). Interim answers (1xx) are
     * not reported. */
    void (*head)(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head);
    void (*body)(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes);
    /* The message that `head` began is complete. `whole` is false when it ended with the connection
     * for want of framing (RFC 9112 6.3). */
    void (*end)(void *ctx, uint64_t tag, struct lp_stream s, bool whole);
    /* The backlog has fallen: more may be sent. Only after lp_link_send_body returned false. */
    void (*writable)(void *ctx, uint64_t tag, struct lp_stream s);
    /* Client's connection only: the client will send no more (and may have gone) while its request,
     * already complete, is being answered. */
    void (*left)(void *ctx, uint64_t tag, struct lp_stream s);
    /* The stream cannot go on; the connection is dead or dying. */
    void (*reset)(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why);
    /* Client's connection only: what came is no request; answer it and the connection ends. */
    void (*refused)(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why);
    /* Replica's connection only: it is there (error 0), or could not be made (LP_E...: dead). */
    void (*connected)(void *ctx, uint64_t tag, lp_id link, int error);
    /* A connection without a stream in progress has ended (kept too long, or closed by the peer).
     */
    void (*closed)(void *ctx, uint64_t tag, lp_id link, enum lp_reason why);
};

#endif
