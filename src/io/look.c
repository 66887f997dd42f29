/* LOOK: the addresses of a host, or the text of a small file (seam/action.h). Both may wait for
 * somebody, a name server or a disk, so a thread of libuv's does the work; what was found is told
 * in the loop's own. What it means is the engine's matter. */
#include <stdlib.h>

#include "io/file.h"
#include "io/loop_priv.h"

enum { TEXT_MAX = 1 << 20, WHY_MAX = 1024 };

struct look {
    uv_work_t work;
    struct lp_loop *loop;
    bool is_file;
    int error;
    struct lp_buf found;
    char text[]; /* ends in a zero byte */
};

/* --- in the thread --- */

static int add_address(struct lp_buf *out, const struct addrinfo *one)
{
    char host[NI_MAXHOST];
    int status =
        getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    return status ? LP_EIO : lp_buf_printf(out, "%s\n", host);
}

static int error_of(int status)
{
    if (status == EAI_AGAIN)
        return LP_ETIMEOUT; /* the name server does not answer */
    return status == EAI_MEMORY ? LP_ELIMIT : LP_ENOT_FOUND;
}

static int find_addresses(const char *host, struct lp_buf *out)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int status = getaddrinfo(host, NULL, &hints, &list);
    int err = status ? error_of(status) : LP_OK;
    for (const struct addrinfo *one = list; one && !err; one = one->ai_next)
        err = add_address(out, one);
    if (list)
        freeaddrinfo(list);
    return err;
}

static int read_file(const char *path, struct lp_buf *out)
{
    struct lp_buf why; /* the error suffices: who asks names the file */
    lp_buf_init(&why, WHY_MAX);
    int err = lp_file_read(path, out, &why);
    lp_buf_release(&why);
    return err;
}

static void work(uv_work_t *request)
{
    struct look *look = LP_CONTAINER(request, struct look, work);
    look->error = look->is_file ? read_file(look->text, &look->found)
                                : find_addresses(look->text, &look->found);
}

/* --- in the loop --- */

static void after_work(uv_work_t *request, int status)
{
    struct look *look = LP_CONTAINER(request, struct look, work);
    struct lp_event event = {.kind = LP_EV_LOOKED};
    event.u.looked.error = status ? LP_EIO : look->error;
    if (!event.u.looked.error)
        event.u.looked.text = lp_buf_span(&look->found);
    look->loop->is_looking = false;
    lp_io_emit(look->loop, &event);
    lp_buf_release(&look->found);
    free(look);
}

int64_t lp_io_look(struct lp_loop *loop, bool is_file, struct lp_span text)
{
    if (loop->is_looking)
        return LP_EEXISTS;
    struct look *look = calloc(1, sizeof *look + text.len + 1);
    if (!look)
        return LP_ENOMEM;
    look->loop = loop;
    look->is_file = is_file;
    if (text.len)
        memcpy(look->text, text.ptr, text.len);
    lp_buf_init(&look->found, TEXT_MAX);
    if (uv_queue_work(&loop->uv, &look->work, work, after_work)) {
        free(look);
        return LP_EIO;
    }
    loop->is_looking = true;
    return LP_OK;
}
