/* What a command needs before it can work: the configuration, the keys, the trust.
 *
 * Every problem is said here, in sentences; the caller only passes the exit status on. The key file
 * is made in one step by io, so that gateways that start together agree on one key. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/app.h"
#include "io/file.h"
#include "io/tls_trust.h"
#include "mcp/keyring.h"

enum { CONF_BYTES_MAX = 1 << 20, KEY_BYTES_MAX = 65536, WHY_MAX = 4096, PROBLEMS_MAX = 1 << 20 };

static int say(enum lp_exit status, const struct lp_buf *why, int err)
{
    struct lp_span text = why->len ? lp_buf_span(why) : lp_span_str(lp_error_sentence(err));
    return lp_app_fail(status, "%.*s", (int)text.len, text.ptr);
}

/* --- configuration --- */

static int read_conf_file(struct lp_span name, struct lp_buf *text)
{
    char path[4096];
    struct lp_buf why;
    if (name.len >= sizeof path)
        return lp_app_fail(LP_EXIT_REFUSED, "the name of the configuration file is too long");
    memcpy(path, name.ptr, name.len);
    path[name.len] = '\0';
    lp_buf_init(&why, WHY_MAX);
    int err = lp_file_read(path, text, &why);
    int status = err ? say(LP_EXIT_REFUSED, &why, err) : LP_EXIT_OK;
    lp_buf_release(&why);
    return status;
}

static int parse_conf(const struct lp_conf_source *source, struct lp_conf **ret)
{
    struct lp_buf problems;
    lp_buf_init(&problems, PROBLEMS_MAX);
    int err = lp_conf_load(source, ret, &problems);
    enum lp_exit status = err == LP_EUSAGE ? LP_EXIT_USAGE : LP_EXIT_REFUSED;
    struct lp_span rest = lp_buf_span(&problems);
    while (err && rest.len) {
        struct lp_span line = lp_span_split(rest, '\n', &rest);
        lp_app_fail(status, "%.*s", (int)line.len, line.ptr);
    }
    if (err && !problems.len)
        lp_app_fail(status, "%s", lp_error_sentence(err));
    lp_buf_release(&problems);
    return err ? (int)status : LP_EXIT_OK;
}

static bool begins(struct lp_span text, struct lp_span word, char end)
{
    return lp_span_starts(text, word) && (text.len == word.len || text.ptr[word.len] == end);
}

/* A sidecar's configuration shows by who it is or by the server beside it. */
static enum lp_conf_seat seat_of(const struct lp_conf_source *source)
{
    struct lp_span rest = source->file_text;
    bool is_sidecar = false;
    for (int i = 0; i < source->argc; i++) {
        struct lp_span word = lp_span_str(source->argv[i]);
        is_sidecar |= begins(word, LP_SPAN("--self"), '=') || begins(word, LP_SPAN("--local"), '=');
    }
    while (rest.len && !is_sidecar) {
        struct lp_span line = lp_span_split(rest, '\n', &rest);
        is_sidecar = begins(line, LP_SPAN("self"), ':') || begins(line, LP_SPAN("local"), ':');
    }
    return is_sidecar ? LP_SEAT_SIDECAR : LP_SEAT_GATEWAY;
}

static int load(struct lp_conf_source source, bool is_either, struct lp_conf **ret)
{
    int argc = source.argc;
    const char *const *argv = source.argv;
    struct lp_buf text;
    lp_buf_init(&text, CONF_BYTES_MAX);
    source.file_name = lp_conf_file_flag(argc, argv);
    int status = source.file_name.len ? read_conf_file(source.file_name, &text) : LP_EXIT_OK;
    source.file_text = lp_buf_span(&text);
    if (is_either)
        source.seat = seat_of(&source);
    if (status == LP_EXIT_OK)
        status = parse_conf(&source, ret);
    lp_buf_release(&text);
    return status;
}

int lp_app_load_conf(
    enum lp_conf_seat seat, int argc, const char *const *argv, struct lp_conf **ret)
{
    struct lp_conf_source source = {.seat = seat, .argc = argc, .argv = argv};
    return load(source, false, ret);
}

int lp_app_load_either_conf(int argc, const char *const *argv, struct lp_conf **ret)
{
    struct lp_conf_source source = {.argc = argc, .argv = argv};
    return load(source, true, ret);
}

int lp_app_address(const struct lp_conf_address *address, struct lp_buf *out)
{
    bool is_v6 = !address->is_unix && lp_span_find(address->host, ':') < address->host.len;
    int len = (int)address->host.len;
    if (address->is_unix)
        return lp_buf_printf(out, "unix:%.*s", len, address->host.ptr);
    return lp_buf_printf(
        out, is_v6 ? "[%.*s]:%u" : "%.*s:%u", len, address->host.ptr, address->port);
}

/* --- trust --- */

static bool has_https(const struct lp_conf *conf)
{
    for (uint32_t i = 0; i < conf->server_count; i++)
        for (uint32_t j = 0; j < conf->servers[i].replica_count; j++)
            if (conf->servers[i].replicas[j].address.is_tls)
                return true;
    return false;
}

int lp_app_load_trust(const struct lp_conf *conf, struct lp_tls_trust **ret)
{
    char path[4096];
    struct lp_buf why;
    struct lp_tls_trust_args args = {.cacert_path = conf->tls_ca.len ? path : NULL};
    *ret = NULL;
    /* What a peers file will say is not known yet. */
    if (!has_https(conf) && !conf->peers_file.len && !conf->tls_ca.len)
        return LP_EXIT_OK;
    lp_buf_init(&why, WHY_MAX);
    snprintf(path, sizeof path, "%.*s", (int)conf->tls_ca.len, conf->tls_ca.ptr);
    int err = lp_tls_trust_new(&args, &why, ret);
    int status = err ? say(LP_EXIT_REFUSED, &why, err) : LP_EXIT_OK;
    lp_buf_release(&why);
    return status;
}

/* --- keys --- */

int lp_app_key_path(struct lp_span configured, char *room, size_t room_len)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n;
    if (configured.len)
        n = snprintf(room, room_len, "%.*s", (int)configured.len, configured.ptr);
    else if (state && state[0] == '/') /* a relative one is to be ignored, says its standard */
        n = snprintf(room, room_len, "%s/limpet/key", state);
    else if (geteuid() == 0)
        n = snprintf(room, room_len, "/var/lib/limpet/key");
    else if (home && home[0] == '/')
        n = snprintf(room, room_len, "%s/.local/state/limpet/key", home);
    else
        return LP_ENOT_FOUND;
    return n > 0 && (size_t)n < room_len ? LP_OK : LP_ETOO_LONG;
}

static int parse_keys(const char *path, struct lp_span text, struct lp_keyring *ret)
{
    uint32_t line = 0;
    int err = lp_keyring_parse(text, ret, &line);
    switch (err) {
    case LP_OK:
        return LP_EXIT_OK;
    case LP_ENOT_FOUND:
        return lp_app_fail(
            LP_EXIT_REFUSED, "%s: there is no key in it; limpet key new makes one", path);
    case LP_EEXISTS:
        return lp_app_fail(LP_EXIT_REFUSED,
            "%s:%u: this key is in the file already; each may be there once", path, line);
    case LP_ELIMIT:
        return lp_app_fail(LP_EXIT_REFUSED, "%s:%u: too many keys; at most %d are used", path, line,
            LP_KEYRING_MAX);
    default:
        return lp_app_fail(LP_EXIT_REFUSED,
            "%s:%u: this is no key; a line is 32 bytes in base64, as limpet key new prints", path,
            line);
    }
}

static int open_key_file(const char *path, struct lp_buf *text, bool *ret_made)
{
    unsigned char key[LP_KEY_BYTES];
    char line[46];
    struct lp_buf why;
    lp_buf_init(&why, WHY_MAX);
    lp_io_random(key, sizeof key);
    size_t n = lp_keyring_format(key, line);
    int err = lp_key_file_open(path, lp_span(line, n), text, ret_made, &why);
    sodium_memzero(key, sizeof key);
    sodium_memzero(line, sizeof line);
    int status = err ? say(LP_EXIT_REFUSED, &why, err) : LP_EXIT_OK;
    lp_buf_release(&why);
    return status;
}

void lp_app_wipe(struct lp_buf *text)
{
    if (text->ptr)
        sodium_memzero(text->ptr, text->cap);
    lp_buf_release(text);
}

static int read_keys(const char *path, struct lp_buf *text, struct lp_keyring *ret, bool *ret_made)
{
    lp_buf_init(text, KEY_BYTES_MAX);
    int status = open_key_file(path, text, ret_made);
    return status == LP_EXIT_OK ? parse_keys(path, lp_buf_span(text), ret) : status;
}

int lp_app_load_keys(const char *path, bool may_make, struct lp_keyring *ret, bool *ret_made)
{
    if (!may_make && access(path, F_OK))
        return lp_app_fail(LP_EXIT_FAILED,
            "there is no key file %s yet; limpet gateway makes it when it starts", path);
    struct lp_buf text;
    int status = read_keys(path, &text, ret, ret_made);
    lp_app_wipe(&text);
    return status;
}

int lp_app_load_key_text(const char *path, struct lp_buf *ret_text)
{
    struct lp_keyring ring = {0};
    bool was_made;
    int status = read_keys(path, ret_text, &ring, &was_made);
    lp_keyring_fini(&ring);
    if (status == LP_EXIT_OK && lp_buf_append(ret_text, lp_span("", 1)))
        status = lp_app_fail(LP_EXIT_FAILED, "out of memory");
    return status;
}
