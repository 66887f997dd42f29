/* A call in progress as limpet-server.h has it: serve/job.h by other names, with what serve asserts
 * of its handlers checked. */
#include "serve/job.h"

#include "libserver/libserver.h"

_Static_assert((int)LIMPET_LEVEL_DEBUG == LP_LEVEL_DEBUG, "");
_Static_assert((int)LIMPET_LEVEL_EMERGENCY == LP_LEVEL_EMERGENCY, "");

enum { INTERNAL = -32603 };

static struct lp_job *inner(struct limpet_call *call)
{
    return (struct lp_job *)call;
}

static const struct lp_job *peek(const struct limpet_call *call)
{
    return (const struct lp_job *)call;
}

/* --- what was asked --- */

struct limpet_span limpet_call_params(const struct limpet_call *call)
{
    return lp_lib_out(lp_job_params(peek(call)));
}

struct limpet_span limpet_call_arguments(const struct limpet_call *call)
{
    return lp_lib_out(lp_job_arguments(peek(call)));
}

struct limpet_span limpet_call_uri(const struct limpet_call *call)
{
    return lp_lib_out(lp_job_uri(peek(call)));
}

struct limpet_span limpet_call_variable(const struct limpet_call *call, const char *name)
{
    struct lp_span value = LP_SPAN("");
    if (lp_job_uri(peek(call)).len) /* only a resource has one */
        value = lp_job_variable(peek(call), name);
    return lp_lib_out(value);
}

void limpet_call_set_data(struct limpet_call *call, void *data)
{
    lp_job_set_state(inner(call), data);
}

void *limpet_call_data(const struct limpet_call *call)
{
    return lp_job_state(peek(call));
}

uint64_t limpet_call_id(const struct limpet_call *call)
{
    return lp_job_id(peek(call));
}

struct limpet_call *limpet_server_call(const struct limpet_server *server, uint64_t id)
{
    return (struct limpet_call *)lp_server_job(server->server, id);
}

/* --- while it runs --- */

void limpet_call_progress(struct limpet_call *call, uint64_t progress, uint64_t total)
{
    lp_job_progress(inner(call), progress, total);
}

/* `text` as a JSON string; false: there is no such level, or no room. */
static bool quote(enum limpet_level level, struct limpet_span text, struct lp_out *out)
{
    lp_out_init(out);
    lp_out_quote(out, lp_lib_in(text));
    return !out->failed && (unsigned)level <= LIMPET_LEVEL_EMERGENCY;
}

void limpet_call_log(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span text)
{
    struct lp_out out;
    if (quote(level, text, &out))
        lp_job_log(inner(call), (enum lp_level)level, logger, lp_out_span(&out));
    lp_out_release(&out);
}

bool limpet_call_log_session(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span text)
{
    struct lp_out out;
    bool is_sent = quote(level, text, &out) &&
        lp_job_log_session(inner(call), (enum lp_level)level, logger, lp_out_span(&out));
    lp_out_release(&out);
    return is_sent;
}

bool limpet_call_log_session_json(
    struct limpet_call *call, enum limpet_level level, const char *logger, struct limpet_span json)
{
    bool is_fine = (unsigned)level <= LIMPET_LEVEL_EMERGENCY && lp_seat_is_json(lp_lib_in(json), 0);
    return is_fine &&
        lp_job_log_session(inner(call), (enum lp_level)level, logger, lp_lib_in(json));
}

int limpet_call_wait(struct limpet_call *call, uint32_t ms)
{
    if (!lp_job_may_wait(peek(call)))
        return LIMPET_EUNSUPPORTED;
    return lp_job_wait(inner(call), ms * 1000ull);
}

int limpet_call_ask(
    struct limpet_call *call, const char *method, struct limpet_span params, uint32_t timeout_ms)
{
    struct lp_span json = lp_lib_in(params);
    if (!lp_job_may_wait(peek(call)))
        return LIMPET_EUNSUPPORTED;
    if (json.len && !lp_seat_is_json(json, '{'))
        return LIMPET_ESYNTAX;
    return lp_job_ask(inner(call), method, json, timeout_ms * 1000ull);
}

static bool is_key(struct lp_span text)
{
    bool is_fine = text.len && text.len <= LIMPET_QUESTION_KEY_MAX;
    for (size_t i = 0; i < text.len && is_fine; i++) {
        char c = text.ptr[i];
        is_fine =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    return is_fine;
}

/* Whether the last of these can be asked, its key no earlier one's. */
static bool is_question(const struct limpet_question *questions, size_t last)
{
    const struct limpet_question *one = &questions[last];
    struct lp_span params = lp_lib_in(one->params);
    bool is_fine = is_key(lp_span_str(one->key)) && one->method &&
        (!params.len || lp_seat_is_json(params, '{'));
    for (size_t i = 0; i < last && is_fine; i++)
        is_fine = strcmp(questions[i].key, one->key) != 0;
    return is_fine;
}

int limpet_call_ask_all(struct limpet_call *call, const struct limpet_question *questions,
    size_t count, uint32_t timeout_ms)
{
    struct lp_question all[LIMPET_QUESTIONS_MAX];
    if (!lp_job_may_wait(peek(call)))
        return LIMPET_EUNSUPPORTED;
    if (count > LIMPET_QUESTIONS_MAX)
        return LIMPET_ELIMIT;
    for (size_t i = 0; i < count; i++) {
        if (!is_question(questions, i))
            return LIMPET_ESYNTAX;
        all[i] = (struct lp_question){
            questions[i].key, questions[i].method, lp_lib_in(questions[i].params)};
    }
    return count ? lp_job_ask_all(inner(call), all, (uint32_t)count, timeout_ms * 1000ull)
                 : LIMPET_ESYNTAX;
}

int limpet_call_task(struct limpet_call *call, uint32_t ttl_ms)
{
    return ttl_ms ? lp_job_task(inner(call), ttl_ms) : LIMPET_ERANGE;
}

int limpet_call_state_get(struct limpet_call *call)
{
    return lp_job_may_wait(peek(call)) ? lp_job_state_get(inner(call)) : LIMPET_EUNSUPPORTED;
}

int limpet_call_state_set(struct limpet_call *call, uint64_t revision, struct limpet_span value)
{
    if (!lp_job_may_wait(peek(call)))
        return LIMPET_EUNSUPPORTED;
    return lp_job_state_set(inner(call), revision, lp_lib_in(value));
}

void limpet_call_poll(struct limpet_call *call)
{
    lp_job_poll(inner(call));
}

/* --- how it ends --- */

void limpet_call_text(struct limpet_call *call, struct limpet_span text)
{
    lp_job_text(inner(call), lp_lib_in(text));
}

void limpet_call_tool_error(struct limpet_call *call, struct limpet_span text)
{
    struct lp_out out;
    lp_out_init(&out);
    lp_out_str(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
    lp_out_quote(&out, lp_lib_in(text));
    lp_out_str(&out, "}],\"isError\":true}");
    lp_job_finish(inner(call), &out);
}

void limpet_call_result(struct limpet_call *call, struct limpet_span json)
{
    if (lp_seat_is_json(lp_lib_in(json), '{'))
        lp_job_result(inner(call), lp_lib_in(json));
    else
        lp_job_error(inner(call), INTERNAL, "the program's result is no JSON object");
}

void limpet_call_lacks(struct limpet_call *call, const char *capabilities)
{
    bool is_fine = lp_seat_is_json(lp_span_str(capabilities), '{');
    lp_job_lacks(inner(call), is_fine ? capabilities : "{}");
}

void limpet_call_error(struct limpet_call *call, int code, const char *message)
{
    lp_job_error(inner(call), code, message ? message : "");
}
