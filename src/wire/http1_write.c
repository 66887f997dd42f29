/* Writing HTTP/1.1 heads and chunk lines (wire/http1.h; RFC 9112).
 *
 * The framing fields are written from what the head says about its body, never from fields that
 * came with it: what we send is framed as we understood it. Every byte is checked on the way out,
 * so that no caller can be talked into writing a line end. The head is measured first and then
 * written into room of exactly that size, by the same function: all or nothing. */
#include "wire/http1.h"

#define LP_PHRASES(X)                                                                              \
    X(100, "Continue")                                                                             \
    X(101, "Switching Protocols")                                                                  \
    X(103, "Early Hints")                                                                          \
    X(200, "OK")                                                                                   \
    X(201, "Created")                                                                              \
    X(202, "Accepted")                                                                             \
    X(203, "Non-Authoritative Information")                                                        \
    X(204, "No Content")                                                                           \
    X(205, "Reset Content")                                                                        \
    X(206, "Partial Content")                                                                      \
    X(300, "Multiple Choices")                                                                     \
    X(301, "Moved Permanently")                                                                    \
    X(302, "Found")                                                                                \
    X(303, "See Other")                                                                            \
    X(304, "Not Modified")                                                                         \
    X(307, "Temporary Redirect")                                                                   \
    X(308, "Permanent Redirect")                                                                   \
    X(400, "Bad Request")                                                                          \
    X(401, "Unauthorized")                                                                         \
    X(402, "Payment Required")                                                                     \
    X(403, "Forbidden")                                                                            \
    X(404, "Not Found")                                                                            \
    X(405, "Method Not Allowed")                                                                   \
    X(406, "Not Acceptable")                                                                       \
    X(407, "Proxy Authentication Required")                                                        \
    X(408, "Request Timeout")                                                                      \
    X(409, "Conflict")                                                                             \
    X(410, "Gone")                                                                                 \
    X(411, "Length Required")                                                                      \
    X(412, "Precondition Failed")                                                                  \
    X(413, "Content Too Large")                                                                    \
    X(414, "URI Too Long")                                                                         \
    X(415, "Unsupported Media Type")                                                               \
    X(416, "Range Not Satisfiable")                                                                \
    X(417, "Expectation Failed")                                                                   \
    X(421, "Misdirected Request")                                                                  \
    X(422, "Unprocessable Content")                                                                \
    X(425, "Too Early")                                                                            \
    X(426, "Upgrade Required")                                                                     \
    X(428, "Precondition Required")                                                                \
    X(429, "Too Many Requests")                                                                    \
    X(431, "Request Header Fields Too Large")                                                      \
    X(451, "Unavailable For Legal Reasons")                                                        \
    X(500, "Internal Server Error")                                                                \
    X(501, "Not Implemented")                                                                      \
    X(502, "Bad Gateway")                                                                          \
    X(503, "Service Unavailable")                                                                  \
    X(504, "Gateway Timeout")                                                                      \
    X(505, "HTTP Version Not Supported")                                                           \
    X(508, "Loop Detected")                                                                        \
    X(511, "Network Authentication Required")

struct lp_span lp_http1_phrase(uint16_t status)
{
    switch (status) {
#define X(number, phrase)                                                                          \
    case number:                                                                                   \
        return LP_SPAN(phrase);
        LP_PHRASES(X)
#undef X
    default:
        return LP_SPAN("");
    }
}

/* --- what may be written --- */

static bool may_have_body(const struct lp_head *head)
{
    return head->status >= 200 && head->status != 204 && head->status != 304;
}

/* Whether the absence of a body has to be said (RFC 9110 8.6). */
static bool says_zero(const struct lp_head *head)
{
    if (!head->is_request)
        return may_have_body(head) && head->method != LP_METHOD_HEAD;
    return head->method == LP_METHOD_POST || head->method == LP_METHOD_PUT ||
        head->method == LP_METHOD_PATCH;
}

static bool is_writers_field(enum lp_field_id id)
{
    return id == LP_FIELD_CONTENT_LENGTH || id == LP_FIELD_TRANSFER_ENCODING ||
        id == LP_FIELD_CONNECTION;
}

static bool is_target(struct lp_span s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ' || s.ptr[i] == 0x7F)
            return false;
    return s.len > 0;
}

static bool is_start_line(const struct lp_head *head)
{
    if (head->is_request)
        return lp_field_is_token(head->method_name) && is_target(head->target);
    return head->status >= 100 && head->status <= 999 && lp_field_is_value(head->reason);
}

/* The length of all fields that are not the writer's own; false when one may not be written. */
static bool measure_fields(const struct lp_head *head, size_t *ret_len)
{
    size_t len = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        if (!lp_field_is_value(field->value))
            return false;
        if (field->id == LP_FIELD_OTHER && !lp_field_is_token(field->name))
            return false;
        if (!is_writers_field(field->id))
            len += field->name.len + field->value.len + sizeof ": \r\n" - 1;
    }
    *ret_len = len;
    return true;
}

/* --- writing --- */

enum { FRAMING_MAX = 128 };

/* Where bytes go; there is room for what is known to come. */
struct pen {
    char *at;
};

static void put(struct pen *pen, struct lp_span bytes)
{
    if (bytes.len)
        memcpy(pen->at, bytes.ptr, bytes.len);
    pen->at += bytes.len;
}

static void put_decimal(struct pen *pen, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    put(pen, lp_span(digits + at, sizeof digits - at));
}

#define VERSION "HTTP/1.1"

static size_t start_line_len(const struct lp_head *head)
{
    enum { REQUEST = sizeof "  " VERSION "\r\n" - 1, ANSWER = sizeof VERSION " 200 \r\n" - 1 };
    if (head->is_request)
        return head->method_name.len + head->target.len + REQUEST;
    return head->reason.len + ANSWER;
}

static void put_start_line(struct pen *pen, const struct lp_head *head)
{
    if (head->is_request) {
        put(pen, head->method_name);
        put(pen, LP_SPAN(" "));
        put(pen, head->target);
        put(pen, LP_SPAN(" " VERSION "\r\n"));
        return;
    }
    put(pen, LP_SPAN(VERSION " "));
    put_decimal(pen, head->status);
    put(pen, LP_SPAN(" "));
    put(pen, head->reason);
    put(pen, LP_SPAN("\r\n"));
}

static void put_fields(struct pen *pen, const struct lp_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct lp_field *field = &head->fields[i];
        if (is_writers_field(field->id))
            continue;
        put(pen, field->name);
        put(pen, LP_SPAN(": "));
        put(pen, field->value);
        put(pen, LP_SPAN("\r\n"));
    }
}

/* The fields that are the writer's, and the empty line. Returns the length. */
static size_t write_framing(const struct lp_head *head, char room[FRAMING_MAX])
{
    struct pen pen = {room};
    bool is_counted = head->body == LP_BODY_LENGTH;
    if (is_counted || (head->body == LP_BODY_NONE && says_zero(head))) {
        put(&pen, LP_SPAN("Content-Length: "));
        put_decimal(&pen, is_counted ? head->body_bytes : 0);
        put(&pen, LP_SPAN("\r\n"));
    }
    if (head->body == LP_BODY_CHUNKED)
        put(&pen, LP_SPAN("Transfer-Encoding: chunked\r\n"));
    if (!head->keep_alive || head->body == LP_BODY_UNTIL_CLOSE)
        put(&pen, LP_SPAN("Connection: close\r\n"));
    put(&pen, LP_SPAN("\r\n"));
    return (size_t)(pen.at - room);
}

int lp_http1_write_head(struct lp_buf *out, const struct lp_head *head)
{
    LP_ASSERT(head->field_count <= LP_HEAD_FIELDS_MAX);
    size_t fields_len;
    if (!is_start_line(head) || !measure_fields(head, &fields_len))
        return LP_ESYNTAX;
    char framing[FRAMING_MAX];
    size_t framing_len = write_framing(head, framing);
    size_t len = start_line_len(head) + fields_len + framing_len;
    struct pen pen;
    int err = lp_buf_reserve(out, len, &pen.at);
    if (err)
        return err;
    const char *begin = pen.at;
    put_start_line(&pen, head);
    put_fields(&pen, head);
    put(&pen, lp_span(framing, framing_len));
    LP_ASSERT((size_t)(pen.at - begin) == len);
    lp_buf_commit(out, len);
    return LP_OK;
}

size_t lp_http1_chunk_line(char line[LP_HTTP1_CHUNK_LINE_BYTES], uint64_t n)
{
    LP_ASSERT(n > 0); /* a chunk of no bytes is the last one */
    size_t len = 0;
    int shift = 60;
    while (n >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        line[len++] = "0123456789abcdef"[n >> shift & 15];
    line[len++] = '\r';
    line[len++] = '\n';
    LP_ASSERT(len <= LP_HTTP1_CHUNK_LINE_BYTES);
    return len;
}
