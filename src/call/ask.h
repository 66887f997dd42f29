/* One question to an MCP server and its whole answer, taken apart: what the probe is made of.
 *
 * A question is one HTTP request. It is answered when its JSON body is whole, when its event stream
 * has brought the JSON-RPC answer, when a stream was held for as long as was asked, or when it
 * failed; `done` is called then, once, and never from within lp_ask_start. Nothing is repeated. */
#ifndef LP_CALL_ASK_H
#define LP_CALL_ASK_H

#include "base/list.h"
#include "call/fetch.h"
#include "call/seen.h"
#include "wire/sse.h"

enum {
    LP_ASK_BODY_MAX = 1 << 20, /* of an answer; longer ones are not understood */
    LP_ASK_MS = 3500,          /* without an answer, when the question says nothing else */
    LP_ASK_SPARE_MS = 500,     /* and so much more until the answer is whole */
};

/* What came. Spans live until `done` returns. */
struct lp_reply {
    struct lp_seen_answer answer;
    struct lp_span body;       /* whole, when it was no event stream */
    struct lp_span result;     /* of a JSON-RPC result, raw */
    struct lp_span message;    /* of a JSON-RPC error, or the first words of a body that is none */
    struct lp_span session_id; /* the field; empty: none. A secret */
    struct lp_span login;      /* WWW-Authenticate */
    struct lp_span failure;    /* a sentence, when no answer came */
    bool allows_origin;        /* Access-Control-Allow-Origin */
    bool exposes_id;           /* Access-Control-Expose-Headers names the session id, or all */
    bool has_length;           /* an event stream with Content-Length */
    bool is_reused;            /* the connection had carried another request */
    bool was_cut;              /* a stream that ended before it was held long enough */
    uint32_t event_count;
    uint64_t sent_us;  /* when its head was sent */
    uint64_t head_us;  /* when the answer's head came; 0: it did not */
    uint64_t last_us;  /* when the last byte came */
    uint64_t end_us;   /* when it was over */
    uint64_t quiet_us; /* the longest silence of a stream, its end included */
};

struct lp_ask_args {
    enum lp_method method;
    struct lp_span url;     /* empty: the target's */
    struct lp_span body;    /* JSON; its answer is the message with id `rpc_id` */
    struct lp_span rpc_id;  /* raw; empty: a notification or no message */
    struct lp_span session; /* Mcp-Session-Id */
    struct lp_span version; /* MCP-Protocol-Version */
    struct lp_span rpc;     /* Mcp-Method, for the modern era */
    struct lp_span name;    /* Mcp-Name; visible ASCII */
    struct lp_span cookie;  /* a Cookie field of our own */
    struct lp_span origin;  /* an Origin field */
    struct lp_span source;  /* the address of ours that it comes from */
    struct lp_jar *jar;
    bool runs_once;  /* never sent again, not even when its connection broke at once */
    bool is_foreign; /* without the target's own fields (metadata of a login) */
    uint32_t lane;   /* 0: a new connection; else the kept one of that lane */
    uint32_t timeout_ms;
    uint32_t hold_ms; /* an event stream is held so long, then given up; UINT32_MAX: for ever */
    /* Each event of a stream, and each head; both may be NULL. */
    void (*event)(void *ctx, const struct lp_sse_event *event);
    void (*head)(void *ctx, const struct lp_head *head);
    void (*done)(void *ctx, const struct lp_reply *reply);
    void *ctx;
};

/* All questions that wait for their answers. */
struct lp_asker {
    struct lp_fetcher *fetcher;
    struct lp_list asks;
    uint32_t count; /* that wait now */
    uint32_t sent;  /* ever */
};

struct lp_ask;

void lp_asker_init(struct lp_asker *asker, struct lp_fetcher *fetcher);
/* Gives all questions up, without `done`. */
void lp_asker_fini(struct lp_asker *asker);

/* Asks. Spans of args are copied. NULL: it could not be started, `done` is not called. */
LP_MUST struct lp_ask *lp_ask_start(struct lp_asker *asker, const struct lp_ask_args *args);
/* Gives a question up, without `done`. */
void lp_ask_cancel(struct lp_ask *ask);

#endif
