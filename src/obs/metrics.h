/* Counters and histograms of one engine, and their sum as Prometheus text (requirements [G14]).
 *
 * Each engine writes its own block; a scrape reads all blocks from one thread. Cells are plain
 * words read and written with relaxed atomics: no lock, no shared cache line on the request path.
 */
#ifndef LP_OBS_METRICS_H
#define LP_OBS_METRICS_H

#include "base/buf.h"
#include "base/reason.h"

/* X(id, metric name, type, help). Counters end in _total; gauges may go down. */
#define LP_METRICS(X)                                                                              \
    X(CONNECTIONS_ACCEPTED, "limpet_connections_accepted_total", counter,                          \
        "Client connections accepted, without the admin's")                                        \
    X(CONNECTIONS_OPEN, "limpet_connections_open", gauge,                                          \
        "Client connections open now, without the admin's")                                        \
    X(REQUESTS, "limpet_requests_total", counter, "Requests begun")                                \
    X(REQUESTS_OPEN, "limpet_requests_open", gauge, "Requests in progress now, streams included")  \
    X(UPSTREAM_CONNECTS, "limpet_upstream_connects_total", counter,                                \
        "Connections to replicas begun")                                                           \
    X(UPSTREAM_CONNECT_FAILURES, "limpet_upstream_connect_failures_total", counter,                \
        "Connections to replicas that failed")                                                     \
    X(UPSTREAM_REUSED, "limpet_upstream_reused_total", counter,                                    \
        "Requests sent on a kept replica connection")                                              \
    X(UPSTREAM_RESENT, "limpet_upstream_resent_total", counter,                                    \
        "Requests sent again because they cannot have run or are harmless")                        \
    X(PEER_FORWARDS, "limpet_peer_forwards_total", counter,                                        \
        "Requests passed on to the sidecar that owns their session")                               \
    X(PEER_LOOKS, "limpet_peer_looks_total", counter, "Times that peers were looked for")          \
    X(PEER_LOOK_FAILURES, "limpet_peer_look_failures_total", counter,                              \
        "Times that peers could not be looked for")                                                \
    X(PASSED, "limpet_passed_total", counter, "Requests passed on by a rule (key pass)")           \
    X(SESSIONS_OPENED, "limpet_sessions_opened_total", counter,                                    \
        "Sessions opened (tickets issued)")                                                        \
    X(SESSIONS_LOST_FRESH, "limpet_sessions_lost_fresh_total", counter,                            \
        "Sessions lost by a replica, not seen to restart, within a minute of their opening")       \
    X(STREAMS_OPEN, "limpet_streams_open", gauge, "Event streams open now")                        \
    X(SSE_COMMENTS, "limpet_sse_comments_total", counter, "Keep-alive comments put into streams")  \
    X(TICKETS_OPENED, "limpet_tickets_opened_total", counter,                                      \
        "Tickets opened (not remembered ones)")                                                    \
    X(TICKETS_REFUSED, "limpet_tickets_refused_total", counter, "Tickets that did not open")       \
    X(REPLICA_STATE_CHANGES, "limpet_replica_state_changes_total", counter,                        \
        "Changes of a replica's state")                                                            \
    X(STREAMS_REPLACED, "limpet_streams_replaced_total", counter,                                  \
        "GET streams closed because the upstream said 409 to a newer one")                         \
    X(LARGE_BODIES, "limpet_large_bodies_bytes", gauge,                                            \
        "Memory of the request bodies over 64 KiB that are held now")                              \
    X(LOG_LINES_LOST, "limpet_log_lines_lost_total", counter,                                      \
        "Log lines that could not be written")                                                     \
    X(LOG_REOPEN_FAILURES, "limpet_log_reopen_failures_total", counter,                            \
        "Times that the log file could not be opened again")                                       \
    X(BYTES_TO_CLIENTS, "limpet_bytes_to_clients_total", counter, "Body bytes sent to clients")    \
    X(BYTES_TO_REPLICAS, "limpet_bytes_to_replicas_total", counter, "Body bytes sent to replicas")

enum lp_metric {
#define X(id, name, type, help) LP_METRIC_##id,
    LP_METRICS(X)
#undef X
        LP_METRIC_count
};

/* Why a session ended, as far as a gateway sees it. X(id, word of the label and of /status) */
#define LP_ENDS(X)                                                                                 \
    X(DELETED, "deleted")   /* its client's DELETE was answered with success */                    \
    X(LOST, "lost")         /* its replica does not know it (any more) */                          \
    X(GONE, "replica_gone") /* its replica is gone */                                              \
    X(CLOSED, "closed")     /* old SSE: its stream was closed */                                   \
    X(REPLACED, "replaced") /* its client has opened another one, and named it */                  \
    X(IDLE, "idle")         /* not used for 30 minutes; only its record ends here */               \
    X(LIMIT, "limit")       /* likewise: there were too many records */

enum lp_end {
#define X(id, word) LP_END_##id,
    LP_ENDS(X)
#undef X
        LP_END_count
};

enum { LP_LATENCY_BUCKETS = 16, LP_STATUS_CLASSES = 6 };

struct lp_metrics {
    uint64_t cells[LP_METRIC_count];
    uint64_t reasons[LP_REASON_count];       /* limpet_exchanges_total{reason="..."} */
    uint64_t ends[LP_END_count];             /* limpet_sessions_ended_total{cause="deleted"} */
    uint64_t statuses[LP_STATUS_CLASSES];    /* limpet_responses_total{class="2xx"} */
    uint64_t latency_us[LP_LATENCY_BUCKETS]; /* limpet_first_byte_seconds, cumulative at print */
    uint64_t latency_sum_us;
    uint64_t latency_count;
} __attribute__((aligned(64)));

void lp_metrics_add(struct lp_metrics *m, enum lp_metric which, int64_t delta);
void lp_metrics_reason(struct lp_metrics *m, enum lp_reason reason);
void lp_metrics_end(struct lp_metrics *m, enum lp_end end);
void lp_metrics_status(struct lp_metrics *m, int status);
/* Time from the request's head to the answer's head. */
void lp_metrics_first_byte(struct lp_metrics *m, uint64_t us);

/* One replica's line values for the scrape. */
struct lp_metrics_replica {
    struct lp_span server;
    struct lp_span name;
    struct lp_span state; /* "up", "doubt", "gone", "draining" */
    uint64_t sessions;
    uint64_t waiting; /* for the head of its answer, GETs aside */
    uint64_t incarnation;
    uint64_t lost_fresh; /* sessions that it lost within a minute, without a restart */
    bool loses_its_own;  /* again and again: it seems to be balanced itself */
    bool is_peer;        /* a sidecar's: its sessions are its own */
};

/* What all blocks together have of sessions. */
struct lp_metrics_sessions {
    uint64_t opened;
    uint64_t ended[LP_END_count];
};

struct lp_metrics_sessions lp_metrics_sessions(
    const struct lp_metrics *const *blocks, uint32_t block_count);
const char *lp_metrics_end_word(enum lp_end end);

/* Appends the exposition text (format 0.0.4) of the sum of `blocks`, one HELP and TYPE per metric,
 * and limpet_replica_up, _sessions and _requests_waiting per replica, and
 * limpet_build_info{version=""}. Label values are escaped. LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_metrics_print(const struct lp_metrics *const *blocks, uint32_t block_count,
    const struct lp_metrics_replica *replicas, uint32_t replica_count, struct lp_buf *out);

#endif
