/* Rules for other paths (gate/pass.h). The path goes to the replica byte for byte; what is read of
 * it here only decides whether it does. */
#include "gate/pass.h"

/* Without the slash at its end; "/" becomes empty. */
static struct lp_span trim_slash(struct lp_span path)
{
    if (lp_span_ends(path, LP_SPAN("/")))
        path.len--;
    return path;
}

/* Segment by segment: "/a" has "/a" and "/a/b", not "/ab". */
static bool has(struct lp_span rule, struct lp_span path)
{
    return lp_span_starts(path, rule) &&
        (path.len == rule.len || lp_span_ends(rule, LP_SPAN("/")) || path.ptr[rule.len] == '/');
}

const struct lp_conf_pass *lp_pass_find(const struct lp_conf_server *conf, struct lp_span path)
{
    const struct lp_conf_pass *best = NULL;
    for (uint32_t i = 0; i < conf->pass_count; i++) {
        const struct lp_conf_pass *rule = &conf->passes[i];
        if (has(rule->path, path) && (!best || rule->path.len > best->path.len))
            best = rule;
    }
    return best;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at the front, decoded; -1 when it may be read in two ways. */
static int next_byte(struct lp_span *rest)
{
    int byte = (unsigned char)rest->ptr[0];
    if (byte != '%') {
        *rest = lp_span_from(*rest, 1);
        return byte < ' ' || byte == '\\' || byte == 0x7F ? -1 : byte;
    }
    int high = rest->len > 2 ? hex(rest->ptr[1]) : -1;
    int low = rest->len > 2 ? hex(rest->ptr[2]) : -1;
    if (high < 0 || low < 0)
        return -1;
    byte = 16 * high + low;
    *rest = lp_span_from(*rest, 3);
    bool is_odd = byte < ' ' || byte == 0x7F || byte == '/' || byte == '\\' || byte == '%';
    return is_odd ? -1 : byte;
}

/* Reads up to the next slash; false when the segment is refused. The last one may be empty. */
static bool read_segment(struct lp_span *rest, char *at, size_t *ret_len)
{
    size_t len = 0;
    bool is_parameter = false;
    while (rest->len && rest->ptr[0] != '/') {
        int byte = next_byte(rest);
        if (byte < 0)
            return false;
        is_parameter |= byte == ';';
        if (!is_parameter)
            at[len++] = (char)byte;
    }
    struct lp_span text = lp_span(at, len);
    *ret_len = len;
    return (len || !rest->len) && !lp_span_eq(text, LP_SPAN(".")) &&
        !lp_span_eq(text, LP_SPAN(".."));
}

bool lp_pass_read(struct lp_span path, char *room, struct lp_span *ret)
{
    size_t len = 0, segment;
    LP_ASSERT(lp_span_starts(path, LP_SPAN("/")));
    while (path.len) {
        room[len++] = '/';
        path = lp_span_from(path, 1);
        if (!read_segment(&path, room + len, &segment))
            return false;
        len += segment;
    }
    *ret = trim_slash(lp_span(room, len));
    return true;
}

static bool lies_in(struct lp_span path, struct lp_span place)
{
    return path.len >= place.len && lp_span_ieq(lp_span(path.ptr, place.len), place) &&
        (path.len == place.len || path.ptr[place.len] == '/');
}

bool lp_pass_leads_to(struct lp_span read, const struct lp_conf_pass *rule, struct lp_span mcp_path)
{
    struct lp_span place = trim_slash(mcp_path), own = trim_slash(rule->path);
    bool is_meant = own.len > place.len && lies_in(own, place);
    return mcp_path.len && lies_in(read, place) && !is_meant;
}
