/* The access record of one exchange, and its line (requirements [G14]): JSON or text. No secret is
 * ever in it: session ids appear as a short keyed name, queries of old SSE with the token redacted.
 */
#ifndef LP_OBS_RECORD_H
#define LP_OBS_RECORD_H

#include "base/buf.h"
#include "base/reason.h"

struct lp_record {
    uint64_t wall_ms;       /* when the request's head was in */
    uint64_t duration_us;   /* until the exchange ended */
    uint64_t first_byte_us; /* until the answer's head; 0: none */
    struct lp_span server;  /* server entry */
    struct lp_span peer;
    struct lp_span http_method;
    struct lp_span path; /* without query */
    struct lp_span rpc_method;
    struct lp_span replica; /* name; empty: none was asked */
    uint64_t incarnation;
    uint64_t session;        /* short name of the session (hash), 0: none */
    struct lp_span trace_id; /* 32 hex digits or empty */
    int status;              /* 0: no answer was sent */
    enum lp_reason reason;
    bool is_stream;
    bool is_modern;
    uint32_t attempts; /* upstream legs tried */
    uint32_t engine;
    uint64_t bytes_in, bytes_out;
};

/* Appends one line without line end. `as_json`: {"time":"2026-11-30T05:00:00.123Z",...}, empty
 * members left out; else "2026-11-30T05:00:00.123Z POST /mcp tools/call 200 1.2ms -> replica
 * (answered)". LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_record_write(struct lp_buf *out, const struct lp_record *record, bool as_json);

#endif
