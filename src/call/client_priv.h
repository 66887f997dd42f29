/* Inside the client, one noun a file:
 *
 *   client.c    the session: its start, its loss, its end
 *   open.c      which era and transport the server speaks; initialize
 *   calls.c     requests, their time-outs, answers and cancelling
 *   exchange.c  one HTTP exchange: its fields, its answer as JSON or as a stream
 *   streams.c   resuming a broken stream; the notification stream; old SSE
 *   incoming.c  one JSON-RPC message from the server
 *   modern.c    _meta and mirrored fields
 *   tools.c     which tools of a modern server are offered
 *   inputs.c    input_required: what a modern call asks for before it answers
 *   login.c     what a 401 says about where to log in
 *
 * Memory: an exchange that ends while one of its bytes is being looked at is only marked dead, and
 * freed by whoever looks. Calls and asked entries are found by id each time. */
#ifndef LP_CALL_CLIENT_PRIV_H
#define LP_CALL_CLIENT_PRIV_H

#include "base/list.h"
#include "call/client.h"
#include "mcp/envelope.h"
#include "wire/http1.h"
#include "wire/member.h"
#include "wire/sse.h"

enum {
    LP_CLIENT_FIELDS_MAX = 40,
    LP_CLIENT_ERROR_BODY_MAX = 65536,
    LP_CLIENT_SENTENCE_MAX = LP_CLIENT_ERROR_BODY_MAX + 1024,
    LP_CLIENT_EVENT_ID_MAX = 4096,
    LP_CLIENT_VERSION_MAX = 32,
    LP_CLIENT_RETRY_MS = 1000,      /* before a broken stream is resumed, when nothing is said */
    LP_CLIENT_RETRY_MAX_MS = 30000, /* and at most, whatever is said */
    LP_CLIENT_RESUMES_MAX = 5,      /* in a row without any progress */
    LP_CLIENT_CLOSE_MS = 2000,
};

enum lp_exchange_kind {
    LP_EXCHANGE_CALL,   /* POST of a request */
    LP_EXCHANGE_RESUME, /* GET with Last-Event-ID for a call whose stream broke */
    LP_EXCHANGE_SAY,    /* POST of a notification or of an answer */
    LP_EXCHANGE_STREAM, /* GET: the notification stream, or all of old SSE */
    LP_EXCHANGE_DELETE,
};

/* How the answer's body is read. */
enum lp_exchange_body { LP_BODY_IS_TEXT, LP_BODY_IS_EVENTS };

struct lp_exchange {
    struct lp_client *client;
    struct lp_list node; /* in client->exchanges */
    enum lp_exchange_kind kind;
    lp_id fetch;
    lp_id call;      /* 0: none, or it has ended */
    uint32_t epoch;  /* of the session it belongs to */
    uint64_t number; /* in the network log */
    uint16_t status;
    enum lp_exchange_body body_kind;
    char media[64];
    char challenge[1024]; /* WWW-Authenticate, as much as fits */
    struct lp_buf body;
    struct lp_sse sse;
    bool is_busy; /* its bytes are being looked at */
    bool is_dead;
    bool is_initialized; /* the notification that ends the handshake */
    bool is_orphan;      /* DELETE of a session that nobody wanted */
    bool is_old_sse;
    bool is_modern;   /* when it was sent */
    bool had_session; /* it was sent with one */
    bool had_event;
};

/* Where a stream can be taken up again. */
struct lp_resume {
    char event_id[LP_CLIENT_EVENT_ID_MAX];
    size_t event_id_len;
    bool has_event_id;
    bool has_retry;
    uint64_t retry_ms; /* as the server said */
    uint32_t tries;    /* in a row without progress */
};

struct lp_call {
    lp_id id;
    struct lp_client *client;
    uint64_t number; /* its JSON-RPC id: another one for each round of inputs */
    uint32_t epoch;  /* of the session it belongs to */
    struct lp_arena text;
    struct lp_span method;
    struct lp_span params; /* as the owner gave them */
    struct lp_span inputs; /* modern: the members that answer input_required, raw; may be empty */
    struct lp_span token;  /* progress token, raw; empty: none */
    enum lp_rpc_method rpc;
    const struct lp_call_ops *ops;
    void *ctx;
    bool adds_token; /* `token` is our own */
    bool is_opening; /* one of the client's own, while it opens */
    bool has_relisted;
    uint32_t timeout_ms;
    uint32_t rounds;
    uint32_t asked_count; /* of the server's questions that wait: its time stands still */
    struct lp_exchange *exchange;
    struct lp_resume *resume; /* legacy, once an event had an id */
    struct lp_fetcher_timer timer;
    struct lp_fetcher_timer resume_timer;
    struct lp_list node;          /* in client->calls_open */
    struct lp_buf input_answers;  /* modern: `"key":value,...` so far */
    struct lp_span request_state; /* modern: raw, of the last input_required */
};

/* A question of the server that waits for its answer. */
struct lp_asked {
    lp_id id;
    lp_id call;  /* the call on whose stream it came; 0: none */
    char *token; /* legacy: its JSON-RPC id, raw. Modern: its key, raw, with quotes */
    size_t token_len;
    bool is_input; /* modern */
};

enum lp_open_step {
    LP_OPEN_NONE,
    LP_OPEN_DISCOVER,
    LP_OPEN_INITIALIZE,
    LP_OPEN_ENDPOINT, /* old SSE: the stream's first event */
    LP_OPEN_INITIALIZED,
};

struct lp_client {
    struct lp_fetcher *fetcher;
    struct lp_jar *jar;
    const struct lp_client_ops *ops;
    void *ctx;
    uint32_t lane;
    bool stream_first;
    bool prefers_legacy;
    bool owes_opened;     /* it waits for the stream */
    struct lp_arena text; /* copies of what the owner gave */
    struct lp_span capabilities;
    struct lp_span client_info;
    struct lp_span offered; /* version in initialize */
    struct lp_span log_level;

    enum lp_client_state state;
    enum lp_open_step step;
    uint32_t epoch; /* one more for each session */
    bool is_old_sse;
    bool is_modern;
    bool was_legacy; /* the session that was lost: asking for the era again is spared, once */
    char version[LP_CLIENT_VERSION_MAX];
    struct lp_buf session; /* empty: none */
    struct lp_buf result;
    struct lp_buf endpoint; /* old SSE: where messages go */
    struct lp_client_info info;

    uint64_t number; /* the last JSON-RPC id */
    struct lp_slab calls;
    struct lp_slab asked;
    struct lp_list calls_open;
    struct lp_list exchanges;
    struct lp_exchange *stream;
    struct lp_resume stream_resume;
    bool stream_was_open; /* in this session */
    lp_id listen;         /* modern: the call that stands for the notification stream */
    lp_id relist;         /* modern: the tools/list that a refused call waits for */
    lp_id relist_for;
    struct lp_buf orphan; /* the session that the era question left behind */
    struct lp_buf first;  /* what the POST was refused with, before old SSE was tried */
    uint16_t first_status;
    size_t first_prefix; /* bytes of `first` before the body */
    struct lp_list logins;
    struct lp_fetcher_timer stream_timer;
    struct lp_fetcher_timer step_timer; /* of opening and of closing */
    int early;                          /* why opening failed before anything was asked: LP_E... */
    struct lp_buf tools;                /* modern: what x-mcp-header says, see modern.c */
    struct lp_buf room;                 /* a message being written */
    char sentence[LP_CLIENT_SENTENCE_MAX];
};

/* --- client.c --- */

/* The notification stream is open, or there will be none: who waited for that is told. */
void lp_client_stream_settled(struct lp_client *client);

/* The session is gone: its stream ends, what the server asked is dead, then `lost`. Calls that wait
 * for an answer of their own exchange go on to their end; all others fail. `x` is looked at. */
void lp_client_lose(
    struct lp_client *client, const struct lp_client_failure *why, struct lp_exchange *x);
/* DELETE was answered. */
void lp_client_deleted(struct lp_client *client);
/* Opening is over, well or badly. */
void lp_client_is_open(struct lp_client *client);
void lp_client_fail_open(struct lp_client *client, const struct lp_client_failure *why);
/* The same for LP_E..., but not from within this call. */
void lp_client_fail_soon(struct lp_client *client, int error);
/* Tells `note`. */
void lp_client_note(struct lp_client *client, const char *fmt, ...) LP_PRINTF(2, 3);
/* Writes a sentence into the client's room. */
struct lp_span lp_client_say(struct lp_client *client, const char *fmt, ...) LP_PRINTF(2, 3);
/* Appends bytes as they are, zeros too; at most LP_CLIENT_ERROR_BODY_MAX. */
struct lp_span lp_client_say_more(
    struct lp_client *client, struct lp_span said, struct lp_span bytes);
/* The failure for memory or a limit. */
struct lp_client_failure lp_client_limit(struct lp_client *client, int error);

/* --- open.c --- */

void lp_open_begin(struct lp_client *client);
/* Old SSE: the endpoint event came, or its stream has failed. */
void lp_open_endpoint(struct lp_client *client, struct lp_span data);
void lp_open_stream_failed(struct lp_client *client, const struct lp_client_failure *why);
/* The server has taken note of `initialized`, or not. */
void lp_open_initialized(struct lp_client *client);
/* The session id of the answer to initialize, when there is one. */
void lp_open_take_session(
    struct lp_client *client, enum lp_rpc_method rpc, const struct lp_head *head);

/* --- calls.c --- */

LP_MUST int lp_calls_start(
    struct lp_client *client, const struct lp_call_args *args, bool is_opening, lp_id *ret_call);
struct lp_call *lp_call_get(const struct lp_client *client, lp_id id);
struct lp_call *lp_call_by_number(const struct lp_client *client, uint64_t number);
/* Sends it (again). */
LP_MUST int lp_call_send(struct lp_call *call);
struct lp_params;
/* Writes a request, or a notification when `number` is 0, into the client's room. */
LP_MUST int lp_calls_write_message(struct lp_client *client, uint64_t number, struct lp_span method,
    const struct lp_params *params);
/* Its end, once; the memory is gone before the owner hears of it. */
void lp_call_answer(struct lp_call *call, struct lp_span message);
void lp_call_fail(struct lp_call *call, const struct lp_client_failure *why);
void lp_calls_fail_all(struct lp_client *client, const struct lp_client_failure *why);
/* Something of it came: its time-out begins anew. */
void lp_call_touch(struct lp_call *call);
/* Frees without a word. */
void lp_call_drop(struct lp_call *call);

/* --- exchange.c --- */

struct lp_exchange_args {
    enum lp_exchange_kind kind;
    struct lp_call *call;
    struct lp_span method; /* JSON-RPC, for the mirrored fields and the log; may be empty */
    struct lp_span params;
    struct lp_span body;
    struct lp_span event_id; /* a null pointer: none */
    struct lp_span session;  /* another one than the client's; a null pointer: the client's */
};

LP_MUST int lp_exchange_start(
    struct lp_client *client, const struct lp_exchange_args *args, struct lp_exchange **ret);
/* Breaks it off, or marks it dead while it is busy. NULL is fine. */
void lp_exchange_drop(struct lp_exchange *x);
/* What a bad status says, as a failure. Spans are of the exchange and of the client's room. */
struct lp_client_failure lp_exchange_failure(struct lp_exchange *x);

/* --- streams.c --- */

/* The stream of a call ended without its answer. `why` is NULL when it ended in order. */
void lp_stream_of_call_ended(struct lp_call *call, const struct lp_client_failure *why);
/* Opens the notification stream, or old SSE's. */
void lp_stream_open(struct lp_client *client);
/* Breaks it off, and what would open it again. */
void lp_stream_close(struct lp_client *client);
/* It has ended: opened again after a while, or the session is lost. `failure` may be NULL. */
void lp_stream_ended(struct lp_exchange *x, const struct lp_client_failure *why);
/* Remembers what an event says about taking the stream up again. */
void lp_resume_note(struct lp_resume *resume, const struct lp_sse_event *event);

/* --- incoming.c --- */

/* One JSON-RPC message, or a batch, that came on `x`. False: it makes no sense. */
bool lp_incoming(struct lp_client *client, struct lp_exchange *x, struct lp_span message);
/* A few words about a message for the network log. */
struct lp_span lp_incoming_describe(struct lp_span message, char *room, size_t room_len);
/* Forgets what was asked on behalf of a call. */
void lp_asked_drop(struct lp_client *client, lp_id call);
struct lp_asked *lp_asked_new(
    struct lp_client *client, struct lp_span token, lp_id call, bool is_input);
/* POSTs a message whose only answer is a status. */
LP_MUST int lp_client_say_message(struct lp_client *client, struct lp_span method,
    struct lp_span message, struct lp_exchange **ret);

/* --- modern.c --- */

/* What goes into params besides what the owner gave. */
struct lp_params {
    struct lp_span given;  /* raw object, or empty */
    struct lp_span token;  /* a progress token to add; empty: none */
    struct lp_span inputs; /* raw members to add; empty: none */
};

/* Appends params with the members that this era and call want. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_modern_write_params(
    const struct lp_client *client, const struct lp_params *params, struct lp_buf *out);
/* Adds Mcp-Method, Mcp-Name and Mcp-Param-*; values that need room are put into `room`. */
LP_MUST int lp_modern_add_fields(const struct lp_client *client,
    const struct lp_exchange_args *args, struct lp_buf *room, struct lp_target_field *fields,
    uint32_t *count);
/* Remembers the x-mcp-header members of a tools/list result. */
void lp_modern_learn_tools(struct lp_client *client, struct lp_span result, bool is_first_page);
/* Whether the error says that mirrored fields are wrong; then the tools are listed again and the
 * call is sent once more. */
bool lp_modern_try_again(struct lp_call *call, struct lp_span error);

/* --- tools.c --- */

/* Whether every x-mcp-header of the tool's schema can be followed. */
bool lp_tools_is_followable(struct lp_span tool);
/* Takes the others out of a tools/list result: then *result is put together in `room`, else it
 * stays as it is. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_tools_filter(struct lp_client *client, struct lp_span *result, struct lp_buf *room);

/* --- inputs.c --- */

/* Whether the result asks for inputs; then they are asked for, and the call goes on. */
bool lp_inputs_take(struct lp_call *call, struct lp_span result);
/* The owner has answered one. */
void lp_inputs_answered(struct lp_client *client, struct lp_asked *asked, struct lp_span result);
/* The call is sent again when nothing is missing. */
void lp_inputs_settle(struct lp_client *client, lp_id call);

/* --- login.c --- */

/* 401 or 403: reads where to log in, then fails what `x` was for with that. */
void lp_login_ask(struct lp_exchange *x);
/* Forgets the questions that are on their way. */
void lp_login_drop_all(struct lp_client *client);

#endif
