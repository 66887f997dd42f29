/* Laws that hold for any history of Set-Cookie lines in a jar. Used by property test and fuzz
 * target.
 *
 *  - The jar stays within its bounds and holds no name twice and nothing that has run out.
 *  - What is sent, read as a Cookie field, is what is kept, in its order.
 *  - A stored pair is the newest; a line that is refused changes nothing.
 *  - A configured value keeps its pairs, in order, but those of a name that the jar has.
 *  - Packed and unpacked it is the same jar. Another origin sees nothing of it. */
#ifndef LP_TEST_COOKIE_LAWS_H
#define LP_TEST_COOKIE_LAWS_H

#include <stdlib.h>

#include "mcp/jar.h"
#include "wire/cookie.h"

struct law_cookies {
    struct lp_span names[128];
    struct lp_span pairs[128];
    size_t count;
};

static inline struct law_cookies law_read(struct lp_span field)
{
    struct law_cookies c = {.count = 0};
    while (c.count < 128 && lp_cookie_next(&field, &c.names[c.count], &c.pairs[c.count]))
        c.count++;
    return c;
}

static inline bool law_has(const struct law_cookies *c, struct lp_span name)
{
    for (size_t i = 0; i < c->count; i++)
        if (lp_span_eq(c->names[i], name))
            return true;
    return false;
}

static inline struct lp_uri law_uri(const char *text)
{
    struct lp_uri uri;
    int err = lp_uri_parse(lp_span_str(text), &uri);
    LP_ASSERT(!err);
    return uri;
}

static inline struct lp_span law_write(struct lp_jar *jar, const struct lp_uri *to,
    uint64_t wall_ms, struct lp_span configured, struct lp_buf *out)
{
    lp_buf_init(out, 1 << 22);
    int err = lp_jar_write(jar, to, wall_ms, configured, out);
    LP_ASSERT(!err);
    return lp_buf_span(out);
}

static inline void law_sent(struct lp_jar *jar, const struct lp_uri *to, uint64_t wall_ms)
{
    struct lp_buf out;
    struct law_cookies c = law_read(law_write(jar, to, wall_ms, LP_SPAN(""), &out));
    LP_ASSERT(c.count == jar->count && c.count <= LP_JAR_COOKIES_MAX && jar->len <= jar->max);
    for (size_t i = 0; i < c.count; i++) {
        LP_ASSERT(c.names[i].len && c.pairs[i].len <= LP_JAR_PAIR_MAX);
        for (size_t k = i + 1; k < c.count; k++)
            LP_ASSERT(!lp_span_eq(c.names[i], c.names[k]));
    }
    lp_buf_release(&out);
}

static inline void law_merge(
    struct lp_jar *jar, const struct lp_uri *to, uint64_t wall_ms, struct lp_span configured)
{
    struct lp_buf alone, both;
    struct law_cookies kept = law_read(law_write(jar, to, wall_ms, LP_SPAN(""), &alone));
    struct lp_span written = law_write(jar, to, wall_ms, configured, &both);
    struct law_cookies own = law_read(configured), all = law_read(written);
    size_t at = 0;
    LP_ASSERT(kept.count || lp_span_eq(written, configured));
    for (size_t i = 0; i < own.count && own.count + kept.count < 128; i++)
        if (!law_has(&kept, own.names[i])) {
            LP_ASSERT(lp_span_eq(all.pairs[at], own.pairs[i]));
            at++;
        }
    for (size_t i = 0; i < kept.count && own.count + kept.count < 128; i++, at++)
        LP_ASSERT(lp_span_eq(all.pairs[at], kept.pairs[i]));
    LP_ASSERT(at == all.count || own.count + kept.count >= 128);
    lp_buf_release(&alone);
    lp_buf_release(&both);
}

static inline void law_packed(const struct lp_jar *jar, uint64_t wall_ms)
{
    struct lp_jar copy;
    lp_jar_init(&copy, &jar->origin, jar->max);
    int err = lp_jar_unpack(&copy, lp_jar_packed(jar), wall_ms);
    LP_ASSERT(!err && lp_span_eq(lp_jar_packed(jar), lp_jar_packed(&copy)));
    lp_jar_fini(&copy);
}

static inline void law_store(
    struct lp_jar *jar, const struct lp_uri *from, struct lp_span line, uint64_t wall_ms)
{
    struct lp_buf before, out;
    law_write(jar, from, wall_ms, LP_SPAN(""), &before); /* what has run out is gone now */
    size_t count = jar->count;
    struct lp_span name;
    enum lp_jar_verdict verdict = lp_jar_store(jar, from, line, wall_ms, &name);
    struct law_cookies c = law_read(law_write(jar, from, wall_ms, LP_SPAN(""), &out));
    if (verdict == LP_JAR_STORED)
        LP_ASSERT(c.count && lp_span_eq(c.names[c.count - 1], name));
    else if (verdict == LP_JAR_REMOVED)
        LP_ASSERT(!law_has(&c, name) && c.count + 1 >= count);
    else
        LP_ASSERT(lp_span_eq(lp_buf_span(&before), lp_buf_span(&out)));
    lp_buf_release(&before);
    lp_buf_release(&out);
}

static inline void law_elsewhere(struct lp_jar *jar, uint64_t wall_ms)
{
    struct lp_buf out;
    struct lp_uri other = law_uri("https://elsewhere.test:1/");
    struct lp_span name;
    enum lp_jar_verdict verdict = lp_jar_store(jar, &other, LP_SPAN("a=b"), wall_ms, &name);
    LP_ASSERT(verdict == LP_JAR_OTHER_ORIGIN);
    LP_ASSERT(!law_write(jar, &other, wall_ms, LP_SPAN(""), &out).len);
    lp_buf_release(&out);
}

/* `text`: a line of orders. "@" moves the clock on by so many seconds, "+" is a configured Cookie
 * value, anything else a Set-Cookie value. */
static inline void check_jar_laws(struct lp_span text, bool is_https, size_t bytes_max)
{
    struct lp_uri origin = law_uri(is_https ? "https://a.test/mcp" : "http://a.test/mcp");
    struct lp_jar jar;
    uint64_t wall_ms = UINT64_C(1800000000000), seconds;
    lp_jar_init(&jar, &origin, bytes_max);
    while (text.len) {
        struct lp_span line = lp_span_split(text, '\n', &text);
        if (line.len && line.ptr[0] == '@')
            wall_ms +=
                lp_span_to_u64(lp_span_from(line, 1), &seconds) ? seconds % 100000 * 1000 : 1;
        else if (line.len && line.ptr[0] == '+')
            law_merge(&jar, &origin, wall_ms, lp_span_from(line, 1));
        else
            law_store(&jar, &origin, line, wall_ms);
        law_sent(&jar, &origin, wall_ms);
        law_packed(&jar, wall_ms);
    }
    law_elsewhere(&jar, wall_ms);
    lp_jar_fini(&jar);
}

/* A readable date read again from its plain form is the same. */
static inline void check_date_law(struct lp_span text)
{
    int64_t s;
    if (!lp_cookie_parse_date(text, &s))
        LP_ASSERT(s >= -INT64_C(11644473600) && s <= INT64_C(253402300799));
}

#endif
