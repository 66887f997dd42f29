/* `limpet config`: says whether a configuration is right, or prints what it comes to with all its
 * defaults. Takes the words that `limpet gateway` takes. */
#include <stdio.h>

#include "app/app.h"

enum { TEXT_MAX = 4 << 20 };

static void print_verdict(const struct lp_conf *conf)
{
    uint32_t replicas = 0;
    for (uint32_t i = 0; i < conf->server_count; i++)
        replicas += conf->servers[i].replica_count;
    printf("The configuration is right: %u %s, %u %s.\n", conf->server_count,
        conf->server_count == 1 ? "server" : "servers", replicas,
        replicas == 1 ? "replica" : "replicas");
}

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
    int status = lp_app_load_conf(argc - 1, argv + 1, &conf);
    if (status == LP_EXIT_OK && is_show)
        status = print_conf(conf);
    else if (status == LP_EXIT_OK)
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
        "check  says whether limpet gateway would start with these words, and if not, why\n"
        "show   prints all that the gateway would use, defaults included, as YAML\n"
        "\n"
        "Exit status: 0 right, 2 the file is not right, 64 the flags are not.\n"
        "\n"
        "Example:\n"
        "  limpet config check -c limpet.yaml\n"
        "\n"
        "The flags are those of limpet gateway:\n");
    return err ? err : lp_conf_help(out);
}

const struct lp_command lp_command_config = {
    .name = "config",
    .summary = "check a configuration, or show what it comes to",
    .run = run,
    .help = help,
};
