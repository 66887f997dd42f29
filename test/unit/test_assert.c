/* A broken invariant says what broke and where, and ends the program by abort. */
#include "base/assert.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAW_ABORT = 42 };

/* Ends through exit(), so that a build that measures coverage writes down what it has counted. */
static void on_abort(int signum)
{
    (void)signum;
    exit(SAW_ABORT);
}

static void break_invariant(int to)
{
    dup2(to, STDERR_FILENO);
    signal(SIGABRT, on_abort);
    int count = 1;
    LP_ASSERT(count == 2);
    exit(0);
}

static void broken_invariant_is_told_and_aborts(void **state)
{
    (void)state;
    int fds[2];
    char said[256] = {0};
    int status;
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        break_invariant(fds[1]);
    close(fds[1]);
    ssize_t n = read(fds[0], said, sizeof said - 1);
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SAW_ABORT);
    assert_true(n > 0);
    assert_non_null(strstr(said, "broken invariant `count == 2` at "));
    assert_non_null(strstr(said, "test_assert.c:"));
}

static void kept_invariant_is_silent(void **state)
{
    (void)state;
    LP_ASSERT(1 + 1 == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_invariant_is_told_and_aborts),
        cmocka_unit_test(kept_invariant_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
