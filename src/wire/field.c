/* Field names and the character classes of HTTP (wire/field.h; RFC 9110 section 5).
 *
 * One table of 256 bytes answers two questions at once: is this byte a token character, and which
 * is its lower-case form. A name is found by its length and first byte, which together leave one
 * candidate (two in one case); that candidate is then compared whole. Values are checked eight
 * bytes at a time, because every byte of every head goes through here. What a field means is left
 * to the codecs and the gate. */
#include "wire/field.h"

#include <endian.h>

#include "base/assert.h"

/* 0 for a byte that may not be in a token, else its lower-case form. Sixteen bytes a row; the upper
 * half is all zero. */
static const unsigned char token_lower[256] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                              "\0!\0#$%&'\0\0*+\0-.\0"
                                              "0123456789\0\0\0\0\0\0"
                                              "\0abcdefghijklmno"
                                              "pqrstuvwxyz\0\0\0^_"
                                              "`abcdefghijklmno"
                                              "pqrstuvwxyz\0|\0~\0";

static const struct lp_span names[LP_FIELD_count] = {[LP_FIELD_OTHER] = {"", 0},
#define X(id, name) [LP_FIELD_##id] = {name, sizeof(name) - 1},
    LP_FIELDS(X)
#undef X
};

static unsigned char lower(char c)
{
    return token_lower[(unsigned char)c];
}

static uint64_t load_eight(const char *ptr)
{
    uint64_t eight;
    memcpy(&eight, ptr, sizeof eight);
    return eight;
}

/* Whether eight bytes are those of a name but for the case of letters, whose form in `names` has
 * 0x40 set and differs from the upper-case one in 0x20. */
static bool are_same_eight(const char *ptr, const char *want)
{
    uint64_t form = load_eight(want);
    uint64_t may_differ = (form & 0x4040404040404040) >> 1;
    return ((load_eight(ptr) ^ form) & ~may_differ) == 0;
}

static bool are_same(const char *ptr, const char *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(ptr[i]) != (unsigned char)want[i])
            return false;
    return true;
}

/* `id` when `name`, which has the same length, is its name; else OTHER. */
static enum lp_field_id confirm(struct lp_span name, enum lp_field_id id)
{
    const char *want = names[id].ptr;
    size_t last = name.len - 8; /* the last eight overlap those before them */
    if (name.len < 8)
        return are_same(name.ptr, want, name.len) ? id : LP_FIELD_OTHER;
    for (size_t at = 0; at < last; at += 8)
        if (!are_same_eight(name.ptr + at, want + at))
            return LP_FIELD_OTHER;
    return are_same_eight(name.ptr + last, want + last) ? id : LP_FIELD_OTHER;
}

/* The only name of that length with that first byte. Longer than others because it is a table: one
 * row for each row of LP_FIELDS (a test looks up every one of them). */
static enum lp_field_id candidate(struct lp_span name)
{
#define KEY(len, first) ((len) << 8 | (first))
#define CASE(len, first, id)                                                                       \
    case KEY(len, first):                                                                          \
        return LP_FIELD_##id

    switch (KEY(name.len, lower(name.ptr[0]))) {
        CASE(2, 't', TE);
        CASE(3, 'v', VIA);
        CASE(4, 'd', DATE);
        CASE(4, 'h', HOST);
        CASE(4, 'v', VARY);
        CASE(5, 'a', ALLOW);
        CASE(6, 'a', ACCEPT);
        CASE(6, 'c', COOKIE);
        CASE(6, 'e', EXPECT);
        CASE(6, 'o', ORIGIN);
        CASE(7, 't', TRAILER);
        CASE(7, 'u', UPGRADE);
        CASE(8, 'm', MCP_NAME);
        CASE(9, 'f', FORWARDED);
        CASE(10, 'c', CONNECTION);
        CASE(10, 'f', FLY_REPLAY);
        CASE(10, 'k', KEEP_ALIVE);
        CASE(10, 'l', LIMPET_HOP);
        CASE(10, 'm', MCP_METHOD);
        CASE(10, 's', SET_COOKIE);
        CASE(10, 't', TRACESTATE);
        CASE(10, 'u', USER_AGENT);
        CASE(11, 'r', RETRY_AFTER);
        CASE(11, 't', TRACEPARENT);
        CASE(12, 'c', CONTENT_TYPE);
        CASE(13, 'a', AUTHORIZATION);
        CASE(13, 'c', CACHE_CONTROL);
        CASE(13, 'l', LAST_EVENT_ID);
        CASE(14, 'c', CONTENT_LENGTH);
        CASE(14, 'f', FLY_REPLAY_SRC);
        CASE(14, 'm', MCP_SESSION_ID);
        CASE(15, 'x', X_FORWARDED_FOR);
        CASE(16, 'c', CONTENT_ENCODING);
        CASE(16, 'p', PROXY_CONNECTION);
        CASE(16, 'w', WWW_AUTHENTICATE);
        CASE(16, 'x', X_FORWARDED_HOST);
        CASE(17, 'f', FLY_REPLAY_FAILED);
        CASE(17, 't', TRANSFER_ENCODING);
        CASE(18, 'p', PROXY_AUTHENTICATE);
        CASE(19, 'p', PROXY_AUTHORIZATION);
        CASE(20, 'm', MCP_PROTOCOL_VERSION);
        CASE(27, 'a', ACCESS_CONTROL_ALLOW_ORIGIN);
        CASE(29, 'a', ACCESS_CONTROL_EXPOSE_HEADERS);
        CASE(30, 'a', ACCESS_CONTROL_REQUEST_HEADERS);
        CASE(32, 'a', ACCESS_CONTROL_ALLOW_CREDENTIALS);
    case KEY(17, 'x'): /* x-f... or x-a... */
        return lower(name.ptr[2]) == 'f' ? LP_FIELD_X_FORWARDED_PROTO : LP_FIELD_X_ACCEL_BUFFERING;
    default:
        return LP_FIELD_OTHER;
    }
#undef CASE
#undef KEY
}

enum lp_field_id lp_field_lookup(struct lp_span name)
{
    if (name.len == 0)
        return LP_FIELD_OTHER;
    enum lp_field_id id = candidate(name);
    if (id == LP_FIELD_OTHER)
        return id;
    LP_ASSERT(names[id].len == name.len);
    return confirm(name, id);
}

struct lp_span lp_field_name(enum lp_field_id id)
{
    LP_ASSERT(id < LP_FIELD_count);
    return names[id];
}

bool lp_field_is_token(struct lp_span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!lower(s.ptr[i]))
            return false;
    return s.len > 0;
}

static bool is_value_byte(unsigned char c)
{
    return (c >= 0x20 && c != 0x7F) || c == '\t';
}

static bool are_value_bytes(const char *ptr, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_value_byte((unsigned char)ptr[i]))
            return false;
    return true;
}

/* Marks the bytes that are below 0x20 or are 0x7F, tabs too, with 0x80. Without the top bit no sum
 * reaches into the next byte: adding 0x60 shows what is not below 0x20, adding 1 what is 0x7F. */
static uint64_t mark_controls(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t low = eight & ones * 0x7F;
    return ~eight & (~(low + ones * 0x60) | (low + ones)) & ones * 0x80;
}

static bool are_eight_value_bytes(const char *ptr)
{
    return !mark_controls(load_eight(ptr)) || are_value_bytes(ptr, sizeof(uint64_t));
}

bool lp_field_is_value(struct lp_span s)
{
    if (s.len < sizeof(uint64_t))
        return are_value_bytes(s.ptr, s.len);
    /* The last eight overlap what was looked at before: cheaper than the rest byte by byte. */
    const char *last = s.ptr + s.len - sizeof(uint64_t);
    for (const char *at = s.ptr; at < last; at += sizeof(uint64_t))
        if (!are_eight_value_bytes(at))
            return false;
    return are_eight_value_bytes(last);
}

size_t lp_field_value_len(struct lp_span s)
{
    size_t at = 0;
    while (s.len - at >= sizeof(uint64_t)) {
        uint64_t marks = mark_controls(le64toh(load_eight(s.ptr + at)));
        if (!marks) {
            at += sizeof(uint64_t);
            continue;
        }
        at += (size_t)__builtin_ctzll(marks) / 8;
        if (s.ptr[at] != '\t')
            return at;
        at++;
    }
    while (at < s.len && is_value_byte((unsigned char)s.ptr[at]))
        at++;
    return at;
}

bool lp_field_is_hop_by_hop(enum lp_field_id id)
{
    switch (id) {
    case LP_FIELD_CONNECTION:
    case LP_FIELD_KEEP_ALIVE:
    case LP_FIELD_PROXY_CONNECTION:
    case LP_FIELD_PROXY_AUTHENTICATE:
    case LP_FIELD_PROXY_AUTHORIZATION:
    case LP_FIELD_TE:
    case LP_FIELD_TRAILER:
    case LP_FIELD_TRANSFER_ENCODING:
    case LP_FIELD_UPGRADE:
        return true;
    default:
        return false;
    }
}

bool lp_field_list_has(struct lp_span list, struct lp_span word)
{
    /* An empty element of a list is no token (RFC 9110 5.6.1), so nothing is equal to it. */
    while (word.len && list.len) {
        struct lp_span element = lp_span_trim(lp_span_split(list, ',', &list));
        if (lp_span_ieq(element, word))
            return true;
    }
    return false;
}
