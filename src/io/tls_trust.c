/* Trust (io/tls_trust.h): one OpenSSL context for all connections, with the rules that hold for
 * each of them: TLS 1.2 at least, HTTP/1.1 by ALPN (RFC 7301), certificates verified, no
 * renegotiation, no buffers while idle. */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/tls.h"

static const unsigned char ALPN[] = "\x08http/1.1";

static int load_file(SSL_CTX *context, const char *path, struct lp_buf *why)
{
    if (access(path, R_OK)) {
        int err =
            lp_buf_printf(why, "cannot read the CA certificates in %s: %s", path, strerror(errno));
        return err ? err : LP_ENOT_FOUND;
    }
    if (SSL_CTX_load_verify_file(context, path) == 1) {
        /* A certificate that was named is trusted even if another one signed it. */
        (void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
        return LP_OK;
    }
    ERR_clear_error();
    int err = lp_buf_printf(why,
        "no CA certificate could be read from %s; it must be a PEM file, with lines like "
        "-----BEGIN CERTIFICATE-----",
        path);
    return err ? err : LP_ESYNTAX;
}

static bool set_rules(SSL_CTX *context)
{
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    /* One recv for a record, not one for its head and one for the rest. */
    SSL_CTX_set_read_ahead(context, 1);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        SSL_CTX_set_alpn_protos(context, ALPN, sizeof ALPN - 1) == 0;
}

int lp_tls_trust_new(
    const struct lp_tls_trust_args *args, struct lp_buf *why, struct lp_tls_trust **ret)
{
    struct lp_tls_trust *trust = calloc(1, sizeof *trust);
    if (!trust)
        return LP_ENOMEM;
    trust->context = SSL_CTX_new(TLS_client_method());
    trust->socket = lp_tls_bio_method();
    int err = trust->context && trust->socket && set_rules(trust->context) ? LP_OK : LP_ENOMEM;
    if (!err && args->cacert_path)
        err = load_file(trust->context, args->cacert_path, why);
    else if (!err)
        (void)SSL_CTX_set_default_verify_paths(trust->context);
    if (err) {
        lp_tls_trust_free(trust);
        return err;
    }
    SSL_CTX_set_verify(trust->context, args->is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    *ret = trust;
    return LP_OK;
}

void lp_tls_trust_free(struct lp_tls_trust *trust)
{
    if (!trust)
        return;
    SSL_CTX_free(trust->context);
    BIO_meth_free(trust->socket);
    free(trust);
}
