/* Replicas that share sessions, each in a world of memory (serve_harness.h), on one real Redis:
 * its connections are real, but the test decides when a replica gets to read what came. */
#ifndef LP_TEST_SHARED_HARNESS_H
#define LP_TEST_SHARED_HARNESS_H

#include "serve_harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/job.h"
#include "serve/shared.h"
#include "wire/member.h"

enum { STORE_CONNS = 64, STORE_GENERATION = 7, PATIENCE = 5000, START_TICKS = 400, TICK_MS = 50 };

/* --- Redis --- */

struct redis {
    pid_t pid;
    char dir[64];
    char path[96];
};

static struct redis redis;

static inline int dial_redis(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", redis.path);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline int begin_redis(void **state)
{
    (void)state;
    snprintf(redis.dir, sizeof redis.dir, "/tmp/limpet-redis-XXXXXX");
    assert_non_null(mkdtemp(redis.dir));
    snprintf(redis.path, sizeof redis.path, "%s/s", redis.dir);
    redis.pid = fork();
    if (redis.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!freopen("/dev/null", "w", stdout);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis.path, "--save",
            "", "--dir", redis.dir, (char *)NULL);
        _exit(127);
    }
    for (int left = START_TICKS; left; left--) {
        int fd = dial_redis();
        if (fd >= 0) {
            close(fd);
            return 0;
        }
        poll(NULL, 0, TICK_MS);
    }
    fail_msg("redis-server does not start: is it installed?");
    return -1;
}

static inline int end_redis(void **state)
{
    (void)state;
    kill(redis.pid, SIGKILL);
    waitpid(redis.pid, NULL, 0);
    unlink(redis.path);
    rmdir(redis.dir);
    return 0;
}

/* One command of the test's own; its words must not hold spaces. The answer as it came. */
static inline const char *redis_does(const char *command)
{
    static char text[4096];
    int fd = dial_redis();
    assert_true(fd >= 0);
    int n = snprintf(text, sizeof text, "%s\r\n", command);
    assert_int_equal(send(fd, text, (size_t)n, 0), n);
    ssize_t got_bytes = recv(fd, text, sizeof text - 1, 0);
    assert_true(got_bytes > 0);
    text[got_bytes] = '\0';
    close(fd);
    return text;
}

/* --- a replica --- */

struct store_conn {
    lp_id id; /* 0: none */
    int fd;   /* -1: refused */
    bool is_new;
    bool is_drained;
    struct lp_buf held; /* what a mute replica has written */
};

struct replica {
    struct world w;
    struct lp_store_url url;
    struct store_conn conns[STORE_CONNS];
    uint32_t dialled;
    bool is_refused; /* the store takes no connections of it */
    bool is_deaf;    /* what the store says stays where it is */
    bool is_mute;    /* what it says to the store is held back */
    uint32_t log_lines;
    char name[8];
};

static inline struct store_conn *conn_of(struct replica *r, lp_id conn)
{
    return conn >> 32 >= STORE_GENERATION ? &r->conns[lp_id_slot(conn)] : NULL;
}

static inline void forget(struct store_conn *conn)
{
    if (conn->id && conn->fd >= 0)
        close(conn->fd);
    lp_buf_release(&conn->held);
    *conn = (struct store_conn){0};
}

static inline int64_t send_all(const struct store_conn *conn, struct lp_span bytes)
{
    size_t sent = 0;
    while (sent < bytes.len) {
        ssize_t n = send(conn->fd, bytes.ptr + sent, bytes.len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return LP_EBROKEN;
        sent += (size_t)n;
    }
    return (int64_t)sent;
}

static inline int64_t hold(struct store_conn *conn, struct lp_span bytes)
{
    assert_int_equal(lp_buf_append(&conn->held, bytes), 0);
    return (int64_t)bytes.len;
}

static inline int64_t write_all(
    const struct replica *r, struct store_conn *conn, const struct lp_action *action)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < action->u.write.count; i++) {
        struct lp_span part = action->u.write.parts[i];
        int64_t n = r->is_mute ? hold(conn, part) : send_all(conn, part);
        if (n < 0)
            return n;
        all += n;
    }
    return all;
}

/* ids are never used twice, slots are */
static inline int64_t connect_store(struct replica *r)
{
    uint32_t slot = 0;
    while (r->conns[slot].id)
        assert_true(++slot < STORE_CONNS);
    lp_id id = (lp_id)(STORE_GENERATION + r->dialled++) << 32 | (slot + 1);
    r->conns[slot] =
        (struct store_conn){.id = id, .fd = r->is_refused ? -1 : dial_redis(), .is_new = true};
    lp_buf_init(&r->conns[slot].held, 1 << 20);
    return (int64_t)id;
}

static inline int64_t do_perform(struct replica *r, const struct lp_action *action)
{
    struct store_conn *conn = conn_of(r, action->conn);
    if (action->kind == LP_ACT_CONNECT)
        return connect_store(r);
    if (action->kind == LP_ACT_LOG)
        r->log_lines++;
    if (!conn)
        return perform(&r->w, action);
    switch (action->kind) {
    case LP_ACT_WRITE:
        return write_all(r, conn, action);
    case LP_ACT_DRAIN:
        conn->is_drained = send_all(conn, action->u.drain) >= 0;
        return 0;
    case LP_ACT_CLOSE:
        forget(conn);
        return 0;
    default:
        return 0;
    }
}

static inline int64_t replica_performs(void *ctx, const struct lp_action *action)
{
    if (work_hook)
        work_hook(false);
    int64_t result = do_perform(ctx, action);
    if (work_hook)
        work_hook(true);
    return result;
}

static inline void hear(struct replica *r, uint32_t slot)
{
    static char bytes[65536];
    struct store_conn *conn = &r->conns[slot];
    struct lp_event event = {.conn = conn->id};
    if (conn->is_new) {
        bool is_there = conn->fd >= 0;
        conn->is_new = false;
        event.kind = is_there ? LP_EV_CONNECTED : LP_EV_CONNECT_FAILED;
        event.u.error = LP_EREFUSED;
        if (!is_there)
            forget(conn);
        tell(&r->w, event);
    }
    if (conn->is_drained) {
        conn->is_drained = false;
        tell(&r->w, (struct lp_event){.kind = LP_EV_DRAINED, .conn = conn->id});
    }
    while (conn->id && conn->id == event.conn && !r->is_deaf) {
        ssize_t n = recv(conn->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0)
            return;
        if (n == 0) {
            forget(conn);
            tell(&r->w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = event.conn});
            return;
        }
        event.kind = LP_EV_READ;
        event.u.bytes = lp_span(bytes, (size_t)n);
        tell(&r->w, event);
    }
}

/* All that has come until now. */
static inline void pump(struct replica *r)
{
    for (uint32_t i = 0; i < STORE_CONNS; i++)
        if (r->conns[i].id)
            hear(r, i);
}

/* A mute replica may speak again: first what was held back. */
static inline void unmute(struct replica *r)
{
    r->is_mute = false;
    for (uint32_t i = 0; i < STORE_CONNS; i++) {
        struct store_conn *conn = &r->conns[i];
        struct lp_span bytes = lp_buf_span(&conn->held);
        if (conn->id && bytes.len)
            assert_int_equal(send_all(conn, bytes), (int64_t)bytes.len);
        lp_buf_clear(&conn->held);
    }
}

static inline uint32_t add_fds(const struct replica *r, struct pollfd *fds, uint32_t count)
{
    for (uint32_t i = 0; r && !r->is_deaf && i < STORE_CONNS; i++)
        if (r->conns[i].id && !r->conns[i].is_new)
            fds[count++] = (struct pollfd){.fd = r->conns[i].fd, .events = POLLIN};
    return count;
}

/* Until the store has something for one of them (`other` may be NULL), for a millisecond at most.
 */
static inline void nap(const struct replica *r, const struct replica *other)
{
    struct pollfd fds[2 * STORE_CONNS];
    uint32_t count = add_fds(other, fds, add_fds(r, fds, 0));
    poll(fds, count, 1);
}

/* The connections to the store break, as its death would do it; `connects`: it is there again. */
static inline void cut_store(struct replica *r, bool connects)
{
    r->is_refused = !connects;
    uint32_t dialled = STORE_GENERATION + r->dialled;
    for (uint32_t i = 0; i < STORE_CONNS; i++) {
        lp_id id = r->conns[i].id;
        if (!id || id >> 32 >= dialled)
            continue; /* none, or made meanwhile */
        forget(&r->conns[i]);
        tell(&r->w, (struct lp_event){.kind = LP_EV_BROKEN, .conn = id});
    }
}

/* Commands that a mute replica holds back. */
static inline uint32_t held_commands(const struct replica *r)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < STORE_CONNS; i++) {
        struct lp_span rest = lp_buf_span(&r->conns[i].held);
        for (size_t at; (at = lp_span_search(rest, LP_SPAN("\nEVAL"))) < rest.len; all++)
            rest = lp_span_from(rest, at + 1);
    }
    return all;
}

static inline uint32_t waiting(const struct replica *r)
{
    return lp_store_waiting(r->w.server->shared->store);
}

/* Until the store has answered everything. */
static inline void quiet(struct replica *r)
{
    int left = PATIENCE;
    for (pump(r); waiting(r) && left; left--) {
        nap(r, NULL);
        pump(r);
    }
    assert_int_equal(waiting(r), 0);
}

/* A mute replica: until what is left without an answer are so many commands that it holds back. */
static inline void quiet_but(struct replica *r, uint32_t held)
{
    for (int left = PATIENCE; left && (held_commands(r) < held || waiting(r) > held); left--) {
        nap(r, NULL);
        pump(r);
    }
    assert_int_equal(waiting(r), held);
}

/* Both of them pumped until `part` is in what came on the connection, which is returned. */
static inline const char *await_part(
    struct replica *r, lp_id conn, const char *part, struct replica *other)
{
    struct lp_buf *buf = &peer_of(&r->w, conn)->got;
    for (int left = PATIENCE; left; left--) {
        if (lp_span_search(lp_buf_span(buf), lp_span_str(part)) < buf->len)
            return got(&r->w, conn);
        pump(r);
        if (other)
            pump(other);
        nap(r, other);
    }
    fail_msg("\"%s\" never came; but: %s", part, got(&r->w, conn));
    return NULL;
}

/* --- what it offers --- */

static inline void who(void *ctx, struct lp_job *call)
{
    lp_job_text(call, lp_span_str(ctx));
}

static inline void put_count(struct lp_job *call, uint64_t revision, uint64_t count)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    lp_job_set_state(call, (void *)(uintptr_t)count); // NOLINT: a number
    int err = lp_job_state_set(call, revision, lp_span(text, (size_t)n));
    if (err)
        lp_job_tool_error(call, lp_error_name(err));
}

static inline void count(void *ctx, struct lp_job *call)
{
    (void)ctx;
    put_count(call, 0, 1);
}

static inline void count_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    char text[64];
    uint64_t number = 0;
    bool is_read = lp_span_to_u64(wake->state, &number);
    if (wake->outcome == LP_STATE_CHANGED && is_read) {
        put_count(call, wake->revision, number + 1);
        return;
    }
    int n = snprintf(text, sizeof text, "outcome %d, count %llu", (int)wake->outcome,
        (unsigned long long)(uintptr_t)lp_job_state(call));
    lp_job_text(call, lp_span(text, (size_t)n));
}

static inline void look(void *ctx, struct lp_job *call)
{
    (void)ctx;
    int err = lp_job_state_get(call);
    if (err)
        lp_job_tool_error(call, lp_error_name(err));
}

static inline void looked(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    char text[128];
    int n = snprintf(text, sizeof text, "outcome %d, revision %llu, state %.*s", (int)wake->outcome,
        (unsigned long long)wake->revision, (int)wake->state.len,
        wake->state.len ? wake->state.ptr : "");
    lp_job_text(call, lp_span(text, (size_t)n));
}

/* Three steps of a second. */
static inline void walk(void *ctx, struct lp_job *call)
{
    (void)ctx;
    if (lp_job_wait(call, SECOND))
        lp_job_tool_error(call, "no memory");
}

static inline void walk_on(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)wake;
    uintptr_t step = (uintptr_t)lp_job_state(call) + 1;
    lp_job_set_state(call, (void *)step); // NOLINT: a number
    lp_job_progress(call, step, 3);
    if (step < 3)
        walk(ctx, call);
    else
        lp_job_text(call, LP_SPAN("arrived"));
}

static inline void query(void *ctx, struct lp_job *call)
{
    (void)ctx;
    int err =
        lp_job_ask(call, "elicitation/create", LP_SPAN("{\"message\":\"m\"}"), 60ull * SECOND);
    if (err)
        lp_job_tool_error(call, lp_error_name(err));
}

static inline void queried(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    (void)ctx;
    if (wake->kind == LP_WAKE_REPLY && wake->result.len)
        lp_job_result(call, wake->result);
    else
        lp_job_tool_error(call, wake->kind == LP_WAKE_REPLY ? "refused" : "no answer");
}

static inline void shout(void *ctx, struct lp_job *call)
{
    (void)ctx;
    bool is_heard = lp_job_log_session(call, LP_LEVEL_INFO, NULL, LP_SPAN("\"hey\""));
    lp_job_text(call, is_heard ? LP_SPAN("heard") : LP_SPAN("not heard"));
}

/* `count` messages of `size` bytes each, at once. */
static inline void flood(void *ctx, struct lp_job *call)
{
    (void)ctx;
    struct lp_out data;
    uint64_t many = 0;
    uint64_t size = 0;
    assert_true(lp_member_u64(lp_job_arguments(call), LP_SPAN("count"), &many));
    assert_true(lp_member_u64(lp_job_arguments(call), LP_SPAN("size"), &size));
    lp_out_init(&data);
    lp_out_str(&data, "\"");
    for (uint64_t i = 0; i < size; i++)
        lp_out_str(&data, "x");
    lp_out_str(&data, "\"");
    for (uint64_t i = 0; i < many; i++)
        lp_job_log(call, LP_LEVEL_INFO, NULL, lp_out_span(&data));
    lp_out_release(&data);
    lp_job_text(call, LP_SPAN("flooded"));
}

static const struct lp_tool TOOLS_OF_ALL[] = {
    {.name = "who", .input_schema = "{}", .handler = {.run = who}},
    {.name = "count", .input_schema = "{}", .handler = {.run = count, .wake = count_on}},
    {.name = "look", .input_schema = "{}", .handler = {.run = look, .wake = looked}},
    {.name = "walk", .input_schema = "{}", .handler = {.run = walk, .wake = walk_on}},
    {.name = "query", .input_schema = "{}", .handler = {.run = query, .wake = queried}},
    {.name = "shout", .input_schema = "{}", .handler = {.run = shout}},
    {.name = "flood", .input_schema = "{}", .handler = {.run = flood}},
};
static const struct lp_resource RESOURCES_OF_ALL[] = {
    {.uri = "test://x", .name = "x", .handler = {.run = who}}};

/* Room for the offers of the replicas of one test. */
static struct lp_offer offers[8];

static inline void start_replica(struct replica *r, const char *name, struct lp_server_args args)
{
    struct lp_span why;
    char text[128];
    static uint32_t next;
    struct lp_offer *offer = &offers[next++ % 8];
    *r = (struct replica){0};
    snprintf(r->name, sizeof r->name, "%s", name);
    *offer = (struct lp_offer){.tools = TOOLS_OF_ALL,
        .tool_count = sizeof TOOLS_OF_ALL / sizeof *TOOLS_OF_ALL,
        .resources = RESOURCES_OF_ALL,
        .resource_count = 1,
        .lists_change = true,
        .has_subscriptions = true,
        .ctx = r->name};
    r->w = (struct world){.now_us = 1000, .timer_at_us = UINT64_MAX};
    r->w.shell = (struct lp_shell){r, replica_performs};
    snprintf(text, sizeof text, "unix:%s", redis.path);
    assert_int_equal(lp_store_url_parse(lp_span_str(text), NULL, NULL, &r->url, &why), 0);
    args.shell = &r->w.shell;
    args.offer = offer;
    args.name = LP_SPAN("test");
    args.version = LP_SPAN("1");
    args.path = LP_SPAN("/mcp");
    args.mode = LP_SESSIONS_SHARED;
    args.store = &r->url;
    memcpy(args.seed, name, strlen(name));
    args.seed[20] = (unsigned char)next;
    assert_int_equal(lp_server_new(&args, &r->w.server), 0);
    lp_server_settle(r->w.server, r->w.now_us);
}

/* Its store is there, and it is subscribed. */
static inline void start_up(struct replica *r, const char *name)
{
    start_replica(r, name, (struct lp_server_args){0});
    for (int left = PATIENCE; left && !lp_store_is_up(r->w.server->shared->store); left--) {
        pump(r);
        nap(r, NULL);
    }
    assert_true(lp_store_is_up(r->w.server->shared->store));
    for (int left = PATIENCE; left && !r->w.server->shared->heard[0]; left--) {
        pump(r);
        nap(r, NULL);
    }
    assert_true(r->w.server->shared->heard[0] != '\0');
    quiet(r);
}

static inline void finish_replica(struct replica *r)
{
    finish(&r->w);
    for (uint32_t i = 0; i < STORE_CONNS; i++)
        forget(&r->conns[i]);
}

/* --- clients --- */

#define CAN "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"
#define INITIALIZE_ALL                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":" CAN "}}"
#define RPC(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define TOOL(id, name) RPC(id, "tools/call", "{\"name\":\"" name "\",\"arguments\":{}}")
#define WALK(id)                                                                                   \
    RPC(id, "tools/call",                                                                          \
        "{\"name\":\"walk\",\"_meta\":{\"progressToken\":\"p\"},\"arguments\":{}}")

/* Sends a request on a new connection, whose id is returned, and lets the store answer. */
static inline lp_id begin_ask(
    struct client *c, struct replica *r, const char *method, const char *body)
{
    struct client here = *c;
    here.world = &r->w;
    lp_id conn = dial(&r->w);
    const char *text = ask(&here, conn, method, body);
    struct lp_buf *buf = &peer_of(&r->w, conn)->got;
    assert_int_equal(lp_buf_append(buf, lp_span_str(text)), 0);
    return conn;
}

static inline const char *say(
    struct client *c, struct replica *r, const char *method, const char *body)
{
    lp_id conn = begin_ask(c, r, method, body);
    quiet(r);
    return got(&r->w, conn);
}

static inline const char *post_to(struct client *c, struct replica *r, const char *body)
{
    return say(c, r, "POST", body);
}

static inline struct client open_session(struct replica *r)
{
    struct client c = {.world = &r->w};
    const char *text = post_to(&c, r, INITIALIZE_ALL);
    const char *id = strcasestr(text, "mcp-session-id: ");
    STATUS(text, "200");
    assert_non_null(id);
    assert_int_equal(sscanf(id + 16, "%127[^\r]", c.session), 1);
    return c;
}

/* The key of the session in the store, up to its tag. */
static inline const char *tag_of(const struct client *c)
{
    static char text[LP_SHARED_TAG_MAX];
    size_t at = (size_t)snprintf(text, sizeof text, "{limpet:");
    for (const char *p = c->session; *p; p++)
        if (*p != '-')
            text[at++] = *p;
    text[at++] = '}';
    text[at] = '\0';
    return text;
}

/* The raw id of the question in `text`. */
static inline void take_question(const char *text, char id[64])
{
    const char *at = strstr(text, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    if (!at || sscanf(at, "{\"jsonrpc\":\"2.0\",\"id\":%63[^,]", id) != 1)
        fail_msg("no question in: %s", text);
}

#endif
