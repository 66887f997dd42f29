/* The program: one file per command, one table of them (main.c), and what the commands share.
 *
 * A command prints what it was asked for on stdout and everything else on stderr: a plain sentence
 * that says what is wrong and what to do. */
#ifndef LP_APP_APP_H
#define LP_APP_APP_H

#include "base/buf.h"
#include "base/error.h"
#include "conf/conf.h"
#include "seam/action.h"

/* Exit statuses; the manual lists them. */
enum lp_exit {
    LP_EXIT_OK = 0,
    LP_EXIT_FAILED = 1,  /* something went wrong while it ran */
    LP_EXIT_REFUSED = 2, /* the configuration is not right */
    LP_EXIT_USAGE = 64,  /* the command line was not understood */
};

/* One command. `help` appends the whole help text, 80 columns, with an example. */
struct lp_command {
    const char *name;
    const char *summary;                           /* for `limpet --help` */
    int (*run)(int argc, const char *const *argv); /* the words after the command's name */
    int (*help)(struct lp_buf *out);
};

extern const struct lp_command lp_command_gateway, lp_command_sidecar, lp_command_replica,
    lp_command_demo, lp_command_key, lp_command_config, lp_command_status, lp_command_inspect,
    lp_command_connect, lp_command_probe;

/* Said where the admin listener is on an address that others can reach. */
#define LP_APP_ADMIN_IS_OPEN                                                                       \
    "the admin address is no loopback address: it answers /live and /ready, but not /status and "  \
    "/metrics; for those use a loopback address, as in --admin 127.0.0.1:8081"

/* Of sidecars with peers; with the key file's path. */
#define LP_APP_NO_SHARED_KEY                                                                       \
    "there is no key file %s; sidecars with peers share one: make it with limpet key new, and "    \
    "give it to all of them"

/* --- main.c --- */

/* "limpet: ..." on stderr; returns `status`. */
int lp_app_fail(enum lp_exit status, const char *fmt, ...) LP_PRINTF(2, 3);
/* Says why there is no loop, or that it has no memory; LP_EXIT_FAILED. */
int lp_app_cannot_start(int err);
/* Prints a buffer on stdout. */
void lp_app_print(const struct lp_buf *text);
/* Appends help text, or says that there is no memory. */
int lp_app_text(struct lp_buf *out, const char *text);

/* --- options.c: for the commands whose flags are few --- */

enum { LP_OPTION_LIST_MAX = 32 };

/* The values of a flag that may be given several times. */
struct lp_option_list {
    const char *values[LP_OPTION_LIST_MAX];
    uint32_t count;
};

struct lp_option {
    const char *name;            /* "--listen" */
    const char **value;          /* NULL: a switch, or a list */
    bool *is_set;                /* for switches */
    struct lp_option_list *list; /* for flags that may come again */
};

enum { LP_WORDS_MAX = 4 };

/* Reads flags ("--flag value", "--flag=value") in any place; the other words go to `words`, which
 * ends with NULL. LP_EXIT_USAGE after saying why. */
LP_MUST int lp_options_read(const struct lp_option *options, uint32_t option_count, int argc,
    const char *const *argv, const char *words[LP_WORDS_MAX + 1]);

/* "host:port" of a listener; LP_EXIT_USAGE after saying why. Spans point into `text`. */
LP_MUST int lp_options_address(
    const char *flag, const char *text, struct lp_span *ret_host, uint16_t *ret_port);
/* A whole number; LP_EXIT_USAGE after saying why. */
LP_MUST int lp_options_number(
    const char *flag, const char *text, uint32_t max, uint32_t *ret_number);

/* The same for either seat: a sidecar's when the words or the file name an owner id or a server
 * beside it (--self, --local), else a gateway's; conf.is_sidecar tells which. */
LP_MUST int lp_app_load_either_conf(int argc, const char *const *argv, struct lp_conf **ret);

/* --- sidecar.c --- */

/* Chooses the owner id and judges whether all that belongs together is there; what is not is said
 * and ends in `refused`. */
LP_MUST int lp_app_check_sidecar(struct lp_conf *conf, enum lp_exit refused);
/* A sidecar with peers: their keys are the same, so none is made here. */
bool lp_app_shares_key(const struct lp_conf *conf);

/* --- load.c: configuration and keys --- */

struct lp_keyring;

/* Reads the file that -c names and the flags. Not LP_EXIT_OK: everything has been said. */
LP_MUST int lp_app_load_conf(
    enum lp_conf_seat seat, int argc, const char *const *argv, struct lp_conf **ret);

/* --- gateway.c --- */

/* Runs a gateway, or a sidecar, until it is stopped; takes the snapshot. Returns the exit status.
 */
LP_MUST int lp_app_serve(struct lp_conf *conf);

/* Where the key file is: `configured`, or the default place. LP_ENOT_FOUND: there is no home. */
LP_MUST int lp_app_key_path(struct lp_span configured, char *room, size_t room_len);
/* Opens the key file, or makes it, and reads the keys. Not LP_EXIT_OK: everything has been said.
 * A key file that must be there already is not made. */
LP_MUST int lp_app_load_keys(
    const char *path, bool may_make, struct lp_keyring *ret, bool *ret_made);
/* Its text alone, checked, with a zero byte behind it; made when it is not there. To be wiped,
 * whatever is returned. */
LP_MUST int lp_app_load_key_text(const char *path, struct lp_buf *ret_text);
/* Overwrites and releases it; one of zeros is fine. */
void lp_app_wipe(struct lp_buf *text);

/* Whose certificates https replicas are believed by; NULL when there are none. The caller frees it
 * after its loops. Not LP_EXIT_OK: everything has been said. */
struct lp_tls_trust;
LP_MUST int lp_app_load_trust(const struct lp_conf *conf, struct lp_tls_trust **ret);

/* Appends "127.0.0.1:8080", "[::1]:8080" or "unix:/run/a.sock". */
LP_MUST int lp_app_address(const struct lp_conf_address *address, struct lp_buf *out);

/* --- log_line.c --- */

/* A line of the event log, as text or as JSON (lp_log_line_fn of io/log.h). */
int lp_app_text_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence);
int lp_app_json_line(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence);

#endif
