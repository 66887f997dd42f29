/* Files as wholes, the key file, and entropy. For start-up and reload: these calls block. */
#ifndef LP_IO_FILE_H
#define LP_IO_FILE_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the whole file to `out`, whose ceiling is the limit. LP_ENOT_FOUND, LP_ELIMIT, LP_EIO,
 * LP_ENOMEM, each with a sentence in `why`. */
LP_MUST int lp_file_read(const char *path, struct lp_buf *out, struct lp_buf *why);

/* Replaces the file, or makes it with `mode`, so that after a crash either the old or the new
 * content is there, whole. LP_EIO with a sentence in `why`, LP_ENOMEM. */
LP_MUST int lp_file_write(
    const char *path, struct lp_span content, uint32_t mode, struct lp_buf *why);

/* The text of the key file. When there is no file it is made with `fresh` as content: mode 0600,
 * missing parent directories 0700, in one step (link(2)), so that of several processes that start
 * at once one wins and all return the winner's text. *ret_made tells whether this call made it. A
 * file that others can read, or that its group can change, is refused (LP_EIO). Errors as
 * lp_file_read. */
LP_MUST int lp_key_file_open(
    const char *path, struct lp_span fresh, struct lp_buf *out, bool *ret_made, struct lp_buf *why);

/* Whether a log could be opened at `path`: a file that may be appended to, or made. Changes
 * nothing. Errors as lp_file_read. */
LP_MUST int lp_file_may_append(const char *path, struct lp_buf *why);

/* Whether lp_key_file_open could make the file that is not there yet. Changes nothing. LP_EIO with
 * a sentence in `why`. */
LP_MUST int lp_key_file_may_be_made(const char *path, struct lp_buf *why);

/* `n` random bytes from the kernel; waits for its pool at boot. */
void lp_io_random(void *room, size_t n);

#endif
