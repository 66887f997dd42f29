/* Store URLs and the slots of keys: what is read, and that each mistake is told in a sentence that
 * holds nothing of the URL, since a password may be in it. */
#include "store_harness.h"

static bool look_up(void *ctx, struct lp_span name, struct lp_span *ret_value)
{
    (void)ctx;
    if (lp_span_eq(name, LP_SPAN("SECRET")))
        *ret_value = LP_SPAN("a@b/c%");
    else if (lp_span_eq(name, LP_SPAN("EMPTY")))
        *ret_value = LP_SPAN("");
    else
        return false;
    return true;
}

static struct lp_store_url parse(const char *text)
{
    struct lp_store_url url;
    struct lp_span why;
    int err = lp_store_url_parse(lp_span_str(text), look_up, NULL, &url, &why);
    if (err)
        print_message("%s: %.*s\n", text, (int)why.len, why.ptr);
    assert_int_equal(err, LP_OK);
    return url;
}

static void assert_seed(const struct lp_store_url *url, uint32_t i, const char *host, uint16_t port)
{
    assert_true(i < url->seed_count);
    assert_int_equal(url->seeds[i].host_len, strlen(host));
    assert_memory_equal(url->seeds[i].host, host, strlen(host));
    assert_int_equal(url->seeds[i].port, port);
}

static void assert_login(const struct lp_store_url *url, const char *user, const char *password)
{
    assert_int_equal(url->user_len, strlen(user));
    assert_memory_equal(url->user, user, strlen(user));
    assert_int_equal(url->password_len, strlen(password));
    assert_memory_equal(url->password, password, strlen(password));
}

static void test_hosts(void **state)
{
    (void)state;
    struct lp_store_url url = parse("redis://localhost");
    assert_seed(&url, 0, "localhost", 6379);
    assert_int_equal(url.kind, LP_STORE_ASKED);
    assert_false(url.is_tls);
    url = parse("rediss://a-b.example:1,[::1]:2,10.0.0.1,[fe80::1%eth0]/3");
    assert_true(url.is_tls);
    assert_int_equal(url.seed_count, 4);
    assert_int_equal(url.db, 3);
    assert_seed(&url, 0, "a-b.example", 1);
    assert_seed(&url, 1, "::1", 2);
    assert_seed(&url, 2, "10.0.0.1", 6379);
    assert_seed(&url, 3, "fe80::1%eth0", 6379);
    url = parse("rediss+cluster://h:65535/0");
    assert_int_equal(url.kind, LP_STORE_CLUSTER);
    assert_true(url.is_tls);
    assert_int_equal(parse("redis+cluster://h/").kind, LP_STORE_CLUSTER);
    url = parse("unix:/run/redis.sock");
    assert_true(url.seeds[0].is_unix);
    assert_seed(&url, 0, "/run/redis.sock", 0);
}

static void test_logins(void **state)
{
    (void)state;
    struct lp_store_url url = parse("redis://user:pass@h");
    assert_login(&url, "user", "pass");
    url = parse("redis://:p%40%2F%3a%25@h");
    assert_login(&url, "", "p@/:%");
    url = parse("redis://:p:q@h");
    assert_login(&url, "", "p:q");
    url = parse("redis://u:${SECRET}@h");
    assert_login(&url, "u", "a@b/c%");
    url = parse("redis://h");
    assert_login(&url, "", "");
}

/* A host of 254 bytes, a socket's path of 108, a password of 513. */
static char long_host[300], long_path[200], long_password[600], many_hosts[200];

static void test_mistakes(void **state)
{
    (void)state;
    snprintf(long_host, sizeof long_host, "redis://%0254d", 0);
    snprintf(long_path, sizeof long_path, "unix:/%0107d", 0);
    snprintf(long_password, sizeof long_password, "redis://:%0513d@h", 0);
    snprintf(many_hosts, sizeof many_hosts, "redis://%s", "h,h,h,h,h,h,h,h,h,h,h,h,h,h,h,h,h");
    const char *const BAD[] = {"", "http://h", "redis:/h", "redis+sentinel://h", "redis://",
        "redis:///1", "redis://h:", "redis://h:0", "redis://h:65536", "redis://h:x", "redis://h,",
        "redis://,h", "redis://h h", "redis://h?x=1", "redis://[::1", "redis://[::1]x",
        "redis://[]", "redis://[g/]", "redis://u@h", "redis://u:@h", "redis://@h", "redis://:p%4@h",
        "redis://:p%@h", "redis://:p%zz@h", "redis://:p%4g@h", "redis://h/x", "redis://h/1/2",
        "redis://h/99999999999", "redis+cluster://h/1", "unix:relative",
        "unix:", "redis://:${NOT_SET}@h", "redis://:${EMPTY}@h", "redis://${NOT_SET}:p@h",
        long_host, long_path, long_password, many_hosts};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct lp_store_url url;
        struct lp_span why = {NULL, 0};
        int err = lp_store_url_parse(lp_span_str(BAD[i]), look_up, NULL, &url, &why);
        if (err != LP_ESYNTAX)
            print_message("accepted: %s\n", BAD[i]);
        assert_int_equal(err, LP_ESYNTAX);
        assert_true(why.len > 20 && why.ptr[why.len - 1] == '.');
        assert_true(lp_span_search(why, LP_SPAN("NOT_SET")) == why.len);
    }
    struct lp_store_url url;
    struct lp_span why;
    assert_int_equal(
        lp_store_url_parse(LP_SPAN("redis://:${SECRET}@h"), NULL, NULL, &url, &why), LP_ESYNTAX);
}

/* The first three are in the cluster specification; all agree with CLUSTER KEYSLOT. */
static void test_slots(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint16_t slot;
    } KNOWN[] = {{"123456789", 12739}, {"foo", 12182}, {"bar", 5061}, {"", 0}, {"a", 15495},
        {"{user1000}.following", 3443}, {"{user1000}.followers", 3443}, {"user1000", 3443},
        {"foo{}{bar}", 8363}, {"foo{{bar}}zap", 4015}, {"{bar", 4015}, {"foo{bar}{zap}", 5061},
        {"foo{bar", 15278}, {"{}", 15257}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        assert_int_equal(lp_store_slot(lp_span_str(KNOWN[i].key)), KNOWN[i].slot);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(lp_store_outcome_name(LP_OUTCOME_TRYAGAIN), "TRYAGAIN");
    assert_string_equal(lp_store_outcome_sentence(LP_OUTCOME_DOWN), "the store is away");
    assert_string_equal(lp_store_trouble_name(LP_TROUBLE_NO_NAME), "NO_NAME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_logins),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
