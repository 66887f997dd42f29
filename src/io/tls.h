/* TLS on one socket as a client: the filter between conn.c and OpenSSL 3. Used inside this room
 * only. It knows the socket but not the loop: nothing here waits, and what the socket does not take
 * is kept until it is flushed.
 *
 *   conn.c --- plain bytes ---> lp_tls_write --> record --> socket, what is left --> out
 *          <-- plain bytes ---- lp_tls_read <-- record <--- socket
 *
 * Memory: OpenSSL's buffers are there while half a record is; `out` holds one record and its
 * overhead, because nothing is encrypted before it is empty. */
#ifndef LP_IO_TLS_H
#define LP_IO_TLS_H

#include <openssl/ssl.h>

#include "base/span.h"
#include "io/tls_trust.h"

struct lp_tls;

struct lp_tls_trust {
    SSL_CTX *context;
    BIO_METHOD *socket; /* how OpenSSL reaches the socket of a struct lp_tls */
};

/* How OpenSSL reaches a socket; BIO_meth_free. NULL: no memory. */
BIO_METHOD *lp_tls_bio_method(void);

enum lp_tls_step { LP_TLS_DONE, LP_TLS_WAIT, LP_TLS_FAILED };

enum lp_tls_got {
    LP_TLS_BYTES, /* the room is full (or, for peek, bytes are there): there may be more */
    LP_TLS_NOTHING,
    LP_TLS_END, /* close_notify: the peer has said that it sends no more */
    LP_TLS_CUT, /* reset, garbage, a fatal alert, or an end that nobody has announced */
};

/* A connection to be, for a name (SNI, and what the certificate must hold) or an address. The
 * caller frees it. LP_ENOT_FOUND when no name can be like `host`; LP_ENOMEM. */
LP_MUST int lp_tls_new(const struct lp_tls_trust *trust, struct lp_span host, struct lp_tls **ret);
void lp_tls_free(struct lp_tls *tls);

/* The socket, connected and non-blocking; not owned. */
void lp_tls_attach(struct lp_tls *tls, int fd);

/* Goes on with the handshake as far as the socket allows. WAIT: call again when it is readable, or
 * writable while lp_tls_owes. */
LP_MUST enum lp_tls_step lp_tls_handshake(struct lp_tls *tls);

/* After FAILED: LP_ETLS, LP_ETLS_UNTRUSTED, LP_ETLS_NAME or LP_ETLS_EXPIRED. */
int lp_tls_error(const struct lp_tls *tls);

/* Fills the room as far as it can. *ret_len bytes were put there, whatever the answer is. */
LP_MUST enum lp_tls_got lp_tls_read(struct lp_tls *tls, char *room, size_t cap, size_t *ret_len);

/* What a read would find, nothing taken. Reads from the socket only when no bytes wait here. */
LP_MUST enum lp_tls_got lp_tls_peek(struct lp_tls *tls);

/* Bytes wait here that the socket will not announce. */
bool lp_tls_has_bytes(const struct lp_tls *tls);

/* How many bytes were taken (0: the socket takes no more), or LP_EBROKEN. Taken bytes may be owed
 * to the socket: flush. */
LP_MUST int64_t lp_tls_write(struct lp_tls *tls, const struct lp_span *parts, uint32_t count);
bool lp_tls_owes(const struct lp_tls *tls);
LP_MUST int lp_tls_flush(struct lp_tls *tls); /* as much as the socket takes; LP_EBROKEN */

/* Says close_notify, behind what is owed. Nothing is written after it. */
void lp_tls_end(struct lp_tls *tls);

#endif
