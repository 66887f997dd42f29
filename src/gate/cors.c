/* Pages of other origins, where the server names which may call (key `origins`; requirements [G12],
 * cases HDR-02, HDR-04, HDR-09): their preflights are answered here, before anybody is asked for
 * credentials, and every answer that they get says that they may read it, whoever made it. What the
 * replica thinks of origins does not count: it is not told of any.
 *
 * Without the key nothing is done here: OPTIONS goes to a replica, and its fields pass. */
#include "mcp/cors.h"

#include "base/error.h"
#include "gate/engine_priv.h"

void lp_page_admitted(struct lp_exchange *x)
{
    struct lp_span origin = lp_kept_value(&x->request, LP_FIELD_ORIGIN);
    x->has_page = x->server->conf->origin_count && origin.len;
}

bool lp_page_is_preflight(const struct lp_exchange *x)
{
    return x->has_page && x->request.method == LP_METHOD_OPTIONS;
}

bool lp_page_hides(const struct lp_exchange *x, enum lp_field_id id)
{
    return x->has_page &&
        (id == LP_FIELD_ACCESS_CONTROL_ALLOW_ORIGIN ||
            id == LP_FIELD_ACCESS_CONTROL_ALLOW_CREDENTIALS ||
            id == LP_FIELD_ACCESS_CONTROL_EXPOSE_HEADERS);
}

/* The replica's lists, and ours before them; empty, which stands for ours alone, without memory. */
static struct lp_span exposed(struct lp_exchange *x, const struct lp_kept_head *from)
{
    struct lp_buf list;
    struct lp_span all = LP_SPAN("");
    int err = LP_OK;
    lp_buf_init(&list, LP_CORS_LIST_MAX);
    for (uint32_t i = 0; i < from->field_count && !err; i++)
        if (from->fields[i].id == LP_FIELD_ACCESS_CONTROL_EXPOSE_HEADERS)
            err = lp_cors_expose(from->fields[i].value, &list);
    if (!err && list.len && lp_arena_dup(&x->arena, lp_buf_span(&list), &all))
        all = LP_SPAN("");
    lp_buf_release(&list);
    return all;
}

void lp_page_add_fields(
    struct lp_exchange *x, const struct lp_kept_head *from, struct lp_head *head)
{
    if (x->has_page)
        lp_cors_allow(head, lp_kept_value(&x->request, LP_FIELD_ORIGIN),
            from ? exposed(x, from) : LP_SPAN(""));
}

int lp_page_add_preflight(struct lp_exchange *x, struct lp_buf *names, struct lp_head *head)
{
    struct lp_span asked = lp_kept_value(&x->request, LP_FIELD_ACCESS_CONTROL_REQUEST_HEADERS);
    int err = lp_cors_names(asked, names);
    if (!err)
        lp_cors_preflight(head, lp_buf_span(names));
    return err;
}
