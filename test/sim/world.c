/* The frame of a simulated run: generator, queue of things due, clock, story, and the order in
 * which a seed's world is built, disturbed, calmed down, stopped and looked at. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "sim.h"

enum {
    SECOND_US = 1000000,
    EVENTS_A_SECOND_MAX = 200000, /* more is a loop that does not end */
};

/* --- randomness: xoshiro256**, seeded by splitmix64 --- */

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t sim_random(struct sim *w)
{
    uint64_t *s = w->rng.state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint32_t sim_below(struct sim *w, uint32_t below)
{
    return (uint32_t)(sim_random(w) % below);
}

bool sim_one_in(struct sim *w, uint32_t n)
{
    return n && sim_random(w) % n == 0;
}

uint64_t sim_between(struct sim *w, uint64_t low, uint64_t high)
{
    return low + sim_random(w) % (high - low + 1);
}

void sim_hash(struct sim *w, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        w->trace = rotate(w->trace ^ word, 29) * 0x100000001B3u;
    }
    for (size_t i = 0; i < n; i++)
        w->trace = (w->trace ^ at[i]) * 0x100000001B3u;
}

uint64_t sim_sum(struct lp_span bytes)
{
    uint64_t sum = 0xCBF29CE484222325u;
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= bytes.len; i += sizeof word) {
        memcpy(&word, bytes.ptr + i, sizeof word);
        sum = rotate(sum ^ word, 29) * 0x100000001B3u;
    }
    for (; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.ptr[i]) * 0x100000001B3u;
    return sum;
}

size_t sim_search(struct lp_span s, struct lp_span needle)
{
    const char *at = s.len ? memmem(s.ptr, s.len, needle.ptr, needle.len) : NULL;
    return at ? (size_t)(at - s.ptr) : s.len;
}

/* --- the queue: a binary heap by time, then by order --- */

static bool is_before(const struct sim_due *a, const struct sim_due *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void sift_up(struct sim *w, uint32_t i)
{
    while (i && is_before(&w->due[i], &w->due[(i - 1) / 2])) {
        struct sim_due t = w->due[i];
        w->due[i] = w->due[(i - 1) / 2];
        w->due[(i - 1) / 2] = t;
        i = (i - 1) / 2;
    }
}

static void sift_down(struct sim *w)
{
    for (uint32_t i = 0;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->due_count; child++)
            if (is_before(&w->due[child], &w->due[least]))
                least = child;
        if (least == i)
            return;
        struct sim_due t = w->due[i];
        w->due[i] = w->due[least];
        w->due[least] = t;
        i = least;
    }
}

uint64_t sim_at(struct sim *w, uint64_t delay_us, sim_fn run, uint64_t a, uint64_t b)
{
    if (w->due_count == w->due_cap) {
        w->due_cap = w->due_cap ? 2 * w->due_cap : 1024;
        w->due = realloc(w->due, w->due_cap * sizeof *w->due);
        LP_ASSERT(w->due);
    }
    w->due[w->due_count] = (struct sim_due){w->now_us + delay_us, ++w->order, run, a, b};
    sift_up(w, w->due_count++);
    return w->order;
}

static struct sim_due take_due(struct sim *w)
{
    struct sim_due due = w->due[0];
    w->due[0] = w->due[--w->due_count];
    sift_down(w);
    return due;
}

static void count_event(struct sim *w)
{
    uint64_t second = w->now_us / SECOND_US;
    w->cover->events++;
    if (second != w->second) {
        w->second = second;
        w->second_events = 0;
    }
    if (++w->second_events > EVENTS_A_SECOND_MAX)
        sim_fail(w, "%u events in one second: something goes round in circles",
            (unsigned)EVENTS_A_SECOND_MAX);
}

void sim_go(struct sim *w, uint64_t until_us)
{
    while (!w->failed && w->due_count && w->due[0].at_us <= until_us) {
        struct sim_due due = take_due(w);
        w->now_us = due.at_us;
        uint64_t mark[2] = {due.at_us, due.order};
        sim_hash(w, mark, sizeof mark);
        count_event(w);
        due.run(w, due.a, due.b);
    }
    if (w->now_us < until_us)
        w->now_us = until_us;
}

/* --- words --- */

uint64_t sim_wall_ms(const struct sim *w)
{
    return (uint64_t)(1800000000000 + (int64_t)(w->now_us / 1000) + w->wall_jump_ms);
}

static void print_clock(const struct sim *w)
{
    printf("%6u.%06u  ", (unsigned)(w->now_us / SECOND_US), (unsigned)(w->now_us % SECOND_US));
}

void sim_say(struct sim *w, const char *fmt, ...)
{
    if (!w->story)
        return;
    va_list args;
    va_start(args, fmt);
    print_clock(w);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

void sim_fail(struct sim *w, const char *fmt, ...)
{
    if (w->failed)
        return;
    w->failed = true;
    va_list args;
    va_start(args, fmt);
    printf("seed %llu: ", (unsigned long long)w->seed);
    print_clock(w);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

void sim_count(struct sim *w, enum sim_fault fault)
{
    w->cover->faults[fault]++;
}

const char *sim_kind_name(enum sim_kind kind)
{
    static const char *const NAMES[] = {
#define X(name) #name,
        SIM_KINDS(X)
#undef X
    };
    return NAMES[kind];
}

/* --- the plan of a seed --- */

/* One of four numbers. */
static uint32_t pick(struct sim *w, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    uint32_t all[] = {a, b, c, d};
    return all[sim_below(w, 4)];
}

static void plan_servers(struct sim *w, struct sim_plan *p)
{
    p->mints = !sim_one_in(w, 8);
    p->challenges = sim_one_in(w, 8);
    p->has_sse = !sim_one_in(w, 3);
    p->sse_shares_path = sim_one_in(w, 4);
    p->streams = !sim_one_in(w, 6);
    p->strict_streams = !sim_one_in(w, 3);
    p->idle_us = pick(w, sim_one_in(w, 2) ? 0 : 1000000, 2000000, 5000000, 400000);
    p->says_idle = sim_one_in(w, 2);
    p->is_loopback = sim_one_in(w, 5);
    p->has_lists = sim_one_in(w, 5);
    p->is_quiet = sim_one_in(w, 10);
    p->rests = sim_one_in(w, 25);
    p->has_unix = sim_one_in(w, 4);
    p->rotates = sim_one_in(w, 4);
    p->age_ms = sim_one_in(w, 5) ? 20000 : 0;
    p->jars = sim_one_in(w, 3);
}

/* Each replica and the gateway beside it: one thread, a list of peers that is the same for all. */
static void plan_sidecars(struct sim *w, struct sim_plan *p)
{
    p->servers = SIM_SERVERS;
    p->is_sidecars = sim_one_in(w, 3);
    if (!p->is_sidecars)
        return;
    p->gateways = p->replicas = 2 + sim_below(w, SIM_GATEWAYS_MAX - 1);
    p->engines = 1;
    p->jars = false;
    p->conn_max = 200; /* peers are clients too */
    p->owner_ids = sim_one_in(w, 2);
    p->peers = sim_below(w, 3);
    p->servers = p->peers == SIM_LISTED ? SIM_SERVERS : 1;
}

static void make_plan(struct sim *w)
{
    struct sim_plan *p = &w->plan;
    bool is_calm =
        sim_one_in(w, 4); /* nothing goes wrong by itself: every answer has to be right */
    p->gateways = 1 + sim_below(w, SIM_GATEWAYS_MAX);
    p->engines = 1 + sim_below(w, SIM_ENGINES_MAX);
    p->replicas = 2 + sim_below(w, SIM_REPLICAS_MAX - 1);
    p->clients = 2 + sim_below(w, SIM_CLIENTS_MAX - 1);
    p->steps = 10 + sim_below(w, 60);
    p->fault_in = is_calm ? 0 : pick(w, 0, 8, 20, 60);
    p->chaos_us = is_calm ? 0 : pick(w, 0, 2000000, 5000000, 15000000);
    p->split = sim_below(w, 3);
    p->window = pick(w, 700, 4096, 65536, 1 << 20);
    p->partial_in = pick(w, 0, 2, 5, 20);
    p->latency_us = pick(w, 50, 500, 3000, 20000);
    p->mail_us = pick(w, 20, 1000, 100000, sim_one_in(w, 2) ? 2000000 : 200000);
    p->no_room_in = is_calm ? 0 : pick(w, 0, 0, 0, 25);
    p->no_memory_in = is_calm || !sim_one_in(w, 5) ? 0 : pick(w, 12, 50, 200, 1000);
    p->conn_max = is_calm || !sim_one_in(w, 12) ? 200 : 4;
    p->slow_readers = !is_calm && sim_one_in(w, 3);
    plan_servers(w, p);
    plan_sidecars(w, p);
}

static void say_plan(struct sim *w)
{
    const struct sim_plan *p = &w->plan;
    sim_say(w, "world: %u gateways of %u engines, %u replicas, %u clients, %u steps each",
        p->gateways, p->engines, p->replicas, p->clients, p->steps);
    sim_say(w, "faults: answers 1 in %u, a blow each %u ms, split %u, window %u, latency %u us",
        p->fault_in, p->chaos_us / 1000, p->split, p->window, p->latency_us);
    if (p->is_sidecars)
        sim_say(w, "each replica has its sidecar, %s ids, peers %d",
            p->owner_ids ? "readable" : "sealed", (int)p->peers);
    sim_say(w, "mail %u us, mints %d, challenges %d, sse %d (shared path %d), streams %d strict %d",
        p->mail_us, p->mints, p->challenges, p->has_sse, p->sse_shares_path, p->streams,
        p->strict_streams);
}

/* --- blows to processes --- */

static void restart_gateway(struct sim *w, uint64_t index, uint64_t removed)
{
    if (w->is_settling || sim_gateway_is_up(w, (uint32_t)index))
        return;
    sim_gateway_start(w, (uint32_t)index, (uint32_t)removed);
}

static void hit_gateway(struct sim *w)
{
    uint32_t index = sim_below(w, w->plan.gateways);
    if (!sim_gateway_is_up(w, index) || w->gateways[index].is_stopping)
        return;
    uint64_t away_us = sim_between(w, 10000, 3000000);
    if (sim_one_in(w, 2)) {
        sim_count(w, SIM_FAULT_gateway_killed);
        sim_gateway_kill(w, index);
    } else {
        sim_count(w, SIM_FAULT_gateway_stopped);
        sim_gateway_stop(w, index);
        away_us += 20000000;
    }
    uint32_t removed = UINT32_MAX;
    if (!w->plan.is_sidecars && sim_one_in(w, 4)) {
        sim_count(w, SIM_FAULT_replica_removed);
        removed = sim_below(w, w->plan.replicas);
    }
    sim_at(w, away_us, restart_gateway, index, removed);
}

static void revive(struct sim *w, uint64_t replica, uint64_t unused)
{
    (void)unused;
    struct sim_replica *r = &w->replicas[replica];
    if (!r->is_down && !r->is_black_hole)
        return;
    sim_say(w, "replica %s is back, incarnation %u", r->name, r->incarnation);
    sim_unseen(w, r->index);
    r->is_down = r->is_black_hole = false;
}

static void hit_replica(struct sim *w)
{
    uint32_t index = sim_below(w, w->plan.replicas);
    struct sim_replica *r = &w->replicas[index];
    if (r->is_down || r->is_black_hole)
        return;
    if (sim_one_in(w, 3)) {
        sim_count(w, SIM_FAULT_replica_black_hole);
        sim_say(w, "replica %s answers no connection any more", r->name);
        r->is_black_hole = true;
        sim_unseen(w, index);
    } else {
        sim_replica_crash(w, index);
    }
    sim_at(w, sim_between(w, 1000, 9000000), revive, index, 0);
}

static void jump_wall(struct sim *w)
{
    sim_count(w, SIM_FAULT_wall_jump);
    w->jump_us = w->now_us;
    w->wall_jump_ms += (int64_t)sim_below(w, 60000) - 20000;
    sim_say(w, "the wall clock jumps to %lld ms", (long long)w->wall_jump_ms);
}

static void blow(struct sim *w, uint64_t a, uint64_t b)
{
    (void)a;
    (void)b;
    if (w->is_settling)
        return;
    switch (sim_below(w, 6)) {
    case 0:
        hit_gateway(w);
        break;
    case 1:
        jump_wall(w);
        break;
    default:
        hit_replica(w);
        break;
    }
    sim_at(w, sim_between(w, w->plan.chaos_us / 2, w->plan.chaos_us * 3 / 2), blow, 0, 0);
}

/* --- a run --- */

static void make_rings(struct sim *w)
{
    for (int i = 0; i < 3; i++) {
        char text[100];
        unsigned char key[LP_KEY_BYTES];
        uint32_t line;
        for (size_t k = 0; k < sizeof key; k++)
            key[k] = (unsigned char)sim_random(w);
        size_t len = lp_keyring_format(key, text);
        int err = lp_keyring_parse(lp_span(text, len), &w->rings[i], &line);
        LP_ASSERT(!err);
    }
}

static void make_replicas(struct sim *w)
{
    for (uint32_t i = 0; i < w->plan.replicas; i++) {
        struct sim_replica *r = &w->replicas[i];
        r->index = i;
        r->incarnation = 1;
        r->dialect = sim_replica_dialect(w);
        r->is_unix = w->plan.has_unix && i + 1 == w->plan.replicas;
        snprintf(r->host, sizeof r->host, r->is_unix ? "/run/r%u.sock" : "r%u.sim", i);
        snprintf(r->authority, sizeof r->authority, r->is_unix ? "localhost" : "r%u.sim:3000", i);
        snprintf(r->name, sizeof r->name, w->plan.is_sidecars ? "m%u" : "r%u", i);
    }
    for (uint32_t i = 0; i < w->plan.gateways; i++)
        snprintf(w->gateways[i].host, sizeof w->gateways[i].host, "g%u.sim", i);
}

static void build(struct sim *w)
{
    make_plan(w);
    say_plan(w);
    lp_slab_init(&w->conns, sizeof(struct sim_conn), 1 << 16);
    make_rings(w);
    make_replicas(w);
    w->request_count = w->session_count = 1; /* number 0 is none */
    for (uint32_t i = 0; i < w->plan.gateways; i++)
        sim_gateway_start(w, i, UINT32_MAX);
    for (uint32_t i = 0; i < w->plan.clients; i++)
        sim_client_start(w, i);
    if (w->plan.chaos_us)
        sim_at(w, w->plan.chaos_us, blow, 0, 0);
}

static bool is_busy(const struct sim *w)
{
    for (uint32_t i = 0; i < w->plan.gateways && w->is_settling; i++)
        if (sim_gateway_is_busy(w, i))
            return true;
    for (uint32_t i = 0; i < w->plan.clients; i++)
        if (w->clients[i].steps_left || w->clients[i].open)
            return true;
    return false;
}

static void run_until_quiet(struct sim *w)
{
    enum {
        WORKING_US = 600 * SECOND_US,
        SETTLING_US = 700 * SECOND_US,
        CALL_US = 62 * SECOND_US, /* longer than a call goes on whose client has left */
    };
    uint64_t quiet_us = w->plan.is_sidecars ? 2 * CALL_US : CALL_US; /* at each sidecar */
    uint64_t begun_us = w->now_us;
    while (!w->failed && is_busy(w) && w->now_us - begun_us < WORKING_US)
        sim_go(w, w->now_us + SECOND_US);
    sim_say(w, "no more faults from here on");
    w->is_settling = true;
    for (uint32_t i = 0; i < w->plan.replicas; i++)
        revive(w, i, 0);
    begun_us = w->now_us;
    do
        sim_go(w, w->now_us + SECOND_US);
    while (!w->failed && (is_busy(w) || w->now_us - begun_us < quiet_us) &&
        w->now_us - begun_us < SETTLING_US);
}

static void stop_all(struct sim *w)
{
    enum { STOPPING_US = 30 * SECOND_US };
    uint64_t begun_us = w->now_us;
    for (uint32_t i = 0; i < w->plan.gateways; i++)
        if (sim_gateway_is_up(w, i) && !w->gateways[i].is_stopping)
            sim_gateway_stop(w, i);
    while (!w->failed && w->now_us - begun_us < STOPPING_US)
        sim_go(w, w->now_us + SECOND_US);
}

static void tear_down(struct sim *w)
{
    for (uint32_t i = 0; i < SIM_GATEWAYS_MAX; i++)
        sim_gateway_fini(w, i);
    sim_net_fini(w);
    for (uint32_t i = 0; i < w->plan.clients; i++)
        sim_client_fini(w, i);
    for (uint32_t i = 1; i < w->request_count; i++) {
        lp_buf_release(&w->requests[i].text);
        lp_buf_release(&w->requests[i].wrote);
        lp_buf_release(&w->requests[i].got);
    }
    lp_slab_fini(&w->conns);
    free(w->requests);
    free(w->sessions);
    free(w->due);
}

bool sim_run(uint64_t seed, bool story, struct sim_cover *cover, uint64_t *ret_trace)
{
    struct sim *w = calloc(1, sizeof *w);
    LP_ASSERT(w);
    uint64_t mix = seed;
    w->seed = seed;
    w->story = story;
    w->cover = cover;
    w->trace = 0xCBF29CE484222325u;
    w->now_us = 1000000;
    for (int i = 0; i < 4; i++)
        w->rng.state[i] = splitmix(&mix);
    build(w);
    run_until_quiet(w);
    if (!w->failed)
        sim_oracle_settled(w);
    if (!w->failed && w->plan.rests) {
        sim_go(w, w->now_us + 1900ull * SECOND_US);
        sim_oracle_rested(w);
    }
    if (!w->failed)
        stop_all(w);
    if (!w->failed)
        sim_oracle_stopped(w);
    bool is_good = !w->failed;
    *ret_trace = w->trace;
    tear_down(w);
    free(w);
    return is_good;
}
