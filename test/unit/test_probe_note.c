/* How the probe notes answers: what is a lost session and what says nothing of it, hops and cookies
 * of heads, replicas that tell themselves apart, and the pace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "call/probe_priv.h"

static struct lp_probe *probe_new(void)
{
    struct lp_probe *probe = calloc(1, sizeof *probe);
    assert_non_null(probe);
    return probe;
}

static struct lp_reply reply_of(struct lp_seen_answer answer)
{
    answer.is_asked = true;
    return (struct lp_reply){.answer = answer};
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        uint16_t status;
        bool is_fault;
    } CASES[] = {{0, true}, {200, false}, {404, false}, {408, true}, {429, true}, {499, false},
        {500, true}, {503, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_reply reply = reply_of((struct lp_seen_answer){.status = CASES[i].status});
        assert_int_equal(lp_probe_is_fault(&reply), CASES[i].is_fault);
    }
}

/* The server's own answer to an unknown id says what a lost session looks like. */
static void test_marks(void **state)
{
    (void)state;
    static const struct lp_seen_answer NOT_ASKED = {0};
    static const struct lp_seen_answer HANGS = {.is_asked = true, .error = LP_ETIMEOUT};
    static const struct lp_seen_answer SAYS_500 = {
        .is_asked = true, .status = 500, .media = LP_MEDIA_JSON, .code = -32603, .print = 7};
    static const struct lp_seen_answer SAYS_200 = {
        .is_asked = true, .status = 200, .media = LP_MEDIA_JSON, .code = -32601, .print = 9};
    static const struct lp_seen_answer RESULT = {
        .is_asked = true, .status = 200, .media = LP_MEDIA_JSON, .is_result = true};
    static const struct {
        const struct lp_seen_answer *unknown;
        struct lp_seen_answer answer;
        enum lp_seen_mark mark;
    } CASES[] = {
        {&NOT_ASKED, {.status = 200, .is_result = true}, LP_MARK_OK},
        {&NOT_ASKED, {.status = 404}, LP_MARK_LOST},
        {&NOT_ASKED, {.status = 400}, LP_MARK_LOST},
        {&NOT_ASKED, {.status = 409}, LP_MARK_LOST},
        {&NOT_ASKED, {.status = 410}, LP_MARK_LOST},
        {&NOT_ASKED, {.status = 422}, LP_MARK_LOST},
        {&NOT_ASKED, {.status = 403}, LP_MARK_FAULT},
        {&NOT_ASKED, {.status = 500}, LP_MARK_FAULT},
        {&NOT_ASKED, {.error = LP_ETIMEOUT}, LP_MARK_FAULT},
        {&NOT_ASKED, {.status = 200}, LP_MARK_FAULT},
        /* The session was found, though the method was not. */
        {&NOT_ASKED, {.status = 404, .code = -32601, .print = 1}, LP_MARK_OK},
        {&NOT_ASKED, {.status = 200, .code = -32602, .print = 1}, LP_MARK_OK},
        {&NOT_ASKED, {.status = 200, .code = -32001, .print = 1}, LP_MARK_LOST},
        {&HANGS, {.error = LP_ETIMEOUT}, LP_MARK_LOST},
        {&HANGS, {.error = LP_EREFUSED}, LP_MARK_FAULT},
        {&HANGS, {.status = 500}, LP_MARK_FAULT},
        {&SAYS_500, {.status = 500, .media = LP_MEDIA_JSON, .code = 1, .print = 2}, LP_MARK_LOST},
        {&SAYS_500, {.status = 500, .media = LP_MEDIA_HTML, .print = 2}, LP_MARK_FAULT},
        {&SAYS_500, {.status = 502, .media = LP_MEDIA_JSON}, LP_MARK_FAULT},
        {&SAYS_500, {.error = LP_ETIMEOUT}, LP_MARK_FAULT},
        {&SAYS_200, {.status = 200, .media = LP_MEDIA_JSON, .code = -32601, .print = 9},
            LP_MARK_LOST},
        {&SAYS_200, {.status = 200, .media = LP_MEDIA_JSON, .code = -32601, .print = 8},
            LP_MARK_OK},
        {&RESULT, {.status = 200, .media = LP_MEDIA_JSON}, LP_MARK_FAULT},
    };
    struct lp_probe *probe = probe_new();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct lp_reply reply = reply_of(CASES[i].answer);
        probe->seen.unknown = *CASES[i].unknown;
        if (lp_probe_mark(probe, &reply) != CASES[i].mark)
            print_message("case %zu\n", i);
        assert_int_equal(lp_probe_mark(probe, &reply), CASES[i].mark);
    }
    free(probe);
}

static void test_tallies(void **state)
{
    (void)state;
    struct lp_probe *probe = probe_new();
    struct lp_seen_tally tally = {0};
    static const struct lp_seen_answer ANSWERS[] = {
        {.status = 405},
        {.status = 501},
        {.status = 404, .code = -32001, .print = 5},  /* the very words */
        {.status = 404, .code = -32001, .print = 99}, /* other words of the same kind */
        {.status = 404, .code = -32002, .print = 99},
        {.status = 400, .code = -32001, .print = 99},
        {.status = 404},
        {.status = 503},
        {.error = LP_EREFUSED},
    };
    probe->seen.unknown =
        (struct lp_seen_answer){.is_asked = true, .status = 404, .code = -32001, .print = 5};
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        struct lp_reply reply = reply_of(ANSWERS[i]);
        lp_probe_tally(probe, &tally, &reply, false);
    }
    struct lp_reply fine = reply_of((struct lp_seen_answer){.status = 405});
    lp_probe_tally(probe, &tally, &fine, true);
    assert_int_equal(tally.asked, 10);
    assert_int_equal(tally.fine, 1);
    assert_int_equal(tally.refused, 2);
    assert_int_equal(tally.lost, 2);
    assert_int_equal(tally.faults, 2);
    assert_int_equal(tally.odd, 3);
    free(probe);
}

static void note_field(
    struct lp_probe *probe, enum lp_field_id id, const char *name, const char *value)
{
    static struct lp_head head;
    head.field_count = 1;
    head.fields[0].id = id;
    head.fields[0].name = lp_span_str(name);
    head.fields[0].value = lp_span_str(value);
    lp_probe_note_head(probe, &head);
}

static void test_heads(void **state)
{
    (void)state;
    struct lp_probe *probe = probe_new();
    struct lp_seen *seen = &probe->seen;
    note_field(probe, LP_FIELD_OTHER, "Via", "1.1 front");
    note_field(probe, LP_FIELD_OTHER, "via", "1.1 front"); /* seen before */
    note_field(probe, LP_FIELD_OTHER, "Server", "nginx");
    note_field(probe, LP_FIELD_OTHER, "X-Powered-By", "Express");
    note_field(probe, LP_FIELD_OTHER, "Server", "");
    note_field(probe, LP_FIELD_OTHER, "X-Other", "1");
    assert_int_equal(seen->hop_count, 3);
    assert_string_equal(seen->hops[0], "Via: 1.1 front");
    assert_string_equal(seen->hops[1], "Server: nginx");
    assert_string_equal(seen->hops[2], "X-Powered-By: Express");
    note_field(probe, LP_FIELD_SET_COOKIE, "Set-Cookie", "lb=SECRET; Path=/");
    note_field(probe, LP_FIELD_SET_COOKIE, "Set-Cookie", " lb = OTHER");
    note_field(probe, LP_FIELD_SET_COOKIE, "Set-Cookie", "no pair");
    note_field(probe, LP_FIELD_SET_COOKIE, "Set-Cookie", "=nameless");
    assert_int_equal(seen->cookie_count, 1);
    assert_string_equal(seen->cookies[0], "lb"); /* never its value */
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof text, "c%d=1", i);
        note_field(probe, LP_FIELD_SET_COOKIE, "Set-Cookie", text);
        note_field(probe, LP_FIELD_OTHER, "Via", text);
    }
    assert_int_equal(seen->cookie_count, LP_SEEN_COOKIES_MAX);
    assert_int_equal(seen->hop_count, LP_SEEN_HOPS_MAX);
    free(probe);
}

static void note_kinds(struct lp_probe *probe, uint32_t count, uint32_t kinds, const char *id)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"name\":\"r%u\"}", i % kinds);
        lp_probe_note_kind(probe, lp_span_str(text), lp_span_str(id));
    }
}

static void test_kinds(void **state)
{
    (void)state;
    struct lp_probe *probe = probe_new();
    note_kinds(probe, 3, 1, "id");
    assert_int_equal(probe->seen.kinds, 0); /* too few to say */
    note_kinds(probe, 9, 3, "id");
    assert_int_equal(probe->seen.kinds, 3);
    free(probe);
    probe = probe_new();
    note_kinds(probe, 10, 10, "id"); /* new each time: it tells nothing apart */
    assert_int_equal(probe->seen.kinds, 0);
    note_kinds(probe, 400, 200, "id");
    assert_int_equal(probe->seen.kinds, 0); /* more than are kept */
    free(probe);
    /* What stands before a dot in the id tells replicas apart too, when it is short. */
    static const struct {
        const char *ids[2];
        uint32_t kinds;
    } CASES[] = {
        {{"a.1", "b.2"}, 2},
        {{"a.1", "a.2"}, 1},
        {{"a-name-that-is-longer-than-thirty-two.1", "b-name-that-is-longer-than-thirty-two.1"}, 1},
        {{"a", "b"}, 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        probe = probe_new();
        for (int k = 0; k < 8; k++)
            lp_probe_note_kind(probe, LP_SPAN("{}"), lp_span_str(CASES[i].ids[k % 2]));
        assert_int_equal(probe->seen.kinds, CASES[i].kinds);
        free(probe);
    }
}

static void test_pace(void **state)
{
    (void)state;
    struct lp_probe *probe = probe_new();
    assert_int_equal(lp_probe_pace(probe), 0);
    static const uint64_t TIMES[] = {5, 1, 3, UINT64_MAX / 2, 3, 2, 9};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        struct lp_reply reply = {.sent_us = 10, .last_us = 10 + TIMES[i]};
        lp_probe_note_pace(probe, &reply);
    }
    assert_int_equal(lp_probe_pace(probe), 3);
    for (int i = 0; i < 2 * LP_PROBE_PACE_MAX; i++) {
        struct lp_reply reply = {.last_us = 100};
        lp_probe_note_pace(probe, &reply);
    }
    assert_int_equal(probe->pace_count, LP_PROBE_PACE_MAX);
    assert_int_equal(lp_probe_pace(probe), 100);
    free(probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_tallies),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_pace),
    };
    return cmocka_run_group_tests_name("probe note", tests, NULL, NULL);
}
