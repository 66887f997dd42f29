/* The probe's object for programs (call/probe_report.h). Members that are not known are null. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "call/probe_report.h"
#include "wire/json.h"

enum { PRINTF_MAX = 512, FIX_MAX = 16384 };

struct object {
    struct lp_buf *out;
    int error;
    bool needs_comma;
};

static void put(struct object *o, struct lp_span text)
{
    if (!o->error)
        o->error = lp_buf_append(o->out, text);
}

static void raw(struct object *o, const char *fmt, ...) LP_PRINTF(2, 3);
static void raw(struct object *o, const char *fmt, ...)
{
    char text[PRINTF_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    LP_ASSERT(n >= 0 && n < PRINTF_MAX);
    put(o, lp_span(text, (size_t)n));
}

static void key(struct object *o, const char *name)
{
    raw(o, "%s\"%s\":", o->needs_comma ? "," : "", name);
    o->needs_comma = true;
}

static void begin(struct object *o, const char *name, const char *bracket)
{
    if (name)
        key(o, name);
    else
        put(o, o->needs_comma ? LP_SPAN(",") : LP_SPAN(""));
    put(o, lp_span_str(bracket));
    o->needs_comma = false;
}

static void end(struct object *o, const char *bracket)
{
    put(o, lp_span_str(bracket));
    o->needs_comma = true;
}

static void quote(struct object *o, struct lp_span text)
{
    if (!o->error)
        o->error = lp_json_quote(o->out, text);
}

static void text(struct object *o, const char *name, const char *value)
{
    key(o, name);
    if (value)
        quote(o, lp_span_str(value));
    else
        put(o, LP_SPAN("null"));
}

static void number(struct object *o, const char *name, uint32_t value)
{
    key(o, name);
    raw(o, "%u", value);
}

static void boolean(struct object *o, const char *name, bool value)
{
    key(o, name);
    put(o, value ? LP_SPAN("true") : LP_SPAN("false"));
}

static void number_or_null(struct object *o, const char *name, double value)
{
    key(o, name);
    if (value > 0)
        raw(o, "%.2f", value);
    else
        put(o, LP_SPAN("null"));
}

static void element(struct object *o, const char *value)
{
    put(o, o->needs_comma ? LP_SPAN(",") : LP_SPAN(""));
    quote(o, lp_span_str(value));
    o->needs_comma = true;
}

/* --- parts --- */

/* The name of a situation as programs see it: "session-hash". */
static const char *slug(enum lp_situation situation, char room[LP_SEEN_TEXT_MAX])
{
    lp_seen_text(room, LP_SEEN_TEXT_MAX, lp_span_str(lp_situation_info(situation)->name));
    for (char *p = room; *p; p++)
        *p = (char)(*p == '_' ? '-' : *p);
    return room;
}

static void put_row(struct object *o, const struct lp_seen *seen)
{
    char marks[LP_SEEN_CALLS_MAX + 1] = "";
    for (uint32_t i = 0; i < seen->row_count && !marks[0]; i++) {
        const struct lp_seen_row *row = &seen->rows[i];
        for (uint32_t k = 0; row->arm == LP_ARM_FRESH && k < row->count; k++)
            marks[k] = row->marks[k] == LP_MARK_OK ? 'O' : 'x';
    }
    text(o, "row", marks);
}

static void put_rates(struct object *o, const struct lp_verdict *v)
{
    static const char *const NAMES[LP_ARM_COUNT] = {"fresh", "kept", "cookie", "elsewhere"};
    begin(o, "arms", "{");
    for (uint32_t i = 0; i < LP_ARM_COUNT; i++) {
        const struct lp_rate *rate = &v->rates[i];
        begin(o, NAMES[i], "{");
        number(o, "ok", rate->ok);
        number(o, "lost", rate->lost);
        number(o, "faults", rate->faults);
        number(o, "sessions", rate->rows);
        end(o, "}");
    }
    end(o, "}");
}

static void put_tally(struct object *o, const char *name, const struct lp_seen_tally *tally)
{
    begin(o, name, "{");
    number(o, "asked", tally->asked);
    number(o, "fine", tally->fine);
    number(o, "not_offered", tally->refused);
    number(o, "lost", tally->lost);
    number(o, "odd", tally->odd);
    number(o, "faults", tally->faults);
    end(o, "}");
}

static void status_or_null(struct object *o, const char *name, const struct lp_seen_answer *answer)
{
    key(o, name);
    if (answer->status)
        raw(o, "%u", answer->status);
    else
        put(o, LP_SPAN("null"));
}

static void put_answers(struct object *o, const struct lp_seen *seen)
{
    struct lp_report_row rows[LP_REPORT_ROWS];
    lp_report_rows(seen, rows);
    begin(o, "answers", "[");
    for (uint32_t i = 0; i < LP_REPORT_ROWS; i++) {
        begin(o, NULL, "{");
        text(o, "question", rows[i].name);
        text(o, "expected", rows[i].expected);
        status_or_null(o, "status", rows[i].answer);
        key(o, "right");
        if (!rows[i].answer->is_asked)
            put(o, LP_SPAN("null"));
        else
            put(o, rows[i].is_right ? LP_SPAN("true") : LP_SPAN("false"));
        end(o, "}");
    }
    end(o, "]");
}

static void put_list(
    struct object *o, const char *name, const char (*list)[LP_SEEN_TEXT_MAX], uint32_t count)
{
    begin(o, name, "[");
    for (uint32_t i = 0; i < count; i++)
        element(o, list[i]);
    end(o, "]");
}

static void put_cookie(struct object *o, const struct lp_report *r)
{
    bool holds = r->verdict->affinity == LP_AFFINITY_COOKIE;
    begin(o, "cookie", "{");
    put_list(o, "offered", r->seen->cookies, r->seen->cookie_count);
    text(o, "name", holds ? lp_report_cookie(r->seen) : NULL);
    end(o, "}");
}

static void put_stream(struct object *o, const struct lp_report *r)
{
    const struct lp_seen_stream *stream = &r->seen->stream;
    begin(o, "stream", "{");
    boolean(o, "is_buffered", r->verdict->holds[LP_SITUATION_buffered]);
    number(o, "without_head", stream->no_head);
    number(o, "closed_at_once", stream->closed_at_once);
    number(o, "head_ms", stream->head_ms);
    number(o, "post_ms", stream->post_ms);
    end(o, "}");
}

static void put_rest(struct object *o, const struct lp_seen_idle *idle)
{
    if (!idle->watched_s) {
        key(o, "rest");
        put(o, LP_SPAN("null"));
        return;
    }
    begin(o, "rest", "{");
    number(o, "watched_s", idle->watched_s);
    begin(o, "streams_cut_ms", "[");
    for (uint32_t i = 0; i < idle->tries; i++) {
        raw(o, "%s", i ? "," : "");
        if (idle->cut_ms[i])
            raw(o, "%u", idle->cut_ms[i]);
        else
            put(o, LP_SPAN("null"));
    }
    end(o, "]");
    number(o, "heard_every_ms", idle->heard_ms);
    number(o, "session_alive_s", idle->alive_s);
    number_or_null(o, "session_lost_s", idle->dead_s);
    end(o, "}");
}

static void put_steps(struct object *o, const struct lp_seen_steps *steps)
{
    if (!steps->asked) {
        key(o, "two_step");
        put(o, LP_SPAN("null"));
        return;
    }
    begin(o, "two_step", "{");
    number(o, "begun", steps->begun);
    number(o, "fine", steps->fine);
    number(o, "lost", steps->lost);
    number(o, "faults", steps->faults);
    text(o, "words", steps->words[0] ? steps->words : NULL);
    end(o, "}");
}

static void put_one_fix(
    struct object *o, const char *name, const struct lp_report *r, struct lp_fix fix)
{
    struct lp_buf words;
    key(o, name);
    if (!fix.words) {
        put(o, LP_SPAN("null"));
        return;
    }
    lp_buf_init(&words, FIX_MAX);
    int err = lp_buf_printf(&words, "%s%s", fix.words, fix.lines ? ":\n" : "");
    if (!err)
        err = lp_fix_lines(fix, r->url, &words);
    if (!o->error)
        o->error = err;
    quote(o, lp_buf_span(&words));
    lp_buf_release(&words);
}

static void put_fixes(struct object *o, const struct lp_report *r)
{
    enum lp_remedy remedy = r->verdict->remedy;
    enum lp_front first = lp_fix_front(r->verdict, r->seen);
    put_one_fix(o, "fix", r, lp_fix_of(remedy, first));
    text(o, "fix_for", lp_fix_of(remedy, first).words ? lp_front_name(first) : NULL);
    begin(o, "fixes", "{");
    for (uint32_t i = 0; i < LP_FRONT_COUNT; i++)
        if (lp_fix_of(remedy, (enum lp_front)i).words)
            put_one_fix(o, lp_front_name((enum lp_front)i), r, lp_fix_of(remedy, (enum lp_front)i));
    end(o, "}");
}

static void put_verdict(struct object *o, const struct lp_report *r)
{
    char name[LP_SEEN_TEXT_MAX];
    const struct lp_verdict *v = r->verdict;
    const struct lp_situation_info *info = lp_situation_info(v->situation);
    text(o, "verdict", lp_judgement_name(v->judgement));
    text(o, "situation", slug(v->situation, name));
    text(o, "sentence", info->headline);
    text(o, "affinity", lp_affinity_name(v->affinity));
    begin(o, "findings", "[");
    for (uint32_t i = 0; i < LP_SITUATION_too_little; i++)
        if (v->holds[i] && r->seen->is_open)
            element(o, slug((enum lp_situation)i, name));
    end(o, "]");
    put_row(o, r->seen);
    const struct lp_rate *fresh = &v->rates[LP_ARM_FRESH];
    number(o, "ok", fresh->ok);
    number(o, "calls", fresh->ok + fresh->lost + fresh->faults);
    begin(o, "replicas", "{");
    number_or_null(o, "estimate", v->replicas.value);
    number_or_null(o, "low", v->replicas.low);
    number_or_null(o, "high", v->replicas.high);
    end(o, "}");
    number(o, "rotation", v->rotation);
    status_or_null(o, "unknown_id_status", &r->seen->unknown);
}

static void put_protocol(struct object *o, const struct lp_report *r)
{
    const struct lp_seen *seen = r->seen;
    put_tally(o, "get", &seen->gets);
    put_tally(o, "delete", &seen->deletes);
    number(o, "sessions_left", seen->left);
    if (seen->sse_is_beside)
        put_tally(o, "old_sse", &seen->sse);
    put_answers(o, seen);
    put_stream(o, r);
    begin(o, "cors", "{");
    boolean(o, "is_offered", seen->cors_is_offered);
    boolean(o, "shows_session_id", seen->cors_shows_id);
    end(o, "}");
    text(o, "revision", seen->legacy[0] ? seen->legacy : NULL);
    text(o, "revisions_without_sessions", seen->modern[0] ? seen->modern : NULL);
    boolean(o, "is_old_sse", seen->is_old_sse);
    boolean(o, "mints_session_ids", seen->mints_ids);
    put_list(o, "hops", seen->hops, seen->hop_count);
}

static const char *or_null(const char *value)
{
    return value[0] ? value : NULL;
}

static void put_login(struct object *o, const struct lp_seen *seen)
{
    text(o, "login", or_null(seen->login));
    if (!seen->login[0])
        return;
    text(o, "metadata_url", or_null(seen->metadata_url));
    text(o, "resource", or_null(seen->resource));
    begin(o, "well_known", "{");
    for (uint32_t i = 0; i < LP_SEEN_ADDRESSES; i++)
        status_or_null(o, lp_report_address(i), &seen->addresses[i]);
    end(o, "}");
}

static void put_faults(struct object *o, const struct lp_seen *seen)
{
    number(o, "requests", seen->requests);
    begin(o, "failed", "[");
    for (uint32_t i = 0; i < seen->fault_count; i++) {
        begin(o, NULL, "{");
        number(o, "status", seen->faults[i].status);
        number(o, "count", seen->faults[i].count);
        end(o, "}");
    }
    end(o, "]");
}

int lp_report_json(const struct lp_report *report, struct lp_buf *out)
{
    struct object o = {.out = out};
    begin(&o, NULL, "{");
    key(&o, "url");
    quote(&o, report->url);
    put_verdict(&o, report);
    put_fixes(&o, report);
    put_rates(&o, report->verdict);
    put_cookie(&o, report);
    put_protocol(&o, report);
    put_rest(&o, &report->seen->idle);
    put_steps(&o, &report->seen->steps);
    text(&o, "failure", report->seen->failure[0] ? report->seen->failure : NULL);
    put_faults(&o, report->seen);
    put_login(&o, report->seen);
    boolean(&o, "is_cut_short", report->seen->is_cut_short);
    number(&o, "took_ms", report->seen->took_ms);
    end(&o, "}");
    put(&o, LP_SPAN("\n"));
    return o.error;
}
