/* What a POST is, and whether its header agrees with its body (limpet_headers(3)). */
#include <limpet.h>
#include <stdio.h>

#define BODY                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"add\","        \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}"

static struct limpet_field field(const char *name, const char *value)
{
    struct limpet_field f;
    f.name = limpet_str(name);
    f.value = limpet_str(value);
    return f;
}

static void judge(const char *tool)
{
    struct limpet_field fields[3];
    fields[0] = field("MCP-Protocol-Version", "2026-07-28");
    fields[1] = field("Mcp-Method", "tools/call");
    fields[2] = field("Mcp-Name", tool);
    struct limpet_post post;
    post.fields = fields;
    post.field_count = 3;
    post.body = limpet_str(BODY);

    struct limpet_message message;
    struct limpet_ending ending;
    if (limpet_post_judge(&post, &message, &ending))
        printf("%s, %s\n", message.method, message.era == LIMPET_ERA_MODERN ? "modern" : "legacy");
    else
        printf("HTTP %d {\"jsonrpc\":\"2.0\",\"id\":%.*s,"
               "\"error\":{\"code\":%d,\"message\":\"%s\"}}\n",
            ending.http_status, (int)message.id.len, message.id.ptr, ending.jsonrpc_code,
            ending.detail ? ending.detail : ending.sentence);
}

int main(void)
{
    judge("add");
    judge("subtract");
    printf("Connection %s passed on\n",
        limpet_field_is_hop_by_hop(limpet_str("Connection")) ? "is not" : "is");
    return 0;
}
