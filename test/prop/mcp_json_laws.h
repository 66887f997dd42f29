/* Laws that hold for any text as an mcp.json. Used by property test and fuzz target.
 *
 *  - Reading ends with an entry or with a sentence.
 *  - What is before and behind the entry, and every other member of it, stays byte for byte.
 *  - On is read as on, off is not there; twice is as once; where nothing was, off after on gives
 * the text back. */
#ifndef LP_TEST_MCP_JSON_LAWS_H
#define LP_TEST_MCP_JSON_LAWS_H

#include <stdlib.h>

#include "conf/mcp_json_priv.h"

#define LAW_SERVER LP_SPAN("s")
#define LAW_KEY LP_SPAN("cookieJar")

static inline bool law_lookup(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    (void)ctx;
    *ret_value = lp_span("value", name.len % 6);
    return name.len % 2;
}

static inline void law_find(struct lp_span text)
{
    struct lp_arena arena;
    struct lp_buf problem;
    struct lp_mcp_json_server server;
    lp_arena_init(&arena, 1 << 20);
    lp_buf_init(&problem, 1 << 20);
    struct lp_mcp_json_source source = {
        .text = text, .lookup = law_lookup, .arena = &arena, .problem = &problem};
    int err = lp_mcp_json_find(&source, LAW_SERVER, &server);
    LP_ASSERT(err == LP_ENOMEM || (err != 0) == (problem.len != 0));
    if (!err)
        LP_ASSERT((server.type == LP_MCP_JSON_STDIO ? server.command.len : server.url.len) > 0);
    lp_buf_release(&problem);
    lp_arena_fini(&arena);
}

static inline int law_append_other(void *ctx, const struct lp_member *member)
{
    if (lp_json_string_is(member->key, LAW_KEY))
        return 0;
    int err = lp_buf_append(ctx, member->key);
    if (!err)
        err = lp_buf_append(ctx, member->value);
    return err;
}

/* All members of the entry but the edited one, one behind the other. */
static inline void law_others(struct lp_span entry, struct lp_buf *out)
{
    lp_buf_init(out, 1 << 22);
    int err = lp_members_walk(entry, law_append_other, out);
    LP_ASSERT(!err);
}

static inline struct lp_span law_entry(struct lp_span text)
{
    struct lp_span entry;
    int err = lp_mcp_json_entry(text, LAW_SERVER, &entry);
    LP_ASSERT(!err);
    return entry;
}

static inline void law_only_this_changed(struct lp_span before, struct lp_span after)
{
    struct lp_span a = law_entry(before), b = law_entry(after);
    size_t front = (size_t)(a.ptr - before.ptr), back = before.len - front - a.len;
    LP_ASSERT((size_t)(b.ptr - after.ptr) == front && after.len - front - b.len == back);
    LP_ASSERT(lp_span_eq(lp_span(before.ptr, front), lp_span(after.ptr, front)));
    LP_ASSERT(lp_span_eq(lp_span(a.ptr + a.len, back), lp_span(b.ptr + b.len, back)));
    struct lp_buf a_others, b_others;
    law_others(a, &a_others);
    law_others(b, &b_others);
    LP_ASSERT(lp_span_eq(lp_buf_span(&a_others), lp_buf_span(&b_others)));
    lp_buf_release(&a_others);
    lp_buf_release(&b_others);
}

static inline struct lp_span law_set(struct lp_span text, bool value, struct lp_buf *out)
{
    lp_buf_init(out, 1 << 22);
    int err = lp_mcp_json_set_bool(text, LAW_SERVER, LAW_KEY, value, out);
    LP_ASSERT(!err);
    struct lp_member member;
    err = lp_members_find(law_entry(lp_buf_span(out)), LAW_KEY, &member);
    LP_ASSERT(value ? !err && member.kind == LP_JSON_TRUE : err == LP_ENOT_FOUND);
    law_only_this_changed(text, lp_buf_span(out));
    return lp_buf_span(out);
}

static inline void law_edit(struct lp_span text)
{
    struct lp_buf on, on_again, off, off_again, none;
    struct lp_member member;
    struct lp_span entry;
    lp_buf_init(&none, 1 << 22);
    if (lp_mcp_json_set_bool(text, LAW_SERVER, LAW_KEY, true, &none)) {
        LP_ASSERT(!none.len);
        return;
    }
    lp_buf_release(&none);
    int err = lp_mcp_json_entry(text, LAW_SERVER, &entry);
    LP_ASSERT(!err);
    bool was_there = !lp_members_find(entry, LAW_KEY, &member);
    struct lp_span with = law_set(text, true, &on);
    LP_ASSERT(lp_span_eq(law_set(with, true, &on_again), with));
    struct lp_span without = law_set(with, false, &off);
    LP_ASSERT(lp_span_eq(law_set(without, false, &off_again), without));
    LP_ASSERT(was_there || lp_span_eq(without, text));
    lp_buf_release(&on);
    lp_buf_release(&on_again);
    lp_buf_release(&off);
    lp_buf_release(&off_again);
}

static inline void check_mcp_json_laws(struct lp_span text)
{
    struct lp_mcp_json_settings settings;
    const char *sentence = NULL;
    law_find(text);
    law_edit(text);
    int err = lp_mcp_json_read_settings(text, &settings, &sentence);
    LP_ASSERT((err != 0) == (sentence != NULL));
}

#endif
