/* store-driver URL [CALL_MS [GRACE_MS [REPLICAS [CACERT]]]]   the store's client on a real loop,
 * led by lines on standard input; each leads to lines on standard output.
 *
 *     call ID r|w|i KEY WORD...        -> ID OUTCOME yes|no REPLY   (i: a write that may run twice)
 *     eval ID r|w|i SCRIPT KEYS WORD...   0: adds, 1: compares and sets
 *     subscribe CHANNEL                -> subscribed CHANNEL; message CHANNEL PAYLOAD
 *     state                            <- up NONE SENTENCE; down REFUSED SENTENCE (unasked too)
 *
 * KEY is "-" for none. It ends with its input. */
#include <stdio.h>
#include <stdlib.h>

#include "io/loop.h"
#include "io/signals.h"
#include "io/tls_trust.h"
#include "store/store.h"

enum { LINE_MAX = 4096, WORDS_MAX = 64 };

static const char *const SCRIPTS[] = {
    "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    "local v = redis.call('GET', KEYS[1]) or ''\n"
    "if v ~= ARGV[1] then return {0, v} end\n"
    "redis.call('SET', KEYS[1], ARGV[2])\n"
    "return {1, ARGV[2]}",
};

struct driver {
    struct lp_loop *loop;
    struct lp_heap timers;
    struct lp_store *store;
    struct lp_tls_trust *trust;
    lp_id stdio;
    struct lp_buf line;
};

static void print_span(struct lp_span text)
{
    printf("%.*s", (int)text.len, text.ptr);
}

static void print_reply(const struct lp_store_reply *reply)
{
    const char *comma = "";
    if (!reply)
        return;
    switch (reply->kind) {
    case LP_REPLY_NIL:
        printf("nil");
        break;
    case LP_REPLY_INTEGER:
        printf("%lld", (long long)reply->integer);
        break;
    case LP_REPLY_STRING:
    case LP_REPLY_ERROR:
        print_span(reply->text);
        break;
    case LP_REPLY_ARRAY:
        printf("[");
        for (const struct lp_store_reply *item = reply->first; item; item = item->next) {
            printf("%s", comma);
            print_reply(item);
            comma = ",";
        }
        printf("]");
        break;
    }
}

static void on_done(void *ctx, uint64_t tag, const struct lp_store_result *result)
{
    (void)ctx;
    printf("%llu %s %s ", (unsigned long long)tag, lp_store_outcome_name(result->outcome),
        result->may_have_run ? "yes" : "no");
    print_reply(result->reply);
    printf("\n");
}

static void on_state(void *ctx, bool is_up, enum lp_store_trouble trouble, struct lp_span sentence)
{
    (void)ctx;
    printf("%s %s ", is_up ? "up" : "down", lp_store_trouble_name(trouble));
    print_span(sentence);
    printf("\n");
}

static void on_message(void *ctx, struct lp_span channel, struct lp_span payload)
{
    (void)ctx;
    printf("message ");
    print_span(channel);
    printf(" ");
    print_span(payload);
    printf("\n");
}

static void on_subscribed(void *ctx, struct lp_span channel)
{
    (void)ctx;
    printf("subscribed ");
    print_span(channel);
    printf("\n");
}

static void call(struct driver *d, const struct lp_span *words, uint32_t count)
{
    struct lp_store_call_args args = {.is_write = words[2].ptr[0] != 'r',
        .is_idempotent = words[2].ptr[0] == 'i',
        .argv = words + 4,
        .argc = count - 4,
        .done = on_done,
        .ctx = d};
    uint64_t number = 0;
    int err;
    if (!lp_span_to_u64(words[1], &args.tag))
        abort();
    if (lp_span_eq(words[0], LP_SPAN("call"))) {
        args.key = lp_span_eq(words[3], LP_SPAN("-")) ? LP_SPAN("") : words[3];
        err = lp_store_call(d->store, &args, NULL);
    } else {
        args.argv++;
        args.argc--;
        (void)lp_span_to_u64(words[4], &number);
        err = lp_store_eval(
            d->store, (uint32_t)(words[3].ptr[0] - '0'), (uint32_t)number, &args, NULL);
    }
    if (err)
        printf("%llu %s\n", (unsigned long long)args.tag, lp_error_name(err));
}

static void obey(struct driver *d, struct lp_span line)
{
    struct lp_span words[WORDS_MAX];
    uint32_t count = 0;
    lp_id id;
    while (line.ptr && count < WORDS_MAX)
        words[count++] = lp_span_split(line, ' ', &line);
    if (count > 4)
        call(d, words, count);
    else if (count == 2 && lp_store_subscribe(d->store, words[1], &id))
        printf("cannot subscribe\n");
}

static void obey_lines(struct driver *d)
{
    for (;;) {
        struct lp_span all = lp_buf_span(&d->line);
        size_t end = lp_span_find(all, '\n');
        if (end == all.len)
            return;
        obey(d, lp_span(all.ptr, end));
        lp_buf_consume(&d->line, end + 1);
    }
}

static void act(struct driver *d, struct lp_action action)
{
    const struct lp_shell *shell = lp_loop_shell(d->loop);
    int64_t result = shell->perform(shell->ctx, &action);
    if (action.kind == LP_ACT_CONNECT)
        d->stdio = (lp_id)result;
}

static void on_own(struct driver *d, const struct lp_event *event)
{
    if (event->kind == LP_EV_CONFIG) {
        act(d, (struct lp_action){.kind = LP_ACT_CONNECT, .u.connect.kind = LP_EP_STDIO});
    } else if (event->kind == LP_EV_READ) {
        if (lp_buf_append(&d->line, event->u.bytes))
            abort();
        obey_lines(d);
    } else if (event->kind == LP_EV_EOF || event->kind == LP_EV_BROKEN) {
        act(d, (struct lp_action){.kind = LP_ACT_STOPPED});
    }
}

static void on_event(void *ctx, const struct lp_event *event)
{
    struct driver *d = ctx;
    if (!lp_store_event(d->store, event))
        on_own(d, event);
    if (event->kind == LP_EV_TIMER)
        for (struct lp_timer *timer; (timer = lp_heap_due(&d->timers, event->mono_us));)
            lp_store_timer(d->store, timer, event->mono_us);
    lp_store_flush(d->store);
    act(d, (struct lp_action){.kind = LP_ACT_TIMER, .u.timer_at_us = lp_heap_next_us(&d->timers)});
    fflush(stdout);
}

static uint32_t number_of(int argc, char **argv, int place)
{
    return place < argc ? (uint32_t)strtoul(argv[place], NULL, 10) : 0;
}

static int open_store(struct driver *d, int argc, char **argv)
{
    static const struct lp_store_ops OPS = {on_state, on_message, on_subscribed};
    struct lp_span scripts[2] = {lp_span_str(SCRIPTS[0]), lp_span_str(SCRIPTS[1])};
    static struct lp_span kept[2];
    struct lp_store_url url;
    struct lp_span why;
    memcpy(kept, scripts, sizeof kept);
    if (lp_store_url_parse(lp_span_str(argv[1]), NULL, NULL, &url, &why)) {
        fprintf(stderr, "%.*s\n", (int)why.len, why.ptr);
        return LP_ESYNTAX;
    }
    struct lp_store_args args = {.shell = lp_loop_shell(d->loop),
        .timers = &d->timers,
        .url = &url,
        .scripts = kept,
        .script_count = 2,
        .call_ms = number_of(argc, argv, 2),
        .grace_ms = number_of(argc, argv, 3),
        .replicas_waited = number_of(argc, argv, 4),
        .ops = &OPS,
        .ctx = d};
    return lp_store_new(&args, &d->store);
}

int main(int argc, char **argv)
{
    struct driver d = {0};
    struct lp_buf why;
    lp_buf_init(&why, LINE_MAX);
    lp_buf_init(&d.line, 1 << 20);
    lp_heap_init(&d.timers);
    struct lp_tls_trust_args trust = {.cacert_path = argc > 5 ? argv[5] : NULL};
    (void)lp_process_setup();
    if (argc < 2 || (argc > 5 && lp_tls_trust_new(&trust, &why, &d.trust)))
        return 64;
    d.loop = lp_loop_new(&(struct lp_loop_args){.trust = d.trust});
    if (!d.loop || open_store(&d, argc, argv))
        return 64;
    lp_loop_attach(d.loop, &d, on_event);
    lp_loops_join(&d.loop, 1);
    if (lp_loop_config(d.loop, NULL))
        return 1;
    lp_loop_run(d.loop);
    lp_store_free(d.store);
    lp_loop_free(d.loop);
    lp_heap_fini(&d.timers);
    lp_buf_release(&d.line);
    lp_buf_release(&why);
    lp_tls_trust_free(d.trust);
    return 0;
}
