/* Proves the whole-file calls, the key file's race and its refusals, and that entropy is not the
 * same twice. */
#include "io_harness.h"

static char dir[64], path[128];
static struct lp_buf out, why;

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/lp-test-file.XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/file", dir);
    lp_buf_init(&out, 10000);
    lp_buf_init(&why, 10000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    lp_buf_release(&out);
    lp_buf_release(&why);
    return 0;
}

static void assert_why(const char *want)
{
    if (lp_span_search(lp_buf_span(&why), lp_span_str(want)) == why.len)
        fail_msg("\"%.*s\" does not say \"%s\"", (int)why.len, lp_buf_span(&why).ptr, want);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    assert_int_equal(lp_file_write(path, LP_SPAN("first"), 0640, &why), LP_OK);
    assert_int_equal(lp_file_write(path, LP_SPAN("second"), 0600, &why), LP_OK);
    assert_int_equal(lp_file_read(path, &out, &why), LP_OK);
    assert_span(lp_buf_span(&out), "second");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(why.len, 0);
    assert_int_equal(lp_file_write(path, LP_SPAN(""), 0600, &why), LP_OK);
    lp_buf_clear(&out);
    assert_int_equal(lp_file_read(path, &out, &why), LP_OK);
    assert_int_equal(out.len, 0);
}

static void a_relative_name_is_in_this_directory(void **state)
{
    (void)state;
    int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(lp_file_write("file", LP_SPAN("here"), 0600, &why), LP_OK);
    bool is_made = false;
    assert_int_equal(lp_key_file_open("key", LP_SPAN("k"), &out, &is_made, &why), LP_OK);
    assert_int_equal(fchdir(home), 0);
    close(home);
    lp_buf_clear(&out);
    assert_int_equal(lp_file_read(path, &out, &why), LP_OK);
    assert_span(lp_buf_span(&out), "here");
}

static void reading_what_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(lp_file_read(path, &out, &why), LP_ENOT_FOUND);
    assert_why("No such file");
    lp_buf_clear(&why);
    assert_int_equal(lp_file_read(dir, &out, &why), LP_EIO);
    assert_why("Is a directory");
    static char big[10001];
    assert_int_equal(lp_file_write(path, lp_span(big, sizeof big), 0600, &why), LP_OK);
    lp_buf_clear(&why);
    assert_int_equal(lp_file_read(path, &out, &why), LP_ELIMIT);
    assert_why("longer than 10000 bytes");
}

static void writing_where_nothing_can_be_written(void **state)
{
    (void)state;
    static char name[5000];
    memset(name, 'n', sizeof name - 1);
    assert_int_equal(lp_file_write("/nowhere/x", LP_SPAN("x"), 0600, &why), LP_EIO);
    assert_why("cannot write /nowhere/x: No such file");
    lp_buf_clear(&why);
    assert_int_equal(lp_file_write(name, LP_SPAN("x"), 0600, &why), LP_EIO);
    assert_why("name too long");
    lp_buf_clear(&why);
    assert_int_equal(mkdir(path, 0700), 0); /* a directory is not replaced by a file */
    assert_int_equal(lp_file_write(path, LP_SPAN("x"), 0600, &why), LP_EIO);
    assert_why("Is a directory");
    struct rlimit kept, none = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &kept), 0);
    none.rlim_max = kept.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    lp_buf_clear(&why);
    int err = lp_file_write(path, LP_SPAN("x"), 0600, &why);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &kept), 0);
    assert_int_equal(err, LP_EIO);
    assert_why("File too large");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0); /* no half-made file was left beside it */
    assert_int_equal(mkdir(dir, 0700), 0);
}

/* The key file */

static void a_key_file_is_made_once(void **state)
{
    (void)state;
    char deep[160];
    (void)snprintf(deep, sizeof deep, "%s/a/b//c/key", dir);
    bool is_made = false;
    assert_int_equal(lp_key_file_open(deep, LP_SPAN("mine\n"), &out, &is_made, &why), LP_OK);
    assert_true(is_made);
    assert_span(lp_buf_span(&out), "mine\n");
    lp_buf_clear(&out);
    assert_int_equal(lp_key_file_open(deep, LP_SPAN("other\n"), &out, &is_made, &why), LP_OK);
    assert_false(is_made);
    assert_span(lp_buf_span(&out), "mine\n");
    struct stat info;
    assert_int_equal(stat(deep, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(info.st_nlink, 1); /* the file beside it is gone */
    *strrchr(deep, '/') = 0;
    assert_int_equal(stat(deep, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

/* Eight processes start at once, each with a key of its own: all end with the same one. */
static void a_race_of_eight_ends_with_one_key(void **state)
{
    (void)state;
    enum { RACERS = 8, ROUNDS = 10 };
    for (int round = 0; round < ROUNDS; round++) {
        int start[2], results[2];
        char key[160], winner[9] = "";
        (void)snprintf(key, sizeof key, "%s/r%d/key", dir, round);
        assert_int_equal(pipe(start), 0);
        assert_int_equal(pipe(results), 0);
        for (int i = 0; i < RACERS; i++) {
            pid_t child = fork();
            assert_true(child >= 0);
            if (child)
                continue;
            char c, fresh[16];
            bool is_made = false;
            (void)snprintf(fresh, sizeof fresh, "racer %d\n", i);
            close(start[1]);
            (void)!read(start[0], &c, 1); /* until the parent lets all go at once */
            int err = lp_key_file_open(key, lp_span(fresh, 8), &out, &is_made, &why);
            char answer[10] = "failed  ?";
            if (!err && out.len == 8)
                memcpy(answer, lp_buf_span(&out).ptr, 8);
            answer[8] = is_made ? '!' : '.';
            _exit(write(results[1], answer, 9) == 9 ? 0 : 1);
        }
        close(start[0]);
        close(start[1]);
        int made = 0;
        for (int i = 0; i < RACERS; i++) {
            char answer[9];
            assert_int_equal(read(results[0], answer, 9), 9);
            if (!i)
                memcpy(winner, answer, 8);
            assert_memory_equal(answer, winner, 8);
            made += answer[8] == '!';
        }
        assert_int_equal(made, 1);
        assert_memory_equal(winner, "racer ", 6);
        for (int i = 0; i < RACERS; i++)
            assert_true(wait(NULL) > 0);
        close(results[0]);
        close(results[1]);
    }
}

static void who_may_read_the_key(void **state)
{
    (void)state;
    const struct {
        mode_t mode;
        bool is_fine;
    } rows[] = {{0400, true}, {0600, true}, {0640, true}, {0440, true}, {0660, false},
        {0604, false}, {0644, false}, {0602, false}, {0601, false}};
    bool is_made = true;
    assert_int_equal(lp_file_write(path, LP_SPAN("key"), 0600, &why), LP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lp_buf_clear(&out);
        assert_int_equal(chmod(path, rows[i].mode), 0);
        int err = lp_key_file_open(path, LP_SPAN("x"), &out, &is_made, &why);
        assert_int_equal(err, rows[i].is_fine ? LP_OK : LP_EIO);
        assert_int_equal(out.len, rows[i].is_fine ? 3 : 0);
        if (!rows[i].is_fine)
            assert_why("run: chmod 600");
        lp_buf_clear(&why);
    }
    assert_false(is_made);
}

static void a_key_file_that_cannot_be(void **state)
{
    (void)state;
    bool is_made = false;
    char inside[160];
    assert_int_equal(lp_key_file_open(dir, LP_SPAN("x"), &out, &is_made, &why), LP_EIO);
    assert_why("not a regular file");
    lp_buf_clear(&why);
    assert_int_equal(lp_file_write(path, LP_SPAN("x"), 0600, &why), LP_OK);
    (void)snprintf(inside, sizeof inside, "%s/key", path);
    assert_int_equal(lp_key_file_open(inside, LP_SPAN("x"), &out, &is_made, &why), LP_EIO);
    assert_why("Not a directory");
    lp_buf_clear(&why);
    assert_int_equal(
        lp_key_file_open("/proc/nowhere/key", LP_SPAN("x"), &out, &is_made, &why), LP_EIO);
    assert_why("cannot make the key file");
    assert_why("; name another place with --key-file");
}

/* What a check of the configuration asks: the same refusals, and nothing is made. */
static void what_could_be_made_is_known_without_making_it(void **state)
{
    (void)state;
    char inside[160], deep[200];
    (void)snprintf(inside, sizeof inside, "%s/log", path);
    (void)snprintf(deep, sizeof deep, "%s/a/b/key", dir);
    assert_int_equal(lp_file_may_append(path, &why), LP_OK);
    assert_int_equal(lp_key_file_may_be_made(path, &why), LP_OK);
    assert_int_equal(lp_key_file_may_be_made(deep, &why), LP_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(lp_file_write(path, LP_SPAN("x"), 0600, &why), LP_OK);
    assert_int_equal(lp_file_may_append(path, &why), LP_OK);
    assert_int_equal(why.len, 0);
    assert_int_equal(lp_file_may_append(dir, &why), LP_EIO);
    assert_why("Is a directory");
    lp_buf_clear(&why);
    assert_int_equal(lp_file_may_append(inside, &why), LP_EIO);
    assert_why("Not a directory");
    lp_buf_clear(&why);
    assert_int_equal(lp_key_file_may_be_made(inside, &why), LP_EIO);
    assert_why("Not a directory; name another place with --key-file");
    lp_buf_clear(&why);
    assert_int_equal(lp_file_may_append(deep, &why), LP_ENOT_FOUND);
    assert_why("cannot make a file in ");
    lp_buf_clear(&why);
    bool is_root = geteuid() == 0;
    assert_int_equal(is_root ? seteuid(65534) : chmod(dir, 0500), 0);
    int err = lp_key_file_may_be_made(deep, &why);
    int log_err = lp_file_may_append(deep, &why);
    assert_int_equal(is_root ? seteuid(0) : chmod(dir, 0700), 0);
    assert_int_equal(err, LP_EIO);
    assert_true(log_err == LP_EIO || log_err == LP_ENOT_FOUND);
    assert_why("Permission denied; give it to the user that runs Limpet");
}

/* Root may read everything, so it plays somebody else here. */
static void a_key_file_of_somebody_else(void **state)
{
    (void)state;
    bool is_made = false;
    bool is_root = geteuid() == 0;
    assert_int_equal(lp_file_write(path, LP_SPAN("key"), 0600, &why), LP_OK);
    assert_int_equal(is_root ? seteuid(65534) : chmod(path, 0), 0);
    int err = lp_key_file_open(path, LP_SPAN("x"), &out, &is_made, &why);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_equal(err, LP_EIO);
    assert_why("Permission denied; give it to the user that runs Limpet, or name another with ");
    assert_false(is_made);
}

static void entropy_differs(void **state)
{
    (void)state;
    unsigned char a[32] = {0}, b[32] = {0}, none[32] = {0};
    lp_io_random(a, sizeof a);
    lp_io_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, none, sizeof a);
    lp_io_random(none, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_written_is_read),
        T(a_relative_name_is_in_this_directory),
        T(reading_what_cannot_be_read),
        T(writing_where_nothing_can_be_written),
        T(a_key_file_is_made_once),
        T(a_race_of_eight_ends_with_one_key),
        T(who_may_read_the_key),
        T(a_key_file_that_cannot_be),
        T(a_key_file_of_somebody_else),
        T(what_could_be_made_is_known_without_making_it),
        cmocka_unit_test(entropy_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
