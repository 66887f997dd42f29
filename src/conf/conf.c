/* Loading a configuration as a whole (requirements [G13]): file and flags become trees, the trees
 * drafts, the drafts a snapshot; or the problems are told and there is no snapshot. The snapshot
 * and all it points to lie in one arena, trees and drafts in another that ends with the load. */
#include "conf/conf_priv.h"

/* The snapshot with the arena it lies in. */
struct snapshot {
    struct lp_conf conf;
    struct lp_arena arena;
};

static struct snapshot *new_snapshot(void)
{
    struct lp_arena arena;
    lp_arena_init(&arena, LP_CONF_ARENA_MAX);
    struct snapshot *snapshot = lp_arena_alloc(&arena, sizeof *snapshot);
    if (!snapshot)
        return NULL;
    *snapshot = (struct snapshot){.arena = arena};
    return snapshot;
}

void lp_conf_free(struct lp_conf *conf)
{
    if (!conf)
        return;
    /* Out of the arena first: it holds itself. */
    struct lp_arena arena = ((struct snapshot *)conf)->arena;
    lp_arena_fini(&arena);
}

/* Problems of the flags are told even when the file cannot be read; what would only follow from an
 * unread file is not. */
static int read_all(struct lp_conf_reader *reader, const struct lp_conf_source *source,
    struct yaml_document_s **document)
{
    struct lp_conf_value file, flags;
    struct lp_conf_problems *problems = &reader->problems;
    bool has_file = source->file_name.len > 0;
    int file_err = LP_OK;
    if (has_file)
        file_err =
            lp_conf_yaml_read(source->file_text, &reader->scratch, problems, &file, document);
    if (file_err && file_err != LP_ESYNTAX)
        return file_err;
    int err = lp_conf_flags_read(source->argc, source->argv, &reader->scratch, problems, &flags);
    if (err || file_err)
        return err;
    lp_conf_build(reader, has_file ? &file : NULL, &flags);
    if (!reader->err)
        lp_conf_check(reader);
    return reader->err;
}

int lp_conf_load(const struct lp_conf_source *source, struct lp_conf **ret, struct lp_buf *errors)
{
    struct yaml_document_s *document = NULL;
    struct snapshot *snapshot = new_snapshot();
    if (!snapshot)
        return LP_ENOMEM;
    struct lp_conf_reader reader = {
        .problems = {.out = errors, .file = source->file_name, .seat = source->seat},
        .keep = &snapshot->arena,
        .conf = &snapshot->conf,
    };
    lp_arena_init(&reader.scratch, LP_CONF_ARENA_MAX);
    snapshot->conf.is_sidecar = source->seat == LP_SEAT_SIDECAR;
    int err = read_all(&reader, source, &document);
    lp_conf_yaml_free(document);
    lp_arena_fini(&reader.scratch);
    if (!err && reader.problems.count)
        err = reader.problems.file_count ? LP_ESYNTAX : LP_EUSAGE;
    if (reader.problems.err == LP_ENOMEM)
        err = LP_ENOMEM;
    if (err) {
        lp_conf_free(&snapshot->conf);
        return err;
    }
    *ret = &snapshot->conf;
    return LP_OK;
}

int lp_conf_set_self(struct lp_conf *conf, struct lp_span self)
{
    struct lp_arena *arena = &((struct snapshot *)conf)->arena;
    LP_ASSERT(conf->is_sidecar && conf->server_count == 1);
    /* Its memory is the snapshot's; const is for those who only read it. */
    struct lp_conf_server *server = (struct lp_conf_server *)(uintptr_t)conf->servers;
    struct lp_conf_replica *replicas = (struct lp_conf_replica *)(uintptr_t)server->replicas;
    uint32_t kept = 1;
    int err = lp_arena_dup(arena, self, &conf->self);
    if (err || !self.len)
        return err;
    replicas[0].name = conf->self;
    for (uint32_t i = 1; i < server->replica_count; i++)
        if (!lp_span_eq(replicas[i].name, self))
            replicas[kept++] = replicas[i];
    server->replica_count = kept;
    return LP_OK;
}
