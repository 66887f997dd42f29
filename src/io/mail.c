/* What reaches a loop from other threads: mail between engines, and the app's stop, end and
 * configuration (io/loop.h). A list under a mutex and one uv_async; the bell is rung only for the
 * first item of a batch. One queue for all kinds, so that order per sender is kept. A plain forward
 * sends no mail and so takes no lock (requirements [P6]). */
#include <stdlib.h>

#include "io/loop_priv.h"

enum mail_kind { MAIL_LETTER, MAIL_CONFIG, MAIL_STOP, MAIL_END, MAIL_BROKEN };

struct lp_io_mail {
    struct lp_io_mail *next;
    enum mail_kind kind;
    uint32_t from;
    const void *config;
    lp_id conn;
    int error; /* BROKEN */
    size_t len;
    char bytes[];
};

static int post(struct lp_loop *to, const struct lp_io_mail *what, struct lp_span bytes)
{
    struct lp_io_mail *mail = malloc(sizeof *mail + bytes.len);
    if (!mail)
        return LP_ENOMEM;
    *mail = *what;
    mail->len = bytes.len;
    if (bytes.len)
        memcpy(mail->bytes, bytes.ptr, bytes.len);
    (void)pthread_mutex_lock(&to->mail_mutex);
    *to->mail_end = mail;
    to->mail_end = &mail->next;
    bool must_wake = !to->is_mail_waking;
    to->is_mail_waking = true;
    (void)pthread_mutex_unlock(&to->mail_mutex);
    if (must_wake)
        (void)uv_async_send(&to->mail_bell);
    return LP_OK;
}

static struct lp_io_mail *take_all(struct lp_loop *loop)
{
    (void)pthread_mutex_lock(&loop->mail_mutex);
    struct lp_io_mail *first = loop->mail_first;
    loop->mail_first = NULL;
    loop->mail_end = &loop->mail_first;
    loop->is_mail_waking = false;
    (void)pthread_mutex_unlock(&loop->mail_mutex);
    return first;
}

static void deliver(struct lp_loop *loop, const struct lp_io_mail *mail)
{
    struct lp_event event = {.kind = LP_EV_MAIL};
    switch (mail->kind) {
    case MAIL_LETTER:
        event.u.mail.from = mail->from;
        event.u.mail.bytes = lp_span(mail->bytes, mail->len);
        break;
    case MAIL_CONFIG:
        event.kind = LP_EV_CONFIG;
        event.u.config = mail->config;
        break;
    case MAIL_STOP:
        if (loop->is_stopping)
            return;
        loop->is_stopping = true;
        lp_io_doors_close(loop, false);
        event.kind = LP_EV_STOP;
        break;
    case MAIL_END:
        uv_stop(&loop->uv);
        return;
    case MAIL_BROKEN:
        lp_io_conn_break(loop, mail->conn, mail->error);
        return;
    }
    lp_io_emit(loop, &event);
}

static void on_bell(uv_async_t *bell)
{
    struct lp_loop *loop = bell->loop->data;
    struct lp_io_mail *mail = take_all(loop);
    while (mail) {
        struct lp_io_mail *next = mail->next;
        deliver(loop, mail);
        free(mail);
        mail = next;
    }
}

int lp_io_mail_init(struct lp_loop *loop)
{
    loop->mail_end = &loop->mail_first;
    if (pthread_mutex_init(&loop->mail_mutex, NULL))
        return LP_ENOMEM;
    return uv_async_init(&loop->uv, &loop->mail_bell, on_bell) ? LP_EIO : LP_OK;
}

void lp_io_mail_fini(struct lp_loop *loop)
{
    struct lp_io_mail *mail = take_all(loop);
    while (mail) {
        struct lp_io_mail *next = mail->next;
        free(mail);
        mail = next;
    }
    (void)pthread_mutex_destroy(&loop->mail_mutex);
}

int64_t lp_io_mail_send(struct lp_loop *from, uint32_t to, struct lp_span bytes)
{
    if (to >= from->peer_count)
        return LP_ENOT_FOUND;
    return post(
        from->peers[to], &(struct lp_io_mail){.kind = MAIL_LETTER, .from = from->number}, bytes);
}

int lp_io_mail_broken(struct lp_loop *to, lp_id conn, int error)
{
    return post(to, &(struct lp_io_mail){.kind = MAIL_BROKEN, .conn = conn, .error = error},
        lp_span(NULL, 0));
}

int lp_loop_config(struct lp_loop *loop, const void *config)
{
    return post(
        loop, &(struct lp_io_mail){.kind = MAIL_CONFIG, .config = config}, lp_span(NULL, 0));
}

int lp_loop_stop(struct lp_loop *loop)
{
    return post(loop, &(struct lp_io_mail){.kind = MAIL_STOP}, lp_span(NULL, 0));
}

int lp_loop_end(struct lp_loop *loop)
{
    return post(loop, &(struct lp_io_mail){.kind = MAIL_END}, lp_span(NULL, 0));
}
