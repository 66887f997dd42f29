/* For the tests of TLS in io/: certificates made on the spot, and a peer that speaks TLS by OpenSSL
 * over a plain non-blocking socket, so that a test can also break in below it. */
#ifndef LP_TEST_TLS_PEER_H
#define LP_TEST_TLS_PEER_H

#include "io_harness.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "io/tls_trust.h"

struct issued {
    EVP_PKEY *key;
    X509 *cert;
};

struct wish {
    const char *names;         /* subjectAltName: "DNS:localhost,IP:127.0.0.1" */
    const struct issued *from; /* NULL: signed by itself */
    long begin_s, end_s;       /* from now; both 0: valid */
    bool is_ca;
};

static inline void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline struct issued issue(const struct wish *wish)
{
    static long serial = 0;
    bool is_valid_now = wish->begin_s == 0 && wish->end_s == 0;
    struct issued made = {.key = EVP_EC_gen("P-256"), .cert = X509_new()};
    const struct issued *from = wish->from ? wish->from : &made;
    char name[32];
    (void)snprintf(name, sizeof name, "test %ld", ++serial);
    assert_non_null(made.key);
    assert_int_equal(X509_set_version(made.cert, X509_VERSION_3), 1);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial);
    (void)X509_gmtime_adj(X509_getm_notBefore(made.cert), is_valid_now ? -3600 : wish->begin_s);
    (void)X509_gmtime_adj(X509_getm_notAfter(made.cert), is_valid_now ? 3600 : wish->end_s);
    (void)X509_set_pubkey(made.cert, made.key);
    X509_NAME *subject = X509_get_subject_name(made.cert);
    assert_int_equal(
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (unsigned char *)name, -1, -1, 0),
        1);
    (void)X509_set_issuer_name(made.cert, X509_get_subject_name(from->cert));
    add_extension(made.cert, NID_basic_constraints, wish->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (wish->names)
        add_extension(made.cert, NID_subject_alt_name, wish->names);
    assert_true(X509_sign(made.cert, from->key, EVP_sha256()) > 0);
    return made;
}

static inline void issued_free(struct issued *made)
{
    EVP_PKEY_free(made->key);
    X509_free(made->cert);
}

/* The certificate as a PEM file; removed by the caller. */
static inline void write_pem(const char *path, const struct issued *made)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, made->cert), 1);
    assert_int_equal(fclose(file), 0);
}

static inline struct lp_tls_trust *trust_of(const char *cacert_path, bool is_insecure)
{
    struct lp_tls_trust_args args = {.cacert_path = cacert_path, .is_insecure = is_insecure};
    struct lp_tls_trust *trust = NULL;
    struct lp_buf why;
    lp_buf_init(&why, 1000);
    int err = lp_tls_trust_new(&args, &why, &trust);
    if (err)
        fail_msg("%.*s", (int)why.len, why.ptr);
    lp_buf_release(&why);
    return trust;
}

/* The peer */

/* The application protocols that the last client offered, as in its hello. */
static unsigned char offered_alpn[32];
static size_t offered_alpn_len;

static inline int note_hello(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *bytes = NULL;
    size_t len = 0;
    (void)alert;
    (void)arg;
    (void)SSL_client_hello_get0_ext(
        ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &len);
    assert_true(len <= sizeof offered_alpn);
    offered_alpn_len = len;
    memcpy(offered_alpn, bytes, len);
    return SSL_CLIENT_HELLO_SUCCESS;
}

static inline SSL_CTX *peer_context(const struct issued *made, int version_max)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    SSL_CTX_set_security_level(context, version_max < TLS1_2_VERSION ? 0 : 1);
    assert_int_equal(SSL_CTX_set_min_proto_version(context, TLS1_VERSION), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, version_max), 1);
    assert_int_equal(SSL_CTX_use_certificate(context, made->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, made->key), 1);
    SSL_CTX_set_client_hello_cb(context, note_hello, NULL);
    (void)SSL_CTX_set_mode(
        context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

/* Waits in the kernel's queue until the loop has connected. */
static inline int peer_accept(struct engine *e, int listener)
{
    int fd = -1;
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (fd < 0) {
        turn(e);
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        assert_true(lp_clock_mono_us() < until_us);
    }
    lp_io_tcp_options(fd); /* no delay: what was said is on its way when a test breaks in */
    return fd;
}

static inline bool must_wait(SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* The server's half of a handshake while the loop turns: true when the peer is content. */
static inline bool peer_shake(struct engine *e, SSL *ssl)
{
    int done = -1;
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    ERR_clear_error();
    while ((done = SSL_accept(ssl)) != 1 && must_wait(ssl, done)) {
        assert_true(lp_clock_mono_us() < until_us);
        turn(e);
        ERR_clear_error();
    }
    return done == 1;
}

/* Sends all of it while the loop turns. */
static inline void peer_say(struct engine *e, SSL *ssl, const char *bytes, size_t len)
{
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (len) {
        ERR_clear_error();
        int n = SSL_write(ssl, bytes, (int)len);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
            continue;
        }
        assert_true(must_wait(ssl, n));
        assert_true(lp_clock_mono_us() < until_us);
        turn(e);
    }
}

/* What is there: more bytes, 0 at close_notify, -1 at a cut, -EAGAIN for nothing yet. */
static inline int peer_hear(SSL *ssl, struct lp_buf *into)
{
    static char room[65536];
    ERR_clear_error();
    int n = SSL_read(ssl, room, sizeof room);
    if (n > 0) {
        assert_int_equal(lp_buf_append(into, lp_span(room, (size_t)n)), LP_OK);
        return n;
    }
    if (must_wait(ssl, n))
        return -EAGAIN;
    return SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* Reads until close_notify (0) or a cut (-1). */
static inline int peer_hear_to_end(struct engine *e, SSL *ssl, struct lp_buf *into)
{
    int n = 1;
    uint64_t until_us = lp_clock_mono_us() + 10000000;
    while (n > 0 || n == -EAGAIN) {
        turn(e);
        n = peer_hear(ssl, into);
        assert_true(lp_clock_mono_us() < until_us);
    }
    return n;
}

#endif
