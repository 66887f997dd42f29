/* `limpet status`: asks the admin listener of a running gateway. A small blocking HTTP exchange:
 * one request, one answer, then the connection ends. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/app.h"
#include "wire/http1.h"

enum { ANSWER_MAX = 64 << 20, TIMEOUT_S = 5, PORT_DIGITS = 6, READ_BYTES = 65536, ADMIN_MAX = 512 };

static const char UNIX[] = "unix:";

static int refuse_connection(const char *admin, int sys_errno)
{
    return lp_app_fail(LP_EXIT_FAILED,
        "no gateway answers on %s (%s); start one, or name its admin address with --admin", admin,
        strerror(sys_errno));
}

static int open_socket(const struct sockaddr *address, socklen_t len)
{
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    if (connect(fd, address, len) == 0)
        return fd;
    int kept = errno;
    (void)close(fd);
    errno = kept == EINPROGRESS ? ETIMEDOUT : kept;
    return -1;
}

static int dial_unix(const char *admin, const char *path, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof address.sun_path)
        return lp_app_fail(LP_EXIT_USAGE,
            "--admin: a path of 1 to %zu bytes must follow unix:", sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path));
    int fd = open_socket((const struct sockaddr *)&address, sizeof address);
    if (fd < 0)
        return refuse_connection(admin, errno);
    *ret_fd = fd;
    return LP_EXIT_OK;
}

static int dial_host(const char *admin, struct lp_span host, uint16_t port, int *ret_fd)
{
    char name[256];
    char service[PORT_DIGITS];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    snprintf(name, sizeof name, "%.*s", (int)host.len, host.ptr);
    snprintf(service, sizeof service, "%u", port);
    int err = getaddrinfo(name, service, &hints, &list);
    if (err)
        return lp_app_fail(
            LP_EXIT_FAILED, "the address %s is not known: %s", name, gai_strerror(err));
    int fd = -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = open_socket(a->ai_addr, a->ai_addrlen);
    int kept = errno;
    freeaddrinfo(list);
    if (fd < 0)
        return refuse_connection(admin, kept);
    *ret_fd = fd;
    return LP_EXIT_OK;
}

static int dial(const char *admin, int *ret_fd)
{
    struct lp_span host;
    uint16_t port;
    if (strncmp(admin, UNIX, sizeof UNIX - 1) == 0)
        return dial_unix(admin, admin + sizeof UNIX - 1, ret_fd);
    int status = lp_options_address("--admin", admin, &host, &port);
    return status == LP_EXIT_OK ? dial_host(admin, host, port, ret_fd) : status;
}

static int exchange(int fd, const char *admin, bool as_json, struct lp_buf *answer)
{
    char request[512];
    int n = snprintf(request, sizeof request,
        "GET /status HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nConnection: close\r\n\r\n",
        strncmp(admin, UNIX, sizeof UNIX - 1) == 0 ? "localhost" : admin,
        as_json ? "application/json" : "text/plain");
    if (n <= 0 || (size_t)n >= sizeof request || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        return refuse_connection(admin, errno);
    for (;;) {
        char *room;
        if (lp_buf_reserve(answer, READ_BYTES, &room))
            return lp_app_fail(LP_EXIT_FAILED, "the answer of %s is too long", admin);
        ssize_t got = recv(fd, room, READ_BYTES, 0);
        if (got < 0)
            return refuse_connection(admin, errno == EAGAIN ? ETIMEDOUT : errno);
        if (got == 0)
            return LP_EXIT_OK;
        lp_buf_commit(answer, (size_t)got);
    }
}

/* Takes the answer apart; the body goes to stdout. */
static int show(struct lp_span in, const char *admin)
{
    static struct lp_head head;
    struct lp_http1 parser;
    struct lp_http1_item item = {.kind = LP_HTTP1_NONE};
    uint16_t status = 0;
    bool is_whole = false;
    lp_http1_init(&parser, LP_HTTP1_RESPONSES, &head);
    do {
        ptrdiff_t n = lp_http1_feed(&parser, in, &item);
        if (n < 0)
            break;
        in = lp_span_from(in, (size_t)n);
        if (item.kind == LP_HTTP1_HEAD)
            status = item.head->status;
        else if (item.kind == LP_HTTP1_BODY && status == 200)
            fwrite(item.body.ptr, 1, item.body.len, stdout);
        is_whole |= item.kind == LP_HTTP1_END;
    } while (item.kind != LP_HTTP1_NONE && !is_whole);
    lp_http1_release(&parser);
    if (status == 403)
        return lp_app_fail(LP_EXIT_FAILED,
            "%s does not tell its status: that is told on a loopback admin listener only", admin);
    if (status != 200 || !is_whole)
        return lp_app_fail(
            LP_EXIT_FAILED, "what answers on %s is no admin listener of Limpet", admin);
    return LP_EXIT_OK;
}

/* The gateway's log says "http://HOST:PORT/status": that is an address too. */
static const char *bare_address(const char *admin, char room[ADMIN_MAX])
{
    struct lp_span rest = lp_span_str(admin);
    if (!lp_span_starts(rest, LP_SPAN("http://")))
        return admin;
    rest = lp_span_from(rest, sizeof "http://" - 1);
    if (lp_span_ends(rest, LP_SPAN("/status")))
        rest.len -= sizeof "/status" - 1;
    else if (lp_span_ends(rest, LP_SPAN("/")))
        rest.len--;
    int n = snprintf(room, ADMIN_MAX, "%.*s", (int)rest.len, rest.ptr);
    return n >= 0 && n < ADMIN_MAX ? room : admin;
}

static int ask(const char *given, bool as_json)
{
    char room[ADMIN_MAX];
    const char *admin = bare_address(given, room);
    int fd = -1;
    int status = dial(admin, &fd);
    if (status != LP_EXIT_OK)
        return status;
    struct lp_buf answer;
    lp_buf_init(&answer, ANSWER_MAX);
    status = exchange(fd, admin, as_json, &answer);
    if (status == LP_EXIT_OK)
        status = show(lp_buf_span(&answer), admin);
    lp_buf_release(&answer);
    (void)close(fd);
    return status;
}

static int run(int argc, const char *const *argv)
{
    const char *admin = "127.0.0.1:8081";
    bool as_json = false;
    const char *words[LP_WORDS_MAX + 1];
    const struct lp_option options[] = {
        {"--admin", &admin, NULL, NULL}, {"--json", NULL, &as_json, NULL}};
    int status = lp_options_read(options, 2, argc, argv, words);
    if (status == LP_EXIT_OK && words[0])
        status = lp_app_fail(LP_EXIT_USAGE, "there is a word too many: \"%s\"", words[0]);
    return status == LP_EXIT_OK ? ask(admin, as_json) : status;
}

static int help(struct lp_buf *out)
{
    return lp_app_text(out,
        "Usage: limpet status [--admin ADDRESS] [--json]\n"
        "\n"
        "Tells what a running gateway knows: its servers, their replicas with state and\n"
        "sessions, and the ids of its keys.\n"
        "\n"
        "  --admin ADDRESS  the gateway's admin listener, HOST:PORT or unix:/path.sock;\n"
        "                   http://HOST:PORT/status, as its log says it, will do\n"
        "                   (default 127.0.0.1:8081)\n"
        "  --json           print JSON\n"
        "\n"
        "Example:\n"
        "  limpet status --json\n");
}

const struct lp_command lp_command_status = {
    .name = "status",
    .summary = "what a running gateway knows",
    .run = run,
    .help = help,
};
