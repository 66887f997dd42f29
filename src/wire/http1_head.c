/* A head that has come whole (wire/http1_priv.h; RFC 9112): its start line, its fields, and what
 * they say about the body.
 *
 * What two readers could understand differently is refused: it would end a message here and go on
 * elsewhere. Where the head ends was found by http1.c, line ends and controls were checked there.
 */
#include <stddef.h>

#include "wire/http1_priv.h"

/* --- the fields of a head --- */

/* What the fields say about framing, gathered before anything is decided. */
struct framing {
    bool has_host;
    bool has_length;
    bool has_coding;
    bool says_close;
    bool says_keep_alive;
    bool expects_continue;
    bool expects_other;
    struct lp_span length_text;
    uint64_t length;
};

/* RFC 9112 5.1: no space before the colon, and a name that begins with a blank is a folded line. A
 * name that has a number is a token. */
static int parse_field(struct lp_span line, struct lp_field *ret)
{
    size_t colon = lp_span_find(line, ':');
    struct lp_span name = lp_span(line.ptr, colon);
    enum lp_field_id id = lp_field_lookup(name);
    if (colon == line.len || (id == LP_FIELD_OTHER && !lp_field_is_token(name)))
        return LP_ESYNTAX;
    *ret = (struct lp_field){
        .name = name,
        .value = lp_span_trim(lp_span_from(line, colon + 1)),
        .id = id,
    };
    return LP_OK;
}

/* RFC 9112 6.3 allows "5, 5" to be read as 5; the same line twice is as far as we go. */
static int note_length(struct framing *f, struct lp_span value)
{
    if (lp_span_find(value, ',') < value.len)
        return LP_EAMBIGUOUS;
    if (!lp_span_to_u64(value, &f->length))
        return LP_ESYNTAX;
    if (f->has_length && !lp_span_eq(value, f->length_text))
        return LP_EAMBIGUOUS;
    f->has_length = true;
    f->length_text = value;
    return LP_OK;
}

static int note_coding(struct framing *f, struct lp_span value)
{
    if (f->has_coding || !lp_span_ieq(value, LP_SPAN("chunked")))
        return LP_EAMBIGUOUS;
    f->has_coding = true;
    return LP_OK;
}

static int note_host(struct framing *f)
{
    int err = f->has_host ? LP_EAMBIGUOUS : LP_OK;
    f->has_host = true;
    return err;
}

static void note_connection(struct framing *f, struct lp_span value)
{
    f->says_close |= lp_field_list_has(value, LP_SPAN("close"));
    f->says_keep_alive |= lp_field_list_has(value, LP_SPAN("keep-alive"));
}

static void note_expect(struct framing *f, struct lp_span value)
{
    if (lp_span_ieq(value, LP_SPAN("100-continue")))
        f->expects_continue = true;
    else
        f->expects_other = true;
}

static int note_field(struct framing *f, const struct lp_field *field, bool is_request)
{
    switch (field->id) {
    case LP_FIELD_CONTENT_LENGTH:
        return note_length(f, field->value);
    case LP_FIELD_TRANSFER_ENCODING:
        return note_coding(f, field->value);
    case LP_FIELD_CONNECTION:
        note_connection(f, field->value);
        return LP_OK;
    case LP_FIELD_HOST:
        return is_request ? note_host(f) : LP_OK;
    case LP_FIELD_EXPECT:
        note_expect(f, field->value);
        return LP_OK;
    default:
        return LP_OK;
    }
}

/* --- framing --- */

static int frame_request(const struct framing *f, struct lp_head *head)
{
    if (head->minor == 1 && !f->has_host)
        return LP_ESYNTAX;
    /* RFC 9110 10.1.1: an HTTP/1.0 client would not understand "100 Continue". */
    head->expect_continue = head->minor == 1 && f->expects_continue && !f->expects_other;
    return LP_OK;
}

/* RFC 9112 6.3: answers that end with their head, whatever their fields say. */
static bool has_no_body(const struct lp_head *head)
{
    return head->status < 200 || head->status == 204 || head->status == 304 ||
        head->method == LP_METHOD_HEAD || (head->method == LP_METHOD_CONNECT && head->status < 300);
}

static int frame_answer(const struct framing *f, struct lp_head *head)
{
    bool claims_body = head->body != LP_BODY_NONE;
    if (!has_no_body(head)) {
        if (!f->has_length && !f->has_coding) {
            head->body = LP_BODY_UNTIL_CLOSE;
            head->keep_alive = false;
        }
        return LP_OK;
    }
    head->body = LP_BODY_NONE;
    head->body_bytes = 0;
    if (claims_body && head->status < 200)
        return LP_EAMBIGUOUS;
    /* Body bytes that must not be there would be taken for the next answer. */
    if (claims_body && head->status == 204)
        head->keep_alive = false;
    if (head->method == LP_METHOD_CONNECT && head->status >= 200)
        head->keep_alive = false; /* a tunnel, which is not ours to reuse */
    return LP_OK;
}

static int frame(const struct framing *f, struct lp_head *head)
{
    if (f->has_coding && (f->has_length || head->minor == 0))
        return LP_EAMBIGUOUS;
    head->keep_alive = !f->says_close && (head->minor == 1 || f->says_keep_alive);
    head->body_bytes = f->length;
    if (f->has_coding)
        head->body = LP_BODY_CHUNKED;
    else
        head->body = f->length ? LP_BODY_LENGTH : LP_BODY_NONE;
    return head->is_request ? frame_request(f, head) : frame_answer(f, head);
}

/* --- heads --- */

static int parse_version(struct lp_span text, uint8_t *ret_minor)
{
    bool is_newer = lp_span_eq(text, LP_SPAN("HTTP/1.1"));
    if (!is_newer && !lp_span_eq(text, LP_SPAN("HTTP/1.0")))
        return LP_ESYNTAX;
    *ret_minor = is_newer;
    return LP_OK;
}

/* RFC 9112 3: method SP request-target SP HTTP-version, with exactly these two spaces. */
static int parse_request_line(struct lp_span line, struct lp_head *head)
{
    struct lp_span rest;
    head->method_name = lp_span_split(line, ' ', &rest);
    head->target = lp_span_split(rest, ' ', &rest);
    head->method = lp_method_lookup(head->method_name);
    if (!lp_field_is_token(head->method_name) || !head->target.len)
        return LP_ESYNTAX;
    if (lp_span_find(head->target, '\t') < head->target.len)
        return LP_ESYNTAX;
    return parse_version(rest, &head->minor);
}

/* RFC 9112 4: HTTP-version SP 3DIGIT [SP reason]; many servers leave the last space out too. */
static int parse_status_line(struct lp_span line, struct lp_head *head)
{
    enum { VERSION_LEN = 8, STATUS_END = VERSION_LEN + 4 };
    uint64_t status = 0;
    if (line.len < STATUS_END || line.ptr[VERSION_LEN] != ' ')
        return LP_ESYNTAX;
    if (!lp_span_to_u64(lp_span(line.ptr + VERSION_LEN + 1, 3), &status) || status < 100)
        return LP_ESYNTAX;
    if (line.len > STATUS_END && line.ptr[STATUS_END] != ' ')
        return LP_ESYNTAX;
    head->status = (uint16_t)status;
    head->reason = lp_span_from(line, line.len > STATUS_END ? STATUS_END + 1 : STATUS_END);
    int err = parse_version(lp_span(line.ptr, VERSION_LEN), &head->minor);
    return err ? err : status == 101 ? LP_EUNSUPPORTED : LP_OK;
}

int lp_http1_parse_head(const struct lp_http1 *p, struct lp_span bytes)
{
    struct lp_head *head = p->head;
    struct framing framing = {0};
    uint32_t line_count = head->field_count;
    memset(head, 0, offsetof(struct lp_head, fields));
    head->bytes = bytes;
    head->is_request = p->side == LP_HTTP1_REQUESTS;
    head->method = p->answered_method;
    struct lp_span line = next_text_line(&bytes);
    int err = head->is_request ? parse_request_line(line, head) : parse_status_line(line, head);
    while (!err && head->field_count < line_count) {
        if (head->field_count == LP_HEAD_FIELDS_MAX)
            return LP_ETOO_LONG;
        struct lp_field *field = &head->fields[head->field_count++];
        err = parse_field(field->name, field);
        if (!err)
            err = note_field(&framing, field, head->is_request);
    }
    return err ? err : frame(&framing, head);
}

int lp_http1_parse_field(struct lp_span line, struct lp_field *ret)
{
    return parse_field(line, ret);
}
