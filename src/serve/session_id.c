/* Session ids (serve/session_id.h).
 *
 * A UUID is read as strictly as it is written, so that one session has one id. Of another owner's
 * id only the prefix is ours to judge: what follows it is opaque (mcp/owner.h). */
#include "serve/session_id.h"

#include <stdio.h>

static void set_uuid_bits(struct lp_key *key)
{
    key->hi = (key->hi & ~0xF000ull) | 0x4000ull;
    key->lo = (key->lo & ~(3ull << 62)) | 2ull << 62;
}

size_t lp_session_id_mint(struct lp_span owner, struct lp_key *key, char text[LP_SESSION_ID_MAX])
{
    char uuid[LP_UUID_LEN + 1];
    set_uuid_bits(key);
    snprintf(uuid, sizeof uuid, "%08llx-%04llx-%04llx-%04llx-%012llx",
        (unsigned long long)(key->hi >> 32), (unsigned long long)(key->hi >> 16 & 0xFFFF),
        (unsigned long long)(key->hi & 0xFFFF), (unsigned long long)(key->lo >> 48),
        (unsigned long long)(key->lo & 0xFFFFFFFFFFFF));
    size_t len = 0;
    if (owner.len) {
        LP_ASSERT(lp_owner_is_id(owner));
        memcpy(text, owner.ptr, owner.len);
        text[owner.len] = '.';
        len = owner.len + 1;
    }
    memcpy(text + len, uuid, LP_UUID_LEN);
    return len + LP_UUID_LEN;
}

static bool is_dash_at(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_uuid(struct lp_span text, struct lp_key *ret_key)
{
    struct lp_key key = {0};
    if (text.len != LP_UUID_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_value(text.ptr[i]);
        if (is_dash_at(i) ? text.ptr[i] != '-' : digit < 0)
            return false;
        if (is_dash_at(i))
            continue;
        key.hi = key.hi << 4 | key.lo >> 60;
        key.lo = key.lo << 4 | (uint64_t)digit;
    }
    *ret_key = key;
    return true;
}

enum lp_whose lp_session_id_judge(
    struct lp_span owner, struct lp_span text, struct lp_key *ret_key, struct lp_span *ret_owner)
{
    struct lp_span prefix;
    struct lp_span rest = text;
    if (owner.len && lp_owner_split(text, &prefix, &rest))
        return LP_WHOSE_NOBODYS;
    if (owner.len && !lp_span_eq(prefix, owner)) {
        *ret_owner = prefix;
        return LP_WHOSE_OTHERS;
    }
    return parse_uuid(rest, ret_key) ? LP_WHOSE_OURS : LP_WHOSE_NOBODYS;
}
