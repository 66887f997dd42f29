/* One server (store/store_priv.h): connecting, being lost, coming back. A server that was up for a
 * while is tried again at once when its connection ends; else pauses of 100 ms, 200 ms, ... 2 s lie
 * between two attempts, with no chance in them. While there is no cluster, one node goes through
 * the URL's hosts in turn. */
#include "base/error.h"
#include "store/store_priv.h"

int lp_store_node_init(
    struct lp_store_node *node, struct lp_store *store, const struct lp_store_address *address)
{
    *node = (struct lp_store_node){
        .store = store, .address = *address, .timer = {.kind = LP_TIMER_STORE_NODE}};
    lp_list_init(&node->waiting);
    lp_list_init(&node->sent);
    lp_list_init(&node->held);
    size_t out_max = store->args.bytes_max + 2 * LP_STORE_OUT_SOFT;
    for (uint32_t i = 0; i < store->args.script_count; i++)
        out_max += 2 * store->args.scripts[i].len;
    lp_buf_init(&node->out, out_max);
    lp_buf_init(&node->draining, out_max);
    lp_store_reader_init(&node->reader, store->args.reply_max);
    /* Once on the heap it can be moved there, and set again right after it was due. */
    return lp_heap_set(store->timers, &node->timer, UINT64_MAX);
}

void lp_store_node_alarm(struct lp_store_node *node, uint64_t at_us)
{
    LP_ASSERT(lp_heap_set(node->store->timers, &node->timer, at_us) == LP_OK);
}

bool lp_store_node_is_idle(const struct lp_store_node *node)
{
    return lp_list_empty(&node->waiting) && lp_list_empty(&node->sent) &&
        lp_list_empty(&node->held);
}

static void close_conn(struct lp_store_node *node)
{
    const struct lp_shell *shell = node->store->shell;
    if (node->conn) {
        struct lp_action action = {
            .kind = LP_ACT_CLOSE, .conn = node->conn, .u.close = LP_CLOSE_NOW};
        shell->perform(shell->ctx, &action);
    }
    node->conn = 0;
}

/* What belongs to a connection and not to the server. */
static void reset_conn(struct lp_store_node *node)
{
    close_conn(node);
    lp_buf_release(&node->out);
    lp_buf_release(&node->draining);
    lp_store_reader_reset(&node->reader);
    node->is_draining = false;
    node->is_leaving = false;
    node->is_asked = false;
    node->put = 0;
    node->taken = 0;
}

void lp_store_node_fini(struct lp_store_node *node)
{
    reset_conn(node);
    lp_heap_cancel(node->store->timers, &node->timer);
}

/* --- losing --- */

static void cut_commands(struct lp_store_node *node)
{
    struct lp_store *store = node->store;
    while (!lp_list_empty(&node->held))
        lp_store_command_cut(
            store, LP_CONTAINER(node->held.next, struct lp_store_command, link), true);
    while (!lp_list_empty(&node->sent)) {
        struct lp_store_command *command =
            LP_CONTAINER(node->sent.next, struct lp_store_command, link);
        lp_store_command_cut(store, command, command->end <= node->taken);
    }
    while (!lp_list_empty(&node->waiting))
        lp_store_command_park(
            LP_CONTAINER(node->waiting.next, struct lp_store_command, link), store);
}

static uint64_t pause_us(struct lp_store_node *node)
{
    uint64_t pause = (uint64_t)LP_STORE_BACKOFF_US << node->step;
    if (pause >= LP_STORE_BACKOFF_MAX_US)
        return LP_STORE_BACKOFF_MAX_US;
    node->step++;
    return pause;
}

/* The next of the URL's hosts; true when there is one that was not tried since the last pause. */
static bool turn_seed(struct lp_store_node *node)
{
    struct lp_store *store = node->store;
    if (node->is_channels || store->shape == LP_SHAPE_CLUSTER)
        return false;
    store->seed = (store->seed + 1) % store->url.seed_count;
    node->address = store->url.seeds[store->seed];
    return store->seed != 0;
}

static void choose_next_attempt(struct lp_store_node *node, bool was_steady, bool is_wrong_one)
{
    if (was_steady)
        node->step = 0;
    bool is_at_once = was_steady;
    if (!was_steady || is_wrong_one)
        is_at_once |= turn_seed(node);
    node->state = is_at_once ? LP_NODE_IDLE : LP_NODE_AWAY;
    lp_store_node_alarm(node, is_at_once ? UINT64_MAX : node->store->now_us + pause_us(node));
}

void lp_store_node_lose(struct lp_store_node *node, enum lp_store_trouble trouble)
{
    struct lp_store *store = node->store;
    bool was_up = node->state == LP_NODE_UP;
    bool was_steady = was_up && store->now_us - node->up_us >= LP_STORE_STEADY_US;
    if (!node->is_channels)
        lp_store_note_trouble(store, node, trouble);
    if (!node->away_us)
        node->away_us = store->now_us;
    cut_commands(node);
    reset_conn(node);
    choose_next_attempt(node, was_steady, trouble == LP_TROUBLE_READONLY);
    store->is_retry_due = true;
    if (store->shape == LP_SHAPE_CLUSTER && !node->is_channels)
        lp_store_slots_want(store, NULL);
}

/* --- coming back --- */

static enum lp_store_trouble trouble_of(int error)
{
    switch (error) {
    case LP_EREFUSED:
        return LP_TROUBLE_REFUSED;
    case LP_ETIMEOUT:
        return LP_TROUBLE_TIMEOUT;
    case LP_EUNREACHABLE:
        return LP_TROUBLE_UNREACHABLE;
    case LP_ENOT_FOUND:
        return LP_TROUBLE_NO_NAME;
    case LP_ENOMEM:
        return LP_TROUBLE_MEMORY;
    case LP_EUNSUPPORTED:
    case LP_ETLS:
    case LP_ETLS_UNTRUSTED:
    case LP_ETLS_NAME:
    case LP_ETLS_EXPIRED:
        return LP_TROUBLE_TLS;
    default:
        return LP_TROUBLE_BROKEN;
    }
}

void lp_store_node_connect(struct lp_store_node *node)
{
    const struct lp_store *store = node->store;
    const struct lp_store_address *to = &node->address;
    struct lp_action action = {.kind = LP_ACT_CONNECT,
        .u.connect = {.kind = to->is_unix ? LP_EP_UNIX : LP_EP_TCP,
            .is_tls = store->url.is_tls,
            .host = lp_span(to->host, to->host_len),
            .port = to->port,
            .timeout_ms = store->args.connect_ms}};
    int64_t conn = store->shell->perform(store->shell->ctx, &action);
    if (conn <= 0) {
        lp_store_node_lose(node, trouble_of((int)conn));
        return;
    }
    node->conn = (lp_id)conn;
    node->state = LP_NODE_CONNECTING;
    lp_store_node_alarm(node, UINT64_MAX);
}

static void on_connected(struct lp_store_node *node)
{
    node->state = LP_NODE_GREETING;
    node->read_us = node->store->now_us;
    lp_store_node_alarm(node, node->store->now_us + (uint64_t)node->store->args.connect_ms * 1000);
    if (lp_store_greet(node))
        lp_store_node_lose(node, LP_TROUBLE_MEMORY);
}

void lp_store_node_up(struct lp_store_node *node)
{
    node->state = LP_NODE_UP;
    node->up_us = node->store->now_us;
    node->used_us = node->store->now_us;
    node->away_us = 0;
    node->store->is_retry_due = true;
    lp_store_node_alarm(node, node->store->now_us + LP_STORE_QUIET_US);
    if (node->is_channels)
        lp_store_channels_up(node->store);
}

/* Nothing was heard for a while: asked, and if it is asked already, lost. */
static void on_quiet(struct lp_store_node *node)
{
    if (node->is_asked) {
        lp_store_node_lose(node, LP_TROUBLE_TIMEOUT);
        return;
    }
    lp_store_node_alarm(node, node->store->now_us + LP_STORE_QUIET_US);
    if (node->store->now_us - node->read_us < LP_STORE_QUIET_US)
        return;
    uint64_t used_us = node->used_us; /* this is no use of it */
    node->is_asked = true;
    if (LP_STORE_INNER(node, LP_COMMAND_STILL_THERE, 0, LP_SPAN("PING")))
        lp_store_node_lose(node, LP_TROUBLE_MEMORY);
    node->used_us = used_us;
}

void lp_store_node_timer(struct lp_store_node *node)
{
    lp_store_node_alarm(node, UINT64_MAX);
    if (node->state == LP_NODE_AWAY)
        node->state = LP_NODE_IDLE; /* the flush connects what is wanted */
    else if (node->state == LP_NODE_GREETING)
        lp_store_node_lose(node, LP_TROUBLE_TIMEOUT);
    else if (node->state == LP_NODE_UP)
        on_quiet(node);
}

void lp_store_node_event(struct lp_store_node *node, const struct lp_event *event)
{
    switch (event->kind) {
    case LP_EV_CONNECTED:
        on_connected(node);
        break;
    case LP_EV_CONNECT_FAILED:
        node->conn = 0;
        lp_store_node_lose(node, trouble_of(event->u.error));
        break;
    case LP_EV_READ:
        lp_store_pipe_read(node, event->u.bytes);
        break;
    case LP_EV_DRAINED:
        lp_store_pipe_drained(node);
        break;
    case LP_EV_BROKEN:
        node->conn = 0;
        lp_store_node_lose(node, LP_TROUBLE_BROKEN);
        break;
    case LP_EV_EOF:
        lp_store_node_lose(node, LP_TROUBLE_BROKEN);
        break;
    default:
        break;
    }
}
