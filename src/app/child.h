/* Child processes of the demo: this very program with other words. Ended by their id; they end by
 * themselves when their parent dies. */
#ifndef LP_APP_CHILD_H
#define LP_APP_CHILD_H

#include <sys/types.h>

#include "base/assert.h"
#include "base/span.h"

struct lp_child {
    pid_t pid; /* 0: none */
    int out;   /* reads its stdout; -1: none */
};

/* Starts `limpet WORDS...` (NULL at the end, the program's name left out). Its stdout is a pipe;
 * its stderr goes to the file `log`, or stays ours when that is NULL. Before any thread. LP_EIO. */
LP_MUST int lp_child_start(struct lp_child *child, const char *const *words, const char *log);

/* Reads its stdout until a line holds `mark`; what follows the mark goes to `room`,
 * zero-terminated. LP_ETIMEOUT; LP_EBROKEN: it has ended before. */
LP_MUST int lp_child_await(
    struct lp_child *child, const char *mark, char *room, size_t room_len, uint32_t timeout_ms);

/* True when it has ended by itself. */
bool lp_child_has_ended(struct lp_child *child);

/* SIGTERM, and SIGKILL after two seconds. Harmless when there is none. */
void lp_child_end(struct lp_child *child);

#endif
