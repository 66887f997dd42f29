/* The ecosystem's file of servers, mcp.json (requirements [C8]): reading one entry, and switching
 * its settings by span editing, so that every other byte of the file stays.
 *
 *   {"mcpServers": {"NAME": {"type": "streamable-http", "url": "https://...", "headers": {...},
 *                            "cookieJar": true, "suppressNotificationStream": true}}}
 *
 * Members that are not known here are nobody's business here: they are neither judged nor touched.
 * Of a member that is there twice the last counts, as everywhere. No I/O: text in, text out. */
#ifndef LP_CONF_MCP_JSON_H
#define LP_CONF_MCP_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum lp_mcp_json_type {
    LP_MCP_JSON_AUTO, /* a url without a type: Streamable HTTP, old SSE where that is not spoken */
    LP_MCP_JSON_STREAMABLE_HTTP,
    LP_MCP_JSON_SSE,
    LP_MCP_JSON_STDIO,
};

struct lp_mcp_json_header {
    struct lp_span name;
    struct lp_span value;
};

struct lp_mcp_json_server {
    enum lp_mcp_json_type type;
    struct lp_span url;     /* empty for STDIO */
    struct lp_span command; /* STDIO only */
    const struct lp_mcp_json_header *headers;
    uint32_t header_count;
    bool cookie_jar;                   /* never for STDIO, whatever the file says */
    bool suppress_notification_stream; /* likewise */
};

/* The value of an environment variable; false when it is not set. */
typedef bool (*lp_mcp_json_lookup_fn)(void *ctx, struct lp_span name, struct lp_span *ret_value);

struct lp_mcp_json_source {
    struct lp_span text;          /* of the file */
    lp_mcp_json_lookup_fn lookup; /* NULL: ${NAME} stays as it is */
    void *lookup_ctx;
    struct lp_arena *arena; /* where decoded strings go; spans into it and into `text` go out */
    struct lp_buf *problem; /* takes one sentence that says what to do, never a header's value */
};

/* Reads the entry `name`. In url, command and header values ${NAME}, ${env:NAME} and
 * ${NAME:-default} are filled in. LP_ESYNTAX: the file is no JSON or is not built like an mcp.json;
 * LP_ENOT_FOUND: no such entry (the sentence tells those there are); LP_ERANGE: the entry cannot be
 * used as it stands; LP_ENOMEM. */
LP_MUST int lp_mcp_json_find(
    const struct lp_mcp_json_source *source, struct lp_span name, struct lp_mcp_json_server *ret);

/* Appends the file with member `key` of the entry `server` set to true, or left out when `value` is
 * false ([C8]: off values are omitted). Every other byte stays; a new member is written as the
 * entry's last one is, blanks and line ends alike. Nothing is appended on failure: LP_ESYNTAX and
 * LP_ENOT_FOUND as above, LP_EUNSUPPORTED for a stdio entry (nothing is offered there, and what it
 * has is kept), LP_ELIMIT, LP_ENOMEM. */
LP_MUST int lp_mcp_json_set_bool(
    struct lp_span text, struct lp_span server, struct lp_span key, bool value, struct lp_buf *out);

/* The settings of a request to change an entry. */
struct lp_mcp_json_settings {
    bool has_cookie_jar;
    bool cookie_jar;
    bool has_suppress_notification_stream;
    bool suppress_notification_stream;
};

/* Reads the object `settings` of such a request. LP_ERANGE when one of the two is no boolean:
 * *ret_sentence is then what to answer with 400, and nothing is to be written. LP_ESYNTAX (with a
 * sentence too) when it is no object. */
LP_MUST int lp_mcp_json_read_settings(
    struct lp_span json, struct lp_mcp_json_settings *ret, const char **ret_sentence);

#endif
