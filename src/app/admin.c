/* HTTP of the admin listener (app/admin.h): a handful of GETs without bodies.
 *
 * The head decides which answer it will be and leaves that as the stream's tag; the answer is made
 * when the request is complete. From then on the tag is the id of an object that holds the rest of
 * an answer whose reader is slow. A loopback listener takes loopback names only, so that no web
 * page can ask it; any other tells no more than /live and /ready. */
#include "app/admin.h"

#include <stdlib.h>

#include "base/error.h"
#include "io/log.h"
#include "serve/guard.h"
#include "wire/http1.h"

enum { SLICE = 32768, ANSWER_MAX = 64 << 20, ANSWERS_MAX = 64, ENGINES_MAX = 64 };

/* Small numbers: no slab id is one, since those carry a generation above. */
enum page {
    PAGE_NONE,
    PAGE_LIVE,
    PAGE_READY,
    PAGE_METRICS,
    PAGE_STATUS_JSON,
    PAGE_STATUS_TEXT,
    PAGE_UNKNOWN,
    PAGE_BAD_METHOD,
    PAGE_FORBIDDEN,
    PAGE_BAD_REQUEST,
    PAGE_TOO_LARGE,
    PAGE_TOO_SLOW,
    PAGE_count,
};

struct answer {
    lp_id id;
    struct lp_stream stream;
    struct lp_buf left;
};

struct lp_admin {
    struct lp_admin_args args;
    struct lp_slab answers;
    struct lp_head head;
    struct lp_metrics process; /* what no engine counts; written when it is asked for */
};

struct lp_admin *lp_admin_new(const struct lp_admin_args *args)
{
    struct lp_admin *admin = aligned_alloc(64, (sizeof *admin + 63) / 64 * 64);
    if (!admin)
        return NULL;
    *admin = (struct lp_admin){.args = *args};
    lp_slab_init(&admin->answers, sizeof(struct answer), ANSWERS_MAX);
    return admin;
}

void lp_admin_free(struct lp_admin *admin)
{
    if (!admin)
        return;
    uint32_t cursor = 0;
    lp_id id;
    for (struct answer *a; (a = lp_slab_next(&admin->answers, &cursor, &id));)
        lp_buf_release(&a->left);
    lp_slab_fini(&admin->answers);
    free(admin);
}

static struct lp_links *links_of(const struct lp_admin *admin)
{
    return lp_engine_links(admin->args.engines[0]);
}

/* --- what is told --- */

/* All replicas in one row array; the caller frees it. NULL: out of memory or there are none. */
static struct lp_metrics_replica *list_replicas(const struct lp_admin *admin, uint32_t *ret_count)
{
    const struct lp_engine *engine = admin->args.engines[0];
    *ret_count = lp_engine_replicas(engine, NULL, 0);
    struct lp_metrics_replica *rows = calloc(*ret_count ? *ret_count : 1, sizeof *rows);
    if (rows)
        *ret_count = lp_engine_replicas(engine, rows, *ret_count);
    return rows;
}

/* The log is none of the engines': its counts stand in a block of their own. */
static const struct lp_metrics *count_log(struct lp_admin *admin)
{
    struct lp_log_trouble trouble = lp_log_trouble(admin->args.log);
    admin->process.cells[LP_METRIC_LOG_LINES_LOST] = trouble.lost_lines;
    admin->process.cells[LP_METRIC_LOG_REOPEN_FAILURES] = trouble.failed_reopens;
    return &admin->process;
}

/* One for each engine. */
static void list_blocks(const struct lp_admin *admin, const struct lp_metrics **blocks)
{
    LP_ASSERT(admin->args.engine_count <= ENGINES_MAX);
    for (uint32_t i = 0; i < admin->args.engine_count; i++)
        blocks[i] = lp_engine_metrics(admin->args.engines[i]);
}

static int tell_metrics(struct lp_admin *admin, struct lp_buf *out)
{
    const struct lp_metrics *blocks[ENGINES_MAX + 1];
    uint32_t count = 0;
    list_blocks(admin, blocks);
    blocks[admin->args.engine_count] = count_log(admin);
    struct lp_metrics_replica *rows = list_replicas(admin, &count);
    if (!rows)
        return LP_ENOMEM;
    int err = lp_metrics_print(blocks, admin->args.engine_count + 1, rows, count, out);
    free(rows);
    return err;
}

/* Balancers spread clients over all threads, so one that cannot serve is enough. */
static bool is_ready(const struct lp_admin *admin, uint32_t *ret_number)
{
    for (uint32_t i = 0; i < admin->args.engine_count; i++)
        if (!lp_engine_is_ready(admin->args.engines[i])) {
            *ret_number = i;
            return false;
        }
    return true;
}

static int tell_status(const struct lp_admin *admin, bool as_json, struct lp_buf *out)
{
    uint64_t up_us = links_of(admin)->now_us - admin->args.start_us;
    uint32_t number;
    struct lp_status status = {.conf = admin->args.conf,
        .keyring = admin->args.keyring,
        .is_ready = is_ready(admin, &number),
        .uptime_s = up_us / 1000000};
    const struct lp_metrics *blocks[ENGINES_MAX];
    list_blocks(admin, blocks);
    status.sessions = lp_metrics_sessions(blocks, admin->args.engine_count);
    struct lp_metrics_replica *rows = list_replicas(admin, &status.replica_count);
    if (!rows)
        return LP_ENOMEM;
    status.replicas = rows;
    int err = as_json ? lp_status_json(&status, out) : lp_status_text(&status, out);
    free(rows);
    return err;
}

/* Why thread `number` is not ready: a line for each server without a replica as far as the first
 * thread knows, or that it is stopping. */
static int tell_reasons(const struct lp_admin *admin, uint32_t number, struct lp_buf *out)
{
    const struct lp_conf *conf = admin->args.conf;
    uint32_t count = 0;
    struct lp_metrics_replica *rows = list_replicas(admin, &count);
    int err = rows ? LP_OK : LP_ENOMEM;
    for (uint32_t i = 0; i < conf->server_count && !err; i++) {
        bool has_replica = false;
        for (uint32_t r = 0; r < count && !has_replica; r++)
            has_replica = lp_span_eq(rows[r].server, conf->servers[i].name) &&
                !lp_span_eq(rows[r].state, LP_SPAN("gone"));
        if (!has_replica)
            err = lp_buf_printf(out, "server %.*s: every replica is gone\n",
                (int)conf->servers[i].name.len, conf->servers[i].name.ptr);
    }
    free(rows);
    if (!err && !out->len && number)
        err = lp_buf_printf(
            out, "thread %u is stopping, or sees a server whose replicas are all gone\n", number);
    else if (!err && !out->len)
        err = lp_buf_append(out, LP_SPAN("stopping\n"));
    return err;
}

static int tell_ready(const struct lp_admin *admin, struct lp_buf *out, uint16_t *ret_status)
{
    uint32_t number = 0;
    if (is_ready(admin, &number))
        return lp_buf_append(out, LP_SPAN("ready\n"));
    *ret_status = 503;
    return tell_reasons(admin, number, out);
}

static int make_page(
    struct lp_admin *admin, enum page page, struct lp_buf *out, uint16_t *ret_status)
{
    switch (page) {
    case PAGE_LIVE:
        return lp_buf_append(out, LP_SPAN("ok\n"));
    case PAGE_READY:
        return tell_ready(admin, out, ret_status);
    case PAGE_METRICS:
        return tell_metrics(admin, out);
    case PAGE_STATUS_JSON:
        return tell_status(admin, true, out);
    case PAGE_STATUS_TEXT:
        return tell_status(admin, false, out);
    case PAGE_BAD_METHOD:
        *ret_status = 405;
        return lp_buf_append(out, LP_SPAN("only GET and HEAD are answered here\n"));
    case PAGE_FORBIDDEN:
        *ret_status = 403;
        return lp_buf_append(out,
            LP_SPAN("this is told on a loopback listener only, to loopback "
                    "names\n"));
    case PAGE_BAD_REQUEST:
        *ret_status = 400;
        return lp_buf_append(out, LP_SPAN("this is no HTTP request\n"));
    case PAGE_TOO_LARGE:
        *ret_status = 431;
        return lp_buf_append(out, LP_SPAN("the request head is over the limit\n"));
    case PAGE_TOO_SLOW:
        *ret_status = 408;
        return lp_buf_append(out, LP_SPAN("the request did not arrive in time\n"));
    case PAGE_NONE:
    case PAGE_UNKNOWN:
    case PAGE_count:
        break;
    }
    *ret_status = 404;
    return lp_buf_append(out, LP_SPAN("there are /live, /ready, /metrics and /status\n"));
}

static struct lp_span type_of(enum page page)
{
    if (page == PAGE_STATUS_JSON)
        return LP_SPAN("application/json");
    if (page == PAGE_METRICS)
        return LP_SPAN("text/plain; version=0.0.4; charset=utf-8");
    return LP_SPAN("text/plain; charset=utf-8");
}

/* --- answering --- */

static struct answer *find_answer(const struct lp_admin *admin, uint64_t tag)
{
    return tag >= PAGE_count ? lp_slab_get(&admin->answers, tag) : NULL;
}

static void forget(struct lp_admin *admin, uint64_t tag)
{
    struct answer *a = find_answer(admin, tag);
    if (!a)
        return;
    lp_buf_release(&a->left);
    lp_slab_free(&admin->answers, a->id);
}

/* Every send may end in a reset, which forgets the answer: it is looked up again after each. */
static void push(struct lp_admin *admin, lp_id id)
{
    bool takes_more = true;
    struct answer *a;
    while ((a = find_answer(admin, id)) && a->left.len && takes_more) {
        struct lp_span slice = lp_buf_span(&a->left);
        if (slice.len > SLICE)
            slice.len = SLICE;
        takes_more = lp_link_send_body(links_of(admin), a->stream, slice);
        a = find_answer(admin, id);
        if (a)
            lp_buf_consume(&a->left, slice.len);
    }
    if (!a || a->left.len)
        return;
    lp_link_send_end(links_of(admin), a->stream);
    forget(admin, id);
}

static void add(struct lp_head *head, enum lp_field_id id, struct lp_span value)
{
    int err = lp_head_add(head, id, value);
    LP_ASSERT(!err);
}

static void answer(struct lp_admin *admin, struct lp_stream s, enum page page)
{
    lp_id id;
    struct answer *a = lp_slab_new(&admin->answers, &id);
    if (!a) {
        lp_link_abort(links_of(admin), s);
        return;
    }
    a->id = id;
    a->stream = s;
    lp_buf_init(&a->left, ANSWER_MAX);
    lp_link_set_tag(links_of(admin), s.link, id);
    uint16_t status = 200;
    if (make_page(admin, page, &a->left, &status)) {
        lp_buf_clear(&a->left);
        status = 503;
    }
    struct lp_head *head = &admin->head;
    head->is_request = false;
    head->status = status;
    head->reason = lp_http1_phrase(status);
    head->body = a->left.len ? LP_BODY_LENGTH : LP_BODY_NONE;
    head->body_bytes = a->left.len;
    head->field_count = 0;
    add(head, LP_FIELD_CONTENT_TYPE, type_of(page));
    add(head, LP_FIELD_CACHE_CONTROL, LP_SPAN("no-store"));
    if (status == 405)
        add(head, LP_FIELD_ALLOW, LP_SPAN("GET, HEAD"));
    lp_link_send_head(links_of(admin), s, head);
    push(admin, id);
}

/* --- requests --- */

static enum page page_of_path(const struct lp_head *head)
{
    struct lp_span query;
    struct lp_span path = lp_span_split(head->target, '?', &query);
    struct lp_span accept = lp_head_value(head, LP_FIELD_ACCEPT);
    if (lp_span_eq(path, LP_SPAN("/live")))
        return PAGE_LIVE;
    if (lp_span_eq(path, LP_SPAN("/ready")))
        return PAGE_READY;
    if (lp_span_eq(path, LP_SPAN("/metrics")))
        return PAGE_METRICS;
    if (lp_span_eq(path, LP_SPAN("/status")))
        return lp_span_starts(accept, LP_SPAN("text/plain")) ? PAGE_STATUS_TEXT : PAGE_STATUS_JSON;
    return PAGE_UNKNOWN;
}

static enum page judge(const struct lp_admin *admin, const struct lp_head *head)
{
    enum page page = page_of_path(head);
    bool is_loopback = admin->args.conf->admin.is_loopback;
    bool is_open = page == PAGE_LIVE || page == PAGE_READY;
    if (is_loopback && lp_guard_judge(head, true, LP_SPAN("")))
        return PAGE_FORBIDDEN;
    if (!is_loopback && !is_open && page != PAGE_UNKNOWN)
        return PAGE_FORBIDDEN;
    if (page != PAGE_UNKNOWN && head->method != LP_METHOD_GET && head->method != LP_METHOD_HEAD)
        return PAGE_BAD_METHOD;
    return page;
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    (void)tag;
    struct lp_admin *admin = ctx;
    lp_link_set_tag(links_of(admin), s.link, judge(admin, head));
}

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    (void)ctx;
    (void)tag;
    (void)s;
    (void)bytes; /* nothing here wants one */
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    (void)whole;
    answer(ctx, s, tag < PAGE_count ? (enum page)tag : PAGE_UNKNOWN);
}

static void on_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)s;
    push(ctx, tag);
}

static void on_left(void *ctx, uint64_t tag, struct lp_stream s)
{
    (void)ctx;
    (void)tag;
    (void)s; /* it may still read the answer; if not, a reset follows */
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)s;
    (void)why;
    forget(ctx, tag);
}

static enum page page_of_refusal(enum lp_reason why)
{
    if (why == LP_REASON_head_too_large)
        return PAGE_TOO_LARGE;
    return why == LP_REASON_request_timeout ? PAGE_TOO_SLOW : PAGE_BAD_REQUEST;
}

static void on_refused(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    (void)tag;
    answer(ctx, s, page_of_refusal(why));
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    (void)ctx;
    (void)tag;
    (void)link;
    (void)why;
}

/* No `connected`: the admin connects to nobody. */
const struct lp_message_ops lp_admin_ops = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .writable = on_writable,
    .left = on_left,
    .reset = on_reset,
    .refused = on_refused,
    .closed = on_closed,
};
