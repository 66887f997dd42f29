/* `limpet demo`: three replicas and the gateway as processes of their own, a plain round robin and
 * the client on a loop of this one.
 *
 * Order: the children first (there are no threads yet), then the loop; the client goes through the
 * round robin, then through the gateway, and the two rows decide the exit status. Invariant: every
 * child started is ended on every way out. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"
#include "app/child.h"
#include "app/demo_screen.h"
#include "app/naive.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/signals.h"

enum {
    REPLICAS = 3,
    START_MS = 10000,
    RUN_US = 10000000,
    TRIES = 3,
    URL_MAX = 64,
    LP_TIMER_DEMO = 300,
};

static const char *const NAMES[REPLICAS] = {"A", "B", "C"};

static const struct lp_link_limits LIMITS = {
    .idle_us = 75000000, .request_us = 30000000, .stalled_us = 60000000};

struct demo {
    bool once;
    char dir[128]; /* key and log of the gateway; removed at the end */
    char key[160];
    char log[160];
    struct lp_child replicas[REPLICAS];
    char urls[REPLICAS][URL_MAX];
    uint16_t ports[REPLICAS];
    struct lp_child gateway;
    uint16_t gateway_port;

    struct lp_loop *loop;
    struct lp_listener *listener;
    struct lp_heap timers;
    struct lp_links links;
    struct lp_naive naive;
    struct lp_demo_client client;
    struct lp_timer deadline;
    struct lp_demo_row naive_row;
    struct lp_demo_row gateway_row;
    bool is_second; /* the client is on its way through the gateway */
    bool is_over;
    bool is_late;
    bool is_stopping;
    bool is_stopped;
    uint64_t timer_at_us;
};

/* --- children --- */

static int start_replica(struct demo *d, int i)
{
    const char *words[] = {"replica", "--listen", "127.0.0.1:0", "--name", NAMES[i], NULL};
    int err = lp_child_start(&d->replicas[i], words, NULL);
    if (!err)
        err = lp_child_await(&d->replicas[i], "listening on ", d->urls[i], URL_MAX, START_MS);
    unsigned port = 0;
    if (!err && sscanf(d->urls[i], "http://127.0.0.1:%u/mcp", &port) != 1)
        err = LP_ESYNTAX;
    d->ports[i] = (uint16_t)port;
    if (err)
        return lp_app_fail(
            LP_EXIT_FAILED, "replica %s did not start: %s", NAMES[i], lp_error_sentence(err));
    return LP_EXIT_OK;
}

static int open_loopback(uint16_t port, bool is_listener)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int err = is_listener ? bind(fd, (struct sockaddr *)&address, sizeof address)
                          : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (!err)
        return fd;
    (void)close(fd);
    return -1;
}

/* A port that was free a moment ago; 0: there is none. */
static uint16_t free_port(void)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    int fd = open_loopback(0, true);
    if (fd < 0)
        return 0;
    bool is_known = getsockname(fd, (struct sockaddr *)&address, &len) == 0;
    (void)close(fd);
    return is_known ? ntohs(address.sin_port) : 0;
}

static bool answers(uint16_t port)
{
    int fd = open_loopback(port, false);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* Starts it and waits until it answers; false when it ends instead. */
static bool try_gateway(struct demo *d)
{
    char listen[32];
    d->gateway_port = free_port();
    snprintf(listen, sizeof listen, "127.0.0.1:%u", d->gateway_port);
    const char *words[] = {"gateway", "--listen", listen, "--admin", "off", "--key-file", d->key,
        d->urls[0], d->urls[1], d->urls[2], NULL};
    if (lp_child_start(&d->gateway, words, d->log))
        return false;
    for (int waited_ms = 0; waited_ms < START_MS; waited_ms += 20) {
        if (lp_child_has_ended(&d->gateway))
            break;
        if (answers(d->gateway_port))
            return true;
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    lp_child_end(&d->gateway);
    return false;
}

static void copy_log_to_stderr(const char *path)
{
    char text[4096];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    fwrite(text, 1, n, stderr);
}

static int start_gateway(struct demo *d)
{
    for (int i = 0; i < TRIES; i++) /* another program may take the port in between */
        if (try_gateway(d))
            return LP_EXIT_OK;
    copy_log_to_stderr(d->log);
    return lp_app_fail(LP_EXIT_FAILED, "the gateway did not start; its words are above");
}

static int start_children(struct demo *d)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(d->dir, sizeof d->dir, "%s/limpet-demo-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (!mkdtemp(d->dir)) {
        d->dir[0] = '\0';
        return lp_app_fail(
            LP_EXIT_FAILED, "no folder for the demo could be made in %s", tmp ? tmp : "/tmp");
    }
    snprintf(d->key, sizeof d->key, "%s/key", d->dir);
    snprintf(d->log, sizeof d->log, "%s/log", d->dir);
    int status = LP_EXIT_OK;
    for (int i = 0; i < REPLICAS && status == LP_EXIT_OK; i++)
        status = start_replica(d, i);
    return status == LP_EXIT_OK ? start_gateway(d) : status;
}

static void end_children(struct demo *d)
{
    lp_child_end(&d->gateway);
    for (int i = 0; i < REPLICAS; i++)
        lp_child_end(&d->replicas[i]);
    if (d->dir[0]) {
        (void)unlink(d->key);
        (void)unlink(d->log);
        (void)rmdir(d->dir);
    }
}

/* --- the loop --- */

static void perform(struct demo *d, const struct lp_action *action)
{
    const struct lp_shell *shell = lp_loop_shell(d->loop);
    shell->perform(shell->ctx, action);
}

static char who_failed(void *ctx)
{
    const struct demo *d = ctx;
    return d->is_second ? '-' : NAMES[d->naive.last][0];
}

static void finish(struct demo *d)
{
    d->is_over = true;
    lp_heap_cancel(&d->timers, &d->deadline);
    if (d->once)
        d->is_stopping = true;
    else
        lp_demo_show_running(d->gateway_port, lp_listener_port(d->listener));
    d->is_stopping |= ferror(stdout) != 0;
}

static void on_row(void *ctx)
{
    struct demo *d = ctx;
    if (!d->is_second) {
        d->naive_row = d->client.row;
        lp_demo_show_naive(&d->naive_row);
        if (ferror(stdout)) { /* nobody reads: `limpet demo | head -1` */
            d->is_stopping = true;
            return;
        }
        d->is_second = true;
        lp_demo_client_fini(&d->client);
        lp_demo_client_start(&d->client, d->gateway_port);
        return;
    }
    d->gateway_row = d->client.row;
    lp_demo_show_gateway(&d->gateway_row);
    lp_demo_show_end();
    finish(d);
}

static void on_timer(struct demo *d, uint64_t now_us)
{
    d->timer_at_us = UINT64_MAX;
    for (struct lp_timer *timer; (timer = lp_heap_due(&d->timers, now_us));) {
        if (timer->kind == LP_TIMER_LINK) {
            lp_links_timer(&d->links, timer, now_us);
        } else {
            d->is_late = true;
            d->is_stopping = true;
        }
    }
}

static void settle(struct demo *d)
{
    lp_links_flush(&d->links);
    uint64_t next_us = lp_heap_next_us(&d->timers);
    if (next_us != d->timer_at_us) {
        struct lp_action timer = {.kind = LP_ACT_TIMER, .u.timer_at_us = next_us};
        d->timer_at_us = next_us;
        perform(d, &timer);
    }
    if (d->is_stopping && !d->is_stopped) {
        d->is_stopped = true;
        perform(d, &(struct lp_action){.kind = LP_ACT_STOPPED});
    }
}

static void on_event(void *ctx, const struct lp_event *event)
{
    struct demo *d = ctx;
    d->links.now_us = event->mono_us;
    switch (event->kind) {
    case LP_EV_ACCEPTED:
        if (lp_link_accept(&d->links, event, &lp_naive_ops, &d->naive))
            break; /* link has closed it */
        break;
    case LP_EV_CONNECTED:
    case LP_EV_CONNECT_FAILED:
    case LP_EV_READ:
    case LP_EV_EOF:
    case LP_EV_BROKEN:
    case LP_EV_DRAINED:
        lp_links_event(&d->links, event);
        break;
    case LP_EV_TIMER:
        on_timer(d, event->mono_us);
        break;
    case LP_EV_STOP:
        d->is_stopping = true;
        break;
    case LP_EV_CONFIG: /* the start signal, see run_loop */
        lp_demo_client_start(&d->client, lp_listener_port(d->listener));
        break;
    case LP_EV_MAIL:
    case LP_EV_STORE_REPLY:
    case LP_EV_LOOKED:
        break;
    }
    settle(d);
}

static int open_loop(struct demo *d)
{
    (void)lp_process_setup();
    d->loop = lp_loop_new(&(struct lp_loop_args){0});
    if (!d->loop)
        return LP_ENOMEM;
    lp_heap_init(&d->timers);
    d->timer_at_us = UINT64_MAX;
    d->deadline = (struct lp_timer){.kind = LP_TIMER_DEMO};
    int err = lp_links_init(&d->links, lp_loop_shell(d->loop), &d->timers, &LIMITS);
    if (err)
        return err;
    lp_naive_init(&d->naive, &d->links);
    d->naive.count = REPLICAS;
    memcpy(d->naive.ports, d->ports, sizeof d->ports);
    d->client.links = &d->links;
    d->client.ctx = d;
    d->client.done = on_row;
    d->client.who_failed = who_failed;
    lp_loop_attach(d->loop, d, on_event);
    lp_loops_join(&d->loop, 1);
    err = lp_signals_open(d->loop, &(struct lp_signals_args){0});
    return err ? err : lp_heap_set(&d->timers, &d->deadline, lp_clock_mono_us() + RUN_US);
}

static int open_listener(struct demo *d)
{
    struct lp_listener_args args = {.host = LP_SPAN("127.0.0.1")};
    struct lp_buf why;
    lp_buf_init(&why, 1024);
    int err = lp_listener_open(&args, &d->loop, 1, &why, &d->listener);
    lp_buf_release(&why);
    return err;
}

/* The client's first step is taken within an event, like all else: the loop's one event that comes
 * from outside and carries no meaning here is used for that. */
static int run_loop(struct demo *d)
{
    int err = open_loop(d);
    if (!err)
        err = open_listener(d);
    if (!err)
        err = lp_loop_config(d->loop, NULL);
    if (err)
        return lp_app_cannot_start(err);
    lp_demo_show_intro();
    lp_loop_run(d->loop);
    return LP_EXIT_OK;
}

static void close_loop(struct demo *d)
{
    lp_demo_client_fini(&d->client);
    if (d->links.head)
        lp_links_fini(&d->links);
    lp_naive_fini(&d->naive);
    lp_heap_fini(&d->timers);
    lp_loop_free(d->loop);
    lp_listener_free(d->listener);
}

/* --- the verdict --- */

static int judge(const struct demo *d)
{
    const struct lp_demo_row *naive = &d->naive_row;
    const struct lp_demo_row *gateway = &d->gateway_row;
    if (d->is_late)
        return lp_app_fail(
            LP_EXIT_FAILED, "the demo took longer than %d s and was ended", RUN_US / 1000000);
    if (ferror(stdout))
        return LP_EXIT_OK; /* main.c says that the output is lost, and fails */
    if (!d->is_over)
        return lp_app_fail(LP_EXIT_FAILED, "the demo was interrupted");
    if (!naive->answered || naive->answered == LP_DEMO_CALLS)
        return lp_app_fail(
            LP_EXIT_FAILED, "the round robin was expected to answer some calls and lose some");
    bool is_one = strspn(gateway->replica, (char[2]){gateway->replica[0], '\0'}) == LP_DEMO_CALLS;
    if (gateway->answered != LP_DEMO_CALLS || !is_one || gateway->last_count != LP_DEMO_CALLS) {
        copy_log_to_stderr(d->log);
        return lp_app_fail(
            LP_EXIT_FAILED, "the gateway was expected to answer every call by one replica");
    }
    return LP_EXIT_OK;
}

static int run(int argc, const char *const *argv)
{
    static struct demo demo; /* large, and there is one */
    const char *words[LP_WORDS_MAX + 1];
    const struct lp_option options[] = {{"--once", NULL, &demo.once, NULL}};
    int status = lp_options_read(options, 1, argc, argv, words);
    if (status == LP_EXIT_OK && words[0])
        status = lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", words[0]);
    if (status != LP_EXIT_OK)
        return status;
    status = start_children(&demo);
    if (status == LP_EXIT_OK) {
        status = run_loop(&demo);
        if (status == LP_EXIT_OK)
            status = judge(&demo);
        close_loop(&demo);
    }
    end_children(&demo);
    return status;
}

static int help(struct lp_buf *out)
{
    return lp_app_text(out,
        "Usage: limpet demo [--once]\n"
        "\n"
        "Starts three replicas of a sample MCP server on this machine and sends 12 calls\n"
        "of one session to them: first through a plain round robin, which loses most of\n"
        "them, then through limpet gateway, which does not. Then all of it goes on\n"
        "running, for you to try, until Ctrl-C.\n"
        "\n"
        "  --once  end by itself; exit status 0 only if the round robin lost calls and\n"
        "          the gateway lost none\n"
        "\n"
        "Example:\n"
        "  limpet demo --once\n");
}

const struct lp_command lp_command_demo = {
    .name = "demo",
    .summary = "see in one screen what goes wrong without it, and right with it",
    .run = run,
    .help = help,
};
