/* Inside the room: one connection, and the codec that gives its bytes a meaning.
 *
 *            shell                link.c                     codec (h1.c)            owner (gate)
 *   READ  ---------->  held? ----------------->  input()  ---------------> head/body/end
 *   WRITE <----------  out, draining  <--------  lp_link_out  <----------- send_head/body/end
 *
 * link.c owns buffers, pausing, timers and death; a codec owns framing and the streams. A codec for
 * HTTP/2 fills the same table. */
#ifndef LP_LINK_LINK_PRIV_H
#define LP_LINK_LINK_PRIV_H

#include "base/buf.h"
#include "link/link.h"
#include "wire/http1.h"

enum lp_link_state {
    LP_LINK_CONNECTING,
    LP_LINK_OPEN,
    LP_LINK_CLOSING, /* nothing is read any more; closes when `out` is empty */
    LP_LINK_DEAD,    /* freed at the end of the event */
};

struct lp_link;

struct lp_link_codec {
    void (*start)(struct lp_links *links, struct lp_link *link);
    /* Takes what it can of `bytes`; returns how many. The rest waits until lp_link_go_on_later. */
    size_t (*input)(struct lp_links *links, struct lp_link *link, struct lp_span bytes);
    void (*eof)(struct lp_links *links, struct lp_link *link);
    /* The connection is gone: end what is in progress for this reason. */
    void (*lost)(struct lp_links *links, struct lp_link *link, enum lp_reason why);
    /* The backlog has fallen to the low water mark. */
    void (*credit)(struct lp_links *links, struct lp_link *link);
    /* When the connection's next deadline is, and what to do when it has come. */
    uint64_t (*deadline_us)(const struct lp_links *links, const struct lp_link *link);
    void (*timeout)(struct lp_links *links, struct lp_link *link);
    void (*release)(struct lp_link *link);
};

/* HTTP/1: one stream at a time. */
struct lp_h1 {
    struct lp_http1 parser;
    uint32_t number;
    bool open;      /* a stream is in progress */
    bool head_seen; /* of the peer's message */
    bool in_ended;
    bool out_begun;
    bool out_ended;
    bool paused;  /* by the owner */
    bool blocked; /* the owner waits for credit */
    bool refused;
    bool keep_alive;
    bool is_head_method;
    uint8_t minor;
    enum lp_body_kind out_kind;
    /* A client's connection only: */
    uint64_t awaited_us;    /* since when a request, the rest of its head, or of its body is */
    uint64_t awaited_bytes; /* of the body that have come since */
    uint64_t paused_us;
};

struct lp_link {
    lp_id id;
    lp_id conn;
    const struct lp_link_codec *codec;
    const struct lp_message_ops *ops;
    void *ctx;
    uint64_t tag;
    enum lp_link_state state;
    bool is_client;
    bool eof;
    bool reading_off;
    bool draining_out;
    bool go_on_due; /* at the flush, held input is fed and reading goes on */
    bool close_after;
    bool wrote;
    bool is_lost;                /* dead for want of memory: its owner is told at the flush */
    enum lp_close_how close_how; /* for LP_LINK_CLOSING */
    struct lp_link_facts facts;
    struct lp_h1 h1;
    struct lp_buf out;
    struct lp_buf draining;
    struct lp_buf held;
    struct lp_timer timer;
    uint64_t wrote_us; /* last progress out */
    uint64_t stalled_us;
    struct lp_list dirty;
    uint8_t peer_len;
    char peer[LP_LINK_PEER_MAX];
};

extern const struct lp_link_codec lp_h1_codec;

/* The link, or NULL when it is dead or was never there. */
struct lp_link *lp_link_get(const struct lp_links *links, lp_id id);

/* For codecs. */
/* Where output is put; it leaves at the flush. */
struct lp_buf *lp_link_out_buf(struct lp_links *links, struct lp_link *link);
void lp_link_out(struct lp_links *links, struct lp_link *link, struct lp_span bytes);
/* Bytes that are large and need no copy when the peer can take them at once; around them a small
 * prefix and suffix. */
void lp_link_out_large(struct lp_links *links, struct lp_link *link, const struct lp_span parts[3]);
size_t lp_link_waiting(const struct lp_link *link);
/* More input may be taken: at the flush what is held is fed, and reading goes on. Not at once,
 * since callers are in the middle of another stream's business. */
void lp_link_go_on_later(struct lp_links *links, struct lp_link *link);
void lp_link_reading(struct lp_links *links, struct lp_link *link, bool on);
/* Looks at the deadline again. */
void lp_link_rearm(struct lp_links *links, struct lp_link *link);
/* A backlog over the hard ceiling or no memory: the peer must see that something is missing. Its
 * owner, who is just sending, is told at the flush and not from within its own call. */
void lp_link_overflow(struct lp_links *links, struct lp_link *link);
/* Ends the connection when everything has been written. */
void lp_link_finish(struct lp_links *links, struct lp_link *link, enum lp_close_how how);
/* Ends it now; ids are dead, memory is kept until the end of the event. */
void lp_link_kill(struct lp_links *links, struct lp_link *link, enum lp_close_how how);

#endif
