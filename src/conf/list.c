/* Lists of the configuration -> arrays in the snapshot: addresses, hosts, origins, agents,
 * replicas, dialects. One value without brackets is a list of one. */
#include <stddef.h>

#include "conf/conf_priv.h"

/* How every list lies in the snapshot's structs. */
struct list_field {
    void *items;
    uint32_t count;
};

#define SAME_PLACE(type, list, number)                                                             \
    _Static_assert(                                                                                \
        offsetof(type, number) == offsetof(type, list) + offsetof(struct list_field, count),       \
        #number " must follow " #list)
SAME_PLACE(struct lp_conf, listens, listen_count);
SAME_PLACE(struct lp_conf_server, replicas, replica_count);
SAME_PLACE(struct lp_conf_server, peers, peer_count);
SAME_PLACE(struct lp_conf_server, hosts, host_count);
SAME_PLACE(struct lp_conf_server, origins, origin_count);
SAME_PLACE(struct lp_conf_server, public_urls, public_url_count);
SAME_PLACE(struct lp_conf_server, lost_dialects, lost_dialect_count);
SAME_PLACE(struct lp_conf_server, plain_404_agents, plain_404_agent_count);
SAME_PLACE(struct lp_conf_server, passes, pass_count);

static size_t item_size(enum lp_conf_type type)
{
    if (type == LP_TYPE_LISTENS)
        return sizeof(struct lp_conf_address);
    if (type == LP_TYPE_REPLICAS || type == LP_TYPE_PEERS)
        return sizeof(struct lp_conf_replica);
    if (type == LP_TYPE_PASSES)
        return sizeof(struct lp_conf_pass);
    return type == LP_TYPE_DIALECTS ? sizeof(struct lp_conf_dialect) : sizeof(struct lp_span);
}

static bool has_member(const struct lp_conf_value *map, struct lp_span key)
{
    for (uint32_t i = 0; i < map->count; i++)
        if (lp_span_eq(map->items[i].key, key))
            return true;
    return false;
}

static void demand(
    struct lp_conf_reader *reader, struct lp_conf_value *map, const char *key, const char *example)
{
    if (!has_member(map, lp_span_str(key)))
        lp_conf_problem(&reader->problems, map, "%s is missing; write it like %s", key, example);
}

/* A mapping as an item; it is refused when one of its members is, so that no half item is kept. */
static void read_mapping(
    struct lp_conf_reader *reader, enum lp_conf_scope scope, void *item, struct lp_conf_value *map)
{
    struct lp_conf_target target = {.scope = scope, .item = item};
    if (scope == LP_SCOPE_REPLICA) {
        demand(reader, map, "url", "{url: \"http://10.0.0.1:3001/mcp\", name: a}");
    } else if (scope == LP_SCOPE_PASS) {
        demand(reader, map, "path", "{path: /register, to: pinned}");
    } else {
        demand(reader, map, "status", "{status: 400, text: Unknown session}");
        demand(reader, map, "text", "{status: 400, text: Unknown session}");
    }
    lp_conf_read_map(reader, &target, LP_SPAN(""), map);
    for (uint32_t i = 0; i < map->count; i++)
        if (map->items[i].is_refused)
            map->is_refused = true;
}

/* Of the items of a list that are structs; LP_SCOPE_COMMAND: they are not. */
static enum lp_conf_scope scope_of(enum lp_conf_type type)
{
    switch (type) {
    case LP_TYPE_REPLICAS:
    case LP_TYPE_PEERS:
        return LP_SCOPE_REPLICA;
    case LP_TYPE_DIALECTS:
        return LP_SCOPE_DIALECT;
    case LP_TYPE_PASSES:
        return LP_SCOPE_PASS;
    default:
        return LP_SCOPE_COMMAND;
    }
}

static bool read_item(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *item,
    struct lp_conf_value *value)
{
    bool is_dialect = row->type == LP_TYPE_DIALECTS, is_peer = row->type == LP_TYPE_PEERS;
    enum lp_conf_scope scope = scope_of(row->type);
    if (scope != LP_SCOPE_COMMAND)
        lp_conf_read_defaults(reader, &(struct lp_conf_target){.scope = scope, .item = item});
    if (scope != LP_SCOPE_COMMAND && !is_peer && value->kind == LP_VALUE_MAP)
        read_mapping(reader, scope, item, value);
    else if (is_dialect)
        lp_conf_problem(
            &reader->problems, value, "takes a mapping, like {status: 400, text: Unknown session}");
    else
        return lp_conf_read_scalar(reader, row, item, value);
    return !value->is_refused;
}

bool lp_conf_read_list(struct lp_conf_reader *reader, const struct lp_conf_key *row, void *field,
    struct lp_conf_value *value)
{
    bool is_list = value->kind == LP_VALUE_LIST;
    struct lp_conf_value *values = is_list ? value->items : value;
    uint32_t count = is_list ? value->count : 1;
    size_t size = item_size(row->type);
    if (value->is_refused)
        return false;
    if (count > row->max) {
        lp_conf_problem(&reader->problems, value, "has more than %u items", (unsigned)row->max);
        return false;
    }
    struct list_field list = {.items = lp_arena_alloc(reader->keep, count * size + 1)};
    if (!list.items) {
        reader->err = LP_ENOMEM;
        return false;
    }
    memset(list.items, 0, count * size);
    for (uint32_t i = 0; i < count; i++) {
        char *item = (char *)list.items + list.count * size;
        if (read_item(reader, row, item, &values[i]))
            list.count++;
        else
            value->is_refused = true;
    }
    memcpy((char *)field + offsetof(struct list_field, items), &list.items, sizeof list.items);
    memcpy((char *)field + offsetof(struct list_field, count), &list.count, sizeof list.count);
    return !value->is_refused;
}
