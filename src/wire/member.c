/* Members and elements of a JSON text by one pass of the reader (wire/member.h).
 *
 * Nothing is built: the sample server's messages are small and asked for two or three members each,
 * and what it echoes must be the client's own bytes. */
#include "wire/member.h"

#include "wire/json.h"

enum { FOUND = 1 };

struct search {
    struct lp_span json;
    struct lp_span key;
    bool matches; /* the last key of the object is the one */
    size_t begin;
    struct lp_span found;
};

static int on_member_token(void *ctx, const struct lp_json_token *token)
{
    struct search *s = ctx;
    if (token->depth != 1)
        return 0;
    struct lp_span text = lp_span(s->json.ptr + token->begin, token->end - token->begin);
    if (token->kind == LP_JSON_KEY) {
        s->matches = lp_json_string_is(text, s->key);
        return 0;
    }
    if (!s->matches)
        return 0;
    if (token->kind == LP_JSON_OBJECT_BEGIN || token->kind == LP_JSON_ARRAY_BEGIN) {
        s->begin = token->begin;
        return 0;
    }
    bool is_end = token->kind == LP_JSON_OBJECT_END || token->kind == LP_JSON_ARRAY_END;
    size_t begin = is_end ? s->begin : token->begin;
    s->found = lp_span(s->json.ptr + begin, token->end - begin);
    return FOUND;
}

struct lp_span lp_member(struct lp_span json, struct lp_span key)
{
    struct search s = {.json = json, .key = key};
    struct lp_json reader;
    lp_json_init(&reader, on_member_token, &s);
    int err = lp_json_feed(&reader, json);
    if (!err)
        err = lp_json_finish(&reader); /* an object has no value that ends only here */
    return s.found;
}

bool lp_member_u64(struct lp_span json, struct lp_span key, uint64_t *ret)
{
    struct lp_span value = lp_member(json, key);
    return !value.len || lp_span_to_u64(value, ret);
}

bool lp_member_is(struct lp_span json, struct lp_span key, struct lp_span text)
{
    struct lp_span value = lp_member(json, key);
    return value.len && value.ptr[0] == '"' && lp_json_string_is(value, text);
}

struct walk {
    struct lp_span json;
    lp_element_fn each;
    void *ctx;
    size_t begin;
};

static int on_element_token(void *ctx, const struct lp_json_token *token)
{
    struct walk *w = ctx;
    if (token->depth != 1)
        return 0;
    if (token->kind == LP_JSON_OBJECT_BEGIN || token->kind == LP_JSON_ARRAY_BEGIN) {
        w->begin = token->begin;
        return 0;
    }
    bool is_end = token->kind == LP_JSON_OBJECT_END || token->kind == LP_JSON_ARRAY_END;
    size_t begin = is_end ? w->begin : token->begin;
    w->each(w->ctx, lp_span(w->json.ptr + begin, token->end - begin));
    return 0;
}

void lp_elements(struct lp_span json, lp_element_fn each, void *ctx)
{
    struct walk w = {.json = json, .each = each, .ctx = ctx};
    struct lp_json reader;
    lp_json_init(&reader, on_element_token, &w);
    int err = lp_json_feed(&reader, json);
    if (!err)
        err = lp_json_finish(&reader);
    LP_ASSERT(err <= 0);
}

struct tour {
    struct lp_span json;
    lp_member_fn each;
    void *ctx;
    struct lp_span key;
    size_t begin;
};

static int on_tour_token(void *ctx, const struct lp_json_token *token)
{
    struct tour *t = ctx;
    if (token->depth != 1)
        return 0;
    if (token->kind == LP_JSON_KEY) {
        t->key = lp_span(t->json.ptr + token->begin, token->end - token->begin);
        return 0;
    }
    if (token->kind == LP_JSON_OBJECT_BEGIN || token->kind == LP_JSON_ARRAY_BEGIN) {
        t->begin = token->begin;
        return 0;
    }
    bool is_end = token->kind == LP_JSON_OBJECT_END || token->kind == LP_JSON_ARRAY_END;
    size_t begin = is_end ? t->begin : token->begin;
    if (t->key.ptr)
        t->each(t->ctx, t->key, lp_span(t->json.ptr + begin, token->end - begin));
    return 0;
}

void lp_members(struct lp_span json, lp_member_fn each, void *ctx)
{
    struct tour t = {.json = json, .each = each, .ctx = ctx};
    struct lp_json reader;
    lp_json_init(&reader, on_tour_token, &t);
    int err = lp_json_feed(&reader, json);
    if (!err)
        err = lp_json_finish(&reader);
    LP_ASSERT(err <= 0);
}
