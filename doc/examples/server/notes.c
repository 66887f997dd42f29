/* Notes as resources: a template of addresses, subscriptions, a tool that writes, a prompt, and
 * completion of its argument (limpet-server-offer(3)). */
#include <limpet-server.h>
#include <stdio.h>

enum { NOTES = 10, NOTE_BYTES = 200 };

struct notes {
    struct limpet_server *server;
    char text[NOTES][NOTE_BYTES]; /* note://0 to note://9 */
};

/* The number that stands for {number} in the address; -1: there is no such note. */
static int number_of(const struct limpet_call *call)
{
    struct limpet_span number = limpet_call_variable(call, "number");
    bool is_one = number.len == 1 && number.ptr[0] >= '0' && number.ptr[0] <= '9';
    return is_one ? number.ptr[0] - '0' : -1;
}

static void read_note(void *context, struct limpet_call *call)
{
    const struct notes *notes = (const struct notes *)context;
    char json[4 * NOTE_BYTES], quoted[3 * NOTE_BYTES];
    struct limpet_span text;
    int number = number_of(call);
    if (number < 0 || !notes->text[number][0]) {
        limpet_call_error(call, -32002, "Resource not found");
        return;
    }
    if (limpet_json_quote(limpet_str(notes->text[number]), quoted, sizeof quoted, &text)) {
        limpet_call_error(call, -32603, "the note is too long");
        return;
    }
    int len = snprintf(json, sizeof json, "{\"contents\":[{\"uri\":\"note://%d\",\"text\":%s}]}",
        number, text.ptr);
    limpet_call_result(call, limpet_bytes(json, (size_t)len));
}

static void write_note(void *context, struct limpet_call *call)
{
    struct notes *notes = (struct notes *)context;
    struct limpet_span arguments = limpet_call_arguments(call), text;
    char room[NOTE_BYTES], uri[] = "note://0";
    int64_t number = 0;
    if (limpet_json_integer(arguments, "number", &number) || number < 0 || number >= NOTES ||
        limpet_json_text(arguments, "text", room, sizeof room, &text)) {
        limpet_call_tool_error(call, limpet_str("say a number from 0 to 9, and a short text"));
        return;
    }
    snprintf(notes->text[number], NOTE_BYTES, "%s", room);
    uri[sizeof uri - 2] = (char)('0' + number);
    limpet_server_resource_updated(notes->server, uri); /* to those that have subscribed */
    limpet_call_text(call, limpet_str(uri));
}

static void summarize(void *context, struct limpet_call *call)
{
    (void)context;
    static const char *const RESULT =
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
        "\"text\":\"Summarize all notes.\"}}]}";
    limpet_call_result(call, limpet_str(RESULT));
}

static void complete(void *context, struct limpet_call *call)
{
    (void)context;
    static const char *const RESULT =
        "{\"completion\":{\"values\":[\"short\",\"long\"],\"hasMore\":false}}";
    limpet_call_result(call, limpet_str(RESULT));
}

static int offer(struct notes *notes)
{
    struct limpet_tool tool = LIMPET_ZERO;
    struct limpet_resource resource = LIMPET_ZERO;
    struct limpet_prompt prompt = LIMPET_ZERO;
    struct limpet_handler completion = LIMPET_ZERO;
    tool.name = "write_note";
    tool.description = "Writes a note";
    tool.handler.run = write_note;
    tool.handler.context = notes;
    resource.uri = "note://{number}";
    resource.name = "note";
    resource.mime_type = "text/plain";
    resource.handler.run = read_note;
    resource.handler.context = notes;
    prompt.name = "summarize";
    prompt.arguments = "[{\"name\":\"length\"}]";
    prompt.handler.run = summarize;
    completion.run = complete;
    int err = limpet_server_add_tool(notes->server, &tool);
    err = err ? err : limpet_server_add_resource(notes->server, &resource);
    err = err ? err : limpet_server_add_prompt(notes->server, &prompt);
    return err ? err : limpet_server_set_completion(notes->server, &completion);
}

int main(int argc, char **argv)
{
    static struct notes notes;
    struct limpet_server_options options = LIMPET_ZERO;
    options.name = "notes";
    options.version = "1.0";
    options.sse_path = "/sse"; /* for clients that know only the transport of 2024-11-05 */
    options.has_subscriptions = true;
    options.replay = LIMPET_REPLAY_PREFER; /* where the platform gives an owner id */
    options.owns_process = true;
    int err = limpet_server_new(NULL, &options, &notes.server);
    err = err ? err : offer(&notes);
    err = err ? err : limpet_server_listen(notes.server, argc > 1 ? argv[1] : "127.0.0.1:3000");
    if (!err)
        fprintf(stderr, "listening on %s\n", limpet_server_url(notes.server));
    err = err ? err : limpet_server_run(notes.server);
    if (err)
        fprintf(stderr, "%s\n", limpet_server_why(notes.server, err));
    limpet_server_free(notes.server);
    return err ? 1 : 0;
}
