/* A snapshot -> YAML that reads back as the same snapshot (for `limpet config show`), by the key
 * table. Every effective value is shown; what is empty and empty by default is left out. There are
 * no secrets in a snapshot: keys are in the key file, and URLs with credentials are refused. */
#include <stdarg.h>
#include <stdio.h>

#include "conf/conf_priv.h"

struct printer {
    struct lp_buf *out;
    int err;
};

static void put(struct printer *p, struct lp_span text)
{
    if (!p->err)
        p->err = lp_buf_append(p->out, text);
}

static void put_indent(struct printer *p, int indent)
{
    for (int i = 0; i < indent; i++)
        put(p, LP_SPAN(" "));
}

static bool is_plain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
        (c && strchr("/._:-", c));
}

/* Whether YAML takes the text as it is; "null" would be no value. */
static bool is_plain(struct lp_span text)
{
    if (text.len == 0 || strchr(":-.", text.ptr[0]) || text.ptr[text.len - 1] == ':' ||
        lp_span_eq(text, LP_SPAN("null")))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_plain_char(text.ptr[i]))
            return false;
    return true;
}

/* The length of the UTF-8 sequence at the front and its code point; 1 and U+FFFD for a bad one. */
static size_t decode(struct lp_span text, uint32_t *ret_point)
{
    unsigned char first = (unsigned char)text.ptr[0];
    size_t len = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    uint32_t point = len > 1 ? first & (0x7Fu >> len) : first;
    bool is_good = len > 0 && len <= text.len;
    for (size_t i = 1; is_good && i < len; i++) {
        is_good = ((unsigned char)text.ptr[i] & 0xC0) == 0x80;
        point = point << 6 | ((unsigned char)text.ptr[i] & 0x3F);
    }
    *ret_point = is_good ? point : 0xFFFD;
    return is_good ? len : 1;
}

/* What a YAML reader would refuse, or take for a line end, when it stood there as itself. */
static bool must_escape(uint32_t point)
{
    return point < 0x20 || point == '"' || point == '\\' || (point >= 0x7F && point < 0xA0) ||
        point == 0x2028 || point == 0x2029 || point == 0xFEFF || point >= 0xFFFD;
}

static void put_quoted(struct printer *p, struct lp_span text)
{
    put(p, LP_SPAN("\""));
    while (text.len) {
        uint32_t point;
        size_t len = decode(text, &point);
        if (!must_escape(point))
            put(p, lp_span(text.ptr, len));
        else if (!p->err)
            p->err = lp_buf_printf(p->out, point > 0xFFFF ? "\\U%08X" : "\\u%04X", (unsigned)point);
        text = lp_span_from(text, len);
    }
    put(p, LP_SPAN("\""));
}

static void put_text(struct printer *p, struct lp_span text)
{
    if (is_plain(text))
        put(p, text);
    else
        put_quoted(p, text);
}

static void put_written(
    struct printer *p, int (*write)(struct lp_buf *, const void *), const void *thing)
{
    struct lp_buf text;
    lp_buf_init(&text, 2 * LP_CONF_TEXT_MAX);
    int err = write(&text, thing);
    if (err && !p->err)
        p->err = err;
    put_text(p, lp_buf_span(&text));
    lp_buf_release(&text);
}

static int write_address(struct lp_buf *out, const void *address)
{
    return lp_conf_write_address(out, address);
}

static int write_url(struct lp_buf *out, const void *replica)
{
    return lp_conf_write_url(out, replica);
}

static void put_number(struct printer *p, const struct lp_conf_key *row, const void *field)
{
    uint64_t number = row->type == LP_TYPE_COUNT ? *(const uint32_t *)field
        : row->type == LP_TYPE_STATUS            ? *(const uint16_t *)field
                                                 : *(const uint64_t *)field;
    if (p->err)
        return;
    if (row->takes_off && number == 0)
        put(p, LP_SPAN("off"));
    else if (row->type == LP_TYPE_DURATION)
        p->err = lp_conf_write_duration(p->out, number);
    else if (row->type == LP_TYPE_SIZE)
        p->err = lp_conf_write_size(p->out, number);
    else
        p->err = lp_buf_printf(p->out, "%llu", (unsigned long long)number);
}

static void put_scalar(struct printer *p, const struct lp_conf_key *row, const void *field)
{
    int index;
    switch (row->type) {
    case LP_TYPE_TEXT:
    case LP_TYPE_NAME:
    case LP_TYPE_PATH:
    case LP_TYPE_HOSTS:
    case LP_TYPE_ORIGINS:
    case LP_TYPE_PUBLIC_URLS:
    case LP_TYPE_AGENTS:
        put_text(p, *(const struct lp_span *)field);
        break;
    case LP_TYPE_CODE:
        if (!p->err)
            p->err = lp_buf_printf(p->out, "%d", (int)*(const int32_t *)field);
        break;
    case LP_TYPE_SWITCH:
        put(p, *(const bool *)field ? LP_SPAN("true") : LP_SPAN("false"));
        break;
    case LP_TYPE_CHOICE:
        memcpy(&index, field, sizeof index);
        put(p, lp_conf_choice_word(row->choices, index));
        break;
    case LP_TYPE_ADMIN:
    case LP_TYPE_LISTENS:
        put_written(p, write_address, field);
        break;
    case LP_TYPE_URL:
        put_written(p, write_url, field);
        break;
    default:
        put_number(p, row, field);
    }
}

static void put_rows(struct printer *p, enum lp_conf_scope scope, const void *item, int indent);

/* A mapping as an item: its first key stands behind the dash. */
static void put_mapping(struct printer *p, enum lp_conf_scope scope, const void *item, int indent)
{
    size_t start = p->out->len;
    put_rows(p, scope, item, indent + 2);
    if (!p->err)
        p->out->ptr[p->out->off + start + (size_t)indent] = '-';
}

struct list_view {
    const void *items;
    uint32_t count;
};

static void put_list(
    struct printer *p, const struct lp_conf_key *row, const void *field, int indent)
{
    struct list_view list;
    memcpy(&list, field, sizeof list);
    put(p, list.count ? LP_SPAN("\n") : LP_SPAN(" []\n"));
    for (uint32_t i = 0; i < list.count; i++) {
        if (row->type == LP_TYPE_REPLICAS) {
            put_mapping(
                p, LP_SCOPE_REPLICA, (const struct lp_conf_replica *)list.items + i, indent);
        } else if (row->type == LP_TYPE_PASSES) {
            put_mapping(p, LP_SCOPE_PASS, (const struct lp_conf_pass *)list.items + i, indent);
        } else if (row->type == LP_TYPE_DIALECTS) {
            put_mapping(
                p, LP_SCOPE_DIALECT, (const struct lp_conf_dialect *)list.items + i, indent);
        } else {
            size_t size = row->type == LP_TYPE_LISTENS ? sizeof(struct lp_conf_address)
                                                       : sizeof(struct lp_span);
            put_indent(p, indent);
            put(p, LP_SPAN("- "));
            put_scalar(p, row, (const char *)list.items + i * size);
            put(p, LP_SPAN("\n"));
        }
    }
}

/* Whether the name of a replica is the one it would have without a name. */
static bool has_default_name(struct printer *p, const struct lp_conf_replica *replica)
{
    struct lp_arena arena;
    lp_arena_init(&arena, 2 * LP_CONF_TEXT_MAX);
    struct lp_span name = lp_conf_replica_name(&arena, replica);
    if (!name.ptr && !p->err)
        p->err = LP_ENOMEM;
    bool is_default = lp_span_eq(name, replica->name);
    lp_arena_fini(&arena);
    return is_default;
}

static bool is_left_out(
    struct printer *p, const struct lp_conf_key *row, const void *item, const void *field)
{
    struct list_view list;
    if (row->type == LP_TYPE_LATER || row->type == LP_TYPE_SERVERS ||
        !lp_conf_key_is_of(row, LP_SEAT_GATEWAY))
        return true;
    if (row->scope == LP_SCOPE_REPLICA && row->type == LP_TYPE_NAME)
        return has_default_name(p, item);
    if (row->type == LP_TYPE_TEXT || row->type == LP_TYPE_PATH)
        return ((const struct lp_span *)field)->len == 0;
    if (row->type < LP_TYPE_LISTENS)
        return false;
    memcpy(&list, field, sizeof list);
    return list.count == 0 && !row->fallback;
}

static void put_value(struct printer *p, const struct lp_conf_key *row, const void *item,
    const void *field, int indent)
{
    bool is_off = row->type == LP_TYPE_ADMIN && !((const struct lp_conf *)item)->has_admin;
    if (row->type >= LP_TYPE_LISTENS) {
        put_list(p, row, field, indent + 2);
        return;
    }
    put(p, LP_SPAN(" "));
    if (is_off)
        put(p, LP_SPAN("off"));
    else
        put_scalar(p, row, field);
    put(p, LP_SPAN("\n"));
}

/* The key with its colon; the rows of a group stand together, and the first prints the group. */
static void put_key(
    struct printer *p, const struct lp_conf_key *row, struct lp_span *group, int *indent)
{
    struct lp_span name = lp_span_str(row->name), rest;
    struct lp_span first = lp_span_split(name, '.', &rest);
    if (rest.ptr && !lp_span_eq(first, *group)) {
        put_indent(p, *indent);
        put(p, first);
        put(p, LP_SPAN(":\n"));
    }
    *group = rest.ptr ? first : lp_span(NULL, 0);
    *indent += rest.ptr ? 2 : 0;
    put_indent(p, *indent);
    put(p, rest.ptr ? rest : name);
    put(p, LP_SPAN(":"));
}

static void put_rows(struct printer *p, enum lp_conf_scope scope, const void *item, int indent)
{
    struct lp_span group = {NULL, 0};
    uint32_t count;
    const struct lp_conf_key *keys = lp_conf_keys(&count);
    for (uint32_t i = 0; i < count; i++) {
        const void *field = (const char *)item + keys[i].offset;
        int key_indent = indent;
        if (keys[i].scope != scope || is_left_out(p, &keys[i], item, field))
            continue;
        put_key(p, &keys[i], &group, &key_indent);
        put_value(p, &keys[i], item, field, key_indent);
    }
}

int lp_conf_print(const struct lp_conf *conf, struct lp_buf *out)
{
    struct printer p = {.out = out};
    put_rows(&p, LP_SCOPE_TOP, conf, 0);
    put(&p, LP_SPAN("servers:\n"));
    for (uint32_t i = 0; i < conf->server_count; i++)
        put_mapping(&p, LP_SCOPE_SERVER, &conf->servers[i], 2);
    return p.err;
}
