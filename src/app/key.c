/* `limpet key`: makes a key, or tells which keys a file holds. A key itself is printed only by
 * `new`; everywhere else it is named by its id. */
#include <sodium.h>
#include <stdio.h>

#include "app/app.h"
#include "io/file.h"
#include "mcp/keyring.h"

static int make_key(void)
{
    unsigned char key[LP_KEY_BYTES];
    char line[46];
    lp_io_random(key, sizeof key);
    size_t n = lp_keyring_format(key, line);
    fwrite(line, 1, n, stdout);
    sodium_memzero(key, sizeof key);
    sodium_memzero(line, sizeof line);
    return LP_EXIT_OK;
}

static void print_ring(const struct lp_keyring *ring, const char *path, bool as_json)
{
    char id[9];
    if (as_json)
        printf("{\"keys\":[");
    else
        printf("%s\n", path);
    for (uint32_t i = 0; i < ring->count; i++) {
        lp_ring_key_id_hex(&ring->keys[i], id);
        if (as_json)
            printf("%s{\"id\":\"%s\",\"seals\":%s}", i ? "," : "", id, i ? "false" : "true");
        else
            printf("  %s  %s\n", id, i ? "opens" : "seals and opens");
    }
    if (as_json)
        printf("]}\n");
}

static int list_keys(const char *file, bool as_json)
{
    char path[4096];
    struct lp_keyring ring = {0};
    bool made = false;
    if (lp_app_key_path(lp_span_str(file), path, sizeof path))
        return lp_app_fail(
            LP_EXIT_FAILED, "no home directory is known; name the file with --key-file");
    int status = lp_app_load_keys(path, false, &ring, &made);
    if (status == LP_EXIT_OK)
        print_ring(&ring, path, as_json);
    lp_keyring_fini(&ring);
    return status;
}

static int run(int argc, const char *const *argv)
{
    const char *file = NULL;
    bool as_json = false;
    const char *words[LP_WORDS_MAX + 1];
    const struct lp_option options[] = {
        {"--key-file", &file, NULL, NULL}, {"--json", NULL, &as_json, NULL}};
    int status = lp_options_read(options, 2, argc, argv, words);
    if (status != LP_EXIT_OK)
        return status;
    if (words[0] && !words[1] && strcmp(words[0], "new") == 0)
        return make_key();
    if (words[0] && !words[1] && strcmp(words[0], "list") == 0)
        return list_keys(file, as_json);
    return lp_app_fail(LP_EXIT_USAGE, "say limpet key new or limpet key list");
}

static int help(struct lp_buf *out)
{
    return lp_app_text(out,
        "Usage: limpet key new\n"
        "       limpet key list [--key-file FILE] [--json]\n"
        "\n"
        "Keys seal the session ids that clients hold. Gateways that share sessions need\n"
        "the same key file. The first key of a file seals, every key in it opens.\n"
        "\n"
        "new   prints a new key, a line for a key file\n"
        "list  tells the ids of the keys in a file; a gateway prints them when it starts\n"
        "\n"
        "  --key-file FILE  the file; default $XDG_STATE_HOME/limpet/key,\n"
        "                   for root /var/lib/limpet/key\n"
        "  --json           print JSON\n"
        "\n"
        "To change the key without losing a session: add the new one as last line\n"
        "everywhere and restart; then make it the first line everywhere and restart;\n"
        "take the old one out when no session is older than that.\n"
        "\n"
        "Examples:\n"
        "  limpet key list\n"
        "  (umask 077; limpet key new >> /var/lib/limpet/key)\n");
}

const struct lp_command lp_command_key = {
    .name = "key",
    .summary = "make a key, or tell which keys a file holds",
    .run = run,
    .help = help,
};
