/* What the head repeats of the body (serve/mirror.h).
 *
 * A schema's marks are followed along `properties` only, as far as a client may follow them. A
 * value that is absent or null has no header; one that is there must have it, once, and equal:
 * strings byte for byte, whole numbers as numbers (42 is 42.0). Fields that no mark names are
 * nobody's business (cases MOD-02). */
#include "serve/mirror.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "mcp/version.h"
#include "wire/member.h"

enum { NAME_MAX = 64, NUMBER_MAX = 32 };

/* --- keeping --- */

static bool is_mirrored(const struct lp_field *field)
{
    struct lp_span prefix = lp_span(field->name.ptr, field->name.len < 4 ? field->name.len : 4);
    return lp_span_ieq(prefix, LP_SPAN("mcp-")) && field->id != LP_FIELD_MCP_SESSION_ID;
}

int lp_mirror_keep(struct lp_buf *kept, const struct lp_head *head)
{
    int err = LP_OK;
    for (uint32_t i = 0; i < head->field_count && !err; i++) {
        const struct lp_field *field = &head->fields[i];
        if (is_mirrored(field))
            err = LP_JOIN(kept, field->name, LP_SPAN(":"), field->value, LP_SPAN("\n"));
    }
    return err;
}

void lp_mirror_read(struct lp_span kept, struct lp_head *ret)
{
    ret->field_count = 0;
    while (kept.len) {
        struct lp_span line = lp_span_split(kept, '\n', &kept);
        struct lp_span value;
        struct lp_span name = lp_span_split(line, ':', &value);
        int err = lp_head_add_other(ret, name, value);
        LP_ASSERT(!err); /* it had as many before */
    }
}

/* --- comparing --- */

struct check {
    const struct lp_head *head;
    struct lp_span arguments; /* the object at this place */
    char *why;
    bool agrees;
};

static bool is_scalar_number(struct lp_span text)
{
    struct lp_json reader;
    lp_json_init(&reader, NULL, NULL);
    bool is_json = !lp_json_feed(&reader, text) && !lp_json_finish(&reader);
    return is_json && text.len && text.len < NUMBER_MAX &&
        (text.ptr[0] == '-' || (text.ptr[0] >= '0' && text.ptr[0] <= '9'));
}

static double number_of(struct lp_span text)
{
    char room[NUMBER_MAX];
    memcpy(room, text.ptr, text.len);
    room[text.len] = '\0';
    return strtod(room, NULL);
}

/* Beyond 2^53 two numbers may look alike that are not; the marks are not for these. */
static bool numbers_are_equal(struct lp_span value, struct lp_span token)
{
    return is_scalar_number(value) && is_scalar_number(token) &&
        number_of(value) == number_of(token);
}

static bool value_fits(struct lp_span value, struct lp_span token)
{
    if (token.ptr[0] == '"')
        return lp_version_value_means(value, token);
    return lp_span_eq(value, token) || numbers_are_equal(value, token);
}

/* How many such fields there are; the first one's value. */
static uint32_t find_param(
    const struct lp_head *head, struct lp_span mark, struct lp_span *ret_value)
{
    static const struct lp_span PREFIX = {"mcp-param-", 10};
    uint32_t count = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        bool is_it = field->name.len == PREFIX.len + mark.len &&
            lp_span_ieq(lp_span(field->name.ptr, PREFIX.len), PREFIX) &&
            lp_span_ieq(lp_span_from(field->name, PREFIX.len), mark);
        if (is_it && count++ == 0)
            *ret_value = field->value;
    }
    return count;
}

static void disagree(struct check *c, struct lp_span mark, const char *what)
{
    int shown = mark.len < NAME_MAX ? (int)mark.len : NAME_MAX;
    snprintf(c->why, LP_MIRROR_WHY_MAX, "Mcp-Param-%.*s %s", shown, mark.ptr, what);
    c->agrees = false;
}

static void check_mark(struct check *c, struct lp_span mark, struct lp_span argument)
{
    struct lp_span value = {0};
    uint32_t count = find_param(c->head, mark, &value);
    bool is_due = argument.len && !lp_span_eq(argument, LP_SPAN("null"));
    if (count > 1)
        disagree(c, mark, "is given twice");
    else if (is_due && count == 0)
        disagree(c, mark, "is missing");
    else if (count == 1 && (!is_due || !value_fits(value, argument)))
        disagree(c, mark, "does not match the argument that it repeats");
}

static void check_properties(struct check *c, struct lp_span schema);

static void check_property(void *ctx, struct lp_span key, struct lp_span schema)
{
    struct check *c = ctx;
    char room[256];
    size_t len;
    if (!c->agrees || lp_json_unescape(key, room, sizeof room, &len))
        return;
    struct check inner = *c;
    inner.arguments = lp_member(c->arguments, lp_span(room, len));
    struct lp_span token = lp_member(schema, LP_SPAN("x-mcp-header"));
    if (token.len > 2 && token.ptr[0] == '"')
        check_mark(&inner, lp_span(token.ptr + 1, token.len - 2), inner.arguments);
    check_properties(&inner, schema);
    c->agrees = inner.agrees;
}

/* As deep as the program's own schema is nested, which the reader has bounded. */
static void check_properties(struct check *c, struct lp_span schema)
{
    struct lp_span properties = lp_member(schema, LP_SPAN("properties"));
    if (c->agrees && properties.len)
        lp_members(properties, check_property, c);
}

bool lp_mirror_agrees(const struct lp_head *head, struct lp_span schema, struct lp_span arguments,
    char why[LP_MIRROR_WHY_MAX])
{
    struct check c = {.head = head, .arguments = arguments, .why = why, .agrees = true};
    /* Most schemas have no mark: these cost one search. */
    if (lp_span_search(schema, LP_SPAN("x-mcp-header")) < schema.len)
        check_properties(&c, schema);
    return c.agrees;
}
