/* Whose certificates are believed: made once by the app, shared by its loops (io/loop.h), in any
 * number of threads. */
#ifndef LP_IO_TLS_TRUST_H
#define LP_IO_TLS_TRUST_H

#include "base/buf.h"
#include "base/error.h"

struct lp_tls_trust;

struct lp_tls_trust_args {
    const char *cacert_path; /* PEM; these certificates are trusted, and no others. NULL: the roots
                                of the system */
    bool is_insecure;        /* believe anybody: the app says so aloud */
};

/* Reads the file. LP_ENOT_FOUND or LP_ESYNTAX (no certificate in it) with a sentence in `why`;
 * LP_ENOMEM. The roots of the system are OpenSSL's defaults: its folder of certificates, or what
 * the environment says by SSL_CERT_FILE and SSL_CERT_DIR; none at all is not an error here. */
LP_MUST int lp_tls_trust_new(
    const struct lp_tls_trust_args *args, struct lp_buf *why, struct lp_tls_trust **ret);

/* After the loops that use it were freed. NULL is fine. */
void lp_tls_trust_free(struct lp_tls_trust *trust);

#endif
