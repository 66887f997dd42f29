/* The probe's page for people (call/probe_report.h): verdict, figures with their sample sizes, the
 * table of answers, and what to do. Nothing is longer than 80 columns but what is to be pasted. */
#include "call/probe_report.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

enum { WIDTH = 80, LINE_MAX_BYTES = 1024, LINES_MAX = 16384, LABEL = 20 };

struct page {
    struct lp_buf *out;
    int error;
};

static void put(struct page *page, struct lp_span text)
{
    if (!page->error)
        page->error = lp_buf_append(page->out, text);
}

/* One empty line, where there is none yet. */
static void put_gap(struct page *page)
{
    struct lp_span all = lp_buf_span(page->out);
    if (all.len < 2 || all.ptr[all.len - 1] != '\n' || all.ptr[all.len - 2] != '\n')
        put(page, LP_SPAN("\n"));
}

/* Words wrapped at 80 columns; the first line begins behind what is there in column `at`. */
static void put_wrapped(struct page *page, struct lp_span text, size_t indent, size_t at)
{
    static const char BLANKS[] = "                        ";
    while (text.ptr && text.len) {
        struct lp_span word = lp_span_split(text, ' ', &text);
        if (!word.len)
            continue;
        if (at > indent && at + 1 + word.len > WIDTH) {
            put(page, LP_SPAN("\n"));
            put(page, lp_span(BLANKS, indent));
            at = indent;
        } else if (at > indent) {
            put(page, LP_SPAN(" "));
            at++;
        }
        put(page, word);
        at += word.len;
    }
    put(page, LP_SPAN("\n"));
}

static void line(struct page *page, const char *label, const char *fmt, ...) LP_PRINTF(3, 4);
static void line(struct page *page, const char *label, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    char head[LABEL + 4];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    snprintf(head, sizeof head, "  %-*s", LABEL - 2, label);
    put(page, lp_span_str(head));
    put_wrapped(page, lp_span(text, len), LABEL, LABEL);
}

static void paragraph(struct page *page, const char *text)
{
    put(page, LP_SPAN("  "));
    put_wrapped(page, lp_span_str(text), 2, 2);
}

/* --- verdict --- */

static const char *word_of(const struct lp_verdict *verdict)
{
    static const char *const WORDS[] = {[LP_JUDGE_HEALTHY] = "HEALTHY",
        [LP_JUDGE_BROKEN] = "BROKEN",
        [LP_JUDGE_UNKNOWN] = "COULD NOT TELL",
        [LP_JUDGE_NO_ENDPOINT] = "NO MCP ENDPOINT"};
    return WORDS[verdict->judgement];
}

const char *lp_report_address(uint32_t number)
{
    static const char *const NAMES[LP_SEEN_ADDRESSES] = {
        "oauth-protected-resource", "oauth-authorization-server", "openid-configuration"};
    LP_ASSERT(number < LP_SEEN_ADDRESSES);
    return NAMES[number];
}

static void put_login(struct page *page, const struct lp_report *r)
{
    const struct lp_seen *seen = r->seen;
    put(page, LP_SPAN("\n"));
    line(page, "it says", "%s", seen->login);
    line(page, "in use", "%.*s", (int)r->url.len, r->url.ptr);
    if (seen->metadata_url[0])
        line(page, "metadata at", "%s", seen->metadata_url);
    if (seen->resource[0])
        line(page, "which is for", "%s", seen->resource);
    for (uint32_t i = 0; i < LP_SEEN_ADDRESSES; i++)
        line(page, i ? "" : "/.well-known/", "%u  %s", seen->addresses[i].status,
            lp_report_address(i));
}

/* "503 in 33 of 100 requests; no answer in 2". */
static void put_faults(struct page *page, const struct lp_seen *seen)
{
    char text[LINE_MAX_BYTES] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < seen->fault_count; i++) {
        char what[16] = "no answer";
        char of_all[32] = "";
        if (seen->faults[i].status)
            snprintf(what, sizeof what, "%u", seen->faults[i].status);
        if (!i)
            snprintf(of_all, sizeof of_all, " of %u requests", seen->requests);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s in %u%s", i ? "; " : "", what,
            seen->faults[i].count, of_all);
    }
    if (at)
        line(page, "failed", "%s", text);
}

static void put_verdict(struct page *page, const struct lp_report *r)
{
    char text[LINE_MAX_BYTES];
    const struct lp_situation_info *info = lp_situation_info(r->verdict->situation);
    put(page, LP_SPAN("\n"));
    snprintf(text, sizeof text, "%s: %s.", word_of(r->verdict), info->headline);
    paragraph(page, text);
    const char *cookie = lp_report_cookie(r->seen);
    if (r->verdict->affinity == LP_AFFINITY_COOKIE && cookie) {
        snprintf(text, sizeof text, "The cookie is %s.", cookie);
        paragraph(page, text);
    }
    if (r->seen->failure[0])
        paragraph(page, r->seen->failure);
    if (r->seen->login[0])
        put_login(page, r);
    if (r->verdict->situation == LP_SITUATION_trouble ||
        r->verdict->situation == LP_SITUATION_server_down)
        put_faults(page, r->seen);
    put(page, LP_SPAN("\n"));
}

/* --- figures --- */

static const struct lp_seen_row *first_row(const struct lp_seen *seen)
{
    for (uint32_t i = 0; i < seen->row_count; i++)
        if (seen->rows[i].arm == LP_ARM_FRESH && seen->rows[i].count)
            return &seen->rows[i];
    return NULL;
}

static void put_row(struct page *page, const struct lp_seen *seen)
{
    static const char MARKS[] = {[LP_MARK_OK] = 'O', [LP_MARK_LOST] = 'x', [LP_MARK_FAULT] = '!'};
    char text[LP_SEEN_CALLS_MAX + 1];
    const struct lp_seen_row *row = first_row(seen);
    if (!row)
        return;
    uint32_t n = row->count < WIDTH - LABEL ? row->count : WIDTH - LABEL;
    for (uint32_t i = 0; i < n; i++)
        text[i] = MARKS[row->marks[i]];
    text[n] = '\0';
    line(page, "one session", "%s", text);
}

static void put_arm(struct page *page, const char *label, struct lp_rate rate)
{
    uint32_t judged = rate.ok + rate.lost;
    if (!judged && !rate.faults)
        return;
    line(page, label, "%u of %u calls found their session (%u %%), %u sessions%s", rate.ok, judged,
        judged ? (unsigned)((200.0 * rate.ok / judged + 1) / 2) : 0, rate.rows,
        rate.faults ? ";" : "");
    if (rate.faults)
        line(page, "", "%u more were answered by an error of the server, or not at all",
            rate.faults);
}

static void put_replicas(struct page *page, const struct lp_verdict *verdict)
{
    const struct lp_estimate *n = &verdict->replicas;
    if (verdict->rotation && n->low == n->high && n->value > 1)
        line(page, "replicas", "%.0f", n->value);
    else if (n->value && n->high)
        line(page, "replicas", "about %.1f (%.1f to %.1f)", n->value, n->low, n->high);
    else if (n->value > 1)
        line(page, "replicas", "at least %.0f", n->value);
    else if (!n->value && n->low > 1)
        line(page, "replicas", "more than %.0f", n->low);
}

static void put_cookies(struct page *page, const struct lp_seen *seen)
{
    char names[LINE_MAX_BYTES] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < seen->cookie_count; i++)
        at += (size_t)snprintf(
            names + at, sizeof names - at, "%s%s", i ? ", " : "", seen->cookies[i]);
    if (seen->mints_ids || seen->is_old_sse)
        line(page, "cookies", "%s", seen->cookie_count ? names : "none was offered");
}

static void put_tally(struct page *page, const char *label, const struct lp_seen_tally *tally)
{
    if (!tally->asked)
        return;
    if (tally->refused == tally->asked) {
        line(page, label, "not offered (405), %u asked", tally->asked);
        return;
    }
    line(page, label, "%u of %u fine%s", tally->fine, tally->asked,
        tally->lost ? "; the others did not find their session" : "");
}

static void put_methods(struct page *page, const struct lp_seen *seen)
{
    put_tally(page, "GET (stream)", &seen->gets);
    if (seen->gets.fine)
        line(page, "", "head after %u ms, POSTs take %u ms", seen->stream.head_ms,
            seen->stream.post_ms);
    if (seen->stream.no_head)
        line(page, "", "%u got no head in 2.5 s", seen->stream.no_head);
    put_tally(page, "DELETE", &seen->deletes);
    if (seen->undead)
        line(page, "", "%u of %u sessions answered after their DELETE", seen->undead,
            seen->ended_checks);
    if (seen->left)
        line(page, "left behind", "%u sessions could not be deleted", seen->left);
    if (seen->sse_is_beside)
        put_tally(page, "old SSE beside it", &seen->sse);
}

static void put_steps(struct page *page, const struct lp_seen_steps *steps)
{
    uint32_t seconds = steps->fine + steps->lost;
    if (seconds)
        line(page, "two-step calls", "%u of %u second steps were taken (%u %%)", steps->fine,
            seconds, (unsigned)((200.0 * steps->fine / seconds + 1) / 2));
    else if (steps->asked)
        line(page, "two-step calls", "none");
    if (steps->words[0])
        line(page, "", "%s", steps->words);
}

static void put_server(struct page *page, const struct lp_seen *seen)
{
    if (seen->legacy[0] || seen->modern[0])
        line(page, "revisions", "%s%s%s", seen->legacy,
            seen->legacy[0] && seen->modern[0] ? "; without sessions: " : "", seen->modern);
    for (uint32_t i = 0; i < seen->hop_count; i++)
        line(page, i ? "" : "named on the way", "%s", seen->hops[i]);
    if (seen->cors_is_offered)
        line(page, "browsers (CORS)", "%s",
            seen->cors_shows_id ? "may come, and see the session id"
                                : "may come, but do not see the session id");
}

static void put_figures(struct page *page, const struct lp_report *r)
{
    const struct lp_verdict *v = r->verdict;
    const char *affinity = lp_affinity_name(v->affinity);
    put_row(page, r->seen);
    put_arm(page, "new connections", v->rates[LP_ARM_FRESH]);
    put_arm(page, "kept connections", v->rates[LP_ARM_KEPT]);
    put_arm(page, "with cookies", v->rates[LP_ARM_COOKIE]);
    put_arm(page, "other addresses", v->rates[LP_ARM_ELSEWHERE]);
    if (v->holds[LP_SITUATION_session_hash])
        line(page, "whole sessions", "%u always right, %u always wrong", v->pure.right,
            v->pure.wrong);
    put_replicas(page, v);
    line(page, "affinity", "%s", affinity ? affinity : "not known");
    put_cookies(page, r->seen);
    put_methods(page, r->seen);
    put_steps(page, &r->seen->steps);
    put_server(page, r->seen);
}

/* --- the table of answers --- */

static bool is_accepted(const struct lp_seen_answer *answer)
{
    return (answer->status >= 200 && answer->status < 300) ||
        (answer->status == 405 && answer->has_allow);
}

void lp_report_rows(const struct lp_seen *seen, struct lp_report_row room[LP_REPORT_ROWS])
{
    bool is_stream = seen->own_get.status == 200 && seen->own_get.media == LP_MEDIA_EVENTS;
    bool is_refused = seen->own_get.status == 405 && seen->own_get.has_allow;
    room[0] = (struct lp_report_row){
        "missing-id", "POST without an id", "400", &seen->missing, seen->missing.status == 400};
    room[1] = (struct lp_report_row){"unknown-id", "POST with an unknown id", "404", &seen->unknown,
        seen->unknown.status == 404};
    room[2] = (struct lp_report_row){
        "ended-id", "POST after DELETE", "404", &seen->ended, seen->ended.status == 404};
    room[3] = (struct lp_report_row){"delete", "DELETE", "2xx, or 405 with Allow",
        &seen->own_delete, is_accepted(&seen->own_delete)};
    room[4] = (struct lp_report_row){
        "get", "GET", "a stream, or 405 with Allow", &seen->own_get, is_stream || is_refused};
}

static void put_answers(struct page *page, const struct lp_seen *seen)
{
    struct lp_report_row rows[LP_REPORT_ROWS];
    char text[LINE_MAX_BYTES];
    if (!seen->mints_ids)
        return;
    lp_report_rows(seen, rows);
    put(page, LP_SPAN("\n  question                 right                         came\n"));
    for (uint32_t i = 0; i < LP_REPORT_ROWS; i++) {
        char came[32] = "not asked";
        if (rows[i].answer->is_asked && !rows[i].answer->status)
            snprintf(came, sizeof came, "no answer");
        else if (rows[i].answer->is_asked)
            snprintf(came, sizeof came, "%u%s", rows[i].answer->status,
                rows[i].answer->media == LP_MEDIA_HTML ? " (web page)" : "");
        bool is_wrong = rows[i].answer->is_asked && !rows[i].is_right;
        snprintf(text, sizeof text, "  %-24s %-29s %s%s\n", rows[i].question, rows[i].expected,
            came, is_wrong ? "  wrong" : "");
        put(page, lp_span_str(text));
    }
}

/* --- notes and fixes --- */

static void put_rest(struct page *page, const struct lp_seen_idle *idle)
{
    if (!idle->watched_s)
        return;
    for (uint32_t i = 0; i < idle->tries; i++)
        if (idle->cut_ms[i])
            line(page, i ? "" : "quiet streams", "cut after %.1f s of silence",
                idle->cut_ms[i] / 1000.0);
        else
            line(page, i ? "" : "quiet streams", "open for %u s%s", idle->watched_s,
                idle->heard_ms ? ", with something sent in between" : "");
    if (idle->dead_s)
        line(page, "idle sessions", "alive after %u s, lost after %u s", idle->alive_s,
            idle->dead_s);
    else
        line(page, "idle sessions", "alive after %u s", idle->alive_s);
}

static void put_notes(struct page *page, const struct lp_report *r)
{
    const struct lp_seen *seen = r->seen;
    bool is_one = r->verdict->situation == LP_SITUATION_one_process;
    bool is_held = r->verdict->affinity == LP_AFFINITY_HEADER || is_one;
    put(page, LP_SPAN("\n"));
    for (uint32_t i = (uint32_t)r->verdict->situation + 1; i < LP_SITUATION_jar; i++)
        if (r->verdict->holds[i] && r->verdict->judgement != LP_JUDGE_NO_ENDPOINT)
            line(page, "also", "%s", lp_situation_info((enum lp_situation)i)->headline);
    if (r->verdict->holds[LP_SITUATION_slow_stream])
        line(page, "also", "%s: after %u ms, where a POST is answered after %u ms",
            lp_situation_info(LP_SITUATION_slow_stream)->headline, seen->stream.head_ms,
            seen->stream.post_ms);
    if (is_one)
        line(page, "note", "one process, or replicas that nothing told apart");
    if (is_held && !seen->sources)
        line(page, "note",
            "all calls came from one address: affinity by source address would look the same; "
            "--source ADDRESS adds another one of this machine");
    if (is_held && r->verdict->rates[LP_ARM_FRESH].rows < 7)
        line(page, "note", "so few sessions do not show a hash of the session id; --sessions 20");
    if (seen->is_cut_short)
        line(page, "note", "the time was over before everything was asked");
}

/* What is to be pasted is not wrapped. */
static void put_lines(struct page *page, const struct lp_report *r, struct lp_fix fix)
{
    struct lp_buf lines;
    lp_buf_init(&lines, LINES_MAX);
    if (!page->error)
        page->error = lp_fix_lines(fix, r->url, &lines);
    struct lp_span rest = lp_buf_span(&lines);
    while (rest.len) {
        struct lp_span one = lp_span_split(rest, '\n', &rest);
        put(page, LP_SPAN("      "));
        put(page, one);
        put(page, LP_SPAN("\n"));
    }
    lp_buf_release(&lines);
}

static void put_fix(struct page *page, const struct lp_report *r, enum lp_front front)
{
    char text[LINE_MAX_BYTES];
    bool is_first = front == lp_fix_front(r->verdict, r->seen);
    struct lp_fix fix = lp_fix_of(r->verdict->remedy, front);
    if (!fix.words)
        return;
    bool has_front = lp_fix_has_front(r->verdict->remedy, front);
    snprintf(text, sizeof text, "%s%s%s: %s.", is_first ? "Fix" : "Or", has_front ? ", " : "",
        has_front ? lp_front_name(front) : "", fix.words);
    paragraph(page, text);
    put_lines(page, r, fix);
}

static void put_fixes(struct page *page, const struct lp_report *r)
{
    enum lp_front first = lp_fix_front(r->verdict, r->seen);
    put_gap(page);
    put_fix(page, r, first);
    for (uint32_t i = 0; i < LP_FRONT_COUNT; i++)
        if (i != first)
            put_fix(page, r, (enum lp_front)i);
}

const char *lp_report_cookie(const struct lp_seen *seen)
{
    for (uint32_t i = 0; i < seen->cookie_count; i++)
        if (seen->suffices[i])
            return seen->cookies[i];
    return seen->cookie_count == 1 ? seen->cookies[0] : NULL;
}

int lp_report_text(const struct lp_report *report, struct lp_buf *out)
{
    struct page page = {.out = out};
    put(&page, LP_SPAN("limpet probe "));
    put(&page, report->url);
    put(&page, LP_SPAN("\n"));
    put_verdict(&page, report);
    if (report->seen->is_open) {
        put_figures(&page, report);
        put_rest(&page, &report->seen->idle);
        put_answers(&page, report->seen);
        put_notes(&page, report);
    }
    if (report->verdict->remedy != LP_REMEDY_NOTHING)
        put_fixes(&page, report);
    return page.error;
}
