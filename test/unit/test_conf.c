/* The configuration file: what good files become, what each mistake is told, and that a printed
 * snapshot reads back as the same snapshot. */
#include "conf_harness.h"
#include "seam/action.h"

#define REPLICA "replicas: http://a:1/mcp\n"
#define ONE_REPLICA(rest) REPLICA rest

static void smallest_file_gets_the_defaults(void **state)
{
    (void)state;
    struct loaded l = load("replicas: [http://10.0.0.11:3001]", NULL);
    assert_string_equal(l.message, "");
    assert_int_equal(l.err, LP_OK);
    assert_int_equal(l.conf->listen_count, 1);
    assert_span(l.conf->listens[0].authority, "127.0.0.1:8080");
    assert_true(l.conf->listens[0].is_loopback);
    assert_true(l.conf->has_admin);
    assert_int_equal(l.conf->admin.port, 8081);
    assert_int_equal(l.conf->key_file.len, 0);
    assert_int_equal(l.conf->threads, 1);
    assert_int_equal(l.conf->log_format, LP_LOG_TEXT);
    assert_int_equal(l.conf->access_format, LP_LOG_TEXT);
    assert_false(l.conf->access_log);
    assert_int_equal(l.conf->log_level, LP_LOG_INFO);
    assert_int_equal(l.conf->request_ms, 30000);
    assert_int_equal(l.conf->large_bodies_max, 256 << 20);
    assert_int_equal(l.conf->stop_ms, 10000);
    assert_int_equal(l.conf->conn_max, 9000);
    assert_int_equal(l.conf->server_count, 1);
    const struct lp_conf_server *s = &l.conf->servers[0];
    assert_span(s->name, "default");
    assert_span(s->path, "/mcp");
    assert_int_equal(s->sse_path.len, 0);
    assert_int_equal(s->sse_upstream.len, 0);
    assert_int_equal(s->balance, LP_BALANCE_LEAST_SESSIONS);
    assert_int_equal(s->on_owner_lost, LP_LOST_NOT_FOUND);
    assert_int_equal(s->gone_after_ms, 3000);
    assert_int_equal(s->connect_ms, 2000);
    assert_int_equal(s->first_byte_ms, 300000);
    assert_int_equal(s->sse_post_ms, 10000);
    assert_int_equal(s->stalled_ms, 60000);
    assert_int_equal(s->ticket_age_ms, 30ULL * 86400000);
    assert_false(s->cookie_jar);
    assert_int_equal(s->body_max, 4 << 20);
    assert_int_equal(s->comment_ms, 15000);
    assert_int_equal(s->host_count, 0);
    assert_int_equal(s->origin_count, 0);
    assert_int_equal(s->lost_dialect_count, 0);
    assert_int_equal(s->plain_404_agent_count, 1);
    assert_span(s->plain_404_agents[0], "Go-http-client/");
    assert_int_equal(s->replica_count, 1);
    assert_span(s->replicas[0].name, "10.0.0.11:3001/mcp");
    assert_span(s->replicas[0].path, "/mcp");
    assert_int_equal(s->replicas[0].weight, 1);
    unload(&l);
}

static const char WHOLE_FILE[] =
    "listen: [0.0.0.0:8080, \"[::1]:8081\", unix:/run/limpet.sock]\n"
    "admin: off\n"
    "key_file: /etc/limpet/key\n"
    "tls_ca: /etc/limpet/ca.pem\n"
    "threads: 4\n"
    "log: {level: debug, format: json, access: true, file: /var/log/limpet}\n"
    "stop_after: 0s\n"
    "connections_max: 100\n"
    "large_bodies_limit: 1GiB\n"
    "gone_after: 5s\n"
    "timeouts: {request: 5s, connect: 500ms}\n"
    "servers:\n"
    "  - name: tools\n"
    "    path: /tools/mcp\n"
    "    sse_path: /tools/sse\n"
    "    sse_upstream: /sse\n"
    "    replicas:\n"
    "      - http://EXAMPLE.com/Mcp\n"
    "      - {name: b, url: \"unix:/run/b.sock\", weight: 3}\n"
    "      - url: \"http://[FE80::1]:99/x\"\n"
    "      - unix:/run/c.sock:/m\n"
    "    balance: round_robin\n"
    "    on_owner_lost: not_found\n"
    "    cookie_jar: true\n"
    "    gone_after: 1m\n"
    "    timeouts: {first_byte: 2h, sse_post: 1s, stalled: 2m}\n"
    "    ticket_age: 7d\n"
    "    body_limit: 64KiB\n"
    "    comment_every: off\n"
    "    hosts: [mcp.example.com, \"[::1]:80\", \"*\"]\n"
    "    origins: [HTTPS://App.example.com, \"null\", \"*\"]\n"
    "    lost_dialects:\n"
    "      - {status: 400, code: -32001, text: \"no such session\\n\"}\n"
    "      - {status: 422, text: gone}\n"
    "    plain_404_agents: []\n"
    "  - name: other\n"
    "    path: /same\n"
    "    sse_path: /same\n"
    "    replicas: [http://c:7, https://D.example, \"HTTPS://[::1]:8443/x\", https://e:80]\n";

static void whole_file_is_read(void **state)
{
    (void)state;
    struct loaded l = load(WHOLE_FILE, NULL);
    assert_string_equal(l.message, "");
    assert_int_equal(l.err, LP_OK);
    assert_int_equal(l.conf->listen_count, 3);
    assert_false(l.conf->listens[0].is_loopback);
    assert_span(l.conf->listens[1].host, "::1");
    assert_span(l.conf->listens[1].authority, "[::1]:8081");
    assert_true(l.conf->listens[1].is_loopback);
    assert_true(l.conf->listens[2].is_unix);
    assert_span(l.conf->listens[2].host, "/run/limpet.sock");
    assert_false(l.conf->has_admin);
    assert_span(l.conf->key_file, "/etc/limpet/key");
    assert_span(l.conf->tls_ca, "/etc/limpet/ca.pem");
    assert_int_equal(l.conf->threads, 4);
    assert_int_equal(l.conf->log_level, LP_LOG_DEBUG);
    assert_int_equal(l.conf->log_format, LP_LOG_JSON);
    assert_int_equal(l.conf->access_format, LP_LOG_JSON);
    assert_true(l.conf->access_log);
    assert_span(l.conf->log_file, "/var/log/limpet");
    assert_int_equal(l.conf->request_ms, 5000);
    assert_int_equal(l.conf->large_bodies_max, 1 << 30);
    assert_int_equal(l.conf->stop_ms, 0);
    assert_int_equal(l.conf->conn_max, 100);
    assert_int_equal(l.conf->server_count, 2);
    unload(&l);
}

static void server_of_the_whole_file(void **state)
{
    (void)state;
    struct loaded l = load(WHOLE_FILE, NULL);
    assert_int_equal(l.err, LP_OK);
    const struct lp_conf_server *s = &l.conf->servers[0];
    assert_span(s->name, "tools");
    assert_span(s->path, "/tools/mcp");
    assert_span(s->sse_path, "/tools/sse");
    assert_span(s->sse_upstream, "/sse");
    assert_int_equal(s->balance, LP_BALANCE_ROUND_ROBIN);
    assert_int_equal(s->gone_after_ms, 60000);
    assert_int_equal(s->connect_ms, 500); /* the top level's */
    assert_int_equal(s->first_byte_ms, 7200000);
    assert_int_equal(s->sse_post_ms, 1000);
    assert_int_equal(s->stalled_ms, 120000);
    assert_int_equal(s->ticket_age_ms, 7ULL * 86400000);
    assert_true(s->cookie_jar);
    assert_int_equal(s->body_max, 65536);
    assert_int_equal(s->comment_ms, 0);
    assert_int_equal(s->host_count, 3);
    assert_span(s->hosts[1], "[::1]:80");
    assert_int_equal(s->origin_count, 3);
    assert_span(s->origins[0], "https://app.example.com");
    assert_int_equal(s->lost_dialect_count, 2);
    assert_int_equal(s->lost_dialects[0].status, 400);
    assert_int_equal(s->lost_dialects[0].code, -32001);
    assert_span(s->lost_dialects[0].text, "no such session\n");
    assert_int_equal(s->lost_dialects[1].code, 0);
    assert_int_equal(s->plain_404_agent_count, 0);
    assert_int_equal(l.conf->servers[1].gone_after_ms, 5000);
    assert_span(l.conf->servers[1].sse_upstream, "/same");
    assert_span(l.conf->servers[1].replicas[0].path, "/same");
    unload(&l);
}

static void https_replicas_are_read(void **state)
{
    static const struct {
        const char *name, *host, *authority;
        uint16_t port;
        bool is_tls;
    } ROWS[] = {
        {"c:7/same", "c", "c:7", 7, false},
        {"d.example:443/same", "d.example", "d.example", 443, true},
        {"[::1]:8443/x", "::1", "[::1]:8443", 8443, true},
        {"e:80/same", "e", "e:80", 80, true},
    };
    (void)state;
    struct loaded l = load(WHOLE_FILE, NULL);
    assert_int_equal(l.conf->servers[1].replica_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct lp_conf_replica *r = &l.conf->servers[1].replicas[i];
        assert_span(r->name, ROWS[i].name);
        assert_span(r->address.host, ROWS[i].host);
        assert_span(r->address.authority, ROWS[i].authority);
        assert_int_equal(r->address.port, ROWS[i].port);
        assert_int_equal(r->address.is_tls, ROWS[i].is_tls);
    }
    unload(&l);
}

static void replicas_are_normalised(void **state)
{
    (void)state;
    struct loaded l = load(WHOLE_FILE, NULL);
    assert_int_equal(l.err, LP_OK);
    const struct lp_conf_replica *r = l.conf->servers[0].replicas;
    assert_int_equal(l.conf->servers[0].replica_count, 4);
    assert_span(r[0].name, "example.com:80/Mcp");
    assert_span(r[0].address.host, "example.com");
    assert_span(r[0].address.authority, "example.com");
    assert_int_equal(r[0].address.port, 80);
    assert_span(r[1].name, "b");
    assert_int_equal(r[1].weight, 3);
    assert_true(r[1].address.is_unix);
    assert_span(r[1].address.host, "/run/b.sock");
    assert_span(r[1].address.authority, "localhost");
    assert_span(r[1].path, "/tools/mcp");
    assert_span(r[2].name, "[fe80::1]:99/x");
    assert_span(r[2].address.host, "fe80::1");
    assert_span(r[2].address.authority, "[fe80::1]:99");
    assert_span(r[3].name, "unix:/run/c.sock:/m");
    unload(&l);
}

static void loopback_is_known(void **state)
{
    static const struct {
        const char *listen;
        bool is_loopback;
    } ROWS[] = {
        {"127.0.0.1:1", true},
        {"127.9.9.9:1", true},
        {"LOCALHOST:1", true},
        {"\"[::1]:1\"", true},
        {"unix:/a", true},
        {"0.0.0.0:1", false},
        {"127.example.com:1", false},
        {"\"[::]:1\"", false},
        {"128.0.0.1:1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, REPLICA "listen: %s\n", ROWS[i].listen);
        struct loaded l = load(text, NULL);
        assert_string_equal(l.message, "");
        assert_int_equal(l.conf->listens[0].is_loopback, ROWS[i].is_loopback);
        unload(&l);
    }
}

/* Server keys at the top are every server's defaults, replicas too; each server completes its own
 * copy of them. */
static void top_level_is_the_default_of_servers(void **state)
{
    (void)state;
    struct loaded l = load("body_limit: 1000\n"
                           "replicas: [http://a:1, http://b:1]\n"
                           "servers:\n"
                           "- {name: x, path: /x}\n"
                           "- {name: y, path: /y, body_limit: 2000}\n",
        NULL);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->servers[0].body_max, 1000);
    assert_int_equal(l.conf->servers[1].body_max, 2000);
    assert_span(l.conf->servers[0].replicas[1].path, "/x");
    assert_span(l.conf->servers[1].replicas[1].path, "/y");
    assert_span(l.conf->servers[1].replicas[1].name, "b:1/y");
    unload(&l);
}

static void aliases_and_single_values(void **state)
{
    (void)state;
    struct loaded l = load("replicas: &r [http://a:1]\n"
                           "servers: {name: one, replicas: *r, hosts: example.com}\n",
        NULL);
    assert_string_equal(l.message, "");
    assert_int_equal(l.conf->server_count, 1);
    assert_span(l.conf->servers[0].name, "one");
    assert_int_equal(l.conf->servers[0].host_count, 1);
    unload(&l);
}

#define AT "limpet.yaml:"
static const struct mistake MISTAKES[] = {
    /* the document */
    {"", {0}, AT "1: no replica is given; name at least one, like http://127.0.0.1:3001/mcp\n"},
    {"- a\n- b\n", {0}, AT "1: the file must be a mapping of keys\n"},
    {"hello", {0}, AT "1: the file must be a mapping of keys\n"},
    {"a: [1\nb: 2\n", {0},
        AT "2: this is not valid YAML: did not find expected ',' or ']', while parsing a flow "
           "sequence that begins on line 1\n"},
    {"listen: a\n\tadmin: b\n", {0},
        AT "2: this is not valid YAML: found a tab character that violates indentation, while "
           "scanning a plain scalar that begins on line 1\n"},
    {"a: 1\nb: \xff\n", {0}, AT "2: this is not valid YAML: invalid leading UTF-8 octet\n"},
    {"a: &x 1\nb: *y\n", {0}, AT "2: this is not valid YAML: found undefined alias\n"},
    {REPLICA "---\nlisten: a:1\n", {0},
        AT "3: a second YAML document begins here; one is accepted\n"},
    {REPLICA "---\n[\n", {0},
        AT "3: this is not valid YAML: did not find expected node content, while parsing a flow "
           "node that begins on line 3\n"},
    {REPLICA "[a]: 1\n", {0}, AT "2: a key must be a word\n"},
    {REPLICA "threads: 1\nadmin: off\nthreads: 2\n", {0},
        AT "4: threads: given twice, first on line 2\n"},
    {REPLICA "log: {level: info, level: warn}\n", {0},
        AT "2: log.level: given twice, first on line 2\n"},
    /* keys */
    {REPLICA "listn: 1\n", {0}, AT "2: listn: unknown key; did you mean listen?\n"},
    {REPLICA "log.level: info\n", {0},
        AT "2: log.level: unknown key; limpet.yaml(5) lists the "
           "known ones\n"},
    {REPLICA "xyzzy: 1\n", {0}, AT "2: xyzzy: unknown key; limpet.yaml(5) lists the known ones\n"},
    {REPLICA "a_key_that_is_far_too_long_to_be_like_any_other_key: 1\n", {0},
        AT "2: a_key_that_is_far_too_long_to_be_like_an: unknown key; limpet.yaml(5) lists the "
           "known ones\n"},
    {REPLICA "\"\": 1\n", {0}, AT "2: \"\": unknown key; limpet.yaml(5) lists the known ones\n"},
    {REPLICA "timeout: 1s\n", {0}, AT "2: timeout: unknown key; did you mean timeouts?\n"},
    {REPLICA "timeouts: {conect: 1s}\n", {0},
        AT "2: timeouts.conect: unknown key; did you mean connect?\n"},
    {REPLICA "timeouts: 5s\n", {0}, AT "2: timeouts: takes a mapping of keys\n"},
    {"servers:\n- replicas: http://a:1\n  listen: a:1\n  log: {}\n", {0},
        AT "3: servers[0].listen: this key belongs at the top level of the file\n" AT
           "4: servers[0].log: this key belongs at the top level of the file\n"},
    {"replicas: [{url: \"http://a:1\", balance: round_robin}]\n", {0},
        AT "1: replicas[0].balance: this key belongs to the server\n"},
    {"replicas: [{uri: \"http://a:1\"}]\n", {0},
        AT
        "1: replicas[0]: url is missing; write it like {url: \"http://10.0.0.1:3001/mcp\", name: "
        "a}\n" AT "1: replicas[0].uri: unknown key; did you mean url?\n"},
    {REPLICA "base: &b {threads: 2}\n<<: *b\n", {0},
        AT "2: base: unknown key; limpet.yaml(5) lists the known ones\n" AT
           "3: <<: merge keys are not read; server keys at the top level are every server's "
           "default\n"},
    /* words of a later release */
    {REPLICA "store: {sqlite: /a}\ndiscover: {dns: a}\n", {0},
        AT "2: store: comes with a later release; take the key out\n" AT
           "3: discover: comes with a later release; take the key out\n"},
    {REPLICA "pass: [/a, b, {to: any}, {path: /c, to: some}, /mcp, /a, [/d]]\n", {0},
        AT "2: pass[1]: \"b\" is not a path; it begins with '/' and has no query, like /mcp\n" AT
           "2: pass[2]: path is missing; write it like {path: /register, to: pinned}\n" AT
           "2: pass[3].to: \"some\" is not known here; use pinned or any\n" AT
           "2: pass[6]: takes a path like /mcp, not a list\n"},
    {REPLICA "pass: [/a, /mcp, {path: /a}]\n", {0},
        AT "2: pass[1]: /mcp is an MCP path, whose requests find their replica by themselves; "
           "leave it out\n" AT "2: pass[2]: /a is given twice\n"},
    {REPLICA "pass: /mcp\n", {0},
        AT "2: pass: /mcp is an MCP path, whose requests find their replica by themselves; leave "
           "it out\n"},
    {REPLICA "public_url: [\"https://a.example/mcp\", \"https://a.example/mcp?x=1\", a.example,\n"
             "\"unix:/a:/b\", {}]\n",
        {0},
        AT
        "2: public_url[1]: \"https://a.example/mcp?x=1\" is not a URL that clients could use; use "
        "https://host/path, without query\n" AT
        "2: public_url[2]: \"a.example\" is not a URL that clients could use; use "
        "https://host/path, without query\n" AT
        "3: public_url[3]: \"unix:/a:/b\" is not a URL that clients could use; use "
        "https://host/path, without query\n" AT
        "3: public_url[4]: takes a URL like https://mcp.example.com/mcp, not a mapping of keys\n"},
    {REPLICA "on_owner_lost: recover\n", {0},
        AT "2: on_owner_lost: \"recover\" comes with a later release; use not_found\n"},
    /* values */
    {REPLICA "threads:\n", {0}, AT "2: threads: has no value; leave the key out for the default\n"},
    {REPLICA "threads: ~\n", {0},
        AT "2: threads: has no value; leave the key out for the default\n"},
    {REPLICA "listen: null\n", {0},
        AT "2: listen: has no value; leave the key out for the default\n"},
    {REPLICA "threads: [1]\n", {0}, AT "2: threads: takes a number, not a list\n"},
    {REPLICA "admin: {a: 1}\n", {0},
        AT "2: admin: takes an address like 127.0.0.1:8080, not a mapping of keys\n"},
    {REPLICA "listen: {a: b}\n", {0},
        AT "2: listen: takes an address like 127.0.0.1:8080, not a mapping of keys\n"},
    {REPLICA "gone_after: [3s]\n", {0},
        AT "2: gone_after: takes a duration like 30s, not a list\n"},
    {REPLICA "body_limit: {a: 1}\n", {0},
        AT "2: body_limit: takes a size like 4MiB, not a mapping of keys\n"},
    {REPLICA "log: {access: [true]}\n", {0}, AT "2: log.access: takes true or false, not a list\n"},
    {REPLICA "path: [/a]\n", {0}, AT "2: path: takes a path like /mcp, not a list\n"},
    {REPLICA "hosts: {a: 1}\n", {0},
        AT "2: hosts: takes a host like app.example.com, not a mapping of keys\n"},
    {REPLICA "origins: {a: 1}\n", {0},
        AT "2: origins: takes an origin like https://app.example.com, not a mapping of keys\n"},
    {REPLICA "name: [a]\n", {0}, AT "2: name: takes one word or text, not a list\n"},
    {REPLICA "lost_dialects: [{status: 404}]\n", {0},
        AT "2: lost_dialects[0]: text is missing; write it like {status: 400, text: Unknown "
           "session}\n"},
    {REPLICA "threads: many\n", {0}, AT "2: threads: \"many\" is not a whole number\n"},
    {REPLICA "threads: 0\n", {0},
        AT "2: threads: \"0\" is out of range; from 1 to 64 is accepted\n"},
    {REPLICA "threads: 65\n", {0},
        AT "2: threads: \"65\" is out of range; from 1 to 64 is accepted\n"},
    {REPLICA "threads: -1\n", {0}, AT "2: threads: \"-1\" is not a whole number\n"},
    {REPLICA "connections_max: 1000001\n", {0},
        AT "2: connections_max: \"1000001\" is out of range; from 1 to 1000000 is accepted\n"},
    {REPLICA "gone_after: 30\n", {0},
        AT "2: gone_after: \"30\" is not a duration; use a number with its unit: 500ms, 30s, 5m, "
           "2h or 30d\n"},
    {REPLICA "gone_after: s\n", {0},
        AT "2: gone_after: \"s\" is not a duration; use a number with its unit: 500ms, 30s, 5m, 2h "
           "or 30d\n"},
    {REPLICA "gone_after: 0s\n", {0},
        AT "2: gone_after: \"0s\" is out of range; from 1ms to 1h is accepted\n"},
    {REPLICA "gone_after: 99999999999999999999d\n", {0},
        AT "2: gone_after: \"99999999999999999999d\" is out of range; from 1ms to 1h is "
           "accepted\n"},
    {REPLICA "gone_after: 18446744073709551615d\n", {0},
        AT "2: gone_after: \"18446744073709551615d\" is out of range; from 1ms to 1h is "
           "accepted\n"},
    {REPLICA "body_limit: 4MB\n", {0},
        AT "2: body_limit: \"4MB\" is not a size; use a number of bytes, or with a unit: 64KiB, "
           "4MiB or 1GiB\n"},
    {REPLICA "body_limit: 2GiB\n", {0},
        AT "2: body_limit: \"2GiB\" is out of range; from 1 to 1GiB is accepted\n"},
    {REPLICA "balance: random\n", {0},
        AT "2: balance: \"random\" is not known here; use least_sessions or round_robin\n"},
    {REPLICA "log: {level: trace, access: yes}\n", {0},
        AT "2: log.level: \"trace\" is not known here; use error, warn, info or debug\n" AT
           "2: log.access: \"yes\" is not a switch; use true or false\n"},
    {REPLICA "key_file: \"\"\n", {0}, AT "2: key_file: is empty; leave it out instead\n"},
    {REPLICA "key_file: \"a\\x1b[2J\"\n", {0},
        AT "2: key_file: \"a?[2J\" holds control characters\n"},
    {REPLICA "name: \"a b\"\n", {0},
        AT "2: name: \"a b\" is not a name; use 1 to 64 letters, digits, '.', '_' and '-'\n"},
    {REPLICA "path: mcp\n", {0},
        AT "2: path: \"mcp\" is not a path; it begins with '/' and has no query, like /mcp\n"},
    {REPLICA "path: /mcp?a=b\n", {0},
        AT "2: path: \"/mcp?a=b\" is not a path; it begins with '/' and has no query, like /mcp\n"},
    {REPLICA "path: off\n", {0},
        AT "2: path: \"off\" is not a path; it begins with '/' and has no query, like /mcp\n"},
    {REPLICA "hosts: [http://a]\n", {0},
        AT "2: hosts[0]: \"http://a\" is not a host; use a name or address, with :port if it "
           "matters, or \"*\" for any\n"},
    {REPLICA "hosts: [\"*.example.com\"]\n", {0},
        AT "2: hosts[0]: \"*.example.com\" is not a host; use a name or address, with :port if it "
           "matters, or \"*\" for any\n"},
    {REPLICA "origins: [app.example.com]\n", {0},
        AT "2: origins[0]: \"app.example.com\" is not an origin; use scheme://host or "
           "scheme://host:port, or \"*\" for any\n"},
    {REPLICA "origins: [https://a/b, \"://a\"]\n", {0},
        AT "2: origins[0]: \"https://a/b\" is not an origin; use scheme://host or "
           "scheme://host:port, or \"*\" for any\n" AT
           "2: origins[1]: \"://a\" is not an origin; use scheme://host or scheme://host:port, or "
           "\"*\" for any\n"},
    {REPLICA "plain_404_agents: [\"\"]\n", {0},
        AT "2: plain_404_agents[0]: is empty; leave it out instead\n"},
    {REPLICA "lost_dialects: [{status: 200, text: a}, {code: x}, b, []]\n", {0},
        AT "2: lost_dialects[0].status: \"200\" is out of range; from 400 to 599 is accepted\n" AT
           "2: lost_dialects[1]: status is missing; write it like {status: 400, text: Unknown "
           "session}\n" AT
           "2: lost_dialects[1].code: \"x\" is not a JSON-RPC code; use a number like -32001\n" AT
           "2: lost_dialects[2]: takes a mapping, like {status: 400, text: Unknown session}\n" AT
           "2: lost_dialects[3]: takes a mapping, like {status: 400, text: Unknown session}\n"},
    {REPLICA "lost_dialects: [{status: 400, code: 2147483648, text: a}]\n", {0},
        AT "2: lost_dialects[0].code: \"2147483648\" is not a JSON-RPC code; use a number like "
           "-32001\n"},
    /* across values */
    {"servers:\n- replicas: http://a:1\n- replicas: http://a:1\n", {0},
        AT "3: servers[1]: servers[0] and servers[1] are both named default; give each a name of "
           "its own\n" AT
           "3: servers[1]: servers[0] and servers[1] both have the path /mcp; give each its own\n"},
    {"replicas: http://a:1\nservers:\n- name: a\n- name: a\n  path: /b\n", {0},
        AT "4: servers[1].name: servers[0] and servers[1] are both named a; give each a name of "
           "its own\n"},
    {"replicas: http://a:1\nservers:\n- {name: a, path: /a}\n- name: b\n  sse_path: /a\n", {0},
        AT "5: servers[1].sse_path: servers[0] and servers[1] both have the path /a; give each its "
           "own\n"},
    {"replicas: http://a:1\nservers:\n- {name: a, sse_path: /a}\n- name: b\n  path: /a\n", {0},
        AT "5: servers[1].path: servers[0] and servers[1] both have the path /a; give each its "
           "own\n"},
    /* what was refused is not compared as if its default stood there */
    {"replicas: http://a:1\nservers:\n- {name: a b, path: a}\n- {name: c d, sse_path: e}\n", {0},
        AT "3: servers[0].name: \"a b\" is not a name; use 1 to 64 letters, digits, '.', '_' and "
           "'-'\n" AT
           "3: servers[0].path: \"a\" is not a path; it begins with '/' and has no query, like "
           "/mcp\n" AT
           "4: servers[1].name: \"c d\" is not a name; use 1 to 64 letters, digits, '.', '_' and "
           "'-'\n" AT
           "4: servers[1].sse_path: \"e\" is not a path; it begins with '/' and has no query, like "
           "/mcp\n"},
    {"servers:\n- name: a\n- name: b\n  path: /b\n  replicas: []\n", {0},
        AT "2: servers[0]: no replica is given; name at least one, like "
           "http://127.0.0.1:3001/mcp\n" AT
           "5: servers[1].replicas: no replica is given; name at least one, like "
           "http://127.0.0.1:3001/mcp\n"},
    {"servers: []\n", {0}, AT "1: servers: takes from 1 to 256 servers\n"},
    {"servers: [a]\n", {0}, AT "1: servers[0]: takes a mapping of server keys\n"},
    {"replicas: [http://a:1/mcp, http://A:1]\n", {0},
        AT "1: replicas[1]: two replicas are named a:1/mcp; each needs an address or a name of its "
           "own\n"},
    {"replicas: [{url: http://a:1, name: x}, {url: http://b:1, name: x}]\n", {0},
        AT "1: replicas[1]: two replicas are named x; each needs an address or a name of its "
           "own\n"},
    {"replicas: [{url: http://a:1, weight: 101}]\n", {0},
        AT "1: replicas[0].weight: \"101\" is out of range; from 1 to 100 is accepted\n"},
    {"replicas: [[http://a:1]]\n", {0},
        AT "1: replicas[0]: takes a URL like http://10.0.0.1:3001/mcp, not a list\n"},
    {REPLICA "sse_upstream: /sse\n", {0},
        AT "2: sse_upstream: has no effect without sse_path; give sse_path too\n"},
    {REPLICA "listen: [a:1, b:1, A:1]\n", {0},
        AT "2: listen: a:1 and a:1 are the same address; leave one of them out\n"},
    {REPLICA "listen: []\n", {0}, AT "2: listen: no address is given; use host:port\n"},
    {REPLICA "listen: 127.0.0.1:8081\n", {0},
        AT "1: listen (127.0.0.1:8081) and admin (127.0.0.1:8081) are the same address; give admin "
           "one of its own, or off\n"},
    {REPLICA "admin: 127.0.0.1:8080\n", {0},
        AT
        "2: admin: listen (127.0.0.1:8080) and admin (127.0.0.1:8080) are the same address; give "
        "admin one of its own, or off\n"},
    {REPLICA "listen: [\"0.0.0.0:8081\"]\n", {0},
        AT "1: listen (0.0.0.0:8081) and admin (127.0.0.1:8081) are the same address; give admin "
           "one of its own, or off\n"},
    {REPLICA "listen: [\"0.0.0.0:1\", \"127.0.0.1:1\"]\n", {0},
        AT "2: listen: 0.0.0.0:1 and 127.0.0.1:1 are the same address; leave one of them out\n"},
    {REPLICA "listen: x\nadmin: y\n", {0},
        AT "2: listen: \"x\" is not an address; use host:port, [IPv6]:port or unix:/path.sock\n" AT
           "3: admin: \"y\" is not an address; use host:port, [IPv6]:port or unix:/path.sock\n"},
};

static void each_mistake_has_its_message(void **state)
{
    (void)state;
    check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0]);
}

enum bad_address { FORM, PORT, LONG };

/* One bad replica in a file of its own, and what is said of it. */
static void check_bad_replica(const char *url, enum bad_address what)
{
    static const char *const SENTENCES[] = {
        [FORM] = ("is not a replica address; use http://host:port/path, https://host/path or "
                  "unix:/path.sock:/path"),
        [PORT] = "has a port that is not from 1 to 65535",
        [LONG] = "has a socket path over 107 bytes",
    };
    char text[512], message[512];
    snprintf(text, sizeof text, "replicas: [\"%s\"]\n", url);
    bool is_cut = strlen(url) > 60;
    snprintf(message, sizeof message, AT "1: replicas[0]: \"%.60s%s\" %s\n", url,
        is_cut ? "..." : "", SENTENCES[what]);
    struct loaded l = load(text, NULL);
    assert_string_equal(l.message, message);
    assert_int_equal(l.err, LP_ESYNTAX);
    unload(&l);
}

static void bad_replicas_are_refused(void **state)
{
    static const char *const BAD_FORMS[] = {"htp://x", "http://", "http:///mcp", "http://h:1/a?b",
        "http://h:1/a#b", "http://h:/", "http://h:x/", "http://h:1:2/", "http://[::1",
        "http://[::g]:1/", "http://[1.2.3.4]:1/", "http://[::1]x:1/", "http://-a:1/",
        "http://10.0.0.256:1/", "http://10.0.0:1/", "http://1.2.3.4.5:1/", "http://1..2.3:1/",
        "http://a b:1/", "http://h%41:1/", "10.0.0.1:3001", "unix:", "unix:/", "unix:a.sock",
        "unix:/a b", "unix:/a:mcp", "unix:/a:/mcp:/x?", "ftp://a:1/", "/mcp", "http"};
    static const char *const BAD_PORTS[] = {
        "http://h:0/", "http://h:65536/", "http://h:080/", "http://[::1]:99999999/"};
    (void)state;
    for (size_t i = 0; i < sizeof BAD_FORMS / sizeof BAD_FORMS[0]; i++)
        check_bad_replica(BAD_FORMS[i], FORM);
    for (size_t i = 0; i < sizeof BAD_PORTS / sizeof BAD_PORTS[0]; i++)
        check_bad_replica(BAD_PORTS[i], PORT);
    check_bad_replica("https://a:0/mcp", PORT);
    check_bad_replica("httpss://a", FORM);
    check_bad_replica("https:/a", FORM);
    char path[160] = "unix:/";
    memset(path + 6, 'a', 107);
    check_bad_replica(path, LONG);
}

/* Who writes a password into an address does not find it again in a log. */
static void passwords_are_not_repeated(void **state)
{
    (void)state;
    struct loaded l = load("replicas: [\"http://u:secret@h:1/\"]\n", NULL);
    assert_non_null(strstr(l.message, "\"http://***@h:1/\" is not a replica address"));
    assert_null(strstr(l.message, "secret"));
    assert_int_equal(l.err, LP_ESYNTAX);
    unload(&l);
}

static void bad_listeners_are_refused(void **state)
{
    static const struct mistake ROWS[] = {
        {ONE_REPLICA("listen: a:0"), {0},
            AT "2: listen: \"a:0\" has a port that is not from 1 to 65535\n"},
        {ONE_REPLICA("listen: \":8080\""), {0},
            AT "2: listen: \":8080\" is not an address; use host:port, [IPv6]:port or "
               "unix:/path.sock\n"},
        {ONE_REPLICA("listen: 8080"), {0},
            AT "2: listen: \"8080\" is not an address; use host:port, [IPv6]:port or "
               "unix:/path.sock\n"},
        {ONE_REPLICA("listen: http://a:1"), {0},
            AT "2: listen: \"http://a:1\" is not an address; use host:port, [IPv6]:port or "
               "unix:/path.sock\n"},
        {ONE_REPLICA("listen: [unix:/a:/b]"), {0},
            AT "2: listen[0]: \"unix:/a:/b\" is not an address; use host:port, [IPv6]:port or "
               "unix:/path.sock\n"},
    };
    char text[256];
    (void)state;
    check_mistakes(ROWS, sizeof ROWS / sizeof ROWS[0]);
    snprintf(text, sizeof text, REPLICA "listen: unix:/%0107d", 0);
    struct loaded l = load(text, NULL);
    assert_non_null(strstr(l.message, " has a socket path over 107 bytes\n"));
    unload(&l);
}

/* A replica that is the gateway itself, in every spelling that needs no name server. */
static void a_gateway_in_front_of_itself_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *listen;
        const char *replica;
        const char *own; /* NULL: another address */
    } ROWS[] = {
        {"127.0.0.1:80", "http://127.0.0.1/mcp", "127.0.0.1:80"},
        {"127.0.0.1:81", "http://127.0.0.1/mcp", NULL},
        {"127.0.0.1:80", "http://127.0.0.2/mcp", NULL},
        {"127.0.0.1:80", "http://localhost/x", "127.0.0.1:80"},
        {"127.0.0.1:80", "http://0.0.0.0/x", "127.0.0.1:80"},
        {"localhost:80", "http://127.0.0.1/x", "localhost:80"},
        {"localhost:80", "http://[::1]/x", "localhost:80"},
        {"localhost:80", "http://127.0.0.2/x", NULL},
        {"0.0.0.0:80", "http://127.0.0.7/x", "0.0.0.0:80"},
        {"0.0.0.0:80", "http://localhost/x", "0.0.0.0:80"}, {"0.0.0.0:80", "http://[::1]/x", NULL},
        {"[::]:80", "http://[::1]/x", "[::]:80"}, {"[::]:80", "http://localhost/x", "[::]:80"},
        {"[::]:80", "http://127.0.0.1/x", NULL}, {"[::1]:80", "http://[::]/x", "[::1]:80"},
        {"0.0.0.0:80", "http://10.0.0.1/x", NULL}, {"0.0.0.0:80", "http://0.0.0.0/x", "0.0.0.0:80"},
        {"a.test:80", "http://A.test/x", "a.test:80"}, {"a.test:80", "http://b.test/x", NULL},
        {"unix:/run/a", "unix:/run/a:/mcp", "unix:/run/a"},
        {"unix:/run/a", "unix:/run/b:/mcp", NULL},
        {"unix:/run/a", "http://127.0.0.1:8081/x", "127.0.0.1:8081"}, /* admin */
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char text[200], own[128] = "";
        snprintf(text, sizeof text,
            "listen: \"%s\"\nreplicas:\n- http://c.test/x\n- {url: \"%s\"}\n", ROWS[i].listen,
            ROWS[i].replica);
        if (ROWS[i].own)
            snprintf(own, sizeof own, "back to this gateway, which listens on %s; ", ROWS[i].own);
        struct loaded l = load(text, NULL);
        if (l.err != (ROWS[i].own ? LP_ESYNTAX : LP_OK) || !strstr(l.message, own))
            fail_msg("%s -> %s: %s", ROWS[i].listen, ROWS[i].replica, l.message);
        if (ROWS[i].own)
            assert_memory_equal(l.message, AT "4: replicas[1]", strlen(AT "4: replicas[1]"));
        unload(&l);
    }
    const char *const words[] = {"http://127.0.0.1:8080/mcp", NULL};
    struct loaded l = load(NULL, words);
    assert_int_equal(l.err, LP_EUSAGE);
    assert_string_equal(l.message,
        "URL 1: 127.0.0.1:8080 leads back to this gateway, which listens on 127.0.0.1:8080; name "
        "the address of the MCP server, or listen elsewhere\n");
    unload(&l);
}

static void expect_message(const char *text, const char *message)
{
    struct loaded l = load(text, NULL);
    assert_int_equal(l.err, LP_ESYNTAX);
    assert_string_equal(l.message, message);
    unload(&l);
}

/* Writes `count` times `part` behind `head`. */
static char *repeat(const char *head, const char *part, size_t count, const char *tail)
{
    char *text = malloc(strlen(head) + strlen(part) * count + strlen(tail) + 1);
    assert_non_null(text);
    char *end = stpcpy(text, head);
    for (size_t i = 0; i < count; i++)
        end = stpcpy(end, part);
    strcpy(end, tail);
    return text;
}

static void limits_are_told(void **state)
{
    static const struct {
        const char *head, *part;
        size_t count;
        const char *tail, *message;
    } ROWS[] = {
        {"", "#", (1 << 20) + 1, "", AT "1: the file is longer than 1 MiB\n"},
        {"a: ", "[", 8, "1]]]]]]]]\n" REPLICA,
            AT "1: a[0][0][0][0][0][0][0]: nested too deep\n" AT
               "1: a: unknown key; limpet.yaml(5) lists the known ones\n"},
        {REPLICA "listen: [a:1", ", a:1", 16, "]", AT "2: listen: has more than 16 items\n"},
        {"replicas: [http://a:1", ", http://a:1", 1024, "]",
            AT "1: replicas: has more than 1024 items\n"},
        {REPLICA "lost_dialects: [{status: 400, text: a}", ", {status: 400, text: a}", 32, "]",
            AT "2: lost_dialects: has more than 32 items\n"},
        {"servers: [a", ", a", 256, "]", AT "1: servers: takes from 1 to 256 servers\n"},
        {"[1", ",1", 1 << 16, "]", AT "1: the file has more than 65536 values\n"},
        {REPLICA "key_file: ", "a", 4097, "\n",
            AT "2: key_file: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" "
               "is too long; 4096 bytes are accepted\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char *text = repeat(ROWS[i].head, ROWS[i].part, ROWS[i].count, ROWS[i].tail);
        expect_message(text, ROWS[i].message);
        free(text);
    }
}

static void many_keys_are_told(void **state)
{
    char text[4096];
    size_t len = 0;
    (void)state;
    for (int i = 0; i < 257; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "k%d: 1\n", i);
    expect_message(text, AT "1: more than 256 keys\n");
}

/* A value that holds itself ends at the depth limit, one that doubles itself at the number limit.
 */
static void aliases_do_not_run_away(void **state)
{
    (void)state;
    struct loaded l = load("a: &a [*a]\n", NULL);
    assert_int_equal(l.err, LP_ESYNTAX);
    assert_non_null(strstr(l.message, "nested too deep"));
    unload(&l);
    l = load("a: &a [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n"
             "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
             "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
             "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
        NULL);
    assert_int_equal(l.err, LP_ESYNTAX);
    assert_non_null(strstr(l.message, "the file has more than 65536 values"));
    unload(&l);
}

static void a_cut_value_stays_utf8(void **state)
{
    (void)state;
    /* 59 letters, then a character of two bytes over the limit of 60. */
    expect_message(REPLICA "threads: "
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9z\n",
        AT
        "2: threads: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is not a "
        "whole number\n");
}

static void full_error_buffer_is_no_success(void **state)
{
    struct lp_conf *conf = NULL;
    struct lp_buf errors;
    struct lp_conf_source source = {
        .file_name = LP_SPAN("a"), .file_text = LP_SPAN("threads: x\nlisten: y\n")};
    (void)state;
    lp_buf_init(&errors, 20);
    assert_int_equal(lp_conf_load(&source, &conf, &errors), LP_ESYNTAX);
    assert_null(conf);
    assert_span(lp_buf_span(&errors), "");
    lp_buf_release(&errors);
    lp_conf_free(NULL);
}

static struct lp_buf print(const struct lp_conf *conf)
{
    struct lp_buf out;
    lp_buf_init(&out, 1 << 20);
    assert_int_equal(lp_conf_print(conf, &out), LP_OK);
    assert_int_equal(lp_buf_append(&out, lp_span("", 1)), LP_OK);
    return out;
}

static const char ODD_TEXTS[] =
    "replicas: [{url: http://a, name: b}]\n"
    "sse_path: /s\n"
    "key_file: \" a: #b\"\n"
    "log: {file: \"null\"}\n"
    "comment_every: off\n"
    "plain_404_agents: [-a, .b, \"c:\", \"\\\"\\\\\", \"\\u00e9\\u20ac\\U0001F600\"]\n"
    "lost_dialects: [{status: 400, text: \"\\0\\x7f\\x85\\u2028\\ufeff\\ud7ff\\U0010FFFF\"}]\n";

/* parse . print = id: what is printed reads back, and prints the same again. */
static void printed_snapshot_reads_back(void **state)
{
    static const char *const FILES[] = {WHOLE_FILE, REPLICA, ODD_TEXTS};
    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        struct loaded first = load(FILES[i], NULL);
        assert_string_equal(first.message, "");
        struct lp_buf one = print(first.conf);
        struct loaded second = load(one.ptr, NULL);
        assert_string_equal(second.message, "");
        struct lp_buf two = print(second.conf);
        assert_string_equal(one.ptr, two.ptr);
        assert_true(lp_span_eq(
            first.conf->servers[0].replicas[0].name, second.conf->servers[0].replicas[0].name));
        if (first.conf->servers[0].lost_dialect_count)
            assert_true(lp_span_eq(first.conf->servers[0].lost_dialects[0].text,
                second.conf->servers[0].lost_dialects[0].text));
        lp_buf_release(&one);
        lp_buf_release(&two);
        unload(&first);
        unload(&second);
    }
}

static void printed_snapshot_is_yaml(void **state)
{
    (void)state;
    struct loaded l = load(REPLICA "admin: off\nlog: {access: true}\n", NULL);
    struct lp_buf out = print(l.conf);
    assert_string_equal(out.ptr,
        "listen:\n"
        "  - 127.0.0.1:8080\n"
        "admin: off\n"
        "threads: 1\n"
        "log:\n"
        "  level: info\n"
        "  access: true\n"
        "  format: text\n"
        "large_bodies_limit: 256MiB\n"
        "timeouts:\n"
        "  request: 30s\n"
        "stop_after: 10s\n"
        "connections_max: 9000\n"
        "waiting_max: 1000\n"
        "servers:\n"
        "  - name: default\n"
        "    replicas:\n"
        "      - url: http://a:1/mcp\n"
        "        weight: 1\n"
        "    path: /mcp\n"
        "    balance: least_sessions\n"
        "    on_owner_lost: not_found\n"
        "    cookie_jar: false\n"
        "    body_limit: 4MiB\n"
        "    comment_every: 15s\n"
        "    gone_after: 3s\n"
        "    timeouts:\n"
        "      connect: 2s\n"
        "      first_byte: 5m\n"
        "      sse_post: 10s\n"
        "      stalled: 1m\n"
        "    ticket_age: 30d\n"
        "    plain_404_agents:\n"
        "      - Go-http-client/\n");
    size_t len = out.len - 1;
    lp_buf_release(&out);
    /* Any limit short of the whole text is a failure, and never a crash. */
    for (size_t max = 0; max < len; max++) {
        lp_buf_init(&out, max);
        assert_int_equal(lp_conf_print(l.conf, &out), LP_ELIMIT);
        lp_buf_release(&out);
    }
    unload(&l);
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_gateway_in_front_of_itself_is_refused),
        cmocka_unit_test(smallest_file_gets_the_defaults),
        cmocka_unit_test(whole_file_is_read),
        cmocka_unit_test(server_of_the_whole_file),
        cmocka_unit_test(https_replicas_are_read),
        cmocka_unit_test(replicas_are_normalised),
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(top_level_is_the_default_of_servers),
        cmocka_unit_test(aliases_and_single_values),
        cmocka_unit_test(each_mistake_has_its_message),
        cmocka_unit_test(bad_replicas_are_refused),
        cmocka_unit_test(passwords_are_not_repeated),
        cmocka_unit_test(bad_listeners_are_refused),
        cmocka_unit_test(limits_are_told),
        cmocka_unit_test(many_keys_are_told),
        cmocka_unit_test(aliases_do_not_run_away),
        cmocka_unit_test(a_cut_value_stays_utf8),
        cmocka_unit_test(full_error_buffer_is_no_success),
        cmocka_unit_test(printed_snapshot_reads_back),
        cmocka_unit_test(printed_snapshot_is_yaml),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
