/* Inside the bridge: its state, and what its files give each other.
 *
 *   bridge.c       its life: opening, lost and opened again, the end
 *   bridge_host.c  what the host says, and what is said to it
 *   bridge_modern.c  what a modern server has no method for
 *   bridge_call.c  calls from the host's line to the answer's, waiting and repeating among them */
#ifndef LP_CALL_BRIDGE_PRIV_H
#define LP_CALL_BRIDGE_PRIV_H

#include "base/list.h"
#include "call/bridge.h"
#include "call/client.h"
#include "call/lines.h"
#include "mcp/envelope.h"

enum {
    LP_BRIDGE_TRIES_MAX = 5,
    LP_BRIDGE_PAUSE_MAX_MS = 4000, /* between two sessions that serve nothing */
    LP_BRIDGE_VERSION_MAX = 32,
};

enum lp_bridge_state {
    LP_BRIDGE_NEW,     /* no session yet, or its opening has failed */
    LP_BRIDGE_OPENING, /* the first session is being opened for `opener` */
    LP_BRIDGE_OPEN,
    LP_BRIDGE_LOST, /* another session is being opened, or waited for; calls wait */
    LP_BRIDGE_CLOSING,
    LP_BRIDGE_OVER,
};

/* A request of the host. */
struct lp_bridge_call {
    struct lp_list node;
    struct lp_bridge *bridge;
    lp_id call; /* 0: it waits */
    enum lp_rpc_method method;
    bool is_listening;     /* it stands for a subscription at a modern server */
    bool is_ours;          /* nobody waits for its answer: state that is set again */
    uint8_t tries;         /* how often it was asked so far */
    bool has_lost;         /* its session was lost: that is mended once */
    char *bytes;           /* owns the spans */
    struct lp_span id;     /* raw */
    struct lp_span name;   /* method without quotes */
    struct lp_span params; /* raw object, or empty */
};

/* What another session has to be told again: the last level, each subscription. */
struct lp_bridge_memo {
    struct lp_list node;
    enum lp_rpc_method method;
    char *bytes;           /* owns the span */
    struct lp_span params; /* raw object */
};

/* A request of the server that the host has not answered. */
struct lp_bridge_asked {
    struct lp_list node;
    uint64_t number; /* its id towards the host */
    lp_id asked;
};

struct lp_bridge {
    struct lp_bridge_args args;
    struct lp_lines lines;
    struct lp_client *client;
    enum lp_bridge_state state;

    /* What the host opened with: copies. */
    char *opening;
    struct lp_span opener;  /* raw id of the request that waits for the session; empty: none */
    struct lp_span offered; /* protocolVersion, without quotes */
    struct lp_span capabilities;
    struct lp_span client_info;
    bool host_is_modern;

    char version[LP_BRIDGE_VERSION_MAX]; /* of the first session */
    enum lp_era era;

    struct lp_list calls;
    uint32_t call_count;
    struct lp_list asked;
    uint64_t asked_last;

    struct lp_list memos;
    uint32_t memo_count;

    struct lp_fetcher_timer retry;
    struct lp_fetcher_timer pause; /* before another session */
    uint8_t opens;                 /* attempts to open the lost session again */
    uint8_t fruitless;             /* sessions in a row that were lost and had answered nothing */
    uint64_t next_open_us;         /* another one not before */
    bool must_open;
    bool must_send; /* waiting calls are to be sent */
    bool input_has_ended;
    bool must_close;
    bool has_failed;
    bool has_ended; /* `over` was told */
};

/* --- bridge.c --- */
/* Opens the first session; `opening` and its spans are set. */
void lp_bridge_open(struct lp_bridge *b);
/* Looks for another session, at once or when the pause is over; calls that wait are sent then. */
void lp_bridge_reopen(struct lp_bridge *b);
/* Sends what waits a while from now: longer with each try. */
void lp_bridge_retry_later(struct lp_bridge *b, uint32_t tries);
void lp_bridge_say(struct lp_bridge *b, const char *fmt, ...) LP_PRINTF(2, 3);

/* --- bridge_host.c --- */
extern const struct lp_lines_ops lp_bridge_lines_ops;
void lp_bridge_send_result(struct lp_bridge *b, struct lp_span id, struct lp_span result);
void lp_bridge_send_error(struct lp_bridge *b, struct lp_span id, struct lp_span error);
/* An error of our own. `data`: raw JSON or empty. */
void lp_bridge_refuse(
    struct lp_bridge *b, struct lp_span id, int code, struct lp_span sentence, struct lp_span data);
/* The same for a failed exchange, with its status and body. */
void lp_bridge_refuse_failed(
    struct lp_bridge *b, struct lp_span id, const struct lp_client_failure *why, const char *more);
/* Answers the request that opened the session. */
void lp_bridge_welcome(struct lp_bridge *b, const struct lp_client_info *info);
void lp_bridge_ask_host(
    struct lp_bridge *b, lp_id asked, struct lp_span method, struct lp_span params);
/* Tells the host that a question is not asked any more; 0: none of them. */
void lp_bridge_unask_host(struct lp_bridge *b, lp_id asked);
void lp_bridge_answer_server(
    struct lp_bridge *b, struct lp_span id, struct lp_span result, struct lp_span error);

/* --- bridge_call.c --- */
/* Takes a request of the host over: sends it or lets it wait. */
void lp_bridge_call(struct lp_bridge *b, const struct lp_envelope *env, struct lp_span line);
void lp_bridge_cancel(struct lp_bridge *b, struct lp_span id, struct lp_span reason);
/* Sends every call that waits; in OPEN. */
void lp_bridge_send_waiting(struct lp_bridge *b);
/* Refuses every call that waits. */
void lp_bridge_refuse_waiting(struct lp_bridge *b, const struct lp_client_failure *why);
/* Sets level and subscriptions of the session before again. */
void lp_bridge_restore(struct lp_bridge *b);
/* Somebody waits for an answer. */
bool lp_bridge_is_busy(const struct lp_bridge *b);
void lp_bridge_call_free(struct lp_bridge_call *c);
void lp_bridge_calls_fini(struct lp_bridge *b);

/* --- bridge_modern.c --- */
/* Does in another way what the method of `c` means, and ends or keeps it; false: send it as it is.
 */
bool lp_bridge_translate(struct lp_bridge_call *c);
/* notifications/subscriptions/acknowledged came. */
void lp_bridge_acknowledged(struct lp_bridge *b, struct lp_span message);

#endif
