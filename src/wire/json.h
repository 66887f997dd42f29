/* A strict JSON reader (RFC 8259) that reports where values lie and keeps nothing.
 *
 * It checks every byte (UTF-8, numbers, escapes, nesting up to LP_JSON_DEPTH_MAX) and tells offsets
 * into the input, counted from the first byte ever fed, so the caller can keep values byte for
 * byte: big ids, 1.0, escapes. Any split of the input gives the same tokens. One leading UTF-8 BOM
 * is skipped (cases BOD-03). Exactly one value is allowed, blanks around it. */
#ifndef LP_WIRE_JSON_H
#define LP_WIRE_JSON_H

#include "base/assert.h"
#include "base/error.h"
#include "base/span.h"

enum { LP_JSON_DEPTH_MAX = 128 };

enum lp_json_token_kind {
    LP_JSON_OBJECT_BEGIN,
    LP_JSON_OBJECT_END,
    LP_JSON_ARRAY_BEGIN,
    LP_JSON_ARRAY_END,
    LP_JSON_KEY,    /* a member's name, quotes included in the offsets */
    LP_JSON_STRING, /* a value, quotes included */
    LP_JSON_NUMBER,
    LP_JSON_TRUE,
    LP_JSON_FALSE,
    LP_JSON_NULL,
};

struct lp_json_token {
    enum lp_json_token_kind kind;
    uint32_t depth;    /* of the value: 0 for the outermost; a member's key and value are one deeper
                          than their object */
    size_t begin, end; /* offsets [begin, end) of the token */
    bool has_escape;   /* KEY, STRING: holds a backslash */
    bool is_integer;   /* NUMBER: no fraction, no exponent */
};

typedef int (*lp_json_token_fn)(void *ctx, const struct lp_json_token *token);

/* What may still come of a UTF-8 sequence. */
struct lp_json_utf8 {
    uint8_t left; /* continuation bytes to come */
    uint8_t min;  /* bounds of the next one */
    uint8_t max;
};

struct lp_json {
    lp_json_token_fn on_token;
    void *ctx;
    int verdict;   /* what stopped the reader: an error or on_token's word; 0 while it goes on */
    size_t offset; /* bytes fed before the current piece */
    size_t token_begin;
    uint32_t depth;
    uint8_t state;
    uint8_t substate; /* within a BOM, number, literal or \u escape */
    uint8_t literal;  /* the kind of token that is being spelled */
    struct lp_json_utf8 utf8;
    bool is_key;
    bool has_escape;
    bool is_integer;
    uint8_t stack[LP_JSON_DEPTH_MAX / 8]; /* one bit a level: 1 object, 0 array */
};

/* `on_token` is called for each token as soon as it is complete; a non-zero return stops the reader
 * and is passed on. May be NULL (only checking). */
void lp_json_init(struct lp_json *j, lp_json_token_fn on_token, void *ctx);

/* Takes all of `in`. LP_ESYNTAX (not JSON), LP_ELIMIT (too deep), or what on_token returned. */
LP_MUST int lp_json_feed(struct lp_json *j, struct lp_span in);

/* The input is complete. LP_ESYNTAX when no whole value was seen. */
LP_MUST int lp_json_finish(struct lp_json *j);

/* Whether `text` is one JSON value and nothing else; whether that is an object. */
bool lp_json_is_whole(struct lp_span text);
bool lp_json_is_object(struct lp_span text);

/* Decodes a string token (quotes included) into `room`; *ret_len is its length in UTF-8. Lone
 * surrogates become U+FFFD. LP_ETOO_LONG when `room` is too small. The token must have passed the
 * reader. */
LP_MUST int lp_json_unescape(struct lp_span token, char *room, size_t room_len, size_t *ret_len);

/* Whether a string token (quotes included) means exactly `text`, escapes resolved. */
bool lp_json_string_is(struct lp_span token, struct lp_span text);

struct lp_buf;
/* Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
LP_MUST int lp_json_quote(struct lp_buf *out, struct lp_span text);

#endif
