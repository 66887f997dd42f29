/* A liblimpet-server that a test feeds: exchanges whose answers are gathered, and connections whose
 * bytes are. */
#ifndef FED_HARNESS_H
#define FED_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limpet-server.h>

enum { ROOM = 1 << 16, SESSION_ROOM = 80 };

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define INITIALIZE_WITH(capabilities)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":" capabilities                                                \
    ",\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
#define REQUEST(id, method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define CALL(id, tool, arguments)                                                                  \
    REQUEST(id, "tools/call", "{\"name\":\"" tool "\",\"arguments\":" arguments "}")

/* What a host has heard of one exchange. */
struct heard {
    uint64_t exchange;
    int status;
    int64_t body_bytes;
    char session[SESSION_ROOM];
    char replay[SESSION_ROOM];
    char type[SESSION_ROOM];
    char body[ROOM];
    size_t len;
    size_t takes; /* pieces until it takes no more; SIZE_MAX: all */
    unsigned heads, ends;
    bool is_whole;
};

static inline void keep_field(const struct limpet_field *field, const char *name, char *room)
{
    bool is_it = field->name.len == strlen(name);
    for (size_t i = 0; is_it && i < field->name.len; i++)
        is_it = (field->name.ptr[i] | 0x20) == name[i];
    if (is_it)
        snprintf(room, SESSION_ROOM, "%.*s", (int)field->value.len, field->value.ptr);
}

static inline void on_answer_head(void *context, const struct limpet_answer_head *head)
{
    struct heard *heard = context;
    heard->heads++;
    heard->status = head->status;
    heard->body_bytes = head->body_bytes;
    for (size_t i = 0; i < head->field_count; i++) {
        keep_field(&head->fields[i], "mcp-session-id", heard->session);
        keep_field(&head->fields[i], "fly-replay", heard->replay);
        keep_field(&head->fields[i], "content-type", heard->type);
    }
}

static inline bool on_answer_body(void *context, struct limpet_span bytes)
{
    struct heard *heard = context;
    size_t len = heard->len + bytes.len < ROOM ? bytes.len : ROOM - 1 - heard->len;
    memcpy(heard->body + heard->len, bytes.ptr, len);
    heard->len += len;
    heard->body[heard->len] = '\0';
    if (heard->takes != SIZE_MAX)
        heard->takes--;
    return heard->takes > 0;
}

static inline void on_answer_end(void *context, bool is_whole)
{
    struct heard *heard = context;
    heard->ends++;
    heard->is_whole = is_whole;
}

static inline struct limpet_answer answer_to(struct heard *heard)
{
    *heard = (struct heard){.takes = SIZE_MAX};
    return (struct limpet_answer){
        .context = heard, .head = on_answer_head, .body = on_answer_body, .end = on_answer_end};
}

/* A request with the usual fields; `session` NULL: without; `more` may have a name. */
struct asked {
    const char *method;
    const char *session;
    const char *body;
    struct limpet_field more;
};

enum { FIELDS_MAX = 8 };

static inline size_t put_fields(const struct asked *asked, struct limpet_field fields[FIELDS_MAX])
{
    size_t count = 0;
    fields[count++] = (struct limpet_field){limpet_str("Host"), limpet_str("127.0.0.1")};
    fields[count++] = (struct limpet_field){
        limpet_str("Accept"), limpet_str("application/json, text/event-stream")};
    if (asked->body)
        fields[count++] =
            (struct limpet_field){limpet_str("Content-Type"), limpet_str("application/json")};
    if (asked->session)
        fields[count++] =
            (struct limpet_field){limpet_str("Mcp-Session-Id"), limpet_str(asked->session)};
    if (asked->more.name.len)
        fields[count++] = asked->more;
    return count;
}

static inline struct limpet_request request_of(
    const struct asked *asked, struct limpet_field fields[FIELDS_MAX])
{
    return (struct limpet_request){.method = limpet_str(asked->method),
        .target = limpet_str("/mcp"),
        .fields = fields,
        .field_count = put_fields(asked, fields),
        .body = limpet_str(asked->body),
        .is_loopback = true};
}

static inline void ask(struct limpet_server *server, struct asked asked, struct heard *heard)
{
    struct limpet_field fields[FIELDS_MAX];
    struct limpet_request request = request_of(&asked, fields);
    struct limpet_answer answer = answer_to(heard);
    uint64_t exchange = 0;
    assert_int_equal(limpet_exchange_begin(server, &request, &answer, &exchange), LIMPET_OK);
    heard->exchange = exchange;
}

static inline void post(
    struct limpet_server *server, const char *session, const char *body, struct heard *heard)
{
    ask(server, (struct asked){.method = "POST", .session = session, .body = body}, heard);
}

/* Opens a session; its id goes to `session`. */
static inline void open_session(struct limpet_server *server, const char *body, char *session)
{
    struct heard heard;
    post(server, NULL, body, &heard);
    assert_int_equal(heard.status, 200);
    assert_int_equal(heard.ends, 1);
    assert_true(heard.is_whole);
    snprintf(session, SESSION_ROOM, "%s", heard.session);
}

#define HAS(heard, text) assert_non_null(strstr((heard).body, text))
#define LACKS(heard, text) assert_null(strstr((heard).body, text))

#endif
