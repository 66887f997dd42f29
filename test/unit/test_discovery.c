/* Peers that are looked up (gate/discovery.c): in a file, or by a name whose addresses are asked
 * who they are. The sidecar is m1; the shell's look-ups are answered by hand. */
#include "engine_harness.h"

#define UUID "7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":\"q7\",\"method\":\"tools/list\"}"
#define WALL_MS 1800000000000ull

struct finder {
    struct world *w;
    struct lp_shell shell;
    struct lp_conf_replica local;
    uint32_t looks;
    bool is_file;
    char text[64];
    int64_t look_result;
    char said[16384]; /* every line of the log */
    struct lp_endpoint to;
    char host[64];
};

static int64_t on_action(void *ctx, const struct lp_action *action)
{
    struct finder *f = ctx;
    if (action->kind == LP_ACT_LOOK) {
        f->looks++;
        f->is_file = action->u.look.is_file;
        snprintf(
            f->text, sizeof f->text, "%.*s", (int)action->u.look.text.len, action->u.look.text.ptr);
        return f->look_result;
    }
    if (action->kind == LP_ACT_LOG) {
        size_t used = strlen(f->said);
        snprintf(f->said + used, sizeof f->said - used, "%.*s\n", (int)action->u.log.line.len,
            action->u.log.line.ptr);
    }
    if (action->kind == LP_ACT_CONNECT) {
        f->to = action->u.connect;
        snprintf(f->host, sizeof f->host, "%.*s", (int)f->to.host.len, f->to.host.ptr);
    }
    return perform(f->w, action);
}

static void start(struct finder *f, enum lp_ids ids, bool is_file)
{
    struct world *w = f->w;
    lp_engine_free(w->engine);
    f->local = w->replica;
    f->local.name = LP_SPAN("m1");
    w->server.replicas = &f->local;
    w->conf.is_sidecar = true;
    w->conf.self = LP_SPAN("m1");
    w->conf.ids = ids;
    w->conf.peers_every_ms = 5000;
    w->conf.log_level = LP_LOG_INFO;
    if (is_file)
        w->conf.peers_file = LP_SPAN("/etc/peers");
    else
        w->conf.peers_dns.address = (struct lp_conf_address){
            .host = LP_SPAN("all.test"), .port = 80, .authority = LP_SPAN("all.test")};
    f->shell = (struct lp_shell){f, on_action};
    struct lp_engine_args args = {.shell = &f->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = WALL_MS};
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    tell_kind(w, LP_EV_TIMER, 0);
}

static int set_up(void **state)
{
    static struct finder f;
    f = (struct finder){.w = new_world(1)};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct finder *f = *state;
    void *world = f->w;
    return teardown(&world);
}

static void found(struct finder *f, const char *text)
{
    struct lp_event event = {.kind = LP_EV_LOOKED};
    event.u.looked.text = lp_span_str(text);
    tell(f->w, event);
}

static void not_found(struct finder *f, int error)
{
    struct lp_event event = {.kind = LP_EV_LOOKED};
    event.u.looked.error = error;
    tell(f->w, event);
}

static void pass_round(struct finder *f)
{
    pass_time(f->w, 5 * SECOND_US);
}

/* A request of the owner's session; 0: it was passed on, else the status. */
static int ask(struct finder *f, const char *owner)
{
    struct world *w = f->w;
    char fields[128], status[4] = "";
    tell_kind(w, LP_EV_BROKEN, CLIENT);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    accept_client(w, false, "192.0.2.7:1");
    w->connects = 0;
    snprintf(fields, sizeof fields, "Mcp-Session-Id: %s." UUID "\r\n", owner);
    request(w, "POST /mcp", fields, LIST);
    if (w->connects) {
        tell_kind(w, LP_EV_CONNECTED, REPLICA);
        assert_true(has(w, REPLICA, "limpet-hop: h1."));
        return 0;
    }
    assert_true(w->written_len[CLIENT] > 12);
    memcpy(status, w->written[CLIENT] + 9, 3);
    return atoi(status);
}

static void assert_says(const struct finder *f, const char *text)
{
    if (!strstr(f->said, text))
        fail_msg("never said %s:\n%s", text, f->said);
}

static uint32_t peer_count(const struct finder *f)
{
    struct lp_metrics_replica rows[4];
    uint32_t count = lp_engine_replicas(f->w->engine, rows, 4);
    for (uint32_t i = 0; i < count && i < 4; i++)
        assert_int_equal(rows[i].is_peer, i > 0);
    return count - 1;
}

/* --- in a file --- */

static void test_file(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, true);
    assert_int_equal(f->looks, 1);
    assert_true(f->is_file);
    assert_string_equal(f->text, "/etc/peers");
    assert_int_equal(ask(f, "m2"), 503); /* nothing is known yet */
    assert_true(has(f->w, CLIENT, "retry-after: 1\r\n") && has(f->w, CLIENT, "\"id\":\"q7\""));
    assert_says(f, "peers_unsettled");
    found(f,
        "# all of them\nm1=http://10.0.0.1:80\n\n m2 = http://10.0.0.2:80/\r\n"
        "m3=https://m3.test");
    assert_int_equal(peer_count(f), 2);
    assert_says(f, "peer m2 is found (10.0.0.2)");
    assert_int_equal(ask(f, "m2"), 0);
    assert_string_equal(f->host, "10.0.0.2");
    assert_int_equal(ask(f, "m3"), 0);
    assert_true(f->to.is_tls && f->to.port == 443);
}

/* A session of an unknown owner is lost once a look that began after it was asked for is through.
 */
static void test_file_changes(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, true);
    found(f, "m2=http://10.0.0.2:80\n");
    assert_int_equal(ask(f, "m4"), 503);
    pass_time(f->w, SECOND_US);
    assert_int_equal(f->looks, 2); /* sooner than in its turn */
    found(f, "m2=http://10.0.0.2:80\nm3=http://10.0.0.3:80\n");
    assert_int_equal(ask(f, "m4"), 404);
    assert_true(has(f->w, CLIENT, "-32001"));
    assert_int_equal(ask(f, "m3"), 0); /* without a restart */
    assert_int_equal(f->looks, 2);
    pass_round(f);
    assert_int_equal(f->looks, 3);
    found(f, "m3=http://10.0.0.3:80\n");
    assert_says(f, "peer m2 has left (10.0.0.2)");
    assert_int_equal(peer_count(f), 1);
    assert_int_equal(ask(f, "m2"), 503);
    pass_time(f->w, SECOND_US);
    found(f, "m3=http://10.0.0.3:80\n");
    assert_int_equal(ask(f, "m2"), 404);
}

/* What is under way ends as it began; only then is the place another's. */
static void test_place_in_use(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    start(f, LP_IDS_OWNER, true);
    found(f, "m2=http://10.0.0.2:80\n");
    assert_int_equal(ask(f, "m2"), 0);
    pass_round(f);
    found(f, "m3=http://10.0.0.3:80\n");
    const struct lp_fleet *fleet = &w->engine->servers[0].fleet;
    assert_int_equal(fleet->count, 3);
    answer_with(w, "200 OK", "", "{\"of\":\"m2\"}");
    assert_true(has(w, CLIENT, "{\"of\":\"m2\"}"));
    assert_says(f, "m2");
    assert_int_equal(fleet->replicas[1].pooled_count, 0); /* nothing is kept of who has left */
    pass_round(f);
    found(f, "m3=http://10.0.0.3:80\nm4=http://10.0.0.4:80\n");
    assert_int_equal(fleet->count, 3);
    assert_int_equal(ask(f, "m4"), 0);
    assert_string_equal(f->host, "10.0.0.4");
    assert_int_equal(ask(f, "m3"), 0);
}

/* The same owner at another address is another peer; checks of the old one end. */
static void test_moved_while_gone(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    start(f, LP_IDS_OWNER, true);
    found(f, "m2=http://10.0.0.2:80\n");
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST /mcp", "Mcp-Session-Id: m2." UUID "\r\n", LIST);
    struct lp_event refused = {
        .kind = LP_EV_CONNECT_FAILED, .conn = REPLICA, .u.error = LP_EREFUSED};
    tell(w, refused);
    tell(w, refused);
    assert_int_equal(w->engine->servers[0].fleet.replicas[1].state, LP_REPLICA_GONE);
    pass_round(f); /* a check begins */
    found(f, "m2=http://10.0.0.9:80\n");
    tell(w, refused);
    w->connects = 0;
    pass_time(w, SECOND_US);
    assert_int_equal(w->connects, 0);
    assert_int_equal(ask(f, "m2"), 0);
    assert_string_equal(f->host, "10.0.0.9");
}

static void test_file_mistakes(void **state)
{
    struct finder *f = *state;
    static const char *const BAD[] = {"m2=http://10.0.0.3:80\nm-3=http://10.0.0.3:80\n", "m2\n",
        "m2=ftp://10.0.0.2\n", "m2=http://10.0.0.2:80/mcp\n", "m2=http://10.0.0.2:70000\n"};
    char longer[1024];
    start(f, LP_IDS_OWNER, true);
    found(f, "m2=http://10.0.0.2:80\n");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        pass_round(f);
        found(f, BAD[i]);
        assert_int_equal(ask(f, "m2"), 0); /* those that were known stay */
        assert_string_equal(f->host, "10.0.0.2");
        assert_int_equal(ask(f, "m9"), 503);
    }
    assert_says(f, "in /etc/peers: line 2 is not a peer; write it like m2=http://10.0.0.2:8080");
    snprintf(longer, sizeof longer, "m2=http://%0600d:80\n", 1);
    pass_round(f);
    found(f, longer);
    assert_int_equal(ask(f, "m9"), 503);
    assert_int_equal(
        f->w->engine->metrics.cells[LP_METRIC_PEER_LOOK_FAILURES], sizeof BAD / sizeof *BAD + 1);
    pass_round(f);
    found(f, "m2=http://10.0.0.2:80\n");
    assert_says(f, "peers are found again");
    (void)ask(f, "m9");
    pass_round(f);
    found(f, "m2=http://10.0.0.2:80\n");
    assert_int_equal(ask(f, "m9"), 404);
}

static void test_look_fails(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, true);
    not_found(f, LP_ENOT_FOUND);
    assert_says(f, "in /etc/peers: there is no such file; those that are known stay");
    assert_int_equal(ask(f, "m2"), 503);
    f->look_result = LP_ENOMEM;
    pass_round(f);
    assert_int_equal(ask(f, "m2"), 503);
    f->look_result = LP_OK;
    pass_round(f);
    found(f, "m2=http://10.0.0.2:80\n");
    assert_int_equal(ask(f, "m2"), 0);
    tell_kind(f->w, LP_EV_STOP, 0);
    uint32_t looks = f->looks;
    pass_round(f);
    assert_int_equal(f->looks, looks); /* who stops looks for nobody */
}

static void test_too_many(void **state)
{
    struct finder *f = *state;
    static char text[LP_FOUND_MAX * 32 + 64];
    size_t len = 0;
    start(f, LP_IDS_OWNER, true);
    for (uint32_t i = 0; i <= LP_FOUND_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "p%u=http://h%u:80\n", i, i);
    found(f, text);
    assert_says(f, "there are more than 512 peers");
    assert_int_equal(ask(f, "p0"), 0);
    assert_int_equal(ask(f, "nobody"), 503);
}

/* --- by a name --- */

/* Whom we ask connects and answers with this owner's mark. */
static void answer_question(struct finder *f, const char *owner)
{
    struct world *w = f->w;
    unsigned char nonce[LP_HOP_NONCE_BYTES] = {0};
    static unsigned char fresh;
    char room[LP_HOP_TEXT_MAX], fields[LP_HOP_TEXT_MAX + 32];
    struct lp_span rest;
    w->written_len[REPLICA] = 0;
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    struct lp_span all = lp_span(w->written[REPLICA], w->written_len[REPLICA]);
    assert_true(lp_span_starts(all, LP_SPAN("GET " LP_QUESTION_PATH "?")));
    struct lp_span asked = lp_span_split(lp_span_from(all, 4), ' ', &rest);
    struct lp_hop_claim claim = lp_discovery_claim(asked, lp_span_str(owner));
    nonce[0] = ++fresh;
    struct lp_span mark = lp_hop_sign(&w->ring, &claim, WALL_MS, nonce, room);
    snprintf(fields, sizeof fields, "Limpet-Hop: %.*s\r\n", (int)mark.len, mark.ptr);
    answer_with(w, "204 No Content", fields, "");
}

static void test_name(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, false);
    assert_false(f->is_file);
    assert_string_equal(f->text, "all.test");
    found(f, "10.0.0.2\n");
    assert_string_equal(f->host, "10.0.0.2");
    assert_int_equal(f->to.port, 80);
    assert_int_equal(peer_count(f), 0);
    answer_question(f, "m2");
    assert_says(f, "peer m2 is found (10.0.0.2)");
    assert_int_equal(peer_count(f), 1);
    assert_int_equal(ask(f, "m2"), 0);
    assert_int_equal(ask(f, "m9"), 503);
    pass_time(f->w, SECOND_US);
    found(f, "10.0.0.2\n");
    answer_question(f, "m2");
    assert_int_equal(ask(f, "m9"), 404);
    assert_int_equal(peer_count(f), 1);
}

static void test_name_of_ourselves(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, false);
    found(f, "::1\n");
    assert_string_equal(f->host, "::1");
    answer_question(f, "m1");
    assert_int_equal(peer_count(f), 0);
    assert_null(strstr(f->said, "peer m1"));
}

/* Another process has the address now: its sessions are its own, and the old one's are lost. */
static void test_another_answers(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, false);
    found(f, "10.0.0.2\n");
    answer_question(f, "m2");
    pass_round(f);
    found(f, "10.0.0.2\n");
    answer_question(f, "m5");
    assert_says(f, "peer m2 has left");
    assert_int_equal(ask(f, "m5"), 503); /* the round did not find everybody */
    pass_time(f->w, SECOND_US);
    found(f, "10.0.0.2\n");
    answer_question(f, "m5");
    assert_int_equal(ask(f, "m5"), 0);
    assert_int_equal(ask(f, "m2"), 503);
    pass_time(f->w, SECOND_US);
    found(f, "10.0.0.2\n");
    answer_question(f, "m5");
    assert_int_equal(ask(f, "m2"), 404);
}

static void test_false_answers(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    start(f, LP_IDS_OWNER, false);
    found(f, "10.0.0.2\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "404 Not Found", "", "no such page");
    assert_says(f, "10.0.0.2 does not tell its owner id as a sidecar with our key does");
    assert_int_equal(peer_count(f), 0);
    assert_int_equal(ask(f, "m2"), 503);
    pass_round(f);
    found(f, "10.0.0.2\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "204 No Content", "Limpet-Hop: h1.m2.AAAA\r\n", "");
    pass_round(f);
    found(f, "10.0.0.2\n");
    /* a mark of the right key, for another question */
    char room[LP_HOP_TEXT_MAX], fields[LP_HOP_TEXT_MAX + 32];
    unsigned char nonce[LP_HOP_NONCE_BYTES] = {200};
    struct lp_hop_claim claim =
        lp_discovery_claim(LP_SPAN(LP_QUESTION_PATH "?0123"), LP_SPAN("m2"));
    struct lp_span mark = lp_hop_sign(&w->ring, &claim, WALL_MS, nonce, room);
    snprintf(fields, sizeof fields, "Limpet-Hop: %.*s\r\n", (int)mark.len, mark.ptr);
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    answer_with(w, "204 No Content", fields, "");
    assert_int_equal(peer_count(f), 0);
}

/* Who refuses, breaks off, or says nothing is nobody once he has had three seconds. */
static void test_no_answer(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    struct lp_event refused = {
        .kind = LP_EV_CONNECT_FAILED, .conn = REPLICA, .u.error = LP_EREFUSED};
    start(f, LP_IDS_OWNER, false);
    found(f, "10.0.0.2\n");
    tell(w, refused);
    assert_int_equal(ask(f, "m2"), 503);
    pass_time(w, SECOND_US);
    found(f, "10.0.0.2\n");
    tell_kind(w, LP_EV_CONNECTED, REPLICA);
    tell_kind(w, LP_EV_BROKEN, REPLICA);
    assert_int_equal(ask(f, "m2"), 503); /* it is younger than gone_after */
    pass_time(w, SECOND_US);
    found(f, "10.0.0.2\n");
    uint32_t looks = f->looks;
    pass_time(w, 5 * SECOND_US); /* its time is over */
    pass_time(w, 1);
    assert_int_equal(f->looks, looks + 1);
    w->connect_result = LP_ELIMIT;
    found(f, "10.0.0.2\n");
    assert_int_equal(ask(f, "m2"), 404);
}

static void test_name_fails(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, false);
    not_found(f, LP_ETIMEOUT);
    assert_says(f, "in all.test: no name server answers");
    pass_round(f);
    found(f, "10.0.0.2\n");
    answer_question(f, "m2");
    pass_round(f);
    not_found(f, LP_ENOT_FOUND);
    assert_says(f, "in all.test: the name has no address");
    assert_int_equal(ask(f, "m2"), 0);
    assert_int_equal(ask(f, "m9"), 503);
    pass_round(f);
    not_found(f, LP_EIO);
    pass_round(f);
    found(f, "rubbish here\n");
    assert_int_equal(ask(f, "m9"), 503);
}

/* A question under way when its address leaves, or when all ends, is dropped. */
static void test_left_while_asked(void **state)
{
    struct finder *f = *state;
    start(f, LP_IDS_OWNER, false);
    found(f, "10.0.0.2\n");
    assert_int_equal(f->w->engine->discovery.open_questions, 1);
    pass_time(f->w, 4 * SECOND_US + 1);
    assert_int_equal(f->w->engine->discovery.open_questions, 0);
    pass_round(f);
    f->w->connect_result = REPLICA_2;
    found(f, "10.0.0.3\n");
    assert_int_equal(f->w->engine->discovery.open_questions, 1);
    assert_int_equal(f->w->engine->servers[0].fleet.count, 3);
}

/* --- sealed ids, and being asked --- */

static void test_sealed(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    char line[LP_TICKET_TEXT_MAX], ticket[LP_TICKET_TEXT_MAX];
    start(f, LP_IDS_SEALED, true);
    found(f, "");
    open_session(w);
    strcpy(ticket, w->ticket);
    /* as a peer sees it: the same ticket, and m1 is another one */
    w->conf.self = LP_SPAN("m7");
    f->local.name = LP_SPAN("m7");
    struct lp_engine_args args = {.shell = &f->shell,
        .count = 1,
        .conf = &w->conf,
        .keyring = &w->ring,
        .mono_us = w->now_us,
        .wall_ms = WALL_MS};
    lp_engine_free(w->engine);
    assert_int_equal(lp_engine_new(&args, &w->engine), LP_OK);
    tell_kind(w, LP_EV_TIMER, 0);
    accept_client(w, false, "192.0.2.7:1");
    snprintf(line, sizeof line, "%s", ticket);
    request(w, "POST /mcp", line, LIST);
    assert_true(has(w, CLIENT, "HTTP/1.1 503 "));
    found(f, "m1=http://10.0.0.1:80\n");
    w->connects = 0;
    request(w, "POST /mcp", line, LIST);
    assert_int_equal(w->connects, 1);
    assert_string_equal(f->host, "10.0.0.1");
}

static void test_is_asked(void **state)
{
    struct finder *f = *state;
    struct world *w = f->w;
    static const char FIELD[] = "limpet-hop: ";
    struct lp_span rest;
    struct lp_hop_cache cache;
    start(f, LP_IDS_OWNER, true);
    accept_client(w, false, "192.0.2.7:1");
    request(w, "GET " LP_QUESTION_PATH "?77", "", "");
    assert_true(has(w, CLIENT, "HTTP/1.1 204 No Content\r\n"));
    struct lp_span all = lp_span(w->written[CLIENT], w->written_len[CLIENT]);
    size_t at = lp_span_search(all, lp_span_str(FIELD)) + sizeof FIELD - 1;
    struct lp_span mark = lp_span_split(lp_span_from(all, at), '\r', &rest);
    assert_true(lp_span_eq(lp_hop_target(mark), LP_SPAN("m1")));
    struct lp_hop_claim claim = lp_discovery_claim(LP_SPAN(LP_QUESTION_PATH "?77"), LP_SPAN("m1"));
    assert_int_equal(lp_hop_cache_init(&cache, NULL), LP_OK);
    assert_int_equal(lp_hop_judge(&cache, &w->ring, &claim, mark, WALL_MS), LP_HOP_GOOD);
    lp_hop_cache_fini(&cache);
    tell_kind(w, LP_EV_BROKEN, CLIENT);
    accept_client(w, false, "192.0.2.7:1");
    request(w, "POST " LP_QUESTION_PATH, "", LIST);
    assert_true(has(w, CLIENT, "HTTP/1.1 404 "));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_file),
        CASE(test_file_changes),
        CASE(test_place_in_use),
        CASE(test_moved_while_gone),
        CASE(test_file_mistakes),
        CASE(test_look_fails),
        CASE(test_too_many),
        CASE(test_name),
        CASE(test_name_of_ourselves),
        CASE(test_another_answers),
        CASE(test_false_answers),
        CASE(test_no_answer),
        CASE(test_name_fails),
        CASE(test_left_while_asked),
        CASE(test_sealed),
        CASE(test_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
