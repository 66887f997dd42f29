/* Shared sessions as a whole (serve/shared.h): the store's events, commands to it, and wake-ups.
 *
 * Nothing hangs on publish/subscribe: a message of it only makes a look into the store come sooner
 * than the next second's, and after each new subscription everything is looked at. */
#include "serve/shared.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "serve/hex.h"

enum { REPLY_MAX = 48 << 20, CHANNEL_MAX = 64 };

#define ALL "limpet:a"

struct lp_span lp_shared_replica(const struct lp_server *server)
{
    return lp_span(server->shared->replica, LP_REPLICA_LEN);
}

/* --- commands --- */

void lp_step_begin(struct lp_step *step, struct lp_server *server, enum lp_script script)
{
    step->server = server;
    step->script = script;
    step->is_write = step->is_idempotent = false;
    step->argc = step->key_count = 0;
    step->used = 0;
}

void lp_step_put(struct lp_step *step, struct lp_span argument)
{
    LP_ASSERT(step->argc < sizeof step->argv / sizeof *step->argv);
    step->argv[step->argc++] = argument;
}

static void put_text(struct lp_step *step, const char *format, ...) LP_PRINTF(2, 3);

static void put_text(struct lp_step *step, const char *format, ...)
{
    va_list args;
    size_t room = sizeof step->room - step->used;
    va_start(args, format);
    int n = vsnprintf(step->room + step->used, room, format, args);
    va_end(args);
    LP_ASSERT(n >= 0 && (size_t)n < room);
    lp_step_put(step, lp_span(step->room + step->used, (size_t)n));
    step->used += (size_t)n;
}

void lp_step_key(struct lp_step *step, struct lp_key key, const char *suffix)
{
    put_text(step, "{limpet:%016llx%016llx}:%s", (unsigned long long)key.hi,
        (unsigned long long)key.lo, suffix);
    step->key_count++;
}

void lp_step_key_number(struct lp_step *step, struct lp_key key, uint32_t channel)
{
    char suffix[16];
    snprintf(suffix, sizeof suffix, "h:%u", channel);
    lp_step_key(step, key, suffix);
}

void lp_step_key_all(struct lp_step *step)
{
    lp_step_put(step, LP_SPAN(ALL));
    step->key_count++;
}

void lp_step_tag(struct lp_step *step, struct lp_key key)
{
    put_text(
        step, "{limpet:%016llx%016llx}", (unsigned long long)key.hi, (unsigned long long)key.lo);
}

void lp_step_number(struct lp_step *step, uint64_t number)
{
    put_text(step, "%llu", (unsigned long long)number);
}

void lp_step_idle(struct lp_step *step)
{
    lp_step_number(step, step->server->args.idle_us / 1000 + 1);
}

static void on_done(void *ctx, uint64_t tag, const struct lp_store_result *result)
{
    struct lp_server *server = ctx;
    struct lp_wait *held = lp_slab_get(&server->shared->waits, tag);
    if (!held)
        return; /* nobody waits */
    struct lp_wait wait = *held;
    lp_slab_free(&server->shared->waits, tag);
    wait.answered(server, &wait, result);
}

int lp_step_send(struct lp_step *step, const struct lp_wait *wait)
{
    struct lp_shared *shared = step->server->shared;
    lp_id id = 0;
    struct lp_wait *held = wait ? lp_slab_new(&shared->waits, &id) : NULL;
    if (wait && !held)
        return LP_ELIMIT;
    if (held)
        *held = *wait;
    struct lp_store_call_args args = {.argv = step->argv,
        .argc = step->argc,
        .is_write = step->is_write,
        .is_idempotent = step->is_idempotent,
        .done = on_done,
        .ctx = step->server,
        .tag = id};
    int err = lp_store_eval(shared->store, step->script, step->key_count, &args, NULL);
    if (err && held)
        lp_slab_free(&shared->waits, id);
    return err;
}

void lp_step_post(struct lp_step *step, const struct lp_wait *wait)
{
    int err = lp_step_send(step, wait);
    (void)err;
}

/* --- answers --- */

struct lp_span lp_shared_text(const struct lp_store_reply *reply, uint32_t index)
{
    const struct lp_store_reply *item = lp_store_reply_item(reply, index);
    return item && item->kind == LP_REPLY_STRING ? item->text : LP_SPAN("");
}

uint64_t lp_shared_number(const struct lp_store_reply *reply, uint32_t index)
{
    uint64_t number = 0;
    const struct lp_store_reply *item = lp_store_reply_item(reply, index);
    if (item && item->kind == LP_REPLY_INTEGER)
        return (uint64_t)item->integer;
    return lp_span_to_u64(lp_shared_text(reply, index), &number) ? number : 0;
}

const struct lp_store_reply *lp_shared_list(const struct lp_store_reply *reply, uint32_t index)
{
    const struct lp_store_reply *list = lp_store_reply_item(reply, index);
    return list ? list->first : NULL;
}

bool lp_shared_says_gone(const struct lp_store_result *result)
{
    bool has_answer =
        result->outcome == LP_OUTCOME_ANSWERED || result->outcome == LP_OUTCOME_UNCONFIRMED;
    return has_answer && result->reply && result->reply->kind == LP_REPLY_INTEGER &&
        result->reply->integer == 0;
}

/* --- what the store tells --- */

static void on_state(void *ctx, bool is_up, enum lp_store_trouble trouble, struct lp_span sentence)
{
    (void)trouble;
    const struct lp_server *server = ctx;
    struct lp_action action = {.kind = LP_ACT_LOG,
        .u.log = {.level = is_up ? LP_LOG_INFO : LP_LOG_WARN, .line = sentence}};
    server->shell->perform(server->shell->ctx, &action);
}

static bool parse_key(struct lp_span text, struct lp_key *ret)
{
    struct lp_key key;
    if (text.len != 32 || !lp_hex_to_u64(lp_span(text.ptr, 16), &key.hi) ||
        !lp_hex_to_u64(lp_span(text.ptr + 16, 16), &key.lo))
        return false;
    *ret = key;
    return true;
}

static void look_at(struct lp_server *server, struct lp_span name)
{
    struct lp_key key;
    if (!parse_key(name, &key))
        return;
    struct lp_session *session = lp_session_get(server, lp_map_get(&server->by_key, key));
    if (!session)
        return;
    if (session->is_following) {
        lp_shared_poll(server, session);
        return;
    }
    lp_shared_follow(server, session); /* an answer that comes too late is taken all the same */
    lp_shared_unfollow(server, session);
}

static void on_message(void *ctx, struct lp_span channel, struct lp_span payload)
{
    struct lp_server *server = ctx;
    struct lp_span word = lp_span(payload.ptr, payload.len ? 1 : 0);
    struct lp_span rest = lp_span_from(payload, word.len);
    if (lp_span_eq(channel, LP_SPAN(ALL)))
        lp_shared_hear(server);
    else if (lp_span_eq(word, LP_SPAN("a")))
        lp_shared_taken(server, rest);
    else if (lp_span_eq(word, LP_SPAN("w")))
        look_at(server, rest);
}

static void poll_all(struct lp_server *server)
{
    const struct lp_list *end = &server->shared->following;
    for (struct lp_list *at = end->next; at != end; at = at->next)
        lp_shared_poll(server, LP_CONTAINER(at, struct lp_session, following));
    lp_shared_hear(server);
}

static void on_subscribed(void *ctx, struct lp_span channel)
{
    (void)channel;
    poll_all(ctx);
}

static const struct lp_store_ops OPS = {
    .state = on_state, .message = on_message, .subscribed = on_subscribed};

/* --- its life --- */

static int open_store(struct lp_server *server)
{
    struct lp_shared *shared = server->shared;
    char channel[CHANNEL_MAX];
    struct lp_store_args args = {.shell = server->shell,
        .timers = &server->timers,
        .url = server->args.store,
        .scripts = lp_shared_scripts,
        .script_count = LP_SCRIPT_count,
        .replicas_waited = server->args.store_wait,
        .reply_max = REPLY_MAX,
        .ops = &OPS,
        .ctx = server};
    int err = lp_store_new(&args, &shared->store);
    if (err)
        return err;
    int n = snprintf(channel, sizeof channel, "limpet:w:%s", shared->replica);
    lp_id subscription;
    err = lp_store_subscribe(shared->store, lp_span(channel, (size_t)n), &subscription);
    return err ? err : lp_store_subscribe(shared->store, LP_SPAN(ALL), &subscription);
}

int lp_shared_new(struct lp_server *server)
{
    uint64_t name;
    struct lp_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return LP_ENOMEM;
    server->shared = shared;
    lp_entropy_bytes(&server->entropy, (unsigned char *)&name, sizeof name);
    snprintf(shared->replica, sizeof shared->replica, "%016llx", (unsigned long long)name);
    lp_slab_init(&shared->waits, sizeof(struct lp_wait), LP_SHARED_WAITS_MAX);
    lp_slab_init(&shared->posts, sizeof(struct lp_post), LP_SHARED_WAITS_MAX);
    lp_list_init(&shared->following);
    shared->poll = (struct lp_timer){.kind = LP_TIMER_SERVER_POLL};
    return open_store(server);
}

void lp_shared_free(struct lp_server *server)
{
    struct lp_shared *shared = server->shared;
    uint32_t cursor = 0;
    lp_id id;
    if (!shared)
        return;
    lp_heap_cancel(&server->timers, &shared->poll);
    for (struct lp_post *post; (post = lp_slab_next(&shared->posts, &cursor, &id));)
        lp_heap_cancel(&server->timers, &post->timer);
    lp_store_free(shared->store);
    lp_slab_fini(&shared->waits);
    lp_slab_fini(&shared->posts);
    free(shared);
    server->shared = NULL;
}

bool lp_shared_event(struct lp_server *server, const struct lp_event *event)
{
    return server->shared && lp_store_event(server->shared->store, event);
}

static void on_poll_timer(struct lp_server *server)
{
    poll_all(server);
    /* Without memory for the timer the wake-ups are left. */
    if (!lp_list_empty(&server->shared->following))
        (void)!lp_heap_set(
            &server->timers, &server->shared->poll, server->now_us + LP_SHARED_POLL_US);
}

void lp_shared_timer(struct lp_server *server, struct lp_timer *timer)
{
    if (timer->kind == LP_TIMER_SERVER_POLL)
        on_poll_timer(server);
    else if (timer->kind == LP_TIMER_SERVER_POST)
        lp_shared_post_timer(server, timer->owner);
    else
        lp_store_timer(server->shared->store, timer, server->now_us);
}
