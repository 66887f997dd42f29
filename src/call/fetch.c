/* One HTTP exchange of a client command, from its start to its one end (call/fetch.h).
 *
 * Decides: kept connection or new one, what the head holds and in which order, when to repeat and
 * where a redirect may lead. A request is repeated only when a kept connection turned out dead
 * before any byte of an answer, and then only if nothing was sent or asking twice does no harm
 * (cases RET-01, RET-02). Invariant: a fetch is freed before its owner hears of the end, so an
 * owner may do anything in that call. */
#include "call/fetch.h"

#include <stdio.h>

#include "call/fetch_priv.h"
#include "mcp/jar.h"

enum { SLICE = 65536, URL_MAX = 8192, TARGET_ROOM = URL_MAX + 16, TEXT_MAX = 1 << 20 };

static const struct lp_span USER_AGENT = {"limpet/" LP_VERSION, sizeof("limpet/" LP_VERSION) - 1};

void lp_fetch_free(struct lp_fetch *fetch)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    lp_fetcher_timer_cancel(fetcher, &fetch->deadline);
    lp_list_remove(&fetch->node);
    lp_fetch_conn_release(fetch, false);
    lp_arena_fini(&fetch->text);
    lp_slab_free(&fetcher->fetches, fetch->id);
}

/* --- endings --- */

static void fail(struct lp_fetch *fetch, struct lp_fetch_failure failure)
{
    const struct lp_fetch_ops *ops = fetch->args.ops;
    void *ctx = fetch->args.ctx;
    lp_id id = fetch->id;
    if (!failure.sentence.len)
        lp_fetch_put_words(fetch, &failure);
    lp_fetch_note(fetch, "failed: %.*s", (int)failure.sentence.len, failure.sentence.ptr);
    lp_fetch_free(fetch);
    ops->failed(ctx, id, &failure);
}

static void fail_with(struct lp_fetch *fetch, int error, enum lp_reason reason)
{
    struct lp_fetch_failure failure = {.phase = LP_FETCH_READING, .error = error, .reason = reason};
    if (fetch->state < LP_FETCH_IS_SENDING)
        failure.phase = LP_FETCH_CONNECTING;
    else if (fetch->state == LP_FETCH_IS_SENDING)
        failure.phase = LP_FETCH_SENDING;
    failure.cannot_have_run = failure.phase == LP_FETCH_CONNECTING ||
        (failure.phase == LP_FETCH_SENDING &&
            !lp_link_has_written(&fetch->fetcher->links, fetch->stream));
    fail(fetch, failure);
}

static void queue(struct lp_fetch *fetch)
{
    fetch->state = LP_FETCH_QUEUED;
    lp_list_push_back(&fetch->fetcher->queued, &fetch->node);
}

static void on_deadline(void *ctx)
{
    struct lp_fetch *fetch = ctx;
    fail_with(fetch, LP_ETIMEOUT, LP_REASON_first_byte_timeout);
}

/* Nothing is awaited longer than this from now on; 0: no limit. */
static void set_deadline(struct lp_fetch *fetch, uint64_t us)
{
    lp_fetcher_timer_cancel(fetch->fetcher, &fetch->deadline);
    if (us && lp_fetcher_timer_set(fetch->fetcher, &fetch->deadline, us))
        lp_fetch_note(fetch, "no memory for its time-out: it has none");
}

/* --- the request --- */

static void add(struct lp_fetch *fetch, struct lp_span name, struct lp_span value)
{
    int err = lp_head_add_other(&fetch->fetcher->head, name, value);
    LP_ASSERT(!err); /* the counts of all sources together are below the head's limit */
}

static bool is_given(const struct lp_fetch *fetch, struct lp_span name)
{
    for (uint32_t i = 0; i < fetch->args.field_count; i++)
        if (lp_span_ieq(fetch->args.fields[i].name, name))
            return true;
    const struct lp_target *target = fetch->fetcher->target;
    for (uint32_t i = 0; fetch->is_own && i < target->field_count; i++)
        if (lp_span_ieq(target->fields[i].name, name))
            return true;
    return false;
}

/* The target's own fields, where the owner has not given one of that name; the Cookie among them is
 * the jar's to merge. */
static struct lp_span add_target_fields(struct lp_fetch *fetch)
{
    const struct lp_target *target = fetch->fetcher->target;
    struct lp_span cookie = LP_SPAN("");
    for (uint32_t i = 0; fetch->is_own && i < target->field_count; i++) {
        bool is_cookie = lp_span_ieq(target->fields[i].name, LP_SPAN("cookie"));
        if (is_cookie)
            cookie = target->fields[i].value;
        else
            add(fetch, target->fields[i].name, target->fields[i].value);
    }
    return cookie;
}

static void add_cookie(struct lp_fetch *fetch, struct lp_span configured)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    struct lp_span value = configured;
    lp_buf_clear(&fetcher->cookie);
    if (fetch->args.jar && fetch->is_own) {
        if (lp_jar_write(
                fetch->args.jar, &fetch->uri, fetcher->wall_ms, configured, &fetcher->cookie))
            lp_fetch_note(fetch, "the jar's cookies did not fit and were left out");
        else
            value = lp_buf_span(&fetcher->cookie);
    }
    if (value.len)
        add(fetch, LP_SPAN("Cookie"), value);
}

static struct lp_span put_target(struct lp_fetch *fetch, char *room, size_t room_len)
{
    const struct lp_uri *uri = &fetch->uri;
    int n = snprintf(room, room_len, "%.*s%s%.*s", uri->path.len ? (int)uri->path.len : 1,
        uri->path.len ? uri->path.ptr : "/", uri->query.ptr ? "?" : "", (int)uri->query.len,
        uri->query.ptr ? uri->query.ptr : "");
    LP_ASSERT(n > 0 && (size_t)n < room_len);
    return lp_span(room, (size_t)n);
}

static void log_head(struct lp_fetch *fetch, const struct lp_head *head, bool is_sent)
{
    struct lp_netlog *log = fetch->fetcher->log;
    const struct lp_target *target = fetch->fetcher->target;
    struct lp_netlog_at at = {fetch->fetcher->wall_ms, fetch->facts.number, is_sent};
    char status[8];
    if (!log)
        return;
    snprintf(status, sizeof status, "%u", head->status);
    lp_netlog_start_line(log, at, is_sent ? head->method_name : lp_span_str(status),
        is_sent ? fetch->url : head->reason);
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct lp_netlog_field field = {head->fields[i].name, head->fields[i].value, false};
        for (uint32_t k = 0; is_sent && fetch->is_own && k < target->field_count; k++)
            field.is_secret |= lp_span_ieq(target->fields[k].name, field.name) &&
                !lp_span_ieq(field.name, LP_SPAN("user-agent"));
        lp_netlog_field(log, at, &field);
    }
    if (is_sent && fetch->args.body.len)
        lp_netlog_content(log, at, "body", fetch->args.what, fetch->args.body);
}

static struct lp_span method_name(enum lp_method method)
{
    switch (method) {
#define X(name)                                                                                    \
    case LP_METHOD_##name:                                                                         \
        return LP_SPAN(#name);
        LP_METHODS(X)
#undef X
    default:
        LP_UNREACHABLE();
    }
}

static void send_body(struct lp_fetch *fetch)
{
    struct lp_links *links = &fetch->fetcher->links;
    struct lp_span rest = lp_span_from(fetch->args.body, fetch->body_sent);
    while (rest.len) {
        struct lp_span slice = lp_span(rest.ptr, rest.len < SLICE ? rest.len : SLICE);
        rest = lp_span_from(rest, slice.len);
        fetch->body_sent += slice.len;
        if (!lp_link_send_body(links, fetch->stream, slice) && rest.len)
            return; /* on_writable goes on */
    }
    lp_link_send_end(links, fetch->stream);
}

static void send_request(struct lp_fetch *fetch)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    struct lp_head *head = &fetcher->head;
    char room[TARGET_ROOM];
    *head = (struct lp_head){.is_request = true,
        .method = fetch->args.method,
        .method_name = method_name(fetch->args.method),
        .body = fetch->args.body.len ? LP_BODY_LENGTH : LP_BODY_NONE,
        .body_bytes = fetch->args.body.len};
    head->target = put_target(fetch, room, sizeof room);
    add(fetch, LP_SPAN("Host"),
        lp_span_from(lp_span_str(fetch->origin), fetch->uri.scheme.len + 3));
    for (uint32_t i = 0; i < fetch->args.field_count; i++)
        add(fetch, fetch->args.fields[i].name, fetch->args.fields[i].value);
    if (!is_given(fetch, LP_SPAN("User-Agent")))
        add(fetch, LP_SPAN("User-Agent"), USER_AGENT);
    add_cookie(fetch, add_target_fields(fetch));
    log_head(fetch, head, true);
    fetch->state = LP_FETCH_IS_SENDING;
    fetch->body_sent = 0;
    fetch->conn->requests++;
    fetch->facts.sent_us = fetcher->links.now_us;
    fetch->stream = lp_link_begin(&fetcher->links, fetch->conn->link);
    lp_link_send_head(&fetcher->links, fetch->stream, head);
    send_body(fetch);
}

void lp_fetch_begin(struct lp_fetch *fetch)
{
    struct lp_fetcher *fetcher = fetch->fetcher;
    bool may_reuse = fetch->args.policy == LP_FETCH_KEEP && !fetch->must_be_fresh;
    fetch->conn = may_reuse ? lp_fetch_conn_take(fetcher, fetch->origin, fetch->args.lane) : NULL;
    fetch->facts.is_reused = fetch->conn;
    if (fetch->conn) {
        fetch->facts.connection = fetch->conn->number;
        lp_link_set_tag(&fetcher->links, fetch->conn->link, fetch->id);
        send_request(fetch);
        return;
    }
    fetch->state = LP_FETCH_IS_CONNECTING;
    int err = lp_fetch_conn_open(fetch, &fetch->conn);
    if (err)
        fail_with(fetch, err, LP_REASON_upstream_broke);
    else
        fetch->facts.connection = fetch->conn->number;
}

/* --- where it goes --- */

static int set_url(struct lp_fetch *fetch, struct lp_span url)
{
    struct lp_uri uri;
    int err = lp_uri_parse(url, &uri);
    if (err)
        return err;
    bool is_tls = lp_span_ieq(uri.scheme, LP_SPAN("https"));
    if (!is_tls && !lp_span_ieq(uri.scheme, LP_SPAN("http")))
        return LP_EUNSUPPORTED;
    if (!uri.host.len || uri.host.len > 255 || uri.userinfo.ptr || url.len > URL_MAX)
        return LP_ESYNTAX;
    uint16_t port = lp_uri_port(&uri);
    char digits[8] = "";
    if (port != (is_tls ? 443 : 80))
        snprintf(digits, sizeof digits, ":%u", port);
    snprintf(fetch->origin, sizeof fetch->origin, "%s://%s%.*s%s%s", is_tls ? "https" : "http",
        uri.host_is_ipv6 ? "[" : "", (int)uri.host.len, uri.host.ptr, uri.host_is_ipv6 ? "]" : "",
        digits);
    for (char *p = fetch->origin; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
    fetch->url = url;
    fetch->uri = uri;
    fetch->is_own = !fetch->args.is_foreign && lp_target_is_own(fetch->fetcher->target, &uri);
    return LP_OK;
}

/* --- redirects --- */

static bool is_redirect(uint16_t status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void refuse_redirect(
    struct lp_fetch *fetch, uint16_t status, const char *words, struct lp_span location)
{
    struct lp_fetch_failure failure = {.phase = LP_FETCH_READING,
        .error = LP_EUNSUPPORTED,
        .reason = LP_REASON_upstream_garbled,
        .cannot_have_run = true,
        .status = status};
    char *room = fetch->fetcher->sentence;
    location.len = lp_span_find(location, '?'); /* a query may hold a secret */
    int n = snprintf(room, LP_FETCH_SENTENCE_MAX, "%s answers %u and points to %.*s: %s",
        fetch->origin, status, location.len < 200 ? (int)location.len : 200,
        location.ptr ? location.ptr : "", words);
    if (n > 0 && n < LP_FETCH_SENTENCE_MAX)
        failure.sentence = lp_span(room, (size_t)n);
    fail(fetch, failure);
}

/* Resolves the new address into the fetch's own memory. */
static int resolve(struct lp_fetch *fetch, struct lp_span location, struct lp_span *ret)
{
    struct lp_uri ref;
    struct lp_buf text;
    lp_buf_init(&text, URL_MAX);
    int err = lp_uri_parse(location, &ref);
    if (!err)
        err = lp_uri_resolve(&fetch->uri, &ref, &text);
    if (!err)
        err = lp_arena_dup(&fetch->text, lp_buf_span(&text), ret);
    lp_buf_release(&text);
    return err;
}

static void redirect(struct lp_fetch *fetch, const struct lp_head *head)
{
    struct lp_span location = LP_SPAN("");
    struct lp_span next;
    struct lp_uri uri;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (lp_span_ieq(head->fields[i].name, LP_SPAN("location")))
            location = head->fields[i].value;
    bool keeps_method = head->status >= 307 || fetch->args.method == LP_METHOD_GET;
    if (!location.len || resolve(fetch, location, &next) || lp_uri_parse(next, &uri))
        refuse_redirect(fetch, head->status, "that is no address; check the URL", location);
    else if (!lp_uri_same_origin(&fetch->uri, &uri))
        refuse_redirect(fetch, head->status,
            "another origin, which is not followed, so that no credentials go there; give that "
            "address yourself if you trust it",
            location);
    else if (!keeps_method)
        refuse_redirect(fetch, head->status,
            "this status turns a POST into a GET and is not followed; give that address itself",
            location);
    else if (++fetch->redirects > LP_FETCH_REDIRECTS_MAX)
        refuse_redirect(fetch, head->status, "too many redirects; check the URL", location);
    else if (set_url(fetch, next))
        refuse_redirect(fetch, head->status, "that is no address; check the URL", location);
    else {
        lp_fetch_note(fetch, "follows the redirect");
        lp_fetch_conn_release(fetch, false);
        queue(fetch);
    }
}

/* --- the answer --- */

static struct lp_fetch *get(void *ctx, uint64_t tag)
{
    struct lp_fetcher *fetcher = ctx;
    return lp_slab_get(&fetcher->fetches, tag);
}

static void on_connected(void *ctx, uint64_t tag, lp_id link, int error)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)link;
    LP_ASSERT(fetch); /* who is cancelled closes the connection with it */
    if (!error) {
        send_request(fetch);
        return;
    }
    lp_fetch_conn_forget(fetch->fetcher, fetch->conn);
    fetch->conn = NULL;
    fail_with(fetch, error, LP_REASON_upstream_broke);
}

static void show_to_jar(struct lp_fetch *fetch, const struct lp_head *head)
{
    uint32_t from = 0;
    if (!fetch->args.jar || !fetch->is_own)
        return;
    for (const struct lp_field *field; (field = lp_head_find(head, LP_FIELD_SET_COOKIE, &from));) {
        struct lp_span name = LP_SPAN("");
        enum lp_jar_verdict verdict = lp_jar_store(
            fetch->args.jar, &fetch->uri, field->value, fetch->fetcher->wall_ms, &name);
        lp_fetch_note(fetch, "the cookie %.*s %s", (int)name.len, name.ptr, lp_jar_words(verdict));
    }
}

/* "timeout=5" of Keep-Alive: how long the server keeps the connection. */
static void learn_kept(struct lp_fetch_conn *conn, const struct lp_head *head)
{
    struct lp_span rest = lp_head_value(head, LP_FIELD_KEEP_ALIVE);
    while (rest.ptr) {
        struct lp_span value;
        uint64_t s;
        struct lp_span member = lp_span_trim(lp_span_split(rest, ',', &rest));
        struct lp_span name = lp_span_split(member, '=', &value);
        if (lp_span_ieq(name, LP_SPAN("timeout")) && lp_span_to_u64(value, &s))
            conn->kept_ms = s > LP_FETCH_KEPT_MS / 1000 ? LP_FETCH_KEPT_MS
                : s > 1                                 ? (uint32_t)(s - 1) * 1000
                                                        : 0;
    }
}

static void on_head(void *ctx, uint64_t tag, struct lp_stream s, const struct lp_head *head)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)s;
    LP_ASSERT(fetch);
    fetch->facts.head_us = fetch->fetcher->links.now_us;
    log_head(fetch, head, false);
    show_to_jar(fetch, head);
    learn_kept(fetch->conn, head);
    if (is_redirect(head->status)) {
        redirect(fetch, head);
        return;
    }
    fetch->state = LP_FETCH_IS_READING;
    set_deadline(fetch, (uint64_t)fetch->args.quiet_ms * 1000);
    fetch->args.ops->head(fetch->args.ctx, fetch->id, head);
}

static void on_body(void *ctx, uint64_t tag, struct lp_stream s, struct lp_span bytes)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)s;
    LP_ASSERT(fetch && fetch->state == LP_FETCH_IS_READING);
    fetch->body_received += bytes.len;
    if (fetch->args.quiet_ms)
        set_deadline(fetch, (uint64_t)fetch->args.quiet_ms * 1000);
    fetch->args.ops->body(fetch->args.ctx, fetch->id, bytes);
}

static void on_end(void *ctx, uint64_t tag, struct lp_stream s, bool whole)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)s;
    LP_ASSERT(fetch && fetch->state == LP_FETCH_IS_READING);
    const struct lp_fetch_ops *ops = fetch->args.ops;
    void *owner = fetch->args.ctx;
    lp_id id = fetch->id;
    lp_fetch_note(fetch, "the answer ended%s, %llu bytes of body", whole ? "" : " without framing",
        (unsigned long long)fetch->body_received);
    lp_fetch_conn_release(fetch, whole);
    lp_fetch_free(fetch);
    ops->end(owner, id, whole);
}

static bool may_repeat(const struct lp_fetch *fetch)
{
    bool is_harmless =
        fetch->args.may_repeat || !lp_link_has_written(&fetch->fetcher->links, fetch->stream);
    return fetch->state == LP_FETCH_IS_SENDING && fetch->facts.is_reused && !fetch->has_repeated &&
        is_harmless;
}

static void on_reset(void *ctx, uint64_t tag, struct lp_stream s, enum lp_reason why)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)s;
    if (!fetch || !fetch->conn)
        return;
    struct lp_fetch_conn *conn = fetch->conn;
    if (why == LP_REASON_upstream_broke && may_repeat(fetch)) {
        lp_fetch_note(fetch, "the kept connection was dead: sent again on a new one");
        fetch->conn = NULL;
        fetch->has_repeated = fetch->must_be_fresh = true;
        lp_fetch_conn_forget(fetch->fetcher, conn);
        queue(fetch);
        return;
    }
    fetch->conn = NULL;
    lp_fetch_conn_forget(fetch->fetcher, conn);
    fail_with(fetch, lp_fetch_error_of(why), why);
}

static void on_writable(void *ctx, uint64_t tag, struct lp_stream s)
{
    struct lp_fetch *fetch = get(ctx, tag);
    (void)s;
    if (fetch && fetch->conn)
        send_body(fetch);
}

static void on_closed(void *ctx, uint64_t tag, lp_id link, enum lp_reason why)
{
    struct lp_fetcher *fetcher = ctx;
    struct lp_fetch *fetch = get(ctx, tag);
    if (!fetch) {
        lp_fetch_conn_closed(fetcher, link);
        return;
    }
    /* It went between connecting and the request, or with the request already answered. */
    if (!fetch->conn || fetch->conn->link != link)
        return;
    lp_fetch_conn_forget(fetcher, fetch->conn);
    fetch->conn = NULL;
    fail_with(fetch, lp_fetch_error_of(why), why);
}

const struct lp_message_ops lp_fetch_message_ops = {
    .head = on_head,
    .body = on_body,
    .end = on_end,
    .writable = on_writable,
    .reset = on_reset,
    .connected = on_connected,
    .closed = on_closed,
};

/* --- start and stop --- */

static int check_fields(const struct lp_fetch_args *args)
{
    if (args->field_count > LP_FETCH_FIELDS_MAX)
        return LP_ELIMIT;
    for (uint32_t i = 0; i < args->field_count; i++)
        if (!lp_field_is_token(args->fields[i].name) || !lp_field_is_value(args->fields[i].value))
            return LP_ESYNTAX;
    return args->body.len > LP_FETCH_BODY_MAX ? LP_ELIMIT : LP_OK;
}

static int copy_args(struct lp_fetch *fetch, const struct lp_fetch_args *args)
{
    struct lp_arena *text = &fetch->text;
    size_t bytes = args->field_count * sizeof *args->fields;
    fetch->args = *args;
    fetch->args.fields = NULL;
    struct lp_target_field *fields = bytes ? lp_arena_alloc(text, bytes) : NULL;
    if (bytes && !fields)
        return LP_ENOMEM;
    int err = lp_arena_dup(text, args->body, &fetch->args.body);
    for (uint32_t i = 0; i < args->field_count && !err; i++) {
        err = lp_arena_dup(text, args->fields[i].name, &fields[i].name);
        if (!err)
            err = lp_arena_dup(text, args->fields[i].value, &fields[i].value);
    }
    fetch->args.fields = fields;
    if (!err)
        err = lp_arena_dup(text, args->what, &fetch->args.what);
    if (!err)
        err = lp_arena_dup(text, args->source, &fetch->args.source);
    if (!err)
        err = lp_arena_dup(
            text, args->url.len ? args->url : fetch->fetcher->target->url, &fetch->args.url);
    return err ? err : set_url(fetch, fetch->args.url);
}

int lp_fetch_start(struct lp_fetcher *fetcher, const struct lp_fetch_args *args, lp_id *ret_fetch)
{
    lp_id id;
    int err = check_fields(args);
    struct lp_fetch *fetch = err ? NULL : lp_slab_new(&fetcher->fetches, &id);
    if (!fetch)
        return err ? err : LP_ELIMIT;
    fetch->id = id;
    fetch->fetcher = fetcher;
    lp_list_init(&fetch->node);
    lp_arena_init(&fetch->text, LP_FETCH_BODY_MAX + TEXT_MAX);
    err = copy_args(fetch, args);
    if (err) {
        lp_fetch_free(fetch);
        return err;
    }
    if (!fetch->args.connect_ms)
        fetch->args.connect_ms = LP_FETCH_CONNECT_MS;
    if (!fetch->args.head_ms)
        fetch->args.head_ms = fetcher->target->timeout_ms;
    fetch->facts.number = ++fetcher->fetch_count;
    fetch->facts.started_us = fetcher->links.now_us;
    fetch->deadline.fire = on_deadline;
    fetch->deadline.ctx = fetch;
    set_deadline(fetch, (uint64_t)fetch->args.head_ms * 1000);
    queue(fetch);
    *ret_fetch = id;
    return LP_OK;
}

void lp_fetch_cancel(struct lp_fetcher *fetcher, lp_id id)
{
    struct lp_fetch *fetch = lp_slab_get(&fetcher->fetches, id);
    if (!fetch)
        return;
    lp_fetch_note(fetch, "broken off by us");
    lp_fetch_free(fetch);
}

void lp_fetch_pause(struct lp_fetcher *fetcher, lp_id id, bool is_paused)
{
    const struct lp_fetch *fetch = lp_slab_get(&fetcher->fetches, id);
    if (!fetch || fetch->state != LP_FETCH_IS_READING)
        return;
    if (is_paused)
        lp_link_pause(&fetcher->links, fetch->stream);
    else
        lp_link_resume(&fetcher->links, fetch->stream);
}

void lp_fetch_set_timeout(struct lp_fetcher *fetcher, lp_id id, uint32_t ms)
{
    struct lp_fetch *fetch = lp_slab_get(&fetcher->fetches, id);
    if (!fetch)
        return;
    if (fetch->state == LP_FETCH_IS_READING)
        fetch->args.quiet_ms = ms;
    set_deadline(fetch, (uint64_t)ms * 1000);
}

bool lp_fetch_facts(const struct lp_fetcher *fetcher, lp_id id, struct lp_fetch_facts *ret_facts)
{
    const struct lp_fetch *fetch = lp_slab_get(&fetcher->fetches, id);
    if (!fetch)
        return false;
    *ret_facts = fetch->facts;
    return true;
}
