/* TLS on one socket (io/tls.h): decides what OpenSSL's answers mean for a connection, and which
 * error tells the user what to do. RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2), RFC 9525 and RFC 6066 3
 * (names), RFC 8446 6.1 (close_notify). Watching and telling is conn.c, the rules for all
 * connections are tls_trust.c.
 *
 * OpenSSL reaches the socket by a BIO of our own: with its socket BIO a record that went out half
 * would have to be offered again with the same bytes, which WRITE cannot promise; with memory BIOs
 * every byte would be copied once more and the memory stay. */
#include "io/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "io/address.h"

enum {
    HOST_MAX = 255,
    RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH, /* one SSL_write makes one record */
    RECORDS_PER_WRITE = 16,                  /* then the others have their turn */
    OUT_BYTES_MAX = 65536, /* a record, and answers to key updates of a peer that never reads */
};

struct lp_tls {
    SSL *ssl;
    struct lp_buf out; /* what the socket has not taken yet */
    int fd;
};

/* The BIO */

static int bio_read(BIO *bio, char *room, size_t cap, size_t *ret_len)
{
    const struct lp_tls *tls = BIO_get_data(bio);
    ssize_t n;
    do
        n = recv(tls->fd, room, cap, 0);
    while (n < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    if (n < 0 && errno == EAGAIN)
        BIO_set_retry_read(bio);
    if (n <= 0)
        return 0;
    *ret_len = (size_t)n;
    return 1;
}

/* How many of the bytes the socket takes now; LP_EBROKEN. */
static int64_t transmit(int fd, struct lp_span bytes)
{
    ssize_t n;
    do
        n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : LP_EBROKEN;
    return n;
}

static int bio_write(BIO *bio, const char *bytes, size_t len, size_t *ret_len)
{
    struct lp_tls *tls = BIO_get_data(bio);
    struct lp_span left = lp_span(bytes, len);
    BIO_clear_retry_flags(bio);
    int64_t n = tls->out.len ? 0 : transmit(tls->fd, left);
    if (n < 0)
        return 0;
    left = lp_span_from(left, (size_t)n);
    if (left.len && lp_buf_append(&tls->out, left))
        return 0;
    *ret_len = len;
    return 1;
}

static long bio_control(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

BIO_METHOD *lp_tls_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "limpet");
    if (!method)
        return NULL;
    (void)BIO_meth_set_read_ex(method, bio_read);
    (void)BIO_meth_set_write_ex(method, bio_write);
    (void)BIO_meth_set_ctrl(method, bio_control);
    return method;
}

/* Life */

/* The name the certificate must hold, and the one the server is told (SNI: names only). */
static bool set_host(SSL *ssl, struct lp_span host)
{
    char name[HOST_MAX + 1];
    struct lp_address address;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (lp_address_numeric(host, 0, &address) == LP_OK) {
        bool is_v4 = address.u.any.sa_family == AF_INET;
        const void *bytes =
            is_v4 ? (void *)&address.u.in.sin_addr : (void *)&address.u.in6.sin6_addr;
        return X509_VERIFY_PARAM_set1_ip(param, bytes, is_v4 ? 4 : 16) == 1;
    }
    /* "example.com." is the same name as "example.com" and stands in no certificate. */
    size_t len = lp_span_ends(host, LP_SPAN(".")) ? host.len - 1 : host.len;
    memcpy(name, host.ptr, len);
    name[len] = 0;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, name, len) == 1 &&
        SSL_set_tlsext_host_name(ssl, name) == 1;
}

static int start(struct lp_tls *tls, const struct lp_tls_trust *trust, struct lp_span host)
{
    lp_buf_init(&tls->out, OUT_BYTES_MAX);
    tls->fd = -1;
    tls->ssl = SSL_new(trust->context);
    BIO *bio = BIO_new(trust->socket);
    if (!tls->ssl || !bio || !set_host(tls->ssl, host)) {
        (void)BIO_free(bio);
        return LP_ENOMEM;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio); /* owns it */
    SSL_set_connect_state(tls->ssl);
    return LP_OK;
}

int lp_tls_new(const struct lp_tls_trust *trust, struct lp_span host, struct lp_tls **ret)
{
    if (host.len == 0 || host.len > HOST_MAX || lp_span_find(host, 0) < host.len)
        return LP_ENOT_FOUND;
    struct lp_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return LP_ENOMEM;
    int err = start(tls, trust, host);
    if (err) {
        lp_tls_free(tls);
        return err;
    }
    *ret = tls;
    return LP_OK;
}

void lp_tls_free(struct lp_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    lp_buf_release(&tls->out);
    free(tls);
}

void lp_tls_attach(struct lp_tls *tls, int fd)
{
    tls->fd = fd;
}

/* Handshake */

enum lp_tls_step lp_tls_handshake(struct lp_tls *tls)
{
    if (lp_tls_flush(tls))
        return LP_TLS_FAILED;
    ERR_clear_error();
    int done = SSL_do_handshake(tls->ssl);
    if (done == 1)
        return LP_TLS_DONE;
    return SSL_get_error(tls->ssl, done) == SSL_ERROR_WANT_READ ? LP_TLS_WAIT : LP_TLS_FAILED;
}

int lp_tls_error(const struct lp_tls *tls)
{
    if (SSL_get_verify_mode(tls->ssl) == SSL_VERIFY_NONE)
        return LP_ETLS;
    switch (SSL_get_verify_result(tls->ssl)) {
    case X509_V_OK: /* it did not come so far */
        return LP_ETLS;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return LP_ETLS_EXPIRED;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return LP_ETLS_NAME;
    default:
        return LP_ETLS_UNTRUSTED;
    }
}

/* Reading */

static enum lp_tls_got meaning(const struct lp_tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_NONE:
        return LP_TLS_BYTES;
    case SSL_ERROR_WANT_READ:
        return LP_TLS_NOTHING;
    case SSL_ERROR_ZERO_RETURN:
        return LP_TLS_END;
    default:
        return LP_TLS_CUT;
    }
}

enum lp_tls_got lp_tls_read(struct lp_tls *tls, char *room, size_t cap, size_t *ret_len)
{
    enum lp_tls_got got = LP_TLS_BYTES;
    size_t len = 0;
    while (got == LP_TLS_BYTES && len < cap) {
        size_t n = 0;
        ERR_clear_error();
        got = meaning(tls, SSL_read_ex(tls->ssl, room + len, cap - len, &n));
        len += n;
    }
    *ret_len = len;
    return got;
}

enum lp_tls_got lp_tls_peek(struct lp_tls *tls)
{
    char byte;
    size_t n;
    ERR_clear_error();
    return meaning(tls, SSL_peek_ex(tls->ssl, &byte, 1, &n));
}

bool lp_tls_has_bytes(const struct lp_tls *tls)
{
    return SSL_has_pending(tls->ssl) == 1;
}

/* Writing */

bool lp_tls_owes(const struct lp_tls *tls)
{
    return tls->out.len > 0;
}

int lp_tls_flush(struct lp_tls *tls)
{
    if (tls->out.len == 0)
        return LP_OK;
    int64_t n = transmit(tls->fd, lp_buf_span(&tls->out));
    if (n < 0)
        return LP_EBROKEN;
    lp_buf_consume(&tls->out, (size_t)n);
    if (tls->out.len == 0)
        lp_buf_release(&tls->out);
    return LP_OK;
}

/* The next record's bytes, one after the other: heads come in many small parts. */
struct cursor {
    const struct lp_span *parts;
    uint32_t count;
    size_t off; /* in the first part */
};

static struct lp_span next_record(struct cursor *c, char room[RECORD_BYTES])
{
    size_t len = 0;
    while (c->count && len < RECORD_BYTES) {
        struct lp_span part = lp_span_from(*c->parts, c->off);
        size_t n = part.len < RECORD_BYTES - len ? part.len : RECORD_BYTES - len;
        bool is_whole_record = len == 0 && n == RECORD_BYTES;
        if (n < part.len) {
            c->off += n;
        } else {
            c->parts++;
            c->count--;
            c->off = 0;
        }
        if (is_whole_record)
            return lp_span(part.ptr, n);
        if (n)
            memcpy(room + len, part.ptr, n);
        len += n;
    }
    return lp_span(room, len);
}

int64_t lp_tls_write(struct lp_tls *tls, const struct lp_span *parts, uint32_t count)
{
    char room[RECORD_BYTES];
    struct cursor cursor = {parts, count, 0};
    int64_t taken = 0;
    if (lp_tls_flush(tls))
        return LP_EBROKEN;
    for (int i = 0; i < RECORDS_PER_WRITE && !lp_tls_owes(tls); i++) {
        struct lp_span record = next_record(&cursor, room);
        size_t n;
        if (record.len == 0)
            break;
        ERR_clear_error();
        if (SSL_write_ex(tls->ssl, record.ptr, record.len, &n) != 1)
            return LP_EBROKEN;
        LP_ASSERT(n == record.len);
        taken += (int64_t)n;
    }
    return taken;
}

void lp_tls_end(struct lp_tls *tls)
{
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
