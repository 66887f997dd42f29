/* Files as wholes, the key file, entropy (io/file.h). What stands in a key file is the caller's
 * business (mcp/keyring.h); this file decides that two processes never end with two keys
 * (requirements [G2]) and who may read it. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { READ_STEP = 4096, KEY_MODE = 0600, DIRECTORY_MODE = 0700 };

static int complain(struct lp_buf *why, const char *what, const char *path, int sys_errno)
{
    (void)!lp_buf_printf(why, "cannot %s %s: %s", what, path, strerror(sys_errno));
    return sys_errno == ENOENT ? LP_ENOT_FOUND : sys_errno == ENOMEM ? LP_ENOMEM : LP_EIO;
}

/* Reading */

static int too_long(const char *path, const struct lp_buf *out, struct lp_buf *why)
{
    (void)!lp_buf_printf(why, "cannot read %s: it is longer than %zu bytes", path, out->max);
    return LP_ELIMIT;
}

static int read_all(int fd, const char *path, struct lp_buf *out, struct lp_buf *why)
{
    for (;;) {
        char step[READ_STEP];
        ssize_t n = read(fd, step, sizeof step);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return complain(why, "read", path, errno);
        if (n == 0)
            return LP_OK;
        int err = lp_buf_append(out, lp_span(step, (size_t)n));
        if (err)
            return err == LP_ELIMIT ? too_long(path, out, why)
                                    : complain(why, "read", path, ENOMEM);
    }
}

int lp_file_read(const char *path, struct lp_buf *out, struct lp_buf *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return complain(why, "open", path, errno);
    int err = read_all(fd, path, out, why);
    (void)close(fd);
    return err;
}

/* Writing */

static int write_all(int fd, struct lp_span text)
{
    while (text.len) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno != EINTR)
            return -1;
        text = lp_span_from(text, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* A new file beside `path` with the content on disk; its name in `room`. The errno, or 0. */
static int write_beside(
    const char *path, struct lp_span content, uint32_t mode, char room[PATH_MAX])
{
    int n = snprintf(room, PATH_MAX, "%s.XXXXXX", path);
    if (n < 0 || n >= PATH_MAX)
        return ENAMETOOLONG;
    int fd = mkostemp(room, O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = write_all(fd, content) || fchmod(fd, (mode_t)mode) || fsync(fd) ? errno : 0;
    (void)close(fd);
    if (err)
        (void)unlink(room);
    return err;
}

/* The directory of `path`, "." when it names none. */
static void directory_of(const char *path, char room[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 1;
    if (slash == path)
        len = 1; /* "/" itself */
    if (len >= PATH_MAX)
        len = PATH_MAX - 1;
    memcpy(room, slash ? path : ".", len);
    room[len] = 0;
}

/* So that a name survives a crash of the machine, its directory must be on disk too. */
static void sync_directory(const char *path)
{
    char directory[PATH_MAX];
    directory_of(path, directory);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    (void)close(fd);
}

int lp_file_write(const char *path, struct lp_span content, uint32_t mode, struct lp_buf *why)
{
    char fresh[PATH_MAX];
    int err = write_beside(path, content, mode, fresh);
    if (!err && rename(fresh, path)) {
        err = errno;
        (void)unlink(fresh);
    }
    if (err) {
        (void)complain(why, "write", path, err);
        return LP_EIO;
    }
    sync_directory(path);
    return LP_OK;
}

int lp_file_may_append(const char *path, struct lp_buf *why)
{
    char folder[PATH_MAX];
    struct stat info;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return complain(why, "write to", path, EISDIR);
        return eaccess(path, W_OK) ? complain(why, "write to", path, errno) : LP_OK;
    }
    if (errno != ENOENT)
        return complain(why, "write to", path, errno);
    directory_of(path, folder);
    return eaccess(folder, W_OK | X_OK) ? complain(why, "make a file in", folder, errno) : LP_OK;
}

/* The key file */

/* 0 or the errno. Directories that are there are left as they are. */
static int make_parents(const char *path)
{
    char directory[PATH_MAX];
    directory_of(path, directory);
    for (char *end = directory + 1; *directory; end++) {
        end += strcspn(end, "/");
        char kept = *end;
        *end = 0;
        if (mkdir(directory, DIRECTORY_MODE) && errno != EEXIST)
            return errno;
        if (!kept)
            break;
        *end = kept;
    }
    return 0;
}

/* 0 or the errno; EEXIST when another process was first. link(2) makes the name only if there is
 * none, and the file behind it is whole already. */
static int make_key_file(const char *path, struct lp_span fresh)
{
    char beside[PATH_MAX];
    int err = make_parents(path);
    if (!err)
        err = write_beside(path, fresh, KEY_MODE, beside);
    if (err)
        return err;
    err = link(beside, path) ? errno : 0;
    (void)unlink(beside);
    if (!err)
        sync_directory(path);
    return err;
}

/* The sentence of complain() and what to do about it. */
static int complain_of_key(struct lp_buf *why, const char *what, const char *path, int sys_errno)
{
    int err = complain(why, what, path, sys_errno);
    if (sys_errno == EACCES || sys_errno == EPERM || sys_errno == EROFS)
        (void)!lp_buf_append(why,
            LP_SPAN("; give it to the user that runs Limpet, or name another with --key-file"));
    else if (sys_errno != ENOMEM)
        (void)!lp_buf_append(why, LP_SPAN("; name another place with --key-file"));
    return err;
}

static int check_mode(int fd, const char *path, struct lp_buf *why)
{
    struct stat info;
    if (fstat(fd, &info))
        return complain(why, "read", path, errno);
    if (!S_ISREG(info.st_mode)) {
        (void)!lp_buf_printf(
            why, "the key file %s is not a regular file; name one with --key-file", path);
        return LP_EIO;
    }
    /* The group may read: that is how container platforms hand secrets to a process. */
    if (info.st_mode & (S_IWGRP | S_IRWXO)) {
        (void)!lp_buf_printf(why,
            "the key file %s can be read or changed by others (mode %03o); run: chmod 600 %s", path,
            (unsigned)(info.st_mode & 0777), path);
        return LP_EIO;
    }
    return LP_OK;
}

int lp_key_file_open(
    const char *path, struct lp_span fresh, struct lp_buf *out, bool *ret_made, struct lp_buf *why)
{
    int made = EEXIST;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe there must not hold us up */
    if (fd < 0 && errno == ENOENT) {
        made = make_key_file(path, fresh);
        if (made && made != EEXIST) {
            (void)complain_of_key(why, "make the key file", path, made);
            return LP_EIO;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0)
        return complain_of_key(why, "open the key file", path, errno);
    int err = check_mode(fd, path, why);
    if (!err)
        err = read_all(fd, path, out, why);
    (void)close(fd);
    if (!err)
        *ret_made = made == 0;
    return err;
}

/* Where the kernel shows itself no file can be made, whatever the folder's mode says. */
static bool is_of_kernel(const char *folder)
{
    struct statfs info;
    if (statfs(folder, &info))
        return false;
    return info.f_type == PROC_SUPER_MAGIC || info.f_type == SYSFS_MAGIC;
}

int lp_key_file_may_be_made(const char *path, struct lp_buf *why)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    do { /* missing folders would be made too: the nearest that is there decides */
        char inside[PATH_MAX];
        memcpy(inside, folder, sizeof inside);
        directory_of(inside, folder);
    } while (eaccess(folder, F_OK) && errno == ENOENT && strchr(folder, '/') && folder[1]);
    struct stat info;
    int err = stat(folder, &info) ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    if (!err && eaccess(folder, W_OK | X_OK))
        err = errno;
    if (!err && is_of_kernel(folder))
        err = EPERM;
    if (!err)
        return LP_OK;
    (void)complain_of_key(why, "make the key file", path, err);
    return LP_EIO;
}

/* Entropy */

void lp_io_random(void *room, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = getrandom((char *)room + done, n - done, 0);
        LP_ASSERT(got > 0 || errno == EINTR); /* nothing may go on with keys that can be guessed */
        if (got > 0)
            done += (size_t)got;
    }
}
