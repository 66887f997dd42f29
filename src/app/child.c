/* Children by fork and exec of /proc/self/exe (app/child.h). They are put into a process group of
 * their own, so that Ctrl-C reaches the demo alone, which then ends them one by one. */
#include "app/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "io/loop.h"

enum { WORDS_MAX = 32, LINE_MAX_BYTES = 512, END_MS = 2000, STEP_MS = 10 };

static void become(const char *const *words, int out, const char *log, pid_t parent)
{
    const char *argv[WORDS_MAX + 2] = {"limpet"};
    for (int i = 0; words[i] && i < WORDS_MAX; i++)
        argv[i + 1] = words[i];
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127); /* the parent died before the line above */
    (void)setpgid(0, 0);
    int err = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : STDERR_FILENO;
    if (err < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

int lp_child_start(struct lp_child *child, const char *const *words, const char *log)
{
    int ends[2];
    *child = (struct lp_child){.out = -1};
    if (pipe2(ends, O_CLOEXEC))
        return LP_EIO;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(words, ends[1], log, parent);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return LP_EIO;
    }
    child->pid = pid;
    child->out = ends[0];
    return LP_OK;
}

/* One more byte of a line; 1 when there is one. */
static int read_byte(int fd, uint64_t end_us, char *ret)
{
    uint64_t now_us = lp_clock_mono_us();
    if (now_us >= end_us)
        return LP_ETIMEOUT;
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    int n = poll(&waits, 1, (int)((end_us - now_us) / 1000 + 1));
    if (n == 0)
        return LP_ETIMEOUT;
    ssize_t got = n > 0 ? read(fd, ret, 1) : -1;
    if (got < 0 && errno == EINTR)
        return 0;
    return got == 1 ? 1 : LP_EBROKEN;
}

int lp_child_await(
    struct lp_child *child, const char *mark, char *room, size_t room_len, uint32_t timeout_ms)
{
    char line[LINE_MAX_BYTES];
    size_t len = 0;
    uint64_t end_us = lp_clock_mono_us() + (uint64_t)timeout_ms * 1000;
    for (;;) {
        int n = read_byte(child->out, end_us, &line[len]);
        if (n < 0)
            return n;
        bool is_whole = n == 1 && (line[len] == '\n' || len == sizeof line - 2);
        len += (size_t)n;
        if (!is_whole)
            continue;
        line[len - 1] = '\0';
        const char *found = strstr(line, mark);
        if (found && strlen(found + strlen(mark)) < room_len) {
            strcpy(room, found + strlen(mark));
            return LP_OK;
        }
        len = 0;
    }
}

bool lp_child_has_ended(struct lp_child *child)
{
    if (child->pid && waitpid(child->pid, NULL, WNOHANG) == child->pid)
        child->pid = 0;
    return child->pid == 0;
}

void lp_child_end(struct lp_child *child)
{
    if (child->out >= 0)
        (void)close(child->out);
    child->out = -1;
    if (lp_child_has_ended(child))
        return;
    (void)kill(child->pid, SIGTERM);
    for (int waited_ms = 0; waited_ms < END_MS; waited_ms += STEP_MS) {
        if (lp_child_has_ended(child))
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
    child->pid = 0;
}
