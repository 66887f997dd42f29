/* Connections: buffers, pausing, deadlines and death; the meaning of the bytes is the codec's.
 *
 * Output gathers in `out` and leaves in one write at lp_links_flush; what the shell does not take
 * at once moves to `draining`, which must not move in memory until the shell says it is taken.
 * Input that the codec cannot take waits in `held`, and reading stops when that is full. A link
 * that dies keeps its memory until the end of the event, because callers are on the stack.
 * Invariant: at most one DRAIN is out, and `out` is never written before `draining` is empty. */
#include "link/link_priv.h"

#include <stdlib.h>

#include "base/error.h"

enum { LINKS_MAX = 1 << 20, DRAIN_SLICE = 16384, DIRECT_MIN = 4096, SPARE_MAX = 4096 };

static int64_t perform(struct lp_links *links, const struct lp_action *action)
{
    return links->shell->perform(links->shell->ctx, action);
}

int lp_links_init(struct lp_links *links, const struct lp_shell *shell, struct lp_heap *timers,
    const struct lp_link_limits *limits)
{
    *links = (struct lp_links){.shell = shell, .timers = timers, .limits = *limits};
    lp_slab_init(&links->slab, sizeof(struct lp_link), LINKS_MAX);
    lp_list_init(&links->dirty);
    lp_list_init(&links->dying);
    lp_buf_init(&links->spare, LP_LINK_OUT_MAX);
    links->head = calloc(1, sizeof *links->head);
    return links->head ? LP_OK : LP_ENOMEM;
}

struct lp_link *lp_link_get(const struct lp_links *links, lp_id id)
{
    struct lp_link *link = lp_slab_get(&links->slab, id);
    return link && link->state != LP_LINK_DEAD ? link : NULL;
}

static void free_link(struct lp_links *links, struct lp_link *link)
{
    link->codec->release(link);
    lp_buf_release(&link->out);
    lp_buf_release(&link->draining);
    lp_buf_release(&link->held);
    lp_list_remove(&link->dirty);
    lp_slab_free(&links->slab, link->id);
}

void lp_links_fini(struct lp_links *links)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_link *link; (link = lp_slab_next(&links->slab, &cursor, &id));) {
        if (link->state != LP_LINK_DEAD)
            lp_link_kill(links, link, LP_CLOSE_NOW);
        free_link(links, link);
    }
    lp_slab_fini(&links->slab);
    lp_buf_release(&links->spare);
    free(links->by_conn);
    free(links->head);
    links->by_conn = NULL;
    links->head = NULL;
    links->by_conn_count = 0;
}

/* --- birth and death --- */

static int remember_conn(struct lp_links *links, lp_id conn, lp_id link)
{
    uint32_t slot = lp_id_slot(conn);
    if (slot >= links->by_conn_count) {
        uint32_t count = links->by_conn_count ? links->by_conn_count : 64;
        while (count <= slot)
            count *= 2;
        lp_id *grown = realloc(links->by_conn, count * sizeof *grown);
        if (!grown)
            return LP_ENOMEM;
        memset(grown + links->by_conn_count, 0, (count - links->by_conn_count) * sizeof *grown);
        links->by_conn = grown;
        links->by_conn_count = count;
    }
    links->by_conn[slot] = link;
    return LP_OK;
}

static struct lp_link *link_of_conn(struct lp_links *links, lp_id conn)
{
    uint32_t slot = lp_id_slot(conn);
    struct lp_link *link =
        slot < links->by_conn_count ? lp_link_get(links, links->by_conn[slot]) : NULL;
    return link && link->conn == conn ? link : NULL;
}

static void close_conn(struct lp_links *links, lp_id conn, enum lp_close_how how)
{
    struct lp_action action = {.kind = LP_ACT_CLOSE, .conn = conn, .u.close = how};
    perform(links, &action);
}

static struct lp_link *new_link(struct lp_links *links, const struct lp_message_ops *ops, void *ctx)
{
    lp_id id;
    struct lp_link *link = lp_slab_new(&links->slab, &id);
    if (!link)
        return NULL;
    link->id = id;
    link->ops = ops;
    link->ctx = ctx;
    link->codec = &lp_h1_codec;
    link->stalled_us = links->limits.stalled_us;
    link->wrote_us = links->now_us;
    link->timer = (struct lp_timer){.kind = LP_TIMER_LINK, .owner = id};
    lp_buf_init(&link->out, LP_LINK_OUT_MAX);
    lp_buf_init(&link->draining, LP_LINK_OUT_MAX);
    lp_buf_init(&link->held, LP_LINK_HELD_MAX);
    lp_list_init(&link->dirty);
    return link;
}

int lp_link_accept(struct lp_links *links, const struct lp_event *accepted,
    const struct lp_message_ops *ops, void *ctx)
{
    const struct lp_conn_facts *facts = &accepted->u.accepted;
    links->now_us = accepted->mono_us;
    struct lp_link *link = new_link(links, ops, ctx);
    if (link && remember_conn(links, accepted->conn, link->id)) {
        lp_slab_free(&links->slab, link->id);
        link = NULL;
    }
    if (!link) {
        close_conn(links, accepted->conn, LP_CLOSE_NOW);
        return LP_ENOMEM;
    }
    link->conn = accepted->conn;
    link->state = LP_LINK_OPEN;
    link->is_client = true;
    link->facts =
        (struct lp_link_facts){facts->listener, facts->is_admin, facts->is_loopback, facts->is_tls};
    size_t peer_len = facts->peer.len < LP_LINK_PEER_MAX ? facts->peer.len : LP_LINK_PEER_MAX;
    if (peer_len)
        memcpy(link->peer, facts->peer.ptr, peer_len);
    link->peer_len = (uint8_t)peer_len;
    links->client_count++;
    links->admin_count += facts->is_admin;
    link->codec->start(links, link);
    lp_link_rearm(links, link);
    return LP_OK;
}

int lp_link_open(struct lp_links *links, const struct lp_endpoint *to,
    const struct lp_message_ops *ops, void *ctx, lp_id *ret)
{
    struct lp_link *link = new_link(links, ops, ctx);
    if (!link)
        return LP_ENOMEM;
    struct lp_action action = {.kind = LP_ACT_CONNECT, .u.connect = *to};
    int64_t conn = perform(links, &action);
    int err = conn < 0 ? (int)conn : remember_conn(links, (lp_id)conn, link->id);
    if (err) {
        if (conn > 0)
            close_conn(links, (lp_id)conn, LP_CLOSE_NOW);
        lp_slab_free(&links->slab, link->id);
        return err;
    }
    link->conn = (lp_id)conn;
    link->state = LP_LINK_CONNECTING;
    link->codec->start(links, link);
    *ret = link->id;
    return LP_OK;
}

/* The connection is already gone at the shell, or is closed by the caller. */
static void bury(struct lp_links *links, struct lp_link *link)
{
    LP_ASSERT(link->state != LP_LINK_DEAD);
    link->state = LP_LINK_DEAD;
    links->by_conn[lp_id_slot(link->conn)] = 0;
    lp_heap_cancel(links->timers, &link->timer);
    if (link->is_client) {
        links->client_count--;
        links->admin_count -= link->facts.is_admin;
    }
    lp_list_remove(&link->dirty);
    lp_list_push_back(&links->dying, &link->dirty);
}

void lp_link_kill(struct lp_links *links, struct lp_link *link, enum lp_close_how how)
{
    close_conn(links, link->conn, how);
    bury(links, link);
}

void lp_link_close(struct lp_links *links, lp_id id, enum lp_close_how how)
{
    struct lp_link *link = lp_link_get(links, id);
    if (link)
        lp_link_kill(links, link, how);
}

/* --- output --- */

size_t lp_link_waiting(const struct lp_link *link)
{
    return link->out.len + link->draining.len;
}

static void mark_dirty(struct lp_links *links, struct lp_link *link)
{
    if (lp_list_empty(&link->dirty))
        lp_list_push_back(&links->dirty, &link->dirty);
}

void lp_link_overflow(struct lp_links *links, struct lp_link *link)
{
    lp_link_kill(links, link, LP_CLOSE_RESET);
    link->is_lost = true;
}

struct lp_buf *lp_link_out_buf(struct lp_links *links, struct lp_link *link)
{
    if (!link->out.ptr) {
        link->out = links->spare;
        lp_buf_init(&links->spare, LP_LINK_OUT_MAX);
    }
    mark_dirty(links, link);
    return &link->out;
}

/* Output that was written whole, and most is: its memory is used for the next one. */
static void drop_out(struct lp_links *links, struct lp_link *link)
{
    if (!links->spare.ptr && link->out.cap <= SPARE_MAX) {
        lp_buf_clear(&link->out);
        links->spare = link->out;
        lp_buf_init(&link->out, LP_LINK_OUT_MAX);
    }
    lp_buf_release(&link->out);
}

void lp_link_out(struct lp_links *links, struct lp_link *link, struct lp_span bytes)
{
    if (link->state == LP_LINK_DEAD || !bytes.len)
        return;
    if (lp_buf_append(lp_link_out_buf(links, link), bytes))
        lp_link_overflow(links, link);
}

/* How many bytes the shell took of the parts; negative when the connection broke (BROKEN comes). */
static int64_t write_parts(
    struct lp_links *links, struct lp_link *link, const struct lp_span *parts, uint32_t count)
{
    struct lp_action action = {.kind = LP_ACT_WRITE, .conn = link->conn, .u.write = {parts, count}};
    int64_t taken = perform(links, &action);
    if (taken > 0) {
        link->wrote = true;
        link->wrote_us = links->now_us;
    }
    return taken;
}

static void start_drain(struct lp_links *links, struct lp_link *link)
{
    struct lp_span waiting = lp_buf_span(&link->draining);
    if (waiting.len > DRAIN_SLICE)
        waiting.len = DRAIN_SLICE;
    struct lp_action action = {.kind = LP_ACT_DRAIN, .conn = link->conn, .u.drain = waiting};
    link->draining_out = true;
    link->wrote = true;             /* it may go out at any time, whenever the shell says so */
    link->wrote_us = links->now_us; /* the peer begins to be slow now, not when it last was quick */
    perform(links, &action);
    lp_link_rearm(links, link);
}

/* Writes `out`; what is left goes to the shell as a drain. */
static void write_out(struct lp_links *links, struct lp_link *link)
{
    if (link->state == LP_LINK_CONNECTING || link->draining_out)
        return;
    if (!link->out.len) {
        drop_out(links, link);
        return;
    }
    struct lp_span part = lp_buf_span(&link->out);
    int64_t taken = write_parts(links, link, &part, 1);
    if (taken < 0) {
        lp_buf_release(&link->out);
        return;
    }
    lp_buf_consume(&link->out, (size_t)taken);
    if (!link->out.len) {
        drop_out(links, link);
        return;
    }
    struct lp_buf empty = link->draining;
    link->draining = link->out;
    link->out = empty;
    start_drain(links, link);
}

void lp_link_out_large(struct lp_links *links, struct lp_link *link, const struct lp_span parts[3])
{
    size_t total = parts[0].len + parts[1].len + parts[2].len;
    bool can_write = link->state == LP_LINK_OPEN && !link->draining_out;
    if (total < DIRECT_MIN || !can_write) {
        for (int i = 0; i < 3; i++)
            lp_link_out(links, link, parts[i]);
        return;
    }
    struct lp_span all[4] = {lp_buf_span(&link->out), parts[0], parts[1], parts[2]};
    int64_t taken = write_parts(links, link, all, 4);
    if (taken < 0)
        return;
    size_t left = (size_t)taken;
    size_t from_out = left < link->out.len ? left : link->out.len;
    lp_buf_consume(&link->out, from_out);
    left -= from_out;
    for (int i = 0; i < 3; i++) {
        size_t skip = left < parts[i].len ? left : parts[i].len;
        left -= skip;
        lp_link_out(links, link, lp_span_from(parts[i], skip));
    }
}

static void finish_if_written(struct lp_links *links, struct lp_link *link)
{
    if (link->state == LP_LINK_CLOSING && !lp_link_waiting(link))
        lp_link_kill(links, link, link->close_how);
}

static void give_credit(struct lp_links *links, struct lp_link *link)
{
    if (lp_link_waiting(link) <= LP_LINK_LOW_WATER)
        link->codec->credit(links, link);
}

static void on_drained(struct lp_links *links, struct lp_link *link)
{
    size_t slice = link->draining.len < DRAIN_SLICE ? link->draining.len : DRAIN_SLICE;
    lp_buf_consume(&link->draining, slice);
    link->draining_out = false;
    link->wrote = true;
    link->wrote_us = links->now_us;
    if (link->draining.len) {
        start_drain(links, link);
    } else {
        lp_buf_release(&link->draining);
        mark_dirty(links, link);
    }
    give_credit(links, link);
}

void lp_link_finish(struct lp_links *links, struct lp_link *link, enum lp_close_how how)
{
    if (link->state == LP_LINK_DEAD)
        return;
    link->state = LP_LINK_CLOSING;
    link->close_how = how;
    lp_buf_release(&link->held);
    mark_dirty(links, link);
}

void lp_link_go_on_later(struct lp_links *links, struct lp_link *link)
{
    if (link->state != LP_LINK_OPEN)
        return;
    link->go_on_due = true;
    mark_dirty(links, link);
}

static void go_on(struct lp_links *links, struct lp_link *link);

static void flush_dirty(struct lp_links *links)
{
    while (!lp_list_empty(&links->dirty)) {
        struct lp_link *link = LP_CONTAINER(links->dirty.next, struct lp_link, dirty);
        lp_list_remove(&link->dirty);
        write_out(links, link);
        finish_if_written(links, link);
        if (link->state == LP_LINK_OPEN)
            give_credit(links, link);
        if (link->go_on_due && link->state == LP_LINK_OPEN)
            go_on(links, link);
    }
}

static void bury_dying(struct lp_links *links)
{
    while (!lp_list_empty(&links->dying)) {
        struct lp_link *link = LP_CONTAINER(links->dying.next, struct lp_link, dirty);
        bool is_lost = link->is_lost;
        link->is_lost = false;
        if (is_lost)
            link->codec->lost(links, link, LP_REASON_out_of_memory);
        else
            free_link(links, link);
    }
}

void lp_links_flush(struct lp_links *links)
{
    do {
        flush_dirty(links);
        bury_dying(links);
    } while (!lp_list_empty(&links->dirty));
}

/* --- input --- */

void lp_link_reading(struct lp_links *links, struct lp_link *link, bool on)
{
    if (link->reading_off == !on || link->state != LP_LINK_OPEN)
        return;
    link->reading_off = !on;
    struct lp_action action = {.kind = on ? LP_ACT_READ_ON : LP_ACT_READ_OFF, .conn = link->conn};
    perform(links, &action);
}

static void hold(struct lp_links *links, struct lp_link *link, struct lp_span rest)
{
    if (!rest.len)
        return;
    int err = lp_buf_append(&link->held, rest);
    if (err) {
        enum lp_reason why =
            err == LP_ENOMEM ? LP_REASON_out_of_memory : LP_REASON_client_sent_more;
        lp_link_kill(links, link, LP_CLOSE_RESET);
        link->codec->lost(links, link, why);
        return;
    }
    /* One more read of at most 64 KiB still fits when reading stops here. */
    if (link->held.len >= LP_LINK_HELD_MAX / 2)
        lp_link_reading(links, link, false);
}

static void on_read(struct lp_links *links, struct lp_link *link, struct lp_span bytes)
{
    if (link->state == LP_LINK_CLOSING)
        return;
    if (link->held.len) {
        hold(links, link, bytes);
        lp_link_go_on_later(links, link);
        return;
    }
    size_t taken = link->codec->input(links, link, bytes);
    if (link->state == LP_LINK_OPEN)
        hold(links, link, lp_span_from(bytes, taken));
}

static void go_on(struct lp_links *links, struct lp_link *link)
{
    link->go_on_due = false;
    /* Once at least: the end of a message may be due though its last byte was taken before a pause.
     */
    size_t taken;
    do {
        taken = link->codec->input(links, link, lp_buf_span(&link->held));
        if (link->state != LP_LINK_OPEN)
            return;
        lp_buf_consume(&link->held, taken);
    } while (link->held.len && taken);
    if (!link->held.len)
        lp_buf_release(&link->held);
    if (link->held.len < LP_LINK_HELD_MAX / 2 && !link->h1.paused)
        lp_link_reading(links, link, true);
    if (link->eof && !link->held.len && !link->h1.paused)
        link->codec->eof(links, link);
}

static void on_eof(struct lp_links *links, struct lp_link *link)
{
    link->eof = true;
    if (link->state == LP_LINK_CLOSING)
        return;
    /* While it is paused the end of the message may be due, though all its bytes were taken. */
    if (!link->held.len && !link->h1.paused)
        link->codec->eof(links, link);
}

static void on_connected(struct lp_links *links, struct lp_link *link)
{
    link->state = LP_LINK_OPEN;
    link->wrote_us = links->now_us;
    link->ops->connected(link->ctx, link->tag, link->id, LP_OK);
    if (link->state == LP_LINK_OPEN && link->out.len)
        mark_dirty(links, link);
}

void lp_links_event(struct lp_links *links, const struct lp_event *event)
{
    links->now_us = event->mono_us;
    struct lp_link *link = link_of_conn(links, event->conn);
    if (!link)
        return;
    switch (event->kind) {
    case LP_EV_CONNECTED:
        on_connected(links, link);
        break;
    case LP_EV_CONNECT_FAILED:
        bury(links, link);
        link->ops->connected(link->ctx, link->tag, link->id, event->u.error);
        break;
    case LP_EV_READ:
        on_read(links, link, event->u.bytes);
        break;
    case LP_EV_EOF:
        on_eof(links, link);
        break;
    case LP_EV_BROKEN:
        bury(links, link);
        link->codec->lost(links, link, LP_REASON_client_left);
        break;
    case LP_EV_DRAINED:
        on_drained(links, link);
        break;
    case LP_EV_ACCEPTED:
    case LP_EV_TIMER:
    case LP_EV_MAIL:
    case LP_EV_STORE_REPLY:
    case LP_EV_LOOKED:
    case LP_EV_CONFIG:
    case LP_EV_STOP:
        LP_UNREACHABLE();
    }
}

/* --- deadlines --- */

static uint64_t deadline_us(const struct lp_links *links, const struct lp_link *link)
{
    uint64_t at = link->state == LP_LINK_OPEN ? link->codec->deadline_us(links, link) : UINT64_MAX;
    if (link->draining_out && link->wrote_us + link->stalled_us < at)
        at = link->wrote_us + link->stalled_us;
    return at;
}

/* Deadlines move with nearly every byte, so a timer that is set too early is left alone: it finds
 * out when it fires. */
void lp_link_rearm(struct lp_links *links, struct lp_link *link)
{
    if (link->state == LP_LINK_DEAD)
        return;
    uint64_t at = deadline_us(links, link);
    if (at == UINT64_MAX || (link->timer.index && link->timer.at_us <= at))
        return;
    if (lp_heap_set(links->timers, &link->timer, at))
        lp_link_overflow(links, link);
}

void lp_links_timer(struct lp_links *links, struct lp_timer *timer, uint64_t now_us)
{
    links->now_us = now_us;
    struct lp_link *link = lp_link_get(links, timer->owner);
    if (!link)
        return;
    if (deadline_us(links, link) > now_us) {
        lp_link_rearm(links, link);
        return;
    }
    if (link->draining_out && link->wrote_us + link->stalled_us <= now_us) {
        lp_link_kill(links, link, LP_CLOSE_RESET);
        link->codec->lost(links, link, LP_REASON_reader_stalled);
        return;
    }
    link->codec->timeout(links, link);
    lp_link_rearm(links, link);
}

void lp_links_cut(struct lp_links *links)
{
    uint32_t cursor = 0;
    lp_id id;
    for (struct lp_link *link; (link = lp_slab_next(&links->slab, &cursor, &id));)
        if (link->is_client && link->state != LP_LINK_DEAD)
            lp_link_kill(links, link, LP_CLOSE_RESET);
}

/* --- small questions --- */

void lp_link_set_tag(struct lp_links *links, lp_id id, uint64_t tag)
{
    struct lp_link *link = lp_link_get(links, id);
    if (link)
        link->tag = tag;
}

struct lp_span lp_link_peer(const struct lp_links *links, lp_id id)
{
    const struct lp_link *link = lp_slab_get(&links->slab, id);
    return link ? lp_span(link->peer, link->peer_len) : LP_SPAN("");
}

struct lp_link_facts lp_link_facts(const struct lp_links *links, lp_id id)
{
    const struct lp_link *link = lp_slab_get(&links->slab, id);
    return link ? link->facts : (struct lp_link_facts){0};
}
