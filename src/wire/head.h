/* The head of an HTTP message, whatever the HTTP version: what codecs produce and take.
 *
 * Spans are borrowed from the codec that produced the head, until its next call. */
#ifndef LP_WIRE_HEAD_H
#define LP_WIRE_HEAD_H

#include "wire/field.h"

#define LP_METHODS(X)                                                                              \
    X(GET)                                                                                         \
    X(HEAD)                                                                                        \
    X(POST)                                                                                        \
    X(PUT)                                                                                         \
    X(DELETE)                                                                                      \
    X(OPTIONS)                                                                                     \
    X(PATCH)                                                                                       \
    X(CONNECT)                                                                                     \
    X(TRACE)

enum lp_method {
    LP_METHOD_OTHER,
#define X(name) LP_METHOD_##name,
    LP_METHODS(X)
#undef X
};

enum lp_body_kind {
    LP_BODY_NONE,        /* there is no body */
    LP_BODY_LENGTH,      /* exactly body_bytes bytes (> 0) */
    LP_BODY_CHUNKED,     /* chunked transfer coding */
    LP_BODY_UNTIL_CLOSE, /* an answer that ends with its connection */
};

enum { LP_HEAD_FIELDS_MAX = 128 };

struct lp_head {
    bool is_request;
    enum lp_method method;      /* requests; answers: of the request they answer, if known */
    struct lp_span method_name; /* requests, as it came */
    struct lp_span target;      /* requests: origin-form, absolute-form, "*" or authority */
    uint16_t status;            /* answers */
    struct lp_span reason;      /* answers; may be empty */
    uint8_t minor;              /* HTTP/1.minor: 0 or 1 */
    enum lp_body_kind body;
    uint64_t body_bytes;  /* LP_BODY_LENGTH */
    bool keep_alive;      /* the connection may be used again after this message */
    bool expect_continue; /* requests: Expect: 100-continue */
    struct lp_span bytes; /* of a head that was parsed: all its spans lie in them */
    uint32_t field_count;
    struct lp_field fields[LP_HEAD_FIELDS_MAX];
};

/* The first field with that id from index `*from` on, or NULL; *from becomes the index after it.
 * `from` may be NULL for "the first". */
const struct lp_field *lp_head_find(
    const struct lp_head *head, enum lp_field_id id, uint32_t *from);

/* The value of the first such field; an empty span with a null pointer when there is none. */
struct lp_span lp_head_value(const struct lp_head *head, enum lp_field_id id);

/* Adds a field at the end; LP_ELIMIT when the head is full. `id` is not LP_FIELD_OTHER; the id of a
 * field added by name is looked up. */
int lp_head_add(struct lp_head *head, enum lp_field_id id, struct lp_span value);
int lp_head_add_other(struct lp_head *head, struct lp_span name, struct lp_span value);

enum lp_method lp_method_lookup(struct lp_span name);

#endif
