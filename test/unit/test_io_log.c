/* Proves that the log never blocks its callers, tears no line, counts what it drops and follows a
 * rotated file. */
#include "io_harness.h"

#include <pthread.h>

static char path[64], moved[80];
static struct lp_buf text;

static int setup(void **state)
{
    (void)snprintf(path, sizeof path, "/tmp/lp-test-log.%d", getpid());
    (void)snprintf(moved, sizeof moved, "%s.1", path);
    (void)unlink(path);
    lp_buf_init(&text, (size_t)16 << 20);
    *state = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(moved);
    lp_buf_release(&text);
    return 0;
}

static struct lp_log *open_log(const struct lp_log_args *args)
{
    struct lp_log *log = NULL;
    assert_int_equal(lp_log_open(args, &text, &log), LP_OK);
    return log;
}

static void read_file(const char *name)
{
    lp_buf_clear(&text);
    assert_int_equal(lp_file_read(name, &text, &text), LP_OK);
}

static void lines_and_sentences(void **state)
{
    (void)state;
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path});
    lp_log_take(log, LP_SPAN("one\ntwo\n"));
    lp_log_take(log, LP_SPAN(""));
    lp_log_say(log, LP_LOG_INFO, "%s %d", "three", 3);
    lp_log_close(log);
    read_file(path);
    assert_span(lp_buf_span(&text), "one\ntwo\nthree 3\n");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0027, 0);
    lp_log_take(NULL, LP_SPAN("x\n")); /* harmless */
    lp_log_say(NULL, LP_LOG_INFO, "x");
    lp_log_close(NULL);
}

static int shout(
    struct lp_buf *out, uint64_t wall_ms, enum lp_log_level level, struct lp_span sentence)
{
    assert_true(wall_ms > 1600000000000);
    return lp_buf_printf(out, "%d! %.*s", level, (int)sentence.len, sentence.ptr);
}

static void sentences_look_like_the_programs_lines(void **state)
{
    (void)state;
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path, .line = shout});
    lp_log_say(log, LP_LOG_WARN, "%01500d", 1); /* too long: cut */
    lp_log_close(log);
    read_file(path);
    assert_int_equal(text.len, 3 + 1023 + 1);
    assert_memory_equal(lp_buf_span(&text).ptr, "1! 0000", 7);
}

enum { THREADS = 4, LINES = 2000 };

static void *write_lines(void *log)
{
    for (int i = 0; i < LINES; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "abcdefghijklmnopqrstuvwxyz %06d\n", i);
        lp_log_take(log, lp_span(line, (size_t)n));
    }
    return NULL;
}

static void lines_of_several_threads_stay_whole(void **state)
{
    (void)state;
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, log), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    lp_log_close(log);
    read_file(path);
    assert_int_equal(text.len, THREADS * LINES * 34);
    for (size_t i = 0; i < text.len; i += 34)
        assert_memory_equal(lp_buf_span(&text).ptr + i, "abcdefghijklmnopqrstuvwxyz 00", 29);
}

/* Lines of z that came through, plus those that the log owned up to. */
static uint64_t lines_accounted_for(void)
{
    uint64_t count = 0;
    struct lp_span rest = lp_buf_span(&text), line;
    while (rest.len) {
        line = lp_span_split(rest, '\n', &rest);
        if (lp_span_starts(line, LP_SPAN("zzz")) && line.len == 999)
            count++;
        else if (lp_span_ends(line, LP_SPAN("dropped: the log is too slow or full")))
            count += strtoull(line.ptr, NULL, 10);
    }
    return count;
}

/* stderr as a file, until `end_stderr` puts it into `text`. */
static int begin_stderr(void)
{
    int kept = dup(STDERR_FILENO);
    int fd = open(moved, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    (void)close(fd);
    return kept;
}

static void end_stderr(int kept)
{
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    read_file(moved);
}

/* A full disk: every line that is lost is counted, and stderr hears of it once, not each time. */
static void a_full_disk_is_told_on_stderr(void **state)
{
    (void)state;
    int kept = begin_stderr();
    struct lp_log *log = open_log(&(struct lp_log_args){.path = "/dev/full"});
    for (int i = 0; i < 20; i++) {
        lp_log_take(log, LP_SPAN("one\ntwo\n"));
        usleep(2000);
    }
    for (int i = 0; i < 1000 && lp_log_trouble(log).lost_lines < 40; i++)
        usleep(1000);
    assert_int_equal(lp_log_trouble(log).lost_lines, 40);
    assert_int_equal(lp_log_trouble(log).failed_reopens, 0);
    lp_log_close(log);
    end_stderr(kept);
    assert_span(lp_buf_span(&text),
        "log lines for /dev/full are lost: No space left on device; make room, then SIGHUP opens "
        "the file again\n");
    assert_int_equal(lp_log_trouble(NULL).lost_lines, 0);
}

/* The file's folder is gone: the old file is written to, stderr says so, and it is counted. */
static void a_file_that_cannot_be_opened_again_is_told_on_stderr(void **state)
{
    (void)state;
    char inside[96];
    (void)snprintf(inside, sizeof inside, "%s/log", path);
    assert_int_equal(mkdir(path, 0700), 0);
    int kept = begin_stderr();
    struct lp_log *log = open_log(&(struct lp_log_args){.path = inside});
    assert_int_equal(unlink(inside) || rmdir(path), 0);
    lp_log_reopen(log);
    for (int i = 0; i < 1000 && !lp_log_trouble(log).failed_reopens; i++)
        usleep(1000);
    assert_int_equal(lp_log_trouble(log).failed_reopens, 1);
    assert_int_equal(lp_log_trouble(log).lost_lines, 0);
    lp_log_close(log);
    end_stderr(kept);
    char wanted[256];
    (void)snprintf(wanted, sizeof wanted,
        "cannot open the log file %s again: No such file or directory; the old one is still "
        "written to\n",
        inside);
    assert_span(lp_buf_span(&text), wanted);
}

/* A pipe that nobody reads: the callers go on, what is too much is counted and said later. */
static void a_stuck_log_drops_and_says_so(void **state)
{
    (void)state;
    enum { LOST_LINES = 1000 };
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path, .waiting_max = 100000});
    static char line[1000];
    memset(line, 'z', sizeof line);
    line[999] = '\n';
    uint64_t begin_us = lp_clock_mono_us();
    for (int i = 0; i < LOST_LINES; i++)
        lp_log_take(log, lp_span(line, sizeof line));
    assert_true(lp_clock_mono_us() - begin_us < 2000000);
    uint64_t again_count = 0, until_us = lp_clock_mono_us() + 10000000;
    while (lines_accounted_for() < LOST_LINES) {
        char room[65536];
        ssize_t n = read(reader, room, sizeof room);
        if (n > 0) {
            assert_int_equal(lp_buf_append(&text, lp_span(room, (size_t)n)), LP_OK);
            continue;
        }
        lp_log_say(log, LP_LOG_INFO, "again"); /* what was dropped is said with the next line */
        again_count++;
        usleep(1000);
        if (lp_clock_mono_us() > until_us)
            fail_msg("not all was said");
    }
    lp_log_close(log);
    close(reader);
    assert_in_range(lines_accounted_for(), LOST_LINES, LOST_LINES + again_count);
    assert_true(lp_span_search(lp_buf_span(&text), LP_SPAN("log lines were dropped")) < text.len);
}

/* The program can end although its log is stuck. */
static void closing_a_stuck_log_takes_a_second_at_most(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char lines[200000];
        memset(lines, '\n', sizeof lines);
        struct lp_log *log = NULL;
        if (lp_log_open(&(struct lp_log_args){.path = path}, &text, &log))
            _exit(3);
        lp_log_take(log, lp_span(lines, sizeof lines));
        uint64_t begin_us = lp_clock_mono_us();
        lp_log_close(log);
        uint64_t took_us = lp_clock_mono_us() - begin_us;
        _exit(took_us > 900000 && took_us < 4000000 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(reader);
}

static void a_full_disk_is_counted(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK))
        skip();
    struct lp_log *log = open_log(&(struct lp_log_args){.path = "/dev/full"});
    for (int i = 0; i < 5; i++) {
        lp_log_take(log, LP_SPAN("lost\nlost\n"));
        usleep(2000);
    }
    lp_log_close(log);
}

static void another_owner_may_have_made_it_non_blocking(void **state)
{
    (void)state;
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    struct lp_log *log = open_log(&(struct lp_log_args){0});
    static char lines[300000];
    memset(lines, '\n', sizeof lines);
    lp_log_take(log, lp_span(lines, sizeof lines));
    lp_log_reopen(log); /* nothing to do for stderr */
    while (text.len < sizeof lines) {
        char room[65536];
        ssize_t n = read(ends[0], room, sizeof room);
        if (n > 0)
            assert_int_equal(lp_buf_append(&text, lp_span(room, (size_t)n)), LP_OK);
        else
            usleep(500);
    }
    lp_log_close(log);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    close(ends[0]);
    close(ends[1]);
}

static void wait_for_file(const char *name, bool has_bytes)
{
    struct stat info;
    uint64_t until_us = lp_clock_mono_us() + 5000000;
    while (stat(name, &info) || (has_bytes && info.st_size == 0)) {
        assert_true(lp_clock_mono_us() < until_us);
        usleep(500);
    }
}

static void a_rotated_file_is_opened_again(void **state)
{
    (void)state;
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path});
    lp_log_take(log, LP_SPAN("old\n"));
    wait_for_file(path, true);
    assert_int_equal(rename(path, moved), 0);
    lp_log_reopen(log);
    wait_for_file(path, false);
    lp_log_take(log, LP_SPAN("new\n"));
    lp_log_close(log);
    read_file(moved);
    assert_span(lp_buf_span(&text), "old\n");
    read_file(path);
    assert_span(lp_buf_span(&text), "new\n");
}

static void a_file_that_cannot_be_opened_again_is_kept(void **state)
{
    (void)state;
    struct lp_log *log = open_log(&(struct lp_log_args){.path = path});
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    lp_log_reopen(log);
    wait_for_file(moved, true);
    lp_log_close(log);
    assert_int_equal(rmdir(path), 0);
    read_file(moved);
    assert_true(lp_span_starts(lp_buf_span(&text), LP_SPAN("cannot open the log file")));
}

static void a_bad_path_is_explained(void **state)
{
    (void)state;
    struct lp_log *log = NULL;
    assert_int_equal(
        lp_log_open(&(struct lp_log_args){.path = "/nowhere/log"}, &text, &log), LP_EIO);
    assert_span(
        lp_buf_span(&text), "cannot open the log file /nowhere/log: No such file or directory");
    assert_null(log);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_and_sentences),
        T(sentences_look_like_the_programs_lines),
        T(lines_of_several_threads_stay_whole),
        T(a_stuck_log_drops_and_says_so),
        T(closing_a_stuck_log_takes_a_second_at_most),
        T(a_full_disk_is_counted),
        T(a_full_disk_is_told_on_stderr),
        T(a_file_that_cannot_be_opened_again_is_told_on_stderr),
        T(another_owner_may_have_made_it_non_blocking),
        T(a_rotated_file_is_opened_again),
        T(a_file_that_cannot_be_opened_again_is_kept),
        T(a_bad_path_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
