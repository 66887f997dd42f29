/* CORS fields (mcp/cors.h; wire document 10).
 *
 * No Access-Control-Allow-Credentials: a token travels in Authorization, which a page sets itself,
 * and no cookie of the browser's opens a session. */
#include "mcp/cors.h"

#include "base/error.h"

#define METHODS "GET, POST, DELETE, OPTIONS"
#define SENDABLE                                                                                   \
    "content-type, accept, authorization, last-event-id, mcp-session-id, mcp-protocol-version, "   \
    "mcp-method, mcp-name"
#define EXPOSED "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, Last-Event-Id"
#define PARAM_PREFIX "mcp-param-"
/* Two hours: what the most patient browser keeps. */
#define MAX_AGE "7200"

void lp_cors_allow(struct lp_head *head, struct lp_span origin, struct lp_span exposed)
{
    if (!origin.len || origin.len > LP_CORS_ORIGIN_MAX)
        return;
    (void)!lp_head_add(head, LP_FIELD_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    (void)!lp_head_add(head, LP_FIELD_VARY, LP_SPAN("Origin"));
    (void)!lp_head_add(
        head, LP_FIELD_ACCESS_CONTROL_EXPOSE_HEADERS, exposed.len ? exposed : LP_SPAN(EXPOSED));
}

static void add_other(struct lp_head *head, const char *name, struct lp_span value)
{
    (void)!lp_head_add_other(head, lp_span_str(name), value);
}

void lp_cors_preflight(struct lp_head *head, struct lp_span names)
{
    add_other(head, "access-control-allow-methods", LP_SPAN(METHODS));
    add_other(head, "access-control-allow-headers", names);
    add_other(head, "access-control-max-age", LP_SPAN(MAX_AGE));
}

/* Appends one element to a list; one that does not fit stays out. */
static int append(struct lp_buf *out, struct lp_span name)
{
    char *room;
    int err = lp_buf_reserve(out, name.len + 2, &room);
    if (err)
        return err == LP_ELIMIT ? LP_OK : err;
    room[0] = ',';
    room[1] = ' ';
    memcpy(room + 2, name.ptr, name.len);
    lp_buf_commit(out, name.len + 2);
    return LP_OK;
}

static bool is_param(struct lp_span name)
{
    size_t n = sizeof PARAM_PREFIX - 1;
    return name.len > n && lp_span_ieq(lp_span(name.ptr, n), LP_SPAN(PARAM_PREFIX));
}

/* What of `list` is a field's name, new in `out`, and begins with Mcp-Param- if it has to. */
static int append_new(struct lp_buf *out, struct lp_span list, bool must_be_param)
{
    int err = LP_OK;
    while (list.len && !err) {
        struct lp_span name = lp_span_trim(lp_span_split(list, ',', &list));
        bool is_new = lp_field_is_token(name) && !lp_field_list_has(lp_buf_span(out), name);
        if (is_new && (!must_be_param || is_param(name)))
            err = append(out, name);
    }
    return err;
}

int lp_cors_names(struct lp_span asked, struct lp_buf *out)
{
    int err = lp_buf_append(out, LP_SPAN(SENDABLE));
    return err ? err : append_new(out, asked, true);
}

int lp_cors_expose(struct lp_span theirs, struct lp_buf *out)
{
    int err = out->len ? LP_OK : lp_buf_append(out, LP_SPAN(EXPOSED));
    return err ? err : append_new(out, theirs, false);
}
