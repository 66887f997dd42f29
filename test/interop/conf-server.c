/* conf-server PORT NAME [OWNER [STORE]]   the offer of conf_offer.h behind the library's server on
 * 127.0.0.1: a replica that passes every server scenario of the conformance package. */
#include <stdio.h>
#include <stdlib.h>

#include "conf_offer.h"
#include "io/file.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/signals.h"
#include "mcp/keyring.h"

enum { CONN_MAX = LP_SERVER_CONNECTIONS_MAX + 16, WHY_MAX = 1024 };

static void on_event(void *server, const struct lp_event *event)
{
    lp_server_event(server, event);
}

static int fail(const char *what)
{
    fprintf(stderr, "conf-server: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    struct lp_server *server = NULL;
    struct lp_listener *listener = NULL;
    struct lp_buf why;
    struct lp_span text;
    struct lp_store_url store;
    if (argc < 3 || argc > 5)
        return fail("say PORT, NAME and perhaps OWNER and STORE");
    if (argc > 4 && lp_store_url_parse(lp_span_str(argv[4]), NULL, NULL, &store, &text))
        return fail("that is no URL of a store");
    struct lp_offer offer = conf_offer(argv[2]);
    struct lp_loop *loop = lp_loop_new(&(struct lp_loop_args){.conn_max = CONN_MAX});
    if (!loop)
        return fail("no memory");
    struct lp_server_args args = {.shell = lp_loop_shell(loop),
        .offer = &offer,
        .name = LP_SPAN("conf-server"),
        .version = LP_SPAN("1"),
        .path = LP_SPAN("/mcp"),
        .sse_path = argc > 4 ? LP_SPAN("") : LP_SPAN("/sse"),
        .mode = argc > 4 ? LP_SESSIONS_SHARED : LP_SESSIONS_LOCAL,
        .store = &store,
        .owner = argc > 3 ? lp_span_str(argv[3]) : LP_SPAN(""),
        .replay = LP_SERVER_REPLAY_PREFER,
        .retry_ms = 500};
    struct lp_keyring ring;
    uint32_t line;
    if (getenv("CONF_KEY") && !lp_keyring_parse(lp_span_str(getenv("CONF_KEY")), &ring, &line))
        args.keys = &ring;
    lp_io_random(args.seed, sizeof args.seed);
    (void)lp_process_setup();
    if (lp_server_new(&args, &server))
        return fail("no memory");
    lp_loop_attach(loop, server, on_event);
    lp_loops_join(&loop, 1);
    struct lp_listener_args listen = {
        .host = LP_SPAN("127.0.0.1"), .port = (uint16_t)strtoul(argv[1], NULL, 10)};
    lp_buf_init(&why, WHY_MAX);
    if (lp_signals_open(loop, &(struct lp_signals_args){0}) ||
        lp_listener_open(&listen, &loop, 1, &why, &listener))
        return fail("cannot listen");
    printf("listening on http://%s/mcp\n", lp_listener_text(listener));
    fflush(stdout);
    lp_loop_run(loop);
    lp_buf_release(&why);
    lp_server_free(server);
    lp_loop_free(loop);
    lp_listener_free(listener);
    return 0;
}
