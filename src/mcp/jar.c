/* The cookie jar (mcp/jar.h). One block of packed entries in the order of their storing: what is
 * kept is what goes into a ticket or to another engine, and a jar costs what its cookies need.
 *
 * The scope is the origin (scheme, host without case, port), so of Secure only the moment of
 * storing matters: what was kept may be sent wherever the jar sends. */
#include "mcp/jar.h"

#include "wire/cookie.h"

const char *lp_jar_words(enum lp_jar_verdict verdict)
{
    static const char *const words[] = {
#define X(name, words) words,
        LP_JAR_VERDICTS(X)
#undef X
    };
    return words[verdict];
}

bool lp_jar_must_tell(enum lp_jar_verdict verdict)
{
    return verdict == LP_JAR_NOT_SECURE || verdict == LP_JAR_BAD_PREFIX;
}

void lp_jar_init(struct lp_jar *jar, const struct lp_uri *origin, size_t bytes_max)
{
    lp_jar_init_in(jar, origin, bytes_max, NULL);
}

void lp_jar_init_in(
    struct lp_jar *jar, const struct lp_uri *origin, size_t bytes_max, const struct lp_alloc *alloc)
{
    *jar = (struct lp_jar){.max = bytes_max, .alloc = alloc};
    jar->origin = (struct lp_uri){.scheme = origin->scheme,
        .has_authority = origin->has_authority,
        .host = origin->host,
        .host_is_ipv6 = origin->host_is_ipv6,
        .port = origin->port};
}

void lp_jar_fini(struct lp_jar *jar)
{
    if (jar->bytes)
        (void)lp_resize(jar->alloc, jar->bytes, jar->cap, 0);
    jar->bytes = NULL;
    jar->len = jar->cap = 0;
    jar->count = 0;
}

/* --- the packed form -------------------------------------------------------------------------- */

static void put_number(char *at, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--, value >>= 8)
        at[i - 1] = (char)(value & 0xFF);
}

static uint64_t get_number(const char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static size_t packed_len(const struct lp_jar_entry *entry)
{
    return LP_JAR_ENTRY_BYTES + entry->name.len + entry->value.len;
}

static char *put_span(char *at, struct lp_span s)
{
    if (s.len)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static void pack(char *at, const struct lp_jar_entry *entry)
{
    put_number(at, entry->expires_ms, 8);
    put_number(at + 8, entry->name.len, 2);
    put_number(at + 10, entry->value.len, 2);
    put_span(put_span(at + LP_JAR_ENTRY_BYTES, entry->name), entry->value);
}

/* The entry at the front of *rest, cut off; false when there is no whole one. */
static bool unpack(struct lp_span *rest, struct lp_jar_entry *ret)
{
    if (rest->len < LP_JAR_ENTRY_BYTES)
        return false;
    size_t name_len = get_number(rest->ptr + 8, 2);
    size_t value_len = get_number(rest->ptr + 10, 2);
    if (rest->len - LP_JAR_ENTRY_BYTES < name_len + value_len)
        return false;
    const char *name = rest->ptr + LP_JAR_ENTRY_BYTES;
    *ret = (struct lp_jar_entry){.name = lp_span(name, name_len),
        .value = lp_span(name + name_len, value_len),
        .expires_ms = get_number(rest->ptr, 8)};
    *rest = lp_span_from(*rest, LP_JAR_ENTRY_BYTES + name_len + value_len);
    return true;
}

/* --- what is kept ----------------------------------------------------------------------------- */

struct lp_span lp_jar_packed(const struct lp_jar *jar)
{
    return lp_span(jar->bytes, jar->len);
}

static void cut_out(struct lp_jar *jar, size_t at, size_t len)
{
    memmove(jar->bytes + at, jar->bytes + at + len, jar->len - at - len);
    jar->len -= len;
    jar->count--;
}

/* Removes what has run out, and the cookie of that name. */
static void weed(struct lp_jar *jar, uint64_t wall_ms, struct lp_span name)
{
    struct lp_span rest = lp_jar_packed(jar);
    struct lp_jar_entry entry;
    while (unpack(&rest, &entry)) {
        if (entry.expires_ms > wall_ms && !lp_span_eq(entry.name, name))
            continue;
        size_t at = (size_t)(entry.name.ptr - jar->bytes) - LP_JAR_ENTRY_BYTES;
        cut_out(jar, at, packed_len(&entry));
        rest = lp_span(jar->bytes + at, jar->len - at);
    }
}

static void drop_oldest(struct lp_jar *jar)
{
    struct lp_span rest = lp_jar_packed(jar);
    struct lp_jar_entry entry;
    bool is_there = unpack(&rest, &entry);
    LP_ASSERT(is_there);
    cut_out(jar, 0, packed_len(&entry));
}

/* Room for `need` bytes in all, so that nothing can fail once the jar is being changed. */
static int reserve(struct lp_jar *jar, size_t need)
{
    enum { CAP_FIRST = 128 };
    size_t cap = jar->cap ? jar->cap : CAP_FIRST;
    while (cap < need)
        cap *= 2;
    if (cap > jar->max)
        cap = jar->max;
    if (cap <= jar->cap)
        return LP_OK;
    char *bytes = lp_resize(jar->alloc, jar->bytes, jar->cap, cap);
    if (!bytes)
        return LP_ENOMEM;
    jar->bytes = bytes;
    jar->cap = cap;
    return LP_OK;
}

static bool is_too_long(const struct lp_jar *jar, const struct lp_jar_entry *entry)
{
    return entry->name.len + 1 + entry->value.len > LP_JAR_PAIR_MAX || packed_len(entry) > jar->max;
}

int lp_jar_put(struct lp_jar *jar, const struct lp_jar_entry *entry, uint64_t wall_ms)
{
    if (is_too_long(jar, entry))
        return LP_ETOO_LONG;
    if (entry->expires_ms <= wall_ms) {
        weed(jar, wall_ms, entry->name);
        return LP_OK;
    }
    size_t need = packed_len(entry);
    if (reserve(jar, jar->len + need))
        return LP_ENOMEM;
    weed(jar, wall_ms, entry->name);
    while (jar->count == LP_JAR_COOKIES_MAX || jar->len + need > jar->max)
        drop_oldest(jar);
    pack(jar->bytes + jar->len, entry);
    jar->len += need;
    jar->count++;
    return LP_OK;
}

int lp_jar_pack(struct lp_buf *out, const struct lp_jar_entry *entry)
{
    char *room = NULL;
    int err = lp_buf_reserve(out, packed_len(entry), &room);
    if (err)
        return err;
    pack(room, entry);
    lp_buf_commit(out, packed_len(entry));
    return LP_OK;
}

int lp_jar_unpack(struct lp_jar *jar, struct lp_span packed, uint64_t wall_ms)
{
    struct lp_jar_entry entry;
    while (packed.len) {
        if (!unpack(&packed, &entry) || !entry.name.len)
            return LP_ESYNTAX;
        int err = lp_jar_put(jar, &entry, wall_ms);
        if (err)
            return err;
    }
    return LP_OK;
}

/* --- what comes in ---------------------------------------------------------------------------- */

static uint64_t expiry_of(const struct lp_set_cookie *c, uint64_t wall_ms)
{
    uint64_t ms;
    if (c->has_max_age) {
        if (!c->max_age_s)
            return LP_JAR_GONE;
        bool is_far = __builtin_mul_overflow(c->max_age_s, 1000, &ms) ||
            __builtin_add_overflow(ms, wall_ms, &ms);
        return is_far ? LP_JAR_KEEPS : ms;
    }
    if (!c->has_expires)
        return LP_JAR_KEEPS;
    return c->expires_s > 0 ? (uint64_t)c->expires_s * 1000 : LP_JAR_GONE;
}

/* Without regard to case, as browsers do: what a server reads as the prefix must be one. */
static bool has_prefix(struct lp_span name, struct lp_span prefix)
{
    return name.len >= prefix.len && lp_span_ieq(lp_span(name.ptr, prefix.len), prefix);
}

static bool keeps_promise(const struct lp_set_cookie *c, bool is_https)
{
    if (has_prefix(c->name, LP_SPAN("__Host-")))
        return is_https && c->is_secure && c->path_is_root && !c->has_domain;
    if (has_prefix(c->name, LP_SPAN("__Secure-")))
        return is_https && c->is_secure;
    return true;
}

enum lp_jar_verdict lp_jar_judge(const struct lp_jar *jar, const struct lp_uri *from,
    struct lp_span line, uint64_t wall_ms, struct lp_jar_entry *ret_entry)
{
    struct lp_set_cookie c;
    if (!lp_uri_same_origin(&jar->origin, from))
        return LP_JAR_OTHER_ORIGIN;
    if (lp_cookie_parse_set(line, &c))
        return LP_JAR_MALFORMED;
    *ret_entry = (struct lp_jar_entry){c.name, c.value, expiry_of(&c, wall_ms)};
    bool is_https = lp_span_ieq(from->scheme, LP_SPAN("https"));
    if (is_too_long(jar, ret_entry))
        return LP_JAR_TOO_LONG;
    if (c.is_secure && !is_https)
        return LP_JAR_NOT_SECURE;
    if (!keeps_promise(&c, is_https))
        return LP_JAR_BAD_PREFIX;
    return ret_entry->expires_ms > wall_ms ? LP_JAR_STORED : LP_JAR_REMOVED;
}

enum lp_jar_verdict lp_jar_store(struct lp_jar *jar, const struct lp_uri *from, struct lp_span line,
    uint64_t wall_ms, struct lp_span *ret_name)
{
    struct lp_jar_entry entry = {0};
    enum lp_jar_verdict verdict = lp_jar_judge(jar, from, line, wall_ms, &entry);
    *ret_name = entry.name;
    bool is_fit = verdict == LP_JAR_STORED || verdict == LP_JAR_REMOVED;
    return is_fit && lp_jar_put(jar, &entry, wall_ms) ? LP_JAR_NO_ROOM : verdict;
}

/* --- what goes out ---------------------------------------------------------------------------- */

static bool has_name(const struct lp_jar *jar, struct lp_span name)
{
    struct lp_span rest = lp_jar_packed(jar);
    struct lp_jar_entry entry;
    while (unpack(&rest, &entry))
        if (lp_span_eq(entry.name, name))
            return true;
    return false;
}

static char *put_joint(char *at, const char *begin)
{
    return at == begin ? at : put_span(at, LP_SPAN("; "));
}

static char *put_configured(char *at, const struct lp_jar *jar, struct lp_span configured)
{
    const char *begin = at;
    struct lp_span name, pair;
    while (lp_cookie_next(&configured, &name, &pair))
        if (!has_name(jar, name))
            at = put_span(put_joint(at, begin), pair);
    return at;
}

int lp_jar_write(struct lp_jar *jar, const struct lp_uri *to, uint64_t wall_ms,
    struct lp_span configured, struct lp_buf *out)
{
    if (!lp_uri_same_origin(&jar->origin, to))
        return lp_buf_append(out, configured);
    weed(jar, wall_ms, LP_SPAN(""));
    if (!jar->count)
        return lp_buf_append(out, configured);
    /* At most two bytes of joint for one byte of a configured pair; the jar's "=" and "; " need
     * less than an entry's numbers. */
    char *begin = NULL;
    int err = lp_buf_reserve(out, 3 * configured.len + jar->len, &begin);
    if (err)
        return err;
    char *at = put_configured(begin, jar, configured);
    struct lp_span rest = lp_jar_packed(jar);
    struct lp_jar_entry entry;
    while (unpack(&rest, &entry)) {
        at = put_span(put_joint(at, begin), entry.name);
        at = put_span(put_span(at, LP_SPAN("=")), entry.value);
    }
    lp_buf_commit(out, (size_t)(at - begin));
    return LP_OK;
}
