/* Checks across values: what must differ (names, paths, addresses), what must be there (a replica),
 * what has no effect without another. Told at the later of two values. */
#include <stdio.h>

#include "conf/conf_priv.h"

enum { ADDRESS_SHOWN = 128 };

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

/* Those of the configured server itself; a sidecar's peers are told of apart. */
static struct lp_span own_key(const struct lp_conf_reader *reader)
{
    return reader->conf->is_sidecar ? LP_SPAN("local") : LP_SPAN("replicas");
}

static void check_replicas(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    const struct lp_conf_server *server = &draft->server;
    struct lp_conf_value *list = place_of(draft, own_key(reader));
    if (list->is_refused)
        return;
    if (server->replica_count == 0 && reader->conf->is_sidecar) {
        lp_conf_problem(&reader->problems, list,
            "the server beside this sidecar is not given; name it, like --local "
            "http://127.0.0.1:3001/mcp");
        return;
    }
    if (server->replica_count == 0) {
        lp_conf_problem(&reader->problems, list,
            "no replica is given; name at least one, like http://127.0.0.1:3001/mcp");
        return;
    }
    for (uint32_t i = 1; i < server->replica_count && !reader->conf->is_sidecar; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct lp_span name = server->replicas[i].name;
            if (lp_span_eq(server->replicas[j].name, name))
                lp_conf_problem(&reader->problems, &list->items[i],
                    "two replicas are named %.*s; each needs an address or a name of its own",
                    (int)name.len, name.ptr);
        }
}

static void check_peers(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    const struct lp_conf_server *server = &draft->server;
    struct lp_conf_value *list = given(draft, LP_SPAN("peers"));
    if (!list || list->is_refused)
        return;
    for (uint32_t i = 1; i < server->peer_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct lp_span name = server->peers[i].name;
            if (lp_span_eq(server->peers[j].name, name))
                lp_conf_problem(&reader->problems, &list->items[i],
                    "two peers have the owner id %.*s; each has one of its own", (int)name.len,
                    name.ptr);
        }
}

/* --- addresses --- */

static bool is_one_of(struct lp_span host, const char *a, const char *b)
{
    return lp_span_eq(host, lp_span_str(a)) || lp_span_eq(host, lp_span_str(b));
}

/* Whether who connects to `to` comes in at `listen`. Other names than localhost are not looked up
 * here: what they lead to can change while the gateway runs, and it has a guard for that. */
static bool reaches(const struct lp_conf_address *to, const struct lp_conf_address *listen)
{
    if (to->is_unix != listen->is_unix || to->port != listen->port)
        return false;
    if (to->is_unix || lp_span_eq(to->host, listen->host))
        return lp_span_eq(to->host, listen->host);
    if (is_one_of(to->host, "localhost", "localhost"))
        return is_one_of(listen->host, "127.0.0.1", "::1") ||
            is_one_of(listen->host, "0.0.0.0", "::");
    if (lp_span_eq(listen->host, LP_SPAN("0.0.0.0")))
        return lp_span_starts(to->host, LP_SPAN("127."));
    if (lp_span_eq(listen->host, LP_SPAN("::")))
        return lp_span_eq(to->host, LP_SPAN("::1"));
    /* Linux takes a connection to the unspecified address for one to the loopback address. */
    bool is_v4 = is_one_of(to->host, "127.0.0.1", "0.0.0.0");
    bool is_v6 = is_one_of(to->host, "::1", "::");
    return (is_v4 && is_one_of(listen->host, "127.0.0.1", "localhost")) ||
        (is_v6 && is_one_of(listen->host, "::1", "localhost"));
}

static bool overlap(const struct lp_conf_address *a, const struct lp_conf_address *b)
{
    return reaches(a, b) || reaches(b, a);
}

/* The address as text, cut short where it is very long. */
static const char *shown(const struct lp_conf_address *address, char room[ADDRESS_SHOWN])
{
    struct lp_buf text;
    lp_buf_init(&text, LP_CONF_TEXT_MAX);
    bool is_written = lp_conf_write_address(&text, address) == LP_OK;
    struct lp_span span = is_written ? lp_buf_span(&text) : address->host;
    (void)snprintf(room, ADDRESS_SHOWN, "%.*s", (int)span.len, span.ptr);
    lp_buf_release(&text);
    return room;
}

/* The listener that a replica's address leads back to; NULL: none. */
static const struct lp_conf_address *own_listener(
    const struct lp_conf *conf, const struct lp_conf_address *replica)
{
    for (uint32_t i = 0; i < conf->listen_count; i++)
        if (reaches(replica, &conf->listens[i]))
            return &conf->listens[i];
    return conf->has_admin && reaches(replica, &conf->admin) ? &conf->admin : NULL;
}

/* A gateway in front of itself would send each request round and round. */
static void check_loop(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    struct lp_conf_value *list = place_of(draft, own_key(reader));
    if (list->is_refused || is_refused(&reader->base, LP_SPAN("listen")) ||
        is_refused(&reader->base, LP_SPAN("admin")))
        return;
    uint32_t count = draft->server.replica_count;
    if (reader->conf->is_sidecar && count)
        count = 1; /* of the peers one may be itself */
    for (uint32_t i = 0; i < count; i++) {
        const struct lp_conf_address *to = &draft->server.replicas[i].address;
        const struct lp_conf_address *own = own_listener(reader->conf, to);
        char to_text[ADDRESS_SHOWN], own_text[ADDRESS_SHOWN];
        if (!own)
            continue;
        lp_conf_problem(&reader->problems, list->kind == LP_VALUE_LIST ? &list->items[i] : list,
            "%s leads back to this gateway, which listens on %s; name the address of the MCP "
            "server, or listen elsewhere",
            shown(to, to_text), shown(own, own_text));
    }
}

static void check_found_peers(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    const struct lp_conf_replica *dns = &reader->conf->peers_dns;
    struct lp_conf_value *name = given(draft, LP_SPAN("peers_dns"));
    struct lp_conf_value *file = given(draft, LP_SPAN("peers_file"));
    bool has_path = dns->path.len && !lp_span_eq(dns->path, LP_SPAN("/"));
    if (name && (dns->address.is_unix || dns->address.is_tls || has_path))
        lp_conf_problem(&reader->problems, name,
            "takes a URL like http://sidecars.internal:8080, without a path; certificates do not "
            "hold the addresses that a name has, so for https list the peers, or use peers_file");
    if (name && file)
        lp_conf_problem(&reader->problems, file,
            "peers are looked for in one place; give either peers_dns or peers_file");
}

static void check_sse(struct lp_conf_reader *reader, struct lp_conf_draft *draft)
{
    struct lp_conf_value *upstream = given(draft, LP_SPAN("sse_upstream"));
    if (upstream && draft->server.sse_path.len == 0 && !is_refused(draft, LP_SPAN("sse_path")))
        lp_conf_problem(
            &reader->problems, upstream, "has no effect without sse_path; give sse_path too");
}

/* A rule for a path that is somebody's MCP path would never be asked. */
static void check_passes(struct lp_conf_reader *reader, uint32_t index)
{
    struct lp_conf_draft *draft = &reader->drafts[index];
    struct lp_conf_value *list = given(draft, LP_SPAN("pass"));
    if (!list || list->is_refused)
        return;
    for (uint32_t i = 0; i < draft->server.pass_count; i++) {
        struct lp_span path = draft->server.passes[i].path;
        struct lp_conf_value *at = list->kind == LP_VALUE_LIST ? &list->items[i] : list;
        for (uint32_t k = 0; k < reader->draft_count; k++)
            if (uses_path(&reader->drafts[k], path))
                lp_conf_problem(&reader->problems, at,
                    "%.*s is an MCP path, whose requests find their replica by themselves; leave "
                    "it out",
                    (int)path.len, path.ptr);
        for (uint32_t k = 0; k < i; k++)
            if (lp_span_eq(draft->server.passes[k].path, path))
                lp_conf_problem(
                    &reader->problems, at, "%.*s is given twice", (int)path.len, path.ptr);
    }
}

static void check_admin(struct lp_conf_reader *reader, const struct lp_conf_address *listen)
{
    const struct lp_conf *conf = reader->conf;
    char listen_text[ADDRESS_SHOWN], admin_text[ADDRESS_SHOWN];
    if (!conf->has_admin || is_refused(&reader->base, LP_SPAN("admin")) ||
        !overlap(listen, &conf->admin))
        return;
    lp_conf_problem(&reader->problems, place_of(&reader->base, LP_SPAN("admin")),
        "listen (%s) and admin (%s) are the same address; give admin one of its own, or off",
        shown(listen, listen_text), shown(&conf->admin, admin_text));
}

static void check_listens(struct lp_conf_reader *reader)
{
    const struct lp_conf *conf = reader->conf;
    char text[ADDRESS_SHOWN], other_text[ADDRESS_SHOWN];
    struct lp_conf_value *list = place_of(&reader->base, LP_SPAN("listen"));
    if (conf->listen_count == 0)
        lp_conf_problem(&reader->problems, list, "no address is given; use host:port");
    if (list->is_refused)
        return;
    for (uint32_t i = 0; i < conf->listen_count; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (overlap(&conf->listens[i], &conf->listens[j]))
                lp_conf_problem(&reader->problems, list,
                    "%s and %s are the same address; leave one of them out",
                    shown(&conf->listens[j], text), shown(&conf->listens[i], other_text));
        check_admin(reader, &conf->listens[i]);
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
        check_peers(reader, draft);
        check_found_peers(reader, draft);
        check_loop(reader, draft);
        check_sse(reader, draft);
        check_passes(reader, i);
    }
}
