/* Any text as the configuration file; one that begins with "# sidecar" is a sidecar's. Laws: a
 * refusal has at least one message, of printable lines; what is accepted prints, and what is
 * printed is accepted and prints the same. */
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 64 << 20 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_sidecar(struct lp_span text)
{
    return lp_span_starts(text, LP_SPAN("# sidecar\n"));
}

static struct lp_conf *load(struct lp_span text, struct lp_buf *errors)
{
    struct lp_conf *conf = NULL;
    struct lp_conf_source source = {.file_name = LP_SPAN("f"), .file_text = text};
    if (is_sidecar(text))
        source.seat = LP_SEAT_SIDECAR;
    int err = lp_conf_load(&source, &conf, errors);
    check(err == LP_OK || err == LP_ESYNTAX || err == LP_EUSAGE || err == LP_ENOMEM);
    check((err == LP_OK) == (conf != NULL));
    check((err == LP_ESYNTAX || err == LP_EUSAGE) == (errors->len > 0));
    return conf;
}

static void check_messages(struct lp_span text)
{
    check(text.len == 0 || text.ptr[text.len - 1] == '\n');
    while (text.len) {
        struct lp_span line = lp_span_split(text, '\n', &text);
        check(line.len > 0 && lp_span_starts(line, LP_SPAN("f:")));
        for (size_t i = 0; i < line.len; i++)
            check((unsigned char)line.ptr[i] >= ' ' && line.ptr[i] != 0x7F);
    }
}

static void check_reads_back(const struct lp_conf *conf, struct lp_buf *errors)
{
    struct lp_buf one, two;
    lp_buf_init(&one, OUT_MAX);
    lp_buf_init(&two, OUT_MAX);
    check(lp_conf_print(conf, &one) == LP_OK);
    /* Aliases can make a small file print as one that is longer than a file may be. */
    if (one.len <= 1 << 20) {
        struct lp_conf *again = load(lp_buf_span(&one), errors);
        check(again && lp_conf_print(again, &two) == LP_OK);
        check(lp_span_eq(lp_buf_span(&one), lp_buf_span(&two)));
        lp_conf_free(again);
    }
    lp_buf_release(&one);
    lp_buf_release(&two);
}

static void check_self(struct lp_conf *conf)
{
    const struct lp_conf_server *server = &conf->servers[0];
    check(conf->server_count == 1 && server->replica_count >= 1);
    check(lp_conf_set_self(conf, LP_SPAN("m1")) == LP_OK);
    check(lp_span_eq(server->replicas[0].name, LP_SPAN("m1")) && !server->replicas[0].is_peer);
    for (uint32_t i = 1; i < server->replica_count; i++)
        check(server->replicas[i].is_peer && !lp_span_eq(server->replicas[i].name, LP_SPAN("m1")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lp_buf errors;
    lp_buf_init(&errors, OUT_MAX);
    struct lp_conf *conf = load(lp_span((const char *)data, size), &errors);
    check_messages(lp_buf_span(&errors));
    if (conf && conf->is_sidecar)
        check_self(conf);
    else if (conf)
        check_reads_back(conf, &errors);
    lp_conf_free(conf);
    lp_buf_release(&errors);
    return 0;
}
