/* Signals and limits of the process.
 *
 * SIGTERM and SIGINT: the first gives LP_EV_STOP to the engines of all joined loops, the second
 * ends the process at once with status 128 + signal. SIGHUP is handed to the app. */
#ifndef LP_IO_SIGNALS_H
#define LP_IO_SIGNALS_H

#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"

struct lp_loop;

struct lp_signals_args {
    void *ctx;
    void (*on_stop)(void *ctx, int signum); /* after the first SIGTERM or SIGINT; may be NULL */
    void (*on_hangup)(void *ctx); /* SIGHUP; may be NULL. Both in the thread of the loop */
};

/* Before the loops run; on one loop of the process, which frees them. LP_EIO. */
LP_MUST int lp_signals_open(struct lp_loop *loop, const struct lp_signals_args *args);

/* Ignores SIGPIPE and raises the limit of descriptors as far as the system allows. Returns the
 * limit that holds now. */
uint64_t lp_process_setup(void);

#endif
