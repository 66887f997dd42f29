/* The counters and their text: what is counted is summed over engines, and the text reads back by
 * the rules of the exposition format 0.0.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/error.h"
#include "obs/metrics.h"

enum { FAMILIES_MAX = 64, OUT_MAX = 1 << 18 };

static struct lp_metrics engines[2];
static const struct lp_metrics *const BLOCKS[] = {&engines[0], &engines[1]};
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }
static const struct lp_metrics_replica REPLICAS[] = {
    {TEXT("tools"), TEXT("10.0.0.1:1/mcp"), TEXT("up"), 7, 3, 1, 0, false, false},
    {TEXT("to\"o\\ls"), TEXT("b\nb"), TEXT("doubt"), 0, 0, 2, 0, false, false},
    {TEXT("tools"), TEXT("c"), TEXT("draining"), 1, 0, 2, 0, false, false},
    {TEXT("tools"), TEXT("d"), TEXT("gone"), 0, 0, 3, 0, false, false},
};

static int empty_engines(void **state)
{
    (void)state;
    memset(engines, 0, sizeof engines);
    return 0;
}

static struct lp_buf print(void)
{
    struct lp_buf out;
    lp_buf_init(&out, OUT_MAX);
    assert_int_equal(lp_metrics_print(BLOCKS, 2, REPLICAS, 4, &out), LP_OK);
    return out;
}

/* Whether the text has exactly this line. */
static bool has_line(const struct lp_buf *out, const char *line)
{
    struct lp_span rest = lp_buf_span(out);
    while (rest.ptr)
        if (lp_span_eq(lp_span_split(rest, '\n', &rest), lp_span_str(line)))
            return true;
    return false;
}

#define assert_line(out, line) assert_true(has_line(&(out), (line)))

static void counts_are_summed_over_engines(void **state)
{
    (void)state;
    lp_metrics_add(&engines[0], LP_METRIC_REQUESTS, 3);
    lp_metrics_add(&engines[1], LP_METRIC_REQUESTS, 4);
    lp_metrics_add(&engines[0], LP_METRIC_REQUESTS_OPEN, 2);
    lp_metrics_add(&engines[1], LP_METRIC_REQUESTS_OPEN, -1);
    lp_metrics_add(&engines[0], LP_METRIC_STREAMS_OPEN, -1);
    lp_metrics_reason(&engines[0], LP_REASON_answered);
    lp_metrics_reason(&engines[1], LP_REASON_answered);
    lp_metrics_reason(&engines[1], LP_REASON_session_lost);
    lp_metrics_end(&engines[0], LP_END_LOST);
    lp_metrics_end(&engines[1], LP_END_LOST);
    assert_int_equal(lp_metrics_sessions(BLOCKS, 2).ended[LP_END_LOST], 2);
    assert_string_equal(lp_metrics_end_word(LP_END_GONE), "replica_gone");
    struct lp_buf out = print();
    assert_line(out, "limpet_requests_total 7");
    assert_line(out, "limpet_requests_open 1");
    assert_line(out, "limpet_streams_open -1");
    assert_line(out, "limpet_upstream_resent_total 0");
    assert_line(out, "limpet_exchanges_total{reason=\"answered\"} 2");
    assert_line(out, "limpet_exchanges_total{reason=\"session_lost\"} 1");
    assert_line(out, "limpet_exchanges_total{reason=\"idle\"} 0");
    assert_line(out, "limpet_sessions_ended_total{cause=\"lost\"} 2");
    assert_line(out, "limpet_sessions_ended_total{cause=\"idle\"} 0");
    assert_line(out, "limpet_build_info{version=\"" LP_VERSION "\"} 1");
    lp_buf_release(&out);
}

static void statuses_go_into_classes(void **state)
{
    static const int STATUSES[] = {0, 99, 600, -1, 100, 200, 204, 299, 302, 404, 499, 503};
    (void)state;
    for (size_t i = 0; i < sizeof STATUSES / sizeof STATUSES[0]; i++)
        lp_metrics_status(&engines[i % 2], STATUSES[i]);
    struct lp_buf out = print();
    assert_line(out, "limpet_responses_total{class=\"none\"} 4");
    assert_line(out, "limpet_responses_total{class=\"1xx\"} 1");
    assert_line(out, "limpet_responses_total{class=\"2xx\"} 3");
    assert_line(out, "limpet_responses_total{class=\"3xx\"} 1");
    assert_line(out, "limpet_responses_total{class=\"4xx\"} 2");
    assert_line(out, "limpet_responses_total{class=\"5xx\"} 1");
    lp_buf_release(&out);
}

/* A bound belongs to its own bucket, and each bucket holds those below it. */
static void latencies_are_cumulative(void **state)
{
    (void)state;
    lp_metrics_first_byte(&engines[0], 0);
    lp_metrics_first_byte(&engines[0], 100);
    lp_metrics_first_byte(&engines[1], 101);
    lp_metrics_first_byte(&engines[1], 30000000);
    lp_metrics_first_byte(&engines[1], 30000001);
    struct lp_buf out = print();
    assert_line(out, "limpet_first_byte_seconds_bucket{le=\"0.0001\"} 2");
    assert_line(out, "limpet_first_byte_seconds_bucket{le=\"0.00025\"} 3");
    assert_line(out, "limpet_first_byte_seconds_bucket{le=\"5\"} 3");
    assert_line(out, "limpet_first_byte_seconds_bucket{le=\"30\"} 4");
    assert_line(out, "limpet_first_byte_seconds_bucket{le=\"+Inf\"} 5");
    assert_line(out, "limpet_first_byte_seconds_sum 60.000202");
    assert_line(out, "limpet_first_byte_seconds_count 5");
    assert_int_equal(engines[0].latency_count + engines[1].latency_count, 5);
    lp_buf_release(&out);
}

static void replicas_have_escaped_labels(void **state)
{
    (void)state;
    struct lp_buf out = print();
    assert_line(out, "limpet_replica_up{server=\"tools\",replica=\"10.0.0.1:1/mcp\"} 1");
    assert_line(out, "limpet_replica_sessions{server=\"tools\",replica=\"10.0.0.1:1/mcp\"} 7");
    assert_line(
        out, "limpet_replica_requests_waiting{server=\"tools\",replica=\"10.0.0.1:1/mcp\"} 3");
    assert_line(out, "limpet_replica_up{server=\"to\\\"o\\\\ls\",replica=\"b\\nb\"} 0");
    assert_line(out, "limpet_replica_up{server=\"tools\",replica=\"c\"} 1");
    assert_line(out, "limpet_replica_up{server=\"tools\",replica=\"d\"} 0");
    lp_buf_release(&out);
}

/* A reader of the format, as far as it goes: families in one block each, HELP and TYPE before the
 * samples, labels quoted, values numbers. */
struct reader {
    struct lp_span families[FAMILIES_MAX];
    struct lp_span types[FAMILIES_MAX];
    size_t count;
    size_t sample_count;
};

static bool is_name(struct lp_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz_", name.ptr[i]))
            return false;
    return name.len > 0;
}

static void read_comment(struct reader *reader, struct lp_span line)
{
    struct lp_span rest;
    assert_true(lp_span_eq(lp_span_split(line, ' ', &rest), LP_SPAN("#")));
    struct lp_span word = lp_span_split(rest, ' ', &rest);
    struct lp_span name = lp_span_split(rest, ' ', &rest);
    assert_true(is_name(name));
    assert_true(rest.len > 0);
    if (lp_span_eq(word, LP_SPAN("HELP"))) {
        for (size_t i = 0; i < reader->count; i++)
            assert_false(lp_span_eq(reader->families[i], name));
        assert_true(reader->count < FAMILIES_MAX);
        reader->families[reader->count++] = name;
        return;
    }
    assert_true(lp_span_eq(word, LP_SPAN("TYPE")));
    assert_true(lp_span_eq(reader->families[reader->count - 1], name));
    assert_null(reader->types[reader->count - 1].ptr);
    reader->types[reader->count - 1] = rest;
}

/* Behind the labels of a sample; NULL when they are malformed. */
static struct lp_span skip_labels(struct lp_span rest)
{
    while (rest.len && rest.ptr[0] != '}') {
        struct lp_span value;
        assert_true(is_name(lp_span_split(rest, '=', &value)));
        assert_true(value.len && value.ptr[0] == '"');
        size_t i = 1;
        for (; i < value.len && value.ptr[i] != '"'; i++)
            if (value.ptr[i] == '\\') {
                i++;
                assert_non_null(strchr("\\\"n", value.ptr[i]));
            }
        rest = lp_span_from(value, i + 1);
        if (rest.len && rest.ptr[0] == ',')
            rest = lp_span_from(rest, 1);
    }
    assert_true(rest.len > 0);
    return lp_span_from(rest, 1);
}

static void read_sample(struct reader *reader, struct lp_span line)
{
    size_t end = 0;
    while (end < line.len && line.ptr[end] != '{' && line.ptr[end] != ' ')
        end++;
    struct lp_span name = lp_span(line.ptr, end), rest = lp_span_from(line, end);
    struct lp_span family = reader->families[reader->count - 1];
    struct lp_span type = reader->types[reader->count - 1];
    assert_true(type.ptr && lp_span_starts(name, family));
    bool is_histogram = lp_span_eq(type, LP_SPAN("histogram"));
    bool is_counter = lp_span_eq(type, LP_SPAN("counter"));
    assert_true(is_histogram || is_counter || lp_span_eq(type, LP_SPAN("gauge")));
    assert_true(is_histogram || lp_span_eq(name, family));
    assert_true(lp_span_ends(name, LP_SPAN("_total")) == is_counter);
    if (rest.ptr[0] == '{')
        rest = skip_labels(lp_span_from(rest, 1));
    assert_true(rest.len > 1 && rest.ptr[0] == ' ');
    char number[64], *number_end;
    snprintf(number, sizeof number, "%.*s", (int)rest.len - 1, rest.ptr + 1);
    assert_true(strtod(number, &number_end) >= 0 && *number_end == '\0');
    reader->sample_count++;
}

static void text_keeps_the_format(void **state)
{
    struct reader reader = {.count = 0};
    (void)state;
    struct lp_buf out = print();
    struct lp_span rest = lp_buf_span(&out);
    assert_int_equal(rest.ptr[rest.len - 1], '\n');
    while (rest.len) {
        struct lp_span line = lp_span_split(rest, '\n', &rest);
        assert_true(line.len > 0);
        if (line.ptr[0] == '#')
            read_comment(&reader, line);
        else
            read_sample(&reader, line);
    }
    /* The list, reasons, ends, statuses, latency, three of replicas, build. */
    assert_int_equal(reader.count, LP_METRIC_count + 8);
    assert_int_equal(reader.sample_count,
        LP_METRIC_count + (LP_REASON_count - 1) + LP_END_count + LP_STATUS_CLASSES +
            LP_LATENCY_BUCKETS + 2 + 3 * 4 + 1);
    lp_buf_release(&out);
}

static void without_replicas_there_is_no_family(void **state)
{
    struct lp_buf out;
    (void)state;
    lp_buf_init(&out, OUT_MAX);
    assert_int_equal(lp_metrics_print(BLOCKS, 2, NULL, 0, &out), LP_OK);
    struct lp_span text = lp_buf_span(&out);
    assert_int_equal(lp_span_search(text, LP_SPAN("limpet_replica_up")), text.len);
    lp_buf_release(&out);
}

static void full_buffer_is_told(void **state)
{
    (void)state;
    struct lp_buf out = print();
    size_t len = out.len;
    lp_buf_release(&out);
    for (size_t max = 0; max < len; max++) {
        lp_buf_init(&out, max);
        assert_int_equal(lp_metrics_print(BLOCKS, 2, REPLICAS, 4, &out), LP_ELIMIT);
        lp_buf_release(&out);
    }
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup(counts_are_summed_over_engines, empty_engines),
        cmocka_unit_test_setup(statuses_go_into_classes, empty_engines),
        cmocka_unit_test_setup(latencies_are_cumulative, empty_engines),
        cmocka_unit_test_setup(replicas_have_escaped_labels, empty_engines),
        cmocka_unit_test_setup(text_keeps_the_format, empty_engines),
        cmocka_unit_test_setup(without_replicas_there_is_no_family, empty_engines),
        cmocka_unit_test_setup(full_buffer_is_told, empty_engines),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
