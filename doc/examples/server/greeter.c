/* An MCP server with one tool (limpet-server(3)). */
#include <limpet-server.h>
#include <stdio.h>

static void greet(void *context, struct limpet_call *call)
{
    (void)context;
    char name[64], text[96];
    struct limpet_span found;
    if (limpet_json_text(limpet_call_arguments(call), "name", name, sizeof name, &found)) {
        limpet_call_tool_error(call, limpet_str("greet needs a name of at most 63 bytes"));
        return;
    }
    snprintf(text, sizeof text, "Hello, %s!", name);
    limpet_call_text(call, limpet_str(text));
}

int main(int argc, char **argv)
{
    struct limpet_server_options options = LIMPET_ZERO;
    struct limpet_tool tool = LIMPET_ZERO;
    struct limpet_server *server = NULL;
    options.name = "greeter";
    options.version = "1.0";
    options.owns_process = true;
    tool.name = "greet";
    tool.description = "Says hello";
    tool.input_schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}";
    tool.handler.run = greet;
    int err = limpet_server_new(NULL, &options, &server);
    err = err ? err : limpet_server_add_tool(server, &tool);
    err = err ? err : limpet_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:3000");
    if (!err)
        fprintf(stderr, "listening on %s\n", limpet_server_url(server));
    err = err ? err : limpet_server_run(server);
    if (err)
        fprintf(stderr, "%s\n", limpet_server_why(server, err));
    limpet_server_free(server);
    return err ? 1 : 0;
}
