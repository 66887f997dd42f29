/* The command line of the gateway: flags, their mistakes, who wins over the file; and the texts
 * that are made from the key table: --help and the manual's reference. */
#include "conf_harness.h"

#define FILE_TEXT                                                                                  \
    "listen: 0.0.0.0:1\n"                                                                          \
    "threads: 3\n"                                                                                 \
    "body_limit: 1KiB\n"                                                                           \
    "servers:\n"                                                                                   \
    "- {name: x, path: /x, replicas: http://a:1, gone_after: 9s}\n"                                \
    "- {name: y, path: /y, replicas: http://b:1, body_limit: 2KiB}\n"

static void urls_are_enough(void **state)
{
    const char *words[] = {"http://10.0.0.1:3001", "unix:/run/a.sock:/m", NULL};
    (void)state;
    struct loaded l = load(NULL, words);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->server_count, 1);
    assert_span(l.conf->servers[0].name, "default");
    assert_int_equal(l.conf->servers[0].replica_count, 2);
    assert_span(l.conf->servers[0].replicas[0].name, "10.0.0.1:3001/mcp");
    assert_span(l.conf->servers[0].replicas[1].path, "/m");
    unload(&l);
}

static void flags_of_the_top_are_read(void **state)
{
    const char *words[] = {"--listen", "a:1", "--listen=b:2", "--admin", "off", "--key-file=/k",
        "--threads", "8", "--log-level", "warn", "--access-log", "--log-format=json", "--log-file",
        "/l", "--tls-ca=/c", "http://a", NULL};
    (void)state;
    struct loaded l = load(NULL, words);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->listen_count, 2);
    assert_span(l.conf->listens[1].authority, "b:2");
    assert_false(l.conf->has_admin);
    assert_span(l.conf->key_file, "/k");
    assert_int_equal(l.conf->threads, 8);
    assert_int_equal(l.conf->log_level, 1);
    assert_true(l.conf->access_log);
    assert_int_equal(l.conf->log_format, LP_LOG_JSON);
    assert_span(l.conf->log_file, "/l");
    assert_span(l.conf->tls_ca, "/c");
    unload(&l);
}

static void flags_of_a_server_are_read(void **state)
{
    const char *words[] = {"--path=/p", "--sse-path", "/s", "--sse-upstream=/u",
        "--balance=round_robin", "--on-owner-lost", "not_found", "--body-limit=1MiB",
        "--comment-every=1s", "--gone-after=100ms", "http://a", NULL};
    (void)state;
    struct loaded l = load(NULL, words);
    assert_string_equal(l.message, "");
    const struct lp_conf_server *s = &l.conf->servers[0];
    assert_span(s->path, "/p");
    assert_span(s->replicas[0].path, "/p");
    assert_span(s->sse_path, "/s");
    assert_span(s->sse_upstream, "/u");
    assert_int_equal(s->balance, LP_BALANCE_ROUND_ROBIN);
    assert_int_equal(s->body_max, 1 << 20);
    assert_int_equal(s->comment_ms, 1000);
    assert_int_equal(s->gone_after_ms, 100);
    unload(&l);
}

static void lists_switches_and_dashes(void **state)
{
    const char *words[] = {"--host", "a.example", "--host=*", "--origin", "http://o:1",
        "--access-log=false", "--", "http://a", NULL};
    (void)state;
    struct loaded l = load("log: {access: true}", words);
    assert_string_equal(l.message, "");
    assert_false(l.conf->access_log);
    assert_int_equal(l.conf->servers[0].host_count, 2);
    assert_span(l.conf->servers[0].hosts[1], "*");
    assert_int_equal(l.conf->servers[0].origin_count, 1);
    unload(&l);
}

static void flags_win_over_the_file(void **state)
{
    const char *words[] = {"-c", "limpet.yaml", "--listen", "b:2", "--body-limit", "5", NULL};
    (void)state;
    struct loaded l = load(FILE_TEXT, words);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->listen_count, 1);
    assert_span(l.conf->listens[0].authority, "b:2");
    assert_int_equal(l.conf->threads, 3);
    assert_int_equal(l.conf->server_count, 2);
    assert_int_equal(l.conf->servers[0].body_max, 5);
    assert_int_equal(l.conf->servers[1].body_max, 5);
    assert_int_equal(l.conf->servers[0].gone_after_ms, 9000);
    unload(&l);
}

static void urls_take_the_place_of_servers(void **state)
{
    const char *words[] = {"http://c:1", NULL};
    (void)state;
    struct loaded l = load(FILE_TEXT, words);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->server_count, 1);
    assert_span(l.conf->servers[0].name, "default");
    assert_span(l.conf->servers[0].path, "/mcp");
    assert_int_equal(l.conf->servers[0].body_max, 1024);
    assert_span(l.conf->servers[0].replicas[0].address.host, "c");
    unload(&l);
}

#define NO_REPLICA "no replica is given; name at least one, like http://127.0.0.1:3001/mcp\n"
static const struct mistake MISTAKES[] = {
    {NULL, {0}, NO_REPLICA},
    {NULL, {"--lisen", "http://a"}, "--lisen: unknown flag; did you mean --listen?\n"},
    {NULL, {"-x", "http://a"}, "-x: unknown flag; limpet gateway --help lists them\n"},
    {NULL, {"--xyzzy=1", "http://a"}, "--xyzzy: unknown flag; limpet gateway --help lists them\n"},
    {NULL, {"http://a", "--threads"}, "--threads: a value must follow: --threads N\n"},
    {NULL, {"http://a", "--host", "--threads=1"}, "--host: a value must follow: --host NAME\n"},
    {NULL, {"http://a", "-c"}, "-c: a value must follow: --config FILE\n"},
    {NULL, {"http://a", "--threads", "0"},
        "--threads: \"0\" is out of range; from 1 to 64 is accepted\n"},
    {NULL, {"http://a", "--threads="}, "--threads: \"\" is not a whole number\n"},
    {NULL, {"http://a", "--key-file="}, "--key-file: is empty; leave it out instead\n"},
    {NULL, {"http://a", "--threads", "1", "--threads", "2"}, "--threads: given twice\n"},
    {NULL, {"http://a", "-c", "a", "--config=b"}, "-c: given twice\n"},
    {NULL, {"http://a", "--on-owner-lost=recover"},
        "--on-owner-lost: \"recover\" comes with a later release; use not_found\n"},
    {NULL, {"http://a", "--access-log=maybe"},
        "--access-log: \"maybe\" is not a switch; use true or false\n"},
    {NULL, {"http://a", "b"},
        "URL 2: \"b\" is not a replica address; use http://host:port/path, "
        "https://host/path or unix:/path.sock:/path\n"},
    {NULL, {"-"},
        "URL 1: \"-\" is not a replica address; use http://host:port/path, "
        "https://host/path or unix:/path.sock:/path\n"},
    {NULL, {"http://a", "http://A:80"},
        "URL 2: two replicas are named a:80/mcp; each needs an "
        "address or a name of its own\n"},
    {NULL, {"http://a", "--listen", "a:1", "--listen", "b"},
        "--listen: \"b\" is not an address; use host:port, [IPv6]:port or unix:/path.sock\n"},
    {NULL, {"http://a", "--listen", "a:1", "--admin", "a:1"},
        "--admin: listen (a:1) and admin (a:1) are the same address; give admin one of its own, or "
        "off\n"},
    {NULL, {"http://a", "--sse-upstream=/s"},
        "--sse-upstream: has no effect without sse_path; give sse_path too\n"},
    /* one flag on top of two servers is refused once */
    {FILE_TEXT, {"--body-limit=x"},
        "--body-limit: \"x\" is not a size; use a number of bytes, or with a unit: 64KiB, 4MiB or "
        "1GiB\n"},
    {FILE_TEXT, {"--path=/z"},
        "--path: servers[0] and servers[1] both have the path /z; give each its own\n"},
    /* problems of both sources are told, and what the URLs replace is judged too */
    {"a: [", {"--lisen"},
        "limpet.yaml:1: this is not valid YAML: did not find expected node content, while parsing "
        "a flow node that begins on line 1\n"
        "--lisen: unknown flag; did you mean --listen?\n"},
    {"threads: x", {"--gone-after=1", "http://a"},
        "limpet.yaml:1: threads: \"x\" is not a whole number\n"
        "--gone-after: \"1\" is not a duration; use a number with its unit: 500ms, 30s, 5m, 2h or "
        "30d\n"},
    {"servers: [{pth: /a}]", {"http://a"},
        "limpet.yaml:1: servers[0].pth: unknown key; did you mean path?\n"},
};

static void each_mistake_has_its_message(void **state)
{
    (void)state;
    check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0]);
}

static void file_flag_is_found(void **state)
{
    static const struct {
        const char *words[4];
        int count;
        const char *file;
    } ROWS[] = {
        {{"-c", "a"}, 2, "a"},
        {{"--config", "a"}, 2, "a"},
        {{"--config=a", "http://x"}, 2, "a"},
        {{"http://x", "--listen", "b", "-c"}, 4, ""},
        {{"--listen", "-c", "a"}, 3, ""}, /* -c is the value of --listen */
        {{"--access-log", "-c", "a"}, 3, "a"},
        {{"--unknown", "-c", "a"}, 3, "a"},
        {{"--", "-c", "a"}, 3, ""},
        {{NULL}, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_span(lp_conf_file_flag(ROWS[i].count, ROWS[i].words), ROWS[i].file);
}

static char *made_by(int (*make)(struct lp_buf *), struct lp_buf *out)
{
    lp_buf_init(out, 1 << 16);
    assert_int_equal(make(out), LP_OK);
    assert_int_equal(lp_buf_append(out, lp_span("", 1)), LP_OK);
    return out->ptr;
}

static void help_names_every_flag_in_80_columns(void **state)
{
    static const char *const FLAGS[] = {"-c, --config FILE", "--listen", "--admin", "--key-file",
        "--threads", "--path", "--sse-path", "--sse-upstream", "--balance", "--on-owner-lost",
        "--log-level", "--access-log", "--log-format", "--log-file", "--body-limit",
        "--comment-every", "--gone-after", "--host", "--origin"};
    struct lp_buf out;
    (void)state;
    char *text = made_by(lp_conf_help, &out);
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "  %s ", FLAGS[i]);
        assert_non_null(strstr(text, line));
    }
    assert_non_null(strstr(text,
        "  --threads N               Threads that serve connections "
        "(default 1)\n"));
    struct lp_span rest = lp_span_str(text);
    while (rest.ptr && rest.len) {
        struct lp_span line = lp_span_split(rest, '\n', &rest);
        assert_in_range(line.len, 1, 80);
        assert_int_not_equal(line.ptr[line.len - 1], ' ');
    }
    lp_buf_release(&out);
}

static void manual_names_every_key(void **state)
{
    static const char *const KEYS[] = {"listen", "admin", "key_file", "tls_ca", "threads",
        "servers", "stop_after", "connections_max", "log.level", "log.access", "log.format",
        "log.file", "name", "path", "sse_path", "sse_upstream", "replicas", "balance",
        "on_owner_lost", "cookie_jar", "gone_after", "timeouts.request", "timeouts.connect",
        "timeouts.first_byte", "timeouts.sse_post", "timeouts.stalled", "ticket_age", "body_limit",
        "large_bodies_limit", "comment_every", "hosts", "origins", "lost_dialects",
        "plain_404_agents", "pass", "to", "url", "weight", "status", "code", "text"};
    struct lp_buf out;
    (void)state;
    char *text = made_by(lp_conf_manual, &out);
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n.It Ic %s", KEYS[i]);
        assert_non_null(strstr(text, line));
    }
    assert_non_null(strstr(text, ".It\n.Ic discover\n"));
    assert_non_null(strstr(text, "\nFrom 1ms to 1h.\nThe default is\n.Cm 3s .\n"));
    assert_non_null(strstr(text, "\nFrom 1 to 1GiB.\n"));
    assert_non_null(strstr(text, "\n.Cm text ,\n.Cm json .\n"));
    /* One sentence a line, and no line that roff would take for a request of its own. */
    assert_non_null(strstr(text, "\nIt serves /metrics, /live, /ready and /status"));
    struct lp_span rest = lp_span_str(text);
    while (rest.ptr && rest.len) {
        struct lp_span line = lp_span_split(rest, '\n', &rest);
        assert_true(line.len > 0 && line.ptr[0] != '\'');
        assert_true(line.ptr[0] != '.' || (line.ptr[1] >= 'A' && line.ptr[1] <= 'Z'));
    }
    lp_buf_release(&out);
}

/* A text that does not fit is a failure at every length. */
static void full_buffers_are_told(void **state)
{
    static int (*const MAKERS[])(struct lp_buf *) = {lp_conf_help, lp_conf_manual};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct lp_buf out;
        made_by(MAKERS[i], &out);
        size_t len = out.len - 1;
        lp_buf_release(&out);
        for (size_t max = 0; max < len; max++) {
            lp_buf_init(&out, max);
            assert_int_equal(MAKERS[i](&out), LP_ELIMIT);
            lp_buf_release(&out);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(urls_are_enough),
        cmocka_unit_test(flags_of_the_top_are_read),
        cmocka_unit_test(flags_of_a_server_are_read),
        cmocka_unit_test(lists_switches_and_dashes),
        cmocka_unit_test(flags_win_over_the_file),
        cmocka_unit_test(urls_take_the_place_of_servers),
        cmocka_unit_test(each_mistake_has_its_message),
        cmocka_unit_test(file_flag_is_found),
        cmocka_unit_test(help_names_every_flag_in_80_columns),
        cmocka_unit_test(manual_names_every_key),
        cmocka_unit_test(full_buffers_are_told),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
