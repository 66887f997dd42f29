/* Checks across values: what must differ (names, paths, addresses), what must be there (a replica),
 * what has no effect without another. Told at the later of two values. */
#include "conf/conf_priv.h"

static struct lp_conf_value *given(struct lp_conf_draft *draft, struct lp_span name)
{
    const struct lp_conf_key *row = lp_conf_key_find(LP_SCOPE_TOP, LP_SPAN(""), name);
    return draft->from[lp_conf_key_index(row)];
}

/* Where to tell a problem of a key: at its value, else at the mapping where it should be. Several
 * keys may be missing there, so that a mapping takes more than one problem. */
static struct lp_conf_value *place_of(struct lp_conf_draft *draft, struct lp_span name)
{
    struct lp_conf_value *value = given(draft, name);
    if (value)
        return value;
    if (draft->self->kind == LP_VALUE_MAP && draft->self->count)
        draft->self->is_refused = false;
    return draft->self;
}

/* A refused value left its default in the field, which must not be compared. */
static bool is_refused(struct lp_conf_draft *draft, struct lp_span key)
{
    const struct lp_conf_value *value = given(draft, key);
    return value && value->is_refused;
}

static void check_name(struct lp_conf_reader *reader, uint32_t index)
{
    struct lp_conf_draft *draft = &reader->drafts[index];
    struct lp_span key = LP_SPAN("name"), name = draft->server.name;
    for (uint32_t i = 0; i < index; i++) {
        struct lp_conf_draft *other = &reader->drafts[i];
        if (is_refused(draft, key) || is_refused(other, key) ||
            !lp_span_eq(other->server.name, name))
            continue;
        lp_conf_problem(&reader->problems, place_of(draft, key),
            "servers[%u] and servers[%u] are both named %.*s; give each a name of its own",
            (unsigned)i, (unsigned)index, (int)name.len, name.ptr);
        return;
    }
}

static bool uses_path(struct lp_conf_draft *draft, struct lp_span path)
{
    const struct lp_conf_server *server = &draft->server;
    return (lp_span_eq(server->path, path) && !is_refused(draft, LP_SPAN("path"))) ||
        (lp_span_eq(server->sse_path, path) && !is_refused(draft, LP_SPAN("sse_path")));
}

/* `key` names the value that holds `path`. A server's own two paths may be the same. */
static void check_path(
    struct lp_conf_reader *reader, uint32_t index, struct lp_span key, struct lp_span path)
{
    struct lp_conf_draft *draft = &reader->drafts[index];
    if (path.len == 0 || is_refused(draft, key))
        return;
    for (uint32_t i = 0; i < index; i++) {
        if (!uses_path(&reader->drafts[i], path))
            continue;
        lp_conf_problem(&reader->problems, place_of(draft, key),
            "servers[%u] and servers[%u] both have the path %.*s; give each its own", (unsigned)i,
            (unsigned)index, (int)path.len, path.ptr);
        return;
    }
}

static void check_replicas(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    const struct lp_conf_server *server = &draft->server;
    struct lp_conf_value *list = place_of(draft, LP_SPAN("replicas"));
    if (list->is_refused)
        return;
    if (server->replica_count == 0) {
        lp_conf_problem(&reader->problems, list,
            "no replica is given; name at least one, like http://127.0.0.1:3001/mcp");
        return;
    }
    for (uint32_t i = 1; i < server->replica_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct lp_span name = server->replicas[i].name;
            if (lp_span_eq(server->replicas[j].name, name))
                lp_conf_problem(&reader->problems, &list->items[i],
                    "two replicas are named %.*s; each needs an address or a name of its own",
                    (int)name.len, name.ptr);
        }
}

static void check_sse(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    struct lp_conf_value *upstream = given(draft, LP_SPAN("sse_upstream"));
    if (upstream && draft->server.sse_path.len == 0 && !is_refused(draft, LP_SPAN("sse_path")))
        lp_conf_problem(
            &reader->problems, upstream, "has no effect without sse_path; give sse_path too");
}

static bool same_address(const struct lp_conf_address *a, const struct lp_conf_address *b)
{
    return a->port == b->port && lp_span_eq(a->host, b->host);
}

static void check_listens(struct lp_conf_reader *reader)
{
    const struct lp_conf *conf = reader->conf;
    struct lp_conf_value *list = place_of(&reader->base, LP_SPAN("listen"));
    if (conf->listen_count == 0)
        lp_conf_problem(&reader->problems, list, "no address is given; use host:port");
    if (list->is_refused)
        return;
    for (uint32_t i = 0; i < conf->listen_count; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (same_address(&conf->listens[i], &conf->listens[j]))
                lp_conf_problem(&reader->problems, list, "holds the same address twice");
        if (conf->has_admin && !is_refused(&reader->base, LP_SPAN("admin")) &&
            same_address(&conf->listens[i], &conf->admin))
            lp_conf_problem(&reader->problems, place_of(&reader->base, LP_SPAN("admin")),
                "is an address of listen too; the admin listener needs its own");
    }
}

void lp_conf_check(struct lp_conf_reader *reader)
{
    check_listens(reader);
    for (uint32_t i = 0; i < reader->draft_count; i++) {
        struct lp_conf_draft *draft = &reader->drafts[i];
        check_name(reader, i);
        check_path(reader, i, LP_SPAN("path"), draft->server.path);
        check_path(reader, i, LP_SPAN("sse_path"), draft->server.sse_path);
        check_replicas(reader, draft);
        check_sse(reader, draft);
    }
}
