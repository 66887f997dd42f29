/* Inside the sample server: its objects, and what its files ask of each other.
 *
 *   sample.c          events and timers in, the life of the whole
 *   sample_http.c     heads and bodies: which request is it, how is it answered
 *   sample_session.c  sessions: opened, found, pushed out, ended
 *   sample_rpc.c      JSON-RPC messages and batches
 *   sample_tools.c    the tools
 *
 * A request object lives from its head to the end of its answer; its slab id is the stream's tag.
 * Every send may end in a reset that frees the request, so after a send it is looked up again. */
#ifndef LP_SERVE_SAMPLE_PRIV_H
#define LP_SERVE_SAMPLE_PRIV_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "link/link.h"
#include "mcp/entropy.h"
#include "mcp/envelope.h"
#include "serve/sample.h"
#include "serve/session_id.h"

#define LP_SAMPLE_VERSIONS "2025-11-25, 2025-06-18, 2025-03-26"

enum {
    LP_TIMER_SAMPLE_REQUEST = 200, /* the next step of a slow call, the next comment of a stream */
    LP_TIMER_SAMPLE_SWEEP,         /* the oldest idle session has reached its age */
    LP_SAMPLE_ID_MAX = 256,        /* JSON-RPC ids and progress tokens that a slow call keeps */
    LP_SAMPLE_COMMENT_US = 15000000,
};

enum lp_sample_state {
    LP_SAMPLE_READING, /* the body is on its way */
    LP_SAMPLE_WORKING, /* a slow call between two steps */
    LP_SAMPLE_SENDING, /* `out` is on its way */
    LP_SAMPLE_STREAM,  /* a session's GET stream */
};

/* A buffer that remembers that something did not fit, so that writers need not ask each time. */
struct lp_sample_out {
    struct lp_buf buf;
    bool failed;
};

struct lp_sample_slow {
    struct lp_buf id;    /* raw tokens */
    struct lp_buf token; /* progress token; empty: none was given */
    uint64_t step_us;
    uint32_t steps;
    uint32_t done;
};

struct lp_sample_request {
    lp_id id;
    struct lp_stream stream;
    enum lp_sample_state state;
    enum lp_method method;
    bool wants_sse;
    bool is_sse; /* the answer is an event stream that has begun */
    bool has_session_header;
    bool was_replayed;    /* by the platform, once already */
    bool takes_batch;     /* by its version header; sessions know better */
    enum lp_whose whose;  /* of its session id */
    struct lp_key key;    /* ours */
    struct lp_span owner; /* another one's id, in `owner_room` */
    char owner_room[LP_OWNER_MAX];
    lp_id session; /* while it keeps the session busy */
    struct lp_buf in;
    struct lp_sample_out out;
    struct lp_sample_slow slow;
    struct lp_timer timer;
};

struct lp_sample_session {
    lp_id id;
    struct lp_key key;
    char text[LP_SESSION_ID_MAX];
    size_t text_len;
    const char *version;
    uint64_t counter;
    uint64_t used_us;
    uint32_t busy; /* requests and streams that hold it; 0: it is in the idle list */
    uint32_t level;
    lp_id stream; /* the request object of its GET stream, or 0 */
    struct lp_list idle;
};

struct lp_sample {
    const struct lp_shell *shell;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_entropy entropy;
    struct lp_slab requests;
    struct lp_slab sessions;
    struct lp_map by_key;
    struct lp_list idle; /* sessions nobody uses just now, longest idle first */
    struct lp_timer sweep;
    struct lp_head head; /* for the heads of answers */
    enum lp_sample_mode mode;
    enum lp_sample_replay replay;
    uint64_t idle_us;
    uint64_t now_us;
    uint64_t timer_at_us;
    bool stopping;
    bool stopped;
    struct lp_span name;
    struct lp_span path;
    struct lp_span owner;
    char name_room[LP_SAMPLE_NAME_MAX];
    char owner_room[LP_OWNER_MAX];
    char path_room[LP_SAMPLE_PATH_MAX];
};

/* --- sample_http.c --- */

extern const struct lp_message_ops lp_sample_ops;

struct lp_sample_request *lp_sample_request_get(const struct lp_sample *sample, lp_id id);
/* Frees what it holds; its session is told. */
void lp_sample_request_free(struct lp_sample *sample, struct lp_sample_request *request);
/* Sends one event on a request whose answer is a stream; does nothing when its peer is far behind.
 */
void lp_sample_send_event(struct lp_sample *sample, lp_id id, struct lp_span json);
/* The head of an answer that is an event stream. */
void lp_sample_begin_sse(struct lp_sample *sample, lp_id id);
/* Ends an answer with what is in `out` (as JSON, or as the last event when it is a stream) and
 * forgets the request. */
void lp_sample_finish(struct lp_sample *sample, lp_id id, uint16_t status);
/* Ends a stream whole, or breaks an answer off that was promised, and forgets the request. */
void lp_sample_drop(struct lp_sample *sample, lp_id id);
/* The timer of a request has fired. */
void lp_sample_request_timer(struct lp_sample *sample, lp_id id);

/* --- sample_session.c --- */

/* A new session, an idle one pushed out when there are too many; NULL when all are busy. */
struct lp_sample_session *lp_sample_session_new(struct lp_sample *sample);
struct lp_sample_session *lp_sample_session_find(struct lp_sample *sample, struct lp_key key);
struct lp_sample_session *lp_sample_session_get(const struct lp_sample *sample, lp_id id);
/* Ends it, with its streams and calls. */
void lp_sample_session_end(struct lp_sample *sample, struct lp_sample_session *session);
/* A request begins or ends to use the session; the last use is now. */
void lp_sample_session_hold(struct lp_sample *sample, struct lp_sample_session *session);
void lp_sample_session_release(struct lp_sample *sample, lp_id id);
/* Ends what has been idle for too long, and sets the timer for the rest. */
void lp_sample_sweep(struct lp_sample *sample);

/* --- sample_rpc.c --- */

void lp_sample_put(struct lp_sample_out *out, struct lp_span bytes);
void lp_sample_printf(struct lp_sample_out *out, const char *fmt, ...) LP_PRINTF(2, 3);
/* As a JSON string. */
void lp_sample_quote(struct lp_sample_out *out, struct lp_span text);

/* What a message, or a whole body, asks for. */
enum lp_sample_outcome {
    LP_SAMPLE_SILENT,   /* nothing to say: 202 */
    LP_SAMPLE_ANSWERED, /* the answer is in request->out */
    LP_SAMPLE_LATER,    /* a slow call has begun */
};

/* One message of a session, already scanned. */
struct lp_sample_call {
    struct lp_sample_session *session; /* NULL in a server without sessions */
    struct lp_sample_request *request;
    const struct lp_envelope *env;
    struct lp_span message;
    struct lp_sample_out *out;
    bool is_in_batch;
};

enum lp_sample_outcome lp_sample_rpc(struct lp_sample *sample, const struct lp_sample_call *call);
enum lp_sample_outcome lp_sample_rpc_batch(
    struct lp_sample *sample, const struct lp_sample_call *call);
/* Appends the answer to `initialize`. */
void lp_sample_rpc_initialize(struct lp_sample *sample, const struct lp_sample_call *call);
/* Appends an answer with that result, a JSON text. */
void lp_sample_rpc_result(struct lp_sample_out *out, struct lp_span id, struct lp_span result);
/* Appends a JSON-RPC error; an empty `id` is null. */
void lp_sample_rpc_error(
    struct lp_sample_out *out, struct lp_span id, int code, const char *message);
/* Whether this server speaks that version; its own text, or NULL. */
const char *lp_sample_version(struct lp_span version);

/* --- sample_tools.c --- */

void lp_sample_tools_list(const struct lp_sample_call *call);
enum lp_sample_outcome lp_sample_tools_call(
    struct lp_sample *sample, const struct lp_sample_call *call);
/* One more step of a slow call is done. */
void lp_sample_slow_step(struct lp_sample *sample, struct lp_sample_request *request);
/* notifications/cancelled: a slow call with that id ends. */
void lp_sample_slow_cancel(struct lp_sample *sample, const struct lp_sample_call *call);

#endif
