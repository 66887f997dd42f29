/* Value trees -> snapshot: defaults, then the file's top level, then each server's own keys, then
 * the flags. URLs on the command line make the one server, in place of the file's `servers`, which
 * are judged all the same. Decided here: which key is meant and who wins; a value's form is
 * value.c's. */
#include "conf/conf_priv.h"

static void *field_of(struct lp_conf_reader *reader, const struct lp_conf_target *target,
    const struct lp_conf_key *row)
{
    if (row->scope == LP_SCOPE_TOP)
        return (char *)reader->conf + row->offset;
    if (row->scope == LP_SCOPE_SERVER)
        return (char *)&target->draft->server + row->offset;
    return (char *)target->item + row->offset;
}

void lp_conf_read_defaults(struct lp_conf_reader *reader, const struct lp_conf_target *target)
{
    uint32_t count;
    const struct lp_conf_key *keys = lp_conf_keys(&count);
    for (uint32_t i = 0; i < count; i++) {
        struct lp_conf_value value = {.text = lp_span_str(keys[i].fallback)};
        bool is_wanted = keys[i].scope == target->scope ||
            (target->scope == LP_SCOPE_TOP && keys[i].scope == LP_SCOPE_SERVER);
        if (!is_wanted || !keys[i].fallback)
            continue;
        bool is_good =
            lp_conf_read_value(reader, &keys[i], field_of(reader, target, &keys[i]), &value);
        LP_ASSERT(is_good || reader->err);
    }
}

static void refuse_unknown(struct lp_conf_reader *reader, enum lp_conf_scope scope,
    struct lp_span prefix, struct lp_conf_value *member)
{
    struct lp_conf_problems *problems = &reader->problems;
    struct lp_span nearest = lp_conf_key_nearest(scope, prefix, member->key);
    bool is_for_top = scope != LP_SCOPE_TOP && prefix.len == 0 &&
        (lp_conf_key_find(LP_SCOPE_TOP, prefix, member->key) ||
            lp_conf_key_is_group(LP_SCOPE_TOP, prefix, member->key));
    if (lp_span_eq(member->key, LP_SPAN("<<")))
        lp_conf_problem(problems, member,
            "merge keys are not read; "
            "server keys at the top level are every server's default");
    else if (is_for_top && scope == LP_SCOPE_SERVER)
        lp_conf_problem(problems, member, "this key belongs at the top level of the file");
    else if (nearest.len)
        lp_conf_problem(
            problems, member, "unknown key; did you mean %.*s?", (int)nearest.len, nearest.ptr);
    else if (is_for_top)
        lp_conf_problem(problems, member, "this key belongs to the server");
    else
        lp_conf_problem(problems, member, "unknown key; limpet.yaml(5) lists the known ones");
}

static void read_group(struct lp_conf_reader *reader, const struct lp_conf_target *target,
    struct lp_conf_value *member)
{
    struct lp_span prefix =
        lp_conf_text(&reader->scratch, "%.*s.", (int)member->key.len, member->key.ptr);
    if (!prefix.ptr)
        reader->err = LP_ENOMEM;
    else if (member->kind != LP_VALUE_MAP)
        lp_conf_problem(&reader->problems, member, "takes a mapping of keys");
    else
        lp_conf_read_map(reader, target, prefix, member);
}

static void refuse_foreign(
    struct lp_conf_reader *reader, const struct lp_conf_key *row, struct lp_conf_value *member)
{
    if (row->owner == LP_KEY_OF_SIDECAR)
        lp_conf_problem(&reader->problems, member, "belongs to limpet sidecar, not here");
    else if (row->type == LP_TYPE_REPLICAS)
        lp_conf_problem(&reader->problems, member,
            "a sidecar has one server, named with --local, and a --peer for each other sidecar");
    else
        lp_conf_problem(&reader->problems, member, "belongs to limpet gateway, not here");
}

static void read_member(struct lp_conf_reader *reader, const struct lp_conf_target *target,
    const struct lp_conf_key *row, struct lp_conf_value *member)
{
    if (!lp_conf_key_is_of(row, reader->problems.seat)) {
        refuse_foreign(reader, row, member);
        return;
    }
    /* Flags hold keys of the top too when they are put on top of a server. */
    if (row->scope == LP_SCOPE_TOP && target->scope != LP_SCOPE_TOP)
        return;
    if (target->draft)
        target->draft->from[lp_conf_key_index(row)] = member;
    if (row->type != LP_TYPE_SERVERS && row->type != LP_TYPE_FILE)
        (void)lp_conf_read_value(reader, row, field_of(reader, target, row), member);
}

void lp_conf_read_map(struct lp_conf_reader *reader, const struct lp_conf_target *target,
    struct lp_span prefix, struct lp_conf_value *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        struct lp_conf_value *member = &map->items[i];
        const struct lp_conf_key *row = member->row;
        if (member->is_refused)
            continue;
        if (!row)
            row = lp_conf_key_find(target->scope, prefix, member->key);
        if (row)
            read_member(reader, target, row, member);
        else if (prefix.len == 0 && lp_conf_key_is_group(target->scope, prefix, member->key))
            read_group(reader, target, member);
        else
            refuse_unknown(reader, target->scope, prefix, member);
    }
}

static struct lp_conf_value *from(struct lp_conf_draft *draft, struct lp_span name)
{
    const struct lp_conf_key *row = lp_conf_key_find(LP_SCOPE_TOP, LP_SPAN(""), name);
    return draft->from[lp_conf_key_index(row)];
}

static bool has_urls(const struct lp_conf_value *flags)
{
    for (uint32_t i = 0; i < flags->count; i++)
        if (flags->items[i].row->type == LP_TYPE_REPLICAS)
            return true;
    return false;
}

static void read_server(
    struct lp_conf_reader *reader, struct lp_conf_value *server, struct lp_conf_value *flags)
{
    struct lp_conf_draft *draft = &reader->drafts[reader->draft_count];
    struct lp_conf_target target = {.scope = LP_SCOPE_SERVER, .draft = draft};
    if (server->kind != LP_VALUE_MAP) {
        lp_conf_problem(&reader->problems, server, "takes a mapping of server keys");
        return;
    }
    *draft = reader->base;
    draft->self = server;
    reader->draft_count++;
    lp_conf_read_map(reader, &target, LP_SPAN(""), server);
    lp_conf_read_map(reader, &target, LP_SPAN(""), flags);
}

static void read_servers(
    struct lp_conf_reader *reader, struct lp_conf_value *servers, struct lp_conf_value *flags)
{
    bool is_list = servers->kind == LP_VALUE_LIST;
    uint32_t count = is_list ? servers->count : 1;
    if (count > LP_CONF_SERVERS_MAX || count == 0) {
        lp_conf_problem(
            &reader->problems, servers, "takes from 1 to %d servers", LP_CONF_SERVERS_MAX);
        return;
    }
    reader->drafts = lp_arena_alloc(&reader->scratch, count * sizeof *reader->drafts);
    if (!reader->drafts) {
        reader->err = LP_ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < count && !reader->err; i++)
        read_server(reader, is_list ? &servers->items[i] : servers, flags);
}

/* A sidecar's peers stand behind its own replica. They are asked by the client's path. */
static int append_peers(struct lp_conf_reader *reader, struct lp_conf_server *server)
{
    uint32_t count = server->replica_count + server->peer_count;
    struct lp_conf_replica *all = lp_arena_alloc(reader->keep, count * sizeof *all);
    if (!all)
        return LP_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        all[i] = i < server->replica_count ? server->replicas[i]
                                           : server->peers[i - server->replica_count];
    server->replicas = all;
    server->replica_count = count;
    return LP_OK;
}

/* A replica's path and name come from others when they were not given. Replicas that stand at the
 * top level are shared by servers with other paths, so each server gets its own copy. */
static int complete_replicas(struct lp_conf_reader *reader, struct lp_conf_server *server)
{
    struct lp_conf_replica *replicas =
        lp_arena_alloc(reader->keep, server->replica_count * sizeof *replicas);
    if (!replicas)
        return LP_ENOMEM;
    for (uint32_t i = 0; i < server->replica_count; i++) {
        replicas[i] = server->replicas[i];
        if (!replicas[i].path.len)
            replicas[i].path = server->path;
        if (!replicas[i].name.len)
            replicas[i].name = lp_conf_replica_name(reader->keep, &replicas[i]);
        if (!replicas[i].name.ptr)
            return LP_ENOMEM;
    }
    server->replicas = replicas;
    return LP_OK;
}

static void complete(struct lp_conf_reader *reader)
{
    struct lp_conf_server *servers =
        lp_arena_alloc(reader->keep, reader->draft_count * sizeof *servers + 1);
    if (!servers) {
        reader->err = LP_ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < reader->draft_count && !reader->err; i++) {
        struct lp_conf_server *server = &reader->drafts[i].server;
        if (!server->sse_upstream.len)
            server->sse_upstream = server->sse_path;
        if (server->replica_count && server->peer_count)
            reader->err = append_peers(reader, server);
        if (server->replica_count && !reader->err)
            reader->err = complete_replicas(reader, server);
        servers[i] = *server;
    }
    reader->conf->servers = servers;
    reader->conf->server_count = reader->draft_count;
    reader->conf->access_format = reader->conf->log_format;
}

void lp_conf_build(
    struct lp_conf_reader *reader, struct lp_conf_value *file, struct lp_conf_value *flags)
{
    struct lp_conf_target target = {.scope = LP_SCOPE_TOP, .draft = &reader->base};
    lp_conf_read_defaults(reader, &target);
    reader->base.self = file ? file : flags;
    if (file && file->kind == LP_VALUE_MAP)
        lp_conf_read_map(reader, &target, LP_SPAN(""), file);
    else if (file)
        lp_conf_problem(&reader->problems, file, "the file must be a mapping of keys");
    lp_conf_read_map(reader, &target, LP_SPAN(""), flags);
    struct lp_conf_value *servers = from(&reader->base, LP_SPAN("servers"));
    if (servers)
        read_servers(reader, servers, flags);
    if (!servers || has_urls(flags)) {
        reader->drafts = &reader->base;
        reader->draft_count = 1;
    }
    if (!reader->err)
        complete(reader);
}
