/* The cookie jar as the public header has it (limpet.h; mcp/jar.h). It owns what the inner jar
 * borrows: the text of the origin, and the value that was last made of its cookies. */
#include "mcp/jar.h"

#include "lib/glue.h"

_Static_assert((int)LIMPET_JAR_BYTES_MAX == LP_JAR_BYTES_MAX, "");
_Static_assert((int)LIMPET_JAR_STORED == LP_JAR_STORED, "");
_Static_assert((int)LIMPET_JAR_REMOVED == LP_JAR_REMOVED, "");
_Static_assert((int)LIMPET_JAR_OTHER_ORIGIN == LP_JAR_OTHER_ORIGIN, "");
_Static_assert((int)LIMPET_JAR_MALFORMED == LP_JAR_MALFORMED, "");
_Static_assert((int)LIMPET_JAR_TOO_LONG == LP_JAR_TOO_LONG, "");
_Static_assert((int)LIMPET_JAR_NOT_SECURE == LP_JAR_NOT_SECURE, "");
_Static_assert((int)LIMPET_JAR_BAD_PREFIX == LP_JAR_BAD_PREFIX, "");
_Static_assert((int)LIMPET_JAR_NO_ROOM == LP_JAR_NO_ROOM, "");

enum { VALUE_MAX = 3 * LIMPET_COOKIE_VALUE_MAX + LP_JAR_BYTES_MAX };

struct limpet_jar {
    struct lp_lib_object object;
    struct lp_jar jar;
    struct lp_buf value;
    char url[];
};

static int parse_origin(struct lp_span url, struct lp_uri *ret)
{
    int err = lp_uri_parse(url, ret);
    if (err)
        return err;
    bool is_web =
        lp_span_ieq(ret->scheme, LP_SPAN("http")) || lp_span_ieq(ret->scheme, LP_SPAN("https"));
    return is_web && ret->has_authority ? LP_OK : LP_ESYNTAX;
}

int limpet_jar_new(const struct limpet_alloc *alloc, struct limpet_span url, size_t bytes_max,
    struct limpet_jar **ret_jar)
{
    struct lp_uri origin;
    int err = parse_origin(lp_lib_in(url), &origin);
    if (err)
        return err;
    struct limpet_jar *jar = lp_lib_new(alloc, sizeof *jar + url.len);
    if (!jar)
        return LIMPET_ENOMEM;
    memcpy(jar->url, url.ptr, url.len);
    err = parse_origin(lp_span(jar->url, url.len), &origin);
    LP_ASSERT(!err);
    lp_jar_init_in(&jar->jar, &origin, bytes_max < LP_JAR_BYTES_MAX ? bytes_max : LP_JAR_BYTES_MAX,
        &jar->object.alloc);
    lp_buf_init_in(&jar->value, VALUE_MAX, &jar->object.alloc);
    *ret_jar = jar;
    return LIMPET_OK;
}

void limpet_jar_free(struct limpet_jar *jar)
{
    if (jar)
        limpet_jar_clear(jar);
    lp_lib_free(jar);
}

void limpet_jar_clear(struct limpet_jar *jar)
{
    lp_jar_fini(&jar->jar);
    lp_buf_release(&jar->value);
}

enum limpet_jar_verdict limpet_jar_store(struct limpet_jar *jar, struct limpet_span url,
    struct limpet_span line, uint64_t wall_ms, struct limpet_span *ret_name)
{
    struct lp_uri from;
    struct lp_span name = {NULL, 0};
    enum lp_jar_verdict verdict = LP_JAR_OTHER_ORIGIN;
    if (!parse_origin(lp_lib_in(url), &from))
        verdict = lp_jar_store(&jar->jar, &from, lp_lib_in(line), wall_ms, &name);
    *ret_name = lp_lib_out(name);
    return (enum limpet_jar_verdict)verdict;
}

const char *limpet_jar_words(enum limpet_jar_verdict verdict)
{
    return (unsigned)verdict <= LIMPET_JAR_NO_ROOM ? lp_jar_words((enum lp_jar_verdict)verdict)
                                                   : "";
}

bool limpet_jar_must_tell(enum limpet_jar_verdict verdict)
{
    return lp_jar_must_tell((enum lp_jar_verdict)verdict);
}

int limpet_jar_cookie(struct limpet_jar *jar, struct limpet_span url, uint64_t wall_ms,
    struct limpet_span configured, struct limpet_span *ret_value)
{
    struct lp_uri to;
    int err = LP_OK;
    if (configured.len > LIMPET_COOKIE_VALUE_MAX)
        return LIMPET_ETOO_LONG;
    lp_buf_clear(&jar->value);
    if (parse_origin(lp_lib_in(url), &to))
        err = lp_buf_append(&jar->value, lp_lib_in(configured));
    else
        err = lp_jar_write(&jar->jar, &to, wall_ms, lp_lib_in(configured), &jar->value);
    if (err)
        return err;
    *ret_value = lp_lib_out(lp_buf_span(&jar->value));
    return LIMPET_OK;
}

struct limpet_span limpet_jar_packed(const struct limpet_jar *jar)
{
    return lp_lib_out(lp_jar_packed(&jar->jar));
}

int limpet_jar_unpack(struct limpet_jar *jar, struct limpet_span packed, uint64_t wall_ms)
{
    return lp_jar_unpack(&jar->jar, lp_lib_in(packed), wall_ms);
}
