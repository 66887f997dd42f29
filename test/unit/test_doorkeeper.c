/* Host and Origin: the defaults on loopback and other listeners, and the configured lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate/doorkeeper.h"

struct door_case {
    bool is_loopback;
    const char *host; /* NULL: the field is missing */
    const char *origin;
    enum lp_reason want;
};

#define OK LP_REASON_none
#define HOST LP_REASON_host_refused
#define ORIGIN LP_REASON_origin_refused

static void check(const struct lp_conf_server *conf, const struct door_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct door_case *c = &cases[i];
        enum lp_reason got =
            lp_doorkeeper_judge(conf, c->is_loopback, lp_span_str(c->host), lp_span_str(c->origin));
        if (got != c->want)
            fail_msg("case %zu: Host %s, Origin %s: got %s", i, c->host, c->origin,
                lp_reason_info(got)->name);
    }
}

static void defaults(void **state)
{
    (void)state;
    static const struct lp_conf_server conf;
    static const struct door_case CASES[] = {
        {true, "localhost:8080", NULL, OK},
        {true, "LOCALHOST", NULL, OK},
        {true, "127.0.0.1:8080", NULL, OK},
        {true, "127.8.9.1", NULL, OK},
        {true, "[::1]:8080", NULL, OK},
        {true, NULL, NULL, OK},
        {true, "evil.example", NULL, HOST},
        {true, "127.evil.example", NULL, HOST},
        {true, "localhost.evil.example", NULL, HOST},
        {true, "localhost@evil.example", NULL, HOST},
        {true, "", NULL, HOST},
        {true, "localhost", "http://localhost:3000", OK},
        {true, "localhost", "https://127.0.0.1", OK},
        {true, "localhost", "http://[::1]:1", OK},
        {true, "localhost", "http://evil.example", ORIGIN},
        {true, "localhost", "null", ORIGIN},
        {true, "localhost", "", ORIGIN},
        {false, "tools.example", NULL, OK},
        {false, "10.0.0.1:80", NULL, OK},
        {false, "tools.example", "http://tools.example", OK},
        {false, "tools.example:80", "http://TOOLS.example", OK},
        {false, "tools.example", "https://tools.example", OK}, /* TLS may end in front of us */
        {false, "tools.example:8080", "http://tools.example:8081", ORIGIN},
        {false, "tools.example", "http://localhost", ORIGIN},
        {false, NULL, "http://tools.example", ORIGIN},
        {false, "bad host", NULL, HOST},
    };
    check(&conf, CASES, sizeof CASES / sizeof *CASES);
}

static void lists(void **state)
{
    (void)state;
    static const struct lp_span HOSTS[] = {{"tools.example", 13}, {"other:99", 8}};
    static const struct lp_span ORIGINS[] = {{"https://app.example", 19}};
    static const struct lp_conf_server conf = {
        .hosts = HOSTS, .host_count = 2, .origins = ORIGINS, .origin_count = 1};
    static const struct door_case CASES[] = {
        {true, "tools.example", NULL, OK},
        {true, "TOOLS.EXAMPLE:1234", NULL, OK}, /* a name without port stands for every port */
        {true, "other:99", NULL, OK},
        {true, "other:98", NULL, HOST},
        {true, "localhost", NULL, HOST}, /* the list replaces the default */
        {false, "tools.example", "https://app.example", OK},
        {false, "tools.example", "https://APP.example", OK},
        {false, "tools.example", "http://app.example", ORIGIN},
        {false, "tools.example", "https://tools.example", ORIGIN},
    };
    check(&conf, CASES, sizeof CASES / sizeof *CASES);
}

static void stars(void **state)
{
    (void)state;
    static const struct lp_span ANY[] = {{"*", 1}};
    static const struct lp_conf_server conf = {
        .hosts = ANY, .host_count = 1, .origins = ANY, .origin_count = 1};
    static const struct door_case CASES[] = {
        {true, "evil.example", "http://evil.example", OK},
        {false, "evil.example", "null", OK},
    };
    check(&conf, CASES, sizeof CASES / sizeof *CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(lists),
        cmocka_unit_test(stars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
