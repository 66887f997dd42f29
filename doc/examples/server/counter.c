/* A number that is kept with the session, wherever sessions live: with STORE_URL in the environment
 * in a Redis, so that any of several servers counts on (limpet-server-call(3)). */
#include <limpet-server.h>
#include <stdio.h>
#include <stdlib.h>

static void say(struct limpet_call *call, const char *why)
{
    limpet_call_tool_error(call, limpet_str(why));
}

static void count(void *context, struct limpet_call *call)
{
    (void)context;
    if (limpet_call_state_get(call))
        say(call, "there is no session to count in");
}

/* One more than `state`, which was read at `revision`. */
static void write_next(
    struct limpet_call *call, uint64_t *number, struct limpet_span state, uint64_t revision)
{
    char text[24] = "0";
    if (state.len && state.len < sizeof text)
        memcpy(text, state.ptr, state.len);
    *number = strtoull(text, NULL, 10) + 1;
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)*number);
    if (limpet_call_state_set(call, revision, limpet_bytes(text, (size_t)len)))
        say(call, "there is no memory");
}

/* What was read, then what became of the write; both come here. */
static void on_state(void *context, struct limpet_call *call, const struct limpet_wake *wake)
{
    uint64_t *number = (uint64_t *)limpet_call_data(call);
    char text[24];
    (void)context;
    if (wake->outcome == LIMPET_STATE_AWAY || wake->outcome == LIMPET_STATE_IN_DOUBT) {
        say(call, "the store cannot be reached; try again");
    } else if (!number || wake->outcome == LIMPET_STATE_CHANGED) {
        if (!number)
            limpet_call_set_data(call, number = (uint64_t *)calloc(1, sizeof *number));
        if (number)
            write_next(call, number, wake->state, wake->revision);
        else
            say(call, "there is no memory");
    } else {
        snprintf(text, sizeof text, "%llu", (unsigned long long)*number);
        limpet_call_text(call, limpet_str(text));
    }
}

static void on_over(void *context, struct limpet_call *call)
{
    (void)context;
    free(limpet_call_data(call));
}

static void on_log(void *context, enum limpet_level level, struct limpet_span sentence)
{
    (void)context;
    (void)level;
    fprintf(stderr, "%.*s\n", (int)sentence.len, sentence.ptr);
}

int main(int argc, char **argv)
{
    struct limpet_server_options options = LIMPET_ZERO;
    struct limpet_tool tool = LIMPET_ZERO;
    struct limpet_server *server = NULL;
    options.name = "counter";
    options.version = "1.0";
    options.store = getenv("STORE_URL");
    options.sessions = options.store ? LIMPET_SESSIONS_SHARED : LIMPET_SESSIONS_LOCAL;
    options.log = on_log;
    options.owns_process = true;
    tool.name = "count";
    tool.description = "Counts the calls of this session";
    tool.handler.run = count;
    tool.handler.wake = on_state;
    tool.handler.over = on_over;
    int err = limpet_server_new(NULL, &options, &server);
    err = err ? err : limpet_server_add_tool(server, &tool);
    err = err ? err : limpet_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:3000");
    if (!err)
        fprintf(stderr, "listening on %s\n", limpet_server_url(server));
    err = err ? err : limpet_server_run(server);
    if (err)
        fprintf(stderr, "%s\n", limpet_server_why(server, err));
    limpet_server_free(server);
    return err ? 1 : 0;
}
