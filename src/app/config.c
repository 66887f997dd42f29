/* `limpet config`: says whether a configuration is right, or prints what it comes to with all its
 * defaults. Takes the words that `limpet gateway` takes.
 *
 * A check also looks at what the configuration names on this machine: key file, log file, CA file,
 * addresses to listen on. It changes nothing there. An address in use is no mistake: most who check
 * are about to restart the gateway that has it. */
#include <stdio.h>
#include <unistd.h>

#include "app/app.h"
#include "io/file.h"
#include "io/listener.h"
#include "io/tls_trust.h"
#include "mcp/keyring.h"

enum { TEXT_MAX = 4 << 20, WHY_MAX = 4096 };

static void print_verdict(const struct lp_conf *conf)
{
    uint32_t replicas = 0;
    if (conf->is_sidecar) {
        uint32_t peers = conf->servers[0].replica_count - 1; /* the first is the server beside it */
        printf("The configuration is right: a sidecar with %u %s%s.\n", peers,
            peers == 1 ? "peer" : "peers",
            lp_conf_finds_peers(conf) ? ", and those that are looked up" : "");
        return;
    }
    for (uint32_t i = 0; i < conf->server_count; i++)
        replicas += conf->servers[i].replica_count;
    printf("The configuration is right: %u %s, %u %s.\n", conf->server_count,
        conf->server_count == 1 ? "server" : "servers", replicas,
        replicas == 1 ? "replica" : "replicas");
}

/* --- what it names on this machine --- */

static int refuse(const struct lp_buf *why, int err, const char *advice)
{
    struct lp_span text = why->len ? lp_buf_span(why) : lp_span_str(lp_error_sentence(err));
    return lp_app_fail(LP_EXIT_REFUSED, "%.*s%s", (int)text.len, text.ptr, advice);
}

static int check_missing_key(const char *path, const char *who)
{
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int err = lp_key_file_may_be_made(path, &why);
    int status = err ? refuse(&why, err, "") : LP_EXIT_OK;
    if (!err)
        printf("The key file %s is not there yet; limpet %s makes it.\n", path, who);
    lp_buf_release(&why);
    return status;
}

static int check_key(const struct lp_conf *conf)
{
    char path[4096];
    struct lp_keyring ring = {0};
    bool made;
    if (lp_app_key_path(conf->key_file, path, sizeof path))
        return lp_app_fail(
            LP_EXIT_REFUSED, "no home directory is known; name a key file with --key-file");
    bool is_there = !access(path, F_OK);
    if (!is_there && lp_app_shares_key(conf))
        return lp_app_fail(LP_EXIT_REFUSED, LP_APP_NO_SHARED_KEY, path);
    if (!is_there)
        return check_missing_key(path, conf->is_sidecar ? "sidecar" : "gateway");
    int status = lp_app_load_keys(path, false, &ring, &made);
    lp_keyring_fini(&ring);
    return status == LP_EXIT_OK ? LP_EXIT_OK : LP_EXIT_REFUSED;
}

static int check_log(const struct lp_conf *conf)
{
    char path[4096];
    struct lp_buf why;
    if (!conf->log_file.len)
        return LP_EXIT_OK;
    snprintf(path, sizeof path, "%.*s", (int)conf->log_file.len, conf->log_file.ptr);
    lp_buf_init(&why, WHY_MAX);
    int err = lp_file_may_append(path, &why);
    int status = err ? refuse(&why, err, "; name a log file that can be written with --log-file")
                     : LP_EXIT_OK;
    lp_buf_release(&why);
    return status;
}

static int check_address(const struct lp_conf_address *address)
{
    struct lp_listener_args args = {
        .host = address->host, .port = address->port, .is_unix = address->is_unix};
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    int status = LP_EXIT_OK;
    int err = lp_listener_probe(&args, &why);
    if (err == LP_EEXISTS)
        printf(
            "Note: %.*s; if that is the gateway to be restarted, all is well, else stop the other "
            "program or choose another address.\n",
            (int)why.len, why.len ? lp_buf_span(&why).ptr : "");
    else if (err)
        status = refuse(&why, err, "");
    lp_buf_release(&why);
    return status;
}

static int check_trust(const struct lp_conf *conf)
{
    struct lp_tls_trust *trust = NULL;
    int status = lp_app_load_trust(conf, &trust);
    lp_tls_trust_free(trust);
    return status;
}

/* All is looked at, so that all problems are told at once. */
static int check_machine(const struct lp_conf *conf)
{
    int status = check_key(conf);
    if (check_log(conf) != LP_EXIT_OK)
        status = LP_EXIT_REFUSED;
    if (check_trust(conf) != LP_EXIT_OK)
        status = LP_EXIT_REFUSED;
    for (uint32_t i = 0; i < conf->listen_count; i++)
        if (check_address(&conf->listens[i]) != LP_EXIT_OK)
            status = LP_EXIT_REFUSED;
    if (conf->has_admin && check_address(&conf->admin) != LP_EXIT_OK)
        status = LP_EXIT_REFUSED;
    if (conf->has_admin && !conf->admin.is_loopback)
        printf("Note: %s.\n", LP_APP_ADMIN_IS_OPEN);
    return status;
}

/* --- the command --- */

static int print_conf(const struct lp_conf *conf)
{
    struct lp_buf text;
    lp_buf_init(&text, TEXT_MAX);
    int err = lp_conf_print(conf, &text);
    if (!err)
        lp_app_print(&text);
    lp_buf_release(&text);
    return err ? lp_app_fail(LP_EXIT_FAILED, "%s", lp_error_sentence(err)) : LP_EXIT_OK;
}

static int run(int argc, const char *const *argv)
{
    bool is_check = argc && strcmp(argv[0], "check") == 0;
    bool is_show = argc && strcmp(argv[0], "show") == 0;
    if (!is_check && !is_show)
        return lp_app_fail(
            LP_EXIT_USAGE, "say limpet config check or limpet config show, then -c FILE");
    struct lp_conf *conf = NULL;
    int status = lp_app_load_either_conf(argc - 1, argv + 1, &conf);
    if (status == LP_EXIT_OK && conf->is_sidecar)
        status = lp_app_check_sidecar(conf, LP_EXIT_REFUSED);
    if (status == LP_EXIT_OK && is_show)
        status = print_conf(conf);
    else if (status == LP_EXIT_OK)
        status = check_machine(conf);
    if (status == LP_EXIT_OK && is_check)
        print_verdict(conf);
    lp_conf_free(conf);
    return status;
}

static int help(struct lp_buf *out)
{
    int err = lp_app_text(out,
        "Usage: limpet config check [-c FILE] [FLAG...] [URL...]\n"
        "       limpet config show  [-c FILE] [FLAG...] [URL...]\n"
        "\n"
        "check  says whether limpet gateway would start with these words, and if not,\n"
        "       why: the file, the flags, the key, log and CA files, the addresses\n"
        "show   prints all that the gateway would use, defaults included, as YAML\n"
        "\n"
        "Exit status: 0 right, 2 not right, 64 the flags were not understood.\n"
        "\n"
        "Example:\n"
        "  limpet config check -c limpet.yaml\n"
        "\n"
        "With --self or --local, or such keys in the file, it is limpet sidecar's.\n"
        "The flags are those of limpet gateway:\n");
    return err ? err : lp_conf_help(out);
}

const struct lp_command lp_command_config = {
    .name = "config",
    .summary = "check a configuration, or show what it comes to",
    .run = run,
    .help = help,
};
