/* The flags that the client commands share (probe, inspect, connect), and what is made of them: the
 * target, the network log, whose certificates are believed. */
#ifndef LP_APP_CLIENT_FLAGS_H
#define LP_APP_CLIENT_FLAGS_H

#include <stdio.h>

#include "app/app.h"
#include "call/target.h"
#include "obs/netlog.h"

enum { LP_CLIENT_OPTIONS = 12 };

struct lp_client_flags {
    struct lp_option_list headers;
    const char *bearer;
    const char *config;
    const char *log_file;
    const char *cacert;
    const char *timeout;
    const char *transport;
    const char *era;
    bool insecure;
    bool cookie_jar;
    bool no_stream;
    bool log_bodies;
};

/* Puts the shared options into `room`, for lp_options_read. */
void lp_client_flags_options(
    struct lp_client_flags *flags, struct lp_option room[LP_CLIENT_OPTIONS]);

/* Their lines of a help text. */
extern const char lp_client_flags_help[];

/* Fills a target from `where`, a URL or the name of an entry of mcp.json, and the flags; flags win
 * over the file, the file over the environment (LIMPET_BEARER). The caller finishes the target,
 * whatever comes out. Not LP_EXIT_OK: everything has been said. */
LP_MUST int lp_client_flags_target(
    const struct lp_client_flags *flags, const char *where, struct lp_target *ret);

/* The network log that --log-file asks for. */
struct lp_client_log {
    FILE *file;
    struct lp_netlog net;
};

/* Opens it, mode 0600, behind what is there; without the flag there is none and *ret_log is NULL.
 * Not LP_EXIT_OK: everything has been said. */
LP_MUST int lp_client_log_open(
    const struct lp_client_flags *flags, struct lp_client_log *log, struct lp_netlog **ret_log);
/* LP_EXIT_FAILED after saying that lines were lost. */
int lp_client_log_close(struct lp_client_log *log);

#endif
