/* The scripts of serve/shared_lua.h, in Lua 5.1 as Redis has it. What several of them need is put
 * in front of each. */
#include "serve/shared_lua.h"

/* No such session: done. */
#define MUST_BE "local S = KEYS[1] if redis.call('EXISTS', S) == 0 then return 0 end\n"

#define NOW                                                                                        \
    "local function now() local t = redis.call('TIME')\n"                                          \
    "return t[1] * 1000 + math.floor(t[2] / 1000) end\n"                                           \
    "local function joins(me) redis.call('HSET', S, 'f:' .. me, string.format('%d', now())) end\n"

/* The replicas that take part, without `me`; those that have died are forgotten. */
#define OTHERS                                                                                     \
    NOW "local function others(me) local all, out = redis.call('HGETALL', S), {}\n"                \
        "for i = 1, #all, 2 do if all[i]:sub(1, 2) == 'f:' and all[i]:sub(3) ~= me then\n"         \
        "if tonumber(all[i + 1]) + 10000 > now() then out[#out + 1] = all[i]:sub(3)\n"             \
        "else redis.call('HDEL', S, all[i]) end end end return out end\n"

#define WAKE                                                                                       \
    OTHERS                                                                                         \
    "local function wake(me) local word = 'w' .. S:match('{limpet:(%x+)}')\n"                      \
    "for _, r in ipairs(others(me)) do redis.call('PUBLISH', 'limpet:w:' .. r, word) end end\n"

/* One more event; at most 1,000 and 1 MiB stay, but always the newest. */
#define ADD                                                                                        \
    "local function add(h, id, w, d, idle)\n"                                                      \
    "local last = redis.call('XREVRANGE', h, '+', '-', 'COUNT', 1)\n"                              \
    "local sum = #d + (last[1] and tonumber(last[1][2][2]) or 0)\n"                                \
    "local sent = redis.pcall('XADD', h, 'MAXLEN', 1000, id, 'c', sum, 'w', w, 'd', d)\n"          \
    "if type(sent) == 'table' then return end\n" /* it is there already */                         \
    "while sum > 1048576 do local old = redis.call('XRANGE', h, '-', '+', 'COUNT', 1)[1]\n"        \
    "local f = old[2] if old[1] == sent or sum - f[2] + #f[6] <= 1048576 then break end\n"         \
    "redis.call('XDEL', h, old[1]) end redis.call('PEXPIRE', h, idle) end\n"

static const char CREATE[] =
    "redis.call('HSET', KEYS[1], 'v', ARGV[2], 'c', ARGV[3], 'l', ARGV[4], 'p', ARGV[5])\n"
    "redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1\n";

static const char USE[] =
    MUST_BE OTHERS "redis.call('PEXPIRE', S, ARGV[1])\n"
                   "local out = {ARGV[2] == '1' and redis.call('HINCRBY', S, 'n', 1) or 0}\n"
                   "for _, f in ipairs({'v', 'c', 'l', 'p', 'g'}) do\n"
                   "out[#out + 1] = redis.call('HGET', S, f) or '' end\n"
                   "local who = others('') out[#out + 1] = #who\n"
                   "for _, r in ipairs(who) do out[#out + 1] = r end\n"
                   "for _, f in ipairs(redis.call('HKEYS', S)) do\n"
                   "if f:sub(1, 2) == 'u:' then out[#out + 1] = f:sub(3) end end return out\n";

static const char END[] =
    MUST_BE WAKE "wake('') for _, n in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do\n"
                 "redis.call('DEL', ARGV[1] .. ':h:' .. n) end\n"
                 "redis.call('DEL', S, KEYS[2], KEYS[3], ARGV[1] .. ':h:0') return 1\n";

static const char SAVE[] = MUST_BE "if ARGV[2] then redis.call('HSET', S, ARGV[1], ARGV[2])\n"
                                   "else redis.call('HDEL', S, ARGV[1]) end return 1\n";

static const char STATE[] =
    MUST_BE "local r = redis.call('HGET', S, 'sr') or '0'\n"
            "if ARGV[1] and ARGV[1] == r then r = string.format('%d', tonumber(r) + 1)\n"
            "redis.call('HSET', S, 'sr', r, 'st', ARGV[2]) return {1, r, ''} end\n"
            "return {ARGV[1] and 0 or 1, r, redis.call('HGET', S, 'st') or ''}\n";

static const char APPEND[] = MUST_BE WAKE ADD
    "local h, c = KEYS[2], KEYS[3] if redis.call('EXISTS', h) == 0 then\n"
    "redis.call('RPUSH', c, ARGV[4]) if redis.call('LLEN', c) > 32 then\n"
    "redis.call('DEL', ARGV[3] .. ':h:' .. redis.call('LPOP', c)) end end\n"
    "redis.call('PEXPIRE', c, ARGV[1]) add(h, ARGV[5], ARGV[2], ARGV[6], ARGV[1])\n"
    "wake(ARGV[2]) return 1\n";

static const char TELL[] =
    MUST_BE WAKE ADD "if not redis.call('HGET', S, 'g') then return 0 end\n"
                     "local u = ARGV[4]\n"
                     "if u ~= '' and redis.call('HEXISTS', S, 'u:' .. u) == 0 then return 0 end\n"
                     "local e = redis.call('HINCRBY', S, 'e', 1)\n"
                     "add(KEYS[2], string.format('%d-0', e), ARGV[2], ARGV[3], ARGV[1])\n"
                     "wake('') return e\n";

static const char LISTEN[] = MUST_BE WAKE
    "local e = tonumber(redis.call('HGET', S, 'e') or 0) local from = tonumber(ARGV[2])\n"
    "if not from or from > e then from = tonumber(redis.call('HGET', S, 'd') or e) end\n"
    "redis.call('HSET', S, 'g', ARGV[3]) joins(ARGV[1]) wake(ARGV[1]) return {from}\n";

static const char RESUME[] =
    MUST_BE NOW "local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]\n"
                "if not last then return 0 end joins(ARGV[1])\n"
                "return {tonumber(last[1]:match('^%d+')), last[2][4]}\n";

static const char POLL[] = MUST_BE OTHERS
    "local me, bytes = ARGV[2], 0 redis.call('PEXPIRE', S, ARGV[1]) joins(me)\n"
    "local g = redis.call('HGET', S, 'g') or ''\n"
    "if g == ARGV[3] then redis.call('HSET', S, 'd', ARGV[4]) end\n"
    "local cursor, box = ARGV[5], {}\n"
    "for _, m in ipairs(redis.call('XRANGE', KEYS[2], '(' .. cursor, '+')) do\n"
    "if bytes > 2097152 then break end cursor = m[1] local f = m[2]\n"
    "if f[2] == me then bytes = bytes + #f[10]\n"
    "box[#box + 1] = {m[1], {f[4], f[8], f[6], f[10]}} end end\n"
    "local out = {g, others(me), cursor, box}\n"
    "for i = 3, #KEYS do local events = {} for _, e in ipairs(redis.call('XRANGE', KEYS[i],\n"
    "'(' .. ARGV[i + 3] .. '-0', '+', 'COUNT', 100)) do if bytes > 2097152 then break end\n"
    "bytes = bytes + #e[2][6] events[#events + 1] = {e[1], {e[2][4], e[2][6]}} end\n"
    "out[i + 2] = events end return out\n";

static const char LEAVE[] =
    MUST_BE "if ARGV[2] == '1' then redis.call('HDEL', S, 'f:' .. ARGV[1]) end\n"
            "if ARGV[3] ~= '' and redis.call('HGET', S, 'g') == ARGV[3] then\n"
            "redis.call('HSET', S, 'g', '-', 'd', ARGV[4]) end return 1\n";

static const char POST[] = MUST_BE NOW
    "local b, ids = KEYS[2], {}\n"
    "redis.call('XTRIM', b, 'MINID', string.format('%d', now() - 10000))\n"
    "if redis.call('XLEN', b) >= (#ARGV[4] > 262144 and 4 or 64) then return ids end\n"
    "for i = 5, #ARGV do ids[#ids + 1] = redis.call('XADD', b, '*', 't', ARGV[i],\n"
    "'f', ARGV[1], 'k', ARGV[3], 'q', ARGV[2], 'd', ARGV[4])\n"
    "redis.call('PUBLISH', 'limpet:w:' .. ARGV[i], 'w' .. S:match('{limpet:(%x+)}')) end\n"
    "redis.call('PEXPIRE', b, 60000) return ids\n";

static const char TAKEN[] =
    "redis.call('XDEL', KEYS[1], ARGV[3])\n"
    "redis.call('PUBLISH', 'limpet:w:' .. ARGV[1], 'a' .. ARGV[2]) return 1\n";

static const char ANNOUNCE[] =
    "redis.call('XADD', KEYS[1], 'MAXLEN', 1000, '*', 'w', ARGV[1], 'd', ARGV[2], 'u', ARGV[3])\n"
    "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('PUBLISH', 'limpet:a', '') return 1\n";

static const char HEAR[] =
    "if ARGV[2] == '' then\n"
    "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]\n"
    "return {last and last[1] or '0-0', {}} end local cursor, out = ARGV[2], {}\n"
    "for _, m in ipairs(redis.call('XRANGE', KEYS[1], '(' .. cursor, '+', 'COUNT', 100)) do\n"
    "cursor = m[1] local f = m[2] if f[2] ~= ARGV[1] then out[#out + 1] = {f[4], f[6]} end end\n"
    "return {cursor, out}\n";

static const char WITHDRAW[] = "return redis.call('XDEL', KEYS[1], unpack(ARGV))\n";

const struct lp_span lp_shared_scripts[LP_SCRIPT_count] = {
#define X(name) {name, sizeof name - 1},
    LP_SCRIPTS(X)
#undef X
};
