/* The configuration as an immutable snapshot: file and flags go into one key table and come out as
 * this (requirements [G13], design 8). Nobody writes it after lp_conf_load; engines read it from
 * several threads. Spans point into memory of the snapshot. */
#ifndef LP_CONF_CONF_H
#define LP_CONF_CONF_H

#include "base/assert.h"
#include "base/buf.h"
#include "base/span.h"

enum lp_balance { LP_BALANCE_LEAST_SESSIONS, LP_BALANCE_ROUND_ROBIN };
enum lp_on_owner_lost { LP_LOST_NOT_FOUND, LP_LOST_RECOVER };
enum lp_ids { LP_IDS_SEALED, LP_IDS_OWNER };
enum lp_replay { LP_REPLAY_OFF, LP_REPLAY_FLY, LP_REPLAY_FLY_INSTANCE };
enum lp_log_format { LP_LOG_TEXT, LP_LOG_JSON };

enum {
    LP_CONF_SERVERS_MAX = 256,
    LP_CONF_REPLICAS_MAX = 1024, /* per server */
    LP_CONF_NAME_MAX = 64,
    LP_CONF_PEER_MAX = 512, /* bytes of a peer's owner id and URL */
};

/* "host:port" split, or a unix socket. */
struct lp_conf_address {
    bool is_unix;
    bool is_tls;
    bool is_loopback;    /* 127/8, ::1, "localhost", unix */
    struct lp_span host; /* without brackets; path for unix */
    uint16_t port;
    struct lp_span authority; /* as sent in Host: "host:port", port left out when the default */
};

struct lp_conf_replica {
    struct lp_span name; /* configured, else normalised authority + path (scheme's default port made
                            explicit, host in lower case): what tickets name */
    struct lp_conf_address address;
    struct lp_span path; /* MCP path at the replica, begins with '/' */
    uint32_t weight;     /* >= 1, default 1 */
    bool is_peer;        /* the Limpet beside another replica, named by its owner id */
};

enum { LP_CONF_DIALECTS_MAX = 32 }; /* of a server entry: more are refused */

struct lp_conf_dialect {
    uint16_t status;
    int32_t code;
    struct lp_span text;
};

enum lp_pass_to { LP_PASS_PINNED, LP_PASS_ANY };

/* Another path that goes to the replicas, without session or token; what lies below is meant too.
 */
struct lp_conf_pass {
    struct lp_span path;
    enum lp_pass_to to; /* one replica for all such rules of the server, or any */
};

struct lp_conf_server {
    struct lp_span name;         /* default "default" with flags only; unique */
    struct lp_span path;         /* client-visible MCP path, default "/mcp"; unique per listener */
    struct lp_span sse_path;     /* client-visible old-SSE path; empty: old SSE is off */
    struct lp_span sse_upstream; /* path at the replicas; default: sse_path */
    const struct lp_conf_replica *replicas;
    uint32_t replica_count;
    const struct lp_conf_replica *peers; /* of a sidecar: as given; they follow in `replicas` */
    uint32_t peer_count;
    enum lp_balance balance;
    enum lp_on_owner_lost on_owner_lost; /* only not_found is accepted in this release */
    uint64_t gone_after_ms;              /* default 3 s */
    uint64_t connect_ms;                 /* default 2 s */
    uint64_t first_byte_ms;              /* default 300 s */
    uint64_t sse_post_ms;                /* default 10 s */
    uint64_t stalled_ms;                 /* default 60 s */
    uint64_t ticket_age_ms;              /* default 30 d */
    uint64_t body_max;                   /* default 4 MiB */
    uint64_t comment_ms;                 /* default 15 s; 0: no comments at all */
    bool cookie_jar;                     /* default off */
    const struct lp_span *hosts;   /* allowed Host values; "*": any. Default on a loopback listener:
                                      loopback names; elsewhere any */
    uint32_t host_count;           /* 0: the default */
    const struct lp_span *origins; /* allowed Origins; "*": any. Default: on loopback, loopback
                                      origins; elsewhere an Origin equal to Host */
    uint32_t origin_count;
    const struct lp_span *public_urls; /* as clients write the MCP path's URL: http or https, host
                                          in lower case, no query; the first is the fallback */
    uint32_t public_url_count;
    const struct lp_conf_dialect *lost_dialects;
    uint32_t lost_dialect_count;
    const struct lp_span *plain_404_agents; /* default {"Go-http-client/"} */
    uint32_t plain_404_agent_count;
    const struct lp_conf_pass *passes; /* longest match wins */
    uint32_t pass_count;
};

struct lp_conf {
    const struct lp_conf_address *listens; /* default 127.0.0.1:8080 */
    uint32_t listen_count;
    bool has_admin;
    struct lp_conf_address admin; /* default 127.0.0.1:8081; "off" switches it off */
    struct lp_span key_file;      /* empty: the default place, found by the app */
    struct lp_span tls_ca;        /* PEM file for https replicas; empty: the system's roots */
    uint32_t threads;             /* default 1; 0 is not accepted; at most 64 */
    const struct lp_conf_server *servers;
    uint32_t server_count;
    enum lp_log_format log_format; /* default text */
    enum lp_log_format access_format;
    bool access_log;           /* default off; log.access: true */
    int log_level;             /* enum lp_log_level; default info */
    struct lp_span log_file;   /* empty: stderr */
    uint64_t request_ms;       /* a request that does not arrive, default 30 s */
    uint64_t stop_ms;          /* graceful stop's deadline, default 10 s */
    uint64_t large_bodies_max; /* bytes of held bodies over 64 KiB in all, default 256 MiB */
    bool is_sidecar;           /* replica 0 of the one server is local, all others are peers */
    struct lp_span self;       /* of a sidecar: its owner id; empty: it has none */
    bool self_from_hostname;   /* of a sidecar: an owner id may be made of the hostname */
    struct lp_conf_replica peers_dns; /* of a sidecar: its address's host is looked up for peers;
                                         empty: none is */
    struct lp_span peers_file;        /* of a sidecar: lines of ID=URL; empty: no file */
    uint64_t peers_every_ms;          /* between two look-ups, default 5 s */
    enum lp_ids ids;                  /* of a sidecar: how session ids say who owns them */
    enum lp_replay replay; /* of a sidecar: what another owner's request is answered with */
    uint32_t waiting_max;  /* requests that wait for one replica's answer, default 1000;
                              0: no limit */
    uint32_t conn_max;     /* client connections in all, default 9000 (two descriptors each) */
};

/* Which command the configuration is for: some keys belong to one of them only. */
enum lp_conf_seat { LP_SEAT_GATEWAY, LP_SEAT_SIDECAR };

/* Where a value came from, for messages: `file` and `line` (0 for flags). All problems are
 * reported, one sentence each, to `errors`: "limpet.yaml:7: servers[0].replicas[1]: \"htp://x\" is
 * not a replica address; use http://host:port/path, https://host/path or
 * unix:/path.sock:/path". */
struct lp_conf_source {
    enum lp_conf_seat seat;
    struct lp_span file_name; /* empty: no file */
    struct lp_span file_text;
    int argc; /* the words after the sub-command */
    const char *const *argv;
};

/* Builds a snapshot. LP_ESYNTAX when `errors` holds at least one problem of the file, LP_EUSAGE
 * when all its problems are of the flags and words; LP_ENOMEM. */
LP_MUST int lp_conf_load(
    const struct lp_conf_source *source, struct lp_conf **ret, struct lp_buf *errors);
void lp_conf_free(struct lp_conf *conf);

/* Of a sidecar, once, before anything else reads the snapshot: its owner id (empty: none), which
 * names the local replica. A peer of that name is itself and is left out. LP_ENOMEM. */
LP_MUST int lp_conf_set_self(struct lp_conf *conf, struct lp_span self);

/* Whether more peers than the listed ones are looked for. */
static inline bool lp_conf_finds_peers(const struct lp_conf *conf)
{
    return conf->peers_dns.address.host.len > 0 || conf->peers_file.len > 0;
}

/* A peer of an owner id (empty: not known yet) and a URL without a path. Both are copied into
 * `room`, which *ret points to. LP_ESYNTAX, LP_ERANGE (the port), LP_ETOO_LONG; `room` is spoilt
 * then. */
LP_MUST int lp_conf_peer_make(struct lp_span id, struct lp_span url, char room[LP_CONF_PEER_MAX],
    struct lp_conf_replica *ret);

/* Finds -c/--config in the words without judging the others; empty when it is not there. */
struct lp_span lp_conf_file_flag(int argc, const char *const *argv);

/* Prints a gateway's snapshot as YAML, secrets left out (for `limpet config show`). */
LP_MUST int lp_conf_print(const struct lp_conf *conf, struct lp_buf *out);

/* Help text of all flags of `limpet gateway`, and of `limpet sidecar`, 80 columns, made from the
 * key table. */
LP_MUST int lp_conf_help(struct lp_buf *out);
LP_MUST int lp_conf_sidecar_help(struct lp_buf *out);

/* Reference of all keys as a roff fragment for the manual page, made from the key table. */
LP_MUST int lp_conf_manual(struct lp_buf *out);

#endif
