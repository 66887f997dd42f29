/* JSON-RPC error bodies of our own (mcp/reply.h; wire document 2.4, 2.5).
 *
 * The id is the request's raw token, byte for byte: a client that waits for 9007199254740993 or "7"
 * must find just that (cases STA-12). Status and headers of the answer are gate's business. */
#include "mcp/reply.h"

#include "wire/json.h"

enum { CODE_INTERNAL = -32603 };

static int append_error(struct lp_buf *out, const struct lp_reply *reply)
{
    const struct lp_reason_info *info = lp_reason_info(reply->reason);
    int code = info->jsonrpc_code ? info->jsonrpc_code : CODE_INTERNAL;
    const char *text = reply->detail ? reply->detail : lp_reason_public(reply->reason);
    int err = lp_buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    if (!err)
        err = lp_json_quote(out, lp_span_str(text));
    if (!err && reply->data.len) {
        err = lp_buf_append(out, LP_SPAN(",\"data\":"));
        if (!err)
            err = lp_buf_append(out, reply->data);
    }
    return err ? err : lp_buf_append(out, LP_SPAN("}}"));
}

int lp_reply_write(struct lp_buf *out, const struct lp_reply *reply)
{
    size_t before = out->len;
    struct lp_span id = reply->id.len ? reply->id : LP_SPAN("null");
    int err = lp_buf_append(out, LP_SPAN("{\"jsonrpc\":\"2.0\",\"id\":"));
    if (!err)
        err = lp_buf_append(out, id);
    if (!err)
        err = append_error(out, reply);
    /* Half an answer must not stay. */
    if (err)
        out->len = before;
    return err;
}

bool lp_reply_wants_plain(struct lp_span user_agent, const struct lp_span *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lp_span_starts(user_agent, prefixes[i]))
            return true;
    return false;
}
