/* The URL of a store: where it is, how to log in, and whether it has to be a cluster.
 *
 *   redis://[user[:password]@]host[:port][,host[:port]...][/db]    rediss:// with TLS
 *   redis+cluster://host[:port][,...]     rediss+cluster://          it has to be a cluster
 *   unix:/path                                                       a socket of this machine
 *
 * Several hosts are several doors to the same store: one after the other is tried. Without
 * "+cluster" the store is asked whether it is a cluster. In user and password, %XX is a byte, and a
 * part that is ${NAME} as a whole stands for that environment variable, taken as it is. */
#ifndef LP_STORE_URL_H
#define LP_STORE_URL_H

#include "base/assert.h"
#include "base/span.h"

enum {
    LP_STORE_HOST_MAX = 253,
    LP_STORE_SEEDS_MAX = 16,
    LP_STORE_USER_MAX = 128,
    LP_STORE_PASSWORD_MAX = 512,
    LP_STORE_PORT = 6379,
};

struct lp_store_address {
    bool is_unix; /* host is the path */
    uint16_t port;
    uint8_t host_len;
    char host[LP_STORE_HOST_MAX];
};

enum lp_store_kind {
    LP_STORE_ASKED, /* one server or a cluster: whatever it says it is */
    LP_STORE_CLUSTER,
};

struct lp_store_url {
    enum lp_store_kind kind;
    bool is_tls;
    uint32_t db;
    uint32_t seed_count; /* 1 at least */
    struct lp_store_address seeds[LP_STORE_SEEDS_MAX];
    uint16_t user_len; /* 0: none */
    uint16_t password_len;
    char user[LP_STORE_USER_MAX];
    char password[LP_STORE_PASSWORD_MAX];
};

/* The value of an environment variable; false when it is not set. */
typedef bool (*lp_store_lookup_fn)(void *ctx, struct lp_span name, struct lp_span *ret_value);

/* LP_ESYNTAX: then *ret_why is a whole sentence that says what to write, and never holds a part of
 * the URL. `lookup` may be NULL: no variable is set. */
LP_MUST int lp_store_url_parse(struct lp_span text, lp_store_lookup_fn lookup, void *lookup_ctx,
    struct lp_store_url *ret, struct lp_span *ret_why);

#endif
