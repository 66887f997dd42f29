/* The session of a client: its memory, its beginning, its loss and its end (call/client.h).
 *
 *   IDLE -> OPENING -> OPEN -> CLOSING -> IDLE
 *     ^        |         |
 *     '--------+---------'  failed, lost
 *
 * Each session has an epoch; what belongs to an earlier one can still end, but changes nothing. */
#include "call/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "call/client_priv.h"
#include "mcp/jar.h"

enum { TEXT_MAX = 4 << 20 };

/* --- memory --- */

static int copy_args(struct lp_client *client, const struct lp_client_args *args)
{
    static const struct lp_span NOTHING = {"{}", 2};
    struct lp_span info = args->client_info.len
        ? args->client_info
        : LP_SPAN("{\"name\":\"limpet\",\"version\":\"" LP_VERSION "\"}");
    struct lp_span capabilities = args->capabilities.len ? args->capabilities : NOTHING;
    int err = lp_arena_dup(&client->text, capabilities, &client->capabilities);
    struct lp_span offered =
        lp_version_is_legacy(args->version) ? args->version : LP_SPAN(LP_VERSION_LEGACY);
    if (!err)
        err = lp_arena_dup(&client->text, info, &client->client_info);
    if (!err)
        err = lp_arena_dup(&client->text, offered, &client->offered);
    return err ? err : lp_arena_dup(&client->text, args->log_level, &client->log_level);
}

int lp_client_new(const struct lp_client_args *args, struct lp_client **ret)
{
    struct lp_client *client = calloc(1, sizeof *client);
    if (!client)
        return LP_ENOMEM;
    client->fetcher = args->fetcher;
    client->jar = args->jar;
    client->ops = args->ops;
    client->ctx = args->ctx;
    client->lane = args->lane;
    client->stream_first = args->stream_first;
    client->prefers_legacy = args->prefers_legacy;
    lp_arena_init(&client->text, TEXT_MAX);
    lp_slab_init(&client->calls, sizeof(struct lp_call), LP_CLIENT_CALLS_MAX);
    lp_slab_init(&client->asked, sizeof(struct lp_asked), LP_CLIENT_ASKED_MAX);
    lp_list_init(&client->calls_open);
    lp_list_init(&client->exchanges);
    lp_list_init(&client->logins);
    lp_buf_init(&client->session, LP_CLIENT_SESSION_MAX);
    lp_buf_init(&client->orphan, LP_CLIENT_SESSION_MAX);
    lp_buf_init(&client->result, LP_CLIENT_MESSAGE_MAX);
    lp_buf_init(&client->endpoint, 8192);
    lp_buf_init(&client->first, LP_CLIENT_SENTENCE_MAX);
    lp_buf_init(&client->tools, 0);
    lp_buf_init(&client->room, LP_FETCH_BODY_MAX);
    int err = copy_args(client, args);
    if (err) {
        lp_client_free(client);
        return err;
    }
    *ret = client;
    return LP_OK;
}

/* What is being said to the server may still arrive, unless `all` are to go. */
static void drop_exchanges(struct lp_client *client, bool all)
{
    struct lp_list *node = client->exchanges.next;
    while (node != &client->exchanges) {
        struct lp_exchange *x = LP_CONTAINER(node, struct lp_exchange, node);
        node = node->next;
        if (all || (x->kind != LP_EXCHANGE_SAY && !x->is_orphan))
            lp_exchange_drop(x);
    }
}

static void say_nothing(void *ctx, lp_id asked)
{
    (void)ctx;
    (void)asked;
}

void lp_client_free(struct lp_client *client)
{
    static const struct lp_client_ops SILENT = {.asked_cancelled = say_nothing};
    if (!client)
        return;
    client->ops = &SILENT;
    lp_login_drop_all(client);
    lp_asked_drop(client, 0);
    while (!lp_list_empty(&client->calls_open))
        lp_call_drop(LP_CONTAINER(client->calls_open.next, struct lp_call, node));
    drop_exchanges(client, true);
    lp_fetcher_timer_cancel(client->fetcher, &client->stream_timer);
    lp_fetcher_timer_cancel(client->fetcher, &client->step_timer);
    lp_slab_fini(&client->calls);
    lp_slab_fini(&client->asked);
    lp_arena_fini(&client->text);
    lp_buf_release(&client->session);
    lp_buf_release(&client->orphan);
    lp_buf_release(&client->result);
    lp_buf_release(&client->endpoint);
    lp_buf_release(&client->first);
    lp_buf_release(&client->tools);
    lp_buf_release(&client->room);
    free(client);
}

int lp_client_set_log_level(struct lp_client *client, struct lp_span level)
{
    static const char *const LEVELS[] = {"\"debug\"", "\"info\"", "\"notice\"", "\"warning\"",
        "\"error\"", "\"critical\"", "\"alert\"", "\"emergency\""};
    for (size_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++)
        if (lp_span_eq(level, lp_span_str(LEVELS[i]))) {
            client->log_level = lp_span_str(LEVELS[i]);
            return LP_OK;
        }
    return LP_ERANGE;
}

/* --- words --- */

struct lp_span lp_client_say(struct lp_client *client, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(client->sentence, sizeof client->sentence, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n;
    return lp_span(
        client->sentence, len < sizeof client->sentence ? len : sizeof client->sentence - 1);
}

struct lp_span lp_client_say_more(
    struct lp_client *client, struct lp_span said, struct lp_span bytes)
{
    LP_ASSERT(said.ptr == client->sentence);
    LP_ASSERT(said.len + bytes.len <= sizeof client->sentence);
    if (bytes.len)
        memcpy(client->sentence + said.len, bytes.ptr, bytes.len);
    return lp_span(client->sentence, said.len + bytes.len);
}

void lp_client_note(struct lp_client *client, const char *fmt, ...)
{
    char room[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room, sizeof room, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n;
    client->ops->note(client->ctx, lp_span(room, len < sizeof room ? len : sizeof room - 1));
}

struct lp_client_failure lp_client_limit(struct lp_client *client, int error)
{
    struct lp_client_failure why = {.kind = LP_FAILURE_LIMIT,
        .error = error,
        .reason = error == LP_ENOMEM ? LP_REASON_out_of_memory : LP_REASON_over_capacity};
    why.sentence = error == LP_ETOO_LONG
        ? lp_client_say(client,
              "the server sends a message of more than %d MiB, the most that is taken here; ask it "
              "for less at once",
              LP_CLIENT_MESSAGE_MAX >> 20)
        : lp_client_say(client, "it could not be done here: %s", lp_error_sentence(error));
    return why;
}

struct lp_span lp_client_brief(const struct lp_client_failure *why, size_t *ret_left)
{
    struct lp_span sentence = why->sentence;
    *ret_left = 0;
    if (why->body.len <= LP_CLIENT_SHOWN_MAX || !lp_span_ends(sentence, why->body))
        return sentence;
    size_t len = sentence.len - why->body.len + LP_CLIENT_SHOWN_MAX;
    while (len && ((unsigned char)sentence.ptr[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    *ret_left = sentence.len - len;
    return lp_span(sentence.ptr, len);
}

/* --- beginning --- */

enum lp_client_state lp_client_state(const struct lp_client *client)
{
    return client->state;
}

const struct lp_client_info *lp_client_info(const struct lp_client *client)
{
    return client->state == LP_CLIENT_OPEN ? &client->info : NULL;
}

/* Nothing of the session stays but what is in the middle of its own end. */
static void forget_session(struct lp_client *client)
{
    client->epoch++;
    client->step = LP_OPEN_NONE;
    lp_stream_close(client);
    lp_fetcher_timer_cancel(client->fetcher, &client->step_timer);
    lp_buf_clear(&client->session);
    lp_buf_clear(&client->orphan);
    lp_buf_clear(&client->tools);
    client->relist = client->relist_for = 0;
    client->version[0] = '\0';
    client->stream_resume.has_event_id = client->stream_resume.has_retry = false;
    client->stream_resume.tries = 0;
    client->stream_was_open = client->owes_opened = false;
    lp_asked_drop(client, 0);
}

void lp_client_open(struct lp_client *client)
{
    LP_ASSERT(client->state == LP_CLIENT_IDLE);
    forget_session(client);
    if (client->jar)
        lp_jar_fini(client->jar); /* [C1]: a new session begins with an empty one */
    client->state = LP_CLIENT_OPENING;
    client->is_old_sse = client->is_modern = false;
    client->first_status = 0;
    lp_open_begin(client);
}

static void on_early(void *ctx)
{
    struct lp_client *client = ctx;
    struct lp_client_failure why = lp_client_limit(client, client->early);
    lp_client_fail_open(client, &why);
}

void lp_client_fail_soon(struct lp_client *client, int error)
{
    client->early = error;
    client->step_timer.fire = on_early;
    client->step_timer.ctx = client;
    if (lp_fetcher_timer_set(client->fetcher, &client->step_timer, 0))
        on_early(client); /* there is no memory to be late with */
}

void lp_client_fail_open(struct lp_client *client, const struct lp_client_failure *why)
{
    client->state = LP_CLIENT_IDLE;
    forget_session(client);
    client->ops->failed(client->ctx, why);
}

static void on_stream_time(void *ctx)
{
    struct lp_client *client = ctx;
    client->owes_opened = false;
    client->ops->opened(client->ctx, &client->info);
}

/* Later than the event that settled it: the owner may do anything then. */
void lp_client_stream_settled(struct lp_client *client)
{
    if (client->owes_opened && lp_fetcher_timer_set(client->fetcher, &client->step_timer, 0))
        lp_client_note(client, "no memory to go on at once");
}

static bool owe_opened(struct lp_client *client)
{
    client->step_timer.fire = on_stream_time;
    client->step_timer.ctx = client;
    client->owes_opened = client->stream_first && client->session.len &&
        !lp_fetcher_timer_set(
            client->fetcher, &client->step_timer, (uint64_t)LP_CLIENT_STREAM_MS * 1000);
    return client->owes_opened;
}

void lp_client_is_open(struct lp_client *client)
{
    uint32_t epoch = client->epoch;
    client->step = LP_OPEN_NONE;
    client->state = LP_CLIENT_OPEN;
    client->info = (struct lp_client_info){.era = client->is_modern ? LP_ERA_MODERN : LP_ERA_LEGACY,
        .transport = client->is_old_sse ? LP_TRANSPORT_SSE : LP_TRANSPORT_STREAMABLE_HTTP,
        .version = lp_span_str(client->version),
        .result = lp_buf_span(&client->result),
        .session_id = lp_buf_span(&client->session)};
    if (owe_opened(client)) {
        lp_stream_open(client);
        if (!client->stream)
            lp_client_stream_settled(client);
        return;
    }
    client->ops->opened(client->ctx, &client->info);
    if (client->state == LP_CLIENT_OPEN && client->epoch == epoch && !client->is_old_sse)
        lp_stream_open(client);
}

/* --- loss --- */

/* A call of an earlier session whose answer has no way left to come, or NULL. */
static struct lp_call *find_stranded(
    const struct lp_client *client, lp_id except, bool had_one_stream)
{
    for (struct lp_list *node = client->calls_open.next; node != &client->calls_open;
         node = node->next) {
        struct lp_call *call = LP_CONTAINER(node, struct lp_call, node);
        bool is_old = call->epoch != client->epoch && call->id != except;
        if (is_old && (had_one_stream || !call->exchange))
            return call;
    }
    return NULL;
}

static void fail_stranded(struct lp_client *client, const struct lp_client_failure *why,
    lp_id except, bool had_one_stream)
{
    struct lp_client_failure other = *why;
    struct lp_call *stranded;
    other.cannot_have_run = false;
    while ((stranded = find_stranded(client, except, had_one_stream)))
        lp_call_fail(stranded, &other);
}

void lp_client_lose(
    struct lp_client *client, const struct lp_client_failure *why, struct lp_exchange *x)
{
    bool had_one_stream = client->is_old_sse;
    lp_id except = x->call;
    client->state = LP_CLIENT_IDLE;
    client->was_legacy = !client->is_modern;
    forget_session(client);
    client->ops->lost(client->ctx, why);
    fail_stranded(client, why, except, had_one_stream);
}

/* --- end --- */

static void say_closed(struct lp_client *client)
{
    client->state = LP_CLIENT_IDLE;
    forget_session(client);
    drop_exchanges(client, true);
    client->ops->closed(client->ctx);
}

static void on_close_time(void *ctx)
{
    say_closed(ctx);
}

void lp_client_deleted(struct lp_client *client)
{
    say_closed(client);
}

static bool delete_session(struct lp_client *client)
{
    struct lp_exchange *x;
    struct lp_exchange_args args = {.kind = LP_EXCHANGE_DELETE};
    client->step_timer.fire = on_close_time;
    client->step_timer.ctx = client;
    return client->session.len &&
        !lp_fetcher_timer_set(
            client->fetcher, &client->step_timer, (uint64_t)LP_CLIENT_CLOSE_MS * 1000) &&
        !lp_exchange_start(client, &args, &x);
}

void lp_client_close(struct lp_client *client)
{
    struct lp_client_failure why = {.kind = LP_FAILURE_CANCELLED,
        .error = LP_EBROKEN,
        .reason = LP_REASON_stopping,
        .sentence = LP_SPAN("the session was closed")};
    bool had_session = client->state == LP_CLIENT_OPEN || client->state == LP_CLIENT_OPENING;
    if (client->state == LP_CLIENT_CLOSING)
        return;
    client->state = LP_CLIENT_CLOSING;
    client->step = LP_OPEN_NONE;
    lp_fetcher_timer_cancel(client->fetcher, &client->step_timer);
    lp_login_drop_all(client);
    lp_stream_close(client);
    lp_calls_fail_all(client, &why);
    drop_exchanges(client, false);
    if (!had_session || !delete_session(client))
        say_closed(client);
}

/* --- notifications of ours --- */

int lp_client_notify(struct lp_client *client, struct lp_span method, struct lp_span params)
{
    struct lp_exchange *x;
    struct lp_params given = {.given = params};
    if (client->state != LP_CLIENT_OPEN)
        return LP_EUSAGE;
    int err = lp_calls_write_message(client, 0, method, &given);
    return err ? err : lp_client_say_message(client, method, lp_buf_span(&client->room), &x);
}
