/* Owner ids (mcp/owner.h): where a process has its own from, and how it stands in a session id.
 * Who is asked for a session of another owner is decided in gate. */
#include "mcp/owner.h"

#include <sodium.h>

bool lp_owner_is_id(struct lp_span text)
{
    if (text.len == 0 || text.len > LP_OWNER_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

static void take(enum lp_owner_source source, struct lp_span id, struct lp_owner *ret)
{
    LP_ASSERT(lp_owner_is_id(id));
    ret->source = source;
    ret->len = id.len;
    memcpy(ret->text, id.ptr, id.len);
}

static void take_hostname(struct lp_span hostname, struct lp_owner *ret)
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[LP_OWNER_HOSTNAME_DIGITS];
    crypto_hash_sha256(hash, (const unsigned char *)hostname.ptr, hostname.len);
    for (size_t i = 0; i < sizeof text / 2; i++) {
        text[2 * i] = DIGITS[hash[i] >> 4];
        text[2 * i + 1] = DIGITS[hash[i] & 15];
    }
    take(LP_OWNER_HOSTNAME, lp_span(text, sizeof text), ret);
}

int lp_owner_choose(const struct lp_owner_sources *sources, struct lp_owner *ret)
{
    struct lp_owner owner = {.source = LP_OWNER_NOWHERE};
    if (sources->configured.len) {
        if (!lp_owner_is_id(sources->configured))
            return LP_EREFUSED;
        take(LP_OWNER_CONFIGURED, sources->configured, &owner);
    } else if (lp_owner_is_id(sources->machine)) {
        take(LP_OWNER_MACHINE, sources->machine, &owner);
    } else if (sources->machine.len) {
        owner.source = LP_OWNER_MACHINE_BAD;
    } else if (sources->takes_hostname && sources->hostname.len) {
        take_hostname(sources->hostname, &owner);
    }
    *ret = owner;
    return LP_OK;
}

static bool is_rest(struct lp_span rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] < 0x21 || rest.ptr[i] > 0x7E)
            return false;
    return rest.len > 0 && rest.len <= LP_OWNER_REST_MAX;
}

int lp_owner_mint(struct lp_span owner, struct lp_span rest, struct lp_buf *out)
{
    char *room;
    LP_ASSERT(lp_owner_is_id(owner));
    if (!is_rest(rest))
        return LP_EREFUSED;
    int err = lp_buf_reserve(out, owner.len + 1 + rest.len, &room);
    if (err)
        return err;
    memcpy(room, owner.ptr, owner.len);
    room[owner.len] = '.';
    memcpy(room + owner.len + 1, rest.ptr, rest.len);
    lp_buf_commit(out, owner.len + 1 + rest.len);
    return LP_OK;
}

int lp_owner_split(struct lp_span id, struct lp_span *ret_owner, struct lp_span *ret_rest)
{
    struct lp_span rest;
    struct lp_span owner = lp_span_split(id, '.', &rest);
    if (!lp_owner_is_id(owner) || !is_rest(rest))
        return LP_ESYNTAX;
    *ret_owner = owner;
    *ret_rest = rest;
    return LP_OK;
}
