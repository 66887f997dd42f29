/* What the user said of a server (call/target.h): checked when it is said, so that nothing that may
 * not be sent gets as far as a request. */
#include "call/target.h"

#include "wire/field.h"

void lp_target_init(struct lp_target *target)
{
    *target = (struct lp_target){.timeout_ms = LP_TARGET_TIMEOUT_MS};
    lp_arena_init(&target->text, LP_TARGET_TEXT_MAX);
}

void lp_target_fini(struct lp_target *target)
{
    lp_arena_fini(&target->text);
}

int lp_target_set_url(struct lp_target *target, struct lp_span url)
{
    struct lp_uri uri;
    struct lp_span kept;
    url.len = lp_span_find(url, '#');
    int err = lp_uri_parse(url, &uri);
    if (err || !uri.has_authority || !uri.host.len || uri.userinfo.ptr)
        return err == LP_ETOO_LONG ? err : LP_ESYNTAX;
    bool is_tls = lp_span_ieq(uri.scheme, LP_SPAN("https"));
    if (!is_tls && !lp_span_ieq(uri.scheme, LP_SPAN("http")))
        return LP_EUNSUPPORTED;
    err = lp_arena_dup(&target->text, url, &kept);
    if (err)
        return err;
    err = lp_uri_parse(kept, &target->uri);
    LP_ASSERT(!err);
    target->url = kept;
    target->port = lp_uri_port(&target->uri);
    target->is_tls = is_tls;
    return LP_OK;
}

/* Set by the program itself, for every request as it has to be. */
static bool is_reserved(struct lp_span name)
{
    switch (lp_field_lookup(name)) {
    case LP_FIELD_HOST:
    case LP_FIELD_CONTENT_LENGTH:
    case LP_FIELD_EXPECT:
    case LP_FIELD_ACCEPT:
    case LP_FIELD_CONTENT_TYPE:
    case LP_FIELD_LAST_EVENT_ID:
    case LP_FIELD_MCP_SESSION_ID:
    case LP_FIELD_MCP_PROTOCOL_VERSION:
    case LP_FIELD_MCP_METHOD:
    case LP_FIELD_MCP_NAME:
        return true;
    default:
        return lp_field_is_hop_by_hop(lp_field_lookup(name));
    }
}

static struct lp_target_field *find_field(struct lp_target *target, struct lp_span name)
{
    for (uint32_t i = 0; i < target->field_count; i++)
        if (lp_span_ieq(target->fields[i].name, name))
            return &target->fields[i];
    return NULL;
}

int lp_target_set_field(struct lp_target *target, struct lp_span name, struct lp_span value)
{
    struct lp_target_field kept;
    value = lp_span_trim(value);
    if (!lp_field_is_token(name) || !lp_field_is_value(value) || is_reserved(name))
        return LP_ESYNTAX;
    struct lp_target_field *place = find_field(target, name);
    if (!place && target->field_count == LP_TARGET_FIELDS_MAX)
        return LP_ELIMIT;
    int err = lp_arena_dup(&target->text, name, &kept.name);
    if (!err)
        err = lp_arena_dup(&target->text, value, &kept.value);
    if (err)
        return err;
    if (!place)
        place = &target->fields[target->field_count++];
    *place = kept;
    return LP_OK;
}

int lp_target_set_field_line(struct lp_target *target, struct lp_span line)
{
    struct lp_span value;
    struct lp_span name = lp_span_split(line, ':', &value);
    return value.ptr ? lp_target_set_field(target, lp_span_trim(name), value) : LP_ESYNTAX;
}

static struct lp_span strip_token(struct lp_span token)
{
    static const char BLANKS[] = " \t\r\n";
    while (token.len && strchr(BLANKS, token.ptr[token.len - 1]))
        token.len--;
    while (token.len && strchr(BLANKS, token.ptr[0]))
        token = lp_span_from(token, 1);
    return token;
}

int lp_target_set_bearer(struct lp_target *target, struct lp_span token)
{
    struct lp_buf value;
    token = strip_token(token);
    if (!token.len || lp_span_find(token, ' ') < token.len || lp_span_find(token, '\t') < token.len)
        return LP_ESYNTAX;
    lp_buf_init(&value, LP_TARGET_TEXT_MAX);
    int err = lp_buf_append(&value, LP_SPAN("Bearer "));
    if (!err)
        err = lp_buf_append(&value, token);
    if (!err)
        err = lp_target_set_field(target, LP_SPAN("Authorization"), lp_buf_span(&value));
    lp_buf_release(&value);
    return err;
}

bool lp_target_is_own(const struct lp_target *target, const struct lp_uri *uri)
{
    return target->url.len && lp_uri_same_origin(&target->uri, uri);
}

struct lp_span lp_target_origin(const struct lp_target *target)
{
    size_t begin = target->uri.scheme.len + 3;
    size_t slash = lp_span_find(lp_span_from(target->url, begin), '/');
    size_t query = lp_span_find(lp_span_from(target->url, begin), '?');
    return lp_span(target->url.ptr, begin + (slash < query ? slash : query));
}
