/* What the server asks of `limpet inspect`: answered from --answer FILE, else on the terminal, else
 * with a plain no. Questions on the terminal come one at a time; a form is asked field by field.
 *
 * The text of a question is the server's: it is shown without control characters, and an address is
 * only shown, never opened. */
#include <stdio.h>
#include <unistd.h>

#include "app/inspect_priv.h"
#include "app/terminal.h"
#include "wire/json.h"
#include "wire/member.h"

enum { ANSWER_MAX = 8 << 20, PARAMS_MAX = 8 << 20, CODE_REJECTED = -1, CODE_NO_METHOD = -32601 };

static bool has_terminal(const struct lp_inspect *in)
{
    return in->is_interactive || isatty(STDIN_FILENO);
}

int lp_inspect_capabilities(const struct lp_inspect *in, struct lp_buf *out)
{
    bool may_ask = has_terminal(in);
    bool elicits =
        may_ask || (in->has_answers && lp_answers_has(&in->answers, LP_SPAN("elicitation/create")));
    bool samples = may_ask ||
        (in->has_answers && lp_answers_has(&in->answers, LP_SPAN("sampling/createMessage")));
    bool has_roots = in->has_answers && lp_answers_has(&in->answers, LP_SPAN("roots/list"));
    return lp_buf_printf(out, "{%s%s%s%s%s}",
        elicits ? "\"elicitation\":{\"form\":{},\"url\":{}}" : "", elicits && samples ? "," : "",
        samples ? "\"sampling\":{}" : "", has_roots && (elicits || samples) ? "," : "",
        has_roots ? "\"roots\":{}" : "");
}

/* A string of the server as text; any other value as it stands. */
static void put_value(struct lp_span token)
{
    struct lp_buf room;
    char *space;
    size_t len = 0;
    lp_buf_init(&room, PARAMS_MAX);
    bool is_string = lp_span_starts(token, LP_SPAN("\"")) &&
        !lp_buf_reserve(&room, token.len, &space) &&
        !lp_json_unescape(token, space, token.len, &len);
    lp_terminal_put(stderr, is_string ? lp_span(space, len) : token);
    lp_buf_release(&room);
}

/* --- one field of a form --- */

struct nth {
    uint32_t wanted;
    uint32_t index;
    struct lp_span key;
    struct lp_span value;
};

static void pick(void *ctx, struct lp_span key, struct lp_span value)
{
    struct nth *n = ctx;
    if (n->index++ != n->wanted)
        return;
    n->key = key;
    n->value = value;
}

static struct nth field_of(const struct lp_inspect *in)
{
    struct lp_span params = lp_buf_span(&in->asks[0].params);
    struct lp_span schema = lp_member(params, LP_SPAN("requestedSchema"));
    struct lp_span properties = lp_member(schema, LP_SPAN("properties"));
    struct nth n = {.wanted = in->ask_step};
    if (lp_span_starts(properties, LP_SPAN("{")))
        lp_members(properties, pick, &n);
    return n;
}

struct wanted {
    struct lp_span key;
    bool is_there;
};

static void compare(void *ctx, struct lp_span element)
{
    struct wanted *w = ctx;
    w->is_there |= lp_span_eq(element, w->key);
}

static bool list_has(struct lp_span list, struct lp_span token)
{
    struct wanted w = {.key = token};
    if (lp_span_starts(list, LP_SPAN("[")))
        lp_elements(list, compare, &w);
    return w.is_there;
}

static bool is_required(const struct lp_inspect *in, struct lp_span key)
{
    struct lp_span params = lp_buf_span(&in->asks[0].params);
    struct lp_span schema = lp_member(params, LP_SPAN("requestedSchema"));
    return list_has(lp_member(schema, LP_SPAN("required")), key);
}

static bool type_is(struct lp_span schema, const char *type)
{
    struct lp_span token = lp_member(schema, LP_SPAN("type"));
    return token.len > 2 && lp_span_eq(lp_span(token.ptr + 1, token.len - 2), lp_span_str(type));
}

static void prompt_field(const struct lp_inspect *in, const struct nth *field)
{
    struct lp_span about = lp_member(field->value, LP_SPAN("description"));
    struct lp_span choices = lp_member(field->value, LP_SPAN("enum"));
    struct lp_span preset = lp_member(field->value, LP_SPAN("default"));
    struct lp_span type = lp_member(field->value, LP_SPAN("type"));
    fputs("  ", stderr);
    put_value(field->key);
    fputs(" (", stderr);
    put_value(choices.len ? choices : type);
    fputs(is_required(in, field->key) ? ", required" : "", stderr);
    fputs(preset.len ? ", default " : "", stderr);
    put_value(preset);
    fputs(") ", stderr);
    put_value(about);
    fputs(": ", stderr);
    fflush(stderr);
}

/* The typed text as JSON of the field's type. False: it is none. */
static bool write_value(struct lp_span schema, struct lp_span line, struct lp_buf *out)
{
    static const char *const YES[] = {"y", "yes", "true"};
    static const char *const NO[] = {"n", "no", "false"};
    struct lp_span choices = lp_member(schema, LP_SPAN("enum"));
    if (type_is(schema, "boolean")) {
        for (size_t i = 0; i < 3; i++) {
            if (lp_span_ieq(line, lp_span_str(YES[i])))
                return !lp_buf_append(out, LP_SPAN("true"));
            if (lp_span_ieq(line, lp_span_str(NO[i])))
                return !lp_buf_append(out, LP_SPAN("false"));
        }
        return false;
    }
    if (type_is(schema, "integer") || type_is(schema, "number") || type_is(schema, "array")) {
        bool fits = type_is(schema, "array") ? lp_span_starts(line, LP_SPAN("["))
                                             : line.len && strchr("-0123456789", line.ptr[0]);
        return fits && lp_json_is_whole(line) && !lp_buf_append(out, line);
    }
    size_t before = out->len;
    if (lp_json_quote(out, line))
        return false;
    struct lp_span quoted = lp_span_from(lp_buf_span(out), before);
    return !choices.len || list_has(choices, quoted);
}

/* --- the question on the screen --- */

static void show_texts(void *ctx, struct lp_span message)
{
    (void)ctx;
    fputs("  ", stderr);
    put_value(lp_member(message, LP_SPAN("role")));
    fputs(": ", stderr);
    lp_terminal_put(stderr, lp_member(message, LP_SPAN("content")));
    fputc('\n', stderr);
}

static bool is_url_mode(struct lp_span params)
{
    return lp_span_eq(lp_member(params, LP_SPAN("mode")), LP_SPAN("\"url\""));
}

static void show_question(struct lp_inspect *in)
{
    struct lp_span params = lp_buf_span(&in->asks[0].params);
    in->ask_step = 0;
    lp_buf_clear(&in->ask_content);
    if (strcmp(in->asks[0].method, "sampling/createMessage") == 0) {
        struct lp_span messages = lp_member(params, LP_SPAN("messages"));
        fputs("The server wants a model's reply to:\n", stderr);
        if (lp_span_starts(messages, LP_SPAN("[")))
            lp_elements(messages, show_texts, NULL);
        fputs("Type the reply (:decline refuses): ", stderr);
    } else {
        fputs("The server asks: ", stderr);
        put_value(lp_member(params, LP_SPAN("message")));
        fputs("\n(:decline and :cancel refuse)\n", stderr);
        struct nth field = field_of(in);
        if (is_url_mode(params)) {
            fputs("It wants you to open ", stderr);
            put_value(lp_member(params, LP_SPAN("url")));
            fputs("\nAgreed? [y/n] ", stderr);
        } else if (field.key.len) {
            prompt_field(in, &field);
        } else {
            fputs("Agreed? [y/n] ", stderr);
        }
    }
    fflush(stderr);
}

static void drop_first(struct lp_inspect *in)
{
    lp_buf_release(&in->asks[0].params);
    in->ask_count--;
    memmove(in->asks, in->asks + 1, in->ask_count * sizeof in->asks[0]);
}

static void show_next(struct lp_inspect *in)
{
    if (in->ask_count)
        show_question(in);
    else
        lp_inspect_next_line(in);
}

static void finish(struct lp_inspect *in, struct lp_span result)
{
    lp_id asked = in->asks[0].asked;
    drop_first(in);
    lp_client_answer(in->client, asked, result);
    show_next(in);
}

static void refuse(struct lp_inspect *in, const char *action)
{
    char result[64];
    lp_id asked = in->asks[0].asked;
    bool is_sampling = strcmp(in->asks[0].method, "sampling/createMessage") == 0;
    snprintf(result, sizeof result, "{\"action\":\"%s\"}", action);
    drop_first(in);
    if (is_sampling)
        lp_client_answer_error(
            in->client, asked, CODE_REJECTED, LP_SPAN("User rejected sampling request"));
    else
        lp_client_answer(in->client, asked, lp_span_str(result));
    show_next(in);
}

static void answer_sampling(struct lp_inspect *in, struct lp_span line)
{
    struct lp_buf result;
    lp_buf_init(&result, ANSWER_MAX);
    int err = lp_buf_append(&result,
        LP_SPAN("{\"role\":\"assistant\",\"model\":\"human\",\"stopReason\":\"endTurn\","
                "\"content\":{\"type\":\"text\",\"text\":"));
    if (!err)
        err = lp_json_quote(&result, line);
    if (!err)
        err = lp_buf_append(&result, LP_SPAN("}}"));
    if (err)
        refuse(in, "cancel");
    else
        finish(in, lp_buf_span(&result));
    lp_buf_release(&result);
}

static int add_field(struct lp_inspect *in, struct lp_span key, struct lp_span value)
{
    int err = in->ask_content.len ? lp_buf_append(&in->ask_content, LP_SPAN(",")) : LP_OK;
    if (!err)
        err = lp_buf_append(&in->ask_content, key);
    if (!err)
        err = lp_buf_append(&in->ask_content, LP_SPAN(":"));
    return err ? err : lp_buf_append(&in->ask_content, value);
}

static void finish_form(struct lp_inspect *in)
{
    struct lp_buf result;
    struct lp_span content = lp_buf_span(&in->ask_content);
    lp_buf_init(&result, ANSWER_MAX + 64);
    int err = lp_buf_append(&result, LP_SPAN("{\"action\":\"accept\",\"content\":{"));
    if (!err)
        err = lp_buf_append(&result, content);
    if (!err)
        err = lp_buf_append(&result, LP_SPAN("}}"));
    if (err)
        refuse(in, "cancel");
    else
        finish(in, lp_buf_span(&result));
    lp_buf_release(&result);
}

static void answer_field(struct lp_inspect *in, struct lp_span line)
{
    struct lp_buf value;
    struct nth field = field_of(in);
    struct lp_span preset = lp_member(field.value, LP_SPAN("default"));
    lp_buf_init(&value, ANSWER_MAX);
    bool is_fine = true;
    int err = LP_OK;
    if (line.len) {
        is_fine = write_value(field.value, line, &value);
        if (is_fine)
            err = add_field(in, field.key, lp_buf_span(&value));
    } else if (preset.len) {
        err = add_field(in, field.key, preset);
    } else {
        is_fine = !is_required(in, field.key);
    }
    lp_buf_release(&value);
    if (err) {
        refuse(in, "cancel");
        return;
    }
    if (is_fine)
        in->ask_step++;
    else
        fputs("  that does not fit; once more\n", stderr);
    field = field_of(in);
    if (field.key.len)
        prompt_field(in, &field);
    else
        finish_form(in);
}

void lp_inspect_answer_line(struct lp_inspect *in, struct lp_span line)
{
    struct lp_span params = lp_buf_span(&in->asks[0].params);
    if (lp_span_eq(line, LP_SPAN(":decline")))
        refuse(in, "decline");
    else if (lp_span_eq(line, LP_SPAN(":cancel")))
        refuse(in, "cancel");
    else if (strcmp(in->asks[0].method, "sampling/createMessage") == 0)
        answer_sampling(in, line);
    else if (!is_url_mode(params) && field_of(in).key.len)
        answer_field(in, line);
    else if (!lp_span_ieq(line, LP_SPAN("y")) && !lp_span_ieq(line, LP_SPAN("yes")))
        refuse(in, "decline");
    else if (!is_url_mode(params))
        finish(in, LP_SPAN("{\"action\":\"accept\",\"content\":{}}"));
    else
        finish(in, LP_SPAN("{\"action\":\"accept\"}"));
}

bool lp_inspect_is_asking(const struct lp_inspect *in)
{
    return in->ask_count > 0;
}

void lp_inspect_no_more_lines(struct lp_inspect *in)
{
    while (in->ask_count)
        refuse(in, "cancel");
}

/* --- what comes --- */

static bool answer_from_file(struct lp_inspect *in, lp_id asked, struct lp_span method)
{
    struct lp_buf result;
    if (!in->has_answers)
        return false;
    lp_buf_init(&result, ANSWER_MAX);
    int err = lp_answers_next(&in->answers, method, &result);
    if (!err) {
        lp_inspect_say("%.*s was answered from --answer", (int)method.len, method.ptr);
        lp_client_answer(in->client, asked, lp_buf_span(&result));
    }
    lp_buf_release(&result);
    return !err;
}

static bool queue(struct lp_inspect *in, lp_id asked, struct lp_span method, struct lp_span params)
{
    if (in->ask_count == LP_INSPECT_ASKS_MAX || method.len >= sizeof in->asks[0].method)
        return false;
    struct lp_inspect_ask *ask = &in->asks[in->ask_count];
    ask->asked = asked;
    memcpy(ask->method, method.ptr, method.len);
    ask->method[method.len] = '\0';
    lp_buf_init(&ask->params, PARAMS_MAX);
    if (lp_buf_append(&ask->params, params))
        return false;
    if (in->ask_count++ > 0)
        return true;
    show_question(in);
    lp_inspect_next_line(in); /* it may be there already */
    return true;
}

void lp_inspect_asked(
    struct lp_inspect *in, lp_id asked, struct lp_span method, struct lp_span params)
{
    bool is_for_people = lp_span_eq(method, LP_SPAN("elicitation/create")) ||
        lp_span_eq(method, LP_SPAN("sampling/createMessage"));
    if (answer_from_file(in, asked, method))
        return;
    bool has_lines = !in->input_has_ended || in->lines.len;
    bool may_ask = is_for_people && has_terminal(in) && has_lines && lp_inspect_open_input(in);
    if (may_ask && queue(in, asked, method, params))
        return;
    lp_inspect_say("the server asked for %.*s, and there is no answer: write one into a file and "
                   "name it with --answer, or run this on a terminal",
        (int)method.len, method.ptr);
    if (lp_span_eq(method, LP_SPAN("elicitation/create")))
        lp_client_answer(in->client, asked, LP_SPAN("{\"action\":\"decline\"}"));
    else
        lp_client_answer_error(in->client, asked, CODE_NO_METHOD, LP_SPAN("Method not found"));
}

void lp_inspect_asked_over(struct lp_inspect *in, lp_id asked)
{
    for (uint32_t i = 0; i < in->ask_count; i++) {
        if (in->asks[i].asked != asked)
            continue;
        lp_buf_release(&in->asks[i].params);
        in->ask_count--;
        memmove(in->asks + i, in->asks + i + 1, (in->ask_count - i) * sizeof in->asks[0]);
        if (i == 0) {
            fputs("\nthe server does not want the answer any more\n", stderr);
            show_next(in);
        }
        return;
    }
}
