/* One value -> the field its row names: every type of the key table but lists of mappings. Each
 * refusal says what would be accepted. Nothing is written to the field of a refused value, so the
 * default stays there and later checks see no half value. */
#include <stdio.h>

#include "conf/conf_priv.h"

/* A copy of the value's text in the snapshot's memory; NULL when it was refused. */
static char *keep_text(struct lp_conf_reader *reader, struct lp_conf_value *value)
{
    struct lp_span copy;
    if (value->text.len > LP_CONF_TEXT_MAX) {
        lp_conf_refuse(
            &reader->problems, value, "is too long; %d bytes are accepted", LP_CONF_TEXT_MAX);
        return NULL;
    }
    int err = lp_arena_dup(reader->keep, value->text, &copy);
    if (err) {
        reader->err = err;
        value->is_refused = true;
        return NULL;
    }
    /* The arena's memory is ours to write; the span's pointer only says const. */
    return (char *)(uintptr_t)copy.ptr;
}

static void store_span(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    char *text = keep_text(reader, value);
    if (text)
        *(struct lp_span *)field = lp_span(text, value->text.len);
}

static bool has_control(struct lp_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7F)
            return true;
    return false;
}

static void read_text(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    /* A dialect is compared with a whole body, which may have line ends. */
    bool may_have_control = row->scope == LP_SCOPE_DIALECT;
    if (value->text.len == 0)
        lp_conf_problem(&reader->problems, value, "is empty; leave it out instead");
    else if (!may_have_control && has_control(value->text))
        lp_conf_refuse(&reader->problems, value, "holds control characters");
    else
        store_span(reader, field, value);
}

static void read_name(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    if (lp_conf_is_name(value->text))
        store_span(reader, field, value);
    else
        lp_conf_refuse(&reader->problems, value,
            "is not a name; use 1 to %d letters, digits, '.', '_' and '-'", LP_CONF_NAME_MAX);
}

static void read_path(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    if (lp_conf_is_path(value->text))
        store_span(reader, field, value);
    else
        lp_conf_refuse(&reader->problems, value,
            "is not a path; it begins with '/' and has no query, like /mcp");
}

static void refuse_range(
    struct lp_conf_reader *reader, const struct lp_conf_key *row, struct lp_conf_value *value)
{
    enum { RANGE_MAX = 96 };
    struct lp_buf range;
    lp_buf_init(&range, RANGE_MAX);
    int err = lp_conf_write_bound(&range, row->type, row->min);
    err = err ? err : lp_buf_append(&range, LP_SPAN(" to "));
    err = err ? err : lp_conf_write_bound(&range, row->type, row->max);
    if (err)
        reader->err = err;
    else
        lp_conf_refuse(&reader->problems, value, "is out of range; from %.*s is accepted",
            (int)range.len, lp_buf_span(&range).ptr);
    lp_buf_release(&range);
}

static const char *number_form(enum lp_conf_type type)
{
    if (type == LP_TYPE_DURATION)
        return "is not a duration; use a number with its unit: 500ms, 30s, 5m, 2h or 30d";
    if (type == LP_TYPE_SIZE)
        return "is not a size; use a number of bytes, or with a unit: 64KiB, 4MiB or 1GiB";
    return "is not a whole number";
}

static int parse_number(enum lp_conf_type type, struct lp_span text, uint64_t *ret_number)
{
    if (type == LP_TYPE_DURATION)
        return lp_conf_parse_duration(text, ret_number);
    if (type == LP_TYPE_SIZE)
        return lp_conf_parse_size(text, ret_number);
    return lp_span_to_u64(text, ret_number) ? LP_OK : LP_ESYNTAX;
}

static void read_number(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    uint64_t number = 0;
    int err = parse_number(row->type, value->text, &number);
    if (err == LP_ESYNTAX)
        lp_conf_refuse(&reader->problems, value, "%s", number_form(row->type));
    else if (err || number < row->min || number > row->max)
        refuse_range(reader, row, value);
    else if (row->type == LP_TYPE_COUNT)
        *(uint32_t *)field = (uint32_t)number;
    else if (row->type == LP_TYPE_STATUS)
        *(uint16_t *)field = (uint16_t)number;
    else
        *(uint64_t *)field = number;
}

static void read_code(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    uint64_t number = 0;
    bool is_negative = lp_span_starts(value->text, LP_SPAN("-"));
    struct lp_span digits = lp_span_from(value->text, is_negative ? 1 : 0);
    if (!lp_span_to_u64(digits, &number) || number > INT32_MAX)
        lp_conf_refuse(
            &reader->problems, value, "is not a JSON-RPC code; use a number like -32001");
    else
        *(int32_t *)field = is_negative ? -(int32_t)number : (int32_t)number;
}

static void read_switch(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    int index = lp_conf_choice_find("false|true", value->text);
    if (index < 0)
        lp_conf_refuse(&reader->problems, value, "is not a switch; use true or false");
    else
        *(bool *)field = index == 1;
}

static void list_words(const char *choices, char *room, size_t room_len)
{
    struct lp_span rest = lp_span_str(choices);
    size_t len = 0;
    while (rest.ptr) {
        struct lp_span word = lp_span_split(rest, '|', &rest);
        const char *gap = len == 0 ? "" : rest.ptr ? ", " : " or ";
        len += (size_t)snprintf(room + len, room_len - len, "%s%.*s", gap, (int)word.len, word.ptr);
    }
}

static void read_choice(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    char words[128];
    int index = lp_conf_choice_find(row->choices, value->text);
    list_words(row->choices, words, sizeof words);
    if (index >= 0)
        memcpy(field, &index, sizeof index); /* an int, or an enum of the same size */
    else if (row->later && lp_span_eq(value->text, lp_span_str(row->later)))
        lp_conf_refuse(&reader->problems, value, "comes with a later release; use %s", words);
    else
        lp_conf_refuse(&reader->problems, value, "is not known here; use %s", words);
}

static void read_listen(
    struct lp_conf_reader *reader, struct lp_conf_address *field, struct lp_conf_value *value)
{
    char *text = keep_text(reader, value);
    int err = text ? lp_conf_parse_listen(text, value->text.len, field) : LP_OK;
    if (err == LP_ERANGE)
        lp_conf_refuse(&reader->problems, value, "has a port that is not from 1 to 65535");
    else if (err == LP_ETOO_LONG)
        lp_conf_refuse(
            &reader->problems, value, "has a socket path over %d bytes", LP_CONF_UNIX_PATH_MAX);
    else if (err)
        lp_conf_refuse(&reader->problems, value,
            "is not an address; use host:port, [IPv6]:port or unix:/path.sock");
}

static void read_url(
    struct lp_conf_reader *reader, struct lp_conf_replica *replica, struct lp_conf_value *value)
{
    char *text = keep_text(reader, value);
    int err = text ? lp_conf_parse_replica(text, value->text.len, &replica->address, &replica->path)
                   : LP_OK;
    if (err == LP_ERANGE)
        lp_conf_refuse(&reader->problems, value, "has a port that is not from 1 to 65535");
    else if (err == LP_ETOO_LONG)
        lp_conf_refuse(
            &reader->problems, value, "has a socket path over %d bytes", LP_CONF_UNIX_PATH_MAX);
    else if (err)
        lp_conf_refuse(&reader->problems, value,
            "is not a replica address; use "
            "http://host:port/path, https://host/path or unix:/path.sock:/path");
}

/* "ID=URL". What an owner id is made of is judged by who chooses the own one. */
static void read_peer(
    struct lp_conf_reader *reader, struct lp_conf_replica *peer, struct lp_conf_value *value)
{
    struct lp_conf_value id = *value, url = *value;
    id.text = lp_span_split(value->text, '=', &url.text);
    if (!url.text.ptr || !lp_conf_is_name(id.text)) {
        lp_conf_refuse(&reader->problems, value,
            "is not a peer; use its owner id and address, like m2=http://10.0.0.2:8080");
        return;
    }
    peer->is_peer = true;
    store_span(reader, &peer->name, &id);
    read_url(reader, peer, &url);
    value->is_refused = id.is_refused || url.is_refused;
    if (!value->is_refused && peer->path.len && !lp_span_eq(peer->path, LP_SPAN("/")))
        lp_conf_refuse(&reader->problems, value,
            "names a path; a peer serves the same paths as this sidecar, so leave it out");
}

static void read_host(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    if (lp_span_eq(value->text, LP_SPAN("*")) || lp_conf_is_host(value->text))
        store_span(reader, field, value);
    else
        lp_conf_refuse(&reader->problems, value,
            "is not a host; use a name or address, with :port if it matters, or \"*\" for any");
}

static void read_origin(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    char *text = keep_text(reader, value);
    if (text && lp_conf_parse_origin(text, value->text.len))
        lp_conf_refuse(&reader->problems, value,
            "is not an origin; use scheme://host or scheme://host:port, or \"*\" for any");
    else if (text)
        *(struct lp_span *)field = lp_span(text, value->text.len);
}

static void read_public(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    char *text = keep_text(reader, value);
    if (text && lp_conf_parse_public(text, value->text.len))
        lp_conf_refuse(&reader->problems, value,
            "is not a URL that clients could use; use https://host/path, without query");
    else if (text)
        *(struct lp_span *)field = lp_span(text, value->text.len);
}

static void read_admin(struct lp_conf_reader *reader, void *field, struct lp_conf_value *value)
{
    read_listen(reader, field, value);
    reader->conf->has_admin = !value->is_refused;
}

/* "off": the field becomes empty, whatever its type. */
static void switch_off(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field)
{
    if (row->type == LP_TYPE_ADMIN)
        reader->conf->has_admin = false;
    else if (row->type == LP_TYPE_DURATION)
        *(uint64_t *)field = 0;
    else
        *(struct lp_span *)field = lp_span(NULL, 0);
}

static void read_later(struct lp_conf_reader *reader, struct lp_conf_value *value)
{
    /* `false` asks for what this release does anyway. */
    if (value->kind != LP_VALUE_SCALAR || !lp_span_eq(value->text, LP_SPAN("false")))
        lp_conf_problem(&reader->problems, value, "comes with a later release; take the key out");
}

/* No value at all: "key:", "key: ~" or "key: null". A flag always has one. */
static bool is_missing(const struct lp_conf_value *value)
{
    struct lp_span text = value->text;
    return value->is_plain &&
        (text.len == 0 || lp_span_eq(text, LP_SPAN("~")) || lp_span_eq(text, LP_SPAN("null")));
}

/* A value or an item of a list; the types of lists are here for their items. */
static void read_scalar(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    switch (row->type) {
    case LP_TYPE_TEXT:
    case LP_TYPE_AGENTS:
        read_text(reader, row, field, value);
        break;
    case LP_TYPE_NAME:
        read_name(reader, field, value);
        break;
    case LP_TYPE_PATH:
    case LP_TYPE_PASSES:
        read_path(reader, field, value);
        break;
    case LP_TYPE_DURATION:
    case LP_TYPE_SIZE:
    case LP_TYPE_COUNT:
    case LP_TYPE_STATUS:
        read_number(reader, row, field, value);
        break;
    case LP_TYPE_CODE:
        read_code(reader, field, value);
        break;
    case LP_TYPE_SWITCH:
        read_switch(reader, field, value);
        break;
    case LP_TYPE_CHOICE:
        read_choice(reader, row, field, value);
        break;
    case LP_TYPE_ADMIN:
        read_admin(reader, field, value);
        break;
    case LP_TYPE_LISTENS:
        read_listen(reader, field, value);
        break;
    case LP_TYPE_HOSTS:
        read_host(reader, field, value);
        break;
    case LP_TYPE_ORIGINS:
        read_origin(reader, field, value);
        break;
    case LP_TYPE_PUBLIC_URLS:
        read_public(reader, field, value);
        break;
    case LP_TYPE_REPLICAS:
    case LP_TYPE_URL:
        read_url(reader, field, value);
        break;
    case LP_TYPE_PEERS:
        read_peer(reader, field, value);
        break;
    default:
        LP_UNREACHABLE();
    }
}

/* What a value of this type looks like, for who wrote a list or a mapping in its place. */
static const char *form_of(enum lp_conf_type type)
{
    switch (type) {
    case LP_TYPE_ADMIN:
    case LP_TYPE_LISTENS:
        return "an address like 127.0.0.1:8080";
    case LP_TYPE_URL:
    case LP_TYPE_REPLICAS:
        return "a URL like http://10.0.0.1:3001/mcp";
    case LP_TYPE_PEERS:
        return "a peer like m2=http://10.0.0.2:8080";
    case LP_TYPE_DURATION:
        return "a duration like 30s";
    case LP_TYPE_SIZE:
        return "a size like 4MiB";
    case LP_TYPE_COUNT:
    case LP_TYPE_STATUS:
    case LP_TYPE_CODE:
        return "a number";
    case LP_TYPE_SWITCH:
        return "true or false";
    case LP_TYPE_PATH:
    case LP_TYPE_PASSES:
        return "a path like /mcp";
    case LP_TYPE_HOSTS:
        return "a host like app.example.com";
    case LP_TYPE_ORIGINS:
        return "an origin like https://app.example.com";
    case LP_TYPE_PUBLIC_URLS:
        return "a URL like https://mcp.example.com/mcp";
    default:
        return "one word or text";
    }
}

bool lp_conf_read_scalar(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    if (value->is_refused)
        return false;
    if (value->kind != LP_VALUE_SCALAR)
        lp_conf_problem(&reader->problems, value, "takes %s, not a %s", form_of(row->type),
            value->kind == LP_VALUE_LIST ? "list" : "mapping of keys");
    else if (is_missing(value))
        lp_conf_problem(
            &reader->problems, value, "has no value; leave the key out for the default");
    else if (row->takes_off && lp_span_eq(value->text, LP_SPAN("off")))
        switch_off(reader, row, field);
    else
        read_scalar(reader, row, field, value);
    return !value->is_refused;
}

bool lp_conf_read_value(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    if (row->type == LP_TYPE_LATER) {
        read_later(reader, value);
        return false;
    }
    if (row->type >= LP_TYPE_LISTENS)
        return lp_conf_read_list(reader, row, field, value);
    return lp_conf_read_scalar(reader, row, field, value);
}
