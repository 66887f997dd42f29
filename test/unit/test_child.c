/* Child processes: what they print is found, what they do not print is waited for no longer than
 * said, and they are gone when they should be. The children are this very program again. */
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

#include "app/child.h"
#include "base/error.h"
#include "io/loop.h"

/* What a child does, by its first word. */
static int be_child(const char *what)
{
    if (strcmp(what, "speak") == 0)
        puts("some noise\nthe answer is 42");
    else if (strcmp(what, "babble") == 0)
        printf("%0600d\nthe answer is long\n", 1);
    else if (strcmp(what, "complain") == 0)
        fputs("a complaint\n", stderr);
    else if (strcmp(what, "stubborn") == 0 && signal(SIGTERM, SIG_IGN) != SIG_ERR)
        puts("the answer is no");
    fflush(stdout);
    if (strcmp(what, "leave") != 0)
        pause();
    return 0;
}

static struct lp_child begin(const char *what, const char *log)
{
    struct lp_child child;
    const char *words[] = {what, NULL};
    assert_int_equal(lp_child_start(&child, words, log), LP_OK);
    assert_true(child.pid > 0);
    return child;
}

static int await(struct lp_child *child, char room[16], uint32_t timeout_ms)
{
    return lp_child_await(child, "the answer is ", room, 16, timeout_ms);
}

static void words_are_found_in_what_it_prints(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("speak", NULL);
    assert_int_equal(await(&child, room, 20000), LP_OK);
    assert_string_equal(room, "42");
    assert_false(lp_child_has_ended(&child));
    pid_t pid = child.pid;
    lp_child_end(&child);
    assert_int_equal(child.pid, 0);
    assert_int_equal(kill(pid, 0), -1);
    lp_child_end(&child);
}

static void long_lines_do_no_harm(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("babble", NULL);
    assert_int_equal(await(&child, room, 20000), LP_OK);
    assert_string_equal(room, "long");
    lp_child_end(&child);
}

/* The word is there, but there is no room for what follows. */
static void what_does_not_fit_is_not_taken(void **state)
{
    (void)state;
    char room[2];
    struct lp_child child = begin("speak", NULL);
    assert_int_equal(lp_child_await(&child, "the answer is ", room, 2, 500), LP_ETIMEOUT);
    lp_child_end(&child);
}

static void silence_is_waited_for_as_long_as_said(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("wait", NULL);
    uint64_t began_us = lp_clock_mono_us();
    assert_int_equal(await(&child, room, 100), LP_ETIMEOUT);
    assert_in_range(lp_clock_mono_us() - began_us, 90000, 10000000);
    assert_int_equal(await(&child, room, 0), LP_ETIMEOUT);
    lp_child_end(&child);
}

static void one_that_ends_is_told_apart(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("leave", NULL);
    assert_int_equal(await(&child, room, 20000), LP_EBROKEN);
    for (int i = 0; i < 1000 && !lp_child_has_ended(&child); i++)
        usleep(10000);
    assert_true(lp_child_has_ended(&child));
    lp_child_end(&child);
}

static void complaints_go_to_the_log(void **state)
{
    (void)state;
    char path[] = "/tmp/limpet-test-XXXXXX";
    char text[64] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct lp_child child = begin("complain", path);
    for (int i = 0; i < 1000 && read(fd, text, sizeof text - 1) <= 0; i++)
        usleep(10000);
    lp_child_end(&child);
    close(fd);
    unlink(path);
    assert_string_equal(text, "a complaint\n");
}

static void a_log_that_cannot_be_opened_ends_it(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("speak", "/nowhere/log");
    assert_int_equal(await(&child, room, 20000), LP_EBROKEN);
    lp_child_end(&child);
}

static void a_stubborn_one_is_killed(void **state)
{
    (void)state;
    char room[16];
    struct lp_child child = begin("stubborn", NULL);
    assert_int_equal(await(&child, room, 20000), LP_OK);
    pid_t pid = child.pid;
    uint64_t began_us = lp_clock_mono_us();
    lp_child_end(&child);
    assert_in_range(lp_clock_mono_us() - began_us, 1900000, 20000000);
    assert_int_equal(kill(pid, 0), -1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_found_in_what_it_prints),
        cmocka_unit_test(long_lines_do_no_harm),
        cmocka_unit_test(what_does_not_fit_is_not_taken),
        cmocka_unit_test(silence_is_waited_for_as_long_as_said),
        cmocka_unit_test(one_that_ends_is_told_apart),
        cmocka_unit_test(complaints_go_to_the_log),
        cmocka_unit_test(a_log_that_cannot_be_opened_ends_it),
        cmocka_unit_test(a_stubborn_one_is_killed),
    };
    if (argc == 2 && strcmp(argv[0], "limpet") == 0)
        return be_child(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
