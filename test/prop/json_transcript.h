/* What the JSON reader says about some bytes, as text: two ways of feeding the same bytes are
 * compared by comparing texts. On the way each string token must obey the laws of its forms. Used
 * by property test and fuzz target. */
#ifndef LP_TEST_JSON_TRANSCRIPT_H
#define LP_TEST_JSON_TRANSCRIPT_H

#include <stdlib.h>

#include "base/buf.h"
#include "cuts.h"
#include "wire/json.h"

struct json_transcript {
    struct lp_span in;
    struct lp_buf *out;
    size_t stop_after; /* tokens after which on_token says STOPPED; 0: never */
    size_t count;
    size_t last_end;
    uint32_t depth; /* containers open, as the tokens tell */
};

enum { JSON_STOPPED = 77 };

/* Decoding and comparing agree; quoting the meaning and decoding that gives the meaning again; no
 * room is overrun. */
static inline void check_string(struct lp_span token, bool has_escape)
{
    size_t len = 0, again = 0, cut = 9;
    char *room = malloc(token.len + 1);
    LP_ASSERT(room && has_escape == (lp_span_find(token, '\\') < token.len));
    int err = lp_json_unescape(token, room, token.len - 2, &len);
    LP_ASSERT(!err && len <= token.len - 2 && (has_escape || len == token.len - 2));
    struct lp_span text = lp_span(room, len);
    LP_ASSERT(lp_json_string_is(token, text));
    room[len] = 'x';
    LP_ASSERT(!lp_json_string_is(token, lp_span(room, len + 1)));
    LP_ASSERT(len == 0 || !lp_json_string_is(token, lp_span(room, len - 1)));

    struct lp_buf quoted;
    lp_buf_init(&quoted, 6 * len + 2);
    err = lp_json_quote(&quoted, text);
    LP_ASSERT(!err);
    char *second = malloc(len + 1);
    LP_ASSERT(second);
    err = lp_json_unescape(lp_buf_span(&quoted), second, len, &again);
    LP_ASSERT(!err && lp_span_eq(lp_span(second, again), text));
    LP_ASSERT(lp_json_string_is(lp_buf_span(&quoted), text));
    if (len) {
        err = lp_json_unescape(token, second, len - 1, &cut);
        LP_ASSERT(err == LP_ETOO_LONG && cut == 9);
    }
    lp_buf_release(&quoted);
    free(second);
    free(room);
}

static inline void follow_depth(struct json_transcript *t, const struct lp_json_token *token)
{
    if (token->kind == LP_JSON_OBJECT_END || token->kind == LP_JSON_ARRAY_END)
        t->depth--;
    LP_ASSERT(token->depth == t->depth);
    if (token->kind == LP_JSON_OBJECT_BEGIN || token->kind == LP_JSON_ARRAY_BEGIN)
        t->depth++;
    LP_ASSERT(t->depth <= LP_JSON_DEPTH_MAX);
}

static inline int say_token(void *ctx, const struct lp_json_token *token)
{
    struct json_transcript *t = ctx;
    LP_ASSERT(token->begin >= t->last_end && token->begin < token->end);
    LP_ASSERT(token->end <= t->in.len);
    t->last_end = token->end;
    follow_depth(t, token);
    int err = lp_buf_printf(t->out, "%d at %u [%zu, %zu) %d%d\n", (int)token->kind, token->depth,
        token->begin, token->end, (int)token->has_escape, (int)token->is_integer);
    LP_ASSERT(!err);
    if (token->kind == LP_JSON_KEY || token->kind == LP_JSON_STRING)
        check_string(
            lp_span(t->in.ptr + token->begin, token->end - token->begin), token->has_escape);
    t->count++;
    return t->stop_after && t->count == t->stop_after ? JSON_STOPPED : 0;
}

/* The verdict; *out gets the text. */
static inline int json_transcript(
    struct lp_span in, struct cuts cuts, size_t stop_after, struct lp_buf *out)
{
    struct json_transcript t = {.in = in, .out = out, .stop_after = stop_after};
    struct lp_json reader;
    int verdict = 0;
    lp_json_init(&reader, say_token, &t);
    for (struct lp_span rest = in; rest.len;) {
        struct lp_span piece = cut_piece(&cuts, rest);
        rest = lp_span_from(rest, piece.len);
        int err = lp_json_feed(&reader, piece);
        free((void *)piece.ptr);
        LP_ASSERT(verdict == 0 || err == verdict); /* a verdict is final */
        verdict = err;
    }
    int end = lp_json_finish(&reader);
    LP_ASSERT(verdict == 0 || end == verdict);
    LP_ASSERT(lp_json_finish(&reader) == end);
    LP_ASSERT(end || t.depth == 0);
    int err = lp_buf_printf(out, "verdict %d\n", end);
    LP_ASSERT(!err);
    return end;
}

/* Any bytes can be quoted; the result is JSON, and quoting its meaning gives the same. */
static inline void check_quote(struct lp_span bytes)
{
    struct lp_buf quoted, again, text;
    struct lp_json reader;
    lp_buf_init(&quoted, 6 * bytes.len + 2);
    lp_buf_init(&again, 6 * bytes.len + 2);
    lp_buf_init(&text, 3 * bytes.len + 1);
    int err = lp_json_quote(&quoted, bytes);
    LP_ASSERT(!err);
    lp_json_init(&reader, NULL, NULL);
    err = lp_json_feed(&reader, lp_buf_span(&quoted));
    LP_ASSERT(!err && lp_json_finish(&reader) == 0);
    char *room = NULL;
    size_t len = 0;
    err = lp_buf_reserve(&text, text.max, &room);
    LP_ASSERT(!err);
    err = lp_json_unescape(lp_buf_span(&quoted), room, text.max, &len);
    LP_ASSERT(!err && len >= bytes.len);
    err = lp_json_quote(&again, lp_span(room, len));
    LP_ASSERT(!err && lp_span_eq(lp_buf_span(&quoted), lp_buf_span(&again)));
    lp_buf_release(&quoted);
    lp_buf_release(&again);
    lp_buf_release(&text);
}

#endif
