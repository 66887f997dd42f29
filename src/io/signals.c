/* Signals and limits of the process (io/signals.h). */
#include "io/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/loop_priv.h"

static void stop_all(struct lp_loop *loop)
{
    for (uint32_t i = 0; i < loop->peer_count; i++)
        if (lp_loop_stop(loop->peers[i]))
            _exit(1); /* no memory for a graceful stop */
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct lp_loop *loop = handle->loop->data;
    const struct lp_signals_args *args = &loop->signals_args;
    if (signum == SIGHUP) {
        if (args->on_hangup)
            args->on_hangup(args->ctx);
        return;
    }
    if (loop->was_signalled)
        _exit(128 + signum);
    loop->was_signalled = true;
    stop_all(loop);
    if (args->on_stop)
        args->on_stop(args->ctx, signum);
}

int lp_signals_open(struct lp_loop *loop, const struct lp_signals_args *args)
{
    static const int numbers[LP_IO_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    LP_ASSERT(loop->peer_count > 0); /* else nobody would be stopped */
    loop->signals_args = *args;
    for (int i = 0; i < LP_IO_SIGNALS; i++) {
        if (uv_signal_init(&loop->uv, &loop->signals[i]) ||
            uv_signal_start(&loop->signals[i], on_signal, numbers[i]))
            return LP_EIO;
    }
    return LP_OK;
}

/* Closed standard descriptors would be given to sockets, and then written to as if they were
 * standard error. What is printed to a closed standard output must not look as if it had gone out,
 * so that one can only be read. */
static void fill_standard(void)
{
    static const int MODES[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", MODES[fd]) < 0)
            return;
}

uint64_t lp_process_setup(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    fill_standard();
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    return limit.rlim_cur;
}
