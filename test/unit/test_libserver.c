/* liblimpet-server by limpet-server.h alone: what is refused (options, offers, addresses, JSON),
 * its own loop in a thread with posted functions, and its memory: all of it comes from the hook and
 * goes back with its size, and each allocation may fail. What a client sees is in
 * test_libserver_call.c and test/interop/library-server.test.mjs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limpet-server.h>
#include <pthread.h>
#include <unistd.h>

#define BYTES_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static bool is_text(struct limpet_span span, const char *text)
{
    return span.len == strlen(text) && (!span.len || memcmp(span.ptr, text, span.len) == 0);
}

static struct limpet_server_options fine_options(void)
{
    return (struct limpet_server_options){.name = "test", .version = "1"};
}

static struct limpet_server *new_server(const struct limpet_server_options *options)
{
    struct limpet_server *server = NULL;
    assert_int_equal(limpet_server_new(NULL, options, &server), LIMPET_OK);
    return server;
}

static void nothing(void *context, struct limpet_call *call)
{
    (void)context;
    (void)call;
}

/* --- options ---------------------------------------------------------------------------------- */

static void expect_bad(struct limpet_server_options options)
{
    struct limpet_server *server = NULL;
    assert_int_equal(limpet_server_new(NULL, &options, &server), LIMPET_ESYNTAX);
    assert_null(server);
}

static void test_bad_options(void **state)
{
    static const char *const PATHS[] = {"", "mcp", "/a b", "/mcp?x", "/\xc3\xa9"};
    (void)state;
    char path[300];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    expect_bad((struct limpet_server_options){.name = "test"});
    expect_bad((struct limpet_server_options){.version = "1"});
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        expect_bad((struct limpet_server_options){.name = "a", .version = "1", .path = PATHS[i]});
    expect_bad((struct limpet_server_options){.name = "a", .version = "1", .path = path});
    expect_bad((struct limpet_server_options){.name = "a", .version = "1", .sse_path = "sse"});
    expect_bad((struct limpet_server_options){.name = "a", .version = "1", .keys = "no key"});
    expect_bad((struct limpet_server_options){.name = "a", .version = "1", .owner = "m-1"});
    expect_bad((struct limpet_server_options){
        .name = "a", .version = "1", .sessions = LIMPET_SESSIONS_SHARED});
    expect_bad((struct limpet_server_options){.name = "a",
        .version = "1",
        .sessions = LIMPET_SESSIONS_SHARED,
        .store = "redis://:${" BYTES_64 BYTES_64 "}@localhost"});
    limpet_server_free(NULL);
}

static struct limpet_owner owner_of(const struct limpet_server_options *options)
{
    struct limpet_owner owner;
    struct limpet_server *server = new_server(options);
    limpet_server_owner(server, &owner);
    assert_int_equal(limpet_server_session_count(server), 0);
    limpet_server_free(server);
    return owner;
}

static void test_owners(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    setenv("HOSTNAME", "pod-7.example", 1);
    unsetenv("FLY_MACHINE_ID");
    assert_int_equal(owner_of(&options).source, LIMPET_OWNER_NOWHERE);
    options.owner_from_hostname = true;
    struct limpet_owner owner = owner_of(&options);
    assert_int_equal(owner.source, LIMPET_OWNER_HOSTNAME);
    assert_int_equal(owner.len, 16);
    setenv("FLY_MACHINE_ID", "not-good", 1);
    assert_int_equal(owner_of(&options).source, LIMPET_OWNER_MACHINE_BAD);
    setenv("FLY_MACHINE_ID", "f9", 1);
    assert_int_equal(owner_of(&options).source, LIMPET_OWNER_MACHINE);
    options.owner = "m1";
    owner = owner_of(&options);
    assert_int_equal(owner.source, LIMPET_OWNER_CONFIGURED);
    assert_true(is_text(limpet_bytes(owner.text, owner.len), "m1"));
    unsetenv("FLY_MACHINE_ID");
}

/* --- offers ----------------------------------------------------------------------------------- */

static int add_tool(struct limpet_server *server, struct limpet_tool tool)
{
    return limpet_server_add_tool(server, &tool);
}

static int add_resource(struct limpet_server *server, struct limpet_resource resource)
{
    return limpet_server_add_resource(server, &resource);
}

static int add_prompt(struct limpet_server *server, struct limpet_prompt prompt)
{
    return limpet_server_add_prompt(server, &prompt);
}

#define RUN .handler = {.run = nothing}

static void test_bad_tools(void **state)
{
    static const char *const SCHEMAS[] = {"", "{", "[]", "1", "{} {}", "{\"a\":01}"};
    static const char *const MORE[] = {"", " ", "\"title\"", "\"a\":1,", "\"a\":1}"};
    (void)state;
    struct limpet_server_options options = fine_options();
    struct limpet_server *server = new_server(&options);
    assert_int_equal(add_tool(server, (struct limpet_tool){RUN}), LIMPET_ESYNTAX);
    assert_int_equal(add_tool(server, (struct limpet_tool){.name = "", RUN}), LIMPET_ESYNTAX);
    assert_int_equal(add_tool(server, (struct limpet_tool){.name = "a"}), LIMPET_ESYNTAX);
    for (size_t i = 0; i < sizeof SCHEMAS / sizeof *SCHEMAS; i++)
        assert_int_equal(
            add_tool(server, (struct limpet_tool){.name = "a", .input_schema = SCHEMAS[i], RUN}),
            LIMPET_ESYNTAX);
    for (size_t i = 1; i < sizeof MORE / sizeof *MORE; i++)
        assert_int_equal(add_tool(server, (struct limpet_tool){.name = "a", .more = MORE[i], RUN}),
            i == 1 ? LIMPET_OK : LIMPET_ESYNTAX);
    assert_int_equal(add_tool(server, (struct limpet_tool){.name = "a", RUN}), LIMPET_EEXISTS);
    limpet_server_free(server);
}

static void test_bad_resources_and_prompts(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    struct limpet_server *server = new_server(&options);
    struct limpet_handler none = {.run = NULL}, handler = {.run = nothing};
    char uri[2050];
    memset(uri, 'x', sizeof uri);
    uri[sizeof uri - 1] = '\0';
    assert_int_equal(
        add_resource(server, (struct limpet_resource){.uri = "a:b", RUN}), LIMPET_ESYNTAX);
    assert_int_equal(
        add_resource(server, (struct limpet_resource){.name = "a", RUN}), LIMPET_ESYNTAX);
    assert_int_equal(add_resource(server, (struct limpet_resource){.uri = uri, .name = "a", RUN}),
        LIMPET_ESYNTAX);
    assert_int_equal(
        add_resource(server, (struct limpet_resource){.uri = "a:b", .name = "a"}), LIMPET_ESYNTAX);
    assert_int_equal(
        add_resource(server, (struct limpet_resource){.uri = "a:b", .name = "a", RUN}), LIMPET_OK);
    assert_int_equal(add_resource(server, (struct limpet_resource){.uri = "a:b", .name = "c", RUN}),
        LIMPET_EEXISTS);
    assert_int_equal(add_prompt(server, (struct limpet_prompt){RUN}), LIMPET_ESYNTAX);
    assert_int_equal(add_prompt(server, (struct limpet_prompt){.name = "a"}), LIMPET_ESYNTAX);
    assert_int_equal(
        add_prompt(server, (struct limpet_prompt){.name = "a", .arguments = "{}", RUN}),
        LIMPET_ESYNTAX);
    assert_int_equal(add_prompt(server, (struct limpet_prompt){.name = "a", RUN}), LIMPET_OK);
    assert_int_equal(add_prompt(server, (struct limpet_prompt){.name = "a", RUN}), LIMPET_EEXISTS);
    assert_int_equal(limpet_server_set_completion(server, &none), LIMPET_ESYNTAX);
    assert_int_equal(limpet_server_set_completion(server, &handler), LIMPET_OK);
    assert_int_equal(limpet_server_set_completion(server, &handler), LIMPET_EEXISTS);
    limpet_server_free(server);
}

static void test_changes_that_were_not_announced_are_not_told(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    for (int i = 0; i < 2; i++) {
        struct limpet_server *server = new_server(&options);
        limpet_server_list_changed(server, LIMPET_LIST_TOOLS);
        limpet_server_list_changed(server, (enum limpet_list)7);
        limpet_server_resource_updated(server, "a:b");
        limpet_server_free(server);
        options.lists_change = options.has_subscriptions = true;
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

#define JSON                                                                                       \
    "{\"text\":\"a\\u0000\\\"b\\\"\",\"n\":-7,\"big\":9223372036854775808,\"f\":1.0,"              \
    "\"yes\":true,\"no\":false,\"none\":null,\"list\":[1,[2],{\"x\":3}],\"min\":-"                 \
    "9223372036854775808}"

static void test_json_values(void **state)
{
    (void)state;
    char room[8];
    struct limpet_span json = limpet_str(JSON), text = limpet_str("kept");
    int64_t number = 5;
    bool value = false;
    assert_int_equal(limpet_json_text(json, "text", room, 6, &text), LIMPET_OK);
    assert_int_equal(text.len, 5);
    assert_memory_equal(room, "a\0\"b\"", 6);
    assert_int_equal(limpet_json_text(json, "text", room, 5, &text), LIMPET_ETOO_LONG);
    assert_int_equal(limpet_json_text(json, "text", room, 0, &text), LIMPET_ETOO_LONG);
    assert_int_equal(limpet_json_text(json, "n", room, 8, &text), LIMPET_ESYNTAX);
    assert_int_equal(limpet_json_text(json, "none", room, 8, &text), LIMPET_ENOT_FOUND);
    assert_int_equal(limpet_json_text(json, "absent", room, 8, &text), LIMPET_ENOT_FOUND);
    assert_int_equal(limpet_json_integer(json, "n", &number), LIMPET_OK);
    assert_int_equal(number, -7);
    assert_int_equal(limpet_json_integer(json, "min", &number), LIMPET_OK);
    assert_true(number == INT64_MIN);
    assert_int_equal(limpet_json_integer(json, "big", &number), LIMPET_ERANGE);
    assert_int_equal(limpet_json_integer(json, "f", &number), LIMPET_ESYNTAX);
    assert_int_equal(limpet_json_integer(json, "yes", &number), LIMPET_ESYNTAX);
    assert_int_equal(limpet_json_integer(limpet_str("[]"), "n", &number), LIMPET_ENOT_FOUND);
    assert_int_equal(limpet_json_bool(json, "yes", &value), LIMPET_OK);
    assert_true(value);
    assert_int_equal(limpet_json_bool(json, "no", &value), LIMPET_OK);
    assert_false(value);
    assert_int_equal(limpet_json_bool(json, "n", &value), LIMPET_ESYNTAX);
    assert_int_equal(limpet_json_bool(json, "none", &value), LIMPET_ENOT_FOUND);
}

static void test_json_parts(void **state)
{
    (void)state;
    struct limpet_span list = limpet_json_member(limpet_str(JSON), "list");
    assert_true(is_text(list, "[1,[2],{\"x\":3}]"));
    assert_true(is_text(limpet_json_element(list, 0), "1"));
    assert_true(is_text(limpet_json_element(list, 1), "[2]"));
    assert_true(is_text(limpet_json_member(limpet_json_element(list, 2), "x"), "3"));
    assert_true(is_text(limpet_json_element(list, 3), ""));
    assert_true(is_text(limpet_json_element(limpet_str(JSON), 0), ""));
    assert_true(is_text(limpet_json_element(limpet_str("[1"), 0), ""));
    assert_true(is_text(limpet_json_element(limpet_str(" \r\n\t[ 1 ]"), 0), "1"));
    assert_true(is_text(limpet_json_member(limpet_str("no JSON"), "x"), ""));
}

static void test_json_quote(void **state)
{
    (void)state;
    char room[16];
    struct limpet_span json = limpet_str("kept");
    assert_int_equal(limpet_json_quote(limpet_str("a\"\n"), room, 8, &json), LIMPET_OK);
    assert_string_equal(room, "\"a\\\"\\n\"");
    assert_true(is_text(json, room));
    assert_int_equal(limpet_json_quote(limpet_str("a\"\n"), room, 7, &json), LIMPET_ETOO_LONG);
    assert_int_equal(limpet_json_quote(limpet_str("a"), room, 0, &json), LIMPET_ETOO_LONG);
    assert_int_equal(limpet_json_quote(limpet_str(NULL), room, 3, &json), LIMPET_OK);
    assert_string_equal(room, "\"\"");
}

/* --- its own loop ----------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
    static const char *const BAD[] = {"", "127.0.0.1", "127.0.0.1:x", ":3000", "127.0.0.1:65536"};
    (void)state;
    struct limpet_server_options options = fine_options();
    struct limpet_server *server = new_server(&options);
    assert_string_equal(limpet_server_url(server), "");
    assert_string_equal(limpet_server_why(NULL, LIMPET_ENOMEM), "out of memory");
    assert_string_equal(limpet_server_why(server, LIMPET_EEXISTS), "it is there already");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(limpet_server_listen(server, BAD[i]), LIMPET_ESYNTAX);
    assert_non_null(strstr(limpet_server_why(server, LIMPET_ESYNTAX), "host:port"));
    assert_int_equal(limpet_server_run(server), LIMPET_EUNSUPPORTED);
    assert_int_equal(limpet_server_listen(server, "unix:"), LIMPET_EUNREACHABLE);
    for (int i = 0; i < 8; i++)
        assert_int_equal(limpet_server_listen(server, "127.0.0.1:0"), LIMPET_OK);
    assert_int_equal(limpet_server_listen(server, "127.0.0.1:0"), LIMPET_ELIMIT);
    const char *url = limpet_server_url(server);
    assert_memory_equal(url, "http://127.0.0.1:", 17);
    assert_non_null(strstr(url, "/mcp"));
    char host[64] = "";
    memcpy(host, url + 7, strlen(url) - 7 - 4);
    struct limpet_server *second = new_server(&options);
    assert_int_equal(limpet_server_listen(second, host), LIMPET_EEXISTS);
    assert_non_null(strstr(limpet_server_why(second, LIMPET_EEXISTS), "in use"));
    char path[64];
    snprintf(path, sizeof path, "unix:/tmp/limpet-test-%ld.sock", (long)getpid());
    assert_int_equal(limpet_server_listen(second, path), LIMPET_OK);
    assert_string_equal(limpet_server_url(second), path);
    limpet_server_free(second);
    limpet_server_free(server);
}

enum { POSTS = 100 };

struct tally {
    struct limpet_server *server;
    int count;
    bool in_order;
};

struct note {
    struct tally *tally;
    int number;
};

static void on_post(void *context, struct limpet_server *server)
{
    struct note *note = context;
    struct tally *tally = note->tally;
    assert_ptr_equal(server, tally->server);
    tally->in_order = tally->in_order && note->number == tally->count;
    if (++tally->count == POSTS)
        assert_int_equal(limpet_server_stop(server), LIMPET_OK);
}

static void *post_all(void *context)
{
    struct note *notes = context;
    for (int i = 0; i < POSTS; i++)
        if (limpet_server_post(notes[i].tally->server, on_post, &notes[i]))
            abort();
    return NULL;
}

/* Posted before it runs, or by a thread while it runs: each once, in order. */
static void test_posts(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    for (int early = 0; early < 2; early++) {
        struct tally tally = {.server = new_server(&options), .in_order = true};
        struct note notes[POSTS];
        pthread_t thread;
        for (int i = 0; i < POSTS; i++)
            notes[i] = (struct note){.tally = &tally, .number = i};
        if (early)
            post_all(notes);
        assert_int_equal(limpet_server_listen(tally.server, "127.0.0.1:0"), LIMPET_OK);
        if (!early)
            assert_int_equal(pthread_create(&thread, NULL, post_all, notes), 0);
        assert_int_equal(limpet_server_run(tally.server), LIMPET_OK);
        if (!early)
            pthread_join(thread, NULL);
        assert_int_equal(tally.count, POSTS);
        assert_true(tally.in_order);
        assert_int_equal(limpet_server_run(tally.server), LIMPET_EUNSUPPORTED);
        assert_int_equal(limpet_server_post(tally.server, on_post, notes), LIMPET_OK); /* dropped */
        limpet_server_free(tally.server);
        assert_int_equal(tally.count, POSTS);
    }
}

static void *run_server(void *context)
{
    struct tally *tally = context;
    if (limpet_server_run(tally->server))
        abort();
    return NULL;
}

/* There are no globals: two run at the same time, each in its thread, and know nothing of each
 * other. */
static void test_two_servers(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    struct tally tallies[2] = {{.in_order = true}, {.in_order = true}};
    struct note notes[2][POSTS];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        tallies[i].server = new_server(&options);
        assert_int_equal(limpet_server_listen(tallies[i].server, "127.0.0.1:0"), LIMPET_OK);
        for (int j = 0; j < POSTS; j++)
            notes[i][j] = (struct note){.tally = &tallies[i], .number = j};
        assert_int_equal(pthread_create(&threads[i], NULL, run_server, &tallies[i]), 0);
    }
    for (int j = 0; j < POSTS; j++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                limpet_server_post(tallies[i].server, on_post, &notes[i][j]), LIMPET_OK);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tallies[i].count, POSTS);
        assert_true(tallies[i].in_order);
        limpet_server_free(tallies[i].server);
    }
}

static void test_a_stop_before_it_runs_is_not_lost(void **state)
{
    (void)state;
    struct limpet_server_options options = fine_options();
    options.owns_process = true;
    struct limpet_server *server = new_server(&options);
    assert_int_equal(limpet_server_stop(server), LIMPET_OK);
    assert_int_equal(limpet_server_listen(server, "127.0.0.1:0"), LIMPET_OK);
    assert_int_equal(limpet_server_stop(server), LIMPET_OK);
    assert_int_equal(limpet_server_run(server), LIMPET_OK);
    limpet_server_free(server);
}

/* --- memory ----------------------------------------------------------------------------------- */

struct pool {
    size_t bytes;   /* given out now */
    unsigned calls; /* that asked for memory */
    unsigned fails; /* the call that gets none, from 1 on; 0: none fails */
};

static void *resize(void *context, void *ptr, size_t old_bytes, size_t bytes)
{
    struct pool *pool = context;
    size_t *block = ptr ? (size_t *)ptr - 2 : NULL;
    assert_int_equal(block ? *block : 0, old_bytes); /* sizes are told truly */
    if (bytes && ++pool->calls == pool->fails)
        return NULL;
    pool->bytes += bytes - old_bytes;
    if (!bytes) {
        free(block);
        return NULL;
    }
    block = realloc(block, bytes + 2 * sizeof *block);
    assert_non_null(block);
    *block = bytes;
    return block + 2;
}

static int offer_all(struct limpet_server *server)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    struct limpet_handler handler = {.run = nothing};
    int err = LIMPET_OK;
    for (int i = 0; i < 3 && !err; i++) {
        err = add_tool(server, (struct limpet_tool){.name = NAMES[i], .description = "d", RUN});
        if (!err)
            err = add_resource(
                server, (struct limpet_resource){.uri = NAMES[i], .name = NAMES[i], RUN});
        if (!err)
            err = add_prompt(server, (struct limpet_prompt){.name = NAMES[i], RUN});
    }
    return err ? err : limpet_server_set_completion(server, &handler);
}

static int build(struct pool *pool)
{
    struct limpet_alloc alloc = {.resize = resize, .context = pool};
    struct limpet_server_options options = fine_options();
    struct limpet_server *server = NULL;
    int err = limpet_server_new(&alloc, &options, &server);
    if (!err)
        err = offer_all(server);
    limpet_server_free(server);
    return err;
}

static void test_memory(void **state)
{
    (void)state;
    struct pool pool = {0};
    assert_int_equal(build(&pool), LIMPET_OK);
    assert_int_equal(pool.bytes, 0);
    for (unsigned fails = 1, calls = pool.calls; fails <= calls; fails++) {
        pool = (struct pool){.fails = fails};
        assert_int_equal(build(&pool), LIMPET_ENOMEM);
        assert_int_equal(pool.bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_bad_tools),
        cmocka_unit_test(test_bad_resources_and_prompts),
        cmocka_unit_test(test_changes_that_were_not_announced_are_not_told),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_parts),
        cmocka_unit_test(test_json_quote),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_posts),
        cmocka_unit_test(test_two_servers),
        cmocka_unit_test(test_a_stop_before_it_runs_is_not_lost),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
