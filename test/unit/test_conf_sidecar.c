/* The configuration of a sidecar: its keys and flags, which of them belong to whom, and the owner
 * id that is put in after the load (conf/conf.h). */
#include "conf_harness.h"

static struct loaded load_sidecar(const char *text, const char *const *words)
{
    struct lp_conf_source source = {.seat = LP_SEAT_SIDECAR, .argv = words};
    if (text) {
        source.file_name = LP_SPAN("limpet.yaml");
        source.file_text = lp_span_str(text);
    }
    while (words && words[source.argc])
        source.argc++;
    return load_source(&source);
}

static void flags_make_a_fleet(void **state)
{
    static const char *const WORDS[] = {"--local", "http://127.0.0.1:3000/x", "--self", "m1",
        "--peer", "m2=http://b:8080", "--peer=m3=https://c/", "--ids", "owner", "--replay=fly",
        "--sse-path", "/sse", NULL};
    (void)state;
    struct loaded l = load_sidecar(NULL, WORDS);
    assert_string_equal(l.message, "");
    const struct lp_conf_server *server = &l.conf->servers[0];
    assert_true(l.conf->is_sidecar && l.conf->server_count == 1 && l.conf->threads == 1);
    assert_true(l.conf->ids == LP_IDS_OWNER && l.conf->replay == LP_REPLAY_FLY);
    assert_span(l.conf->self, "m1");
    assert_int_equal(server->replica_count, 3);
    assert_int_equal(server->peer_count, 2);
    assert_span(server->replicas[0].path, "/x");
    assert_span(server->replicas[0].name, "127.0.0.1:3000/x");
    assert_false(server->replicas[0].is_peer);
    assert_span(server->replicas[1].name, "m2");
    assert_span(server->replicas[1].address.authority, "b:8080");
    assert_span(server->replicas[2].name, "m3");
    assert_true(server->replicas[1].is_peer && server->replicas[2].is_peer);
    assert_true(server->replicas[2].address.is_tls);
    assert_int_equal(lp_conf_set_self(l.conf, LP_SPAN("m1")), LP_OK);
    assert_span(server->replicas[0].name, "m1");
    assert_int_equal(server->replica_count, 3);
    unload(&l);
}

static void the_file_does_too(void **state)
{
    (void)state;
    struct loaded l = load_sidecar("local: http://127.0.0.1:3000\n"
                                   "self_from_hostname: true\n"
                                   "peers: [\"m1=http://a:1\", \"m2=http://b:1\", m3=http://c:1]\n",
        NULL);
    assert_string_equal(l.message, "");
    const struct lp_conf_server *server = &l.conf->servers[0];
    assert_true(l.conf->ids == LP_IDS_SEALED && l.conf->replay == LP_REPLAY_OFF);
    assert_true(l.conf->self_from_hostname && l.conf->self.len == 0);
    assert_int_equal(server->replica_count, 4);
    assert_int_equal(lp_conf_set_self(l.conf, LP_SPAN("m2")), LP_OK); /* its own entry goes */
    assert_int_equal(server->replica_count, 3);
    assert_span(server->replicas[0].name, "m2");
    assert_span(server->replicas[1].name, "m1");
    assert_span(server->replicas[2].name, "m3");
    unload(&l);
}

static void without_an_owner_nothing_changes(void **state)
{
    static const char *const WORDS[] = {
        "--local", "http://127.0.0.1:3000", "--peer", "m2=http://b:8080", NULL};
    (void)state;
    struct loaded l = load_sidecar(NULL, WORDS);
    assert_int_equal(lp_conf_set_self(l.conf, LP_SPAN("")), LP_OK);
    assert_int_equal(l.conf->self.len, 0);
    assert_span(l.conf->servers[0].replicas[0].name, "127.0.0.1:3000/mcp");
    assert_int_equal(l.conf->servers[0].replica_count, 2);
    unload(&l);
}

static const struct {
    const char *text;
    const char *words[12];
    const char *message;
} MISTAKES[] = {
    {NULL, {"--self", "m1"},
        "the server beside this sidecar is not given; name it, like --local "
        "http://127.0.0.1:3001/mcp\n"},
    {"self: m1\npeers: [m2=http://b:1]\n", {NULL},
        "limpet.yaml:1: the server beside this sidecar is not given; name it, like --local "
        "http://127.0.0.1:3001/mcp\n"},
    {NULL, {"--local", "http://a:1", "--threads", "2", "--balance=round_robin", "http://b:1"},
        "--threads: belongs to limpet gateway, not here\n"
        "--balance: belongs to limpet gateway, not here\n"
        "URL 1: a sidecar has one server, named with --local, and a --peer for each other "
        "sidecar\n"},
    {"local: http://a:1\nservers: [{name: a}]\nreplicas: [http://b:1]\n", {NULL},
        "limpet.yaml:2: servers: belongs to limpet gateway, not here\n"
        "limpet.yaml:3: replicas: a sidecar has one server, named with --local, and a --peer "
        "for each other sidecar\n"},
    {NULL, {"--local", "http://a:1", "--local", "http://b:1"}, "--local: has more than 1 items\n"},
    {NULL, {"--local", "http://127.0.0.1:8080"},
        "--local: 127.0.0.1:8080 leads back to this gateway, which listens on 127.0.0.1:8080; "
        "name the address of the MCP server, or listen elsewhere\n"},
    {NULL, {"--local", "http://a:1", "--peer", "m2", "--peer", "=http://b:1", "--peer", "m2=b"},
        "--peer: \"m2\" is not a peer; use its owner id and address, like "
        "m2=http://10.0.0.2:8080\n"
        "--peer: \"=http://b:1\" is not a peer; use its owner id and address, like "
        "m2=http://10.0.0.2:8080\n"
        "--peer: \"b\" is not a replica address; use http://host:port/path, https://host/path "
        "or unix:/path.sock:/path\n"},
    {NULL, {"--local", "http://a:1", "--peer", "m2=http://b:1/mcp"},
        "--peer: \"m2=http://b:1/mcp\" names a path; a peer serves the same paths as this "
        "sidecar, so leave it out\n"},
    {NULL, {"--local", "http://a:1", "--peer", "m2=http://b:1", "--peer", "m2=http://c:1"},
        "--peer: two peers have the owner id m2; each has one of its own\n"},
    {"local: http://a:1\npeers: [{m2: http://b:1}]\n", {NULL},
        "limpet.yaml:2: peers[0]: takes a peer like m2=http://10.0.0.2:8080, not a mapping of "
        "keys\n"},
    {NULL, {"--local", "http://a:1", "--replay", "on", "--ids", "plain"},
        "--replay: \"on\" is not known here; use off, fly or fly-instance\n"
        "--ids: \"plain\" is not known here; use sealed or owner\n"},
    {NULL, {"--local", "http://a:1", "--peers-dns", "unix:/run/a.sock"},
        "--peers-dns: takes a URL like http://sidecars.internal:8080, without a path; "
        "certificates do not hold the addresses that a name has, so for https list the peers, "
        "or use peers_file\n"},
    {"local: http://a:1\npeers_dns: http://b\npeers_file: f\npeers_every: 10ms\n", {NULL},
        "limpet.yaml:4: peers_every: \"10ms\" is out of range; from 100ms to 1h is accepted\n"
        "limpet.yaml:3: peers_file: peers are looked for in one place; give either peers_dns "
        "or peers_file\n"},
    {NULL, {"--local", "http://a:1", "--zzzzzz"},
        "--zzzzzz: unknown flag; limpet sidecar --help lists them\n"},
    {NULL, {"--peer", "m2=http://b:1"},
        "the server beside this sidecar is not given; name it, like --local "
        "http://127.0.0.1:3001/mcp\n"},
};

static void each_mistake_has_its_message(void **state)
{
    (void)state;
    size_t bad = 0;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        struct loaded l = load_sidecar(MISTAKES[i].text, MISTAKES[i].words);
        if (!l.err || strcmp(l.message, MISTAKES[i].message) != 0) {
            print_error("row %zu\n--- got\n%s--- want\n%s", i, l.message, MISTAKES[i].message);
            bad++;
        }
        unload(&l);
    }
    assert_int_equal(bad, 0);
}

static void peers_may_be_looked_up(void **state)
{
    static const char *const WORDS[] = {
        "--local", "http://a:1", "--peers-dns=http://All.Test", "--peers-every", "1m", NULL};
    (void)state;
    struct loaded l = load_sidecar(NULL, WORDS);
    assert_string_equal(l.message, "");
    assert_true(lp_conf_finds_peers(l.conf));
    assert_span(l.conf->peers_dns.address.host, "all.test");
    assert_int_equal(l.conf->peers_dns.address.port, 80);
    assert_int_equal(l.conf->peers_every_ms, 60000);
    assert_int_equal(l.conf->servers[0].replica_count, 1);
    unload(&l);
    l = load_sidecar("local: http://a:1\npeers_file: /etc/peers\n", NULL);
    assert_string_equal(l.message, "");
    assert_true(lp_conf_finds_peers(l.conf));
    assert_int_equal(l.conf->peers_every_ms, 5000);
    unload(&l);
    l = load_sidecar("local: http://a:1\n", NULL);
    assert_false(lp_conf_finds_peers(l.conf));
    unload(&l);
}

static void a_peer_is_made_of_a_line(void **state)
{
    static const struct {
        const char *url;
        int err;
    } ROWS[] = {{"http://h:1", LP_OK}, {"https://h/", LP_OK}, {"unix:/run/a.sock", LP_OK},
        {"http://h:1/mcp", LP_ESYNTAX}, {"h:1", LP_ESYNTAX}, {"", LP_ESYNTAX},
        {"http://h:0", LP_ERANGE}};
    char room[LP_CONF_PEER_MAX], longest[LP_CONF_PEER_MAX];
    struct lp_conf_replica peer;
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_int_equal(
            lp_conf_peer_make(LP_SPAN("m2"), lp_span_str(ROWS[i].url), room, &peer), ROWS[i].err);
    assert_int_equal(lp_conf_peer_make(LP_SPAN("m2"), LP_SPAN("https://H:9"), room, &peer), LP_OK);
    assert_span(peer.name, "m2");
    assert_span(peer.address.authority, "h:9");
    assert_true(peer.is_peer && peer.address.is_tls && peer.address.port == 9);
    assert_int_equal(lp_conf_peer_make(LP_SPAN(""), LP_SPAN("http://[::1]:9"), room, &peer), LP_OK);
    assert_int_equal(peer.name.len, 0);
    memset(longest, 'a', sizeof longest);
    assert_int_equal(
        lp_conf_peer_make(LP_SPAN("m2"), lp_span(longest, sizeof longest - 1), room, &peer),
        LP_ETOO_LONG);
}

static void a_gateway_has_none_of_it(void **state)
{
    static const struct mistake ROWS[] = {
        {NULL, {"http://a:1", "--self", "m1", "--peer", "m2=http://b:1"},
            "--self: belongs to limpet sidecar, not here\n"
            "--peer: belongs to limpet sidecar, not here\n"},
        {"local: http://a:1\nids: owner\n", {"http://a:1"},
            "limpet.yaml:1: local: belongs to limpet sidecar, not here\n"
            "limpet.yaml:2: ids: belongs to limpet sidecar, not here\n"},
    };
    (void)state;
    check_mistakes(ROWS, sizeof ROWS / sizeof ROWS[0]);
}

static void help_names_the_flags_of_each(void **state)
{
    static const char *const OWN[] = {
        "  --self ID", "  --local URL", "  --peer ID=URL", "  --ids HOW", "  --replay HOW"};
    struct lp_buf sidecar, gateway;
    (void)state;
    lp_buf_init(&sidecar, 1 << 16);
    lp_buf_init(&gateway, 1 << 16);
    assert_int_equal(lp_conf_sidecar_help(&sidecar), LP_OK);
    assert_int_equal(lp_conf_help(&gateway), LP_OK);
    struct lp_span theirs = lp_buf_span(&sidecar), others = lp_buf_span(&gateway);
    for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++) {
        assert_true(lp_span_search(theirs, lp_span_str(OWN[i])) < theirs.len);
        assert_int_equal(lp_span_search(others, lp_span_str(OWN[i])), others.len);
    }
    assert_int_equal(lp_span_search(theirs, LP_SPAN("--threads")), theirs.len);
    assert_true(lp_span_search(theirs, LP_SPAN("--listen")) < theirs.len);
    lp_buf_release(&sidecar);
    lp_buf_release(&gateway);
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(flags_make_a_fleet),
        cmocka_unit_test(the_file_does_too),
        cmocka_unit_test(without_an_owner_nothing_changes),
        cmocka_unit_test(each_mistake_has_its_message),
        cmocka_unit_test(peers_may_be_looked_up),
        cmocka_unit_test(a_peer_is_made_of_a_line),
        cmocka_unit_test(a_gateway_has_none_of_it),
        cmocka_unit_test(help_names_the_flags_of_each),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
