/* conf-library ADDRESS NAME   the offer of conf_library.h on liblimpet-server's own loop. */
#include <stdio.h>

#include "conf_library.h"

int main(int argc, char **argv)
{
    struct limpet_server_options options = conf_options();
    struct limpet_server *server = NULL;
    if (argc != 3)
        return 2;
    options.owns_process = true;
    int err = limpet_server_new(NULL, &options, &server);
    err = err ? err : conf_offer_all(server, argv[2]);
    err = err ? err : limpet_server_listen(server, argv[1]);
    if (!err)
        fprintf(stderr, "listening on %s\n", limpet_server_url(server));
    err = err ? err : limpet_server_run(server);
    if (err)
        fprintf(stderr, "conf-library: %s\n", limpet_server_why(server, err));
    limpet_server_free(server);
    return err ? 1 : 0;
}
