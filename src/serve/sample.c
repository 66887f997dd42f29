/* The sample server: a server of serve/server.h with the tools of sample_tools.c. */
#include "serve/sample.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "serve/sample_tools.h"
#include "wire/field.h"

enum { INSTRUCTIONS_MAX = 128 };

struct lp_sample {
    struct lp_server *server;
    struct lp_sample_self self;
    struct lp_offer offer;
    char name[LP_SAMPLE_NAME_MAX];
};

static int start(struct lp_sample *sample, const struct lp_sample_args *args)
{
    char instructions[INSTRUCTIONS_MAX];
    int n = snprintf(instructions, sizeof instructions,
        "A sample server; this one is replica %.*s.", (int)args->name.len, args->name.ptr);
    struct lp_server_args server = {.shell = args->shell,
        .offer = &sample->offer,
        .name = LP_SPAN("limpet-replica"),
        .version = LP_SPAN(LP_VERSION),
        .instructions = lp_span(instructions, (size_t)n),
        .path = args->path,
        .sse_path = args->sse_path,
        .mode = args->mode,
        .eras = args->eras,
        .owner = args->owner,
        .replay = args->replay,
        .store = args->store,
        .store_wait = args->store_wait,
        .origins = args->origins,
        .session_max = args->session_max,
        .idle_us = args->idle_us,
        .keys = args->keys};
    memcpy(server.seed, args->seed, sizeof server.seed);
    return lp_server_new(&server, &sample->server);
}

int lp_sample_new(const struct lp_sample_args *args, struct lp_sample **ret)
{
    if (args->name.len > LP_SAMPLE_NAME_MAX)
        return LP_ETOO_LONG;
    if (!lp_field_is_token(args->name))
        return LP_ESYNTAX;
    struct lp_sample *sample = calloc(1, sizeof *sample);
    if (!sample)
        return LP_ENOMEM;
    memcpy(sample->name, args->name.ptr, args->name.len);
    sample->self.name = lp_span(sample->name, args->name.len);
    lp_sample_offer(&sample->self, &sample->offer);
    int err = start(sample, args);
    if (err) {
        free(sample);
        return err;
    }
    *ret = sample;
    return LP_OK;
}

void lp_sample_free(struct lp_sample *sample)
{
    if (!sample)
        return;
    lp_server_free(sample->server);
    free(sample);
}

uint32_t lp_sample_session_count(const struct lp_sample *sample)
{
    return lp_server_session_count(sample->server);
}

void lp_sample_event(struct lp_sample *sample, const struct lp_event *event)
{
    lp_server_event(sample->server, event);
}
