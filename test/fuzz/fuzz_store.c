/* The store's client against servers that say anything. The first byte chooses the URL and what is
 * waited for; the rest is what comes, piece by piece: 0xff goes on with the next connection, 0xfe
 * breaks this one, 0xfd lets half a second pass. Each piece finds new calls on their way. Each call
 * that was accepted ends once; nothing outlives the store. The bytes also go through the reader in
 * other pieces: the replies are the same. */
#include "../prop/store_transcript.h"
#include "base/heap.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNS_MAX = 4096, INPUT_MAX = 4096, CALLS_MAX = 64 };
enum { NEXT = 0xff, BREAK = 0xfe, PAUSE = 0xfd };

struct peer {
    bool is_open, is_new, is_draining;
};

struct world {
    struct lp_shell shell;
    struct lp_heap timers;
    struct lp_store *store;
    struct peer peers[CONNS_MAX + 1];
    lp_id count, current;
    uint64_t now_us;
    uint32_t accepted, ended;
    uint8_t mode;
};

static int64_t perform(void *ctx, const struct lp_action *action)
{
    struct world *w = ctx;
    struct peer *peer = &w->peers[action->conn];
    if (action->kind == LP_ACT_CONNECT) {
        if (w->count == CONNS_MAX)
            return LP_EREFUSED;
        w->peers[++w->count] = (struct peer){.is_open = true, .is_new = true};
        return (int64_t)w->count;
    }
    LP_ASSERT(peer->is_open);
    if (action->kind == LP_ACT_CLOSE)
        peer->is_open = false;
    if (action->kind == LP_ACT_DRAIN)
        peer->is_draining = true;
    if (action->kind != LP_ACT_WRITE)
        return 0;
    size_t len = action->u.write.parts[0].len;
    return (int64_t)((w->mode & 8) ? len / 2 : len);
}

static void on_done(void *ctx, uint64_t tag, const struct lp_store_result *result)
{
    struct world *w = ctx;
    (void)tag;
    bool is_answered = result->outcome <= LP_OUTCOME_ANSWERED;
    LP_ASSERT(!is_answered || (result->reply && result->reply->kind != LP_REPLY_ERROR));
    LP_ASSERT(lp_store_outcome_sentence(result->outcome)[0]);
    w->ended++;
}

static void on_state(void *ctx, bool is_up, enum lp_store_trouble trouble, struct lp_span sentence)
{
    (void)ctx;
    LP_ASSERT(is_up == (trouble == LP_TROUBLE_NONE) && sentence.len);
}

static void on_message(void *ctx, struct lp_span channel, struct lp_span payload)
{
    (void)ctx;
    (void)channel;
    (void)payload;
}

static void on_subscribed(void *ctx, struct lp_span channel)
{
    (void)ctx;
    (void)channel;
}

static void happen(struct world *w, struct lp_event event)
{
    event.mono_us = w->now_us;
    (void)lp_store_event(w->store, &event);
    lp_store_flush(w->store);
}

static void call_all(struct world *w)
{
    const struct lp_span WORDS[] = {LP_SPAN("SET"), LP_SPAN("a"), LP_SPAN("1")};
    struct lp_store_call_args args = {
        .key = LP_SPAN("a"), .argv = WORDS, .argc = 3, .is_write = true, .done = on_done, .ctx = w};
    if (lp_store_waiting(w->store) > CALLS_MAX)
        return;
    w->accepted += lp_store_call(w->store, &args, NULL) == LP_OK;
    args.key = LP_SPAN("b");
    args.is_idempotent = true;
    w->accepted += lp_store_call(w->store, &args, NULL) == LP_OK;
    args.key = LP_SPAN("");
    args.is_write = false;
    w->accepted += lp_store_call(w->store, &args, NULL) == LP_OK;
    args.argv = WORDS + 1;
    args.argc = 2;
    w->accepted += lp_store_eval(w->store, 0, 1, &args, NULL) == LP_OK;
    lp_store_flush(w->store);
}

static void pass(struct world *w, uint64_t us)
{
    uint64_t end_us = w->now_us + us;
    while (lp_heap_next_us(&w->timers) <= end_us) {
        if (lp_heap_next_us(&w->timers) > w->now_us)
            w->now_us = lp_heap_next_us(&w->timers);
        lp_store_timer(w->store, lp_heap_due(&w->timers, w->now_us), w->now_us);
        lp_store_flush(w->store);
    }
    w->now_us = end_us;
}

static void welcome(struct world *w)
{
    for (lp_id id = 1; id <= w->count; id++) {
        struct peer *peer = &w->peers[id];
        if (peer->is_open && peer->is_new) {
            peer->is_new = false;
            happen(w, (struct lp_event){.kind = LP_EV_CONNECTED, .conn = id});
        }
        if (peer->is_open && peer->is_draining) {
            peer->is_draining = false;
            happen(w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = id});
        }
    }
}

static void go_on(struct world *w)
{
    for (lp_id n = 0; n <= w->count; n++) {
        w->current = w->current % (w->count ? w->count : 1) + 1;
        if (w->peers[w->current].is_open)
            return;
    }
}

static void obey(struct world *w, uint8_t mark)
{
    if (mark == BREAK && w->peers[w->current].is_open) {
        w->peers[w->current].is_open = false;
        happen(w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = w->current});
    }
    if (mark == PAUSE)
        pass(w, 500000);
    go_on(w);
}

static void play(struct world *w, struct lp_span in)
{
    welcome(w);
    go_on(w);
    while (in.len) {
        size_t n = 0;
        while (n < in.len && (uint8_t)in.ptr[n] < PAUSE)
            n++;
        call_all(w);
        if (n && w->peers[w->current].is_open)
            happen(w,
                (struct lp_event){
                    .kind = LP_EV_READ, .conn = w->current, .u.bytes = lp_span(in.ptr, n)});
        welcome(w);
        if (n < in.len)
            obey(w, (uint8_t)in.ptr[n++]);
        in = lp_span_from(in, n);
    }
}

static void live(uint8_t mode, struct lp_span in)
{
    static const char *const URLS[] = {
        "redis://h", "redis+cluster://h,i", "redis://:p@h,i/2", "unix:/s"};
    static const struct lp_store_ops OPS = {on_state, on_message, on_subscribed};
    struct lp_span script = LP_SPAN("return 1"), why;
    struct world *w = calloc(1, sizeof *w);
    struct lp_store_url url;
    lp_id id;
    LP_ASSERT(w);
    w->shell = (struct lp_shell){w, perform};
    w->mode = mode;
    lp_heap_init(&w->timers);
    LP_ASSERT(lp_store_url_parse(lp_span_str(URLS[mode & 3]), NULL, NULL, &url, &why) == LP_OK);
    struct lp_store_args args = {.shell = &w->shell,
        .timers = &w->timers,
        .url = &url,
        .scripts = &script,
        .script_count = 1,
        .replicas_waited = (mode & 4) ? 1 : 0,
        .grace_ms = (mode & 16) ? 1000 : 0,
        .reply_max = (mode & 32) ? 512 : 0,
        .ops = &OPS,
        .ctx = w};
    LP_ASSERT(lp_store_new(&args, &w->store) == LP_OK);
    LP_ASSERT(lp_store_subscribe(w->store, LP_SPAN("news"), &id) == LP_OK);
    happen(w, (struct lp_event){.kind = LP_EV_CONFIG});
    play(w, in);
    pass(w, 20000000);
    LP_ASSERT(w->accepted == w->ended && lp_store_waiting(w->store) == 0);
    lp_store_free(w->store);
    LP_ASSERT(w->timers.count == 0);
    lp_heap_fini(&w->timers);
    free(w);
}

static void check_same(struct lp_span in, struct cuts cuts)
{
    struct lp_buf whole, parts;
    lp_buf_init(&whole, 64 * in.len + 1000);
    lp_buf_init(&parts, 64 * in.len + 1000);
    store_transcript(in, (struct cuts){CUT_NONE, 0, 0}, 1000, &whole);
    store_transcript(in, cuts, 1000, &parts);
    LP_ASSERT(lp_span_eq(lp_buf_span(&whole), lp_buf_span(&parts)));
    lp_buf_release(&whole);
    lp_buf_release(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    struct lp_span in = lp_span((const char *)data + 1, size - 1);
    live(data[0], in);
    check_same(in, (struct cuts){CUT_BYTES, 0, 0});
    check_same(in, (struct cuts){CUT_RANDOM, 0, data[0] + 1u});
    return 0;
}
