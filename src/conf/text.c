/* Words and units of the configuration: durations ("30s"), sizes ("4MiB") and choices, read and
 * written. A number without a unit is no duration: nobody can know which one was meant. */
#include "conf/conf_priv.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first, for writing. */
static const struct unit DURATIONS[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit SIZES[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}};

enum {
    DURATION_COUNT = sizeof DURATIONS / sizeof DURATIONS[0],
    SIZE_COUNT = sizeof SIZES / sizeof SIZES[0],
};

static int parse(
    struct lp_span text, const struct unit *units, uint32_t unit_count, uint64_t *ret_value)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    if (digits == 0)
        return LP_ESYNTAX;
    for (uint32_t i = 0; i < unit_count; i++) {
        uint64_t number = 0;
        if (!lp_span_eq(lp_span_from(text, digits), lp_span_str(units[i].name)))
            continue;
        if (!lp_span_to_u64(lp_span(text.ptr, digits), &number) ||
            number > UINT64_MAX / units[i].factor)
            return LP_ERANGE;
        *ret_value = number * units[i].factor;
        return LP_OK;
    }
    return LP_ESYNTAX;
}

static int write_value(
    struct lp_buf *out, const struct unit *units, uint32_t unit_count, uint64_t value)
{
    uint32_t i = 0;
    while (i + 1 < unit_count && (value == 0 || value % units[i].factor != 0))
        i++;
    return lp_buf_printf(
        out, "%llu%s", (unsigned long long)(value / units[i].factor), units[i].name);
}

int lp_conf_parse_duration(struct lp_span text, uint64_t *ret_ms)
{
    return parse(text, DURATIONS, DURATION_COUNT, ret_ms);
}

int lp_conf_parse_size(struct lp_span text, uint64_t *ret_bytes)
{
    return parse(text, SIZES, SIZE_COUNT, ret_bytes);
}

int lp_conf_write_duration(struct lp_buf *out, uint64_t ms)
{
    return write_value(out, DURATIONS, DURATION_COUNT, ms);
}

int lp_conf_write_size(struct lp_buf *out, uint64_t bytes)
{
    return write_value(out, SIZES, SIZE_COUNT, bytes);
}

int lp_conf_write_bound(struct lp_buf *out, enum lp_conf_type type, uint64_t bound)
{
    if (type == LP_TYPE_DURATION)
        return lp_conf_write_duration(out, bound);
    if (type == LP_TYPE_SIZE)
        return lp_conf_write_size(out, bound);
    return lp_buf_printf(out, "%llu", (unsigned long long)bound);
}

int lp_conf_choice_find(const char *choices, struct lp_span text)
{
    struct lp_span rest = lp_span_str(choices);
    for (int i = 0; rest.ptr; i++)
        if (lp_span_eq(lp_span_split(rest, '|', &rest), text))
            return i;
    return -1;
}

struct lp_span lp_conf_choice_word(const char *choices, int index)
{
    struct lp_span rest = lp_span_str(choices);
    struct lp_span word = {NULL, 0};
    for (int i = 0; rest.ptr && i <= index; i++)
        word = lp_span_split(rest, '|', &rest);
    return word;
}
