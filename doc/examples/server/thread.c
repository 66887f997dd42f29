/* A tool that takes its time: a thread does the work, the server goes on serving, and the answer is
 * given when it is there (limpet-server-call(3)). */
#include <limpet-server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    struct limpet_server *server;
    struct work *first; /* what threads work on; touched in the server's thread only */
};

struct work {
    struct work *next;
    struct worker *worker;
    pthread_t thread;
    uint64_t call; /* an id, not a pointer: the call may be over before the work is */
    int64_t number;
    int64_t factor; /* the result */
};

static void finish(struct work *work)
{
    struct work **at = &work->worker->first;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
    pthread_join(work->thread, NULL);
    free(work);
}

/* In the server's thread again. */
static void on_done(void *context, struct limpet_server *server)
{
    struct work *work = (struct work *)context;
    struct limpet_call *call = limpet_server_call(server, work->call);
    char text[64];
    if (call) {
        snprintf(text, sizeof text, "%lld", (long long)work->factor);
        limpet_call_text(call, limpet_str(text));
    }
    finish(work);
}

/* In the thread of the work: nothing of the server is touched but limpet_server_post. */
static void *do_work(void *context)
{
    struct work *work = (struct work *)context;
    work->factor = 2;
    while (work->number % work->factor && work->factor < work->number)
        work->factor++;
    if (limpet_server_post(work->worker->server, on_done, work))
        fprintf(stderr, "out of memory: a call gets no answer\n");
    return NULL;
}

static int start(struct worker *worker, struct limpet_call *call, int64_t number)
{
    struct work *work = (struct work *)calloc(1, sizeof *work);
    if (!work)
        return LIMPET_ENOMEM;
    work->next = worker->first;
    work->worker = worker;
    work->call = limpet_call_id(call);
    work->number = number;
    if (pthread_create(&work->thread, NULL, do_work, work)) {
        free(work);
        return LIMPET_ENOMEM;
    }
    worker->first = work;
    return LIMPET_OK;
}

static void smallest_factor(void *context, struct limpet_call *call)
{
    int64_t number = 0;
    if (limpet_json_integer(limpet_call_arguments(call), "number", &number) || number < 2)
        limpet_call_tool_error(call, limpet_str("say a number from 2 on"));
    else if (start((struct worker *)context, call, number))
        limpet_call_tool_error(call, limpet_str("there is no memory for one more call"));
}

int main(int argc, char **argv)
{
    struct limpet_server_options options = LIMPET_ZERO;
    struct limpet_tool tool = LIMPET_ZERO;
    struct worker worker = LIMPET_ZERO;
    options.name = "factors";
    options.version = "1.0";
    options.owns_process = true;
    int err = limpet_server_new(NULL, &options, &worker.server);
    tool.name = "smallest_factor";
    tool.description = "Finds the smallest factor of a number, slowly";
    tool.input_schema = "{\"type\":\"object\",\"properties\":{\"number\":{\"type\":\"integer\","
                        "\"minimum\":2}},\"required\":[\"number\"]}";
    tool.handler.run = smallest_factor;
    tool.handler.context = &worker;
    err = err ? err : limpet_server_add_tool(worker.server, &tool);
    err = err ? err : limpet_server_listen(worker.server, argc > 1 ? argv[1] : "127.0.0.1:3000");
    if (!err)
        fprintf(stderr, "listening on %s\n", limpet_server_url(worker.server));
    err = err ? err : limpet_server_run(worker.server);
    if (err)
        fprintf(stderr, "%s\n", limpet_server_why(worker.server, err));
    while (worker.first) /* threads that are late: their answers nobody takes any more */
        finish(worker.first);
    limpet_server_free(worker.server);
    return err ? 1 : 0;
}
