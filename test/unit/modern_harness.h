/* Requests of 2026-07-28, for the tests of the room serve. */
#ifndef LP_TEST_MODERN_HARNESS_H
#define LP_TEST_MODERN_HARNESS_H

#include "serve_harness.h"

#define PREFIX "io.modelcontextprotocol/"
#define MODERN_META(capabilities, more)                                                            \
    "\"_meta\":{\"" PREFIX "protocolVersion\":\"2026-07-28\",\"" PREFIX                            \
    "clientCapabilities\":" capabilities more "}"
#define MODERN_HEAD(method) "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"
#define ACCEPT "Accept: application/json, text/event-stream\r\n"

/* One request: its head's and its body's parts are given apart, so that they can disagree. */
struct modern {
    const char *method;
    const char *name;         /* Mcp-Name; NULL: no such field */
    const char *params;       /* members of params before _meta, with a comma behind; NULL: none */
    const char *capabilities; /* NULL: {} */
    const char *meta;         /* further members of _meta, with a comma before; NULL: none */
    const char *head;         /* further header lines; NULL: none */
    const char *id;           /* NULL: 1 */
};

static inline const char *ask_modern_on(struct client *c, lp_id conn, struct modern m)
{
    static char body[1 << 16];
    static char head[4096];
    const char *before = c->extra;
    snprintf(body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s"
        "\"_meta\":{\"" PREFIX "protocolVersion\":\"2026-07-28\",\"" PREFIX
        "clientCapabilities\":%s%s}}}",
        m.id ? m.id : "1", m.method, m.params ? m.params : "",
        m.capabilities ? m.capabilities : "{}", m.meta ? m.meta : "");
    snprintf(head, sizeof head,
        ACCEPT "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s%s", m.method,
        m.name ? "Mcp-Name: " : "", m.name ? m.name : "", m.name ? "\r\n" : "",
        m.head ? m.head : "");
    c->extra = head;
    const char *text = ask(c, conn, "POST", body);
    c->extra = before;
    return text;
}

static inline const char *ask_modern(struct client *c, struct modern m)
{
    return ask_modern_on(c, dial(c->world), m);
}

/* tools/call without trouble. */
static inline const char *call_modern(struct client *c, const char *tool, const char *arguments)
{
    static char params[1 << 15];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":%s,", tool, arguments);
    return ask_modern(c, (struct modern){.method = "tools/call", .name = tool, .params = params});
}

#endif
