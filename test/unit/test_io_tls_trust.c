/* Proves whom a TLS client believes: the handshake's outcome for each kind of certificate and each
 * kind of peer, and the error that tells the user what to do. */
#include "tls_peer.h"

#include "io/tls.h"

static struct issued ca, other_ca;
static char ca_path[64];

static int setup_all(void **state)
{
    (void)state;
    ca = issue(&(struct wish){.is_ca = true});
    other_ca = issue(&(struct wish){.is_ca = true});
    (void)snprintf(ca_path, sizeof ca_path, "/tmp/lp-test-ca.%d.pem", getpid());
    write_pem(ca_path, &ca);
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    issued_free(&ca);
    issued_free(&other_ca);
    (void)unlink(ca_path);
    return 0;
}

/* One handshake with a peer that shows a certificate. */
struct visit {
    const char *host;   /* as in the URL */
    const char *cacert; /* NULL: the system's roots */
    bool is_insecure;
    int version_max; /* of the peer; 0: TLS 1.3 */
    struct wish wish;
};

struct outcome {
    int error; /* LP_OK: connected */
    int version;
    bool is_peer_content;
    char sni[64];
};

static struct outcome visit(const struct visit *v)
{
    struct lp_tls_trust *trust = trust_of(v->cacert, v->is_insecure);
    struct engine *e = engine_new(&(struct lp_loop_args){.trust = trust});
    struct issued made = issue(&v->wish);
    SSL_CTX *context = peer_context(&made, v->version_max ? v->version_max : TLS1_3_VERSION);
    uint16_t port;
    int listener = peer_listen(5, &port);
    struct lp_endpoint to = tcp_endpoint(v->host, port, 5000);
    to.is_tls = true;
    (void)connect_out(e, to);
    int fd = peer_accept(e, listener);
    SSL *ssl = SSL_new(context);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    struct outcome outcome = {.is_peer_content = peer_shake(e, ssl)};
    TURN_UNTIL(e, e->count > 0);
    outcome.error = e->events[0].kind == LP_EV_CONNECT_FAILED ? e->events[0].u.error : LP_OK;
    outcome.version = SSL_version(ssl);
    const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)snprintf(outcome.sni, sizeof outcome.sni, "%s", sni ? sni : "");
    turn_for_ms(e, 2);
    assert_int_equal(e->count, 1);
    assert_int_equal(e->loop->conns.live_count, outcome.error ? 0 : 1);
    engine_free(e);
    lp_tls_trust_free(trust);
    SSL_free(ssl);
    SSL_CTX_free(context);
    issued_free(&made);
    close(fd);
    close(listener);
    return outcome;
}

static void a_name_in_the_certificate_is_good(void **state)
{
    (void)state;
    struct outcome o = visit(&(struct visit){.host = "localhost",
        .cacert = ca_path,
        .wish = {.from = &ca, .names = "DNS:example.com,DNS:localhost"}});
    assert_int_equal(o.error, LP_OK);
    assert_true(o.is_peer_content);
    assert_int_equal(o.version, TLS1_3_VERSION);
    assert_string_equal(o.sni, "localhost");
    assert_int_equal(offered_alpn_len, 11);
    assert_memory_equal(offered_alpn, "\x00\x09\x08http/1.1", 11);
}

/* "localhost." is an absolute name; its dot stands in no certificate. Not every resolver knows it.
 */
static void the_dot_at_the_end_of_a_name_is_no_part_of_it(void **state)
{
    (void)state;
    struct lp_tls_trust *trust = trust_of(ca_path, false);
    struct issued made = issue(&(struct wish){.from = &ca, .names = "DNS:localhost"});
    SSL_CTX *context = peer_context(&made, TLS1_3_VERSION);
    SSL *ssl = SSL_new(context);
    struct lp_tls *tls;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(SSL_set_fd(ssl, pair[1]), 1);
    assert_int_equal(lp_tls_new(trust, LP_SPAN("localhost."), &tls), LP_OK);
    lp_tls_attach(tls, pair[0]);
    enum lp_tls_step step = LP_TLS_WAIT;
    while (step == LP_TLS_WAIT) {
        step = lp_tls_handshake(tls);
        (void)SSL_accept(ssl);
    }
    assert_int_equal(step, LP_TLS_DONE);
    assert_string_equal(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), "localhost");
    lp_tls_free(tls);
    lp_tls_trust_free(trust);
    SSL_free(ssl);
    SSL_CTX_free(context);
    issued_free(&made);
    close(pair[0]);
    close(pair[1]);
}

static void an_address_in_the_certificate_is_good(void **state)
{
    (void)state;
    struct outcome o = visit(&(struct visit){
        .host = "127.0.0.1", .cacert = ca_path, .wish = {.from = &ca, .names = "IP:127.0.0.1"}});
    assert_int_equal(o.error, LP_OK);
    assert_string_equal(o.sni, ""); /* RFC 6066 3: names only */
}

static void version_1_2_is_good_and_older_is_not(void **state)
{
    (void)state;
    struct visit v = {.host = "localhost",
        .cacert = ca_path,
        .version_max = TLS1_2_VERSION,
        .wish = {.from = &ca, .names = "DNS:localhost"}};
    struct outcome o = visit(&v);
    assert_int_equal(o.error, LP_OK);
    assert_int_equal(o.version, TLS1_2_VERSION);
    v.version_max = TLS1_1_VERSION;
    assert_int_equal(visit(&v).error, LP_ETLS);
}

static void another_name_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "127.0.0.1", "localhost", "127.0.0.1"};
    static const char *const names[] = {
        "DNS:example.com", "IP:127.0.0.2", "IP:127.0.0.1", "DNS:localhost"};
    for (int i = 0; i < 4; i++) {
        struct outcome o = visit(&(struct visit){
            .host = hosts[i], .cacert = ca_path, .wish = {.from = &ca, .names = names[i]}});
        assert_int_equal(o.error, LP_ETLS_NAME);
        assert_false(o.is_peer_content && o.version < TLS1_3_VERSION);
    }
}

static void too_old_and_too_new_are_refused(void **state)
{
    (void)state;
    struct visit v = {.host = "localhost",
        .cacert = ca_path,
        .wish = {.from = &ca, .names = "DNS:localhost", .begin_s = -7200, .end_s = -3600}};
    assert_int_equal(visit(&v).error, LP_ETLS_EXPIRED);
    v.wish.begin_s = 3600;
    v.wish.end_s = 7200;
    assert_int_equal(visit(&v).error, LP_ETLS_EXPIRED);
}

static void an_unknown_issuer_is_refused(void **state)
{
    (void)state;
    struct visit v = {.host = "localhost",
        .cacert = ca_path,
        .wish = {.from = &other_ca, .names = "DNS:localhost"}};
    assert_int_equal(visit(&v).error, LP_ETLS_UNTRUSTED);
    v.wish.from = &ca;
    v.cacert = NULL; /* the system does not know it either */
    assert_int_equal(visit(&v).error, LP_ETLS_UNTRUSTED);
    v.wish.from = NULL;
    assert_int_equal(visit(&v).error, LP_ETLS_UNTRUSTED);
}

/* The environment names the system's roots, as for every program with OpenSSL. */
static void the_roots_of_the_system_are_the_default(void **state)
{
    (void)state;
    assert_int_equal(setenv("SSL_CERT_FILE", ca_path, 1), 0);
    struct outcome o = visit(
        &(struct visit){.host = "localhost", .wish = {.from = &ca, .names = "DNS:localhost"}});
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    assert_int_equal(o.error, LP_OK);
}

static void insecure_believes_anybody(void **state)
{
    (void)state;
    struct visit v = {.host = "localhost",
        .is_insecure = true,
        .wish = {.names = "DNS:example.com", .begin_s = -7200, .end_s = -3600}};
    assert_int_equal(visit(&v).error, LP_OK);
    v.version_max = TLS1_1_VERSION; /* but not everything */
    assert_int_equal(visit(&v).error, LP_ETLS);
}

/* A certificate that signed itself, or that another one signed, is good when it is the named one.
 */
static void a_certificate_that_was_named_is_trusted(void **state)
{
    (void)state;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-self.%d.pem", getpid());
    for (int i = 0; i < 2; i++) {
        struct issued made =
            issue(&(struct wish){.names = "DNS:localhost", .from = i ? &other_ca : NULL});
        write_pem(path, &made);
        struct lp_tls_trust *trust = trust_of(path, false);
        struct engine *e = engine_new(&(struct lp_loop_args){.trust = trust});
        SSL_CTX *context = peer_context(&made, TLS1_3_VERSION);
        uint16_t port;
        int listener = peer_listen(5, &port);
        struct lp_endpoint to = tcp_endpoint("localhost", port, 5000);
        to.is_tls = true;
        (void)connect_out(e, to);
        int fd = peer_accept(e, listener);
        SSL *ssl = SSL_new(context);
        assert_int_equal(SSL_set_fd(ssl, fd), 1);
        assert_true(peer_shake(e, ssl));
        TURN_UNTIL(e, e->counts[LP_EV_CONNECTED] == 1);
        engine_free(e);
        lp_tls_trust_free(trust);
        SSL_free(ssl);
        SSL_CTX_free(context);
        issued_free(&made);
        close(fd);
        close(listener);
    }
    (void)unlink(path);
}

/* Peers that do not speak TLS */

static struct engine *secure_engine(struct lp_tls_trust **ret_trust)
{
    *ret_trust = trust_of(NULL, true);
    return engine_new(&(struct lp_loop_args){.trust = *ret_trust});
}

static void assert_fails(const char *answer, bool is_reset, uint32_t timeout_ms, int error)
{
    struct lp_tls_trust *trust;
    struct engine *e = secure_engine(&trust);
    uint16_t port;
    int listener = peer_listen(5, &port);
    struct lp_endpoint to = tcp_endpoint("127.0.0.1", port, timeout_ms);
    to.is_tls = true;
    uint64_t begin_us = lp_clock_mono_us();
    (void)connect_out(e, to);
    int fd = peer_accept(e, listener);
    struct lp_buf hello;
    lp_buf_init(&hello, 65536);
    while (hello.len < 5) {
        turn(e);
        (void)peer_read(fd, &hello);
    }
    assert_int_equal(lp_buf_span(&hello).ptr[0], SSL3_RT_HANDSHAKE);
    if (answer && answer[0])
        peer_send(fd, answer);
    if (is_reset)
        peer_reset(fd);
    else if (answer)
        close(fd);
    TURN_UNTIL(e, e->count == 1);
    assert_int_equal(e->events[0].kind, LP_EV_CONNECT_FAILED);
    assert_int_equal(e->events[0].u.error, error);
    if (error == LP_ETIMEOUT)
        assert_in_range(lp_clock_mono_us() - begin_us, timeout_ms * 1000ull, 2000000);
    assert_int_equal(e->loop->conns.live_count, 0);
    turn_for_ms(e, 5);
    assert_int_equal(e->count, 1);
    if (!answer)
        close(fd);
    lp_buf_release(&hello);
    engine_free(e);
    lp_tls_trust_free(trust);
    close(listener);
}

static void who_does_not_speak_tls_fails_the_handshake(void **state)
{
    (void)state;
    assert_fails("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", false, 5000, LP_ETLS);
    assert_fails("\x15\x03\x01\x00\x02\x02\x28", false, 5000, LP_ETLS); /* handshake_failure */
    assert_fails("", false, 5000, LP_ETLS);
    assert_fails("", true, 5000, LP_ETLS);
}

static void a_silent_peer_is_a_timeout(void **state)
{
    (void)state;
    assert_fails(NULL, false, 150, LP_ETIMEOUT);
}

static void places_without_tls_are_told_in_the_call(void **state)
{
    (void)state;
    struct lp_tls_trust *trust;
    struct engine *e = secure_engine(&trust);
    struct lp_action action = {.kind = LP_ACT_CONNECT};
    action.u.connect = (struct lp_endpoint){
        .kind = LP_EP_UNIX, .host = LP_SPAN("/tmp/lp-test-nothing"), .is_tls = true};
    assert_int_equal(act(e, action), LP_EUNSUPPORTED);
    static char name[400];
    memset(name, 'a', sizeof name - 1);
    struct lp_span hosts[] = {LP_SPAN(""), LP_SPAN("local\0host"), lp_span_str(name)};
    for (int i = 0; i < 3; i++) {
        action.u.connect = (struct lp_endpoint){.host = hosts[i], .port = 9, .is_tls = true};
        assert_int_equal(act(e, action), LP_ENOT_FOUND);
    }
    assert_int_equal(e->loop->conns.live_count, 0);
    engine_free(e);
    lp_tls_trust_free(trust);
}

static void nobody_there_is_refused(void **state)
{
    (void)state;
    struct lp_tls_trust *trust;
    struct engine *e = secure_engine(&trust);
    uint16_t port;
    close(peer_listen(5, &port));
    struct lp_endpoint to = tcp_endpoint("localhost", port, 5000);
    to.is_tls = true;
    (void)connect_out(e, to);
    TURN_UNTIL(e, e->count == 1);
    assert_int_equal(e->events[0].u.error, LP_EREFUSED);
    engine_free(e);
    lp_tls_trust_free(trust);
}

static void files_without_certificates_are_told(void **state)
{
    (void)state;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/lp-test-none.%d.pem", getpid());
    struct lp_tls_trust_args args = {.cacert_path = path};
    struct lp_tls_trust *trust = NULL;
    struct lp_buf why;
    lp_buf_init(&why, 1000);
    assert_int_equal(lp_tls_trust_new(&args, &why, &trust), LP_ENOT_FOUND);
    assert_true(lp_span_search(lp_buf_span(&why), LP_SPAN("No such file")) < why.len);
    lp_buf_clear(&why);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "no certificate", 14), 14);
    close(fd);
    assert_int_equal(lp_tls_trust_new(&args, &why, &trust), LP_ESYNTAX);
    assert_true(lp_span_search(lp_buf_span(&why), LP_SPAN("PEM")) < why.len);
    assert_null(trust);
    lp_tls_trust_free(NULL);
    lp_buf_release(&why);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_in_the_certificate_is_good),
        cmocka_unit_test(the_dot_at_the_end_of_a_name_is_no_part_of_it),
        cmocka_unit_test(an_address_in_the_certificate_is_good),
        cmocka_unit_test(version_1_2_is_good_and_older_is_not),
        cmocka_unit_test(another_name_is_refused),
        cmocka_unit_test(too_old_and_too_new_are_refused),
        cmocka_unit_test(an_unknown_issuer_is_refused),
        cmocka_unit_test(the_roots_of_the_system_are_the_default),
        cmocka_unit_test(insecure_believes_anybody),
        cmocka_unit_test(a_certificate_that_was_named_is_trusted),
        cmocka_unit_test(who_does_not_speak_tls_fails_the_handshake),
        cmocka_unit_test(a_silent_peer_is_a_timeout),
        cmocka_unit_test(places_without_tls_are_told_in_the_call),
        cmocka_unit_test(nobody_there_is_refused),
        cmocka_unit_test(files_without_certificates_are_told),
    };
    (void)lp_process_setup();
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
