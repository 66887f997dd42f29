/* What a server offers (limpet-server.h; struct lp_offer): checked, copied, and put into the arrays
 * that serve reads. An array that grows leaves the old one where it is, since calls in progress
 * point into it; doubling keeps what is left behind below what is used. */
#include "libserver/libserver.h"
#include "serve/out.h"

_Static_assert((int)LIMPET_WAKE_TIME == LP_WAKE_TIME, "");
_Static_assert((int)LIMPET_WAKE_REPLY == LP_WAKE_REPLY, "");
_Static_assert((int)LIMPET_WAKE_TIMEOUT == LP_WAKE_TIMEOUT, "");
_Static_assert((int)LIMPET_WAKE_STATE == LP_WAKE_STATE, "");
_Static_assert((int)LIMPET_STATE_DONE == LP_STATE_DONE, "");
_Static_assert((int)LIMPET_STATE_CHANGED == LP_STATE_CHANGED, "");
_Static_assert((int)LIMPET_STATE_AWAY == LP_STATE_AWAY, "");
_Static_assert((int)LIMPET_STATE_IN_DOUBT == LP_STATE_IN_DOUBT, "");
_Static_assert((int)LIMPET_LIST_TOOLS == LP_LIST_TOOLS, "");
_Static_assert((int)LIMPET_LIST_RESOURCES == LP_LIST_RESOURCES, "");
_Static_assert((int)LIMPET_LIST_PROMPTS == LP_LIST_PROMPTS, "");

/* --- handlers --- */

static void on_run(void *ctx, struct lp_job *call)
{
    const struct limpet_handler *handler = ctx;
    handler->run(handler->context, (struct limpet_call *)call);
}

static void on_wake(void *ctx, struct lp_job *call, const struct lp_wake *wake)
{
    const struct limpet_handler *handler = ctx;
    struct limpet_wake outer = {.kind = (enum limpet_wake_kind)wake->kind,
        .result = lp_lib_out(wake->result),
        .error = lp_lib_out(wake->error),
        .outcome = (enum limpet_state_outcome)wake->outcome,
        .state = lp_lib_out(wake->state),
        .revision = wake->revision};
    handler->wake(handler->context, (struct limpet_call *)call, &outer);
}

static void on_over(void *ctx, struct lp_job *call)
{
    const struct limpet_handler *handler = ctx;
    handler->over(handler->context, (struct limpet_call *)call);
}

static int take_handler(
    struct limpet_server *server, const struct limpet_handler *handler, struct lp_handler *ret)
{
    if (!handler->run)
        return LIMPET_ESYNTAX;
    struct limpet_handler *copy = lp_seat_take(server, sizeof *copy);
    if (!copy)
        return LIMPET_ENOMEM;
    *copy = *handler;
    *ret = (struct lp_handler){.run = on_run,
        .wake = handler->wake ? on_wake : NULL,
        .over = handler->over ? on_over : NULL,
        .ctx = copy};
    return LIMPET_OK;
}

/* --- arrays --- */

/* An array that has room for one more than `count`: the old one, or one twice as large. */
static void *room_for_one(
    struct limpet_server *server, const void *old, uint32_t count, size_t element_bytes)
{
    bool is_full = (count & (count - 1)) == 0; /* its sizes are the powers of two */
    if (!is_full)
        return (void *)old;
    size_t doubled = count ? 2 * (size_t)count : 1;
    void *room = lp_seat_take(server, doubled * element_bytes);
    if (room && count)
        memcpy(room, old, count * element_bytes);
    return room;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Copies of four texts. */
struct text {
    const char *from;
    const char **to;
};

static int copy_texts(struct limpet_server *server, const struct text *texts, size_t count)
{
    int err = LIMPET_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = lp_seat_copy(server, texts[i].from, texts[i].to);
    return err;
}

/* --- tools --- */

static bool are_members(const char *more)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{");
    lp_out_str(&out, more);
    lp_out_str(&out, "}");
    bool is_fine = !out.failed && out.buf.len > 2 && lp_seat_is_json(lp_out_span(&out), '{');
    lp_out_release(&out);
    return is_fine;
}

static int check_tool(const struct lp_offer *offer, const struct limpet_tool *tool)
{
    bool is_fine = tool->name && tool->name[0] &&
        (!tool->input_schema || lp_seat_is_json(lp_span_str(tool->input_schema), '{')) &&
        (!tool->more || are_members(tool->more));
    for (uint32_t i = 0; i < offer->tool_count && is_fine; i++)
        if (is_same(offer->tools[i].name, tool->name))
            return LIMPET_EEXISTS;
    return is_fine ? LIMPET_OK : LIMPET_ESYNTAX;
}

int limpet_server_add_tool(struct limpet_server *server, const struct limpet_tool *tool)
{
    struct lp_offer *offer = &server->offer;
    struct lp_tool inner = {0};
    int err = check_tool(offer, tool);
    if (!err)
        err = take_handler(server, &tool->handler, &inner.handler);
    if (err)
        return err;
    const char *schema = tool->input_schema ? tool->input_schema : "{\"type\":\"object\"}";
    const struct text texts[] = {{tool->name, &inner.name}, {tool->description, &inner.description},
        {schema, &inner.input_schema}, {tool->more, &inner.more}};
    struct lp_tool *tools = room_for_one(server, offer->tools, offer->tool_count, sizeof *tools);
    if (!tools || copy_texts(server, texts, 4))
        return LIMPET_ENOMEM;
    tools[offer->tool_count++] = inner;
    offer->tools = tools;
    return LIMPET_OK;
}

/* --- resources --- */

static int check_resource(const struct lp_offer *offer, const struct limpet_resource *resource)
{
    bool is_fine = resource->uri && resource->uri[0] && resource->name && resource->name[0] &&
        strlen(resource->uri) <= LP_SERVER_URI_MAX;
    for (uint32_t i = 0; i < offer->resource_count && is_fine; i++)
        if (is_same(offer->resources[i].uri, resource->uri))
            return LIMPET_EEXISTS;
    return is_fine ? LIMPET_OK : LIMPET_ESYNTAX;
}

int limpet_server_add_resource(struct limpet_server *server, const struct limpet_resource *resource)
{
    struct lp_offer *offer = &server->offer;
    struct lp_resource inner = {0};
    int err = check_resource(offer, resource);
    if (!err)
        err = take_handler(server, &resource->handler, &inner.handler);
    if (err)
        return err;
    const struct text texts[] = {{resource->uri, &inner.uri}, {resource->name, &inner.name},
        {resource->description, &inner.description}, {resource->mime_type, &inner.mime_type}};
    struct lp_resource *resources =
        room_for_one(server, offer->resources, offer->resource_count, sizeof *resources);
    if (!resources || copy_texts(server, texts, 4))
        return LIMPET_ENOMEM;
    resources[offer->resource_count++] = inner;
    offer->resources = resources;
    return LIMPET_OK;
}

/* --- prompts and completion --- */

static int check_prompt(const struct lp_offer *offer, const struct limpet_prompt *prompt)
{
    bool is_fine = prompt->name && prompt->name[0] &&
        (!prompt->arguments || lp_seat_is_json(lp_span_str(prompt->arguments), '['));
    for (uint32_t i = 0; i < offer->prompt_count && is_fine; i++)
        if (is_same(offer->prompts[i].name, prompt->name))
            return LIMPET_EEXISTS;
    return is_fine ? LIMPET_OK : LIMPET_ESYNTAX;
}

int limpet_server_add_prompt(struct limpet_server *server, const struct limpet_prompt *prompt)
{
    struct lp_offer *offer = &server->offer;
    struct lp_prompt inner = {0};
    int err = check_prompt(offer, prompt);
    if (!err)
        err = take_handler(server, &prompt->handler, &inner.handler);
    if (err)
        return err;
    const char *arguments = prompt->arguments ? prompt->arguments : "[]";
    const struct text texts[] = {{prompt->name, &inner.name},
        {prompt->description, &inner.description}, {arguments, &inner.arguments}};
    struct lp_prompt *prompts =
        room_for_one(server, offer->prompts, offer->prompt_count, sizeof *prompts);
    if (!prompts || copy_texts(server, texts, 3))
        return LIMPET_ENOMEM;
    prompts[offer->prompt_count++] = inner;
    offer->prompts = prompts;
    return LIMPET_OK;
}

int limpet_server_set_completion(struct limpet_server *server, const struct limpet_handler *handler)
{
    struct lp_handler *inner = lp_seat_take(server, sizeof *inner);
    if (server->offer.complete)
        return LIMPET_EEXISTS;
    int err = inner ? take_handler(server, handler, inner) : LIMPET_ENOMEM;
    if (!err)
        server->offer.complete = inner;
    return err;
}

/* --- changes --- */

void limpet_server_list_changed(struct limpet_server *server, enum limpet_list list)
{
    if (server->offer.lists_change && (unsigned)list <= LIMPET_LIST_PROMPTS)
        lp_server_list_changed(server->server, (enum lp_list_kind)list);
}

void limpet_server_resource_updated(struct limpet_server *server, const char *uri)
{
    if (server->offer.has_subscriptions)
        lp_server_resource_updated(server->server, lp_span_str(uri));
}
