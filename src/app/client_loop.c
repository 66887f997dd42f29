/* The frame of a client command (app/client_loop.h): everything is opened here in one order and
 * closed in the other. */
#include "app/client_loop.h"

#include "io/file.h"
#include "io/signals.h"
#include "io/tls_trust.h"

enum { WHY_MAX = 4096 };

static void on_event(void *ctx, const struct lp_event *event)
{
    struct lp_client_loop *loop = ctx;
    lp_fetcher_event(loop->fetcher, event); /* first: it has the clock for all */
    if (loop->on_own && loop->on_own(loop->ctx, event))
        ; /* its own connection: nothing else is in it */
    else if (event->kind == LP_EV_CONFIG)
        loop->on_start(loop->ctx);
    else if (event->kind == LP_EV_STOP)
        loop->on_stop(loop->ctx);
    /* What the fetcher cannot even begin is told while it settles: hence a second round. */
    for (int round = 0; round < 2; round++) {
        if (loop->on_settle)
            loop->on_settle(loop->ctx);
        lp_fetcher_settle(loop->fetcher);
    }
}

/* --- the network log with a second reader --- */

static void write_both(void *ctx, struct lp_span line)
{
    struct lp_client_loop *loop = ctx;
    if (loop->log.file) {
        fwrite(line.ptr, 1, line.len, loop->log.file);
        fputc('\n', loop->log.file);
        fflush(loop->log.file);
    }
    loop->live(loop->ctx, line);
}

static int open_log(
    const struct lp_client_flags *flags, lp_netlog_line_fn live, struct lp_client_loop *loop)
{
    unsigned char key[LP_NETLOG_KEY_BYTES];
    int status = lp_client_log_open(flags, &loop->log, &loop->netlog);
    if (status != LP_EXIT_OK || !live)
        return status;
    loop->live = live;
    if (loop->netlog)
        memcpy(key, loop->log.net.key, sizeof key);
    else
        lp_io_random(key, sizeof key);
    lp_netlog_init(&loop->live_log, write_both, loop, key);
    loop->live_log.with_bodies = flags->log_bodies;
    loop->netlog = &loop->live_log;
    return LP_EXIT_OK;
}

/* --- opening --- */

static int open_trust(const struct lp_client_flags *flags, struct lp_client_loop *loop)
{
    struct lp_buf why;
    struct lp_tls_trust_args args = {.cacert_path = flags->cacert, .is_insecure = flags->insecure};
    lp_buf_init(&why, WHY_MAX);
    int err = lp_tls_trust_new(&args, &why, &loop->trust);
    struct lp_span sentence = lp_buf_span(&why);
    int status = LP_EXIT_OK;
    if (err && sentence.len)
        status = lp_app_fail(LP_EXIT_USAGE, "--cacert: %.*s", (int)sentence.len, sentence.ptr);
    else if (err)
        status = lp_app_fail(LP_EXIT_FAILED, "%s", lp_error_sentence(err));
    else if (flags->insecure && loop->target.is_tls)
        fputs("limpet: --insecure: the server's certificate is not checked; anybody in between "
              "can read and change everything\n",
            stderr);
    lp_buf_release(&why);
    return status;
}

static int open_engine(struct lp_client_loop *loop)
{
    (void)lp_process_setup();
    loop->loop = lp_loop_new(&(struct lp_loop_args){.trust = loop->trust});
    if (!loop->loop)
        return LP_ENOMEM;
    struct lp_fetcher_args args = {
        .shell = lp_loop_shell(loop->loop), .target = &loop->target, .log = loop->netlog};
    int err = lp_fetcher_new(&args, &loop->fetcher);
    if (err)
        return err;
    lp_jar_init(&loop->jar, &loop->target.uri, LP_JAR_BYTES_MAX);
    loop->jar_in_use = loop->target.cookie_jar ? &loop->jar : NULL;
    lp_loop_attach(loop->loop, loop, on_event);
    lp_loops_join(&loop->loop, 1);
    return lp_signals_open(loop->loop, &(struct lp_signals_args){0});
}

int lp_client_loop_open(const struct lp_client_flags *flags, const char *where,
    lp_netlog_line_fn live, struct lp_client_loop *loop)
{
    int status = lp_client_flags_target(flags, where, &loop->target);
    loop->has_target = true;
    if (status == LP_EXIT_OK)
        status = open_log(flags, live, loop);
    if (status == LP_EXIT_OK)
        status = open_trust(flags, loop);
    if (status != LP_EXIT_OK)
        return status;
    int err = open_engine(loop);
    return err ? lp_app_cannot_start(err) : LP_EXIT_OK;
}

int lp_client_loop_run(struct lp_client_loop *loop)
{
    int err = lp_loop_config(loop->loop, NULL); /* the start signal: an event like all else */
    if (err)
        return lp_app_cannot_start(err);
    lp_loop_run(loop->loop);
    return LP_EXIT_OK;
}

void lp_client_loop_stop(struct lp_client_loop *loop)
{
    const struct lp_shell *shell = lp_loop_shell(loop->loop);
    if (loop->is_stopped)
        return;
    loop->is_stopped = true;
    shell->perform(shell->ctx, &(struct lp_action){.kind = LP_ACT_STOPPED});
}

int lp_client_loop_close(struct lp_client_loop *loop)
{
    lp_fetcher_free(loop->fetcher);
    lp_loop_free(loop->loop);
    lp_tls_trust_free(loop->trust);
    if (loop->fetcher)
        lp_jar_fini(&loop->jar);
    if (loop->live)
        lp_netlog_fini(&loop->live_log);
    if (loop->has_target)
        lp_target_fini(&loop->target);
    loop->fetcher = NULL;
    loop->loop = NULL;
    loop->trust = NULL;
    loop->live = NULL;
    loop->has_target = false;
    return lp_client_log_close(&loop->log);
}
