/* `limpet sidecar`: the gateway's engine beside one replica (requirements [S1] to [S6]). Its fleet
 * is that replica and its peers.
 *
 * Decided here is only who this is: the owner id from the configuration or the environment, and
 * whether all that belongs together is there. The rest is as for a gateway. */
#include <stdlib.h>

#include "app/app.h"
#include "mcp/owner.h"

enum { FIRST_PEER = 1 };

/* The configuration, and what a mistake in it ends the program with. */
struct sidecar {
    struct lp_conf *conf;
    enum lp_exit refused;
};

static int refuse_id(const struct sidecar *s, const char *where, struct lp_span id)
{
    return lp_app_fail(s->refused, "%s: \"%.*s\" is no owner id; use 1 to %d letters and digits",
        where, (int)id.len, id.ptr, LP_OWNER_MAX);
}

static int choose_self(const struct sidecar *s, struct lp_owner *ret)
{
    const struct lp_conf *conf = s->conf;
    struct lp_owner_sources sources = {.configured = conf->self,
        .machine = lp_span_str(getenv("FLY_MACHINE_ID")),
        .hostname = lp_span_str(getenv("HOSTNAME")),
        .takes_hostname = conf->self_from_hostname};
    if (lp_owner_choose(&sources, ret))
        return refuse_id(s, "self", conf->self);
    if (ret->source == LP_OWNER_MACHINE_BAD)
        lp_app_fail(LP_EXIT_OK,
            "FLY_MACHINE_ID is no owner id (1 to %d letters and digits), so there is none; name "
            "one "
            "with --self",
            LP_OWNER_MAX);
    return LP_EXIT_OK;
}

static int check_peers(const struct sidecar *s)
{
    const struct lp_conf_server *server = &s->conf->servers[0];
    for (uint32_t i = FIRST_PEER; i < server->replica_count; i++)
        if (!lp_owner_is_id(server->replicas[i].name))
            return refuse_id(s, "peers", server->replicas[i].name);
    return LP_EXIT_OK;
}

/* With sealed ids nobody but a sidecar that knows its own name and its peers finds an owner. */
static int check_sealed(const struct sidecar *s, const struct lp_owner *self)
{
    const struct lp_conf *conf = s->conf;
    if (conf->ids != LP_IDS_SEALED)
        return LP_EXIT_OK;
    if (!self->len)
        return lp_app_fail(
            s->refused, "sealed ids need an owner id for this sidecar; name it with --self");
    if (conf->servers[0].replica_count == FIRST_PEER && !lp_conf_finds_peers(conf))
        return lp_app_fail(s->refused,
            "sealed ids need the list of peers, a --peer ID=URL for each, or a place to find them "
            "in (--peers-dns, --peers-file); or use --ids owner");
    return LP_EXIT_OK;
}

/* Who is looked up is asked who it is, and must be able to answer. */
static int check_found(const struct sidecar *s, const struct lp_owner *self)
{
    if (self->len || !lp_conf_finds_peers(s->conf))
        return LP_EXIT_OK;
    return lp_app_fail(
        s->refused, "peers are of use only to a sidecar with an owner id; name it with --self");
}

static int prepare(const struct sidecar *s)
{
    struct lp_owner self;
    int status = choose_self(s, &self);
    if (status == LP_EXIT_OK)
        status = check_peers(s);
    if (status == LP_EXIT_OK)
        status = check_sealed(s, &self);
    if (status == LP_EXIT_OK)
        status = check_found(s, &self);
    if (status == LP_EXIT_OK && lp_conf_set_self(s->conf, lp_owner_span(&self)))
        status = lp_app_fail(LP_EXIT_FAILED, "out of memory");
    return status;
}

bool lp_app_shares_key(const struct lp_conf *conf)
{
    return conf->is_sidecar &&
        (conf->servers[0].replica_count > FIRST_PEER || lp_conf_finds_peers(conf));
}

int lp_app_check_sidecar(struct lp_conf *conf, enum lp_exit refused)
{
    struct sidecar s = {conf, refused};
    return prepare(&s);
}

static int run(int argc, const char *const *argv)
{
    bool has_file = lp_conf_file_flag(argc, argv).len > 0;
    struct sidecar s = {.refused = has_file ? LP_EXIT_REFUSED : LP_EXIT_USAGE};
    int status = lp_app_load_conf(LP_SEAT_SIDECAR, argc, argv, &s.conf);
    if (status != LP_EXIT_OK)
        return status;
    status = prepare(&s);
    if (status == LP_EXIT_OK)
        return lp_app_serve(s.conf);
    lp_conf_free(s.conf);
    return status;
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet sidecar --self ID --local URL [--peer ID=URL...] [FLAG...]\n"
        "\n"
        "Stands beside one replica of an MCP server, where the platform's balancer cannot\n"
        "be replaced: each replica has its sidecar, and the balancer sends requests to\n"
        "any of them. New sessions go to the server beside. A request of a session that\n"
        "another owner has is forwarded to the peer, or answered with the header by\n"
        "which the platform sends it there. Sidecars with peers share one key file.\n"
        "\n");
    if (!err)
        err = lp_conf_sidecar_help(out);
    return err ? err
               : lp_app_text(out,
                     "\n"
                     "Without --self the owner id is FLY_MACHINE_ID, where that is set.\n"
                     "\n"
                     "Examples:\n"
                     "  limpet sidecar --self m1 --local http://127.0.0.1:3000/mcp \\\n"
                     "      --listen 0.0.0.0:8080 --key-file /etc/limpet/key \\\n"
                     "      --peer m2=http://10.0.0.2:8080 --peer m3=http://10.0.0.3:8080\n"
                     "  limpet sidecar --self m1 --local http://127.0.0.1:3000/mcp \\\n"
                     "      --listen 0.0.0.0:8080 --key-file /etc/limpet/key \\\n"
                     "      --peers-dns http://sidecars.internal:8080\n"
                     "  limpet sidecar --local http://127.0.0.1:3000/mcp \\\n"
                     "      --listen 0.0.0.0:8080 --ids owner --replay fly\n");
}

const struct lp_command lp_command_sidecar = {
    .name = "sidecar",
    .summary = "beside a replica: pass on what another replica has",
    .run = run,
    .help = help,
};
