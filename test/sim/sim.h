/* The simulated world: gateways of real engines, replica and client models, a network that lies,
 * one virtual clock, one seeded generator (requirements [P7]).
 *
 * Nothing in here is shared with the engines but bytes and events. The oracle is what the replica
 * models minted and for which request; the routing function is never asked. Everything happens in
 * one queue of things due, so a seed gives the same run again, byte for byte. */
#ifndef LP_SIM_SIM_H
#define LP_SIM_SIM_H

#include "base/buf.h"
#include "base/reason.h"
#include "gate/engine.h"
#include "gate/route.h"
#include "wire/http1.h"
#include "wire/sse.h"

enum {
    SIM_GATEWAYS_MAX = 3,
    SIM_ENGINES_MAX = 2,
    SIM_REPLICAS_MAX = 4,
    SIM_CLIENTS_MAX = 6,
    SIM_SERVERS = 2,
    SIM_QUEUED_MAX = 4, /* requests at once on one connection of a client */
    SIM_TICKET_MAX = 1100,
    SIM_BUF_MAX = 32 << 20,
};

struct sim;
struct sim_conn;

/* --- what is counted over all seeds --- */

#define SIM_FAULTS(X)                                                                              \
    X(split_read)                                                                                  \
    X(partial_write)                                                                               \
    X(late_drain)                                                                                  \
    X(broken_write)                                                                                \
    X(latency_spike)                                                                               \
    X(connect_refused)                                                                             \
    X(connect_timeout)                                                                             \
    X(connect_unreachable)                                                                         \
    X(connect_no_room)                                                                             \
    X(unread_reset)                                                                                \
    X(linger)                                                                                      \
    X(no_memory)                                                                                   \
    X(too_many_clients)                                                                            \
    X(slow_mail)                                                                                   \
    X(reordered_mail)                                                                              \
    X(wall_jump)                                                                                   \
    X(gateway_killed)                                                                              \
    X(gateway_stopped)                                                                             \
    X(key_rotated)                                                                                 \
    X(replica_removed)                                                                             \
    X(replica_crash)                                                                               \
    X(replica_black_hole)                                                                          \
    X(replica_hang)                                                                                \
    X(replica_break_before)                                                                        \
    X(replica_break_head)                                                                          \
    X(replica_break_mid)                                                                           \
    X(replica_garbled)                                                                             \
    X(replica_idle_close)                                                                          \
    X(replica_chatter)                                                                             \
    X(replica_evicts)                                                                              \
    X(replica_slow_body)                                                                           \
    X(replica_stalled_body)                                                                        \
    X(replica_early_answer)                                                                        \
    X(replica_long_id)                                                                             \
    X(replica_bad_id)                                                                              \
    X(replica_bad_endpoint)                                                                        \
    X(replica_near_miss)                                                                           \
    X(client_leaves)                                                                               \
    X(client_half_close)                                                                           \
    X(client_stalls)                                                                               \
    X(client_slow_upload)                                                                          \
    X(client_pipelines)                                                                            \
    X(client_forges_mark)                                                                          \
    X(look_failed)                                                                                 \
    X(look_spoilt)

enum sim_fault {
#define X(name) SIM_FAULT_##name,
    SIM_FAULTS(X)
#undef X
        SIM_FAULT_count
};

/* The kinds of requests that clients send. X(name, legs that it may take) */
#define SIM_KINDS(X)                                                                               \
    X(initialize)                                                                                  \
    X(initialize_stale)                                                                            \
    X(initialized)                                                                                 \
    X(ping)                                                                                        \
    X(list)                                                                                        \
    X(call)                                                                                        \
    X(call_stream)                                                                                 \
    X(call_big)                                                                                    \
    X(batch)                                                                                       \
    X(response)                                                                                    \
    X(cancelled)                                                                                   \
    X(get_stream)                                                                                  \
    X(resume)                                                                                      \
    X(end)                                                                                         \
    X(no_id)                                                                                       \
    X(no_id_get)                                                                                   \
    X(modern)                                                                                      \
    X(options)                                                                                     \
    X(sse_open)                                                                                    \
    X(sse_post)                                                                                    \
    X(bad_ticket)                                                                                  \
    X(bad_request)

enum sim_kind {
#define X(name) SIM_KIND_##name,
    SIM_KINDS(X)
#undef X
        SIM_KIND_count
};

enum { SIM_VERDICTS = LP_VERDICT_FORWARD_PEER + 1 }; /* beyond is the platform's */

struct sim_cover {
    uint64_t reasons[LP_REASON_count];
    uint64_t faults[SIM_FAULT_count];
    uint64_t verdicts[SIM_VERDICTS];
    uint64_t kinds[SIM_KIND_count];
    uint64_t answered;
    uint64_t cut;
    uint64_t events;
};

/* --- randomness and the queue of things due (world.c) --- */

struct sim_rng {
    uint64_t state[4];
};

typedef void (*sim_fn)(struct sim *w, uint64_t a, uint64_t b);

struct sim_due {
    uint64_t at_us;
    uint64_t order;
    sim_fn run;
    uint64_t a, b;
};

/* What this seed is made of, drawn at its start. */
struct sim_plan {
    uint32_t gateways, engines, replicas, clients;
    uint32_t servers;      /* of SIM_SERVERS; sidecars that look for peers have one */
    uint32_t steps;        /* of each client */
    uint32_t fault_in;     /* a replica's answer goes wrong once in that many; 0: never */
    uint32_t chaos_us;     /* between two blows to a process; 0: none */
    uint32_t split;        /* 0: whole reads, 1: mixed, 2: small */
    uint32_t window;       /* bytes that a connection holds under way */
    uint32_t partial_in;   /* a write is taken in part once in that many; 0: whole */
    uint32_t latency_us;   /* of a piece, at most */
    uint32_t mail_us;      /* of mail, at most */
    uint32_t no_room_in;   /* CONNECT finds no descriptor once in that many; 0: never */
    uint32_t no_memory_in; /* an allocation of an engine fails once in that many; 0: never */
    uint32_t conn_max;
    uint32_t age_ms;      /* age limit of tickets; 0: long */
    uint32_t idle_us;     /* replicas close kept connections after this; 0: never */
    bool jars;            /* replicas want their own cookie with every request of a session */
    bool has_unix;        /* the last replica is reached through a socket file */
    bool says_idle;       /* ... and say so */
    bool mints;           /* legacy servers hand out session ids */
    bool challenges;      /* they want credentials */
    bool has_sse;         /* old SSE is configured */
    bool sse_shares_path; /* ... on the path of the MCP server */
    bool streams;         /* GET streams are offered (else 405) */
    bool strict_streams;  /* a second one gets 409 */
    bool rotates;         /* a key rotation is under way */
    bool slow_readers;
    bool is_loopback;
    bool is_quiet;    /* no access log, and only warnings */
    bool rests;       /* half an hour passes in the end */
    bool is_sidecars; /* each replica has a gateway beside it, that knows it and its peers */
    bool owner_ids;   /* ... and readable ids */
    enum { SIM_LISTED, SIM_IN_FILE, SIM_BY_NAME } peers; /* how it knows them */
    bool has_lists; /* hosts, origins and more dialects are configured */
};

/* --- the actors --- */

struct sim_engine {
    struct sim *w;
    uint32_t gateway, number;
    struct lp_engine *engine; /* NULL: the process is dead */
    struct lp_shell shell;
    uint64_t timer_order; /* the order number of the timer that counts */
    bool stopped;
    uint64_t lines; /* access lines */
    uint64_t mail_at_us[SIM_ENGINES_MAX];
};

struct sim_gateway {
    uint32_t index;
    uint32_t epoch; /* of the process; 0: never started */
    bool is_stopping;
    uint64_t stop_us;
    uint64_t start_us;
    uint32_t engine_count;
    struct sim_engine engines[SIM_ENGINES_MAX];
    struct lp_conf conf;
    struct lp_conf_server servers[SIM_SERVERS];
    struct lp_conf_replica replicas[SIM_SERVERS][SIM_REPLICAS_MAX];
    char host[16]; /* where other sidecars reach it */
    struct lp_keyring ring;
};

struct sim_replica {
    uint32_t index;
    uint32_t incarnation;
    bool is_down;       /* refuses */
    bool is_black_hole; /* swallows */
    uint32_t dialect;
    bool is_unix;
    char host[32]; /* or path */
    char authority[32];
    char name[32];
    uint64_t trouble_us; /* last moment at which something went wrong with it */
    uint64_t unseen_us;  /* last moment at which a connection to it failed or was made to fail */
};

struct sim_session {
    char id[640];
    uint32_t replica, incarnation, server;
    lp_id conn;       /* on which it was minted */
    uint32_t request; /* for which it was minted */
    uint32_t client;
    bool is_sse;
    bool ended;
    bool usable;                 /* the id is one that the gateway has to accept */
    char ticket[SIM_TICKET_MAX]; /* what the client got; for old SSE its message address */
    uint64_t ticket_wall_ms;
    uint32_t stream;    /* request number of its standalone stream at the replica; 0: none */
    uint64_t closed_us; /* old SSE: when its stream closed at one end; 0: open */
    uint32_t closed_gateway, closed_epoch;
};

enum sim_outcome { SIM_OPEN, SIM_ANSWERED, SIM_CUT, SIM_LEFT };

struct sim_request {
    enum sim_kind kind;
    uint32_t client;
    int32_t session; /* the one it is meant for; -1: none */
    uint32_t server;
    uint32_t gateway, epoch;
    uint64_t begun_us;
    uint64_t ended_us;
    uint64_t wall_ms;
    char id[24];
    uint16_t want; /* status that a bad request must get; 0: it is no bad one */
    bool has_id;
    bool may_repeat;
    bool http10;
    bool may_cut; /* the client itself gave reason to end it without an answer */
    bool is_kept; /* sent on a connection that its gateway had kept */
    bool has_auth, is_plain_agent;
    bool may_404;       /* its ticket is no good, or may be too old */
    bool accepts_any;   /* the client did something that leaves no rule */
    struct lp_buf text; /* head and body as the client sends them */
    size_t body_bytes;
    uint64_t body_sum; /* what the client sent, to be found again at the replica */
    /* at the replicas */
    uint32_t runs;
    lp_id conn;      /* to the replica whose answer the client gets */
    int32_t replica; /* the last one it reached; -1: none */
    uint32_t incarnation;
    bool wrote_all, wrote_sse, wrote_lost, wrote_until_close, in_trouble;
    uint16_t wrote_status;
    struct lp_buf wrote;
    /* at the client */
    enum sim_outcome outcome;
    bool has_head, got_sse;
    uint64_t head_us;
    uint16_t status;
    struct lp_buf got;
    char got_ticket[SIM_TICKET_MAX];
};

struct sim_client {
    uint32_t index;
    uint32_t steps_left;
    uint32_t port;
    uint32_t open; /* requests in progress */
    uint64_t pace_us;
    struct lp_list channels;
};

struct sim {
    uint64_t seed;
    bool story;
    bool failed;
    bool is_settling; /* no new faults, no new requests */
    struct sim_rng rng;
    struct sim_plan plan;
    struct sim_cover *cover;
    uint64_t now_us;
    int64_t wall_jump_ms;
    uint64_t trace;
    struct sim_due *due;
    uint32_t due_count, due_cap;
    uint64_t order;
    uint64_t second, second_events;
    struct lp_slab conns;
    struct lp_head head;        /* of whoever parses just now */
    struct lp_keyring rings[3]; /* in use, foreign, next */
    struct sim_gateway gateways[SIM_GATEWAYS_MAX];
    struct sim_replica replicas[SIM_REPLICAS_MAX];
    struct sim_client clients[SIM_CLIENTS_MAX];
    struct sim_request *requests; /* from 1 */
    uint32_t request_count, request_cap;
    struct sim_session *sessions;
    uint32_t session_count, session_cap;
    uint64_t look_us;     /* last time a look for peers failed */
    uint64_t jump_us;     /* last time the wall clock jumped */
    uint64_t room_us;     /* last time a CONNECT found no room */
    uint64_t any_fail_us; /* last time any replica could not be reached */
};

/* One seed from birth to the last check; false when an invariant broke (it has been told). */
bool sim_run(uint64_t seed, bool story, struct sim_cover *cover, uint64_t *ret_trace);

/* From now on allocations are those of an engine of `w`; NULL: the world's own. Returns whose they
 * were. */
struct sim *sim_memory_of(struct sim *w);

uint64_t sim_random(struct sim *w);
uint32_t sim_below(struct sim *w, uint32_t below);
bool sim_one_in(struct sim *w, uint32_t n); /* never when n is 0 */
uint64_t sim_between(struct sim *w, uint64_t low, uint64_t high);
void sim_hash(struct sim *w, const void *bytes, size_t n);
uint64_t sim_sum(struct lp_span bytes);
/* As lp_span_search; quick, because all that clients see goes through it. */
size_t sim_search(struct lp_span s, struct lp_span needle);

/* Runs `run` after `delay_us`; returns its order number. */
uint64_t sim_at(struct sim *w, uint64_t delay_us, sim_fn run, uint64_t a, uint64_t b);
void sim_go(struct sim *w, uint64_t until_us);

void sim_say(struct sim *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_fail(struct sim *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_count(struct sim *w, enum sim_fault fault);
uint64_t sim_wall_ms(const struct sim *w);
const char *sim_kind_name(enum sim_kind kind);

/* --- gateways (gateway.c) --- */

void sim_gateway_start(struct sim *w, uint32_t index, uint32_t removed);
void sim_gateway_kill(struct sim *w, uint32_t index);
void sim_gateway_stop(struct sim *w, uint32_t index);
/* Exchanges go on though no client waits: a replica is read on behalf of one that has left. */
bool sim_gateway_is_busy(const struct sim *w, uint32_t index);
bool sim_gateway_is_up(const struct sim *w, uint32_t index);
void sim_emit(struct sim_engine *engine, struct lp_event *event);
void sim_gateway_fini(struct sim *w, uint32_t index);

/* --- the network (net.c) --- */

/* The far end of an engine's connection. After `broken`, or its own close, it hears no more. */
struct sim_peer_ops {
    void (*connected)(struct sim *w, struct sim_conn *conn, bool is_there);
    void (*read)(struct sim *w, struct sim_conn *conn, struct lp_span bytes);
    void (*eof)(struct sim *w, struct sim_conn *conn);
    void (*broken)(struct sim *w, struct sim_conn *conn);
};

enum sim_how { SIM_FIN, SIM_CLOSE, SIM_RESET };

struct sim_pipe {
    struct lp_buf bytes; /* under way */
    bool is_due;         /* a delivery is in the queue */
    bool fin;            /* ends behind the bytes */
    bool fin_told;
    bool reset; /* a reset is under way, over everything */
};

struct sim_conn {
    lp_id id;
    struct sim_engine *engine;
    uint32_t epoch; /* of the engine's process */
    bool is_open;
    bool engine_done; /* closed by the engine, or told that it is broken */
    bool engine_closed_hard;
    bool is_reading_off;
    bool has_drain;
    struct lp_span drain;
    uint64_t connect_us; /* time-out of a connect */
    const struct sim_peer_ops *ops;
    void *peer;
    uint32_t who; /* replica, or client */
    bool is_client;
    bool is_bridge; /* the far end is another engine: bridge.c */
    bool peer_done;
    bool peer_reading_off;
    bool peer_fin;
    struct lp_buf peer_out; /* what the model wants to send */
    struct sim_pipe to_engine, to_peer;
    uint32_t latency_us;
    char facts_peer[40];
};

int64_t sim_perform(void *ctx, const struct lp_action *action);
struct sim_conn *sim_conn_get(struct sim *w, lp_id id);
lp_id sim_dial(
    struct sim *w, struct sim_engine *engine, const struct sim_peer_ops *ops, void *peer);
void sim_peer_write(struct sim *w, struct sim_conn *conn, struct lp_span bytes);
void sim_peer_close(struct sim *w, struct sim_conn *conn, enum sim_how how);
void sim_peer_reading(struct sim *w, struct sim_conn *conn, bool on);
void sim_net_fini(struct sim *w);
/* All connections that match end as if their far end, the process `who`, had died. */
void sim_net_crash_replica(struct sim *w, uint32_t replica);
void sim_net_crash_gateway(struct sim *w, uint32_t gateway);

/* --- from engine to engine (bridge.c) --- */

/* The sidecar that listens at this host; its count for none. */
uint32_t sim_bridge_find(const struct sim *w, struct lp_span host);
/* `conn`, of an engine, goes to the sidecar conn->who; false when nobody listens there. */
bool sim_bridge_open(struct sim *w, struct sim_conn *conn);
void sim_bridge_fini(struct sim_conn *conn);
/* What a sidecar finds when it looks for peers: those that are there, or something wrong. */
void sim_look(struct sim *w, struct sim_engine *engine);

/* --- replicas (replica.c, serve.c) --- */

/* A connection from an engine to replica conn->who has been accepted. */
void sim_replica_accept(struct sim *w, struct sim_conn *conn);
void sim_replica_crash(struct sim *w, uint32_t replica);
/* One of the ways of saying that a session is lost. */
uint32_t sim_replica_dialect(struct sim *w);
void sim_replica_fini(struct sim_conn *conn);

/* --- clients (client.c, script.c) --- */

void sim_client_start(struct sim *w, uint32_t index);
void sim_client_fini(struct sim *w, uint32_t index);
/* Sends request `number`, whose text is complete. */
void sim_client_send(struct sim *w, uint32_t number);
/* Makes the next request of a client; 0 when it has none to make. */
uint32_t sim_script_next(struct sim *w, struct sim_client *client);

uint32_t sim_request_new(struct sim *w, struct sim_client *client, enum sim_kind kind);
struct sim_session *sim_session_of(struct sim *w, const struct sim_request *r);

/* --- the oracle (oracle.c) --- */

/* A request has reached a replica: as its head says. Numbers its run. */
void sim_oracle_reached(
    struct sim *w, uint32_t number, uint32_t replica, struct lp_span session_id);
/* It was all there and is being carried out. */
void sim_oracle_runs(struct sim *w, uint32_t number, struct lp_span body);
/* The client sends it. */
void sim_oracle_sent(struct sim *w, uint32_t number);
/* The request has ended at the client. */
void sim_oracle_ended(struct sim *w, uint32_t number);
/* An engine is about to go: what it counted is kept. */
void sim_oracle_collect(struct sim *w, const struct sim_engine *engine);
/* Bytes on their way to a client. */
void sim_oracle_sees(struct sim *w, struct lp_span bytes);
void sim_oracle_settled(struct sim *w);
void sim_oracle_rested(struct sim *w);
void sim_oracle_stopped(struct sim *w);
void sim_trouble(struct sim *w, uint32_t replica);
void sim_unseen(struct sim *w, uint32_t replica);

/* What every id that a replica mints begins with: no client may ever see it. */
#define SIM_ID_MARK "UPID-"

#endif
