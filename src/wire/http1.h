/* HTTP/1.1 as a strict push parser and a writer (RFC 9112). No I/O, no clock.
 *
 * Strict means: what two readers could understand differently is refused. A bare LF, a bare CR,
 * obsolete folding, a space before the colon, Content-Length together with Transfer-Encoding,
 * differing or malformed Content-Lengths, a transfer coding other than exactly one "chunked",
 * chunked in HTTP/1.0, two Host fields, no Host in HTTP/1.1, bytes that no field may hold, an HTTP
 * version other than 1.0 and 1.1: all LP_ESYNTAX or LP_EAMBIGUOUS. One or more empty lines (CRLF)
 * before a request line are skipped (RFC 9112 2.2). Chunk extensions are read over, with a cap;
 * trailers are read, checked and dropped.
 *
 * Feeding: the caller hands bytes and gets one item a call:
 *
 *     while (in.len) {
 *         ptrdiff_t n = lp_http1_feed(p, in, &item);
 *         if (n < 0) ...error, the parser is dead...
 *         in = lp_span_from(in, n);
 *         switch (item.kind) { NONE: all consumed, needs more; HEAD; BODY; END }
 *     }
 *
 * HEAD is followed by any number of BODYs and one END (END also for messages without body, from a
 * further call: feed must be called again, even with an empty span, after HEAD and BODY as long as
 * items come). Any split of the input gives the same items, BODYs joined. A head that comes whole
 * in one span is not copied: its spans point into the caller's bytes; otherwise into the parser.
 *
 * head_max (LP_HTTP1_HEAD_MAX after init) may be lowered by the owner between messages; it also
 * caps all trailers of a message together. */
#ifndef LP_WIRE_HTTP1_H
#define LP_WIRE_HTTP1_H

#include "base/buf.h"
#include "base/error.h"
#include "wire/head.h"

enum lp_http1_side { LP_HTTP1_REQUESTS, LP_HTTP1_RESPONSES };

enum lp_http1_item_kind {
    LP_HTTP1_NONE, /* everything was consumed; more bytes are needed */
    LP_HTTP1_HEAD, /* item.head: valid until the next feed, reset or release */
    LP_HTTP1_BODY, /* item.body: a piece of the body, inside the fed span */
    LP_HTTP1_END,  /* the message is complete; the parser is ready for the next one */
};

struct lp_http1_item {
    enum lp_http1_item_kind kind;
    struct lp_head *head;
    struct lp_span body;
};

enum { LP_HTTP1_HEAD_MAX = 65536, LP_HTTP1_LINE_SKIP_MAX = 8, LP_HTTP1_CHUNK_LINE_MAX = 4096 };

enum lp_http1_state {
    LP_HTTP1_IN_HEAD,
    LP_HTTP1_IN_BODY, /* counted body */
    LP_HTTP1_IN_CHUNK_SIZE,
    LP_HTTP1_IN_CHUNK_DATA,
    LP_HTTP1_IN_CHUNK_END, /* the CRLF after a chunk's data */
    LP_HTTP1_IN_TRAILERS,
    LP_HTTP1_IN_UNTIL_CLOSE,
    LP_HTTP1_AT_END, /* END is due */
    LP_HTTP1_DEAD,
};

struct lp_http1 {
    enum lp_http1_side side;
    enum lp_http1_state state;
    enum lp_method answered_method; /* responses: the method of the request they answer */
    size_t head_max;
    uint64_t left;        /* bytes left of the counted body, chunk, chunk end or trailers */
    struct lp_buf held;   /* a head or a line that comes in pieces; its lines are checked already */
    bool held_is_spent;   /* what `held` holds was handed out: freed by the next feed */
    uint32_t line_start;  /* offset of the current line in the head that comes */
    uint32_t skipped;     /* empty lines before the request line */
    struct lp_head *head; /* the last head: caller's memory, see init */
};

/* `head` is where heads are put: it may be shared by parsers that are never used at the same time
 * (one per engine), since a head is only valid until the next feed of any of them. */
void lp_http1_init(struct lp_http1 *p, enum lp_http1_side side, struct lp_head *head);

/* Frees what it holds; the parser may be initialised again. */
void lp_http1_release(struct lp_http1 *p);

/* Responses only: the method of the request that the next head answers, so that HEAD (and CONNECT)
 * are framed right (RFC 9112 6.3). Default LP_METHOD_GET. 1xx heads come as HEAD items followed by
 * END, and leave the method as it is; after the head of a final answer it is GET again. 101 is
 * LP_EUNSUPPORTED. An answer that may have no body but claims one: 1xx is LP_EAMBIGUOUS, 204 is not
 * kept alive. */
void lp_http1_answering(struct lp_http1 *p, enum lp_method method);

/* Bytes consumed (0 <= n <= in.len) and one item; or LP_ESYNTAX, LP_EAMBIGUOUS, LP_EUNSUPPORTED,
 * LP_ETOO_LONG (head over head_max, too many fields), LP_ENOMEM. NONE only when all was consumed.
 */
LP_MUST ptrdiff_t lp_http1_feed(struct lp_http1 *p, struct lp_span in, struct lp_http1_item *ret);

/* The connection has ended. 0 when that is a fair end: between messages (no half head), or in a
 * body of LP_BODY_UNTIL_CLOSE or with an END not yet fetched (then *ret_ended_message is true: END
 * is implied). LP_EBROKEN inside a message. No feed after it. */
LP_MUST int lp_http1_eof(struct lp_http1 *p, bool *ret_ended_message);

/* True when no byte of a message has been read since the last END. */
bool lp_http1_is_between(const struct lp_http1 *p);

/* Writes the start line and all fields of `head` and the empty line. Content-Length,
 * Transfer-Encoding and Connection are the writer's: fields with these ids in `head` are skipped
 * and written from head->body, body_bytes and keep_alive (LP_BODY_NONE on an answer that may have a
 * body, and on POST, PUT and PATCH, writes Content-Length: 0; "Connection: close" when not
 * keep_alive, and for LP_BODY_UNTIL_CLOSE). An answer whose head->method is HEAD gets no
 * Content-Length: 0. The version written is always HTTP/1.1. Nothing is written on failure:
 * LP_ESYNTAX when a part holds bytes that it may not (nobody smuggles a line end through here),
 * LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_http1_write_head(struct lp_buf *out, const struct lp_head *head);

/* The line before a chunk of `n` > 0 bytes, into `line`; returns its length. The chunk is followed
 * by LP_HTTP1_CHUNK_TAIL, the body by LP_HTTP1_LAST_CHUNK. */
enum { LP_HTTP1_CHUNK_LINE_BYTES = 20 };
size_t lp_http1_chunk_line(char line[LP_HTTP1_CHUNK_LINE_BYTES], uint64_t n);
#define LP_HTTP1_CHUNK_TAIL LP_SPAN("\r\n")
#define LP_HTTP1_LAST_CHUNK LP_SPAN("0\r\n\r\n")

/* "OK" for 200 and so on; "" for a status without a known phrase. */
struct lp_span lp_http1_phrase(uint16_t status);

#endif
